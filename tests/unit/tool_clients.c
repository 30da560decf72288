// SPDX-License-Identifier: MIT
/* What tools read from /proc. */
#include "kselftest_harness.h"

#include "common/accel.h"
#include "common/tool.h"

TEST(fdinfo)
{
	struct accel_fdinfo info;

	accel_parse_fdinfo(&info, "pos:\t0\nflags:\t02100002\ndrm-driver:\tneuron\n"
			   "drm-client-id:\t17\ndrm-pdev:\t0000:01:00.0\n"
			   "drm-total-hbm:\t1536 KiB\ndrm-total-host:\t3 MiB\n"
			   "drm-engine-nc0:\t0 ns\ndrm-engine-nc7:\t123456789012 ns\n"
			   "drm-engine-nc99:\t5 ns\nneuron-cores:\t0x81\n");
	EXPECT_TRUE(info.neuron);
	EXPECT_TRUE(info.has_client_id);
	EXPECT_EQ(17, info.client_id);
	EXPECT_STREQ("0000:01:00.0", info.pdev);
	EXPECT_EQ(1536 << 10, info.client.hbm);
	EXPECT_EQ(3 << 20, info.client.host);
	EXPECT_EQ(123456789012ull, info.client.core_ns[7]);
	EXPECT_EQ(0x81, info.client.core_mask);
}

TEST(fdinfo_of_others)
{
	struct accel_fdinfo info;

	accel_parse_fdinfo(&info, "drm-driver:\ti915\ndrm-client-id:\t1\n");
	EXPECT_FALSE(info.neuron);
	accel_parse_fdinfo(&info, "");
	EXPECT_FALSE(info.neuron);
	accel_parse_fdinfo(&info, ":\n::\ndrm-pdev:\nno colon\ndrm-driver:");
	EXPECT_FALSE(info.neuron);
	EXPECT_STREQ("", info.pdev);
}

TEST(runtime_version)
{
	char version[8] = "";

	accel_parse_maps("7f00-7f01 r-xp 0 08:01 5 /usr/lib/libc.so.6\n", version, sizeof(version));
	EXPECT_STREQ("", version);
	accel_parse_maps("7f00-7f01 r-xp 0 08:01 5 /opt/lib/libnrt.so.1.0.0\n", version, sizeof(version));
	EXPECT_STREQ("1.0.0", version);
	accel_parse_maps("7f00-7f01 r-xp 0 08:01 5 /x/libnrt.so\n", version, sizeof(version));
	EXPECT_STREQ("unknown", version);
	accel_parse_maps("7f00-7f01 r-xp 0 08:01 5 /x/libnrt.so.1.22.333.4444\n", version, sizeof(version));
	EXPECT_STREQ("1.22.33", version);
}

TEST(numbers)
{
	uint64_t v;
	double f;

	EXPECT_TRUE(tool_number("12", 1, 12, &v));
	EXPECT_EQ(12, v);
	EXPECT_FALSE(tool_number("13", 1, 12, &v));
	EXPECT_FALSE(tool_number("-1", 0, 12, &v));
	EXPECT_FALSE(tool_number("1x", 0, 12, &v));
	EXPECT_FALSE(tool_number("", 0, 12, &v));
	EXPECT_FALSE(tool_number("99999999999999999999", 0, UINT64_MAX, &v));
	EXPECT_TRUE(tool_fraction(".5", 0.1, 1, &f));
	EXPECT_FALSE(tool_fraction("nan", 0, 1, &f));
	EXPECT_FALSE(tool_fraction("1e999", 0, 1e300, &f));
}

TEST(texts)
{
	char buf[32];

	tool_bytes(96ull << 30, buf, sizeof(buf));
	EXPECT_STREQ("96.0 GiB", buf);
	tool_bytes(512, buf, sizeof(buf));
	EXPECT_STREQ("512 B", buf);
	tool_printable(buf, sizeof(buf), "a\033[31mb\n");
	EXPECT_STREQ("a?[31mb?", buf);
}

TEST_HARNESS_MAIN

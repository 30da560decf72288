// SPDX-License-Identifier: MIT
/* Environment variables, log lines, status names, versions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "kselftest_harness.h"

static char error[512];
static struct env env;

static int parse(void)
{
	error[0] = 0;
	return env_parse(&env, error, sizeof(error));
}

/* The value is refused, and the message has the name, the value and what is allowed. */
static bool refused(enum env_id id, const char *value)
{
	const struct env_row *row = &env_rows[id];
	int ret;

	setenv(row->name, value, 1);
	ret = parse();
	unsetenv(row->name);
	return ret == -EINVAL && strstr(error, row->name) && strstr(error, value) &&
	       strstr(error, row->allowed);
}

static void clear(void)
{
	for (int i = 0; i < ENV_COUNT; i++)
		unsetenv(env_rows[i].name);
}

TEST(defaults)
{
	clear();
	ASSERT_EQ(0, parse());
	EXPECT_EQ(0, env.visible_count);
	EXPECT_EQ(0, env.num_cores);
	EXPECT_EQ(0, env.lnc);
	EXPECT_EQ(30, env.exec_timeout_s);
	EXPECT_FALSE(env.strict);
	/* Empty is not set. */
	setenv("NEURON_RT_VISIBLE_CORES", "", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "", 1);
	ASSERT_EQ(0, parse());
	EXPECT_EQ(0, env.visible_count);
	EXPECT_EQ(30, env.exec_timeout_s);
}

/* The three forms of the documentation. */
TEST(visible_cores)
{
	clear();
	setenv("NEURON_RT_VISIBLE_CORES", "3", 1);
	ASSERT_EQ(0, parse());
	ASSERT_EQ(1, env.visible_count);
	EXPECT_EQ(3, env.visible[0]);
	setenv("NEURON_RT_VISIBLE_CORES", "0-3", 1);
	ASSERT_EQ(0, parse());
	ASSERT_EQ(4, env.visible_count);
	EXPECT_EQ(0, env.visible[0]);
	EXPECT_EQ(3, env.visible[3]);
	setenv("NEURON_RT_VISIBLE_CORES", "3-5,6", 1);
	ASSERT_EQ(0, parse());
	ASSERT_EQ(4, env.visible_count);
	EXPECT_EQ(3, env.visible[0]);
	EXPECT_EQ(6, env.visible[3]);
	setenv("NEURON_RT_VISIBLE_CORES", "0-1151", 1);
	ASSERT_EQ(0, parse());
	EXPECT_EQ(1152, env.visible_count);
}

TEST(bad_visible_cores)
{
	static const char *const bad[] = {
		"a", "-1", "3-", "3-2", "1,1", "2,1", "0-3,2", ",", "1,", "1 2", " 1", "1152",
		"0-1152", "99999999999999999999", "0x1", "1-2-3", "+1",
	};

	clear();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_TRUE(refused(ENV_VISIBLE_CORES, bad[i])) {
			TH_LOG("'%s': %s", bad[i], error);
		}
	}
}

TEST(numbers)
{
	clear();
	EXPECT_TRUE(refused(ENV_EXEC_TIMEOUT, "0"));
	EXPECT_TRUE(refused(ENV_EXEC_TIMEOUT, "86401"));
	EXPECT_TRUE(refused(ENV_EXEC_TIMEOUT, "3s"));
	EXPECT_TRUE(refused(ENV_EXEC_TIMEOUT, "-3"));
	EXPECT_TRUE(refused(ENV_NUM_CORES, "1153"));
	EXPECT_TRUE(refused(ENV_LNC, "0"));
	EXPECT_TRUE(refused(ENV_LNC, "3"));
	EXPECT_TRUE(refused(ENV_VIRTUAL_CORE_SIZE, "4"));
	EXPECT_TRUE(refused(ENV_STRICT, "yes"));
	EXPECT_TRUE(refused(ENV_SR_EN, "2"));
	EXPECT_TRUE(refused(ENV_SR_SEED, "18446744073709551616"));
	EXPECT_TRUE(refused(ENV_PROFILE_MB, "0"));
	setenv("NEURON_RT_EXEC_TIMEOUT", "600", 1);
	setenv("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "18446744073709551615", 1);
	setenv("NEURON_RT_STRICT", "1", 1);
	ASSERT_EQ(0, parse());
	EXPECT_EQ(600, env.exec_timeout_s);
	EXPECT_EQ(UINT64_MAX, env.seed);
	EXPECT_TRUE(env.strict);
}

TEST(logical_cores)
{
	clear();
	setenv("NEURON_RT_VIRTUAL_CORE_SIZE", "2", 1);
	ASSERT_EQ(0, parse());
	EXPECT_EQ(2, env.lnc);
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	ASSERT_EQ(0, parse());
	EXPECT_EQ(2, env.lnc);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	EXPECT_EQ(-EINVAL, parse());
	EXPECT_NE(NULL, strstr(error, "must agree"));
}

TEST(log_variables)
{
	clear();
	setenv("NEURON_RT_LOG_LEVEL", "loud", 1);
	EXPECT_EQ(-EINVAL, log_setup(error, sizeof(error)));
	EXPECT_NE(NULL, strstr(error, "NEURON_RT_LOG_LEVEL=loud"));
	EXPECT_NE(NULL, strstr(error, "DEBUG"));
	setenv("NEURON_RT_LOG_LEVEL", "debug", 1);
	EXPECT_EQ(0, log_setup(error, sizeof(error)));
	setenv("NEURON_RT_LOG_LOCATION", "moon", 1);
	EXPECT_EQ(-EINVAL, log_setup(error, sizeof(error)));
	EXPECT_NE(NULL, strstr(error, "console or syslog"));
}

/* "2025-Sep-19 18:57:20.798030  4444:4444  ERROR  TDRV:exec_wait<to column 40>text" */
TEST(log_format)
{
	int fds[2], pid, tid, year, day, hour, minute, second, micro, at = 0;
	char line[1024] = "", month[4], level[8], where[64];

	clear();
	ASSERT_EQ(0, log_setup(error, sizeof(error)));
	ASSERT_EQ(0, pipe(fds));
	ASSERT_GE(dup2(fds[1], STDERR_FILENO), 0);
	log_line(LOG_INFO_, "NRT", "quiet", "not at the default level");
	log_line(LOG_ERR_, "TDRV", "exec_wait_round_robin", "[ND 0][NC %d] text", 3);
	ASSERT_GT(read(fds[0], line, sizeof(line) - 1), 0);
	ASSERT_EQ(11, sscanf(line, "%4d-%3[A-Za-z]-%2d %2d:%2d:%2d.%6d  %d:%d  %7s  %63s %n",
			     &year, month, &day, &hour, &minute, &second, &micro, &pid, &tid,
			     level, where, &at)) TH_LOG("%s", line);
	EXPECT_EQ(getpid(), pid);
	EXPECT_STREQ("ERROR", level);
	EXPECT_STREQ("TDRV:exec_wait_round_robin", where);
	EXPECT_STREQ("[ND 0][NC 3] text\n", line + at);
	/* The text begins 40 columns after the function's name does. */
	EXPECT_EQ(line + at, strstr(line, "exec_wait") + 40);
}

/* Names and values of the public table. */
TEST(status_names)
{
	EXPECT_STREQ("NRT_SUCCESS", nrt_get_status_as_str(0));
	EXPECT_STREQ("NRT_RESOURCE", nrt_get_status_as_str(4));
	EXPECT_STREQ("NRT_UNSUPPORTED_NEFF_VERSION", nrt_get_status_as_str(10));
	EXPECT_STREQ("NRT_EXEC_UNIT_UNRECOVERABLE", nrt_get_status_as_str(101));
	EXPECT_STREQ("NRT_EXEC_OOB", nrt_get_status_as_str(1006));
	EXPECT_STREQ("NRT_NETWORK_PROXY_FAILURE", nrt_get_status_as_str(1206));
	EXPECT_STREQ("NRT_STATUS_UNKNOWN", nrt_get_status_as_str(8));
	EXPECT_STREQ("NRT_STATUS_UNKNOWN", nrt_get_status_as_str(1001));
	EXPECT_STREQ("NRT_STATUS_UNKNOWN", nrt_get_status_as_str((NRT_STATUS)-1));
}

/* Sizes and offsets of the public ABI. */
TEST(abi)
{
	EXPECT_EQ(224, sizeof(nrt_version_t));
	EXPECT_EQ(32, sizeof(nrt_instance_info_t));
	EXPECT_EQ(16, sizeof(nrt_vnc_memory_stats_t));
	EXPECT_EQ(24, sizeof(nrt_tensor_batch_op_t));
	EXPECT_EQ(24, sizeof(nrt_tensor_batch_t));
	EXPECT_EQ(4, sizeof(nrt_model_info_t));
	EXPECT_EQ(296, sizeof(nrt_tensor_info_t));
	EXPECT_EQ(256, offsetof(nrt_tensor_info_t, usage));
	EXPECT_EQ(264, offsetof(nrt_tensor_info_t, size));
	EXPECT_EQ(272, offsetof(nrt_tensor_info_t, dtype));
	EXPECT_EQ(280, offsetof(nrt_tensor_info_t, shape));
	EXPECT_EQ(288, offsetof(nrt_tensor_info_t, ndim));
	EXPECT_EQ(8, offsetof(nrt_tensor_info_array_t, tensor_array));
	EXPECT_EQ(4, sizeof(NRT_STATUS));
	EXPECT_EQ(0xA, NRT_DTYPE_FLOAT32);
	EXPECT_EQ(14, NRT_INSTANCE_TRN3);
}

TEST(version)
{
	nrt_version_t version;
	char part[16];

	memset(part, 0x55, sizeof(part));
	EXPECT_EQ(NRT_INVALID, nrt_get_version(NULL, sizeof(version)));
	EXPECT_EQ(NRT_INVALID, nrt_get_version(&version, 0));
	ASSERT_EQ(NRT_SUCCESS, nrt_get_version(&version, sizeof(version)));
	EXPECT_EQ(2, version.rt_major);
	EXPECT_NE(0, version.rt_detail[0]);
	ASSERT_EQ(NRT_SUCCESS, nrt_get_version((nrt_version_t *)part, 8));
	EXPECT_EQ(2, part[0]);
	EXPECT_EQ(0x55, part[8]);
}

/* Every variable is in the documentation. */
TEST(documented)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(DOC_RUNTIME, "r");

	if (!f)
		SKIP(return, "no source tree here");
	ASSERT_GT(fread(text, 1, (1 << 20) - 1, f), 0);
	fclose(f);
	for (int i = 0; i < ENV_COUNT; i++) {
		EXPECT_NE(NULL, strstr(text, env_rows[i].name)) TH_LOG("%s", env_rows[i].name);
		EXPECT_NE(NULL, strstr(text, env_rows[i].meaning)) TH_LOG("%s", env_rows[i].meaning);
	}
	free(text);
}

TEST_HARNESS_MAIN

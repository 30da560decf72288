// SPDX-License-Identifier: MIT
/* DEV_QUERY, sysfs and fdinfo: facts against the published ones of each generation. */
#include "kselftest_harness.h"

#include "drv.h"

/* Trainium2 has 8 NeuronCore-v3, 96 GiB of HBM ... (AWS's public architecture guides). */
static const struct {
	uint16_t pci_id;
	uint8_t nc_version;
	uint32_t cores, stacks;
	uint64_t hbm_gib;
} facts[] = {
	{ 0x7164, 2, 2, 2, 32 },
	{ 0x7264, 2, 2, 2, 32 },
	{ 0x7364, 3, 8, 4, 96 },
	{ 0x7564, 4, 8, 4, 144 },
};

FIXTURE(query) {
	int fd;
	struct drm_neuron_query_device dev;
};

FIXTURE_SETUP(query)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &self->dev, sizeof(self->dev)));
}

FIXTURE_TEARDOWN(query)
{
	close(self->fd);
}

TEST_F(query, device_is_a_known_generation)
{
	size_t i;

	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (facts[i].pci_id == self->dev.pci_id)
			break;
	ASSERT_LT(i, sizeof(facts) / sizeof(facts[0]));
	EXPECT_EQ(facts[i].nc_version, self->dev.nc_version);
	EXPECT_EQ(facts[i].cores, self->dev.core_count);
	EXPECT_EQ(facts[i].stacks, self->dev.hbm_stacks);
	EXPECT_EQ(4096, self->dev.page_size);
	EXPECT_LT(self->dev.va_start, self->dev.va_end);
	EXPECT_EQ(1ull << 48, self->dev.va_end);
	/* A chip model may be given less memory, never more. */
	EXPECT_LE(self->dev.hbm_size, facts[i].hbm_gib << 30);
	EXPECT_GT(self->dev.hbm_size, 0);
}

TEST_F(query, execution_is_all_or_nothing)
{
	bool has = self->dev.flags & DRM_NEURON_DEVICE_HAS_EXEC;

	EXPECT_EQ(has, self->dev.exec_version != 0);
	EXPECT_EQ(has, self->dev.psum_bytes == 16384);
	EXPECT_EQ(has, self->dev.sbuf_bytes != 0);
	EXPECT_EQ(0, self->dev.flags & ~(DRM_NEURON_DEVICE_HAS_EXEC | DRM_NEURON_DEVICE_HAS_IRQ));
}

TEST_F(query, size_is_reported_and_the_smaller_is_copied)
{
	struct drm_neuron_dev_query q = { .type = DRM_NEURON_QUERY_DEVICE };
	uint8_t buf[sizeof(self->dev) + 16];

	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_DEV_QUERY, &q));
	EXPECT_EQ(sizeof(self->dev), q.size);
	memset(buf, 0xa5, sizeof(buf));
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, buf, 4));
	EXPECT_EQ(0, memcmp(buf, &self->dev, 4));
	EXPECT_EQ(0xa5, buf[4]);
	memset(buf, 0xa5, sizeof(buf));
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, &self->dev, sizeof(self->dev)));
	EXPECT_EQ(0xa5, buf[sizeof(self->dev)]);
}

TEST_F(query, bad_requests)
{
	EXPECT_EQ(-EINVAL, drv_query(self->fd, DRM_NEURON_QUERY_LIMITS + 1, &self->dev, 8));
	EXPECT_EQ(-EINVAL, drv_query(self->fd, ~0u, &self->dev, 8));
	EXPECT_EQ(-EFAULT, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, (void *)8, 8));
}

TEST_F(query, regions_add_up)
{
	struct drm_neuron_query_region r[8] = {};
	uint64_t size = 0, used;
	uint32_t i, bo;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_REGIONS, r, sizeof(r)));
	for (i = 0; i < self->dev.hbm_stacks; i++) {
		EXPECT_EQ(i, r[i].id);
		EXPECT_LE(r[i].used, r[i].size);
		EXPECT_EQ(r[i].size, r[i].cpu_visible_size);
		size += r[i].size;
	}
	EXPECT_EQ(self->dev.hbm_size, size);
	used = drv_hbm_used(self->fd);
	ASSERT_EQ(0, drv_bo(self->fd, 3 * HBM_PAGE, 0, &bo));
	EXPECT_EQ(used + 3 * HBM_PAGE, drv_hbm_used(self->fd));
	ASSERT_EQ(0, drv_bo_close(self->fd, bo));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_F(query, cores_are_numbered)
{
	struct drm_neuron_query_core c[8] = {};
	uint32_t i;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_CORES, c, sizeof(c)));
	for (i = 0; i < self->dev.core_count; i++) {
		EXPECT_EQ(i, c[i].core);
		EXPECT_EQ(0, c[i].pad);
	}
}

TEST_F(query, clocks_move_on)
{
	struct drm_neuron_query_timestamp a = {}, b = {};

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_TIMESTAMP, &a, sizeof(a)));
	usleep(2000);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_TIMESTAMP, &b, sizeof(b)));
	EXPECT_GE(b.cpu_ns, a.cpu_ns + 2000000);
	if (self->dev.flags & DRM_NEURON_DEVICE_HAS_EXEC) {
		EXPECT_GT(b.device_ns, a.device_ns);
	} else {
		EXPECT_EQ(0, b.device_ns);
	}
}

TEST_F(query, limits_are_enforced)
{
	struct drm_neuron_query_limits l = {};
	struct drm_neuron_job *jobs;
	uint32_t ctx;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_LIMITS, &l, sizeof(l)));
	EXPECT_EQ(NEURON_MAX_ARGS, l.args_per_job);
	ASSERT_GT(l.jobs_per_submit, 0);
	jobs = calloc(l.jobs_per_submit + 1, sizeof(*jobs));
	ASSERT_NE(NULL, jobs);
	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &ctx));
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, ctx, jobs, l.jobs_per_submit + 1));
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, ctx, jobs, 0));
	free(jobs);
}

static int fdinfo_has(int fd, const char *key, char *line, size_t size)
{
	char path[64];
	FILE *f;
	int found = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && !found && fgets(line, size, f))
		found = !strncmp(line, key, strlen(key)) && line[strlen(key)] == ':';
	if (f)
		fclose(f);
	return found;
}

TEST_F(query, fdinfo_counts_memory)
{
	char line[256], key[32];
	uint32_t bo, i;

	ASSERT_EQ(0, drv_bo(self->fd, 2 * MIB, 0, &bo));
	ASSERT_EQ(1, fdinfo_has(self->fd, "drm-driver", line, sizeof(line)));
	EXPECT_NE(NULL, strstr(line, "neuron"));
	ASSERT_EQ(1, fdinfo_has(self->fd, "drm-total-hbm", line, sizeof(line)));
	EXPECT_NE(NULL, strstr(line, "2048 KiB"));
	EXPECT_EQ(1, fdinfo_has(self->fd, "drm-resident-hbm", line, sizeof(line)));
	EXPECT_EQ(1, fdinfo_has(self->fd, "drm-total-host", line, sizeof(line)));
	EXPECT_EQ(1, fdinfo_has(self->fd, "neuron-cores", line, sizeof(line)));
	for (i = 0; i < self->dev.core_count; i++) {
		snprintf(key, sizeof(key), "drm-engine-nc%u", i);
		EXPECT_EQ(1, fdinfo_has(self->fd, key, line, sizeof(line)));
	}
}

TEST_F(query, sysfs_agrees)
{
	char cmd[256], text[64] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "cat /sys/class/accel/accel0/device/core_count");
	f = popen(cmd, "r");
	ASSERT_NE(NULL, f);
	ASSERT_NE(NULL, fgets(text, sizeof(text), f));
	pclose(f);
	EXPECT_EQ(self->dev.core_count, strtoul(text, NULL, 0));
	f = popen("cat /sys/class/accel/accel0/device/hbm_total", "r");
	ASSERT_NE(NULL, f);
	ASSERT_NE(NULL, fgets(text, sizeof(text), f));
	pclose(f);
	EXPECT_EQ(self->dev.hbm_size, strtoull(text, NULL, 0));
}

TEST_HARNESS_MAIN

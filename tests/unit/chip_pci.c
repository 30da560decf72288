// SPDX-License-Identifier: MIT
/*
 * The QEMU device as a guest sees it: PCI identity, capabilities and BARs. Runs in
 * the guest, beside the driver: it only reads, and skips without a device. Numbers
 * come from the public driver's sources, not from the model.
 */
#include <kselftest_harness.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "neuron/regs.h"

#define PCI_DEVICES	"/sys/bus/pci/devices"

static const struct chip {
	uint16_t id;
	unsigned int nc_version, cores, stacks;
	uint64_t bar0, bar4, stride, misc;
} chips[] = {
	{ 0x7164, 2, 2, 2, 1ull << 30, 32ull << 30, 16ull << 30, 0x30fa0000 },
	{ 0x7264, 2, 2, 2, 1ull << 30, 32ull << 30, 16ull << 30, 0x30fa0000 },
	{ 0x7364, 3, 8, 4, 4ull << 30, 256ull << 30, 64ull << 30, 0x06c84000 },
	{ 0x7564, 4, 8, 4, 4ull << 30, 256ull << 30, 64ull << 30, 0x06c84000 },
};

FIXTURE(pci) {
	char path[300];
	uint8_t config[4096];
	ssize_t config_size;
	const struct chip *chip;
	uint8_t revision;
};

static bool find_device(char *path, size_t size)
{
	DIR *dir = opendir(PCI_DEVICES);
	struct dirent *e;
	bool found = false;
	uint8_t head[4];
	int fd;

	while (dir && !found && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, size, PCI_DEVICES "/%s/config", e->d_name);
		fd = open(path, O_RDONLY);
		found = fd >= 0 && pread(fd, head, 4, 0) == 4 && head[0] == 0x0f && head[1] == 0x1d;
		if (fd >= 0)
			close(fd);
		path[strlen(path) - strlen("/config")] = 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

static unsigned int le(const uint8_t *p, unsigned int bytes)
{
	unsigned int v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

FIXTURE_SETUP(pci)
{
	char name[320];
	unsigned int i;
	int fd;

	if (!find_device(self->path, sizeof(self->path)))
		SKIP(return, "no device of vendor 1d0f");
	snprintf(name, sizeof(name), "%s/config", self->path);
	fd = open(name, O_RDONLY);
	self->config_size = read(fd, self->config, sizeof(self->config));
	close(fd);
	self->revision = self->config[8];
	for (i = 0; i < 4; i++) {
		if (chips[i].id == le(self->config + 2, 2))
			self->chip = &chips[i];
	}
	ASSERT_NE(self->chip, NULL);
}

FIXTURE_TEARDOWN(pci)
{
}

static unsigned int find_cap(const uint8_t *config, uint8_t id)
{
	unsigned int at = config[0x34], n;

	for (n = 0; at && n < 48; n++, at = config[at + 1]) {
		if (config[at] == id)
			return at;
	}
	return 0;
}

static uint64_t bar_size(const char *path, unsigned int bar)
{
	unsigned long long start, end, flags;
	uint64_t size = 0;
	char name[320];
	unsigned int i;
	FILE *f;

	snprintf(name, sizeof(name), "%s/resource", path);
	f = fopen(name, "r");
	for (i = 0; f && fscanf(f, "%llx %llx %llx", &start, &end, &flags) == 3; i++) {
		if (i == bar)
			size = end ? end - start + 1 : 0;
	}
	if (f)
		fclose(f);
	return size;
}

static volatile uint8_t *map_bar(const char *path, unsigned int bar, uint64_t offset, size_t len)
{
	char name[320];
	void *p;
	int fd;

	snprintf(name, sizeof(name), "%s/resource%u", path, bar);
	fd = open(name, O_RDWR | O_SYNC);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, offset);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

TEST_F(pci, identity_and_bars)
{
	EXPECT_EQ(le(self->config + 0x0a, 2), 0x1200);
	EXPECT_EQ(bar_size(self->path, 0), self->chip->bar0);
	if (self->revision == 0xff) {
		EXPECT_EQ(bar_size(self->path, 2), self->chip->bar0);
	} else {
		EXPECT_EQ(bar_size(self->path, 2), 0x100000);
		EXPECT_EQ(bar_size(self->path, 4), self->chip->bar4);
	}
}

TEST_F(pci, capabilities)
{
	unsigned int exp, vndr, msix;

	if (self->config_size < 256)
		SKIP(return, "needs root to read configuration space");
	exp = find_cap(self->config, 0x10);
	ASSERT_NE(exp, 0);
	EXPECT_NE(le(self->config + exp + 4, 4) & 1u << 28, 0);	/* FLR */
	vndr = find_cap(self->config, 0x09);
	msix = find_cap(self->config, 0x11);
	if (self->revision == 0xff) {
		EXPECT_EQ(vndr, 0);
		EXPECT_EQ(msix, 0);
		return;
	}
	ASSERT_NE(vndr, 0);
	EXPECT_EQ(self->config[vndr + 2], 16);
	EXPECT_EQ(self->config[vndr + 3], 1);
	EXPECT_EQ(memcmp(self->config + vndr + 4, "NEXC", 4), 0);
	EXPECT_EQ(self->config[vndr + 8], 2);
	EXPECT_EQ(le(self->config + vndr + 12, 4), 0);
	ASSERT_NE(msix, 0);
	EXPECT_LE(le(self->config + msix + 2, 2) & 0x7ff, 8);
	EXPECT_EQ(le(self->config + msix + 4, 4), 0xe0000 | 2);
	EXPECT_EQ(le(self->config + msix + 8, 4), 0xf0000 | 2);
}

/* Error reporting where there is a root port to report to. */
TEST_F(pci, aer_below_a_port)
{
	char up[4200], *real;

	if (self->config_size < 4096)
		SKIP(return, "no extended configuration space");
	real = realpath(self->path, NULL);
	ASSERT_NE(real, NULL);
	*strrchr(real, '/') = 0;
	snprintf(up, sizeof(up), "%s/config", real);
	free(real);
	EXPECT_EQ(le(self->config + 0x100, 2) == 1, access(up, F_OK) == 0);
}

TEST_F(pci, misc_ram_in_all_sizes)
{
	volatile uint8_t *m = map_bar(self->path, 0, self->chip->misc, 4096);
	uint32_t serial;

	if (!m)
		SKIP(return, "BAR0 cannot be mapped (not root, or claimed)");
	EXPECT_EQ(*(volatile uint32_t *)m, 3);
	EXPECT_LT(*(volatile uint32_t *)(m + 0x24), 144);
	serial = *(volatile uint32_t *)(m + 0x38);
	EXPECT_EQ(*(volatile uint64_t *)(m + 0x38) & 0xffffffff, serial);
	EXPECT_EQ(*(volatile uint16_t *)(m + 0x3a), serial >> 16);
	EXPECT_EQ(m[0x39], (serial >> 8 & 0xff));
}

TEST_F(pci, execution_block)
{
	volatile uint8_t *x = map_bar(self->path, 2, 0, 4096);
	uint64_t a, b;

	if (!x)
		SKIP(return, "BAR2 cannot be mapped (not root, or claimed)");
	if (self->revision == 0xff) {
		EXPECT_NE(*(volatile uint32_t *)x, 0x4358454e);
		return;
	}
	EXPECT_EQ(*(volatile uint32_t *)x, 0x4358454e);
	EXPECT_EQ(*(volatile uint32_t *)(x + NEURON_EXEC_NC_VERSION), self->chip->nc_version);
	EXPECT_EQ(*(volatile uint32_t *)(x + NEURON_EXEC_CORES), self->chip->cores);
	a = *(volatile uint64_t *)(x + NEURON_EXEC_CLOCK);
	usleep(1000);
	b = *(volatile uint64_t *)(x + NEURON_EXEC_CLOCK);
	EXPECT_GE(b - a, 500000);
}

/* The first page of each stack can be read. */
TEST_F(pci, hbm_window)
{
	volatile uint8_t *m;
	unsigned int i;

	if (self->revision == 0xff)
		SKIP(return, "size depends on BAR4 at this revision");
	for (i = 0; i < self->chip->stacks; i++) {
		m = map_bar(self->path, 4, self->chip->stride * i, 4096);
		if (!m)
			SKIP(return, "BAR4 cannot be mapped (not root, or claimed)");
		(void)*(volatile uint64_t *)m;
	}
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: MIT
/*
 * drv_every COUNT: every chip of the guest takes a pattern of its own into its HBM;
 * when all have it, every chip gives it back. Prints the chip that does not.
 */
#include "drv.h"

#define BYTES	(64u << 10)
#define MOST	256

struct node {
	int fd;
	uint32_t ctx, sync, bo;
};

static int prepare(struct node *n, unsigned int index)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/dev/accel/accel%u", index);
	n->fd = open(path, O_RDWR | O_CLOEXEC);
	if (n->fd < 0)
		return -errno;
	ret = drv_ctx(n->fd, 0, 0, NULL, 0, &n->ctx);
	if (!ret)
		ret = drmSyncobjCreate(n->fd, 0, &n->sync);
	if (!ret)
		ret = drv_bo(n->fd, BYTES, 0, &n->bo);
	return ret;
}

static int put(struct node *n, unsigned int index, uint8_t *buf)
{
	struct drm_neuron_job job;

	drv_pattern(buf, BYTES, index);
	job = drv_to(n->bo, 0, buf, BYTES);
	return drv_run(n->fd, n->ctx, &job, n->sync);
}

static int get(struct node *n, unsigned int index, uint8_t *buf, uint8_t *want)
{
	struct drm_neuron_job job = drv_from(buf, n->bo, 0, BYTES);
	int ret;

	memset(buf, 0, BYTES);
	ret = drv_run(n->fd, n->ctx, &job, n->sync);
	drv_pattern(want, BYTES, index);
	return ret ? ret : memcmp(buf, want, BYTES) ? -EILSEQ : 0;
}

int main(int argc, char **argv)
{
	static uint8_t buf[BYTES], want[BYTES];
	static struct node nodes[MOST];
	unsigned int count = argc == 2 ? (unsigned int)atoi(argv[1]) : 0, i, failed = 0;
	int ret;

	if (!count || count > MOST) {
		fprintf(stderr, "usage: drv_every COUNT (1 to %d)\n", MOST);
		return 2;
	}
	for (i = 0; i < count; i++) {
		ret = prepare(&nodes[i], i);
		if (!ret)
			ret = put(&nodes[i], i, buf);
		if (ret)
			printf("accel%u: in: %s\n", i, strerror(-ret));
		failed += !!ret;
	}
	for (i = 0; i < count && !failed; i++) {
		ret = get(&nodes[i], i, buf, want);
		if (ret)
			printf("accel%u: back: %s\n", i, strerror(-ret));
		failed += !!ret;
	}
	if (!failed)
		printf("%u chips\n", count);
	return !!failed;
}

// SPDX-License-Identifier: MIT
/*
 * holder FILE: uses the device until it is taken away, and checks what it sees
 * then. Says "ready" in FILE when everything is in use. For lifecycle.sh.
 */
#include "drv.h"

#define FAIL(...) do { fprintf(stderr, __VA_ARGS__); fputc('\n', stderr); return 1; } while (0)

static void say_ready(const char *path)
{
	FILE *f = fopen(path, "w");

	if (f) {
		fputs("ready\n", f);
		fclose(f);
	}
}

/* Starts a program that never ends on core 0; 0 or an error. */
static int start(int fd, uint32_t sync)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL, .handle = sync };
	struct drm_neuron_job job = drv_exec();
	uint32_t vm, ctx, mask = 1;
	struct drv_prog p = {};
	int ret;

	ret = drv_vm(fd, &vm);
	if (!ret)
		ret = drv_ctx(fd, vm, 0, &mask, 0, &ctx);
	if (!ret)
		ret = drv_prog_init(fd, vm, &p);
	if (ret)
		return ret;
	drv_prog_loop(&p);
	drv_syncs(&job, &op, 1);
	return drv_submit(fd, ctx, &job, 1);
}

int main(int argc, char **argv)
{
	struct drm_neuron_query_device q;
	uint32_t bo, sync;
	volatile uint8_t *mem;
	int fd = drv_open(), ret, i, exec;

	if (argc != 2 || fd < 0)
		FAIL("usage: holder FILE, with a device");
	ret = drv_query(fd, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q));
	exec = !ret && q.flags & DRM_NEURON_DEVICE_HAS_EXEC;
	if (ret || drv_bo(fd, HBM_PAGE, 0, &bo) || drmSyncobjCreate(fd, 0, &sync))
		FAIL("set-up: %d", ret);
	mem = drv_map(fd, bo, HBM_PAGE);
	if (mem == MAP_FAILED)
		FAIL("mmap: %d", errno);
	mem[0] = 0x5a;
	if (exec) {
		ret = start(fd, sync);
		if (ret)
			FAIL("program: %d", ret);
	}
	say_ready(argv[1]);
	for (i = 0; i < 200; i++) {
		ret = drv_query(fd, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q));
		if (ret)
			break;
		usleep(50000);
	}
	if (ret != -ENODEV)
		FAIL("an ioctl returned %d instead of -ENODEV", ret);
	for (i = 0; i < 100 && mem[0]; i++)
		usleep(50000);
	if (mem[0] || mem[HBM_PAGE - 1])
		FAIL("the mapping still shows %#x", mem[0]);
	mem[1] = 1;		/* must not kill us */
	munmap((void *)mem, HBM_PAGE);
	close(fd);
	return 0;
}

// SPDX-License-Identifier: MIT
/* The device interface on the kernel driver: chips, memory, contexts, jobs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include "device.h"
#include "device_drm.h"
#include "drm/neuron_accel.h"

#define DRIVER_NAME	"neuron"
#define MAX_CHIPS	144
#define HUGE_SIZE	(2ull << 20)

static const struct {
	const char *name;
	uint16_t device_id;
} archs[] = {
#define NEURON_ARCH(id, name, product, device, nc, cores, stacks, gib, stride, sbuf, bit, lnc, udma, h2t) \
	{ name, device },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

int drm_ioctl(struct dev_drm *d, unsigned long request, void *arg)
{
	return drmIoctl(d->fd, request, arg) ? -errno : 0;
}

static int query(struct dev_drm *d, uint32_t type, void *data, uint32_t size)
{
	struct drm_neuron_dev_query q = {
		.type = type, .size = size, .pointer = (uintptr_t)data,
	};

	return drm_ioctl(d, DRM_IOCTL_NEURON_DEV_QUERY, &q);
}

/* ---- finding chips --------------------------------------------------------------- */

struct node {
	char path[64];
	char bdf[16];
	unsigned int minor;
};

struct nodes {
	struct node node[MAX_CHIPS];
	int count;
};

static bool is_ours(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	drmVersionPtr version;
	bool ours;

	if (fd < 0)
		return false;
	version = drmGetVersion(fd);
	ours = version && !strcmp(version->name, DRIVER_NAME);
	drmFreeVersion(version);
	close(fd);
	return ours;
}

static void add_node(struct nodes *nodes, const char *path, const char *bdf)
{
	struct node *n = &nodes->node[nodes->count];
	const char *number = strstr(path, "/accel/accel");

	if (!number || nodes->count == MAX_CHIPS || strlen(path) >= sizeof(n->path) ||
	    !is_ours(path))
		return;
	strcpy(n->path, path);
	snprintf(n->bdf, sizeof(n->bdf), "%s", bdf);
	n->minor = strtoul(number + strlen("/accel/accel"), NULL, 10);
	nodes->count++;
}

static void scan_udev(struct nodes *nodes)
{
	struct udev *udev = udev_new();
	struct udev_enumerate *e = udev ? udev_enumerate_new(udev) : NULL;
	struct udev_list_entry *entry;

	if (!e || udev_enumerate_add_match_subsystem(e, "accel") < 0 ||
	    udev_enumerate_scan_devices(e) < 0)
		goto out;
	udev_list_entry_foreach(entry, udev_enumerate_get_list_entry(e)) {
		struct udev_device *dev, *pci;

		dev = udev_device_new_from_syspath(udev, udev_list_entry_get_name(entry));
		if (!dev)
			continue;
		pci = udev_device_get_parent_with_subsystem_devtype(dev, "pci", NULL);
		if (udev_device_get_devnode(dev))
			add_node(nodes, udev_device_get_devnode(dev),
				 pci ? udev_device_get_sysname(pci) : "");
		udev_device_unref(dev);
	}
out:
	udev_enumerate_unref(e);
	udev_unref(udev);
}

/* Without sysfs: the nodes themselves. */
static void scan_dev(struct nodes *nodes)
{
	DIR *dir = opendir("/dev/accel");
	struct dirent *entry;
	char path[300];

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "accel", 5))
			continue;
		snprintf(path, sizeof(path), "/dev/accel/%s", entry->d_name);
		add_node(nodes, path, "");
	}
	if (dir)
		closedir(dir);
}

static int by_minor(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return (x->minor > y->minor) - (x->minor < y->minor);
}

static struct nodes *find_nodes(void)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));

	if (!nodes)
		return NULL;
	scan_udev(nodes);
	if (!nodes->count)
		scan_dev(nodes);
	qsort(nodes->node, nodes->count, sizeof(nodes->node[0]), by_minor);
	return nodes;
}

static int drm_count(void)
{
	struct nodes *nodes = find_nodes();
	int count = nodes ? nodes->count : -ENOMEM;

	free(nodes);
	return count;
}

/* ---- opening ------------------------------------------------------------------------ */

static int fill_info(struct dev_drm *d, const struct node *node)
{
	struct drm_neuron_query_device q = { 0 };
	struct dev_info *info = &d->base.info;
	int ret = query(d, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q));

	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		if (archs[i].device_id == q.pci_id)
			snprintf(info->arch, sizeof(info->arch), "%s", archs[i].name);
	if (!info->arch[0] || !q.core_count || q.core_count > NEURON_MAX_CORES ||
	    !q.hbm_stacks || q.hbm_stacks > DRM_MAX_STACKS || q.va_end <= q.va_start)
		return -ENOTSUP;
	snprintf(info->bdf, sizeof(info->bdf), "%s", node->bdf);
	info->nc_version = q.nc_version;
	info->cores = q.core_count;
	info->hbm_stacks = q.hbm_stacks;
	info->hbm_stack_size = q.hbm_size / q.hbm_stacks;
	info->routing_id = q.routing_id;
	info->has_exec = q.flags & DRM_NEURON_DEVICE_HAS_EXEC;
	d->page_size = q.page_size ?: 4096;
	return va_init(&d->va, q.va_start, q.va_end - q.va_start);
}

/* One address space, and a context without cores for copies. */
static int make_objects(struct dev_drm *d)
{
	struct drm_neuron_vm_create vm = { 0 };
	struct drm_neuron_ctx_create ctx = { .priority = DRM_NEURON_PRIORITY_NORMAL };
	int ret = drm_ioctl(d, DRM_IOCTL_NEURON_VM_CREATE, &vm);

	if (ret)
		return ret;
	d->vm_id = vm.id;
	ret = drm_ioctl(d, DRM_IOCTL_NEURON_CTX_CREATE, &ctx);
	if (!ret)
		d->copy_ctx = ctx.id;
	return ret;
}

static int open_node(const struct node *node, struct dev_drm **out)
{
	struct dev_drm *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	d->base.backend = &dev_backend_drm;
	d->fd = open(node->path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0) {
		ret = -errno;
		free(d);
		return ret;
	}
	ret = fill_info(d, node);
	if (!ret) {
		ret = make_objects(d);
		if (ret)
			va_fini(&d->va);
	}
	if (ret) {
		close(d->fd);
		free(d);
		return ret;
	}
	*out = d;
	return 0;
}

static int drm_open(unsigned int index, struct dev **dev)
{
	struct nodes *nodes = find_nodes();
	struct dev_drm *d = NULL;
	int ret;

	if (!nodes)
		return -ENOMEM;
	ret = index < (unsigned int)nodes->count ? open_node(&nodes->node[index], &d) : -ENODEV;
	free(nodes);
	*dev = d ? &d->base : NULL;
	return ret;
}

static void drm_close(struct dev *dev)
{
	struct dev_drm *d = to_drm(dev);

	/* The kernel destroys what the file still owns. */
	close(d->fd);
	va_fini(&d->va);
	free(d);
}

/* ---- memory ---------------------------------------------------------------------------- */

static int bind(struct dev_drm *d, uint32_t flags, uint32_t handle, uint64_t va, uint64_t size)
{
	struct drm_neuron_vm_bind_op op = {
		.flags = flags, .handle = handle, .va = va, .size = size,
	};
	struct drm_neuron_vm_bind arg = {
		.vm_id = d->vm_id, .ops = DRM_NEURON_OBJ_ARRAY(1, &op),
	};

	return drm_ioctl(d, DRM_IOCTL_NEURON_VM_BIND, &arg);
}

/* Address and mapping of a new BO. 2 MiB leaves need 2 MiB alignment. */
static int map_bo(struct dev_drm *d, struct bo_drm *bo)
{
	uint64_t align = bo->base.size >= HUGE_SIZE ? HUGE_SIZE : d->page_size;
	int ret = va_alloc(&d->va, bo->base.size, align, &bo->base.va);

	if (ret)
		return ret;
	ret = bind(d, DRM_NEURON_BIND_MAP, bo->handle, bo->base.va, bo->base.size);
	if (ret)
		va_free(&d->va, bo->base.va, bo->base.size);
	return ret;
}

static int drm_bo_alloc(struct dev *dev, size_t size, enum dev_mem mem,
			uint32_t stack_mask, struct dev_bo **out)
{
	struct dev_drm *d = to_drm(dev);
	struct drm_neuron_bo_create create = {
		.size = size,
		.flags = mem == DEV_MEM_HOST ? DRM_NEURON_BO_HOST : 0,
		.region_mask = mem == DEV_MEM_HOST ? 0 : stack_mask,
	};
	struct bo_drm *bo = calloc(1, sizeof(*bo));
	int ret;

	if (!bo)
		return -ENOMEM;
	ret = drm_ioctl(d, DRM_IOCTL_NEURON_BO_CREATE, &create);
	if (ret)
		goto err_free;
	bo->base.dev = dev;
	bo->base.mem = mem;
	bo->base.size = create.size;
	bo->base.stack = mem == DEV_MEM_HBM && stack_mask ? __builtin_ctz(stack_mask) : 0;
	bo->handle = create.handle;
	ret = map_bo(d, bo);
	if (ret)
		goto err_handle;
	*out = &bo->base;
	return 0;

err_handle:
	drmCloseBufferHandle(d->fd, bo->handle);
err_free:
	free(bo);
	return ret;
}

static void drm_bo_free(struct dev_bo *base)
{
	struct dev_drm *d = to_drm(base->dev);
	struct bo_drm *bo = (struct bo_drm *)base;

	if (base->cpu)
		munmap(base->cpu, base->size);
	/* An address whose mapping could not be removed is not used again. */
	if (!bind(d, DRM_NEURON_BIND_UNMAP, 0, base->va, base->size))
		va_free(&d->va, base->va, base->size);
	drmCloseBufferHandle(d->fd, bo->handle);
	free(bo);
}

static int drm_bo_map(struct dev_bo *base)
{
	struct dev_drm *d = to_drm(base->dev);
	struct drm_neuron_bo_mmap_offset arg = { .handle = ((struct bo_drm *)base)->handle };
	void *cpu, *expected = NULL;
	int ret;

	if (__atomic_load_n(&base->cpu, __ATOMIC_ACQUIRE))
		return 0;
	ret = drm_ioctl(d, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &arg);
	if (ret)
		return ret;
	cpu = mmap(NULL, base->size, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, arg.offset);
	if (cpu == MAP_FAILED)
		return -errno;
	/* Two threads may map at once; the first wins. */
	if (!__atomic_compare_exchange_n(&base->cpu, &expected, cpu, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(cpu, base->size);
	return 0;
}

/* ---- contexts ----------------------------------------------------------------------------- */

static int drm_ctx_create(struct dev *dev, uint32_t core_mask, bool shared, struct dev_ctx **out)
{
	struct dev_drm *d = to_drm(dev);
	struct drm_neuron_ctx_create create = {
		.vm_id = d->vm_id,
		.flags = shared ? DRM_NEURON_CTX_SHARED : 0,
		.core_mask = core_mask,
		.priority = DRM_NEURON_PRIORITY_NORMAL,
	};
	struct dev_ctx *ctx = calloc(1, sizeof(*ctx));
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = drm_ioctl(d, DRM_IOCTL_NEURON_CTX_CREATE, &create);
	if (ret) {
		free(ctx);
		return ret;
	}
	ctx->dev = d;
	ctx->id = create.id;
	*out = ctx;
	return 0;
}

static void drm_ctx_destroy(struct dev_ctx *ctx)
{
	struct drm_neuron_id arg = { .id = ctx->id };

	drm_ioctl(ctx->dev, DRM_IOCTL_NEURON_CTX_DESTROY, &arg);
	free(ctx);
}

static bool drm_ctx_fault(struct dev_ctx *ctx, struct neuron_fault_record *fault)
{
	struct drm_neuron_ctx_state state = { .id = ctx->id };

	_Static_assert(sizeof(*fault) == sizeof(state.fault), "fault record");
	if (drm_ioctl(ctx->dev, DRM_IOCTL_NEURON_CTX_GET_STATE, &state) || !state.faults)
		return false;
	memcpy(fault, state.fault, sizeof(*fault));
	return true;
}

/* ---- counters ------------------------------------------------------------------------------- */

static int drm_mem_used(struct dev *dev, unsigned int stack, uint64_t *used)
{
	struct drm_neuron_query_region region[DRM_MAX_STACKS] = { 0 };
	int ret = query(to_drm(dev), DRM_NEURON_QUERY_REGIONS, region, sizeof(region));

	if (!ret)
		*used = region[stack].used;
	return ret;
}

static int drm_core_stats(struct dev *dev, unsigned int core, struct dev_core_stats *stats)
{
	struct drm_neuron_query_core q[NEURON_MAX_CORES] = { 0 };
	int ret;

	if (core >= dev->info.cores)
		return -EINVAL;
	ret = query(to_drm(dev), DRM_NEURON_QUERY_CORES, q, sizeof(q));
	if (ret)
		return ret;
	*stats = (struct dev_core_stats){
		.wall_busy_ns = q[core].wall_busy_ns,
		.modelled_ns = q[core].modelled_ns,
		.jobs = q[core].jobs,
		.insns = q[core].insns,
		.faults = q[core].faults,
		.pe_macs = q[core].pe_macs,
		.dma_bytes = q[core].dma_bytes,
	};
	_Static_assert(sizeof(stats->engine_ns) == sizeof(q[0].engine_ns), "engines");
	memcpy(stats->engine_ns, q[core].engine_ns, sizeof(stats->engine_ns));
	return 0;
}

const struct dev_backend dev_backend_drm = {
	.name = "drm",
	.count = drm_count,
	.open = drm_open,
	.close = drm_close,
	.bo_alloc = drm_bo_alloc,
	.bo_free = drm_bo_free,
	.bo_map = drm_bo_map,
	.copy = drm_copy,
	.fill = drm_fill,
	.timeline_create = drm_timeline_create,
	.timeline_destroy = drm_timeline_destroy,
	.wait = drm_wait,
	.ctx_create = drm_ctx_create,
	.ctx_destroy = drm_ctx_destroy,
	.ctx_fault = drm_ctx_fault,
	.exec = drm_exec,
	.mem_used = drm_mem_used,
	.core_stats = drm_core_stats,
};

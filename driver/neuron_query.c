// SPDX-License-Identifier: GPL-2.0
/*
 * DEV_QUERY and fdinfo.
 */
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_gem.h"

static int neuron_query_out(struct drm_neuron_dev_query *args, const void *src, size_t size)
{
	u32 usize = args->size;

	args->size = size;
	if (!args->pointer)
		return 0;
	if (copy_to_user(u64_to_user_ptr(args->pointer), src, min_t(size_t, usize, size)))
		return -EFAULT;
	return 0;
}

static int neuron_query_device(struct neuron_device *ndev, struct drm_neuron_dev_query *args)
{
	struct drm_neuron_query_device q = {
		.pci_id = ndev->arch->device_id,
		.pci_revision = ndev->pdev->revision,
		.nc_version = ndev->arch->nc_version,
		.core_count = ndev->arch->cores,
		.routing_id = ndev->routing_id,
		.hbm_stacks = ndev->arch->stacks,
		.flags = (ndev->exec ? DRM_NEURON_DEVICE_HAS_EXEC : 0) |
			 (ndev->vectors ? DRM_NEURON_DEVICE_HAS_IRQ : 0),
		.fw_api_version = ndev->fw_api,
		.serial = ndev->serial,
		.va_start = NEURON_VA_START,
		.va_end = NEURON_VA_END,
		.page_size = PAGE_SIZE,
		.sbuf_bytes = ndev->sbuf_bytes,
		.psum_bytes = ndev->psum_bytes,
		.exec_version = ndev->exec_version,
	};
	u64 used;

	neuron_hbm_usage(ndev, &q.hbm_size, &used);
	return neuron_query_out(args, &q, sizeof(q));
}

static void neuron_query_core(struct neuron_device *ndev, unsigned int c,
			      struct drm_neuron_query_core *q)
{
	u32 base = NEURON_EXEC_CORE(c);
	unsigned int e;

	BUILD_BUG_ON(DRM_NEURON_ENGINES != NEURON_ENGINE_COUNT);
	q->core = c;
	mutex_lock(&ndev->ctx_lock);
	if (ndev->claimed & BIT(c))
		q->flags = DRM_NEURON_CORE_CLAIMED;
	q->contexts = ndev->sharers[c] + !!(ndev->claimed & BIT(c));
	mutex_unlock(&ndev->ctx_lock);
	q->wall_busy_ns = neuron_exec_counter(ndev, base + NEURON_CORE_WALL_BUSY_NS);
	q->modelled_ns = neuron_exec_counter(ndev, base + NEURON_CORE_MODELLED_NS);
	q->jobs = neuron_exec_counter(ndev, base + NEURON_CORE_JOBS);
	q->insns = neuron_exec_counter(ndev, base + NEURON_CORE_INSNS);
	q->faults = neuron_exec_counter(ndev, base + NEURON_CORE_FAULTS);
	q->pe_macs = neuron_exec_counter(ndev, base + NEURON_CORE_PE_MACS);
	q->dma_bytes = neuron_exec_counter(ndev, base + NEURON_CORE_DMA_BYTES);
	for (e = 0; e < DRM_NEURON_ENGINES; e++)
		q->engine_ns[e] = neuron_exec_counter(ndev, base + NEURON_CORE_ENGINE_NS(e));
}

static int neuron_query_cores(struct neuron_device *ndev, struct drm_neuron_dev_query *args)
{
	struct drm_neuron_query_core *q;
	unsigned int c, n = ndev->arch->cores;
	int ret;

	q = kcalloc(n, sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	for (c = 0; c < n && args->pointer; c++)
		neuron_query_core(ndev, c, &q[c]);
	ret = neuron_query_out(args, q, n * sizeof(*q));
	kfree(q);
	return ret;
}

static int neuron_query_regions(struct neuron_device *ndev, struct drm_neuron_dev_query *args)
{
	struct drm_neuron_query_region q[NEURON_MAX_STACKS] = {};
	unsigned int i;

	mutex_lock(&ndev->hbm_lock);
	for (i = 0; i < ndev->arch->stacks; i++) {
		q[i].id = i;
		q[i].size = ndev->hbm[i].size;
		q[i].cpu_visible_size = ndev->hbm[i].size;
		q[i].used = ndev->hbm[i].used;
	}
	mutex_unlock(&ndev->hbm_lock);
	return neuron_query_out(args, q, ndev->arch->stacks * sizeof(q[0]));
}

static int neuron_query_timestamp(struct neuron_device *ndev, struct drm_neuron_dev_query *args)
{
	struct drm_neuron_query_timestamp q = {
		.device_ns = neuron_exec_counter(ndev, NEURON_EXEC_CLOCK),
		.cpu_ns = ktime_get_ns(),
	};

	return neuron_query_out(args, &q, sizeof(q));
}

static int neuron_query_limits(struct neuron_device *ndev, struct drm_neuron_dev_query *args)
{
	struct drm_neuron_query_limits q = {
		.jobs_per_submit = NEURON_MAX_JOBS,
		.syncs_per_job = NEURON_MAX_SYNCS,
		.bind_ops = NEURON_MAX_BINDS,
		.queue_depth = NEURON_QUEUE_DEPTH,
		.args_per_job = NEURON_MAX_ARGS,
		.contexts = ndev->slots_count,
	};

	return neuron_query_out(args, &q, sizeof(q));
}

int neuron_ioctl_dev_query(struct drm_device *dev, void *data, struct drm_file *file)
{
	static int (*const query[])(struct neuron_device *, struct drm_neuron_dev_query *) = {
		[DRM_NEURON_QUERY_DEVICE] = neuron_query_device,
		[DRM_NEURON_QUERY_CORES] = neuron_query_cores,
		[DRM_NEURON_QUERY_REGIONS] = neuron_query_regions,
		[DRM_NEURON_QUERY_TIMESTAMP] = neuron_query_timestamp,
		[DRM_NEURON_QUERY_LIMITS] = neuron_query_limits,
	};
	struct drm_neuron_dev_query *args = data;
	int ret, idx;

	if (args->type >= ARRAY_SIZE(query))
		return -EINVAL;
	if (!drm_dev_enter(dev, &idx))
		return -ENODEV;
	ret = query[array_index_nospec(args->type, ARRAY_SIZE(query))](to_neuron(dev), args);
	drm_dev_exit(idx);
	return ret;
}

/* Documentation/driver.rst lists the keys. */
void neuron_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct neuron_file *nf = file->driver_priv;
	u64 hbm = 0, host = 0, host_resident = 0;
	struct drm_gem_object *obj;
	unsigned int c;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		struct neuron_bo *bo = to_neuron_bo(obj);

		if (!neuron_bo_is_host(bo)) {
			hbm += obj->size;
			continue;
		}
		host += obj->size;
		if (bo->shmem.pages)
			host_resident += obj->size;
	}
	spin_unlock(&file->table_lock);
	drm_printf(p, "drm-total-hbm:\t%llu KiB\n", hbm >> 10);
	drm_printf(p, "drm-resident-hbm:\t%llu KiB\n", hbm >> 10);
	drm_printf(p, "drm-total-host:\t%llu KiB\n", host >> 10);
	drm_printf(p, "drm-resident-host:\t%llu KiB\n", host_resident >> 10);
	for (c = 0; c < nf->ndev->arch->cores; c++)
		drm_printf(p, "drm-engine-nc%u:\t%llu ns\n", c,
			   (u64)atomic64_read(&nf->core_ns[c]));
	drm_printf(p, "neuron-cores:\t%#x\n", neuron_ctx_file_cores(nf));
}

// SPDX-License-Identifier: GPL-2.0
/*
 * AWS Trainium and Inferentia2 accelerators: PCI driver and DRM device.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>

#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_gem.h"
#include "neuron_vm.h"

unsigned int neuron_timeout_ms = 10000;
module_param_named(timeout_ms, neuron_timeout_ms, uint, 0444);
MODULE_PARM_DESC(timeout_ms, "milliseconds after which a job that makes no progress is ended");

bool neuron_force_polling;
module_param_named(force_polling, neuron_force_polling, bool, 0444);
MODULE_PARM_DESC(force_polling, "do not use interrupts");

static const struct drm_ioctl_desc neuron_ioctls[] = {
#define NEURON_IOCTL(id, fn) DRM_IOCTL_DEF_DRV(NEURON_##id, neuron_ioctl_##fn, 0)
	NEURON_IOCTL(DEV_QUERY, dev_query),
	NEURON_IOCTL(BO_CREATE, bo_create),
	NEURON_IOCTL(BO_MMAP_OFFSET, bo_mmap_offset),
	NEURON_IOCTL(BO_INFO, bo_info),
	NEURON_IOCTL(BO_WAIT, bo_wait),
	NEURON_IOCTL(VM_CREATE, vm_create),
	NEURON_IOCTL(VM_DESTROY, vm_destroy),
	NEURON_IOCTL(VM_BIND, vm_bind),
	NEURON_IOCTL(CTX_CREATE, ctx_create),
	NEURON_IOCTL(CTX_DESTROY, ctx_destroy),
	NEURON_IOCTL(CTX_GET_STATE, ctx_get_state),
	NEURON_IOCTL(SUBMIT, submit),
};

static void neuron_file_release(struct kref *ref)
{
	struct neuron_file *nf = container_of(ref, struct neuron_file, ref);

	xa_destroy(&nf->vms);
	xa_destroy(&nf->ctxs);
	kfree(nf);
}

struct neuron_file *neuron_file_get(struct neuron_file *nf)
{
	kref_get(&nf->ref);
	return nf;
}

void neuron_file_put(struct neuron_file *nf)
{
	kref_put(&nf->ref, neuron_file_release);
}

static int neuron_open(struct drm_device *dev, struct drm_file *file)
{
	struct neuron_file *nf = kzalloc(sizeof(*nf), GFP_KERNEL_ACCOUNT);

	if (!nf)
		return -ENOMEM;
	kref_init(&nf->ref);
	nf->ndev = to_neuron(dev);
	/* Ids begin at 1: 0 says that there is none. */
	xa_init_flags(&nf->vms, XA_FLAGS_ALLOC1);
	xa_init_flags(&nf->ctxs, XA_FLAGS_ALLOC1);
	file->driver_priv = nf;
	return 0;
}

static void neuron_postclose(struct drm_device *dev, struct drm_file *file)
{
	struct neuron_file *nf = file->driver_priv;
	struct neuron_vm *vm;
	unsigned long id;

	neuron_ctx_stop_file(nf);
	xa_for_each(&nf->vms, id, vm) {
		xa_erase(&nf->vms, id);
		neuron_vm_put(vm);
	}
	neuron_file_put(nf);
	/* Who closed the file can rely on it that nothing of it holds the device. */
	neuron_ctx_flush();
}

static const struct file_operations neuron_fops = {
	.owner = THIS_MODULE,
	DRM_ACCEL_FOPS,
	.show_fdinfo = drm_show_fdinfo,
};

#ifdef HAVE_DRIVER_GEM_GPUVA
#define NEURON_GPUVA	DRIVER_GEM_GPUVA
#else
#define NEURON_GPUVA	0
#endif

static const struct drm_driver neuron_driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | NEURON_GPUVA | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = neuron_open,
	.postclose = neuron_postclose,
	.gem_create_object = neuron_gem_create_object,
	.ioctls = neuron_ioctls,
	.num_ioctls = ARRAY_SIZE(neuron_ioctls),
	.fops = &neuron_fops,
	.show_fdinfo = neuron_show_fdinfo,
	.name = "neuron",
	.desc = "AWS Trainium and Inferentia2",
#ifdef HAVE_DRM_DRIVER_DATE
	.date = "20261130",
#endif
	.major = 1,
	.minor = 0,
};

/* The last user is gone, possibly long after remove. */
static void neuron_device_release(struct drm_device *dev, void *data)
{
	struct neuron_device *ndev = to_neuron(dev);

	neuron_slots_release(ndev);
	neuron_udma_release(ndev);
	if (ndev->submit_wq)
		destroy_workqueue(ndev->submit_wq);
	if (ndev->reset_wq)
		destroy_workqueue(ndev->reset_wq);
	neuron_hbm_fini(ndev);
	if (ndev->dummy)
		__free_page(ndev->dummy);
	mutex_destroy(&ndev->hbm_lock);
	mutex_destroy(&ndev->ctx_lock);
	mutex_destroy(&ndev->vm_lock);
}

static int neuron_device_init(struct neuron_device *ndev)
{
	int ret;

	mutex_init(&ndev->hbm_lock);
	mutex_init(&ndev->ctx_lock);
	mutex_init(&ndev->vm_lock);
	INIT_LIST_HEAD(&ndev->ctxs);
	INIT_LIST_HEAD(&ndev->vms);
	ret = drmm_add_action_or_reset(&ndev->drm, neuron_device_release, NULL);
	if (ret)
		return ret;
	ndev->dummy = alloc_page(GFP_KERNEL | __GFP_ZERO);
	/* Completions are waited for: what feeds the hardware goes first. */
	ndev->submit_wq = alloc_workqueue("neuron-submit", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	ndev->reset_wq = alloc_ordered_workqueue("neuron-reset", WQ_MEM_RECLAIM);
	return ndev->dummy && ndev->submit_wq && ndev->reset_wq ? 0 : -ENOMEM;
}

static int neuron_enable(struct neuron_device *ndev)
{
	struct pci_dev *pdev = ndev->pdev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(ndev->arch->host_bit));
	if (ret)
		return ret;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	ret = neuron_hw_map(ndev);
	if (ret)
		return ret;
	ret = neuron_hw_start(ndev);
	if (ret)
		return ret;
	/* Only now: nothing that ran before the reset can write to memory. */
	pci_set_master(pdev);
	return 0;
}

static void neuron_quiesce(struct neuron_device *ndev)
{
	neuron_ctx_stop_all(ndev);
	if (ndev->kctx)
		neuron_ctx_put(ndev->kctx);
	neuron_vm_kill_all(ndev);
	neuron_udma_stop(ndev);
	neuron_irq_fini(ndev);
	pci_clear_master(ndev->pdev);
	/* Whoever binds the device next gets the same minor, if it is free. */
	neuron_ctx_flush();
}

static int neuron_start(struct neuron_device *ndev)
{
	struct neuron_ctx *kctx;
	int ret;

	neuron_irq_init(ndev);
	ret = neuron_hbm_init(ndev);
	if (!ret)
		ret = neuron_udma_init(ndev);
	if (!ret && neuron_has_exec(ndev))
		ret = neuron_slots_init(ndev);
	if (ret)
		return ret;
	kctx = neuron_ctx_create_kernel(ndev);
	if (IS_ERR(kctx))
		return PTR_ERR(kctx);
	ndev->kctx = kctx;
	return drm_dev_register(&ndev->drm, 0);
}

static int neuron_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	const struct neuron_arch *arch = neuron_hw_arch(pdev->device);
	struct neuron_device *ndev;
	int ret;

	if (!arch)
		return -ENODEV;
	ndev = devm_drm_dev_alloc(&pdev->dev, &neuron_driver, struct neuron_device, drm);
	if (IS_ERR(ndev))
		return PTR_ERR(ndev);
	ndev->pdev = pdev;
	ndev->arch = arch;
	pci_set_drvdata(pdev, &ndev->drm);
	ret = neuron_device_init(ndev);
	if (!ret)
		ret = neuron_enable(ndev);
	if (ret)
		return ret;
	ret = neuron_start(ndev);
	if (ret) {
		neuron_quiesce(ndev);
		return ret;
	}
	drm_info(&ndev->drm, "%s, %u cores, serial %016llx, routing id %u, %s\n", arch->name,
		 arch->cores, ndev->serial, ndev->routing_id,
		 ndev->vectors ? "interrupts" : "polling");
	return 0;
}

static void neuron_remove(struct pci_dev *pdev)
{
	struct drm_device *dev = pci_get_drvdata(pdev);

	drm_dev_unplug(dev);
	neuron_quiesce(to_neuron(dev));
}

/* Stop what writes to memory before the next kernel owns it. */
static void neuron_shutdown(struct pci_dev *pdev)
{
	neuron_remove(pdev);
}

static const struct pci_device_id neuron_ids[] = {
#define NEURON_ARCH(id, text, product, devid, nc, cores, stacks, gib, stride, sbuf, bit, lnc,	\
		    engines, h2t)								\
	{ PCI_DEVICE(NEURON_PCI_VENDOR_ID, devid) },
#include <neuron/arch.def>
#undef NEURON_ARCH
	{}
};
MODULE_DEVICE_TABLE(pci, neuron_ids);

static struct pci_driver neuron_pci_driver = {
	.name = "neuron",
	.id_table = neuron_ids,
	.probe = neuron_probe,
	.remove = neuron_remove,
	.shutdown = neuron_shutdown,
	.dev_groups = neuron_dev_groups,
};

static int __init neuron_init(void)
{
	int ret = neuron_ctx_module_init();

	if (ret)
		return ret;
	ret = pci_register_driver(&neuron_pci_driver);
	if (ret)
		neuron_ctx_module_exit();
	return ret;
}

static void __exit neuron_exit(void)
{
	pci_unregister_driver(&neuron_pci_driver);
	neuron_ctx_module_exit();
	/* Fences and contexts are freed by RCU. */
	rcu_barrier();
}

module_init(neuron_init);
module_exit(neuron_exit);

MODULE_DESCRIPTION("DRM accel driver for AWS Trainium and Inferentia2");
MODULE_AUTHOR("The neuron-accel authors");
MODULE_LICENSE("GPL");

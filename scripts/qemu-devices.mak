# SPDX-License-Identifier: MIT
# The only devices of our QEMU: what a guest needs to boot, to talk to us and
# to hold an accelerator.
CONFIG_PCI_DEVICES=n
CONFIG_Q35=y
CONFIG_EDU=y
CONFIG_NVME_PCI=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_SERIAL=y
CONFIG_VIRTIO_9P=y
CONFIG_SERIAL_ISA=y
CONFIG_PCIE_PORT=y
CONFIG_VTD=y
CONFIG_NEURON=y

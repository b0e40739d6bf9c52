// SPDX-License-Identifier: Apache-2.0
/*
 * What a person looks at by hand before RDMA is to work on a host, beyond the observed document:
 * kernel, modules, PCI Express links, congestion control, GPUs, limits of programs, files. For
 * `orbweaver doctor --local`; slow enough for the agent to ask seldom.
 */
#pragma once

#include "nodeagent/host/host.h"

/*
 * Facts about the host and the network functions of an observed document. What cannot be read is
 * absent. Returns new:
 *
 *	{ "kernel": release, "cmdline": text,
 *	  "modules": { NAME: bool },	those that RDMA in pods needs, and what GPUs need
 *	  "versions": { NAME: text },	of modules that say one: an OFED driver, NVIDIA's
 *	  "nvidia": text,		first line of /proc/driver/nvidia/version
 *	  "functions": { PCI ADDRESS: { "speed", "speedMax": "16.0 GT/s PCIe", "width", "widthMax",
 *		"numaNode", "ecn": { "np", "rp": a digit per priority },
 *		"path": as pci_bridges(), "iommu": type of its group: "DMA-FQ", "identity",
 *		"config": { "maxPayload", "maxPayloadOfPath", "maxReadRequest": bytes, "ats",
 *			"lacksVfBars": as pci.h },
 *		"interrupts": { "all", "far": handled by CPUs of other NUMA nodes },
 *		"master": { "name", "mtu" }: what its interface is a port of } },
 *	  "trafficClass": { RDMA DEVICE: text },
 *	  "gpus": [ { "pciAddress", "vendor", "numaNode", "path", "config" } ],
 *	  "redirects": [ BRIDGE ],	above functions and GPUs, whose ACS redirects
 *	  "memlock": [ { "program", "bytes": -1 without limit } ],
 *	  "irqbalance": true where it runs, "governors": { NAME: processors },
 *	  "idle": { "name", "us" }:	the enabled C-state that takes longest to leave
 *	  "hugePages": of all sizes,
 *	  "kubeletSocket": bool, "cniConf": [ file ], "cniBinaries": [ file ] }
 */
json_t *host_inspect(struct host *host, const json_t *observed);

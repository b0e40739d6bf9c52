// SPDX-License-Identifier: Apache-2.0
/* What sysfs says about PCI functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/pci_address.h"
#include "nodeagent/host/sysfs.h"

/* "sys/bus/pci/devices/<address>[/<name>]", for the functions of sysfs.h. */
struct pci_path {
	char text[160];
};
struct pci_path pci_path(const char *address, const char *name);

/* Is there such a function? Is it a VF? */
bool pci_exists(const struct host *host, const char *address);
bool pci_is_vf(const struct host *host, const char *address);
/* Base class 02, network: Ethernet, InfiniBand, others. */
bool pci_is_network(const struct host *host, const char *address);
/* Does it have the SR-IOV capability (sriov_totalvfs)? */
bool pci_has_sriov(const struct host *host, const char *address);

/*
 * The bridges above a function, from its host bridge down, joined by slashes: of
 * /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0 "pci0000:15/0000:15:01.0". What the host bridge
 * is below does not count. New; NULL: its folder does not show it, or more than a NodeState takes.
 */
enum { PCI_BRIDGES_MAX = 512 };
char *pci_bridges(const struct host *host, const char *address);

/* Name of the bound driver; false when none is. */
bool pci_driver(const struct host *host, const char *address, struct sysfs_text *ret);
/* PCI address of a VF's PF; false when it is not a VF. */
bool pci_physfn(const struct host *host, const char *vf, struct sysfs_text *ret);
/* PCI address of VF `number` of a PF, by its virtfn link. */
bool pci_virtfn(const struct host *host, const char *pf, int number, struct sysfs_text *ret);
/* Number of a VF on its PF; -1 when no virtfn link leads to it. */
int pci_vf_number(const struct host *host, const char *vf);
/*
 * How many virtfn links there are, numbered without gap from 0. Not sriov_numvfs: reading that
 * waits for a process that writes it (drivers/pci/iov.c, sriov_numvfs_store()).
 */
int pci_count_vfs(const struct host *host, const char *pf);

/*
 * Names of network interfaces of a function that we can see, sorted; an array of strings. NULL when
 * there is no net/ folder. virtio has its folder one level down.
 */
json_t *pci_netdevs(const struct host *host, const char *address);
/*
 * The one that stands for the function: the uplink in switchdev mode
 * (Documentation/networking/representors.rst), else the first.
 */
bool pci_netdev(const struct host *host, const char *address, struct sysfs_text *ret);
/* Does this interface stand for a VF or a subfunction, in the switch of its PF? */
bool pci_is_representor(const struct host *host, const char *name);

/*
 * Is the network or RDMA device of a function in another network namespace? Its driver is bound,
 * but the folder is empty (docs/host.md). `driver` is the bound one or NULL.
 */
bool pci_is_away(const struct host *host, const char *address, const char *driver);

/*
 * The sum in "aer_dev_fatal" and files like it, "… \nTOTAL_ERR_FATAL 3\n"
 * (Documentation/ABI/testing/sysfs-bus-pci-devices-aer).
 */
bool pci_errors(const struct host *host, const char *address, const char *file, int64_t *ret);

/*
 * What the configuration space of a PCI Express function says about its speed: PCI Express Base
 * Specification, chapter 7; include/uapi/linux/pci_regs.h.
 */
struct pci_config {
	/* Bytes; 0: not known. */
	int max_payload, max_payload_supported, max_read_request;
	/* Device Control, and where it is; 0: not a PCI Express function. */
	uint16_t control;
	size_t control_at;
	bool redirects;     /* ACS sends requests or completions of peers to the root complex */
	bool has_ats;       /* address translation services are on */
	bool lacks_vf_bars; /* the first BAR of VFs is there, and has no address */
};

/* False: it cannot be read; without root the kernel shows 64 bytes, of which nothing is known. */
bool pci_config_read(const struct host *host, const char *address, struct pci_config *ret);
/*
 * Set those bits of Device Control, of `config` as it was read. Errors as of the host's door
 * write_at; EPERM: the kernel is locked down (kernel_lockdown(7)).
 */
int pci_config_control(struct host *host, const char *address, const struct pci_config *config,
		       uint16_t mask, uint16_t value, struct err *err);
/* Of any bytes. */
void pci_config_decode(const void *bytes, size_t len, struct pci_config *ret);

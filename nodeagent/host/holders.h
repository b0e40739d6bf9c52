// SPDX-License-Identifier: Apache-2.0
/*
 * Who holds a VF, as far as the host shows: network namespaces that have it, processes that have
 * its device files open, CNI plugins that have noted it (docs/host.md).
 */
#pragma once

#include <stdbool.h>

#include "nodeagent/host/sysfs.h"

/*
 * { PCI address: "/run/netns/cni-…" or "sleep (pid 42)" } of all functions whose network interface
 * is in a namespace other than ours. Namespaces are found by their mounts and by processes. New.
 * NULL with err ERR_HOST "HostUnreadable" when one of them could not be looked at: no descriptors,
 * no rights, more than 4096, a list that changes all the time. *ret_uppers, new: { "12":
 * "macvlan net1 in /run/netns/cni-…" } of interfaces of ours, by index, on which one of another
 * namespace lies (macvlan, ipvlan, VLAN); one is named. Ends of pairs (veth) do not count.
 */
json_t *holders_namespaces(const struct host *host, json_t **ret_uppers, struct err *err);

/*
 * { "/dev/vfio/12": "qemu-system-x86 (pid 42)", "/dev/infiniband/uverbs0": … } of open files. New;
 * NULL with err ERR_HOST "HostUnreadable" when those of a process could not be looked at.
 */
json_t *holders_files(const struct host *host, struct err *err);

/*
 * Has one of our CNI plugins this VF for a sandbox of this boot (/var/lib/orbweaver/cni/devices)?
 * *ret says which. Or has sriov-cni noted it as allocated (one file per VF in
 * /var/lib/cni/sriov/pci, with the path of the pod's network namespace; sriov-cni,
 * pkg/utils/pci_allocator.go)? *ret is that path. A note counts unless it is certain that its
 * namespace is gone: one that cannot be read, or whose path cannot be followed, counts.
 */
bool holders_claim(const struct host *host, const char *vf, struct sysfs_text *ret);

/*
 * Devices that are prepared for ResourceClaims, { PCI address: "ns/pod/claim" }, new. NULL with err
 * ERR_HOST "HostUnreadable": the file cannot be read, or is damaged.
 */
json_t *holders_claims(const struct host *host, struct err *err);
/*
 * Is it prepared for a ResourceClaim, as kubeletd has written down before it said so
 * (nodeagent/model/dra_state.h)? ret: whose, "ns/pod/claim"; why it is unknown, which is true,
 * too.
 */
bool holders_prepared(const struct host *host, const char *vf, struct sysfs_text *ret);

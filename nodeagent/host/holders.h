/*
 * Who holds a VF, as far as the host can tell: network namespaces that have it, processes that have its device files open,
 * CNI plugins that have noted it (node-kernel 1.8).
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_HOLDERS_H
#define ORBWEAVER_NODEAGENT_HOST_HOLDERS_H

#include <stdbool.h>

#include "nodeagent/host/sysfs.h"

/*
 * { PCI address: "/run/netns/cni-…" or "sleep (pid 42)" } of all functions whose network interface is in a namespace
 * other than ours. Namespaces are found by their mounts and by processes. New. What cannot be entered is passed over.
 * *ret_uppers, new: { "12": "macvlan net1 in /run/netns/cni-…" } of interfaces of ours, by index, on which one of another
 * namespace lies (macvlan, ipvlan, VLAN); one is named. Also the ends of veth pairs.
 */
json_t *holders_namespaces(const struct host *host, json_t **ret_uppers);

/* { "/dev/vfio/12": "qemu-system-x86 (pid 42)", "/dev/infiniband/uverbs0": … } of open files. New. */
json_t *holders_files(const struct host *host);

/*
 * Has sriov-cni noted this VF as given away, to a network namespace that is still there (node-kernel 7.3)? Its path.
 * Notes about namespaces that are gone are leftovers.
 */
bool holders_claim(const struct host *host, const char *vf, struct sysfs_text *ret);

#endif

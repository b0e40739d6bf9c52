// SPDX-License-Identifier: Apache-2.0
/*
 * Evidence of use: would a pod, a process or the node notice when a step changes this device? The
 * one authority, asked right before each write. What cannot be known counts as use.
 *
 * It puts together what the kubelet gave to pods (host_set_held, host_set_given), what CNI plugins
 * attached, what is prepared for claims, and what the host shows: network namespaces, interfaces
 * that lie on the device, open verbs and VFIO files. It looks at the device, not at the node: a
 * node with a million open files answers as fast as an empty one. Only a device of which the kernel
 * does not say whether it is open costs a walk over all open files.
 */
#pragma once

#include "nodeagent/host/host.h"
#include "nodeagent/host/sysfs.h"

/*
 * What was read for one question, or for one observed document. A part is read when it is needed
 * first.
 */
struct evidence;
struct evidence *evidence_new(struct host *host);
void evidence_free(struct evidence *evidence);
OWN_DEFINE(struct evidence, evidence_free)
#define auto_evidence auto_call(evidence_free_p)

/*
 * Who has the RDMA device of this function open; who has the function of a userspace driver open?
 * For people, new; NULL: it is not in use.
 */
char *evidence_verbs_user(struct evidence *evidence, const char *address);
char *evidence_vfio_user(struct evidence *evidence, const char *address, const char *driver);

/*
 * Which interface of a pod lies on our interface with this number and name (macvlan, ipvlan, VLAN),
 * for people, new; NULL: none does. evidence_is_unknown() when that cannot be seen.
 */
char *evidence_pod_user(struct evidence *evidence, int index, const char *name);

/*
 * How the node itself uses this function, for people, new; NULL: it does not. By an address that is
 * valid beyond its link, by routes, by an XDP program (AF_XDP sockets have one), by a bridge or
 * bond that it is a port of, by another interface upon it, or as a vDPA device that vhost_vdpa or
 * virtio_vdpa has. The kernel's own users of RDMA are evidence_verbs_user()'s (NVMe-oF, NFS,
 * Lustre, …).
 */
char *evidence_node_user(struct evidence *evidence, const char *address);
/* Whether the last of these three answers means that the use cannot be seen; its text says why. */
bool evidence_is_unknown(const struct evidence *evidence);
/* The driver of the vDPA device that this function is; false: it is none, or has none. */
bool evidence_vdpa_driver(struct host *host, const char *address, struct sysfs_text *ret);

/*
 * Is this VF free, are all VFs of this PF? 0, or -1 with err ERR_HOST "VfInUse", who has it and
 * what to do. The glance leaves out what costs more than a few files: processes and other
 * namespaces. Of a PF's VFs their representors are part: "PfInUse" when one of them is a port of a
 * bridge, or has an address.
 */
int evidence_glance_vf(struct host *host, const char *vf, struct err *err);
/*
 * The rest of it, for what a PF gives to a VF: without driver it is not used on the host. What was
 * read for one VF serves for the others.
 */
int evidence_check_bound_vf(struct evidence *evidence, const char *vf, struct err *err);
/*
 * Without the kubelet's word: for steps that take nothing away. A VF without driver has no
 * interface, no RDMA device and no VFIO file, so the glance does not ask for it either: after a
 * boot the kubelet names the pods that had the VFs, and these wait for the drivers.
 */
int evidence_check_attached(struct host *host, const char *vf, struct err *err);
int evidence_check_vf(struct host *host, const char *vf, struct err *err);
int evidence_check_vfs(struct host *host, const char *pf, struct err *err);

/*
 * May interfaces and RDMA device of the PF itself go away for a moment, or lose a part of their
 * MTU? -1 with err ERR_HOST "PfInUse": it is in another network namespace, a process or the kernel
 * uses its RDMA device, an interface of it is part of another one (bond, bridge), others lie on it
 * (VLAN, macvlan of a pod), the node itself uses it (evidence_node_user), it has subfunctions, or a
 * process has a file of it open (subnet manager, clock, VFIO).
 */
int evidence_check_pf(struct host *host, const char *pf, struct err *err);

/*
 * May VFs of the PF come and go? -1 with err ERR_HOST "PfInUse" when the PF is a port of a bond or
 * a team and a process has an RDMA device of one of its ports open. Ports of one mlx5 card there
 * share one RDMA device; it is removed and recreated when a port gets its first VF in legacy mode
 * (mlx5_lag_check_prereq(), drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c).
 */
int evidence_check_lag(struct host *host, const char *pf, struct err *err);

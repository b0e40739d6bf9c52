// SPDX-License-Identifier: Apache-2.0
/* The observed document (docs/node-agent.md) as its readers need it. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * The list "interfaces" as it goes into NodeState.status.interfaces, with those that are "missing"
 * for a moment (history.h): the same without what only the agent needs ("host" members, and
 * "settingsUnsupported"). Returns new; NULL when there is no such list.
 */
json_t *observed_status_interfaces(const json_t *observed);

/* "ns/pod" of what may be "ns/pod/container", new. */
json_t *observed_pod_of(const char *holder);

/*
 * Of devices in the hands of pods, {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, those
 * that are PCI functions, and the pods that have them: {"0000:3b:00.2": "ns/pod"}. New.
 */
json_t *observed_functions(const json_t *allocated);

/*
 * A driver that hands a function to a process (Documentation/ABI/testing/sysfs-bus-pci,
 * driver_override): those of VFIO, which vendors have their own of and all have it in their name
 * (drivers/vfio/pci: mlx5_vfio_pci, pds-vfio-pci, …), and of UIO. NULL: no.
 */
bool observed_is_userspace_driver(const char *driver);

/*
 * A driver that sets its PF up anew when VFs come or go, so that the link drops
 * (igb_enable_sriov(), drivers/net/ethernet/intel/igb/igb_main.c; ixgbe_sriov_reinit(),
 * drivers/net/ethernet/intel/ixgbe/ixgbe_sriov.c). NULL: no.
 */
bool observed_vfs_drop_link(const char *driver);

/*
 * Whether VFs of such a PF get RDMA devices from the kernel's own drivers: irdma takes PFs of ice
 * and i40e, and iavf has nothing for it (drivers/infiniband/hw/irdma/main.c).
 */
bool observed_vfs_get_rdma(const char *driver);

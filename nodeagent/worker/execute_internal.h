// SPDX-License-Identifier: Apache-2.0
/* What the executing functions share. For the execute*.c files only. */
#pragma once

#include <errno.h>

#include "lib/json/json.h"
#include "nodeagent/host/evidence.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/model/step.h"
#include "nodeagent/model/text.h"
#include "nodeagent/worker/execute.h"

/*
 * A checked step on its way. Functions set `changed` when they did something, and put "was" and
 * "now".
 */
struct run {
	struct host *host;
	const json_t *step;
	json_t *result;
	bool changed;
};

/* ---- execute_tools.c ------------------------------------------------------------------------- */

/* A field that step_check has seen. */
const char *run_str(const struct run *run, const char *name);
int run_int(const struct run *run, const char *name);

/*
 * Is the function in that field what it should be? ERR_HOST "DeviceGone", ERR_BUG "NotAPf",
 * "NotAVf".
 */
int run_pf(const struct run *run, const char *name, const char **ret, struct err *err);
int run_vf(const struct run *run, const char **ret, struct err *err);

/* The step is to be done though the node needs the NIC, and host_allow_primary_nic() was called. */
bool run_is_forced(const struct run *run);

/* ERR_BUG "ProtectedPf" when the node itself depends on this NIC by now; asks the kernel. Forced
 * steps pass. */
int run_refuse_protected(const struct run *run, const char *pf, struct err *err);

/* Look every few milliseconds until `is_so` or the step's time is nearly up. */
bool run_wait(const struct run *run, bool (*is_so)(const struct run *run, const char *device),
	      const char *device);

/* "2 of 4", … */
int run_not_as_asked(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Put another reason on an error from a door, context in front, and what helps behind, by its
 * errno.
 */
struct hint {
	int number;
	const char *help;
};
int run_refused(struct err *err, const char *reason, const struct hint *hints, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- the steps ------------------------------------------------------------------------------- */

/* execute_pf.c */
int run_set_autoprobe(struct run *run, struct err *err);
int run_set_num_vfs(struct run *run, struct err *err);
int run_wait_vfs(struct run *run, struct err *err);
int run_set_eswitch(struct run *run, struct err *err);

/* execute_firmware.c */
int run_set_firmware(struct run *run, struct err *err);

/* execute_link.c */
int run_set_mtu(struct run *run, struct err *err);
int run_link_up(struct run *run, struct err *err);
int run_set_vf_mac(struct run *run, struct err *err);
int run_set_vf_guid(struct run *run, struct err *err);
int run_set_vf_link_state(struct run *run, struct err *err);

/* execute_setting.c */
int run_set_nic_setting(struct run *run, struct err *err);

/* execute_driver.c */
int run_set_driver_override(struct run *run, struct err *err);
int run_unbind_driver(struct run *run, struct err *err);
int run_probe_driver(struct run *run, struct err *err);
int run_wait_vf(struct run *run, struct err *err);
int run_load_module(struct run *run, struct err *err);

/* execute_node.c */
int run_set_rdma_netns_mode(struct run *run, struct err *err);
int run_write_rdma_next_boot(struct run *run, struct err *err);
int run_remove_rdma_next_boot(struct run *run, struct err *err);
int run_write_udev_rule(struct run *run, struct err *err);
int run_remove_udev_rule(struct run *run, struct err *err);
int run_record_reboot(struct run *run, struct err *err);
int run_close_reboot(struct run *run, struct err *err);
int run_reboot(struct run *run, struct err *err);

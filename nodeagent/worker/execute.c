// SPDX-License-Identifier: Apache-2.0
/* One step: check it, do it, say what became of it. See step.h; the steps are in execute_*.c. */
#include "nodeagent/worker/execute_internal.h"

#include <assert.h>

#include "lib/base/clock.h"

static const struct {
	const char *name;
	int (*run)(struct run *run, struct err *err);
} runners[] = {
	{"load-module", run_load_module},
	{"write-udev-rule", run_write_udev_rule},
	{"remove-udev-rule", run_remove_udev_rule},
	{"set-autoprobe", run_set_autoprobe},
	{"set-num-vfs", run_set_num_vfs},
	{"wait-vfs", run_wait_vfs},
	{"set-eswitch", run_set_eswitch},
	{"set-firmware", run_set_firmware},
	{"set-mtu", run_set_mtu},
	{"link-up", run_link_up},
	{"set-nic-setting", run_set_nic_setting},
	{"set-vf-mac", run_set_vf_mac},
	{"set-vf-guid", run_set_vf_guid},
	{"set-vf-link-state", run_set_vf_link_state},
	{"set-driver-override", run_set_driver_override},
	{"unbind-driver", run_unbind_driver},
	{"probe-driver", run_probe_driver},
	{"wait-vf", run_wait_vf},
	{"set-rdma-netns-mode", run_set_rdma_netns_mode},
	{"write-rdma-next-boot", run_write_rdma_next_boot},
	{"remove-rdma-next-boot", run_remove_rdma_next_boot},
	{"record-reboot", run_record_reboot},
	{"close-reboot", run_close_reboot},
	{"reboot", run_reboot},
};

int host_execute(struct host *host, const json_t *step, json_t **ret_result, struct err *err)
{
	assert(host && ret_result);
	/* The wall: the process that checked it before may be compromised. */
	const struct step_kind *kind = step_check(step, err);
	json_auto_t *result = json_object();
	struct run run = {.host = host, .step = step, .result = result};
	int64_t start = clock_ms();
	size_t i = 0;

	if (!kind)
		return -1;
	while (i < ARRAY_LEN(runners) && !str_eq(runners[i].name, kind->name))
		i++;
	if (i == ARRAY_LEN(runners))
		return err_set(err, ERR_BUG, "BadStep", "step %s is not implemented", kind->name);
	json_put_str(result, "step", kind->name);
	if (runners[i].run(&run, err) < 0)
		return err_in(err, "%s", kind->name);
	json_put_bool(result, "changed", run.changed);
	json_put_int(result, "tookMs", clock_ms() - start);
	*ret_result = take_ptr(result);
	return 0;
}

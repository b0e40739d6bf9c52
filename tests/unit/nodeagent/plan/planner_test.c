// SPDX-License-Identifier: Apache-2.0
/*
 * Plans for documents by hand: order, refusals, what is kept and put back. Whole runs on a host:
 * planner_host_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/json.h"
#include "nodeagent/model/step.h"
#include "nodeagent/plan/planner.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

#define P1 "0000:3b:00.0"
#define P2 "0000:5e:00.0"

/* Two PFs without VFs, ready for anything. */
static const char BASE[] =
	"{'interfaces': ["
	"{'pciAddress': '" P1 "', 'driver': 'mlx5_core', 'vendor': '15b3', 'deviceID': '101d', "
	"'name': 'eth1', 'mac': '0c:42:a1:66:a1:b2', 'mtu': 1500, 'linkType': 'ETH', "
	"'linkAdminState': 'up', 'eSwitchMode': 'legacy', 'totalvfs': 8, 'numVfs': 0, 'Vfs': [], "
	"'host': {'devlink': true, 'driversAutoprobe': true, 'maxMtu': 9978, 'rdma': ['mlx5_0'], "
	"'udevRules': ['nm-unmanaged'], 'permanentMac': '0c:42:a1:66:a1:b2'}},"
	"{'pciAddress': '" P2 "', 'driver': 'mlx5_core', 'vendor': '15b3', 'deviceID': '101d', "
	"'name': 'eth2', 'mac': '0c:42:a1:66:a1:b3', 'mtu': 1500, 'linkType': 'ETH', "
	"'linkAdminState': 'up', 'eSwitchMode': 'legacy', 'totalvfs': 8, 'numVfs': 0, 'Vfs': [], "
	"'host': {'devlink': true, 'driversAutoprobe': true, 'rdma': ['mlx5_1'], "
	"'udevRules': ['nm-unmanaged'], 'permanentMac': '0c:42:a1:66:a1:b3'}}],"
	"'unusable': [{'pciAddress': '0000:77:00.0', 'reason': 'NoDriver', "
	"'message': 'no driver is bound to it: load the driver of this NIC'}],"
	"'rdma': {'netnsMode': 'shared', 'netnsModeNextBoot': {'overruled': []}, 'devices': ["
	"{'name': 'mlx5_0', 'pciAddress': '" P1 "', 'nodeGuid': '0c:42:a1:03:00:66:a1:b2'},"
	"{'name': 'mlx5_1', 'pciAddress': '" P2 "', 'nodeGuid': '0c:42:a1:03:00:66:a1:b3'}]},"
	"'node': {'iommu': true, 'sriovKernel': true, 'sysfsWritable': true, "
	"'lockdown': 'confidentiality', 'modules': ['ib_core', 'ib_uverbs', 'rdma_ucm', 'mlx5_ib', "
	"'vfio_pci']}, 'problems': []}";

/* ---- making documents ------------------------------------------------------------------------ */

/* JSON with ' for ". */
static json_t *pf_at(json_t *observed, size_t i)
{
	return json_array_get(json_at(observed, "interfaces"), i);
}

/* BASE with parts of the first PF and of the node replaced: RFC 7386 patches, NULL for none. */
static json_t *observed_with(const char *pf, const char *node)
{
	json_t *ret = yaml(BASE);
	json_auto_t *pf_patch = yaml(pf ? pf : "{}"), *node_patch = yaml(node ? node : "{}");

	json_merge_patch(pf_at(ret, 0), pf_patch);
	json_merge_patch(json_at(ret, "node"), node_patch);
	return ret;
}

/* VF n of P1, as an idle mlx5 VF that is all right; patched. */
static void add_vf(json_t *observed, const char *patch_text)
{
	json_t *pf = pf_at(observed, 0), *list = json_at(pf, "Vfs");
	json_auto_t *patch = yaml(patch_text);
	int n = (int)json_array_size(list);
	auto_free char *text =
		str_printf("{'vfID': %d, 'pciAddress': '0000:3c:00.%d', 'driver': 'mlx5_core', "
			   "'name': 'v%d', 'mac': '02:00:00:00:01:%02x', 'mtu': 1500, "
			   "'guid': '02:00:00:ff:fe:00:01:%02x', 'host': {'inUse': false, "
			   "'holder': {'kind': 'host'}, 'adminMac': '02:00:00:00:01:%02x', "
			   "'rdma': ['mlx5_%d'], 'maxMtu': 9978}}",
			   n, n, n, n, n, n, n + 2);
	auto_free char *device = str_printf("{'pciAddress': '0000:3c:00.%d'}", n);
	json_t *vf = yaml(text);

	json_merge_patch(vf, patch);
	json_array_append_new(list, vf);
	json_object_set_new(pf, "numVfs", json_integer(n + 1));
	json_array_append_new(json_at(observed, "rdma", "devices"), yaml(device));
}

static json_t *plan_with(const char *spec_text, const json_t *observed, const json_t *found,
			 const json_t *held, const json_t *refused)
{
	json_auto_t *spec = yaml(spec_text), *before = json_deep_copy(observed);
	struct planner_input in = {.spec = spec,
				   .observed = observed,
				   .found = found,
				   .held = held,
				   .refused = refused};
	struct err err = {0};
	json_t *plan = planner_plan(&in, &err), *entry;
	size_t i;

	if (!plan)
		fail_msg("%s: %s", spec_text, err.text);
	assert_true(json_same(observed, before));
	json_array_foreach (json_at(plan, "steps"), i, entry) {
		assert_non_null(step_check(json_at(entry, "step"), &err));
		assert_true(strlen(json_str_at(entry, "why")) > 0);
	}
	return plan;
}

static json_t *plan_for(const char *spec, const json_t *observed)
{
	return plan_with(spec, observed, NULL, NULL, NULL);
}

/* "set-num-vfs count=4 from=0 pf=…; …": fields in order of their names, P1's address left out. */
static char *steps_of(const json_t *plan)
{
	auto_strbuf struct strbuf text = {0};
	json_t *entry, *value;
	const char *key;
	size_t i;

	json_array_foreach (json_at(plan, "steps"), i, entry) {
		json_auto_t *sorted = NULL;
		auto_free char *dump = json_text(json_at(entry, "step"));

		sorted = json_loads(dump, 0, NULL);
		strbuf_addf(&text, "%s%s", i ? "; " : "", json_str_at(entry, "step", "step"));
		json_each (sorted, key, value) {
			auto_free char *word = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

			if (str_eq(key, "step") || str_eq(json_string_value(value), P1))
				continue;
			strbuf_addf(&text, " %s=%.*s", key,
				    (int)strlen(word) - 2 * json_is_string(value),
				    word + json_is_string(value));
		}
	}
	return strbuf_take(&text);
}

static void has_steps(const json_t *plan, const char *want)
{
	auto_free char *got = steps_of(plan);

	assert_string_equal(got, want);
}

static void has_reasons(const json_t *plan, const char *list, const char *want)
{
	auto_strbuf struct strbuf text = {0};
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(plan, list), i, entry) {
		const char *reason = json_str_at(entry, "reason");

		strbuf_addf(&text, "%s%s", i ? " " : "", reason);
		/* What a condition says of it (docs/conditions.md): blocked is waiting. */
		if (!reason_is(reason, str_eq(list, "blocked") ? "waits" : "fault"))
			fail_msg("%s among %s: docs/reasons.md does not say that", reason, list);
	}
	if (!str_eq(strbuf_str(&text), want))
		fail_msg("%s: got \"%s\", want \"%s\": %s", list, strbuf_str(&text), want,
			 json_text(plan));
}

static void problems_mention(const json_t *plan, const char *what)
{
	auto_free char *text = json_text(json_at(plan, "problems"));

	assert_non_null(strstr(text, what));
}

/* The message of the first one. */
static void blocked_ends(const json_t *plan, const char *what)
{
	const char *message = json_str_at(json_array_get(json_at(plan, "blocked"), 0), "message");

	if (!str_ends(message, what))
		fail_msg("\"%s\" does not end in \"%s\"", message, what);
}

#define SPEC(members) "{'interfaces': [{'pciAddress': '" P1 "', " members "}]}"
#define VFS(n, type, rest)                                                                         \
	SPEC("'numVfs': " #n ", 'vfGroups': [{'policyName': 'a', 'vfRange': '0-7', "               \
	     "'deviceType': '" type "'" rest "}]")

/* ---- order ----------------------------------------------------------------------------------- */

static void prepares_new_vfs_with_autoprobe_off(void **state)
{
	json_auto_t *observed =
		observed_with("{'linkAdminState': 'down', 'host': {'udevRules': []}}", NULL);
	json_auto_t *plan = plan_for(SPEC("'numVfs': 2, 'mtu': 4000, 'vfGroups': [{'vfRange': "
					  "'0-1', 'mtu': 9000}]"),
				     observed);

	/* bnxt_en makes no VFs while the PF is down, and says that it did. */
	has_steps(plan, "write-udev-rule rule=nm-unmanaged; set-mtu mtu=9000; link-up; "
			"set-autoprobe on=false; set-num-vfs count=2 from=0; wait-vfs count=2");
	has_reasons(plan, "problems", "");
	/* Nothing of it is lost for the way back. */
	assert_int_equal(json_integer_value(json_at(plan, "found", "pfs", P1, "mtu")), 1500);
	assert_int_equal(json_integer_value(json_at(plan, "found", "pfs", P1, "numVfs")), 0);
	assert_true(json_is_true(json_at(plan, "found", "pfs", P1, "driversAutoprobe")));
	assert_null(json_at(plan, "found", "pfs", P2));
}

static void writes_no_rule_for_a_program_that_is_not_there(void **state)
{
	json_auto_t *observed =
		observed_with("{'host': {'udevRules': []}}", "{'networkManager': false}");
	json_auto_t *plan = plan_for(SPEC("'numVfs': 2"), observed);

	has_steps(plan, "set-autoprobe on=false; set-num-vfs count=2 from=0; wait-vfs count=2");
}

static void changes_nothing_beside_another_program_that_does(void **state)
{
	json_auto_t *observed = observed_with(
		NULL, "{'rivals': [{'name': 'sriov-network-config-daemon', 'pid': 42}]}");
	json_auto_t *plan = plan_for(SPEC("'numVfs': 2"), observed);

	has_steps(plan, "");
	has_reasons(plan, "problems", "OtherConfigDaemon");
	problems_mention(plan, "sriov-network-config-daemon (pid 42)");
	assert_int_equal(json_integer_value(json_at(plan, "vfs", "wanted")), 2);
}

static void ends_no_lag_that_others_use_unless_asked_to(void **state)
{
	static const char make[] =
		"set-autoprobe on=false; set-num-vfs count=2 from=0; wait-vfs count=2";
	static const struct {
		const char *port, *spec, *steps, *blocked;
	} cases[] = {
		{"{'host': {'master': 'bond0'}}", SPEC("'numVfs': 2"), "", "LagInUse"},
		{"{'host': {'master': 'bond0'}}", SPEC("'numVfs': 2, 'allowLagLoss': true"), make,
		 ""},
		/* Other drivers join no ports, nor do ports of InfiniBand; no bond is no LAG. */
		{"{'linkType': 'IB', 'host': {'master': 'bond0'}}", SPEC("'numVfs': 2"), make, ""},
		{"{'driver': 'ice', 'host': {'master': 'bond0'}}", SPEC("'numVfs': 2"), make, ""},
		{"{}", SPEC("'numVfs': 2"), make, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(cases[i].port, NULL);
		json_auto_t *plan = plan_for(cases[i].spec, observed);

		has_steps(plan, cases[i].steps);
		has_reasons(plan, "blocked", cases[i].blocked);
		if (i == 1)
			assert_string_equal(
				json_str_at(json_array_get(json_at(plan, "steps"), 1), "impact"),
				"pf");
	}
}

static void gives_addresses_to_all_before_drivers_start(void **state)
{
	json_auto_t *observed = observed_with("{'host': {'driversAutoprobe': false}}", NULL);
	json_auto_t *plan = NULL;
	static const char fresh[] = "{'driver': null, 'name': null, 'mac': null, 'mtu': null, "
				    "'guid': null, 'host': {'adminMac': null, 'rdma': []}}";

	add_vf(observed, fresh);
	add_vf(observed, fresh);
	plan = plan_for(VFS(2, "netdevice", ", 'isRdma': true, 'mtu': 1500"), observed);
	has_steps(plan, "set-vf-mac vfs={\"0\":\"fa:20:00:66:a1:b2\",\"1\":\"fa:20:01:66:a1:b2\"}; "
			"set-autoprobe on=true; "
			"probe-driver vf=0000:3c:00.0; wait-vf for=netdev vf=0000:3c:00.0; "
			"wait-vf for=rdma vf=0000:3c:00.0; set-mtu device=0000:3c:00.0 mtu=1500; "
			"probe-driver vf=0000:3c:00.1; wait-vf for=netdev vf=0000:3c:00.1; "
			"wait-vf for=rdma vf=0000:3c:00.1; set-mtu device=0000:3c:00.1 mtu=1500");
}

static void goes_through_zero_and_through_the_switch(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	plan = plan_for(SPEC("'numVfs': 3, 'eSwitchMode': 'switchdev'"), observed);
	has_steps(plan, "write-udev-rule name=eth1 rule=pf-name; set-autoprobe on=false; "
			"set-num-vfs count=0 from=1; set-eswitch mode=switchdev; "
			"set-num-vfs count=3 from=0; wait-vfs count=3");
}

static void rebinds_one_vf_after_the_other(void **state)
{
	json_auto_t *observed = observed_with(NULL, "{'modules': []}");
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	add_vf(observed, "{'driver': 'vfio-pci', 'host': {'driverOverride': 'vfio-pci'}}");
	plan = plan_for(SPEC("'numVfs': 2, 'vfGroups': [{'vfRange': '0-0', 'deviceType': "
			     "'vfio-pci'}, {'vfRange': '1-1'}]"),
			observed);
	has_steps(plan, "load-module module=vfio-pci; "
			"set-driver-override driver=vfio-pci vf=0000:3c:00.0; "
			"unbind-driver vf=0000:3c:00.0; "
			"probe-driver driver=vfio-pci vf=0000:3c:00.0; "
			"set-driver-override vf=0000:3c:00.1; unbind-driver vf=0000:3c:00.1; "
			"probe-driver vf=0000:3c:00.1; wait-vf for=netdev vf=0000:3c:00.1");
}

static void loads_what_rdma_needs(void **state)
{
	json_auto_t *observed = observed_with(NULL, "{'modules': ['ib_core']}");
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	plan = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), observed);
	has_steps(plan, "load-module module=mlx5_ib; load-module module=ib_uverbs; "
			"load-module module=rdma_ucm");
	assert_null(json_at(json_array_get(json_at(plan, "steps"), 0), "pf"));
}

/* ---- what cannot be done --------------------------------------------------------------------- */

/* P1 has this trouble and no step; P2 goes on. */
static void tells_what_cannot_be_done_and_does_the_rest(void **state)
{
	static const struct {
		const char *wish, *pf, *node, *reason;
	} cases[] = {
		{"'numVfs': 9", NULL, NULL, "VfCountOutOfRange"},
		{"'numVfs': 1", "{'totalvfs': null}", NULL, "NoSriov"},
		{"'numVfs': 1", "{'totalvfs': 0}", "{'sriovKernel': false}", "NoSriov"},
		{"'numVfs': 1, 'linkType': 'ib'", NULL, NULL, "LinkTypeMismatch"},
		{"'numVfs': 1, 'linkType': 'eth'", "{'linkType': null}", NULL, "LinkTypeMismatch"},
		{"'numVfs': 1, 'linkType': 'fc'", NULL, NULL, "BadSpec"},
		{"'numVfs': 1, 'eSwitchMode': 'switchdev'", "{'host': {'devlink': false}}", NULL,
		 "ESwitchUnsupported"},
		{"'numVfs': 1, 'eSwitchMode': 'switchdev'", "{'eSwitchMode': null}", NULL,
		 "ESwitchUnsupported"},
		{"'numVfs': 1, 'eSwitchMode': 'switchdev'", "{'linkType': 'IB'}", NULL,
		 "ESwitchUnsupported"},
		{"'numVfs': 1, 'eSwitchMode': 'bridge'", NULL, NULL, "BadSpec"},
		{"'numVfs': 1", "{'host': {'protected': 'carries the default route (br0)'}}", NULL,
		 "ProtectedPf"},
		{"'numVfs': 'x'", NULL, NULL, "BadSpec"},
		{"'numVfs': -1", NULL, NULL, "BadSpec"},
		{"'numVfs': 1, 'mtu': 67", NULL, NULL, "BadSpec"},
		{"'numVfs': 1, 'vfGroups': {}", NULL, NULL, "BadSpec"},
		{"'numVfs': 1, 'externallyManaged': 'no'", NULL, NULL, "BadSpec"},
		{"'numVfs': 0, 'mtu': 9979", NULL, NULL, "MtuOutOfRange"},
		{"'numVfs': 2, 'externallyManaged': true", NULL, NULL, "TooFewVfs"},
		{"'externallyManaged': true, 'mtu': 9000", NULL, NULL, "MtuTooLow"},
		{"'externallyManaged': true, 'eSwitchMode': 'switchdev'", NULL, NULL,
		 "ESwitchMismatch"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(cases[i].pf, cases[i].node);
		auto_free char *spec = str_printf("{'interfaces': [{'pciAddress': '" P1 "', %s}, "
						  "{'pciAddress': '" P2 "', 'numVfs': 1}]}",
						  cases[i].wish);
		json_auto_t *plan = plan_for(spec, observed);

		has_reasons(plan, "problems", cases[i].reason);
		assert_string_equal(json_str_at(json_array_get(json_at(plan, "problems"), 0), "pf"),
				    P1);
		has_steps(plan, "set-autoprobe on=false pf=" P2 "; set-num-vfs count=1 from=0 "
				"pf=" P2 "; wait-vfs count=1 pf=" P2);
		assert_null(json_at(plan, "found", "pfs", P1));
	}
}

/* Whether other NICs show SR-IOV or not. */
static void names_the_driver_that_makes_no_vfs(void **state)
{
	static const char *const nodes[] = {"{}", "{'sriovKernel': false}"};

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		json_auto_t *observed = observed_with(
			"{'driver': 'virtio-pci', 'vendor': '1af4', 'totalvfs': null}", nodes[i]);
		json_auto_t *plan = plan_for(SPEC("'numVfs': 1"), observed);

		has_reasons(plan, "problems", "NoSriov");
		assert_string_equal(
			json_str_at(json_array_get(json_at(plan, "problems"), 0), "message"),
			"its driver virtio-pci makes no VFs, and it has no sriov_totalvfs in "
			"sysfs: select another NIC");
	}
}

static void names_the_command_where_only_firmware_can_change_it(void **state)
{
	static const struct {
		const char *wish, *pf, *words;
	} cases[] = {
		{"'numVfs': 9", NULL, "mlxconfig -d " P1 " set NUM_OF_VFS=9, and reboot"},
		{"'numVfs': 9", "{'vendor': '14e4'}", "with the tool of the NIC's vendor"},
		{"'numVfs': 4", "{'totalvfs': 0}",
		 "mlxconfig -d " P1 " set SRIOV_EN=1 NUM_OF_VFS=4, and reboot"},
		{"'numVfs': 4", "{'totalvfs': 0, 'vendor': '14e4'}",
		 "devlink dev param set pci/" P1 " name enable_sriov value true cmode permanent"},
		{"'numVfs': 4", "{'totalvfs': 0, 'vendor': '8086'}", "in the machine's setup"},
		{"'numVfs': 4", "{'totalvfs': 0, 'vendor': '1077'}", "the NIC's vendor"},
		{"'numVfs': 1, 'linkType': 'ib'", NULL, "set LINK_TYPE_P1=1, and reboot"},
		{"'numVfs': 1, 'linkType': 'eth'", "{'linkType': 'IB'}", "set LINK_TYPE_P1=2"},
		{"'numVfs': 1, 'linkType': 'ib'", "{'vendor': '8086'}", "correct the policy"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(cases[i].pf, NULL);
		auto_free char *spec =
			str_printf("{'interfaces': [{'pciAddress': '" P1 "', %s}]}", cases[i].wish);
		json_auto_t *plan = plan_for(spec, observed);
		const char *message = json_str_or(
			json_at(json_array_get(json_at(plan, "problems"), 0), "message"), "");

		if (!strstr(message, cases[i].words))
			fail_msg("%s does not say: %s", message, cases[i].words);
	}
}

static void tells_of_groups_and_leaves_their_vfs_alone(void **state)
{
	static const struct {
		const char *group, *node, *reason;
	} cases[] = {
		{"'vfRange': '0'", NULL, "BadSpec"},
		{"'vfRange': '1-0'", NULL, "BadSpec"},
		{"'vfRange': '-1-0'", NULL, "BadSpec"},
		{"'vfRange': '0-0', 'deviceType': 'uio'", NULL, "BadSpec"},
		{"'vfRange': '0-0', 'mtu': -1", NULL, "BadSpec"},
		{"'vfRange': '0-0', 'guidStart': 'x'", NULL, "BadSpec"},
		{"'vfRange': '0-0', 'guidStart': '00:00:00:00:00:00:00:00'", NULL, "BadSpec"},
		{"'vfRange': '0-0', 'deviceType': 'vfio-pci'", "{'iommu': false}", "NoIommu"},
		{"'vfRange': '0-9'", NULL, "VfRangeOutOfRange"},
		{"'vfRange': '0-0', 'vdpaType': 'vhost'", NULL, "VdpaUnsupported"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(NULL, cases[i].node);
		auto_free char *spec = str_printf(
			SPEC("'numVfs': 1, 'mtu': 1500, 'vfGroups': [{%s}]"), cases[i].group);
		json_auto_t *plan = NULL;

		add_vf(observed, "{}");
		plan = plan_for(spec, observed);
		has_reasons(plan, "problems", cases[i].reason);
		has_steps(plan, "");
	}
}

static void tells_of_pfs_that_are_not_there(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *plan = plan_for("{'interfaces': [{'pciAddress': '0000:77:00.0'}, "
				     "{'pciAddress': '0000:99:00.0'}, {'numVfs': 3}, "
				     "{'pciAddress': '" P1 "'}, {'pciAddress': '" P1 "'}]}",
				     observed);

	has_reasons(plan, "problems", "BadSpec BadSpec NoDriver PfMissing");
	problems_mention(plan, "load the driver");
}

static void names_what_a_host_cannot_do(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *unusable = NULL, *mute = NULL;

	json_object_set_new(
		observed, "unusable",
		yaml("[{'pciAddress': '0000:77:00.0', 'reason': 'Odd', 'message': 'x'}, "
		     "{'pciAddress': '0000:78:00.0', 'reason': 'NoInterface'}]"));
	unusable = plan_for("{'interfaces': [{'pciAddress': '0000:77:00.0'}, "
			    "{'pciAddress': '0000:78:00.0'}]}",
			    observed);
	has_reasons(unusable, "problems", "PfUnusable NoInterface");
	json_object_del(json_at(observed, "rdma"), "netnsMode");
	mute = plan_for("{'system': {'rdmaMode': 'exclusive'}}", observed);
	has_reasons(mute, "problems", "RdmaUnavailable");
	problems_mention(mute, "Linux 5.2 or newer is needed");
}

static void tells_of_a_pf_that_was_there_a_moment_ago(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *plan = NULL;

	json_object_set_new(observed, "missing",
			    yaml("[{'pciAddress': '0000:99:00.0', 'name': 'eth9'}, "
				 "{'pciAddress': '0000:77:00.0', 'name': 'eth7'}]"));
	plan = plan_for("{'interfaces': [{'pciAddress': '0000:99:00.0', 'numVfs': 4}, "
			"{'pciAddress': '0000:77:00.0', 'numVfs': 4}]}",
			observed);
	has_steps(plan, "");
	/* Why the other one is, is known. */
	has_reasons(plan, "problems", "NoDriver PfMissing");
	problems_mention(plan, "eth9 has vanished; the agent waits");
}

static void does_nothing_where_sys_cannot_be_written(void **state)
{
	json_auto_t *observed = observed_with(NULL, "{'sysfsWritable': false}");
	json_auto_t *plan = plan_for(SPEC("'numVfs': 1"), observed);
	json_auto_t *content = plan_for(SPEC("'numVfs': 0"), observed);

	has_steps(plan, "");
	has_reasons(plan, "problems", "SysfsReadOnly");
	assert_null(json_at(plan, "found", "pfs"));
	has_reasons(content, "problems", "");
}

static void tells_of_bridges(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *plan = plan_for("{'bridges': {'ovs': [{'name': 'br-x'}]}}", observed);

	has_reasons(plan, "problems", "BridgeNotManaged");
}

static void refuses_a_spec_of_the_wrong_shape(void **state)
{
	static const char *const specs[] = {
		"[]",
		"{'interfaces': {}}",
		"{'system': []}",
		"{'system': {'rdmaMode': 'both'}}",
		"{'system': {'rdmaMode': 1}}",
		"{'bridges': 7}",
		"{'bridges': {'ovs': {}}}",
	};
	json_auto_t *observed = yaml(BASE);

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		json_auto_t *spec = yaml(specs[i]);
		struct planner_input in = {.spec = spec, .observed = observed};
		struct err err = {0};

		assert_null(planner_plan(&in, &err));
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadSpec");
		assert_non_null(strstr(err.text, "spec"));
	}
}

static void does_nothing_before_anything_was_said(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'numVfs': 0}}}");
	struct planner_input in = {.observed = observed, .found = found};
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	plan = planner_plan(&in, NULL);
	has_steps(plan, "");
	assert_true(json_same(json_at(plan, "found"), found));
	assert_int_equal(json_integer_value(json_at(plan, "vfs", "present")), 1);
}

/* ---- PFs of others --------------------------------------------------------------------------- */

static void sets_up_vfs_of_an_external_pf_and_nothing_else(void **state)
{
	json_auto_t *observed = observed_with("{'mtu': 9000, 'linkAdminState': 'down', 'host': "
					      "{'driversAutoprobe': false, 'udevRules': [], "
					      "'protected': 'carries the default route'}}",
					      NULL);
	json_auto_t *plan = NULL, *idle = NULL;

	add_vf(observed, "{}");
	add_vf(observed, "{}");
	idle = plan_for(SPEC("'numVfs': 1, 'externallyManaged': true, 'vfGroups': [{'vfRange': "
			     "'0-0', 'deviceType': 'netdevice'}]"),
			observed);
	has_steps(idle, "");
	plan = plan_for(SPEC("'numVfs': 1, 'externallyManaged': true, 'vfGroups': [{'vfRange': "
			     "'0-0', 'deviceType': 'vfio-pci'}]"),
			observed);
	has_steps(plan, "set-driver-override driver=vfio-pci vf=0000:3c:00.0; "
			"unbind-driver vf=0000:3c:00.0; "
			"probe-driver driver=vfio-pci vf=0000:3c:00.0");
	assert_null(json_at(plan, "found", "pfs"));
}

static void leaves_the_vf_alone_that_carries_the_node(void **state)
{
	json_auto_t *observed = observed_with(
		"{'numVfs': 2, 'host': {'protected': 'carries the default route (eth1v0)'}}",
		"{'protected': [{'pciAddress': '0000:3c:00.0', 'reason': 'carries it'}]}");
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	add_vf(observed, "{}");
	plan = plan_for(SPEC("'numVfs': 2, 'externallyManaged': true, 'vfGroups': "
			     "[{'vfRange': '0-1', 'deviceType': 'vfio-pci'}]"),
			observed);
	has_steps(plan, "set-driver-override driver=vfio-pci vf=0000:3c:00.1; "
			"unbind-driver vf=0000:3c:00.1; "
			"probe-driver driver=vfio-pci vf=0000:3c:00.1");
	has_reasons(plan, "blocked", "VfInUse");
}

static void makes_vfs_on_the_nodes_own_nic_only_when_a_policy_says_so(void **state)
{
	static const char made[] = "set-autoprobe on=false; set-num-vfs count=2 force=true from=0; "
				   "wait-vfs count=2";
	json_auto_t *observed =
		observed_with("{'host': {'protected': 'carries the default route'}}", NULL);
	json_auto_t *plain = plan_for(SPEC("'numVfs': 2"), observed);
	json_auto_t *asked = plan_for(SPEC("'numVfs': 2, 'allowPrimaryNic': true"), observed);
	json_auto_t *mtu =
		plan_for(SPEC("'numVfs': 2, 'mtu': 9000, 'allowPrimaryNic': true"), observed);
	json_auto_t *eswitch = plan_for(
		SPEC("'numVfs': 2, 'eSwitchMode': 'switchdev', 'allowPrimaryNic': true"), observed);
	json_auto_t *with_vfs =
		observed_with("{'host': {'protected': 'carries the default route'}}", NULL);
	json_auto_t *gone = NULL;

	has_steps(plain, "");
	problems_mention(plain, "orbweaver.io/allow-primary-nic");
	has_steps(asked, made);
	has_reasons(asked, "problems", "");
	/* What would take the node's network down stays refused. */
	has_steps(mtu, "");
	has_reasons(mtu, "problems", "ProtectedPf");
	has_steps(eswitch, "");
	has_reasons(eswitch, "problems", "ProtectedPf");
	/* And when nobody wants them any more they go. */
	add_vf(with_vfs, "{}");
	add_vf(with_vfs, "{}");
	gone = plan_with("{}", with_vfs, json_at(asked, "found"), NULL, NULL);
	has_steps(gone, "set-num-vfs count=0 force=true from=2");
}

static void says_nothing_of_a_protected_pf_that_is_as_wanted(void **state)
{
	json_auto_t *observed = observed_with("{'host': {'protected': 'carries it'}}", NULL);
	json_auto_t *plan = NULL;

	add_vf(observed, "{}");
	plan = plan_for(VFS(1, "netdevice", ""), observed);
	has_reasons(plan, "problems", "VfRangeOutOfRange");
	has_steps(plan, "");
}

/* ---- holders --------------------------------------------------------------------------------- */

static void names_who_holds_what_is_in_the_way(void **state)
{
	static const struct {
		const char *vf, *held, *holder, *remedy;
	} cases[] = {
		{"{'host': {'inUse': true, 'holder': {'kind': 'netns', 'name': '/run/netns/x'}}}",
		 "{}", "/run/netns/x", "end what holds it"},
		{"{'host': {'inUse': true, 'holder': {'kind': 'vfio'}}}", "{}", "vfio",
		 "end what holds it"},
		{"{}", "{'0000:3c:00.0': 'lab/train-0'}", "lab/train-0", "delete that pod"},
		{"{'host': {'inUse': null}}", "{}", "host", "end what holds it"},
		{"{'host': null}", "{}", "someone", "end what holds it"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(NULL, NULL);
		json_auto_t *held = yaml(cases[i].held);
		json_auto_t *found = yaml("{'pfs': {'" P1 "': {'numVfs': 0}}}");
		json_auto_t *grow = NULL, *bind = NULL, *gone = NULL, *same = NULL;
		auto_free char *remedy = str_printf(
			": it waits until the VF is free; %s, or leave it: nothing is taken from "
			"it",
			cases[i].remedy);

		add_vf(observed, cases[i].vf);
		grow = plan_with(SPEC("'numVfs': 4"), observed, NULL, held, NULL);
		has_reasons(grow, "blocked", "VfInUse");
		has_steps(grow, "");
		assert_string_equal(
			json_str_at(json_array_get(json_at(grow, "blocked"), 0), "holder"),
			cases[i].holder);
		blocked_ends(grow, remedy);
		bind = plan_with(VFS(1, "vfio-pci", ""), observed, NULL, held, NULL);
		has_reasons(bind, "blocked", "VfInUse");
		has_steps(bind, "");
		gone = plan_with("{}", observed, found, held, NULL);
		has_reasons(gone, "blocked", "VfInUse");
		has_steps(gone, "");
		assert_true(json_same(json_at(gone, "found"), found));
		same = plan_with(SPEC("'numVfs': 1"), observed, NULL, held, NULL);
		has_reasons(same, "blocked", "");
	}
}

/*
 * After a boot: the kubelet names the pods of before, the VFs were made anew and have no driver
 * yet.
 */
static void starts_the_drivers_of_new_vfs_in_order_whoever_had_them_before_the_boot(void **state)
{
	static const char fresh[] =
		"{'driver': null, 'name': null, 'mac': null, 'mtu': null, "
		"'guid': null, 'host': {'rdma': [], 'holder': {'kind': 'none'}}}";
	static const char claimed[] = "{'driver': null, 'name': null, 'host': {'inUse': true, "
				      "'holder': {'kind': 'claimed', 'name': '/run/netns/x'}}}";
	static const char steps[] =
		"set-autoprobe on=true; probe-driver vf=0000:3c:00.0; "
		"wait-vf for=netdev vf=0000:3c:00.0; probe-driver vf=0000:3c:00.1; "
		"wait-vf for=netdev vf=0000:3c:00.1";
	json_auto_t *observed = observed_with("{'host': {'driversAutoprobe': false}}", NULL);
	json_auto_t *attached = json_deep_copy(observed), *spec = yaml(VFS(2, "netdevice", ""));
	json_auto_t *held = yaml("{'0000:3c:00.0': 'lab/train-0'}");
	json_auto_t *plan = NULL, *waiting = NULL, *grow = NULL, *busy = NULL;
	struct planner_input early = {.spec = spec, .observed = observed, .is_held_awaited = true};

	add_vf(observed, fresh);
	add_vf(observed, fresh);
	plan = plan_with(VFS(2, "netdevice", ""), observed, NULL, held, NULL);
	has_steps(plan, steps);
	has_reasons(plan, "blocked", "");
	/* Nor is the kubelet waited for. */
	waiting = planner_plan(&early, NULL);
	has_steps(waiting, steps);
	/* Its number is the pod's all the same. */
	grow = plan_with(SPEC("'numVfs': 4"), observed, NULL, held, NULL);
	has_reasons(grow, "blocked", "VfInUse");
	/* What was attached in this boot counts. */
	add_vf(attached, claimed);
	busy = plan_with(VFS(1, "netdevice", ""), attached, NULL, held, NULL);
	has_reasons(busy, "blocked", "VfInUse");
}

/*
 * Right after a start: a pod may have a VF of which the host shows nothing, for vfio or RDMA alone.
 */
static void touches_no_vf_before_the_kubelet_has_said_which_are_given(void **state)
{
	static const struct {
		const char *spec, *steps, *blocked;
		int vfs;
	} cases[] = {
		{SPEC("'numVfs': 4"), "", "VfInUse VfInUse", 2},
		{VFS(2, "vfio-pci", ""), "", "VfInUse VfInUse", 2},
		{SPEC("'numVfs': 2, 'eSwitchMode': 'switchdev'"),
		 "write-udev-rule name=eth1 rule=pf-name", "VfInUse VfInUse", 2},
		{"{}", "", "VfInUse VfInUse", 2},
		/* What is as wanted is nobody's business, and what no pod can have is made. */
		{VFS(2, "netdevice", ""), "", "", 2},
		{SPEC("'numVfs': 2, 'mtu': 9000"),
		 "set-mtu mtu=9000; set-autoprobe on=false; set-num-vfs count=2 from=0; "
		 "wait-vfs count=2",
		 "", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(NULL, NULL), *spec = yaml(cases[i].spec);
		json_auto_t *found = yaml("{'pfs': {'" P1 "': {'numVfs': 0}}}");
		json_auto_t *waiting = NULL, *nobody = json_object(), *answered = NULL;
		struct planner_input in = {.spec = spec, .observed = observed, .found = found};

		for (int n = 0; n < cases[i].vfs; n++)
			add_vf(observed, "{}");
		in.is_held_awaited = true;
		waiting = planner_plan(&in, NULL);
		has_steps(waiting, cases[i].steps);
		has_reasons(waiting, "blocked", cases[i].blocked);
		in.held = nobody;
		answered = planner_plan(&in, NULL);
		has_reasons(answered, "blocked", "");
	}
}

static void does_not_remove_vfs_that_it_cannot_see(void **state)
{
	json_auto_t *observed = observed_with("{'numVfs': 3}", NULL);
	json_auto_t *plan = plan_for(SPEC("'numVfs': 4"), observed);

	has_steps(plan, "");
	has_reasons(plan, "problems", "VfUnknown");
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void starts_a_vf_anew_whose_guid_is_none(void **state)
{
	static const char *const bad[] = {"00:00:00:00:00:00:00:00", "00:00:00:ff:fe:00:00:00",
					  "ff:ff:ff:ff:ff:ff:ff:ff"};
	static const char mac[] = "fa:20:00:66:a1:b2";

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *observed = observed_with(NULL, NULL), *later = NULL;
		auto_free char *patch = str_printf("{'guid': '%s'}", bad[i]);
		auto_free char *after =
			str_printf("{'guid': '%s', 'mac': '%s', 'host': {'adminMac': '%s'}}",
				   bad[i], mac, mac);
		json_auto_t *plan = NULL, *no_rdma = NULL, *again = NULL;

		add_vf(observed, patch);
		plan = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), observed);
		has_steps(plan, "set-vf-mac vfs={\"0\":\"fa:20:00:66:a1:b2\"}; "
				"unbind-driver vf=0000:3c:00.0; probe-driver vf=0000:3c:00.0; "
				"wait-vf for=netdev vf=0000:3c:00.0; "
				"wait-vf for=rdma vf=0000:3c:00.0");
		no_rdma = plan_for(VFS(1, "netdevice", ""), observed);
		has_steps(no_rdma, "");
		/* Done, and of no use: not again and again. */
		later = observed_with(NULL, NULL);
		add_vf(later, after);
		again = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), later);
		has_steps(again, "");
		has_reasons(again, "problems", "VfRangeOutOfRange BadGuid");
	}
}

/* What only firmware can change: said, or set where a policy asks for it in so many words. */
static void sets_firmware_only_when_asked_to(void **state)
{
	static const char want[] = "set-firmware count=16";
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *off = observed_with("{'totalvfs': null, 'numVfs': null, 'Vfs': null}", NULL);
	json_auto_t *needed = observed_with("{'host': {'protected': 'carries the route'}}", NULL);
	json_auto_t *refused = json_array(), *said = NULL, *more = NULL, *on = NULL, *failed = NULL,
		    *own = NULL;

	said = plan_for(SPEC("'numVfs': 16"), observed);
	has_steps(said, "");
	has_reasons(said, "problems", "VfCountOutOfRange");
	more = plan_for(SPEC("'numVfs': 16, 'allowFirmware': true"), observed);
	has_steps(more, want);
	has_reasons(more, "problems", "");
	on = plan_for(SPEC("'numVfs': 16, 'allowFirmware': true"), off);
	has_steps(on, want);
	/* It did not work: the rest of the host goes on, and the command is said. */
	json_array_append_new(refused,
			      yaml("{'step': 'set-firmware', 'pf': '" P1 "', 'count': 16}"));
	failed = plan_with(SPEC("'numVfs': 16, 'allowFirmware': true"), observed, NULL, NULL,
			   refused);
	has_steps(failed, "");
	has_reasons(failed, "problems", "VfCountOutOfRange");
	own = plan_for(SPEC("'numVfs': 16, 'allowFirmware': true"), needed);
	has_steps(own, "");
	has_reasons(own, "problems", "VfCountOutOfRange");
}

static void keeps_a_mac_address_that_works(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL);
	json_auto_t *plan = NULL;

	add_vf(observed, "{'host': {'adminMac': null}}");
	plan = plan_for(VFS(1, "netdevice", ""), observed);
	has_steps(plan, "set-vf-mac vfs={\"0\":\"02:00:00:00:01:00\"}");
}

#define IB_PF                                                                                      \
	"{'linkType': 'IB', 'mac': "                                                               \
	"'00:00:10:49:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:66:a1:b2', "                          \
	"'host': {'permanentMac': null}}"

static void gives_infiniband_vfs_the_guids_of_the_pool(void **state)
{
	static const struct {
		const char *group, *guid; /* of VF 1 */
	} cases[] = {
		{"'vfRange': '0-1'", "02:0c:42:a1:66:a1:b2:01"},
		{"'vfRange': '0-1', 'guidStart': '06:00:00:00:00:00:00:ff'",
		 "06:00:00:00:00:00:01:00"},
		{"'vfRange': '1-1', 'guidStart': '06:00:00:00:00:00:00:ff'",
		 "06:00:00:00:00:00:00:ff"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(IB_PF, NULL), *plan = NULL;
		auto_free char *spec =
			str_printf(SPEC("'numVfs': 2, 'vfGroups': [{%s}]"), cases[i].group);
		auto_free char *want =
			str_printf("set-vf-guid vfs={\"1\":\"%s\"} which=node; "
				   "set-vf-guid vfs={\"1\":\"%s\"} which=port; set-vf-link-state "
				   "vfs={\"1\":\"auto\"}; probe-driver vf=0000:3c:00.1; "
				   "wait-vf for=netdev vf=0000:3c:00.1",
				   cases[i].guid, cases[i].guid);
		auto_free char *first =
			str_printf("{'guid': '%s'}", i == 1 ? "06:00:00:00:00:00:00:ff" : "02:1:");

		/* VF 0 is as it should be. */
		add_vf(observed, i == 1 ? first : "{}");
		add_vf(observed, "{'driver': null, 'name': null, 'guid': null, "
				 "'host': {'linkState': 'disable'}}");
		plan = plan_for(spec, observed);
		has_steps(plan, want);
	}
}

static void changes_a_guid_that_is_not_the_pools(void **state)
{
	json_auto_t *observed = observed_with(IB_PF, NULL), *plan = NULL, *without = NULL;

	add_vf(observed, "{}");
	plan = plan_for(SPEC("'numVfs': 1, 'vfGroups': [{'vfRange': '0-0', 'guidStart': "
			     "'06:00:00:00:00:00:00:01'}]"),
			observed);
	has_steps(plan, "set-vf-guid vfs={\"0\":\"06:00:00:00:00:00:00:01\"} which=node; "
			"set-vf-guid vfs={\"0\":\"06:00:00:00:00:00:00:01\"} which=port; "
			"unbind-driver vf=0000:3c:00.0; probe-driver vf=0000:3c:00.0; "
			"wait-vf for=netdev vf=0000:3c:00.0");
	without = plan_for(SPEC("'numVfs': 1, 'vfGroups': [{'vfRange': '0-0'}]"), observed);
	has_steps(without, "");
}

/* ---- RDMA without devices -------------------------------------------------------------------- */

static void tells_of_rdma_that_is_not_there(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *plan = NULL;

	add_vf(observed, "{'guid': null, 'host': {'rdma': []}}");
	add_vf(observed, "{'guid': null, 'host': {'rdma': []}}");
	add_vf(observed, "{'name': null, 'mac': null, 'mtu': null}");
	plan = plan_for(SPEC("'numVfs': 3, 'vfGroups': [{'vfRange': '0-2', 'isRdma': true}]"),
			observed);
	has_reasons(plan, "problems", "VfWithoutInterface NoRdmaDevice");
	problems_mention(plan, "2 VFs (0000:3c:00.0, ");
	has_steps(plan, "");
}

/* ---- refused --------------------------------------------------------------------------------- */

static void leaves_out_what_was_refused_and_what_needs_it(void **state)
{
	static const struct {
		const char *refused, *want;
	} cases[] = {
		{"{'step': 'set-driver-override', 'vf': '0000:3c:00.0', 'driver': 'vfio-pci'}",
		 "set-driver-override driver=vfio-pci vf=0000:3c:00.1; "
		 "unbind-driver vf=0000:3c:00.1; probe-driver driver=vfio-pci vf=0000:3c:00.1"},
		{"{'step': 'probe-driver', 'vf': '0000:3c:00.0', 'driver': 'vfio-pci'}",
		 "set-driver-override driver=vfio-pci vf=0000:3c:00.0; "
		 "unbind-driver vf=0000:3c:00.0; "
		 "set-driver-override driver=vfio-pci vf=0000:3c:00.1; "
		 "unbind-driver vf=0000:3c:00.1; probe-driver driver=vfio-pci vf=0000:3c:00.1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(NULL, NULL), *plan = NULL;
		json_auto_t *refused = json_array();

		json_array_append_new(refused, yaml(cases[i].refused));
		add_vf(observed, "{}");
		add_vf(observed, "{}");
		plan = plan_with(VFS(2, "vfio-pci", ""), observed, NULL, NULL, refused);
		has_steps(plan, cases[i].want);
	}
}

static void gives_a_driver_to_a_vf_whose_pf_cannot_give_it_a_mac(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *refused = json_array(), *plan = NULL;

	json_array_append_new(refused, yaml("{'step': 'set-vf-mac', 'pf': '" P1 "', "
					    "'vfs': {'0': 'fa:20:00:66:a1:b2'}}"));
	add_vf(observed, "{'driver': null, 'name': null, 'mac': null, 'host': {'adminMac': null}}");
	plan = plan_with(VFS(1, "netdevice", ""), observed, NULL, NULL, refused);
	has_steps(plan, "probe-driver vf=0000:3c:00.0; wait-vf for=netdev vf=0000:3c:00.0");
}

/*
 * The way to other VFs is closed: those that are there are kept in order, but get no drivers behind
 * another switch than is wanted.
 */
static void does_not_begin_a_way_that_was_refused(void **state)
{
	static const char *const refused_steps[] = {
		"{'step': 'set-num-vfs', 'pf': '" P1 "', 'count': 0, 'from': 1}",
		"{'step': 'set-num-vfs', 'pf': '" P1 "', 'count': 4, 'from': 0}",
	};

	for (size_t i = 0; i < ARRAY_LEN(refused_steps); i++) {
		json_auto_t *observed =
			observed_with("{'host': {'driversAutoprobe': false, 'udevRules': "
				      "['nm-unmanaged', 'pf-name']}}",
				      NULL);
		json_auto_t *refused = json_array(), *plan = NULL, *other_switch = NULL;

		json_array_append_new(refused, yaml(refused_steps[i]));
		add_vf(observed, "{'driver': null, 'name': null}");
		plan = plan_with(SPEC("'numVfs': 4"), observed, NULL, NULL, refused);
		has_steps(plan, "set-autoprobe on=true; probe-driver vf=0000:3c:00.0; "
				"wait-vf for=netdev vf=0000:3c:00.0");
		other_switch = plan_with(SPEC("'numVfs': 4, 'eSwitchMode': 'switchdev'"), observed,
					 NULL, NULL, refused);
		has_steps(other_switch, "");
	}
}

/*
 * A kernel that sets no mode without VFs refuses the first order; behind a switch in the wrong mode
 * nobody gets VFs.
 */
static void tries_the_switch_before_its_vfs_and_after_them(void **state)
{
	static const char spec[] = SPEC("'numVfs': 2, 'eSwitchMode': 'switchdev'");
	json_auto_t *observed =
		observed_with("{'host': {'udevRules': ['nm-unmanaged', 'pf-name']}}", NULL);
	json_auto_t *refused = json_array(), *first = NULL, *second = NULL, *none = NULL;

	add_vf(observed, "{'driver': null, 'name': null}");
	first = plan_with(spec, observed, NULL, NULL, refused);
	has_steps(first, "set-autoprobe on=false; set-num-vfs count=0 from=1; "
			 "set-eswitch mode=switchdev; set-num-vfs count=2 from=0; wait-vfs "
			 "count=2");
	json_array_append_new(refused, yaml("{'step': 'set-eswitch', 'pf': '" P1 "', 'mode': "
					    "'switchdev'}"));
	second = plan_with(spec, observed, NULL, NULL, refused);
	has_steps(second, "set-autoprobe on=false; set-num-vfs count=0 from=1; "
			  "set-num-vfs count=2 from=0; wait-vfs count=2; "
			  "set-eswitch afterVfs=true mode=switchdev");
	json_array_append_new(refused, yaml("{'step': 'set-eswitch', 'pf': '" P1 "', 'mode': "
					    "'switchdev', 'afterVfs': true}"));
	none = plan_with(spec, observed, NULL, NULL, refused);
	has_steps(none, "");
}

/* They are made only once for a mode that is refused after them, too. */
static void keeps_vfs_for_a_switch_that_is_set_after_them(void **state)
{
	static const char spec[] = SPEC("'numVfs': 2, 'eSwitchMode': 'switchdev'");
	json_auto_t *observed =
		observed_with("{'host': {'udevRules': ['nm-unmanaged', 'pf-name']}}", NULL);
	json_auto_t *refused = json_array(), *plan = NULL, *remade = NULL;

	add_vf(observed, "{'driver': null, 'name': null}");
	/* Of somebody else: it must have no driver when the mode is set. */
	add_vf(observed, "{}");
	json_array_append_new(refused, yaml("{'step': 'set-eswitch', 'pf': '" P1 "', 'mode': "
					    "'switchdev'}"));
	plan = plan_with(spec, observed, NULL, NULL, refused);
	has_steps(plan, "unbind-driver vf=0000:3c:00.1; set-eswitch afterVfs=true mode=switchdev");
	/* It does not matter that no others can be made. */
	json_array_append_new(refused, yaml("{'step': 'set-num-vfs', 'pf': '" P1 "', 'count': 2, "
					    "'from': 0}"));
	remade = plan_with(spec, observed, NULL, NULL, refused);
	assert_true(json_same(plan, remade));
}

/* Behind the wrong switch, whichever it is, they would be of no use. */
static void gives_no_drivers_while_a_mode_is_refused(void **state)
{
	static const struct {
		const char *pf, *spec, *refused;
	} cases[] = {
		{"{'eSwitchMode': 'switchdev'}", SPEC("'numVfs': 1, 'eSwitchMode': 'legacy'"),
		 "[{'step': 'set-eswitch', 'pf': '" P1 "', 'mode': 'legacy'}]"},
		{"{}", SPEC("'numVfs': 1, 'eSwitchMode': 'switchdev'"),
		 "[{'step': 'set-eswitch', 'pf': '" P1 "', 'mode': 'switchdev'}, {'step': "
		 "'set-eswitch', 'pf': '" P1 "', 'mode': 'switchdev', 'afterVfs': true}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(cases[i].pf, NULL);
		json_auto_t *refused = yaml(cases[i].refused), *plan = NULL;
		json_auto_t *rules = yaml("['nm-unmanaged', 'pf-name']");

		json_object_set(json_at(pf_at(observed, 0), "host"), "udevRules", rules);
		add_vf(observed, "{'driver': null, 'name': null}");
		plan = plan_with(cases[i].spec, observed, NULL, NULL, refused);
		has_steps(plan, "");
	}
}

/* A BlueField in DPU mode, from the host: its cores have the switch, and give VFs addresses. */
static void leaves_a_switch_elsewhere_to_whoever_has_it(void **state)
{
	static const char elsewhere[] = "{'driver': 'mlx5_core', 'host': {'switchElsewhere': "
					"true, 'driversAutoprobe': false}}";
	static const char fresh[] = "{'driver': null, 'name': null, 'mac': null, 'mtu': null, "
				    "'guid': null, 'host': {'adminMac': null, 'rdma': []}}";
	json_auto_t *observed = observed_with(elsewhere, NULL), *bad = NULL;
	json_auto_t *plan = NULL, *mode = NULL, *guid = NULL;

	add_vf(observed, fresh);
	plan = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), observed);
	has_steps(plan, "set-autoprobe on=true; probe-driver vf=0000:3c:00.0; "
			"wait-vf for=netdev vf=0000:3c:00.0; wait-vf for=rdma vf=0000:3c:00.0");
	mode = plan_for(SPEC("'numVfs': 1, 'eSwitchMode': 'switchdev'"), observed);
	has_steps(mode, "");
	has_reasons(mode, "problems", "ESwitchUnsupported");
	problems_mention(mode, "DPU mode");

	bad = observed_with("{'driver': 'mlx5_core', 'host': {'switchElsewhere': true}}", NULL);
	add_vf(bad, "{'guid': '00:00:00:00:00:00:00:00', 'host': {'adminMac': null}}");
	guid = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), bad);
	has_steps(guid, "");
	has_reasons(guid, "problems", "VfRangeOutOfRange BadGuid");
	problems_mention(guid, "/sys/class/net/p0/smart_nic/vf0/mac");
}

/* Nothing comes of waiting for what no driver of the kernel makes. */
static void does_not_wait_for_rdma_of_vfs_that_get_none(void **state)
{
	static const char fresh[] = "{'driver': null, 'name': null, 'mac': null, 'mtu': null, "
				    "'guid': null, 'host': {'rdma': []}}";
	json_auto_t *observed = observed_with("{'driver': 'ice'}", NULL), *there = NULL;
	json_auto_t *plan = NULL, *end = NULL;

	add_vf(observed, fresh);
	plan = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), observed);
	has_steps(plan, "probe-driver vf=0000:3c:00.0; wait-vf for=netdev vf=0000:3c:00.0");
	there = observed_with("{'driver': 'ice'}", NULL);
	add_vf(there, "{'guid': null, 'host': {'rdma': []}}");
	end = plan_for(VFS(1, "netdevice", ", 'isRdma': true"), there);
	has_reasons(end, "problems", "VfRangeOutOfRange NoRdmaDevice");
	problems_mention(end, "max_rdma_vfs");
}

/* ---- putting back ---------------------------------------------------------------------------- */

static void puts_back_what_was_touched_and_nothing_else(void **state)
{
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'numVfs': 1, 'mtu': 1500, 'eSwitchMode': "
				  "'legacy', 'driversAutoprobe': false, 'overrides': {}}}}");
	json_auto_t *observed = observed_with("{'mtu': 9000}", NULL);
	json_auto_t *plan = NULL, *never = NULL;

	add_vf(observed, "{'driver': 'vfio-pci', 'mtu': 9000, 'host': {'driverOverride': "
			 "'vfio-pci'}}");
	plan = plan_with("{}", observed, found, NULL, NULL);
	has_steps(plan, "set-driver-override vf=0000:3c:00.0; unbind-driver vf=0000:3c:00.0; "
			"probe-driver vf=0000:3c:00.0; set-autoprobe on=false; "
			"set-mtu device=0000:3c:00.0 mtu=1500; set-mtu mtu=1500; "
			"remove-udev-rule rule=nm-unmanaged");
	assert_true(json_same(json_at(plan, "found"), found));
	never = plan_for("{}", observed);
	has_steps(never, "");
}

/* It may be out of the spec only because it was away. */
static void puts_nothing_back_that_has_just_come(void **state)
{
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'numVfs': 0}}}");
	json_auto_t *observed = observed_with("{'host': {'arrivedMs': 7}}", NULL);
	json_auto_t *plan = NULL, *later = NULL;

	add_vf(observed, "{}");
	plan = plan_with("{}", observed, found, NULL, NULL);
	has_steps(plan, "");
	assert_true(json_same(json_at(plan, "found"), found));
	json_object_del(json_at(pf_at(observed, 0), "host"), "arrivedMs");
	later = plan_with("{}", observed, found, NULL, NULL);
	has_steps(later, "set-num-vfs count=0 from=1");
}

/*
 * A pod's macvlan, say: it would get a smaller MTU, too, and go with the PF's interface when the
 * switch changes.
 */
static void leaves_a_pf_alone_on_which_interfaces_of_pods_lie(void **state)
{
	static const char carried[] = "{'mtu': 9000, 'host': {'carries': 'macvlan net1 in ns'}}";
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'mtu': 1500, 'udevRules': "
				  "['nm-unmanaged']}}}");
	json_auto_t *observed = observed_with(carried, NULL), *free_pf = NULL;
	json_auto_t *lower = NULL, *change = NULL, *make = NULL, *after = NULL;
	json_auto_t *dropping = NULL, *shaken = NULL;

	lower = plan_with("{}", observed, found, NULL, NULL);
	has_steps(lower, "");
	has_reasons(lower, "blocked", "PfInUse");
	blocked_ends(lower, ": it waits until that is gone; remove it, or leave it: nothing is "
			    "taken from it");
	assert_true(json_same(json_at(lower, "found"), found));
	assert_string_equal(json_str_at(json_array_get(json_at(lower, "blocked"), 0), "holder"),
			    "macvlan net1 in ns");
	change = plan_for(SPEC("'numVfs': 2, 'eSwitchMode': 'switchdev'"), observed);
	has_steps(change, "write-udev-rule name=eth1 rule=pf-name");
	has_reasons(change, "blocked", "PfInUse");
	/* More VFs, or a larger MTU, harm nobody. */
	make = plan_for(SPEC("'numVfs': 2, 'mtu': 9500"), observed);
	has_steps(make, "set-mtu mtu=9500; set-autoprobe on=false; set-num-vfs count=2 from=0; "
			"wait-vfs count=2");
	has_reasons(make, "blocked", "");
	dropping =
		observed_with("{'driver': 'igb', 'host': {'carries': 'macvlan net1 in ns'}}", NULL);
	shaken = plan_for(SPEC("'numVfs': 2"), dropping);
	has_steps(shaken, "");
	has_reasons(shaken, "blocked", "PfInUse");
	free_pf = observed_with("{'mtu': 9000}", NULL);
	after = plan_with("{}", free_pf, found, NULL, NULL);
	has_steps(after, "set-mtu mtu=1500");
}

static void keeps_what_was_found_until_it_is_put_back(void **state)
{
	static const struct {
		const char *spec, *found, *pf;
		bool is_kept;
	} cases[] = {
		/* All is as it was. */
		{"{}", "{'numVfs': 0, 'mtu': 1500, 'udevRules': ['nm-unmanaged']}", NULL, false},
		/* Another card in that slot. */
		{"{}", "{'numVfs': 4, 'deviceID': '1013'}", NULL, false},
		{"{}", "{'numVfs': 4, 'permanentMac': '0c:42:a1:00:00:00'}", NULL, false},
		/* More than it had: not our doing. */
		{"{}", "{'numVfs': 0, 'mtu': 9000, 'udevRules': ['nm-unmanaged']}", NULL, false},
		/* Still to do. */
		{"{}", "{'numVfs': 4, 'mtu': 1500}", NULL, true},
		/* Named by spec, if wrongly. */
		{SPEC("'numVfs': 'x'"), "{'numVfs': 4}", NULL, true},
		{"{'interfaces': [{'numVfs': 2}]}", "{'numVfs': 4}", NULL, true},
		/* Somebody else's now. */
		{SPEC("'externallyManaged': true"), "{'numVfs': 4}", NULL, false},
		/* It must not be touched, and somebody may change that. */
		{"{}", "{'numVfs': 4}", "{'host': {'protected': 'carries it'}}", true},
		/* It is not there at the moment. */
		{"{}", "{'numVfs': 4}", "{'pciAddress': '0000:ee:00.0'}", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *observed = observed_with(cases[i].pf, NULL), *plan = NULL;
		auto_free char *text = str_printf("{'pfs': {'" P1 "': %s}}", cases[i].found);
		json_auto_t *found = yaml(text);
		bool is_kept;

		plan = plan_with(cases[i].spec, observed, found, NULL, NULL);
		is_kept = json_at(plan, "found", "pfs", P1);
		if (is_kept != cases[i].is_kept)
			fail_msg("case %zu: %s", i, json_text(plan));
	}
}

static void keeps_the_switch_as_it_is_when_nobody_says(void **state)
{
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'eSwitchMode': 'legacy', 'numVfs': 0}}}");
	json_auto_t *observed = observed_with("{'eSwitchMode': 'switchdev'}", NULL);
	json_auto_t *foreign = plan_for(SPEC("'numVfs': 0"), observed);
	json_auto_t *ours = plan_with(SPEC("'numVfs': 0"), observed, found, NULL, NULL);

	has_steps(foreign, "");
	has_steps(ours, "set-eswitch mode=legacy");
}

static void removes_no_vfs_for_a_switch_that_it_cannot_read_or_set(void **state)
{
	static const char *const unsure[] = {
		"{'eSwitchMode': null, 'numVfs': 1, 'mtu': 9000}",
		"{'numVfs': 1, 'mtu': 9000, 'host': {'devlink': false}}",
	};
	json_auto_t *found = yaml("{'pfs': {'" P1 "': {'eSwitchMode': 'switchdev', 'numVfs': 1, "
				  "'mtu': 1500, 'driversAutoprobe': true, 'overrides': {}, "
				  "'udevRules': ['nm-unmanaged']}}}");

	for (size_t i = 0; i < ARRAY_LEN(unsure); i++) {
		json_auto_t *observed = observed_with(unsure[i], NULL);
		json_auto_t *wanted = NULL, *unwanted = NULL;

		add_vf(observed, "{}");
		wanted = plan_with(SPEC("'numVfs': 1"), observed, found, NULL, NULL);
		has_steps(wanted, "");
		unwanted = plan_with("{}", observed, found, NULL, NULL);
		has_steps(unwanted, "set-mtu mtu=1500");
		assert_true(json_same(json_at(unwanted, "found"), found));
	}
}

static void removes_its_file_for_the_next_boot_also_when_what_was_found_is_lost(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *lost = NULL, *never = NULL;

	never = plan_for("{}", observed);
	has_steps(never, "");
	json_object_set_new(json_at(observed, "rdma", "netnsModeNextBoot"), "own",
			    json_string("exclusive"));
	lost = plan_for("{}", observed);
	has_steps(lost, "remove-rdma-next-boot");
}

static void announces_a_mode_that_the_next_boot_changes(void **state)
{
	json_auto_t *observed = observed_with(NULL, NULL), *same = NULL, *changes = NULL;
	json_auto_t *wanted = NULL;

	same = plan_for("{}", observed);
	assert_null(json_at(same, "nextBoot"));
	json_object_set_new(json_at(observed, "rdma"), "netnsMode", json_string("exclusive"));
	changes = plan_for("{}", observed);
	has_steps(changes, "");
	assert_null(json_at(changes, "reboot"));
	assert_string_equal(json_str_at(changes, "nextBoot", "reason"), "RdmaModeAtNextBoot");
	assert_non_null(strstr(json_str_at(changes, "nextBoot", "message"),
			       "becomes shared at the next boot, since nobody wants one any more"));
	wanted = plan_for("{'system': {'rdmaMode': 'exclusive'}}", observed);
	assert_null(json_at(wanted, "nextBoot"));
}

static void never_lowers_the_mtu_of_a_pf_that_is_wanted(void **state)
{
	json_auto_t *observed = observed_with("{'mtu': 9000}", NULL);
	json_auto_t *plan = plan_for(SPEC("'numVfs': 0, 'mtu': 1500"), observed);

	has_steps(plan, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_a_host_cannot_do),
		cmocka_unit_test(prepares_new_vfs_with_autoprobe_off),
		cmocka_unit_test(writes_no_rule_for_a_program_that_is_not_there),
		cmocka_unit_test(changes_nothing_beside_another_program_that_does),
		cmocka_unit_test(ends_no_lag_that_others_use_unless_asked_to),
		cmocka_unit_test(gives_addresses_to_all_before_drivers_start),
		cmocka_unit_test(goes_through_zero_and_through_the_switch),
		cmocka_unit_test(rebinds_one_vf_after_the_other),
		cmocka_unit_test(loads_what_rdma_needs),
		cmocka_unit_test(tells_what_cannot_be_done_and_does_the_rest),
		cmocka_unit_test(names_the_driver_that_makes_no_vfs),
		cmocka_unit_test(names_the_command_where_only_firmware_can_change_it),
		cmocka_unit_test(tells_of_groups_and_leaves_their_vfs_alone),
		cmocka_unit_test(tells_of_pfs_that_are_not_there),
		cmocka_unit_test(tells_of_a_pf_that_was_there_a_moment_ago),
		cmocka_unit_test(does_nothing_where_sys_cannot_be_written),
		cmocka_unit_test(tells_of_bridges),
		cmocka_unit_test(refuses_a_spec_of_the_wrong_shape),
		cmocka_unit_test(does_nothing_before_anything_was_said),
		cmocka_unit_test(sets_up_vfs_of_an_external_pf_and_nothing_else),
		cmocka_unit_test(leaves_the_vf_alone_that_carries_the_node),
		cmocka_unit_test(makes_vfs_on_the_nodes_own_nic_only_when_a_policy_says_so),
		cmocka_unit_test(says_nothing_of_a_protected_pf_that_is_as_wanted),
		cmocka_unit_test(names_who_holds_what_is_in_the_way),
		cmocka_unit_test(
			starts_the_drivers_of_new_vfs_in_order_whoever_had_them_before_the_boot),
		cmocka_unit_test(touches_no_vf_before_the_kubelet_has_said_which_are_given),
		cmocka_unit_test(does_not_remove_vfs_that_it_cannot_see),
		cmocka_unit_test(starts_a_vf_anew_whose_guid_is_none),
		cmocka_unit_test(sets_firmware_only_when_asked_to),
		cmocka_unit_test(keeps_a_mac_address_that_works),
		cmocka_unit_test(gives_infiniband_vfs_the_guids_of_the_pool),
		cmocka_unit_test(changes_a_guid_that_is_not_the_pools),
		cmocka_unit_test(tells_of_rdma_that_is_not_there),
		cmocka_unit_test(leaves_out_what_was_refused_and_what_needs_it),
		cmocka_unit_test(gives_a_driver_to_a_vf_whose_pf_cannot_give_it_a_mac),
		cmocka_unit_test(does_not_begin_a_way_that_was_refused),
		cmocka_unit_test(tries_the_switch_before_its_vfs_and_after_them),
		cmocka_unit_test(keeps_vfs_for_a_switch_that_is_set_after_them),
		cmocka_unit_test(gives_no_drivers_while_a_mode_is_refused),
		cmocka_unit_test(leaves_a_switch_elsewhere_to_whoever_has_it),
		cmocka_unit_test(does_not_wait_for_rdma_of_vfs_that_get_none),
		cmocka_unit_test(puts_back_what_was_touched_and_nothing_else),
		cmocka_unit_test(leaves_a_pf_alone_on_which_interfaces_of_pods_lie),
		cmocka_unit_test(puts_nothing_back_that_has_just_come),
		cmocka_unit_test(keeps_what_was_found_until_it_is_put_back),
		cmocka_unit_test(keeps_the_switch_as_it_is_when_nobody_says),
		cmocka_unit_test(removes_no_vfs_for_a_switch_that_it_cannot_read_or_set),
		cmocka_unit_test(announces_a_mode_that_the_next_boot_changes),
		cmocka_unit_test(
			removes_its_file_for_the_next_boot_also_when_what_was_found_is_lost),
		cmocka_unit_test(never_lowers_the_mtu_of_a_pf_that_is_wanted),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

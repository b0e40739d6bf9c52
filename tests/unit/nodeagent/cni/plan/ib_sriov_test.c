// SPDX-License-Identifier: Apache-2.0
/* The ib-sriov plugin's configuration and GUIDs. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/ib_sriov.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/support/yaml.h"

#define DEVICE "deviceID: '0000:3b:02.1'"

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *reason, *says;
	} cases[] = {
		{"{}", "BadField", "deviceID"},
		{"{" DEVICE ", runtimeConfig: {infinibandGUID: x}}", "BadField", "guid"},
		{"{" DEVICE ", args: {cni: {guid: '00:00:00:00:00:00:00:00'}}}", "BadField",
		 "guid"},
		{"{" DEVICE ", args: {cni: {guid: 'ff:ff:ff:ff:ff:ff:ff:ff'}}}", "BadField",
		 "guid"},
		{"{" DEVICE ", link_state: up}", "BadField", "link_state"},
		{"{" DEVICE ", ipam: {type: dhcp}}", "BadField", "dhcp"},
		{"{" DEVICE ", ibKubernetesEnabled: true}", "GuidNotReady", "not configured"},
		{"{" DEVICE ", ibKubernetesEnabled: true, args: {cni: {mellanox.infiniband.app: "
		 "configured}}}",
		 "GuidNotReady", "no GUID"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_ib_sriov_config struct ib_sriov_config read = {0};
		struct err err = {0};

		assert_int_equal(ib_sriov_config_read(config, &read, &err), -1);
		assert_string_equal(err.reason, cases[i].reason);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(the_runtimes_guid_comes_first_and_is_put_back)
{
	json_auto_t *config =
		yaml("{" DEVICE ", rdmaIsolation: true, runtimeConfig: {infinibandGUID: "
		     "'02:00:00:00:00:00:00:0A'}, args: {cni: {guid: "
		     "'02:00:00:00:00:00:00:0b'}}}");
	json_auto_t *now = yaml("{nodeGuid: '02:00:00:00:00:00:00:01', portGuid: "
				"'02:00:00:00:00:00:00:01', linkState: 0}");
	json_auto_t *steps = json_array(), *undo = NULL;
	json_auto_t *want = yaml("[{in: host, do: vf, dev: ib0, vf: 3, portGuid: "
				 "'02:00:00:00:00:00:00:01'}, {in: host, do: vf, dev: ib0, vf: 3, "
				 "nodeGuid: '02:00:00:00:00:00:00:01'}]");
	auto_ib_sriov_config struct ib_sriov_config read = {0};

	assert_int_equal(ib_sriov_config_read(config, &read, NULL), 0);
	assert_true(read.isolated);
	assert_string_equal(read.guid, "02:00:00:00:00:00:00:0a");
	sriov_plan_settings("ib0", 3, now, read.wanted, steps);
	undo = steps_undo(steps);
	assert_true(json_same(undo, want));
}

TEST(a_guid_that_is_set_already_changes_nothing)
{
	json_auto_t *wanted = yaml("{nodeGuid: '02:00:00:00:00:00:00:01', portGuid: "
				   "'02:00:00:00:00:00:00:01'}");
	json_auto_t *steps = json_array();

	sriov_plan_settings("ib0", 3, wanted, wanted, steps);
	assert_int_equal(json_array_size(steps), 0);
}

TEST(an_interfaces_guid_ends_its_address)
{
	char guid[TEXT_GUID_SIZE];

	assert_true(ib_sriov_guid_of("00:00:10:87:fe:80:00:00:00:00:00:00:02:00:00:00:00:00:00:07",
				     guid));
	assert_string_equal(guid, "02:00:00:00:00:00:00:07");
	assert_false(ib_sriov_guid_of("02:00:00:00:00:01", guid));
	assert_false(ib_sriov_guid_of(NULL, guid));
}

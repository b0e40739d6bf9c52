/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of networks as Go's decoder takes them: keys in any case, values of one type. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/coordinator_config.h"
#include "nodeagent/cni/plan/ib_sriov.h"
#include "nodeagent/cni/plan/sriov.h"
#include "tests/support/yaml.h"

#define VF "deviceID: '0000:03:02.3', "

TEST(keys_count_in_any_case)
{
	json_auto_t *config =
		yaml("{DeviceID: '0000:03:02.3', Vlan: 100, spoofChk: 'off', TRUST: 'on'}");
	auto_sriov_config struct sriov_config read = {0};

	assert_int_equal(sriov_config_read(config, NULL, &read, NULL), 0);
	assert_string_equal(read.device, "0000:03:02.3");
	assert_int_equal(json_integer_value(json_at(read.wanted, "vlan")), 100);
	assert_true(json_is_false(json_at(read.wanted, "spoofchk")));
	assert_true(json_is_true(json_at(read.wanted, "trust")));
}

TEST(of_two_spellings_the_last_counts)
{
	json_auto_t *config = yaml("{vlan: 1, Vlan: 2}");
	json_auto_t *folded = config_keys_fold(config, "sriov");
	auto_free char *text = json_text(folded);

	assert_string_equal(text, "{\"vlan\":2}");
}

TEST(null_counts_as_absent_and_foreign_keys_stay)
{
	json_auto_t *config = yaml("{vlan: null, Mine: null, runtimeConfig: {}}");
	json_auto_t *folded = config_keys_fold(config, "sriov");
	auto_free char *text = json_text(folded);

	assert_string_equal(text, "{\"Mine\":null,\"runtimeConfig\":{}}");
}

/* Nor of a type that no program can have. */
TEST(a_type_of_ipam_that_is_no_name_is_refused)
{
	static const char *const cases[] = {"{ipam: {type: 5}}", "{IPAM: {Type: [static]}}",
					    "{ipam: {type: ../static}}", "{ipam: {type: '..'}}"};
	json_auto_t *none = yaml("{ipam: {type: null}, vlan: 1}"), *read = NULL;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i]);

		assert_int_equal(config_keys_read(config, "sriov", &read, &err), -1);
		assert_string_equal(
			err.text, "sriov: ipam.type must be the name of an IPAM plugin, in quotes");
	}
	assert_int_equal(config_keys_read(none, "sriov", &read, &err), 0);
}

/* Else an interface would come without the addresses that its network asks for. */
TEST(the_type_of_ipam_counts_in_any_case)
{
	json_auto_t *config = yaml("{Ipam: {TYPE: spiderpool, Mine: 1}}");
	json_auto_t *folded = config_keys_fold(config, "macvlan");
	auto_free char *text = json_text(folded);

	assert_string_equal(text, "{\"ipam\":{\"Mine\":1,\"type\":\"spiderpool\"}}");
}

TEST(a_value_of_another_type_ends_the_call)
{
	static const struct {
		const char *type, *config, *key;
	} cases[] = {
		{"sriov", "{" VF "spoofchk: true}", "spoofchk"},
		{"sriov", "{" VF "trust: false}", "trust"},
		{"sriov", "{" VF "SpoofChk: 1}", "spoofchk"},
		{"sriov", "{" VF "link_state: 1}", "link_state"},
		{"sriov", "{" VF "mac: 5}", "mac"},
		{"sriov", "{" VF "vlan: '100'}", "vlan"},
		{"sriov", "{" VF "vlanProto: 802}", "vlanProto"},
		{"sriov", "{" VF "min_tx_rate: '1'}", "min_tx_rate"},
		{"sriov", "{" VF "runtimeConfig: 'x'}", "runtimeConfig"},
		{"sriov", "{deviceID: 3}", "deviceID"},
		{"ib-sriov", "{" VF "rdmaIsolation: 'true'}", "rdmaIsolation"},
		{"ib-sriov", "{" VF "ibKubernetesEnabled: 1}", "ibKubernetesEnabled"},
		{"ib-sriov", "{" VF "link_state: false}", "link_state"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_sriov_config struct sriov_config vf = {0};
		auto_ib_sriov_config struct ib_sriov_config ib = {0};
		struct err err = {0};

		if (str_eq(cases[i].type, "sriov"))
			assert_int_equal(sriov_config_read(config, NULL, &vf, &err), -1);
		else
			assert_int_equal(ib_sriov_config_read(config, &ib, &err), -1);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].key))
			fail_msg("%s: %s", cases[i].config, err.text);
	}
}

TEST(a_mac_may_have_dashes_as_in_the_annotation)
{
	json_auto_t *config = yaml("{" VF "runtimeConfig: {mac: 02-23-45-67-89-AB}}");
	json_auto_t *mixed = yaml("{" VF "mac: '02-23:45-67-89-AB'}");
	auto_sriov_config struct sriov_config read = {0}, none = {0};

	assert_int_equal(sriov_config_read(config, NULL, &read, NULL), 0);
	assert_string_equal(read.mac, "02:23:45:67:89:ab");
	assert_int_equal(sriov_config_read(mixed, NULL, &none, NULL), -1);
}

TEST(a_coordinator_takes_its_keys_in_any_case)
{
	json_auto_t *config = yaml("{Mode: disabled, HostRuleTable: 600}");
	auto_coordinator_config struct coordinator_config read = {0};

	assert_int_equal(coordinator_config_read(config, NULL, &read, NULL), 0);
	assert_int_equal(read.mode, COORDINATOR_DISABLED);
	assert_int_equal(read.host_table, 600);
}

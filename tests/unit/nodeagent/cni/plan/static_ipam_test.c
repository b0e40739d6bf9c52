// SPDX-License-Identifier: Apache-2.0
/* static: whose addresses count. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/static_ipam.h"
#include "tests/support/yaml.h"

#define IPAM "ipam: {addresses: [{address: 10.9.0.5/24, gateway: 10.9.0.1}]}"

TEST(the_runtime_goes_before_the_network_and_that_before_the_rest)
{
	static const struct {
		const char *config, *args, *ips;
	} cases[] = {
		{"{" IPAM "}", NULL, "[{address: 10.9.0.5/24, gateway: 10.9.0.1}]"},
		{"{ipam: {}}", NULL, "[]"},
		{"{cniVersion: 1.0.0, " IPAM "}", "IP=10.9.0.8/24;GATEWAY=10.9.0.2",
		 "[{address: 10.9.0.5/24, gateway: 10.9.0.1},"
		 " {address: 10.9.0.8/24, gateway: 10.9.0.2}]"},
		{"{" IPAM ", args: {cni: {ips: [10.9.0.7/24]}}}", "IP=10.9.0.8/24",
		 "[{address: 10.9.0.7/24}]"},
		{"{" IPAM ", args: {cni: {ips: [10.9.0.7/24]}},"
		 " runtimeConfig: {ips: ['FD09::6/64']}}",
		 NULL, "[{address: 'fd09::6/64'}]"},
		{"{" IPAM ", args: {cni: {ips: []}}, runtimeConfig: {ips: null}}", NULL,
		 "[{address: 10.9.0.5/24, gateway: 10.9.0.1}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *want = yaml(cases[i].ips);
		json_auto_t *result = NULL;
		struct err err = {0};

		if (static_ipam_result(config, cases[i].args, &result, &err))
			fail_msg("case %zu: %s", i, err.text);
		if (!json_same(json_at(result, "ips"), want))
			fail_msg("case %zu: %s", i, json_text(result));
	}
}

TEST(wrong_values_are_named)
{
	static const struct {
		const char *config, *args, *says;
	} cases[] = {
		{"{}", NULL, "ipam must be"},
		{"{ipam: {addresses: 5}}", NULL, "addresses must be"},
		{"{ipam: {addresses: [{}]}}", NULL, "address \"\" must have"},
		{"{ipam: {addresses: [5]}}", NULL, "address \"\" must have"},
		{"{ipam: {addresses: [{address: 5}]}}", NULL, "a string"},
		{"{ipam: {addresses: [{address: 10.9.0.5/24, gateway: x}]}}", NULL,
		 "gateway \"x\""},
		{"{ipam: {routes: [{dst: x}]}}", NULL, "routes[0].dst"},
		{"{ipam: {dns: 5}}", NULL, "dns must be"},
		{"{ipam: {}}", "IP=10.9.0.5", "address \"10.9.0.5\""},
		{"{ipam: {}}", "GATEWAY=x", "GATEWAY \"x\""},
		{"{ipam: {}, runtimeConfig: {ips: [10.9.0.5/24, 10.9.0.6/24]}}", NULL,
		 "one address of each family"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *result = NULL;
		struct err err = {0};

		if (static_ipam_result(config, cases[i].args, &result, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(check_compares_gateways)
{
	json_auto_t *wanted = yaml("{ips: [{address: 10.9.0.5/24, gateway: 10.9.0.1}]}");
	json_auto_t *right = yaml("{ips: [{address: 10.9.0.5/16, gateway: 10.9.0.1}]}");
	json_auto_t *wrong = yaml("{ips: [{address: 10.9.0.5/24}]}"), *other = yaml("{ips: []}");
	struct err err = {0};

	assert_int_equal(static_ipam_check(wanted, right, &err), 0);
	assert_int_equal(static_ipam_check(wanted, other, &err), 0);
	assert_int_equal(static_ipam_check(wanted, NULL, &err), -1);
	assert_string_equal(err.reason, "BadField");
	assert_int_equal(static_ipam_check(wanted, wrong, &err), -1);
	assert_string_equal(err.reason, "NotAsAdded");
}

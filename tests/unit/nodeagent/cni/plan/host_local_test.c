// SPDX-License-Identifier: Apache-2.0
/* host-local: ranges as configurations have them, and the order in which addresses are tried. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/host_local.h"
#include "tests/support/yaml.h"

/* "10.9.0.2 10.9.0.3": all addresses of the first set, at most `max`, from behind `last`. */
static char *walked(const char *ipam, const char *last_text, size_t max)
{
	auto_free char *text = str_printf("{name: net, cniVersion: 1.0.0, ipam: %s}", ipam);
	json_auto_t *config = yaml(text);
	auto_host_local_config struct host_local_config read = {0};
	struct host_local_walk walk;
	struct addr last = {0}, address;
	struct strbuf out = {0};
	struct err err = {0};

	if (host_local_config_read(config, NULL, false, &read, &err))
		return str_dup(err.text);
	(void)addr_parse(last_text, &last);
	host_local_walk_init(&walk, &read.sets[0], &last);
	for (size_t i = 0; i < max && host_local_walk_next(&walk, &address); i++) {
		char printed[ADDR_TEXT_SIZE];

		addr_print(&address, printed);
		strbuf_addf(&out, "%s%s", i ? " " : "", printed);
	}
	return strbuf_take(&out);
}

TEST(each_address_is_tried_once_and_never_the_gateway)
{
	static const struct {
		const char *ipam, *last, *want;
	} cases[] = {
		{"{subnet: 10.9.0.0/29}", "", "10.9.0.2 10.9.0.3 10.9.0.4 10.9.0.5 10.9.0.6"},
		{"{subnet: 10.9.0.0/29}", "10.9.0.4",
		 "10.9.0.5 10.9.0.6 10.9.0.2 10.9.0.3 10.9.0.4"},
		{"{subnet: 10.9.0.0/29}", "10.7.0.1",
		 "10.9.0.2 10.9.0.3 10.9.0.4 10.9.0.5 10.9.0.6"},
		{"{subnet: 10.9.0.0/29, gateway: 10.9.0.4}", "",
		 "10.9.0.1 10.9.0.2 10.9.0.3 10.9.0.5 10.9.0.6"},
		{"{subnet: 10.9.0.0/24, rangeStart: 10.9.0.9, rangeEnd: 10.9.0.10}", "",
		 "10.9.0.9 10.9.0.10"},
		{"{subnet: 10.9.0.0/24, rangeStart: 10.9.0.9, rangeEnd: 10.9.0.9,"
		 " gateway: 10.9.0.9}",
		 "", ""},
		{"{ranges: [[{subnet: 10.9.0.0/30}, {subnet: 10.8.0.0/30}]]}", "",
		 "10.9.0.2 10.8.0.2"},
		{"{ranges: [[{subnet: 10.9.0.0/30}, {subnet: 10.8.0.0/30}]]}", "10.9.0.2",
		 "10.8.0.2 10.9.0.2"},
		{"{subnet: 'fd09::fffc/126', gateway: 'fd09::fffc'}", "",
		 "fd09::fffd fd09::fffe fd09::ffff"},
		{"{subnet: 10.9.0.255/31}", "",
		 "host-local: subnet 10.9.0.255/31 must have room for two hosts"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = walked(cases[i].ipam, cases[i].last, 20);

		assert_string_equal(got, cases[i].want);
	}
}

TEST(a_carry_goes_through_all_octets)
{
	auto_free char *v4 = walked("{subnet: 10.0.0.0/8, rangeStart: 10.0.255.254}", "", 4);
	auto_free char *v6 = walked("{subnet: 'fd09::/64', rangeStart: 'fd09::ffff:fffe'}", "", 3);

	assert_string_equal(v4, "10.0.255.254 10.0.255.255 10.1.0.0 10.1.0.1");
	assert_string_equal(v6, "fd09::ffff:fffe fd09::ffff:ffff fd09::1:0:0");
}

TEST(wrong_values_are_named)
{
	static const struct {
		const char *config, *says;
	} cases[] = {
		{"{name: net}", "ipam must be"},
		{"{name: a/b, ipam: {subnet: 10.9.0.0/24}}", "name must be"},
		{"{name: .., ipam: {subnet: 10.9.0.0/24}}", "name must be"},
		{"{name: net, ipam: {}}", "there is no address"},
		{"{name: net, ipam: {subnet: 5}}", "a string"},
		{"{name: net, ipam: {ranges: {}}}", "list of lists"},
		{"{name: net, ipam: {ranges: [{}]}}", "lists of 1 to 64"},
		{"{name: net, ipam: {ranges: [[5]]}}", "subnet must be"},
		{"{name: net, ipam: {subnet: 10.9.0.1/24}}", "the network is 10.9.0.0/24"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24, gateway: 'fd09::1'}}",
		 "family of subnet"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24, rangeEnd: 10.8.0.0}}",
		 "rangeEnd must be"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24, rangeStart: 10.9.0.255}}",
		 "rangeEnd must be an address of subnet, not before rangeStart"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24}, runtimeConfig: {ips: 5}}",
		 "ips must be"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24}, args: {cni: {ips: [5]}}}",
		 "args.cni.ips[0] must be"},
		{"{name: net, ipam: {subnet: 10.9.0.0/24}, runtimeConfig: {ips: [x]}}",
		 "\"x\" must be an address"},
		{"{name: net, ipam: {ranges: [[{subnet: 10.9.0.0/24}], [{subnet: 10.8.0.0/24}]]}}",
		 "one address of each family"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_host_local_config struct host_local_config read = {0};
		struct err err = {0};

		if (host_local_config_read(config, NULL, false, &read, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(del_needs_no_more_than_the_place)
{
	json_auto_t *config = yaml("{name: net, ipam: {ranges: 5, dataDir: /d}}");
	auto_host_local_config struct host_local_config read = {0};

	assert_int_equal(host_local_config_read(config, NULL, true, &read, NULL), 0);
	assert_string_equal(read.data_dir, "/d");
	assert_string_equal(read.network, "net");
}

TEST(dns_is_read_as_resolvers_do)
{
	json_auto_t *dns = host_local_dns("# c\n; c\n\tnameserver 10.0.0.1 x\r\nnameserver\n"
					  "search a.b  c.d\noptions ndots:2 edns0\n"
					  "domain e.f\nnameserver fd00::1");
	json_auto_t *want = yaml("{nameservers: [10.0.0.1, 'fd00::1'], search: [a.b, c.d],"
				 " options: ['ndots:2', edns0], domain: e.f}");
	json_auto_t *none = host_local_dns(""), *nothing = json_object();

	assert_true(json_same(dns, want));
	assert_true(json_same(none, nothing));
}

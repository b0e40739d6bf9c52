// SPDX-License-Identifier: Apache-2.0
/* CNI results: every version in, every version out, and what is refused. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/server/cni_error.h"

static json_t *parse(const char *text)
{
	json_t *value = json_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

static json_t *read_text(const char *text, const char *version, struct err *err)
{
	json_auto_t *value = parse(text);
	json_t *result = NULL;

	return result_read(value, version, &result, err) ? NULL : result;
}

static void assert_written(const char *text, const char *as, const char *want)
{
	json_auto_t *result = read_text(text, "0.3.1", NULL);
	json_auto_t *out = NULL;
	auto_free char *got = NULL;

	assert_non_null(result);
	out = result_write(result, as);
	got = json_text(out);
	assert_string_equal(got, want);
}

static const char NEW[] =
	"{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":\"net1\",\"mac\":\"02:00:00:00:00:"
	"01\","
	"\"mtu\":4200,\"sandbox\":\"/run/netns/a\",\"pciID\":\"0000:3b:02.1\"}],"
	"\"ips\":[{\"address\":\"10.7.0.51/16\",\"gateway\":\"10.7.0.1\",\"interface\":0},"
	"{\"address\":\"FD07::0051/64\"}],"
	"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.7.0.1\",\"table\":101,\"priority\":5}],"
	"\"dns\":{\"nameservers\":[\"10.0.0.10\"]}}";

TEST(a_new_result_becomes_an_old_one)
{
	assert_written(NEW, "0.3.1",
		       "{\"cniVersion\":\"0.3.1\",\"dns\":{\"nameservers\":[\"10.0.0.10\"]},"
		       "\"interfaces\":[{\"mac\":\"02:00:00:00:00:01\",\"name\":\"net1\","
		       "\"sandbox\":\"/run/netns/a\"}],"
		       "\"ips\":[{\"address\":\"10.7.0.51/16\",\"gateway\":\"10.7.0.1\","
		       "\"interface\":0,\"version\":\"4\"},"
		       "{\"address\":\"fd07::51/64\",\"version\":\"6\"}],"
		       "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.7.0.1\"}]}");
}

TEST(an_old_result_becomes_a_new_one)
{
	assert_written("{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":"
		       "\"10.7.0.51/16\",\"interface\":1.0}]}",
		       "1.1.0",
		       "{\"cniVersion\":\"1.1.0\",\"dns\":{},\"ips\":[{\"address\":"
		       "\"10.7.0.51/16\",\"interface\":1}]}");
}

TEST(ip4_and_ip6_of_the_first_versions_are_read)
{
	assert_written("{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.7.0.51/16\",\"gateway\":"
		       "\"10.7.0.1\",\"routes\":[{\"dst\":\"0.0.0.0/0\"}]},"
		       "\"ip6\":{\"ip\":\"fd07::51/64\"}}",
		       "0.3.0",
		       "{\"cniVersion\":\"0.3.0\",\"dns\":{},\"ips\":[{\"address\":"
		       "\"10.7.0.51/16\",\"gateway\":\"10.7.0.1\",\"version\":\"4\"},"
		       "{\"address\":\"fd07::51/64\",\"version\":\"6\"}],"
		       "\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}");
}

TEST(the_first_versions_get_one_address_of_each_family)
{
	assert_written(NEW, "0.2.0",
		       "{\"cniVersion\":\"0.2.0\",\"dns\":{\"nameservers\":[\"10.0.0.10\"]},"
		       "\"ip4\":{\"gateway\":\"10.7.0.1\",\"ip\":\"10.7.0.51/16\","
		       "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.7.0.1\"}]},"
		       "\"ip6\":{\"ip\":\"fd07::51/64\"}}");
	assert_written("{\"ips\":[]}", "0.1.0", "{\"cniVersion\":\"0.1.0\",\"dns\":{}}");
}

TEST(a_configuration_without_version_is_of_the_first)
{
	static const struct {
		const char *config, *want;
	} cases[] = {
		{"{}", "0.1.0"},
		{"{\"cniVersion\":\"\"}", "0.1.0"},
		{"{\"cniVersion\":null}", "0.1.0"},
		{"{\"cniVersion\":\"1.0.0\"}", "1.0.0"},
		{"{\"cniVersion\":1}", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = parse(cases[i].config);

		assert_string_equal(result_version_of(config), cases[i].want);
	}
}

TEST(a_result_without_version_is_of_the_configurations)
{
	assert_written("{\"ips\":[{\"address\":\"::a06:1/128\"}]}", "1.0.0",
		       "{\"cniVersion\":\"1.0.0\",\"dns\":{},\"ips\":[{\"address\":\"::a06:1/"
		       "128\"}]}");
}

TEST(every_version_reads_what_it_writes)
{
	for (size_t i = 0; i < result_n_versions; i++) {
		json_auto_t *result = read_text(NEW, NULL, NULL), *out = NULL, *again = NULL;
		json_auto_t *twice = NULL;

		out = result_write(result, result_versions[i]);
		assert_int_equal(result_read(out, NULL, &again, NULL), 0);
		twice = result_write(again, result_versions[i]);
		assert_true(json_same(out, twice));
	}
}

TEST(what_is_no_result_is_refused_by_name)
{
	static const struct {
		const char *text, *reason, *says;
	} cases[] = {
		{"[]", "BadResult", "must be an object"},
		{"{\"cniVersion\":\"2.0.0\"}", "BadCniVersion", "2.0.0"},
		{"{\"ips\":{}}", "BadResult", "ips must be a list"},
		{"{\"ips\":[{}]}", "BadResult", "ips[0].address"},
		{"{\"ips\":[{\"address\":\"10.7.0.51\"}]}", "BadResult", "ips[0].address"},
		{"{\"ips\":[{\"address\":\"10.7.0.51/33\"}]}", "BadResult", "ips[0].address"},
		{"{\"ips\":[{\"address\":\"10.7.0.51/-1\"}]}", "BadResult", "ips[0].address"},
		{"{\"ips\":[{\"address\":\"10.7.0.51/8\",\"gateway\":\"x\"}]}", "BadResult",
		 "gateway"},
		{"{\"ips\":[{\"address\":\"10.7.0.51/8\",\"interface\":0.5}]}", "BadResult",
		 "interface"},
		{"{\"interfaces\":[{\"name\":5}]}", "BadResult", "interfaces[0].name"},
		{"{\"interfaces\":[{\"mtu\":\"x\"}]}", "BadResult", "interfaces[0].mtu"},
		{"{\"interfaces\":[1]}", "BadResult", "interfaces[0]"},
		{"{\"routes\":[{\"gw\":\"10.7.0.1\"}]}", "BadResult", "routes[0].dst"},
		{"{\"dns\":{\"search\":[1]}}", "BadResult", "dns.search"},
		{"{\"dns\":{\"domain\":1}}", "BadResult", "dns.domain"},
		{"{\"dns\":[]}", "BadResult", "dns must be"},
		{"{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"x\"}}", "BadResult", "ip4[0].ip"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(read_text(cases[i].text, "0.3.1", &err));
		assert_string_equal(err.reason, cases[i].reason);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].text, err.text);
	}
}

TEST(addresses_are_printed_as_go_does)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"10.7.0.51/16", "10.7.0.51/16"},
		{"FD07:0::51/64", "fd07::51/64"},
		{"::ffff:10.7.0.51/24", "10.7.0.51/24"},
		{"::/0", "::/0"},
		{"::1/128", "::1/128"},
		{"::10.6.0.1/128", "::a06:1/128"},
		{"1:0:0:2:0:0:0:3/64", "1:0:0:2::3/64"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[ADDR_TEXT_SIZE];
		struct addr address;

		assert_true(addr_parse_prefix(cases[i].text, &address));
		addr_print_prefix(&address, text);
		assert_string_equal(text, cases[i].want);
	}
}

TEST(networks_have_no_host_bits_and_contain_their_addresses)
{
	struct addr net, in, out;
	char text[ADDR_TEXT_SIZE];

	assert_true(addr_parse_prefix("10.7.130.51/17", &net));
	assert_true(addr_parse("10.7.255.1", &in));
	assert_true(addr_parse("10.7.127.1", &out));
	assert_true(addr_contains(&net, &in));
	assert_false(addr_contains(&net, &out));
	net = addr_network(&net);
	addr_print_prefix(&net, text);
	assert_string_equal(text, "10.7.128.0/17");
}

TEST(errors_have_the_codes_of_the_specification)
{
	static const struct {
		enum err_class class;
		const char *reason;
		int code;
	} cases[] = {
		{ERR_INVALID, "BadCniVersion", 1},
		{ERR_INVALID, "UnsupportedField", 2},
		{ERR_INVALID, "BadEnvironment", 4},
		{ERR_HOST, "X", 5},
		{ERR_INVALID, "BadJson", 6},
		{ERR_INVALID, "BadField", 7},
		{ERR_HOST, "BadNetns", 8},
		{ERR_TRANSIENT, "X", 11},
		{ERR_CONFLICT, "X", 11},
		{ERR_CONFLICT, "DeviceBusy", 100},
		{ERR_BUG, "Bug", 999},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		(void)err_set(&err, cases[i].class, cases[i].reason, "text");
		assert_int_equal(cni_error_code(&err), cases[i].code);
	}
}

TEST(an_error_never_has_the_words_that_containerd_takes_for_success)
{
	struct err err = {0};
	json_auto_t *object = NULL;
	auto_free char *text = NULL;

	(void)err_set(&err, ERR_HOST, "X",
		      "net1: Link not found: open x: No such file or directory");
	object = cni_error("0.3.1", &err);
	text = json_text(object);
	assert_string_equal(text, "{\"cniVersion\":\"0.3.1\",\"code\":5,\"details\":\"X\","
				  "\"msg\":\"net1: Link missing: open x: missing path\"}");
}

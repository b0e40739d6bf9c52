// SPDX-License-Identifier: Apache-2.0
/* Results of loopback, as the specification of their cniVersion has them. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "lib/base/str.h"
#include "nodeagent/cni/plugin/loopback.h"

#define NEW(version, v4, v6)                                                                       \
	"{\"cniVersion\":\"" version "\",\"interfaces\":[{\"name\":\"lo\",\"mac\":"                \
	"\"00:00:00:00:00:00\",\"sandbox\":\"/ns\"}],\"ips\":[{" v4                                \
	"\"interface\":0,\"address\":\"127.0.0.1/8\"}" v6 "],\"dns\":{}}\n"
#define OLD(version, v6)                                                                           \
	"{\"cniVersion\":\"" version "\",\"ip4\":{\"ip\":\"127.0.0.1/8\"}" v6 ",\"dns\":{}}\n"

TEST(a_result_is_that_of_the_plugin_before_or_of_its_version)
{
	static const struct {
		const char *config;
		bool has_v6;
		const char *want;
	} cases[] = {
		{"{\"cniVersion\":\"1.0.0\"}", false, NEW("1.0.0", "", "")},
		{"{ \"a\" : {\"cniVersion\":\"9\"}, \"cniVersion\" : \"1.1.0\" }", true,
		 NEW("1.1.0", "", ",{\"interface\":0,\"address\":\"::1/128\"}")},
		{"{\"cniVersion\":\"0.4.0\",\"prevResult\": null}", true,
		 NEW("0.4.0", "\"version\":\"4\",",
		     ",{\"version\":\"6\",\"interface\":0,\"address\":\"::1/128\"}")},
		{"{\"cniVersion\":\"0.3.1\"}", false, NEW("0.3.1", "\"version\":\"4\",", "")},
		{"{\"cniVersion\":\"0.2.0\"}", true, OLD("0.2.0", ",\"ip6\":{\"ip\":\"::1/128\"}")},
		{"{}", false, OLD("0.1.0", "")},
		{"{\"cniVersion\":\"%n\\\"\"}", false, OLD("0.1.0", "")},
		{"", false, OLD("0.1.0", "")},
		/* In a chain, whatever that has. */
		{"{\"name\":\"}{\\\"\",\"prevResult\": {\"cniVersion\":\"1.0.0\", "
		 "\"ips\":[{\"a\":\"}\"}]}"
		 " ,\"cniVersion\":\"1.0.0\"}",
		 true, "{\"cniVersion\":\"1.0.0\", \"ips\":[{\"a\":\"}\"}]}\n"},
		{"{\"prevResult\":{}", false, OLD("0.1.0", "")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wire_buffer call = {0}, got = {0};
		size_t begun = wire_begin(&call, WIRE_CALL);

		wire_add_text(&call, WIRE_STDIN, cases[i].config);
		assert_int_equal(wire_end(&call, begun), 0);
		loopback_result(&call, "/ns", cases[i].has_v6, &got);
		wire_append(&got, "", 1);
		assert_string_equal((const char *)got.data, cases[i].want);
		free(call.data);
		free(got.data);
	}
}

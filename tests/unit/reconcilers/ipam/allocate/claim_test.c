// SPDX-License-Identifier: Apache-2.0
/* What an endpoint says, and what ledgers say of the same addresses. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/ipam/allocate/claim.h"
#include "tests/support/yaml.h"

static const char pools[] =
	"{a: {status: {allocatedIPs: '{\"10.0.0.7\": {\"pod\": \"ml/p\", \"podUid\": \"u\", "
	"\"node\": \"n\"}, \"10.0.0.8\": {\"pod\": \"ml/q\", \"podUid\": \"u\"}, \"10.0.0.9\": "
	"{\"pod\": \"ml/p\", \"podUid\": \"v\"}, \"10.0.0.6\": 1}'}},"
	" six: {status: {allocatedIPs: '{\"fd00::7\": {\"pod\": \"ml/p\", \"podUid\": \"u\"}}'}},"
	" new: {spec: {}}, odd: {status: {allocatedIPs: '['}}, gone: null}";

/* The NICs that ask are net1 and net2. "": it is admitted. */
static const struct {
	const char *ips, *why;
} cases[] = {
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: a}]", ""},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: a, ipv6: 'fd00:0::7/64', ipv6Pool: six}]",
	 ""},
	{"[{interface: net1}]", ""},
	/* It does not ask. */
	{"[{interface: net9, ipv4: 10.0.0.1/24, ipv4Pool: a}]", ""},
	{"[{interface: net1, ipv4: 10.0.0.1/24, ipv4Pool: a}]", "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.8/24, ipv4Pool: a}]", "has it for pod ml/q with UID u"},
	{"[{interface: net1, ipv4: 10.0.0.9/24, ipv4Pool: a}]", "has it for pod ml/p with UID v"},
	{"[{interface: net1, ipv4: 10.0.0.6/24, ipv4Pool: a}]", "has it for pod ? with UID ?"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: new}]", "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: odd}]", "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: six}]", "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: gone}]", "does not exist"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: none}]", "does not exist"},
	{"[{interface: net1, ipv4: 10.0.0.7/24}]", "does not exist"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: 1}]", "does not exist"},
	{"[{interface: net1, ipv4: '', ipv4Pool: a}]", "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.7 10.0.0.7/24, ipv4Pool: a}]", "has no record of it"},
	/* The family's own pool counts. */
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: a, ipv6: 'fd00::7/64', ipv6Pool: a}]",
	 "has no record of it"},
	{"[{interface: net1, ipv4: 10.0.0.7/24, ipv4Pool: a}, {interface: net2, ipv4: 10.0.0.1/24,"
	 " ipv4Pool: a}]",
	 "address 10.0.0.1 is of pool \"a\", whose ledger has no record of it"},
};

TEST(addresses_are_admitted_that_ledgers_have_for_the_pod)
{
	json_auto_t *asks = yaml("[{nic: net1}, {nic: net2}]"), *all = yaml(pools);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *status = json_pack("{s:{s:o}}", "current", "ips", yaml(cases[i].ips));
		const struct claim claim = {"ml", "p", "u", asks, status};
		struct err err = {0};

		print_message("%s\n", cases[i].ips);
		assert_int_equal(claim_compare_all(&claim, all, &err), *cases[i].why ? -1 : 0);
		if (*cases[i].why) {
			assert_int_equal(err.class, ERR_INVALID);
			assert_string_equal(err.reason, "AddressNotAdmitted");
		}
		assert_non_null(strstr(err.text, cases[i].why));
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * How the node reaches addresses that pods have, in a network namespace of the test's own: as root.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/netns_visit.h"
#include "nodeagent/netlink/netns.h"

static bool make_node(void)
{
	return unshare(CLONE_NEWNET) == 0 &&
	       system("ip link set lo up && ip link add ens1 type veth peer name wire && "
		      "ip link set wire up && ip link set ens1 up && "
		      "ip addr add 192.0.2.10/24 dev ens1 && ip route add default via 192.0.2.1 && "
		      "ip -6 addr add 2001:db8::10/64 dev ens1 nodad && "
		      "ip -6 route add default via 2001:db8::1 && "
		      "ip route add 203.0.113.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.3 && "
		      "ip route add 10.77.0.0/16 via inet6 2001:db8::2 dev ens1") == 0;
}

TEST(tells_what_the_node_has_and_what_it_reaches_through_a_gateway)
{
	auto_netns struct netns *ns = NULL;
	json_auto_t *addresses = NULL, *look = NULL;
	const json_t *ways;

	if (!make_node())
		skip();
	addresses = json_pack("[s, s, s, s, s, s, s]", "192.0.2.10/24", "192.0.2.77/24",
			      "198.51.100.7/24", "203.0.113.7/24", "10.77.0.7/16",
			      "2001:db8::77/64", "2001:db9::7/64");
	ns = netns_open(-1, NULL);
	assert_non_null(ns);
	assert_int_equal(netns_observe_host(ns, addresses, 500, &look, NULL), 0);
	/* From which address it would speak to each of them; "": to none. */
	assert_string_equal(json_str_at(look, "sources", "192.0.2.77/24"), "192.0.2.10");
	assert_string_equal(json_str_at(look, "sources", "198.51.100.7/24"), "192.0.2.10");
	assert_string_equal(json_str_at(look, "sources", "2001:db8::77/64"), "2001:db8::10");
	assert_string_equal(json_str_at(look, "sources", "2001:db9::7/64"), "2001:db8::10");
	ways = json_at(look, "ways");
	assert_int_equal(json_integer_value(json_at(ways, "192.0.2.10/24", "type")), 2);
	assert_null(json_at(ways, "192.0.2.77/24", "gw"));
	assert_int_equal(json_integer_value(json_at(ways, "192.0.2.77/24", "type")), 1);
	assert_string_equal(json_str_at(ways, "198.51.100.7/24", "gw"), "192.0.2.1");
	assert_int_equal(json_array_size(json_at(ways, "203.0.113.7/24", "nexthops")), 2);
	assert_true(json_is_true(json_at(ways, "10.77.0.7/16", "via")));
	assert_null(json_at(ways, "2001:db8::77/64", "gw"));
	assert_string_equal(json_str_at(ways, "2001:db9::7/64", "gw"), "2001:db8::1");
	assert_true(json_list_has(json_at(look, "gateways"), "192.0.2.1"));
	assert_true(json_list_has(json_at(look, "gateways"), "192.0.2.3"));
	assert_true(json_list_has(json_at(look, "gateways"), "2001:db8::1"));
	assert_false(json_list_has(json_at(look, "gateways"), "192.0.2.10"));
}

/* The runtime has its answer: nobody else would end a worker that hangs then. */
TEST(announcements_have_a_deadline)
{
	json_auto_t *list =
		json_pack("[{s:s, s:[s]}]", "ifname", "none", "addresses", "192.0.2.7/24");
	auto_close int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct netns *namespaces = NULL;

	netns_visit_announce(&namespaces, here, list);
	assert_in_range(alarm(0), 1, NETNS_ANNOUNCE_S);
	netns_visit_end(&namespaces);
}

// SPDX-License-Identifier: Apache-2.0
/* The message that makes a bond, attribute by attribute: no simulated kernel has bonds. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "lib/json/json.h"
#include "nodeagent/cni/execute/messages.h"
#include "tests/support/yaml.h"

TEST(a_bond_has_its_options_in_the_kernels_form)
{
	static const unsigned char mac[] = {2, 0, 0, 0, 0, 9};
	json_auto_t *step =
		yaml("{in: host, do: bond, dev: b0, options: ["
		     "{number: 1, bits: 8, value: 4}, {number: 3, bits: 32, value: 100},"
		     " {number: 8, addresses: [10.0.0.1, 10.0.0.2]},"
		     " {number: 11, bits: 32, value: 7},"
		     " {number: 24, bits: 16, value: 9},"
		     " {number: 26, mac: '02:00:00:00:00:09'}]}");
	auto_nl_msg struct nl_msg *msg = message_of_step(step, 0, -1, NULL);
	struct nlattr *link[IFLA_MAX + 1] = {0}, *info[IFLA_INFO_MAX + 1] = {0};
	struct nlattr *data[IFLA_BOND_MAX + 1] = {0}, *targets[3] = {0};
	char name[16] = "", kind[16] = "";
	uint32_t number = 0;
	uint16_t priority = 0;
	uint8_t mode = 0;

	assert_non_null(msg);
	assert_true(netlink_parse(nlmsg_hdr(msg), sizeof(struct ifinfomsg), link, IFLA_MAX));
	assert_true(netlink_str(link[IFLA_IFNAME], name, sizeof(name)));
	assert_string_equal(name, "b0");
	netlink_parse_nested(link[IFLA_LINKINFO], info, IFLA_INFO_MAX);
	assert_true(netlink_str(info[IFLA_INFO_KIND], kind, sizeof(kind)));
	assert_string_equal(kind, "bond");
	netlink_parse_nested(info[IFLA_INFO_DATA], data, IFLA_BOND_MAX);
	assert_true(netlink_u8(data[IFLA_BOND_MODE], &mode) && mode == 4);
	assert_true(netlink_u32(data[IFLA_BOND_MIIMON], &number) && number == 100);
	assert_true(netlink_u32(data[IFLA_BOND_PRIMARY], &number) && number == 7);
	assert_true(netlink_u16(data[IFLA_BOND_AD_ACTOR_SYS_PRIO], &priority) && priority == 9);
	assert_int_equal(nla_len(data[IFLA_BOND_AD_ACTOR_SYSTEM]), sizeof(mac));
	assert_memory_equal(nla_data(data[IFLA_BOND_AD_ACTOR_SYSTEM]), mac, sizeof(mac));
	netlink_parse_nested(data[IFLA_BOND_ARP_IP_TARGET], targets, 2);
	assert_true(netlink_u32(targets[0], &number) && number == inet_addr("10.0.0.1"));
	assert_true(netlink_u32(targets[1], &number) && number == inet_addr("10.0.0.2"));
	assert_null(targets[2]);
}

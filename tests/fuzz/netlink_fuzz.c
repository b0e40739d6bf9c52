// SPDX-License-Identifier: Apache-2.0
/*
 * What rtnetlink says, as values and as what planners of CNI calls read, and who claims addresses
 * in frames: any bytes. Whatever comes out has names that end and counts that the bytes can hold.
 */
#include <string.h>

#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/frame.h"
#include "nodeagent/host/dcb_settings.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/netlink/rtnl_route.h"
#include "nodeagent/netlink/rtnl_vf.h"
#include "tests/fuzz/fuzz.h"

static void links(const void *bytes, size_t len)
{
	auto_interfaces struct rtnl_interfaces list = {0};

	rtnl_decode_interfaces(bytes, len, &list);
	fuzz_check(list.n <= len / 16, "an interface is a message");
	for (size_t i = 0; i < list.n; i++) {
		const struct rtnl_interface *one = &list.items[i];

		fuzz_check(one->name[0] && strnlen(one->name, IFNAMSIZ) < IFNAMSIZ, "a name ends");
		fuzz_check(strnlen(one->alias, RTNL_ALIAS_SIZE) < RTNL_ALIAS_SIZE, "an alias ends");
		fuzz_check(!one->parent[0] || pci_address_is_valid(one->parent),
			   "a parent is a PCI address");
		fuzz_check(one->address.len <= RTNL_ADDRESS_MAX, "an address has its place");
		fuzz_check(rtnl_by_name(&list, one->name) && rtnl_by_index(&list, one->index),
			   "an interface is found");
	}
}

static void vfs(const void *bytes, size_t len)
{
	auto_vfs struct rtnl_vfs list = {0};

	rtnl_decode_vfs(bytes, len, &list);
	fuzz_check(list.n <= len / 40, "a VF is an attribute");
	for (size_t i = 0; i < list.n; i++)
		fuzz_check(rtnl_vf_by_number(&list, list.items[i].index) != NULL, "a VF is found");
}

static void indices(const void *bytes, size_t len)
{
	auto_indices struct rtnl_indices list = {0};
	json_auto_t *addresses = json_pack("[s, s]", "192.0.2.7", "2001:db8::7");

	rtnl_decode_default_routes(bytes, len, &list);
	rtnl_decode_with_addresses(bytes, len, addresses, &list);
	rtnl_decode_with_any_address(bytes, len, &list);
	rtnl_decode_with_routes(bytes, len, &list);
	rtnl_decode_next_hops(bytes, len, &list);
	fuzz_check(list.n <= len / 4, "an index is in the bytes");
}

static void dcb(const void *bytes, size_t len)
{
	static const char *const settings[] = {"trafficClasses", "pfc", "buffers", "trust",
					       "dscpToPriority"};
	int refusal = dcb_decode_refusal(bytes, len);
	struct dcb once, again;
	bool is_there = dcb_decode(bytes, len, &once);

	fuzz_check(refusal >= 0 && refusal < 256, "a refusal is a number of errno");
	fuzz_check(is_there == dcb_decode(bytes, len, &again), "DCB is there or not");
	fuzz_check(memcmp(once.dscps, again.dscps, sizeof(once.dscps)) == 0, "DSCPs are the same");
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		json_auto_t *value = dcb_setting_read(&once, settings[i]);

		fuzz_check(value || (i < 3 && !(once.has_ets && once.has_pfc && once.has_buffers)),
			   "what is there has a value");
		fuzz_check(i < 3 || nic_setting_check(settings[i], value, NULL) == 0,
			   "priorities of DSCPs are right");
	}
	fuzz_check(is_there || (!once.has_ets && !once.has_pfc && !once.has_buffers),
		   "no answer has no parts");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *look = netns_look_new();
	struct frame_claim claim;

	netns_decode(data, size, look);
	json_decref(netns_decode_vf(data, size, 0));
	links(data, size);
	vfs(data, size);
	indices(data, size);
	dcb(data, size);
	if (frame_read(data, size, &claim))
		fuzz_check(addr_len(&claim.address) > 0, "a claim is for an address");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Texts and messages of the kernel: addresses, GUIDs, netlink from recorded bytes, uevents,
 * modprobe.d.
 */
#include "tests/support/test.h"

#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_netlink.h>

#include "lib/json/json.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/host/watch.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/rtnl_route.h"
#include "nodeagent/netlink/rtnl_vf.h"

TEST(knows_a_pci_address)
{
	static const char *const good[] = {"0000:3b:00.0", "10000:e1:1f.7", "ffffffff:ff:1f.7"};
	static const char *const bad[] = {"",
					  "0000:3b:00",
					  "0000:3b:00.8",
					  "0000:3b:20.0",
					  "000:3b:00.0",
					  "0000:3B:00.0",
					  "0000:3b:00.0 ",
					  "0000:3b:00.00",
					  "123456789:00:00.0",
					  "../../etc/x"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(pci_address_is_valid(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(pci_address_is_valid(bad[i]));
	assert_true(pci_address_compare("0000:0a:00.0", "0000:09:1f.7") > 0);
	assert_true(pci_address_compare("10000:00:00.0", "0000:ff:00.0") > 0);
	assert_true(pci_address_compare("nonsense", "0000:ff:00.0") > 0);
}

TEST(reads_a_pci_address_as_tools_print_it)
{
	static const struct {
		const char *text, *address;
	} rows[] = {
		{"0000:3b:00.0", "0000:3b:00.0"},
		{"00000000:3B:00.0", "0000:3b:00.0"},
		{"0000:AF:1F.7", "0000:af:1f.7"},
		{"00010000:E1:00.0", "10000:e1:00.0"},
		{"FFFFFFFF:ff:00.1", "ffffffff:ff:00.1"},
		{"3B:00.0", NULL},
		{"ens1f0np0", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *address = pci_address_normalize(rows[i].text);

		assert_string_equal(address ? address : "", rows[i].address ? rows[i].address : "");
	}
}

TEST(reads_guids_in_both_spellings)
{
	char text[TEXT_GUID_SIZE];
	uint64_t guid = 7;

	assert_true(text_to_guid("b859:9f03:0012:3456", &guid));
	assert_true(guid == 0xb8599f0300123456);
	assert_true(text_to_guid("B8:59:9f:03:00:12:34:57", &guid));
	assert_true(guid == 0xb8599f0300123457);
	assert_false(text_to_guid("b859:9f03:0012:345", &guid));
	assert_false(text_to_guid("b859:9f03:0012:3456:", &guid));
	assert_false(text_to_guid("", &guid));
	assert_true(guid == 0xb8599f0300123457);
	text_from_guid(guid, text);
	assert_string_equal(text, "b8:59:9f:03:00:12:34:57");
}

TEST(reads_numbers_of_sysfs)
{
	int64_t value = 5;

	assert_true(sysfs_parse_int("0x020700", &value));
	assert_int_equal(value, 0x020700);
	assert_true(sysfs_parse_int("-1", &value));
	assert_int_equal(value, -1);
	assert_false(sysfs_parse_int("0x", &value));
	assert_false(sysfs_parse_int("0x12g", &value));
	assert_false(sysfs_parse_int("0xffffffffffffffff", &value));
	assert_false(sysfs_parse_int("100 Gb/s", &value));
	assert_int_equal(value, -1);
}

/*
 * SYS_GET as Linux 6.12.95 answered on a virtual node: attributes 66, 96, 103, 93; sequence and
 * port number cleared.
 */
static const uint32_t sys_get[] = {48,         0x1406, 0,          0,    0x00420005, 0x01,
				   0x00600005, 0x00,   0x00670005, 0x01, 0x005d0005, 0x01};
/* A device is registered: index 3, "rxe0", event type 0. */
static const uint32_t event[] = {44,         0x141c,     0,          0,          0x00010008, 3,
				 0x00020009, 0x30657872, 0x00000000, 0x00660005, 0x00};

/* A message by hand, with one attribute more each time. */
static size_t begin(struct strbuf *bytes, uint16_t type, const void *header, size_t len)
{
	struct nlmsghdr message = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + len), .nlmsg_type = type};
	size_t at = bytes->len;

	strbuf_add(bytes, &message, sizeof(message));
	strbuf_add(bytes, header, len);
	return at;
}

static void put(struct strbuf *bytes, size_t message, uint16_t type, const void *data, size_t len)
{
	struct nlattr attr = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
	static const char zeroes[NLA_ALIGNTO];
	uint32_t whole;

	strbuf_add(bytes, &attr, sizeof(attr));
	strbuf_add(bytes, data, len);
	strbuf_add(bytes, zeroes, NLA_ALIGN(len) - len);
	whole = (uint32_t)(bytes->len - message);
	memcpy(bytes->data + message, &whole, sizeof(whole));
}

static void add_route(struct strbuf *bytes, unsigned char protocol, unsigned char type,
		      uint32_t interface)
{
	const struct rtmsg header = {
		.rtm_family = AF_INET6, .rtm_protocol = protocol, .rtm_type = type};
	size_t message = begin(bytes, RTM_NEWROUTE, &header, sizeof(header));

	put(bytes, message, RTA_OIF, &interface, sizeof(interface));
}

/* An interface of IPv6 that is up has some of the kernel's, whoever uses it. */
TEST(routes_that_the_kernel_made_tell_nothing)
{
	auto_indices struct rtnl_indices list = {0};
	auto_strbuf struct strbuf bytes = {0};

	add_route(&bytes, RTPROT_KERNEL, RTN_UNICAST, 3);
	add_route(&bytes, RTPROT_KERNEL, RTN_MULTICAST, 4);
	add_route(&bytes, RTPROT_STATIC, RTN_UNREACHABLE, 1);
	add_route(&bytes, RTPROT_STATIC, RTN_UNICAST, 5);
	add_route(&bytes, RTPROT_BOOT, RTN_UNICAST, 6);
	rtnl_decode_with_routes(bytes.data, bytes.len, &list);
	assert_int_equal(list.n, 2);
	assert_true(rtnl_has_index(&list, 5));
	assert_true(rtnl_has_index(&list, 6));
}

/* net.ipv4.nexthop_compat_mode 0, as routing daemons set it: a route names no interface. */
TEST(a_route_by_the_number_of_a_next_hop_makes_all_of_them_count)
{
	const struct rtmsg header = {.rtm_family = AF_INET,
				     .rtm_protocol = RTPROT_STATIC,
				     .rtm_type = RTN_UNICAST,
				     .rtm_table = RT_TABLE_MAIN};
	const struct nhmsg hop = {.nh_family = AF_INET};
	auto_strbuf struct strbuf routes = {0}, hops = {0};
	auto_indices struct rtnl_indices list = {0}, all = {0};
	uint32_t id = 7, interface = 5;

	put(&routes, begin(&routes, RTM_NEWROUTE, &header, sizeof(header)), RTA_NH_ID, &id,
	    sizeof(id));
	rtnl_decode_default_routes(routes.data, routes.len, &list);
	rtnl_decode_with_routes(routes.data, routes.len, &all);
	assert_true(list.is_by_id && all.is_by_id);
	assert_int_equal(list.n + all.n, 0);
	put(&hops, begin(&hops, RTM_NEWNEXTHOP, &hop, sizeof(hop)), NHA_OIF, &interface,
	    sizeof(interface));
	rtnl_decode_next_hops(hops.data, hops.len, &list);
	assert_true(rtnl_has_index(&list, 5));
}

static void add_connection(struct strbuf *bytes, const char *module, uint8_t cm_state)
{
	auto_strbuf struct strbuf entry = {0}, list = {0};
	const uint32_t pid = 42;
	size_t message;

	put(&entry, begin(&entry, 0, NULL, 0), RDMA_NLDEV_ATTR_RES_STATE, &cm_state, 1);
	if (module)
		put(&entry, 0, RDMA_NLDEV_ATTR_RES_KERN_NAME, module, strlen(module) + 1);
	else
		put(&entry, 0, RDMA_NLDEV_ATTR_RES_PID, &pid, sizeof(pid));
	put(&list, begin(&list, 0, NULL, 0), RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
	    entry.data + NLMSG_HDRLEN, entry.len - NLMSG_HDRLEN);
	message = begin(bytes, RDMA_NL_NLDEV << 10 | RDMA_NLDEV_CMD_RES_CM_ID_GET, NULL, 0);
	put(bytes, message, RDMA_NLDEV_ATTR_RES_CM_ID, list.data + NLMSG_HDRLEN,
	    list.len - NLMSG_HDRLEN);
}

/* RDMA_CM_CONNECT is 5, RDMA_CM_LISTEN 8; a process counts by its context. */
TEST(a_connection_of_the_kernel_counts_and_one_that_listens_does_not)
{
	auto_strbuf struct strbuf bytes = {0};
	char name[RDMA_NAME_SIZE];

	add_connection(&bytes, "nvmet_rdma", 8);
	add_connection(&bytes, NULL, 5);
	assert_false(rdma_decode_kernel_user(bytes.data, bytes.len, name));
	add_connection(&bytes, "nvme_rdma", 5);
	assert_true(rdma_decode_kernel_user(bytes.data, bytes.len, name));
	assert_string_equal(name, "nvme_rdma");
}

TEST(reads_the_rdma_mode)
{
	assert_int_equal(rdma_decode_mode(sys_get, sizeof(sys_get)), RDMA_MODE_SHARED);
	/* Cut within a message: it says nothing. */
	assert_int_equal(rdma_decode_mode(sys_get, sizeof(sys_get) - 1), RDMA_MODE_UNKNOWN);
	assert_int_equal(rdma_decode_mode(NULL, 0), RDMA_MODE_UNKNOWN);
}

/* RTM_NEWLINK of an igb PF with one VF that has admin MAC 02:00:00:00:00:77. */
static const unsigned char pf_with_vf[] = {
	112, 0, 0, 0, RTM_NEWLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* nlmsghdr */
	/* ifinfomsg: index 3 */
	0, 0, 1, 0, 3, 0, 0, 0, 3, 16, 0, 0, 0, 0, 0, 0, 11, 0, 3, 0, 'e', 'n', 'p', '1', 's', '0',
	0, 0,                                                           /* IFLA_IFNAME */
	8, 0, 4, 0, 0xa0, 0x0f, 0, 0,                                   /* IFLA_MTU 4000 */
	60, 0, 22, 0,                                                   /* IFLA_VFINFO_LIST */
	56, 0, 1, 0x80,                                                 /* IFLA_VF_INFO */
	40, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, /* IFLA_VF_MAC */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,     /* its padding */
	12, 0, 5, 0, 0, 0, 0, 0, 2, 0, 0, 0,                            /* IFLA_VF_LINK_STATE */
};

TEST(reads_an_interface_and_what_it_says_of_its_vfs)
{
	_Alignas(4) unsigned char bytes[sizeof(pf_with_vf)];
	auto_interfaces struct rtnl_interfaces list = {0};
	auto_vfs struct rtnl_vfs vfs = {0};

	memcpy(bytes, pf_with_vf, sizeof(bytes));
	rtnl_decode_interfaces(bytes, sizeof(bytes), &list);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.items[0].name, "enp1s0");
	assert_int_equal(list.items[0].mtu, 4000);
	assert_true(list.items[0].up);
	assert_ptr_equal(rtnl_by_name(&list, "enp1s0"), &list.items[0]);
	assert_null(rtnl_by_index(&list, 4));

	rtnl_decode_vfs(bytes, sizeof(bytes), &vfs);
	assert_int_equal(vfs.n, 1);
	assert_int_equal(vfs.items[0].mac[5], 0x77);
	assert_int_equal(vfs.items[0].link_state, 2);
	assert_false(vfs.items[0].has_node_guid);
}

/* Begin a nested attribute, whose length end_nest() writes, as the kernel does: in 16 bits. */
static size_t begin_nest(struct strbuf *bytes, uint16_t type)
{
	struct nlattr attr = {.nla_type = type};
	size_t at = bytes->len;

	strbuf_add(bytes, &attr, sizeof(attr));
	return at;
}

static void end_nest(struct strbuf *bytes, size_t at)
{
	uint16_t len = (uint16_t)(bytes->len - at);

	memcpy(bytes->data + at, &len, sizeof(len));
}

/* As rtnl_fill_vfinfo() writes one of a driver that counts: some 340 bytes. */
static void add_counted_vf(struct strbuf *bytes, size_t message, uint32_t number)
{
	struct ifla_vf_mac mac = {.vf = number, .mac = {2, 0, 0, 0, 1, (unsigned char)number}};
	struct ifla_vf_broadcast broadcast = {{0}};
	struct ifla_vf_rate rate = {.vf = number};
	size_t info = begin_nest(bytes, IFLA_VF_INFO), stats;

	put(bytes, message, IFLA_VF_MAC, &mac, sizeof(mac));
	put(bytes, message, IFLA_VF_BROADCAST, &broadcast, sizeof(broadcast));
	put(bytes, message, IFLA_VF_RATE, &rate, sizeof(rate));
	for (uint16_t type = IFLA_VF_SPOOFCHK; type <= IFLA_VF_RSS_QUERY_EN; type++)
		put(bytes, message, type, &(uint32_t[2]){number, 0}, 8);
	put(bytes, message, IFLA_VF_TRUST, &(uint32_t[2]){number, 0}, 8);
	stats = begin_nest(bytes, IFLA_VF_STATS);
	for (uint16_t type = IFLA_VF_STATS_RX_PACKETS; type <= IFLA_VF_STATS_TX_DROPPED; type++) {
		put(bytes, message, IFLA_VF_STATS_PAD, "", 0);
		put(bytes, message, type, &(uint64_t){number + 1}, 8);
	}
	end_nest(bytes, stats);
	end_nest(bytes, info);
}

/* From 64 KiB on the list's own length wraps around, and the attribute behind it is not found. */
TEST(reads_more_vfs_than_a_lists_length_can_say)
{
	const struct ifinfomsg header = {.ifi_index = 3};
	auto_strbuf struct strbuf bytes = {0};
	size_t message = begin(&bytes, RTM_NEWLINK, &header, sizeof(header)), list;
	auto_vfs struct rtnl_vfs vfs = {0};
	uint32_t n = 256;

	put(&bytes, message, IFLA_NUM_VF, &n, sizeof(n));
	list = begin_nest(&bytes, IFLA_VFINFO_LIST);
	for (uint32_t i = 0; i < n; i++)
		add_counted_vf(&bytes, message, i);
	assert_true(bytes.len - list > UINT16_MAX);
	end_nest(&bytes, list);
	put(&bytes, message, IFLA_LINKINFO, &(uint32_t){0}, 4);
	rtnl_decode_vfs(bytes.data, bytes.len, &vfs);
	assert_int_equal(vfs.n, n);
	assert_int_equal(vfs.items[255].index, 255);
	assert_true(vfs.items[255].has_counters);
	assert_int_equal(vfs.items[255].counters[IFLA_VF_STATS_TX_DROPPED], 256);
}

/* RTM_NEWLINK of a pod's macvlan on interface 3 of the host, whose namespace is number 0 there. */
static const unsigned char macvlan_on_host[] = {
	60, 0, 0,  0, RTM_NEWLINK, 0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, /* nlmsghdr */
	0,  0, 1,  0, 2,           0,   0,   0,   3, 0, 0, 0, 0, 0, 0, 0, /* ifinfomsg: index 2 */
	9,  0, 3,  0, 'n',         'e', 't', '1', 0, 0, 0, 0,             /* IFLA_IFNAME */
	8,  0, 5,  0, 3,           0,   0,   0,                           /* IFLA_LINK 3 */
	8,  0, 37, 0, 0,           0,   0,   0,                           /* IFLA_LINK_NETNSID 0 */
};

TEST(an_index_of_another_namespace_is_none_of_ours)
{
	_Alignas(4) unsigned char bytes[sizeof(macvlan_on_host)];
	auto_interfaces struct rtnl_interfaces apart = {0}, together = {0};

	memcpy(bytes, macvlan_on_host, sizeof(bytes));
	rtnl_decode_interfaces(bytes, sizeof(bytes), &apart);
	assert_int_equal(apart.n, 1);
	assert_int_equal(apart.items[0].lower, 0);
	assert_int_equal(apart.items[0].outer, 3);
	assert_int_equal(apart.items[0].outer_nsid, 0);
	bytes[0] -= 8;
	rtnl_decode_interfaces(bytes, sizeof(bytes) - 8, &together);
	assert_int_equal(together.items[0].lower, 3);
	assert_int_equal(together.items[0].outer, 0);
}

TEST(survives_every_cut_of_a_message)
{
	for (size_t len = 0; len < sizeof(pf_with_vf); len++) {
		/* On the heap, so that a sanitizer sees each byte too far. */
		auto_free unsigned char *bytes = malloc(len + 1);
		auto_interfaces struct rtnl_interfaces list = {0};
		auto_vfs struct rtnl_vfs vfs = {0};

		memcpy(bytes, pf_with_vf, len);
		if (len >= 4)
			bytes[0] = (unsigned char)len;
		rtnl_decode_interfaces(bytes, len, &list);
		rtnl_decode_vfs(bytes, len, &vfs);
		assert_true(list.n <= 1 && vfs.n <= 1);
	}
}

struct heard {
	int n;
	char line[128];
};

static void hear(void *arg, const struct watch_event *what)
{
	struct heard *heard = arg;

	heard->n++;
	(void)snprintf(heard->line, sizeof(heard->line), "%s %s %s", what->action,
		       what->address ? what->address : "-", what->name ? what->name : "-");
}

/* As lib/kobject_uevent.c builds them: the interface of an igb VF, and the VF itself. */
static const char net_event[] =
	"add@/devices/pci0000:00/0000:00:02.0/0000:01:10.0/net/eth0\0ACTION=add\0"
	"DEVPATH=/devices/pci0000:00/0000:00:02.0/0000:01:10.0/net/eth0\0SUBSYSTEM=net\0"
	"INTERFACE=eth0\0IFINDEX=5\0SEQNUM=2030";
static const char pci_event[] =
	"bind@/devices/pci0000:00/0000:00:02.0/0000:01:10.0\0ACTION=bind\0"
	"DEVPATH=/devices/pci0000:00/0000:00:02.0/0000:01:10.0\0SUBSYSTEM=pci\0DRIVER=igbvf\0"
	"PCI_SLOT_NAME=0000:01:10.0\0SEQNUM=2031";
static const char usb_event[] = "add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=usb";

TEST(hears_which_device_an_event_is_about)
{
	struct heard heard = {0};

	watch_decode(WATCH_UEVENT, net_event, sizeof(net_event), hear, &heard);
	assert_string_equal(heard.line, "add 0000:01:10.0 eth0");
	watch_decode(WATCH_UEVENT, pci_event, sizeof(pci_event), hear, &heard);
	assert_string_equal(heard.line, "bind 0000:01:10.0 -");
	watch_decode(WATCH_LINK, pf_with_vf, sizeof(pf_with_vf), hear, &heard);
	assert_string_equal(heard.line, "change - enp1s0");
	watch_decode(WATCH_RDMA, event, sizeof(event), hear, &heard);
	assert_string_equal(heard.line, "change - rxe0");
	assert_int_equal(heard.n, 4);
}

static const unsigned char link_lost[] = {
	60, 0, 0, 0, RTM_NEWLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* nlmsghdr */
	/* ifinfomsg: index 3, IFF_UP */
	0, 0, 1, 0, 3, 0, 0, 0, 3, 16, 0, 0, 0, 0, 0, 0, 9, 0, 3, 0, 'e', 't', 'h', '0', 0, 0, 0, 0,
	5, 0, 33, 0, 0, 0, 0, 0, /* IFLA_CARRIER 0 */
	8, 0, 35, 0, 7, 0, 0, 0, /* IFLA_CARRIER_CHANGES 7 */
};

static void hear_link(void *arg, const struct watch_event *what)
{
	*(struct watch_event *)arg = *what;
}

TEST(hears_of_the_link_and_how_often_it_changed)
{
	_Alignas(4) unsigned char bytes[sizeof(link_lost)];
	struct watch_event heard = {0};

	memcpy(bytes, link_lost, sizeof(bytes));
	watch_decode(WATCH_LINK, bytes, sizeof(bytes), hear_link, &heard);
	assert_true(heard.has_link && !heard.is_up);
	assert_int_equal(heard.carrier_changes, 7);
	assert_int_equal(heard.ifindex, 3);
	bytes[48] = 1;
	watch_decode(WATCH_LINK, bytes, sizeof(bytes), hear_link, &heard);
	assert_true(heard.is_up);
	/* One that is set down may be on its way to a pod. */
	bytes[24] = 0;
	watch_decode(WATCH_LINK, bytes, sizeof(bytes), hear_link, &heard);
	assert_false(heard.has_link || heard.is_up);
	watch_decode(WATCH_LINK, pf_with_vf, sizeof(pf_with_vf), hear_link, &heard);
	assert_false(heard.has_link);
	assert_int_equal(heard.carrier_changes, -1);
}

TEST(does_not_hear_what_is_not_for_us)
{
	struct heard heard = {0};

	watch_decode(WATCH_UEVENT, usb_event, sizeof(usb_event), hear, &heard);
	/* Without the NUL at the end. */
	watch_decode(WATCH_UEVENT, net_event, sizeof(net_event) - 1, hear, &heard);
	watch_decode(WATCH_RDMA, sys_get, sizeof(sys_get), hear, &heard);
	watch_decode(WATCH_LINK, event, sizeof(event), hear, &heard);
	assert_int_equal(heard.n, 0);
}

TEST(reads_modprobe_options_as_modprobe_does)
{
	static const struct {
		const char *text;
		enum rdma_mode mode;
	} cases[] = {
		{"options ib_core netns_mode=0\n", RDMA_MODE_EXCLUSIVE},
		{"options ib-core netns-mode=N", RDMA_MODE_EXCLUSIVE},
		{"  options\tib_core  foo=1 netns_mode=1 bar=2\n", RDMA_MODE_SHARED},
		{"options ib_core netns_mode\n", RDMA_MODE_SHARED},
		{"options ib_core \\\n netns_mode=off\n", RDMA_MODE_EXCLUSIVE},
		{"options ib_core netns_mode=0\noptions ib_core netns_mode=1\n", RDMA_MODE_SHARED},
		{"# options ib_core netns_mode=0\n", RDMA_MODE_UNKNOWN},
		{"options ib_core netns_mode=maybe\n", RDMA_MODE_UNKNOWN},
		{"options ib_core_x netns_mode=0\noptions ib_core netns_modes=0\n",
		 RDMA_MODE_UNKNOWN},
		{"", RDMA_MODE_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(next_boot_parse_modprobe(cases[i].text), cases[i].mode);
	assert_int_equal(next_boot_parse_command_line("a ib-core.netns_mode=0 b\n"),
			 RDMA_MODE_EXCLUSIVE);
	assert_int_equal(next_boot_parse_command_line("xib_core.netns_mode=0"), RDMA_MODE_UNKNOWN);
}

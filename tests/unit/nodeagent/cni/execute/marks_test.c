// SPDX-License-Identifier: Apache-2.0
/*
 * Packet marks, with packets, in a network namespace of the test's own: as root.
 *
 * v0 is the pod's NIC, what is sent out of v1 comes in by it. Marked packets of the pod leave by
 * "marked", others by "other" or v0.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "nodeagent/cni/execute/marks.h"
#include "nodeagent/netlink/netns.h"

enum { PORT = 4791, FOREIGN_MARK = 0x1234, PATIENCE_S = 10 };

static bool make_pod(void)
{
	return unshare(CLONE_NEWNET) == 0 &&
	       system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up && "
		      "ip link add v0 type veth peer name v1 && "
		      "ip link add marked type veth peer name x && "
		      "ip link add other type veth peer name y && "
		      "for i in v0 v1 marked x other y; do ip link set $i arp off up; done && "
		      "ip addr add 10.9.0.1/24 dev v0 && "
		      "ip route add 198.51.100.0/24 dev other src 10.9.0.1 && "
		      "ip route add table 100 default dev marked src 10.9.0.1 && "
		      "ip rule add fwmark 1 lookup 100 && ip rule add fwmark 0x1234 lookup 100") ==
		       0;
}

/* Packets that left by a device. */
static long sent_by(const char *dev)
{
	auto_fclose FILE *file = fopen("/proc/thread-self/net/dev", "r");
	char line[512], name[32];
	long sent = -1, n;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %31[^:]: %*d %*d %*d %*d %*d %*d %*d %*d %*d %ld", name, &n) ==
			    2 &&
		    strcmp(name, dev) == 0)
			sent = n;
	return sent;
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	return address;
}

static void say(int fd, const struct sockaddr_in *to)
{
	assert_int_equal(sendto(fd, "x", 1, 0, (const void *)to, sizeof(*to)), 1);
}

static uint16_t checksum(const void *data, size_t len)
{
	const unsigned char *octets = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)octets[i] << 8 | octets[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* A datagram from 10.9.0.2 comes in by v0. */
static void comes_in(void)
{
	struct {
		struct ethhdr link;
		struct iphdr ip;
		struct udphdr udp;
		char data[4];
	} __attribute__((packed)) frame = {.data = "hi"};
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_IP),
				 .sll_ifindex = (int)if_nametoindex("v1")};
	auto_close int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	struct ifreq request = {.ifr_name = "v0"};
	struct iphdr ip = {.ihl = 5, .version = 4, .ttl = 64, .protocol = IPPROTO_UDP};

	assert_int_equal(ioctl(fd, SIOCGIFHWADDR, &request), 0);
	memcpy(frame.link.h_dest, request.ifr_hwaddr.sa_data, ETH_ALEN);
	frame.link.h_source[0] = 2;
	frame.link.h_proto = htons(ETH_P_IP);
	ip.tot_len = htons(sizeof(frame) - sizeof(frame.link));
	ip.saddr = address_of("10.9.0.2").sin_addr.s_addr;
	ip.daddr = address_of("10.9.0.1").sin_addr.s_addr;
	ip.check = checksum(&ip, sizeof(ip));
	frame.ip = ip;
	frame.udp = (struct udphdr){.source = htons(PORT),
				    .dest = htons(PORT),
				    .len = htons(sizeof(frame.udp) + sizeof(frame.data))};
	assert_int_equal(sendto(fd, &frame, sizeof(frame), 0, (const void *)&to, sizeof(to)),
			 (ssize_t)sizeof(frame));
}

TEST(answers_by_the_nic_and_leaves_marks_of_others)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	auto_netns struct netns *ns = NULL;
	auto_close int fd = -1, marked = -1;
	struct sockaddr_in own, peer, far;
	int mark = FOREIGN_MARK;
	struct err err = {0};
	char octet;

	if (!make_pod())
		skip();
	own = address_of("10.9.0.1");
	peer = address_of("10.9.0.2");
	far = address_of("198.51.100.7");
	ns = netns_open(-1, NULL);
	assert_non_null(ns);
	if (marks_set(ns, "v0", &err))
		skip(); /* no nf_tables here */
	/* Of a mesh, a tunnel: SO_MARK chooses the table, and nothing wipes it. */
	marked = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(setsockopt(marked, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), 0);
	say(marked, &far);
	assert_int_equal(sent_by("other"), 0);
	assert_int_equal(sent_by("marked"), 1);
	/* What came in by the NIC is answered by the rule of mark 1. */
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(bind(fd, (void *)&own, sizeof(own)), 0);
	comes_in();
	assert_int_equal(recv(fd, &octet, 1, 0), 1);
	say(fd, &peer);
	assert_int_equal(sent_by("marked"), 2);
	/* What the pod begins itself has no mark. */
	say(fd, &far);
	assert_int_equal(sent_by("other"), 1);
	assert_int_equal(sent_by("marked"), 2);
	assert_int_equal(marks_clear(ns, NULL), 0);
}

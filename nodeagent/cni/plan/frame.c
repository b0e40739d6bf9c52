// SPDX-License-Identifier: Apache-2.0
/*
 * Fixed offsets into one buffer, for the two protocols that ask who has an address. netns_detect.c
 * sends what is written here and gives back what it received; addresses of frames that are cut
 * short or of another kind are never read.
 */
#include "nodeagent/cni/plan/frame.h"

#include <assert.h>
#include <string.h>

#define ETHERNET_LEN 14
#define IPV6_LEN     40
#define NDP_LEN      24 /* of a solicitation or advertisement, without options */
#define OPTION_LEN   8  /* a link-layer address */

#define TYPE_ARP  0x0806
#define TYPE_IPV6 0x86dd

#define NEXT_ICMPV6        58
#define NDP_SOLICITATION   135
#define NDP_ADVERTISEMENT  136
#define OPTION_SOURCE      1
#define OPTION_TARGET      2
#define ADVERTISE_OVERRIDE 0x20

static const uint8_t ALL[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t ARP_HEAD[6] = {0, 1, 0x08, 0, 6, 4}; /* Ethernet, IPv4, lengths */

static void put_u16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put_ethernet(uint8_t *frame, const uint8_t to[6], const uint8_t from[6],
			 unsigned int type)
{
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	put_u16(frame + 12, type);
}

static size_t arp_request(const uint8_t mac[6], const struct addr *source,
			  const struct addr *target, uint8_t *frame)
{
	uint8_t *arp = frame + ETHERNET_LEN;

	put_ethernet(frame, ALL, mac, TYPE_ARP);
	memcpy(arp, ARP_HEAD, sizeof(ARP_HEAD));
	put_u16(arp + 6, 1);
	memcpy(arp + 8, mac, 6);
	memcpy(arp + 14, source->octets, 4);
	memcpy(arp + 18, ALL, 6);
	memcpy(arp + 24, target->octets, 4);
	return ETHERNET_LEN + 28;
}

/* RFC 4443, 2.3: over the pseudo header, too. */
static unsigned int checksum(const uint8_t *ipv6, const uint8_t *icmp, size_t len)
{
	uint32_t sum = (uint32_t)len + NEXT_ICMPV6;

	for (size_t i = 8; i < IPV6_LEN; i += 2)
		sum += (uint32_t)(ipv6[i] << 8 | ipv6[i + 1]);
	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)(icmp[i] << 8 | icmp[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* to: 16 octets of a multicast group. */
static size_t ndp(int type, int flags, const uint8_t mac[6], const uint8_t *source,
		  const uint8_t *to, const uint8_t *target, int option, uint8_t *frame)
{
	const uint8_t group[6] = {0x33, 0x33, to[12], to[13], to[14], to[15]};
	size_t len = NDP_LEN + (option ? OPTION_LEN : 0);
	uint8_t *ipv6 = frame + ETHERNET_LEN, *icmp = ipv6 + IPV6_LEN;

	memset(frame, 0, FRAME_MAX);
	put_ethernet(frame, group, mac, TYPE_IPV6);
	ipv6[0] = 0x60;
	put_u16(ipv6 + 4, (unsigned int)len);
	ipv6[6] = NEXT_ICMPV6;
	ipv6[7] = 255;
	memcpy(ipv6 + 8, source, 16);
	memcpy(ipv6 + 24, to, 16);
	icmp[0] = (uint8_t)type;
	icmp[4] = (uint8_t)flags;
	memcpy(icmp + 8, target, 16);
	if (option) {
		icmp[NDP_LEN] = (uint8_t)option;
		icmp[NDP_LEN + 1] = 1;
		memcpy(icmp + NDP_LEN + 2, mac, 6);
	}
	put_u16(icmp + 2, checksum(ipv6, icmp, len));
	return ETHERNET_LEN + IPV6_LEN + len;
}

size_t frame_ask(const uint8_t mac[6], const struct addr *source, const struct addr *target,
		 uint8_t ret[FRAME_MAX])
{
	/* RFC 4291, 2.7.1: the solicited-node group. */
	uint8_t group[16] = {0xff, 0x02, [11] = 1, [12] = 0xff};

	assert(!source->family || source->family == target->family);
	if (target->family == 4)
		return arp_request(mac, source, target, ret);
	memcpy(group + 13, target->octets + 13, 3);
	/* RFC 4861, 4.3: no option when the source has no address. */
	return ndp(NDP_SOLICITATION, 0, mac, source->octets, group, target->octets,
		   source->family ? OPTION_SOURCE : 0, ret);
}

size_t frame_announce(const uint8_t mac[6], const struct addr *own, uint8_t ret[FRAME_MAX])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

	assert(own->family == 4 || own->family == 6);
	if (own->family == 4)
		return arp_request(mac, own, own, ret);
	return ndp(NDP_ADVERTISEMENT, ADVERTISE_OVERRIDE, mac, own->octets, all_nodes, own->octets,
		   OPTION_TARGET, ret);
}

static bool read_arp(const uint8_t *arp, size_t len, struct frame_claim *ret)
{
	unsigned int operation;

	if (len < 28 || memcmp(arp, ARP_HEAD, sizeof(ARP_HEAD)) != 0)
		return false;
	operation = (unsigned int)(arp[6] << 8 | arp[7]);
	if (operation != 1 && operation != 2)
		return false;
	*ret = (struct frame_claim){.has = true, .address = {.family = 4, .prefix = 32}};
	memcpy(ret->mac, arp + 8, 6);
	memcpy(ret->address.octets, arp + 14, 4);
	if (!addr_is_unspecified(&ret->address))
		return true;
	/* RFC 5227, 2.1.1: a probe. */
	ret->has = false;
	memcpy(ret->address.octets, arp + 24, 4);
	return operation == 1;
}

static bool read_ndp(const uint8_t *ipv6, size_t len, const uint8_t *from, struct frame_claim *ret)
{
	const uint8_t *icmp = ipv6 + IPV6_LEN;
	struct addr source = {.family = 6, .prefix = 128};

	if (len < IPV6_LEN + NDP_LEN || ipv6[6] != NEXT_ICMPV6 || ipv6[7] != 255)
		return false;
	*ret = (struct frame_claim){.address = {.family = 6, .prefix = 128}};
	memcpy(ret->mac, from, 6);
	memcpy(ret->address.octets, icmp + 8, 16);
	if (icmp[0] == NDP_ADVERTISEMENT) {
		/* A proxy's frame may come from another station than the address has. */
		if (len >= IPV6_LEN + NDP_LEN + OPTION_LEN && icmp[NDP_LEN] == OPTION_TARGET &&
		    icmp[NDP_LEN + 1] == 1)
			memcpy(ret->mac, icmp + NDP_LEN + 2, 6);
		ret->has = true;
		return true;
	}
	memcpy(source.octets, ipv6 + 8, 16);
	return icmp[0] == NDP_SOLICITATION && addr_is_unspecified(&source);
}

bool frame_read(const uint8_t *bytes, size_t len, struct frame_claim *ret)
{
	unsigned int type;

	if (len < ETHERNET_LEN)
		return false;
	type = (unsigned int)(bytes[12] << 8 | bytes[13]);
	if (type == TYPE_ARP)
		return read_arp(bytes + ETHERNET_LEN, len - ETHERNET_LEN, ret);
	if (type == TYPE_IPV6)
		return read_ndp(bytes + ETHERNET_LEN, len - ETHERNET_LEN, bytes + 6, ret);
	return false;
}

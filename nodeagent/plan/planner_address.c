// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses of VFs, derived from the address of their PF
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5). See planner_internal.h.
 */
#include "nodeagent/plan/planner_internal.h"

#include <string.h>

/* What mlx5 writes as node GUID of a VF whose MAC address is set to zero. */
#define GUID_OF_ZERO_MAC 0x000000fffe000000

bool vf_mac_is_valid(const char *mac)
{
	unsigned char octets[6];

	return mac && text_to_mac(mac, octets) && !text_mac_is_zero(octets) && !(octets[0] & 1);
}

bool vf_guid_is_valid(const char *guid)
{
	uint64_t value;

	return guid && text_to_guid(guid, &value) && value != 0 && value != UINT64_MAX &&
	       value != GUID_OF_ZERO_MAC;
}

/* A port of a bond goes by the bond's address; its own is the permanent one. */
static const char *address_of(const json_t *pf)
{
	const char *permanent = json_str_at(pf, "host", "permanentMac");

	if (permanent)
		return permanent;
	return json_at(pf, "host", "master") ? NULL : json_str_at(pf, "mac");
}

bool vf_mac_derive(const json_t *pf, int number, char ret[TEXT_MAC_SIZE])
{
	const char *address = address_of(pf);
	unsigned char own[6], mac[6];
	uint64_t vendor;

	if (!vf_mac_is_valid(address) || !text_to_mac(address, own) || number < 0 || number > 0xfff)
		return false;
	vendor = str_hash(own, 3);
	mac[0] = (unsigned char)(0x02 | (vendor & 0x3f) << 2);
	mac[1] = (unsigned char)((vendor >> 6 & 0xf) << 4 | (unsigned int)number >> 8);
	mac[2] = (unsigned char)(number & 0xff);
	memcpy(mac + 3, own + 3, 3);
	text_from_octets(mac, sizeof(mac), ret);
	return true;
}

/*
 * The MAC address behind an InfiniBand port's GUID: the last 8 of the 20 octets of its interface,
 * made from a MAC address by putting 03:00 or ff:fe in the middle.
 */
static bool mac_behind_guid(const char *address, uint64_t *ret)
{
	size_t tail = TEXT_GUID_SIZE - 1;
	uint64_t guid, middle;

	if (!address || strlen(address) != 3 * 20 - 1 ||
	    !text_to_guid(address + strlen(address) - tail, &guid))
		return false;
	middle = guid >> 24 & 0xffff;
	if (middle != 0x0300 && middle != 0xfffe)
		return false;
	*ret = guid >> 40 << 24 | (guid & 0xffffff);
	return *ret != 0;
}

/* 56 bits out of whatever tells the PF from all others. */
static bool guid_hash(const struct planning *p, const json_t *pf, int number, uint64_t *ret)
{
	const char *device =
		json_str_at(rdma_hardware(p, json_str_at(pf, "pciAddress")), "nodeGuid");
	const char *own = vf_guid_is_valid(device) ? device : address_of(pf);
	auto_free char *text = own ? str_printf("%s/%d", own, number) : NULL;

	if (!text)
		return false;
	*ret = str_hash(text, strlen(text)) & 0x00ffffffffffffff;
	return true;
}

bool vf_guid_derive(const struct planning *p, const json_t *pf, int number,
		    char ret[TEXT_GUID_SIZE])
{
	uint64_t rest;

	if (number >= 0 && number <= UINT8_MAX && mac_behind_guid(address_of(pf), &rest))
		rest = rest << 8 | (unsigned int)number;
	else if (!guid_hash(p, pf, number, &rest))
		return false;
	text_from_guid(rest | (uint64_t)0x02 << 56, ret);
	return true;
}

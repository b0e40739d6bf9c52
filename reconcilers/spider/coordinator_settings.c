// SPDX-License-Identifier: Apache-2.0
/* What the coordinator's settings may say. */
#include "reconcilers/spider/coordinator_settings.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/fields.h"
#include "reconcilers/ipam/ip_range.h"

/* hostRuleTable, detectGateway and the like have no rule: they are kept and have no effect here. */
static const struct field fields[] = {
	FIELD_WORD("mode", "auto underlay overlay disabled"),
	FIELD_WORD("podCIDRType", "auto cluster calico cilium none"),
	FIELD_TEXTS("hijackCIDR"),
	FIELD_ARRAY("policyRoutes"),
	FIELD_TEXT("podMACPrefix"),
	FIELD_BOOL("tunePodRoutes"),
	FIELD_TEXT("podDefaultRouteNIC"),
	/* Negative means: leave the kernel's setting alone. */
	FIELD_INT("podRPFilter", INT32_MIN, 2),
	FIELD_INT("txQueueLen", 0, INT32_MAX),
	FIELD_TEXT("vethLinkAddress"),
	FIELD_INT("vethMTU", 1, INT32_MAX),
	FIELDS_END,
};

/* An address or a subnet; false when it is neither. */
static bool is_network(const char *text, enum ip_family *ret_family)
{
	struct ip_subnet subnet;
	ip_number address;

	if (!strchr(text, '/'))
		return ip_parse_any(text, ret_family, &address, NULL) == 0;
	if (ip_subnet_parse(text, &subnet, NULL))
		return false;
	*ret_family = subnet.family;
	return true;
}

static void check_policy_route(const json_t *route, const char *where, struct problems *problems)
{
	const char *dst = json_str_or(json_at(route, "dst"), "");
	const char *gw = json_str_or(json_at(route, "gw"), "");
	enum ip_family dst_family, gw_family;
	ip_number address;

	if (!is_network(dst, &dst_family))
		problem_add(problems, "BadRoute", where,
			    "dst \"%.64s\" is neither an IP address nor a subnet", dst);
	else if (ip_parse_any(gw, &gw_family, &address, NULL))
		problem_add(problems, "BadRoute", where, "gw \"%.64s\" is not an IP address", gw);
	else if (dst_family != gw_family)
		problem_add(problems, "BadRoute", where,
			    "dst %s and gw %s must both be IPv4 or both be IPv6", dst, gw);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void check_mac_prefix(const char *prefix, const char *where, struct problems *problems)
{
	auto_free char *field = str_printf("%s.podMACPrefix", where);

	if (!*prefix)
		return;
	if (strlen(prefix) != 5 || !is_hex(prefix[0]) || !is_hex(prefix[1]) || prefix[2] != ':' ||
	    !is_hex(prefix[3]) || !is_hex(prefix[4]))
		problem_add(problems, "BadMACPrefix", field,
			    "\"%.64s\" is not the first two bytes of a MAC address: write for "
			    "example 0a:1b",
			    prefix);
	else if (strchr("13579bBdDfF", prefix[1])) /* the group bit */
		problem_add(
			problems, "BadMACPrefix", field,
			"%s is the beginning of a multicast address: make the second digit even",
			prefix);
}

void coordinator_spec_check(const json_t *settings, const char *where, struct problems *problems)
{
	const char *link_address;
	enum ip_family family;
	ip_number address;
	json_t *route;
	size_t i;
	json_t *network;

	assert(where && problems);
	if (!fields_check(settings, where, fields, problems))
		return;
	json_array_foreach (json_at(settings, "hijackCIDR"), i, network) {
		auto_free char *field = str_printf("%s.hijackCIDR[%zu]", where, i);

		if (!is_network(json_string_value(network), &family))
			problem_add(problems, "BadNetwork", field,
				    "\"%.64s\" is neither an IP address nor a subnet",
				    json_string_value(network));
	}
	json_array_foreach (json_at(settings, "policyRoutes"), i, route) {
		auto_free char *field = str_printf("%s.policyRoutes[%zu]", where, i);

		check_policy_route(route, field, problems);
	}
	check_mac_prefix(json_str_or(json_at(settings, "podMACPrefix"), ""), where, problems);
	link_address = json_str_or(json_at(settings, "vethLinkAddress"), "");
	if (*link_address && ip_parse_any(link_address, &family, &address, NULL)) {
		auto_free char *field = str_printf("%s.vethLinkAddress", where);

		problem_add(problems, "BadAddress", field, "\"%.64s\" is not an IP address",
			    link_address);
	}
}

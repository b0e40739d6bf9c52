// SPDX-License-Identifier: Apache-2.0
/*
 * The step from an IPAM result to an interface that works: IPv6 on, addresses, up, routes, in this
 * order, for the kernel drops routes of an interface that is down. ipam_run.c calls it for every
 * plugin that makes interfaces.
 */
#include "nodeagent/cni/plan/interface.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"

#define TABLE_MAIN 254
#define SCOPE_LINK 253

static bool has_family(const json_t *ips, unsigned int family)
{
	size_t i;
	json_t *ip;

	json_array_foreach (ips, i, ip)
		if (look_family_of(json_str_or(json_at(ip, "address"), "")) == family)
			return true;
	return false;
}

static const char *gateway_of(const json_t *ips, unsigned int family)
{
	size_t i;
	json_t *ip;

	json_array_foreach (ips, i, ip)
		if (json_at(ip, "gateway") &&
		    look_family_of(json_str_or(json_at(ip, "address"), "")) == family)
			return json_str_at(ip, "gateway");
	return NULL;
}

static void add_route(json_t *steps, const char *ifname, const json_t *route, const json_t *ips)
{
	const char *dst = json_str_or(json_at(route, "dst"), "");
	const char *gw = json_str_at(route, "gw");
	bool v4 = look_family_of(dst) == LOOK_V4;
	json_t *step = steps_add(steps, "pod", "route", ifname);

	gw = gw ? gw : gateway_of(ips, look_family_of(dst));
	json_put_int(step, "family", v4 ? 4 : 6);
	json_put_int(step, "table",
		     json_at(route, "table") ? look_number(route, "table") : TABLE_MAIN);
	json_put_str(step, "dst", dst);
	json_put_str(step, "gw", gw);
	if (json_at(route, "priority"))
		json_put_int(step, "metric", look_number(route, "priority"));
	if (json_at(route, "mtu"))
		json_put_int(step, "mtu", look_number(route, "mtu"));
	if (json_at(route, "scope"))
		json_put_int(step, "scope", look_number(route, "scope"));
	else if (v4 && !gw)
		json_put_int(step, "scope", SCOPE_LINK);
	/* Each rail may bring a default route; the coordinator sorts them out. */
	json_put_bool(step, "beside", true);
}

void interface_plan(const char *ifname, const json_t *result, json_t *steps)
{
	const json_t *ips = json_at(result, "ips");
	size_t i;
	json_t *item;

	assert(ifname && json_is_array(steps));
	if (has_family(ips, LOOK_V6)) {
		steps_add_sysctl(steps, "pod", json_fmt("net/ipv6/conf/lo/disable_ipv6"), "0");
		steps_add_sysctl(steps, "pod", json_fmt("net/ipv6/conf/%s/disable_ipv6", ifname),
				 "0");
		steps_add_sysctl(steps, "pod",
				 json_fmt("net/ipv6/conf/%s/keep_addr_on_down", ifname), "1");
	}
	json_array_foreach (ips, i, item) {
		json_t *step = steps_add(steps, "pod", "address", ifname);

		json_put_str(step, "address", json_str_at(item, "address"));
		json_put_bool(step, "broadcast", true);
	}
	/* Now its addresses are announced (arp_notify), and routes have a way. */
	json_put_bool(steps_add(steps, "pod", "link", ifname), "up", true);
	json_array_foreach (json_at(result, "routes"), i, item)
		add_route(steps, ifname, item, ips);
}

void interface_put_dns(json_t *result, const json_t *config)
{
	const json_t *dns = json_at(config, "dns");

	assert(result);
	json_put(result, "dns", json_is_object(dns) ? json_deep_copy(dns) : json_object());
}

int interface_adopt(json_t *result, const json_t *from_ipam, struct err *err)
{
	static const char *const lists[] = {"ips", "routes", "dns"};
	size_t n = json_array_size(json_at(result, "interfaces")), i;
	json_t *ip;

	if (json_array_size(json_at(from_ipam, "ips")) == 0)
		return err_set(err, ERR_INVALID, "BadResult",
			       "the IPAM plugin gave no address; see its configuration and pools");
	for (i = 0; i < ARRAY_LEN(lists); i++)
		json_put(result, lists[i], json_deep_copy(json_at(from_ipam, lists[i])));
	json_array_foreach (json_at(result, "ips"), i, ip)
		json_put_int(ip, "interface", n ? (int64_t)n - 1 : 0);
	return 0;
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

/* The position of the interface in the result; -1: it is not in it. */
static int position_of(const struct interface_facts *facts)
{
	size_t i;
	json_t *interface;

	json_array_foreach (json_at(facts->previous, "interfaces"), i, interface)
		if (str_eq(json_str_at(interface, "name"), facts->ifname) &&
		    str_eq(json_str_at(interface, "sandbox"), facts->netns_path))
			return (int)i;
	return -1;
}

static bool has_entry(const json_t *list, const char *const *keys, const char *const *values)
{
	size_t i, k;
	json_t *item;

	json_array_foreach (list, i, item) {
		for (k = 0; k < 2; k++)
			if (values[k] && !str_eq(json_str_at(item, keys[k]), values[k]))
				break;
		if (k == 2)
			return true;
	}
	return false;
}

static int check_addresses(const struct interface_facts *facts, int position, struct err *err)
{
	static const char *const address_keys[] = {"address", "dev"}, *const route_keys[] = {"dst",
											     "gw"};
	size_t i;
	json_t *item;

	json_array_foreach (json_at(facts->previous, "ips"), i, item) {
		const char *values[] = {json_str_at(item, "address"), facts->ifname};
		const json_t *of = json_at(item, "interface");

		if ((!of || json_integer_value(of) == position) &&
		    !has_entry(json_at(facts->pod, "addresses"), address_keys, values))
			return interface_not_as_added(err, "%s: %s has no address %s any more",
						      facts->type, facts->ifname, values[0]);
	}
	json_array_foreach (json_at(facts->previous, "routes"), i, item) {
		const char *values[] = {json_str_at(item, "dst"), json_str_at(item, "gw")};

		if (!has_entry(json_at(facts->pod, "routes"), route_keys, values))
			return interface_not_as_added(
				err, "%s: the pod has no route to %s%s%s any more", facts->type,
				values[0], values[1] ? " via " : "", values[1] ? values[1] : "");
	}
	return 0;
}

int interface_check(const struct interface_facts *facts, const char *kind, const json_t **ret_link,
		    struct err *err)
{
	const json_t *link = look_link(facts->pod, facts->ifname), *before;
	const char *is = json_str_or(json_at(link, "kind"), "none"), *mac;
	int position = position_of(facts);

	assert(facts->type && facts->ifname);
	if (!facts->previous)
		return err_set(err, ERR_INVALID, "BadField",
			       "%s: prevResult is missing: CHECK compares with it", facts->type);
	if (position < 0)
		return interface_not_as_added(err, "%s: prevResult has no interface %s in %s",
					      facts->type, facts->ifname, facts->netns_path);
	if (!link)
		return interface_not_as_added(err, "%s: the pod has no interface %s any more",
					      facts->type, facts->ifname);
	if (kind && !str_eq(is, kind))
		return interface_not_as_added(err, "%s: the pod's interface %s is of kind %s",
					      facts->type, facts->ifname, is);
	before = json_array_get(json_at(facts->previous, "interfaces"), (size_t)position);
	mac = json_str_at(before, "mac");
	if (!str_empty(mac) && !str_eq(mac, json_str_at(link, "mac")))
		return interface_not_as_added(err, "%s: %s has MAC %s, prevResult says %s",
					      facts->type, facts->ifname,
					      json_str_or(json_at(link, "mac"), "none"), mac);
	if (check_addresses(facts, position, err))
		return -1;
	*ret_link = link;
	return 0;
}

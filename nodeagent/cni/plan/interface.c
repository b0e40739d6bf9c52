// SPDX-License-Identifier: Apache-2.0
/*
 * The step from an IPAM result to an interface that works: IPv6 on, addresses, up, routes, in this
 * order, for the kernel drops routes of an interface that is down. ipam_run.c calls it for every
 * plugin that makes interfaces.
 */
#include "nodeagent/cni/plan/interface.h"

#include <assert.h>
#include <string.h>

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

static void add_sysctl(json_t *steps, const char *ifname, const char *name, const char *value)
{
	json_t *step = steps_add(steps, "pod", "sysctl", NULL);

	json_put(step, "path", json_fmt("net/ipv6/conf/%s/%s", ifname, name));
	json_put_str(step, "value", value);
	json_put_bool(step, "optional", true);
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
		add_sysctl(steps, "lo", "disable_ipv6", "0");
		add_sysctl(steps, ifname, "disable_ipv6", "0");
		add_sysctl(steps, ifname, "keep_addr_on_down", "1");
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

int interface_adopt(json_t *result, const json_t *from_ipam, struct err *err)
{
	static const char *const lists[] = {"ips", "routes", "dns"};
	size_t i;
	json_t *ip;

	if (json_array_size(json_at(from_ipam, "ips")) == 0)
		return err_set(err, ERR_INVALID, "BadResult",
			       "the IPAM plugin gave no address; see its configuration and pools");
	for (i = 0; i < ARRAY_LEN(lists); i++)
		json_put(result, lists[i], json_deep_copy(json_at(from_ipam, lists[i])));
	json_array_foreach (json_at(result, "ips"), i, ip)
		json_put_int(ip, "interface", 0);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Per family: choose the delegate, drop the default routes of all others, name the changes.
 * meta_call.c applies it once all networks are up: results first, then default_route_steps() in the
 * pod's namespace, since plugins have set their routes by then.
 */
#include "nodeagent/cni/plan/default_route.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* The main table (linux/rtnetlink.h, RT_TABLE_MAIN). */
#define MAIN_TABLE 254

static const char *const families[] = {"4", "6"};

static bool is_family(const char *address, const char *family)
{
	return *address && (strchr(address, ':') != NULL) == str_eq(family, "6");
}

static bool is_default(const json_t *route, const char *family)
{
	const char *dst = json_str_or(json_at(route, "dst"), "");

	return is_family(dst, family) && str_ends(dst, "/0");
}

static bool has_default(const json_t *result, const char *family)
{
	json_t *route;
	size_t i;

	json_array_foreach (json_at(result, "routes"), i, route)
		if (is_default(route, family))
			return true;
	return false;
}

/* The gateway that the delegate's annotation names for the family, or NULL. */
static const char *gateway_of(const json_t *delegate, const char *family)
{
	json_t *gateway;
	size_t i;

	json_array_foreach (json_at(delegate, "defaultRoute"), i, gateway)
		if (is_family(json_str_or(gateway, ""), family))
			return json_string_value(gateway);
	return NULL;
}

/* The delegate that gets the family's default route; false when none is chosen. */
static bool choose_delegate(const json_t *delegates, const json_t *results, const char *family,
			    size_t *ret_index)
{
	json_t *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate) {
		const json_t *gateways = json_at(delegate, "defaultRoute");

		*ret_index = i;
		if (gateway_of(delegate, family))
			return true;
		if (gateways && json_array_size(gateways) == 0 &&
		    has_default(json_array_get(results, i), family))
			return true;
	}
	return false;
}

static void drop_defaults(json_t *result, const char *family)
{
	json_t *routes = json_at(result, "routes");
	size_t i = 0;

	while (i < json_array_size(routes))
		if (is_default(json_array_get(routes, i), family))
			json_array_remove(routes, i);
		else
			i++;
	if (routes && json_array_size(routes) == 0)
		json_object_del(result, "routes");
}

static void put_default(json_t *result, const char *family, const char *gateway)
{
	json_t *routes = json_at(result, "routes");

	if (!json_is_array(routes)) {
		routes = json_array();
		json_object_set_new(result, "routes", routes);
	}
	json_array_append_new(routes,
			      json_pack("{s:s, s:s}", "dst",
					str_eq(family, "4") ? "0.0.0.0/0" : "::/0", "gw", gateway));
}

static void apply_choice(const json_t *delegates, json_t *results, const char *family,
			 size_t chosen, json_t *steps)
{
	const char *gateway = gateway_of(json_array_get(delegates, chosen), family);
	json_t *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate) {
		if (i == chosen && !gateway)
			continue;
		drop_defaults(json_array_get(results, i), family);
		json_array_append_new(steps, json_pack("{s:s, s:s}", "remove", family, "interface",
						       json_str_at(delegate, "interface")));
	}
	if (!gateway)
		return;
	put_default(json_array_get(results, chosen), family, gateway);
	json_array_append_new(steps,
			      json_pack("{s:s, s:s, s:s}", "add", family, "interface",
					json_str_at(json_array_get(delegates, chosen), "interface"),
					"gateway", gateway));
}

json_t *default_route_apply(const json_t *delegates, json_t *results)
{
	json_t *steps = json_array();
	size_t chosen = 0;

	assert(json_array_size(results) == json_array_size(delegates));
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (choose_delegate(delegates, results, families[i], &chosen))
			apply_choice(delegates, results, families[i], chosen, steps);
	return steps;
}

/* ---- in the pod's namespace ------------------------------------------------------------------ */

static json_t *add_step(json_t *steps, const char *what, const char *family, const char *dev,
			const json_t *gw)
{
	json_t *step = json_pack("{s:s, s:s, s:s}", "in", "pod", "do", what, "dev", dev);

	json_array_append_new(steps, step);
	json_put_int(step, "family", str_eq(family, "6") ? AF_INET6 : AF_INET);
	json_put_int(step, "table", MAIN_TABLE);
	json_put_str(step, "dst", str_eq(family, "4") ? "0.0.0.0/0" : "::/0");
	json_put(step, "gw", json_incref((json_t *)gw));
	return step;
}

/* A default route over several interfaces loses the part that leads over this one. */
static void remove_route(json_t *steps, const json_t *route, const char *family, const char *dev)
{
	json_t *nexthop, *step;
	size_t i;

	if (str_eq(json_str_at(route, "dev"), dev)) {
		step = add_step(steps, "unroute", family, dev, json_at(route, "gw"));
		json_put(step, "metric", json_incref(json_at(route, "metric")));
	}
	json_array_foreach (json_at(route, "nexthops"), i, nexthop)
		if (str_eq(json_str_at(nexthop, "dev"), dev)) {
			step = add_step(steps, "unroute", family, dev, json_at(nexthop, "gw"));
			json_put(step, "metric", json_incref(json_at(route, "metric")));
		}
}

json_t *default_route_steps(const json_t *changes, const json_t *look)
{
	json_t *steps = json_array(), *change, *route;
	size_t i, k;

	json_array_foreach (changes, i, change) {
		const char *dev = json_str_at(change, "interface");
		const char *family = json_str_at(change, "remove");

		if (!family) {
			add_step(steps, "route", json_str_at(change, "add"), dev,
				 json_at(change, "gateway"));
			continue;
		}
		json_array_foreach (json_at(look, "routes"), k, route)
			if (json_integer_value(json_at(route, "table")) == MAIN_TABLE &&
			    is_default(route, family))
				remove_route(steps, route, family, dev);
	}
	return steps;
}

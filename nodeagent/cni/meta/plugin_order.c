// SPDX-License-Identifier: Apache-2.0
/*
 * A pair of networks is independent unless one of the three reasons holds; a network may go on when
 * all earlier ones that it depends on are far enough. meta_run.c asks for each network again
 * whenever a plugin ends.
 */
#include "nodeagent/cni/meta/plugin_order.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/meta/plugin_call.h"

/*
 * They look at their own interface and at what its configuration names on the host, at nothing else
 * in the pod.
 */
static const char *const alone[] = {
	"macvlan",  "ipvlan", "vlan",    "bridge",    "ptp",         "host-device",
	"tap",      "dummy",  "tuning",  "sbr",       "sriov",       "rdma",
	"ib-sriov", "ipoib",  "portmap", "bandwidth", "coordinator",
};

static bool is_alone(const json_t *delegate)
{
	const json_t *plugins = json_at(delegate, "config", "plugins");
	json_t *plugin;
	size_t i, k;

	json_array_foreach (plugins, i, plugin) {
		const char *type = json_str_at(plugin, "type");

		for (k = 0; k < ARRAY_LEN(alone) && !str_eq(alone[k], type); k++)
			;
		if (k == ARRAY_LEN(alone) || json_is_true(json_at(plugin, "linkInContainer")))
			return false;
	}
	return true;
}

/*
 * Position of the plugin that gives the pod's tables and rules to the interface; the number of
 * plugins when there is none.
 */
static size_t coordinator_of(const json_t *delegate)
{
	size_t n = delegate_plugins(delegate);

	for (size_t i = 0; i < n; i++)
		if (str_eq(delegate_plugin_type(delegate, i), "coordinator"))
			return i;
	return n;
}

/* Whose routes are all in its configuration, and none is a default one. */
static bool lists_no_default(const json_t *ipam)
{
	const char *type = json_str_or(json_at(ipam, "type"), "");
	json_t *route;
	size_t i;

	if (!*type)
		return true;
	if (!str_eq(type, "host-local") && !str_eq(type, "static"))
		return false;
	json_array_foreach (json_at(ipam, "routes"), i, route)
		if (str_ends(json_str_or(json_at(route, "dst"), "/0"), "/0"))
			return false;
	return true;
}

/*
 * The effective default route is the one that was added last. Coordinators move them away, and take
 * turns themselves.
 */
static bool may_set_default_route(const json_t *delegate)
{
	const json_t *plugins = json_at(delegate, "config", "plugins");
	json_t *plugin;
	size_t i;

	if (coordinator_of(delegate) < delegate_plugins(delegate))
		return false;
	json_array_foreach (plugins, i, plugin)
		if (!lists_no_default(json_at(plugin, "ipam")))
			return true;
	return false;
}

static bool is_complete(const json_t *delegate, size_t done)
{
	return done >= delegate_plugins(delegate);
}

/* Must `later`, whose next plugin is at `next`, wait for `earlier`? */
static bool waits_for(const json_t *later, size_t next, const json_t *earlier, size_t earlier_done)
{
	size_t turn = coordinator_of(earlier);

	if (is_complete(earlier, earlier_done))
		return false;
	if (!is_alone(later) || !is_alone(earlier))
		return true;
	if (may_set_default_route(later) && may_set_default_route(earlier))
		return true;
	return next == coordinator_of(later) &&
	       (turn == delegate_plugins(earlier) || earlier_done <= turn);
}

bool plugin_order_may_add(const json_t *delegates, const size_t *done, size_t i)
{
	const json_t *delegate = json_array_get(delegates, i);

	assert(i < json_array_size(delegates));
	if (is_complete(delegate, done[i]))
		return false;
	if (i > 0 && !is_complete(json_array_get(delegates, 0), done[0]))
		return false;
	for (size_t k = 0; k < i; k++)
		if (waits_for(delegate, done[i], json_array_get(delegates, k), done[k]))
			return false;
	return true;
}

bool plugin_order_may_delete(const json_t *delegates, const bool *there, size_t i)
{
	const json_t *delegate = json_array_get(delegates, i);

	assert(i < json_array_size(delegates));
	for (size_t k = i + 1; k < json_array_size(delegates); k++)
		if (there[k] &&
		    (i == 0 || !is_alone(delegate) || !is_alone(json_array_get(delegates, k))))
			return false;
	return true;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A pair of networks is independent unless one of the three reasons holds; a network may go on when
 * all earlier ones that it depends on are far enough. meta_run.c asks for each network again
 * whenever a plugin ends.
 */
#include "nodeagent/cni/plan/plugin_order.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/coordinator.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/cni/plan/steps.h"

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

/* ---- interfaces that go at once -------------------------------------------------------------- */

static const json_t *record_of(const json_t *records, const char *type, const char *ifname)
{
	const json_t *record;
	size_t i;

	json_array_foreach (records, i, record)
		if (str_eq(json_str_at(record, "plugin"), type) &&
		    str_eq(json_str_at(record, "ifname"), ifname))
			return record;
	return NULL;
}

static bool has_word(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(words[i], word))
			return true;
	return false;
}

/* Is all that DEL of the network does in the pod to remove interfaces? */
static bool only_unlinks(const json_t *delegate, const json_t *records)
{
	static const char *const makers[] = {"macvlan", "ipvlan", "vlan",
					     "dummy",   "bridge", "coordinator"};
	static const char *const ipam[] = {NULL, "spiderpool", "static", "host-local"};
	const char *ifname = json_str_at(delegate, "interface");

	for (size_t i = 0; i < delegate_plugins(delegate); i++) {
		const char *type = delegate_plugin_type(delegate, i);
		const json_t *record = record_of(records, type, ifname);

		if (!record || !has_word(makers, ARRAY_LEN(makers), type) ||
		    !has_word(ipam, ARRAY_LEN(ipam), json_str_at(record, "config", "ipam", "type")))
			return false;
	}
	return true;
}

static bool is_removed_by(const json_t *record, const json_t *link)
{
	const char *type = json_str_at(record, "plugin"), *kind = json_str_at(link, "kind");
	const char *name = json_str_at(link, "name");
	/* The other end is the node's. */
	bool is_end = json_at(record, "saved", "peer") && str_eq(kind, "veth");

	if (str_eq(type, "coordinator"))
		return is_end && str_eq(name, COORDINATOR_VETH);
	return str_eq(name, json_str_at(record, "ifname")) &&
	       (str_eq(type, "bridge") ? is_end : str_eq(type, kind));
}

static bool is_removed(const json_t *delegates, const json_t *records, const json_t *link)
{
	json_t *delegate;
	size_t i;

	json_array_foreach ((json_t *)delegates, i, delegate)
		for (size_t k = 0; k < delegate_plugins(delegate); k++)
			if (only_unlinks(delegate, records) &&
			    is_removed_by(record_of(records, delegate_plugin_type(delegate, k),
						    json_str_at(delegate, "interface")),
					  link))
				return true;
	return false;
}

json_t *plugin_order_unlink(const json_t *delegates, const json_t *records, const json_t *look,
			    uint32_t group)
{
	json_t *steps = json_array(), *link, *step;
	size_t i;

	assert(group != 0);
	/* The cluster's network needs none of the others. */
	for (i = 1; i < json_array_size(delegates); i++)
		if (!is_alone(json_array_get(delegates, i)))
			return steps;
	json_array_foreach (json_at(look, "links"), i, link) {
		if (!is_removed(delegates, records, link))
			continue;
		step = steps_add(steps, "pod", "link", json_str_at(link, "name"));
		json_put_int(step, "index", look_number(link, "index"));
		json_put_int(step, "group", group);
	}
	if (json_array_size(steps) < 2)
		json_array_clear(steps);
	else
		json_put_int(steps_add(steps, "pod", "unlink", NULL), "group", group);
	return steps;
}

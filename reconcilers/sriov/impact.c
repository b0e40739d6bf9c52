// SPDX-License-Identifier: Apache-2.0
/*
 * The command line's "plan" calls this with two specs and a status. Each PF is compared field by
 * field, a change that removes VFs names the pods that hold them, and the worst change classes the
 * whole.
 */
#include "reconcilers/sriov/impact.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/nic_settings.h"
#include "reconcilers/sriov/roce_settings.h"

struct impact {
	enum node_impact worst;
	json_t *changes, *pods;
	json_t *holders; /* by device */
	int64_t unknown; /* devices of VFs that an unknown pod has */
};

const char *node_impact_name(enum node_impact impact)
{
	static const char *const names[] = {"none", "evict", "reboot"};

	assert(impact <= NODE_IMPACT_REBOOT);
	return names[impact];
}

/* ---- who has what ---------------------------------------------------------------------------- */

char *node_holder_pod(const char *holder, const char **ret_container)
{
	const char *slash = strchr(holder, '/');
	const char *second = slash ? strchr(slash + 1, '/') : NULL;

	if (ret_container)
		*ret_container = second ? second + 1 : NULL;
	return str_ndup(holder, second ? (size_t)(second - holder) : strlen(holder));
}

static json_t *holder(const json_t *entry, const char *resource)
{
	const char *container;
	auto_free char *name = node_holder_pod(json_str_or(json_at(entry, "pod"), ""), &container);
	json_t *pod = json_object();

	json_put_str(pod, "pod", name);
	json_put_str(pod, "container", container);
	json_put_str(pod, "resource", resource);
	json_put_str(pod, "device", json_str_at(entry, "device"));
	return pod;
}

/* Devices of VFs only: those of shared resources are numbers. */
static void read_holders(struct impact *impact, const json_t *status)
{
	json_t *resource, *entry;
	size_t i, k;

	json_array_foreach (json_at(status, "resources"), i, resource) {
		const json_t *pods = json_at(resource, "pods");
		/* Absent: the kubelet has not said, so each may be in use. */
		const char *of = json_at(resource, "allocated") ? "allocated" : "offered";
		json_int_t allocated = json_integer_value(json_at(resource, of));

		if (!str_eq(json_str_or(json_at(resource, "kind"), "sriov"), "sriov"))
			continue;
		if (allocated > (json_int_t)json_array_size(pods))
			impact->unknown += allocated - (json_int_t)json_array_size(pods);
		json_array_foreach (pods, k, entry) {
			const char *device = json_str_at(entry, "device");

			if (device)
				json_put(impact->holders, device,
					 holder(entry, json_str_or(json_at(resource, "name"), "")));
		}
	}
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void add_change(struct impact *impact, enum node_impact class, const json_t *now, int64_t to,
		       const char *message)
{
	json_t *change = json_object();

	json_put_str(change, "class", node_impact_name(class));
	if (now) {
		json_put_str(change, "pciAddress", json_str_at(now, "pciAddress"));
		json_put_str(change, "nic", json_str_at(now, "name"));
		json_put_int(change, "vfsBefore", json_integer_value(json_at(now, "numVfs")));
		json_put_int(change, "vfs", to);
	}
	json_put_str(change, "message", message);
	json_array_append_new(impact->changes, change);
	if (class > impact->worst)
		impact->worst = class;
}

/* The pod or process that holds this VF has to end; false when it is free. */
static bool add_pod(struct impact *impact, const json_t *now, const json_t *vf, const char *why)
{
	const char *device = json_str_or(json_at(vf, "pciAddress"), "");
	const json_t *holder = json_object_get(impact->holders, device);
	json_t *pod;

	if (!holder)
		return false;
	pod = json_copy((json_t *)holder);
	json_put_str(pod, "nic", json_str_at(now, "name"));
	json_put_str(pod, "why", why);
	json_array_append_new(impact->pods, pod);
	return true;
}

/* All VFs of the PF go; those that are wanted are made again. */
static void remake(struct impact *impact, const json_t *now, int64_t to, const char *why)
{
	json_int_t from = json_integer_value(json_at(now, "numVfs"));
	json_t *list = json_at(now, "Vfs"), *vf;
	bool may_hold = from > 0 && impact->unknown > 0;
	auto_free char *message = NULL;
	size_t i, held = 0;

	json_array_foreach (list, i, vf)
		held += add_pod(impact, now, vf, why);
	if (held > 0)
		message = str_printf("%s: all VFs are removed first, %zu of them %s in pods", why,
				     held, held == 1 ? "is" : "are");
	else if (may_hold)
		message = str_printf("%s: all VFs are removed first, pods may have some", why);
	else if (from > 0)
		message = str_printf("%s: all VFs are removed first, no pod has one", why);
	add_change(impact, held > 0 || may_hold ? NODE_IMPACT_EVICT : NODE_IMPACT_NONE, now, to,
		   message ? message : why);
}

/* ---- VFs that stay --------------------------------------------------------------------------- */

/* The group of spec that VF `number` is in, or NULL. */
static const json_t *group_of(const json_t *wish, json_int_t number)
{
	json_t *group;
	size_t i;

	json_array_foreach (json_at(wish, "vfGroups"), i, group) {
		int first, last;

		if (sscanf(json_str_or(json_at(group, "vfRange"), ""), "%d-%d", &first, &last) ==
			    2 &&
		    first <= number && number <= last)
			return group;
	}
	return NULL;
}

static bool is_vfio(const char *driver)
{
	return str_eq(driver, "vfio-pci");
}

/* VFs of one group that get another driver, reported together. */
static void change_drivers(struct impact *impact, const json_t *now, const json_t *wish, bool vfio)
{
	const char *to = vfio ? "vfio-pci" : "the kernel's driver";
	auto_free char *why = str_printf("driver becomes %s", to);
	json_t *vf;
	size_t i, n = 0, held = 0;

	json_array_foreach (json_at(now, "Vfs"), i, vf) {
		const char *driver = json_str_at(vf, "driver");
		const json_t *group = group_of(wish, json_integer_value(json_at(vf, "vfID")));

		if (!group || !driver || is_vfio(driver) == vfio ||
		    is_vfio(json_str_at(group, "deviceType")) != vfio)
			continue;
		n++;
		held += add_pod(impact, now, vf, why);
	}
	if (n > 0) {
		bool may_hold = held == 0 && impact->unknown > 0;
		auto_free char *message =
			may_hold ? str_printf("%s for %zu VF%s, pods may have some", why, n,
					      n == 1 ? "" : "s")
				 : str_printf("%s for %zu VF%s, %zu of them in pods", why, n,
					      n == 1 ? "" : "s", held);

		add_change(impact, held > 0 || may_hold ? NODE_IMPACT_EVICT : NODE_IMPACT_NONE, now,
			   json_integer_value(json_at(now, "numVfs")), message);
	}
}

/* That the PF has to have, for its VFs too. */
static json_int_t mtu_of(const json_t *wish)
{
	json_int_t mtu = json_integer_value(json_at(wish, "mtu"));
	json_t *group;
	size_t i;

	json_array_foreach (json_at(wish, "vfGroups"), i, group)
		if (json_integer_value(json_at(group, "mtu")) > mtu)
			mtu = json_integer_value(json_at(group, "mtu"));
	return mtu;
}

/* Never lowered while a policy wants the PF. */
static void compare_mtu(struct impact *impact, const json_t *now, const json_t *wish, int64_t vfs,
			const char *more)
{
	json_int_t mtu = mtu_of(wish);
	auto_free char *message = NULL;

	if (mtu <= json_integer_value(json_at(now, "mtu")))
		return;
	message = str_printf("MTU is raised to %lld%s", (long long)mtu, more);
	add_change(impact, NODE_IMPACT_NONE, now, vfs, message);
}

/* ---- RoCE settings --------------------------------------------------------------------------- */

/* Pods that hold VFs of the PF lose their link for a moment, so they have to end first. */
static void take_link(struct impact *impact, const json_t *now, const char *what)
{
	auto_free char *why = str_printf("settings that take the link down change: %s", what);
	json_int_t vfs = json_integer_value(json_at(now, "numVfs"));
	bool may_hold = vfs > 0 && impact->unknown > 0;
	json_t *vf;
	size_t i;

	json_array_foreach (json_at(now, "Vfs"), i, vf)
		may_hold |= add_pod(impact, now, vf, why);
	add_change(impact, may_hold ? NODE_IMPACT_EVICT : NODE_IMPACT_NONE, now, vfs, why);
}

/* was, wish: entries of spec.nicSettings; NULL: none. */
static void compare_settings(struct impact *impact, const json_t *now, const json_t *was,
			     const json_t *wish)
{
	json_auto_t *unmet = roce_settings_unmet(wish, now);
	auto_strbuf struct strbuf quiet = {0}, loud = {0};
	size_t n;
	const struct nic_setting *all = nic_settings(&n);

	for (size_t i = 0; i < n; i++) {
		const char *name = all[i].name;
		const json_t *before = json_at(was, "settings", name);
		const json_t *to = json_at(wish, "settings", name);
		const json_t *is = json_at(now, "settings", name);
		auto_free char *text = to ? json_text(to) : NULL;
		struct strbuf *what =
			nic_setting_disturbs(name, json_str_at(now, "driver")) ? &loud : &quiet;

		/* One that the NIC does not have makes no difference any more. */
		if (to ? !json_list_has(unmet, name) || (!is && json_same(before, to)) : !before)
			continue;
		strbuf_addf(what, "%s%s %s", what->len ? ", " : "", name,
			    text ? text : "as it was found");
	}
	if (loud.len)
		take_link(impact, now, strbuf_str(&loud));
	if (quiet.len) {
		auto_free char *message = str_printf("settings change: %s", strbuf_str(&quiet));

		add_change(impact, NODE_IMPACT_NONE, now,
			   json_integer_value(json_at(now, "numVfs")), message);
	}
}

/* ---- PFs ------------------------------------------------------------------------------------- */

/* Why the agent does nothing at all to this PF, a new string; NULL: it does. */
static char *refusal(const json_t *now, const json_t *wish)
{
	json_int_t to = json_integer_value(json_at(wish, "numVfs"));
	json_int_t total = json_integer_value(json_at(now, "totalvfs"));
	const char *link = json_str_or(json_at(wish, "linkType"), "");
	const char *link_now = json_str_or(json_at(now, "linkType"), "not known");
	const char *mode = json_str_or(json_at(wish, "eSwitchMode"), "");
	bool is_external = json_is_true(json_at(wish, "externallyManaged"));

	if (!is_external && to > total)
		return str_printf("numVfs %lld is more than the %lld that the NIC can have: "
				  "nothing is done; lower numVfs",
				  (long long)to, (long long)total);
	if (*link && strcasecmp(link, link_now) != 0)
		return str_printf("linkType %s is wanted, the port is %s: nothing is done; "
				  "correct the policy or set the port",
				  link, link_now);
	if (!is_external)
		return NULL;
	if (*mode && !str_eq(mode, json_str_at(now, "eSwitchMode")))
		return str_printf("it is externallyManaged and not in eSwitchMode %s: nothing is "
				  "done; whoever manages it has to set it",
				  mode);
	if (mtu_of(wish) > json_integer_value(json_at(now, "mtu")))
		return str_printf("it is externallyManaged and its MTU is less than %lld: nothing "
				  "is done; whoever manages it has to raise it",
				  (long long)mtu_of(wish));
	return NULL;
}

/* Why the PF changes its eSwitch mode, for which all VFs go; a new string, NULL: it does not. */
static char *change_of_mode(const json_t *now, const json_t *was, const json_t *wish)
{
	const char *mode = json_str_or(json_at(wish, "eSwitchMode"), "");
	const char *mode_now = json_str_or(json_at(now, "eSwitchMode"), "");

	if (*mode)
		return str_eq(mode, mode_now)
			       ? NULL
			       : str_printf("eSwitchMode is %s, wanted %s",
					    *mode_now ? mode_now : "not known", mode);
	/* The status does not show how it was found; NICs start in mode legacy. */
	if (!json_is_true(json_at(was, "externallyManaged")) &&
	    str_eq(json_str_at(was, "eSwitchMode"), "switchdev") && str_eq(mode_now, "switchdev"))
		return str_dup("no policy wants eSwitchMode switchdev any more, it becomes as it "
			       "was found");
	return NULL;
}

static void compare_wanted(struct impact *impact, const json_t *now, const json_t *was,
			   const json_t *wish)
{
	json_int_t to = json_integer_value(json_at(wish, "numVfs"));
	json_int_t from = json_integer_value(json_at(now, "numVfs"));
	bool is_external = json_is_true(json_at(wish, "externallyManaged"));
	auto_free char *refused = refusal(now, wish);
	auto_free char *why = is_external ? NULL : change_of_mode(now, was, wish);

	if (refused) {
		add_change(impact, NODE_IMPACT_NONE, now, from, refused);
		return;
	}
	if (!why && to != from && !is_external)
		why = str_printf("numVfs is %lld, wanted %lld", (long long)from, (long long)to);
	if (why) {
		remake(impact, now, to, why);
		compare_mtu(impact, now, wish, to, "");
	} else {
		json_int_t vfs = json_integer_value(json_at(now, "numVfs"));

		change_drivers(impact, now, wish, true);
		change_drivers(impact, now, wish, false);
		compare_mtu(impact, now, wish, vfs, "; VFs in pods keep theirs");
		/* Resource names, GUIDs, RDMA: of VFs that are free, or for the kubelet alone. */
		if (was && !json_same(json_at(was, "vfGroups"), json_at(wish, "vfGroups")))
			add_change(impact, NODE_IMPACT_NONE, now, vfs, "groups of VFs change");
	}
}

static void compare_mode(struct impact *impact, const json_t *before, const json_t *spec,
			 const json_t *status)
{
	const char *now = json_str_or(json_at(status, "system", "rdmaMode"), "");
	const char *was = json_str_or(json_at(before, "system", "rdmaMode"), "");
	const char *wanted = json_str_or(json_at(spec, "system", "rdmaMode"), "");
	auto_free char *message = NULL;

	if (*wanted ? str_eq(wanted, now) : !*was)
		return;
	message = *wanted ? str_printf("RDMA namespace mode is %s, wanted %s",
				       *now ? now : "not known", wanted)
			  : str_printf(
				    "RDMA namespace mode %s is given up for the one that was found",
				    was);
	add_change(impact, NODE_IMPACT_REBOOT, NULL, 0, message);
}

json_t *node_impact(const json_t *before, const json_t *spec, const json_t *status)
{
	struct impact impact = {
		.changes = json_array(),
		.pods = json_array(),
		.holders = json_object(),
	};
	json_t *now, *result;
	size_t i;

	read_holders(&impact, status);
	compare_mode(&impact, before, spec, status);
	json_array_foreach (json_at(status, "interfaces"), i, now) {
		const char *address = json_str_or(json_at(now, "pciAddress"), "");
		const json_t *was = json_find(json_at(before, "interfaces"), "pciAddress", address);
		const json_t *wish = json_find(json_at(spec, "interfaces"), "pciAddress", address);

		compare_settings(&impact, now,
				 json_find(json_at(before, "nicSettings"), "pciAddress", address),
				 json_find(json_at(spec, "nicSettings"), "pciAddress", address));
		if (wish) {
			compare_wanted(&impact, now, was, wish);
		} else {
			/*
			 * A PF that policies leave gets back what the agent found on it, which the
			 * status does not show.
			 */
			if (was && !json_is_true(json_at(was, "externallyManaged"))) {
				json_int_t from = json_integer_value(json_at(now, "numVfs"));

				if (from > 0)
					remake(&impact, now, 0,
					       "no policy wants the NIC any more, it becomes as it "
					       "was found");
				else
					add_change(&impact, NODE_IMPACT_NONE, now, 0,
						   "no policy wants the NIC any more");
			}
		}
	}
	result = json_pack("{s:s, s:o, s:o}", "class", node_impact_name(impact.worst), "changes",
			   impact.changes, "pods", impact.pods);
	if (impact.unknown > 0)
		json_put_int(result, "unknown", impact.unknown);
	json_decref(impact.holders);
	return result;
}

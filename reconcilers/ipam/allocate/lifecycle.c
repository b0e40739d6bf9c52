// SPDX-License-Identifier: Apache-2.0
/*
 * A turn first carries out what assign.c has decided about the endpoint, then looks for its end.
 * What has to be read live is asked for by BOX_LOOK and found in the next turn; ledgers are left
 * to assign.c.
 */
#include "reconcilers/ipam/allocate/lifecycle.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/pod_controller.h"

/* One decision. */
struct look {
	const json_t *world;
	const char *key;
	const json_t *endpoint;
	const json_t *live; /* NULL: nothing was read */
	const char *asker;  /* key of the pod that asks; NULL: none does */
	struct ipam_settings settings;
	struct plan *plan;
};

bool node_is_gone(const json_t *node)
{
	return !node ||
	       json_find(json_at(node, "spec", "taints"), "key", OUT_OF_SERVICE_TAINT) != NULL;
}

/* The pod with this UID among the few that are about the endpoint; NULL: it is none of them. */
static const json_t *pod_with(const json_t *pods, const char *uid)
{
	const char *key;
	json_t *pod;

	json_each (pods, key, pod)
		if (!str_empty(uid) && str_eq(json_uid(pod), uid))
			return pod;
	return NULL;
}

/* One of the pods that are not known may live. */
static bool is_crowded(const struct look *look)
{
	return world_get(look->world, BOX_CROWDED, look->key) != NULL;
}

static bool is_living(const struct look *look, const char *uid)
{
	return pod_is_alive(pod_with(world_kind(look->world, KIND_POD), uid));
}

/* ---- what was decided ------------------------------------------------------------------------ */

/* Does the endpoint name an address that was decided for the next pod of its name? */
static bool hands_on(const json_t *endpoint, const json_t *decided)
{
	static const char *const fields[][2] = {{"ipv4", "ipv4Pool"}, {"ipv6", "ipv6Pool"}};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(decided, "status", "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
			const char *address = json_str_or(json_at(item, fields[f][0]), "");
			auto_free char *alone = str_ndup(address, strcspn(address, "/"));

			if (*alone &&
			    endpoint_names(endpoint, json_str_or(json_at(item, fields[f][1]), ""),
					   alone))
				return true;
		}
	return false;
}

/*
 * Write what the ledgers say, then forget that it was to be written. True when there was something.
 */
static bool carry_out_decided(const struct look *look)
{
	const json_t *decided = world_get(look->world, BOX_DECIDED, look->key);
	const json_t *object = json_at(decided, "endpoint");
	const char *gone = json_str_at(decided, "gone"), *heard = json_str_at(decided, "heard");

	if (!decided || json_at(decided, "unwritten"))
		return false;
	/*
	 * No pod needs an endpoint of one that has ended meanwhile, and the next one of its name
	 * may have it. A pod that is not mirrored has asked in its endpoint. What was handed on to
	 * it is kept or released by the same rules as before: it is written.
	 */
	if (object && !endpoint_is_of(look->endpoint, endpoint_uid(object)) &&
	    !is_living(look, endpoint_uid(object)) && !hands_on(look->endpoint, object)) {
		plan_post(look->plan, BOX_DECIDED, look->key,
			  json_pack("{s:O}", "unwritten", object));
		return true;
	}
	if (object)
		plan_apply(look->plan, KIND_ENDPOINT, json_incref((json_t *)object));
	/* Unless the agent has said more meanwhile. */
	if (heard && str_eq(json_str_at(look->endpoint, "metadata", "annotations",
					ENDPOINT_CONFLICTS_ANNOTATION),
			    heard))
		plan_meta(look->plan, KIND_ENDPOINT, look->key,
			  json_pack("{s:{s:n}}", "annotations", ENDPOINT_CONFLICTS_ANNOTATION));
	/* A pod of the same name may have it by now. */
	if (gone && look->endpoint && str_eq(endpoint_uid(look->endpoint), gone)) {
		plan_release(look->plan, KIND_ENDPOINT, look->key, look->endpoint,
			     IP_POOL_FINALIZER);
		plan_delete(look->plan, KIND_ENDPOINT, look->key, json_uid(look->endpoint));
	}
	plan_post(look->plan, BOX_DECIDED, look->key, NULL);
	return true;
}

/* ---- what has ended -------------------------------------------------------------------------- */

/*
 * Users may write names into endpoints. The API server answers one that no object can have with a
 * failure ("w1/proxy" is Forbidden), and nothing of the look would be known then, again and again.
 */
static void ask_for(json_t *wanted, const char *kind, const char *key)
{
	const char *slash = strchr(key, '/');
	bool is_of_node = str_eq(kind, KIND_NODE);

	if (name_is_dns_subdomain(slash && !is_of_node ? slash + 1 : key))
		json_array_append_new(wanted, json_pack("{s:s, s:s}", "kind", kind, "key", key));
}

/* Is one of them more than what an endpoint claims? */
static bool has_records(const json_t *strays)
{
	json_t *stray;
	size_t i;

	json_array_foreach (strays, i, stray)
		if (!json_at(stray, "claimed"))
			return true;
	return false;
}

/*
 * All that may be decided on: the pod, who may keep its addresses, and the nodes whose end may be
 * the reason.
 */
static void read_live(const struct look *look)
{
	const json_t *strays = world_get(look->world, BOX_STRAYS, look->key), *stray;
	const char *type =
		json_str_or(json_at(look->endpoint, "status", "ownerControllerType"), "");
	const char *node = json_str_at(look->endpoint, "status", "current", "node");
	const char *dash = strrchr(look->key, '-');
	auto_free char *set = dash ? str_ndup(look->key, (size_t)(dash - look->key)) : NULL;
	auto_free char *named =
		look->endpoint
			? endpoint_pod_key(look->endpoint, world_env(look->world, "namespace"))
			: NULL;
	json_t *wanted, *pod;
	const char *key;
	size_t i;

	/* Several parts of the decision need it; what is asked for twice is read twice. */
	if (json_find(look->plan->ops, "box", BOX_LOOK))
		return;
	wanted = json_array();
	ask_for(wanted, KIND_POD, look->key);
	if (named && !str_eq(named, look->key))
		ask_for(wanted, KIND_POD, named);
	if (look->asker && !str_eq(look->asker, look->key))
		ask_for(wanted, KIND_POD, look->asker);
	json_each (world_kind(look->world, KIND_POD), key, pod)
		if (!str_eq(key, look->key) && !str_eq(key, look->asker))
			ask_for(wanted, KIND_POD, key);
	if (set && str_eq(type, "StatefulSet"))
		ask_for(wanted, KIND_STATEFUL_SET, set);
	if (str_eq(type, "VirtualMachineInstance") || has_records(strays) ||
	    (look->asker && !str_eq(look->asker, look->key))) {
		ask_for(wanted, KIND_VIRTUAL_MACHINE_INSTANCE, look->key);
		ask_for(wanted, KIND_VIRTUAL_MACHINE, look->key);
	}
	if (!str_empty(node))
		ask_for(wanted, KIND_NODE, node);
	json_array_foreach (strays, i, stray)
		if (!str_empty(json_str_at(stray, "node")))
			ask_for(wanted, KIND_NODE, json_str_at(stray, "node"));
	/* No object can have such a name: nothing has to be read to know that there is none. */
	if (json_array_size(wanted) == 0) {
		json_decref(wanted);
		plan_post(look->plan, BOX_LIVE, look->key, json_object());
		return;
	}
	plan_post(look->plan, BOX_LOOK, look->key, wanted);
}

static const json_t *live_object(const struct look *look, const char *kind, const char *key)
{
	return json_at(look->live, kind, key);
}

/* NULL: there is none with this UID any more, as far as its name is known. */
static const json_t *live_pod(const struct look *look, const char *uid)
{
	return pod_with(json_object_get(look->live, KIND_POD), uid);
}

/* A node that was not read is not gone. */
static bool node_is_gone_live(const struct look *look, const char *node)
{
	return json_object_get(json_object_get(look->live, KIND_NODE), node) &&
	       node_is_gone(live_object(look, KIND_NODE, node));
}

/*
 * Is the pod being deleted, and does the kubelet report a container of it that runs? Its grace
 * period may be long, and users may write into its SpiderEndpoint that it is down. One of so many
 * that they were not read may run.
 */
static bool still_ends(const json_t *pod)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses",
					    "ephemeralContainerStatuses"};
	json_t *container;
	size_t i;

	if (!object_is_terminating(pod) || pod_has_terminated(pod))
		return false;
	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		const json_t *list = json_at(pod, "status", lists[k]);

		if (json_is_integer(list))
			return true;
		json_array_foreach ((json_t *)list, i, container)
			if (json_at(container, "state", "running"))
				return true;
	}
	return false;
}

/* Records that nobody stood for: what was put right is told, so they end as records. */
static void end_lost(const struct look *look, const char *uid)
{
	auto_free char *key = str_printf("%s %s", look->key, uid);
	json_t *records = json_array(), *item;
	size_t i;

	json_array_foreach (json_at(look->endpoint, "status", "current", "ips"), i, item) {
		bool is_v6 = json_str_at(item, "ipv6") != NULL;
		const char *has = json_str_or(json_at(item, is_v6 ? "ipv6" : "ipv4"), "");
		json_t *record = json_object();

		json_put(record, "address", json_fmt("%.*s", (int)strcspn(has, "/"), has));
		json_put_str(record, "pool", json_str_at(item, is_v6 ? "ipv6Pool" : "ipv4Pool"));
		json_array_append_new(records, record);
	}
	plan_post(look->plan, BOX_ENDING, key,
		  json_pack("{s:s, s:{s:{s:s}}, s:o}", "uid", uid, "status", "current", "uid", uid,
			    "records", records));
}

/*
 * release_is_due(); also what a StatefulSet would keep, where its namespace keeps more than its
 * quota of pods allows.
 */
static bool may_release(const struct look *look, const char *uid, bool is_down)
{
	const json_t *ended = json_at(look->world, "env", "endedSetPods");
	auto_free char *ns = str_ndup(look->key, strcspn(look->key, "/"));
	int64_t most = release_ended_max(look->world, ns);
	struct ipam_settings settings = look->settings;
	const json_t *pod = live_pod(look, uid);
	auto_free char *text = NULL;

	if (is_crowded(look))
		return false;
	if (release_is_due(look->live, look->key, uid, pod, look->endpoint, is_down, &settings))
		return true;
	settings.keeps_stateful_sets = false;
	if (most < 0 || json_integer_value(ended) <= most ||
	    !release_is_due(look->live, look->key, uid, pod, look->endpoint, is_down, &settings))
		return false;
	text = str_printf("the addresses of the ended pod are not kept for its StatefulSet: "
			  "namespace %s keeps those of %" JSON_INTEGER_FORMAT
			  " ended pods, its ResourceQuota allows %" PRId64
			  " pods; raise the quota, or scale StatefulSets down",
			  ns, json_integer_value(ended), most);
	plan_event(look->plan, KIND_ENDPOINT, look->key, true, "AddressesNotKept", text);
	return true;
}

/* The endpoint of a pod that looks ended, or whose interfaces are said to be down. */
static void look_at_endpoint(const struct look *look)
{
	const char *uid = endpoint_uid(look->endpoint);
	const char *node = json_str_or(json_at(look->endpoint, "status", "current", "node"), "");
	bool is_down = endpoint_is_down(look->endpoint, uid);
	bool is_gone = !is_down && *node && node_is_gone(world_get(look->world, KIND_NODE, node));
	json_t *ending;

	if (!is_down && !is_gone)
		return;
	if (is_living(look, uid))
		return;
	if (!look->live) {
		read_live(look);
		return;
	}
	is_gone = is_gone && node_is_gone_live(look, node);
	if (is_down && still_ends(live_pod(look, uid))) {
		plan_requeue(look->plan, LIFECYCLE_ENDING_MS);
		return;
	}
	if (!may_release(look, uid, is_down || is_gone)) {
		plan_requeue(look->plan, LIFECYCLE_AGAIN_MS);
		return;
	}
	if (endpoint_is_lost(look->endpoint, world_env(look->world, "namespace"))) {
		end_lost(look, uid);
		return;
	}
	ending = json_pack("{s:s, s:o}", "uid", uid, "status",
			   endpoint_addresses(json_at(look->endpoint, "status")));
	json_put(ending, "conflicts", conflicts_said(look->endpoint, uid));
	plan_post(look->plan, BOX_ENDING, look->key, ending);
}

/* One that was read, for one pass, when it is not mirrored. */
static void let_wait(const struct look *look, const char *pod_key, const json_t *mirrored,
		     const json_t *live, int64_t again_ms)
{
	json_t *waiting = mirrored ? json_true() : json_deep_copy(live);

	if (!mirrored)
		assign_project(waiting);
	/* It was looked at before it came here. */
	if (!mirrored && pod_is_successor(live, look->endpoint))
		json_put_bool(waiting, ASSIGN_TAKES_OVER, true);
	plan_post(look->plan, BOX_WAITING, pod_key, waiting);
	/* What was read is good for one pass. */
	if (!mirrored)
		plan_requeue(look->plan, again_ms);
}

/*
 * Who lives gets other addresses for those that somebody else has, before its sandbox is made anew.
 */
static void look_at_conflicts(const struct look *look)
{
	const char *uid = endpoint_uid(look->endpoint);
	json_auto_t *conflicts = conflicts_said(look->endpoint, uid);
	const json_t *mirrored = pod_with(world_kind(look->world, KIND_POD), uid);
	const json_t *pod = mirrored ? mirrored : live_pod(look, uid);
	auto_free char *key = pod ? json_key(pod) : NULL;

	if (!conflicts)
		return;
	if (!mirrored && !look->live)
		read_live(look);
	else if (pod_is_alive(pod))
		let_wait(look, key, mirrored, pod, LIFECYCLE_AGAIN_MS);
}

/*
 * The pod that asks, as it was read; NULL: there is none, or it gets its addresses in another
 * endpoint than this.
 */
static const json_t *live_asker(const struct look *look)
{
	const json_t *pod = live_object(look, KIND_POD, look->asker);

	return pod && str_eq(pod_endpoint_name(pod, &look->settings), json_name(look->endpoint))
		       ? pod
		       : NULL;
}

/* A pod asks that KubeVirt does not list as one of the VirtualMachineInstance, perhaps not yet. */
static void refuse_successor(const struct look *look, const json_t *pod)
{
	bool is_there = live_object(look, KIND_VIRTUAL_MACHINE_INSTANCE, look->key) != NULL;
	auto_free char *text = str_printf(
		"pod %s names VirtualMachineInstance %s as its owner, and %s: it does not get the "
		"addresses of that machine",
		look->asker, look->key,
		is_there ? "status.activePods there does not have it"
			 : "there is none, or the API server does not serve kubevirt.io/v1 (see "
			   "kubectl get --raw /apis/kubevirt.io)");
	auto_free char *why = str_printf("%s NotPodOfMachine: %s", json_uid(pod), text);

	if (!str_eq(json_str_at(look->endpoint, "metadata", "annotations",
				ENDPOINT_REFUSED_ANNOTATION),
		    why))
		plan_meta(look->plan, KIND_ENDPOINT, look->key,
			  json_pack("{s:{s:s}}", "annotations", ENDPOINT_REFUSED_ANNOTATION, why));
	plan_finding(look->plan, KIND_BOUND_POD, look->asker, "NotPodOfMachine", text);
	/* KubeVirt may be about to write it there. */
	plan_requeue(look->plan, LIFECYCLE_ASKS_MS);
}

/*
 * An endpoint that only asks. A pod that is not mirrored is read, to wait with the others, and so
 * is one that would take over the addresses of its machine, with the machine; without a pod there
 * is nothing to ask for.
 */
static void look_at_asks(const struct look *look)
{
	const json_t *known = world_get(look->world, KIND_POD, look->asker);
	const json_t *mirrored = pod_is_successor(known, look->endpoint) ? NULL : known;
	json_auto_t *answered = endpoint_asks(look->endpoint, endpoint_uid(look->endpoint));
	const json_t *pod = mirrored ? mirrored : live_asker(look);
	json_auto_t *asks = pod ? endpoint_asks(look->endpoint, json_uid(pod)) : NULL;
	bool takes_over = look->settings.keeps_virtual_machines && !mirrored &&
			  pod_is_successor(pod, look->endpoint);

	if (answered && endpoint_answers(look->endpoint, endpoint_uid(look->endpoint), answered))
		return;
	/* Another pod may have asked when it was read, or none. */
	if (!mirrored && !json_object_get(json_object_get(look->live, KIND_POD), look->asker)) {
		read_live(look);
		return;
	}
	if (asks && pod_is_alive(pod) && !endpoint_is_down(look->endpoint, json_uid(pod)) &&
	    !endpoint_answers(look->endpoint, json_uid(pod), asks)) {
		if (takes_over &&
		    !pod_is_of_instance(
			    pod, live_object(look, KIND_VIRTUAL_MACHINE_INSTANCE, look->key)))
			refuse_successor(look, pod);
		else
			let_wait(look, look->asker, mirrored, pod, LIFECYCLE_ASKS_MS);
	} else if (!pod && !json_at(look->endpoint, "status")) {
		plan_release(look->plan, KIND_ENDPOINT, look->key, look->endpoint,
			     IP_POOL_FINALIZER);
		plan_delete(look->plan, KIND_ENDPOINT, look->key, json_uid(look->endpoint));
	}
}

/*
 * Records whose pod ended before its endpoint was written. No agent has seen them, so none will
 * give them back: its word that nothing of the pod is left may have come before they did.
 */
static void look_at_unwritten(const struct look *look, const json_t *object)
{
	const char *uid = endpoint_uid(object);

	if (is_crowded(look)) {
		plan_requeue(look->plan, LIFECYCLE_AGAIN_MS);
		return;
	}
	if (!look->live) {
		read_live(look);
		return;
	}
	/* Without a leader for a while, the agent may have written it. */
	if (!pod_is_alive(live_pod(look, uid)) && !str_eq(endpoint_uid(look->endpoint), uid))
		plan_post(look->plan, BOX_ENDING, look->key,
			  json_pack("{s:s, s:o}", "uid", uid, "status",
				    endpoint_addresses(json_at(object, "status"))));
	plan_post(look->plan, BOX_DECIDED, look->key, NULL);
}

/* ---- records that no endpoint names ---------------------------------------------------------- */

/* Has the pod ended for sure, and may nobody keep what it had? */
static bool stray_is_over(const struct look *look, const json_t *stray)
{
	const char *uid = json_str_or(json_at(stray, "uid"), "");

	if (is_crowded(look) || live_object(look, KIND_VIRTUAL_MACHINE_INSTANCE, look->key) ||
	    still_ends(live_pod(look, uid)))
		return false;
	/* The owner's next pod has other addresses, so this one keeps none for it. */
	if (!str_empty(uid) && look->endpoint && !str_eq(endpoint_uid(look->endpoint), uid) &&
	    !endpoint_names(look->endpoint, json_str_or(json_at(stray, "pool"), ""),
			    json_str_or(json_at(stray, "address"), "")))
		return !pod_is_alive(live_pod(look, uid));
	return may_release(look, uid, true);
}

/*
 * Without a node Spiderpool's agent wrote it, who gives back what its garbage collector would. The
 * agent of a node that is there has to say that nothing of the pod is left.
 */
static bool needs_word(const struct look *look, const json_t *stray)
{
	const char *node = json_str_or(json_at(stray, "node"), "");

	return *node && !node_is_gone_live(look, node);
}

static bool is_stray(const struct look *look, const json_t *stray)
{
	return !endpoint_has(look->endpoint, json_str_or(json_at(stray, "uid"), ""),
			     json_str_or(json_at(stray, "pool"), ""),
			     json_str_or(json_at(stray, "address"), "")) &&
	       stray_is_over(look, stray);
}

static void add_record(json_t *groups, const char *name, const json_t *stray)
{
	json_t *records = json_object_get(groups, name);

	if (!records) {
		records = json_array();
		json_put(groups, name, records);
	}
	json_array_append(records, (json_t *)stray);
}

/* Their agent finds it when it looks at the endpoints of its node, and says the word. */
static void ask_agent(const struct look *look, const char *name, const json_t *records)
{
	auto_free char *key = str_printf("%s/%s", world_env(look->world, "namespace"), name);
	const json_t *first = json_array_get(records, 0);
	json_auto_t *status = json_object();
	json_t *current = json_need_object(status, "current"), *ips = json_array(), *record;
	size_t i;

	json_array_foreach (records, i, record) {
		const char *address = json_str_or(json_at(record, "address"), "");
		bool is_v6 = strchr(address, ':') != NULL;
		json_t *item;

		/* More would not be read; the next look at the pool finds those left. */
		if (i > LIMIT_NETWORKS)
			break;
		item = json_object();

		/* Of which NIC, no record says. */
		json_put_str(item, "interface", "");
		json_put_int(item, "vlan", 0);
		json_put(item, is_v6 ? "ipv6" : "ipv4",
			 json_fmt("%s/%d", address, is_v6 ? 128 : 32));
		json_put_str(item, is_v6 ? "ipv6Pool" : "ipv4Pool", json_str_at(record, "pool"));
		json_array_append_new(ips, item);
	}
	json_put_str(current, "uid", json_str_at(first, "uid"));
	json_put_str(current, "node", json_str_at(first, "node"));
	json_put(current, "ips", ips);
	json_put_str(status, "ownerControllerType", "Pod");
	json_put_str(status, "ownerControllerName", look->key);
	plan_apply(look->plan, KIND_ENDPOINT, endpoint_object(key, status));
}

/*
 * A pod that is not mirrored, and has an address without a record, waits for it; one that has
 * ended, too, as long as its node has not spoken.
 */
static void look_at_claim(const struct look *look, const json_t *stray)
{
	auto_free char *claim =
		str_printf("%s %s", json_str_or(json_at(stray, "pool"), ""), look->key);
	const json_t *pod = live_pod(look, json_str_or(json_at(stray, "uid"), ""));
	auto_free char *key = pod ? json_key(pod) : str_dup("");
	json_t *waiting;

	if (pod) {
		waiting = json_deep_copy(pod);
		assign_project(waiting);
		plan_post(look->plan, BOX_CLAIMANTS, key, json_true());
		plan_post(look->plan, BOX_WAITING, key, waiting);
	}
	plan_post(look->plan, BOX_CLAIMED, claim, json_string(key));
}

static void look_at_strays(const struct look *look, const json_t *strays)
{
	json_auto_t *over = json_object(), *lost = json_object(), *asked = json_array();
	json_t *stray, *records;
	const char *name, *uid;
	size_t i, first;

	json_array_foreach (strays, i, stray) {
		if (json_at(stray, "claimed")) {
			look_at_claim(look, stray);
			continue;
		}
		if (!is_stray(look, stray))
			continue;
		if (needs_word(look, stray)) {
			const char *pod_uid = json_str_or(json_at(stray, "uid"), "");
			const char *pool = json_str_or(json_at(stray, "pool"), "");
			auto_free char *lost_name =
				str_printf(ENDPOINT_LOST_PREFIX "%s-%08" PRIx32, pod_uid,
					   (uint32_t)str_hash(pool, strlen(pool)));

			/* While the pod is there its agent hears of its end by itself. */
			if (!live_pod(look, pod_uid) && name_is_dns_subdomain(lost_name))
				add_record(lost, lost_name, stray);
		} else {
			add_record(over, json_str_at(stray, "uid"), stray);
		}
	}
	json_each (over, uid, records) {
		auto_free char *key = str_printf("%s %s", look->key, uid);

		plan_post(look->plan, BOX_ENDING, key,
			  json_pack("{s:s, s:O}", "uid", uid, "records", records));
	}
	/* One that is refused keeps nothing else from being done, and is tried again. */
	json_each (lost, name, records) {
		first = json_array_size(look->plan->ops);
		ask_agent(look, name, records);
		plan_group(look->plan, first, name, NULL);
		json_array_append_new(asked, json_string(name));
	}
	first = json_array_size(look->plan->ops);
	plan_post(look->plan, BOX_STRAYS, look->key, NULL);
	plan_group(look->plan, first, NULL, json_array_size(asked) ? asked : NULL);
}

/* Only those who give back need them, and a ConfigMap is long to read. */
static int read_settings(struct look *look, struct err *err)
{
	const char *ns = world_env(look->world, "configNamespace");
	auto_free char *config = str_printf("%s/" IPAM_CONFIG_MAP, ns);

	return ipam_settings_read(world_get(look->world, IPAM_CONFIG_MAP, config), ns,
				  &look->settings, err);
}

int endpoint_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *strays = world_get(world, BOX_STRAYS, key);
	const json_t *decided = world_get(world, BOX_DECIDED, key);
	auto_free char *asker = NULL;
	struct look look = {
		.world = world,
		.key = key,
		.endpoint = world_get(world, KIND_ENDPOINT, key),
		.live = world_get(world, BOX_LIVE, key),
		.plan = plan,
	};

	if (carry_out_decided(&look))
		return 0;
	if (look.live && read_settings(&look, err) < 0)
		return -1;
	if (decided)
		look_at_unwritten(&look, json_at(decided, "unwritten"));
	if (look.endpoint &&
	    json_at(look.endpoint, "metadata", "annotations", ENDPOINT_ASKS_ANNOTATION)) {
		asker = endpoint_asker(look.endpoint);
		look.asker = asker;
	}
	if (look.endpoint && json_at(look.endpoint, "status", "current")) {
		look_at_endpoint(&look);
		look_at_conflicts(&look);
	}
	if (look.asker)
		look_at_asks(&look);
	else if (object_is_terminating(look.endpoint) &&
		 !json_at(look.endpoint, "status", "current"))
		/* Spiderpool's agent makes it with its finalizer first, and writes into it then. */
		plan_release(plan, KIND_ENDPOINT, key, look.endpoint, IP_POOL_FINALIZER);
	if (strays && look.live)
		look_at_strays(&look, strays);
	else if (strays)
		read_live(&look);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Pods of this node. What a new one gets is read before its NICs ask.
 *
 * Some end without a DEL: their sandbox was never made, or the agent was away. The kubelet rejects
 * pods whose objects stay. What the CNI state does not hold, and the API server does not have or
 * has as terminated, has ended, and that is said.
 *
 * Who came and went while this watch was broken was never seen here. Where the leader has written
 * an endpoint for it, it is found when the endpoints of the node are listed, now and then; where
 * only records say that it was, the leader writes one that asks (ENDPOINT_LOST_PREFIX).
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/pod_controller.h"

/* This long after the watch has begun again. */
enum { LIST_WITHIN_MS = 60000 };

/*
 * While there are more releases than this, the next page of SpiderEndpoints waits, but not for
 * ever: users may write what cannot be released.
 */
enum { RELEASES_AT_ONCE = 100, PAGE_AGAIN_MS = 1000, PAGE_WAITS_MAX = 60 };

struct pod_watch {
	struct addresses *addresses;
	struct cache *cache;
	struct informer *informer;
	char *selector;
	struct endpoints_list *list; /* of SpiderEndpoints */
	struct deferred *turn;       /* out of the middle of receiving */
	struct timer *again;
	struct timer *next_page;
	int waits;     /* of the next page */
	json_t *ended; /* uid: {"ns", "name"}, to be looked at in the next turn */
	bool has_begun;
	bool is_anew; /* SpiderEndpoints are to be listed */
	bool has_all; /* all of them were, since the watch began again */
};

static bool is_held(const struct addresses *addresses, const char *uid)
{
	return addresses->config.holds(addresses->config.arg, uid);
}

/*
 * Nothing of it was set up yet, as far as its kubelet has said. A virtual machine's addresses may
 * be elsewhere.
 */
static bool is_new(const struct pod_watch *watch, const json_t *pod)
{
	return pod_sandbox(pod) == POD_SANDBOX_NONE && pod_is_alive(pod) && !pod_machine(pod) &&
	       !is_held(watch->addresses, json_uid(pod));
}

static void note_end(struct pod_watch *watch, const json_t *pod)
{
	recent_forget(watch->addresses, json_uid(pod));
	json_put(watch->ended, json_uid(pod),
		 json_pack("{s:s, s:s}", "ns", json_namespace(pod), "name", json_name(pod)));
}

static void on_pod_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct pod_watch *watch = arg;
	bool is_same = old && now && str_eq(json_uid(old), json_uid(now));

	if (now && !is_same && is_new(watch, now))
		foresight_of_new_pod(watch->addresses, json_namespace(now), json_name(now),
				     json_uid(now));
	if (old && !is_same)
		note_end(watch, old);
	/* A DEL comes of what is held. */
	else if (is_same && pod_has_terminated(now) && !pod_has_terminated(old) &&
		 !is_held(watch->addresses, json_uid(now)))
		note_end(watch, now);
	deferred_run(watch->turn);
}

static void on_pods_listed(void *arg)
{
	struct pod_watch *watch = arg;

	watch->is_anew = true;
	deferred_run(watch->turn);
}

/* Its key; NULL: it is not there. Borrowed. */
static const char *find_pod(const struct cache *pods, const char *uid)
{
	const char *key;
	size_t iter = 0;

	while ((key = cache_next(pods, &iter)))
		if (str_eq(cache_uid(pods, key), uid))
			return key;
	return NULL;
}

bool pod_watch_is_sure(const struct pod_watch *watch, const char *uid)
{
	const char *key = watch ? find_pod(watch->cache, uid) : NULL;
	json_auto_t *pod = key ? cache_get(watch->cache, key) : NULL;

	return pod && pod_is_alive(pod) && informer_health(watch->informer).broken_since_ms == 0;
}

static void read_next_page(void *arg)
{
	struct pod_watch *watch = arg;

	if (release_count(watch->addresses) > RELEASES_AT_ONCE && watch->waits < PAGE_WAITS_MAX) {
		watch->waits++;
		timer_start(watch->next_page, PAGE_AGAIN_MS);
		return;
	}
	watch->waits = 0;
	endpoints_list_next(watch->list);
}

static void on_listed(void *arg, json_t *endpoints, bool is_last, const struct err *err)
{
	struct pod_watch *watch = arg;
	int64_t pause_ms = err ? ADDRESSES_RETRY_MAX_MS : watch->addresses->config.look_ms;
	json_t *endpoint;
	size_t i;

	if (err || is_last) {
		endpoints_list_free(take_ptr(watch->list));
		watch->has_all |= !err;
		timer_start(watch->again, pause_ms - (int64_t)clock_jitter((uint64_t)pause_ms / 3));
	} else {
		timer_start(watch->next_page, 0);
	}
	json_array_foreach (endpoints, i, endpoint) {
		const char *uid = endpoint_uid(endpoint);
		const char *key = uid ? find_pod(watch->cache, uid) : NULL;
		json_auto_t *there = key ? cache_get(watch->cache, key) : NULL;
		auto_free char *pod = endpoint_pod_key(endpoint, watch->addresses->config.ns);

		if (str_empty(uid) || endpoint_is_down(endpoint, uid) ||
		    (there && !pod_has_terminated(there)) ||
		    release_is_pending(watch->addresses, uid, pod))
			continue;
		if (is_held(watch->addresses, uid)) {
			release_later(watch->addresses, json_namespace(endpoint),
				      json_name(endpoint), pod, uid);
			continue;
		}
		release_if_gone(watch->addresses, endpoint);
	}
}

/*
 * Those of all namespaces when the watch begins again, now and then those that ask: what a server
 * reads for it are the endpoints of the namespace, whichever pods' they are.
 */
static void list_endpoints(void *arg)
{
	struct pod_watch *watch = arg;
	struct addresses *addresses = watch->addresses;

	if (!watch->list)
		watch->list = endpoints_list_new(
			addresses, watch->has_all ? addresses->config.ns : NULL, on_listed, watch);
}

static void take_turn(void *arg)
{
	struct pod_watch *watch = arg;
	json_auto_t *ended = watch->ended;
	const char *uid;
	json_t *pod;

	watch->ended = json_object();
	json_each (ended, uid, pod) {
		struct addresses *addresses = watch->addresses;
		const char *ns = json_str_at(pod, "ns"), *name = json_str_at(pod, "name");
		auto_free char *key = str_printf("%s/%s", ns, name);

		/*
		 * What the node holds still may be an ADD that is about to fail, before anything
		 * was asked for: then no DEL says the word.
		 */
		foresight_forget(addresses, uid);
		if (is_held(addresses, uid))
			release_later(addresses, ns, name, key, uid);
		else
			addresses_release(addresses, ns, name, uid, NULL, NULL);
	}
	if (!watch->is_anew)
		return;
	watch->is_anew = watch->has_all = false;
	timer_stop(watch->next_page);
	endpoints_list_free(take_ptr(watch->list));
	/* After an outage of the API server all nodes list again: the first time at once. */
	if (watch->has_begun)
		timer_start(watch->again, (int64_t)clock_jitter(LIST_WITHIN_MS));
	else
		list_endpoints(watch);
	watch->has_begun = true;
}

/* Also virtual machines': their pods cannot be read by the name of their endpoint. */
static bool is_watched(const json_t *pod)
{
	return assign_wants(pod) || pod_machine(pod);
}

struct pod_watch *pod_watch_new(struct addresses *addresses)
{
	static const struct cache_kind kind = {.wanted = is_watched, .project = assign_project};
	static const splitter_path drops[] = {
		{"metadata", "managedFields"},   {"spec", "volumes"},      {"spec", "containers"},
		{"status", "containerStatuses"}, {"status", "conditions"},
	};
	struct pod_watch *watch = mem_new(struct pod_watch);
	auto_strbuf struct strbuf selector = {0};

	assert(addresses->config.holds);
	strbuf_adds(&selector, "fieldSelector=spec.nodeName%3D");
	kube_path_encode(&selector, addresses->config.node);
	watch->addresses = addresses;
	watch->selector = strbuf_take(&selector);
	watch->ended = json_object();
	watch->turn = deferred_new(addresses->config.loop, take_turn, watch);
	watch->again = timer_new(addresses->config.loop, list_endpoints, watch);
	watch->next_page = timer_new(addresses->config.loop, read_next_page, watch);
	watch->cache = cache_new(&kind, on_pod_changed, watch);
	watch->informer = informer_new(addresses->config.loop, addresses->config.client,
				       &(struct informer_config){
					       .resource = &kube_pods,
					       .selector = watch->selector,
					       .drops = drops,
					       .n_drops = ARRAY_LEN(drops),
					       .cache = watch->cache,
					       .listed = on_pods_listed,
					       .arg = watch,
					       .metrics = addresses->config.metrics,
				       });
	return watch;
}

void pod_watch_free(struct pod_watch *watch)
{
	if (!watch)
		return;
	endpoints_list_free(watch->list);
	informer_free(watch->informer);
	cache_free(watch->cache);
	deferred_free(watch->turn);
	timer_free(watch->again);
	timer_free(watch->next_page);
	json_decref(watch->ended);
	mem_free(watch->selector);
	mem_free(watch);
}

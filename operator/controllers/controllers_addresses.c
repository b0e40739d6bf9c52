// SPDX-License-Identifier: Apache-2.0
/* Addresses of pods: what decisions on them look at, and what wakes them. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "operator/cache/address_metrics.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/ipam_book.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/assign_slice.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/allocate/strays.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/pod_controller.h"
#include "reconcilers/ipam/pod_networks.h"

/*
 * A ledger that the API server refused is written again after this. After HTTP 500 each time after
 * twice as long, up to LEDGER_AGAIN_MAX_MS: an admission webhook that is away may take its whole
 * time limit to be so, and the ledgers behind this one wait for it. Other failures (429, 503, no
 * answer) are not of one ledger.
 */
enum { LEDGER_AGAIN_MS = 30000 };

/* ---- worlds ---------------------------------------------------------------------------------- */

/* The last ConfigMap that could be read, in the place of one that cannot be. */
#define BOX_GOOD_SETTINGS "goodsettings"

static int read_settings(const struct controller_sources *from, const json_t *world,
			 struct ipam_settings *ret, struct err *err)
{
	auto_free char *config = str_printf("%s/" IPAM_CONFIG_MAP, from->config_ns);

	return ipam_settings_read(world_get(world, MIRROR_SPIDERPOOL_CONF, config), from->config_ns,
				  ret, err);
}

static void add_settings(const struct controller_sources *from, json_t *world)
{
	auto_free char *config = str_printf("%s/" IPAM_CONFIG_MAP, from->config_ns);
	const json_t *good = json_at(from->notes, BOX_GOOD_SETTINGS, config);
	json_t *env = json_need_object(world, "env");
	struct ipam_settings ignored;
	struct err fault = {0};

	json_put_str(env, "configNamespace", from->config_ns);
	mirror_add(from->mirror, world, MIRROR_SPIDERPOOL_CONF, config);
	(void)read_settings(from, world, &ignored, &fault);
	json_put_str(env, "configFault", fault.text);
	if (*fault.text && good)
		json_put(json_need_object(world, MIRROR_SPIDERPOOL_CONF), config,
			 json_incref((json_t *)good));
}

/* Pods are mirrored twice; in worlds of addresses they are those that are bound. */
static void add_pod(const struct controller_sources *from, json_t *world, const char *key)
{
	json_t *pod = NULL;

	if (json_at(world, KIND_POD, key))
		return;
	pod = cache_get(mirror_cache(from->mirror, KIND_BOUND_POD), key);
	if (pod)
		json_put(json_need_object(world, KIND_POD), key, pod);
}

static void add_pod_of_machine(void *arg, const char *key)
{
	const struct gathering *c = arg;

	add_pod(c->from, c->world, key);
}

static void count_pod(void *arg, const char *key)
{
	*(size_t *)arg += 1;
}

/* Those that a record or an endpoint of this name may be about: users may write owners. */
static void add_pods_named(struct gathering *c, const char *key)
{
	const struct cache *pods = mirror_cache(c->from->mirror, KIND_BOUND_POD);
	size_t n = 0;

	add_pod(c->from, c->world, key);
	cache_find_some(pods, BOUND_POD_BY_MACHINE, key, LIMIT_MACHINE_PODS, add_pod_of_machine, c);
	cache_find_some(pods, BOUND_POD_BY_MACHINE, key, LIMIT_MACHINE_PODS + 1, count_pod, &n);
	if (n > LIMIT_MACHINE_PODS)
		json_put_bool(json_need_object(c->world, BOX_CROWDED), key, true);
}

/*
 * What the pod's present addresses are from: they may be taken over. And the pools that may account
 * for them (books_pool_of()).
 */
static void add_present_pools(struct gathering *c, const json_t *endpoint)
{
	static const struct {
		enum ip_family family;
		const char *address, *pool;
	} fields[] = {{IP_V4, "ipv4", "ipv4Pool"}, {IP_V6, "ipv6", "ipv6Pool"}};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
			const char *pool = json_str_at(item, fields[f].pool);
			char address[IP_TEXT_SIZE];

			if (!pool)
				continue;
			gather_add_pool(c, pool);
			if (ip_print_bare(json_str_or(json_at(item, fields[f].address), ""),
					  fields[f].family, address))
				ip_pool_index_find_address(c->from->pools, fields[f].family,
							   address, gather_add_pool, c);
		}
}

/* And all pods that may have it. Borrowed; NULL: there is none. */
static const json_t *add_endpoint(const struct controller_sources *from, json_t *world,
				  const json_t *pod, const struct ipam_settings *settings)
{
	auto_free char *place =
		str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, settings));
	struct gathering c = {from, world};

	mirror_add(from->mirror, world, KIND_ENDPOINT, place);
	add_pods_named(&c, place);
	return world_get(world, KIND_ENDPOINT, place);
}

/* All else that is about one pod. Returns which pools may be meant. */
static struct candidate_names add_waiting(const struct controller_sources *from, json_t *world,
					  const json_t *pod, const json_t *endpoint,
					  const struct ipam_settings *settings)
{
	struct gathering c = {from, world};
	json_auto_t *unknown = NULL, *foreseen = NULL, *asked = NULL, *asks = json_array();
	json_auto_t *networks = NULL;
	json_t *network, *ask;
	size_t i;

	mirror_add(from->mirror, world, KIND_NAMESPACE, json_namespace(pod));
	mirror_add(from->mirror, world, KIND_NODE,
		   json_str_or(json_at(pod, "spec", "nodeName"), ""));

	networks = pod_networks(pod, settings, NULL);
	json_array_foreach (networks, i, network) {
		auto_free char *key = json_is_object(network) ? network_key(network) : NULL;
		auto_free char *other = pod_network_other_key(network);

		if (key)
			mirror_add(from->mirror, world, KIND_NAD, key);
		if (other)
			mirror_add(from->mirror, world, KIND_NAD, other);
	}
	add_present_pools(&c, endpoint);
	foreseen = foresee(world, pod, settings, &unknown, NULL);
	asked = endpoint_asks(endpoint, json_uid(pod));
	json_array_foreach (foreseen, i, ask)
		if (!json_find(asked, "nic", json_str_at(ask, "nic")))
			json_array_append(asks, ask);
	if (asked)
		json_array_extend(asks, asked);
	return candidates_visit_names(pod, world_get(world, KIND_NAMESPACE, json_namespace(pod)),
				      asks, gather_add_pool, &c);
}

/* The first of those that have ended, as many as one pass takes on. */
static void add_ending(const struct controller_sources *from, json_t *world,
		       struct assign_slice *slice)
{
	const json_t *all = ipam_book_all(from->addresses, IPAM_ENDING);
	struct gathering c = {from, world};
	const char *key;
	json_t *ended, *record;
	size_t i;

	json_each (all, key, ended) {
		if (!assign_slice_take_ending(slice, ended)) {
			json_put_bool(json_need_object(world, "env"), "leavesEnding", true);
			break;
		}
		ipam_book_add(from->addresses, world, IPAM_ENDING, key);
		add_present_pools(&c, ended);
		json_array_foreach (json_at(ended, "records"), i, record)
			gather_add_pool(&c, json_str_or(json_at(record, "pool"), ""));
	}
}

/* The first of those that wait, as many as one pass takes on (assign_slice_take). */
void addresses_gather(const struct controller_sources *from, const struct controller *self,
		      const char *key, json_t *world)
{
	const json_t *waiting = ipam_book_all(from->addresses, IPAM_WAITING);
	struct ipam_settings settings = {0};
	bool is_decided;
	size_t pools = cache_len(mirror_cache(from->mirror, KIND_IP_POOL));
	struct assign_slice slice = {0};
	json_auto_t *named = NULL;
	bool any_pool = false;
	const char *pod_key, *pool;
	json_t *value;
	size_t n = 0, left = json_object_size(waiting);

	add_settings(from, world);
	gather_passed(from, world);
	mirror_add_all(from->mirror, world, KIND_RESERVED_IP);
	json_need_object(world, KIND_IP_POOL);
	json_each (ipam_book_all(from->addresses, IPAM_SHORT), pool, value)
		ipam_book_add(from->addresses, world, IPAM_SHORT, pool);
	json_each (ipam_book_all(from->addresses, IPAM_UNWRITTEN), pool, value)
		ipam_book_add(from->addresses, world, IPAM_UNWRITTEN, pool);
	json_each (ipam_book_all(from->addresses, IPAM_PACED), pool, value)
		ipam_book_add(from->addresses, world, IPAM_PACED, pool);
	json_put_int(json_need_object(world, "env"), "clockMs", from->now_ms());
	json_put_bool(json_need_object(world, "env"), "learns", true);
	add_ending(from, world, &slice);
	is_decided = read_settings(from, world, &settings, NULL) == 0;
	json_each (waiting, pod_key, value) {
		const json_t *pod = value;

		if (n++ >= ASSIGN_MAX)
			break;
		if (!json_is_object(value)) {
			add_pod(from, world, pod_key);
			pod = world_get(world, KIND_POD, pod_key);
		}
		if (pod && is_decided) {
			const json_t *endpoint = add_endpoint(from, world, pod, &settings);
			struct candidate_names meant;

			if (!assign_slice_take(&slice, pod, endpoint, pools))
				continue;
			meant = add_waiting(from, world, pod, endpoint, &settings);
			if (!assign_slice_take_more(&slice, &meant, pools))
				continue;
			any_pool |= meant.is_open;
		}
		ipam_book_add(from->addresses, world, IPAM_WAITING, pod_key);
		ipam_book_add(from->addresses, world, IPAM_CLAIMANT, pod_key);
	}
	if (left > json_object_size(world_kind(world, BOX_WAITING)))
		json_put_bool(json_need_object(world, "env"), "isPart", true);
	if (any_pool) {
		mirror_add_all(from->mirror, world, KIND_IP_POOL);
		mirror_add_all(from->mirror, world, KIND_NODE);
	}
	/* Those that the pools may overlap: verdicts, which the allocator obeys, depend on them. */
	named = any_pool ? NULL : json_copy((json_t *)world_kind(world, KIND_IP_POOL));
	json_each (named, pool, value)
		gather_neighbours(from, world, value);
	json_each (world_kind(world, KIND_IP_POOL), pool, value)
		ipam_book_add(from->addresses, world, IPAM_LEARNED, pool);
}

void addresses_gathered(const struct controller_sources *from, const char *key, const json_t *world)
{
	if (json_is_true(json_at(world, "env", "isPart")))
		ipam_book_take_pass(from->addresses, world_kind(world, BOX_WAITING), ASSIGN_MAX);
	/* Of a ledger that cannot be written they stay: others come first then. */
	if (json_is_true(json_at(world, "env", "leavesEnding")))
		ipam_book_put_behind(from->addresses, IPAM_ENDING, world_kind(world, BOX_ENDING));
}

struct counting {
	const struct controller_sources *from;
	int64_t n;
};

/* One that is about to be deleted does not count any more. */
static void count_endpoint(void *arg, const char *key)
{
	struct counting *c = arg;
	const struct ipam_book *book = c->from->addresses;

	c->n += !ipam_book_get(book, IPAM_ENDING, key) &&
		!json_at(ipam_book_get(book, IPAM_DECIDED, key), "gone");
}

/* Of pods that are mirrored their phase says whether they live. */
static void count_down(void *arg, const char *key)
{
	const struct counting *c = arg;
	json_auto_t *pod = cache_get(mirror_cache(c->from->mirror, KIND_BOUND_POD), key);

	if (!pod_is_alive(pod))
		count_endpoint(arg, key);
}

static void count_living(void *arg, const char *key)
{
	struct counting *c = arg;

	c->n += cache_has(mirror_cache(c->from->mirror, KIND_ENDPOINT), key);
}

/*
 * "env": endedSetPods, where a quota bounds them. No object is read for it: users may write many
 * endpoints, and have each looked at often. Pods that are not mirrored may live while their
 * endpoints do not say down, as many as the quota leaves room for.
 */
static void add_ended(const struct controller_sources *from, json_t *world, const char *ns)
{
	const struct cache *endpoints = mirror_cache(from->mirror, KIND_ENDPOINT);
	struct counting ended = {.from = from}, down = ended, mirrored = ended;
	auto_free char *of_down = str_printf(ENDPOINTS_DOWN, ns);
	int64_t most, others, room;

	mirror_add_indexed(from->mirror, world, KIND_RESOURCE_QUOTA, QUOTA_BY_NAMESPACE, ns);
	most = release_ended_max(world, ns);
	if (most < 0)
		return;
	cache_find(endpoints, ENDPOINT_OF_SETS, ns, count_endpoint, &ended);
	cache_find(endpoints, ENDPOINT_OF_SETS, of_down, count_down, &down);
	cache_find(mirror_cache(from->mirror, KIND_BOUND_POD), BOUND_POD_OF_SETS, ns, count_living,
		   &mirrored);
	others = ended.n - mirrored.n - down.n;
	room = most - mirrored.n;
	others = others < room ? others : room;
	json_put_int(json_need_object(world, "env"), "endedSetPods",
		     ended.n - mirrored.n - (others > 0 ? others : 0));
}

void endpoint_gather(const struct controller_sources *from, const struct controller *self,
		     const char *key, json_t *world)
{
	struct gathering c = {from, world};
	const json_t *endpoint = NULL, *decided;
	auto_free char *asker = NULL;
	const char *node = NULL;

	mirror_add(from->mirror, world, KIND_ENDPOINT, key);
	ipam_book_add(from->addresses, world, IPAM_DECIDED, key);
	ipam_book_add(from->addresses, world, IPAM_STRAYS, key);
	decided = world_get(world, BOX_DECIDED, key);
	if (ipam_book_get(from->addresses, IPAM_LIVE, key) &&
	    (!decided || json_at(decided, "unwritten"))) {
		auto_free char *ns = str_ndup(key, strcspn(key, "/"));

		ipam_book_add(from->addresses, world, IPAM_LIVE, key);
		add_settings(from, world);
		add_ended(from, world, ns);
	}
	add_pods_named(&c, key);
	endpoint = world_get(world, KIND_ENDPOINT, key);
	asker = endpoint ? endpoint_asker(endpoint) : NULL;
	if (asker)
		add_pod(from, world, asker);
	node = json_str_at(endpoint, "status", "current", "node");
	if (node)
		mirror_add(from->mirror, world, KIND_NODE, node);
}

/* What was read is good for one decision. */
void endpoint_gathered(const struct controller_sources *from, const char *key, const json_t *world)
{
	if (world_get(world, BOX_LIVE, key))
		ipam_book_set(from, IPAM_LIVE, key, NULL);
}

static void add_named(void *arg, const char *key)
{
	struct gathering *c = arg;
	json_auto_t *endpoint = NULL;

	if (!json_at(c->world, KIND_ENDPOINT, key))
		endpoint = cache_get(mirror_cache(c->from->mirror, KIND_ENDPOINT), key);
	if (endpoint)
		json_put(json_need_object(c->world, KIND_ENDPOINT), key, strays_endpoint(endpoint));
	ipam_book_add(c->from->addresses, c->world, IPAM_STRAYS, key);
	add_pods_named(c, key);
}

static void add_twice(void *arg, const char *pod, const char *message)
{
	const struct gathering *c = arg;

	json_put_str(json_need_object(c->world, BOX_TWICE), pod, message);
}

static void add_block(void *arg, const char *block)
{
	struct gathering *c = arg;

	cache_find(mirror_cache(c->from->mirror, KIND_ENDPOINT), ENDPOINT_BY_BLOCK, block,
		   add_named, c);
}

/* Those that exist: what is from others is looked for elsewhere. */
static void add_pools_named(struct gathering *c, const json_t *endpoint)
{
	static const char *const fields[] = {"ipv4Pool", "ipv6Pool"};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(fields); f++)
			if (json_str_at(item, fields[f]))
				gather_add_pool(c, json_str_at(item, fields[f]));
}

void strays_gather(const struct controller_sources *from, const struct controller *self,
		   const char *key, json_t *world)
{
	const struct cache *endpoints = mirror_cache(from->mirror, KIND_ENDPOINT);
	struct gathering c = {from, world};
	const char *name;
	json_t *value;
	size_t i = 0;

	mirror_add(from->mirror, world, KIND_IP_POOL, key);
	ipam_book_add(from->addresses, world, IPAM_LEARNED, key);
	ipam_book_add(from->addresses, world, IPAM_LEARNING, key);
	ipam_book_add(from->addresses, world, IPAM_UNWRITTEN, key);
	ipam_book_add_claims(from->addresses, world, key);
	json_each (ipam_book_all(from->addresses, IPAM_CLAIMANT), name, value)
		ipam_book_add(from->addresses, world, IPAM_CLAIMANT, name);
	findings_visit(from->findings, KIND_BOUND_POD, STRAYS_TWICE, add_twice, &c);
	strays_visit(world_get(world, KIND_IP_POOL, key), add_named, &c);
	cache_find(endpoints, ENDPOINT_BY_POOL, key, add_named, &c);
	if (!ipam_book_get(from->addresses, IPAM_LEARNED, key) &&
	    !strays_visit_blocks(world_get(world, KIND_IP_POOL, key), add_block, &c))
		while ((name = cache_next(endpoints, &i)))
			add_named(&c, name);
	json_each (world_kind(world, KIND_ENDPOINT), name, value)
		add_pools_named(&c, value);
}

/* ---- waking ---------------------------------------------------------------------------------- */

static bool same_annotations(const json_t *old, const json_t *now)
{
	return old && now &&
	       json_same(json_at(old, "metadata", "annotations"),
			 json_at(now, "metadata", "annotations"));
}

/* A pod that begins to run has had its addresses for long; one that ends may give them back. */
void bound_pod_changed(const struct change *c)
{
	bool is_same = c->old && c->now && str_eq(json_uid(c->old), json_uid(c->now));
	const char *machine = c->old ? pod_machine(c->old) : NULL;

	address_metrics_changed(c->from->address_metrics, c->kind, c->key, c->old, c->now,
				c->from->now_ms());
	if (c->now && !(is_same && same_annotations(c->old, c->now)))
		ipam_book_wait(c->from, c->key);
	else if (!c->now && ipam_book_get(c->from->addresses, IPAM_WAITING, c->key))
		wake(c, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	if (c->now && (!c->old || (is_same && pod_is_alive(c->now))))
		return;
	wake(c, CONTROLLER_ENDPOINT, c->key);
	if (machine) {
		auto_free char *key = str_printf("%s/%s", json_namespace(c->old), machine);

		wake(c, CONTROLLER_ENDPOINT, key);
	}
}

static void wait_again(void *arg, const char *key)
{
	const struct change *c = arg;

	ipam_book_wait(c->from, key);
}

/*
 * What its agent says, and what was there when we came. One that a user deleted is written again,
 * while its pod lives; one that is gone makes room for a pod that has waited for it.
 */
void endpoint_changed(const struct change *c)
{
	const struct cache *pods = mirror_cache(c->from->mirror, KIND_BOUND_POD);

	if (!c->now && cache_has(pods, c->key))
		ipam_book_wait(c->from, c->key);
	if (!c->now)
		cache_find(pods, BOUND_POD_BY_MACHINE, c->key, wait_again, (void *)c);
	/* What was read before may lack the pod that asks now: the next one of the name. */
	if (c->old && c->now && !same_annotations(c->old, c->now))
		ipam_book_set(c->from, IPAM_LIVE, c->key, NULL);
	if (c->now && (!c->old || !same_annotations(c->old, c->now) ||
		       object_is_terminating(c->old) != object_is_terminating(c->now)))
		wake(c, CONTROLLER_ENDPOINT, c->key);
}

static void wake_endpoint(void *arg, const char *key)
{
	wake(arg, CONTROLLER_ENDPOINT, key);
}

static void wake_pool(void *arg, const char *pool)
{
	wake(arg, CONTROLLER_IP_POOL, pool);
}

/* The pools that have the Node's addresses count them. */
static void wake_pools_of(const struct change *c, const json_t *node)
{
	enum ip_family family;
	ip_number number;
	json_t *item;
	size_t i;

	json_array_foreach (json_at(node, "status", "addresses"), i, item) {
		const char *text = json_str_or(json_at(item, "address"), "");

		if (ip_parse_any(text, &family, &number, NULL) == 0)
			ip_pool_index_find_address(c->from->pools, family, text, wake_pool,
						   (void *)c);
	}
}

void addresses_node_changed(const struct change *c)
{
	if (!json_same(json_at(c->old, "status", "addresses"),
		       json_at(c->now, "status", "addresses"))) {
		wake_pools_of(c, c->old);
		wake_pools_of(c, c->now);
	}
	if (node_is_gone(c->now))
		cache_find(mirror_cache(c->from->mirror, KIND_ENDPOINT), ENDPOINT_BY_NODE, c->key,
			   wake_endpoint, (void *)c);
}

void quota_changed(const struct change *c)
{
	auto_free char *ns = str_ndup(c->key, strcspn(c->key, "/"));

	cache_find(mirror_cache(c->from->mirror, KIND_ENDPOINT), ENDPOINT_OF_SETS, ns,
		   wake_endpoint, (void *)c);
}

/* Pods may have addresses that the spec before did not have, or that could not be read. */
static bool has_other_spec(const struct change *c)
{
	return c->old && c->now && json_generation(c->old) != json_generation(c->now);
}

static void unlearn(void *arg, const char *pool)
{
	const struct change *c = arg;

	ipam_book_set(c->from, IPAM_LEARNED, pool, NULL);
	ipam_book_set(c->from, IPAM_LEARNING, pool, NULL);
	wake(c, CONTROLLER_STRAYS, pool);
}

/*
 * Pods may have addresses still that its spec or its ledger had before: other pools that have these
 * account for them now.
 */
static void unlearn_around(const struct change *c)
{
	const char *text = json_str_or(json_at(c->old, "status", "allocatedIPs"), ""), *address;
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	enum ip_family family;
	ip_number number;
	json_t *record;

	ip_pool_index_find(c->from->pools, c->old, unlearn, (void *)c);
	json_each (json_is_object(records) ? records : NULL, address, record)
		if (ip_parse_any(address, &family, &number, NULL) == 0)
			ip_pool_index_find_address(c->from->pools, family, address, unlearn,
						   (void *)c);
}

/*
 * Waiting pods may find an address now; records may have lost their pods. What a pool says of an
 * earlier operator's pods is looked into, also if no pod waits now.
 */
void addresses_pool_changed(const struct change *c)
{
	const char *before = json_str_at(c->old, "status", "allocatedIPs");
	const char *after = json_str_at(c->now, "status", "allocatedIPs");

	address_metrics_changed(c->from->address_metrics, c->kind, c->key, c->old, c->now,
				c->from->now_ms());
	/*
	 * New, another one of the name, one with another spec, or one of which another program took
	 * a record out: living pods may have addresses.
	 */
	if (!str_eq(json_uid(c->old), json_uid(c->now)) || has_other_spec(c) ||
	    (!(c->from->own_write && *c->from->own_write) && strays_lost(before, after))) {
		ipam_book_set(c->from, IPAM_LEARNED, c->key, NULL);
		ipam_book_set(c->from, IPAM_LEARNING, c->key, NULL);
		if (c->old)
			unlearn_around(c);
	}
	addresses_source_changed(c);
	if (!ipam_book_get(c->from->addresses, IPAM_PASSED, ADDRESSES_KEY) &&
	    ip_pool_says_waiting(c->now))
		wake(c, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
	if (c->now &&
	    (!str_eq(before, after) || !ipam_book_get(c->from->addresses, IPAM_LEARNED, c->key)))
		wake(c, CONTROLLER_STRAYS, c->key);
}

void addresses_settings_changed(const struct change *c)
{
	auto_free char *config = str_printf("%s/" IPAM_CONFIG_MAP, c->from->config_ns);
	struct ipam_settings ignored;

	if (str_eq(c->key, config) &&
	    ipam_settings_read(c->now, c->from->config_ns, &ignored, NULL) == 0)
		controllers_keep(c->from, BOX_GOOD_SETTINGS, config, (json_t *)c->now);
	/* Its findings are of the pass, whether or not a pod waits. */
	wake(c, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
}

void addresses_source_changed(const struct change *c)
{
	if (ipam_book_all(c->from->addresses, IPAM_WAITING))
		wake(c, CONTROLLER_ADDRESSES, ADDRESSES_KEY);
}

/* ---- what comes of decisions ----------------------------------------------------------------- */

bool strays_are_urgent(const struct controller_sources *from, const char *pool)
{
	return !ipam_book_get(from->addresses, IPAM_LEARNED, pool);
}

void bound_pod_found(const struct change *c, const char *reason)
{
	if (reason)
		address_metrics_refused(c->from->address_metrics, reason);
}

void endpoint_read(const struct controller_sources *from, const char *key, json_t *found,
		   const struct err *err)
{
	/* What no retry mends is reported; other failures pass. */
	bool is_refused = err && kube_err_is(err, "Forbidden");
	const char *reason = is_refused ? "OwnerUnreadable" : NULL;
	bool is_news = (is_refused || !err) && findings_set(from->findings, KIND_ENDPOINT, key, "",
							    reason, err ? err->text : NULL);

	if (is_refused && is_news)
		log_warn(
			"cannot read the owner of a pod, its addresses stay",
			F_STR("reason", reason), F_STR("key", key), F_ERR(err),
			F_STR("remedy", "grant the operator get on it (manifests/base/rbac.yaml)"));
	else if (err)
		log_debug("cannot read what may have ended, will retry", F_STR("key", key),
			  F_ERR(err));
	if (!err)
		ipam_book_set(from, IPAM_LIVE, key, found);
}

/* A ledger that the API server refused: its pods wait, those of other pools do not. */
void addresses_ledger_written(const struct controller_sources *from, const char *kind,
			      const char *pool, const struct err *err)
{
	const json_t *before = ipam_book_get(from->addresses, IPAM_UNWRITTEN, pool);
	int64_t again_ms = 2 * json_integer_value(json_at(before, "againMs"));
	json_auto_t *trouble = NULL;
	char until[RFC3339_SIZE];

	if (!str_eq(kind, KIND_IP_POOL) || (!err && !before))
		return;
	if (again_ms < LEDGER_AGAIN_MS || !kube_err_is(err, "InternalError"))
		again_ms = LEDGER_AGAIN_MS;
	again_ms = again_ms > LEDGER_AGAIN_MAX_MS ? LEDGER_AGAIN_MAX_MS : again_ms;
	rfc3339_write(clock_wall_us() + again_ms * INT64_C(1000), until);
	if (err)
		trouble = json_pack("{s:s, s:s, s:s, s:I}", "reason", err->reason, "text",
				    err->text, "until", until, "againMs", (json_int_t)again_ms);
	ipam_book_set(from, IPAM_UNWRITTEN, pool, trouble);
}

void addresses_overtaken(const struct controller_sources *from)
{
	address_metrics_conflict(from->address_metrics);
}

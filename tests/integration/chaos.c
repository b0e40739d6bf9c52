// SPDX-License-Identifier: Apache-2.0
/*
 * chaos: users, administrators, a tenant who forges and the nodes of a cluster, all at once. Pods
 * of three namespaces come and go, pools and reservations change under them, ledgers are wiped,
 * pools are made again, agents and nodes are lost. Whatever is chosen follows from the seed; when
 * it happens, and to what, also from what the cluster has done by then.
 *
 * After all steps it puts the pools right, so that each pod can have what it asks for, prints
 * "quiet" and goes on as nodes only. SIGUSR1: all pods and StatefulSets are deleted, and when
 * nothing is left of them "empty" is printed. SIGTERM ends it, with the counts of what was done.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/ipam/candidates.h"
#include "reconcilers/ipam/endpoint.h"
#include "tests/support/address_history.h"
#include "tests/support/chaos_nodes.h"
#include "tests/support/connection.h"

static const char help[] = "usage: chaos [OPTION...]\n"
			   "\n"
			   "  --steps N            how much is done (500)\n"
			   "  --rate N             steps per second (20)\n"
			   "  --seed N             what (1)\n"
			   "  --kubeconfig FILE    of users and kubelets: may do everything\n"
			   "  --agents FILE        of the agents\n"
			   "  --tenant FILE        of who writes endpoints in namespace user-2\n";

enum { POOLS = 6, RESERVED = 4, USERS = 3, PLAIN = 12, SET = 3, TENANT = 2, ADDRESSES = 20 };

/* Two subnets, and one that overlaps both. */
static const char *const subnets[] = {"10.20.0.0/24", "10.20.1.0/24", "10.20.0.0/23"};
/* What each network's configuration names. */
static const char *const networks[][3] = {
	{"pool-0"}, {"pool-1", "pool-2"}, {"pool-3"}, {"pool-4", "pool-5"}};

static const struct kube_resource nad_kind = {"k8s.cni.cncf.io", "v1",
					      "network-attachment-definitions",
					      "NetworkAttachmentDefinition", true};
static const struct kube_resource set_kind = {"apps", "v1", "statefulsets", "StatefulSet", true};
static const struct kube_write plain, to_status = {.subresource = "status"};

struct chaos;

struct pool {
	struct chaos *chaos;
	int64_t n;
	char name[32];
	bool is_busy;
	json_t *object; /* what is to be created */
};

struct chaos {
	struct connection connection; /* of the users */
	struct kube_config agents_config, tenant_config;
	struct kube_client *agents, *tenant;
	const char *kubeconfig, *agents_kubeconfig, *tenant_kubeconfig;
	int64_t steps, rate, seed, done, forged;
	uint64_t random;
	struct chaos_nodes *nodes;
	struct pool pools[POOLS];
	struct timer *pace;
	enum { PHASE_STEPS, PHASE_QUIET, PHASE_EMPTYING, PHASE_EMPTY } phase;
	json_t *counts;
};

static int64_t below(struct chaos *c, int64_t bound)
{
	return chaos_below(&c->random, bound);
}

static void count(struct chaos *c, const char *what)
{
	json_put_int(c->counts, what, json_integer_value(json_at(c->counts, what)) + 1);
}

static void on_ignored(void *arg, json_t *object, const struct err *err)
{
}

static struct kube_client *users(struct chaos *c)
{
	return c->connection.client;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static struct kube_resource pool_kind(void)
{
	return connection_resource(KIND_IP_POOL);
}

/* Where a pool is when nothing is wrong: a third of a subnet, and no other pool has it. */
static json_t *good_spec(int64_t n)
{
	int64_t net = n / 3, first = 1 + ADDRESSES * 3 * (n % 3);

	return json_pack("{s:i, s:s, s:[o], s:o, s:[], s:n, s:n}", "ipVersion", 4, "subnet",
			 subnets[net], "ips",
			 json_fmt("10.20.%" PRId64 ".%" PRId64 "-10.20.%" PRId64 ".%" PRId64, net,
				  first, net, first + ADDRESSES * 3 - 1),
			 "gateway", json_fmt("10.20.%" PRId64 ".254", net), "excludeIPs",
			 "namespaceName", "namespaceAffinity");
}

/* Somewhere near: it may overlap its neighbours, have its gateway among its addresses, and more. */
static json_t *some_spec(struct chaos *c, int64_t n)
{
	json_t *spec = good_spec(n);
	int64_t net = below(c, 10) ? n / 3 : below(c, 2);
	int64_t shift = below(c, 4) ? 0 : below(c, ADDRESSES * 2);
	int64_t first = 1 + ADDRESSES * (n % 3) + shift;
	int64_t last = first + 5 + below(c, ADDRESSES - 5);

	json_put_str(spec, "subnet", subnets[below(c, 30) ? net : 2]);
	json_put(spec, "ips",
		 json_pack("[o]",
			   json_fmt("10.20.%" PRId64 ".%" PRId64 "-10.20.%" PRId64 ".%" PRId64, net,
				    first, net, last)));
	if (below(c, 3) == 0)
		json_put(spec, "gateway",
			 json_fmt("10.20.%" PRId64 ".%" PRId64, net, 1 + below(c, ADDRESSES * 3)));
	if (below(c, 4) == 0)
		json_put(spec, "excludeIPs",
			 json_pack("[o]", json_fmt("10.20.%" PRId64 ".%" PRId64, net,
						   first + below(c, last - first + 1))));
	if (below(c, 8) == 0)
		json_put(spec, "namespaceName",
			 json_pack("[o]", json_fmt("user-%" PRId64, below(c, USERS))));
	else if (below(c, 8) == 0)
		json_put(spec, "namespaceAffinity",
			 json_pack("{s:{s:o}}", "matchLabels", "orbweaver.test/user",
				   json_fmt("%" PRId64, below(c, USERS))));
	return spec;
}

static json_t *pool_object(const struct pool *pool, json_t *spec)
{
	const char *key;
	json_t *value;
	void *next;

	/* What a merge patch takes away. */
	json_object_foreach_safe(spec, next, key, value)
	{
		if (json_is_null(value))
			json_object_del(spec, key);
	}
	return json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion",
			 "spiderpool.spidernet.io/v2beta1", "kind", "SpiderIPPool", "metadata",
			 "name", pool->name, "spec", spec);
}

static void on_pool_done(void *arg, json_t *object, const struct err *err)
{
	struct pool *pool = arg;

	if (err && !kube_err_is(err, "NotFound") && !kube_err_is(err, "AlreadyExists") &&
	    err->class != ERR_CONFLICT)
		count(pool->chaos, err->reason);
	pool->is_busy = false;
}

static void create_pool(struct pool *pool, json_t *spec)
{
	const struct kube_resource kind = pool_kind();
	json_auto_t *object = pool_object(pool, spec);

	pool->is_busy = true;
	kube_create(users(pool->chaos), &kind, object, &plain, on_pool_done, pool);
}

static void edit_pool(struct pool *pool, json_t *spec)
{
	const struct kube_resource kind = pool_kind();
	json_auto_t *patch = json_pack("{s:o}", "spec", spec);

	pool->is_busy = true;
	kube_patch(users(pool->chaos), &kind, NULL, pool->name, KUBE_PATCH_MERGE, patch, &plain,
		   on_pool_done, pool);
}

/* Another program resets the whole status, or only the records. */
static void wipe_pool(struct pool *pool)
{
	const struct kube_resource kind = pool_kind();
	json_auto_t *patch =
		json_pack("{s:{s:n, s:i}}", "status", "allocatedIPs", "allocatedIPCount", 9999);
	json_auto_t *all = json_pack("{s:n}", "status");

	pool->is_busy = true;
	kube_patch(users(pool->chaos), &kind, NULL, pool->name, KUBE_PATCH_MERGE,
		   below(pool->chaos, 2) ? patch : all, &to_status, on_pool_done, pool);
}

static void on_pool_deleted(void *arg, json_t *object, const struct err *err)
{
	struct pool *pool = arg;

	if (err && !kube_err_is(err, "NotFound"))
		on_pool_done(pool, NULL, err);
	else
		create_pool(pool, json_incref(pool->object));
}

static void on_pool_let_go(void *arg, json_t *object, const struct err *err)
{
	const struct kube_resource kind = pool_kind();
	struct pool *pool = arg;

	if (err && !kube_err_is(err, "NotFound"))
		on_pool_done(pool, NULL, err);
	else
		kube_delete(users(pool->chaos), &kind, NULL, pool->name, NULL, NULL, &plain,
			    on_pool_deleted, pool);
}

/* As manifests/release-finalizers and a new installation do, under pods that live. */
static void make_pool_again(struct pool *pool, json_t *spec)
{
	const struct kube_resource kind = pool_kind();
	json_auto_t *patch = json_pack("{s:{s:n}}", "metadata", "finalizers");

	json_decref(pool->object);
	pool->object = spec;
	pool->is_busy = true;
	kube_patch(users(pool->chaos), &kind, NULL, pool->name, KUBE_PATCH_MERGE, patch, &plain,
		   on_pool_let_go, pool);
}

static void change_pool(struct chaos *c)
{
	const struct kube_resource kind = pool_kind();
	struct pool *pool = &c->pools[below(c, POOLS)];
	int64_t what = below(c, 20);
	json_auto_t *spec = some_spec(c, pool->n);

	if (pool->is_busy)
		return;
	if (what < 9) {
		count(c, "pools edited");
		edit_pool(pool, json_incref(spec));
	} else if (what < 12) {
		count(c, "ledgers wiped");
		wipe_pool(pool);
	} else if (what < 15) {
		count(c, "pools made again");
		make_pool_again(pool, json_incref(spec));
	} else if (what < 19) {
		count(c, "pools created");
		create_pool(pool, json_incref(spec));
	} else {
		count(c, "pools deleted");
		pool->is_busy = true;
		kube_delete(users(c), &kind, NULL, pool->name, NULL, NULL, &plain, on_pool_done,
			    pool);
	}
}

/* ---- reservations ---------------------------------------------------------------------------- */

static void change_reserved(struct chaos *c)
{
	const struct kube_resource kind = connection_resource(KIND_RESERVED_IP);
	int64_t n = below(c, RESERVED), first = 1 + below(c, ADDRESSES * 3), what = below(c, 3);
	auto_free char *name = str_printf("reserved-%" PRId64, n);
	json_auto_t *object = json_pack(
		"{s:s, s:s, s:{s:s}, s:{s:i, s:[o,o]}}", "apiVersion",
		"spiderpool.spidernet.io/v2beta1", "kind", "SpiderReservedIP", "metadata", "name",
		name, "spec", "ipVersion", 4, "ips",
		json_fmt("10.20.0.%" PRId64 "-10.20.0.%" PRId64, first, first + below(c, 4)),
		json_fmt("10.20.1.%" PRId64, 1 + below(c, ADDRESSES * 3)));

	count(c, "reservations changed");
	if (what == 0)
		kube_delete(users(c), &kind, NULL, name, NULL, NULL, &plain, on_ignored, NULL);
	else if (what == 1)
		kube_patch(users(c), &kind, NULL, name, KUBE_PATCH_MERGE, object, &plain,
			   on_ignored, NULL);
	else
		kube_create(users(c), &kind, object, &plain, on_ignored, NULL);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static json_t *names_of(const char *const *names)
{
	json_t *list = json_array();

	for (size_t i = 0; i < 3 && names[i]; i++)
		json_array_append_new(list, json_string(names[i]));
	return list;
}

/* One or two networks, which the leader foresees or not, and perhaps other pools than theirs. */
static void choose_networks(struct chaos *c, json_t *annotations, json_t *asks)
{
	int64_t n = 1 + (below(c, 4) == 0), first = below(c, ARRAY_LEN(networks));
	bool is_foreseen = below(c, 6) != 0;
	auto_strbuf struct strbuf text = {0}, nics = {0};

	for (int64_t i = 0; i < n; i++) {
		int64_t net = (first + i) % (int64_t)ARRAY_LEN(networks);

		strbuf_addf(&text, "%snet-%" PRId64, i ? "," : "", net);
		strbuf_addf(&nics, "%snet%" PRId64, i ? "," : "", i + 1);
		json_array_append_new(asks,
				      json_pack("{s:o, s:o}", "nic", json_fmt("net%" PRId64, i + 1),
						"ipv4", names_of(networks[net])));
	}
	json_put_str(annotations, HISTORY_NICS, strbuf_str(&nics));
	if (is_foreseen)
		json_put_str(annotations, NETWORKS_ANNOTATION, strbuf_str(&text));
	if (below(c, 6) == 0)
		json_put(annotations, IPAM_ANNOTATION_POOL,
			 json_fmt("{\"ipv4\": [\"pool-%" PRId64 "\"]}", below(c, POOLS)));
	else if (below(c, 12) == 0)
		json_put_str(annotations, IPAM_ANNOTATION_POOL, "{\"ipv4\": [\"pool-*\"]}");
}

static void create_pod(struct chaos *c, const char *ns, const char *name, bool of_set)
{
	json_auto_t *annotations = json_object(), *asks = json_array();

	choose_networks(c, annotations, asks);
	(void)chaos_pod_create(c->nodes, &(struct chaos_pod_wish){
						 .ns = ns,
						 .name = name,
						 .of_set = of_set,
						 .bound_later = below(c, 5) == 0,
						 .is_rejected = below(c, 10) == 0,
						 .annotations = annotations,
						 .asks = asks,
					 });
}

static void change_pod(struct chaos *c)
{
	static const char *const reasons[] = {"UnexpectedAdmissionError", "OutOfcpu", "Evicted",
					      "NodeShutdown", NULL};
	int64_t ns_number = below(c, USERS), n = below(c, PLAIN + SET), what = below(c, 20);
	const char *reason = reasons[below(c, ARRAY_LEN(reasons))];
	auto_free char *ns = str_printf("user-%" PRId64, ns_number);
	auto_free char *name =
		n < PLAIN ? str_printf("p-%" PRId64, n) : str_printf("web-%" PRId64, n - PLAIN);
	struct chaos_pod *pod = chaos_pod_find(c->nodes, ns, name);

	if (!chaos_pod_is_there(c->nodes, ns, name))
		create_pod(c, ns, name, n >= PLAIN);
	else if (!pod || what < 6)
		return;
	else if (what < 10)
		chaos_pod_delete(pod, false);
	else if (what < 16)
		chaos_pod_delete(pod, true);
	else
		chaos_pod_end(pod, reason);
}

/* ---- StatefulSets ---------------------------------------------------------------------------- */

static void create_set(struct chaos *c, const char *ns)
{
	json_auto_t *object = json_pack(
		"{s:{s:s, s:s}, s:{s:i, s:s, s:{s:{s:s}}, s:{s:{s:{s:s}}, s:{s:[{s:s, s:s}]}}}}",
		"metadata", "name", "web", "namespace", ns, "spec", "replicas", SET, "serviceName",
		"s", "selector", "matchLabels", "a", "b", "template", "metadata", "labels", "a",
		"b", "spec", "containers", "name", "c", "image", "none");

	kube_create(users(c), &set_kind, object, &plain, on_ignored, NULL);
}

static void change_set(struct chaos *c)
{
	auto_free char *ns = str_printf("user-%" PRId64, below(c, USERS));
	int64_t what = below(c, 6);
	json_auto_t *patch =
		json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)(1 + below(c, SET)));

	count(c, "StatefulSets changed");
	if (what == 0)
		kube_delete(users(c), &set_kind, ns, "web", NULL, NULL, &plain, on_ignored, NULL);
	else if (what < 3)
		create_set(c, ns);
	else
		kube_patch(users(c), &set_kind, ns, "web", KUBE_PATCH_MERGE, patch, &plain,
			   on_ignored, NULL);
}

/* ---- a tenant who forges --------------------------------------------------------------------- */

/* An address that is not the tenant's: of a living pod, of a pool, a gateway. Returns new. */
static char *some_address(struct chaos *c, const struct chaos_pod *victim)
{
	const char *has = victim ? chaos_pod_address(victim) : "";

	if (*has && below(c, 3))
		return str_ndup(has, strcspn(has, " "));
	return str_printf("10.20.%" PRId64 ".%" PRId64, below(c, 2),
			  below(c, 4) ? 1 + below(c, ADDRESSES * 3) : 254);
}

static json_t *forged_status(struct chaos *c, const char *uid, const char *address)
{
	return json_pack("{s:{s:s, s:o, s:[{s:s, s:o, s:o, s:i, s:b}]}, s:s, s:s}", "current",
			 "uid", uid, "node", json_fmt("node-%05" PRId64, below(c, CHAOS_NODES)),
			 "ips", "interface", "net1", "ipv4", json_fmt("%s/24", address), "ipv4Pool",
			 json_fmt("pool-%" PRId64, below(c, POOLS)), "vlan", 0, "cleanGateway", 0,
			 "ownerControllerType", below(c, 2) ? "Pod" : "StatefulSet",
			 "ownerControllerName", "forged");
}

/* An endpoint of the tenant's namespace, under the name of a pod that may or may not be there. */
static json_t *forgery(struct chaos *c, const char **ret_what)
{
	static const char *const whats[] = {
		"own UID, another address",
		"UID of another pod",
		"own pod is down",
		"another pod is down",
		"UID and down of another",
		"conflicts",
		"asks",
		"a lost pod",
	};
	struct chaos_pod *victim = chaos_pod_any(c->nodes, &c->random);
	int64_t what = below(c, ARRAY_LEN(whats)), n = below(c, PLAIN);
	auto_free char *name = str_printf("p-%" PRId64, n);
	struct chaos_pod *own = chaos_pod_find(c->nodes, "user-2", name);
	const char *own_uid = own ? chaos_pod_uid(own) : "0";
	const char *other_uid = victim ? chaos_pod_uid(victim) : "0";
	auto_free char *address = some_address(c, victim);
	const char *uid = what == 0 || what == 2 || what == 5 ? own_uid : other_uid;
	json_t *object = json_object(), *metadata = json_need_object(object, "metadata");
	json_t *annotations = json_need_object(metadata, "annotations");

	*ret_what = whats[what];
	json_put_str(object, "apiVersion", "spiderpool.spidernet.io/v2beta1");
	json_put_str(object, "kind", "SpiderEndpoint");
	json_put_str(metadata, "namespace", "user-2");
	json_put_str(metadata, "name", name);
	json_put(annotations, HISTORY_FORGED, json_fmt("%" PRId64, ++c->forged));
	if (what == 0 || what == 1 || what == 4 || what == 7)
		json_put(object, "status", forged_status(c, uid, address));
	if (what >= 2 && what <= 4)
		json_put_str(annotations, ENDPOINT_DOWN_ANNOTATION, uid);
	if (what == 5)
		json_put(annotations, "orbweaver.io/conflicts",
			 json_fmt("{\"uid\": \"%s\", \"conflicts\": [{\"ip\": \"%s\", \"mac\": "
				  "\"02:00:00:00:00:01\"}]}",
				  uid, below(c, 2) && own ? chaos_pod_address(own) : address));
	if (what == 6)
		json_put(annotations, ENDPOINT_ASKS_ANNOTATION,
			 json_fmt("{\"uid\": \"%s\", \"pod\": \"p-%" PRId64
				  "\", \"asks\": [{\"nic\": \"net9\", \"ipv4\": [\"pool-%" PRId64
				  "\"]}]}",
				  below(c, 2) ? own_uid : other_uid, below(c, PLAIN),
				  below(c, POOLS)));
	if (what == 7) {
		json_put(metadata, "name", json_fmt("lost-%s-00000000", other_uid));
		json_put_str(annotations, ENDPOINT_DOWN_ANNOTATION, other_uid);
		json_put_str(json_at(object, "status"), "ownerControllerName",
			     victim ? chaos_pod_key(victim) : "user-0/p-0");
	}
	return object;
}

static void forge(struct chaos *c)
{
	const struct kube_resource kind = connection_resource(KIND_ENDPOINT);
	const char *what = NULL;
	json_auto_t *object = forgery(c, &what);
	auto_free char *counted = str_printf("forged: %s", what);

	if (below(c, 4) == 0) {
		count(c, "endpoints deleted");
		kube_delete(c->tenant, &kind, "user-2", json_name(object), NULL, NULL, &plain,
			    on_ignored, NULL);
		return;
	}
	count(c, counted);
	if (below(c, 2))
		kube_create(c->tenant, &kind, object, &plain, on_ignored, NULL);
	else
		kube_patch(c->tenant, &kind, "user-2", json_name(object), KUBE_PATCH_MERGE, object,
			   &plain, on_ignored, NULL);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void step(struct chaos *c)
{
	int64_t what = below(c, 100);

	if (what < 66)
		change_pod(c);
	else if (what < 76)
		change_pool(c);
	else if (what < 80)
		change_reserved(c);
	else if (what < 91)
		forge(c);
	else if (what < 93)
		change_set(c);
	else if (what < 99)
		chaos_agent_restart(c->nodes, below(c, CHAOS_NODES), 100 + below(c, 4000));
	else
		chaos_node_die(c->nodes, below(c, CHAOS_NODES));
}

/* One that was deleted while it was in use is kept by its finalizer: nobody gets more of it. */
static void on_put_right(void *arg, json_t *object, const struct err *err)
{
	struct pool *pool = arg;

	on_pool_done(pool, object, err);
	if (kube_err_is(err, "NotFound"))
		create_pool(pool, good_spec(pool->n));
	else if (json_at(object, "metadata", "deletionTimestamp"))
		make_pool_again(pool, good_spec(pool->n));
}

/* Each pod can have what it asks for. */
static void put_right(struct chaos *c)
{
	const struct kube_resource reserved = connection_resource(KIND_RESERVED_IP);
	const struct kube_resource kind = pool_kind();

	for (int64_t i = 0; i < RESERVED; i++) {
		auto_free char *name = str_printf("reserved-%" PRId64, i);

		kube_delete(users(c), &reserved, NULL, name, NULL, NULL, &plain, on_ignored, NULL);
	}
	for (int64_t i = 0; i < POOLS; i++) {
		struct pool *pool = &c->pools[i];
		json_auto_t *patch = json_pack("{s:o}", "spec", good_spec(i));

		if (pool->is_busy)
			continue;
		pool->is_busy = true;
		kube_patch(users(c), &kind, NULL, pool->name, KUBE_PATCH_MERGE, patch, &plain,
			   on_put_right, pool);
	}
}

/* No program plays the garbage collector's part, nor the controller's of a StatefulSet. */
static void delete_all(struct chaos *c)
{
	bool is_left = false;

	for (int64_t u = 0; u < USERS; u++) {
		auto_free char *ns = str_printf("user-%" PRId64, u);

		kube_delete(users(c), &set_kind, ns, "web", NULL, NULL, &plain, on_ignored, NULL);
		for (int64_t n = 0; n < PLAIN + SET; n++) {
			auto_free char *name = n < PLAIN ? str_printf("p-%" PRId64, n)
							 : str_printf("web-%" PRId64, n - PLAIN);
			struct chaos_pod *pod = chaos_pod_find(c->nodes, ns, name);

			is_left |= chaos_pod_is_there(c->nodes, ns, name);
			if (pod)
				chaos_pod_delete(pod, below(c, 2));
		}
	}
	if (is_left || !chaos_nodes_are_empty(c->nodes))
		return;
	c->phase = PHASE_EMPTY;
	printf("empty\n");
	(void)fflush(stdout);
}

static bool is_at_rest(const struct chaos *c)
{
	for (int64_t i = 0; i < POOLS; i++)
		if (c->pools[i].is_busy)
			return false;
	return true;
}

static void on_pace(void *arg)
{
	struct chaos *c = arg;

	if (c->phase == PHASE_STEPS && c->done < c->steps) {
		c->done++;
		step(c);
		timer_start(c->pace, 1000 / c->rate);
		return;
	}
	timer_start(c->pace, 1000);
	if (c->phase == PHASE_STEPS && is_at_rest(c)) {
		c->phase = PHASE_QUIET;
		put_right(c);
		printf("quiet\n");
		(void)fflush(stdout);
	} else if (c->phase == PHASE_QUIET) {
		/* A pool that was being deleted is there again once its addresses are back. */
		put_right(c);
	} else if (c->phase == PHASE_EMPTYING) {
		delete_all(c);
	}
}

/* ---- the program ----------------------------------------------------------------------------- */

static void create_network(struct chaos *c, const char *ns, size_t n)
{
	json_auto_t *config =
		json_pack("{s:s, s:o, s:s, s:s, s:{s:s, s:o}}", "cniVersion", "1.0.0", "name",
			  json_fmt("net-%zu", n), "type", "macvlan", "master", "eth1", "ipam",
			  "type", "spiderpool", "default_ipv4_ippool", names_of(networks[n]));
	auto_free char *text = json_text(config);
	json_auto_t *object =
		json_pack("{s:s, s:s, s:{s:o, s:s}, s:{s:s}}", "apiVersion", "k8s.cni.cncf.io/v1",
			  "kind", "NetworkAttachmentDefinition", "metadata", "name",
			  json_fmt("net-%zu", n), "namespace", ns, "spec", "config", text);

	kube_create(users(c), &nad_kind, object, &plain, on_ignored, NULL);
}

static void on_next_phase(void *arg)
{
	struct chaos *c = arg;

	c->phase = PHASE_EMPTYING;
}

static void on_end(void *arg)
{
	struct chaos *c = arg;

	loop_stop(c->connection.loop);
}

static int open_client(struct chaos *c, const char *kubeconfig, struct kube_config *config,
		       struct kube_client **ret, struct err *err)
{
	const struct kube_config_source source = {.kubeconfig = kubeconfig};

	if (kube_config_load(&source, config, err) < 0)
		return -1;
	*ret = kube_client_new(c->connection.loop, config, NULL);
	return 0;
}

static void run(struct chaos *c)
{
	struct loop *loop = c->connection.loop;
	struct signal_watch *next = signal_watch_new(loop, SIGUSR1, on_next_phase, c);
	struct signal_watch *end = signal_watch_new(loop, SIGTERM, on_end, c);

	c->random = (uint64_t)c->seed * 0x9E3779B97F4A7C15ull + 7;
	c->counts = json_object();
	c->nodes = chaos_nodes_new(&(struct chaos_nodes_config){
		.loop = loop,
		.users = users(c),
		.agents = c->agents,
		.seed = (uint64_t)c->seed,
	});
	for (int64_t u = 0; u < USERS; u++) {
		auto_free char *ns = str_printf("user-%" PRId64, u);

		create_set(c, ns);
		for (size_t n = 0; n < ARRAY_LEN(networks); n++)
			create_network(c, ns, n);
	}
	for (int64_t i = 0; i < POOLS; i++) {
		c->pools[i].chaos = c;
		c->pools[i].n = i;
		(void)snprintf(c->pools[i].name, sizeof(c->pools[i].name), "pool-%" PRId64, i);
		create_pool(&c->pools[i], good_spec(i));
	}
	c->pace = timer_new(loop, on_pace, c);
	timer_start(c->pace, 500);
	loop_run(loop);
	timer_free(c->pace);
	json_object_update(c->counts, chaos_nodes_counts(c->nodes));
	chaos_nodes_free(c->nodes);
	for (int64_t i = 0; i < POOLS; i++)
		json_decref(c->pools[i].object);
	signal_watch_free(next);
	signal_watch_free(end);
}

static bool set_option(struct chaos *c, int option)
{
	switch (option) {
	case 'n':
		return str_to_int(optarg, 1, 1000000, &c->steps);
	case 'r':
		return str_to_int(optarg, 1, 1000, &c->rate);
	case 's':
		return str_to_int(optarg, 1, INT32_MAX, &c->seed);
	case 'k':
		c->kubeconfig = optarg;
		return true;
	case 'a':
		c->agents_kubeconfig = optarg;
		return true;
	case 't':
		c->tenant_kubeconfig = optarg;
		return true;
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		return false;
	}
}

static int start(struct chaos *c, struct err *err)
{
	if (connection_open(&c->connection, c->kubeconfig, err) < 0)
		return -1;
	if (open_client(c, c->agents_kubeconfig, &c->agents_config, &c->agents, err) < 0 ||
	    open_client(c, c->tenant_kubeconfig, &c->tenant_config, &c->tenant, err) < 0)
		return -1;
	run(c);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"steps", required_argument, NULL, 'n'},
		{"rate", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"kubeconfig", required_argument, NULL, 'k'},
		{"agents", required_argument, NULL, 'a'},
		{"tenant", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct chaos c = {.steps = 500, .rate = 20, .seed = 1};
	auto_free char *counts = NULL;
	struct err err = {0};
	int option;

	json_init();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!set_option(&c, option)) {
			fprintf(stderr, "chaos: %s: bad option or value; see --help\n",
				argv[optind - 1]);
			return 2;
		}
	}
	if (start(&c, &err) < 0) {
		fprintf(stderr, "chaos: %s\n", err.text);
		return 2;
	}
	counts = json_text(c.counts);
	printf("%s\n", counts);
	json_decref(c.counts);
	kube_client_free(c.agents);
	kube_client_free(c.tenant);
	connection_close(&c.connection);
	kube_config_done(&c.agents_config);
	kube_config_done(&c.tenant_config);
	return 0;
}

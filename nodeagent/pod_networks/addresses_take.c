// SPDX-License-Identifier: Apache-2.0
/*
 * Allocation without a leader: the same function, the same compare-and-swap. See
 * addresses_internal.h.
 *
 * The attempts of a round come one after the other and share what they read (struct shelf): each
 * pool is read once, by name where the pod's pools have names, else with all others. Pod and
 * endpoint are read by each attempt. A pool that was written meanwhile is read again, a few times.
 * What an attempt that was cut off has left in a ledger names the pod's UID: the next one takes it
 * up, or the leader does.
 *
 * An attempt that finds no address is not repeated before one of the pools that it looked at has
 * changed, but once a minute, as pod, namespace and settings may have.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/claim.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/pod_controller.h"

static const struct kube_resource namespace_resource = {"", "v1", KIND_NAMESPACE, "Namespace",
							false};
static const struct kube_resource reserved_resource = {"spiderpool.spidernet.io", "v2beta1",
						       KIND_RESERVED_IP, "SpiderReservedIP", false};

static const struct kube_write by_agent = {.field_manager = AGENT_NAME};

enum {
	/* A pod that names more pools than this has all of them listed. */
	TAKE_NAMES_MAX = 16,
	/* So often is a pool read again that another agent has written meanwhile. */
	TAKE_CONFLICTS_MAX = 4,
};

struct shelf {
	json_t *pools;                         /* by name; null: there is no such pool */
	json_t *namespaces;                    /* by name; null: there is no such namespace */
	json_t *nodes, *reserved, *config_map; /* NULL: not read yet */
	bool has_config_map, has_all_pools;
	struct err err; /* the API server did not answer: the round is over */
};

struct take {
	struct addresses *addresses;
	struct deferred *start;
	char *ns, *name, *uid;
	json_t *asks;
	void (*done)(void *arg, const json_t *status, const struct err *err);
	void *arg;
	struct err before;
	json_t *names; /* of the pools that matter; NULL: all, or not known yet */
	json_t *seen;  /* {"names", "versions"}: see take_seen() */
	json_t *pod, *endpoint;
	json_t *world;
	char *key; /* of the endpoint */
	struct ipam_settings settings;
	struct books *books;
	json_t *ops; /* of pools, then nothing */
	size_t next;
	json_t *status; /* as the endpoint has to say */
	struct kube_call *call;
	struct pools_question *question;
	const char *reading; /* the pool that is read; borrowed from names or ops */
	size_t step, conflicts;
};

/* ---- what attempts share --------------------------------------------------------------------- */

struct shelf *shelf_new(void)
{
	struct shelf *shelf = mem_new(struct shelf);

	shelf->pools = json_object();
	shelf->namespaces = json_object();
	return shelf;
}

void shelf_free(struct shelf *shelf)
{
	if (!shelf)
		return;
	json_decref(shelf->pools);
	json_decref(shelf->namespaces);
	json_decref(shelf->nodes);
	json_decref(shelf->reserved);
	json_decref(shelf->config_map);
	mem_free(shelf);
}

static json_t *or_null(json_t *object)
{
	return object ? json_incref(object) : json_null();
}

static json_t *by_name(const json_t *items)
{
	json_t *objects = json_object(), *item;
	size_t i;

	json_array_foreach (items, i, item)
		json_put(objects, json_name(item), json_incref(item));
	return objects;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void read_next(struct take *take);
static void read_pools(struct take *take);

static void take_free(struct take *take)
{
	kube_call_cancel(take->call);
	pools_cancel(take->question);
	deferred_free(take->start);
	books_free(take->books);
	json_decref(take->ops);
	json_decref(take->status);
	json_decref(take->world);
	json_decref(take->pod);
	json_decref(take->endpoint);
	json_decref(take->names);
	json_decref(take->seen);
	json_decref(take->asks);
	mem_free(take->key);
	mem_free(take->ns);
	mem_free(take->name);
	mem_free(take->uid);
	mem_free(take);
}

void take_cancel(struct take *take)
{
	if (take)
		take_free(take);
}

json_t *take_seen(const struct take *take)
{
	return take->seen;
}

static void end_take(struct take *take, const json_t *status, const struct err *err)
{
	assert(!take->call && !take->question);
	take->done(take->arg, status, err);
	take_free(take);
}

/* What did not come for this pod does not come for the next one either. */
static void end_round(struct take *take, const struct err *err)
{
	take->addresses->shelf->err = *err;
	end_take(take, NULL, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void on_endpoint_written(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;
	const json_t *status = json_at(object, "status");
	const struct claim claim = {take->ns, strchr(take->key, '/') + 1, take->uid, take->asks,
				    status};
	struct err own = {0};

	take->call = NULL;
	/* What the endpoint had of a pool that is gone is in it still. */
	if (!err && claim_compare_all(&claim, take->addresses->shelf->pools, &own) < 0)
		err = &own;
	end_take(take, err ? NULL : status, err);
}

static void write_endpoint(struct take *take)
{
	struct kube_client *client = take->addresses->config.client;
	const json_t *present = take->endpoint;
	json_auto_t *object = endpoint_object(take->key, take->status);
	json_auto_t *conflicts = conflicts_said(present, take->uid);
	json_t *metadata = json_at(object, "metadata");

	if (present) {
		if (conflicts && ipam_has_heard(take->world, take->pod, take->status, conflicts,
						&take->settings))
			json_put(json_need_object(metadata, "annotations"),
				 ENDPOINT_CONFLICTS_ANNOTATION, json_null());
		json_put_str(metadata, "resourceVersion",
			     json_str_at(present, "metadata", "resourceVersion"));
		take->call =
			kube_patch(client, &addresses_endpoint, take->ns, json_name(object),
				   KUBE_PATCH_MERGE, object, &by_agent, on_endpoint_written, take);
		return;
	}
	json_put_str(object, "apiVersion", "spiderpool.spidernet.io/v2beta1");
	json_put_str(object, "kind", "SpiderEndpoint");
	take->call = kube_create(client, &addresses_endpoint, object, &by_agent,
				 on_endpoint_written, take);
}

static void write_next(struct take *take);
static void read_pool(struct take *take, const char *pool);

static void on_pool_written(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;
	const char *pool = json_str_at(json_array_get(take->ops, take->next - 1), "key");
	json_t *pools = take->addresses->shelf->pools;

	assert(take->next > 0 && take->next <= json_array_size(take->ops));
	take->call = NULL;
	if (!err) {
		json_put(pools, pool, json_incref(object));
		write_next(take);
		return;
	}
	if (err->class == ERR_CONFLICT && take->conflicts++ < TAKE_CONFLICTS_MAX)
		read_pool(take, pool);
	else
		end_take(take, NULL, err);
}

struct kube_call *take_put_ledger(struct addresses *addresses, const struct ledger *ledger,
				  kube_object_fn *done, void *arg)
{
	json_auto_t *object =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion",
			  "spiderpool.spidernet.io/v2beta1", "kind", "SpiderIPPool", "metadata",
			  "name", json_name(ledger->pool), "resourceVersion",
			  json_str_or(json_at(ledger->pool, "metadata", "resourceVersion"), ""),
			  "status", ledger_status(ledger));

	return kube_update(
		addresses->config.client, &addresses_pool, object,
		&(struct kube_write){.field_manager = AGENT_NAME, .subresource = "status"}, done,
		arg);
}

/* One pool after the other, then the endpoint. */
static void write_next(struct take *take)
{
	const json_t *op = json_array_get(take->ops, take->next++);
	const char *pool = json_str_at(op, "key");
	struct ledger *ledger = pool ? books_open(take->books, pool, NULL) : NULL;

	if (ledger)
		take->call = take_put_ledger(take->addresses, ledger, on_pool_written, take);
	else
		write_endpoint(take);
}

/* ---- deciding -------------------------------------------------------------------------------- */

static void add_objects(json_t *world, const char *kind, const json_t *objects)
{
	json_t *of_kind = json_need_object(world, kind), *object;
	const char *name;

	json_each (objects, name, object)
		if (!json_is_null(object))
			json_put(of_kind, name, json_incref(object));
}

/* Returns new. */
static json_t *world_of(const struct take *take)
{
	const struct shelf *shelf = take->addresses->shelf;
	json_t *world = json_object(), *env = json_need_object(world, "env");
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	json_put_str(env, "now", now);
	json_put_bool(env, "withoutLeader", true);
	json_put(json_need_object(world, KIND_POD), take->name, json_incref(take->pod));
	if (take->endpoint)
		json_put(json_need_object(world, KIND_ENDPOINT), take->key,
			 json_incref(take->endpoint));
	add_objects(world, KIND_NAMESPACE, shelf->namespaces);
	add_objects(world, KIND_NODE, shelf->nodes);
	add_objects(world, KIND_RESERVED_IP, shelf->reserved);
	add_objects(world, KIND_IP_POOL, shelf->pools);
	return world;
}

static void decide(struct take *take)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	assert(take->pod && take->key);
	books_free(take_ptr(take->books));
	json_decref(take_ptr(take->status));
	json_decref(take_ptr(take->ops));
	json_replace(&take->world, world_of(take));
	take->next = 0;
	take->books = books_new(take->world);
	if (take->settings.keeps_virtual_machines && pod_is_successor(take->pod, take->endpoint)) {
		(void)err_set(&err, ERR_TRANSIENT, "NotPodOfMachine",
			      "another pod has the addresses of VirtualMachineInstance %s: the "
			      "operator's leader looks whether this pod is of that machine",
			      json_name(take->endpoint));
		end_take(take, NULL, &err);
		return;
	}
	if (ipam_allocate(take->books, take->pod, take->endpoint, take->asks, &take->settings,
			  &take->status, &err) < 0) {
		end_take(take, NULL, &err);
		return;
	}
	books_plan(take->books, &plan);
	take->ops = json_incref(plan.ops);
	write_next(take);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void add_name(void *arg, const char *name)
{
	json_t *names = arg;

	if (json_array_size(names) <= TAKE_NAMES_MAX && name_is_dns_subdomain(name) &&
	    !json_list_has(names, name))
		json_array_append_new(names, json_string(name));
}

/* What the pod has already, too. */
static void find_names(struct take *take)
{
	const json_t *namespace = json_object_get(take->addresses->shelf->namespaces, take->ns);
	json_auto_t *names = json_array();
	bool is_open =
		candidates_visit_names(take->pod, namespace, take->asks, add_name, names).is_open;
	json_t *item;
	size_t i;

	json_array_foreach (json_at(take->endpoint, "status", "current", "ips"), i, item) {
		add_name(names, json_str_or(json_at(item, "ipv4Pool"), ""));
		add_name(names, json_str_or(json_at(item, "ipv6Pool"), ""));
	}
	json_decref(take_ptr(take->names));
	if (!is_open && json_array_size(names) <= TAKE_NAMES_MAX)
		take->names = json_incref(names);
}

/* All that the decision looks at is on the shelf. */
static void on_pools_there(struct take *take)
{
	json_auto_t *before = json_incref(take->seen);
	const json_t *pools = take->addresses->shelf->pools;
	auto_strbuf struct strbuf versions = {0};
	uint64_t sum = 0;
	const char *name;
	json_t *pool;
	size_t i;

	json_array_foreach (take->names, i, pool)
		strbuf_addf(&versions, "%s ",
			    json_str_or(json_at(json_object_get(pools, json_string_value(pool)),
						"metadata", "resourceVersion"),
					"-"));
	/* Versions only grow. */
	json_each (take->names ? NULL : pools, name, pool)
		sum += kube_resource_version(pool);
	if (!take->names)
		strbuf_addf(&versions, "%zu %llu", json_object_size(pools),
			    (unsigned long long)sum);
	json_replace(&take->seen, json_object());
	json_put(take->seen, "names", or_null(take->names));
	json_put_str(take->seen, "versions", strbuf_str(&versions));
	if (take->pod)
		decide(take);
	else if (json_equal(before, take->seen))
		end_take(take, NULL, &take->before);
	else
		read_next(take);
}

static void on_all_pools(void *arg, json_t *pools, const struct err *err)
{
	struct take *take = arg;
	struct shelf *shelf = take->addresses->shelf;

	take->question = NULL;
	if (err) {
		end_round(take, err);
		return;
	}
	json_replace(&shelf->pools, by_name(pools));
	shelf->has_all_pools = true;
	on_pools_there(take);
}

static void on_pool(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;

	take->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		end_round(take, err);
		return;
	}
	json_put(take->addresses->shelf->pools, take->reading, or_null(object));
	read_pools(take);
}

static void read_pool(struct take *take, const char *pool)
{
	assert(!take->call);
	take->reading = pool;
	take->call = kube_get_within(take->addresses->config.client, &addresses_pool, NULL, pool,
				     on_pool, take);
}

/* One that no leader has compared with the others, as it is now, needs them all. */
static void read_pools(struct take *take)
{
	struct shelf *shelf = take->addresses->shelf;
	json_t *name;
	size_t i;

	json_array_foreach (take->names, i, name) {
		const json_t *pool = json_object_get(shelf->pools, json_string_value(name));

		if (!pool && !shelf->has_all_pools) {
			read_pool(take, json_string_value(name));
			return;
		}
		if (!shelf->has_all_pools && !json_is_null(pool) && !ip_pool_is_judged(pool))
			break;
	}
	if (shelf->has_all_pools || (take->names && i == json_array_size(take->names)))
		on_pools_there(take);
	else
		take->question = pools_ask(take->addresses, on_all_pools, take);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int look_at_pod(struct take *take, json_t *pod, struct err *err)
{
	if (!pod || !str_eq(json_uid(pod), take->uid))
		return err_set(err, ERR_INVALID, "PodNotFound",
			       "pod %s/%s with UID %s is not there any more", take->ns, take->name,
			       take->uid);
	if (ipam_settings_read(take->addresses->shelf->config_map,
			       addresses_config_ns(take->addresses), &take->settings, err) < 0)
		return -1;
	take->pod = json_incref(pod);
	take->key = str_printf("%s/%s", take->ns, pod_endpoint_name(pod, &take->settings));
	return 0;
}

/* What is read, in this order. */
enum { READ_CONFIG, READ_POD, READ_ENDPOINT, READ_NAMESPACE, READ_NODE, READ_RESERVED, READ_POOLS };

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;
	struct shelf *shelf = take->addresses->shelf;
	struct err own = {0};

	take->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		end_round(take, err);
		return;
	}
	switch (take->step++) {
	case READ_CONFIG:
		shelf->config_map = json_incref(object);
		shelf->has_config_map = true;
		break;
	case READ_POD:
		if (look_at_pod(take, object, &own) < 0) {
			end_take(take, NULL, &own);
			return;
		}
		break;
	case READ_ENDPOINT:
		take->endpoint = json_incref(object);
		break;
	case READ_NAMESPACE:
		json_put(shelf->namespaces, take->ns, or_null(object));
		break;
	case READ_NODE:
		shelf->nodes = json_object();
		json_put(shelf->nodes, take->addresses->config.node, or_null(object));
		break;
	case READ_RESERVED:
		shelf->reserved = by_name(json_at(object, "items"));
		break;
	}
	read_next(take);
}

/* True when another attempt of the round has read it. */
static bool is_on_shelf(const struct take *take)
{
	const struct shelf *shelf = take->addresses->shelf;

	switch (take->step) {
	case READ_CONFIG:
		return shelf->has_config_map;
	case READ_NAMESPACE:
		return json_object_get(shelf->namespaces, take->ns) != NULL;
	case READ_NODE:
		return shelf->nodes != NULL;
	case READ_RESERVED:
		return shelf->reserved != NULL;
	default:
		return false;
	}
}

static void read_next(struct take *take)
{
	const struct addresses_config *config = &take->addresses->config;
	struct kube_client *client = config->client;

	assert(!take->call && take->step <= READ_POOLS);
	while (is_on_shelf(take))
		take->step++;
	switch (take->step) {
	case READ_CONFIG:
		take->call = kube_get_within(client, &kube_config_maps,
					     addresses_config_ns(take->addresses), IPAM_CONFIG_MAP,
					     on_read, take);
		break;
	case READ_POD:
		take->call =
			kube_get_within(client, &kube_pods, take->ns, take->name, on_read, take);
		break;
	case READ_ENDPOINT:
		take->call = kube_get_within(client, &addresses_endpoint, take->ns,
					     strchr(take->key, '/') + 1, on_read, take);
		break;
	case READ_NAMESPACE:
		take->call =
			kube_get_within(client, &namespace_resource, NULL, take->ns, on_read, take);
		break;
	case READ_NODE:
		take->call =
			kube_get_within(client, &kube_nodes, NULL, config->node, on_read, take);
		break;
	case READ_RESERVED:
		take->call = kube_list(client, &reserved_resource, NULL, NULL, on_read, take);
		break;
	default:
		find_names(take);
		read_pools(take);
		break;
	}
}

static void on_start(void *arg)
{
	struct take *take = arg;
	const struct shelf *shelf = take->addresses->shelf;

	if (shelf->err.class != ERR_NONE)
		end_take(take, NULL, &shelf->err);
	else if (take->seen)
		read_pools(take);
	else
		read_next(take);
}

struct take *take_begin(const struct take_config *config)
{
	struct take *take = mem_new(struct take);
	const json_t *names = json_at(config->seen, "names");

	assert(config->addresses->shelf && config->done && (!config->seen || config->before));
	take->addresses = config->addresses;
	take->ns = str_dup(config->ns);
	take->name = str_dup(config->name);
	take->uid = str_dup(config->uid);
	take->asks = json_incref((json_t *)config->asks);
	take->seen = json_incref((json_t *)config->seen);
	take->names = json_is_array(names) ? json_incref((json_t *)names) : NULL;
	if (config->seen)
		take->before = *config->before;
	take->done = config->done;
	take->arg = config->arg;
	take->start = deferred_new(config->addresses->config.loop, on_start, take);
	deferred_run(take->start);
	return take;
}

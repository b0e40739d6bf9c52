// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses without a leader: the same function, the same compare-and-swap. See
 * addresses_internal.h.
 *
 * All that the decision looks at is read anew. A pool that moved ends the attempt, and the next one
 * begins with reading. What an attempt that was cut off has left in a ledger names the pod's UID:
 * the next one takes it up, or the leader does.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/addresses/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/controller.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/settings.h"

static const struct kube_resource node_resource = {"", "v1", KIND_NODE, "Node", false};
static const struct kube_resource namespace_resource = {"", "v1", KIND_NAMESPACE, "Namespace",
							false};
static const struct kube_resource reserved_resource = {"spiderpool.spidernet.io", "v2beta1",
						       KIND_RESERVED_IP, "SpiderReservedIP", false};

static const struct kube_write by_agent = {.field_manager = AGENT_NAME};

struct take {
	struct addresses *addresses;
	char *ns, *name, *uid;
	json_t *asks;
	void (*done)(void *arg, const json_t *status, const struct err *err);
	void *arg;
	json_t *world;
	json_t *config_map;
	json_t *pod; /* borrowed from world */
	char *key;   /* of the endpoint */
	struct ipam_settings settings;
	struct books *books;
	json_t *ops; /* of pools, then nothing */
	size_t next;
	json_t *status; /* as the endpoint has to say */
	struct kube_call *call;
	size_t step;
};

static void go_on(struct take *take);

static void take_free(struct take *take)
{
	kube_call_cancel(take->call);
	books_free(take->books);
	json_decref(take->ops);
	json_decref(take->status);
	json_decref(take->world);
	json_decref(take->config_map);
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

static void end(struct take *take, const json_t *status, const struct err *err)
{
	take->done(take->arg, status, err);
	take_free(take);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void on_endpoint_written(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;

	take->call = NULL;
	end(take, err ? NULL : json_at(object, "status"), err);
}

static void write_endpoint(struct take *take)
{
	struct kube_client *client = take->addresses->config.client;
	const json_t *present = world_get(take->world, KIND_ENDPOINT, take->key);
	json_auto_t *object = endpoint_object(take->key, take->status);
	json_auto_t *conflicts = conflicts_said(present, take->uid);
	json_t *metadata = json_at(object, "metadata");

	if (present) {
		if (conflicts &&
		    ipam_has_heard(take->pod, take->status, conflicts, &take->settings))
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

static void on_pool_written(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;

	take->call = NULL;
	if (err)
		end(take, NULL, err);
	else
		go_on(take);
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
static void go_on(struct take *take)
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

static void decide(struct take *take)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};

	take->books = books_new(take->world);
	if (ipam_allocate(take->books, take->pod, world_get(take->world, KIND_ENDPOINT, take->key),
			  take->asks, &take->settings, &take->status, &err) < 0) {
		end(take, NULL, &err);
		return;
	}
	books_plan(take->books, &plan);
	take->ops = json_incref(plan.ops);
	go_on(take);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_next(struct take *take);

static void put(struct take *take, const char *kind, const char *key, json_t *object)
{
	if (object)
		json_put(json_need_object(take->world, kind), key, json_incref(object));
}

static int look_at_pod(struct take *take, json_t *pod, struct err *err)
{
	if (!pod || !str_eq(json_uid(pod), take->uid))
		return err_set(err, ERR_INVALID, "PodNotFound",
			       "pod %s/%s with UID %s is not there any more", take->ns, take->name,
			       take->uid);
	if (ipam_settings_read(take->config_map, take->addresses->config.config_ns, &take->settings,
			       err) < 0)
		return -1;
	take->pod = pod;
	take->key = str_printf("%s/%s", take->ns, pod_endpoint_name(pod, &take->settings));
	put(take, KIND_POD, take->name, pod);
	return 0;
}

static void put_list(struct take *take, const char *kind, const json_t *list)
{
	json_t *items = json_need_object(take->world, kind), *item;
	size_t i;

	json_array_foreach (json_at(list, "items"), i, item)
		json_put(items, json_name(item), json_incref(item));
}

/* What is read, in this order. */
enum { READ_CONFIG, READ_POD, READ_ENDPOINT, READ_NAMESPACE, READ_NODE, READ_RESERVED, READ_POOLS };

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct take *take = arg;
	char now[RFC3339_SIZE];
	struct err own = {0};

	take->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		end(take, NULL, err);
		return;
	}
	switch (take->step++) {
	case READ_CONFIG:
		take->config_map = json_incref(object);
		break;
	case READ_POD:
		if (look_at_pod(take, object, &own) < 0) {
			end(take, NULL, &own);
			return;
		}
		break;
	case READ_ENDPOINT:
		put(take, KIND_ENDPOINT, take->key, object);
		break;
	case READ_NAMESPACE:
		put(take, KIND_NAMESPACE, take->ns, object);
		break;
	case READ_NODE:
		put(take, KIND_NODE, take->addresses->config.node, object);
		break;
	case READ_RESERVED:
		put_list(take, KIND_RESERVED_IP, object);
		break;
	case READ_POOLS:
		put_list(take, KIND_IP_POOL, object);
		rfc3339_write(clock_wall_us(), now);
		json_put_str(json_need_object(take->world, "env"), "now", now);
		json_put_bool(json_need_object(take->world, "env"), "isAgent", true);
		decide(take);
		return;
	}
	read_next(take);
}

static void read_next(struct take *take)
{
	const struct addresses_config *config = &take->addresses->config;
	struct kube_client *client = config->client;

	switch (take->step) {
	case READ_CONFIG:
		take->call = kube_get(client, &addresses_config_map, config->config_ns,
				      IPAM_CONFIG_MAP, NULL, on_read, take);
		break;
	case READ_POD:
		take->call =
			kube_get(client, &addresses_pod, take->ns, take->name, NULL, on_read, take);
		break;
	case READ_ENDPOINT:
		take->call = kube_get(client, &addresses_endpoint, take->ns,
				      strchr(take->key, '/') + 1, NULL, on_read, take);
		break;
	case READ_NAMESPACE:
		take->call =
			kube_get(client, &namespace_resource, NULL, take->ns, NULL, on_read, take);
		break;
	case READ_NODE:
		take->call =
			kube_get(client, &node_resource, NULL, config->node, NULL, on_read, take);
		break;
	case READ_RESERVED:
		take->call = kube_list(client, &reserved_resource, NULL, NULL, on_read, take);
		break;
	default:
		take->call = kube_list(client, &addresses_pool, NULL, NULL, on_read, take);
		break;
	}
}

struct take *take_begin(const struct take_config *config)
{
	struct take *take = mem_new(struct take);

	take->addresses = config->addresses;
	take->ns = str_dup(config->ns);
	take->name = str_dup(config->name);
	take->uid = str_dup(config->uid);
	take->asks = json_incref((json_t *)config->asks);
	take->done = config->done;
	take->arg = config->arg;
	take->world = json_object();
	json_need_object(take->world, KIND_IP_POOL);
	read_next(take);
	return take;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Two informers, each of one object, and the writes of one: a deferred call reports changes,
 * statuses are composed by the wiring at the moment of writing. The agent (agent.c) hears
 * what is wanted; it never sees the API server.
 */
#include "nodeagent/agent/node_state.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/devices/dra_names.h"

static const struct kube_resource state_resource = {
	.group = "sriovnetwork.openshift.io",
	.version = "v1",
	.plural = "sriovnetworknodestates",
	.kind = "SriovNetworkNodeState",
	.namespaced = true,
};

struct node_state {
	struct node_state_config config;
	char *selector;
	struct cache *states, *nodes;
	struct informer *state_informer, *node_informer;
	struct deferred *tell; /* callbacks, out of the middle of receiving */
	struct timer *write_due, *create_due;
	struct kube_call *call; /* the write or creation in flight */
	json_t *object;         /* as the server has it; NULL: there is none */
	json_t *addresses;
	json_t *node_written; /* {"uid", "dra"} */
	char *profile;        /* as said last; NULL: without */
	/*
	 * The last status that we sent, and what the server made of it: hashes, as with many VFs
	 * each would be large. uid: of the NodeState that it was for.
	 */
	struct {
		uint64_t hash, stored;
		char *uid;
	} sent;
	int64_t quiet_ms; /* until then the writes so far are at the rate */
	int failures;
	bool synced, may_write, dirty, state_changed, node_changed, node_seen, profile_said;
	struct metric *writes;
};

/* ---- what the server says -------------------------------------------------------------------- */

/* Heartbeats, images and the rest of a Node are not needed here. */
static void project_node(json_t *object)
{
	json_auto_t *addresses = json_incref(json_at(object, "status", "addresses"));
	json_auto_t *dra = json_incref(json_at(object, "metadata", "annotations", DRA_ANNOTATION));
	json_auto_t *profile = json_incref(json_at(object, "metadata", "labels", PROFILE_LABEL));

	json_object_del(object, "spec");
	json_object_del(object, "status");
	if (addresses)
		json_put(json_need_object(object, "status"), "addresses", json_incref(addresses));
	json_object_del(json_at(object, "metadata"), "annotations");
	if (dra)
		json_put(json_need_object(json_at(object, "metadata"), "annotations"),
			 DRA_ANNOTATION, json_incref(dra));
	json_object_del(json_at(object, "metadata"), "labels");
	if (profile)
		json_put(json_need_object(json_at(object, "metadata"), "labels"), PROFILE_LABEL,
			 json_incref(profile));
}

static void on_state_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct node_state *state = arg;

	state->state_changed = true;
	deferred_run(state->tell);
}

static void on_node_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct node_state *state = arg;

	state->node_changed = true;
	deferred_run(state->tell);
}

static void on_synced(void *arg)
{
	struct node_state *state = arg;

	state->synced = true;
	state->state_changed = true;
	deferred_run(state->tell);
}

/* Also without a Node. */
static void on_nodes_synced(void *arg)
{
	on_node_changed(arg, NULL, NULL, NULL);
}

static void on_state_trouble(void *arg, const struct err *err)
{
	const struct node_state *state = arg;

	state->config.trouble(state->config.arg, "nodestate", err);
}

static void on_node_trouble(void *arg, const struct err *err)
{
	const struct node_state *state = arg;

	state->config.trouble(state->config.arg, "node", err);
}

static void want_object(struct node_state *state)
{
	if (state->synced && !state->object)
		timer_start(state->create_due, NODE_STATE_CREATE_MS);
}

static void tell_state(struct node_state *state)
{
	auto_free char *key = str_printf("%s/%s", state->config.ns, state->config.node);

	/* It is there and cannot be read: not a wish for nothing. */
	if (cache_is_unknown(state->states, key))
		return;
	json_replace(&state->object, cache_get(state->states, key));
	if (!state->synced && !state->object)
		return;
	state->config.changed(state->config.arg, state->object);
	want_object(state);
	node_state_report(state);
}

static void tell_addresses(struct node_state *state)
{
	json_auto_t *node = cache_get(state->nodes, state->config.node);
	json_auto_t *addresses = json_array();
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(node, "status", "addresses"), i, entry)
		if (json_str_at(entry, "address"))
			json_array_append(addresses, json_at(entry, "address"));
	/* A Node that is gone leaves the addresses as they were: they protect a NIC. */
	if (!node || json_same(addresses, state->addresses))
		return;
	json_replace(&state->addresses, json_incref(addresses));
	state->config.addresses(state->config.arg, addresses);
}

static void tell_node(struct node_state *state)
{
	json_auto_t *node = cache_get(state->nodes, state->config.node);
	const char *dra = json_str_at(node, "metadata", "annotations", DRA_ANNOTATION);
	json_auto_t *now = NULL;

	/* As with addresses: what it asked for goes on until it says something else. */
	if (!node || !state->config.node_is)
		return;
	now = json_object();
	json_put_str(now, "uid", json_uid(node));
	json_put_str(now, "dra", dra);
	if (json_same(now, state->node_written))
		return;
	json_replace(&state->node_written, json_incref(now));
	state->config.node_is(state->config.arg, json_uid(node), dra);
}

static void tell_profile(struct node_state *state)
{
	json_auto_t *node = cache_get(state->nodes, state->config.node);
	const char *profile = json_str_at(node, "metadata", "labels", PROFILE_LABEL);

	if (!state->config.profile || !informer_is_synced(state->node_informer) ||
	    (!node && (state->profile_said || cache_is_unknown(state->nodes, state->config.node))))
		return;
	if (state->profile_said && str_eq(profile, state->profile))
		return;
	state->profile_said = true;
	str_replace(&state->profile, profile ? str_dup(profile) : NULL);
	state->config.profile(state->config.arg, state->profile);
}

static void tell_changes(void *arg)
{
	struct node_state *state = arg;

	if (state->node_changed) {
		state->node_changed = false;
		state->node_seen |= cache_has(state->nodes, state->config.node);
		tell_addresses(state);
		tell_node(state);
		tell_profile(state);
		want_object(state);
		if (state->dirty)
			node_state_report(state);
	}
	if (state->state_changed) {
		state->state_changed = false;
		tell_state(state);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static int64_t retry_pause_ms(const struct node_state *state)
{
	int64_t pause = NODE_STATE_WRITE_MS;

	for (int i = 1; i < state->failures && pause < NODE_STATE_RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > NODE_STATE_RETRY_MAX_MS)
		pause = NODE_STATE_RETRY_MAX_MS;
	return pause + (int64_t)clock_jitter((uint64_t)pause / 4);
}

/* True when the write failed; it is tried again later. */
static bool write_failed(struct node_state *state, const char *what, const struct err *err)
{
	metric_add(state->writes, 1, what, err ? err->reason : "ok");
	if (!err) {
		state->failures = 0;
		return false;
	}
	state->failures++;
	/*
	 * The response does not name the first writer: the watch brings the object, and we retry.
	 */
	if (err->class != ERR_CONFLICT && state->failures <= 1)
		log_warn("cannot write the NodeState, will retry", F_STR("what", what), F_ERR(err));
	return true;
}

static uint64_t hash_of(const json_t *value)
{
	auto_free char *text = value ? json_text(value) : str_dup("");

	return str_hash(text, strlen(text));
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct node_state *state = arg;

	assert(state->call && state->sent.uid);
	state->call = NULL;
	want_object(state);
	if (write_failed(state, "status", err)) {
		mem_free(take_ptr(state->sent.uid));
		state->dirty = true;
		timer_start(state->write_due, retry_pause_ms(state));
		return;
	}
	state->sent.stored = hash_of(json_at(object, "status"));
	informer_learn(state->state_informer, object);
	state->config.reported(state->config.arg, json_uid(object));
	if (state->dirty)
		node_state_report(state);
}

/* Takes status. */
static json_t *body_of(const struct node_state *state, json_t *status)
{
	json_t *body = json_object();
	json_t *metadata = json_object();

	json_put_str(metadata, "name", state->config.node);
	json_put_str(metadata, "namespace", state->config.ns);
	json_put(body, "apiVersion",
		 json_fmt("%s/%s", state_resource.group, state_resource.version));
	json_put_str(body, "kind", state_resource.kind);
	json_put(body, "metadata", metadata);
	json_put(body, "status", status);
	if (status)
		json_put_str(metadata, "resourceVersion",
			     json_str_at(state->object, "metadata", "resourceVersion"));
	return body;
}

/* It says so already, or it got exactly this and keeps something else. */
static bool is_stored(const struct node_state *state, const json_t *status)
{
	const json_t *before = json_at(state->object, "status");

	if (json_same(status, before))
		return true;
	return str_eq(state->sent.uid, json_uid(state->object)) &&
	       hash_of(status) == state->sent.hash && hash_of(before) == state->sent.stored;
}

/* The operator has the word then, until it deletes the NodeState or the Node comes back. */
static bool is_node_gone(const struct node_state *state)
{
	return state->node_seen && !cache_has(state->nodes, state->config.node) &&
	       !cache_is_unknown(state->nodes, state->config.node);
}

static void write_if_due(void *arg)
{
	struct node_state *state = arg;
	int64_t now_ms = clock_ms();
	char now[RFC3339_SIZE];
	json_auto_t *body = NULL;
	json_t *status;

	if (!state->dirty || state->call || !state->may_write || !state->object ||
	    is_node_gone(state))
		return;
	state->dirty = false;
	rfc3339_write(clock_wall_us(), now);
	status = state->config.compose(state->config.arg, json_at(state->object, "status"), now);
	if (!status)
		return;
	if (is_stored(state, status)) {
		json_decref(status);
		/* Also by the agent before us. */
		state->config.reported(state->config.arg, json_uid(state->object));
		return;
	}
	state->sent.hash = hash_of(status);
	str_replace(&state->sent.uid, str_dup(json_uid(state->object)));
	state->quiet_ms =
		(state->quiet_ms > now_ms ? state->quiet_ms : now_ms) + NODE_STATE_WRITE_MS;
	body = body_of(state, status);
	state->call = kube_update(
		state->config.client, &state_resource, body,
		&(struct kube_write){.subresource = "status", .field_manager = NODE_STATE_MANAGER},
		on_written, state);
}

static void on_created(void *arg, json_t *object, const struct err *err)
{
	struct node_state *state = arg;

	state->call = NULL;
	if (object)
		informer_learn(state->state_informer, object);
	if (err && kube_err_is(err, "AlreadyExists"))
		err = NULL;
	if (write_failed(state, "create", err))
		timer_start(state->create_due, retry_pause_ms(state));
	/* Another client was faster, and a report was requested meanwhile. */
	if (state->dirty)
		node_state_report(state);
}

static void create_if_absent(void *arg)
{
	struct node_state *state = arg;
	json_auto_t *body = NULL;

	/* Only for a Node that exists: the operator removes NodeStates of Nodes that are gone. */
	if (state->object || state->call || !state->synced || !state->may_write ||
	    !cache_has(state->nodes, state->config.node))
		return;
	body = body_of(state, NULL);
	state->call = kube_create(state->config.client, &state_resource, body,
				  &(struct kube_write){.field_manager = NODE_STATE_MANAGER},
				  on_created, state);
}

/* ---- the outside ----------------------------------------------------------------------------- */

static void start_informers(struct node_state *state)
{
	static const splitter_path drops[] = {{"metadata", "managedFields"}};
	static const splitter_path node_drops[] = {
		{"metadata", "managedFields"}, {"status", "images"},      {"status", "conditions"},
		{"status", "volumesInUse"},    {"status", "allocatable"},
	};
	struct informer_config config = {
		.resource = &state_resource,
		.ns = state->config.ns,
		.selector = state->selector,
		.drops = drops,
		.n_drops = ARRAY_LEN(drops),
		.cache = state->states,
		.synced = on_synced,
		.trouble = on_state_trouble,
		.arg = state,
		.metrics = state->config.metrics,
	};

	state->state_informer = informer_new(state->config.loop, state->config.client, &config);
	config.resource = &kube_nodes;
	config.ns = NULL;
	config.drops = node_drops;
	config.n_drops = ARRAY_LEN(node_drops);
	config.cache = state->nodes;
	config.synced = on_nodes_synced;
	config.trouble = on_node_trouble;
	state->node_informer = informer_new(state->config.loop, state->config.client, &config);
}

struct node_state *node_state_new(const struct node_state_config *config)
{
	static const struct cache_kind state_kind = {0};
	static const struct cache_kind node_kind = {.project = project_node};
	struct node_state *state = mem_new(struct node_state);
	struct strbuf selector = {0};

	assert(config->loop && config->client && config->ns && config->node);
	assert(config->changed && config->compose && config->reported && config->trouble);
	state->config = *config;
	strbuf_adds(&selector, "fieldSelector=metadata.name%3D");
	kube_path_encode(&selector, config->node);
	state->selector = strbuf_take(&selector);
	state->tell = deferred_new(config->loop, tell_changes, state);
	state->write_due = timer_new(config->loop, write_if_due, state);
	state->create_due = timer_new(config->loop, create_if_absent, state);
	state->states = cache_new(&state_kind, on_state_changed, state);
	state->nodes = cache_new(&node_kind, on_node_changed, state);
	state->writes = metric_counter(config->metrics, "orbweaver_agent_api_writes_total",
				       "Writes of our NodeState.", "what,result");
	start_informers(state);
	return state;
}

void node_state_free(struct node_state *state)
{
	if (!state)
		return;
	kube_call_cancel(state->call);
	informer_free(state->state_informer);
	informer_free(state->node_informer);
	cache_free(state->states);
	cache_free(state->nodes);
	deferred_free(state->tell);
	timer_free(state->write_due);
	timer_free(state->create_due);
	json_decref(state->object);
	json_decref(state->addresses);
	json_decref(state->node_written);
	mem_free(state->sent.uid);
	mem_free(state->profile);
	mem_free(state->selector);
	mem_free(state);
}

void node_state_report(struct node_state *state)
{
	int64_t next = state->quiet_ms - NODE_STATE_WRITE_MS - clock_ms();

	state->dirty = true;
	if (!state->call && !timer_is_active(state->write_due))
		timer_start(state->write_due, next > 0 ? next : 0);
}

void node_state_may_write(struct node_state *state, bool may)
{
	state->may_write = may;
	if (!may)
		return;
	node_state_report(state);
	want_object(state);
}

struct event_object node_state_event_object(const struct node_state *state)
{
	return (struct event_object){
		.resource = &state_resource,
		.ns = state->config.ns,
		.name = state->config.node,
		.uid = state->object ? json_uid(state->object) : NULL,
	};
}

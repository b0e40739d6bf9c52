// SPDX-License-Identifier: Apache-2.0
/*
 * A request is a state machine: it reads the endpoint that the leader should have written, watches
 * it, asks the leader or takes its turn in a round, compares what it found with the pools' ledgers,
 * and ends with an answer or at its deadline.
 * addresses_recent.c and _foresight.c spare it the read, _leader.c begins rounds, _take.c
 * allocates.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/names.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/claim.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/pod_controller.h"

static const struct kube_write by_agent = {.field_manager = AGENT_NAME};

/*
 *	WAITING		for a release of the same UID to end
 *	READING		the endpoint, by name, unless another NIC of the pod has just read it; then
 *			the pod, unless the endpoint has what is needed; for a virtual machine's the
 *			settings, and the endpoint of its name
 *	CLEARING	the word that nothing is left, from the sandbox before this one
 *	WATCHING	until the endpoint has what is needed
 *	TAKING		no operator leads
 *	COMPARING	the endpoint has what is needed: its pools, one after the other
 */
enum want_state {
	WANT_WAITING,
	WANT_READING,
	WANT_CLEARING,
	WANT_WATCHING,
	WANT_TAKING,
	WANT_COMPARING,
};

struct addresses_want {
	TAILQ_ENTRY(addresses_want) link;
	struct addresses *addresses;
	enum want_state state, found_in; /* found_in: before COMPARING */
	char *ns, *name, *uid;
	char *endpoint; /* its name */
	char *machine;  /* of which the pod is; NULL: of none, or not known yet */
	json_t *asks;
	int64_t begun_ms, deadline_ms;
	addresses_done_fn *done;
	void *arg;
	json_t *object;         /* the endpoint as read last; NULL: there is none */
	json_t *compared;       /* { pool: true }, while COMPARING */
	int64_t read_begun_ms;  /* of that read */
	struct kube_call *call; /* of the state */
	struct kube_call *asking;
	struct take *take;
	struct cache *cache;
	struct informer *informer;
	char *selector;
	bool is_unforeseen; /* the leader does not look at such pods by itself */
	bool has_asked;
	struct deferred *look; /* out of the middle of receiving */
	struct timer *deadline, *ask_due, *again;
	struct err trouble; /* why it takes so long */
	/* The last attempt without a leader: its round, why it failed, what it had looked at. */
	uint64_t round;
	struct err tried;
	json_t *seen;
	int64_t tried_ms;
};

static void read_endpoint(struct addresses_want *want);

/* ---- end ------------------------------------------------------------------------------------- */

static void stop_watching(struct addresses_want *want)
{
	informer_free(take_ptr(want->informer));
	cache_free(take_ptr(want->cache));
	mem_free(take_ptr(want->selector));
}

static void stop_taking(struct addresses_want *want)
{
	if (!want->take)
		return;
	take_cancel(take_ptr(want->take));
	/* Not from here: who ends requests may end more of them. */
	timer_start(want->addresses->next_take, 0);
}

static void want_free(struct addresses_want *want)
{
	struct addresses *addresses = want->addresses;

	TAILQ_REMOVE(&addresses->wants, want, link);
	kube_call_cancel(want->call);
	kube_call_cancel(want->asking);
	stop_taking(want);
	stop_watching(want);
	deferred_free(want->look);
	timer_free(want->deadline);
	timer_free(want->ask_due);
	timer_free(want->again);
	json_decref(want->object);
	json_decref(want->compared);
	json_decref(want->seen);
	json_decref(want->asks);
	mem_free(want->ns);
	mem_free(want->name);
	mem_free(want->uid);
	mem_free(want->endpoint);
	mem_free(want->machine);
	mem_free(want);
}

void addresses_want_cancel(struct addresses_want *want)
{
	if (want)
		want_free(want);
}

static void finish_want(struct addresses_want *want, const json_t *status, const struct err *err)
{
	static const char *const found[] = {"foreseen", "foreseen", "kept", "waited for", "taken"};
	struct addresses *addresses = want->addresses;
	json_auto_t *kept = json_incref((json_t *)status);
	enum want_state state = want->state == WANT_COMPARING ? want->found_in : want->state;

	if (addresses->wait) {
		metric_observe(addresses->wait, (double)(clock_ms() - want->begun_ms) / 1e3);
		metric_add(addresses->outcomes, 1, err ? err->reason : found[state]);
	}
	want->done(want->arg, kept, err);
	want_free(want);
}

/* What the leader answered to our asks; NULL when it did not. */
static const char *refusal(const struct addresses_want *want)
{
	const char *text =
		json_str_at(want->object, "metadata", "annotations", ENDPOINT_REFUSED_ANNOTATION);
	size_t len = strlen(want->uid);

	return text && strncmp(text, want->uid, len) == 0 && text[len] == ' ' ? text + len + 1
									      : NULL;
}

static void on_deadline(void *arg)
{
	struct addresses_want *want = arg;
	const char *refused = refusal(want);
	struct err err = {0};

	if (refused)
		err_set(&err, ERR_TRANSIENT, "AddressesPending", "%s", refused);
	else if (want->trouble.class != ERR_NONE)
		err = want->trouble;
	else
		err_set(&err, ERR_TRANSIENT, "AddressesPending",
			"pod %s/%s has no addresses yet: its events say why, else look whether the "
			"operator runs",
			want->ns, want->name);
	finish_want(want, NULL, &err);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare_next(struct addresses_want *want);

static struct claim claim_of(const struct addresses_want *want)
{
	return (struct claim){want->ns, want->endpoint, want->uid, want->asks,
			      json_at(want->object, "status")};
}

static void compare_pool(struct addresses_want *want, const char *pool, const json_t *object)
{
	const struct claim claim = claim_of(want);
	struct err err = {0};

	if (claim_compare(&claim, pool, object, &err) < 0) {
		finish_want(want, NULL, &err);
		return;
	}
	json_put_bool(want->compared, pool, true);
	compare_next(want);
}

static void on_pool(void *arg, json_t *object, const struct err *err)
{
	struct addresses_want *want = arg;
	const struct claim claim = claim_of(want);

	want->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		want->trouble = *err;
		timer_start(want->again, ADDRESSES_RETRY_MS);
		return;
	}
	compare_pool(want, claim_next_pool(&claim, want->compared), object);
}

static void compare_next(struct addresses_want *want)
{
	const struct claim claim = claim_of(want);
	const char *pool = claim_next_pool(&claim, want->compared);

	assert(want->state == WANT_COMPARING && !want->call);
	if (!pool)
		finish_want(want, json_at(want->object, "status"), NULL);
	else if (name_is_dns_subdomain(pool))
		want->call = kube_get_within(want->addresses->config.client, &addresses_pool, NULL,
					     pool, on_pool, want);
	else
		compare_pool(want, pool, NULL);
}

/* Users may write endpoints: only ledgers say which addresses the pod has. */
static void begin_comparing(struct addresses_want *want)
{
	assert(want->object && want->state != WANT_COMPARING);
	stop_taking(want);
	want->found_in = want->state;
	want->state = WANT_COMPARING;
	want->compared = json_object();
	compare_next(want);
}

/* ---- the endpoint ---------------------------------------------------------------------------- */

static void remember_object(struct addresses_want *want, json_t *object)
{
	json_replace(&want->object, object);
}

static void on_cleared(void *arg, json_t *object, const struct err *err)
{
	struct addresses_want *want = arg;

	want->call = NULL;
	if (err) {
		want->trouble = *err;
		want->state = WANT_READING;
		timer_start(want->again, ADDRESSES_RETRY_MS);
		return;
	}
	remember_object(want, json_incref(object));
	begin_comparing(want);
}

/* The pod's interfaces are about to be there again. */
static void clear_word(struct addresses_want *want)
{
	json_auto_t *patch =
		json_pack("{s:{s:s, s:{s:n}}}", "metadata", "resourceVersion",
			  json_str_or(json_at(want->object, "metadata", "resourceVersion"), ""),
			  "annotations", ENDPOINT_DOWN_ANNOTATION);

	recent_forget(want->addresses, want->uid);
	want->state = WANT_CLEARING;
	want->call =
		kube_patch(want->addresses->config.client, &addresses_endpoint, want->ns,
			   want->endpoint, KUBE_PATCH_MERGE, patch, &by_agent, on_cleared, want);
}

/* True when the request has ended, or is about to. */
static bool answer_want(struct addresses_want *want)
{
	if (!endpoint_answers(want->object, want->uid, want->asks))
		return false;
	if (endpoint_is_down(want->object, want->uid))
		clear_word(want);
	else
		begin_comparing(want);
	return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void on_asked(void *arg, json_t *object, const struct err *err)
{
	struct addresses_want *want = arg;

	want->asking = NULL;
	/* A user made or changed it meanwhile: the watch has it soon. */
	if (err) {
		if (err->class != ERR_CONFLICT)
			want->trouble = *err;
		timer_start(want->ask_due, ADDRESSES_RETRY_MS);
	}
}

static void ask_leader(void *arg)
{
	struct addresses_want *want = arg;
	struct kube_client *client = want->addresses->config.client;
	auto_free char *text = endpoint_asks_text(want->uid, want->name, want->asks);
	json_auto_t *object = json_object();
	json_t *metadata =
		endpoint_metadata(want->ns, want->endpoint, want->addresses->config.node);

	if (want->asking || want->state != WANT_WATCHING) {
		json_decref(metadata);
		return;
	}
	want->has_asked = true;
	json_put(object, "metadata", metadata);
	json_put_str(json_need_object(metadata, "annotations"), ENDPOINT_ASKS_ANNOTATION, text);
	if (want->object) {
		/* The word of a sandbox before this one; that of a pod before is the leader's. */
		if (endpoint_is_down(want->object, want->uid))
			json_put(json_at(metadata, "annotations"), ENDPOINT_DOWN_ANNOTATION,
				 json_null());
		json_object_del(metadata, "labels");
		want->asking = kube_patch(client, &addresses_endpoint, want->ns, want->endpoint,
					  KUBE_PATCH_MERGE, object, &by_agent, on_asked, want);
		return;
	}
	json_put_str(object, "apiVersion", "spiderpool.spidernet.io/v2beta1");
	json_put_str(object, "kind", "SpiderEndpoint");
	want->asking = kube_create(client, &addresses_endpoint, object, &by_agent, on_asked, want);
}

/* ---- watching -------------------------------------------------------------------------------- */

static void on_cache_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct addresses_want *want = arg;

	deferred_run(want->look);
}

static void on_watch_trouble(void *arg, const struct err *err)
{
	struct addresses_want *want = arg;

	want->trouble = err ? *err : (struct err){0};
}

static void look_at_cache(void *arg)
{
	struct addresses_want *want = arg;
	auto_free char *key = str_printf("%s/%s", want->ns, want->endpoint);

	if (want->state != WANT_WATCHING && want->state != WANT_TAKING)
		return;
	remember_object(want, cache_get(want->cache, key));
	if (!answer_want(want) && want->has_asked && !endpoint_is_of(want->object, want->uid))
		/*
		 * Another pod of the machine has asked over it, or it was the endpoint of a pod
		 * before of this name, and went with that.
		 */
		timer_start(want->ask_due, ADDRESSES_RETRY_MS);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The endpoint does not have what is needed, or not for sure. */
static void watch_for_answer(struct addresses_want *want)
{
	const char *other = endpoint_uid(want->object);

	/* What another pod of the machine has is handed on to the pod that asks (assign.h). */
	if (want->machine && !str_empty(other) && !str_eq(other, want->uid))
		want->is_unforeseen = true;
	if (!answer_want(want)) {
		static const struct cache_kind kind = {0};
		struct addresses *addresses = want->addresses;
		auto_strbuf struct strbuf selector = {0};
		bool only_node_knows = false;
		json_t *ask;
		size_t i;

		recent_forget(addresses, want->uid);
		/* It was watched before, if the word about the pod could not be cleared. */
		stop_watching(want);
		json_array_foreach (want->asks, i, ask)
			only_node_knows |= json_at(ask, "masterAddresses") != NULL;
		want->state = WANT_WATCHING;
		strbuf_adds(&selector, "fieldSelector=metadata.name%3D");
		kube_path_encode(&selector, want->endpoint);
		want->selector = strbuf_take(&selector);
		want->cache = cache_new(&kind, on_cache_changed, want);
		want->informer = informer_new(addresses->config.loop, addresses->config.client,
					      &(struct informer_config){
						      .resource = &addresses_endpoint,
						      .ns = want->ns,
						      .selector = want->selector,
						      .cache = want->cache,
						      .trouble = on_watch_trouble,
						      .arg = want,
					      });
		timer_start(want->ask_due,
			    want->is_unforeseen || only_node_knows ? 0 : ADDRESSES_ASK_AFTER_MS);
		leader_look_after(addresses->leader);
	}
}

static void read_later(struct addresses_want *want, const struct err *err)
{
	want->trouble = *err;
	timer_start(want->again, ADDRESSES_RETRY_MS);
}

/* Where are the addresses of a virtual machine's pod: as the leader reads it. */
static void on_config(void *arg, json_t *config_map, const struct err *err)
{
	struct addresses_want *want = arg;
	struct ipam_settings settings = {0};
	struct err bad = {0};

	want->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		read_later(want, err);
	} else if (ipam_settings_read(config_map, addresses_config_ns(want->addresses), &settings,
				      &bad) < 0) {
		read_later(want, &bad);
	} else if (settings.keeps_virtual_machines) {
		str_replace(&want->endpoint, str_dup(want->machine));
		read_endpoint(want);
	} else {
		watch_for_answer(want);
	}
}

static void on_pod(void *arg, json_t *pod, const struct err *err)
{
	struct addresses_want *want = arg;
	const struct addresses_config *config = &want->addresses->config;
	struct err gone = {0};

	want->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		read_later(want, err);
		return;
	}
	if (!pod || !str_eq(json_uid(pod), want->uid)) {
		err_set(&gone, ERR_INVALID, "PodNotFound",
			"pod %s/%s with UID %s is not there any more", want->ns, want->name,
			want->uid);
		finish_want(want, NULL, &gone);
		return;
	}
	if (pod_need_alive(pod, &gone) < 0) {
		finish_want(want, NULL, &gone);
		return;
	}
	want->is_unforeseen = !assign_wants(pod);
	str_replace(&want->machine, pod_machine(pod) ? str_dup(pod_machine(pod)) : NULL);
	if (want->machine && !str_eq(want->machine, want->name))
		want->call = kube_get_within(config->client, &kube_config_maps,
					     addresses_config_ns(want->addresses), IPAM_CONFIG_MAP,
					     on_config, want);
	else
		watch_for_answer(want);
}

static void on_endpoint(void *arg, json_t *object, const struct err *err)
{
	struct addresses_want *want = arg;

	want->call = NULL;
	if (err && !kube_err_is(err, "NotFound")) {
		read_later(want, err);
		return;
	}
	remember_object(want, json_incref(object));
	/* The addresses of a pod that has ended are about to go once nothing of it is left. */
	if (!endpoint_is_down(object, want->uid) &&
	    endpoint_answers(object, want->uid, want->asks)) {
		/* The pod's other NICs are about to ask. */
		if (json_array_size(json_at(want->object, "status", "current", "ips")) >
		    json_array_size(want->asks))
			recent_keep(want->addresses, want->uid, want->object, want->read_begun_ms,
				    ADDRESSES_RECENT_MS);
		begin_comparing(want);
		return;
	}
	if (str_eq(want->endpoint, want->name))
		want->call = kube_get_within(want->addresses->config.client, &kube_pods, want->ns,
					     want->name, on_pod, want);
	else
		watch_for_answer(want);
}

static void read_endpoint(struct addresses_want *want)
{
	assert(!want->call);
	want->state = WANT_READING;
	want->read_begun_ms = clock_ms();
	want->call = kube_get_within(want->addresses->config.client, &addresses_endpoint, want->ns,
				     want->endpoint, on_endpoint, want);
}

static const json_t *find_recent(const struct addresses_want *want)
{
	return recent_find(want->addresses, want->uid,
			   pod_watch_is_sure(want->addresses->pods, want->uid));
}

static void read_again(void *arg)
{
	struct addresses_want *want = arg;
	const json_t *recent = find_recent(want);

	if (want->state == WANT_COMPARING) {
		compare_next(want);
		return;
	}
	if (want->state != WANT_READING || want->call)
		return;
	if (!endpoint_is_down(recent, want->uid) &&
	    endpoint_answers(recent, want->uid, want->asks)) {
		recent_used(want->addresses, want->uid);
		remember_object(want, json_incref((json_t *)recent));
		begin_comparing(want);
		return;
	}
	read_endpoint(want);
}

/* What another NIC has read answers at once, but not before the request is made. */
static void begin_want(struct addresses_want *want)
{
	want->state = WANT_READING;
	if (find_recent(want))
		timer_start(want->again, 0);
	else
		read_endpoint(want);
}

/* ---- without a leader ------------------------------------------------------------------------ */

static void on_taken(void *arg, const json_t *status, const struct err *err)
{
	struct addresses_want *want = arg;
	struct addresses *addresses = want->addresses;
	json_t *seen = json_incref(take_seen(want->take));

	want->take = NULL;
	addresses->has_helped |= !err;
	if (!err || (err->class == ERR_INVALID && !kube_err_is(err, "PoolExhausted"))) {
		json_decref(seen);
		finish_want(want, status, err);
	} else {
		if (!want->seen)
			want->tried_ms = clock_ms();
		json_replace(&want->seen, seen);
		want->trouble = want->tried = *err;
		want->state = WANT_WATCHING;
	}
	want_take_next(addresses);
}

static void take_now(struct addresses_want *want)
{
	struct addresses *addresses = want->addresses;

	assert(want->state == WANT_WATCHING && !want->take);
	if (want->seen && clock_ms() - want->tried_ms >= ADDRESSES_TRIED_MS)
		json_decref(take_ptr(want->seen));
	log_debug("no operator leads, allocating addresses", F_STR("namespace", want->ns),
		  F_STR("pod", want->name));
	want->state = WANT_TAKING;
	want->round = addresses->round;
	want->take = take_begin(&(struct take_config){
		.addresses = addresses,
		.ns = want->ns,
		.name = want->name,
		.uid = want->uid,
		.asks = want->asks,
		.seen = want->seen,
		.before = &want->tried,
		.done = on_taken,
		.arg = want,
	});
}

/* The next one of this round, or its end. */
void want_take_next(void *arg)
{
	struct addresses *addresses = arg;
	struct addresses_want *want;

	if (!addresses->shelf)
		return;
	TAILQ_FOREACH(want, &addresses->wants, link)
	if (want->state == WANT_WATCHING && want->round != addresses->round) {
		take_now(want);
		return;
	}
	shelf_free(take_ptr(addresses->shelf));
	leader_round_over(addresses->leader, addresses->has_helped);
}

bool want_is_waiting(const struct addresses *addresses)
{
	const struct addresses_want *want;

	TAILQ_FOREACH(want, &addresses->wants, link)
	if (want->state == WANT_WATCHING || want->state == WANT_TAKING)
		return true;
	return false;
}

void want_begin_round(struct addresses *addresses)
{
	addresses->round++;
	addresses->has_helped = false;
	addresses->shelf = shelf_new();
	want_take_next(addresses);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct addresses_want *addresses_want(struct addresses *addresses,
				      const struct addresses_request *request,
				      addresses_done_fn *done, void *arg)
{
	struct addresses_want *want = mem_new(struct addresses_want);
	struct loop *loop = addresses->config.loop;
	int64_t now_ms = clock_ms();

	assert(request->ns && request->name && request->uid && json_array_size(request->asks));
	assert(done);
	addresses->asked_ms = now_ms;
	want->addresses = addresses;
	want->ns = str_dup(request->ns);
	want->name = str_dup(request->name);
	want->uid = str_dup(request->uid);
	want->endpoint = str_dup(request->name);
	want->asks = json_incref((json_t *)request->asks);
	want->begun_ms = now_ms;
	want->deadline_ms = request->deadline_ms;
	want->done = done;
	want->arg = arg;
	want->look = deferred_new(loop, look_at_cache, want);
	want->deadline = timer_new(loop, on_deadline, want);
	want->ask_due = timer_new(loop, ask_leader, want);
	want->again = timer_new(loop, read_again, want);
	TAILQ_INSERT_TAIL(&addresses->wants, want, link);
	timer_start(want->deadline, want->deadline_ms > now_ms ? want->deadline_ms - now_ms : 0);
	if (!release_is_superseded(addresses, want->uid))
		begin_want(want);
	return want;
}

void want_released(struct addresses *addresses, const char *uid)
{
	struct addresses_want *want;

	TAILQ_FOREACH(want, &addresses->wants, link)
	/* A request that has begun does not wait for a release. */
	if (want->state == WANT_WAITING && str_eq(want->uid, uid))
		begin_want(want);
}

void want_free_all(struct addresses *addresses)
{
	while (!TAILQ_EMPTY(&addresses->wants))
		want_free(TAILQ_FIRST(&addresses->wants));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The word that nothing of a pod is left, until it has arrived. See addresses.h.
 *
 *	ASKING_POD	only for who guesses: is the pod of this UID gone, or has it terminated?
 *	READING_NAMED	the endpoint of the pod's name: it is this UID's, mostly
 *	LISTING		else one of this node in the namespace: that of a virtual machine
 *	SAYING		a patch; the leader does the rest
 *	READING_POD	no endpoint says this UID: is the pod alive, then nothing is given back
 *	READING_POOLS	it has ended: records that still name the UID are taken out
 *	READING_RECORDED	unless the endpoint that they name is this UID's: that of a virtual
 *			machine which Spiderpool's agent wrote has no label of the node
 *	WAITING_TURN	another release of this node writes a pool
 *	GIVING_BACK	one pool after the other, each in the version that was read
 *
 * Who found no endpoint looks once more a minute later: the leader may have been about to write
 * one, and the records before it. So does who found that the node holds something of a pod that is
 * gone, until it does not.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/ipam/pod_controller.h"

enum release_state {
	RELEASE_ASKING_POD,
	RELEASE_READING_NAMED,
	RELEASE_LISTING,
	RELEASE_SAYING,
	RELEASE_READING_POD,
	RELEASE_READING_POOLS,
	RELEASE_READING_RECORDED,
	RELEASE_WAITING_TURN,
	RELEASE_GIVING_BACK,
};

struct release {
	TAILQ_ENTRY(release) link;
	struct addresses *addresses;
	char *ns, *name, *uid;
	char *pod; /* "namespace/name" of who is asked for */
	void (*done)(void *arg, const struct err *err);
	void *arg;
	enum release_state state;
	bool superseded, is_guess, is_second, had_no_endpoint;
	struct kube_call *call;
	struct endpoints_list *list;
	struct pools_question *question;
	struct timer *again;
	int64_t pause_ms;
	json_t *pools; /* all, shared with other releases */
	size_t next;
};

static void on_answer(void *arg, json_t *object, const struct err *err);
static void on_endpoints(void *arg, json_t *endpoints, bool is_last, const struct err *err);
static void on_pools(void *arg, json_t *pools, const struct err *err);
static void give_back_next(struct release *release);

/* The release that wrote pools has ended. The next one has the turn, also if nothing is left. */
static void pass_turn(struct addresses *addresses)
{
	struct release *release;

	TAILQ_FOREACH(release, &addresses->releases, link)
	if (release->state == RELEASE_WAITING_TURN) {
		release->state = RELEASE_GIVING_BACK;
		give_back_next(release);
		return;
	}
}

static void release_free(struct release *release)
{
	bool had_turn = release->state == RELEASE_GIVING_BACK;
	struct addresses *addresses = release->addresses;

	TAILQ_REMOVE(&release->addresses->releases, release, link);
	kube_call_cancel(release->call);
	endpoints_list_free(release->list);
	pools_cancel(release->question);
	recent_forget(release->addresses, release->uid);
	timer_free(release->again);
	json_decref(release->pools);
	mem_free(release->ns);
	mem_free(release->name);
	mem_free(release->uid);
	mem_free(release->pod);
	mem_free(release);
	if (had_turn)
		pass_turn(addresses);
}

static void call_done(struct release *release, const struct err *err)
{
	void (*done)(void *arg, const struct err *err) = release->done;

	release->done = NULL;
	if (done)
		done(release->arg, err);
}

void release_later(struct addresses *addresses, const char *ns, const char *name, const char *pod,
		   const char *uid)
{
	/* Users may write endpoints with the UID of another pod. */
	auto_free char *key = str_printf("%s %s", uid, pod);

	/* Of those that are left out the leader asks (ENDPOINT_LOST_PREFIX). */
	if (json_object_size(addresses->unseen) >= RELEASES_LATER_MAX)
		return;
	if (json_object_size(addresses->unseen) == 0)
		timer_start(addresses->second_look, addresses->config.second_look_ms);
	json_put(addresses->unseen, key,
		 json_pack("{s:s, s:s, s:s, s:s, s:I}", "uid", uid, "ns", ns, "name", name, "pod",
			   pod, "dueMs",
			   (json_int_t)clock_ms() + addresses->config.second_look_ms));
}

static void finish_release(struct release *release)
{
	struct addresses *addresses = release->addresses;
	auto_free char *uid = str_dup(release->uid);

	assert(!release->call && !release->question);
	if (release->had_no_endpoint && !release->is_second && !release->superseded)
		release_later(addresses, release->ns, release->name, release->pod, release->uid);
	call_done(release, NULL);
	release_free(release);
	addresses->released(addresses, uid);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void send_get(struct release *release, enum release_state state,
		     const struct kube_resource *resource, const char *name)
{
	assert(!release->call && !release->question);
	release->state = state;
	release->call = kube_get_within(release->addresses->config.client, resource, release->ns,
					name, on_answer, release);
}

static void send_list(struct release *release)
{
	release->state = RELEASE_LISTING;
	release->list = endpoints_list_new(release->addresses, release->ns, on_endpoints, release);
}

static void send_pools(struct release *release)
{
	release->state = RELEASE_READING_POOLS;
	release->question = pools_ask(release->addresses, on_pools, release);
}

static void say_down(struct release *release, const json_t *endpoint)
{
	json_auto_t *patch =
		json_pack("{s:{s:s, s:{s:s}}}", "metadata", "resourceVersion",
			  json_str_or(json_at(endpoint, "metadata", "resourceVersion"), ""),
			  "annotations", ENDPOINT_DOWN_ANNOTATION, release->uid);

	/*
	 * A pod that has only asked there has nothing that the leader could release, and the report
	 * about the pod that has is not to be replaced.
	 */
	if (endpoint_is_down(endpoint, release->uid) ||
	    (!str_eq(endpoint_uid(endpoint), release->uid) &&
	     endpoint_is_down(endpoint, endpoint_uid(endpoint)))) {
		finish_release(release);
		return;
	}
	release->state = RELEASE_SAYING;
	release->call =
		kube_patch(release->addresses->config.client, &addresses_endpoint, release->ns,
			   json_name(endpoint), KUBE_PATCH_MERGE, patch,
			   &(struct kube_write){.field_manager = AGENT_NAME}, on_answer, release);
}

/*
 * Is it a record of the pod that has ended? Users may write endpoints with any UID: what such a one
 * has led to is about the pod that was looked for, and that one alone. Records of other nodes are
 * for their agents.
 */
static bool is_of_release(const struct release *release, const json_t *record)
{
	const char *key = json_str_or(json_at(record, "pod"), "");
	const char *node = json_str_or(json_at(record, "node"), "");
	size_t ns = strcspn(release->pod, "/") + 1;

	if (!str_eq(json_str_at(record, "podUid"), release->uid) ||
	    (*node && !str_eq(node, release->addresses->config.node)))
		return false;
	return str_eq(key, release->pod) ||
	       (!release->is_guess && strncmp(key, release->pod, ns) == 0);
}

/* Take the pod's records out of a pool; true when there were any. */
static bool take_out(struct ledger *ledger, const struct release *release)
{
	json_auto_t *own = json_array();
	const char *address;
	json_t *record;
	size_t i;

	json_each (ledger->records, address, record)
		if (is_of_release(release, record))
			json_array_append_new(own, json_string(address));
	json_array_foreach (own, i, record)
		(void)ledger_release(ledger, json_string_value(record), NULL, release->uid, true);
	return json_array_size(own) > 0;
}

/* Is it a record of this UID under another name than the pod's, in its namespace: which? */
static const char *other_name(const struct release *release, const json_t *record)
{
	const char *key = json_str_or(json_at(record, "pod"), "");
	size_t len = strlen(release->ns);

	if (!str_eq(json_str_at(record, "podUid"), release->uid) ||
	    strncmp(key, release->ns, len) != 0 || key[len] != '/' ||
	    str_eq(key + len + 1, release->name))
		return NULL;
	return key + len + 1;
}

/* The first such name in the pools. Returns new; NULL: there is none. */
static char *recorded_name(const struct release *release)
{
	const char *address;
	json_t *pool, *record;
	size_t i;

	json_array_foreach (release->pools, i, pool) {
		const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "");
		json_auto_t *records =
			strstr(text, release->uid) ? json_parse(text, strlen(text), NULL) : NULL;

		json_each (records, address, record)
			if (other_name(release, record))
				return str_dup(other_name(release, record));
	}
	return NULL;
}

static bool has_turn(const struct release *release)
{
	const struct release *other;

	TAILQ_FOREACH(other, &release->addresses->releases, link)
	if (other->state == RELEASE_GIVING_BACK && other != release)
		return false;
	return true;
}

static void give_back_next(struct release *release)
{
	assert(!release->call && release->pools);
	for (; release->next < json_array_size(release->pools); release->next++) {
		const json_t *pool = json_array_get(release->pools, release->next);
		auto_ledger struct ledger ledger = {0};

		if (!strstr(json_str_or(json_at(pool, "status", "allocatedIPs"), ""),
			    release->uid) ||
		    ledger_open(pool, NULL, NULL, &ledger, NULL) < 0 || !take_out(&ledger, release))
			continue;
		if (!has_turn(release)) {
			release->state = RELEASE_WAITING_TURN;
			return;
		}
		ledger.is_unsure = !ledger_is_counted(pool);
		log_info("giving back what no SpiderEndpoint names", F_STR("pool", json_name(pool)),
			 F_STR("uid", release->uid));
		release->state = RELEASE_GIVING_BACK;
		release->call = take_put_ledger(release->addresses, &ledger, on_answer, release);
		return;
	}
	finish_release(release);
}

/* ---- answers --------------------------------------------------------------------------------- */

static json_t *find_endpoint(const json_t *endpoints, const char *uid)
{
	json_t *endpoint;
	size_t i;

	json_array_foreach (endpoints, i, endpoint)
		if (endpoint_is_of(endpoint, uid))
			return endpoint;
	return NULL;
}

static void on_failed(struct release *release, const struct err *err)
{
	bool had_turn = release->state == RELEASE_GIVING_BACK;

	release->state = RELEASE_ASKING_POD;
	if (err->class != ERR_CONFLICT)
		call_done(release, err);
	release->pause_ms = release->pause_ms ? 2 * release->pause_ms : ADDRESSES_RETRY_MS;
	if (release->pause_ms > ADDRESSES_RETRY_MAX_MS)
		release->pause_ms = ADDRESSES_RETRY_MAX_MS;
	timer_start(release->again, err->class == ERR_CONFLICT ? 0 : release->pause_ms);
	if (had_turn)
		pass_turn(release->addresses);
}

static void on_answer(void *arg, json_t *object, const struct err *err)
{
	struct release *release = arg;

	release->call = NULL;
	if (release->superseded) {
		finish_release(release);
		return;
	}
	if (err && !kube_err_is(err, "NotFound")) {
		on_failed(release, err);
		return;
	}
	switch (release->state) {
	case RELEASE_ASKING_POD:
		if (str_eq(json_uid(object), release->uid) && !pod_has_terminated(object))
			finish_release(release);
		else
			send_get(release, RELEASE_READING_NAMED, &addresses_endpoint,
				 release->name);
		break;
	case RELEASE_READING_NAMED:
		if (endpoint_is_of(object, release->uid))
			say_down(release, object);
		else
			send_list(release);
		break;
	case RELEASE_LISTING:
		if (object)
			say_down(release, object);
		else
			send_get(release, RELEASE_READING_POD, &kube_pods, release->name);
		break;
	case RELEASE_SAYING:
		/* The SpiderEndpoint is deleted: the pod is asked for instead. */
		if (err)
			send_get(release, RELEASE_READING_POD, &kube_pods, release->name);
		else
			finish_release(release);
		break;
	case RELEASE_READING_POD:
		if (object && str_eq(json_uid(object), release->uid) && pod_is_alive(object)) {
			finish_release(release);
			break;
		}
		release->had_no_endpoint = true;
		send_pools(release);
		break;
	case RELEASE_READING_RECORDED:
		if (endpoint_is_of(object, release->uid))
			say_down(release, object);
		else
			give_back_next(release);
		break;
	case RELEASE_GIVING_BACK:
		if (object)
			pools_wrote(release->pools, object);
		/* Also past a pool that is gone. */
		release->next++;
		give_back_next(release);
		break;
	case RELEASE_READING_POOLS:
	case RELEASE_WAITING_TURN:
		assert(false);
	}
}

static void on_endpoints(void *arg, json_t *endpoints, bool is_last, const struct err *err)
{
	struct release *release = arg;
	json_auto_t *found = json_incref(find_endpoint(endpoints, release->uid));

	if (!release->superseded && !err && !found && !is_last) {
		endpoints_list_next(release->list);
		return;
	}
	endpoints_list_free(take_ptr(release->list));
	on_answer(release, found, err);
}

static void on_pools(void *arg, json_t *pools, const struct err *err)
{
	struct release *release = arg;
	auto_free char *recorded = NULL;

	release->question = NULL;
	if (err) {
		on_failed(release, err);
		return;
	}
	json_replace(&release->pools, json_incref(pools));
	release->next = 0;
	recorded = recorded_name(release);
	if (recorded)
		send_get(release, RELEASE_READING_RECORDED, &addresses_endpoint, recorded);
	else
		give_back_next(release);
}

static void begin_release(void *arg)
{
	struct release *release = arg;
	size_t len = strcspn(release->pod, "/");
	auto_free char *ns = str_ndup(release->pod, len);

	if (!release->is_guess) {
		send_get(release, RELEASE_READING_NAMED, &addresses_endpoint, release->name);
		return;
	}
	release->state = RELEASE_ASKING_POD;
	release->call = kube_get_within(release->addresses->config.client, &kube_pods, ns,
					release->pod + len + (release->pod[len] == '/'), on_answer,
					release);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct release *release_new(struct addresses *addresses, const char *ns, const char *name,
				   const char *uid)
{
	struct release *release = mem_new(struct release);

	assert(ns && name && !str_empty(uid));
	release->addresses = addresses;
	release->ns = str_dup(ns);
	release->name = str_dup(name);
	release->uid = str_dup(uid);
	release->pod = str_printf("%s/%s", ns, name);
	release->again = timer_new(addresses->config.loop, begin_release, release);
	TAILQ_INSERT_TAIL(&addresses->releases, release, link);
	recent_forget(addresses, uid);
	return release;
}

void addresses_release(struct addresses *addresses, const char *ns, const char *name,
		       const char *uid, void (*done)(void *arg, const struct err *err), void *arg)
{
	struct release *release = release_new(addresses, ns, name, uid);

	release->done = done;
	release->arg = arg;
	begin_release(release);
}

void release_if_gone(struct addresses *addresses, const json_t *endpoint)
{
	struct release *release = release_new(addresses, json_namespace(endpoint),
					      json_name(endpoint), endpoint_uid(endpoint));

	release->is_guess = true;
	str_replace(&release->pod, endpoint_pod_key(endpoint, addresses->config.ns));
	begin_release(release);
}

void release_look_again(void *arg)
{
	struct addresses *addresses = arg;
	json_auto_t *waiting = addresses->unseen;
	int64_t now = clock_ms(), next = INT64_MAX;
	const char *key;
	json_t *pod;

	addresses->unseen = json_object();
	json_each (waiting, key, pod) {
		const char *uid = json_str_at(pod, "uid");
		int64_t due = json_integer_value(json_at(pod, "dueMs"));
		struct release *release;

		/* Of the sandbox that holds it a DEL comes, or nothing. */
		if (due <= now && addresses->config.holds &&
		    addresses->config.holds(addresses->config.arg, uid)) {
			due = now + addresses->config.second_look_ms;
			json_put_int(pod, "dueMs", due);
		}
		if (due > now) {
			json_object_set(addresses->unseen, key, pod);
			next = due < next ? due : next;
			continue;
		}
		release = release_new(addresses, json_str_at(pod, "ns"), json_str_at(pod, "name"),
				      uid);
		str_replace(&release->pod, str_dup(json_str_at(pod, "pod")));
		release->is_guess = release->is_second = true;
		begin_release(release);
	}
	if (next != INT64_MAX)
		timer_start(addresses->second_look, next - now);
}

bool release_is_superseded(struct addresses *addresses, const char *uid)
{
	struct release *release, *next;
	bool is_under_way = false;

	for (release = TAILQ_FIRST(&addresses->releases); release; release = next) {
		next = TAILQ_NEXT(release, link);
		if (!str_eq(release->uid, uid))
			continue;
		release->superseded = true;
		is_under_way |= release->call || release->list;
		if (!release->call && !release->list) {
			call_done(release, NULL);
			release_free(release);
		}
	}
	return is_under_way;
}

bool release_is_pending(const struct addresses *addresses, const char *uid, const char *pod)
{
	const struct release *release = TAILQ_FIRST(&addresses->releases);

	while (release && !(str_eq(release->uid, uid) && str_eq(release->pod, pod)))
		release = TAILQ_NEXT(release, link);
	return release != NULL;
}

size_t release_count(const struct addresses *addresses)
{
	const struct release *release;
	size_t n = 0;

	TAILQ_FOREACH(release, &addresses->releases, link)
	n++;
	return n;
}

void release_free_all(struct addresses *addresses)
{
	struct release *release;

	/* No turn is passed on. */
	TAILQ_FOREACH(release, &addresses->releases, link)
	release->state = RELEASE_ASKING_POD;
	while (!TAILQ_EMPTY(&addresses->releases))
		release_free(TAILQ_FIRST(&addresses->releases));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * ipam_replay: the recorded cases of addresses (conformance/ipam.json) on a real API server. The
 * operator decides, the agents' own code (nodeagent/addresses) asks and gives back for two nodes;
 * this program is scheduler, kubelet and the users.
 *
 * With --kill the operator belongs to this program and is killed with SIGKILL after a random number
 * of its writes, again and again, by what the API server's audit log says of them. The end has to
 * be the same.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/addresses/addresses.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate.h"
#include "reconcilers/ipam/endpoint.h"
#include "tests/support/conformance.h"
#include "tests/support/connection.h"
#include "tests/support/ipam_recording.h"

#define DIFFERENCES "ipam-differences.txt"
#define CONFIG_NS   "spiderpool"
#define OPERATOR    "system:serviceaccount:orbweaver-system:orbweaver-operator"
#define N_NODES     2
#define KILL_AFTER  6
#define PATIENCE_MS 10000
#define SETTLE_MS   150
#define HELD        "tests.orbweaver.io/held"

static const char help[] =
	"usage: ipam_replay [OPTION...] [-- OPERATOR ARG...]\n"
	"\n"
	"  --kubeconfig FILE        the administrator's\n"
	"  --agent-kubeconfig FILE  with an agent's rights\n"
	"  --case ID                this one alone, also of those that are left out\n"
	"  --every N                one of N cases, which one follows from the seed (1)\n"
	"  --kill AUDIT_LOG         start OPERATOR and kill it between its writes\n"
	"  --seed N                 (1)\n";

static const struct kube_resource kinds[] = {
	{"", "v1", "pods", "Pod", true},
	{"", "v1", "nodes", "Node", false},
	{"", "v1", "namespaces", "Namespace", false},
	{"", "v1", "configmaps", "ConfigMap", true},
	{"apps", "v1", "statefulsets", "StatefulSet", true},
	{"kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", true},
	{"spiderpool.spidernet.io", "v2beta1", "spiderippools", "SpiderIPPool", false},
	{"spiderpool.spidernet.io", "v2beta1", "spiderreservedips", "SpiderReservedIP", false},
	{"spiderpool.spidernet.io", "v2beta1", "spiderendpoints", "SpiderEndpoint", true},
};
static const char *const namespaces[] = {"ns1", "ns2", "spiderpool"};
static const char *const nodes[N_NODES] = {"n1", "n2"};

/* An operator of ours. */
struct victim {
	char **command;
	const char *audit;
	uint64_t random;
	pid_t pid;
	int fd; /* of the audit log; -1: nobody is killed */
	struct strbuf line;
	int writes_left; /* until it dies */
	size_t killed;
};

struct replay {
	struct connection connection;
	struct kube_config agent_config;
	struct kube_client *agent_client;
	struct addresses *agents[N_NODES];
	struct timer *tick;
	struct victim victim;
	const json_t *recorded; /* the case */
	bool may_differ;        /* it is listed, so that is what is looked for */
	int64_t patience_ms;    /* for what has to come */
	json_t *pods;           /* by key: {"uid", "node"} of the latest */
	json_t *uids;           /* "{uid:ns/pod#1}": the real one */
	json_t *refused;        /* "{uid:ns/pod#1}" of pods whose call had no addresses: true */
	json_t *attached;       /* by attached_key(): {"uid", "ns", "name", "node"} */
	char *config;           /* as it is in the ConfigMap */
	/* What a case has left behind. */
	bool has_made[ARRAY_LEN(kinds)], has_marked_namespaces, has_marked_nodes;
};

/* ---- the operator that dies ------------------------------------------------------------------ */

/* xorshift64*: the same everywhere for the same seed. */
static uint64_t next_random(struct victim *v)
{
	v->random ^= v->random >> 12;
	v->random ^= v->random << 25;
	v->random ^= v->random >> 27;
	return v->random * UINT64_C(0x2545f4914f6cdd1d) >> 33;
}

static void victim_start(struct victim *v)
{
	v->writes_left = 1 + (int)(next_random(v) % KILL_AFTER);
	v->pid = fork();
	if (v->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(v->command[0], v->command);
		_exit(127);
	}
}

static void victim_end(struct victim *v)
{
	if (v->pid <= 0)
		return;
	(void)kill(v->pid, SIGKILL);
	(void)waitpid(v->pid, NULL, 0);
	v->pid = 0;
}

static bool is_write_of_operator(const char *line)
{
	json_auto_t *entry = json_parse(line, strlen(line), NULL);
	const char *verb = json_str_or(json_at(entry, "verb"), "");

	return str_eq(json_str_at(entry, "user", "username"), OPERATOR) &&
	       str_eq(json_str_at(entry, "objectRef", "apiGroup"), "spiderpool.spidernet.io") &&
	       (str_eq(verb, "create") || str_eq(verb, "update") || str_eq(verb, "patch") ||
		str_eq(verb, "delete"));
}

static void victim_look(struct victim *v)
{
	char bytes[65536];
	ssize_t n = v->fd < 0 ? 0 : read(v->fd, bytes, sizeof(bytes));
	char *end;

	if (n <= 0)
		return;
	strbuf_add(&v->line, bytes, (size_t)n);
	while ((end = strchr(v->line.data, '\n'))) {
		*end = '\0';
		if (is_write_of_operator(v->line.data) && --v->writes_left == 0) {
			victim_end(v);
			v->killed++;
			victim_start(v);
		}
		strbuf_consume(&v->line, (size_t)(end - v->line.data) + 1);
	}
}

/* ---- calls, one after the other -------------------------------------------------------------- */

static void on_tick(void *arg)
{
}

static void turn(struct replay *r)
{
	timer_start(r->tick, 2);
	loop_turn(r->connection.loop, true);
	victim_look(&r->victim);
}

static void pass(struct replay *r, int64_t ms)
{
	int64_t end = clock_ms() + ms;

	while (clock_ms() < end)
		turn(r);
}

struct answer {
	bool is_there;
	json_t *object;
	struct err err;
};

static void on_answer(void *arg, json_t *object, const struct err *err)
{
	struct answer *answer = arg;

	answer->is_there = true;
	answer->object = json_incref(object);
	if (err)
		answer->err = *err;
}

/* Returns new; NULL when there is no such object. Any other failure ends the program. */
static json_t *wait_for(struct replay *r, struct answer *answer, const char *what)
{
	while (!answer->is_there)
		turn(r);
	if (answer->err.class != ERR_NONE && !kube_err_is(&answer->err, "NotFound")) {
		fprintf(stderr, "ipam_replay: %s: %s: %s\n",
			json_str_or(json_at(r->recorded, "id"), ""), what, answer->err.text);
		exit(2);
	}
	return answer->object;
}

/* NULL: a kind that the operator does not read. */
static const struct kube_resource *find_kind(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, kind))
			return &kinds[i];
	return NULL;
}

static json_t *do_list(struct replay *r, const char *kind)
{
	struct answer answer = {0};

	(void)kube_list(r->connection.client, find_kind(kind), NULL, NULL, on_answer, &answer);
	return wait_for(r, &answer, kind);
}

static json_t *do_patch(struct replay *r, const char *kind, const char *key, const json_t *patch,
			const char *subresource)
{
	const struct kube_resource *resource = find_kind(kind);
	const char *slash = strchr(key, '/');
	auto_free char *ns = slash ? str_ndup(key, (size_t)(slash - key)) : NULL;
	struct answer answer = {0};

	(void)kube_patch(r->connection.client, resource, ns, slash ? slash + 1 : key,
			 KUBE_PATCH_MERGE, patch, &(struct kube_write){.subresource = subresource},
			 on_answer, &answer);
	return wait_for(r, &answer, key);
}

static void on_deleted(void *arg, const struct kube_response *response, const struct err *err)
{
	on_answer(arg, NULL, err);
}

/* Without grace, pods are gone at once, also those that have begun to go. */
static void do_delete(struct replay *r, const struct kube_resource *resource, const json_t *object,
		      json_int_t grace_s)
{
	auto_free char *query = str_printf("gracePeriodSeconds=%" JSON_INTEGER_FORMAT, grace_s);
	auto_free char *path =
		kube_path(resource, json_namespace(object), json_name(object), NULL, query);
	struct answer answer = {0};

	(void)kube_call(r->connection.client, &(struct kube_request){
						      .verb = "delete",
						      .method = "DELETE",
						      .path = path,
						      .done = on_deleted,
						      .arg = &answer,
					      });
	(void)wait_for(r, &answer, path);
}

/* ---- UIDs ------------------------------------------------------------------------------------ */

static void note_pod(struct replay *r, const json_t *pod)
{
	auto_free char *key = json_key(pod), *name = NULL;
	const json_t *before = json_object_get(r->pods, key);
	json_int_t n = json_integer_value(json_at(before, "number")) + 1;

	name = str_printf("{uid:%s#%" JSON_INTEGER_FORMAT "}", key, n);
	json_put_str(r->uids, name, json_uid(pod));
	json_put(r->pods, key,
		 json_pack("{s:s, s:s, s:I}", "uid", json_uid(pod), "node",
			   json_str_or(json_at(pod, "spec", "nodeName"), ""), "number", n));
}

/*
 * "{uid:ns/pod}" is the UID of the latest pod of that name. Borrowed; what is recorded otherwise is
 * as it stands.
 */
static const char *uid_of(const struct replay *r, const char *key, const char *recorded)
{
	const char *real = json_string_value(json_object_get(r->uids, recorded));

	if (real || !str_starts(recorded, "{uid:"))
		return real ? real : recorded;
	return json_str_or(json_at(json_object_get(r->pods, key), "uid"), "");
}

/* A text in which real UIDs are as they are recorded. Returns new. */
static json_t *as_recorded(const struct replay *r, const json_t *value)
{
	auto_free char *text = json_text(value);
	const char *name;
	json_t *uid;

	json_each (r->uids, name, uid) {
		auto_strbuf struct strbuf out = {0};
		const char *from = text, *at, *real = json_string_value(uid);

		while ((at = strstr(from, real))) {
			strbuf_add(&out, from, (size_t)(at - from));
			strbuf_adds(&out, name);
			from = at + strlen(real);
		}
		strbuf_adds(&out, from);
		mem_free(text);
		text = strbuf_take(&out);
	}
	return json_parse(text, strlen(text), NULL);
}

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * What the API server asks for beyond what was recorded. Nobody took finalizers of pools away
 * there; our operator does, so such a pool has one more that is not ours.
 */
static void complete(json_t *object)
{
	json_t *owner, *finalizers = json_at(object, "metadata", "finalizers");
	size_t i;

	if (finalizers)
		json_array_append_new(finalizers, json_string(HELD));
	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		if (!json_at(owner, "uid"))
			json_put(owner, "uid",
				 json_fmt("uid-of-%s", json_str_or(json_at(owner, "name"), "")));
	if (str_eq(json_str_at(object, "kind"), "Pod")) {
		json_t *spec = json_need_object(object, "spec");

		json_put_bool(spec, "automountServiceAccountToken", false);
	} else if (str_eq(json_str_at(object, "kind"), "StatefulSet")) {
		json_t *spec = json_need_object(object, "spec");

		json_put(spec, "selector", json_pack("{s:{s:s}}", "matchLabels", "a", "b"));
		json_put(spec, "template",
			 json_pack("{s:{s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "labels", "a",
				   "b", "spec", "containers", "name", "c", "image", "i"));
	}
}

static void do_create(struct replay *r, const json_t *recorded)
{
	const struct kube_resource *resource = find_kind(json_str_at(recorded, "kind"));
	json_auto_t *object = resource ? ipam_recording_object(recorded) : NULL;
	const json_t *status = json_at(recorded, "status");
	json_auto_t *made = NULL, *written = NULL;
	struct answer answer = {0};
	auto_free char *key = NULL;

	if (!resource)
		return;
	r->has_made[resource - kinds] = true;
	complete(object);
	key = json_key(object);
	(void)kube_create(r->connection.client, resource, object, &(struct kube_write){0},
			  on_answer, &answer);
	made = wait_for(r, &answer, key);
	if (str_eq(resource->kind, "Pod"))
		note_pod(r, made);
	if (status && !str_eq(resource->group, "kubevirt.io")) {
		json_auto_t *patch = json_pack("{s:O}", "status", status);

		written = do_patch(r, resource->kind, key, patch, "status");
	}
}

static void delete_recorded(struct replay *r, const json_t *step)
{
	const struct kube_resource *resource = find_kind(json_str_at(step, "kind"));
	const char *key = json_str_or(json_at(step, "key"), ""), *slash = strchr(key, '/');
	json_auto_t *object = json_pack("{s:{s:s}}", "metadata", "name", slash ? slash + 1 : key);

	if (!resource)
		return;
	if (slash)
		json_put(json_at(object, "metadata"), "namespace",
			 json_fmt("%.*s", (int)(slash - key), key));
	do_delete(r, resource, object, json_integer_value(json_at(step, "grace")));
}

/* Take away all of a kind, whatever holds it. */
static void clear(struct replay *r, const char *kind)
{
	const struct kube_resource *resource = find_kind(kind);
	json_auto_t *patch = json_pack("{s:{s:[]}}", "metadata", "finalizers");
	json_t *object;
	size_t i, left;

	do {
		json_auto_t *list = do_list(r, kind);

		left = json_array_size(json_at(list, "items"));
		json_array_foreach (json_at(list, "items"), i, object) {
			auto_free char *key = json_key(object);
			json_auto_t *answer = NULL;

			do_delete(r, resource, object, 0);
			if (json_at(object, "metadata", "finalizers"))
				answer = do_patch(r, kind, key, patch, NULL);
		}
	} while (left > 0);
}

/* ---- CNI calls ------------------------------------------------------------------------------- */

struct call {
	const json_t *step;
	char *ns, *name, *key, *container;
	char *uid, *node;
	struct addresses_want *want;
	bool is_done;
	json_t *status;
	char reason[64]; /* "": there is an answer */
};

static void call_begin(struct replay *r, const json_t *step, struct call *call)
{
	auto_free char *uid = ipam_recording_argument(step, "K8S_POD_UID");
	char *ns = ipam_recording_argument(step, "K8S_POD_NAMESPACE");
	char *name = ipam_recording_argument(step, "K8S_POD_NAME");

	*call = (struct call){.step = step};
	call->ns = ns ? ns : str_dup("");
	call->name = name ? name : str_dup("");
	call->key = str_printf("%s/%s", call->ns, call->name);
	call->container = str_dup(json_str_or(json_at(step, "env", "CNI_CONTAINERID"), ""));
	/* Old runtimes say none: the pod's counts then. */
	call->uid = str_dup(
		str_empty(uid)
			? json_str_or(json_at(json_object_get(r->pods, call->key), "uid"), "")
			: uid_of(r, call->key, uid));
	call->node = str_dup(json_str_or(json_at(json_object_get(r->pods, call->key), "node"), ""));
}

static void call_done(struct call *call)
{
	addresses_want_cancel(call->want);
	json_decref(call->status);
	mem_free(call->ns);
	mem_free(call->name);
	mem_free(call->key);
	mem_free(call->container);
	mem_free(call->uid);
	mem_free(call->node);
}

static struct addresses *agent_of(const struct replay *r, const char *node)
{
	return r->agents[str_eq(node, nodes[1])];
}

/* "PoolExhausted: …": the leader's own reason is the first word of what it says. */
static void note_reason(struct call *call, const char *text)
{
	(void)snprintf(call->reason, sizeof(call->reason), "%.*s", (int)strcspn(text, ": "), text);
}

static void on_got(void *arg, const json_t *status, const struct err *err)
{
	struct call *call = arg;

	call->want = NULL;
	call->is_done = true;
	call->status = json_incref((json_t *)status);
	if (err)
		note_reason(call,
			    str_eq(err->reason, "AddressesPending") ? err->text : err->reason);
}

static void add_begin(struct replay *r, struct call *call)
{
	json_auto_t *asks = json_pack("[o]", ipam_recording_ask(call->step));

	call->want = addresses_want(agent_of(r, call->node),
				    &(struct addresses_request){
					    .ns = call->ns,
					    .name = call->name,
					    .uid = call->uid,
					    .asks = asks,
					    .deadline_ms = clock_ms() + r->patience_ms,
				    },
				    on_got, call);
}

/*
 * The runtime need not wait until the call's time is over: nobody helps a pod that was refused as
 * it was recorded.
 */
static void look_for_refusal(struct replay *r, struct call *call)
{
	const char *class = json_str_at(call->step, "error", "class");
	json_auto_t *list = class ? do_list(r, "SpiderEndpoint") : NULL;
	size_t len = strlen(call->uid), i;
	json_t *endpoint;

	json_array_foreach (json_at(list, "items"), i, endpoint) {
		const char *text = json_str_or(
			json_at(endpoint, "metadata", "annotations", ENDPOINT_REFUSED_ANNOTATION),
			"");

		if (call->is_done || !*call->uid || strncmp(text, call->uid, len) != 0)
			continue;
		note_reason(call, text + len + 1);
		if (!ipam_recording_is_class(class, call->reason)) {
			call->reason[0] = '\0';
			continue;
		}
		addresses_want_cancel(call->want);
		call->want = NULL;
		call->is_done = true;
	}
}

/* Pods of one name have containers of one name in the recording. Returns new; free(). */
static char *attached_key(const struct call *call)
{
	return str_printf("%s of %s", call->container, call->uid);
}

static void note_refused(struct replay *r, const char *real)
{
	const char *name;
	json_t *uid;

	json_each (r->uids, name, uid)
		if (str_eq(json_string_value(uid), real))
			json_put_bool(r->refused, name, true);
}

static void add_end(struct replay *r, struct call *call)
{
	auto_free char *key = attached_key(call);

	while (!call->is_done) {
		pass(r, 50);
		if (!call->is_done)
			look_for_refusal(r, call);
	}
	if (!call->status)
		note_refused(r, call->uid);
	if (call->status)
		json_put(r->attached, key,
			 json_pack("{s:s, s:s, s:s, s:s}", "uid", call->uid, "ns", call->ns, "name",
				   call->name, "node", call->node));
}

static void compare_result(const struct call *call, struct strbuf *out)
{
	json_auto_t *result = NULL;

	if (call->status)
		result = ipam_cni_result(call->status, json_str_at(call->step, "env", "CNI_IFNAME"),
					 json_str_at(call->step, "stdin", "cniVersion"));
	ipam_recording_compare_result(out, call->step, result, *call->reason ? call->reason : NULL);
}

static void on_released(void *arg, const struct err *err)
{
	*(bool *)arg = true;
}

static void release(struct replay *r, const char *node, const char *ns, const char *name,
		    const char *uid)
{
	bool is_done = false;

	addresses_release(agent_of(r, node), ns, name, uid, on_released, &is_done);
	while (!is_done)
		turn(r);
}

static void del(struct replay *r, const struct call *call)
{
	auto_free char *key = attached_key(call);

	json_object_del(r->attached, key);
	if (*call->uid)
		release(r, call->node, call->ns, call->name, call->uid);
}

static bool is_attached(void *arg, const char *uid)
{
	const struct replay *r = arg;
	const char *key;
	json_t *attached;

	json_each (r->attached, key, attached)
		if (str_eq(json_str_at(attached, "uid"), uid))
			return true;
	return false;
}

/*
 * What a collector of their controller frees, the node's own clean-up frees with us: sandboxes of
 * pods that are gone are taken down.
 */
static void take_down_what_is_gone(struct replay *r)
{
	json_auto_t *list = do_list(r, "Pod"), *attached = json_copy(r->attached);
	const char *key;
	json_t *one, *pod;
	size_t i;

	json_each (attached, key, one) {
		bool is_there = false;

		json_array_foreach (json_at(list, "items"), i, pod)
			is_there |= str_eq(json_uid(pod), json_str_at(one, "uid"));
		if (is_there)
			continue;
		json_object_del(r->attached, key);
		release(r, json_str_or(json_at(one, "node"), ""), json_str_at(one, "ns"),
			json_str_at(one, "name"), json_str_at(one, "uid"));
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static json_t *by_key(struct replay *r, const char *kind)
{
	json_auto_t *list = do_list(r, kind), *plain = as_recorded(r, list);
	json_t *objects = json_object(), *object;
	size_t i;

	json_array_foreach (json_at(plain, "items"), i, object) {
		auto_free char *key = json_key(object);

		json_put(objects, key, json_incref(object));
	}
	return objects;
}

static json_int_t count_records(const json_t *pools)
{
	json_int_t n = 0;
	const char *key;
	json_t *pool;

	json_each (pools, key, pool)
		n += json_integer_value(json_at(pool, "status", "allocatedIPCount"));
	return n;
}

/*
 * Where chance decided, only the number of records is compared: nobody of ours runs out of
 * attempts.
 */
static void compare_count(struct strbuf *out, const json_t *after, const json_t *pools)
{
	json_int_t recorded = 0, ours = count_records(pools);
	const char *key;
	json_t *pool;

	json_each (json_at(after, "pools"), key, pool)
		recorded += (json_int_t)json_object_size(json_at(pool, "allocatedIPs"));
	if (ours < recorded)
		strbuf_addf(out,
			    "%" JSON_INTEGER_FORMAT " records, recorded %" JSON_INTEGER_FORMAT "\n",
			    ours, recorded);
}

/*
 * What was recorded, without records that ours no longer have and whose pods never were on the API
 * server: nobody collected while it was recorded; our operator gives such records back whenever it
 * comes to look at the pool. Returns new.
 */
static json_t *without_strays(const struct replay *r, const json_t *after, const json_t *pools)
{
	json_t *copy = json_deep_copy(after), *pool, *record;
	const char *key, *address;
	void *next;

	json_each (json_at(copy, "pools"), key, pool) {
		const char *text = json_str_or(
			json_at(json_object_get(pools, key), "status", "allocatedIPs"), "");
		json_auto_t *ours = json_parse(text, strlen(text), NULL);
		json_t *theirs = json_at(pool, "allocatedIPs");

		json_object_foreach_safe(
			theirs, next, address,
			record) if (!json_object_get(ours, address) &&
				    !json_object_get(r->uids,
						     json_str_or(json_at(record, "podUid"), "")))
			json_object_del(theirs, address);
	}
	return copy;
}

/*
 * A pod that was refused waits on with us: it has an address as soon as one is free, which may be
 * in the same moment. Takes such records out of our pools where none was recorded.
 */
static void leave_out_who_waits(const struct replay *r, const json_t *after, json_t *pools)
{
	const char *key, *address;
	json_t *pool, *record;
	void *next;

	json_each (json_at(after, "pools"), key, pool) {
		json_t *status = json_at(json_object_get(pools, key), "status");
		const char *text = json_str_or(json_at(status, "allocatedIPs"), "");
		json_auto_t *ours = json_parse(text, strlen(text), NULL);
		size_t before = json_object_size(ours);
		auto_free char *left = NULL;

		json_object_foreach_safe(
			ours, next, address,
			record) if (!json_at(pool, "allocatedIPs", address) &&
				    json_object_get(r->refused,
						    json_str_or(json_at(record, "podUid"), "")))
			json_object_del(ours, address);
		if (json_object_size(ours) == before)
			continue;
		left = json_object_size(ours) > 0 ? json_text(ours) : NULL;
		(void)json_object_del(status, "allocatedIPs");
		json_put_str(status, "allocatedIPs", left);
	}
}

/* Until all is as recorded, or it does not come. */
static void compare_after(struct replay *r, const json_t *after, struct strbuf *out)
{
	int64_t end = clock_ms() + r->patience_ms;

	for (;;) {
		json_auto_t *pools = by_key(r, "SpiderIPPool");
		json_auto_t *endpoints = by_key(r, "SpiderEndpoint");
		json_auto_t *pods = by_key(r, "Pod");
		json_auto_t *recorded = without_strays(r, after, pools);
		auto_strbuf struct strbuf differences = {0};

		if (!r->may_differ)
			leave_out_who_waits(r, after, pools);
		if (json_at(r->recorded, "random"))
			compare_count(&differences, recorded, pools);
		else
			ipam_recording_compare_after(&differences, recorded, pools, endpoints,
						     pods);
		if (differences.len == 0)
			return;
		if (clock_ms() >= end) {
			strbuf_adds(out, strbuf_str(&differences));
			return;
		}
		pass(r, 50);
	}
}

static void cni(struct replay *r, const json_t *step, struct strbuf *out)
{
	const char *command = json_str_or(json_at(step, "env", "CNI_COMMAND"), "");
	struct call call;

	call_begin(r, step, &call);
	if (str_eq(command, "ADD")) {
		add_begin(r, &call);
		add_end(r, &call);
		if (!json_at(r->recorded, "random"))
			compare_result(&call, out);
	} else if (str_eq(command, "DEL")) {
		del(r, &call);
	}
	call_done(&call);
}

static void parallel(struct replay *r, const json_t *step, struct strbuf *out)
{
	const json_t *steps = json_at(step, "calls");
	size_t n = json_array_size(steps), i;
	auto_free struct call *calls = mem_calloc(n + 1, sizeof(*calls));

	for (i = 0; i < n; i++) {
		call_begin(r, json_array_get(steps, i), &calls[i]);
		add_begin(r, &calls[i]);
	}
	for (i = 0; i < n; i++)
		add_end(r, &calls[i]);
	for (i = 0; i < n; i++) {
		if (*calls[i].reason)
			strbuf_addf(out, "%s: %s\n", calls[i].key, calls[i].reason);
		call_done(&calls[i]);
	}
}

static void take_step(struct replay *r, const json_t *step, struct strbuf *out)
{
	const char *op = json_str_or(json_at(step, "op"), "");

	if (str_eq(op, "create")) {
		do_create(r, json_at(step, "object"));
	} else if (str_eq(op, "delete")) {
		delete_recorded(r, step);
	} else if (str_eq(op, "patch")) {
		json_auto_t *answer =
			do_patch(r, json_str_at(step, "kind"), json_str_at(step, "key"),
				 json_at(step, "patch"), json_str_at(step, "subresource"));
	} else if (str_eq(op, "controller")) {
		take_down_what_is_gone(r);
	} else if (str_eq(op, "cni")) {
		cni(r, step, out);
	} else if (str_eq(op, "parallel")) {
		parallel(r, step, out);
	}
	if (json_at(step, "after"))
		compare_after(r, json_at(step, "after"), out);
	else if (!str_eq(json_str_at(step, "object", "kind"), "Pod"))
		pass(r, SETTLE_MS);
}

/* ---- a case ---------------------------------------------------------------------------------- */

static void write_config(struct replay *r)
{
	static const char *const switches[] = {"enableIPv4", "enableIPv6", "enableStatefulSet",
					       "enableKubevirtStaticIP"};
	const json_t *config = json_at(r->recorded, "config");
	auto_strbuf struct strbuf text = {0};
	json_auto_t *patch = json_pack("{s:{}}", "data"), *answer = NULL;

	for (size_t i = 0; i < ARRAY_LEN(switches); i++)
		strbuf_addf(&text, "%s: %s\n", switches[i],
			    json_is_false(json_object_get(config, switches[i])) ? "false" : "true");
	json_put_str(json_at(patch, "data"), "conf.yml", strbuf_str(&text));
	json_put_str(json_at(patch, "data"), "clusterNetwork",
		     json_str_or(json_object_get(config, "MULTUS_CLUSTER_NETWORK"),
				 "spiderpool/macvlan-eth0"));
	strbuf_adds(&text, json_str_at(patch, "data", "clusterNetwork"));
	if (str_eq(r->config, strbuf_str(&text)))
		return;
	mem_free(r->config);
	r->config = strbuf_take(&text);
	answer = do_patch(r, "ConfigMap", CONFIG_NS "/spiderpool-conf", patch, NULL);
}

/* Namespaces cannot go without a controller: they lose what a case before put on them. */
static void write_namespace(struct replay *r, const char *name)
{
	static const char *const members[] = {"labels", "annotations"};
	json_auto_t *list = do_list(r, "Namespace"), *answer = NULL;
	const json_t *present = NULL, *recorded = json_at(r->recorded, "state", "namespaces", name);
	json_auto_t *patch = json_pack("{s:{}}", "metadata");
	const char *key;
	json_t *object, *value;
	size_t i;

	json_array_foreach (json_at(list, "items"), i, object)
		if (str_eq(json_name(object), name))
			present = object;
	for (i = 0; i < ARRAY_LEN(members); i++) {
		json_t *pairs = json_need_object(json_at(patch, "metadata"), members[i]);

		json_each (json_at(present, "metadata", members[i]), key, value)
			json_object_set_new(pairs, key, json_null());
		json_each (json_at(recorded, members[i]), key, value)
			json_put(pairs, key, json_incref(value));
	}
	answer = do_patch(r, "Namespace", name, patch, NULL);
}

static void write_node(struct replay *r, const char *name)
{
	json_auto_t *node = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Node",
				      "metadata", "name", name);
	const json_t *recorded = json_at(r->recorded, "state", "nodes", name);

	if (recorded)
		json_object_update(json_at(node, "metadata"), (json_t *)recorded);
	do_create(r, node);
}

/* Does the case say something about them, or change it? */
static bool is_about_nodes(const json_t *recorded)
{
	json_t *step;
	size_t i;

	json_array_foreach (json_at(recorded, "steps"), i, step)
		if (str_eq(json_str_at(step, "kind"), "Node"))
			return true;
	return json_object_size(json_at(recorded, "state", "nodes")) > 0;
}

static void set_up(struct replay *r)
{
	bool marks_namespaces = json_object_size(json_at(r->recorded, "state", "namespaces")) > 0;
	bool marks_nodes = is_about_nodes(r->recorded);
	json_t *object;
	size_t i;

	write_config(r);
	for (i = 0; i < ARRAY_LEN(namespaces) && (marks_namespaces || r->has_marked_namespaces);
	     i++)
		write_namespace(r, namespaces[i]);
	if (marks_nodes || r->has_marked_nodes) {
		clear(r, "Node");
		for (i = 0; i < N_NODES; i++)
			write_node(r, nodes[i]);
	}
	r->has_marked_namespaces = marks_namespaces;
	r->has_marked_nodes = marks_nodes;
	json_array_foreach (json_at(r->recorded, "state", "objects"), i, object)
		do_create(r, object);
	pass(r, SETTLE_MS);
}

static void clean_up(struct replay *r)
{
	static const char *const left[] = {"Pod",          "SpiderEndpoint",
					   "StatefulSet",  "VirtualMachineInstance",
					   "SpiderIPPool", "SpiderReservedIP"};

	json_object_clear(r->attached);
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		size_t kind = (size_t)(find_kind(left[i]) - kinds);

		if (r->has_made[kind] || str_eq(left[i], "SpiderEndpoint"))
			clear(r, left[i]);
		r->has_made[kind] = false;
	}
	json_object_clear(r->pods);
	json_object_clear(r->uids);
	json_object_clear(r->refused);
}

/*
 * What differs from the recording; "": nothing. Of a case that may differ the first is enough.
 * Returns new.
 */
static char *replay_case(struct replay *r, const json_t *recorded, bool may_differ)
{
	auto_strbuf struct strbuf out = {0};
	json_t *step;
	size_t i;

	r->recorded = recorded;
	r->may_differ = may_differ;
	/* What differs on purpose does not come. */
	r->patience_ms = may_differ ? PATIENCE_MS / 10 : PATIENCE_MS;
	if (r->victim.fd >= 0)
		r->patience_ms *= 4;
	set_up(r);
	json_array_foreach (json_at(recorded, "steps"), i, step) {
		size_t before = out.len;

		if (may_differ && before > 0)
			break;
		take_step(r, step, &out);
		if (out.len > before)
			strbuf_addf(&out, "  at step %zu\n", i);
	}
	clean_up(r);
	return strbuf_take(&out);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* There nothing ever comes back. Here it does, and whoever looks early sees no difference. */
static bool is_without_gc(const json_t *recorded)
{
	json_t *step;
	size_t i;

	json_array_foreach (json_at(recorded, "steps"), i, step)
		if (str_eq(json_str_at(step, "env", "SPIDERPOOL_GC_IP_ENABLED"), "false"))
			return true;
	return false;
}

/*
 * Not replayed: what the plugin itself does, what needs a link with somebody at its other end, and
 * kinds that we leave alone.
 */
static bool is_replayed(const json_t *recorded, const json_t *differences)
{
	static const char *const not_here[] = {"plugin", "detection", "subnet", NULL};

	return (!ipam_recording_is_about(recorded, not_here) && !is_without_gc(recorded)) ||
	       !json_at(differences, json_str_at(recorded, "id"));
}

static int replay_all(struct replay *r, const char *only, int64_t every, int64_t seed)
{
	struct err err = {0};
	json_auto_t *cases = conformance_read("ipam.json", &err);
	json_auto_t *differences = conformance_differences(DIFFERENCES, &err);
	size_t i, replayed = 0, different = 0;
	json_t *recorded;
	int failed = 0;

	if (!cases || !differences) {
		fprintf(stderr, "ipam_replay: %s\n", err.text);
		return 2;
	}
	/* Whatever somebody has left. */
	memset(r->has_made, true, sizeof(r->has_made));
	clean_up(r);
	r->has_marked_nodes = true;
	json_array_foreach (cases, i, recorded) {
		const char *id = json_str_at(recorded, "id");
		const char *reason = json_str_at(differences, id);
		auto_free char *difference = NULL;

		if (only ? !str_eq(only, id)
			 : (int64_t)i % every != seed % every ||
				    !is_replayed(recorded, differences))
			continue;
		replayed++;
		difference = replay_case(r, recorded, reason != NULL);
		different += *difference != '\0';
		if (reason && !*difference)
			printf("%s is listed in " DIFFERENCES " and does not differ\n", id);
		else if (!reason && *difference)
			printf("%s: %s", id, difference);
		else
			continue;
		failed++;
	}
	printf("%zu of %zu cases replayed, %zu differ on purpose, %d wrong, %zu kills\n", replayed,
	       json_array_size(cases), different, failed, r->victim.killed);
	return failed ? 1 : 0;
}

static void make_config_map(struct replay *r)
{
	json_auto_t *map =
		json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
			  "metadata", "name", "spiderpool-conf", "namespace", CONFIG_NS);

	do_create(r, map);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int begin(struct replay *r, const char *kubeconfig, const char *agent_kubeconfig,
		 struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = agent_kubeconfig,
		.envp = (const char *const *)environ,
	};

	if (connection_open(&r->connection, kubeconfig, err) < 0 ||
	    kube_config_load(&source, &r->agent_config, err) < 0)
		return -1;
	r->agent_client = kube_client_new(r->connection.loop, &r->agent_config, NULL);
	r->tick = timer_new(r->connection.loop, on_tick, NULL);
	r->pods = json_object();
	r->uids = json_object();
	r->refused = json_object();
	r->attached = json_object();
	for (size_t i = 0; i < N_NODES; i++)
		r->agents[i] = addresses_new(&(struct addresses_config){
			.loop = r->connection.loop,
			.client = r->agent_client,
			.node = nodes[i],
			.ns = "orbweaver-system",
			.config_ns = CONFIG_NS,
			.holds = is_attached,
			.arg = r,
		});
	if (r->victim.audit) {
		r->victim.fd = open(r->victim.audit, O_RDONLY | O_CLOEXEC);
		if (r->victim.fd < 0)
			return err_sys(err, "NoAuditLog", "open %s", r->victim.audit);
		(void)lseek(r->victim.fd, 0, SEEK_END);
		victim_start(&r->victim);
	}
	return 0;
}

static void end(struct replay *r)
{
	victim_end(&r->victim);
	strbuf_done(&r->victim.line);
	for (size_t i = 0; i < N_NODES; i++)
		addresses_free(r->agents[i]);
	timer_free(r->tick);
	kube_client_free(r->agent_client);
	kube_config_done(&r->agent_config);
	connection_close(&r->connection);
	json_decref(r->pods);
	json_decref(r->uids);
	json_decref(r->refused);
	json_decref(r->attached);
	mem_free(r->config);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"kubeconfig", required_argument, NULL, 'k'},
		{"agent-kubeconfig", required_argument, NULL, 'a'},
		{"case", required_argument, NULL, 'c'},
		{"every", required_argument, NULL, 'e'},
		{"kill", required_argument, NULL, 'x'},
		{"seed", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *kubeconfig = NULL, *agent_kubeconfig = NULL, *only = NULL;
	struct replay r = {.victim = {.fd = -1}};
	int64_t every = 1, seed = 1;
	struct err err = {0};
	int option, status;

	json_init();
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		bool is_bad = option == '?';

		if (option == 'k')
			kubeconfig = optarg;
		else if (option == 'a')
			agent_kubeconfig = optarg;
		else if (option == 'c')
			only = optarg;
		else if (option == 'x')
			r.victim.audit = optarg;
		else if (option == 'e')
			is_bad = !str_to_int(optarg, 1, 1000, &every);
		else if (option == 's')
			is_bad = !str_to_int(optarg, 1, INT32_MAX, &seed);
		if (is_bad || option == 'h') {
			fputs(help, is_bad ? stderr : stdout);
			return is_bad ? 2 : 0;
		}
	}
	if (!kubeconfig || !agent_kubeconfig || !r.victim.audit != (optind == argc)) {
		fputs(help, stderr);
		return 2;
	}
	r.victim.command = argv + optind;
	r.victim.random = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15);
	if (begin(&r, kubeconfig, agent_kubeconfig, &err) < 0) {
		fprintf(stderr, "ipam_replay: %s\n", err.text);
		return 2;
	}
	make_config_map(&r);
	status = replay_all(&r, only, every, seed);
	end(&r);
	return status;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A plan's message BOX_LOOK arrives here by way of the manager. One struct look per name: its
 * objects are read side by side, pods of nodes after them, and the answer goes to the controller
 * that asked. Users choose how large their pods are, and when they end: few calls are in flight,
 * lists come in small pages, and what no decision reads of an object is dropped on arrival.
 */
#include "operator/cache/live_reads.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/ipam/allocate/release.h"

/* An object has 3 MiB at most as it is sent, and 4 MB once it is read (json_parse_within()). */
enum {
	CALLS_MAX = 32,
	PAGE = 5, /* pods of a node in one answer */
	/* So often in a row are objects read again, of a key that is asked for all the time. */
	AGAIN_MAX = 4,
};

struct live_reads {
	struct kube_client *client;
	live_reads_done_fn *done;
	void *arg;
	struct map running; /* by name: struct look, owned */
	TAILQ_HEAD(, reading) waiting;
	size_t calls; /* in flight */
	bool lists;   /* one of them is a list */
};

struct reading {
	TAILQ_ENTRY(reading) link;
	struct look *look;
	char *kind, *key;
	bool is_list;           /* of pods, after all else was read */
	bool waits;             /* in live_reads.waiting */
	json_t *pods;           /* of the pages until now; NULL: none */
	struct kube_call *call; /* NULL: it is not in flight */
};

struct look {
	struct live_reads *looks;
	unsigned int of;
	char *name;
	json_t *again; /* what was asked for since it began; NULL: nothing */
	int times;     /* it was begun again */
	json_t *found;
	struct err err;        /* the first */
	size_t left, lists, n; /* left: not answered; lists of them: not asked */
	struct reading readings[];
};

/* Owners of pods, which nobody mirrors. */
static const struct kube_resource owners[] = {
	{"apps", "v1", KIND_STATEFUL_SET, "StatefulSet", true},
	{"kubevirt.io", "v1", KIND_VIRTUAL_MACHINE_INSTANCE, "VirtualMachineInstance", true},
	{"kubevirt.io", "v1", KIND_VIRTUAL_MACHINE, "VirtualMachine", true},
};

static bool find_resource(const char *kind, struct kube_resource *ret)
{
	const struct kind_info *info = kind_find(kind);

	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		if (str_eq(owners[i].plural, kind)) {
			*ret = owners[i];
			return true;
		}
	}
	if (info)
		*ret = (struct kube_resource){info->group, info->version, info->id, info->kind,
					      info->namespaced};
	return info != NULL;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static const struct {
	const char *kind, *part, *member; /* member NULL: the whole part */
} drops[] = {
	{KIND_POD, "metadata", "managedFields"},
	{KIND_NODE, "metadata", "managedFields"},
	{KIND_NODE, "status", "images"},
	{KIND_STATEFUL_SET, "metadata", "managedFields"},
	{KIND_STATEFUL_SET, "metadata", "annotations"},
	{KIND_STATEFUL_SET, "spec", "template"},
	{KIND_STATEFUL_SET, "spec", "volumeClaimTemplates"},
	{KIND_VIRTUAL_MACHINE_INSTANCE, "metadata", "annotations"},
	{KIND_VIRTUAL_MACHINE_INSTANCE, "metadata", "managedFields"},
	{KIND_VIRTUAL_MACHINE_INSTANCE, "spec", NULL},
	{KIND_VIRTUAL_MACHINE, "metadata", "annotations"},
	{KIND_VIRTUAL_MACHINE, "metadata", "managedFields"},
	{KIND_VIRTUAL_MACHINE, "spec", NULL},
};

/* Of a pod's spec decisions read a node's name, a policy, a switch: no list, no object. */
static void drop_parts(json_t *spec)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(spec, next, name, value)
	{
		if (json_is_array(value) || json_is_object(value))
			(void)json_object_del(spec, name);
	}
}

static void trim(const char *kind, json_t *object)
{
	for (size_t i = 0; i < ARRAY_LEN(drops); i++) {
		if (!str_eq(drops[i].kind, kind))
			continue;
		if (drops[i].member)
			json_object_del(json_object_get(object, drops[i].part), drops[i].member);
		else
			json_object_del(object, drops[i].part);
	}
	if (str_eq(kind, KIND_POD))
		drop_parts(json_object_get(object, "spec"));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void look_free(void *ptr)
{
	struct look *look = ptr;

	for (size_t i = 0; i < look->n; i++) {
		struct reading *reading = &look->readings[i];

		if (reading->waits)
			TAILQ_REMOVE(&look->looks->waiting, reading, link);
		kube_call_cancel(reading->call);
		json_decref(reading->pods);
		mem_free(reading->kind);
		mem_free(reading->key);
	}
	json_decref(look->found);
	json_decref(look->again);
	mem_free(look->name);
	mem_free(look);
}

struct live_reads *live_reads_new(struct kube_client *client, live_reads_done_fn *done, void *arg)
{
	struct live_reads *looks = mem_new(struct live_reads);

	assert(client && done);
	looks->client = client;
	looks->done = done;
	looks->arg = arg;
	looks->running.free_value = look_free;
	TAILQ_INIT(&looks->waiting);
	return looks;
}

void live_reads_free(struct live_reads *looks)
{
	if (!looks)
		return;
	map_done(&looks->running);
	mem_free(looks);
}

static void let_wait(struct reading *reading)
{
	assert(!reading->waits && !reading->call);
	reading->waits = true;
	TAILQ_INSERT_TAIL(&reading->look->looks->waiting, reading, link);
}

static void begin_look(struct live_reads *looks, unsigned int of, const char *name,
		       const json_t *wanted, int times);

/* It is answered: the rest of its look, or the end of it. */
static void answer_reading(struct reading *reading, json_t *object, const struct err *err)
{
	struct look *look = reading->look;

	assert(look->left > 0 && look->lists <= look->left);
	/* A kind that is not served has no objects. */
	if (err && !kube_err_is(err, "NotFound") && !kube_err_is(err, "NotServed")) {
		if (look->err.class == ERR_NONE)
			look->err = *err;
	} else {
		json_object_set_new(json_need_object(look->found, reading->kind), reading->key,
				    object ? json_incref(object) : json_null());
	}
	if (--look->left == 0) {
		/* What was asked for meanwhile may concern what came about after it was read. */
		struct live_reads *looks = look->looks;

		(void)map_take(&looks->running, look->name);
		if (look->again && look->times < AGAIN_MAX)
			begin_look(looks, look->of, look->name, look->again, look->times + 1);
		else
			looks->done(looks->arg, look->of, look->name,
				    look->err.class == ERR_NONE ? look->found : NULL,
				    look->err.class == ERR_NONE ? NULL : &look->err);
		look_free(look);
	} else if (look->left == look->lists) {
		look->lists = 0;
		for (size_t i = 0; i < look->n; i++)
			if (look->readings[i].is_list)
				let_wait(&look->readings[i]);
	}
}

static void start_calls(struct live_reads *looks);

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct reading *reading = arg;
	struct live_reads *looks = reading->look->looks;

	reading->call = NULL;
	looks->calls--;
	trim(reading->kind, object);
	answer_reading(reading, object, err);
	start_calls(looks);
}

static void read_page(struct reading *reading, const char *after);

static void on_page(void *arg, json_t *list, const struct err *err)
{
	struct reading *reading = arg;
	struct live_reads *looks = reading->look->looks;
	const char *next = json_str_at(list, "metadata", "continue");
	json_t *pod;
	size_t i;

	reading->call = NULL;
	json_array_foreach (json_at(list, "items"), i, pod) {
		auto_free char *key = json_key(pod);

		trim(KIND_POD, pod);
		json_object_set(reading->pods, key, pod);
	}
	if (!err && !str_empty(next)) {
		read_page(reading, next);
		return;
	}
	looks->calls--;
	looks->lists = false;
	answer_reading(reading, err ? NULL : reading->pods, err);
	start_calls(looks);
}

static void read_page(struct reading *reading, const char *after)
{
	static const struct kube_resource pods = {"", "v1", KIND_POD, "Pod", true};
	auto_strbuf struct strbuf query = {0};

	strbuf_adds(&query, "fieldSelector=spec.nodeName%3D");
	kube_path_encode(&query, reading->key);
	strbuf_addf(&query, "&limit=%d", PAGE);
	if (after) {
		strbuf_adds(&query, "&continue=");
		kube_path_encode(&query, after);
	}
	reading->call = kube_list_within(reading->look->looks->client, &pods, strbuf_str(&query),
					 on_page, reading);
}

static void start_call(struct reading *reading)
{
	struct live_reads *looks = reading->look->looks;
	const char *slash = strchr(reading->key, '/');
	auto_free char *ns = slash ? str_ndup(reading->key, (size_t)(slash - reading->key)) : NULL;
	struct kube_resource resource = {0};
	bool is_found;

	TAILQ_REMOVE(&looks->waiting, reading, link);
	reading->waits = false;
	looks->calls++;
	if (reading->is_list) {
		looks->lists = true;
		reading->pods = json_object();
		read_page(reading, NULL);
		return;
	}
	is_found = find_resource(reading->kind, &resource);
	assert(is_found);
	(void)is_found;
	reading->call = kube_get_within(looks->client, &resource, resource.namespaced ? ns : NULL,
					resource.namespaced && slash ? slash + 1 : reading->key,
					on_read, reading);
}

/* A list that has to wait for another one keeps nothing else waiting. */
static void start_calls(struct live_reads *looks)
{
	struct reading *reading = TAILQ_FIRST(&looks->waiting);

	while (reading && looks->calls < CALLS_MAX) {
		struct reading *next = TAILQ_NEXT(reading, link);

		if (!reading->is_list || !looks->lists)
			start_call(reading);
		reading = next;
	}
}

static void begin_look(struct live_reads *looks, unsigned int of, const char *name,
		       const json_t *wanted, int times)
{
	size_t n = json_array_size(wanted), i;
	struct look *look;
	json_t *item;

	look = mem_zalloc(sizeof(*look) + n * sizeof(look->readings[0]));
	look->looks = looks;
	look->of = of;
	look->times = times;
	look->name = str_dup(name);
	look->found = json_object();
	json_array_foreach (wanted, i, item) {
		struct reading *reading = &look->readings[look->n];
		const char *kind = json_str_or(json_at(item, "kind"), "");
		bool is_list = str_eq(kind, BOX_PODS_OF_NODE);
		struct kube_resource ignored;

		if (!is_list && !find_resource(kind, &ignored))
			continue;
		reading->look = look;
		reading->kind = str_dup(kind);
		reading->key = str_dup(json_str_or(json_at(item, "key"), ""));
		reading->is_list = is_list;
		look->lists += is_list;
		look->n++;
		look->left++;
	}
	if (look->left == 0) {
		look_free(look);
		return;
	}
	map_set(&looks->running, name, look);
	for (i = 0; i < look->n; i++)
		if (!look->readings[i].is_list || look->left == look->lists)
			let_wait(&look->readings[i]);
	/* Nothing else is asked for. */
	if (look->left == look->lists)
		look->lists = 0;
	start_calls(looks);
}

/* Is all that is wanted being read? */
static bool reads_all(const struct look *look, const json_t *wanted)
{
	size_t i, k;
	json_t *item;

	json_array_foreach ((json_t *)wanted, i, item) {
		for (k = 0; k < look->n; k++)
			if (str_eq(look->readings[k].kind, json_str_at(item, "kind")) &&
			    str_eq(look->readings[k].key, json_str_at(item, "key")))
				break;
		if (k == look->n)
			return false;
	}
	return true;
}

void live_reads_begin(struct live_reads *looks, unsigned int of, const char *name,
		      const json_t *wanted, bool is_once)
{
	struct look *running;

	assert(name);
	if (json_array_size(wanted) == 0)
		return;
	running = map_get(&looks->running, name);
	if (running && is_once && reads_all(running, wanted))
		return;
	if (running)
		json_replace(&running->again, json_incref((json_t *)wanted));
	else
		begin_look(looks, of, name, wanted, 0);
}

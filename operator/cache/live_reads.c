// SPDX-License-Identifier: Apache-2.0
/*
 * A plan's message BOX_LOOK arrives here by way of the manager. One struct look per name: its
 * objects are read side by side, pods of nodes after them, and the answer goes to the controller
 * that asked.
 */
#include "operator/cache/live_reads.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/ipam/allocate/release.h"

struct live_reads {
	struct kube_client *client;
	live_reads_done_fn *done;
	void *arg;
	struct map running; /* by name: struct look, owned */
};

struct reading {
	struct look *look;
	char *kind, *key;
	bool is_list;           /* of pods, after all else was read */
	struct kube_call *call; /* NULL once it was answered, or before it is asked */
};

struct look {
	struct live_reads *looks;
	unsigned int of;
	char *name;
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

static void look_free(void *ptr)
{
	struct look *look = ptr;

	for (size_t i = 0; i < look->n; i++) {
		kube_call_cancel(look->readings[i].call);
		mem_free(look->readings[i].kind);
		mem_free(look->readings[i].key);
	}
	json_decref(look->found);
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
	return looks;
}

void live_reads_free(struct live_reads *looks)
{
	if (!looks)
		return;
	map_done(&looks->running);
	mem_free(looks);
}

static void list_all(struct look *look);

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct reading *reading = arg;
	struct look *look = reading->look;

	assert(look->left > 0 && look->lists <= look->left);
	reading->call = NULL;
	/* A kind that is not served has no objects. */
	if (err && !kube_err_is(err, "NotFound") && !kube_err_is(err, "NotServed")) {
		if (look->err.class == ERR_NONE)
			look->err = *err;
	} else {
		json_object_set_new(json_need_object(look->found, reading->kind), reading->key,
				    object ? json_incref(object) : json_null());
	}
	if (--look->left == 0) {
		struct live_reads *looks = look->looks;

		(void)map_take(&looks->running, look->name);
		looks->done(looks->arg, look->of, look->name,
			    look->err.class == ERR_NONE ? look->found : NULL,
			    look->err.class == ERR_NONE ? NULL : &look->err);
		look_free(look);
	} else if (look->left == look->lists) {
		list_all(look);
	}
}

static void on_listed(void *arg, json_t *list, const struct err *err)
{
	json_auto_t *pods = list ? json_object() : NULL;
	json_t *pod;
	size_t i;

	json_array_foreach (json_at(list, "items"), i, pod) {
		auto_free char *key = json_key(pod);

		json_object_set(pods, key, pod);
	}
	on_read(arg, pods, err);
}

static void list_all(struct look *look)
{
	look->lists = 0;
	for (size_t i = 0; i < look->n; i++)
		if (look->readings[i].is_list) {
			struct reading *reading = &look->readings[i];
			static const struct kube_resource pods = {"", "v1", KIND_POD, "Pod", true};
			auto_strbuf struct strbuf query = {0};

			/* A node has some hundred pods at most: one page. */
			strbuf_adds(&query, "fieldSelector=spec.nodeName%3D");
			kube_path_encode(&query, reading->key);
			reading->call = kube_list(reading->look->looks->client, &pods, NULL,
						  strbuf_str(&query), on_listed, reading);
		}
}

void live_reads_begin(struct live_reads *looks, unsigned int of, const char *name,
		      const json_t *wanted)
{
	size_t n = json_array_size(wanted), i;
	struct look *look;
	json_t *item;

	assert(name);
	if (n == 0 || map_get(&looks->running, name))
		return;
	look = mem_zalloc(sizeof(*look) + n * sizeof(look->readings[0]));
	look->looks = looks;
	look->of = of;
	look->name = str_dup(name);
	look->found = json_object();
	json_array_foreach (wanted, i, item) {
		struct reading *reading = &look->readings[look->n];
		const char *key = json_str_or(json_at(item, "key"), "");
		const char *slash = strchr(key, '/');
		bool is_list = str_eq(json_str_at(item, "kind"), BOX_PODS_OF_NODE);
		struct kube_resource resource = {.plural = BOX_PODS_OF_NODE};
		auto_free char *ns = slash ? str_ndup(key, (size_t)(slash - key)) : NULL;

		if (!is_list && !find_resource(json_str_or(json_at(item, "kind"), ""), &resource))
			continue;
		reading->look = look;
		reading->kind = str_dup(resource.plural);
		reading->key = str_dup(key);
		reading->is_list = is_list;
		look->lists += is_list;
		look->n++;
		look->left++;
		if (!is_list)
			reading->call =
				kube_get(looks->client, &resource, resource.namespaced ? ns : NULL,
					 resource.namespaced && slash ? slash + 1 : key, NULL,
					 on_read, reading);
	}
	if (look->left == 0) {
		look_free(look);
		return;
	}
	map_set(&looks->running, name, look);
	/* Nothing else is asked for. */
	if (look->left == look->lists)
		list_all(look);
}

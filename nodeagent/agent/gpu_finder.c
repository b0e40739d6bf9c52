// SPDX-License-Identifier: Apache-2.0
/*
 * A search is: List of PodResources; then the node's pending pods, of which those are kept that
 * lack devices. It ends when all are read or its time is over. Pods are read as they arrive: a
 * namespace whose pods are too large is left out of the lists that follow. offers.c passes
 * questions of kubeletd on, and the answers back.
 */
#include "nodeagent/agent/gpu_finder.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/parse_within.h"
#include "lib/kube/api.h"
#include "lib/kube/splitter.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/same_rails.h"
#include "nodeagent/kubelet/pod_resources.h"

struct search {
	struct gpu_finder *finder;
	struct search *next;
	int64_t id;
	char *resource;
	json_t *observed;
	struct pod_resources *resources;
	struct timer *late;
	struct deferred *listed;
	json_t *allocated, *holders; /* NULL: the kubelet has not answered */
	struct kube_call *list;      /* of pending pods; NULL: none, or answered */
	struct splitter splitter;    /* what comes of it */
	size_t list_bytes;
	json_t *sizes;  /* {namespace: bytes} of it */
	json_t *lack;   /* its pods that lack devices, what is needed of them; NULL: none */
	bool is_unsure; /* the list was needed, and is not complete */
};

struct gpu_finder {
	struct gpu_finder_config config; /* socket is ours */
	struct search *searches;
	char *node;
	int64_t lists_from_ms; /* pods are listed from then on */
	json_t *large;         /* {namespace: until when (clock_ms()) it is left out} */
	json_t *on_rails;      /* of gpu_finder_on_rails() */
};

static void search_free(struct search *search)
{
	struct search **place = &search->finder->searches;

	while (*place != search)
		place = &(*place)->next;
	*place = search->next;
	if (search->list) {
		kube_call_cancel(search->list);
		splitter_done(&search->splitter);
	}
	pod_resources_free(search->resources);
	timer_free(search->late);
	deferred_free(search->listed);
	json_decref(search->observed);
	json_decref(search->allocated);
	json_decref(search->holders);
	json_decref(search->sizes);
	json_decref(search->lack);
	mem_free(search->resource);
	mem_free(search);
}

/*
 * Note what the pod wants. Names are bounded by the API server, their number here. An earlier pod
 * of the name may have wanted others: PodResources know names, and no UIDs.
 */
static uint32_t note_rails(struct search *search, const json_t *pod)
{
	json_t *noted = search->finder->on_rails;
	uint32_t rails =
		same_rails_wanted(search->observed, pod, search->allocated, search->resource);
	auto_free char *key = json_key(pod);

	if (affinity_lacks(pod, search->allocated, search->resource))
		(void)json_object_del(noted, key);
	if (json_object_size(noted) >= GPU_FINDER_NOTED_MAX)
		(void)json_object_clear(noted);
	if (rails)
		json_put_int(noted, key, rails);
	return rails;
}

/*
 * The rails of the pod that was found by its GPUs, else those of all pods that lack devices and
 * have the label. 0: none, or these pods do not agree.
 */
static uint32_t find_rails(struct search *search, const json_t *found)
{
	bool agree = true;
	uint32_t rails = 0;
	const json_t *pod;
	size_t i;

	if (found)
		return note_rails(search, found);
	json_array_foreach (search->lack, i, pod) {
		uint32_t others = note_rails(search, pod);

		agree &= !rails || !others || rails == others;
		rails |= others;
	}
	return agree ? rails : 0;
}

/* The GPUs of the one pod that has some, new, and that pod; NULL: of two neither is. */
static json_t *find_gpus(const struct search *search, const json_t **ret_pod, size_t *ret_n)
{
	json_t *ret = NULL;
	const json_t *pod;
	size_t i;

	*ret_n = 0;
	json_array_foreach (search->lack, i, pod) {
		json_t *gpus =
			affinity_wanted(pod, search->holders, search->allocated, search->resource);

		if (!gpus)
			continue;
		json_replace(&ret, gpus);
		*ret_pod = pod;
		++*ret_n;
	}
	return ret;
}

static void finish(struct search *search)
{
	const struct gpu_finder_config *config = &search->finder->config;
	json_auto_t *near = NULL, *gpus = NULL;
	int64_t id = search->id;
	uint32_t rails = 0;
	const json_t *pod = NULL;
	size_t n = 0;

	if (search->holders && !search->is_unsure) {
		gpus = find_gpus(search, &pod, &n);
		rails = find_rails(search, n == 1 ? pod : NULL);
		/* The pod that asks may have GPUs already: free ones say nothing then. */
		if (rails)
			near = same_rails_near(search->observed, rails);
		else if (n < 2)
			near = affinity_near(search->observed, search->holders, gpus);
	}
	search_free(search);
	config->found(config->arg, id, near);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void list_pods(struct search *search);

/* What devices, GPUs and rails are about; new. Users choose how much else there is. */
static json_t *without_more(const json_t *pod)
{
	static const char *const metadata[] = {"namespace", "name", NULL};
	static const char *const labels[] = {RAILS_LABEL, NULL};
	static const char *const lists[] = {"initContainers", "containers"};
	json_t *ret = json_object(), *spec = json_need_object(ret, "spec"), *about;
	const json_t *container;
	size_t k;

	about = json_pick(json_at(pod, "metadata"), metadata);
	json_put(about, "labels", json_pick(json_at(pod, "metadata", "labels"), labels));
	json_put(ret, "metadata", about);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		json_array_foreach (json_at(pod, "spec", lists[i]), k, container) {
			static const char *const kept[] = {"name", "restartPolicy", "resources",
							   NULL};

			if (!json_object_get(spec, lists[i]))
				json_put(spec, lists[i], json_array());
			json_array_append_new(json_object_get(spec, lists[i]),
					      json_pick(container, kept));
		}
	return ret;
}

static int on_listed_pod(void *arg, const struct splitter_object *object, struct err *err)
{
	struct search *search = arg;
	json_auto_t *pod = NULL;
	const char *ns;

	if (object->is_rest)
		return 0;
	pod = json_parse_within(object->text, object->len, false, err);
	if (!pod)
		return -1;
	ns = json_str_or(json_at(pod, "metadata", "namespace"), "");
	json_put_int(search->sizes, ns,
		     json_integer_value(json_at(search->sizes, ns)) + (int64_t)object->len);
	/* Pods that are deleted do not start, and may stay as long as their users want. */
	if (json_at(pod, "metadata", "deletionTimestamp") ||
	    !affinity_lacks(pod, search->allocated, search->resource))
		return 0;
	if (!search->lack)
		search->lack = json_array();
	json_array_append_new(search->lack, without_more(pod));
	return 0;
}

static int on_list_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct search *search = arg;

	search->list_bytes += len;
	if (search->list_bytes > GPU_FINDER_LIST_MAX)
		return err_set(err, ERR_INVALID, "BodyTooLarge", "pods of more than %d bytes",
			       GPU_FINDER_LIST_MAX);
	return splitter_feed(&search->splitter, bytes, len, err);
}

/*
 * The namespace that most of the list was of, also of the pod in whose middle it was left: servers
 * write the namespace before all that may be long. False: none is known, or too many are left out.
 */
static bool leave_out_largest(struct search *search)
{
	static const char key[] = "\"namespace\":\"";
	const char *text = strbuf_str(&search->splitter.text), *at = strstr(text, key);
	json_t *large = search->finder->large, *size;
	const char *ns, *largest = NULL;
	int64_t most = 0;
	size_t len = at ? strspn(at + sizeof(key) - 1, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

	if (len > 0 && at[sizeof(key) - 1 + len] == '"') {
		auto_free char *last = str_ndup(at + sizeof(key) - 1, len);

		json_put_int(search->sizes, last,
			     json_integer_value(json_object_get(search->sizes, last)) +
				     (int64_t)search->splitter.text.len);
	}
	json_each (search->sizes, ns, size)
		if (json_integer_value(size) > most) {
			most = json_integer_value(size);
			largest = ns;
		}
	if (most < GPU_FINDER_LIST_MAX / GPU_FINDER_LARGE_MAX ||
	    json_object_size(large) >= GPU_FINDER_LARGE_MAX)
		return false;
	json_put_int(large, largest, clock_ms() + GPU_FINDER_PAUSE_MS);
	return true;
}

static void on_list(void *arg, const struct kube_response *response, const struct err *err)
{
	struct search *search = arg;
	bool again = err && str_eq(err->reason, "BodyTooLarge") && leave_out_largest(search);

	search->list = NULL;
	search->is_unsure = err != NULL;
	splitter_done(&search->splitter);
	if (again)
		list_pods(search);
	else
		finish(search);
}

/*
 * Version 0: from the API server's memory, which knows the pods of a node. Without it the server
 * reads all pods of the cluster from its store, for each node on which a job starts. Without a
 * limit: with version 0 servers do not obey one.
 */
static void list_pods(struct search *search)
{
	struct gpu_finder *finder = search->finder;
	auto_strbuf struct strbuf query = {0};
	auto_free char *path = NULL;
	const char *ns;
	json_t *until;
	void *next;

	strbuf_adds(&query, "fieldSelector=status.phase%3DPending%2Cspec.nodeName%3D");
	kube_path_encode(&query, finder->node);
	json_object_foreach_safe(finder->large, next, ns, until)
	{
		if (json_integer_value(until) <= clock_ms()) {
			(void)json_object_del(finder->large, ns);
			continue;
		}
		strbuf_adds(&query, "%2Cmetadata.namespace%21%3D");
		kube_path_encode(&query, ns);
	}
	strbuf_adds(&query, "&resourceVersion=0");
	path = kube_path(&kube_pods, NULL, NULL, NULL, strbuf_str(&query));
	search->list_bytes = 0;
	json_replace(&search->sizes, json_object());
	json_replace(&search->lack, NULL);
	splitter_init(&search->splitter, SPLITTER_LIST, NULL, 0, false, on_listed_pod, search);
	search->list =
		kube_call(finder->config.client, &(struct kube_request){.verb = "list",
									.method = "GET",
									.path = path,
									.on_bytes = on_list_bytes,
									.done = on_list,
									.arg = search});
}

/* ---- the search ------------------------------------------------------------------------------ */

static void on_late(void *arg)
{
	struct search *search = arg;

	if (search->list && !leave_out_largest(search))
		search->finder->lists_from_ms = clock_ms() + GPU_FINDER_PAUSE_MS;
	search->is_unsure = true;
	finish(search);
}

/* In a turn of its own: pod_resources.h does not let go of itself in a callback. */
static void on_listed(void *arg)
{
	struct search *search = arg;
	json_auto_t *pods = NULL;

	pod_resources_free(take_ptr(search->resources));
	if (search->allocated) {
		search->holders = affinity_holders(search->observed, search->allocated);
		pods = affinity_suspects(search->holders, search->allocated, search->resource);
	}
	search->is_unsure = json_array_size(pods) > 0;
	if (search->holders && clock_ms() >= search->finder->lists_from_ms &&
	    (search->is_unsure || json_array_size(json_at(search->observed, "rails", "list")) > 1))
		list_pods(search);
	else
		finish(search);
}

static void on_search_listed(void *arg, const json_t *allocated, const struct err *err)
{
	struct search *search = arg;

	/* The first answer counts: the kubelet waits for us, and nothing changes. */
	if (!search->allocated)
		search->allocated = json_incref((json_t *)allocated);
	deferred_run(search->listed);
}

static int on_connect(void *arg)
{
	const struct search *search = arg;
	const struct gpu_finder_config *config = &search->finder->config;

	return config->connect(config->arg);
}

void gpu_finder_find(struct gpu_finder *finder, int64_t id, const char *resource,
		     const json_t *observed)
{
	struct search *search = mem_new(struct search);

	assert(resource && observed);
	search->finder = finder;
	search->next = finder->searches;
	finder->searches = search;
	search->id = id;
	search->resource = str_dup(resource);
	search->observed = json_incref((json_t *)observed);
	search->listed = deferred_new(finder->config.loop, on_listed, search);
	search->late = timer_new(finder->config.loop, on_late, search);
	timer_start(search->late, GPU_FINDER_MS);
	search->resources = pod_resources_new(
		finder->config.loop, &(struct pod_resources_config){
					     .socket = finder->config.socket,
					     .connect = finder->config.connect ? on_connect : NULL,
					     .wait_ms = 1,
					     .changed = on_search_listed,
					     .arg = search,
				     });
}

struct gpu_finder *gpu_finder_new(const struct gpu_finder_config *config)
{
	struct gpu_finder *finder = mem_new(struct gpu_finder);

	assert(config->loop && config->client && config->socket && config->node && config->found);
	finder->config = *config;
	finder->config.socket = str_dup(config->socket);
	finder->node = str_dup(config->node);
	finder->large = json_object();
	finder->on_rails = json_object();
	return finder;
}

void gpu_finder_free(struct gpu_finder *finder)
{
	if (!finder)
		return;
	while (finder->searches)
		search_free(finder->searches);
	mem_free((char *)finder->config.socket);
	mem_free(finder->node);
	json_decref(finder->large);
	json_decref(finder->on_rails);
	mem_free(finder);
}

json_t *gpu_finder_on_rails(struct gpu_finder *finder)
{
	return finder->on_rails;
}

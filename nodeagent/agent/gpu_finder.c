// SPDX-License-Identifier: Apache-2.0
/*
 * A search is: List of PodResources, and of the node's pods with the label of rails; then the pods
 * that could be meant, all at once. It ends when all are read or its time is over. offers.c passes
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
#include "lib/kube/api.h"
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
	bool is_listed;              /* on_listed() has run */
	struct kube_call *list;      /* of pods with the label; NULL: none, or answered */
	json_t *labelled;            /* the answer; NULL: none */
	struct reading {
		struct search *search;
		struct kube_call *call;
	} readings[GPU_FINDER_PODS_MAX];
	bool is_unsure; /* a pod that was not read may be the one */
	size_t n_open;  /* readings without an answer */
	size_t n_pods;  /* pods that lack devices */
	json_t *gpus;   /* of the last of them */
	json_t *pod;    /* itself */
};

struct gpu_finder {
	struct gpu_finder_config config; /* socket is ours */
	struct search *searches;
	char *query;           /* for the node's pods with the label */
	int64_t lists_from_ms; /* it is sent from then on */
	json_t *on_rails;      /* of gpu_finder_on_rails() */
};

static void search_free(struct search *search)
{
	struct search **place = &search->finder->searches;

	while (*place != search)
		place = &(*place)->next;
	*place = search->next;
	for (size_t i = 0; i < GPU_FINDER_PODS_MAX; i++)
		if (search->readings[i].call)
			kube_call_cancel(search->readings[i].call);
	if (search->list)
		kube_call_cancel(search->list);
	pod_resources_free(search->resources);
	timer_free(search->late);
	deferred_free(search->listed);
	json_decref(search->observed);
	json_decref(search->allocated);
	json_decref(search->holders);
	json_decref(search->gpus);
	json_decref(search->pod);
	json_decref(search->labelled);
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
 * have the label. 0: none, or these pods do not agree. Pods that are deleted do not start, and may
 * stay as long as their users want.
 */
static uint32_t find_rails(struct search *search, const json_t *found)
{
	bool agree = true;
	uint32_t rails = 0;
	const json_t *pod;
	size_t i;

	if (found)
		return note_rails(search, found);
	json_array_foreach (json_at(search->labelled, "items"), i, pod) {
		uint32_t others =
			json_at(pod, "metadata", "deletionTimestamp") ? 0 : note_rails(search, pod);

		agree &= !rails || !others || rails == others;
		rails |= others;
	}
	return agree ? rails : 0;
}

/* Of two pods that could be meant neither is. */
static void finish(struct search *search)
{
	const struct gpu_finder_config *config = &search->finder->config;
	bool is_found = search->n_open == 0 && search->n_pods == 1;
	json_auto_t *near = NULL;
	int64_t id = search->id;
	uint32_t rails = search->holders ? find_rails(search, is_found ? search->pod : NULL) : 0;

	/* Whoever asks may have GPUs already: free ones say nothing then. */
	if (rails)
		near = same_rails_near(search->observed, rails);
	else if (search->holders &&
		 (is_found || (search->n_open == 0 && search->n_pods == 0 && !search->is_unsure)))
		near = affinity_near(search->observed, search->holders,
				     is_found ? search->gpus : NULL);
	search_free(search);
	config->found(config->arg, id, near);
}

static void on_late(void *arg)
{
	struct search *search = arg;

	if (search->list)
		search->finder->lists_from_ms = clock_ms() + GPU_FINDER_PAUSE_MS;
	finish(search);
}

static void finish_with_all(struct search *search)
{
	if (search->is_listed && search->n_open == 0 && !search->list)
		finish(search);
}

static void on_labelled(void *arg, json_t *object, const struct err *err)
{
	struct search *search = arg;

	search->list = NULL;
	search->labelled = json_incref(object);
	finish_with_all(search);
}

static void on_pod(void *arg, json_t *object, const struct err *err)
{
	struct reading *reading = arg;
	struct search *search = reading->search;
	json_t *gpus =
		err ? NULL
		    : affinity_wanted(object, search->holders, search->allocated, search->resource);

	reading->call = NULL;
	search->n_open--;
	search->is_unsure |= err != NULL;
	if (gpus) {
		search->n_pods++;
		json_decref(search->gpus);
		search->gpus = gpus;
		json_replace(&search->pod, json_incref(object));
	}
	finish_with_all(search);
}

/* In a turn of its own: pod_resources.h does not let go of itself in a callback. */
static void on_listed(void *arg)
{
	struct search *search = arg;
	json_auto_t *pods = NULL;
	const json_t *pod;
	size_t i;

	pod_resources_free(take_ptr(search->resources));
	if (search->allocated) {
		search->holders = affinity_holders(search->observed, search->allocated);
		pods = affinity_suspects(search->holders, search->allocated, search->resource);
	}
	search->is_listed = true;
	search->is_unsure = json_array_size(pods) > GPU_FINDER_PODS_MAX;
	json_array_foreach (search->is_unsure ? NULL : pods, i, pod) {
		const char *name = json_string_value(pod), *slash = strchr(name, '/');
		auto_free char *ns = slash ? str_ndup(name, (size_t)(slash - name)) : NULL;

		search->n_open++;
		search->readings[i].search = search;
		search->readings[i].call =
			kube_get_within(search->finder->config.client, &kube_pods, ns ? ns : "",
					slash ? slash + 1 : name, on_pod, &search->readings[i]);
	}
	finish_with_all(search);
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
	if (json_array_size(json_at(observed, "rails", "list")) > 1 &&
	    clock_ms() >= finder->lists_from_ms)
		search->list = kube_list_within(finder->config.client, &kube_pods, finder->query,
						on_labelled, search);
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
	struct strbuf query = {0};

	assert(config->loop && config->client && config->socket && config->node && config->found);
	finder->config = *config;
	finder->config.socket = str_dup(config->socket);
	strbuf_adds(&query, "fieldSelector=status.phase%3DPending%2Cspec.nodeName%3D");
	kube_path_encode(&query, config->node);
	/*
	 * Version 0: from the API server's memory, which knows the pods of a node. Without it the
	 * server reads all pods of the cluster from its store, for each node on which a job starts.
	 * Without a limit: the kubelet admits so many pods, and of those that wait for something
	 * else any number may come first.
	 */
	strbuf_adds(&query, "&labelSelector=");
	kube_path_encode(&query, RAILS_LABEL);
	strbuf_adds(&query, "&resourceVersion=0");
	finder->query = strbuf_take(&query);
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
	mem_free(finder->query);
	json_decref(finder->on_rails);
	mem_free(finder);
}

json_t *gpu_finder_on_rails(struct gpu_finder *finder)
{
	return finder->on_rails;
}

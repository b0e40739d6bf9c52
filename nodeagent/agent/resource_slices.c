// SPDX-License-Identifier: Apache-2.0
/*
 * A change is a list of writes that is carried out to its end before the next is decided: in
 * between slices have two generations, which a scheduler takes for a pool that is not complete.
 */
#include "nodeagent/agent/resource_slices.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "nodeagent/agent/node_state.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/devices/dra_slices.h"

static const struct kube_resource slice_resource = {
	.group = "resource.k8s.io",
	.version = "v1",
	.plural = "resourceslices",
	.kind = "ResourceSlice",
};

struct resource_slices {
	struct resource_slices_config config;
	char *selector;
	struct cache *cache;
	struct informer *informer;
	struct timer *due; /* the next look; nothing is decided elsewhere */
	struct kube_call *call;
	char *owner;
	json_t *pools, *observed; /* NULL: not set yet */
	json_t *links;            /* ports that are judged; NULL: none */
	bool taints_degraded;
	struct dra_features features;
	json_t *change; /* of dra_slices_diff(); NULL: none is under way */
	size_t n_done;  /* of it */
	int64_t quiet_ms;
	int failures;
	bool may_write, was_absent;
	struct metric *writes;
};

static void look_soon(struct resource_slices *slices)
{
	int64_t wait = slices->quiet_ms - clock_ms();

	if (!slices->call && !slices->change)
		timer_start(slices->due, wait > 0 ? wait : 0);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static void carry_on(struct resource_slices *slices);

static void end_change(struct resource_slices *slices, int64_t pause_ms)
{
	json_decref(take_ptr(slices->change));
	slices->quiet_ms = clock_ms() + pause_ms;
	look_soon(slices);
}

static void write_failed(struct resource_slices *slices, const struct err *err)
{
	int64_t pause = RESOURCE_SLICES_WRITE_MS << (slices->failures < 6 ? slices->failures : 6);

	slices->failures++;
	log_warn("cannot write a ResourceSlice, will retry", F_ERR(err));
	if (slices->failures == 1)
		slices->config.emit(slices->config.arg, true, "SlicesNotWritten", err->text);
	if (pause > RESOURCE_SLICES_RETRY_MAX_MS)
		pause = RESOURCE_SLICES_RETRY_MAX_MS;
	end_change(slices, pause + (int64_t)clock_jitter((uint64_t)pause / 4));
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct resource_slices *slices = arg;
	const json_t *sent = json_array_get(json_at(slices->change, "write"), slices->n_done);
	struct dra_features before = slices->features;

	assert(sent);
	slices->call = NULL;
	metric_add(slices->writes, 1, "slice", err ? err->reason : "ok");
	if (err) {
		write_failed(slices, err);
		return;
	}
	/* A server of today drops what it does not know, without a word. */
	dra_slices_learn(sent, object, &slices->features);
	if (slices->features.no_taints && !before.no_taints)
		log_warn("API server keeps no taints of devices, leaving out those that are not "
			 "healthy");
	if (slices->features.no_sharing && !before.no_sharing)
		slices->config.emit(slices->config.arg, true, "SharingMissing",
				    "the API server does not let claims share a device (feature "
				    "DRAConsumableCapacity), so shared devices are not offered to "
				    "claims: take them out of the annotation " DRA_ANNOTATION);
	informer_learn(slices->informer, object);
	slices->n_done++;
	carry_on(slices);
}

static void on_deleted(void *arg, json_t *object, const struct err *err)
{
	struct resource_slices *slices = arg;

	slices->call = NULL;
	metric_add(slices->writes, 1, "slice-delete", err ? err->reason : "ok");
	if (err && !kube_err_is(err, "NotFound")) {
		write_failed(slices, err);
		return;
	}
	slices->n_done++;
	carry_on(slices);
}

static void carry_on(struct resource_slices *slices)
{
	const json_t *write = json_at(slices->change, "write");
	const json_t *gone = json_at(slices->change, "delete");
	size_t n_write = json_array_size(write);
	const json_t *slice = json_array_get(write, slices->n_done);

	assert(slices->change && !slices->call);
	assert(slices->n_done <= n_write + json_array_size(gone));
	if (slice) {
		slices->call = kube_patch(
			slices->config.client, &slice_resource, NULL, json_name(slice),
			KUBE_PATCH_APPLY, slice,
			&(struct kube_write){.field_manager = NODE_STATE_MANAGER, .force = true},
			on_written, slices);
		return;
	}
	slice = json_array_get(gone, slices->n_done - n_write);
	if (slice) {
		slices->call = kube_delete(slices->config.client, &slice_resource, NULL,
					   json_name(slice), json_uid(slice), NULL,
					   &(struct kube_write){0}, on_deleted, slices);
		return;
	}
	slices->failures = 0;
	log_info("ResourceSlices written", F_INT("written", (int64_t)n_write),
		 F_INT("removed", (int64_t)json_array_size(gone)));
	end_change(slices, RESOURCE_SLICES_WRITE_MS);
}

/* ---- deciding -------------------------------------------------------------------------------- */

/* All of ours that are there, new. */
static json_t *existing_slices(const struct resource_slices *slices)
{
	json_auto_t *all = cache_all(slices->cache);
	json_t *ours = json_array(), *slice;
	const char *key;

	json_each (all, key, slice)
		if (str_eq(json_str_at(slice, "spec", "driver"), DRA_DRIVER) &&
		    str_eq(json_str_at(slice, "spec", "nodeName"), slices->config.node))
			json_array_append(ours, slice);
	return ours;
}

static void look_for_changes(void *arg)
{
	struct resource_slices *slices = arg;
	json_auto_t *wanted = NULL, *have = NULL, *change = NULL;

	if (slices->call || slices->change || !slices->may_write || !slices->pools ||
	    !slices->owner || !informer_is_synced(slices->informer))
		return;
	wanted = dra_slices(&(struct dra_slices_input){
		.node = slices->config.node,
		.node_uid = slices->owner,
		.pools = slices->pools,
		.observed = slices->observed,
		.links = slices->links,
		.taints_degraded = slices->taints_degraded,
		.features = slices->features,
	});
	have = existing_slices(slices);
	change = dra_slices_diff(wanted, have);
	if (json_array_size(json_at(change, "write")) == 0 &&
	    json_array_size(json_at(change, "delete")) == 0)
		return;
	slices->change = take_ptr(change);
	slices->n_done = 0;
	carry_on(slices);
}

/* ---- what the server says -------------------------------------------------------------------- */

static void on_slice(void *arg, const char *key, const json_t *old, const json_t *now)
{
	look_soon(arg);
}

static void on_synced(void *arg)
{
	look_soon(arg);
}

static void on_trouble(void *arg, const struct err *err)
{
	struct resource_slices *slices = arg;
	bool is_absent = err && kube_err_is(err, "NotServed");

	if (err)
		log_warn("cannot read ResourceSlices, will retry", F_ERR(err));
	if (is_absent && !slices->was_absent)
		slices->config.emit(slices->config.arg, true, "SlicesNotServed",
				    "the API server has no resource.k8s.io/v1, which comes with "
				    "Kubernetes 1.34: nothing can be offered to claims; take the "
				    "annotation " DRA_ANNOTATION " off the Node");
	slices->was_absent = is_absent;
}

/* ---- the outside ----------------------------------------------------------------------------- */

struct resource_slices *resource_slices_new(const struct resource_slices_config *config)
{
	static const struct cache_kind kind = {0};
	static const splitter_path drops[] = {{"metadata", "managedFields"}};
	struct resource_slices *slices = mem_new(struct resource_slices);
	auto_free char *label = dra_node_label(config->node);

	assert(config->loop && config->node && config->emit);
	slices->config = *config;
	slices->selector = str_printf("labelSelector=" DRA_NODE_LABEL "%%3D%s", label);
	slices->due = timer_new(config->loop, look_for_changes, slices);
	slices->cache = cache_new(&kind, on_slice, slices);
	slices->writes = metric_counter(config->metrics, "orbweaver_agent_api_writes_total",
					"Writes of our NodeState.", "what,result");
	slices->informer = informer_new(config->loop, config->client,
					&(struct informer_config){
						.resource = &slice_resource,
						.selector = slices->selector,
						.drops = drops,
						.n_drops = ARRAY_LEN(drops),
						.cache = slices->cache,
						.absent_retry_ms = RESOURCE_SLICES_ABSENT_MS,
						.synced = on_synced,
						.trouble = on_trouble,
						.arg = slices,
						.metrics = config->metrics,
					});
	return slices;
}

void resource_slices_free(struct resource_slices *slices)
{
	if (!slices)
		return;
	kube_call_cancel(slices->call);
	informer_free(slices->informer);
	cache_free(slices->cache);
	timer_free(slices->due);
	json_decref(slices->pools);
	json_decref(slices->observed);
	json_decref(slices->links);
	json_decref(slices->change);
	mem_free(slices->owner);
	mem_free(slices->selector);
	mem_free(slices);
}

void resource_slices_set_owner(struct resource_slices *slices, const char *uid)
{
	str_replace(&slices->owner, str_dup(uid));
	look_soon(slices);
}

void resource_slices_set(struct resource_slices *slices, const json_t *pools,
			 const json_t *observed)
{
	json_t *old_pools = slices->pools, *old_observed = slices->observed;

	slices->pools = json_incref((json_t *)pools);
	slices->observed = json_incref((json_t *)observed);
	json_decref(old_pools);
	json_decref(old_observed);
	look_soon(slices);
}

void resource_slices_set_links(struct resource_slices *slices, const json_t *links,
			       bool taints_degraded)
{
	json_replace(&slices->links, json_incref(json_at(links, "ports")));
	slices->taints_degraded = taints_degraded;
	look_soon(slices);
}

void resource_slices_may_write(struct resource_slices *slices, bool may)
{
	slices->may_write = may;
	look_soon(slices);
}

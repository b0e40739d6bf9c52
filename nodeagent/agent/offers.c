// SPDX-License-Identifier: Apache-2.0
/*
 * Pools are computed from the NodeState, users' configurations and the host, parted between device
 * plugins and claims, and sent to kubeletd; what kubelet and kubeletd report of pods' devices goes
 * to the agent. A withdrawal ends when the list was sent and the kubelet was asked after that.
 */
#include "nodeagent/agent/offers.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/dev_names.h"
#include "nodeagent/agent/gpu_finder.h"
#include "nodeagent/agent/pool_sources.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/dra_choice.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/devices/same_rails.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/model/observed.h"

/* Of offers_withdraw(). */
enum withdrawing {
	WITHDRAWING_NOT,
	WITHDRAWING_SENT, /* the server has still to send the list */
	WITHDRAWING_ASKS, /* the kubelet has still to say what pods have */
};

/* Until devices that claims may have can be published. */
enum settling {
	SETTLING_NOT,
	SETTLING_SENT, /* as with withdrawing: the server has still to send the list */
	SETTLING_ASKS, /* the kubelet has still to say what pods have */
};

struct offers {
	struct offers_config config;
	struct pool_sources *sources;
	struct kubeletd *kubeletd;
	bool is_ready;                   /* the server is there */
	bool has_before;                 /* it offers what an agent before us said */
	bool is_sure;                    /* the pools are of a spec and configurations known */
	struct pod_resources *resources; /* NULL: no kubelet … */
	struct deferred *nobody_asked;   /* … and nobody to ask again */
	json_t *allocated;               /* as the kubelet says; NULL: not known */
	bool is_looking;                 /* offers_look_at_devices() waits for an answer */
	json_t *pools;                   /* computed last, by us or by an agent before us */
	json_t *withdrawn;               /* functions of offers_withdraw(); NULL: none */
	enum withdrawing withdrawing;

	struct gpu_finder *finder; /* NULL: no kubelet */
	json_t *observed;          /* of the last offers_set(); NULL: none */
	json_t *distances;         /* of affinity_distances() */
	struct metric *near;

	/* With claims. */
	json_t *prepared; /* what they have; NULL: not known */
	json_t *held;     /* both, as of offers_allocated() */
	json_t *chosen;   /* of offers_choose() */
	json_t *boot;     /* the id of this boot */
	json_t *settled;  /* names of which the kubelet gives nothing away, {name: true} */
	json_t *awaiting; /* names that will be in it */
	json_t *refused;  /* names that were reported */
	enum settling settling;
};

/* ---- claims ---------------------------------------------------------------------------------- */

/* What pods have by the kubelet, and by claims; NULL when either is not known. New. */
static json_t *held_by_both(const struct offers *offers, const json_t *allocated)
{
	json_t *held, *devices;
	const char *resource;

	if (!allocated || (offers->config.dra && !offers->prepared))
		return NULL;
	held = json_copy((json_t *)allocated);
	json_each (offers->prepared, resource, devices) {
		json_t *known = json_object_get(held, resource);
		json_t *all = known ? json_copy(known) : json_object();

		(void)json_object_update(all, devices);
		json_put(held, resource, all);
	}
	return held;
}

static void keep_only(json_t *set, const json_t *names)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(set, next, name, value) if (!json_list_has(names, name))(void)
		json_object_del(set, name);
}

/*
 * The list that was sent just now has nothing of these names. True when the kubelet has said since
 * then what pods have of each.
 */
static bool is_settled(struct offers *offers, const json_t *names)
{
	bool settled = true;
	const json_t *name;
	size_t i;

	keep_only(offers->settled, names);
	keep_only(offers->awaiting, names);
	json_array_foreach (names, i, name)
		settled &= json_object_get(offers->settled, json_string_value(name)) != NULL;
	if (settled || offers->settling != SETTLING_NOT)
		return settled;
	json_array_foreach (names, i, name)
		json_put_bool(offers->awaiting, json_string_value(name), true);
	offers->settling = SETTLING_SENT;
	return false;
}

static void check_sent(struct offers *offers);

static void send_both(struct offers *offers, const json_t *pools)
{
	const struct dra_choice_input input = {
		.pools = pools,
		.chosen = offers->chosen,
		.settled = offers->settled,
		.allocated = offers->allocated,
		.prepared = offers->prepared,
	};
	json_t *refused;
	json_auto_t *names = dra_choice_names(pools, offers->chosen, &refused);
	json_auto_t *plugins = dra_choice_plugins(&input), *claims = dra_choice_claims(&input);
	json_auto_t *message = json_pack("{s:O}", "pools", claims);
	const json_t *name;
	size_t i;

	assert(offers->config.dra && offers->config.publish);
	json_put(message, "boot", json_incref(offers->boot));
	json_array_foreach (refused, i, name) {
		auto_free char *text = NULL;

		if (json_list_has(offers->refused, json_string_value(name)))
			continue;
		text = str_printf("%s cannot be given by claims, and stays with the device plugin: "
				  "only VFs and shared devices can, and no RDMA device in mode "
				  "exclusive; take it out of the annotation",
				  json_string_value(name));
		offers->config.emit(offers->config.arg, true, "ClaimsNotPossible", text);
	}
	json_replace(&offers->refused, refused);
	kubeletd_set(offers->kubeletd, plugins, message);
	if (!is_settled(offers, names))
		check_sent(offers);
	else if (offers->is_sure && offers->allocated && offers->prepared)
		offers->config.publish(offers->config.arg, claims);
}

static void send_pools(struct offers *offers)
{
	json_auto_t *pools = pools_withdraw(offers->pools, offers->withdrawn);

	if (!offers->config.dra)
		kubeletd_set(offers->kubeletd, pools, NULL);
	else if (offers->chosen)
		send_both(offers, pools);
}

void offers_choose(struct offers *offers, const json_t *chosen)
{
	assert(offers->config.dra && chosen);
	json_replace(&offers->chosen, json_incref((json_t *)chosen));
	offers->config.wanted(offers->config.arg);
	offers->config.changed(offers->config.arg);
}

void offers_answer(struct offers *offers, const char *uid, const json_t *claim,
		   const struct err *why)
{
	kubeletd_answer(offers->kubeletd, uid, claim, why);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void on_asked_gpus(void *arg, int64_t id, const char *resource)
{
	const struct offers *offers = arg;

	if (offers->finder && offers->observed)
		gpu_finder_find(offers->finder, id, resource, offers->observed);
	else
		kubeletd_answer_gpus(offers->kubeletd, id, NULL);
}

static void on_gpus_found(void *arg, int64_t id, const json_t *near)
{
	const struct offers *offers = arg;

	kubeletd_answer_gpus(offers->kubeletd, id, near);
}

/* After a change of what pods have, or of the host. */
static void measure_distances(struct offers *offers)
{
	json_auto_t *counts = NULL;
	const char *distance;
	json_t *count;

	json_decref(offers->distances);
	offers->distances = affinity_distances(offers->observed, offers->allocated);
	if (json_array_size(json_at(offers->observed, "gpus")) == 0)
		return;
	counts = affinity_counts(offers->distances);
	json_each (counts, distance, count)
		metric_set(offers->near, json_number_value(count), distance);
}

/* before: what pods had; NULL: not known, so that all of it is old. */
static void tell_missed(struct offers *offers, const json_t *before)
{
	json_auto_t *missed = NULL;
	const json_t *entry;
	size_t i;

	if (!before || !offers->allocated || !offers->pools)
		return;
	missed = affinity_missed(offers->observed, offers->pools, offers->allocated, before);
	json_array_foreach (missed, i, entry)
		offers->config.emit_pod(offers->config.arg, json_str_at(entry, "pod"), "FarFromGpu",
					json_str_at(entry, "message"));
}

static void tell_other_rails(struct offers *offers)
{
	json_auto_t *missed = NULL;
	const json_t *entry;
	size_t i;

	if (!offers->finder || !offers->allocated || !offers->observed)
		return;
	missed = same_rails_missed(offers->observed, offers->allocated,
				   gpu_finder_on_rails(offers->finder));
	json_array_foreach (missed, i, entry)
		offers->config.emit_pod(offers->config.arg, json_str_at(entry, "pod"), "OtherRails",
					json_str_at(entry, "message"));
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void emit_problem(const struct offers *offers, const json_t *problem)
{
	static const char *const words[POOL_SOURCES] = {
		[POOL_SOURCE_SHARED] = POOLS_SOURCE_SHARED,
		[POOL_SOURCE_LIST] = POOLS_SOURCE_LIST,
		[POOL_SOURCE_DEV_FILES] = POOLS_SOURCE_DEV_FILES,
	};
	const char *reason = json_str_at(problem, "reason");
	const char *message = json_str_or(json_at(problem, "message"), "");
	const char *pod = json_str_at(problem, "pod");

	offers->config.emit(offers->config.arg, true, reason, message);
	/* Without one, or with the SR-IOV policies, it is about no source of ours. */
	for (int i = 0; i < POOL_SOURCES; i++)
		if (str_eq(json_str_at(problem, "source"), words[i]))
			pool_sources_tell(offers->sources, (enum pool_source)i, reason, message);
	if (pod)
		offers->config.emit_pod(offers->config.arg, pod, reason, message);
}

/*
 * Before spec and configurations are known, a pool that is not wanted looks like one that is not
 * known yet. That counts where something is offered already, which would be taken away: by the
 * server, or in slices.
 */
static bool is_sure(const struct offers *offers, bool is_known)
{
	return is_known && pool_sources_are_known(offers->sources);
}

/* While it is unknown what pods have, what they were given stays. */
static void check_given(struct offers *offers, const json_t *before, const char *boot)
{
	json_auto_t *given = NULL;

	if (offers->allocated)
		given = pools_given(before, offers->allocated, offers->pools, boot);
	pools_check_given(offers->pools, given ? given : before);
	if (given && !json_same(given, before))
		offers->config.given(offers->config.arg, given);
}

void offers_set(struct offers *offers, const json_t *spec, const json_t *observed, bool is_known,
		const json_t *given)
{
	json_auto_t *dev_names = NULL, *before = NULL, *fresh = NULL;
	json_t *problem;
	size_t i;

	/* Before the first scan it is unknown which pools have devices. */
	if (!offers->is_ready || !observed || (offers->has_before && !is_sure(offers, is_known)) ||
	    (offers->config.dra && !offers->chosen))
		return;
	dev_names = dev_names_read(offers->config.host_root);
	before = offers->pools;
	offers->pools = pools_compute(&(struct pools_input){
		.prefix = offers->config.options.resource_prefix,
		.spec = spec,
		.observed = observed,
		.resource_list = pool_sources_get(offers->sources, POOL_SOURCE_LIST),
		.shared = pool_sources_get(offers->sources, POOL_SOURCE_SHARED),
		.dev_files = pool_sources_get(offers->sources, POOL_SOURCE_DEV_FILES),
		.dev_names = dev_names,
		.allocated = offers->held,
		.before = before,
		.packed = offers->config.options.packed,
		.job_files = offers->config.options.job_files,
	});
	offers->is_sure = is_sure(offers, is_known);
	json_replace(&offers->observed, json_incref((json_t *)observed));
	measure_distances(offers);
	json_replace(&offers->boot, json_incref(json_at(observed, "node", "bootId")));
	check_given(offers, given, json_str_at(observed, "node", "bootId"));
	send_pools(offers);
	fresh = pools_new_problems(offers->pools, before);
	json_array_foreach (fresh, i, problem)
		emit_problem(offers, problem);
}

/* ---- what pods hold -------------------------------------------------------------------------- */

static void tell_held(struct offers *offers)
{
	json_auto_t *functions = NULL;

	json_replace(&offers->held, held_by_both(offers, offers->allocated));
	functions = offers->held ? observed_functions(offers->held) : NULL;
	offers->config.held(offers->config.arg, functions);
	offers->config.wanted(offers->config.arg);
}

static void on_kubelet_listed(void *arg, const json_t *allocated, const struct err *err)
{
	struct offers *offers = arg;
	json_auto_t *before = offers->allocated;

	if (err) {
		log_warn("not touching VFs until the kubelet lists the devices of pods",
			 F_ERR(err));
		offers->config.emit(offers->config.arg, true, err->reason, err->text);
	}
	offers->allocated = json_incref((json_t *)allocated);
	measure_distances(offers);
	tell_missed(offers, before);
	tell_other_rails(offers);
	tell_held(offers);
}

/* What claims have; the server's word on its own files. */
static void take_prepared(struct offers *offers)
{
	const json_t *prepared = kubeletd_prepared(offers->kubeletd);

	if (!offers->config.dra || json_same(prepared, offers->prepared))
		return;
	json_replace(&offers->prepared, json_incref((json_t *)prepared));
	if (offers->allocated)
		tell_held(offers);
}

static void on_given(void *arg)
{
	const struct offers *offers = arg;

	if (offers->resources)
		pod_resources_given(offers->resources);
}

/* ---- withdrawing ----------------------------------------------------------------------------- */

/* Once the server has sent the list, nothing of it is allocated: it refuses what is unhealthy. */
static void check_sent(struct offers *offers)
{
	if ((offers->withdrawing != WITHDRAWING_SENT && offers->settling != SETTLING_SENT) ||
	    !offers->is_ready || !kubeletd_has_all(offers->kubeletd))
		return;
	if (offers->withdrawing == WITHDRAWING_SENT)
		offers->withdrawing = WITHDRAWING_ASKS;
	if (offers->settling == SETTLING_SENT)
		offers->settling = SETTLING_ASKS;
	if (offers->resources)
		pod_resources_check(offers->resources);
	else
		deferred_run(offers->nobody_asked);
}

static void on_checked(void *arg)
{
	struct offers *offers = arg;
	json_auto_t *named = NULL, *served = NULL;

	/*
	 * Its answer is to the last question that was put: to ours as well as to that of a
	 * withdrawal.
	 */
	if (offers->is_looking) {
		served = pools_names(offers->pools);
		named = held_by_both(offers, offers->resources
						     ? pod_resources_named(offers->resources)
						     : offers->allocated);
		offers->is_looking = false;
		offers->config.devices(offers->config.arg, named, served);
	}
	if (offers->settling == SETTLING_ASKS) {
		offers->settling = SETTLING_NOT;
		(void)json_object_update(offers->settled, offers->awaiting);
		(void)json_object_clear(offers->awaiting);
		offers->config.wanted(offers->config.arg);
	}
	if (offers->withdrawing != WITHDRAWING_ASKS)
		return;
	offers->withdrawing = WITHDRAWING_NOT;
	offers->config.withdrawn(offers->config.arg);
}

void offers_look_at_devices(struct offers *offers)
{
	assert(offers->config.devices);
	offers->is_looking = true;
	if (offers->resources)
		pod_resources_check(offers->resources);
	else
		deferred_run(offers->nobody_asked);
}

void offers_withdraw(struct offers *offers, const json_t *devices)
{
	json_replace(&offers->withdrawn, json_incref((json_t *)devices));
	if (offers->is_ready && offers->pools)
		send_pools(offers);
	offers->withdrawing = devices ? WITHDRAWING_SENT : WITHDRAWING_NOT;
	check_sent(offers);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void on_ready(void *arg, const json_t *pools)
{
	struct offers *offers = arg;

	assert(!offers->is_ready && !offers->pools);
	offers->is_ready = true;
	offers->has_before = pools != NULL;
	offers->pools = json_incref((json_t *)pools);
	take_prepared(offers);
	if (pools && offers->withdrawn)
		send_pools(offers);
	check_sent(offers);
	offers->config.wanted(offers->config.arg);
}

static void on_plugins_changed(void *arg)
{
	struct offers *offers = arg;

	take_prepared(offers);
	check_sent(offers);
	offers->config.changed(offers->config.arg);
}

static void on_sources_changed(void *arg)
{
	const struct offers *offers = arg;

	offers->config.wanted(offers->config.arg);
	offers->config.changed(offers->config.arg);
}

static void emit_event(void *arg, bool warning, const char *reason, const char *message)
{
	const struct offers *offers = arg;

	offers->config.emit(offers->config.arg, warning, reason, message);
}

static void on_wrong(void *arg, const struct event_object *config_map, const char *reason,
		     const char *message)
{
	const struct offers *offers = arg;

	offers->config.wrong(offers->config.arg, config_map, reason, message);
}

static void on_asked(void *arg, const json_t *claim)
{
	const struct offers *offers = arg;

	offers->config.asked(offers->config.arg, claim);
}

static void on_lost(void *arg, const struct err *err)
{
	const struct offers *offers = arg;

	log_error("connection to kubeletd is lost", F_ERR(err));
	offers->config.lost(offers->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int on_connect(void *arg)
{
	const struct offers *offers = arg;

	return offers->config.connect(offers->config.arg);
}

static void start_plugins(struct offers *offers)
{
	auto_free char *socket =
		str_below(offers->config.kubelet_dir, "pod-resources/kubelet.sock");

	offers->kubeletd = kubeletd_new(&(struct kubeletd_config){
		.loop = offers->config.loop,
		.fd = offers->config.kubeletd,
		.ready = on_ready,
		.changed = on_plugins_changed,
		.emit = emit_event,
		.allocated = on_given,
		.asked = offers->config.dra ? on_asked : NULL,
		.asked_gpus = on_asked_gpus,
		.lost = on_lost,
		.arg = offers,
		.metrics = offers->config.metrics,
	});
	offers->nobody_asked = deferred_new(offers->config.loop, on_checked, offers);
	if (offers->config.no_kubelet) {
		offers->allocated = json_object();
		offers->held = held_by_both(offers, offers->allocated);
		offers->config.held(offers->config.arg, offers->held);
		return;
	}
	offers->finder = gpu_finder_new(&(struct gpu_finder_config){
		.loop = offers->config.loop,
		.client = offers->config.client,
		.node = offers->config.node,
		.socket = socket,
		.connect = on_connect,
		.found = on_gpus_found,
		.arg = offers,
	});
	offers->resources =
		pod_resources_new(offers->config.loop, &(struct pod_resources_config){
							       .socket = socket,
							       .connect = on_connect,
							       .changed = on_kubelet_listed,
							       .checked = on_checked,
							       .arg = offers,
						       });
}

struct offers *offers_new(const struct offers_config *config)
{
	struct offers *offers = mem_new(struct offers);

	assert(config->loop && config->client && config->changed && config->held &&
	       config->withdrawn && config->emit && config->wanted);
	assert(config->kubeletd >= 0 && config->kubelet_dir && config->options.resource_prefix);
	offers->config = *config;
	offers->settled = json_object();
	offers->awaiting = json_object();
	offers->refused = json_array();
	offers->near = metric_gauge(
		config->metrics, "orbweaver_gpu_affinity_devices",
		"Devices of pods that hold GPUs, by distance to the nearest GPU of the pod.",
		"distance");
	start_plugins(offers);
	offers->sources = pool_sources_new(&(struct pool_sources_config){
		.loop = config->loop,
		.client = config->client,
		.ns = config->ns,
		.from =
			{
				[POOL_SOURCE_SHARED] = config->options.shared_config,
				[POOL_SOURCE_LIST] = config->options.device_config,
				[POOL_SOURCE_DEV_FILES] = config->options.dev_files,
			},
		.changed = on_sources_changed,
		.emit = emit_event,
		.wrong = on_wrong,
		.arg = offers,
		.metrics = config->metrics,
	});
	return offers;
}

void offers_free(struct offers *offers)
{
	if (!offers)
		return;
	pool_sources_free(offers->sources);
	gpu_finder_free(offers->finder);
	pod_resources_free(offers->resources);
	deferred_free(offers->nobody_asked);
	kubeletd_free(offers->kubeletd);
	json_decref(offers->allocated);
	json_decref(offers->observed);
	json_decref(offers->distances);
	json_decref(offers->pools);
	json_decref(offers->withdrawn);
	json_decref(offers->prepared);
	json_decref(offers->held);
	json_decref(offers->chosen);
	json_decref(offers->boot);
	json_decref(offers->settled);
	json_decref(offers->awaiting);
	json_decref(offers->refused);
	mem_free(offers);
}

json_t *offers_status(const struct offers *offers, const json_t *before)
{
	json_auto_t *plugins = kubeletd_status(offers->kubeletd);
	json_auto_t *given = dra_choice_status(offers->pools, offers->chosen);
	json_t *status = pools_status(plugins, given, offers->allocated, before);

	affinity_show(status, offers->distances);
	return status;
}

const json_t *offers_allocated(const struct offers *offers)
{
	return offers->held;
}

const json_t *offers_resources(const struct offers *offers)
{
	return json_at(offers->pools, "resources");
}

const char *offers_why_not_up(const struct offers *offers)
{
	if (!pool_sources_are_known(offers->sources))
		return "configurations of devices are not known yet";
	if (offers->config.no_kubelet)
		return NULL;
	/*
	 * Who has made way for a successor stays up: at an update an agent that is not is removed
	 * before the other is.
	 */
	return kubeletd_are_served(offers->kubeletd)
		       ? NULL
		       : "the kubelet does not have all resources yet";
}

json_t *offers_failures(const struct offers *offers)
{
	json_t *list = pool_sources_failures(offers->sources);

	pools_add_faults(offers->pools, list);
	return list;
}

/*
 * Pools, device plugins and the kubelet's own records, put together. See the header.
 */
#include "nodeagent/agent/offers.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/dev_names.h"
#include "nodeagent/agent/pool_sources.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/kubeletd/client.h"
#include "nodeagent/plugins/pod_resources.h"
#include "nodeagent/pools/pools.h"

/* Of offers_withdraw(). */
enum withdrawing {
	WITHDRAWING_NOT,
	WITHDRAWING_SENT, /* the server has still to send the list */
	WITHDRAWING_ASKS, /* the kubelet has still to say what pods have */
};

struct offers {
	struct offers_config config;
	struct pool_sources *sources;
	struct kubeletd *kubeletd;
	bool is_ready;                   /* the server is there */
	bool has_before;                 /* it offers what an agent before us said */
	struct pod_resources *resources; /* NULL: no kubelet … */
	struct deferred *nobody_asked;   /* … and nobody to ask again */
	json_t *allocated;               /* as the kubelet says; NULL: not known */
	bool is_looking;                 /* offers_look_at_devices() waits for an answer */
	json_t *pools;                   /* computed last, by us or by an agent before us */
	json_t *withdrawn;               /* functions of offers_withdraw(); NULL: none */
	enum withdrawing withdrawing;
};

static void send_pools(struct offers *offers)
{
	json_auto_t *pools = pools_withdraw(offers->pools, offers->withdrawn);

	kubeletd_set(offers->kubeletd, pools);
}

/* source: of a problem; NULL, and the SR-IOV policies, are no source of ours. */
static void tell_source(const struct offers *offers, const char *source, const char *reason,
			const char *message)
{
	static const char *const words[POOL_SOURCES] = {
		[POOL_SOURCE_SHARED] = POOLS_SOURCE_SHARED,
		[POOL_SOURCE_LIST] = POOLS_SOURCE_LIST,
		[POOL_SOURCE_DEV_FILES] = POOLS_SOURCE_DEV_FILES,
	};

	for (int i = 0; source && i < POOL_SOURCES; i++)
		if (str_eq(source, words[i]))
			pool_sources_tell(offers->sources, (enum pool_source)i, reason, message);
}

static void tell_problem(const struct offers *offers, const json_t *problem)
{
	const char *reason = json_str_at(problem, "reason");
	const char *message = json_str_or(json_at(problem, "message"), "");
	const char *pod = json_str_at(problem, "pod");

	offers->config.told(offers->config.arg, true, reason, message);
	tell_source(offers, json_str_at(problem, "source"), reason, message);
	if (pod)
		offers->config.told_pod(offers->config.arg, pod, reason, message);
}

/* Each problem is told once, when it comes up. */
static void tell_problems(struct offers *offers, const json_t *before)
{
	const json_t *problem, *old;
	size_t i, k;

	json_array_foreach (json_at(offers->pools, "problems"), i, problem) {
		bool is_known = false;

		json_array_foreach (json_at(before, "problems"), k, old)
			is_known |= json_same(old, problem);
		if (!is_known)
			tell_problem(offers, problem);
	}
}

/*
 * Before the first look nobody can tell a pool without devices from one whose devices were not seen
 * yet; before spec and configurations are known, one that is not wanted from one that is not known
 * yet. The latter counts where something is offered already, which would be taken away.
 */
static bool is_sure(const struct offers *offers, const json_t *observed, bool is_known)
{
	return observed &&
	       (!offers->has_before || (is_known && pool_sources_are_known(offers->sources)));
}

/* While nobody can say what pods have, what they were given stays. */
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
	json_auto_t *dev_names = NULL;
	json_auto_t *before = NULL;

	if (!offers->is_ready || !is_sure(offers, observed, is_known))
		return;
	dev_names = dev_names_read(offers->config.host_root);
	before = offers->pools;
	offers->pools = pools_compute(&(struct pools_input){
		.prefix = offers->config.resource_prefix,
		.spec = spec,
		.observed = observed,
		.resource_list = pool_sources_get(offers->sources, POOL_SOURCE_LIST),
		.shared = pool_sources_get(offers->sources, POOL_SOURCE_SHARED),
		.dev_files = pool_sources_get(offers->sources, POOL_SOURCE_DEV_FILES),
		.dev_names = dev_names,
		.allocated = offers->allocated,
		.before = before,
		.packed = offers->config.packed,
	});
	check_given(offers, given, json_str_at(observed, "node", "bootId"));
	send_pools(offers);
	tell_problems(offers, before);
}

/* ---- what pods hold -------------------------------------------------------------------------- */

/* "ns/pod/container" → "ns/pod". */
static json_t *pod_of(const char *holder)
{
	const char *slash = strchr(holder, '/');

	slash = slash ? strchr(slash + 1, '/') : NULL;
	return slash ? json_stringn(holder, (size_t)(slash - holder)) : json_string(holder);
}

static json_t *held_functions(const json_t *allocated)
{
	json_t *held = json_object();
	const char *resource, *id;
	json_t *devices, *holder;

	json_each (allocated, resource, devices)
		json_each (devices, id, holder)
			if (pci_address_is_valid(id))
				json_put(held, id, pod_of(json_str_or(holder, "")));
	return held;
}

static void on_allocated(void *arg, const json_t *allocated, const struct err *err)
{
	struct offers *offers = arg;
	json_auto_t *held = allocated ? held_functions(allocated) : NULL;

	if (err) {
		log_warn("not touching VFs until the kubelet lists the devices of pods",
			 F_ERR(err));
		offers->config.told(offers->config.arg, true, err->reason, err->text);
	}
	json_decref(offers->allocated);
	offers->allocated = json_incref((json_t *)allocated);
	offers->config.held(offers->config.arg, held);
	offers->config.wanted(offers->config.arg);
}

static void on_given(void *arg)
{
	const struct offers *offers = arg;

	if (offers->resources)
		pod_resources_refresh(offers->resources);
}

/* ---- withdrawing ----------------------------------------------------------------------------- */

/* Once the server has sent the list, nothing of it is given away: it refuses what is unhealthy. */
static void check_sent(struct offers *offers)
{
	if (offers->withdrawing != WITHDRAWING_SENT || !offers->is_ready ||
	    !kubeletd_has_all(offers->kubeletd))
		return;
	offers->withdrawing = WITHDRAWING_ASKS;
	if (offers->resources)
		pod_resources_check(offers->resources);
	else
		deferred_run(offers->nobody_asked);
}

/* Its answer is to the last question that was put: to ours as well as to that of a withdrawal. */
static void report_devices(struct offers *offers)
{
	const json_t *named =
		offers->resources ? pod_resources_named(offers->resources) : offers->allocated;

	if (!offers->is_looking)
		return;
	offers->is_looking = false;
	offers->config.devices(offers->config.arg, named);
}

static void on_checked(void *arg)
{
	struct offers *offers = arg;

	report_devices(offers);
	if (offers->withdrawing != WITHDRAWING_ASKS)
		return;
	offers->withdrawing = WITHDRAWING_NOT;
	offers->config.withdrawn(offers->config.arg);
}

void offers_look_at_devices(struct offers *offers)
{
	offers->is_looking = true;
	if (offers->resources)
		pod_resources_check(offers->resources);
	else
		deferred_run(offers->nobody_asked);
}

void offers_withdraw(struct offers *offers, const json_t *devices)
{
	json_decref(offers->withdrawn);
	offers->withdrawn = json_incref((json_t *)devices);
	if (offers->is_ready && offers->pools)
		send_pools(offers);
	offers->withdrawing = devices ? WITHDRAWING_SENT : WITHDRAWING_NOT;
	check_sent(offers);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void on_ready(void *arg, const json_t *pools)
{
	struct offers *offers = arg;

	offers->is_ready = true;
	offers->has_before = pools != NULL;
	offers->pools = json_incref((json_t *)pools);
	if (pools && offers->withdrawn)
		send_pools(offers);
	check_sent(offers);
	offers->config.wanted(offers->config.arg);
}

static void on_plugins_changed(void *arg)
{
	struct offers *offers = arg;

	check_sent(offers);
	offers->config.changed(offers->config.arg);
}

static void on_sources_changed(void *arg)
{
	const struct offers *offers = arg;

	offers->config.wanted(offers->config.arg);
	offers->config.changed(offers->config.arg);
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	const struct offers *offers = arg;

	offers->config.told(offers->config.arg, warning, reason, message);
}

static void on_wrong(void *arg, const struct event_object *config_map, const char *reason,
		     const char *message)
{
	const struct offers *offers = arg;

	offers->config.wrong(offers->config.arg, config_map, reason, message);
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
		.told = on_told,
		.allocated = on_given,
		.lost = on_lost,
		.arg = offers,
		.metrics = offers->config.metrics,
	});
	offers->nobody_asked = deferred_new(offers->config.loop, on_checked, offers);
	if (offers->config.no_kubelet) {
		offers->allocated = json_object();
		offers->config.held(offers->config.arg, offers->allocated);
		return;
	}
	offers->resources = pod_resources_new(offers->config.loop, &(struct pod_resources_config){
									   .socket = socket,
									   .connect = on_connect,
									   .changed = on_allocated,
									   .checked = on_checked,
									   .arg = offers,
								   });
}

struct offers *offers_new(const struct offers_config *config)
{
	struct offers *offers = mem_new(struct offers);

	assert(config->loop && config->client && config->changed && config->held &&
	       config->withdrawn && config->told);
	offers->config = *config;
	start_plugins(offers);
	offers->sources = pool_sources_new(&(struct pool_sources_config){
		.loop = config->loop,
		.client = config->client,
		.ns = config->ns,
		.from =
			{
				[POOL_SOURCE_SHARED] = config->shared_config,
				[POOL_SOURCE_LIST] = config->device_config,
				[POOL_SOURCE_DEV_FILES] = config->dev_files,
			},
		.changed = on_sources_changed,
		.told = on_told,
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
	pod_resources_free(offers->resources);
	deferred_free(offers->nobody_asked);
	kubeletd_free(offers->kubeletd);
	json_decref(offers->allocated);
	json_decref(offers->pools);
	json_decref(offers->withdrawn);
	mem_free(offers);
}

json_t *offers_status(const struct offers *offers, const json_t *before)
{
	json_auto_t *plugins = kubeletd_status(offers->kubeletd);

	return pools_status(plugins, offers->allocated, before);
}

const json_t *offers_allocated(const struct offers *offers)
{
	return offers->allocated;
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
	json_t *list = pool_sources_failures(offers->sources), *problem;
	size_t i;

	json_array_foreach (json_at(offers->pools, "problems"), i, problem) {
		const char *reason = json_str_at(problem, "reason");
		json_t *entry;

		/* Pods get the device all the same; one configuration is for different nodes. */
		if (str_eq(reason, "RdmaFilesMissing") || str_eq(reason, "NothingSelected"))
			continue;
		entry = json_object();
		json_put_str(entry, "reason", reason);
		json_put_str(entry, "message", json_str_at(problem, "message"));
		json_array_append_new(list, entry);
	}
	return list;
}

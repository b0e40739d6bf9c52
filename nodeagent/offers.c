/*
 * Pools, device plugins and the kubelet's own records, put together. See the header.
 */
#include "nodeagent/offers.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/dev_names.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/kubelet/pools.h"
#include "nodeagent/plugind/client.h"
#include "nodeagent/pool_sources.h"

struct offers {
	struct offers_config config;
	char *dev_dir;
	struct pool_sources *sources;
	struct plugind *plugind;
	bool is_ready;   /* the server is there */
	bool has_before; /* it offers what an agent before us said */
	struct pod_resources *resources;
	json_t *allocated; /* as the kubelet says; NULL: not known */
	json_t *pools;     /* computed last, by us or by an agent before us */
};

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
			offers->config.told(offers->config.arg, true,
					    json_str_or(json_at(problem, "reason"), "BadPool"),
					    json_str_or(json_at(problem, "message"), ""));
	}
}

/*
 * Before the first look nobody can tell a pool without devices from one whose devices were not seen yet; before spec and
 * configurations are known, one that is not wanted from one that is not known yet. The latter counts where something is offered
 * already, which would be taken away.
 */
static bool is_sure(const struct offers *offers, const json_t *observed, bool is_known)
{
	return observed &&
	       (!offers->has_before || (is_known && pool_sources_are_known(offers->sources)));
}

void offers_set(struct offers *offers, const json_t *spec, const json_t *observed, bool is_known)
{
	json_auto_t *dev_names = NULL;
	json_auto_t *before = NULL;

	if (!offers->is_ready || !is_sure(offers, observed, is_known))
		return;
	dev_names = dev_names_read(offers->dev_dir);
	before = offers->pools;
	offers->pools = pools_compute(&(struct pools_input){
		.prefix = offers->config.options->resource_prefix,
		.spec = spec,
		.observed = observed,
		.resource_list = pool_sources_get(offers->sources, POOL_SOURCE_LIST),
		.shared = pool_sources_get(offers->sources, POOL_SOURCE_SHARED),
		.dev_files = pool_sources_get(offers->sources, POOL_SOURCE_DEV_FILES),
		.dev_names = dev_names,
		.allocated = offers->allocated,
		.before = before,
		.packed = offers->config.options->packed,
	});
	plugind_set(offers->plugind, offers->pools);
	tell_problems(offers, before);
}

/* ---- what pods hold --------------------------------------------------------------------------------------------------- */

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

	if (err)
		log_info("kubelet does not tell which pods have which devices; what the host shows "
			 "has to do",
			 F_ERR(err));
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

/* ---- callbacks -------------------------------------------------------------------------------------------------------- */

static void on_ready(void *arg, const json_t *pools)
{
	struct offers *offers = arg;

	offers->is_ready = true;
	offers->has_before = pools != NULL;
	offers->pools = json_incref((json_t *)pools);
	offers->config.wanted(offers->config.arg);
}

static void on_plugins_changed(void *arg)
{
	const struct offers *offers = arg;

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

static void on_lost(void *arg, const struct err *err)
{
	const struct offers *offers = arg;

	log_error("the process that serves the kubelet is lost", F_ERR(err));
	offers->config.lost(offers->config.arg);
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static void start_plugins(struct offers *offers)
{
	const struct agent_options *options = offers->config.options;
	auto_free char *socket = str_below(options->kubelet_dir, "pod-resources/kubelet.sock");

	offers->dev_dir = str_below(options->host_root, "dev");
	offers->plugind = plugind_new(&(struct plugind_config){
		.loop = offers->config.loop,
		.fd = offers->config.plugind,
		.ready = on_ready,
		.changed = on_plugins_changed,
		.told = on_told,
		.allocated = on_given,
		.lost = on_lost,
		.arg = offers,
		.metrics = offers->config.metrics,
	});
	offers->resources = pod_resources_new(offers->config.loop, &(struct pod_resources_config){
									   .socket = socket,
									   .changed = on_allocated,
									   .arg = offers,
								   });
}

struct offers *offers_new(const struct offers_config *config)
{
	struct offers *offers = mem_new(struct offers);

	offers->config = *config;
	start_plugins(offers);
	offers->sources = pool_sources_new(&(struct pool_sources_config){
		.loop = config->loop,
		.client = config->client,
		.ns = config->options->ns,
		.from =
			{
				[POOL_SOURCE_SHARED] = config->options->shared_config,
				[POOL_SOURCE_LIST] = config->options->device_config,
				[POOL_SOURCE_DEV_FILES] = config->options->dev_files,
			},
		.changed = on_sources_changed,
		.told = on_told,
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
	plugind_free(offers->plugind);
	json_decref(offers->allocated);
	json_decref(offers->pools);
	mem_free(offers->dev_dir);
	mem_free(offers);
}

json_t *offers_status(const struct offers *offers)
{
	json_auto_t *plugins = plugind_status(offers->plugind);

	return pools_status(plugins, offers->allocated);
}

const char *offers_why_not_up(const struct offers *offers)
{
	if (!pool_sources_are_known(offers->sources))
		return "configurations of devices are not known yet";
	/* Who has made way for a successor stays up: at an update an agent that is not is removed before the other is. */
	return plugind_are_served(offers->plugind) ? NULL
						   : "the kubelet does not have all resources yet";
}

json_t *offers_failures(const struct offers *offers)
{
	return pool_sources_failures(offers->sources);
}

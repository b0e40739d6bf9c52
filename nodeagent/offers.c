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
#include "nodeagent/kubelet/device_plugins.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/kubelet/pools.h"
#include "nodeagent/pool_sources.h"

#define DEVINFO_DIR "run/k8s.cni.cncf.io/devinfo/dp"

struct offers {
	struct offers_config config;
	char *dev_dir;
	struct pool_sources *sources;
	struct device_plugins *plugins;
	struct pod_resources *resources;
	json_t *allocated; /* as the kubelet says; NULL: not known */
	json_t *pools;
	void (*closed)(void *arg);
	void *closed_arg;
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

void offers_set(struct offers *offers, const json_t *spec, const json_t *observed)
{
	json_auto_t *dev_names = dev_names_read(offers->dev_dir);
	json_auto_t *before = offers->pools;

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
	/* Before the first look nobody can tell a pool without devices from one whose devices were not seen yet. */
	if (observed)
		device_plugins_set(offers->plugins, offers->pools);
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

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static char *below(const char *dir, const char *path)
{
	return str_printf("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", path);
}

static void start_plugins(struct offers *offers)
{
	const struct agent_options *options = offers->config.options;
	auto_free char *dir = below(options->kubelet_dir, "device-plugins");
	auto_free char *socket = below(options->kubelet_dir, "pod-resources/kubelet.sock");
	auto_free char *devinfo = options->devinfo_dir ? str_dup(options->devinfo_dir)
						       : below(options->host_root, DEVINFO_DIR);

	offers->dev_dir = below(options->host_root, "dev");
	offers->plugins =
		device_plugins_new(offers->config.loop, &(struct device_plugins_config){
								.dir = dir,
								.devinfo_dir = devinfo,
								.changed = on_plugins_changed,
								.told = on_told,
								.allocated = on_given,
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

static void on_closed(void *arg)
{
	struct offers *offers = arg;
	void (*done)(void *arg) = offers->closed;
	void *done_arg = offers->closed_arg;

	json_decref(offers->allocated);
	json_decref(offers->pools);
	mem_free(offers->dev_dir);
	mem_free(offers);
	done(done_arg);
}

void offers_close(struct offers *offers, void (*done)(void *arg), void *arg)
{
	offers->closed = done;
	offers->closed_arg = arg;
	pool_sources_free(take_ptr(offers->sources));
	pod_resources_free(take_ptr(offers->resources));
	device_plugins_close(offers->plugins, on_closed, offers);
}

json_t *offers_status(const struct offers *offers)
{
	json_auto_t *plugins = device_plugins_status(offers->plugins);

	return pools_status(plugins, offers->allocated);
}

const char *offers_why_not_up(const struct offers *offers)
{
	if (!pool_sources_are_known(offers->sources))
		return "configurations of devices are not known yet";
	/* Who has made way for a successor stays up: at an update an agent that is not is removed before the other is. */
	return device_plugins_are_served(offers->plugins)
		       ? NULL
		       : "the kubelet does not have all resources yet";
}

json_t *offers_failures(const struct offers *offers)
{
	return pool_sources_failures(offers->sources);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The machine: listen, give way to a successor, wait for the kubelet, register, be watched; and
 * back to where it broke.
 *
 * Being watched (an open ListAndWatch) is the only proof that the kubelet knows the resource:
 * kubelets have answered Register well and then dropped the plugin (kubernetes#121994). Before a
 * new attempt, streams that are left are ended: kubelets 1.25 to 1.35 take the late end of an old
 * stream for the end of the new registration (kubernetes#127803).
 */
#include "nodeagent/kubelet/plugin.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/kubelet/devinfo.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/plugin_offer.h"
#include "nodeagent/kubelet/plugin_service.h"
#include "nodeagent/kubelet/registration.h"

struct plugin {
	struct loop *loop;
	struct plugin_config config; /* strings are ours */
	char *endpoint;
	char *path;         /* of our socket */
	char *kubelet_path; /* of the kubelet's */
	struct timer *again;
	struct plugin_service *service; /* NULL: not listening */

	json_t *wanted; /* NULL: nothing */
	json_t *offer;  /* plugin_offer.h; NULL: nothing */
	int64_t offer_again_ms;

	struct registration *registration;     /* under way */
	struct plugin_kubelet registered_with; /* with whom we have registered, or are about to */
	struct plugin_kubelet met;             /* with whom the failures were */
	int64_t begun_ms;
	int64_t watched_by_ms; /* registered, and the stream is expected until then; 0: not */
	int64_t retry_ms;
	unsigned int failures;
	int64_t yield_until_ms; /* a successor serves, or did a moment ago */

	char *cause;         /* why we are not registered; NULL when we are */
	char complained[32]; /* reason of the last warning */
	struct metric *registrations, *registered, *devices;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* ---- telling --------------------------------------------------------------------------------- */

/* Takes the text. */
static void set_cause(struct plugin *plugin, char *cause)
{
	str_replace(&plugin->cause, cause);
}

static void complain(struct plugin *plugin, const struct err *err)
{
	if (str_eq(plugin->complained, err->reason))
		return;
	(void)snprintf(plugin->complained, sizeof(plugin->complained), "%s", err->reason);
	log_warn("a resource has trouble", F_STR("resource", plugin->config.resource), F_ERR(err));
	plugin->config.emit(plugin->config.arg, true, err->reason, err->text);
}

static bool yields(const struct plugin *plugin)
{
	return clock_ms() < plugin->yield_until_ms;
}

static bool is_registered(const struct plugin *plugin)
{
	return plugin->service && plugin_service_is_watched(plugin->service) && !yields(plugin);
}

static void show(struct plugin *plugin)
{
	size_t offered, healthy;
	const json_t *device;
	size_t i;

	offered = json_array_size(json_at(plugin->offer, "devices"));
	healthy = 0;
	json_array_foreach (json_at(plugin->offer, "devices"), i, device)
		healthy += json_is_true(json_at(device, "healthy"));
	metric_set(plugin->devices, (double)offered, plugin->config.resource, "offered");
	metric_set(plugin->devices, (double)healthy, plugin->config.resource, "healthy");
	metric_set(plugin->registered, is_registered(plugin) ? 1 : 0, plugin->config.resource);
}

/* ---- the offer ------------------------------------------------------------------------------- */

static void write_devinfo(struct plugin *plugin)
{
	struct err err = {0};

	if (devinfo_write(plugin->config.devinfo_dir, plugin->offer, &err) < 0)
		complain(plugin, &err);
}

static void renew_offer(struct plugin *plugin)
{
	json_t *next = plugin_offer_next(plugin->offer, plugin->wanted, clock_ms(),
					 &plugin->offer_again_ms);
	json_auto_t *before = plugin->offer;

	plugin->offer = next;
	if (json_same(before, next))
		return;
	if (next)
		write_devinfo(plugin);
	else
		devinfo_remove(plugin->config.devinfo_dir, plugin->config.resource);
	/*
	 * While a successor serves, its list is the one that counts: kubelets to 1.24 listen to
	 * both.
	 */
	if (plugin->service)
		plugin_service_offer(plugin->service, next, !yields(plugin));
	show(plugin);
}

void plugin_want(struct plugin *plugin, const json_t *resource)
{
	json_replace(&plugin->wanted, json_incref((json_t *)resource));
	renew_offer(plugin);
	plugin->config.look(plugin->config.arg);
}

/* ---- registration ---------------------------------------------------------------------------- */

static int64_t delay_ms(unsigned int failures)
{
	int64_t delay = failures < 13 ? (int64_t)PLUGIN_RETRY_MS << failures : PLUGIN_RETRY_MAX_MS;

	if (delay > PLUGIN_RETRY_MAX_MS)
		delay = PLUGIN_RETRY_MAX_MS;
	return delay + (int64_t)clock_jitter((uint64_t)delay / 4);
}

static void attempt_failed(struct plugin *plugin, const struct err *why)
{
	metric_add(plugin->registrations, 1, plugin->config.resource, why->reason);
	log_debug("not registered", F_STR("resource", plugin->config.resource), F_ERR(why));
	set_cause(plugin, str_dup(why->text));
	plugin->watched_by_ms = 0;
	plugin->retry_ms = clock_ms() + delay_ms(plugin->failures++);
	/* That the kubelet is away for a moment is not news; that it refuses us is. */
	if (why->class == ERR_INVALID || plugin->failures > PLUGIN_FAILURES_TOLD)
		complain(plugin, why);
}

/* Another beginning: what went wrong before is of no interest. */
static void start_over(struct plugin *plugin)
{
	registration_free(take_ptr(plugin->registration));
	plugin->watched_by_ms = 0;
	plugin->retry_ms = 0;
	plugin->failures = 0;
	plugin->registered_with = (struct plugin_kubelet){0};
	plugin->met = (struct plugin_kubelet){0};
}

static void on_registered(void *arg, const struct err *why)
{
	struct plugin *plugin = arg;

	registration_free(take_ptr(plugin->registration));
	if (why && !plugin_service_is_watched(plugin->service))
		attempt_failed(plugin, why);
	else if (!why && !plugin_service_is_watched(plugin->service))
		plugin->watched_by_ms = clock_ms() + PLUGIN_WATCHED_MS;
	plugin->config.look(plugin->config.arg);
}

static void try_to_register(struct plugin *plugin, const struct plugin_kubelet *kubelet)
{
	const struct registration_config config = {
		.kubelet = plugin->kubelet_path,
		.endpoint = plugin->endpoint,
		.resource = plugin->config.resource,
		.done = on_registered,
		.arg = plugin,
	};
	struct err err = {0};

	plugin->begun_ms = clock_ms();
	plugin->registration = registration_new(plugin->loop, &config, &err);
	if (!plugin->registration) {
		attempt_failed(plugin, &err);
		return;
	}
	plugin->registered_with = *kubelet;
	plugin_service_end_streams(plugin->service);
	set_cause(plugin,
		  str_dup("the kubelet has been told of it and has not asked for the list yet"));
}

/* The kubelet has asked for the list: now it knows us. */
static void on_watched(void *arg)
{
	struct plugin *plugin = arg;

	plugin->watched_by_ms = 0;
	set_cause(plugin, NULL);
	metric_add(plugin->registrations, 1, plugin->config.resource, "ok");
	log_info("resource registered with the kubelet", F_STR("resource", plugin->config.resource),
		 F_INT("devices", (int64_t)json_array_size(json_at(plugin->offer, "devices"))),
		 F_INT("took_ms", clock_ms() - plugin->begun_ms));
	if (plugin->complained[0]) {
		plugin->complained[0] = '\0';
		plugin->config.emit(plugin->config.arg, false, "Registered",
				    "the kubelet serves the resource again");
	}
	plugin->config.look(plugin->config.arg);
}

static void on_unwatched(void *arg, int64_t lasted_ms)
{
	struct plugin *plugin = arg;

	if (lasted_ms >= PLUGIN_STABLE_MS)
		plugin->failures = 0;
	plugin->retry_ms = clock_ms() + (plugin->failures ? delay_ms(plugin->failures) : 0);
	plugin->failures++;
	set_cause(plugin, str_dup("the kubelet has ended ListAndWatch; registering again"));
	log_info("kubelet stopped watching a resource", F_STR("resource", plugin->config.resource),
		 F_INT("lasted_ms", lasted_ms));
	plugin->config.look(plugin->config.arg);
}

static void on_plugin_allocated(void *arg)
{
	struct plugin *plugin = arg;

	plugin->config.allocated(plugin->config.arg);
}

static void on_complaint(void *arg, const struct err *err)
{
	complain(arg, err);
}

static const struct plugin_service_ops service_ops = {
	.watched = on_watched,
	.unwatched = on_unwatched,
	.allocated = on_plugin_allocated,
	.complain = on_complaint,
};

/* ---- looking --------------------------------------------------------------------------------- */

static int listen_up(struct plugin *plugin, struct err *err)
{
	const struct plugin_service_config config = {
		.path = plugin->path,
		.resource = plugin->config.resource,
		.devinfo_dir = plugin->config.devinfo_dir,
		.ops = &service_ops,
		.arg = plugin,
		.questions = plugin->config.questions,
		.metrics = plugin->config.metrics,
	};

	if (plugin->service)
		return plugin_service_keep_socket(plugin->service, err);
	plugin->service = plugin_service_new(plugin->loop, &config, err);
	if (!plugin->service)
		return -1;
	plugin_service_offer(plugin->service, plugin->offer, true);
	return 0;
}

static bool is_same(const struct plugin_kubelet *a, const struct plugin_kubelet *b)
{
	return a->is_there == b->is_there && a->dev == b->dev && a->ino == b->ino &&
	       a->born.tv_sec == b->born.tv_sec && a->born.tv_nsec == b->born.tv_nsec;
}

static void look(struct plugin *plugin, const struct plugin_kubelet *kubelet, int64_t now)
{
	struct err err = {0};

	if (!is_same(&plugin->met, kubelet)) {
		start_over(plugin);
		plugin->met = *kubelet;
	}
	if (plugin->registration)
		return;
	if (is_same(&plugin->registered_with, kubelet) &&
	    plugin_service_is_watched(plugin->service))
		return;
	if (plugin->watched_by_ms > now)
		return;
	if (plugin->watched_by_ms) {
		(void)err_set(&err, ERR_TRANSIENT, "NotWatched",
			      "the kubelet took the registration and did not ask for the list "
			      "within %d s",
			      PLUGIN_WATCHED_MS / 1000);
		attempt_failed(plugin, &err);
	}
	if (plugin->retry_ms <= now)
		try_to_register(plugin, kubelet);
}

static void schedule(struct plugin *plugin, int64_t now)
{
	const int64_t times[] = {plugin->offer_again_ms, plugin->watched_by_ms, plugin->retry_ms,
				 plugin->yield_until_ms};
	int64_t next = -1;

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] > now && (next < 0 || times[i] < next))
			next = times[i];
	if (next < 0)
		timer_stop(plugin->again);
	else
		timer_start(plugin->again, next - now);
}

void plugin_look(struct plugin *plugin, const struct plugin_kubelet *kubelet, bool has_successor)
{
	int64_t now = clock_ms();
	struct err err = {0};

	if (plugin->offer_again_ms >= 0 && plugin->offer_again_ms <= now)
		renew_offer(plugin);
	if (has_successor)
		plugin->yield_until_ms = now + PLUGIN_SUCCESSOR_GONE_MS;
	if (listen_up(plugin, &err) < 0) {
		start_over(plugin);
		set_cause(plugin, str_dup(err.text));
		complain(plugin, &err);
	} else if (now < plugin->yield_until_ms) {
		start_over(plugin);
		set_cause(plugin, str_dup("a newer agent on this node serves it"));
	} else if (!kubelet->is_there) {
		start_over(plugin);
		set_cause(plugin, str_printf("%s is not there: is the kubelet running?",
					     plugin->kubelet_path));
	} else {
		look(plugin, kubelet, now);
	}
	schedule(plugin, now);
	show(plugin);
}

bool plugin_is_over(const struct plugin *plugin)
{
	return !plugin->wanted && !plugin->offer;
}

const char *plugin_resource(const struct plugin *plugin)
{
	return plugin->config.resource;
}

bool plugin_is_served(const struct plugin *plugin)
{
	return is_registered(plugin) || yields(plugin);
}

json_t *plugin_status(const struct plugin *plugin)
{
	const char *cause = plugin->cause ? plugin->cause : "";
	json_t *status = pools_resource_status(plugin->offer, is_registered(plugin) ? NULL : cause);

	/* It has a name before it has an offer. */
	json_put_str(status, "name", plugin->config.resource);
	return status;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void on_again(void *arg)
{
	struct plugin *plugin = arg;

	plugin->config.look(plugin->config.arg);
}

struct plugin *plugin_new(struct loop *loop, const struct plugin_config *config)
{
	struct plugin *plugin = mem_new(struct plugin);
	struct metrics *metrics;

	assert(config->look && config->emit && config->allocated);
	plugin->loop = loop;
	plugin->config = *config;
	plugin->config.dir = str_dup(config->dir);
	plugin->config.devinfo_dir = str_dup(config->devinfo_dir);
	plugin->config.resource = str_dup(config->resource);
	plugin->config.instance = str_dup(config->instance);
	plugin->endpoint = endpoint_name(config->resource, config->instance);
	plugin->path = str_printf("%s/%s", config->dir, plugin->endpoint);
	plugin->kubelet_path = str_printf("%s/kubelet.sock", config->dir);
	plugin->again = timer_new(loop, on_again, plugin);
	plugin->offer_again_ms = -1;
	metrics = plugin->config.metrics;
	plugin->registrations =
		metric_counter(metrics, "orbweaver_kubelet_registrations_total",
			       "Registrations with the kubelet; result is ok or what went wrong.",
			       "resource,result");
	plugin->registered = metric_gauge(metrics, "orbweaver_kubelet_registered",
					  "1 while the kubelet watches the resource.", "resource");
	plugin->devices = metric_gauge(metrics, "orbweaver_kubelet_devices",
				       "Devices that the kubelet is told of.", "resource,state");
	return plugin;
}

static void plugin_free(void *arg)
{
	struct plugin *plugin = arg;
	void (*closed)(void *arg) = plugin->closed;
	void *closed_arg = plugin->closed_arg;

	json_decref(plugin->wanted);
	json_decref(plugin->offer);
	mem_free((char *)plugin->config.dir);
	mem_free((char *)plugin->config.devinfo_dir);
	mem_free((char *)plugin->config.resource);
	mem_free((char *)plugin->config.instance);
	mem_free(plugin->endpoint);
	mem_free(plugin->path);
	mem_free(plugin->kubelet_path);
	mem_free(plugin->cause);
	mem_free(plugin);
	closed(closed_arg);
}

void plugin_close(struct plugin *plugin, void (*done)(void *arg), void *arg)
{
	assert(done && !plugin->closed);
	plugin->closed = done;
	plugin->closed_arg = arg;
	registration_free(take_ptr(plugin->registration));
	timer_free(plugin->again);
	metric_remove(plugin->devices, plugin->config.resource, "offered");
	metric_remove(plugin->devices, plugin->config.resource, "healthy");
	metric_remove(plugin->registered, plugin->config.resource);
	plugin_service_close(plugin->service, plugin->loop, plugin_free, plugin);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The set of plugins, and the directory that they share with the kubelet.
 *
 * Whatever happens (a name in the directory, a stream's end, a timer) leads to one look at
 * everything, in the next turn: what is at kubelet.sock, who else serves, whether our sockets are
 * there. Notifications make that quick, a slow poll makes it certain.
 */
#include "nodeagent/kubelet/device_plugins.h"

#include <sys/stat.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/dir_watch.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/plugin.h"

/*
 * Between looks when nothing happens, and while there is no directory, whose return is not
 * notified.
 */
#define LOOK_MS         1000
#define LOOK_MISSING_MS 200

struct entry {
	struct device_plugins *plugins;
	struct plugin *plugin;
	struct entry *next;
};

struct device_plugins {
	struct loop *loop;
	struct device_plugins_config config; /* strings are ours */
	char instance[ENDPOINT_INSTANCE_LEN + 1];
	struct entry *entries; /* sorted by name */
	size_t n_closing;      /* plugins that are on their way out */
	json_t *pools;         /* what was set last */
	json_t *status;        /* what was reported last */
	struct endpoint_others others;
	struct dir_watch *watch;
	struct deferred *look;
	struct timer *poll;
	bool complained; /* the directory could not be read */
	bool is_removed; /* the directory was, and that was reported */
	bool is_closing;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- looking --------------------------------------------------------------------------------- */

static struct plugin_kubelet see_kubelet(const struct device_plugins *plugins)
{
	auto_free char *path = str_printf("%s/kubelet.sock", plugins->config.dir);
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (struct plugin_kubelet){0};
	return (struct plugin_kubelet){true, st.st_dev, st.st_ino, st.st_mtim};
}

/* No other agent is known when the directory cannot be read. */
static void see_others(struct device_plugins *plugins)
{
	struct err err = {0};

	if (endpoint_scan(plugins->config.dir, plugins->instance, &plugins->others, &err) == 0) {
		plugins->complained = false;
		return;
	}
	endpoint_others_done(&plugins->others);
	if (!plugins->complained)
		log_warn("cannot read the kubelet's directory", F_ERR(&err));
	plugins->complained = true;
}

static void report_changes(struct device_plugins *plugins)
{
	json_t *status = device_plugins_status(plugins);

	if (json_same(status, plugins->status)) {
		json_decref(status);
		return;
	}
	json_replace(&plugins->status, status);
	if (plugins->config.changed)
		plugins->config.changed(plugins->config.arg);
}

static void on_plugin_closed(void *arg)
{
	struct device_plugins *plugins = arg;

	plugins->n_closing--;
	deferred_run(plugins->look);
}

static void close_entry(struct device_plugins *plugins, struct entry **place)
{
	struct entry *entry = *place;

	*place = entry->next;
	plugins->n_closing++;
	plugin_close(entry->plugin, on_plugin_closed, plugins);
	mem_free(entry);
}

static void finish(struct device_plugins *plugins)
{
	void (*done)(void *arg) = plugins->done;
	void *done_arg = plugins->done_arg;

	dir_watch_free(plugins->watch);
	deferred_free(plugins->look);
	timer_free(plugins->poll);
	endpoint_others_done(&plugins->others);
	json_decref(plugins->pools);
	json_decref(plugins->status);
	mem_free((char *)plugins->config.dir);
	mem_free((char *)plugins->config.devinfo_dir);
	mem_free(plugins);
	if (done)
		done(done_arg);
}

static void look(void *arg)
{
	struct device_plugins *plugins = arg;
	struct plugin_kubelet kubelet;
	bool has_dir;
	struct stat st;

	if (plugins->is_closing) {
		if (plugins->n_closing == 0)
			finish(plugins);
		return;
	}
	has_dir = dir_watch_renew(plugins->watch);
	/* A mount keeps what it shows: the path still leads there, and no other mount's does. */
	if (!plugins->is_removed && stat(plugins->config.dir, &st) >= 0 && st.st_nlink <= 0) {
		plugins->is_removed = true;
		if (plugins->config.removed)
			plugins->config.removed(plugins->config.arg);
	}
	kubelet = see_kubelet(plugins);
	see_others(plugins);
	for (struct entry **place = &plugins->entries; *place;) {
		struct plugin *plugin = (*place)->plugin;

		plugin_look(plugin, &kubelet,
			    endpoint_has_successor(&plugins->others, plugin_resource(plugin),
						   plugins->instance));
		if (plugin_is_over(plugin))
			close_entry(plugins, place);
		else
			place = &(*place)->next;
	}
	report_changes(plugins);
	timer_start(plugins->poll, has_dir ? LOOK_MS : LOOK_MISSING_MS);
}

static void look_soon(void *arg)
{
	struct device_plugins *plugins = arg;

	deferred_run(plugins->look);
}

static void on_plugin_look(void *arg)
{
	struct entry *entry = arg;

	deferred_run(entry->plugins->look);
}

static void emit_event(void *arg, bool warning, const char *reason, const char *message)
{
	struct entry *entry = arg;
	const struct device_plugins_config *config = &entry->plugins->config;
	auto_free char *text =
		str_printf("resource %s: %s", plugin_resource(entry->plugin), message);

	if (config->emit)
		config->emit(config->arg, warning, reason, text);
}

static void on_entry_allocated(void *arg)
{
	struct entry *entry = arg;
	const struct device_plugins_config *config = &entry->plugins->config;

	if (config->allocated)
		config->allocated(config->arg);
}

/* ---- what is offered ------------------------------------------------------------------------- */

static struct entry *entry_new(struct device_plugins *plugins, const char *resource)
{
	struct entry *entry = mem_new(struct entry);
	const struct plugin_config config = {
		.dir = plugins->config.dir,
		.devinfo_dir = plugins->config.devinfo_dir,
		.resource = resource,
		.instance = plugins->instance,
		.look = on_plugin_look,
		.emit = emit_event,
		.allocated = on_entry_allocated,
		.arg = entry,
		.questions = plugins->config.questions,
		.metrics = plugins->config.metrics,
	};

	entry->plugins = plugins;
	entry->plugin = plugin_new(plugins->loop, &config);
	return entry;
}

/* The place of a name in the sorted list: that of its entry, or where it belongs. */
static struct entry **place_of(struct device_plugins *plugins, const char *resource)
{
	struct entry **place = &plugins->entries;

	while (*place && strcmp(plugin_resource((*place)->plugin), resource) < 0)
		place = &(*place)->next;
	return place;
}

void device_plugins_set(struct device_plugins *plugins, const json_t *pools)
{
	const json_t *resource;
	size_t i;

	if (plugins->is_closing || json_same(plugins->pools, pools))
		return;
	json_replace(&plugins->pools, json_incref((json_t *)pools));
	for (const struct entry *entry = plugins->entries; entry; entry = entry->next)
		if (!json_find(json_at(pools, "resources"), "name",
			       plugin_resource(entry->plugin))) {
			log_info("resource withdrawn from the kubelet",
				 F_STR("resource", plugin_resource(entry->plugin)));
			plugin_want(entry->plugin, NULL);
		}
	json_array_foreach (json_at(pools, "resources"), i, resource) {
		const char *name = json_str_or(json_at(resource, "name"), "");
		struct entry **place = place_of(plugins, name);

		if (!*place || !str_eq(plugin_resource((*place)->plugin), name)) {
			struct entry *entry = entry_new(plugins, name);

			entry->next = *place;
			*place = entry;
		}
		plugin_want((*place)->plugin, resource);
	}
	deferred_run(plugins->look);
}

json_t *device_plugins_status(const struct device_plugins *plugins)
{
	json_t *status = json_array();

	for (const struct entry *entry = plugins->entries; entry; entry = entry->next)
		(void)json_array_append_new(status, plugin_status(entry->plugin));
	return status;
}

bool device_plugins_are_served(const struct device_plugins *plugins)
{
	for (const struct entry *entry = plugins->entries; entry; entry = entry->next)
		if (!plugin_is_served(entry->plugin))
			return false;
	return true;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct device_plugins *device_plugins_new(struct loop *loop,
					  const struct device_plugins_config *config)
{
	struct device_plugins *plugins = mem_new(struct device_plugins);

	plugins->loop = loop;
	plugins->config = *config;
	plugins->config.dir = str_dup(config->dir);
	plugins->config.devinfo_dir = str_dup(config->devinfo_dir);
	endpoint_instance(plugins->instance);
	plugins->look = deferred_new(loop, look, plugins);
	plugins->poll = timer_new(loop, look_soon, plugins);
	plugins->watch = dir_watch_new(loop, config->dir, look_soon, plugins);
	plugins->status = json_array();
	deferred_run(plugins->look);
	return plugins;
}

void device_plugins_close(struct device_plugins *plugins, void (*done)(void *arg), void *arg)
{
	if (!plugins || plugins->is_closing)
		return;
	plugins->is_closing = true;
	plugins->done = done;
	plugins->done_arg = arg;
	while (plugins->entries)
		close_entry(plugins, &plugins->entries);
	deferred_run(plugins->look);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Three configurations, each from a file that is looked at by time or a ConfigMap that is watched.
 * A text that cannot be read leaves the last good document in force, and is reported where its
 * author looks first. offers.c takes the documents when `changed` is called.
 */
#include "nodeagent/agent/pool_sources.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "nodeagent/devices/pools.h"

static const struct {
	const char *key; /* in a ConfigMap */
	json_t *(*read)(const char *text, size_t len, struct err *err);
} kinds[POOL_SOURCES] = {
	[POOL_SOURCE_SHARED] = {"config.json", pools_read_shared},
	[POOL_SOURCE_LIST] = {"config.json", pools_read_resource_list},
	[POOL_SOURCE_DEV_FILES] = {"conf.yaml", pools_read_dev_files},
};

struct source {
	struct pool_sources *owner;
	enum pool_source which;
	const char *from;
	json_t *document;
	struct err err; /* why the last text could not be read; class ERR_NONE: it could */
	/* A file. */
	struct file_watch file;
	/* A ConfigMap. */
	char *ns, *name, *selector;
	struct cache *cache;
	struct informer *informer;
	/* Why the server does not show it; class ERR_NONE: it does, or is away. */
	struct err refused;
	bool is_refusal_news;
	bool dirty;
	bool is_known; /* there, or known not to be */
};

struct pool_sources {
	struct pool_sources_config config;
	struct source sources[POOL_SOURCES];
	struct timer *look;
	struct deferred *take;
	struct metric *failed;
};

static bool is_file(const struct source *source)
{
	return source->from[0] == '/';
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Emit an event where the user who wrote the text looks first. A file has none. */
static void tell_of_text(const struct source *source, const char *reason, const char *message)
{
	const struct pool_sources_config *config = &source->owner->config;
	auto_free char *name = NULL;
	json_auto_t *object = NULL;

	if (is_file(source))
		return;
	name = str_printf("%s/%s", source->ns, source->name);
	object = cache_get(source->cache, name);
	if (object)
		config->wrong(config->arg,
			      &(struct event_object){
				      .resource = &kube_config_maps,
				      .ns = source->ns,
				      .name = source->name,
				      .uid = json_uid(object),
				      .once = json_str_at(object, "metadata", "resourceVersion"),
			      },
			      reason, message);
}

static void set_trouble(struct source *source, const struct err *err)
{
	struct pool_sources *sources = source->owner;
	bool is_news = !str_eq(source->err.text, err->text);

	source->err = *err;
	if (!is_news)
		return;
	metric_add(sources->failed, 1, err->reason);
	log_error("cannot use a configuration of devices, keeping the last good one",
		  F_STR("source", source->from), F_ERR(err));
	sources->config.emit(sources->config.arg, true, err->reason, err->text);
	tell_of_text(source, err->reason, err->text);
	sources->config.changed(sources->config.arg);
}

/* Takes document. */
static void set_document(struct source *source, json_t *document)
{
	bool changed = source->err.class != ERR_NONE || !json_same(source->document, document);

	source->err = (struct err){0};
	json_replace(&source->document, document);
	if (!changed)
		return;
	log_info(document ? "configuration of devices taken" : "configuration of devices is gone",
		 F_STR("source", source->from));
	source->owner->config.changed(source->owner->config.arg);
}

static void take_text(struct source *source, const char *text, size_t len)
{
	struct err err = {0};
	json_t *document = kinds[source->which].read(text, len, &err);
	json_auto_t *news = NULL;
	const json_t *problem;
	size_t i;

	if (!document) {
		(void)err_in(&err, "%s", source->from);
		set_trouble(source, &err);
		return;
	}
	pools_keep_good(document, source->document);
	/* Each entry that is wrong in this text and was not in the one before. */
	news = pools_new_problems(document, source->document);
	json_array_foreach (news, i, problem)
		tell_of_text(source, json_str_at(problem, "reason"),
			     json_str_or(json_at(problem, "message"), ""));
	set_document(source, document);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void look_at_files(void *arg)
{
	struct pool_sources *sources = arg;

	for (size_t i = 0; i < POOL_SOURCES; i++) {
		struct source *source = &sources->sources[i];
		auto_strbuf struct strbuf text = {0};
		struct err err = {0};
		int rc;

		if (!source->from || !is_file(source))
			continue;
		rc = file_watch_look(&source->file, clock_ms(), &text, &err);
		if (rc > 0)
			take_text(source, strbuf_str(&text), text.len);
		else if (rc < 0)
			set_trouble(source, &err);
	}
	timer_start(sources->look, POOL_SOURCES_LOOK_MS);
}

/* ---- ConfigMaps ------------------------------------------------------------------------------ */

static void on_config_map(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct source *source = arg;

	source->dirty = true;
	deferred_run(source->owner->take);
}

static void on_synced(void *arg)
{
	struct source *source = arg;

	source->dirty = true;
	deferred_run(source->owner->take);
}

/* A server that is away is reported elsewhere, and can record no event. */
static void on_trouble(void *arg, const struct err *err)
{
	struct source *source = arg;
	struct err refused = {0};

	if (err)
		log_warn("cannot read a ConfigMap, will retry", F_STR("source", source->from),
			 F_ERR(err));
	if (err && !kube_err_is(err, "Forbidden") && !kube_err_is(err, "Unauthorized"))
		return;
	if (err)
		(void)err_set(&refused, ERR_HOST, "ConfigMapUnreadable",
			      "ConfigMap %s/%s cannot be read, let the agent list and watch it "
			      "(manifests/base/rbac.yaml): %s",
			      source->ns, source->name, err->text);
	source->is_refusal_news |= !str_eq(source->refused.text, refused.text);
	source->refused = refused;
	deferred_run(source->owner->take);
}

static void take_config_map(struct source *source)
{
	const char *key = kinds[source->which].key;
	auto_free char *name = str_printf("%s/%s", source->ns, source->name);
	json_auto_t *object = cache_get(source->cache, name);
	const char *text = json_str_at(object, "data", key);
	struct err err = {0};

	if (!object) {
		set_document(source, NULL);
	} else if (!text) {
		(void)err_set(&err, ERR_INVALID, "BadConfigMap",
			      "ConfigMap %s has no key %s; put the configuration there", name, key);
		set_trouble(source, &err);
	} else {
		take_text(source, text, strlen(text));
	}
}

static void take_changed(void *arg)
{
	struct pool_sources *sources = arg;
	const struct pool_sources_config *config;

	for (size_t i = 0; i < POOL_SOURCES; i++) {
		struct source *source = &sources->sources[i];

		if (source->is_refusal_news) {
			source->is_refusal_news = false;
			config = &source->owner->config;
			if (source->refused.class != ERR_NONE)
				config->emit(config->arg, true, source->refused.reason,
					     source->refused.text);
			config->changed(config->arg);
		}
		if (!source->dirty)
			continue;
		assert(source->informer);
		source->dirty = false;
		take_config_map(source);
		if (source->is_known)
			continue;
		source->is_known = informer_is_synced(source->informer);
		if (!source->is_known)
			continue;
		if (!source->document && source->err.class == ERR_NONE)
			log_info("no ConfigMap with a configuration of devices: create it there to "
				 "offer them",
				 F_STR("namespace", source->ns), F_STR("name", source->name),
				 F_STR("key", kinds[source->which].key));
		sources->config.changed(sources->config.arg);
	}
}

static void watch_config_map(struct source *source)
{
	static const struct cache_kind kind = {0};
	static const splitter_path drops[] = {{"metadata", "managedFields"}};
	const struct pool_sources_config *config = &source->owner->config;
	const char *slash = strchr(source->from, '/');
	struct strbuf selector = {0};

	source->ns = slash ? str_ndup(source->from, (size_t)(slash - source->from))
			   : str_dup(config->ns);
	source->name = str_dup(slash ? slash + 1 : source->from);
	strbuf_adds(&selector, "fieldSelector=metadata.name%3D");
	kube_path_encode(&selector, source->name);
	source->selector = strbuf_take(&selector);
	source->cache = cache_new(&kind, on_config_map, source);
	source->informer = informer_new(config->loop, config->client,
					&(struct informer_config){
						.resource = &kube_config_maps,
						.ns = source->ns,
						.selector = source->selector,
						.drops = drops,
						.n_drops = ARRAY_LEN(drops),
						.cache = source->cache,
						.synced = on_synced,
						.trouble = on_trouble,
						.arg = source,
						.metrics = config->metrics,
					});
}

/* ---- the outside ----------------------------------------------------------------------------- */

struct pool_sources *pool_sources_new(const struct pool_sources_config *config)
{
	struct pool_sources *sources = mem_new(struct pool_sources);

	assert(config->loop && config->changed && config->emit && config->wrong);
	sources->config = *config;
	sources->look = timer_new(config->loop, look_at_files, sources);
	sources->take = deferred_new(config->loop, take_changed, sources);
	sources->failed =
		metric_counter(config->metrics, "orbweaver_agent_bad_configurations_total",
			       "Configurations of devices that were not taken.", "reason");
	for (size_t i = 0; i < POOL_SOURCES; i++) {
		struct source *source = &sources->sources[i];

		if (str_empty(config->from[i]))
			continue;
		source->owner = sources;
		source->which = (enum pool_source)i;
		source->from = config->from[i];
		if (is_file(source)) {
			source->file = (struct file_watch){.path = source->from,
							   .max = POOL_SOURCES_TEXT_MAX};
			timer_start(sources->look, 0);
		} else {
			watch_config_map(source);
		}
	}
	return sources;
}

void pool_sources_free(struct pool_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < POOL_SOURCES; i++) {
		struct source *source = &sources->sources[i];

		if (source->informer)
			informer_free(source->informer);
		if (source->cache)
			cache_free(source->cache);
		json_decref(source->document);
		mem_free(source->ns);
		mem_free(source->name);
		mem_free(source->selector);
	}
	timer_free(sources->look);
	deferred_free(sources->take);
	mem_free(sources);
}

const json_t *pool_sources_get(const struct pool_sources *sources, enum pool_source which)
{
	assert(which < POOL_SOURCES);
	return sources->sources[which].document;
}

void pool_sources_tell(const struct pool_sources *sources, enum pool_source which,
		       const char *reason, const char *message)
{
	const struct source *source = &sources->sources[which];

	assert(which < POOL_SOURCES);
	if (source->from)
		tell_of_text(source, reason, message);
}

bool pool_sources_are_known(const struct pool_sources *sources)
{
	for (size_t i = 0; i < POOL_SOURCES; i++)
		if (sources->sources[i].informer && !sources->sources[i].is_known)
			return false;
	return true;
}

static void add_failure(json_t *list, const struct err *err)
{
	json_t *entry;

	if (err->class == ERR_NONE)
		return;
	entry = json_object();
	json_put_str(entry, "reason", err->reason);
	json_put_str(entry, "message", err->text);
	json_array_append_new(list, entry);
}

json_t *pool_sources_failures(const struct pool_sources *sources)
{
	json_t *list = json_array();

	for (size_t i = 0; i < POOL_SOURCES; i++) {
		add_failure(list, &sources->sources[i].refused);
		add_failure(list, &sources->sources[i].err);
	}
	return list;
}

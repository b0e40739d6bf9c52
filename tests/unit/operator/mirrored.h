// SPDX-License-Identifier: Apache-2.0
/*
 * A mirror without a cluster: what a test puts into its caches is told to the wake rules as if the
 * API server had said it.
 */
#pragma once

#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "operator/controllers/controllers.h"
#include "operator/controllers/webhook_setup.h"
#include "tests/fakes/scripted.h"

/* Not every test needs all of it. */
#define SUPPORT static __attribute__((unused))

struct mirrored_test {
	struct scripted server;
	struct mirror *mirror;
	struct webhook_settings webhook;
	struct controller_sources sources;
	uint64_t version; /* the last resourceVersion given out */
	json_t *woken;    /* "controller key": true, since it was last asked for */
	void (*changed)(void *arg, const char *kind, const json_t *now); /* may be NULL */
	void *arg;
};

static json_t *mirrored_yaml(const char *text)
{
	struct err err = {0};
	json_t *value = yaml_parse(text, strlen(text), &err);

	if (!value)
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void mirrored_woke(void *arg, enum controller_id id, const char *key, enum queue_lane lane)
{
	struct mirrored_test *t = arg;
	auto_free char *text = str_printf("%s %s", controllers[id].name, key);

	json_put_bool(t->woken, text, true);
}

static void mirrored_changed(void *arg, const char *kind, const char *key, const json_t *old,
			     const json_t *now)
{
	struct mirrored_test *t = arg;

	controllers_map(&t->sources, kind, key, old, now);
	if (t->changed)
		t->changed(t->arg, kind, now);
}

static void mirrored_said(void *arg, const char *kind)
{
}

static void mirrored_troubled(void *arg, const char *kind, const struct err *err)
{
}

SUPPORT void mirrored_open(struct mirrored_test *t)
{
	*t = (struct mirrored_test){.version = 1, .woken = json_object()};
	scripted_open(&t->server);
	t->sources = (struct controller_sources){
		.wake = mirrored_woke,
		.wake_arg = t,
		.now_ms = clock_ms,
		.ns = "orbweaver-system",
		.resource_prefix = "spidernet.io",
		.config_ns = "spiderpool",
		.policy_namespaces = json_pack("[s]", "net"),
		.webhook = &t->webhook,
	};
	controller_sources_init(&t->sources, NULL);
	t->mirror = mirror_new(t->server.loop, t->server.client,
			       &(struct mirror_config){
				       .ns = t->sources.ns,
				       .config_ns = t->sources.config_ns,
				       .changed = mirrored_changed,
				       .synced = mirrored_said,
				       .trouble = mirrored_troubled,
				       .arg = t,
			       });
	t->sources.mirror = t->mirror;
}

SUPPORT void mirrored_close(struct mirrored_test *t)
{
	mirror_free(t->mirror);
	controller_sources_done(&t->sources);
	json_decref(t->woken);
	scripted_close(&t->server);
	json_decref(t->sources.policy_namespaces);
}

/* The object, in YAML, is now like this. */
SUPPORT void mirrored_put(struct mirrored_test *t, const char *kind, const char *text)
{
	json_t *object = mirrored_yaml(text);
	json_t *metadata = json_need_object(object, "metadata");

	json_put(metadata, "resourceVersion", json_fmt("%llu", (unsigned long long)++t->version));
	if (!json_at(metadata, "uid"))
		json_put(metadata, "uid", json_fmt("uid-of-%s", json_name(object)));
	cache_put(mirror_cache(t->mirror, kind), object);
}

SUPPORT void mirrored_remove(struct mirrored_test *t, const char *kind, const char *key)
{
	assert_true(cache_remove(mirror_cache(t->mirror, kind), key, UINT64_MAX));
}

static int mirrored_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * "controller key;controller key;", sorted: who was woken since the last call. Returns new; free().
 */
SUPPORT char *mirrored_woken(struct mirrored_test *t)
{
	const char **names = mem_calloc(json_object_size(t->woken) + 1, sizeof(*names));
	auto_strbuf struct strbuf text = {0};
	const char *name = NULL;
	json_t *value = NULL;
	size_t n = 0;

	json_each (t->woken, name, value)
		names[n++] = name;
	qsort(names, n, sizeof(*names), mirrored_compare);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&text, "%s;", names[i]);
	mem_free(names);
	json_object_clear(t->woken);
	return strbuf_take(&text);
}

static void mirrored_serve(struct mirrored_test *t, const struct kube_resource *resource,
			   const char *ns)
{
	auto_free char *list = kube_path(resource, ns, NULL, NULL, "limit=");
	auto_free char *watch = kube_path(resource, ns, NULL, NULL, "watch=");
	auto_free char *get_list = str_printf("GET %s", list);
	auto_free char *get_watch = str_printf("GET %s", watch);

	http_script_add(t->server.http, get_list,
			&(struct http_reply){
				.body = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
				.always = true,
			});
	http_script_add(t->server.http, get_watch,
			&(struct http_reply){.after = HTTP_OPEN, .always = true});
}

/*
 * The server has nothing of any kind. What was put by hand before goes; what is put afterwards
 * stays.
 */
SUPPORT void mirrored_sync(struct mirrored_test *t)
{
	static const char *const namespaces[] = {NULL,          "orbweaver-system", "spiderpool",
						 "kube-system", "kube-flannel",     "default"};
	const char *kind = NULL;

	for (size_t i = 0; (kind = operator_kinds[i].kind); i++)
		for (size_t j = 0; j < ARRAY_LEN(namespaces); j++)
			mirrored_serve(t, mirror_resource(t->mirror, kind), namespaces[j]);
	for (int turns = 0; turns < 500; turns++) {
		bool all = true;

		for (size_t i = 0; all && (kind = operator_kinds[i].kind); i++)
			all = mirror_is_synced(t->mirror, kind);
		if (all)
			return;
		scripted_for(&t->server, 10);
	}
	fail_msg("the mirror is not complete after 5 s");
}

SUPPORT int mirrored_begin(void **state)
{
	struct mirrored_test *t = mem_new(struct mirrored_test);

	mirrored_open(t);
	*state = t;
	return 0;
}

SUPPORT int mirrored_end(void **state)
{
	mirrored_close(*state);
	mem_free(*state);
	return 0;
}

SUPPORT void mirrored_wakes(struct mirrored_test *t, const char *want)
{
	auto_free char *woken = mirrored_woken(t);

	assert_string_equal(woken, want);
}

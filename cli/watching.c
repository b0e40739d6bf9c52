// SPDX-License-Identifier: Apache-2.0
/*
 * Informers of lib/kube for a cluster; for files a look at their size and time twice a second. See
 * the header.
 */
#include "cli/watching.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/away.h"
#include "cli/source.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"

enum {
	FILES_MS = 500,
	LEADER_MS = 5000,
	/* A kind whose definition is not installed is asked for again. */
	ABSENT_MS = 30000,
	/* People look at it: a server that went away silently is noticed sooner than by agents. */
	SILENCE_MS = 15000,
};

static const struct cache_kind keep_all;

/* A kind of the cluster, and what keeps it from being up to date. */
struct kind {
	struct watching *w;
	const char *id;
	struct kube_resource resource;
	struct cache *cache;
	struct informer *informer;
	bool left_out;    /* not served, or optional and forbidden */
	char *why;        /* NULL: it is up to date */
	int64_t since_us; /* of why */
};

struct watching {
	struct loop *loop;
	const struct cli *cli;
	const char *const *kinds;
	watching_fn *changed;
	void *arg;
	bool is_dirty;
	struct timer *timer; /* the next look at files, or at the age of the Lease */

	/* A cluster. */
	struct kube_config config;
	struct kube_client *client;
	struct kind *followed; /* the last one is the Lease */
	size_t n;
	char *ns, *selector; /* of the Lease */
	bool has_leader;

	/* Files. */
	struct stat *seen;
	char *why;
	int64_t since_us;
};

static void mark(struct watching *w)
{
	w->is_dirty = true;
	w->changed(w->arg);
}

/* ---- a cluster ------------------------------------------------------------------------------- */

static bool is_lease(const struct kind *kind)
{
	return kind == &kind->w->followed[kind->w->n - 1];
}

static void on_object(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct kind *kind = arg;

	/* It is renewed every few seconds; on_leader looks at its age. */
	if (is_lease(kind) && old && now &&
	    str_eq(json_str_at(old, "spec", "holderIdentity"),
		   json_str_at(now, "spec", "holderIdentity")))
		return;
	mark(kind->w);
}

static void on_synced(void *arg)
{
	const struct kind *kind = arg;

	mark(kind->w);
}

static void on_trouble(void *arg, const struct err *err)
{
	struct kind *kind = arg;
	const char *optional = kind->w->cli->command->optional;

	kind->left_out =
		kube_err_is(err, "NotServed") ||
		(kube_err_is(err, "Forbidden") && (is_lease(kind) || str_eq(kind->id, optional)));
	if (err && !kind->why)
		kind->since_us = clock_wall_us();
	mem_free(take_ptr(kind->why));
	if (err && !kind->left_out)
		kind->why = str_printf("%s: %s", kind->resource.plural, err->text);
	mark(kind->w);
}

static void follow(struct kind *kind, const char *ns, const char *selector)
{
	(void)source_resource(kind->id, &kind->resource);
	kind->cache = cache_new(&keep_all, on_object, kind);
	kind->informer = informer_new(kind->w->loop, kind->w->client,
				      &(struct informer_config){
					      .resource = &kind->resource,
					      .ns = ns,
					      .selector = selector,
					      .cache = kind->cache,
					      .absent_retry_ms = ABSENT_MS,
					      .synced = on_synced,
					      .trouble = on_trouble,
					      .arg = kind,
				      });
}

static const json_t *lease_of(const struct watching *w, json_t **ret_all)
{
	auto_free char *key = str_printf("%s/%s", w->ns, OPERATOR_NAME);

	*ret_all = cache_all(w->followed[w->n - 1].cache);
	return json_object_get(*ret_all, key);
}

/* A Lease that is not renewed any more sends no event. */
static void on_leader(void *arg)
{
	struct watching *w = arg;
	json_auto_t *all = NULL;
	auto_free char *away = NULL;
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	away = away_leader(lease_of(w, &all), now);
	if (w->has_leader != (away == NULL))
		mark(w);
	w->has_leader = away == NULL;
	timer_start(w->timer, LEADER_MS);
}

static int follow_cluster(struct watching *w, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = w->cli->kubeconfig,
		.context = w->cli->context,
		.envp = (const char *const *)environ,
	};

	if (kube_config_load(&source, &w->config, err) < 0)
		return -1;
	w->client = kube_client_new(w->loop, &w->config, NULL);
	kube_client_set_watch_silence(w->client, SILENCE_MS);
	w->ns = source_operator_namespace(w->cli);
	w->selector = str_printf("fieldSelector=metadata.name%%3D%s", OPERATOR_NAME);
	while (w->kinds[w->n])
		w->n++;
	w->n++;
	w->followed = mem_calloc(w->n, sizeof(*w->followed));
	for (size_t i = 0; i < w->n; i++) {
		bool is_last = i == w->n - 1;

		w->followed[i].w = w;
		w->followed[i].id = is_last ? CLI_LEASES : w->kinds[i];
		follow(&w->followed[i], is_last ? w->ns : NULL, is_last ? w->selector : NULL);
	}
	w->timer = timer_new(w->loop, on_leader, w);
	timer_start(w->timer, LEADER_MS);
	return 0;
}

/* As the server lists them; a cache has no order. */
static json_t *sorted(const struct cache *cache)
{
	const char **keys = mem_calloc(cache_len(cache) + 1, sizeof(*keys)), *key;
	json_t *objects = json_object();
	size_t n = 0, iter = 0;

	while ((key = cache_next(cache, &iter)) != NULL)
		keys[n++] = key;
	qsort(keys, n, sizeof(*keys), str_compare);
	for (size_t i = 0; i < n; i++)
		json_put(objects, keys[i], cache_get(cache, keys[i]));
	mem_free(keys);
	return objects;
}

static json_t *world_of_cluster(const struct watching *w)
{
	json_auto_t *world = json_object();

	for (size_t i = 0; i < w->n; i++) {
		const struct kind *kind = &w->followed[i];

		if (informer_is_synced(kind->informer))
			json_put(world, kind->id, sorted(kind->cache));
		else if (is_lease(kind))
			json_put(world, kind->id, json_null());
		else if (kind->left_out)
			json_put(world, kind->id, json_object());
		else
			return NULL;
	}
	return json_incref(world);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Is each file as it was seen? What is seen now is kept. */
static bool look_at_files(const struct watching *w)
{
	bool is_same = true;

	for (size_t i = 0; w->cli->files[i]; i++) {
		struct stat now = {0}, *seen = &w->seen[i];

		(void)stat(w->cli->files[i], &now);
		is_same = is_same && now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
			  now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
			  now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec;
		*seen = now;
	}
	return is_same;
}

static void on_files(void *arg)
{
	struct watching *w = arg;

	/* A file that could not be read may have been half written. */
	if (!look_at_files(w) || w->why)
		mark(w);
	timer_start(w->timer, FILES_MS);
}

static void follow_files(struct watching *w)
{
	size_t n = 0;

	while (w->cli->files[n])
		n++;
	w->seen = mem_calloc(n, sizeof(*w->seen));
	(void)look_at_files(w);
	w->timer = timer_new(w->loop, on_files, w);
	timer_start(w->timer, FILES_MS);
}

static json_t *world_of_files(struct watching *w)
{
	struct err err = {0};
	json_t *world = source_read(w->cli, w->kinds, &err);

	if (!world && !w->why)
		w->since_us = clock_wall_us();
	mem_free(take_ptr(w->why));
	if (!world)
		w->why = str_dup(err.text);
	return world;
}

/* ---- both ------------------------------------------------------------------------------------ */

struct watching *watching_new(struct loop *loop, const struct cli *cli, const char *const *kinds,
			      watching_fn *changed, void *arg, struct err *err)
{
	struct watching *w = mem_new(struct watching);

	w->loop = loop;
	w->cli = cli;
	w->kinds = kinds;
	w->changed = changed;
	w->arg = arg;
	w->has_leader = true;
	if (cli->files)
		follow_files(w);
	else if (follow_cluster(w, err) < 0) {
		watching_free(w);
		return NULL;
	}
	return w;
}

void watching_free(struct watching *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		informer_free(w->followed[i].informer);
		cache_free(w->followed[i].cache);
		mem_free(w->followed[i].why);
	}
	mem_free(w->followed);
	timer_free(w->timer);
	kube_client_free(w->client);
	kube_config_done(&w->config);
	mem_free(w->ns);
	mem_free(w->selector);
	mem_free(w->seen);
	mem_free(w->why);
	mem_free(w);
}

json_t *watching_world(struct watching *w)
{
	json_t *world;

	if (!w->is_dirty)
		return NULL;
	world = w->cli->files ? world_of_files(w) : world_of_cluster(w);
	if (world)
		w->is_dirty = false;
	return world;
}

const char *watching_trouble(const struct watching *w, int64_t *ret_since_us)
{
	const char *why = w->why;

	*ret_since_us = w->since_us;
	for (size_t i = 0; i < w->n; i++) {
		const struct kind *kind = &w->followed[i];

		if (kind->why && (!why || kind->since_us < *ret_since_us)) {
			why = kind->why;
			*ret_since_us = kind->since_us;
		}
	}
	return why;
}

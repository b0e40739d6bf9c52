// SPDX-License-Identifier: Apache-2.0
/*
 * Where users put the configurations of pools that no NodeState knows: ConfigMaps and files, read
 * again whenever they change. A text that cannot be read changes nothing: the last good one stays
 * in force, and the trouble is reported. The same goes for each entry of a text.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"

enum pool_source {
	POOL_SOURCE_SHARED,    /* config.json of the shared RDMA device plugin */
	POOL_SOURCE_LIST,      /* config.json of the SR-IOV network device plugin */
	POOL_SOURCE_DEV_FILES, /* conf.yaml of smarter-device-manager */
	POOL_SOURCES,
};

enum {
	/* How often files are looked at. */
	POOL_SOURCES_LOOK_MS = 5000,
	/* The most that a ConfigMap can hold. */
	POOL_SOURCES_TEXT_MAX = 1024 * 1024,
};

struct pool_sources;

struct pool_sources_config {
	struct loop *loop;
	struct kube_client *client;
	const char *ns; /* of ConfigMaps without one; borrowed */
	/* "/a/file", "name", "namespace/name"; NULL or "": none. Borrowed. */
	const char *from[POOL_SOURCES];
	/* What pool_sources_get() or _failures() return is not what it was. From the loop. */
	void (*changed)(void *arg);
	/* Emit an event. */
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	/* Worth an event on the ConfigMap: what is wrong with its text, whatever the node. */
	void (*wrong)(void *arg, const struct event_object *config_map, const char *reason,
		      const char *message);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct pool_sources *pool_sources_new(const struct pool_sources_config *config);
/* Before the client. */
void pool_sources_free(struct pool_sources *sources);

/* As pools_read_*() made it; NULL: there is none. Borrowed until the loop turns. */
const json_t *pool_sources_get(const struct pool_sources *sources, enum pool_source which);

/*
 * What pools_compute() has found wrong with a source, whatever the node, is an event on its
 * ConfigMap, too; one on a file is none.
 */
void pool_sources_tell(const struct pool_sources *sources, enum pool_source which,
		       const char *reason, const char *message);

/* Every ConfigMap was looked for once: what there is none of is not just late. */
bool pool_sources_are_known(const struct pool_sources *sources);

/*
 * [{"reason", "message"}] of sources that cannot be read now, or that the API server refuses to
 * show us. New.
 */
json_t *pool_sources_failures(const struct pool_sources *sources);

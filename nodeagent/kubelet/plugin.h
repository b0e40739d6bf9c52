// SPDX-License-Identifier: Apache-2.0
/*
 * One resource: its socket, its registration with the kubelet, and the answers to the kubelet's
 * calls.
 *
 * A level-triggered machine: plugin_look() compares what should be with what is and takes the next
 * step; whatever happens asks for another look.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/kubelet/gpu_questions.h"

struct plugin;

/* After Register the kubelet has this long to begin ListAndWatch. */
enum { PLUGIN_WATCHED_MS = 5000 };
/*
 * A younger agent that cannot be seen any more is waited for this long: its sockets may have been
 * wiped with ours.
 */
enum { PLUGIN_SUCCESSOR_GONE_MS = 1000 };
/*
 * Further attempts: the first at once, then after 5 ms, twice as long each time, up to 30 s; each
 * up to a quarter more. The first ones are quick because a kubelet that starts binds its socket a
 * moment before it listens, and looks at the pods that wait for it 100 ms later: it turns away
 * those whose resource is not registered by then.
 */
enum {
	PLUGIN_RETRY_MS = 5,
	PLUGIN_RETRY_MAX_MS = 30000,
	PLUGIN_STABLE_MS =
		10000, /* a stream that has lasted this long makes earlier failures forgotten */
	/* After so many, about five seconds, the kubelet's absence is news. */
	PLUGIN_FAILURES_TOLD = 10,
};

/* Inodes are used again at once on some file systems; times of change are not. */
struct plugin_kubelet {
	bool is_there;
	dev_t dev;
	ino_t ino;
	struct timespec born;
};

struct plugin_config {
	const char *dir;         /* with kubelet.sock */
	const char *devinfo_dir; /* or NULL */
	const char *resource;
	const char *instance; /* endpoint.h */
	/* Something has happened: plugin_look() is to be called soon, from the loop. */
	void (*look)(void *arg);
	void (*emit)(void *arg, bool warning, const char *reason, const char *message);
	void (*allocated)(void *arg); /* Allocate is about to be answered well */
	void *arg;
	struct gpu_questions *questions; /* NULL: no agent is asked */
	struct metrics *metrics;         /* may be NULL */
};

/* Strings are copied. */
struct plugin *plugin_new(struct loop *loop, const struct plugin_config *config);
/* done(arg) from a later turn; the plugin is gone then. No other callback comes after this. */
void plugin_close(struct plugin *plugin, void (*done)(void *arg), void *arg);

/* What is wanted now: an entry of "resources" (pools.h), borrowed; NULL: nothing any more. */
void plugin_want(struct plugin *plugin, const json_t *resource);

/* has_successor: a younger agent serves this resource. */
void plugin_look(struct plugin *plugin, const struct plugin_kubelet *kubelet, bool has_successor);
/* Nothing is wanted and nothing is offered any more. */
bool plugin_is_over(const struct plugin *plugin);

const char *plugin_resource(const struct plugin *plugin);
/* The kubelet has it: from us, or from the successor for which we have made way. */
bool plugin_is_served(const struct plugin *plugin);
/* An entry of device_plugins_status(). */
json_t *plugin_status(const struct plugin *plugin);

// SPDX-License-Identifier: Apache-2.0
/*
 * Plugins called side by side for one call of the meta plugin. In its worker: blocks.
 *
 * Each has a process of its own below the worker. What is done there is the caller's; what it asks
 * goes up the worker's one line to the server (worker_channel.h), questions one at a time, programs
 * side by side.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_WORKER_CREW_H
#define ORBWEAVER_NODEAGENT_CNI_WORKER_CREW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "nodeagent/cni/meta/meta_run.h"
#include "nodeagent/cni/worker/attachment.h"

struct crew;

/*
 * Call the plugin a->key.plugin, in a process of its own: returns what crew_end says of it, new.
 * `a` is for this one plugin, with a line of its own.
 */
typedef json_t *crew_work_fn(struct attachment *a, const char *command);

/*
 * `of` is the meta plugin's own attachment; borrowed, and its line is the crew's until it is freed.
 */
struct crew *crew_new(struct attachment *of, crew_work_fn *work);
/* What still runs is killed. Accepts NULL. */
void crew_free(struct crew *crew);

/*
 * Begin to call a plugin: env are the CNI_… of the call, an object of strings, config its stdin.
 * What cannot begin ends as failed. All borrowed.
 */
void crew_begin(struct crew *crew, const struct meta_step *step, const char *type,
		const json_t *env, const json_t *config);

/*
 * How a call ended; `said` is new: {"status", "stdout", "stderr"} of a foreign one; {"result"} or
 * {"error"} (lib/json/ask.h). With "unstarted": true the plugin never began.
 */
struct crew_end {
	struct meta_step step;
	json_t *said;
};

/* Wait until one ends. False: nothing runs. */
bool crew_wait(struct crew *crew, struct crew_end *ret);

#endif

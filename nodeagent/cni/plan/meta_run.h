// SPDX-License-Identifier: Apache-2.0
/*
 * One call of the meta plugin, plugin by plugin: which is called next, with what, and what its
 * answer means for the others. Pure: whoever carries it out calls the plugins and reports how they
 * ended; several may run at a time.
 *
 * ADD runs the networks side by side where plugin_order.h allows. The first failure ends it: no
 * plugin begins any more, those that run are waited for, then every plugin that has run gets DEL,
 * and no other. DEL goes through each network's plugins from the last to the first and on behind
 * one that fails, the networks side by side where plugin_order.h allows; the cluster's network is
 * the last. CHECK goes through those networks that have it; GC and STATUS concern the cluster's
 * network alone.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

struct meta_run;

/* One plugin to call. */
struct meta_step {
	size_t delegate, plugin;
	const char *command; /* CNI_COMMAND; static */
};

/*
 * delegates (delegates.h) and the results of ADD, one for each, null where there is none (NULL:
 * none is known), are borrowed and stay as they are. command is one of ADD, CHECK, DEL, GC, STATUS.
 */
struct meta_run *meta_run_new(const char *command, const json_t *delegates, const json_t *results);
/* Accepts NULL. */
void meta_run_free(struct meta_run *run);

/*
 * The next plugin that may be called now; it counts as running from then on. False: none until
 * another one ends.
 */
bool meta_run_next(struct meta_run *run, struct meta_step *ret);

/*
 * ADD: the plugin of this delegate that runs now, or comes next, whether it is its turn or not.
 * False: there is none, the delegate is complete or nothing begins any more.
 */
bool meta_run_coming(const struct meta_run *run, size_t delegate, struct meta_step *ret);

/* What it gets on stdin, new. */
json_t *meta_run_stdin(const struct meta_run *run, const struct meta_step *step);

/* A plugin has ended well; result is that of ADD (plugin_call.h), borrowed, otherwise NULL. */
void meta_run_succeeded(struct meta_run *run, const struct meta_step *step, const json_t *result);
/* It has failed. */
void meta_run_failed(struct meta_run *run, const struct meta_step *step, const struct err *err);
/*
 * The same, of a program that could not be started: of such an ADD there is nothing to undo, and a
 * DEL could not find the program either.
 */
void meta_run_unstarted(struct meta_run *run, const struct meta_step *step, const struct err *err);

/* Nothing runs and nothing is left to call. */
bool meta_run_has_ended(const struct meta_run *run);

/*
 * How it ended: 0, or -1 with the first failure in err. After a failed ADD, *ret_left (may be NULL)
 * says whether undoing failed too, so that something may be left.
 */
int meta_run_outcome(const struct meta_run *run, bool *ret_left, struct err *err);

/*
 * The results of ADD so far, one for each delegate, null where there is none. Borrowed; the caller
 * may edit them at the end.
 */
json_t *meta_run_results(struct meta_run *run);

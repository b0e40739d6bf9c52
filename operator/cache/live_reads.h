// SPDX-License-Identifier: Apache-2.0
/*
 * Reads single objects from the API server, for decisions that may not rest on a cache (taking an
 * address from a pod that looks ended, above all).
 */
#pragma once

#include <jansson.h>

#include "lib/kube/client.h"

struct live_reads;

/*
 * found: {kind: {key: object, or null when there is none}}, borrowed, but the callback may change
 * it; NULL with err when one could not be read.
 */
typedef void live_reads_done_fn(void *arg, unsigned int of, const char *name, json_t *found,
				const struct err *err);

struct live_reads *live_reads_new(struct kube_client *client, live_reads_done_fn *done, void *arg);
/* Before the client; no callback comes any more. */
void live_reads_free(struct live_reads *looks);

/*
 * Read [{"kind", "key"}, …]: kinds of reconcilers/core/kinds.h, those who own pods
 * (reconcilers/ipam/allocate/release.h), and BOX_PODS_OF_NODE: the object is then {"ns/name": pod}
 * of all that are bound to the node `key`, read after all else. `of` and `name` tell the answer. A
 * name that is asked for while it is read is read once more, and has one answer: from after the
 * last question, unless questions do not end. is_once: it is not, where all of it is being read.
 */
void live_reads_begin(struct live_reads *looks, unsigned int of, const char *name,
		      const json_t *wanted, bool is_once);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the operator would decide on a cluster that stands still: the table of controllers, their
 * worlds and their wake rules, over caches that are filled from a document instead of an API
 * server. For `orbweaver replay`.
 *
 * As at a start of the operator every object is new, and wakes whom it wakes. Each key that is
 * awake is decided once, and again when another decision wakes it; what decisions keep in memory
 * (reports, boxes, findings) they find. Writes are taken for carried out as far as memory goes, but
 * the objects stay as they are: each decision is the one that is due now.
 *
 * Pure, but for the keys of certificates, which are never needed here: the webhooks' controller
 * looks at a Secret, and is left out.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "operator/cache/kinds.h"

enum {
	/* A key is not decided more often, whoever wakes it. */
	REHEARSAL_TIMES_MAX = 4,
	/* Passes over pods that wait for addresses, ASSIGN_MAX of them each. */
	REHEARSAL_PASSES_MAX = 64,
};

/* One operation of a plan (reconcilers/core/plan.h), and what carrying it out would change. */
struct rehearsal_op {
	const json_t *op;
	/*
	 * "create", "patch", "delete", "status", "evict", "event", "finding"; NULL: the objects are
	 * so already, or it concerns the operator's memory alone.
	 */
	const char *does;
	/* The object, as far as the operator mirrors it, before and after; NULL: there is none. */
	const json_t *before, *after;
};

struct rehearsal_step {
	const char *controller, *key;
	const struct err *err; /* it cannot decide; NULL: it can */
	const struct rehearsal_op *ops;
	size_t n;
};

/* All borrowed. */
struct rehearsal_config {
	/* { plural resource name: { key: object } }, as the API server has them. */
	const json_t *objects;
	const char *ns; /* of the operator */
	const char *resource_prefix;
	const char *config_ns;     /* of the ConfigMap spiderpool-conf */
	const char *cilium_config; /* as in controller_sources */
	json_t *policy_namespaces; /* array of names; NULL: none */
	const char *now;           /* RFC 3339 */
	bool webhooks;             /* it serves some */
	/* Are the objects of this kind among them, or could nobody read them? */
	bool (*has)(void *arg, const struct operator_kind *kind);
	/* In the order in which they are made. Strings and values are good until it returns. */
	void (*decided)(void *arg, const struct rehearsal_step *step);
	/* This controller decides nothing, for these objects are not known. */
	void (*left_out)(void *arg, const char *controller, const struct operator_kind *kind);
	void *arg;
};

void rehearse(const struct rehearsal_config *config);

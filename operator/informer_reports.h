// SPDX-License-Identifier: Apache-2.0
/*
 * What informers cannot watch, and what to do about it: a log line, an event about this operator,
 * the text of /readyz (dependency_health.h). A kind that Orbweaver may define itself is defined.
 */
#pragma once

#include <stdbool.h>

#include "lib/kube/recorder.h"
#include "operator/cache/mirror.h"
#include "operator/dependency_health.h"
#include "operator/nad_definition.h"

struct informer_reports {
	struct dependency_health *troubles; /* the first three are borrowed */
	struct recorder *recorder;
	const struct event_object *self; /* this operator */
	struct nad_definition *nad_definition;
	bool leading; /* set by the owner: only the leader writes */
	bool removed; /* set by the owner: our namespace is being deleted */
	bool lacks_nads;
	char last[sizeof(((struct err *)0)->text)]; /* what was logged last */
};

void informer_reports_init(struct informer_reports *r, struct kube_client *client,
			   struct dependency_health *troubles, struct recorder *recorder,
			   const struct event_object *self);
void informer_reports_done(struct informer_reports *r);

/* The callbacks of the mirror (mirror.h): all of the kind was listed; err NULL: it works again. */
void informer_reports_synced(struct informer_reports *r, const struct mirror *mirror,
			     const char *kind);
void informer_reports_trouble(struct informer_reports *r, const struct mirror *mirror,
			      const char *kind, const struct err *err);

/* This replica leads from now on: say again what is in trouble. */
void informer_reports_lead(struct informer_reports *r);

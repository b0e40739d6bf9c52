// SPDX-License-Identifier: Apache-2.0
/*
 * Kubernetes events: what happened, for people who type `kubectl describe`.
 *
 * The same event (object, type, reason, message) emitted again within EVENT_MEMORY_MS becomes a
 * higher count of the first one; an object that talks too much is held to EVENT_BURST events and
 * one more each EVENT_REFILL_MS. At most EVENT_IN_FLIGHT are on their way at a time, so that a
 * crowd of them does not keep other writes from the connection; the others wait in line. Events are
 * best effort: one that cannot be written is dropped and counted.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/api.h"

enum {
	EVENT_MEMORY_MS = 600000,
	EVENT_MEMORY_MAX = 1024, /* events remembered; the oldest is forgotten */
	EVENT_IN_FLIGHT = 16,
	EVENT_BURST = 25,
	EVENT_REFILL_MS = 60000,
	EVENT_MESSAGE_MAX = 1024, /* bytes; the API's limit for core/v1 */
};

struct recorder;

/*
 * component and instance are borrowed: "orbweaver-operator", the pod's name. fenced as in struct
 * kube_write.
 */
struct recorder *recorder_new(struct kube_client *client, const char *component,
			      const char *instance, bool fenced, struct metrics *metrics);
/* What has not been written is dropped. Before the client goes. */
void recorder_free(struct recorder *recorder);

/* What the event is about. Strings are borrowed. */
struct event_object {
	const struct kube_resource *resource;
	const char *ns; /* NULL or "" for cluster-scoped objects, whose events live in "default" */
	const char *name;
	const char *uid; /* NULL or "": identified by kind, namespace and name */
	/*
	 * Not NULL: many processes may report the same thing of it. Of those that have the same
	 * word here (the object's resourceVersion) the first one's event stands for all. NULL: each
	 * writes its own.
	 */
	const char *once;
};

void recorder_emit(struct recorder *recorder, const struct event_object *object, bool warning,
		   const char *reason, const char *message);

// SPDX-License-Identifier: Apache-2.0
/*
 * Events on pods. The kubelet names pods without their uid, and `kubectl describe pod` shows events
 * that have it: it is asked for first.
 */
#pragma once

#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "nodeagent/devices/meter_pods.h"

enum {
	/* Pods that are being read for their events; further events are dropped. */
	POD_EVENTS_WAITING_MAX = 256,
};

struct pod_events;

/* Client and recorder are borrowed. */
struct pod_events *pod_events_new(struct kube_client *client, struct recorder *recorder);
/* What has not been written is dropped. Before the client goes. Accepts NULL. */
void pod_events_free(struct pod_events *events);

/*
 * pod: "ns/pod" or "ns/pod/container". A pod that is gone needs none; one that cannot be read has
 * an event without its uid.
 */
void pod_events_emit(struct pod_events *events, const char *pod, bool warning, const char *reason,
		     const char *message);

/* The same on each pod that uses the port. */
void pod_events_emit_users(struct pod_events *events, const struct meter_port *port, bool warning,
			   const char *reason, const char *message);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the kubelet has given to pods, as it says itself: a worker asks it, so that it need not
 * trust the agent. In blocking code, right before a step takes a VF (host_set_given()).
 *
 * One answer serves for all VFs of a plan: nothing but an Allocate makes it longer
 * (allocation_epoch.h).
 */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

struct allocated_devices;
struct allocation_epoch;

struct allocated_devices_config {
	const char *socket;                    /* of PodResources */
	const struct allocation_epoch *giving; /* borrowed; NULL: nothing is allocated */
	int64_t wait_ms;                       /* 0: PROTOCOL_KUBELET_MS */
};

enum {
	/* An answer is good for this long: another program's plugin may have given something. */
	ALLOCATED_DEVICES_KEEP_MS = 10000,
	/* A VF that an answer this old names is asked for again: its pod may have ended. */
	ALLOCATED_DEVICES_RECENT_MS = 1000,
	/* After a question without an answer none is put for this long. */
	ALLOCATED_DEVICES_FAILED_MS = 2000,
};

struct allocated_devices *allocated_devices_new(const struct allocated_devices_config *config);
/* Accepts NULL. */
void allocated_devices_free(struct allocated_devices *given);

/*
 * Which pod has this function? *ret_pod: "namespace/pod", borrowed until the next question, or
 * NULL: none. -1 with err ERR_TRANSIENT "PodResourcesUnavailable" when it is unknown: the kubelet
 * does not answer, or pods are given devices all the time. For ALLOCATED_DEVICES_FAILED_MS it is
 * then not asked again.
 */
int allocated_devices_pod(struct allocated_devices *given, const char *function,
			  const char **ret_pod, struct err *err);

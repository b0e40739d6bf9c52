// SPDX-License-Identifier: Apache-2.0
/*
 * What the kubelet has given to pods, as it says itself: a worker asks it, so that nobody has to
 * believe the agent. In blocking code, right before a step takes a VF (host_set_given()).
 *
 * One answer serves for all VFs of a plan: nothing but an Allocate makes it longer (giving.h).
 */
#ifndef ORBWEAVER_NODEAGENT_WORKER_GIVEN_H
#define ORBWEAVER_NODEAGENT_WORKER_GIVEN_H

#include <stdint.h>

#include "lib/base/err.h"

struct given;
struct giving;

struct given_config {
	const char *socket;          /* of PodResources */
	const struct giving *giving; /* borrowed; NULL: nobody gives anything */
	int64_t wait_ms;             /* 0: PROTOCOL_KUBELET_MS */
};

enum {
	/* An answer is good for so long: another program's plugin may have given something. */
	GIVEN_KEEP_MS = 10000,
	/* A VF that an answer this old names is asked for again: its pod may have ended. */
	GIVEN_RECENT_MS = 1000,
	/* After a question without an answer none is put for so long. */
	GIVEN_FAILED_MS = 2000,
};

struct given *given_new(const struct given_config *config);
/* Accepts NULL. */
void given_free(struct given *given);

/*
 * Which pod has this function? *ret_pod: "namespace/pod", borrowed until the next question, or
 * NULL: none. -1 with err ERR_TRANSIENT "PodResourcesUnavailable" when nobody can say: the kubelet
 * does not answer, or pods are given devices all the time. For GIVEN_FAILED_MS it is then not asked
 * again.
 */
int given_pod(struct given *given, const char *function, const char **ret_pod, struct err *err);

#endif

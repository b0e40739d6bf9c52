// SPDX-License-Identifier: Apache-2.0
/*
 * Which pod has which device: the kubelet's PodResources API, asked on demand and every now and
 * then.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"
#include "nodeagent/process/allocation_epoch.h"

struct pod_resources;

struct pod_resources_config {
	const char *socket; /* "/var/lib/kubelet/pod-resources/kubelet.sock" */
	/*
	 * Connects to it when we may not ourselves: a descriptor, non-blocking and close-on-exec,
	 * or -1 with errno. NULL: we may.
	 */
	int (*connect)(void *arg);
	int64_t every_ms; /* slow safety scan; 0 is POD_RESOURCES_EVERY_MS */
	int64_t wait_ms;  /* for a first answer; 0 is POD_RESOURCES_WAIT_MS */
	/* Until a device that is not named any more is free; 0 is POD_RESOURCES_LOSE_MS. */
	int64_t lose_ms;
	/*
	 * {"spidernet.io/x": {"0000:3b:00.2": "ns/pod/container"}}, borrowed: the first answer, and
	 * each that differs from the last. What the kubelet does not name any more stays in it for
	 * lose_ms.
	 *
	 * NULL, with why, once per different text: it is not known. The kubelet has not answered
	 * for wait_ms since we began, or it has no such API. Any device may be a pod's then. A
	 * kubelet that is away for a while changes nothing: it gives nothing away meanwhile.
	 */
	void (*changed)(void *arg, const json_t *allocated, const struct err *err);
	/*
	 * What pod_resources_check() asked for has been answered; `changed` came before, if it had
	 * to. May be NULL.
	 */
	void (*checked)(void *arg);
	void *arg;
};

enum {
	POD_RESOURCES_EVERY_MS = 10000,
	/* How often, before the first answer and while devices are not named any more. */
	POD_RESOURCES_SOON_MS = 500,
	/* A kubelet that has just started does not know its pods yet, and names none. */
	POD_RESOURCES_LOSE_MS = 5000,
	/* A kubelet that was started together with us has its sockets by then. */
	POD_RESOURCES_WAIT_MS = 30000,
	/*
	 * After an Allocate nothing is asked for so many milliseconds; under Allocates without end
	 * for no longer than the second number.
	 */
	POD_RESOURCES_QUIET_MS = ALLOCATION_EPOCH_QUIET_MS,
	POD_RESOURCES_QUIET_MAX_MS = 10000,
};

struct pod_resources *pod_resources_new(struct loop *loop,
					const struct pod_resources_config *config);
/* Not from `changed`. Accepts NULL. */
void pod_resources_free(struct pod_resources *resources);

/*
 * An Allocate was answered: ask again, once the kubelet has been left in peace for
 * POD_RESOURCES_QUIET_MS. Other questions wait for that, too.
 */
void pod_resources_given(struct pod_resources *resources);
/*
 * Ask now, or once that time is over, and call `checked` once: for an answer to a question that was
 * put after this call, or when it is unknown. A kubelet that listens and does not answer is asked
 * until it does.
 */
void pod_resources_check(struct pod_resources *resources);
/*
 * What the kubelet named last, in the shape of `changed` but without what it names no more: a pod
 * that has another one's name does not have that one's devices. Borrowed; NULL: it has not
 * answered, or the last question failed.
 */
const json_t *pod_resources_named(const struct pod_resources *resources);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the API server and the kubelet know of a pod's networks, for the meta plugin's worker: the
 * pod, the NetworkAttachmentDefinitions that it names, its devices; and what is written about it:
 * network-status, events.
 *
 * Each definition is read by its name when a pod needs it, all of a pod at once over the one
 * connection. No watch: it would hold the whole cluster's on each node, or be late in the very
 * moment that counts, right after the definition was made.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/kube/client.h"
#include "lib/kube/recorder.h"
#include "lib/loop/loop.h"

struct networks;

/* Borrowed. */
struct networks_config {
	struct loop *loop;
	struct kube_client *client;
	struct recorder *recorder;
	/*
	 * Have the kubelet asked again who has which device; networks_devices() is called with an
	 * answer to a question that was put after this. NULL: there is no kubelet to ask.
	 */
	void (*look_at_devices)(void *arg);
	void *arg;
};

struct networks *networks_new(const struct networks_config *config);
/* Questions end without an answer. Before the client. */
void networks_free(struct networks *networks);

/*
 * named:  {"spidernet.io/x": {"0000:3b:00.2": "namespace/pod/container"}}: the devices of
 *         containers; NULL: the kubelet does not report them
 * served: ["spidernet.io/x"], the resources that our device plugins offer on this node
 *
 * Both are borrowed.
 */
void networks_devices(struct networks *networks, const json_t *named, const json_t *served);

/* Of an answer, or err: exactly one is NULL. */
typedef void networks_done_fn(void *arg, const json_t *answer, const struct err *err);

struct networks_question;

/*
 * question, copied: {"kind": "networks", "pod": {"namespace", "name"}, "config": the meta plugin's}
 * is answered by {"pod", "nads", "devices", "served"} as meta_delegates() wants them, without "pod"
 * when there is none of that name; {"kind": "status", "pod", "text", "added": [text]} by {} when
 * network-status is written and events are on their way.
 *
 * done comes once, never before this returns. Errors: those of meta_wanted(), ERR_TRANSIENT
 * "PodResourcesUnavailable", and those of lib/kube/client.h.
 */
struct networks_question *networks_ask(struct networks *networks, const json_t *question,
				       networks_done_fn *done, void *arg);

/* No answer comes any more. What is being written is not taken back. NULL is fine. */
void networks_cancel(struct networks_question *question);

/* Does networks_ask() answer this? */
bool networks_knows(const char *what);

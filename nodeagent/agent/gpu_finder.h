// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the GPUs and the rails of the pod to which the kubelet gives devices right now. The kubelet
 * does not name the pod; it waits for our answer, and admits no other pod meanwhile. So the pod is
 * the one that has GPUs and lacks devices that it asks for: PodResources have the first, its spec
 * the second. It is one of the node's pending pods; how many others hold GPUs does not matter. Pods
 * with the label of rails need no GPUs: while all that lack devices want the same rails, these are
 * right, whichever pod it is.
 *
 * This is the one moment at which a List of PodResources cannot make the kubelet forget devices
 * (pod_resources.h): no Allocate is under way.
 */
#pragma once

#include <jansson.h>

#include "lib/kube/client.h"
#include "lib/loop/loop.h"

struct gpu_finder;

enum {
	/* What has not answered by then is not waited for. */
	GPU_FINDER_MS = 300,
	/*
	 * After an API server has not listed pods by then, it is not asked for them: many pods that
	 * start do not wait for it one after the other.
	 */
	GPU_FINDER_PAUSE_MS = 10000,
	/*
	 * Bytes of such a list. The namespace whose pods are most of one that has more, or is late,
	 * is left out for GPU_FINDER_PAUSE_MS; so many at once, or the pause is for all.
	 */
	GPU_FINDER_LIST_MAX = 4 * 1024 * 1024,
	GPU_FINDER_LARGE_MAX = 8,
	/* Pods whose rails are remembered. */
	GPU_FINDER_NOTED_MAX = 64,
};

struct gpu_finder_config {
	struct loop *loop;
	struct kube_client *client; /* borrowed */
	const char *node;           /* its name; borrowed for the call */
	const char *socket;         /* of PodResources; copied */
	int (*connect)(void *arg);  /* as in pod_resources.h; may be NULL */
	/*
	 * near: of same_rails_near() or affinity_near() (nodeagent/devices), borrowed; NULL:
	 * nothing is known.
	 */
	void (*found)(void *arg, int64_t id, const json_t *near);
	void *arg;
};

struct gpu_finder *gpu_finder_new(const struct gpu_finder_config *config);
/* Searches end without an answer. Before the client; not from `found`. Accepts NULL. */
void gpu_finder_free(struct gpu_finder *finder);

/*
 * A question of kubeletd (kubeletd_client.h, asked_gpus): `found` comes once, with its id, later.
 * observed is the observed document, borrowed.
 */
void gpu_finder_find(struct gpu_finder *finder, int64_t id, const char *resource,
		     const json_t *observed);

/* Rails that pods want, for same_rails_missed(), which removes what is settled. Borrowed. */
json_t *gpu_finder_on_rails(struct gpu_finder *finder);

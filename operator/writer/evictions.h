// SPDX-License-Identifier: Apache-2.0
/*
 * The eviction API: what is sent, and what the answers mean.
 *
 * policy/v1 since Kubernetes 1.22, policy/v1beta1 before; a server that does not know a version
 * says so with 400.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/kube/client.h"

/*
 * Ask the pod "namespace/name" of that uid to end, and no other; its own grace period holds. Sent
 * once, since that a budget refuses is an answer, and only while the client may write.
 */
struct kube_call *eviction_send(struct kube_client *client, bool is_old_version, const char *key,
				const char *uid, kube_done_fn *done, void *arg);

/* The server does not know the version. */
bool eviction_is_version_unknown(const struct kube_response *response);

/*
 * {} when the pod was asked to end, or is gone, or is another; else {"reason", "message"}:
 * PdbRefuses with the budget's name and numbers, TwoPdbs, EvictionFailed. New.
 */
json_t *eviction_answer(const struct kube_response *response, const struct err *err);

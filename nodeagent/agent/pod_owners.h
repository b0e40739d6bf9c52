// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns the pods that have devices: labels of metrics, by which people group. Pods are read
 * once, one after the other, and nothing is watched: a node with ten thousand others is not to
 * watch each pod, nor to ask for all of its own at once.
 */
#pragma once

#include <jansson.h>

#include "lib/kube/client.h"

struct pod_owners;

/* The client is borrowed. */
struct pod_owners *pod_owners_new(struct kube_client *client);
/* Before the client. Accepts NULL. */
void pod_owners_free(struct pod_owners *owners);

/*
 * { "ns/pod": meter_owner() } of those that are known, borrowed until the loop turns. pods: {
 * device: "ns/pod" }, borrowed: pods that are not known yet are asked for, others are forgotten. A
 * pod that cannot be read is asked for again at the next call, after all others.
 */
const json_t *pod_owners_of(struct pod_owners *owners, const json_t *pods);

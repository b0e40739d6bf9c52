// SPDX-License-Identifier: Apache-2.0
/*
 * Pods that asked for injection and run without it: because the webhook was off, unreachable or
 * passed over when they were created. Nothing can be added to a running pod, so this only reports,
 * in three places: a finding on the pod, which becomes an event and counts in a metric (plan.h,
 * plan_finding), and the condition Injected of the configs that it lacks.
 *
 * Only pods that carry one of the annotations themselves are looked at. A namespace's default
 * counts at the moment when a pod is created, and whether it was there at that moment is not
 * recorded anywhere; and keeping one pod in a thousand instead of all is what makes a watch of all
 * pods cheap (inject_check_wants drops the others while decoding).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/reconcile.h"

/*
 * Is the pod worth keeping: it carries the annotation and has not ended? For `wanted` of the pods'
 * cache (lib/kube/cache.h).
 */
bool inject_check_wants(const json_t *pod);

/*
 * Keep of it what is read here: metadata.{name,namespace,uid,annotations of ours, the label of
 * rails}, containers' limits, phase. In place.
 */
void inject_check_project(json_t *pod);

/*
 * key: a pod. World: KIND_POD (the pod), KIND_NAMESPACE (its own), KIND_MULTUS_CONFIG (of the group
 * pod_inject_group says, or more), "env": "namespace" and, with webhooks, "webhook":
 * {"configNamespace"}; then INJECT_CONFIG_MAP, the ConfigMap of that name there. Plan: the finding
 * NotInjected on the pod if it runs and lacks something, or asks for a group without configs, or
 * whose configs all came after it, and has no networks, else that there is none.
 */
reconcile_fn inject_check_pod;

/*
 * key: of a group whose configs in one namespace have changed. Plan: a post to BOX_INJECT_GROUP;
 * the pods that ask for it are looked at then.
 */
#define BOX_INJECT_GROUP "injectgroup"
reconcile_fn inject_check_group;

/*
 * key: a SpiderMultusConfig. World: KIND_MULTUS_CONFIG (the config), KIND_POD (of its groups those
 * that have a finding, or more), KIND_NAMESPACE (theirs; without it a namespace's stronger
 * annotation is not seen), "env". Plan: its status with the condition Injected: Unknown, NoWebhook,
 * without webhooks ("env": "webhook"); else False, PodsWithout, with the number of pods and the
 * first three, or True; none for a config that is in no group. All else in its status stays as it
 * is. An aggregate: run it at most once a second per config.
 */
reconcile_fn inject_check_config;

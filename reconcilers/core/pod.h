/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a pod: the one definition of "terminated". */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * No container of the pod runs, and none will: phase Failed or Succeeded, whatever restartPolicy
 * says. The kubelet sets Failed too when it rejects a pod (UnexpectedAdmissionError, OutOfcpu,
 * NodeAffinity, NodeShutdown, Preempting), and never starts such a pod again.
 *
 * Source: Kubernetes documentation, "Pod Lifecycle", pod phase.
 */
bool pod_has_terminated(const json_t *pod);

// SPDX-License-Identifier: Apache-2.0
/*
 * A whole kubelet of a version, on the test's own loop: its device manager (tests/fakes/kubelet.h),
 * admission of pods, PodResources, and the checkpoint from which the next one on this node goes on.
 *
 *	node = kubelet_node_new(loop, "/tmp/kubelet", &kubelet_versions[0]);
 *	assert_null(kubelet_node_admit(node, "ns/p", "spidernet.io/x", 2));
 *	kubelet_node_restart(node, &kubelet_versions[1]);
 *
 * Pods have one container, "c". Behaviour: pkg/kubelet/cm/devicemanager/manager.go
 * (devicesToAllocate), pkg/kubelet/apis/podresources/server_v1.go.
 */
#pragma once

#include <jansson.h>

#include "tests/fakes/kubelet_versions.h"

struct kubelet_node;

/* dir: with the folders "device-plugins" and "pod-resources". */
struct kubelet_node *kubelet_node_new(struct loop *loop, const char *dir,
				      const struct kubelet_version *version);
/* Turns the loop. Accepts NULL. */
void kubelet_node_free(struct kubelet_node *node);
/* This one ends, one of that version starts; the pods stay. Turns the loop. */
void kubelet_node_restart(struct kubelet_node *node, const struct kubelet_version *version);

struct fake_kubelet *kubelet_node_manager(struct kubelet_node *node);

/*
 * A pod that the scheduler has sent; or one that was here before, whose container starts again
 * after a boot. NULL: it runs; else why it was turned away, new. Turns the loop.
 */
char *kubelet_node_admit(struct kubelet_node *node, const char *pod, const char *resource,
			 size_t n);
/*
 * The pod has this device of nvidia.com/gpu: NVIDIA's plugin was asked before ours. A pod that was
 * not admitted yet is in the middle of it.
 */
void kubelet_node_give_gpu(struct kubelet_node *node, const char *pod, const char *id);
/* It has Succeeded; its object stays. */
void kubelet_node_end_pod(struct kubelet_node *node, const char *pod);
/* Its object is gone. */
void kubelet_node_remove_pod(struct kubelet_node *node, const char *pod);
/* What it was given: {"ids": […], "env": {…}, "nodes": […]}, borrowed. NULL: nothing. */
const json_t *kubelet_node_given(const struct kubelet_node *node, const char *pod);

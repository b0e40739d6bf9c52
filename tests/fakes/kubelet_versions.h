// SPDX-License-Identifier: Apache-2.0
/*
 * What kubelets from 1.20 to 1.36 do differently, as far as a device plugin or a reader of
 * PodResources can notice. Facts from Kubernetes' sources and pull requests. Not here:
 * GetAllocatableResources and Get of PodResources, and the plugin watcher, which nothing of ours
 * uses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/fakes/kubelet.h"

struct kubelet_version {
	const char *name;
	/* When Register is answered, and whose stream counts (tests/fakes/kubelet.h). */
	enum fake_kubelet_kind kind;
	/*
	 * Plugins are called with the socket's path as :authority; until 1.25 (kubernetes#112597).
	 */
	bool dials_by_path;
	/*
	 * At its start it removes every file of the directory but its checkpoint, not only sockets;
	 * until 1.32.
	 */
	bool wipes_files;
	/*
	 * PodResources has one entry for the devices of a resource and NUMA node, not one each;
	 * until 1.20.
	 */
	bool lists_together;
	/* A device without a NUMA node is said to be on node 0; until 1.22. */
	bool takes_none_for_0;
	/*
	 * Pods that have ended are in the list, without devices: since 1.17 List frees them first
	 * (kubernetes#79409). Until 1.33; then they are not in it (kubernetes#132028).
	 */
	bool lists_ended;
	/*
	 * Devices that a container has already must be registered and healthy to start it; since
	 * 1.27 (kubernetes#116376).
	 */
	bool checks_given;
};

/* 1.20 to 1.36, in order. */
extern const struct kubelet_version kubelet_versions[];
extern const size_t n_kubelet_versions;

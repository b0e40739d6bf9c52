// SPDX-License-Identifier: Apache-2.0
/*
 * Where containers find what is known of their RDMA devices once CNI has run (docs/nccl.md): a
 * folder of the node for each allocation, JOB_FOLDER/spidernet.io_rails_0000-3b-00.2, mounted
 * read-only at JOB_FOLDER_IN_POD.
 *
 * Allocate comes before CNI and does not say for which pod it is. So the folder is called by what
 * both sides know: the device plugin from the request, the CNI worker from the kubelet's checkpoint
 * (nodeagent/cni/plan/checkpoint.h). Nothing that a tenant names is in it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define JOB_FOLDER        "/run/orbweaver/jobs"
#define JOB_FOLDER_IN_POD "/run/orbweaver"

/*
 * Do pods with devices of this resource get a folder? patterns: names of resources with commas,
 * "spidernet.io/rails,*" with '*', '?' and '[' as in fnmatch(3); NULL: none do.
 */
bool job_folder_is_for(const char *patterns, const char *resource);

/* Can they be such patterns? ERR_INVALID "BadFlag". NULL can. */
int job_folder_check(const char *patterns, struct err *err);

/*
 * The folder's name below JOB_FOLDER, new: of the first of a container's devices by byte order,
 * whatever their order here. Without ':', which runtimes read as an end of the path. NULL: a
 * resource or a device whose name cannot be a file's, or no device.
 */
char *job_folder_name(const char *resource, const char *const *ids, size_t n);

// SPDX-License-Identifier: Apache-2.0
/*
 * What a job in a pod needs to know of its RDMA devices, in files of the folders that its
 * allocations have (nodeagent/model/job_folder.h): nccl.env for a shell, rails.json, and, where the
 * node has GPUs, nccl-topo.xml. docs/nccl.md. In a worker.
 *
 * The pod is found by its UID in the kubelet's checkpoint. No call fails for want of a file: what
 * is not known is logged, and has no file.
 */
#pragma once

#include "nodeagent/cni/worker/attachment.h"

/* Of one file; of one pod. */
enum { JOB_FILE_MAX = 65536, JOB_FOLDERS_MAX = 64 };

/*
 * An ADD is done: write the files of this sandbox anew, with all interfaces that it has by now.
 * patterns: as job_folder_is_for() has them; NULL: nothing is done.
 */
void job_files_write(struct attachment *attachment, const char *patterns);

/* The sandbox has gone: remove its folders. Those that another sandbox has by now stay. */
void job_files_remove(int root, const char *container);

/* Remove the folders of all sandboxes that have no record in `state`. */
void job_files_sweep(int root, struct sandboxes *state);

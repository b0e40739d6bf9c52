// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs that are not of one sandbox: what the server of CNI plugins wants to know of the node's
 * files, or have done with them, since it sees none of them. In a worker: blocks.
 *
 * Survey: state folders are made, and {"sandbox": {"container", "attachments", "life": "gone" |
 * "exists" | "unknown"}} comes for each; one that cannot be read has neither of the last two.
 * Notes: those named in "remove" go; with "list" {"note": {"name", "data": base64}} for each of the
 * next NOTES_AT_ONCE behind "after", "isOther" in place of "data" for what another version wrote;
 * done has "more". Profile: the folders are watched by the descriptor that comes with the job
 * (state/folder_watch.h), "blind" is the error where they cannot be; done has "networks", "memory",
 * which the next such job brings along, and "isOpen" (profile_keeper.h).
 * Each has "error" where it failed: ERR_HOST "StateUnusable"; "RdmaFilesStale".
 */
#pragma once

#include <jansson.h>

#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/cni_job.h"
#include "nodeagent/cni/worker/cni_worker.h"
#include "nodeagent/cni/worker/worker_channel.h"

/* watch: descriptor that came with the job; -1: none. root: descriptor of the host's root. */
void node_job_run(struct worker_channel *line, enum cni_job_kind kind, const json_t *job, int watch,
		  struct sandboxes *state, int root, const struct cni_worker_config *config);

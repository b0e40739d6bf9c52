// SPDX-License-Identifier: Apache-2.0
/*
 * The worker: a short-lived process, forked by the supervisor by order of the server, that carries
 * out one job in plain blocking code, since entering a namespace moves a whole thread and netlink
 * may wait. It ends when the job is done, when its deadline is over, or with the server.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a worker knows for itself, of the command line and of its node. Borrowed. */
struct cni_worker_config {
	const char *host_root;
	const char *plugin_types; /* cni/plan/plugin_types.h; NULL: none besides */
	const char *kubelet_dir;  /* allocated.h; NULL: no kubelet */
	const char *job_files;    /* resources, as job_files.h has them; NULL: none */
	/* Of profile_keeper.h. */
	const char *bin_dir, *program, *conf_dir, *shared_spaces;
	bool isolates;
	/* Of stat(2) of the node's own network namespace, which is never a pod's; 0: not known. */
	uint64_t node_netns;
};

/*
 * Read a job off this line (cni_job.h) and carry it out. The last frame is {"done": {…}}. Of a job
 * of one sandbox it has {"result": …, "error": {…}, "left": bool, "steps": […], "attachments":
 * […]}: left: something waits to be finished; attachments: what the sandbox has now
 * (attachment_index_describe); absent when that cannot be known. Of others see node_job.h.
 */
void cni_worker_run(int line, const struct cni_worker_config *config);

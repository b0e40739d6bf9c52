// SPDX-License-Identifier: Apache-2.0
/*
 * The worker: a short-lived process, forked by the server, that carries out one job in plain
 * blocking code, since entering a namespace moves a whole thread and netlink may wait. It ends when
 * the job is done, when its deadline is over, or with the server.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_WORKER_CNI_WORKER_H
#define ORBWEAVER_NODEAGENT_CNI_WORKER_CNI_WORKER_H

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/cni/worker/cni_call.h"

/* Name in ps(1), at most 15 bytes. */
#define CNI_WORKER_NAME "ow-cni-worker"

enum worker_kind {
	WORKER_CALL,    /* what the runtime asked for: ADD, CHECK, DEL */
	WORKER_UNDO,    /* the same ADD was given up: take away what there is of it */
	WORKER_FINISH,  /* of this sandbox all that is marked as to be deleted */
	WORKER_RECOVER, /* and all whose ADD was cut off, of those that a new server finds */
	WORKER_BURY,    /* all of this sandbox: it is gone */
	WORKER_SWEEP,   /* GC: what gone sandboxes have of the network, unless it is valid */
};

struct worker_job {
	enum worker_kind kind;
	const struct cni_call *call; /* WORKER_CALL, WORKER_UNDO, WORKER_SWEEP; else NULL */
	const char *container;
	int state, root; /* descriptors: of the state's folder, of the host's root */
	const char *plugin_types, *kubelet_dir; /* as struct attachment has them */
	bool has_plugin;                        /* somebody waits on the host that runs programs */
	bool is_late;                           /* a DEL from a note */
};

/*
 * Carry the job out over this line (worker_channel.h). The last frame is {"done": {"result": …,
 * "error": {…}, "left": bool, "steps": […], "attachments": […]}}: left: something waits to be
 * finished; attachments: what the sandbox has now (attachment_index_describe); absent when that
 * cannot be known.
 */
void cni_worker_run(int line, const struct worker_job *job);

#endif

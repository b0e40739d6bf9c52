// SPDX-License-Identifier: Apache-2.0
/*
 * What a worker is to do, as the server of CNI plugins sends it: first one byte, with the
 * descriptor of the pod's network namespace where there is one, or of the watch of the CNI folders,
 * then a frame (lib/json/frame.h):
 *
 *	{"kind": "call" | "undo" | "finish" | "recover" | "bury" | "sweep", "container", "call":
 *	 {…}, "hasPlugin": true, "note": "…"}		of one sandbox
 *	{"kind": "cluster", "call": {…}, "hasPlugin": true}	GC, STATUS of the cluster's network
 *	{"kind": "survey"}				what sandboxes there are
 *	{"kind": "notes", "list": true, "after", "remove", "clean": true}	what plugins noted
 *	{"kind": "profile", "profile", "usage", "memory"}	the node's CNI folders
 *	{"kind": "rdma"}				device files of RDMA devices
 *
 * The server talks to plugins and to the agent, and has no privileges; the worker has them. So the
 * worker believes nothing in a job that it can check: names, the call, the namespace. Where the
 * host's files are, and what may run there, the worker knows from its own command line.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/cni/worker/cni_call.h"

enum cni_job_kind {
	CNI_JOB_CALL,    /* what the runtime asked for: ADD, CHECK, DEL */
	CNI_JOB_UNDO,    /* the same ADD was given up: take away what there is of it */
	CNI_JOB_FINISH,  /* of this sandbox all that is marked as to be deleted */
	CNI_JOB_RECOVER, /* and all whose ADD was cut off, of those that a new server finds */
	CNI_JOB_BURY,    /* all of this sandbox: it is gone */
	CNI_JOB_SWEEP,   /* GC: what gone sandboxes have of the network, unless it is valid */
	CNI_JOB_CLUSTER, /* GC, STATUS of the meta plugin: its first network's plugins are called */
	CNI_JOB_SURVEY,  /* and the rest of the node: node_job.h */
	CNI_JOB_NOTES,
	CNI_JOB_PROFILE,
	CNI_JOB_RDMA,
	CNI_JOB_KINDS,
};

enum { CNI_JOB_MAX_MS = 24 * 3600 * 1000 };

/* Of one sandbox, or of the cluster's network. */
struct cni_job {
	enum cni_job_kind kind;
	const struct cni_call *call; /* CALL, UNDO, SWEEP, CLUSTER; else NULL */
	const char *container;       /* "" with CLUSTER */
	bool has_plugin;             /* a plugin waits on the host, which runs programs */
	const char *note;            /* the file that the DEL is from; NULL: none */
	int64_t ms;                  /* that the worker has for it; 0: not told */
};

/* New. */
json_t *cni_job_new(const struct cni_job *job);
/* {"kind"}, new: of a job that is not of one sandbox. */
json_t *cni_job_new_of_node(enum cni_job_kind kind);

/* ERR_BUG "BadJob". */
int cni_job_read_kind(const json_t *message, enum cni_job_kind *ret, struct err *err);
/*
 * A job of one sandbox, or CLUSTER. Members are borrowed from the message and from ret_call, which
 * is due for cni_call_done() in any case; netns as cni_call_read() has it. ERR_BUG "BadJob", and
 * errors of cni_call_read().
 */
int cni_job_read(const json_t *message, int netns, struct cni_job *ret, struct cni_call *ret_call,
		 struct err *err);

/* Can it be a note, a file in its folder? */
bool cni_job_is_note(const char *name);

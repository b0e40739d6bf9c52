// SPDX-License-Identifier: Apache-2.0
/*
 * One attachment, made, checked, taken away: a plugin's work for one network and interface of one
 * sandbox, with what is on the disk about it. In a worker: blocks, and may be killed at any line;
 * what is left then is enough for attachment_delete().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/worker_channel.h"

/*
 * What the plugins of one pod have in common in a call of the meta plugin (meta_call.c): what one
 * of them has asked or found out serves the others. Owned by that call.
 */
struct attachment_shared {
	json_t *wishes;    /* of pod_addresses.h; NULL: asked, or there is nothing to ask for */
	json_t *addresses; /* {interface: the answer}; NULL: not asked */
	json_t *settings;  /* of coordinators; NULL: not asked */
	json_t *nics;      /* whose coordinators come next (coordinator_detect.h) */
	json_t *findings;  /* {interface: finding} of those that were asked for */
};

/* What programs of others may take of one worker's time (external_ipam.c); {0} at first. */
struct program_limits {
	int64_t begun;     /* clock_ms() of the first that waited for a turn; 0: none did */
	int64_t turn_ms;   /* all waits for a turn end so long after `begun`; 0: WORKER_TURN_MS */
	int64_t del_begun; /* clock_ms() of the first DEL; 0: there was none */
	int64_t sum_ms;    /* for DELs of programs; 0: 50 s. A tenth later none begins */
	int64_t del_ms;    /* that a program's DEL may take at most; 0: what is left */
	bool has_hung;     /* the DEL of a program: others get half of what is left */
	size_t n_running;  /* children of the worker */
	bool has_no_turn;  /* none came: no program begins any more */
};

/* Borrowed, but for `steps` and `kept`. */
struct attachment {
	struct worker_channel *line;
	struct sandboxes *state;
	int root; /* descriptor of the host's root */
	const char *container;
	struct sandbox_key key;
	const json_t *config;
	const json_t *env; /* CNI_… of the call, as it was made or is made now */
	const json_t *pod; /* {"namespace", "name", "uid"}, each where it is known */
	int netns;         /* -1: gone */
	/* Of others, which may run besides (cni/plan/plugin_types.h); NULL: none. */
	const char *plugin_types;
	const char *conf_dir;    /* the runtime's CNI folder, below root; NULL: META_CONF_DIR */
	const char *bin_dir;     /* the runtime's folder of plugins, below root; NULL: none */
	const char *kubelet_dir; /* as allocated.h has it */
	/*
	 * A plugin waits on the host that runs programs for us; else they are run by ourselves in
	 * the host's root.
	 */
	bool has_plugin;
	struct program_limits *limits; /* of the worker */
	bool is_going;                 /* attachment_delete() sets it */
	bool is_handed_over;           /* another sandbox has its device next; addresses stay */
	bool has_no_ipam; /* the IPAM program could not be started: there is nothing to undo */
	json_t *steps;    /* array: what was done, {"step", "seconds", "ok"} */
	json_t *kept;     /* of attach_services, until its record has it; NULL at first */
	struct attach_worker *worker; /* as attach_call has it */
	int beside; /* of attach_call: what attachment_begin() has begun; 0 at first */
	int lock;   /* the same, while the device is locked */
	struct attachment_shared *shared; /* NULL: called alone */
	const json_t *later;              /* as attach_call has it */
};

/* Does this program know the plugin? */
bool attachment_knows(const char *plugin);

/*
 * May a list name the plugin twice? Its ADDs for one interface share a record, and each is given
 * what those before have saved.
 */
bool attachment_stacks(const char *plugin);

/* Has the plugin something to begin before its turn? */
bool attachment_begins(const char *plugin);
/*
 * Begin what an ADD would wait for, as ATTACH_BEGIN has it; the pod's other networks go on
 * meanwhile. attachment_add() or attachment_delete() for the same struct is due afterwards, also
 * after an error.
 */
int attachment_begin(struct attachment *attachment, struct err *err);

/*
 * *ret_result: new, the CNI result in the configuration's version. On an error all is undone, or
 * marked as to be deleted.
 */
int attachment_add(struct attachment *attachment, json_t **ret_result, struct err *err);
int attachment_check(struct attachment *attachment, struct err *err);

/*
 * Take it away, by what the disk knows; `attachment` says where that says nothing. 0 also when
 * something has to wait: it stays marked on the disk. -1: the device is in the pod's living
 * namespace and could not be moved.
 */
int attachment_delete(struct attachment *attachment, struct err *err);

/* meta_call_pass(): plugins of ours have nothing to do then. command: "GC" or "STATUS". */
int attachment_pass(struct attachment *attachment, const char *command, struct err *err);

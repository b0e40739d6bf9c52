// SPDX-License-Identifier: Apache-2.0
/*
 * A call of a CNI plugin, as it came from the runtime: read and checked as the specification wants
 * it (containernetworking/cni, SPEC.md 1.1). Errors become codes in
 * nodeagent/cni/server/cni_error.h.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plugin/wire.h"

enum cni_command {
	CALL_ADD,
	CALL_CHECK,
	CALL_DEL,
	CALL_GC,
	CALL_STATUS,
	CALL_COMMANDS,
};

struct cni_call {
	enum cni_command command;
	char *plugin;    /* as which it was called: "sriov" */
	json_t *env;     /* object of strings: CNI_… */
	json_t *config;  /* stdin: the plugin's object of the chain */
	json_t *args;    /* CNI_ARGS as an object of strings */
	int netns;       /* descriptor of the pod's namespace, owned; -1: none came */
	int netns_errno; /* why; 0: CNI_NETNS is empty */

	/* Borrowed from the above; "" when absent, pod_* NULL. */
	const char *version, *network, *container, *ifname, *netns_path;
	const char *pod_namespace, *pod_name, *pod_uid;
};

/*
 * Read a WIRE_CALL. netns: the descriptor that came along, or -1; the call's from now on, also on
 * failure. `ret` is zeroed before, or done; cni_call_done() is due in any case.
 *
 * ERR_INVALID: "BadEnvironment" (something is missing or not as it has to be), "BadJson" (stdin is
 * no JSON object), "BadCniVersion", "BadNetworkName" (no name, or no name as it has to be),
 * "BadNetns" (ADD or CHECK without a namespace), "BadField" (GC without a list of valid
 * attachments, or with one that cannot be read: it would take away what pods have).
 */
int cni_call_read(const struct wire_message *message, int netns, struct cni_call *ret,
		  struct err *err);

/*
 * The same call for another process of ours, new: {"plugin", "env", "config", "netnsErrno"}, and
 * from there with all checks again: the process that sends it is not believed. The descriptor comes
 * apart, as above. Errors as above, ERR_BUG "BadJob" for what cni_call_write() does not write.
 */
json_t *cni_call_write(const struct cni_call *call);
int cni_call_read_json(const json_t *text, int netns, struct cni_call *ret, struct err *err);
void cni_call_done(struct cni_call *call);

/* From now on as one whose namespace is gone: no descriptor, CNI_NETNS is empty. */
void cni_call_lose_netns(struct cni_call *call);

/* Can a sandbox have this name? It is part of a file's name. False for NULL. */
bool cni_call_is_container(const char *name);

/* GC: is this attachment on one of the lists of those that are valid (SPEC.md 1.1)? */
bool cni_call_is_valid(const struct cni_call *call, const char *container, const char *ifname);

/* The same call for one more who reads it: `ret` is done like any other. It has no descriptor. */
void cni_call_share(const struct cni_call *call, struct cni_call *ret);

const char *cni_command_name(enum cni_command command);

// SPDX-License-Identifier: Apache-2.0
/*
 * The server (cni_server.h) in a process of its own, started by the supervisor: the one that stays
 * of those that see the host's files, so it has no line to the API server or the kubelet.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_SERVER_CNID_H
#define ORBWEAVER_NODEAGENT_CNI_SERVER_CNID_H

#include <stdbool.h>
#include <stdint.h>

/* Name in ps(1), at most 15 bytes. */
#define CNID_NAME "ow-cnid"
/* A packet of one byte to the supervisor: the heartbeat. */
#define CNID_ALIVE "h"

struct cnid_config {
	/* a packet with a descriptor brings a line to the next agent; the end says to end */
	int control;
	int64_t heartbeat_ms;
	const char *host_root;
	const char *socket;                 /* path on the host */
	const char *bin_dir;                /* the runtime's folder of plugins, on the host */
	const char *program;                /* the plugin to install, as we see it */
	const char *conf_dir;               /* the runtime's CNI folder, on the host */
	bool isolates;                      /* pods get networks of their own namespace only */
	const char *shared_spaces;          /* and of these, with commas; NULL: "default" */
	int64_t add_ms, again_ms, notes_ms; /* cni_server.h, as the next */
	const char *plugin_types, *kubelet_dir;
};

/* Returns an exit status. */
int cnid_run(const struct cnid_config *config);

#endif

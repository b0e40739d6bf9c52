/*
 * The server in a process of its own, started by the supervisor.
 */
#ifndef ORBWEAVER_NODEAGENT_KUBELETD_PROCESS_H
#define ORBWEAVER_NODEAGENT_KUBELETD_PROCESS_H

#include <stdint.h>

struct dra_folders;

/* Packets of one byte to the supervisor: there is something to offer; the heartbeat. */
#define KUBELETD_OFFERING "o"
#define KUBELETD_ALIVE    "h"

/*
 * Serve until `control` says to end (supervisor.h, `serve`), with a heartbeat every heartbeat_ms;
 * directories as in server.h. Returns an exit status: 1 when one of them was removed and whoever is
 * started next has to find it anew.
 */
int kubeletd_run(int control, int64_t heartbeat_ms, const char *plugins_dir,
		 const char *devinfo_dir, const struct dra_folders *dra);

#endif

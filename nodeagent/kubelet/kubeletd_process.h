// SPDX-License-Identifier: Apache-2.0
/* The server in a process of its own, started by the supervisor. */
#pragma once

#include <stdint.h>

struct dra_folders;
struct allocation_epoch;

struct kubeletd_process_config {
	int control; /* process/supervisor.h, `serve` */
	int64_t heartbeat_ms;
	/* As in kubeletd_server.h. */
	const char *plugins_dir, *devinfo_dir, *device_paths;
	const struct dra_folders *dra;
	struct allocation_epoch *giving;
};

/*
 * Serve until `control` says to end. Returns an exit status: 1 when a folder was removed and the
 * process that is started next has to find it again.
 */
int kubeletd_run(const struct kubeletd_process_config *config);

// SPDX-License-Identifier: Apache-2.0
/*
 * Does a network namespace exist that a file on the disk names: a sandbox of ours, a note of
 * another CNI plugin?
 *
 * The answer decides whether what a pod has is taken away. So there are three: unknown counts as
 * "exists" wherever a device, an address or a route would be taken. The one place where a path of a
 * runtime is opened: "/run/netns/cni-…", and "/proc/42/ns/net" of cri-dockerd and of CRI-O without
 * manage_ns_lifecycle, which leads out of any root (lib/base/root.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum netns_life {
	NETNS_EXISTS,
	NETNS_GONE,
	NETNS_UNKNOWN, /* no descriptors, no rights, no propagation of mounts, … */
};

/* What is known of the namespace. Borrowed. */
struct netns_known {
	const char *path;       /* as the runtime gave it; NULL or empty: unknown */
	uint64_t device, inode; /* of stat(2); inode 0: unknown */
	const char *boot;       /* id of the boot in which it was made; NULL or empty: unknown */
	const char *boot_now;   /* id of this one; NULL or empty: it could not be read */
};

/*
 * Gone is a namespace of another boot, one whose path leads nowhere (ENOENT, ENOTDIR), and one in
 * whose place another namespace could be opened. Below a root without processes a path of a process
 * says nothing. root: descriptor of the host's root.
 *
 * ret_fd, which may be NULL, gets a descriptor of a namespace that exists, -1 else.
 */
enum netns_life netns_life(int root, const struct netns_known *known, int *ret_fd);

/*
 * Open whatever is at a path of a runtime below the host's root, for reading, without waiting for
 * it; close-on-exec. -1 with errno.
 */
int netns_path_open(int root, const char *path);

/*
 * Does the path name the namespace by a process, whose number another one may have by now? A
 * symbolic link is followed once.
 */
bool netns_path_is_of_process(int root, const char *path);

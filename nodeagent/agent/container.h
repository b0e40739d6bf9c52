// SPDX-License-Identifier: Apache-2.0
/*
 * What the DaemonSet has to give the agent's container, looked at when the supervisor starts: a
 * manifest that a user has changed is reported on the NodeState, with what to write, instead of
 * by what fails much later. manifests/base/agent.yaml has all of it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/cni/plan/profile.h"

enum {
	/* A CNI call has three descriptors, a network namespace of the node one. */
	CONTAINER_DESCRIPTORS = 4096,
	/* Bytes of memory with CNI (PROFILE_DEVICES has none): plugins of others run in it. */
	CONTAINER_MEMORY = 256 << 20,
};

/* All false and 0: nothing is missing, or this is not a container. */
struct container_facts {
	/* The node ends a mount below, and the container keeps it, and the mount's device busy. */
	bool is_root_private, is_kubelet_private;
	bool lacks_openat2;
	bool has_own_pids, has_own_network; /* namespaces that are not the host's */
	bool is_filtered;                   /* by a seccomp profile of the runtime */
	int64_t descriptors;                /* hard limit; 0: not known */
	int64_t memory;                     /* limit in bytes; 0: not known, or none */
};

/*
 * Look. A host_root that nothing is mounted on is not a container's: the result is empty then.
 * kubelet_dir: as this process sees it; NULL: none. A /sys of the host that cannot be written is
 * the planner's problem (SysfsReadOnly), capabilities are process/privileges.h's.
 */
struct container_facts container_look(const char *host_root, const char *kubelet_dir);

/*
 * Pure: does a mount or an end of a mount on the node, below `path`, stay unknown here? mountinfo:
 * text of /proc/self/mountinfo (proc_pid_mountinfo(5)). The last mount that is at the path, or the
 * nearest above it, counts.
 */
bool container_is_private(const char *mountinfo, const char *path);
/* Pure: is something mounted at the path itself? */
bool container_is_mount(const char *mountinfo, const char *path);

/*
 * Pure: what is missing, [{"reason", "message"}], new: "MountPrivate", "ContainerUnfit". Each
 * message names path or limit, what it does to the node, and what to write.
 */
json_t *container_findings(const struct container_facts *facts, const char *host_root,
			   const char *kubelet_dir, enum profile profile);

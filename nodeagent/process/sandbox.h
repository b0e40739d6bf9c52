// SPDX-License-Identifier: Apache-2.0
/*
 * What agent, kubeletd and cnid give up before they receive anything from outside: the host's
 * files, user 0, every capability, and all system calls that they do not need.
 *
 * Each is forked by the supervisor with all its rights, takes what it needs of the host, and calls
 * sandbox_hide() or sandbox_root(), then sandbox_become(), then sandbox_filter(). After that
 * nothing can be gained any more: no_new_privs is set, there is no capability to raise, mounts
 * cannot be changed, and neither memory nor descriptors of another process be had (ptrace(2),
 * pidfd_getfd(2) are not among the calls, and no other process belongs to this user and is
 * dumpable).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/err.h"

/*
 * Ours alone: not 65532, as which the containers of many images run, whose memory would be ours
 * to read on a host that we share. systemd's list of users (UIDS-GIDS) has 60578 to 61183 unused.
 */
enum { SANDBOX_USER = 60932 };

/*
 * A mount namespace of our own in which the host's root and `folder` (outside of it; NULL: none)
 * are gone. Below host_root only "dev" is left, read-only, where names can be read and no device
 * opened. A host_root of "/" cannot be gone: there user and capabilities have to do. What the host
 * unmounts later goes here, too.
 * ERR_HOST "SandboxRefused".
 */
int sandbox_hide(const char *host_root, const char *folder, struct err *err);

/*
 * A mount namespace of our own whose root has these folders, and nothing else: `from` is there as
 * "/" `name`, without devices and set-user-id programs. Each has to be there. The root is made on
 * top of the first one, in this namespace only. ERR_HOST "SandboxRefused".
 */
struct sandbox_folder {
	const char *from, *name;
};
int sandbox_root(const struct sandbox_folder *folders, size_t n, struct err *err);

/*
 * A runtime mounts /proc/sys read-only in containers that are not privileged: make it writable, in
 * a mount namespace of our own, for processes that set sysctls of pods. Does nothing where it is
 * writable. ERR_HOST "SandboxRefused".
 */
int sandbox_open_sysctls(struct err *err);

/*
 * Become this user and group, with no capability, no supplementary group, no_new_privs, not
 * dumpable; the end of the parent still ends us. files_as_root: files are opened as user 0 without
 * capabilities, which is for a process that has a sandbox_root() of what it may write.
 * ERR_HOST "PrivilegesNotDropped" unless the kernel confirms it. With user 0 only capabilities go.
 */
int sandbox_become(uid_t user, bool files_as_root, struct err *err);

enum sandbox_role {
	SANDBOX_AGENT,       /* internet and netlink sockets; a thread for DNS */
	SANDBOX_NODE_SERVER, /* kubeletd, cnid: sockets of AF_UNIX only */
};

/*
 * From now on a call that is not on the list of the role fails with ENOSYS. ERR_HOST
 * "SandboxRefused".
 */
int sandbox_filter(enum sandbox_role role, struct err *err);

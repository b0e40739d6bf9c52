// SPDX-License-Identifier: Apache-2.0
/*
 * Mount namespaces, users, seccomp(2), in the order in which a process gives them up. Called by
 * main.c and the agent's process in the child, before anything is received.
 */
#include "nodeagent/process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/process/privileges.h"

/* Room for folders, and none for files. */
#define NO_ROOM "size=4k,mode=0755"
#define INERT   (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static int refused(struct err *err, const char *what)
{
	return err_sys(
		err, "SandboxRefused",
		"%s (the agent has to start as root with CAP_SYS_ADMIN, and AppArmor and SELinux "
		"have to let it mount)",
		what);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* What we mount stays here; what the host unmounts goes here as well, so that we hold nothing. */
static int own_namespace(struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return refused(err, "make a mount namespace");
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return refused(err, "keep mounts in our namespace");
	return 0;
}

/* Whatever is mounted there goes; an empty folder hides what was below. */
static int hide(const char *folder, struct err *err)
{
	struct stat st;

	while (umount2(folder, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	if (stat(folder, &st) < 0 && errno == ENOENT)
		return 0;
	if (mount("none", folder, "tmpfs", INERT, NO_ROOM) < 0)
		return refused(err, "hide the host's files");
	return 0;
}

/* MS_BIND alone takes no other flags (mount(2)). */
static int bind_inert(const char *from, const char *to, unsigned long flags, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND, NULL) < 0 ||
	    mount("none", to, NULL, MS_BIND | MS_REMOUNT | INERT | flags, NULL) < 0) {
		auto_free char *what = str_printf("bind %s to %s", from, to);

		return refused(err, what);
	}
	return 0;
}

int sandbox_hide(const char *host_root, const char *folder, struct err *err)
{
	auto_free char *dev = str_below(host_root, "dev");
	bool has_dev = access(dev, F_OK) == 0;

	if (own_namespace(err) < 0)
		return -1;
	if (!str_eq(host_root, "/")) {
		/* Over our own /dev, until there is another place for it. */
		if (has_dev && bind_inert(dev, "/dev", 0, err) < 0)
			return -1;
		if (hide(host_root, err) < 0)
			return -1;
		if (has_dev &&
		    (mkdir(dev, 0755) < 0 || bind_inert("/dev", dev, MS_RDONLY, err) < 0 ||
		     umount2("/dev", MNT_DETACH) < 0))
			return err->class ? -1 : refused(err, "move the host's /dev");
	}
	return folder && !str_eq(folder, "/") ? hide(folder, err) : 0;
}

static int make_folders(int base, const struct sandbox_folder *folders, const int *fds, size_t n,
			struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		auto_free char *from = str_printf("/proc/self/fd/%d", fds[i]);

		if (mkdirat(base, folders[i].name, 0755) < 0)
			return refused(err, "make a root");
		if (bind_inert(from, folders[i].name, 0, err) < 0)
			return -1;
	}
#ifdef __SANITIZE_ADDRESS__ /* the leak checker reads it */
	if (mkdirat(base, "proc", 0755) < 0 || bind_inert("/proc", "proc", 0, err) < 0)
		return -1;
#endif
	return 0;
}

/* To the folder we are in. */
static int change_root(struct err *err)
{
	/* pivot_root(2): "." twice puts the old root below the new one, from where it goes. */
	if (syscall(SYS_pivot_root, ".", ".") == 0) {
		if (umount2(".", MNT_DETACH) < 0)
			return refused(err, "leave the old root");
	} else if (errno != EINVAL || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0) {
		/* EINVAL: the old one is an initramfs, which can be left only by covering it. */
		return refused(err, "change the root");
	}
	if (mount("none", "/", NULL, MS_REMOUNT | MS_RDONLY | INERT, NO_ROOM) < 0 || chdir("/") < 0)
		return refused(err, "make the new root read-only");
	return 0;
}

int sandbox_root(const struct sandbox_folder *folders, size_t n, struct err *err)
{
	int fds[8], rc = -1;
	auto_close int base = -1;
	size_t opened = 0;

	if (n == 0 || n > ARRAY_LEN(fds))
		return err_set(err, ERR_BUG, "SandboxRefused", "a root of %zu folders", n);
	if (own_namespace(err) < 0)
		return -1;
	for (; opened < n; opened++) {
		fds[opened] = open(folders[opened].from, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[opened] < 0) {
			rc = err_sys(err, "SandboxRefused", "open %s", folders[opened].from);
			break;
		}
	}
	if (opened == n && mount("none", folders[0].from, "tmpfs", INERT, NO_ROOM) < 0)
		rc = refused(err, "make a root");
	else if (opened == n)
		base = open(folders[0].from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base >= 0 && fchdir(base) == 0 && make_folders(base, folders, fds, n, err) == 0)
		rc = change_root(err);
	while (opened > 0)
		(void)close(fds[--opened]);
	return rc;
}

int sandbox_open_sysctls(struct err *err)
{
	struct statvfs fs;

	if (statvfs("/proc/sys", &fs) < 0 || !(fs.f_flag & ST_RDONLY))
		return 0;
	if (own_namespace(err) < 0)
		return -1;
	return mount("none", "/proc/sys", NULL, MS_BIND | MS_REMOUNT | INERT, NULL) < 0
		       ? refused(err, "make /proc/sys writable")
		       : 0;
}

/* ---- the user -------------------------------------------------------------------------------- */

static int become(uid_t user, bool files_as_root, struct err *err)
{
	if (setgroups(0, NULL) < 0)
		return err_sys(err, "PrivilegesNotDropped", "leave all groups");
	if (prctl(PR_SET_KEEPCAPS, files_as_root, 0, 0, 0) < 0 || setresgid(user, user, user) < 0 ||
	    setresuid(user, user, user) < 0)
		return err_sys(err, "PrivilegesNotDropped", "become user %u", (unsigned int)user);
	if (files_as_root) {
		/* CAP_SETUID is still permitted, and has to be raised to be used. */
		if (privileges_raise_users(err) < 0)
			return -1;
		(void)setfsgid(0);
		(void)setfsuid(0);
		if (setfsuid((uid_t)-1) != 0)
			return err_set(err, ERR_HOST, "PrivilegesNotDropped",
				       "the kernel refuses to open files as root");
	}
	return 0;
}

static int confirm(uid_t user, struct err *err)
{
	uid_t r, e, s;

	if (getresuid(&r, &e, &s) < 0 || r != user || e != user || s != user)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped", "still another user than %u",
			       (unsigned int)user);
	return 0;
}

int sandbox_become(uid_t user, bool files_as_root, struct err *err)
{
	pid_t parent = getppid();
	int death_signal = 0;

	(void)prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0);
	if (privileges_drop_bounds(err) < 0)
		return -1;
	if (user != 0 && (become(user, files_as_root, err) < 0 || confirm(user, err) < 0))
		return -1;
	if (privileges_drop_all(err) < 0)
		return -1;
	/* A change of user has cleared it (prctl(2)); the parent may have ended meanwhile. */
	if (prctl(PR_SET_PDEATHSIG, (unsigned long)death_signal, 0, 0, 0) < 0 ||
	    getppid() != parent)
		return err_set(err, ERR_HOST, "PrivilegesNotDropped", "the supervisor has ended");
#ifdef __SANITIZE_ADDRESS__
	/* The leak checker attaches to us at the end. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#else
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
	return 0;
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* What a loop of libuv, the C library, jansson and our own code need. */
static const int common[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(close),
	SCMP_SYS(lseek),
	SCMP_SYS(_llseek),
	/* files */
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
	SCMP_SYS(stat),
	SCMP_SYS(stat64),
	SCMP_SYS(lstat),
	SCMP_SYS(lstat64),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(fstatat64),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents),
	SCMP_SYS(getdents64),
	SCMP_SYS(statfs),
	SCMP_SYS(fstatfs),
	SCMP_SYS(getcwd),
	SCMP_SYS(fcntl),
	SCMP_SYS(fcntl64),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(flock),
	/* waiting */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(eventfd),
	SCMP_SYS(eventfd2),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timer_create),
	SCMP_SYS(timer_settime),
	SCMP_SYS(timer_gettime),
	SCMP_SYS(timer_getoverrun),
	SCMP_SYS(timer_delete),
	SCMP_SYS(inotify_init),
	SCMP_SYS(inotify_init1),
	SCMP_SYS(inotify_add_watch),
	SCMP_SYS(inotify_rm_watch),
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(restart_syscall),
	/* sockets: which ones is asked of socket(2) itself */
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(shutdown),
	SCMP_SYS(send),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(socketpair),
	/* memory */
	SCMP_SYS(brk),
	SCMP_SYS(mmap),
	SCMP_SYS(mmap2),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	/* time, chance, ourselves */
	SCMP_SYS(time),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_gettime64),
	SCMP_SYS(clock_getres),
	SCMP_SYS(getrandom),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getresuid),
	SCMP_SYS(getresgid),
	SCMP_SYS(getrusage),
	SCMP_SYS(getrlimit),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_yield),
	SCMP_SYS(futex),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(membarrier),
	/* signals */
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
#ifdef __SANITIZE_ADDRESS__ /* the leak checker stops us from a thread, and attaches to us */
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	SCMP_SYS(ptrace),
	SCMP_SYS(wait4),
	SCMP_SYS(prctl),
	SCMP_SYS(arch_prctl),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(prlimit64),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(personality),
	SCMP_SYS(setrlimit),
#endif
};

/* Threads: libcurl looks names up in one. FIONBIO, FIONREAD: libuv and libcurl. */
static const int of_agent[] = {
	SCMP_SYS(set_tid_address),
	SCMP_SYS(prlimit64),
	SCMP_SYS(ioctl),
};

/* Its sockets, and device-info files, in the folders of its root. */
static const int of_node_server[] = {
	SCMP_SYS(unlink),    SCMP_SYS(unlinkat),  SCMP_SYS(rename),  SCMP_SYS(renameat),
	SCMP_SYS(renameat2), SCMP_SYS(mkdir),     SCMP_SYS(mkdirat), SCMP_SYS(link),
	SCMP_SYS(linkat),    SCMP_SYS(fsync),     SCMP_SYS(chmod),   SCMP_SYS(fchmod),
	SCMP_SYS(fchmodat),  SCMP_SYS(ftruncate), SCMP_SYS(umask),   SCMP_SYS(ioctl),
	SCMP_SYS(prlimit64),
};

/* 0 or a negative errno, as libseccomp has it. A call that an architecture lacks is not there. */
static int allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return rc;
}

/* A call whose first argument is this. SCMP_A0() leaves a member out, which clang refuses. */
static int allow_first(scmp_filter_ctx filter, int call, uint64_t value)
{
	const struct scmp_arg_cmp is = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = value};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &is);
}

static int allow_families(scmp_filter_ctx filter, const int *families, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = allow_first(filter, SCMP_SYS(socket), (uint64_t)families[i]);
	return rc;
}

static int fill(scmp_filter_ctx filter, enum sandbox_role role)
{
	static const int agent_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	static const int node_server_families[] = {AF_UNIX};
	int rc = allow(filter, common, ARRAY_LEN(common));

	/* abort(3) and assert(3): a signal to ourselves, and to no other process. */
	if (rc == 0)
		rc = allow_first(filter, SCMP_SYS(tgkill), (uint64_t)getpid());
	if (rc == 0 && role == SANDBOX_NODE_SERVER)
		rc = allow(filter, of_node_server, ARRAY_LEN(of_node_server));
	if (rc == 0 && role == SANDBOX_NODE_SERVER)
		rc = allow_families(filter, node_server_families, ARRAY_LEN(node_server_families));
	if (rc == 0 && role == SANDBOX_AGENT)
		rc = allow(filter, of_agent, ARRAY_LEN(of_agent));
	if (rc == 0 && role == SANDBOX_AGENT)
		rc = allow_families(filter, agent_families, ARRAY_LEN(agent_families));
#ifndef __SANITIZE_ADDRESS__ /* it has all of them */
	/* Threads, not processes or namespaces; flags of clone3(2) cannot be seen. */
	if (rc == 0 && role == SANDBOX_AGENT)
		rc = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NEWUSER, CLONE_THREAD));
#endif
	return rc;
}

int sandbox_filter(enum sandbox_role role, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int rc;

	if (!filter)
		return err_set(err, ERR_HOST, "SandboxRefused", "no memory for a filter");
	rc = fill(filter, role);
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	errno = -rc;
	return rc == 0 ? 0 : err_sys(err, "SandboxRefused", "install the filter of system calls");
}

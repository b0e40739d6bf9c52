// SPDX-License-Identifier: Apache-2.0
/*
 * Somebody has taken over the agent, or kubeletd: control is handed over inside the process, after
 * it has given away what it gives away, and everything that comes to mind is tried. As root only.
 *
 * The host is a folder with a file system of its own, as a container has it at /host; beside it
 * live a process of root's, and one of the agent's own user.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/process/sandbox.h"

static struct stand {
	char folder[64];                         /* on the machine */
	char host[80], plugins[80], devinfo[80]; /* in it */
	pid_t root, own;                         /* processes to get at */
	int netns;                               /* a network namespace to enter */
} stand;

/* ---- the stand ------------------------------------------------------------------------------- */

static void write_file(const char *dir, const char *name, unsigned int mode)
{
	auto_free char *path = str_printf("%s/%s", dir, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	if (fd < 0 || write(fd, "secret", 6) != 6 || fchmod(fd, mode) < 0)
		abort();
}

static pid_t start_victim(uid_t user)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (user && (setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0))
		abort();
	/* A change of user would clear it (prctl(2)). */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	for (;;)
		(void)pause();
}

/* In mounts of our own: the machine sees none of it. */
static void make_host(void)
{
	auto_free char *dev = str_printf("%s/dev", stand.host);
	auto_free char *etc = str_printf("%s/etc", stand.host);
	auto_free char *zero = str_printf("%s/dev/zero", stand.host);

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", stand.host, "tmpfs", 0, NULL) < 0 || mkdir(dev, 0755) < 0 ||
	    mkdir(etc, 0755) < 0)
		abort();
	write_file(etc, "shadow", 0600);
	write_file(etc, "passwd", 0666);
	write_file(dev, "null", 0666);
	if (mknod(zero, S_IFCHR | 0666, makedev(1, 5)) < 0)
		abort();
}

/* ---- attempts: each returns 0 when it has succeeded, else -1 with errno ---------------------- */

static char *below_host(const char *name)
{
	return str_printf("%s/%s", stand.host, name);
}

static int try_open(const char *path, int flags)
{
	auto_close int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : 0;
}

static int read_shadow(void)
{
	auto_free char *path = below_host("etc/shadow");

	return try_open(path, O_RDONLY);
}

static int read_passwd(void)
{
	auto_free char *path = below_host("etc/passwd");

	return try_open(path, O_RDONLY);
}

static int write_cron(void)
{
	auto_free char *path = below_host("etc/cron.d-x");

	return try_open(path, O_WRONLY | O_CREAT);
}

static int open_device(void)
{
	auto_free char *path = below_host("dev/zero");

	return try_open(path, O_RDONLY);
}

static int write_dev(void)
{
	auto_free char *path = below_host("dev/x");

	return try_open(path, O_WRONLY | O_CREAT);
}

static int leave_root(void)
{
	return chroot(stand.host) == 0 ? 0 : try_open("/../../etc/shadow", O_RDONLY);
}

static int open_by_parents(void)
{
	auto_free char *path = below_host("dev/../etc/passwd");

	return try_open(path, O_RDONLY);
}

static int unmount(void)
{
	return umount2(stand.host, MNT_DETACH);
}

static int mount_something(void)
{
	return mount("none", stand.host, "proc", 0, NULL);
}

static int new_user_namespace(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

static int enter_namespace(void)
{
	auto_free char *path = str_printf("/proc/%d/ns/mnt", (int)stand.root);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, 0);
}

static int root_of(pid_t pid)
{
	auto_free char *path = str_printf("/proc/%d/root/etc/passwd", (int)pid);

	return try_open(path, O_RDONLY);
}

static int root_of_root(void)
{
	return root_of(stand.root);
}

static int memory_of(pid_t pid)
{
	auto_free char *path = str_printf("/proc/%d/mem", (int)pid);

	return try_open(path, O_RDWR);
}

static int memory_of_root(void)
{
	return memory_of(stand.root);
}

static int memory_of_supervisor(void)
{
	return memory_of(getppid());
}

static int attach(void)
{
	return ptrace(PTRACE_SEIZE, stand.root, NULL, NULL) < 0 ? -1 : 0;
}

static int signal_root(void)
{
	return kill(stand.root, SIGTERM);
}

static int signal_own_user(void)
{
	return kill(stand.own, SIGTERM);
}

static int signal_thread_of_own_user(void)
{
	return (int)syscall(SYS_tgkill, stand.own, stand.own, SIGTERM);
}

static int signal_supervisor(void)
{
	return kill(getppid(), SIGTERM);
}

static int take_descriptor(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	return pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0);
}

static int become_root(void)
{
	return setresuid(0, 0, 0);
}

static int raise_capability(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{.effective = ~0U, .permitted = ~0U}};

	return (int)syscall(SYS_capset, &header, data);
}

static int run_program(void)
{
	char *argv[] = {"true", NULL};

	(void)execv("/bin/true", argv);
	return -1;
}

static int raw_socket(void)
{
	auto_close int fd = socket(AF_INET, SOCK_RAW, IPPROTO_TCP);

	return fd < 0 ? -1 : 0;
}

static int packet_socket(void)
{
	auto_close int fd = socket(AF_PACKET, SOCK_RAW, 0);

	return fd < 0 ? -1 : 0;
}

static int internet_socket(void)
{
	auto_close int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : 0;
}

static int netlink_socket(void)
{
	auto_close int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	return fd < 0 ? -1 : 0;
}

static int load_module(void)
{
	return (int)syscall(SYS_init_module, "", 0, "");
}

static int call_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0);
}

static int write_sysctl(void)
{
	return try_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int write_sysfs(void)
{
	return try_open("/sys/kernel/uevent_helper", O_WRONLY) == 0
		       ? 0
		       : try_open("/sys/bus/pci/rescan", O_WRONLY);
}

static int open_machine(void)
{
	return try_open("/etc/passwd", O_RDONLY);
}

static int write_own_root(void)
{
	return try_open("/x", O_WRONLY | O_CREAT);
}

static int climb_out(void)
{
	return try_open("/device-plugins/../../../../etc/passwd", O_RDONLY);
}

static int make_device(void)
{
	return mknod("/device-plugins/zero", S_IFCHR | 0666, makedev(1, 5));
}

static __attribute__((unused)) int fork_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 0;
}

/* By the descriptor that a plugin sends along. */
static int enter_network(void)
{
	return setns(stand.netns, CLONE_NEWNET);
}

struct attempt {
	const char *what;
	int (*try)(void);
};

static const struct attempt of_both[] = {
	{"mount something", mount_something},
	{"make a user namespace", new_user_namespace},
	{"enter the namespace of a process of root's", enter_namespace},
	{"read through the root of a process of root's", root_of_root},
	{"open the memory of a process of root's", memory_of_root},
	{"open the memory of the supervisor", memory_of_supervisor},
	{"trace a process of root's", attach},
	{"signal a process of root's", signal_root},
	{"signal the supervisor", signal_supervisor},
	{"signal a process of the same user", signal_own_user},
	{"signal a thread of it", signal_thread_of_own_user},
	{"take a descriptor of the supervisor's", take_descriptor},
	{"become root", become_root},
	{"raise capabilities", raise_capability},
	{"run a program", run_program},
	{"open a raw socket", raw_socket},
	{"open a packet socket", packet_socket},
	{"load a module", load_module},
	{"call bpf", call_bpf},
	{"write a sysctl", write_sysctl},
	{"write into sysfs", write_sysfs},
};

static const struct attempt of_agent[] = {
	{"read a host file of root's", read_shadow},
	{"read a host file of everybody's", read_passwd},
	{"write a host file", write_cron},
	{"read a host file past /dev", open_by_parents},
	{"open a device of the host", open_device},
	{"write into the host's /dev", write_dev},
	{"leave by chroot", leave_root},
	{"take the cover off the host", unmount},
};

static const struct attempt of_kubeletd[] = {
	{"read a file outside", open_machine},        {"write into its root", write_own_root},
	{"climb out of its root", climb_out},         {"make a device", make_device},
	{"open an internet socket", internet_socket}, {"open a netlink socket", netlink_socket},
};

static const struct attempt of_cnid[] = {
	{"read a file outside", open_machine},
	{"write into its root", write_own_root},
#ifndef __SANITIZE_ADDRESS__ /* the leak checker forks */
	{"fork", fork_process},
#endif
	{"open an internet socket", internet_socket},
	{"open a netlink socket", netlink_socket},
	{"enter the network namespace of the node", enter_network},
};

/* Returns how many have succeeded. */
static int try_all(const char *who, const struct attempt *attempts, size_t n)
{
	int succeeded = 0;

	for (size_t i = 0; i < n; i++) {
		int rc;

		errno = 0;
		rc = attempts[i].try();
		dprintf(STDERR_FILENO, "%-9s %-46s %s\n", who, attempts[i].what,
			rc == 0 ? "SUCCEEDED" : strerror(errno));
		succeeded += rc == 0;
	}
	return succeeded;
}

/* ---- the processes --------------------------------------------------------------------------- */

static int be_agent(void)
{
	auto_free char *dev = below_host("dev/zero");
	struct err err = {0};
	struct stat st;

	if (sandbox_hide(stand.host, stand.plugins, &err) < 0 ||
	    sandbox_become(SANDBOX_USER, false, &err) < 0 ||
	    sandbox_filter(SANDBOX_AGENT, &err) < 0) {
		dprintf(STDERR_FILENO, "%s\n", err.text);
		return 100;
	}
	/* What it needs it has: names of devices, connections, its parent's death. */
	if (stat(dev, &st) < 0 || internet_socket() < 0 || netlink_socket() < 0)
		return 101;
	return try_all("agent", of_both, ARRAY_LEN(of_both)) +
	       try_all("agent", of_agent, ARRAY_LEN(of_agent));
}

static int be_kubeletd(void)
{
	const struct sandbox_folder folders[] = {{stand.plugins, "device-plugins"},
						 {stand.devinfo, "devinfo"}};
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/device-plugins/x.sock"};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct err err = {0};

	if (sandbox_root(folders, ARRAY_LEN(folders), &err) < 0 ||
	    sandbox_become(SANDBOX_USER, true, &err) < 0 ||
	    sandbox_filter(SANDBOX_NODE_SERVER, &err) < 0) {
		dprintf(STDERR_FILENO, "%s\n", err.text);
		return 100;
	}
	/* What it needs it has: sockets and files in root's two folders. */
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    try_open("/devinfo/x", O_WRONLY | O_CREAT) < 0 || unlink("/device-plugins/x.sock") < 0)
		return 101;
	return try_all("kubeletd", of_both, ARRAY_LEN(of_both)) +
	       try_all("kubeletd", of_kubeletd, ARRAY_LEN(of_kubeletd));
}

/* Its root has the folder of its socket. */
static int be_cnid(void)
{
	const struct sandbox_folder folder = {stand.devinfo, "cni"};
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/cni/cni.sock"};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct err err = {0};

	if (sandbox_root(&folder, 1, &err) < 0 || sandbox_become(SANDBOX_USER, true, &err) < 0 ||
	    sandbox_filter(SANDBOX_NODE_SERVER, &err) < 0) {
		dprintf(STDERR_FILENO, "%s\n", err.text);
		return 100;
	}
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    fchmodat(AT_FDCWD, name.sun_path, 0600, 0) < 0 || listen(fd, 1) < 0 ||
	    unlink(name.sun_path) < 0)
		return 101;
	return try_all("cnid", of_both, ARRAY_LEN(of_both)) +
	       try_all("cnid", of_cnid, ARRAY_LEN(of_cnid));
}

/* In a process that plays the supervisor. Its exit status: how many attempts have succeeded. */
static int in_stand(int (*be)(void))
{
	pid_t supervisor = fork(), pid;
	int status = 0;

	if (supervisor != 0) {
		assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
	}
	make_host();
	stand.root = start_victim(0);
	stand.own = start_victim(SANDBOX_USER);
	pid = fork();
	if (pid == 0)
		_exit(be());
	(void)waitpid(pid, &status, 0);
	/* Nobody has ended them. */
	if (waitpid(stand.root, NULL, WNOHANG) != 0 || waitpid(stand.own, NULL, WNOHANG) != 0)
		_exit(99);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static bool may_mount(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(geteuid() == 0 && unshare(CLONE_NEWNS) == 0 ? 0 : 1);
	(void)waitpid(pid, &status, 0);
	return status == 0;
}

static int set_up(void **state)
{
	(void)snprintf(stand.folder, sizeof(stand.folder), "%s", "/tmp/sandbox-test-XXXXXX");
	assert_non_null(mkdtemp(stand.folder));
	(void)snprintf(stand.host, sizeof(stand.host), "%s/host", stand.folder);
	(void)snprintf(stand.plugins, sizeof(stand.plugins), "%s/plugins", stand.folder);
	(void)snprintf(stand.devinfo, sizeof(stand.devinfo), "%s/devinfo", stand.folder);
	assert_int_equal(chmod(stand.folder, 0755), 0);
	assert_int_equal(mkdir(stand.host, 0755), 0);
	assert_int_equal(mkdir(stand.plugins, 0750), 0);
	assert_int_equal(mkdir(stand.devinfo, 0755), 0);
	return 0;
}

static int tear_down(void **state)
{
	auto_free char *left = str_printf("%s/x", stand.devinfo);

	(void)unlink(left);
	(void)rmdir(stand.host);
	(void)rmdir(stand.plugins);
	(void)rmdir(stand.devinfo);
	assert_int_equal(rmdir(stand.folder), 0);
	return 0;
}

TEST_WITH(whoever_takes_over_the_agent_gets_nowhere, set_up, tear_down)
{
	if (!may_mount())
		skip();
	assert_int_equal(in_stand(be_agent), 0);
}

TEST_WITH(whoever_takes_over_kubeletd_gets_nowhere, set_up, tear_down)
{
	if (!may_mount())
		skip();
	assert_int_equal(in_stand(be_kubeletd), 0);
}

/* As a runtime gives it to a container. */
static int with_sysctls_read_only(void)
{
	static const char sysctl[] = "/proc/sys/net/ipv4/ip_default_ttl";
	struct err err = {0};

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
	    mount("none", "/proc/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 1;
	if (try_open(sysctl, O_WRONLY) == 0 || errno != EROFS)
		return 2;
	if (sandbox_open_sysctls(&err) < 0 || try_open(sysctl, O_WRONLY) < 0)
		return 3;
	/* Nothing is left to do. */
	return sandbox_open_sysctls(&err) < 0 ? 4 : 0;
}

TEST(sysctls_that_are_read_only_become_writable)
{
	int status = 0;
	pid_t pid;

	if (!may_mount())
		skip();
	pid = fork();
	if (pid == 0)
		_exit(with_sysctls_read_only());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(a_root_without_its_folders_is_refused)
{
	const struct sandbox_folder missing = {"/nonexistent/orbweaver", "missing"};
	struct err err = {0};
	int status = 0;
	pid_t pid;

	assert_int_equal(sandbox_root(NULL, 0, &err), -1);
	assert_string_equal(err.reason, "SandboxRefused");
	/* Without the right to mount it is refused as well. */
	pid = fork();
	if (pid == 0)
		_exit(sandbox_root(&missing, 1, &err) < 0 && str_eq(err.reason, "SandboxRefused")
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A user cannot become another one. */
static int become_twice(void)
{
	struct err err = {0};

	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (sandbox_become(65533, false, &err) == 0)
		return 2;
	return err.class == ERR_HOST && str_eq(err.reason, "PrivilegesNotDropped") ? 0 : 3;
}

TEST(privileges_that_cannot_be_given_away_are_an_error)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(become_twice());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_WITH(whoever_takes_over_cnid_gets_nowhere, set_up, tear_down)
{
	if (!may_mount())
		skip();
	stand.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(stand.netns >= 0);
	assert_int_equal(in_stand(be_cnid), 0);
	(void)close(stand.netns);
}

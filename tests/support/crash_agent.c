/*
 * The agent as it ships, whose processes a test kills at a step of its own choice: linked with
 * --wrap, the calls by which CNI changes the disk or the kernel count.
 *
 * The file CRASH_FILE says when and whom; without it nothing is counted. Steps are those of the
 * server of plugins and of its workers, together. All processes of that name are killed, before the
 * step; whoever is left goes on, as in life. POWER stops server and workers instead, for a test
 * that cuts the node's power: nothing gets further meanwhile.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/cni/process.h"
#include "nodeagent/cni/worker.h"

#define CRASH_FILE "/var/lib/orbweaver-crash"
#define NAME_SIZE  16
#define POWER      "power"

/* Four bytes, four bytes, sixteen; what a shell can write. */
struct crash {
	atomic_uint at;    /* the step; 0: none */
	atomic_uint steps; /* so far */
	char victim[NAME_SIZE];
};

static struct crash *crash;

static bool is_called(const char *pid, const char *name)
{
	auto_free char *path = str_printf("/proc/%s/comm", pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char comm[NAME_SIZE + 1] = "";

	if (fd < 0 || read(fd, comm, sizeof(comm) - 1) <= 0)
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return str_eq(comm, name);
}

/* Send a signal to all processes of a name, to ourselves at last. */
static void signal_all(const char *name, int signal)
{
	auto_closedir DIR *proc = opendir("/proc");
	const struct dirent *entry;
	bool is_own = false;
	int64_t pid;

	while (proc && (entry = readdir(proc))) {
		if (!str_to_int(entry->d_name, 1, INT32_MAX, &pid) ||
		    !is_called(entry->d_name, name))
			continue;
		if (pid == getpid())
			is_own = true;
		else
			(void)kill((pid_t)pid, signal);
	}
	if (is_own)
		(void)raise(signal);
}

static void step(void)
{
	char name[NAME_SIZE] = "";
	int fd;

	(void)prctl(PR_GET_NAME, name);
	if (!str_eq(name, CNID_NAME) && !str_eq(name, CNI_WORKER_NAME))
		return;
	if (!crash) {
		fd = open(CRASH_FILE, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return;
		crash = mmap(NULL, sizeof(*crash), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		(void)close(fd);
		if (crash == MAP_FAILED)
			abort();
	}
	if (atomic_fetch_add(&crash->steps, 1) + 1 != atomic_load(&crash->at))
		return;
	if (!str_eq(crash->victim, POWER)) {
		signal_all(crash->victim, SIGKILL);
		return;
	}
	/* Our own name comes last: what follows a stop of ourselves is not reached. */
	signal_all(str_eq(name, CNID_NAME) ? CNI_WORKER_NAME : CNID_NAME, SIGSTOP);
	signal_all(name, SIGSTOP);
}

int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
	step();
	return __real_renameat(from, old, to, new);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	step();
	return __real_unlinkat(dir, name, flags);
}

int __wrap_fsync(int fd)
{
	step();
	return __real_fsync(fd);
}

ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	step();
	return __real_sendto(fd, data, len, flags, to, to_len);
}

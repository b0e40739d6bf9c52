// SPDX-License-Identifier: Apache-2.0
/*
 * The last stretch of a reboot: who the first process is, and its own word for it. boots.c calls
 * this through the host's door once the request is on the disk; whether a reboot is due was decided
 * long before, by planner and operator.
 */
#include "nodeagent/host/reboot.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/root.h"
#include "nodeagent/host/program.h"
#include "nodeagent/host/sysfs.h"

/* The last part of the path of a program; the kernel says of one that was replaced " (deleted)". */
static bool is_program(const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *last = slash ? slash + 1 : path;

	return last && str_starts(last, name) &&
	       (last[strlen(name)] == '\0' || last[strlen(name)] == ' ');
}

enum init_system reboot_init(const struct host *host)
{
	auto_free char *program = root_read_link(host->root, "proc/1/exe");

	/* sd_booted(3). */
	if (sysfs_exists(host, "run/systemd/system") && is_program(program, "systemd"))
		return INIT_SYSTEMD;
	return is_program(program, "busybox") ? INIT_BUSYBOX : INIT_UNKNOWN;
}

/* Else process 1 is that of our container. */
static bool is_hosts_namespace(const struct host *host)
{
	auto_free char *theirs = root_read_link(host->root, "proc/1/ns/pid");
	char ours[64];
	ssize_t n = readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1);

	ours[n > 0 ? n : 0] = '\0';
	return theirs && str_eq(theirs, ours);
}

static bool systemctl_reboots(const struct host *host)
{
	char *const arguments[] = {"systemctl", "--no-wall", "reboot", NULL};
	char said[200];
	int status = program_run(host, arguments, said, sizeof(said));

	if (status == 0)
		return true;
	said[strcspn(said, "\n")] = '\0';
	log_warn("systemctl does not reboot, asking the first process itself",
		 F_INT("status", status), F_STR("said", said));
	return false;
}

int reboot_ask(const struct host *host, enum init_system init, struct err *err)
{
	if (!is_hosts_namespace(host))
		return err_set(err, ERR_HOST, "RebootRefused",
			       "the agent is not in the host's PID namespace (hostPID), so it "
			       "cannot ask for a reboot");
	switch (init) {
	case INIT_UNKNOWN:
		break;
	case INIT_SYSTEMD:
		if (systemctl_reboots(host) || kill(1, SIGRTMIN + 5) == 0)
			return 0;
		return err_sys(err, "RebootRefused", "signal systemd");
	case INIT_BUSYBOX:
		if (kill(1, SIGTERM) == 0)
			return 0;
		return err_sys(err, "RebootRefused", "signal init");
	}
	return err_set(err, ERR_HOST, "RebootRefused",
		       "the first process of the host is neither systemd nor busybox init: reboot "
		       "the node by hand");
}

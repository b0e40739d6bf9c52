// SPDX-License-Identifier: Apache-2.0
/*
 * The side of `orbweaver simulate break` and `repair`: one order to the control socket, one answer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/simulate/nodes/nodes.h"
#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

enum {
	ANSWER_MAX = 4096,
	WAIT_S = 30,
};

static int not_simulated(const char *socket, struct err *err)
{
	return err_sys(err, "NotSimulated",
		       "no simulated cluster listens at %s (start one with orbweaver simulate)",
		       socket);
}

static int connect_to(const char *path, struct err *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = WAIT_S};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	errno = ENAMETOOLONG;
	if (fd < 0 ||
	    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path) >=
		    (int)sizeof(name.sun_path) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return not_simulated(path, err);
	return take_fd(&fd);
}

static int order(const char *socket, const char *verb, const char *nic, const char *kind,
		 char **ret_text, struct err *err)
{
	const char *slash = strchr(nic, '/');
	auto_free char *node = slash ? str_ndup(nic, (size_t)(slash - nic)) : NULL, *line = NULL;
	auto_close int fd = -1;
	char answer[ANSWER_MAX];
	size_t len = 0;
	ssize_t n = 1;
	char *reason, *rest;

	if (str_empty(node) || str_empty(slash + 1) || strpbrk(nic, " \n") ||
	    (kind && strpbrk(kind, " \n")))
		return err_set(err, ERR_INVALID, "BadNic",
			       "\"%.80s\": must be NODE/NIC, such as gpu-1/ens6f0np0", nic);
	fd = connect_to(socket, err);
	if (fd < 0)
		return -1;
	line = str_printf("%s %s %s%s%s\n", verb, node, slash + 1, kind ? " " : "",
			  kind ? kind : "");
	if (fs_write_all(fd, line, strlen(line)) < 0)
		return not_simulated(socket, err);
	while (n > 0 && len < sizeof(answer) - 1) {
		n = read(fd, answer + len, sizeof(answer) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	answer[len] = '\0';
	/* "ok TEXT" or "error REASON TEXT". */
	rest = answer;
	answer[strcspn(answer, "\n")] = '\0';
	if (str_starts(answer, "ok ")) {
		*ret_text = str_dup(answer + strlen("ok "));
		return 0;
	}
	(void)strsep(&rest, " ");
	reason = strsep(&rest, " ");
	return err_set(err, ERR_INVALID, reason ? reason : "NoAnswer", "%s",
		       rest ? rest : "the simulated nodes gave no answer");
}

int nodes_break(const char *socket, const char *nic, const char *kind, char **ret_text,
		struct err *err)
{
	return order(socket, "break", nic, kind, ret_text, err);
}

int nodes_repair(const char *socket, const char *nic, const char *kind, char **ret_text,
		 struct err *err)
{
	return order(socket, "repair", nic, kind, ret_text, err);
}

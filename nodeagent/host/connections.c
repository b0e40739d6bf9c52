// SPDX-License-Identifier: Apache-2.0
/*
 * Which sockets a process has (/proc/PID/fd), and which connections they are (/proc/PID/net/tcp and
 * tcp6; proc_pid_net(5), Documentation/networking/proc_net_tcp.rst). A worker asks for the
 * kubelet's once when it starts, and remembers the result (worker/addresses.h); the plugin bridge
 * asks for peers before the node gets the address of a gateway, the coordinator before the node
 * gets a route to a pod.
 */
#include "nodeagent/host/connections.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"

/* include/net/tcp_states.h */
enum { ESTABLISHED = 1, LISTEN = 10 };

pid_t connections_listener(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	assert(path);
	if (fd < 0 || strlen(path) >= sizeof(name.sun_path))
		return 0;
	memcpy(name.sun_path, path, strlen(path));
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return peer.pid;
}

/* Inodes of a process's sockets: { "4711": true }, new. */
static json_t *sockets_of(int root, pid_t pid)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *file;
	json_t *ret = json_object();
	char folder[48];
	int fd;

	(void)snprintf(folder, sizeof(folder), "proc/%d/fd", (int)pid);
	fd = root_open(root, folder, O_RDONLY | O_DIRECTORY, 0);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (file = readdir(dir))) {
		char target[64];
		ssize_t n = readlinkat(dirfd(dir), file->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (str_starts(target, "socket:[") && str_ends(target, "]")) {
			target[n - 1] = '\0';
			json_put_bool(ret, target + strlen("socket:["), true);
		}
	}
	return ret;
}

/*
 * "0700A8C0" or 32 digits: words of the machine's byte order. As text; false for loopback and for
 * what is not an address.
 */
static bool read_address(const char *hex, char ret[INET6_ADDRSTRLEN])
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	size_t n = strlen(hex) / 8;
	struct in6_addr ip = {0};
	uint32_t words[4] = {0};

	if ((n != 1 && n != 4) || strlen(hex) % 8 != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sscanf(hex + 8 * i, "%8x", &words[i]) != 1)
			return false;
	memcpy(&ip, words, sizeof(ip));
	/* A socket of both families has IPv4 addresses of this form. */
	if (n == 4 && memcmp(&ip, mapped, sizeof(mapped)) == 0) {
		memmove(&ip, (const char *)&ip + sizeof(mapped), sizeof(words[0]));
		n = 1;
	}
	if (n == 1)
		return *(const unsigned char *)&ip != 127 &&
		       inet_ntop(AF_INET, &ip, ret, INET6_ADDRSTRLEN);
	return !IN6_IS_ADDR_LOOPBACK(&ip) && inet_ntop(AF_INET6, &ip, ret, INET6_ADDRSTRLEN);
}

struct line {
	char local[33], port[9], remote[33], inode[24];
	unsigned int state;
};

/* One line of the kernel's. */
static bool read_any_line(const char *line, struct line *ret)
{
	return sscanf(line,
		      " %*u: %32[0-9A-F]:%8[0-9A-F] %32[0-9A-F]:%*x %x %*s %*s %*s %*u %*u %23s",
		      ret->local, ret->port, ret->remote, &ret->state, ret->inode) == 5;
}

/* The same; false for connections that are not established. */
static bool read_line(const char *line, struct line *ret)
{
	return read_any_line(line, ret) && ret->state == ESTABLISHED;
}

/* Line by line: a node may have a hundred thousand connections. NULL: there is no such file. */
static FILE *open_file(int root, const char *process, const char *name)
{
	auto_free char *path = str_printf("proc/%s/net/%s", process, name);
	auto_close int fd = root_open(root, path, O_RDONLY, 0);
	FILE *file;

	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (file)
		(void)take_fd(&fd);
	return file;
}

static const char *const files[] = {"tcp", "tcp6"};

json_t *connections_addresses(const struct host *host, pid_t pid)
{
	json_auto_t *sockets = sockets_of(host->root, pid);
	auto_free char *process = str_printf("%d", (int)pid);
	json_t *ret = json_array();

	assert(pid > 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_fclose FILE *file = open_file(host->root, process, files[i]);
		char line[512], text[INET6_ADDRSTRLEN];
		struct line tcp;

		while (file && fgets(line, sizeof(line), file))
			if (read_line(line, &tcp) && json_object_get(sockets, tcp.inode) &&
			    read_address(tcp.local, text) && !json_list_has(ret, text))
				json_array_append_new(ret, json_string(text));
	}
	return ret;
}

json_t *connections_peers(int root, bool (*is_wanted)(const void *arg, const char *address),
			  const void *arg, struct err *err)
{
	json_auto_t *peers = json_array();

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_fclose FILE *file = open_file(root, "thread-self", files[i]);
		char line[512], text[INET6_ADDRSTRLEN];
		struct line tcp;

		/* A node without IPv6 has no second one. */
		if (!file && i == 0) {
			(void)err_sys(err, "HostUnreadable", "open /proc/thread-self/net/%s",
				      files[i]);
			return NULL;
		}
		while (file && json_array_size(peers) < CONNECTIONS_PEERS_MAX &&
		       fgets(line, sizeof(line), file))
			if (read_line(line, &tcp) && read_address(tcp.remote, text) &&
			    is_wanted(arg, text) && !json_list_has(peers, text))
				json_array_append_new(peers, json_string(text));
	}
	return take_ptr(peers);
}

json_t *connections_reached(int root, pid_t pid,
			    bool (*is_wanted)(const void *arg, const char *address),
			    const void *arg)
{
	json_auto_t *sockets = NULL, *listens = json_object(), *found = json_array();
	auto_free char *process = str_printf("%d", (int)pid);
	json_t *ret = json_array(), *one;
	size_t k;

	assert(pid > 0 && is_wanted);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_fclose FILE *file = open_file(root, process, files[i]);
		char line[512], text[INET6_ADDRSTRLEN];
		struct line tcp;

		while (file && fgets(line, sizeof(line), file)) {
			if (!read_any_line(line, &tcp))
				continue;
			if (tcp.state == LISTEN)
				json_put_bool(listens, tcp.port, true);
			else if (tcp.state == ESTABLISHED && read_address(tcp.remote, text) &&
				 is_wanted(arg, text) &&
				 json_array_size(found) < CONNECTIONS_PEERS_MAX)
				json_array_append_new(found, json_pack("{s:s, s:s, s:s}", "address",
								       text, "port", tcp.port,
								       "inode", tcp.inode));
		}
	}
	/* Most often there is nothing to ask for. */
	sockets = json_array_size(found) ? sockets_of(root, pid) : NULL;
	json_array_foreach (found, k, one)
		if (json_object_get(sockets, json_str_at(one, "inode")) &&
		    !json_object_get(listens, json_str_at(one, "port")))
			json_array_append(ret, json_at(one, "address"));
	return ret;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The control socket: one line from a client, one line back, closed. "break NODE NIC KIND", "repair
 * NODE NIC [KIND]"; "ok TEXT" or "error REASON TEXT". Its folder is the user's alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/simulate/nodes/faults.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

enum {
	LINE_MAX_LEN = 512,
	CLIENTS_MAX = 16,
	/* Names that an error lists. */
	NAMES_MAX = 20,
};

struct client {
	struct control *control;
	int fd; /* -1: the slot is free */
	struct poller *poller;
	char line[LINE_MAX_LEN];
	size_t len;
};

struct control {
	struct nodes *nodes;
	char *path;
	int fd;
	struct poller *poller;
	struct client clients[CLIENTS_MAX];
};

/* ---- orders ---------------------------------------------------------------------------------- */

static struct sim_node *find_node(struct nodes *nodes, const char *name, struct err *err)
{
	struct sim_node *node = map_get(&nodes->all, name);
	auto_strbuf struct strbuf names = {0};
	const json_t *spec;
	size_t i;

	if (node && node->agent)
		return node;
	if (node) {
		(void)err_set(err, ERR_TRANSIENT, "NodeNotReady",
			      "\"%.63s\": has not started yet; wait until its Node is Ready", name);
		return NULL;
	}
	json_array_foreach ((json_t *)nodes->config->nodes, i, spec) {
		if (i == NAMES_MAX) {
			strbuf_addf(&names, " and %zu more", nodes->all.len - i);
			break;
		}
		strbuf_addf(&names, "%s%s", i ? ", " : "",
			    json_string_value(json_object_get(spec, "name")));
	}
	(void)err_set(err, ERR_INVALID, "UnknownNode", "\"%.63s\": unknown node; there are %s",
		      name, strbuf_str(&names));
	return NULL;
}

static const struct sim_nic *find_nic(const struct sim_node *node, const char *name,
				      struct err *err)
{
	const struct sim_nic *nic = sim_host_find(&node->host, name);
	auto_strbuf struct strbuf names = {0};

	if (nic)
		return nic;
	for (size_t i = 0; i < node->host.n_nics; i++)
		strbuf_addf(&names, "%s%s", i ? ", " : "", node->host.nics[i].netdev);
	(void)err_set(err, ERR_INVALID, "UnknownNic", "\"%.32s\": unknown NIC of %s; there are %s",
		      name, node->name, strbuf_str(&names));
	return NULL;
}

/* Of one kind, or of all where `word` is NULL; how many of them changed. */
static int set_faults(struct sim_node *node, const struct sim_nic *nic, const char *word,
		      bool is_broken, int *ret_changed, struct err *err)
{
	enum tree_fault fault = TREE_FAULTS;

	*ret_changed = 0;
	if (word && fault_read(word, &fault, err) < 0)
		return -1;
	for (int i = 0; i < TREE_FAULTS; i++)
		if (!word || i == (int)fault)
			*ret_changed +=
				sim_node_set_fault(node, nic, (enum tree_fault)i, is_broken);
	return 0;
}

/* The answer without its end, new. */
static char *obey(struct nodes *nodes, char *line)
{
	char *rest = line, *verb = strsep(&rest, " "), *name = strsep(&rest, " ");
	char *nic_name = strsep(&rest, " "), *word = strsep(&rest, " ");
	bool is_break = str_eq(verb, "break");
	const struct sim_nic *nic = NULL;
	struct sim_node *node = NULL;
	struct err err = {0};
	int changed;

	if (!nic_name || (is_break && !word) || (!is_break && !str_eq(verb, "repair")))
		return str_dup("error BadOrder must be break NODE NIC KIND, or repair NODE NIC "
			       "[KIND]");
	node = find_node(nodes, name, &err);
	if (node)
		nic = find_nic(node, nic_name, &err);
	if (!nic || set_faults(node, nic, word, is_break, &changed, &err) < 0)
		return str_printf("error %s %s", err.reason, err.text);
	return str_printf("ok %s/%s (%s): %s%s", node->name, nic->netdev, nic->address,
			  is_break ? word : "repaired", changed == 0 ? ", as it was before" : "");
}

/* ---- connections ----------------------------------------------------------------------------- */

static void hang_up(struct client *client)
{
	poller_free(client->poller);
	(void)close(client->fd);
	client->fd = -1;
	client->len = 0;
}

static void on_readable(void *arg, int events)
{
	struct client *client = arg;
	ssize_t n = read(client->fd, client->line + client->len,
			 sizeof(client->line) - 1 - client->len);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	client->len += n > 0 ? (size_t)n : 0;
	client->line[client->len] = '\0';
	end = strchr(client->line, '\n');
	if (end) {
		auto_free char *text = NULL, *answer = NULL;

		*end = '\0';
		text = obey(client->control->nodes, client->line);
		answer = str_printf("%s\n", text);
		(void)send(client->fd, answer, strlen(answer), MSG_NOSIGNAL);
	}
	if (end || n <= 0 || client->len == sizeof(client->line) - 1)
		hang_up(client);
}

static void on_connection(void *arg, int events)
{
	struct control *control = arg;
	auto_close int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; fd >= 0 && i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0)
			continue;
		client->fd = take_fd(&fd);
		client->poller = poller_new(control->nodes->loop, client->fd, on_readable, client);
		poller_want(client->poller, POLL_READ);
	}
}

struct control *control_new(struct nodes *nodes, const char *path, struct err *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct control *control;

	if (snprintf(name.sun_path, sizeof(name.sun_path), "%s", path) >=
	    (int)sizeof(name.sun_path)) {
		(void)err_set(err, ERR_INVALID, "SocketPath",
			      "%s: too long for a socket, at most %zu characters", path,
			      sizeof(name.sun_path) - 1);
		return NULL;
	}
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    listen(fd, CLIENTS_MAX) < 0) {
		(void)err_sys(err, "SocketNotMade", "listen on %s", path);
		return NULL;
	}
	control = mem_new(struct control);
	control->nodes = nodes;
	control->path = str_dup(path);
	control->fd = take_fd(&fd);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		control->clients[i] = (struct client){.control = control, .fd = -1};
	control->poller = poller_new(nodes->loop, control->fd, on_connection, control);
	poller_want(control->poller, POLL_READ);
	return control;
}

void control_free(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (control->clients[i].fd >= 0)
			hang_up(&control->clients[i]);
	poller_free(control->poller);
	(void)close(control->fd);
	(void)unlink(control->path);
	mem_free(control->path);
	mem_free(control);
}

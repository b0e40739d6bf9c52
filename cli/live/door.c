// SPDX-License-Identifier: Apache-2.0
/*
 * One request for each connection, one answer, and the end. ticket.c judges the request's head;
 * report_serve.c gets the socket of each that may become a WebSocket, and speaks it.
 */
#include "cli/live/door.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "cli/live/ticket.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/http/address.h"
#include "lib/http/request.h"

/* A connection, from accept to the end of its answer. */
struct visitor {
	struct door *door;
	struct visitor *older, *newer;
	int fd;
	struct poller *poller;
	struct timer *timer;
	struct strbuf head;   /* what has come; until the answer begins */
	struct strbuf answer; /* what has still to go; empty: it has not begun */
};

struct door {
	struct loop *loop;
	struct door_config config;
	int fd;
	struct poller *poller;
	struct visitor *oldest, *newest;
	size_t n;
};

/* ---- visitors -------------------------------------------------------------------------------- */

static void visitor_free(struct visitor *v)
{
	struct door *door = v->door;

	*(v->older ? &v->older->newer : &door->oldest) = v->newer;
	*(v->newer ? &v->newer->older : &door->newest) = v->older;
	door->n--;
	poller_free(v->poller);
	timer_free(v->timer);
	if (v->fd >= 0)
		(void)close(v->fd);
	strbuf_done(&v->head);
	strbuf_done(&v->answer);
	mem_free(v);
}

static void visitor_overdue(void *arg)
{
	visitor_free(arg);
}

static const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{200, "OK"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{411, "Length Required"},
		{413, "Content Too Large"},
		{417, "Expectation Failed"},
		{426, "Upgrade Required"},
		{431, "Request Header Fields Too Large"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Bad Request";
}

static void visitor_send(struct visitor *v)
{
	ssize_t n = send(v->fd, v->answer.data, v->answer.len, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		visitor_free(v);
		return;
	}
	if (n > 0)
		strbuf_consume(&v->answer, (size_t)n);
	if (v->answer.len == 0)
		visitor_free(v);
	else
		poller_want(v->poller, POLL_WRITE);
}

/* The page for 200, else a refusal in one line. */
static void visitor_answer(struct visitor *v, int status)
{
	const struct door_config *config = &v->door->config;
	auto_free char *line = str_printf("%d %s\n", status, status_text(status));
	const char *body = status == 200 ? config->page : line;
	size_t len = status == 200 ? config->page_len : strlen(line);

	strbuf_addf(&v->answer,
		    "HTTP/1.1 %d %s\r\nContent-Type: text/%s; charset=utf-8\r\n"
		    "Content-Length: %zu\r\n%sX-Content-Type-Options: nosniff\r\n"
		    "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
		    status, status_text(status), status == 200 ? "html" : "plain", len,
		    status == 200 ? config->headers : "");
	strbuf_add(&v->answer, body, len);
	visitor_send(v);
}

static void visitor_upgrade(struct visitor *v, const char *head, size_t len)
{
	const struct door_config *config = &v->door->config;
	auto_strbuf struct strbuf upgrade = {0};
	int fd = v->fd;

	ticket_upgrade(head, len, &upgrade);
	if (upgrade.len > DOOR_UPGRADE_MAX) {
		visitor_answer(v, 431);
		return;
	}
	v->fd = -1;
	visitor_free(v);
	config->socket(config->arg, fd, upgrade.data, upgrade.len);
}

/* A whole head of len bytes has come. What stands behind it is ignored. */
static void visitor_request(struct visitor *v, size_t len)
{
	auto_strbuf struct strbuf head = {0}, cut = {0};
	int status = 200;

	strbuf_add(&head, v->head.data, len);
	strbuf_add(&cut, v->head.data, len);
	if (ticket_check(cut.data, len, v->door->config.token, &status) == TICKET_SOCKET)
		visitor_upgrade(v, head.data, len);
	else
		visitor_answer(v, status);
}

static void visitor_ready(void *arg, int events)
{
	struct visitor *v = arg;
	char buf[DOOR_HEAD_MAX];
	size_t len;
	ssize_t n;

	if (v->answer.len > 0) {
		visitor_send(v);
		return;
	}
	n = recv(v->fd, buf, DOOR_HEAD_MAX - v->head.len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		visitor_free(v);
		return;
	}
	strbuf_add(&v->head, buf, (size_t)n);
	len = request_head_len(v->head.data, v->head.len);
	if (len > 0)
		visitor_request(v, len);
	else if (v->head.len == DOOR_HEAD_MAX)
		visitor_answer(v, 431);
}

/* ---- the door -------------------------------------------------------------------------------- */

static void door_ready(void *arg, int events)
{
	struct door *door = arg;
	int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visitor *v;

	if (fd < 0)
		return;
	if (door->n == DOOR_VISITORS_MAX)
		visitor_free(door->oldest);
	v = mem_new(struct visitor);
	v->door = door;
	v->fd = fd;
	v->older = door->newest;
	*(v->older ? &v->older->newer : &door->oldest) = v;
	door->newest = v;
	door->n++;
	v->poller = poller_new(door->loop, fd, visitor_ready, v);
	poller_want(v->poller, POLL_READ);
	v->timer = timer_new(door->loop, visitor_overdue, v);
	timer_start(v->timer, DOOR_TIMEOUT_MS);
}

static bool is_loopback(const struct address *address)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)&address->sa;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&address->sa;

	if (address->sa.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr);
	/* Only the one that ticket.h takes as a Host. */
	return sin->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/* With the port that the kernel gave it. */
static char *host_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {0};
	socklen_t len = sizeof(address);

	(void)getsockname(fd, &address.any, &len);
	if (address.any.sa_family == AF_INET6)
		return str_printf("[::1]:%u", ntohs(address.v6.sin6_port));
	return str_printf("127.0.0.1:%u", ntohs(address.v4.sin_port));
}

struct door *door_new(struct loop *loop, const struct door_config *config, char **ret_host,
		      struct err *err)
{
	struct address address;
	auto_close int fd = -1;
	struct door *door;

	assert(loop && config->address && config->token && config->socket && ret_host);
	if (address_parse(config->address, &address, err) < 0)
		return NULL;
	if (!is_loopback(&address)) {
		(void)err_set(err, ERR_INVALID, "BadAddress",
			      "listen address \"%s\": must be of the loopback, 127.0.0.1:PORT or "
			      "[::1]:PORT",
			      config->address);
		return NULL;
	}
	fd = address_listen(&address, config->address, err);
	if (fd < 0) {
		err->class = ERR_INVALID;
		return NULL;
	}
	door = mem_new(struct door);
	door->loop = loop;
	door->config = *config;
	door->fd = take_fd(&fd);
	door->poller = poller_new(loop, door->fd, door_ready, door);
	poller_want(door->poller, POLL_READ);
	*ret_host = host_of(door->fd);
	return door;
}

void door_free(struct door *door)
{
	if (!door)
		return;
	while (door->oldest)
		visitor_free(door->oldest);
	poller_free(door->poller);
	(void)close(door->fd);
	mem_free(door);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What either half of the agent may hear from the other: the process that serves the kubelet from
 * an agent, and the agent from that process, over a socket. There is no kubelet and no directory
 * for sockets, so that every plugin fails to listen.
 *
 * First byte: bit 0: 0 the server, 1 the client hears; bit 1: the bytes as they are, else each line
 * as a frame; the others: the size of the pieces. Checked: no crash, no leak; what the next agent
 * is told was set by this one; `offering` comes once; after `lost` nothing comes, and the end of
 * the other side is always found.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "tests/fuzz/fuzz.h"

#define NO_DIR "/nonexistent/orbweaver"

/* Turns in which something has to happen that needs a few. */
enum { TURNS_MAX = 10000 };

struct half {
	struct loop *loop;
	int fd; /* the other side; -1: ended */
	struct kubeletd_server *server;
	struct kubeletd *client;
	struct strbuf heard; /* what the half says */
	int offering, lost;
	bool closed;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	/* Every plugin complains. */
	log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	return 0;
}

/* ---- the other side -------------------------------------------------------------------------- */

static int make_pair(struct half *half)
{
	int pair[2];

	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "a socket pair");
	half->fd = pair[0];
	return pair[1];
}

static void turn(struct half *half)
{
	ssize_t n;

	loop_turn(half->loop, false);
	do {
		strbuf_reserve(&half->heard, 65536);
		n = recv(half->fd, half->heard.data + half->heard.len, 65536, MSG_DONTWAIT);
		if (n > 0)
			half->heard.len += (size_t)n;
	} while (n > 0);
}

/* As many as are taken; a half that has given up takes no more. */
static void send_pieces(struct half *half, const struct strbuf *bytes, size_t piece)
{
	for (size_t at = 0; at < bytes->len;) {
		size_t len = bytes->len - at < piece ? bytes->len - at : piece;
		ssize_t n = send(half->fd, bytes->data + at, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		turn(half);
		if (n < 0)
			break;
		at += (size_t)n;
	}
	for (int i = 0; i < 4; i++)
		turn(half);
}

static void add_frames(const uint8_t *data, size_t size, struct strbuf *out)
{
	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t len = end ? (size_t)(end - data) : size;
		uint32_t header = __builtin_bswap32((uint32_t)len);

		strbuf_add(out, &header, sizeof(header));
		strbuf_add(out, data, len);
		data += end ? len + 1 : len;
		size -= end ? len + 1 : len;
	}
}

static void end_other_side(struct half *half)
{
	(void)close(half->fd);
	half->fd = -1;
}

/* ---- the server ------------------------------------------------------------------------------ */

static void on_offering(void *arg)
{
	((struct half *)arg)->offering++;
}

static void on_closed(void *arg)
{
	((struct half *)arg)->closed = true;
}

/* The pools that the next agent is told of, new, or NULL. */
static json_t *ask_pools(struct half *half)
{
	json_auto_t *message = NULL;
	json_t *pools;
	int fd;

	strbuf_done(&half->heard);
	end_other_side(half);
	fd = make_pair(half);
	kubeletd_server_attach(half->server, fd);
	for (int i = 0; i < 4; i++)
		turn(half);
	fuzz_check(json_frame_read(&half->heard, &message, NULL) == 0 && message,
		   "the server greets its agent");
	pools = json_object_get(json_object_get(message, "greeting"), "pools");
	fuzz_check(pools != NULL, "a greeting has pools, if none");
	return json_is_null(pools) ? NULL : json_incref(pools);
}

static bool was_set(const struct strbuf *bytes, const json_t *pools)
{
	auto_strbuf struct strbuf in = {0};
	json_t *message = NULL;
	bool was = false;

	strbuf_add(&in, bytes->data, bytes->len);
	while (!was && json_frame_read(&in, &message, NULL) == 0 && message) {
		was = json_is_integer(json_at(message, "number")) &&
		      json_same(json_at(message, "pools"), pools);
		json_decref(message);
	}
	return was;
}

static void check_server(struct half *half, const struct strbuf *bytes, size_t piece)
{
	json_auto_t *pools = NULL;
	int fd = make_pair(half);

	half->server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = half->loop,
		.plugins_dir = NO_DIR,
		.offering = on_offering,
		.arg = half,
	});
	kubeletd_server_attach(half->server, fd);
	send_pieces(half, bytes, piece);
	pools = ask_pools(half);
	fuzz_check(!pools || was_set(bytes, pools), "what is offered was set");
	fuzz_check(half->offering <= 1, "offering comes once");
	fuzz_check(json_array_size(json_at(pools, "resources")) == 0 || half->offering == 1,
		   "what offers something says so");
	kubeletd_server_close(half->server, on_closed, half);
	for (int i = 0; i < TURNS_MAX && !half->closed; i++)
		turn(half);
	fuzz_check(half->closed, "the server ends");
	end_other_side(half);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void check_not_lost(void *arg)
{
	fuzz_check(((struct half *)arg)->lost == 0, "after the loss nothing is heard");
}

static void on_ready(void *arg, const json_t *pools)
{
	fuzz_check(!pools || json_is_object(pools), "pools are an object");
	check_not_lost(arg);
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	fuzz_check(reason && message, "an event has a reason and a message");
	check_not_lost(arg);
}

static void on_lost(void *arg, const struct err *err)
{
	check_not_lost(arg);
	fuzz_check(err->class != ERR_NONE, "a loss has a cause");
	((struct half *)arg)->lost++;
}

static void on_changed(void *arg)
{
	const struct half *half = arg;
	json_auto_t *status = kubeletd_status(half->client);

	check_not_lost(arg);
	fuzz_check(json_is_array(status), "a status is a list");
	(void)kubeletd_are_served(half->client);
}

static void check_client(struct half *half, const struct strbuf *bytes, size_t piece)
{
	struct metrics *metrics = metrics_new();
	auto_strbuf struct strbuf text = {0};
	int fd = make_pair(half);

	half->client = kubeletd_new(&(struct kubeletd_config){
		.loop = half->loop,
		.fd = fd,
		.ready = on_ready,
		.changed = on_changed,
		.emit = on_told,
		.allocated = check_not_lost,
		.lost = on_lost,
		.arg = half,
		.metrics = metrics,
	});
	send_pieces(half, bytes, piece);
	metrics_render(metrics, &text);
	end_other_side(half);
	for (int i = 0; i < TURNS_MAX && !half->lost; i++)
		loop_turn(half->loop, false);
	fuzz_check(half->lost == 1, "the end of the other side is found");
	kubeletd_free(half->client);
	metrics_free(metrics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strbuf struct strbuf bytes = {0};
	struct half half = {.fd = -1};
	size_t piece;

	if (size < 1)
		return 0;
	piece = (size_t)(data[0] >> 2) * 16 + 1;
	if (data[0] & 2)
		strbuf_add(&bytes, data + 1, size - 1);
	else
		add_frames(data + 1, size - 1, &bytes);
	half.loop = loop_new();
	if (data[0] & 1)
		check_client(&half, &bytes, piece);
	else
		check_server(&half, &bytes, piece);
	loop_free(half.loop);
	strbuf_done(&half.heard);
	return 0;
}

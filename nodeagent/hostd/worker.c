/*
 * The worker. See the header.
 */
#include "nodeagent/hostd/worker.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/step.h"
#include "nodeagent/hostd/protocol.h"
#include "nodeagent/hostd/state.h"

#define CHUNK   16384
#define REST_MS 500

/* ---- messages --------------------------------------------------------------------------------------------------------- */

/* NULL: the agent is gone, or talks nonsense. */
static json_t *read_message(int fd, struct strbuf *in)
{
	json_t *message = NULL;
	ssize_t n;

	for (;;) {
		if (json_frame_read(in, &message, NULL) < 0 || message)
			return message;
		strbuf_reserve(in, CHUNK);
		n = read(fd, in->data + in->len, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		in->len += (size_t)n;
	}
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A result too large to send becomes an error, which is small. */
static int write_reply(int fd, const json_t *reply)
{
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};

	if (json_frame_write(reply, &out, &err) < 0) {
		json_auto_t *instead =
			protocol_reply_new(json_integer_value(json_at(reply, "id")), NULL, &err);

		(void)json_frame_write(instead, &out, NULL);
	}
	return send_all(fd, out.data, out.len);
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

static json_t *carry_out(struct host *host, const struct protocol_request *request, struct err *err)
{
	json_t *result = NULL;

	if (request->addresses)
		host_set_node_addresses(host, request->addresses);
	switch (request->kind) {
	case PROTOCOL_OBSERVE:
		return host_observe(host, request->flags, err);
	case PROTOCOL_STEP:
		return host_execute(host, request->body, &result, err) < 0 ? NULL : result;
	case PROTOCOL_LOAD:
		return state_load(host, &result, err) < 0 ? NULL : result;
	case PROTOCOL_SAVE:
		return state_save(host, request->body, err) < 0 ? NULL : json_object();
	case PROTOCOL_KINDS:
		break;
	}
	(void)err_set(err, ERR_BUG, "BadRequest", "there is no request %d", request->kind);
	return NULL;
}

json_t *worker_answer(struct host *host, const json_t *message)
{
	struct protocol_request request = {0};
	json_t *result = NULL;
	struct err err = {0};

	if (protocol_request_read(message, &request, &err) == 0)
		result = carry_out(host, &request, &err);
	return protocol_reply_new(request.id, result, &err);
}

/* When nothing comes for a moment, nothing may come for a long time; between the steps of a plan it would cost time. */
static void tidy_at_rest(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (poll(&poll_fd, 1, REST_MS) != 0)
		return;
	mem_trim();
	mem_drop_code();
}

void worker_serve(int fd, struct host *host)
{
	auto_strbuf struct strbuf in = {0};
	int sent = 0;

	while (sent == 0) {
		json_auto_t *message = read_message(fd, &in), *reply = NULL;

		if (!message)
			return;
		reply = worker_answer(host, message);
		sent = write_reply(fd, reply);
		/* An observed document is large. */
		json_decref(take_ptr(reply));
		if (in.len == 0)
			strbuf_done(&in);
		tidy_at_rest(fd);
	}
}

void worker_run(int fd, void *root)
{
	struct err err = {0};
	auto_host struct host *host = host_open(root, &err);
	auto_strbuf struct strbuf in = {0};
	json_auto_t *message = NULL, *reply = NULL;

	if (host) {
		worker_serve(fd, host);
		return;
	}
	message = read_message(fd, &in);
	if (!message)
		return;
	reply = protocol_reply_new(json_integer_value(json_at(message, "id")), NULL, &err);
	(void)write_reply(fd, reply);
}

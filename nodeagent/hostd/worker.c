/*
 * The worker. See the header.
 */
#include "nodeagent/hostd/worker.h"

#include <unistd.h>

#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/host/connections.h"
#include "nodeagent/host/counters.h"
#include "nodeagent/host/execute.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/hostd/addresses.h"
#include "nodeagent/hostd/given.h"
#include "nodeagent/hostd/protocol.h"
#include "nodeagent/hostd/state.h"
#include "nodeagent/model/step.h"

/* ---- messages -------------------------------------------------------------------------------- */

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
	return json_frame_send(fd, &out);
}

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * The NICs that the node needs, by all we know: the default route is asked of the kernel by each
 * step, the kubelet's addresses by each worker. A step without certainty is refused; a look goes on
 * with what it was given.
 */
static int protect(struct host *host, const struct protocol_request *request, struct err *err)
{
	struct err why = {0};
	json_auto_t *addresses = NULL;

	if (request->kind != PROTOCOL_STEP && request->kind != PROTOCOL_OBSERVE)
		return 0;
	addresses = addresses_remember(host, request->addresses, &why);
	if (!addresses && request->kind == PROTOCOL_STEP) {
		if (err)
			*err = why;
		return -1;
	}
	if (addresses || request->addresses)
		host_set_node_addresses(host, addresses ? addresses : request->addresses);
	return 0;
}

/* Of all VFs, when none are named. */
static json_t *read_counters(struct host *host, const struct protocol_request *request,
			     struct err *err)
{
	const json_t *vfs = NULL;

	if (request->kind == PROTOCOL_COUNTERS)
		return counters_read(host, request->body, err);
	if (json_get_strings(request->body, "of", "vfs", &vfs, err) < 0)
		return NULL;
	return counters_list(host, vfs, err);
}

static json_t *carry_out(struct host *host, const struct protocol_request *request, struct err *err)
{
	json_t *result = NULL;

	if (protect(host, request, err) < 0)
		return NULL;
	host_set_held(host, request->held);
	switch (request->kind) {
	case PROTOCOL_OBSERVE:
		return host_observe(host, request->flags, err);
	case PROTOCOL_STEP:
		return host_execute(host, request->body, &result, err) < 0 ? NULL : result;
	case PROTOCOL_LOAD:
		return state_load(host, &result, err) < 0 ? NULL : result;
	case PROTOCOL_SAVE:
		return state_save(host, request->body, err) < 0 ? NULL : json_object();
	case PROTOCOL_DEVICES:
	case PROTOCOL_COUNTERS:
		return read_counters(host, request, err);
	case PROTOCOL_KINDS:
		break;
	}
	(void)err_set(err, ERR_BUG, "BadRequest", "there is no request %d", request->kind);
	return NULL;
}

json_t *worker_answer_meter(struct host *host, const json_t *message)
{
	struct protocol_request request = {0};
	json_t *result = NULL;
	struct err err = {0};

	if (protocol_request_read(message, &request, &err) < 0)
		return protocol_reply_new(request.id, NULL, &err);
	if (request.kind == PROTOCOL_DEVICES || request.kind == PROTOCOL_COUNTERS)
		result = read_counters(host, &request, &err);
	else
		(void)err_set(&err, ERR_BUG, "BadRequest", "a meter carries out no %s",
			      protocol_kind_name(request.kind));
	return protocol_reply_new(request.id, result, &err);
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

static void serve(int fd, struct host *host,
		  json_t *(*answer)(struct host *host, const json_t *message))
{
	auto_strbuf struct strbuf in = {0};
	int sent = 0;

	while (sent == 0) {
		json_auto_t *message = json_frame_receive(fd, &in), *reply = NULL;

		if (!message)
			return;
		reply = answer(host, message);
		sent = write_reply(fd, reply);
		/* An observed document is large. */
		json_decref(take_ptr(reply));
		if (in.len == 0)
			strbuf_done(&in);
	}
}

void worker_serve(int fd, struct host *host)
{
	serve(fd, host, worker_answer);
}

/* One that cannot be kept is asked for again by each step, which says why. */
void worker_ask_kubelet(const struct host *host, const char *socket)
{
	pid_t kubelet = socket ? connections_listener(socket) : 0;
	json_auto_t *own = kubelet > 0 ? connections_addresses(host, kubelet) : NULL;

	json_decref(addresses_remember(host, own, NULL));
}

static void tell_why_not(int fd, const struct err *err)
{
	auto_strbuf struct strbuf in = {0};
	json_auto_t *message = json_frame_receive(fd, &in), *reply = NULL;

	if (!message)
		return;
	reply = protocol_reply_new(json_integer_value(json_at(message, "id")), NULL, err);
	(void)write_reply(fd, reply);
}

static int ask_given(void *arg, const char *vf, const char **ret_pod, struct err *err)
{
	return given_pod(arg, vf, ret_pod, err);
}

static void serve_asking(int fd, struct host *host, const struct worker_config *config)
{
	struct given *given = given_new(&(struct given_config){
		.socket = config->kubelet_socket,
		.giving = config->giving,
	});

	host_set_given(host, ask_given, given);
	worker_serve(fd, host);
	given_free(given);
}

void worker_run(int fd, const struct worker_config *config)
{
	struct err err = {0};
	auto_host struct host *host = host_open(config->root, &err);

	if (!host) {
		tell_why_not(fd, &err);
		return;
	}
	if (config->allow_primary_nic)
		host_allow_primary_nic(host);
	if (config->allow_firmware)
		host_allow_firmware(host);
	host_keep_answers(host);
	worker_ask_kubelet(host, config->kubelet_socket);
	if (config->kubelet_socket)
		serve_asking(fd, host, config);
	else
		worker_serve(fd, host);
}

void worker_run_meter(int fd, const struct worker_config *config)
{
	struct err err = {0};
	auto_host struct host *host = host_open(config->root, &err);

	if (host)
		serve(fd, host, worker_answer_meter);
	else
		tell_why_not(fd, &err);
}

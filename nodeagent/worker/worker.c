// SPDX-License-Identifier: Apache-2.0
/*
 * The main function of ow-worker and ow-meter: open the host, remember where the kubelet's
 * connections end, then one request after the other until the supervisor's side closes. answer.c
 * carries requests out; here is only what goes over the socket.
 */
#include "nodeagent/worker/worker.h"

#include <assert.h>
#include <unistd.h>

#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/host/connections.h"
#include "nodeagent/worker/addresses.h"
#include "nodeagent/worker/allocated_devices.h"
#include "nodeagent/worker/answer.h"

/* ---- messages -------------------------------------------------------------------------------- */

/* A result too large to send becomes an error, which is small. */
static int write_reply(int fd, const json_t *reply)
{
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};

	if (json_frame_write(reply, &out, &err) < 0) {
		json_auto_t *instead = ask_reply_new(reply, NULL, &err);

		(void)json_frame_write(instead, &out, NULL);
	}
	return json_frame_send(fd, &out);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void serve_requests(int fd, struct host *host,
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
	assert(fd >= 0 && host);
	serve_requests(fd, host, answer_request);
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
	reply = ask_reply_new(message, NULL, err);
	(void)write_reply(fd, reply);
}

static int ask_given(void *arg, const char *vf, const char **ret_pod, struct err *err)
{
	return allocated_devices_pod(arg, vf, ret_pod, err);
}

void worker_run(int fd, const struct worker_config *config)
{
	struct err err = {0};
	auto_host struct host *host = host_open(config->root, &err);

	assert(fd >= 0 && config->root);
	if (!host) {
		tell_why_not(fd, &err);
		return;
	}
	if (config->allow_primary_nic)
		host_allow_primary_nic(host);
	if (config->allow_firmware)
		host_allow_firmware(host);
	worker_ask_kubelet(host, config->kubelet_socket);
	if (config->kubelet_socket) {
		struct allocated_devices *given =
			allocated_devices_new(&(struct allocated_devices_config){
				.socket = config->kubelet_socket,
				.giving = config->giving,
			});

		host_set_given(host, ask_given, given);
		worker_serve(fd, host);
		allocated_devices_free(given);
	} else {
		worker_serve(fd, host);
	}
}

void worker_run_meter(int fd, const struct worker_config *config)
{
	struct err err = {0};
	auto_host struct host *host = host_open(config->root, &err);

	assert(fd >= 0 && config->root);
	if (host)
		serve_requests(fd, host, answer_meter);
	else
		tell_why_not(fd, &err);
}

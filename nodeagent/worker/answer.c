// SPDX-License-Identifier: Apache-2.0
/*
 * A request becomes calls of nodeagent/host and the state file, and they a reply. Workers get
 * requests from their socket (worker.h), a simulated node from a function call (client.h).
 */
#include "nodeagent/worker/answer.h"

#include <assert.h>

#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/host/counters.h"
#include "nodeagent/host/gids.h"
#include "nodeagent/host/inspect.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host/port_details.h"
#include "nodeagent/process/protocol.h"
#include "nodeagent/worker/addresses.h"
#include "nodeagent/worker/execute.h"
#include "nodeagent/worker/state.h"

/*
 * The NICs that the node needs, by all we know: the default route is asked of the kernel by each
 * step, the kubelet's addresses by each worker. A step without certainty is refused; a look goes on
 * with what it was given.
 */
static int protect_nics(struct host *host, const struct protocol_request *request, struct err *err)
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

static json_t *inspect(struct host *host, struct err *err)
{
	json_auto_t *observed = host_observe(host, 0, err);

	return observed ? host_inspect(host, observed) : NULL;
}

static json_t *carry_out(struct host *host, const struct protocol_request *request, struct err *err)
{
	json_t *result = NULL;

	if (protect_nics(host, request, err) < 0)
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
	case PROTOCOL_GIDS:
		return gids_find(host, request->body, err);
	case PROTOCOL_PORT:
		return port_details_read(host, request->body, err);
	case PROTOCOL_INSPECT:
		return inspect(host, err);
	case PROTOCOL_KINDS:
		break;
	}
	(void)err_set(err, ERR_BUG, "BadRequest", "there is no request %d", request->kind);
	return NULL;
}

json_t *answer_meter(struct host *host, const json_t *message)
{
	struct protocol_request request = {0};
	json_t *result = NULL;
	struct err err = {0};

	assert(host && message);
	if (protocol_request_read(message, &request, &err) < 0)
		return ask_reply_new(message, NULL, &err);
	if (request.kind == PROTOCOL_DEVICES || request.kind == PROTOCOL_COUNTERS)
		result = read_counters(host, &request, &err);
	else
		(void)err_set(&err, ERR_BUG, "BadRequest", "a meter carries out no %s",
			      protocol_kind_name(request.kind));
	return ask_reply_new(message, result, &err);
}

json_t *answer_request(struct host *host, const json_t *message)
{
	struct protocol_request request = {0};
	json_t *result = NULL;
	struct err err = {0};

	assert(host && message);
	if (protocol_request_read(message, &request, &err) == 0)
		result = carry_out(host, &request, &err);
	return ask_reply_new(message, result, &err);
}

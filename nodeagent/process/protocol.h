// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent asks of a worker (lib/json/ask.h). An observed document has about 700 bytes per
 * VF.
 *
 *	{"id": 7, "kind": "step", "addresses": ["192.0.2.1"],
 *	 "held": {"0000:3b:00.2": "ns/pod"}, "step": {…}}
 *
 * Pure. Neither side trusts the other: the agent talks to the network, the worker to drivers.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Of observe.h. */
#define PROTOCOL_FLAGS_MAX 0xffff
/* The kubelet's time to say which pod has a VF; requests that ask it may take longer by this. */
#define PROTOCOL_KUBELET_MS 5000

enum protocol_kind {
	PROTOCOL_OBSERVE, /* flags, addresses */
	PROTOCOL_STEP,    /* addresses, held, body: the step */
	PROTOCOL_LOAD,
	PROTOCOL_SAVE,     /* body: the state */
	PROTOCOL_DEVICES,  /* body: {"vfs"}, of counters_list() */
	PROTOCOL_COUNTERS, /* body: a device of that list */
	PROTOCOL_GIDS,     /* body: what gids_find() wants */
	PROTOCOL_PORT,     /* body: a port, of port_details_read() */
	PROTOCOL_INSPECT,
	PROTOCOL_KINDS,
};

/* "observe", "step", "load", "save", "devices", "counters", "gids", "port", "inspect". */
const char *protocol_kind_name(enum protocol_kind kind);

struct protocol_request {
	int64_t id;
	enum protocol_kind kind;
	unsigned int flags;
	const json_t *addresses; /* array of strings */
	/* Of host_set_held(); NULL: not known. The kubelet is asked for what it does not name. */
	const json_t *held;
	const json_t *body; /* object */
};

/* New. What the kind does not have is left out. */
json_t *protocol_request_new(const struct protocol_request *request);
/*
 * Members are borrowed from the message. ERR_BUG "BadRequest" naming the field: one that is wrong,
 * missing, or unknown.
 */
int protocol_request_read(const json_t *message, struct protocol_request *ret, struct err *err);

/*
 * The reply to request `id`: *ret_result borrowed, or NULL and *ret_error filled. -1 with err
 * ERR_BUG "BadReply" when it is not a reply or not to this request.
 */
int protocol_reply_read(const json_t *message, int64_t id, const json_t **ret_result,
			struct err *ret_error, struct err *err);

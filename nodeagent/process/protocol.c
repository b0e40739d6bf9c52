// SPDX-License-Identifier: Apache-2.0
/*
 * Requests and replies as JSON: one table says which members each kind has, and no other is taken.
 * Pure; between client.c, which writes requests, and nodeagent/worker, which reads them.
 */
#include "nodeagent/process/protocol.h"

#include <ctype.h>
#include <string.h>

#include "lib/json/ask.h"
#include "lib/json/json.h"

/* ---- requests -------------------------------------------------------------------------------- */

/* What a request of each kind has. */
static const struct shape {
	const char *name;
	bool flags, addresses, held;
	const char *body; /* name of the member */
} shapes[PROTOCOL_KINDS] = {
	[PROTOCOL_OBSERVE] = {.name = "observe", .flags = true, .addresses = true},
	[PROTOCOL_STEP] = {.name = "step", .addresses = true, .held = true, .body = "step"},
	[PROTOCOL_LOAD] = {.name = "load"},
	[PROTOCOL_SAVE] = {.name = "save", .body = "state"},
	[PROTOCOL_DEVICES] = {.name = "devices", .body = "of"},
	[PROTOCOL_COUNTERS] = {.name = "counters", .body = "device"},
	[PROTOCOL_GIDS] = {.name = "gids", .body = "of"},
	[PROTOCOL_PORT] = {.name = "port", .body = "of"},
	[PROTOCOL_INSPECT] = {.name = "inspect"},
};

const char *protocol_kind_name(enum protocol_kind kind)
{
	return shapes[kind].name;
}

json_t *protocol_request_new(const struct protocol_request *request)
{
	const struct shape *shape = &shapes[request->kind];
	json_t *message = ask_new(request->id, shape->name);

	if (shape->flags)
		json_put_int(message, "flags", request->flags);
	if (shape->addresses && request->addresses)
		json_put(message, "addresses", json_incref((json_t *)request->addresses));
	if (shape->held && request->held)
		json_put(message, "held", json_incref((json_t *)request->held));
	if (shape->body)
		json_put(message, shape->body, json_incref((json_t *)request->body));
	return message;
}

static int read_kind(const json_t *message, enum protocol_kind *ret, struct err *err)
{
	const char *name = NULL;

	if (json_get_str(message, "", "kind", "", &name, err) < 0)
		return -1;
	for (int i = 0; i < PROTOCOL_KINDS; i++) {
		if (!str_eq(shapes[i].name, name))
			continue;
		*ret = (enum protocol_kind)i;
		return 0;
	}
	return err_set(err, ERR_BUG, "BadRequest", "there is no request \"%.32s\"", name);
}

static int read_held(const json_t *message, const json_t **ret, struct err *err)
{
	const char *device;
	json_t *pod;

	if (json_get_object(message, "", "held", ret, err) < 0)
		return -1;
	json_each (*ret, device, pod)
		if (!json_is_string(pod))
			return err_set(err, ERR_BUG, "BadRequest",
				       "held: %.32s is %s, not a string", device,
				       json_type_words(pod));
	return 0;
}

static int read_fields(const json_t *message, struct protocol_request *ret, struct err *err)
{
	const struct shape *shape;
	int64_t flags = 0;
	const char *key;
	json_t *value;

	if (json_get_int(message, "", "id", 0, INT64_MAX, 0, &ret->id, err) < 0 ||
	    read_kind(message, &ret->kind, err) < 0)
		return -1;
	shape = &shapes[ret->kind];
	/* A member that we do not know may mean what we would have to heed. */
	json_each ((json_t *)message, key, value)
		if (!str_eq(key, "id") && !str_eq(key, "kind") &&
		    !(shape->flags && str_eq(key, "flags")) &&
		    !(shape->addresses && str_eq(key, "addresses")) &&
		    !(shape->held && str_eq(key, "held")) &&
		    !(shape->body && str_eq(key, shape->body)))
			return err_set(err, ERR_BUG, "BadRequest", "%s has no \"%.64s\"",
				       shape->name, key);
	if (shape->flags &&
	    json_get_int(message, "", "flags", 0, PROTOCOL_FLAGS_MAX, 0, &flags, err) < 0)
		return -1;
	ret->flags = (unsigned int)flags;
	if (shape->addresses &&
	    json_get_strings(message, "", "addresses", &ret->addresses, err) < 0)
		return -1;
	if (shape->held && read_held(message, &ret->held, err) < 0)
		return -1;
	if (!shape->body)
		return 0;
	if (json_get_object(message, "", shape->body, &ret->body, err) < 0)
		return -1;
	return ret->body ? 0 : err_set(err, ERR_BUG, "BadRequest", "%s is missing", shape->body);
}

int protocol_request_read(const json_t *message, struct protocol_request *ret, struct err *err)
{
	struct protocol_request request = {0};
	struct err why = {0};

	if (read_fields(message, &request, &why) < 0)
		return err_set(err, ERR_BUG, "BadRequest", "%s", why.text);
	*ret = request;
	return 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* It becomes the reason of a condition and a label of a metric. */
static bool is_reason(const char *text)
{
	size_t len = strlen(text);

	if (len >= sizeof(((struct err *)NULL)->reason) || !isupper((unsigned char)text[0]))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text))
			return false;
	return true;
}

static int read_reply(const json_t *message, int64_t id, const json_t **ret_result,
		      struct err *ret_error, struct err *err)
{
	const json_t *result = NULL;
	struct err error = {0};
	int64_t got = 0;

	if (json_get_int(message, "", "id", 0, INT64_MAX, -1, &got, err) < 0)
		return -1;
	if (got != id)
		return err_set(err, ERR_BUG, "BadReply", "an answer to request %lld, not %lld",
			       (long long)got, (long long)id);
	if (ask_reply_read(message, &result, &error, err) < 0)
		return -1;
	if (!result && !is_reason(json_str_at(message, "error", "reason")))
		return err_set(err, ERR_BUG, "BadReply", "an error whose reason is not CamelCase");
	*ret_result = result;
	if (!result)
		*ret_error = error;
	return 0;
}

int protocol_reply_read(const json_t *message, int64_t id, const json_t **ret_result,
			struct err *ret_error, struct err *err)
{
	struct err why = {0};

	if (read_reply(message, id, ret_result, ret_error, &why) < 0)
		return err_set(err, ERR_BUG, "BadReply", "%s", why.text);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Requests, replies and the one encoding of errors between processes. A class goes by its name:
 * neither side trusts the other, and a number that is one off would be another class.
 */
#include "lib/json/ask.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* Above all errno there are; the kernel's own limit (include/linux/err.h). */
#define SYS_MAX 4095

json_t *ask_new(int64_t id, const char *kind)
{
	json_t *message = json_object();

	assert(kind);
	json_put_int(message, "id", id);
	json_put_str(message, "kind", kind);
	return message;
}

json_t *ask_with_id(const json_t *message, int64_t id)
{
	json_t *copy = json_copy((json_t *)message);

	json_put_int(copy, "id", id);
	return copy;
}

/* ---- errors ---------------------------------------------------------------------------------- */

json_t *ask_error_new(const struct err *error)
{
	json_t *object = json_object();

	json_put_str(object, "class", err_class_name(error->class));
	json_put_int(object, "sys", error->sys);
	json_put_str(object, "reason", error->reason);
	json_put_str(object, "text", error->text);
	return object;
}

static enum err_class class_of(const char *name)
{
	static const enum err_class classes[] = {ERR_INVALID, ERR_CONFLICT, ERR_TRANSIENT, ERR_HOST,
						 ERR_BUG};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (str_eq(err_class_name(classes[i]), name))
			return classes[i];
	return ERR_NONE;
}

bool ask_error_read(const json_t *error, struct err *ret)
{
	const char *reason = json_str_at(error, "reason"), *text = json_str_at(error, "text");
	enum err_class class = class_of(json_str_at(error, "class"));
	int64_t sys = 0;

	if (json_get_int(error, "error", "sys", 0, SYS_MAX, 0, &sys, NULL) < 0 ||
	    class == ERR_NONE || str_empty(reason) || str_empty(text)) {
		(void)err_set(ret, ERR_BUG, "BadAnswer", "an error without class, reason or text");
		return false;
	}
	(void)err_set(ret, class, reason, "%s", text);
	ret->sys = (int)sys;
	return true;
}

/* ---- replies --------------------------------------------------------------------------------- */

json_t *ask_reply_new(const json_t *request, json_t *result, const struct err *error)
{
	json_t *message = json_object();

	json_put(message, "id", json_incref(json_at(request, "id")));
	if (result)
		json_put(message, "result", result);
	else
		json_put(message, "error", ask_error_new(error));
	return message;
}

int ask_reply_read(const json_t *reply, const json_t **ret_result, struct err *ret_error,
		   struct err *err)
{
	const json_t *result = json_at(reply, "result"), *error = json_at(reply, "error");
	struct err said = {0};

	assert(ret_result && ret_error);
	if (!result == !error)
		return err_set(err, ERR_BUG, "BadAnswer", "neither a result nor an error, or both");
	if (!json_is_object(result ? result : error))
		return err_set(err, ERR_BUG, "BadAnswer", "%s is not an object",
			       result ? "result" : "error");
	if (error && !ask_error_read(error, &said))
		return err_set(err, said.class, said.reason, "%s", said.text);
	*ret_result = result;
	if (error)
		*ret_error = said;
	return 0;
}

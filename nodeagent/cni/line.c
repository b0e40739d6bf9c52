// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/line.h"

#include "lib/json/frame_io.h"
#include "lib/json/json.h"

void line_pass(struct line *line, const json_t *message)
{
	auto_strbuf struct strbuf out = {0};

	if (json_frame_write(message, &out, NULL) == 0)
		(void)json_frame_send(line->fd, &out);
}

void line_send(struct line *line, const char *key, json_t *value)
{
	json_auto_t *message = json_object();

	json_put(message, key, value);
	line_pass(line, message);
}

json_t *line_ask(struct line *line, const char *key, json_t *value, struct err *err)
{
	json_auto_t *reply = NULL;

	line_send(line, key, value);
	reply = json_frame_receive(line->fd, &line->in);
	if (!reply) {
		(void)err_set(err, ERR_TRANSIENT, "ServerGone",
			      "the server of this node's networks has ended; the runtime tries "
			      "again");
		return NULL;
	}
	if (json_object_get(reply, "error")) {
		(void)line_error_read(json_object_get(reply, "error"), err);
		return NULL;
	}
	return take_ptr(reply);
}

json_t *line_error_new(const struct err *err)
{
	json_t *error = json_object();

	json_put_int(error, "class", err->class);
	json_put_int(error, "sys", err->sys);
	json_put_str(error, "reason", err->reason);
	json_put_str(error, "text", err->text);
	return error;
}

int line_error_read(const json_t *error, struct err *err)
{
	int64_t class = json_integer_value(json_at(error, "class"));
	const char *reason = json_str_at(error, "reason"), *text = json_str_at(error, "text");

	if (class <= ERR_NONE || class > ERR_BUG || !reason || !text)
		return err_set(err, ERR_BUG, "BadAnswer", "an error that is none");
	(void)err_set(err, (enum err_class) class, reason, "%s", text);
	if (err)
		err->sys = (int)json_integer_value(json_at(error, "sys"));
	return -1;
}

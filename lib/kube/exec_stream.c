// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/exec_stream.h"

#include "lib/json/json.h"
#include "lib/kube/pod_exec.h"

enum {
	STDOUT = 1,
	STDERR = 2,
	STATUS = 3,
	STATUS_MAX = 64 * 1024,
	EXIT_CODE_MAX = 255,
};

int exec_stream_message(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct exec_stream *stream = arg;
	struct strbuf *to = NULL;

	if (len == 0)
		return 0;
	switch (bytes[0]) {
	case STDOUT:
		to = &stream->out;
		break;
	case STDERR:
		to = &stream->errors;
		break;
	case STATUS:
		to = &stream->status;
		break;
	default:
		return 0;
	}
	if (stream->out.len + stream->errors.len + len > POD_EXEC_MAX_OUTPUT ||
	    (to == &stream->status && to->len + len > STATUS_MAX))
		return err_set(err, ERR_TRANSIENT, "OutputTooLong",
			       "the command printed more than %d bytes", POD_EXEC_MAX_OUTPUT);
	strbuf_add(to, bytes + 1, len - 1);
	return 0;
}

/* True when it says that the command ended with such a code. */
static bool read_exit_code(const json_t *status, int *ret)
{
	const json_t *cause = json_find(json_at(status, "details", "causes"), "reason", "ExitCode");
	const char *code = json_str_at(cause, "message");
	int64_t n = 0;

	if (!str_eq(json_str_at(status, "reason"), "NonZeroExitCode") || !code ||
	    !str_to_int(code, 1, EXIT_CODE_MAX, &n))
		return false;
	*ret = (int)n;
	return true;
}

int exec_stream_end(const struct exec_stream *stream, int *ret_exit_code, struct err *err)
{
	json_auto_t *status = json_parse(strbuf_str(&stream->status), stream->status.len, NULL);
	auto_free char *message = NULL;

	if (str_eq(json_str_at(status, "status"), "Success")) {
		*ret_exit_code = 0;
		return 0;
	}
	if (read_exit_code(status, ret_exit_code))
		return 0;
	if (!json_is_object(status))
		return err_set(err, ERR_TRANSIENT, "ConnectionLost",
			       "the API server does not say how the command ended");
	message = str_dup(json_str_or(json_at(status, "message"), "no reason was given"));
	str_cover_controls(message, "", ' ');
	return err_set(err, ERR_TRANSIENT, "ExecFailed", "%s", message);
}

void exec_stream_done(struct exec_stream *stream)
{
	strbuf_done(&stream->out);
	strbuf_done(&stream->errors);
	strbuf_done(&stream->status);
}

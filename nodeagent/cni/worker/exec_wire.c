// SPDX-License-Identifier: Apache-2.0
/*
 * Fields of messages to members of objects and back; for the connection of a plugin, and for a
 * worker that runs the program itself.
 */
#include "nodeagent/cni/worker/exec_wire.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

int exec_wire_write(struct wire_buffer *out, uint32_t id, const json_t *exec)
{
	size_t begun = wire_begin(out, WIRE_EXEC), i;
	const json_t *change;

	wire_add_number(out, WIRE_ID, id);
	wire_add_text(out, WIRE_PATH, json_str_or(json_at(exec, "path"), ""));
	json_array_foreach (json_at(exec, "env"), i, change)
		wire_add_text(out, WIRE_ENV, json_str_or(change, ""));
	wire_add_text(out, WIRE_STDIN, json_str_or(json_at(exec, "stdin"), ""));
	return wire_end(out, begun);
}

json_t *exec_wire_read(const struct wire_message *result, uint32_t *ret_id)
{
	json_t *end = json_object();
	struct wire_field field;

	*ret_id = 0;
	for (size_t at = 0; wire_next(result, &at, &field);) {
		auto_free char *text = str_ndup((const char *)field.data, field.len);

		if (field.tag == WIRE_ID)
			*ret_id = wire_number(&field, 0);
		else if (field.tag == WIRE_STATUS)
			json_put_int(end, "status", wire_number(&field, 1));
		else if (field.tag == WIRE_STDOUT)
			json_put_str(end, "stdout", text);
		else if (field.tag == WIRE_STDERR)
			json_put_str(end, "stderr", text);
	}
	return end;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What plugin and server hear from each other: reading stays within the bytes; fields fill a
 * message; one that is written again from its fields is the same. Of any call loopback has a
 * result.
 */
#include <stdint.h>
#include <stdlib.h>

#include "nodeagent/cni/plugin/loopback.h"
#include "nodeagent/cni/plugin/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void write_again(const struct wire_message *message, const uint8_t *data)
{
	struct wire_buffer buffer = {0};
	size_t begun = wire_begin(&buffer, message->kind), at = 0;
	struct wire_message again;
	struct wire_field field;

	while (wire_next(message, &at, &field)) {
		check(field.data + field.len <= data + message->bytes);
		wire_add(&buffer, (enum wire_tag)field.tag, field.data, field.len);
	}
	check(at == message->len);
	check(wire_end(&buffer, begun) == 0 && buffer.len == message->bytes);
	check(wire_read(buffer.data, buffer.len, &again) == 1 && again.kind == message->kind);
	free(buffer.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_buffer call = {0}, result = {0};
	struct wire_message message, part;
	size_t at = 0;

	wire_append(&call, data, size);
	loopback_result(&call, "/proc/1/ns/net", true, &result);
	check(result.len > 2 && result.data[0] == '{' && result.len <= size + 512);
	free(call.data);
	free(result.data);
	while (wire_read(data + at, size - at, &message) == 1) {
		check(wire_read(data + at, message.bytes - 1, &part) == 0);
		write_again(&message, data + at);
		at += message.bytes;
	}
	return 0;
}

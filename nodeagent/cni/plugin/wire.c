// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers by hand, most significant byte first, and bounds before each read: both ends read what
 * the other process sent. Only the C library, for the plugin is linked with nothing else.
 */
#include "nodeagent/cni/plugin/wire.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 4, HEAD = 8, FIELD_HEAD = 8 };

static void put(unsigned char *to, size_t bytes, uint32_t number)
{
	while (bytes-- > 0) {
		to[bytes] = (unsigned char)number;
		number >>= 8;
	}
}

static uint32_t get(const unsigned char *from, size_t bytes)
{
	uint32_t number = 0;

	while (bytes-- > 0)
		number = number << 8 | *from++;
	return number;
}

void wire_append(struct wire_buffer *buffer, const void *data, size_t len)
{
	size_t size = buffer->size ? buffer->size : 4096;
	unsigned char *grown = NULL;

	while (size - buffer->len < len)
		size *= 2;
	if (size != buffer->size) {
		grown = realloc(buffer->data, size);
		if (!grown)
			abort();
		buffer->data = grown;
		buffer->size = size;
	}
	if (len > 0)
		memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
}

void wire_consume(struct wire_buffer *buffer, size_t n)
{
	buffer->len -= n;
	if (n > 0 && buffer->len > 0)
		memmove(buffer->data, buffer->data + n, buffer->len);
}

size_t wire_begin(struct wire_buffer *buffer, enum wire_kind kind)
{
	unsigned char head[HEAD] = {0};
	size_t begun = buffer->len;

	head[LENGTH] = WIRE_VERSION;
	head[LENGTH + 1] = (unsigned char)kind;
	wire_append(buffer, head, sizeof(head));
	return begun;
}

void wire_add(struct wire_buffer *buffer, enum wire_tag tag, const void *data, size_t len)
{
	unsigned char head[FIELD_HEAD] = {0};

	put(head, 2, tag);
	put(head + 4, 4, (uint32_t)len);
	wire_append(buffer, head, sizeof(head));
	wire_append(buffer, data, len);
}

void wire_add_text(struct wire_buffer *buffer, enum wire_tag tag, const char *text)
{
	wire_add(buffer, tag, text, strlen(text));
}

void wire_add_number(struct wire_buffer *buffer, enum wire_tag tag, uint32_t number)
{
	unsigned char bytes[4];

	put(bytes, sizeof(bytes), number);
	wire_add(buffer, tag, bytes, sizeof(bytes));
}

int wire_end(struct wire_buffer *buffer, size_t begun)
{
	size_t len = buffer->len - begun;

	if (len > WIRE_MAX) {
		buffer->len = begun;
		return -1;
	}
	put(buffer->data + begun, LENGTH, (uint32_t)(len - LENGTH));
	return 0;
}

static bool is_kind(unsigned int kind)
{
	return kind >= WIRE_CALL && kind <= WIRE_DONE;
}

int wire_read(const void *data, size_t len, struct wire_message *ret)
{
	const unsigned char *bytes = data;
	struct wire_message message;
	struct wire_field field;
	size_t at = 0, end = 0;
	uint32_t rest;

	if (len < HEAD)
		return 0;
	rest = get(bytes, LENGTH);
	if (rest < HEAD - LENGTH || rest > WIRE_MAX - LENGTH || bytes[LENGTH] != WIRE_VERSION ||
	    !is_kind(bytes[LENGTH + 1]))
		return -1;
	if (len - LENGTH < rest)
		return 0;
	message = (struct wire_message){
		.kind = (enum wire_kind)bytes[LENGTH + 1],
		.fields = bytes + HEAD,
		.len = rest - (HEAD - LENGTH),
		.bytes = LENGTH + rest,
	};
	/* Fields fill it, or what follows would have to be guessed. */
	while (wire_next(&message, &at, &field))
		end = at;
	if (end != message.len)
		return -1;
	*ret = message;
	return 1;
}

bool wire_next(const struct wire_message *message, size_t *at, struct wire_field *ret)
{
	const unsigned char *head = message->fields + *at;
	size_t left = message->len - *at, len;

	if (left < FIELD_HEAD)
		return false;
	len = get(head + 4, 4);
	if (len > left - FIELD_HEAD)
		return false;
	*ret = (struct wire_field){.tag = get(head, 2), .data = head + FIELD_HEAD, .len = len};
	*at += FIELD_HEAD + len;
	return true;
}

uint32_t wire_number(const struct wire_field *field, uint32_t otherwise)
{
	return field->len == 4 ? get(field->data, 4) : otherwise;
}

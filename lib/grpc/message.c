// SPDX-License-Identifier: Apache-2.0
/*
 * Messages by protobuf-c.
 *
 * protobuf-c reports an allocation that failed and a message that is malformed in the same way, by
 * NULL. The allocator here never fails for lack of memory (that ends the process), but it refuses
 * to go beyond a budget, and remembers it.
 */
#include "lib/grpc/message.h"

#include <assert.h>
#include <protobuf-c/protobuf-c.h>

#include "lib/base/mem.h"
#include "lib/grpc/frame.h"
#include "lib/grpc/limits.h"

struct budget {
	size_t left;
	bool is_spent;
};

static void *budget_alloc(void *arg, size_t size)
{
	struct budget *budget = arg;

	if (size > budget->left) {
		budget->is_spent = true;
		return NULL;
	}
	budget->left -= size;
	return mem_alloc(size);
}

static void budget_free(void *arg, void *ptr)
{
	mem_free(ptr);
}

static void forget_unknown(ProtobufCMessage *message);

static void forget_unknown_in(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	void *place = (char *)message + field->offset;

	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		size_t n = *(size_t *)((char *)message + field->quantifier_offset);
		ProtobufCMessage **items = *(ProtobufCMessage ***)place;

		for (size_t i = 0; i < n; i++)
			forget_unknown(items[i]);
	} else if (*(ProtobufCMessage **)place) {
		forget_unknown(*(ProtobufCMessage **)place);
	}
}

/*
 * protobuf-c keeps unknown fields, and would send them again, even those that no decoder takes
 * (field 0).
 */
static void forget_unknown(ProtobufCMessage *message)
{
	for (unsigned int i = 0; i < message->n_unknown_fields; i++)
		mem_free(message->unknown_fields[i].data);
	mem_free(message->unknown_fields);
	message->unknown_fields = NULL;
	message->n_unknown_fields = 0;
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++)
		forget_unknown_in(message, &message->descriptor->fields[i]);
}

struct ProtobufCMessage *grpc_message_decode(const struct ProtobufCMessageDescriptor *type,
					     const void *data, size_t len, size_t max,
					     struct grpc_status *status)
{
	static const uint8_t nothing;
	struct budget budget = {.left = max * GRPC_DECODED_FACTOR};
	ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
	struct ProtobufCMessage *message =
		protobuf_c_message_unpack(type, &allocator, len, len ? data : &nothing);

	assert(type && (data || len == 0) && max > 0 && status);
	if (message) {
		forget_unknown(message);
		return message;
	}
	if (budget.is_spent)
		(void)grpc_status_set(status, GRPC_RESOURCE_EXHAUSTED,
				      "a message of %zu bytes takes too much memory", len);
	else
		(void)grpc_status_set(status, GRPC_INTERNAL, "%zu bytes that are no %s message",
				      len, type->short_name);
	return NULL;
}

void grpc_message_free(struct ProtobufCMessage *message)
{
	ProtobufCAllocator allocator = {budget_alloc, budget_free, NULL};

	if (message)
		protobuf_c_message_free_unpacked(message, &allocator);
}

int grpc_message_encode(const struct ProtobufCMessage *message, size_t max, struct strbuf *ret,
			struct grpc_status *status)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	size_t written;

	assert(max <= UINT32_MAX);
	if (len > max)
		return grpc_status_set(status, GRPC_RESOURCE_EXHAUSTED,
				       "a message of %zu bytes; at most %zu are sent", len, max);
	strbuf_reserve(ret, GRPC_FRAME_HEAD + len);
	grpc_frame_head((uint8_t *)ret->data + ret->len, (uint32_t)len);
	written =
		protobuf_c_message_pack(message, (uint8_t *)ret->data + ret->len + GRPC_FRAME_HEAD);
	assert(written == len);
	ret->len += GRPC_FRAME_HEAD + written;
	ret->data[ret->len] = '\0';
	return 0;
}

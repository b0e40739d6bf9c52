// SPDX-License-Identifier: Apache-2.0
/*
 * Protobuf messages to bytes and back, with our allocator, and with a bound on what a small
 * message may become in memory.
 *
 * Unknown fields are passed over without being kept; fields may come in any order, scalars more
 * than once (the last one counts). Strings that are sent must be UTF-8, which protobuf-c does not
 * check: peers refuse the whole message otherwise.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/grpc/status.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/*
 * Decode; max is the limit of a message's bytes. Returns a new message (grpc_message_free), or
 * NULL with status set: GRPC_INTERNAL when the bytes are no such message, GRPC_RESOURCE_EXHAUSTED
 * when it would take too much memory.
 */
struct ProtobufCMessage *grpc_message_decode(const struct ProtobufCMessageDescriptor *type,
					     const void *data, size_t len, size_t max,
					     struct grpc_status *status);
/* Accepts NULL. */
void grpc_message_free(struct ProtobufCMessage *message);

/*
 * Append the message with its frame head. Returns 0, or -1 with status set and ret unchanged:
 * GRPC_RESOURCE_EXHAUSTED when it has more than max bytes.
 */
int grpc_message_encode(const struct ProtobufCMessage *message, size_t max, struct strbuf *ret,
			struct grpc_status *status);

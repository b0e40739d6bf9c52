// SPDX-License-Identifier: Apache-2.0
/*
 * Messages within the bytes of a stream: one flag byte, four bytes of length (big-endian), the
 * message. Pure and incremental: messages come out the same however the bytes arrive.
 *
 * Format: grpc/grpc, doc/PROTOCOL-HTTP2.md, "Length-Prefixed-Message".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "lib/grpc/status.h"

#define GRPC_FRAME_HEAD 5

struct grpc_frames {
	size_t max; /* of one message, in bytes */
	uint8_t head[GRPC_FRAME_HEAD];
	size_t head_len;
	size_t want; /* the length that the complete head says */
	struct strbuf body;
	bool has_failed;
};

/*
 * A whole message, borrowed; data is NULL when it is empty. Returns false to stop the feeding: no
 * message comes after that, whatever is fed.
 */
typedef bool grpc_frame_fn(void *arg, const void *data, size_t len);

void grpc_frames_init(struct grpc_frames *frames, size_t max);
void grpc_frames_done(struct grpc_frames *frames);

/*
 * Take bytes, call fn for each message that is complete. Returns 0, or -1 with status set, once:
 * GRPC_UNIMPLEMENTED for a compressed message, GRPC_RESOURCE_EXHAUSTED for one above max,
 * GRPC_INTERNAL for a flag that does not exist. What is fed after a failure is passed over.
 */
int grpc_frames_feed(struct grpc_frames *frames, const void *data, size_t len, grpc_frame_fn *fn,
		     void *arg, struct grpc_status *status);

/* Has a message begun that is not complete? */
bool grpc_frames_is_partial(const struct grpc_frames *frames);

/* The head of a message of len bytes. */
void grpc_frame_head(uint8_t out[GRPC_FRAME_HEAD], uint32_t len);

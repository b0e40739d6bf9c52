// SPDX-License-Identifier: Apache-2.0
/* A stream socket on the loop that carries JSON objects both ways (lib/json/frame.h). */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"

struct channel;

struct channel_config {
	struct loop *loop;
	int fd; /* connected; the channel's from now on */
	/* From the loop; the message is borrowed. Either may free the channel. */
	void (*heard)(void *arg, const json_t *message);
	/*
	 * Nothing comes or goes any more: ERR_TRANSIENT "ChannelClosed" when the other side has
	 * ended; ERR_BUG "BadFrame" when it sent no frame, "ChannelFull" when it does not read.
	 * Once, and not from channel_send().
	 */
	void (*lost)(void *arg, const struct err *err);
	void *arg;
};

struct channel *channel_new(const struct channel_config *config);
/* What was sent and is not on its way yet is dropped. Accepts NULL. */
void channel_free(struct channel *channel);

/* Never waits. On a channel that is lost it does nothing. */
void channel_send(struct channel *channel, const json_t *message);

// SPDX-License-Identifier: Apache-2.0
/* Frames (frame.h) on a stream socket that blocks, for processes without a loop. */
#pragma once

#include <stdbool.h>

#include "lib/json/frame.h"

/* Send all bytes of json_frame_write(). -1 with errno set; part may have been sent. */
int json_frame_send(int fd, const struct strbuf *frames);

/*
 * Read once what has come, with flags as of recv(2): MSG_DONTWAIT does not wait. False: nothing
 * comes any more.
 */
bool json_frame_take_in(int fd, struct strbuf *in, int flags);

/*
 * Wait for the next object, new. `in` keeps what has come of the one after it. NULL when the other
 * side has ended or sends what is not a frame.
 */
json_t *json_frame_receive(int fd, struct strbuf *in);

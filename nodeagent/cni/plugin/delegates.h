// SPDX-License-Identifier: Apache-2.0
/* Programs that the plugin runs for the server: any number side by side. */
#pragma once

#include <poll.h>

#include "nodeagent/cni/plugin/wire.h"

/* That run at the same time; a message for one more is no message of our server. */
enum { DELEGATES_MAX = 64, DELEGATES_POLL_MAX = 3 * DELEGATES_MAX };

struct delegates;

/*
 * state: folder in which WIRE_PROGRAMS says what may be run; borrowed. NULL: the caller has seen to
 * that.
 */
struct delegates *delegates_new(const char *state);
/*
 * Programs that run still are killed and not waited for; with `state` also what they have started
 * and left in their process groups. Accepts NULL.
 */
void delegates_free(struct delegates *delegates);

/*
 * What the result of a program says that could not be started: this status, nothing on stdout, and
 * on stderr one of these beginnings. A program may end with the same status.
 */
#define DELEGATES_NOT_STARTED 127
#define DELEGATES_NOT_FOUND   "failed to find plugin "
#define DELEGATES_NOT_RUN     "cannot run "
#define DELEGATES_NOT_ALLOWED "may not run "
#define DELEGATES_NO_PIPE     "cannot make a pipe"
#define DELEGATES_NO_FORK     "cannot fork"

/*
 * Start what a WIRE_EXEC names, with our environment as the message changes it: variables CNI_*,
 * but CNI_PATH stays ours. What cannot be started, or may not, has its result too. -1: this is no
 * order (no ID or PATH, too many at once).
 */
int delegates_start(struct delegates *delegates, const struct wire_message *message);

/* Fill in what to poll for; returns how many. */
size_t delegates_poll(const struct delegates *delegates, struct pollfd fds[DELEGATES_POLL_MAX]);

/* After poll(): take what is there. A WIRE_RESULT is appended to `out` for each that has ended. */
void delegates_turn(struct delegates *delegates, struct wire_buffer *out);

/* How many run. */
size_t delegates_running(const struct delegates *delegates);

// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of one sort of calls, and which of them a call goes to. Watches have a lane apart
 * from everything else: what writes do to a connection, or a crowd of them, does not blind us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/kube/auth/credentials.h"
#include "lib/kube/connection.h"

/* Embedded; it must not move. */
struct lane {
	struct connection_owner owner;
	struct connection_list connections;
	size_t n_connections;
};

void lane_init(struct lane *lane, const struct connection_owner *owner);
/* Nothing may be on its connections. */
void lane_done(struct lane *lane);

/*
 * The first with room, so that those which were opened for a crowd fall idle, or a new one. NULL:
 * wait.
 */
struct connection *lane_find_room(struct lane *lane);

/*
 * True if the connection was made with the certificates of this secret. One that was not takes no
 * new calls.
 */
bool lane_fits(struct connection *c, const struct kube_secret *secret);

/*
 * For a call whose place turned out to be of old certificates. One more than there may be does no
 * harm.
 */
struct connection *lane_connection_for(struct lane *lane, const struct kube_secret *secret);

/* Free retired connections that carry nothing. */
void lane_free_unused(struct lane *lane);

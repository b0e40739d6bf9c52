// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/lane.h"

#include <assert.h>

enum {
	CONNECTIONS_MAX = 8,
	/* Without HTTP/2 each call in flight needs one. */
	CONNECTIONS_MAX_PLAIN = 64,
};

void lane_init(struct lane *lane, const struct connection_owner *owner)
{
	assert(owner->loop && owner->ended && owner->changed && owner->silent);
	TAILQ_INIT(&lane->connections);
	lane->n_connections = 0;
	lane->owner = *owner;
}

void lane_done(struct lane *lane)
{
	struct connection *c = NULL;

	while ((c = TAILQ_FIRST(&lane->connections))) {
		TAILQ_REMOVE(&lane->connections, c, link);
		connection_free(c);
	}
}

static struct connection *open_connection(struct lane *lane)
{
	struct connection *c = connection_new(&lane->owner);

	TAILQ_INSERT_TAIL(&lane->connections, c, link);
	lane->n_connections++;
	return c;
}

struct connection *lane_find_room(struct lane *lane)
{
	size_t most = lane->owner.multiplexed ? CONNECTIONS_MAX : CONNECTIONS_MAX_PLAIN;
	struct connection *c = NULL;
	bool opening = false;
	size_t n = 0;

	TAILQ_FOREACH(c, &lane->connections, link)
	{
		if (connection_has_room(c))
			return c;
		opening = opening || connection_is_opening(c);
		n += !c->retired;
		/* A proxy or a server that speaks HTTP/1 after all. */
		if (c->streams_max == 1)
			most = CONNECTIONS_MAX_PLAIN;
	}
	return opening || n >= most ? NULL : open_connection(lane);
}

bool lane_fits(struct connection *c, const struct kube_secret *secret)
{
	if (c->tls_generation == 0)
		c->tls_generation = secret->tls_generation;
	return c->tls_generation == secret->tls_generation;
}

struct connection *lane_connection_for(struct lane *lane, const struct kube_secret *secret)
{
	struct connection *c = NULL;

	TAILQ_FOREACH(c, &lane->connections, link)
	{
		if (!lane_fits(c, secret))
			connection_retire(c);
		else if (connection_has_room(c))
			return c;
	}
	c = open_connection(lane);
	(void)lane_fits(c, secret);
	return c;
}

void lane_free_unused(struct lane *lane)
{
	struct connection *c = TAILQ_FIRST(&lane->connections);

	while (c) {
		struct connection *next = TAILQ_NEXT(c, link);

		if (c->retired && c->n_streams == 0) {
			TAILQ_REMOVE(&lane->connections, c, link);
			lane->n_connections--;
			connection_free(c);
		}
		c = next;
	}
}

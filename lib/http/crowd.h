// SPDX-License-Identifier: Apache-2.0
/*
 * Who is connected, since when in which state, and who has to go. Pure: time and addresses come in
 * as arguments. Internal to lib/http.
 *
 * Each state has a list, ordered by the time since when its members are in it. So the first of a
 * list is the first whose time is up, and the first that is evicted for another connection.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum crowd_state {
	CROWD_NEW,       /* connected, and has never sent the whole head of a request */
	CROWD_IDLE,      /* between requests */
	CROWD_ASKING,    /* a request is on its way */
	CROWD_TAKING,    /* a response is on its way */
	CROWD_FOLLOWING, /* a response goes on, and there is nothing to send */
	CROWD_LEAVING,   /* all is said; we wait for the peer to notice */
	CROWD_STATES,
};

#define CROWD_FOR_EVER INT64_MAX

/* Part of a connection, whose owner frees it after crowd_remove. */
struct crowd_member {
	struct crowd_member *prev, *next;
	enum crowd_state state;
	int64_t since_ms;
	struct in6_addr peer;
};

struct crowd {
	/* Set by the owner before the first member comes, and never changed. */
	size_t max, new_max;            /* members; of them, members that are new */
	size_t peer_max, peer_new_max;  /* the same of one peer */
	int64_t lasts_ms[CROWD_STATES]; /* or CROWD_FOR_EVER */

	struct crowd_member *first[CROWD_STATES], *last[CROWD_STATES];
	size_t n[CROWD_STATES], total;
};

/*
 * What counts as one peer: an IPv4 address, or a /64 of IPv6, which one host can have for itself.
 * Addresses of IPv4 that come as IPv6 (::ffff:0:0/96, RFC 4291 section 2.5.5.2) are the same peer
 * either way. All zero for other families.
 */
struct in6_addr crowd_peer(const struct sockaddr *address);

/* Limits for `max` members; lasts_ms stays the caller's to set. */
void crowd_limit(struct crowd *crowd, size_t max);

/* member comes as CROWD_NEW. */
void crowd_add(struct crowd *crowd, struct crowd_member *member, const struct in6_addr *peer,
	       int64_t now_ms);
void crowd_remove(struct crowd *crowd, struct crowd_member *member);
/* member is in `state` since since_ms, which may lie in the past. */
void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_state state,
		int64_t since_ms);

enum crowd_answer {
	CROWD_WELCOME, /* there is room */
	CROWD_INSTEAD, /* there is, once *ret_victim has gone */
	CROWD_REFUSED, /* not for this peer: all it may have is in use */
	CROWD_FULL,    /* not for any peer, until a connection ends or becomes slow */
};

/*
 * Admit a connection from `peer`? New members are evicted at once, the oldest first, those of the
 * same peer when it has all that it may have; then those that have been idle for CROWD_IDLE_MS;
 * then those whose request or response takes longer than CROWD_SLOW_MS. Those that follow a stream
 * stay.
 */
enum crowd_answer crowd_ask(const struct crowd *crowd, const struct in6_addr *peer, int64_t now_ms,
			    struct crowd_member **ret_victim);

#define CROWD_IDLE_MS 1000
/* API servers need milliseconds. */
#define CROWD_SLOW_MS 3000

/* A member whose time is up; NULL: none. */
struct crowd_member *crowd_overdue(const struct crowd *crowd, int64_t now_ms);
/* When the next member's time is up; INT64_MAX: never. */
int64_t crowd_next_ms(const struct crowd *crowd);
/* Any member; NULL: there is none. */
struct crowd_member *crowd_any(const struct crowd *crowd);

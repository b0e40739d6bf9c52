// SPDX-License-Identifier: Apache-2.0
/*
 * Ordered lists, and walks along them: there are at most some hundred members, and an accept costs
 * more than a walk.
 */
#include "lib/http/crowd.h"

#include <assert.h>
#include <string.h>

struct in6_addr crowd_peer(const struct sockaddr *address)
{
	struct in6_addr peer = {0};

	if (address->sa_family == AF_INET) {
		memset(&peer.s6_addr[10], 0xff, 2);
		memcpy(&peer.s6_addr[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (address->sa_family == AF_INET6) {
		peer = ((const struct sockaddr_in6 *)address)->sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&peer))
			memset(&peer.s6_addr[8], 0, 8);
	}
	return peer;
}

static bool same_peer(const struct in6_addr *a, const struct in6_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* a share of max, at least one */
static size_t share(size_t max, size_t quarters)
{
	size_t n = max * quarters / 4;

	return n ? n : 1;
}

void crowd_limit(struct crowd *crowd, size_t max)
{
	crowd->max = max;
	crowd->new_max = share(max, 3);
	crowd->peer_max = share(max, 3);
	crowd->peer_new_max = share(max, 2);
}

static void list_insert(struct crowd *crowd, struct crowd_member *member)
{
	enum crowd_state state = member->state;
	struct crowd_member *before = crowd->last[state];

	assert(member->state < CROWD_STATES);
	while (before && before->since_ms > member->since_ms)
		before = before->prev;
	member->prev = before;
	member->next = before ? before->next : crowd->first[state];
	if (member->next)
		member->next->prev = member;
	else
		crowd->last[state] = member;
	if (before)
		before->next = member;
	else
		crowd->first[state] = member;
	crowd->n[state]++;
}

static void list_remove(struct crowd *crowd, struct crowd_member *member)
{
	enum crowd_state state = member->state;

	assert(member->state < CROWD_STATES && crowd->n[member->state] > 0);
	if (member->prev)
		member->prev->next = member->next;
	else
		crowd->first[state] = member->next;
	if (member->next)
		member->next->prev = member->prev;
	else
		crowd->last[state] = member->prev;
	crowd->n[state]--;
}

void crowd_add(struct crowd *crowd, struct crowd_member *member, const struct in6_addr *peer,
	       int64_t now_ms)
{
	assert(member && peer);
	member->peer = *peer;
	member->state = CROWD_NEW;
	member->since_ms = now_ms;
	list_insert(crowd, member);
	crowd->total++;
}

void crowd_remove(struct crowd *crowd, struct crowd_member *member)
{
	assert(crowd->total > 0);
	list_remove(crowd, member);
	crowd->total--;
}

void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_state state,
		int64_t since_ms)
{
	assert(state < CROWD_STATES);
	list_remove(crowd, member);
	member->state = state;
	member->since_ms = since_ms;
	list_insert(crowd, member);
}

/* The first in `state`, of this peer unless it is NULL, that was there at until_ms already. */
static struct crowd_member *find_member(const struct crowd *crowd, enum crowd_state state,
					const struct in6_addr *peer, int64_t until_ms)
{
	for (struct crowd_member *m = crowd->first[state]; m && m->since_ms <= until_ms;
	     m = m->next)
		if (!peer || same_peer(&m->peer, peer))
			return m;
	return NULL;
}

static struct crowd_member *find_victim(const struct crowd *crowd, const struct in6_addr *peer,
					int64_t now_ms)
{
	struct crowd_member *victim = find_member(crowd, CROWD_NEW, peer, INT64_MAX);

	if (!victim)
		victim = find_member(crowd, CROWD_LEAVING, peer, INT64_MAX);
	if (!victim)
		victim = find_member(crowd, CROWD_IDLE, peer, now_ms - CROWD_IDLE_MS);
	if (!victim)
		victim = find_member(crowd, CROWD_ASKING, peer, now_ms - CROWD_SLOW_MS);
	if (!victim)
		victim = find_member(crowd, CROWD_TAKING, peer, now_ms - CROWD_SLOW_MS);
	return victim;
}

static size_t count_members(const struct crowd *crowd, enum crowd_state state,
			    const struct in6_addr *peer)
{
	size_t n = 0;

	for (const struct crowd_member *m = crowd->first[state]; m; m = m->next)
		n += same_peer(&m->peer, peer);
	return n;
}

enum crowd_answer crowd_ask(const struct crowd *crowd, const struct in6_addr *peer, int64_t now_ms,
			    struct crowd_member **ret_victim)
{
	size_t new_of_peer = count_members(crowd, CROWD_NEW, peer), of_peer = new_of_peer;
	enum crowd_answer otherwise = CROWD_FULL;
	struct crowd_member *victim = NULL;

	assert(ret_victim);
	for (int state = CROWD_NEW + 1; state < CROWD_STATES; state++)
		of_peer += count_members(crowd, state, peer);
	if (new_of_peer >= crowd->peer_new_max) {
		victim = find_member(crowd, CROWD_NEW, peer, INT64_MAX);
	} else if (crowd->n[CROWD_NEW] >= crowd->new_max) {
		victim = crowd->first[CROWD_NEW];
	} else if (of_peer >= crowd->peer_max && crowd->peer_max < crowd->max) {
		victim = find_victim(crowd, peer, now_ms);
		otherwise = CROWD_REFUSED;
	} else if (crowd->total >= crowd->max) {
		victim = find_victim(crowd, NULL, now_ms);
	} else {
		return CROWD_WELCOME;
	}
	if (!victim)
		return otherwise;
	*ret_victim = victim;
	return CROWD_INSTEAD;
}

struct crowd_member *crowd_overdue(const struct crowd *crowd, int64_t now_ms)
{
	for (int state = 0; state < CROWD_STATES; state++)
		if (crowd->first[state] && crowd->lasts_ms[state] != CROWD_FOR_EVER &&
		    now_ms - crowd->first[state]->since_ms >= crowd->lasts_ms[state])
			return crowd->first[state];
	return NULL;
}

int64_t crowd_next_ms(const struct crowd *crowd)
{
	int64_t next_ms = INT64_MAX;

	for (int state = 0; state < CROWD_STATES; state++) {
		const struct crowd_member *first = crowd->first[state];

		if (first && crowd->lasts_ms[state] != CROWD_FOR_EVER &&
		    first->since_ms + crowd->lasts_ms[state] < next_ms)
			next_ms = first->since_ms + crowd->lasts_ms[state];
	}
	return next_ms;
}

struct crowd_member *crowd_any(const struct crowd *crowd)
{
	for (int state = 0; state < CROWD_STATES; state++)
		if (crowd->first[state])
			return crowd->first[state];
	return NULL;
}

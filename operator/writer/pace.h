// SPDX-License-Identifier: Apache-2.0
/*
 * How many writes may be under way: as many as the API server takes without getting slower, since
 * what it needs for ours, users wait for.
 *
 * Servers refuse only when all is lost (429); before that, requests queue up and all get slower.
 * So the sign to follow is the time that a write takes. It is compared with others of its sort
 * (kind and verb: a NodeState takes ten times as long as a NetworkAttachmentDefinition), as the
 * mean of PACE_GROUP answers, for single ones vary:
 *
 * - with the least of the last minutes: above PACE_QUEUE times that, ours queue up. A server of few
 *   processors then does nearly all that it can, and who comes waits for two others;
 * - with what is usual while as many of ours are under way: above PACE_OTHERS times that, it is
 *   others who load the server, and they go first.
 *
 * Above either the window shrinks in proportion, by half at most; below it grows by one. The
 * gradient, as opposed to a fixed step down, comes to rest where the queue is short instead of
 * swinging around it (TCP Vegas, and "concurrency limits" of Netflix).
 *
 * What it follows is blind while users write many objects at once: on a server that they keep busy
 * even the least that our writes took is slow. Those objects are what we act upon, so we see them
 * come. As long as they come quickly we step aside: one write at a time (one that hangs for
 * PACE_HANGS_MS is not waited for), and after each a rest of PACE_REST times what it took. What is
 * to be done is known best when the last of them is there.
 *
 * Pure: times are arguments.
 */
#ifndef ORBWEAVER_OPERATOR_WRITER_PACE_H
#define ORBWEAVER_OPERATOR_WRITER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACE_GROUP = 16,
	/* Sorts of writes that are told apart; what comes after them has no say. */
	PACE_SORTS_MAX = 48,
	/* Numbers of writes under way that are told apart: 1, 2 and 3, 4 to 7, ... */
	PACE_SIZES = 7,
	PACE_FIRST = 4,
	/*
	 * Awaited writes, for which pods wait with their sandboxes half made, ignore the window, up
	 * to this many.
	 */
	PACE_AWAITED = 32,
	/* When so few of ours under way are too many, others load the server. */
	PACE_FEW = 2,
	/* In such a time, what is usual rises by a hundredth; not for more than that at once. */
	PACE_USUAL_MS = 1000,
	PACE_USUAL_MAX_MS = 10000,
	/* How long the least counts, and up to as long again. */
	PACE_MEMORY_MS = 300000,
	/* How long it counts as loaded after that. */
	PACE_PRESSED_MS = 2000,
	/* So many objects of users in such a time are a crowd. */
	PACE_CROWD = 8,
	PACE_CROWD_MS = 250,
	PACE_REST = 3,
	PACE_REST_MAX_MS = 250,
	PACE_HANGS_MS = 1000,
	/* A crowd that lasts longer has to share: somebody waits for what we write. */
	PACE_ASIDE_MAX_MS = 60000,
};

#define PACE_QUEUE  3.0
#define PACE_OTHERS 1.5
/* What a busy machine adds to any answer. */
#define PACE_SLACK_US 2000

struct pace_sort {
	const char *kind, *verb; /* borrowed for ever */
	int64_t sum_us;          /* of the group that is being collected */
	unsigned int n;
	int64_t least_us[2]; /* mean of a group, in this period and the one before; 0: none yet */
	int64_t period_ms;   /* when this one began */
	struct {
		double us; /* 0: not known yet */
		int64_t at_ms;
	} usual[PACE_SIZES]; /* mean of a group, by how many were under way */
};

struct pace {
	struct pace_sort sorts[PACE_SORTS_MAX];
	size_t n_sorts;
	double window;
	unsigned int max;
	unsigned int passed_over; /* answers to what was sent before the window shrank */
	int64_t pressed_until_ms, refused_until_ms;
	unsigned int seen[2]; /* objects of users, in this PACE_CROWD_MS and the one before */
	int64_t seen_from_ms, aside_since_ms, rest_until_ms, begun_ms;
};

/* max: from 1. */
void pace_init(struct pace *pace, unsigned int max);

/*
 * A write was answered, or refused for now (429, 503). kind and verb are static text. under_way:
 * writes, this one included.
 */
void pace_answered(struct pace *pace, const char *kind, const char *verb, int64_t took_us,
		   unsigned int under_way, int64_t now_ms);
void pace_refused(struct pace *pace, unsigned int under_way, int64_t now_ms);

/* A user's object came or went, or what it asks for changed. */
void pace_seen(struct pace *pace, int64_t now_ms);

/* A crowd of them comes: for up to PACE_ASIDE_MAX_MS we step aside. */
bool pace_steps_aside(const struct pace *pace, int64_t now_ms);

/* A write that nobody waits for begins. */
void pace_begun(struct pace *pace, int64_t now_ms);

/* It took so long: what nobody waits for rests after it, if we step aside. */
void pace_rest(struct pace *pace, int64_t took_us, int64_t now_ms);

/*
 * How long to wait until there may be room although no write ends: the rest, or that the crowd ends
 * or a write hangs. -1: until one ends.
 */
int64_t pace_rest_ms(const struct pace *pace, int64_t now_ms);

/* From 1 to max. */
unsigned int pace_window(const struct pace *pace);

/*
 * May one more write begin while so many of either sort are under way? Awaited ones take no place
 * of the others; in the time after a refusal they keep to the window, too.
 */
bool pace_has_room(const struct pace *pace, unsigned int awaited_under_way,
		   unsigned int others_under_way, bool awaited, int64_t now_ms);

/* Others load the server, or are about to: what nobody waits for should wait. */
bool pace_is_pressed(const struct pace *pace, int64_t now_ms);

#endif

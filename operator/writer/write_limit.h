// SPDX-License-Identifier: Apache-2.0
/*
 * How many writes may be under way: as many as the API server takes without getting slower, since
 * what it needs for ours, users wait for.
 *
 * Servers refuse only when all is lost (429); before that, requests queue up and all get slower.
 * So the sign to follow is the time that a write takes. It is compared with others of its sort
 * (kind and verb: a NodeState takes ten times as long as a NetworkAttachmentDefinition), as the
 * mean of WRITE_LIMIT_GROUP answers, for single ones vary:
 *
 * - with the least of the last minutes: above WRITE_LIMIT_QUEUE times that, ours queue up. A server
 * of few
 *   processors then does nearly all that it can, and who comes waits for two others;
 * - with what is usual while as many of ours are under way: above WRITE_LIMIT_OTHERS times that, it
 * is
 *   others who load the server, and they go first.
 *
 * Above either the window shrinks in proportion, by half at most; below it grows by one. The
 * gradient, as opposed to a fixed step down, comes to rest where the queue is short instead of
 * swinging around it (TCP Vegas, and "concurrency limits" of Netflix).
 *
 * What it follows is blind while users write many objects at once: on a server that they keep busy
 * even the least that our writes took is slow. Those objects are what we act upon, so we see them
 * come. As long as they come quickly we step aside: one write at a time (one that hangs for
 * WRITE_LIMIT_HANGS_MS is not waited for), and after each a rest of WRITE_LIMIT_REST times what it
 * took. What is to be done is known best when the last of them is there.
 *
 * Pure: times are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WRITE_LIMIT_GROUP = 16,
	/* Sorts of writes that are distinguished; what comes after them has no say. */
	WRITE_LIMIT_SORTS_MAX = 48,
	/* Numbers of writes in flight that are distinguished: 1, 2 and 3, 4 to 7, ... */
	WRITE_LIMIT_SIZES = 7,
	WRITE_LIMIT_FIRST = 4,
	/*
	 * Awaited writes, for which pods wait with their sandboxes half made, ignore the window, up
	 * to this many.
	 */
	WRITE_LIMIT_AWAITED = 32,
	/* When so few of ours under way are too many, others load the server. */
	WRITE_LIMIT_FEW = 2,
	/* In such a time, what is usual rises by a hundredth; not for more than that at once. */
	WRITE_LIMIT_USUAL_MS = 1000,
	WRITE_LIMIT_USUAL_MAX_MS = 10000,
	/* How long the least counts, and up to as long again. */
	WRITE_LIMIT_MEMORY_MS = 300000,
	/* How long it counts as loaded after that. */
	WRITE_LIMIT_PRESSED_MS = 2000,
	/* So many objects of users in such a time are a crowd. */
	WRITE_LIMIT_CROWD = 8,
	WRITE_LIMIT_CROWD_MS = 250,
	WRITE_LIMIT_REST = 3,
	WRITE_LIMIT_REST_MAX_MS = 250,
	WRITE_LIMIT_HANGS_MS = 1000,
	/* A crowd that lasts longer has to share: users wait for what we write. */
	WRITE_LIMIT_ASIDE_MAX_MS = 60000,
};

#define WRITE_LIMIT_QUEUE  3.0
#define WRITE_LIMIT_OTHERS 1.5
/* What a busy machine adds to any answer. */
#define WRITE_LIMIT_SLACK_US 2000

struct write_limit_sort {
	const char *kind, *verb; /* borrowed for ever */
	int64_t sum_us;          /* of the group that is being collected */
	unsigned int n;
	int64_t least_us[2]; /* mean of a group, in this period and the one before; 0: none yet */
	int64_t period_ms;   /* when this one began */
	struct {
		double us; /* 0: not known yet */
		int64_t at_ms;
	} usual[WRITE_LIMIT_SIZES]; /* mean of a group, by how many were under way */
};

struct write_limit {
	struct write_limit_sort sorts[WRITE_LIMIT_SORTS_MAX];
	size_t n_sorts;
	double window;
	unsigned int max;
	unsigned int passed_over; /* answers to what was sent before the window shrank */
	int64_t pressed_until_ms, refused_until_ms;
	unsigned int
		seen[2]; /* objects of users, in this WRITE_LIMIT_CROWD_MS and the one before */
	int64_t seen_from_ms, aside_since_ms, rest_until_ms, begun_ms;
};

/* max: from 1. */
void write_limit_init(struct write_limit *pace, unsigned int max);

/*
 * A write was answered, or refused for now (429, 503). kind and verb are static text. under_way:
 * writes, this one included.
 */
void write_limit_answered(struct write_limit *pace, const char *kind, const char *verb,
			  int64_t took_us, unsigned int under_way, int64_t now_ms);
void write_limit_refused(struct write_limit *pace, unsigned int under_way, int64_t now_ms);

/* A user's object came or went, or what it asks for changed. */
void write_limit_seen(struct write_limit *pace, int64_t now_ms);

/* A crowd of them comes: for up to WRITE_LIMIT_ASIDE_MAX_MS we step aside. */
bool write_limit_steps_aside(const struct write_limit *pace, int64_t now_ms);

/* A write that no user waits for begins. */
void write_limit_begun(struct write_limit *pace, int64_t now_ms);

/* It took this long: what no user waits for rests after it, if we step aside. */
void write_limit_rest(struct write_limit *pace, int64_t took_us, int64_t now_ms);

/*
 * How long to wait until there may be room although no write ends: the rest, or that the crowd ends
 * or a write hangs. -1: until one ends.
 */
int64_t write_limit_rest_ms(const struct write_limit *pace, int64_t now_ms);

/* From 1 to max. */
unsigned int write_limit_window(const struct write_limit *pace);

/*
 * May one more write begin while so many of either sort are under way? Awaited ones take no place
 * of the others; in the time after a refusal they keep to the window, too.
 */
bool write_limit_has_room(const struct write_limit *pace, unsigned int awaited_under_way,
			  unsigned int others_under_way, bool awaited, int64_t now_ms);

/* Others load the server, or are about to: what no user waits for should wait. */
bool write_limit_is_pressed(const struct write_limit *pace, int64_t now_ms);

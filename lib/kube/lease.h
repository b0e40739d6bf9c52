// SPDX-License-Identifier: Apache-2.0
/*
 * Leader election by a coordination.k8s.io/v1 Lease, and the answer to "may I still write?".
 *
 * The object is the one that client-go's leaderelection uses, so kubectl and other tools read it as
 * usual.
 *
 * Why two holders never write at the same time. All times are CLOCK_BOOTTIME of the measuring
 * process; wall clocks play no part, and of two machines' clocks only the speed has to agree.
 *
 *  1. A holder's term ends LEASE_HOLD_MS after it *began to send* its last successful write of the
 *     Lease (s), so at s + 10 s.
 *     It does not matter which attempt succeeded, or how long the answer took, or that the process
 *     was stopped before it read it.
 *  2. Another holder takes the Lease only LEASE_DURATION_S after he *received* an answer that shows
 *     that write (r), and his own write carries the resourceVersion he read: it succeeds only if
 *     there was none in between. The write was stored after s, so r > s, and the next term begins
 *     after s + 15 s. A candidate that was stopped in between finds more time gone by, but also a
 *     newer version, or no holder at all.
 *  3. Whether the term is over is asked before each write; and at its end the kernel cuts the
 *     holder's connections, should the holder be stopped between question and write (fence.h). So a
 *     write leaves before s + 10 s or not at all.
 *  4. What left arrives within KUBE_DELIVERY_MS or is dropped with its connection: before s + 14 s.
 *
 * One second is left for what the server holds back by itself, and for clocks that run at different
 * speeds. A server that stores a request later than that, after it took it, is beyond us; what then
 * protects an object is the resourceVersion that an update carries.
 *
 * The argument takes it that the Lease is not deleted. Who deletes it ends the argument for one
 * term: the holder writes on until its next renewal, at most hold_ms. So a candidate that saw a
 * holder waits its duration, as if the Lease were there, before it creates a new one; only one that
 * starts after the deletion, and never saw it, creates at once.
 *
 * A release gives the Lease away early: it is conditional on the holder still being us, and
 * lease_is_held is false before.
 *
 * Agents read the Lease as well: after a whole term without a renewal they allocate addresses
 * themselves. How long a term is, LEASE_TERM_ANNOTATION of the Lease says.
 */
#pragma once

#include <assert.h>
#include <jansson.h>
#include <stdbool.h>

#include "lib/kube/client.h"

/* Seconds after which a holder that has not renewed the Lease writes nothing more. */
#define LEASE_TERM_ANNOTATION "orbweaver.io/renew-deadline-seconds"

enum {
	LEASE_DURATION_S = 15,
	LEASE_HOLD_MS = 10000,
	/* Three attempts fit into a term: after 4 s, 7 s and at 10 s. */
	LEASE_RENEW_MS = 4000,
	LEASE_CALL_TIMEOUT_MS = 2500,
	LEASE_RETRY_MS = 500,
	/* Candidates look this often. All times have 10 % jitter. */
	LEASE_LOOK_MS = 2000,
	/* A holder whose duration is longer than this is believed for this long. */
	LEASE_FOREIGN_MAX_S = 86400,
};

/* All candidates for one Lease should have the same. */
struct lease_timing {
	int64_t duration_s; /* what others wait for: LEASE_DURATION_S */
	int64_t hold_ms;    /* how long a term is for its holder: LEASE_HOLD_MS */
	int64_t renew_ms;   /* renewed this often: LEASE_RENEW_MS */
};

extern const struct lease_timing lease_default_timing;

/*
 * -1 with err when two could write at the same time, or a term has no time for a second attempt:
 *
 *   ERR_INVALID "BadLeaseTiming"  the text says what has to be longer or shorter than what
 */
int lease_check_timing(const struct lease_timing *timing, struct err *err);

static_assert(LEASE_HOLD_MS + KUBE_DELIVERY_MS < LEASE_DURATION_S * 1000, "see 4. above");

struct lease_config {
	const char *ns, *name; /* of the Lease; borrowed, as all here */
	/* Unique per process, so more than a pod's name: a restarted container is another one. */
	const char *identity;
	const char *field_manager;
	struct lease_timing timing; /* checked; all 0: lease_default_timing */
	/*
	 * No election: we lead in any case, until lease_release(), and write the Lease, whichever
	 * process holds it, for programs that read it.
	 */
	bool is_alone;
	const json_t *annotations; /* { key: text } that the holder sets; NULL: none */
	/* Called from the loop: leading is what lease_is_held says at that moment. */
	void (*changed)(void *arg, bool leading);
	/*
	 * The Lease cannot be read or written, called once per different text; NULL: it can, for
	 * the first time or again.
	 */
	void (*trouble)(void *arg, const struct err *err);
	void *arg;
};

/*
 * For how long after a renewal the holder of this Lease may write: LEASE_TERM_ANNOTATION, else
 * spec.leaseDurationSeconds, else LEASE_DURATION_S; at most LEASE_FOREIGN_MAX_S.
 */
int64_t lease_term_ms(const json_t *object);

struct lease;

/*
 * The client's fenced writes end with each term (kube_client_writes_end_at); what lease_is_held
 * says is for its fence.
 */
struct lease *lease_new(struct loop *loop, struct kube_client *client,
			const struct lease_config *config);

/* Ask immediately before a write. True only while no other process can be the holder. */
bool lease_is_held(const struct lease *lease);

/* Return the last known holder, "" for none. Borrowed until the next turn. */
const char *lease_holder(const struct lease *lease);

/*
 * clock_ms when an attempt to read, take or renew it last ended, in whatever way. It does so every
 * few seconds, held or not: one that lies further back than a few terms means that this process is
 * stuck, and is better restarted.
 */
int64_t lease_looked_ms(const struct lease *lease);

/*
 * Stop holding it: from this call on lease_is_held is false, and `changed` does not come any more.
 * The Lease is given free for others at once when we held it; done is called after that (or after
 * the attempt failed, or at once when there is nothing to release).
 */
void lease_release(struct lease *lease, void (*done)(void *arg), void *arg);

/* The fence stays closed: writes that are still queued do not go out. */
void lease_free(struct lease *lease);

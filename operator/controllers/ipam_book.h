// SPDX-License-Identifier: Apache-2.0
/*
 * The life of pods' addresses between two decisions: what the controllers addresses, endpoint and
 * strays have found out and another of them carries on with. ipam_book.c begins with the states.
 *
 * In memory only: after a start all of it follows from the cluster again.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct controller_sources; /* operator/controllers/controllers.h */
struct ipam_book;

/*
 * One kind of message each. Plans (plan_post) and worlds name it by the BOX_* beside it, whose
 * header says what the value is.
 */
enum ipam_entry {
	IPAM_WAITING,   /* BOX_WAITING: the pod may lack addresses */
	IPAM_CLAIMANT,  /* BOX_CLAIMANTS: the pod has an address without a record */
	IPAM_LIVE,      /* BOX_LIVE: what was read for the endpoint */
	IPAM_ENDING,    /* BOX_ENDING: the endpoint's addresses may be released */
	IPAM_DECIDED,   /* BOX_DECIDED: the ledgers have what the endpoint has to say */
	IPAM_STRAYS,    /* BOX_STRAYS: records of the pod's name without an endpoint */
	IPAM_CLAIMED,   /* BOX_CLAIMED: what an endpoint says of a pool without a record */
	IPAM_LEARNING,  /* BOX_LEARNING: the pool's claims are noted */
	IPAM_LEARNED,   /* BOX_LEARNED: the pool was compared with its endpoints */
	IPAM_SHORT,     /* BOX_SHORT_POOL: pods wait for an address of the pool */
	IPAM_UNWRITTEN, /* BOX_UNWRITTEN: the API server refuses the pool's ledger */
	IPAM_PACED,     /* BOX_PACED: the pool's ledger is large and was just written */
	IPAM_PASSED,    /* BOX_PASSED: a pass has seen all pods that wait */
	IPAM_ENTRIES,
};

struct ipam_book *ipam_book_new(void);
void ipam_book_free(struct ipam_book *book);

/* Borrowed; NULL without an entry. */
json_t *ipam_book_get(const struct ipam_book *book, enum ipam_entry entry, const char *key);

/* { key: value }, in the order in which the keys came; NULL without any. Borrowed. */
const json_t *ipam_book_all(const struct ipam_book *book, enum ipam_entry entry);

/* Put what there is for the key into the world, as a kind of the name BOX_*. */
void ipam_book_add(const struct ipam_book *book, json_t *world, enum ipam_entry entry,
		   const char *key);

/* ---- events: they change from->addresses, count, and wake the keys that see it --------------- */

/* The entry of the key is this from now on; value NULL: none. Borrows value. */
void ipam_book_set(const struct controller_sources *from, enum ipam_entry entry, const char *key,
		   json_t *value);

/* How often entries were set. */
uint64_t ipam_book_revision(const struct ipam_book *book);

/*
 * A plan posted this: the same, by the name BOX_*. as_of: the revision when the plan's world was
 * gathered. An entry that was set since then was not decided on, so no value takes it out.
 */
void ipam_book_posted(const struct controller_sources *from, const char *box, const char *key,
		      json_t *value, uint64_t as_of);

/*
 * A term of leadership begins. Ledgers that were refused in an earlier one are written at once.
 * Decisions of an earlier term are made again, and what was read for them is read again: another
 * leader may have come between.
 */
void ipam_book_lead(const struct controller_sources *from);

/* The pod is mirrored, and may lack addresses. */
void ipam_book_wait(const struct controller_sources *from, const char *pod);

/*
 * A pass takes these pods, { key: … }, out of the first `looked_at` that wait. All of those go
 * behind the others, so that a thousand pods of a pool that is full keep no other pod waiting: the
 * ones that were put off first.
 */
void ipam_book_take_pass(struct ipam_book *book, const json_t *pods, size_t looked_at);

/* Add all entries of IPAM_CLAIMED that are about a pool to a world: users may make very many. */
void ipam_book_add_claims(const struct ipam_book *book, json_t *world, const char *pool);

/* Entries with these keys go behind the others of the same kind. */
void ipam_book_put_behind(struct ipam_book *book, enum ipam_entry entry, const json_t *keys);

// SPDX-License-Identifier: Apache-2.0
/*
 * All ledgers of one pass: pools are opened when they are first asked for, and written together at
 * the end, however many pods took from them or gave back.
 */
#pragma once

#include "reconcilers/core/plan.h"
#include "reconcilers/ipam/ledger.h"

struct books;

/*
 * By SpiderIPPool, until when, in "clockMs" of "env", its ledger is not written again. The API
 * server and etcd keep each version of a large ledger as a whole.
 */
#define BOX_PACED "pacedledgers"

/*
 * A ledger above this size is written once a second, unless it has so many more or fewer records
 * than before: thousands of pods that start together do not wait. All such ledgers may be written
 * again at the same time, so that pods which need several find them together.
 */
enum { LEDGER_UNPACED_BYTES = 256 * 1024, LEDGER_BATCH = 256, LEDGER_PAUSE_MS = 1000 };

/*
 * World: KIND_IP_POOL, KIND_RESERVED_IP (all), KIND_POD, BOX_UNWRITTEN (ip_pool.h), BOX_PACED; in
 * "env" "now" and "clockMs" (a clock that never goes back), and who knows whether pods have
 * addresses that a ledger lacks: "learns": true, BOX_LEARNED; "withoutLeader": true, the pool's own
 * count (ledger_is_counted()); neither: they are not looked for. Borrowed until books_free.
 */
struct books *books_new(const json_t *world);
/* Accepts NULL. */
void books_free(struct books *books);
OWN_DEFINE(struct books, books_free)
#define auto_books auto_call(books_free_p)

const json_t *books_world(const struct books *books);

/* The pod of the world with this UID; NULL: it has none. Borrowed. */
const json_t *books_pod(struct books *books, const char *uid);

/*
 * What BOX_UNWRITTEN of the world has of a pool whose ledger the server refuses, before it is time
 * for another try ("now" in "env"); else NULL. Borrowed.
 */
const json_t *books_trouble(const json_t *world, const char *pool);

/*
 * The ledger of a pool, opened once. Borrowed; NULL with err: those of ledger_open(), ERR_INVALID
 * "PoolNotFound", and ERR_TRANSIENT "LedgerNotWritten" while BOX_UNWRITTEN has the pool,
 * "LedgerPaced" while BOX_PACED has it: whoever gets that waits (books_paced_ms()).
 */
struct ledger *books_open(struct books *books, const char *pool, struct err *err);

/*
 * May new addresses be taken out of this ledger? 0; -1 with err, when the pool's verdict
 * (ip_pool_judge(), with all pools of the world that overlap it) says that no pod gets one:
 * ERR_INVALID with the verdict's reason, which the pool's condition Ready reports. Addresses that
 * other pools have given away, or may have, are not free afterwards. Addresses that pods have are
 * not touched: they are passed on and given back whatever the verdict is. ERR_TRANSIENT
 * "PoolNotLearned": pods may have some that the ledger lacks.
 */
int books_may_take(struct books *books, struct ledger *ledger, struct err *err);

/* 0; -1 with ERR_TRANSIENT "PoolNotLearned", as above. */
int books_check_learned(const struct ledger *ledger, struct err *err);

/*
 * The same for an address that a living pod has, and that has no record: also before the pool is
 * learned, and while it overlaps an older one. Unrecorded, it would be given to another pod once
 * the pools are put right.
 */
int books_may_record(struct books *books, struct ledger *ledger, struct err *err);

/*
 * All changes for a pod or none: between books_begin() and one of the others, call books_note()
 * before an address of a ledger changes hands. books_cancel() gives every noted address back to
 * whom it had belonged.
 */
void books_begin(struct books *books);
void books_note(struct books *books, struct ledger *ledger, const char *address);
void books_keep(struct books *books);
void books_cancel(struct books *books);

/*
 * The pool of the world that accounts for an address which an endpoint has from pool `named`: one
 * whose ledger has a record of it, else one whose spec has it; of several, `named`, else the
 * oldest. Borrowed; `named` when there is none.
 */
const char *books_pool_of(struct books *books, const char *named, enum ip_family family,
			  const char *address);

/* The pod with this UID found no address in the pool. */
void books_note_short(struct books *books, const char *pool, const char *uid);
/* { pool: { UID: true } } of all that found none. Borrowed. */
const json_t *books_short_of(const struct books *books);

/*
 * Was a ledger not opened because of BOX_PACED since this was last asked? How long it rests still,
 * -1: none was. What was decided meanwhile may lack that ledger's records.
 */
int64_t books_paced_ms(struct books *books);
bool books_is_paced(const struct books *books);
/*
 * For how long a ledger of this pass rests once it is written with this text (NULL: none) at
 * clock_ms; 0: not at all.
 */
int64_t books_pause_ms(const struct books *books, const char *pool, const char *text,
		       int64_t clock_ms);

/* Plan the status of every pool whose ledger has changed, by name. */
void books_plan(const struct books *books, struct plan *plan);

// SPDX-License-Identifier: Apache-2.0
/*
 * The ledgers of one pass. See the header.
 */
#include "reconcilers/ipam/books.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/assign.h"
#include "reconcilers/spider/ip_pool_index.h"

/* Whom an address belonged to before this pod's turn. */
struct note {
	struct ledger *ledger;
	char address[IP_TEXT_SIZE];
	json_t *record; /* NULL: to nobody */
};

struct books {
	const json_t *world;
	struct map ledgers;          /* by pool */
	struct map verdicts;         /* by pool: struct err, of class ERR_NONE when it serves */
	struct ip_pool_index *index; /* of the world's pools; NULL until it is needed */
	bool is_begun;
	struct note *notes; /* since books_begin */
	size_t notes_len, notes_cap;
	json_t *short_of; /* books_short_of */
};

static void ledger_delete(void *value)
{
	struct ledger *ledger = value;

	ledger_done(ledger);
	free(ledger);
}

struct books *books_new(const json_t *world)
{
	struct books *books = mem_new(struct books);

	books->world = world;
	books->short_of = json_object();
	books->ledgers.free_value = ledger_delete;
	books->verdicts.free_value = free;
	return books;
}

static void forget_notes(struct books *books)
{
	while (books->notes_len > 0)
		json_decref(books->notes[--books->notes_len].record);
}

void books_free(struct books *books)
{
	if (!books)
		return;
	map_done(&books->ledgers);
	map_done(&books->verdicts);
	ip_pool_index_free(books->index);
	forget_notes(books);
	json_decref(books->short_of);
	free(books->notes);
	free(books);
}

const json_t *books_world(const struct books *books)
{
	return books->world;
}

/* Does the server refuse this ledger, and is it not yet time for another try? */
static int check_written(const struct books *books, const char *pool, struct err *err)
{
	const json_t *trouble = world_get(books->world, BOX_UNWRITTEN, pool);
	int64_t until, now;

	if (!trouble || !rfc3339_read(json_str_or(json_at(trouble, "until"), ""), &until) ||
	    !rfc3339_read(world_env(books->world, "now"), &now) || now >= until)
		return 0;
	return err_set(err, ERR_TRANSIENT, "LedgerNotWritten",
		       "the status of pool %s cannot be written: %s", pool,
		       json_str_or(json_at(trouble, "text"), "?"));
}

struct ledger *books_open(struct books *books, const char *pool, struct err *err)
{
	struct ledger *ledger = map_get(&books->ledgers, pool);
	const json_t *object;

	if (ledger)
		return ledger;
	object = world_get(books->world, KIND_IP_POOL, pool);
	if (!object) {
		err_set(err, ERR_INVALID, "PoolNotFound", "pool %.64s does not exist", pool);
		return NULL;
	}
	if (check_written(books, pool, err) < 0)
		return NULL;
	ledger = mem_new(struct ledger);
	if (ledger_open(object, world_kind(books->world, KIND_RESERVED_IP),
			world_env(books->world, "now"), ledger, err) < 0) {
		free(ledger);
		return NULL;
	}
	map_set(&books->ledgers, pool, ledger);
	return ledger;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The pools that may overlap one. */
struct neighbours {
	const struct books *books;
	json_t *world; /* {KIND_IP_POOL: {name: pool}} */
};

static void add_neighbour(void *arg, const char *name)
{
	const struct neighbours *n = arg;
	json_t *pool = (json_t *)world_get(n->books->world, KIND_IP_POOL, name);

	if (pool)
		json_object_set(json_need_object(n->world, KIND_IP_POOL), name, pool);
}

/* A world with the pool and those that may overlap it. Returns new. */
static json_t *neighbourhood(struct books *books, const json_t *pool)
{
	struct neighbours n = {books, json_object()};
	const char *name;
	json_t *other;

	if (!books->index) {
		books->index = ip_pool_index_new();
		json_each (world_kind(books->world, KIND_IP_POOL), name, other)
			ip_pool_index_put(books->index, other);
	}
	add_neighbour(&n, json_name(pool));
	ip_pool_index_find(books->index, pool, add_neighbour, &n);
	return n.world;
}

/* A pool that became older by an edit, or was made in the same second, may have given them away. */
static void keep_out_others(struct ledger *ledger, const json_t *world)
{
	auto_ip_set struct ip_set taken = {0};
	const char *name, *address;
	json_t *other, *record;

	json_each (world_kind(world, KIND_IP_POOL), name, other) {
		const char *text = json_str_or(json_at(other, "status", "allocatedIPs"), "");
		json_auto_t *records = NULL;

		if (str_eq(name, json_name(ledger->pool)))
			continue;
		records = json_parse(text, strlen(text), NULL);
		json_each (json_is_object(records) ? records : NULL, address, record) {
			struct ip_range range;

			if (ip_range_parse(address, ledger->family, &range, NULL) == 0)
				ip_set_add(&taken, range);
		}
	}
	ip_set_settle(&taken);
	ledger_keep_out(ledger, &taken);
}

static struct err *judge(struct books *books, struct ledger *ledger)
{
	json_auto_t *world = neighbourhood(books, ledger->pool);
	auto_problems struct problems problems = {0}, warnings = {0};
	struct err *verdict = mem_new(struct err);

	ip_pool_judge(world, ledger->pool, &problems, &warnings);
	if (problems.total) {
		auto_free char *text = problems_text(&problems);

		(void)err_set(verdict, ERR_INVALID, problems_reason(&problems), "pool %s: %s",
			      json_name(ledger->pool), text);
	} else if (json_is_true(json_at(books->world, "env", "withoutLeader")) &&
		   !ip_pool_is_judged(ledger->pool) &&
		   json_object_size(world_kind(world, KIND_IP_POOL)) > 1) {
		(void)err_set(verdict, ERR_TRANSIENT, "PoolNotJudged",
			      "pool %s is new or was changed, and its subnet overlaps another "
			      "pool's: it gives addresses once an operator leads that has "
			      "compared them",
			      json_name(ledger->pool));
	} else {
		keep_out_others(ledger, world);
	}
	return verdict;
}

/* Was the pool compared with what living pods have, since it came? */
static bool is_learned(const struct books *books, const json_t *pool)
{
	const json_t *learned = world_get(books->world, BOX_LEARNED, json_name(pool));

	return !json_is_true(json_at(books->world, "env", "learns")) ||
	       str_eq(json_string_value(learned), json_uid(pool));
}

int books_may_take(struct books *books, struct ledger *ledger, struct err *err)
{
	if (!is_learned(books, ledger->pool))
		return err_set(err, ERR_TRANSIENT, "PoolNotLearned",
			       "pool %s is new: what pods have of it is looked at first",
			       json_name(ledger->pool));
	return books_may_record(books, ledger, err);
}

int books_may_record(struct books *books, struct ledger *ledger, struct err *err)
{
	const char *name = json_name(ledger->pool);
	struct err *verdict = map_get(&books->verdicts, name);

	if (!verdict) {
		verdict = judge(books, ledger);
		map_set(&books->verdicts, name, verdict);
	}
	if (verdict->class == ERR_NONE)
		return 0;
	if (err)
		*err = *verdict;
	return -1;
}

/* ---- changes for a pod ----------------------------------------------------------------------- */

void books_begin(struct books *books)
{
	assert(!books->is_begun);
	books->is_begun = true;
}

void books_note(struct books *books, struct ledger *ledger, const char *address)
{
	struct note *note;

	assert(books->is_begun);
	if (books->notes_len == books->notes_cap) {
		books->notes_cap = books->notes_cap ? 2 * books->notes_cap : 16;
		books->notes = mem_realloc(books->notes, books->notes_cap * sizeof(*books->notes));
	}
	note = &books->notes[books->notes_len++];
	*note = (struct note){.ledger = ledger};
	note->record = json_incref((json_t *)ledger_record(ledger, address));
	(void)snprintf(note->address, sizeof(note->address), "%s", address);
}

void books_keep(struct books *books)
{
	assert(books->is_begun);
	books->is_begun = false;
	forget_notes(books);
}

void books_cancel(struct books *books)
{
	assert(books->is_begun);
	books->is_begun = false;
	for (size_t i = books->notes_len; i-- > 0;)
		ledger_restore(books->notes[i].ledger, books->notes[i].address,
			       books->notes[i].record);
	forget_notes(books);
}

void books_note_short(struct books *books, const char *pool, const char *uid)
{
	json_put(json_need_object(books->short_of, pool), uid, json_true());
}

const json_t *books_short_of(const struct books *books)
{
	return books->short_of;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void books_plan(const struct books *books, struct plan *plan)
{
	auto_free const char **names = mem_calloc(books->ledgers.len + 1, sizeof(*names));
	const char *name;
	size_t i = 0, n = 0;
	void *value;

	while (map_next(&books->ledgers, &i, &name, &value))
		if (((const struct ledger *)value)->has_changed)
			names[n++] = name;
	qsort(names, n, sizeof(*names), by_name);
	for (i = 0; i < n; i++)
		plan_status(plan, KIND_IP_POOL, names[i],
			    ledger_status(map_get(&books->ledgers, names[i])));
}

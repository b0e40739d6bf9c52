/*
 * The ledgers of one pass. See the header.
 */
#include "reconcilers/ipam/books.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

/* Whom an address belonged to before this pod's turn. */
struct note {
	struct ledger *ledger;
	char address[IP_TEXT_SIZE];
	json_t *record; /* NULL: to nobody */
};

struct books {
	const json_t *world;
	struct map ledgers; /* by pool */
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
	forget_notes(books);
	json_decref(books->short_of);
	free(books->notes);
	free(books);
}

const json_t *books_world(const struct books *books)
{
	return books->world;
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
	ledger = mem_new(struct ledger);
	if (ledger_open(object, world_kind(books->world, KIND_RESERVED_IP),
			world_env(books->world, "now"), ledger, err) < 0) {
		free(ledger);
		return NULL;
	}
	map_set(&books->ledgers, pool, ledger);
	return ledger;
}

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

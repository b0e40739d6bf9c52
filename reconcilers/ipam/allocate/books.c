// SPDX-License-Identifier: Apache-2.0
/*
 * A pool's ledger is opened at its first mention and judged when the first address is taken from
 * it. A pass of assign.c, a repair and an agent without a leader each have one; books_plan() ends
 * it.
 */
#include "reconcilers/ipam/allocate/books.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/ip_pool_index.h"

/* Whom an address belonged to before this pod's turn. */
struct note {
	struct ledger *ledger;
	char address[IP_TEXT_SIZE];
	json_t *record; /* NULL: to nobody */
};

struct books {
	const json_t *world;
	struct map ledgers;          /* by pool */
	struct map verdicts;         /* by pool: struct verdict */
	struct map accounts;         /* by pool: struct account */
	struct ip_pool_index *index; /* of the world's pools; NULL until it is needed */
	struct ip_set nodes[2];      /* addresses of Nodes, IPv4 and IPv6 */
	bool has_nodes[2];           /* they were read */
	bool is_begun;
	struct note *notes; /* since books_begin */
	size_t notes_len, notes_cap;
	json_t *short_of; /* books_short_of */
	json_t *pods;     /* of the world, by UID; NULL until it is needed */
	int64_t paced_ms; /* books_paced_ms */
};

/* What is known of a pool beside its ledger. */
struct verdict {
	struct err alone;   /* the same without regard to other pools */
	struct err err;     /* of class ERR_NONE when it serves */
	json_t *neighbours; /* a world with the pool and those that may overlap it */
	bool is_opened;     /* what unsure neighbours may have given away is not free */
};

static void verdict_delete(void *value)
{
	struct verdict *verdict = value;

	json_decref(verdict->neighbours);
	free(verdict);
}

/* What a pool has and had; both empty when it cannot be read. */
struct account {
	struct ip_pool spec;
	struct ip_set records;
};

static void account_delete(void *value)
{
	struct account *account = value;

	ip_pool_done(&account->spec);
	ip_set_done(&account->records);
	free(account);
}

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
	books->paced_ms = -1;
	books->ledgers.free_value = ledger_delete;
	books->verdicts.free_value = verdict_delete;
	books->accounts.free_value = account_delete;
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
	assert(!books->is_begun);
	map_done(&books->ledgers);
	map_done(&books->verdicts);
	map_done(&books->accounts);
	ip_pool_index_free(books->index);
	ip_set_done(&books->nodes[0]);
	ip_set_done(&books->nodes[1]);
	forget_notes(books);
	json_decref(books->short_of);
	json_decref(books->pods);
	free(books->notes);
	free(books);
}

const json_t *books_world(const struct books *books)
{
	return books->world;
}

const json_t *books_pod(struct books *books, const char *uid)
{
	const char *key;
	json_t *pod;

	assert(uid);
	if (!books->pods) {
		books->pods = json_object();
		json_each (world_kind(books->world, KIND_POD), key, pod)
			json_object_set(books->pods, json_uid(pod), pod);
	}
	return *uid ? json_object_get(books->pods, uid) : NULL;
}

const json_t *books_trouble(const json_t *world, const char *pool)
{
	const json_t *trouble = world_get(world, BOX_UNWRITTEN, pool);
	int64_t until, now;

	assert(pool);
	return trouble && rfc3339_read(json_str_or(json_at(trouble, "until"), ""), &until) &&
			       rfc3339_read(world_env(world, "now"), &now) && now < until &&
			       until - now <= LEDGER_AGAIN_MAX_MS * INT64_C(1000)
		       ? trouble
		       : NULL;
}

static int check_written(const struct books *books, const char *pool, struct err *err)
{
	const json_t *trouble = books_trouble(books->world, pool);

	if (!trouble)
		return 0;
	return err_set(err, ERR_TRANSIENT, "LedgerNotWritten",
		       "the status of pool %s cannot be written: %s", pool,
		       json_str_or(json_at(trouble, "text"), "?"));
}

static int check_pace(struct books *books, const char *pool, struct err *err)
{
	int64_t until = json_integer_value(world_get(books->world, BOX_PACED, pool));
	int64_t left = until - json_integer_value(json_at(books->world, "env", "clockMs"));

	if (left <= 0)
		return 0;
	if (left > books->paced_ms)
		books->paced_ms = left;
	return err_set(err, ERR_TRANSIENT, "LedgerPaced",
		       "the ledger of pool %s is large and was just written", pool);
}

/* May living pods have addresses of the pool that its ledger lacks? */
static bool is_unsure(const struct books *books, const json_t *pool)
{
	const json_t *env = json_at(books->world, "env");
	const json_t *learned = world_get(books->world, BOX_LEARNED, json_name(pool));

	if (json_is_true(json_at(env, "learns")))
		return !str_eq(json_string_value(learned), json_uid(pool));
	return json_is_true(json_at(env, "withoutLeader")) && !ledger_is_counted(pool);
}

struct ledger *books_open(struct books *books, const char *pool, struct err *err)
{
	struct ledger *ledger = map_get(&books->ledgers, pool);
	const json_t *object;

	assert(pool);
	if (ledger)
		return ledger;
	object = world_get(books->world, KIND_IP_POOL, pool);
	if (!object) {
		err_set(err, ERR_INVALID, "PoolNotFound", "pool %.64s does not exist", pool);
		return NULL;
	}
	if (check_written(books, pool, err) < 0 || check_pace(books, pool, err) < 0)
		return NULL;
	ledger = mem_new(struct ledger);
	if (ledger_open(object, world_kind(books->world, KIND_RESERVED_IP),
			world_env(books->world, "now"), ledger, err) < 0) {
		free(ledger);
		return NULL;
	}
	ledger->is_unsure = is_unsure(books, object);
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

static struct ip_pool_index *index_of(struct books *books)
{
	const char *name;
	json_t *pool;

	if (books->index)
		return books->index;
	books->index = ip_pool_index_new();
	json_each (world_kind(books->world, KIND_IP_POOL), name, pool)
		ip_pool_index_put(books->index, pool);
	return books->index;
}

/* A world with the pool and those that may overlap it. Returns new. */
static json_t *neighbourhood(struct books *books, const json_t *pool)
{
	struct neighbours n = {books, json_object()};

	add_neighbour(&n, json_name(pool));
	ip_pool_index_find(index_of(books), pool, add_neighbour, &n);
	return n.world;
}

static void add_records(struct ip_set *set, const json_t *pool, enum ip_family family)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), ""), *address;
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	json_t *record;

	json_each (json_is_object(records) ? records : NULL, address, record) {
		struct ip_range range;

		if (ip_range_parse(address, family, &range, NULL) == 0)
			ip_set_add(set, range);
	}
}

/* Users choose how often: each pool is read once. */
static const struct account *account_of(struct books *books, const json_t *pool)
{
	struct account *account = map_get(&books->accounts, json_name(pool));

	if (account)
		return account;
	account = mem_new(struct account);
	if (ip_pool_read(pool, &account->spec, NULL))
		add_records(&account->records, pool, account->spec.subnet.family);
	ip_set_settle(&account->records);
	map_set(&books->accounts, json_name(pool), account);
	return account;
}

/* The pool that accounts for an address. */
struct owner {
	struct books *books;
	const char *named;
	enum ip_family family;
	ip_number address;
	const json_t *found; /* NULL: none */
	int rank;            /* of what was found */
};

/* A record is somebody's already; then the pool's own name counts, then its age. */
static void find_owner(void *arg, const char *name)
{
	struct owner *owner = arg;
	const json_t *pool = world_get(owner->books->world, KIND_IP_POOL, name);
	const struct account *account = pool ? account_of(owner->books, pool) : NULL;
	int rank;

	if (!account || account->spec.subnet.family != owner->family)
		return;
	if (ip_set_has(&account->records, owner->address))
		rank = 4;
	else if (ip_set_has(&account->spec.usable, owner->address))
		rank = 2;
	else
		return;
	rank += str_eq(name, owner->named);
	if (rank > owner->rank || (rank == owner->rank && object_precedes(pool, owner->found))) {
		owner->found = pool;
		owner->rank = rank;
	}
}

const char *books_pool_of(struct books *books, const char *named, enum ip_family family,
			  const char *address)
{
	struct owner owner = {.books = books, .named = named, .family = family};

	if (ip_parse(address, family, &owner.address, NULL) < 0)
		return named;
	find_owner(&owner, named);
	/* No other one comes before its own record. */
	if (owner.rank < 5)
		ip_pool_index_find_address(index_of(books), family, address, find_owner, &owner);
	return owner.found ? json_name(owner.found) : named;
}

/* What the rules say of a pool among these. */
static void judge_among(const json_t *world, const json_t *pool, struct err *ret)
{
	auto_problems struct problems problems = {0}, warnings = {0};
	auto_free char *text = NULL;

	ip_pool_judge(world, pool, &problems, &warnings);
	if (!problems.total)
		return;
	text = problems_text(&problems);
	(void)err_set(ret, ERR_INVALID, problems_reason(&problems), "pool %s: %s", json_name(pool),
		      text);
}

static void add_nodes(struct books *books, const struct ledger *ledger, struct ip_set *ret)
{
	bool is_v6 = ledger->family == IP_V6;
	struct ip_set *nodes = &books->nodes[is_v6];

	if (!books->has_nodes[is_v6])
		ip_pool_add_nodes(world_kind(books->world, KIND_NODE), ledger->family, nodes);
	books->has_nodes[is_v6] = true;
	for (size_t i = 0; i < nodes->len; i++)
		if (ip_range_overlaps(nodes->items[i], ledger->addresses.subnet.range))
			ip_set_add(ret, nodes->items[i]);
}

static struct verdict *judge_pool(struct books *books, struct ledger *ledger)
{
	struct verdict *verdict = mem_new(struct verdict);
	auto_ip_set struct ip_set taken = {0};
	const char *name;
	json_t *other;

	verdict->neighbours = neighbourhood(books, ledger->pool);
	judge_among(verdict->neighbours, ledger->pool, &verdict->err);
	if (verdict->err.class != ERR_NONE)
		judge_among(NULL, ledger->pool, &verdict->alone);
	else if (json_is_true(json_at(books->world, "env", "withoutLeader")) &&
		 !ip_pool_is_judged(ledger->pool) &&
		 json_object_size(world_kind(verdict->neighbours, KIND_IP_POOL)) > 1)
		(void)err_set(&verdict->err, ERR_TRANSIENT, "PoolNotJudged",
			      "pool %s is new or was changed, and its subnet overlaps another "
			      "pool's: it gives addresses once an operator leads that has "
			      "compared them",
			      json_name(ledger->pool));

	/*
	 * A pool that became older by an edit, or was made in the same second, may have given them
	 * away.
	 */
	json_each (world_kind(verdict->neighbours, KIND_IP_POOL), name, other)
		if (!str_eq(name, json_name(ledger->pool)))
			add_records(&taken, other, ledger->family);
	add_nodes(books, ledger, &taken);
	ip_set_settle(&taken);
	ledger_keep_out(ledger, &taken);
	return verdict;
}

static struct verdict *verdict_of(struct books *books, struct ledger *ledger)
{
	const char *name = json_name(ledger->pool);
	struct verdict *verdict = map_get(&books->verdicts, name);

	if (!verdict) {
		verdict = judge_pool(books, ledger);
		map_set(&books->verdicts, name, verdict);
	}
	return verdict;
}

static int answer_with(const struct err *verdict, struct err *err)
{
	if (verdict->class == ERR_NONE)
		return 0;
	if (err)
		*err = *verdict;
	return -1;
}

int books_check_learned(const struct ledger *ledger, struct err *err)
{
	assert(ledger->pool);
	if (!ledger->is_unsure)
		return 0;
	return err_set(err, ERR_TRANSIENT, "PoolNotLearned",
		       "pool %s is new, or its status was reset: the operator's leader looks first "
		       "at what pods have of it",
		       json_name(ledger->pool));
}

int books_may_take(struct books *books, struct ledger *ledger, struct err *err)
{
	struct verdict *verdict;

	assert(ledger->pool && ledger->records);
	if (books_check_learned(ledger, err) < 0)
		return -1;
	verdict = verdict_of(books, ledger);
	if (!verdict->is_opened) {
		auto_ip_set struct ip_set taken = {0};
		const char *name;
		json_t *other;

		/* Of another pool that is unsure all addresses may be in use. */
		json_each (world_kind(verdict->neighbours, KIND_IP_POOL), name, other) {
			auto_ip_pool struct ip_pool theirs = {0};

			if (str_eq(name, json_name(ledger->pool)) || !is_unsure(books, other) ||
			    !ip_pool_read(other, &theirs, NULL) ||
			    theirs.subnet.family != ledger->family)
				continue;
			for (size_t i = 0; i < theirs.usable.len; i++)
				ip_set_add(&taken, theirs.usable.items[i]);
		}
		ip_set_settle(&taken);
		ledger_keep_out(ledger, &taken);
	}
	verdict->is_opened = true;
	return answer_with(&verdict->err, err);
}

int books_may_record(struct books *books, struct ledger *ledger, struct err *err)
{
	assert(ledger->pool && ledger->records);
	return answer_with(&verdict_of(books, ledger)->alone, err);
}

/* ---- pace ------------------------------------------------------------------------------------ */

int64_t books_paced_ms(struct books *books)
{
	int64_t paced_ms = books->paced_ms;

	books->paced_ms = -1;
	return paced_ms;
}

bool books_is_paced(const struct books *books)
{
	return books->paced_ms >= 0;
}

int64_t books_pause_ms(const struct books *books, const char *pool, const char *text,
		       int64_t clock_ms)
{
	const struct ledger *ledger = map_get(&books->ledgers, pool);
	size_t now, before;

	assert(ledger && clock_ms >= 0);
	now = json_object_size(ledger->records);
	before = ledger->opened_with;
	if (!text || strlen(text) <= LEDGER_UNPACED_BYTES ||
	    (now > before ? now - before : before - now) >= LEDGER_BATCH ||
	    str_eq(text, json_str_at(ledger->pool, "status", "allocatedIPs")))
		return 0;
	return LEDGER_PAUSE_MS - clock_ms % LEDGER_PAUSE_MS;
}

/* ---- changes for a pod ----------------------------------------------------------------------- */

void books_begin(struct books *books)
{
	assert(!books->is_begun && books->notes_len == 0);
	books->is_begun = true;
}

void books_note(struct books *books, struct ledger *ledger, const char *address)
{
	struct note *note;

	assert(books->is_begun && address && strlen(address) < IP_TEXT_SIZE);
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
	assert(pool && uid);
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

	assert(!books->is_begun);
	while (map_next(&books->ledgers, &i, &name, &value))
		if (((const struct ledger *)value)->has_changed)
			names[n++] = name;
	qsort(names, n, sizeof(*names), by_name);
	for (i = 0; i < n; i++)
		plan_status(plan, KIND_IP_POOL, names[i],
			    ledger_status(map_get(&books->ledgers, names[i])));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Items in a map, linked into a lane while they wait, and into a binary heap by time while they are
 * delayed. An item exists as long as there is something to remember about its key.
 */
#include "lib/kube/queue.h"

#include <assert.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct item {
	TAILQ_ENTRY(item) link;
	char *key;
	enum {
		ITEM_IDLE,
		ITEM_WAITING,
		ITEM_WORKING,
		ITEM_DIRTY, /* in work, and to be looked at again */
	} state;
	enum queue_lane lane; /* waiting or dirty: where it stands or will stand */
	uint16_t failures;
	size_t heap_at; /* 1-based; 0: not delayed */
	int64_t due_ms;
	int64_t added_us; /* waiting or dirty: since when */
	int64_t taken_us; /* working or dirty: since when */
};

TAILQ_HEAD(item_list, item);

struct queue {
	struct map items;
	struct item_list lanes[2];
	size_t waiting[2];
	struct item_list at_work; /* the one that was taken first goes first */
	size_t working;
	struct item **heap; /* 1-based */
	size_t heap_len, heap_cap;
	struct timer *timer;
	struct deferred *notify;
	struct {
		struct metrics *registry; /* NULL: no metrics */
		char *name;
		struct metric *adds, *waited, *worked, *retries, *unfinished, *longest;
	} metrics;
};

static void on_due(void *arg);
static void collect(void *arg);

static void item_free(void *ptr)
{
	struct item *item = ptr;

	mem_free(item->key);
	mem_free(item);
}

struct queue *queue_new(struct loop *loop, loop_fn *ready, void *arg)
{
	struct queue *queue = mem_new(struct queue);

	assert(loop && ready);
	queue->items.free_value = item_free;
	TAILQ_INIT(&queue->lanes[QUEUE_MAIN]);
	TAILQ_INIT(&queue->lanes[QUEUE_LATER]);
	TAILQ_INIT(&queue->at_work);
	queue->timer = timer_new(loop, on_due, queue);
	queue->notify = deferred_new(loop, ready, arg);
	return queue;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	if (queue->metrics.registry)
		metrics_off_collect(queue->metrics.registry, collect, queue);
	mem_free(queue->metrics.name);
	map_done(&queue->items);
	mem_free(queue->heap);
	timer_free(queue->timer);
	deferred_free(queue->notify);
	mem_free(queue);
}

static double seconds_since(int64_t then_us)
{
	return (double)(clock_us() - then_us) / 1e6;
}

static void collect(void *arg)
{
	const struct queue *queue = arg;
	const struct item *first = TAILQ_FIRST(&queue->at_work), *item = NULL;
	double sum = 0;

	TAILQ_FOREACH(item, &queue->at_work, link)
	sum += seconds_since(item->taken_us);
	metric_set(queue->metrics.unfinished, sum, queue->metrics.name);
	metric_set(queue->metrics.longest, first ? seconds_since(first->taken_us) : 0,
		   queue->metrics.name);
}

void queue_measure(struct queue *queue, struct metrics *metrics, const char *name)
{
	assert(!queue->metrics.registry);
	if (!metrics)
		return;
	queue->metrics.registry = metrics;
	queue->metrics.name = str_dup(name);
	queue->metrics.adds =
		metric_counter(metrics, "workqueue_adds_total", "Keys that were added.", "name");
	queue->metrics.waited =
		metric_histogram(metrics, "workqueue_queue_duration_seconds",
				 "From adding a key to taking it.", "name", METRIC_SECONDS);
	queue->metrics.worked = metric_histogram(
		metrics, "workqueue_work_duration_seconds",
		"From taking a key to the answer to its last write.", "name", METRIC_SECONDS);
	queue->metrics.retries =
		metric_counter(metrics, "workqueue_retries_total",
			       "Keys that failed and wait for another attempt.", "name");
	queue->metrics.unfinished =
		metric_gauge(metrics, "workqueue_unfinished_work_seconds",
			     "How long the keys in work have been in work, all added up.", "name");
	queue->metrics.longest =
		metric_gauge(metrics, "workqueue_longest_running_processor_seconds",
			     "How long the key has been in work that was taken first.", "name");
	metrics_on_collect(metrics, collect, queue);
}

void queue_restart_waits(struct queue *queue)
{
	struct item *item = NULL;
	int64_t now_us = clock_us();

	for (size_t lane = 0; lane < ARRAY_LEN(queue->lanes); lane++)
		TAILQ_FOREACH(item, &queue->lanes[lane], link)
	item->added_us = now_us;
}

static struct item *item_of(struct queue *queue, const char *key)
{
	struct item *item = map_get(&queue->items, key);

	assert(key);
	if (!item) {
		item = mem_new(struct item);
		item->key = str_dup(key);
		map_set(&queue->items, key, item);
	}
	return item;
}

/* ---- times ----------------------------------------------------------------------------------- */

static void heap_place(struct queue *queue, size_t at, struct item *item)
{
	queue->heap[at] = item;
	item->heap_at = at;
}

static void heap_up(struct queue *queue, size_t at)
{
	struct item *item = queue->heap[at];

	for (; at > 1 && queue->heap[at / 2]->due_ms > item->due_ms; at /= 2)
		heap_place(queue, at, queue->heap[at / 2]);
	heap_place(queue, at, item);
}

static void heap_down(struct queue *queue, size_t at)
{
	struct item *item = queue->heap[at];

	for (size_t child; (child = at * 2) <= queue->heap_len; at = child) {
		if (child < queue->heap_len &&
		    queue->heap[child + 1]->due_ms < queue->heap[child]->due_ms)
			child++;
		if (queue->heap[child]->due_ms >= item->due_ms)
			break;
		heap_place(queue, at, queue->heap[child]);
	}
	heap_place(queue, at, item);
}

static void heap_remove(struct queue *queue, struct item *item)
{
	size_t at = item->heap_at;
	struct item *last = queue->heap[queue->heap_len--];

	assert(at >= 1 && at <= queue->heap_len + 1 && queue->heap[at] == item);
	item->heap_at = 0;
	if (last == item)
		return;
	queue->heap[at] = last;
	last->heap_at = at;
	heap_up(queue, at);
	heap_down(queue, last->heap_at);
}

static void set_timer(struct queue *queue)
{
	if (queue->heap_len == 0)
		timer_stop(queue->timer);
	else
		timer_start(queue->timer, queue->heap[1]->due_ms - clock_ms());
}

static void delay_item(struct queue *queue, struct item *item, int64_t after_ms)
{
	int64_t due = clock_ms() + (after_ms > 0 ? after_ms : 0);

	if (item->heap_at && item->due_ms <= due)
		return;
	if (item->heap_at)
		heap_remove(queue, item);
	item->due_ms = due;
	if (queue->heap_len + 2 > queue->heap_cap) {
		queue->heap_cap = queue->heap_cap ? queue->heap_cap * 2 : 16;
		queue->heap = mem_realloc(queue->heap, queue->heap_cap * sizeof(*queue->heap));
	}
	queue->heap[++queue->heap_len] = item;
	item->heap_at = queue->heap_len;
	heap_up(queue, queue->heap_len);
	set_timer(queue);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void enter_lane(struct queue *queue, struct item *item, enum queue_lane lane)
{
	assert(item->state == ITEM_IDLE && lane < ARRAY_LEN(queue->lanes));
	item->state = ITEM_WAITING;
	item->lane = lane;
	TAILQ_INSERT_TAIL(&queue->lanes[lane], item, link);
	queue->waiting[lane]++;
	deferred_run(queue->notify);
}

static void leave_lane(struct queue *queue, struct item *item)
{
	assert(item->state == ITEM_WAITING && queue->waiting[item->lane] > 0);
	TAILQ_REMOVE(&queue->lanes[item->lane], item, link);
	queue->waiting[item->lane]--;
	item->state = ITEM_IDLE;
}

/* A key is added that was not queued before. */
static void note_added(struct queue *queue, struct item *item)
{
	item->added_us = clock_us();
	metric_add(queue->metrics.adds, 1, queue->metrics.name);
}

static void add_item(struct queue *queue, struct item *item, enum queue_lane lane)
{
	switch (item->state) {
	case ITEM_IDLE:
		note_added(queue, item);
		enter_lane(queue, item, lane);
		break;
	case ITEM_WAITING:
		if (lane < item->lane) {
			leave_lane(queue, item);
			enter_lane(queue, item, lane);
		}
		break;
	case ITEM_WORKING:
		note_added(queue, item);
		item->state = ITEM_DIRTY;
		item->lane = lane;
		break;
	case ITEM_DIRTY:
		if (lane < item->lane)
			item->lane = lane;
		break;
	}
}

void queue_add(struct queue *queue, const char *key, enum queue_lane lane)
{
	add_item(queue, item_of(queue, key), lane);
}

void queue_add_after(struct queue *queue, const char *key, int64_t after_ms)
{
	delay_item(queue, item_of(queue, key), after_ms);
}

static void on_due(void *arg)
{
	struct queue *queue = arg;
	int64_t now = clock_ms();

	while (queue->heap_len > 0 && queue->heap[1]->due_ms <= now) {
		struct item *item = queue->heap[1];

		heap_remove(queue, item);
		add_item(queue, item, QUEUE_MAIN);
	}
	set_timer(queue);
}

const char *queue_take_from(struct queue *queue, enum queue_lane lane)
{
	struct item *item = TAILQ_FIRST(&queue->lanes[lane]);

	assert(lane < ARRAY_LEN(queue->lanes));
	if (!item)
		return NULL;
	leave_lane(queue, item);
	item->state = ITEM_WORKING;
	item->taken_us = clock_us();
	TAILQ_INSERT_TAIL(&queue->at_work, item, link);
	queue->working++;
	metric_observe(queue->metrics.waited, (double)(item->taken_us - item->added_us) / 1e6,
		       queue->metrics.name);
	return item->key;
}

const char *queue_take(struct queue *queue, enum queue_lane *ret_lane)
{
	enum queue_lane lane = queue->waiting[QUEUE_MAIN] ? QUEUE_MAIN : QUEUE_LATER;

	if (ret_lane)
		*ret_lane = lane;
	return queue_take_from(queue, lane);
}

unsigned int queue_failures(const struct queue *queue, const char *key)
{
	const struct item *item = map_get(&queue->items, key);

	return item ? item->failures : 0;
}

/*
 * Doubling from QUEUE_RETRY_FIRST_MS, half of it jitter, so that keys which failed together do not
 * return together.
 */
static int64_t pause_ms(uint16_t failures, int64_t least_ms)
{
	int64_t pause = QUEUE_RETRY_FIRST_MS;

	for (uint16_t i = 1; i < failures && pause < QUEUE_RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > QUEUE_RETRY_MAX_MS)
		pause = QUEUE_RETRY_MAX_MS;
	pause = pause / 2 + (int64_t)clock_jitter((uint64_t)pause / 2 + 1);
	return pause < least_ms ? least_ms + (int64_t)clock_jitter(QUEUE_RETRY_FIRST_MS) : pause;
}

void queue_done(struct queue *queue, const char *key, const struct err *err)
{
	struct item *item = map_get(&queue->items, key);
	bool dirty = item && item->state == ITEM_DIRTY;

	assert(item && (dirty || item->state == ITEM_WORKING));
	assert(queue->working > 0);
	TAILQ_REMOVE(&queue->at_work, item, link);
	queue->working--;
	item->state = ITEM_IDLE;
	metric_observe(queue->metrics.worked, seconds_since(item->taken_us), queue->metrics.name);
	if (!err) {
		item->failures = 0;
	} else {
		metric_add(queue->metrics.retries, 1, queue->metrics.name);
		item->failures = (uint16_t)(item->failures + (item->failures < UINT16_MAX));
		delay_item(queue, item, pause_ms(item->failures, err->retry_after_ms));
	}
	if (dirty)
		enter_lane(queue, item, item->lane);
	if (item->state == ITEM_IDLE && item->heap_at == 0 && item->failures == 0)
		map_del(&queue->items, item->key);
	deferred_run(queue->notify);
}

size_t queue_waiting(const struct queue *queue, enum queue_lane lane)
{
	assert(lane < ARRAY_LEN(queue->lanes));
	return queue->waiting[lane];
}

size_t queue_working(const struct queue *queue)
{
	return queue->working;
}

size_t queue_delayed(const struct queue *queue)
{
	return queue->heap_len;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of all pools, with their ledgers: up to 1.3 MB each, read from etcd. So there is one at a
 * time, at most one in a few seconds, and it answers all who asked before it began.
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"

struct pools_question {
	TAILQ_ENTRY(pools_question) link;
	struct addresses *addresses;
	pools_fn *done;
	void *arg;
	bool is_listed; /* the list that is read now answers it */
};

struct pools_list {
	struct addresses *addresses;
	struct kube_call *call;
	json_t *pools;
	int page;
};

static void read_page(struct pools_list *list, const char *after);

static void list_when_due(struct addresses *addresses)
{
	int64_t wait = addresses->pools.listed_ms
			       ? addresses->pools.listed_ms + ADDRESSES_LIST_POOLS_MS - clock_ms()
			       : 0;

	if (addresses->pools.list || timer_is_active(addresses->pools.due))
		return;
	timer_start(addresses->pools.due,
		    wait > 0 ? wait + (int64_t)clock_jitter(ADDRESSES_LIST_POOLS_MS / 10) : 0);
}

static void list_free(struct pools_list *list)
{
	kube_call_cancel(list->call);
	json_decref(list->pools);
	mem_free(list);
}

static void list_end(struct pools_list *list, const struct err *err)
{
	struct addresses *addresses = list->addresses;
	json_auto_t *pools = json_incref(list->pools);
	struct pools_question *question;

	assert(addresses->pools.list == list && !list->call);
	addresses->pools.list = NULL;
	addresses->pools.listed_ms = clock_ms();
	list_free(list);
	/* Callbacks ask and cancel: begin at the front after each. */
	question = TAILQ_FIRST(&addresses->pools.queue);
	while (question) {
		struct pools_question answered = *question;

		if (!answered.is_listed) {
			question = TAILQ_NEXT(question, link);
			continue;
		}
		TAILQ_REMOVE(&addresses->pools.queue, question, link);
		mem_free(question);
		answered.done(answered.arg, err ? NULL : pools, err);
		question = TAILQ_FIRST(&addresses->pools.queue);
	}
	if (!TAILQ_EMPTY(&addresses->pools.queue))
		list_when_due(addresses);
}

static void on_page(void *arg, json_t *object, const struct err *err)
{
	struct pools_list *list = arg;
	const char *next = json_str_at(object, "metadata", "continue");

	list->call = NULL;
	/* Also when the list has become too old to be continued (410). */
	if (err && list->page > ADDRESSES_SMALL_PAGE && kube_err_is(err, "BodyTooLarge")) {
		list->page = ADDRESSES_SMALL_PAGE;
		json_array_clear(list->pools);
		read_page(list, NULL);
		return;
	}
	if (err) {
		list_end(list, err);
		return;
	}
	json_array_extend(list->pools, json_at(object, "items"));
	if (str_empty(next))
		list_end(list, NULL);
	else
		read_page(list, next);
}

static void read_page(struct pools_list *list, const char *after)
{
	auto_strbuf struct strbuf query = {0};

	assert(!list->call);
	strbuf_addf(&query, "limit=%d", list->page);
	if (after) {
		strbuf_adds(&query, "&continue=");
		kube_path_encode(&query, after);
	}
	list->call = kube_list(list->addresses->config.client, &addresses_pool, NULL,
			       strbuf_str(&query), on_page, list);
}

void pools_list_now(void *arg)
{
	struct addresses *addresses = arg;
	struct pools_question *question;

	if (addresses->pools.list || TAILQ_EMPTY(&addresses->pools.queue))
		return;
	TAILQ_FOREACH(question, &addresses->pools.queue, link)
	question->is_listed = true;
	addresses->pools.list = mem_new(struct pools_list);
	addresses->pools.list->addresses = addresses;
	addresses->pools.list->pools = json_array();
	addresses->pools.list->page = ADDRESSES_PAGE;
	read_page(addresses->pools.list, NULL);
}

struct pools_question *pools_ask(struct addresses *addresses, pools_fn *done, void *arg)
{
	struct pools_question *question = mem_new(struct pools_question);

	assert(done);
	question->addresses = addresses;
	question->done = done;
	question->arg = arg;
	TAILQ_INSERT_TAIL(&addresses->pools.queue, question, link);
	list_when_due(addresses);
	return question;
}

void pools_cancel(struct pools_question *question)
{
	if (!question)
		return;
	TAILQ_REMOVE(&question->addresses->pools.queue, question, link);
	mem_free(question);
}

void pools_wrote(json_t *pools, json_t *pool)
{
	json_t *other;
	size_t i;

	json_array_foreach (pools, i, other)
		if (str_eq(json_name(other), json_name(pool)))
			json_array_set(pools, i, pool);
}

void pools_free_all(struct addresses *addresses)
{
	while (!TAILQ_EMPTY(&addresses->pools.queue))
		pools_cancel(TAILQ_FIRST(&addresses->pools.queue));
	if (addresses->pools.list)
		list_free(take_ptr(addresses->pools.list));
}

/*
 * Endpoints of pods of which more NICs are about to ask: one read serves all that do within a
 * second. It ends with the first word about the pod that may change what was read.
 *
 *	addresses->recent: {UID of the pod: {"object": the endpoint, "keptMs": clock_ms}}
 *	addresses->said: {UID: clock_ms of the last word}, for longer than a read takes
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/addresses/addresses_internal.h"

/* A read before anybody has asked. */
struct foresight {
	TAILQ_ENTRY(foresight) link;
	struct addresses *addresses;
	char *uid;
	int64_t begun_ms;
	struct kube_call *call;
};

static void forget_in_time(struct addresses *addresses)
{
	if (!timer_is_active(addresses->recent_over))
		timer_start(addresses->recent_over, ADDRESSES_RECENT_MS);
}

void recent_keep(struct addresses *addresses, const char *uid, const json_t *endpoint,
		 int64_t begun_ms)
{
	const json_t *said = json_object_get(addresses->said, uid);
	json_t *entry;

	if (said && json_integer_value(said) >= begun_ms)
		return;
	entry = json_object();
	json_put(entry, "object", json_incref((json_t *)endpoint));
	json_put_int(entry, "keptMs", clock_ms());
	json_put(addresses->recent, uid, entry);
	forget_in_time(addresses);
}

const json_t *recent_find(const struct addresses *addresses, const char *uid)
{
	const json_t *entry = json_object_get(addresses->recent, uid);
	int64_t age_ms = clock_ms() - json_integer_value(json_at(entry, "keptMs"));

	return entry && age_ms < ADDRESSES_RECENT_MS ? json_at(entry, "object") : NULL;
}

void recent_forget(struct addresses *addresses, const char *uid)
{
	(void)json_object_del(addresses->recent, uid);
	json_put_int(addresses->said, uid, clock_ms());
	forget_in_time(addresses);
}

void recent_forget_old(void *arg)
{
	struct addresses *addresses = arg;
	int64_t now_ms = clock_ms();
	const char *uid;
	json_t *entry;
	void *next;

	json_object_foreach_safe(addresses->recent, next, uid, entry)
	{
		if (!recent_find(addresses, uid))
			(void)json_object_del(addresses->recent, uid);
	}
	json_object_foreach_safe(addresses->said, next, uid, entry)
	{
		if (now_ms - json_integer_value(entry) >= ADDRESSES_SAID_MS)
			(void)json_object_del(addresses->said, uid);
	}
	if (json_object_size(addresses->recent) + json_object_size(addresses->said) > 0)
		forget_in_time(addresses);
}

/* ---- before anybody asks --------------------------------------------------------------------- */

static void foresight_free(struct foresight *foresight)
{
	TAILQ_REMOVE(&foresight->addresses->foresights, foresight, link);
	kube_call_cancel(foresight->call);
	free(foresight->uid);
	mem_free(foresight);
}

/* Whether it has what is needed, whoever asks finds out. */
static void on_foreseen(void *arg, json_t *endpoint, const struct err *err)
{
	struct foresight *foresight = arg;

	foresight->call = NULL;
	if (endpoint)
		recent_keep(foresight->addresses, foresight->uid, endpoint, foresight->begun_ms);
	foresight_free(foresight);
}

void addresses_foresee(struct addresses *addresses, const char *ns, const char *name,
		       const char *uid)
{
	struct foresight *foresight = mem_new(struct foresight);

	assert(ns && name && !str_empty(uid));
	foresight->addresses = addresses;
	foresight->uid = str_dup(uid);
	foresight->begun_ms = clock_ms();
	TAILQ_INSERT_TAIL(&addresses->foresights, foresight, link);
	foresight->call = kube_get(addresses->config.client, &addresses_endpoint, ns, name, NULL,
				   on_foreseen, foresight);
}

void recent_free_all(struct addresses *addresses)
{
	while (!TAILQ_EMPTY(&addresses->foresights))
		foresight_free(TAILQ_FIRST(&addresses->foresights));
	timer_free(addresses->recent_over);
	json_decref(addresses->recent);
	json_decref(addresses->said);
}

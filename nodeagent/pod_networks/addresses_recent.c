// SPDX-License-Identifier: Apache-2.0
/*
 * Endpoints of pods whose NICs are about to ask: one read serves all that do within a second of the
 * first, or of the read. It ends with the first word about the pod that may change what was read.
 *
 *	addresses->recent: {UID of the pod: {"object": the endpoint, "keptMs", "untilMs"}}
 *	addresses->said: {UID: clock_ms of the last word}, for longer than a read takes
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/addresses_internal.h"

static void forget_in_time(struct addresses *addresses)
{
	if (!timer_is_active(addresses->recent_over))
		timer_start(addresses->recent_over, ADDRESSES_RECENT_MS);
}

void recent_keep(struct addresses *addresses, const char *uid, const json_t *endpoint,
		 int64_t begun_ms, int64_t for_ms)
{
	const json_t *said = json_object_get(addresses->said, uid);
	json_t *entry;

	assert(endpoint && begun_ms <= clock_ms() && for_ms > 0);
	if (said && json_integer_value(said) >= begun_ms)
		return;
	entry = json_object();
	json_put(entry, "object", json_incref((json_t *)endpoint));
	json_put_int(entry, "keptMs", clock_ms());
	json_put_int(entry, "untilMs", clock_ms() + for_ms);
	json_put(addresses->recent, uid, entry);
	forget_in_time(addresses);
}

const json_t *recent_find(const struct addresses *addresses, const char *uid, bool is_sure)
{
	const json_t *entry = json_object_get(addresses->recent, uid);
	int64_t until_ms = json_integer_value(json_at(entry, "untilMs"));
	int64_t recent_ms = json_integer_value(json_at(entry, "keptMs")) + ADDRESSES_RECENT_MS;

	if (!is_sure && recent_ms < until_ms)
		until_ms = recent_ms;
	return clock_ms() < until_ms ? json_at(entry, "object") : NULL;
}

void recent_used(struct addresses *addresses, const char *uid)
{
	json_t *entry = json_object_get(addresses->recent, uid);
	int64_t until_ms = clock_ms() + ADDRESSES_RECENT_MS;

	if (until_ms < json_integer_value(json_at(entry, "untilMs")))
		json_put_int(entry, "untilMs", until_ms);
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
		if (!recent_find(addresses, uid, true))
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

void recent_free_all(struct addresses *addresses)
{
	timer_free(addresses->recent_over);
	json_decref(addresses->recent);
	json_decref(addresses->said);
}

/*
 * Endpoints of pods that have more NICs than have asked: one read serves all that ask within a
 * second. It ends with the first word about the pod that may change what was read.
 *
 *	addresses->recent: {UID of the pod: {"object": the endpoint, "readMs": clock_ms}}
 */
#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/addresses/addresses_internal.h"

void recent_keep(struct addresses *addresses, const char *uid, const json_t *endpoint)
{
	json_t *entry = json_object();

	json_put(entry, "object", json_incref((json_t *)endpoint));
	json_put_int(entry, "readMs", clock_ms());
	json_put(addresses->recent, uid, entry);
	if (!timer_is_active(addresses->recent_over))
		timer_start(addresses->recent_over, ADDRESSES_RECENT_MS);
}

const json_t *recent_find(const struct addresses *addresses, const char *uid)
{
	const json_t *entry = json_object_get(addresses->recent, uid);
	int64_t age_ms = clock_ms() - json_integer_value(json_at(entry, "readMs"));

	return entry && age_ms < ADDRESSES_RECENT_MS ? json_at(entry, "object") : NULL;
}

void recent_forget(struct addresses *addresses, const char *uid)
{
	(void)json_object_del(addresses->recent, uid);
}

void recent_forget_old(void *arg)
{
	struct addresses *addresses = arg;
	const char *uid;
	json_t *entry;
	void *next;

	json_object_foreach_safe(addresses->recent, next, uid, entry)
	{
		if (!recent_find(addresses, uid))
			(void)json_object_del(addresses->recent, uid);
	}
	if (json_object_size(addresses->recent) > 0)
		timer_start(addresses->recent_over, ADDRESSES_RECENT_MS);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The applier asks before each patch and reports each answer. The last patch of an object is kept
 * as a hash: the same one again counts as a repeat, another one starts again.
 */
#include "operator/writer/revert_backoff.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

struct rewrite {
	uint64_t hash;
	int64_t sent_ms;
	unsigned int times; /* in a row */
	char *other;        /* NULL: not known */
};

struct revert_backoff {
	struct map objects; /* "KIND KEY" → struct rewrite */
};

static void rewrite_free(void *ptr)
{
	struct rewrite *rewrite = ptr;

	mem_free(rewrite->other);
	mem_free(rewrite);
}

struct revert_backoff *revert_backoff_new(void)
{
	struct revert_backoff *rewrites = mem_new(struct revert_backoff);

	rewrites->objects.free_value = rewrite_free;
	return rewrites;
}

void revert_backoff_free(struct revert_backoff *rewrites)
{
	if (!rewrites)
		return;
	map_done(&rewrites->objects);
	mem_free(rewrites);
}

static int64_t pause_after(unsigned int times)
{
	int64_t pause = REVERT_BACKOFF_PAUSE_FIRST_MS;

	if (times < REVERT_BACKOFF_FREE)
		return 0;
	for (unsigned int i = REVERT_BACKOFF_FREE; i < times && pause < REVERT_BACKOFF_PAUSE_MAX_MS;
	     i++)
		pause *= 2;
	return pause < REVERT_BACKOFF_PAUSE_MAX_MS ? pause : REVERT_BACKOFF_PAUSE_MAX_MS;
}

/*
 * A patch with the time of its decision, as conditions have it, is never the same as text. The same
 * decision has the same order of members.
 */
static uint64_t hash_without_times(const json_t *patch)
{
	json_auto_t *copy = json_copy((json_t *)patch);
	auto_strbuf struct strbuf text = {0};
	json_t *condition;
	size_t i;

	json_put(copy, "metadata", json_copy(json_at(patch, "metadata")));
	json_put(copy, "status", json_deep_copy(json_at(patch, "status")));
	json_object_del(json_at(copy, "metadata"), "resourceVersion");
	json_array_foreach (json_at(copy, "status", "conditions"), i, condition) {
		json_object_del(condition, "lastHeartbeatTime");
		json_object_del(condition, "lastTransitionTime");
	}
	json_write(copy, &text);
	return str_hash(text.data, text.len);
}

int64_t revert_backoff_pause_ms(struct revert_backoff *rewrites, const char *kind, const char *key,
				const json_t *patch, int64_t now_ms)
{
	auto_free char *name = str_printf("%s %s", kind, key);
	struct rewrite *rewrite = map_get(&rewrites->objects, name);
	int64_t due_ms = 0;
	uint64_t hash;

	assert(json_is_object(patch));
	hash = hash_without_times(patch);
	if (!rewrite) {
		if (rewrites->objects.len >= REVERT_BACKOFF_MAX)
			map_done(&rewrites->objects);
		rewrite = mem_new(struct rewrite);
		map_set(&rewrites->objects, name, rewrite);
	}
	if (rewrite->hash != hash || now_ms - rewrite->sent_ms >= REVERT_BACKOFF_FORGET_MS)
		*rewrite = (struct rewrite){.hash = hash, .other = rewrite->other};
	due_ms = rewrite->sent_ms + pause_after(rewrite->times);
	if (rewrite->times > 0 && now_ms < due_ms)
		return due_ms - now_ms;
	rewrite->sent_ms = now_ms;
	rewrite->times++;
	return 0;
}

void revert_backoff_answered(struct revert_backoff *rewrites, const char *kind, const char *key,
			     const json_t *answer)
{
	auto_free char *name = str_printf("%s %s", kind, key);
	struct rewrite *rewrite = map_get(&rewrites->objects, name);
	const char *other = NULL, *last = "";
	const json_t *entry = NULL;
	size_t i = 0;

	if (!rewrite)
		return;
	json_array_foreach (json_at(answer, "metadata", "managedFields"), i, entry) {
		const char *manager = json_str_or(json_at(entry, "manager"), "");
		const char *time = json_str_or(json_at(entry, "time"), "");

		/*
		 * RFC 3339 in UTC: the order of texts is that of times. The kubelet writes to the
		 * status of its Node all the time.
		 */
		if (str_eq(manager, OPERATOR_NAME) || strcmp(time, last) < 0 ||
		    str_eq(json_str_at(entry, "subresource"), "status"))
			continue;
		other = manager;
		last = time;
	}
	str_replace(&rewrite->other, str_dup(other));
}

void revert_backoff_refused(struct revert_backoff *rewrites, const char *kind, const char *key)
{
	auto_free char *name = str_printf("%s %s", kind, key);
	struct rewrite *rewrite = map_get(&rewrites->objects, name);

	if (rewrite && rewrite->times > 0)
		rewrite->times--;
}

const char *revert_backoff_other(const struct revert_backoff *rewrites, const char *kind,
				 const char *key)
{
	auto_free char *name = str_printf("%s %s", kind, key);
	const struct rewrite *rewrite = map_get(&rewrites->objects, name);

	return rewrite && rewrite->other ? rewrite->other : "";
}

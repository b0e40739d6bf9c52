// SPDX-License-Identifier: Apache-2.0
/*
 * Two maps: failures with the time before which they are not retried, and how often steps
 * succeeded. agent_reconcile.c notes each outcome here and gives the planner what is refused;
 * agent_schedule.c has the agent look again when the next pause ends.
 */
#include "nodeagent/host_plan/attempts.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct failure {
	json_t *entry; /* of the plan; NULL for what is not a step */
	struct err err;
	int in_a_row;
	int64_t again_ms;
	bool is_mended;  /* not planned any more: all that is left is its pause */
	bool is_put_off; /* waits because the other order of the same step failed after it */
};

struct success {
	int times;
	int64_t first_ms;
};

struct attempts {
	struct map failures;  /* name, or text of the step → struct failure */
	struct map successes; /* text of the step → struct success */
};

static void failure_free(void *value)
{
	struct failure *failure = value;

	json_decref(failure->entry);
	mem_free(failure);
}

struct attempts *attempts_new(void)
{
	struct attempts *attempts = mem_new(struct attempts);

	attempts->failures.free_value = failure_free;
	attempts->successes.free_value = mem_free;
	return attempts;
}

void attempts_free(struct attempts *attempts)
{
	if (!attempts)
		return;
	map_done(&attempts->failures);
	map_done(&attempts->successes);
	mem_free(attempts);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Doubled with each failure in a row after the first, up to the most. */
static int64_t doubled(int64_t first, int64_t most, int in_a_row)
{
	for (int i = 1; i < in_a_row && first < most; i++)
		first *= 2;
	return first < most ? first : most;
}

static int64_t pause_ms(enum err_class class, int in_a_row)
{
	int64_t first = ATTEMPTS_MAX_MS, most = ATTEMPTS_MAX_MS;

	switch (class) {
	case ERR_NONE:
	case ERR_INVALID:
	case ERR_BUG:
		break;
	case ERR_CONFLICT:
		first = 50;
		most = 2000;
		break;
	case ERR_TRANSIENT:
		first = 250;
		most = 30000;
		break;
	case ERR_HOST:
		first = 1000;
		break;
	}
	return doubled(first, most, in_a_row);
}

static int64_t again_ms(const struct failure *failure, int64_t now_ms, int chance)
{
	int64_t pause = pause_ms(failure->err.class, failure->in_a_row);

	if (str_eq(failure->err.reason, "RdmaModeBusy"))
		return INT64_MAX;
	if (str_eq(failure->err.reason, "NotAsAsked") &&
	    str_eq(json_str_at(failure->entry, "step", "step"), "set-nic-setting"))
		pause = ATTEMPTS_ROUNDED_MS;
	return now_ms + pause + pause * chance / 4000;
}

static bool note_failure(struct attempts *attempts, const char *key, const json_t *entry,
			 const struct err *err, int64_t now_ms, int chance)
{
	struct failure *failure = map_get(&attempts->failures, key);
	bool is_news = !failure || !str_eq(failure->err.reason, err->reason) ||
		       !str_eq(failure->err.text, err->text);

	assert(chance >= 0 && chance < 1000);
	if (!failure) {
		failure = mem_new(struct failure);
		failure->entry = json_incref((json_t *)entry);
		map_set(&attempts->failures, key, failure);
	}
	failure->err = *err;
	failure->is_mended = false;
	failure->is_put_off = false;
	failure->in_a_row++;
	failure->again_ms = again_ms(failure, now_ms, chance);
	return is_news;
}

/* set-eswitch before the VFs for the one after them, and the other way round. */
static struct failure *failure_of_other_order(const struct attempts *attempts, const json_t *entry)
{
	json_auto_t *step = json_copy(json_at(entry, "step"));
	auto_free char *key = NULL;

	if (!str_eq(json_str_at(step, "step"), "set-eswitch"))
		return NULL;
	if (json_object_del(step, "afterVfs") < 0)
		json_put_bool(step, "afterVfs", true);
	key = json_text(step);
	return map_get(&attempts->failures, key);
}

bool attempts_step_failed(struct attempts *attempts, const json_t *entry, const struct err *err,
			  int64_t now_ms, int chance)
{
	auto_free char *key = json_text(json_at(entry, "step"));
	struct failure *other = failure_of_other_order(attempts, entry);

	assert(json_is_object(json_at(entry, "step")) && err->class != ERR_NONE);
	/* Once each time: it must have its turn however often this one fails meanwhile. */
	if (other && !other->is_put_off) {
		int64_t pause = ATTEMPTS_OTHER_ORDER * pause_ms(other->err.class, other->in_a_row);

		/*
		 * Both orders were refused, and each needs VFs made or removed after the other. The
		 * one that failed last finds the VFs as it needs them and goes on with its own
		 * pauses; the other waits for long.
		 */
		if (pause > ATTEMPTS_OTHER_ORDER_MAX_MS)
			pause = ATTEMPTS_OTHER_ORDER_MAX_MS;
		if (other->again_ms < now_ms + pause)
			other->again_ms = now_ms + pause;
		other->is_put_off = true;
	}
	return note_failure(attempts, key, entry, err, now_ms, chance);
}

bool attempts_failed(struct attempts *attempts, const char *name, const struct err *err,
		     int64_t now_ms, int chance)
{
	assert(!str_empty(name) && err->class != ERR_NONE);
	return note_failure(attempts, name, NULL, err, now_ms, chance);
}

bool attempts_may_try(const struct attempts *attempts, const char *name, int64_t now_ms)
{
	const struct failure *failure = map_get(&attempts->failures, name);

	assert(!str_empty(name));
	return !failure || now_ms >= failure->again_ms;
}

static struct failure *next_failure(const struct attempts *attempts, size_t *iter,
				    const char **ret_key)
{
	void *value = NULL;

	return map_next(&attempts->failures, iter, ret_key, &value) ? value : NULL;
}

json_t *attempts_refused(const struct attempts *attempts, int64_t now_ms)
{
	json_t *list = json_array();
	const struct failure *failure;
	const char *key;
	size_t i = 0;

	while ((failure = next_failure(attempts, &i, &key)))
		if (failure->entry && now_ms < failure->again_ms)
			json_array_append(list, json_at(failure->entry, "step"));
	return list;
}

bool attempts_has_hung(const struct attempts *attempts, const char *pf)
{
	const struct failure *failure;
	const char *key;
	size_t i = 0;

	while ((failure = next_failure(attempts, &i, &key)))
		if (failure->entry && !failure->is_mended &&
		    str_eq(failure->err.reason, "HostHung") &&
		    str_eq(json_str_at(failure->entry, "pf"), pf))
			return true;
	return false;
}

bool attempts_has_steps(const struct attempts *attempts)
{
	const struct failure *failure;
	const char *key;
	size_t i = 0;

	while ((failure = next_failure(attempts, &i, &key)))
		if (failure->entry)
			return true;
	return false;
}

void attempts_forget(struct attempts *attempts, const char *name)
{
	assert(!str_empty(name));
	map_del(&attempts->failures, name);
}

/* A plan with nothing refused knows one order only; what failed in the other is the same step. */
static char *in_any_order(const json_t *entry)
{
	json_auto_t *step = json_copy(json_at(entry, "step"));

	(void)json_object_del(step, "afterVfs");
	return json_text(step);
}

/*
 * Where the host looks one way and the other by turns, the step would be tried each time, without a
 * pause.
 */
static void keep_mended(struct failure *failure, int64_t now_ms)
{
	int64_t most_ms = doubled(ATTEMPTS_MENDED_MS, ATTEMPTS_MAX_MS, failure->in_a_row);

	if (!failure->is_mended && failure->again_ms > now_ms + most_ms)
		failure->again_ms = now_ms + most_ms;
	failure->is_mended = true;
	failure->is_put_off = false;
}

void attempts_keep_steps(struct attempts *attempts, const json_t *steps, int64_t now_ms)
{
	json_auto_t *planned = json_object();
	struct failure *failure;
	const json_t *entry;
	const char *key;
	size_t i = 0, k;

	json_array_foreach (steps, k, entry) {
		auto_free char *text = in_any_order(entry);

		json_object_set_new(planned, text, json_true());
	}
	while ((failure = next_failure(attempts, &i, &key))) {
		auto_free char *text = failure->entry ? in_any_order(failure->entry) : NULL;

		/* One that does not last is as it should be for now, as it was each time before. */
		if (!text ||
		    (now_ms < failure->again_ms && str_eq(failure->err.reason, "StepDoesNotLast")))
			continue;
		if (json_object_get(planned, text))
			failure->is_mended = false;
		else if (now_ms >= failure->again_ms)
			map_del(&attempts->failures, key);
		else
			keep_mended(failure, now_ms);
	}
}

void attempts_forget_all(struct attempts *attempts)
{
	map_done(&attempts->failures);
	map_done(&attempts->successes);
}

int64_t attempts_next_ms(const struct attempts *attempts, int64_t now_ms)
{
	int64_t next = INT64_MAX;
	const struct failure *failure;
	const char *key;
	size_t i = 0;

	while ((failure = next_failure(attempts, &i, &key)))
		if (!failure->is_mended && failure->again_ms > now_ms && failure->again_ms < next)
			next = failure->again_ms;
	return next;
}

json_t *attempts_failures(const struct attempts *attempts)
{
	size_t n = 0, i = 0;
	auto_free const char **keys = mem_calloc(attempts->failures.len + 1, sizeof(const char *));
	json_t *list = json_array();
	const struct failure *failure;

	while ((failure = next_failure(attempts, &i, &keys[n])))
		n += !failure->is_mended;
	qsort(keys, n, sizeof(*keys), str_compare);
	for (i = 0; i < n; i++) {
		json_t *entry = json_object();

		failure = map_get(&attempts->failures, keys[i]);
		json_put_str(entry, "pf", json_str_at(failure->entry, "pf"));
		json_put_str(entry, "reason", failure->err.reason);
		json_put_str(entry, "message", failure->err.text);
		json_array_append_new(list, entry);
	}
	return list;
}

/* ---- successes ------------------------------------------------------------------------------- */

int attempts_step_succeeded(struct attempts *attempts, const json_t *entry, int64_t now_ms,
			    struct err *err)
{
	auto_free char *text = json_text(json_at(entry, "step"));
	const char *pf = json_str_at(entry, "pf"), *key;
	struct success *success;
	void *value;
	size_t i = 0;

	assert(json_is_object(json_at(entry, "step")));
	while (map_next(&attempts->successes, &i, &key, &value)) {
		success = value;
		if (now_ms - success->first_ms > ATTEMPTS_SAME_MS)
			map_del(&attempts->successes, key);
	}
	success = map_get(&attempts->successes, text);
	if (!success) {
		success = mem_new(struct success);
		success->first_ms = now_ms;
		map_set(&attempts->successes, text, success);
	}
	if (++success->times <= ATTEMPTS_SAME_MAX)
		return 0;
	return err_set(err, ERR_HOST, "StepDoesNotLast",
		       "%s: step %s worked %d times within a minute and is needed again; look for "
		       "another program that manages this device and stop one of the two",
		       pf ? pf : "node", json_str_or(json_at(entry, "step", "step"), "?"),
		       success->times);
}

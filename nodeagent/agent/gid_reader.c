// SPDX-License-Identifier: Apache-2.0
/*
 * One request at a time; what changes meanwhile is asked about afterwards.
 *
 *	state     other addresses    look, stale    timer     answer
 *	RESTING   → WAITING          → WAITING      –         –
 *	WAITING   timer anew         –              → ASKED   –
 *	ASKED     → LATE             –              –         → RESTING
 *	LATE      –                  –              –         → WAITING
 */
#include "nodeagent/agent/gid_reader.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct gid_reader {
	struct gid_reader_config config;
	struct timer *timer;
	enum { RESTING, WAITING, ASKED, LATE } state;
	json_t *wanted; /* of gids_find(); NULL: nothing */
	json_t *found;  /* NULL: nothing was read */
	int64_t read_ms;
};

/* What to look for, new; NULL: nothing. */
static json_t *wanted_for(const json_t *attachments)
{
	json_auto_t *addresses = json_array(), *functions = json_array();
	const json_t *item, *address;
	size_t i, k;

	json_array_foreach (attachments, i, item) {
		const char *function = json_str_at(item, "device");

		if (!str_eq(json_str_at(item, "phase"), "added"))
			continue;
		if (function && !json_list_has(functions, function))
			json_array_append_new(functions, json_string(function));
		json_array_foreach (json_at(item, "addresses"), k, address) {
			const char *text = json_string_value(address);

			/* Without its prefix length. */
			if (text)
				json_array_append_new(addresses,
						      json_stringn(text, strcspn(text, "/")));
		}
	}
	return json_array_size(addresses)
		       ? json_pack("{s:O, s:O}", "addresses", addresses, "functions", functions)
		       : NULL;
}

static void on_answer(void *arg, const json_t *result, const struct err *err)
{
	struct gid_reader *reader = arg;
	bool is_late = reader->state == LATE;

	assert(reader->state == ASKED || is_late);
	reader->state = is_late && reader->wanted ? WAITING : RESTING;
	reader->read_ms = clock_ms();
	if (reader->state == WAITING)
		timer_start(reader->timer, GID_READER_SETTLE_MS);
	if (err)
		log_warn("GIDs of pods cannot be read", F_ERR(err));
	if (err || !reader->wanted || json_same(reader->found, result))
		return;
	json_decref(reader->found);
	reader->found = json_deep_copy(result);
	reader->config.changed(reader->config.arg);
}

static void on_due(void *arg)
{
	struct gid_reader *reader = arg;

	assert(reader->state == WAITING && reader->wanted);
	reader->state = ASKED;
	hostd_gids(reader->config.hostd, reader->wanted, on_answer, reader);
}

static void wait_for(struct gid_reader *reader, int64_t ms)
{
	if (reader->state == ASKED || reader->state == LATE) {
		reader->state = LATE;
		return;
	}
	reader->state = WAITING;
	timer_start(reader->timer, ms);
}

void gid_reader_set(struct gid_reader *reader, const json_t *attachments, const json_t *rdma)
{
	bool can_see = json_array_size(json_at(rdma, "devices")) &&
		       !str_eq(json_str_at(rdma, "netnsMode"), "exclusive");
	json_auto_t *wanted = can_see ? wanted_for(attachments) : NULL;
	bool is_other = !json_same(reader->wanted, wanted);

	if (is_other) {
		json_decref(reader->wanted);
		reader->wanted = json_incref(wanted);
	}
	if (!wanted) {
		if (reader->state == WAITING) {
			timer_stop(reader->timer);
			reader->state = RESTING;
		}
		json_decref(take_ptr(reader->found));
	} else if (is_other) {
		wait_for(reader, GID_READER_SETTLE_MS);
	} else if (reader->state == RESTING &&
		   clock_ms() - reader->read_ms >= GID_READER_FRESH_MS) {
		wait_for(reader, 0);
	}
}

const json_t *gid_reader_found(const struct gid_reader *reader)
{
	return reader->found;
}

struct gid_reader *gid_reader_new(const struct gid_reader_config *config)
{
	struct gid_reader *reader = mem_new(struct gid_reader);

	assert(config->loop && config->hostd && config->changed);
	reader->config = *config;
	reader->timer = timer_new(config->loop, on_due, reader);
	return reader;
}

void gid_reader_free(struct gid_reader *reader)
{
	if (!reader)
		return;
	timer_free(reader->timer);
	json_decref(reader->wanted);
	json_decref(reader->found);
	mem_free(reader);
}

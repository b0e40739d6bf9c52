// SPDX-License-Identifier: Apache-2.0
/*
 * One request at a time. What changes meanwhile is asked about afterwards, and so is what changed
 * just before: the kernel may not have made its GIDs.
 *
 *	state     other addresses    look, stale    timer          answer
 *	RESTING   → WAITING          → WAITING      –              –
 *	WAITING   timer again *      –              → ASKED, LATE  –
 *	ASKED     → LATE             –              –              → RESTING
 *	LATE      –                  –              –              → WAITING
 *
 * * At most GID_READER_SETTLE_MAX_MS after the first change.
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
	json_t *owners; /* of the addresses in it, as owner_of() returns them */
	json_t *asked;  /* those of the request in flight */
	json_t *found;  /* NULL: nothing was read. Only addresses whose owner is still the same */
	int64_t read_ms, waits_since_ms;
	bool is_early; /* the timer is due before all has settled */
};

/* The interface of an attachment: ["CONTAINER POD INTERFACE", functions …]. Borrowed. */
static json_t *owner_of(json_t *by_interface, const json_t *item)
{
	auto_free char *key = str_printf("%s %s/%s %s", json_str_or(json_at(item, "container"), ""),
					 json_str_or(json_at(item, "pod", "namespace"), ""),
					 json_str_or(json_at(item, "pod", "name"), ""),
					 json_str_or(json_at(item, "ifname"), ""));
	json_t *owner = json_object_get(by_interface, key);

	if (!owner) {
		owner = json_pack("[s]", key);
		json_put(by_interface, key, owner);
	}
	return owner;
}

/*
 * What to look for, new; NULL: nothing. *ret_owners: { ADDRESS: [interfaces that have it] }, new.
 */
static json_t *wanted_for(const json_t *attachments, json_t **ret_owners)
{
	json_auto_t *addresses = json_array(), *functions = json_array(), *owners = json_object(),
		    *by_interface = json_object();
	const json_t *item, *address;
	size_t i, k;

	json_array_foreach (attachments, i, item) {
		const char *function = json_str_at(item, "device");
		json_t *owner;

		if (!str_eq(json_str_at(item, "phase"), "added"))
			continue;
		owner = owner_of(by_interface, item);
		if (function && !json_list_has(owner, function))
			json_array_append_new(owner, json_string(function));
		if (function && !json_list_has(functions, function))
			json_array_append_new(functions, json_string(function));
		json_array_foreach (json_at(item, "addresses"), k, address) {
			const char *text = json_str_or(address, "");
			/* Without its prefix length. */
			auto_free char *plain = str_ndup(text, strcspn(text, "/"));

			if (!*text)
				continue;
			json_array_append_new(addresses, json_string(plain));
			if (!json_object_get(owners, plain))
				json_put(owners, plain, json_array());
			json_array_append(json_object_get(owners, plain), owner);
		}
	}
	if (!json_array_size(addresses))
		return NULL;
	*ret_owners = json_incref(owners);
	return json_pack("{s:O, s:O}", "addresses", addresses, "functions", functions);
}

/* Of addresses that are in both, and of the same interfaces; new. NULL: of none. */
static json_t *found_of_same(const json_t *found, const json_t *then, const json_t *now)
{
	json_auto_t *kept = json_object();
	const char *address;
	json_t *gids;

	json_each (found, address, gids)
		if (json_object_get(now, address) &&
		    json_same(json_object_get(then, address), json_object_get(now, address)))
			json_put(kept, address, json_deep_copy(gids));
	return json_object_size(kept) ? json_incref(kept) : NULL;
}

static void restart_timer(struct gid_reader *reader, int64_t ms)
{
	int64_t now = clock_ms(), left;

	if (reader->state != WAITING)
		reader->waits_since_ms = now;
	left = reader->waits_since_ms + GID_READER_SETTLE_MAX_MS - now;
	reader->is_early = ms > left;
	if (reader->is_early)
		ms = left > 0 ? left : 0;
	reader->state = WAITING;
	timer_start(reader->timer, ms);
}

static void on_answer(void *arg, const json_t *result, const struct err *err)
{
	struct gid_reader *reader = arg;
	bool is_late = reader->state == LATE;
	json_auto_t *asked = take_ptr(reader->asked), *found = NULL;

	assert(reader->state == ASKED || is_late);
	reader->state = RESTING;
	reader->read_ms = clock_ms();
	if (is_late && reader->wanted)
		restart_timer(reader, GID_READER_SETTLE_MS);
	if (err)
		log_warn("GIDs of pods cannot be read", F_ERR(err));
	else
		found = found_of_same(result, asked, reader->owners);
	if (json_same(reader->found, found))
		return;
	json_replace(&reader->found, take_ptr(found));
	reader->config.changed(reader->config.arg);
}

static void on_due(void *arg)
{
	struct gid_reader *reader = arg;

	assert(reader->state == WAITING && reader->wanted);
	reader->state = reader->is_early ? LATE : ASKED;
	reader->asked = json_incref(reader->owners);
	hostd_gids(reader->config.hostd, reader->wanted, on_answer, reader);
}

static void wait_for(struct gid_reader *reader, int64_t ms)
{
	if (reader->state == ASKED || reader->state == LATE)
		reader->state = LATE;
	else
		restart_timer(reader, ms);
}

void gid_reader_set(struct gid_reader *reader, const json_t *attachments, const json_t *rdma)
{
	bool can_see = json_array_size(json_at(rdma, "devices")) &&
		       !str_eq(json_str_at(rdma, "netnsMode"), "exclusive");
	json_auto_t *owners = NULL;
	json_auto_t *wanted = can_see ? wanted_for(attachments, &owners) : NULL;
	bool is_other = !json_same(reader->wanted, wanted) || !json_same(reader->owners, owners);

	if (is_other) {
		json_t *kept = found_of_same(reader->found, reader->owners, owners);

		json_replace(&reader->found, kept);
		json_decref(reader->wanted);
		reader->wanted = json_incref(wanted);
		json_replace(&reader->owners, json_incref(owners));
	}
	if (!wanted) {
		if (reader->state == WAITING) {
			timer_stop(reader->timer);
			reader->state = RESTING;
		}
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
	json_decref(reader->owners);
	json_decref(reader->asked);
	json_decref(reader->found);
	mem_free(reader);
}

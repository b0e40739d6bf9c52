// SPDX-License-Identifier: Apache-2.0
/*
 * The file is read, changed in memory and replaced as a whole for each call: hostd is its only
 * writer, and a crash in between leaves the file before or after. The observed document has what is
 * in it (boots_observe()), and steps of reboots end here (worker/execute_node.c).
 */
#include "nodeagent/host/boots.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/own_fd.h"
#include "lib/base/rfc3339.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/reboot.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/model/step.h"

/* Bytes of the file, and entries that are kept. */
#define FILE_MAX    (64 << 10)
#define ENTRIES_MAX 16

#define US_PER_S 1000000LL
#define DAY_US   (86400 * US_PER_S)
#define PATIENCE (HOST_BOOT_PATIENCE_S * US_PER_S)

/* ---- the file -------------------------------------------------------------------------------- */

/* New: the list of entries, empty when there is no file. NULL with err. */
static json_t *entries_load(const struct host *host, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *file = NULL;
	struct stat st;
	struct err why = {0};

	if (root_stat(host->root, HOST_BOOTS_FILE, &st) < 0 &&
	    (errno == ENOENT || errno == ENOTDIR))
		return json_array();
	if (!sysfs_read_file(host, HOST_BOOTS_FILE, FILE_MAX, &text)) {
		(void)err_set(err, ERR_HOST, "BootsUnreadable", "cannot read /" HOST_BOOTS_FILE);
		return NULL;
	}
	file = json_parse(strbuf_str(&text), text.len, &why);
	if (!json_is_array(json_at(file, "asked"))) {
		(void)err_set(err, ERR_HOST, "BootsUnreadable",
			      "/" HOST_BOOTS_FILE " is damaged, so it is not known which reboots "
			      "were asked for, and none is: see the file, then remove it");
		return NULL;
	}
	return json_incref(json_at(file, "asked"));
}

static int entries_save(const struct host *host, json_t *entries, struct err *err)
{
	json_auto_t *file = json_pack("{s:O}", "asked", entries);
	auto_free char *text = NULL;
	auto_close int folder = -1;
	struct err why = {0};

	while (json_array_size(entries) > ENTRIES_MAX)
		(void)json_array_remove(entries, 0);
	text = json_text(file);
	folder = host_state_folder(host);
	if (folder < 0)
		return err_sys(err, "BootsNotWritten", "make /" HOST_STATE_FOLDER);
	if (root_write_atomic(host->root, HOST_BOOTS_FILE, text, strlen(text), 0600, &why) < 0) {
		(void)err_set(err, ERR_HOST, "BootsNotWritten", "/" HOST_BOOTS_FILE ": %s",
			      why.text);
		return -1;
	}
	return 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void put_now(json_t *entry, const char *name)
{
	char now[RFC3339_SIZE];

	rfc3339_write(clock_wall_us(), now);
	json_put_str(entry, name, now);
}

/* Microseconds since then; a clock that went back says 0, and what cannot be read is now. */
static int64_t age_us(const json_t *entry, const char *name)
{
	int64_t at, now = clock_wall_us();

	if (!rfc3339_read(json_str_or(json_at(entry, name), ""), &at) || at > now)
		return 0;
	return now - at;
}

static bool is_of(const json_t *entry, const char *boot)
{
	return str_eq(json_str_at(entry, "bootID"), boot);
}

static bool is_open(const json_t *entry, const char *cause)
{
	return str_eq(json_str_at(entry, "cause"), cause) &&
	       !json_is_true(json_at(entry, "closed"));
}

static bool is_requested(const json_t *entry)
{
	return json_integer_value(json_at(entry, "requests")) > 0;
}

static size_t boots_today(const json_t *entries, const char *boot)
{
	const json_t *entry;
	size_t n = 0, i;

	/* The first process was asked, or a boot followed all the same. */
	json_array_foreach (entries, i, entry)
		n += (is_requested(entry) || !is_of(entry, boot)) && age_us(entry, "at") < DAY_US;
	return n;
}

/* No reboot was asked for yet, or none came of it. */
static bool is_due(const json_t *entry)
{
	return !is_requested(entry) || age_us(entry, "requestedAt") >= PATIENCE;
}

static json_t *observed_entry(const json_t *entry, const char *boot)
{
	json_t *ret = json_object();
	bool is_open_here = is_of(entry, boot) && !json_is_true(json_at(entry, "closed"));

	json_put_str(ret, "cause", json_str_at(entry, "cause"));
	json_put_str(ret, "bootID", json_str_at(entry, "bootID"));
	json_put_str(ret, "at", json_str_at(entry, "at"));
	if (is_requested(entry))
		json_put_bool(ret, "requested", true);
	if (json_is_true(json_at(entry, "closed")))
		json_put_bool(ret, "closed", true);
	if (is_open_here && is_due(entry))
		json_put_bool(ret, "due", true);
	if (is_open_here && is_requested(entry) && age_us(entry, "at") >= PATIENCE)
		json_put_bool(ret, "overdue", true);
	return ret;
}

json_t *boots_observe(const struct host *host)
{
	json_t *ret = json_object(), *list;
	json_auto_t *entries = NULL;
	const json_t *entry;
	struct sysfs_text boot;
	struct err err = {0};
	size_t i;

	next_boot_id(host, &boot);
	json_put_str(ret, "id", boot.text[0] ? boot.text : NULL);
	entries = entries_load(host, &err);
	if (!entries) {
		json_put_str(ret, "problem", err.text);
		return ret;
	}
	list = json_array();
	json_array_foreach (entries, i, entry)
		json_array_append_new(list, observed_entry(entry, boot.text));
	json_put_int(ret, "today", (int64_t)boots_today(entries, boot.text));
	json_put(ret, "asked", list);
	return ret;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int check_boot(const struct host *host, const char *boot, struct err *err)
{
	struct sysfs_text now;

	next_boot_id(host, &now);
	if (str_eq(now.text, boot))
		return 0;
	return err_set(err, ERR_CONFLICT, "BootChanged", "boot %s has ended, this is %s", boot,
		       now.text);
}

int boots_record(const struct host *host, const char *cause, const char *boot, bool *ret_changed,
		 struct err *err)
{
	json_auto_t *entries = NULL;
	json_t *entry;
	size_t i;

	assert(!str_empty(cause) && !str_empty(boot));
	if (check_boot(host, boot, err) < 0)
		return -1;
	entries = entries_load(host, err);
	if (!entries)
		return -1;
	json_array_foreach (entries, i, entry) {
		if (!is_open(entry, cause))
			continue;
		if (is_of(entry, boot))
			return 0;
		return err_set(err, ERR_HOST, "RebootDidNotHelp",
			       "rebooted for %s at %s without effect", cause,
			       json_str_or(json_at(entry, "at"), "an unknown time"));
	}
	if (boots_today(entries, boot) >= HOST_BOOTS_A_DAY)
		return err_set(err, ERR_HOST, "RebootsTooOften",
			       "this node was rebooted %zu times within a day",
			       boots_today(entries, boot));
	entry = json_pack("{s:s, s:s}", "cause", cause, "bootID", boot);
	put_now(entry, "at");
	json_array_append_new(entries, entry);
	if (entries_save(host, entries, err) < 0)
		return -1;
	*ret_changed = true;
	return 0;
}

int boots_close(const struct host *host, const char *cause, bool *ret_changed, struct err *err)
{
	json_auto_t *entries = entries_load(host, err);
	json_t *entry;
	bool any = false;
	size_t i;

	assert(!str_empty(cause));
	if (!entries)
		return -1;
	json_array_foreach (entries, i, entry) {
		if (is_open(entry, cause)) {
			json_put_bool(entry, "closed", true);
			any = true;
		}
	}
	if (any && entries_save(host, entries, err) < 0)
		return -1;
	*ret_changed = any;
	return 0;
}

/* The count is on disk before the reboot is asked for: a power cut after it counts one too many. */
int boots_ask(struct host *host, const char *cause, const char *boot, bool *ret_changed,
	      struct err *err)
{
	json_auto_t *entries = NULL;
	json_t *entry, *mine = NULL;
	size_t i;

	assert(!str_empty(cause) && !str_empty(boot));
	if (check_boot(host, boot, err) < 0)
		return -1;
	entries = entries_load(host, err);
	if (!entries)
		return -1;
	json_array_foreach (entries, i, entry)
		if (is_open(entry, cause) && is_of(entry, boot))
			mine = entry;
	if (!mine)
		return err_set(err, ERR_BUG, "RebootNotRecorded",
			       "a reboot for %s is not recorded for this boot", cause);
	if (!is_due(mine))
		return 0;
	if (!is_requested(mine) && boots_today(entries, boot) >= HOST_BOOTS_A_DAY)
		return err_set(err, ERR_HOST, "RebootsTooOften",
			       "this node was rebooted %zu times within a day",
			       boots_today(entries, boot));
	json_put_int(mine, "requests", json_integer_value(json_at(mine, "requests")) + 1);
	put_now(mine, "requestedAt");
	if (entries_save(host, entries, err) < 0)
		return -1;
	if (host->doors->reboot(host->doors_ctx, reboot_init(host), err) < 0) {
		/* No reboot was asked for. */
		(void)json_object_del(mine, "requests");
		(void)json_object_del(mine, "requestedAt");
		(void)entries_save(host, entries, NULL);
		return -1;
	}
	*ret_changed = true;
	return 0;
}

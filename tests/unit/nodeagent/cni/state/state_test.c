// SPDX-License-Identifier: Apache-2.0
/* What is on the disk: sandboxes, devices' owners, installed plugins. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/state/install.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "tests/support/scratch.h"
#include "tests/support/yaml.h"

struct stand {
	char *folder;
	struct sandboxes *state;
};

static int set_up(void **state)
{
	struct stand *s = calloc(1, sizeof(*s));

	s->folder = scratch_new();
	s->state = mem_new(struct sandboxes);
	s->state->dir = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sandboxes_prepare(s->state, NULL), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	sandboxes_done(s->state);
	mem_free(s->state);
	scratch_free(s->folder);
	free(s);
	return 0;
}

static const struct sandbox_key key = {"sriov", "rail0", "net1"};

static void put(const struct stand *s, const char *path, const char *text)
{
	assert_int_equal(fs_write_atomic(s->state->dir, path, text, strlen(text), 0755, NULL), 0);
}

static char *get(const struct stand *s, const char *path)
{
	struct strbuf text = {0};

	return fs_read(s->state->dir, path, 1 << 20, &text, NULL) == 0 ? strbuf_take(&text) : NULL;
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

static bool add_one(void *arg, json_t *sandbox)
{
	json_array_append_new(json_at(sandbox, "attachments"),
			      json_pack("{s:s, s:s, s:s}", "plugin", key.plugin, "network",
					key.network, "ifname", key.ifname));
	return true;
}

static bool add_too_much(void *arg, json_t *sandbox)
{
	auto_free char *text = malloc(SANDBOX_MAX + 1);

	memset(text, 'x', SANDBOX_MAX);
	text[SANDBOX_MAX] = '\0';
	json_put_str(sandbox, "note", text);
	return true;
}

static bool touch(void *arg, json_t *sandbox)
{
	return true;
}

static bool remove_all(void *arg, json_t *sandbox)
{
	(void)json_array_clear(json_at(sandbox, "attachments"));
	return true;
}

TEST_WITH(a_sandbox_is_there_until_its_last_attachment_goes, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *sandbox = NULL, *list = NULL, *after = NULL;

	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	sandbox = sandbox_read(s->state, "c1", NULL);
	assert_non_null(sandbox_find(sandbox, &key));
	assert_null(sandbox_find(sandbox, &(struct sandbox_key){"sriov", "rail0", "net2"}));
	list = sandboxes_list(s->state, NULL);
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, remove_all, NULL, NULL), 0);
	after = sandboxes_list(s->state, NULL);
	assert_int_equal(json_array_size(after), 0);
}

static bool add_mark(void *arg, json_t *sandbox)
{
	json_put_str(sandbox, "mark", arg);
	return true;
}

static void expect_file(const struct stand *s, const char *part, bool is_there)
{
	auto_free char *text = get(s, "sandboxes/c1.json");

	assert_non_null(text);
	assert_int_equal(strstr(text, part) != NULL, is_there);
}

TEST_WITH(what_is_left_for_later_is_read_at_once, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *before = NULL, *after = NULL, *other = NULL, *gone = NULL;

	assert_int_equal(sandbox_change(s->state, "c2", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	before = sandbox_read(s->state, "c1", NULL);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_LATER, add_mark, "m1", NULL), 0);
	assert_null(json_at(before, "mark"));
	expect_file(s, "m1", false);
	/* That of another sandbox does not take its place. */
	other = sandbox_read(s->state, "c2", NULL);
	after = sandbox_read(s->state, "c1", NULL);
	assert_string_equal(json_str_at(after, "mark"), "m1");
	assert_int_equal(sandbox_flush(s->state, "c2", NULL), 0);
	expect_file(s, "m1", false);
	assert_int_equal(sandbox_flush(s->state, "c1", NULL), 0);
	expect_file(s, "m1", true);
	/* The next change that is written takes it along. */
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_LATER, add_mark, "m2", NULL), 0);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL), 0);
	expect_file(s, "m2", true);
	/* Without attachments there is no file. */
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_LATER, remove_all, NULL, NULL), 0);
	gone = sandbox_read(s->state, "c1", NULL);
	assert_null(gone);
	assert_int_equal(sandbox_flush(s->state, "c1", NULL), 0);
	assert_null(get(s, "sandboxes/c1.json"));
}

TEST_WITH(a_file_of_another_process_counts, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *sandbox = NULL;

	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_LATER, add_mark, "m1", NULL), 0);
	put(s, "sandboxes/c1.json",
	    "{\"container\": \"c1\", \"attachments\": [{\"plugin\": \"a\", \"network\": \"b\", "
	    "\"ifname\": \"c\"}], \"mark\": \"m2\"}");
	sandbox = sandbox_read(s->state, "c1", NULL);
	assert_string_equal(json_str_at(sandbox, "mark"), "m2");
	assert_int_equal(sandbox_flush(s->state, "c1", NULL), 0);
	expect_file(s, "m2", true);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, remove_all, NULL, NULL), 0);
}

static json_t *record_new(const char *ifname, const char *phase)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "plugin", "macvlan", "network", "n", "ifname",
			 ifname, "phase", phase);
}

static bool add_two(void *arg, json_t *sandbox)
{
	json_array_append_new(json_at(sandbox, "attachments"), record_new("net1", "adding"));
	json_array_append_new(json_at(sandbox, "attachments"), record_new("net2", "adding"));
	return true;
}

/* net1 is there, net2 has gone, net3 is new. */
static bool know_better(void *arg, json_t *sandbox)
{
	json_put_str(json_array_get(json_at(sandbox, "attachments"), 0), "phase", "added");
	(void)json_array_remove(json_at(sandbox, "attachments"), 1);
	json_array_append_new(json_at(sandbox, "attachments"), record_new("net3", "added"));
	return true;
}

static void expect_both(const json_t *sandbox)
{
	const json_t *records = json_at(sandbox, "attachments");

	assert_int_equal(json_array_size(records), 3);
	assert_string_equal(json_str_at(json_find(records, "ifname", "net1"), "phase"), "added");
	assert_non_null(json_find(records, "ifname", "net3"));
	assert_non_null(json_find(records, "ifname", "net4"));
}

/* By a plugin of another project that calls one of ours while the meta plugin runs it. */
static void add_in_another_process(const struct stand *s)
{
	auto_free char *text = get(s, "sandboxes/c1.json"), *after = NULL;
	json_auto_t *sandbox = json_parse(text, strlen(text), NULL);

	json_array_append_new(json_at(sandbox, "attachments"), record_new("net4", "added"));
	after = json_text(sandbox);
	put(s, "sandboxes/c1.json", after);
}

TEST_WITH(what_is_left_for_later_outlives_a_file_of_another_process, set_up, tear_down)
{
	const struct stand *s = *state;

	/* The file is read next, or changed next. */
	for (int is_read = 0; is_read < 2; is_read++) {
		auto_free char *text = NULL;
		json_auto_t *file = NULL, *now = NULL;

		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_two, NULL, NULL), 0);
		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_LATER, know_better, NULL, NULL), 0);
		add_in_another_process(s);
		if (is_read) {
			now = sandbox_read(s->state, "c1", NULL);
			expect_both(now);
		}
		assert_int_equal(sandbox_flush(s->state, "c1", NULL), 0);
		text = get(s, "sandboxes/c1.json");
		file = json_parse(text, strlen(text), NULL);
		expect_both(file);
		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_SYNCED, remove_all, NULL, NULL), 0);
	}
}

TEST_WITH(what_cannot_be_read_is_put_aside, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *aside = NULL;
	struct err err = {0};

	put(s, "sandboxes/c1.json", "{\"container\": \"c1\", \"attachments\": [{}]}");
	assert_null(sandbox_read(s->state, "c1", &err));
	assert_string_equal(err.reason, "BadSandbox");
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	aside = get(s, "sandboxes/c1.json.unreadable");
	assert_non_null(aside);
}

/* A power cut takes the bytes of a file that was not synced, and leaves its name. */
TEST_WITH(what_was_synced_survives_the_loss_of_what_was_not, set_up, tear_down)
{
	static const char *const lost[] = {"", "{\"container\": \"c1\", \"attachm"};
	const struct stand *s = *state;

	for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
		json_auto_t *sandbox = NULL;
		auto_free char *left = NULL, *aside = NULL;

		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
		/* Twice: what was not synced is no replacement for what was. */
		assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL),
				 0);
		assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL),
				 0);
		put(s, "sandboxes/c1.json", lost[i]);
		sandbox = sandbox_read(s->state, "c1", NULL);
		assert_non_null(sandbox_find(sandbox, &key));
		assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, touch, NULL, NULL),
				 0);
		json_decref(sandbox);
		sandbox = sandbox_read(s->state, "c1", NULL);
		assert_non_null(sandbox_find(sandbox, &key));
		aside = get(s, "sandboxes/c1.json.unreadable");
		assert_null(aside);
		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_SYNCED, remove_all, NULL, NULL), 0);
		left = get(s, "sandboxes/.c1.json.synced");
		assert_null(left);
	}
}

/* As a kill leaves it, or another process that came between two lines. */
TEST_WITH(the_last_synced_one_counts_and_no_older_one, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *sandbox = NULL;

	put(s, "sandboxes/.c1.json.synced", "{\"container\": \"c1\", \"attachments\": []}");
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL), 0);
	put(s, "sandboxes/c1.json", "");
	/* What was read from the second name is no synced file either. */
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL), 0);
	put(s, "sandboxes/c1.json", "");
	sandbox = sandbox_read(s->state, "c1", NULL);
	assert_non_null(sandbox_find(sandbox, &key));
}

/* As a power cut leaves one that was not synced, and a kill one that was just made. */
TEST_WITH(a_file_that_says_nothing_is_no_sandbox, set_up, tear_down)
{
	const struct stand *s = *state;
	struct err err = {0};
	auto_free char *left = NULL;

	put(s, "sandboxes/c1.json", "");
	assert_null(sandbox_read(s->state, "c1", &err));
	assert_int_equal(err.class, ERR_NONE);
	sandbox_remove_empty(s->state, "c1");
	left = get(s, "sandboxes/c1.json");
	assert_null(left);
	/* One that says something stays. */
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	sandbox_remove_empty(s->state, "c1");
	left = get(s, "sandboxes/c1.json");
	assert_non_null(left);
}

TEST_WITH(a_file_that_cannot_be_opened_is_an_error, set_up, tear_down)
{
	const struct stand *s = *state;
	struct err err = {0};

	assert_int_equal(symlinkat("/etc/passwd", s->state->dir, "sandboxes/c1.json"), 0);
	assert_null(sandbox_read(s->state, "c1", &err));
	assert_string_equal(err.reason, "SandboxUnreadable");
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, &err), -1);
	assert_string_equal(err.reason, "SandboxNotWritten");
}

/* Not what is in it is wrong, but the disk, or this process. */
TEST_WITH(a_file_that_cannot_be_read_now_is_left_where_it_is, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *after = NULL, *aside = NULL, *text = NULL;
	struct rlimit limit, few;
	struct err err = {0};
	int rc = 0, n = 0;

	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, touch, NULL, NULL), 0);
	/* As another process has written it: what is in it has to be read. */
	text = get(s, "sandboxes/c1.json");
	put(s, "sandboxes/c1.json", text);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* One more each time, from none that is free on: files that were replaced are open. */
	for (rlim_t i = 0; i < 256; i++) {
		few = (struct rlimit){i, limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = (struct err){0};
		rc = sandbox_change(s->state, "c1", SANDBOX_SYNCED, touch, NULL, &err);
		if (rc == 0)
			break;
		n++;
		assert_int_equal(err.class, ERR_HOST);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(n > 0);
	assert_int_equal(rc, 0);
	aside = get(s, "sandboxes/c1.json.unreadable");
	assert_null(aside);
	after = get(s, "sandboxes/c1.json");
	assert_non_null(strstr(after, "\"sriov\""));
}

TEST_WITH(one_that_would_be_too_large_to_be_read_is_not_written, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *before = NULL, *after = NULL;
	struct err err = {0};

	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, NULL), 0);
	before = get(s, "sandboxes/c1.json");
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_too_much, NULL, &err),
			 -1);
	assert_string_equal(err.reason, "SandboxTooLarge");
	after = get(s, "sandboxes/c1.json");
	assert_string_equal(after, before);
}

TEST_WITH(drafts_of_a_crash_are_removed, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *left = NULL, *owner = NULL;

	assert_int_equal(mkdirat(s->state->dir, "devices", 0700), 0);
	assert_int_equal(device_claim(s->state, "0000:3b:00.2", "c1", "net1", NULL), 0);
	put(s, "sandboxes/.c1.json.draft", "half of it");
	put(s, "devices/.0000:3b:00.2.json.draft", "half of it");
	assert_int_equal(sandboxes_prepare(s->state, NULL), 0);
	left = get(s, "sandboxes/.c1.json.draft");
	assert_null(left);
	left = get(s, "devices/.0000:3b:00.2.json.draft");
	assert_null(left);
	owner = get(s, "devices/0000:3b:00.2.json");
	assert_non_null(owner);
}

/* A plugin may be writing the young one now. */
TEST_WITH(so_are_old_ones_of_notes, set_up, tear_down)
{
	const struct stand *s = *state;
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	auto_free char *left = NULL, *young = NULL, *note = NULL;

	assert_int_equal(mkdirat(s->state->dir, "notes", 0700), 0);
	put(s, "notes/.0001", "half of it");
	put(s, "notes/.0002", "half of it");
	put(s, "notes/0003", "a note");
	assert_int_equal(utimensat(s->state->dir, "notes/.0001", old, 0), 0);
	assert_int_equal(utimensat(s->state->dir, "notes/0003", old, 0), 0);
	notes_clean(s->state->dir);
	left = get(s, "notes/.0001");
	assert_null(left);
	young = get(s, "notes/.0002");
	assert_non_null(young);
	note = get(s, "notes/0003");
	assert_non_null(note);
}

/* After a downgrade: what the pod has is not forgotten, and not taken for nothing. */
TEST_WITH(a_file_of_a_newer_version_stays_as_it_is, set_up, tear_down)
{
	static const char *const versions[] = {"2", "\"2\"", "1.5"};
	const struct stand *s = *state;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		auto_free char *text = str_printf("{\"version\": %s, \"container\": \"c1\", "
						  "\"attachments\": []}",
						  versions[i]);
		auto_free char *after = NULL, *aside = NULL;
		json_auto_t *loaded = NULL;
		struct err err = {0};

		put(s, "sandboxes/c1.json", text);
		assert_null(sandbox_read(s->state, "c1", &err));
		assert_string_equal(err.reason, "SandboxTooNew");
		assert_int_equal(sandbox_load(s->state, "c1", &loaded, &err), -1);
		assert_int_equal(
			sandbox_change(s->state, "c1", SANDBOX_SYNCED, add_one, NULL, &err), -1);
		assert_string_equal(err.reason, "SandboxUnreadable");
		assert_non_null(strstr(err.text, "downgrade"));
		sandbox_remove_empty(s->state, "c1");
		after = get(s, "sandboxes/c1.json");
		assert_string_equal(after, text);
		aside = get(s, "sandboxes/c1.json.unreadable");
		assert_null(aside);
	}
}

TEST_WITH(a_state_that_is_no_folder_cannot_be_used, set_up, tear_down)
{
	const struct stand *s = *state;
	struct err err = {0};
	struct sandboxes file = {0};

	put(s, "file", "");
	file.dir = openat(s->state->dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sandboxes_prepare(&file, &err), -1);
	assert_string_equal(err.reason, "StateUnusable");
	assert_int_equal(device_lock(&file, "0000:03:00.2", 0, &err), -1);
	assert_string_equal(err.reason, "DeviceNotLocked");
	assert_int_equal(device_claim(&file, "0000:03:00.2", "c1", "net1", &err), -1);
	assert_string_equal(err.reason, "DeviceNotClaimed");
	sandboxes_done(&file);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void lock_and_let_go(const struct stand *s)
{
	(void)close(device_lock(s->state, "0000:03:00.2", 0, NULL));
}

/* Its holder may hang in the kernel for ever. */
TEST_WITH(a_device_that_another_works_on_is_not_waited_for_without_end, set_up, tear_down)
{
	const struct stand *s = *state;
	int held = device_lock(s->state, "0000:03:00.2", 0, NULL);
	struct err err = {0};

	assert_true(held >= 0);
	assert_int_equal(device_lock(s->state, "0000:03:00.2", 20, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "DeviceNotLocked");
	assert_non_null(strstr(err.text, "0000:03:00.2"));
	(void)close(held);
	lock_and_let_go(s);
}

TEST_WITH(a_device_belongs_to_who_claimed_it_last, set_up, tear_down)
{
	const struct stand *s = *state;
	const char *vf = "0000:03:00.2";

	lock_and_let_go(s);
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 1);
	assert_int_equal(device_claim(s->state, vf, "c1", "net1", NULL), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 1);
	assert_int_equal(device_claim(s->state, vf, "c2", "net1", NULL), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 0);
	/* The DEL of the old one changes nothing. */
	device_release(s->state, vf, "c1");
	assert_int_equal(device_is_owned(s->state, vf, "c2", NULL), 1);
	device_release(s->state, vf, "c2");
	assert_int_equal(device_is_owned(s->state, vf, "c3", NULL), 1);
}

TEST_WITH(an_owner_that_is_still_to_be_deleted_has_its_device_back, set_up, tear_down)
{
	const struct stand *s = *state;
	const char *vf = "0000:03:00.2";

	lock_and_let_go(s);
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, add_one, NULL, NULL), 0);
	assert_int_equal(device_claim(s->state, vf, "c1", "net1", NULL), 0);
	/* The ADD of the next pod fails. */
	assert_int_equal(device_claim(s->state, vf, "c2", "net1", NULL), 0);
	device_release(s->state, vf, "c2");
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 1);
	assert_int_equal(device_is_owned(s->state, vf, "c2", NULL), 0);
}

/* A power cut: its DEL comes after the boot, and the VF is another one by then. */
TEST_WITH(an_owner_of_an_earlier_boot_has_nothing_to_put_back, set_up, tear_down)
{
	const struct stand *s = *state;
	const char *vf = "0000:03:00.2";

	lock_and_let_go(s);
	put(s, "devices/0000:03:00.2.json",
	    "{\"container\": \"c1\", \"ifname\": \"net1\", \"boot\": \"an earlier one\"}");
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 0);
	assert_int_equal(device_claim(s->state, vf, "c1", "net1", NULL), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 1);

	/* It is not the owner again either, though its file is still there. */
	assert_int_equal(sandbox_change(s->state, "c1", SANDBOX_WRITTEN, add_one, NULL, NULL), 0);
	put(s, "devices/0000:03:00.2.json",
	    "{\"container\": \"c1\", \"ifname\": \"net1\", \"boot\": \"an earlier one\"}");
	assert_int_equal(device_claim(s->state, vf, "c2", "net1", NULL), 0);
	device_release(s->state, vf, "c2");
	assert_int_equal(device_is_owned(s->state, vf, "c3", NULL), 1);

	put(s, "devices/0000:03:00.2.json",
	    "{\"container\": \"c1\", \"ifname\": \"net1\", \"boot\": \"an earlier one\"}");
	device_release(s->state, vf, "c1");
	assert_int_equal(device_is_owned(s->state, vf, "c2", NULL), 1);

	/* As first versions wrote it. */
	put(s, "devices/0000:03:00.2.json", "{\"container\": \"c1\", \"ifname\": \"net1\"}");
	assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 1);
}

/* A folder has no text, as a disk that does not answer. */
TEST_WITH(whose_a_device_is_that_cannot_be_read_is_not_known, set_up, tear_down)
{
	const struct stand *s = *state;
	const char *vf = "0000:03:00.2";
	auto_free char *owner = NULL;
	struct err err = {0};

	lock_and_let_go(s);
	assert_int_equal(mkdirat(s->state->dir, "devices/0000:03:00.2.json", 0700), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c1", &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_int_equal(device_owner(s->state, vf, &owner, NULL), -1);
	assert_int_equal(device_claim(s->state, vf, "c1", "net1", NULL), -1);
}

TEST_WITH(records_say_whose_a_device_is_whose_file_says_nothing, set_up, tear_down)
{
	static const char *const files[] = {"{", "", "[1"};
	const struct stand *s = *state;
	const char *vf = "0000:03:00.2";

	lock_and_let_go(s);
	put(s, "sandboxes/c1.json",
	    "{\"container\": \"c1\", \"boot\": \"an earlier one\", \"attachments\": "
	    "[{\"plugin\": \"sriov\", \"network\": \"n\", \"ifname\": \"net1\", "
	    "\"saved\": {\"device\": \"0000:03:00.2\"}}]}");
	put(s, "sandboxes/c2.json",
	    "{\"container\": \"c2\", \"attachments\": [{\"plugin\": \"sriov\", "
	    "\"network\": \"n\", \"ifname\": \"net1\", \"saved\": "
	    "{\"device\": \"0000:03:00.2\"}}]}");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *owner = NULL;

		put(s, "devices/0000:03:00.2.json", files[i]);
		assert_int_equal(device_is_owned(s->state, vf, "c1", NULL), 0);
		assert_int_equal(device_is_owned(s->state, vf, "c2", NULL), 1);
		assert_int_equal(device_owner(s->state, vf, &owner, NULL), 0);
		assert_string_equal(owner, "c2");
	}
	/* The DEL of a pod before comes while the next pod has the device. */
	put(s, "sandboxes/c0.json",
	    "{\"container\": \"c0\", \"attachments\": [{\"plugin\": \"sriov\", "
	    "\"network\": \"n\", \"ifname\": \"net1\", \"phase\": \"deleting\", \"saved\": "
	    "{\"device\": \"0000:03:00.2\"}}]}");
	assert_int_equal(device_is_owned(s->state, vf, "c0", NULL), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c2", NULL), 1);
	/* It is not taken for nobody's where one of them cannot be read. */
	assert_int_equal(unlinkat(s->state->dir, "sandboxes/c2.json", 0), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c0", NULL), 1);
	assert_int_equal(unlinkat(s->state->dir, "sandboxes/c0.json", 0), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c3", NULL), 1);
	assert_int_equal(mkdirat(s->state->dir, "sandboxes/c2.json", 0700), 0);
	assert_int_equal(device_is_owned(s->state, vf, "c3", NULL), -1);
}

TEST_WITH(sandboxes_that_cannot_be_listed_are_not_none, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *none = NULL;
	struct err err = {0};

	assert_int_equal(renameat(s->state->dir, "sandboxes", s->state->dir, "away"), 0);
	none = sandboxes_list(s->state, NULL);
	assert_int_equal(json_array_size(none), 0);
	assert_non_null(none);
	put(s, "sandboxes", "");
	assert_null(sandboxes_list(s->state, &err));
	assert_string_equal(err.reason, "StateUnusable");
}

TEST_WITH(a_device_is_found_in_a_configuration, set_up, tear_down)
{
	static const struct {
		const char *config, *device;
	} cases[] = {
		{"{\"deviceID\": \"0000:03:00.2\"}", "0000:03:00.2"},
		{"{\"runtimeConfig\": {\"deviceID\": \"0000:03:00.3\"}}", "0000:03:00.3"},
		{"{\"pciBusID\": \"0000:03:00.4\"}", "0000:03:00.4"},
		{"{\"deviceID\": \"../etc/passwd\"}", NULL},
		{"{}", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = json_parse(cases[i].config, strlen(cases[i].config), NULL);
		const char *device = device_of(config);

		assert_true(str_eq(device, cases[i].device));
	}
}

/* ---- the ledger ------------------------------------------------------------------------------ */

TEST_WITH(a_pod_has_something_until_its_last_nic_goes, set_up, tear_down)
{
	struct attachment_index *ledger = attachment_index_new();
	json_auto_t *attachments =
		json_pack("[{s:s, s:s, s:{s:s}}, {s:s, s:s, s:{s:s}}]", "plugin", "spiderpool",
			  "ifname", "net1", "pod", "uid", "u1", "plugin", "spiderpool", "ifname",
			  "net2", "pod", "uid", "u1");
	json_auto_t *list = NULL;

	attachment_index_set(ledger, "c1", attachments);
	list = attachment_index_list(ledger);
	assert_int_equal(json_array_size(list), 2);
	attachment_index_mark(ledger, "c1", "spiderpool", "net1");
	assert_true(attachment_index_has(ledger, "spiderpool", "u1"));
	assert_false(attachment_index_has(ledger, "spiderpool", "u2"));
	attachment_index_mark(ledger, "c1", "spiderpool", "net2");
	assert_false(attachment_index_has(ledger, "spiderpool", "u1"));
	attachment_index_set(ledger, "c1", NULL);
	attachment_index_free(ledger);
}

TEST_WITH(counts_the_devices_of_a_sandbox, set_up, tear_down)
{
	struct attachment_index *ledger = attachment_index_new();
	json_auto_t *attachments = json_pack("[{s:s, s:s}, {s:s}, {s:s, s:s}]", "plugin", "sriov",
					     "device", "0000:3b:00.2", "plugin", "coordinator",
					     "plugin", "ib-sriov", "device", "0000:3b:00.3");

	attachment_index_set(ledger, "c1", attachments);
	assert_int_equal(attachment_index_devices(ledger, "c1"), 2);
	assert_int_equal(attachment_index_devices(ledger, "c2"), 0);
	attachment_index_free(ledger);
}

TEST_WITH(tells_what_an_interface_is_made_of, set_up, tear_down)
{
	json_auto_t *sandbox = yaml(
		"{container: c1, pod: {name: a}, attachments: [{plugin: ib-sriov, network: ib, "
		"ifname: net1, phase: added, config: {deviceID: '0000:81:00.2'}, saved: {rdma: "
		"mlx5_4, guid: '02:00:00:00:00:00:00:07'}, result: {interfaces: [{name: net1, "
		"mac: '80:00'}], ips: [{address: 10.6.0.2/16}]}}]}");
	json_auto_t *want =
		yaml("[{container: c1, pod: {name: a}, plugin: ib-sriov, network: ib, ifname: "
		     "net1, phase: added, device: '0000:81:00.2', rdmaDevice: mlx5_4, guid: "
		     "'02:00:00:00:00:00:00:07', mac: '80:00', addresses: [10.6.0.2/16]}]");
	json_auto_t *told = attachment_index_describe(sandbox);

	assert_true(json_same(told, want));
}

TEST_WITH(the_device_of_host_device_is_told_as_the_pods, set_up, tear_down)
{
	json_auto_t *sandbox =
		yaml("{container: c1, attachments: [{plugin: host-device, network: n, ifname: net1,"
		     " config: {pciBusID: '0000:3b:02.0'}}]}");
	json_auto_t *told = attachment_index_describe(sandbox);

	assert_string_equal(json_str_at(json_array_get(told, 0), "device"), "0000:3b:02.0");
}

TEST_WITH(a_shared_device_is_not_told_as_the_pods, set_up, tear_down)
{
	json_auto_t *sandbox = json_pack(
		"{s:s, s:{}, s:[{s:s, s:s, s:s, s:{s:s, s:s}}, {s:s, s:s, s:s, s:{s:s}}]}",
		"container", "c1", "pod", "attachments", "plugin", "macvlan", "network", "n",
		"ifname", "net1", "config", "deviceID", "0000:3b:00.0", "master", "ens1", "plugin",
		"sriov", "network", "n", "ifname", "net2", "config", "deviceID", "0000:3b:02.0");
	json_auto_t *told = attachment_index_describe(sandbox);

	assert_null(json_at(json_find(told, "ifname", "net1"), "device"));
	assert_string_equal(json_str_at(json_find(told, "ifname", "net1"), "master"), "ens1");
	assert_string_equal(json_str_at(json_find(told, "ifname", "net2"), "device"),
			    "0000:3b:02.0");
}

/* ---- plugins --------------------------------------------------------------------------------- */

static char *program_of(const struct stand *s, const char *version)
{
	auto_free char *text = str_printf("%s%s", PLUGIN_MARK, version);

	put(s, "program", text);
	return str_below(s->folder, "program");
}

/* Under all names, as profile delegate has it. */
static int install_all(const struct stand *s, const char *bin_dir, const char *program,
		       struct err *err)
{
	json_auto_t *names = json_array();

	for (size_t i = 0; i < install_n_names; i++)
		json_array_append_new(names, json_string(install_names[i]));
	return install_plugins(s->state->dir, bin_dir, program, names, err);
}

TEST_WITH(plugins_are_one_file_under_all_names, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1");
	struct stat first, other;

	assert_int_equal(install_all(s, "/opt/cni/bin", program, NULL), 0);
	assert_int_equal(fstatat(s->state->dir, "opt/cni/bin/orbweaver-cni", &first, 0), 0);
	assert_int_equal(first.st_mode & 07777, 0755);
	for (size_t i = 0; i < install_n_names; i++) {
		auto_free char *path = str_printf("opt/cni/bin/%s", install_names[i]);

		assert_int_equal(fstatat(s->state->dir, path, &other, 0), 0);
		assert_int_equal(other.st_ino, first.st_ino);
	}
	/* A second time nothing is written. */
	assert_int_equal(install_all(s, "/opt/cni/bin", program, NULL), 0);
	assert_int_equal(fstatat(s->state->dir, "opt/cni/bin/orbweaver-cni", &other, 0), 0);
	assert_int_equal(other.st_ino, first.st_ino);
	assert_null(get(s, "opt/cni/bin/.orbweaver-cni.draft"));
}

TEST_WITH(an_update_keeps_nothing_of_ours, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *one = program_of(s, "1"), *two = NULL, *text = NULL, *saved = NULL;

	assert_int_equal(install_all(s, "/bin", one, NULL), 0);
	two = program_of(s, "2");
	assert_int_equal(install_all(s, "/bin", two, NULL), 0);
	text = get(s, "bin/sriov");
	assert_string_equal(text, PLUGIN_MARK "2");
	saved = get(s, "bin/sriov" INSTALL_SAVED);
	assert_null(saved);
}

TEST_WITH(a_foreign_plugin_is_kept_and_comes_back, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1"), *ours = NULL, *saved = NULL, *back = NULL;

	assert_int_equal(mkdirat(s->state->dir, "bin", 0755), 0);
	put(s, "bin/sriov", "theirs");
	assert_int_equal(install_all(s, "/bin", program, NULL), 0);
	ours = get(s, "bin/sriov");
	assert_string_equal(ours, PLUGIN_MARK "1");
	saved = get(s, "bin/sriov" INSTALL_SAVED);
	assert_string_equal(saved, "theirs");
	assert_int_equal(install_remove(s->state->dir, "/bin", NULL), 0);
	back = get(s, "bin/sriov");
	assert_string_equal(back, "theirs");
	assert_null(get(s, "bin/rdma"));
	assert_null(get(s, "bin/sriov" INSTALL_SAVED));
}

/* A file in the place of the host's root: nobody enters it. */
TEST_WITH(a_root_that_cannot_be_entered_is_named_with_what_is_missing, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_close int file = -1;
	json_auto_t *env = json_object(), *config = json_object();
	struct program_limits limits = {0};
	struct attachment a = {.env = env, .state = s->state, .limits = &limits};
	struct err err = {0};

	put(s, "file", "");
	a.root = file = openat(s->state->dir, "file", O_RDONLY | O_CLOEXEC);
	assert_null(external_ipam_program(&a, "static", "ADD", config, &err));
	assert_int_equal(err.sys, ENOTDIR);
	assert_non_null(strstr(err.text, "enter the host's root /"));
	assert_non_null(strstr(err.text, "(mount the node's / there, see --host-root"));
	assert_non_null(strstr(err.text, "SYS_CHROOT"));
	assert_non_null(strstr(err.text, ": Not a directory"));
}

TEST_WITH(what_is_somebody_else_s_by_now_is_not_removed, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1"), *text = NULL;

	assert_int_equal(install_all(s, "/bin", program, NULL), 0);
	put(s, "bin/sriov", "theirs");
	assert_int_equal(install_remove(s->state->dir, "/bin", NULL), 0);
	text = get(s, "bin/sriov");
	assert_string_equal(text, "theirs");
}

TEST_WITH(a_name_that_is_not_asked_for_is_not_touched, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1"), *theirs = NULL, *ours = NULL;
	json_auto_t *names = json_pack("[s, s]", "spiderpool", "rdma");
	json_auto_t *seen = NULL;

	assert_int_equal(mkdirat(s->state->dir, "bin", 0755), 0);
	put(s, "bin/orbweaver-cni", "theirs");
	put(s, "bin/sriov", "theirs");
	put(s, "bin/sriov" INSTALL_SAVED, "older");
	assert_int_equal(install_plugins(s->state->dir, "/bin", program, names, NULL), 0);
	theirs = get(s, "bin/orbweaver-cni");
	assert_string_equal(theirs, "theirs");
	/* Not a link to the other program's file of the first name. */
	ours = get(s, "bin/rdma");
	assert_string_equal(ours, PLUGIN_MARK "1");
	seen = install_look(s->state->dir, "/bin");
	assert_int_equal(json_array_size(seen), install_n_names);
	assert_string_equal(json_str_at(json_find(seen, "name", "rdma"), "owner"), "ours");
	assert_string_equal(json_str_at(json_find(seen, "name", "sriov"), "owner"), "other");
	assert_true(json_is_true(json_at(json_find(seen, "name", "sriov"), "saved")));
	assert_string_equal(json_str_at(json_find(seen, "name", "ipoib"), "owner"), "nobody");
	assert_true(json_is_true(json_at(json_find(seen, "name", "macvlan"), "common")));
	assert_false(json_is_true(json_at(json_find(seen, "name", "sriov"), "common")));
	assert_true(json_is_true(json_at(json_find(seen, "name", "loopback"), "forAll")));
	assert_false(json_is_true(json_at(json_find(seen, "name", "macvlan"), "forAll")));
	assert_int_equal(install_restore(s->state->dir, "/bin", names, NULL), 0);
	assert_null(get(s, "bin/rdma"));
}

TEST_WITH(what_was_kept_comes_back_also_where_ours_has_gone, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *back = NULL;
	json_auto_t *names = json_pack("[s, s]", "sriov", "rdma");

	assert_int_equal(mkdirat(s->state->dir, "bin", 0755), 0);
	put(s, "bin/sriov" INSTALL_SAVED, "theirs");
	assert_int_equal(install_restore(s->state->dir, "/bin", names, NULL), 0);
	back = get(s, "bin/sriov");
	assert_string_equal(back, "theirs");
	assert_null(get(s, "bin/sriov" INSTALL_SAVED));
}

TEST_WITH(of_two_folders_the_first_that_has_the_name_counts, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1");
	const char *const path = "/opt:/bin:relative::/none";
	auto_close int fd = -1;

	assert_true(install_is_other(s->state->dir, path, "macvlan"));
	assert_int_equal(mkdirat(s->state->dir, "bin", 0755), 0);
	assert_false(install_is_other(s->state->dir, path, "macvlan"));
	assert_int_equal(install_all(s, "/bin", program, NULL), 0);
	assert_false(install_is_other(s->state->dir, path, "macvlan"));
	assert_int_equal(mkdirat(s->state->dir, "opt", 0755), 0);
	assert_int_equal(mkdirat(s->state->dir, "opt/macvlan", 0755), 0);
	assert_false(install_is_other(s->state->dir, path, "macvlan"));
	put(s, "opt/vlan", "theirs");
	assert_true(install_is_other(s->state->dir, path, "vlan"));
	assert_false(install_is_other(s->state->dir, "/bin:/opt", "vlan"));
	/* A link to another program's file, as distributions have them. */
	assert_int_equal(symlinkat("/opt/vlan", s->state->dir, "opt/ipvlan"), 0);
	assert_true(install_is_other(s->state->dir, path, "ipvlan"));
	/* Ours in a version of its own. */
	put(s, "opt/vlan", PLUGIN_MARK "0");
	assert_false(install_is_other(s->state->dir, path, "vlan"));
	/* No plugin of ours is as large as a Go program. */
	fd = openat(s->state->dir, "opt/vlan", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1990272), 0);
	assert_true(install_is_other(s->state->dir, path, "vlan"));
}

TEST_WITH(a_folder_that_cannot_be_had_is_an_error, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_free char *program = program_of(s, "1");
	struct err err = {0};

	put(s, "bin", "a file");
	assert_int_equal(install_all(s, "/bin", program, &err), -1);
	assert_string_equal(err.reason, "PluginsNotInstalled");
	assert_non_null(strstr(err.text, "--cni-bin-dir"));
}

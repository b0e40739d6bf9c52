// SPDX-License-Identifier: Apache-2.0
/*
 * Dumps on disk: what was put in comes out, from a folder and from an archive, and nothing that
 * leads elsewhere is followed.
 */
#include "tests/support/test.h"

#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/support/bundle.h"
#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "tests/support/scratch.h"

struct seen {
	struct strbuf text; /* "name=text;" */
	const char *only;   /* NULL: all are wanted */
};

static bool wants(void *arg, const char *name)
{
	const struct seen *seen = arg;

	return !seen->only || str_eq(seen->only, name);
}

static int take_part(void *arg, const char *name, const char *text, size_t len, struct err *err)
{
	struct seen *seen = arg;

	strbuf_addf(&seen->text, "%s=%.20s%s;", name, text, len > 20 ? "…" : "");
	return 0;
}

static int read_all(const char *path, struct seen *seen, struct err *err)
{
	const struct bundle_reader reader = {wants, take_part, seen};

	return bundle_read(path, &reader, err);
}

static int setup(void **state)
{
	*state = scratch_new();
	return 0;
}

static int teardown(void **state)
{
	scratch_free(*state);
	return 0;
}

static void put(const char *path)
{
	struct bundle *bundle = NULL;
	struct err err = {0};
	size_t size = 0;

	if (bundle_create(path, 0, &bundle, &err) < 0 ||
	    bundle_add(bundle, "objects/pods.json", "{}", 2, &err) < 0 ||
	    bundle_add(bundle, "logs/a.log", "", 0, &err) < 0 ||
	    bundle_add(bundle, "index.json", "[1]", 3, &err) < 0 ||
	    bundle_finish(bundle, &size, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(size > 0);
	bundle_free(bundle);
}

static void expect_read(const char *path, const char *only, const char *want)
{
	struct seen seen = {.only = only};
	struct err err = {0};

	if (read_all(path, &seen, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(strbuf_str(&seen.text), want);
	strbuf_done(&seen.text);
}

TEST_WITH(a_folder_gives_back_what_was_put_in_by_name, setup, teardown)
{
	auto_free char *path = str_below(*state, "dump");
	struct stat st;

	put(path);
	assert_true(bundle_is(path));
	expect_read(path, NULL, "index.json=[1];logs/a.log=;objects/pods.json={};");
	expect_read(path, "index.json", "index.json=[1];");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
}

TEST_WITH(an_archive_gives_back_what_was_put_in_in_order, setup, teardown)
{
	auto_free char *path = str_below(*state, "dump.tar.gz");
	struct stat st;

	put(path);
	assert_true(bundle_is(path));
	expect_read(path, NULL, "objects/pods.json={};logs/a.log=;index.json=[1];");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

TEST_WITH(a_folder_with_something_in_it_and_names_that_lead_out_are_refused, setup, teardown)
{
	static const char *const names[] = {"",     "/a",   "../a", "a/../b", "a/", "a//b",
					    ".a/b", "a\nb", "a b",  "./a",    "ä"};
	auto_free char *path = str_below(*state, "new");
	struct bundle *bundle = NULL;
	struct err err = {0};

	put(path);
	assert_int_equal(bundle_create(path, 0, &bundle, &err), -1);
	assert_string_equal(err.reason, "BundleExists");
	assert_int_equal(bundle_create("/nosuch/folder/x", 0, &bundle, &err), -1);
	assert_string_equal(err.reason, "FileNotWritten");
	free(path);
	path = str_below(*state, "x.tgz");
	assert_int_equal(bundle_create(path, 0, &bundle, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(bundle_add(bundle, names[i], "x", 1, &err), -1);
		assert_string_equal(err.reason, "BadName");
	}
	assert_int_equal(bundle_add(bundle, "a", "x", BUNDLE_PART_MAX + (size_t)1, &err), -1);
	assert_string_equal(err.reason, "PartTooLarge");
	bundle_free(bundle);
	assert_int_equal(access(path, F_OK), -1);
}

TEST_WITH(nothing_in_a_folder_leads_out_of_it, setup, teardown)
{
	auto_free char *path = str_below(*state, "d"),
		       *link = str_below(path, "objects/nodes.json");
	auto_free char *notes = str_below(path, ".notes"), *folder = str_below(path, "more");
	auto_free char *pipe = str_below(path, "index.pipe");
	struct seen seen = {0};
	struct err err = {0};

	put(path);
	assert_int_equal(symlink("/etc/passwd", notes), 0);
	expect_read(path, "index.json", "index.json=[1];");
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(read_all(path, &seen, &err), -1);
	assert_string_equal(err.reason, "BadDump");
	assert_non_null(strstr(err.text, "objects/nodes.json: is a link"));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/etc", folder), 0);
	assert_int_equal(read_all(path, &seen, &err), -1);
	assert_non_null(strstr(err.text, "more: is a link"));
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(read_all(path, &seen, &err), -1);
	assert_non_null(strstr(err.text, "is no plain file"));
	strbuf_done(&seen.text);
}

/* ---- archives of others ---------------------------------------------------------------------- */

#define CORPUS "tests/fuzz/corpus/bundle/"
#define GOOD   "index.json={\"kind\":\"SupportDump…;objects/pods.json={}\n;"

TEST(archives_of_others_are_refused_for_what_is_in_them)
{
	static const struct {
		const char *file, *error; /* NULL: it is read */
	} cases[] = {
		{"good.tgz", NULL},
		{"gnu.tgz", NULL},
		{"pax.tgz", NULL},
		{"below-dot.tgz", NULL},
		{"hidden.tgz", NULL},
		{"leads-out.tgz", "../../orbweaver-dump/index.json: is no name"},
		{"leads-out-below.tgz", "../../index.json: is no name"},
		{"absolute.tgz", "/orbweaver-dump/index.json: is no name"},
		{"link.tgz", "objects/nodes.json: is a link"},
		{"hard-link.tgz", "objects/x.json: is a link"},
		{"pipe.tgz", "pipe: is no plain file"},
		{"device.tgz", "zero: is no plain file"},
		{"sparse-huge.tgz", "objects/huge.json: is larger than any"},
		{"long-name.tgz", "is no name"},
		{"long-name-pax.tgz", "is no name"},
		{"no-tar.gz", "not all of it"},
		{"empty.gz", "not all of it"},
		{"nothing", "not all of it"},
		{"json", "not all of it"},
		{"cut.tgz", "truncated gzip"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *path = str_below(CORPUS, cases[i].file);
		struct seen seen = {0};
		struct err err = {0};

		if (!cases[i].error) {
			expect_read(path, NULL, GOOD);
			continue;
		}
		if (read_all(path, &seen, &err) == 0 || !strstr(err.text, cases[i].error))
			fail_msg("%s: %s", path, err.text);
		assert_string_equal(err.reason, "BadDump");
		strbuf_done(&seen.text);
	}
}

/* Whatever is missing at its end, or wrong in it. */
TEST_WITH(an_archive_that_is_cut_short_is_an_error_and_never_half_a_dump, setup, teardown)
{
	auto_free char *path = str_below(*state, "dump.tgz");
	auto_strbuf struct strbuf bytes = {0};
	struct err err = {0};

	put(path);
	assert_int_equal(fs_read(AT_FDCWD, path, 1 << 20, &bytes, &err), 0);
	/* Trailing zero blocks and the checksum of gzip are all that may be missing. */
	for (size_t len = 0; len < bytes.len; len++) {
		struct seen seen = {0};
		const struct bundle_reader reader = {wants, take_part, &seen};

		if (bundle_unpack(bytes.data, len, &reader, &err) == 0)
			assert_string_equal(strbuf_str(&seen.text),
					    "objects/pods.json={};logs/a.log=;index.json=[1];");
		else
			assert_string_equal(err.reason, "BadDump");
		strbuf_done(&seen.text);
	}
	assert_int_equal(fs_write_atomic(AT_FDCWD, path, bytes.data, bytes.len / 2, 0600, &err), 0);
	{
		struct seen seen = {0};

		assert_int_equal(read_all(path, &seen, &err), -1);
		assert_non_null(strstr(err.text, path));
		strbuf_done(&seen.text);
	}
}

TEST_WITH(other_files_are_no_bundles, setup, teardown)
{
	auto_free char *path = str_below(*state, "pods.yaml"), *pipe = str_below(*state, "pipe");
	struct err err = {0};

	assert_int_equal(fs_write_atomic(AT_FDCWD, path, "kind: List\n", 11, 0600, &err), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_false(bundle_is(path));
	assert_false(bundle_is(pipe));
	assert_false(bundle_is("/nosuch"));
	assert_false(bundle_is("-"));
}

// SPDX-License-Identifier: Apache-2.0
/* Log lines, read back through a pipe. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

static int pipe_fds[2];

static int open_pipe(void **state)
{
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
	log_set_fd(pipe_fds[1]);
	return log_configure("info", NULL);
}

static int close_pipe(void **state)
{
	log_set_fd(STDERR_FILENO);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	return 0;
}

/* All that was written since; "" when nothing. */
static const char *written(void)
{
	static char text[65536];
	ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* The one line that was written. Returns new. */
static json_t *line(void)
{
	const char *text = written();
	json_t *value;

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	value = json_loads(text, 0, NULL);
	assert_true(json_is_object(value));
	return value;
}

static const char *field(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

TEST_WITH(a_line_has_its_place_and_typed_fields, open_pipe, close_pipe)
{
	json_auto_t *got = NULL;
	const char *null = NULL;

	log_info("VFs created", F_STR("pf", "0000:03:00.0"), F_INT("vfs", INT64_MIN),
		 F_BOOL("rdma", true), F_STR("none", null));
	got = line();
	assert_int_equal(strlen(field(got, "time")), strlen("2026-01-31T10:00:00.000000Z"));
	assert_string_equal(field(got, "level"), "info");
	assert_string_equal(field(got, "module"), "tests/unit/base/log_test");
	assert_string_equal(field(got, "msg"), "VFs created");
	assert_string_equal(field(got, "pf"), "0000:03:00.0");
	assert_int_equal(json_integer_value(json_object_get(got, "vfs")), INT64_MIN);
	assert_true(json_is_true(json_object_get(got, "rdma")));
	assert_true(json_is_null(json_object_get(got, "none")));
}

TEST_WITH(an_error_gives_reason_and_error, open_pipe, close_pipe)
{
	struct err err = {0};
	json_auto_t *got = NULL;

	(void)err_set(&err, ERR_INVALID, "BadField", "vfs: too many");
	log_error("policy refused", F_ERR(&err));
	got = line();
	assert_string_equal(field(got, "level"), "error");
	assert_string_equal(field(got, "reason"), "BadField");
	assert_string_equal(field(got, "error"), "vfs: too many");
}

TEST_WITH(any_bytes_become_valid_json, open_pipe, close_pipe)
{
	char bytes[256];

	for (size_t i = 0; i < 255; i++)
		bytes[i] = (char)(i + 1);
	bytes[255] = '\0';
	for (size_t start = 0; start < 255; start++) {
		json_auto_t *got = NULL;

		log_info("bytes", F_STR("b", bytes + start));
		got = line();
		assert_non_null(field(got, "b"));
		if (bytes[start] > 0)
			assert_int_equal(field(got, "b")[0], bytes[start]);
	}
}

TEST_WITH(a_long_value_is_cut_between_characters, open_pipe, close_pipe)
{
	auto_strbuf struct strbuf b = {0};
	json_auto_t *got = NULL;

	strbuf_addc(&b, 'x');
	for (int i = 0; i < 5000; i++)
		strbuf_adds(&b, "ä");
	log_info("long", F_STR("b", b.data));
	got = line();
	assert_int_equal(strlen(field(got, "b")), 2047);
}

TEST_WITH(levels_below_the_configured_one_are_silent, open_pipe, close_pipe)
{
	log_debug("hidden");
	assert_string_equal(written(), "");
	assert_int_equal(log_configure("error", NULL), 0);
	log_warn("hidden");
	assert_string_equal(written(), "");
	log_error("shown");
	assert_string_not_equal(written(), "");
}

TEST_WITH(the_longest_path_wins, open_pipe, close_pipe)
{
	assert_int_equal(log_configure("lib=error,warn,lib/kube/watch=debug,lib/kube=info", NULL),
			 0);
	assert_true(log_enabled(LOG_LEVEL_DEBUG, "lib/kube/watch.c"));
	assert_true(log_enabled(LOG_LEVEL_DEBUG, "lib/kube/watch/part.c"));
	assert_false(log_enabled(LOG_LEVEL_DEBUG, "lib/kube/watch_decoder.c"));
	assert_true(log_enabled(LOG_LEVEL_INFO, "lib/kube/watch_decoder.c"));
	assert_false(log_enabled(LOG_LEVEL_WARN, "lib/base/log.c"));
	assert_false(log_enabled(LOG_LEVEL_INFO, "operator/main.c"));
	assert_true(log_enabled(LOG_LEVEL_WARN, "operator/main.c"));
}

TEST_WITH(a_bad_spec_changes_nothing_and_says_what_is_wrong, open_pipe, close_pipe)
{
	static const struct {
		const char *spec, *text;
	} cases[] = {
		{"", "log level \"\": \"\" must be debug, info, warn or error"},
		{"loud", "log level \"loud\": \"loud\" must be debug, info, warn or error"},
		{"debug,lib/kube=loud",
		 "log level \"lib/kube=loud\": \"loud\" must be debug, info, warn or error"},
		{"debug,", "log level \"\": \"\" must be debug, info, warn or error"},
		{"=debug", "log level \"=debug\": the module must have 1 to 63 characters"},
		{"a=debug,b=debug,c=debug,d=debug,e=debug,f=debug,g=debug,h=debug,i=debug,j=debug,"
		 "k=debug,l=debug,m=debug,n=debug,o=debug,p=debug,q=debug",
		 "log level \"q=debug\": there can be at most 16 modules"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_int_equal(log_configure(cases[i].spec, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadLogLevel");
		assert_string_equal(err.text, cases[i].text);
		assert_false(log_enabled(LOG_LEVEL_DEBUG, "a.c"));
		assert_true(log_enabled(LOG_LEVEL_INFO, "a.c"));
	}
}

TEST_WITH(a_reader_that_is_gone_or_slow_costs_lines_not_the_process, open_pipe, close_pipe)
{
	for (int i = 0; i < 2000; i++) {
		errno = EDOM;
		log_info("more than a pipe holds", F_INT("i", i));
		assert_int_equal(errno, EDOM);
	}
	log_set_fd(-1);
	log_info("nowhere");
}

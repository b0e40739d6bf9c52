// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"

#include "lib/http/health.h"

/*
 * What /readyz answers to the query parameter (NULL for none); the text lives until the next call.
 */
static const char *ask(struct health *h, const char *param, int *ret_status)
{
	static char text[512];
	const struct http_request req = {
		.method = HTTP_GET,
		.path = "/readyz",
		.query = &param,
		.n_query = param ? 1 : 0,
	};
	struct http_response resp = {.status = 200};

	health_handle(&req, &resp, h);
	snprintf(text, sizeof(text), "%s", strbuf_str(&resp.body));
	strbuf_done(&resp.body);
	*ret_status = resp.status;
	return text;
}

TEST(says_ok_when_nothing_fails)
{
	struct health *h = health_new();
	int status;

	assert_string_equal(ask(h, NULL, &status), "ok");
	assert_int_equal(status, 200);
	health_set(h, "cache", true, NULL);
	assert_string_equal(ask(h, NULL, &status), "ok");
	assert_int_equal(status, 200);
	assert_true(health_is_ok(h));
	health_free(h);
}

TEST(names_each_check_when_one_fails)
{
	struct health *h = health_new();
	int status;

	health_set(h, "cache", true, NULL);
	health_set(h, "lease", false, "not renewed for 12 s");
	health_set(h, "silent", false, NULL);
	assert_string_equal(ask(h, NULL, &status),
			    "[+]cache ok\n[-]lease failed: not renewed for 12 s\n"
			    "[-]silent failed\nreadyz check failed\n");
	assert_int_equal(status, 500);
	assert_false(health_is_ok(h));
	health_set(h, "lease", true, NULL);
	health_set(h, "silent", true, "a text that nobody sees");
	assert_string_equal(ask(h, NULL, &status), "ok");
	health_free(h);
}

TEST(lists_checks_when_asked_to_be_verbose)
{
	struct health *h = health_new();
	int status;

	health_set(h, "cache", true, NULL);
	assert_string_equal(ask(h, "verbose", &status), "[+]cache ok\nreadyz check passed\n");
	assert_int_equal(status, 200);
	assert_string_equal(ask(h, "verbose=1", &status), "[+]cache ok\nreadyz check passed\n");
	assert_string_equal(ask(h, "verbosity", &status), "ok");
	health_free(h);
}

TEST(leaves_out_what_it_is_told_to)
{
	struct health *h = health_new();
	int status;

	health_set(h, "lease", false, NULL);
	assert_string_equal(ask(h, "exclude=lease", &status), "ok");
	assert_int_equal(status, 200);
	ask(h, "exclude=leas", &status);
	assert_int_equal(status, 500);
	health_free(h);
}

TEST(tells_changes)
{
	struct health *h = health_new();

	assert_true(health_set(h, "cache", false, "a"));
	assert_false(health_set(h, "cache", false, "b"));
	assert_true(health_set(h, "cache", true, NULL));
	assert_false(health_set(h, "cache", true, NULL));
	health_free(h);
	health_free(NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* What an API server's answer to GET /version means: who waits, and who goes on. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "operator/server_version.h"

static struct server_version read_answer(int status, const char *body)
{
	const struct kube_response response = {
		.status = status, .body = body, .body_len = strlen(body)};
	struct err err = {0};

	if (status >= 200 && status < 300)
		return server_version_read(&response, NULL);
	if (status == 0)
		err_set(&err, ERR_TRANSIENT, "ConnectionLost", "lost");
	else
		(void)kube_status_err(status, body, strlen(body), &err);
	return server_version_read(&response, &err);
}

TEST(a_version_is_read)
{
	static const struct {
		const char *body, *text;
		int64_t minor;
	} rows[] = {
		{"{\"major\": \"1\", \"minor\": \"20\", \"gitVersion\": \"v1.20.2\"}", "v1.20.2",
		 20},
		{"{\"minor\": \"32+\", \"gitVersion\": \"v1.32.1-eks\"}", "v1.32.1-eks", 32},
		{"{\"minor\": 7}", "?", 0},
		{"<html>please log in</html>", "?", 0},
		{"", "?", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct server_version version = read_answer(200, rows[i].body);

		assert_true(version.is_there);
		assert_int_equal(version.minor, rows[i].minor);
		assert_string_equal(version.text, rows[i].text);
	}
}

TEST(a_refusal_is_an_answer_too)
{
	static const int refusals[] = {400, 403, 404, 405, 406, 410};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct server_version version = read_answer(refusals[i], "no");

		assert_true(version.is_there);
		assert_int_equal(version.minor, 0);
		assert_string_equal(version.text, "?");
		assert_int_equal(version.needs_proof, refusals[i] != 403);
	}
}

TEST(where_nothing_else_would_work_it_is_asked_again)
{
	static const int waits[] = {0, 302, 401, 407, 408, 429, 500, 502, 503, 504};

	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		assert_false(read_answer(waits[i], "").is_there);
}

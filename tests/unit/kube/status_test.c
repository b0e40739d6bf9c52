// SPDX-License-Identifier: Apache-2.0
/* What answers of the API server mean as errors. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "lib/kube/status.h"

TEST(the_servers_own_words_come_first)
{
	static const char body[] =
		"{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"it is there\"}";
	struct err err = {0};

	assert_int_equal(kube_status_err(409, body, strlen(body), &err), -1);
	assert_int_equal(err.class, ERR_CONFLICT);
	assert_string_equal(err.reason, "AlreadyExists");
	assert_string_equal(err.text, "it is there (HTTP 409)");
}

TEST(every_code_has_a_class_and_a_reason)
{
	static const struct {
		int code;
		enum err_class class;
		const char *reason;
	} cases[] = {
		{400, ERR_INVALID, "BadRequest"},
		{401, ERR_TRANSIENT, "Unauthorized"},
		{403, ERR_TRANSIENT, "Forbidden"},
		{404, ERR_TRANSIENT, "NotServed"},
		{405, ERR_INVALID, "MethodNotAllowed"},
		{406, ERR_INVALID, "NotAcceptable"},
		{409, ERR_CONFLICT, "Conflict"},
		{410, ERR_TRANSIENT, "Expired"},
		{413, ERR_INVALID, "RequestEntityTooLarge"},
		{415, ERR_INVALID, "UnsupportedMediaType"},
		{422, ERR_INVALID, "Invalid"},
		{429, ERR_TRANSIENT, "TooManyRequests"},
		{500, ERR_TRANSIENT, "InternalError"},
		{503, ERR_TRANSIENT, "ServiceUnavailable"},
		{504, ERR_TRANSIENT, "Timeout"},
		{302, ERR_TRANSIENT, "HttpError"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};

		assert_int_equal(kube_status_err(cases[i].code, NULL, 0, &err), -1);
		assert_int_equal(err.class, cases[i].class);
		assert_string_equal(err.reason, cases[i].reason);
	}
}

TEST(a_body_that_is_no_status_is_quoted_between_characters)
{
	char body[400];
	struct err err = {0};

	for (size_t i = 0; i < sizeof(body); i += 2)
		memcpy(body + i, "\xc3\xa9", 2);
	body[0] = '<';
	body[1] = '\n';
	assert_int_equal(kube_status_err(502, body, sizeof(body), &err), -1);
	assert_non_null(strstr(err.text, "HTTP 502: < \xc3\xa9"));
	assert_int_equal(str_clip(err.text, strlen(err.text), strlen(err.text)), strlen(err.text));
	assert_null(strchr(err.text, '\n'));
}

TEST(too_old_has_two_names)
{
	static const char *const reasons[] = {"Expired", "Gone"};
	struct err err = {0};

	for (size_t i = 0; i < 2; i++) {
		json_auto_t *status = json_pack("{s:s, s:i}", "reason", reasons[i], "code", 410);

		assert_int_equal(kube_status_object_err(status, &err), -1);
		assert_true(kube_err_is_expired(&err));
	}
	assert_false(kube_err_is_expired(NULL));
	assert_false(kube_err_is(NULL, "Gone"));
}

TEST(a_strange_status_object_is_an_internal_error)
{
	json_auto_t *odd = json_pack("{s:i, s:[], s:s}", "code", -7, "message", "reason", "");
	struct err err = {0};

	kube_status_object_err(odd, &err);
	assert_string_equal(err.reason, "InternalError");
	kube_status_object_err(NULL, &err);
	assert_string_equal(err.reason, "InternalError");
}

/* Nothing gets smaller when it is sent again. */
TEST(what_etcd_finds_too_large_is_invalid)
{
	static const char body[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":"
				   "\"etcdserver: request is too large\",\"code\":500}";
	struct err err = {0};

	(void)kube_status_err(500, body, strlen(body), &err);
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.reason, "RequestEntityTooLarge");
}

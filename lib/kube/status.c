// SPDX-License-Identifier: Apache-2.0
/*
 * metav1.Status to struct err. Reasons and codes: k8s.io/apimachinery, pkg/apis/meta/v1/types.go,
 * StatusReason.
 */
#include "lib/kube/status.h"

#include <assert.h>
#include <string.h>

#include "lib/json/json.h"

/* Bytes of an answer that a message quotes. */
#define QUOTE_MAX 200
/* No server is believed to want more. */
#define RETRY_AFTER_MAX_S 3600

static enum err_class class_of(int http_status)
{
	switch (http_status) {
	case 400:
	case 405:
	case 406:
	case 413:
	case 415:
	case 422:
		return ERR_INVALID;
	case 409:
		return ERR_CONFLICT;
	default:
		return ERR_TRANSIENT;
	}
}

static const char *reason_of(int http_status)
{
	switch (http_status) {
	case 400:
		return "BadRequest";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "NotServed";
	case 405:
		return "MethodNotAllowed";
	case 406:
		return "NotAcceptable";
	case 409:
		return "Conflict";
	case 410:
		return "Expired";
	case 413:
		return "RequestEntityTooLarge";
	case 415:
		return "UnsupportedMediaType";
	case 422:
		return "Invalid";
	case 429:
		return "TooManyRequests";
	case 500:
		return "InternalError";
	case 503:
		return "ServiceUnavailable";
	case 504:
		return "Timeout";
	default:
		return "HttpError";
	}
}

/*
 * An API group that is known, a resource in it that is not: the server names no object in the
 * details.
 */
static bool is_not_served(const json_t *status, const char *reason)
{
	return str_eq(reason, "NotFound") && !json_at(status, "details", "name");
}

/*
 * etcd's limit for one request: nothing that is sent again gets smaller. The API server passes the
 * words on as an internal error.
 */
static bool is_too_large(int http_status, const char *message)
{
	return http_status == 500 && strstr(message, "request is too large");
}

static int from_object(const json_t *status, int http_status, struct err *err)
{
	const char *reason = json_str_at(status, "reason");
	const char *message = json_str_at(status, "message");
	json_int_t seconds = json_integer_value(json_at(status, "details", "retryAfterSeconds"));

	if (str_empty(reason))
		reason = reason_of(http_status);
	if (is_not_served(status, reason))
		reason = "NotServed";
	if (str_empty(message))
		message = "the server gave no message";
	if (is_too_large(http_status, message))
		return err_set(err, ERR_INVALID, reason_of(413), "%s (HTTP 500)", message);
	(void)err_set(err, class_of(http_status), reason, "%s (HTTP %d)", message, http_status);
	if (err && seconds > 0)
		err->retry_after_ms =
			(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
	return -1;
}

int kube_status_object_err(const json_t *status, struct err *err)
{
	json_int_t code = json_integer_value(json_at(status, "code"));

	return from_object(status, code >= 100 && code <= 599 ? (int)code : 500, err);
}

int kube_status_err(int http_status, const char *body, size_t len, struct err *err)
{
	json_auto_t *status = json_parse(len ? body : "", len, NULL);

	if (status && str_eq(json_str_at(status, "kind"), "Status"))
		return from_object(status, http_status, err);
	if (http_status == 404)
		return err_set(err, ERR_TRANSIENT, "NotServed",
			       "the server has no such resource (HTTP 404)");
	return err_set(err, class_of(http_status), reason_of(http_status),
		       "the server answered HTTP %d: %.*s", http_status,
		       (int)str_clip(len ? body : "", len, QUOTE_MAX), len ? body : "");
}

bool kube_err_is(const struct err *err, const char *reason)
{
	assert(reason);
	return err && str_eq(err->reason, reason);
}

bool kube_err_is_expired(const struct err *err)
{
	return kube_err_is(err, "Expired") || kube_err_is(err, "Gone");
}

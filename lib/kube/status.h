// SPDX-License-Identifier: Apache-2.0
/* What an HTTP answer of the API server means as an error. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * Fill err from a status outside 2xx and its body (metav1.Status, or anything at all; may be
 * empty). Always -1.
 *
 * The reason is the API's (metav1.StatusReason) or one that fits the code. Classes: 400, 405, 406,
 * 413, 415, 422 ERR_INVALID; 409 ERR_CONFLICT; everything else ERR_TRANSIENT (permissions, kinds
 * and tokens can appear later). retry_after_ms is what details.retryAfterSeconds says.
 */
int kube_status_err(int http_status, const char *body, size_t len, struct err *err);

/* The same from a Status object inside a watch stream. */
int kube_status_object_err(const json_t *status, struct err *err);

/* The error is this API reason. err may be NULL. */
bool kube_err_is(const struct err *err, const char *reason);

/*
 * The resourceVersion asked for is too old: 410 as status code or as a watch's ERROR event
 * ("Expired", "Gone").
 */
bool kube_err_is_expired(const struct err *err);

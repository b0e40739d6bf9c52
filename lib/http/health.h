// SPDX-License-Identifier: Apache-2.0
/*
 * Named checks behind /healthz and /readyz, answered the way kube-apiserver answers them.
 *
 *	health_set(ready, "cache", false, "spidermultusconfigs not listed yet");
 *	…
 *	{ .path = "/readyz", .methods = HTTP_GET, .handle = health_handle, .arg = ready },
 *
 * All checks pass: 200 "ok". One fails: 500 and a line for each check ("[+]cache ok", "[-]lease
 * failed: not renewed"), the last line being "readyz check failed". `?verbose` gives the lines in
 * both cases, `?exclude=NAME` leaves a check out.
 */
#pragma once

#include <stdbool.h>

#include "lib/http/server.h"

struct health;

struct health *health_new(void);
/* Accepts NULL. */
void health_free(struct health *h);

/*
 * Say how `name` is; the first call adds the check, so a check that has to pass before we are ready
 * is set to false at the start. text: why not, one line; copied, may be NULL, not shown while ok.
 * Returns true when ok has changed (also for a new check), for a caller that logs changes.
 */
bool health_set(struct health *h, const char *name, bool ok, const char *text);

/* No check fails (also: there is none). */
bool health_is_ok(const struct health *h);

/* A route's handler; arg is the struct health. */
void health_handle(const struct http_request *req, struct http_response *resp, void *arg);

// SPDX-License-Identifier: Apache-2.0
/*
 * Metrics are for clients that the API server knows by the bearer token, and that may get the path
 * of the request. Asked with a TokenReview and a SubjectAccessReview, as controller-runtime does
 * (pkg/metrics/filters), so the same ClusterRoles and the same Prometheus settings serve.
 *
 *	401  no token, or one that the API server does not take
 *	403  somebody who may not
 *	503  the API server did not answer, or too many unknown tokens come at a time: nobody is let
 *           in for want of an answer
 *
 * An answer of the API server counts for a minute, a refusal for ten seconds. Reviews are few:
 * METRICS_ACCESS_AT_ONCE for tokens that were not good before; strangers cannot keep those out that
 * were.
 */
#pragma once

#include "lib/http/server.h"
#include "lib/kube/client.h"

enum {
	METRICS_ACCESS_GOOD_MS = 60000,
	METRICS_ACCESS_BAD_MS = 10000,
	/* Reviews of tokens that were never good that are under way at a time. */
	METRICS_ACCESS_AT_ONCE = 4,
	/* Tokens that are remembered. */
	METRICS_ACCESS_MAX = 64,
	/* Requests that wait for the review of the same token. */
	METRICS_ACCESS_WAITING_MAX = 16,
};

struct metrics_access;

/* client is borrowed. */
struct metrics_access *metrics_access_new(struct kube_client *client);
/* Requests that wait get 503. Before the client; the server that asks has to be closed. */
void metrics_access_free(struct metrics_access *access);

/* For a route. */
const struct http_gate *metrics_access_gate(const struct metrics_access *access);

// SPDX-License-Identifier: Apache-2.0
/*
 * Attempts of calls, counted under client-go's names, for dashboards that exist:
 * https://github.com/kubernetes/component-base/blob/v0.31.0/metrics/prometheus/restclient/metrics.go
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/metrics.h"
#include "lib/kube/auth/config.h"

/* Embedded. */
struct attempts {
	char *host; /* a label */
	struct metric *requests, *duration, *retries, *waited;
};

/* metrics: borrowed, may be NULL. */
void attempts_init(struct attempts *attempts, const struct kube_config *config,
		   struct metrics *metrics);
void attempts_done(struct attempts *attempts);

/* An attempt begins; it waited for room that long. */
void attempts_begin(const struct attempts *attempts, const char *method, int64_t waited_us);

/*
 * It has ended, or is a stream that was opened. status 0: no answer came. again: it was not the
 * first one of its call. took_us -1: how long a stream is open is not latency.
 */
void attempts_count(const struct attempts *attempts, const char *method, int status, bool again,
		    int64_t took_us);

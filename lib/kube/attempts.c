// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/attempts.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

void attempts_init(struct attempts *attempts, const struct kube_config *config,
		   struct metrics *metrics)
{
	static const double bounds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};

	attempts->host = str_printf(strchr(config->host, ':') ? "[%s]:%u" : "%s:%u", config->host,
				    config->port);
	attempts->requests =
		metric_counter(metrics, "rest_client_requests_total",
			       "Attempts to send a request to the API server.", "code,method,host");
	attempts->duration =
		metric_histogram(metrics, "rest_client_request_duration_seconds",
				 "From the start of an attempt to its end; not of watches.",
				 "verb,host", bounds, ARRAY_LEN(bounds));
	attempts->retries = metric_counter(metrics, "rest_client_request_retries_total",
					   "Attempts that were not the first one of their call.",
					   "code,verb,host");
	attempts->waited = metric_histogram(metrics, "rest_client_rate_limiter_duration_seconds",
					    "How long an attempt waited until it was sent.",
					    "verb,host", bounds, ARRAY_LEN(bounds));
}

void attempts_done(struct attempts *attempts)
{
	mem_free(attempts->host);
}

void attempts_begin(const struct attempts *attempts, const char *method, int64_t waited_us)
{
	metric_observe(attempts->waited, (double)waited_us / 1e6, method, attempts->host);
}

void attempts_count(const struct attempts *attempts, const char *method, int status, bool again,
		    int64_t took_us)
{
	char code[12] = "<error>"; /* client-go's word for it */

	if (status)
		snprintf(code, sizeof(code), "%d", status);
	metric_add(attempts->requests, 1, code, method, attempts->host);
	if (again)
		metric_add(attempts->retries, 1, code, method, attempts->host);
	if (took_us >= 0)
		metric_observe(attempts->duration, (double)took_us / 1e6, method, attempts->host);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Counters, gauges and histograms, and their Prometheus text (exposition format 0.0.4).
 *
 *	struct metric *requests = metric_counter(registry, "orbweaver_kube_requests_total",
 *						 "Requests sent to the API server.", "verb,code");
 *	metric_add(requests, 1, "get", "200");
 *
 * An update of a known set of label values is a hash and a comparison: no allocation, no
 * formatting. A registry of NULL makes metrics of NULL, and updates of those do nothing, so
 * libraries can count without asking whether anyone looks.
 *
 * Format: https://prometheus.io/docs/instrumenting/exposition_formats/ Names:
 * https://prometheus.io/docs/practices/naming/
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/metrics_text.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The most labels of one metric. */
#define METRIC_LABELS_MAX 6
/*
 * The most series (different sets of label values) of one metric. What comes after is counted in
 * one more series that has "other" for each label; gauges drop it. metrics_overflow_total{metric}
 * counts such updates.
 */
#define METRIC_SERIES_MAX 1000

struct metrics; /* the registry; it owns its metrics */
struct metric;  /* all series of one name */

struct metrics *metrics_new(void);
/*
 * For a process whose metrics are shown with those of another (metrics_append): its counter of
 * overflows is PREFIX_metrics_overflow_total.
 */
struct metrics *metrics_new_part(const char *prefix);
/* Accepts NULL. All metrics of the registry end with it. */
void metrics_free(struct metrics *r);

/*
 * Make a metric; it lives as long as the registry. name and help are copied. labels: names joined
 * by commas ("verb,code"), "" for none. A metric without labels is rendered with 0 from the start.
 *
 * A second call with the same name returns the first metric, so that several users of a library
 * share it; type and labels have to agree (anything else, and an impossible name, is a bug:
 * assertion).
 */
struct metric *metric_counter(struct metrics *r, const char *name, const char *help,
			      const char *labels);
struct metric *metric_gauge(struct metrics *r, const char *name, const char *help,
			    const char *labels);

/*
 * bounds: upper bounds of the buckets, ascending, without the infinite one; copied. METRIC_SECONDS
 * fits most durations: 1 ms to 60 s.
 */
struct metric *metric_histogram(struct metrics *r, const char *name, const char *help,
				const char *labels, const double *bounds, size_t n_bounds);

extern const double metric_seconds[];
extern const size_t metric_seconds_len;
#define METRIC_SECONDS metric_seconds, metric_seconds_len

/*
 * Updates. Label values follow as strings, one for each label in the order of registration, none of
 * them NULL (a wrong number is a bug: assertion). Bytes that are not UTF-8 are replaced.
 *
 * metric_add      counter (by >= 0) or gauge
 * metric_set      gauge, or a counter whose total is kept elsewhere (a collect callback copies it)
 * metric_observe  histogram
 * metric_remove   forget one series, of an object that is gone
 * metric_get      the value of a counter or gauge, the number of observations of a histogram; 0
 * when the series does not exist
 */
#define metric_add(m, by, ...)        metric_add_values(m, by, METRIC_VALUES_(__VA_ARGS__))
#define metric_set(m, value, ...)     metric_set_values(m, value, METRIC_VALUES_(__VA_ARGS__))
#define metric_observe(m, value, ...) metric_observe_values(m, value, METRIC_VALUES_(__VA_ARGS__))
#define metric_remove(m, ...)         metric_remove_values(m, METRIC_VALUES_(__VA_ARGS__))
#define metric_get(m, ...)            metric_get_values(m, METRIC_VALUES_(__VA_ARGS__))

/* The same with the label values in an array of n. */
void metric_add_values(struct metric *m, double by, const char *const *values, size_t n);
void metric_set_values(struct metric *m, double value, const char *const *values, size_t n);
void metric_observe_values(struct metric *m, double value, const char *const *values, size_t n);
void metric_remove_values(struct metric *m, const char *const *values, size_t n);
double metric_get_values(const struct metric *m, const char *const *values, size_t n);

/* Forget all series; for a collect callback that writes the whole set. */
void metric_clear(struct metric *m);

/*
 * Call collect(arg) before each rendering, to set gauges whose value is known elsewhere. Who
 * registers, owns arg, and takes the callback back before arg ends.
 */
void metrics_on_collect(struct metrics *r, void (*collect)(void *arg), void *arg);
void metrics_off_collect(struct metrics *r, void (*collect)(void *arg), void *arg);

/*
 * process_resident_memory_bytes, process_virtual_memory_bytes, process_cpu_seconds_total,
 * process_open_fds, process_max_fds, process_start_time_seconds: read from /proc/self at each
 * rendering. Call once.
 */
void metrics_add_process(struct metrics *r);

/*
 * Metrics of another process of the same program, `of`, as metrics_render() there has written them,
 * are shown after these from now on, in place of what it wrote before; NULL: no more. Copied. No
 * name may be in two of them. metrics_text.h helps who makes the text otherwise.
 */
void metrics_append(struct metrics *r, const char *of, const char *text);

/*
 * Append the text of all metrics: in the order of registration, series in the order of their first
 * update. Besides HELP and TYPE each metric with labels has a comment "# LABELS name verb,code".
 */
void metrics_render(struct metrics *r, struct strbuf *out);

/* The label values as pointer and number; the leading NULL makes an empty list possible. */
#define METRIC_VALUES_(...)                                                                        \
	(const char *const[]){NULL __VA_OPT__(, ) __VA_ARGS__} + 1,                                \
		ARRAY_LEN(((const char *const[]){NULL __VA_OPT__(, ) __VA_ARGS__})) - 1

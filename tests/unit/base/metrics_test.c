// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/metrics.h"

/*
 * The rendered text without the registry's own counter, which stands first; lives until the next
 * call.
 */
static const char *rendered(struct metrics *r)
{
	static struct strbuf out;
	static const char *const own =
		"# HELP metrics_overflow_total Updates that met a metric with too many series.\n"
		"# TYPE metrics_overflow_total counter\n"
		"# LABELS metrics_overflow_total metric\n";

	strbuf_done(&out);
	metrics_render(r, &out);
	assert_true(str_starts(out.data, own));
	strbuf_consume(&out, strlen(own));
	return strbuf_str(&out);
}

TEST(renders_counters_and_gauges)
{
	struct metrics *r = metrics_new();
	struct metric *requests = metric_counter(r, "requests_total", "Requests.", "verb,code");
	struct metric *depth = metric_gauge(r, "queue_depth", "Depth.", "");

	assert_string_equal(rendered(r),
			    "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
			    "# LABELS requests_total verb,code\n"
			    "# HELP queue_depth Depth.\n# TYPE queue_depth gauge\nqueue_depth 0\n");
	metric_add(requests, 1, "get", "200");
	metric_add(requests, 1, "put", "409");
	metric_add(requests, 2, "get", "200");
	metric_set(depth, 7);
	metric_add(depth, -2.5);
	assert_string_equal(
		rendered(r),
		"# HELP requests_total Requests.\n# TYPE requests_total counter\n"
		"# LABELS requests_total verb,code\n"
		"requests_total{verb=\"get\",code=\"200\"} 3\n"
		"requests_total{verb=\"put\",code=\"409\"} 1\n"
		"# HELP queue_depth Depth.\n# TYPE queue_depth gauge\nqueue_depth 4.5\n");
	assert_true(metric_get(requests, "get", "200") == 3);
	assert_true(metric_get(requests, "get", "404") == 0);
	metrics_free(r);
}

TEST(writes_heads_and_labels_for_others)
{
	auto_strbuf struct strbuf out = {0};

	metrics_text_head(&out, "a_total", "counter", "Two\nlines.", "b,c");
	metrics_text_head(&out, "d", "gauge", "None.", "");
	strbuf_adds(&out, "a_total{");
	metrics_text_label(&out, "b", "\"x\"}\n# \\");
	metrics_text_label(&out, "c", "\xff");
	assert_string_equal(
		out.data,
		"# HELP a_total Two\\nlines.\n# TYPE a_total counter\n# LABELS a_total b,c\n"
		"# HELP d None.\n# TYPE d gauge\n"
		"a_total{b=\"\\\"x\\\"}\\n# \\\\\",c=\"?\"");
}

TEST(tells_label_values_apart_wherever_they_are_cut)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "", "a,b");

	metric_add(m, 1, "xy", "z");
	metric_add(m, 2, "x", "yz");
	metric_add(m, 4, "xyz", "");
	metric_add(m, 8, "", "xyz");
	assert_true(metric_get(m, "xy", "z") == 1);
	assert_true(metric_get(m, "x", "yz") == 2);
	assert_true(metric_get(m, "xyz", "") == 4);
	assert_true(metric_get(m, "", "xyz") == 8);
	metrics_free(r);
}

TEST(renders_histograms_cumulatively)
{
	static const double bounds[] = {0.1, 1};
	struct metrics *r = metrics_new();
	struct metric *m = metric_histogram(r, "took_seconds", "Time.", "kind", bounds, 2);

	metric_observe(m, 0.05, "nad");
	metric_observe(m, 0.1, "nad"); /* a bound belongs to its bucket */
	metric_observe(m, 0.5, "nad");
	metric_observe(m, 20, "nad");
	assert_string_equal(rendered(r),
			    "# HELP took_seconds Time.\n# TYPE took_seconds histogram\n"
			    "# LABELS took_seconds kind\n"
			    "took_seconds_bucket{kind=\"nad\",le=\"0.1\"} 2\n"
			    "took_seconds_bucket{kind=\"nad\",le=\"1\"} 3\n"
			    "took_seconds_bucket{kind=\"nad\",le=\"+Inf\"} 4\n"
			    "took_seconds_sum{kind=\"nad\"} 20.65\n"
			    "took_seconds_count{kind=\"nad\"} 4\n");
	assert_true(metric_get(m, "nad") == 4);
	metrics_free(r);
}

TEST(writes_numbers_that_read_back_the_same)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "m 0\n"},
		{-3, "m -3\n"},
		{0.1, "m 0.1\n"},
		{1.0 / 3, "m 0.3333333333333333\n"},
		{1e9, "m 1000000000\n"},
		{1e300, "m 1e+300\n"},
		{__builtin_inf(), "m +Inf\n"},
		{-__builtin_inf(), "m -Inf\n"},
		{__builtin_nan(""), "m NaN\n"},
	};
	struct metrics *r = metrics_new();
	struct metric *m = metric_gauge(r, "m", "", "");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		metric_set(m, cases[i].value);
		assert_non_null(strstr(rendered(r), cases[i].text));
	}
	metrics_free(r);
}

TEST(escapes_what_the_format_reserves)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "a \\ and\na \"line\"", "l");

	metric_add(m, 1, "a\\b\"c\nd");
	assert_string_equal(rendered(r), "# HELP m a \\\\ and\\na \"line\"\n# TYPE m counter\n"
					 "# LABELS m l\n"
					 "m{l=\"a\\\\b\\\"c\\nd\"} 1\n");
	metrics_free(r);
}

TEST(makes_foreign_label_values_fit)
{
	char longer[2 * METRIC_VALUE_MAX + 1];
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "", "l");

	metric_add(m, 1, "a\xff\xc3\xa4\xed\xa0\x80\xc0\x80");
	assert_non_null(strstr(rendered(r), "m{l=\"a?\xc3\xa4?????\"} 1\n"));
	metric_add(m, 1,
		   "a\xfe\xc3\xa4\xed\xa0\x80\xc0\x80"); /* shown the same, so it is the same */
	assert_non_null(strstr(rendered(r), "m{l=\"a?\xc3\xa4?????\"} 2\n"));

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	metric_add(m, 1, longer);
	longer[METRIC_VALUE_MAX] = '\0';
	assert_true(metric_get(m, longer) == 1);
	memcpy(&longer[METRIC_VALUE_MAX - 1], "\xc3\xa4",
	       3); /* cut between characters, not inside one */
	metric_add(m, 1, longer);
	longer[METRIC_VALUE_MAX - 1] = '\0';
	assert_true(metric_get(m, longer) == 1);
	metrics_free(r);
}

TEST(bounds_the_number_of_series)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "", "l"), *g = metric_gauge(r, "g", "", "l");
	struct metric *overflow = metric_counter(r, "metrics_overflow_total", "", "metric");

	for (int i = 0; i < METRIC_SERIES_MAX + 50; i++) {
		char value[16];

		snprintf(value, sizeof(value), "v%d", i);
		metric_add(m, 1, value);
		metric_set(g, i, value);
		assert_true(metric_get(m, value) == (i < METRIC_SERIES_MAX ? 1 : 0));
	}
	assert_true(metric_get(m, "other") == 50);
	assert_true(metric_get(g, "other") == 0);
	assert_true(metric_get(overflow, "m") == 50);
	assert_true(metric_get(overflow, "g") == 50);
	metric_add(m, 1, "v7"); /* those that are known go on */
	assert_true(metric_get(m, "v7") == 2);
	metrics_free(r);
}

TEST(forgets_series)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_gauge(r, "m", "", "l");

	for (int i = 0; i < 100; i++) {
		char value[16];

		snprintf(value, sizeof(value), "v%d", i);
		metric_set(m, i, value);
	}
	for (int i = 0; i < 100; i += 2) {
		char value[16];

		snprintf(value, sizeof(value), "v%d", i);
		metric_remove(m, value);
	}
	metric_remove(m, "unknown");
	for (int i = 0; i < 100; i++) {
		char value[16];

		snprintf(value, sizeof(value), "v%d", i);
		assert_true(metric_get(m, value) == (i % 2 ? i : 0));
	}
	assert_null(strstr(rendered(r), "v10\""));
	metric_clear(m);
	assert_string_equal(rendered(r), "# HELP m \n# TYPE m gauge\n# LABELS m l\n");
	metric_set(m, 1, "v1");
	assert_true(metric_get(m, "v1") == 1);
	metrics_free(r);
}

TEST(a_second_registration_is_the_same_metric)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "first", "a,b");

	assert_ptr_equal(metric_counter(r, "m", "second", "a,b"), m);
	assert_ptr_not_equal(metric_counter(r, "n", "", "a,b"), m);
	metrics_free(r);
}

TEST(without_a_registry_updates_do_nothing)
{
	struct metric *m = metric_counter(NULL, "m", "", "a");

	assert_null(m);
	metric_add(m, 1, "x");
	metric_set(m, 1, "x");
	metric_observe(m, 1, "x");
	metric_remove(m, "x");
	metric_clear(m);
	assert_true(metric_get(m, "x") == 0);
	metrics_on_collect(NULL, NULL, NULL);
	metrics_off_collect(NULL, NULL, NULL);
	metrics_add_process(NULL);
	metrics_free(NULL);
}

static void set_from_elsewhere(void *arg)
{
	metric_add(arg, 1);
}

TEST(asks_collectors_at_each_rendering)
{
	struct metrics *r = metrics_new();
	struct metric *a = metric_gauge(r, "a", "", ""), *b = metric_gauge(r, "b", "", "");

	metrics_on_collect(r, set_from_elsewhere, a);
	metrics_on_collect(r, set_from_elsewhere, b);
	rendered(r);
	metrics_off_collect(r, set_from_elsewhere, a);
	rendered(r);
	assert_true(metric_get(a) == 1);
	assert_true(metric_get(b) == 2);
	metrics_free(r);
}

TEST(another_process_s_metrics_come_after_ours)
{
	struct metrics *r = metrics_new();
	struct metric *m = metric_counter(r, "m", "", "");
	char theirs[] = "theirs 7\n";

	metrics_append(r, "p", theirs);
	theirs[0] = 'T'; /* it was copied */
	assert_string_equal(rendered(r), "# HELP m \n# TYPE m counter\nm 0\ntheirs 7\n");
	metrics_append(r, "p", "theirs 8\n");
	metric_add(m, 1);
	assert_string_equal(rendered(r), "# HELP m \n# TYPE m counter\nm 1\ntheirs 8\n");
	metrics_append(r, "q", "others 1\n");
	assert_string_equal(rendered(r), "# HELP m \n# TYPE m counter\nm 1\ntheirs 8\nothers 1\n");
	metrics_append(r, "q", NULL);
	metrics_append(r, "p", NULL);
	assert_string_equal(rendered(r), "# HELP m \n# TYPE m counter\nm 1\n");
	metrics_append(NULL, "p", "theirs 9\n");
	metrics_append(r, "p", "freed with the registry");
	metrics_free(r);
}

TEST(a_part_counts_its_overflows_under_a_name_of_its_own)
{
	struct metrics *r = metrics_new_part("part");
	struct metric *m = metric_counter(r, "m", "", "l");
	auto_strbuf struct strbuf out = {0};

	for (int i = 0; i < METRIC_SERIES_MAX + 3; i++) {
		char value[16];

		snprintf(value, sizeof(value), "v%d", i);
		metric_add(m, 1, value);
	}
	metrics_render(r, &out);
	assert_true(str_starts(out.data, "# HELP part_metrics_overflow_total "));
	assert_non_null(strstr(out.data, "\npart_metrics_overflow_total{metric=\"m\"} 3\n"));
	assert_null(strstr(out.data, "\nmetrics_overflow_total"));
	metrics_free(r);
}

static double value_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	return strtod(at + strlen(name), NULL);
}

TEST(tells_about_the_process)
{
	struct metrics *r = metrics_new();
	const char *text;
	double fds;
	int fd;

	metrics_add_process(r);
	text = rendered(r);
	assert_true(value_of(text, "\nprocess_resident_memory_bytes ") > 100000);
	assert_true(value_of(text, "\nprocess_virtual_memory_bytes ") >
		    value_of(text, "\nprocess_resident_memory_bytes "));
	assert_true(value_of(text, "\nprocess_cpu_seconds_total ") >= 0);
	assert_true(value_of(text, "\nprocess_max_fds ") > 0);
	assert_true(value_of(text, "\nprocess_start_time_seconds ") <= (double)time(NULL) + 1);
	assert_true(value_of(text, "\nprocess_start_time_seconds ") > 1e9);
	fds = value_of(text, "\nprocess_open_fds ");
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(value_of(rendered(r), "\nprocess_open_fds ") == fds + 1);
	close(fd);
	metrics_free(r);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A registry is a list of metrics, a metric a list of series with a hash index over their label
 * values. Updates go through series_find, which allocates only when it meets a set of values for
 * the first time.
 */
#include "lib/base/metrics.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "lib/base/mem.h"

const double metric_seconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
				 0.5,   1,      2.5,   5,    10,    30,   60};
const size_t metric_seconds_len = ARRAY_LEN(metric_seconds);

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_HISTOGRAM,
};

struct series {
	uint64_t hash;
	char *values;   /* the label values one after the other, each with its NUL */
	double value;   /* counter, gauge; sum of a histogram */
	uint64_t count; /* histogram: observations */
	/* Histogram: for each bound, observations that fit it but not the one before. */
	uint64_t *buckets;
};

struct metric {
	struct metrics *registry;
	enum metric_type type;
	char *name;
	char *help;
	char *label_names[METRIC_LABELS_MAX];
	size_t n_labels;
	double *bounds;
	size_t n_bounds;
	struct series **series; /* in the order of their first update */
	size_t n_series;
	size_t cap_series;
	uint32_t *index; /* open addressing: position in series + 1, 0 for free */
	size_t cap_index;
};

struct collector {
	void (*collect)(void *arg);
	void *arg;
};

/* What another process has written. */
struct part {
	char *of, *text;
};

struct metrics {
	struct metric **all;
	size_t n;
	struct collector *collectors;
	size_t n_collectors;
	struct metric *overflow;
	struct part *parts;
	size_t n_parts;
};

static void series_free(struct series *s)
{
	mem_free(s->values);
	mem_free(s->buckets);
	mem_free(s);
}

static void metric_free(struct metric *m)
{
	metric_clear(m);
	for (size_t i = 0; i < m->n_labels; i++)
		mem_free(m->label_names[i]);
	mem_free(m->name);
	mem_free(m->help);
	mem_free(m->bounds);
	mem_free(m->series);
	mem_free(m->index);
	mem_free(m);
}

static struct metrics *new_with_overflow(const char *name)
{
	struct metrics *r = mem_new(struct metrics);

	r->overflow = metric_counter(r, name, "Updates that met a metric with too many series.",
				     "metric");
	return r;
}

struct metrics *metrics_new(void)
{
	return new_with_overflow("metrics_overflow_total");
}

struct metrics *metrics_new_part(const char *prefix)
{
	auto_free char *name = str_printf("%s_metrics_overflow_total", prefix);

	return new_with_overflow(name);
}

void metrics_free(struct metrics *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		metric_free(r->all[i]);
	mem_free(r->all);
	mem_free(r->collectors);
	for (size_t i = 0; i < r->n_parts; i++) {
		mem_free(r->parts[i].of);
		mem_free(r->parts[i].text);
	}
	mem_free(r->parts);
	mem_free(r);
}

/* ---- making metrics -------------------------------------------------------------------------- */

/* [a-zA-Z_:][a-zA-Z0-9_:]*, for labels without the colon. */
static bool is_name(const char *s, size_t len, bool is_label)
{
	if (len == 0 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && (is_label || s[i] != ':'))
			return false;
	return true;
}

static bool has_labels(const struct metric *m, const char *labels)
{
	for (size_t i = 0; i < m->n_labels; i++) {
		size_t len = strcspn(labels, ",");

		if (strlen(m->label_names[i]) != len || memcmp(m->label_names[i], labels, len) != 0)
			return false;
		labels += len;
		if (*labels)
			labels++;
	}
	return *labels == '\0';
}

static struct metric *metric_find(const struct metrics *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->all[i]->name, name) == 0)
			return r->all[i];
	return NULL;
}

static struct series *series_find(struct metric *m, const char *const *values, size_t n,
				  bool create);

static struct metric *metric_make(struct metrics *r, enum metric_type type, const char *name,
				  const char *help, const char *labels, const double *bounds,
				  size_t n_bounds)
{
	struct metric *m;

	if (!r)
		return NULL;
	m = metric_find(r, name);
	if (m) {
		assert(m->type == type && has_labels(m, labels) && m->n_bounds == n_bounds);
		return m;
	}
	assert(is_name(name, strlen(name), false));
	m = mem_new(struct metric);
	m->registry = r;
	m->type = type;
	m->name = str_dup(name);
	m->help = str_dup(help);
	while (*labels) {
		size_t len = strcspn(labels, ",");

		assert(m->n_labels < METRIC_LABELS_MAX);
		assert(is_name(labels, len, true));
		m->label_names[m->n_labels++] = str_ndup(labels, len);
		labels += len;
		if (*labels)
			labels++;
	}
	if (n_bounds > 0)
		m->bounds = mem_dup(bounds, n_bounds * sizeof(*bounds));
	m->n_bounds = n_bounds;
	r->all = mem_realloc(r->all, (r->n + 1) * sizeof(struct metric *));
	r->all[r->n++] = m;
	if (m->n_labels == 0)
		series_find(m, (const char *const[]){""}, 0, true);
	return m;
}

struct metric *metric_counter(struct metrics *r, const char *name, const char *help,
			      const char *labels)
{
	return metric_make(r, METRIC_COUNTER, name, help, labels, NULL, 0);
}

struct metric *metric_gauge(struct metrics *r, const char *name, const char *help,
			    const char *labels)
{
	return metric_make(r, METRIC_GAUGE, name, help, labels, NULL, 0);
}

struct metric *metric_histogram(struct metrics *r, const char *name, const char *help,
				const char *labels, const double *bounds, size_t n_bounds)
{
	for (size_t i = 1; i < n_bounds; i++)
		assert(bounds[i - 1] < bounds[i]);
	return metric_make(r, METRIC_HISTOGRAM, name, help, labels, bounds, n_bounds);
}

/* ---- series ---------------------------------------------------------------------------------- */

static uint64_t hash_values(const char *const *values, size_t n)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a, over the values with their NULs */

	for (size_t i = 0; i < n; i++) {
		const char *s = values[i];

		do
			hash = (hash ^ (unsigned char)*s) * 1099511628211u;
		while (*s++);
	}
	return hash;
}

static bool has_values(const struct series *s, const char *const *values, size_t n)
{
	const char *own = s->values;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(own);

		if (strcmp(own, values[i]) != 0)
			return false;
		own += len + 1;
	}
	return true;
}

static struct series *index_lookup(const struct metric *m, uint64_t hash, const char *const *values)
{
	if (m->cap_index == 0)
		return NULL;
	for (size_t i = hash & (m->cap_index - 1); m->index[i]; i = (i + 1) & (m->cap_index - 1)) {
		struct series *s = m->series[m->index[i] - 1];

		if (s->hash == hash && has_values(s, values, m->n_labels))
			return s;
	}
	return NULL;
}

static void index_put(struct metric *m, uint64_t hash, size_t position)
{
	size_t i = hash & (m->cap_index - 1);

	while (m->index[i])
		i = (i + 1) & (m->cap_index - 1);
	m->index[i] = (uint32_t)position + 1;
}

static void index_rebuild(struct metric *m, size_t cap)
{
	mem_free(m->index);
	m->index = mem_calloc(cap, sizeof(*m->index));
	m->cap_index = cap;
	for (size_t i = 0; i < m->n_series; i++)
		index_put(m, m->series[i]->hash, i);
}

static struct series *series_add(struct metric *m, uint64_t hash, const char *const *values)
{
	struct series *s = mem_new(struct series);
	struct strbuf joined = {0};

	for (size_t i = 0; i < m->n_labels; i++)
		strbuf_add(&joined, values[i], strlen(values[i]) + 1);
	s->values = strbuf_take(&joined);
	s->hash = hash;
	if (m->type == METRIC_HISTOGRAM)
		s->buckets = mem_calloc(m->n_bounds + 1, sizeof(*s->buckets));
	if (m->n_series == m->cap_series) {
		m->cap_series = m->cap_series ? m->cap_series * 2 : 1;
		m->series = mem_realloc(m->series, m->cap_series * sizeof(struct series *));
	}
	m->series[m->n_series++] = s;
	if (m->n_series * 4 > m->cap_index * 3)
		index_rebuild(m, m->cap_index ? m->cap_index * 2 : 4);
	else
		index_put(m, hash, m->n_series - 1);
	return s;
}

static struct series *series_overflow(struct metric *m)
{
	static const char *const others[METRIC_LABELS_MAX] = {"other", "other", "other",
							      "other", "other", "other"};
	uint64_t hash = hash_values(others, m->n_labels);
	struct series *s;

	if (m != m->registry->overflow)
		metric_add(m->registry->overflow, 1, m->name);
	if (m->type == METRIC_GAUGE)
		return NULL; /* a sum of gauges would mean nothing */
	s = index_lookup(m, hash, others);
	return s ? s : series_add(m, hash, others);
}

/* The rare way: values that are met for the first time, or that are not shown as they are. */
static struct series *series_find_clean(struct metric *m, const char *const *values, bool create)
{
	auto_strbuf struct strbuf joined = {0};
	const char *clean[METRIC_LABELS_MAX];
	size_t at[METRIC_LABELS_MAX];
	struct series *s;
	uint64_t hash;

	for (size_t i = 0; i < m->n_labels; i++) {
		at[i] = joined.len;
		metrics_text_value(&joined, values[i]);
		strbuf_addc(&joined, '\0');
	}
	for (size_t i = 0; i < m->n_labels; i++)
		clean[i] = joined.data + at[i];
	hash = hash_values(clean, m->n_labels);
	s = index_lookup(m, hash, clean);
	if (s || !create)
		return s;
	return m->n_series < METRIC_SERIES_MAX ? series_add(m, hash, clean) : series_overflow(m);
}

static struct series *series_find(struct metric *m, const char *const *values, size_t n,
				  bool create)
{
	struct series *s;

	assert(n == m->n_labels);
	s = index_lookup(m, hash_values(values, n), values);
	return s ? s : series_find_clean(m, values, create);
}

/* ---- updates --------------------------------------------------------------------------------- */

void metric_add_values(struct metric *m, double by, const char *const *values, size_t n)
{
	struct series *s;

	if (!m)
		return;
	assert(m->type == METRIC_GAUGE || (m->type == METRIC_COUNTER && by >= 0));
	s = series_find(m, values, n, true);
	if (s)
		s->value += by;
}

void metric_set_values(struct metric *m, double value, const char *const *values, size_t n)
{
	struct series *s;

	if (!m)
		return;
	assert(m->type != METRIC_HISTOGRAM);
	s = series_find(m, values, n, true);
	if (s)
		s->value = value;
}

void metric_observe_values(struct metric *m, double value, const char *const *values, size_t n)
{
	struct series *s;
	size_t i = 0;

	if (!m)
		return;
	assert(m->type == METRIC_HISTOGRAM);
	s = series_find(m, values, n, true);
	while (i < m->n_bounds && !(value <= m->bounds[i]))
		i++;
	s->buckets[i]++;
	s->count++;
	s->value += value;
}

double metric_get_values(const struct metric *m, const char *const *values, size_t n)
{
	const struct series *s;

	assert(values || n == 0);
	if (!m)
		return 0;
	s = series_find((struct metric *)m, values, n, false);
	if (!s)
		return 0;
	return m->type == METRIC_HISTOGRAM ? (double)s->count : s->value;
}

void metric_remove_values(struct metric *m, const char *const *values, size_t n)
{
	struct series *s;
	size_t i = 0;

	assert(values || n == 0);
	if (!m)
		return;
	s = series_find(m, values, n, false);
	if (!s)
		return;
	while (m->series[i] != s)
		i++;
	series_free(s);
	m->n_series--;
	memmove(&m->series[i], &m->series[i + 1], (m->n_series - i) * sizeof(struct series *));
	index_rebuild(m, m->cap_index);
}

void metric_clear(struct metric *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_series; i++)
		series_free(m->series[i]);
	m->n_series = 0;
	if (m->index)
		memset(m->index, 0, m->cap_index * sizeof(*m->index));
}

/* ---- collecting ------------------------------------------------------------------------------ */

void metrics_on_collect(struct metrics *r, void (*collect)(void *arg), void *arg)
{
	if (!r)
		return;
	r->collectors = mem_realloc(r->collectors, (r->n_collectors + 1) * sizeof(*r->collectors));
	r->collectors[r->n_collectors++] = (struct collector){collect, arg};
}

void metrics_off_collect(struct metrics *r, void (*collect)(void *arg), void *arg)
{
	size_t kept = 0;

	if (!r)
		return;
	for (size_t i = 0; i < r->n_collectors; i++)
		if (r->collectors[i].collect != collect || r->collectors[i].arg != arg)
			r->collectors[kept++] = r->collectors[i];
	r->n_collectors = kept;
}

/* ---- rendering ------------------------------------------------------------------------------- */

/* name{labels} with the suffix after the name; le is one more label, NULL for none. */
static void add_series_name(struct strbuf *out, const struct metric *m, const struct series *s,
			    const char *suffix, const double *le)
{
	const char *value = s->values;
	const char *before = "{";

	strbuf_adds(out, m->name);
	strbuf_adds(out, suffix);
	for (size_t i = 0; i < m->n_labels; i++) {
		strbuf_addf(out, "%s%s=\"", before, m->label_names[i]);
		metrics_text_escaped(out, value, true);
		strbuf_addc(out, '"');
		value += strlen(value) + 1;
		before = ",";
	}
	if (le) {
		strbuf_addf(out, "%sle=\"", before);
		metrics_text_number(out, *le);
		strbuf_addc(out, '"');
	}
	strbuf_adds(out, m->n_labels > 0 || le ? "} " : " ");
}

static void render_histogram(const struct metric *m, const struct series *s, struct strbuf *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= m->n_bounds; i++) {
		double bound = i < m->n_bounds ? m->bounds[i] : INFINITY;

		sum += s->buckets[i];
		add_series_name(out, m, s, "_bucket", &bound);
		strbuf_addf(out, "%" PRIu64 "\n", sum);
	}
	add_series_name(out, m, s, "_sum", NULL);
	metrics_text_number(out, s->value);
	strbuf_addc(out, '\n');
	add_series_name(out, m, s, "_count", NULL);
	strbuf_addf(out, "%" PRIu64 "\n", s->count);
}

static void render_metric(const struct metric *m, struct strbuf *out)
{
	static const char *const types[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
	};
	auto_strbuf struct strbuf labels = {0};

	/* Joined by commas. */
	for (size_t i = 0; i < m->n_labels; i++)
		strbuf_addf(&labels, "%s%s", i ? "," : "", m->label_names[i]);
	metrics_text_head(out, m->name, types[m->type], m->help, strbuf_str(&labels));
	for (size_t i = 0; i < m->n_series; i++) {
		if (m->type == METRIC_HISTOGRAM) {
			render_histogram(m, m->series[i], out);
			continue;
		}
		add_series_name(out, m, m->series[i], "", NULL);
		metrics_text_number(out, m->series[i]->value);
		strbuf_addc(out, '\n');
	}
}

void metrics_append(struct metrics *r, const char *of, const char *text)
{
	struct part *part = NULL;

	if (!r)
		return;
	for (size_t i = 0; i < r->n_parts && !part; i++)
		if (str_eq(r->parts[i].of, of))
			part = &r->parts[i];
	if (!part) {
		r->parts = mem_realloc(r->parts, (r->n_parts + 1) * sizeof(*r->parts));
		part = &r->parts[r->n_parts++];
		*part = (struct part){.of = str_dup(of)};
	}
	str_replace(&part->text, str_dup(text));
}

void metrics_render(struct metrics *r, struct strbuf *out)
{
	assert(r && out);
	for (size_t i = 0; i < r->n_collectors; i++)
		r->collectors[i].collect(r->collectors[i].arg);
	for (size_t i = 0; i < r->n; i++)
		render_metric(r->all[i], out);
	for (size_t i = 0; i < r->n_parts; i++)
		if (r->parts[i].text)
			strbuf_adds(out, r->parts[i].text);
}

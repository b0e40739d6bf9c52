// SPDX-License-Identifier: Apache-2.0
/*
 * Informers' reports and the lease begin and end troubles here. A trouble is shown three times: as
 * readiness while the subject never worked, as a gauge while it lasts, and to those who visit.
 */
#include "operator/dependency_health.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct subject {
	char *name;
	bool optional;
	bool worked;      /* at least once */
	int64_t since_ms; /* 0: not in trouble */
	char *reason, *text;
};

struct dependency_health {
	struct metrics *metrics;
	struct health *ready;
	struct metric *broken;
	struct subject *subjects;
	size_t n;
};

static struct subject *find_subject(struct dependency_health *troubles, const char *name)
{
	for (size_t i = 0; i < troubles->n; i++)
		if (str_eq(troubles->subjects[i].name, name))
			return &troubles->subjects[i];
	return NULL;
}

static void forget_trouble(struct subject *subject)
{
	subject->since_ms = 0;
	mem_free(take_ptr(subject->reason));
	mem_free(take_ptr(subject->text));
}

static void collect(void *arg)
{
	const struct dependency_health *troubles = arg;

	metric_clear(troubles->broken);
	for (size_t i = 0; i < troubles->n; i++) {
		const struct subject *subject = &troubles->subjects[i];

		if (subject->since_ms)
			metric_set(troubles->broken, (double)(clock_ms() - subject->since_ms) / 1e3,
				   subject->name, subject->reason);
	}
}

struct dependency_health *dependency_health_new(struct metrics *metrics, struct health *ready)
{
	struct dependency_health *troubles = mem_new(struct dependency_health);

	troubles->metrics = metrics;
	troubles->ready = ready;
	troubles->broken =
		metric_gauge(metrics, "orbweaver_informer_broken_seconds",
			     "How long a kind cannot be listed or watched by now.", "kind,reason");
	metrics_on_collect(metrics, collect, troubles);
	return troubles;
}

void dependency_health_free(struct dependency_health *troubles)
{
	if (!troubles)
		return;
	metrics_off_collect(troubles->metrics, collect, troubles);
	for (size_t i = 0; i < troubles->n; i++) {
		forget_trouble(&troubles->subjects[i]);
		mem_free(troubles->subjects[i].name);
	}
	mem_free(troubles->subjects);
	mem_free(troubles);
}

void dependency_health_add(struct dependency_health *troubles, const char *name, bool optional)
{
	assert(!find_subject(troubles, name));
	troubles->subjects =
		mem_realloc(troubles->subjects, (troubles->n + 1) * sizeof(*troubles->subjects));
	troubles->subjects[troubles->n++] =
		(struct subject){.name = str_dup(name), .optional = optional};
	health_set(troubles->ready, name, optional, "not seen yet");
}

bool dependency_health_end(struct dependency_health *troubles, const char *name)
{
	struct subject *subject = find_subject(troubles, name);
	bool ended = false;

	assert(subject);
	ended = subject->since_ms != 0;
	forget_trouble(subject);
	subject->worked = true;
	health_set(troubles->ready, name, true, NULL);
	return ended;
}

void dependency_health_begin(struct dependency_health *troubles, const char *name,
			     const char *reason, const char *text)
{
	struct subject *subject = find_subject(troubles, name);
	int64_t since_ms = 0;

	assert(subject && reason && text);
	since_ms = subject->since_ms ? subject->since_ms : clock_ms();
	forget_trouble(subject);
	subject->since_ms = since_ms;
	subject->reason = str_dup(reason);
	subject->text = str_dup(text);
	health_set(troubles->ready, name, subject->optional || subject->worked, text);
}

void dependency_health_visit(const struct dependency_health *troubles,
			     void (*visit)(void *arg, const char *name, const char *reason,
					   const char *text),
			     void *arg)
{
	assert(visit);
	for (size_t i = 0; i < troubles->n; i++) {
		const struct subject *subject = &troubles->subjects[i];

		if (subject->since_ms)
			visit(arg, subject->name, subject->reason, subject->text);
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A reading is three reads at once, of pod, coordinators and ConfigMap, kept for a few seconds per
 * sandbox. attachments.c asks it when a coordinator does, or foresees that one will; settings.c
 * makes the answer of what was read.
 */
#include "nodeagent/pod_networks/settings_reader.h"

#include <assert.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/settings.h"
#include "reconcilers/ipam/ipam_settings.h"

static const struct kube_resource coordinators = {"spiderpool.spidernet.io", "v2beta1",
						  "spidercoordinators", "SpiderCoordinator", false};

enum { PART_POD, PART_COORDINATORS, PART_CONFIG_MAP, PARTS };

struct part {
	struct reading *reading;
	struct kube_call *call;
	json_t *object; /* NULL: it is not there */
};

struct settings_question {
	TAILQ_ENTRY(settings_question) link;
	struct reading *reading;
	settings_done_fn *done;
	void *arg;
};

/* For one sandbox. */
struct reading {
	TAILQ_ENTRY(reading) link;
	struct settings_reader *reader;
	char *container;
	char *config_ns;          /* of the ConfigMap spiderpool-conf */
	struct part parts[PARTS]; /* none needs the others */
	size_t n_open;            /* that have not come */
	json_t *settings;         /* NULL: not read yet */
	TAILQ_HEAD(, settings_question) questions;
	struct timer *over;
};

struct settings_reader {
	struct settings_reader_config config;
	TAILQ_HEAD(, reading) readings;
	int64_t asked_ms; /* by a coordinator; 0: never */
};

/* ---- readings -------------------------------------------------------------------------------- */

static void reading_free(struct reading *reading)
{
	TAILQ_REMOVE(&reading->reader->readings, reading, link);
	while (!TAILQ_EMPTY(&reading->questions))
		settings_cancel(TAILQ_FIRST(&reading->questions));
	for (size_t i = 0; i < PARTS; i++) {
		kube_call_cancel(reading->parts[i].call);
		json_decref(reading->parts[i].object);
	}
	json_decref(reading->settings);
	timer_free(reading->over);
	free(reading->container);
	free(reading->config_ns);
	mem_free(reading);
}

static void answer_all(struct reading *reading, const json_t *settings, const struct err *err)
{
	while (!TAILQ_EMPTY(&reading->questions)) {
		struct settings_question *q = TAILQ_FIRST(&reading->questions);
		settings_done_fn *done = q->done;
		void *arg = q->arg;

		settings_cancel(q);
		done(arg, settings, err);
	}
}

/* The next question reads again. */
static void fail_reading(struct reading *reading, const struct err *err)
{
	answer_all(reading, NULL, err);
	reading_free(reading);
}

/* A pod that is not there any more has no wishes. */
static void on_all_read(struct reading *reading)
{
	struct ipam_settings detected;
	struct err why = {0};
	json_auto_t *settings =
		settings_of(json_at(reading->parts[PART_COORDINATORS].object, "items"),
			    reading->parts[PART_POD].object, &why);

	if (!settings || ipam_settings_read(reading->parts[PART_CONFIG_MAP].object,
					    reading->config_ns, &detected, &why) < 0) {
		fail_reading(reading, &why);
		return;
	}
	/* A network's configuration may still say otherwise, as those of older versions do. */
	if (detected.detects_conflicts)
		json_put(settings, "detectIPConflict", json_true());
	if (detected.detects_gateways)
		json_put(settings, "detectGateway", json_true());
	for (size_t i = 0; i < PARTS; i++)
		json_decref(take_ptr(reading->parts[i].object));
	reading->settings = json_incref(settings);
	answer_all(reading, settings, NULL);
}

static void on_read(void *arg, json_t *object, const struct err *err)
{
	struct part *part = arg;
	struct reading *reading = part->reading;

	assert(reading->n_open > 0);
	part->call = NULL;
	if (err && (part == &reading->parts[PART_COORDINATORS] || !kube_err_is(err, "NotFound"))) {
		fail_reading(reading, err);
		return;
	}
	part->object = json_incref(object);
	if (--reading->n_open == 0)
		on_all_read(reading);
}

/* It is still waited for then, or was never asked for. */
static void on_over(void *arg)
{
	struct reading *reading = arg;

	if (TAILQ_EMPTY(&reading->questions))
		reading_free(reading);
	else
		timer_start(reading->over, SETTINGS_FRESH_MS);
}

static struct reading *reading_of(const struct settings_reader *reader, const char *container)
{
	struct reading *reading;

	TAILQ_FOREACH(reading, &reader->readings, link)
	if (str_eq(reading->container, container))
		return reading;
	return NULL;
}

static struct reading *reading_new(struct settings_reader *reader, const char *container,
				   const json_t *pod)
{
	const struct settings_reader_config *config = &reader->config;
	struct reading *reading = mem_new(struct reading);
	struct part *parts = reading->parts;

	assert(container && config->client && config->addresses && !reading_of(reader, container));
	reading->reader = reader;
	reading->container = str_dup(container);
	reading->config_ns = str_dup(addresses_config_ns(config->addresses));
	TAILQ_INIT(&reading->questions);
	TAILQ_INSERT_TAIL(&reader->readings, reading, link);
	reading->over = timer_new(config->loop, on_over, reading);
	timer_start(reading->over, SETTINGS_FRESH_MS);
	reading->n_open = PARTS;
	for (size_t i = 0; i < PARTS; i++)
		parts[i].reading = reading;
	parts[PART_POD].call =
		kube_get_within(config->client, &kube_pods, json_str_at(pod, "namespace"),
				json_str_at(pod, "name"), on_read, &parts[PART_POD]);
	parts[PART_COORDINATORS].call = kube_list(config->client, &coordinators, NULL, NULL,
						  on_read, &parts[PART_COORDINATORS]);
	parts[PART_CONFIG_MAP].call =
		kube_get_within(config->client, &kube_config_maps, reading->config_ns,
				IPAM_CONFIG_MAP, on_read, &parts[PART_CONFIG_MAP]);
	return reading;
}

/* ---- questions ------------------------------------------------------------------------------- */

struct settings_question *settings_ask(struct settings_reader *reader, const char *container,
				       const json_t *pod, settings_done_fn *done, void *arg)
{
	struct reading *reading = reading_of(reader, container);
	struct settings_question *q;

	assert(container && done);
	reader->asked_ms = clock_ms();
	if (reading && reading->settings) {
		done(arg, reading->settings, NULL);
		return NULL;
	}
	if (!reading)
		reading = reading_new(reader, container, pod);
	q = mem_new(struct settings_question);
	*q = (struct settings_question){.reading = reading, .done = done, .arg = arg};
	TAILQ_INSERT_TAIL(&reading->questions, q, link);
	return q;
}

void settings_cancel(struct settings_question *question)
{
	if (!question)
		return;
	TAILQ_REMOVE(&question->reading->questions, question, link);
	mem_free(question);
}

void settings_foresee(struct settings_reader *reader, const char *container, const json_t *pod)
{
	if (!reading_of(reader, container))
		(void)reading_new(reader, container, pod);
}

bool settings_are_in_use(const struct settings_reader *reader)
{
	return reader->asked_ms && clock_ms() - reader->asked_ms < SETTINGS_IN_USE_MS;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct settings_reader *settings_reader_new(const struct settings_reader_config *config)
{
	struct settings_reader *reader = mem_new(struct settings_reader);

	reader->config = *config;
	TAILQ_INIT(&reader->readings);
	return reader;
}

void settings_reader_free(struct settings_reader *reader)
{
	if (!reader)
		return;
	while (!TAILQ_EMPTY(&reader->readings))
		reading_free(TAILQ_FIRST(&reader->readings));
	mem_free(reader);
}

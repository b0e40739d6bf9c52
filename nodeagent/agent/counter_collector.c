// SPDX-License-Identifier: Apache-2.0
/*
 * One gathering after the other: a scrape begins it, workers of their own (`meters`) read, and
 * exposition.c makes the text of what there is when all have answered or time is over.
 *
 *	RESTING → LISTING (where are devices?) → READING (one after the other) → RESTING
 *
 * A request that is out when time is over comes back later: HELD is a gathering that waits for it,
 * or for the turn in which it begins.
 */
#include "nodeagent/agent/counter_collector.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/devices/meter_pods.h"
#include "nodeagent/process/client.h"

/* Under which the list of devices is left alone; no device is called so. */
#define LIST "/"

struct counter_collector {
	struct counter_collector_config config;
	struct hostd *hostd;
	struct timer *limit;
	struct deferred *begin;
	enum counting_state { RESTING, HELD, LISTING, READING } state;
	bool is_out;       /* a request */
	bool has_gathered; /* once, at gathered_ms */
	int64_t gathered_ms, began_us;
	json_t *allocated, *pods; /* when it began */
	json_t *entries;          /* exposition_input.devices */
	size_t at;                /* of the entries, the one that is read */
	char *asked;              /* name of the device that was asked last */
	json_t *alone;            /* { name: {"until", "for"} }, of clock_ms() */
	struct metric *seconds, *gatherings, *timestamp;
};

/* ---- devices that are left alone ------------------------------------------------------------- */

/* The first name that it has; every device has one. */
static const char *name_of(const json_t *entry)
{
	static const char *const names[] = {"pciAddress", "rdma", "netdev"};
	const char *name = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names) && !name; i++)
		name = json_str_at(entry, "device", names[i]);
	return name ? name : "";
}

static bool is_alone(const struct counter_collector *counting, const char *name)
{
	const json_t *until = json_at(counting->alone, name, "until");

	return until && json_integer_value(until) > clock_ms();
}

static void leave_alone(struct counter_collector *counting, const char *name)
{
	json_t *entry = json_need_object(counting->alone, name);
	int64_t ms = 2 * json_integer_value(json_at(entry, "for"));

	if (ms < COUNTER_COLLECTOR_ALONE_MS)
		ms = COUNTER_COLLECTOR_ALONE_MS;
	if (ms > COUNTER_COLLECTOR_ALONE_MAX_MS)
		ms = COUNTER_COLLECTOR_ALONE_MAX_MS;
	json_put_int(entry, "for", ms);
	json_put_int(entry, "until", clock_ms() + ms);
	log_warn("counters are not answered, leaving the device alone", F_STR("device", name),
		 F_INT("for_ms", ms));
}

/*
 * The outcome: NULL, it answered. The list takes long on a machine that is busy, and all depends on
 * it: it is left alone only where it does cost processes.
 */
static void note_answer(struct counter_collector *counting, const char *name, const struct err *err)
{
	bool is_list = str_eq(name, LIST);

	if (err && str_eq(err->reason, "HostHung") &&
	    (!is_list || hostd_stuck(counting->hostd, NULL) > 0))
		leave_alone(counting, name);
	else if (!err)
		(void)json_object_del(counting->alone, name);
}

/* Names of devices that are gone make way for others. */
static void forget_alone(struct counter_collector *counting)
{
	json_t *kept = json_object(), *entry, *value;
	size_t i;

	json_array_foreach (counting->entries, i, entry) {
		value = json_at(counting->alone, name_of(entry));
		json_put(kept, name_of(entry), json_incref(value));
	}
	json_replace(&counting->alone, kept);
}

/* ---- the text -------------------------------------------------------------------------------- */

static size_t write_text(struct counter_collector *counting)
{
	auto_strbuf struct strbuf text = {0};

	exposition_write(
		&(struct exposition_input){
			.node = counting->config.node,
			.devices = counting->entries,
			.rails = counting->config.rails(counting->config.arg),
			.pods = counting->pods,
			.owners = counting->pods ? counting->config.owners(counting->config.arg,
									   counting->pods)
						 : NULL,
			.allocated = counting->allocated,
		},
		&text);
	metrics_append(counting->config.metrics, "devices", strbuf_str(&text));
	return text.len;
}

static void forget_gathering(struct counter_collector *counting)
{
	json_decref(take_ptr(counting->entries));
	json_decref(take_ptr(counting->pods));
	json_decref(take_ptr(counting->allocated));
}

/* The last thing that a callback does. outcome: why there is no list, or NULL. */
static void finish_gathering(struct counter_collector *counting, const char *outcome)
{
	json_auto_t *devices = json_incref(counting->entries);
	bool is_partial = false;
	json_t *entry;
	size_t size, i;

	assert(counting->state != RESTING);
	timer_stop(counting->limit);
	json_array_foreach (counting->entries, i, entry) {
		/* A device that was in the list and did not answer, or not in full. */
		is_partial |= !json_at(entry, "counted") || json_at(entry, "counted", "problem");
		if (!json_at(entry, "counted"))
			json_put_bool(entry, "failed", true);
	}
	if (!outcome)
		outcome = is_partial ? "partial" : "complete";
	metric_add(counting->gatherings, 1, outcome);
	metric_observe(counting->seconds, (double)(clock_us() - counting->began_us) / 1e6);
	size = write_text(counting);
	forget_gathering(counting);
	counting->state = RESTING;
	counting->has_gathered = true;
	counting->gathered_ms = clock_ms();
	metric_set(counting->timestamp, (double)clock_wall_us() / 1e6);
	counting->config.gathered(counting->config.arg, size, devices);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void on_counters(void *arg, const json_t *result, const struct err *err);
static void on_devices(void *arg, const json_t *result, const struct err *err);

static void ask_for_list(struct counter_collector *counting)
{
	const struct counter_collector_config *config = &counting->config;
	json_auto_t *vfs = NULL;

	assert(counting->state == HELD && !counting->is_out && !counting->entries);
	if (is_alone(counting, LIST)) {
		finish_gathering(counting, "HostHung");
		return;
	}
	counting->allocated = json_incref((json_t *)config->allocated(config->arg));
	counting->pods = meter_pods(counting->allocated, config->attachments(config->arg));
	counting->state = LISTING;
	counting->is_out = true;
	vfs = exposition_vfs(config->scope, counting->pods);
	hostd_devices(counting->hostd, vfs, on_devices, counting);
}

static void read_next(struct counter_collector *counting)
{
	size_t n = json_array_size(counting->entries);
	const json_t *entry;

	assert(counting->state == READING && !counting->is_out && counting->at <= n);
	while (counting->at < n &&
	       is_alone(counting, name_of(json_array_get(counting->entries, counting->at))))
		counting->at++;
	if (counting->at == n) {
		finish_gathering(counting, NULL);
		return;
	}
	entry = json_array_get(counting->entries, counting->at);
	str_replace(&counting->asked, str_dup(name_of(entry)));
	counting->is_out = true;
	hostd_counters(counting->hostd, json_at(entry, "device"), on_counters, counting);
}

/* Is what came back for the gathering that is under way? One that waited for it begins. */
static bool is_in_time(struct counter_collector *counting, enum counting_state state)
{
	bool is_ours = counting->state == state;

	assert(counting->is_out);
	counting->is_out = false;
	if (counting->state == HELD)
		ask_for_list(counting);
	return is_ours;
}

static void on_counters(void *arg, const json_t *result, const struct err *err)
{
	struct counter_collector *counting = arg;

	note_answer(counting, counting->asked, err);
	if (!is_in_time(counting, READING))
		return;
	/* Its pod has ended: the next list has it elsewhere. */
	if (err && err->class == ERR_TRANSIENT)
		(void)json_array_remove(counting->entries, counting->at);
	else
		json_put(json_array_get(counting->entries, counting->at++), "counted",
			 json_incref((json_t *)result));
	read_next(counting);
}

static void on_devices(void *arg, const json_t *result, const struct err *err)
{
	struct counter_collector *counting = arg;
	const json_t *device;
	size_t i;

	note_answer(counting, LIST, err);
	if (!is_in_time(counting, LISTING))
		return;
	if (err) {
		finish_gathering(counting, err->reason);
		return;
	}
	counting->entries = json_array();
	json_array_foreach (json_at(result, "devices"), i, device) {
		json_t *entry;

		if (exposition_is_excluded(counting->config.excluded, device))
			continue;
		entry = json_object();
		json_put(entry, "device", json_incref((json_t *)device));
		json_array_append_new(counting->entries, entry);
	}
	forget_alone(counting);
	counting->state = READING;
	counting->at = 0;
	read_next(counting);
}

/* ---- beginning and end of a gathering -------------------------------------------------------- */

static void on_begin(void *arg)
{
	struct counter_collector *counting = arg;

	if (counting->state == HELD && !counting->is_out)
		ask_for_list(counting);
}

/* What there is by now is shown. */
static void on_limit(void *arg)
{
	struct counter_collector *counting = arg;

	finish_gathering(counting, counting->state == READING ? NULL : "late");
}

bool counter_collector_refresh(struct counter_collector *counting)
{
	if (counting->state != RESTING)
		return false;
	if (counting->has_gathered &&
	    clock_ms() - counting->gathered_ms < COUNTER_COLLECTOR_FRESH_MS)
		return true;
	counting->state = HELD;
	counting->began_us = clock_us();
	timer_start(counting->limit, COUNTER_COLLECTOR_LIMIT_MS);
	deferred_run(counting->begin);
	return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_lost(void *arg)
{
	const struct counter_collector *counting = arg;

	counting->config.lost(counting->config.arg);
}

struct counter_collector *counter_collector_new(const struct counter_collector_config *config)
{
	struct counter_collector *counting = mem_new(struct counter_collector);

	assert(config->metrics && config->gathered && config->lost);
	counting->config = *config;
	counting->alone = json_object();
	counting->limit = timer_new(config->loop, on_limit, counting);
	counting->begin = deferred_new(config->loop, on_begin, counting);
	counting->hostd = hostd_new(config->loop, &(struct hostd_config){
							  .orders = config->meters,
							  .lost = on_lost,
							  .arg = counting,
							  .metrics = config->metrics,
						  });
	counting->seconds =
		metric_histogram(config->metrics, "orbweaver_counters_gathering_seconds",
				 "From a scrape to what devices have counted.", "", METRIC_SECONDS);
	counting->gatherings =
		metric_counter(config->metrics, "orbweaver_counters_gatherings_total",
			       "Gatherings of what devices have counted: complete, partial, late, "
			       "or the reason why "
			       "there was none.",
			       "outcome");
	counting->timestamp =
		metric_gauge(config->metrics, "orbweaver_counters_timestamp_seconds",
			     "When what is shown of devices was read, in Unix time.", "");
	(void)write_text(counting);
	return counting;
}

void counter_collector_free(struct counter_collector *counting)
{
	if (!counting)
		return;
	metrics_append(counting->config.metrics, "devices", NULL);
	hostd_free(counting->hostd);
	timer_free(counting->limit);
	deferred_free(counting->begin);
	forget_gathering(counting);
	json_decref(counting->alone);
	mem_free(counting->asked);
	mem_free(counting);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * core/v1 Events: created once, patched when they repeat. One write at a time for each event, so
 * that the patch does not overtake the creation; what is emitted meanwhile goes out with the next
 * count.
 */
#include "lib/kube/recorder.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

/* An event's name has 253 characters at most; the number behind the object's name takes 17. */
#define NAME_PART_MAX 230

/* One event that was emitted, found again by everything that makes it the same. */
struct emitted {
	TAILQ_ENTRY(emitted) age;
	TAILQ_ENTRY(emitted) line; /* while it waits for its turn to be written */
	char *same;
	char *ns, *name;
	int64_t count;
	int64_t written; /* count of the last write that was begun */
	int64_t last_ms;
	json_t *event; /* to be created; NULL: it was, the count is to be patched */
	bool in_line;
	bool writing;
};

/* A write in flight. The event that it is about may be forgotten before it ends. */
struct note {
	TAILQ_ENTRY(note) link;
	struct recorder *recorder;
	struct kube_call *call;
	char *same;
};

/* How much an object may still say. */
struct budget {
	int64_t tokens;
	int64_t refilled_ms;
};

TAILQ_HEAD(emitted_list, emitted);
TAILQ_HEAD(note_list, note);

struct recorder {
	struct kube_client *client;
	const char *component, *instance;
	bool fenced;
	struct map emitted;         /* same → struct emitted */
	struct emitted_list by_age; /* oldest first */
	struct emitted_list line;   /* to be written once others are */
	size_t in_flight;
	struct map budgets; /* uid → struct budget */
	struct note_list notes;
	struct metric *events;
};

static void emitted_free(void *ptr)
{
	struct emitted *emitted = ptr;

	mem_free(emitted->same);
	mem_free(emitted->ns);
	mem_free(emitted->name);
	json_decref(emitted->event);
	mem_free(emitted);
}

struct recorder *recorder_new(struct kube_client *client, const char *component,
			      const char *instance, bool fenced, struct metrics *metrics)
{
	struct recorder *recorder = mem_new(struct recorder);

	assert(client && component && instance);
	recorder->client = client;
	recorder->component = component;
	recorder->instance = instance;
	recorder->fenced = fenced;
	recorder->emitted.free_value = emitted_free;
	recorder->budgets.free_value = mem_free;
	TAILQ_INIT(&recorder->by_age);
	TAILQ_INIT(&recorder->line);
	TAILQ_INIT(&recorder->notes);
	recorder->events = metric_counter(metrics, "orbweaver_events_total",
					  "Events emitted, by what became of them.", "outcome");
	return recorder;
}

static void note_free(struct note *note)
{
	assert(note->recorder->in_flight > 0);
	TAILQ_REMOVE(&note->recorder->notes, note, link);
	note->recorder->in_flight--;
	mem_free(note->same);
	mem_free(note);
}

void recorder_free(struct recorder *recorder)
{
	struct note *note = NULL;

	if (!recorder)
		return;
	while ((note = TAILQ_FIRST(&recorder->notes))) {
		kube_call_cancel(note->call);
		note_free(note);
	}
	map_done(&recorder->emitted);
	map_done(&recorder->budgets);
	mem_free(recorder);
}

static bool may_talk(struct recorder *recorder, const char *uid)
{
	struct budget *budget = map_get(&recorder->budgets, uid);
	int64_t now = clock_ms();
	int64_t refill = 0;

	if (!budget) {
		/*
		 * A fresh start for everybody now and then is cheaper than knowing who was silent
		 * longest.
		 */
		if (recorder->budgets.len >= EVENT_MEMORY_MAX)
			map_done(&recorder->budgets);
		budget = mem_new(struct budget);
		*budget = (struct budget){EVENT_BURST, now};
		map_set(&recorder->budgets, uid, budget);
	}
	refill = (now - budget->refilled_ms) / EVENT_REFILL_MS;
	budget->refilled_ms += refill * EVENT_REFILL_MS;
	budget->tokens += refill;
	if (budget->tokens > EVENT_BURST)
		budget->tokens = EVENT_BURST;
	if (budget->tokens <= 0)
		return false;
	budget->tokens--;
	return true;
}

static void forget_emitted(struct recorder *recorder, struct emitted *emitted)
{
	TAILQ_REMOVE(&recorder->by_age, emitted, age);
	if (emitted->in_line)
		TAILQ_REMOVE(&recorder->line, emitted, line);
	map_del(&recorder->emitted, emitted->same);
}

static struct kube_write how_to(const struct recorder *recorder)
{
	return (struct kube_write){
		.field_manager = recorder->component,
		.fenced = recorder->fenced,
	};
}

static void on_written(void *arg, json_t *object, const struct err *err);

static struct note *note_new(struct recorder *recorder, struct emitted *emitted)
{
	struct note *note = mem_new(struct note);

	note->recorder = recorder;
	note->same = str_dup(emitted->same);
	TAILQ_INSERT_TAIL(&recorder->notes, note, link);
	recorder->in_flight++;
	emitted->writing = true;
	emitted->written = emitted->count;
	return note;
}

static void write_count(struct recorder *recorder, struct emitted *emitted, struct note *note)
{
	const struct kube_write how = how_to(recorder);
	char now[RFC3339_SIZE];
	json_auto_t *patch = NULL;

	rfc3339_write(clock_wall_us(), now);
	patch = json_pack("{s:I, s:s}", "count", (json_int_t)emitted->count, "lastTimestamp", now);
	note->call = kube_patch(recorder->client, &kube_events, emitted->ns, emitted->name,
				KUBE_PATCH_MERGE, patch, &how, on_written, note);
}

/* Create the event, or bring its count up to date. */
static void write_event(struct recorder *recorder, struct emitted *emitted)
{
	const struct kube_write how = how_to(recorder);
	json_auto_t *event = take_ptr(emitted->event);
	struct note *note = note_new(recorder, emitted);

	if (!event) {
		write_count(recorder, emitted, note);
		return;
	}
	json_put_int(event, "count", emitted->count);
	note->call = kube_create(recorder->client, &kube_events, event, &how, on_written, note);
}

static void write_in_turn(struct recorder *recorder)
{
	struct emitted *emitted = NULL;

	while (recorder->in_flight < EVENT_IN_FLIGHT && (emitted = TAILQ_FIRST(&recorder->line))) {
		TAILQ_REMOVE(&recorder->line, emitted, line);
		emitted->in_line = false;
		write_event(recorder, emitted);
	}
}

/* One write at a time for each event; more comes with the count of the next. */
static void stand_in_line(struct recorder *recorder, struct emitted *emitted)
{
	if (emitted->writing || emitted->in_line)
		return;
	emitted->in_line = true;
	TAILQ_INSERT_TAIL(&recorder->line, emitted, line);
	write_in_turn(recorder);
}

static void on_written(void *arg, json_t *object, const struct err *err)
{
	struct note *note = arg;
	struct recorder *recorder = note->recorder;
	struct emitted *emitted = map_get(&recorder->emitted, note->same);

	note_free(note);
	metric_add(recorder->events, 1, err ? "failed" : "written");
	if (err)
		log_debug("event not written", F_ERR(err));
	if (emitted)
		emitted->writing = false;
	/* Not there, or gone (events live for an hour): emitted again, it is a new one. */
	if (emitted && err)
		forget_emitted(recorder, emitted);
	else if (emitted && emitted->count > emitted->written)
		stand_in_line(recorder, emitted);
	write_in_turn(recorder);
}

static json_t *involved(const struct event_object *object)
{
	json_t *ref = json_object();

	if (object->resource->group[0])
		json_put(ref, "apiVersion",
			 json_fmt("%s/%s", object->resource->group, object->resource->version));
	else
		json_put_str(ref, "apiVersion", object->resource->version);
	json_put_str(ref, "kind", object->resource->kind);
	json_put_str(ref, "name", object->name);
	if (!str_empty(object->ns))
		json_put_str(ref, "namespace", object->ns);
	json_put_str(ref, "uid", object->uid);
	return ref;
}

static json_t *new_event(const struct recorder *recorder, const struct emitted *emitted,
			 const struct event_object *object, bool warning, const char *reason,
			 const char *message)
{
	char now[RFC3339_SIZE];
	auto_strbuf struct strbuf text = {0};
	json_t *event = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "v1", "kind", "Event",
				  "metadata", "name", emitted->name, "namespace", emitted->ns);

	/* In this order: what is not UTF-8 takes more room once it is. */
	strbuf_add_utf8(&text, message, strlen(message));
	strbuf_cut(&text, str_clip(strbuf_str(&text), text.len, EVENT_MESSAGE_MAX));
	rfc3339_write(clock_wall_us(), now);
	json_put(event, "involvedObject", involved(object));
	json_put_str(event, "type", warning ? "Warning" : "Normal");
	json_put_str(event, "reason", reason);
	json_put(event, "message", json_fmt("%s", strbuf_str(&text)));
	json_put(event, "source", json_pack("{s:s}", "component", recorder->component));
	json_put_str(event, "reportingComponent", recorder->component);
	json_put_str(event, "reportingInstance", recorder->instance);
	json_put_str(event, "firstTimestamp", now);
	json_put_str(event, "lastTimestamp", now);
	json_put_int(event, "count", 1);
	return event;
}

static struct emitted *emitted_new(struct recorder *recorder, const struct event_object *object,
				   const char *same)
{
	struct emitted *emitted = mem_new(struct emitted);
	uint64_t number;
	size_t len;

	emitted->same = str_dup(same);
	emitted->ns = str_dup(str_empty(object->ns) ? "default" : object->ns);
	/*
	 * client-go's form: the object's name and a number that makes it unique. A name that has to
	 * be cut must not end in a dot or dash there (RFC 1123 subdomain). Without the time, others
	 * that report the same thing meet AlreadyExists.
	 */
	number = str_hash(same, strlen(same));
	len = strnlen(object->name, NAME_PART_MAX);
	if (!object->once)
		number ^= (uint64_t)clock_wall_us();
	while (len > 0 && strchr(".-", object->name[len - 1]))
		len--;
	emitted->name =
		str_printf("%.*s.%016llx", (int)len, object->name, (unsigned long long)number);
	emitted->count = 1;
	emitted->last_ms = clock_ms();
	map_set(&recorder->emitted, same, emitted);
	TAILQ_INSERT_TAIL(&recorder->by_age, emitted, age);
	return emitted;
}

/* The uid, or for objects that have none yet what else distinguishes them. */
static char *identity_of(const struct event_object *object)
{
	if (!str_empty(object->uid))
		return str_dup(object->uid);
	return str_printf("%s/%s/%s", object->resource->plural, object->ns ? object->ns : "",
			  object->name);
}

void recorder_emit(struct recorder *recorder, const struct event_object *object, bool warning,
		   const char *reason, const char *message)
{
	auto_free char *who = identity_of(object);
	auto_free char *same =
		str_printf("%s\n%s\n%d\n%s\n%s", who, object->once ? object->once : "", warning,
			   reason, message);
	struct emitted *emitted = NULL;
	int64_t limit = clock_ms() - EVENT_MEMORY_MS;
	struct emitted *oldest = NULL;

	assert(object && reason && message);
	while ((oldest = TAILQ_FIRST(&recorder->by_age)) &&
	       (oldest->last_ms < limit || recorder->emitted.len >= EVENT_MEMORY_MAX))
		forget_emitted(recorder, oldest);
	if (!may_talk(recorder, who)) {
		metric_add(recorder->events, 1, "held back");
		return;
	}
	emitted = map_get(&recorder->emitted, same);
	if (emitted) {
		emitted->count++;
		emitted->last_ms = clock_ms();
		TAILQ_REMOVE(&recorder->by_age, emitted, age);
		TAILQ_INSERT_TAIL(&recorder->by_age, emitted, age);
		stand_in_line(recorder, emitted);
		return;
	}
	emitted = emitted_new(recorder, object, same);
	emitted->event = new_event(recorder, emitted, object, warning, reason, message);
	stand_in_line(recorder, emitted);
}

/*
 * A small state machine: list page by page, then watch; every failure leads back to one of the two after a pause.
 */
#include "lib/kube/informer.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"

struct informer {
	struct informer_config config;
	struct loop *loop;
	struct kube_client *client;
	struct kube_call *call;
	struct timer *retry;
	struct splitter splitter;
	enum informer_phase {
		PHASE_LIST,   /* pages */
		PHASE_STREAM, /* a watch that starts with all objects */
		PHASE_WATCH,
	} phase;
	uint64_t version; /* of the last thing seen: where a watch goes on; 0 while listing */
	uint64_t seen;    /* the highest ever seen, lists and watches */
	char *next_page;  /* continue token, while listing */
	bool synced;
	bool no_streams; /* the server does not offer them, or not to the end */
	bool bad_stream; /* the present trouble came in a 2xx answer: another 2xx does not end it */
	unsigned int failures;
	int64_t opened_ms;
	char last_trouble[sizeof(((struct err *)0)->text)];
	struct metric *lists, *events;
};

/* A watch that fails so often in a row, without an event in between, gives way to a new list. */
#define FAILURES_MAX 5
/* Bytes of an answer that a message quotes. */
#define QUOTE_MAX 80

static void start(struct informer *informer);
static void list_from_start(struct informer *informer);

/* ---- telling ------------------------------------------------------------------------------------------------------ */

static void tell_trouble(struct informer *informer, const struct err *err)
{
	const char *text = err ? err->text : "";

	if (str_eq(text, informer->last_trouble))
		return;
	snprintf(informer->last_trouble, sizeof(informer->last_trouble), "%s", text);
	if (informer->config.trouble)
		informer->config.trouble(informer->config.arg, err);
}

static void trouble_is_over(struct informer *informer)
{
	informer->bad_stream = false;
	tell_trouble(informer, NULL);
}

static void saw(struct informer *informer, uint64_t version)
{
	if (version > informer->version)
		informer->version = version;
	if (version > informer->seen)
		informer->seen = version;
}

/*
 * A list is as new as anything anybody has seen before, so a lower version means that the server was restored from a backup
 * (or is another one). Then nothing that we know can be compared with what it says.
 */
static bool history_is_new(struct informer *informer)
{
	if (informer->version >= informer->seen)
		return false;
	log_warn("the server's history began anew, listing again",
		 F_STR("resource", informer->config.resource->plural),
		 F_INT("seen", (int64_t)informer->seen), F_INT("now", (int64_t)informer->version));
	informer->seen = 0;
	cache_forget_versions(informer->config.cache);
	list_from_start(informer);
	return true;
}

/* False when it has to be listed once more. */
static bool complete(struct informer *informer)
{
	if (history_is_new(informer))
		return false;
	saw(informer, informer->version);
	informer->phase = PHASE_WATCH;
	informer->failures = 0;
	cache_list_end(informer->config.cache, informer->version);
	trouble_is_over(informer);
	mem_trim();
	if (informer->synced)
		return true;
	informer->synced = true;
	if (informer->config.synced)
		informer->config.synced(informer->config.arg);
	return true;
}

/* ---- lists -------------------------------------------------------------------------------------------------------- */

static int bad_stream(const struct informer *informer, const char *what, const char *text,
		      size_t len, struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "BadStream", "the server's answer for %s: %s: %.*s",
		       informer->config.resource->plural, what, (int)str_clip(text, len, QUOTE_MAX),
		       text);
}

static json_t *parse(const struct informer *informer, const char *text, size_t len, struct err *err)
{
	json_t *value = json_parse(text, len, err);

	if (value)
		return value;
	err_in(err, "the server's answer for %s", informer->config.resource->plural);
	err->class = ERR_TRANSIENT; /* the server may do better next time */
	return NULL;
}

/* Elements of typed lists carry no apiVersion and kind; nobody needs them. */
static int list_item(struct informer *informer, const char *text, size_t len, struct err *err)
{
	json_t *object = parse(informer, text, len, err);

	if (!object)
		return -1;
	if (str_empty(json_name(object))) {
		json_decref(object);
		return bad_stream(informer, "not an object", text, len, err);
	}
	cache_put(informer->config.cache, object);
	metric_add(informer->events, 1, informer->config.resource->plural);
	return 0;
}

/* Something else than a list must not pass for an empty one: everything would be taken for deleted. */
static bool is_list(const json_t *rest)
{
	return kube_resource_version(rest) > 0 && json_array_size(json_at(rest, "items")) == 0;
}

static int list_rest(struct informer *informer, const char *text, size_t len, struct err *err)
{
	json_auto_t *list = parse(informer, text, len, err);
	const char *next = json_str_at(list, "metadata", "continue");

	if (!list)
		return -1;
	if (!is_list(list))
		return bad_stream(informer, "not a list", text, len, err);
	informer->version = kube_resource_version(list);
	mem_free(informer->next_page);
	informer->next_page = str_empty(next) ? NULL : str_dup(next);
	return 0;
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static int on_bookmark(struct informer *informer, const json_t *object, struct err *err)
{
	const char *end =
		json_str_at(object, "metadata", "annotations", "k8s.io/initial-events-end");

	if (informer->phase == PHASE_STREAM && str_eq(end, "true") && !complete(informer))
		return err_set(err, ERR_TRANSIENT, "Restored", "the server's history began anew");
	return 0;
}

static int watch_object(struct informer *informer, const char *type, json_t *object,
			struct err *err)
{
	auto_free char *key = json_key(object);

	if (str_eq(type, "BOOKMARK"))
		return on_bookmark(informer, object, err);
	if (str_eq(type, "DELETED"))
		cache_remove(informer->config.cache, key, kube_resource_version(object));
	else
		cache_put(informer->config.cache, json_incref(object));
	return 0;
}

static bool is_event(const char *type, const json_t *object)
{
	if (!type || kube_resource_version(object) == 0)
		return false;
	if (str_eq(type, "BOOKMARK"))
		return true;
	return !str_empty(json_name(object)) &&
	       (str_eq(type, "ADDED") || str_eq(type, "MODIFIED") || str_eq(type, "DELETED"));
}

static int watch_event(struct informer *informer, const char *text, size_t len, struct err *err)
{
	json_auto_t *event = parse(informer, text, len, err);
	const char *type = json_str_at(event, "type");
	json_t *object = json_at(event, "object");

	if (!event)
		return -1;
	if (str_eq(type, "ERROR") && json_is_object(object))
		return kube_status_object_err(object, err);
	if (!is_event(type, object))
		return bad_stream(informer, "not a watch event", text, len, err);
	metric_add(informer->events, 1, informer->config.resource->plural);
	/*
	 * Before the cache learns it: what its callback writes is then compared with the right version. Initial events come in
	 * the order of keys; they say nothing about where the watch is.
	 */
	if (informer->phase == PHASE_WATCH) {
		saw(informer, kube_resource_version(object));
		informer->failures = 0;
		trouble_is_over(informer);
	} else if (str_eq(type, "BOOKMARK")) {
		informer->version = kube_resource_version(object);
	}
	return watch_object(informer, type, object, err);
}

/* ---- calls -------------------------------------------------------------------------------------------------------- */

static int on_object(void *arg, const char *text, size_t len, bool last, struct err *err)
{
	struct informer *informer = arg;

	if (informer->phase != PHASE_LIST)
		return watch_event(informer, text, len, err);
	return last ? list_rest(informer, text, len, err) : list_item(informer, text, len, err);
}

static int on_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct informer *informer = arg;

	return splitter_feed(&informer->splitter, bytes, len, err);
}

static void on_open(void *arg)
{
	struct informer *informer = arg;

	informer->opened_ms = clock_ms();
	if (!informer->bad_stream)
		tell_trouble(informer, NULL);
}

static void on_retry(void *arg)
{
	start(arg);
}

/* After a pause that grows with each failure, or the one that the server asks for. */
static void start_later(struct informer *informer, const struct kube_response *response)
{
	int64_t pause = INFORMER_RETRY_FIRST_MS;

	for (unsigned int i = 0; i < informer->failures && pause < INFORMER_RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > INFORMER_RETRY_MAX_MS)
		pause = INFORMER_RETRY_MAX_MS;
	informer->failures++;
	pause = pause / 2 + (int64_t)clock_jitter((uint64_t)pause);
	if (response->retry_after_ms > pause)
		pause = response->retry_after_ms + (int64_t)clock_jitter(INFORMER_RETRY_FIRST_MS);
	timer_start(informer->retry, pause);
}

static void list_from_start(struct informer *informer)
{
	bool stream = informer->config.stream_lists && !informer->no_streams;

	mem_free(informer->next_page);
	informer->next_page = NULL;
	informer->version = 0;
	informer->phase = stream ? PHASE_STREAM : PHASE_LIST;
	cache_list_begin(informer->config.cache);
	metric_add(informer->lists, 1, informer->config.resource->plural);
}

/* A connection that ends is no trouble as long as the next one works. */
static void call_failed(struct informer *informer, const struct kube_response *response,
			const struct err *err)
{
	if (response->status / 100 != 2) {
		tell_trouble(informer, err);
	} else if (!kube_err_is(err, "ConnectionLost") && !kube_err_is(err, "Stalled")) {
		informer->bad_stream = true;
		tell_trouble(informer, err);
	}
}

static void page_failed(struct informer *informer, const struct kube_response *response,
			const struct err *err)
{
	/* The token of the next page is too old: what was read so far cannot be completed. */
	if (kube_err_is_expired(err))
		list_from_start(informer);
	else
		call_failed(informer, response, err);
	if (informer->config.absent_retry_ms && kube_err_is(err, "NotServed"))
		timer_start(informer->retry,
			    informer->config.absent_retry_ms +
				    (int64_t)clock_jitter(
					    (uint64_t)informer->config.absent_retry_ms / 4));
	else
		start_later(informer, response);
}

static void page_done(struct informer *informer, const struct kube_response *response,
		      const struct err *err)
{
	struct err broken = {0};

	if (!err && splitter_end(&informer->splitter, &broken) < 0)
		err = &broken;
	if (err) {
		page_failed(informer, response, err);
		return;
	}
	if (!informer->next_page)
		(void)complete(informer);
	start(informer);
}

/* What is refused, and what was not carried to its end, is not asked for again: pages work everywhere. */
static void stream_done(struct informer *informer, const struct kube_response *response,
			const struct err *err)
{
	int status = response->status;
	bool refused = status == 400 || status == 403 || status == 405 || status == 422;

	informer->no_streams = refused || status / 100 == 2;
	if (err && !refused && !kube_err_is_expired(err))
		call_failed(informer, response, err);
	list_from_start(informer);
}

static void watch_failed(struct informer *informer, const struct kube_response *response,
			 const struct err *err)
{
	if (kube_err_is_expired(err)) {
		log_info("watch is too old, listing again",
			 F_STR("resource", informer->config.resource->plural));
		list_from_start(informer);
		return;
	}
	call_failed(informer, response, err);
	/* Not served any more (its CRD was deleted): when it is back, nothing of before is there. */
	if (response->status == 404 ||
	    (response->status / 100 == 2 && informer->failures >= FAILURES_MAX))
		list_from_start(informer);
}

static void watch_done(struct informer *informer, const struct kube_response *response,
		       const struct err *err)
{
	bool lasted = informer->opened_ms && clock_ms() - informer->opened_ms > 1000;

	if (lasted)
		informer->failures = 0;
	if (informer->phase == PHASE_STREAM)
		stream_done(informer, response, err);
	else if (err)
		watch_failed(informer, response, err);
	if (lasted && !err)
		start(informer);
	else
		start_later(informer, response);
}

static void on_done(void *arg, const struct kube_response *response, const struct err *err)
{
	struct informer *informer = arg;

	informer->call = NULL;
	if (informer->phase == PHASE_LIST)
		page_done(informer, response, err);
	else
		watch_done(informer, response, err);
}

static void add_param(struct strbuf *query, const char *name, const char *value)
{
	strbuf_addf(query, "%s%s=", query->len ? "&" : "", name);
	kube_path_encode(query, value);
}

static void add_watch_params(const struct informer *informer, struct strbuf *query)
{
	char number[24];

	add_param(query, "watch", "true");
	add_param(query, "allowWatchBookmarks", "true");
	snprintf(number, sizeof(number), "%d",
		 INFORMER_WATCH_S + (int)clock_jitter(INFORMER_WATCH_S));
	add_param(query, "timeoutSeconds", number);
	if (informer->phase == PHASE_STREAM) {
		add_param(query, "sendInitialEvents", "true");
		add_param(query, "resourceVersionMatch", "NotOlderThan");
	} else {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)informer->version);
		add_param(query, "resourceVersion", number);
	}
}

static void add_list_params(const struct informer *informer, struct strbuf *query)
{
	char number[24];

	snprintf(number, sizeof(number), "%d", INFORMER_PAGE);
	add_param(query, "limit", number);
	if (informer->next_page)
		add_param(query, "continue", informer->next_page);
}

static void start(struct informer *informer)
{
	const struct informer_config *config = &informer->config;
	bool listing = informer->phase == PHASE_LIST;
	auto_strbuf struct strbuf query = {0};
	auto_free char *path = NULL;

	if (listing)
		add_list_params(informer, &query);
	else
		add_watch_params(informer, &query);
	if (config->selector)
		strbuf_addf(&query, "&%s", config->selector);
	path = kube_path(config->resource, config->ns, NULL, NULL, strbuf_str(&query));
	splitter_done(&informer->splitter);
	splitter_init(&informer->splitter, listing ? SPLITTER_LIST : SPLITTER_STREAM, config->drops,
		      config->n_drops, true, on_object, informer);
	informer->opened_ms = 0;
	informer->call = kube_call(informer->client,
				   &(struct kube_request){
					   .verb = listing ? "list" : "watch",
					   .method = "GET",
					   .path = path,
					   .timeout_ms = listing ? INFORMER_LIST_TIMEOUT_MS : -1,
					   .silence_ms = listing ? 0 : INFORMER_SILENCE_MS,
					   .once = true,
					   .on_bytes = on_bytes,
					   .on_open = on_open,
					   .done = on_done,
					   .arg = informer,
				   });
}

struct informer *informer_new(struct loop *loop, struct kube_client *client,
			      const struct informer_config *config)
{
	struct informer *informer = mem_new(struct informer);

	informer->config = *config;
	informer->loop = loop;
	informer->client = client;
	informer->retry = timer_new(loop, on_retry, informer);
	informer->lists = metric_counter(config->metrics, "orbweaver_informer_lists_total",
					 "Complete lists begun.", "resource");
	informer->events = metric_counter(config->metrics, "orbweaver_informer_events_total",
					  "Objects and events received.", "resource");
	list_from_start(informer);
	start(informer);
	return informer;
}

void informer_free(struct informer *informer)
{
	if (!informer)
		return;
	kube_call_cancel(informer->call);
	timer_free(informer->retry);
	splitter_done(&informer->splitter);
	mem_free(informer->next_page);
	mem_free(informer);
}

bool informer_is_synced(const struct informer *informer)
{
	return informer->synced;
}

void informer_learn(struct informer *informer, const json_t *object)
{
	if (informer->synced && kube_resource_version(object) > informer->seen)
		cache_learn(informer->config.cache, json_deep_copy(object));
}

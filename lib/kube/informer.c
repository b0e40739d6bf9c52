// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the calls that the feed asks for: list page by page, then watch; every failure leads back
 * to one of the two after a pause.
 */
#include "lib/kube/informer.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/feed.h"
#include "lib/kube/status.h"

struct informer {
	struct informer_config config;
	struct loop *loop;
	struct kube_client *client;
	struct kube_call *call;
	struct timer *retry;
	struct feed feed;
	bool synced;
	char *kind;                  /* for kube_client_may_stream */
	unsigned int broken_streams; /* of this list: they did not come to their end */
	/* The connection was lost: has the server's history gone on from what we know? */
	bool compare;
	bool bad_stream; /* the present trouble came in a 2xx answer: another 2xx does not end it */
	unsigned int failures;
	int64_t opened_ms;
	int64_t last_event_ms;
	int64_t broken_since_ms; /* 0: not in trouble */
	struct err last_trouble;
};

/* A watch that fails so often in a row, without an event in between, gives way to a new list. */
#define FAILURES_MAX 5
/* So many streams of one list may break off. */
#define BROKEN_STREAMS_MAX 2

static void start(struct informer *informer);

/* ---- reporting ------------------------------------------------------------------------------- */

static void report_trouble(struct informer *informer, const struct err *err)
{
	if (!err)
		informer->broken_since_ms = 0;
	else if (informer->broken_since_ms == 0)
		informer->broken_since_ms = clock_ms();
	if (str_eq(err ? err->text : "", informer->last_trouble.text))
		return;
	informer->last_trouble = err ? *err : (struct err){0};
	if (informer->config.trouble)
		informer->config.trouble(informer->config.arg, err);
}

static void trouble_is_over(struct informer *informer)
{
	informer->bad_stream = false;
	report_trouble(informer, NULL);
}

static void on_understood(void *arg)
{
	struct informer *informer = arg;

	informer->failures = 0;
	informer->last_event_ms = clock_ms();
	trouble_is_over(informer);
}

static void on_complete(void *arg)
{
	struct informer *informer = arg;

	informer->failures = 0;
	informer->broken_streams = 0;
	informer->last_event_ms = clock_ms();
	trouble_is_over(informer);
	mem_trim();
	if (informer->config.listed)
		informer->config.listed(informer->config.arg);
	if (informer->synced)
		return;
	informer->synced = true;
	if (informer->config.synced)
		informer->config.synced(informer->config.arg);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int on_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct informer *informer = arg;

	return feed_bytes(&informer->feed, bytes, len, err);
}

static void on_open(void *arg)
{
	struct informer *informer = arg;

	informer->opened_ms = clock_ms();
	if (!informer->bad_stream)
		report_trouble(informer, NULL);
}

static void on_retry(void *arg)
{
	start(arg);
}

/*
 * Growing with each failure, or what the server asks for ("storage is (re)initializing"), also in
 * an event.
 */
static int64_t pause_ms(const struct informer *informer, const struct err *err)
{
	int64_t pause = INFORMER_RETRY_FIRST_MS;

	for (unsigned int i = 0; i < informer->failures && pause < INFORMER_RETRY_MAX_MS; i++)
		pause *= 2;
	if (pause > INFORMER_RETRY_MAX_MS)
		pause = INFORMER_RETRY_MAX_MS;
	pause = pause / 2 + (int64_t)clock_jitter((uint64_t)pause);
	if (err && err->retry_after_ms > pause)
		pause = err->retry_after_ms + (int64_t)clock_jitter(INFORMER_RETRY_FIRST_MS);
	return pause;
}

static void start_later(struct informer *informer, const struct err *err)
{
	int64_t pause = pause_ms(informer, err);
	int64_t absent = informer->config.absent_retry_ms;

	if (absent > 0 && kube_err_is(err, "NotServed"))
		pause = absent + (int64_t)clock_jitter((uint64_t)absent / 4);
	informer->failures++;
	timer_start(informer->retry, pause);
}

static void list_from_start(struct informer *informer)
{
	feed_list(&informer->feed,
		  informer->broken_streams < BROKEN_STREAMS_MAX &&
			  kube_client_may_stream(informer->client, informer->kind));
}

/* A connection that ends is not trouble as long as the next one works. */
static void call_failed(struct informer *informer, const struct kube_response *response,
			const struct err *err)
{
	if (response->status / 100 != 2) {
		report_trouble(informer, err);
	} else if (!kube_err_is(err, "ConnectionLost") && !kube_err_is(err, "Stalled")) {
		informer->bad_stream = true;
		report_trouble(informer, err);
	}
}

static void page_done(struct informer *informer, const struct kube_response *response,
		      const struct err *err)
{
	struct err broken = {0};

	if (!err && feed_close(&informer->feed, &broken) < 0)
		err = &broken;
	if (err) {
		/*
		 * The token of the next page is too old: what was read so far cannot be completed.
		 */
		if (kube_err_is_expired(err))
			list_from_start(informer);
		else
			call_failed(informer, response, err);
		start_later(informer, err);
	} else {
		start(informer);
	}
}

/* Refused, or taken for an ordinary watch: those have no end of a list. */
static bool is_refusal(const struct kube_response *response, const struct err *err)
{
	int status = response->status;

	return status == 400 || status == 403 || status == 405 || status == 422 ||
	       (status / 100 == 2 && (!err || kube_err_is(err, "NotStreamed")));
}

/* Pages work everywhere, and at once. */
static void stream_done(struct informer *informer, const struct kube_response *response,
			const struct err *err)
{
	if (is_refusal(response, err)) {
		log_debug("server does not stream this list, asking for pages",
			  F_STR("resource", informer->config.resource->plural));
		kube_client_refused_stream(informer->client, informer->kind);
		list_from_start(informer);
		start(informer);
		return;
	}
	if (response->status / 100 == 2)
		informer->broken_streams++;
	if (!kube_err_is_expired(err))
		call_failed(informer, response, err);
	list_from_start(informer);
	start_later(informer, err);
}

static void watch_failed(struct informer *informer, const struct kube_response *response,
			 const struct err *err)
{
	if (kube_err_is_expired(err)) {
		log_info("watch expired, listing again",
			 F_STR("resource", informer->config.resource->plural));
		list_from_start(informer);
		return;
	}
	call_failed(informer, response, err);
	/* Bookmarks come, unless the server is behind the version that was asked for. */
	if (kube_err_is(err, "Stalled")) {
		log_info("watch is silent, without bookmarks: listing again",
			 F_STR("resource", informer->config.resource->plural));
		list_from_start(informer);
		return;
	}
	informer->compare = informer->compare || response->status / 100 != 2 ||
			    kube_err_is(err, "ConnectionLost");
	/*
	 * Not served any more (its CRD was deleted): when it is back, nothing of before is there.
	 */
	if (response->status == 404 ||
	    (response->status / 100 == 2 && informer->failures >= FAILURES_MAX))
		list_from_start(informer);
}

static void on_done(void *arg, const struct kube_response *response, const struct err *err)
{
	struct informer *informer = arg;
	bool lasted;

	informer->call = NULL;
	switch (informer->feed.phase) {
	case FEED_LIST:
		page_done(informer, response, err);
		break;
	case FEED_STREAM:
		stream_done(informer, response, err);
		break;
	case FEED_WATCH:
		lasted = informer->opened_ms && clock_ms() - informer->opened_ms > 1000;
		if (lasted)
			informer->failures = 0;
		if (err)
			watch_failed(informer, response, err);
		if (lasted && !err)
			start(informer);
		else
			start_later(informer, err);
		break;
	}
}

/* A list of one object says how far the server is; it need not be there. */
static void on_compared(void *arg, const struct kube_response *response, const struct err *err)
{
	struct informer *informer = arg;
	json_auto_t *list = err ? NULL : json_parse(response->body, response->body_len, NULL);
	uint64_t newest = kube_resource_version(list);
	struct err broken = {0};

	informer->call = NULL;
	if (!err && newest == 0) {
		(void)err_set(&broken, ERR_TRANSIENT, "BadStream",
			      "the server's answer for %s is not a list",
			      informer->config.resource->plural);
		err = &broken;
	}
	if (err) {
		watch_failed(informer, response, err);
		start_later(informer, err);
		return;
	}
	informer->compare = false;
	if (newest < informer->feed.seen)
		feed_restored(&informer->feed, newest);
	start(informer);
}

static void compare(struct informer *informer)
{
	const struct informer_config *config = &informer->config;
	auto_strbuf struct strbuf query = {0};
	auto_free char *path = NULL;

	strbuf_adds(&query, "limit=1");
	if (config->selector)
		strbuf_addf(&query, "&%s", config->selector);
	path = kube_path(config->resource, config->ns, NULL, NULL, strbuf_str(&query));
	informer->call = kube_call(informer->client, &(struct kube_request){
							     .verb = "list",
							     .method = "GET",
							     .path = path,
							     .once = true,
							     .done = on_compared,
							     .arg = informer,
						     });
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
	if (informer->feed.phase == FEED_STREAM) {
		add_param(query, "sendInitialEvents", "true");
		add_param(query, "resourceVersionMatch", "NotOlderThan");
	} else {
		snprintf(number, sizeof(number), "%llu",
			 (unsigned long long)informer->feed.version);
		add_param(query, "resourceVersion", number);
	}
}

static void add_list_params(const struct informer *informer, struct strbuf *query)
{
	char number[24];

	snprintf(number, sizeof(number), "%d", INFORMER_PAGE);
	add_param(query, "limit", number);
	if (informer->feed.next_page)
		add_param(query, "continue", informer->feed.next_page);
}

static void start(struct informer *informer)
{
	const struct informer_config *config = &informer->config;
	bool listing = informer->feed.phase == FEED_LIST;
	auto_strbuf struct strbuf query = {0};
	auto_free char *path = NULL;

	if (informer->compare && informer->feed.phase == FEED_WATCH) {
		compare(informer);
		return;
	}
	informer->compare = false;
	if (listing)
		add_list_params(informer, &query);
	else
		add_watch_params(informer, &query);
	if (config->selector)
		strbuf_addf(&query, "&%s", config->selector);
	path = kube_path(config->resource, config->ns, NULL, NULL, strbuf_str(&query));
	feed_open(&informer->feed);
	informer->opened_ms = 0;
	informer->call = kube_call(informer->client,
				   &(struct kube_request){
					   .verb = listing ? "list" : "watch",
					   .method = "GET",
					   .path = path,
					   .timeout_ms = listing ? INFORMER_LIST_TIMEOUT_MS : -1,
					   .silence_ms = listing ? 0 : informer->config.silence_ms,
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

	assert(config);
	informer->config = *config;
	if (config->silence_ms == 0)
		informer->config.silence_ms = INFORMER_SILENCE_MS;
	informer->loop = loop;
	informer->client = client;
	informer->retry = timer_new(loop, on_retry, informer);
	informer->kind = config->resource->group[0] ? str_printf("%s/%s", config->resource->group,
								 config->resource->plural)
						    : str_dup(config->resource->plural);
	informer->feed = (struct feed){
		.resource = config->resource->plural,
		.cache = config->cache,
		.drops = config->drops,
		.n_drops = config->n_drops,
		.lists = metric_counter(config->metrics, "orbweaver_informer_lists_total",
					"Complete lists begun.", "resource"),
		.events = metric_counter(config->metrics, "orbweaver_informer_events_total",
					 "Objects and events received.", "resource"),
		.unreadable =
			metric_gauge(config->metrics, "orbweaver_informer_unreadable_objects",
				     "Objects that are there and cannot be read.", "resource"),
		.understood = on_understood,
		.complete = on_complete,
		.arg = informer,
	};
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
	feed_done(&informer->feed);
	mem_free(informer->kind);
	mem_free(informer);
}

bool informer_is_synced(const struct informer *informer)
{
	return informer->synced;
}

struct informer_health informer_health(const struct informer *informer)
{
	return (struct informer_health){
		.broken_since_ms = informer->broken_since_ms,
		.reason = informer->last_trouble.reason,
		.last_event_ms = informer->last_event_ms,
		.version = informer->feed.seen,
		.unreadable = cache_unreadable_len(informer->config.cache),
	};
}

void informer_learn(struct informer *informer, json_t *object)
{
	if (informer->synced && kube_resource_version(object) > informer->feed.seen)
		cache_learn(informer->config.cache, json_incref(object));
}

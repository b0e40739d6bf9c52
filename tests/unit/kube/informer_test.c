// SPDX-License-Identifier: Apache-2.0
/*
 * The informer against a scripted server: whatever goes wrong on the way, the cache ends up equal
 * to the server.
 */
#include "tests/support/test.h"

#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "tests/fakes/scripted.h"
#include "tests/fakes/virtual_time.h"

#define LIST   "GET /apis/test.example/v1/widgets?limit=500 "
#define NEWEST "GET /apis/test.example/v1/widgets?limit=1 "
#define WATCH  "GET /apis/test.example/v1/widgets?watch=true"
#define STREAM                                                                                     \
	"GET /apis/test.example/v1/widgets?watch=true&allowWatchBookmarks=true&timeoutSeconds="

static const struct cache_kind kind;

static struct fixture {
	struct scripted s;
	struct cache *cache;
	struct informer *informer;
	int events; /* of the cache */
	int synced;
	int troubles;
	int cleared;
	char reason[32]; /* of the last trouble */
	struct metrics *metrics;
} f;

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	f.events++;
}

static void on_synced(void *arg)
{
	f.synced++;
}

static void on_trouble(void *arg, const struct err *err)
{
	if (!err) {
		f.cleared++;
		return;
	}
	f.troubles++;
	snprintf(f.reason, sizeof(f.reason), "%s", err->reason);
}

static int set_up(void **state)
{
	f = (struct fixture){0};
	scripted_open(&f.s);
	f.cache = cache_new(&kind, on_changed, NULL);
	f.metrics = metrics_new();
	return 0;
}

static int tear_down(void **state)
{
	informer_free(f.informer);
	cache_free(f.cache);
	scripted_close(&f.s);
	metrics_free(f.metrics);
	return 0;
}

static void start(void)
{
	f.informer = informer_new(f.s.loop, f.s.client,
				  &(struct informer_config){
					  .resource = &scripted_widgets,
					  .cache = f.cache,
					  .silence_ms = 300,
					  .synced = on_synced,
					  .trouble = on_trouble,
					  .metrics = f.metrics,
				  });
}

static int lists(void)
{
	struct metric *begun =
		metric_counter(f.metrics, "orbweaver_informer_lists_total", "", "resource");

	return (int)metric_get(begun, "widgets");
}

static void start_streaming(void)
{
	http_script_stream_lists(f.s.http);
	start();
}

static void reply(const char *begin, struct http_reply reply)
{
	http_script_add(f.s.http, begin, &reply);
}

#define OBJECT(name, version)                                                                      \
	"{\"metadata\":{\"namespace\":\"lab\",\"name\":\"" name                                    \
	"\",\"resourceVersion\":\"" version "\"},\"v\":" version "}"
#define LIST_OF(version, token, items)                                                             \
	"{\"kind\":\"WidgetList\",\"metadata\":{\"resourceVersion\":\"" version                    \
	"\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)   EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define STATUS(code, reason)                                                                       \
	"{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"m\"}"
#define INITIAL_END(version)                                                                       \
	EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                          \
			  "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")

/* The cache holds exactly these: "a=3 b=7 ". */
static void assert_cache(const char *want)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	auto_strbuf struct strbuf got = {0};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *key = str_printf("lab/%s", names[i]);

		if (!cache_has(f.cache, key))
			continue;
		strbuf_addf(&got, "%s=%llu ", names[i],
			    (unsigned long long)cache_version(f.cache, key));
		n++;
	}
	assert_string_equal(strbuf_str(&got), want);
	assert_int_equal(cache_len(f.cache), n);
}

static void until_events(int n)
{
	scripted_until(&f.s, &f.events, n);
}

static bool asked(const char *part)
{
	const char *request = NULL;

	for (size_t i = 0; (request = http_script_request(f.s.http, i)); i++)
		if (strstr(request, part))
			return true;
	return false;
}

TEST_WITH(lists_in_pages_and_watches_from_there, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "next page", OBJECT("a", "3"))});
	reply("GET /apis/test.example/v1/widgets?limit=500&continue=next%20page ",
	      (struct http_reply){.body = LIST_OF("10", "", OBJECT("b", "7"))});
	reply(WATCH,
	      (struct http_reply){
		      .body = EVENT("ADDED", OBJECT("c", "11")) EVENT("MODIFIED", OBJECT("a", "12"))
			      EVENT("DELETED", OBJECT("b", "13")),
		      .after = HTTP_OPEN,
	      });
	start();
	assert_false(informer_is_synced(f.informer));
	until_events(5);
	assert_int_equal(f.synced, 1);
	assert_cache("a=12 c=11 ");
	assert_true(asked("resourceVersion=10 "));
}

TEST_WITH(a_page_that_breaks_off_is_read_again, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "p2", OBJECT("a", "3"))});
	reply("GET /apis/test.example/v1/widgets?limit=500&continue=p2 ",
	      (struct http_reply){
		      .body = "{\"metadata\":{},\"items\":[" OBJECT("b", "7") ",{\"meta",
		      .after = HTTP_CUT});
	reply("GET /apis/test.example/v1/widgets?limit=500&continue=p2 ",
	      (struct http_reply){
		      .body = LIST_OF("10", "", OBJECT("b", "7") "," OBJECT("c", "8"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	scripted_until(&f.s, &f.synced, 1);
	assert_cache("a=3 b=7 c=8 ");
	assert_int_equal(f.troubles, 0);
}

TEST_WITH(a_continue_token_that_is_too_old_starts_the_list_again, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "p2", OBJECT("a", "3"))});
	reply("GET /apis/test.example/v1/widgets?limit=500&continue=p2 ",
	      (struct http_reply){.status = 410, .body = STATUS("410", "Expired")});
	reply(LIST, (struct http_reply){.body = LIST_OF("20", "", OBJECT("b", "17"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	scripted_until(&f.s, &f.synced, 1);
	assert_cache("b=17 "); /* a went meanwhile */
}

/* A server whose history goes on, for the first watch after a lost connection. */
static void goes_on(void)
{
	reply(NEWEST, (struct http_reply){.body = LIST_OF("1000", "", ""), .always = true});
}

TEST_WITH(a_broken_watch_goes_on_where_it_was, set_up, tear_down)
{
	goes_on();
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH,
	      (struct http_reply){.body = EVENT("MODIFIED", OBJECT("a", "11")) "{\"type\":\"DELE",
				  .after = HTTP_CUT});
	reply(WATCH,
	      (struct http_reply){.body = EVENT("DELETED", OBJECT("a", "12")), .after = HTTP_OPEN});
	start();
	until_events(3);
	assert_cache("");
	assert_true(asked("resourceVersion=11 "));
	assert_int_equal(http_script_count(f.s.http, LIST), 1);
	assert_int_equal(f.troubles, 0); /* nobody has to know */
}

TEST_WITH(bookmarks_move_the_place_to_resume_from, set_up, tear_down)
{
	goes_on();
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", "")});
	reply(WATCH, (struct http_reply){.body = BOOKMARK("900"), .after = HTTP_CUT});
	reply(WATCH,
	      (struct http_reply){.body = EVENT("ADDED", OBJECT("a", "901")), .after = HTTP_OPEN});
	start();
	until_events(1);
	assert_true(asked("resourceVersion=900 "));
	assert_int_equal(http_script_count(f.s.http, LIST), 1);
}

static void relist_after(struct http_reply too_old)
{
	reply(LIST, (struct http_reply){
			    .body = LIST_OF("10", "", OBJECT("a", "3") "," OBJECT("b", "4"))});
	reply(WATCH, too_old);
	reply(LIST, (struct http_reply){
			    .body = LIST_OF("30", "", OBJECT("b", "4") "," OBJECT("c", "29"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	until_events(4); /* a, b; then c and the end of a; b did not change */
	scripted_for(&f.s, 50);
	assert_int_equal(f.events, 4);
	assert_cache("b=4 c=29 ");
	assert_int_equal(f.synced, 1);
	assert_true(asked("resourceVersion=30 "));
}

TEST_WITH(a_410_status_leads_to_a_new_list, set_up, tear_down)
{
	relist_after((struct http_reply){.status = 410, .body = STATUS("410", "Expired")});
}

TEST_WITH(a_410_event_leads_to_a_new_list, set_up, tear_down)
{
	relist_after((struct http_reply){.body = EVENT("ERROR", STATUS("410", "Expired")),
					 .after = HTTP_OPEN});
}

TEST_WITH(an_older_servers_gone_is_the_same, set_up, tear_down)
{
	relist_after((struct http_reply){.body = EVENT("ERROR", STATUS("410", "Gone")),
					 .after = HTTP_OPEN});
}

TEST_WITH(another_error_event_is_told_and_the_watch_resumed, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.body = EVENT("ERROR", STATUS("500", "InternalError")),
					 .after = HTTP_OPEN});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("a", "11")),
					 .after = HTTP_OPEN});
	start();
	until_events(2);
	assert_cache("a=11 ");
	assert_int_equal(f.troubles, 1);
	assert_string_equal(f.reason, "InternalError");
	assert_true(f.cleared > 0);
	assert_int_equal(http_script_count(f.s.http, LIST), 1);
}

TEST_WITH(garbage_is_told_once_and_does_no_harm, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.body = "<html>", .after = HTTP_OPEN});
	reply(WATCH, (struct http_reply){.body = "<html>", .after = HTTP_OPEN});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("a", "11")),
					 .after = HTTP_OPEN});
	start();
	until_events(2);
	assert_cache("a=11 ");
	assert_int_equal(f.troubles, 1);
	assert_string_equal(f.reason, "BadStream");
}

/* ---- objects that cannot be read ------------------------------------------------------------- */

#define POISONED(name, version)                                                                    \
	"{\"spec\":{\"metadata\":{\"name\":\"other\"},\"n\":1e999},\"metadata\":{\"labels\":{"     \
	"\"name\":"                                                                                \
	"\"x\"},\"name\":\"" name "\",\"namespace\":\"lab\",\"resourceVersion\":\"" version "\"}}"
#define WITH_NUL(name, version)                                                                    \
	"{\"metadata\":{\"namespace\":\"lab\",\"name\":\"" name                                    \
	"\",\"annotations\":{\"note\":\"a\\u0000b\"},\"resourceVersion\":\"" version "\"}}"

TEST_WITH(a_nul_in_a_string_stops_nothing, set_up, tear_down)
{
	json_auto_t *object = NULL;

	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", WITH_NUL("a", "3"))});
	reply(WATCH,
	      (struct http_reply){.body = EVENT("ADDED", WITH_NUL("b", "11")), .after = HTTP_OPEN});
	start();
	until_events(2);
	assert_cache("a=3 b=11 ");
	assert_int_equal(f.troubles, 0);
	object = cache_get(f.cache, "lab/b");
	assert_string_equal(json_str_at(object, "metadata", "annotations", "note"), "a\xEF\xBF\xBD"
										    "b");
}

/* Also one that the splitter gave up, of which no JSON is left to be read. */
TEST_WITH(an_object_that_is_nested_too_deeply_is_logged, set_up, tear_down)
{
	static const char object[] = "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"a\","
				     "\"resourceVersion\":\"3\"},\"v\":%s%s}";
	char opening[101], closing[101], text[4096];
	auto_free char *deep = NULL, *list = NULL;
	auto_close int fd = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	memset(opening, '[', 100);
	memset(closing, ']', 100);
	opening[100] = closing[100] = '\0';
	deep = str_printf(object, opening, closing);
	list = str_printf(LIST_OF("10", "", "%s," OBJECT("b", "4")), deep);
	reply(LIST, (struct http_reply){.body = list});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	log_set_fd(fd);
	start();
	until_events(1);
	log_set_fd(2);
	assert_cache("b=4 ");
	assert_true(cache_is_unreadable(f.cache, "lab/a"));
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "Unreadable"));
	assert_non_null(strstr(text, "nested deeper than 64 levels"));
}

TEST_WITH(one_object_that_cannot_be_read_stops_no_other, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "",
							OBJECT("a", "3") "," POISONED(
								"b", "4") "," OBJECT("c", "5"))});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", POISONED("a", "11"))
						 EVENT("ADDED", OBJECT("d", "12")),
					 .after = HTTP_OPEN});
	start();
	until_events(3); /* a, c; d */
	assert_int_equal(f.troubles, 0);
	assert_int_equal(f.synced, 1);
	assert_cache("a=3 c=5 d=12 "); /* of a what was known before */
	assert_true(cache_is_unreadable(f.cache, "lab/a"));
	assert_false(cache_is_unknown(f.cache, "lab/a"));
	assert_true(cache_is_unknown(f.cache, "lab/b"));
	assert_int_equal(cache_unreadable_len(f.cache), 2);
	assert_int_equal(cache_unknown_len(f.cache), 1);
	assert_int_equal(informer_health(f.informer).unreadable, 2);

	http_script_push(f.s.http, EVENT("MODIFIED", OBJECT("a", "13"))
					   EVENT("DELETED", POISONED("b", "14")));
	until_events(5); /* a is mended; b is gone */
	assert_cache("a=13 c=5 d=12 ");
	assert_int_equal(cache_unreadable_len(f.cache), 0);
}

TEST_WITH(what_cannot_be_read_is_not_taken_for_deleted_by_a_list, set_up, tear_down)
{
	reply(LIST, (struct http_reply){
			    .body = LIST_OF("10", "", OBJECT("a", "3") "," POISONED("b", "4"))});
	reply(WATCH, (struct http_reply){.status = 410});
	reply(LIST, (struct http_reply){.body = LIST_OF("20", "", POISONED("a", "13"))});
	reply(WATCH, (struct http_reply){.status = 410});
	reply(LIST, (struct http_reply){.body = LIST_OF("30", "", OBJECT("c", "21"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	until_events(2); /* a; the end of b, of which nobody knew more */
	assert_cache("a=3 ");
	assert_true(cache_is_unreadable(f.cache, "lab/a"));
	assert_false(cache_is_unreadable(f.cache, "lab/b"));
	until_events(4);
	assert_cache("c=21 ");
	assert_int_equal(cache_unreadable_len(f.cache), 0);
}

TEST_WITH(what_does_not_say_which_object_it_is_ends_the_answer, NULL, tear_down)
{
	static const char *const events[] = {
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\"},\"n\":1e999}}\n",
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"11\"},"
		"\"n\":1e999}}\n",
		"{\"object\":" POISONED("a", "11") "}\n",
		EVENT("BOOKMARK", POISONED("a", "11")),
		EVENT("ERROR", POISONED("a", "11")),
	};

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		set_up(state);
		reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
		reply(WATCH, (struct http_reply){.body = events[i], .after = HTTP_OPEN});
		reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("a", "12")),
						 .after = HTTP_OPEN});
		start();
		until_events(2);
		assert_int_equal(f.troubles, 1);
		assert_string_equal(f.reason, "BadStream");
		assert_int_equal(cache_unreadable_len(f.cache), 0);
		if (i + 1 < ARRAY_LEN(events))
			tear_down(state);
	}
}

TEST_WITH(health_says_since_when_and_why, set_up, tear_down)
{
	struct informer_health health;

	reply(LIST, (struct http_reply){.status = 403, .body = STATUS("403", "Forbidden")});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	scripted_until(&f.s, &f.troubles, 1);
	health = informer_health(f.informer);
	assert_true(health.broken_since_ms > 0);
	assert_string_equal(health.reason, "Forbidden");
	assert_int_equal(health.last_event_ms, 0);
	scripted_until(&f.s, &f.synced, 1);
	health = informer_health(f.informer);
	assert_int_equal(health.broken_since_ms, 0);
	assert_string_equal(health.reason, "");
	assert_true(health.last_event_ms > 0);
	assert_int_equal(health.version, 10);
}

TEST_WITH(what_is_no_list_is_not_an_empty_one, NULL, tear_down)
{
	static const char *const answers[] = {
		"{}",
		"[]",
		"null",
		"\"list\"",
		"{\"items\":[]}",
		STATUS("200", "Fine"),
		"{\"metadata\":{\"resourceVersion\":\"20\"},\"item\\u0073\":[{}]}",
		"{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[{}]}",
		"{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[]}{",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		set_up(state);
		reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
		reply(WATCH, (struct http_reply){.status = 410});
		reply(LIST, (struct http_reply){.body = answers[i]});
		reply(LIST, (struct http_reply){.body = LIST_OF("30", "", OBJECT("a", "3"))});
		reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
		start();
		scripted_until(&f.s, &f.troubles, 1);
		assert_cache("a=3 ");
		scripted_until(&f.s, &f.cleared, 1);
		assert_cache("a=3 ");
		assert_int_equal(f.events, 1);
		if (i + 1 < ARRAY_LEN(answers))
			tear_down(state);
	}
}

TEST_WITH(a_restored_server_is_believed, set_up, tear_down)
{
	reply(LIST,
	      (struct http_reply){
		      .body = LIST_OF("1000", "", OBJECT("a", "900") "," OBJECT("b", "1000"))});
	reply(WATCH, (struct http_reply){.status = 410});
	reply(LIST, (struct http_reply){
			    .always = true,
			    .body = LIST_OF("50", "", OBJECT("a", "40") "," OBJECT("c", "50"))});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("c", "51")),
					 .after = HTTP_OPEN});
	start();
	until_events(6); /* a, b; a and c anew, b gone; c */
	assert_cache("a=40 c=51 ");
	assert_int_equal(http_script_count(f.s.http, LIST), 3);
	assert_true(asked("resourceVersion=50 "));
}

static void start_seen(const char *restored_start, struct http_reply restored)
{
	reply(LIST,
	      (struct http_reply){
		      .body = LIST_OF("1000", "", OBJECT("a", "900") "," OBJECT("b", "1000"))});
	reply(restored_start, restored);
	reply(LIST, (struct http_reply){
			    .always = true,
			    .body = LIST_OF("50", "", OBJECT("a", "40") "," OBJECT("c", "50"))});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("c", "51")),
					 .after = HTTP_OPEN});
	start();
	until_events(6); /* a, b; a and c anew, b gone; c */
	assert_cache("a=40 c=51 ");
	assert_true(asked("resourceVersion=50 "));
}

TEST_WITH(an_event_of_an_older_version_means_a_restored_server, set_up, tear_down)
{
	start_seen(WATCH, (struct http_reply){.body = EVENT("ADDED", OBJECT("d", "50")),
					      .after = HTTP_OPEN});
	assert_string_equal(f.reason, "Restored");
}

TEST_WITH(a_bookmark_of_an_older_version_means_a_restored_server, set_up, tear_down)
{
	start_seen(WATCH, (struct http_reply){.body = BOOKMARK("999"), .after = HTTP_OPEN});
	assert_string_equal(f.reason, "Restored");
}

TEST_WITH(a_server_that_was_restored_while_the_connection_was_lost_is_noticed, set_up, tear_down)
{
	reply(NEWEST, (struct http_reply){.body = LIST_OF("50", "", "")});
	start_seen(WATCH, (struct http_reply){.after = HTTP_CUT});
}

TEST_WITH(a_watch_that_is_silent_for_too_long_is_listed_again, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("1000", "", OBJECT("a", "900"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN}); /* not even a bookmark */
	reply(LIST, (struct http_reply){.body = LIST_OF("1001", "", OBJECT("b", "1001"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	until_events(3);
	assert_cache("b=1001 ");
	assert_int_equal(f.troubles, 0);
}

TEST_WITH(history_is_compared_until_the_server_answers, set_up, tear_down)
{
	goes_on();
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.status = 503});
	reply(WATCH, (struct http_reply){.after = HTTP_CUT});
	reply(WATCH, (struct http_reply){.body = EVENT("MODIFIED", OBJECT("a", "11")),
					 .after = HTTP_OPEN});
	start();
	until_events(2);
	assert_int_equal(http_script_count(f.s.http, NEWEST), 2);
	assert_int_equal(http_script_count(f.s.http, LIST), 1);
}

TEST_WITH(what_cannot_be_listed_is_told, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.status = 404, .body = "404 page not found\n"});
	reply(LIST, (struct http_reply){.status = 403, .body = STATUS("403", "Forbidden")});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", "")});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	scripted_until(&f.s, &f.troubles, 1);
	assert_string_equal(f.reason, "NotServed");
	scripted_until(&f.s, &f.troubles, 2);
	assert_string_equal(f.reason, "Forbidden");
	scripted_until(&f.s, &f.synced, 1);
	assert_true(f.cleared > 0);
}

TEST_WITH(a_429_is_waited_out, set_up, tear_down)
{
	int64_t began = clock_ms();

	reply(LIST, (struct http_reply){.status = 429, .headers = "Retry-After: 1\r\n"});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", "")});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	scripted_until(&f.s, &f.synced, 1);
	assert_in_range(clock_ms() - began, 1000, 1000 + INFORMER_RETRY_FIRST_MS);
}

/* The API server says so while it fills a watch cache. */
TEST_WITH(a_429_in_the_body_or_in_an_event_is_waited_out, set_up, tear_down)
{
	static const char busy[] = "{\"kind\":\"Status\",\"code\":429,\"reason\":"
				   "\"TooManyRequests\",\"message\":\"storage is "
				   "(re)initializing\",\"details\":{\"retryAfterSeconds\":1}}";
	auto_free char *event = str_printf("{\"type\":\"ERROR\",\"object\":%s}\n", busy);
	int64_t began = clock_ms();

	reply(LIST, (struct http_reply){.status = 429, .body = busy});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", "")});
	reply(WATCH, (struct http_reply){.body = event, .after = HTTP_OPEN});
	reply(WATCH,
	      (struct http_reply){.body = EVENT("ADDED", OBJECT("a", "11")), .after = HTTP_OPEN});
	start();
	until_events(1);
	assert_in_range(clock_ms() - began, 2000, 8000);
	assert_int_equal(http_script_count(f.s.http, LIST), 2);
}

/* ---- streaming lists ------------------------------------------------------------------------- */

TEST_WITH(a_streamed_list_is_complete_at_its_bookmark, set_up, tear_down)
{
	reply(STREAM,
	      (struct http_reply){
		      .body = EVENT("ADDED", OBJECT("b", "9")) EVENT("ADDED", OBJECT("a", "3")),
		      .after = HTTP_OPEN,
	      });
	start_streaming();
	until_events(2);
	assert_int_equal(f.synced, 0);
	http_script_push(f.s.http, INITIAL_END("20") EVENT("DELETED", OBJECT("a", "21")));
	until_events(3);
	assert_int_equal(f.synced, 1);
	assert_cache("b=9 ");
	assert_true(asked("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan "));
	assert_int_equal(http_script_unexpected(f.s.http), 0);
}

static size_t streams_asked(void)
{
	const char *request = NULL;
	size_t n = 0;

	for (size_t i = 0; (request = http_script_request(f.s.http, i)); i++)
		n += strstr(request, "&sendInitialEvents=true") != NULL;
	return n;
}

static void count(void *arg)
{
	++*(int *)arg;
}

TEST_WITH(a_server_without_streamed_lists_is_asked_for_pages, set_up, tear_down)
{
	reply(WATCH, (struct http_reply){.status = 422, .body = STATUS("422", "Invalid")});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.status = 410});
	reply(LIST, (struct http_reply){.body = LIST_OF("20", "", OBJECT("b", "13"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start_streaming();
	until_events(3);
	scripted_for(&f.s, 50);
	assert_cache("b=13 ");
	assert_int_equal(f.troubles, 0);
	assert_int_equal(lists(), 2); /* a stream that is refused and its pages are one */
	assert_int_equal(http_script_unused(f.s.http), 0);
}

/* All who use the client know, and nobody asks for an hour. */
TEST_WITH(a_refusal_is_remembered_for_the_kind, set_up, tear_down)
{
	struct cache *other = cache_new(&kind, NULL, NULL);
	int synced = 0;
	struct informer_config config = {
		.resource = &scripted_widgets,
		.cache = other,
		.synced = count,
		.arg = &synced,
	};
	struct informer *informer = NULL;

	reply(WATCH, (struct http_reply){.status = 400, .body = STATUS("400", "BadRequest")});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", ""), .always = true});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN, .always = true});
	start_streaming();
	scripted_until(&f.s, &f.synced, 1);
	assert_false(kube_client_may_stream(f.s.client, "test.example/widgets"));
	informer = informer_new(f.s.loop, f.s.client, &config);
	scripted_until(&f.s, &synced, 1);
	informer_free(informer);
	assert_int_equal(http_script_count(f.s.http, LIST), 2);
	assert_int_equal(streams_asked(), 1);
	informer_free(take_ptr(f.informer));
	virtual_time_leap_ms(KUBE_STREAMS_AGAIN_MS);
	assert_true(kube_client_may_stream(f.s.client, "test.example/widgets"));
	cache_free(other);
}

/* The server restarts while it sends the list: that is no refusal, unless it happens again. */
TEST_WITH(a_stream_that_breaks_off_is_asked_for_once_more, set_up, tear_down)
{
	reply(STREAM,
	      (struct http_reply){.body = EVENT("ADDED", OBJECT("a", "3")), .after = HTTP_CUT});
	reply(STREAM, (struct http_reply){
			      .body = EVENT("ADDED", OBJECT("b", "4")) INITIAL_END("10"),
			      .after = HTTP_OPEN,
		      });
	start_streaming();
	scripted_until(&f.s, &f.synced, 1);
	assert_cache("b=4 ");
	assert_int_equal(f.troubles, 0);
	assert_true(kube_client_may_stream(f.s.client, "test.example/widgets"));
}

TEST_WITH(after_two_broken_streams_a_list_is_read_in_pages, set_up, tear_down)
{
	reply(STREAM,
	      (struct http_reply){.body = EVENT("ADDED", OBJECT("a", "3")), .after = HTTP_CUT});
	reply(STREAM,
	      (struct http_reply){.body = EVENT("ADDED", OBJECT("a", "3")), .after = HTTP_CUT});
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("b", "4"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start_streaming();
	scripted_until(&f.s, &f.synced, 1);
	assert_cache("b=4 ");
	assert_true(kube_client_may_stream(f.s.client, "test.example/widgets"));
}

/* A server that takes the question for an ordinary watch would never say where the list ends. */
TEST_WITH(a_watch_in_place_of_a_stream_is_a_refusal, set_up, tear_down)
{
	reply(STREAM, (struct http_reply){
			      .body = EVENT("ADDED", OBJECT("a", "3")) BOOKMARK("9"),
			      .after = HTTP_OPEN,
		      });
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("b", "4"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start_streaming();
	scripted_until(&f.s, &f.synced, 1);
	assert_cache("b=4 ");
	assert_int_equal(f.troubles, 0);
	assert_false(kube_client_may_stream(f.s.client, "test.example/widgets"));
}

/* What an API server says that still reads its objects from etcd. */
TEST_WITH(a_stream_waits_for_a_server_that_is_not_ready, set_up, tear_down)
{
	int64_t began = clock_ms();

	reply(STREAM, (struct http_reply){
			      .status = 429,
			      .headers = "Retry-After: 3\r\n",
			      .body = STATUS("429", "TooManyRequests"),
		      });
	reply(STREAM, (struct http_reply){
			      .body = EVENT("ADDED", OBJECT("a", "3")) INITIAL_END("10"),
			      .after = HTTP_OPEN,
		      });
	start_streaming();
	scripted_until(&f.s, &f.synced, 1);
	assert_true(clock_ms() - began >= 3000);
	assert_cache("a=3 ");
}

TEST_WITH(a_stream_that_cannot_begin_is_told, set_up, tear_down)
{
	reply(WATCH, (struct http_reply){.status = 500, .always = true});
	start_streaming();
	scripted_until(&f.s, &f.troubles, 1);
	assert_string_equal(f.reason, "InternalError");
}

/* ---- what was learned elsewhere -------------------------------------------------------------- */

static void learn(const char *text)
{
	json_auto_t *object = json_parse(text, strlen(text), NULL);

	assert_non_null(object);
	informer_learn(f.informer, object);
}

TEST_WITH(own_writes_are_known_before_the_watch_tells, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	learn(OBJECT("c", "99")); /* not before the first list is complete */
	assert_cache("");
	scripted_until(&f.s, &f.synced, 1);
	scripted_for(&f.s, 100); /* the watch is open */
	learn(OBJECT("a", "12"));
	learn(OBJECT("b", "13"));
	assert_cache("a=12 b=13 ");
	http_script_push(f.s.http,
			 EVENT("MODIFIED", OBJECT("a", "12")) EVENT("ADDED", OBJECT("b", "13"))
				 EVENT("DELETED", OBJECT("b", "14")));
	until_events(4); /* a, a, b, b's end: the watch told nothing new about the rest */
	assert_cache("a=12 ");
	learn(OBJECT("b", "13")); /* an answer that comes late: the watch is past it */
	assert_cache("a=12 ");
}

static void fork_the_list(void *arg)
{
	/* The list that is read now was made at 20, after b was deleted. */
	learn(OBJECT("b", "13"));
	learn(OBJECT("c", "21"));
}

TEST_WITH(a_late_answer_during_a_list_does_not_raise_the_dead, set_up, tear_down)
{
	reply(LIST, (struct http_reply){.body = LIST_OF("10", "", OBJECT("a", "3"))});
	reply(WATCH, (struct http_reply){.status = 410});
	reply(LIST, (struct http_reply){.body = LIST_OF("20", "", OBJECT("a", "3")),
					.seen = fork_the_list});
	reply(WATCH, (struct http_reply){.after = HTTP_OPEN});
	start();
	until_events(4); /* a; b comes and goes; c is newer than the list */
	scripted_for(&f.s, 50);
	assert_cache("a=3 c=21 ");
}

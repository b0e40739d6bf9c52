// SPDX-License-Identifier: Apache-2.0
/*
 * The lease against a scripted server, with a clock that a test can move: who holds it when, and
 * what is written.
 */
#include "tests/support/test.h"

#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "lib/kube/lease.h"
#include "tests/fakes/scripted.h"

#define LEASES    "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
#define GET_LEASE "GET " LEASES "/op "
#define PUT_LEASE "PUT " LEASES "/op?fieldManager=m "
#define NEW_LEASE "POST " LEASES "?fieldManager=m "

static int64_t moved_us;

/* Takes the place of lib/base's weak one. */
int64_t clock_us(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + moved_us;
}

static struct fixture {
	struct scripted s;
	struct lease *lease;
	int began, ended, troubles, reached, released;
	char reason[32];
} f;

static void on_changed(void *arg, bool leading)
{
	assert_int_equal(lease_is_held(f.lease), leading);
	if (leading)
		f.began++;
	else
		f.ended++;
}

static void on_trouble(void *arg, const struct err *err)
{
	if (!err) {
		f.reached++;
		return;
	}
	f.troubles++;
	snprintf(f.reason, sizeof(f.reason), "%s", err->reason);
}

static int set_up(void **state)
{
	f = (struct fixture){0};
	moved_us = 0;
	scripted_open(&f.s);
	return 0;
}

static int tear_down(void **state)
{
	lease_free(f.lease);
	scripted_close(&f.s);
	return 0;
}

static void start_lease_with(bool is_alone, const json_t *annotations)
{
	f.lease = lease_new(f.s.loop, f.s.client,
			    &(struct lease_config){
				    .ns = "ns",
				    .name = "op",
				    .identity = "me",
				    .field_manager = "m",
				    .is_alone = is_alone,
				    .annotations = annotations,
				    .changed = on_changed,
				    .trouble = on_trouble,
			    });
}

static void start_lease(void)
{
	start_lease_with(false, NULL);
}

static void reply(const char *start, struct http_reply reply)
{
	http_script_add(f.s.http, start, &reply);
}

#define LEASE_OF(holder, version, renewed, seconds)                                                \
	"{\"metadata\":{\"name\":\"op\",\"namespace\":\"ns\",\"resourceVersion\":\"" version       \
	"\",\"labels\":{\"keep\":\"me\"}},\"spec\":{\"holderIdentity\":\"" holder                  \
	"\",\"leaseDurationSeconds\":" seconds ",\"renewTime\":\"" renewed                         \
	"\",\"leaseTransitions\":7}}"

static void not_found_then_created(struct http_reply created)
{
	reply(GET_LEASE, (struct http_reply){
				 .status = 404,
				 .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":"
					 "{\"name\":\"op\"},\"message\":\"m\"}",
			 });
	created.status = 201;
	created.body = LEASE_OF("me", "1", "t1", "15");
	reply(NEW_LEASE, created);
}

static void move_clock(int64_t ms)
{
	moved_us += ms * 1000;
}

TEST_WITH(one_that_is_not_there_is_created_and_held_for_ten_seconds, set_up, tear_down)
{
	const char *request = NULL;

	not_found_then_created((struct http_reply){0});
	start_lease();
	assert_false(lease_is_held(f.lease));
	scripted_until(&f.s, &f.began, 1);
	request = http_script_request(f.s.http, 1);
	assert_non_null(strstr(request, "\"holderIdentity\":\"me\""));
	assert_non_null(strstr(request, "\"leaseDurationSeconds\":15"));
	assert_non_null(strstr(request, "\"leaseTransitions\":0"));
	assert_string_equal(lease_holder(f.lease), "me");
	assert_int_equal(f.reached, 1);
	move_clock(LEASE_HOLD_MS - 500);
	assert_true(lease_is_held(f.lease));
	move_clock(501);
	assert_false(lease_is_held(f.lease));
	assert_int_equal(f.troubles, 0);
}

TEST_WITH(it_says_for_how_long_its_holder_writes_and_what_else_others_need, set_up, tear_down)
{
	json_auto_t *annotations =
		json_pack("{s:s}", "orbweaver.io/config-namespace", "spiderpool");

	not_found_then_created((struct http_reply){0});
	start_lease_with(false, annotations);
	scripted_until(&f.s, &f.began, 1);
	assert_non_null(strstr(http_script_request(f.s.http, 1),
			       "\"orbweaver.io/renew-deadline-seconds\":\"10\""));
	assert_non_null(strstr(http_script_request(f.s.http, 1),
			       "\"orbweaver.io/config-namespace\":\"spiderpool\""));
}

TEST(a_term_is_as_long_as_the_lease_says)
{
	json_auto_t *said =
		json_pack("{s:{s:{s:s}}, s:{s:i}}", "metadata", "annotations",
			  LEASE_TERM_ANNOTATION, "30", "spec", "leaseDurationSeconds", 60);
	json_auto_t *foreign = json_pack("{s:{s:i}}", "spec", "leaseDurationSeconds", 60);
	json_auto_t *odd =
		json_pack("{s:{s:{s:s}}, s:{s:i}}", "metadata", "annotations",
			  LEASE_TERM_ANNOTATION, "soon", "spec", "leaseDurationSeconds", -1);

	assert_int_equal(lease_term_ms(said), 30000);
	assert_int_equal(lease_term_ms(foreign), 60000);
	assert_int_equal(lease_term_ms(odd), LEASE_DURATION_S * 1000);
	assert_int_equal(lease_term_ms(NULL), LEASE_DURATION_S * 1000);
}

/* --leader-elect=false: it leads in any case, and the Lease is for those who look. */
TEST_WITH(one_without_an_election_leads_and_writes_the_lease_of_others, set_up, tear_down)
{
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("other", "1", "t1", "15")});
	reply(PUT_LEASE, (struct http_reply){.body = LEASE_OF("me", "2", "t2", "15")});
	start_lease_with(true, NULL);
	scripted_until(&f.s, &f.reached, 1);
	while (http_script_count(f.s.http, PUT_LEASE) < 1)
		scripted_for(&f.s, 10);
	assert_int_equal(f.began, 1);
	move_clock(LEASE_FOREIGN_MAX_S * INT64_C(1000));
	assert_true(lease_is_held(f.lease));
	assert_int_equal(f.ended, 0);
}

TEST_WITH(one_without_an_election_leads_without_a_lease, set_up, tear_down)
{
	reply(GET_LEASE, (struct http_reply){
				 .status = 403,
				 .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}",
			 });
	start_lease_with(true, NULL);
	scripted_until(&f.s, &f.troubles, 1);
	assert_int_equal(f.began, 1);
	assert_true(lease_is_held(f.lease));
}

static void sleep_long(void *arg)
{
	move_clock(LEASE_HOLD_MS + 1);
}

TEST_WITH(the_term_counts_from_sending_not_from_the_answer, set_up, tear_down)
{
	/* As if the process was stopped between the two. */
	not_found_then_created((struct http_reply){.seen = sleep_long});
	reply(GET_LEASE,
	      (struct http_reply){.body = LEASE_OF("you", "2", "t2", "15"), .always = true});
	start_lease();
	while (http_script_count(f.s.http, GET_LEASE) < 2)
		scripted_for(&f.s, 50);
	assert_int_equal(f.began, 0);
	assert_false(lease_is_held(f.lease));
}

TEST_WITH(somebody_elses_is_taken_fifteen_seconds_after_its_last_change, set_up, tear_down)
{
	const char *request = NULL;

	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("you", "5", "t1", "15")});
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("you", "6", "t2", "15")});
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("you", "6", "t2", "15")});
	reply(PUT_LEASE, (struct http_reply){.body = LEASE_OF("me", "7", "t3", "15")});
	start_lease();
	while (http_script_count(f.s.http, GET_LEASE) < 1)
		scripted_for(&f.s, 20);
	scripted_for(&f.s, 50);
	assert_string_equal(lease_holder(f.lease), "you");
	move_clock(20000); /* long enough, had it not been renewed meanwhile */
	while (http_script_count(f.s.http, GET_LEASE) < 2)
		scripted_for(&f.s, 20);
	scripted_for(&f.s, 50);
	assert_int_equal(http_script_count(f.s.http, PUT_LEASE), 0);
	move_clock(14000); /* the next look is 2 s later, so 16 s */
	scripted_until(&f.s, &f.began, 1);
	request = http_script_request(f.s.http, 3);
	assert_non_null(strstr(request, "\"resourceVersion\":\"6\""));
	assert_non_null(strstr(request, "\"leaseTransitions\":8"));
	assert_non_null(strstr(request, "\"keep\":\"me\""));
}

TEST_WITH(a_shorter_duration_is_not_believed, set_up, tear_down)
{
	reply(GET_LEASE,
	      (struct http_reply){.body = LEASE_OF("you", "5", "t1", "1"), .always = true});
	start_lease();
	while (http_script_count(f.s.http, GET_LEASE) < 1)
		scripted_for(&f.s, 20);
	move_clock(10000);
	while (http_script_count(f.s.http, GET_LEASE) < 2)
		scripted_for(&f.s, 20);
	scripted_for(&f.s, 100);
	assert_int_equal(http_script_count(f.s.http, "PUT"), 0);
}

TEST_WITH(one_that_was_given_back_is_taken_at_once, set_up, tear_down)
{
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("", "5", "t1", "1")});
	reply(PUT_LEASE, (struct http_reply){.body = LEASE_OF("me", "6", "t2", "15")});
	start_lease();
	scripted_until(&f.s, &f.began, 1);
}

TEST_WITH(a_renewal_whose_answer_was_lost_does_not_cost_the_lease, set_up, tear_down)
{
	not_found_then_created((struct http_reply){0});
	/* The first attempt is stored, the second meets what it wrote. */
	reply(PUT_LEASE, (struct http_reply){.status = -1, .after = HTTP_CUT});
	reply(PUT_LEASE,
	      (struct http_reply){
		      .status = 409,
		      .body = "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"m\"}",
	      });
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("me", "2", "t2", "15")});
	reply(PUT_LEASE, (struct http_reply){.body = LEASE_OF("me", "3", "t3", "15")});
	start_lease();
	scripted_until(&f.s, &f.began, 1);
	while (http_script_unused(f.s.http) > 0)
		scripted_for(&f.s, 50);
	scripted_for(&f.s, 50);
	move_clock(6000); /* beyond the first term: the renewal counts */
	assert_true(lease_is_held(f.lease));
	assert_int_equal(f.ended, 0);
	assert_non_null(strstr(http_script_request(f.s.http, 5), "\"resourceVersion\":\"2\""));
}

TEST_WITH(one_that_somebody_else_took_is_lost_at_once, set_up, tear_down)
{
	not_found_then_created((struct http_reply){0});
	reply(PUT_LEASE, (struct http_reply){.status = 409});
	reply(GET_LEASE,
	      (struct http_reply){.body = LEASE_OF("you", "9", "t9", "15"), .always = true});
	start_lease();
	scripted_until(&f.s, &f.began, 1);
	scripted_until(&f.s, &f.ended, 1);
	assert_string_equal(lease_holder(f.lease), "you");
}

TEST_WITH(the_end_of_the_term_is_told, set_up, tear_down)
{
	not_found_then_created((struct http_reply){0});
	reply(PUT_LEASE, (struct http_reply){.status = 500, .always = true});
	start_lease();
	scripted_until(&f.s, &f.began, 1);
	move_clock(LEASE_HOLD_MS);
	scripted_until(&f.s, &f.ended, 1);
	assert_false(lease_is_held(f.lease));
}

TEST_WITH(what_is_in_the_way_is_told_once, set_up, tear_down)
{
	reply("",
	      (struct http_reply){
		      .status = 403,
		      .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"m\"}",
		      .always = true,
	      });
	start_lease();
	while (http_script_count(f.s.http, GET_LEASE) < 2)
		scripted_for(&f.s, 50);
	scripted_for(&f.s, 50);
	assert_int_equal(f.troubles, 1);
	assert_string_equal(f.reason, "Forbidden");
}

TEST_WITH(a_missing_namespace_is_told_and_not_hammered, set_up, tear_down)
{
	reply("", (struct http_reply){
			  .status = 404,
			  .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{"
				  "\"name\":\"op\"},\"message\":\"no ns\"}",
			  .always = true,
		  });
	start_lease();
	scripted_for(&f.s, 1000);
	assert_int_equal(f.troubles, 1);
	assert_int_equal(http_script_count(f.s.http, "POST"), 1);
}

#define NOT_FOUND                                                                                  \
	"{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{\"name\":\"op\"},\"message\":"  \
	"\"m\"}"

static void until_looked(size_t n)
{
	while (http_script_count(f.s.http, GET_LEASE) < n)
		scripted_for(&f.s, 20);
	scripted_for(&f.s, 50);
}

TEST_WITH(one_that_is_deleted_under_its_holder_is_not_created_before_its_time, set_up, tear_down)
{
	reply(GET_LEASE, (struct http_reply){.body = LEASE_OF("you", "5", "t1", "15")});
	reply(GET_LEASE, (struct http_reply){.status = 404, .body = NOT_FOUND, .always = true});
	reply(NEW_LEASE,
	      (struct http_reply){.status = 201, .body = LEASE_OF("me", "9", "t9", "15")});
	start_lease();
	until_looked(2);
	assert_int_equal(http_script_count(f.s.http, NEW_LEASE), 0);
	assert_string_equal(lease_holder(f.lease), "you");
	move_clock(15000);
	scripted_until(&f.s, &f.began, 1);
}

TEST_WITH(a_long_duration_is_believed_up_to_a_day, set_up, tear_down)
{
	reply(GET_LEASE,
	      (struct http_reply){.body = LEASE_OF("you", "5", "t1", "999999999"), .always = true});
	reply(PUT_LEASE, (struct http_reply){.body = LEASE_OF("me", "6", "t2", "15")});
	start_lease();
	until_looked(1);
	move_clock(7200 * 1000);
	until_looked(http_script_count(f.s.http, GET_LEASE) + 1);
	assert_int_equal(http_script_count(f.s.http, "PUT"), 0);
	move_clock(LEASE_FOREIGN_MAX_S * 1000LL);
	scripted_until(&f.s, &f.began, 1);
}

TEST_WITH(an_end_of_its_attempts_can_be_seen, set_up, tear_down)
{
	int64_t began = clock_ms();

	reply(GET_LEASE, (struct http_reply){.status = 500, .always = true});
	start_lease();
	assert_true(lease_looked_ms(f.lease) >= began);
	move_clock(5000);
	while (lease_looked_ms(f.lease) < began + 5000)
		scripted_for(&f.s, 50);
}

TEST(timings_that_let_two_write_are_refused)
{
	static const struct {
		struct lease_timing timing;
		const char *word; /* NULL: fine */
	} cases[] = {
		{{15, 10000, 4000}, NULL},
		{{60, 40000, 5000}, NULL},
		{{0, 10000, 4000}, "must be from 1 to 3600"},
		{{15, 11000, 4000}, "at least 4001 ms shorter"},
		{{15, 10000, 5001}, "half of the renew deadline"},
		{{15, 10000, 100}, "from 500 ms"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		int result = lease_check_timing(&cases[i].timing, &err);

		assert_int_equal(result, cases[i].word ? -1 : 0);
		if (cases[i].word) {
			assert_string_equal(err.reason, "BadLeaseTiming");
			assert_non_null(strstr(err.text, cases[i].word));
		}
	}
}

static void on_released(void *arg)
{
	f.released++;
}

TEST_WITH(a_release_gives_back_what_is_still_ours, set_up, tear_down)
{
	const char *request = NULL;

	not_found_then_created((struct http_reply){0});
	reply("PATCH " LEASES "/op?fieldManager=m ", (struct http_reply){.body = "{}"});
	start_lease();
	scripted_until(&f.s, &f.began, 1);
	lease_release(f.lease, on_released, NULL);
	assert_false(lease_is_held(f.lease));
	assert_int_equal(f.released, 0);
	scripted_until(&f.s, &f.released, 1);
	request = http_script_request(f.s.http, 2);
	assert_non_null(strstr(request, "\r\nContent-Type: application/json-patch+json\r\n"));
	assert_non_null(strstr(
		request, "{\"op\":\"test\",\"path\":\"/spec/holderIdentity\",\"value\":\"me\"}"));
}

TEST_WITH(a_release_during_the_first_write_gives_back_too, set_up, tear_down)
{
	not_found_then_created((struct http_reply){.delay_ms = 5000});
	reply("PATCH ", (struct http_reply){.body = "{}"});
	start_lease();
	while (http_script_count(f.s.http, NEW_LEASE) < 1)
		scripted_for(&f.s, 20);
	lease_release(f.lease, on_released, NULL);
	scripted_until(&f.s, &f.released, 1);
	assert_int_equal(http_script_count(f.s.http, "PATCH"), 1);
}

TEST_WITH(a_release_of_nothing_is_quick, set_up, tear_down)
{
	reply(GET_LEASE,
	      (struct http_reply){.body = LEASE_OF("you", "5", "t1", "15"), .always = true});
	start_lease();
	scripted_for(&f.s, 50);
	lease_release(f.lease, on_released, NULL);
	assert_int_equal(f.released, 1);
	assert_int_equal(http_script_count(f.s.http, "PATCH"), 0);
}

// SPDX-License-Identifier: Apache-2.0
/* What trouble with a kind does to readiness and metrics. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "operator/dependency_health.h"

static int64_t now_us = 1000000;

/* Takes the place of lib/base's weak one. */
int64_t clock_us(void)
{
	return now_us;
}

static struct fixture {
	struct metrics *metrics;
	struct health *ready;
	struct dependency_health *troubles;
	struct strbuf seen;
} f;

static int set_up(void **state)
{
	f = (struct fixture){.metrics = metrics_new(), .ready = health_new()};
	f.troubles = dependency_health_new(f.metrics, f.ready);
	dependency_health_add(f.troubles, "nodes", false);
	dependency_health_add(f.troubles, "ippools", true);
	return 0;
}

static int tear_down(void **state)
{
	dependency_health_free(f.troubles);
	health_free(f.ready);
	metrics_free(f.metrics);
	strbuf_done(&f.seen);
	return 0;
}

static void expect_metric(const char *line, bool present)
{
	auto_strbuf struct strbuf text = {0};

	metrics_render(f.metrics, &text);
	if ((strstr(strbuf_str(&text), line) != NULL) != present)
		fail_msg("%s%s in:\n%s", present ? "no " : "", line, strbuf_str(&text));
}

static void see(void *arg, const char *name, const char *reason, const char *text)
{
	strbuf_addf(&f.seen, "%s %s %s;", name, reason, text);
}

TEST_WITH(readiness_waits_until_each_kind_was_seen_once, set_up, tear_down)
{
	assert_false(health_is_ok(f.ready));
	dependency_health_begin(f.troubles, "nodes", "Forbidden", "grant it");
	assert_false(health_is_ok(f.ready));
	assert_true(dependency_health_end(f.troubles, "nodes"));
	assert_true(health_is_ok(f.ready));
}

TEST_WITH(trouble_afterwards_takes_no_readiness_away, set_up, tear_down)
{
	assert_false(dependency_health_end(f.troubles, "nodes"));
	dependency_health_begin(f.troubles, "nodes", "Forbidden", "grant it");
	assert_true(health_is_ok(f.ready));
}

TEST_WITH(an_optional_kind_is_not_waited_for, set_up, tear_down)
{
	(void)dependency_health_end(f.troubles, "nodes");
	dependency_health_begin(f.troubles, "ippools", "Forbidden", "grant it");
	assert_true(health_is_ok(f.ready));
}

TEST_WITH(a_gauge_says_for_how_long_while_it_lasts, set_up, tear_down)
{
	expect_metric("broken_seconds{", false);
	dependency_health_begin(f.troubles, "nodes", "Forbidden", "grant it");
	now_us += 7000000;
	/* Another reason is the same trouble. */
	dependency_health_begin(f.troubles, "nodes", "NotServed", "install it");
	now_us += 5000000;
	expect_metric("broken_seconds{kind=\"nodes\",reason=\"NotServed\"} 12\n", true);
	expect_metric("Forbidden", false);
	dependency_health_visit(f.troubles, see, NULL);
	assert_string_equal(strbuf_str(&f.seen), "nodes NotServed install it;");
	assert_true(dependency_health_end(f.troubles, "nodes"));
	expect_metric("broken_seconds{", false);
	assert_false(dependency_health_end(f.troubles, "nodes"));
}

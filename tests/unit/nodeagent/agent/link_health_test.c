// SPDX-License-Identifier: Apache-2.0
/*
 * Links as they go: what an agent before us knew, notifications, and what is said of it once.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "nodeagent/agent/link_health.h"
#include "tests/support/yaml.h"

#define A "0000:3b:00.0"
/* Up, after two changes, in boot b. */
#define BEFORE                                                                                     \
	"{bootID: b, ports: [{pciAddress: '" A "', name: ens1, verdict: healthy, reason: "         \
	"LinkHealthy, message: ens1 has a link, since: '2026-01-01T00:00:00Z', flaps: 0, "         \
	"carrierChanges: 2, changes: []}]}"

/* The machine's clock was set when it booted, and may be set again: both stand still. */
static int64_t now_us, boot_us;

int64_t clock_us(void)
{
	return now_us;
}

int64_t clock_wall_us(void)
{
	return boot_us + now_us;
}

static struct loop *loop;
static struct link_health *health;
static struct metrics *metrics;
static int changes;
static struct strbuf events;

static void on_changed(void *arg)
{
	changes++;
}

static void on_emit(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&events, "%s%s: %s\n", warning ? "!" : "", reason, message);
}

static void on_count(void *arg)
{
}

static void begin(void)
{
	loop = loop_new();
	metrics = metrics_new();
	changes = 0;
	health = link_health_new(&(struct link_health_config){.loop = loop,
							      .node = "gpu-1",
							      .limits = link_limits_default,
							      .changed = on_changed,
							      .emit = on_emit,
							      .count = on_count,
							      .metrics = metrics});
}

static int set_up(void **state)
{
	now_us = INT64_C(1000000000);
	boot_us = INT64_C(1767225600000000); /* 2026-01-01T00:00:00Z */
	begin();
	return 0;
}

static int tear_down(void **state)
{
	link_health_free(health);
	metrics_free(metrics);
	loop_free(loop);
	strbuf_done(&events);
	return 0;
}

static void heard(const char *text)
{
	json_auto_t *status = yaml(text);

	link_health_heard(health, status);
}

static void looked(const char *carrier, const json_t *acted)
{
	auto_free char *text = str_printf("{node: {bootId: b}, interfaces: [{pciAddress: '" A
					  "', name: ens1, linkType: ETH, linkAdminState: up, host: "
					  "%s}]}",
					  carrier);
	json_auto_t *observed = yaml(text), *wanted = yaml("{'" A "': true}");

	link_health_looked(health, &(struct link_health_look){observed, wanted, acted});
}

static void event_of(const char *name, const char *address, bool is_up, int64_t carrier_changes)
{
	link_health_event(health, &(struct watch_event){.source = WATCH_LINK,
							.action = "change",
							.address = address,
							.name = name,
							.has_link = true,
							.is_up = is_up,
							.carrier_changes = carrier_changes});
}

static void event(const char *address, bool is_up, int64_t carrier_changes)
{
	event_of("ens1", address, is_up, carrier_changes);
}

static const char *reason(void)
{
	return json_str_at(json_array_get(json_at(link_health_status(health), "ports"), 0),
			   "reason");
}

static void a_lost_link_is_said_once_and_so_is_its_return(void **state)
{
	struct strbuf text = {0};

	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", NULL);
	/* As an agent before us has said. */
	assert_int_equal(changes, 0);
	event(A, false, 3);
	assert_string_equal(reason(), "LinkDown");
	assert_int_equal(changes, 1);
	/* An old kernel names the interface only. */
	event(NULL, false, 3);
	looked("{carrier: false, carrierChanges: 3}", NULL);
	assert_int_equal(changes, 1);
	metrics_render(metrics, &text);
	assert_non_null(strstr(
		strbuf_str(&text),
		"orbweaver_link_state{node_name=\"gpu-1\",net_dev_name=\"ens1\",pci_address=\"" A
		"\",verdict=\"failed\",reason=\"LinkDown\"} 1\n"));
	assert_non_null(strstr(strbuf_str(&text),
			       "orbweaver_link_flaps_total{node_name=\"gpu-1\",net_dev_name="
			       "\"ens1\",pci_address=\"" A "\"} 1\n"));
	strbuf_done(&text);
	event(NULL, true, 4);
	assert_string_equal(strbuf_str(&events),
			    "!LinkDown: ens1 has no link; check cable, module and switch port\n"
			    "LinkHealthy: ens1 has a link\n");
}

static void what_our_steps_do_is_not_said(void **state)
{
	json_auto_t *acted = json_pack("{s:I}", A, (json_int_t)INT64_MAX);

	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", acted);
	for (int i = 3; i < 23; i++)
		event(A, i % 2 == 0, i);
	assert_string_equal(reason(), "LinkHealthy");
	assert_string_equal(strbuf_str(&events), "");
	/* A step that ended just now. */
	json_put_int(acted, A, clock_ms());
	looked("{carrier: false, carrierChanges: 23}", acted);
	assert_string_equal(reason(), "LinkHealthy");
	json_put_int(acted, A, 0);
	looked("{carrier: false, carrierChanges: 23}", acted);
	assert_string_equal(reason(), "LinkDown");
}

static void a_step_that_began_after_the_look_counts_as_ours(void **state)
{
	json_auto_t *acted = json_object();

	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", acted);
	json_put_int(acted, A, INT64_MAX);
	event(A, false, 3);
	assert_string_equal(reason(), "LinkHealthy");
}

static void other_interfaces_and_messages_say_nothing(void **state)
{
	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", NULL);
	event("0000:99:00.0", false, 3);
	/* A representor of a VF: its parent is the port's function. */
	event_of("ens1_0", A, false, 3);
	link_health_event(health, &(struct watch_event){.lost = true});
	link_health_event(health, &(struct watch_event){.source = WATCH_LINK, .name = "ens1"});
	assert_string_equal(reason(), "LinkHealthy");
}

static void a_new_node_says_nothing_before_links_had_their_time(void **state)
{
	looked("{carrier: false}", NULL);
	assert_null(link_health_status(health));
	assert_int_equal(changes, 0);
}

static void a_clock_that_is_set_back_suspends_no_verdict(void **state)
{
	const json_t *port;

	looked("{carrier: true, carrierChanges: 2}", NULL);
	boot_us -= INT64_C(3600000000);
	now_us += INT64_C(31000000);
	event(A, false, 3);
	assert_string_equal(reason(), "LinkDown");
	port = json_array_get(json_at(link_health_status(health), "ports"), 0);
	assert_string_equal(json_str_at(port, "since"), "2025-12-31T23:17:11Z");
	/* What was said before the clock was set is of now at most. */
	tear_down(NULL);
	begin();
	heard("{bootID: b, ports: [{pciAddress: '" A "', name: ens1, verdict: degraded, "
	      "reason: LinkFlapping, message: m, since: '2026-01-01T00:17:00Z', flaps: 3, "
	      "carrierChanges: 3, changes: [{up: true, time: '2026-01-01T00:17:00Z'}]}]}");
	looked("{carrier: true, carrierChanges: 3}", NULL);
	assert_string_equal(reason(), "LinkFlapping");
	now_us += INT64_C(601000000);
	looked("{carrier: true, carrierChanges: 3}", NULL);
	assert_string_equal(reason(), "LinkHealthy");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_lost_link_is_said_once_and_so_is_its_return),
		CASE(what_our_steps_do_is_not_said),
		CASE(a_step_that_began_after_the_look_counts_as_ours),
		CASE(other_interfaces_and_messages_say_nothing),
		CASE(a_new_node_says_nothing_before_links_had_their_time),
		CASE(a_clock_that_is_set_back_suspends_no_verdict),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

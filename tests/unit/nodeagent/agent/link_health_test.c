// SPDX-License-Identifier: Apache-2.0
/*
 * Links as they go: what an agent before us knew, notifications, and what is said of it once.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/link_health.h"
#include "tests/fakes/virtual_time.h"
#include "tests/support/yaml.h"

#define A "0000:3b:00.0"
/* Up, after two changes, in boot b. */
#define BEFORE                                                                                     \
	"{bootID: b, ports: [{pciAddress: '" A "', name: ens1, verdict: healthy, reason: "         \
	"LinkHealthy, message: ens1 has a link, since: '2026-01-01T00:00:00Z', flaps: 0, "         \
	"carrierChanges: 2, changes: []}]}"

/* The machine's clock was set when it booted, and may be set again. */
static int64_t boot_us;

int64_t clock_wall_us(void)
{
	return boot_us + clock_us();
}

static struct loop *loop;
static struct link_health *health;
static struct metrics *metrics;
static int changes;
static struct strbuf events, turns;

static void on_changed(void *arg)
{
	changes++;
}

static void on_emit(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&events, "%s%s: %s\n", warning ? "!" : "", reason, message);
}

static void on_turned(void *arg, const char *port, bool warning, const char *reason,
		      const char *message)
{
	assert_string_equal(port, A);
	assert_true(str_starts(message,
			       strcmp(reason, "LinkDown") == 0
				       ? "ens1 has no link; check cable, module and switch port"
				       : "ens1 has a link"));
	strbuf_addf(&turns, "%s%s ", warning ? "!" : "", reason);
}

static void on_count(void *arg)
{
}

/* How often details were asked for, of card and module, when last, and what it was. */
static int asked;
static int64_t asked_ms[2];
static bool is_module;
static bool is_over;

static bool on_details(void *arg, const json_t *port)
{
	assert_int_equal(json_object_size(port), 1);
	is_module = json_at(port, "netdev") != NULL;
	assert_string_equal(json_str_at(port, is_module ? "netdev" : "pciAddress"),
			    is_module ? "ens1" : A);
	asked++;
	asked_ms[is_module] = clock_ms();
	return true;
}

static void on_pause(void *arg)
{
	is_over = true;
}

static void pass_ms(int64_t ms)
{
	struct timer *pause = timer_new(loop, on_pause, NULL);

	is_over = false;
	timer_start(pause, ms);
	while (!is_over)
		loop_turn(loop, true);
	timer_free(pause);
}

static void begin(void)
{
	loop = loop_new();
	metrics = metrics_new();
	changes = asked = 0;
	health = link_health_new(&(struct link_health_config){.loop = loop,
							      .node = "gpu-1",
							      .limits = link_limits_default,
							      .changed = on_changed,
							      .emit = on_emit,
							      .turned = on_turned,
							      .count = on_count,
							      .details = on_details,
							      .metrics = metrics});
}

static int set_up(void **state)
{
	/* It is 2026-01-01T00:16:40Z. */
	boot_us = INT64_C(1767226600000000) - clock_us();
	begin();
	return 0;
}

static int tear_down(void **state)
{
	link_health_free(health);
	metrics_free(metrics);
	loop_free(loop);
	strbuf_done(&events);
	strbuf_done(&turns);
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

TEST_WITH(a_lost_link_is_said_once_and_so_is_its_return, set_up, tear_down)
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
	assert_string_equal(strbuf_str(&turns), "!LinkDown LinkHealthy ");
	for (int i = 5; i < 25; i++)
		event(A, i % 2 == 0, i);
	assert_string_equal(reason(), "LinkFlapping");
	assert_string_equal(strbuf_str(&turns),
			    "!LinkDown LinkHealthy !LinkDown LinkHealthy !LinkDown ");
}

TEST_WITH(what_our_steps_do_is_not_said, set_up, tear_down)
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

TEST_WITH(a_step_that_began_after_the_look_counts_as_ours, set_up, tear_down)
{
	json_auto_t *acted = json_object();

	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", acted);
	json_put_int(acted, A, INT64_MAX);
	event(A, false, 3);
	assert_string_equal(reason(), "LinkHealthy");
}

TEST_WITH(other_interfaces_and_messages_say_nothing, set_up, tear_down)
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

TEST_WITH(a_new_node_says_nothing_before_links_had_their_time, set_up, tear_down)
{
	looked("{carrier: false}", NULL);
	assert_null(link_health_status(health));
	assert_int_equal(changes, 0);
}

TEST_WITH(a_clock_that_is_set_back_suspends_no_verdict, set_up, tear_down)
{
	const json_t *port;

	looked("{carrier: true, carrierChanges: 2}", NULL);
	boot_us -= INT64_C(3600000000);
	virtual_time_leap_ms(31000);
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
	virtual_time_leap_ms(601000);
	looked("{carrier: true, carrierChanges: 3}", NULL);
	assert_string_equal(reason(), "LinkHealthy");
}

TEST_WITH(details_are_read_rarely_and_named_with_a_bad_link, set_up, tear_down)
{
	json_auto_t *card = yaml("{pcie: {width: 16.0, speed: 32.0}, pcieErrors: {fatal: 2}, "
				 "reporters: {fw: 3}}");
	json_auto_t *module = yaml("{transceiver: {vendor: NVIDIA, part: P, serial: S, "
				   "temperature: 41.5, rxPower: [0.001, 0.0]}}");
	json_auto_t *acted = json_pack("{s:I}", A, (json_int_t)INT64_MAX);
	static const struct {
		const char *name, *more, *value;
	} want[] = {
		{"transceiver_info", ",vendor=\"NVIDIA\",part=\"P\",serial=\"S\"", "1"},
		{"transceiver_temperature_celsius", "", "41.5"},
		{"transceiver_power_watts", ",direction=\"rx\",lane=\"1\"", "0.001"},
		{"transceiver_power_watts", ",direction=\"rx\",lane=\"2\"", "0"},
		{"pcie_current_link_width", "", "16"},
		{"pcie_current_link_transfers_per_second", "", "32000000000"},
		{"pcie_errors_total", ",severity=\"fatal\"", "2"},
		{"devlink_errors_total", ",reporter=\"fw\"", "3"},
	};
	auto_strbuf struct strbuf text = {0};
	int answered;

	heard(BEFORE);
	looked("{carrier: true, carrierChanges: 2}", acted);
	pass_ms(LINK_HEALTH_COUNT_MS + 1000);
	/* A step is under way there. */
	assert_int_equal(asked, 0);
	looked("{carrier: true, carrierChanges: 2}", NULL);
	pass_ms(LINK_HEALTH_COUNT_MS);
	assert_int_equal(asked, 1);
	/* It takes its time. */
	pass_ms(2 * LINK_HEALTH_DETAILS_MS);
	assert_int_equal(asked, 1);
	link_health_details(health, card);
	assert_true(is_module);
	link_health_details(health, module);
	assert_int_equal(asked, 2);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		auto_free char *line = str_printf(
			"orbweaver_%s{node_name=\"gpu-1\",net_dev_name=\"ens1\",pci_address=\"" A
			"\"%s} %s\n",
			want[i].name, want[i].more, want[i].value);

		strbuf_reset(&text);
		metrics_render(metrics, &text);
		if (!strstr(strbuf_str(&text), line))
			fail_msg("no %s", line);
	}
	answered = asked;
	event(A, false, 3);
	assert_string_equal(strbuf_str(&events), "!LinkDown: ens1 has no link; check cable, module "
						 "and switch port (module NVIDIA P, serial S)\n");
	/*
	 * A module that fails is read less and less often, and keeps what is known; its card is
	 * not.
	 */
	for (int64_t wait_ms = 1, cards = 0; wait_ms <= 4; wait_ms *= 2, cards = 0) {
		int64_t before_ms = asked_ms[1];

		while (asked_ms[1] == before_ms && cards < 100) {
			pass_ms(LINK_HEALTH_COUNT_MS);
			for (; asked > answered && !is_module; cards++, answered++)
				link_health_details(health, card);
		}
		assert_true(asked_ms[1] - before_ms >= wait_ms * LINK_HEALTH_DETAILS_MS);
		assert_true(cards >= (wait_ms + 1) / 2);
		link_health_details(health, NULL);
		answered++;
	}
	assert_non_null(
		json_at(json_array_get(json_at(link_health_status(health), "ports"), 0), "module"));
}

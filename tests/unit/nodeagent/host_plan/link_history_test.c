// SPDX-License-Identifier: Apache-2.0
/*
 * Links of ports over time: what is remembered of events, looks and counters, what is judged of it,
 * and what of it outlives the process.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/host_plan/link_history.h"
#include "tests/support/yaml.h"

#define A    "0000:3b:00.0"
#define T0   1800000000000
#define LATE (T0 + LINK_QUIET_MS)

/* One node, which wants A. */
static json_t *links, *own, *wanted;
static int64_t again_ms;
static struct link_limits limits;

static int set_up(void **state)
{
	limits = link_limits_default;
	links = json_object();
	own = json_object();
	wanted = yaml("{'" A "': true}");
	return 0;
}

static int tear_down(void **state)
{
	json_decref(links);
	json_decref(own);
	json_decref(wanted);
	return 0;
}

static const json_t *port(void)
{
	return json_object_get(links, A);
}

static void look(const char *members, int64_t now_ms)
{
	auto_free char *text = str_printf("{%s}", members);
	json_auto_t *observed = yaml("{interfaces: [{pciAddress: '" A "', name: ens1, "
				     "linkType: ETH, linkAdminState: up}]}");
	json_auto_t *others = yaml(text);

	json_merge_patch(json_array_get(json_at(observed, "interfaces"), 0), others);
	link_history_look(links, observed, own, now_ms);
}

/* Up, with that many changes so far, and no longer new. */
static void begin(int changes)
{
	auto_free char *members = str_printf(
		"linkSpeed: 100000 Mb/s, host: {carrier: true, carrierChanges: %d}", changes);

	look(members, T0);
}

static bool event(bool is_up, int64_t changes, int64_t now_ms)
{
	return link_history_event(links, &(struct link_event){A, is_up, changes, 0}, own, now_ms);
}

static void counted(const char *counters, int64_t now_ms)
{
	auto_free char *text =
		str_printf("[{device: {pciAddress: '" A "'}, counted: %s}]", counters);
	json_auto_t *devices = yaml(text);

	link_history_counted(links, devices, own, now_ms);
}

static void assert_verdict(int64_t now_ms, const char *verdict, const char *reason)
{
	again_ms = link_history_judge(links, wanted, &limits, own, now_ms);
	assert_string_equal(json_str_or(json_at(port(), "verdict", "verdict"), "-"), verdict);
	assert_string_equal(json_str_or(json_at(port(), "verdict", "reason"), "-"), reason);
}

static int64_t flaps(void)
{
	return json_integer_value(json_at(port(), "flaps"));
}

/* ---- what is remembered ---------------------------------------------------------------------- */

TEST_WITH(losses_between_messages_are_known_by_their_number, set_up, tear_down)
{
	static const struct {
		bool was_up, is_up;
		int changes;
		int64_t losses;
	} cases[] = {
		{true, false, 1, 1},  {true, true, 2, 1},  {true, true, 40, 20},
		{true, false, 5, 3},  {false, true, 1, 0}, {false, true, 3, 1},
		{false, false, 2, 1}, {true, false, 0, 1}, {true, true, 0, 0},
		{false, false, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)json_object_clear(links);
		look(cases[i].was_up ? "host: {carrier: true, carrierChanges: 7}"
				     : "host: {carrier: false, carrierChanges: 7}",
		     T0);
		assert_int_equal(event(cases[i].is_up, 7 + cases[i].changes, LATE),
				 cases[i].losses > 0 || cases[i].was_up != cases[i].is_up);
		assert_int_equal(flaps(), cases[i].losses);
		assert_int_equal(json_is_true(json_at(port(), "up")), cases[i].is_up);
	}
}

TEST_WITH(events_of_other_ports_and_without_news_change_nothing, set_up, tear_down)
{
	json_auto_t *before = NULL;

	begin(3);
	before = json_deep_copy(links);
	assert_false(event(true, 3, LATE));
	assert_false(link_history_event(links, &(struct link_event){"0000:99:00.0", false, 1, 0},
					own, LATE));
	assert_true(json_same(before, links));
	assert_true(event(false, -1, LATE));
	assert_int_equal(flaps(), 1);
}

TEST_WITH(our_own_actions_are_remembered_and_do_not_count, set_up, tear_down)
{
	begin(0);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	json_put_bool(own, A, true);
	for (int i = 1; i <= 20; i++)
		(void)event(i % 2 == 0, i, LATE + i);
	assert_int_equal(flaps(), 0);
	assert_true(event(false, 21, LATE + 100));
	/* What it was, until we are done; then it is judged. */
	assert_verdict(LATE + 100, "healthy", "LinkHealthy");
	assert_true(again_ms > LATE + 100 && again_ms < INT64_MAX);
	(void)json_object_clear(own);
	assert_verdict(LATE + 200, "failed", "LinkDown");
	assert_true(event(true, 22, LATE + 300));
	assert_verdict(LATE + 300, "healthy", "LinkHealthy");
	assert_int_equal(json_array_size(json_at(port(), "changes")), LINK_CHANGES_MAX);
}

TEST_WITH(a_driver_that_starts_anew_is_no_flap, set_up, tear_down)
{
	begin(30);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	/* Its new interface counts from zero, and is up after a while. */
	(void)event(false, 1, LATE + 1000);
	(void)event(true, 2, LATE + 2000);
	(void)event(false, 3, LATE + 3000);
	assert_int_equal(flaps(), 0);
	assert_verdict(LATE + 3000, "healthy", "LinkHealthy");
	assert_int_equal(again_ms, LATE + 1000 + LINK_QUIET_MS);
	assert_verdict(again_ms, "failed", "LinkDown");
}

TEST_WITH(a_look_and_a_message_overtake_each_other, set_up, tear_down)
{
	struct link_event up = {A, true, 6, 9}, down = {A, false, 7, 9};

	look("host: {carrier: true, carrierChanges: 4, ifindex: 9}", T0);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	assert_true(link_history_event(links, &up, own, LATE));
	/* It was asked before, and answers now. */
	look("host: {carrier: false, carrierChanges: 5, ifindex: 9}", LATE);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	assert_int_equal(flaps(), 1);
	assert_true(link_history_event(links, &down, own, LATE));
	assert_false(link_history_event(links, &up, own, LATE));
	assert_verdict(LATE, "failed", "LinkDown");
	/* Another interface has been counted as often. */
	look("host: {carrier: true, carrierChanges: 7, ifindex: 10}", LATE);
	look("host: {carrier: false, carrierChanges: 8, ifindex: 10}", LATE);
	assert_int_equal(flaps(), 2);
	assert_verdict(LATE + LINK_QUIET_MS, "failed", "LinkDown");
}

/* A link that changes 40 times, of which messages and answers to looks arrive in any order. */
TEST_WITH(in_any_order_each_loss_counts_once, set_up, tear_down)
{
	unsigned int seed = 7;

	for (int run = 0; run < 200; run++) {
		(void)json_object_clear(links);
		look("host: {carrier: true, carrierChanges: 0, ifindex: 9}", T0);
		for (int i = 0; i < 60; i++) {
			int n = i == 59 ? 40 : (int)(rand_r(&seed) % 41);
			struct link_event event_n = {A, n % 2 == 0, n, 9};
			auto_free char *text =
				str_printf("host: {carrier: %s, carrierChanges: %d, ifindex: 9}",
					   n % 2 == 0 ? "true" : "false", n);

			if (i % 2)
				look(text, LATE + i);
			else
				(void)link_history_event(links, &event_n, own, LATE + i);
		}
		assert_int_equal(flaps(), 20);
		assert_true(json_is_true(json_at(port(), "up")));
	}
}

static void look_without(const char *reason, int64_t now_ms)
{
	auto_free char *text =
		str_printf("{unusable: [{pciAddress: '" A "', reason: %s}]}", reason);
	json_auto_t *observed = yaml(text);

	link_history_look(links, observed, own, now_ms);
}

TEST_WITH(a_port_that_loses_its_driver_has_failed_until_it_is_back, set_up, tear_down)
{
	begin(3);
	look_without("NoDriver", LATE);
	/* Nobody wanted it. */
	assert_null(port());
	begin(3);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	/* So that our own actions do not count. */
	json_put_bool(own, A, true);
	look_without("NoDriver", LATE);
	(void)json_object_clear(wanted);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	(void)json_object_clear(own);
	assert_verdict(LATE, "failed", "LinkDown");
	assert_string_equal(json_str_at(port(), "verdict", "message"),
			    "ens1 has no driver, or is gone from its slot; see dmesg");
	json_put_bool(wanted, A, true);
	look("host: {carrier: false, carrierChanges: 1}", LATE + 1);
	assert_verdict(LATE + 1, "failed", "LinkDown");
	look("host: {carrier: true, carrierChanges: 2}", LATE + 2);
	assert_verdict(LATE + 2, "healthy", "LinkHealthy");
	assert_int_equal(flaps(), 0);
	look_without("NoDriver", LATE + 3);
	look_without("NoDriver", LATE + 3 + HISTORY_KEEP_MS);
	assert_verdict(LATE + 3 + HISTORY_KEEP_MS, "failed", "LinkDown");
	look_without("NoDriver", LATE + 3 + LINK_LOST_KEEP_MS);
	assert_null(port());
}

TEST_WITH(a_port_that_a_pod_has_is_what_it_was, set_up, tear_down)
{
	begin(3);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	look_without("NoInterface", LATE);
	assert_verdict(LATE + HISTORY_KEEP_MS - 1, "healthy", "LinkHealthy");
	/* What the pod did to it is its own affair. */
	look("host: {carrier: true, carrierChanges: 13}", LATE + 1000);
	assert_int_equal(flaps(), 0);
	assert_verdict(LATE + 1000 + LINK_QUIET_MS, "healthy", "LinkHealthy");
}

TEST_WITH(a_port_of_infiniband_is_up_when_it_is_active, set_up, tear_down)
{
	static const char *const states[] = {"INIT", "ACTIVE", "ACTIVE"};

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		auto_free char *text = str_printf(
			"{interfaces: [{pciAddress: '" A "', name: ib0, linkType: IB, "
			"linkAdminState: %s}], rdma: {devices: [{name: mlx5_0, "
			"pciAddress: '" A "', ports: [{state: %s}]}]}}",
			i == 2 ? "down, host: {carrier: false}" : "up, host: {carrier: true}",
			states[i]);
		json_auto_t *observed = yaml(text);

		link_history_look(links, observed, own, T0 + (int64_t)i * LINK_QUIET_MS);
		assert_int_equal(json_is_true(json_at(port(), "up")), i > 0);
	}
	/* That of IPoIB was set down. */
	assert_false(event(false, -1, LATE + LINK_QUIET_MS));
	assert_verdict(LATE + 2 * LINK_QUIET_MS, "healthy", "LinkHealthy");
}

/* ---- what is judged -------------------------------------------------------------------------- */

TEST_WITH(a_port_that_nobody_wants_is_not_judged, set_up, tear_down)
{
	begin(0);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	(void)json_object_clear(wanted);
	assert_verdict(LATE, "-", "-");
	assert_int_equal(again_ms, INT64_MAX);
}

TEST_WITH(a_nic_that_a_pod_sets_up_may_be_down, set_up, tear_down)
{
	json_put_bool(wanted, A, false);
	look("linkAdminState: down, host: {carrier: false}", T0);
	assert_verdict(LATE, "-", "-");
	look("host: {carrier: false}", LATE);
	assert_verdict(LATE, "failed", "LinkDown");
}

TEST_WITH(a_new_port_is_judged_after_a_while, set_up, tear_down)
{
	look("host: {carrier: false}", T0);
	assert_verdict(T0, "-", "-");
	assert_int_equal(again_ms, LATE);
	assert_verdict(LATE, "failed", "LinkDown");
	assert_string_equal(json_str_at(port(), "verdict", "message"),
			    "ens1 has no link; check cable, module and switch port");
	look("linkAdminState: down, host: {carrier: false}", LATE);
	assert_verdict(LATE + 5, "failed", "LinkDown");
	assert_string_equal(json_str_at(port(), "verdict", "message"),
			    "ens1 is set down; ip link set ens1 up");
	assert_int_equal(json_integer_value(json_at(port(), "verdict", "sinceMs")), LATE);
}

TEST_WITH(a_link_that_flaps_is_degraded_until_it_was_good_for_long, set_up, tear_down)
{
	int64_t last = LATE + 60000;

	begin(0);
	(void)event(true, 2, LATE);
	(void)event(true, 4, LATE);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	(void)event(true, 6, last);
	assert_verdict(last, "degraded", "LinkFlapping");
	/* While it is away it has failed. */
	(void)event(false, 7, last);
	assert_verdict(last, "failed", "LinkDown");
	(void)event(true, 8, last);
	assert_verdict(last, "degraded", "LinkFlapping");
	/* One more, after the window of the others. */
	(void)event(true, 10, last + 500000);
	assert_verdict(last + 500000, "degraded", "LinkFlapping");
	assert_verdict(last + 700000, "degraded", "LinkFlapping");
	assert_int_equal(again_ms, last + 500000 + link_limits_default.recover_ms);
	assert_verdict(again_ms, "healthy", "LinkHealthy");
}

TEST_WITH(losses_far_apart_are_no_flapping, set_up, tear_down)
{
	begin(0);
	for (int i = 1; i <= 6; i++) {
		int64_t now = LATE + i * link_limits_default.window_ms / 2;

		(void)event(true, 2 * i, now + i);
		assert_verdict(now + i, "healthy", "LinkHealthy");
	}
}

#define HOUR ((int64_t)LINK_ERRORS_MS)
#define CRC(n)                                                                                     \
	"{ethernet: {rx_crc_errors_phy: " #n                                                       \
	", rx_vport_unicast_bytes: 999999}, port: {port_data_received_bytes: 5}}"

TEST_WITH(errors_are_counted_by_the_hour_and_speed, set_up, tear_down)
{
	begin(0);
	counted(CRC(1000), LATE);
	assert_verdict(LATE, "healthy", "LinkHealthy");
	counted(CRC(1035), LATE + 1000);
	assert_verdict(LATE + 1000, "healthy", "LinkHealthy");
	counted(CRC(1036), LATE + 2000);
	assert_verdict(LATE + 2000, "degraded", "LinkErrors");
	/* Four lanes of 100 have four times as many. */
	look("linkSpeed: 400000 Mb/s, host: {carrier: true, carrierChanges: 0}", LATE + 3000);
	assert_verdict(LATE + 3000 + link_limits_default.recover_ms, "healthy", "LinkHealthy");
}

TEST_WITH(errors_of_a_link_that_goes_and_comes_are_none, set_up, tear_down)
{
	begin(0);
	counted(CRC(0), LATE);
	look("host: {carrier: false, carrierChanges: 1}", LATE + 1);
	counted(CRC(500), LATE + 2);
	look("host: {carrier: true, carrierChanges: 2}", LATE + 3);
	counted(CRC(1000), LATE + 4);
	assert_verdict(LATE + 4, "healthy", "LinkHealthy");
	counted(CRC(1036), LATE + 5);
	assert_verdict(LATE + 5, "degraded", "LinkErrors");
}

TEST_WITH(errors_have_to_halve_and_time_to_pass, set_up, tear_down)
{
	begin(0);
	counted(CRC(0), LATE);
	for (int i = 1; i <= 12; i++)
		counted("{ethernet: {rx_crc_errors_phy: 36}}", LATE + i * LINK_SAMPLE_MS);
	assert_verdict(LATE + HOUR, "degraded", "LinkErrors");
	counted("{ethernet: {rx_crc_errors_phy: 60}}", LATE + HOUR + 1);
	/* 24 in the last hour: fewer than 36, more than half of it. */
	assert_verdict(LATE + HOUR + 1, "degraded", "LinkErrors");
	for (int i = 13; i <= 25; i++)
		counted("{ethernet: {rx_crc_errors_phy: 60}}", LATE + i * LINK_SAMPLE_MS + 1);
	assert_verdict(LATE + 2 * HOUR + LINK_SAMPLE_MS + 1, "healthy", "LinkHealthy");
}

TEST_WITH(counters_that_are_reset_or_ours_are_no_errors, set_up, tear_down)
{
	begin(0);
	counted(CRC(1000), LATE);
	counted(CRC(0), LATE + 1);
	counted(CRC(10), LATE + 2);
	json_put_bool(own, A, true);
	counted(CRC(5000), LATE + 3);
	(void)json_object_clear(own);
	counted(CRC(5001), LATE + 4);
	assert_int_equal(json_integer_value(json_at(port(), "errors", "total")), 11);
	/* At the end of 32 bits it begins anew, which cannot be told from a reset. */
	counted("{port: {port_errors_received: 4294967295}}", LATE + 4);
	counted("{port: {port_errors_received: 3}}", LATE + 4);
	assert_int_equal(json_integer_value(json_at(port(), "errors", "total")), 11);
	assert_verdict(LATE + 4, "healthy", "LinkHealthy");
	assert_true(json_array_size(json_at(port(), "errors", "samples")) == 1);
	for (int64_t i = 0; i < 100; i++)
		counted(CRC(5001), LATE + i * LINK_SAMPLE_MS);
	assert_int_equal(json_array_size(json_at(port(), "errors", "samples")),
			 LINK_ERRORS_MS / LINK_SAMPLE_MS + 1);
}

TEST_WITH(counters_that_cannot_be_read_for_a_while_are_no_errors, set_up, tear_down)
{
	static const char *const all = "{port: {symbol_error: 5, link_downed: 4}, ethernet: "
				       "{rx_crc_errors_phy: 90000}}";

	look("linkType: IB, host: {carrier: true}", T0);
	counted(all, LATE);
	/* The interface, then the RDMA device, is with a pod, or does not answer. */
	counted("{port: {symbol_error: 5, link_downed: 4}, ethernet: {}}", LATE + 1);
	counted("{ethernet: {rx_crc_errors_phy: 90000}}", LATE + 2);
	counted(all, LATE + 3);
	assert_int_equal(json_integer_value(json_at(port(), "errors", "total")), 0);
	assert_int_equal(flaps(), 0);
	/* What came meanwhile counts. */
	counted("{ethernet: {rx_crc_errors_phy: 90002}}", LATE + 4);
	counted("{port: {symbol_error: 6, link_downed: 5}}", LATE + 5);
	assert_int_equal(json_integer_value(json_at(port(), "errors", "total")), 3);
	assert_int_equal(flaps(), 1);
}

TEST_WITH(one_error_under_two_names_is_one, set_up, tear_down)
{
	begin(0);
	counted("{ethernet: {rx_crc_errors_phy: 5, ethernet_checksum_errors: 5, "
		"fec_uncorrectable_blocks: 1}}",
		LATE);
	counted("{ethernet: {rx_crc_errors_phy: 8, ethernet_checksum_errors: 8, "
		"fec_uncorrectable_blocks: 3}}",
		LATE + 1);
	assert_int_equal(json_integer_value(json_at(port(), "errors", "total")), 5);
	counted("{ethernet: {ethernet_checksum_errors: 9, fec_uncorrectable_blocks: 40}}",
		LATE + 2);
	counted("{ethernet: {}}", LATE + 3);
	assert_verdict(LATE + 3, "degraded", "LinkErrors");
}

TEST_WITH(lost_lanes_are_degraded_and_a_bad_link_names_its_module, set_up, tear_down)
{
	json_auto_t *details =
		yaml("{pcie: {width: 8.0, widthMax: 16.0}, transceiver: {vendor: Mellanox, part: "
		     "MCP1600, serial: MT1, temperature: 30.5}}");
	json_auto_t *status = NULL, *again = NULL;

	begin(0);
	json_put((json_t *)port(), "details", json_incref(details));
	assert_verdict(LATE, "degraded", "PcieLanesLost");
	assert_string_equal(json_str_at(port(), "verdict", "message"),
			    "ens1 has 8 of 16 lanes of PCI Express; reseat the card, look at "
			    "its slot (module Mellanox MCP1600, serial MT1)");
	/* A new agent has not read them yet. */
	(void)json_object_del((json_t *)port(), "details");
	assert_verdict(LATE, "degraded", "PcieLanesLost");
	/* 0: the verdict is off. 9, 8: as many as are lost count. */
	json_put((json_t *)port(), "details", json_incref(details));
	for (int i = 0; i < 4; i++) {
		limits.lanes = i % 2 ? 8 : 9 * (i / 2);
		assert_verdict(LATE, i % 2 ? "degraded" : "healthy",
			       i % 2 ? "PcieLanesLost" : "LinkHealthy");
	}
	limits = link_limits_default;
	json_put(json_object_get(details, "pcie"), "width", json_real(16));
	assert_verdict(LATE + 1, "healthy", "LinkHealthy");
	assert_string_equal(json_str_at(port(), "verdict", "message"), "ens1 has a link");
	/* What it is outlives the process, and a boot; how warm it was does not. */
	status = link_history_status(links, "b", 0);
	again = link_history_restore(status, "other", 0, LATE);
	assert_string_equal(json_str_at(again, A, "details", "transceiver", "serial"), "MT1");
	assert_null(json_at(again, A, "details", "transceiver", "temperature"));
}

/* Of InfiniBand, whose interface of IPoIB is set down or up. */
static void look_at_ib(const char *state, const char *interface, int64_t now_ms)
{
	auto_free char *text =
		str_printf("{interfaces: [{pciAddress: '" A "', name: ib0, linkType: IB, %s}], "
			   "rdma: {devices: [{pciAddress: '" A "', ports: [{state: %s}]}]}}",
			   interface, state);
	json_auto_t *observed = yaml(text);

	link_history_look(links, observed, own, now_ms);
}

TEST_WITH(losses_of_infiniband_are_those_of_link_downed, set_up, tear_down)
{
	static const char *const interfaces[] = {
		"linkAdminState: down, host: {carrier: false, carrierChanges: 1}",
		"linkAdminState: up, host: {carrier: true, carrierChanges: 1}",
		"linkAdminState: up, host: {carrier: true, carrierChanges: 41}",
	};
	json_auto_t *status = NULL;

	/* Whoever sets the interface down and up does not lose the link. */
	for (size_t i = 0; i < ARRAY_LEN(interfaces); i++)
		look_at_ib("ACTIVE", interfaces[i], T0);
	counted("{port: {link_downed: 4}}", LATE);
	assert_int_equal(flaps(), 0);
	/* It went and came between two looks. */
	counted("{port: {link_downed: 6}}", LATE + 1);
	look_at_ib("ACTIVE", interfaces[0], LATE + 2);
	assert_int_equal(flaps(), 2);
	/* One loss is one, whether the counter or a look was first. */
	counted("{port: {link_downed: 7}}", LATE + 3);
	look_at_ib("DOWN", interfaces[0], LATE + 4);
	look_at_ib("ACTIVE", interfaces[0], LATE + 5);
	assert_int_equal(flaps(), 3);
	look_at_ib("DOWN", interfaces[0], LATE + 6);
	counted("{port: {link_downed: 8}}", LATE + 7);
	look_at_ib("ACTIVE", interfaces[0], LATE + 8);
	assert_int_equal(flaps(), 4);
	/* The subnet manager is gone: no counter knows. */
	look_at_ib("INIT", interfaces[0], LATE + 9);
	counted("{port: {link_downed: 8}}", LATE + 10);
	look_at_ib("ACTIVE", interfaces[0], LATE + 11);
	counted("{port: {link_downed: 9}}", LATE + 12);
	assert_int_equal(flaps(), 6);
	/* What we do ourselves, and counters have when it is over. */
	json_put_bool(own, A, true);
	look_at_ib("ACTIVE", interfaces[0], LATE + 13);
	(void)json_object_clear(own);
	counted("{port: {link_downed: 12}}", LATE + 14);
	assert_int_equal(flaps(), 6);
	/* While no agent runs. */
	assert_verdict(LATE + 14, "degraded", "LinkFlapping");
	status = link_history_status(links, "boot-1", 0);
	json_decref(links);
	links = link_history_restore(status, "boot-1", 0, LATE + 15);
	look_at_ib("ACTIVE", interfaces[0], LATE + 16);
	counted("{port: {link_downed: 14}}", LATE + 17);
	assert_int_equal(flaps(), 8);
}

TEST_WITH(link_downed_counts_where_no_interface_does, set_up, tear_down)
{
	look("linkType: IB, host: {carrier: true}", T0);
	counted("{port: {link_downed: 4}}", LATE);
	counted("{port: {link_downed: 6}}", LATE + 1);
	counted("{port: {link_downed: 0}}", LATE + 2);
	assert_int_equal(flaps(), 2);
	look("linkType: IB, host: {carrier: true, carrierChanges: 5}", LATE + 3);
	counted("{port: {link_downed: 9}}", LATE + 4);
	assert_int_equal(flaps(), 2);
}

TEST_WITH(a_link_that_is_slower_than_it_was_is_degraded, set_up, tear_down)
{
	json_t *status;

	begin(0);
	look("linkSpeed: 25000 Mb/s, host: {carrier: true}", LATE);
	assert_verdict(LATE, "degraded", "LinkSlow");
	assert_string_equal(json_str_at(port(), "verdict", "message"),
			    "ens1 runs at 25000 Mb/s and could at 100000 Mb/s; check cable, module "
			    "and lanes");
	/* Another agent knows it, until the driver starts anew. */
	for (int i = 0; i < 2; i++) {
		const char *boot = i ? "boot-2" : "boot-1";
		int64_t now_ms = LATE + i * LINK_QUIET_MS;

		status = link_history_status(links, "boot-1", 0);
		json_decref(links);
		links = link_history_restore(status, boot, 0, LATE);
		json_decref(status);
		look("linkSpeed: 25000 Mb/s, host: {carrier: true}", now_ms);
		assert_verdict(now_ms, i ? "healthy" : "degraded", i ? "LinkHealthy" : "LinkSlow");
	}
	look("linkSpeed: 100000 Mb/s, host: {carrier: true}", LATE + 1);
	assert_verdict(LATE + 1, "healthy", "LinkHealthy");
	/* We set it so. */
	json_put_bool(own, A, true);
	look("linkSpeed: 25000 Mb/s, host: {carrier: true}", LATE + 2);
	(void)json_object_clear(own);
	assert_verdict(LATE + 2, "healthy", "LinkHealthy");
}

TEST_WITH(ports_are_wanted_by_policies_and_resources, set_up, tear_down)
{
	json_auto_t *observed =
		yaml("{interfaces: [{pciAddress: '" A "', Vfs: [{pciAddress: "
		     "'0000:3b:00.2'}]}, {pciAddress: '0000:5e:00.0'}, "
		     "{pciAddress: '0000:86:00.0'}, {pciAddress: '0000:87:00.0'}]}");
	json_auto_t *spec = yaml("{interfaces: [{pciAddress: '0000:5e:00.0'}]}");
	json_auto_t *resources = yaml("[{selected: ['0000:86:00.0', rxe0], devices: [{id: '0'}]}, "
				      "{devices: [{id: '0000:3b:00.2'}]}, {devices: [{id: "
				      "'0000:87:00.0'}]}, {devices: [{id: '0000:5e:00.0'}]}]");
	json_auto_t *both = link_history_wanted(spec, resources, observed);
	json_auto_t *one = link_history_wanted(spec, NULL, observed);
	json_auto_t *none = link_history_wanted(NULL, NULL, observed);

	assert_int_equal(json_object_size(both), 4);
	assert_true(json_is_true(json_object_get(both, A)));
	assert_true(json_is_true(json_object_get(both, "0000:5e:00.0")));
	assert_true(json_is_false(json_object_get(both, "0000:87:00.0")));
	assert_int_equal(json_object_size(one), 1);
	assert_non_null(json_object_get(one, "0000:5e:00.0"));
	assert_int_equal(json_object_size(none), 0);
}

TEST_WITH(limits_are_read_as_the_flag_has_them, set_up, tear_down)
{
	static const char *const bad[] = {
		"flaps", "flaps=0",       "flaps=9",  "window=", "flap=3",    "window=x",
		"=3",    "recover=86401", "flaps=3 ", ",",       "flaps=3,,", "lanes=-1"};
	struct link_limits kept;
	struct err err = {0};

	assert_int_equal(link_limits_read("flaps=5,window=60,errors-eth=7,lanes=0", &limits, &err),
			 0);
	assert_int_equal(limits.lanes, 0);
	assert_int_equal(limits.flaps, 5);
	assert_int_equal(limits.window_ms, 60000);
	assert_int_equal(limits.errors_eth, 7);
	assert_int_equal(limits.errors_ib, link_limits_default.errors_ib);
	assert_int_equal(link_limits_read("", &limits, &err), 0);
	kept = limits;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err = (struct err){0};
		assert_int_equal(link_limits_read(bad[i], &limits, &err), -1);
		assert_string_equal(err.reason, "BadFlag");
		assert_memory_equal(&limits, &kept, sizeof(kept));
	}
}

/* ---- the NodeState --------------------------------------------------------------------------- */

TEST_WITH(a_history_outlives_its_process, set_up, tear_down)
{
	json_auto_t *status = NULL, *again = NULL, *other = NULL;

	begin(10);
	for (int i = 1; i <= 3; i++)
		(void)event(true, 10 + 2 * i, LATE + i * 1000);
	assert_verdict(LATE + 3000, "degraded", "LinkFlapping");
	status = link_history_status(links, "boot-1", 0);
	assert_int_equal(json_array_size(json_at(status, "ports")), 1);
	json_decref(links);
	links = link_history_restore(status, "boot-1", 0, LATE + 4000);
	again = link_history_status(links, "boot-1", 0);
	assert_true(json_same(status, again));
	/* What came while no agent ran counts, and nothing is new. */
	look("host: {carrier: true, carrierChanges: 20}", LATE + 5000);
	assert_int_equal(flaps(), 5);
	assert_verdict(LATE + 5000, "degraded", "LinkFlapping");
	/* Another boot begins anew, and knows the past. */
	json_decref(links);
	links = link_history_restore(status, "boot-2", 0, LATE + 90000);
	look("host: {carrier: false, carrierChanges: 21}", LATE + 90000);
	look("host: {carrier: true, carrierChanges: 30}", LATE + 91000);
	assert_int_equal(flaps(), 3);
	assert_verdict(LATE + 90000 + LINK_QUIET_MS, "healthy", "LinkHealthy");
	other = link_history_status(links, "boot-2", 0);
	assert_true(json_array_size(
			    json_at(json_array_get(json_at(other, "ports"), 0), "changes")) > 6);
}

TEST_WITH(a_port_that_was_always_down_has_lost_nothing, set_up, tear_down)
{
	json_auto_t *status = NULL;

	look("host: {carrier: false, carrierChanges: 1}", T0);
	assert_verdict(LATE, "failed", "LinkDown");
	status = link_history_status(links, "boot-1", 0);
	json_decref(links);
	links = link_history_restore(status, "boot-1", 0, LATE + 1000);
	look("host: {carrier: false, carrierChanges: 1}", LATE + 2000);
	assert_int_equal(flaps(), 0);
	assert_int_equal(json_array_size(json_at(port(), "changes")), 0);
}

TEST_WITH(a_status_of_strangers_is_read_with_care, set_up, tear_down)
{
	static const char *const statuses[] = {
		"{}",
		"{ports: 5}",
		"{bootID: b, ports: [5, {}, {pciAddress: x}, {pciAddress: '" A
		"', changes: [{}, 7, "
		"{up: true, time: never}, {up: 1, time: '2026-01-01T00:00:00Z'}], flaps: -4, "
		"carrierChanges: -1, linkDowned: x, fastestMbps: -9, verdict: 5, reason: [], "
		"since: 0}]}",
		"{bootID: b, ports: [{pciAddress: '" A "', changes: [{up: false, times: -9, time: "
		"'2026-01-01T00:00:00Z'}, {up: false, times: 9223372036854775807, time: "
		"'2026-01-01T00:00:00Z'}]}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		json_auto_t *status = yaml(statuses[i]);

		json_decref(links);
		links = link_history_restore(status, "b", 0, T0);
		begin(0);
		(void)link_history_judge(links, wanted, &link_limits_default, own, LATE);
	}
}

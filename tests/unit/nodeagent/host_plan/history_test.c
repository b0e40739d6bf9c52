// SPDX-License-Identifier: Apache-2.0
/*
 * What earlier looks add to a look: PFs that are away for a moment, PFs that have just come, NICs
 * that the node needs.
 */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/model/observed.h"
#include "tests/support/yaml.h"

#define A "0000:3b:00.0"
#define B "0000:5e:00.0"
#define V "0000:3c:00.0"

#define SEEN(pfs, protected)                                                                       \
	"{'interfaces': [" pfs                                                                     \
	"], 'unusable': [], 'node': {'bootId': 'one', 'protected': [" protected "]}}"
#define PF_A                                                                                       \
	"{'pciAddress': '" A "', 'name': 'ens1', 'Vfs': [{'vfID': 0, 'pciAddress': '" V            \
	"'}], 'host': {'ifindex': 2}}"
#define PF_B    "{'pciAddress': '" B "', 'host': {}}"
#define NEEDS_A "{'interface': 'ens1', 'pciAddress': '" A "', 'reason': 'carries x'}"
#define NEEDS_B "{'interface': 'ens2', 'pciAddress': '" B "', 'reason': 'carries y'}"
#define SPEC_A  "{'interfaces': [{'pciAddress': '" A "'}]}"

/* A process: what it has seen so far. */
static json_t *before;
/* What it has done. */
static const json_t *acted_on;

static int forget(void **state)
{
	json_decref(before);
	before = NULL;
	return 0;
}

/* Borrowed until the next look. */
static const json_t *look(const char *observed_text, const char *spec_text, int64_t now_ms)
{
	json_auto_t *observed = yaml(observed_text), *spec = yaml(spec_text);
	json_auto_t *unchanged = json_deep_copy(observed), *old = before;
	json_auto_t *old_unchanged = json_deep_copy(before);

	before = history_merge(&(struct history_input){.observed = observed,
						       .before = old,
						       .spec = spec,
						       .acted = acted_on,
						       .now_ms = now_ms});
	assert_true(json_same(observed, unchanged));
	assert_true(json_same(old, old_unchanged));
	return before;
}

/* "A*B": addresses of the status in order, a star behind those that are missing. */
static void shows(const char *want)
{
	json_auto_t *list = observed_status_interfaces(before);
	auto_strbuf struct strbuf text = {0};
	json_t *entry, *missing;
	size_t i, k;

	json_array_foreach (list, i, entry) {
		const char *address = json_str_at(entry, "pciAddress");

		assert_null(json_at(entry, "host"));
		strbuf_adds(&text, str_eq(address, A) ? "A" : "B");
		json_array_foreach (json_at(before, "missing"), k, missing)
			if (str_eq(json_str_at(missing, "pciAddress"), address))
				strbuf_adds(&text, "*");
	}
	assert_string_equal(strbuf_str(&text), want);
}

static const json_t *pf_at(size_t i)
{
	return json_array_get(json_at(before, "interfaces"), i);
}

/* ---- away ------------------------------------------------------------------------------------ */

TEST_WITH(a_wanted_pf_that_vanishes_is_shown_as_it_was_for_a_while, forget, forget)
{
	look(SEEN(PF_A "," PF_B, ""), SPEC_A, 1000);
	shows("AB");
	look(SEEN(PF_B, ""), SPEC_A, 2000);
	shows("A*B");
	/* Its VFs, too; and nobody has to want it any more. */
	assert_int_equal(
		json_array_size(json_at(json_array_get(json_at(before, "missing"), 0), "Vfs")), 1);
	look(SEEN(PF_B, ""), "{}", 2000 + HISTORY_KEEP_MS - 1);
	shows("A*B");
	look(SEEN(PF_B, ""), SPEC_A, 2000 + HISTORY_KEEP_MS);
	shows("B");
	look(SEEN(PF_B, ""), SPEC_A, 2001 + HISTORY_KEEP_MS);
	shows("B");
}

TEST_WITH(one_that_comes_back_is_itself_again_and_its_time_begins_anew, forget, forget)
{
	look(SEEN(PF_A, ""), SPEC_A, 0);
	look(SEEN("", ""), SPEC_A, 1000);
	shows("A*");
	look(SEEN(PF_A, ""), SPEC_A, 2000);
	shows("A");
	look(SEEN("", ""), SPEC_A, HISTORY_KEEP_MS);
	look(SEEN("", ""), SPEC_A, HISTORY_KEEP_MS + 1000);
	shows("A*");
}

TEST_WITH(one_that_nobody_wants_goes_at_once, forget, forget)
{
	look(SEEN(PF_A "," PF_B, ""), SPEC_A, 0);
	look(SEEN(PF_A, ""), SPEC_A, 1);
	shows("A");
	look(SEEN("", ""), NULL, 2);
	shows("");
}

TEST_WITH(one_of_which_settings_are_wanted_is_shown_for_a_while, forget, forget)
{
	look(SEEN(PF_A "," PF_B, ""), "{}", 0);
	look(SEEN(PF_B, ""), "{nicSettings: [{pciAddress: '" A "'}]}", 1000);
	shows("A*B");
}

TEST_WITH(one_without_driver_is_missing_too, forget, forget)
{
	look(SEEN(PF_A, ""), SPEC_A, 0);
	look("{'interfaces': [], 'unusable': [{'pciAddress': '" A "', 'reason': 'NoDriver'}]}",
	     SPEC_A, 1);
	shows("A*");
}

TEST_WITH(a_status_of_the_agent_before_us_counts_as_a_look, forget, forget)
{
	before = yaml("{'interfaces': [{'pciAddress': '" A "', 'host': 7, 'Vfs': [{'vfID': 0, "
		      "'pciAddress': '" V "'}, {'vfID': 1, 'pciAddress': '../x'}, 3]}, "
		      "{'pciAddress': 'x'}, {'pciAddress': 1}, 2]}");
	look(SEEN(PF_B, ""), "{'interfaces': [{'pciAddress': 'x'}, {'pciAddress': '" A "'}]}", 5);
	shows("A*B");
	/* What is no VF of ours is not taken over. */
	assert_int_equal(
		json_array_size(json_at(json_array_get(json_at(before, "missing"), 0), "Vfs")), 1);
}

/* ---- just come ------------------------------------------------------------------------------- */

static bool has_just_come(size_t i)
{
	return json_at(pf_at(i), "host", "arrivedMs") != NULL;
}

TEST_WITH(who_has_just_come_is_marked_until_others_have_seen_it, forget, forget)
{
	look(SEEN(PF_A, ""), NULL, 1000);
	/* At first nobody knows. */
	assert_false(has_just_come(0));
	look(SEEN(PF_A "," PF_B, ""), NULL, 2000);
	assert_false(has_just_come(0));
	assert_true(has_just_come(1));
	look(SEEN(PF_A "," PF_B, ""), NULL, 2000 + HISTORY_SETTLE_MS - 1);
	assert_true(has_just_come(1));
	look(SEEN(PF_A "," PF_B, ""), NULL, 2000 + HISTORY_SETTLE_MS);
	assert_false(has_just_come(1));
}

TEST_WITH(who_was_missing_has_just_come_when_it_is_back, forget, forget)
{
	look(SEEN(PF_A, ""), SPEC_A, 0);
	look(SEEN("", ""), SPEC_A, 1);
	look(SEEN(PF_A, ""), SPEC_A, 2);
	assert_true(has_just_come(0));
}

TEST_WITH(whom_the_last_status_did_not_name_has_just_come, forget, forget)
{
	before = yaml("{'interfaces': [{'pciAddress': '" A "'}]}");
	look(SEEN(PF_A "," PF_B, ""), NULL, 1);
	assert_false(has_just_come(0));
	assert_true(has_just_come(1));
}

/* ---- needed by the node ---------------------------------------------------------------------- */

static const char *protection(size_t i)
{
	return json_str_at(pf_at(i), "host", "protected");
}

TEST_WITH(a_nic_stays_protected_while_nothing_carries_the_node, forget, forget)
{
	look(SEEN(PF_A "," PF_B, NEEDS_A), NULL, 0);
	look(SEEN(PF_A "," PF_B, ""), NULL, 1);
	look(SEEN(PF_A "," PF_B, ""), NULL, 10 * (int64_t)HISTORY_PROTECT_MS);
	assert_string_equal(protection(0), "carries x");
	assert_null(protection(1));
	assert_int_equal(json_array_size(json_at(before, "node", "protected")), 1);
}

TEST_WITH(it_is_free_when_another_one_has_carried_the_node_for_long, forget, forget)
{
	look(SEEN(PF_A "," PF_B, NEEDS_A), NULL, 0);
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 1000);
	assert_string_equal(protection(0), "carries x");
	assert_int_equal(json_array_size(json_at(before, "node", "protected")), 2);
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 1000 + HISTORY_PROTECT_MS - 1);
	assert_string_equal(protection(0), "carries x");
	/* A moment in which nothing does is no elsewhere. */
	look(SEEN(PF_A "," PF_B, ""), NULL, 1000 + HISTORY_PROTECT_MS);
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 2000 + HISTORY_PROTECT_MS);
	assert_string_equal(protection(0), "carries x");
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 2000 + 2 * (int64_t)HISTORY_PROTECT_MS);
	assert_null(protection(0));
	assert_int_equal(json_array_size(json_at(before, "node", "protected")), 1);
}

TEST_WITH(what_was_protected_is_known_to_the_next_process_of_this_boot, forget, forget)
{
	static const struct {
		const char *boot, *want;
	} cases[] = {{"one", "carries x"}, {"two", NULL}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *kept;

		forget(NULL);
		look(SEEN(PF_A, NEEDS_A), NULL, 0);
		look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 1);
		kept = json_pack("{s:o}", "node", history_node(before));
		json_put_str(json_object_get(kept, "node"), "bootId", cases[i].boot);
		forget(NULL);
		before = kept;
		look(SEEN(PF_A, ""), NULL, 2);
		if (!str_eq(protection(0), cases[i].want))
			fail_msg("boot %s: %s", cases[i].boot, json_text(before));
	}
}

/* A state file is written when this changes. */
TEST_WITH(what_is_kept_counts_no_time, forget, forget)
{
	json_auto_t *first = NULL, *later = NULL;

	look(SEEN(PF_A, NEEDS_A), NULL, 0);
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 1);
	first = history_node(before);
	look(SEEN(PF_A "," PF_B, NEEDS_B), NULL, 2);
	later = history_node(before);
	assert_int_equal(json_array_size(json_at(first, "protected")), 2);
	assert_true(json_same(first, later));
	assert_null(json_at(json_array_get(json_at(later, "protected"), 1), "goneMs"));
}

TEST_WITH(a_pci_error_counts_for_ten_minutes_after_the_last, forget, forget)
{
#define ERRORS(n) SEEN("{'pciAddress': '" A "', 'host': {'fatalPciErrors': " n "}}", "")
	/* Those of before this process are old. */
	(void)look(ERRORS("3"), SPEC_A, 1000);
	assert_null(json_at(pf_at(0), "host", "brokenMs"));
	(void)look(ERRORS("4"), SPEC_A, 61000);
	assert_int_equal(json_integer_value(json_at(pf_at(0), "host", "brokenMs")), 61000);
	(void)look(ERRORS("5"), SPEC_A, 121000);
	(void)look(ERRORS("5"), SPEC_A, 121000 + HISTORY_BROKEN_MS - 1);
	assert_int_equal(json_integer_value(json_at(pf_at(0), "host", "brokenMs")), 121000);
	(void)look(ERRORS("5"), SPEC_A, 121000 + HISTORY_BROKEN_MS);
	assert_null(json_at(pf_at(0), "host", "brokenMs"));
	/* Counted anew by a card that was put in: no error. */
	(void)look(ERRORS("0"), SPEC_A, 2000000);
	assert_null(json_at(pf_at(0), "host", "brokenMs"));
}

TEST_WITH(a_port_without_link_is_told_so_when_it_lasts, forget, forget)
{
#define CARRIER(is) SEEN("{'pciAddress': '" A "', 'host': {'carrier': " is "}}", "")
	(void)look(CARRIER("false"), SPEC_A, 1000);
	assert_true(json_is_false(json_at(pf_at(0), "host", "noLink")));
	(void)look(CARRIER("false"), SPEC_A, 1000 + HISTORY_NO_LINK_MS);
	assert_true(json_is_true(json_at(pf_at(0), "host", "noLink")));
	(void)look(CARRIER("true"), SPEC_A, 40000);
	assert_null(json_at(pf_at(0), "host", "noLink"));
}

TEST_WITH(a_link_that_is_lost_is_told_at_once_unless_we_took_it, forget, forget)
{
	json_auto_t *acted = json_pack("{s:I}", A, (json_int_t)INT64_MAX);

	(void)look(CARRIER("true"), SPEC_A, 40000);
	(void)look(CARRIER("false"), SPEC_A, 50000);
	assert_true(json_is_true(json_at(pf_at(0), "host", "noLink")));
	assert_true(history_is_ours(acted, A, 90000));
	assert_false(history_is_ours(acted, B, 90000));
	acted_on = acted;
	(void)look(CARRIER("true"), SPEC_A, 60000);
	json_put_int(acted, A, 70000);
	(void)look(CARRIER("false"), SPEC_A, 80000);
	assert_true(json_is_false(json_at(pf_at(0), "host", "noLink")));
	(void)look(CARRIER("false"), SPEC_A, 80000 + HISTORY_NO_LINK_MS);
	assert_true(json_is_true(json_at(pf_at(0), "host", "noLink")));
	acted_on = NULL;
}

#define CHANGED(is, n)                                                                             \
	SEEN("{'pciAddress': '" A "', 'host': {'ifindex': 2, 'carrier': " is                       \
	     ", 'carrierChanges': " n "}}",                                                        \
	     "")

TEST_WITH(an_answer_that_is_late_undoes_no_message, forget, forget)
{
	json_auto_t *lost = NULL;

	(void)look(CHANGED("true", "4"), SPEC_A, 90000);
	lost = history_with_link(before, A, false, 5);
	json_decref(before);
	before = history_merge(&(struct history_input){.observed = lost, .now_ms = 90000});
	(void)look(CHANGED("true", "4"), SPEC_A, 90001);
	assert_true(json_is_false(json_at(pf_at(0), "host", "carrier")));
	(void)look(CHANGED("true", "6"), SPEC_A, 90002);
	assert_null(json_at(pf_at(0), "host", "noLink"));
}

/* After an update of the agent pods get no device of a port that failed before, or meanwhile. */
TEST_WITH(a_link_that_an_agent_before_us_knew_is_told_at_once, forget, forget)
{
	for (int i = 0; i < 2; i++) {
		before = yaml(i == 0 ? "{linkHealth: {bootID: one, ports: [{pciAddress: '" A "'}]}}"
				     : "{linkHealth: {bootID: two, ports: [{pciAddress: '" A
				       "'}]}}");
		(void)look(CARRIER("false"), SPEC_A, 90000);
		assert_int_equal(json_is_true(json_at(pf_at(0), "host", "noLink")), i == 0);
		(void)forget(NULL);
	}
}

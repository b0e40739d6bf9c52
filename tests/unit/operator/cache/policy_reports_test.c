// SPDX-License-Identifier: Apache-2.0
/* Which policies hear of a node's report, and what they read afterwards. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/policy_reports.h"

static void note(void *arg, const char *policy)
{
	strbuf_addf(arg, "%s ", policy);
}

static void say(struct policy_reports *reports, const char *node, const char *text,
		struct strbuf *heard)
{
	json_auto_t *policies = json_loads(text, 0, NULL);

	strbuf_reset(heard);
	policy_reports_set(reports, node, policies, note, heard);
}

TEST(tells_only_the_policies_whose_report_changed)
{
	struct policy_reports *reports = policy_reports_new();
	auto_strbuf struct strbuf heard = {0};

	say(reports, "w1", "{\"a\": {\"n\": 1}, \"b\": {\"n\": 1}}", &heard);
	assert_string_equal(strbuf_str(&heard), "a b ");
	say(reports, "w1", "{\"a\": {\"n\": 1}, \"b\": {\"n\": 2}}", &heard);
	assert_string_equal(strbuf_str(&heard), "b ");
	say(reports, "w1", "{\"a\": {\"n\": 1}, \"b\": {\"n\": 2}}", &heard);
	assert_string_equal(strbuf_str(&heard), "");
	policy_reports_free(reports);
}

TEST(forgets_what_a_node_no_longer_says)
{
	struct policy_reports *reports = policy_reports_new();
	auto_strbuf struct strbuf heard = {0};
	json_auto_t *of_a = NULL;

	say(reports, "w1", "{\"a\": {\"n\": 1}}", &heard);
	say(reports, "w2", "{\"a\": {\"n\": 2}}", &heard);
	say(reports, "w1", "{}", &heard);
	assert_string_equal(strbuf_str(&heard), "a ");
	of_a = policy_reports_of(reports, "a");
	assert_int_equal(json_object_size(of_a), 1);
	assert_int_equal(json_integer_value(json_at(of_a, "w2", "n")), 2);
	policy_reports_free(reports);
}

TEST(knows_nothing_of_a_policy_that_nobody_mentions)
{
	struct policy_reports *reports = policy_reports_new();
	json_auto_t *none = policy_reports_of(reports, "x");

	assert_int_equal(json_object_size(none), 0);
	policy_reports_free(reports);
}

// SPDX-License-Identifier: Apache-2.0
/* What each profile calls for on a node as it is, and what it says about that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/json.h"
#include "nodeagent/meta/profile.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

#define NONE                                                                                       \
	"[{'name': 'orbweaver', 'owner': 'nobody', 'saved': false}, "                              \
	"{'name': 'sriov', 'owner': 'nobody', 'saved': false}]"
#define OURS                                                                                       \
	"[{'name': 'orbweaver', 'owner': 'ours', 'saved': false}, "                                \
	"{'name': 'sriov', 'owner': 'ours', 'saved': false}]"
#define THEIRS                                                                                     \
	"[{'name': 'orbweaver', 'owner': 'nobody', 'saved': false}, "                              \
	"{'name': 'sriov', 'owner': 'other', 'saved': false}]"
/* containernetworking-plugins are installed. */
#define COMMON                                                                                     \
	"[{'name': 'orbweaver', 'owner': 'ours', 'saved': false}, "                                \
	"{'name': 'sriov', 'owner': 'ours', 'saved': false}, "                                     \
	"{'name': 'macvlan', 'owner': 'other', 'saved': false, 'common': true}]"
#define REPLACED                                                                                   \
	"[{'name': 'orbweaver', 'owner': 'ours', 'saved': false}, "                                \
	"{'name': 'sriov', 'owner': 'ours', 'saved': true}]"
#define HALF                                                                                       \
	"[{'name': 'orbweaver', 'owner': 'nobody', 'saved': false}, "                              \
	"{'name': 'sriov', 'owner': 'nobody', 'saved': true}]"

#define BOTH  "['orbweaver', 'sriov']"
#define META  "['orbweaver']"
#define SRIOV "['sriov']"
#define NO    "[]"

struct situation {
	enum profile profile;
	const char *plugins;
	bool has_conf;
	const char *multus;
	bool is_multus_away;
	enum profile_use use;
	bool is_meta_used;
	/* What is to come of it. */
	const char *install, *restore;
	enum meta_mode meta;
	bool is_waiting, serves;
	const char *reason;
};

static void expect_names(const char *want_text, const json_t *got, size_t i)
{
	json_auto_t *want = yaml(want_text);

	if (!json_same(want, got))
		fail_msg("case %zu: %s, wanted %s", i, json_text(got), want_text);
}

static void expect(const struct situation *s, size_t i)
{
	json_auto_t *plugins = yaml(s->plugins);
	struct profile_decision decision;
	const char *reason;

	profile_decide(&(struct profile_input){.profile = s->profile,
					       .plugins = plugins,
					       .has_conf = s->has_conf,
					       .multus = s->multus,
					       .is_multus_away = s->is_multus_away,
					       .use = s->use,
					       .is_meta_used = s->is_meta_used,
					       .user = "lab/a"},
		       &decision);
	reason = json_str_at(decision.networks, "reason");
	expect_names(s->install, decision.install, i);
	expect_names(s->restore, decision.restore, i);
	if (decision.meta != s->meta || decision.is_waiting != s->is_waiting ||
	    json_is_true(json_at(decision.networks, "serves")) != s->serves ||
	    json_is_true(json_at(decision.networks, "fault")) || !str_eq(reason, s->reason))
		fail_msg("case %zu: meta %d, waiting %d, %s", i, decision.meta, decision.is_waiting,
			 json_text(decision.networks));
	assert_true(reason_is(reason, "networks"));
	assert_true(strlen(json_str_at(decision.networks, "message")) > 0);
	profile_decision_done(&decision);
}

#define EACH(cases)                                                                                \
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)                                              \
	expect(&(cases)[i], i)

static void auto_installs_all_where_no_multus_is_configured(void **state)
{
	static const struct situation cases[] = {
		{.plugins = NONE,
		 .install = BOTH,
		 .restore = NO,
		 .serves = true,
		 .reason = "MetaPlugin"},
		{.plugins = OURS,
		 .has_conf = true,
		 .use = PROFILE_USED,
		 .is_meta_used = true,
		 .install = BOTH,
		 .restore = NO,
		 .serves = true,
		 .reason = "MetaPlugin"},
	};

	EACH(cases);
}

static void auto_leaves_what_others_have_installed(void **state)
{
	static const struct situation cases[] = {
		{.plugins = THEIRS,
		 .multus = "00-multus.conf",
		 .install = META,
		 .restore = NO,
		 .serves = true,
		 .reason = "PluginsKept"},
		{.plugins = THEIRS,
		 .install = META,
		 .restore = NO,
		 .serves = true,
		 .reason = "PluginsKept"},
		/* That is usual, and nothing to be done about. */
		{.plugins = COMMON,
		 .install = BOTH,
		 .restore = NO,
		 .serves = true,
		 .reason = "MetaPlugin"},
		{.profile = PROFILE_DELEGATE,
		 .plugins = COMMON,
		 .install = "['orbweaver', 'sriov', 'macvlan']",
		 .restore = NO,
		 .meta = META_OFF,
		 .serves = true,
		 .reason = "PluginsOnly"},
		{.plugins = NONE,
		 .multus = "00-multus.conf",
		 .install = BOTH,
		 .restore = NO,
		 .serves = true,
		 .reason = "MultusDelegates"},
		/* An installation that profile delegate made, or that was cut off. */
		{.plugins = REPLACED,
		 .multus = "00-multus.conf",
		 .install = META,
		 .restore = SRIOV,
		 .serves = true,
		 .reason = "MultusDelegates"},
		{.plugins = HALF,
		 .multus = "00-multus.conf",
		 .install = META,
		 .restore = SRIOV,
		 .serves = true,
		 .reason = "MultusDelegates"},
		{.plugins = REPLACED,
		 .multus = "00-multus.conf",
		 .use = PROFILE_USED,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		{.plugins = REPLACED,
		 .multus = "00-multus.conf",
		 .use = PROFILE_USE_UNKNOWN,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
	};

	EACH(cases);
}

static void auto_waits_for_a_multus_that_is_being_replaced(void **state)
{
	static const struct situation cases[] = {
		{.plugins = OURS,
		 .is_multus_away = true,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .reason = "MultusAway"},
		/* Not where we have taken over already. */
		{.plugins = OURS,
		 .is_multus_away = true,
		 .has_conf = true,
		 .install = BOTH,
		 .restore = NO,
		 .serves = true,
		 .reason = "MetaPlugin"},
	};

	EACH(cases);
}

static void delegate_replaces_and_configures_nothing(void **state)
{
	static const struct situation cases[] = {
		{.profile = PROFILE_DELEGATE,
		 .plugins = THEIRS,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .serves = true,
		 .reason = "PluginsOnly"},
		{.profile = PROFILE_DELEGATE,
		 .plugins = HALF,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .serves = true,
		 .reason = "PluginsOnly"},
		{.profile = PROFILE_DELEGATE,
		 .plugins = REPLACED,
		 .use = PROFILE_USED,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .serves = true,
		 .reason = "PluginsOnly"},
		/* Pods that our meta plugin attached are deleted by it. */
		{.profile = PROFILE_DELEGATE,
		 .plugins = OURS,
		 .has_conf = true,
		 .use = PROFILE_USED,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		{.profile = PROFILE_DELEGATE,
		 .plugins = OURS,
		 .use = PROFILE_USED,
		 .is_meta_used = true,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		{.profile = PROFILE_DELEGATE,
		 .plugins = OURS,
		 .has_conf = true,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .serves = true,
		 .reason = "PluginsOnly"},
	};

	EACH(cases);
}

static void devices_installs_nothing_and_undoes_what_is_not_used(void **state)
{
	static const struct situation cases[] = {
		{.profile = PROFILE_DEVICES,
		 .plugins = NONE,
		 .install = NO,
		 .restore = NO,
		 .meta = META_OFF,
		 .reason = "DevicesOnly"},
		{.profile = PROFILE_DEVICES,
		 .plugins = THEIRS,
		 .install = NO,
		 .restore = NO,
		 .meta = META_OFF,
		 .reason = "DevicesOnly"},
		/* The configuration names the plugins, so it goes before them. */
		{.profile = PROFILE_DEVICES,
		 .plugins = OURS,
		 .has_conf = true,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .reason = "DevicesOnly"},
		{.profile = PROFILE_DEVICES,
		 .plugins = REPLACED,
		 .install = NO,
		 .restore = BOTH,
		 .meta = META_OFF,
		 .reason = "DevicesOnly"},
		{.profile = PROFILE_DEVICES,
		 .plugins = OURS,
		 .use = PROFILE_USED,
		 .install = BOTH,
		 .restore = NO,
		 .meta = META_OFF,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		{.profile = PROFILE_DEVICES,
		 .plugins = OURS,
		 .has_conf = true,
		 .use = PROFILE_USE_UNKNOWN,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		/* A pod that came while plugins were being taken away. */
		{.profile = PROFILE_DEVICES,
		 .plugins = THEIRS,
		 .use = PROFILE_USED,
		 .install = META,
		 .restore = NO,
		 .meta = META_OFF,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
		{.profile = PROFILE_DEVICES,
		 .plugins = NONE,
		 .use = PROFILE_USE_UNKNOWN,
		 .install = NO,
		 .restore = NO,
		 .meta = META_OFF,
		 .reason = "DevicesOnly"},
		/* A pod that came while the configuration was being taken away. */
		{.profile = PROFILE_DEVICES,
		 .plugins = OURS,
		 .use = PROFILE_USED,
		 .is_meta_used = true,
		 .install = BOTH,
		 .restore = NO,
		 .is_waiting = true,
		 .serves = true,
		 .reason = "PluginsInUse"},
	};

	EACH(cases);
}

static void names_the_plugins_and_a_pod(void **state)
{
	json_auto_t *theirs = yaml(THEIRS), *ours = yaml(OURS);
	struct profile_decision decision;

	profile_decide(&(struct profile_input){.plugins = theirs, .multus = "00-multus.conf"},
		       &decision);
	assert_string_equal(json_str_at(decision.networks, "message"),
			    "sriov of another program stays: set label "
			    "orbweaver.io/profile=delegate on the Node to replace it after a "
			    "backup; Multus calls ours by the other names");
	profile_decision_done(&decision);
	profile_decide(&(struct profile_input){.profile = PROFILE_DEVICES,
					       .plugins = ours,
					       .use = PROFILE_USED,
					       .user = "lab/a"},
		       &decision);
	assert_string_equal(json_str_at(decision.networks, "message"),
			    "profile devices waits to take orbweaver, sriov away: pods use it, "
			    "among them lab/a; drain the node, or wait until they end");
	profile_decision_done(&decision);
}

static void reads_three_words(void **state)
{
	static const char *const wrong[] = {"", "Auto", "on", "device", "auto "};
	enum profile profile = PROFILE_DELEGATE;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(profile_read(wrong[i], &profile));
	assert_false(profile_read(NULL, &profile));
	assert_int_equal(profile, PROFILE_DELEGATE);
	assert_true(profile_read("devices", &profile));
	assert_int_equal(profile, PROFILE_DEVICES);
	assert_string_equal(profile_name(PROFILE_AUTO), "auto");
}

static void a_label_that_is_not_a_profile_names_node_value_and_values(void **state)
{
	json_auto_t *said = profile_refused("w1", "of-my-own");

	assert_string_equal(json_str_at(said, "reason"), "BadProfile");
	assert_true(json_is_true(json_at(said, "fault")));
	assert_string_equal(json_str_at(said, "message"),
			    "label orbweaver.io/profile of Node w1: \"of-my-own\" is not a "
			    "profile; must be auto, delegate or devices; CNI of the node stays as "
			    "it is");
}

static void what_passes_by_itself_is_not_a_fault(void **state)
{
	struct err err = {0};
	json_auto_t *waits = NULL, *fails = NULL;

	(void)err_set(&err, ERR_TRANSIENT, "NoClusterNetwork", "none yet");
	waits = profile_trouble(&err);
	(void)err_set(&err, ERR_HOST, "PluginsNotInstalled", "read-only");
	fails = profile_trouble(&err);
	assert_false(json_is_true(json_at(waits, "fault")));
	assert_true(json_is_true(json_at(fails, "fault")));
	assert_false(json_is_true(json_at(fails, "serves")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_installs_all_where_no_multus_is_configured),
		cmocka_unit_test(auto_leaves_what_others_have_installed),
		cmocka_unit_test(auto_waits_for_a_multus_that_is_being_replaced),
		cmocka_unit_test(delegate_replaces_and_configures_nothing),
		cmocka_unit_test(devices_installs_nothing_and_undoes_what_is_not_used),
		cmocka_unit_test(names_the_plugins_and_a_pod),
		cmocka_unit_test(reads_three_words),
		cmocka_unit_test(a_label_that_is_not_a_profile_names_node_value_and_values),
		cmocka_unit_test(what_passes_by_itself_is_not_a_fault),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

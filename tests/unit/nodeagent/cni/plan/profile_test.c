// SPDX-License-Identifier: Apache-2.0
/* What each profile calls for on a node as it is, and what it says about that. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/profile.h"
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
	"{'name': 'macvlan', 'owner': 'other', 'saved': false, 'common': true}, "                  \
	"{'name': 'loopback', 'owner': 'other', 'saved': false, 'common': true, 'forAll': true}]"
#define REPLACED                                                                                   \
	"[{'name': 'orbweaver', 'owner': 'ours', 'saved': false}, "                                \
	"{'name': 'sriov', 'owner': 'ours', 'saved': true}]"
#define HALF                                                                                       \
	"[{'name': 'orbweaver', 'owner': 'nobody', 'saved': false}, "                              \
	"{'name': 'sriov', 'owner': 'nobody', 'saved': true}]"

#define BOTH  "['orbweaver', 'sriov']"
#define FIRST "['orbweaver']"
#define SRIOV "['sriov']"
#define NO    "[]"

/* What a node is like. */
enum {
	CONF = 1 << 0,    /* our configuration of the runtime is there */
	MULTUS = 1 << 1,  /* one of Multus is */
	AWAY = 1 << 2,    /* Multus is being replaced */
	USED = 1 << 3,    /* pods use our plugins */
	UNKNOWN = 1 << 4, /* nobody knows whether they do */
	META = 1 << 5,    /* pods were attached by our meta plugin */
};

/* What is to come of it, beside plugins. */
enum {
	OFF = 1 << 0,   /* the meta plugin is */
	WAITS = 1 << 1, /* for pods to end, or for Multus */
	SERVES = 1 << 2,
};

struct situation {
	enum profile profile;
	const char *plugins;
	unsigned int is;
	const char *install, *restore;
	unsigned int comes;
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
					       .has_conf = s->is & CONF,
					       .multus = s->is & MULTUS ? "00-multus.conf" : NULL,
					       .is_multus_away = s->is & AWAY,
					       .use = s->is & USED      ? PROFILE_USED
						      : s->is & UNKNOWN ? PROFILE_USE_UNKNOWN
									: PROFILE_UNUSED,
					       .is_meta_used = s->is & META,
					       .user = "lab/a"},
		       &decision);
	reason = json_str_at(decision.networks, "reason");
	expect_names(s->install, decision.install, i);
	expect_names(s->restore, decision.restore, i);
	if ((decision.meta == META_OFF) != ((s->comes & OFF) != 0) ||
	    decision.is_waiting != ((s->comes & WAITS) != 0) ||
	    json_is_true(json_at(decision.networks, "serves")) != ((s->comes & SERVES) != 0) ||
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

TEST(auto_installs_all_where_no_multus_is_configured)
{
	static const struct situation cases[] = {
		{PROFILE_AUTO, NONE, 0, BOTH, NO, SERVES, "MetaPlugin"},
		{PROFILE_AUTO, OURS, CONF | USED | META, BOTH, NO, SERVES, "MetaPlugin"},
	};

	EACH(cases);
}

TEST(auto_leaves_what_others_have_installed)
{
	static const struct situation cases[] = {
		{PROFILE_AUTO, THEIRS, MULTUS, FIRST, NO, SERVES, "PluginsKept"},
		{PROFILE_AUTO, THEIRS, 0, FIRST, NO, SERVES, "PluginsKept"},
		/* That is usual, and nothing to be done about. */
		{PROFILE_AUTO, COMMON, 0, BOTH, NO, SERVES, "MetaPlugin"},
		{PROFILE_DELEGATE, COMMON, 0, "['orbweaver', 'sriov', 'macvlan']", NO, OFF | SERVES,
		 "PluginsOnly"},
		{PROFILE_AUTO, NONE, MULTUS, BOTH, NO, SERVES, "MultusDelegates"},
		/* An installation that profile delegate made, or that was cut off. */
		{PROFILE_AUTO, REPLACED, MULTUS, FIRST, SRIOV, SERVES, "MultusDelegates"},
		{PROFILE_AUTO, HALF, MULTUS, FIRST, SRIOV, SERVES, "MultusDelegates"},
		{PROFILE_AUTO, REPLACED, MULTUS | USED, BOTH, NO, WAITS | SERVES, "PluginsInUse"},
		{PROFILE_AUTO, REPLACED, MULTUS | UNKNOWN, BOTH, NO, WAITS | SERVES,
		 "PluginsInUse"},
	};

	EACH(cases);
}

TEST(auto_waits_for_a_multus_that_is_being_replaced)
{
	static const struct situation cases[] = {
		{PROFILE_AUTO, OURS, AWAY, BOTH, NO, OFF | WAITS, "MultusAway"},
		/* Not where we have taken over already. */
		{PROFILE_AUTO, OURS, CONF | AWAY, BOTH, NO, SERVES, "MetaPlugin"},
	};

	EACH(cases);
}

TEST(delegate_replaces_and_configures_nothing)
{
	static const struct situation cases[] = {
		{PROFILE_DELEGATE, THEIRS, 0, BOTH, NO, OFF | SERVES, "PluginsOnly"},
		{PROFILE_DELEGATE, HALF, 0, BOTH, NO, OFF | SERVES, "PluginsOnly"},
		{PROFILE_DELEGATE, REPLACED, USED, BOTH, NO, OFF | SERVES, "PluginsOnly"},
		/* Pods that our meta plugin attached are deleted by it. */
		{PROFILE_DELEGATE, OURS, CONF | USED, BOTH, NO, WAITS | SERVES, "PluginsInUse"},
		{PROFILE_DELEGATE, OURS, USED | META, BOTH, NO, WAITS | SERVES, "PluginsInUse"},
		{PROFILE_DELEGATE, OURS, CONF, BOTH, NO, OFF | SERVES, "PluginsOnly"},
	};

	EACH(cases);
}

TEST(devices_installs_nothing_and_undoes_what_is_not_used)
{
	static const struct situation cases[] = {
		{PROFILE_DEVICES, NONE, 0, NO, NO, OFF, "DevicesOnly"},
		{PROFILE_DEVICES, THEIRS, 0, NO, NO, OFF, "DevicesOnly"},
		/* The configuration names the plugins, so it goes before them. */
		{PROFILE_DEVICES, OURS, CONF, BOTH, NO, OFF, "DevicesOnly"},
		{PROFILE_DEVICES, REPLACED, 0, NO, BOTH, OFF, "DevicesOnly"},
		{PROFILE_DEVICES, OURS, USED, BOTH, NO, OFF | WAITS | SERVES, "PluginsInUse"},
		{PROFILE_DEVICES, OURS, CONF | UNKNOWN, BOTH, NO, WAITS | SERVES, "PluginsInUse"},
		/* A pod that came while plugins were being taken away. */
		{PROFILE_DEVICES, THEIRS, USED, FIRST, NO, OFF | WAITS | SERVES, "PluginsInUse"},
		{PROFILE_DEVICES, NONE, UNKNOWN, NO, NO, OFF, "DevicesOnly"},
		/* A pod that came while the configuration was being taken away. */
		{PROFILE_DEVICES, OURS, USED | META, BOTH, NO, WAITS | SERVES, "PluginsInUse"},
	};

	EACH(cases);
}

TEST(names_the_plugins_and_a_pod)
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

TEST(reads_three_words)
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

TEST(a_label_that_is_not_a_profile_names_node_value_and_values)
{
	json_auto_t *said = profile_refused("w1", "of-my-own");

	assert_string_equal(json_str_at(said, "reason"), "BadProfile");
	assert_true(json_is_true(json_at(said, "fault")));
	assert_string_equal(json_str_at(said, "message"),
			    "label orbweaver.io/profile of Node w1: \"of-my-own\" is not a "
			    "profile; must be auto, delegate or devices; CNI of the node stays as "
			    "it is");
}

TEST(what_passes_by_itself_is_not_a_fault)
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

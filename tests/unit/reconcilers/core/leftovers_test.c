// SPDX-License-Identifier: Apache-2.0
/* Leftovers of the old stack: who counts, where, and what is said. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/leftovers.h"

#define KEY "kube-system/x"

/* The one operation that is planned for an object in kube-system. Borrowed from the plan. */
static const json_t *decide(struct plan *plan, const char *id, const char *object)
{
	auto_free char *key = str_printf("%s " KEY, id);
	json_auto_t *world = json_pack("{s:{s:s, s:s}, s:{}}", "env", "namespace",
				       "orbweaver-system", "configNamespace", "spiderpool", id);
	struct err err = {0};

	if (object)
		json_put(json_at(world, id), KEY, json_parse(object, strlen(object), &err));
	assert_int_equal(leftover_reconcile(world, key, plan, &err), 0);
	assert_int_equal(json_array_size(plan->ops), 1);
	assert_string_equal(json_str_at(json_array_get(plan->ops, 0), "op"), "finding");
	assert_string_equal(json_str_at(json_array_get(plan->ops, 0), "kind"), id);
	assert_string_equal(json_str_at(json_array_get(plan->ops, 0), "key"), KEY);
	return json_array_get(plan->ops, 0);
}

TEST(a_program_counts_while_it_has_pods)
{
	static const char *const programs[] = {
		LEFTOVER_SRIOV_OPERATOR,   LEFTOVER_SPIDER_OPERATOR, LEFTOVER_CONFIG_DAEMON,
		LEFTOVER_SRIOV_PLUGIN,     LEFTOVER_SHARED_PLUGIN,   LEFTOVER_LONE_SRIOV,
		LEFTOVER_LONE_SRIOV_AMD64, LEFTOVER_LONE_SHARED,     LEFTOVER_SPIDER_SRIOV,
	};

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		auto_plan struct plan runs = {0}, rests = {0}, gone = {0};
		const json_t *op = decide(&runs, programs[i], "{\"status\": {\"replicas\": 1}}");

		assert_string_equal(json_str_at(op, "reason"), "OldProgramRuns");
		assert_true(strstr(json_str_at(op, "message"), ": scale it to 0") ||
			    strstr(json_str_at(op, "message"), ": delete this DaemonSet"));
		assert_null(json_at(decide(&rests, programs[i], "{\"metadata\": {}}"), "reason"));
		assert_null(json_at(decide(&gone, programs[i], NULL), "reason"));
	}
}

TEST(a_config_map_counts_where_nobody_reads_it)
{
	auto_plan struct plan elsewhere = {0}, ours = {0};
	json_auto_t *world = json_pack("{s:{s:s}}", "env", "namespace", "orbweaver-system");
	struct err err = {0};
	const json_t *op = decide(&elsewhere, LEFTOVER_SHARED_CONFIG,
				  "{\"metadata\": {\"namespace\": \"kube-system\"}}");

	assert_string_equal(json_str_at(op, "reason"), "NotRead");
	assert_string_equal(
		json_str_at(op, "message"),
		"agents read the ConfigMap of this name in namespace orbweaver-system, not this "
		"one, "
		"unless their flag --shared-config says otherwise: copy it there, or delete it");
	assert_int_equal(leftover_reconcile(world, LEFTOVER_SHARED_CONFIG " orbweaver-system/x",
					    &ours, &err),
			 0);
	assert_true(plan_is_empty(&ours));
}

TEST(each_config_map_of_devices_counts_outside_our_namespace)
{
	static const char *const kinds[] = {LEFTOVER_SHARED_CONFIG, LEFTOVER_RDMA_DEVICES,
					    LEFTOVER_RESOURCE_LIST, LEFTOVER_DEVICE_FILES};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_plan struct plan elsewhere = {0}, ours = {0};
		const json_t *op = decide(&elsewhere, kinds[i],
					  "{\"metadata\": {\"namespace\": \"kube-system\"}}");

		assert_string_equal(json_str_at(op, "reason"), "NotRead");
		assert_non_null(strstr(json_str_at(op, "message"), " namespace orbweaver-system"));
		op = decide(&ours, kinds[i],
			    "{\"metadata\": {\"namespace\": \"orbweaver-system\"}}");
		assert_null(json_at(op, "reason"));
	}
}

/*
 * The guide on AI clusters: "you can update the configuration by updating the podResourceInject
 * field in configMap: spiderpool-config". Spiderpool reads spiderpool-conf, as we do.
 */
TEST(settings_that_nobody_reads_say_where_they_belong)
{
	static const struct {
		const char *kind, *ns;
		bool counts;
	} rows[] = {
		{LEFTOVER_MISNAMED, "spiderpool", true},
		{LEFTOVER_MISNAMED, "orbweaver-system", true},
		{LEFTOVER_SETTINGS, "orbweaver-system", true},
		{LEFTOVER_SETTINGS, "spiderpool", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_plan struct plan plan = {0};
		auto_free char *object =
			str_printf("{\"metadata\": {\"namespace\": \"%s\"}}", rows[i].ns);
		const json_t *op = decide(&plan, rows[i].kind, object);

		if (!rows[i].counts) {
			assert_null(json_at(op, "reason"));
			continue;
		}
		assert_string_equal(json_str_at(op, "reason"), "NotRead");
		assert_non_null(strstr(json_str_at(op, "message"), " in namespace spiderpool"));
	}
}

TEST(a_config_map_of_a_common_name_counts_by_its_owner)
{
	auto_plan struct plan theirs = {0}, others = {0}, nobodys = {0};
	const json_t *op = decide(&theirs, LEFTOVER_MADE_LIST,
				  "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": "
				  "\"sriovnetwork.openshift.io/v1\", \"kind\": "
				  "\"SriovOperatorConfig\", \"name\": \"default\"}]}}");

	assert_string_equal(json_str_at(op, "reason"), "NotRead");
	assert_non_null(strstr(json_str_at(op, "message"), ": delete it once that is gone"));
	op = decide(&others, LEFTOVER_MADE_LIST,
		    "{\"metadata\": {\"ownerReferences\": [{\"apiVersion\": "
		    "\"nvidia.com/v1\", \"kind\": \"ClusterPolicy\"}]}}");
	assert_null(json_at(op, "reason"));
	op = decide(&nobodys, LEFTOVER_MADE_LIST, "{\"metadata\": {}}");
	assert_null(json_at(op, "reason"));
}

TEST(kinds_that_nobody_reads_count)
{
	static const char *const kinds[] = {LEFTOVER_SRIOV_CONFIG, LEFTOVER_SUBNET};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_plan struct plan plan = {0};

		assert_string_equal(json_str_at(decide(&plan, kinds[i], "{}"), "reason"),
				    "NotRead");
	}
}

TEST(a_key_of_another_kind_is_our_mistake)
{
	static const char *const keys[] = {"pods " KEY, "pods", "spidersubnetss a", ""};
	json_auto_t *world = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		auto_plan struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(leftover_reconcile(world, keys[i], &plan, &err), -1);
		assert_int_equal(err.class, ERR_BUG);
		assert_string_equal(err.reason, "BadKey");
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Plans as data, the table of kinds, and looking things up in a world. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/core/reconcile.h"

static json_t *parse(const char *text)
{
	json_t *value = json_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

TEST(an_empty_plan_is_empty)
{
	auto_plan struct plan plan = {0};

	assert_true(plan_is_empty(&plan));
	plan_done(&plan);
	assert_true(plan_is_empty(&plan));
}

TEST(operations_are_written_down_in_order)
{
	static const char want[] =
		"[{\"op\":\"apply\",\"kind\":\"spiderippools\",\"key\":\"p\","
		"\"object\":{\"metadata\":{\"name\":\"p\"},\"spec\":{}}},"
		"{\"op\":\"apply\",\"kind\":\"sriovnetworks\",\"key\":\"lab/n\","
		"\"object\":{\"metadata\":{\"name\":\"n\",\"namespace\":\"lab\"}}},"
		"{\"op\":\"status\",\"kind\":\"sriovnetworks\",\"key\":\"lab/n\","
		"\"status\":{\"a\":1}},"
		"{\"op\":\"meta\",\"kind\":\"nodes\",\"key\":\"w1\","
		"\"metadata\":{\"labels\":{\"x\":null}}},"
		"{\"op\":\"delete\",\"kind\":\"sriovnetworks\",\"key\":\"lab/n\",\"uid\":\"u-1\"},"
		"{\"op\":\"event\",\"kind\":\"nodes\",\"key\":\"w1\",\"type\":\"Warning\","
		"\"reason\":\"R\","
		"\"message\":\"m\"},"
		"{\"op\":\"event\",\"kind\":\"nodes\",\"key\":\"w1\",\"type\":\"Normal\","
		"\"reason\":\"R\","
		"\"message\":\"m\"},"
		"{\"op\":\"report\",\"node\":\"w1\",\"policies\":{}},"
		"{\"op\":\"finding\",\"kind\":\"pods\",\"key\":\"lab/p\",\"reason\":\"R\","
		"\"message\":\"m\"},"
		"{\"op\":\"finding\",\"kind\":\"pods\",\"key\":\"lab/q\"},"
		"{\"op\":\"requeue\",\"after_ms\":1500}]";
	auto_plan struct plan plan = {0};
	auto_strbuf struct strbuf got = {0};

	plan_apply(&plan, KIND_IP_POOL, parse("{\"metadata\":{\"name\":\"p\"},\"spec\":{}}"));
	plan_apply(&plan, KIND_SRIOV_NETWORK,
		   parse("{\"metadata\":{\"name\":\"n\",\"namespace\":\"lab\"}}"));
	plan_status(&plan, KIND_SRIOV_NETWORK, "lab/n", parse("{\"a\":1}"));
	plan_meta(&plan, KIND_NODE, "w1", parse("{\"labels\":{\"x\":null}}"));
	plan_delete(&plan, KIND_SRIOV_NETWORK, "lab/n", "u-1");
	plan_event(&plan, KIND_NODE, "w1", true, "R", "m");
	plan_event(&plan, KIND_NODE, "w1", false, "R", "m");
	plan_report(&plan, "w1", json_object());
	plan_finding(&plan, KIND_POD, "lab/p", "R", "m");
	plan_finding(&plan, KIND_POD, "lab/q", NULL, NULL);
	plan_requeue(&plan, 1500);

	assert_false(plan_is_empty(&plan));
	json_write(plan.ops, &got);
	assert_string_equal(got.data, want);
}

TEST(every_kind_has_its_names)
{
	auto_strbuf struct strbuf listed = {0};
	struct err err = {0};

	assert_int_equal(fs_read(AT_FDCWD, "crds/Kustomization", 65536, &listed, &err), 0);
	for (const struct kind_info *k = kind_all(); k->id; k++) {
		assert_ptr_equal(kind_find(k->id), k);
		assert_true(*k->kind >= 'A' && *k->kind <= 'Z');
		if (str_empty(k->group)) {
			assert_null(k->crd_file);
		} else {
			const char *folder = str_eq(k->id, KIND_NAD) ? "crds/nad" : "crds";
			auto_free char *file = str_printf("%s/%s.%s.yaml", folder, k->id, k->group);
			auto_free char *line = str_printf("\n- %s.%s.yaml\n", k->id, k->group);

			assert_string_equal(k->crd_file, file);
			if (access(file, R_OK) < 0)
				fail_msg("%s is not there, the schema of %s", file, k->kind);
			if (!str_eq(k->id, KIND_NAD) && !strstr(strbuf_str(&listed), line))
				fail_msg("crds/Kustomization does not list %s", file);
		}
	}
	assert_null(kind_find("services"));
	assert_null(kind_find(KIND_POLICY_REPORT));
	assert_null(kind_find(NULL));
}

TEST(kinds_agree_with_the_api)
{
	static const struct {
		const char *id, *api_version, *kind;
		bool namespaced;
	} cases[] = {
		{KIND_NODE, "v1", "Node", false},
		{KIND_NAMESPACE, "v1", "Namespace", false},
		{KIND_NAD, "k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", true},
		{KIND_POLICY, "sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy", true},
		{KIND_OVS_NETWORK, "sriovnetwork.openshift.io/v1", "OVSNetwork", true},
		{KIND_IP_POOL, "spiderpool.spidernet.io/v2beta1", "SpiderIPPool", false},
		{KIND_RESERVED_IP, "spiderpool.spidernet.io/v2beta1", "SpiderReservedIP", false},
		{KIND_COORDINATOR, "spiderpool.spidernet.io/v2beta1", "SpiderCoordinator", false},
		{KIND_MULTUS_CONFIG, "spiderpool.spidernet.io/v2beta1", "SpiderMultusConfig", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct kind_info *k = kind_find(cases[i].id);
		json_auto_t *api_version = kind_api_version(k);

		assert_string_equal(json_string_value(api_version), cases[i].api_version);
		assert_string_equal(k->kind, cases[i].kind);
		assert_int_equal(k->namespaced, cases[i].namespaced);
	}
}

TEST(a_world_is_searched_without_surprises)
{
	json_auto_t *world = parse("{\"nodes\":{\"w1\":{\"metadata\":{\"name\":\"w1\"}}},"
				   "\"env\":{\"now\":\"2026-01-31T10:00:00Z\",\"odd\":5}}");

	assert_int_equal(json_object_size(world_kind(world, KIND_NODE)), 1);
	assert_null(world_kind(world, KIND_POLICY));
	assert_string_equal(json_name(world_get(world, KIND_NODE, "w1")), "w1");
	assert_null(world_get(world, KIND_NODE, "w2"));
	assert_null(world_get(world, KIND_POLICY, "w1"));
	assert_string_equal(world_env(world, "now"), "2026-01-31T10:00:00Z");
	assert_string_equal(world_env(world, "odd"), "");
	assert_string_equal(world_env(NULL, "now"), "");
}

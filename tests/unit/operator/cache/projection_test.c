/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of objects that users write, however large they are. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/projection.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/sriov/node_health.h"

static char *text_of(size_t len)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < len; i++)
		strbuf_add(&text, "x", 1);
	return strbuf_take(&text);
}

TEST(no_kind_keeps_what_is_too_large)
{
	static void (*const projections[])(json_t * object) = {
		project_object,       project_written,    project_namespace, project_config,
		project_endpoint,     project_definition, project_node,      project_workload,
		inject_check_project, project_network,
	};
	auto_free char *large = text_of(250000);

	for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
		json_auto_t *object = json_pack(
			"{s:{s:s, s:s, s:{s:s, s:s, s:s}}}", "metadata", "name", "a", "namespace",
			"ml", "annotations", "cni.spidernet.io/rdma-resource-inject", large,
			"k8s.v1.cni.cncf.io/networks", large, "example.com/a", large);
		auto_free char *text = NULL;

		projections[i](object);
		text = json_text(object);
		assert_in_range(strlen(text), 1, 500);
	}
}

/* 240 KiB: the API server takes 256 KiB of annotations. */
static json_t *object_with_many_annotations(void)
{
	static const char *const read[] = {
		"cni.spidernet.io/rdma-resource-inject",
		"cni.spidernet.io/network-resource-inject",
		"ipam.spidernet.io/default-ipv4-ippool",
		"orbweaver.io/down",
		"orbweaver.io/asks",
		"orbweaver.io/conflicts",
		"operator.sriovnetwork.openshift.io/last-network-namespace",
		"k8s.v1.cni.cncf.io/networks",
	};
	auto_free char *text = text_of(16 * 1024);
	json_t *object = json_pack("{s:{s:s, s:{}, s:[]}}", "metadata", "name", "a", "annotations",
				   "managedFields");
	json_t *annotations = json_at(object, "metadata", "annotations");
	json_t *owned = json_object();

	for (size_t i = 0; i < 15; i++) {
		auto_free char *key =
			i < ARRAY_LEN(read) ? str_dup(read[i]) : str_printf("example.com/%zu", i);
		auto_free char *field = str_printf("f:%s", key);

		json_put_str(annotations, key, text);
		json_put(owned, field, json_object());
	}
	/* Any user can write with this name. */
	for (size_t i = 0; i < 4000; i++) {
		auto_free char *field = str_printf("f:example.com/with-a-longer-name-%zu", i);

		json_put(owned, field, json_object());
	}
	json_array_append_new(json_at(object, "metadata", "managedFields"),
			      json_pack("{s:s, s:{s:{s:o}}}", "manager", "orbweaver-operator",
					"fieldsV1", "f:metadata", "f:annotations", owned));
	return object;
}

TEST(no_kind_of_users_keeps_many_annotations)
{
	static const struct {
		void (*project)(json_t *object);
		size_t max;
	} kinds[] = {
		{project_namespace, 33 * 1024},    {project_network, 17 * 1024},
		{project_config, 17 * 1024},       {project_endpoint, 51 * 1024},
		{project_object, 33 * 1024},       {project_written, 51 * 1024},
		{project_definition, 51 * 1024},   {project_workload, 33 * 1024},
		{inject_check_project, 33 * 1024}, {assign_project, 33 * 1024},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *object = object_with_many_annotations();
		auto_free char *text = NULL;

		kinds[i].project(object);
		json_object_del(json_at(object, "metadata"), "managedFields");
		text = json_text(object);
		if (strlen(text) > kinds[i].max)
			fail_msg("kind %zu keeps %zu bytes", i, strlen(text));
	}
}

TEST(a_node_keeps_what_it_says_of_its_links)
{
	json_auto_t *node = json_pack(
		"{s:{s:s, s:{s:s, s:s}}, s:{s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s}]}}",
		"metadata", "name", "a", "annotations", NODE_HEALTH_ANNOTATION, "0=LinkDown", "x",
		"y", "status", "conditions", "type", "DiskPressure", "status", "False", "type",
		"Ready", "status", "True", "type", NODE_HEALTH_CONDITION, "status", "False",
		"reason", "LinkDown");

	project_node(node);
	assert_int_equal(json_array_size(json_at(node, "status", "conditions")), 2);
	assert_string_equal(json_str_at(json_find(json_at(node, "status", "conditions"), "type",
						  NODE_HEALTH_CONDITION),
					"reason"),
			    "LinkDown");
	assert_string_equal(json_str_at(node, "metadata", "annotations", NODE_HEALTH_ANNOTATION),
			    "0=LinkDown");
	assert_null(json_at(node, "metadata", "annotations", "x"));
}

/* Else a definition would never be seen to be as it is wanted. */
TEST(a_definition_keeps_what_its_config_gave_it)
{
	auto_free char *text = text_of(16 * 1024 - 20);
	json_auto_t *nad = json_pack("{s:{s:s, s:{s:s, s:s, s:s}, s:[{s:s, s:{s:{s:{s:{}}}}}]}}",
				     "metadata", "name", "a", "annotations", "a.example.com/1",
				     text, "a.example.com/2", text, "z.example.com/own", text,
				     "managedFields", "manager", "orbweaver-operator", "fieldsV1",
				     "f:metadata", "f:annotations", "f:z.example.com/own");

	project_definition(nad);
	assert_non_null(json_at(nad, "metadata", "annotations", "z.example.com/own"));
	assert_non_null(json_at(nad, "metadata", "annotations", "a.example.com/1"));
	assert_null(json_at(nad, "metadata", "annotations", "a.example.com/2"));
}

/* The API server bounds annotations of an object, and nothing else of its metadata. */
TEST(no_kind_of_users_keeps_metadata_that_is_too_large)
{
	static void (*const projections[])(json_t * object) = {
		project_object,   project_written,    project_namespace, project_config,
		project_endpoint, project_definition, project_workload,  project_network,
	};
	auto_free char *name = text_of(60);

	for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
		json_auto_t *object = json_pack("{s:{s:s, s:{}, s:[], s:[]}}", "metadata", "name",
						"a", "labels", "ownerReferences", "finalizers");
		json_t *metadata = json_at(object, "metadata");
		auto_free char *text = NULL;

		for (int n = 0; n < 1000; n++) {
			auto_free char *key = str_printf("%s/%d", name, n);

			json_put_str(json_at(metadata, "labels"), key, name);
			json_array_append_new(json_at(metadata, "finalizers"), json_string(key));
			json_array_append_new(json_at(metadata, "ownerReferences"),
					      json_pack("{s:s, s:s, s:b}", "uid", key, "name", name,
							"controller", n == 500));
		}
		projections[i](object);
		text = json_text(object);
		assert_in_range(strlen(text), 1, 500);
		/* Whose it is stays known. */
		assert_non_null(json_find(json_at(metadata, "ownerReferences"), "name", name));
	}
}

TEST(configurations_of_users_are_kept_up_to_their_bound)
{
	auto_free char *large = text_of(990000);
	json_auto_t *config = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "a", "spec",
					"customCNI", large);
	json_auto_t *nad =
		json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "a", "spec", "config", large);
	json_auto_t *endpoint = json_pack("{s:{s:s}, s:{s:{s:[]}}}", "metadata", "name", "a",
					  "status", "current", "ips");

	project_config(config);
	assert_int_equal(json_integer_value(json_at(config, "spec", "customCNI")), 990000);
	project_definition(nad);
	assert_int_equal(json_integer_value(json_at(nad, "spec", "config")), 990000);
	assert_string_equal(json_str_at(nad, "metadata", "orbweaver", "addresses", "fault"),
			    "TooLarge");
	for (int i = 0; i < 5000; i++)
		json_array_append_new(json_at(endpoint, "status", "current", "ips"), json_object());
	project_endpoint(endpoint);
	assert_int_equal(json_integer_value(json_at(endpoint, "status", "current", "ips")), 5000);
}

static json_t *endpoint_with(size_t items, size_t routes)
{
	json_t *ips = json_array();

	for (size_t i = 0; i < items; i++) {
		json_t *item = json_pack("{s:s, s:[]}", "interface", "net1", "routes");

		for (size_t k = 0; k < routes; k++)
			json_array_append_new(
				json_at(item, "routes"),
				json_pack("{s:s, s:s}", "dst", "10.0.0.0/16", "gw", "10.0.0.1"));
		json_array_append_new(ips, item);
	}
	return json_pack("{s:{s:s}, s:{s:{s:o}}}", "metadata", "name", "a", "status", "current",
			 "ips", ips);
}

/* Users write them, and one world may have all of a pool. */
TEST(an_endpoint_is_kept_up_to_what_a_pod_can_have)
{
	static const struct {
		size_t items, routes;
		bool is_kept;
	} cases[] = {
		{1, 0, true},   {LIMIT_NETWORKS + 1, 0, true},  {LIMIT_NETWORKS + 1, 10, true},
		{1, 400, true}, {LIMIT_NETWORKS + 2, 0, false}, {LIMIT_NETWORKS, 1000, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *endpoint = endpoint_with(cases[i].items, cases[i].routes);
		auto_free char *text = NULL;
		const json_t *ips;

		project_endpoint(endpoint);
		ips = json_at(endpoint, "status", "current", "ips");
		text = json_text(endpoint);
		assert_in_range(json_weight(text, strlen(text), 100000), 1, LIMIT_JSON_NODES);
		if (cases[i].is_kept)
			assert_int_equal(json_array_size(ips), cases[i].items);
		else
			/* No number that a pod could have. */
			assert_true(json_integer_value(ips) > LIMIT_NETWORKS + 1);
	}
}

TEST(words_of_an_endpoint_have_the_length_of_names)
{
	auto_free char *large = text_of(60000);
	json_auto_t *endpoint =
		json_pack("{s:{s:s}, s:{s:s, s:{s:s, s:s}}}", "metadata", "name", "a", "status",
			  "ownerControllerName", large, "current", "uid", large, "node", "n1");

	project_endpoint(endpoint);
	assert_int_equal(json_integer_value(json_at(endpoint, "status", "ownerControllerName")),
			 60000);
	assert_int_equal(json_integer_value(json_at(endpoint, "status", "current", "uid")), 60000);
	assert_string_equal(json_str_at(endpoint, "status", "current", "node"), "n1");
}

/* Each part within its bound, and 1.4 MB together. */
TEST(no_kind_of_users_keeps_many_large_parts)
{
	static const struct {
		void (*project)(json_t *object);
		size_t max;
	} kinds[] = {
		{project_config, 270000},   {project_network, 270000},     {project_policy, 270000},
		{project_endpoint, 270000}, {inject_check_project, 70000}, {assign_project, 2000},
	};
	auto_free char *text = text_of(60000), *name = text_of(300);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *object = json_pack("{s:{s:s, s:[{}]}, s:{s:[]}, s:{s:{s:[]}}}",
						"metadata", "name", "a", "ownerReferences", "spec",
						"containers", "status", "current", "ips");
		json_t *spec = json_at(object, "spec"), *owner;
		auto_free char *kept = NULL;

		owner = json_array_get(json_at(object, "metadata", "ownerReferences"), 0);
		json_put_bool(owner, "controller", true);
		json_put_str(owner, "name", text);
		for (int n = 0; n < 1000; n++) {
			auto_free char *key = str_printf("%s%d", name, n);

			if (n < 23)
				json_put_str(spec, key, text);
			json_array_append_new(
				json_at(spec, "containers"),
				json_pack("{s:{s:{s:s}}}", "resources", "limits", key, "1"));
			json_array_append_new(json_at(object, "status", "current", "ips"),
					      json_pack("{s:s, s:s, s:s}", "interface", key,
							"ipv4Pool", key, "ipv6Pool", key));
		}
		/* Of pods, what users write is here. */
		if (kinds[i].project == inject_check_project || kinds[i].project == assign_project)
			json_object_del(object, "status");
		else
			json_object_del(json_at(object, "metadata"), "ownerReferences");
		if (kinds[i].project == project_endpoint)
			json_object_del(object, "spec");
		else
			json_object_del(object, "status");
		kinds[i].project(object);
		kept = json_text(object);
		if (strlen(kept) > kinds[i].max)
			fail_msg("kind %zu keeps %zu bytes", i, strlen(kept));
	}
}

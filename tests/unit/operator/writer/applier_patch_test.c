// SPDX-License-Identifier: Apache-2.0
/* The difference that the applier sends, for objects as the cache holds them. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "operator/cache/projection.h"
#include "operator/writer/applier_patch.h"
#include "tests/support/yaml.h"

TEST(says_nothing_about_equal_objects)
{
	json_auto_t *present = yaml("{metadata: {name: a, resourceVersion: '7', labels: {x: '1'}}, "
				    "spec: {config: c}, status: {n: 1}}");
	json_auto_t *wanted = yaml("{metadata: {name: a, labels: {x: '1'}}, spec: {config: c}}");

	assert_null(applier_patch(present, wanted));
}

TEST(sends_the_difference_on_condition_of_the_version)
{
	json_auto_t *present = yaml("{metadata: {name: a, resourceVersion: '7'}, "
				    "spec: {config: old, same: 1, gone: true}}");
	json_auto_t *wanted = yaml("{metadata: {name: a}, spec: {config: new, same: 1}}");
	json_auto_t *patch = applier_patch(present, wanted);
	json_auto_t *expected =
		yaml("{metadata: {resourceVersion: '7'}, spec: {config: new, gone: null}}");

	assert_true(json_same(patch, expected));
}

TEST(removes_only_the_annotations_that_were_ours)
{
	json_auto_t *present = yaml(
		"{metadata: {resourceVersion: '7', annotations: {ours: a, theirs: b, kept: c}, "
		"orbweaver: {annotations: [ours, kept, removed-by-hand]}}}");
	json_auto_t *wanted = yaml("{metadata: {annotations: {kept: c, new: d}}}");
	json_auto_t *patch = applier_patch(present, wanted);
	json_auto_t *expected =
		yaml("{metadata: {resourceVersion: '7', annotations: {ours: null, new: d}}}");

	assert_true(json_same(patch, expected));
}

TEST(replaces_owners_only_when_they_are_given)
{
	json_auto_t *present = yaml("{metadata: {resourceVersion: '7', ownerReferences: [{uid: "
				    "u1}], finalizers: [f]}}");
	json_auto_t *silent = yaml("{metadata: {name: a}}");
	json_auto_t *other = yaml("{metadata: {ownerReferences: [{uid: u2}]}}");
	json_auto_t *patch = applier_patch(present, other);
	json_auto_t *expected =
		yaml("{metadata: {resourceVersion: '7', ownerReferences: [{uid: u2}]}}");

	assert_null(applier_patch(present, silent));
	assert_true(json_same(patch, expected));
}

TEST(copes_with_a_stored_spec_that_is_no_object)
{
	json_auto_t *present = yaml("{metadata: {resourceVersion: '7'}, spec: text}");
	json_auto_t *wanted = yaml("{metadata: {}, spec: {config: c}}");
	json_auto_t *patch = applier_patch(present, wanted);
	json_auto_t *expected = yaml("{metadata: {resourceVersion: '7'}, spec: {config: c}}");

	assert_true(json_same(patch, expected));
}

TEST(leaves_type_and_a_status_that_nobody_wants_to_others)
{
	json_auto_t *present = yaml("{metadata: {resourceVersion: '7'}, spec: {}, status: {n: 1}}");
	json_auto_t *wanted = yaml("{apiVersion: v1, kind: K, metadata: {}, spec: {}}");

	assert_null(applier_patch(present, wanted));
}

TEST(writes_status_of_a_kind_that_has_no_subresource_for_it)
{
	json_auto_t *present = yaml("{metadata: {resourceVersion: '7'}, status: {n: 1, o: 1}}");
	json_auto_t *wanted = yaml("{metadata: {}, status: {n: 2}}");
	json_auto_t *patch = applier_patch(present, wanted);
	json_auto_t *expected = yaml("{metadata: {resourceVersion: '7'}, status: {n: 2, o: null}}");

	assert_true(json_same(patch, expected));
}

TEST(keeps_of_a_node_what_reconcilers_read)
{
	json_auto_t *node = yaml(
		"{kind: Node, metadata: {name: w1, uid: u, labels: {a: b}, annotations: {x: y}}, "
		"spec: {podCIDR: c, taints: [{key: t}]}, "
		"status: {images: [1], conditions: [{type: Ready, status: 'True', "
		"lastHeartbeatTime: z}, "
		"{type: DiskPressure, status: 'False'}]}}");
	json_auto_t *expected = yaml("{metadata: {name: w1, uid: u, labels: {a: b}}, "
				     "spec: {taints: [{key: t}]}, "
				     "status: {conditions: [{type: Ready, status: 'True'}]}}");

	project_node(node);
	assert_true(json_same(node, expected));
}

TEST(remembers_which_keys_the_server_recorded_as_ours)
{
	json_auto_t *object =
		yaml("{metadata: {name: a, annotations: {x: y}, managedFields: ["
		     "{manager: orbweaver-operator, fieldsV1: {'f:metadata': {'f:annotations': "
		     "{'.': {}, 'f:x': {}}}}}, "
		     "{manager: kubectl, fieldsV1: {'f:metadata': {'f:labels': {'f:l': {}}}}}]}}");
	json_auto_t *expected =
		yaml("{metadata: {name: a, annotations: {x: y}, orbweaver: {annotations: [x]}}}");

	project_written(object);
	assert_true(json_same(object, expected));
}

TEST(remembers_who_else_wrote_to_the_spec_of_what_we_write)
{
	static const struct {
		const char *fields, *writer;
	} cases[] = {
		{"{manager: orbweaver-operator, time: T3, fieldsV1: {'f:spec': {'f:interfaces': "
		 "{}}}}",
		 NULL},
		{"{manager: orbweaver-agent, time: T3, fieldsV1: {'f:status': {}}}", NULL},
		{"{manager: kubectl-edit, time: T3, fieldsV1: {'f:spec': {'f:bridges': {}}}}",
		 NULL},
		{"{manager: kubectl-edit, time: T3, fieldsV1: {'f:spec': {'f:config': {}}}}",
		 "{manager: kubectl-edit, time: T3}"},
		{"{manager: old, time: T1, fieldsV1: {'f:spec': {'f:system': {}}}}, "
		 "{manager: kubectl-edit, time: T2, fieldsV1: {'f:spec': {'f:interfaces': {}}}}",
		 "{manager: kubectl-edit, time: T2}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text =
			str_printf("{metadata: {managedFields: [%s]}}", cases[i].fields);
		json_auto_t *object = yaml(text);
		json_auto_t *expected = cases[i].writer ? yaml(cases[i].writer) : NULL;

		project_written(object);
		assert_true(json_same(json_at(object, "metadata", "orbweaver", "specWriter"),
				      expected));
	}
}

TEST(survives_managed_fields_of_any_shape)
{
	static const char *const shapes[] = {
		"{metadata: {managedFields: 1}}",
		"{metadata: {managedFields: [1, null, {manager: orbweaver-operator}]}}",
		"{metadata: {managedFields: [{manager: orbweaver-operator, fieldsV1: "
		"{'f:metadata': []}}]}}",
		"{metadata: []}",
		"{}",
	};

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		json_auto_t *object = yaml(shapes[i]);

		project_written(object);
		assert_null(json_at(object, "metadata", "managedFields"));
	}
}

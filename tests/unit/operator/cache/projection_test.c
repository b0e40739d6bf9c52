/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of objects that users write, however large they are. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/projection.h"
#include "reconcilers/admission/inject_check.h"

static char *text_of(size_t len)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < len; i++)
		strbuf_add(&text, "x", 1);
	return strbuf_take(&text);
}

static void no_kind_keeps_what_is_too_large(void **state)
{
	static void (*const projections[])(json_t * object) = {
		project_object, project_written,  project_namespace,
		project_config, project_endpoint, project_definition,
		project_node,   project_workload, inject_check_project,
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

/* The API server bounds annotations of an object, and nothing else of its metadata. */
static void no_kind_of_users_keeps_metadata_that_is_too_large(void **state)
{
	static void (*const projections[])(json_t * object) = {
		project_object,   project_written,    project_namespace, project_config,
		project_endpoint, project_definition, project_workload,
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

static void configurations_of_users_are_kept_up_to_their_bound(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_kind_keeps_what_is_too_large),
		cmocka_unit_test(no_kind_of_users_keeps_metadata_that_is_too_large),
		cmocka_unit_test(configurations_of_users_are_kept_up_to_their_bound),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

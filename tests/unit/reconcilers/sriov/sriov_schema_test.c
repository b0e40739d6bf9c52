// SPDX-License-Identifier: Apache-2.0
/*
 * The schemas of the SR-IOV kinds know what `kubectl get` shows and what plans write: an API server
 * drops fields that it does not know, and a column without its field stays empty, without a word.
 * Which columns all kinds have.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/core/kinds.h"

#define FILE_MAX (1u << 20)

static json_t *load_version(const char *kind)
{
	const struct kind_info *info = kind_find(kind);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_auto_t *crd = NULL;

	if (fs_read(AT_FDCWD, info->crd_file, FILE_MAX, &text, &err) < 0 ||
	    !(crd = yaml_parse(text.data, text.len, &err)))
		fail_msg("%s", err.text);
	return json_incref(json_array_get(json_at(crd, "spec", "versions"), 0));
}

/*
 * The schema of the field that a JSONPath of ours names: ".a.b",
 * ".a.conditions[?(@.type=="Ready")].status". Of an array, its items'. NULL when there is none.
 */
static const json_t *find_field(const json_t *schema, const char *path)
{
	while (schema && *path == '.') {
		size_t len = strcspn(++path, ".[");
		auto_free char *name = str_ndup(path, len);

		schema = json_at(schema, "properties", name);
		path += len;
		if (*path != '[')
			continue;
		schema = json_at(schema, "items");
		path = strchr(path, ']');
		if (!path++)
			return NULL;
	}
	return *path ? NULL : schema;
}

TEST(a_path_leads_to_its_field)
{
	json_auto_t *version = load_version(KIND_NODE_STATE);
	const json_t *schema = json_at(version, "schema", "openAPIV3Schema");

	assert_string_equal(json_str_at(find_field(schema, ".status.presentVfs"), "type"),
			    "integer");
	assert_string_equal(
		json_str_at(find_field(schema, ".status.conditions[?(@.type==\"Ready\")].status"),
			    "type"),
		"string");
	assert_null(find_field(schema, ".status.presentVFs"));
	assert_null(find_field(schema, ".status.conditions[?(@.type==\"Ready\")].state"));
	assert_null(find_field(schema, ".status.presentVfs.more"));
	assert_null(find_field(schema, "status"));
}

static bool is_known(const json_t *version, const json_t *column)
{
	const char *path = json_str_at(column, "jsonPath");
	const json_t *field;

	if (str_starts(path, ".metadata."))
		return true;
	field = find_field(json_at(version, "schema", "openAPIV3Schema"), path);
	/* A number or a percentage has no one type, and is shown as text. */
	return field && (str_eq(json_str_at(field, "type"), json_str_at(column, "type")) ||
			 json_is_true(json_at(field, "x-kubernetes-int-or-string")));
}

TEST(every_column_shows_a_field_that_exists)
{
	static const char *const kinds[] = {
		KIND_POLICY,        KIND_NODE_STATE,       KIND_POOL_CONFIG,
		KIND_SRIOV_NETWORK, KIND_SRIOV_IB_NETWORK, KIND_OVS_NETWORK,
	};

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		json_auto_t *version = load_version(kinds[k]);
		const json_t *columns = json_at(version, "additionalPrinterColumns"), *column;
		bool has_age = false;
		size_t i;

		json_array_foreach ((json_t *)columns, i, column) {
			has_age = has_age || str_eq(json_str_at(column, "name"), "Age");
			if (!is_known(version, column))
				fail_msg("%s: column %s: no field %s of type %s", kinds[k],
					 json_str_at(column, "name"),
					 json_str_at(column, "jsonPath"),
					 json_str_at(column, "type"));
		}
		assert_true(has_age);
	}
}

TEST(the_state_of_a_node_is_seen_at_a_glance)
{
	static const char *const shown[] = {"Sync",     "VFs",    "VFs-Wanted", "Rails",
					    "RDMA",     "Reboot", "Ready",      "Reason",
					    "Degraded", "Agent",  "Age"};
	json_auto_t *version = load_version(KIND_NODE_STATE);
	const json_t *columns = json_at(version, "additionalPrinterColumns"), *column;
	size_t i, found = 0;

	json_array_foreach ((json_t *)columns, i, column) {
		if (json_at(column, "priority"))
			continue;
		assert_true(found < ARRAY_LEN(shown));
		assert_string_equal(json_str_at(column, "name"), shown[found++]);
	}
	assert_int_equal(found, ARRAY_LEN(shown));
}

static void expect_column(const json_t *version, const char *kind, const char *name,
			  const char *path)
{
	const json_t *column =
		json_find(json_at(version, "additionalPrinterColumns"), "name", name);

	if (!str_eq(json_str_at(column, "jsonPath"), path) || json_at(column, "priority"))
		fail_msg("%s: kubectl get shows no %s", kind, name);
}

/* Whatever can be Ready and Degraded at once, so that one look at the list is enough. */
TEST(every_kind_shows_whether_it_is_ready_and_what_is_wrong)
{
	static const char ready[] = ".status.conditions[?(@.type==\"Ready\")].status";
	static const char degraded[] = ".status.conditions[?(@.type==\"Degraded\")].reason";
	size_t found = 0;

	for (const struct kind_info *info = kind_all(); info->id; info++) {
		json_auto_t *version = info->crd_file ? load_version(info->id) : NULL;
		const json_t *schema = json_at(version, "schema", "openAPIV3Schema");

		if (!find_field(schema, ".status.conditions"))
			continue;
		found++;
		expect_column(version, info->id, "Ready", ready);
		expect_column(version, info->id, "Degraded", degraded);
	}
	assert_true(found >= 10);
}

/* ---- what plans write ------------------------------------------------------------------------ */

/*
 * Fails with the path of the first field that the schema does not know. Returns how many it knows.
 */
static size_t check_known(const json_t *schema, const json_t *value, const char *path)
{
	const json_t *items = json_at(schema, "items"), *element;
	size_t known = 1, i;
	const char *key;
	json_t *field;

	if (!schema)
		fail_msg("%s: the schema does not know it", path);
	/* Settings of NICs: of several forms, which nic_settings.h checks. */
	if (json_is_true(json_at(schema, "x-kubernetes-preserve-unknown-fields")))
		return known;
	json_each (value, key, field) {
		const json_t *sub = json_at(schema, "properties", key);
		auto_free char *below = str_printf("%s.%s", path, key);

		known += check_known(sub ? sub : json_at(schema, "additionalProperties"), field,
				     below);
	}
	json_array_foreach ((json_t *)value, i, element)
		known += check_known(items, element, path);
	return known;
}

static json_t *load_plan(const char *kind, const char *name)
{
	auto_free char *path = str_printf("tests/golden/%s/%s/want.json", kind, name);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_t *plan;

	if (fs_read(AT_FDCWD, path, FILE_MAX, &text, &err) < 0 ||
	    !(plan = json_parse(text.data, text.len, &err)))
		fail_msg("%s: %s", path, err.text);
	return plan;
}

/* Of all golden plans of a kind, what they write into the schema's spec and status. */
static size_t check_plans(const char *kind)
{
	json_auto_t *version = load_version(kind);
	const json_t *fields = json_at(version, "schema", "openAPIV3Schema", "properties");
	auto_free char *dir_name = str_printf("tests/golden/%s", kind);
	DIR *dir = opendir(dir_name);
	const struct dirent *entry;
	size_t known = 0, i;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		json_auto_t *plan = *entry->d_name == '.' ? NULL : load_plan(kind, entry->d_name);
		const json_t *op;

		json_array_foreach (plan, i, op) {
			const json_t *spec = json_at(op, "object", "spec");
			const json_t *status = json_at(op, "status");

			if (!str_eq(json_str_at(op, "kind"), kind))
				continue;
			if (spec)
				known += check_known(json_at(fields, "spec"), spec, entry->d_name);
			if (status)
				known += check_known(json_at(fields, "status"), status,
						     entry->d_name);
		}
	}
	closedir(dir);
	return known;
}

TEST(what_plans_write_is_not_dropped)
{
	static const char *const kinds[] = {
		KIND_POLICY,
		KIND_NODE_STATE,
		KIND_POOL_CONFIG,
		KIND_SRIOV_NETWORK,
	};

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		if (check_plans(kinds[k]) < 10)
			fail_msg("%s: its golden plans write next to nothing", kinds[k]);
}

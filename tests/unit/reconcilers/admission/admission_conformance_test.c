// SPDX-License-Identifier: Apache-2.0
/*
 * Recorded verdicts and stored objects (conformance/spider.json, policies.json), replayed through
 * admission: defaulted, given the schema's defaults from crds/, validated, one after the other in a
 * world that keeps what was accepted.
 */
#include "tests/support/test.h"

#include <fcntl.h>

#include "lib/base/fs.h"
#include "lib/json/yaml.h"
#include "reconcilers/admission/admission.h"
#include "reconcilers/core/kinds.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/unit/reconcilers/recordings.h"

#define CRD_SIZE_MAX (4 << 20)

/* Is the id in the list of differences? */
static bool differs(const char *id)
{
	json_auto_t *differences = recordings_differences("spider-differences.txt");

	return json_object_get(differences, id) != NULL;
}

/* ---- the schema's defaults, as an API server fills them in ----------------------------------- */

static void fill_defaults(json_t *value, const json_t *schema)
{
	const char *name;
	json_t *property, *item;
	size_t i;

	if (json_is_object(value))
		json_each (json_at(schema, "properties"), name, property) {
			const json_t *otherwise = json_at(property, "default");

			if (otherwise && !json_object_get(value, name))
				json_object_set_new(value, name, json_deep_copy(otherwise));
			fill_defaults(json_object_get(value, name), property);
		}
	json_array_foreach (value, i, item)
		fill_defaults(item, json_at(schema, "items"));
}

static json_t *schemas; /* { kind id: schema } */

static const json_t *schema_of(const char *kind)
{
	json_t *known = json_object_get(schemas, kind);
	auto_strbuf struct strbuf text = {0};
	json_auto_t *crd = NULL;
	const json_t *version = NULL;
	struct err err = {0};

	if (known)
		return known;
	if (fs_read(AT_FDCWD, kind_find(kind)->crd_file, CRD_SIZE_MAX, &text, &err) == 0)
		crd = yaml_parse(strbuf_str(&text), text.len, &err);
	if (!crd)
		fail_msg("%s: %s", kind, err.text);
	version = json_array_get(json_at(crd, "spec", "versions"), 0);
	json_object_set(schemas, kind, json_at(version, "schema", "openAPIV3Schema"));
	assert_non_null(json_object_get(schemas, kind));
	return json_object_get(schemas, kind);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static const char *kind_of(const json_t *object)
{
	const struct kind_info *kind = kind_all();

	while (!str_eq(kind->kind, json_str_at(object, "kind")))
		kind++;
	return kind->id;
}

/* The object as it would be stored; NULL: refused. Returns new. */
static json_t *create(const json_t *world, const json_t *object)
{
	const char *kind = kind_of(object);
	json_auto_t *stored = json_deep_copy(object);
	json_auto_t *first = NULL, *second = NULL, *defaulted = NULL, *patch = NULL,
		    *verdict = NULL;
	auto_admission_request struct admission_request a = {0}, b = {0};
	struct err err = {0};

	fill_defaults(stored, schema_of(kind));
	first = review_new(kind, "CREATE", stored, NULL);
	assert_int_equal(admission_read(first, &a, &err), 0);
	defaulted = admission_default(&a);
	patch = json_patch_of(defaulted);
	assert_true(json_patch_apply(stored, patch));
	fill_defaults(stored, schema_of(kind));

	second = review_new(kind, "CREATE", stored, NULL);
	assert_int_equal(admission_read(second, &b, &err), 0);
	verdict = admission_validate(world, &b);
	return json_is_true(json_at(verdict, "response", "allowed")) ? json_incref(stored) : NULL;
}

/* An empty list is stored or not, which means the same. */
static bool same_spec(const json_t *a, const json_t *b)
{
	json_auto_t *x = json_deep_copy(a), *y = json_deep_copy(b);

	if (json_array_size(json_at(x, "ips")) == 0 && json_array_size(json_at(y, "ips")) == 0) {
		json_object_del(x, "ips");
		json_object_del(y, "ips");
	}
	return json_same(x, y);
}

static int compare(const json_t *recorded, const json_t *stored)
{
	const char *id = json_str_at(recorded, "id");
	bool was_accepted = json_is_true(json_at(recorded, "accepted"));
	auto_free char *got = NULL, *want = NULL;

	if ((stored != NULL) != (differs(id) ? !was_accepted : was_accepted)) {
		print_error("%s: %s\n", id, stored ? "accepted" : "refused");
		return 1;
	}
	if (!stored || !was_accepted)
		return 0;
	if (same_spec(json_at(stored, "spec"), json_at(recorded, "stored_spec")) &&
	    json_same(json_at(stored, "metadata", "labels"), json_at(recorded, "labels")))
		return 0;
	got = json_text(stored);
	want = json_text(json_at(recorded, "stored_spec"));
	print_error("%s:\n   got %s\n  want %s\n", id, got, want);
	return 1;
}

TEST(stores_what_was_recorded)
{
	json_auto_t *cases = recordings_need("spider.json");
	json_auto_t *world = json_object();
	json_t *recorded;
	int failed = 0;
	size_t i;

	json_array_foreach (cases, i, recorded) {
		const json_t *object = json_at(recorded, "object");
		json_auto_t *stored = create(world, object);
		auto_free char *key = json_key(object);

		failed += compare(recorded, stored);
		if (!stored)
			continue;
		json_put_str(json_need_object(stored, "metadata"), "creationTimestamp",
			     "2026-07-08T10:00:00Z");
		json_object_set(json_need_object(world, kind_of(object)), key, stored);
	}
	print_message("%zu objects\n", json_array_size(cases));
	assert_int_equal(failed, 0);
}

TEST(policies_are_judged_as_recorded)
{
	json_auto_t *cases = recordings_need("policies.json");
	json_t *recorded, *verdict;
	size_t i, j, judged = 0;
	int failed = 0;

	json_array_foreach (cases, i, recorded)
		json_array_foreach (json_at(recorded, "admission"), j, verdict) {
			const json_t *policy = json_array_get(json_at(recorded, "policies"), j);
			json_auto_t *stored = create(NULL, policy);

			judged++;
			assert_string_equal(json_name(policy), json_str_at(verdict, "name"));
			if ((stored != NULL) == json_is_true(json_at(verdict, "accepted")))
				continue;
			print_error("%s: %s\n", json_str_at(recorded, "id"), json_name(policy));
			failed++;
		}
	print_message("%zu policies\n", judged);
	assert_true(judged > 0);
	assert_int_equal(failed, 0);
}

static int set_up(void **state)
{
	schemas = json_object();
	return 0;
}

static int tear_down(void **state)
{
	json_decref(schemas);
	return 0;
}

TEST_GROUP(set_up, tear_down)

// SPDX-License-Identifier: Apache-2.0
/*
 * Server-side apply: a sequence of writes as a real API server answered it, and what that server
 * does not show.
 */
#include "tests/unit/cli/simulate/objects.h"

#include <stdio.h>

#include "cli/simulate/objects/apply.h"
#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/patch.h"

#define RECORDED "tests/unit/cli/simulate/apply_recorded.json"
#define SECOND   1000000

static json_t *read_recorded(void)
{
	json_t *value = json_load_file(RECORDED, 0, NULL);

	assert_non_null(value);
	return value;
}

static struct apply_write write_of(const struct schema *schema, const char *manager)
{
	return (struct apply_write){
		.schema = schema, .manager = manager, .api_version = "example.com/v1"};
}

static struct schema *schema_of(const char *text)
{
	json_auto_t *openapi = parse(text);
	struct err err = {0};
	struct schema *schema = schema_new(openapi, &err);

	assert_string_equal(err.text, "");
	return schema;
}

/*
 * The object as far as the recording goes: managers by name, since their order depends on the
 * second. Returns new.
 */
static json_t *comparable(const json_t *object)
{
	json_t *copy = json_deep_copy(object);
	json_t *metadata = json_at(copy, "metadata"), *entry = NULL;
	json_t *managers = json_object();
	size_t i = 0;

	json_object_del(copy, "apiVersion");
	json_object_del(copy, "kind");
	json_object_del(metadata, "name");
	json_array_foreach (json_at(metadata, "managedFields"), i, entry) {
		auto_free char *key = str_printf("%s %s", json_str_at(entry, "operation"),
						 json_str_at(entry, "manager"));

		json_object_del(entry, "time");
		/* Servers from 1.21 on have it. */
		json_object_del(entry, "subresource");
		json_object_set(managers, key, entry);
	}
	json_object_set_new(metadata, "managedFields", managers);
	return copy;
}

static void check_refusal(const json_t *step, const json_t *causes)
{
	json_auto_t *status = failure_apply_conflict(causes);
	const json_t *want = json_at(step, "refused");

	/* Servers from 1.21 on name the subresource as well. */
	if (json_at(step, "subresource")) {
		assert_string_equal(
			json_str_at(json_array_get(causes, 0), "field"),
			json_str_at(json_array_get(json_at(want, "details", "causes"), 0),
				    "field"));
		assert_string_equal(json_str_at(json_array_get(causes, 0), "message"),
				    "conflict with \"dora\" with subresource \"status\"");
		return;
	}
	assert_same(json_at(status, "message"), json_at(want, "message"));
	assert_same(json_at(status, "details"), json_at(want, "details"));
	assert_same(json_at(status, "code"), json_at(want, "code"));
}

/* One write as an API server makes it. Returns new; NULL when it was refused. */
static json_t *carry_out(const struct schema *schema, const json_t *live, const json_t *step,
			 int64_t now_us)
{
	const char *verb = json_str_at(step, "verb");
	struct apply_write write = {
		.schema = schema,
		.manager = json_str_at(step, "manager"),
		.api_version = "example.com/v1",
		.subresource = json_str_at(step, "subresource"),
		.now_us = now_us,
		.force = json_is_true(json_at(step, "force")),
	};
	json_auto_t *causes = NULL;
	json_t *object = NULL;
	struct err err = {0};

	if (str_eq(verb, "apply")) {
		if (apply_object(&write, live, json_at(step, "body"), &object, &causes, &err)) {
			assert_string_equal(err.reason, "Conflict");
			check_refusal(step, causes);
			return NULL;
		}
		schema_default(schema, object);
		return object;
	}
	if (str_eq(verb, "create"))
		object = json_deep_copy(json_at(step, "body"));
	else
		assert_int_equal(patch_object(PATCH_MERGE, schema, live, json_at(step, "body"),
					      &object, &err),
				 0);
	schema_default(schema, object);
	assert_int_equal(apply_track_update(&write, live, object, &err), 0);
	return object;
}

TEST(writes_have_the_results_that_a_real_server_gave)
{
	json_auto_t *recorded = read_recorded();
	auto_schema struct schema *schema = schema_new(json_at(recorded, "schema"), NULL);
	json_auto_t *live = NULL;
	const json_t *step = NULL;
	size_t i = 0;

	json_array_foreach (json_at(recorded, "steps"), i, step) {
		bool creates = str_eq(json_str_at(step, "verb"), "create");
		json_t *object = NULL;
		json_auto_t *is = NULL, *want = NULL;

		print_message("%s\n", json_str_at(step, "step"));
		object = carry_out(schema, creates ? NULL : live, step, (int64_t)(i + 1) * SECOND);
		assert_int_equal(object == NULL, json_at(step, "refused") != NULL);
		if (!object)
			continue;
		is = comparable(object);
		want = comparable(json_at(step, "object"));
		assert_same(is, want);
		if (live && json_at(step, "same"))
			assert_same(object, live);
		json_decref(live);
		live = object;
	}
	assert_int_equal(i, 22);
}

static const char small_schema[] =
	"{'type':'object','properties':{'spec':{'type':'object','properties':{"
	"'a':{'type':'string'},'free':{'type':'object','additionalProperties':{'type':'string'}},"
	"'list':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['k'],"
	"'items':{'type':'object','properties':{'k':{'type':'string'},'v':{'type':'string'},"
	"'deep':{'type':'object','properties':{'x':{'type':'integer'}}}}}},"
	"'def':{'type':'string','default':'d'}}},'status':{'type':'object',"
	"'x-kubernetes-preserve-unknown-fields':true}}}";

/* Apply to live, which is replaced. */
static void apply_to(json_t **live, const struct apply_write *write, const char *config)
{
	json_auto_t *applied = parse(config);
	json_t *result = NULL, *causes = NULL;
	struct err err = {0};

	assert_int_equal(apply_object(write, *live, applied, &result, &causes, &err), 0);
	assert_null(causes);
	json_decref(*live);
	*live = result;
}

TEST(a_map_that_lost_its_last_member_goes_too)
{
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write write = write_of(schema, "m");
	json_auto_t *live = NULL;

	apply_to(&live, &write, "{'kind':'K','spec':{'a':'1','free':{'x':'1'}}}");
	apply_to(&live, &write, "{'kind':'K','spec':{'a':'1'}}");
	assert_json(json_at(live, "spec"), "{'a':'1'}");
	apply_to(&live, &write, "{'kind':'K','spec':{}}");
	assert_null(json_at(live, "spec", "a"));
}

TEST(what_another_owns_below_keeps_its_parents)
{
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write m = write_of(schema, "m"), n = write_of(schema, "n");
	json_auto_t *live = NULL;

	apply_to(&live, &m, "{'spec':{'free':{'x':'1'},'list':[{'k':'a','v':'1'}]}}");
	apply_to(&live, &n, "{'spec':{'free':{'y':'2'},'list':[{'k':'a','deep':{'x':1}}]}}");
	apply_to(&live, &m, "{'spec':{}}");
	assert_json(json_at(live, "spec"), "{'free':{'y':'2'},'list':[{'k':'a','deep':{'x':1}}]}");
}

/* Servers before 1.21 forget who applied an empty map. */
TEST(an_empty_map_is_owned_and_takes_nothing_away)
{
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write m = write_of(schema, "m"), n = write_of(schema, "n");
	json_auto_t *live = NULL;

	apply_to(&live, &m, "{'spec':{'free':{'x':'1'}}}");
	apply_to(&live, &n, "{'spec':{'free':{}}}");
	assert_json(json_at(live, "spec"), "{'free':{'x':'1'}}");
	apply_to(&live, &m, "{'spec':{}}");
	assert_json(json_at(live, "spec"), "{'free':{}}");
}

TEST(items_take_the_order_of_the_configuration)
{
	static const struct {
		const char *live, *applied, *want;
	} cases[] = {
		{"ab", "ba", "ba"},    {"abc", "ca", "bca"}, {"abc", "d", "abcd"},
		{"abc", "db", "adbc"}, {"a", "ba", "ba"},    {"abc", "cb", "acb"},
	};
	auto_schema struct schema *schema = schema_of(small_schema);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct apply_write m = write_of(schema, "m"), n = write_of(schema, "n");
		const char *texts[] = {cases[i].live, cases[i].applied};
		json_auto_t *live = NULL;
		struct strbuf got = {0};
		const json_t *item = NULL;
		size_t at = 0;

		for (size_t side = 0; side < 2; side++) {
			auto_strbuf struct strbuf config = {0};

			for (const char *c = texts[side]; *c; c++)
				strbuf_addf(&config, "%s{'k':'%c'}", config.len ? "," : "", *c);
			auto_free char *text =
				str_printf("{'spec':{'list':[%s]}}", strbuf_str(&config));
			apply_to(&live, side ? &n : &m, text);
		}
		json_array_foreach (json_at(live, "spec", "list"), at, item)
			strbuf_adds(&got, json_str_at(item, "k"));
		assert_string_equal(strbuf_str(&got), cases[i].want);
		strbuf_done(&got);
	}
}

TEST(an_apply_that_changes_nothing_gives_the_same_object)
{
	static const char config[] =
		"{'metadata':{'name':'x','resourceVersion':'9'},'spec':{'a':'1'}}";
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write write = write_of(schema, "m");
	json_auto_t *live = NULL, *before = NULL;

	apply_to(&live, &write, config);
	schema_default(schema, live);
	json_put_str(json_at(live, "metadata"), "resourceVersion", "17");
	before = json_deep_copy(live);
	write.now_us = 5 * SECOND;
	apply_to(&live, &write, config);
	assert_same(live, before);
}

TEST(what_the_server_sets_stays_as_it_is)
{
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write write = write_of(schema, "m");
	json_auto_t *live = parse("{'metadata':{'name':'x','uid':'u','generation':3}}");

	apply_to(&live, &write,
		 "{'metadata':{'name':'x','uid':'other','generation':9,'resourceVersion':'1'}}");
	assert_string_equal(json_str_at(live, "metadata", "uid"), "u");
	assert_int_equal(json_generation(live), 3);
	assert_null(json_at(live, "metadata", "resourceVersion"));
}

TEST(a_status_write_touches_nothing_else)
{
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write write = write_of(schema, "m"), status = write_of(schema, "m");
	json_auto_t *live = NULL;

	apply_to(&live, &write, "{'metadata':{'labels':{'l':'1'}},'spec':{'a':'1'}}");
	status.subresource = "status";
	apply_to(&live, &status,
		 "{'metadata':{'labels':{'z':'1'}},'spec':{'a':'2'},'status':{'s':1}}");
	assert_json(json_at(live, "spec"), "{'a':'1'}");
	assert_json(json_at(live, "metadata", "labels"), "{'l':'1'}");
	assert_json(json_at(live, "status"), "{'s':1}");
	assert_int_equal(json_array_size(json_at(live, "metadata", "managedFields")), 2);
	assert_string_equal(
		json_str_at(json_array_get(json_at(live, "metadata", "managedFields"), 1),
			    "subresource"),
		"status");
}

TEST(configurations_that_cannot_be_merged_are_refused)
{
	static const struct {
		const char *config, *text;
	} cases[] = {
		{"[]", "the configuration must be an object"},
		{"{'metadata':{'managedFields':[{'manager':'m'}]}}",
		 "metadata.managedFields must be nil"},
		{"{'spec':{'list':[{'k':'a'},{'k':'a'}]}}",
		 ".spec.list: duplicate entries for key {\"k\":\"a\"}"},
		{"{'spec':{'list':[{'v':'a'}]}}",
		 ".spec.list[0]: an item of a list with keys must have them"},
		{"{'spec':{'list':{}}}", ".spec.list: expected list, got an object"},
		{"{'spec':[]}", ".spec: expected map, got an array"},
	};
	auto_schema struct schema *schema = schema_of(small_schema);
	struct apply_write write = write_of(schema, "m");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *applied = parse(cases[i].config);
		json_t *result = NULL, *causes = NULL;
		struct err err = {0};

		assert_int_equal(apply_object(&write, NULL, applied, &result, &causes, &err), -1);
		assert_null(result);
		assert_string_equal(err.reason, "BadRequest");
		assert_string_equal(err.text, cases[i].text);
	}
}

TEST(ports_without_a_protocol_are_those_with_tcp)
{
	auto_schema struct schema *schema = schema_builtin("", "Service");
	struct apply_write write = write_of(schema, "m");
	json_auto_t *live = parse("{'spec':{'ports':[{'port':80,'protocol':'TCP','name':'a'},"
				  "{'port':80,'protocol':'UDP','name':'b'}]}}");

	apply_to(&live, &write, "{'spec':{'ports':[{'port':80,'targetPort':8080}]}}");
	assert_json(json_at(live, "spec", "ports"),
		    "[{'port':80,'protocol':'TCP','name':'a','targetPort':8080},"
		    "{'port':80,'protocol':'UDP','name':'b'}]");
}

/* As recorded from kube-apiserver 1.20.2. */
TEST(built_in_kinds_have_the_sets_of_a_real_server)
{
	static const struct {
		const char *group, *kind, *applied, *want;
	} cases[] = {
		{"", "ConfigMap",
		 "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c1',"
		 "'finalizers':['a.b/c']},'data':{'k':'v'}}",
		 "{\"f:data\":{\"f:k\":{}},"
		 "\"f:metadata\":{\"f:finalizers\":{\"v:\\\"a.b/c\\\"\":{}}}}"},
		{"apps", "Deployment",
		 "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d1'},'spec':{"
		 "'replicas':1,'strategy':{'rollingUpdate':{'maxSurge':1}},'selector':{'"
		 "matchLabels':"
		 "{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{"
		 "'name':'c','image':'i','ports':[{'containerPort':80}],'env':[{'name':'E','value':"
		 "'1'"
		 "}],'args':['x'],'resources':{'limits':{'cpu':'1'}},'securityContext':{"
		 "'privileged':true}}]}}}}",
		 "{\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\"f:strategy\":{\"f:"
		 "rollingUpdate\":"
		 "{\"f:maxSurge\":{}}},\"f:template\":{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},"
		 "\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:"
		 "args\":{},"
		 "\"f:env\":{\"k:{\\\"name\\\":\\\"E\\\"}\":{\".\":{},\"f:name\":{},\"f:value\":{}}"
		 "},"
		 "\"f:image\":{},\"f:name\":{},\"f:ports\":{\"k:{\\\"containerPort\\\":80,"
		 "\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:containerPort\":{}}},\"f:"
		 "resources\":{"
		 "\"f:limits\":{\"f:cpu\":{}}},\"f:securityContext\":{\"f:privileged\":{}}}}}}}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_schema struct schema *schema = schema_builtin(cases[i].group, cases[i].kind);
		struct apply_write write = write_of(schema, "a");
		json_auto_t *live = NULL;
		json_auto_t *want = json_loads(cases[i].want, 0, NULL);

		apply_to(&live, &write, cases[i].applied);
		assert_same(json_at(json_array_get(json_at(live, "metadata", "managedFields"), 0),
				    "fieldsV1"),
			    want);
	}
}

TEST(old_updates_are_kept_as_one)
{
	json_auto_t *live = parse("{'data':{}}");
	struct apply_write write = write_of(NULL, "");
	const json_t *list = NULL;

	for (int i = 0; i < 14; i++) {
		auto_free char *name = str_printf("manager-%02d", i);
		json_t *object = json_deep_copy(live);
		struct err err = {0};

		write.manager = name;
		write.now_us = i * SECOND;
		json_put_int(json_at(object, "data"), name, i);
		assert_int_equal(apply_track_update(&write, i ? live : NULL, object, &err), 0);
		json_decref(live);
		live = object;
	}
	list = json_at(live, "metadata", "managedFields");
	assert_int_equal(json_array_size(list), 10);
	assert_string_equal(json_str_at(json_array_get(list, 0), "manager"), "ancient-changes");
	assert_string_equal(json_str_at(json_array_get(list, 9), "manager"), "manager-13");
	assert_non_null(json_at(json_array_get(list, 0), "fieldsV1", "f:data", "f:manager-00"));
}

TEST(managers_are_named_by_the_request_or_the_program)
{
	static const struct {
		const char *field_manager, *user_agent, *want;
	} cases[] = {
		{"me", "kubectl/v1.20", "me"}, {"", "kubectl/v1.20 (linux)", "kubectl"},
		{NULL, NULL, "unknown"},       {NULL, "/x", "unknown"},
		{"a/b", NULL, "a/b"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *name =
			apply_manager_name(cases[i].field_manager, cases[i].user_agent);

		assert_string_equal(name, cases[i].want);
	}
}

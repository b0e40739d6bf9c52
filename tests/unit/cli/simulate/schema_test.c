// SPDX-License-Identifier: Apache-2.0
/*
 * Schemas: what kube-apiserver 1.20.2 answered to the same objects, save for wording that changed
 * since (too long, too many, positions of items).
 */
#include "tests/unit/cli/simulate/objects.h"

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/schema.h"

static const char widget[] =
	"{'type':'object','properties':{'spec':{'type':'object','required':['need'],'properties':{"
	"'need':{'type':'string'},"
	"'vlan':{'type':'integer','format':'int32','minimum':0,'maximum':4094},"
	"'ratio':{'type':'number','maximum':0.5,'exclusiveMaximum':true},"
	"'five':{'type':'integer','multipleOf':5},'big':{'type':'integer','format':'int32'},"
	"'mode':{'type':'string','enum':['a','b']},'num':{'type':'integer','enum':[1,2]},"
	"'short':{'type':'string','maxLength':3},'long':{'type':'string','minLength':3},"
	"'pat':{'type':'string','pattern':'^[a-z]+$'},'sw':{'type':'boolean'},"
	"'when':{'type':'string','format':'date-time'},"
	"'ips':{'type':'array','minItems':1,'maxItems':2,'items':{'type':'string'}},"
	"'set':{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}},"
	"'map':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['name']"
	","
	"'items':{'type':'object','required':['name'],'properties':{'name':{'type':'string'},"
	"'v':{'type':'integer'},'w':{'type':'integer','default':7}}}},"
	"'free':{'type':'object','additionalProperties':{'type':'integer'},'maxProperties':2,"
	"'minProperties':1},"
	"'any':{'type':'object','x-kubernetes-preserve-unknown-fields':true},"
	"'ios':{'x-kubernetes-int-or-string':true},'nul':{'type':'string','nullable':true},"
	"'def':{'type':'string','default':'x'},"
	"'sub':{'type':'object','default':{},'properties':{'a':{'type':'integer','default':1},"
	"'b':{'type':'string'}}},"
	"'alt':{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
	"'oneOf':[{'required':['a']},{'required':['b']}]},"
	"'anyo':{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
	"'anyOf':[{'required':['a']},{'required':['b']}]},"
	"'pod':{'type':'object','x-kubernetes-embedded-resource':true,"
	"'x-kubernetes-preserve-unknown-fields':true}"
	"}}}}";

static struct schema *schema_of(const char *text, struct err *err)
{
	json_auto_t *openapi = parse(text);

	return schema_new(openapi, err);
}

/* A widget with these members of spec. Returns new. */
static json_t *widget_with(const char *members)
{
	auto_free char *text =
		str_printf("{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w'},"
			   "'spec':{'need':'n'%s%s}}",
			   *members ? "," : "", members);

	return parse(text);
}

TEST(faults_are_worded_like_the_servers)
{
	static const struct {
		const char *spec, *text;
	} cases[] = {
		{"'vlan':5000", "spec.vlan: Invalid value: 5000: spec.vlan in body should be less "
				"than or equal to 4094"},
		{"'vlan':-1", "spec.vlan: Invalid value: -1: spec.vlan in body should be greater "
			      "than or equal to 0"},
		{"'vlan':'x'", "spec.vlan: Invalid value: \"string\": spec.vlan in body must be of "
			       "type integer: \"string\""},
		{"'vlan':1.5", "spec.vlan: Invalid value: \"number\": spec.vlan in body must be of "
			       "type integer: \"number\""},
		{"'vlan':2.0", NULL},
		{"'big':3000000000",
		 "spec.big: Invalid value: 3000000000: spec.big in body must be "
		 "of type int32"},
		{"'ratio':0.5", "spec.ratio: Invalid value: 0.5: spec.ratio in body should be less "
				"than 0.5"},
		{"'ratio':0", NULL},
		{"'five':7", "spec.five: Invalid value: 7: spec.five in body should be a multiple "
			     "of 5"},
		{"'mode':'c'", "spec.mode: Unsupported value: \"c\": supported values: \"a\", "
			       "\"b\""},
		{"'num':3", "spec.num: Unsupported value: 3: supported values: \"1\", \"2\""},
		{"'short':'abcd'", "spec.short: Too long: may not be more than 3 bytes"},
		{"'short':'äöü'", NULL},
		{"'long':'a'", "spec.long: Invalid value: \"a\": spec.long in body should be at "
			       "least 3 chars long"},
		{"'pat':'A1'", "spec.pat: Invalid value: \"A1\": spec.pat in body should match "
			       "'^[a-z]+$'"},
		{"'sw':'yes'", "spec.sw: Invalid value: \"string\": spec.sw in body must be of "
			       "type boolean: \"string\""},
		{"'when':'nope'", "spec.when: Invalid value: \"nope\": spec.when in body must be "
				  "of type date-time: \"nope\""},
		{"'when':'2026-01-02T03:04:05Z'", NULL},
		{"'ips':[]", "spec.ips: Invalid value: 0: spec.ips in body should have at least 1 "
			     "items"},
		{"'ips':['a','b','c']", "spec.ips: Too many: 3: must have at most 2 items"},
		{"'ips':'a'", "spec.ips: Invalid value: \"string\": spec.ips in body must be of "
			      "type array: \"string\""},
		{"'ips':['a',1]", "spec.ips[1]: Invalid value: \"integer\": spec.ips[1] in body "
				  "must be of type string: \"integer\""},
		{"'set':['a','b','a']", "spec.set[2]: Duplicate value: \"a\""},
		{"'map':[{'name':'a'},{'name':'a'}]",
		 "spec.map[1]: Duplicate value: {\"name\":\"a\"}"},
		{"'map':[{'v':1}]", "spec.map[0].name: Required value"},
		{"'free':{}", "spec.free: Invalid value: 1: spec.free in body should have at least "
			      "1 properties"},
		{"'free':{'a':'x'}", "spec.free.a: Invalid value: \"string\": spec.free.a in body "
				     "must be of type integer: \"string\""},
		{"'free':{'a':1,'b':2,'c':3}", "spec.free: Too many: 3: must have at most 2 items"},
		{"'ios':true", "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of "
			       "type integer,string: \"boolean\""},
		{"'ios':'a'", NULL},
		{"'ios':1", NULL},
		{"'nul':null", NULL},
		{"'mode':null", "spec.mode: Invalid value: \"null\": spec.mode in body must be of "
				"type string: \"null\""},
		{"'alt':{'a':'1'}", NULL},
		{"'alt':{'a':'1','b':'2'}",
		 "<nil>: Invalid value: \"\": \"spec.alt\" must validate one and only one schema "
		 "(oneOf). Found 2 valid alternatives"},
		{"'anyo':{'b':'1'}", NULL},
		{"'any':[1]", "spec.any: Invalid value: \"array\": spec.any in body must be of "
			      "type object: \"array\""},
		{"'pod':{'metadata':{'labels':{'a':1}}}",
		 "spec.pod.metadata.labels.a: Invalid value: \"integer\": "
		 "spec.pod.metadata.labels.a in body must be of type string: \"integer\""},
	};
	auto_schema struct schema *schema = schema_of(widget, NULL);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *object = widget_with(cases[i].spec);
		json_auto_t *causes = json_array();
		auto_free char *text = NULL;

		schema_validate(schema, object, causes);
		if (json_array_size(causes) > 0)
			text = str_printf("%s: %s", json_str_at(json_array_get(causes, 0), "field"),
					  json_str_at(json_array_get(causes, 0), "message"));
		assert_int_equal(json_array_size(causes), cases[i].text ? 1 : 0);
		assert_string_equal(text ? text : "", cases[i].text ? cases[i].text : "");
	}
}

TEST(a_status_names_the_object_and_all_causes)
{
	auto_schema struct schema *schema = schema_of(widget, NULL);
	json_auto_t *object = widget_with("'alt':{},'mode':'c'");
	json_auto_t *causes = json_array();
	json_auto_t *status = NULL;

	schema_validate(schema, object, causes);
	status = failure_invalid("example.com", "Widget", "w", causes);
	assert_json(
		status,
		"{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','code':422,"
		"'reason':'Invalid','message':'Widget.example.com \\\"w\\\" is invalid: [<nil>: "
		"Invalid value: \\\"\\\": \\\"spec.alt\\\" must validate one and only one schema "
		"(oneOf). "
		"Found none valid, spec.alt.a: Required value, spec.mode: Unsupported value: "
		"\\\"c\\\": "
		"supported values: \\\"a\\\", "
		"\\\"b\\\"]','details':{'name':'w','group':'example.com',"
		"'kind':'Widget','causes':[{'reason':'FieldValueInvalid','message':'Invalid value: "
		"\\\"\\\": \\\"spec.alt\\\" must validate one and only one schema (oneOf). Found "
		"none "
		"valid','field':'<nil>'},{'reason':'FieldValueRequired','message':'Required value',"
		"'field':'spec.alt.a'},{'reason':'FieldValueNotSupported','message':'Unsupported "
		"value: \\\"c\\\": supported values: \\\"a\\\", "
		"\\\"b\\\"','field':'spec.mode'}]}}");
}

TEST(missing_members_come_first)
{
	auto_schema struct schema *schema = schema_of(widget, NULL);
	json_auto_t *object = parse("{'spec':{'vlan':'x'}}");
	json_auto_t *causes = json_array();

	schema_validate(schema, object, causes);
	assert_string_equal(json_str_at(json_array_get(causes, 0), "field"), "spec.need");
	assert_int_equal(json_array_size(causes), 2);
}

/* Recorded, but for the last two. */
TEST(defaults_and_pruning_give_the_stored_object)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{"", "{'need':'n','def':'x','sub':{'a':1}}"},
		{"'nul':null", "{'need':'n','def':'x','sub':{'a':1},'nul':null}"},
		{"'mode':null", "{'need':'n','def':'x','sub':{'a':1}}"},
		{"'def':null", "{'need':'n','def':'x','sub':{'a':1}}"},
		{"'unk':1,'any':{'z':{'y':1}},'sub':{'c':1}",
		 "{'need':'n','def':'x','sub':{'a':1},'any':{'z':{'y':1}}}"},
		{"'map':[{'name':'a','zz':1}]",
		 "{'need':'n','def':'x','sub':{'a':1},'map':[{'name':'a','w':7}]}"},
		{"'pod':{'kind':'Pod','metadata':{'name':'p','zz':1},'spec':{'y':1}}",
		 "{'need':'n','def':'x','sub':{'a':1},'pod':{'kind':'Pod','metadata':{'name':'p'},"
		 "'spec':{'y':1}}}"},
	};
	auto_schema struct schema *schema = schema_of(widget, NULL);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *object = widget_with(cases[i].spec);
		json_auto_t *once = NULL;

		schema_prune(schema, object, NULL);
		schema_default(schema, object);
		assert_json(json_at(object, "spec"), cases[i].want);
		once = json_deep_copy(object);
		schema_prune(schema, object, NULL);
		schema_default(schema, object);
		assert_same(object, once);
	}
}

TEST(pruning_names_what_it_removes)
{
	auto_schema struct schema *schema = schema_of(widget, NULL);
	json_auto_t *object = widget_with("'unk':1,'map':[{'name':'a'},{'name':'b','zz':1}]");
	json_auto_t *unknown = json_array();

	json_put_int(object, "extra", 1);
	json_put_int(json_at(object, "metadata"), "odd", 1);
	schema_prune(schema, object, unknown);
	assert_json(unknown, "['metadata.odd','spec.unk','spec.map[1].zz','extra']");
}

TEST(schemas_with_faults_are_refused)
{
	static const struct {
		const char *schema, *text;
	} cases[] = {
		{"[]", "openAPIV3Schema: must be an object"},
		{"{'properties':{'a':{'type':'strin'}}}",
		 "openAPIV3Schema.a.type: must be one of object, array, string, integer, number, "
		 "boolean"},
		{"{'properties':{'a':{'pattern':'(a'}}}",
		 "openAPIV3Schema.a: pattern \"(a\": a ( without )"},
		{"{'properties':{'a':{'pattern':'a{2000}'}}}",
		 "openAPIV3Schema.a: pattern \"a{2000}\": repeats too much"},
		{"{'properties':{'a':{'pattern':'(a{999}){999}'}}}",
		 "openAPIV3Schema.a: pattern \"(a{999}){999}\": repeats too much, or is too long"},
		{"{'properties':{'a':{'$ref':'x'}}}",
		 "openAPIV3Schema.a.$ref: references are forbidden"},
		{"{'properties':{'a':{'x-kubernetes-list-type':'map'}}}",
		 "openAPIV3Schema.a.x-kubernetes-list-map-keys: must name the keys of a list of "
		 "type map"},
		{"{'properties':{'a':{'maxItems':'3'}}}",
		 "openAPIV3Schema.a.maxItems: must be an integer"},
		{"{'items':3}", "openAPIV3Schema.items: must be an object"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(schema_of(cases[i].schema, &err));
		assert_string_equal(err.text, cases[i].text);
		assert_string_equal(err.reason, "Invalid");
	}
}

TEST(patterns_mean_what_they_mean_in_go)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"^\\\\d+$", "123", true},
		{"^\\\\d+$", "12a", false},
		{"^[\\\\w.-]+$", "a_b.c-d", true},
		{"^[\\\\w.-]+$", "a b", false},
		{"^(?:a|b)*?$", "abab", true},
		{"^(?:a|b)*?$", "abc", false},
		{"^[^\\\\]x]+$", "abc", true},
		{"^[^\\\\]x]+$", "a]", false},
		{"^a\\\\.b$", "a.b", true},
		{"^a\\\\.b$", "aXb", false},
		{"^\\\\/x$", "/x", true},
		{"^[^^]+$", "ab", true},
		{"^[\\\\^]$", "^", true},
		{"^\\\\S+$", "a b", false},
		{"b", "abc", true},
		{"^a{2,3}$", "aaaa", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf(
			"{'properties':{'a':{'type':'string','pattern':'%s'}}}", cases[i].pattern);
		struct err err = {0};
		auto_schema struct schema *schema = schema_of(text, &err);
		json_auto_t *object = json_object();
		json_auto_t *causes = json_array();

		assert_string_equal(err.text, "");
		json_put_str(object, "a", cases[i].text);
		schema_validate(schema, object, causes);
		assert_int_equal(json_array_size(causes) == 0, cases[i].matches);
	}
}

TEST(metadata_is_checked_for_every_kind)
{
	static const struct {
		const char *metadata;
		bool namespaced;
		const char *field, *start;
	} cases[] = {
		{"{'name':'a.b-c'}", false, NULL, NULL},
		{"{'generateName':'a-'}", false, NULL, NULL},
		{"{}", false, "metadata.name", "Required value: name or generateName is required"},
		{"{'name':'Bad_Name'}", false, "metadata.name",
		 "Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of"},
		{"{'name':'a'}", true, "metadata.namespace", "Required value"},
		{"{'name':'a','namespace':'b'}", false, "metadata.namespace",
		 "Forbidden: not allowed on this type"},
		{"{'name':'a','labels':{'a b':'c'}}", false, "metadata.labels",
		 "Invalid value: \"a b\": name part must consist of"},
		{"{'name':'a','labels':{'a':'c d'}}", false, "metadata.labels",
		 "Invalid value: \"c d\": a valid label must be an empty string"},
		{"{'name':'a','annotations':{'Example.com/A':'c d'}}", false, NULL, NULL},
		{"{'name':'a','finalizers':['a b']}", false, "metadata.finalizers",
		 "Invalid value: \"a b\""},
		{"{'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'K','name':'n'}]}",
		 false, "metadata.ownerReferences[0].uid",
		 "Invalid value: \"\": must not be empty"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *object = json_object();
		json_auto_t *causes = json_array();

		json_put(object, "metadata", parse(cases[i].metadata));
		metadata_validate(object, cases[i].namespaced, causes);
		assert_int_equal(json_array_size(causes), cases[i].field ? 1 : 0);
		if (!cases[i].field)
			continue;
		assert_string_equal(json_str_at(json_array_get(causes, 0), "field"),
				    cases[i].field);
		assert_true(str_starts(json_str_at(json_array_get(causes, 0), "message"),
				       cases[i].start));
	}
}

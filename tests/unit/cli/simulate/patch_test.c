// SPDX-License-Identifier: Apache-2.0
/* Patches: RFC 6902 by its examples, strategic merges as kube-apiserver 1.20.2 did them. */
#include "tests/unit/cli/simulate/objects.h"

#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/patch.h"

struct patch_case {
	const char *object, *patch;
	const char *want;   /* NULL: refused */
	const char *reason; /* of the refusal */
};

static void check(enum patch_type type, const struct schema *schema, const struct patch_case *c)
{
	json_auto_t *object = parse(c->object), *patch = parse(c->patch);
	json_auto_t *object_before = json_deep_copy(object), *patch_before = json_deep_copy(patch);
	json_auto_t *result = NULL;
	struct err err = {0};

	print_message("%s\n", c->patch);
	assert_int_equal(patch_object(type, schema, object, patch, &result, &err),
			 c->want ? 0 : -1);
	if (c->want)
		assert_json(result, c->want);
	else
		assert_string_equal(err.reason, c->reason);
	assert_same(object, object_before);
	assert_same(patch, patch_before);
}

TEST(json_patches_do_what_the_rfc_says)
{
	static const struct patch_case cases[] = {
		{"{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux'}]",
		 "{'baz':'qux','foo':'bar'}", NULL},
		{"{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
		 "{'foo':['bar','qux','baz']}", NULL},
		{"{'baz':'qux','foo':'bar'}", "[{'op':'remove','path':'/baz'}]", "{'foo':'bar'}",
		 NULL},
		{"{'foo':['bar','qux','baz']}", "[{'op':'remove','path':'/foo/1'}]",
		 "{'foo':['bar','baz']}", NULL},
		{"{'baz':'qux'}", "[{'op':'replace','path':'/baz','value':'boo'}]", "{'baz':'boo'}",
		 NULL},
		{"{'foo':{'bar':'baz','waldo':'fred'},'qux':{'corge':'grault'}}",
		 "[{'op':'move','from':'/foo/waldo','path':'/qux/thud'}]",
		 "{'foo':{'bar':'baz'},'qux':{'corge':'grault','thud':'fred'}}", NULL},
		{"{'foo':['all','grass','cows','eat']}",
		 "[{'op':'move','from':'/foo/1','path':'/foo/3'}]",
		 "{'foo':['all','cows','eat','grass']}", NULL},
		{"{'baz':'qux','foo':['a',2,'c']}",
		 "[{'op':'test','path':'/baz','value':'qux'},"
		 "{'op':'test','path':'/foo/1','value':2}]",
		 "{'baz':'qux','foo':['a',2,'c']}", NULL},
		{"{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'bar'}]", NULL, "Invalid"},
		{"{'foo':'bar'}", "[{'op':'add','path':'/child','value':{'grandchild':{}}}]",
		 "{'foo':'bar','child':{'grandchild':{}}}", NULL},
		{"{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'qux'}]", NULL,
		 "Invalid"},
		{"{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':10}]", "{'/':9,'~1':10}",
		 NULL},
		{"{'/':9}", "[{'op':'replace','path':'/~1','value':10}]", "{'/':10}", NULL},
		{"{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['abc']}]",
		 "{'foo':['bar',['abc']]}", NULL},
		{"{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/c'}]",
		 "{'a':{'b':1},'c':{'b':1}}", NULL},
		{"{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/c'}]", NULL, "Invalid"},
		{"{'a':null}", "[{'op':'add','path':'/b','value':null}]", "{'a':null,'b':null}",
		 NULL},
		{"{'a':1}", "[{'op':'replace','path':'/b','value':1}]", NULL, "Invalid"},
		{"{'a':1}", "[{'op':'remove','path':'/b'}]", NULL, "Invalid"},
		{"{'a':[1]}", "[{'op':'add','path':'/a/01','value':1}]", NULL, "Invalid"},
		{"{'a':[1]}", "[{'op':'add','path':'/a/2','value':1}]", NULL, "Invalid"},
		{"{'a':1}", "[{'op':'remove','path':''}]", NULL, "Invalid"},
		{"{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]", "{'b':2}", NULL},
		{"{'a':1}", "[{'op':'replace','path':'','value':2}]", NULL, "Invalid"},
		{"{'a':1}", "[{'op':'spoil','path':'/a'}]", NULL, "BadRequest"},
		{"{'a':1}", "[{'op':'add','path':'a','value':1}]", NULL, "BadRequest"},
		{"{'a':1}", "[{'op':'add','path':'/a'}]", NULL, "BadRequest"},
		{"{'a':1}", "[{'op':'copy','path':'/a'}]", NULL, "BadRequest"},
		{"{'a':1}", "{'a':1}", NULL, "BadRequest"},
		{"{'a':1}", "[]", "{'a':1}", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(PATCH_JSON, NULL, &cases[i]);
}

TEST(merge_patches_must_be_objects)
{
	static const struct patch_case cases[] = {
		{"{'a':{'b':1,'c':2}}", "{'a':{'b':null,'d':3}}", "{'a':{'c':2,'d':3}}", NULL},
		{"{'a':1}", "[]", NULL, "BadRequest"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(PATCH_MERGE, NULL, &cases[i]);
}

#define POD(containers) "{'spec':{'containers':[" containers "]}}"

TEST(strategic_patches_merge_lists_by_their_keys)
{
	static const struct patch_case cases[] = {
		{POD("{'name':'c','image':'i'}"),
		 "{'spec':{'containers':[{'name':'d','image':'j'},{'name':'c','env':[{'name':'F',"
		 "'value':'2'}]}],'$setElementOrder/containers':[{'name':'d'},{'name':'c'}]}}",
		 POD("{'name':'d','image':'j'},{'name':'c','image':'i','env':[{'name':'F',"
		     "'value':'2'}]}"),
		 NULL},
		{POD("{'name':'c','env':[{'name':'E'}],'ports':[{'containerPort':80}]},{'name':'d'"
		     "}"),
		 "{'spec':{'containers':[{'name':'d','$patch':'delete'},{'name':'c','env':[{'name':"
		 "'E','$patch':'delete'}],'ports':[{'$patch':'replace'},{'containerPort':90}]}]}}",
		 POD("{'name':'c','env':[],'ports':[{'containerPort':90}]}"), NULL},
		{POD("{'name':'c','args':['a']}"),
		 "{'spec':{'containers':[{'name':'c','args':['b']}]}}",
		 POD("{'name':'c','args':['b']}"), NULL},
		{"{'metadata':{'finalizers':['x.y/z','q.r/s']}}",
		 "{'metadata':{'$deleteFromPrimitiveList/finalizers':['x.y/z'],"
		 "'$setElementOrder/finalizers':['n.m/o','q.r/s'],'finalizers':['n.m/o']}}",
		 "{'metadata':{'finalizers':['n.m/o','q.r/s']}}", NULL},
		{"{'metadata':{'labels':{'a':'1','b':'2'}}}",
		 "{'metadata':{'labels':{'$patch':'replace','c':'3'}}}",
		 "{'metadata':{'labels':{'c':'3'}}}", NULL},
		{"{'metadata':{'labels':{'a':'1','b':'2'}}}", "{'metadata':{'labels':{'a':null}}}",
		 "{'metadata':{'labels':{'b':'2'}}}", NULL},
		{"{'spec':{'x':{'type':'R','rollingUpdate':{'m':1}}}}",
		 "{'spec':{'x':{'$retainKeys':['type'],'type':'Recreate'}}}",
		 "{'spec':{'x':{'type':'Recreate'}}}", NULL},
		{POD("{'name':'a'},{'name':'s'},{'name':'b'}"),
		 "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}",
		 POD("{'name':'s'},{'name':'b'},{'name':'a'}"), NULL},
		{"{'spec':{}}", "{'spec':{'containers':[{'image':'j'}]}}", NULL, "BadRequest"},
		{"{'spec':{}}", "{'spec':{'containers':[{'name':'c','$patch':'bogus'}]}}", NULL,
		 "BadRequest"},
		{"{'spec':{}}", "{'spec':{'$retainKeys':1}}", NULL, "BadRequest"},
		{"{'spec':{}}", "[]", NULL, "BadRequest"},
	};
	auto_schema struct schema *schema = schema_builtin("", "Pod");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(PATCH_STRATEGIC, schema, &cases[i]);
}

TEST(copies_of_copies_meet_a_bound)
{
	json_auto_t *object = parse("{'a':{'x':1}}");
	json_auto_t *patch = json_array();
	json_t *result = NULL;
	struct err err = {0};

	/* Each one doubles the object, and nests it deeper. */
	for (int i = 0; i < 100; i++)
		json_array_append_new(patch, parse("{'op':'copy','from':'/a','path':'/a/b'}"));
	assert_int_equal(patch_object(PATCH_JSON, NULL, object, patch, &result, &err), -1);
	assert_string_equal(err.reason, "RequestEntityTooLarge");
	assert_null(result);
}

TEST(a_patch_has_a_bound_of_operations)
{
	json_auto_t *object = json_object();
	json_auto_t *patch = json_array();
	json_t *result = NULL;
	struct err err = {0};

	for (int i = 0; i <= PATCH_MAX_OPERATIONS; i++)
		json_array_append_new(patch, json_object());
	assert_int_equal(patch_object(PATCH_JSON, NULL, object, patch, &result, &err), -1);
	assert_string_equal(err.reason, "RequestEntityTooLarge");
}

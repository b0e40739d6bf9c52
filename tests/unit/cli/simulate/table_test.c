// SPDX-License-Identifier: Apache-2.0
/* Tables: columns and cells as kube-apiserver 1.20.2 answered. */
#include "tests/unit/cli/simulate/objects.h"

#include "cli/simulate/objects/table.h"
#include "lib/base/rfc3339.h"

static int64_t time_of(const char *text)
{
	int64_t at_us = 0;

	assert_true(rfc3339_read(text, &at_us));
	return at_us;
}

static const char widget_columns[] =
	"[{'name':'Vlan','type':'integer','jsonPath':'.spec.vlan'},"
	"{'name':'Ready','type':'string','jsonPath':'.status.conditions[?(@.type==\\\"Ready\\\")]"
	".status'},{'name':'Ips','type':'string','jsonPath':'.spec.ips'},"
	"{'name':'On','type':'boolean','jsonPath':'.spec.sw'},"
	"{'name':'First','type':'string','jsonPath':'.spec.ips[0]'},"
	"{'name':'Wrong','type':'integer','jsonPath':'.spec.mode'},"
	"{'name':'Asstr','type':'string','jsonPath':'.spec.vlan'},"
	"{'name':'Sub','type':'string','jsonPath':'.spec.sub','priority':1},"
	"{'name':'When','type':'date','jsonPath':'.spec.when'},"
	"{'name':'Age','type':'date','jsonPath':'.metadata.creationTimestamp'}]";

TEST(custom_columns_have_the_cells_of_a_real_server)
{
	json_auto_t *columns = parse(widget_columns);
	const struct table_kind kind = {"example.com", "Widget", columns, true};
	json_auto_t *items = parse(
		"[{'metadata':{'name':'tbl','creationTimestamp':'2026-11-26T14:30:07Z'},'spec':{"
		"'ips':['a','b'],'mode':'a','vlan':3,'sw':true,'sub':{'a':2,'b':'c'}}}]");
	json_auto_t *metadata = parse("{'resourceVersion':'198'}");
	json_auto_t *table = table_new(&kind, items, metadata, TABLE_METADATA, true,
				       time_of("2026-11-26T14:30:07Z"));
	const json_t *row = json_array_get(json_at(table, "rows"), 0);
	const json_t *definitions = json_at(table, "columnDefinitions");
	json_auto_t *want = json_pack("[s,i,n,s,b,s,n,s,s,n,s]", "tbl", 3, "[\"a\",\"b\"]", 1, "a",
				      "3", "{\"a\":2,\"b\":\"c\"}", "0s");

	assert_same(json_object_get(row, "cells"), want);
	assert_json(json_at(table, "metadata"), "{'resourceVersion':'198'}");
	assert_json(json_at(row, "object"),
		    "{'kind':'PartialObjectMetadata','apiVersion':'meta.k8s.io/v1','metadata':{"
		    "'name':'tbl','creationTimestamp':'2026-11-26T14:30:07Z'}}");
	assert_int_equal(json_array_size(definitions), 11);
	assert_json(json_array_get(definitions, 1),
		    "{'name':'Vlan','type':'integer','format':'','priority':0,'description':"
		    "'Custom resource definition column (in JSONPath format): .spec.vlan'}");
	assert_int_equal(json_integer_value(json_at(json_array_get(definitions, 8), "priority")),
			 1);
}

TEST(custom_resources_without_columns_have_their_age)
{
	const struct table_kind kind = {"example.com", "Widget", NULL, true};
	json_auto_t *items = parse("[{'metadata':{'name':'a','creationTimestamp':"
				   "'2026-01-01T00:00:00Z'}},{'metadata':{'name':'b'}}]");
	json_auto_t *table =
		table_new(&kind, items, NULL, TABLE_NONE, false, time_of("2026-01-01T00:03:05Z"));

	assert_json(json_at(table, "rows"), "[{'cells':['a','3m5s']},{'cells':['b','<unknown>']}]");
	assert_json(json_at(table, "columnDefinitions"), "[]");
}

TEST(built_in_kinds_have_their_columns)
{
	static const struct {
		const char *group, *kind, *object, *names, *cells;
	} cases[] = {
		{"", "Node",
		 "{'metadata':{'name':'n','labels':{'node-role.kubernetes.io/b':'',"
		 "'node-role.kubernetes.io/a':''}},'spec':{'unschedulable':true},'status':{"
		 "'conditions':[{'type':'Ready','status':'True'}],'nodeInfo':{'kubeletVersion':"
		 "'v1'},'addresses':[{'type':'InternalIP','address':'1.2.3.4'}]}}",
		 "Name,Status,Roles,Age,Version,Internal-IP,External-IP,OS-Image,Kernel-Version,"
		 "Container-Runtime",
		 "['n','Ready,SchedulingDisabled','a,b','<unknown>','v1','1.2.3.4','<none>',"
		 "'<unknown>','<unknown>','<unknown>']"},
		{"", "Pod",
		 "{'metadata':{'name':'p'},'spec':{'nodeName':'n','containers':[{},{}]},'status':{"
		 "'phase':'Running','podIP':'1.2.3.4','containerStatuses':[{'ready':true,"
		 "'restartCount':2},{'ready':false,'restartCount':1,'state':{'waiting':{'reason':"
		 "'CrashLoopBackOff'}}}]}}",
		 "Name,Ready,Status,Restarts,Age,IP,Node,Nominated Node,Readiness Gates",
		 "['p','1/2','CrashLoopBackOff',3,'<unknown>','1.2.3.4','n','<none>','<none>']"},
		{"", "Namespace", "{'metadata':{'name':'default'},'status':{'phase':'Active'}}",
		 "Name,Status,Age", "['default','Active','<unknown>']"},
		{"", "Event",
		 "{'metadata':{'name':'e'},'type':'Warning','reason':'R','message':'m','count':3,"
		 "'involvedObject':{'kind':'Pod','name':'P'},'source':{'component':'c','host':'h'},"
		 "'firstTimestamp':'2026-01-01T00:00:00Z','lastTimestamp':'2026-01-01T00:01:00Z'}",
		 "Last Seen,Type,Reason,Object,Subobject,Source,Message,First Seen,Count,Name",
		 "['60s','Warning','R','pod/P','','c, h','m','2m',3,'e']"},
		{"", "ConfigMap", "{'metadata':{'name':'c1'},'data':{'k':'v'}}", "Name,Data,Age",
		 "['c1',1,'<unknown>']"},
		{"", "Service",
		 "{'metadata':{'name':'kubernetes'},'spec':{'clusterIP':'10.96.0.1','type':"
		 "'ClusterIP','ports':[{'port':443,'protocol':'TCP'}]}}",
		 "Name,Type,Cluster-IP,External-IP,Port(s),Age,Selector",
		 "['kubernetes','ClusterIP','10.96.0.1','<none>','443/TCP','<unknown>','<none>']"},
		{"apps", "Deployment",
		 "{'metadata':{'name':'d1'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':"
		 "'b'}},'template':{'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
		 "Name,Ready,Up-to-date,Available,Age,Containers,Images,Selector",
		 "['d1','0/1',0,0,'<unknown>','c','i','a=b']"},
		{"apps", "DaemonSet",
		 "{'metadata':{'name':'d'},'status':{'desiredNumberScheduled':2,'numberReady':1}}",
		 "Name,Desired,Current,Ready,Up-to-date,Available,Node Selector,Age,Containers,"
		 "Images,Selector",
		 "['d',2,0,1,0,0,'<none>','<unknown>','','','<none>']"},
		{"apps", "StatefulSet", "{'metadata':{'name':'s'},'spec':{'replicas':3}}",
		 "Name,Ready,Age,Containers,Images", "['s','0/3','<unknown>','','']"},
		{"coordination.k8s.io", "Lease",
		 "{'metadata':{'name':'l'},'spec':{'holderIdentity':'me'}}", "Name,Holder,Age",
		 "['l','me','<unknown>']"},
		{"apiextensions.k8s.io", "CustomResourceDefinition",
		 "{'metadata':{'name':'w','creationTimestamp':'2026-01-01T00:00:00Z'}}",
		 "Name,Created At", "['w','2026-01-01T00:00:00Z']"},
		{"rbac.authorization.k8s.io", "Role",
		 "{'metadata':{'name':'r','creationTimestamp':'2026-01-01T00:00:00Z'}}",
		 "Name,Created At", "['r','2026-01-01T00:00:00Z']"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct table_kind kind = {cases[i].group, cases[i].kind, NULL, false};
		json_auto_t *items = json_array();
		json_auto_t *table = NULL;
		auto_strbuf struct strbuf names = {0};
		const json_t *column = NULL;
		size_t n = 0;

		json_array_append_new(items, parse(cases[i].object));
		table = table_new(&kind, items, NULL, TABLE_WHOLE, true,
				  time_of("2026-01-01T00:02:00Z"));
		json_array_foreach (json_at(table, "columnDefinitions"), n, column)
			strbuf_addf(&names, "%s%s", n ? "," : "", json_str_at(column, "name"));
		assert_string_equal(strbuf_str(&names), cases[i].names);
		assert_json(json_at(json_array_get(json_at(table, "rows"), 0), "cells"),
			    cases[i].cells);
		assert_same(json_at(json_array_get(json_at(table, "rows"), 0), "object"),
			    json_array_get(items, 0));
	}
}

TEST(ages_are_written_as_kubectl_writes_them)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {
		{-5, "<invalid>"},  {-1, "0s"},       {0, "0s"},           {119, "119s"},
		{120, "2m"},        {123, "2m3s"},    {599, "9m59s"},      {600, "10m"},
		{10799, "179m"},    {10800, "3h"},    {18600, "5h10m"},    {28800, "8h"},
		{172799, "47h"},    {172800, "2d"},   {273600, "3d4h"},    {691200, "8d"},
		{63071999, "729d"}, {63072000, "2y"}, {64368000, "2y15d"}, {252288000, "8y"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[TABLE_AGE_SIZE];

		table_age(cases[i].seconds * 1000000, text);
		assert_string_equal(text, cases[i].text);
	}
}

TEST(paths_find_what_our_definitions_ask_for)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{".metadata.annotations.a\\\\.b/c", "1"},
		{".spec.matchLabels['x\\\\.y/z\\\\-w']", "2"},
		{".list[1].v", "b"},
		{".list[-1].v", "c"},
		{".list[9].v", NULL},
		{".list[*].w", "w"},
		{".list[?(@.v==\\\"c\\\")].w", "w"},
		{".list[?(@.v=='c')].w", "w"},
		{".list[?(@.v=='z')].w", NULL},
		{".spec.none.deeper", NULL},
	};
	json_auto_t *items =
		parse("[{'metadata':{'annotations':{'a.b/c':'1'}},'spec':{'matchLabels':{"
		      "'x.y/z-w':'2'}},'list':[{'v':'a'},{'v':'b'},{'v':'c','w':'w'}]}]");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *columns = json_array();
		struct table_kind kind = {"example.com", "Widget", columns, true};
		json_auto_t *table = NULL;
		json_t *column = json_object();
		auto_free char *quoted = str_printf("\"%s\"", cases[i].path);
		json_t *path = json_loads(quoted, JSON_DECODE_ANY, NULL);
		struct err err = {0};

		print_message("%s\n", cases[i].path);
		assert_non_null(path);
		json_put_str(column, "type", "string");
		json_put(column, "jsonPath", path);
		json_array_append_new(columns, column);
		assert_int_equal(table_path_check(json_string_value(path), &err), 0);
		table = table_new(&kind, items, NULL, TABLE_NONE, false, 0);
		{
			const json_t *cell = json_array_get(
				json_at(json_array_get(json_at(table, "rows"), 0), "cells"), 1);

			if (cases[i].want)
				assert_string_equal(json_string_value(cell), cases[i].want);
			else
				assert_true(json_is_null(cell));
		}
	}
}

TEST(paths_with_faults_are_refused)
{
	static const char *const paths[] = {
		"", "spec", ".a[", ".a[x]", ".a[?(@.b)]", ".a[?(@.b=='c']", ".a['b]", ".", ".a..b",
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = {0};

		assert_int_equal(table_path_check(paths[i], &err), -1);
		assert_string_equal(err.reason, "Invalid");
	}
}

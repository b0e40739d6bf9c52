// SPDX-License-Identifier: Apache-2.0
/*
 * What devices have counted, as text: one node in tests/golden-exposition, and the rules one by
 * one.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/devices/exposition.h"
#include "nodeagent/devices/exposition_read.h"
#include "nodeagent/devices/meter_pods.h"
#include "nodeagent/devices/metric_families.h"

#define FOLDER "tests/golden-exposition/"

static json_t *parse(const char *text)
{
	struct err err = {0};
	json_t *ret = json_parse(text, strlen(text), &err);

	if (!ret)
		fail_msg("%s", err.text);
	return ret;
}

static char *expose(const json_t *doc)
{
	struct strbuf out = {0};

	exposition_write(&(struct exposition_input){.node = json_str_at(doc, "node"),
						    .devices = json_at(doc, "devices"),
						    .rails = json_at(doc, "rails"),
						    .pods = json_at(doc, "pods"),
						    .owners = json_at(doc, "owners"),
						    .allocated = json_at(doc, "allocated")},
			 &out);
	return strbuf_take(&out);
}

/* Without the heads of metrics, of which there are many without series. */
static char *series_of(const char *text)
{
	struct strbuf out = {0};

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		if (*line != '#')
			strbuf_add(&out, line, strcspn(line, "\n") + 1);
	return strbuf_take(&out);
}

/* UPDATE=1 writes it. */
TEST(a_node_is_shown_as_dashboards_want_it)
{
	auto_strbuf struct strbuf in = {0}, want = {0};
	json_auto_t *doc = NULL;
	auto_free char *text = NULL, *again = NULL, *got = NULL;

	assert_int_equal(fs_read(AT_FDCWD, FOLDER "node.json", 1 << 16, &in, NULL), 0);
	doc = parse(in.data);
	text = expose(doc);
	again = expose(doc);
	assert_string_equal(text, again);
	got = series_of(text);
	if (getenv("UPDATE"))
		assert_int_equal(
			fs_write_atomic(AT_FDCWD, FOLDER "node.txt", got, strlen(got), 0644, NULL),
			0);
	assert_int_equal(fs_read(AT_FDCWD, FOLDER "node.txt", 1 << 16, &want, NULL), 0);
	assert_string_equal(got, want.data);
}

TEST(each_metric_is_told_before_it_has_series)
{
	auto_free char *text = expose(NULL);

	for (size_t i = 0; i < n_families; i++) {
		auto_free char *type =
			str_printf("# TYPE %s %s\n", families[i].name, families[i].type);
		const char *first = strstr(text, type);

		assert_non_null(first);
		assert_null(strstr(first + 1, type));
	}
	assert_true(text[strlen(text) - 1] == '\n');
}

TEST(names_of_drivers_become_names_of_metrics)
{
	static const struct {
		const char *counter, *want;
	} cases[] = {
		{"out_of_sequence", "rdma_out_of_sequence_total"},
		{"ip4InOctets", "rdma_ip4_in_octets_total"},
		{"tcpRtxSeg", "rdma_tcp_rtx_seg_total"},
		{"RX", "rdma_rx_total"},
		{"Recoverable Errors", "rdma_recoverable_errors_total"},
		{"7up", NULL},
		{"", NULL},
		{"a_name_that_is_as_long_as_no_driver_has_ever_had_one_and_then_some_more_of_it_"
		 "to_be_sure_of_that",
		 NULL},
	};
	char name[FAMILY_NAME_SIZE], priority;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_name = family_name_of_rdma(cases[i].counter, name);

		assert_int_equal(is_name, cases[i].want != NULL);
		if (is_name)
			assert_string_equal(name, cases[i].want);
	}
	assert_true(family_name_of_vf("rx_bytes", name));
	assert_string_equal(name, "sriov_vf_rx_bytes");
	assert_true(family_name_of_priority("tx_prio7_discards", name, &priority));
	assert_string_equal(name, "rdma_tx_discards_total");
	assert_true(priority == '7');
	assert_false(family_name_of_priority("tx_prio77_discards", name, &priority));
	assert_false(family_name_of_priority("tx_prio", name, &priority));
}

TEST(a_driver_with_a_thousand_names_has_some_of_them)
{
	json_auto_t *doc = parse(
		"{\"devices\": [{\"device\": {\"rdma\": \"x\"}, \"counted\": {\"rdma\": {}}}]}");
	json_t *counters = json_at(json_array_get(json_at(doc, "devices"), 0), "counted", "rdma");
	auto_free char *text = NULL;
	int n = 0;

	for (int i = 0; i < EXPOSITION_UNKNOWN_MAX + 10; i++) {
		auto_free char *name = str_printf("c%d", i);

		json_put_int(counters, name, i);
	}
	text = expose(doc);
	for (const char *at = text; (at = strstr(at, "# TYPE rdma_c")); at++)
		n++;
	assert_int_equal(n, EXPOSITION_UNKNOWN_MAX);
}

TEST(the_scope_says_which_vfs)
{
	static const struct {
		const char *text;
		int vfs; /* -1: all */
	} cases[] = {{"off", 0}, {"pf", 0}, {"pods", 1}, {"all", -1}};
	json_auto_t *pods = parse("{\"0000:3b:00.3\": \"ml/train-0\"}");
	enum exposition_scope scope;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *vfs = NULL;

		assert_true(exposition_scope_read(cases[i].text, &scope));
		vfs = exposition_vfs(scope, pods);
		assert_int_equal(vfs ? (int)json_array_size(vfs) : -1, cases[i].vfs);
	}
	assert_false(exposition_scope_read("some", &scope));
	assert_false(exposition_scope_read("", &scope));
}

TEST(a_device_is_excluded_by_any_of_its_names)
{
	static const struct {
		const char *patterns;
		bool is_excluded;
	} cases[] = {
		{"", false},      {"mlx5_1", false},         {"mlx5_0", true},
		{"mlx5_*", true}, {"x,ens1f0np0", true},     {"0000:3b:*", true},
		{"x,,y", false},  {"mlx5_0x,ens1f0", false}, {",mlx5_0", true},
	};
	json_auto_t *device = parse("{\"rdma\": \"mlx5_0\", \"netdev\": \"ens1f0np0\", "
				    "\"pciAddress\": \"0000:3b:00.0\"}");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(exposition_is_excluded(cases[i].patterns, device),
				 cases[i].is_excluded);
	assert_false(exposition_is_excluded(NULL, device));
	assert_false(exposition_is_excluded("*", NULL));
}

/* ---- pods ------------------------------------------------------------------------------------ */

TEST(the_kubelet_counts_more_than_what_is_attached)
{
	json_auto_t *allocated = parse("{\"a.io/x\": {\"0000:3b:00.2\": \"ns/one/main\", \"17\": "
				       "\"ns/two/main\", \"0000:3b:00.7\": \"bad\"}}");
	json_auto_t *attachments =
		parse("[{\"pod\": {\"namespace\": \"ns\", \"name\": \"old\"}, \"device\": "
		      "\"0000:3b:00.2\"},"
		      " {\"pod\": {\"namespace\": \"ns\", \"name\": \"cni\"}, \"device\": "
		      "\"0000:3b:00.4\"},"
		      " {\"pod\": {\"namespace\": \"ns\", \"name\": \"macvlan\"}}]");
	json_auto_t *pods = meter_pods(allocated, attachments);
	json_auto_t *want = parse("{\"0000:3b:00.2\": \"ns/one\", \"0000:3b:00.4\": \"ns/cni\"}");
	json_auto_t *none = meter_pods(NULL, NULL);

	assert_true(json_same(pods, want));
	assert_int_equal(json_object_size(none), 0);
}

TEST(sums_are_read_from_what_was_written)
{
#define VF "{ifname=\"m\",rdma_parent_name=\"ens1\",pod_namespace=\"ns\",pod_name=\"a\\\"b\"} "
#define PF "{ifname=\"m\",is_root=\"true\",rdma_parent_name=\"ens1\"} "
	static const char text[] =
		"# HELP rdma_tx_pause_total x\norbweaver_counters_timestamp_seconds 17e8\n"
		"orbweaver_counters_timestamp_seconds -1\nrdma_tx_pause_total" PF
		"3\nrdma_rx_pause_total{is_root=\"true\",rdma_parent_name=\"ens1\",priority=\"3\"} "
		"4\n"
		"rdma_port_data_received_bytes_total" PF
		"1e3\nrdma_port_data_received_bytes_total" VF "7\nrdma_symbol_error_total" VF
		"NaN\nrdma_packet_seq_err_total{rdma_parent_name=\"e\nrdma_packet_seq_err_total" VF
		"-1\nrdma_unicast_packets_received_total" PF
		"9\nrdma_symbol_error_total{rdma_parent_name=\"\xff\",is_root=\"true\"} 1";
	json_auto_t *sums = exposition_read(text, strlen(text));
	json_auto_t *want = parse("{\"seconds\": 1.7e9, \"ports\": {\"ens1\": {\"pause\": 7.0, "
				  "\"received\": 1000.0}}, \"pods\": "
				  "{\"ns/a\\\"b\": {\"ens1\": {\"received\": 7.0}}}}");

	assert_true(json_same(sums, want));
}

static void assert_users(const char *port, const char *want)
{
	json_auto_t *observed =
		parse("{\"interfaces\": [{\"pciAddress\": \"0000:3b:00.0\", \"name\": \"ens1\", "
		      "\"Vfs\": [{\"pciAddress\": \"0000:3b:00.2\"}, {\"pciAddress\": "
		      "\"0000:3b:00.4\"}]}, {\"pciAddress\": \"0000:3b:00.1\", \"name\": "
		      "\"ens1x\"}]}");
	json_auto_t *resources =
		parse("[{\"name\": \"a.io/s\", \"selected\": [\"0000:3b:00.0\"]}]");
	json_auto_t *allocated =
		parse("{\"a.io/x\": {\"0000:3b:00.2\": \"ns/vf/main\", \"0000:99:00.2\": "
		      "\"ns/no/main\"}, \"a.io/s\": {\"17\": \"ns/shared/main\"}, \"a.io/t\": "
		      "{\"17\": \"ns/no/main\"}}");
	json_auto_t *attachments = parse(
		"[{\"pod\": {\"namespace\": \"ns\", \"name\": \"vlan\"}, \"master\": "
		"\"ens1.7\"}, {\"pod\": {\"namespace\": \"ns\", \"name\": \"x\"}, \"master\": "
		"\"ens1x\"}, {\"pod\": {\"namespace\": \"ns\", \"name\": \"cni\"}, "
		"\"device\": \"0000:3b:00.4\"}]");
	json_auto_t *pods = meter_pods_on_port(
		&(struct meter_port){port, observed, resources, allocated, attachments});
	json_auto_t *wanted = parse(want);

	assert_true(json_same(pods, wanted));
}

TEST(pods_on_a_port_have_its_functions_tokens_or_interfaces)
{
	json_auto_t *none = meter_pods_on_port(&(struct meter_port){.address = "0000:3b:00.0"});

	assert_users("0000:3b:00.0", "{\"ns/vf\": true, \"ns/cni\": true, \"ns/shared\": true, "
				     "\"ns/vlan\": true}");
	assert_users("0000:3b:00.1", "{\"ns/x\": true}");
	assert_users("0000:99:00.0", "{}");
	assert_int_equal(json_object_size(none), 0);
}

TEST(the_owner_is_who_people_made)
{
	static const struct {
		const char *metadata, *want;
	} cases[] = {
		{"{}", NULL},
		{"{'ownerReferences': [{'kind': 'Job', 'name': 'j'}]}", NULL},
		{"{'ownerReferences': [{'kind': 'Job', 'name': 'j', 'controller': true}]}",
		 "Job j"},
		{"{'labels': {'pod-template-hash': '6d4cf'}, 'ownerReferences': [{'kind': "
		 "'ReplicaSet', 'name': 'web-6d4cf', 'controller': true}]}",
		 "Deployment web"},
		{"{'labels': {'pod-template-hash': '6d4cf'}, 'ownerReferences': [{'kind': "
		 "'ReplicaSet', 'name': '-6d4cf', 'controller': true}]}",
		 "ReplicaSet -6d4cf"},
		{"{'labels': {'pod-template-hash': 'other'}, 'ownerReferences': [{'kind': "
		 "'ReplicaSet', 'name': 'web-6d4cf', 'controller': true}]}",
		 "ReplicaSet web-6d4cf"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf("{'metadata': %s}", cases[i].metadata);
		json_auto_t *pod = NULL, *owner = NULL;
		auto_free char *got = NULL;

		for (char *c = text; *c; c++)
			if (*c == '\'')
				*c = '"';
		pod = parse(text);
		json_put_str(json_object_get(pod, "metadata"), "namespace", "ml");
		owner = meter_owner(pod);
		assert_int_equal(owner != NULL, cases[i].want != NULL);
		if (!owner)
			continue;
		got = str_printf("%s %s", json_str_at(owner, "kind"), json_str_at(owner, "name"));
		assert_string_equal(got, cases[i].want);
		assert_string_equal(json_str_at(owner, "namespace"), "ml");
	}
}

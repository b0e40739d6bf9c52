// SPDX-License-Identifier: Apache-2.0
/* RDMA devices, GIDs and variables of a pod, from what the agent and the pod's status say. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/explain/pod_rdma.h"
#include "lib/json/json.h"
#include "tests/support/yaml.h"

#define STATUS(text_) "annotations: {k8s.v1.cni.cncf.io/network-status: '" text_ "'}"
#define ELEMENT(network_, interface_, ip_)                                                         \
	"{\"name\": \"" network_ "\", \"interface\": \"" interface_ "\", \"ips\": [\"" ip_ "\"]}"
#define DEVICE(device_) "\"device-info\": {\"pci\": {\"rdma-device\": \"" device_ "\"}}"
#define GID(device_, index_, version_, address_)                                                   \
	"{device: " device_ ", port: 1, index: " index_ ", version: " version_                     \
	", address: '" address_ "'}"
#define ATTACHED(interface_, address_, more_)                                                      \
	"{pod: ml/w, interface: " interface_ ", addresses: ['" address_ "/16'], " more_ "}"

#define RESOURCES "resources: {limits: {spidernet.io/x: '1'}}"

/* What is said of pod ml/w on node w1. Returns new. */
static json_t *explain(const char *metadata, const char *attachments, const char *interfaces,
		       const char *container)
{
	auto_free char *pod_text =
		str_printf("{metadata: {name: w, namespace: ml, %s}, spec: {nodeName: w1, "
			   "containers: [{name: c, %s}]}}",
			   metadata, container);
	auto_free char *world_text = str_printf(
		"{env: {namespace: own}, sriovnetworknodestates: {own/w1: {status: {attachments: "
		"[%s], interfaces: [%s]}}}, network-attachment-definitions: {ml/a: {spec: {config: "
		"'{\"type\": \"macvlan\", \"master\": \"ens1\"}'}}, ml/b: {spec: {config: "
		"'{\"type\": \"macvlan\", \"master\": \"ens0\"}'}}}}",
		attachments, interfaces);
	json_auto_t *pod = yaml(pod_text), *world = yaml(world_text);
	json_t *chain = json_object();

	explain_pod_rdma(chain, world, pod);
	return chain;
}

static void is_json(const json_t *got, const char *want_text)
{
	json_auto_t *want = want_text ? yaml(want_text) : NULL;
	auto_free char *text = got ? json_text(got) : str_dup("nothing");

	if (!json_same(got, want))
		fail_msg("%s, not %s", text, want_text ? want_text : "nothing");
}

#define SOCKETS "NCCL_SOCKET_IFNAME: =eth0, GLOO_SOCKET_IFNAME: eth0"

/* The seeds' case: the index of a shared device is whatever slot was free. */
TEST(a_shared_device_has_its_current_index)
{
	json_auto_t *chain =
		explain(STATUS("[{\"name\": \"cluster\", \"interface\": \"eth0\", \"default\": "
			       "true}, " ELEMENT("ml/a", "net1", "10.6.0.1") "]"),
			ATTACHED("net1", "10.6.0.1",
				 "gids: [" GID("mlx5_0", "11", "1", "10.6.0.1") ", " GID(
					 "mlx5_0", "12", "2", "10.6.0.1") "]"),
			"", "");

	is_json(json_at(chain, "interfaces"),
		"[{interface: net1, network: ml/a, addresses: [10.6.0.1], rdmaDevice: mlx5_0, "
		"gids: [{port: 1, index: 11, version: 1, address: 10.6.0.1}, {port: 1, index: 12, "
		"version: 2, address: 10.6.0.1}]}]");
	is_json(json_at(chain, "variables"),
		"{NCCL_IB_HCA: '=mlx5_0:1', UCX_NET_DEVICES: 'mlx5_0:1', NCCL_IB_GID_INDEX: '12', "
		"UCX_IB_GID_INDEX: '12', " SOCKETS "}");
	assert_null(json_at(chain, "notes"));
}

TEST(different_indices_cannot_be_one_variable)
{
	json_auto_t *chain = explain(
		STATUS("[]"),
		ATTACHED("net1", "10.6.0.1",
			 "gids: [" GID("mlx5_0", "12", "2",
				       "10.6.0.1") "]") ", " ATTACHED("net2", "10.7.0.1",
								      "gids: [" GID(
									      "mlx5_1", "8", "2",
									      "10.7.0.1") "]"),
		"", "");

	is_json(json_at(chain, "variables"),
		"{NCCL_IB_HCA: '=mlx5_0:1,mlx5_1:1', UCX_NET_DEVICES: 'mlx5_0:1,mlx5_1:1', "
		"NCCL_IB_ADDR_FAMILY: AF_INET, NCCL_IB_ROCE_VERSION_NUM: '2', " SOCKETS "}");
	assert_non_null(strstr(json_string_value(json_array_get(json_at(chain, "notes"), 0)),
			       "the GID indices differ"));
}

/* In the pod's own namespace: the agent knows its name, and a command the rest. */
TEST(an_exclusive_device_is_asked_in_its_pod)
{
	json_auto_t *chain =
		explain(STATUS("[]"), ATTACHED("net1", "fd00::1", "rdmaDevice: mlx5_4"), "",
			"env: [{name: NCCL_IB_TC, value: '106'}]");

	is_json(json_at(chain, "variables"),
		"{NCCL_IB_HCA: '=mlx5_4:1', UCX_NET_DEVICES: 'mlx5_4:1', NCCL_IB_ADDR_FAMILY: "
		"AF_INET6, NCCL_IB_ROCE_VERSION_NUM: '2', " SOCKETS ", NCCL_IB_TC: '106', "
		"UCX_IB_TRAFFIC_CLASS: '106'}");
	is_json(json_at(chain, "interfaces"), "[{interface: net1, rdmaDevice: mlx5_4, "
					      "trafficClass: '106', addresses: ['fd00::1']}]");
	is_json(json_at(chain, "notes"),
		"[\"GID indices that are not shown here, and their devices: kubectl exec "
		"-n ml w -- sh -c 'grep -F -e fd00:0000:0000:0000:0000:0000:0000:0001 "
		"/sys/class/infiniband/*/ports/*/gids/*'\"]");
}

TEST(the_status_of_another_meta_plugin_does_as_well)
{
	json_auto_t *chain =
		explain(STATUS("[{\"name\": \"ml/a\", \"interface\": \"net1\", \"ips\": "
			       "[\"10.6.0.1\"], " DEVICE("mlx5_4") "}]"),
			"{pod: ml/other, interface: net1, rdmaDevice: mlx5_9}", "", "");

	is_json(json_at(chain, "interfaces"), "[{interface: net1, network: ml/a, addresses: "
					      "[10.6.0.1], rdmaDevice: mlx5_4}]");
	is_json(json_at(chain, "variables", "NCCL_IB_HCA"), "'=mlx5_4:1'");
}

/* Another meta plugin does not name shared devices. */
TEST(a_device_of_unknown_name_is_asked_in_its_pod)
{
	static const char status[] = STATUS("[" ELEMENT("ml/a", "net1", "10.6.0.1") "]");
	json_auto_t *chain = explain(status, "", "", RESOURCES);
	json_auto_t *without = explain(status, "", "", "");

	assert_null(json_at(chain, "variables"));
	assert_non_null(strstr(json_string_value(json_array_get(json_at(chain, "notes"), 0)),
			       "-e 0000:0000:0000:0000:0000:ffff:0a06:0001 /sys"));
	assert_null(json_at(without, "notes"));
}

TEST(devices_are_in_the_order_of_rails)
{
	static const char attached[] =
		ATTACHED("net1", "10.6.0.1", "rdmaDevice: mlx5_1") ", " ATTACHED(
			"net2", "10.7.0.1", "rdmaDevice: mlx5_0, device: '0000:3b:00.2'");
	static const char nics[] =
		"{name: ens1, pciAddress: '0000:3c:00.0', rail: 1}, {name: ens0, "
		"pciAddress: '0000:3b:00.0', rail: 0, Vfs: [{pciAddress: "
		"'0000:3b:00.2'}]}";
	static const char without[] = "{name: ens1, pciAddress: '0000:3c:00.0'}, {name: ens0, "
				      "pciAddress: '0000:3b:00.0', rail: 0, Vfs: [{pciAddress: "
				      "'0000:3b:00.2'}]}";
	static const char status[] = STATUS("[" ELEMENT("ml/a", "net1", "10.6.0.1") ", " ELEMENT(
		"ml/vf", "net2", "10.7.0.1") "]");
	json_auto_t *by_rail = explain(status, attached, nics, "");
	json_auto_t *by_network = explain(status, attached, without, "");

	is_json(json_at(by_rail, "variables", "NCCL_IB_HCA"), "'=mlx5_0:1,mlx5_1:1'");
	is_json(json_at(json_array_get(json_at(by_rail, "interfaces"), 0), "rail"), "0");
	is_json(json_at(by_network, "variables", "NCCL_IB_HCA"), "'=mlx5_1:1,mlx5_0:1'");
}

TEST(infiniband_chooses_no_gid)
{
	json_auto_t *chain =
		explain(STATUS("[]"),
			ATTACHED("net1", "10.6.0.1", "rdmaDevice: mlx5_0, device: '0000:3b:00.2'"),
			"{name: ib0, linkType: IB, Vfs: [{pciAddress: '0000:3b:00.2'}]}", "");

	is_json(json_at(chain, "variables"),
		"{NCCL_IB_HCA: '=mlx5_0:1', UCX_NET_DEVICES: 'mlx5_0:1', " SOCKETS "}");
	assert_null(json_at(chain, "notes"));
}

TEST(a_device_with_roce_v1_alone_is_told)
{
	json_auto_t *chain = explain(
		STATUS("[]"),
		ATTACHED("net1", "10.6.0.1", "gids: [" GID("mlx5_0", "2", "1", "10.6.0.1") "]"), "",
		"");

	assert_null(json_at(chain, "variables", "NCCL_IB_GID_INDEX"));
	is_json(json_at(chain, "notes"),
		"['1 interfaces have RoCE v1 GIDs only: see orbweaver doctor']");
}

/* What a pod's owner writes is copied into shells of others. */
TEST(names_for_a_shell_are_left_out)
{
	static const char *const statuses[] = {
		"[{\"name\": \"ml/a\", \"interface\": \"net1\", \"ips\": "
		"[\"10.6.0.1$(x)\"], " DEVICE("mlx5_0;reboot") "}]",
		"[{\"name\": \"ml/a\", \"interface\": \"net1\", \"ips\": [\"`x`\", 5], " DEVICE(
			"mlx5_0\\\\nx") "}]",
		"[{\"name\": \"ml/a\", \"interface\": \"net1\", \"ips\": {}, " DEVICE("") "}]",
	};
	static const char *const others[] = {
		"[{\"name\": \"ml/a\", \"interface\": \"a b\", " DEVICE("mlx5_0") "}]",
		"[{\"name\": \"ml/a\", \"interface\": 5}]",
		"[[1",
		"{}",
		"5",
		"",
	};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		auto_free char *metadata = str_printf(
			"annotations: {k8s.v1.cni.cncf.io/network-status: '%s'}", statuses[i]);
		json_auto_t *chain = explain(metadata, "", "",
					     "env: [{name: NCCL_IB_TC, value: '1;x'}], " RESOURCES);

		is_json(json_at(chain, "interfaces"),
			"[{interface: net1, network: ml/a, addresses: []}]");
		assert_null(json_at(chain, "variables"));
		assert_null(json_at(chain, "notes"));
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		auto_free char *metadata = str_printf(
			"annotations: {k8s.v1.cni.cncf.io/network-status: '%s'}", others[i]);
		json_auto_t *chain = explain(metadata, "", "", "");

		assert_int_equal(json_object_size(chain), 0);
	}
}

TEST(a_status_without_end_is_read_in_part)
{
	auto_strbuf struct strbuf many = {0}, huge = {0};
	json_auto_t *chain = NULL, *nothing = NULL;

	for (int i = 0; i < 100; i++)
		strbuf_addf(&many, "%s{pod: ml/w, interface: net%d, rdmaDevice: mlx5_%d}",
			    i > 0 ? ", " : "", i, i);
	chain = explain(STATUS("[]"), strbuf_str(&many), "", "");
	assert_int_equal(json_array_size(json_at(chain, "interfaces")), 65);
	strbuf_adds(&huge, "annotations: {k8s.v1.cni.cncf.io/network-status: '[");
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&huge, "%s{\"name\": \"ml/a\", \"interface\": \"net%d\"}",
			    i > 0 ? "," : "", i);
	strbuf_adds(&huge, "]'}");
	nothing = explain(strbuf_str(&huge), "", "", "");
	assert_int_equal(json_object_size(nothing), 0);
}

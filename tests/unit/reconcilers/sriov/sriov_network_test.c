// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetwork, SriovIBNetwork, OVSNetwork → NetworkAttachmentDefinition: configuration, owners,
 * moving, deleting.
 */
#include "tests/support/test.h"

#include <string.h>

#include "reconcilers/core/conditions.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/sriov/sriov_network.h"
#include "tests/fakes/cluster.h"
#include "tests/support/yaml.h"

/* Network sys/n of a kind, with a namespace apps beside it. */
static json_t *world_with(const char *kind, const char *spec)
{
	json_t *world = yaml("env: {now: '2026-01-31T10:00:00Z', namespace: sys,"
			     " resourcePrefix: spidernet.io}\n"
			     "namespaces: {apps: {metadata: {name: apps}}}\n"
			     "network-attachment-definitions: {}\n");

	json_put(world, kind,
		 json_pack("{s:{s:{s:s,s:s,s:s,s:i},s:o}}", "sys/n", "metadata", "name", "n",
			   "namespace", "sys", "uid", "u-n", "generation", 2, "spec", yaml(spec)));
	return world;
}

static json_t *network_of(const json_t *world)
{
	return json_at(world, KIND_SRIOV_NETWORK, "sys/n");
}

static void settle(json_t *world)
{
	assert_true(cluster_settle(world, "sys/n", sriov_network_reconcile));
}

static void assert_ready(const json_t *world, const char *status, const char *reason,
			 const char *part)
{
	const json_t *ready =
		condition_find(json_at(network_of(world), "status", "conditions"), "Ready");

	assert_string_equal(json_str_or(json_at(ready, "status"), ""), status);
	assert_string_equal(json_str_or(json_at(ready, "reason"), ""), reason);
	if (!strstr(json_str_or(json_at(ready, "message"), ""), part))
		fail_msg("%s", json_str_at(ready, "message"));
}

static const char *nad_text(const json_t *world, const char *key)
{
	return json_str_or(json_at(world, KIND_NAD, key, "spec", "config"), "nothing");
}

TEST(renders_what_upstream_renders)
{
	json_auto_t *world = world_with(
		KIND_SRIOV_NETWORK,
		"{networkNamespace: apps, resourceName: rdma_gold, vlan: 120, vlanQoS: 3,"
		" trust: 'on', maxTxRate: 0, capabilities: '{\"mac\":true}',"
		" metaPlugins: '{\"type\":\"rdma\"}', ipam: '{\"type\": \"static\"}'}");

	settle(world);
	assert_string_equal(nad_text(world, "apps/n"), "{\n"
						       "    \"cniVersion\": \"1.0.0\",\n"
						       "    \"name\": \"n\",\n"
						       "    \"plugins\": [\n"
						       "        {\n"
						       "            \"type\": \"sriov\",\n"
						       "            \"vlan\": 120,\n"
						       "            \"trust\": \"on\",\n"
						       "            \"vlanQoS\": 3,\n"
						       "            \"max_tx_rate\": 0,\n"
						       "            \"capabilities\": {\n"
						       "                \"mac\": true\n"
						       "            },\n"
						       "            \"logLevel\": \"info\",\n"
						       "            \"ipam\": {\n"
						       "                \"type\": \"static\"\n"
						       "            }\n"
						       "        },\n"
						       "        {\n"
						       "            \"type\": \"rdma\"\n"
						       "        }\n"
						       "    ]\n"
						       "}");
	assert_string_equal(json_str_at(world, KIND_NAD, "apps/n", "metadata", "annotations",
					NAD_RESOURCE_NAME),
			    "spidernet.io/rdma_gold");
	assert_string_equal(json_str_at(world, KIND_NAD, "apps/n", "metadata", "annotations",
					SRIOV_NETWORK_OWNER),
			    "SriovNetwork.sriovnetwork.openshift.io/sys/n");
	assert_null(json_at(world, KIND_NAD, "apps/n", "metadata", "ownerReferences"));
	assert_ready(world, "True", "NetworkReady", "apps/n is in place");
	assert_string_equal(json_str_at(network_of(world), "status", "networkAttachmentDefinition"),
			    "apps/n");
}

TEST(a_nad_at_home_refers_to_its_network)
{
	json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");
	const json_t *owner;

	settle(world);
	owner = json_array_get(json_at(world, KIND_NAD, "sys/n", "metadata", "ownerReferences"), 0);
	assert_string_equal(json_str_at(owner, "uid"), "u-n");
	assert_string_equal(json_str_at(owner, "apiVersion"), "sriovnetwork.openshift.io/v1");
	assert_null(json_at(owner, "controller"));
}

TEST(blanks_within_ipam_strings_survive)
{
	json_auto_t *world = world_with(
		KIND_SRIOV_NETWORK, "{resourceName: r, ipam: ' { \"type\" : \"it''s a b\" } '}");
	json_auto_t *config = NULL;

	settle(world);
	config = json_parse(nad_text(world, "sys/n"), strlen(nad_text(world, "sys/n")), NULL);
	assert_string_equal(json_str_at(config, "ipam", "type"), "it's a b");
}

TEST(what_cannot_be_rendered_is_told_and_leaves_the_nad_alone)
{
	static const struct {
		const char *field, *value, *reason, *part;
	} rows[] = {
		{"ipam", "{\"type\":", "BadJson", "spec.ipam"},
		{"ipam", "[]", "BadJson", "spec.ipam: holds an array"},
		{"capabilities", "yes", "BadJson", "spec.capabilities"},
		{"metaPlugins", "{\"type\":\"rdma\"},", "BadJson", "spec.metaPlugins"},
		{"metaPlugins", "{\"type\":\"rdma\"},7", "BadJson", "element 1 is an integer"},
		{"resourceName", "", "NoResourceName", "spec.resourceName"},
		{"vlan", "x", "BadField", "spec.vlan"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r, vlan: 5}");
		auto_free char *before = NULL;

		settle(world);
		before = str_dup(nad_text(world, "sys/n"));
		json_put_str(json_at(network_of(world), "spec"), rows[i].field, rows[i].value);
		settle(world);
		assert_ready(world, "False", rows[i].reason, rows[i].part);
		assert_string_equal(nad_text(world, "sys/n"), before);
	}
}

TEST(json_within_a_network_has_a_bound)
{
	static const char *const fields[] = {"ipam", "capabilities", "metaPlugins"};
	auto_strbuf struct strbuf nodes = {0};

	strbuf_adds(&nodes, "{\"type\":\"x\",\"a\":[{}");
	for (int i = 0; i < LIMIT_JSON_NODES; i++)
		strbuf_adds(&nodes, ",{}");
	strbuf_adds(&nodes, "]}");
	for (size_t i = 0; i < 2 * ARRAY_LEN(fields); i++) {
		const char *field = fields[i / 2];
		auto_free char *part = str_printf("spec.%s: ", field);
		json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");
		json_t *spec = json_at(network_of(world), "spec");

		if (i % 2)
			json_put_int(spec, field, 1000000); /* as the door leaves it */
		else
			json_put_str(spec, field, strbuf_str(&nodes));
		settle(world);
		assert_ready(world, "False", "TooLarge", part);
		assert_int_equal(json_object_size(json_at(world, KIND_NAD)), 0);
	}
}

TEST(what_is_made_of_the_parts_has_a_bound_too)
{
	json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");
	auto_strbuf struct strbuf part = {0};

	strbuf_adds(&part, "{\"type\":\"");
	for (int i = 0; i < LIMIT_CONFIG_BYTES - 100; i++)
		strbuf_adds(&part, "x");
	strbuf_adds(&part, "\"}");
	json_put_str(json_at(network_of(world), "spec"), "ipam", strbuf_str(&part));
	json_put_str(json_at(network_of(world), "spec"), "metaPlugins", strbuf_str(&part));
	settle(world);
	assert_ready(world, "False", "TooLarge", "makes a CNI configuration of");
}

TEST(a_missing_namespace_is_waited_for)
{
	json_auto_t *world =
		world_with(KIND_SRIOV_NETWORK, "{resourceName: r, networkNamespace: later}");

	settle(world);
	assert_ready(world, "False", "NamespaceNotFound", "namespace later does not exist");
	assert_int_equal(json_object_size(json_at(world, KIND_NAD)), 0);

	json_put(json_at(world, KIND_NAMESPACE), "later", json_object());
	settle(world);
	assert_ready(world, "True", "NetworkReady", "later/n");
}

TEST(moving_a_network_moves_its_nad)
{
	json_auto_t *world =
		world_with(KIND_SRIOV_NETWORK, "{resourceName: r, networkNamespace: apps}");

	settle(world);
	json_object_del(json_at(network_of(world), "spec"), "networkNamespace");
	settle(world);
	assert_null(json_at(world, KIND_NAD, "apps/n"));
	assert_non_null(json_at(world, KIND_NAD, "sys/n"));

	json_put_str(json_at(network_of(world), "spec"), "networkNamespace", "missing");
	settle(world);
	assert_int_equal(json_object_size(json_at(world, KIND_NAD)), 0);
	assert_ready(world, "False", "NamespaceNotFound", "missing");
}

TEST(only_administrators_write_into_other_namespaces)
{
	json_auto_t *world =
		world_with(KIND_SRIOV_NETWORK, "{resourceName: r, networkNamespace: apps}");

	json_put_str(json_at(world, "env"), "namespace", "orbweaver-system");
	settle(world);
	assert_ready(world, "False", "NetworkAttachmentDefinitionInvalid",
		     "spec.networkNamespace: \"apps\" may be another namespace only");
	assert_int_equal(json_object_size(json_at(world, KIND_NAD)), 0);
}

TEST(a_nad_of_someone_else_is_left_alone)
{
	static const struct {
		const char *metadata, *owner;
	} rows[] = {
		{"{annotations: {sriovnetwork.openshift.io/owner-ref:"
		 " OVSNetwork.sriovnetwork.openshift.io/sys/n}}",
		 "OVSNetwork.sriovnetwork.openshift.io/sys/n"},
		{"{ownerReferences: [{apiVersion: spiderpool.spidernet.io/v2beta1,"
		 " kind: SpiderMultusConfig, name: m, uid: x, controller: true}]}",
		 "SpiderMultusConfig m"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");

		json_put(json_at(world, KIND_NAD), "sys/n",
			 json_pack("{s:o,s:{s:s}}", "metadata", yaml(rows[i].metadata), "spec",
				   "config", "theirs"));
		settle(world);
		assert_ready(world, "False", "NetworkAttachmentDefinitionInvalid", rows[i].owner);
		assert_string_equal(nad_text(world, "sys/n"), "theirs");
	}
}

/* Else its controller makes it again, this one deletes it, and so on. */
TEST(a_nad_with_the_name_of_a_network_and_another_controller_stays)
{
	static const struct {
		const char *owner;
		size_t ops;
	} rows[] = {
		{"{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderMultusConfig, name: m, "
		 "uid: x, controller: true}",
		 0},
		{"{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderMultusConfig, name: m, "
		 "uid: x}",
		 1},
		{"{apiVersion: sriovnetwork.openshift.io/v1, kind: SriovNetwork, name: 'n', "
		 "uid: u-n, controller: true}",
		 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf(
			"{network-attachment-definitions: {ml/m: {metadata: {name: m, namespace: "
			"ml, uid: u-m, annotations: {sriovnetwork.openshift.io/owner-ref: "
			"SriovNetwork.sriovnetwork.openshift.io/sys/n}, ownerReferences: [%s]}}}}",
			rows[i].owner);
		json_auto_t *world = yaml(text);
		auto_plan struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(sriov_network_reconcile(world, "sys/n", &plan, &err), 0);
		assert_int_equal(json_array_size(plan.ops), rows[i].ops);
	}
}

TEST(a_nad_without_an_owner_is_left_alone_until_it_goes)
{
	json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");

	json_put(json_at(world, KIND_NAD), "sys/n",
		 yaml("{metadata: {name: n, namespace: sys}, spec: {config: theirs}}"));
	settle(world);
	assert_ready(world, "False", "NetworkAttachmentDefinitionInvalid",
		     "metadata.name: NetworkAttachmentDefinition sys/n was made by somebody else, "
		     "with another content, and stays as it is: rename this network, or delete "
		     "it, and the network makes its own");
	assert_string_equal(nad_text(world, "sys/n"), "theirs");
	json_object_del(json_at(world, KIND_NAD), "sys/n");
	settle(world);
	assert_ready(world, "True", "NetworkReady", "sys/n");
}

#define SAME                                                                                       \
	"{\"type\":\"sriov\",\"vlan\":0,\"vlanQoS\":0,\"ipam\":{},\"logLevel\":\"info\","          \
	"\"name\":\"n\",\"cniVersion\":\"1.0.0\"}"

TEST(a_nad_of_an_older_operator_or_with_our_content_is_adopted)
{
	static const struct {
		const char *nad;
		bool is_remembered; /* by the network */
	} rows[] = {
		{"{metadata: {name: n, namespace: sys, annotations: {mine: kept}, "
		 "ownerReferences: [{apiVersion: sriovnetwork.openshift.io/v1, kind: "
		 "SriovNetwork, name: 'n', uid: old}]}, spec: {config: old}}",
		 false},
		{"{metadata: {name: n, namespace: sys, annotations: {mine: kept}}, "
		 "spec: {config: old}}",
		 true},
		{"{metadata: {name: n, namespace: sys, annotations: {mine: kept, "
		 "k8s.v1.cni.cncf.io/resourceName: spidernet.io/r}}, spec: {config: '" SAME "'}}",
		 false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");

		json_put(json_at(world, KIND_NAD), "sys/n", yaml(rows[i].nad));
		if (rows[i].is_remembered)
			json_put(json_at(network_of(world), "metadata"), "annotations",
				 yaml("{operator.sriovnetwork.openshift.io/last-network-namespace: "
				      "sys}"));
		settle(world);
		assert_string_equal(
			json_str_at(world, KIND_NAD, "sys/n", "metadata", "annotations", "mine"),
			"kept");
		assert_ready(world, "True", "NetworkReady", "sys/n");
	}
}

TEST(text_that_means_the_same_is_not_rewritten)
{
	static const char text[] = SAME;
	json_auto_t *world = world_with(KIND_SRIOV_NETWORK, "{resourceName: r}");

	json_put(
		json_at(world, KIND_NAD), "sys/n",
		yaml("{metadata: {annotations: {k8s.v1.cni.cncf.io/resourceName: spidernet.io/r}}, "
		     "spec: {config: '" SAME "'}}"));
	settle(world);
	assert_string_equal(nad_text(world, "sys/n"), text);
}

TEST(deleting_a_network_removes_its_nads_and_no_others)
{
	json_auto_t *world =
		world_with(KIND_SRIOV_NETWORK, "{resourceName: r, networkNamespace: apps}");

	settle(world);
	json_put(json_at(world, KIND_NAD), "sys/n", yaml("{metadata: {uid: x}}"));
	json_object_del(json_at(world, KIND_SRIOV_NETWORK), "sys/n");
	settle(world);
	assert_null(json_at(world, KIND_NAD, "apps/n"));
	assert_non_null(json_at(world, KIND_NAD, "sys/n"));
}

TEST(upstreams_finalizer_is_honoured)
{
	json_auto_t *world =
		world_with(KIND_SRIOV_NETWORK, "{resourceName: r, networkNamespace: apps}");
	json_t *metadata = json_at(network_of(world), "metadata");

	settle(world);
	assert_null(json_at(metadata, "finalizers"));
	json_put(metadata, "finalizers", json_pack("[s,s]", SRIOV_NETWORK_FINALIZER, "other"));
	json_put_str(metadata, "deletionTimestamp", "2026-01-31T10:00:00Z");
	settle(world);
	assert_int_equal(json_object_size(json_at(world, KIND_NAD)), 0);
	assert_int_equal(json_array_size(json_at(network_of(world), "metadata", "finalizers")), 1);
}

// SPDX-License-Identifier: Apache-2.0
/* The table of kinds, and the indexes of their caches. */
#include "operator/cache/kinds.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/projection.h"
#include "operator/controllers/certificates.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/webhook_setup.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/allocate/strays.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/pod_controller.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/spider/cni_config.h"
#include "reconcilers/spider/multus_config_names.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/node_names.h"
#include "reconcilers/sriov/shared_offers.h"

/* ---- indexes --------------------------------------------------------------------------------- */

/*
 * "SpiderMultusConfig/kube-system/macvlan": the owner that a NAD names, whether that object exists
 * or not.
 */
static void index_nad_owner(const json_t *nad, struct cache_values *values)
{
	const json_t *owner = owner_controller(nad);
	auto_free char *value = NULL;

	if (!owner)
		return;
	value = str_printf("%s/%s/%s", json_str_or(json_at(owner, "kind"), ""), json_namespace(nad),
			   json_str_or(json_at(owner, "name"), ""));
	cache_index_value(values, value);
}

static void index_nad_network(const json_t *nad, struct cache_values *values)
{
	const char *network = json_str_at(nad, "metadata", "annotations", SRIOV_NETWORK_OWNER);

	if (network)
		cache_index_value(values, network);
}

static void index_network_nad(const json_t *network, struct cache_values *values)
{
	auto_free char *key =
		str_printf("%s/%s", gather_target_namespace(network), json_name(network));

	cache_index_value(values, key);
}

static void index_network_namespace(const json_t *network, struct cache_values *values)
{
	cache_index_value(values, gather_target_namespace(network));
}

static void index_network_resource(const json_t *network, struct cache_values *values)
{
	const char *resource = json_str_at(network, "spec", "resourceName");

	if (!str_empty(resource))
		cache_index_value(values, resource);
}

static void index_config_nad(const json_t *config, struct cache_values *values)
{
	auto_free char *key = str_printf("%s/%s", json_namespace(config), cni_nad_name(config));

	cache_index_value(values, key);
}

struct grouping {
	const char *ns;
	struct cache_values *values;
};

static void index_group(void *arg, const char *group)
{
	const struct grouping *g = arg;
	auto_free char *value = gather_group_value(group, g->ns);

	cache_index_value(g->values, value);
}

static void index_config_group(const json_t *config, struct cache_values *values)
{
	struct grouping g = {json_namespace(config), values};

	pod_inject_groups(config, index_group, &g);
}

static void index_pool(void *arg, const char *pool)
{
	cache_index_value(arg, pool);
}

static void index_config_pools(const json_t *config, struct cache_values *values)
{
	multus_config_pools(config, index_pool, values);
}

static void index_config_resource(const json_t *config, struct cache_values *values)
{
	auto_free char *resource = multus_config_resource(config);

	if (*resource)
		cache_index_value(values, resource);
}

static void index_master(void *arg, const char *field, const char *link)
{
	cache_index_value(arg, link);
	cache_index_value(arg, NODE_LINKS_REPORTED);
}

static void index_config_masters(const json_t *config, struct cache_values *values)
{
	multus_config_masters(config, index_master, values);
}

/* Of a pod or a namespace: the group that it asks for itself. */
static void index_asked_group(const json_t *object, struct cache_values *values)
{
	auto_free char *group = pod_inject_group(object, NULL);
	struct grouping g = {json_namespace(object), values};

	if (!group)
		return;
	cache_index_value(values, group);
	index_group(&g, group);
}

static void index_namespace(const json_t *object, struct cache_values *values)
{
	cache_index_value(values, json_namespace(object));
}

static void index_machine(const json_t *pod, struct cache_values *values)
{
	const char *machine = pod_machine(pod);
	auto_free char *key = machine ? str_printf("%s/%s", json_namespace(pod), machine) : NULL;

	if (key)
		cache_index_value(values, key);
}

static void index_pod_of_sets(const json_t *pod, struct cache_values *values)
{
	if (pod_is_alive(pod) && str_eq(pod_controller(pod).kind, "StatefulSet"))
		cache_index_value(values, json_namespace(pod));
}

static void index_endpoint_node(const json_t *endpoint, struct cache_values *values)
{
	const char *node = json_str_at(endpoint, "status", "current", "node");

	if (!str_empty(node))
		cache_index_value(values, node);
}

static void index_endpoint_pools(const json_t *endpoint, struct cache_values *values)
{
	static const char *const fields[] = {"ipv4Pool", "ipv6Pool"};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(fields); f++)
			if (json_str_at(item, fields[f]))
				cache_index_value(values, json_str_at(item, fields[f]));
}

static void add_block(void *arg, const char *block)
{
	cache_index_value(arg, block);
}

static void index_endpoint_blocks(const json_t *endpoint, struct cache_values *values)
{
	strays_visit_blocks_of_endpoint(endpoint, add_block, values);
}

static void index_node_blocks(const json_t *node, struct cache_values *values)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_at(node, "status", "addresses"), i, item)
		strays_visit_block(json_str_or(json_at(item, "address"), ""), add_block, values);
}

static void index_endpoint_of_sets(const json_t *endpoint, struct cache_values *values)
{
	auto_free char *down = str_printf(ENDPOINTS_DOWN, json_namespace(endpoint));

	if (!str_eq(json_str_at(endpoint, "status", "ownerControllerType"), "StatefulSet"))
		return;
	cache_index_value(values, json_namespace(endpoint));
	if (endpoint_is_down(endpoint, endpoint_uid(endpoint)))
		cache_index_value(values, down);
}

static void index_drains(const json_t *state, struct cache_values *values)
{
	if (drain_concerns(state))
		cache_index_value(values, MIRROR_DRAINS);
}

static void index_offers(const json_t *state, struct cache_values *values)
{
	json_auto_t *offers = shared_offers_of(state);
	const char *resource;
	json_t *selects;
	bool lacks = false;

	if (json_is_null(offers))
		cache_index_value(values, SHARED_OFFERS_SILENT);
	json_each (offers, resource, selects) {
		auto_free char *has = str_printf(SHARED_OFFERS_HAS "%s", resource);

		if (json_is_true(selects))
			cache_index_value(values, has);
		else
			lacks = true;
	}
	if (lacks)
		cache_index_value(values, SHARED_OFFERS_LACKS);
}

static void index_marked(const json_t *node, struct cache_values *values)
{
	if (drain_is_marked(node))
		cache_index_value(values, MIRROR_DRAINS);
}

static void index_pod_node(const json_t *pod, struct cache_values *values)
{
	if (json_str_at(pod, "spec", "nodeName"))
		cache_index_value(values, json_str_at(pod, "spec", "nodeName"));
}

static void index_namespace_asking(const json_t *namespace, struct cache_values *values)
{
	if (pod_inject_asks_for_pods(namespace))
		cache_index_value(values, MIRROR_ASKING);
}

/* ---- what servers select by queries ---------------------------------------------------------- */

static bool runs(const json_t *pod)
{
	return str_eq(json_str_at(pod, "status", "phase"), "Running");
}

static bool is_bound(const json_t *pod)
{
	return !str_empty(json_str_at(pod, "spec", "nodeName"));
}

static bool is_control_plane(const json_t *pod)
{
	const char *component = json_str_at(pod, "metadata", "labels", "component");

	return str_eq(component, COMPONENT_API_SERVER) ||
	       str_eq(component, COMPONENT_CONTROLLER_MANAGER);
}

static bool is_agent(const json_t *pod)
{
	return str_eq(json_str_at(pod, "metadata", "labels", "app.kubernetes.io/name"), AGENT_NAME);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const splitter_path drop_common[] = {{"metadata", "managedFields"}};
static const splitter_path drop_node[] = {
	{"metadata", "managedFields"},
	{"status", "images"},
	{"status", "volumesInUse"},
	{"status", "volumesAttached"},
	/* What heartbeats are made of: without it they are the same text again. */
	{"status", "capacity"},
	{"status", "daemonEndpoints"},
	{"status", "nodeInfo"},
	{"status", "conditions", "lastHeartbeatTime"},
};
static const splitter_path drop_pod[] = {{"metadata", "managedFields"}, {"status"}};
/* The large ones: inject_check_project keeps little of the rest. */
static const splitter_path drop_asking_pod[] = {
	{"metadata", "managedFields"},     {"spec", "volumes"},
	{"spec", "initContainers"},        {"spec", "containers", "env"},
	{"spec", "containers", "command"}, {"spec", "containers", "volumeMounts"},
	{"status", "containerStatuses"},   {"status", "conditions"},
};
static const splitter_path drop_bound_pod[] = {
	{"metadata", "managedFields"}, {"spec", "volumes"},
	{"spec", "initContainers"},    {"spec", "containers"},
	{"spec", "tolerations"},       {"spec", "affinity"},
	{"spec", "securityContext"},   {"status", "containerStatuses"},
	{"status", "conditions"},      {"status", "initContainerStatuses"},
	{"status", "startTime"},       {"status", "podIPs"},
	{"status", "hostIP"},
};
static const splitter_path drop_quota[] = {{"metadata", "managedFields"}, {"status"}};
static const splitter_path drop_agent_pod[] = {
	{"metadata", "managedFields"},
	{"spec", "volumes"},
	{"spec", "containers"},
	{"spec", "tolerations"},
};
static const splitter_path drop_node_state[] = {{"status", "interfaces", "Vfs"},
						{"status", "hostFindings"}};

static const splitter_path drop_leftover[] = {
	{"metadata", "managedFields"},
	{"spec"},
	{"data"},
	{"binaryData"},
};

#define DROP(paths) .drops = (paths), .n_drops = ARRAY_LEN(paths)

/* SriovNetwork, SriovIBNetwork, OVSNetwork. */
#define NETWORK(kind_)                                                                             \
	{                                                                                          \
		.kind = (kind_), DROP(drop_common),                                                \
		.cache =                                                                           \
			{                                                                          \
				.project = project_network,                                        \
				.indexes = {index_network_nad, index_network_namespace,            \
					    index_network_resource},                               \
			},                                                                         \
		.changed = {network_changed}, .gather = gather_target,                             \
		.writes = KIND_PATCHED | KIND_STATUS,                                              \
	}

/* Where other programs have the cluster's own network, for SpiderCoordinators. */
#define CONFIG_MAP(name_, ns_)                                                                     \
	{                                                                                          \
		.kind = (name_), .name = (name_), .ns = (ns_), .optional = true,                   \
		.resource = {"", "v1", "configmaps", "ConfigMap", true}, DROP(drop_common),        \
		.changed = {cluster_network_changed},                                              \
	}
#define FOREIGN(id_, group_, version_, kind_)                                                      \
	{                                                                                          \
		.kind = (id_), .optional = true, .moves = true,                                    \
		.resource = {group_, version_, id_, kind_, false}, DROP(drop_common),              \
		.changed = {cluster_network_changed},                                              \
	}

/* Of the stack that we replace, wherever it is. */
#define LEFTOVER(id_, name_, group_, plural_, kind_, namespaced_, project_)                        \
	{                                                                                          \
		.kind = (id_), .name = (name_), .optional = true,                                  \
		.resource = {group_, "v1", plural_, kind_, namespaced_}, DROP(drop_leftover),      \
		.cache = {.project = (project_)}, .changed = {leftover_changed},                   \
	}
#define LEFTOVER_DEPLOYMENT(id_, name_)                                                            \
	LEFTOVER(id_, name_, "apps", "deployments", "Deployment", true, project_workload)
#define LEFTOVER_DAEMON_SET(id_, name_)                                                            \
	LEFTOVER(id_, name_, "apps", "daemonsets", "DaemonSet", true, project_workload)
#define LEFTOVER_CONFIG_MAP(id_, name_)                                                            \
	LEFTOVER(id_, name_, "", "configmaps", "ConfigMap", true, project_namespace)

#define WEBHOOK_CONFIGURATION(id_, name_, kind_)                                                   \
	{                                                                                          \
		.kind = (id_), .name = (name_), .optional = true,                                  \
		.resource = {"admissionregistration.k8s.io", "v1", id_, kind_, false},             \
		.cache = {.project = project_written}, .changed = {webhook_setup_changed},         \
		.writes = KIND_CREATED | KIND_PATCHED | KIND_DELETED, .created_by_name = true,     \
	}

const struct operator_kind operator_kinds[] = {
	{
		.kind = KIND_NODE,
		DROP(drop_node),
		.cache = {.project = project_node, .indexes = {index_marked, index_node_blocks}},
		.changed = {node_changed, addresses_node_changed, drain_source_changed,
			    health_source_changed},
		.writes = KIND_PATCHED | KIND_STATUS,
	},
	{
		.kind = KIND_NAMESPACE,
		DROP(drop_common),
		.cache = {.project = project_namespace,
			  .indexes = {index_namespace_asking, index_asked_group}},
		.changed = {network_namespace_changed, inject_namespace_changed,
			    webhook_setup_changed, addresses_source_changed},
	},
	{
		/*
		 * Running pods that ask for injection: the server picks those that run, the door
		 * those that ask.
		 */
		.kind = KIND_POD,
		.on_demand = true,
		.selector = "fieldSelector=status.phase%3DRunning",
		.selects = runs,
		DROP(drop_asking_pod),
		.cache = {.wanted = inject_check_wants,
			  .project = inject_check_project,
			  .indexes = {index_asked_group, index_namespace}},
		.changed = {inject_pod_changed},
		.found = inject_pod_found,
	},
	{
		/*
		 * Pods that are bound and may need addresses: the server picks those that are
		 * bound, the door those that name networks.
		 */
		.kind = KIND_BOUND_POD,
		.on_demand = true,
		.resource = {"", "v1", "pods", "Pod", true},
		.selector = "fieldSelector=spec.nodeName%21%3D",
		.selects = is_bound,
		DROP(drop_bound_pod),
		.cache = {.wanted = assign_wants,
			  .project = assign_project,
			  .indexes = {index_machine, index_pod_of_sets}},
		.changed = {bound_pod_changed},
		.found = bound_pod_found,
	},
	{
		/* For how many ended pods a namespace keeps addresses. */
		.kind = KIND_RESOURCE_QUOTA,
		.on_demand = true,
		.resource = {"", "v1", KIND_RESOURCE_QUOTA, "ResourceQuota", true},
		DROP(drop_quota),
		.cache = {.wanted = release_wants_quota,
			  .project = release_project_quota,
			  .indexes = {index_namespace}},
		.changed = {quota_changed},
	},
	{
		.kind = KIND_POLICY,
		DROP(drop_common),
		.cache = {.live = true, .project = project_policy},
		.changed = {policy_changed},
		.writes = KIND_STATUS,
	},
	{
		.kind = KIND_POOL_CONFIG,
		DROP(drop_common),
		.cache = {.live = true, .project = project_policy},
		.changed = {pool_config_changed, drain_source_changed, health_source_changed},
		.writes = KIND_PATCHED | KIND_STATUS,
	},
	{
		.kind = KIND_NODE_STATE,
		.in_own_namespace = true,
		DROP(drop_node_state),
		.cache = {.project = project_written, .indexes = {index_drains, index_offers}},
		.changed = {node_state_changed, drain_state_changed},
		.writes = KIND_CREATED | KIND_PATCHED | KIND_DELETED | KIND_STATUS,
	},
	{
		.kind = KIND_AGENT_POD,
		.in_own_namespace = true,
		.selector = "labelSelector=app.kubernetes.io%2Fname%3D" AGENT_NAME,
		.selects = is_agent,
		.resource = {"", "v1", "pods", "Pod", true},
		DROP(drop_agent_pod),
		.cache = {.project = node_agent_project, .indexes = {index_pod_node}},
		.changed = {agent_pod_changed},
	},
	NETWORK(KIND_SRIOV_NETWORK),
	NETWORK(KIND_SRIOV_IB_NETWORK),
	NETWORK(KIND_OVS_NETWORK),
	{
		.kind = KIND_NAD,
		.cache = {.project = project_definition,
			  .indexes = {index_nad_owner, index_nad_network}},
		.changed = {network_nad_changed, config_nad_changed, addresses_source_changed},
		.writes = KIND_CREATED | KIND_PATCHED | KIND_DELETED,
	},
	{
		.kind = KIND_MULTUS_CONFIG,
		DROP(drop_common),
		.cache = {.project = project_config,
			  .indexes = {index_config_nad, index_config_group, index_config_pools,
				      index_config_resource, index_config_masters}},
		.changed = {config_changed, inject_config_changed},
		.tells_own_writes = true,
		.gather = gather_claim_and_pools,
		.writes = KIND_PATCHED | KIND_STATUS,
	},
	{
		.kind = KIND_COORDINATOR,
		DROP(drop_common),
		.cache = {.live = true, .project = project_object},
		.changed = {coordinator_changed},
		.writes = KIND_CREATED | KIND_PATCHED | KIND_STATUS,
	},
	{
		.kind = KIND_IP_POOL,
		DROP(drop_common),
		.cache = {.project = project_object},
		.changed = {pool_changed, addresses_pool_changed},
		.tells_own_writes = true,
		.gather = gather_neighbours,
		.writes = KIND_PATCHED | KIND_STATUS,
	},
	{
		.kind = KIND_RESERVED_IP,
		DROP(drop_common),
		.cache = {.live = true, .project = project_object},
		.changed = {reserved_changed, addresses_source_changed},
		.writes = KIND_STATUS,
	},
	{
		.kind = KIND_ENDPOINT,
		.cache = {.project = project_endpoint,
			  .indexes = {index_endpoint_node, index_endpoint_pools,
				      index_endpoint_blocks, index_endpoint_of_sets}},
		.changed = {endpoint_changed},
		.writes = KIND_CREATED | KIND_PATCHED | KIND_DELETED,
	},
	CONFIG_MAP(MIRROR_KUBEADM_CONFIG, "kube-system"),
	{
		.kind = MIRROR_CILIUM_CONFIG,
		.is_cilium_config = true,
		.name = MIRROR_CILIUM_CONFIG,
		.ns = "kube-system",
		.optional = true,
		.resource = {"", "v1", "configmaps", "ConfigMap", true},
		DROP(drop_common),
		.changed = {cluster_network_changed},
	},
	CONFIG_MAP(MIRROR_FLANNEL_CONFIG, "kube-flannel"),
	{
		.kind = MIRROR_CONTROL_PLANE,
		.optional = true,
		.ns = "kube-system",
		.selector = "labelSelector=component%20in%20%28" COMPONENT_API_SERVER
			    "%2C" COMPONENT_CONTROLLER_MANAGER "%29",
		.selects = is_control_plane,
		.resource = {"", "v1", "pods", "Pod", true},
		DROP(drop_pod),
		.changed = {cluster_network_changed},
	},
	{
		.kind = MIRROR_API_SERVICE,
		.name = MIRROR_API_SERVICE,
		.ns = "default",
		.optional = true,
		.resource = {"", "v1", "services", "Service", true},
		DROP(drop_common),
		.changed = {cluster_network_changed},
	},
	FOREIGN(MIRROR_SERVICE_CIDR, "networking.k8s.io", "v1", "ServiceCIDR"),
	FOREIGN(MIRROR_CALICO_POOL, "crd.projectcalico.org", "v1", "IPPool"),
	FOREIGN(MIRROR_CILIUM_POOL, "cilium.io", "v2alpha1", "CiliumPodIPPool"),
	WEBHOOK_CONFIGURATION(MIRROR_VALIDATING, WEBHOOK_VALIDATING,
			      "ValidatingWebhookConfiguration"),
	WEBHOOK_CONFIGURATION(MIRROR_MUTATING, WEBHOOK_MUTATING, "MutatingWebhookConfiguration"),
	{
		.kind = MIRROR_CERTIFICATE,
		.in_own_namespace = true,
		.name = CERTIFICATES_SECRET,
		.optional = true,
		.resource = {"", "v1", "secrets", "Secret", true},
		.cache = {.project = project_written},
		.changed = {webhook_setup_changed},
		.writes = KIND_CREATED | KIND_PATCHED | KIND_DELETED,
		.created_by_name = true,
	},
	{
		.kind = MIRROR_SPIDERPOOL_CONF,
		.in_config_namespace = true,
		.name = INJECT_CONFIG_MAP,
		.optional = true,
		.resource = {"", "v1", "configmaps", "ConfigMap", true},
		DROP(drop_common),
		.changed = {webhook_setup_changed, inject_settings_changed,
			    addresses_settings_changed},
	},
	{
		.kind = MIRROR_SWITCHES,
		.in_config_namespace = true,
		.name = INJECT_SWITCHES_CONFIG_MAP,
		.optional = true,
		.resource = {"", "v1", "configmaps", "ConfigMap", true},
		DROP(drop_common),
		.changed = {webhook_setup_changed},
	},
	LEFTOVER_DEPLOYMENT(LEFTOVER_SRIOV_OPERATOR, "sriov-network-operator"),
	LEFTOVER_DEPLOYMENT(LEFTOVER_SPIDER_SRIOV, "spiderpool-sriov-operator"),
	LEFTOVER_DEPLOYMENT(LEFTOVER_SPIDER_OPERATOR, "spiderpool-controller"),
	LEFTOVER_DAEMON_SET(LEFTOVER_CONFIG_DAEMON, "sriov-network-config-daemon"),
	LEFTOVER_DAEMON_SET(LEFTOVER_SRIOV_PLUGIN, "sriov-device-plugin"),
	LEFTOVER_DAEMON_SET(LEFTOVER_SHARED_PLUGIN, "spiderpool-rdma-shared-device-plugin"),
	LEFTOVER_DAEMON_SET(LEFTOVER_LONE_SRIOV, "kube-sriov-device-plugin"),
	LEFTOVER_DAEMON_SET(LEFTOVER_LONE_SRIOV_AMD64, "kube-sriov-device-plugin-amd64"),
	LEFTOVER_DAEMON_SET(LEFTOVER_LONE_SHARED, "rdma-shared-dp-ds"),
	{
		/* In our own namespace it is the agents'. */
		.kind = LEFTOVER_SHARED_CONFIG,
		.name = SHARED_CONFIG_NAME,
		.optional = true,
		.resource = {"", "v1", "configmaps", "ConfigMap", true},
		DROP(drop_leftover),
		.cache = {.project = project_namespace},
		.changed = {leftover_changed, shared_config_changed},
	},
	LEFTOVER_CONFIG_MAP(LEFTOVER_RDMA_DEVICES, "rdma-devices"),
	LEFTOVER_CONFIG_MAP(LEFTOVER_RESOURCE_LIST, "sriovdp-config"),
	LEFTOVER_CONFIG_MAP(LEFTOVER_MADE_LIST, "device-plugin-config"),
	LEFTOVER_CONFIG_MAP(LEFTOVER_DEVICE_FILES, "smarter-device-manager"),
	LEFTOVER_CONFIG_MAP(LEFTOVER_SETTINGS, "spiderpool-conf"),
	LEFTOVER_CONFIG_MAP(LEFTOVER_MISNAMED, "spiderpool-config"),
	{
		.kind = LEFTOVER_SRIOV_CONFIG,
		.optional = true,
		.resource = {"sriovnetwork.openshift.io", "v1", "sriovoperatorconfigs",
			     "SriovOperatorConfig", true},
		DROP(drop_common),
		.cache = {.project = project_operator_config},
		.changed = {leftover_changed, drain_source_changed},
	},
	{
		.kind = LEFTOVER_SUBNET,
		.optional = true,
		.resource = {"spiderpool.spidernet.io", "v2beta1", "spidersubnets", "SpiderSubnet",
			     false},
		DROP(drop_leftover),
		.cache = {.project = project_namespace},
		.changed = {leftover_changed},
	},
	{0},
};

const struct operator_kind *operator_kind_find(const char *kind)
{
	for (const struct operator_kind *row = operator_kinds; row->kind; row++)
		if (str_eq(row->kind, kind))
			return row;
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* The table of controllers. Their worlds and wake rules are in controllers_*.c, by family. */
#include "operator/controllers/controllers.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/address_metrics.h"
#include "operator/cache/kinds.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/ipam_book.h"
#include "operator/controllers/webhook_setup.h"
#include "reconcilers/admission/inject_check.h"
#include "reconcilers/core/leftovers.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/allocate/strays.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/reserved_ip.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/maintenance/health_taint.h"
#include "reconcilers/spider/coordinator.h"
#include "reconcilers/spider/multus_config.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/policy_status.h"
#include "reconcilers/sriov/pool_config.h"
#include "reconcilers/sriov/shared_offers.h"
#include "reconcilers/sriov/sriov_network.h"

#define NETWORK(name_, kind_, reconcile_)                                                          \
	{                                                                                          \
		.name = (name_), .kind = (kind_), .reconcile = (reconcile_),                       \
		.finalizer = SRIOV_NETWORK_FINALIZER,                                              \
		.needs = {(kind_), KIND_NAD, KIND_NAMESPACE, KIND_NODE}, .gather = network_gather, \
		.status_waits = true,                                                              \
	}

const struct controller controllers[CONTROLLER_COUNT] = {
	[CONTROLLER_MULTUS_CONFIG] =
		{
			.name = "multus-config",
			.kind = KIND_MULTUS_CONFIG,
			.reconcile = multus_config_reconcile,
			.needs = {KIND_MULTUS_CONFIG, KIND_NAD, KIND_IP_POOL, KIND_NODE},
			.gather = config_gather,
			.status_waits = true,
		},
	[CONTROLLER_INJECT_POD] =
		{
			.name = "inject-pod",
			.kind = KIND_POD,
			.reconcile = inject_check_pod,
			.needs = {KIND_POD, KIND_NAMESPACE, KIND_MULTUS_CONFIG,
				  MIRROR_SPIDERPOOL_CONF},
			.gather = inject_gather_pod,
		},
	/* A user may have many pods, and change a config as often as the API server lets it. */
	[CONTROLLER_INJECT_GROUP] =
		{
			.name = "inject-group",
			.kind = KIND_MULTUS_CONFIG,
			.reconcile = inject_check_group,
			.needs = {KIND_POD, KIND_NAMESPACE, KIND_MULTUS_CONFIG},
			.every_ms = 5000,
			.after = CONTROLLER_INJECT_GROUP,
			.is_urgent = inject_group_is_urgent,
			.posted = inject_group_posted,
		},
	[CONTROLLER_INJECT_CONFIG] =
		{
			.name = "inject-config",
			.kind = KIND_MULTUS_CONFIG,
			.reconcile = inject_check_config,
			.needs = {KIND_POD, KIND_NAMESPACE, KIND_MULTUS_CONFIG,
				  MIRROR_SPIDERPOOL_CONF},
			.gather = inject_gather_config,
			.every_ms = 1000,
			.after = CONTROLLER_INJECT_POD,
			.status_waits = true,
		},
	[CONTROLLER_IP_POOL] =
		{
			.name = "ip-pool",
			.kind = KIND_IP_POOL,
			.reconcile = ip_pool_reconcile,
			.finalizer = IP_POOL_FINALIZER,
			.needs = {KIND_IP_POOL, KIND_RESERVED_IP, KIND_NODE},
			.gather = pool_gather,
			.status_waits = true,
		},
	[CONTROLLER_NODE_STATE] =
		{
			.name = "node-state",
			.kind = KIND_NODE,
			.reconcile = node_state_reconcile,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG,
				  KIND_AGENT_POD},
			.gather = node_gather,
			.reported = node_reported,
		},
	[CONTROLLER_POLICY_STATUS] =
		{
			.name = "policy-status",
			.kind = KIND_POLICY,
			.reconcile = policy_status_reconcile,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
			.gather = policy_gather,
			.every_ms = 1000,
			.after = CONTROLLER_NODE_STATE,
			.status_waits = true,
		},
	[CONTROLLER_POOL_CONFIG] =
		{
			.name = "pool-config",
			.kind = KIND_POOL_CONFIG,
			.reconcile = pool_config_reconcile,
			.finalizer = POOL_CONFIG_FINALIZER,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POLICY, KIND_POOL_CONFIG},
			.gather = pool_config_gather,
			.every_ms = 1000,
			.after = CONTROLLER_NODE_STATE,
			.status_waits = true,
		},
	[CONTROLLER_SRIOV_NETWORK] =
		NETWORK("sriov-network", KIND_SRIOV_NETWORK, sriov_network_reconcile),
	[CONTROLLER_SRIOV_IB_NETWORK] =
		NETWORK("sriov-ib-network", KIND_SRIOV_IB_NETWORK, sriov_ib_network_reconcile),
	[CONTROLLER_OVS_NETWORK] = NETWORK("ovs-network", KIND_OVS_NETWORK, ovs_network_reconcile),
	[CONTROLLER_RESERVED_IP] =
		{
			.name = "reserved-ip",
			.kind = KIND_RESERVED_IP,
			.reconcile = reserved_ip_reconcile,
			.needs = {KIND_RESERVED_IP},
			.gather = reserved_ip_gather,
			.status_waits = true,
		},
	[CONTROLLER_COORDINATOR] =
		{
			.name = "coordinator",
			.kind = KIND_COORDINATOR,
			.reconcile = coordinator_reconcile,
			.finalizer = IP_POOL_FINALIZER,
			.needs = {KIND_COORDINATOR, MIRROR_KUBEADM_CONFIG, MIRROR_CILIUM_CONFIG,
				  MIRROR_FLANNEL_CONFIG, MIRROR_CONTROL_PLANE, MIRROR_API_SERVICE,
				  MIRROR_SERVICE_CIDR, MIRROR_CALICO_POOL, MIRROR_CILIUM_POOL},
			.gather = coordinator_gather,
		},
	[CONTROLLER_WEBHOOK_SETUP] =
		{
			.name = "webhook-setup",
			.kind = MIRROR_VALIDATING,
			.reconcile = webhook_setup_reconcile,
			.needs = {KIND_NAMESPACE, MIRROR_VALIDATING, MIRROR_MUTATING,
				  MIRROR_CERTIFICATE, MIRROR_SPIDERPOOL_CONF, MIRROR_SWITCHES},
			.gather = webhook_setup_gather,
		},
	/* All that waits, at once: the delay is what pods of one burst have to find together. */
	[CONTROLLER_ADDRESSES] =
		{
			.name = "addresses",
			.kind = KIND_BOUND_POD,
			.reconcile = assign_reconcile,
			.needs = {KIND_BOUND_POD, KIND_ENDPOINT, KIND_IP_POOL, KIND_RESERVED_IP,
				  KIND_NAD, KIND_NODE, KIND_NAMESPACE, MIRROR_SPIDERPOOL_CONF},
			.gather = addresses_gather,
			.every_ms = 50,
			.after = CONTROLLER_ADDRESSES,
			.awaited = true,
			.gathered = addresses_gathered,
			.posted = ipam_book_posted,
			.group_ended = addresses_ledger_written,
			.overtaken = addresses_overtaken,
		},
	[CONTROLLER_ENDPOINT] =
		{
			.name = "endpoint",
			.kind = KIND_ENDPOINT,
			.reconcile = endpoint_reconcile,
			.finalizer = IP_POOL_FINALIZER,
			.needs = {KIND_BOUND_POD, KIND_ENDPOINT, KIND_NODE, MIRROR_SPIDERPOOL_CONF},
			.gather = endpoint_gather,
			.awaited = true,
			.gathered = endpoint_gathered,
			.posted = ipam_book_posted,
			.read = endpoint_read,
		},
	[CONTROLLER_STRAYS] =
		{
			.name = "strays",
			.kind = KIND_IP_POOL,
			.reconcile = strays_reconcile,
			.needs = {KIND_BOUND_POD, KIND_ENDPOINT, KIND_IP_POOL},
			.gather = strays_gather,
			.every_ms = 10000,
			.after = CONTROLLER_ADDRESSES,
			.is_urgent = strays_are_urgent,
			.posted = ipam_book_posted,
		},
	[CONTROLLER_LEFTOVER] =
		{
			.name = "leftover",
			/* Of several kinds: its keys name theirs. */
			.kind = LEFTOVER_SRIOV_OPERATOR,
			.reconcile = leftover_reconcile,
			.gather = leftover_gather,
		},
	/* All nodes at once, when what one of them has has changed. */
	[CONTROLLER_SHARED_OFFERS] =
		{
			.name = "shared-offers",
			.kind = LEFTOVER_SHARED_CONFIG,
			.reconcile = shared_offers_reconcile,
			.needs = {KIND_NODE_STATE, LEFTOVER_SHARED_CONFIG},
			.gather = shared_offers_gather,
			.every_ms = 10000,
			.after = CONTROLLER_NODE_STATE,
		},
	/* All nodes at once: taking a slot and counting cannot race. */
	[CONTROLLER_DRAIN] =
		{
			.name = "drain",
			.kind = KIND_NODE_STATE,
			.reconcile = drain_reconcile,
			.needs = {KIND_NODE, KIND_NODE_STATE, KIND_POOL_CONFIG,
				  LEFTOVER_SRIOV_CONFIG},
			.gather = drain_gather,
			.every_ms = 250,
			.after = CONTROLLER_DRAIN,
			.evicted = drain_evicted,
			.read = drain_read,
			.reads_once = true,
		},
	/* The same: counting taints and setting one. */
	[CONTROLLER_HEALTH_TAINT] =
		{
			.name = "health-taint",
			.kind = KIND_NODE,
			.reconcile = health_taint_reconcile,
			.needs = {KIND_NODE, KIND_POOL_CONFIG},
			.gather = health_taint_gather,
			.every_ms = 1000,
			.after = CONTROLLER_NODE_STATE,
		},
};

bool controllers_are_for(const char *kind)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++)
		if (controllers[id].status_waits && str_eq(controllers[id].kind, kind))
			return true;
	return false;
}

void controllers_map(const struct controller_sources *from, const char *kind, const char *key,
		     const json_t *old, const json_t *now)
{
	const struct change c = {from, kind, key, old, now};
	const struct operator_kind *row = operator_kind_find(kind);

	for (size_t i = 0; i < KIND_RULES_MAX && row->changed[i]; i++)
		row->changed[i](&c);
	/* Rules look at what was found on it. No decision may look at the object again. */
	if (!now)
		(void)findings_set(from->findings, kind, key, "", NULL, NULL);
}

void controllers_gather(const struct controller_sources *from, enum controller_id id,
			const char *key, json_t *world)
{
	const struct controller *controller = &controllers[id];

	if (controller->gather)
		controller->gather(from, controller, key, world);
	if (controller->gathered)
		controller->gathered(from, key, world);
}

bool controllers_remember(const struct controller_sources *from, enum controller_id id,
			  const json_t *op, const json_t *object, uint64_t as_of)
{
	const char *what = json_str_at(op, "op"), *reason = json_str_at(op, "reason");
	const struct change c = {
		.from = from, .kind = json_str_at(op, "kind"), .key = json_str_at(op, "key")};
	const struct operator_kind *row;

	if (str_eq(what, "report"))
		controllers[id].reported(from, json_str_at(op, "node"), json_at(op, "policies"));
	else if (str_eq(what, "post") && controllers[id].posted)
		controllers[id].posted(from, json_str_at(op, "box"), c.key, json_at(op, "value"),
				       as_of);
	else if (str_eq(what, "post"))
		controllers_keep(from, json_str_at(op, "box"), c.key, json_at(op, "value"));
	if (!str_eq(what, "finding") ||
	    !findings_set(from->findings, c.kind, c.key, json_uid(object), object ? reason : NULL,
			  json_str_at(op, "message")))
		return false;
	row = operator_kind_find(c.kind);
	if (row && row->found)
		row->found(&c, reason);
	return true;
}

void controller_sources_init(struct controller_sources *from, struct metrics *metrics)
{
	from->reports = policy_reports_new();
	from->findings = findings_new();
	from->pools = ip_pool_index_new();
	from->resources = node_names_new();
	from->links = node_names_new();
	from->addresses = ipam_book_new();
	from->address_metrics = address_metrics_new(metrics);
	from->notes = json_object();
}

void controller_sources_done(struct controller_sources *from)
{
	policy_reports_free(from->reports);
	findings_free(from->findings);
	ip_pool_index_free(from->pools);
	node_names_free(from->resources);
	node_names_free(from->links);
	ipam_book_free(from->addresses);
	address_metrics_free(from->address_metrics);
	json_decref(from->notes);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The kinds that the operator watches, one row each: which objects, what is kept of them, how they
 * are found, who is woken when one changes, what admission may look at, and what is written.
 *
 * What a kind is called is in reconcilers/core/kinds.h, the rules for those that users write are in
 * reconcilers/admission/kind_rules.h, and who decides is in controllers.h.
 * tests/unit/operator/controllers/kinds_test.c holds the rights in manifests/base/rbac.yaml to this
 * table.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "lib/kube/splitter.h"
#include "reconcilers/core/kinds.h"

/* Indexes of the kinds that have any. */
enum {
	NAD_BY_OWNER =
		0, /* "Kind/namespace/name" of the controlling owner, whether it exists or not */
	NAD_BY_NETWORK =
		1, /* the annotation that names a SriovNetwork, SriovIBNetwork or OVSNetwork */
	CONFIG_BY_NAD = 0, /* SpiderMultusConfigs by the key of the NAD that they claim */
	/* … by their namespace and the groups of pod injection that they are in */
	CONFIG_BY_GROUP = 1,
	CONFIG_BY_POOL = 2, /* … by the SpiderIPPools that they name, whether those exist or not */
	CONFIG_BY_RESOURCE = 3, /* … by the resource that pods need for them */
	/* … by the interfaces of nodes that they are over; all, by NODE_LINKS_REPORTED as well */
	CONFIG_BY_MASTER = 4,
	NETWORK_BY_NAD = 0,       /* SriovNetworks … by the key of the NAD that they write */
	NETWORK_BY_NAMESPACE = 1, /* … by the namespace of it */
	NETWORK_BY_RESOURCE = 2,  /* … by spec.resourceName */
	NAMESPACE_ASKING = 0,     /* namespaces that ask for pod injection: under MIRROR_ASKING */
	NAMESPACE_BY_GROUP = 1,   /* … by the group that they ask for */
	/* pods by the group that they ask for themselves, alone and with their namespace */
	POD_BY_GROUP = 0,
	POD_BY_NAMESPACE = 1,
	NODE_MARKED = 0,       /* Nodes that were cordoned by a drain: under MIRROR_DRAINS */
	NODE_BY_BLOCK = 1,     /* … by blocks of their addresses (ipam/strays.h) */
	NODE_STATE_DRAINS = 0, /* NodeStates that are drained or want to be: under MIRROR_DRAINS */
	/* … by what they say of shared resources: SHARED_OFFERS_… (shared_offers.h) */
	NODE_STATE_OFFERS = 1,
	/* pods of virtual machines, by "namespace/name" of the instance */
	BOUND_POD_BY_MACHINE = 0,
	BOUND_POD_OF_SETS = 1, /* … that live, of StatefulSets, by namespace */
	AGENT_POD_BY_NODE = 0,
	ENDPOINT_BY_NODE = 0,  /* SpiderEndpoints by the node of their pod */
	ENDPOINT_BY_POOL = 1,  /* … by the SpiderIPPools that their addresses are from */
	ENDPOINT_BY_BLOCK = 2, /* … by blocks of the addresses (ipam/strays.h) */
	/*
	 * … of pods of StatefulSets, by namespace; those that say down, by ENDPOINTS_DOWN as well
	 */
	ENDPOINT_OF_SETS = 3,
	QUOTA_BY_NAMESPACE = 0,
};

/* Formats a namespace. */
#define ENDPOINTS_DOWN "%s down"

/*
 * What tells about the cluster's own network, for SpiderCoordinators: single objects and kinds of
 * other projects, which a cluster has or has not. In worlds they stand under their plural names.
 */
#define MIRROR_KUBEADM_CONFIG "kubeadm-config"
#define MIRROR_CILIUM_CONFIG  "cilium-config"
#define MIRROR_FLANNEL_CONFIG "kube-flannel-cfg"
#define MIRROR_CONTROL_PLANE  "control-plane"
#define MIRROR_API_SERVICE    "kubernetes"
#define MIRROR_SERVICE_CIDR   "servicecidrs"
#define MIRROR_CALICO_POOL    "ippools"
#define MIRROR_CILIUM_POOL    "ciliumpodippools"

/* What serving webhooks takes: one object each. */
#define MIRROR_CERTIFICATE     "orbweaver-webhook-certificate"
#define MIRROR_VALIDATING      "validatingwebhookconfigurations"
#define MIRROR_MUTATING        "mutatingwebhookconfigurations"
#define MIRROR_SPIDERPOOL_CONF "spiderpool-conf"
#define MIRROR_SWITCHES        "nri-control-switches"

/* The names of the two configurations. */
#define WEBHOOK_VALIDATING "orbweaver-validating"
#define WEBHOOK_MUTATING   "orbweaver-mutating"

#define MIRROR_ASKING "asking"
#define MIRROR_DRAINS "drains"

struct change;             /* controllers_internal.h */
struct controller_sources; /* controllers.h */

enum { KIND_RULES_MAX = 4 };

/* What plans do with objects of a kind, as bits: verbs on it, and "patch" on its status. */
enum kind_writes {
	KIND_CREATED = 1,
	KIND_PATCHED = 2,
	KIND_DELETED = 4,
	KIND_STATUS = 8,
};

struct operator_kind {
	const char *kind; /* the id in reconcilers/core/kinds.h, or one of MIRROR_* */
	/* Which objects. Without any of these: all in the cluster. */
	bool in_own_namespace;    /* of the operator */
	bool in_config_namespace; /* of the ConfigMap spiderpool-conf */
	bool is_cilium_config;    /* the one that mirror_config names, else as below */
	const char *ns;           /* a fixed one */
	const char *name;         /* only the object of this name */
	const char *selector;     /* query of a list or watch */
	/* The same as `selector`, for objects that come from elsewhere (mirror_show). */
	bool (*selects)(const json_t *object);
	/* A cluster need not have the kind; nothing waits for it. */
	bool optional;
	/*
	 * Of somebody who may move it to another version: where the one in `resource` is not
	 * served, its group is asked for others. What is read of it is the same in all that are
	 * known.
	 */
	bool moves;
	/* Only watched while somebody wants it (mirror_want). */
	bool on_demand;
	unsigned int writes; /* enum kind_writes */
	/*
	 * Created by server-side apply: for that the API server asks for the right to create an
	 * object of this name. For a POST, a rule with resourceNames gives none.
	 */
	bool created_by_name;
	struct kube_resource resource; /* for MIRROR_*; else from reconcilers/core/kinds.h */
	/* What is kept: left out while the bytes arrive, then by the cache. */
	const splitter_path *drops;
	size_t n_drops;
	struct cache_kind cache;
	/* Who is woken by a change, up to the first NULL. */
	void (*changed[KIND_RULES_MAX])(const struct change *c);
	/*
	 * Who is woken when a plan finds something else than before wrong with an object
	 * (plan_finding); reason NULL: nothing any more.
	 */
	void (*found)(const struct change *c, const char *reason);
	/*
	 * A watch may bring our own write of a status before its answer comes: it is asked for
	 * (applier_is_writing), since what other programs write is looked into, or wakes a
	 * controller that our own status does not concern.
	 */
	bool tells_own_writes;
	/*
	 * What the verdict on an object that is not stored yet may look at. NULL: the object alone.
	 */
	void (*gather)(const struct controller_sources *from, json_t *world, const json_t *object);
};

/* All of them, ending with a row whose kind is NULL. */
extern const struct operator_kind operator_kinds[];

/* NULL when the kind is not watched. */
const struct operator_kind *operator_kind_find(const char *kind);

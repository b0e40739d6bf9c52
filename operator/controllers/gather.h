// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of worlds: what a decision about an object may look at, for controllers (an object of the
 * cache) and for admission (an object that is not stored yet) alike.
 */
#pragma once

#include <jansson.h>

#include "operator/controllers/controllers.h"

/* What visitors of names get, and one of them: add the SpiderIPPool. */
struct gathering {
	const struct controller_sources *from;
	json_t *world;
};
void gather_add_pool(void *arg, const char *name);

/* "env": now, namespace, resourcePrefix, policyNamespaces. */
void gather_env(const struct controller_sources *from, json_t *world);

/* "env": waitingUnknown, until a pass has seen all pods that wait for addresses (IPAM_PASSED). */
void gather_passed(const struct controller_sources *from, json_t *world);

/*
 * The NetworkAttachmentDefinition that a SpiderMultusConfig claims, and configs that claim it: all
 * up to LIMIT_CONFIGS.
 */
void gather_claim(const struct controller_sources *from, json_t *world, const json_t *config);

/* What admission may look at for a SpiderMultusConfig: the claim, and the pools that it names. */
void gather_claim_and_pools(const struct controller_sources *from, json_t *world,
			    const json_t *config);

/* The pools that a SpiderMultusConfig names. */
void gather_pools(const struct controller_sources *from, json_t *world, const json_t *config);

/* The SpiderIPPools that may overlap this one, and the Nodes that have addresses of it. */
void gather_neighbours(const struct controller_sources *from, json_t *world, const json_t *pool);

/*
 * Where the NetworkAttachmentDefinition of a SriovNetwork, SriovIBNetwork or OVSNetwork is.
 * Borrowed.
 */
const char *gather_target_namespace(const json_t *network);

/*
 * The NetworkAttachmentDefinition that a SriovNetwork, SriovIBNetwork or OVSNetwork writes, and the
 * namespace of that.
 */
void gather_target(const struct controller_sources *from, json_t *world, const json_t *network);

/* The resource that pods need for a SpiderMultusConfig, if a node offers it. */
void gather_resource(const struct controller_sources *from, json_t *world, const json_t *config);

/* The same for a SriovNetwork, SriovIBNetwork or OVSNetwork. */
void gather_network_resource(const struct controller_sources *from, json_t *world,
			     const json_t *network);

/*
 * The interfaces that a SpiderMultusConfig is over, if a node has them. No list at all while a node
 * does not report its interfaces.
 */
void gather_masters(const struct controller_sources *from, json_t *world, const json_t *config);

/*
 * Visit SpiderMultusConfigs of a group ("KEY=VALUE", reconcilers/admission/pod_inject.h) that a pod
 * of the namespace may have: its own, and those of trusted namespaces, of each up to one more than
 * LIMIT_CONFIGS.
 */
void gather_visit_group(const struct controller_sources *from, const char *group, const char *ns,
			void (*visit)(void *arg, const char *key), void *arg);
/* Add these. */
void gather_group(const struct controller_sources *from, json_t *world, const char *group,
		  const char *ns);
/* The value under which CONFIG_BY_GROUP and POD_BY_GROUP have it. Returns new; free(). */
char *gather_group_value(const char *group, const char *ns);

/* A pod's namespace, and the SpiderMultusConfigs of the group that it asks for. */
void gather_asked(const struct controller_sources *from, json_t *world, const json_t *pod,
		  const char *ns);

/*
 * "env": "webhook" with "configNamespace", and spiderpool-conf: whether pods are injected, and
 * where. Nothing without webhooks.
 */
void gather_injection(const struct controller_sources *from, json_t *world);

/* The pods with a finding that may ask for a SpiderMultusConfig, and their namespaces. */
void gather_uninjected(const struct controller_sources *from, json_t *world, const json_t *config);

/*
 * Visit the pods that may ask for a group, and have a config of this namespace: by their own
 * annotation, or in a namespace that asks for it. Some come twice.
 */
void gather_visit_asking(const struct controller_sources *from, const char *group, const char *ns,
			 void (*visit)(void *arg, const char *key), void *arg);

/*
 * The part of the cluster that the operator looks at: one informer and one cache per kind.
 */
#ifndef ORBWEAVER_OPERATOR_MIRROR_H
#define ORBWEAVER_OPERATOR_MIRROR_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "reconcilers/kinds.h"

/* Indexes of the kinds that have any. */
enum {
	NAD_BY_OWNER =
		0, /* "Kind/namespace/name" of the controlling owner, whether it exists or not */
	NAD_BY_NETWORK =
		1, /* the annotation that names a SriovNetwork, SriovIBNetwork or OVSNetwork */
	CONFIG_BY_NAD = 0,   /* SpiderMultusConfigs by the key of the NAD that they claim */
	CONFIG_BY_GROUP = 1, /* … by the groups of pod injection that they are in */
	CONFIG_BY_POOL = 2, /* … by the SpiderIPPools that they name, whether those exist or not */
	CONFIG_BY_RESOURCE = 3,   /* … by the resource that pods need for them */
	NETWORK_BY_NAD = 0,       /* SriovNetworks … by the key of the NAD that they write */
	NETWORK_BY_NAMESPACE = 1, /* … by the namespace of it */
	NAMESPACE_ASKING = 0,     /* namespaces that ask for pod injection: under MIRROR_ASKING */
	NAMESPACE_BY_GROUP = 1,   /* … by the group that they ask for */
	POD_BY_GROUP = 0,         /* pods by the group that they ask for themselves */
	POD_BY_NAMESPACE = 1,
};

/*
 * What tells about the cluster's own network, for SpiderCoordinators: single objects and kinds of other projects, which a
 * cluster has or has not. In worlds they stand under their plural names.
 */
#define MIRROR_KUBEADM_CONFIG     "kubeadm-config"
#define MIRROR_CILIUM_CONFIG      "cilium-config"
#define MIRROR_FLANNEL_CONFIG     "kube-flannel-cfg"
#define MIRROR_CONTROLLER_MANAGER "kube-controller-manager"
#define MIRROR_SERVICE_CIDR       "servicecidrs"
#define MIRROR_CALICO_POOL        "ippools"
#define MIRROR_CILIUM_POOL        "ciliumpodippools"

/* What serving webhooks takes: one object each. */
#define MIRROR_CERTIFICATE     "orbweaver-webhook-certificate"
#define MIRROR_VALIDATING      "validatingwebhookconfigurations"
#define MIRROR_MUTATING        "mutatingwebhookconfigurations"
#define MIRROR_SPIDERPOOL_CONF "spiderpool-conf"

/* The names of the two configurations. */
#define WEBHOOK_VALIDATING "orbweaver-validating"
#define WEBHOOK_MUTATING   "orbweaver-mutating"

#define MIRROR_ASKING "asking"

struct mirror;

struct mirror_config {
	const char *ns;        /* of the NodeStates; borrowed, as all here */
	const char *config_ns; /* of the ConfigMap spiderpool-conf */
	bool stream_lists;
	struct metrics *metrics;
	/* An object changed in the cache; old or now is NULL when it appeared or went. Borrowed. */
	void (*changed)(void *arg, const char *kind, const char *key, const json_t *old,
			const json_t *now);
	/* A kind became complete, or is in trouble (err; NULL: no more). */
	void (*synced)(void *arg, const char *kind);
	void (*trouble)(void *arg, const char *kind, const struct err *err);
	void *arg;
};

/* Starts listing and watching at once. */
struct mirror *mirror_new(struct loop *loop, struct kube_client *client,
			  const struct mirror_config *config);
void mirror_free(struct mirror *mirror);

/* The kind is mirrored and was listed completely once, or is one that the cluster need not have and has not. */
bool mirror_is_synced(const struct mirror *mirror, const char *kind);

/* NULL when the kind is not mirrored. */
struct cache *mirror_cache(const struct mirror *mirror, const char *kind);
const struct kube_resource *mirror_resource(const struct mirror *mirror, const char *kind);

/* The i-th mirrored kind, NULL after the last. */
const char *mirror_kind(size_t i);

/* The answer to a write of ours; borrowed. */
void mirror_learn(struct mirror *mirror, const char *kind, const json_t *object);

/* The cluster need not have the kind: that it is not served is no trouble. */
bool mirror_is_optional(const char *kind);

/* Where the NetworkAttachmentDefinition of a SriovNetwork, SriovIBNetwork or OVSNetwork is. Borrowed. */
const char *mirror_network_namespace(const json_t *network);

/*
 * Worlds for reconcilers: add objects of a kind to { kind: { key: object } }. Absent objects add nothing, and those that are there
 * already stay.
 */
void mirror_add(const struct mirror *mirror, json_t *world, const char *kind, const char *key);
void mirror_add_all(const struct mirror *mirror, json_t *world, const char *kind);
void mirror_add_indexed(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
			const char *value);

#endif

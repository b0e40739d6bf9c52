/*
 * The table of mirrored kinds, and the informer and cache of each.
 */
#include "operator/mirror.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/informer.h"
#include "lib/kube/status.h"
#include "operator/certificates.h"
#include "operator/projection.h"
#include "reconcilers/inject_check.h"
#include "reconcilers/multus_config.h"
#include "reconcilers/owner.h"
#include "reconcilers/pod_inject.h"
#include "reconcilers/sriov_network.h"

/* ---- indexes ------------------------------------------------------------------------------------------------------ */

/* "SpiderMultusConfig/kube-system/macvlan": the owner that a NAD names, whether that object exists or not. */
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

const char *mirror_network_namespace(const json_t *network)
{
	const char *ns = json_str_at(network, "spec", "networkNamespace");

	return str_empty(ns) ? json_namespace(network) : ns;
}

static void index_network_nad(const json_t *network, struct cache_values *values)
{
	auto_free char *key =
		str_printf("%s/%s", mirror_network_namespace(network), json_name(network));

	cache_index_value(values, key);
}

static void index_network_namespace(const json_t *network, struct cache_values *values)
{
	cache_index_value(values, mirror_network_namespace(network));
}

static void index_config_nad(const json_t *config, struct cache_values *values)
{
	auto_free char *key =
		str_printf("%s/%s", json_namespace(config), multus_config_nad_name(config));

	cache_index_value(values, key);
}

static void index_group(void *arg, const char *group)
{
	cache_index_value(arg, group);
}

static void index_config_group(const json_t *config, struct cache_values *values)
{
	pod_inject_groups(config, index_group, values);
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

/* Of a pod or a namespace: the group that it asks for itself. */
static void index_asked_group(const json_t *object, struct cache_values *values)
{
	auto_free char *group = pod_inject_group(object, NULL);

	if (group)
		cache_index_value(values, group);
}

static void index_namespace(const json_t *object, struct cache_values *values)
{
	cache_index_value(values, json_namespace(object));
}

static void index_namespace_asking(const json_t *namespace, struct cache_values *values)
{
	if (pod_inject_asks(namespace))
		cache_index_value(values, MIRROR_ASKING);
}

/* ---- the table ---------------------------------------------------------------------------------------------------- */

static const splitter_path drop_common[] = {{"metadata", "managedFields"}};
static const splitter_path drop_node[] = {
	{"metadata", "managedFields"}, {"metadata", "annotations"},   {"status", "images"},
	{"status", "volumesInUse"},    {"status", "volumesAttached"},
};
static const splitter_path drop_pod[] = {{"metadata", "managedFields"}, {"status"}};
/* The large ones: inject_check_project keeps little of the rest. */
static const splitter_path drop_asking_pod[] = {
	{"metadata", "managedFields"},     {"spec", "volumes"},
	{"spec", "initContainers"},        {"spec", "containers", "env"},
	{"spec", "containers", "command"}, {"spec", "containers", "volumeMounts"},
	{"status", "containerStatuses"},   {"status", "conditions"},
};
static const splitter_path drop_node_state[] = {{"status", "interfaces", "Vfs"}};

#define DROP(paths)  .drops = (paths), .n_drops = ARRAY_LEN(paths)
#define NAMED(name_) "fieldSelector=metadata.name%3D" name_

/* How soon a Calico or Cilium that is installed later is noticed. */
enum { ABSENT_RETRY_MS = 300000 };

struct mirrored {
	const char *kind;      /* the id in reconcilers/kinds.h, or one of MIRROR_* */
	bool in_own_namespace; /* only objects in the operator's namespace */
	bool in_config_namespace;
	bool optional;
	const char *ns, *selector;
	struct kube_resource resource; /* for MIRROR_*; else from kinds.h */
	const splitter_path *drops;
	size_t n_drops;
	struct cache_kind cache;
};

#define NETWORK(kind_)                                                                             \
	{                                                                                          \
		(kind_), DROP(drop_common),                                                        \
			.cache = {                                                                 \
				.project = project_object,                                         \
				.indexes = {index_network_nad, index_network_namespace},           \
			},                                                                         \
	}

#define CONFIG_MAP(name_, ns_)                                                                     \
	{                                                                                          \
		(name_), .optional = true, .ns = (ns_), .selector = NAMED(name_),                  \
			 .resource = {"", "v1", "configmaps", "ConfigMap", true},                  \
			 DROP(drop_common)                                                         \
	}

#define FOREIGN(id_, group_, version_, kind_)                                                      \
	{                                                                                          \
		(id_), .optional = true, .resource = {group_, version_, id_, kind_, false},        \
		       DROP(drop_common)                                                           \
	}

#define WEBHOOK_CONFIGURATION(id_, name_, kind_)                                                   \
	{                                                                                          \
		(id_), .optional = true, .selector = NAMED(name_),                                 \
		       .resource = {"admissionregistration.k8s.io", "v1", id_, kind_, false},      \
		       .cache = {                                                                  \
			       .project = project_written                                          \
		       }                                                                           \
	}

static const struct mirrored table[] = {
	{KIND_NODE, DROP(drop_node), .cache = {.project = project_node}},
	{KIND_NAMESPACE, DROP(drop_common),
	 .cache = {.project = project_namespace,
		   .indexes = {index_namespace_asking, index_asked_group}}},
	/* Running pods that ask for injection: the server picks those that run, the door those that ask. */
	{KIND_POD, .selector = "fieldSelector=status.phase%3DRunning", DROP(drop_asking_pod),
	 .cache = {.wanted = inject_check_wants,
		   .project = inject_check_project,
		   .indexes = {index_asked_group, index_namespace}}},
	{KIND_POLICY, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	{KIND_POOL_CONFIG, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	{KIND_NODE_STATE, true, DROP(drop_node_state), .cache = {.project = project_written}},
	NETWORK(KIND_SRIOV_NETWORK),
	NETWORK(KIND_SRIOV_IB_NETWORK),
	NETWORK(KIND_OVS_NETWORK),
	{KIND_NAD,
	 .cache = {.project = project_written, .indexes = {index_nad_owner, index_nad_network}}},
	{KIND_MULTUS_CONFIG, DROP(drop_common),
	 .cache = {.project = project_object,
		   .indexes = {index_config_nad, index_config_group, index_config_pools,
			       index_config_resource}}},
	{KIND_COORDINATOR, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	{KIND_IP_POOL, DROP(drop_common), .cache = {.project = project_object}},
	{KIND_RESERVED_IP, DROP(drop_common), .cache = {.live = true, .project = project_object}},
	CONFIG_MAP(MIRROR_KUBEADM_CONFIG, "kube-system"),
	CONFIG_MAP(MIRROR_CILIUM_CONFIG, "kube-system"),
	CONFIG_MAP(MIRROR_FLANNEL_CONFIG, "kube-flannel"),
	{MIRROR_CONTROLLER_MANAGER, .optional = true, .ns = "kube-system",
	 .selector = "labelSelector=component%3Dkube-controller-manager",
	 .resource = {"", "v1", "pods", "Pod", true}, DROP(drop_pod)},
	FOREIGN(MIRROR_SERVICE_CIDR, "networking.k8s.io", "v1", "ServiceCIDR"),
	FOREIGN(MIRROR_CALICO_POOL, "crd.projectcalico.org", "v1", "IPPool"),
	FOREIGN(MIRROR_CILIUM_POOL, "cilium.io", "v2alpha1", "CiliumPodIPPool"),
	WEBHOOK_CONFIGURATION(MIRROR_VALIDATING, WEBHOOK_VALIDATING,
			      "ValidatingWebhookConfiguration"),
	WEBHOOK_CONFIGURATION(MIRROR_MUTATING, WEBHOOK_MUTATING, "MutatingWebhookConfiguration"),
	{MIRROR_CERTIFICATE, .in_own_namespace = true, .optional = true,
	 .selector = NAMED(CERTIFICATES_SECRET), .resource = {"", "v1", "secrets", "Secret", true},
	 .cache = {.project = project_written}},
	{MIRROR_SPIDERPOOL_CONF, .optional = true, .in_config_namespace = true,
	 .selector = NAMED(INJECT_CONFIG_MAP),
	 .resource = {"", "v1", "configmaps", "ConfigMap", true}, DROP(drop_common)},
};

struct mirror_kind {
	struct mirror *mirror;
	const struct mirrored *mirrored;
	struct kube_resource resource;
	struct cache *cache;
	struct informer *informer;
	bool absent; /* optional, and not served */
};

struct mirror {
	struct mirror_config config;
	struct mirror_kind kinds[ARRAY_LEN(table)];
};

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	const struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;

	config->changed(config->arg, kind->mirrored->kind, key, old, now);
}

static void on_synced(void *arg)
{
	const struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;

	config->synced(config->arg, kind->mirrored->kind);
}

static void on_trouble(void *arg, const struct err *err)
{
	struct mirror_kind *kind = arg;
	const struct mirror_config *config = &kind->mirror->config;
	bool was_absent = kind->absent;

	kind->absent = kind->mirrored->optional && kube_err_is(err, "NotServed");
	if (kind->absent && !was_absent)
		config->synced(config->arg, kind->mirrored->kind);
	if (!kind->absent)
		config->trouble(config->arg, kind->mirrored->kind, err);
}

/* NULL: all of them. */
static const char *namespace_of(const struct mirrored *mirrored, const struct mirror_config *config)
{
	if (mirrored->in_own_namespace)
		return config->ns;
	return mirrored->in_config_namespace ? config->config_ns : mirrored->ns;
}

static void start_kind(struct mirror_kind *kind, struct loop *loop, struct kube_client *client)
{
	const struct mirrored *mirrored = kind->mirrored;
	const struct mirror_config *config = &kind->mirror->config;
	const struct kind_info *info = kind_find(mirrored->kind);

	kind->resource = mirrored->resource;
	if (info)
		kind->resource = (struct kube_resource){info->group, info->version, info->id,
							info->kind, info->namespaced};
	kind->cache = cache_new(&mirrored->cache, on_changed, kind);
	kind->informer =
		informer_new(loop, client,
			     &(struct informer_config){
				     .resource = &kind->resource,
				     .ns = namespace_of(mirrored, config),
				     .selector = mirrored->selector,
				     .drops = mirrored->drops,
				     .n_drops = mirrored->n_drops,
				     .cache = kind->cache,
				     .stream_lists = config->stream_lists,
				     .absent_retry_ms = mirrored->optional ? ABSENT_RETRY_MS : 0,
				     .synced = on_synced,
				     .trouble = on_trouble,
				     .arg = kind,
				     .metrics = config->metrics,
			     });
}

struct mirror *mirror_new(struct loop *loop, struct kube_client *client,
			  const struct mirror_config *config)
{
	struct mirror *mirror = mem_new(struct mirror);

	mirror->config = *config;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		mirror->kinds[i].mirror = mirror;
		mirror->kinds[i].mirrored = &table[i];
		start_kind(&mirror->kinds[i], loop, client);
	}
	return mirror;
}

void mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		informer_free(mirror->kinds[i].informer);
		cache_free(mirror->kinds[i].cache);
	}
	mem_free(mirror);
}

static const struct mirror_kind *find(const struct mirror *mirror, const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].kind, kind))
			return &mirror->kinds[i];
	return NULL;
}

bool mirror_is_synced(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k && (k->absent || informer_is_synced(k->informer));
}

struct cache *mirror_cache(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k ? k->cache : NULL;
}

const struct kube_resource *mirror_resource(const struct mirror *mirror, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);

	return k ? &k->resource : NULL;
}

bool mirror_is_optional(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(table[i].kind, kind))
			return table[i].optional;
	return false;
}

const char *mirror_kind(size_t i)
{
	return i < ARRAY_LEN(table) ? table[i].kind : NULL;
}

void mirror_learn(struct mirror *mirror, const char *kind, const json_t *object)
{
	const struct mirror_kind *k = find(mirror, kind);

	if (k)
		informer_learn(k->informer, object);
}

/* ---- worlds ------------------------------------------------------------------------------------------------------- */

void mirror_add(const struct mirror *mirror, json_t *world, const char *kind, const char *key)
{
	json_t *object = NULL;

	/* Not replaced: somebody may hold it. */
	if (json_at(world, kind, key))
		return;
	object = cache_get(mirror_cache(mirror, kind), key);
	if (object)
		json_object_set_new(json_need_object(world, kind), key, object);
}

void mirror_add_all(const struct mirror *mirror, json_t *world, const char *kind)
{
	const struct mirror_kind *k = find(mirror, kind);
	json_t *objects = cache_all(k->cache);

	/* Several mirrors can show objects of one kind. */
	if (json_object_get(world, k->resource.plural)) {
		json_object_update(json_object_get(world, k->resource.plural), objects);
		json_decref(objects);
	} else {
		json_object_set_new(world, k->resource.plural, objects);
	}
}

struct adding {
	const struct mirror *mirror;
	json_t *world;
	const char *kind;
};

static void add_found(void *arg, const char *key)
{
	const struct adding *adding = arg;

	mirror_add(adding->mirror, adding->world, adding->kind, key);
}

void mirror_add_indexed(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
			const char *value)
{
	struct adding adding = {mirror, world, kind};

	cache_find(mirror_cache(mirror, kind), index, value, add_found, &adding);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetwork, SriovIBNetwork, OVSNetwork: what decisions on them look at, and what wakes them.
 * They differ in their rules only.
 */
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "reconcilers/core/kinds.h"

static const struct {
	enum controller_id id;
	const char *kind;
} networks[] = {
	{CONTROLLER_SRIOV_NETWORK, KIND_SRIOV_NETWORK},
	{CONTROLLER_SRIOV_IB_NETWORK, KIND_SRIOV_IB_NETWORK},
	{CONTROLLER_OVS_NETWORK, KIND_OVS_NETWORK},
};

void network_gather(const struct controller_sources *from, const struct controller *self,
		    const char *key, json_t *world)
{
	auto_free char *owner =
		str_printf("%s.sriovnetwork.openshift.io/%s", kind_find(self->kind)->kind, key);
	const json_t *network = NULL;

	mirror_add_indexed(from->mirror, world, KIND_NAD, NAD_BY_NETWORK, owner);
	mirror_add(from->mirror, world, self->kind, key);
	network = world_get(world, self->kind, key);
	if (!network)
		return;
	gather_target(from, world, network);
	gather_network_resource(from, world, network);
}

/* "SriovNetwork.sriovnetwork.openshift.io/NAMESPACE/NAME" wakes that network. */
static void wake_network_owner(const struct change *c, const json_t *nad)
{
	const char *owner = json_str_at(nad, "metadata", "annotations", SRIOV_NETWORK_OWNER);

	for (size_t i = 0; owner && i < ARRAY_LEN(networks); i++) {
		auto_free char *prefix = str_printf("%s.sriovnetwork.openshift.io/",
						    kind_find(networks[i].kind)->kind);

		if (str_starts(owner, prefix))
			wake(c, networks[i].id, owner + strlen(prefix));
	}
}

struct network_wake {
	const struct change *change;
	enum controller_id id;
};

static void wake_network(void *arg, const char *key)
{
	const struct network_wake *w = arg;

	wake(w->change, w->id, key);
}

static void wake_networks(const struct change *c, size_t index, const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		struct network_wake w = {c, networks[i].id};

		cache_find(mirror_cache(c->from->mirror, networks[i].kind), index, value,
			   wake_network, &w);
	}
}

/* Its owner before and after, and the networks that want its place. */
void network_nad_changed(const struct change *c)
{
	wake_network_owner(c, c->old);
	wake_network_owner(c, c->now);
	wake_networks(c, NETWORK_BY_NAD, c->key);
}

void network_changed(const struct change *c)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++)
		if (str_eq(networks[i].kind, c->kind))
			wake(c, networks[i].id, c->key);
}

/* It appeared or went: networks that write into it can go on, or have to wait. */
void network_namespace_changed(const struct change *c)
{
	wake_networks(c, NETWORK_BY_NAMESPACE, c->key);
}

void network_resource_changed(const struct change *c, const char *resource)
{
	const char *slash = strchr(resource, '/');

	wake_networks(c, NETWORK_BY_RESOURCE, slash ? slash + 1 : resource);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * ResourceClaims read by name, one call per question of kubeletd, all at once. kubeletd knows claim
 * and UID from the kubelet and has no way to the API server; dra_claim_read() keeps what concerns
 * this node, and the answer goes back through offers.c.
 */
#include "nodeagent/agent/resource_claims.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "nodeagent/devices/dra_claims.h"

static const struct kube_resource claim_resource = {
	.group = "resource.k8s.io",
	.version = "v1",
	.plural = "resourceclaims",
	.kind = "ResourceClaim",
	.namespaced = true,
};

struct reading {
	struct resource_claims *claims;
	struct reading *next;
	struct kube_call *call;
	char *uid;
};

struct resource_claims {
	struct resource_claims_config config;
	struct reading *readings;
};

static void reading_free(struct reading *reading)
{
	struct reading **place = &reading->claims->readings;

	while (*place != reading)
		place = &(*place)->next;
	*place = reading->next;
	mem_free(reading->uid);
	mem_free(reading);
}

static void on_claim(void *arg, json_t *object, const struct err *err)
{
	struct reading *reading = arg;
	const struct resource_claims_config *config = &reading->claims->config;
	json_auto_t *claim = NULL;
	struct err why = {0};

	if (err)
		why = *err;
	else
		claim = dra_claim_read(object, config->node, reading->uid, &why);
	config->read(config->arg, reading->uid, claim, claim ? NULL : &why);
	reading_free(reading);
}

void resource_claims_read(struct resource_claims *claims, const json_t *wanted)
{
	struct reading *reading = mem_new(struct reading);

	reading->claims = claims;
	reading->uid = str_dup(json_str_or(json_at(wanted, "uid"), ""));
	reading->next = claims->readings;
	claims->readings = reading;
	/* It ends before the kubelet's patience does: 45 s, pkg/kubelet/cm/dra of Kubernetes. */
	reading->call =
		kube_get_within(claims->config.client, &claim_resource,
				json_str_or(json_at(wanted, "namespace"), ""),
				json_str_or(json_at(wanted, "name"), ""), on_claim, reading);
}

struct resource_claims *resource_claims_new(const struct resource_claims_config *config)
{
	struct resource_claims *claims = mem_new(struct resource_claims);

	assert(config->client && config->node && config->read);
	claims->config = *config;
	return claims;
}

void resource_claims_free(struct resource_claims *claims)
{
	if (!claims)
		return;
	while (claims->readings) {
		kube_call_cancel(claims->readings->call);
		reading_free(claims->readings);
	}
	mem_free(claims);
}

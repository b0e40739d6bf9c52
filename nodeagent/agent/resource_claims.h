// SPDX-License-Identifier: Apache-2.0
/* Reading ResourceClaims of the API server for kubeletd, which knows no API server. */
#pragma once

#include <jansson.h>

#include "lib/kube/client.h"

struct resource_claims;

struct resource_claims_config {
	struct kube_client *client;
	const char *node; /* borrowed */
	/*
	 * What resource_claims_read() asked for: `claim`, borrowed, is of dra_claim_read(); NULL
	 * with why. From the loop.
	 */
	void (*read)(void *arg, const char *uid, const json_t *claim, const struct err *why);
	void *arg;
};

struct resource_claims *resource_claims_new(const struct resource_claims_config *config);
/* Before the client. What is under way is dropped. Accepts NULL. */
void resource_claims_free(struct resource_claims *claims);

/* wanted: {"namespace", "name", "uid"}, borrowed. */
void resource_claims_read(struct resource_claims *claims, const json_t *wanted);

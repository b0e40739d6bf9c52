// SPDX-License-Identifier: Apache-2.0
/*
 * Health of claims' devices for kubelets that ask for it (KEP-4680): streams of whole lists, which
 * the kubelet shows in containerStatuses[].allocatedResourcesStatus of pods. A kubelet calls a
 * device Unknown that it has not heard of for 30 s, so lists are sent again before, for as long as
 * they are known to be true.
 */
#pragma once

#include <jansson.h>

#include "lib/loop/loop.h"

struct dra_health;
struct grpc_call;

struct dra_health *dra_health_new(struct loop *loop);
/* Streams end with the server that they came by, not here: it is closed before. Accepts NULL. */
void dra_health_free(struct dra_health *health);

/* A stream of NodeWatchResources has begun; it gets what is known, now and from now on. */
void dra_health_watch(struct dra_health *health, struct grpc_call *call);

/*
 * What is true from now on, of dra_claims_health(), taken; NULL: it is not known, and nothing is
 * sent until it is.
 */
void dra_health_set(struct dra_health *health, json_t *devices);

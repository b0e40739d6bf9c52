// SPDX-License-Identifier: Apache-2.0
/*
 * What every test program that talks to an API server starts with: a loop, a configuration and a
 * client.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/kube/api.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"
#include "lib/loop/loop.h"

struct connection {
	struct loop *loop;
	struct kube_config config;
	struct kube_client *client;
};

/*
 * kubeconfig as in struct kube_config_source; NULL looks around. json_init comes before.
 * Errors: those of kube_config_load. On failure there is nothing to close.
 */
int connection_open(struct connection *s, const char *kubeconfig, struct err *err);

/* Whatever uses the loop or the client must have been freed before. */
void connection_close(struct connection *s);

/* A kind of reconcilers/core/kinds.h as a resource. The id must be known. */
struct kube_resource connection_resource(const char *kind_id);

// SPDX-License-Identifier: Apache-2.0
/*
 * What the other users of libcurl in this folder share with a client: where it goes, and who it is.
 */
#ifndef ORBWEAVER_LIB_KUBE_CLIENT_INTERNAL_H
#define ORBWEAVER_LIB_KUBE_CLIENT_INTERNAL_H

#include "lib/kube/auth/credentials.h"
#include "lib/kube/client.h"
#include "lib/kube/handle.h"

/* Borrowed; valid as long as the client. */
struct client_parts {
	struct loop *loop;
	const struct kube_config *config;
	struct kube_credentials *credentials;
	struct handle_pool *handles;
};

struct client_parts client_parts(struct kube_client *client);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What an API server's answer to GET /version means to an operator that starts.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/kube/client.h"

struct server_version {
	/*
	 * There is a server that serves us. False: ask again, since nothing else would work either.
	 * A refusal is an answer: a proxy may pass the API groups alone (404), or the right to read
	 * it be missing (403).
	 */
	bool is_there;
	/*
	 * It may have been a proxy without its server: kinds that an API server has for sure would
	 * count as absent. 403 is an API server's own word.
	 */
	bool needs_proof;
	int64_t minor; /* of 1.minor; 0: it does not say */
	char text[64]; /* gitVersion, as it says it; "?" */
};

/* As kube_done_fn is called; err NULL: 2xx. */
struct server_version server_version_read(const struct kube_response *response,
					  const struct err *err);

// SPDX-License-Identifier: Apache-2.0
/* What it means that curl could not transfer: one error for each of its codes. */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"

/*
 * curl_text: of CURLOPT_ERRORBUFFER, "" if there is none. code is not CURLE_OK. Returns -1.
 * ERR_TRANSIENT:
 *   "ServerUnreachable": no connection came about
 *   "ServerUntrusted": the server's certificate is not of the authority that the configuration
 *   names
 *   "TlsFailed": TLS was refused, by either side
 *   "ConnectionLost": everything else
 */
int transfer_err(const struct kube_config *config, const struct kube_request *request,
		 CURLcode code, const char *curl_text, struct err *err);

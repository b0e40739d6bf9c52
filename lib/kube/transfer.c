// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/transfer.h"

#include <string.h>

#include "lib/base/str.h"

/*
 * curl's words without " after 12 ms": the same trouble has the same text each time, so that a
 * caller reports it once per different text.
 */
static char *stable_text(CURLcode code, const char *curl_text)
{
	static const char *const units[] = {" ms", " milliseconds"};
	const char *text = curl_text[0] ? curl_text : curl_easy_strerror(code);
	const char *duration = strstr(text, " after ");
	const char *unit = duration ? duration + strlen(" after ") : "";

	unit += strspn(unit, "0123456789");
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (str_starts(unit, units[i]))
			return str_printf("%.*s%s", (int)(duration - text), text,
					  unit + strlen(units[i]));
	return str_dup(text);
}

int transfer_err(const struct kube_config *config, const struct kube_request *request,
		 CURLcode code, const char *curl_text, struct err *err)
{
	auto_free char *text = stable_text(code, curl_text);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_PROXY:
	/* of connecting: the call's own time is not curl's business */
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(err, ERR_TRANSIENT, "ServerUnreachable",
			       "cannot reach the API server %s (%s): %s", config->server,
			       config->origin, text);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(
			err, ERR_TRANSIENT, "ServerUntrusted",
			"the API server %s is not who %s says: %s; check certificate-authority "
			"and tls-server-name",
			config->server, config->origin, text);
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
		return err_set(err, ERR_TRANSIENT, "TlsFailed",
			       "TLS with the API server %s (%s): %s", config->server,
			       config->origin, text);
	default:
		return err_set(err, ERR_TRANSIENT, "ConnectionLost", "%s %s: %s", request->method,
			       request->path, text);
	}
}

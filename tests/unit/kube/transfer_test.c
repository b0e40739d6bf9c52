// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"

#include "lib/kube/transfer.h"

static const struct kube_config config = {
	.server = (char *)"https://server:6443",
	.origin = (char *)"/etc/config",
};
static const struct kube_request request = {.method = "GET", .path = "/api/v1/nodes"};

TEST(each_failure_of_curl_has_a_reason_and_names_the_server)
{
	static const struct {
		CURLcode code;
		const char *curl_text, *reason, *text;
	} cases[] = {
		{CURLE_COULDNT_CONNECT, "Connection refused", "ServerUnreachable",
		 "cannot reach the API server https://server:6443 (/etc/config): Connection "
		 "refused"},
		{CURLE_COULDNT_RESOLVE_PROXY, "no such proxy", "ServerUnreachable",
		 "cannot reach the API server https://server:6443 (/etc/config): no such proxy"},
		{CURLE_PEER_FAILED_VERIFICATION, "self-signed", "ServerUntrusted",
		 "the API server https://server:6443 is not who /etc/config says: self-signed; "
		 "check "
		 "certificate-authority and tls-server-name"},
		{CURLE_SSL_CONNECT_ERROR, "handshake failure", "TlsFailed",
		 "TLS with the API server https://server:6443 (/etc/config): handshake failure"},
		{CURLE_RECV_ERROR, "reset by peer", "ConnectionLost",
		 "GET /api/v1/nodes: reset by peer"},
		{CURLE_RECV_ERROR, "", "ConnectionLost",
		 "GET /api/v1/nodes: Failure when receiving data from the peer"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		assert_int_equal(
			transfer_err(&config, &request, cases[i].code, cases[i].curl_text, &err),
			-1);
		assert_int_equal(err.class, ERR_TRANSIENT);
		assert_string_equal(err.reason, cases[i].reason);
		assert_string_equal(err.text, cases[i].text);
	}
}

TEST(the_same_trouble_has_the_same_text_however_long_it_took)
{
	static const char *const texts[] = {
		"Failed to connect after 12 ms: refused",
		"Failed to connect after 7 milliseconds: refused",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err err = {0};

		(void)transfer_err(&config, &request, CURLE_RECV_ERROR, texts[i], &err);
		assert_string_equal(err.text, "GET /api/v1/nodes: Failed to connect: refused");
	}
}

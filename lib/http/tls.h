// SPDX-License-Identifier: Apache-2.0
/* Our certificate and key in OpenSSL's hands. Internal to lib/http. */
#pragma once

#include <openssl/ssl.h>

#include "lib/base/err.h"
#include "lib/http/server.h"

/* A certificate, the intermediates that go with it, and the key. All zero is empty. */
struct tls_pair {
	X509 *leaf;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

/*
 * Read both from PEM text and check that they belong together. Errors: ERR_INVALID
 * "BadCertificate".
 */
int tls_pair_parse(const char *certificate_pem, const char *key_pem, struct tls_pair *ret,
		   struct err *err);
void tls_pair_done(struct tls_pair *pair);

/*
 * A server's context: no sessions kept, no renegotiation, this certificate (the leaf first, then
 * intermediates) and key, this policy. Returns new; SSL_CTX_free(). Errors: those of
 * http_tls_policy_check, and
 *
 *	ERR_INVALID "BadCertificate"  not PEM, a key with a pass phrase, or the key is not the
 *                                    certificate's
 */
SSL_CTX *tls_new(const char *certificate_pem, const char *key_pem,
		 const struct http_tls_policy *policy, struct err *err);

/*
 * Our certificate and key in OpenSSL's hands. Internal to lib/http.
 */
#ifndef ORBWEAVER_LIB_HTTP_TLS_H
#define ORBWEAVER_LIB_HTTP_TLS_H

#include <openssl/ssl.h>

#include "lib/base/err.h"

/* A certificate, the intermediates that go with it, and the key. All zero is empty. */
struct tls_pair {
	X509 *leaf;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

/*
 * Read both from PEM text and check that they belong together. Errors: ERR_INVALID "BadCertificate".
 */
int tls_pair_parse(const char *certificate_pem, const char *key_pem, struct tls_pair *ret,
		   struct err *err);
void tls_pair_done(struct tls_pair *pair);

/* How our servers speak TLS: 1.2 or newer, no sessions kept, no renegotiation. */
void tls_configure(SSL_CTX *ctx);

/* Use the pair for connections that begin from now on; on failure ctx keeps what it had. */
int tls_use_pair(SSL_CTX *ctx, const struct tls_pair *pair, struct err *err);

#endif

/*
 * libwebsockets could load certificates itself, but says why not only in its log, and cannot replace what it was given
 * in memory. So it gets a context without a certificate, and we fill it here, the same way at the start and later.
 */
#include "lib/http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>

static int bad_certificate(const char *what, struct err *err)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return err_set(err, ERR_INVALID, "BadCertificate", "%s%s%s", what, why ? ": " : "",
		       why ? why : "");
}

/* Without this OpenSSL would ask for a pass phrase on the terminal. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

/* The next certificate, NULL at the end of the text and for one that is not readable. */
static X509 *next_certificate(BIO *bio, bool *ret_broken)
{
	X509 *cert = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL);

	*ret_broken = !cert && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
	return cert;
}

static int parse_chain(const char *pem, struct tls_pair *pair, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	bool broken;
	X509 *cert;

	ERR_clear_error();
	pair->chain = sk_X509_new_null();
	pair->leaf = next_certificate(bio, &broken);
	for (cert = NULL; pair->leaf && !broken; cert = NULL) {
		cert = next_certificate(bio, &broken);
		if (!cert)
			break;
		sk_X509_push(pair->chain, cert);
	}
	BIO_free(bio);
	if (broken)
		return bad_certificate("certificate: not readable", err);
	ERR_clear_error();
	if (!pair->leaf)
		return bad_certificate("certificate: no PEM block \"CERTIFICATE\" in it", err);
	return 0;
}

static int parse_key(const char *pem, struct tls_pair *pair, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);

	ERR_clear_error();
	pair->key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL);
	BIO_free(bio);
	if (!pair->key)
		return bad_certificate("key: not a private key in PEM without pass phrase", err);
	if (X509_check_private_key(pair->leaf, pair->key) != 1)
		return bad_certificate("the key is not the certificate's", err);
	return 0;
}

int tls_pair_parse(const char *certificate_pem, const char *key_pem, struct tls_pair *ret,
		   struct err *err)
{
	struct tls_pair pair = {0};

	if (parse_chain(certificate_pem, &pair, err) < 0 || parse_key(key_pem, &pair, err) < 0) {
		tls_pair_done(&pair);
		return -1;
	}
	*ret = pair;
	return 0;
}

void tls_pair_done(struct tls_pair *pair)
{
	X509_free(pair->leaf);
	sk_X509_pop_free(pair->chain, X509_free);
	EVP_PKEY_free(pair->key);
	memset(pair, 0, sizeof(*pair));
}

void tls_configure(SSL_CTX *ctx)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
	/* Clients keep their connection; remembering thousands of sessions would only cost memory. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	/* libwebsockets would take ALPN's "http/1.1" as an order to speak it. Without an answer all clients do. */
	SSL_CTX_set_alpn_select_cb(ctx, NULL, NULL);
}

int tls_use_pair(SSL_CTX *ctx, const struct tls_pair *pair, struct err *err)
{
	ERR_clear_error();
	if (SSL_CTX_use_cert_and_key(ctx, pair->leaf, pair->key, pair->chain, 1) != 1)
		return bad_certificate("certificate: refused by OpenSSL", err);
	return 0;
}

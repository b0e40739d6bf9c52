// SPDX-License-Identifier: Apache-2.0
/*
 * PEM text to an SSL_CTX. A new certificate means a new context: connections keep the one that they
 * began with.
 */
#include "lib/http/tls.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

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

	assert(certificate_pem && key_pem && ret);
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

/* ---- policy ---------------------------------------------------------------------------------- */

static int use_versions(SSL_CTX *ctx, const char *name, struct err *err)
{
	int version = TLS1_2_VERSION;

	if (str_eq(name, "VersionTLS13"))
		version = TLS1_3_VERSION;
	else if (name && !str_eq(name, "VersionTLS12"))
		return err_set(err, ERR_INVALID, "BadTlsVersion",
			       "%s: must be VersionTLS12 or VersionTLS13", name);
	SSL_CTX_set_min_proto_version(ctx, version);
	return 0;
}

/*
 * OpenSSL's name of a suite; NULL: not known. Go, and so Kubernetes, had two names without the hash
 * function that the registry puts behind them.
 */
static const char *suite_name(const char *iana)
{
	auto_free char *with_hash = str_printf("%s_SHA256", iana);
	const char *name = OPENSSL_cipher_name(iana);

	if (str_eq(name, "(NONE)") && str_ends(iana, "_CHACHA20_POLY1305"))
		name = OPENSSL_cipher_name(with_hash);
	return str_eq(name, "(NONE)") ? NULL : name;
}

/* One suite to the list that it belongs to. */
static int add_suite(const char *iana, struct strbuf *tls12, struct strbuf *tls13, struct err *err)
{
	/*
	 * Suites of 1.3 say nothing of how keys are agreed on (RFC 8446 section B.4), and keep
	 * their names.
	 */
	bool is_13 = str_starts(iana, "TLS_") && !strstr(iana, "_WITH_");
	const char *name = suite_name(iana);
	struct strbuf *list = is_13 ? tls13 : tls12;

	if (!name)
		return err_set(err, ERR_INVALID, "BadCipherSuite",
			       "\"%s\" is not known; write names of the IANA registry, for example "
			       "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
			       iana);
	strbuf_addf(list, "%s%s", list->len ? ":" : "", name);
	return 0;
}

static int use_suites(SSL_CTX *ctx, const char *names, struct err *err)
{
	auto_free char *copy = str_dup(names);
	auto_strbuf struct strbuf tls12 = {0};
	auto_strbuf struct strbuf tls13 = {0};
	char *rest = copy;

	while (rest) {
		const char *name = strsep(&rest, ",");

		if (add_suite(name, &tls12, &tls13, err) < 0)
			return -1;
	}
	ERR_clear_error();
	/* Names that are known and too weak for OpenSSL leave a list that is empty, or shorter. */
	if ((tls12.len > 0 && SSL_CTX_set_cipher_list(ctx, tls12.data) != 1) ||
	    (tls13.len > 0 && SSL_CTX_set_ciphersuites(ctx, tls13.data) != 1)) {
		ERR_clear_error();
		return err_set(err, ERR_INVALID, "BadCipherSuite",
			       "OpenSSL offers none of %s: name others", names);
	}
	if (tls12.len == 0)
		SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	return 0;
}

static int use_client_ca(SSL_CTX *ctx, const char *pem, struct err *err)
{
	auto_call(tls_pair_done) struct tls_pair authorities = {0};
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);

	if (parse_chain(pem, &authorities, err) < 0)
		return err_in(err, "authorities of clients");
	X509_STORE_add_cert(store, authorities.leaf);
	SSL_CTX_add_client_CA(ctx, authorities.leaf);
	for (int i = 0; i < sk_X509_num(authorities.chain); i++) {
		X509_STORE_add_cert(store, sk_X509_value(authorities.chain, i));
		SSL_CTX_add_client_CA(ctx, sk_X509_value(authorities.chain, i));
	}
	ERR_clear_error();
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

/* ---- context --------------------------------------------------------------------------------- */

/* Without a certificate. Returns new. */
static SSL_CTX *new_context(const struct http_tls_policy *policy, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		mem_exhausted();
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
	/*
	 * Clients keep their connection; remembering thousands of sessions would only cost memory.
	 */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	if (use_versions(ctx, policy->min_version, err) == 0 &&
	    (!policy->cipher_suites || use_suites(ctx, policy->cipher_suites, err) == 0) &&
	    (!policy->client_ca_pem || use_client_ca(ctx, policy->client_ca_pem, err) == 0))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

int http_tls_policy_check(const struct http_tls_policy *policy, struct err *err)
{
	SSL_CTX *ctx = new_context(policy, err);

	SSL_CTX_free(ctx);
	return ctx ? 0 : -1;
}

SSL_CTX *tls_new(const char *certificate_pem, const char *key_pem,
		 const struct http_tls_policy *policy, struct err *err)
{
	auto_call(tls_pair_done) struct tls_pair pair = {0};
	SSL_CTX *ctx = NULL;

	if (!certificate_pem || !key_pem) {
		(void)err_set(err, ERR_INVALID, "BadCertificate",
			      "a certificate needs its key, and a key its certificate");
		return NULL;
	}
	if (tls_pair_parse(certificate_pem, key_pem, &pair, err) < 0)
		return NULL;
	ctx = new_context(policy, err);
	if (!ctx)
		return NULL;
	ERR_clear_error();
	if (SSL_CTX_use_cert_and_key(ctx, pair.leaf, pair.key, pair.chain, 1) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	(void)bad_certificate("certificate: refused by OpenSSL", err);
	return NULL;
}

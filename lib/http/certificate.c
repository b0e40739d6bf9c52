// SPDX-License-Identifier: Apache-2.0
/*
 * X.509 version 3 as RFC 5280 wants it and Go's crypto/x509, which is what API servers use, checks
 * it: names only in subjectAltName, key identifiers, an authority that may sign servers and nothing
 * below them.
 */
#include "lib/http/certificate.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/http/tls.h"

enum { SERIAL_BITS = 127 };

OWN_DEFINE(X509, X509_free)
OWN_DEFINE(EVP_PKEY, EVP_PKEY_free)
OWN_DEFINE(BIGNUM, BN_free)
OWN_DEFINE(BIO, BIO_free)
OWN_DEFINE(GENERAL_NAMES, GENERAL_NAMES_free)
OWN_DEFINE(ASN1_OCTET_STRING, ASN1_OCTET_STRING_free)
OWN_DEFINE(X509_STORE, X509_STORE_free)
OWN_DEFINE(X509_STORE_CTX, X509_STORE_CTX_free)

void certificate_set_done(struct certificate_set *set)
{
	free(set->authority_pem);
	free(set->certificate_pem);
	if (set->key_pem)
		explicit_bzero(set->key_pem, strlen(set->key_pem));
	free(set->key_pem);
	memset(set, 0, sizeof(*set));
}

/* What OpenSSL says about the last thing that it could not do. */
static int crypto_failed(const char *what, struct err *err)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return err_set(err, ERR_HOST, "CertificateFailed", "%s: %s", what,
		       why ? why : "OpenSSL says no reason");
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_dns_name(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len <= 253 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
		       len &&
	       name[0] != '.' && name[0] != '-' && name[len - 1] != '-' && !strstr(name, "..");
}

/* Returns new, or NULL when the name is neither. */
static GENERAL_NAME *new_general_name(const char *name)
{
	auto_call(ASN1_OCTET_STRING_free_p) ASN1_OCTET_STRING *address = a2i_IPADDRESS(name);
	ASN1_IA5STRING *text = NULL;
	GENERAL_NAME *general = NULL;

	ERR_clear_error();
	if (!address && !is_dns_name(name))
		return NULL;
	general = GENERAL_NAME_new();
	if (address) {
		GENERAL_NAME_set0_value(general, GEN_IPADD, take_ptr(address));
		return general;
	}
	text = ASN1_IA5STRING_new();
	ASN1_STRING_set(text, name, -1);
	GENERAL_NAME_set0_value(general, GEN_DNS, text);
	return general;
}

static int add_alternative_names(X509 *cert, const struct certificate_order *order, struct err *err)
{
	auto_call(GENERAL_NAMES_free_p) GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();

	for (size_t i = 0; i < order->n_names; i++) {
		GENERAL_NAME *name = new_general_name(order->names[i]);

		if (!name)
			return err_set(
				err, ERR_INVALID, "BadName",
				"certificate: name \"%s\": must be a DNS name or an IP address",
				order->names[i]);
		sk_GENERAL_NAME_push(names, name);
	}
	if (X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_APPEND) != 1)
		return crypto_failed("certificate: subjectAltName", err);
	return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

/*
 * 0 is the empty serial number, which RFC 5280 forbids; with 127 random bits it does not come up.
 */
static int set_serial(X509 *cert)
{
	auto_call(BN_free_p) BIGNUM *serial = BN_new();

	return BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
	       BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)) != NULL;
}

static int set_validity(X509 *cert, const struct certificate_order *order)
{
	return ASN1_TIME_set(X509_getm_notBefore(cert), order->not_before_s) != NULL &&
	       ASN1_TIME_set(X509_getm_notAfter(cert), order->not_after_s) != NULL;
}

static int set_subject(X509 *cert, const char *common_name)
{
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
					  (const unsigned char *)common_name, -1, -1, 0) == 1;
}

/* value as in x509v3_config(5). */
static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension = NULL;
	int added = 0;

	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	if (!extension)
		return 0;
	added = X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
	return added;
}

/* What authority and server certificate have in common. NULL with err set. */
static X509 *new_certificate(const struct certificate_order *order, const char *common_name,
			     EVP_PKEY *key, struct err *err)
{
	auto_call(X509_free_p) X509 *cert = X509_new();

	if (X509_set_version(cert, X509_VERSION_3) != 1 || !set_serial(cert) ||
	    !set_validity(cert, order) || !set_subject(cert, common_name) ||
	    X509_set_pubkey(cert, key) != 1) {
		crypto_failed("certificate: cannot be made", err);
		return NULL;
	}
	return take_ptr(cert);
}

static X509 *new_authority(const struct certificate_order *order, EVP_PKEY *key, struct err *err)
{
	auto_free char *common_name = str_printf("%s CA", order->common_name);
	auto_call(X509_free_p) X509 *cert = new_certificate(order, common_name, key, err);

	if (!cert)
		return NULL;
	if (X509_set_issuer_name(cert, X509_get_subject_name(cert)) != 1 ||
	    !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign") ||
	    !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
	    X509_sign(cert, key, EVP_sha256()) == 0) {
		crypto_failed("certificate: the authority cannot be made", err);
		return NULL;
	}
	return take_ptr(cert);
}

static X509 *new_server(const struct certificate_order *order, EVP_PKEY *key, X509 *authority,
			EVP_PKEY *authority_key, struct err *err)
{
	auto_call(X509_free_p) X509 *cert = new_certificate(order, order->common_name, key, err);

	if (!cert || add_alternative_names(cert, order, err) < 0)
		return NULL;
	if (X509_set_issuer_name(cert, X509_get_subject_name(authority)) != 1 ||
	    !add_extension(cert, authority, NID_basic_constraints, "critical,CA:FALSE") ||
	    !add_extension(cert, authority, NID_key_usage, "critical,digitalSignature") ||
	    !add_extension(cert, authority, NID_ext_key_usage, "serverAuth") ||
	    !add_extension(cert, authority, NID_subject_key_identifier, "hash") ||
	    !add_extension(cert, authority, NID_authority_key_identifier, "keyid:always") ||
	    X509_sign(cert, authority_key, EVP_sha256()) == 0) {
		crypto_failed("certificate: cannot be signed", err);
		return NULL;
	}
	return take_ptr(cert);
}

/* ---- PEM ------------------------------------------------------------------------------------- */

static char *take_text(BIO *bio)
{
	char *data = NULL;
	long len = BIO_get_mem_data(bio, &data);

	return str_ndup(data, (size_t)len);
}

static char *certificate_text(X509 *cert)
{
	auto_call(BIO_free_p) BIO *bio = BIO_new(BIO_s_mem());

	return PEM_write_bio_X509(bio, cert) == 1 ? take_text(bio) : NULL;
}

/* The secure heap's BIO wipes what it held. */
static char *key_text(EVP_PKEY *key)
{
	auto_call(BIO_free_p) BIO *bio = BIO_new(BIO_s_secmem());

	return PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1
		       ? take_text(bio)
		       : NULL;
}

int certificate_issue(const struct certificate_order *order, struct certificate_set *ret,
		      struct err *err)
{
	auto_call(EVP_PKEY_free_p) EVP_PKEY *authority_key = NULL;
	auto_call(EVP_PKEY_free_p) EVP_PKEY *key = NULL;
	auto_call(X509_free_p) X509 *authority = NULL;
	auto_call(X509_free_p) X509 *cert = NULL;
	auto_certificate_set struct certificate_set set = {0};

	assert(order && ret);
	ERR_clear_error();
	if (order->n_names == 0)
		return err_set(err, ERR_INVALID, "BadName",
			       "certificate: no name that clients call the server by");
	if (str_empty(order->common_name) ||
	    strlen(order->common_name) + strlen(" CA") > CERTIFICATE_COMMON_NAME_MAX)
		return err_set(err, ERR_INVALID, "BadName",
			       "certificate: common name \"%s\": must have 1 to %zu bytes",
			       order->common_name ? order->common_name : "",
			       CERTIFICATE_COMMON_NAME_MAX - strlen(" CA"));
	if (order->not_after_s <= order->not_before_s)
		return err_set(err, ERR_INVALID, "BadValidity",
			       "certificate: valid until %lld: must be later than its begin, %lld",
			       (long long)order->not_after_s, (long long)order->not_before_s);
	authority_key = EVP_EC_gen("P-256");
	key = EVP_EC_gen("P-256");
	if (!authority_key || !key)
		return crypto_failed("certificate: no key", err);
	authority = new_authority(order, authority_key, err);
	if (!authority)
		return -1;
	cert = new_server(order, key, authority, authority_key, err);
	if (!cert)
		return -1;
	set.authority_pem = certificate_text(authority);
	set.certificate_pem = certificate_text(cert);
	set.key_pem = key_text(key);
	if (!set.authority_pem || !set.certificate_pem || !set.key_pem)
		return crypto_failed("certificate: cannot be written as PEM", err);
	*ret = set;
	memset(&set, 0, sizeof(set));
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t seconds_of(const ASN1_TIME *time)
{
	struct tm parts = {0};

	return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

/* Without this OpenSSL would ask for a pass phrase on the terminal. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

int certificate_validity(const char *pem, int64_t *ret_not_before_s, int64_t *ret_not_after_s,
			 struct err *err)
{
	auto_call(BIO_free_p) BIO *bio = BIO_new_mem_buf(pem, -1);
	auto_call(X509_free_p) X509 *cert = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL);

	ERR_clear_error();
	if (!cert)
		return err_set(err, ERR_INVALID, "BadCertificate",
			       "certificate: must be a PEM block \"CERTIFICATE\"");
	if (ret_not_before_s)
		*ret_not_before_s = seconds_of(X509_get0_notBefore(cert));
	if (ret_not_after_s)
		*ret_not_after_s = seconds_of(X509_get0_notAfter(cert));
	return 0;
}

/* Returns new, or NULL with err set. */
static X509_STORE *new_trust(const char *authorities_pem, struct err *err)
{
	auto_call(BIO_free_p) BIO *bio = BIO_new_mem_buf(authorities_pem, -1);
	auto_call(X509_STORE_free_p) X509_STORE *store = X509_STORE_new();
	X509 *cert = NULL;
	size_t n = 0;

	while ((cert = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL))) {
		X509_STORE_add_cert(store, cert);
		X509_free(cert);
		n++;
	}
	if (n > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
		ERR_clear_error();
		return take_ptr(store);
	}
	ERR_clear_error();
	err_set(err, ERR_INVALID, "BadCertificate",
		"authorities: must be one or more PEM blocks \"CERTIFICATE\"");
	return NULL;
}

int certificate_verify(const char *certificate_pem, const char *key_pem,
		       const char *authorities_pem, const char *name, int64_t at_s, struct err *err)
{
	auto_call(X509_STORE_free_p) X509_STORE *trust = new_trust(authorities_pem, err);
	auto_call(tls_pair_done) struct tls_pair pair = {0};
	auto_call(X509_STORE_CTX_free_p) X509_STORE_CTX *context = NULL;
	X509_VERIFY_PARAM *param = NULL;

	if (!trust || tls_pair_parse(certificate_pem, key_pem, &pair, err) < 0)
		return -1;
	context = X509_STORE_CTX_new();
	if (X509_STORE_CTX_init(context, trust, pair.leaf, pair.chain) != 1)
		return crypto_failed("certificate: cannot be checked", err);
	param = X509_STORE_CTX_get0_param(context);
	X509_VERIFY_PARAM_set_time(param, at_s);
	if (X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER) != 1 ||
	    (X509_VERIFY_PARAM_set1_ip_asc(param, name) != 1 &&
	     X509_VERIFY_PARAM_set1_host(param, name, 0) != 1))
		return crypto_failed("certificate: cannot be checked", err);
	/* That the name was no address is not an error. */
	ERR_clear_error();
	if (X509_verify_cert(context) == 1)
		return 0;
	ERR_clear_error();
	return err_set(err, ERR_INVALID, "CertificateRefused", "certificate for %s: %s", name,
		       X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)));
}

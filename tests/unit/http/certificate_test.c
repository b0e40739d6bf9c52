// SPDX-License-Identifier: Apache-2.0
/*
 * Certificates of our own making, judged by OpenSSL's own verification and by what API servers
 * insist on.
 */
#include "tests/support/test.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/http/certificate.h"

#define BEGIN_S INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
#define DAY_S   INT64_C(86400)
#define END_S   (BEGIN_S + 90 * DAY_S)
#define SERVICE "orbweaver-webhook.orbweaver-system.svc"

static const char *const names[] = {SERVICE, "127.0.0.1", "::1"};

static const struct certificate_order order = {
	.common_name = "orbweaver webhook",
	.names = names,
	.n_names = ARRAY_LEN(names),
	.not_before_s = BEGIN_S,
	.not_after_s = END_S,
};

static void issue(struct certificate_set *set)
{
	struct err err = {0};

	if (certificate_issue(&order, set, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ERR_peek_error(), 0);
}

static X509 *parsed(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	BIO_free(bio);
	assert_non_null(cert);
	return cert;
}

static int verify(const struct certificate_set *set, const char *authorities, const char *name,
		  int64_t at_s, struct err *err)
{
	int result = certificate_verify(set->certificate_pem, set->key_pem, authorities, name, at_s,
					err);

	assert_int_equal(ERR_peek_error(), 0);
	return result;
}

TEST(serves_each_of_its_names)
{
	auto_certificate_set struct certificate_set set = {0};

	issue(&set);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct err err = {0};

		if (verify(&set, set.authority_pem, names[i], BEGIN_S + DAY_S, &err) < 0)
			fail_msg("%s", err.text);
	}
}

TEST(is_refused_where_a_client_would_refuse_it)
{
	auto_certificate_set struct certificate_set set = {0}, other = {0};
	const struct {
		const struct certificate_set *trusts;
		const char *name;
		int64_t at_s;
		const char *text;
	} cases[] = {
		{&set, SERVICE, BEGIN_S - 1, "certificate is not yet valid"},
		{&set, SERVICE, END_S + 1, "certificate has expired"},
		{&set, "elsewhere.example.com", BEGIN_S + 1, "hostname mismatch"},
		{&set, "127.0.0.2", BEGIN_S + 1, "IP address mismatch"},
		{&other, SERVICE, BEGIN_S + 1, "unable to get local issuer certificate"},
	};

	issue(&set);
	issue(&other);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_int_equal(verify(&set, cases[i].trusts->authority_pem, cases[i].name,
					cases[i].at_s, &err),
				 -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "CertificateRefused");
		if (!strstr(err.text, cases[i].name) || !strstr(err.text, cases[i].text))
			fail_msg("%s", err.text);
	}
}

TEST(a_bundle_of_several_authorities_accepts_what_each_signed)
{
	auto_certificate_set struct certificate_set old = {0}, next = {0};
	auto_free char *bundle = NULL;

	issue(&old);
	issue(&next);
	bundle = str_printf("%s%s", next.authority_pem, old.authority_pem);
	assert_int_equal(verify(&old, bundle, SERVICE, BEGIN_S + 1, NULL), 0);
	assert_int_equal(verify(&next, bundle, SERVICE, BEGIN_S + 1, NULL), 0);
}

TEST(a_key_of_another_certificate_is_told)
{
	auto_certificate_set struct certificate_set one = {0}, other = {0};
	struct err err = {0};

	issue(&one);
	issue(&other);
	assert_int_equal(certificate_verify(one.certificate_pem, other.key_pem, one.authority_pem,
					    SERVICE, BEGIN_S + 1, &err),
			 -1);
	assert_string_equal(err.text, "the key is not the certificate's: key values mismatch");
}

TEST(the_certificate_may_serve_and_nothing_else)
{
	auto_certificate_set struct certificate_set set = {0};
	X509 *cert = NULL, *authority = NULL;

	issue(&set);
	cert = parsed(set.certificate_pem);
	authority = parsed(set.authority_pem);
	assert_int_equal(X509_get_version(cert), X509_VERSION_3);
	assert_int_equal(X509_check_ca(cert), 0);
	assert_int_equal(X509_check_purpose(cert, X509_PURPOSE_SSL_SERVER, 0), 1);
	assert_int_equal(X509_check_purpose(cert, X509_PURPOSE_SSL_CLIENT, 0), 0);
	assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_check_ca(authority), 1);
	assert_int_equal(X509_get_key_usage(authority), KU_KEY_CERT_SIGN);
	assert_int_equal(X509_get_pathlen(authority), 0);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
	assert_true(X509_check_issued(authority, cert) == X509_V_OK);
	X509_free(cert);
	X509_free(authority);
}

TEST(no_two_have_a_serial_number_or_key_in_common)
{
	auto_certificate_set struct certificate_set a = {0}, b = {0};
	X509 *certs[4];

	issue(&a);
	issue(&b);
	certs[0] = parsed(a.certificate_pem);
	certs[1] = parsed(b.certificate_pem);
	certs[2] = parsed(a.authority_pem);
	certs[3] = parsed(b.authority_pem);
	for (size_t i = 0; i < ARRAY_LEN(certs); i++)
		for (size_t j = 0; j < i; j++) {
			assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(certs[i]),
							      X509_get0_serialNumber(certs[j])),
					     0);
			assert_int_not_equal(
				EVP_PKEY_eq(X509_get0_pubkey(certs[i]), X509_get0_pubkey(certs[j])),
				1);
		}
	for (size_t i = 0; i < ARRAY_LEN(certs); i++)
		X509_free(certs[i]);
}

TEST(tells_when_it_begins_and_ends)
{
	auto_certificate_set struct certificate_set set = {0};
	int64_t begin = 0, end = 0;
	struct err err = {0};

	issue(&set);
	assert_int_equal(certificate_validity(set.certificate_pem, &begin, &end, NULL), 0);
	assert_int_equal(begin, BEGIN_S);
	assert_int_equal(end, END_S);
	assert_int_equal(certificate_validity(set.authority_pem, NULL, &end, NULL), 0);
	assert_int_equal(end, END_S);
	assert_int_equal(certificate_validity(set.key_pem, &begin, &end, &err), -1);
	assert_string_equal(err.reason, "BadCertificate");
	assert_string_equal(err.text, "certificate: must be a PEM block \"CERTIFICATE\"");
}

TEST(an_impossible_order_is_refused)
{
	static const char *const blank[] = {"a b"}, *const empty[] = {""}, *const dots[] = {"a..b"};
	const struct {
		struct certificate_order order;
		const char *reason, *text;
	} cases[] = {
		{{"x", NULL, 0, 0, 1}, "BadName", "no name that clients call the server by"},
		{{"x", blank, 1, 0, 1},
		 "BadName",
		 "name \"a b\": must be a DNS name or an IP address"},
		{{"x", empty, 1, 0, 1}, "BadName", "name \"\": must be"},
		{{"x", dots, 1, 0, 1}, "BadName", "name \"a..b\": must be"},
		{{"", names, 1, 0, 1}, "BadName", "common name \"\": must have 1 to 61 bytes"},
		{{"a name that is longer than what the subject of a certificate takes", names, 1, 0,
		  1},
		 "BadName",
		 "must have 1 to 61 bytes"},
		{{"x", names, 1, 5, 5},
		 "BadValidity",
		 "valid until 5: must be later than its begin, 5"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct certificate_set set = {0};
		struct err err = {0};

		assert_int_equal(certificate_issue(&cases[i].order, &set, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, cases[i].reason);
		if (!strstr(err.text, cases[i].text))
			fail_msg("%s", err.text);
		assert_null(set.key_pem);
	}
}

TEST(what_openssl_cannot_do_has_its_words)
{
	const struct certificate_order not_utf8 = {"\xff", names, 1, 0, 1};
	struct certificate_set set = {0};
	struct err err = {0};

	assert_int_equal(certificate_issue(&not_utf8, &set, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "CertificateFailed");
	assert_non_null(strstr(err.text, "certificate: cannot be made: "));
	assert_null(set.key_pem);
}

TEST(garbage_in_a_bundle_is_told)
{
	auto_certificate_set struct certificate_set set = {0};
	auto_free char *broken = NULL;
	const char *texts[] = {"", "nothing", NULL};

	issue(&set);
	texts[2] = broken = str_printf("%s-----BEGIN CERTIFICATE-----\nAAAA\n-----END "
				       "CERTIFICATE-----\n",
				       set.authority_pem);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err err = {0};

		assert_int_equal(verify(&set, texts[i], SERVICE, BEGIN_S + 1, &err), -1);
		assert_string_equal(err.reason, "BadCertificate");
		assert_string_equal(err.text,
				    "authorities: must be one or more PEM blocks \"CERTIFICATE\"");
	}
}

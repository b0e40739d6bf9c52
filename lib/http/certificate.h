// SPDX-License-Identifier: Apache-2.0
/*
 * Certificates for our own servers: a certificate authority for one occasion and the one
 * certificate that it signs.
 *
 * The API server trusts the authority's certificate (the caBundle of a webhook configuration). The
 * authority's key signs once and is never seen outside of certificate_issue: no other certificate
 * that those callers accept can be made, and there is nothing to keep safe but the server's own
 * key. The next certificate comes with the next authority.
 *
 * Time comes in as an argument. Texts are PEM (RFC 7468), keys PKCS #8 without pass phrase, EC
 * P-256.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

/* ub-common-name of RFC 5280: the most bytes a subject's common name has. */
#define CERTIFICATE_COMMON_NAME_MAX 64

struct certificate_order {
	const char *common_name;  /* for people; the authority's is the same with " CA" behind it */
	const char *const *names; /* that clients call the server by: DNS names and IP addresses */
	size_t n_names;
	int64_t not_before_s, not_after_s; /* since the epoch; of both certificates */
};

struct certificate_set {
	char *authority_pem;
	char *certificate_pem;
	char *key_pem; /* the certificate's */
};

/* Wipes the key. */
void certificate_set_done(struct certificate_set *set);
#define auto_certificate_set auto_call(certificate_set_done)

/*
 * Errors: ERR_INVALID "BadName" (a name that is neither DNS name nor address, or no name at all, or
 * a common name that is too long), "BadValidity" (ends before it begins); ERR_HOST
 * "CertificateFailed" (OpenSSL could not, and why).
 */
int certificate_issue(const struct certificate_order *order, struct certificate_set *ret,
		      struct err *err);

/*
 * When the first certificate of a PEM text begins and ends to be valid, since the epoch; each may
 * be NULL. Errors: ERR_INVALID "BadCertificate".
 */
int certificate_validity(const char *pem, int64_t *ret_not_before_s, int64_t *ret_not_after_s,
			 struct err *err);

/*
 * Would a client that trusts the authorities in authorities_pem (one or more, in any order), and
 * nothing else, at that time accept a server `name` with this certificate and key? Errors:
 * ERR_INVALID "BadCertificate" for what cannot be read or does not belong together,
 * "CertificateRefused" for what such a client would object to.
 */
int certificate_verify(const char *certificate_pem, const char *key_pem,
		       const char *authorities_pem, const char *name, int64_t at_s,
		       struct err *err);

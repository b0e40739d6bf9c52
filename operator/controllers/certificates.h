// SPDX-License-Identifier: Apache-2.0
/*
 * The certificate that webhooks are served with: when it is made, and when it is replaced without a
 * failed call.
 *
 * All replicas serve with one certificate. It is in the Secret CERTIFICATES_SECRET of the
 * operator's namespace, of the type kubernetes.io/tls; the leader writes it, every replica reads
 * it:
 *
 *	tls.crt, tls.key    what is served now
 *	ca.crt              the authorities that API servers have to trust (caBundle), the
 *                          newest first
 *	next.crt, next.key  while it is being replaced: what will be served
 *	annotation orbweaver/published   since when all webhook configurations show the ca.crt that
 *                                       goes with next.*
 *
 * A replacement goes in steps, each a decision of its own that any leader can make from what is
 * stored:
 *
 *	due           two thirds of its life are over: next.* is made, with an authority of its own,
 *                    which is added to ca.crt
 *	published     the webhook configurations show that ca.crt; the API servers get time to
 *                    notice
 *	changed       next.* becomes tls.*; connections that are open stay as they are
 *	dropped       the old authority leaves ca.crt when it has expired; until then a replica that
 *                    missed the change is trusted too
 *
 * A certificate that is of no use (missing, damaged, expired, for other names) is replaced at once.
 *
 * A Secret that does not carry our label app.kubernetes.io/managed-by, or that cert-manager writes,
 * is the user's: what is in its tls.crt, tls.key and ca.crt is served and published as it is,
 * whenever it changes, and nothing is ever written to it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

#define CERTIFICATES_SECRET     "orbweaver-webhook-certificate"
#define CERTIFICATES_PUBLISHED  "orbweaver/published"
#define CERTIFICATES_LIFETIME_S (INT64_C(90) * 24 * 3600)

enum {
	/* Certificates are valid from a little earlier on: clocks differ. */
	CERTIFICATES_BACKDATED_S = 300,
	/*
	 * How long API servers get to notice a new caBundle: a tenth of the certificate's life, but
	 * not more than this.
	 */
	CERTIFICATES_NOTICE_MAX_S = 60,
	/* The clock is looked at again after this time even if nothing is due until then. */
	CERTIFICATES_LOOK_AGAIN_S = 3600,
};

struct certificates_question {
	const char *ns;           /* the operator's */
	const json_t *secret;     /* as it is stored, NULL when there is none */
	const char *const *names; /* that API servers call us by */
	size_t n_names;
	int64_t lifetime_s;
	/*
	 * The caBundle, in base64, that every webhook configuration shows; NULL while they differ
	 * or are missing.
	 */
	const char *published;
	int64_t now_us; /* wall time */
};

struct certificates_answer {
	json_t *secret; /* as it should be; with everything that is ours. NULL: it is the user's */
	/* Its ca.crt, in base64; borrowed from secret, or from the question's. */
	const char *bundle;
	/* What has changed: "made", "due", "published", "changed", "dropped"; NULL: nothing. */
	const char *step;
	int64_t again_ms; /* decide again after this */
};

void certificates_answer_done(struct certificates_answer *answer);
#define auto_certificates_answer auto_call(certificates_answer_done)

/*
 * Pure but for one thing: keys are random. Errors: those of certificate_issue, and for a Secret of
 * the user's
 *
 *	ERR_INVALID "ForeignSecretIncomplete"  tls.crt, tls.key or ca.crt is missing, or no base64
 *	those of certificate_verify            an API server would not accept it now, by one of the
 *                                             names
 */
int certificates_decide(const struct certificates_question *question,
			struct certificates_answer *ret, struct err *err);

/* What to serve with, from the Secret; NULL members when it has none. */
struct certificates_pair {
	char *certificate_pem;
	char *key_pem;
};

void certificates_pair_read(const json_t *secret, struct certificates_pair *ret);
/* Wipes the key. */
void certificates_pair_done(struct certificates_pair *pair);
#define auto_certificates_pair auto_call(certificates_pair_done)

// SPDX-License-Identifier: Apache-2.0
/* The Secret becomes a struct of texts, the steps change it, and it becomes a Secret again. */
#include "operator/controllers/certificates.h"

#include <assert.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/rfc3339.h"
#include "lib/http/certificate.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

#define COMMON_NAME "orbweaver webhook"
#define MANAGED_BY  "app.kubernetes.io/managed-by"
#define PART_OF     "app.kubernetes.io/part-of"
/* On each Secret that cert-manager writes, whatever has made it. */
#define CERT_MANAGER "cert-manager.io/certificate-name"

#define BEGIN_CERTIFICATE "-----BEGIN CERTIFICATE-----"
#define END_CERTIFICATE   "-----END CERTIFICATE-----"

/* Texts are NULL where there is none. */
struct state {
	char *certificate, *key;
	char *next_certificate, *next_key;
	char *authorities;
	int64_t published_us; /* 0: not yet */
};

static void state_done(struct state *state)
{
	char *const keys[] = {state->key, state->next_key};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i])
			explicit_bzero(keys[i], strlen(keys[i]));
	free(state->certificate);
	free(state->key);
	free(state->next_certificate);
	free(state->next_key);
	free(state->authorities);
}

static void replace(char **text, char *with)
{
	free(*text);
	*text = with;
}

/* ---- the Secret ------------------------------------------------------------------------------ */

/* NULL when it is missing, empty, no base64, or holds a NUL. */
static char *data_text(const json_t *secret, const char *name)
{
	const char *encoded = json_str_at(secret, "data", name);
	auto_strbuf struct strbuf text = {0};

	if (str_empty(encoded) || base64_decode(encoded, strlen(encoded), &text, NULL) < 0 ||
	    text.len == 0 || strlen(text.data) != text.len)
		return NULL;
	return strbuf_take(&text);
}

static void state_read(const json_t *secret, struct state *ret)
{
	const char *published =
		json_str_at(secret, "metadata", "annotations", CERTIFICATES_PUBLISHED);

	*ret = (struct state){
		.certificate = data_text(secret, "tls.crt"),
		.key = data_text(secret, "tls.key"),
		.next_certificate = data_text(secret, "next.crt"),
		.next_key = data_text(secret, "next.key"),
		.authorities = data_text(secret, "ca.crt"),
	};
	if (published)
		rfc3339_read(published, &ret->published_us);
}

static void put_data(json_t *data, const char *name, const char *text)
{
	auto_strbuf struct strbuf encoded = {0};

	if (!text)
		return;
	base64_encode(text, strlen(text), &encoded);
	json_put_str(data, name, encoded.data);
}

static json_t *new_secret(const struct certificates_question *q, const struct state *state)
{
	json_t *secret =
		json_pack("{s:{s:s, s:s, s:{s:s, s:s}}, s:s, s:{}}", "metadata", "name",
			  CERTIFICATES_SECRET, "namespace", q->ns, "labels", MANAGED_BY,
			  OPERATOR_NAME, PART_OF, "orbweaver", "type", "kubernetes.io/tls", "data");
	json_t *data = json_at(secret, "data");
	char published[RFC3339_SIZE];

	put_data(data, "tls.crt", state->certificate);
	put_data(data, "tls.key", state->key);
	put_data(data, "ca.crt", state->authorities);
	put_data(data, "next.crt", state->next_certificate);
	put_data(data, "next.key", state->next_key);
	if (state->published_us) {
		rfc3339_write(state->published_us, published);
		json_put_str(json_need_object(json_at(secret, "metadata"), "annotations"),
			     CERTIFICATES_PUBLISHED, published);
	}
	return secret;
}

/* ---- bundles of authorities ------------------------------------------------------------------ */

/* The next PEM block of a bundle, or NULL; *rest moves behind it. Returns new. */
static char *next_block(const char **rest)
{
	const char *begin = *rest ? strstr(*rest, BEGIN_CERTIFICATE) : NULL;
	const char *end = begin ? strstr(begin, END_CERTIFICATE) : NULL;

	if (!end)
		return NULL;
	*rest = end + strlen(END_CERTIFICATE);
	return str_printf("%.*s\n", (int)(*rest - begin), begin);
}

/*
 * The authorities that have not expired, in their order; what is not readable counts as expired.
 * ret_first_end_s: when the first of those that stay expires. Returns new.
 */
static char *valid_authorities(const char *bundle, int64_t now_s, int64_t *ret_first_end_s)
{
	auto_strbuf struct strbuf valid = {0};
	const char *rest = bundle;
	char *block = NULL;

	*ret_first_end_s = INT64_MAX;
	while ((block = next_block(&rest))) {
		int64_t end_s = 0;

		if (certificate_validity(block, NULL, &end_s, NULL) == 0 && end_s > now_s) {
			strbuf_adds(&valid, block);
			*ret_first_end_s = end_s < *ret_first_end_s ? end_s : *ret_first_end_s;
		}
		free(block);
	}
	return strbuf_take(&valid);
}

/* ---- the steps ------------------------------------------------------------------------------- */

struct decision {
	const struct certificates_question *q;
	struct state state;
	int64_t now_s;
	int64_t again_s; /* in seconds from now */
	const char *step;
};

static void look_again_at(struct decision *d, int64_t at_s)
{
	int64_t wait_s = at_s > d->now_s ? at_s - d->now_s : 1;

	if (wait_s < d->again_s)
		d->again_s = wait_s;
}

static bool is_useful(const struct decision *d, const char *certificate, const char *key)
{
	if (!certificate || !key || !d->state.authorities)
		return false;
	for (size_t i = 0; i < d->q->n_names; i++)
		if (certificate_verify(certificate, key, d->state.authorities, d->q->names[i],
				       d->now_s, NULL) < 0)
			return false;
	return true;
}

/* A new certificate into *certificate and *key, its authority in front of the others. */
static int issue(struct decision *d, char **certificate, char **key, struct err *err)
{
	const struct certificate_order order = {
		.common_name = COMMON_NAME,
		.names = d->q->names,
		.n_names = d->q->n_names,
		.not_before_s = d->now_s - CERTIFICATES_BACKDATED_S,
		.not_after_s = d->now_s + d->q->lifetime_s,
	};
	auto_certificate_set struct certificate_set set = {0};
	const char *others = d->state.authorities ? d->state.authorities : "";

	if (certificate_issue(&order, &set, err) < 0)
		return -1;
	replace(&d->state.authorities, str_printf("%s%s", set.authority_pem, others));
	replace(certificate, take_ptr(set.certificate_pem));
	replace(key, take_ptr(set.key_pem));
	return 0;
}

static void forget_next(struct decision *d)
{
	replace(&d->state.next_certificate, NULL);
	replace(&d->state.next_key, NULL);
	d->state.published_us = 0;
}

static int64_t notice_s(const struct certificates_question *q)
{
	int64_t tenth = q->lifetime_s / 10;

	return tenth < CERTIFICATES_NOTICE_MAX_S ? tenth : CERTIFICATES_NOTICE_MAX_S;
}

/* Something is going to be served next: do all API servers have its authority? */
static void go_on_with_next(struct decision *d)
{
	auto_strbuf struct strbuf bundle = {0};
	int64_t ready_s = d->state.published_us / 1000000 + notice_s(d->q);

	base64_encode(d->state.authorities, strlen(d->state.authorities), &bundle);
	if (!str_eq(d->q->published, bundle.data)) {
		d->state.published_us = 0;
		return;
	}
	if (!d->state.published_us || d->state.published_us > d->q->now_us) {
		d->state.published_us = d->q->now_us;
		d->step = "published";
		look_again_at(d, d->now_s + notice_s(d->q));
		return;
	}
	if (d->now_s < ready_s) {
		look_again_at(d, ready_s);
		return;
	}
	replace(&d->state.certificate, take_ptr(d->state.next_certificate));
	replace(&d->state.key, take_ptr(d->state.next_key));
	forget_next(d);
	d->step = "changed";
}

/*
 * When the certificate that is served has lived for two thirds of its time, or of the time that is
 * wanted now.
 */
static int64_t due_s(const struct decision *d)
{
	int64_t begin_s = 0, end_s = 0;
	int64_t by_age, by_end;

	certificate_validity(d->state.certificate, &begin_s, &end_s, NULL);
	by_age = begin_s + CERTIFICATES_BACKDATED_S + d->q->lifetime_s * 2 / 3;
	by_end = end_s - d->q->lifetime_s / 3;
	return by_age < by_end ? by_age : by_end;
}

static int take_steps(struct decision *d, struct err *err)
{
	int64_t first_end_s = 0;
	char *valid = valid_authorities(d->state.authorities, d->now_s, &first_end_s);

	if (d->state.authorities && !str_eq(valid, d->state.authorities))
		d->step = "dropped";
	replace(&d->state.authorities, valid);
	if (first_end_s != INT64_MAX)
		look_again_at(d, first_end_s);
	if (!is_useful(d, d->state.certificate, d->state.key)) {
		forget_next(d);
		d->step = "made";
		if (issue(d, &d->state.certificate, &d->state.key, err) < 0)
			return -1;
	}
	if (!is_useful(d, d->state.next_certificate, d->state.next_key))
		forget_next(d);
	if (d->state.next_certificate)
		go_on_with_next(d);
	if (d->state.next_certificate)
		return 0;
	if (d->now_s < due_s(d)) {
		look_again_at(d, due_s(d));
		return 0;
	}
	d->step = "due";
	return issue(d, &d->state.next_certificate, &d->state.next_key, err);
}

/* ---- somebody else's certificate ------------------------------------------------------------- */

/*
 * Taking over what a user or a certificate manager keeps under this name would be the begin of a
 * quarrel.
 */
static bool is_theirs(const json_t *secret)
{
	const json_t *metadata = json_at(secret, "metadata");

	return secret && (!str_eq(json_str_at(metadata, "labels", MANAGED_BY), OPERATOR_NAME) ||
			  json_at(metadata, "annotations", CERT_MANAGER));
}

/* Serve and publish what is there, if API servers would accept it. */
static int use_theirs(const struct certificates_question *q, const struct state *state,
		      struct certificates_answer *ret, struct err *err)
{
	const struct {
		const char *name, *value;
	} needs[] = {
		{"tls.crt", state->certificate},
		{"tls.key", state->key},
		{"ca.crt", state->authorities},
	};

	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		if (!needs[i].value)
			return err_set(
				err, ERR_INVALID, "ForeignSecretIncomplete",
				"secret %s/%s: data[%s]: is missing or not readable; add it, or "
				"delete the Secret, so that the operator makes its own",
				q->ns, CERTIFICATES_SECRET, needs[i].name);
	for (size_t i = 0; i < q->n_names; i++)
		if (certificate_verify(state->certificate, state->key, state->authorities,
				       q->names[i], q->now_us / 1000000, err) < 0)
			return err_in(err, "secret %s/%s, which is not the operator's", q->ns,
				      CERTIFICATES_SECRET);
	*ret = (struct certificates_answer){
		.bundle = json_str_at(q->secret, "data", "ca.crt"),
		.again_ms = CERTIFICATES_LOOK_AGAIN_S * INT64_C(1000),
	};
	return 0;
}

int certificates_decide(const struct certificates_question *question,
			struct certificates_answer *ret, struct err *err)
{
	struct decision d = {
		.q = question,
		.now_s = question->now_us / 1000000,
		.again_s = CERTIFICATES_LOOK_AGAIN_S,
	};
	int result = 0;

	assert(question && ret);
	state_read(question->secret, &d.state);
	if (is_theirs(question->secret)) {
		result = use_theirs(question, &d.state, ret, err);
		state_done(&d.state);
		return result;
	}
	result = take_steps(&d, err);
	if (result == 0)
		*ret = (struct certificates_answer){
			.secret = new_secret(question, &d.state),
			.step = d.step,
			.again_ms = d.again_s * 1000,
		};
	state_done(&d.state);
	if (result == 0)
		ret->bundle = json_str_at(ret->secret, "data", "ca.crt");
	return result;
}

void certificates_answer_done(struct certificates_answer *answer)
{
	json_decref(answer->secret);
	*answer = (struct certificates_answer){0};
}

/* ---- serving --------------------------------------------------------------------------------- */

void certificates_pair_read(const json_t *secret, struct certificates_pair *ret)
{
	ret->certificate_pem = data_text(secret, "tls.crt");
	ret->key_pem = data_text(secret, "tls.key");
}

void certificates_pair_done(struct certificates_pair *pair)
{
	if (pair->key_pem)
		explicit_bzero(pair->key_pem, strlen(pair->key_pem));
	free(pair->certificate_pem);
	free(pair->key_pem);
	*pair = (struct certificates_pair){0};
}

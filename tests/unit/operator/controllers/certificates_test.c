// SPDX-License-Identifier: Apache-2.0
/*
 * The life of the webhook certificate in simulated time: one cluster, one decision after the other.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/http/certificate.h"
#include "lib/json/json.h"
#include "operator/controllers/certificates.h"

#define SECOND_US INT64_C(1000000)
#define DAY_S     INT64_C(86400)
#define BEGIN_S   INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
#define SERVICE   "orbweaver-webhook.orbweaver-system.svc"

/*
 * A cluster, as far as certificates go: what is stored, what API servers are told, what replicas
 * serve.
 */
struct cluster {
	int64_t now_s, lifetime_s;
	const char *name;
	json_t *secret;
	char *published;                    /* base64, NULL: nothing */
	char *trusted;                      /* PEM: what an API server works with */
	struct certificates_pair served[2]; /* by two replicas; the second lags */
	int steps;
	char history[1024];
	bool stuck; /* the webhook configurations cannot be written */
};

static void decoded(const char *text, char **ret)
{
	auto_strbuf struct strbuf b = {0};

	assert_int_equal(base64_decode(text, strlen(text), &b, NULL), 0);
	free(*ret);
	*ret = strbuf_take(&b);
}

static void cluster_done(struct cluster *c)
{
	json_decref(c->secret);
	free(c->published);
	free(c->trusted);
	certificates_pair_done(&c->served[0]);
	certificates_pair_done(&c->served[1]);
}
#define auto_cluster auto_call(cluster_done)

static int decide(struct cluster *c, struct certificates_answer *answer, struct err *err)
{
	return certificates_decide(
		&(struct certificates_question){
			.ns = "orbweaver-system",
			.secret = c->secret,
			.names = &c->name,
			.n_names = 1,
			.lifetime_s = c->lifetime_s,
			.published = c->published,
			.now_us = c->now_s * SECOND_US,
		},
		answer, err);
}

/*
 * One decision of the leader, carried out; returns when it has to decide again: when it wants to,
 * and at once (0) after each change, which it hears of like everybody else.
 */
static int64_t turn(struct cluster *c)
{
	bool changed = false;
	auto_certificates_answer struct certificates_answer answer = {0};
	struct err err = {0};

	if (decide(c, &answer, &err) < 0)
		fail_msg("%s", err.text);
	if (answer.step) {
		size_t len = strlen(c->history);

		c->steps++;
		snprintf(c->history + len, sizeof(c->history) - len, "%s%s", len ? " " : "",
			 answer.step);
	}
	json_decref(c->secret);
	c->secret = json_incref(answer.secret);
	changed = answer.step || (!c->stuck && !str_eq(c->published, answer.bundle));
	if (!c->stuck) {
		free(c->published);
		c->published = str_dup(answer.bundle);
	}
	return changed ? 0 : answer.again_ms;
}

/*
 * API servers and the first replica hear of everything at once, the second replica of nothing newer
 * than before.
 */
static void spread(struct cluster *c, int replica)
{
	if (c->published)
		decoded(c->published, &c->trusted);
	certificates_pair_done(&c->served[replica]);
	certificates_pair_read(c->secret, &c->served[replica]);
}

static void assert_served(const struct cluster *c, int replica, const char *trusted)
{
	struct err err = {0};

	if (certificate_verify(c->served[replica].certificate_pem, c->served[replica].key_pem,
			       trusted, c->name, c->now_s, &err) < 0)
		fail_msg("at %lld s, replica %d: %s; steps: %s", (long long)(c->now_s - BEGIN_S),
			 replica, err.text, c->history);
}

static struct cluster new_cluster(int64_t lifetime_s)
{
	return (struct cluster){.now_s = BEGIN_S, .lifetime_s = lifetime_s, .name = SERVICE};
}

TEST(makes_one_where_there_is_none)
{
	auto_cluster struct cluster c = new_cluster(90 * DAY_S);
	const json_t *labels = NULL;

	assert_int_equal(turn(&c), 0);
	assert_string_equal(c.history, "made");
	assert_string_equal(json_str_at(c.secret, "type"), "kubernetes.io/tls");
	labels = json_at(c.secret, "metadata", "labels");
	assert_string_equal(json_str_at(labels, "app.kubernetes.io/managed-by"),
			    "orbweaver-operator");
	assert_int_equal(json_object_size(json_at(c.secret, "data")), 3);
	spread(&c, 0);
	assert_served(&c, 0, c.trusted);
}

TEST(decides_nothing_while_nothing_is_due)
{
	auto_cluster struct cluster c = new_cluster(90 * DAY_S);
	json_auto_t *before = NULL;

	turn(&c);
	before = json_deep_copy(c.secret);
	for (int day = 1; day < 60; day++) {
		c.now_s = BEGIN_S + day * DAY_S;
		turn(&c);
		assert_true(json_same(before, c.secret));
	}
	assert_int_equal(c.steps, 1);
}

/*
 * Through three lives, decision by decision as the answers ask for it. At each moment, whatever an
 * API server works with (the bundle of now, or the one of the decision before) accepts what each
 * replica serves (the pair of now, or of the decision before).
 */
TEST(replaces_it_so_that_nobody_notices)
{
	static const int64_t lifetimes_s[] = {60, 3600, 3 * DAY_S}; /* the last meets both caps */

	for (size_t i = 0; i < ARRAY_LEN(lifetimes_s); i++) {
		auto_cluster struct cluster c = new_cluster(lifetimes_s[i]);
		auto_free char *trusted_before = NULL;

		turn(&c);
		spread(&c, 0);
		spread(&c, 1);
		trusted_before = str_dup(c.trusted);
		while (c.now_s < BEGIN_S + 3 * c.lifetime_s) {
			int64_t again_ms = turn(&c);

			free(trusted_before);
			trusted_before = str_dup(c.trusted);
			spread(&c, 0);
			assert_served(&c, 0, c.trusted);
			assert_served(&c, 0, trusted_before);
			assert_served(&c, 1, c.trusted);
			assert_served(&c, 1, trusted_before);
			spread(&c, 1);
			c.now_s += (again_ms + 999) / 1000;
		}
		assert_non_null(strstr(c.history,
				       "made due published changed dropped due published "
				       "changed dropped due"));
		assert_null(strstr(c.history + 1, "made"));
	}
}

/* As if the leader were replaced in front of every step: all that counts is in the cluster. */
TEST(any_leader_takes_the_next_step)
{
	auto_cluster struct cluster c = new_cluster(3600);

	turn(&c);
	c.now_s += 2400;
	turn(&c);
	assert_string_equal(c.history, "made due");
	assert_non_null(json_at(c.secret, "data", "next.key"));
	turn(&c);
	assert_string_equal(c.history, "made due published");
	assert_string_equal(
		json_str_at(c.secret, "metadata", "annotations", CERTIFICATES_PUBLISHED),
		"2026-01-01T00:40:00Z");
	assert_int_equal(turn(&c), 60000);
	c.now_s += 59;
	turn(&c);
	assert_string_equal(c.history, "made due published");
	c.now_s += 1;
	turn(&c);
	assert_string_equal(c.history, "made due published changed");
	assert_null(json_at(c.secret, "data", "next.key"));
	assert_null(json_at(c.secret, "metadata", "annotations"));
}

TEST(serves_nothing_that_api_servers_have_not_heard_of)
{
	auto_cluster struct cluster c = new_cluster(3600);
	auto_free char *served = NULL;

	turn(&c);
	served = str_dup(json_str_at(c.secret, "data", "tls.crt"));
	c.stuck = true;
	for (c.now_s = BEGIN_S + 2400; c.now_s < BEGIN_S + 3600; c.now_s += 10) {
		turn(&c);
		assert_string_equal(json_str_at(c.secret, "data", "tls.crt"), served);
	}
	assert_string_equal(c.history, "made due");
	/* It has expired: to wait makes nothing better. */
	turn(&c);
	assert_string_not_equal(json_str_at(c.secret, "data", "tls.crt"), served);
}

TEST(a_bundle_that_is_taken_back_is_published_anew)
{
	auto_cluster struct cluster c = new_cluster(3600);

	turn(&c);
	c.now_s += 2400;
	turn(&c);
	turn(&c);
	free(c.published);
	c.published = str_dup("c29tZWJvZHkgZWxzZQ==");
	c.now_s += 100;
	turn(&c);
	assert_null(json_at(c.secret, "metadata", "annotations"));
	turn(&c);
	assert_string_equal(c.history, "made due published published");
}

TEST(what_is_of_no_use_is_replaced_at_once)
{
	static const struct {
		const char *member, *value;
	} cases[] = {
		{"tls.crt", "bm90IGEgY2VydGlmaWNhdGU="},
		{"tls.key", "bm90IGEga2V5"},
		{"tls.key", "%%%"},
		{"tls.crt", NULL},
		{"ca.crt", NULL},
		{"ca.crt", "bm90IGEgY2VydGlmaWNhdGU="},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_cluster struct cluster c = new_cluster(3600);
		json_t *data = NULL;

		turn(&c);
		data = json_at(c.secret, "data");
		json_object_del(data, cases[i].member);
		json_put_str(data, cases[i].member, cases[i].value);
		turn(&c);
		assert_string_equal(c.history, "made made");
		spread(&c, 0);
		assert_served(&c, 0, c.trusted);
	}
}

TEST(a_damaged_next_one_is_made_again)
{
	auto_cluster struct cluster c = new_cluster(3600);

	turn(&c);
	c.now_s += 2400;
	turn(&c);
	json_put_str(json_at(c.secret, "data"), "next.key", "bm90IGEga2V5");
	turn(&c);
	assert_string_equal(c.history, "made due due");
	spread(&c, 0);
	assert_served(&c, 0, c.trusted);
}

TEST(another_name_needs_another_certificate_but_trusts_the_old_one_on)
{
	auto_cluster struct cluster c = new_cluster(3600);
	struct certificates_pair old = {0};

	turn(&c);
	certificates_pair_read(c.secret, &old);
	c.name = "127.0.0.1";
	turn(&c);
	assert_string_equal(c.history, "made made");
	spread(&c, 0);
	assert_served(&c, 0, c.trusted);
	assert_int_equal(certificate_verify(old.certificate_pem, old.key_pem, c.trusted, SERVICE,
					    c.now_s, NULL),
			 0);
	certificates_pair_done(&old);
}

TEST(a_shorter_life_that_is_asked_for_counts_at_once)
{
	auto_cluster struct cluster c = new_cluster(90 * DAY_S);

	turn(&c);
	c.now_s += DAY_S;
	turn(&c);
	assert_string_equal(c.history, "made");
	c.lifetime_s = 3600;
	turn(&c);
	assert_string_equal(c.history, "made due");
}

TEST(a_clock_that_was_set_back_does_not_stop_it)
{
	auto_cluster struct cluster c = new_cluster(3600);

	c.now_s += DAY_S;
	turn(&c);
	c.now_s += 2400;
	turn(&c);
	turn(&c);
	c.now_s -= 30;
	turn(&c);
	c.now_s += 60;
	turn(&c);
	assert_string_equal(c.history, "made due published published changed");
	/* so far back that what there is is not valid yet */
	c.now_s -= DAY_S;
	turn(&c);
	spread(&c, 0);
	assert_served(&c, 0, c.trusted);
}

/* A Secret as cert-manager writes it, from an authority of its own. */
static json_t *theirs(const char *name, int64_t now_s)
{
	const struct certificate_order order = {"theirs", &name, 1, now_s, now_s + DAY_S};
	auto_certificate_set struct certificate_set set = {0};
	struct strbuf texts[3] = {{0}};
	json_t *secret = json_pack(
		"{s:{s:s, s:{s:s}}, s:s}", "metadata", "name", CERTIFICATES_SECRET, "annotations",
		"cert-manager.io/certificate-name", "webhook", "type", "kubernetes.io/tls");

	assert_int_equal(certificate_issue(&order, &set, NULL), 0);
	base64_encode(set.certificate_pem, strlen(set.certificate_pem), &texts[0]);
	base64_encode(set.key_pem, strlen(set.key_pem), &texts[1]);
	base64_encode(set.authority_pem, strlen(set.authority_pem), &texts[2]);
	json_put(secret, "data",
		 json_pack("{s:s, s:s, s:s}", "tls.crt", texts[0].data, "tls.key", texts[1].data,
			   "ca.crt", texts[2].data));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		strbuf_done(&texts[i]);
	return secret;
}

TEST(a_secret_of_the_users_is_served_and_published)
{
	auto_cluster struct cluster c = new_cluster(3600);

	c.secret = theirs(SERVICE, c.now_s);
	for (int i = 0; i < 2; i++) {
		auto_certificates_answer struct certificates_answer answer = {0};
		struct err err = {0};

		if (decide(&c, &answer, &err) < 0)
			fail_msg("%s", err.text);
		assert_null(answer.secret); /* nothing is to be written */
		assert_null(answer.step);
		assert_string_equal(answer.bundle, json_str_at(c.secret, "data", "ca.crt"));
		c.published = str_dup(answer.bundle);
		spread(&c, 0);
		assert_served(&c, 0, c.trusted);
		/*
		 * cert-manager may also have taken over what was ours, and it renews what it has.
		 */
		json_decref(c.secret);
		free(c.published);
		c.published = NULL;
		c.now_s += DAY_S;
		c.secret = theirs(SERVICE, c.now_s);
		json_put(json_at(c.secret, "metadata"), "labels",
			 json_pack("{s:s}", "app.kubernetes.io/managed-by", "orbweaver-operator"));
	}
}

TEST(says_what_is_wrong_with_a_secret_of_the_users)
{
	static const char *const parts[] = {"tls.crt", "tls.key", "ca.crt"};
	auto_cluster struct cluster c = new_cluster(3600);
	struct certificates_answer answer = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		auto_free char *want =
			str_printf("secret orbweaver-system/orbweaver-webhook-certificate: "
				   "data[%s]: is missing or "
				   "not readable; add it, or delete the Secret, so that the "
				   "operator makes its own",
				   parts[i]);

		json_decref(c.secret);
		c.secret = theirs(SERVICE, c.now_s);
		json_object_del(json_at(c.secret, "data"), parts[i]);
		assert_int_equal(decide(&c, &answer, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "ForeignSecretIncomplete");
		assert_string_equal(err.text, want);
		assert_null(answer.bundle);
	}
	json_decref(c.secret);
	c.secret = theirs("elsewhere.example", c.now_s);
	assert_int_equal(decide(&c, &answer, &err), -1);
	assert_string_equal(err.reason, "CertificateRefused");
	assert_true(str_starts(
		err.text, "secret orbweaver-system/orbweaver-webhook-certificate, which is not "
			  "the operator's: certificate for " SERVICE ": "));
	json_decref(c.secret);
	c.secret = theirs(SERVICE, c.now_s - 2 * DAY_S);
	assert_int_equal(decide(&c, &answer, &err), -1);
	assert_string_equal(err.reason, "CertificateRefused");
}

// SPDX-License-Identifier: Apache-2.0
/* The server over TLS. */
#include <openssl/err.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/http/server.h"
#include "tests/unit/http/client.h"

#define GET_HELLO "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
#define BIG_SIZE  (2 * 1024 * 1024)

/* The server's clock: it stands still unless a test moves it. */
static int64_t now_us = 1000000;

int64_t clock_us(void)
{
	return now_us;
}

struct fixture {
	struct loop *loop;
	struct http_server *server;
	SSL_CTX *tls; /* the clients' */
	char *cert[2], *key[2];
	bool closed;
};

static void hello(const struct http_request *req, struct http_response *resp, void *arg)
{
	strbuf_adds(&resp->body, "hello\n");
}

static void sum(const struct http_request *req, struct http_response *resp, void *arg)
{
	unsigned int total = 0;

	for (size_t i = 0; i < req->body_len; i++)
		total = total * 31 + (unsigned char)req->body[i];
	strbuf_addf(&resp->body, "%zu %u", req->body_len, total);
}

static void big(const struct http_request *req, struct http_response *resp, void *arg)
{
	for (size_t i = 0; i < BIG_SIZE; i++)
		strbuf_addc(&resp->body, (char)('a' + i % 26));
}

static const struct http_route routes[] = {
	{.path = "/hello", .methods = HTTP_GET, .handle = hello},
	{.path = "/sum", .methods = HTTP_POST, .body_max = 4 * 1024 * 1024, .handle = sum},
	{.path = "/big", .methods = HTTP_GET, .handle = big},
};

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static struct http_server_config config_for(struct fixture *f)
{
	return (struct http_server_config){
		.name = "test",
		.listen = "127.0.0.1:0",
		.routes = routes,
		.n_routes = ARRAY_LEN(routes),
		.certificate_pem = f->cert[0],
		.key_pem = f->key[0],
	};
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	struct http_server_config config;
	struct err err = {0};

	f->loop = loop_new();
	make_certificate("first", &f->cert[0], &f->key[0]);
	make_certificate("second", &f->cert[1], &f->key[1]);
	f->tls = SSL_CTX_new(TLS_client_method());
	config = config_for(f);
	f->server = http_server_new(f->loop, &config, &err);
	if (!f->server)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_server_close(f->server, on_closed, &f->closed);
	for (int i = 0; i < 1000 && !f->closed; i++)
		loop_turn(f->loop, false);
	assert_true(f->closed);
	SSL_CTX_free(f->tls);
	for (int i = 0; i < 2; i++) {
		free(f->cert[i]);
		free(f->key[i]);
	}
	loop_free(f->loop);
	mem_free(f);
	return 0;
}

/* Time passes, and the server notices: by its timer, or, as here, because somebody comes. */
static void pass(struct fixture *f, int64_t ms)
{
	struct client *c = client_new(f->loop, http_server_port(f->server), NULL);

	now_us += ms * 1000;
	settle(f->loop);
	client_free(c);
	settle(f->loop);
}

static struct client *connect_to(struct fixture *f)
{
	return client_new(f->loop, http_server_port(f->server), f->tls);
}

/* The common name in the certificate that the server showed. */
static const char *peer_name(const struct client *c)
{
	static char name[64];
	X509 *cert = SSL_get1_peer_certificate(c->ssl);

	assert_non_null(cert);
	X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof(name));
	X509_free(cert);
	return name;
}

TEST_WITH(answers_over_tls, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = connect_to(f);

	for (int i = 0; i < 100; i++) {
		assert_int_equal(client_ask(c, GET_HELLO), 200);
		assert_string_equal(strbuf_str(&c->body), "hello\n");
	}
	assert_string_equal(peer_name(c), "first");
	client_free(c);
}

TEST_WITH(speaks_http_1_1_to_clients_that_also_offer_http_2, setup, teardown)
{
	static const unsigned char offers[] = "\x02h2\x08http/1.1";
	struct fixture *f = *state;
	struct client *c;

	SSL_CTX_set_alpn_protos(f->tls, offers, sizeof(offers) - 1);
	c = connect_to(f);
	assert_int_equal(client_ask(c, GET_HELLO), 200);
	client_free(c);
}

TEST_WITH(takes_large_bodies_in_full_records, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = connect_to(f);
	const size_t size = 3 * 1024 * 1024 + 17;
	char *body = mem_alloc(size), want[64];
	unsigned int total = 0;

	for (size_t i = 0; i < size; i++) {
		body[i] = (char)(i * 7);
		total = total * 31 + (unsigned char)body[i];
	}
	snprintf(want, sizeof(want), "%zu %u", size, total);
	for (int i = 0; i < 2; i++) {
		assert_true(client_sends(
			c, "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 3145745\r\n\r\n"));
		assert_true(client_send(c, body, size));
		assert_true(client_receive(c, false));
		assert_int_equal(c->status, 200);
		assert_string_equal(strbuf_str(&c->body), want);
	}
	mem_free(body);
	client_free(c);
}

TEST_WITH(sends_large_responses, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = connect_to(f);

	assert_true(client_sends(c, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n" GET_HELLO));
	settle(f->loop);
	assert_true(client_receive(c, false));
	assert_int_equal(c->body.len, BIG_SIZE);
	for (size_t i = 0; i < BIG_SIZE; i++)
		if (c->body.data[i] != (char)('a' + i % 26))
			fail_msg("wrong at %zu", i);
	assert_true(client_receive(c, false));
	assert_string_equal(strbuf_str(&c->body), "hello\n");
	client_free(c);
}

TEST_WITH(answers_pipelined_requests_from_one_record, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = connect_to(f);
	auto_strbuf struct strbuf b = {0};

	for (int i = 0; i < 300; i++)
		strbuf_adds(&b, GET_HELLO);
	assert_true(client_send(c, b.data, b.len));
	for (int i = 0; i < 300; i++)
		assert_true(client_receive(c, false));
	client_free(c);
}

TEST_WITH(swaps_the_certificate_under_load, setup, teardown)
{
	struct fixture *f = *state;
	struct client *old = connect_to(f);
	int seen[2] = {0, 0};

	for (int i = 0; i < 60; i++) {
		int which = i / 5 % 2;
		struct client *c;

		assert_int_equal(
			http_server_set_certificate(f->server, f->cert[which], f->key[which], NULL),
			0);
		c = connect_to(f);
		assert_string_equal(peer_name(c), which ? "second" : "first");
		seen[which]++;
		assert_int_equal(client_ask(c, GET_HELLO), 200);
		assert_int_equal(client_ask(old, GET_HELLO), 200);
		client_free(c);
	}
	assert_string_equal(peer_name(old), "first");
	assert_true(seen[0] > 0 && seen[1] > 0);
	client_free(old);
}

TEST_WITH(keeps_the_old_pair_when_the_new_one_is_bad, setup, teardown)
{
	struct fixture *f = *state;
	const struct {
		const char *cert, *key, *text;
	} cases[] = {
		{"", f->key[1], "certificate: no PEM block \"CERTIFICATE\" in it"},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f->key[1],
		 "certificate: not readable"},
		{f->cert[1], "", "key: not a private key in PEM without pass phrase"},
		{f->cert[1], f->key[0], "the key is not the certificate's"},
		{f->key[1], f->cert[1], "certificate: no PEM block \"CERTIFICATE\" in it"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		struct client *c;

		assert_int_equal(
			http_server_set_certificate(f->server, cases[i].cert, cases[i].key, &err),
			-1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadCertificate");
		if (!str_starts(err.text, cases[i].text))
			fail_msg("%s", err.text);
		assert_int_equal(ERR_peek_error(), 0);
		c = connect_to(f);
		assert_string_equal(peer_name(c), "first");
		client_free(c);
	}
}

TEST_WITH(refuses_to_start_with_half_a_pair, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct err err = {0};

	config.key_pem = NULL;
	assert_null(http_server_new(f->loop, &config, &err));
	assert_string_equal(err.reason, "BadCertificate");
	config.key_pem = f->key[1];
	assert_null(http_server_new(f->loop, &config, &err));
	assert_string_equal(err.text, "the key is not the certificate's: key values mismatch");
}

TEST_WITH(shows_the_intermediates, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *chain = str_printf("%s%s", f->cert[1], f->cert[0]);
	struct client *c;

	assert_int_equal(http_server_set_certificate(f->server, chain, f->key[1], NULL), 0);
	c = connect_to(f);
	assert_string_equal(peer_name(c), "second");
	assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(c->ssl)), 2);
	client_free(c);
	/* a shorter chain replaces the longer one whole */
	assert_int_equal(http_server_set_certificate(f->server, f->cert[0], f->key[0], NULL), 0);
	c = connect_to(f);
	assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(c->ssl)), 1);
	client_free(c);
}

TEST_WITH(refuses_old_tls, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = client_new(f->loop, http_server_port(f->server), NULL);
	int n;

	SSL_CTX_set_max_proto_version(f->tls, TLS1_1_VERSION);
	SSL_CTX_set_security_level(f->tls, 0);
	SSL_CTX_set_cipher_list(f->tls, "ALL");
	c->ssl = SSL_new(f->tls);
	SSL_set_fd(c->ssl, c->fd);
	for (int i = 0; i < 200 && (n = SSL_connect(c->ssl)) != 1; i++)
		settle(f->loop);
	assert_int_not_equal(n, 1);
	ERR_clear_error();
	client_free(c);
}

/* Serve by this policy from now on. */
static void follow(struct fixture *f, const struct http_tls_policy *policy)
{
	struct http_server_config config = config_for(f);
	struct err err = {0};

	config.tls = *policy;
	http_server_close(f->server, on_closed, &f->closed);
	settle(f->loop);
	assert_true(f->closed);
	f->closed = false;
	f->server = http_server_new(f->loop, &config, &err);
	if (!f->server)
		fail_msg("%s", err.text);
}

/* A client of this context is answered. */
static bool is_answered(struct fixture *f, SSL_CTX *tls)
{
	struct client *c = client_new(f->loop, http_server_port(f->server), NULL);
	int status = 0, n = 0;

	c->ssl = SSL_new(tls);
	SSL_set_fd(c->ssl, c->fd);
	for (int i = 0; i < 20 && (n = SSL_connect(c->ssl)) != 1; i++)
		settle(f->loop);
	/* With 1.3 a client is done before the server has looked at its certificate. */
	if (n == 1)
		status = client_ask(c, GET_HELLO);
	ERR_clear_error();
	client_free(c);
	return status == 200;
}

TEST_WITH(speaks_no_version_below_the_lowest, setup, teardown)
{
	struct fixture *f = *state;

	SSL_CTX_set_max_proto_version(f->tls, TLS1_2_VERSION);
	assert_true(is_answered(f, f->tls));
	follow(f, &(struct http_tls_policy){.min_version = "VersionTLS12"});
	assert_true(is_answered(f, f->tls));
	follow(f, &(struct http_tls_policy){.min_version = "VersionTLS13"});
	assert_false(is_answered(f, f->tls));
	/* Also with another certificate. */
	assert_int_equal(http_server_set_certificate(f->server, f->cert[1], f->key[1], NULL), 0);
	assert_false(is_answered(f, f->tls));
	SSL_CTX_set_max_proto_version(f->tls, TLS1_3_VERSION);
	assert_true(is_answered(f, f->tls));
}

TEST_WITH(speaks_the_suites_that_are_named, setup, teardown)
{
	static const struct {
		const char *server, *client;
		int version;
		bool answered;
	} cases[] = {
		{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256",
		 TLS1_2_VERSION, true},
		{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
		 TLS1_2_VERSION, false},
		{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", NULL, TLS1_3_VERSION, true},
		{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
		 "ECDHE-ECDSA-CHACHA20-POLY1305", TLS1_2_VERSION, true},
		{"TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", TLS1_3_VERSION, true},
		{"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", TLS1_3_VERSION, false},
		/* Nothing but 1.3 is named. */
		{"TLS_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256", TLS1_2_VERSION, false},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

		SSL_CTX_set_max_proto_version(tls, cases[i].version);
		if (cases[i].version == TLS1_2_VERSION)
			assert_int_equal(SSL_CTX_set_cipher_list(tls, cases[i].client), 1);
		else if (cases[i].client)
			assert_int_equal(SSL_CTX_set_ciphersuites(tls, cases[i].client), 1);
		follow(f, &(struct http_tls_policy){.cipher_suites = cases[i].server});
		if (is_answered(f, tls) != cases[i].answered)
			fail_msg("case %zu", i);
		SSL_CTX_free(tls);
	}
}

TEST_WITH(says_what_is_wrong_with_a_policy, setup, teardown)
{
	static const struct {
		struct http_tls_policy policy;
		const char *reason, *word;
	} cases[] = {
		{{.min_version = "VersionTLS11"},
		 "BadTlsVersion",
		 "VersionTLS11: must be VersionTLS12 or VersionTLS13"},
		{{.min_version = ""}, "BadTlsVersion", ": must be"},
		{{.cipher_suites = "TLS_MADE_UP"},
		 "BadCipherSuite",
		 "\"TLS_MADE_UP\" is not known"},
		{{.cipher_suites = "TLS_AES_128_GCM_SHA256,"},
		 "BadCipherSuite",
		 "\"\" is not known"},
		{{.cipher_suites = ""}, "BadCipherSuite", "\"\" is not known"},
		{{.cipher_suites = "ECDHE-ECDSA-AES128-GCM-SHA256"},
		 "BadCipherSuite",
		 "write names of the IANA registry"},
		{{.client_ca_pem = "no"}, "BadCertificate", "authorities of clients: "},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_int_equal(http_tls_policy_check(&cases[i].policy, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		if (!str_eq(err.reason, cases[i].reason) || !strstr(err.text, cases[i].word))
			fail_msg("case %zu: %s: %s", i, err.reason, err.text);
	}
	assert_int_equal(http_tls_policy_check(&(struct http_tls_policy){0}, NULL), 0);
}

static SSL_CTX *client_with(const char *certificate, const char *key)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
	BIO *cert_bio = BIO_new_mem_buf(certificate, -1), *key_bio = BIO_new_mem_buf(key, -1);
	X509 *cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);

	assert_int_equal(SSL_CTX_use_certificate(tls, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(tls, pkey), 1);
	X509_free(cert);
	EVP_PKEY_free(pkey);
	BIO_free(cert_bio);
	BIO_free(key_bio);
	return tls;
}

TEST_WITH(answers_clients_whose_certificate_is_trusted, setup, teardown)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct fixture *f = *state;
	SSL_CTX *known = client_with(f->cert[1], f->key[1]);
	SSL_CTX *stranger = client_with(f->cert[0], f->key[0]);

	follow(f, &(struct http_tls_policy){.client_ca_pem = f->cert[1]});
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		SSL_CTX_set_max_proto_version(known, versions[i]);
		SSL_CTX_set_max_proto_version(stranger, versions[i]);
		SSL_CTX_set_max_proto_version(f->tls, versions[i]);
		assert_true(is_answered(f, known));
		assert_false(is_answered(f, stranger));
		assert_false(is_answered(f, f->tls)); /* shows none */
	}
	SSL_CTX_free(known);
	SSL_CTX_free(stranger);
}

TEST_WITH(ends_connections_that_do_not_shake_hands, setup, teardown)
{
	struct fixture *f = *state;
	struct client *silent = client_new(f->loop, http_server_port(f->server), NULL);
	struct client *half = client_new(f->loop, http_server_port(f->server), NULL);
	struct client *plain = client_new(f->loop, http_server_port(f->server), NULL);

	client_sends(plain, GET_HELLO);
	assert_true(client_sees_end(plain));
	assert_true(client_send(half, "\x16\x03\x01\x02\x00\x01", 6));
	settle(f->loop);
	pass(f, HTTP_TIMEOUT_S * 1000 - 1);
	assert_false(client_has_ended(silent));
	assert_false(client_has_ended(half));
	pass(f, 1);
	assert_true(client_has_ended(silent));
	assert_true(client_has_ended(half));
	client_free(silent);
	client_free(half);
	client_free(plain);
}

TEST_WITH(keeps_a_connection_longer_than_the_handshake_may_take, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = connect_to(f);

	assert_int_equal(client_ask(c, GET_HELLO), 200);
	pass(f, HTTP_TIMEOUT_S * 1000 + 1);
	assert_int_equal(client_ask(c, GET_HELLO), 200);
	client_free(c);
}

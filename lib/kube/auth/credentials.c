// SPDX-License-Identifier: Apache-2.0
/*
 * One current set of credentials, and three ways to renew it: not at all (constants), from files,
 * from an exec plugin.
 *
 * Files are read on the loop: they are small and local, and looked at once a second at most.
 * Plugins take their time, so questions wait in a list while one runs, and while the current set is
 * still good they do not even notice.
 */
#include "lib/kube/auth/credentials.h"

#include <assert.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/auth/config_internal.h"
#include "lib/kube/auth/exec_credential.h"
#include "lib/kube/auth/exec_plugin.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/auth/pem.h"
#include "lib/kube/auth/secret.h"
#include "lib/loop/loop.h"

enum {
	/*
	 * Credentials that the server refuses when they are younger than this count as a failure of
	 * the plugin.
	 */
	FRESH_MS = 10000,
	HOLD_START_MS = 1000,
	/* Renewal starts when a tenth of the lifetime is left, at most a minute. */
	AHEAD_FRACTION = 10,
};

#define AHEAD_MAX_US (60 * INT64_C(1000000))

/* A file that is read again: what it is for, and whether we said that it cannot be read. */
struct source {
	struct file_watch watch;
	bool failing;
};

struct kube_credentials {
	struct loop *loop;
	const struct kube_config *config;
	struct kube_credentials_clock clock;

	/* The current set. */
	uint64_t generation, tls_generation;
	char *authorization;
	char *cert_pem, *key_pem, *ca_pem;

	struct source token, cert, key, ca;

	/* Of exec plugins only. */
	struct {
		struct exec_plugin *running;
		bool valid;         /* the current set came from it; no server refused it */
		int64_t fetched_us; /* wall clock */
		int64_t expires_us; /* wall clock; INT64_MAX: not said */
		int64_t fetched_ms;
		unsigned int failures;   /* in a row */
		unsigned int rejections; /* of fresh credentials, in a row */
		int64_t hold_until_ms;   /* do not start it before */
		struct err last_err;     /* why we hold */
	} plugin;

	struct kube_credentials_wait *waits, **waits_end;
	uint64_t round; /* of answering: a question during one is answered in the next */
	bool *freed;    /* set when `ready` of a waiting question frees us */
};

/* ---- the current set ------------------------------------------------------------------------- */

/* Take value in place of *slot; true when that changed something. */
static bool replace_secret(char **slot, char *value)
{
	if (str_eq(*slot, value)) {
		secret_free(value);
		return false;
	}
	secret_free(*slot);
	*slot = value;
	return true;
}

static char *bearer_header(const char *token)
{
	return token ? str_printf("Bearer %s", token) : NULL;
}

static void set_authorization(struct kube_credentials *c, char *take)
{
	if (replace_secret(&c->authorization, take))
		c->generation++;
}

static void set_certificate(struct kube_credentials *c, char *take_cert, char *take_key)
{
	bool cert_changed = replace_secret(&c->cert_pem, take_cert);
	bool key_changed = replace_secret(&c->key_pem, take_key);

	if (!cert_changed && !key_changed)
		return;
	c->generation++;
	c->tls_generation++;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Said once per failure, not once per request. */
static void note_failure(struct source *s, const struct err *err)
{
	if (!s->failing)
		log_warn("cannot read credentials, keeping the last ones",
			 F_STR("file", s->watch.path), F_ERR(err));
	s->failing = true;
}

static void note_success(struct source *s)
{
	if (s->failing)
		log_info("credentials are readable again", F_STR("file", s->watch.path));
	s->failing = false;
}

static void look_at_token(struct kube_credentials *c, int64_t now_ms)
{
	auto_secret_buf struct strbuf text = {0};
	auto_secret char *token = NULL;
	struct err err = {0};
	int got = file_watch_look(&c->token.watch, now_ms, &text, &err);

	if (got > 0)
		got = config_trim_token(c->token.watch.path, strbuf_str(&text), text.len, &token,
					&err) < 0
			      ? -1
			      : 1;
	if (got < 0)
		note_failure(&c->token, &err);
	if (got <= 0)
		return;
	note_success(&c->token);
	set_authorization(c, bearer_header(token));
}

/* 1: *ret is new and sound; 0: keep what is there; -1: the same, and said. */
static int look_at_pem(struct source *s, enum pem_kind kind, int64_t now_ms, char **ret)
{
	auto_secret_buf struct strbuf text = {0};
	struct err err = {0};
	int got;

	if (!s->watch.path)
		return 0;
	got = file_watch_look(&s->watch, now_ms, &text, &err);
	if (got > 0 && pem_check(strbuf_str(&text), text.len, kind, &err) < 0) {
		err_in(&err, "%s", s->watch.path);
		got = -1;
	}
	if (got < 0)
		note_failure(s, &err);
	if (got > 0) {
		note_success(s);
		*ret = strbuf_take(&text);
	}
	return got;
}

static void look_at_certificate(struct kube_credentials *c, int64_t now_ms)
{
	auto_free char *cert = NULL;
	auto_secret char *key = NULL;

	(void)look_at_pem(&c->cert, PEM_CERTIFICATES, now_ms, &cert);
	(void)look_at_pem(&c->key, PEM_PRIVATE_KEY, now_ms, &key);
	if (!cert && !key)
		return;
	if (!cert)
		cert = str_dup(c->cert_pem);
	if (!key)
		key = str_dup(c->key_pem);
	set_certificate(c, take_ptr(cert), take_ptr(key));
}

/* ---- exec plugin ----------------------------------------------------------------------------- */

static bool must_wait_for_plugin(const struct kube_credentials *c)
{
	return !c->plugin.valid || c->clock.wall_us() >= c->plugin.expires_us;
}

static bool should_renew(const struct kube_credentials *c)
{
	int64_t ahead_us;

	if (c->plugin.expires_us == INT64_MAX)
		return false;
	ahead_us = (c->plugin.expires_us - c->plugin.fetched_us) / AHEAD_FRACTION;
	if (ahead_us > AHEAD_MAX_US)
		ahead_us = AHEAD_MAX_US;
	return c->clock.wall_us() >= c->plugin.expires_us - ahead_us;
}

/* 1 s after the first time, doubled each further time. */
static void hold_plugin(struct kube_credentials *c, unsigned int times, const struct err *err)
{
	int64_t ms = HOLD_START_MS;

	for (; times > 1 && ms < KUBE_EXEC_MAX_HOLD_MS; times--)
		ms *= 2;
	if (ms > KUBE_EXEC_MAX_HOLD_MS)
		ms = KUBE_EXEC_MAX_HOLD_MS;
	c->plugin.hold_until_ms = c->clock.now_ms() + ms;
	c->plugin.last_err = *err;
}

static bool is_held(const struct kube_credentials *c)
{
	return c->clock.now_ms() < c->plugin.hold_until_ms;
}

static void answer_now(struct kube_credentials *c, kube_credentials_ready_fn *ready, void *arg,
		       const struct err *err)
{
	struct kube_secret secret = {
		.generation = c->generation,
		.authorization = c->authorization,
		.client_cert_pem = c->cert_pem,
		.client_key_pem = c->key_pem,
		.ca_pem = c->ca_pem,
		.tls_generation = c->tls_generation,
	};

	ready(arg, err ? NULL : &secret, err);
}

static void note_plugin_failure(struct kube_credentials *c, const struct err *err)
{
	hold_plugin(c, ++c->plugin.failures, err);
	/*
	 * A waiting request gets the error and reports it; of a renewal ahead of time only we know.
	 */
	if (!must_wait_for_plugin(c))
		log_warn("cannot renew credentials, keeping the last ones", F_ERR(err));
}

static int take_output(struct kube_credentials *c, const char *out, size_t len, struct err *err)
{
	auto_exec_credential struct exec_credential credential = {0};
	const struct kube_exec *exec = &c->config->auth.exec;
	int64_t now_us = c->clock.wall_us();

	if (exec_credential_parse(out, len, exec->api_version, &credential, err) < 0)
		return err_in(err, "exec plugin %s", exec->command);
	if (credential.expires_us <= now_us)
		return err_set(err, ERR_TRANSIENT, "BadExecCredential",
			       "exec plugin %s printed credentials that had expired already; check "
			       "the clock",
			       exec->command);
	set_authorization(c, bearer_header(credential.token));
	set_certificate(c, take_ptr(credential.cert_pem), take_ptr(credential.key_pem));
	c->plugin.valid = true;
	c->plugin.fetched_us = now_us;
	c->plugin.fetched_ms = c->clock.now_ms();
	c->plugin.expires_us = credential.expires_us;
	c->plugin.failures = 0;
	return 0;
}

static void on_plugin_done(void *arg, const char *out, size_t len, const struct err *failure)
{
	struct kube_credentials *c = arg;
	struct err err = {0};
	uint64_t round;
	struct err copy = {0};
	bool freed = false;

	assert(c->plugin.running);
	c->plugin.running = NULL;
	if (!failure && take_output(c, out, len, &err) < 0)
		failure = &err;
	if (failure)
		note_plugin_failure(c, failure);
	/*
	 * Each answer may ask again, cancel others, or free us. Never nested: only the loop calls
	 * this.
	 */
	round = c->round++;
	assert(!c->freed);
	if (failure)
		copy = *failure;
	c->freed = &freed;
	while (c->waits && c->waits->round == round) {
		struct kube_credentials_wait *wait = c->waits;
		kube_credentials_ready_fn *ready = wait->ready;

		c->waits = wait->next;
		if (!c->waits)
			c->waits_end = &c->waits;
		wait->ready = NULL;
		answer_now(c, ready, wait->arg, failure ? &copy : NULL);
		if (freed)
			return;
	}
	c->freed = NULL;
}

static int start_plugin(struct kube_credentials *c, struct err *err)
{
	assert(!c->plugin.running && c->config->auth.kind == KUBE_AUTH_EXEC);
	c->plugin.running = exec_plugin_start(c->loop, &c->config->auth.exec, KUBE_EXEC_TIMEOUT_MS,
					      on_plugin_done, c, err);
	return c->plugin.running ? 0 : -1;
}

static void get_from_plugin(struct kube_credentials *c, struct kube_credentials_wait *wait,
			    kube_credentials_ready_fn *ready, void *arg)
{
	bool must_wait = must_wait_for_plugin(c);
	bool may_start = !c->plugin.running && !is_held(c);
	struct err err = {0};

	if (may_start && (must_wait || should_renew(c)) && start_plugin(c, &err) < 0)
		note_plugin_failure(c, &err);
	if (!must_wait) {
		answer_now(c, ready, arg, NULL);
		return;
	}
	if (!c->plugin.running) {
		err = c->plugin.last_err;
		answer_now(c, ready, arg, &err);
		return;
	}
	*wait = (struct kube_credentials_wait){.ready = ready, .arg = arg, .round = c->round};
	*c->waits_end = wait;
	c->waits_end = &wait->next;
}

/* The plugin's output was refused: it runs again at once, but not again and again. */
static void reject_from_plugin(struct kube_credentials *c)
{
	struct err err = {0};

	if (!c->plugin.valid)
		return;
	c->plugin.valid = false;
	if (c->clock.now_ms() - c->plugin.fetched_ms >= FRESH_MS) {
		c->plugin.rejections = 0;
		return;
	}
	if (c->plugin.rejections++ == 0)
		return;
	err_set(&err, ERR_TRANSIENT, "CredentialsRejected",
		"%s: the server refuses what exec plugin %s gives (401); check its login",
		c->config->origin, c->config->auth.exec.command);
	hold_plugin(c, c->plugin.rejections - 1, &err);
}

/* ---- interface ------------------------------------------------------------------------------- */

struct kube_credentials *kube_credentials_new(struct loop *loop, const struct kube_config *config,
					      const struct kube_credentials_clock *clock)
{
	struct kube_credentials *c = mem_new(struct kube_credentials);
	const struct kube_auth *auth;
	auto_secret char *pair = NULL;
	struct strbuf b = {0};

	assert(loop && config);
	c->loop = loop;
	c->config = config;
	c->clock = clock ? *clock : (struct kube_credentials_clock){clock_ms, clock_wall_us};
	c->generation = c->tls_generation = 1;
	c->waits_end = &c->waits;
	auth = &c->config->auth;
	switch (auth->kind) {
	case KUBE_AUTH_TOKEN:
	case KUBE_AUTH_TOKEN_FILE:
		c->authorization = bearer_header(auth->token);
		break;
	case KUBE_AUTH_BASIC:
		/* RFC 7617 */
		pair = str_printf("%s:%s", auth->username, auth->password);
		strbuf_adds(&b, "Basic ");
		base64_encode(pair, strlen(pair), &b);
		c->authorization = strbuf_take(&b);
		break;
	case KUBE_AUTH_NONE:
	case KUBE_AUTH_EXEC:
		break;
	}
	c->cert_pem = str_dup(auth->client_cert_pem);
	c->key_pem = str_dup(auth->client_key_pem);
	c->token.watch =
		(struct file_watch){.path = auth->token_file, .max = KUBE_CONFIG_MAX_TOKEN};
	c->cert.watch =
		(struct file_watch){.path = auth->client_cert_file, .max = KUBE_CONFIG_MAX_PEM};
	c->key.watch =
		(struct file_watch){.path = auth->client_key_file, .max = KUBE_CONFIG_MAX_PEM};
	c->ca_pem = str_dup(c->config->ca_pem);
	c->ca.watch = (struct file_watch){.path = c->config->ca_file, .max = KUBE_CONFIG_MAX_PEM};
	return c;
}

void kube_credentials_get(struct kube_credentials *c, struct kube_credentials_wait *wait,
			  kube_credentials_ready_fn *ready, void *arg)
{
	int64_t now_ms;
	auto_free char *pem = NULL;

	assert(wait && !wait->ready && ready);
	/*
	 * Rotated while both old and new ones sign, or from one to the next: what is in the file
	 * counts.
	 */
	if (look_at_pem(&c->ca, PEM_CERTIFICATES, c->clock.now_ms(), &pem) > 0 &&
	    !str_eq(pem, c->ca_pem)) {
		log_info("the API server's certificate authorities have changed",
			 F_STR("file", c->ca.watch.path));
		str_replace(&c->ca_pem, take_ptr(pem));
		c->generation++;
		c->tls_generation++;
	}
	if (c->config->auth.kind == KUBE_AUTH_EXEC) {
		get_from_plugin(c, wait, ready, arg);
		return;
	}
	now_ms = c->clock.now_ms();
	if (c->token.watch.path)
		look_at_token(c, now_ms);
	look_at_certificate(c, now_ms);
	answer_now(c, ready, arg, NULL);
}

void kube_credentials_cancel(struct kube_credentials *c, struct kube_credentials_wait *wait)
{
	struct kube_credentials_wait **link = &c->waits;

	if (!wait->ready)
		return;
	while (*link != wait)
		link = &(*link)->next;
	*link = wait->next;
	if (c->waits_end == &wait->next)
		c->waits_end = link;
	wait->ready = NULL;
}

bool kube_credentials_reject(struct kube_credentials *c, uint64_t generation)
{
	if (c->generation != generation)
		return true;
	if (c->config->auth.kind == KUBE_AUTH_EXEC) {
		reject_from_plugin(c);
		return true;
	}
	file_watch_stale(&c->token.watch);
	file_watch_stale(&c->cert.watch);
	file_watch_stale(&c->key.watch);
	return c->token.watch.path || c->cert.watch.path || c->key.watch.path;
}

void kube_credentials_free(struct kube_credentials *c)
{
	if (!c)
		return;
	if (c->freed)
		*c->freed = true;
	exec_plugin_stop(c->plugin.running);
	for (struct kube_credentials_wait *wait = c->waits; wait; wait = wait->next)
		wait->ready = NULL;
	secret_free(c->authorization);
	secret_free(c->cert_pem);
	secret_free(c->key_pem);
	mem_free(c->ca_pem);
	mem_free(c);
}

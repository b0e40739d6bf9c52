// SPDX-License-Identifier: Apache-2.0
/*
 * Credentials that renew themselves: constants, rotated files, exec plugins (real child processes,
 * shell scripts in a temporary folder). Time is the test's own where waiting would be the
 * alternative.
 */
#include "tests/support/test.h"

#include <fcntl.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/auth/credentials.h"
#include "lib/kube/auth/exec_credential.h"
#include "lib/kube/auth/exec_plugin.h"
#include "lib/kube/auth/file.h"
#include "lib/loop/loop.h"
#include "tests/unit/kube/tree.h"

static int64_t now_ms;
static int64_t wall_us;

static int64_t fake_now_ms(void)
{
	return now_ms;
}

static int64_t fake_wall_us(void)
{
	return wall_us;
}

static const struct kube_credentials_clock fake_clock = {fake_now_ms, fake_wall_us};

static void pass_time(int64_t ms)
{
	now_ms += ms;
	wall_us += ms * 1000;
}

/* One question and what came of it. */
struct question {
	struct kube_credentials_wait wait;
	unsigned int answers;
	char *authorization, *cert, *key, *ca;
	uint64_t generation, tls_generation;
	struct err err;
	struct kube_credentials *free_me;
	struct question *cancel_me;
};

struct fixture {
	struct tree tree;
	struct loop *loop;
	struct kube_config config;
	struct kube_credentials *credentials;
	struct question q;
};

static void question_reset(struct question *q)
{
	free(q->authorization);
	free(q->cert);
	free(q->ca);
	free(q->key);
	*q = (struct question){0};
}

static void on_ready(void *arg, const struct kube_secret *secret, const struct err *err);

static void ask(struct fixture *f, struct question *q)
{
	question_reset(q);
	kube_credentials_get(f->credentials, &q->wait, on_ready, q);
}

static struct fixture *other_fixture; /* for cancel_me */

static void on_ready(void *arg, const struct kube_secret *secret, const struct err *err)
{
	struct question *q = arg;

	q->answers++;
	assert_true(!secret != !err);
	if (err)
		q->err = *err;
	if (secret) {
		q->authorization = str_dup(secret->authorization);
		q->cert = str_dup(secret->client_cert_pem);
		q->ca = str_dup(secret->ca_pem);
		q->key = str_dup(secret->client_key_pem);
		q->generation = secret->generation;
		q->tls_generation = secret->tls_generation;
	}
	if (q->cancel_me)
		kube_credentials_cancel(other_fixture->credentials, &q->cancel_me->wait);
	if (q->free_me)
		kube_credentials_free(q->free_me);
}

/* Turn the loop until the question is answered. */
static void await(struct fixture *f, struct question *q)
{
	while (!q->answers)
		loop_turn(f->loop, true);
}

static struct question *get(struct fixture *f)
{
	ask(f, &f->q);
	await(f, &f->q);
	return &f->q;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	now_ms = 1000000;
	wall_us = clock_wall_us();
	tree_init(&f->tree);
	f->loop = loop_new();
	f->config.origin = str_dup("kubeconfig /x, context \"prod\"");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	kube_credentials_free(f->credentials);
	loop_free(f->loop);
	kube_config_done(&f->config);
	question_reset(&f->q);
	tree_done(&f->tree);
	free(f);
	return 0;
}

static void start(struct fixture *f)
{
	f->credentials = kube_credentials_new(f->loop, &f->config, &fake_clock);
}

/* ---- constants ------------------------------------------------------------------------------- */

TEST_WITH(a_token_is_a_constant, set_up, tear_down)
{
	struct fixture *f = *state;

	f->config.auth.kind = KUBE_AUTH_TOKEN;
	f->config.auth.token = str_dup("abc");
	start(f);
	assert_string_equal(get(f)->authorization, "Bearer abc");
	assert_int_equal(f->q.answers, 1);
	assert_false(kube_credentials_reject(f->credentials, f->q.generation));
	assert_string_equal(get(f)->authorization, "Bearer abc");
}

TEST_WITH(a_password_goes_as_rfc_7617_says, set_up, tear_down)
{
	struct fixture *f = *state;

	f->config.auth.kind = KUBE_AUTH_BASIC;
	f->config.auth.username = str_dup("Aladdin");
	f->config.auth.password = str_dup("open sesame");
	start(f);
	assert_string_equal(get(f)->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST_WITH(nobody_sends_nothing, set_up, tear_down)
{
	struct fixture *f = *state;

	start(f);
	assert_null(get(f)->authorization);
	assert_null(f->q.cert);
	assert_false(kube_credentials_reject(f->credentials, f->q.generation));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void use_token_file(struct fixture *f)
{
	f->config.auth.kind = KUBE_AUTH_TOKEN_FILE;
	f->config.auth.token = str_dup("old");
	f->config.auth.token_file = tree_path(&f->tree, "/token");
	tree_write(&f->tree, "/token", "old\n");
	start(f);
}

/* As the kubelet does it: a new folder, and a symlink renamed over the old one. */
static void swap_symlink(const struct tree *t, const char *target)
{
	auto_free char *link = tree_path(t, "/..data"), *new_link = tree_path(t, "/..data_tmp");

	assert_int_equal(symlink(target, new_link), 0);
	assert_int_equal(rename(new_link, link), 0);
}

TEST_WITH(a_rotated_token_is_noticed_within_a_second, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *link = tree_path(&f->tree, "/token");
	uint64_t before;

	tree_write(&f->tree, "/..1/token", "one");
	tree_write(&f->tree, "/..2/token", "two");
	swap_symlink(&f->tree, "..1");
	assert_int_equal(symlink("..data/token", link), 0);
	f->config.auth.kind = KUBE_AUTH_TOKEN_FILE;
	f->config.auth.token = str_dup("one");
	f->config.auth.token_file = str_dup(link);
	start(f);

	assert_string_equal(get(f)->authorization, "Bearer one");
	before = f->q.generation;
	swap_symlink(&f->tree, "..2");
	assert_string_equal(get(f)->authorization, "Bearer one");
	pass_time(1000);
	assert_string_equal(get(f)->authorization, "Bearer two");
	assert_int_equal(f->q.generation, before + 1);
	assert_int_equal(f->q.tls_generation, 1);
}

TEST_WITH(a_refused_token_is_read_again_at_once, set_up, tear_down)
{
	struct fixture *f = *state;
	uint64_t refused;

	use_token_file(f);
	refused = get(f)->generation;
	tree_write(&f->tree, "/token", "new");
	assert_true(kube_credentials_reject(f->credentials, refused));
	assert_string_equal(get(f)->authorization, "Bearer new");
	/* Someone else's request was sent with the old one; that says nothing about the new. */
	assert_true(kube_credentials_reject(f->credentials, refused));
	tree_write(&f->tree, "/token", "newer");
	assert_string_equal(get(f)->authorization, "Bearer new");
}

TEST_WITH(a_file_is_read_once_a_minute_whatever_its_identity, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *path = tree_path(&f->tree, "/token");
	struct file_watch watch = {.path = path, .max = 100};
	auto_strbuf struct strbuf text = {0};

	tree_write(&f->tree, "/token", "old");
	assert_int_equal(file_watch_look(&watch, 0, &text, NULL), 1);
	assert_int_equal(file_watch_look(&watch, 59000, &text, NULL), 0);

	/* New content behind an identity that we know already: a file system that tells nothing. */
	tree_write(&f->tree, "/token", "new");
	strbuf_reset(&text);
	assert_int_equal(file_read(path, 100, &text, &watch.id, NULL), 0);
	strbuf_reset(&text);
	assert_int_equal(file_watch_look(&watch, 59999, &text, NULL), 0);
	assert_int_equal(file_watch_look(&watch, 60999, &text, NULL), 1);
	assert_string_equal(strbuf_str(&text), "new");
}

/* Collect what is logged while fn runs. Returns new. */
static char *logged(struct fixture *f, unsigned int times)
{
	auto_free char *path = tree_path(&f->tree, "/log");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char text[4096];
	ssize_t n;

	log_set_fd(fd);
	for (unsigned int i = 0; i < times; i++) {
		pass_time(1000);
		get(f);
	}
	log_set_fd(2);
	n = pread(fd, text, sizeof(text), 0);
	close(fd);
	return str_ndup(text, (size_t)n);
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	while ((text = strstr(text, what))) {
		text++;
		n++;
	}
	return n;
}

TEST_WITH(an_unreadable_token_stays_in_use_and_is_said_once, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *gone = NULL, *back = NULL;

	use_token_file(f);
	get(f);
	tree_unlink(&f->tree, "/token");
	gone = logged(f, 5);
	assert_string_equal(f->q.authorization, "Bearer old");
	assert_int_equal(count(gone, "cannot read credentials, keeping the last ones"), 1);
	assert_int_equal(count(gone, "\n"), 1);

	tree_write(&f->tree, "/token", "new");
	back = logged(f, 5);
	assert_string_equal(f->q.authorization, "Bearer new");
	assert_int_equal(count(back, "credentials are readable again"), 1);
	assert_int_equal(count(back, "\n"), 1);
}

TEST_WITH(a_token_file_that_is_empty_for_a_moment_keeps_the_last, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *said = NULL;

	use_token_file(f);
	get(f);
	tree_write(&f->tree, "/token", "");
	said = logged(f, 3);
	assert_string_equal(f->q.authorization, "Bearer old");
	assert_non_null(strstr(said, "is empty, must hold a token"));
}

TEST_WITH(a_rotated_certificate_asks_for_new_connections, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *said = NULL;
	uint64_t before;

	f->config.auth.client_cert_pem = str_dup(CERT_PEM);
	f->config.auth.client_key_pem = str_dup(KEY_PEM);
	f->config.auth.client_cert_file = tree_path(&f->tree, "/both.pem");
	f->config.auth.client_key_file = tree_path(&f->tree, "/both.pem");
	tree_write(&f->tree, "/both.pem", CERT_PEM KEY_PEM);
	start(f);
	get(f);
	assert_string_equal(f->q.cert, CERT_PEM KEY_PEM);
	tree_write(&f->tree, "/both.pem", OTHER_CERT_PEM OTHER_KEY_PEM);
	pass_time(1000);
	before = f->q.tls_generation;
	assert_string_equal(get(f)->cert, OTHER_CERT_PEM OTHER_KEY_PEM);
	assert_string_equal(f->q.key, OTHER_CERT_PEM OTHER_KEY_PEM);
	assert_int_equal(f->q.tls_generation, before + 1);

	tree_write(&f->tree, "/both.pem", "half of it");
	said = logged(f, 1);
	assert_string_equal(f->q.cert, OTHER_CERT_PEM OTHER_KEY_PEM);
	assert_non_null(strstr(said, "holds no certificate"));
}

/* ---- exec plugins ---------------------------------------------------------------------------- */

/*
 * The plugin is a shell script that first adds a line to "runs", so that tests can count its runs.
 */
static void use_plugin(struct fixture *f, const char *script)
{
	auto_free char *text =
		str_printf("#!/bin/sh\necho run >>'%s/runs'\n%s\n", f->tree.root, script);
	struct kube_exec *exec = &f->config.auth.exec;

	tree_write(&f->tree, "/plugin", text);
	if (f->credentials)
		return;
	f->config.auth.kind = KUBE_AUTH_EXEC;
	exec->command = str_dup("/bin/sh");
	exec->args = calloc(2, sizeof(*exec->args));
	exec->args[0] = tree_path(&f->tree, "/plugin");
	exec->env = calloc(3, sizeof(*exec->env));
	exec->env[0] = str_dup("PATH=/usr/bin:/bin");
	exec->env[1] = str_dup("SAYS=from the environment");
	exec->api_version = str_dup(EXEC_CREDENTIAL_V1);
	start(f);
}

static unsigned int runs(struct fixture *f)
{
	auto_free char *path = tree_path(&f->tree, "/runs");
	auto_fclose FILE *file = fopen(path, "r");
	unsigned int n = 0;

	for (int c; file && (c = fgetc(file)) != EOF;)
		n += c == '\n';
	return n;
}

#define PRINT(status)                                                                              \
	"cat "                                                                                     \
	"<<'END'\n{\"apiVersion\":\"client.authentication.k8s.io/"                                 \
	"v1\",\"kind\":\"ExecCredential\","                                                        \
	"\"status\":{" status "}}\nEND\n"

static void expiring_token(struct fixture *f, const char *token, int64_t after_s)
{
	auto_free char *script = NULL;
	char expires[RFC3339_SIZE];

	rfc3339_write(wall_us + after_s * 1000000, expires);
	script = str_printf(PRINT("\"token\":\"%s\",\"expirationTimestamp\":\"%s\""), token,
			    expires);
	use_plugin(f, script);
}

TEST_WITH(a_plugin_runs_once_for_all_who_wait, set_up, tear_down)
{
	struct fixture *f = *state;
	struct question q[3] = {0};

	use_plugin(f, "sleep 0.1; " PRINT("\"token\":\"abc\""));
	for (size_t i = 0; i < ARRAY_LEN(q); i++) {
		ask(f, &q[i]);
		assert_int_equal(q[i].answers, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(q); i++) {
		await(f, &q[i]);
		assert_string_equal(q[i].authorization, "Bearer abc");
		question_reset(&q[i]);
	}
	/* Without an expirationTimestamp it is good until the server refuses it. */
	pass_time(INT64_C(1000) * 86400 * 365);
	assert_string_equal(get(f)->authorization, "Bearer abc");
	assert_int_equal(runs(f), 1);
}

TEST_WITH(rotated_authorities_ask_for_new_connections, set_up, tear_down)
{
	struct fixture *f = *state;
	auto_free char *said = NULL;
	uint64_t before;

	f->config.ca_pem = str_dup(CERT_PEM);
	f->config.ca_file = tree_path(&f->tree, "/ca.crt");
	tree_write(&f->tree, "/ca.crt", CERT_PEM);
	start(f);
	assert_string_equal(get(f)->ca, CERT_PEM);
	before = f->q.tls_generation;
	pass_time(1000);
	assert_int_equal(get(f)->tls_generation, before); /* read, and the same */
	tree_write(&f->tree, "/ca.crt", CERT_PEM OTHER_CERT_PEM);
	pass_time(1000);
	assert_string_equal(get(f)->ca, CERT_PEM OTHER_CERT_PEM);
	assert_int_equal(f->q.tls_generation, before + 1);

	tree_write(&f->tree, "/ca.crt", "half of it");
	said = logged(f, 2);
	assert_string_equal(f->q.ca, CERT_PEM OTHER_CERT_PEM);
	assert_non_null(strstr(said, "holds no certificate"));
}

TEST_WITH(a_plugin_may_give_a_certificate, set_up, tear_down)
{
	struct fixture *f = *state;

	use_plugin(f, PRINT("\"clientCertificateData\":\"-----BEGIN "
			    "CERTIFICATE-----\\nMAMCAQE=\\n-----END "
			    "CERTIFICATE-----\\n\",\"clientKeyData\":\"-----BEGIN PRIVATE "
			    "KEY-----\\nMAMCAQM=\\n-----END PRIVATE KEY-----\\n\""));
	get(f);
	assert_string_equal(f->q.err.text, "");
	assert_null(f->q.authorization);
	assert_string_equal(f->q.cert, CERT_PEM);
	assert_string_equal(f->q.key, KEY_PEM);
	assert_int_equal(f->q.tls_generation, 2);
}

TEST_WITH(a_plugin_has_its_environment_and_no_input, set_up, tear_down)
{
	struct fixture *f = *state;

	use_plugin(f, "read line && exit 9; echo \"$SAYS\" >&2; exit 3");
	get(f);
	assert_string_equal(f->q.err.text,
			    "exec plugin /bin/sh ended with status 3: from the environment");
	assert_string_equal(f->q.err.reason, "ExecPluginFailed");
	assert_int_equal(f->q.err.class, ERR_TRANSIENT);
}

TEST_WITH(an_expired_token_is_fetched_anew, set_up, tear_down)
{
	struct fixture *f = *state;
	uint64_t before;

	expiring_token(f, "one", 100);
	assert_string_equal(get(f)->authorization, "Bearer one");
	before = f->q.generation;
	pass_time(100 * 1000);
	expiring_token(f, "two", 100);
	assert_string_equal(get(f)->authorization, "Bearer two");
	assert_int_equal(f->q.generation, before + 1);
	assert_int_equal(runs(f), 2);
}

TEST_WITH(renewal_ahead_of_time_lets_nobody_wait, set_up, tear_down)
{
	struct fixture *f = *state;

	expiring_token(f, "one", 100);
	get(f);
	pass_time(89 * 1000);
	get(f);
	expiring_token(f, "two", 100);
	pass_time(2 * 1000);
	ask(f, &f->q);
	/* Answered at once with the old one, while the plugin runs. */
	assert_int_equal(f->q.answers, 1);
	assert_string_equal(f->q.authorization, "Bearer one");
	for (int turns = 0; str_eq(f->q.authorization, "Bearer one") && turns < 1000; turns++) {
		loop_turn(f->loop, true);
		ask(f, &f->q);
	}
	assert_string_equal(f->q.authorization, "Bearer two");
	assert_int_equal(runs(f), 2);
}

TEST_WITH(a_failed_renewal_keeps_the_last_until_it_expires, set_up, tear_down)
{
	struct fixture *f = *state;
	int log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	expiring_token(f, "one", 100);
	get(f);
	pass_time(95 * 1000);
	use_plugin(f, "exit 1");
	log_set_fd(log_fd);
	get(f);
	while (runs(f) < 2)
		loop_turn(f->loop, true);
	assert_string_equal(get(f)->authorization, "Bearer one");
	pass_time(6 * 1000);
	get(f);
	assert_string_equal(f->q.err.text, "exec plugin /bin/sh ended with status 1");
	log_set_fd(2);
	close(log_fd);
}

TEST_WITH(a_refused_token_is_fetched_anew_but_not_for_ever, set_up, tear_down)
{
	struct fixture *f = *state;

	use_plugin(f, PRINT("\"token\":\"abc\""));
	get(f);
	assert_true(kube_credentials_reject(f->credentials, f->q.generation));
	get(f);
	assert_int_equal(runs(f), 2);
	assert_string_equal(f->q.authorization, "Bearer abc");

	/* Fresh from the plugin and refused again: it has to wait now, and everyone is told why. */
	assert_true(kube_credentials_reject(f->credentials, f->q.generation));
	get(f);
	assert_int_equal(runs(f), 2);
	assert_string_equal(f->q.err.text, "kubeconfig /x, context \"prod\": the server refuses "
					   "what exec plugin /bin/sh gives "
					   "(401); check its login");
	assert_string_equal(f->q.err.reason, "CredentialsRejected");
	pass_time(1000);
	assert_string_equal(get(f)->authorization, "Bearer abc");
	assert_int_equal(runs(f), 3);

	/* After a while in good standing, one refusal is a rotation again. */
	pass_time(60 * 1000);
	assert_true(kube_credentials_reject(f->credentials, f->q.generation));
	assert_string_equal(get(f)->authorization, "Bearer abc");
	assert_int_equal(runs(f), 4);
}

TEST_WITH(a_failing_plugin_is_not_run_for_every_request, set_up, tear_down)
{
	struct fixture *f = *state;
	static const int64_t holds_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

	use_plugin(f, "echo 'no network' >&2; exit 1");
	for (unsigned int i = 0; i < ARRAY_LEN(holds_ms); i++) {
		get(f);
		get(f);
		assert_int_equal(runs(f), i + 1);
		assert_string_equal(f->q.err.text,
				    "exec plugin /bin/sh ended with status 1: no network");
		pass_time(holds_ms[i] - 1);
		get(f);
		assert_int_equal(runs(f), i + 1);
		pass_time(1);
	}
	use_plugin(f, PRINT("\"token\":\"abc\""));
	assert_string_equal(get(f)->authorization, "Bearer abc");
}

TEST(what_a_plugin_prints_is_judged_and_never_shown)
{
	static const struct {
		const char *script, *want;
	} cases[] = {
		{"true", "exec plugin /bin/sh: printed nothing, must print an ExecCredential"},
		{"echo S3CRET", "exec plugin /bin/sh: printed something that is not JSON, must "
				"print an ExecCredential"},
		{"kill -9 $$", "exec plugin /bin/sh was killed by signal 9"},
		{PRINT("\"token\":\"S3CRET\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\""),
		 "exec plugin /bin/sh printed credentials that had expired already; check the "
		 "clock"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture *f = NULL;

		set_up((void **)&f);
		use_plugin(f, cases[i].script);
		get(f);
		assert_string_equal(f->q.err.text, cases[i].want);
		tear_down((void **)&f);
	}
}

TEST_WITH(a_missing_plugin_comes_with_its_hint, set_up, tear_down)
{
	struct fixture *f = *state;

	f->config.auth.exec.install_hint = str_dup("apt\ninstall get-token");
	use_plugin(f, "");
	free(f->config.auth.exec.command);
	f->config.auth.exec.command = str_dup("orbweaver-no-such-program");
	get(f);
	assert_string_equal(f->q.err.text,
			    "exec plugin orbweaver-no-such-program does not exist in any folder of "
			    "$PATH: apt install get-token");
	assert_int_equal(f->q.err.class, ERR_INVALID);
	get(f);
	assert_string_equal(f->q.err.reason, "ExecPluginMissing");
}

TEST_WITH(too_much_output_ends_a_plugin, set_up, tear_down)
{
	struct fixture *f = *state;

	use_plugin(f, "yes");
	get(f);
	assert_string_equal(f->q.err.text, "exec plugin /bin/sh printed more than 1048576 bytes");
}

TEST_WITH(only_the_end_of_stderr_is_shown, set_up, tear_down)
{
	struct fixture *f = *state;
	size_t len;

	use_plugin(f, "yes 'line of noise' | head -n 20000 >&2; printf 'the\\033 reason\\n\\n' "
		      ">&2; exit 1");
	get(f);
	len = strlen(f->q.err.text);
	assert_true(str_ends(f->q.err.text, "line of noise the  reason"));
	assert_in_range(len, 200, 260);
}

static void on_plugin(void *arg, const char *out, size_t len, const struct err *err)
{
	struct err *ret = arg;

	assert_non_null(err);
	*ret = *err;
}

TEST_WITH(a_plugin_that_hangs_is_killed_with_its_children, set_up, tear_down)
{
	struct fixture *f = *state;
	struct err err = {0};
	auto_free char *path = tree_path(&f->tree, "/pid");
	auto_fclose FILE *pid_file = NULL;
	int pid = 0;

	use_plugin(f, "sleep 1000 & echo $! >\"${0%/*}/pid\"; echo waiting >&2; wait");
	assert_non_null(
		exec_plugin_start(f->loop, &f->config.auth.exec, 300, on_plugin, &err, NULL));
	while (!*err.text)
		loop_turn(f->loop, true);
	assert_string_equal(err.text, "exec plugin /bin/sh has not ended after 300 ms: waiting");
	assert_string_equal(err.reason, "ExecPluginTimeout");

	pid_file = fopen(path, "r");
	assert_non_null(pid_file);
	assert_int_equal(fscanf(pid_file, "%d", &pid), 1);
	for (int tries = 0; tries < 1000; tries++) {
		auto_free char *stat_path = str_printf("/proc/%d/stat", pid);
		auto_fclose FILE *stat_file = fopen(stat_path, "r");
		char state_letter = 'X';

		if (!stat_file || fscanf(stat_file, "%*d %*s %c", &state_letter) < 1 ||
		    strchr("ZX", state_letter))
			return;
		usleep(1000);
	}
	fail_msg("the plugin's child %d is still alive", pid);
}

TEST_WITH(a_child_that_keeps_the_output_open_is_not_waited_for_for_ever, set_up, tear_down)
{
	struct fixture *f = *state;
	struct err err = {0};

	use_plugin(f, "sleep 2 & exit 0");
	assert_non_null(
		exec_plugin_start(f->loop, &f->config.auth.exec, 200, on_plugin, &err, NULL));
	while (!*err.text)
		loop_turn(f->loop, true);
	assert_string_equal(err.text, "exec plugin /bin/sh has not closed its output after 200 ms");
}

TEST_WITH(cancelled_questions_get_no_answer, set_up, tear_down)
{
	struct fixture *f = *state;
	struct question q[3] = {0};

	use_plugin(f, PRINT("\"token\":\"abc\""));
	for (size_t i = 0; i < ARRAY_LEN(q); i++)
		ask(f, &q[i]);
	kube_credentials_cancel(f->credentials, &q[2].wait);
	kube_credentials_cancel(f->credentials, &q[2].wait);
	/* From inside an answer, too. */
	q[0].cancel_me = &q[1];
	other_fixture = f;
	await(f, &q[0]);
	assert_int_equal(q[0].answers, 1);
	assert_int_equal(q[1].answers, 0);
	assert_int_equal(q[2].answers, 0);
	/* The list is whole: the next question goes through. */
	kube_credentials_reject(f->credentials, q[0].generation);
	assert_string_equal(get(f)->authorization, "Bearer abc");
	for (size_t i = 0; i < ARRAY_LEN(q); i++)
		question_reset(&q[i]);
}

TEST_WITH(freeing_from_an_answer_ends_all_answers, set_up, tear_down)
{
	struct fixture *f = *state;
	struct question q[2] = {0};

	use_plugin(f, PRINT("\"token\":\"abc\""));
	ask(f, &q[0]);
	ask(f, &q[1]);
	q[0].free_me = f->credentials;
	await(f, &q[0]);
	f->credentials = NULL;
	loop_turn(f->loop, false);
	assert_int_equal(q[1].answers, 0);
	question_reset(&q[0]);
	question_reset(&q[1]);
}

TEST_WITH(freeing_kills_a_running_plugin, set_up, tear_down)
{
	struct fixture *f = *state;
	struct question q = {0};

	use_plugin(f, "sleep 1000");
	ask(f, &q);
	while (!runs(f))
		loop_turn(f->loop, false);
	kube_credentials_free(take_ptr(f->credentials));
	/* Closing the loop would fail if anything were left of it. */
	assert_int_equal(q.answers, 0);
}

/* ---- ExecCredential -------------------------------------------------------------------------- */

#define CREDENTIAL(status)                                                                         \
	"{\"apiVersion\":\"client.authentication.k8s.io/"                                          \
	"v1\",\"kind\":\"ExecCredential\",\"status\":" status "}"
#define JSON_CERT "\"-----BEGIN CERTIFICATE-----\\nMAMCAQE=\\n-----END CERTIFICATE-----\""
#define JSON_KEY  "\"-----BEGIN PRIVATE KEY-----\\nMAMCAQM=\\n-----END PRIVATE KEY-----\""

TEST(exec_credentials_are_read_whole)
{
	static const char text[] =
		CREDENTIAL("{\"token\":\"t\",\"clientCertificateData\":" JSON_CERT
			   ",\"clientKeyData\":" JSON_KEY
			   ",\"expirationTimestamp\":\"1970-01-01T01:00:01+01:00\"}");
	auto_exec_credential struct exec_credential c = {0};

	assert_int_equal(exec_credential_parse(text, strlen(text), EXEC_CREDENTIAL_V1, &c, NULL),
			 0);
	assert_string_equal(c.token, "t");
	assert_non_null(c.cert_pem);
	assert_non_null(c.key_pem);
	assert_int_equal(c.expires_us, 1000000);
}

TEST(each_mistake_in_an_exec_credential_is_named)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"[]", "printed an array, must print an ExecCredential"},
		{"{}", "printed an object of another kind, must print kind ExecCredential"},
		{"{\"kind\":\"ExecCredential\"}",
		 "printed an ExecCredential of an unknown apiVersion, must be "
		 "client.authentication.k8s.io/v1"},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
		 "v1beta1\"}",
		 "printed an ExecCredential of apiVersion client.authentication.k8s.io/v1beta1, "
		 "but the kubeconfig "
		 "asks for client.authentication.k8s.io/v1; set exec.apiVersion to what the plugin "
		 "speaks"},
		{CREDENTIAL("null"), "printed an ExecCredential without a status"},
		{CREDENTIAL("{}"), "printed neither status.token nor status.clientCertificateData"},
		{CREDENTIAL("{\"token\":\"\"}"),
		 "printed neither status.token nor status.clientCertificateData"},
		{CREDENTIAL("{\"token\":7}"),
		 "printed an ExecCredential whose status.token is an integer, must be a string"},
		{CREDENTIAL("{\"token\":\"S3CRET\\r\\nX: y\"}"),
		 "printed a status.token with blanks, control or non-ASCII characters"},
		{CREDENTIAL("{\"token\":\"S3CRET\",\"expirationTimestamp\":\"soon\"}"),
		 "printed a status.expirationTimestamp that is no time, must be like "
		 "2026-01-31T10:00:00Z"},
		{CREDENTIAL("{\"clientCertificateData\":" JSON_CERT "}"),
		 "printed status.clientCertificateData or status.clientKeyData alone, must print "
		 "both or neither"},
		{CREDENTIAL("{\"clientCertificateData\":" JSON_KEY ",\"clientKeyData\":" JSON_KEY
			    "}"),
		 "printed a status.clientCertificateData that holds a private key but no "
		 "certificate"},
		{CREDENTIAL("{\"clientCertificateData\":" JSON_CERT
			    ",\"clientKeyData\":\"S3CRET\"}"),
		 "printed a status.clientKeyData that holds no private key (no \"-----BEGIN "
		 "PRIVATE KEY-----\" "
		 "line)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_exec_credential struct exec_credential c = {0};
		struct err err = {0};

		assert_int_equal(exec_credential_parse(cases[i].text, strlen(cases[i].text),
						       EXEC_CREDENTIAL_V1, &c, &err),
				 -1);
		assert_string_equal(err.text, cases[i].want);
		assert_string_equal(err.reason, "BadExecCredential");
	}
}

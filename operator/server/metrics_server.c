// SPDX-License-Identifier: Apache-2.0
/*
 * program.c starts this with the flags: a listener without TLS, or one with a gate
 * (metrics_access.c) and a certificate. The user's pair of files is looked at by a timer, and
 * replaces our own once both match.
 */
#include "operator/server/metrics_server.h"

#include <assert.h>
#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/certificate.h"
#include "lib/http/probes.h"
#include "lib/kube/auth/file.h"
#include "lib/kube/auth/secret.h"
#include "operator/server/metrics_access.h"

enum {
	/* Of our own certificate, which is made again at each start. */
	LIFETIME_S = 3650 * 86400,
	LOOK_MS = 10000,
	/* A chain of many intermediates is a tenth of this. */
	PEM_MAX = 256 * 1024,
};

struct metrics_server {
	struct probes probes;
	struct http_server *http; /* NULL: nothing is served */
	struct metrics_access *access;
	struct timer *looking;
	char *certificate_path, *key_path;
	struct file_watch certificate, key;
	struct strbuf certificate_pem, key_pem; /* the user's, as read last; empty: none yet */
	bool failed;                            /* the last look ended badly, and that is logged */
	void (*done)(void *arg);
	void *arg;
};

static void metrics_server_free(struct metrics_server *server)
{
	metrics_access_free(server->access);
	timer_free(server->looking);
	mem_free(server->certificate_path);
	mem_free(server->key_path);
	strbuf_done(&server->certificate_pem);
	secret_buf_done(&server->key_pem);
	mem_free(server);
}

/* ---- the user's certificate ------------------------------------------------------------------ */

/* 1: ret holds it, read again; 0: as it was, or not there; -1: it cannot be read. */
static int look_at_file(struct file_watch *watch, struct strbuf *ret, struct err *err)
{
	auto_secret_buf struct strbuf read = {0};
	int got = file_watch_look(watch, clock_ms(), &read, err);

	if (got < 0 && err->sys == ENOENT)
		return 0;
	if (got <= 0)
		return got;
	strbuf_reset(ret);
	strbuf_add(ret, strbuf_str(&read), read.len);
	return 1;
}

/* As look_at_file, of both; 1 once there are two that were not used yet. */
static int look_at_pair(struct metrics_server *server, struct err *err)
{
	int certificate = look_at_file(&server->certificate, &server->certificate_pem, err);
	int key = certificate < 0 ? -1 : look_at_file(&server->key, &server->key_pem, err);

	if (key < 0)
		return -1;
	if (!server->certificate_pem.len != !server->key_pem.len)
		return err_set(err, ERR_INVALID, "BadCertificate",
			       METRICS_SERVER_CERTIFICATE " and " METRICS_SERVER_KEY
							  " have to be there together");
	return (certificate > 0 || key > 0) && server->certificate_pem.len > 0 &&
	       server->key_pem.len > 0;
}

static void report_look(struct metrics_server *server, const struct err *err)
{
	if (err && !server->failed)
		log_warn("cannot use the certificate for metrics, keeping the last one",
			 F_STR("path", server->certificate_path), F_ERR(err));
	if (!err && server->failed)
		log_info("using the certificate for metrics again",
			 F_STR("path", server->certificate_path));
	server->failed = err != NULL;
}

/* Files are replaced one after the other: a pair that does not match yet is tried at each look. */
static void look_at_files(void *arg)
{
	struct metrics_server *server = arg;
	struct err err = {0};
	int found = look_at_pair(server, &err);

	if (found > 0)
		found = http_server_set_certificate(server->http,
						    strbuf_str(&server->certificate_pem),
						    strbuf_str(&server->key_pem), &err);
	if (found < 0) {
		file_watch_stale(&server->certificate);
		file_watch_stale(&server->key);
		report_look(server, &err);
	} else if (server->certificate_pem.len > 0) {
		report_look(server, NULL);
	}
	timer_start(server->looking, LOOK_MS);
}

/* ---- serving --------------------------------------------------------------------------------- */

static int start_secure(struct metrics_server *server, struct loop *loop,
			struct kube_client *client, const struct metrics_server_config *config,
			struct err *err)
{
	auto_free char *name = str_printf("orbweaver-operator-metrics.%s.svc", config->ns);
	const char *const names[] = {name};
	int64_t now_s = clock_wall_us() / 1000000;
	auto_certificate_set struct certificate_set set = {0};
	const struct certificate_order order = {"orbweaver metrics", names, ARRAY_LEN(names), now_s,
						now_s + LIFETIME_S};

	if (certificate_issue(&order, &set, err) < 0)
		return -1;
	server->access = metrics_access_new(client);
	if (probes_serve_metrics(&server->probes, loop, config->listen, config->metrics,
				 &(struct probes_secure){
					 .certificate_pem = set.certificate_pem,
					 .key_pem = set.key_pem,
					 .tls = config->tls,
					 .gate = metrics_access_gate(server->access),
				 },
				 &server->http, err) < 0)
		return -1;
	if (!server->http || !config->certificate_path)
		return 0;
	server->certificate_path =
		str_printf("%s/" METRICS_SERVER_CERTIFICATE, config->certificate_path);
	server->key_path = str_printf("%s/" METRICS_SERVER_KEY, config->certificate_path);
	server->certificate = (struct file_watch){.path = server->certificate_path, .max = PEM_MAX};
	server->key = (struct file_watch){.path = server->key_path, .max = PEM_MAX};
	server->looking = timer_new(loop, look_at_files, server);
	look_at_files(server);
	return 0;
}

int metrics_server_new(struct loop *loop, struct kube_client *client,
		       const struct metrics_server_config *config, struct metrics_server **ret,
		       struct err *err)
{
	struct metrics_server *server = mem_new(struct metrics_server);
	int rc = config->secure ? start_secure(server, loop, client, config, err)
				: probes_serve_metrics(&server->probes, loop, config->listen,
						       config->metrics, NULL, &server->http, err);

	assert(config->listen && config->metrics);
	if (rc < 0) {
		metrics_server_free(server);
		return -1;
	}
	*ret = server;
	return 0;
}

static void on_closed(void *arg)
{
	struct metrics_server *server = arg;
	void (*done)(void *arg) = server->done;
	void *done_arg = server->arg;

	metrics_server_free(server);
	done(done_arg);
}

void metrics_server_close(struct metrics_server *server, void (*done)(void *arg), void *arg)
{
	assert(done && !server->done);
	server->done = done;
	server->arg = arg;
	if (server->http)
		http_server_close(take_ptr(server->http), on_closed, server);
	else
		on_closed(server);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Admission over HTTPS: reviews in, verdicts out, from the caches, without a request to the API
 * server. Every replica serves.
 *
 *	/validate  reconcilers/admission/admission.h
 *	/default   reconcilers/admission/admission.h
 *	/inject    reconcilers/admission/pod_inject.h
 *
 * Until the leader's certificate (certificates.h) is in the cache, and until the caches are
 * complete, API servers do not get an answer that counts (an authority that they do not trust,
 * 503), and go on without us.
 *
 * Metrics: orbweaver_admission_requests_total{path,kind,verdict} (verdict: allowed, patched,
 * refused, unreadable, too heavy, too early), orbweaver_admission_seconds{path} (from request to
 * answer, TLS not included), orbweaver_webhook_certificate_expiry_seconds (time since the epoch; 0:
 * none yet).
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/http/server.h"
#include "operator/controllers/controllers.h"

/* etcd takes 1.5 MiB (--max-request-bytes), and an update carries two objects. */
#define WEBHOOK_BODY_MAX (4 * 1024 * 1024)
/* Creations of pods carry one, and real ones have some ten KiB. */
#define WEBHOOK_POD_BODY_MAX (1024 * 1024)
/*
 * Strangers may send reviews too, and JSON can take 80 times its length in memory. So it is weighed
 * (json_weight) before it is read: this much takes at most 3 MB. A pod weighs some thousand.
 */
#define WEBHOOK_WEIGHT_MAX 20000

struct loop;
struct webhook;

/* Listens at once. Errors: those of http_server_new. metrics are borrowed. */
struct webhook *webhook_new(struct loop *loop, const char *listen,
			    const struct http_tls_policy *tls, struct metrics *metrics,
			    struct err *err);

/* From now on there are caches to answer from; borrowed until webhook_close. */
void webhook_attach(struct webhook *webhook, const struct controller_sources *sources);

/*
 * Called for each change in the caches, once they hold it: picks up the certificate, the settings
 * and switches of pod injection, and forgets what it has parsed. now NULL: it went.
 */
void webhook_changed(struct webhook *webhook, const char *kind, const json_t *now);

/*
 * Ends as http_server_close does; the webhook is freed before done is called. NULL: done is not
 * called.
 */
void webhook_close(struct webhook *webhook, void (*done)(void *arg), void *arg);

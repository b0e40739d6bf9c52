// SPDX-License-Identifier: Apache-2.0
/* The operator: reads its flags, wires the libraries together, runs the loop, leaves in order. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "lib/http/probes.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/client.h"
#include "lib/kube/lease.h"
#include "lib/kube/recorder.h"
#include "lib/kube/status.h"
#include "lib/loop/loop.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/debug.h"
#include "operator/dependency_health.h"
#include "operator/manager.h"
#include "operator/options.h"
#include "operator/program.h"
#include "operator/server/metrics_server.h"
#include "operator/server/webhook.h"
#include "operator/server_version.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/ipam_settings.h"

enum {
	/* Writes in flight get this long at shutdown, then they are abandoned. */
	SHUTDOWN_MS = 5000,
	SHUTDOWN_LOOK_MS = 20,
	/* A connection with watches that is silent for so long is asked whether it lives: two
	   replicas may ask often. */
	WATCH_SILENCE_MS = 5000,
	/* The first API server version with matchConditions of webhooks (KEP-3716). */
	MATCH_CONDITIONS_MINOR = 28,
	/* The first that puts a label with its name on each namespace (KEP-2161). */
	NAMESPACE_LABELS_MINOR = 21,
	/*
	 * How long the API server may take to say its version, and how long we wait until we ask
	 * again.
	 */
	VERSION_TIMEOUT_MS = 5000,
	VERSION_AGAIN_MS = 2000,
	/* Some hundred authorities. */
	CLIENT_CA_MAX = 1024 * 1024,
	/* More often than the liveness probe looks (manifests/base/operator.yaml). */
	LEASE_CHECK_MS = 5000,
	/* No attempt takes longer, whatever the API server does: a read that it does not answer,
	   and a pause. */
	LEASE_STUCK_MS = 2 * KUBE_CALL_TIMEOUT_MS,
};

/* In /healthz, /readyz and metrics. */
#define LEASE_SUBJECT "lease"

struct orbweaver {
	struct options options;
	struct loop *loop;
	struct metrics *metrics;
	struct health *alive, *ready;
	struct probes health_probes;
	struct metrics_server *metrics_server;
	struct http_server *health_server;
	struct dependency_health *troubles;
	struct event_object self;
	struct kube_config config;
	struct kube_client *client;
	struct recorder *recorder;
	struct manager *manager;
	json_t *policy_namespaces;
	struct webhook_settings webhook_settings;
	struct webhook *webhook; /* NULL without --webhook-addr */
	struct debug *debug;
	struct signal_watch *toggle;
	struct {
		char *identity;
		struct lease *lease;
		json_t *annotations; /* of the lease */
		struct timer *check;
		struct metric *leader, *master;
	} leading;
	struct {
		struct timer *again;
		char trouble[sizeof(((struct err *)0)->text)]; /* what was said last */
	} asking;                                              /* for the API server's version */
	struct {
		struct signal_watch *term, *interrupt;
		struct timer *look;
		int64_t by_ms;
		bool has_begun;
	} leaving;
};

/* ---- leading --------------------------------------------------------------------------------- */

static bool may_write(void *arg)
{
	const struct orbweaver *op = arg;

	return !op->leading.lease || lease_is_held(op->leading.lease);
}

static void on_leading(void *arg, bool leading)
{
	struct orbweaver *op = arg;

	log_info(leading ? "leading" : "not leading any more",
		 F_STR("identity", op->leading.identity),
		 F_STR("holder",
		       op->leading.lease ? lease_holder(op->leading.lease) : op->leading.identity));
	metric_set(op->leading.leader, leading);
	metric_set(op->leading.master, leading, op->options.lease_name);
	if (op->manager && !op->leaving.has_begun)
		manager_lead(op->manager, leading);
}

static void on_lease_trouble(void *arg, const struct err *err)
{
	struct orbweaver *op = arg;

	if (!err) {
		(void)dependency_health_end(op->troubles, LEASE_SUBJECT);
		return;
	}
	dependency_health_begin(op->troubles, LEASE_SUBJECT, err->reason, err->text);
	log_error("cannot read or write the lease, will retry", F_ERR(err));
}

/* A lease that neither renews nor loses is beyond repair from inside: the kubelet restarts us. */
static void on_lease_check(void *arg)
{
	struct orbweaver *op = arg;
	int64_t silent_ms = clock_ms() - lease_looked_ms(op->leading.lease);
	bool alive = silent_ms < LEASE_STUCK_MS;

	if (health_set(op->alive, LEASE_SUBJECT, alive, "no attempt to renew it ends") && !alive)
		log_error("lease is stuck, failing the liveness probe",
			  F_INT("silent_ms", silent_ms));
	timer_start(op->leading.check, LEASE_CHECK_MS);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void on_changed(void *arg, const char *kind, const json_t *now)
{
	struct orbweaver *op = arg;

	if (op->webhook)
		webhook_changed(op->webhook, kind, now);
}

/* minor: of the API server's version, 1.minor. */
static void start_deciding(struct orbweaver *op, int64_t minor)
{
	op->webhook_settings.match_conditions = minor >= MATCH_CONDITIONS_MINOR;
	if (op->webhook && minor && minor < NAMESPACE_LABELS_MINOR)
		log_warn("API server does not label namespaces with their names, so pods of "
			 "namespaces "
			 "that podResourceInject excludes come to the webhook too and pass",
			 F_STR("remedy",
			       "kubectl label namespace kube-system "
			       "kubernetes.io/metadata.name=kube-system, and others alike"));
	op->manager = manager_new(&(struct manager_config){
		.loop = op->loop,
		.client = op->client,
		.recorder = op->recorder,
		.metrics = op->metrics,
		.troubles = op->troubles,
		.self = &op->self,
		.ns = op->options.ns,
		.resource_prefix = op->options.resource_prefix,
		.config_ns = op->options.config_ns,
		.cilium_config = op->options.cilium_config,
		.policy_namespaces = op->policy_namespaces,
		.webhook = &op->webhook_settings,
		.writes_max = (unsigned int)op->options.api_max_in_flight,
		.changed = on_changed,
		.arg = op,
	});
	debug_attach(op->debug, op->manager, op->client);
	if (op->webhook)
		webhook_attach(op->webhook, manager_sources(op->manager));
	op->leading.annotations = json_pack("{s:s}", IPAM_LEADER_ANNOTATION, op->options.config_ns);
	dependency_health_add(op->troubles, LEASE_SUBJECT, false);
	op->leading.lease = lease_new(op->loop, op->client,
				      &(struct lease_config){
					      .ns = op->options.ns,
					      .name = op->options.lease_name,
					      .identity = op->leading.identity,
					      .field_manager = OPERATOR_NAME,
					      .timing = op->options.lease_timing,
					      .is_alone = !op->options.leader_elect,
					      .annotations = op->leading.annotations,
					      .changed = on_leading,
					      .trouble = on_lease_trouble,
					      .arg = op,
				      });
	kube_client_set_fence(op->client, may_write, op);
	on_lease_check(op);
}

/*
 * Nothing begins before the API server has answered: what is wrong with address, certificates or
 * credentials is said once here, not by each kind that would like to be listed.
 */
static void wait_for_server(struct orbweaver *op, const struct err *err)
{
	health_set(op->ready, "api-server", false, err->text);
	if (!str_eq(op->asking.trouble, err->text))
		log_error("API server does not answer yet, will retry",
			  F_STR("server", op->config.server), F_ERR(err));
	snprintf(op->asking.trouble, sizeof(op->asking.trouble), "%s", err->text);
	timer_start(op->asking.again, VERSION_AGAIN_MS);
}

/* err NULL: its answer has no version in it. */
static void tell_of_silence(const struct orbweaver *op, const struct err *err)
{
	const char *effect = "webhooks are made as for servers before 1.28, without "
			     "matchConditions: the server calls for more pods than need it";
	const char *remedy = "let GET /version pass, which the ClusterRole "
			     "system:public-info-viewer allows, and restart the operator";

	if (err)
		log_warn("API server does not say its version", F_STR("server", op->config.server),
			 F_STR("effect", effect), F_STR("remedy", remedy), F_ERR(err));
	else
		log_warn("API server does not say its version", F_STR("server", op->config.server),
			 F_STR("effect", effect), F_STR("remedy", remedy));
}

static void start_after_answer(struct orbweaver *op, int64_t minor)
{
	health_set(op->ready, "api-server", true, NULL);
	start_deciding(op, minor);
}

/* Whoever refused to say a version: does it pass what an API server has? */
static void on_proof(void *arg, json_t *resources, const struct err *err)
{
	struct orbweaver *op = arg;

	if (op->leaving.has_begun)
		return;
	if (err && !kube_err_is(err, "Forbidden")) {
		wait_for_server(op, err);
		return;
	}
	log_info("API server found", F_STR("server", op->config.server));
	tell_of_silence(op, NULL);
	start_after_answer(op, 0);
}

static void on_version(void *arg, const struct kube_response *response, const struct err *err)
{
	struct orbweaver *op = arg;
	struct server_version version;

	if (op->leaving.has_begun)
		return;
	version = server_version_read(response, err);
	if (!version.is_there) {
		wait_for_server(op, err);
		return;
	}
	if (version.needs_proof) {
		(void)kube_get_path(op->client, "/api/v1", on_proof, op);
		return;
	}
	log_info("API server found", F_STR("server", op->config.server),
		 F_STR("version", version.text));
	if (version.minor == 0)
		tell_of_silence(op, err);
	start_after_answer(op, version.minor);
}

static void ask_for_version(void *arg)
{
	struct orbweaver *op = arg;

	kube_call(op->client, &(struct kube_request){
				      .verb = "get",
				      .method = "GET",
				      .path = "/version",
				      .timeout_ms = VERSION_TIMEOUT_MS,
				      .once = true,
				      .done = on_version,
				      .arg = op,
			      });
}

/* The policy of --tls-… and --webhook-client-ca, with the file's text in *ca. */
static int read_tls_policy(const struct options *options, struct strbuf *ca,
			   struct http_tls_policy *ret, struct err *err)
{
	if (options->webhook.client_ca &&
	    fs_read(AT_FDCWD, options->webhook.client_ca, CLIENT_CA_MAX, ca, err) < 0)
		return err_in(err, "--webhook-client-ca");
	*ret = (struct http_tls_policy){.min_version = options->tls.min_version};
	if (http_tls_policy_check(ret, err) < 0)
		return err_in(err, "--tls-min-version");
	ret->cipher_suites = options->tls.cipher_suites;
	if (http_tls_policy_check(ret, err) < 0)
		return err_in(err, "--tls-cipher-suites");
	ret->client_ca_pem = options->webhook.client_ca ? strbuf_str(ca) : NULL;
	if (http_tls_policy_check(ret, err) < 0)
		return err_in(err, "--webhook-client-ca %s", options->webhook.client_ca);
	return 0;
}

static int start_metrics(struct orbweaver *op, struct err *err)
{
	auto_strbuf struct strbuf ca = {0};
	struct metrics_server_config config = {
		.listen = op->options.metrics.addr,
		.ns = op->options.ns,
		.secure = op->options.metrics.secure,
		.certificate_path = op->options.metrics.cert_path,
		.metrics = op->metrics,
	};

	if (read_tls_policy(&op->options, &ca, &config.tls, err) < 0)
		return -1;
	config.tls.client_ca_pem = NULL; /* of webhooks; here it is a token that counts */
	return metrics_server_new(op->loop, op->client, &config, &op->metrics_server, err);
}

/* Before any of them is called, everything that they look at is there. */
static int start_webhook(struct orbweaver *op, struct err *err)
{
	auto_strbuf struct strbuf ca = {0};
	struct http_tls_policy tls = {0};

	op->webhook_settings = (struct webhook_settings){
		.listen = op->options.webhook.addr,
		.service = op->options.webhook.service,
		.url = op->options.webhook.url,
		.lifetime_s = op->options.webhook.certificate_s,
	};
	if (read_tls_policy(&op->options, &ca, &tls, err) < 0)
		return -1;
	if (!op->options.webhook.addr)
		return 0;
	op->webhook = webhook_new(op->loop, op->options.webhook.addr, &tls, op->metrics, err);
	return op->webhook ? 0 : err_in(err, "--webhook-addr %s", op->options.webhook.addr);
}

/* ---- end ------------------------------------------------------------------------------------- */

static void close_next(void *arg)
{
	struct orbweaver *op = arg;

	if (op->webhook)
		webhook_close(take_ptr(op->webhook), close_next, op);
	else if (op->metrics_server)
		metrics_server_close(take_ptr(op->metrics_server), close_next, op);
	else if (op->health_server)
		http_server_close(take_ptr(op->health_server), close_next, op);
	else if (op->debug)
		debug_close(take_ptr(op->debug), close_next, op);
	else
		loop_stop(op->loop);
}

static void on_leaving(void *arg)
{
	struct orbweaver *op = arg;
	size_t working = op->manager ? manager_working(op->manager) : 0;

	if (working > 0 && clock_ms() < op->leaving.by_ms) {
		timer_start(op->leaving.look, SHUTDOWN_LOOK_MS);
		return;
	}
	if (working > 0)
		log_warn("writes abandoned at shutdown", F_INT("plans", (int64_t)working));
	if (op->leading.lease)
		lease_release(op->leading.lease, close_next, op);
	else
		close_next(op);
}

/* No new decisions; what is being written is finished while we still hold the lease. */
static void on_terminate(void *arg)
{
	struct orbweaver *op = arg;

	if (op->leaving.has_begun)
		return;
	log_info("shutting down");
	op->leaving.has_begun = true;
	op->leaving.by_ms = clock_ms() + SHUTDOWN_MS;
	if (op->manager)
		manager_lead(op->manager, false);
	on_leaving(op);
}

static void operator_done(struct orbweaver *op)
{
	manager_free(op->manager);
	lease_free(op->leading.lease);
	json_decref(op->leading.annotations);
	recorder_free(op->recorder);
	kube_client_free(op->client);
	kube_config_done(&op->config);
	signal_watch_free(op->leaving.term);
	signal_watch_free(op->leaving.interrupt);
	signal_watch_free(op->toggle);
	timer_free(op->leaving.look);
	timer_free(op->asking.again);
	timer_free(op->leading.check);
	loop_free(op->loop);
	dependency_health_free(op->troubles);
	health_free(op->alive);
	health_free(op->ready);
	metrics_free(op->metrics);
	json_decref(op->policy_namespaces);
	mem_free(op->leading.identity);
}

static void on_toggle(void *arg)
{
	struct orbweaver *op = arg;

	if (op->debug)
		debug_toggle_log(op->debug);
}

/* ---- the program ----------------------------------------------------------------------------- */

static char *new_identity(void)
{
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	return str_printf("%s_%d_%08llx", host, (int)getpid(),
			  (unsigned long long)clock_jitter(UINT32_MAX));
}

static int operator_init(struct orbweaver *op, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = op->options.kubeconfig,
		.context = op->options.context,
		.envp = (const char *const *)environ,
	};

	if (kube_config_load(&source, &op->config, err) < 0)
		return -1;
	op->leading.identity = new_identity();
	op->self = (struct event_object){
		.resource = &kube_pods,
		.ns = op->options.ns,
		.name = op->options.pod_name,
		.uid = op->options.pod_uid,
	};
	op->policy_namespaces = options_policy_namespaces(op->options.policy_namespaces, err);
	op->metrics = metrics_new();
	metrics_add_process(op->metrics);
	op->leading.leader =
		metric_gauge(op->metrics, "orbweaver_leader", "1 while this replica decides.", "");
	op->leading.master = metric_gauge(op->metrics, "leader_election_master_status",
					  "As orbweaver_leader, under client-go's name.", "name");
	metric_set(op->leading.master, 0, op->options.lease_name);
	op->alive = health_new();
	op->ready = health_new();
	op->troubles = dependency_health_new(op->metrics, op->ready);
	op->loop = loop_new();
	loop_measure_turns(op->loop, op->metrics);
	op->leaving.term = signal_watch_new(op->loop, SIGTERM, on_terminate, op);
	op->leaving.interrupt = signal_watch_new(op->loop, SIGINT, on_terminate, op);
	op->toggle = signal_watch_new(op->loop, SIGUSR1, on_toggle, op);
	op->leaving.look = timer_new(op->loop, on_leaving, op);
	op->asking.again = timer_new(op->loop, ask_for_version, op);
	op->leading.check = timer_new(op->loop, on_lease_check, op);
	op->client = kube_client_new(op->loop, &op->config, op->metrics);
	kube_client_set_watch_silence(op->client, WATCH_SILENCE_MS);
	if (probes_serve_health(&op->health_probes, op->loop, op->options.health_addr, op->metrics,
				op->alive, op->ready, &op->health_server, err) < 0 ||
	    start_metrics(op, err) < 0 || start_webhook(op, err) < 0)
		return -1;
	op->debug = debug_new(op->loop, op->options.debug_addr, op->options.log_level, err);
	if (!op->debug)
		return -1;
	op->recorder =
		recorder_new(op->client, OPERATOR_NAME, op->leading.identity, true, op->metrics);
	health_set(op->ready, "api-server", false, "has not answered yet");
	ask_for_version(op);
	return 0;
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

int operator_program(int argc, char **argv)
{
	struct orbweaver op = {0};
	struct err err = {0};

	mem_tune();
	json_init();
	(void)signal(SIGPIPE, SIG_IGN);
	if (options_parse(argc, argv, from_environment, &op.options, &err) < 0) {
		fprintf(stderr, "orbweaver-operator: %s\n", err.text);
		return 2;
	}
	if (op.options.help || op.options.version) {
		fputs(op.options.help ? options_help : "orbweaver-operator " ORBWEAVER_VERSION "\n",
		      stdout);
		return 0;
	}
	if (operator_init(&op, &err) < 0) {
		fprintf(stderr, "orbweaver-operator: %s\n", err.text);

		/* It could not start: end what had begun. */
		if (op.loop) {
			close_next(&op);
			loop_run(op.loop);
		}
		operator_done(&op);
		return 1;
	}
	log_info("started", F_STR("version", ORBWEAVER_VERSION),
		 F_STR("identity", op.leading.identity), F_STR("namespace", op.options.ns),
		 F_BOOL("leader_elect", op.options.leader_elect));
	loop_run(op.loop);
	operator_done(&op);
	log_info("stopped");
	return 0;
}

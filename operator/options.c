// SPDX-License-Identifier: Apache-2.0
/* Flags of the operator as a table. */
#include "operator/options.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/flags.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/kube/lease.h"
#include "operator/controllers/certificates.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/schedule.h"
#include "reconcilers/spider/coordinator.h"

const char options_help[] =
	"orbweaver-operator: RDMA networking for Kubernetes, the part that decides.\n"
	"\n"
	"Turns SriovNetworkNodePolicies, SpiderMultusConfigs and SpiderIPPools into\n"
	"NetworkAttachmentDefinitions, SriovNetworkNodeStates and conditions.\n"
	"\n"
	"  --kubeconfig FILE         the API server; else in-cluster, $KUBECONFIG, ~/.kube/config\n"
	"  --context NAME            this context of the kubeconfig\n"
	"  --namespace NS            of NodeStates and the lease; else $POD_NAMESPACE,\n"
	"                            else orbweaver-system\n"
	"  --leader-elect[=BOOL]     one of several replicas decides (default true)\n"
	"  --lease NAME              the Lease they share (default orbweaver-operator)\n"
	"  --metrics-addr HOST:PORT  /metrics (default :8080; \"0\" for none)\n"
	"  --metrics-secure[=BOOL]   by HTTPS, for bearer tokens that may get /metrics; else\n"
	"                            $METRICS_SECURE (default false)\n"
	"  --metrics-cert-path DIR   with tls.crt and tls.key for that, if they are there: read\n"
	"                            again as they change (default: a certificate of our own)\n"
	"  --health-addr HOST:PORT   /healthz, /readyz, for the kubelet (default :8081; \"0\" for "
	"none)\n"
	"  --leader-elect-lease-duration 15s\n"
	"                            another replica takes over this long after the last renewal\n"
	"  --leader-elect-renew-deadline 10s\n"
	"                            the leader stops writing this long after it; at least 4s "
	"less\n"
	"  --leader-elect-retry-period 4s\n"
	"                            the leader renews this often; at most half of the deadline\n"
	"  --resource-prefix PREFIX  of extended resources (default spidernet.io)\n"
	"  --config-namespace NS     of the ConfigMap spiderpool-conf (default: --namespace)\n"
	"  --cilium-config-map NS/NAME\n"
	"                            Cilium's ConfigMap, for podCIDRType auto and cilium; else\n"
	"                            $CILIUM_CONFIG_MAP (default kube-system/cilium-config)\n"
	"  --policy-namespaces NS,…  policies, pool configs, and configs for pods of other\n"
	"                            namespaces also count here (default: in --namespace,\n"
	"                            kube-system and spiderpool only); else $POLICY_NAMESPACES\n"
	"  --webhook-addr HOST:PORT  admission webhooks; else $WEBHOOK_ADDR (default: none)\n"
	"  --webhook-service NAME    the Service that leads there (default orbweaver-webhook)\n"
	"  --webhook-url URL         https://HOST:PORT instead, for an operator outside of the "
	"cluster\n"
	"  --webhook-certificate-lifetime TIME\n"
	"                            \"90d\", \"12h\", \"30m\", \"60s\" (default 90d); replaced "
	"after two thirds.\n"
	"                            Less than an hour is for trying out\n"
	"  --webhook-client-ca FILE  authorities (PEM): callers of webhooks show a certificate of "
	"theirs\n"
	"  --tls-min-version NAME    VersionTLS12 (default) or VersionTLS13\n"
	"  --tls-cipher-suites NAMES of the IANA registry, separated by commas (default: "
	"OpenSSL's)\n"
	"  --debug-addr HOST:PORT    queues, caches, connections, errors, log level, on\n"
	"                            127.0.0.1 or [::1] only (default \"0\": none)\n"
	"  --api-max-in-flight N     writes under way at a time, at most: 1 to 64 (default 64).\n"
	"                            Fewer while the API server is slow, whatever this says\n"
	"  --log-level LEVEL         debug, info, warn, error; \"info,lib/kube=debug\"\n"
	"  --version, --help\n";

/* Steps of a rotation take seconds. */
#define LIFETIME_MIN_S INT64_C(30)
#define LIFETIME_MAX_S (INT64_C(3650) * 86400)

/* "90d", "12h", "30m", "60s". */
static int take_lifetime(void *options, const char *value, struct err *err)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	struct options *o = options;
	size_t len = strlen(value);
	auto_free char *digits = str_ndup(value, len ? len - 1 : 0);
	int64_t number = 0;

	for (size_t i = 0; len && i < ARRAY_LEN(units); i++)
		if (value[len - 1] == units[i].unit &&
		    str_to_int(digits, 1, LIFETIME_MAX_S, &number) &&
		    number <= LIFETIME_MAX_S / units[i].seconds &&
		    number * units[i].seconds >= LIFETIME_MIN_S) {
			o->webhook.certificate_s = number * units[i].seconds;
			return 0;
		}
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--webhook-certificate-lifetime %s: must be a number and one of the units "
		       "s, m, h, d, "
		       "from 30s to 3650d",
		       value);
}

enum { LEASE_SECONDS_MAX = 3600 };

/* "15s" or "15". */
static int take_seconds(const char *flag, const char *value, int64_t *ret, struct err *err)
{
	size_t len = strlen(value);
	auto_free char *digits = str_ndup(value, len && value[len - 1] == 's' ? len - 1 : len);

	if (str_to_int(digits, 1, LEASE_SECONDS_MAX, ret))
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--%s %s: must be a number of seconds from 1s to %ds", flag, value,
		       LEASE_SECONDS_MAX);
}

static int take_lease_duration(void *options, const char *value, struct err *err)
{
	struct options *o = options;

	return take_seconds("leader-elect-lease-duration", value, &o->lease_timing.duration_s, err);
}

static int take_renew_deadline(void *options, const char *value, struct err *err)
{
	struct options *o = options;
	int64_t seconds = 0;

	if (take_seconds("leader-elect-renew-deadline", value, &seconds, err) < 0)
		return -1;
	o->lease_timing.hold_ms = seconds * 1000;
	return 0;
}

static int take_retry_period(void *options, const char *value, struct err *err)
{
	struct options *o = options;
	int64_t seconds = 0;

	if (take_seconds("leader-elect-retry-period", value, &seconds, err) < 0)
		return -1;
	o->lease_timing.renew_ms = seconds * 1000;
	return 0;
}

json_t *options_policy_namespaces(const char *list, struct err *err)
{
	auto_free char *copy = str_dup(list ? list : "");
	json_auto_t *names = json_array();
	char *rest = list ? copy : NULL, *name;

	while ((name = strsep(&rest, ","))) {
		if (flags_check_label("policy-namespaces", name, err) < 0)
			return NULL;
		json_array_append_new(names, json_string(name));
	}
	return json_incref(names);
}

/* What it serves is for users on the machine, or in the pod's network namespace. */
static int check_debug_addr(const char *addr, struct err *err)
{
	if (str_eq(addr, "0") || str_starts(addr, "127.") || str_starts(addr, "[::1]:"))
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--debug-addr %s: must be 127.0.0.1:PORT or [::1]:PORT, or 0 for none",
		       addr);
}

/* "namespace/name" */
static int check_cilium_config(const char *text, struct err *err)
{
	const char *slash = strchr(text, '/');
	auto_free char *ns = slash ? str_ndup(text, (size_t)(slash - text)) : NULL;

	if (ns && name_is_dns_subdomain(ns) && name_is_dns_subdomain(slash + 1))
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--cilium-config-map %s: must be NAMESPACE/NAME of a ConfigMap, as in "
		       "kube-system/cilium-config",
		       text);
}

static int check_options(const struct options *o, struct err *err)
{
	json_auto_t *policy_namespaces = options_policy_namespaces(o->policy_namespaces, err);
	auto_free char *host = NULL;

	if (!policy_namespaces)
		return -1;
	if (flags_check_label("namespace", o->ns, err) < 0 ||
	    flags_check_label("lease", o->lease_name, err) < 0 ||
	    flags_check_label("config-namespace", o->config_ns, err) < 0 ||
	    check_cilium_config(o->cilium_config, err) < 0 ||
	    flags_check_label("webhook-service", o->webhook.service, err) < 0 ||
	    flags_check_prefix("resource-prefix", o->resource_prefix, err) < 0)
		return -1;
	if (check_debug_addr(o->debug_addr, err) < 0)
		return -1;
	if (lease_check_timing(&o->lease_timing, err) < 0)
		return err_in(err, "--leader-elect-*");

	host = o->webhook.url ? webhook_url_host(o->webhook.url) : NULL;
	if (!o->webhook.url || host)
		return 0;
	return err_set(
		err, ERR_INVALID, "BadFlag",
		"--webhook-url %s: must be https://HOST or https://HOST:PORT, without a path",
		o->webhook.url);
}

static int take_max_in_flight(void *options, const char *value, struct err *err)
{
	struct options *o = options;

	if (str_to_int(value, 1, SCHEDULE_WINDOW, &o->api_max_in_flight))
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--api-max-in-flight %s: must be a number from 1 to %d", value,
		       SCHEDULE_WINDOW);
}

static int take_log_level(void *options, const char *value, struct err *err)
{
	struct options *o = options;

	if (log_configure(value, err) < 0)
		return err_in(err, "--log-level %s", value);
	o->log_level = value;
	return 0;
}

#define FLAG(name_, kind_, field_)                                                                 \
	{                                                                                          \
		(name_), (kind_), offsetof(struct options, field_), NULL                           \
	}

static const struct flag flags[] = {
	FLAG("kubeconfig", FLAG_STRING, kubeconfig),
	FLAG("context", FLAG_STRING, context),
	FLAG("namespace", FLAG_STRING, ns),
	FLAG("leader-elect", FLAG_BOOL, leader_elect),
	FLAG("lease", FLAG_STRING, lease_name),
	{"leader-elect-lease-duration", FLAG_TAKEN, 0, take_lease_duration},
	{"leader-elect-renew-deadline", FLAG_TAKEN, 0, take_renew_deadline},
	{"leader-elect-retry-period", FLAG_TAKEN, 0, take_retry_period},
	FLAG("metrics-addr", FLAG_STRING, metrics.addr),
	FLAG("metrics-secure", FLAG_BOOL, metrics.secure),
	FLAG("metrics-cert-path", FLAG_STRING, metrics.cert_path),
	FLAG("health-addr", FLAG_STRING, health_addr),
	FLAG("debug-addr", FLAG_STRING, debug_addr),
	FLAG("resource-prefix", FLAG_STRING, resource_prefix),
	FLAG("config-namespace", FLAG_STRING, config_ns),
	FLAG("cilium-config-map", FLAG_STRING, cilium_config),
	FLAG("policy-namespaces", FLAG_STRING, policy_namespaces),
	FLAG("webhook-addr", FLAG_STRING, webhook.addr),
	FLAG("webhook-service", FLAG_STRING, webhook.service),
	FLAG("webhook-url", FLAG_STRING, webhook.url),
	{"webhook-certificate-lifetime", FLAG_TAKEN, 0, take_lifetime},
	FLAG("webhook-client-ca", FLAG_STRING, webhook.client_ca),
	FLAG("tls-min-version", FLAG_STRING, tls.min_version),
	FLAG("tls-cipher-suites", FLAG_STRING, tls.cipher_suites),
	{"api-max-in-flight", FLAG_TAKEN, 0, take_max_in_flight},
	{"log-level", FLAG_TAKEN, 0, take_log_level},
	FLAG("version", FLAG_BOOL, version),
	FLAG("help", FLAG_BOOL, help),
};

/* A ConfigMap's key that is empty is as good as none. */
static const char *setting(const char *value)
{
	return str_empty(value) ? NULL : value;
}

int options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
		  struct options *ret, struct err *err)
{
	const char *ns = env("POD_NAMESPACE"), *pod = env("POD_NAME");
	struct options o = {
		.ns = str_empty(ns) ? "orbweaver-system" : ns,
		.pod_name = str_empty(pod) ? "orbweaver-operator" : pod,
		.pod_uid = env("POD_UID"),
		.policy_namespaces = setting(env("POLICY_NAMESPACES")),
		.webhook.addr = setting(env("WEBHOOK_ADDR")),
		.metrics.secure = str_eq(env("METRICS_SECURE"), "true"),
		.metrics.addr = ":8080",
		.health_addr = ":8081",
		.debug_addr = "0",
		.log_level = "info",
		.resource_prefix = "spidernet.io",
		.lease_name = "orbweaver-operator",
		.lease_timing = lease_default_timing,
		.webhook.service = "orbweaver-webhook",
		.webhook.certificate_s = CERTIFICATES_LIFETIME_S,
		.api_max_in_flight = SCHEDULE_WINDOW,
		.leader_elect = true,
	};

	if (flags_parse(argc, argv, flags, ARRAY_LEN(flags), &o, err) < 0)
		return -1;
	if (!o.config_ns)
		o.config_ns = o.ns;
	if (!o.cilium_config)
		o.cilium_config = setting(env("CILIUM_CONFIG_MAP"));
	if (!o.cilium_config)
		o.cilium_config = COORDINATOR_CILIUM_CONFIG;
	if (check_options(&o, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

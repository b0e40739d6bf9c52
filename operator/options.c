/*
 * Flags as a table; getopt_long does the splitting.
 */
#include "operator/options.h"

#include <getopt.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "operator/certificates.h"
#include "operator/webhook_setup.h"

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
	"  --metrics-addr HOST:PORT  /metrics, /healthz, /readyz (default :8080; \"0\" for none)\n"
	"  --resource-prefix PREFIX  of extended resources (default spidernet.io)\n"
	"  --config-namespace NS     of the ConfigMap spiderpool-conf (default: --namespace)\n"
	"  --webhook-addr HOST:PORT  admission webhooks (default: none)\n"
	"  --webhook-service NAME    the Service that leads there (default orbweaver-webhook)\n"
	"  --webhook-url URL         https://HOST:PORT instead, for an operator outside of the "
	"cluster\n"
	"  --webhook-certificate-lifetime TIME\n"
	"                            \"90d\", \"12h\", \"30m\", \"60s\" (default 90d); replaced "
	"after two thirds.\n"
	"                            Less than an hour is for trying out\n"
	"  --log-level LEVEL         debug, info, warn, error; \"info,lib/kube=debug\"\n"
	"  --version, --help\n";

/* Steps of a rotation take seconds. */
#define LIFETIME_MIN_S INT64_C(30)
#define LIFETIME_MAX_S (INT64_C(3650) * 86400)

enum flag {
	FLAG_KUBECONFIG = 1,
	FLAG_CONTEXT,
	FLAG_NAMESPACE,
	FLAG_LEADER_ELECT,
	FLAG_LEASE,
	FLAG_METRICS_ADDR,
	FLAG_RESOURCE_PREFIX,
	FLAG_CONFIG_NAMESPACE,
	FLAG_WEBHOOK_ADDR,
	FLAG_WEBHOOK_SERVICE,
	FLAG_WEBHOOK_URL,
	FLAG_WEBHOOK_LIFETIME,
	FLAG_LOG_LEVEL,
	FLAG_VERSION,
	FLAG_HELP,
};

static const struct option flags[] = {
	{"kubeconfig", required_argument, NULL, FLAG_KUBECONFIG},
	{"context", required_argument, NULL, FLAG_CONTEXT},
	{"namespace", required_argument, NULL, FLAG_NAMESPACE},
	{"leader-elect", optional_argument, NULL, FLAG_LEADER_ELECT},
	{"lease", required_argument, NULL, FLAG_LEASE},
	{"metrics-addr", required_argument, NULL, FLAG_METRICS_ADDR},
	{"resource-prefix", required_argument, NULL, FLAG_RESOURCE_PREFIX},
	{"config-namespace", required_argument, NULL, FLAG_CONFIG_NAMESPACE},
	{"webhook-addr", required_argument, NULL, FLAG_WEBHOOK_ADDR},
	{"webhook-service", required_argument, NULL, FLAG_WEBHOOK_SERVICE},
	{"webhook-url", required_argument, NULL, FLAG_WEBHOOK_URL},
	{"webhook-certificate-lifetime", required_argument, NULL, FLAG_WEBHOOK_LIFETIME},
	{"log-level", required_argument, NULL, FLAG_LOG_LEVEL},
	{"version", no_argument, NULL, FLAG_VERSION},
	{"help", no_argument, NULL, FLAG_HELP},
	{0},
};

static int parse_bool(const char *flag, const char *value, bool *ret, struct err *err)
{
	if (!value || str_eq(value, "true"))
		*ret = true;
	else if (str_eq(value, "false"))
		*ret = false;
	else
		return err_set(err, ERR_INVALID, "BadFlag", "--%s=%s: must be true or false", flag,
			       value);
	return 0;
}

/* "90d", "12h", "30m", "60s". */
static int parse_lifetime(const char *value, int64_t *ret_s, struct err *err)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t len = strlen(value);
	auto_free char *digits = str_ndup(value, len ? len - 1 : 0);
	int64_t number = 0;

	for (size_t i = 0; len && i < ARRAY_LEN(units); i++)
		if (value[len - 1] == units[i].unit &&
		    str_to_int(digits, 1, LIFETIME_MAX_S, &number) &&
		    number <= LIFETIME_MAX_S / units[i].seconds &&
		    number * units[i].seconds >= LIFETIME_MIN_S) {
			*ret_s = number * units[i].seconds;
			return 0;
		}
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--webhook-certificate-lifetime %s: must be a number and one of the units "
		       "s, m, h, d, "
		       "from 30s to 3650d",
		       value);
}

/* A DNS label: what namespaces and Leases may be called. */
static int check_name(const char *flag, const char *value, struct err *err)
{
	size_t len = strlen(value);

	if (len >= 1 && len <= 63 &&
	    strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && value[0] != '-' &&
	    value[len - 1] != '-')
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--%s %s: must be 1 to 63 lower-case letters, digits and inner dashes", flag,
		       value);
}

static int check_webhook_url(const char *url, struct err *err)
{
	auto_free char *host = url ? webhook_url_host(url) : NULL;

	if (!url || host)
		return 0;
	return err_set(
		err, ERR_INVALID, "BadFlag",
		"--webhook-url %s: must be https://HOST or https://HOST:PORT, without a path", url);
}

static int check(const struct options *o, struct err *err)
{
	if (check_name("namespace", o->ns, err) < 0 ||
	    check_name("lease", o->lease_name, err) < 0 ||
	    check_name("config-namespace", o->config_ns, err) < 0 ||
	    check_name("webhook-service", o->webhook_service, err) < 0)
		return -1;
	if (str_empty(o->resource_prefix) || strchr(o->resource_prefix, '/'))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--resource-prefix \"%s\": must be a DNS name such as spidernet.io",
			       o->resource_prefix);
	return check_webhook_url(o->webhook_url, err);
}

static int take(int flag, const char *value, struct options *o, struct err *err)
{
	switch ((enum flag)flag) {
	case FLAG_KUBECONFIG:
		o->kubeconfig = value;
		return 0;
	case FLAG_CONTEXT:
		o->context = value;
		return 0;
	case FLAG_NAMESPACE:
		o->ns = value;
		return 0;
	case FLAG_LEADER_ELECT:
		return parse_bool("leader-elect", value, &o->leader_elect, err);
	case FLAG_LEASE:
		o->lease_name = value;
		return 0;
	case FLAG_METRICS_ADDR:
		o->metrics_addr = value;
		return 0;
	case FLAG_RESOURCE_PREFIX:
		o->resource_prefix = value;
		return 0;
	case FLAG_CONFIG_NAMESPACE:
		o->config_ns = value;
		return 0;
	case FLAG_WEBHOOK_ADDR:
		o->webhook_addr = value;
		return 0;
	case FLAG_WEBHOOK_SERVICE:
		o->webhook_service = value;
		return 0;
	case FLAG_WEBHOOK_URL:
		o->webhook_url = value;
		return 0;
	case FLAG_WEBHOOK_LIFETIME:
		return parse_lifetime(value, &o->webhook_certificate_s, err);
	case FLAG_LOG_LEVEL:
		o->log_level = value;
		return log_configure(value, err) < 0 ? err_in(err, "--log-level %s", value) : 0;
	case FLAG_VERSION:
		o->version = true;
		return 0;
	case FLAG_HELP:
		o->help = true;
		return 0;
	}
	return -1;
}

int options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
		  struct options *ret, struct err *err)
{
	const char *ns = env("POD_NAMESPACE");
	struct options o = {
		.ns = str_empty(ns) ? "orbweaver-system" : ns,
		.log_level = "info",
		.metrics_addr = ":8080",
		.resource_prefix = "spidernet.io",
		.lease_name = "orbweaver-operator",
		.webhook_service = "orbweaver-webhook",
		.webhook_certificate_s = CERTIFICATES_LIFETIME_S,
		.leader_elect = true,
	};
	int flag = 0;

	optind = 0; /* glibc: start anew */
	while ((flag = getopt_long(argc, argv, "+:h", flags, NULL)) != -1) {
		if (flag == 'h')
			flag = FLAG_HELP;
		if (flag == ':')
			return err_set(err, ERR_INVALID, "BadFlag", "%s: needs a value",
				       argv[optind - 1]);
		if (flag == '?')
			return err_set(err, ERR_INVALID, "BadFlag", "%s: unknown; see --help",
				       argv[optind - 1]);
		if (take(flag, optarg, &o, err) < 0)
			return -1;
	}
	if (optind < argc)
		return err_set(err, ERR_INVALID, "BadFlag", "\"%s\": not a flag; see --help",
			       argv[optind]);
	if (!o.config_ns)
		o.config_ns = o.ns;
	if (check(&o, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

/*
 * Flags of the operator as a table.
 */
#include "operator/options.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/flags.h"
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
			o->webhook_certificate_s = number * units[i].seconds;
			return 0;
		}
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--webhook-certificate-lifetime %s: must be a number and one of the units "
		       "s, m, h, d, "
		       "from 30s to 3650d",
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
	if (flags_check_label("namespace", o->ns, err) < 0 ||
	    flags_check_label("lease", o->lease_name, err) < 0 ||
	    flags_check_label("config-namespace", o->config_ns, err) < 0 ||
	    flags_check_label("webhook-service", o->webhook_service, err) < 0 ||
	    flags_check_prefix("resource-prefix", o->resource_prefix, err) < 0)
		return -1;
	return check_webhook_url(o->webhook_url, err);
}

static int take_log_level(void *options, const char *value, struct err *err)
{
	return log_configure(value, err) < 0 ? err_in(err, "--log-level %s", value) : 0;
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
	FLAG("metrics-addr", FLAG_STRING, metrics_addr),
	FLAG("resource-prefix", FLAG_STRING, resource_prefix),
	FLAG("config-namespace", FLAG_STRING, config_ns),
	FLAG("webhook-addr", FLAG_STRING, webhook_addr),
	FLAG("webhook-service", FLAG_STRING, webhook_service),
	FLAG("webhook-url", FLAG_STRING, webhook_url),
	{"webhook-certificate-lifetime", FLAG_TAKEN, 0, take_lifetime},
	{"log-level", FLAG_TAKEN, 0, take_log_level},
	FLAG("version", FLAG_BOOL, version),
	FLAG("help", FLAG_BOOL, help),
};

int options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
		  struct options *ret, struct err *err)
{
	const char *ns = env("POD_NAMESPACE");
	struct options o = {
		.ns = str_empty(ns) ? "orbweaver-system" : ns,
		.metrics_addr = ":8080",
		.resource_prefix = "spidernet.io",
		.lease_name = "orbweaver-operator",
		.webhook_service = "orbweaver-webhook",
		.webhook_certificate_s = CERTIFICATES_LIFETIME_S,
		.leader_elect = true,
	};

	if (flags_parse(argc, argv, flags, ARRAY_LEN(flags), &o, err) < 0)
		return -1;
	if (!o.config_ns)
		o.config_ns = o.ns;
	if (check(&o, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

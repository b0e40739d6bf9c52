/*
 * Flags as a table; getopt_long does the splitting.
 */
#include "operator/options.h"

#include <getopt.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

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
	"  --log-level LEVEL         debug, info, warn, error; \"info,lib/kube=debug\"\n"
	"  --version, --help\n";

enum flag {
	FLAG_KUBECONFIG = 1,
	FLAG_CONTEXT,
	FLAG_NAMESPACE,
	FLAG_LEADER_ELECT,
	FLAG_LEASE,
	FLAG_METRICS_ADDR,
	FLAG_RESOURCE_PREFIX,
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

static int check(const struct options *o, struct err *err)
{
	if (check_name("namespace", o->ns, err) < 0 || check_name("lease", o->lease_name, err) < 0)
		return -1;
	if (str_empty(o->resource_prefix) || strchr(o->resource_prefix, '/'))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--resource-prefix \"%s\": must be a DNS name such as spidernet.io",
			       o->resource_prefix);
	return 0;
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
	if (check(&o, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The command line: defaults, both ways to write a value, and what is said about mistakes. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "operator/options.h"

static const char *no_environment(const char *name)
{
	return NULL;
}

static const char *pod_namespace(const char *name)
{
	return strcmp(name, "POD_NAMESPACE") == 0 ? "rdma" : NULL;
}

static int parse(const char *flag, const char *value, struct options *ret, struct err *err)
{
	char *argv[] = {(char *)"orbweaver-operator", (char *)flag, (char *)value, NULL};

	return options_parse(flag ? (value ? 3 : 2) : 1, argv, no_environment, ret, err);
}

TEST(has_the_defaults_of_the_design)
{
	struct options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_string_equal(o.ns, "orbweaver-system");
	assert_string_equal(o.resource_prefix, "spidernet.io");
	assert_true(o.leader_elect);
	assert_null(o.kubeconfig);
	assert_null(o.webhook.addr);
	assert_string_equal(o.webhook.service, "orbweaver-webhook");
	assert_int_equal(o.webhook.certificate_s, 90 * 24 * 3600);
}

TEST(takes_the_namespace_from_the_pod)
{
	char *argv[] = {(char *)"orbweaver-operator", NULL};
	struct options o = {0};
	struct err err = {0};

	assert_int_equal(options_parse(1, argv, pod_namespace, &o, &err), 0);
	assert_string_equal(o.ns, "rdma");
	assert_string_equal(o.config_ns, "rdma");
}

static const char *config_map(const char *name)
{
	return strcmp(name, "WEBHOOK_ADDR") == 0        ? ":9443"
	       : strcmp(name, "METRICS_SECURE") == 0    ? "true"
	       : strcmp(name, "POLICY_NAMESPACES") == 0 ? ""
							: NULL;
}

TEST(takes_settings_from_the_environment)
{
	char *argv[] = {(char *)"orbweaver-operator", (char *)"--webhook-addr=:1",
			(char *)"--metrics-secure=false", NULL};
	struct options o = {0};
	struct err err = {0};

	assert_int_equal(options_parse(1, argv, config_map, &o, &err), 0);
	assert_string_equal(o.webhook.addr, ":9443");
	assert_null(o.policy_namespaces);
	assert_true(o.metrics.secure);
	assert_null(o.metrics.cert_path);
	assert_int_equal(options_parse(3, argv, config_map, &o, &err), 0);
	assert_string_equal(o.webhook.addr, ":1");
	assert_false(o.metrics.secure);
}

TEST(reads_values_with_and_without_equals_sign)
{
	struct options o = {0};
	struct err err = {0};

	assert_int_equal(parse("--namespace", "a", &o, &err), 0);
	assert_string_equal(o.ns, "a");
	assert_int_equal(parse("--namespace=b", NULL, &o, &err), 0);
	assert_string_equal(o.ns, "b");
	assert_int_equal(parse("--leader-elect=false", NULL, &o, &err), 0);
	assert_false(o.leader_elect);
	assert_int_equal(o.api_max_in_flight, 64);
	assert_int_equal(parse("--api-max-in-flight=8", NULL, &o, &err), 0);
	assert_int_equal(o.api_max_in_flight, 8);
	assert_int_equal(parse("--leader-elect", NULL, &o, &err), 0);
	assert_true(o.leader_elect);
}

TEST(reads_what_webhooks_need)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} cases[] = {{"30s", 30},
		     {"90m", 5400},
		     {"12h", 43200},
		     {"365d", 31536000},
		     {"3650d", 315360000}};
	struct options o = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse("--webhook-certificate-lifetime", cases[i].text, &o, &err),
				 0);
		assert_int_equal(o.webhook.certificate_s, cases[i].seconds);
	}
	assert_int_equal(parse("--webhook-addr", ":9443", &o, &err), 0);
	assert_string_equal(o.webhook.addr, ":9443");
	assert_int_equal(parse("--webhook-url", "https://[::1]:9443", &o, &err), 0);
	assert_string_equal(o.webhook.url, "https://[::1]:9443");
	assert_int_equal(parse("--config-namespace", "spiderpool", &o, &err), 0);
	assert_string_equal(o.config_ns, "spiderpool");
}

TEST(reads_the_times_of_the_lease)
{
	char *argv[] = {(char *)"orbweaver-operator", (char *)"--leader-elect-lease-duration=60s",
			(char *)"--leader-elect-renew-deadline=40s",
			(char *)"--leader-elect-retry-period=5", NULL};
	struct options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_int_equal(o.lease_timing.duration_s, LEASE_DURATION_S);
	assert_int_equal(o.lease_timing.hold_ms, LEASE_HOLD_MS);
	assert_int_equal(o.lease_timing.renew_ms, LEASE_RENEW_MS);
	assert_int_equal(options_parse(4, argv, no_environment, &o, &err), 0);
	assert_int_equal(o.lease_timing.duration_s, 60);
	assert_int_equal(o.lease_timing.hold_ms, 40000);
	assert_int_equal(o.lease_timing.renew_ms, 5000);
}

TEST(takes_namespaces_that_may_command_nodes)
{
	static const struct {
		const char *list;
		size_t names;
	} rows[] = {{NULL, 0}, {"rdma-admins", 1}, {"a,b,c", 3}};
	struct options o = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *names = options_policy_namespaces(rows[i].list, &err);

		assert_int_equal(json_array_size(names), rows[i].names);
	}
	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_string_equal(o.cilium_config, "kube-system/cilium-config");
	assert_int_equal(parse("--cilium-config-map", "cilium/its-config", &o, &err), 0);
	assert_string_equal(o.cilium_config, "cilium/its-config");
	assert_int_equal(parse("--policy-namespaces", "a,b", &o, &err), 0);
	assert_string_equal(o.policy_namespaces, "a,b");
}

TEST(names_flag_value_and_remedy_of_mistakes)
{
	static const struct {
		const char *flag, *value, *text;
	} cases[] = {
		{"--namespace", NULL, "--namespace: needs a value"},
		{"--nonsense", NULL, "--nonsense: unknown; see --help"},
		{"word", NULL, "\"word\": not a flag; see --help"},
		{"--leader-elect=maybe", NULL, "--leader-elect=maybe: must be true or false"},
		{"--webhook-certificate-lifetime", "29s",
		 "--webhook-certificate-lifetime 29s: must be a number and one of the units s, m, "
		 "h, d, from 30s to 3650d"},
		{"--webhook-certificate-lifetime", "3651d",
		 "--webhook-certificate-lifetime 3651d: must be a number and one of the units s, "
		 "m, h, d, from 30s to 3650d"},
		{"--webhook-certificate-lifetime", "90",
		 "--webhook-certificate-lifetime 90: must be a number and one of the units s, m, "
		 "h, d, from 30s to 3650d"},
		{"--webhook-certificate-lifetime", "",
		 "--webhook-certificate-lifetime : must be a number and one of the units s, m, h, "
		 "d, from 30s to 3650d"},
		{"--debug-addr", ":6060",
		 "--debug-addr :6060: must be 127.0.0.1:PORT or [::1]:PORT, or 0 for none"},
		{"--debug-addr", "0.0.0.0:6060",
		 "--debug-addr 0.0.0.0:6060: must be 127.0.0.1:PORT or [::1]:PORT, or 0 for none"},
		{"--api-max-in-flight", "0",
		 "--api-max-in-flight 0: must be a number from 1 to 64"},
		{"--api-max-in-flight", "65",
		 "--api-max-in-flight 65: must be a number from 1 to 64"},
		{"--leader-elect-lease-duration", "never",
		 "--leader-elect-lease-duration never: must be a number of seconds from 1s to "
		 "3600s"},
		{"--leader-elect-lease-duration", "14s",
		 "--leader-elect-*: a renew deadline of 10000 ms: must be at least 4001 ms shorter "
		 "than the lease duration of 14000 ms, so that what was sent last has arrived"},
		{"--leader-elect-retry-period", "6s",
		 "--leader-elect-*: a retry period of 6000 ms: must be from 500 ms to half of the "
		 "renew deadline of 10000 ms"},
		{"--webhook-url", "http://a",
		 "--webhook-url http://a: must be https://HOST or https://HOST:PORT, without a "
		 "path"},
		{"--webhook-service", "a.b",
		 "--webhook-service a.b: must be 1 to 63 lower-case letters, digits and inner "
		 "dashes"},
		{"--policy-namespaces", "a,,b",
		 "--policy-namespaces : must be 1 to 63 lower-case letters, digits and inner "
		 "dashes"},
		{"--policy-namespaces", "a,*",
		 "--policy-namespaces *: must be 1 to 63 lower-case letters, digits and inner "
		 "dashes"},
		{"--cilium-config-map", "cilium-config",
		 "--cilium-config-map cilium-config: must be NAMESPACE/NAME of a ConfigMap, as in "
		 "kube-system/cilium-config"},
		{"--cilium-config-map", "a/b/c",
		 "--cilium-config-map a/b/c: must be NAMESPACE/NAME of a ConfigMap, as in "
		 "kube-system/cilium-config"},
		{"--config-namespace", "A",
		 "--config-namespace A: must be 1 to 63 lower-case letters, digits and inner "
		 "dashes"},
		{"--namespace", "Not_DNS",
		 "--namespace Not_DNS: must be 1 to 63 lower-case letters, digits and inner "
		 "dashes"},
		{"--resource-prefix", "a/b",
		 "--resource-prefix \"a/b\": must be a DNS name such as spidernet.io"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct options o = {0};
		struct err err = {0};

		assert_int_equal(parse(cases[i].flag, cases[i].value, &o, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.text, cases[i].text);
	}
}

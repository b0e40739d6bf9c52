// SPDX-License-Identifier: Apache-2.0
/* The agent's command line: defaults, where values come from, and what is said about mistakes. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "nodeagent/agent/agent_options.h"

static const char *in_a_pod(const char *name)
{
	if (strcmp(name, "NODE_NAME") == 0)
		return "w1";
	if (strcmp(name, "POD_NAME") == 0)
		return "agent-1";
	return strcmp(name, "POD_NAMESPACE") == 0 ? "rdma" : NULL;
}

static const char *no_environment(const char *name)
{
	return NULL;
}

static int parse(const char *flag, const char *value, struct agent_options *ret, struct err *err)
{
	char *argv[] = {(char *)"orbweaver-agent", (char *)flag, (char *)value, NULL};

	return agent_options_parse(flag ? (value ? 3 : 2) : 1, argv, in_a_pod, ret, err);
}

TEST(has_the_defaults_of_the_design)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_string_equal(o.node, "w1");
	assert_string_equal(o.pod, "agent-1");
	assert_string_equal(o.ns, "rdma");
	assert_string_equal(o.host_root, "/");
	assert_string_equal(o.kubelet_dir, "/var/lib/kubelet");
	assert_string_equal(o.offers.resource_prefix, "spidernet.io");
	assert_string_equal(o.offers.shared_config, "spiderpool-rdma-shared-device-plugin");
	assert_null(o.offers.device_config);
	assert_string_equal(o.offers.dev_files, "smarter-device-manager");
	assert_null(o.devinfo_dir);
	assert_false(o.offers.packed);
	assert_int_equal(o.metrics.scope, EXPOSITION_PODS);
	assert_null(o.metrics.excluded);
}

TEST(takes_the_scope_of_counters)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse("--rdma-metrics", "all", &o, &err), 0);
	assert_int_equal(o.metrics.scope, EXPOSITION_ALL);
	assert_int_equal(parse("--rdma-metrics-exclude", "mlx5_bond_*,eno1", &o, &err), 0);
	assert_string_equal(o.metrics.excluded, "mlx5_bond_*,eno1");
	assert_int_equal(parse("--rdma-metrics", "some", &o, &err), -1);
	assert_non_null(strstr(err.text, "--rdma-metrics some: must be off, pf, pods or all"));
}

TEST(takes_lists_of_the_privileged_side)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_null(o.device_paths);
	assert_null(o.cni.plugins);
	assert_int_equal(parse("--device-paths", "/dev/kvm,/dev/video*", &o, &err), 0);
	assert_string_equal(o.device_paths, "/dev/kvm,/dev/video*");
	assert_int_equal(parse("--cni-plugin-types", "acme,x-*", &o, &err), 0);
	assert_string_equal(o.cni.plugins, "acme,x-*");
	assert_int_equal(parse("--device-paths", "/etc/shadow", &o, &err), -1);
	assert_non_null(strstr(err.text,
			       "--device-paths \"/etc/shadow\": \"/etc/shadow\" must be a "
			       "path below /dev"));
	assert_int_equal(parse("--job-files", "spidernet.io/*", &o, &err), 0);
	assert_string_equal(o.offers.job_files, "spidernet.io/*");
	assert_int_equal(parse("--job-files", "a b", &o, &err), -1);
	assert_int_equal(parse("--cni-plugin-types", "/bin/sh", &o, &err), -1);
	assert_non_null(strstr(err.text, "--cni-plugin-types \"/bin/sh\": must be names"));
}

TEST(takes_a_profile_and_names_all_of_them)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_int_equal(o.profile, PROFILE_AUTO);
	assert_int_equal(parse("--profile", "devices", &o, &err), 0);
	assert_int_equal(o.profile, PROFILE_DEVICES);
	assert_int_equal(parse("--profile", "multus", &o, &err), -1);
	assert_string_equal(err.text, "--profile multus: must be auto, delegate or devices");
	assert_int_equal(parse("--cni-bin-dir", "", &o, &err), -1);
	assert_non_null(strstr(err.text, "must be an absolute path"));
}

TEST(takes_the_name_of_the_operators_lease)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_string_equal(o.lease, "orbweaver-operator");
	assert_int_equal(parse("--lease", "blue", &o, &err), 0);
	assert_string_equal(o.lease, "blue");
	assert_int_equal(parse("--lease", "Blue", &o, &err), -1);
	assert_non_null(strstr(err.text, "--lease Blue: must be 1 to 63 lower-case letters"));
}

TEST(takes_when_a_link_is_degraded)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse("--link-limits", "flaps=5", &o, &err), 0);
	assert_int_equal(o.metrics.links.flaps, 5);
	assert_int_equal(o.metrics.links.window_ms, link_limits_default.window_ms);
	assert_int_equal(parse("--link-limits", "flaps=0", &o, &err), -1);
	assert_string_equal(err.reason, "BadFlag");
}

TEST(takes_how_many_nics_are_configured_side_by_side)
{
	static const char *const bad[] = {"0", "9", "-1", "two", ""};
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_int_equal(o.parallel_nics, 4);
	assert_int_equal(parse("--parallel-nics", "1", &o, &err), 0);
	assert_int_equal(o.parallel_nics, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse("--parallel-nics", bad[i], &o, &err), -1);
		assert_non_null(strstr(err.text, "must be a number from 1 to 8"));
	}
}

TEST(takes_what_an_add_may_take)
{
	static const char *const bad[] = {"9", "3601", "-1", "90s", ""};
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse(NULL, NULL, &o, &err), 0);
	assert_int_equal(o.cni.timeout, 90);
	assert_int_equal(parse("--cni-timeout", "360", &o, &err), 0);
	assert_int_equal(o.cni.timeout, 360);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse("--cni-timeout", bad[i], &o, &err), -1);
		assert_non_null(strstr(err.text, "must be seconds, from 10 to 3600"));
	}
}

TEST(needs_only_the_file_to_say_whether_an_agent_is_ready)
{
	char *asked[] = {(char *)"orbweaver-agent", (char *)"--is-ready",
			 (char *)"--ready-file=/run/orbweaver/ready", NULL};
	char *without[] = {(char *)"orbweaver-agent", (char *)"--is-ready", NULL};
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(agent_options_parse(3, asked, no_environment, &o, &err), 0);
	assert_true(o.is_ready);
	assert_string_equal(o.ready_file, "/run/orbweaver/ready");
	assert_int_equal(agent_options_parse(2, without, no_environment, &o, &err), -1);
	assert_non_null(strstr(err.text, "--ready-file"));
}

TEST(needs_a_node_unless_asked_for_help)
{
	char *bare[] = {(char *)"orbweaver-agent", NULL};
	char *help[] = {(char *)"orbweaver-agent", (char *)"-h", NULL};
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(agent_options_parse(1, bare, no_environment, &o, &err), -1);
	assert_non_null(strstr(err.text, "$NODE_NAME"));
	assert_int_equal(agent_options_parse(2, help, no_environment, &o, &err), 0);
	assert_true(o.help);
}

TEST(takes_files_and_config_maps_as_sources)
{
	static const char *const good[] = {"/etc/rdma/config.json", "sriovdp-config",
					   "kube-system/sriovdp-config", ""};
	struct agent_options o = {0};
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(parse("--device-config", good[i], &o, &err), 0);
		assert_string_equal(o.offers.device_config, good[i]);
	}
}

TEST(takes_a_policy_of_allocation)
{
	struct agent_options o = {0};
	struct err err = {0};

	assert_int_equal(parse("--allocation=packed", NULL, &o, &err), 0);
	assert_true(o.offers.packed);
	assert_int_equal(parse("--allocation", "spread", &o, &err), 0);
	assert_false(o.offers.packed);
}

TEST(names_flag_value_and_remedy_of_mistakes)
{
	static const struct {
		const char *flag, *value, *text;
	} cases[] = {
		{"--node", "W 1", "--node W 1: must be up to 253"},
		{"--namespace", "UPPER", "--namespace UPPER: must be 1 to 63"},
		{"--host-root", "host", "--host-root \"host\": must be an absolute path"},
		{"--kubelet-dir", "", "--kubelet-dir \"\": must be an absolute path"},
		{"--allocation", "tight", "must be spread or packed"},
		{"--shared-config", "a/b/c",
		 "--shared-config \"a/b/c\": must be an absolute path, a"},
		{"--dev-files", "a/", "--dev-files \"a/\""},
		{"--dev-files", "A b/c", "--dev-files \"A b/c\""},
		{"--resource-prefix", "a/b", "--resource-prefix \"a/b\": must be a DNS name"},
		{"--log-level", "loud", "--log-level loud"},
		{"--nodes", "w1", "--nodes: unknown; see --help"},
		{"--node", NULL, "--node: needs a value"},
		{"w1", NULL, "\"w1\": not a flag"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct agent_options o = {.ns = "before"};
		struct err err = {0};

		assert_int_equal(parse(cases[i].flag, cases[i].value, &o, &err), -1);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, strcmp(cases[i].flag, "--log-level") == 0
							? "BadLogLevel"
							: "BadFlag");
		if (!strstr(err.text, cases[i].text))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].text);
		assert_string_equal(o.ns, "before");
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What is found out about the NICs of a pod on their networks, in network namespaces of the test's
 * own: as root. The other ends of the NICs are in another namespace, which answers for them.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/coordinator_detect.h"

static pid_t network;

/* All that is in `netns` of the network, and in the pod, is made by this. */
static bool run(const char *format, int i)
{
	auto_free char *inner = str_printf("set -e; net=%d n=%d; %s", (int)network, i, format);

	return system(inner) == 0;
}

/*
 * Five NICs: an address that is free and a gateway that answers; an address that another host has;
 * a gateway that does not answer; one that nothing is asked for; one that is down.
 */
static bool make_pod(void)
{
	static const char nic[] = "ip link add net$n type veth peer name port$n netns $net; "
				  "nsenter -t $net -n ip link set port$n up; ip link set net$n up; "
				  "ip addr add 10.$n.0.5/24 dev net$n; "
				  "ip route append default via 10.$n.0.1 dev net$n metric $n";
	int pair[2];

	if (unshare(CLONE_NEWNET) < 0 || pipe(pair) < 0)
		return false;
	network = fork();
	if (network == 0) {
		char byte;

		(void)close(pair[1]);
		_exit((int)read(pair[0], &byte, 1));
	}
	(void)close(pair[0]);
	if (unshare(CLONE_NEWNET) < 0)
		return false;
	for (int i = 1; i <= 5; i++)
		if (!run(nic, i))
			return false;
	return run("nsenter -t $net -n ip addr add 10.1.0.1/24 dev port1", 0) &&
	       run("nsenter -t $net -n ip addr add 10.2.0.1/24 dev port2", 0) &&
	       run("nsenter -t $net -n ip addr add 10.2.0.5/24 dev port2", 0) &&
	       run("ip link set net5 down", 0);
}

static json_t *nics(void)
{
	json_t *list = json_array();

	for (int i = 1; i <= 6; i++) {
		bool asks = i != 4;

		json_array_append_new(
			list, json_pack("{s:o, s:{s:b, s:b}}", "ifname", json_fmt("net%d", i),
					"config", "detectIPConflict", asks, "detectGateway", asks));
	}
	return list;
}

TEST(finds_out_about_all_nics_of_a_pod_together)
{
	json_auto_t *settings = json_pack("{s:s, s:b, s:[], s:[]}", "mode", "auto", "tunePodRoutes",
					  1, "overlayPodCIDR", "serviceCIDR");
	json_auto_t *list = nics(), *findings = NULL;
	auto_netns struct netns *namespaces = NULL;
	auto_close int netns = -1;

	if (!make_pod())
		skip();
	netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	findings = coordinator_detect(&namespaces, netns, list, settings);
	(void)kill(network, SIGKILL);
	(void)waitpid(network, NULL, 0);
	assert_int_equal(json_object_size(json_at(findings, "net1")), 0);
	assert_string_equal(json_str_at(findings, "net2", "error", "reason"), "AddressInUse");
	assert_string_equal(
		json_str_at(json_array_get(json_at(findings, "net2", "conflicts"), 0), "ip"),
		"10.2.0.5");
	assert_string_equal(json_str_at(findings, "net3", "error", "reason"), "GatewayUnreachable");
	assert_non_null(strstr(json_str_at(findings, "net3", "error", "text"), "10.3.0.1"));
	assert_null(json_at(findings, "net3", "conflicts"));
	/* One is not asked for, one is down, and one is not there. */
	assert_non_null(json_at(findings, "net1"));
	assert_int_equal(json_object_size(findings), 3);
}

// SPDX-License-Identifier: Apache-2.0
/* What `orbweaver test` decides without a cluster: networks, nodes, pods, and what tools say. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/pathtest/fabric.h"
#include "cli/pathtest/facts.h"
#include "cli/pathtest/pods.h"
#include "cli/pathtest/results.h"
#include "cli/pathtest/rounds.h"
#include "cli/pathtest/steps.h"
#include "cli/pathtest/tasks.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

static json_t *parsed(const char *text)
{
	struct err err = {0};
	json_t *value = json_parse(text, strlen(text), &err);

	if (!value)
		fail_msg("%s: %s", err.text, text);
	return value;
}

#define NAD(name, annotations, config)                                                             \
	"\"ml/" name "\":{\"metadata\":{\"name\":\"" name                                          \
	"\",\"namespace\":\"ml\",\"annotations\":{" annotations                                    \
	"}},\"spec\":{\"config\":\"" config "\"}}"
#define WORLD(shared)                                                                              \
	"{\"network-attachment-definitions\":{" NAD(                                               \
		"vf",                                                                              \
		"\"k8s.v1.cni.cncf.io/resourceName\":\"x.io/"                                      \
		"vf\"",                                                                            \
		"{}") "," NAD("mac", "",                                                           \
			      "{\\\"plugins\\\":[{\\\"type\\\":"                                   \
			      "\\\"macvlan\\\","                                                   \
			      "\\\"master\\\":\\\"ens1\\\"}]}") "},\"sriovnetworknodestates\":{"   \
								"\"s/"                             \
								"w1\":{\"status\":{\"resources\":" \
								"[" shared "]}}}}"
#define SHARED(name) "{\"kind\":\"shared\",\"name\":\"" name "\"}"

TEST(networks_have_the_resource_that_pods_ask_for)
{
	static const struct {
		const char *world, *networks, *resource;
		const char *want; /* NULL: an error, with this text */
		const char *text;
	} rows[] = {
		{WORLD(""), "ml/vf", NULL, "[{\"key\":\"ml/vf\",\"resource\":\"x.io/vf\"}]", NULL},
		{WORLD(""), "vf", "x.io/other", "[{\"key\":\"ml/vf\",\"resource\":\"x.io/other\"}]",
		 NULL},
		{WORLD(SHARED("x.io/s")), "mac", NULL,
		 "[{\"key\":\"ml/mac\",\"master\":\"ens1\",\"resource\":\"x.io/s\"}]", NULL},
		{WORLD(""), "mac", NULL, "[{\"key\":\"ml/mac\",\"master\":\"ens1\"}]", NULL},
		{WORLD(SHARED("x.io/s")), "mac", "", "[{\"key\":\"ml/mac\",\"master\":\"ens1\"}]",
		 NULL},
		{WORLD(SHARED("x.io/s") "," SHARED("x.io/t")), "mac", NULL, NULL,
		 "several shared ones (x.io/s, x.io/t): choose with --resource"},
		{WORLD(""), "lost", NULL, NULL, "there is no NetworkAttachmentDefinition ml/lost"},
		{WORLD(""), "", NULL, NULL, "no network is named"},
		{WORLD(""), "[{}]", NULL, NULL, "name"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = parsed(rows[i].world);
		struct err err = {0};
		json_auto_t *got =
			pathtest_networks(world, rows[i].networks, "ml", rows[i].resource, &err);
		json_auto_t *want = rows[i].want ? parsed(rows[i].want) : NULL;

		if (want && !json_same(got, want)) {
			auto_free char *text = got ? json_text(got) : str_dup(err.text);

			fail_msg("row %zu: %s", i, text);
		}
		if (!want && (got || !strstr(err.text, rows[i].text)))
			fail_msg("row %zu: %s", i, err.text);
	}
}

#define NODE(name, ready, count, more)                                                             \
	"\"" name "\":{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" more "},\"status\":{"      \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready                                  \
	"\"}],\"allocatable\":{\"x.io/vf\":\"" count "\"}}}"
#define NODES                                                                                      \
	"{\"nodes\":{" NODE("a", "True", "0", "") "," NODE("b", "True", "2", "") "," NODE(         \
		"c", "False", "2",                                                                 \
		"") "," NODE("d", "True", "1",                                                     \
			     "\"unschedulable\":true") "," NODE("e", "True", "1",                  \
								"") "," NODE("f", "True", "1",     \
									     "") "}}"

TEST(nodes_are_named_or_have_what_is_wanted)
{
	static const struct {
		char *named[3];
		bool all;
		const char *want, *text;
	} rows[] = {
		{{NULL}, false, "[\"b\",\"e\"]", NULL},
		{{NULL}, true, "[\"b\",\"e\",\"f\"]", NULL},
		{{"f", "d"}, false, "[\"f\",\"d\"]", NULL},
		{{"f", "a"}, false, NULL, "node a has too few x.io/vf"},
		{{"f", "g"}, false, NULL, "there is no node g"},
		{{"f", "f"}, false, NULL, "node f is named twice"},
		{{"f"}, true, NULL, "needs two nodes"},
	};
	json_auto_t *world = parsed(NODES);
	json_auto_t *networks = parsed("[{\"key\":\"ml/vf\",\"resource\":\"x.io/vf\"}]");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		size_t n = 0;
		json_auto_t *got = NULL, *want = rows[i].want ? parsed(rows[i].want) : NULL;

		while (rows[i].named[n])
			n++;
		got = pathtest_nodes(world, networks, rows[i].named, n, rows[i].all, &err);
		assert_true(json_same(got, want));
		if (!want && !strstr(err.text, rows[i].text))
			fail_msg("row %zu: %s", i, err.text);
	}
}

TEST(two_networks_of_one_resource_take_two)
{
	json_auto_t *world = parsed(NODES);
	json_auto_t *networks =
		parsed("[{\"key\":\"ml/a\",\"resource\":\"x.io/vf\"},"
		       "{\"key\":\"ml/b\",\"resource\":\"x.io/vf\"},{\"key\":\"ml/c\"}]");
	json_auto_t *pod = NULL;
	struct err err = {0};

	assert_null(pathtest_nodes(world, networks, NULL, 0, false, &err));
	assert_string_equal(err.reason, "TooFewNodes");
	assert_non_null(strstr(err.text, "there are 1: see orbweaver explain resource x.io/vf"));
	pod = pathtest_pod(&(struct pathtest_pod){
		.name = "p", .ns = "ml", .node = "b", .image = "i", .networks = networks});
	assert_string_equal(
		json_str_at(pod, "metadata", "annotations", "k8s.v1.cni.cncf.io/networks"),
		"ml/a,ml/b,ml/c");
	assert_string_equal(json_str_at(json_array_get(json_at(pod, "spec", "containers"), 0),
					"resources", "limits", "x.io/vf"),
			    "2");
}

#define BOUND "\"spec\":{\"nodeName\":\"b\"},"
#define RUNS  "\"status\":{\"containerStatuses\":[{\"state\":{\"running\":{}}}]}"
#define NET                                                                                        \
	"\"metadata\":{\"annotations\":{\"k8s.v1.cni.cncf.io/network-status\":\""                  \
	"[{\\\"name\\\":\\\"ml/"                                                                   \
	"vf\\\",\\\"interface\\\":\\\"net1\\\",\\\"ips\\\":[\\\"fd00::1\\\",\\\"10.0.0.1/24\\\"]," \
	"\\\"device-info\\\":{\\\"pci\\\":{\\\"rdma-device\\\":\\\"mlx5_3\\\"}}}]\"}},"

TEST(pods_say_what_they_wait_for)
{
	static const struct {
		const char *pod;
		enum pod_state want;
		const char *text;
	} rows[] = {
		{"{}", POD_WAITS, "no scheduler has looked"},
		{"{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
		 "\"message\":\"0/2 nodes\"}]}}",
		 POD_STUCK, "not scheduled: 0/2 nodes"},
		{"{" BOUND "\"status\":{}}", POD_WAITS, "being made"},
		{"{" BOUND "\"status\":{\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		 "\"ErrImageNeverPull\",\"message\":\"not there\"}}}]}}",
		 POD_FAILED, "ErrImageNeverPull: not there"},
		{"{" BOUND
		 "\"status\":{\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\","
		 "\"message\":\"no device\"}}",
		 POD_FAILED, "UnexpectedAdmissionError: no device"},
		{"{\"metadata\":{\"deletionTimestamp\":\"x\"}}", POD_FAILED, "somebody deletes"},
		{"{" BOUND RUNS "}", POD_STUCK, "no interface with an address in ml/vf"},
		{"{" NET BOUND RUNS "}", POD_READY, ""},
	};
	json_auto_t *networks = parsed("[{\"key\":\"ml/vf\"}]");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *pod = parsed(rows[i].pod);
		struct err err = {0};

		assert_int_equal(pathtest_pod_state(pod, networks, &err), rows[i].want);
		if (!strstr(err.text, rows[i].text))
			fail_msg("row %zu: %s", i, err.text);
	}
}

TEST(reasons_say_what_kind_of_trouble_it_is)
{
	json_auto_t *world = parsed(WORLD(SHARED("x.io/s") "," SHARED("x.io/t")));
	json_auto_t *none = parsed("{}"), *failed = parsed("{\"status\":{\"phase\":\"Failed\"}}");
	json_auto_t *networks = parsed("[{\"key\":\"ml/vf\"}]");
	struct err err = {0};

	assert_null(pathtest_networks(world, "mac", "ml", NULL, &err));
	assert_string_equal(err.reason, "ManyResources");
	(void)pathtest_pod_state(none, networks, &err);
	assert_string_equal(err.reason, "NotScheduled");
	(void)pathtest_pod_state(failed, networks, &err);
	assert_string_equal(err.reason, "PodFailed");
}

TEST(an_interface_has_its_ipv4_address)
{
	json_auto_t *pod = parsed("{" NET BOUND RUNS "}");
	json_auto_t *got = pathtest_interface(pod, "ml/vf");
	json_auto_t *want = parsed("{\"interface\":\"net1\",\"address\":\"10.0.0.1\","
				   "\"control\":\"10.0.0.1\",\"rdma\":\"mlx5_3\"}");

	assert_true(json_same(got, want));
	assert_null(pathtest_interface(pod, "ml/other"));
}

TEST(the_last_complaint_counts)
{
	json_auto_t *events = parsed("{\"items\":[{\"type\":\"Warning\",\"message\":\"a\"},"
				     "{\"type\":\"Warning\",\"message\":\"b\"},"
				     "{\"type\":\"Normal\",\"message\":\"c\"}]}");

	assert_string_equal(pathtest_complaint(events), "b");
	assert_null(pathtest_complaint(NULL));
}

/* ---- facts ----------------------------------------------------------------------------------- */

#define GID(device, port, n, gid, netdev, type) SOFT_GID(device, port, "-", n, gid, netdev, type)
#define SOFT_GID(device, port, soft, n, gid, netdev, type)                                         \
	"gid " device " " port " Ethernet " soft " " n " " gid " " netdev " " type "\n"
#define MAPPED(last) "0000:0000:0000:0000:0000:ffff:0a00:" last
#define LOCAL        "fe80:0000:0000:0000:5054:00ff:fe00:0001"

TEST(the_rdma_device_is_the_one_that_leads_there)
{
	static const struct {
		const char *text, *rdma;
		int port, gid;
	} rows[] = {
		{"", "", 0, 0},
		/* The address, whoever has it; v2 of two. */
		{GID("a", "1", "0", LOCAL, "net1", "RoCE v2")
			 GID("b", "2", "4", MAPPED("0001"), "x", "IB/RoCE v1")
				 GID("b", "2", "5", MAPPED("0001"), "x", "RoCE v2"),
		 "b", 2, 5},
		/* No address: what network-status names, then the interface, then the NIC below. */
		{GID("mlx5_3", "1", "3", LOCAL, "x", "RoCE v2")
			 GID("c", "1", "1", LOCAL, "net1", "RoCE v2"),
		 "mlx5_3", 1, 3},
		{GID("m", "1", "9", MAPPED("0009"), "ens1", "RoCE v2")
			 GID("c", "1", "1", LOCAL, "net1", "IB/RoCE v1"),
		 "c", 1, 1},
		{GID("m", "1", "0", LOCAL, "ens1", "RoCE v2")
			 GID("m", "1", "1", MAPPED("0009"), "ens1", "RoCE v2")
				 GID("o", "1", "1", MAPPED("0008"), "other", "RoCE v2"),
		 "m", 1, 1},
		{GID("o", "1", "1", MAPPED("0008"), "other", "RoCE v2"), "", 0, 0},
		{"gid i 1 InfiniBand - 0 " LOCAL " net1 IB/RoCE v1\n", "i", 1, -1},
		/* What is no such line. */
		{"gid a x Ethernet - 0 " LOCAL " net1 RoCE v2\ngid a 1 Ethernet - -1 " LOCAL
		 " net1 RoCE v2\ngid a 1\ngid\n\n",
		 "", 0, 0},
	};
	json_auto_t *interface = parsed("{\"interface\":\"net1\",\"address\":\"10.0.0.1\","
					"\"rdma\":\"mlx5_3\"}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct facts facts;

		facts_read(rows[i].text, interface, "ens1", &facts);
		if (!str_eq(facts.rdma, rows[i].rdma) || facts.port != rows[i].port ||
		    facts.gid != rows[i].gid)
			fail_msg("row %zu: %s port %d gid %d", i, facts.rdma, facts.port,
				 facts.gid);
	}
}

TEST(the_rate_is_that_of_the_port_with_the_gid)
{
	json_auto_t *interface = parsed("{\"interface\":\"net1\",\"address\":\"10.0.0.1\"}");
	struct facts facts;

	facts_read("rate 400\n" GID("a", "1", "0", LOCAL, "x", "RoCE v2") "rate 200\n" GID(
			   "b", "1", "3", MAPPED("0001"), "net1", "RoCE v2") "rate 100\n",
		   interface, NULL, &facts);
	assert_string_equal(facts.rdma, "b");
	assert_int_equal(facts.rate_gbps, 200);
	facts_read("rate 2.5\n" GID("b", "1", "3", MAPPED("0001"), "net1", "RoCE v2"), interface,
		   NULL, &facts);
	assert_int_equal(facts.rate_gbps, 0);
}

/* What it sends is routed where the interface below it is. */
TEST(soft_roce_has_the_gids_of_its_own_interface)
{
	static const char shared[] = SOFT_GID("rxe", "1", "ens1", "0", LOCAL, "ens1", "RoCE v2")
		SOFT_GID("rxe", "1", "ens1", "1", MAPPED("0009"), "ens1", "RoCE v2")
			SOFT_GID("rxe", "1", "ens1", "2", MAPPED("0001"), "net1", "RoCE v2");
	static const char moved[] = SOFT_GID("rxe", "1", "net1", "0", LOCAL, "net1", "RoCE v2")
		SOFT_GID("rxe", "1", "net1", "1", MAPPED("0001"), "net1", "RoCE v2");
	json_auto_t *interface = parsed("{\"interface\":\"net1\",\"address\":\"10.0.0.1\"}");
	struct facts facts;

	facts_read(shared, interface, "ens1", &facts);
	assert_string_equal(facts.rdma, "rxe");
	assert_int_equal(facts.gid, 1);
	assert_true(facts.is_soft_elsewhere);
	facts_read(shared, interface, "ens2", &facts);
	assert_string_equal(facts.rdma, "");
	facts_read(moved, interface, NULL, &facts);
	assert_int_equal(facts.gid, 1);
	assert_false(facts.is_soft_elsewhere);
}

TEST(link_and_tools_are_read)
{
	json_auto_t *interface = parsed("{\"interface\":\"net1\",\"address\":\"10.0.0.1\"}");
	struct path path = {.server = {.interface = "net1"}, .client = {.interface = "net1"}};
	char text[160];

	facts_read("link up 9000\nmissing rping\nmissing rstream\n", interface, NULL,
		   &path.server.facts);
	assert_string_equal(path.server.facts.missing, "rping, rstream");
	assert_false(path_link_is_up(&path, text, sizeof(text)));
	assert_string_equal(text, "there is no interface net1 in the pod");
	facts_read("link down 1500\n", interface, NULL, &path.client.facts);
	assert_false(path_link_is_up(&path, text, sizeof(text)));
	assert_string_equal(text, "net1 is down");
	facts_read("link unknown 1500\n", interface, NULL, &path.client.facts);
	assert_false(path_link_is_up(&path, text, sizeof(text)));
	assert_non_null(strstr(text, "MTU 1500 here and 9000 there"));
	assert_int_equal(path_mtu(&path), 1500);
	facts_read("link up 1500\n", interface, NULL, &path.server.facts);
	assert_true(path_link_is_up(&path, text, sizeof(text)));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const struct step *step_named(const char *name)
{
	for (const struct step *step = path_steps; step->name; step++)
		if (str_eq(step->name, name))
			return step;
	fail_msg("no step %s", name);
	return NULL;
}

TEST(commands_lead_from_the_client_to_the_server)
{
	static const struct {
		const char *step;
		bool is_server;
		const char *want;
	} rows[] = {
		{"mtu", false, "ping -c 2 -i 0.2 -W 2 -I 10.0.0.2 -M do -s 1472 10.0.0.1"},
		{"ib_write_bw", true,
		 "sh -c COUNT a 1 ib_write_bw -D 6 -f 2 -s 65536 --report_gbits -F -p 7 -d a -i 1 "
		 "-x 3"},
		{"rping", true, "rping -s -a 10.0.0.1 -p 7 -C 5"},
		{"rping", false, "rping -c -a 10.0.0.1 -p 7 -C 5"},
		{"ib_read_lat", true, "ib_read_lat -n 1000 -s 2 -F -p 7 -d a -i 1 -x 3"},
		{"ib_read_lat", false, "ib_read_lat -n 1000 -s 2 -F -p 7 -d b -i 2 10.0.0.1"},
		{"tcp latency", true, "rstream -T s -T b -p 7 -b 10.0.0.1 -S 2 -I 1000 -C 1"},
		{"tcp bandwidth", false, "rstream -T s -T b -p 7 -s 10.0.0.1 -S 65536 -I 1 -C 16"},
	};
	const struct path path = {
		.server = {.interface = "net1",
			   .address = "10.0.0.1",
			   .control = "10.0.0.1",
			   .facts = {.mtu = 1500, .rdma = "a", .port = 1, .gid = 3}},
		.client = {.interface = "net1",
			   .address = "10.0.0.2",
			   .control = "10.0.0.2",
			   .facts = {.mtu = 9000, .rdma = "b", .port = 2, .gid = -1}},
		.port = "7",
		.transfers = 16,
		.margin_s = 2,
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_strbuf struct strbuf text = {0};
		struct step_words words = {0};

		step_named(rows[i].step)->words(&path, rows[i].is_server, &words);
		for (size_t n = 0; n < words.n; n++)
			strbuf_addf(&text, "%s%s", n > 0 ? " " : "",
				    words.words[n] == fabric_count_script ? "COUNT"
									  : words.words[n]);
		assert_null(words.words[words.n]);
		assert_string_equal(strbuf_str(&text), rows[i].want);
	}
}

TEST(a_path_below_what_was_asked_for_says_so)
{
	static const struct {
		const char *min_gbps, *max_us;
		enum step_measure measure;
		double value;
		int server_rate;
		const char *text; /* "": within */
	} rows[] = {
		{NULL, NULL, STEP_RDMA_BANDWIDTH, 0.001, 0, ""},
		{"180", NULL, STEP_RDMA_BANDWIDTH, 180, 400, ""},
		{"180", NULL, STEP_RDMA_BANDWIDTH, 179.9, 400, "less than 180 Gb/s (--min-gbps)"},
		{"180", NULL, STEP_TCP_BANDWIDTH, 1, 400, ""},
		/* Of the slower one; the client's is 400. */
		{"90%", NULL, STEP_RDMA_BANDWIDTH, 181, 200, ""},
		{"90%", NULL, STEP_RDMA_BANDWIDTH, 179, 200, "less than 180 Gb/s (--min-gbps)"},
		{"90%", NULL, STEP_RDMA_BANDWIDTH, 179, 0,
		 "the rate of an RDMA device is not known: give --min-gbps a number without %"},
		{NULL, "8", STEP_RDMA_LATENCY, 8, 400, ""},
		{NULL, "2.5", STEP_RDMA_LATENCY, 2.6, 400, "more than 2.5 us (--max-us)"},
		{NULL, "8", STEP_ROUND_TRIP, 90, 400, ""},
	};
	static const char *const bad[] = {"", "0", "-1", "90%%", "%", "x", "1e9", "nan", "180 "};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path path = {.client.facts.rate_gbps = 400,
				    .server.facts.rate_gbps = rows[i].server_rate};
		struct path_limits limits;
		char text[128];

		assert_int_equal(path_limits_read(rows[i].min_gbps, rows[i].max_us, &limits, NULL),
				 0);
		assert_int_equal(path_is_within(&limits, &path, rows[i].measure, rows[i].value,
						text, sizeof(text)),
				 !*rows[i].text);
		assert_string_equal(text, rows[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct path_limits limits;
		struct err err = {0};

		assert_int_equal(path_limits_read(bad[i], NULL, &limits, &err), -1);
		assert_string_equal(err.reason, "BadFlag");
		assert_int_equal(path_limits_read(NULL, bad[i], &limits, &err), -1);
	}
}

/* Whatever the rate: a stream that takes three seconds, and not less than the trial. */
TEST(a_stream_is_as_long_on_slow_and_on_fast_paths)
{
	assert_int_equal(path_transfers(0.001), PATHTEST_TRIAL);
	assert_int_equal(path_transfers(1.048576), 3000);
	assert_int_equal(path_transfers(104.8576), 300000);
	assert_int_equal(path_transfers(1e9), 3000000);
	assert_int_equal(path_transfers(1e-300), PATHTEST_TRIAL);
}

/* The status of `command` in the script of a client that has so many seconds. */
static int status_of(const char *seconds, const char *command)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		(void)execlp("sh", "sh", "-c", path_until_script, seconds, "sh", "-c", command,
			     NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(who_ran_out_of_time_is_told_from_who_failed)
{
	assert_int_equal(status_of("6", "exit 3"), 3);
	assert_int_equal(status_of("60", "exit 0"), 0);
	assert_true(path_is_late(status_of("1", "exec sleep 600")));
	assert_true(path_is_late(124));
	assert_true(path_is_late(143));
	assert_false(path_is_late(1));
	assert_false(path_is_late(0));
}

/* ---- tasks ----------------------------------------------------------------------------------- */

TEST(a_log_says_what_became_of_a_task)
{
	static const struct {
		const char *log, *output;
		int exit_code; /* -1: it has not ended */
	} rows[] = {
		{"", "", -1},
		{"7 > one\n7 > \n7 > two\n7 ends 3\n", "one\n\ntwo\n", 3},
		{"6 > other\n7 > mine\n6 ends 0\n", "mine\n", -1},
		{"7 > cut o", "cut o\n", -1},
		{"7 > 7 ends 0\n77 ends 0\n7 ends\n7 ends x\n7 ends 256\n", "7 ends 0\n", -1},
		{"no line of ours\n7 ends 0\n7 > late\n", "", 0},
		{"7 begins\n7 begins now\n77 begins\n7 > begun\n", "begun\n", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct task_report report;

		task_read(rows[i].log, 7, &report);
		assert_string_equal(report.output, rows[i].output);
		assert_int_equal(report.has_begun, str_starts(rows[i].log, "7 begins"));
		assert_int_equal(report.has_ended, rows[i].exit_code >= 0);
		assert_int_equal(report.exit_code, rows[i].exit_code < 0 ? 0 : rows[i].exit_code);
		mem_free(report.output);
	}
}

/* The pod's script, and the folder in which it finds its task. */
struct played_pod {
	char folder[64];
	pid_t pid;
};

static void begin_pod(struct played_pod *pod)
{
	snprintf(pod->folder, sizeof(pod->folder), "/tmp/pathtest-XXXXXX");
	assert_non_null(mkdtemp(pod->folder));
	pod->pid = fork();
	if (pod->pid == 0) {
		auto_free char *log = str_printf("%s/log", pod->folder);

		/* What it has started ends with it, and it with a test that fails. */
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		assert_non_null(freopen(log, "a", stdout));
		(void)execlp("sh", "sh", "-c", task_pod_script, pod->folder, NULL);
		_exit(127);
	}
	assert_true(pod->pid > 0);
	(void)setpgid(pod->pid, pod->pid);
}

static void end_pod(struct played_pod *pod)
{
	static const char *const files[] = {"log", "new", "began", "end", TASK_FILE};

	(void)kill(-pod->pid, SIGKILL);
	assert_int_equal(waitpid(pod->pid, NULL, 0), pod->pid);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *path = str_printf("%s/%s", pod->folder, files[i]);

		(void)unlink(path);
	}
	assert_int_equal(rmdir(pod->folder), 0);
}

/* As a kubelet does: at once, by a rename. */
static void give_task(const struct played_pod *pod, int number, const char *script,
		      const char *const *words)
{
	auto_strbuf struct strbuf text = {0};
	auto_free char *fresh = str_printf("%s/new", pod->folder);
	auto_free char *path = str_printf("%s/" TASK_FILE, pod->folder);

	task_add(&text, number, script, words);
	/* Others beside it. */
	task_add(&text, 1000 + number, "echo beside", (const char *const[]){NULL});
	assert_int_equal(fs_write_atomic(AT_FDCWD, fresh, text.data, text.len, 0600, NULL), 0);
	assert_int_equal(rename(fresh, path), 0);
}

/* Wait until the task has ended. */
static void await_task(const struct played_pod *pod, int number, int exit_code, const char *output)
{
	auto_free char *path = str_printf("%s/log", pod->folder);
	struct task_report report = {0};

	while (!report.has_ended) {
		auto_strbuf struct strbuf log = {0};

		mem_free(report.output);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		(void)fs_read(AT_FDCWD, path, 1 << 20, &log, NULL);
		task_read(strbuf_str(&log), number, &report);
	}
	assert_int_equal(report.exit_code, exit_code);
	assert_string_equal(report.output, output);
	mem_free(report.output);
}

static void until_there(const struct played_pod *pod, const char *name)
{
	auto_free char *path = str_printf("%s/%s", pod->folder, name);

	while (access(path, F_OK) < 0)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

TEST(a_pod_runs_what_it_is_given)
{
	struct played_pod pod;

	begin_pod(&pod);
	give_task(&pod, 1, "printf '%s\\n' \"$0:$1:$2\"; echo error >&2; exit 3\n",
		  (const char *const[]){"it's", "$HOME `id`", "a\\b", NULL});
	await_task(&pod, 1, 3, "it's:$HOME `id`:a\\b\nerror\n");
	await_task(&pod, 1001, 0, "beside\n");
	/* One that goes on does not keep the next from running. */
	give_task(&pod, 2,
		  "echo began >\"$0/began\"\nuntil [ -e \"$0/end\" ]; do sleep 0.01; done\necho "
		  "over\n",
		  (const char *const[]){pod.folder, NULL});
	until_there(&pod, "began");
	give_task(&pod, 3, "echo three >\"$0/end\"; echo three\n",
		  (const char *const[]){pod.folder, NULL});
	await_task(&pod, 3, 0, "three\n");
	await_task(&pod, 2, 0, "over\n");
	/* What counts has the command's output and status. */
	give_task(&pod, 4, fabric_count_script,
		  (const char *const[]){"none", "1", "sh", "-c", "echo $0; exit 3", "four", NULL});
	await_task(&pod, 4, 3, "four\n");
	end_pod(&pod);
}

TEST(what_verbs_do_in_the_pods)
{
	static const char works[] = "{'items': [{'level': 'info', 'reason': 'VerbsWork', 'subject':"
				    " 'a', 'seen': 'port 1'}]}";
	static const struct {
		const char *client, *server;
		enum facts_verbs want;
		const char *seen;
	} rows[] = {
		{works, works, FACTS_VERBS_WORK, "port 1"},
		{"", "sh: orbweaver: not found\n", FACTS_VERBS_UNKNOWN, ""},
		{"{", "{'items': {}}", FACTS_VERBS_UNKNOWN, ""},
		/* Of another device; of the transport that it has not. */
		{"{'items': [{'level': 'error', 'reason': 'VerbsFailed', 'subject': 'b'}]}",
		 "{'items': [{'level': 'warning', 'reason': 'VerbsFailed', 'subject': 'a'}]}",
		 FACTS_VERBS_UNKNOWN, ""},
		{works,
		 "{'items': [{'level': 'error', 'reason': 'MemlockLow', 'subject': 'a', "
		 "'seen': 'ibv_reg_mr fails\\u001b', 'remedy': 'add IPC_LOCK'}]}",
		 FACTS_VERBS_BROKEN, "the other end: ibv_reg_mr fails?; add IPC_LOCK"},
		/* Others may be reached all the same. */
		{"{'items': [{'level': 'error', 'reason': 'GidNotUsable', 'subject': 'a', "
		 "'seen': 's', 'remedy': 'r'}]}",
		 works, FACTS_VERBS_WORK, "s; r"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path path = {.client.facts.rdma = "a", .server.facts.rdma = "a"};
		auto_free char *client = str_dup(rows[i].client), *server = str_dup(rows[i].server);
		char seen[PATHTEST_SEEN_MAX];

		for (char *c = client; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		for (char *c = server; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		facts_read_verbs(client, &path.client.facts);
		facts_read_verbs(server, &path.server.facts);
		assert_int_equal(path_verbs(&path, seen, sizeof(seen)), rows[i].want);
		assert_string_equal(seen, rows[i].seen);
	}
}

TEST(settings_of_both_ends_are_compared)
{
	static const struct {
		const char *client, *server;
		enum fabric_verdict want;
		const char *text;
	} rows[] = {
		{"{}", "{}", FABRIC_UNKNOWN, ""},
		{"{\"settings\":{\"pfc\":[3]}}", "{}", FABRIC_UNKNOWN, "not known of one end"},
		{"{\"settings\":{\"pfc\":[3],\"rings\":{\"rx\":1}}}",
		 "{\"settings\":{\"rings\":{\"rx\":2},\"trust\":\"dscp\"}}", FABRIC_UNKNOWN,
		 "the drivers have none in common"},
		{"{\"settings\":{\"pfc\":[3],\"trust\":\"dscp\",\"rings\":{\"rx\":1}}}",
		 "{\"settings\":{\"pfc\":[3],\"trust\":\"dscp\",\"rings\":{\"rx\":2}}}", FABRIC_OK,
		 "alike: pfc, trust"},
		{"{\"settings\":{\"pfc\":[3],\"ecn\":[3],\"dscpToPriority\":{\"26\":3}}}",
		 "{\"settings\":{\"pfc\":[],\"ecn\":[3],\"dscpToPriority\":{}}}", FABRIC_FAILED,
		 "pfc is [3] here and [] there; dscpToPriority is {\"26\":3} here and {} there: "
		 "set both NICs, and switches, alike"},
		{"{\"settings\":{\"pfc\":[3],\"trust\":\"dscp\",\"dscpToPriority\":{\"26\":3},"
		 "\"trafficClass\":106}}",
		 "{\"settings\":{\"pfc\":[3],\"trust\":\"dscp\",\"dscpToPriority\":{\"26\":3},"
		 "\"trafficClass\":0}}",
		 FABRIC_FAILED,
		 "RoCE has DSCP 0 there, of priority 0, which has no PFC: set both NICs, and "
		 "switches, alike"},
		/* Each program says which. */
		{"{\"settings\":{\"pfc\":[3],\"trust\":\"dscp\",\"dscpToPriority\":{},"
		 "\"trafficClass\":-1}}",
		 "{\"settings\":{\"pfc\":[3],\"trust\":\"pcp\",\"dscpToPriority\":{},"
		 "\"trafficClass\":0}}",
		 FABRIC_FAILED,
		 "trust is \"dscp\" here and \"pcp\" there: set both NICs, and switches, alike"},
	};
	char text[PATHTEST_SEEN_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *client = parsed(rows[i].client), *server = parsed(rows[i].server);

		assert_int_equal(fabric_compare(client, server, text, sizeof(text)), rows[i].want);
		assert_string_equal(text, rows[i].text);
	}
	assert_int_equal(fabric_compare(NULL, NULL, text, sizeof(text)), FABRIC_UNKNOWN);
}

TEST(what_grew_beside_the_load_is_judged)
{
	static const char sender[] = "count rp_cnp_handled 5\ncount packet_seq_err 7\n"
				     "count local_ack_timeout_err 1\ncount lifespan 10\n"
				     " #bytes\n 65536 1 0 97.25 1\n"
				     "count rp_cnp_handled 9\ncount packet_seq_err 8\n"
				     "count local_ack_timeout_err 3\ncount lifespan 10\n";
	static const char receiver[] = "count np_cnp_sent 1\ncount np_ecn_marked_roce_packets 2\n"
				       "count np_cnp_sent 5\ncount np_ecn_marked_roce_packets 22\n";
	/* Set back meanwhile; no number; counted once, as where the command failed. */
	static const char odd[] =
		"count packet_seq_err 9\ncount packet_seq_err 8\n"
		"count np_cnp_sent -1\ncount np_cnp_sent \ncount np_cnp_sent\n"
		"count rcvd_seq_err 99999999999999999999999\ncount cnpSent 1\ncount ";
	json_auto_t *sent = fabric_counted(sender), *received = fabric_counted(receiver);
	json_auto_t *lossless = parsed("{\"settings\":{\"pfc\":[3]}}");
	json_auto_t *lossy = parsed("{\"settings\":{\"pfc\":[]}}");
	json_auto_t *want = parsed("{\"cnpHandled\":4,\"lost\":3}");
	char text[PATHTEST_SEEN_MAX];

	assert_true(json_same(sent, want));
	assert_null(fabric_counted(odd));
	assert_int_equal(fabric_judge(lossless, lossy, sent, received, text, sizeof(text)),
			 FABRIC_OK);
	assert_string_equal(text, "marked by ECN 20, CNPs sent 4, handled 4; lost or late 3");
	assert_int_equal(fabric_judge(lossless, lossless, sent, received, text, sizeof(text)),
			 FABRIC_FAILED);
	assert_non_null(strstr(text, "a switch between them has not"));
	assert_int_equal(fabric_judge(lossless, lossless, NULL, received, text, sizeof(text)),
			 FABRIC_OK);
	assert_int_equal(fabric_judge(lossless, lossless, NULL, NULL, text, sizeof(text)),
			 FABRIC_UNKNOWN);
}

/* As the tools print it: perftest 4.5, rdmacm-utils 44, iputils, busybox. */
TEST(figures_of_the_tools_are_read)
{
	static const struct {
		const char *step, *output;
		double want; /* 0: none */
	} rows[] = {
		{"ib_read_lat",
		 " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
		 "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
		 " 2       1000          6.88           16.81        7.04     \t       7.06        "
		 "\t"
		 "0.31\t\t7.38    \t\t16.81   \n-----\n",
		 7.04},
		{"ib_read_lat", " #bytes #iterations\n", 0},
		{"ib_read_lat", " #bytes\n 2 1000 6.88\n", 0},
		{"ib_read_lat", " #bytes\n 2 1000 6.88 16.81 nan\n", 0},
		{"ib_read_lat", "Couldn't connect\n", 0},
		{"ib_write_bw",
		 " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		 "MsgRate[Mpps]\n"
		 " 65536      180000           0.00               97.25               0.185496\n",
		 97.25},
		{"tcp latency",
		 "name      bytes   xfers   iters   total       time     Gb/sec    usec/xfer\n"
		 "custom    2       1       1k      3.9k        0.02s      0.00       9.50\n",
		 19},
		{"tcp bandwidth",
		 "name      bytes   xfers   iters   total       time     Gb/sec    usec/xfer\n"
		 "custom    64k     1k      1       125m        0.03s     41.94      12.50\n",
		 41.94304},
		{"ping", "rtt min/avg/max/mdev = 0.044/0.101/0.164/0.049 ms\n", 101},
		{"ping", "round-trip min/avg/max = 0.044/0.101/0.164 ms\n", 101},
		{"ping", "5 packets transmitted, 0 received\n", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double got = 0;
		bool found = step_named(rows[i].step)->read(rows[i].output, &got);

		if (found != (rows[i].want > 0) ||
		    (found && (got < rows[i].want * 0.999 || got > rows[i].want * 1.001)))
			fail_msg("row %zu: %f", i, got);
	}
}

TEST(the_last_lines_are_for_people)
{
	static const struct {
		const char *output, *want;
	} rows[] = {
		{"", ""},
		{"\n\n", ""},
		{"a\n  b c\n------\n\n", "a; b c"},
		{"nothing\nof\n----\n\n this ", "of; this"},
		{"no\x1b[31m red", "no?[31m red"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *got = path_last_lines(rows[i].output);

		assert_string_equal(got, rows[i].want);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

enum { NODES_MAX = 9, NETWORKS_MAX = 7 };

/* Each node's NICs by number, or all of them by one name. */
static json_t *nics_of(size_t nodes, size_t networks, const char *name)
{
	json_t *nics = json_array();

	for (size_t i = 0; i < nodes * networks; i++)
		json_array_append_new(nics,
				      name ? json_string(name) : json_fmt("%zu", i % networks));
	return nics;
}

/* How many rounds there are; no NIC is in use twice in one of them, and each path is there once. */
static size_t rounds_of(enum path_pattern pattern, size_t nodes, size_t networks, const char *name)
{
	json_auto_t *nics = nics_of(nodes, networks, name), *seen = json_object();
	size_t n = 0, rounds = 0;
	auto_free struct round_path *paths = rounds_plan(pattern, nodes, networks, nics, &n);

	for (size_t i = 0; i < n; i++) {
		const struct round_path *p = &paths[i];
		const size_t ends[][2] = {{p->from, p->from_network}, {p->to, p->to_network}};
		auto_free char *path = str_printf("path %zu %zu %zu %zu", p->from, p->to,
						  p->from_network, p->to_network);

		assert_true(p->from != p->to && p->from < nodes && p->to < nodes);
		assert_true(p->from_network < networks && p->to_network < networks);
		assert_true(p->round == rounds || (i > 0 && p->round + 1 == rounds));
		rounds = p->round + 1;
		assert_null(json_object_get(seen, path));
		json_put_bool(seen, path, true);
		for (size_t k = 0; k < 2 && pattern != PATTERN_RING; k++) {
			auto_free char *end = str_printf("%zu: %zu %zu", p->round, ends[k][0],
							 name ? 0 : ends[k][1]);

			assert_null(json_object_get(seen, end));
			json_put_bool(seen, end, true);
		}
	}
	assert_int_equal(n, (pattern == PATTERN_RING ? nodes : nodes * (nodes - 1) / 2) *
				    (pattern == PATTERN_CROSS ? networks * networks : networks));
	return rounds;
}

TEST(paths_of_a_round_share_no_nic)
{
	for (size_t nodes = 2; nodes <= NODES_MAX; nodes++)
		for (size_t networks = 1; networks <= NETWORKS_MAX; networks++) {
			/* The fewest that there can be: with an odd number one node rests. */
			size_t least = nodes % 2 ? nodes : nodes - 1;

			assert_int_equal(rounds_of(PATTERN_RAILS, nodes, networks, NULL), least);
			assert_int_equal(rounds_of(PATTERN_CROSS, nodes, networks, NULL),
					 least * networks);
			assert_int_equal(rounds_of(PATTERN_RING, nodes, networks, NULL), 1);
		}
	/* One NIC for all networks, and NICs of which nothing is known. */
	assert_int_equal(rounds_of(PATTERN_RAILS, 4, 3, "0000:3b:00.0"), 9);
	assert_int_equal(rounds_of(PATTERN_CROSS, 2, 3, ""), 9);
	assert_int_equal(rounds_of(PATTERN_RING, 3, 2, ""), 1);
}

TEST(too_many_paths_are_refused)
{
	enum path_pattern pattern;
	struct err err = {0};

	assert_int_equal(rounds_check(PATTERN_CROSS, 8, 8, &err), 0);
	assert_int_equal(rounds_check(PATTERN_CROSS, 9, 8, &err), -1);
	assert_string_equal(err.reason, "TooManyPaths");
	assert_int_equal(rounds_check(PATTERN_RING, 256, 8, &err), 0);
	assert_int_equal(rounds_check(PATTERN_RAILS, SIZE_MAX, SIZE_MAX, &err), -1);
	assert_int_equal(path_pattern_read(NULL, &pattern, &err), 0);
	assert_int_equal(pattern, PATTERN_RAILS);
	assert_int_equal(path_pattern_read("ring", &pattern, &err), 0);
	assert_int_equal(pattern, PATTERN_RING);
	assert_int_equal(path_pattern_read("mesh", &pattern, &err), -1);
	assert_string_equal(err.reason, "BadFlag");
}

TEST(a_nic_is_found_by_its_vf_or_its_name)
{
	json_auto_t *world = parsed(
		"{\"sriovnetworknodestates\":{\"s/w1\":{\"metadata\":{\"name\":\"w1\"},\"status\":{"
		"\"interfaces\":[{\"rail\":0},{\"name\":\"ens2\",\"rail\":1,\"Vfs\":[{"
		"\"pciAddress\":"
		"\"0000:3b:00.2\"}]}]}}}}");
	json_auto_t *vf = parsed("{\"pci\":\"0000:3b:00.2\"}"), *none = parsed("{}");

	assert_int_equal(json_integer_value(json_at(pathtest_pf(world, "w1", vf, NULL), "rail")),
			 1);
	assert_non_null(pathtest_pf(world, "w1", none, "ens2"));
	assert_null(pathtest_pf(world, "w2", vf, NULL));
	assert_null(pathtest_pf(world, "w1", none, NULL));
}

/* ---- results --------------------------------------------------------------------------------- */

/* Paths FROM TO NETWORK [TO_NETWORK] with a bandwidth; 0: its check failed, below 1: too slow. */
static json_t *item_of(const char *from, const char *to, const char *network,
		       const char *to_network, double gbps)
{
	json_t *item =
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:[{s:s, s:s}]}", "from", from, "to", to,
			  "network", network, "toNetwork", to_network, "fromRail", 3, "checks",
			  "check", "ib_write_bw", "state", gbps < 1 ? "failed" : "ok");

	if (gbps > 0)
		json_put(json_need_object(item, "bandwidth"), "rdma", json_real(gbps));
	return item;
}

/* Of three nodes in two networks all paths, slow are those with the node or the network. */
static json_t *mesh(const char *slow_node, const char *slow_network)
{
	static const char *const pairs[][2] = {{"a", "b"}, {"a", "c"}, {"b", "c"}};
	json_t *items = json_array();

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		for (const char *network = "1"; network; network = *network == '1' ? "2" : NULL) {
			bool is_slow = (!slow_node || str_eq(slow_node, pairs[i][0]) ||
					str_eq(slow_node, pairs[i][1])) &&
				       (!slow_network || str_eq(slow_network, network));

			json_array_append_new(items, item_of(pairs[i][0], pairs[i][1], network,
							     network, is_slow ? 0.5 : 9));
		}
	return items;
}

TEST(what_failed_paths_have_in_common_is_named)
{
	static const struct {
		const char *node, *network, *want;
		int failed;
	} rows[] = {
		{"b", NULL, "node b", 4},
		{NULL, "2", "network 2", 3},
		{"c", "1", "node c, network 1", 2},
		{NULL, NULL, "all paths", 6},
	};
	json_auto_t *one = json_array(), *suspects = NULL, *well = mesh("x", NULL), *none = NULL;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *items = mesh(rows[i].node, rows[i].network);
		json_t *item;
		size_t k;

		/* Rails of servers are not known here; both ends are called alike. */
		json_array_foreach (items, k, item)
			json_object_del(item, "fromRail");
		json_auto_t *got = results_suspects(items);

		assert_int_equal(json_array_size(got), 1);
		assert_string_equal(json_str_at(json_array_get(got, 0), "at"), rows[i].want);
		assert_int_equal(json_integer_value(json_at(json_array_get(got, 0), "failed")),
				 rows[i].failed);
		assert_int_equal(json_integer_value(json_at(json_array_get(got, 0), "paths")),
				 rows[i].failed);
	}
	json_array_append_new(one, item_of("a", "b", "1", "1", 0));
	json_array_append_new(one, item_of("a", "b", "2", "3", 0.5));
	json_array_append_new(one, item_of("a", "b", "2", "2", 9));
	suspects = results_suspects(one);
	assert_int_equal(json_array_size(suspects), 2);
	assert_string_equal(json_str_at(json_array_get(suspects, 0), "at"),
			    "a -> b, network 1 (rail 3)");
	assert_string_equal(json_str_at(json_array_get(suspects, 1), "at"),
			    "a -> b, network 2 (rail 3) -> 3");
	none = results_suspects(well);
	assert_int_equal(json_array_size(none), 0);
}

TEST(a_matrix_has_a_cell_for_each_path)
{
	json_auto_t *items = json_array(), *got = NULL, *latency = NULL;
	json_auto_t *want = parsed(
		"{\"columns\":[\"1\",\"2\"],\"rows\":[{\"from\":\"a\",\"to\":\"b\",\"network\":"
		"\"1\",\"cells\":[{\"value\":9.0},{\"value\":0.5,\"failed\":true}]},{\"from\":"
		"\"a\","
		"\"to\":\"b\",\"network\":\"2\",\"cells\":[{},{\"failed\":true}]}]}");

	json_array_append_new(items, item_of("a", "b", "1", "1", 9));
	json_array_append_new(items, item_of("a", "b", "1", "2", 0.5));
	json_array_append_new(items, item_of("a", "b", "2", "2", 0));
	got = results_matrix(items, "bandwidth");
	assert_true(json_same(got, want));
	/* Its check did not fail. */
	latency = results_matrix(items, "latency");
	assert_null(json_at(
		json_array_get(json_at(json_array_get(json_at(latency, "rows"), 0), "cells"), 1),
		"failed"));
}

TEST(a_ring_is_as_fast_as_its_slowest_links)
{
	json_auto_t *items = json_array(), *got = NULL, *unknown = NULL;
	const json_t *rail;

	json_array_append_new(items, item_of("a", "b", "1", "1", 90));
	json_array_append_new(items, item_of("b", "a", "1", "1", 40));
	json_array_append_new(items, item_of("a", "b", "2", "2", 80));
	json_array_append_new(items, item_of("b", "a", "2", "2", 95));
	got = results_ring(items);
	assert_true(json_real_value(json_at(got, "busGbps")) == 120);
	rail = json_array_get(json_at(got, "rails"), 0);
	assert_string_equal(json_str_at(rail, "from"), "b");
	assert_true(json_real_value(json_at(rail, "gbps")) == 40);
	json_array_append_new(items, item_of("c", "a", "2", "2", 0));
	unknown = results_ring(items);
	assert_null(json_at(unknown, "busGbps"));
	assert_string_equal(json_str_at(json_array_get(json_at(unknown, "rails"), 1), "from"), "c");
}

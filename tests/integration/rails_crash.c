// SPDX-License-Identifier: Apache-2.0
/*
 * Workers are killed while a pod with nine NICs comes and goes: the cluster's network is a bridge
 * with host-local, eight rails are macvlans with addresses of IP pools and a coordinator each.
 * Server, workers and planners are real, and so are the network namespaces; the test is runtime,
 * supervisor and agent (tests/support/cni_stand.h). rails_crash_test.sh starts it.
 *
 * A step is a call that changes the disk, or a message that changes something in the kernel. A
 * whole life has some hundreds, so each command is killed at steps of the test's choice: one in
 * each of KILLS parts, which SEED chooses.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/random.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/netlink/netns.h"
#include "tests/support/cni_stand.h"
#include "tests/support/steps.h"

#define POD "/run/netns/pod"

enum { RAILS = 8, KILLS = 2, TRIES = 10, LEFT_MS = 300000, ADD_MS = 900000 };

static struct cni_stand stand;
static json_t *pool;     /* addresses that the pod has from IP pools, by interface */
static json_t *networks; /* what the agent says of the pod */
static char *before;     /* seen_of() of the node and the pod, with nothing attached */
static uint64_t seed;

/* ---- steps ----------------------------------------------------------------------------------- */

void test_step(void)
{
	if (cni_shared && getppid() == cni_shared->supervisor &&
	    atomic_fetch_add(&cni_shared->steps, 1) + 1 == cni_shared->kill_at)
		(void)raise(SIGKILL);
}

ssize_t __real_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

/* Questions change nothing: RTM_NEW…, RTM_DEL…, RTM_GET… follow each other (linux/rtnetlink.h). */
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	struct nlmsghdr header = {0};

	if (to && to->sa_family == AF_NETLINK && len >= sizeof(header)) {
		memcpy(&header, data, sizeof(header));
		if (header.nlmsg_type >= RTM_MAX || (header.nlmsg_type & 3) != (RTM_GETLINK & 3))
			test_step();
	}
	return __real_sendto(fd, data, len, flags, to, to_len);
}

/* ---- the agent ------------------------------------------------------------------------------- */

static json_t *address_of(const char *nic)
{
	int i = nic[strlen(nic) - 1] - '0';

	return json_pack("{s:s, s:[{s:o, s:o}], s:[{s:s, s:o}]}", "cniVersion", "1.0.0", "ips",
			 "address", json_fmt("172.16.1%d.5/16", i), "gateway",
			 json_fmt("172.16.1%d.254", i), "routes", "dst", "0.0.0.0/0", "gw",
			 json_fmt("172.16.1%d.254", i));
}

static json_t *grant(const char *nic)
{
	json_put_bool(pool, nic, true);
	return address_of(nic);
}

static json_t *grant_all(const json_t *question)
{
	json_t *answer, *wish;
	size_t i;

	if (!json_at(question, "wishes"))
		return grant(json_str_at(question, "ifname"));
	answer = json_pack("{s:{}}", "results");
	json_array_foreach (json_at(question, "wishes"), i, wish)
		json_put(json_at(answer, "results"), json_str_at(wish, "nic"),
			 grant(json_str_at(wish, "nic")));
	return answer;
}

static json_t *be_agent(const json_t *question, struct err *err)
{
	const char *kind = json_str_at(question, "kind");

	if (str_eq(kind, "networks"))
		return json_deep_copy(networks);
	if (str_eq(kind, "coordinator"))
		return json_pack("{s:s, s:b, s:[], s:[]}", "mode", "auto", "tunePodRoutes", 1,
				 "overlayPodCIDR", "serviceCIDR");
	if (str_eq(kind, "addresses"))
		return grant_all(question);
	/* The server asks for all of the pod. */
	if (str_eq(kind, "release"))
		json_object_clear(pool);
	return json_object();
}

/* ---- the node -------------------------------------------------------------------------------- */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	auto_free char *line = NULL;
	va_list ap;

	va_start(ap, format);
	line = str_vprintf(format, ap);
	va_end(ap);
	if (system(line) != 0) /* NOLINT(cert-env33-c): a test */
		fail_msg("%s", line);
}

/* The runtime's name for it, and where the server looks: below the host's root. */
static void begin_pod(void)
{
	shell("ip netns add pod && ip -n pod link set lo up && mkdir -p %s/run/netns && touch "
	      "%s" POD " && mount --bind " POD " %s" POD,
	      stand.folder, stand.folder, stand.folder);
}

static void end_pod(void)
{
	shell("umount %s" POD " && rm %s" POD " && ip netns del pod", stand.folder, stand.folder);
}

/* Link-local ones come and go with the links, those of groups with reports of membership. */
static bool is_seen(const json_t *item)
{
	const char *texts[] = {json_str_at(item, "dst"), json_str_at(item, "address")};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (str_starts(texts[i] ? texts[i] : "", "fe80") ||
		    str_starts(texts[i] ? texts[i] : "", "ff") ||
		    str_starts(texts[i] ? texts[i] : "", "224."))
			return false;
	return true;
}

/*
 * What there is, in one line per item; of links the name alone. A coordinator's rules for addresses
 * of the pod end with its namespace.
 */
static void add_seen(struct netns *ns, bool with_rules, struct strbuf *text)
{
	static const char *const parts[] = {"links", "addresses", "routes", "rules", "neighbours"};
	json_auto_t *look = NULL;
	json_t *item;
	size_t k;

	assert_int_equal(netns_observe(ns,
				       NETNS_LINKS | NETNS_ADDRESSES | NETNS_ROUTES |
					       NETNS_NEIGHBOURS | (with_rules ? NETNS_RULES : 0),
				       &look, NULL),
			 0);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		json_array_foreach (json_at(look, parts[i]), k, item) {
			auto_free char *all = NULL;

			/* A bridge without ports has no carrier, after a moment. */
			(void)json_object_del(item, "flags");
			all = json_text(item);
			if (is_seen(item))
				strbuf_addf(text, "%s %s\n", parts[i],
					    i == 0 ? json_str_at(item, "name") : all);
		}
}

/* New. A pod's namespace that is not there adds nothing. */
static char *seen(bool with_pod)
{
	auto_close int fd = with_pod ? open(POD, O_RDONLY | O_CLOEXEC) : -1;
	auto_netns struct netns *node = netns_open(-1, NULL);
	auto_netns struct netns *pod = with_pod ? netns_open(fd, NULL) : NULL;
	struct strbuf text = {0};

	assert_non_null(node);
	assert_true(pod || !with_pod);
	add_seen(node, true, &text);
	strbuf_adds(&text, "pod\n");
	if (pod)
		add_seen(pod, false, &text);
	return strbuf_take(&text);
}

/* Addresses that host-local has given, new; the files of the others stay. */
static char *host_local_files(void)
{
	auto_free char *command = str_printf(
		"cd '%s' && find var/lib/cni -type f -name '10.*' 2>/dev/null", stand.folder);
	struct strbuf text = {0};
	FILE *list = popen(command, "r"); /* NOLINT(cert-env33-c): a test */
	char line[512];

	while (list && fgets(line, sizeof(line), list))
		strbuf_adds(&text, line);
	if (list)
		(void)pclose(list);
	return strbuf_take(&text);
}

/* Append the lines of `text` that `other` does not have. */
static void add_difference(const char *sign, const char *text, const char *other,
			   struct strbuf *ret)
{
	auto_free char *copy = str_dup(text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		if (!strstr(other, line))
			strbuf_addf(ret, "\n%s %s", sign, line);
}

/* What is left of the pod, new; "": nothing. */
static char *left_of(bool has_pod)
{
	auto_free char *files = cni_stand_leftovers(&stand), *given = host_local_files();
	auto_free char *now = seen(has_pod), *addresses = json_text(pool);
	bool is_as_before = has_pod ? str_eq(now, before) : str_starts(before, now);
	auto_strbuf struct strbuf difference = {0};

	if (!*files && !*given && json_object_size(pool) == 0 && is_as_before)
		return str_dup("");
	add_difference("+", now, before, &difference);
	if (has_pod)
		add_difference("-", before, now, &difference);
	return str_printf("files: %s%s\naddresses: %s\nagainst before:%s", files, given, addresses,
			  strbuf_str(&difference));
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static bool call(const char *command)
{
	static const char config[] =
		"{\"cniVersion\": \"1.1.0\", \"name\": \"cluster\", \"type\": \"orbweaver\","
		" \"cni.dev/valid-attachments\": [], \"delegates\": [{\"cniVersion\": \"1.0.0\","
		" \"name\": \"cluster\", \"type\": \"bridge\", \"bridge\": \"ow0\", \"isGateway\": "
		"true, \"ipam\": {\"type\": \"host-local\", \"ranges\": [[{\"subnet\": "
		"\"10.88.0.0/24\"}]], \"routes\": [{\"dst\": \"0.0.0.0/0\"}]}}]}";

	return cni_stand_call(&stand, "orbweaver", command, "c1", config) == 0;
}

static void call_until_well(const char *command, int n)
{
	for (int tries = 0; !call(command); tries++)
		if (tries == TRIES)
			fail_msg("%s after a worker was killed at step %d: %s", command, n,
				 stand.printed);
}

/* What has to wait is done after a moment. */
static void expect_nothing(const char *command, int n, bool has_pod)
{
	int64_t until = clock_ms() + LEFT_MS;

	for (;;) {
		auto_free char *left = left_of(has_pod);

		if (!*left)
			return;
		if (clock_ms() > until)
			fail_msg("seed %llu: %s killed at step %d left %s",
				 (unsigned long long)seed, command, n, left);
		cni_stand_turn(&stand);
	}
}

/* Call it, killed before its n-th step; 0: not at all. Returns how many steps it had. */
static int call_killed(const char *command, int n)
{
	cni_shared->steps = 0;
	cni_shared->kill_at = n;
	(void)call(command);
	return cni_shared->steps;
}

/* What runs for it behind its answer is over after a second one, which comes later. */
static int collect_killed(int n)
{
	end_pod();
	cni_shared->steps = 0;
	cni_shared->kill_at = n;
	assert_true(call("GC"));
	assert_true(call("GC"));
	expect_nothing("GC", n, false);
	cni_shared->kill_at = 0;
	begin_pod();
	return cni_shared->steps;
}

static void add_and_check(int n)
{
	call_until_well("ADD", n);
	if (!call("CHECK"))
		fail_msg("CHECK after step %d: %s", n, stand.printed);
}

static void delete_all(int n)
{
	call_until_well("DEL", n);
	expect_nothing("DEL", n, true);
}

/* What a kubelet does then: DEL and ADD, or ADD at once; or the pod has gone. */
static int kill_add(int n)
{
	int steps = call_killed("ADD", n);

	cni_shared->kill_at = 0;
	if (n % 3 == 0)
		delete_all(n);
	if (n % 3 == 1)
		(void)collect_killed(0);
	add_and_check(n);
	delete_all(n);
	return steps;
}

static int kill_del(int n)
{
	int steps;

	call_until_well("ADD", n);
	steps = call_killed("DEL", n);
	delete_all(n);
	return steps;
}

static int kill_gc(int n)
{
	call_until_well("ADD", n);
	return collect_killed(n);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void set_up_node(void)
{
	json_t *nads = json_object(), *pod;
	struct strbuf names = {0};

	for (int i = 1; i <= RAILS; i++) {
		auto_free char *key = str_printf("lab/rail%d", i);
		json_t *config = json_fmt(
			"{\"cniVersion\": \"1.0.0\", \"name\": \"rail%d\", \"plugins\": [{\"type\":"
			" \"macvlan\", \"master\": \"rail%d\", \"ipam\": {\"type\": "
			"\"spiderpool\"}}, {\"type\": \"coordinator\"}]}",
			i, i);

		shell("ip link add rail%d type veth peer name wire%d && ip link set wire%d up && "
		      "ip link set rail%d up",
		      i, i, i, i);
		json_put(nads, key,
			 json_pack("{s:{s:s, s:o, s:{}}, s:{s:o}}", "metadata", "namespace", "lab",
				   "name", json_fmt("rail%d", i), "annotations", "spec", "config",
				   config));
		strbuf_addf(&names, "%srail%d", i > 1 ? "," : "", i);
	}
	pod = json_pack("{s:{s:s, s:s, s:s, s:{s:s}}, s:{s:[{s:s}]}}", "metadata", "name", "a",
			"namespace", "lab", "uid", "u1", "annotations",
			"k8s.v1.cni.cncf.io/networks", strbuf_str(&names), "spec", "containers",
			"name", "c");
	networks = json_pack("{s:o, s:o, s:[]}", "pod", pod, "nads", nads, "devices");
	strbuf_done(&names);
	pool = json_object();
}

static int set_up(void **state)
{
	static bool is_there;

	if (!is_there)
		set_up_node();
	is_there = true;
	cni_stand_open(&stand, true);
	cni_stand_kill_server(&stand);
	/* Of a machine that has other things to do. */
	stand.add_ms = ADD_MS;
	cni_stand_start_server(&stand, true);
	stand.answer = be_agent;
	stand.netns = POD;
	stand.ifname = "eth0";
	/* Folders of runtime and agent for plugins: there are none of others. */
	shell("mkdir -p %s/bin %s%s", stand.folder, stand.folder, stand.folder);
	begin_pod();
	/* The bridge stays. */
	add_and_check(0);
	call_until_well("DEL", 0);
	before = seen(true);
	return 0;
}

static int tear_down(void **state)
{
	cni_shared->kill_at = 0;
	end_pod();
	cni_stand_close(&stand);
	free(before);
	before = NULL;
	return 0;
}

static uint64_t next_random(void)
{
	/* Marsaglia's xorshift. */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int number_of(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static void nothing_leaks(const char *command, int (*kill_at)(int n))
{
	int steps = kill_at(0), kills = number_of("KILLS", KILLS);
	auto_strbuf struct strbuf chosen = {0};
	int64_t begun = clock_ms();

	/* Fewer than one for each plugin, and what counts steps is broken. */
	assert_true(steps > RAILS);
	if (kills == 0 || kills > steps)
		kills = steps;
	for (int i = 0; i < kills; i++) {
		int first = steps * i / kills, next = steps * (i + 1) / kills;
		int n = first + 1 + (int)(next_random() % (uint64_t)(next - first));

		strbuf_addf(&chosen, " %d", n);
		(void)kill_at(n);
	}
	print_message("%s of %d steps, killed at%s; %lld ms\n", command, steps, strbuf_str(&chosen),
		      (long long)(clock_ms() - begun));
}

static void nothing_leaks_when_add_is_killed(void **state)
{
	nothing_leaks("ADD", kill_add);
}

static void nothing_leaks_when_del_is_killed(void **state)
{
	nothing_leaks("DEL", kill_del);
}

static void nothing_leaks_when_gc_is_killed(void **state)
{
	nothing_leaks("GC", kill_gc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_leaks_when_add_is_killed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_leaks_when_del_is_killed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_leaks_when_gc_is_killed, set_up, tear_down),
	};
	int failed;

	json_init();
	(void)log_configure("error", NULL);
	random_bytes(&seed, sizeof(seed));
	if (getenv("SEED"))
		seed = strtoull(getenv("SEED"), NULL, 10);
	seed = seed ? seed : 1;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(networks);
	json_decref(pool);
	return failed;
}

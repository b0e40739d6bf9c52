// SPDX-License-Identifier: Apache-2.0
/*
 * A worker on a simulated host: requests and replies, steps on a host whose n-th access fails or is
 * swallowed, and the state file.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/mem.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/host/connections.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/netlink/message.h"
#include "nodeagent/process/client.h"
#include "nodeagent/process/protocol.h"
#include "nodeagent/worker/addresses.h"
#include "nodeagent/worker/answer.h"
#include "nodeagent/worker/state.h"
#include "nodeagent/worker/worker.h"

#define PF     TREE_MLX
#define VF     "0000:3c:00.0"
#define PF_IS  "\"pf\": \"" PF "\""
#define VF_IS  "\"vf\": \"" VF "\""
#define DEV_IS "\"device\": \""

/*
 * Doors in front of the tree's: one access fails, or is swallowed: the kernel says yes and does
 * nothing.
 */
struct gate {
	struct host_tree *tree;
	int calls, fail_at, changes, swallow_at;
};

static int set_up(void **state)
{
	struct gate *gate = mem_new(struct gate);

	gate->tree = host_tree_new();
	host_tree_add_pf(gate->tree, &tree_mlx);
	*state = gate;
	return 0;
}

static int tear_down(void **state)
{
	struct gate *gate = *state;

	host_tree_free(gate->tree);
	mem_free(gate);
	return 0;
}

static bool is_change(int protocol, const struct nlmsghdr *request)
{
	if (protocol == NETLINK_ROUTE)
		return request->nlmsg_type == RTM_SETLINK;
	return protocol == NETLINK_RDMA &&
	       request->nlmsg_type == (RDMA_NL_NLDEV << 10 | RDMA_NLDEV_CMD_SYS_SET);
}

static bool fails(struct gate *gate, struct err *err)
{
	if (++gate->calls != gate->fail_at)
		return false;
	errno = EIO;
	(void)err_sys(err, "WriteRefused", "made to fail");
	return true;
}

static int gate_write(void *ctx, int root, const char *path, const char *data, size_t len,
		      struct err *err)
{
	struct gate *gate = ctx;

	if (fails(gate, err))
		return -1;
	if (++gate->changes == gate->swallow_at)
		return 0;
	return host_tree_doors()->write(gate->tree, root, path, data, len, err);
}

static int gate_exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
			 struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	struct gate *gate = ctx;

	if (fails(gate, err))
		return -1;
	if (is_change(protocol, nlmsg_hdr(messages[0])) && ++gate->changes == gate->swallow_at)
		return 0;
	return host_tree_doors()->exchange(gate->tree, protocol, messages, n, answers, data, err);
}

/* Waiting in vain for something is not waited for here. */
static void gate_sleep(void *ctx, int ms)
{
	struct gate *gate = ctx;

	host_tree_doors()->sleep_ms(gate->tree, ms);
}

static int gate_ethtool(void *ctx, const char *interface, void *command, struct err *err)
{
	struct gate *gate = ctx;

	if (fails(gate, err))
		return -1;
	return host_tree_doors()->ethtool(gate->tree, interface, command, err);
}

static int gate_enter(void *ctx, int fd, struct err *err)
{
	struct gate *gate = ctx;

	return host_tree_doors()->enter(gate->tree, fd, err);
}

static const struct host_doors gate_doors = {
	.write = gate_write,
	.exchange = gate_exchange,
	.sleep_ms = gate_sleep,
	.ethtool = gate_ethtool,
	.enter = gate_enter,
};

/* ---- a plan, and what has to be so after each of its steps ----------------------------------- */

static const json_t *pf_of(const json_t *observed)
{
	return json_array_get(json_at(observed, "interfaces"), 0);
}

static const json_t *vf_of(const json_t *observed)
{
	return json_array_get(json_at(pf_of(observed), "Vfs"), 0);
}

static bool has_no_autoprobe(const json_t *observed)
{
	return json_is_false(json_at(pf_of(observed), "host", "driversAutoprobe"));
}

static bool has_autoprobe(const json_t *observed)
{
	return json_is_true(json_at(pf_of(observed), "host", "driversAutoprobe"));
}

static bool has_two_vfs(const json_t *observed)
{
	return json_integer_value(json_at(pf_of(observed), "numVfs")) == 2;
}

static bool has_mtu(const json_t *observed)
{
	return json_integer_value(json_at(pf_of(observed), "mtu")) == 4000;
}

static bool is_up(const json_t *observed)
{
	return str_eq(json_str_at(pf_of(observed), "linkAdminState"), "up");
}

static bool has_mac(const json_t *observed)
{
	return str_eq(json_str_at(vf_of(observed), "host", "adminMac"), "02:00:00:00:00:09");
}

static bool has_override(const json_t *observed)
{
	return str_eq(json_str_at(vf_of(observed), "host", "driverOverride"), "vfio-pci");
}

static bool has_vfio(const json_t *observed)
{
	return str_eq(json_str_at(vf_of(observed), "driver"), "vfio-pci");
}

static bool is_exclusive(const json_t *observed)
{
	return str_eq(json_str_at(observed, "rdma", "netnsMode"), "exclusive");
}

static bool has_rule(const json_t *observed)
{
	return json_array_size(json_at(pf_of(observed), "host", "udevRules")) == 1;
}

static const struct {
	const char *step;
	bool (*is_so)(const json_t *observed);
} plan[] = {
	{"{\"step\": \"write-udev-rule\", " PF_IS ", \"rule\": \"nm-unmanaged\"}", has_rule},
	{"{\"step\": \"set-autoprobe\", " PF_IS ", \"on\": false}", has_no_autoprobe},
	{"{\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 2}", has_two_vfs},
	{"{\"step\": \"wait-vfs\", " PF_IS ", \"count\": 2}", has_two_vfs},
	{"{\"step\": \"set-mtu\", " DEV_IS PF "\", \"mtu\": 4000}", has_mtu},
	{"{\"step\": \"link-up\", " DEV_IS PF "\"}", is_up},
	{"{\"step\": \"set-vf-mac\", " PF_IS ", \"vfs\": {\"0\": \"02:00:00:00:00:09\"}}", has_mac},
	{"{\"step\": \"set-autoprobe\", " PF_IS ", \"on\": true}", has_autoprobe},
	{"{\"step\": \"set-driver-override\", " VF_IS ", \"driver\": \"vfio-pci\"}", has_override},
	{"{\"step\": \"probe-driver\", " VF_IS ", \"driver\": \"vfio-pci\"}", has_vfio},
	{"{\"step\": \"set-rdma-netns-mode\", \"mode\": \"exclusive\"}", is_exclusive},
};

/* Ask as the agent does. 0: the reply says that it is done. */
static int ask(struct gate *gate, const char *step, struct err *ret_error)
{
	json_auto_t *body = json_parse(step, strlen(step), NULL), *message = NULL, *reply = NULL;
	json_auto_t *nobody = json_object();
	const struct protocol_request request = {
		.id = 1, .kind = PROTOCOL_STEP, .held = nobody, .body = body};
	const json_t *result = NULL;
	struct err err = {0};

	message = protocol_request_new(&request);
	reply = answer_request(host_tree_host(gate->tree), message);
	if (protocol_reply_read(reply, 1, &result, ret_error, &err) < 0)
		fail_msg("%s: %s", step, err.text);
	return result ? 0 : -1;
}

static json_t *look(struct gate *gate)
{
	struct err err = {0};
	json_t *observed;

	host_set_doors(host_tree_host(gate->tree), host_tree_doors(), gate->tree);
	observed = host_observe(host_tree_host(gate->tree), 0, &err);
	assert_non_null(observed);
	return observed;
}

/* All steps up to the first that fails; what was said to be done is done. Returns how many were. */
static size_t run_plan(struct gate *gate, struct err *error)
{
	for (size_t i = 0; i < ARRAY_LEN(plan); i++) {
		json_auto_t *observed = NULL;
		int done;

		host_set_doors(host_tree_host(gate->tree), &gate_doors, gate);
		done = ask(gate, plan[i].step, error);
		observed = look(gate);
		if (done < 0)
			return i;
		if (!plan[i].is_so(observed))
			fail_msg("call %d, change %d: a lie: %s", gate->fail_at, gate->swallow_at,
				 plan[i].step);
	}
	return ARRAY_LEN(plan);
}

/* The same plan once more, and nothing in the way. Which count of VFs is there may be any. */
static void mends(struct gate *gate)
{
	struct err error = {0};

	gate->fail_at = gate->swallow_at = 0;
	if (run_plan(gate, &error) != ARRAY_LEN(plan))
		fail_msg("after a failure: %s: %s", error.reason, error.text);
}

TEST_WITH(never_says_done_when_an_access_failed, set_up, tear_down)
{
	int calls = 0, failed = 0;
	struct gate *gate = *state;
	struct err error = {0};

	assert_int_equal(run_plan(gate, &error), ARRAY_LEN(plan));
	calls = gate->calls;
	assert_true(calls > 20);
	for (int n = 1; n <= calls; n++) {
		error = (struct err){0};
		(void)tear_down(state);
		(void)set_up(state);
		gate = *state;
		gate->fail_at = n;
		if (run_plan(gate, &error) < ARRAY_LEN(plan)) {
			assert_int_not_equal(error.class, ERR_NONE);
			failed++;
		}
		mends(gate);
	}
	/* Some accesses are not needed for the result, most are. */
	assert_true(failed > calls / 2);
}

TEST_WITH(never_says_done_when_the_kernel_only_pretends, set_up, tear_down)
{
	struct gate *gate = *state;
	struct err error = {0};
	int changes;

	assert_int_equal(run_plan(gate, &error), ARRAY_LEN(plan));
	changes = gate->changes;
	assert_true(changes >= 9);
	for (int n = 1; n <= changes; n++) {
		error = (struct err){0};
		(void)tear_down(state);
		(void)set_up(state);
		gate = *state;
		gate->swallow_at = n;
		assert_true(run_plan(gate, &error) < ARRAY_LEN(plan));
		assert_int_not_equal(error.class, ERR_NONE);
		mends(gate);
	}
}

/* ---- talking --------------------------------------------------------------------------------- */

/* What a worker says to these bytes, all replies. */
static char *say(struct gate *gate, const char *bytes, size_t len)
{
	struct strbuf replies = {0};
	char chunk[4096];
	int pair[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(write(pair[0], bytes, len), len);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	worker_serve(pair[1], host_tree_host(gate->tree));
	(void)close(pair[1]);
	while ((n = read(pair[0], chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++)
			strbuf_addc(&replies, chunk[i] ? chunk[i] : '.');
	(void)close(pair[0]);
	return strbuf_take(&replies);
}

static void add_frame(struct strbuf *out, const char *text)
{
	json_auto_t *message = json_parse(text, strlen(text), NULL);

	assert_int_equal(json_frame_write(message, out, NULL), 0);
}

TEST_WITH(answers_each_request_in_turn_and_ends_with_the_socket, set_up, tear_down)
{
	auto_strbuf struct strbuf bytes = {0};
	auto_free char *replies = NULL;

	add_frame(&bytes, "{\"id\": 1, \"kind\": \"load\"}");
	add_frame(&bytes, "{\"id\": 2, \"kind\": \"nope\"}");
	replies = say(*state, bytes.data, bytes.len);
	assert_non_null(strstr(replies, "{\"id\":1,\"result\":{}}"));
	assert_non_null(strstr(replies, "\"reason\":\"BadRequest\""));
	assert_true(strstr(replies, "\"id\":1") < strstr(replies, "BadRequest"));
}

static json_t *tell_meter(struct gate *gate, const char *text)
{
	json_auto_t *message = json_parse(text, strlen(text), NULL);

	return answer_meter(host_tree_host(gate->tree), message);
}

TEST_WITH(a_meter_reads_counters_and_nothing_else, set_up, tear_down)
{
	static const char *const others[] = {
		"{\"id\": 1, \"kind\": \"observe\"}",
		"{\"id\": 1, \"kind\": \"load\"}",
		"{\"id\": 1, \"kind\": \"gids\", \"of\": {}}",
		"{\"id\": 1, \"kind\": \"save\", \"state\": {}}",
		"{\"id\": 1, \"kind\": \"step\", \"step\": {\"step\": \"load-module\", "
		"\"module\": \"ib_core\"}}",
		"{\"id\": 1, \"kind\": \"devices\", \"of\": {\"vfs\": [1]}}",
	};
	json_auto_t *listed = tell_meter(*state, "{\"id\": 1, \"kind\": \"devices\", \"of\": {}}");
	json_auto_t *counted = tell_meter(*state, "{\"id\": 1, \"kind\": \"counters\", \"device\": "
						  "{\"rdmaIndex\": 1, \"ports\": [1]}}");
	const json_t *first = json_array_get(json_at(listed, "result", "devices"), 0);

	assert_string_equal(json_str_at(first, "rdma"), "mlx5_0");
	assert_int_equal(json_integer_value(json_at(counted, "result", "rdma", "out_of_sequence")),
			 1005);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		json_auto_t *reply = tell_meter(*state, others[i]);

		assert_non_null(json_str_at(reply, "error", "reason"));
	}
	assert_int_equal(host_tree_changes(((struct gate *)*state)->tree), 0);
}

TEST_WITH(ends_without_a_word_when_it_is_told_nonsense, set_up, tear_down)
{
	auto_free char *replies = say(*state, "GET / HTTP/1.1\r\n\r\n", 18);

	assert_string_equal(replies, "");
}

TEST_WITH(tells_when_there_is_no_such_host, set_up, tear_down)
{
	auto_strbuf struct strbuf bytes = {0};
	char reply[1024];
	int pair[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	add_frame(&bytes, "{\"id\": 1, \"kind\": \"load\"}");
	assert_int_equal(write(pair[0], bytes.data, bytes.len), bytes.len);
	worker_run(pair[1], &(struct worker_config){.root = "/nonexistent"});
	n = read(pair[0], reply, sizeof(reply) - 1);
	assert_true(n > 4);
	reply[n] = '\0';
	assert_non_null(strstr(reply + 4, "\"reason\":\"HostUnreadable\""));
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* ---- somebody who has taken over the agent --------------------------------------------------- */

#define UPLINK_STEP(text) "{\"id\": 1, \"kind\": \"step\", \"step\": {" text "}}"

/*
 * Each is one frame, as the agent would send it. What comes back is an error, and nothing has been
 * written, neither through sysfs nor by netlink.
 */
static void try_all(struct gate *gate)
{
	static const struct {
		const char *what, *frame, *reason;
	} attempts[] = {
		{"make VFs on the uplink",
		 UPLINK_STEP("\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 4"), "ProtectedPf"},
		{"the same with force",
		 UPLINK_STEP("\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 4, \"force\": true"),
		 "ProtectedPf"},
		{"the same with force beside the step",
		 "{\"id\": 1, \"kind\": \"step\", \"force\": true, \"step\": {\"step\": "
		 "\"set-num-vfs\", " PF_IS ", \"count\": 4}}",
		 "BadRequest"},
		{"the same, and the node has no address",
		 "{\"id\": 1, \"kind\": \"step\", \"addresses\": [], \"step\": {\"step\": "
		 "\"set-num-vfs\", " PF_IS ", \"count\": 4}}",
		 "ProtectedPf"},
		{"the same, and the node has another address",
		 "{\"id\": 1, \"kind\": \"step\", \"addresses\": [\"198.51.100.9\"], \"step\": "
		 "{\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 4}}",
		 "ProtectedPf"},
		{"change the uplink's MTU",
		 UPLINK_STEP("\"step\": \"set-mtu\", " DEV_IS PF "\", \"mtu\": 1300"),
		 "ProtectedPf"},
		{"change the uplink's eSwitch",
		 UPLINK_STEP("\"step\": \"set-eswitch\", " PF_IS ", \"mode\": \"switchdev\""),
		 "ProtectedPf"},
		{"take the uplink's driver",
		 UPLINK_STEP("\"step\": \"unbind-driver\", \"vf\": \"" PF "\""), "NotAVf"},
		{"give a VF any driver there is",
		 UPLINK_STEP("\"step\": \"set-driver-override\", " VF_IS
			     ", \"driver\": \"pcieport\""),
		 "BadStep"},
		{"load any module", UPLINK_STEP("\"step\": \"load-module\", \"module\": \"kvm\""),
		 "BadStep"},
		{"name a path for a device",
		 UPLINK_STEP("\"step\": \"unbind-driver\", \"vf\": \"../../../../etc/passwd\""),
		 "BadStep"},
		{"write another rule of udev",
		 UPLINK_STEP("\"step\": \"write-udev-rule\", " PF_IS ", \"rule\": \"run-program\""),
		 "BadStep"},
		{"put a line into a rule of udev",
		 UPLINK_STEP("\"step\": \"write-udev-rule\", " PF_IS
			     ", \"rule\": \"pf-name\", \"name\": \"x\\\", RUN+=\\\"/bin/sh\""),
		 "BadStep"},
		{"reboot without a record",
		 UPLINK_STEP("\"step\": \"reboot\", \"cause\": \"rdma-mode-exclusive\", \"boot\": "
			     "\"boot-one\""),
		 "RebootNotRecorded"},
		{"reboot for a cause of its own",
		 UPLINK_STEP("\"step\": \"record-reboot\", \"cause\": \"why-not\", \"boot\": "
			     "\"boot-one\""),
		 "BadStep"},
		{"run a program", "{\"id\": 1, \"kind\": \"exec\", \"path\": \"/bin/sh\"}",
		 "BadRequest"},
		{"write another file",
		 "{\"id\": 1, \"kind\": \"save\", \"state\": {}, \"path\": \"/etc/passwd\"}",
		 "BadRequest"},
		{"enter what is no namespace",
		 "{\"id\": 1, \"kind\": \"counters\", \"device\": {\"namespace\": {\"path\": "
		 "\"etc/shadow\", \"inode\": 1}}}",
		 "BadRequest"},
		{"read another file", "{\"id\": 1, \"kind\": \"load\", \"path\": \"/etc/shadow\"}",
		 "BadRequest"},
	};

	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		auto_strbuf struct strbuf bytes = {0};
		auto_free char *reply = NULL, *want = NULL;

		add_frame(&bytes, attempts[i].frame);
		reply = say(gate, bytes.data, bytes.len);
		want = str_printf("\"reason\":\"%s\"", attempts[i].reason);
		print_message("%-45s %s\n", attempts[i].what, attempts[i].reason);
		if (!strstr(reply, want))
			fail_msg("%s: %s", attempts[i].what, reply);
		assert_int_equal(host_tree_changes(gate->tree), 0);
	}
}

/* The NIC has the node's address, not the default route; the agent said so once. */
TEST_WITH(an_agent_that_was_taken_over_gets_nowhere, set_up, tear_down)
{
	struct gate *gate = *state;
	auto_strbuf struct strbuf honest = {0};
	auto_free char *welcome = NULL;

	host_tree_add_address(gate->tree, "ens1f0np0", "192.0.2.7");
	add_frame(&honest, "{\"id\": 1, \"kind\": \"observe\", \"addresses\": [\"192.0.2.7\"]}");
	welcome = say(gate, honest.data, honest.len);
	assert_non_null(strstr(welcome, "\"result\":"));
	try_all(gate);
}

#define HELD_STEP(held, text) "{\"id\": 1, \"kind\": \"step\", " held "\"step\": {" text "}}"
#define UNBIND                "\"step\": \"unbind-driver\", " VF_IS

/* The kubelet has given the VF away, or does not say; the host shows nothing of it yet. */
struct kubelets_word {
	const char *pod;
	bool is_silent;
};

static int give_word(void *arg, const char *vf, const char **ret_pod, struct err *err)
{
	const struct kubelets_word *word = arg;

	if (word->is_silent)
		return err_set(err, ERR_TRANSIENT, "PodResourcesUnavailable", "no answer");
	*ret_pod = str_eq(vf, VF) ? word->pod : NULL;
	return 0;
}

static void try_to_take(struct gate *gate, const char *frame)
{
	size_t changes = host_tree_changes(gate->tree);
	auto_strbuf struct strbuf bytes = {0};
	auto_free char *reply = NULL;

	add_frame(&bytes, frame);
	reply = say(gate, bytes.data, bytes.len);
	if (!strstr(reply, "\"reason\":\"VfInUse\""))
		fail_msg("%s: %s", frame, reply);
	assert_int_equal(host_tree_changes(gate->tree), changes);
}

TEST_WITH(an_agent_that_was_taken_over_takes_no_vf_that_was_given_away, set_up, tear_down)
{
	static const char *const attempts[] = {
		HELD_STEP("\"held\": {}, ", UNBIND),
		HELD_STEP("", UNBIND),
		HELD_STEP("\"held\": {\"" VF "\": \"ns/another\"}, ", UNBIND),
		HELD_STEP("\"held\": {\"0000:3c:00.1\": \"ns/trainer-0\"}, ", UNBIND),
		HELD_STEP("\"held\": {}, ", "\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 0"),
		HELD_STEP("\"held\": {}, ",
			  "\"step\": \"set-eswitch\", " PF_IS ", \"mode\": \"switchdev\""),
		HELD_STEP("\"held\": {}, ",
			  "\"step\": \"set-mtu\", " DEV_IS VF "\", \"mtu\": 1300"),
	};
	struct kubelets_word word = {.pod = "ns/trainer-0"};
	struct gate *gate = *state;
	struct err error = {0};

	assert_int_equal(ask(gate, "{\"step\": \"set-num-vfs\", " PF_IS ", \"count\": 2}", &error),
			 0);
	assert_int_equal(ask(gate, "{\"step\": \"link-up\", " DEV_IS VF "\"}", &error), 0);
	host_set_given(host_tree_host(gate->tree), give_word, &word);
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		try_to_take(gate, attempts[i]);
	word.is_silent = true;
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		try_to_take(gate, attempts[i]);
	/* And an honest one may, when the pod is gone. */
	word = (struct kubelets_word){0};
	assert_int_equal(ask(gate, "{" UNBIND "}", &error), 0);
}

/* A kubelet that is this process; what it has open is what the tree says. */
struct kubelet {
	int fd;
	char socket[64];
};

static void start_kubelet(struct kubelet *kubelet)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	(void)snprintf(kubelet->socket, sizeof(kubelet->socket), "/tmp/worker-test-%d.sock",
		       (int)getpid());
	memcpy(name.sun_path, kubelet->socket, strlen(kubelet->socket));
	kubelet->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(kubelet->fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(kubelet->fd, 1), 0);
}

static void stop_kubelet(struct kubelet *kubelet)
{
	(void)close(kubelet->fd);
	(void)unlink(kubelet->socket);
}

static void has_file(struct gate *gate, const char *name, const char *text)
{
	auto_free char *path = str_printf("proc/%d/%s", (int)getpid(), name);

	host_tree_file(gate->tree, path, text);
}

static void has_open(struct gate *gate, int fd, const char *target)
{
	auto_free char *path = str_printf("proc/%d/fd/%d", (int)getpid(), fd);

	host_tree_link(gate->tree, path, target);
}

#define TCP_HEADER                                                                                 \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode\n"
#define TCP_LINE(local, remote, state, inode)                                                      \
	"   0: " local " " remote " " state                                                        \
	" 00000000:00000000 02:000004E2 00000000     0        0 " inode                            \
	" 2 0000000000000000 20 4 30 10 -1\n"

/* As on a machine of little-endian words; 01 is established, 0A listens, 06 has ended. */
static void talk(struct gate *gate)
{
	has_file(gate, "net/tcp",
		 TCP_HEADER TCP_LINE("070200C0:9C40", "010200C0:192B", "01", "11")
			 TCP_LINE("0100007F:9C41", "0100007F:192B", "01", "12")
				 TCP_LINE("080200C0:9C42", "010200C0:192B", "01", "99")
					 TCP_LINE("090200C0:9C42", "010200C0:192B", "06", "13"));
	has_file(gate, "net/tcp6",
		 TCP_HEADER TCP_LINE("0000000000000000FFFF00000A0200C0:280A",
				     "0000000000000000FFFF0000010200C0:C350", "01", "14")
			 TCP_LINE("B80D0120000000000000000007000000:9C43",
				  "B80D0120000000000000000001000000:192B", "01", "15")
				 TCP_LINE("00000000000000000000000001000000:9C44",
					  "00000000000000000000000001000000:192B", "01",
					  "15") "   1: nonsense\n");
	has_open(gate, 0, "/dev/null");
	for (int inode = 11; inode <= 15; inode++) {
		auto_free char *target = str_printf("socket:[%d]", inode);

		has_open(gate, inode, target);
	}
}

/* It never said where the node has its address. */
TEST_WITH(an_agent_that_was_hostile_from_the_start_gets_nowhere, set_up, tear_down)
{
	struct gate *gate = *state;
	struct kubelet kubelet;

	host_tree_add_address(gate->tree, "ens1f0np0", "192.0.2.7");
	talk(gate);
	start_kubelet(&kubelet);
	worker_ask_kubelet(host_tree_host(gate->tree), kubelet.socket);
	stop_kubelet(&kubelet);
	try_all(gate);
}

TEST_WITH(the_kubelet_talks_from_addresses_of_the_node, set_up, tear_down)
{
	struct gate *gate = *state;
	struct host *host = host_tree_host(gate->tree);
	json_auto_t *addresses = NULL, *nobodys = NULL, *left = NULL;
	auto_free char *text = NULL;
	struct kubelet kubelet;

	talk(gate);
	start_kubelet(&kubelet);
	assert_int_equal(connections_listener(kubelet.socket), getpid());
	stop_kubelet(&kubelet);
	assert_int_equal(connections_listener(kubelet.socket), 0);
	addresses = connections_addresses(host, getpid());
	text = json_text(addresses);
	assert_string_equal(text, "[\"192.0.2.7\",\"192.0.2.10\",\"2001:db8::7\"]");
	nobodys = connections_addresses(host, getpid() + 1);
	assert_int_equal(json_array_size(nobodys), 0);
	/* A kubelet that does not run takes nothing away. */
	worker_ask_kubelet(host, kubelet.socket);
	worker_ask_kubelet(host, NULL);
	left = addresses_remember(host, NULL, NULL);
	assert_int_equal(json_array_size(left), 0);
}

TEST_WITH(addresses_of_the_node_are_remembered_and_are_none_twice, set_up, tear_down)
{
	struct gate *gate = *state;
	struct host *host = host_tree_host(gate->tree);
	json_auto_t *given = json_pack("[sss]", "192.0.2.7", "a name", "2001:db8::7");
	json_auto_t *other = json_pack("[ss]", "192.0.2.7", "192.0.2.8"), *many = json_array();
	json_auto_t *first = addresses_remember(host, given, NULL), *second = NULL, *third = NULL;
	auto_free char *text = NULL;
	struct err err = {0};

	second = addresses_remember(host, other, NULL);
	third = addresses_remember(host, NULL, NULL);
	text = json_text(third);
	assert_string_equal(text, "[\"192.0.2.7\",\"2001:db8::7\",\"192.0.2.8\"]");
	assert_true(json_same(second, third));
	for (int i = 0; i <= ADDRESSES_MAX; i++)
		json_array_append_new(many, json_fmt("10.0.%d.%d", i / 256, i % 256));
	assert_null(addresses_remember(host, many, &err));
	assert_string_equal(err.reason, "BadRequest");
}

/* ---- the state file -------------------------------------------------------------------------- */

#define FILE_PATH STATE_FOLDER "/" STATE_FILE

TEST_WITH(remembers_a_state, set_up, tear_down)
{
	struct gate *gate = *state;
	struct host *host = host_tree_host(gate->tree);
	json_auto_t *first = NULL, *second = NULL, *saved = json_pack("{s:{}}", "pfs");
	struct err err = {0};

	assert_int_equal(state_load(host, &first, &err), 0);
	assert_int_equal(json_object_size(first), 0);
	assert_int_equal(state_save(host, saved, &err), 0);
	assert_int_equal(state_load(host, &second, &err), 0);
	assert_true(json_same(second, saved));
}

TEST_WITH(remembers_a_state_where_links_of_the_host_lead, set_up, tear_down)
{
	struct gate *gate = *state;
	struct host *host = host_tree_host(gate->tree);
	json_auto_t *got = NULL, *saved = json_pack("{s:{}}", "pfs");
	auto_free char *text = NULL;
	struct err err = {0};

	host_tree_remove(gate->tree, "var");
	host_tree_file(gate->tree, "data/lib/x", "x");
	host_tree_link(gate->tree, "var/lib", "/data/lib");
	assert_int_equal(state_save(host, saved, &err), 0);
	assert_int_equal(state_load(host, &got, &err), 0);
	assert_true(json_same(got, saved));
	text = host_tree_read(gate->tree, "data/lib/orbweaver/state.json");
	assert_string_not_equal(text, "");
}

TEST_WITH(puts_a_damaged_state_aside_and_says_so_once, set_up, tear_down)
{
	static const char *const damaged[] = {"{\"pfs\": {", "", "[]", "{} {}"};
	struct gate *gate = *state;
	struct host *host = host_tree_host(gate->tree);

	for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
		auto_free char *kept = NULL;
		json_auto_t *after = NULL;
		json_t *got = NULL;
		struct err err = {0};

		host_tree_file(gate->tree, FILE_PATH, damaged[i]);
		assert_int_equal(state_load(host, &got, &err), -1);
		assert_null(got);
		assert_int_equal(err.class, ERR_HOST);
		assert_string_equal(err.reason, "StateDamaged");
		kept = host_tree_read(gate->tree, STATE_FOLDER "/" STATE_DAMAGED);
		assert_string_equal(kept, damaged[i]);
		assert_int_equal(state_load(host, &after, &err), 0);
		assert_int_equal(json_object_size(after), 0);
	}
}

TEST_WITH(puts_a_state_aside_that_is_too_large, set_up, tear_down)
{
	struct gate *gate = *state;
	auto_free char *text = mem_zalloc(STATE_MAX + 2);
	json_t *got = NULL;
	struct err err = {0};

	memset(text, ' ', STATE_MAX + 1);
	host_tree_file(gate->tree, FILE_PATH, text);
	assert_int_equal(state_load(host_tree_host(gate->tree), &got, &err), -1);
	assert_string_equal(err.reason, "StateDamaged");
}

TEST_WITH(refuses_to_save_what_it_would_not_load, set_up, tear_down)
{
	struct gate *gate = *state;
	auto_free char *text = mem_zalloc(STATE_MAX + 1);
	json_auto_t *large = json_object();
	struct err err = {0};

	memset(text, 'x', STATE_MAX);
	json_put_str(large, "text", text);
	assert_int_equal(state_save(host_tree_host(gate->tree), large, &err), -1);
	assert_string_equal(err.reason, "StateTooLarge");
}

TEST_WITH(removes_what_a_killed_writer_left, set_up, tear_down)
{
	struct gate *gate = *state;
	auto_free char *leftover = NULL, *other = NULL;
	json_auto_t *got = NULL;

	host_tree_file(gate->tree, FILE_PATH ".0123456789abcdef.tmp", "{\"pf");
	host_tree_file(gate->tree, STATE_FOLDER "/other.tmp", "x");
	host_tree_file(gate->tree, FILE_PATH, "{\"a\": 1}");
	assert_int_equal(state_load(host_tree_host(gate->tree), &got, NULL), 0);
	leftover = host_tree_read(gate->tree, FILE_PATH ".0123456789abcdef.tmp");
	other = host_tree_read(gate->tree, STATE_FOLDER "/other.tmp");
	assert_string_equal(leftover, "");
	assert_string_equal(other, "x");
	assert_int_equal(json_integer_value(json_at(got, "a")), 1);
}

TEST_WITH(keeps_the_old_state_when_the_new_one_cannot_be_written, set_up, tear_down)
{
	struct gate *gate = *state;
	json_auto_t *fresh = json_pack("{s:i}", "new", 1), *got = NULL;
	struct err err = {0};

	/* A folder in its place cannot be replaced by a file. */
	host_tree_file(gate->tree, FILE_PATH "/in-the-way", "x");
	assert_int_equal(state_save(host_tree_host(gate->tree), fresh, &err), -1);
	assert_string_equal(err.reason, "StateNotWritten");
	assert_int_equal(err.class, ERR_HOST);
	assert_int_equal(state_load(host_tree_host(gate->tree), &got, &err), -1);
	assert_string_equal(err.reason, "StateUnreadable");
	assert_int_equal(err.sys, EISDIR);
}

/* ---- without a worker ------------------------------------------------------------------------ */

static json_t *answer_here(void *arg, const json_t *message)
{
	return answer_request(host_tree_host(((struct gate *)arg)->tree), message);
}

struct heard {
	struct loop *loop;
	json_t *result;
	struct err err;
};

static void on_heard(void *arg, const json_t *result, const struct err *err)
{
	struct heard *heard = arg;

	heard->result = json_incref((json_t *)result);
	if (err)
		heard->err = *err;
	loop_stop(heard->loop);
}

TEST_WITH(a_client_can_be_answered_in_its_own_process, set_up, tear_down)
{
	struct gate *gate = *state;
	struct heard looked = {.loop = loop_new()}, stepped = {.loop = looked.loop};
	struct hostd *hostd =
		hostd_new(looked.loop, &(struct hostd_config){.answer = answer_here, .arg = gate});
	json_auto_t *step = json_pack("{s:s, s:s, s:i}", "step", "set-num-vfs", "pf",
				      "0000:ff:00.0", "count", 2);

	hostd_observe(hostd, 0, on_heard, &looked);
	assert_null(looked.result);
	loop_run(looked.loop);
	assert_true(json_array_size(json_at(looked.result, "interfaces")) > 0);
	hostd_step(hostd, step, 30000, on_heard, &stepped);
	loop_run(looked.loop);
	assert_null(stepped.result);
	assert_true(stepped.err.class != ERR_NONE);
	assert_int_equal(hostd_stuck(hostd, NULL), 0);
	json_decref(looked.result);
	hostd_free(hostd);
	loop_free(looked.loop);
}

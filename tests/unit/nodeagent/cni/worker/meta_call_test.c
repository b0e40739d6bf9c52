// SPDX-License-Identifier: Apache-2.0
/*
 * The meta plugin's calls carried out by a worker: which programs run side by side, what is on the
 * disk before the first one, what is undone, what is asked of the agent. The test is the server at
 * the other end of the worker's line.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/root.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_visit.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/worker_channel.h"

/* A node: a root with its state, and what the worker's plugins were asked. */
struct node {
	char path[64];
	int root;
	struct sandboxes *state;
	pid_t worker;
	struct worker_channel line;   /* the server's end */
	json_t *pod, *nads, *devices; /* what the agent says; pod NULL: gone */
	json_t *called;               /* "ADD macvlan net1", … */
	json_t *refused;              /* calls that fail */
	json_t *missing;              /* plugins that are not installed */
	const char *writes;           /* ADD of another than the cluster's writes it there … */
	const char *written;          /* … with this text */
	json_t *status;               /* question about network-status, or NULL */
	const char *disk_before;  /* must be in the sandbox's file when the first program runs */
	size_t at_once;           /* programs are held until so many run */
	size_t most;              /* ran at the same time */
	const char *plugin_types; /* of the command line */
	bool has_plugin;
	bool has_netns;    /* node and pod have namespaces of their own, see be_in_namespaces() */
	json_t *asked;     /* "addresses net1 net2", "release net1", … */
	const char *lacks; /* the interface that IP pools have nothing for; "*": no answer yet */
};

#define THEIRS        "/opt/cni/bin/macvlan"
#define THEIR_DEVICES "/opt/cni/bin/host-device"

/* containernetworking-plugins are installed. */
static void put_theirs(const struct node *node)
{
	assert_int_equal(root_make_dirs(node->root, "/opt/cni/bin", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, THEIRS, "theirs", 6, 0755, NULL), 0);
	assert_int_equal(root_write_atomic(node->root, THEIR_DEVICES, "theirs", 6, 0755, NULL), 0);
}

static int setup(void **state)
{
	static struct node node;

	node = (struct node){.path = "/tmp/meta-call-XXXXXX", .at_once = 1, .has_plugin = true};
	assert_non_null(mkdtemp(node.path));
	node.root = open(node.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(node.root, "state", 0700), 0);
	node.state = mem_new(struct sandboxes);
	node.state->dir = openat(node.root, "state", O_RDONLY | O_DIRECTORY);
	assert_int_equal(sandboxes_prepare(node.state, NULL), 0);
	put_theirs(&node);
	node.called = json_array();
	node.refused = json_array();
	node.missing = json_array();
	node.asked = json_array();
	node.nads = json_object();
	node.devices = json_array();
	*state = &node;
	return 0;
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct node *node = *state;

	json_decref(node->pod);
	json_decref(node->nads);
	json_decref(node->devices);
	json_decref(node->called);
	json_decref(node->refused);
	json_decref(node->missing);
	json_decref(node->asked);
	json_decref(node->status);
	(void)close(node->root);
	sandboxes_done(node->state);
	mem_free(node->state);
	return nftw(node->path, forget, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what there is --------------------------------------------------------------------------- */

static void add_pod(struct node *node, const char *networks)
{
	json_decref(node->pod);
	node->pod = json_pack("{s:{s:s,s:s,s:s,s:{s:s}}, s:{s:[{s:s}]}}", "metadata", "name", "p",
			      "namespace", "ml", "uid", "u1", "annotations",
			      "k8s.v1.cni.cncf.io/networks", networks, "spec", "containers", "name",
			      "c");
}

static void add_nad(struct node *node, const char *name, const char *config, const char *resource)
{
	auto_free char *key = str_printf("ml/%s", name);
	json_t *nad = json_pack("{s:{s:s,s:s,s:{}}, s:{s:s}}", "metadata", "name", name,
				"namespace", "ml", "annotations", "spec", "config", config);

	json_put_str(json_at(nad, "metadata", "annotations"), "k8s.v1.cni.cncf.io/resourceName",
		     resource);
	json_object_set_new(node->nads, key, nad);
}

/* ---- the worker ------------------------------------------------------------------------------ */

/*
 * As root. The node has a NIC "rail", the pod a link to the node. The pod's namespace; -1: there
 * can be none.
 */
static int be_in_namespaces(void)
{
	auto_free char *link = NULL;
	int node, pod;

	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	node = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	pod = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(node, CLONE_NEWNET) < 0)
		return -1;
	link = str_printf("ip link add rail type veth peer name wire && ip link set wire up && ip "
			  "link set rail up && "
			  "ip addr add 192.0.2.1/24 dev rail && ip link add cali1 type veth peer "
			  "name eth0 netns /proc/%d/fd/%d && ip link set cali1 up && "
			  "nsenter --net=/proc/%d/fd/%d sh -c 'ip link set eth0 up && "
			  "ip addr add 10.244.0.9/24 dev eth0 && "
			  "ip route add default via 10.244.0.1'",
			  (int)getpid(), pod, (int)getpid(), pod);
	return system(link) == 0 ? pod : -1;
}

static bool can_have_namespaces(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(be_in_namespaces() < 0);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* {interface: the table that its default route is in}, new. */
static json_t *tables_of(struct attach_worker *worker, int netns)
{
	json_auto_t *look = NULL;
	json_t *tables = json_object(), *route;
	size_t i;

	assert_int_equal(
		netns_visit(&worker->namespaces, netns, NETNS_LINKS | NETNS_ROUTES, &look, NULL),
		0);
	json_array_foreach (json_at(look, "routes"), i, route)
		if (str_eq(json_str_at(route, "dst"), "0.0.0.0/0"))
			json_put(tables, json_str_at(route, "dev"),
				 json_incref(json_at(route, "table")));
	return tables;
}

/* Every process that ends has had pages. */
static bool had_children(const struct rusage *before)
{
	struct rusage now;

	return getrusage(RUSAGE_CHILDREN, &now) == 0 && now.ru_minflt > before->ru_minflt;
}

static _Noreturn void be_worker(struct node *node, int fd, const char *command)
{
	struct worker_channel line = {.fd = fd};
	json_t *config = json_pack("{s:s,s:s,s:s,s:[{s:s,s:s,s:s}]}", "cniVersion", "0.4.0", "name",
				   "cluster", "type", "orbweaver", "delegates", "cniVersion",
				   "0.4.0", "name", "cluster", "type", "calico");
	json_t *env = json_pack("{s:s,s:s,s:s,s:s,s:s}", "CNI_COMMAND", command, "CNI_CONTAINERID",
				"c1", "CNI_IFNAME", "mt0", "CNI_ARGS", "K8S_POD_UID=u1", "CNI_PATH",
				"/opt/cni/bin");
	json_t *pod = json_pack("{s:s,s:s,s:s}", "namespace", "ml", "name", "p", "uid", "u1");
	struct program_limits limits = {0};
	struct attach_worker worker = {.announcements = json_array()};
	struct attachment attachment = {
		.line = &line,
		.worker = &worker,
		.limits = &limits,
		.state = node->state,
		.root = node->root,
		.container = "c1",
		.key = {"orbweaver", "cluster", "mt0"},
		.config = config,
		.env = env,
		.pod = pod,
		.netns = -1,
		.plugin_types = node->plugin_types,
		.bin_dir = "/opt/cni/bin",
		.kubelet_dir = node->path,
		.has_plugin = node->has_plugin,
		.steps = json_array(),
	};
	json_t *done = json_object(), *result = NULL;
	struct rusage before;
	struct err err = {0};
	int rc;

	if (node->has_netns)
		attachment.netns = be_in_namespaces();
	(void)getrusage(RUSAGE_CHILDREN, &before);
	if (str_eq(command, "ADD"))
		rc = attachment_add(&attachment, &result, &err);
	else if (str_eq(command, "CHECK"))
		rc = attachment_check(&attachment, &err);
	else
		rc = attachment_delete(&attachment, &err);
	assert_int_equal(sandbox_flush(node->state, "c1", NULL), 0);
	json_put(done, "result", result);
	json_put_bool(done, "hadChildren", had_children(&before));
	if (node->has_netns)
		json_put(done, "tables", tables_of(&worker, attachment.netns));
	if (rc < 0)
		json_put(done, "error", ask_error_new(&err));
	worker_channel_send(&line, "done", done);
	_exit(0);
}

/* ---- the server ------------------------------------------------------------------------------ */

/* The interfaces that a request for addresses is about: "net1 net2". New. */
static char *asking(const json_t *question)
{
	struct strbuf text = {0};
	json_t *wish;
	size_t i;

	json_array_foreach (json_at(question, "wishes"), i, wish)
		strbuf_addf(&text, "%s%s", i ? " " : "", json_str_at(wish, "nic"));
	if (!json_at(question, "wishes"))
		strbuf_adds(&text, json_str_at(question, "ifname"));
	return strbuf_take(&text);
}

/* An address with a default route; NULL: none for this interface. New. */
static json_t *address_of(const struct node *node, const char *nic)
{
	int i = nic[strlen(nic) - 1] - '0';

	if (str_eq(nic, node->lacks))
		return NULL;
	return json_pack("{s:s, s:[{s:s, s:o, s:o}], s:[{s:s, s:o}]}", "cniVersion", "0.4.0", "ips",
			 "version", "4", "address", json_fmt("10.%d.0.5/24", i), "gateway",
			 json_fmt("10.%d.0.1", i), "routes", "dst", "0.0.0.0/0", "gw",
			 json_fmt("10.%d.0.1", i));
}

/* NULL: refused. */
static json_t *addresses_of(const struct node *node, const json_t *question)
{
	json_t *answer, *wish;
	size_t i;

	if (!json_at(question, "wishes"))
		return address_of(node, json_str_at(question, "ifname"));
	answer = json_pack("{s:{}}", "results");
	json_array_foreach (json_at(question, "wishes"), i, wish)
		json_put(json_at(answer, "results"), json_str_at(wish, "nic"),
			 address_of(node, json_str_at(wish, "nic")));
	return answer;
}

static json_t *settings_new(void)
{
	return json_pack("{s:s, s:b, s:[], s:[]}", "mode", "auto", "tunePodRoutes", 1,
			 "overlayPodCIDR", "serviceCIDR");
}

/* What addresses, settings and releases are answered; NULL with err: refused. New. */
static json_t *answer_plugin(struct node *node, const json_t *question, struct err *err)
{
	const char *kind = json_str_at(question, "kind");
	auto_free char *nics = asking(question);
	json_t *answer = NULL;

	json_array_append_new(node->asked, json_fmt("%s %s", kind, nics));
	if (str_eq(kind, "release"))
		return json_object();
	if (str_eq(kind, "coordinator"))
		return settings_new();
	assert_string_equal(kind, "addresses");
	if (str_eq(node->lacks, "*"))
		(void)err_set(err, ERR_TRANSIENT, "AddressesPending", "no address yet");
	else if (!(answer = addresses_of(node, question)))
		(void)err_set(err, ERR_INVALID, "NoAddressForNic", "nothing for %s", nics);
	return answer;
}

static void answer_question(struct node *node, const json_t *question)
{
	const char *kind = json_str_at(question, "kind");
	json_t *answer = json_object(), *reply;
	struct err err = {0};

	if (str_eq(kind, "networks")) {
		json_put(answer, "pod", json_incref(node->pod));
		json_put(answer, "nads", json_incref(node->nads));
		json_put(answer, "devices", json_incref(node->devices));
	} else if (str_eq(kind, "status")) {
		json_decref(node->status);
		node->status = json_deep_copy(question);
	} else {
		json_decref(answer);
		answer = answer_plugin(node, question, &err);
	}
	reply = ask_reply_new(question, answer, &err);
	worker_channel_pass(&node->line, reply);
	json_decref(reply);
}

static char *env_of(const json_t *exec, const char *name)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(exec, "env"), i, entry) {
		const char *text = json_string_value(entry);

		if (str_starts(text, name) && text[strlen(name)] == '=')
			return str_dup(text + strlen(name) + 1);
	}
	return str_dup("");
}

/* The program ends: as a plugin that makes the interface, or refuses. */
static void end_program(struct node *node, const json_t *exec)
{
	auto_free char *command = env_of(exec, "CNI_COMMAND"), *dev = env_of(exec, "CNI_IFNAME");
	auto_free char *text = str_printf("%s %s %s", command, json_str_at(exec, "path"), dev);
	auto_free char *result =
		str_printf("{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"%s\",\"sandbox\":"
			   "\"/n\"}],\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0.1/8\"}]}",
			   dev);
	bool fails = json_list_has(node->refused, text);
	bool is_missing = json_list_has(node->missing, json_str_at(exec, "path"));
	json_t *end = json_pack(
		"{s:i, s:s, s:s}", "status", is_missing ? 127 : fails, "stdout",
		is_missing ? ""
		: fails    ? "{\"code\":7,\"msg\":\"no cable\"}"
			   : result,
		"stderr", is_missing ? "failed to find plugin \"x\" in path [/opt/cni/bin]" : "");
	json_t *reply = ask_reply_new(exec, end, NULL);

	if (node->writes && str_eq(command, "ADD") && !str_eq(dev, "mt0"))
		assert_int_equal(root_write_atomic(node->root, node->writes, node->written,
						   strlen(node->written), 0644, NULL),
				 0);
	json_array_append_new(node->called, json_string(text));
	worker_channel_pass(&node->line, reply);
	json_decref(reply);
}

static void check_disk(struct node *node)
{
	json_auto_t *sandbox = sandbox_read(node->state, "c1", NULL);
	auto_free char *text = sandbox ? json_text(sandbox) : str_dup("");

	if (node->disk_before && !strstr(text, node->disk_before))
		fail_msg("not on the disk: %s in %s", node->disk_before, text);
}

/* Have a worker carry the command out; its last word, new. */
static json_t *call(struct node *node, const char *command)
{
	json_auto_t *running = json_array();
	json_t *done = NULL;
	int pair[2];

	json_array_clear(node->called);
	json_array_clear(node->asked);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	node->worker = fork();
	if (node->worker == 0) {
		(void)close(pair[0]);
		be_worker(node, pair[1], command);
	}
	(void)close(pair[1]);
	node->line = (struct worker_channel){.fd = pair[0]};
	while (!done) {
		json_auto_t *message = json_frame_receive(node->line.fd, &node->line.in);
		json_t *exec = str_eq(json_str_at(message, "kind"), "exec") ? message : NULL;

		assert_non_null(message);
		if (!exec && json_at(message, "kind"))
			answer_question(node, message);
		else if (json_object_get(message, "done"))
			done = json_incref(json_object_get(message, "done"));
		if (!exec)
			continue;
		check_disk(node);
		json_array_append(running, exec);
		if (json_array_size(running) > node->most)
			node->most = json_array_size(running);
		/*
		 * The cluster's network runs alone; then so many are waited for, and the last one
		 * ends first.
		 */
		if (json_array_size(node->called) > 0 && json_array_size(running) < node->at_once)
			continue;
		while (json_array_size(running) > 0) {
			size_t last = json_array_size(running) - 1;

			end_program(node, json_array_get(running, last));
			json_array_remove(running, last);
		}
	}
	(void)waitpid(node->worker, NULL, 0);
	(void)close(pair[0]);
	strbuf_done(&node->line.in);
	return done;
}

static void expect_texts(const json_t *list, const char *want)
{
	auto_strbuf struct strbuf got = {0};
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		strbuf_addf(&got, "%s%s", i ? ", " : "", json_string_value(item));
	assert_string_equal(strbuf_str(&got), want);
}

static void expect_called(const struct node *node, const char *want)
{
	expect_texts(node->called, want);
}

static bool has_sandbox(const struct node *node)
{
	json_auto_t *sandbox = sandbox_read(node->state, "c1", NULL);

	return sandbox != NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

#define PLUGIN(type) "{\"cniVersion\":\"0.4.0\",\"type\":\"" type "\"}"

TEST_WITH(sets_eight_networks_up_side_by_side, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a,a,a,a,a,a,a,a");
	node->at_once = 8;
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_int_equal(node->most, 8);
	assert_int_equal(json_array_size(node->called), 9);
	assert_string_equal(json_string_value(json_array_get(node->called, 0)), "ADD calico mt0");
	/* The cluster's result is the runtime's. */
	assert_string_equal(
		json_str_at(json_array_get(json_at(done, "result", "interfaces"), 0), "name"),
		"mt0");
}

TEST_WITH(has_all_on_the_disk_before_the_first_plugin, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a@roce0");
	node->disk_before = "\"interface\":\"roce0\"";
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_true(has_sandbox(node));
}

TEST_WITH(undoes_all_when_one_network_fails, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_nad(node, "b", PLUGIN("bond"), NULL);
	add_pod(node, "a,b,a");
	json_array_append_new(node->refused, json_string("ADD bond net2"));
	done = call(node, "ADD");
	assert_string_equal(json_str_at(done, "error", "reason"), "PluginFailed");
	assert_non_null(
		strstr(json_str_at(done, "error", "text"), "ml/b (net2): bond ADD: no cable"));
	expect_called(node,
		      "ADD calico mt0, ADD macvlan net1, ADD bond net2, DEL bond net2, DEL macvlan "
		      "net1, DEL calico mt0");
	assert_false(has_sandbox(node));
	assert_null(node->status);
}

TEST_WITH(does_not_undo_what_was_never_started, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *again = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_nad(node, "chain",
		"{\"cniVersion\":\"0.4.0\",\"plugins\":[{\"type\":\"bond\"},{\"type\":\"gone\"}]}",
		NULL);
	add_pod(node, "a,chain");
	json_array_append_new(node->missing, json_string("gone"));
	node->plugin_types = "gone";
	done = call(node, "ADD");
	assert_non_null(strstr(json_str_at(done, "error", "text"), "failed to find plugin"));
	expect_called(node, "ADD calico mt0, ADD macvlan net1, ADD bond net2, ADD gone net2, DEL "
			    "bond net2, DEL macvlan net1, DEL calico mt0");
	/* Nothing is left of which the runtime's DEL would fail for ever. */
	assert_false(has_sandbox(node));
	again = call(node, "DEL");
	assert_null(json_at(again, "error"));
}

TEST_WITH(keeps_what_could_not_be_undone, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *again = NULL;

	add_nad(node, "b", PLUGIN("bond"), NULL);
	add_pod(node, "b");
	json_array_append_new(node->refused, json_string("ADD bond net1"));
	json_array_append_new(node->refused, json_string("DEL calico mt0"));
	done = call(node, "ADD");
	assert_non_null(json_at(done, "error"));
	assert_true(has_sandbox(node));
	json_array_clear(node->refused);
	again = call(node, "DEL");
	assert_null(json_at(again, "error"));
	assert_false(has_sandbox(node));
}

TEST_WITH(deletes_by_the_disk_alone, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *gone = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	json_decref(node->pod);
	node->pod = NULL;
	json_object_clear(node->nads);
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	expect_called(node, "DEL macvlan net1, DEL calico mt0");
	assert_false(has_sandbox(node));
}

TEST_WITH(keeps_the_sandbox_while_a_plugin_refuses_to_delete, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *refused = NULL, *again = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	done = call(node, "ADD");
	json_array_append_new(node->refused, json_string("DEL macvlan net1"));
	refused = call(node, "DEL");
	assert_string_equal(json_str_at(refused, "error", "reason"), "PluginFailed");
	/* The cluster's network is taken down all the same. */
	expect_called(node, "DEL macvlan net1, DEL calico mt0");
	json_array_clear(node->refused);
	again = call(node, "DEL");
	assert_null(json_at(again, "error"));
	assert_false(has_sandbox(node));
}

TEST_WITH(takes_the_clusters_network_down_of_a_sandbox_from_before_us, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = call(node, "DEL");

	assert_null(json_at(done, "error"));
	expect_called(node, "DEL calico mt0");
	assert_false(has_sandbox(node));
}

TEST_WITH(takes_down_what_a_multus_set_up, setup, teardown)
{
	struct node *node = *state;
	/* {"cniVersion":"0.4.0","name":"n","type":"macvlan"} */
	static const char kept[] =
		"[{\"Bytes\":\"eyJjbmlWZXJzaW9uIjoiMC40LjAiLCJuYW1lIjoibiIsInR5cGUiOiJtYWN2bGFuIn0="
		"\","
		"\"Name\":\"cluster\"},{\"Bytes\":"
		"\"eyJjbmlWZXJzaW9uIjoiMC40LjAiLCJuYW1lIjoibiIsInR5cGUiOiJtYWN2bGFuIn0=\",\"Name\":"
		"\"ml/n\",\"ifnameRequest\":\"roce0\"}]";
	json_auto_t *done = NULL;
	struct stat st;

	assert_int_equal(root_make_dirs(node->root, "/var/lib/cni/multus", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, "/var/lib/cni/multus/c1", kept, strlen(kept),
					   0600, NULL),
			 0);
	done = call(node, "DEL");
	assert_null(json_at(done, "error"));
	expect_called(node, "DEL macvlan roce0, DEL macvlan mt0");
	assert_int_equal(root_stat(node->root, "/var/lib/cni/multus/c1", &st), -1);
}

TEST_WITH(leaves_a_multus_what_it_would_need, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *gone = NULL;
	struct stat st;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	assert_int_equal(root_make_dirs(node->root, "/opt/cni/bin", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, "/opt/cni/bin/multus", "", 0, 0755, NULL),
			 0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_int_equal(root_stat(node->root, "/var/lib/cni/multus/c1", &st), 0);
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	assert_int_equal(root_stat(node->root, "/var/lib/cni/multus/c1", &st), -1);
}

TEST_WITH(sets_up_the_clusters_network_alone_for_a_multus, setup, teardown)
{
	struct node *node = *state;
	static const char multus[] = "{\"name\":\"m\",\"type\":\"multus-shim\"}", kept[] = "[]";
	auto_strbuf struct strbuf text = {0};
	json_auto_t *done = NULL, *gone = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	assert_int_equal(root_make_dirs(node->root, "/etc/cni/net.d", 0755), 0);
	assert_int_equal(root_make_dirs(node->root, "/var/lib/cni/multus", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, "/etc/cni/net.d/00-multus.conf", multus,
					   strlen(multus), 0644, NULL),
			 0);
	assert_int_equal(root_write_atomic(node->root, "/var/lib/cni/multus/c1", kept, strlen(kept),
					   0600, NULL),
			 0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_string_equal(
		json_str_at(json_array_get(json_at(done, "result", "ips"), 0), "address"),
		"10.0.0.1/8");
	expect_called(node, "ADD calico mt0");
	/* Both are Multus' work. */
	assert_null(node->status);
	assert_int_equal(fs_read(node->root, "var/lib/cni/multus/c1", 64, &text, NULL), 0);
	assert_string_equal(strbuf_str(&text), kept);
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	expect_called(node, "DEL calico mt0");
	assert_false(has_sandbox(node));
}

/* The agent says what the network is: whoever speaks for it has no program of its choice run. */
TEST_WITH(runs_no_plugin_that_is_neither_listed_nor_the_nodes_own, setup, teardown)
{
	struct node *node = *state;
	static const char chained[] = "{\"cniVersion\":\"0.4.0\",\"name\":\"acme\",\"plugins\":[{"
				      "\"type\":\"ptp\"},{\"type\":\"acme-policy\"}]}";
	json_auto_t *refused = NULL, *ipam = NULL, *listed = NULL, *own = NULL, *gone = NULL;

	add_nad(node, "a", PLUGIN("acme-policy"), NULL);
	add_pod(node, "a");
	refused = call(node, "ADD");
	assert_string_equal(json_str_at(refused, "error", "reason"), "PluginNotAllowed");
	assert_non_null(strstr(json_str_at(refused, "error", "text"),
			       "network ml/a (net1): CNI plugin \"acme-policy\""));
	assert_non_null(strstr(json_str_at(refused, "error", "text"), "--cni-plugin-types"));
	/* Not even the cluster's own. */
	expect_called(node, "");
	assert_false(has_sandbox(node));
	add_nad(node, "a",
		"{\"cniVersion\":\"0.4.0\",\"type\":\"macvlan\",\"ipam\":{\"Type\":\"acme-ipam\"}}",
		NULL);
	ipam = call(node, "ADD");
	assert_non_null(strstr(json_str_at(ipam, "error", "text"), "CNI plugin \"acme-ipam\""));
	expect_called(node, "");
	/* Of the command line. */
	node->plugin_types = "acme-ipam, x*";
	listed = call(node, "ADD");
	assert_null(json_at(listed, "error"));
	expect_called(node, "ADD calico mt0, ADD macvlan net1");
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	/* Of a file that the node has. */
	node->plugin_types = NULL;
	add_nad(node, "a", PLUGIN("acme-policy"), NULL);
	assert_int_equal(root_make_dirs(node->root, "/etc/cni/net.d", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, "/etc/cni/net.d/50-acme.conflist", chained,
					   strlen(chained), 0644, NULL),
			 0);
	own = call(node, "ADD");
	assert_null(json_at(own, "error"));
	expect_called(node, "ADD calico mt0, ADD acme-policy net1");
}

static void put_file(const struct node *node, const char *path, const char *text)
{
	auto_free char *folder = str_ndup(path, (size_t)(strrchr(path, '/') - path));

	assert_int_equal(root_make_dirs(node->root, folder, 0755), 0);
	assert_int_equal(root_write_atomic(node->root, path, text, strlen(text), 0644, NULL), 0);
}

static void is_refused(struct node *node, const char *config, const char *reason, const char *says)
{
	json_auto_t *done = NULL;
	const char *text;

	add_nad(node, "a", config, NULL);
	done = call(node, "ADD");
	text = json_str_at(done, "error", "text");
	assert_string_equal(json_str_at(done, "error", "reason"), reason);
	if (!strstr(text, says))
		fail_msg("%s: %s", config, text);
	expect_called(node, "");
	assert_false(has_sandbox(node));
}

static void is_not_given(struct node *node, const char *config, const char *device)
{
	is_refused(node, config, "DeviceNotGiven", device);
}

static void is_attached(struct node *node, const char *config)
{
	json_auto_t *done = NULL, *gone = NULL;

	add_nad(node, "a", config, NULL);
	done = call(node, "ADD");
	if (json_at(done, "error"))
		fail_msg("%s: %s", config, json_str_at(done, "error", "text"));
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
}

#define UPPER(type, members)                                                                       \
	"{\"cniVersion\":\"0.4.0\",\"type\":\"" type "\",\"master\":\"enp1s0v2\"," members "}"
#define VF_CONFIG(member) "{\"cniVersion\":\"0.4.0\",\"type\":\"host-device\"," member "}"

/* Of another program's plugin, which does not look whose a device is. */
TEST_WITH(takes_no_vf_past_the_kubelet, setup, teardown)
{
	struct node *node = *state;

	put_file(node, "/device-plugins/kubelet_internal_checkpoint",
		 "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u1\",\"DeviceIDs\":{\"0\":["
		 "\"0000:01:10.0\"]}},{\"PodUID\":\"u9\",\"DeviceIDs\":{\"0\":[\"0000:01:10.2\"]}},"
		 "{\"PodUID\":\"u8\",\"DeviceIDs\":{\"0\":[\"0000:01:10.6\"]}}],"
		 "\"RegisteredDevices\":{\"x/"
		 "y\":[\"0000:01:10.0\",\"0000:01:10.2\",\"0000:01:10.4\","
		 "\"0000:01:00.0\"]}}}");
	assert_int_equal(root_make_dirs(node->root, "/sys/bus/pci/devices/0000:01:10.4", 0755), 0);
	assert_int_equal(root_make_dirs(node->root, "/sys/bus/pci/devices/0000:01:00.0", 0755), 0);
	assert_int_equal(root_make_dirs(node->root, "/sys/class/net/enp1s0", 0755), 0);
	assert_int_equal(root_make_dirs(node->root, "/sys/class/net/enp1s0v2", 0755), 0);
	assert_int_equal(
		symlinkat("../../../0000:01:00.0", node->root, "sys/class/net/enp1s0/device"), 0);
	assert_int_equal(
		symlinkat("../../../0000:01:10.4", node->root, "sys/class/net/enp1s0v2/device"), 0);
	assert_int_equal(
		symlinkat("../0000:01:00.0", node->root, "sys/bus/pci/devices/0000:01:10.4/physfn"),
		0);
	add_pod(node, "a");
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""));
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:af:00.1\""));
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.2\""), "0000:01:10.2");
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.4\""), "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"deviceID\":\"0000:01:10.0\",\"pciBusID\":\"0000:01:10.4\""),
		     "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"device\":\"enp1s0v2\""), "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"master\":\"enp1s0v2\""), "0000:01:10.4");
	/* It is ill, and of a pod that has ended, or has not. */
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.6\""));
	put_file(node, "/pods/u8/x", "");
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.6\""), "0000:01:10.6");
	/* Plugins in Go read keys in any case, and the last one of two. */
	is_not_given(node, VF_CONFIG("\"PCIBUSID\":\"0000:01:10.4\""), "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"deviceID\":\"0000:01:10.0\",\"DeviceId\":\"0000:01:10.4\""),
		     "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"Device\":\"enp1s0v2\""), "0000:01:10.4");
	/* Only plugins that make an interface on another one look into the pod. */
	is_not_given(node, VF_CONFIG("\"device\":\"enp1s0v2\",\"linkInContainer\":true"),
		     "0000:01:10.4");
	is_not_given(node, UPPER("macvlan", "\"linkInContainer\":true,\"LinkInContainer\":false"),
		     "0000:01:10.4");
	is_not_given(node, UPPER("macvlan", "\"mode\":\"passthru\""), "0000:01:10.4");
	is_not_given(node, UPPER("ipvlan", "\"ipam\":{\"type\":\"static\"}"), "0000:01:10.4");
	/* Of a plugin that another one calls, and of one that takes several. */
	is_not_given(node,
		     "{\"cniVersion\":\"0.4.0\",\"type\":\"flannel\",\"delegate\":{\"type\":"
		     "\"host-device\",\"device\":\"enp1s0v2\"}}",
		     "0000:01:10.4");
	is_not_given(
		node,
		"{\"cniVersion\":\"0.4.0\",\"type\":\"bond\",\"links\":[{\"name\":\"enp1s0v2\"}]}",
		"0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"kernelpath\":\"/sys/devices/pci0000:00/0000:01:10.4\""),
		     "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"x/../0000:01:10.4\""), "0000:01:10.4");
	is_not_given(node, VF_CONFIG("\"device\":\"enp1s0\""), "0000:01:00.0");
	/* Interfaces of many pods are on a PF. */
	is_attached(node, VF_CONFIG("\"master\":\"enp1s0\""));
	is_attached(node, VF_CONFIG("\"master\":\"nowhere\""));
	is_attached(node, VF_CONFIG("\"master\":\"../enp1s0v2\""));
}

#define CLAIM(pod, device)                                                                         \
	"{\"claims\":{\"u\":{\"namespace\":\"ml\",\"name\":\"c\",\"pod\":\"" pod                   \
	"\",\"devices\":[{\"request\":\"r\",\"pool\":\"n\",\"device\":\"d\",\"resource\":"         \
	"\"spidernet.io/x\",\"id\":\"" device "\",\"cdi\":[]}],\"cdi\":{}}}}"
#define CLAIMS "/var/lib/orbweaver/dra/claims.json"

/* Of a resource that claims give the kubelet's record says nothing. */
TEST_WITH(takes_no_vf_past_a_claim, setup, teardown)
{
	struct node *node = *state;

	add_pod(node, "a");
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""));
	put_file(node, CLAIMS, CLAIM("q", "0000:01:10.0"));
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""), "for claim ml/q/c");
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.2\""));
	put_file(node, "/device-plugins/kubelet_internal_checkpoint",
		 "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":null}}");
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""), "for claim ml/q/c");
	put_file(node, CLAIMS, CLAIM("p", "0000:01:10.0"));
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""));
	/* What cannot be read may be about any device, but one that the kubelet has given. */
	put_file(node, CLAIMS, "{\"claims\": ");
	is_refused(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""), "HostUnreadable",
		   CLAIMS " cannot be read");
	put_file(node, "/device-plugins/kubelet_internal_checkpoint",
		 "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u1\",\"DeviceIDs\":{\"0\":["
		 "\"0000:01:10.0\"]}}],\"RegisteredDevices\":null}}");
	is_attached(node, VF_CONFIG("\"pciBusID\":\"0000:01:10.0\""));
}

TEST_WITH(takes_no_pf_from_vfs_of_pods, setup, teardown)
{
	struct node *node = *state;

	assert_int_equal(root_make_dirs(node->root, "/sys/bus/pci/devices/0000:01:00.0", 0755), 0);
	assert_int_equal(symlinkat("../0000:01:10.0", node->root,
				   "sys/bus/pci/devices/0000:01:00.0/virtfn0"),
			 0);
	put_file(node, "/device-plugins/kubelet_internal_checkpoint",
		 "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u8\",\"DeviceIDs\":{\"0\":["
		 "\"0000:01:10.0\"]}}],\"RegisteredDevices\":{\"x/y\":[\"0000:01:10.0\"]}}}");
	add_pod(node, "a");
	is_attached(node, VF_CONFIG("\"deviceID\":\"0000:01:00.0\""));
	put_file(node, "/pods/u8/x", "");
	is_not_given(node, VF_CONFIG("\"deviceID\":\"0000:01:00.0\""), "VF 0000:01:10.0");
	/* Others go on it. */
	is_attached(node, "{\"cniVersion\":\"0.4.0\",\"type\":\"macvlan\",\"deviceID\":"
			  "\"0000:01:00.0\"}");
	put_file(node, "/device-plugins/kubelet_internal_checkpoint", "{\"Data\":{}}");
	put_file(node, CLAIMS, CLAIM("p", "0000:01:10.0"));
	is_not_given(node, VF_CONFIG("\"pciBusID\":\"0000:01:00.0\""), "for claim ml/p/c");
}

/* What was attached by a version before, or a longer list, is taken down all the same. */
TEST_WITH(deletes_with_a_plugin_that_is_not_listed_any_more, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *checked = NULL, *gone = NULL;

	add_nad(node, "a", PLUGIN("acme"), NULL);
	add_pod(node, "a");
	node->plugin_types = "*";
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	node->plugin_types = NULL;
	checked = call(node, "CHECK");
	assert_null(json_at(checked, "error"));
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	expect_called(node, "DEL acme net1, DEL calico mt0");
	assert_false(has_sandbox(node));
}

TEST_WITH(lets_a_pod_that_is_gone_go, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = call(node, "ADD");

	assert_string_equal(
		json_str_at(json_array_get(json_at(done, "result", "ips"), 0), "address"),
		"0.0.0.0/0");
	expect_called(node, "");
}

TEST_WITH(says_what_the_pod_has, setup, teardown)
{
	struct node *node = *state;
	static const char info[] =
		"{\"type\":\"pci\",\"version\":\"1.1.0\",\"pci\":{\"pci-address\":"
		"\"0000:01:10.0\",\"rdma-device\":\"mlx5_2\"}}";
	const char *cni = "/var/run/k8s.cni.cncf.io/devinfo/cni/ml-vf-c1_net1";
	json_auto_t *done = NULL, *gone = NULL;
	struct stat st;

	add_nad(node, "vf", PLUGIN("host-device"), "x.io/vf");
	add_pod(node, "vf");
	json_array_append_new(node->devices,
			      json_pack("{s:s,s:s,s:[s]}", "container", "c", "resource", "x.io/vf",
					"ids", "0000:01:10.0"));
	assert_int_equal(root_make_dirs(node->root, "/var/run/k8s.cni.cncf.io/devinfo/dp", 0755),
			 0);
	assert_int_equal(
		root_write_atomic(
			node->root,
			"/var/run/k8s.cni.cncf.io/devinfo/dp/x.io-vf-0000:01:10.0-device.json",
			info, strlen(info), 0644, NULL),
		0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_non_null(strstr(json_str_at(node->status, "text"), "\"rdma-device\": \"mlx5_2\""));
	assert_string_equal(json_string_value(json_array_get(json_at(node->status, "added"), 1)),
			    "Add net1 [10.0.0.1/8] from ml/vf");
	assert_int_equal(root_stat(node->root, cni, &st), 0);
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	assert_int_equal(root_stat(node->root, cni, &st), -1);
}

static const char written_info[] = "{\"type\":\"vhost-user\",\"version\":\"1.1.0\",\"vhost-user\":"
				   "{\"mode\":\"client\",\"path\":\"/run/vhost/x\"}}";

TEST_WITH(says_what_a_plugin_wrote_of_its_device, setup, teardown)
{
	struct node *node = *state;
	const char *cni = "/var/run/k8s.cni.cncf.io/devinfo/cni/ml-vf-c1_net1";
	json_auto_t *done = NULL, *gone = NULL;
	struct stat st;

	add_nad(node, "vf", PLUGIN("host-device"), "x.io/vf");
	add_pod(node, "vf");
	json_array_append_new(node->devices,
			      json_pack("{s:s,s:s,s:[s]}", "container", "c", "resource", "x.io/vf",
					"ids", "0000:01:10.0"));
	node->writes = cni;
	node->written = written_info;
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_non_null(strstr(json_str_at(node->status, "text"), "\"path\": \"/run/vhost/x\""));
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	assert_int_equal(root_stat(node->root, cni, &st), -1);
}

TEST_WITH(reads_and_removes_the_file_of_an_elements_own_device, setup, teardown)
{
	struct node *node = *state;
	const char *cni = "/var/run/k8s.cni.cncf.io/devinfo/cni/ml-vf-c1_net1";
	json_auto_t *done = NULL, *gone = NULL;
	struct stat st;

	add_nad(node, "vf", PLUGIN("host-device"), NULL);
	add_pod(node, "[{\"name\":\"vf\",\"deviceID\":\"0000:01:10.0\"}]");
	node->writes = cni;
	node->written = written_info;
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_non_null(strstr(json_str_at(node->status, "text"), "\"path\": \"/run/vhost/x\""));
	gone = call(node, "DEL");
	assert_null(json_at(gone, "error"));
	assert_int_equal(root_stat(node->root, cni, &st), -1);
}

static bool add_living_pod_before(void *arg, json_t *sandbox)
{
	json_put(sandbox, "pod",
		 json_pack("{s:s,s:s,s:s}", "namespace", "ml", "name", "p", "uid", "u0"));
	json_put(sandbox, "netns", json_pack("{s:s}", "path", "/run/netns/c0"));
	json_array_append_new(json_at(sandbox, "attachments"),
			      json_pack("{s:s,s:s,s:s,s:s}", "plugin", "sriov", "network", "vf",
					"ifname", "net1", "phase", "added"));
	return true;
}

/* A StatefulSet's pod, deleted by force, that ends still: the kubelet names both "ml/p". */
TEST_WITH(leaves_devices_to_the_pod_of_the_same_name_that_is_there_still, setup, teardown)
{
	struct node *node = *state;
	static const char info[] = "{\"type\":\"pci\",\"version\":\"1.1.0\",\"pci\":"
				   "{\"pci-address\":\"0000:01:10.1\"}}";
	json_auto_t *done = NULL;

	add_nad(node, "vf", PLUGIN("host-device"), "x.io/vf");
	add_pod(node, "vf");
	json_array_append_new(node->devices,
			      json_pack("{s:s,s:s,s:[s,s]}", "container", "c", "resource",
					"x.io/vf", "ids", "0000:01:10.0", "0000:01:10.1"));
	assert_int_equal(sandbox_change(node->state, "c0", SANDBOX_SYNCED, add_living_pod_before,
					NULL, NULL),
			 0);
	assert_int_equal(root_make_dirs(node->root, "/run/netns", 0755), 0);
	assert_int_equal(root_write_atomic(node->root, "/run/netns/c0", "", 0, 0644, NULL), 0);
	(void)close(device_lock(node->state, "0000:01:10.0", 0, NULL));
	assert_int_equal(device_claim(node->state, "0000:01:10.0", "c0", "net1", NULL), 0);
	assert_int_equal(root_make_dirs(node->root, "/var/run/k8s.cni.cncf.io/devinfo/dp", 0755),
			 0);
	assert_int_equal(
		root_write_atomic(
			node->root,
			"/var/run/k8s.cni.cncf.io/devinfo/dp/x.io-vf-0000:01:10.1-device.json",
			info, strlen(info), 0644, NULL),
		0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	assert_non_null(strstr(json_str_at(node->status, "text"), "0000:01:10.1"));
}

/* It may be that pod's. A folder has no text, as a disk that does not answer. */
TEST_WITH(waits_while_it_is_not_known_whose_a_device_is, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *refused = NULL, *done = NULL;
	const char *file = "devices/0000:01:10.0.json";

	add_nad(node, "vf", PLUGIN("host-device"), "x.io/vf");
	add_pod(node, "vf");
	json_array_append_new(node->devices,
			      json_pack("{s:s,s:s,s:[s]}", "container", "c", "resource", "x.io/vf",
					"ids", "0000:01:10.0"));
	(void)close(device_lock(node->state, "0000:01:10.0", 1000, NULL));
	assert_int_equal(mkdirat(node->state->dir, file, 0700), 0);
	refused = call(node, "ADD");
	assert_string_equal(json_str_at(refused, "error", "reason"), "DeviceNotClaimed");
	expect_called(node, "");
	assert_int_equal(unlinkat(node->state->dir, file, AT_REMOVEDIR), 0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
}

/* That pod has no sandbox of ours, or none yet: both devices may be its. */
TEST_WITH(waits_while_nothing_tells_the_devices_of_two_pods_apart, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *refused = NULL, *done = NULL;
	json_t *container;

	add_nad(node, "vf", PLUGIN("host-device"), "x.io/vf");
	add_pod(node, "vf");
	container = json_array_get(json_at(node->pod, "spec", "containers"), 0);
	json_put(container, "resources", json_pack("{s:{s:s}}", "limits", "x.io/vf", "1"));
	json_array_append_new(node->devices,
			      json_pack("{s:s,s:s,s:[s,s]}", "container", "c", "resource",
					"x.io/vf", "ids", "0000:01:10.0", "0000:01:10.1"));
	refused = call(node, "ADD");
	assert_string_equal(json_str_at(refused, "error", "reason"), "AmbiguousDevices");
	(void)json_array_remove(json_at(json_array_get(node->devices, 0), "ids"), 0);
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
}

TEST_WITH(checks_every_network, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *checked = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	done = call(node, "ADD");
	checked = call(node, "CHECK");
	assert_null(json_at(checked, "error"));
	expect_called(node, "CHECK calico mt0, CHECK macvlan net1");
}

TEST_WITH(a_plugin_that_the_node_lacks_is_ours, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	assert_int_equal(root_remove(node->root, THEIRS), 0);
	done = call(node, "ADD");
	/* It is carried out here, where there is no namespace. */
	assert_non_null(strstr(json_str_at(done, "error", "text"), "ADD needs CNI_NETNS"));
	expect_called(node, "ADD calico mt0, DEL calico mt0");
}

TEST_WITH(what_theirs_attached_ours_takes_down_once_theirs_have_gone, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL, *deleted = NULL;

	add_nad(node, "a", PLUGIN("macvlan"), NULL);
	add_pod(node, "a");
	done = call(node, "ADD");
	assert_null(json_at(done, "error"));
	expect_called(node, "ADD calico mt0, ADD macvlan net1");
	assert_int_equal(root_remove(node->root, THEIRS), 0);
	deleted = call(node, "DEL");
	assert_null(json_at(deleted, "error"));
	expect_called(node, "DEL calico mt0");
	assert_false(has_sandbox(node));
}

/* Three rails of ours behind the cluster's network, which is a program's. */
static void add_rails(struct node *node)
{
	if (!can_have_namespaces())
		skip();
	add_nad(node, "rail",
		"{\"cniVersion\":\"0.4.0\",\"plugins\":[{\"type\":\"macvlan\",\"master\":\"rail\","
		"\"ipam\":{\"type\":\"spiderpool\"}},{\"type\":\"coordinator\"}]}",
		NULL);
	add_pod(node, "rail,rail,rail");
	assert_int_equal(root_remove(node->root, THEIRS), 0);
	node->has_netns = true;
}

TEST_WITH(plugins_of_ours_run_in_one_process_and_ask_once_for_all, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_rails(node);
	done = call(node, "ADD");
	if (json_at(done, "error"))
		fail_msg("%s", json_str_at(done, "error", "text"));
	assert_true(json_is_false(json_at(done, "hadChildren")));
	expect_called(node, "ADD calico mt0");
	expect_texts(node->asked, "addresses net1 net2 net3, coordinator net1");
	assert_non_null(strstr(json_str_at(node->status, "text"), "10.3.0.5"));
	/* Numbered as if the networks had come one after the other. */
	assert_int_equal(json_integer_value(json_at(done, "tables", "net1")), 101);
	assert_int_equal(json_integer_value(json_at(done, "tables", "net2")), 102);
	assert_int_equal(json_integer_value(json_at(done, "tables", "net3")), 103);
	assert_int_equal(json_integer_value(json_at(done, "tables", "eth0")), 254);
}

TEST_WITH(a_nic_without_an_address_fails_with_its_own_error_and_nothing_stays, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_rails(node);
	node->lacks = "net2";
	done = call(node, "ADD");
	assert_string_equal(json_str_at(done, "error", "reason"), "NoAddressForNic");
	assert_non_null(strstr(json_str_at(done, "error", "text"), "ml/rail (net2): macvlan"));
	/* The third network had not begun. */
	expect_texts(node->asked, "addresses net1 net2 net3, addresses net2, release net2, release "
				  "net1");
	expect_called(node, "ADD calico mt0, DEL calico mt0");
	assert_int_equal(json_object_size(json_at(done, "tables")), 1);
	assert_false(has_sandbox(node));
}

TEST_WITH(nobody_asks_again_for_addresses_that_are_not_there_yet, setup, teardown)
{
	struct node *node = *state;
	json_auto_t *done = NULL;

	add_rails(node);
	node->lacks = "*";
	done = call(node, "ADD");
	assert_string_equal(json_str_at(done, "error", "reason"), "AddressesPending");
	assert_non_null(strstr(json_str_at(done, "error", "text"), "interfaces net1, net2, net3"));
	expect_texts(node->asked, "addresses net1 net2 net3, release net1");
	assert_false(has_sandbox(node));
}

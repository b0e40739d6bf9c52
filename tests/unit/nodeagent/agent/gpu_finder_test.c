// SPDX-License-Identifier: Apache-2.0
/*
 * A pod with GPUs gets the NICs near them: from the kubelet's question to its devices, through
 * kubeletd, the agent, PodResources and the API server. What is in the way of an answer costs the
 * pod nothing but the nearness.
 */
#include "tests/support/test.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/agent/gpu_finder.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "tests/fakes/kubelet_node.h"
#include "tests/fakes/scripted.h"
#include "tests/support/scratch.h"
#include "tests/support/until.h"
#include "tests/support/yaml.h"

#define X "spidernet.io/x"

/* Four GPUs, each on a switch with a NIC, two for each socket. */
static const char HOST[] =
	"gpus:\n"
	"- {pciAddress: '0000:0a:00.0', path: a/r/u/1, numaNode: 0, uuid: GPU-0}\n"
	"- {pciAddress: '0000:1a:00.0', path: b/r/u/1, numaNode: 0, uuid: GPU-1}\n"
	"- {pciAddress: '0000:8a:00.0', path: c/r/u/1, numaNode: 1, uuid: GPU-2}\n"
	"- {pciAddress: '0000:9a:00.0', path: d/r/u/1, numaNode: 1, uuid: GPU-3}\n"
	"interfaces:\n"
	"- {pciAddress: '0000:0b:00.0', host: {path: a/r/u/2, numaNode: 0}}\n"
	"- {pciAddress: '0000:1b:00.0', host: {path: b/r/u/2, numaNode: 0}}\n"
	"- {pciAddress: '0000:8b:00.0', host: {path: c/r/u/2, numaNode: 1}}\n"
	"- {pciAddress: '0000:9b:00.0', host: {path: d/r/u/2, numaNode: 1}}\n";

static struct stand {
	struct scripted api;
	char *dir;
	struct kubelet_node *node;
	struct kubeletd_server *server;
	struct kubeletd *agent;
	struct gpu_finder *finder; /* NULL: the agent does not answer */
	json_t *observed, *pending;
	int questions, closed;
} s;

static void nothing(void *arg)
{
}

static void on_ready(void *arg, const json_t *pools)
{
}

static void on_event(void *arg, bool warning, const char *reason, const char *message)
{
}

static void on_lost(void *arg, const struct err *err)
{
	fail_msg("lost: %s", err->text);
}

static void on_asked_gpus(void *arg, int64_t id, const char *resource)
{
	s.questions++;
	assert_string_equal(resource, X);
	if (s.finder)
		gpu_finder_find(s.finder, id, resource, s.observed);
}

static void on_found(void *arg, int64_t id, const json_t *near)
{
	kubeletd_answer_gpus(s.agent, id, near);
}

static void on_closed(void *arg)
{
	s.closed++;
}

/* Two VFs of each NIC. */
static void offer(bool has_gpus)
{
	static const char *const buses[] = {"0b", "1b", "8b", "9b"};
	json_t *devices = json_array();
	json_auto_t *pools = NULL;

	for (size_t i = 0; i < 2 * ARRAY_LEN(buses); i++)
		json_array_append_new(devices,
				      json_pack("{s:o, s:b, s:i, s:o}", "id",
						json_fmt("0000:%s:00.%zu", buses[i / 2], i % 2 + 1),
						"healthy", 1, "numa", i >= 4, "pf",
						json_fmt("0000:%s:00.0", buses[i / 2])));
	pools = json_pack("{s:[{s:s, s:s, s:s, s:i, s:b, s:[], s:o}], s:[]}", "resources", "name",
			  X, "kind", "sriov", "policy", "spread", "wanted", 8, "gpus", has_gpus,
			  "causes", "devices", devices, "problems");
	kubeletd_set(s.agent, pools, NULL);
	until(s.api.loop, fake_kubelet_allocatable(kubelet_node_manager(s.node), X) == 8);
}

static int set_up(void **state)
{
	auto_free char *plugins = NULL, *pods = NULL, *socket = NULL;
	int pair[2];

	s = (struct stand){.dir = scratch_new(), .observed = yaml(HOST), .pending = json_array()};
	plugins = str_printf("%s/device-plugins", s.dir);
	pods = str_printf("%s/pod-resources", s.dir);
	socket = str_printf("%s/kubelet.sock", pods);
	assert_int_equal(mkdir(plugins, 0750), 0);
	assert_int_equal(mkdir(pods, 0750), 0);
	scripted_open(&s.api);
	s.node = kubelet_node_new(s.api.loop, s.dir, &kubelet_versions[n_kubelet_versions - 1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s.agent = kubeletd_new(&(struct kubeletd_config){
		.loop = s.api.loop,
		.fd = pair[0],
		.ready = on_ready,
		.changed = nothing,
		.emit = on_event,
		.allocated = nothing,
		.asked_gpus = on_asked_gpus,
		.lost = on_lost,
	});
	s.server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = s.api.loop,
		.plugins_dir = plugins,
		.offering = nothing,
	});
	kubeletd_server_attach(s.server, pair[1]);
	s.finder = gpu_finder_new(&(struct gpu_finder_config){
		.loop = s.api.loop,
		.client = s.api.client,
		.node = "n1",
		.socket = socket,
		.found = on_found,
	});
	offer(true);
	return 0;
}

static int tear_down(void **state)
{
	gpu_finder_free(s.finder);
	kubeletd_free(s.agent);
	kubeletd_server_close(s.server, on_closed, NULL);
	until(s.api.loop, s.closed);
	kubelet_node_free(s.node);
	scripted_close(&s.api);
	scratch_free(s.dir);
	json_decref(s.observed);
	json_decref(s.pending);
	return 0;
}

/*
 * The API server lists it among the pending pods of the node: it asks for so many devices (NULL:
 * none), has the label of rails (NULL: not) and as many bytes of something else.
 */
static void pending_of(const char *ns, const char *pod, const char *n, const char *rails,
		       size_t bytes)
{
	auto_free char *more = mem_calloc(bytes + 1, 1);
	json_t *container = json_pack("{s:s}", "name", "c"), *object;

	memset(more, 'x', bytes);
	if (n)
		json_put(container, "resources", json_pack("{s:{s:s}}", "limits", X, n));
	object = json_pack("{s:{s:s, s:s, s:{s:s*}, s:{s:s}}, s:{s:[o]}}", "metadata", "name", pod,
			   "namespace", ns, "labels", "orbweaver.io/rails", rails, "annotations",
			   "more", more, "spec", "containers", container);
	json_array_append_new(s.pending, object);
}

static void pending(const char *pod, const char *n)
{
	pending_of("ml", pod, n, NULL, 0);
}

#define LIST "GET /api/v1/pods?fieldSelector=status.phase%3DPending%2Cspec.nodeName%3Dn1"
/* Answer a list, of namespaces other than those of `less`, with the pods that are pending. */
static void answer_list(const char *less)
{
	auto_free char *text = json_dumps(s.pending, JSON_COMPACT);
	auto_free char *body = str_printf("{\"kind\":\"PodList\",\"items\":%s}", text);
	auto_free char *start = str_printf("%s%s&resourceVersion=0", LIST, less);

	http_script_add(s.api.http, start, &(struct http_reply){.body = body});
	json_array_clear(s.pending);
}

static void number_rails(void)
{
	json_t *port;
	size_t i;

	json_array_foreach (json_at(s.observed, "interfaces"), i, port)
		json_put_int(port, "rail", (int64_t)i);
	json_put(s.observed, "rails", yaml("{list: [{rail: 0}, {rail: 1}, {rail: 2}, {rail: 3}]}"));
}

/* It gets `n` devices: these, joined by blanks. */
static void assert_gets(const char *pod, size_t n, const char *want)
{
	auto_free char *why = NULL;
	auto_strbuf struct strbuf got = {0};
	const json_t *id;
	size_t i;

	if (json_array_size(s.pending) > 0)
		answer_list("");
	why = kubelet_node_admit(s.node, pod, X, n);
	assert_null(why);
	json_array_foreach (json_at(kubelet_node_given(s.node, pod), "ids"), i, id)
		strbuf_addf(&got, "%s%s", i ? " " : "", json_string_value(id));
	assert_string_equal(strbuf_str(&got), want);
	assert_int_equal(http_script_unexpected(s.api.http), 0);
	assert_int_equal(http_script_unused(s.api.http), 0);
}

TEST_WITH(the_gpus_came_first, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-2");
	pending("a", "1");
	assert_gets("ml/a", 1, "0000:8b:00.1");
	/* One NIC for each GPU, on both sockets. The first pod has what it asked for. */
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-3");
	pending("b", "2");
	assert_gets("ml/b", 2, "0000:1b:00.1 0000:9b:00.1");
	assert_int_equal(s.questions, 2);
}

TEST_WITH(the_nics_come_first, set_up, tear_down)
{
	/* Nothing is known: as on a node without GPUs. */
	assert_gets("ml/a", 1, "0000:0b:00.1");
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-0");
	/* It cannot get the first GPU, so it gets the NIC of another. */
	assert_gets("ml/b", 1, "0000:1b:00.1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-1");
	/* Two free GPUs are left. */
	assert_gets("ml/c", 2, "0000:8b:00.1 0000:9b:00.1");
}

TEST_WITH(pods_without_our_devices_are_told_from_it, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/other", "GPU-0");
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	pending("other", NULL);
	pending("a", "1");
	assert_gets("ml/a", 1, "0000:9b:00.1");
	/* It comes first, and has no GPUs yet: not near those of the other. */
	pending("other", NULL);
	assert_gets("ml/b", 1, "0000:1b:00.1");
}

TEST_WITH(two_pods_that_it_could_be_are_none, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/turned-away", "GPU-0");
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	pending("turned-away", "1");
	pending("a", "1");
	/* As on a node without GPUs. */
	assert_gets("ml/a", 1, "0000:0b:00.1");
}

TEST_WITH(an_api_server_that_refuses_or_hangs_costs_the_nearness, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-0");
	http_script_add(s.api.http, LIST,
			&(struct http_reply){.status = 403, .body = "{\"reason\": \"Forbidden\"}"});
	assert_gets("ml/a", 1, "0000:0b:00.1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-1");
	http_script_add(s.api.http, LIST, &(struct http_reply){.status = -1});
	assert_gets("ml/b", 1, "0000:1b:00.1");
	/* It is not asked for a while. */
	kubelet_node_give_gpu(s.node, "ml/c", "GPU-0");
	assert_gets("ml/c", 1, "0000:8b:00.1");
}

/* As many as there are replicas of GPUs, some of them with pods that do not start. */
TEST_WITH(pods_with_gpus_and_no_nic_take_nothing_from_others, set_up, tear_down)
{
	for (int i = 0; i < 40; i++) {
		auto_free char *pod = str_printf("p%d", i), *id = str_printf("GPU-0::%d", i);
		auto_free char *name = str_printf("ml/%s", pod);

		kubelet_node_give_gpu(s.node, name, id);
		if (i % 2)
			pending(pod, NULL);
	}
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-2");
	pending("a", "1");
	assert_gets("ml/a", 1, "0000:8b:00.1");
}

/* A list of them would take longer than the kubelet waits. */
TEST_WITH(large_pods_cost_their_own_namespace_the_nearness, set_up, tear_down)
{
	static const size_t mib = 1024 * 1024;

	number_rails();
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-2");
	for (int i = 0; i < 4; i++)
		pending_of("evil", i % 2 ? "p1" : "p2", "1", "0", mib + mib / 2);
	pending("a", "1");
	answer_list("");
	/* One that is left in its middle. */
	pending_of("ill", "p", "1", "0", 5 * mib);
	answer_list("%2Cmetadata.namespace%21%3Devil");
	pending("a", "1");
	answer_list("%2Cmetadata.namespace%21%3Devil%2Cmetadata.namespace%21%3Dill");
	assert_gets("ml/a", 1, "0000:8b:00.1");
	/* For a while they are not asked for at all. */
	pending_of("ml", "b", "2", "1.3", 0);
	answer_list("%2Cmetadata.namespace%21%3Devil%2Cmetadata.namespace%21%3Dill");
	assert_gets("ml/b", 2, "0000:1b:00.1 0000:9b:00.1");
}

TEST_WITH(an_agent_that_is_silent_or_away_keeps_no_pod_waiting, set_up, tear_down)
{
	gpu_finder_free(take_ptr(s.finder));
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	assert_gets("ml/a", 1, "0000:0b:00.1");
	assert_int_equal(s.questions, 1);
	kubeletd_free(take_ptr(s.agent));
	pass(s.api.loop, 20);
	assert_gets("ml/b", 1, "0000:1b:00.1");
}

/* Pending pods with the label, {name: label}, that ask for two devices. */
static void with_labels(const char *text)
{
	json_auto_t *pods = yaml(text);
	const char *name;
	json_t *label;

	json_each (pods, name, label)
		pending_of("ml", name, "2", json_string_value(label), 0);
}

static void assert_noted(const char *want_text)
{
	json_auto_t *want = yaml(want_text);

	assert_true(json_same(gpu_finder_on_rails(s.finder), want));
}

TEST_WITH(pods_of_a_job_get_their_rails_without_gpus, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3'}");
	assert_gets("ml/a", 2, "0000:1b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 10}");
	/* Whichever of the two it is. The first has its devices. */
	with_labels("{a: '0', b: '1.3', c: '1.3'}");
	assert_gets("ml/b", 2, "0000:1b:00.2 0000:9b:00.2");
	assert_noted("{ml/a: 10, ml/b: 10, ml/c: 10}");
}

TEST_WITH(pods_that_want_different_rails_get_any, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3', b: '2-3'}");
	assert_gets("ml/a", 2, "0000:0b:00.1 0000:1b:00.1");
	assert_noted("{ml/a: 10, ml/b: 12}");
}

TEST_WITH(an_api_server_that_hangs_keeps_one_pod_waiting, set_up, tear_down)
{
	number_rails();
	http_script_add(s.api.http, LIST, &(struct http_reply){.status = -1});
	assert_gets("ml/a", 1, "0000:0b:00.1");
	/* It is not asked again: that would be unexpected. */
	assert_gets("ml/b", 1, "0000:1b:00.1");
	assert_int_equal(s.questions, 2);
}

/* As many as somebody makes, and a deleted one that a finalizer keeps. */
TEST_WITH(pods_that_it_cannot_be_take_no_rails_from_it, set_up, tear_down)
{
	number_rails();
	for (int i = 0; i <= 16; i++) {
		auto_free char *pod = str_printf("p%d", i);

		pending_of("evil", pod, NULL, "0", 0);
	}
	pending_of("evil", "gone", "2", "0", 0);
	json_put_str(json_at(json_array_get(s.pending, 17), "metadata"), "deletionTimestamp",
		     "2026-01-31T10:00:00Z");
	with_labels("{a: '2-3'}");
	assert_gets("ml/a", 2, "0000:8b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 12}");
}

/* PodResources do not say which of them has the devices. */
TEST_WITH(the_next_pod_of_a_name_has_its_own_rails, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3'}");
	assert_gets("ml/other", 2, "0000:1b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 10}");
	with_labels("{a: '0-40'}");
	assert_gets("ml/a", 2, "0000:0b:00.1 0000:1b:00.2");
	assert_noted("{}");
}

/* The label of the pod that holds the GPUs, before how near they are. */
TEST_WITH(a_pod_with_gpus_is_known_by_them, set_up, tear_down)
{
	number_rails();
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	pending("a", "1");
	with_labels("{b: '1.3'}");
	assert_gets("ml/a", 1, "0000:9b:00.1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-0");
	pending_of("ml", "b", "1", "1", 0);
	with_labels("{c: '2'}");
	assert_gets("ml/b", 1, "0000:1b:00.1");
}

TEST_WITH(nobody_is_asked_where_there_is_no_choice, set_up, tear_down)
{
	/* All that there are. */
	assert_gets("ml/a", 8,
		    "0000:0b:00.1 0000:0b:00.2 0000:1b:00.1 0000:1b:00.2 0000:8b:00.1 "
		    "0000:8b:00.2 0000:9b:00.1 0000:9b:00.2");
	kubelet_node_remove_pod(s.node, "ml/a");
	offer(false);
	pass(s.api.loop, 20);
	assert_gets("ml/b", 1, "0000:0b:00.1");
	assert_int_equal(s.questions, 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A pod with GPUs gets the NICs near them: from the kubelet's question to its devices, through
 * kubeletd, the agent, PodResources and the API server. What is in the way of an answer costs the
 * pod nothing but the nearness.
 */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <sys/stat.h>

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
	json_t *observed;
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

	s = (struct stand){.dir = scratch_new(), .observed = yaml(HOST)};
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
	return 0;
}

/* What the API server has: the pod asks for so many devices; NULL: none. */
static void in_api(const char *pod, const char *n)
{
	auto_free char *start = str_printf("GET /api/v1/namespaces/ml/pods/%s", pod);
	auto_free char *body =
		str_printf("{\"metadata\": {\"namespace\": \"ml\", \"name\": \"%s\"}, \"spec\": "
			   "{\"containers\": [{\"name\": \"c\"%s%s%s}]}}",
			   pod, n ? ", \"resources\": {\"limits\": {\"" X "\": \"" : "", n ? n : "",
			   n ? "\"}}" : "");

	http_script_add(s.api.http, start, &(struct http_reply){.body = body});
}

/* It gets `n` devices: these, joined by blanks. */
static void assert_gets(const char *pod, size_t n, const char *want)
{
	auto_free char *why = kubelet_node_admit(s.node, pod, X, n);
	auto_strbuf struct strbuf got = {0};
	const json_t *id;
	size_t i;

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
	in_api("a", "1");
	assert_gets("ml/a", 1, "0000:8b:00.1");
	/* One NIC for each GPU, on both sockets. The first pod has what it asked for. */
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-3");
	in_api("b", "2");
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
	in_api("other", NULL);
	in_api("a", "1");
	assert_gets("ml/a", 1, "0000:9b:00.1");
	/* It comes first, and has no GPUs yet: not near those of the other. */
	in_api("other", NULL);
	assert_gets("ml/b", 1, "0000:1b:00.1");
}

TEST_WITH(two_pods_that_it_could_be_are_none, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/turned-away", "GPU-0");
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	in_api("turned-away", "1");
	in_api("a", "1");
	/* As on a node without GPUs. */
	assert_gets("ml/a", 1, "0000:0b:00.1");
}

TEST_WITH(an_api_server_that_refuses_or_hangs_costs_the_nearness, set_up, tear_down)
{
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-0");
	http_script_add(s.api.http, "GET /api/v1/namespaces/ml/pods/a",
			&(struct http_reply){.status = 403, .body = "{\"reason\": \"Forbidden\"}"});
	assert_gets("ml/a", 1, "0000:0b:00.1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-1");
	http_script_add(s.api.http, "GET /api/v1/namespaces/ml/pods/b",
			&(struct http_reply){.status = -1});
	assert_gets("ml/b", 1, "0000:1b:00.1");
}

TEST_WITH(more_pods_than_are_read_are_none, set_up, tear_down)
{
	for (int i = 0; i <= GPU_FINDER_PODS_MAX; i++) {
		auto_free char *pod = str_printf("ml/p%d", i), *id = str_printf("GPU-0::%d", i);

		kubelet_node_give_gpu(s.node, pod, id);
	}
	assert_gets("ml/p0", 1, "0000:0b:00.1");
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

/* The API server lists these pods with the label, {name: label}, and others, as JSON. */
static void with_labels(const char *pods_text, const char *others)
{
	json_auto_t *pods = yaml(pods_text);
	auto_strbuf struct strbuf items = {0};
	auto_free char *body = NULL;
	const char *name;
	json_t *label;

	json_each (pods, name, label)
		strbuf_addf(
			&items,
			"%s{\"metadata\": {\"namespace\": \"ml\", \"name\": \"%s\", "
			"\"labels\": {\"orbweaver.io/rails\": \"%s\"}}, \"spec\": {\"containers\": "
			"[{\"name\": \"c\", \"resources\": {\"limits\": {\"" X "\": \"2\"}}}]}}",
			items.len ? ", " : "", name, json_string_value(label));
	body = str_printf("{\"items\": [%s%s]}", others, strbuf_str(&items));
	http_script_add(s.api.http,
			"GET /api/v1/pods?fieldSelector=status.phase%3DPending%2Cspec.nodeName%3Dn1"
			"&labelSelector=orbweaver.io%2Frails&resourceVersion=0",
			&(struct http_reply){.body = body});
}

static void number_rails(void)
{
	json_t *port;
	size_t i;

	json_array_foreach (json_at(s.observed, "interfaces"), i, port)
		json_put_int(port, "rail", (int64_t)i);
	json_put(s.observed, "rails", yaml("{list: [{rail: 0}, {rail: 1}, {rail: 2}, {rail: 3}]}"));
}

static void assert_noted(const char *want_text)
{
	json_auto_t *want = yaml(want_text);

	assert_true(json_same(gpu_finder_on_rails(s.finder), want));
}

TEST_WITH(pods_of_a_job_get_their_rails_without_gpus, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3'}", "");
	assert_gets("ml/a", 2, "0000:1b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 10}");
	/* Whichever of the two it is. The first has its devices. */
	with_labels("{a: '0', b: '1.3', c: '1.3'}", "");
	assert_gets("ml/b", 2, "0000:1b:00.2 0000:9b:00.2");
	assert_noted("{ml/a: 10, ml/b: 10, ml/c: 10}");
}

TEST_WITH(pods_that_want_different_rails_get_any, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3', b: '2-3'}", "");
	assert_gets("ml/a", 2, "0000:0b:00.1 0000:1b:00.1");
	assert_noted("{ml/a: 10, ml/b: 12}");
}

TEST_WITH(an_api_server_that_hangs_keeps_one_pod_waiting, set_up, tear_down)
{
	number_rails();
	http_script_add(s.api.http, "GET /api/v1/pods?", &(struct http_reply){.status = -1});
	assert_gets("ml/a", 1, "0000:0b:00.1");
	/* It is not asked again: that would be unexpected. */
	assert_gets("ml/b", 1, "0000:1b:00.1");
	assert_int_equal(s.questions, 2);
}

/* As many as somebody makes, and a deleted one that a finalizer keeps. */
TEST_WITH(pods_that_it_cannot_be_take_no_rails_from_it, set_up, tear_down)
{
	auto_strbuf struct strbuf others = {0};

	number_rails();
	for (int i = 0; i <= GPU_FINDER_PODS_MAX; i++)
		strbuf_addf(&others,
			    "{\"metadata\": {\"namespace\": \"evil\", \"name\": \"p%d\", "
			    "\"labels\": {\"orbweaver.io/rails\": \"0\"}}}, ",
			    i);
	strbuf_adds(&others,
		    "{\"metadata\": {\"namespace\": \"evil\", \"name\": \"gone\", "
		    "\"deletionTimestamp\": \"2026-01-31T10:00:00Z\", \"labels\": "
		    "{\"orbweaver.io/rails\": \"0\"}}, \"spec\": {\"containers\": "
		    "[{\"name\": \"c\", \"resources\": {\"limits\": {\"" X "\": \"2\"}}}]}}, ");
	with_labels("{a: '2-3'}", strbuf_str(&others));
	assert_gets("ml/a", 2, "0000:8b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 12}");
}

/* PodResources do not say which of them has the devices. */
TEST_WITH(the_next_pod_of_a_name_has_its_own_rails, set_up, tear_down)
{
	number_rails();
	with_labels("{a: '1.3'}", "");
	assert_gets("ml/other", 2, "0000:1b:00.1 0000:9b:00.1");
	assert_noted("{ml/a: 10}");
	with_labels("{a: '0-40'}", "");
	assert_gets("ml/a", 2, "0000:0b:00.1 0000:1b:00.2");
	assert_noted("{}");
}

/* The label of the pod that holds the GPUs, before how near they are. */
TEST_WITH(a_pod_with_gpus_is_known_by_them, set_up, tear_down)
{
	number_rails();
	kubelet_node_give_gpu(s.node, "ml/a", "GPU-3");
	in_api("a", "1");
	with_labels("{b: '1.3'}", "");
	assert_gets("ml/a", 1, "0000:9b:00.1");
	kubelet_node_give_gpu(s.node, "ml/b", "GPU-0");
	http_script_add(
		s.api.http, "GET /api/v1/namespaces/ml/pods/b",
		&(struct http_reply){
			.body = "{\"metadata\": {\"namespace\": \"ml\", \"name\": \"b\", "
				"\"labels\": {\"orbweaver.io/rails\": \"1\"}}, \"spec\": "
				"{\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": "
				"{\"" X "\": \"1\"}}}]}}"});
	with_labels("{c: '2'}", "");
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

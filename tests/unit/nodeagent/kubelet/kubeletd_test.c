// SPDX-License-Identifier: Apache-2.0
/*
 * The process that serves the kubelet and the agent's side of it, on one loop with a scripted
 * kubelet; either side against one that the test plays; and the process itself.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "lib/grpc/client.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_process.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/process/channel.h"
#include "nodeagent/process/supervisor.h"
#include "tests/fakes/kubelet.h"
#include "tests/support/until.h"

#define X "spidernet.io/x"
/* How often the process says that it turns. */
#define HEARTBEAT_MS 10

/* What an agent has of the server. */
struct agent {
	struct kubeletd *kubeletd;
	struct metrics *metrics;
	bool is_ready, was_early; /* another callback came before */
	json_t *greeting;         /* NULL: no pools */
	int changed, allocated, lost;
	struct strbuf told;
	struct err why;
};

struct stand {
	struct loop *loop;
	char dir[64];
	char *plugins_dir;
	struct fake_kubelet *kubelet;
	struct kubeletd_server *server;
	struct allocation_epoch *giving;
	const char *device_paths;
	struct agent first, second;
	int offering, closed;
	struct channel *played; /* the side that the test plays; NULL: none */
	struct strbuf heard;    /* by it, one a line */
	int lost;               /* by it */
	int control;            /* of the process; -1: none */
	pid_t process;
};

/* ---- the two sides --------------------------------------------------------------------------- */

static void on_offering(void *arg)
{
	((struct stand *)arg)->offering++;
}

static void on_closed(void *arg)
{
	((struct stand *)arg)->closed++;
}

static void on_ready(void *arg, const json_t *pools)
{
	struct agent *agent = arg;

	assert_false(agent->is_ready);
	agent->is_ready = true;
	agent->greeting = json_incref((json_t *)pools);
}

static void on_changed(void *arg)
{
	struct agent *agent = arg;

	agent->was_early |= !agent->is_ready;
	agent->changed++;
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	struct agent *agent = arg;

	agent->was_early |= !agent->is_ready;
	strbuf_addf(&agent->told, "%s%s: %s\n", warning ? "!" : "", reason, message);
}

static void on_allocated(void *arg)
{
	struct agent *agent = arg;

	agent->was_early |= !agent->is_ready;
	agent->allocated++;
}

static void on_lost(void *arg, const struct err *err)
{
	struct agent *agent = arg;

	agent->lost++;
	agent->why = *err;
}

/* Returns the other end. */
static int begin_agent(struct stand *s, struct agent *agent)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	agent->metrics = metrics_new();
	agent->kubeletd = kubeletd_new(&(struct kubeletd_config){
		.loop = s->loop,
		.fd = pair[0],
		.ready = on_ready,
		.changed = on_changed,
		.emit = on_told,
		.allocated = on_allocated,
		.lost = on_lost,
		.arg = agent,
		.metrics = agent->metrics,
	});
	return pair[1];
}

static void end_agent(struct agent *agent)
{
	assert_false(agent->was_early);
	kubeletd_free(agent->kubeletd);
	metrics_free(agent->metrics);
	json_decref(agent->greeting);
	strbuf_done(&agent->told);
	*agent = (struct agent){0};
}

static void attach(struct stand *s, struct agent *agent)
{
	kubeletd_server_attach(s->server, begin_agent(s, agent));
	until(s->loop, agent->is_ready);
}

static void start_server(struct stand *s)
{
	s->server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = s->loop,
		.plugins_dir = s->plugins_dir,
		.device_paths = s->device_paths,
		.giving = s->giving,
		.offering = on_offering,
		.arg = s,
	});
}

static void end_server(struct stand *s)
{
	kubeletd_server_close(take_ptr(s->server), on_closed, s);
	assert_int_equal(s->closed, 0);
	until(s->loop, s->closed == 1);
}

static void start_kubelet(struct stand *s)
{
	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/kubeletd.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->plugins_dir = str_printf("%s/device-plugins", s->dir);
	assert_int_equal(mkdir(s->plugins_dir, 0750), 0);
	s->loop = loop_new();
	s->giving = allocation_epoch_new();
	s->control = -1;
	*state = s;
	return 0;
}

/* The process ends with its control. */
static int join_process(struct stand *s)
{
	int status = -1;

	if (s->control >= 0)
		(void)close(s->control);
	s->control = -1;
	if (s->process)
		assert_int_equal(waitpid(s->process, &status, 0), s->process);
	s->process = 0;
	return status;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	end_agent(&s->first);
	end_agent(&s->second);
	channel_free(s->played);
	if (s->server)
		end_server(s);
	(void)join_process(s);
	fake_kubelet_free(s->kubelet);
	loop_free(s->loop);
	allocation_epoch_leave(s->giving);
	/* Whoever made sockets has removed them. */
	assert_int_equal(rmdir(s->plugins_dir), 0);
	assert_int_equal(rmdir(s->dir), 0);
	strbuf_done(&s->heard);
	mem_free(s->plugins_dir);
	mem_free(s);
	return 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static json_t *no_pools(void)
{
	return json_pack("{s:[], s:[]}", "resources", "problems");
}

/* One resource of n tokens. */
static json_t *pools_of(size_t n)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			devices, json_pack("{s:o, s:b}", "id", json_fmt("%zu", i), "healthy", 1));
	return json_pack("{s:[{s:s, s:s, s:i, s:[], s:s, s:[s], s:o}], s:[]}", "resources", "name",
			 X, "kind", "shared", "wanted", (int)n, "causes", "permissions", "rw",
			 "nodes", "/dev/infiniband/rdma_cm", "devices", devices, "problems");
}

static void set(struct agent *agent, json_t *pools)
{
	kubeletd_set(agent->kubeletd, pools, NULL);
	json_decref(pools);
}

static size_t allocatable(const struct stand *s)
{
	return fake_kubelet_allocatable(s->kubelet, X);
}

/* A kubelet, a server and an agent that offers three. */
static void serve(struct stand *s)
{
	start_kubelet(s);
	start_server(s);
	attach(s, &s->first);
	set(&s->first, pools_of(3));
	until(s->loop, allocatable(s) == 3 && kubeletd_are_served(s->first.kubeletd));
}

/* ---- what comes through ---------------------------------------------------------------------- */

TEST_WITH(what_the_agent_sets_the_kubelet_has, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *status = NULL;

	start_kubelet(s);
	start_server(s);
	attach(s, &s->first);
	assert_null(s->first.greeting);
	set(&s->first, no_pools());
	until(s->loop, s->first.changed > 0);
	assert_int_equal(s->offering, 0);
	set(&s->first, pools_of(3));
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(s->offering, 1);
	set(&s->first, pools_of(5));
	until(s->loop, allocatable(s) == 5 && kubeletd_are_served(s->first.kubeletd));
	assert_int_equal(s->offering, 1);
	status = kubeletd_status(s->first.kubeletd);
	assert_int_equal(json_array_size(status), 1);
	assert_string_equal(json_str_at(json_array_get(status, 0), "name"), X);
	assert_true(json_is_true(json_at(json_array_get(status, 0), "registered")));
	assert_int_equal(json_integer_value(json_at(json_array_get(status, 0), "healthy")), 5);
	set(&s->first, no_pools());
	until(s->loop, allocatable(s) == 0);
}

/* Whoever speaks for the agent cannot have the kubelet give a disk to a container. */
TEST_WITH(a_host_path_that_is_not_on_the_list_is_given_to_no_pod, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *status = NULL;
	json_t *pools = pools_of(3);

	json_array_set_new(
		json_at(json_array_get(json_at(pools, "resources"), 0), "nodes"), 0,
		json_pack("{s:s, s:s}", "path", "/dev/infiniband/rdma_cm", "hostPath", "/dev/sda"));
	serve(s);
	set(&s->first, pools);
	until(s->loop, allocatable(s) == 0);
	until(s->loop, kubeletd_has_all(s->first.kubeletd));
	status = kubeletd_status(s->first.kubeletd);
	assert_non_null(strstr(json_str_at(json_array_get(status, 0), "cause"),
			       "/dev/sda is not among the device files that pods may get; add it "
			       "to the agent's --device-paths"));
	/* An administrator who lists it is believed. */
	end_agent(&s->first);
	end_server(s);
	s->closed = 0;
	s->device_paths = "/dev/sd?";
	start_server(s);
	attach(s, &s->first);
	set(&s->first, pools_of(3));
	until(s->loop, allocatable(s) == 3);
}

TEST_WITH(before_anything_is_heard_nothing_is_served, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *status = NULL;

	(void)close(begin_agent(s, &s->first));
	status = kubeletd_status(s->first.kubeletd);
	assert_true(json_is_array(status));
	assert_int_equal(json_array_size(status), 0);
	assert_false(kubeletd_are_served(s->first.kubeletd));
}

TEST_WITH(what_the_kubelet_says_is_told, set_up, tear_down)
{
	struct stand *s = *state;

	start_kubelet(s);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_REFUSES);
	start_server(s);
	attach(s, &s->first);
	set(&s->first, pools_of(3));
	until(s->loop, s->first.told.len > 0);
	assert_true(str_starts(s->first.told.data, "!RegisterRefused: resource " X ": "));
	assert_false(kubeletd_are_served(s->first.kubeletd));
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_WELL);
	until(s->loop, allocatable(s) == 3 && strstr(strbuf_str(&s->first.told), "\nRegistered: "));
	until(s->loop, kubeletd_are_served(s->first.kubeletd));
}

static void on_answer(void *arg, const struct grpc_status *status)
{
	*(int *)arg = (int)status->code;
}

TEST_WITH(a_pod_that_gets_devices_is_told, set_up, tear_down)
{
	char *id = (char[]){"1"};
	DevicePlugin__AllocateRequest request = DEVICE_PLUGIN__ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest one =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest *all[] = {&one};
	struct stand *s = *state;
	auto_free char *path = NULL;
	struct grpc_client *client;
	int code = -1;

	serve(s);
	path = str_printf("%s/%s", s->plugins_dir, fake_kubelet_endpoint(s->kubelet));
	client = grpc_client_new(s->loop, &(struct grpc_client_config){.path = path}, NULL);
	one.device_ids = &id;
	one.n_device_ids = 1;
	request.container_requests = all;
	request.n_container_requests = 1;
	assert_non_null(
		grpc_client_call(client,
				 &(struct grpc_request){
					 .path = "/v1beta1.DevicePlugin/Allocate",
					 .message = &request.base,
					 .response = &device_plugin__allocate_response__descriptor,
					 .done = on_answer,
					 .arg = &code,
				 },
				 NULL));
	assert_int_equal(s->first.allocated, 0);
	assert_int_equal(allocation_epoch_count(s->giving), 0);
	until(s->loop, s->first.allocated == 1);
	until(s->loop, code >= 0);
	assert_int_equal(code, GRPC_OK);
	assert_int_equal(allocation_epoch_count(s->giving), 1);
	grpc_client_free(client);
}

/* No name may be shown twice. */
static void check_names(const char *text)
{
	for (const char *line = text; (line = strstr(line, "# TYPE ")); line++) {
		auto_free char *name = str_ndup(line, strcspn(line + 7, " ") + 8);

		assert_null(strstr(line + 1, name));
	}
}

TEST_WITH(the_server_s_metrics_are_shown_with_the_agent_s, set_up, tear_down)
{
	struct stand *s = *state;
	auto_strbuf struct strbuf with = {0}, without = {0};

	serve(s);
	metrics_render(s->first.metrics, &with);
	assert_non_null(
		strstr(with.data, "\norbweaver_kubelet_registered{resource=\"" X "\"} 1\n"));
	assert_non_null(strstr(with.data, "# TYPE metrics_overflow_total counter\n"));
	check_names(with.data);
	kubeletd_free(take_ptr(s->first.kubeletd));
	metrics_render(s->first.metrics, &without);
	assert_null(strstr(without.data, "orbweaver_kubelet_"));
}

/* ---- agents that come and go ----------------------------------------------------------------- */

TEST_WITH(the_kubelet_does_not_notice_that_the_agent_is_another, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *pools = pools_of(3);

	serve(s);
	(void)fake_kubelet_lowest(s->kubelet);
	for (int i = 0; i < 3; i++) {
		end_agent(&s->first);
		pass(s->loop, 50);
		assert_int_equal(allocatable(s), 3);
		attach(s, &s->first);
		assert_true(json_same(s->first.greeting, pools));
		kubeletd_set(s->first.kubeletd, pools, NULL);
		until(s->loop, kubeletd_are_served(s->first.kubeletd));
	}
	pass(s->loop, 50);
	assert_int_equal(allocatable(s), 3);
	assert_true(fake_kubelet_lowest(s->kubelet) >= 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
	assert_int_equal(fake_kubelet_lists(s->kubelet), 1);
	assert_int_equal(s->offering, 1);
	/*
	 * And it does what the new one says; more devices are no reason not to be ready for a
	 * moment.
	 */
	set(&s->first, pools_of(4));
	assert_true(kubeletd_are_served(s->first.kubeletd));
	until(s->loop, allocatable(s) == 4);
}

TEST_WITH(without_an_agent_a_new_kubelet_is_served, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s);
	end_agent(&s->first);
	fake_kubelet_free(s->kubelet);
	start_kubelet(s);
	until(s->loop, allocatable(s) == 3);
}

TEST_WITH(a_second_agent_takes_the_place_of_the_first, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s);
	attach(s, &s->second);
	until(s->loop, s->first.lost == 1);
	assert_string_equal(s->first.why.reason, "ChannelClosed");
	set(&s->second, pools_of(4));
	until(s->loop, allocatable(s) == 4);
	set(&s->first, pools_of(2));
	pass(s->loop, 50);
	assert_int_equal(allocatable(s), 4);
	assert_int_equal(s->second.lost, 0);
	assert_int_equal(s->first.lost, 1);
}

TEST_WITH(each_agent_is_told_the_state, set_up, tear_down)
{
	struct stand *s = *state;

	start_kubelet(s);
	start_server(s);
	attach(s, &s->first);
	until(s->loop, s->first.changed > 0);
	attach(s, &s->second);
	until(s->loop, s->second.changed > 0);
}

TEST_WITH(with_the_server_its_sockets_go_and_the_agent_hears_it, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
	end_server(s);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 0);
	until(s->loop, s->first.lost == 1);
	assert_string_equal(s->first.why.reason, "ChannelClosed");
	until(s->loop, allocatable(s) == 0);
	set(&s->first, pools_of(2));
	pass(s->loop, 20);
	assert_int_equal(s->first.lost, 1);
}

/* ---- a side that the test plays -------------------------------------------------------------- */

static void on_played_heard(void *arg, const json_t *message)
{
	auto_free char *text = json_text(message);

	strbuf_addf(&((struct stand *)arg)->heard, "%s\n", text);
}

static void on_played_lost(void *arg, const struct err *err)
{
	((struct stand *)arg)->lost++;
}

static void play(struct stand *s, int fd)
{
	channel_free(s->played);
	strbuf_done(&s->heard);
	s->played = channel_new(&(struct channel_config){
		.loop = s->loop,
		.fd = fd,
		.heard = on_played_heard,
		.lost = on_played_lost,
		.arg = s,
	});
}

static void play_agent(struct stand *s)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	kubeletd_server_attach(s->server, pair[0]);
	play(s, pair[1]);
}

static void say(struct stand *s, const char *text)
{
	json_auto_t *message = json_parse(text, strlen(text), NULL);

	assert_non_null(message);
	channel_send(s->played, message);
}

/* Afterwards what was said before has been heard. */
static void say_and_wait(struct stand *s, const char *text)
{
	say(s, text);
	for (int i = 0; i < 5; i++)
		loop_turn(s->loop, false);
}

TEST_WITH(nonsense_from_the_agent_changes_nothing, set_up, tear_down)
{
	static const char *const nonsense[] = {
		"{}",
		"{\"number\": 9}",
		"{\"pools\": null, \"number\": 9}",
		"{\"pools\": [], \"number\": 9}",
		"{\"pools\": {}, \"number\": 9}",
		"{\"pools\": {\"resources\": {}}, \"number\": 9}",
		"{\"pools\": {\"resources\": []}}",
		"{\"pools\": {\"resources\": []}, \"number\": \"9\"}",
		"{\"pools\": {\"resources\": [7]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{}]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{\"name\": \"\"}]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{\"name\": 7}]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{\"name\": \"n\"}]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{\"name\": \"\", \"devices\": []}]}, \"number\": 9}",
		"{\"pools\": {\"resources\": [{\"name\": \"n\", \"devices\": [7]}]}, \"number\": "
		"9}",
		"{\"pools\":{\"resources\":[{\"name\":\"n\",\"devices\":[{\"id\":7}]}]},\"number\":"
		"9}",
		"{\"greeting\": {\"pools\": {\"resources\": []}}}",
	};
	struct stand *s = *state;

	serve(s);
	play_agent(s);
	for (size_t i = 0; i < ARRAY_LEN(nonsense); i++)
		say_and_wait(s, nonsense[i]);
	pass(s->loop, 50);
	assert_null(strstr(strbuf_str(&s->heard), "\"of\":9"));
	assert_int_equal(s->lost, 0);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
	assert_int_equal(allocatable(s), 3);
	assert_int_equal(fake_kubelet_lists(s->kubelet), 1);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
	say(s, "{\"pools\": {\"resources\": []}, \"number\": 10}");
	until(s->loop, allocatable(s) == 0);
	until(s->loop, strstr(strbuf_str(&s->heard), "\"of\":10"));
}

TEST_WITH(an_agent_that_sends_no_frame_is_left, set_up, tear_down)
{
	struct stand *s = *state;
	int pair[2];

	serve(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	kubeletd_server_attach(s->server, pair[0]);
	assert_int_equal(send(pair[1], "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	pass(s->loop, 50);
	play(s, pair[1]);
	until(s->loop, s->lost == 1);
	assert_int_equal(allocatable(s), 3);
	attach(s, &s->second);
	set(&s->second, pools_of(4));
	until(s->loop, allocatable(s) == 4);
}

TEST_WITH(a_state_is_said_when_it_is_another, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s);
	play_agent(s);
	until(s->loop, strstr(strbuf_str(&s->heard), "{\"state\":"));
	assert_true(str_starts(s->heard.data, "{\"greeting\":{\"pools\":{"));
	pass(s->loop, 50);
	strbuf_reset(&s->heard);
	say(s, "{\"pools\": {\"resources\": []}, \"number\": 5}");
	say(s, "{\"pools\": {\"resources\": []}, \"number\": 5}");
	until(s->loop, s->heard.len > 0);
	pass(s->loop, 50);
	/* Each is another than the one before. */
	for (const char *line = s->heard.data, *next; *line; line = next) {
		size_t len = strcspn(line, "\n") + 1;

		next = line + len;
		assert_true(str_starts(line, "{\"state\":"));
		assert_false(strncmp(line, next, len) == 0);
	}
}

/* What the server says of pools that are not the last is not about them. */
TEST_WITH(a_state_of_before_the_last_pools_does_not_count, set_up, tear_down)
{
	struct stand *s = *state;

	play(s, begin_agent(s, &s->first));
	say(s, "{\"greeting\": {\"pools\": null}}");
	until(s->loop, s->first.is_ready);
	set(&s->first, pools_of(3));
	until(s->loop, s->heard.len > 0);
	say(s, "{\"state\": {\"of\": 1, \"status\": [], \"served\": true}}");
	until(s->loop, s->first.changed == 1);
	assert_true(kubeletd_are_served(s->first.kubeletd));

	set(&s->first, pools_of(4));
	assert_false(kubeletd_are_served(s->first.kubeletd));
	say(s, "{\"state\": {\"of\": 1, \"status\": [1], \"served\": true}}");
	until(s->loop, s->first.changed == 2);
	assert_false(kubeletd_are_served(s->first.kubeletd));
	say(s, "{\"state\": {\"of\": 2, \"status\": [], \"served\": false}}");
	until(s->loop, s->first.changed == 3);
	assert_false(kubeletd_are_served(s->first.kubeletd));
	say(s, "{\"state\": {\"of\": 2, \"status\": [], \"served\": true}}");
	until(s->loop, s->first.changed == 4);
	assert_true(kubeletd_are_served(s->first.kubeletd));
}

TEST_WITH(equal_pools_are_sent_once, set_up, tear_down)
{
	struct stand *s = *state;

	play(s, begin_agent(s, &s->first));
	set(&s->first, no_pools());
	set(&s->first, no_pools());
	set(&s->first, json_pack("{s:[]}", "resources"));
	until(s->loop, strstr(strbuf_str(&s->heard), "\"number\":2"));
	pass(s->loop, 20);
	assert_string_equal(s->heard.data,
			    "{\"number\":1,\"pools\":{\"problems\":[],\"resources\":[]}}\n"
			    "{\"number\":2,\"pools\":{\"resources\":[]}}\n");
}

/* The server's greeting has them in it, and some bytes more. */
TEST_WITH(as_many_as_a_node_can_offer_fit_into_a_message, set_up, tear_down)
{
	struct stand *s = *state;

	play(s, begin_agent(s, &s->first));
	set(&s->first, pools_of(POOLS_TOKENS_MAX));
	until(s->loop, s->heard.len > 0);
	assert_in_range(s->heard.len, 30 * POOLS_TOKENS_MAX, JSON_FRAME_MAX - 1000000);
	assert_int_equal(s->first.lost, 0);
}

TEST_WITH(nonsense_from_the_server_does_no_harm, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *status = NULL;

	play(s, begin_agent(s, &s->first));
	say(s, "{\"greeting\": {\"pools\": 5}}");
	say(s, "{\"news\": 5}");
	say(s, "{}");
	say(s, "{\"event\": 5}");
	say(s, "{\"event\": {\"warning\": 1, \"reason\": \"R\", \"message\": \"m\"}}");
	say(s, "{\"state\": 5}");
	say(s, "{\"state\": {\"of\": \"0\", \"status\": {}, \"served\": 1, \"metrics\": 7}}");
	until(s->loop, s->first.changed == 2);
	assert_null(s->first.greeting);
	assert_string_equal(s->first.told.data, "Unknown: \nR: m\n");
	assert_int_equal(s->first.allocated, 0);
	assert_false(kubeletd_are_served(s->first.kubeletd));
	status = kubeletd_status(s->first.kubeletd);
	assert_true(json_is_array(status));
	assert_int_equal(s->first.lost, 0);
	channel_free(take_ptr(s->played));
	until(s->loop, s->first.lost == 1);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void start_process(struct stand *s)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s->process = fork();
	assert_true(s->process >= 0);
	if (s->process == 0) {
		(void)close(pair[0]);
		_exit(kubeletd_run(&(struct kubeletd_process_config){
			.control = pair[1],
			.heartbeat_ms = HEARTBEAT_MS,
			.plugins_dir = s->plugins_dir,
		}));
	}
	(void)close(pair[1]);
	s->control = pair[0];
}

static void send_agent(struct stand *s, struct agent *agent)
{
	int fd = begin_agent(s, agent);

	assert_int_equal(packet_send(s->control, "a", 1, fd, 0), 0);
	(void)close(fd);
	until(s->loop, agent->is_ready);
}

/* Does the process say this? What it said before is passed over. */
static bool says(const struct stand *s, const char *what)
{
	char byte = 0;
	int fd;
	ssize_t n;

	while ((n = packet_receive(s->control, &byte, 1, &fd)) == 1 && byte != what[0])
		assert_int_equal(fd, -1);
	assert_int_not_equal(n, 0);
	return n == 1;
}

static bool says_offering(const struct stand *s)
{
	return says(s, KUBELETD_OFFERING);
}

TEST_WITH(the_process_serves_one_agent_after_the_other, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *pools = pools_of(3);

	start_process(s);
	start_kubelet(s);
	send_agent(s, &s->first);
	set(&s->first, no_pools());
	until(s->loop, s->first.changed > 0);
	assert_false(says_offering(s));
	kubeletd_set(s->first.kubeletd, pools, NULL);
	until(s->loop, says_offering(s));
	until(s->loop, allocatable(s) == 3);
	end_agent(&s->first);
	send_agent(s, &s->second);
	assert_true(json_same(s->second.greeting, pools));
	set(&s->second, pools_of(4));
	until(s->loop, allocatable(s) == 4);
	assert_false(says_offering(s));
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
}

TEST_WITH(the_process_says_that_it_turns, set_up, tear_down)
{
	struct stand *s = *state;

	start_process(s);
	for (int i = 0; i < 3; i++)
		until(s->loop, says(s, KUBELETD_ALIVE));
}

TEST_WITH(the_process_ends_with_its_control, set_up, tear_down)
{
	struct stand *s = *state;

	start_process(s);
	start_kubelet(s);
	send_agent(s, &s->first);
	set(&s->first, pools_of(3));
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(join_process(s), 0);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 0);
	until(s->loop, s->first.lost == 1);
	until(s->loop, allocatable(s) == 0);
}

/* A path that leads to the folder that it led to before, as a mount does. */
TEST_WITH(the_process_ends_when_the_kubelet_s_folder_is_made_anew, set_up, tear_down)
{
	struct stand *s = *state;
	int fd = open(s->plugins_dir, O_PATH | O_DIRECTORY);
	char *folder = s->plugins_dir;
	int status;

	s->plugins_dir = str_printf("/proc/self/fd/%d", fd);
	start_process(s);
	mem_free(s->plugins_dir);
	s->plugins_dir = folder;
	until(s->loop, says(s, KUBELETD_ALIVE));
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0750), 0);
	assert_int_equal(waitpid(s->process, &status, 0), s->process);
	s->process = 0;
	assert_int_equal(WEXITSTATUS(status), 1);
	(void)close(fd);
}

TEST_WITH(a_packet_without_a_channel_does_not_end_the_process, set_up, tear_down)
{
	struct stand *s = *state;

	start_process(s);
	start_kubelet(s);
	send_agent(s, &s->first);
	assert_int_equal(packet_send(s->control, "a", 1, -1, 0), 0);
	set(&s->first, pools_of(3));
	until(s->loop, allocatable(s) == 3);
	send_agent(s, &s->second);
	set(&s->second, pools_of(4));
	until(s->loop, allocatable(s) == 4);
}

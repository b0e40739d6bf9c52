// SPDX-License-Identifier: Apache-2.0
/* Device plugins and kubelets that restart, hang, refuse and wipe; and two agents side by side. */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/grpc/client.h"
#include "lib/grpc/message.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/device_plugins.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/registration.h"
#include "tests/fakes/kubelet.h"
#include "tests/support/until.h"

#define X "spidernet.io/x"
/* What should happen within this time has a fault if it does not. */
struct stand {
	struct loop *loop;
	char dir[64];
	char *plugins_dir, *devinfo_dir;
	struct fake_kubelet *kubelet;
	struct device_plugins *plugins;
	struct metrics *metrics;
	int changed, allocated, closed;
	struct strbuf told; /* "reason;" each */
	json_t *pools;
};

static int64_t leapt_us;

/* Time that a test can let pass at once; timers keep their own. */
int64_t clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000 + leapt_us;
}

/* Some time later, when everybody has looked. */
static void leap(struct stand *s, int64_t ms)
{
	auto_free char *path = str_printf("%s/poke", s->plugins_dir);

	leapt_us += ms * 1000;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(rmdir(path), 0);
	pass(s->loop, 50);
}

static void on_changed(void *arg)
{
	((struct stand *)arg)->changed++;
}

static void on_allocated(void *arg)
{
	((struct stand *)arg)->allocated++;
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	struct stand *s = arg;

	strbuf_addf(&s->told, "%s%s: %s\n", warning ? "!" : "", reason, message);
}

static void on_closed(void *arg)
{
	((struct stand *)arg)->closed++;
}

static struct device_plugins *agent(struct stand *s)
{
	return device_plugins_new(s->loop, &(struct device_plugins_config){
						   .dir = s->plugins_dir,
						   .devinfo_dir = s->devinfo_dir,
						   .changed = on_changed,
						   .emit = on_told,
						   .allocated = on_allocated,
						   .arg = s,
						   .metrics = s->metrics,
					   });
}

/* One resource with n VFs, of which the last is not healthy if wanted so. */
static json_t *pools_with(size_t n, bool last_is_healthy)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *id = json_fmt("0000:3b:00.%zu", i + 1);

		(void)json_array_append_new(
			devices,
			json_pack("{s:O, s:b, s:i, s:s, s:[o], s:{}, s:{s:s, s:s, s:{s:o}}}", "id",
				  id, "healthy", last_is_healthy || i + 1 < n, "numa", 0, "pf",
				  "0000:3b:00.0", "nodes", json_fmt("/dev/infiniband/uverbs%zu", i),
				  "env", "info", "type", "pci", "version", "1.1.0", "pci",
				  "pci-address", id));
	}
	return json_pack("{s:[{s:s, s:s, s:s, s:i, s:s, s:[s], s:o}], s:[]}", "resources", "name",
			 X, "kind", "sriov", "policy", "spread", "wanted", 3, "env",
			 "PCIDEVICE_SPIDERNET_IO_X", "causes", "one VF is not there yet", "devices",
			 devices, "problems");
}

static void offer(struct stand *s, struct device_plugins *plugins, json_t *pools)
{
	device_plugins_set(plugins, pools);
	json_decref(pools);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/plugins.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->plugins_dir = str_printf("%s/device-plugins", s->dir);
	s->devinfo_dir = str_printf("%s/devinfo/dp", s->dir);
	assert_int_equal(mkdir(s->plugins_dir, 0750), 0);
	s->loop = loop_new();
	s->metrics = metrics_new();
	s->plugins = agent(s);
	*state = s;
	return 0;
}

static void close_agent(struct stand *s, struct device_plugins *plugins)
{
	int before = s->closed;

	device_plugins_close(plugins, on_closed, s);
	until(s->loop, s->closed == before + 1);
}

static void remove_tree(const char *path)
{
	auto_closedir DIR *files = opendir(path);
	const struct dirent *file;

	while (files && (file = readdir(files))) {
		auto_free char *name = str_printf("%s/%s", path, file->d_name);

		if (file->d_name[0] == '.' && (file->d_name[1] == '\0' || file->d_name[1] == '.'))
			continue;
		if (file->d_type == DT_DIR)
			remove_tree(name);
		else
			(void)unlink(name);
	}
	(void)rmdir(path);
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	if (s->plugins)
		close_agent(s, s->plugins);
	fake_kubelet_free(s->kubelet);
	loop_free(s->loop);
	metrics_free(s->metrics);
	remove_tree(s->dir);
	strbuf_done(&s->told);
	mem_free(s->plugins_dir);
	mem_free(s->devinfo_dir);
	mem_free(s);
	return 0;
}

static size_t allocatable(const struct stand *s)
{
	return fake_kubelet_allocatable(s->kubelet, X);
}

/* A served resource of three devices. */
static void serve(struct stand *s, enum fake_kubelet_kind kind)
{
	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, kind);
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, allocatable(s) == 3);
}

static const json_t *status_of(struct device_plugins *plugins, json_t **ret_all)
{
	*ret_all = device_plugins_status(plugins);
	return json_array_get(*ret_all, 0);
}

static bool exists(const char *dir, const char *name)
{
	auto_free char *path = str_printf("%s/%s", dir, name);

	return access(path, F_OK) == 0;
}

/* ---- registration ---------------------------------------------------------------------------- */

TEST_WITH(a_resource_is_registered_and_listed, set_up, tear_down)
{
	static const enum fake_kubelet_kind kinds[] = {FAKE_KUBELET_OLD, FAKE_KUBELET_NEW,
						       FAKE_KUBELET_STRICT};
	struct stand *s = *state;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *all = NULL;
		const json_t *status;

		serve(s, kinds[i]);
		assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
		status = status_of(s->plugins, &all);
		assert_string_equal(json_str_at(status, "name"), X);
		assert_true(json_is_true(json_at(status, "registered")));
		assert_int_equal(json_integer_value(json_at(status, "healthy")), 3);
		assert_null(json_at(status, "cause"));
		fake_kubelet_free(take_ptr(s->kubelet));
	}
	assert_true(s->changed > 0);
}

/* The recorded request, with the options that kubelets to 1.24 read from it. */
TEST_WITH(register_is_the_recorded_request, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *want = NULL;
	auto_strbuf struct strbuf endpoint = {0};

	serve(s, FAKE_KUBELET_OLD);
	for (const char *p = fake_kubelet_endpoint(s->kubelet); *p; p++)
		strbuf_addf(&endpoint, "%02x", (unsigned char)*p);
	want = str_printf("0a0776316265746131"
			  "12%02zx%s"
			  "1a0e7370696465726e65742e696f2f78"
			  "22021001",
			  strlen(fake_kubelet_endpoint(s->kubelet)), endpoint.data);
	assert_string_equal(fake_kubelet_request(s->kubelet), want);
}

TEST_WITH(it_waits_for_a_kubelet_that_comes_later, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *before = NULL;
	const json_t *status;

	offer(s, s->plugins, pools_with(3, true));
	pass(s->loop, 100);
	status = status_of(s->plugins, &before);
	assert_false(json_is_true(json_at(status, "registered")));
	assert_non_null(strstr(json_str_at(status, "cause"), "is the kubelet running?"));
	assert_false(device_plugins_are_served(s->plugins));
	serve(s, FAKE_KUBELET_NEW);
	assert_true(device_plugins_are_served(s->plugins));
}

TEST_WITH(a_list_is_sent_only_when_it_has_changed, set_up, tear_down)
{
	struct stand *s = *state;
	json_t *causes;
	json_auto_t *pools = pools_with(3, true);

	serve(s, FAKE_KUBELET_NEW);
	assert_int_equal(fake_kubelet_lists(s->kubelet), 1);
	offer(s, s->plugins, pools_with(3, true));
	/* Something else has changed. */
	causes = json_object_get(json_array_get(json_object_get(pools, "resources"), 0), "causes");
	(void)json_array_append_new(causes, json_string("news"));
	device_plugins_set(s->plugins, pools);
	pass(s->loop, 100);
	assert_int_equal(fake_kubelet_lists(s->kubelet), 1);

	offer(s, s->plugins, pools_with(3, false));
	until(s->loop, allocatable(s) == 2);
	assert_int_equal(fake_kubelet_lists(s->kubelet), 2);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
}

TEST_WITH(a_device_that_vanishes_is_unhealthy_at_once, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *all = NULL;

	serve(s, FAKE_KUBELET_NEW);
	offer(s, s->plugins, pools_with(2, true));
	until(s->loop, allocatable(s) == 2);
	assert_int_equal(fake_kubelet_capacity(s->kubelet, X), 3);
	assert_string_equal(json_str_at(status_of(s->plugins, &all), "cause"),
			    "one VF is not there yet");
	leap(s, 6000);
	until(s->loop, fake_kubelet_capacity(s->kubelet, X) == 2);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
}

TEST_WITH(an_empty_pool_is_registered, set_up, tear_down)
{
	struct stand *s = *state;

	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	offer(s, s->plugins, pools_with(0, true));
	until(s->loop, fake_kubelet_lists(s->kubelet) == 1);
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
}

TEST_WITH(a_resource_that_is_wanted_no_more_goes, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	offer(s, s->plugins, json_pack("{s:[], s:[]}", "resources", "problems"));
	until(s->loop, allocatable(s) == 0);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
	/* It may come back while its devices are remembered. */
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
	offer(s, s->plugins, json_pack("{s:[], s:[]}", "resources", "problems"));
	leap(s, 6000);
	until(s->loop, fake_kubelet_sockets(s->plugins_dir) == 0);
	assert_false(exists(s->devinfo_dir, "spidernet.io-x-0000:3b:00.1-device.json"));
}

/* ---- never lost ------------------------------------------------------------------------------ */

TEST_WITH(a_restarted_kubelet_is_met_again, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	for (int i = 0; i < 5; i++) {
		fake_kubelet_free(s->kubelet);
		s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir,
					      i % 2 ? FAKE_KUBELET_NEW : FAKE_KUBELET_OLD);
		until(s->loop, allocatable(s) == 3);
	}
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
}

TEST_WITH(a_directory_that_was_removed_is_found_again, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	fake_kubelet_free(take_ptr(s->kubelet));
	remove_tree(s->plugins_dir);
	pass(s->loop, 300);
	assert_int_equal(mkdir(s->plugins_dir, 0750), 0);
	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	until(s->loop, allocatable(s) == 3);
}

TEST_WITH(a_wiped_directory_costs_nothing_while_the_kubelet_lives, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *path = NULL;

	serve(s, FAKE_KUBELET_NEW);
	(void)fake_kubelet_lowest(s->kubelet);
	path = str_printf("%s/%s", s->plugins_dir, fake_kubelet_endpoint(s->kubelet));
	assert_int_equal(unlink(path), 0);
	until(s->loop, access(path, F_OK) == 0);
	pass(s->loop, 100);
	assert_int_equal(allocatable(s), 3);
	assert_true(fake_kubelet_lowest(s->kubelet) >= 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
}

TEST_WITH(a_stream_that_ended_is_followed_by_a_registration, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	for (size_t i = 1; i <= 3; i++) {
		fake_kubelet_end_stream(s->kubelet, X);
		assert_int_equal(allocatable(s), 0);
		until(s->loop, allocatable(s) == 3);
		assert_int_equal(fake_kubelet_registrations(s->kubelet), 1 + i);
	}
}

TEST_WITH(a_kubelet_that_ends_every_stream_is_not_bothered_all_the_time, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_RESTLESS);
	fake_kubelet_end_stream(s->kubelet, X);
	pass(s->loop, 1500);
	assert_in_range(fake_kubelet_registrations(s->kubelet), 3, 12);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_WELL);
	until(s->loop, allocatable(s) == 3);
}

static bool is_called(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

/* bind(2) makes the name, listen(2) comes later. */
TEST_WITH(a_kubelet_that_does_not_listen_yet_is_tried_again, set_up, tear_down)
{
	struct stand *s = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	offer(s, s->plugins, pools_with(3, true));
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/kubelet.sock",
		       s->plugins_dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	pass(s->loop, 100);
	assert_int_equal(s->told.len, 0);
	assert_int_equal(listen(fd, 1), 0);
	until(s->loop, is_called(fd));
}

TEST_WITH(a_refusal_is_told_with_its_text_and_tried_again, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *all = NULL;

	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_REFUSES);
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, fake_kubelet_registrations(s->kubelet) >= 3);
	assert_non_null(strstr(json_str_at(status_of(s->plugins, &all), "cause"),
			       "the ResourceName \"" X "\" is invalid"));
	assert_string_equal(s->told.data,
			    "!RegisterRefused: resource " X ": the kubelet refuses the resource: "
			    "the ResourceName \"" X "\" is invalid (Unknown)\n");
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_WELL);
	until(s->loop, allocatable(s) == 3);
	assert_non_null(strstr(s->told.data, "Registered: resource "));
}

TEST_WITH(a_kubelet_that_hangs_does_not_hold_up_the_next, set_up, tear_down)
{
	struct stand *s = *state;

	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_HANGS);
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, fake_kubelet_registrations(s->kubelet) == 1);
	pass(s->loop, 200);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
	fake_kubelet_free(s->kubelet);
	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	until(s->loop, allocatable(s) == 3);
}

static void on_registration_done(void *arg, const struct err *why)
{
	if (why)
		*(struct err *)arg = *why;
}

TEST_WITH(a_registration_has_a_deadline, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *path = str_printf("%s/kubelet.sock", s->plugins_dir);
	struct err why = {0};
	struct registration *registration;

	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_NEW);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_HANGS);
	registration = registration_new(s->loop,
					&(struct registration_config){
						.kubelet = path,
						.endpoint = "x.sock",
						.resource = X,
						.timeout_ms = 50,
						.done = on_registration_done,
						.arg = &why,
					},
					NULL);
	assert_non_null(registration);
	until(s->loop, why.class != ERR_NONE);
	assert_string_equal(why.reason, "KubeletSilent");
	registration_free(registration);
}

TEST_WITH(a_registration_without_kubelet_fails_at_once, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *path = str_printf("%s/kubelet.sock", s->plugins_dir);
	struct err err = {0};

	assert_null(registration_new(
		s->loop,
		&(struct registration_config){.kubelet = path, .endpoint = "x.sock", .resource = X},
		&err));
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "KubeletUnavailable");
}

TEST_WITH(a_registration_that_nothing_follows_is_repeated, set_up, tear_down)
{
	struct stand *s = *state;
	auto_strbuf struct strbuf text = {0};

	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_OLD);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_IGNORES);
	offer(s, s->plugins, pools_with(3, true));
	until(s->loop, fake_kubelet_registrations(s->kubelet) == 1);
	pass(s->loop, 50);
	fake_kubelet_set_mood(s->kubelet, FAKE_KUBELET_WELL);
	leap(s, 6000);
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 2);
	metrics_render(s->metrics, &text);
	assert_non_null(strstr(strbuf_str(&text), "result=\"NotWatched\""));
}

/* ---- several agents -------------------------------------------------------------------------- */

/* A socket as an agent that was killed leaves it; returns its name, new. */
static char *leave_socket(const struct stand *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *name = endpoint_name(X, "00000000ffabcdef");

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", s->plugins_dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return name;
}

TEST_WITH(sockets_of_killed_agents_are_removed_and_only_those, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *stale = leave_socket(s);
	struct device_plugins *second;

	serve(s, FAKE_KUBELET_NEW);
	assert_false(exists(s->plugins_dir, stale));
	mem_free(stale);
	stale = leave_socket(s);
	until(s->loop, !exists(s->plugins_dir, stale));
	second = agent(s);
	offer(s, second, pools_with(3, true));
	until(s->loop, fake_kubelet_sockets(s->plugins_dir) == 2);
	leap(s, 60000);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 2);
	close_agent(s, second);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
}

static void a_successor_takes_over(void **state, enum fake_kubelet_kind kind, bool without_gap)
{
	struct stand *s = *state;
	struct device_plugins *second;
	json_auto_t *all = NULL;
	size_t registrations;

	serve(s, kind);
	(void)fake_kubelet_lowest(s->kubelet);
	pass(s->loop, 2); /* instances are ordered by milliseconds */
	second = agent(s);
	offer(s, second, pools_with(3, true));
	until(s->loop, fake_kubelet_registrations(s->kubelet) == 2 && allocatable(s) == 3);
	/* The old one gives way, and does not fight for a stream that is taken from it. */
	leap(s, 500);
	leap(s, 60000);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 2);
	assert_string_equal(json_str_at(status_of(s->plugins, &all), "cause"),
			    "a newer agent on this node serves it");
	/* Who has made way is no less up for it, or it would be removed before its successor is. */
	assert_true(device_plugins_are_served(s->plugins));
	assert_true(device_plugins_are_served(second));
	close_agent(s, s->plugins);
	s->plugins = second;
	pass(s->loop, 100);
	until(s->loop, allocatable(s) == 3);
	if (without_gap)
		assert_int_equal(fake_kubelet_lowest(s->kubelet), 3);
	registrations = fake_kubelet_registrations(s->kubelet);
	leap(s, 60000);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), registrations);
}

TEST_WITH(a_successor_takes_over_on_old_kubelets, set_up, tear_down)
{
	a_successor_takes_over(state, FAKE_KUBELET_OLD, true);
}

TEST_WITH(a_successor_takes_over_on_strict_kubelets, set_up, tear_down)
{
	a_successor_takes_over(state, FAKE_KUBELET_STRICT, true);
}

/*
 * Here the end of the old agent costs the new one its stream, whatever anyone does: it has to come
 * back.
 */
TEST_WITH(a_successor_takes_over_on_new_kubelets, set_up, tear_down)
{
	a_successor_takes_over(state, FAKE_KUBELET_NEW, false);
}

TEST_WITH(when_the_successor_dies_the_old_agent_is_back, set_up, tear_down)
{
	struct stand *s = *state;
	struct device_plugins *second;

	serve(s, FAKE_KUBELET_OLD);
	pass(s->loop, 2);
	second = agent(s);
	offer(s, second, pools_with(2, true));
	until(s->loop, allocatable(s) == 2);
	close_agent(s, second);
	assert_int_equal(allocatable(s), 0);
	until(s->loop, allocatable(s) == 3);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 3);
}

TEST_WITH(after_a_restart_of_the_kubelet_the_younger_agent_has_it, set_up, tear_down)
{
	struct stand *s = *state;
	struct device_plugins *second;

	serve(s, FAKE_KUBELET_OLD);
	pass(s->loop, 2);
	second = agent(s);
	offer(s, second, pools_with(2, true));
	until(s->loop, allocatable(s) == 2);
	fake_kubelet_free(s->kubelet);
	s->kubelet = fake_kubelet_new(s->loop, s->plugins_dir, FAKE_KUBELET_OLD);
	until(s->loop, allocatable(s) == 2);
	leap(s, 500);
	leap(s, 60000);
	assert_int_equal(allocatable(s), 2);
	assert_int_equal(fake_kubelet_registrations(s->kubelet), 1);
	close_agent(s, s->plugins);
	s->plugins = second;
	pass(s->loop, 100);
	assert_int_equal(allocatable(s), 2);
}

TEST_WITH(at_the_end_sockets_go_and_files_stay, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, FAKE_KUBELET_NEW);
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 1);
	close_agent(s, take_ptr(s->plugins));
	assert_int_equal(fake_kubelet_sockets(s->plugins_dir), 0);
	until(s->loop, allocatable(s) == 0);
	assert_true(exists(s->devinfo_dir, "spidernet.io-x-0000:3b:00.1-device.json"));
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct answer {
	bool done;
	struct grpc_status status;
	char text[256]; /* what was answered */
};

static void on_allocate_answer(void *arg, const struct ProtobufCMessage *message)
{
	struct answer *answer = arg;
	const DevicePlugin__AllocateResponse *response = (const void *)message;
	const DevicePlugin__ContainerAllocateResponse *one = response->container_responses[0];

	(void)snprintf(answer->text, sizeof(answer->text), "%zu %s=%s %zu %s %s %s",
		       response->n_container_responses, one->envs[0]->key, one->envs[0]->value,
		       one->n_devices, one->devices[0]->container_path, one->devices[0]->host_path,
		       one->devices[0]->permissions);
}

static void on_preferred_answer(void *arg, const struct ProtobufCMessage *message)
{
	struct answer *answer = arg;
	const DevicePlugin__PreferredAllocationResponse *response = (const void *)message;
	const DevicePlugin__ContainerPreferredAllocationResponse *one =
		response->container_responses[0];

	(void)snprintf(answer->text, sizeof(answer->text), "%zu %s", one->n_device_ids,
		       one->n_device_ids ? one->device_ids[0] : "");
}

static void on_options_answer(void *arg, const struct ProtobufCMessage *message)
{
	struct answer *answer = arg;
	const DevicePlugin__DevicePluginOptions *options = (const void *)message;

	(void)snprintf(answer->text, sizeof(answer->text), "%d %d", options->pre_start_required,
		       options->get_preferred_allocation_available);
}

static void on_answer_done(void *arg, const struct grpc_status *status)
{
	struct answer *answer = arg;

	answer->status = *status;
	answer->done = true;
}

static struct answer ask(struct stand *s, const struct grpc_request *base)
{
	auto_free char *path =
		str_printf("%s/%s", s->plugins_dir, fake_kubelet_endpoint(s->kubelet));
	struct grpc_client *client =
		grpc_client_new(s->loop, &(struct grpc_client_config){.path = path}, NULL);
	struct answer answer = {0};
	struct grpc_request request = *base;

	request.done = on_answer_done;
	request.arg = &answer;
	assert_non_null(client);
	assert_non_null(grpc_client_call(client, &request, NULL));
	until(s->loop, answer.done);
	grpc_client_free(client);
	return answer;
}

static struct answer ask_allocate(struct stand *s, const char *const *ids, size_t n)
{
	DevicePlugin__AllocateRequest request = DEVICE_PLUGIN__ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest one =
		DEVICE_PLUGIN__CONTAINER_ALLOCATE_REQUEST__INIT;
	DevicePlugin__ContainerAllocateRequest *all[] = {&one};

	one.device_ids = (char **)ids;
	one.n_device_ids = n;
	request.container_requests = all;
	request.n_container_requests = 1;
	return ask(s, &(struct grpc_request){
			      .path = "/v1beta1.DevicePlugin/Allocate",
			      .message = &request.base,
			      .response = &device_plugin__allocate_response__descriptor,
			      .message_fn = on_allocate_answer,
		      });
}

TEST_WITH(allocate_gives_nodes_and_variables, set_up, tear_down)
{
	struct stand *s = *state;
	const char *ids[] = {"0000:3b:00.2"};
	struct answer answer;

	serve(s, FAKE_KUBELET_NEW);
	answer = ask_allocate(s, ids, 1);
	assert_int_equal(answer.status.code, GRPC_OK);
	assert_string_equal(answer.text, "1 PCIDEVICE_SPIDERNET_IO_X=0000:3b:00.2 1 "
					 "/dev/infiniband/uverbs1 /dev/infiniband/uverbs1 rw");
	assert_int_equal(s->allocated, 1);
}

TEST_WITH(allocate_names_what_it_cannot_give, set_up, tear_down)
{
	struct stand *s = *state;
	const char *unknown[] = {"0000:3b:00.7"}, *sick[] = {"0000:3b:00.3"};
	struct answer answer;

	serve(s, FAKE_KUBELET_NEW);
	offer(s, s->plugins, pools_with(3, false));
	answer = ask_allocate(s, unknown, 1);
	assert_int_equal(answer.status.code, GRPC_NOT_FOUND);
	assert_non_null(strstr(answer.status.text, "0000:3b:00.7"));
	answer = ask_allocate(s, sick, 1);
	assert_int_equal(answer.status.code, GRPC_FAILED_PRECONDITION);
	assert_non_null(strstr(answer.status.text, "0000:3b:00.3"));
	assert_int_equal(s->allocated, 0);
}

static struct answer ask_preferred(struct stand *s, const char *const *available, size_t n,
				   int size)
{
	DevicePlugin__PreferredAllocationRequest request =
		DEVICE_PLUGIN__PREFERRED_ALLOCATION_REQUEST__INIT;
	DevicePlugin__ContainerPreferredAllocationRequest one =
		DEVICE_PLUGIN__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	DevicePlugin__ContainerPreferredAllocationRequest *all[] = {&one};

	one.available_device_ids = (char **)available;
	one.n_available_device_ids = n;
	one.allocation_size = size;
	request.container_requests = all;
	request.n_container_requests = 1;
	return ask(s, &(struct grpc_request){
			      .path = "/v1beta1.DevicePlugin/GetPreferredAllocation",
			      .message = &request.base,
			      .response = &device_plugin__preferred_allocation_response__descriptor,
			      .message_fn = on_preferred_answer,
		      });
}

TEST_WITH(preferred_allocation_is_answered, set_up, tear_down)
{
	static const int bad_sizes[] = {-1, 3, INT32_MAX};
	struct stand *s = *state;
	const char *available[] = {"0000:3b:00.3", "0000:3b:00.2"};
	struct answer answer;

	serve(s, FAKE_KUBELET_NEW);
	answer = ask_preferred(s, available, 2, 1);
	assert_string_equal(answer.text, "1 0000:3b:00.2");
	for (size_t i = 0; i < ARRAY_LEN(bad_sizes); i++) {
		answer = ask_preferred(s, available, 2, bad_sizes[i]);
		assert_int_equal(answer.status.code, GRPC_INVALID_ARGUMENT);
	}
}

TEST_WITH(options_and_pre_start_are_answered, set_up, tear_down)
{
	struct stand *s = *state;
	DevicePlugin__Empty empty = DEVICE_PLUGIN__EMPTY__INIT;
	DevicePlugin__PreStartContainerRequest start =
		DEVICE_PLUGIN__PRE_START_CONTAINER_REQUEST__INIT;
	struct answer answer;

	serve(s, FAKE_KUBELET_NEW);
	answer = ask(s, &(struct grpc_request){
				.path = "/v1beta1.DevicePlugin/GetDevicePluginOptions",
				.message = &empty.base,
				.response = &device_plugin__device_plugin_options__descriptor,
				.message_fn = on_options_answer,
			});
	assert_string_equal(answer.text, "0 1");
	answer =
		ask(s, &(struct grpc_request){
			       .path = "/v1beta1.DevicePlugin/PreStartContainer",
			       .message = &start.base,
			       .response = &device_plugin__pre_start_container_response__descriptor,
		       });
	assert_int_equal(answer.status.code, GRPC_OK);
}

/* ---- device-info files ----------------------------------------------------------------------- */

static char *devinfo_text(const struct stand *s, const char *name)
{
	auto_free char *path = str_printf("%s/%s", s->devinfo_dir, name);
	struct strbuf text = {0};

	assert_int_equal(fs_read(AT_FDCWD, path, 4096, &text, NULL), 0);
	return strbuf_take(&text);
}

TEST_WITH(device_info_is_there_before_it_is_needed, set_up, tear_down)
{
	struct stand *s = *state;
	const char *ids[] = {"0000:3b:00.2"};
	auto_free char *path = NULL, *text = NULL;
	struct stat st;

	serve(s, FAKE_KUBELET_NEW);
	text = devinfo_text(s, "spidernet.io-x-0000:3b:00.2-device.json");
	assert_string_equal(text, "{\"pci\":{\"pci-address\":\"0000:3b:00.2\"},\"type\":\"pci\","
				  "\"version\":\"1.1.0\"}");
	path = str_printf("%s/spidernet.io-x-0000:3b:00.2-device.json", s->devinfo_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
	/* Another device plugin that ends removes all that have our names. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ask_allocate(s, ids, 1).status.code, GRPC_OK);
	assert_int_equal(access(path, F_OK), 0);
}

TEST_WITH(stale_device_info_goes_and_that_of_others_stays, set_up, tear_down)
{
	static const char *const names[] = {
		"spidernet.io-x-0000:3b:00.6-device.json",   /* ours, from an earlier run */
		"spidernet.io-x-y-0000:3b:00.6-device.json", /* resource x-y's */
		"spidernet.io-x-note",
		"spidernet.io-x-10000:e1:00.2-device.json", /* ours, behind a VMD bridge */
	};
	struct stand *s = *state;
	auto_free char *parent = str_printf("%s/devinfo", s->dir);

	assert_int_equal(mkdir(parent, 0755), 0);
	assert_int_equal(mkdir(s->devinfo_dir, 0755), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *path = str_printf("%s/%s", s->devinfo_dir, names[i]);

		assert_int_equal(fs_write_atomic(AT_FDCWD, path, "{}", 2, 0444, NULL), 0);
	}
	serve(s, FAKE_KUBELET_NEW);
	assert_false(exists(s->devinfo_dir, names[0]));
	assert_true(exists(s->devinfo_dir, names[1]));
	assert_true(exists(s->devinfo_dir, names[2]));
	assert_false(exists(s->devinfo_dir, names[3]));
	assert_true(exists(s->devinfo_dir, "spidernet.io-x-0000:3b:00.3-device.json"));
	offer(s, s->plugins, pools_with(2, true));
	assert_true(exists(s->devinfo_dir, "spidernet.io-x-0000:3b:00.3-device.json"));
	leap(s, 6000);
	until(s->loop, !exists(s->devinfo_dir, "spidernet.io-x-0000:3b:00.3-device.json"));
}

TEST_WITH(device_info_that_cannot_be_written_is_told_and_stops_nothing, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *parent = str_printf("%s/devinfo", s->dir);
	const char *ids[] = {"0000:3b:00.2"};

	assert_int_equal(fs_write_atomic(AT_FDCWD, parent, "", 0, 0644, NULL), 0);
	serve(s, FAKE_KUBELET_NEW);
	assert_true(str_starts(s->told.data, "!DevinfoNotWritten: resource " X ": "));
	assert_int_equal(ask_allocate(s, ids, 1).status.code, GRPC_OK);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(names_of_sockets_are_told_from_others)
{
	static const char *const foreign[] = {
		"kubelet.sock",
		"",
		".ow.sock",
		"spidernet.io_x.sock",
		".spidernet.io_x.12345678.0123456789abcdef.ow.sock.new",
		".x.12345678.0123456789abcdef.ow.sock",
		"x.1234567g.0123456789abcdef.ow.sock",
		"x.12345678.0123456789ABCDEF.ow.sock",
		"x-12345678.0123456789abcdef.ow.sock",
		".12345678.0123456789abcdef.ow.sock",
	};
	struct endpoint_parts parts;
	char instance[ENDPOINT_INSTANCE_LEN + 1];
	auto_free char *name = NULL, *other = NULL;

	endpoint_instance(instance);
	name = endpoint_name("a.very.long.prefix.of.somebody.example.com/with-a-long-name",
			     instance);
	assert_true(endpoint_parse(name, &parts));
	assert_string_equal(parts.instance, instance);
	assert_null(strchr(name, '/'));
	assert_true(strlen("/var/lib/kubelet/device-plugins/") + strlen(name) <=
		    GRPC_SERVER_PATH_MAX);
	other = endpoint_name("a.very.long.prefix.of.somebody.example.com/with-a-long-nose",
			      instance);
	assert_string_not_equal(name, other);
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		assert_false(endpoint_parse(foreign[i], &parts));
}

TEST(a_folder_that_cannot_be_read_hides_other_agents)
{
	struct endpoint_others others = {0};
	struct err err = {0};

	assert_int_equal(endpoint_scan("/nonexistent/device-plugins", "x", &others, &err), -1);
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "PluginDirUnreadable");
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Our half of the node beside kubelets from 1.20 to 1.36, one after the other: registration, lists,
 * preferences, allocations, restarts, what pods have. One of them is tested for real
 * (tests/integration/kubelet_test.sh); what the others do differently is the table in
 * tests/fakes/kubelet_versions.h.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "tests/fakes/kubelet_node.h"
#include "tests/support/until.h"

#define X "spidernet.io/x"

struct stand {
	struct loop *loop;
	char dir[64];
	struct kubelet_node *node;
	/* kubeletd with the agent's line to it; two of each while an agent is replaced. */
	struct side {
		struct kubeletd_server *server;
		struct kubeletd *agent;
	} first, second;
	struct pod_resources *resources;
	char *allocated; /* what pods have, as text; NULL: not known */
	int closed;
};

/* ---- our half -------------------------------------------------------------------------------- */

static void nothing(void *arg)
{
}

static void on_ready(void *arg, const json_t *pools)
{
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
}

static void on_lost(void *arg, const struct err *err)
{
	fail_msg("lost: %s", err->text);
}

static void on_closed(void *arg)
{
	((struct stand *)arg)->closed++;
}

static void on_allocated(void *arg, const json_t *allocated, const struct err *err)
{
	struct stand *s = arg;

	mem_free(s->allocated);
	s->allocated = allocated ? json_text(allocated) : NULL;
}

static void begin(struct stand *s, struct side *side)
{
	auto_free char *plugins = str_printf("%s/device-plugins", s->dir);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	side->agent = kubeletd_new(&(struct kubeletd_config){
		.loop = s->loop,
		.fd = pair[0],
		.ready = on_ready,
		.changed = nothing,
		.emit = on_told,
		.allocated = nothing,
		.lost = on_lost,
		.arg = s,
	});
	side->server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = s->loop,
		.plugins_dir = plugins,
		.offering = nothing,
		.arg = s,
	});
	kubeletd_server_attach(side->server, pair[1]);
}

static void end(struct stand *s, struct side *side)
{
	int before = s->closed;

	if (!side->server)
		return;
	kubeletd_free(take_ptr(side->agent));
	kubeletd_server_close(take_ptr(side->server), on_closed, s);
	until(s->loop, s->closed == before + 1);
}

static json_t *vf(int number, bool healthy, int numa)
{
	json_t *vf =
		json_pack("{s:o, s:b, s:s, s:[o], s:{}}", "id", json_fmt("0000:3b:00.%d", number),
			  "healthy", healthy, "pf", "0000:3b:00.0", "nodes",
			  json_fmt("/dev/infiniband/uverbs%d", number), "env");

	if (numa >= 0)
		json_put_int(vf, "numa", numa);
	return vf;
}

/* Two VFs on node 0, two on node 1, by turns, one on none; 3b:00.2 as healthy as wanted. */
static void offer(struct side *side, bool second_is_healthy)
{
	json_auto_t *pools = json_pack(
		"{s:[{s:s, s:s, s:s, s:i, s:s, s:[], s:[o, o, o, o, o]}], s:[]}", "resources",
		"name", X, "kind", "sriov", "policy", "packed", "wanted", 5, "env",
		"PCIDEVICE_SPIDERNET_IO_X", "causes", "devices", vf(1, true, 0), vf(3, true, 1),
		vf(2, second_is_healthy, 0), vf(4, true, 1), vf(5, true, -1), "problems");

	kubeletd_set(side->agent, pools, NULL);
}

static size_t allocatable(const struct stand *s)
{
	return fake_kubelet_allocatable(kubelet_node_manager(s->node), X);
}

static bool names(const struct stand *s, const char *text)
{
	return s->allocated && strstr(s->allocated, text);
}

/* NULL when the pod runs. */
#define assert_admitted(s, pod, n)                                                                 \
	do {                                                                                       \
		auto_free char *why_ = kubelet_node_admit((s)->node, pod, X, n);                   \
		if (why_)                                                                          \
			fail_msg("%s: %s", pod, why_);                                             \
	} while (0)

#define assert_turned_away(s, pod, n, text)                                                        \
	do {                                                                                       \
		auto_free char *why_ = kubelet_node_admit((s)->node, pod, X, n);                   \
		assert_non_null(why_);                                                             \
		if (!strstr(why_, text))                                                           \
			fail_msg("%s: %s", pod, why_);                                             \
	} while (0)

static const struct kubelet_version *version_of(void **state)
{
	return *state;
}

static struct stand *stand_new(const struct kubelet_version *version)
{
	struct stand *s = mem_new(struct stand);
	auto_free char *plugins = NULL, *pods = NULL;

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/versions.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	plugins = str_printf("%s/device-plugins", s->dir);
	pods = str_printf("%s/pod-resources", s->dir);
	assert_int_equal(mkdir(plugins, 0750), 0);
	assert_int_equal(mkdir(pods, 0750), 0);
	s->loop = loop_new();
	s->node = kubelet_node_new(s->loop, s->dir, version);
	begin(s, &s->first);
	offer(&s->first, true);
	return s;
}

static void ask_what_pods_have(struct stand *s)
{
	auto_free char *socket = str_printf("%s/pod-resources/kubelet.sock", s->dir);

	s->resources = pod_resources_new(s->loop, &(struct pod_resources_config){
							  .socket = socket,
							  .every_ms = 100,
							  .lose_ms = 300,
							  .changed = on_allocated,
							  .arg = s,
						  });
	until(s->loop, s->allocated);
}

static void remove_files(const char *dir, const char *below)
{
	auto_free char *path = str_printf("%s/%s", dir, below);
	auto_closedir DIR *files = opendir(path);
	const struct dirent *file;

	while (files && (file = readdir(files)))
		(void)unlinkat(dirfd(files), file->d_name, 0);
	(void)rmdir(path);
}

static void stand_free(struct stand *s)
{
	pod_resources_free(s->resources);
	end(s, &s->first);
	end(s, &s->second);
	kubelet_node_free(s->node);
	loop_free(s->loop);
	remove_files(s->dir, "device-plugins");
	remove_files(s->dir, "pod-resources");
	assert_int_equal(rmdir(s->dir), 0);
	mem_free(s->allocated);
	mem_free(s);
}

/* ---- each version ---------------------------------------------------------------------------- */

static void a_pod_gets_what_it_asks_for_and_we_hear_of_it(void **state)
{
	struct stand *s = stand_new(version_of(state));
	const json_t *given;

	until(s->loop, allocatable(s) == 5);
	ask_what_pods_have(s);
	assert_string_equal(s->allocated, "{}");
	assert_admitted(s, "ml/a", 2);
	/* The two of one NUMA node: our preference was asked for and followed. */
	given = kubelet_node_given(s->node, "ml/a");
	assert_true(json_list_has(json_at(given, "ids"), "0000:3b:00.1"));
	assert_true(json_list_has(json_at(given, "ids"), "0000:3b:00.2"));
	assert_non_null(
		strstr(json_str_at(given, "env", "PCIDEVICE_SPIDERNET_IO_X"), "0000:3b:00.1"));
	assert_true(json_list_has(json_at(given, "nodes"), "/dev/infiniband/uverbs1"));
	assert_true(json_list_has(json_at(given, "nodes"), "/dev/infiniband/uverbs2"));
	until(s->loop, names(s, "\"0000:3b:00.2\":\"ml/a/c\""));
	assert_string_equal(s->allocated,
			    "{\"" X
			    "\":{\"0000:3b:00.1\":\"ml/a/c\",\"0000:3b:00.2\":\"ml/a/c\"}}");
	/* Also of one that has no NUMA node, and of several pods. */
	assert_admitted(s, "ml/b", 3);
	until(s->loop, names(s, "\"0000:3b:00.5\":\"ml/b/c\""));
	assert_turned_away(s, "ml/c", 1, "Requested: 1, Available: 0");
	stand_free(s);
}

static void a_vf_that_is_not_well_is_given_to_nobody(void **state)
{
	struct stand *s = stand_new(version_of(state));

	offer(&s->first, false);
	until(s->loop, allocatable(s) == 4);
	assert_int_equal(fake_kubelet_capacity(kubelet_node_manager(s->node), X), 5);
	assert_admitted(s, "ml/a", 4);
	assert_false(
		json_list_has(json_at(kubelet_node_given(s->node, "ml/a"), "ids"), "0000:3b:00.2"));
	assert_turned_away(s, "ml/b", 1, "Available: 0");
	offer(&s->first, true);
	until(s->loop, allocatable(s) == 5);
	assert_admitted(s, "ml/b", 1);
	stand_free(s);
}

static void after_a_restart_of_the_kubelet_pods_keep_what_they_have(void **state)
{
	struct stand *s = stand_new(version_of(state));

	until(s->loop, allocatable(s) == 5);
	ask_what_pods_have(s);
	assert_admitted(s, "ml/a", 2);
	until(s->loop, names(s, "ml/a"));
	for (int i = 0; i < 3; i++) {
		kubelet_node_restart(s->node, version_of(state));
		assert_int_equal(allocatable(s), 0);
		until(s->loop, allocatable(s) == 5);
		assert_true(names(s, "\"0000:3b:00.1\":\"ml/a/c\""));
		/* Its container starts again with what it was given; nobody else gets that. */
		assert_admitted(s, "ml/a", 2);
	}
	assert_admitted(s, "ml/b", 3);
	assert_turned_away(s, "ml/c", 1, "Available: 0");
	stand_free(s);
}

/* Until 1.26 kubelets start it on a VF that is not well; after that they turn it away. */
static void after_a_boot_a_pod_starts_when_its_vfs_are_back(void **state)
{
	const struct kubelet_version *version = version_of(state);
	struct stand *s = stand_new(version);

	until(s->loop, allocatable(s) == 5);
	assert_admitted(s, "ml/a", 2);
	end(s, &s->first);
	kubelet_node_restart(s->node, version);
	if (version->checks_given)
		assert_turned_away(s, "ml/a", 2, "unregistered");
	begin(s, &s->first);
	offer(&s->first, false);
	until(s->loop, allocatable(s) == 4);
	if (version->checks_given)
		assert_turned_away(s, "ml/a", 2, "no longer healthy");
	else
		assert_admitted(s, "ml/a", 2);
	offer(&s->first, true);
	until(s->loop, allocatable(s) == 5);
	assert_admitted(s, "ml/a", 2);
	stand_free(s);
}

static void what_a_pod_had_is_free_when_it_has_ended(void **state)
{
	struct stand *s = stand_new(version_of(state));

	until(s->loop, allocatable(s) == 5);
	ask_what_pods_have(s);
	assert_admitted(s, "ml/job", 5);
	until(s->loop, names(s, "ml/job"));
	kubelet_node_end_pod(s->node, "ml/job");
	until(s->loop, !names(s, "ml/job"));
	assert_string_equal(s->allocated, "{}");
	assert_admitted(s, "ml/next", 5);
	until(s->loop, names(s, "ml/next"));
	stand_free(s);
}

static void an_agent_takes_over_from_another(void **state)
{
	struct stand *s = stand_new(version_of(state));

	until(s->loop, allocatable(s) == 5);
	assert_admitted(s, "ml/a", 2);
	begin(s, &s->second);
	offer(&s->second, true);
	until(s->loop, kubeletd_are_served(s->second.agent));
	end(s, &s->first);
	/*
	 * Kubelets of 1.25 to 1.35 end the new one's stream with the old one's: it registers again.
	 */
	until(s->loop, allocatable(s) == 5 && kubeletd_are_served(s->second.agent));
	pass(s->loop, 300);
	assert_int_equal(allocatable(s), 5);
	assert_admitted(s, "ml/b", 3);
	stand_free(s);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void a_node_is_updated_from_the_first_to_the_last(void **state)
{
	struct stand *s = stand_new(&kubelet_versions[0]);

	until(s->loop, allocatable(s) == 5);
	ask_what_pods_have(s);
	assert_admitted(s, "ml/a", 2);
	until(s->loop, names(s, "ml/a"));
	for (size_t i = 1; i < n_kubelet_versions; i++) {
		kubelet_node_restart(s->node, &kubelet_versions[i]);
		until(s->loop, allocatable(s) == 5);
		assert_admitted(s, "ml/a", 2);
		assert_true(names(s, "\"0000:3b:00.2\":\"ml/a/c\""));
	}
	assert_admitted(s, "ml/b", 3);
	stand_free(s);
}

int main(void)
{
	static const struct {
		const char *name;
		CMUnitTestFunction fn;
	} cases[] = {
#define CASE(name) {#name, name}
		CASE(a_pod_gets_what_it_asks_for_and_we_hear_of_it),
		CASE(a_vf_that_is_not_well_is_given_to_nobody),
		CASE(after_a_restart_of_the_kubelet_pods_keep_what_they_have),
		CASE(after_a_boot_a_pod_starts_when_its_vfs_are_back),
		CASE(what_a_pod_had_is_free_when_it_has_ended),
		CASE(an_agent_takes_over_from_another),
	};
	const struct CMUnitTest all[] = {
		cmocka_unit_test(a_node_is_updated_from_the_first_to_the_last),
	};
	int failed;

	json_init();
	failed = cmocka_run_group_tests(all, NULL, NULL);
	for (size_t i = 0; i < n_kubelet_versions; i++) {
		struct CMUnitTest tests[ARRAY_LEN(cases)] = {0};

		for (size_t k = 0; k < ARRAY_LEN(cases); k++)
			tests[k] = (struct CMUnitTest){
				.name = cases[k].name,
				.test_func = cases[k].fn,
				.initial_state = (void *)&kubelet_versions[i],
			};
		printf("# kubelet %s\n", kubelet_versions[i].name);
		failed += cmocka_run_group_tests_name(kubelet_versions[i].name, tests, NULL, NULL);
	}
	return failed;
}

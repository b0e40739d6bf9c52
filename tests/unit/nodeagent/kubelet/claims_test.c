// SPDX-License-Identifier: Apache-2.0
/*
 * Claims from a kubelet to the disk and back: the process that serves the kubelet with its agent,
 * through all that ends and begins again (the table of docs/dra.md).
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/devices/dra_claims.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/kubelet/endpoint.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "tests/fakes/dra_kubelet.h"
#include "tests/support/until.h"
#include "tests/support/yaml.h"

#define X     "spidernet.io/x"
#define UID   "1d3c7a4e-0b2a-4f55-9d58-1f0e0c4b9a10"
#define OTHER "2d3c7a4e-0b2a-4f55-9d58-1f0e0c4b9a11"
#define BOOT  "00000000-0000-0000-0000-000000000001"
#define AGAIN "00000000-0000-0000-0000-000000000002"

struct stand {
	struct loop *loop;
	char dir[64];
	char *plugins, *registry, *cdi, *state;
	struct dra_folders folders;
	struct kubeletd_server *server;
	struct kubeletd *agent; /* NULL: none */
	struct dra_kubelet *kubelet;
	int asked, closed, removed;
	bool is_ready, is_silent; /* the agent does not answer */
	json_t *claims;           /* of the API server: {UID: ResourceClaim} */
	struct strbuf told;
};

/* ---- the two sides --------------------------------------------------------------------------- */

static void on_offering(void *arg)
{
}

static void on_removed(void *arg)
{
	((struct stand *)arg)->removed++;
}

static void on_closed(void *arg)
{
	((struct stand *)arg)->closed++;
}

static void on_ready(void *arg, const json_t *pools)
{
	((struct stand *)arg)->is_ready = true;
}

static void on_nothing(void *arg)
{
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&((struct stand *)arg)->told, "%s: %s\n", reason, message);
}

static void on_lost(void *arg, const struct err *err)
{
}

static void on_asked(void *arg, const json_t *wanted)
{
	struct stand *s = arg;
	const char *uid = json_str_at(wanted, "uid");
	json_auto_t *claim = NULL;
	struct err err = {0};

	s->asked++;
	if (s->is_silent)
		return;
	claim = dra_claim_read(json_object_get(s->claims, uid), "n1", uid, &err);
	kubeletd_answer(s->agent, uid, claim, &err);
}

static void start_server(struct stand *s)
{
	s->server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = s->loop,
		.plugins_dir = s->plugins,
		.dra = &s->folders,
		.offering = on_offering,
		.removed = on_removed,
		.arg = s,
	});
}

static void end_server(struct stand *s)
{
	if (!s->server)
		return;
	s->closed = 0;
	kubeletd_server_close(take_ptr(s->server), on_closed, s);
	until(s->loop, s->closed == 1);
}

static void start_agent(struct stand *s)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s->is_ready = false;
	s->agent = kubeletd_new(&(struct kubeletd_config){
		.loop = s->loop,
		.fd = pair[0],
		.ready = on_ready,
		.changed = on_nothing,
		.emit = on_told,
		.allocated = on_nothing,
		.asked = on_asked,
		.lost = on_lost,
		.arg = s,
	});
	kubeletd_server_attach(s->server, pair[1]);
	until(s->loop, s->is_ready);
}

static void end_agent(struct stand *s)
{
	kubeletd_free(take_ptr(s->agent));
	pass(s->loop, 30);
}

/* Two VFs whose verbs devices have these numbers; the second is away when its is -1. */
static void offer(struct stand *s, const char *boot, int first, int second)
{
	auto_free char *text =
		str_printf("resources: [{name: " X ", kind: sriov, offered: true, env: "
			   "PCIDEVICE_SPIDERNET_IO_X, permissions: rw, devices: [{id: "
			   "'0000:3b:00.2', healthy: "
			   "true, nodes: [/dev/infiniband/uverbs%d]}, {id: '0000:3b:00.3', "
			   "healthy: %s, nodes: "
			   "[/dev/infiniband/uverbs%d]%s}]}]",
			   first, second < 0 ? "false" : "true", second < 0 ? 0 : second,
			   second < 0 ? ", cause: it has gone" : "");
	json_auto_t *pools = yaml(text), *none = yaml("resources: []");
	json_auto_t *claims = json_pack("{s:O, s:s}", "pools", pools, "boot", boot);

	kubeletd_set(s->agent, none, claims);
	until(s->loop, kubeletd_has_all(s->agent));
}

/* A claim on the API server. */
static void allocate(struct stand *s, const char *uid, const char *name, const char *device)
{
	auto_free char *text =
		str_printf("metadata: {namespace: ns, name: %s, uid: %s}\n"
			   "status: {reservedFor: [{resource: pods, name: p}], allocation: "
			   "{devices: {results: "
			   "[{driver: dra.orbweaver.io, request: vf, pool: n1, device: %s}]}}}\n",
			   name, uid, device);

	json_put(s->claims, uid, yaml(text));
}

static json_t *ask(struct stand *s, bool prepares, const char *version, const char *uid,
		   const char *name)
{
	json_auto_t *claims =
		json_pack("[{s:s, s:s, s:s}]", "namespace", "ns", "name", name, "uid", uid);

	return prepares ? dra_kubelet_prepare(s->kubelet, version, claims)
			: dra_kubelet_unprepare(s->kubelet, version, claims);
}

#define PREPARED                                                                                   \
	"{\"" UID "\":{\"devices\":[{\"cdi\":[\"dra.orbweaver.io/claim=" UID "-0\"],"              \
	"\"device\":\"0000-3b-00-2\",\"pool\":\"n1\",\"request\":\"vf\"}]}}"

static void assert_answer(json_t *answer, const char *want)
{
	json_auto_t *owned = answer;
	auto_free char *text = json_text(owned);

	assert_string_equal(text, want);
}

/* The claim is answered as it was the first time. */
static void assert_prepared(struct stand *s, const char *version)
{
	assert_answer(ask(s, true, version, UID, "c"), PREPARED);
}

static void assert_error(json_t *answer, const char *uid, const char *says)
{
	json_auto_t *owned = answer;
	const char *error = json_str_at(owned, uid, "error");

	if (!error || !strstr(error, says))
		fail_msg("\"%s\" does not say: %s", error ? error : "no error", says);
}

/* The CDI file of the claim gives this verbs device; NULL: there is no file. */
static void assert_cdi(struct stand *s, const char *verbs)
{
	auto_free char *path = str_printf("%s/dra.orbweaver.io-claim-" UID ".json", s->cdi);
	auto_free char *want = verbs ? str_below("/dev/infiniband", verbs) : NULL;
	auto_strbuf struct strbuf text = {0};
	json_auto_t *cdi = NULL;
	const json_t *nodes;

	if (!verbs) {
		assert_int_equal(access(path, F_OK), -1);
		return;
	}
	assert_int_equal(fs_read(AT_FDCWD, path, 4096, &text, NULL), 0);
	cdi = json_parse(strbuf_str(&text), text.len, NULL);
	nodes = json_at(json_array_get(json_at(cdi, "devices"), 0), "containerEdits",
			"deviceNodes");
	assert_int_equal(json_array_size(nodes), 1);
	assert_string_equal(json_str_at(json_array_get(nodes, 0), "hostPath"), want);
}

static size_t count_files(const char *path)
{
	auto_closedir DIR *dir = opendir(path);
	const struct dirent *file;
	size_t n = 0;

	while (dir && (file = readdir(dir)))
		n += file->d_name[0] != '.';
	return n;
}

static void empty(const char *path)
{
	auto_closedir DIR *dir = opendir(path);
	const struct dirent *file;

	while (dir && (file = readdir(dir)))
		if (file->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(dir), file->d_name, 0), 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static char *folder(struct stand *s, const char *name)
{
	char *path = str_below(s->dir, name);

	assert_int_equal(mkdir(path, 0750), 0);
	return path;
}

/* All is there, the driver is registered. */
static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/claims.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->plugins = folder(s, "device-plugins");
	s->registry = folder(s, "plugins_registry");
	s->cdi = folder(s, "cdi");
	s->state = folder(s, "state");
	s->folders = (struct dra_folders){s->registry, s->cdi, s->state};
	s->claims = json_object();
	s->loop = loop_new();
	s->kubelet = dra_kubelet_new(s->loop, s->registry);
	allocate(s, UID, "c", "0000-3b-00-2");
	start_server(s);
	start_agent(s);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;
	auto_free char *command = str_printf("rm -rf '%s'", s->dir);

	kubeletd_free(s->agent);
	end_server(s);
	dra_kubelet_free(s->kubelet);
	loop_free(s->loop);
	json_decref(s->claims);
	strbuf_done(&s->told);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of ours */
	mem_free(s->plugins);
	mem_free(s->registry);
	mem_free(s->cdi);
	mem_free(s->state);
	mem_free(s);
	return 0;
}

/* Offered, registered, one claim prepared. */
static void begin(struct stand *s)
{
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_prepared(s, "v1");
	assert_cdi(s, "uverbs1");
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_WITH(a_kubelet_finds_the_driver_once_devices_are_known, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *text = NULL;

	assert_int_equal(count_files(s->registry), 0);
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	text = json_text(dra_kubelet_info(s->kubelet));
	assert_string_equal(text, "{\"endpoint\":\"\",\"name\":\"dra.orbweaver.io\",\"type\":"
				  "\"DRAPlugin\",\"versions\":[\"v1.DRAPlugin\",\"v1beta1."
				  "DRAPlugin\",\"v1.DRAResourceHealth\",\"v1alpha1."
				  "DRAResourceHealth\"]}");
	dra_kubelet_refuse(s->kubelet, "too old");
	until(s->loop, s->told.len > 0);
	assert_non_null(strstr(strbuf_str(&s->told), "RegisterRefused: the kubelet refuses the "
						     "driver dra.orbweaver.io: too old"));
}

TEST_WITH(a_claim_is_prepared_once_and_answered_alike, set_up, tear_down)
{
	struct stand *s = *state;
	const json_t *prepared;

	begin(s);
	assert_int_equal(s->asked, 1);
	assert_prepared(s, "v1");
	assert_prepared(s, "v1beta1");
	assert_int_equal(s->asked, 1);
	until(s->loop, json_object_size(kubeletd_prepared(s->agent)) == 1);
	prepared = kubeletd_prepared(s->agent);
	assert_string_equal(json_str_at(prepared, X, "0000:3b:00.2"), "ns/p/c");
}

TEST_WITH(a_claim_is_unprepared_as_often_as_asked, set_up, tear_down)
{
	static const char *const versions[] = {"v1", "v1beta1", "v1"};
	struct stand *s = *state;

	begin(s);
	for (size_t i = 0; i < 3; i++)
		assert_answer(ask(s, false, versions[i], UID, "c"), "{\"" UID "\":{}}");
	assert_cdi(s, NULL);
	until(s->loop, json_object_size(kubeletd_prepared(s->agent)) == 0);
	/* And again, for another pod. */
	assert_prepared(s, "v1");
}

TEST_WITH(what_cannot_be_prepared_is_an_error_of_that_claim, set_up, tear_down)
{
	struct stand *s = *state;
	json_auto_t *both =
		json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}]", "namespace", "ns",
			  "name", "c", "uid", UID, "namespace", "ns", "name", "d", "uid", OTHER,
			  "namespace", "ns", "name", "e", "uid", "../e");
	json_auto_t *answer = NULL;

	offer(s, BOOT, 1, -1);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	allocate(s, OTHER, "d", "0000-3b-00-9");
	answer = dra_kubelet_prepare(s->kubelet, "v1", both);
	assert_int_equal(json_array_size(json_at(answer, UID, "devices")), 1);
	assert_error(json_incref(answer), OTHER, "no device 0000-3b-00-9");
	assert_error(json_incref(answer), "../e", "must be letters, digits and dashes");
	allocate(s, OTHER, "d", "0000-3b-00-2");
	assert_error(ask(s, true, "v1", OTHER, "d"), OTHER,
		     "DeviceTaken: device 0000:3b:00.2 is prepared for claim ns/p/c");
	allocate(s, OTHER, "d", "0000-3b-00-3");
	assert_error(ask(s, true, "v1", OTHER, "d"), OTHER, "0000:3b:00.3: it has gone");
	assert_int_equal(count_files(s->cdi), 1);
}

TEST_WITH(an_agent_that_is_away_stops_only_new_claims, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s);
	end_agent(s);
	assert_prepared(s, "v1");
	assert_error(ask(s, true, "v1", OTHER, "d"), OTHER, "is away for a moment");
	start_agent(s);
	allocate(s, OTHER, "d", "0000-3b-00-3");
	json_decref(ask(s, true, "v1", OTHER, "d"));
	assert_int_equal(count_files(s->cdi), 2);
}

static void lose_agent(void *arg)
{
	struct stand *s = arg;

	kubeletd_free(take_ptr(s->agent));
}

TEST_WITH(claims_that_wait_for_an_agent_that_ends_are_answered, set_up, tear_down)
{
	struct stand *s = *state;
	struct timer *timer = timer_new(s->loop, lose_agent, s);

	begin(s);
	s->is_silent = true;
	timer_start(timer, 20);
	assert_error(ask(s, true, "v1", OTHER, "d"), OTHER, "is away for a moment");
	assert_int_equal(s->asked, 2);
	timer_free(timer);
}

TEST_WITH(a_kubelet_that_was_killed_finds_all_as_it_was, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s);
	dra_kubelet_free(s->kubelet);
	pass(s->loop, 30);
	s->kubelet = dra_kubelet_new(s->loop, s->registry);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_prepared(s, "v1");
	assert_cdi(s, "uverbs1");
}

TEST_WITH(a_socket_that_was_removed_comes_back, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s);
	empty(s->registry);
	until(s->loop, count_files(s->registry) == 1);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_prepared(s, "v1");
}

TEST_WITH(an_updated_driver_knows_the_claims_of_the_one_before, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s);
	end_agent(s);
	end_server(s);
	assert_int_equal(count_files(s->registry), 0);
	assert_cdi(s, "uverbs1");
	start_server(s);
	start_agent(s);
	assert_string_equal(json_str_at(kubeletd_prepared(s->agent), X, "0000:3b:00.2"), "ns/p/c");
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_prepared(s, "v1");
	assert_int_equal(s->asked, 1);
	assert_answer(ask(s, false, "v1", UID, "c"), "{\"" UID "\":{}}");
}

/* As of a driver that had no time to remove it. */
static void leave_socket(struct stand *s)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_free char *file = endpoint_name(DRA_DRIVER, "0000000000000001");
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/%s", s->registry, file);
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
}

/* A power cut: /var/run is empty, and numbers of devices are others. */
static void boot(struct stand *s)
{
	end_agent(s);
	end_server(s);
	leave_socket(s);
	empty(s->cdi);
	start_server(s);
	start_agent(s);
}

TEST_WITH(a_boot_makes_files_anew_before_a_kubelet_asks, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s);
	boot(s);
	assert_cdi(s, NULL);
	assert_int_equal(dra_kubelet_look(s->kubelet), 0);
	offer(s, AGAIN, 7, 8);
	assert_int_equal(count_files(s->registry), 1);
	assert_cdi(s, "uverbs7");
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_prepared(s, "v1");
	assert_int_equal(s->asked, 1);
}

/* Numbers of the last boot may be another pod's device. */
TEST_WITH(devices_that_are_not_back_have_no_file, set_up, tear_down)
{
	struct stand *s = *state;

	allocate(s, UID, "c", "0000-3b-00-3");
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	json_decref(ask(s, true, "v1", UID, "c"));
	assert_cdi(s, "uverbs2");
	boot(s);
	offer(s, AGAIN, 2, -1);
	assert_cdi(s, NULL);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_error(ask(s, true, "v1", UID, "c"), UID,
		     "DevicesNotBack: its devices are not all back");
	/* It still counts as in use. */
	assert_non_null(json_at(kubeletd_prepared(s->agent), X, "0000:3b:00.3"));
	offer(s, AGAIN, 2, 5);
	assert_cdi(s, "uverbs5");
	json_decref(ask(s, true, "v1", UID, "c"));
	assert_answer(ask(s, false, "v1", UID, "c"), "{\"" UID "\":{}}");
}

TEST_WITH(files_of_nobody_are_removed, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *left = str_printf("%s/dra.orbweaver.io-claim-" OTHER ".json", s->cdi);
	auto_free char *cut = str_printf("%s/dra.orbweaver.io-claim-" UID ".json.1.tmp", s->cdi);
	auto_free char *foreign = str_printf("%s/gpu.example.com-claim-1.json", s->cdi);

	assert_int_equal(fs_write_atomic(AT_FDCWD, left, "{}", 2, 0644, NULL), 0);
	assert_int_equal(fs_write_atomic(AT_FDCWD, cut, "{}", 2, 0644, NULL), 0);
	assert_int_equal(fs_write_atomic(AT_FDCWD, foreign, "{}", 2, 0644, NULL), 0);
	begin(s);
	assert_int_equal(count_files(s->cdi), 2);
	assert_int_equal(access(foreign, F_OK), 0);
}

/* Each file that cannot be written, and what a kubelet that asks again gets then. */
TEST_WITH(a_disk_that_refuses_loses_nothing, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *away = str_below(s->dir, "away");
	auto_free char *cdi = str_printf("%s/dra.orbweaver.io-claim-" UID ".json", s->cdi);

	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_int_equal(rename(s->state, away), 0);
	assert_error(ask(s, true, "v1", UID, "c"), UID, "claims.json");
	assert_cdi(s, NULL);
	assert_int_equal(json_object_size(kubeletd_prepared(s->agent)), 0);
	assert_int_equal(rename(away, s->state), 0);

	assert_int_equal(rename(s->cdi, away), 0);
	assert_error(ask(s, true, "v1", UID, "c"), UID, "dra.orbweaver.io-claim");
	assert_int_equal(rename(away, s->cdi), 0);
	assert_prepared(s, "v1");
	assert_cdi(s, "uverbs1");

	assert_int_equal(rename(s->state, away), 0);
	assert_error(ask(s, false, "v1", UID, "c"), UID, "claims.json");
	assert_int_equal(rename(away, s->state), 0);
	/* Nothing but a folder is in the way of root. */
	empty(s->cdi);
	assert_int_equal(mkdir(cdi, 0700), 0);
	assert_error(ask(s, false, "v1", UID, "c"), UID, "FileNotRemoved");
	assert_non_null(json_at(kubeletd_prepared(s->agent), X, "0000:3b:00.2"));
	assert_int_equal(rmdir(cdi), 0);
	assert_answer(ask(s, false, "v1", UID, "c"), "{\"" UID "\":{}}");
}

TEST_WITH(a_damaged_state_is_kept_and_stops_claims, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *path = str_below(s->state, DRA_STATE_FILE);

	begin(s);
	end_agent(s);
	end_server(s);
	assert_int_equal(fs_write_atomic(AT_FDCWD, path, "{\"claims\"", 9, 0600, NULL), 0);
	start_server(s);
	start_agent(s);
	/* Nobody knows which VFs are in use. */
	assert_null(kubeletd_prepared(s->agent));
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	assert_error(ask(s, true, "v1", UID, "c"), UID, "nobody knows which devices claims have");
	assert_error(ask(s, false, "v1", UID, "c"), UID, "nobody knows which devices claims have");
	assert_int_equal(access(path, F_OK), 0);
}

/* A mount goes on to show it, as an open folder does. */
TEST_WITH(a_folder_that_was_removed_is_told, set_up, tear_down)
{
	struct stand *s = *state;
	auto_close int fd = open(s->cdi, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *path = str_printf("/proc/self/fd/%d", fd);

	end_agent(s);
	end_server(s);
	s->folders.cdi_dir = path;
	start_server(s);
	start_agent(s);
	begin(s);
	assert_int_equal(s->removed, 0);
	empty(s->cdi);
	assert_int_equal(rmdir(s->cdi), 0);
	until(s->loop, s->removed == 1);
	assert_error(ask(s, true, "v1", UID, "c"), UID, "dra.orbweaver.io-claim");
}

/* The list that came last says so of the only device; "": there is no device. */
static bool is_said(struct stand *s, int health, const char *message)
{
	size_t lists;
	const json_t *device = json_array_get(dra_kubelet_health(s->kubelet, &lists), 0);

	return json_integer_value(json_at(device, "health")) == health &&
	       str_eq(json_str_at(device, "message"), message) &&
	       str_eq(json_str_at(device, "pool"), "n1") &&
	       str_eq(json_str_at(device, "device"), "0000-3b-00-3");
}

TEST_WITH(pods_are_told_of_their_devices_health, set_up, tear_down)
{
	struct stand *s = *state;
	size_t lists, before;

	allocate(s, UID, "c", "0000-3b-00-3");
	offer(s, BOOT, 1, 2);
	assert_int_equal(dra_kubelet_look(s->kubelet), 1);
	dra_kubelet_watch(s->kubelet, "v1");
	until(s->loop, dra_kubelet_health(s->kubelet, &lists));
	assert_int_equal(json_array_size(dra_kubelet_health(s->kubelet, &lists)), 0);
	json_decref(ask(s, true, "v1", UID, "c"));
	until(s->loop, is_said(s, 1, ""));
	offer(s, BOOT, 1, -1);
	until(s->loop, is_said(s, 2, "it has gone"));
	offer(s, BOOT, 1, 2);
	until(s->loop, is_said(s, 1, ""));
	/* A kubelet doubts what it has not heard for 30 s. */
	(void)dra_kubelet_health(s->kubelet, &before);
	until(s->loop, (dra_kubelet_health(s->kubelet, &lists), lists >= before + 2));
	/* Without the agent nothing is known: the kubelet shall doubt. */
	end_agent(s);
	(void)dra_kubelet_health(s->kubelet, &before);
	pass(s->loop, 40000);
	(void)dra_kubelet_health(s->kubelet, &lists);
	assert_int_equal(lists, before);
	start_agent(s);
	offer(s, BOOT, 1, 2);
	until(s->loop, (dra_kubelet_health(s->kubelet, &lists), lists > before));
	assert_true(is_said(s, 1, ""));
	assert_answer(ask(s, false, "v1", UID, "c"), "{\"" UID "\":{}}");
	dra_kubelet_watch(s->kubelet, "v1alpha1");
	until(s->loop, dra_kubelet_health(s->kubelet, &lists));
	assert_int_equal(json_array_size(dra_kubelet_health(s->kubelet, &lists)), 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The server and its workers with real plugins: order, agents that are away, notes, what the agent
 * hears.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/server/cni_server.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "nodeagent/cni/worker/worker_channel.h"
#include "tests/support/cni_stand.h"

static struct cni_stand stand;

/* ---- a planner ------------------------------------------------------------------------------- */

bool attach_knows(const char *type)
{
	return str_eq(type, "sriov") || str_eq(type, "rdma") || str_eq(type, "coordinator") ||
	       str_eq(type, "tuning");
}

bool attach_is_common(const char *type)
{
	return false;
}

static int touch(const char *name)
{
	auto_free char *path = str_printf("%s/kernel/%s", stand.folder, name);

	return close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static bool is_there(const char *name)
{
	auto_free char *path = str_printf("%s/kernel/%s", stand.folder, name);

	return access(path, F_OK) == 0;
}

/* What the configuration's "does" says. */
int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	const char *does = json_str_or(json_at(call->config, "does"), "");
	const struct attach_services *s = call->services;
	json_auto_t *state = json_pack("{s:s}", "was", "eth7");

	if (call->command == ATTACH_DEL) {
		(void)touch("deleted");
		if (call->netns >= 0)
			(void)touch("inside");
		/* Its interface has its name again. */
		if (json_str_at(call->saved, "name"))
			(void)touch(json_str_at(call->saved, "name"));
		if (json_at(call->config, "ipam"))
			(void)s->ipam(s->context, "DEL", call->config, NULL, NULL);
		if (str_eq(does, "waits") && !is_there("back")) {
			(void)s->save(s->context, state, NULL);
			return 0;
		}
		if (str_eq(does, "stays"))
			return err_set(err, ERR_HOST, "LinkStuck", "it could not be moved");
		return s->save(s->context, NULL, err);
	}
	if (call->command == ATTACH_CHECK)
		return json_str_at(call->saved, "was") ? 0 : -1;
	/* What it would announce goes out after the answer. */
	assert_true(json_is_array(call->worker->announcements));
	if (call->saved)
		(void)touch("beside");
	if (str_eq(does, "crashes")) {
		(void)s->save(s->context, state, NULL);
		(void)raise(SIGKILL);
	}
	if (str_eq(does, "hangs")) {
		(void)s->save(s->context, state, NULL);
		(void)touch("hangs");
		(void)pause();
	}
	if (s->save(s->context, state, err) < 0)
		return -1;
	if (json_at(call->config, "ipam"))
		return s->ipam(s->context, "ADD", call->config, ret_result, err);
	*ret_result = call->settings ? json_deep_copy(call->settings) : json_object();
	return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	cni_stand_open(&stand, true);
	return 0;
}

static int set_up_without_agent(void **state)
{
	cni_stand_open(&stand, false);
	return 0;
}

static int tear_down(void **state)
{
	cni_stand_close(&stand);
	return 0;
}

static char *config_of(const char *does, const char *ipam)
{
	return str_printf("{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", \"does\": \"%s\", "
			  "\"deviceID\": \"0000:03:00.2\"%s%s%s}",
			  does, ipam ? ", \"ipam\": {\"type\": \"" : "", ipam ? ipam : "",
			  ipam ? "\"}" : "");
}

static int call(const char *command, const char *does, const char *ipam)
{
	auto_free char *config = config_of(does, ipam);

	return cni_stand_call(&stand, "sriov", command, "c1", config);
}

static void until_none_is_left(const char *folder, const char *other)
{
	int64_t until = clock_ms() + 20000;

	for (;;) {
		auto_free char *left = cni_stand_leftovers(&stand);

		if (!strstr(left, folder) && !strstr(left, other))
			return;
		if (clock_ms() > until)
			fail_msg("left: %s", left);
		cni_stand_turn(&stand);
	}
}

static void until_nothing_is_left(void)
{
	until_none_is_left("sandboxes/", "notes/");
}

static void until_no_note_is_left(void)
{
	until_none_is_left("notes/", "notes/");
}

static void until_heard(const char *key)
{
	int64_t until = clock_ms() + 20000;

	while (!cni_stand_heard(&stand, key) && clock_ms() < until)
		cni_stand_turn(&stand);
	assert_non_null(cni_stand_heard(&stand, key));
}

static void put_program(const char *name, const char *text)
{
	auto_free char *path = str_below(stand.folder, name);

	assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0755, NULL), 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void addresses_come_from_the_agent(void **state)
{
	const json_t *asked;

	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	assert_non_null(strstr(stand.printed, "10.6.0.2/16"));
	asked = cni_stand_heard(&stand, "kind");
	assert_string_equal(json_str_at(asked, "kind"), "addresses");
	assert_string_equal(json_str_at(asked, "pod", "uid"), "u1");
	assert_string_equal(json_str_at(asked, "wish", "nic"), "net1");
	assert_int_equal(call("CHECK", "", "spiderpool"), 0);
	assert_int_equal(call("DEL", "", "spiderpool"), 0);
	assert_false(stand.has_given);
	until_nothing_is_left();
}

/* A NetworkAttachmentDefinition without cniVersion, and one that the meta plugin hands on as "". */
static void a_network_without_version_gets_a_result_of_the_first(void **state)
{
	static const char *const versions[] = {"", "\"cniVersion\": \"\", ",
					       "\"cniVersion\": \"0.2.0\", "};

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		auto_free char *config =
			str_printf("{%s\"name\": \"rail0\", \"DeviceID\": \"0000:03:00.2\", "
				   "\"IPAM\": {\"type\": \"spiderpool\"}}",
				   versions[i]);

		assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 0);
		assert_non_null(strstr(stand.printed, "\"ip4\":{\"ip\":\"10.6.0.2/16\"}"));
		assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", config), 0);
		until_nothing_is_left();
	}
}

static void the_coordinator_has_the_cluster_s_settings(void **state)
{
	auto_free char *config = config_of("", NULL);

	assert_int_equal(cni_stand_call(&stand, "coordinator", "ADD", "c1", config), 0);
	assert_string_equal(json_str_at(cni_stand_heard(&stand, "kind"), "kind"), "coordinator");
}

static void another_ipam_plugin_is_run_by_the_plugin(void **state)
{
	put_program("host-ip", "#!/bin/sh\n[ $CNI_COMMAND = DEL ] || "
			       "echo '{\"ips\": [{\"address\": \"10.9.0.1/24\"}]}'\n");
	assert_int_equal(call("ADD", "", "host-ip"), 0);
	assert_non_null(strstr(stand.printed, "10.9.0.1/24"));
}

static void another_ipam_plugin_s_words_are_passed_on(void **state)
{
	put_program("host-ip", "#!/bin/sh\necho '{\"code\": 7, \"msg\": \"no more\"}'\nexit 1\n");
	assert_int_equal(call("ADD", "", "host-ip"), 1);
	assert_non_null(strstr(stand.printed, "IpamFailed"));
	assert_non_null(strstr(stand.printed, "no more"));
	assert_int_equal(call("ADD", "", "a/path"), 1);
	assert_non_null(strstr(stand.printed, "BadNetworkConfig"));
	assert_int_equal(call("ADD", "", "no-such"), 1);
	assert_non_null(strstr(stand.printed, "no-such"));
}

/* It would wait for the call that it is part of. */
static void a_plugin_of_ours_that_has_no_addresses_is_no_ipam(void **state)
{
	static const char *const types[] = {"sriov", "coordinator", "orbweaver"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		put_program(types[i], "#!/bin/sh\n[ $CNI_COMMAND = DEL ] || "
				      "echo '{\"ips\": [{\"address\": \"10.9.0.1/24\"}]}'\n");
		assert_int_equal(call("ADD", "", types[i]), 1);
		assert_non_null(strstr(stand.printed, "BadNetworkConfig"));
		assert_non_null(strstr(stand.printed, types[i]));
		assert_int_equal(call("DEL", "", types[i]), 0);
	}
}

static void an_ipam_without_a_type_is_refused(void **state)
{
	const char *config = "{\"cniVersion\": \"1.0.0\", \"name\": \"a\", \"ipam\": {}}";

	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 1);
	assert_non_null(strstr(stand.printed, "NoIpam"));
}

static void check_needs_an_attachment(void **state)
{
	assert_int_equal(call("CHECK", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "NotAttached"));
}

static void a_name_that_nobody_knows_is_refused(void **state)
{
	auto_free char *config = config_of("", NULL);

	assert_int_equal(cni_stand_call(&stand, "bridge", "ADD", "c1", config), 1);
	assert_non_null(strstr(stand.printed, "UnknownPlugin"));
}

static void a_failure_becomes_an_event_of_the_pod(void **state)
{
	const json_t *event;

	stand.is_refused = true;
	assert_int_equal(call("ADD", "", "spiderpool"), 1);
	assert_non_null(strstr(stand.printed, "\"code\":11"));
	until_heard("event");
	event = json_at(cni_stand_heard(&stand, "event"), "event");
	assert_string_equal(json_str_at(event, "reason"), "AddressesPending");
	assert_string_equal(json_str_at(event, "pod", "name"), "a");
	assert_string_equal(json_str_at(event, "message"),
			    "interface net1 of network rail0: sriov ADD: no address yet");
}

static void the_agent_hears_what_is_attached_and_what_it_took(void **state)
{
	int64_t until = clock_ms() + 20000;
	const json_t *first = NULL;
	bool is_counted = false;

	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	while (!first && clock_ms() < until) {
		cni_stand_turn(&stand);
		first = json_array_get(
			json_at(cni_stand_heard(&stand, "attachments"), "attachments"), 0);
	}
	assert_string_equal(json_str_at(first, "device"), "0000:03:00.2");
	assert_string_equal(json_str_at(first, "phase"), "added");
	/* What was told before the call had ended does not count it yet. */
	while (!is_counted && clock_ms() < until) {
		until_heard("metrics");
		is_counted = strstr(json_str_at(cni_stand_heard(&stand, "metrics"), "metrics"),
				    "orbweaver_cni_calls_total{plugin=\"sriov\",command=\"ADD\","
				    "outcome=\"ok\"} 1");
		cni_stand_turn(&stand);
	}
	assert_true(is_counted);
}

/* ---- when something ends --------------------------------------------------------------------- */

static void a_worker_that_crashes_is_undone(void **state)
{
	assert_int_equal(call("ADD", "crashes", NULL), 1);
	assert_non_null(strstr(stand.printed, "WorkerEnded"));
	assert_true(is_there("deleted"));
	until_nothing_is_left();
}

static void an_add_that_the_runtime_gives_up_is_undone(void **state)
{
	auto_free char *config = config_of("hangs", NULL);
	pid_t pid = cni_stand_start(&stand, "sriov", "ADD", "c1", config);
	int64_t until = clock_ms() + 20000;

	while (!is_there("hangs") && clock_ms() < until)
		cni_stand_turn(&stand);
	(void)kill(pid, SIGKILL);
	assert_int_equal(cni_stand_finish(&stand, pid), -1);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
}

/* Taking it away has a deadline as short, so that is left to the next server. */
static void an_add_that_takes_too_long_is_undone(void **state)
{
	stand.add_ms = 200;
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	assert_int_equal(call("ADD", "hangs", NULL), 1);
	assert_non_null(strstr(stand.printed, "WorkerEnded"));
	stand.add_ms = 0;
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
}

static void a_del_of_many_devices_has_more_time(void **state)
{
	assert_int_equal(cni_server_del_ms(0), SERVER_DEL_MS);
	assert_int_equal(cni_server_del_ms(8), SERVER_DEL_MS + 8 * SERVER_DEL_DEVICE_MS);
	assert_int_equal(cni_server_del_ms(SIZE_MAX), SERVER_DEL_MAX_MS);
}

static void a_device_that_could_not_be_moved_fails_del(void **state)
{
	assert_int_equal(call("ADD", "stays", NULL), 0);
	assert_int_equal(call("DEL", "stays", NULL), 1);
	assert_non_null(strstr(stand.printed, "it could not be moved"));
}

static bool device_has_owner(void)
{
	auto_free char *path =
		str_printf("%s/var/lib/orbweaver/cni/devices/0000:03:00.2.json", stand.folder);

	return access(path, F_OK) == 0;
}

/* What is left of it on the VF would be the next pod's idea of how it was before. */
static void a_device_stays_the_sandboxs_until_its_last_plugin_has_let_go(void **state)
{
	auto_free char *config = config_of("", NULL);

	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "rdma", "ADD", "c1", config), 0);
	assert_int_equal(cni_stand_call(&stand, "rdma", "DEL", "c1", config), 0);
	assert_true(device_has_owner());
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_false(device_has_owner());
}

/* The kubelet gave it away before the DEL: the runtime comes with that later, or never. */
static void a_device_is_put_back_before_the_next_sandbox_has_it(void **state)
{
	auto_free char *config = config_of("", "spiderpool");

	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c2", config), 0);
	assert_true(is_there("deleted"));
	assert_true(stand.has_given);
	assert_int_equal(call("DEL", "", "spiderpool"), 0);
	assert_true(device_has_owner());
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c2", config), 0);
	assert_false(device_has_owner());
	until_nothing_is_left();
}

static void a_device_that_cannot_be_put_back_is_not_handed_on(void **state)
{
	auto_free char *config = config_of("", NULL);

	assert_int_equal(call("ADD", "waits", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c2", config), 1);
	assert_non_null(strstr(stand.printed, "DeviceBusy"));
	assert_non_null(strstr(stand.printed, "put 0000:03:00.2 back as it was before pod"));
	(void)touch("back");
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c2", config), 0);
}

/* ---- pods of sriov-cni ----------------------------------------------------------------------  */

static bool has_file(const char *path)
{
	auto_free char *below = str_below(stand.folder, path);

	return access(below, F_OK) == 0;
}

static void make_dirs(const char *path)
{
	auto_close int root = open(stand.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(root_make_dirs(root, path, 0700), 0);
}

/* Its VF, as of the namespace at this path. */
static void sriov_cni_attached(const char *netns)
{
	make_dirs("var/lib/cni/sriov/pci");
	put_program("var/lib/cni/sriov/c0-net1",
		    "{\"name\": \"rail0\", \"type\": \"sriov\", \"deviceID\": \"0000:03:00.2\", "
		    "\"Master\": \"enp1s0\", \"VFID\": 0, \"vlan\": null, \"OrigVfState\": "
		    "{\"HostIFName\": \"enp1s0v0\", \"MTU\": 1500}}");
	put_program("var/lib/cni/sriov/pci/0000:03:00.2", netns);
}

static void a_pod_of_sriov_cni_is_taken_down_by_what_that_kept(void **state)
{
	auto_free char *config = config_of("waits", NULL);
	int64_t until = clock_ms() + 20000;

	sriov_cni_attached("/run/netns/c0");
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c0", config), 0);
	/* On a busy machine the call has left a note by now. */
	while (!is_there("enp1s0v0") || has_file("var/lib/cni/sriov/c0-net1") ||
	       has_file("var/lib/cni/sriov/pci/0000:03:00.2")) {
		assert_true(clock_ms() < until);
		cni_stand_turn(&stand);
	}
	/* It waits, and is ours now. */
	(void)touch("back");
	until_nothing_is_left();
}

static void what_sriov_cni_left_is_undone_before_the_next_pod_has_the_vf(void **state)
{
	sriov_cni_attached("/run/netns/c0");
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_true(is_there("enp1s0v0"));
	assert_false(has_file("var/lib/cni/sriov/c0-net1"));
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
}

/*
 * The root of a chroot is no mount, so that nothing keeps what is mounted below it to us. Nothing
 * is allocated before: what is skipped frees nothing.
 */
static void mounts_of_our_own(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
}

/* A bind mount of a namespace, as a runtime's; gone with the test's own mount namespace. */
static void mount_netns(const char *folder, const char *path)
{
	make_dirs(folder);
	put_program(path + strlen(stand.folder) + 1, "");
	assert_int_equal(mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL), 0);
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
}

/* The author of a network can name any device of the node; the kubelet counts who has which. */
static void a_device_that_the_kubelet_gives_away_is_for_the_pod_that_requested_it(void **state)
{
	auto_free char *path =
		str_below(stand.folder, "device-plugins/kubelet_internal_checkpoint");

	make_dirs("device-plugins");
	put_program("device-plugins/kubelet_internal_checkpoint",
		    "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u2\",\"DeviceIDs\":{\"0\":["
		    "\"0000:03:00.2\"]}}],\"RegisteredDevices\":{\"x/y\":[\"0000:03:00.2\"]}}}");
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "sriov: the kubelet has not given device "
					      "0000:03:00.2 to this pod"));
	stand.pod_uid = "u2";
	assert_int_equal(call("ADD", "", NULL), 0);
	/* What is attached goes whatever the kubelet says by then. */
	put_program("device-plugins/kubelet_internal_checkpoint",
		    "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{\"x/y\":["
		    "\"0000:03:00.2\"]}}}");
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(call("ADD", "", NULL), 1);
	/* Another form, or none: nothing is refused by it. */
	put_program("device-plugins/kubelet_internal_checkpoint", "{\"v2\": {}}");
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	stand.pod_uid = NULL;
}

/* It may say that another pod has the device. */
static void a_device_waits_while_the_kubelets_record_cannot_be_read(void **state)
{
	const char *name = "device-plugins/kubelet_internal_checkpoint";
	auto_free char *path = str_below(stand.folder, name);

	make_dirs("device-plugins");
	put_program(name, "{");
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "DevicesUnknown"));
	assert_int_equal(truncate(path, 17 << 20), 0);
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "\"code\":11"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "\"code\":11"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(call("ADD", "", NULL), 0);
}

static void a_pod_of_sriov_cni_that_lives_keeps_its_vf(void **state)
{
	auto_free char *path = NULL;

	mounts_of_our_own();
	path = str_below(stand.folder, "run/netns/c0");
	mount_netns("run/netns", path);
	sriov_cni_attached("/run/netns/c0");
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "a pod that sriov-cni set up has the device"));
	/* Without its mount the file says nothing: the runtime removes it, too. */
	assert_int_equal(umount(path), 0);
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(call("ADD", "", NULL), 0);
}

/* ---- namespaces by their process ------------------------------------------------------------- */

/* A pod's process, whose namespace the runtime names as cri-dockerd does. */
struct process_pod {
	char *proc, *path;
	pid_t pid;
};

static void enter_another_namespace(int signal)
{
	(void)unshare(CLONE_NEWNET);
}

static void process_pod_start(struct process_pod *pod)
{
	mounts_of_our_own();
	pod->proc = str_below(stand.folder, "proc");
	assert_int_equal(mkdir(pod->proc, 0755), 0);
	assert_int_equal(mount("/proc", pod->proc, NULL, MS_BIND, NULL), 0);
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	(void)signal(SIGUSR1, enter_another_namespace);
	pod->pid = fork();
	if (pod->pid == 0)
		for (;;)
			(void)pause();
	pod->path = str_printf("/proc/%d/ns/net", (int)pod->pid);
	stand.netns = pod->path;
}

/* Its number is that of a process of another pod. */
static void process_pod_becomes_another(const struct process_pod *pod)
{
	int64_t until = clock_ms() + 20000;
	struct stat before, now;

	assert_int_equal(stat(pod->path, &before), 0);
	assert_int_equal(kill(pod->pid, SIGUSR1), 0);
	do {
		assert_true(clock_ms() < until);
		assert_int_equal(stat(pod->path, &now), 0);
	} while (now.st_ino == before.st_ino);
}

static void process_pod_end(struct process_pod *pod)
{
	(void)kill(pod->pid, SIGKILL);
	(void)waitpid(pod->pid, NULL, 0);
}

static void process_pod_done(struct process_pod *pod)
{
	stand.netns = NULL;
	assert_int_equal(umount2(pod->proc, MNT_DETACH), 0);
	free(pod->proc);
	free(pod->path);
}

/* docs/cni.md: "Pods that run go on" while the agent is updated. */
static void a_restart_leaves_a_pod_whose_namespace_is_named_by_its_process(void **state)
{
	struct process_pod pod = {0};

	process_pod_start(&pod);
	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	/* A call of the sandbox comes after what the start has found to do for it. */
	assert_int_equal(call("CHECK", "", "spiderpool"), 0);
	assert_false(is_there("deleted"));
	assert_true(stand.has_given);
	cni_stand_kill_server(&stand);
	process_pod_end(&pod);
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
	process_pod_done(&pod);
}

static void a_device_stays_with_a_pod_whose_namespace_is_named_by_its_process(void **state)
{
	auto_free char *config = NULL;
	struct process_pod pod = {0};

	process_pod_start(&pod);
	config = config_of("", NULL);
	assert_int_equal(call("ADD", "", NULL), 0);
	stand.pod_uid = "u2";
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c2", config), 1);
	assert_non_null(strstr(stand.printed, "DeviceBusy"));
	assert_false(is_there("deleted"));
	stand.netns = NULL;
	process_pod_end(&pod);
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c2", config), 0);
	process_pod_done(&pod);
}

static void so_does_one_of_sriov_cni(void **state)
{
	struct process_pod pod = {0};

	process_pod_start(&pod);
	sriov_cni_attached(pod.path);
	stand.netns = NULL;
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_false(is_there("enp1s0v0"));
	process_pod_end(&pod);
	assert_int_equal(call("ADD", "", NULL), 0);
	process_pod_done(&pod);
}

static void del_is_for_the_namespace_that_the_sandbox_had(void **state)
{
	auto_free char *inside = str_below(stand.folder, "kernel/inside");
	struct process_pod pod = {0};

	process_pod_start(&pod);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(unlink(inside), 0);
	assert_int_equal(call("ADD", "", NULL), 0);
	process_pod_becomes_another(&pod);
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
	assert_false(is_there("inside"));
	process_pod_end(&pod);
	process_pod_done(&pod);
}

static void so_is_one_that_was_noted(void **state)
{
	auto_free char *socket = str_below(stand.folder, "run/cni.sock");
	auto_free char *away = str_below(stand.folder, "run/away.sock");
	struct process_pod pod = {0};

	stand.notes_ms = 100;
	process_pod_start(&pod);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(rename(socket, away), 0);
	process_pod_becomes_another(&pod);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(rename(away, socket), 0);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
	assert_false(is_there("inside"));
	process_pod_end(&pod);
	process_pod_done(&pod);
}

/* The next server has buried the sandbox before it comes to the note. */
static void a_note_without_a_sandbox_does_not_believe_a_process(void **state)
{
	struct process_pod pod = {0};

	process_pod_start(&pod);
	assert_int_equal(call("ADD", "", NULL), 0);
	cni_stand_kill_server(&stand);
	assert_int_equal(call("DEL", "", NULL), 0);
	process_pod_becomes_another(&pod);
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
	assert_false(is_there("inside"));
	process_pod_end(&pod);
	process_pod_done(&pod);
}

/* As from a program before us: its PF is away for a while. */
static void what_has_to_wait_is_done_later_also_without_an_add(void **state)
{
	int64_t until = clock_ms() + 20000;
	bool is_kept = false;

	assert_int_equal(call("DEL", "waits", NULL), 0);
	/*
	 * The server tries again at once, and writes the file anew each time: one look may miss it.
	 */
	while (!is_kept && clock_ms() < until) {
		auto_free char *left = cni_stand_leftovers(&stand);

		is_kept = strstr(left, "sandboxes/c1.json");
		cni_stand_turn(&stand);
	}
	assert_true(is_kept);
	(void)touch("back");
	until_nothing_is_left();
}

/* What an ADD and a DEL have left is undone before an ADD with this configuration. */
static void is_undone_before(const char *config)
{
	assert_int_equal(call("ADD", "waits", NULL), 0);
	assert_int_equal(call("DEL", "waits", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 1);
	assert_non_null(strstr(stand.printed, "NotYetUndone"));
	(void)touch("back");
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", config), 0);
	until_nothing_is_left();
}

/* Its record says what the VF was like before, and there is one for each interface of a sandbox. */
static void what_has_to_wait_is_done_before_the_interface_is_made_anew(void **state)
{
	auto_free char *config = config_of("", NULL);

	is_undone_before(config);
}

/* Both records would be about one device, and the old one would take it out of the new pod. */
static void what_has_to_wait_is_done_before_another_interface_is_made(void **state)
{
	is_undone_before("{\"cniVersion\": \"1.1.0\", \"name\": \"rail1\", \"deviceID\": "
			 "\"0000:03:00.2\"}");
}

/* Its number may be that of the namespace before: the pod tells. */
static void a_pod_begins_with_nothing_of_the_one_that_had_its_sandboxs_name(void **state)
{
	auto_free char *folder = str_below(stand.folder, "var/lib/orbweaver/cni/sandboxes");
	auto_free char *file = str_below(folder, "c1.json");
	auto_strbuf struct strbuf text = {0};
	json_auto_t *sandbox = NULL;
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail1\", \"deviceID\": "
			     "\"0000:03:00.3\"}";

	assert_int_equal(call("ADD", "", NULL), 0);
	stand.pod_uid = "u2";
	stand.netns = "/proc/thread-self/ns/net";
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 0);
	assert_true(is_there("deleted"));
	assert_int_equal(fs_read(AT_FDCWD, file, 1 << 20, &text, NULL), 0);
	sandbox = json_parse(text.data, text.len, NULL);
	assert_int_equal(json_array_size(json_at(sandbox, "attachments")), 1);
	assert_string_equal(json_str_at(sandbox, "pod", "uid"), "u2");
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", config), 0);
	until_nothing_is_left();
}

/* A static pod has one UID from its kubelet, and another one at the API server. */
static void a_sandbox_in_its_namespace_is_one_whatever_uid_a_call_has(void **state)
{
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail1\", \"deviceID\": "
			     "\"0000:03:00.3\"}";

	assert_int_equal(call("ADD", "", NULL), 0);
	stand.pod_uid = "u2";
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 0);
	assert_false(is_there("deleted"));
	stand.pod_uid = NULL;
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", config), 0);
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
}

/* Or what the VF was like before would be forgotten. */
static void an_add_without_a_del_before_begins_anew(void **state)
{
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_false(is_there("deleted"));
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_true(is_there("deleted"));
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
}

/* The record is both's: with another configuration the ADD is not the same one again. */
static void a_second_tuning_of_a_list_goes_on_where_the_first_has_ended(void **state)
{
	static const char first[] = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
				    "\"mtu\": 1400, \"prevResult\": {}}";
	static const char second[] = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
				     "\"mtu\": 1300, \"prevResult\": {}}";
	static const char again[] = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
				    "\"mtu\": 1300, \"prevResult\": {\"ips\": []}}";

	assert_int_equal(cni_stand_call(&stand, "tuning", "ADD", "c1", first), 0);
	assert_false(is_there("beside"));
	assert_int_equal(cni_stand_call(&stand, "tuning", "ADD", "c1", second), 0);
	assert_true(is_there("beside"));
	assert_false(is_there("deleted"));
	assert_int_equal(cni_stand_call(&stand, "tuning", "ADD", "c1", again), 0);
	assert_true(is_there("deleted"));
	assert_int_equal(cni_stand_call(&stand, "tuning", "DEL", "c1", second), 0);
	until_nothing_is_left();
}

/* The same keys, and a pod that is gone for long. */
static void a_late_note_of_the_pod_before_takes_nothing_of_this_one(void **state)
{
	auto_free char *path = NULL;

	mounts_of_our_own();
	path = str_below(stand.folder, "proc/self/ns/net");
	mount_netns("proc/self/ns", path);
	stand.netns = "/proc/self/ns/net";
	assert_int_equal(call("ADD", "", NULL), 0);
	cni_stand_kill_server(&stand);
	stand.pod_uid = "u0";
	assert_int_equal(call("DEL", "", NULL), 0);
	stand.pod_uid = NULL;
	cni_stand_start_server(&stand, true);
	until_no_note_is_left();
	assert_false(is_there("deleted"));
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_true(is_there("deleted"));
	until_nothing_is_left();
	assert_int_equal(umount(path), 0);
}

static void say_profile(const char *name)
{
	json_auto_t *message = json_pack("{s:s}", "profile", name);

	cni_stand_say(&stand, message);
}

static void until_networks_are(const char *reason)
{
	const int64_t until = clock_ms() + 30000;
	const char *heard = NULL;

	while (!str_eq(heard, reason) && clock_ms() < until) {
		cni_stand_turn(&stand);
		heard = json_str_at(cni_stand_heard(&stand, "podNetworks"), "podNetworks",
				    "reason");
	}
	assert_string_equal(heard, reason);
}

static bool is_on_host(const char *path)
{
	auto_free char *full = str_below(stand.folder, path);

	return access(full, F_OK) == 0;
}

static void plugins_stay_as_long_as_a_pod_uses_them(void **state)
{
	static const char mark[] = PLUGIN_MARK;
	const char *config = "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"sriov\"}";
	auto_free char *program = str_below(stand.folder, "program");

	assert_int_equal(fs_write_atomic(AT_FDCWD, program, mark, strlen(mark), 0755, NULL), 0);
	stand.program = program;
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	/* Not a word of ours. */
	say_profile("all");
	say_profile("delegate");
	until_networks_are("PluginsOnly");
	assert_true(is_on_host("bin/sriov"));
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 0);
	say_profile("devices");
	until_networks_are("PluginsInUse");
	assert_true(is_on_host("bin/sriov"));
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", config), 0);
	until_networks_are("DevicesOnly");
	assert_false(is_on_host("bin/sriov"));
	stand.program = NULL;
}

static void gc_takes_away_what_is_not_on_the_list(void **state)
{
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
			     "\"cni.dev/valid-attachments\": []}";

	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", config), 0);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
}

static void gc_takes_nothing_away_without_a_list(void **state)
{
	const char *const configs[] = {
		"{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\"}",
		"{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
		"\"cni.dev/valid-attachments\": null}",
	};

	assert_int_equal(call("ADD", "", NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
		assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", configs[i]), 1);
		assert_non_null(strstr(stand.printed, "valid-attachments"));
		assert_int_equal(call("CHECK", "", NULL), 0);
		assert_false(is_there("deleted"));
	}
}

/* SPEC.md 1.1.0 as it was released first; a runtime written to it sends no other key. */
static void gc_leaves_what_is_on_the_list_of_the_first_key(void **state)
{
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
			     "\"cni.dev/attachments\": "
			     "[{\"containerID\": \"c1\", \"ifname\": \"net1\"}]}";

	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", config), 0);
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_false(is_there("deleted"));
}

static void gc_leaves_a_pod_that_lives_whatever_the_list_says(void **state)
{
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
			     "\"cni.dev/valid-attachments\": []}";
	struct process_pod pod = {0};

	process_pod_start(&pod);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", config), 0);
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_false(is_there("deleted"));
	process_pod_end(&pod);
	assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", config), 0);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
	process_pod_done(&pod);
}

static void gc_leaves_what_is_on_the_list(void **state)
{
	const char *config = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", "
			     "\"cni.dev/valid-attachments\": "
			     "[{\"containerID\": \"c1\", \"ifname\": \"net1\"}]}";

	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "GC", "", config), 0);
	/* A call of the same sandbox comes after it. */
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_false(is_there("deleted"));
}

/* ---- without an agent ------------------------------------------------------------------------ */

/*
 * docs/cni.md: "Pods that run go on". A STATUS that fails makes the node NotReady, and ends them.
 */
static void status_is_well_while_the_agent_is_away(void **state)
{
	auto_free char *config = config_of("", NULL);

	/* Which waits until the server is there. */
	assert_int_equal(call("ADD", "", "spiderpool"), 1);
	assert_non_null(strstr(stand.printed, "AgentAway"));
	assert_int_equal(cni_stand_call(&stand, "sriov", "STATUS", "", config), 0);
}

/* It listens: a STATUS waits for no server, and is well without one. */
static void start_anew(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool is_there = false;

	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/cni.sock", stand.folder);
	while (!is_there) {
		auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		cni_stand_turn(&stand);
		is_there = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	}
}

/* Ours carries the cluster's network, with its cniVersion. */
static int call_meta(const char *command, const char *version, const char *type)
{
	auto_free char *config =
		str_printf("{\"cniVersion\": \"1.1.0\", \"name\": \"net\", \"delegates\": "
			   "[{\"cniVersion\": \"%s\", \"name\": \"net\", \"plugins\": "
			   "[{\"type\": \"%s\"}]}], \"cni.dev/valid-attachments\": "
			   "[{\"containerID\": \"c7\", \"ifname\": \"eth0\"}]}",
			   version, type);

	return cni_stand_call(&stand, "orbweaver", command, "", config);
}

static void status_is_that_of_the_clusters_network(void **state)
{
	/* A worker has as long as a slow machine takes. */
	stand.add_ms = SERVER_ADD_MAX_MS;
	start_anew();
	put_program("host-net", "#!/bin/sh\ntest \"$CNI_COMMAND\" = STATUS && exit 0\nexit 1\n");
	assert_int_equal(call_meta("STATUS", "1.1.0", "host-net"), 0);
	put_program("host-net", "#!/bin/sh\necho '{\"code\": 50, \"msg\": \"no routes yet\"}'\n"
				"exit 1\n");
	assert_int_equal(call_meta("STATUS", "1.1.0", "host-net"), 1);
	assert_non_null(strstr(stand.printed, "no routes yet"));
	assert_int_equal(call_meta("STATUS", "1.0.0", "host-net"), 0);
	/* What keeps us from asking it says nothing of the network. */
	stand.plugin_types = "other";
	start_anew();
	assert_int_equal(call_meta("STATUS", "1.1.0", "host-other"), 0);
}

static void gc_reaches_the_clusters_network(void **state)
{
	auto_free char *path = str_below(stand.folder, "gc");
	auto_strbuf struct strbuf text = {0};

	put_program("host-net", "#!/bin/sh\nprintf '%s ' \"$CNI_COMMAND\" >\"$CNI_PATH/gc\"\n"
				"cat >>\"$CNI_PATH/gc\"\n");
	assert_int_equal(call_meta("GC", "1.1.0", "host-net"), 0);
	assert_int_equal(fs_read(AT_FDCWD, path, 4096, &text, NULL), 0);
	assert_true(str_starts(strbuf_str(&text), "GC "));
	assert_non_null(strstr(strbuf_str(&text), "\"c7\""));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(call_meta("GC", "1.0.0", "host-net"), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void an_agent_that_goes_leaves_the_server_standing(void **state)
{
	auto_free char *config = config_of("", NULL);
	int server = cni_shared->server;

	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	(void)close(stand.line);
	stand.line = -1;
	assert_int_equal(call("CHECK", "", "spiderpool"), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "STATUS", "", config), 0);
	assert_int_equal(cni_shared->server, server);
}

static void add_waits_for_the_agent_and_says_to_try_again(void **state)
{
	assert_int_equal(call("ADD", "", "spiderpool"), 1);
	assert_non_null(strstr(stand.printed, "AgentAway"));
	assert_non_null(strstr(stand.printed, "\"code\":11"));
}

/* With a server that is started without an agent, and the next, which has one. */
static void del_before_the_agent_is_back(void)
{
	auto_free char *config = config_of("", "spiderpool");

	cni_stand_start_server(&stand, false);
	assert_int_equal(cni_stand_call(&stand, "spiderpool", "DEL", "c1", config), 0);
	assert_true(stand.has_given);
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	while (stand.has_given)
		cni_stand_turn(&stand);
}

static void del_does_not_wait_and_is_finished_when_the_agent_is_back(void **state)
{
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	cni_stand_kill_server(&stand);
	del_before_the_agent_is_back();
}

/* Addresses are asked for before there is a record: it was killed in between. */
static void so_is_one_of_which_nothing_is_known(void **state)
{
	cni_stand_kill_server(&stand);
	stand.has_given = true;
	del_before_the_agent_is_back();
	until_nothing_is_left();
}

static void a_del_without_a_server_is_worked_off_by_the_next(void **state)
{
	auto_free char *socket = NULL;

	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	assert_int_equal(call("ADD", "", "spiderpool"), 0);
	socket = str_below(stand.folder, "run/cni.sock");
	(void)kill(cni_shared->server, SIGSTOP);
	assert_int_equal(unlink(socket), 0);
	assert_int_equal(call("DEL", "", "spiderpool"), 0);
	assert_false(is_there("deleted"));
	cni_stand_kill_server(&stand);
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
	assert_false(stand.has_given);
}

/* The socket was out of reach for a moment: nobody starts the server again for that. */
static void a_note_beside_a_server_that_runs_is_worked_off(void **state)
{
	auto_free char *socket = str_below(stand.folder, "run/cni.sock");
	auto_free char *away = str_below(stand.folder, "run/away.sock");

	cni_stand_kill_server(&stand);
	stand.notes_ms = 100;
	cni_stand_start_server(&stand, true);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(rename(socket, away), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(rename(away, socket), 0);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
}

/* The text of the only note there is. */
static void read_note(struct strbuf *ret)
{
	auto_free char *left = cni_stand_leftovers(&stand);
	const char *name = strstr(left, "notes/");
	auto_free char *path = NULL;

	assert_non_null(name);
	path = str_printf("%s/var/lib/orbweaver/cni/%.*s", stand.folder, (int)strcspn(name, " \n"),
			  name);
	assert_int_equal(fs_read(AT_FDCWD, path, SIZE_MAX / 2, ret, NULL), 0);
}

/* More than are taken at a time, the first of which are none. */
static void all_notes_are_worked_off_however_many_there_are(void **state)
{
	enum { MANY = 3 * SERVER_NOTES_MAX };
	auto_strbuf struct strbuf note = {0};

	cni_stand_kill_server(&stand);
	assert_int_equal(call("DEL", "", NULL), 0);
	read_note(&note);
	for (int i = 0; i < MANY; i++) {
		auto_free char *name = str_printf("var/lib/orbweaver/cni/notes/%04d", i);
		auto_free char *path = str_below(stand.folder, name);

		assert_int_equal(fs_write_atomic(AT_FDCWD, path,
						 i < SERVER_NOTES_MAX ? "none" : note.data,
						 i < SERVER_NOTES_MAX ? 4 : note.len, 0600, NULL),
				 0);
	}
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
}

static void a_note_that_is_none_is_removed(void **state)
{
	auto_free char *notes = str_below(stand.folder, "var/lib/orbweaver/cni/notes");

	cni_stand_kill_server(&stand);
	assert_int_equal(fs_make_dirs(notes, 0700), 0);
	put_program("var/lib/orbweaver/cni/notes/1", "nonsense");
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
}

static void a_note_of_another_version_stays_for_it(void **state)
{
	static const char note[] = "\0\0\0\4\2\1\0\0";
	auto_free char *notes = str_below(stand.folder, "var/lib/orbweaver/cni/notes");
	auto_free char *path = str_below(notes, "1"), *left = NULL;

	cni_stand_kill_server(&stand);
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_int_equal(fs_write_atomic(AT_FDCWD, path, note, 8, 0600, NULL), 0);
	cni_stand_start_server(&stand, true);
	until_none_is_left("sandboxes/", "notes/0");
	assert_true(is_there("deleted"));
	left = cni_stand_leftovers(&stand);
	assert_non_null(strstr(left, "notes/1"));
}

/* A namespace that is not there any more: nobody sends a DEL for it, perhaps never. */
static void what_belongs_to_a_sandbox_that_is_gone_is_buried(void **state)
{
	const char *sandbox =
		"{\"version\": 1, \"container\": \"c1\", \"boot\": \"an earlier one\", "
		"\"netns\": {\"path\": \"/run/netns/gone\"}, \"pod\": {\"namespace\": \"lab\", "
		"\"name\": \"a\", \"uid\": \"u1\"}, \"attachments\": [{\"plugin\": \"sriov\", "
		"\"network\": \"rail0\", \"ifname\": \"net1\", \"phase\": \"added\", "
		"\"config\": {}, \"saved\": {\"was\": \"eth7\"}}]}";
	auto_free char *folder = str_below(stand.folder, "var/lib/orbweaver/cni/sandboxes");

	cni_stand_kill_server(&stand);
	assert_int_equal(fs_make_dirs(folder, 0700), 0);
	put_program("var/lib/orbweaver/cni/sandboxes/c1.json", sandbox);
	cni_stand_start_server(&stand, true);
	until_nothing_is_left();
	assert_true(is_there("deleted"));
}

/* What waits of the namespace before must not have what is in this one taken for gone. */
static void a_file_of_a_namespace_before_becomes_one_of_this(void **state)
{
	const char *before =
		"{\"version\": 1, \"container\": \"c1\", \"boot\": \"an earlier one\", "
		"\"netns\": {\"path\": \"/run/netns/gone\", \"device\": 4, \"inode\": 1}, "
		"\"pod\": {\"namespace\": \"lab\", \"name\": \"a\", \"uid\": \"u0\"}, "
		"\"attachments\": [{\"plugin\": \"sriov\", \"network\": \"rail0\", "
		"\"ifname\": \"net1\", \"phase\": \"deleting\", \"config\": {\"deviceID\": "
		"\"0000:03:00.7\"}}]}";
	auto_free char *folder = str_below(stand.folder, "var/lib/orbweaver/cni/sandboxes");
	auto_free char *file = str_below(folder, "c1.json");
	auto_strbuf struct strbuf text = {0};
	json_auto_t *sandbox = NULL;
	const json_t *record;

	assert_int_equal(fs_make_dirs(folder, 0700), 0);
	put_program("var/lib/orbweaver/cni/sandboxes/c1.json", before);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(fs_read(AT_FDCWD, file, 1 << 20, &text, NULL), 0);
	sandbox = json_parse(text.data, text.len, NULL);
	record = json_array_get(json_at(sandbox, "attachments"), 0);
	assert_string_not_equal(json_str_at(sandbox, "boot"), "an earlier one");
	assert_true(json_integer_value(json_at(sandbox, "netns", "inode")) > 1);
	assert_string_not_equal(json_str_at(sandbox, "pod", "uid"), "u0");
	assert_string_equal(json_str_at(record, "config", "deviceID"), "0000:03:00.2");
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
}

/* The network's definition was edited, or is another one by now. */
static void del_goes_by_what_add_was_told(void **state)
{
	const char *edited = "{\"cniVersion\": \"1.1.0\", \"name\": \"rail0\", \"deviceID\": "
			     "\"0000:03:00.7\"}";
	auto_free char *folder = str_below(stand.folder, "var/lib/orbweaver/cni/sandboxes");
	auto_free char *file = str_below(folder, "c1.json");
	auto_strbuf struct strbuf text = {0};

	assert_int_equal(call("ADD", "waits", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "DEL", "c1", edited), 0);
	assert_int_equal(fs_read(AT_FDCWD, file, 1 << 20, &text, NULL), 0);
	assert_non_null(strstr(strbuf_str(&text), "0000:03:00.2"));
	assert_null(strstr(strbuf_str(&text), "0000:03:00.7"));
	(void)touch("back");
	until_nothing_is_left();
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* docs/cni.md: what was changed is on the disk before it is changed. A NAD may have 1.5 MB. */
static void
a_network_of_which_too_much_would_be_kept_is_refused_before_anything_is_changed(void **state)
{
	auto_free char *pad = mem_zalloc((100 << 10) + 1);
	auto_free char *config = NULL, *previous = NULL;

	memset(pad, 'x', 100 << 10);
	config = str_printf("{\"cniVersion\": \"1.1.0\", \"name\": \"rail1\", \"note\": \"%s\", "
			    "\"deviceID\": \"0000:03:00.3\"}",
			    pad);
	assert_int_equal(call("ADD", "", NULL), 0);
	assert_int_equal(cni_stand_call(&stand, "sriov", "ADD", "c1", config), 1);
	assert_non_null(strstr(stand.printed, "network rail1 has"));
	assert_false(is_there("deleted"));
	/* Without a device, too: there is nothing to undo. */
	config[strlen(config) - 1] = ' ';
	assert_int_equal(cni_stand_call(&stand, "rdma", "ADD", "c1", config), 1);
	/* Its own attachment is as it was, and what comes behind it in the list is not kept. */
	assert_int_equal(call("CHECK", "", NULL), 0);
	previous = str_printf("{\"cniVersion\": \"1.1.0\", \"name\": \"rail2\", \"prevResult\": "
			      "{\"cniVersion\": \"1.1.0\", \"note\": \"%s\"}}",
			      pad);
	assert_int_equal(cni_stand_call(&stand, "coordinator", "ADD", "c1", previous), 0);
	assert_int_equal(cni_stand_call(&stand, "coordinator", "DEL", "c1", previous), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
	until_nothing_is_left();
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* User and system time of a process, in ticks (proc(5)). */
static int64_t ticks_of(pid_t pid)
{
	auto_free char *path = str_printf("/proc/%d/stat", (int)pid);
	auto_strbuf struct strbuf text = {0};
	long long user = 0, system = 0;
	const char *rest;

	assert_int_equal(fs_read(AT_FDCWD, path, 4096, &text, NULL), 0);
	rest = strrchr(strbuf_str(&text), ')');
	assert_non_null(rest);
	assert_int_equal(sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
				&user, &system),
			 2);
	return user + system;
}

/* A server that turns all the time never has two equal numbers that far apart. */
static void until_it_rests(void)
{
	int64_t until = clock_ms() + 20000;

	for (;;) {
		int64_t before = ticks_of(cni_shared->server);

		for (int i = 0; i < 100; i++)
			cni_stand_turn(&stand);
		if (ticks_of(cni_shared->server) == before)
			return;
		assert_true(clock_ms() < until);
	}
}

static int connect_to_server(void)
{
	auto_free char *path = str_below(stand.folder, "run/cni.sock");
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(path) < sizeof(name.sun_path));
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	assert_int_equal(connect(fd, (void *)&name, sizeof(name)), 0);
	return fd;
}

static void a_server_without_descriptors_waits_until_a_call_ends(void **state)
{
	struct rlimit limit, few;
	int fds[64];

	cni_stand_kill_server(&stand);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){48, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	cni_stand_start_server(&stand, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(call("ADD", "", NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_to_server();
	until_it_rests();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	assert_int_equal(call("CHECK", "", NULL), 0);
	assert_int_equal(call("DEL", "", NULL), 0);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void a_line_passes_late_replies_over_and_says_when_the_server_is_gone(void **state)
{
	struct worker_channel line = {0}, server = {0};
	json_auto_t *request = ask_new(1, "status"), *late = NULL, *reply = NULL, *result = NULL;
	struct err err = {0};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	line.fd = pair[0];
	server.fd = pair[1];
	assert_null(worker_channel_ask_within(&line, ask_new(0, "status"), 1, &err));
	assert_string_equal(err.reason, "AgentAway");
	late = ask_reply_new(request, json_pack("{s:b}", "late", 1), NULL);
	worker_channel_pass(&server, late);
	json_put_int(request, "id", 2);
	reply = ask_reply_new(request, json_pack("{s:b}", "late", 0), NULL);
	worker_channel_pass(&server, reply);
	result = worker_channel_ask(&line, ask_new(0, "release"), &err);
	assert_true(json_is_false(json_at(result, "late")));
	(void)close(pair[1]);
	assert_null(worker_channel_ask(&line, ask_new(0, "release"), &err));
	assert_string_equal(err.reason, "ServerGone");
	json_decref(line.replies);
	strbuf_done(&line.in);
	(void)close(pair[0]);
}

static void a_program_that_prints_no_result_is_an_error(void **state)
{
	json_auto_t *end = json_pack("{s:i, s:s}", "status", 0, "stdout", "hello");
	json_t *result = NULL;
	struct err err = {0};

	assert_int_equal(external_ipam_read("x", end, &result, &err), -1);
	assert_string_equal(err.reason, "BadResult");
}

/* ---- what a server that was taken over may not have done ------------------------------------- */

static void a_worker_refuses_the_namespace_of_the_node(void **state)
{
	auto_strbuf struct strbuf text = {0};
	auto_free char *seen = NULL;
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	stand.node_netns = st.st_ino;
	start_anew();
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "network namespace of the node"));
	/* A process of the host has the number of the pod's: that must not keep the pod. */
	put_program("host-ip", "#!/bin/sh\necho \"netns=$CNI_NETNS\" >\"$CNI_PATH/seen\"\n");
	assert_int_equal(call("DEL", "", "host-ip"), 0);
	assert_true(is_there("deleted"));
	seen = str_below(stand.folder, "seen");
	assert_int_equal(fs_read(AT_FDCWD, seen, 4096, &text, NULL), 0);
	assert_string_equal(strbuf_str(&text), "netns=\n");
}

/* What the plugin opened is no network namespace; what programs would open is the node's. */
static void a_worker_refuses_a_path_to_the_namespace_of_the_node(void **state)
{
	auto_free char *path = str_below(stand.folder, "proc/self/ns/uts");
	struct stat st;

	mounts_of_our_own();
	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	stand.node_netns = st.st_ino;
	stand.netns = "/proc/self/ns/uts";
	mount_netns("proc/self/ns", path);
	assert_int_equal(call("ADD", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "network namespace of the node"));
	assert_int_equal(umount(path), 0);
}

/* The slave of a terminal that is locked is one that cannot be opened now: EIO. */
static void del_fails_while_the_namespace_cannot_be_opened(void **state)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);

	if (terminal < 0)
		skip();
	assert_int_equal(call("ADD", "", NULL), 0);
	stand.netns = ptsname(terminal);
	assert_int_equal(call("DEL", "", NULL), 1);
	assert_non_null(strstr(stand.printed, "NetnsUnknown"));
	assert_false(is_there("deleted"));
	stand.netns = NULL;
	assert_int_equal(call("DEL", "", NULL), 0);
	assert_true(is_there("deleted"));
	(void)close(terminal);
}

static void a_worker_runs_no_program_that_is_not_on_its_list(void **state)
{
	put_program("bash", "#!/bin/sh\ntouch \"$CNI_PATH/was-run\"\n");
	stand.plugin_types = "host-*";
	start_anew();
	assert_int_equal(call("ADD", "", "bash"), 1);
	assert_non_null(strstr(stand.printed, "PluginNotAllowed"));
	/* Without this folder the plugin would run any. */
	assert_true(is_on_host("var/lib/orbweaver/cni/programs"));
	/* A DEL without a record names it as well, and what it leaves is tried again. */
	(void)call("DEL", "waits", "bash");
	assert_false(is_on_host("was-run"));
	assert_true(is_on_host("var/lib/orbweaver/cni/sandboxes/c1.json"));
	assert_int_equal(touch("back"), 0);
	until_nothing_is_left();
	assert_false(is_on_host("var/lib/orbweaver/cni/programs/bash"));
}

/* Of a version before, which had no list for these, or of a longer list. */
static void what_was_added_is_deleted_by_a_program_that_is_not_listed_any_more(void **state)
{
	put_program("old-ip", "#!/bin/sh\n[ $CNI_COMMAND = ADD ] || touch \"$CNI_PATH/was-run\"\n"
			      "echo '{\"ips\": [{\"address\": \"10.9.0.1/24\"}]}'\n");
	assert_int_equal(call("ADD", "", "old-ip"), 0);
	stand.plugin_types = "host-*";
	start_anew();
	assert_int_equal(call("DEL", "", "old-ip"), 0);
	assert_true(is_on_host("was-run"));
}

int main(void)
{
#define CASE(name)       cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define CASE_ALONE(name) cmocka_unit_test_setup_teardown(name, set_up_without_agent, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(addresses_come_from_the_agent),
		CASE(a_network_without_version_gets_a_result_of_the_first),
		CASE(the_coordinator_has_the_cluster_s_settings),
		CASE(another_ipam_plugin_is_run_by_the_plugin),
		CASE(another_ipam_plugin_s_words_are_passed_on),
		CASE(a_worker_refuses_the_namespace_of_the_node),
		CASE(a_worker_refuses_a_path_to_the_namespace_of_the_node),
		CASE(del_fails_while_the_namespace_cannot_be_opened),
		CASE(a_worker_runs_no_program_that_is_not_on_its_list),
		CASE(what_was_added_is_deleted_by_a_program_that_is_not_listed_any_more),
		CASE(a_plugin_of_ours_that_has_no_addresses_is_no_ipam),
		CASE(an_ipam_without_a_type_is_refused),
		CASE(check_needs_an_attachment),
		CASE(a_name_that_nobody_knows_is_refused),
		CASE(a_failure_becomes_an_event_of_the_pod),
		CASE(the_agent_hears_what_is_attached_and_what_it_took),
		CASE(a_worker_that_crashes_is_undone),
		CASE(an_add_that_the_runtime_gives_up_is_undone),
		CASE(an_add_that_takes_too_long_is_undone),
		CASE(a_del_of_many_devices_has_more_time),
		CASE(a_device_that_could_not_be_moved_fails_del),
		CASE(a_device_stays_the_sandboxs_until_its_last_plugin_has_let_go),
		CASE(a_device_is_put_back_before_the_next_sandbox_has_it),
		CASE(a_device_that_cannot_be_put_back_is_not_handed_on),
		CASE(a_pod_of_sriov_cni_is_taken_down_by_what_that_kept),
		CASE(what_sriov_cni_left_is_undone_before_the_next_pod_has_the_vf),
		CASE(a_device_that_the_kubelet_gives_away_is_for_the_pod_that_requested_it),
		CASE(a_device_waits_while_the_kubelets_record_cannot_be_read),
		CASE(a_pod_of_sriov_cni_that_lives_keeps_its_vf),
		CASE(a_restart_leaves_a_pod_whose_namespace_is_named_by_its_process),
		CASE(a_device_stays_with_a_pod_whose_namespace_is_named_by_its_process),
		CASE(so_does_one_of_sriov_cni),
		CASE(del_is_for_the_namespace_that_the_sandbox_had),
		CASE(so_is_one_that_was_noted),
		CASE(a_note_without_a_sandbox_does_not_believe_a_process),
		CASE(what_has_to_wait_is_done_later_also_without_an_add),
		CASE(what_has_to_wait_is_done_before_the_interface_is_made_anew),
		CASE(what_has_to_wait_is_done_before_another_interface_is_made),
		CASE(a_pod_begins_with_nothing_of_the_one_that_had_its_sandboxs_name),
		CASE(a_sandbox_in_its_namespace_is_one_whatever_uid_a_call_has),
		CASE(an_add_without_a_del_before_begins_anew),
		CASE(a_second_tuning_of_a_list_goes_on_where_the_first_has_ended),
		CASE(a_late_note_of_the_pod_before_takes_nothing_of_this_one),
		CASE(gc_takes_away_what_is_not_on_the_list),
		CASE(gc_leaves_what_is_on_the_list),
		CASE(gc_takes_nothing_away_without_a_list),
		CASE(gc_leaves_what_is_on_the_list_of_the_first_key),
		CASE(gc_leaves_a_pod_that_lives_whatever_the_list_says),
		CASE_ALONE(status_is_well_while_the_agent_is_away),
		CASE(status_is_that_of_the_clusters_network),
		CASE(gc_reaches_the_clusters_network),
		CASE(an_agent_that_goes_leaves_the_server_standing),
		CASE_ALONE(add_waits_for_the_agent_and_says_to_try_again),
		CASE_ALONE(del_does_not_wait_and_is_finished_when_the_agent_is_back),
		CASE_ALONE(so_is_one_of_which_nothing_is_known),
		CASE_ALONE(a_del_without_a_server_is_worked_off_by_the_next),
		CASE(all_notes_are_worked_off_however_many_there_are),
		CASE(a_note_that_is_none_is_removed),
		CASE(a_note_of_another_version_stays_for_it),
		CASE(a_note_beside_a_server_that_runs_is_worked_off),
		CASE(what_belongs_to_a_sandbox_that_is_gone_is_buried),
		CASE(a_file_of_a_namespace_before_becomes_one_of_this),
		CASE(del_goes_by_what_add_was_told),
		CASE(plugins_stay_as_long_as_a_pod_uses_them),
		CASE(a_network_of_which_too_much_would_be_kept_is_refused_before_anything_is_changed),
		CASE(a_server_without_descriptors_waits_until_a_call_ends),
		cmocka_unit_test(a_line_passes_late_replies_over_and_says_when_the_server_is_gone),
		cmocka_unit_test(a_program_that_prints_no_result_is_an_error),
	};

	json_init();
	(void)log_configure("warn", NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

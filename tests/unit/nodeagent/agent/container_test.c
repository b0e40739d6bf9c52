// SPDX-License-Identifier: Apache-2.0
/* What a changed manifest takes from the agent's container, and how it is reported. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/container.h"

/* As in a pod of containerd 2: the root's is private, volumes are as the manifest says. */
#define POD                                                                                        \
	"2001 1900 0:88 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b\n"            \
	"2002 2001 0:91 / /proc rw,nosuid - proc proc rw\n"
#define HOST(how)    "2010 2001 8:1 / /host rw,relatime" how " - ext4 /dev/sda1 rw\n"
#define KUBELET(how) "2011 2001 8:1 /k /var/lib/kubelet rw,relatime" how " - ext4 /dev/sda1 rw\n"

TEST(tells_volumes_of_the_host_from_copies_of_them)
{
	static const struct {
		const char *mountinfo, *path;
		bool is_private;
	} rows[] = {
		{POD HOST(" master:1") KUBELET(""), "/host", false},
		{POD HOST(" master:1") KUBELET(""), "/var/lib/kubelet", true},
		{POD HOST("") KUBELET(" master:1"), "/host", true},
		{POD HOST("") KUBELET(" shared:7"), "/var/lib/kubelet", false},
		{POD HOST("") KUBELET(" shared:7 master:3"), "/var/lib/kubelet", false},
		{POD HOST("") KUBELET(" propagate_from:2 master:3"), "/var/lib/kubelet", false},
		{POD HOST("") KUBELET(" unbindable"), "/var/lib/kubelet", true},
		/* No volume: what counts is what holds the folder. */
		{POD HOST(" master:1"), "/var/lib/kubelet", true},
		{POD HOST(" master:1"), "/host/var/lib/kubelet", false},
		{POD HOST(" master:1"), "/hostess", true},
		{POD HOST(" master:1"), "/host/", false},
		/* The later one covers the earlier one. */
		{POD HOST("") HOST(" master:1"), "/host", false},
		{POD HOST(" master:1") HOST(""), "/host", true},
		{"1 2 8:1 / /a\\040b rw master:1 - ext4 d rw\n", "/a b", false},
		{"1 2 8:1 / /a\\134b rw master:1 - ext4 d rw\n", "/a\\b", false},
		/* What cannot be read is not known to be the host's. */
		{"", "/host", true},
		{"2010 2001\n", "/host", true},
		{"2010 2001 8:1 / /host", "/host", true},
		{"2010 2001 8:1 / /host rw master:1\n1 2 8:1 / /x rw - ext4 d rw\n", "/host", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (container_is_private(rows[i].mountinfo, rows[i].path) != rows[i].is_private)
			fail_msg("row %zu: %s", i, rows[i].path);
	assert_true(container_is_mount(POD HOST(""), "/host"));
	assert_false(container_is_mount(POD HOST(""), "/host/var"));
	assert_false(container_is_mount("", "/host"));
}

/* Of a container as the manifests make it. */
static struct container_facts good(void)
{
	return (struct container_facts){.descriptors = 1048576, .memory = CONTAINER_MEMORY};
}

static void expect(const struct container_facts *facts, enum profile profile, const char *reason,
		   const char *text)
{
	json_auto_t *findings = container_findings(facts, "/host", "/var/lib/kubelet", profile);
	const char *message = json_str_at(json_array_get(findings, 0), "message");

	if (!reason) {
		assert_int_equal(json_array_size(findings), 0);
		return;
	}
	assert_int_equal(json_array_size(findings), 1);
	assert_string_equal(json_str_at(json_array_get(findings, 0), "reason"), reason);
	/* A condition quotes so much of it. */
	assert_in_range(strlen(message), 1, 300);
	if (!strstr(message, text))
		fail_msg("%s: not in: %s", text, message);
}

TEST(names_what_to_write_for_each_thing_that_is_missing)
{
	static const char mount[] = "MountPrivate", unfit[] = "ContainerUnfit";
	struct container_facts facts = good();

	expect(&facts, PROFILE_AUTO, NULL, NULL);
	facts.is_root_private = true;
	expect(&facts, PROFILE_AUTO, mount,
	       "volumeMount /host has no mountPropagation: HostToContainer");
	facts = good(), facts.is_kubelet_private = true;
	expect(&facts, PROFILE_AUTO, mount, "volumeMount /var/lib/kubelet has no");
	facts = good(), facts.lacks_openat2 = true;
	expect(&facts, PROFILE_AUTO, unfit, "Linux 5.6");
	facts = good(), facts.has_own_pids = true;
	expect(&facts, PROFILE_AUTO, unfit, "hostPID: true");
	facts = good(), facts.has_own_network = true;
	expect(&facts, PROFILE_AUTO, unfit, "hostNetwork: true");
	facts = good(), facts.is_filtered = true;
	expect(&facts, PROFILE_AUTO, unfit, "seccompProfile: { type: Unconfined }");
	facts = good(), facts.descriptors = 1024;
	expect(&facts, PROFILE_AUTO, unfit, "LimitNOFILE of the container runtime's unit to 4096");
	facts = good(), facts.memory = 128 << 20;
	expect(&facts, PROFILE_AUTO, unfit, "limits.memory of the agent's DaemonSet to 256Mi");
	expect(&facts, PROFILE_DELEGATE, unfit, "profile delegate");
	/* No CNI, no programs of others. */
	expect(&facts, PROFILE_DEVICES, NULL, NULL);
	/* What is not known is not blamed on anybody. */
	facts = (struct container_facts){0};
	expect(&facts, PROFILE_AUTO, NULL, NULL);
}

/* ---- with mounts ----------------------------------------------------------------------------- */

/* In a mount namespace of its own: what container_look() says of root and folder. */
static struct container_facts look_with(const char *dir, unsigned long root, unsigned long folder)
{
	auto_free char *host = str_below(dir, "host"), *kubelet = str_below(dir, "kubelet");
	struct container_facts facts = {0};
	int pair[2], status;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0)
			_exit(77);
		if (mount("none", "/", NULL, MS_REC | MS_SHARED, NULL) < 0 ||
		    mount(host, host, NULL, MS_BIND, NULL) < 0 ||
		    mount(kubelet, kubelet, NULL, MS_BIND, NULL) < 0 ||
		    mount("none", host, NULL, root, NULL) < 0 ||
		    mount("none", kubelet, NULL, folder, NULL) < 0)
			_exit(1);
		facts = container_look(host, kubelet);
		_exit(write(pair[1], &facts, sizeof(facts)) == sizeof(facts) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(pair[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(read(pair[0], &facts, sizeof(facts)), sizeof(facts));
	(void)close(pair[0]);
	return facts;
}

TEST(looks_at_its_own_mounts)
{
	char dir[] = "/tmp/container.XXXXXX";
	auto_free char *host = NULL, *kubelet = NULL;
	struct container_facts facts;

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	host = str_below(dir, "host");
	kubelet = str_below(dir, "kubelet");
	assert_int_equal(mkdir(host, 0700), 0);
	assert_int_equal(mkdir(kubelet, 0700), 0);
	facts = look_with(dir, MS_SLAVE, MS_SLAVE);
	assert_false(facts.is_root_private);
	assert_false(facts.is_kubelet_private);
	assert_true(facts.descriptors > 0);
	facts = look_with(dir, MS_SLAVE, MS_PRIVATE);
	assert_false(facts.is_root_private);
	assert_true(facts.is_kubelet_private);
	facts = look_with(dir, MS_PRIVATE, MS_SHARED);
	assert_true(facts.is_root_private);
	assert_false(facts.is_kubelet_private);
	/* Nothing is mounted there: this is the node itself, or a test. */
	facts = container_look(host, kubelet);
	assert_false(facts.is_root_private || facts.is_kubelet_private || facts.is_filtered);
	assert_int_equal(facts.descriptors, 0);
	facts = container_look("/", "/var/lib/kubelet");
	assert_int_equal(facts.descriptors, 0);
	assert_int_equal(rmdir(host), 0);
	assert_int_equal(rmdir(kubelet), 0);
	assert_int_equal(rmdir(dir), 0);
}

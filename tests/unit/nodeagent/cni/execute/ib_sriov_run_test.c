// SPDX-License-Identifier: Apache-2.0
/*
 * Interfaces that come anew while a VF goes to a pod: in network namespaces of the test's own, as
 * root. The test is the kernel's RDMA subsystem: it takes the place of
 * nodeagent/cni/execute/rdma_move.h, and ends interfaces where the RDMA device moves, and begins
 * others: taps that say they are IPoIB.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/execute/rdma_move.h"
#include "nodeagent/cni/execute/rebind.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/model/text.h"
#include "tests/support/scratch.h"

#define PF  "0000:af:00.0"
#define VF  "0000:af:00.2"
#define DIR "sys/bus/pci/devices/"

static struct node {
	char *folder;
	int host, pod, root;
	bool ends_on_node; /* the new interface is on the node, as older kernels have it */
} node;

static json_t *kept; /* for DEL; NULL: nothing is left to undo */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	auto_free char *line = NULL;
	va_list ap;

	va_start(ap, format);
	line = str_vprintf(format, ap);
	va_end(ap);
	if (system(line) != 0) /* NOLINT(cert-env33-c): a test */
		fail_msg("%s", line);
}

/* Taps have no addresses of twenty octets. */
bool __wrap_ib_sriov_guid_of(const char *address, char ret[TEXT_GUID_SIZE]);
bool __wrap_ib_sriov_guid_of(const char *address, char ret[TEXT_GUID_SIZE])
{
	text_from_guid(0x0011223344556677, ret);
	return true;
}

static int make_namespace(void)
{
	return unshare(CLONE_NEWNET) == 0 ? open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
					  : -1;
}

/* The folder in /sys of the VF's interface, which has this name now. */
static void show_interface(const char *name)
{
	shell("cd %s && rm -rf " DIR VF "/net sys/class/net && mkdir -p " DIR VF "/net/%s "
	      "sys/class/net/%s sys/class/net/ibpf && ip -o link show %s | cut -d: -f1 "
	      ">sys/class/net/%s/ifindex",
	      node.folder, name, name, name, name);
}

static int set_up(void **state)
{
	node = (struct node){.folder = scratch_new(), .host = -1, .pod = -1};
	node.root = open(node.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	shell("cd %s && mkdir -p " DIR PF "/net/ibpf " DIR VF "/infiniband/mlx5_2 "
	      "sys/bus/pci/drivers/mlx5_core sys/class/net/ibpf && "
	      "ln -s ../" PF " " DIR VF "/physfn && ln -s ../" VF " " DIR PF "/virtfn0 && "
	      "ln -s ../../drivers/mlx5_core " DIR VF "/driver",
	      node.folder);
	node.pod = make_namespace();
	node.host = node.pod < 0 ? -1 : make_namespace();
	return 0;
}

static int tear_down(void **state)
{
	own_close_p(&node.host);
	own_close_p(&node.pod);
	own_close_p(&node.root);
	scratch_free(node.folder);
	json_decref(kept);
	kept = NULL;
	return 0;
}

/* ---- the RDMA subsystem ---------------------------------------------------------------------- */

int rdma_is_exclusive(struct netns *ns, bool *ret, struct err *err)
{
	*ret = true;
	return 0;
}

int rdma_find(struct netns *ns, const char *name, struct rdma_place *place, struct err *err)
{
	*place = (struct rdma_place){.index = 7, .name = "mlx5_2"};
	return 0;
}

static void make_interface(const char *name)
{
	auto_close int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
	assert_int_equal(ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND), 0);
	assert_int_equal(ioctl(fd, TUNSETPERSIST, 1), 0);
}

static int begin_ib1(void *context, struct err *err)
{
	make_interface("ib1");
	return 0;
}

int rdma_move(struct netns *from, struct netns *to, const struct rdma_place *place,
	      const char *name, struct err *err)
{
	shell("ip link del ib0 && rm -rf %s/" DIR VF "/net/*", node.folder);
	if (!node.ends_on_node)
		return netns_within(to, begin_ib1, NULL, err);
	(void)begin_ib1(NULL, err);
	show_interface("ib1");
	return 0;
}

int rdma_bring_back(struct netns *from, struct netns *to, const struct host *host,
		    const json_t *saved, struct err *err)
{
	return 0;
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static int save(void *context, const json_t *state, struct err *err)
{
	json_decref(kept);
	kept = json_deep_copy(state);
	return 0;
}

static int owns(void *context, const char *pci_address, struct err *err)
{
	return true;
}

static bool has_link(struct netns *ns, const char *name, bool is_up)
{
	json_auto_t *look = NULL;
	const json_t *link;

	assert_int_equal(netns_observe(ns, NETNS_LINKS, &look, NULL), 0);
	link = look_link(look, name);
	return link && ((look_number(link, "flags") & IFF_UP) != 0) == is_up;
}

static void goes_with_its_rdma_device(bool ends_on_node)
{
	static const struct attach_services services = {.save = save, .owns = owns};
	auto_netns struct netns *host = NULL, *pod = NULL;
	json_auto_t *config = NULL, *result = NULL;
	struct attach_call call = {.command = ATTACH_ADD,
				   .type = "ib-sriov",
				   .ifname = "net1",
				   .netns_path = "/run/netns/pod",
				   .root = node.root,
				   .services = &services};
	struct err err = {0};

	if (node.host < 0 || access("/dev/net/tun", R_OK | W_OK) < 0)
		skip();
	node.ends_on_node = ends_on_node;
	make_interface("ibpf");
	make_interface("ib0");
	show_interface("ib0");
	config = json_pack("{s:s,s:s,s:b}", "type", "ib-sriov", "deviceID", VF, "rdmaIsolation", 1);
	call.config = config;
	host = netns_open(node.host, NULL);
	pod = netns_open(node.pod, NULL);
	assert_non_null(pod);
	if (plugin_ib_sriov.add(&(struct plugin_call){.call = &call, .pair = {pod, host}}, &result,
				&err) < 0)
		fail_msg("%s: %s", err.reason, err.text);
	assert_true(has_link(pod, "net1", true));
	assert_false(has_link(host, "ib1", false));
	assert_int_equal(look_number(kept, "txqlen"), 1000);
	assert_true(json_is_array(json_at(kept, "altNames")));
}

TEST_WITH(an_interface_that_begins_in_the_pod_becomes_its_own, set_up, tear_down)
{
	goes_with_its_rdma_device(false);
}

TEST_WITH(one_that_begins_on_the_node_moves, set_up, tear_down)
{
	goes_with_its_rdma_device(true);
}

/* ---- DEL ------------------------------------------------------------------------------------- */

/* The namespace has ended, and the kernel has put the interface back as the pod had it. */
static json_t *comes_back_from_a_namespace_that_is_gone(const char *rdma)
{
	static const struct attach_services services = {.save = save, .owns = owns};
	auto_netns struct netns *host = NULL;
	json_auto_t *config = NULL, *saved = NULL, *look = NULL;
	struct attach_call call = {.command = ATTACH_DEL,
				   .type = "ib-sriov",
				   .ifname = "net1",
				   .root = node.root,
				   .services = &services};
	struct err err = {0};

	make_interface("ibpf");
	make_interface("ib0");
	shell("ip link set ib0 name net1 mtu 1400 txqueuelen 7 alias mine && "
	      "ip link property add dev net1 altname flannel.1");
	show_interface("net1");
	config = json_pack("{s:s,s:s}", "type", "ib-sriov", "deviceID", VF);
	saved = json_pack("{s:s,s:s,s:i,s:i,s:[],s:[],s:s*}", "device", VF, "name", "ib0", "mtu",
			  1500, "txqlen", 1000, "altNames", "settings", "rdma", rdma);
	call.config = config;
	call.saved = saved;
	(void)save(NULL, saved, NULL);
	host = netns_open(node.host, NULL);
	if (plugin_ib_sriov.del(&(struct plugin_call){.call = &call, .pair = {NULL, host}}, &err))
		fail_msg("%s: %s", err.reason, err.text);
	assert_null(kept);
	assert_int_equal(netns_observe(host, NETNS_LINKS, &look, NULL), 0);
	return json_deep_copy(look_link(look, "ib0"));
}

TEST_WITH(what_the_pod_did_to_its_vf_does_not_come_back, set_up, tear_down)
{
	json_auto_t *link = NULL;

	if (node.host < 0 || access("/dev/net/tun", R_OK | W_OK) < 0)
		skip();
	link = comes_back_from_a_namespace_that_is_gone(NULL);
	assert_non_null(link);
	assert_int_equal(json_array_size(json_at(link, "altNames")), 0);
	assert_int_equal(look_number(link, "mtu"), 1500);
	assert_int_equal(look_number(link, "txqlen"), 1000);
	assert_null(json_str_at(link, "alias"));
}

/* In another mode its MTU may be out of range: DEL would never be done. */
TEST_WITH(an_interface_that_began_anew_keeps_its_own_mtu, set_up, tear_down)
{
	json_auto_t *link = NULL;

	if (node.host < 0 || access("/dev/net/tun", R_OK | W_OK) < 0)
		skip();
	link = comes_back_from_a_namespace_that_is_gone("mlx5_2");
	assert_non_null(link);
	assert_int_equal(look_number(link, "mtu"), 1400);
}

/* ---- the driver starts again ----------------------------------------------------------------- */

static void wait_ms(long ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000L};

	(void)nanosleep(&pause, NULL);
}

/* Driver and udev: "ib0" first, and 100 ms later the name that rules give it. */
static void play_driver_and_udev(void)
{
	auto_free char *bind = str_printf("%s/sys/bus/pci/drivers/mlx5_core/bind", node.folder);
	int64_t end = clock_ms() + 20000;

	for (;;) {
		auto_strbuf struct strbuf text = {0};

		if (fs_read(AT_FDCWD, bind, 64, &text, NULL) == 0 && text.len > 0)
			break;
		if (clock_ms() > end)
			return;
		wait_ms(5);
	}
	make_interface("ib0");
	show_interface("ib0");
	wait_ms(100);
	shell("ip link set ib0 name ibp94s0f0v3");
	show_interface("ibp94s0f0v3");
	shell("cd %s && touch run/udev/data/n$(cat sys/class/net/ibp94s0f0v3/ifindex)",
	      node.folder);
}

TEST_WITH(the_name_is_udevs_after_the_driver_started_again, set_up, tear_down)
{
	struct host *host = NULL;
	struct device device = {.driver = "mlx5_core"};
	struct err err = {0};
	pid_t kernel;

	if (node.host < 0 || access("/dev/net/tun", R_OK | W_OK) < 0)
		skip();
	host = device_host(node.root, NULL);
	shell("cd %s && mkdir -p run/udev/data && touch run/udev/control "
	      "sys/bus/pci/drivers/mlx5_core/unbind sys/bus/pci/drivers/mlx5_core/bind",
	      node.folder);
	kernel = fork();
	if (kernel == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		play_driver_and_udev();
		_exit(0);
	}
	if (device_rebind(host, VF, NULL, &device, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(device.netdev, "ibp94s0f0v3");
	assert_true(device.netdev_index > 0);
	assert_int_equal(waitpid(kernel, NULL, 0), kernel);
	host_close(host);
}

/* A worker was killed between the two writes. */
TEST_WITH(a_vf_without_a_driver_gets_the_one_it_had, set_up, tear_down)
{
	static const struct attach_services services = {.save = save, .owns = owns};
	auto_netns struct netns *host = NULL;
	json_auto_t *config = NULL, *saved = NULL;
	struct attach_call call = {.command = ATTACH_DEL,
				   .type = "ib-sriov",
				   .ifname = "net1",
				   .root = node.root,
				   .services = &services};
	struct err err = {0};
	pid_t kernel;

	if (node.host < 0 || access("/dev/net/tun", R_OK | W_OK) < 0)
		skip();
	make_interface("ibpf");
	shell("cd %s && mkdir -p run/udev/data && touch run/udev/control && rm " DIR VF
	      "/driver && "
	      "touch sys/bus/pci/drivers/mlx5_core/bind",
	      node.folder);
	kernel = fork();
	if (kernel == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		play_driver_and_udev();
		_exit(0);
	}
	config = json_pack("{s:s,s:s}", "type", "ib-sriov", "deviceID", VF);
	saved = json_pack("{s:s,s:s,s:s,s:b,s:[]}", "device", VF, "name", "ibp94s0f0v3", "driver",
			  "mlx5_core", "rebind", 1, "settings");
	call.config = config;
	call.saved = saved;
	(void)save(NULL, saved, NULL);
	host = netns_open(node.host, NULL);
	if (plugin_ib_sriov.del(&(struct plugin_call){.call = &call, .pair = {NULL, host}}, &err))
		fail_msg("%s: %s", err.reason, err.text);
	assert_int_equal(waitpid(kernel, NULL, 0), kernel);
	assert_null(kept);
}

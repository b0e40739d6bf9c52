// SPDX-License-Identifier: Apache-2.0
/*
 * CNI plugins on the simulated host: no root, no network namespaces. The simulated kernel refuses
 * whichever change the test names, which a real one does when it likes.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/clock.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/execute/plugins.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/netlink/message.h"

#define VF     "0000:3c:00.1"
#define MASTER "ens1f0np0"
#define CLAIMS "var/lib/orbweaver/dra/claims.json"

static struct host_tree *tree;
static struct netns_pair pair;
static json_t *saved; /* what DEL would get; NULL: nothing is left to undo */

static int save(void *context, const json_t *state, struct err *err)
{
	json_decref(saved);
	saved = json_deep_copy(state);
	return 0;
}

static void keep(void *context, const json_t *state)
{
	(void)save(context, state, NULL);
}

static int owned; /* what owns() answers */

static int owns(void *context, const char *pci_address, struct err *err)
{
	return owned < 0 ? err_set(err, ERR_TRANSIENT, "DeviceNotClaimed", "unknown") : owned;
}

static json_t *links_of(struct netns *ns)
{
	json_auto_t *look = NULL;

	assert_int_equal(netns_observe(ns, NETNS_LINKS, &look, NULL), 0);
	return json_incref(json_at(look, "links"));
}

static int is_given; /* what gives() answers */

static int gives(void *context, const char *pci_address, struct err *err)
{
	return is_given < 0 ? err_set(err, ERR_TRANSIENT, "DevicesUnknown", "unknown") : is_given;
}

static int64_t asked_at;
static bool gives_back; /* the IPAM plugin */
static bool was_in_pod; /* the interface, when its addresses were given back */

static int note_asked(void *context, const char *command, const json_t *config, json_t **ret_result,
		      struct err *err)
{
	json_auto_t *links = NULL;

	asked_at = clock_ms();
	if (str_eq(command, "DEL") && gives_back) {
		links = links_of(pair.pod);
		was_in_pod = json_find(links, "name", "net1");
		return 0;
	}
	return err_set(err, ERR_TRANSIENT, "IpamFailed", "no address yet");
}

static char renamed[64]; /* an RDMA device, to this name */

/* The simulated host changes no RDMA devices. */
int __real_netlink_send(struct netlink *netlink, int protocol, struct nl_msg *const *messages,
			size_t n, struct netlink_answer *answers, struct err *err);
int __wrap_netlink_send(struct netlink *netlink, int protocol, struct nl_msg *const *messages,
			size_t n, struct netlink_answer *answers, struct err *err);
int __wrap_netlink_send(struct netlink *netlink, int protocol, struct nl_msg *const *messages,
			size_t n, struct netlink_answer *answers, struct err *err)
{
	const struct nlattr *name;

	if (protocol != NETLINK_RDMA)
		return __real_netlink_send(netlink, protocol, messages, n, answers, err);
	name = nlmsg_find_attr(nlmsg_hdr(messages[0]), 0, RDMA_NLDEV_ATTR_DEV_NAME);
	(void)snprintf(renamed, sizeof(renamed), "%s", name ? nla_get_string(name) : "");
	*answers = (struct netlink_answer){0};
	return 0;
}

static int set_up(void **state)
{
	owned = 1;
	gives_back = was_in_pod = false;
	renamed[0] = '\0';
	tree = host_tree_new();
	is_given = 0;
	host_tree_add_pf(tree, &tree_mlx);
	host_tree_link(tree, "sys/class/net/" MASTER "/device",
		       "../../../bus/pci/devices/" TREE_MLX);
	pair.host = host_tree_netns(tree, NULL);
	pair.pod = host_tree_netns(tree, "pod");
	return host_tree_doors()->write(tree, -1, "sys/bus/pci/devices/" TREE_MLX "/sriov_numvfs",
					"2", 1, NULL);
}

static int tear_down(void **state)
{
	netns_close(pair.pod);
	netns_close(pair.host);
	host_tree_free(tree);
	return save(NULL, NULL, NULL);
}

/* One call of a plugin. The result of ADD comes back, and goes into CHECK. */
static int call(const struct plugin *plugin, const char *config, enum attach_command command,
		json_t **result, struct err *err)
{
	static const struct attach_services services = {
		.save = save,
		.keep = keep,
		.owns = owns,
		.is_given = gives,
		.ipam = note_asked,
	};
	json_auto_t *parsed = json_parse(config, strlen(config), NULL);
	json_auto_t *before = json_deep_copy(saved);
	auto_close int root = open(host_tree_folder(tree), O_PATH | O_CLOEXEC);
	const struct attach_call outer = {
		.command = command,
		.type = plugin->type,
		.ifname = "net1",
		.netns_path = "/run/netns/pod",
		.root = root,
		.config = parsed,
		.saved = before,
		.services = &services,
	};
	const struct plugin_call inner = {.call = &outer,
					  .pair = pair,
					  .previous = *result,
					  .has_late_link = plugin->has_late_link};

	if (command == ATTACH_ADD)
		return plugin->add(&inner, result, err);
	return (command == ATTACH_CHECK ? plugin->check : plugin->del)(&inner, err);
}

static void does(const struct plugin *plugin, const char *config, enum attach_command command,
		 json_t **result)
{
	struct err err = {0};

	if (call(plugin, config, command, result, &err) < 0)
		fail_msg("%s: %s", err.reason, err.text);
}

static int64_t link_state_of_vf(void)
{
	json_auto_t *vf = NULL;

	assert_int_equal(netns_observe_vf(pair.host, MASTER, 1, &vf, NULL), 0);
	return look_number(vf, "linkState");
}

/*
 * ADD with the first change refused, the second, and so on: each time all is as it was before.
 * Returns how many there are.
 */
static int refuse_each_change(const struct plugin *plugin, const char *config)
{
	json_auto_t *before = links_of(pair.host);
	int64_t link_state = link_state_of_vf();

	for (int i = 0;; i++) {
		json_auto_t *result = NULL, *pod = NULL, *host = NULL;
		struct err err = {0};

		host_tree_fail_at(tree, i + 1);
		if (call(plugin, config, ATTACH_ADD, &result, &err) == 0)
			return i;
		assert_string_equal(err.reason, "StepRefused");
		pod = links_of(pair.pod);
		host = links_of(pair.host);
		assert_int_equal(json_array_size(pod), 0);
		assert_true(json_equal(host, before));
		assert_int_equal(link_state_of_vf(), link_state);
		assert_null(saved);
	}
}

static const char macvlan[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"macvlan\", \"master\": "
			      "\"" MASTER "\", \"mode\": \"private\", \"mtu\": 1400}";

TEST_WITH(macvlan_makes_an_interface_on_its_master_and_finds_it, set_up, tear_down)
{
	json_auto_t *result = NULL, *pod = NULL, *host = links_of(pair.host);
	const json_t *link;

	does(&plugin_macvlan, macvlan, ATTACH_ADD, &result);
	pod = links_of(pair.pod);
	assert_int_equal(json_array_size(pod), 1);
	link = json_find(pod, "name", "net1");
	assert_string_equal(json_str_at(link, "kind"), "macvlan");
	assert_int_equal(look_number(link, "mode"), MACVLAN_MODE_PRIVATE);
	assert_int_equal(look_number(link, "mtu"), 1400);
	assert_int_equal(look_number(link, "lower"),
			 look_number(json_find(host, "name", MASTER), "index"));
	assert_true(look_number(link, "flags") & IFF_UP);
	assert_non_null(json_find(json_at(result, "interfaces"), "mac", json_str_at(link, "mac")));
	does(&plugin_macvlan, macvlan, ATTACH_CHECK, &result);
}

TEST_WITH(macvlan_takes_back_what_it_made_whichever_change_is_refused, set_up, tear_down)
{
	/* The interface is made, gets its name, and is set up. */
	assert_int_equal(refuse_each_change(&plugin_macvlan, macvlan), 3);
	assert_non_null(saved);
}

static const char bridge[] =
	"{\"cniVersion\": \"1.0.0\", \"type\": \"bridge\", \"bridge\": \"br0\"}";

TEST_WITH(bridge_leaves_no_port_whichever_change_is_refused, set_up, tear_down)
{
	json_auto_t *result = NULL, *pod = NULL, *host = NULL;
	const json_t *link;
	int changes;

	/* A namespace with nothing in it is not known to the simulated host. */
	host_tree_move_to(tree, VF, "pod", "eth0");
	for (changes = 0;; changes++) {
		json_auto_t *before = NULL, *ports = NULL;
		struct err err = {0};

		host_tree_fail_at(tree, changes + 1);
		if (call(&plugin_bridge, bridge, ATTACH_ADD, &result, &err) == 0)
			break;
		assert_string_equal(err.reason, "StepRefused");
		before = links_of(pair.pod);
		ports = links_of(pair.host);
		assert_int_equal(json_array_size(before), 1);
		assert_null(json_find(ports, "kind", "veth"));
		assert_null(saved);
	}
	/* The bridge is there: the pair, a port, its flags, up. */
	assert_true(changes >= 4);
	assert_non_null(saved);
	pod = links_of(pair.pod);
	host = links_of(pair.host);
	link = json_find(host, "name", "br0");
	assert_string_equal(json_str_at(link, "kind"), "bridge");
	assert_int_equal(look_number(json_find(host, "kind", "veth"), "master"),
			 look_number(link, "index"));
	assert_int_equal(look_number(json_find(pod, "name", "net1"), "lower"),
			 look_number(json_find(host, "kind", "veth"), "index"));
	does(&plugin_bridge, bridge, ATTACH_CHECK, &result);
	host_tree_fail_at(tree, 0);
	does(&plugin_bridge, bridge, ATTACH_DEL, &result);
	json_decref(pod);
	json_decref(host);
	pod = links_of(pair.pod);
	host = links_of(pair.host);
	assert_int_equal(json_array_size(pod), 1);
	assert_null(json_find(host, "kind", "veth"));
	assert_non_null(json_find(host, "name", "br0"));
}

static const char sriov[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", \"deviceID\": \"" VF
			    "\", \"link_state\": \"enable\"}";

TEST_WITH(sriov_gives_a_vf_to_the_pod_and_brings_it_back_as_it_was, set_up, tear_down)
{
	json_auto_t *result = NULL, *pod = NULL, *after = NULL, *before = links_of(pair.host);

	does(&plugin_sriov, sriov, ATTACH_ADD, &result);
	pod = links_of(pair.pod);
	assert_string_equal(json_str_at(json_find(pod, "name", "net1"), "parent"), VF);
	assert_int_equal(link_state_of_vf(), IFLA_VF_LINK_STATE_ENABLE);
	does(&plugin_sriov, sriov, ATTACH_CHECK, &result);
	does(&plugin_sriov, sriov, ATTACH_DEL, &result);
	after = links_of(pair.host);
	assert_int_equal(json_array_size(after), json_array_size(before));
	assert_non_null(json_find(after, "name", MASTER "v1"));
	assert_int_equal(link_state_of_vf(), IFLA_VF_LINK_STATE_AUTO);
	assert_null(saved);
}

/* The simulated host's interfaces have no carrier. A DHCP client would send its first packet. */
TEST_WITH(sriov_waits_for_a_carrier_before_a_foreign_ipam_plugin_asks, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", "
				     "\"deviceID\": \"" VF "\", \"ipam\": {\"type\": \"dhcp\"}}";
	json_auto_t *result = NULL;
	int64_t begun = clock_ms();
	struct err err = {0};

	assert_int_equal(call(&plugin_sriov, config, ATTACH_ADD, &result, &err), -1);
	assert_string_equal(err.reason, "IpamFailed");
	assert_true(asked_at - begun >= 200);
}

/* The IPAM plugin may be what hung, and so did the ADD. */
TEST_WITH(addresses_of_a_vf_without_a_record_stay_owed_while_they_cannot_go_back, set_up, tear_down)
{
	static const struct plugin *const plugins[] = {&plugin_sriov, &plugin_ib_sriov};
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"deviceID\": \"" VF
				     "\", \"ipam\": {\"type\": \"dhcp\"}}";

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		json_auto_t *result = NULL;

		does(plugins[i], config, ATTACH_DEL, &result);
		assert_true(json_is_true(json_at(saved, "ipam")));
		assert_int_equal(save(NULL, NULL, NULL), 0);
	}
}

TEST_WITH(sriov_gives_the_vf_back_whichever_change_is_refused, set_up, tear_down)
{
	assert_true(refuse_each_change(&plugin_sriov, sriov) > 1);
	assert_non_null(saved);
}

/* The kernel carries out what is behind a refusal in the same batch. */
TEST_WITH(a_vf_whose_setting_the_pf_refuses_does_not_move, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\", "
				     "\"deviceID\": \"" VF "\", \"vlan\": 5}";
	json_auto_t *result = NULL;
	struct err err = {0};

	host_tree_fail_at(tree, 1);
	assert_int_equal(call(&plugin_sriov, config, ATTACH_ADD, &result, &err), -1);
	assert_string_equal(err.reason, "StepRefused");
	assert_int_equal(host_tree_changes(tree), 1);
}

TEST_WITH(behind_a_step_that_fails_no_other_is_done, set_up, tear_down)
{
	static const char first[] =
		"{\"in\": \"host\", \"do\": \"link\", \"dev\": \"" MASTER "v1\", \"up\": true}";
	static const char *const steps[] = {
		"{\"in\": \"host\", \"do\": \"link\", \"dev\": \"" MASTER "\", \"up\": false}",
		"{\"in\": \"host\", \"do\": \"mac\", \"dev\": \"" MASTER
		"\", \"mac\": \"02:00:00:00:00:07\"}",
		"{\"in\": \"host\", \"do\": \"sysctl\", \"path\": \"net/x\", \"value\": \"1\"}",
		"{\"in\": \"pod\", \"do\": \"sysctl\", \"path\": \"net/x\", \"value\": \"1\"}",
	};

	host_tree_file(tree, "proc/sys/net/x", "0");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		json_auto_t *plan = json_array(), *done = json_array();
		auto_free char *sysctl = NULL;
		struct err err = {0};

		json_array_append_new(plan, json_parse(first, strlen(first), NULL));
		json_array_append_new(plan, json_parse(steps[i], strlen(steps[i]), NULL));
		host_tree_fail_at(tree, 1);
		assert_int_equal(netns_execute(&pair, plan, done, &err), -1);
		assert_non_null(strstr(err.text, "link dev " MASTER "v1"));
		assert_int_equal(json_array_size(done), 0);
		assert_int_equal(host_tree_changes(tree), 1);
		sysctl = host_tree_read(tree, "proc/sys/net/x");
		assert_string_equal(sysctl, "0");
	}
}

/* ---- InfiniBand ------------------------------------------------------------------------------ */

#define DRIVER "sys/bus/pci/drivers/mlx5_core"

enum { IB_VFS = 8 };

/* Their driver takes what is written to it, and does nothing. */
static void add_ib_vfs(void)
{
	static const char *const files[] = {"unbind", "bind"};

	host_tree_add_pf(tree, &tree_ib);
	assert_int_equal(host_tree_doors()->write(tree, -1,
						  "sys/bus/pci/devices/" TREE_IB "/sriov_numvfs",
						  "8", 1, NULL),
			 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *path =
			str_printf("%s/" DRIVER "/%s", host_tree_folder(tree), files[i]);
		auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
	}
}

/* ADD or what begins it of the VF with this number, which gets a GUID. */
static int call_ib(enum attach_command command, int number, pid_t *beside, json_t **saved_of,
		   struct err *err)
{
	static const struct attach_services services = {
		.save = save, .keep = keep, .owns = owns, .ipam = note_asked};
	auto_free char *device = str_printf("0000:b0:00.%d", number);
	auto_free char *ifname = str_printf("net%d", number);
	json_auto_t *config = json_pack("{s:s, s:s, s:{s:o}}", "type", "ib-sriov", "deviceID",
					device, "runtimeConfig", "infinibandGUID",
					json_fmt("02:00:00:00:00:00:00:%02x", number));
	json_auto_t *before = json_incref(*saved_of), *result = NULL;
	auto_close int root = open(host_tree_folder(tree), O_PATH | O_CLOEXEC);
	const struct attach_call outer = {
		.command = command,
		.type = "ib-sriov",
		.ifname = ifname,
		.netns_path = "/run/netns/pod",
		.root = root,
		.config = config,
		.saved = before,
		.beside = beside,
		.lock = -1,
		.services = &services,
	};
	const struct plugin_call inner = {.call = &outer, .pair = pair};
	int rc = command == ATTACH_BEGIN ? plugin_ib_sriov.begin(&inner, err)
					 : plugin_ib_sriov.add(&inner, &result, err);

	json_decref(*saved_of);
	*saved_of = json_incref(saved);
	(void)save(NULL, NULL, NULL);
	return rc;
}

/*
 * Firmware takes seconds for a VF whose driver starts again: here it takes until the test reads
 * what is written to the driver.
 */
TEST_WITH(drivers_of_eight_vfs_start_side_by_side, set_up, tear_down)
{
	auto_free char *unbind = str_printf("%s/" DRIVER "/unbind", host_tree_folder(tree));
	auto_close int reads = -1;
	json_t *saved_of[IB_VFS] = {NULL};
	pid_t beside[IB_VFS] = {0};
	char text[1024] = "";
	size_t len = 0;

	add_ib_vfs();
	assert_int_equal(unlink(unbind), 0);
	assert_int_equal(mkfifo(unbind, 0600), 0);
	for (int i = 0; i < IB_VFS; i++) {
		struct err err = {0};

		if (call_ib(ATTACH_BEGIN, i, &beside[i], &saved_of[i], &err) < 0)
			fail_msg("%s: %s", err.reason, err.text);
		assert_true(beside[i] > 0);
		assert_true(json_is_true(json_at(saved_of[i], "rebind")));
	}
	/* All are at it, and none is through. */
	for (int i = 0; i < IB_VFS; i++)
		assert_int_equal(waitpid(beside[i], NULL, WNOHANG), 0);
	reads = open(unbind, O_RDONLY | O_CLOEXEC);
	while (len < IB_VFS * strlen("0000:b0:00.0")) {
		ssize_t n = read(reads, text + len, sizeof(text) - 1 - len);

		assert_true(n >= 0);
		len += (size_t)n;
	}
	for (int i = 0; i < IB_VFS; i++) {
		auto_free char *device = str_printf("0000:b0:00.%d", i);
		auto_free char *ifname = str_printf("net%d", i);
		json_auto_t *look = NULL;
		struct err err = {0};

		assert_non_null(strstr(text, device));
		if (call_ib(ATTACH_ADD, i, &beside[i], &saved_of[i], &err) < 0)
			fail_msg("%s: %s", err.reason, err.text);
		assert_int_equal(netns_observe(pair.pod, NETNS_LINKS, &look, NULL), 0);
		assert_non_null(look_link(look, ifname));
		json_decref(saved_of[i]);
	}
}

TEST_WITH(what_could_not_begin_is_undone, set_up, tear_down)
{
	json_t *saved_of = NULL;
	pid_t beside = 0;
	struct err err = {0};

	add_ib_vfs();
	host_tree_fail_at(tree, 1);
	assert_int_equal(call_ib(ATTACH_BEGIN, 0, &beside, &saved_of, &err), -1);
	assert_string_equal(err.reason, "StepRefused");
	assert_int_equal(beside, 0);
	assert_null(saved_of);
}

/* ---- what the node uses ---------------------------------------------------------------------- */

static void keeps_what_the_node_uses(const struct plugin *plugin, const char *config,
				     const char *says)
{
	json_auto_t *result = NULL, *after = NULL;
	struct err err = {0};

	assert_int_equal(call(plugin, config, ATTACH_ADD, &result, &err), -1);
	assert_string_equal(err.reason, "NodeInterface");
	if (!strstr(err.text, says))
		fail_msg("%s", err.text);
	assert_null(saved);
	after = links_of(pair.host);
	assert_non_null(json_find(after, "name", MASTER "v1"));
}

static const char ib_sriov[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"ib-sriov\", "
			       "\"deviceID\": \"" VF "\"}";
static const char host_device[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"host-device\", "
				  "\"pciBusID\": \"" VF "\"}";

TEST_WITH(a_vf_with_an_address_of_the_node_stays_on_the_node, set_up, tear_down)
{
	host_tree_add_address(tree, MASTER "v1", "192.0.2.99");
	keeps_what_the_node_uses(&plugin_sriov, sriov,
				 "sriov: " MASTER "v1 has the node's address");
	keeps_what_the_node_uses(&plugin_ib_sriov, ib_sriov,
				 "ib-sriov: " MASTER "v1 has the node's");
	keeps_what_the_node_uses(&plugin_host_device, host_device, "has the node's address");
}

TEST_WITH(a_vf_that_is_a_vdpa_device_stays_on_the_node, set_up, tear_down)
{
	host_tree_link(tree, "sys/bus/vdpa/devices/vdpa:" VF "/driver",
		       "../../../../bus/vdpa/drivers/vhost_vdpa");
	keeps_what_the_node_uses(&plugin_sriov, sriov, "vDPA device of the node");
	keeps_what_the_node_uses(&plugin_ib_sriov, ib_sriov, "vDPA device of the node");
	keeps_what_the_node_uses(&plugin_host_device, host_device, "vDPA device of the node");
}

static const char host_device_pf[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"host-device\", "
				     "\"device\": \"" MASTER "\"}";

/* Nothing is changed or kept. */
static void is_refused(const struct plugin *plugin, const char *config, const char *reason,
		       const char *says)
{
	json_auto_t *result = NULL;
	struct err err = {0};

	host_tree_fail_at(tree, 0);
	assert_int_equal(call(plugin, config, ATTACH_ADD, &result, &err), -1);
	if (!str_eq(err.reason, reason) || !strstr(err.text, says))
		fail_msg("%s: %s", err.reason, err.text);
	assert_null(saved);
	assert_int_equal(host_tree_changes(tree), 0);
}

TEST_WITH(a_pf_whose_vfs_pods_have_stays_on_the_node, set_up, tear_down)
{
	json_auto_t *result = NULL, *pod = NULL;

	host_tree_move_away(tree, VF);
	is_refused(&plugin_host_device, host_device_pf, "VfInUse",
		   "host-device: " MASTER ": VF " VF " is in another network namespace");
	host_tree_bring_back(tree, VF);
	host_tree_file(
		tree, CLAIMS,
		"{\"claims\": {\"u\": {\"namespace\": \"ns\", \"pod\": \"p\", \"name\": \"c\", "
		"\"devices\": [{\"request\": \"r\", \"pool\": \"n\", \"device\": \"d\", "
		"\"resource\": \"spidernet.io/x\", \"id\": \"" VF
		"\", \"cdi\": []}], \"cdi\": {}}}}");
	is_refused(&plugin_host_device, host_device_pf, "VfInUse", "prepared for claim ns/p/c");
	host_tree_remove(tree, CLAIMS);
	/* VFs that are free go along. */
	does(&plugin_host_device, host_device_pf, ATTACH_ADD, &result);
	pod = links_of(pair.pod);
	assert_string_equal(json_str_at(json_find(pod, "name", "net1"), "parent"), TREE_MLX);
}

TEST_WITH(a_pf_whose_rdma_device_is_open_stays_on_the_node, set_up, tear_down)
{
	host_tree_open_verbs(tree, "mlx5_0", 3);
	is_refused(&plugin_host_device, host_device_pf, "PfInUse",
		   "3 processes that have mlx5_0 open");
}

TEST_WITH(a_vf_that_a_process_of_user_space_has_open_keeps_its_settings, set_up, tear_down)
{
	json_auto_t *result = NULL;

	host_tree_move_away(tree, VF);
	host_tree_remove(tree, "sys/bus/pci/devices/" VF "/driver");
	host_tree_link(tree, "sys/bus/pci/devices/" VF "/driver",
		       "../../../../bus/pci/drivers/vfio-pci");
	host_tree_file(tree, "sys/bus/pci/devices/" VF "/enable", "1\n");
	is_refused(&plugin_sriov, sriov, "DeviceBusy", "sriov: " VF " is used by a process");
	is_refused(&plugin_ib_sriov, ib_sriov, "DeviceBusy", "ib-sriov: " VF " is used by");
	host_tree_file(tree, "sys/bus/pci/devices/" VF "/enable", "0\n");
	does(&plugin_sriov, sriov, ATTACH_ADD, &result);
}

/* The kernel takes it from all who use it when it goes to another namespace. */
TEST_WITH(an_rdma_device_that_others_may_use_does_not_move, set_up, tear_down)
{
	static const char pf[] = "{\"type\": \"rdma\", \"deviceID\": \"" TREE_MLX "\"}";
	static const char vf[] = "{\"type\": \"rdma\", \"deviceID\": \"" VF "\"}";

	host_tree_boot(tree, "boot-two", true);
	is_refused(&plugin_rdma, pf, "DeviceNotGiven", "rdma: " TREE_MLX " is not a VF");
	is_given = -1;
	is_refused(&plugin_rdma, pf, "DevicesUnknown", "");
	is_given = 1;
	host_tree_use_in_kernel(tree, 1, "nvme_rdma");
	is_refused(&plugin_rdma, pf, "DeviceBusy", "the kernel (nvme_rdma");
	host_tree_use_in_kernel(tree, 0, NULL);
	host_tree_open_verbs(tree, "mlx5_0v1", 1);
	is_refused(&plugin_rdma, vf, "DeviceBusy", "rdma: " VF " is used by 1 processes");
}

/* The kernel puts it back a moment after the namespace has ended. */
TEST_WITH(host_device_waits_for_an_interface_whose_device_is_there, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"host-device\"}";
	json_auto_t *kept =
		json_pack("{s:s, s:s, s:b}", "name", MASTER "v1", "device", VF, "aliased", true);
	json_auto_t *result = NULL;
	struct netns *pod = pair.pod;

	pair.pod = NULL;
	host_tree_move_away(tree, VF);
	(void)save(NULL, kept, NULL);
	does(&plugin_host_device, config, ATTACH_DEL, &result);
	assert_string_equal(json_str_at(saved, "name"), MASTER "v1");
	/* One that was taken out has none. */
	json_put_str(kept, "device", "0000:99:00.1");
	(void)save(NULL, kept, NULL);
	does(&plugin_host_device, config, ATTACH_DEL, &result);
	assert_null(saved);
	pair.pod = pod;
}

TEST_WITH(host_device_gives_an_interface_to_the_pod_and_brings_it_back, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"host-device\", "
				     "\"device\": \"" MASTER "v1\"}";
	json_auto_t *result = NULL, *pod = NULL, *after = NULL, *before = links_of(pair.host);

	does(&plugin_host_device, config, ATTACH_ADD, &result);
	pod = links_of(pair.pod);
	assert_string_equal(json_str_at(json_find(pod, "name", "net1"), "parent"), VF);
	does(&plugin_host_device, config, ATTACH_DEL, &result);
	after = links_of(pair.host);
	assert_int_equal(json_array_size(after), json_array_size(before));
	assert_non_null(json_find(after, "name", MASTER "v1"));
	assert_null(saved);
}

static void tunes(const char *settings, json_t **result)
{
	auto_free char *config =
		str_printf("{\"cniVersion\": \"1.0.0\", \"type\": \"tuning\", %s}", settings);
	json_auto_t *before = *result;

	does(&plugin_tuning, config, ATTACH_ADD, result);
}

TEST_WITH(two_tunings_of_one_interface_are_undone_together, set_up, tear_down)
{
	json_auto_t *result = NULL, *before = NULL, *tuned = NULL, *after = NULL;
	struct err err = {0};

	does(&plugin_macvlan, macvlan, ATTACH_ADD, &result);
	(void)save(NULL, NULL, NULL);
	before = links_of(pair.pod);
	tunes("\"mtu\": 1300, \"mac\": \"02:00:00:00:00:0a\"", &result);
	/* A third one fails and leaves the second as it is. */
	tunes("\"mtu\": 1200", &result);
	host_tree_fail_at(tree, 1);
	assert_int_equal(call(&plugin_tuning, "{\"cniVersion\": \"1.0.0\", \"mtu\": 1100}",
			      ATTACH_ADD, &result, &err),
			 -1);
	tuned = links_of(pair.pod);
	assert_int_equal(look_number(json_find(tuned, "name", "net1"), "mtu"), 1200);
	assert_non_null(json_find(tuned, "mac", "02:00:00:00:00:0a"));
	does(&plugin_tuning, "{\"cniVersion\": \"1.0.0\", \"mtu\": 1200}", ATTACH_DEL, &result);
	after = links_of(pair.pod);
	assert_true(json_equal(after, before));
	assert_null(saved);
}

/* What lives on the NIC without the bond, a pod's macvlan, has no link else. */
TEST_WITH(ifacer_sets_up_again_what_the_bond_did_not_get, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"ifacer\", "
				     "\"interfaces\": [\"" MASTER "v0\", \"" MASTER "v1\"], "
				     "\"bond\": {\"name\": \"bond7\"}}";
	static const char up[] = "[{\"in\": \"host\", \"do\": \"link\", \"dev\": \"" MASTER
				 "v0\", \"up\": true}, {\"in\": \"host\", \"do\": \"link\", "
				 "\"dev\": \"" MASTER "v1\", \"up\": true}]";
	json_auto_t *steps = json_parse(up, strlen(up), NULL);
	int refused;

	host_tree_add_interface(tree, "bond7", "bond");
	for (refused = 1;; refused++) {
		json_auto_t *result = NULL, *links = NULL;
		struct err err = {0};

		assert_int_equal(netns_execute_all(&pair, steps, NULL), 0);
		host_tree_fail_at(tree, refused);
		if (call(&plugin_ifacer, config, ATTACH_ADD, &result, &err) == 0)
			break;
		links = links_of(pair.host);
		for (int i = 0; i < 2; i++) {
			auto_free char *name = str_printf(MASTER "v%d", i);
			const json_t *link = json_find(links, "name", name);

			assert_true(look_number(link, "master") ||
				    look_number(link, "flags") & IFF_UP);
		}
	}
	assert_true(refused > 2);
}

/* ---- the way back ---------------------------------------------------------------------------- */

/* Its VLAN, MAC and trust would stay the pod's, and nothing would say so. */
TEST_WITH(del_waits_while_it_is_not_known_whose_a_device_is, set_up, tear_down)
{
	static const struct plugin *const plugins[] = {&plugin_sriov, &plugin_ib_sriov,
						       &plugin_host_device, &plugin_rdma};

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		json_auto_t *kept = json_pack("{s:s, s:s, s:[]}", "device", VF, "name", MASTER "v1",
					      "settings");
		json_auto_t *result = NULL;
		struct err err = {0};

		(void)save(NULL, kept, NULL);
		owned = -1;
		assert_int_equal(call(plugins[i], "{}", ATTACH_DEL, &result, &err), -1);
		assert_int_equal(err.class, ERR_TRANSIENT);
		assert_true(json_equal(saved, kept));
		owned = 1;
		/* That of host-device has no mark, and may still come. */
		does(plugins[i], "{}", ATTACH_DEL, &result);
		assert_int_equal(saved != NULL, plugins[i] == &plugin_host_device);
	}
}

/* The next pod may have them at once, and the VF would answer for them still. */
TEST_WITH(addresses_stay_with_a_vf_that_the_pod_keeps, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"deviceID\": \"" VF
				     "\", \"ipam\": {\"type\": \"dhcp\"}}";
	static const struct plugin *const plugins[] = {&plugin_sriov, &plugin_ib_sriov};

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		json_auto_t *kept = json_pack("{s:s, s:s, s:[], s:b}", "device", VF, "name",
					      MASTER "v1", "settings", "ipam", true);
		json_auto_t *result = NULL;
		struct err err = {0};

		host_tree_move_to(tree, VF, "pod", "net1");
		(void)save(NULL, kept, NULL);
		asked_at = 0;
		gives_back = true;
		/* Its way back is the last change of all. */
		for (int n = 1; asked_at == 0; n++) {
			host_tree_fail_at(tree, n);
			(void)call(plugins[i], config, ATTACH_DEL, &result, &err);
		}
		assert_false(was_in_pod);
		host_tree_fail_at(tree, 0);
		if (saved)
			does(plugins[i], config, ATTACH_DEL, &result);
		assert_null(saved);
	}
}

static void del_renames(const char *rdma, int64_t index, const char *to)
{
	json_auto_t *kept =
		json_pack("{s:s, s:I, s:s}", "rdma", rdma, "rdmaIndex", index, "device", VF);
	json_auto_t *result = NULL;
	struct netns *pod = pair.pod;

	renamed[0] = '\0';
	pair.pod = NULL;
	(void)save(NULL, kept, NULL);
	does(&plugin_rdma, "{}", ATTACH_DEL, &result);
	pair.pod = pod;
	assert_null(saved);
	assert_string_equal(renamed, to);
}

/* Its namespace has ended: the kernel has put it back under the name that it had there. */
TEST_WITH(an_rdma_device_has_its_name_again, set_up, tear_down)
{
	enum { OTHER = 2, OWN = 3 };

	del_renames("mlx5_9", OWN, "mlx5_9");
	/* After a boot the number is that of another VF's. */
	del_renames("mlx5_9", OTHER, "");
	/* And the device is the next pod's. */
	owned = 0;
	del_renames("mlx5_9", OWN, "");
}

TEST_WITH(ifacer_says_what_does_not_stay_as_it_made_it, set_up, tear_down)
{
	static const char config[] = "{\"cniVersion\": \"1.0.0\", \"type\": \"ifacer\", "
				     "\"interfaces\": [\"" MASTER "\"], \"vlanID\": 5}";
	json_auto_t *result = NULL;
	struct err err = {0};

	host_tree_keep_down(tree, MASTER);
	assert_int_equal(call(&plugin_ifacer, config, ATTACH_ADD, &result, &err), -1);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_non_null(strstr(err.text, "link dev " MASTER));
	assert_null(result);
}

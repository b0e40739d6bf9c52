// SPDX-License-Identifier: Apache-2.0
/*
 * A host made of files: PFs and VFs are kept here, shown as sysfs in a folder, and answered for as
 * the kernel does. nodeagent/host reads the folder and comes through the doors, which lead from
 * here into host_tree_nics.c and the netlink files.
 */
#include "cli/simulate/host/host_tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "nodeagent/netlink/message.h"

/* ---- writes ---------------------------------------------------------------------------------- */

static int write_probe(struct host_tree *tree, const char *address)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/driver_override", address);
	auto_free char *link = str_printf("sys/bus/pci/devices/%s/driver", address);
	auto_free char *override = host_tree_read(tree, path);
	struct pf *pf;
	struct stat st;
	int number;

	if (!tree_vf_by(tree, address, &pf, &number))
		return -ENODEV;
	override[strcspn(override, "\n")] = '\0';
	if (fstatat(tree->root, link, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (!str_eq(override, "(null)"))
		(void)tree_bind_vf(tree, pf, number, override);
	else if (pf->autoprobe)
		(void)tree_bind_vf(tree, pf, number, pf->is.vf_driver);
	/* "Success" whatever came of it. */
	return 0;
}

/* "sys/bus/pci/devices/<address>/<name>" */
static int write_device(struct host_tree *tree, const char *path, const char *text)
{
	const char *rest = path + strlen("sys/bus/pci/devices/");
	auto_free char *address = str_ndup(rest, strcspn(rest, "/"));
	const char *name = strchr(rest, '/') + 1;
	struct pf *pf = tree_pf_by(tree, address);
	int number;

	if (pf && str_eq(name, "sriov_numvfs"))
		return tree_write_count(tree, pf, text);
	if (pf && str_eq(name, "sriov_drivers_autoprobe")) {
		pf->autoprobe = text[0] == '1';
		tree_pci_file(tree, address, name, pf->autoprobe ? "1\n" : "0\n");
		return 0;
	}
	if (!tree_vf_by(tree, address, &pf, &number))
		return -ENODEV;
	if (str_eq(name, "driver_override")) {
		tree_pci_file(tree, address, name, str_eq(text, "\n") ? "(null)\n" : text);
		return 0;
	}
	if (str_eq(name, "driver/unbind") && str_eq(text, address)) {
		tree_unbind_vf(tree, pf, number);
		return 0;
	}
	return -EACCES;
}

static int refuse(int error, struct err *err)
{
	errno = -error;
	return err_sys(err, "NetlinkRefused", "the kernel refuses");
}

static int door_write(void *ctx, int root_fd, const char *path, const char *data, size_t len,
		      struct err *err)
{
	struct host_tree *tree = ctx;
	auto_free char *text = str_ndup(data, len);
	int code;

	if (tree_fails_now(tree))
		return refuse(-EIO, err);
	if (str_ends(path, "/drivers_probe"))
		code = write_probe(tree, text);
	else if (str_starts(path, "sys/bus/pci/devices/"))
		code = write_device(tree, path, text);
	else if (str_starts(path, "sys/kernel/config/") || str_starts(path, "sys/class/"))
		code = tree_write_setting(tree, path, text);
	else
		code = -ENOENT;
	return code < 0 ? refuse(code, err) : 0;
}

static int door_write_at(void *ctx, int root_fd, const char *path, size_t at, const void *data,
			 size_t len, struct err *err)
{
	int code = tree_fails_now(ctx) ? -EIO : tree_write_config(ctx, path, at, data, len);

	return code < 0 ? refuse(code, err) : 0;
}

static int door_mkdir(void *ctx, int root_fd, const char *path, struct err *err)
{
	int code = tree_make_cm_folder(ctx, path);

	return code < 0 ? refuse(code, err) : 0;
}

static void door_rmdir(void *ctx, int root_fd, const char *path)
{
	tree_remove_cm_folder(ctx, path);
}

static int netlink_request_of(struct host_tree *tree, int protocol, const struct nlmsghdr *request,
			      struct strbuf *data)
{
	if (protocol == NETLINK_ROUTE &&
	    (request->nlmsg_type == RTM_GETDCB || request->nlmsg_type == RTM_SETDCB))
		return tree_dcb_request(tree, request, data);
	switch (protocol) {
	case NETLINK_ROUTE:
		return tree_route_request(tree, request, data);
	case NETLINK_RDMA:
		return tree_rdma_request(tree, request, data);
	default:
		return tree_generic_request(tree, request, data);
	}
}

static int door_exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
			 struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		answers[i] = (struct netlink_answer){
			.code = -netlink_request_of(ctx, protocol, nlmsg_hdr(messages[i]), data)};
	return 0;
}

/* That of a namespace: the host's own look comes back where it was. */
static int netns_exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
			  struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	const struct tree_netns *netns = ctx;
	ino_t before = netns->tree->here;
	int code;

	netns->tree->here = netns->inode;
	code = door_exchange(netns->tree, protocol, messages, n, answers, data, err);
	netns->tree->here = before;
	return code;
}

struct netns *host_tree_netns(struct host_tree *tree, const char *name)
{
	auto_free char *path = str_printf("run/netns/%s", name ? name : "");
	struct tree_netns *netns = mem_new(struct tree_netns);
	auto_close int fd = -1;
	struct stat st;

	/* Not a text that others share: its number says which namespace it is. */
	if (name && fstatat(tree->root, path, &st, 0) < 0)
		host_tree_bytes(tree, path, "", 0);
	fd = openat(tree->root, name ? path : ".", O_PATH | O_CLOEXEC);
	assert(fd >= 0 && fstat(fd, &st) == 0);
	*netns = (struct tree_netns){.tree = tree, .inode = name ? st.st_ino : 0};
	tree->netns = mem_realloc(tree->netns, (tree->n_netns + 1) * sizeof(tree->netns[0]));
	tree->netns[tree->n_netns++] = netns;
	return netns_open_door(fd, netns_exchange, netns, tree->sysctls);
}

static void door_sleep(void *ctx, int ms)
{
	struct timespec time = {0, 100000};

	(void)nanosleep(&time, NULL);
}

/* ---- ethtool, and namespaces ----------------------------------------------------------------- */

/* Those of mlx5 that matter (en_stats.c), with one of the thousands for channels. */
static const char *const statistics[] = {
	"rx_packets",
	"rx_vport_unicast_packets",
	"rx_vport_unicast_bytes",
	"tx_vport_unicast_packets",
	"tx_vport_unicast_bytes",
	"rx_vport_rdma_unicast_packets",
	"rx_vport_rdma_unicast_bytes",
	"tx_vport_rdma_unicast_packets",
	"tx_vport_rdma_unicast_bytes",
	"rx_vport_rdma_multicast_packets",
	"rx_vport_rdma_multicast_bytes",
	"tx_vport_rdma_multicast_packets",
	"tx_vport_rdma_multicast_bytes",
	"ch0_events",
	"rx_prio0_pause",
	"tx_prio0_pause",
	"rx_prio0_discards",
	"tx_prio0_discards",
	"rx_prio3_pause",
	"rx_prio3_pause_duration",
};

static int get_statistics(const struct host_tree *tree, const struct interface *interface,
			  void *command)
{
	struct ethtool_gstrings *names = command;
	struct ethtool_stats *values = command;

	switch (names->cmd) {
	case ETHTOOL_GSSET_INFO:
		memcpy((char *)command + sizeof(struct ethtool_sset_info),
		       &(uint32_t){ARRAY_LEN(statistics)}, sizeof(uint32_t));
		return 0;
	case ETHTOOL_GSTRINGS:
		names->len = ARRAY_LEN(statistics);
		for (size_t i = 0; i < ARRAY_LEN(statistics); i++)
			memcpy(names->data + i * ETH_GSTRING_LEN, statistics[i],
			       strlen(statistics[i]));
		return 0;
	case ETHTOOL_GSTATS:
		values->n_stats = ARRAY_LEN(statistics);
		for (size_t i = 0; i < ARRAY_LEN(statistics); i++)
			values->data[i] =
				tree_value_of(tree, statistics[i], (unsigned)interface->index,
					      (uint64_t)interface->index * 1000 + i);
		return 0;
	case ETHTOOL_GSET:
		*(struct ethtool_cmd *)command = (struct ethtool_cmd){
			.speed = interface->type == ARPHRD_INFINIBAND ? 0xffff : 25000,
			.speed_hi = interface->type == ARPHRD_INFINIBAND ? 0xffff : 0,
		};
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int door_ethtool(void *ctx, const char *name, void *command, struct err *err)
{
	struct host_tree *tree = ctx;
	int code = -ENODEV;

	for (size_t i = 0; i < tree->n_interfaces; i++) {
		const struct interface *interface = &tree->interfaces[i];

		if (!tree_is_here(tree, interface) || !str_eq(interface->name, name))
			continue;
		code = tree_counts(tree_driver_of(tree, interface->parent))
			       ? get_statistics(tree, interface, command)
			       : -EOPNOTSUPP;
	}
	if (code == 0)
		return 0;
	errno = -code;
	return err_sys(err, "EthtoolRefused", "ask %s", name);
}

/* A pod's network namespace is a file in run/netns; the node's has no file. */
static int door_enter(void *ctx, int fd, struct err *err)
{
	struct host_tree *tree = ctx;
	struct stat st;

	assert(fstat(fd, &st) == 0);
	tree->here = 0;
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree->interfaces[i].netns == st.st_ino)
			tree->here = st.st_ino;
	return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static int door_reboot(void *ctx, enum init_system init, struct err *err)
{
	struct host_tree *tree = ctx;

	if (tree->refuses_reboots)
		return err_set(err, ERR_HOST, "RebootRefused", "not now");
	tree->reboots++;
	return 0;
}

static const struct host_doors doors = {
	.write = door_write,
	.write_at = door_write_at,
	.mkdir = door_mkdir,
	.rmdir = door_rmdir,
	.exchange = door_exchange,
	.sleep_ms = door_sleep,
	.ethtool = door_ethtool,
	.enter = door_enter,
	.reboot = door_reboot,
};

const struct host_doors *host_tree_doors(void)
{
	return &doors;
}

const struct tree_pf tree_mlx = {.address = TREE_MLX,
				 .driver = "mlx5_core",
				 .netdev = "ens1f0np0",
				 .rdma = "mlx5_0",
				 .vendor = "15b3",
				 .device = "101b",
				 .vf_device = "101c",
				 .vf_driver = "mlx5_core",
				 .vf_bus = 0x3c,
				 .total = 128,
				 .has_devlink = true};

const struct tree_pf tree_ib = {.address = TREE_IB,
				.driver = "mlx5_core",
				.netdev = "ibs3",
				.rdma = "mlx5_7",
				.vendor = "15b3",
				.device = "101b",
				.vf_device = "101c",
				.vf_driver = "mlx5_core",
				.vf_bus = 0xb0,
				.total = 16,
				.is_ib = true,
				.has_devlink = true};

struct host_tree *host_tree_new_in(const char *parent, struct tree_texts *texts)
{
	struct host_tree *tree = mem_new(struct host_tree);

	tree->folder = str_printf("%s/host-tree-XXXXXX", parent);
	tree->texts = texts;
	tree_need(mkdtemp(tree->folder) != NULL, tree->folder);
	tree->sysctls = str_printf("%s/proc/sys", tree->folder);
	tree->root = open(tree->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	tree->host = host_open(tree->folder, NULL);
	assert(tree->root >= 0 && tree->host);
	host_set_doors(tree->host, &doors, tree);
	tree->rdma.mode = 1;
	host_tree_file(tree, "sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n");
	host_tree_file(tree, "sys/kernel/iommu_groups/7/x", "");
	host_tree_file(tree, "proc/sys/kernel/random/boot_id", "boot-one\n");
	host_tree_file(tree, "proc/cmdline", "BOOT_IMAGE=/vmlinuz ro quiet\n");
	host_tree_file(tree, "proc/1/comm", "systemd\n");
	host_tree_file(tree, "etc/hostname", "node\n");
	host_tree_file(tree, "sys/kernel/config/rdma_cm/x", "");
	host_tree_file(tree, "sys/bus/pci/drivers/vfio-pci/x", "");
	host_tree_file(tree, "sys/bus/pci/drivers/mlx5_core/x", "");
	host_tree_file(tree, "sys/bus/pci/drivers/igbvf/x", "");
	tree_add_interface(tree, "lo", NULL);
	return tree;
}

struct host_tree *host_tree_new(void)
{
	return host_tree_new_in("/tmp", NULL);
}

void host_tree_boot(struct host_tree *tree, const char *boot_id, bool is_exclusive)
{
	auto_free char *line = str_printf("%s\n", boot_id);

	host_tree_file(tree, "proc/sys/kernel/random/boot_id", line);
	tree->rdma.mode = is_exclusive ? 0 : 1;
}

int host_tree_reboots(const struct host_tree *tree)
{
	return tree->reboots;
}

void host_tree_refuse_reboots(struct host_tree *tree, bool refuses)
{
	tree->refuses_reboots = refuses;
}

void host_tree_free(struct host_tree *tree)
{
	host_tree_remove(tree, "");
	host_close(tree->host);
	(void)close(tree->root);
	for (size_t i = 0; i < tree->n_pfs; i++) {
		mem_free(tree->pfs[i]->vfs);
		mem_free(tree->pfs[i]);
	}
	mem_free(tree->pfs);
	for (size_t i = 0; i < tree->n_netns; i++)
		mem_free(tree->netns[i]);
	mem_free(tree->netns);
	for (size_t i = 0; i < tree->n_interfaces; i++)
		mem_free(tree->interfaces[i].info);
	mem_free(tree->interfaces);
	mem_free(tree->rdma.verbs);
	mem_free(tree->sysctls);
	mem_free(tree->folder);
	mem_free(tree);
}

void host_tree_reopen(struct host_tree *tree)
{
	tree->root = open(tree->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert(tree->root >= 0);
}

const char *host_tree_folder(const struct host_tree *tree)
{
	return tree->folder;
}

struct host *host_tree_host(struct host_tree *tree)
{
	return tree->host;
}

void host_tree_set_counted(struct host_tree *tree, host_tree_counted *counted)
{
	tree->counted = counted;
}

void host_tree_set_namespaces(struct host_tree *tree, int n)
{
	tree->namespaces = n;
}

void host_tree_open_verbs(struct host_tree *tree, const char *device, int contexts)
{
	assert((size_t)tree->rdma.n_opened < ARRAY_LEN(tree->rdma.opened));
	(void)snprintf(tree->rdma.opened[tree->rdma.n_opened].name,
		       sizeof(tree->rdma.opened[0].name), "%s", device);
	tree->rdma.opened[tree->rdma.n_opened++].contexts = contexts;
}

void host_tree_use_in_kernel(struct host_tree *tree, uint32_t index, const char *module)
{
	tree->rdma.module_index = index;
	tree->rdma.module = module;
}

void host_tree_add_rxe(struct host_tree *tree, const char *interface)
{
	tree->rdma.rxe = interface;
	host_tree_file(tree, "sys/class/infiniband/rxe0/node_type", "1: CA\n");
	host_tree_file(tree, "sys/class/infiniband_verbs/uverbs9/ibdev", "rxe0\n");
	host_tree_file(tree, "sys/class/infiniband_verbs/uverbs9/dev", "231:201\n");
}

void host_tree_unload_rdma(struct host_tree *tree)
{
	tree->rdma.is_away = true;
}

void host_tree_fail_at(struct host_tree *tree, int n)
{
	tree->counts.fail_at = n;
	tree->counts.changes = 0;
}

int host_tree_vf_lists(const struct host_tree *tree)
{
	return tree->counts.vf_lists;
}

int host_tree_changes(const struct host_tree *tree)
{
	return tree->counts.changes;
}

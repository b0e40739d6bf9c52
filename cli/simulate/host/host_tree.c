// SPDX-License-Identifier: Apache-2.0
/*
 * A host made of files: PFs and VFs are kept here, shown as sysfs in a folder, and answered for as
 * the kernel does. nodeagent/host reads the folder and comes through the doors.
 */
#include "cli/simulate/host/host_tree.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/devlink.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/message.h"

#define RXE_INDEX      9000
#define DEVLINK_FAMILY 0x1c
#define MTU_MAX        9978
#define NLDEV(command) (RDMA_NL_NLDEV << 10 | (command))

struct interface {
	char name[16], parent[24], kind[16], master[16];
	int index, lower; /* lower: of the interface that it is upon, of its other end; 0: none */
	void *info;       /* of one that a plugin made: the IFLA_LINKINFO of it; else NULL */
	size_t info_len;
	uint32_t mtu;
	uint16_t type; /* ARPHRD_… */
	bool up, away, no_carrier, stays_down;
	ino_t netns; /* where it is, when it is away; 0: in a namespace that is not found */
	unsigned char mac[6];
};

struct vf {
	char address[24];
	unsigned char admin_mac[6];
	uint64_t node_guid, port_guid;
	uint32_t link_state;
};

struct pf {
	struct tree_pf is;
	bool autoprobe;
	int count;
	uint16_t eswitch;
	const char *broken; /* devlink health reporter in error; NULL: none */
	struct tree_firmware firmware;
	struct vf *vfs; /* `count` of them */
	bool faults[TREE_FAULTS];
};

struct tree_texts {
	int folder;
	struct map names; /* text → name of its file, which is owned */
	unsigned int last;
};

/* What the door of a namespace gets. */
struct tree_netns {
	struct host_tree *tree;
	ino_t inode; /* of its file; 0: the node's own */
};

/* What the node itself uses by IP. */
struct tree_ip {
	int routes[4], n_routes;
	struct {
		int index;
		unsigned char octets[4];
	} addresses[4];
	int n_addresses;
};

struct tree_rdma {
	bool is_away;
	bool has_verbs;
	char (*verbs)[24]; /* devices by the number of their files; "": free */
	size_t n_verbs;
	const char *rxe;       /* interface below it; NULL: there is none */
	const char *module;    /* of the kernel, which uses a device; NULL: none does */
	uint32_t module_index; /* of that device */
	uint8_t mode;
	struct {
		char name[24];
		int contexts;
	} opened[4]; /* devices */
	int n_opened;
};

struct host_tree {
	char *folder, *sysctls;
	int root;
	struct tree_netns **netns;
	size_t n_netns;
	struct tree_texts *texts; /* NULL: each file has its own */
	struct host *host;
	struct pf **pfs;
	size_t n_pfs;
	struct interface *interfaces;
	size_t n_interfaces, interfaces_cap;
	bool has_carriers; /* said of each interface */
	int next_index, random;
	struct tree_ip ip;
	struct tree_rdma rdma;
	bool refuses_reboots;
	int reboots; /* that it was asked for */
	int namespaces;
	struct {
		int changes, fail_at, vf_lists, resets;
	} counts;
	ino_t here; /* the namespace in which we are; 0: the host's */
	host_tree_counted *counted;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* A disk that is full or gone: nothing that is played here would be true from now on. */
static void need(bool done, const char *path)
{
	if (done)
		return;
	(void)fprintf(stderr, "simulated host: cannot write %s: %s\n", path, strerror(errno));
	abort();
}

static void make_folders(struct host_tree *tree, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *folder = str_ndup(path, (size_t)(slash - path));

		need(mkdirat(tree->root, folder, 0755) == 0 || errno == EEXIST, path);
	}
}

static void write_new(int folder, const char *path, const void *bytes, size_t len)
{
	auto_close int fd =
		openat(folder, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	need(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, path);
}

void host_tree_bytes(struct host_tree *tree, const char *path, const void *bytes, size_t len)
{
	make_folders(tree, path);
	/* It may be a text that others share. */
	if (tree->texts)
		(void)unlinkat(tree->root, path, 0);
	write_new(tree->root, path, bytes, len);
}

/* ---- texts that many files have -------------------------------------------------------------- */

struct tree_texts *tree_texts_new(const char *folder)
{
	struct tree_texts *texts = mem_new(struct tree_texts);

	texts->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	need(texts->folder >= 0, folder);
	texts->names.free_value = mem_free;
	return texts;
}

void tree_texts_free(struct tree_texts *texts)
{
	if (!texts)
		return;
	map_done(&texts->names);
	for (unsigned int i = 1; i <= texts->last; i++) {
		auto_free char *name = str_printf("text-%u", i);

		(void)unlinkat(texts->folder, name, 0);
	}
	(void)close(texts->folder);
	mem_free(texts);
}

/* The file that has this text; a new one where the last has as many names as can be. */
static const char *text_file(struct tree_texts *texts, const char *text, bool is_full)
{
	char *name = is_full ? NULL : map_get(&texts->names, text);

	if (name)
		return name;
	name = str_printf("text-%u", ++texts->last);
	write_new(texts->folder, name, text, strlen(text));
	map_set(&texts->names, text, name);
	return name;
}

static void link_text(struct host_tree *tree, const char *path, const char *text)
{
	struct tree_texts *texts = tree->texts;
	int code;

	make_folders(tree, path);
	(void)unlinkat(tree->root, path, 0);
	code = linkat(texts->folder, text_file(texts, text, false), tree->root, path, 0);
	if (code < 0 && errno == EMLINK)
		code = linkat(texts->folder, text_file(texts, text, true), tree->root, path, 0);
	need(code == 0, path);
}

void host_tree_file(struct host_tree *tree, const char *path, const char *text)
{
	if (tree->texts)
		link_text(tree, path, text);
	else
		host_tree_bytes(tree, path, text, strlen(text));
}

void host_tree_link(struct host_tree *tree, const char *path, const char *target)
{
	make_folders(tree, path);
	(void)unlinkat(tree->root, path, 0);
	need(symlinkat(target, tree->root, path) == 0, path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

void host_tree_remove(struct host_tree *tree, const char *path)
{
	auto_free char *full = str_printf("%s/%s", tree->folder, path);

	(void)nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *host_tree_read(struct host_tree *tree, const char *path)
{
	auto_strbuf struct strbuf text = {0};

	(void)fs_read(tree->root, path, 1 << 20, &text, NULL);
	return strbuf_take(&text);
}

static void pci_file(struct host_tree *tree, const char *address, const char *name,
		     const char *text)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_file(tree, path, text);
}

static void pci_link(struct host_tree *tree, const char *address, const char *name,
		     const char *target)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_link(tree, path, target);
}

static void pci_remove(struct host_tree *tree, const char *address, const char *name)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_remove(tree, path);
}

/* The folder of a function below its bridges, and the link to it. path NULL: neither. */
static void place_function(struct host_tree *tree, const char *address, const char *path)
{
	auto_free char *folder = NULL, *link = NULL, *target = NULL;

	if (!path)
		return;
	folder = str_printf("sys/devices/%s/%s/x", path, address);
	link = str_printf("sys/bus/pci/devices/%s", address);
	target = str_printf("../../../devices/%s/%s", path, address);
	make_folders(tree, folder);
	host_tree_link(tree, link, target);
}

static void remove_function(struct host_tree *tree, const char *address, const char *path)
{
	auto_free char *folder = NULL, *link = NULL;

	if (!path) {
		pci_remove(tree, address, "");
		return;
	}
	folder = str_printf("sys/devices/%s/%s", path, address);
	link = str_printf("sys/bus/pci/devices/%s", address);
	host_tree_remove(tree, folder);
	host_tree_remove(tree, link);
}

static void put_numa(struct host_tree *tree, const char *address, int numa)
{
	auto_free char *text = str_printf("%d\n", numa);

	pci_file(tree, address, "numa_node", text);
}

void host_tree_add_gpu(struct host_tree *tree, const struct tree_gpu *gpu, const char *address,
		       const char *path, int numa)
{
	auto_free char *class = str_printf("0x%s\n", gpu->class);
	auto_free char *vendor = str_printf("0x%s\n", gpu->vendor);
	auto_free char *device = str_printf("0x%s\n", gpu->device);

	place_function(tree, address, path);
	pci_file(tree, address, "class", class);
	pci_file(tree, address, "vendor", vendor);
	pci_file(tree, address, "device", device);
	put_numa(tree, address, numa);
}

/* ---- interfaces ------------------------------------------------------------------------------ */

static struct interface *interface_by(struct host_tree *tree, const char *name)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (str_eq(tree->interfaces[i].name, name))
			return &tree->interfaces[i];
	return NULL;
}

static struct interface *interface_at(struct host_tree *tree, const char *parent)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (str_eq(tree->interfaces[i].parent, parent))
			return &tree->interfaces[i];
	return NULL;
}

static void show_interface(struct host_tree *tree, const struct interface *interface)
{
	auto_free char *path = str_printf("sys/class/net/%s/ifindex", interface->name);
	auto_free char *text = str_printf("%d\n", interface->index);
	auto_free char *folder = str_printf("net/%s/x", interface->name);

	host_tree_file(tree, path, text);
	if (interface->parent[0])
		pci_file(tree, interface->parent, folder, "");
}

static void hide_interface(struct host_tree *tree, const struct interface *interface)
{
	auto_free char *path = str_printf("sys/class/net/%s", interface->name);
	auto_free char *folder = str_printf("net/%s", interface->name);

	host_tree_remove(tree, path);
	if (interface->parent[0])
		pci_remove(tree, interface->parent, folder);
}

/* It goes to another namespace, or gets another name. */
static void place_interface(struct host_tree *tree, struct interface *interface, ino_t netns,
			    const char *name)
{
	if (!interface->away)
		hide_interface(tree, interface);
	interface->away = netns != 0;
	interface->netns = netns;
	(void)snprintf(interface->name, sizeof(interface->name), "%s", name);
	if (!interface->away)
		show_interface(tree, interface);
}

static struct interface *new_interface(struct host_tree *tree, const char *name)
{
	struct interface *added;

	if (tree->n_interfaces == tree->interfaces_cap) {
		tree->interfaces_cap = tree->interfaces_cap ? 2 * tree->interfaces_cap : 16;
		tree->interfaces = mem_realloc(tree->interfaces,
					       tree->interfaces_cap * sizeof(*tree->interfaces));
	}
	added = &tree->interfaces[tree->n_interfaces++];
	*added = (struct interface){
		.index = ++tree->next_index,
		.mtu = 1500,
		.type = str_eq(name, "lo") ? ARPHRD_LOOPBACK : ARPHRD_ETHER,
	};
	(void)snprintf(added->name, sizeof(added->name), "%s", name);
	/* Random at each creation, like those of VFs that were not given one. */
	tree->random++;
	memcpy(added->mac,
	       (unsigned char[]){2, 0, 0, 0, (unsigned char)(tree->random >> 8),
				 (unsigned char)tree->random},
	       6);
	return added;
}

static struct interface *add_interface(struct host_tree *tree, const char *name, const char *parent)
{
	struct interface *added = new_interface(tree, name);

	(void)snprintf(added->parent, sizeof(added->parent), "%s", parent ? parent : "");
	show_interface(tree, added);
	return added;
}

static void remove_interface(struct host_tree *tree, struct interface *interface)
{
	if (!interface->away || interface->parent[0])
		hide_interface(tree, interface);
	if (interface->parent[0])
		pci_remove(tree, interface->parent, "net");
	mem_free(interface->info);
	*interface = tree->interfaces[--tree->n_interfaces];
}

void host_tree_keep_down(struct host_tree *tree, const char *interface)
{
	struct interface *kept = interface_by(tree, interface);

	assert(kept);
	kept->stays_down = true;
	kept->up = false;
}

void host_tree_add_interface(struct host_tree *tree, const char *name, const char *kind)
{
	struct interface *added = add_interface(tree, name, NULL);

	(void)snprintf(added->kind, sizeof(added->kind), "%s", kind ? kind : "");
	added->up = true;
}

void host_tree_add_default_route(struct host_tree *tree, const char *interface)
{
	tree->ip.routes[tree->ip.n_routes++] = interface_by(tree, interface)->index;
}

void host_tree_add_address(struct host_tree *tree, const char *interface, const char *ipv4)
{
	tree->ip.addresses[tree->ip.n_addresses].index = interface_by(tree, interface)->index;
	assert(inet_pton(AF_INET, ipv4, tree->ip.addresses[tree->ip.n_addresses++].octets) == 1);
}

static struct vf *vf_by(struct host_tree *tree, const char *address, struct pf **ret_pf, int *ret);

void host_tree_move_away(struct host_tree *tree, const char *vf)
{
	struct interface *interface = interface_at(tree, vf);
	auto_free char *path = NULL;

	assert(interface);
	path = str_printf("net/%s", interface->name);
	interface->away = true;
	pci_remove(tree, vf, path);
}

/* As the kernel shows it from the host: the verbs device is in sight, the RDMA device is not. */
static void move_rdma(struct host_tree *tree, const char *vf, const char *name)
{
	auto_free char *seen = str_printf("infiniband/%s", name);
	auto_free char *class = str_printf("sys/class/infiniband/%s", name);
	auto_free char *text = str_printf("%s\n", name);

	pci_remove(tree, vf, seen);
	host_tree_remove(tree, class);
	pci_file(tree, vf, "infiniband_verbs/uverbs7/ibdev", text);
}

void host_tree_move_to(struct host_tree *tree, const char *vf, const char *netns, const char *name)
{
	struct interface *interface = interface_at(tree, vf);
	auto_free char *path = str_printf("run/netns/%s", netns);
	struct pf *pf = NULL;
	struct stat st;
	int number = 0;

	assert(interface && vf_by(tree, vf, &pf, &number));
	host_tree_move_away(tree, vf);
	if (fstatat(tree->root, path, &st, 0) < 0)
		host_tree_file(tree, path, "");
	assert(fstatat(tree->root, path, &st, 0) == 0);
	interface->netns = st.st_ino;
	(void)snprintf(interface->name, sizeof(interface->name), "%s", name);
	if (pf->is.rdma && tree->rdma.mode == 0) {
		auto_free char *rdma = str_printf("%sv%d", pf->is.rdma, number);

		move_rdma(tree, vf, rdma);
	}
}

void host_tree_bring_back(struct host_tree *tree, const char *vf)
{
	struct interface *interface = interface_at(tree, vf);
	auto_free char *path = NULL;

	assert(interface);
	path = str_printf("net/%s/x", interface->name);
	interface->away = false;
	pci_file(tree, vf, path, "");
}

/* ---- PFs and VFs ----------------------------------------------------------------------------- */

static bool is_there(const struct pf *pf)
{
	return !pf->faults[TREE_FAULT_GONE];
}

/* Its driver works: it has interface, RDMA device and devlink. */
static bool is_bound(const struct pf *pf)
{
	return pf->is.driver && is_there(pf) && !pf->faults[TREE_FAULT_DRIVER];
}

/* NULL: there is none, or it is out of its slot. */
static struct pf *pf_by(struct host_tree *tree, const char *address)
{
	for (size_t i = 0; i < tree->n_pfs; i++)
		if (str_eq(tree->pfs[i]->is.address, address))
			return is_there(tree->pfs[i]) ? tree->pfs[i] : NULL;
	return NULL;
}

static struct vf *vf_by(struct host_tree *tree, const char *address, struct pf **ret_pf, int *ret)
{
	for (size_t i = 0; i < tree->n_pfs; i++)
		for (int n = 0; n < tree->pfs[i]->count; n++)
			if (str_eq(tree->pfs[i]->vfs[n].address, address)) {
				*ret_pf = tree->pfs[i];
				*ret = n;
				return &tree->pfs[i]->vfs[n];
			}
	return NULL;
}

static void put_count(struct host_tree *tree, const struct pf *pf)
{
	auto_free char *text = str_printf("%d\n", pf->count);

	pci_file(tree, pf->is.address, "sriov_numvfs", text);
}

static const struct {
	const char *class, *file, *port; /* port: NULL without one */
	unsigned int minor;
} verbs_files[] = {
	{"infiniband_verbs", "uverbs", NULL, 192},
	{"infiniband_mad", "umad", "1\n", 0},
};

static void add_verbs(struct host_tree *tree, const char *name)
{
	auto_free char *owner = str_printf("%s\n", name);
	size_t n = 0;

	while (n < tree->rdma.n_verbs && tree->rdma.verbs[n][0])
		n++;
	if (n == tree->rdma.n_verbs)
		tree->rdma.verbs = mem_realloc(tree->rdma.verbs,
					       ++tree->rdma.n_verbs * sizeof(*tree->rdma.verbs));
	(void)snprintf(tree->rdma.verbs[n], sizeof(tree->rdma.verbs[n]), "%s", name);
	for (size_t i = 0; i < ARRAY_LEN(verbs_files); i++) {
		auto_free char *file = str_printf("%s%zu", verbs_files[i].file, n);
		auto_free char *class = str_printf("sys/class/%s/%s", verbs_files[i].class, file);
		auto_free char *ibdev = str_printf("%s/ibdev", class);
		auto_free char *dev = str_printf("%s/dev", class);
		auto_free char *port = str_printf("%s/port", class);
		auto_free char *path = str_printf("dev/infiniband/%s", file);
		auto_free char *number = str_printf("231:%zu\n", verbs_files[i].minor + n);

		host_tree_file(tree, ibdev, owner);
		host_tree_file(tree, dev, number);
		host_tree_file(tree, path, "");
		if (verbs_files[i].port)
			host_tree_file(tree, port, verbs_files[i].port);
	}
}

static void remove_verbs(struct host_tree *tree, const char *name)
{
	for (size_t n = 0; n < tree->rdma.n_verbs; n++) {
		if (!str_eq(tree->rdma.verbs[n], name))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(verbs_files); i++) {
			auto_free char *class = str_printf(
				"sys/class/%s/%s%zu", verbs_files[i].class, verbs_files[i].file, n);
			auto_free char *path =
				str_printf("dev/infiniband/%s%zu", verbs_files[i].file, n);

			host_tree_remove(tree, class);
			host_tree_remove(tree, path);
		}
		tree->rdma.verbs[n][0] = '\0';
	}
}

static void remove_rdma(struct host_tree *tree, const char *address, const char *name)
{
	auto_free char *class = str_printf("sys/class/infiniband/%s", name);

	remove_verbs(tree, name);
	host_tree_remove(tree, class);
	pci_remove(tree, address, "infiniband");
}

void host_tree_serve_verbs(struct host_tree *tree)
{
	tree->rdma.has_verbs = true;
	host_tree_file(tree, "dev/infiniband/rdma_cm", "");
	host_tree_file(tree, "sys/class/misc/rdma_cm/dev", "10:60\n");
}

static void add_rdma(struct host_tree *tree, const char *address, const char *name)
{
	auto_free char *path = str_printf("infiniband/%s/x", name);
	auto_free char *device = str_printf("sys/class/infiniband/%s/device", name);
	auto_free char *target = str_printf("../../../bus/pci/devices/%s", address);

	pci_file(tree, address, path, "");
	host_tree_link(tree, device, target);
	if (tree->rdma.has_verbs)
		add_verbs(tree, name);
}

/* Drivers say -1 without a link. */
static void put_speed(struct host_tree *tree, const struct pf *pf)
{
	auto_free char *path = NULL, *text = NULL;

	if (!pf->is.speed_mbps || !pf->is.netdev)
		return;
	path = str_printf("sys/class/net/%s/speed", pf->is.netdev);
	text = str_printf("%d\n", pf->faults[TREE_FAULT_LINK] ? -1 : pf->is.speed_mbps);
	host_tree_file(tree, path, text);
}

/* Its driver starts. */
static void bind_pf(struct host_tree *tree, struct pf *pf)
{
	const struct tree_pf *is = &pf->is;
	auto_free char *driver = str_printf("../../drivers/%s", is->driver ? is->driver : "");

	if (is->driver)
		pci_link(tree, is->address, "driver", driver);
	if (is->netdev) {
		struct interface *added = add_interface(tree, is->netdev, is->address);

		added->type = is->is_ib ? ARPHRD_INFINIBAND : ARPHRD_ETHER;
		added->up = is->is_up;
		added->no_carrier = pf->faults[TREE_FAULT_LINK];
		(void)snprintf(added->master, sizeof(added->master), "%s",
			       is->master ? is->master : "");
		put_speed(tree, pf);
	}
	if (is->rdma)
		add_rdma(tree, is->address, is->rdma);
}

static void show_pf(struct host_tree *tree, struct pf *pf)
{
	const struct tree_pf *is = &pf->is;
	auto_free char *total = str_printf("%d\n", is->total);
	auto_free char *vendor = str_printf("0x%s\n", is->vendor);
	auto_free char *device = str_printf("0x%s\n", is->device);

	place_function(tree, is->address, is->path);
	pci_file(tree, is->address, "class", is->is_ib ? "0x020700\n" : "0x020000\n");
	pci_file(tree, is->address, "vendor", vendor);
	pci_file(tree, is->address, "device", device);
	put_numa(tree, is->address, is->numa);
	if (!is->total)
		return;
	pci_file(tree, is->address, "sriov_totalvfs", total);
	pci_file(tree, is->address, "sriov_drivers_autoprobe", "1\n");
	pci_file(tree, is->address, "sriov_vf_device", is->vf_device);
	put_count(tree, pf);
}

void host_tree_add_pf(struct host_tree *tree, const struct tree_pf *is)
{
	struct pf *pf = mem_new(struct pf);

	pf->is = *is;
	pf->autoprobe = true;
	tree->pfs = mem_realloc(tree->pfs, (tree->n_pfs + 1) * sizeof(tree->pfs[0]));
	tree->pfs[tree->n_pfs++] = pf;
	show_pf(tree, pf);
	bind_pf(tree, pf);
}

/* A VF's driver starts: its interface and RDMA device appear, with what the PF has given it. */
static int bind_vf(struct host_tree *tree, struct pf *pf, int number, const char *driver)
{
	struct vf *vf = &pf->vfs[number];
	auto_free char *target = str_printf("../../drivers/%s", driver);
	auto_free char *folder = str_printf("sys/bus/pci/drivers/%s", driver);
	auto_free char *name = str_printf("%.9sv%d", pf->is.netdev, number);
	auto_free char *rdma = str_printf("%sv%d", pf->is.rdma ? pf->is.rdma : "", number);
	struct stat st;

	if (fstatat(tree->root, folder, &st, 0) < 0)
		return -ENODEV;
	pci_link(tree, vf->address, "driver", target);
	if (!str_eq(driver, pf->is.vf_driver))
		return 0;
	if (!interface_at(tree, vf->address)) {
		struct interface *added = add_interface(tree, name, vf->address);

		added->type = pf->is.is_ib ? ARPHRD_INFINIBAND : ARPHRD_ETHER;
		if (!text_mac_is_zero(vf->admin_mac))
			memcpy(added->mac, vf->admin_mac, 6);
	}
	if (pf->is.rdma && !pf->is.vfs_lack_rdma)
		add_rdma(tree, vf->address, rdma);
	return 0;
}

static void unbind_vf(struct host_tree *tree, struct pf *pf, int number)
{
	struct interface *interface = interface_at(tree, pf->vfs[number].address);
	auto_free char *rdma = str_printf("%sv%d", pf->is.rdma ? pf->is.rdma : "-", number);

	if (interface)
		remove_interface(tree, interface);
	remove_rdma(tree, pf->vfs[number].address, rdma);
	pci_remove(tree, pf->vfs[number].address, "driver");
}

static void make_vf(struct host_tree *tree, struct pf *pf, int number)
{
	struct vf *vf = &pf->vfs[number];
	auto_free char *link = str_printf("virtfn%d", number);
	auto_free char *to_vf = NULL, *to_pf = str_printf("../%s", pf->is.address);
	auto_free char *vendor = str_printf("0x%s\n", pf->is.vendor);
	auto_free char *device = str_printf("0x%s\n", pf->is.vf_device);

	/* mlx5: those of InfiniBand are down at first (drivers/infiniband/hw/mlx5/ib_virt.c). */
	*vf = (struct vf){.link_state = pf->is.is_ib ? IFLA_VF_LINK_STATE_DISABLE
						     : IFLA_VF_LINK_STATE_AUTO};
	if (pf->is.eswitch == TREE_ESWITCH_ELSEWHERE)
		memcpy(vf->admin_mac, (unsigned char[]){2, 0xbf, 0, 0, 0, (unsigned char)number},
		       6);
	(void)snprintf(vf->address, sizeof(vf->address), "0000:%02x:%02x.%x",
		       (pf->is.vf_bus + (unsigned int)number / 256) & 0xff,
		       (unsigned int)number / 8 % 32, (unsigned int)number % 8);
	to_vf = str_printf("../%s", vf->address);
	place_function(tree, vf->address, pf->is.path);
	pci_file(tree, vf->address, "class", pf->is.is_ib ? "0x020700\n" : "0x020000\n");
	pci_file(tree, vf->address, "vendor", vendor);
	pci_file(tree, vf->address, "device", device);
	pci_file(tree, vf->address, "driver_override", "(null)\n");
	put_numa(tree, vf->address, pf->is.numa);
	pci_link(tree, vf->address, "iommu_group", "../../../kernel/iommu_groups/7");
	pci_link(tree, vf->address, "physfn", to_pf);
	pci_link(tree, pf->is.address, link, to_vf);
	if (pf->autoprobe)
		(void)bind_vf(tree, pf, number, pf->is.vf_driver);
}

static void remove_vfs(struct host_tree *tree, struct pf *pf)
{
	for (int i = 0; i < pf->count; i++) {
		auto_free char *link = str_printf("virtfn%d", i);

		unbind_vf(tree, pf, i);
		pci_remove(tree, pf->is.address, link);
		remove_function(tree, pf->vfs[i].address, pf->is.path);
	}
	pf->count = 0;
	if (pf->is.eswitch == TREE_ESWITCH_WITH_VFS)
		pf->eswitch = DEVLINK_ESWITCH_MODE_LEGACY;
}

static bool is_down(struct host_tree *tree, const struct pf *pf)
{
	const struct interface *interface = interface_at(tree, pf->is.address);

	return !interface || !interface->up;
}

/* In the order of the kernel's sriov_numvfs_store(), drivers/pci/pci-sysfs.c or iov.c. */
static int write_count(struct host_tree *tree, struct pf *pf, const char *text)
{
	int64_t wanted;

	if (!str_to_int(text, 0, 65535, &wanted))
		return -EINVAL;
	if (wanted > pf->is.total)
		return -ERANGE;
	if (wanted == pf->count)
		return 0;
	if (!is_bound(pf))
		return -ENOENT;
	if (wanted == 0) {
		remove_vfs(tree, pf);
	} else {
		if (pf->count)
			return -EBUSY;
		if (pf->faults[TREE_FAULT_VFS])
			return -EIO;
		if (pf->is.down != TREE_DOWN_MAKES && is_down(tree, pf))
			return pf->is.down == TREE_DOWN_REFUSES ? -EINVAL : 0;
		if (pf->is.makes && wanted > pf->is.makes)
			wanted = pf->is.makes;
		mem_free(pf->vfs);
		pf->vfs = mem_calloc((size_t)wanted, sizeof(pf->vfs[0]));
		for (int i = 0; i < wanted; i++) {
			pf->count = i + 1;
			make_vf(tree, pf, i);
		}
	}
	put_count(tree, pf);
	return 0;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void unbind_pf(struct host_tree *tree, struct pf *pf)
{
	struct interface *interface = interface_at(tree, pf->is.address);

	remove_vfs(tree, pf);
	if (pf->is.total)
		put_count(tree, pf);
	if (interface)
		remove_interface(tree, interface);
	remove_rdma(tree, pf->is.address, pf->is.rdma ? pf->is.rdma : "-");
	pci_remove(tree, pf->is.address, "driver");
}

static void set_carrier(struct host_tree *tree, const struct pf *pf, bool has_carrier)
{
	struct interface *interface = interface_at(tree, pf->is.address);

	tree->has_carriers = true;
	if (!interface)
		return;
	interface->no_carrier = !has_carrier;
	put_speed(tree, pf);
}

/* From `bound` and `there` before to what the faults say now. */
static void follow_faults(struct host_tree *tree, struct pf *pf, bool bound, bool there)
{
	if (bound && !is_bound(pf))
		unbind_pf(tree, pf);
	if (there && !is_there(pf))
		remove_function(tree, pf->is.address, pf->is.path);
	if (!there && is_there(pf))
		show_pf(tree, pf);
	if (!bound && is_bound(pf))
		bind_pf(tree, pf);
}

bool host_tree_set_fault(struct host_tree *tree, const char *address, enum tree_fault fault,
			 bool is_broken)
{
	struct pf *pf = NULL;
	bool bound, there;

	for (size_t i = 0; i < tree->n_pfs; i++)
		if (str_eq(tree->pfs[i]->is.address, address))
			pf = tree->pfs[i];
	assert(pf && fault < TREE_FAULTS);
	if (pf->faults[fault] == is_broken)
		return false;
	bound = is_bound(pf);
	there = is_there(pf);
	pf->faults[fault] = is_broken;
	if (fault == TREE_FAULT_LINK)
		set_carrier(tree, pf, !is_broken);
	else
		follow_faults(tree, pf, bound, there);
	return true;
}

/* ---- more of what writes do ------------------------------------------------------------------ */

static int write_probe(struct host_tree *tree, const char *address)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/driver_override", address);
	auto_free char *link = str_printf("sys/bus/pci/devices/%s/driver", address);
	auto_free char *override = host_tree_read(tree, path);
	struct pf *pf;
	struct stat st;
	int number;

	if (!vf_by(tree, address, &pf, &number))
		return -ENODEV;
	override[strcspn(override, "\n")] = '\0';
	if (fstatat(tree->root, link, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (!str_eq(override, "(null)"))
		(void)bind_vf(tree, pf, number, override);
	else if (pf->autoprobe)
		(void)bind_vf(tree, pf, number, pf->is.vf_driver);
	/* "Success" whatever came of it. */
	return 0;
}

/* "sys/bus/pci/devices/<address>/<name>" */
static int write_device(struct host_tree *tree, const char *path, const char *text)
{
	const char *rest = path + strlen("sys/bus/pci/devices/");
	auto_free char *address = str_ndup(rest, strcspn(rest, "/"));
	const char *name = strchr(rest, '/') + 1;
	struct pf *pf = pf_by(tree, address);
	int number;

	if (pf && str_eq(name, "sriov_numvfs"))
		return write_count(tree, pf, text);
	if (pf && str_eq(name, "sriov_drivers_autoprobe")) {
		pf->autoprobe = text[0] == '1';
		pci_file(tree, address, name, pf->autoprobe ? "1\n" : "0\n");
		return 0;
	}
	if (!vf_by(tree, address, &pf, &number))
		return -ENODEV;
	if (str_eq(name, "driver_override")) {
		pci_file(tree, address, name, str_eq(text, "\n") ? "(null)\n" : text);
		return 0;
	}
	if (str_eq(name, "driver/unbind") && str_eq(text, address)) {
		unbind_vf(tree, pf, number);
		return 0;
	}
	return -EACCES;
}

static int refuse(int error, struct err *err)
{
	errno = -error;
	return err_sys(err, "NetlinkRefused", "the kernel refuses");
}

static bool fails_now(struct host_tree *tree)
{
	tree->counts.changes++;
	return tree->counts.changes == tree->counts.fail_at;
}

static int door_write(void *ctx, int root_fd, const char *path, const char *data, size_t len,
		      struct err *err)
{
	struct host_tree *tree = ctx;
	auto_free char *text = str_ndup(data, len);
	int code;

	if (fails_now(tree))
		return refuse(-EIO, err);
	if (str_ends(path, "/drivers_probe"))
		code = write_probe(tree, text);
	else if (str_starts(path, "sys/bus/pci/devices/"))
		code = write_device(tree, path, text);
	else
		code = -ENOENT;
	return code < 0 ? refuse(code, err) : 0;
}

/* ---- rtnetlink ------------------------------------------------------------------------------- */

static void add_message(struct strbuf *answer, struct nl_msg *msg)
{
	netlink_add(answer, nlmsg_hdr(msg));
	nlmsg_free(msg);
}

static bool counts(const char *driver)
{
	return str_eq(driver, "mlx5_core");
}

static uint64_t value_of(const struct host_tree *tree, const char *counter, unsigned int index,
			 uint64_t value)
{
	return tree->counted ? tree->counted(counter, index, value) : value;
}

static void put_vf_stats(struct host_tree *tree, struct nl_msg *msg, const struct pf *pf,
			 int number)
{
	static const char *const statistics[] = {
		[IFLA_VF_STATS_RX_PACKETS] = "vf_rx_packets",
		[IFLA_VF_STATS_TX_PACKETS] = "vf_tx_packets",
		[IFLA_VF_STATS_RX_BYTES] = "vf_rx_bytes",
		[IFLA_VF_STATS_TX_BYTES] = "vf_tx_bytes",
		[IFLA_VF_STATS_BROADCAST] = "vf_rx_broadcast",
		[IFLA_VF_STATS_MULTICAST] = "vf_rx_multicast",
		[IFLA_VF_STATS_RX_DROPPED] = "vf_rx_dropped",
		[IFLA_VF_STATS_TX_DROPPED] = "vf_tx_dropped",
	};
	struct nlattr *nest = nla_nest_start(msg, IFLA_VF_STATS);

	for (int type = IFLA_VF_STATS_RX_PACKETS; type <= IFLA_VF_STATS_TX_DROPPED; type++) {
		uint64_t value = 0;

		if (type == IFLA_VF_STATS_PAD)
			continue;
		if (counts(pf->is.driver))
			value = value_of(tree, statistics[type], pf->is.vf_bus + (unsigned)number,
					 (uint64_t)(100 * number + type));
		netlink_put(msg, type, &value, sizeof(value));
	}
	nla_nest_end(msg, nest);
}

static void put_vf_info(struct host_tree *tree, struct nl_msg *msg, const struct pf *pf, int number,
			bool with_stats)
{
	const struct vf *vf = &pf->vfs[number];
	struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO);
	struct ifla_vf_mac mac = {.vf = (uint32_t)number};
	struct ifla_vf_link_state state = {.vf = (uint32_t)number, .link_state = vf->link_state};
	struct ifla_vf_guid guid = {.vf = (uint32_t)number, .guid = vf->node_guid};

	memcpy(mac.mac, vf->admin_mac, 6);
	netlink_put(msg, IFLA_VF_MAC, &mac, sizeof(mac));
	netlink_put(msg, IFLA_VF_LINK_STATE, &state, sizeof(state));
	if (pf->is.is_ib) {
		netlink_put(msg, IFLA_VF_IB_NODE_GUID, &guid, sizeof(guid));
		guid.guid = vf->port_guid;
		netlink_put(msg, IFLA_VF_IB_PORT_GUID, &guid, sizeof(guid));
	}
	if (with_stats)
		put_vf_stats(tree, msg, pf, number);
	nla_nest_end(msg, info);
}

/* filter: RTEXT_FILTER_… */
static void add_link(struct host_tree *tree, const struct interface *interface, uint32_t filter,
		     struct strbuf *answer)
{
	struct ifinfomsg header = {.ifi_index = interface->index,
				   .ifi_type = interface->type,
				   .ifi_flags = interface->up ? IFF_UP : 0};
	struct nl_msg *msg = nlmsg_alloc_size(65536);
	struct pf *pf = pf_by(tree, interface->parent), *owner = pf;
	struct interface *master = interface_by(tree, interface->master);
	int number;

	assert(nlmsg_put(msg, 0, 0, RTM_NEWLINK, sizeof(header), 0));
	memcpy(nlmsg_data(nlmsg_hdr(msg)), &header, sizeof(header));
	netlink_put_str(msg, IFLA_IFNAME, interface->name);
	netlink_put_u32(msg, IFLA_MTU, interface->mtu);
	netlink_put_u32(msg, IFLA_MIN_MTU, 68);
	if (!owner)
		(void)vf_by(tree, interface->parent, &owner, &number);
	netlink_put_u32(msg, IFLA_MAX_MTU,
			owner && owner->is.max_mtu ? (uint32_t)owner->is.max_mtu : MTU_MAX);
	if (tree->has_carriers) {
		netlink_put_u8(msg, IFLA_CARRIER, !interface->no_carrier);
		/* IF_OPER_DOWN and _UP, RFC 2863. */
		netlink_put_u8(msg, IFLA_OPERSTATE, interface->no_carrier ? 2 : 6);
	}
	netlink_put(msg, IFLA_ADDRESS, interface->mac, 6);
	/* The address of a port is its bond's. */
	if (master) {
		netlink_put_u32(msg, IFLA_MASTER, (uint32_t)master->index);
		netlink_put(msg, IFLA_PERM_ADDRESS, interface->mac, 6);
	}
	if (interface->kind[0]) {
		struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);

		netlink_put_str(msg, IFLA_INFO_KIND, interface->kind);
		nla_nest_end(msg, info);
	}
	if (interface->lower)
		netlink_put_u32(msg, IFLA_LINK, (uint32_t)interface->lower);
	if (interface->info)
		netlink_put(msg, IFLA_LINKINFO, interface->info, interface->info_len);
	/* From where it does not hide what we find out otherwise. */
	if (tree->here && interface->parent[0]) {
		netlink_put_str(msg, IFLA_PARENT_DEV_BUS_NAME, "pci");
		netlink_put_str(msg, IFLA_PARENT_DEV_NAME, interface->parent);
	}
	if ((filter & RTEXT_FILTER_VF) && pf && pf->count) {
		struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST);

		for (int i = 0; i < pf->count && pf->is.eswitch != TREE_ESWITCH_ELSEWHERE; i++)
			put_vf_info(tree, msg, pf, i, !(filter & RTEXT_FILTER_SKIP_STATS));
		nla_nest_end(msg, list);
	}
	add_message(answer, msg);
}

static bool is_in(ino_t netns, const struct interface *interface)
{
	return netns ? interface->netns == netns : !interface->away;
}

static bool is_here(const struct host_tree *tree, const struct interface *interface)
{
	return is_in(tree->here, interface);
}

static struct interface *interface_in(struct host_tree *tree, ino_t netns, const char *name)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (is_in(netns, &tree->interfaces[i]) && str_eq(tree->interfaces[i].name, name))
			return &tree->interfaces[i];
	return NULL;
}

static struct interface *interface_by_index(struct host_tree *tree, int index)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree->interfaces[i].index == index && is_here(tree, &tree->interfaces[i]))
			return &tree->interfaces[i];
	return NULL;
}

static int get_links(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct nlattr *attrs[IFLA_MAX + 1];
	struct interface *one;
	char name[IFNAMSIZ] = "";
	uint32_t filter = 0;

	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	(void)netlink_u32(attrs[IFLA_EXT_MASK], &filter);
	tree->counts.vf_lists += (filter & RTEXT_FILTER_VF) != 0;
	if (!(request->nlmsg_flags & NLM_F_DUMP)) {
		(void)netlink_str(attrs[IFLA_IFNAME], name, sizeof(name));
		one = header->ifi_index ? interface_by_index(tree, header->ifi_index)
					: interface_in(tree, tree->here, name);
		if (!one)
			return -ENODEV;
		add_link(tree, one, filter, answer);
		return 0;
	}
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (is_here(tree, &tree->interfaces[i]))
			add_link(tree, &tree->interfaces[i], 0, answer);
	return 0;
}

static int set_vf(struct pf *pf, const struct nlattr *list)
{
	struct nlattr *info[IFLA_VF_INFO + 1], *attrs[IFLA_VF_MAX + 1];
	struct ifla_vf_guid guid;
	uint32_t number;
	struct nlattr *set;

	netlink_parse_nested(list, info, IFLA_VF_INFO);
	netlink_parse_nested(info[IFLA_VF_INFO], attrs, IFLA_VF_MAX);
	set = attrs[IFLA_VF_MAC]            ? attrs[IFLA_VF_MAC]
	      : attrs[IFLA_VF_LINK_STATE]   ? attrs[IFLA_VF_LINK_STATE]
	      : attrs[IFLA_VF_IB_NODE_GUID] ? attrs[IFLA_VF_IB_NODE_GUID]
					    : attrs[IFLA_VF_IB_PORT_GUID];
	memcpy(&number, nla_data(set), sizeof(number));
	if ((int)number >= pf->count)
		return -EINVAL;
	if (pf->is.eswitch == TREE_ESWITCH_ELSEWHERE)
		return -EPERM;
	if (set == attrs[IFLA_VF_MAC]) {
		memcpy(pf->vfs[number].admin_mac, (const char *)nla_data(set) + 4, 6);
		return 0;
	}
	if (set == attrs[IFLA_VF_LINK_STATE]) {
		memcpy(&pf->vfs[number].link_state, (const char *)nla_data(set) + 4, 4);
		return 0;
	}
	if (!pf->is.is_ib)
		return -EOPNOTSUPP;
	memcpy(&guid, nla_data(set), sizeof(guid));
	*(set == attrs[IFLA_VF_IB_NODE_GUID] ? &pf->vfs[number].node_guid
					     : &pf->vfs[number].port_guid) = guid.guid;
	return 0;
}

/* Where a request sends an interface: here without a word of it; the root folder is the node's. */
static ino_t netns_of(const struct host_tree *tree, struct nlattr *const *attrs)
{
	struct stat root, st;
	uint32_t fd;

	if (!netlink_u32(attrs[IFLA_NET_NS_FD], &fd))
		return tree->here;
	assert(fstat(tree->root, &root) == 0 && fstat((int)fd, &st) == 0);
	return st.st_ino == root.st_ino ? 0 : st.st_ino;
}

/* Name and namespace (net/core/rtnetlink.c, do_setlink()). */
static int move_link(struct host_tree *tree, struct interface *interface,
		     struct nlattr *const *attrs)
{
	ino_t netns = netns_of(tree, attrs);
	char name[IFNAMSIZ];
	const struct interface *other;

	if (!netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "%s", interface->name);
	other = interface_in(tree, netns, name);
	if (other && other != interface)
		return -EEXIST;
	interface->up = interface->up && is_in(netns, interface);
	place_interface(tree, interface, netns, name);
	return 0;
}

static int set_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct interface *interface = interface_by_index(tree, header->ifi_index);
	struct nlattr *attrs[IFLA_MAX + 1];
	uint32_t master;

	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	if (!interface)
		return -ENODEV;
	/* What a bridge knows of its port is not kept. */
	if (header->ifi_family == AF_BRIDGE)
		return interface->master[0] ? 0 : -EINVAL;
	if (header->ifi_change & IFF_UP)
		interface->up = (header->ifi_flags & IFF_UP) && !interface->stays_down;
	if (netlink_u32(attrs[IFLA_MASTER], &master)) {
		const struct interface *bridge = interface_by_index(tree, (int)master);

		(void)snprintf(interface->master, sizeof(interface->master), "%s",
			       bridge ? bridge->name : "");
	}
	(void)netlink_u32(attrs[IFLA_MTU], &interface->mtu);
	if (attrs[IFLA_ADDRESS] && nla_len(attrs[IFLA_ADDRESS]) == sizeof(interface->mac))
		memcpy(interface->mac, nla_data(attrs[IFLA_ADDRESS]), sizeof(interface->mac));
	if (attrs[IFLA_NET_NS_FD] || attrs[IFLA_IFNAME])
		return move_link(tree, interface, attrs);
	if (attrs[IFLA_VFINFO_LIST]) {
		struct pf *pf = pf_by(tree, interface->parent);

		return pf ? set_vf(pf, attrs[IFLA_VFINFO_LIST]) : -EOPNOTSUPP;
	}
	return 0;
}

/* With the attributes of its request, in their namespace. NULL: its name is taken there. */
static struct interface *make_link(struct host_tree *tree, struct nlattr *const *attrs,
				   const struct nlattr *info)
{
	ino_t netns = netns_of(tree, attrs);
	char name[IFNAMSIZ] = "";
	struct interface *added;

	if (!netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)) || interface_in(tree, netns, name))
		return NULL;
	added = new_interface(tree, name);
	added->info_len = (size_t)nla_len(info);
	added->info = mem_dup(nla_data(info), added->info_len);
	(void)netlink_u32(attrs[IFLA_MTU], &added->mtu);
	added->away = true;
	place_interface(tree, added, netns, name);
	return added;
}

/* The other end of a pair; attrs: of the first, whose kind says that it is one. */
static int make_peer(struct host_tree *tree, int end, const struct nlattr *info)
{
	struct nlattr *kind[IFLA_INFO_MAX + 1], *data[VETH_INFO_PEER + 1], *attrs[IFLA_MAX + 1];
	const size_t skipped = NLMSG_ALIGN(sizeof(struct ifinfomsg));
	struct interface *peer;

	netlink_parse_nested(info, kind, IFLA_INFO_MAX);
	netlink_parse_nested(kind[IFLA_INFO_DATA], data, VETH_INFO_PEER);
	assert(data[VETH_INFO_PEER] && (size_t)nla_len(data[VETH_INFO_PEER]) >= skipped);
	(void)nla_parse(attrs, IFLA_MAX,
			(struct nlattr *)((char *)nla_data(data[VETH_INFO_PEER]) + skipped),
			nla_len(data[VETH_INFO_PEER]) - (int)skipped, NULL);
	peer = make_link(tree, attrs, info);
	if (!peer)
		return -EEXIST;
	peer->lower = end;
	interface_by_index(tree, end)->lower = peer->index;
	return 0;
}

/* Upon another interface, or by itself; in another namespace if the request says so. */
static int new_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct nlattr *attrs[IFLA_MAX + 1], *kind[IFLA_INFO_MAX + 1];
	char name[IFNAMSIZ];
	struct interface *added;
	uint32_t lower = 0;

	if (!(request->nlmsg_flags & NLM_F_CREATE))
		return set_link(tree, request);
	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	if (!attrs[IFLA_LINKINFO])
		return -EINVAL;
	if (netlink_u32(attrs[IFLA_LINK], &lower) && !interface_by_index(tree, (int)lower))
		return -ENODEV;
	added = make_link(tree, attrs, attrs[IFLA_LINKINFO]);
	if (!added)
		return -EEXIST;
	added->lower = (int)lower;
	added->up = (header->ifi_flags & IFF_UP) != 0;
	netlink_parse_nested(attrs[IFLA_LINKINFO], kind, IFLA_INFO_MAX);
	if (netlink_str(kind[IFLA_INFO_KIND], name, sizeof(name)) && str_eq(name, "veth"))
		return make_peer(tree, added->index, attrs[IFLA_LINKINFO]);
	return 0;
}

static int delete_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct interface *interface = interface_by_index(tree, header->ifi_index);
	int index = header->ifi_index;

	if (!interface)
		return -ENODEV;
	if (!interface->info)
		return -EOPNOTSUPP;
	remove_interface(tree, interface);
	/* With one end of a pair the other goes; what is upon an interface stays a link here. */
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree->interfaces[i].lower == index && tree->interfaces[i].info &&
		    memmem(tree->interfaces[i].info, tree->interfaces[i].info_len, "veth", 5)) {
			remove_interface(tree, &tree->interfaces[i]);
			break;
		}
	return 0;
}

static void get_routes(struct host_tree *tree, const struct nlmsghdr *request,
		       struct strbuf *answer)
{
	const struct rtmsg *asked = nlmsg_data(request);

	for (int i = 0; asked->rtm_family != AF_INET6 && !tree->here && i < tree->ip.n_routes;
	     i++) {
		struct rtmsg header = {
			.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST};
		struct nl_msg *msg = netlink_request(RTM_NEWROUTE, 0, &header, sizeof(header));

		netlink_put_u32(msg, RTA_OIF, (uint32_t)tree->ip.routes[i]);
		add_message(answer, msg);
	}
}

static void get_addresses(struct host_tree *tree, struct strbuf *answer)
{
	for (int i = 0; i < tree->ip.n_addresses; i++) {
		struct ifaddrmsg header = {.ifa_family = AF_INET,
					   .ifa_index = (uint32_t)tree->ip.addresses[i].index};
		struct nl_msg *msg = netlink_request(RTM_NEWADDR, 0, &header, sizeof(header));

		netlink_put(msg, IFA_LOCAL, tree->ip.addresses[i].octets, 4);
		add_message(answer, msg);
	}
}

static int route_request(struct host_tree *tree, const struct nlmsghdr *request,
			 struct strbuf *answer)
{
	switch (request->nlmsg_type) {
	case RTM_GETLINK:
		return get_links(tree, request, answer);
	case RTM_SETLINK:
		return fails_now(tree) ? -EIO : set_link(tree, request);
	case RTM_NEWLINK:
		return fails_now(tree) ? -EIO : new_link(tree, request);
	case RTM_DELLINK:
		return fails_now(tree) ? -EIO : delete_link(tree, request);
	case RTM_GETROUTE:
		get_routes(tree, request, answer);
		return 0;
	case RTM_GETADDR:
		get_addresses(tree, answer);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* ---- RDMA ------------------------------------------------------------------------------------ */

/* mlx5's rule for the node GUID of an Ethernet VF: zero without admin MAC. */
static uint64_t guid_of(const struct pf *pf, int number)
{
	const unsigned char *m = pf->vfs[number].admin_mac;
	const unsigned char octets[8] = {m[0], m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
	uint64_t guid = 0;

	if (pf->is.is_ib)
		return pf->vfs[number].node_guid;
	if (text_mac_is_zero(m))
		return 0;
	for (size_t i = 0; i < sizeof(octets); i++)
		guid = guid << 8 | octets[i];
	return guid;
}

static uint64_t contexts_of(const struct host_tree *tree, const char *device)
{
	for (int i = 0; i < tree->rdma.n_opened; i++)
		if (str_eq(tree->rdma.opened[i].name, device))
			return (uint64_t)tree->rdma.opened[i].contexts;
	return 0;
}

static void put_entry(struct nl_msg *msg, const char *name, uint64_t count)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	netlink_put_str(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	netlink_put(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, &count, sizeof(count));
	nla_nest_end(msg, entry);
}

/* The kernel itself has a few of each kind. */
static void add_resources(const struct host_tree *tree, struct strbuf *answer, uint32_t index,
			  const char *name)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_RES_GET), 0, NULL, 0);
	struct nlattr *summary;

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	summary = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_entry(msg, "pd", 1);
	put_entry(msg, "qp", 2);
	put_entry(msg, "ctx", contexts_of(tree, name));
	nla_nest_end(msg, summary);
	add_message(answer, msg);
}

/* Index 100 × PF + 1, and 100 × PF + 2 + VF. */
static void add_device(const struct host_tree *tree, int command, struct strbuf *answer,
		       uint32_t index, const char *name, bool is_ib, uint64_t guid)
{
	struct nl_msg *msg;

	if (command == RDMA_NLDEV_CMD_RES_GET) {
		add_resources(tree, answer, index, name);
		return;
	}
	msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_GET), 0, NULL, 0);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_PROTOCOL, is_ib ? "ib" : "roce");
	netlink_put(msg, RDMA_NLDEV_ATTR_NODE_GUID, &guid, sizeof(guid));
	add_message(answer, msg);
}

/* Is the RDMA device of this VF visible in this namespace? */
static bool sees_vf(struct host_tree *tree, const struct pf *pf, int number)
{
	const struct interface *interface = interface_at(tree, pf->vfs[number].address);
	auto_free char *path = str_printf("sys/class/infiniband/%sv%d", pf->is.rdma, number);
	struct stat st;

	if (interface && interface->netns && tree->rdma.mode == 0)
		return interface->netns == tree->here;
	return (!tree->here || tree->rdma.mode == 1) && fstatat(tree->root, path, &st, 0) == 0;
}

static void get_devices(struct host_tree *tree, int command, struct strbuf *answer)
{
	bool is_host = !tree->here || tree->rdma.mode == 1;

	if (tree->rdma.rxe && is_host)
		add_device(tree, command, answer, RXE_INDEX, "rxe0", false, 0x0200000000000009);
	for (size_t i = 0; i < tree->n_pfs; i++) {
		struct pf *pf = tree->pfs[i];

		if (!pf->is.rdma || !is_bound(pf))
			continue;
		if (is_host)
			add_device(tree, command, answer, (uint32_t)(1000 * i + 1), pf->is.rdma,
				   pf->is.is_ib, 0x0200000000000001);
		for (int n = 0; n < pf->count && !pf->is.vfs_lack_rdma; n++) {
			auto_free char *name = str_printf("%sv%d", pf->is.rdma, n);

			if (sees_vf(tree, pf, n))
				add_device(tree, command, answer,
					   (uint32_t)(1000 * i + 2) + (uint32_t)n, name,
					   pf->is.is_ib, guid_of(pf, n));
		}
	}
}

/* Those of mlx5 (drivers/infiniband/hw/mlx5/counters.c), of a VF and a PF. */
static const char *const hardware_counters[] = {
	"rx_write_requests",
	"rx_read_requests",
	"rx_atomic_requests",
	"rx_dct_connect",
	"out_of_buffer",
	"out_of_sequence",
	"duplicate_request",
	"rnr_nak_retry_err",
	"packet_seq_err",
	"implied_nak_seq_err",
	"local_ack_timeout_err",
	"resp_local_length_error",
	"resp_cqe_error",
	"req_cqe_error",
	"req_remote_invalid_request",
	"req_remote_access_errors",
	"resp_remote_access_errors",
	"resp_cqe_flush_error",
	"req_cqe_flush_error",
	"roce_adp_retrans",
	"roce_adp_retrans_to",
	"roce_slow_restart",
	"roce_slow_restart_cnps",
	"roce_slow_restart_trans",
	"rp_cnp_ignored",
	"rp_cnp_handled",
	"np_ecn_marked_roce_packets",
	"np_cnp_sent",
	"rx_icrc_encapsulated",
};

/* Is there an RDMA device with this index, of a driver that counts, in sight? */
static bool counts_rdma(struct host_tree *tree, uint32_t index)
{
	size_t i = index / 1000;
	int n = (int)(index % 1000) - 2;

	if (index == RXE_INDEX || i >= tree->n_pfs || !counts(tree->pfs[i]->is.driver) ||
	    !is_bound(tree->pfs[i]))
		return false;
	return n < 0 ? !tree->here || tree->rdma.mode == 1
		     : n < tree->pfs[i]->count && sees_vf(tree, tree->pfs[i], n);
}

static int get_counters(struct host_tree *tree, const struct nlmsghdr *request,
			struct strbuf *answer)
{
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1], *list;
	struct nl_msg *msg;
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	if (!netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index) ||
	    !attrs[RDMA_NLDEV_ATTR_PORT_INDEX] || !counts_rdma(tree, index))
		return -EINVAL;
	msg = nlmsg_alloc_size(16384);
	assert(nlmsg_put(msg, 0, 0, NLDEV(RDMA_NLDEV_CMD_STAT_GET), 0, 0));
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	list = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (size_t i = 0; i < ARRAY_LEN(hardware_counters); i++) {
		struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		uint64_t value =
			value_of(tree, hardware_counters[i], index, (uint64_t)index * 1000 + i);

		netlink_put_str(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
				hardware_counters[i]);
		netlink_put(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, &value, sizeof(value));
		nla_nest_end(msg, entry);
	}
	nla_nest_end(msg, list);
	add_message(answer, msg);
	return 0;
}

static void get_port(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_PORT_GET), 0, NULL, 0);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1];
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	(void)netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	netlink_put_u8(msg, RDMA_NLDEV_ATTR_PORT_STATE, 4);
	netlink_put_u8(msg, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, 5);
	if (index == RXE_INDEX) {
		netlink_put_u32(msg, RDMA_NLDEV_ATTR_NDEV_INDEX,
				(uint32_t)interface_by(tree, tree->rdma.rxe)->index);
		netlink_put_str(msg, RDMA_NLDEV_ATTR_NDEV_NAME, tree->rdma.rxe);
	}
	add_message(answer, msg);
}

static int set_rdma_mode(struct host_tree *tree, const struct nlmsghdr *request)
{
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1];
	uint8_t mode;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	if (!netlink_u8(attrs[RDMA_NLDEV_SYS_ATTR_NETNS_MODE], &mode) || mode > 1)
		return -EINVAL;
	if (mode == tree->rdma.mode)
		return 0;
	if (tree->namespaces)
		return -EBUSY;
	tree->rdma.mode = mode;
	return 0;
}

static void add_qp(struct nl_msg *msg, uint8_t type, const char *module)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	netlink_put_u8(msg, RDMA_NLDEV_ATTR_RES_TYPE, type);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_RES_KERN_NAME, module);
	nla_nest_end(msg, entry);
}

/* QPs 0 and 1 (IB_QPT_SMI, IB_QPT_GSI), the driver's own, and a connected one of IB_QPT_RC. */
static void get_qps(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_RES_QP_GET), 0, NULL, 0);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1], *list;
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	(void)netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index);
	list = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP);
	add_qp(msg, 0, "ib_core");
	add_qp(msg, 1, "ib_core");
	add_qp(msg, 4, "mlx5_ib");
	if (tree->rdma.module && index == tree->rdma.module_index)
		add_qp(msg, 2, tree->rdma.module);
	nla_nest_end(msg, list);
	add_message(answer, msg);
}

static int rdma_request(struct host_tree *tree, const struct nlmsghdr *request,
			struct strbuf *answer)
{
	struct nl_msg *msg;

	if (tree->rdma.is_away)
		return -EPROTONOSUPPORT;
	switch (request->nlmsg_type) {
	case NLDEV(RDMA_NLDEV_CMD_GET):
		get_devices(tree, RDMA_NLDEV_CMD_GET, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_RES_GET):
		get_devices(tree, RDMA_NLDEV_CMD_RES_GET, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_RES_QP_GET):
		get_qps(tree, request, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_PORT_GET):
		get_port(tree, request, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_STAT_GET):
		return get_counters(tree, request, answer);
	case NLDEV(RDMA_NLDEV_CMD_SYS_GET):
		msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_SYS_GET), 0, NULL, 0);
		netlink_put_u8(msg, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, tree->rdma.mode);
		add_message(answer, msg);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_SYS_SET):
		return fails_now(tree) ? -EIO : set_rdma_mode(tree, request);
	default:
		return -EINVAL;
	}
}

/* ---- devlink --------------------------------------------------------------------------------- */

static struct nl_msg *devlink_message(const struct pf *pf, uint8_t command)
{
	struct genlmsghdr header = {.cmd = command, .version = 1};
	struct nl_msg *msg = netlink_request(DEVLINK_FAMILY, 0, &header, sizeof(header));

	netlink_put_str(msg, DEVLINK_ATTR_BUS_NAME, "pci");
	netlink_put_str(msg, DEVLINK_ATTR_DEV_NAME, pf->is.address);
	return msg;
}

static void add_reporters(const struct pf *pf, struct strbuf *answer)
{
	const char *names[] = {"fw", pf->broken};

	for (size_t i = 0; i < ARRAY_LEN(names) && names[i]; i++) {
		struct nl_msg *msg = devlink_message(pf, DEVLINK_CMD_HEALTH_REPORTER_GET);
		struct nlattr *nest = nla_nest_start(msg, DEVLINK_ATTR_HEALTH_REPORTER);

		netlink_put_str(msg, DEVLINK_ATTR_HEALTH_REPORTER_NAME, names[i]);
		netlink_put_u8(msg, DEVLINK_ATTR_HEALTH_REPORTER_STATE, (uint8_t)i);
		nla_nest_end(msg, nest);
		add_message(answer, msg);
	}
}

void host_tree_break(struct host_tree *tree, const char *address, const char *reporter)
{
	pf_by(tree, address)->broken = reporter;
}

void host_tree_offer_firmware(struct host_tree *tree, const char *address,
			      const struct tree_firmware *firmware)
{
	pf_by(tree, address)->firmware = *firmware;
}

int host_tree_resets(const struct host_tree *tree)
{
	return tree->counts.resets;
}

static int get_setting(const struct pf *pf, bool is_switch, const char *name, struct strbuf *answer)
{
	struct nl_msg *msg = devlink_message(pf, DEVLINK_CMD_PARAM_GET);
	struct nlattr *param = nla_nest_start(msg, DEVLINK_ATTR_PARAM), *list, *value;

	netlink_put_str(msg, DEVLINK_ATTR_PARAM_NAME, name);
	netlink_put_u8(msg, DEVLINK_ATTR_PARAM_TYPE, is_switch ? 6 : 3);
	list = nla_nest_start(msg, DEVLINK_ATTR_PARAM_VALUES_LIST);
	value = nla_nest_start(msg, DEVLINK_ATTR_PARAM_VALUE);
	if (!is_switch)
		netlink_put_u32(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, pf->firmware.count);
	else if (pf->firmware.is_on)
		netlink_put(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, NULL, 0);
	netlink_put_u8(msg, DEVLINK_ATTR_PARAM_VALUE_CMODE, DEVLINK_PARAM_CMODE_PERMANENT);
	nla_nest_end(msg, value);
	nla_nest_end(msg, list);
	nla_nest_end(msg, param);
	add_message(answer, msg);
	return 0;
}

static int setting_request(struct host_tree *tree, struct pf *pf, bool set, struct nlattr **attrs,
			   struct strbuf *answer)
{
	char name[32] = "";
	bool is_switch;

	(void)netlink_str(attrs[DEVLINK_ATTR_PARAM_NAME], name, sizeof(name));
	is_switch = strcmp(name, "enable_sriov") == 0;
	if (is_switch ? !pf->firmware.has_switch
		      : strcmp(name, "total_vfs") != 0 || !pf->firmware.has_count)
		return -EINVAL;
	if (!set)
		return get_setting(pf, is_switch, name, answer);
	if (fails_now(tree))
		return -EIO;
	if (is_switch)
		pf->firmware.is_on = attrs[DEVLINK_ATTR_PARAM_VALUE_DATA] != NULL;
	else
		(void)netlink_u32(attrs[DEVLINK_ATTR_PARAM_VALUE_DATA], &pf->firmware.count);
	return 0;
}

static int reset_card(struct host_tree *tree, struct pf *pf)
{
	auto_free char *path = NULL, *text = NULL;

	if (!pf->firmware.can_reset)
		return -EOPNOTSUPP;
	if (fails_now(tree))
		return -EIO;
	tree->counts.resets++;
	if (pf->firmware.needs_scan)
		return 0;
	path = str_printf("sys/bus/pci/devices/%s/sriov_totalvfs", pf->is.address);
	text = str_printf("%u\n", pf->firmware.count);
	host_tree_file(tree, path, text);
	return 0;
}

/* Whether its driver answers a question about the switch, or sets its mode. */
static int eswitch_code(const struct pf *pf, bool set)
{
	switch (pf->is.eswitch) {
	case TREE_ESWITCH_ANY:
		return 0;
	case TREE_ESWITCH_WITHOUT_VFS:
		return set && pf->count ? -EOPNOTSUPP : 0;
	case TREE_ESWITCH_WITH_VFS:
		return pf->count ? 0 : -EOPNOTSUPP;
	case TREE_ESWITCH_ELSEWHERE:
		return -EPERM;
	case TREE_ESWITCH_NONE:
		return -EOPNOTSUPP;
	}
	return 0;
}

static int devlink_request(struct host_tree *tree, const struct nlmsghdr *request,
			   struct strbuf *answer)
{
	const struct genlmsghdr *header = nlmsg_data(request);
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1];
	char address[24] = "";
	struct nl_msg *msg;
	struct pf *pf;
	int code;

	(void)netlink_parse(request, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX);
	if (header->cmd == DEVLINK_CMD_GET) {
		for (size_t i = 0; i < tree->n_pfs; i++)
			if (tree->pfs[i]->is.has_devlink && is_bound(tree->pfs[i]))
				add_message(answer, devlink_message(tree->pfs[i], DEVLINK_CMD_GET));
		return 0;
	}
	if (header->cmd == DEVLINK_CMD_HEALTH_REPORTER_GET) {
		for (size_t i = 0; i < tree->n_pfs; i++)
			if (tree->pfs[i]->is.has_devlink && is_bound(tree->pfs[i]))
				add_reporters(tree->pfs[i], answer);
		return 0;
	}
	(void)netlink_str(attrs[DEVLINK_ATTR_DEV_NAME], address, sizeof(address));
	pf = pf_by(tree, address);
	if (!pf || !pf->is.has_devlink || !is_bound(pf))
		return -ENODEV;
	if (header->cmd == DEVLINK_CMD_ESWITCH_SET) {
		if (fails_now(tree))
			return -EIO;
		code = eswitch_code(pf, true);
		if (code < 0)
			return code;
		(void)netlink_u16(attrs[DEVLINK_ATTR_ESWITCH_MODE], &pf->eswitch);
		return 0;
	}
	if (header->cmd == DEVLINK_CMD_PARAM_GET || header->cmd == DEVLINK_CMD_PARAM_SET)
		return setting_request(tree, pf, header->cmd == DEVLINK_CMD_PARAM_SET, attrs,
				       answer);
	if (header->cmd == DEVLINK_CMD_RELOAD)
		return reset_card(tree, pf);
	code = eswitch_code(pf, false);
	if (code < 0)
		return code;
	msg = devlink_message(pf, DEVLINK_CMD_ESWITCH_GET);
	netlink_put_u16(msg, DEVLINK_ATTR_ESWITCH_MODE, pf->eswitch);
	add_message(answer, msg);
	return 0;
}

static int generic_request(struct host_tree *tree, const struct nlmsghdr *request,
			   struct strbuf *answer)
{
	struct genlmsghdr header = {.cmd = CTRL_CMD_NEWFAMILY};
	struct nl_msg *msg;

	if (request->nlmsg_type == DEVLINK_FAMILY)
		return devlink_request(tree, request, answer);
	msg = netlink_request(GENL_ID_CTRL, 0, &header, sizeof(header));
	netlink_put_u16(msg, CTRL_ATTR_FAMILY_ID, DEVLINK_FAMILY);
	add_message(answer, msg);
	return 0;
}

static int netlink_request_of(struct host_tree *tree, int protocol, const struct nlmsghdr *request,
			      struct strbuf *data)
{
	switch (protocol) {
	case NETLINK_ROUTE:
		return route_request(tree, request, data);
	case NETLINK_RDMA:
		return rdma_request(tree, request, data);
	default:
		return generic_request(tree, request, data);
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
			values->data[i] = value_of(tree, statistics[i], (unsigned)interface->index,
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

static const char *driver_of(struct host_tree *tree, const char *address)
{
	struct pf *pf = pf_by(tree, address);
	int number;

	if (!pf && !vf_by(tree, address, &pf, &number))
		return NULL;
	return pf->is.driver;
}

static int door_ethtool(void *ctx, const char *name, void *command, struct err *err)
{
	struct host_tree *tree = ctx;
	int code = -ENODEV;

	for (size_t i = 0; i < tree->n_interfaces; i++) {
		const struct interface *interface = &tree->interfaces[i];

		if (!is_here(tree, interface) || !str_eq(interface->name, name))
			continue;
		code = counts(driver_of(tree, interface->parent))
			       ? get_statistics(tree, interface, command)
			       : -EOPNOTSUPP;
	}
	if (code == 0)
		return 0;
	errno = -code;
	return err_sys(err, "EthtoolRefused", "ask %s", name);
}

/* A namespace is a file in run/netns; ours is none of them. */
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
	need(mkdtemp(tree->folder) != NULL, tree->folder);
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
	host_tree_file(tree, "sys/bus/pci/drivers/vfio-pci/x", "");
	host_tree_file(tree, "sys/bus/pci/drivers/mlx5_core/x", "");
	host_tree_file(tree, "sys/bus/pci/drivers/igbvf/x", "");
	add_interface(tree, "lo", NULL);
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

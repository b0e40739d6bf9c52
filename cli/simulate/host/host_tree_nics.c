// SPDX-License-Identifier: Apache-2.0
/*
 * Interfaces, PFs and VFs, and what is wrong with them: each change shows in sysfs as the kernel
 * has it. The netlink files and the doors read and change what is kept here.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/devlink.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/mem.h"
#include "nodeagent/model/text.h"

/* ---- interfaces ------------------------------------------------------------------------------ */

struct interface *tree_interface_by(struct host_tree *tree, const char *name)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (str_eq(tree->interfaces[i].name, name))
			return &tree->interfaces[i];
	return NULL;
}

struct interface *tree_interface_at(struct host_tree *tree, const char *parent)
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
		tree_pci_file(tree, interface->parent, folder, "");
}

static void hide_interface(struct host_tree *tree, const struct interface *interface)
{
	auto_free char *path = str_printf("sys/class/net/%s", interface->name);
	auto_free char *folder = str_printf("net/%s", interface->name);

	host_tree_remove(tree, path);
	if (interface->parent[0])
		tree_pci_remove(tree, interface->parent, folder);
}

/* It goes to another namespace, or gets another name. */
void tree_place_interface(struct host_tree *tree, struct interface *interface, ino_t netns,
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

struct interface *tree_new_interface(struct host_tree *tree, const char *name)
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

struct interface *tree_add_interface(struct host_tree *tree, const char *name, const char *parent)
{
	struct interface *added = tree_new_interface(tree, name);

	(void)snprintf(added->parent, sizeof(added->parent), "%s", parent ? parent : "");
	show_interface(tree, added);
	return added;
}

void tree_remove_interface(struct host_tree *tree, struct interface *interface)
{
	if (!interface->away || interface->parent[0])
		hide_interface(tree, interface);
	if (interface->parent[0])
		tree_pci_remove(tree, interface->parent, "net");
	mem_free(interface->info);
	*interface = tree->interfaces[--tree->n_interfaces];
}

void host_tree_keep_down(struct host_tree *tree, const char *interface)
{
	struct interface *kept = tree_interface_by(tree, interface);

	assert(kept);
	kept->stays_down = true;
	kept->up = false;
}

void host_tree_add_interface(struct host_tree *tree, const char *name, const char *kind)
{
	struct interface *added = tree_add_interface(tree, name, NULL);

	(void)snprintf(added->kind, sizeof(added->kind), "%s", kind ? kind : "");
	added->up = true;
}

void host_tree_add_default_route(struct host_tree *tree, const char *interface)
{
	tree->ip.routes[tree->ip.n_routes++] = tree_interface_by(tree, interface)->index;
}

void host_tree_add_address(struct host_tree *tree, const char *interface, const char *ipv4)
{
	tree->ip.addresses[tree->ip.n_addresses].index = tree_interface_by(tree, interface)->index;
	assert(inet_pton(AF_INET, ipv4, tree->ip.addresses[tree->ip.n_addresses++].octets) == 1);
}

void host_tree_move_away(struct host_tree *tree, const char *vf)
{
	struct interface *interface = tree_interface_at(tree, vf);
	auto_free char *path = NULL;

	assert(interface);
	path = str_printf("net/%s", interface->name);
	interface->away = true;
	tree_pci_remove(tree, vf, path);
}

/* As the kernel shows it from the host: the verbs device is in sight, the RDMA device is not. */
static void move_rdma(struct host_tree *tree, const char *vf, const char *name)
{
	auto_free char *seen = str_printf("infiniband/%s", name);
	auto_free char *class = str_printf("sys/class/infiniband/%s", name);
	auto_free char *text = str_printf("%s\n", name);

	tree_pci_remove(tree, vf, seen);
	host_tree_remove(tree, class);
	tree_pci_file(tree, vf, "infiniband_verbs/uverbs7/ibdev", text);
}

void host_tree_move_to(struct host_tree *tree, const char *vf, const char *netns, const char *name)
{
	struct interface *interface = tree_interface_at(tree, vf);
	auto_free char *path = str_printf("run/netns/%s", netns);
	struct pf *pf = NULL;
	struct stat st;
	int number = 0;

	assert(interface && tree_vf_by(tree, vf, &pf, &number));
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
	struct interface *interface = tree_interface_at(tree, vf);
	auto_free char *path = NULL;

	assert(interface);
	path = str_printf("net/%s/x", interface->name);
	interface->away = false;
	tree_pci_file(tree, vf, path, "");
}

/* ---- PFs and VFs ----------------------------------------------------------------------------- */

static bool is_there(const struct pf *pf)
{
	return !pf->faults[TREE_FAULT_GONE];
}

/* Its driver works: it has interface, RDMA device and devlink. */
bool tree_is_bound(const struct pf *pf)
{
	return pf->is.driver && is_there(pf) && !pf->faults[TREE_FAULT_DRIVER];
}

/* NULL: no PF has this address, or its NIC was pulled out of the slot. */
struct pf *tree_pf_by(struct host_tree *tree, const char *address)
{
	for (size_t i = 0; i < tree->n_pfs; i++)
		if (str_eq(tree->pfs[i]->is.address, address))
			return is_there(tree->pfs[i]) ? tree->pfs[i] : NULL;
	return NULL;
}

struct vf *tree_vf_by(struct host_tree *tree, const char *address, struct pf **ret_pf, int *ret)
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

const char *tree_driver_of(struct host_tree *tree, const char *address)
{
	struct pf *pf = tree_pf_by(tree, address);
	int number;

	if (!pf && !tree_vf_by(tree, address, &pf, &number))
		return NULL;
	return pf->is.driver;
}

static void put_count(struct host_tree *tree, const struct pf *pf)
{
	auto_free char *text = str_printf("%d\n", pf->count);

	tree_pci_file(tree, pf->is.address, "sriov_numvfs", text);
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
	tree_pci_remove(tree, address, "infiniband");
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

	tree_pci_file(tree, address, path, "");
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
		tree_pci_link(tree, is->address, "driver", driver);
	if (is->netdev) {
		struct interface *added = tree_add_interface(tree, is->netdev, is->address);

		added->type = is->is_ib ? ARPHRD_INFINIBAND : ARPHRD_ETHER;
		added->up = is->is_up;
		added->no_carrier = pf->faults[TREE_FAULT_LINK];
		(void)snprintf(added->master, sizeof(added->master), "%s",
			       is->master ? is->master : "");
		put_speed(tree, pf);
	}
	if (is->rdma)
		add_rdma(tree, is->address, is->rdma);
	if (is->has_vendor_files)
		tree_show_vendor_settings(tree, pf);
}

static void show_pf(struct host_tree *tree, struct pf *pf)
{
	const struct tree_pf *is = &pf->is;
	auto_free char *total = str_printf("%d\n", is->total);
	auto_free char *vendor = str_printf("0x%s\n", is->vendor);
	auto_free char *device = str_printf("0x%s\n", is->device);

	tree_place_function(tree, is->address, is->path);
	tree_pci_file(tree, is->address, "class", is->is_ib ? "0x020700\n" : "0x020000\n");
	tree_pci_file(tree, is->address, "vendor", vendor);
	tree_pci_file(tree, is->address, "device", device);
	tree_put_numa(tree, is->address, is->numa);
	if (!is->total)
		return;
	tree_pci_file(tree, is->address, "sriov_totalvfs", total);
	tree_pci_file(tree, is->address, "sriov_drivers_autoprobe", "1\n");
	tree_pci_file(tree, is->address, "sriov_vf_device", is->vf_device);
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
	tree_start_settings(tree, pf);
}

/* A VF's driver starts: its interface and RDMA device appear, with what the PF has given it. */
int tree_bind_vf(struct host_tree *tree, struct pf *pf, int number, const char *driver)
{
	struct vf *vf = &pf->vfs[number];
	auto_free char *target = str_printf("../../drivers/%s", driver);
	auto_free char *folder = str_printf("sys/bus/pci/drivers/%s", driver);
	auto_free char *name = str_printf("%.9sv%d", pf->is.netdev, number);
	auto_free char *rdma = str_printf("%sv%d", pf->is.rdma ? pf->is.rdma : "", number);
	struct stat st;

	if (fstatat(tree->root, folder, &st, 0) < 0)
		return -ENODEV;
	tree_pci_link(tree, vf->address, "driver", target);
	if (!str_eq(driver, pf->is.vf_driver))
		return 0;
	if (!tree_interface_at(tree, vf->address)) {
		struct interface *added = tree_add_interface(tree, name, vf->address);

		added->type = pf->is.is_ib ? ARPHRD_INFINIBAND : ARPHRD_ETHER;
		if (!text_mac_is_zero(vf->admin_mac))
			memcpy(added->mac, vf->admin_mac, 6);
	}
	if (pf->is.rdma && !pf->is.vfs_lack_rdma)
		add_rdma(tree, vf->address, rdma);
	if (pf->is.has_vendor_files)
		tree_show_traffic_class(tree, rdma);
	return 0;
}

void tree_unbind_vf(struct host_tree *tree, struct pf *pf, int number)
{
	struct interface *interface = tree_interface_at(tree, pf->vfs[number].address);
	auto_free char *rdma = str_printf("%sv%d", pf->is.rdma ? pf->is.rdma : "-", number);

	if (interface)
		tree_remove_interface(tree, interface);
	remove_rdma(tree, pf->vfs[number].address, rdma);
	tree_pci_remove(tree, pf->vfs[number].address, "driver");
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
	tree_place_function(tree, vf->address, pf->is.path);
	tree_pci_file(tree, vf->address, "class", pf->is.is_ib ? "0x020700\n" : "0x020000\n");
	tree_pci_file(tree, vf->address, "vendor", vendor);
	tree_pci_file(tree, vf->address, "device", device);
	tree_pci_file(tree, vf->address, "driver_override", "(null)\n");
	tree_put_numa(tree, vf->address, pf->is.numa);
	tree_pci_link(tree, vf->address, "iommu_group", "../../../kernel/iommu_groups/7");
	tree_pci_link(tree, vf->address, "physfn", to_pf);
	tree_pci_link(tree, pf->is.address, link, to_vf);
	if (pf->autoprobe)
		(void)tree_bind_vf(tree, pf, number, pf->is.vf_driver);
}

static void remove_vfs(struct host_tree *tree, struct pf *pf)
{
	for (int i = 0; i < pf->count; i++) {
		auto_free char *link = str_printf("virtfn%d", i);

		tree_unbind_vf(tree, pf, i);
		tree_pci_remove(tree, pf->is.address, link);
		tree_remove_function(tree, pf->vfs[i].address, pf->is.path);
	}
	pf->count = 0;
	if (pf->is.eswitch == TREE_ESWITCH_WITH_VFS)
		pf->eswitch = DEVLINK_ESWITCH_MODE_LEGACY;
}

static bool is_down(struct host_tree *tree, const struct pf *pf)
{
	const struct interface *interface = tree_interface_at(tree, pf->is.address);

	return !interface || !interface->up;
}

/* In the order of the kernel's sriov_numvfs_store(), drivers/pci/pci-sysfs.c or iov.c. */
int tree_write_count(struct host_tree *tree, struct pf *pf, const char *text)
{
	int64_t wanted;

	if (!str_to_int(text, 0, 65535, &wanted))
		return -EINVAL;
	if (wanted > pf->is.total)
		return -ERANGE;
	if (wanted == pf->count)
		return 0;
	if (!tree_is_bound(pf))
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
	struct interface *interface = tree_interface_at(tree, pf->is.address);

	remove_vfs(tree, pf);
	if (pf->is.total)
		put_count(tree, pf);
	if (interface)
		tree_remove_interface(tree, interface);
	remove_rdma(tree, pf->is.address, pf->is.rdma ? pf->is.rdma : "-");
	tree_pci_remove(tree, pf->is.address, "driver");
}

static void set_carrier(struct host_tree *tree, const struct pf *pf, bool has_carrier)
{
	struct interface *interface = tree_interface_at(tree, pf->is.address);

	tree->has_carriers = true;
	if (!interface)
		return;
	interface->no_carrier = !has_carrier;
	put_speed(tree, pf);
}

/* From `bound` and `there` before to what the faults say now. */
static void follow_faults(struct host_tree *tree, struct pf *pf, bool bound, bool there)
{
	if (bound && !tree_is_bound(pf))
		unbind_pf(tree, pf);
	if (there && !is_there(pf))
		tree_remove_function(tree, pf->is.address, pf->is.path);
	if (!there && is_there(pf))
		show_pf(tree, pf);
	if (!bound && tree_is_bound(pf))
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
	bound = tree_is_bound(pf);
	there = is_there(pf);
	pf->faults[fault] = is_broken;
	if (fault == TREE_FAULT_LINK)
		set_carrier(tree, pf, !is_broken);
	else
		follow_faults(tree, pf, bound, there);
	return true;
}

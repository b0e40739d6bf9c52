// SPDX-License-Identifier: Apache-2.0
/* What the files host_tree*.c share. Functions without a comment do what their name says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/map.h"
#include "lib/base/str.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netlink/dcb.h"

struct nl_msg;
struct nlmsghdr;

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

struct tree_settings {
	bool has_dcb;
	struct dcb dcb;
	struct ethtool_pair pauses, rings, channels;
};

struct pf {
	struct tree_pf is;
	struct tree_settings settings;
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
	const char *rxe;       /* interface below a Soft-RoCE device; NULL: of another driver */
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
	int n_gpus;
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

/* ---- host_tree_files.c ----------------------------------------------------------------------- */

/* A disk that is full or gone: nothing that is played here would be true from now on. */
void tree_need(bool done, const char *path);
void tree_pci_file(struct host_tree *tree, const char *address, const char *name, const char *text);
void tree_pci_link(struct host_tree *tree, const char *address, const char *name,
		   const char *target);
void tree_pci_remove(struct host_tree *tree, const char *address, const char *name);
/* The folder of a function below its bridges, and the link to it. path NULL: neither. */
void tree_place_function(struct host_tree *tree, const char *address, const char *path);
void tree_remove_function(struct host_tree *tree, const char *address, const char *path);
void tree_put_numa(struct host_tree *tree, const char *address, int numa);

/* ---- host_tree_drivers.c --------------------------------------------------------------------- */

/* Where the capability PCI Express is in our configuration spaces. */
enum { TREE_EXPRESS_AT = 0x60 };
/* What a driver has when the host starts; with the configuration space. */
void tree_start_settings(struct host_tree *tree, struct pf *pf);
/* The files of NVIDIA's own driver; of an RDMA device. */
void tree_show_traffic_class(struct host_tree *tree, const char *device);
void tree_show_vendor_settings(struct host_tree *tree, const struct pf *pf);

/* ---- host_tree_nics.c ------------------------------------------------------------------------ */

struct interface *tree_interface_by(struct host_tree *tree, const char *name);
/* The interface of a PCI function; NULL: the function has no interface. */
struct interface *tree_interface_at(struct host_tree *tree, const char *parent);
/* It goes to another namespace, or gets another name. */
void tree_place_interface(struct host_tree *tree, struct interface *interface, ino_t netns,
			  const char *name);
struct interface *tree_new_interface(struct host_tree *tree, const char *name);
struct interface *tree_add_interface(struct host_tree *tree, const char *name, const char *parent);
void tree_remove_interface(struct host_tree *tree, struct interface *interface);
/* Its driver works: it has interface, RDMA device and devlink. */
bool tree_is_bound(const struct pf *pf);
/* NULL: no PF has this address, or its NIC was pulled out of the slot. */
struct pf *tree_pf_by(struct host_tree *tree, const char *address);
struct vf *tree_vf_by(struct host_tree *tree, const char *address, struct pf **ret_pf, int *ret);
/* Of the PF or VF at this address; NULL: there is none. */
const char *tree_driver_of(struct host_tree *tree, const char *address);
/* A VF's driver starts: its interface and RDMA device appear, with what the PF has given it. */
int tree_bind_vf(struct host_tree *tree, struct pf *pf, int number, const char *driver);
void tree_unbind_vf(struct host_tree *tree, struct pf *pf, int number);
/* In the order of the kernel's sriov_numvfs_store(), drivers/pci/pci-sysfs.c or iov.c. */
int tree_write_count(struct host_tree *tree, struct pf *pf, const char *text);

/* ---- host_tree_netlink.c --------------------------------------------------------------------- */

/* Counts a change; true: host_tree_fail_at() is about this one. */
bool tree_fails_now(struct host_tree *tree);
/* Takes msg. */
void tree_add_message(struct strbuf *answer, struct nl_msg *msg);
/* Whether PFs and VFs of this driver have counters. */
bool tree_counts(const char *driver);
/* Of a counter: `value`, or what a test put in its place. */
uint64_t tree_value_of(const struct host_tree *tree, const char *counter, unsigned int index,
		       uint64_t value);
/* In the namespace in which the tree is now. */
bool tree_is_here(const struct host_tree *tree, const struct interface *interface);
/* 0 or a negative errno, as the next two; answers are appended. */
int tree_route_request(struct host_tree *tree, const struct nlmsghdr *request,
		       struct strbuf *answer);

/* ---- host_tree_rdma.c ------------------------------------------------------------------------ */

int tree_rdma_request(struct host_tree *tree, const struct nlmsghdr *request,
		      struct strbuf *answer);

/* ---- host_tree_ethtool.c --------------------------------------------------------------------- */

#define TREE_ETHTOOL_FAMILY 0x1d
int tree_ethtool_request(struct host_tree *tree, const struct nlmsghdr *request,
			 struct strbuf *answer);

/* ---- host_tree_settings.c -------------------------------------------------------------------- */

/* A file of configfs, or one of those. */
int tree_write_setting(struct host_tree *tree, const char *path, const char *text);
/* sys/kernel/config/rdma_cm/<RDMA device> */
int tree_make_cm_folder(struct host_tree *tree, const char *path);
void tree_remove_cm_folder(struct host_tree *tree, const char *path);
int tree_write_config(struct host_tree *tree, const char *path, size_t at, const void *data,
		      size_t len);
/* Pauses, rings and channels of ethtool: 1; 0: it is another request. */
int tree_settings_request(struct host_tree *tree, struct pf *pf, const struct nlmsghdr *request,
			  struct strbuf *answer);
int tree_dcb_request(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer);

/* ---- host_tree_devlink.c --------------------------------------------------------------------- */

int tree_generic_request(struct host_tree *tree, const struct nlmsghdr *request,
			 struct strbuf *answer);

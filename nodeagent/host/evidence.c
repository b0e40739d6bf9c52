// SPDX-License-Identifier: Apache-2.0
/*
 * Each question goes from cheap to costly: notes and files of the one device, interfaces, counts of
 * the kernel, then all processes; what was read serves the next question on the same evidence.
 * Steps ask right before they write (worker/execute_*.c), the observed document for its holders.
 */
#include "nodeagent/host/evidence.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/holders.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/netlink/rtnl_route.h"

#define UNKNOWN_USER "nobody knows whom"

/* As many as are open at once while a device is looked at. */
enum { DESCRIPTORS_MIN = 16 };

struct evidence {
	struct host *host;
	bool has_interfaces, has_contexts, has_rdma, has_ip;
	struct rtnl_interfaces interfaces;
	struct rdma_devices rdma;
	struct rtnl_indices addressed, routed; /* what the node uses by IP */
	json_t *contexts;  /* of rdma_contexts(); NULL: the kernel does not say */
	json_t *uppers;    /* of holders_namespaces() */
	json_t *files;     /* of holders_files() */
	char unknown[256]; /* why there are no files */
	bool is_unknown;   /* the last answer: evidence_is_unknown() */
};

struct evidence *evidence_new(struct host *host)
{
	struct evidence *evidence = mem_new(struct evidence);

	assert(host);
	evidence->host = host;
	return evidence;
}

void evidence_free(struct evidence *evidence)
{
	if (!evidence)
		return;
	rtnl_interfaces_done(&evidence->interfaces);
	rdma_devices_done(&evidence->rdma);
	rtnl_indices_done(&evidence->addressed);
	rtnl_indices_done(&evidence->routed);
	json_decref(evidence->contexts);
	json_decref(evidence->uppers);
	json_decref(evidence->files);
	mem_free(evidence);
}

bool evidence_is_unknown(const struct evidence *evidence)
{
	return evidence->is_unknown;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The answer, new, when it cannot be seen whether a function is in use. */
static char *unknown_user(struct evidence *evidence, const char *why)
{
	evidence->is_unknown = true;
	return str_printf(UNKNOWN_USER " (%s)", why);
}

/*
 * Small files are read as "there or not there", which is "not there" for a process that is out of
 * descriptors: a driver, an interface, a note. So it has to have some before it looks.
 */
static int need_descriptors(struct err *err)
{
	int fds[DESCRIPTORS_MIN], n = 0, failed;

	while (n < DESCRIPTORS_MIN && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	failed = errno;
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	errno = failed;
	return n == DESCRIPTORS_MIN ? 0 : err_sys(err, "HostUnreadable", "look who uses a device");
}

static int need_interfaces(struct evidence *evidence, struct err *err)
{
	if (evidence->has_interfaces)
		return 0;
	if (need_descriptors(err) < 0 ||
	    rtnl_list(evidence->host->netlink, &evidence->interfaces, err) < 0)
		return -1;
	evidence->has_interfaces = true;
	return 0;
}

static const char *who_has_file(struct evidence *evidence, const char *path)
{
	struct err err = {0};

	if (!evidence->files)
		evidence->files = holders_files(evidence->host, &err);
	if (evidence->files)
		return json_str_at(evidence->files, path);
	evidence->is_unknown = true;
	(void)snprintf(evidence->unknown, sizeof(evidence->unknown), UNKNOWN_USER " (%.200s)",
		       err.text);
	return evidence->unknown;
}

static int need_ip(struct evidence *evidence, struct err *err)
{
	if (evidence->has_ip)
		return 0;
	if (rtnl_with_any_address(evidence->host->netlink, &evidence->addressed, err) < 0 ||
	    rtnl_with_routes(evidence->host->netlink, &evidence->routed, err) < 0)
		return -1;
	evidence->has_ip = true;
	return 0;
}

/* A kernel without the subsystem has no devices. */
static int need_rdma(struct evidence *evidence, struct err *err)
{
	struct err why = {0};

	if (!evidence->has_rdma && rdma_list(evidence->host, &evidence->rdma, &why) < 0 &&
	    why.sys != EPROTONOSUPPORT) {
		*err = why;
		return -1;
	}
	evidence->has_rdma = true;
	return 0;
}

/* "the kernel (nvme_rdma)", new; NULL: nothing in the kernel uses the RDMA device of that name. */
static char *kernel_user(struct evidence *evidence, const char *name)
{
	auto_free char *module = NULL;
	struct err err = {0};

	if (need_rdma(evidence, &err) < 0)
		return unknown_user(evidence, err.text);
	for (size_t i = 0; !module && i < evidence->rdma.n; i++) {
		if (!str_eq(evidence->rdma.items[i].name, name))
			continue;
		module = rdma_kernel_user(evidence->host, evidence->rdma.items[i].index, &err);
		if (err.class)
			return unknown_user(evidence, err.text);
	}
	return module ? str_printf("the kernel (%s on %s; rdma resource show qp)", module, name)
		      : NULL;
}

/* Files of verbs of a device that has no function, "uverbs9", new. */
static json_t *verbs_files(struct host *host, const char *device)
{
	json_auto_t *names = sysfs_list(host, "sys/class/infiniband_verbs");
	json_t *files = json_array(), *name;
	size_t i;

	json_array_foreach (names, i, name) {
		auto_free char *path =
			str_printf("sys/class/infiniband_verbs/%s/ibdev", json_string_value(name));
		struct sysfs_text owner;

		if (sysfs_read(host, path, &owner) && str_eq(owner.text, device))
			json_array_append(files, name);
	}
	return files;
}

/* Of the processes that have one of these files below /dev/infiniband open. NULL: there is none. */
static const char *who_has_verbs(struct evidence *evidence, const json_t *files)
{
	const json_t *file;
	size_t i;

	json_array_foreach (files, i, file) {
		auto_free char *path = str_printf("/dev/infiniband/%s", json_string_value(file));
		const char *who = who_has_file(evidence, path);

		if (who)
			return who;
	}
	return NULL;
}

/*
 * A device of software (rxe, siw) lies on an interface and goes with it. Its drivers cannot take it
 * from a process that has its file open, even without a context: a process that removes it sleeps
 * in the kernel until the file is closed (ib_uverbs_remove_one(),
 * drivers/infiniband/core/uverbs_main.c). So files count here.
 */
static char *soft_verbs_user(struct evidence *evidence, const char *address)
{
	json_auto_t *interfaces = pci_netdevs(evidence->host, address);
	struct err err = {0};

	if (json_array_size(interfaces) == 0)
		return NULL;
	if (need_rdma(evidence, &err) < 0)
		return unknown_user(evidence, err.text);
	for (size_t i = 0; i < evidence->rdma.n; i++) {
		const struct rdma_device *device = &evidence->rdma.items[i];
		json_auto_t *files = NULL;
		char *who_in_kernel;
		const char *who;

		if (device->n_ports == 0 || !device->ports[0].ndev_index ||
		    !json_list_has(interfaces, device->ports[0].ndev_name))
			continue;
		files = verbs_files(evidence->host, device->name);
		who = who_has_verbs(evidence, files);
		if (who)
			return str_dup(who);
		who_in_kernel = kernel_user(evidence, device->name);
		if (who_in_kernel)
			return who_in_kernel;
	}
	return NULL;
}

char *evidence_verbs_user(struct evidence *evidence, const char *address)
{
	json_auto_t *devices = sysfs_list(evidence->host, pci_path(address, "infiniband").text);
	json_auto_t *files = sysfs_list(evidence->host, pci_path(address, "infiniband_verbs").text);
	struct err unknown = {0};
	json_t *name;
	size_t i;

	evidence->is_unknown = false;
	if (!evidence->has_contexts && json_array_size(devices) > 0) {
		evidence->contexts = rdma_contexts(evidence->host, &unknown);
		evidence->has_contexts = true;
	}
	json_array_foreach (devices, i, name) {
		const char *who = NULL;
		char *who_in_kernel;
		const json_t *count = json_object_get(evidence->contexts, json_string_value(name));

		if (json_integer_value(count) > 0)
			return str_printf("%d processes that have %s open (rdma resource show)",
					  (int)json_integer_value(count), json_string_value(name));
		/* Linux before 5.0 does not count them. */
		who = count ? NULL : who_has_verbs(evidence, files);
		if (who)
			return str_dup(who);
		who_in_kernel = kernel_user(evidence, json_string_value(name));
		if (who_in_kernel)
			return who_in_kernel;
	}
	/* An administrator may have put one on a NIC that has its own. */
	return soft_verbs_user(evidence, address);
}

/*
 * A driver of VFIO enables the function for as long as its device file is open, and at no other
 * time (drivers/vfio/pci/vfio_pci_core.c, vfio_pci_core_enable(), which those of vendors call,
 * too); other drivers may do it when they are bound.
 */
char *evidence_vfio_user(struct evidence *evidence, const char *address, const char *driver)
{
	json_auto_t *devices = sysfs_list(evidence->host, pci_path(address, "vfio-dev").text);
	json_auto_t *uios = sysfs_list(evidence->host, pci_path(address, "uio").text);
	auto_free char *by_group = NULL, *by_device = NULL, *by_uio = NULL;
	struct sysfs_text group = {"none"};
	const char *who;
	int64_t enabled;

	evidence->is_unknown = false;
	if (strstr(driver, "vfio") &&
	    sysfs_read_int(evidence->host, pci_path(address, "enable").text, &enabled))
		return enabled > 0 ? str_dup("a process that has it open (VFIO)") : NULL;
	(void)sysfs_link(evidence->host, pci_path(address, "iommu_group").text, &group);
	by_group = str_printf("/dev/vfio/%s", group.text);
	/* The newer way, without groups (Linux 6.6). */
	by_device = str_printf("/dev/vfio/devices/%s", json_str_or(json_array_get(devices, 0), ""));
	who = who_has_file(evidence, by_group);
	who = who ? who : who_has_file(evidence, by_device);
	/* Documentation/driver-api/uio-howto.rst */
	if (!who && json_array_size(uios) > 0) {
		by_uio = str_printf("/dev/%s", json_string_value(json_array_get(uios, 0)));
		who = who_has_file(evidence, by_uio);
	}
	return who ? str_dup(who) : NULL;
}

/* What an interface of ours is part of, or which other of ours lies on it. NULL: nothing. */
static char *what_of_ours_is_on(struct evidence *evidence, const struct rtnl_interface *interface)
{
	const struct rtnl_interface *master =
		rtnl_by_index(&evidence->interfaces, interface->master);

	if (master)
		return str_printf("%s, of which %s is a part", master->name, interface->name);
	for (size_t i = 0; i < evidence->interfaces.n; i++)
		if (evidence->interfaces.items[i].lower == interface->index)
			return str_printf("%s, which lies on %s",
					  evidence->interfaces.items[i].name, interface->name);
	return NULL;
}

char *evidence_pod_user(struct evidence *evidence, int index, const char *name)
{
	json_t *namespaces = NULL;
	struct err err = {0};
	const char *upper;
	char key[16];

	assert(index > 0 && name);
	if (!evidence->uppers) {
		namespaces = holders_namespaces(evidence->host, &evidence->uppers, &err);
		if (!namespaces)
			return unknown_user(evidence, err.text);
		json_decref(namespaces);
	}
	(void)snprintf(key, sizeof(key), "%d", index);
	upper = json_str_at(evidence->uppers, key);
	return upper ? str_printf("%s, which lies on %s", upper, name) : NULL;
}

/* Of pods, too. */
static char *what_is_on(struct evidence *evidence, const struct rtnl_interface *interface)
{
	char *who = what_of_ours_is_on(evidence, interface);

	return who ? who : evidence_pod_user(evidence, interface->index, interface->name);
}

/*
 * By number: an interface may be renamed after the list was made. NULL: it was not there then, so
 * nothing is known of it.
 */
static const struct rtnl_interface *interface_named(struct evidence *evidence, const char *name)
{
	auto_free char *path = str_printf("sys/class/net/%s/ifindex", name);
	int64_t index;

	return sysfs_read_int(evidence->host, path, &index)
		       ? rtnl_by_index(&evidence->interfaces, (int)index)
		       : NULL;
}

/* The function's own interface; *ret NULL: it has none that we see. */
static int own_interface(struct evidence *evidence, const char *address,
			 const struct rtnl_interface **ret, struct err *err)
{
	struct sysfs_text name;

	*ret = NULL;
	if (!pci_netdev(evidence->host, address, &name))
		return 0;
	*ret = interface_named(evidence, name.text);
	return *ret ? 0
		    : err_set(err, ERR_TRANSIENT, "HostUnreadable",
			      "interface %s of %s came or went meanwhile", name.text, address);
}

/*
 * Ask for the use of each interface of a function, its representors alone, or all but these: the
 * first answer, for people, new. NULL: there is none.
 */
enum interfaces { INTERFACES_ALL, INTERFACES_REPRESENTORS };

static char *
ask_of_interfaces(struct evidence *evidence, const char *address, enum interfaces which,
		  char *(*use)(struct evidence *evidence, const struct rtnl_interface *interface))
{
	json_auto_t *names = pci_netdevs(evidence->host, address);
	json_t *item;
	size_t i;

	json_array_foreach (names, i, item) {
		const char *name = json_string_value(item);
		const struct rtnl_interface *interface;
		char *who;

		if (which == INTERFACES_REPRESENTORS && !pci_is_representor(evidence->host, name))
			continue;
		interface = interface_named(evidence, name);
		if (!interface) {
			auto_free char *why =
				str_printf("interface %s came or went meanwhile", name);

			return unknown_user(evidence, why);
		}
		who = use(evidence, interface);
		if (who)
			return who;
	}
	return NULL;
}

/* ---- the node itself ------------------------------------------------------------------------- */

bool evidence_vdpa_driver(struct host *host, const char *address, struct sysfs_text *ret)
{
	auto_free char *below = str_printf("/%s/", address);
	auto_free char *by_name = str_printf("vdpa:%s", address);
	json_auto_t *names = sysfs_list(host, "sys/bus/vdpa/devices");
	json_t *name;
	size_t i;

	/* Administrators name them as they like: "vdpa dev add name …". */
	json_array_foreach (names, i, name) {
		auto_free char *path =
			str_printf("sys/bus/vdpa/devices/%s", json_string_value(name));
		auto_free char *driver = str_printf("%s/driver", path);
		auto_free char *target = root_read_link(host->root, path);

		if ((str_eq(json_string_value(name), by_name) ||
		     (target && strstr(target, below))) &&
		    sysfs_link(host, driver, ret))
			return true;
	}
	return false;
}

static char *ip_user(struct evidence *evidence, const struct rtnl_interface *interface)
{
	if (rtnl_has_index(&evidence->addressed, interface->index))
		return str_printf("the node: %s has an address", interface->name);
	if (rtnl_has_index(&evidence->routed, interface->index))
		return str_printf("the node: routes lead out of %s", interface->name);
	if (interface->xdp)
		return str_printf("the node: an XDP program is attached to %s", interface->name);
	return NULL;
}

static char *node_interface_user(struct evidence *evidence, const struct rtnl_interface *interface)
{
	char *who = what_of_ours_is_on(evidence, interface);

	return who ? who : ip_user(evidence, interface);
}

/* Both: what lies on it, and the node. */
static char *interface_user(struct evidence *evidence, const struct rtnl_interface *interface)
{
	char *who = what_is_on(evidence, interface);

	return who ? who : ip_user(evidence, interface);
}

char *evidence_node_user(struct evidence *evidence, const char *address)
{
	struct sysfs_text driver;
	struct err err = {0};

	evidence->is_unknown = false;
	if (evidence_vdpa_driver(evidence->host, address, &driver))
		return str_printf("a vDPA device (driver %s)", driver.text);
	if (need_interfaces(evidence, &err) < 0 || need_ip(evidence, &err) < 0)
		return unknown_user(evidence, err.text);
	return ask_of_interfaces(evidence, address, INTERFACES_ALL, node_interface_user);
}

/* ---- VFs ------------------------------------------------------------------------------------- */

/* Between Allocate and the start of a container the host shows nothing of it. */
static int check_given(const struct host *host, const char *vf, struct err *err)
{
	const char *pod = json_str_at(host->held, vf);
	struct err why = {0};

	if (!host->held)
		return err_set(err, ERR_HOST, "VfInUse",
			       "VF %s may be a pod's: wait until the kubelet says which devices "
			       "pods have",
			       vf);
	if (!pod && host->given && host->given(host->given_arg, vf, &pod, &why) < 0)
		return err_set(err, ERR_HOST, "VfInUse", "VF %s may be a pod's: %s", vf, why.text);
	if (!pod)
		return 0;
	return err_set(err, ERR_HOST, "VfInUse",
		       "the kubelet has given VF %s to pod %s: delete the pod, also when it has "
		       "finished",
		       vf, pod);
}

int evidence_check_attached(struct host *host, const char *vf, struct err *err)
{
	struct sysfs_text driver, claim;
	bool bound;

	assert(pci_address_is_valid(vf));
	if (need_descriptors(err) < 0)
		return -1;
	bound = pci_driver(host, vf, &driver);
	if (pci_is_away(host, vf, bound ? driver.text : NULL))
		return err_set(err, ERR_HOST, "VfInUse",
			       "VF %s is in another network namespace: wait until the pod is gone",
			       vf);
	if (holders_claim(host, vf, &claim))
		return err_set(err, ERR_HOST, "VfInUse",
			       "VF %s is given to %s: wait until the pod is gone", vf, claim.text);
	if (holders_prepared(host, vf, &claim))
		return err_set(err, ERR_HOST, "VfInUse",
			       "VF %s is prepared for claim %s: wait until the pod is gone", vf,
			       claim.text);
	return 0;
}

int evidence_glance_vf(struct host *host, const char *vf, struct err *err)
{
	struct sysfs_text driver;

	if (pci_driver(host, vf, &driver) && check_given(host, vf, err) < 0)
		return -1;
	return evidence_check_attached(host, vf, err);
}

int evidence_check_bound_vf(struct evidence *evidence, const char *vf, struct err *err)
{
	struct sysfs_text driver;
	auto_free char *who = NULL;

	if (evidence_check_attached(evidence->host, vf, err) < 0 ||
	    need_interfaces(evidence, err) < 0)
		return -1;
	if (!pci_driver(evidence->host, vf, &driver))
		return 0;
	if (observed_is_userspace_driver(driver.text))
		who = evidence_vfio_user(evidence, vf, driver.text);
	else
		who = ask_of_interfaces(evidence, vf, INTERFACES_ALL, what_is_on);
	if (!who)
		who = evidence_verbs_user(evidence, vf);
	if (!who)
		who = evidence_node_user(evidence, vf);
	if (!who)
		return 0;
	return err_set(err, ERR_HOST, "VfInUse", "VF %s is used by %s: end that use", vf, who);
}

int evidence_check_vf(struct host *host, const char *vf, struct err *err)
{
	auto_evidence struct evidence *evidence = evidence_new(host);

	return evidence_check_bound_vf(evidence, vf, err) < 0 ? -1 : check_given(host, vf, err);
}

static int set_pf_in_use(struct err *err, const char *pf, const char *who)
{
	return err_set(err, ERR_HOST, "PfInUse", "PF %s is used by %s: end that use", pf, who);
}

int evidence_check_vfs(struct host *host, const char *pf, struct err *err)
{
	auto_evidence struct evidence *evidence = evidence_new(host);
	auto_free char *who = NULL;
	struct sysfs_text vf;

	assert(pci_address_is_valid(pf));
	for (int i = 0; i < PCI_VFS_MAX && pci_virtfn(host, pf, i, &vf); i++)
		if (evidence_check_bound_vf(evidence, vf.text, err) < 0)
			return -1;
	/* They go with their VFs: a switch of the node that has one as its port loses it. */
	if (need_interfaces(evidence, err) < 0 || need_ip(evidence, err) < 0)
		return -1;
	who = ask_of_interfaces(evidence, pf, INTERFACES_REPRESENTORS, interface_user);
	if (who)
		return set_pf_in_use(err, pf, who);
	/*
	 * Last, since looking at the host takes time, in which the kubelet may give VFs away. So
	 * may asking the kubelet: the second round is about those that the first one had passed
	 * when it asked again.
	 */
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < PCI_VFS_MAX && pci_virtfn(host, pf, i, &vf); i++)
			if (check_given(host, vf.text, err) < 0)
				return -1;
	return 0;
}

/* ---- PFs ------------------------------------------------------------------------------------- */

/*
 * A file in /dev that a process has open: a subnet manager (umad, issm), a clock (PTP). They go
 * when the PF's driver restarts.
 */
static char *files_user(struct evidence *evidence, const char *pf)
{
	static const struct {
		const char *folder, *below;
	} kinds[] = {{"infiniband_mad", "/dev/infiniband"}, {"ptp", "/dev"}};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *names = sysfs_list(evidence->host, pci_path(pf, kinds[i].folder).text);
		json_t *name;
		size_t k;

		json_array_foreach (names, k, name) {
			auto_free char *path = str_below(kinds[i].below, json_string_value(name));
			const char *who = who_has_file(evidence, path);

			if (who)
				return str_printf("%s, which has %s open", who, path);
		}
	}
	return NULL;
}

/*
 * A subfunction, "mlx5_core.sf.4", new: an administrator has made it, and it ends with the switch.
 */
static char *subfunction_user(struct evidence *evidence, const char *pf)
{
	json_auto_t *names = sysfs_list(evidence->host, pci_path(pf, NULL).text);
	json_t *name;
	size_t i;

	json_array_foreach (names, i, name)
		if (strstr(json_string_value(name), ".sf."))
			return str_printf("its subfunction %s (devlink port show)",
					  json_string_value(name));
	return NULL;
}

static char *pf_user(struct evidence *evidence, const char *pf, struct err *err)
{
	struct sysfs_text driver = {""};
	bool bound = pci_driver(evidence->host, pf, &driver);
	char *who;

	if (need_interfaces(evidence, err) < 0)
		return NULL;
	if (pci_is_away(evidence->host, pf, bound ? driver.text : NULL))
		return str_dup("another network namespace, which it is in");
	if (observed_is_userspace_driver(driver.text))
		return evidence_vfio_user(evidence, pf, driver.text);
	who = evidence_verbs_user(evidence, pf);
	who = who ? who : ask_of_interfaces(evidence, pf, INTERFACES_ALL, what_is_on);
	who = who ? who : evidence_node_user(evidence, pf);
	who = who ? who : subfunction_user(evidence, pf);
	return who ? who : files_user(evidence, pf);
}

int evidence_check_pf(struct host *host, const char *pf, struct err *err)
{
	auto_evidence struct evidence *evidence = evidence_new(host);
	struct err why = {0};
	auto_free char *who = pf_user(evidence, pf, &why);

	assert(pci_address_is_valid(pf));
	if (why.class) {
		*err = why;
		return -1;
	}
	return who ? set_pf_in_use(err, pf, who) : 0;
}

int evidence_check_lag(struct host *host, const char *pf, struct err *err)
{
	auto_evidence struct evidence *evidence = evidence_new(host);
	const struct rtnl_interface *interface, *bond, *port;
	json_auto_t *functions = sysfs_list(host, "sys/bus/pci/devices");
	json_t *function;
	size_t i;

	assert(pci_address_is_valid(pf));
	if (need_interfaces(evidence, err) < 0 || own_interface(evidence, pf, &interface, err) < 0)
		return -1;
	bond = interface ? rtnl_by_index(&evidence->interfaces, interface->master) : NULL;
	/* netif_is_lag_master() */
	if (!bond || (!str_eq(bond->kind, "bond") && !str_eq(bond->kind, "team")))
		return 0;
	json_array_foreach (functions, i, function) {
		const char *address = json_string_value(function);
		auto_free char *who = NULL;

		if (own_interface(evidence, address, &port, err) < 0)
			return -1;
		if (!port || port->master != bond->index)
			continue;
		who = evidence_verbs_user(evidence, address);
		if (who)
			return err_set(err, ERR_HOST, "PfInUse",
				       "PF %s is a port of %s, whose RDMA device is made anew when "
				       "VFs come or go, and it is used by %s: end that use",
				       pf, bond->name, who);
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One pair of functions for each interface of the kernel, and a table of which setting has which.
 * A worker reads all for the observed document, and one before and after it is set.
 *
 * Sources: Documentation/networking/ethtool-netlink.rst;
 * Documentation/ABI/testing/configfs-rdma_cm; include/uapi/linux/pci_regs.h; of NVIDIA's driver the
 * DOCA-OFED manual, "RoCE", "Explicit Congestion Notification", "Traffic Class".
 */
#include "nodeagent/host/pf_settings.h"

#include <assert.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host/dcb_settings.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/model/nic_settings.h"

#define CONFIGFS "sys/kernel/config/rdma_cm"
/* Of configfs and sysfs: PFs of drivers that are in use have one port each. */
#define PORT "1"
enum { PRIORITIES = NIC_SETTING_PRIORITIES };

/* A PF, and the answers that several settings share. */
struct pf {
	struct host *host;
	const char *address;
	struct sysfs_text interface;
	struct dcb dcb;
	struct err dcb_refused; /* class ERR_NONE: dcb holds, when it was asked for */
	bool is_dcb_asked;
	char *made; /* folder of configfs, NULL: none; see leave_device() */
};

/* The name of the setting; values are new, and of a form that nic_setting_check() takes. */
typedef json_t *read_fn(struct pf *pf, const char *name, struct err *err);
typedef int write_fn(struct pf *pf, const char *name, const json_t *value, struct err *err);

static json_t *unsupported(struct err *err, const char *why)
{
	(void)err_set(err, ERR_HOST, "SettingUnsupported", "%s", why);
	err->sys = EOPNOTSUPP;
	return NULL;
}

/* False with err: `why`, or that it cannot be looked at. */
static bool is_there(const struct pf *pf, const char *path, const char *why, struct err *err)
{
	if (sysfs_exists(pf->host, path))
		return true;
	if (errno == ENOENT || errno == ENOTDIR)
		(void)unsupported(err, why);
	else
		(void)err_sys(err, "HostUnreadable", "look at /%s", path);
	return false;
}

static int out_of_range(struct err *err, const char *what, json_int_t wanted, json_int_t has)
{
	if (has == 0 || wanted <= has)
		return 0;
	return err_set(err, ERR_INVALID, "SettingOutOfRange", "%lld %s wanted, the driver has %lld",
		       (long long)wanted, what, (long long)has);
}

/* ---- ethtool --------------------------------------------------------------------------------- */

static json_t *read_pair(struct pf *pf, const char *name, struct err *err)
{
	struct ethtool_pair is;
	json_t *ret;

	if (ethtool_get_pair(pf->host, pf->interface.text, name, &is, err) < 0)
		return err->sys == EOPNOTSUPP ? unsupported(err, "the driver has none to set")
					      : NULL;
	if (str_eq(name, "pauseFrames") && !is.rx.is == !is.tx.is)
		return json_boolean(is.rx.is);
	if (str_eq(name, "pauseFrames"))
		return json_pack("{s:b, s:b}", "rx", (int)is.rx.is, "tx", (int)is.tx.is);
	ret = json_object();
	if (is.rx.is > 0)
		json_put_int(ret, str_eq(name, "rings") ? "rx" : "combined", is.rx.is);
	if (is.tx.is > 0)
		json_put_int(ret, "tx", is.tx.is);
	return ret;
}

static int write_pauses(struct pf *pf, const char *name, const json_t *value,
			struct ethtool_pair *pair, struct err *err)
{
	bool was_negotiated = pair->is_negotiated;

	pair->rx.is = json_is_true(value) || json_is_true(json_at(value, "rx"));
	pair->tx.is = json_is_true(value) || json_is_true(json_at(value, "tx"));
	/* What is negotiated depends on the other end; some drivers only have that. */
	pair->is_negotiated = false;
	if (ethtool_set_pair(pf->host, pf->interface.text, name, pair, err) == 0)
		return 0;
	if (!was_negotiated || (err->sys != EOPNOTSUPP && err->sys != EINVAL))
		return -1;
	pair->is_negotiated = true;
	return ethtool_set_pair(pf->host, pf->interface.text, name, pair, err);
}

static int write_pair(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	const json_t *combined = json_at(value, "combined"), *tx = json_at(value, "tx"),
		     *rx = combined ? combined : json_at(value, "rx");
	struct ethtool_pair pair;

	if (ethtool_get_pair(pf->host, pf->interface.text, name, &pair, err) < 0)
		return -1;
	if (str_eq(name, "pauseFrames"))
		return write_pauses(pf, name, value, &pair, err);
	pair.rx.is_there = rx != NULL;
	pair.rx.is = (uint32_t)json_integer_value(rx);
	pair.tx.is_there = tx != NULL;
	pair.tx.is = (uint32_t)json_integer_value(tx);
	if (out_of_range(err, combined ? "combined channels" : "receive descriptors", pair.rx.is,
			 pair.rx.max) < 0 ||
	    out_of_range(err, "transmit descriptors", pair.tx.is, pair.tx.max) < 0)
		return -1;
	return ethtool_set_pair(pf->host, pf->interface.text, name, &pair, err);
}

/* ---- DCB ------------------------------------------------------------------------------------- */

static json_t *read_dcb(struct pf *pf, const char *name, struct err *err)
{
	json_t *ret;

	if (!pf->is_dcb_asked)
		(void)dcb_get(pf->host->netlink, pf->interface.text, &pf->dcb, &pf->dcb_refused);
	pf->is_dcb_asked = true;
	if (pf->dcb_refused.sys == EOPNOTSUPP)
		return unsupported(err, "the driver has no DCB");
	if (pf->dcb_refused.class) {
		*err = pf->dcb_refused;
		return NULL;
	}
	ret = dcb_setting_read(&pf->dcb, name);
	return ret ? ret : unsupported(err, "the DCB of the driver lacks it");
}

static int write_dcb(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	json_auto_t *now = read_dcb(pf, name, err);

	return now ? dcb_setting_write(pf->host->netlink, pf->interface.text, &pf->dcb, name, value,
				       err)
		   : -1;
}

/* ---- NVIDIA's driver, in sysfs --------------------------------------------------------------- */

static char *ecn_path(const struct pf *pf, const char *name, int number)
{
	auto_free char *path = str_printf("sys/class/net/%s/ecn/%s", pf->interface.text, name);

	return number < 0 ? take_ptr(path) : str_printf("%s/enable/%d", path, number);
}

static bool read_number(struct pf *pf, const char *path, json_int_t *ret, struct err *err)
{
	int64_t value;

	if (sysfs_read_int(pf->host, path, &value)) {
		*ret = value;
		return true;
	}
	(void)err_set(err, ERR_HOST, "HostUnreadable", "cannot read /%s", path);
	return false;
}

static const char *const points[] = {"roce_np", "roce_rp"};

static json_t *read_ecn(struct pf *pf, const char *name, struct err *err)
{
	auto_free char *folder = ecn_path(pf, points[0], -1);
	unsigned int bits = 0xff;

	if (!is_there(pf, folder,
		      "the driver has no folder ecn: only NVIDIA's own driver (DOCA-OFED) has it",
		      err))
		return NULL;
	for (int i = 0; i < 2 * PRIORITIES; i++) {
		auto_free char *path = ecn_path(pf, points[i % 2], i / 2);
		json_int_t is_on;

		if (!read_number(pf, path, &is_on, err))
			return NULL;
		bits &= is_on ? ~0U : ~(1U << i / 2);
	}
	return dcb_priorities(bits);
}

static int write_ecn(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	unsigned int bits = dcb_priority_bits(value);

	for (int i = 0; i < 2 * PRIORITIES; i++) {
		auto_free char *path = ecn_path(pf, points[i % 2], i / 2);

		if (sysfs_write(pf->host, path, bits & 1U << i / 2 ? "1" : "0", err) < 0)
			return -1;
	}
	return 0;
}

static const struct {
	const char *member, *file;
} cnp_files[] = {{"dscp", "roce_np/cnp_dscp"}, {"priority", "roce_np/cnp_802p_prio"}};

static json_t *read_cnp(struct pf *pf, const char *name, struct err *err)
{
	json_auto_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(cnp_files); i++) {
		auto_free char *path = ecn_path(pf, cnp_files[i].file, -1);
		json_int_t number;

		if (!is_there(pf, path,
			      "the driver has no folder ecn/roce_np: only NVIDIA's own driver "
			      "(DOCA-OFED) has it",
			      err) ||
		    !read_number(pf, path, &number, err))
			return NULL;
		json_put_int(ret, cnp_files[i].member, number);
	}
	return json_incref(ret);
}

static int write_cnp(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(cnp_files); i++) {
		auto_free char *path = ecn_path(pf, cnp_files[i].file, -1);
		const json_t *number = json_at(value, cnp_files[i].member);
		auto_free char *text = number ? json_text(number) : NULL;

		if (text && sysfs_write(pf->host, path, text, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- RDMA devices ---------------------------------------------------------------------------- */

/* Adds those below a function. */
static void add_rdma(struct pf *pf, const char *address, json_t *names)
{
	json_auto_t *below = sysfs_list(pf->host, pci_path(address, "infiniband").text);

	json_array_extend(names, below);
}

/*
 * The PF's device and those of its VFs that we see, an array, new: each has such a setting of its
 * own, and a VF that is made has the driver's. Of software it is the device upon the interface.
 * NULL with err.
 */
static json_t *rdma_names(struct pf *pf, struct err *err)
{
	auto_rdma_devices struct rdma_devices list = {0};
	json_auto_t *ret = json_array();
	struct sysfs_text vf;

	add_rdma(pf, pf->address, ret);
	for (int i = 0; json_array_size(ret) > 0 && i < PCI_VFS_MAX &&
			pci_virtfn(pf->host, pf->address, i, &vf);
	     i++)
		add_rdma(pf, vf.text, ret);
	if (json_array_size(ret) == 0 && rdma_list(pf->host, &list, err) < 0 &&
	    err->sys != EPROTONOSUPPORT)
		return NULL;
	for (size_t i = 0; i < list.n; i++)
		if (list.items[i].n_ports > 0 && list.items[i].ports[0].ndev_index &&
		    str_eq(list.items[i].ports[0].ndev_name, pf->interface.text))
			json_array_append_new(ret, json_fmt("%s", list.items[i].name));
	return json_array_size(ret) > 0 ? json_incref(ret)
					: unsupported(err, "it has no RDMA device");
}

/*
 * Values are the device's (drivers/infiniband/core/cma.c): they stay when the folder goes, which
 * would keep rdma_cm from being unloaded. One that was there stays.
 */
static void leave_device(struct pf *pf)
{
	if (pf->made)
		pf->host->doors->rmdir(pf->host->doors_ctx, pf->host->root, pf->made);
	free(pf->made);
	pf->made = NULL;
}

/*
 * The file of a setting of a device, new; its folder is there until leave_device(). NULL with err.
 */
static char *device_path(struct pf *pf, const char *name, const char *device, struct err *err)
{
	auto_free char *folder = str_printf(CONFIGFS "/%s", device);
	auto_free char *class =
		str_printf("sys/class/infiniband/%s/tc/" PORT "/traffic_class", device);

	if (str_eq(name, "trafficClass"))
		return is_there(pf, class,
				"the driver has no file traffic_class: only NVIDIA's own driver "
				"(DOCA-OFED) has it",
				err)
			       ? take_ptr(class)
			       : NULL;
	if (!is_there(pf, CONFIGFS,
		      "there is no /" CONFIGFS ": load the module rdma_cm, and mount configfs",
		      err))
		return NULL;
	if (!sysfs_exists(pf->host, folder)) {
		if (pf->host->doors->mkdir(pf->host->doors_ctx, pf->host->root, folder, err) < 0)
			return NULL;
		pf->made = str_dup(folder);
	}
	return str_printf("%s/ports/" PORT "/default_roce_%s", folder,
			  str_eq(name, "rdmaCmTos") ? "tos" : "mode");
}

/* Of traffic_class "Global tclass=106", and rules in lines of their own; nothing where none is. */
static json_t *read_device(struct pf *pf, const char *name, const char *device, struct err *err)
{
	auto_free char *path = device_path(pf, name, device, err);
	auto_strbuf struct strbuf file = {0};
	const char *text, *class;

	if (!path)
		return NULL;
	if (!sysfs_read_file(pf->host, path, 4096, &file)) {
		(void)err_set(err, ERR_HOST, "HostUnreadable", "cannot read /%s", path);
		return NULL;
	}
	text = strbuf_str(&file);
	class = strstr(text, "Global tclass=");
	if (str_eq(name, "rdmaCmTos"))
		return json_integer(strtol(text, NULL, 10));
	if (str_eq(name, "trafficClass"))
		return json_integer(class ? strtol(strchr(class, '=') + 1, NULL, 10) : -1);
	if (str_starts(text, "RoCE v2"))
		return json_string("v2");
	return str_starts(text, "IB/RoCE v1") ? json_string("v1")
					      : unsupported(err, "the device does not speak RoCE");
}

/*
 * The PF's; where a VF has another one, that of the VF: one that was just made has the driver's.
 * The PF is the first that is set, so that what was set in part differs, too.
 */
static json_t *read_devices(struct pf *pf, const char *name, struct err *err)
{
	json_auto_t *names = rdma_names(pf, err), *ret = NULL;
	json_t *device;
	size_t i;

	json_array_foreach (names, i, device) {
		json_t *value = read_device(pf, name, json_string_value(device), err);
		bool differs = ret && value && !json_same(ret, value);

		leave_device(pf);
		if (!value)
			return NULL;
		json_replace(&ret, value);
		if (differs)
			break;
	}
	return json_incref(ret);
}

static int write_devices(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	json_auto_t *names = rdma_names(pf, err);
	auto_free char *text = json_is_integer(value) ? json_text(value) : NULL;
	const char *mode = str_eq(json_string_value(value), "v2") ? "RoCE v2" : "IB/RoCE v1";
	json_t *device;
	size_t i;

	json_array_foreach (names, i, device) {
		const char *which = json_string_value(device);
		auto_free char *path = device_path(pf, name, which, err);
		int code = path ? sysfs_write(pf->host, path, text ? text : mode, err) : -1;

		leave_device(pf);
		if (code < 0)
			return err_in(err, "%s", which);
	}
	return names ? 0 : -1;
}

/* ---- PCI Express ----------------------------------------------------------------------------- */

static bool read_config(struct pf *pf, struct pci_config *ret, struct err *err)
{
	if (pci_config_read(pf->host, pf->address, ret))
		return ret->control_at ||
		       unsupported(err, "its configuration space shows no PCI Express");
	(void)err_set(err, ERR_HOST, "HostUnreadable", "cannot read its configuration space");
	return false;
}

static json_t *read_pci(struct pf *pf, const char *name, struct err *err)
{
	struct pci_config config;

	if (!read_config(pf, &config, err))
		return NULL;
	return str_eq(name, "maxReadRequest")
		       ? json_integer(config.max_read_request)
		       : json_boolean(config.control & PCI_EXP_DEVCTL_RELAX_EN);
}

static int write_pci(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	uint16_t mask = PCI_EXP_DEVCTL_RELAX_EN, bits = json_is_true(value) ? mask : 0;
	struct pci_config config;

	if (!read_config(pf, &config, err))
		return -1;
	if (str_eq(name, "maxReadRequest")) {
		mask = PCI_EXP_DEVCTL_READRQ;
		for (json_int_t size = json_integer_value(value); size > 128; size /= 2)
			bits += PCI_EXP_DEVCTL_READRQ_256B;
	}
	return pci_config_control(pf->host, pf->address, &config, mask, bits, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	read_fn *read;
	write_fn *write;
} kinds[] = {
	{"pauseFrames", read_pair, write_pair},
	{"dscpToPriority", read_dcb, write_dcb},
	{"trust", read_dcb, write_dcb},
	{"trafficClasses", read_dcb, write_dcb},
	{"pfc", read_dcb, write_dcb},
	{"buffers", read_dcb, write_dcb},
	{"ecn", read_ecn, write_ecn},
	{"cnp", read_cnp, write_cnp},
	{"rdmaCmRoceMode", read_devices, write_devices},
	{"rdmaCmTos", read_devices, write_devices},
	{"trafficClass", read_devices, write_devices},
	{"rings", read_pair, write_pair},
	{"channels", read_pair, write_pair},
	{"maxReadRequest", read_pci, write_pci},
	{"relaxedOrdering", read_pci, write_pci},
};

/* False: its interface is not there. */
static bool look_at(struct host *host, const char *address, struct pf *ret)
{
	*ret = (struct pf){.host = host, .address = address};
	return pci_netdev(host, address, &ret->interface);
}

void pf_settings_read(struct host *host, const char *address, const char *only,
		      const struct pf_settings *ret)
{
	struct pf pf;

	assert(ret->values && ret->unsupported && ret->failed);
	if (!look_at(host, address, &pf))
		return;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		json_auto_t *value = NULL;
		struct err err = {0};

		if (only && !str_eq(only, kinds[i].name))
			continue;
		value = kinds[i].read(&pf, kinds[i].name, &err);
		/* What cannot be put back is not changed either. */
		if (value && nic_setting_check(kinds[i].name, value, &err) < 0)
			err.sys = EOPNOTSUPP;
		else if (value)
			json_object_set(ret->values, kinds[i].name, value);
		if (err.class)
			json_put_str(err.sys == EOPNOTSUPP ? ret->unsupported : ret->failed,
				     kinds[i].name, err.text);
	}
}

int pf_settings_write(struct host *host, const char *address, const char *name, const json_t *value,
		      struct err *err)
{
	struct pf pf;
	size_t i = 0;

	assert(nic_setting_check(name, value, NULL) == 0);
	if (!look_at(host, address, &pf))
		return err_set(err, ERR_HOST, "NoInterface",
			       "it has no network interface that we "
			       "see");
	while (i < ARRAY_LEN(kinds) && !str_eq(kinds[i].name, name))
		i++;
	assert(i < ARRAY_LEN(kinds));
	return kinds[i].write(&pf, name, value, err);
}

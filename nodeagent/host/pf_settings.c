// SPDX-License-Identifier: Apache-2.0
/*
 * One pair of functions for each interface of the kernel, and a table of which setting has which.
 * A worker reads all for the observed document, and one before and after it is set.
 *
 * Sources: net/dcb/dcbnl.c, dcb(8); Documentation/networking/ethtool-netlink.rst;
 * Documentation/ABI/testing/configfs-rdma_cm; include/uapi/linux/pci_regs.h; of NVIDIA's driver the
 * DOCA-OFED manual, "RoCE", "Explicit Congestion Notification", "Traffic Class".
 */
#include "nodeagent/host/pf_settings.h"

#include <assert.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host/ethtool.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/rdma.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/netlink/dcb.h"

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

static int out_of_range(struct err *err, const char *what, json_int_t wanted, json_int_t has)
{
	if (has == 0 || wanted <= has)
		return 0;
	return err_set(err, ERR_INVALID, "SettingOutOfRange", "%lld %s wanted, the driver has %lld",
		       (long long)wanted, what, (long long)has);
}

static json_t *priorities_of(unsigned int bits)
{
	json_t *ret = json_array();

	for (int i = 0; i < PRIORITIES; i++)
		if (bits & 1U << i)
			json_array_append_new(ret, json_integer(i));
	return ret;
}

static unsigned int bits_of(const json_t *priorities)
{
	unsigned int ret = 0;
	json_t *priority;
	size_t i;

	json_array_foreach (priorities, i, priority)
		ret |= 1U << json_integer_value(priority);
	return ret;
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

/* Up to the last class that has priorities or bandwidth. */
static json_t *read_classes(const struct ieee_ets *ets)
{
	static const char *const selections[] = {
		[IEEE_8021QAZ_TSA_STRICT] = "strict",
		[IEEE_8021QAZ_TSA_VENDOR] = "vendor",
	};
	json_t *ret = json_array();
	int n = 0;

	for (int i = 0; i < PRIORITIES; i++) {
		int class = ets->prio_tc[i] % PRIORITIES;

		n = class >= n ? class + 1 : n;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS && ets->tc_tx_bw[i] && i >= n)
			n = i + 1;
	}
	for (int class = 0; class < n; class ++) {
		const char *selection = selections[ets->tc_tsa[class]];
		json_t *entry = json_object();
		unsigned int bits = 0;

		for (int i = 0; i < PRIORITIES; i++)
			bits |= ets->prio_tc[i] % PRIORITIES == class ? 1U << i : 0;
		json_put(entry, "priorities", priorities_of(bits));
		if (ets->tc_tsa[class] == IEEE_8021QAZ_TSA_ETS)
			json_put_int(entry, "bandwidth", ets->tc_tx_bw[class]);
		else if (selection)
			json_put_bool(entry, selection, true);
		json_array_append_new(ret, entry);
	}
	return ret;
}

static json_t *read_buffers(const struct dcbnl_buffer *buffers)
{
	json_t *ret = json_object(), *sizes = json_array(), *priorities = json_array();

	for (int i = 0; i < PRIORITIES; i++) {
		json_array_append_new(sizes, json_integer(buffers->buffer_size[i]));
		json_array_append_new(priorities, json_integer(buffers->prio2buffer[i]));
	}
	json_put(ret, "sizes", sizes);
	json_put(ret, "priorities", priorities);
	return ret;
}

/* Of several priorities drivers take the highest (net/dcb/dcbnl.c, dcb_ieee_getapp_mask()). */
static json_t *read_dscps(const uint8_t *dscps)
{
	json_t *ret = json_object();

	for (int dscp = 0; dscp < DCB_DSCPS; dscp++) {
		auto_free char *key = str_printf("%d", dscp);

		for (int i = 0; i < PRIORITIES; i++)
			if (dscps[dscp] & 1U << i)
				json_put_int(ret, key, i);
	}
	return ret;
}

static bool has_dscps(const struct dcb *dcb)
{
	for (int i = 0; i < DCB_DSCPS; i++)
		if (dcb->dscps[i])
			return true;
	return false;
}

static json_t *read_dcb(struct pf *pf, const char *name, struct err *err)
{
	const struct dcb *dcb = &pf->dcb;

	if (!pf->is_dcb_asked)
		(void)dcb_get(pf->host->netlink, pf->interface.text, &pf->dcb, &pf->dcb_refused);
	pf->is_dcb_asked = true;
	if (pf->dcb_refused.class) {
		*err = pf->dcb_refused;
		return err->sys == EOPNOTSUPP ? unsupported(err, "the driver has no DCB") : NULL;
	}
	if (str_eq(name, "trafficClasses"))
		return dcb->has_ets ? read_classes(&dcb->ets)
				    : unsupported(err, "the driver has no ETS");
	if (str_eq(name, "pfc"))
		return dcb->has_pfc ? priorities_of(dcb->pfc.pfc_en)
				    : unsupported(err, "the driver has no PFC");
	if (str_eq(name, "buffers"))
		return dcb->has_buffers ? read_buffers(&dcb->buffers)
					: unsupported(err, "the driver has no buffers to set");
	return str_eq(name, "trust") ? json_string(has_dscps(dcb) ? "dscp" : "pcp")
				     : read_dscps(dcb->dscps);
}

static int set_dcb(struct pf *pf, int attribute, const void *value, size_t size, struct err *err)
{
	return dcb_set(pf->host->netlink, pf->interface.text, attribute, value, size, err);
}

static int write_classes(struct pf *pf, const json_t *classes, struct err *err)
{
	struct ieee_ets *ets = &pf->dcb.ets;
	size_t i, j, n = json_array_size(classes);
	json_t *class, *priority;

	/* How many: IEEE 802.1Q has 8 as 0. */
	if (ets->ets_cap > 0 && n > ets->ets_cap)
		return err_set(err, ERR_INVALID, "SettingOutOfRange",
			       "ETS of %zu traffic classes wanted, the driver has %d", n,
			       ets->ets_cap);
	for (i = n; i < PRIORITIES; i++) {
		ets->tc_tsa[i] = IEEE_8021QAZ_TSA_STRICT;
		ets->tc_tx_bw[i] = 0;
	}
	json_array_foreach (classes, i, class) {
		const json_t *bandwidth = json_at(class, "bandwidth");

		ets->tc_tx_bw[i] = (uint8_t)json_integer_value(bandwidth);
		ets->tc_tsa[i] = bandwidth                  ? IEEE_8021QAZ_TSA_ETS
				 : json_at(class, "strict") ? IEEE_8021QAZ_TSA_STRICT
							    : IEEE_8021QAZ_TSA_VENDOR;
		json_array_foreach (json_at(class, "priorities"), j, priority)
			ets->prio_tc[json_integer_value(priority)] = (uint8_t)i;
	}
	return set_dcb(pf, DCB_ATTR_IEEE_ETS, ets, sizeof(*ets), err);
}

static int write_pfc(struct pf *pf, const json_t *value, struct err *err)
{
	struct ieee_pfc *pfc = &pf->dcb.pfc;

	if (out_of_range(err, "priorities with PFC", (json_int_t)json_array_size(value),
			 pfc->pfc_cap) < 0)
		return -1;
	pfc->pfc_en = (uint8_t)bits_of(value);
	return set_dcb(pf, DCB_ATTR_IEEE_PFC, pfc, sizeof(*pfc), err);
}

static int write_buffers(struct pf *pf, const json_t *value, struct err *err)
{
	struct dcbnl_buffer *buffers = &pf->dcb.buffers;
	json_int_t sum = 0;

	for (size_t i = 0; i < PRIORITIES; i++) {
		json_int_t size = json_integer_value(json_array_get(json_at(value, "sizes"), i));

		sum += size;
		buffers->buffer_size[i] = (uint32_t)size;
		buffers->prio2buffer[i] = (uint8_t)json_integer_value(
			json_array_get(json_at(value, "priorities"), i));
	}
	if (out_of_range(err, "bytes of buffers", sum, buffers->total_size) < 0)
		return -1;
	return set_dcb(pf, DCB_ATTR_DCB_BUFFER, buffers, sizeof(*buffers), err);
}

/*
 * Entries are added before others go: drivers trust PCP as soon as there are none (mlx5,
 * en_dcbnl.c; ice, ice_dcb_nl.c). And a driver may have removed the old one itself.
 */
static int write_dscps(struct pf *pf, const uint8_t wanted[DCB_DSCPS], struct err *err)
{
	struct netlink *netlink = pf->host->netlink;
	const char *interface = pf->interface.text;
	uint8_t differ[DCB_DSCPS];
	struct dcb now;

	for (int i = 0; i < DCB_DSCPS; i++)
		differ[i] = wanted[i] & ~pf->dcb.dscps[i];
	if (dcb_change_dscps(netlink, interface, true, differ, err) < 0 ||
	    dcb_get(netlink, interface, &now, err) < 0)
		return -1;
	for (int i = 0; i < DCB_DSCPS; i++)
		differ[i] = now.dscps[i] & ~wanted[i];
	return dcb_change_dscps(netlink, interface, false, differ, err);
}

/* By the upper three bits, which older hosts and switches look at (RFC 2474, 4.2.2). */
static int write_trust(struct pf *pf, const json_t *value, struct err *err)
{
	uint8_t wanted[DCB_DSCPS] = {0};

	for (int i = 0; i < DCB_DSCPS && str_eq(json_string_value(value), "dscp"); i++)
		wanted[i] = (uint8_t)(1U << (i >> 3));
	return write_dscps(pf, wanted, err);
}

static int write_dscp_map(struct pf *pf, const json_t *value, struct err *err)
{
	uint8_t wanted[DCB_DSCPS] = {0};

	for (int i = 0; i < DCB_DSCPS; i++) {
		auto_free char *key = str_printf("%d", i);
		const json_t *priority = json_at(value, key);

		if (priority)
			wanted[i] = (uint8_t)(1U << json_integer_value(priority));
	}
	return write_dscps(pf, wanted, err);
}

static int write_dcb(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	json_auto_t *now = read_dcb(pf, name, err);
	int code;

	if (!now)
		return -1;
	if (str_eq(name, "trafficClasses"))
		code = write_classes(pf, value, err);
	else if (str_eq(name, "pfc"))
		code = write_pfc(pf, value, err);
	else if (str_eq(name, "buffers"))
		code = write_buffers(pf, value, err);
	else if (str_eq(name, "trust"))
		code = write_trust(pf, value, err);
	else
		code = write_dscp_map(pf, value, err);
	if (code < 0 && err->sys && pf->dcb.is_by_firmware)
		return err_in(err, "an agent for LLDP in the NIC's firmware manages DCB, switch it "
				   "off");
	return code;
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

	if (!sysfs_exists(pf->host, folder))
		return unsupported(err, "the driver has no folder ecn: only NVIDIA's own driver "
					"(DOCA-OFED) has it");
	for (int i = 0; i < 2 * PRIORITIES; i++) {
		auto_free char *path = ecn_path(pf, points[i % 2], i / 2);
		json_int_t is_on;

		if (!read_number(pf, path, &is_on, err))
			return NULL;
		bits &= is_on ? ~0U : ~(1U << i / 2);
	}
	return priorities_of(bits);
}

static int write_ecn(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	unsigned int bits = bits_of(value);

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

		if (!sysfs_exists(pf->host, path))
			continue;
		if (!read_number(pf, path, &number, err))
			return NULL;
		json_put_int(ret, cnp_files[i].member, number);
	}
	if (json_object_size(ret) > 0)
		return json_incref(ret);
	return unsupported(err, "the driver has no file ecn/roce_np/cnp_dscp: only NVIDIA's own "
				"driver (DOCA-OFED) has it");
}

static int write_number(struct pf *pf, const char *path, json_int_t number, struct err *err)
{
	auto_free char *text = str_printf("%lld", (long long)number);

	return sysfs_write(pf->host, path, text, err);
}

static int write_cnp(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(cnp_files); i++) {
		auto_free char *path = ecn_path(pf, cnp_files[i].file, -1);
		const json_t *number = json_at(value, cnp_files[i].member);

		if (number && write_number(pf, path, json_integer_value(number), err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the RDMA device ------------------------------------------------------------------------- */

/* Its name, new; of hardware below the function, of software upon the interface. NULL with err. */
static char *rdma_name(struct pf *pf, struct err *err)
{
	json_auto_t *names = sysfs_list(pf->host, pci_path(pf->address, "infiniband").text);
	auto_rdma_devices struct rdma_devices list = {0};

	if (json_array_size(names) > 0)
		return str_dup(json_string_value(json_array_get(names, 0)));
	if (rdma_list(pf->host, &list, err) < 0 && err->sys != EPROTONOSUPPORT)
		return NULL;
	for (size_t i = 0; i < list.n; i++)
		if (list.items[i].n_ports > 0 && list.items[i].ports[0].ndev_index &&
		    str_eq(list.items[i].ports[0].ndev_name, pf->interface.text))
			return str_dup(list.items[i].name);
	(void)unsupported(err, "it has no RDMA device");
	return NULL;
}

/* The file, new; its folder is there. NULL with err. */
static char *cm_path(struct pf *pf, const char *name, struct err *err)
{
	bool is_tos = str_eq(name, "rdmaCmTos");
	auto_free char *device = rdma_name(pf, err), *folder = NULL;

	if (!device)
		return NULL;
	if (!sysfs_exists(pf->host, CONFIGFS)) {
		(void)unsupported(err, "there is no /" CONFIGFS ": load the module rdma_cm, and "
				       "mount configfs");
		return NULL;
	}
	folder = str_printf(CONFIGFS "/%s", device);
	if (!sysfs_exists(pf->host, folder) &&
	    pf->host->doors->mkdir(pf->host->doors_ctx, pf->host->root, folder, err) < 0)
		return NULL;
	return str_printf("%s/ports/" PORT "/default_roce_%s", folder, is_tos ? "tos" : "mode");
}

static json_t *read_cm(struct pf *pf, const char *name, struct err *err)
{
	auto_free char *path = cm_path(pf, name, err);
	struct sysfs_text mode;
	json_int_t tos;

	if (!path)
		return NULL;
	if (str_eq(name, "rdmaCmTos"))
		return read_number(pf, path, &tos, err) ? json_integer(tos) : NULL;
	if (sysfs_read(pf->host, path, &mode) && str_eq(mode.text, "RoCE v2"))
		return json_string("v2");
	if (sysfs_read(pf->host, path, &mode) && str_eq(mode.text, "IB/RoCE v1"))
		return json_string("v1");
	return unsupported(err, "the device does not speak RoCE");
}

static int write_cm(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	auto_free char *path = cm_path(pf, name, err);

	if (!path)
		return -1;
	if (json_is_integer(value))
		return write_number(pf, path, json_integer_value(value), err);
	return sysfs_write(pf->host, path,
			   str_eq(json_string_value(value), "v2") ? "RoCE v2" : "IB/RoCE v1", err);
}

static char *class_path(struct pf *pf, struct err *err)
{
	auto_free char *device = rdma_name(pf, err), *path = NULL;

	if (!device)
		return NULL;
	path = str_printf("sys/class/infiniband/%s/tc/" PORT "/traffic_class", device);
	if (sysfs_exists(pf->host, path))
		return take_ptr(path);
	(void)unsupported(err, "the driver has no file traffic_class: only NVIDIA's own driver "
			       "(DOCA-OFED) has it");
	return NULL;
}

/* "Global tclass=106", and rules for addresses in lines of their own; nothing where none is. */
static json_t *read_class(struct pf *pf, const char *name, struct err *err)
{
	auto_free char *path = class_path(pf, err);
	auto_strbuf struct strbuf text = {0};
	const char *at;

	if (!path)
		return NULL;
	if (!sysfs_read_file(pf->host, path, 4096, &text)) {
		(void)err_set(err, ERR_HOST, "HostUnreadable", "cannot read /%s", path);
		return NULL;
	}
	at = strstr(strbuf_str(&text), "Global tclass=");
	return json_integer(at ? strtol(at + strlen("Global tclass="), NULL, 10) : -1);
}

static int write_class(struct pf *pf, const char *name, const json_t *value, struct err *err)
{
	auto_free char *path = class_path(pf, err);

	return path ? write_number(pf, path, json_integer_value(value), err) : -1;
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
	{"rdmaCmRoceMode", read_cm, write_cm},
	{"rdmaCmTos", read_cm, write_cm},
	{"trafficClass", read_class, write_class},
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

// SPDX-License-Identifier: Apache-2.0
/*
 * A file of another plugin becomes what our DEL would have kept itself, so that DEL has one way
 * only. legacy_state.c reads the file; whoever could write below /var/lib/cni chose its content, so
 * names and numbers are checked here.
 */
#include "nodeagent/cni/plan/upstream_state.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/ib_sriov.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define NAME_SIZE      16 /* linux/if.h, IFNAMSIZ */
#define RDMA_NAME_SIZE 64 /* rdma/ib_verbs.h, IB_DEVICE_NAME_MAX */
#define VF_MAX         65535
#define MTU_MAX        65535
#define RATE_MAX       10000000 /* Mbit/s */
#define VLAN_MAX       4094
#define PROTO_QINQ     0x88a8
#define PROTO_8021Q    0x8100

char *upstream_state_path(const char *plugin, const char *network, const char *container,
			  const char *ifname)
{
	if (str_eq(plugin, "sriov"))
		return str_printf(UPSTREAM_SRIOV_DIR "/%s-%s", container, ifname);
	if (str_eq(plugin, "ib-sriov"))
		return str_printf("/var/lib/cni/ib-sriov/%s-%s", container, ifname);
	if (str_eq(plugin, "rdma"))
		return str_printf("/var/lib/cni/rdma/%s-%s-%s", network, container, ifname);
	return NULL;
}

static int bad_state(struct err *err, const char *key, const char *must)
{
	return err_set(err, ERR_INVALID, "BadUpstreamState", "%s must be %s", key, must);
}

/* Absent is 0. */
static int get_number(const json_t *object, const char *key, int64_t max, int64_t *ret,
		      struct err *err)
{
	const json_t *value = json_at(object, key);
	json_int_t number = json_integer_value(value);

	if (value && (!json_is_integer(value) || number < 0 || number > max))
		return err_set(err, ERR_INVALID, "BadUpstreamState",
			       "%s must be a whole number from 0 to %lld", key, (long long)max);
	*ret = number;
	return 0;
}

/* A name that the kernel may give an interface or an RDMA device; "" and absent: *ret is NULL. */
static int get_name(const json_t *object, const char *key, size_t size, const char **ret,
		    struct err *err)
{
	const char *text = json_str_at(object, key);

	if (json_at(object, key) && !text)
		return bad_state(err, key, "a text");
	if (!str_empty(text) && (strlen(text) >= size || strpbrk(text, "/ \t\n")))
		return bad_state(err, key, "the name of a device");
	*ret = str_empty(text) ? NULL : text;
	return 0;
}

/* ---- sriov ----------------------------------------------------------------------------------- */

/* OrigVfState in the words of sriov.h, as far as the configuration had asked for a change. */
static json_t *old_settings(const json_t *kept, const json_t *asked, struct err *err)
{
	static const struct {
		const char *key, *word;
		int64_t max;
	} numbers[] = {
		{"Vlan", "vlan", VLAN_MAX},         {"VlanQoS", "qos", 7},
		{"VlanProto", "proto", VF_MAX},     {"MinTxRate", "minRate", RATE_MAX},
		{"MaxTxRate", "maxRate", RATE_MAX}, {"LinkState", "linkState", 2},
	};
	const json_t *was = json_at(kept, "OrigVfState");
	json_auto_t *all = json_object();
	char mac[18];

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		int64_t number;

		if (get_number(was, numbers[i].key, numbers[i].max, &number, err))
			return NULL;
		if (json_at(asked, numbers[i].word))
			json_put_int(all, numbers[i].word, number);
	}
	/* Drivers that know 802.1Q alone name none. */
	if (json_at(all, "proto") && json_integer_value(json_at(all, "proto")) != PROTO_QINQ)
		json_put_int(all, "proto", PROTO_8021Q);
	if (json_at(asked, "spoofchk"))
		json_put_bool(all, "spoofchk", json_is_true(json_at(was, "SpoofChk")));
	if (json_at(asked, "trust"))
		json_put_bool(all, "trust", json_is_true(json_at(was, "Trust")));
	if (!json_at(asked, "mac"))
		return take_ptr(all);
	/* All zeros: the VF chooses by itself. */
	json_put_str(all, "mac",
		     wanted_mac_parse(json_str_at(was, "AdminMAC"), mac) ? mac
									 : "00:00:00:00:00:00");
	return take_ptr(all);
}

/* What saved has of the interface; a VF of user space has none. */
static int put_interface(const json_t *kept, json_t *saved, struct err *err)
{
	const json_t *was = json_at(kept, "OrigVfState");
	const char *name;
	char mac[18];
	int64_t mtu;

	if (get_name(was, "HostIFName", NAME_SIZE, &name, err) ||
	    get_number(was, "MTU", MTU_MAX, &mtu, err))
		return -1;
	if (json_is_true(json_at(kept, "DPDKMode")))
		return 0;
	if (!name)
		return bad_state(err, "OrigVfState.HostIFName",
				 "the name of the interface on the node");
	json_put_str(saved, "name", name);
	if (wanted_mac_parse(json_str_at(was, "EffectiveMAC"), mac))
		json_put_str(saved, "mac", mac);
	if (mtu)
		json_put_int(saved, "mtu", mtu);
	return 0;
}

static bool has_ipam(const json_t *kept)
{
	return !str_empty(json_str_at(kept, "ipam", "type"));
}

static json_t *read_sriov(const json_t *kept, struct err *err)
{
	auto_sriov_config struct sriov_config asked = {0};
	json_auto_t *saved = json_object(), *settings = json_array(), *was = NULL;
	const char *pf;
	int64_t vf;

	if (sriov_config_read(kept, NULL, &asked, err))
		return NULL;
	was = old_settings(kept, asked.wanted, err);
	if (!was || get_name(kept, "Master", NAME_SIZE, &pf, err) ||
	    get_number(kept, "VFID", VF_MAX, &vf, err) || put_interface(kept, saved, err))
		return NULL;
	if (!pf) {
		(void)bad_state(err, "Master", "the name of the PF");
		return NULL;
	}
	sriov_plan_settings(pf, vf, asked.wanted, was, settings);
	json_put_str(saved, "device", asked.device);
	json_put_str(saved, "pf", pf);
	json_put(saved, "settings", json_incref(settings));
	json_put_bool(saved, "ipam", has_ipam(kept));
	return take_ptr(saved);
}

/* ---- ib-sriov -------------------------------------------------------------------------------- */

static json_t *read_ib_sriov(const json_t *kept, struct err *err)
{
	json_auto_t *saved = json_object(), *settings = json_array();
	const char *device = json_str_at(kept, "deviceID"), *name, *pf, *rdma;
	int64_t vf;

	if (!device || !pci_address_is_valid(device)) {
		(void)bad_state(err, "deviceID", "a PCI address");
		return NULL;
	}
	if (get_name(kept, "HostIFNames", NAME_SIZE, &name, err) ||
	    get_name(kept, "Master", NAME_SIZE, &pf, err) ||
	    get_name(json_at(kept, "RdmaNetState"), "sandboxRdmaDevName", RDMA_NAME_SIZE, &rdma,
		     err) ||
	    get_number(kept, "VFID", VF_MAX, &vf, err))
		return NULL;
	if (pf) {
		const char *guid = json_str_at(kept, "HostIFGUID");
		const char *back = ib_sriov_guid_is_set(guid) ? guid : "ff:ff:ff:ff:ff:ff:ff:ff";
		static const char *const keys[] = {"nodeGuid", "portGuid"};
		json_t *step;

		/* auto is what NICs begin with; nothing was kept of it. */
		if (!str_empty(json_str_at(kept, "link_state"))) {
			step = steps_add(settings, "host", "vf", pf);
			json_put_int(step, "vf", vf);
			json_put_int(step, "linkState", 0);
		}
		for (size_t i = 0; !str_empty(guid) && i < ARRAY_LEN(keys); i++) {
			step = steps_add(settings, "host", "vf", pf);
			json_put_int(step, "vf", vf);
			json_put_str(step, keys[i], back);
		}
	}
	json_put_str(saved, "device", device);
	json_put_str(saved, "name", name);
	json_put(saved, "settings", json_incref(settings));
	json_put_bool(saved, "rebind", name && pf && !str_empty(json_str_at(kept, "HostIFGUID")));
	json_put_str(saved, "rdma", rdma);
	json_put_bool(saved, "ipam", has_ipam(kept));
	return take_ptr(saved);
}

/* ---- rdma ------------------------------------------------------------------------------------ */

static json_t *read_rdma(const json_t *kept, struct err *err)
{
	json_auto_t *saved = json_object();
	const char *device, *name;

	/* An auxiliary device has no PCI address. */
	if (get_name(kept, "deviceID", RDMA_NAME_SIZE, &device, err) ||
	    get_name(kept, "sandboxRdmaDevName", RDMA_NAME_SIZE, &name, err))
		return NULL;
	if (!device || !name) {
		(void)bad_state(err, device ? "sandboxRdmaDevName" : "deviceID",
				"the name of a device");
		return NULL;
	}
	json_put_str(saved, "device", device);
	json_put_str(saved, "rdma", name);
	return take_ptr(saved);
}

json_t *upstream_state_read(const char *plugin, const json_t *kept, struct err *err)
{
	static const struct {
		const char *plugin;
		json_t *(*read)(const json_t *kept, struct err *err);
	} readers[] = {{"sriov", read_sriov}, {"ib-sriov", read_ib_sriov}, {"rdma", read_rdma}};

	for (size_t i = 0; i < ARRAY_LEN(readers); i++)
		if (str_eq(readers[i].plugin, plugin))
			return readers[i].read(kept, err);
	(void)err_set(err, ERR_INVALID, "BadUpstreamState", "nothing is known of the plugin %s",
		      plugin);
	return NULL;
}

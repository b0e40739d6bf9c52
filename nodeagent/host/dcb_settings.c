// SPDX-License-Identifier: Apache-2.0
/*
 * Values of settings and structures of the kernel (linux/dcbnl.h; dcb(8)). A change begins from
 * what was read, so that the rest of a structure stays. For pf_settings.c, above netlink/dcb.c.
 */
#include "nodeagent/host/dcb_settings.h"

#include <assert.h>

#include "lib/json/json.h"
#include "nodeagent/model/nic_settings.h"

enum { PRIORITIES = NIC_SETTING_PRIORITIES };

json_t *dcb_priorities(unsigned int bits)
{
	json_t *ret = json_array();

	for (int i = 0; i < PRIORITIES; i++)
		if (bits & 1U << i)
			json_array_append_new(ret, json_integer(i));
	return ret;
}

unsigned int dcb_priority_bits(const json_t *priorities)
{
	unsigned int ret = 0;
	json_t *priority;
	size_t i;

	json_array_foreach (priorities, i, priority)
		ret |= 1U << json_integer_value(priority);
	return ret;
}

/* ---- reading --------------------------------------------------------------------------------- */

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
		json_put(entry, "priorities", dcb_priorities(bits));
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

json_t *dcb_setting_read(const struct dcb *dcb, const char *name)
{
	if (str_eq(name, "trafficClasses"))
		return dcb->has_ets ? read_classes(&dcb->ets) : NULL;
	if (str_eq(name, "pfc"))
		return dcb->has_pfc ? dcb_priorities(dcb->pfc.pfc_en) : NULL;
	if (str_eq(name, "buffers"))
		return dcb->has_buffers ? read_buffers(&dcb->buffers) : NULL;
	assert(str_eq(name, "trust") || str_eq(name, "dscpToPriority"));
	return str_eq(name, "trust") ? json_string(has_dscps(dcb) ? "dscp" : "pcp")
				     : read_dscps(dcb->dscps);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* An interface, and what its DCB was. */
struct target {
	struct netlink *netlink;
	const char *interface;
	struct dcb *now;
};

static int set_dcb(const struct target *target, int attribute, const void *value, size_t size,
		   struct err *err)
{
	return dcb_set(target->netlink, target->interface, attribute, value, size, err);
}

static int write_classes(const struct target *target, const json_t *classes, struct err *err)
{
	struct ieee_ets *ets = &target->now->ets;
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
	return set_dcb(target, DCB_ATTR_IEEE_ETS, ets, sizeof(*ets), err);
}

static int write_pfc(const struct target *target, const json_t *value, struct err *err)
{
	struct ieee_pfc *pfc = &target->now->pfc;

	if (pfc->pfc_cap > 0 && json_array_size(value) > pfc->pfc_cap)
		return err_set(err, ERR_INVALID, "SettingOutOfRange",
			       "PFC of %zu priorities wanted, the driver has %d",
			       json_array_size(value), pfc->pfc_cap);
	pfc->pfc_en = (uint8_t)dcb_priority_bits(value);
	return set_dcb(target, DCB_ATTR_IEEE_PFC, pfc, sizeof(*pfc), err);
}

static int write_buffers(const struct target *target, const json_t *value, struct err *err)
{
	struct dcbnl_buffer *buffers = &target->now->buffers;
	json_int_t sum = 0;

	for (size_t i = 0; i < PRIORITIES; i++) {
		json_int_t size = json_integer_value(json_array_get(json_at(value, "sizes"), i));

		sum += size;
		buffers->buffer_size[i] = (uint32_t)size;
		buffers->prio2buffer[i] = (uint8_t)json_integer_value(
			json_array_get(json_at(value, "priorities"), i));
	}
	if (buffers->total_size > 0 && sum > buffers->total_size)
		return err_set(err, ERR_INVALID, "SettingOutOfRange",
			       "buffers of %lld bytes wanted, the driver has %u", (long long)sum,
			       buffers->total_size);
	return set_dcb(target, DCB_ATTR_DCB_BUFFER, buffers, sizeof(*buffers), err);
}

/*
 * Entries are added before others go: drivers trust PCP as soon as there are none (mlx5,
 * en_dcbnl.c; ice, ice_dcb_nl.c). And a driver may have removed the old one itself.
 */
static int write_dscps(const struct target *target, const uint8_t wanted[DCB_DSCPS],
		       struct err *err)
{
	uint8_t differ[DCB_DSCPS];
	struct dcb now;

	for (int i = 0; i < DCB_DSCPS; i++)
		differ[i] = wanted[i] & ~target->now->dscps[i];
	if (dcb_change_dscps(target->netlink, target->interface, true, differ, err) < 0 ||
	    dcb_get(target->netlink, target->interface, &now, err) < 0)
		return -1;
	for (int i = 0; i < DCB_DSCPS; i++)
		differ[i] = now.dscps[i] & ~wanted[i];
	return dcb_change_dscps(target->netlink, target->interface, false, differ, err);
}

/* By the upper three bits, which older hosts and switches look at (RFC 2474, 4.2.2). */
static int write_trust(const struct target *target, const json_t *value, struct err *err)
{
	uint8_t wanted[DCB_DSCPS] = {0};

	for (int i = 0; i < DCB_DSCPS && str_eq(json_string_value(value), "dscp"); i++)
		wanted[i] = (uint8_t)(1U << (i >> 3));
	return write_dscps(target, wanted, err);
}

static int write_dscp_map(const struct target *target, const json_t *value, struct err *err)
{
	uint8_t wanted[DCB_DSCPS] = {0};

	for (int i = 0; i < DCB_DSCPS; i++) {
		auto_free char *key = str_printf("%d", i);
		const json_t *priority = json_at(value, key);

		if (priority)
			wanted[i] = (uint8_t)(1U << json_integer_value(priority));
	}
	return write_dscps(target, wanted, err);
}

int dcb_setting_write(struct netlink *netlink, const char *interface, struct dcb *now,
		      const char *name, const json_t *value, struct err *err)
{
	const struct target target = {netlink, interface, now};
	int code;

	assert(nic_setting_check(name, value, NULL) == 0);
	if (str_eq(name, "trafficClasses"))
		code = write_classes(&target, value, err);
	else if (str_eq(name, "pfc"))
		code = write_pfc(&target, value, err);
	else if (str_eq(name, "buffers"))
		code = write_buffers(&target, value, err);
	else
		code = str_eq(name, "trust") ? write_trust(&target, value, err)
					     : write_dscp_map(&target, value, err);
	if (code < 0 && err->sys && now->is_by_firmware)
		return err_in(err, "an agent for LLDP in the NIC's firmware manages DCB, switch it "
				   "off");
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Read the configuration, compare it with the VF as its PF shows it, list what differs; and the
 * same comparison for the way back. sriov_run.c acts on ADD, CHECK and DEL; ib-sriov and
 * upstream_state.c use the settings part.
 */
#include "nodeagent/cni/plan/sriov.h"

#include <assert.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"
#include "reconcilers/core/cni_rules.h"

void sriov_config_done(struct sriov_config *config)
{
	json_decref(config->folded);
	json_decref(config->wanted);
	*config = (struct sriov_config){0};
}

static int bad_field(struct err *err, const char *key, const char *must)
{
	return err_set(err, ERR_INVALID, "BadField", "sriov: %s must be %s", key, must);
}

int sriov_config_read(const json_t *config, const char *args, struct sriov_config *ret,
		      struct err *err)
{
	auto_sriov_config struct sriov_config read = {.wanted = json_object()};

	if (config_keys_read(config, "sriov", &read.folded, err) < 0)
		return -1;
	config = read.folded;
	read.device = json_str_at(config, "deviceID");
	if (!pci_address_is_valid(json_str_or(json_at(config, "deviceID"), "")))
		return bad_field(err, "deviceID",
				 "the PCI address of a VF; the network's NAD needs the annotation "
				 "k8s.v1.cni.cncf.io/resourceName, so that Multus fills it in");
	if (cni_rules_vf_settings("sriov", config, read.wanted, NULL, err) ||
	    wanted_mac_read("sriov", config, args, read.mac, err))
		return -1;
	if (read.mac[0])
		json_put_str(read.wanted, "mac", read.mac);
	*ret = read;
	read = (struct sriov_config){0};
	return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Settings that go to the kernel together. */
static const struct {
	const char *keys[3];
} settings[] = {
	{{"vlan", "qos", "proto"}},
	{{"mac"}},
	{{"minRate", "maxRate"}},
	{{"nodeGuid"}},
	{{"portGuid"}},
	{{"spoofchk"}},
	{{"trust"}},
	{{"linkState"}},
};

/* 802.1Q is what drivers that know no other do not name. */
static int64_t number_of(const json_t *state, const char *key)
{
	if (str_eq(key, "proto") && !look_number(state, key))
		return CNI_PROTO_8021Q;
	return look_number(state, key);
}

static bool is_same(const json_t *from, const json_t *to, const char *key)
{
	const json_t *a = json_at(from, key), *b = json_at(to, key);

	if (json_is_string(b) || json_is_boolean(b))
		return json_same(a, b);
	return number_of(from, key) == number_of(to, key);
}

void sriov_plan_settings(const char *pf, int64_t vf, const json_t *from, const json_t *to,
			 json_t *steps)
{
	assert(pf && vf >= 0 && json_is_array(steps));
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		json_auto_t *now = json_object(), *was = json_object();
		bool differs = false;
		json_t *step;

		for (size_t k = 0; k < 3 && settings[i].keys[k]; k++) {
			const char *key = settings[i].keys[k];

			if (!json_at(to, key))
				continue;
			differs |= !is_same(from, to, key);
			json_put(now, key, json_deep_copy(json_at(to, key)));
			if (json_is_string(json_at(to, key)) || json_is_boolean(json_at(to, key)))
				json_put(was, key, json_deep_copy(json_at(from, key)));
			else
				json_put_int(was, key, number_of(from, key));
		}
		if (!differs)
			continue;
		step = steps_add(steps, "host", "vf", pf);
		json_put_int(step, "vf", vf);
		json_object_update(step, now);
		json_put(step, "was", json_deep_copy(was));
	}
}

/* dev: what it is called by then. */
static void plan_mac(const char *dev, const json_t *link, const char *mac, const char *pf,
		     int64_t vf, json_t *steps)
{
	const char *was = json_str_at(link, "mac");
	json_t *step;

	if (!mac || str_eq(was, mac))
		return;
	step = steps_add(steps, "host", "mac", dev);
	json_put_str(step, "mac", mac);
	json_put_str(step, "was", was);
	json_put_str(step, "pf", pf);
	json_put_int(step, "vf", vf);
}

void sriov_plan(const struct sriov_config *config, const struct sriov_facts *facts, json_t *steps)
{
	static const struct {
		const char *path, *value;
	} sysctls[] = {
		{"net/ipv4/conf/%s/arp_notify", "1"},
		{"net/ipv6/conf/%s/ndisc_notify", "1"},
		{"net/ipv6/conf/%s/optimistic_dad", "1"},
	};
	json_t *step;

	assert(!facts->netdev == !facts->link);
	sriov_plan_settings(facts->pf, facts->vf, facts->state, config->wanted, steps);
	if (!facts->netdev)
		return;
	/* Down before it moves: nothing goes out under a stranger's settings. */
	step = steps_add(steps, "host", "link", facts->netdev);
	json_put_bool(step, "up", false);
	if (look_number(facts->link, "flags") & LOOK_UP)
		json_put_bool(json_need_object(step, "was"), "up", true);
	/* A device cannot take a name that it has as an alternative one. */
	if (json_list_has(json_at(facts->link, "altNames"), facts->ifname))
		json_put_str(steps_add(steps, "host", "unalt", facts->netdev), "name",
			     facts->ifname);
	if (config->mac[0])
		plan_mac(facts->netdev, facts->link, config->mac, facts->pf, facts->vf, steps);
	step = steps_add(steps, "host", "move", facts->netdev);
	json_put_str(step, "as", facts->ifname);
	for (size_t i = 0; i < ARRAY_LEN(sysctls); i++) {
		const char *rest = strstr(sysctls[i].path, "%s") + 2;

		step = steps_add(steps, "pod", "sysctl", NULL);
		json_put(step, "path",
			 json_fmt("%.*s%s%s", (int)(rest - 2 - sysctls[i].path), sysctls[i].path,
				  facts->ifname, rest));
		json_put_str(step, "value", sysctls[i].value);
		json_put_bool(step, "optional", true);
	}
	json_put_bool(steps_add(steps, "pod", "link", facts->ifname), "up", true);
}

int sriov_check_settings(const struct sriov_config *config, const json_t *state, struct err *err)
{
	static const char *const keys[] = {"vlan", "qos", "spoofchk", "trust"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *is = json_at(state, keys[i]);
		const json_t *wanted = json_at(config->wanted, keys[i]);
		auto_free char *is_text = is ? json_text(is) : NULL;
		auto_free char *wanted_text = wanted ? json_text(wanted) : NULL;

		if (is && wanted && !json_same(is, wanted))
			return err_set(err, ERR_HOST, "NotAsAdded",
				       "sriov: somebody changed the settings of %s: its %s is %s, "
				       "%s was set",
				       config->device, keys[i], is_text, wanted_text);
	}
	return 0;
}

/* ---- the way back ---------------------------------------------------------------------------- */

const char *sriov_plan_name(const json_t *link, const char *name, json_t *steps)
{
	const char *now = json_str_at(link, "name");

	assert(link && name);
	if (str_eq(now, name))
		return name;
	if (json_list_has(json_at(link, "altNames"), name))
		json_put_str(steps_add(steps, "host", "unalt", now), "name", name);
	json_put_str(steps_add(steps, "host", "rename", now), "as", name);
	return name;
}

static void plan_no_xdp(const char *in, const char *dev, int64_t attached, json_t *steps)
{
	/* XDP_FLAGS_SKB_MODE, _DRV_MODE and _HW_MODE by XDP_ATTACHED_…; 4 is several at once. */
	static const struct {
		int attached, mode;
	} modes[] = {{1, 1 << 2}, {2, 1 << 1}, {3, 1 << 3}};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (attached == modes[i].attached || attached == 4)
			json_put_int(steps_add(steps, in, "unxdp", dev), "mode", modes[i].mode);
}

void sriov_plan_fresh(const char *in, const json_t *link, const json_t *saved, json_t *steps)
{
	const char *dev = json_str_at(link, "name"), *name = json_str_at(saved, "name");
	const char *alias = json_str_or(json_at(saved, "alias"), "");
	const json_t *kept = json_at(saved, "altNames"), *altname;
	size_t i;

	assert(json_is_array(steps));
	plan_no_xdp(in, dev, look_number(link, "xdp"), steps);
	if (look_number(link, "flags") & (LOOK_PROMISC | LOOK_ALLMULTI))
		json_put_bool(steps_add(steps, in, "link", dev), "deaf", true);
	if (!str_eq(json_str_or(json_at(link, "alias"), ""), alias))
		json_put_str(steps_add(steps, in, "alias", dev), "as", alias);
	/* Of an attachment that noted none, all may have been there before. */
	if (!kept)
		return;
	json_array_foreach (json_at(link, "altNames"), i, altname)
		if (!json_list_has(kept, json_string_value(altname)) &&
		    !str_eq(json_string_value(altname), name))
			json_put_str(steps_add(steps, in, "unalt", dev), "name",
				     json_string_value(altname));
}

void sriov_plan_return(const struct sriov_return *facts, json_t *steps)
{
	const char *name = json_str_at(facts->saved, "name");
	const char *dev = json_str_at(facts->link, "name");
	int64_t mtu = look_number(facts->saved, "mtu");
	size_t i;
	json_t *step;

	json_array_foreach (json_at(facts->saved, "settings"), i, step) {
		json_t *again = json_deep_copy(step);

		json_put_str(again, "dev", facts->pf);
		json_array_append_new(steps, again);
	}
	if (!name || !dev)
		return;
	sriov_plan_fresh("host", facts->link, facts->saved, steps);
	if (look_number(facts->link, "flags") & LOOK_UP)
		json_put_bool(steps_add(steps, "host", "link", dev), "up", false);
	if (facts->name_is_free)
		dev = sriov_plan_name(facts->link, name, steps);
	plan_mac(dev, facts->link, json_str_at(facts->saved, "mac"), facts->pf, facts->vf, steps);
	if (mtu && mtu != look_number(facts->link, "mtu"))
		json_put_int(steps_add(steps, "host", "link", dev), "mtu", mtu);
	/* The pod's tuning has nothing to undo it in once the namespace has ended. */
	if (json_at(facts->saved, "txqlen") &&
	    look_number(facts->saved, "txqlen") != look_number(facts->link, "txqlen"))
		json_put_int(steps_add(steps, "host", "link", dev), "txqlen",
			     look_number(facts->saved, "txqlen"));
}

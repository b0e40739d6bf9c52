// SPDX-License-Identifier: Apache-2.0
/*
 * A table of the bonding driver's options, and a reader of "name=value;name=value" on top of it.
 * Both plugin and operator call it through ifacer_config_read(): what the kernel would refuse for
 * each pod is refused once, with the option's name.
 */
#include "nodeagent/cni/plan/bond_options.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/addr.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/model/text.h"

enum bond_mode { ROUND_ROBIN, ACTIVE_BACKUP, XOR, BROADCAST, LACP, TLB, ALB };

#define MODE(mode)   (1u << (mode))
#define ALL_MODES    0x7fu
#define HAVE_PRIMARY (MODE(ACTIVE_BACKUP) | MODE(TLB) | MODE(ALB))
#define HAVE_ARP     (ALL_MODES & ~(MODE(LACP) | MODE(TLB) | MODE(ALB)))

enum option_form { FORM_NUMBER, FORM_DEVICE, FORM_MAC, FORM_ADDRESSES };

struct bond_option {
	const char *name;
	int number, bits;
	int64_t max;
	unsigned int modes;
	enum option_form form;
};

/*
 * up_delay is Spiderpool's name, updelay the driver's. Spiderpool's peer_notif_delay is a number of
 * notifications.
 */
static const struct bond_option options_known[] = {
	{"miimon", 3, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"up_delay", 4, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"updelay", 4, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"downdelay", 5, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"use_carrier", 6, 8, 1, ALL_MODES, FORM_NUMBER},
	{"arp_interval", 7, 32, INT32_MAX, HAVE_ARP, FORM_NUMBER},
	{"arp_ip_target", 8, 32, 0, ALL_MODES, FORM_ADDRESSES},
	{"arp_validate", 9, 32, 6, HAVE_ARP, FORM_NUMBER},
	{"arp_all_targets", 10, 32, 1, ALL_MODES, FORM_NUMBER},
	{"primary", 11, 32, 0, HAVE_PRIMARY, FORM_DEVICE},
	{"primary_reselect", 12, 8, 2, ALL_MODES, FORM_NUMBER},
	{"fail_over_mac", 13, 8, 2, ALL_MODES, FORM_NUMBER},
	{"xmit_hash_policy", 14, 8, 5, ALL_MODES, FORM_NUMBER},
	{"resend_igmp", 15, 32, 255, ALL_MODES, FORM_NUMBER},
	{"peer_notif_delay", 16, 8, 255, ALL_MODES, FORM_NUMBER},
	{"all_slaves_active", 17, 8, 1, ALL_MODES, FORM_NUMBER},
	{"min_links", 18, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"lp_interval", 19, 32, INT32_MAX, ALL_MODES, FORM_NUMBER},
	{"packets_per_slave", 20, 32, UINT16_MAX, MODE(ROUND_ROBIN), FORM_NUMBER},
	{"lacp_rate", 21, 8, 1, MODE(LACP), FORM_NUMBER},
	{"ad_select", 22, 8, 3, ALL_MODES, FORM_NUMBER},
	{"ad_actor_sys_prio", 24, 16, UINT16_MAX, MODE(LACP), FORM_NUMBER},
	{"ad_user_port_key", 25, 16, 1023, MODE(LACP), FORM_NUMBER},
	{"ad_actor_system", 26, 48, 0, MODE(LACP), FORM_MAC},
	{"tlb_dynamic_lb", 27, 8, 1, MODE(TLB) | MODE(ALB), FORM_NUMBER},
};

#define bad_option(err, ...)                                                                       \
	err_set(err, ERR_INVALID, "BadField", "ifacer: bond.options: " __VA_ARGS__)

static const struct bond_option *find_option(const char *name)
{
	/* As Go finds the key of a structure. */
	for (size_t i = 0; i < ARRAY_LEN(options_known); i++)
		if (strcasecmp(options_known[i].name, name) == 0)
			return &options_known[i];
	return NULL;
}

static int read_number(const struct bond_option *option, const char *text, json_t *entry,
		       struct err *err)
{
	int64_t value;

	if (!str_to_int(text, INT64_MIN, INT64_MAX, &value) || value > option->max)
		return bad_option(err, "%s must be a number up to %lld, as in \"miimon=100\"",
				  option->name, (long long)option->max);
	if (value <= 0)
		return 0;
	json_put_int(entry, "bits", option->bits);
	json_put_int(entry, "value", value);
	return 0;
}

/* The kernel refuses an address that is there twice. */
static int read_addresses(const char *text, json_t *entry, struct err *err)
{
	json_auto_t *list = json_parse(text, strlen(text), NULL), *addresses = json_array();
	size_t i;
	json_t *item;

	if (!json_is_array(list) || json_array_size(list) > BOND_TARGETS_MAX)
		return bad_option(err,
				  "arp_ip_target must be a list of up to %d addresses, as in "
				  "arp_ip_target=[\"10.0.0.1\"]",
				  BOND_TARGETS_MAX);
	json_array_foreach (list, i, item) {
		struct addr address = {0};
		char canonical[ADDR_TEXT_SIZE];

		if (!json_is_string(item) || !addr_parse(json_string_value(item), &address) ||
		    address.family != 4 || addr_is_unspecified(&address) ||
		    str_eq(json_string_value(item), "255.255.255.255"))
			return bad_option(err,
					  "arp_ip_target[%zu] must be the IPv4 address of a "
					  "machine, in quotes",
					  i);
		addr_print(&address, canonical);
		if (json_list_has(addresses, canonical))
			return bad_option(err, "arp_ip_target has %s twice; remove one", canonical);
		json_array_append_new(addresses, json_string(canonical));
	}
	if (json_array_size(addresses))
		json_put(entry, "addresses", json_incref(addresses));
	return 0;
}

/* The entry gets its value; none where the value has no effect. */
static int read_value(const struct bond_option *option, const char *text, json_t *entry,
		      struct err *err)
{
	unsigned char mac[6];

	switch (option->form) {
	case FORM_NUMBER:
		return read_number(option, text, entry, err);
	case FORM_ADDRESSES:
		return read_addresses(text, entry, err);
	case FORM_DEVICE:
		if (*text && !config_keys_is_ifname(text))
			return bad_option(err, "%s must be the name of an interface", option->name);
		if (*text)
			json_put_str(entry, "device", text);
		return 0;
	case FORM_MAC:
		if (*text && !text_to_unicast_mac(text, mac))
			return bad_option(err, "%s must be a MAC address of one station",
					  option->name);
		if (*text)
			json_put_str(entry, "mac", text);
		return 0;
	}
	return 0;
}

/* The last of several counts. */
static void put_entry(json_t *entries, json_t *entry)
{
	size_t i;
	json_t *other;

	json_array_foreach (entries, i, other)
		if (json_equal(json_at(other, "number"), json_at(entry, "number"))) {
			json_array_set(entries, i, entry);
			return;
		}
	json_array_append(entries, entry);
}

/* 1: the text is an option that has an effect; 0: it has none; -1 with err. */
static int read_entry(char *text, int64_t mode, json_t *entries, struct err *err)
{
	char *name = str_trim(strsep(&text, "="));
	const struct bond_option *option = find_option(name);
	json_auto_t *entry = json_object();

	if (strcasecmp(name, "active_slave") == 0 && text && *str_trim(text))
		return bad_option(err, "active_slave cannot be given to a bond that has no ports "
				       "yet; use primary");
	if (!option || !text || strchr(text, '='))
		return 0;
	json_put_int(entry, "number", option->number);
	if (read_value(option, str_trim(text), entry, err))
		return -1;
	if (json_object_size(entry) < 2)
		return 0;
	/* The kernel would refuse the whole bond. */
	if (!(option->modes & MODE(mode)))
		return 0;
	put_entry(entries, entry);
	return 1;
}

static bool has_option(const json_t *entries, const char *name)
{
	size_t i;
	json_t *entry;

	json_array_foreach (entries, i, entry)
		if (json_integer_value(json_at(entry, "number")) == find_option(name)->number)
			return true;
	return false;
}

/* What the driver refuses of two options. */
static int check_together(const json_t *entries, int64_t mode, struct err *err)
{
	static const char *const delays[] = {"up_delay", "downdelay"};
	static const char *const probes[] = {"arp_interval", "arp_validate"};
	bool has_miimon = has_option(entries, "miimon");

	/* Modes without ARP monitoring have a miimon of their own. */
	for (size_t i = 0; i < ARRAY_LEN(delays) && !has_miimon && MODE(mode) & HAVE_ARP; i++)
		if (has_option(entries, delays[i]))
			return bad_option(err, "%s needs miimon with mode %lld; add it", delays[i],
					  (long long)mode);
	for (size_t i = 0; i < ARRAY_LEN(probes) && has_miimon; i++)
		if (has_option(entries, probes[i]))
			return bad_option(err, "%s and miimon cannot both be given; remove one",
					  probes[i]);
	return 0;
}

int bond_options_read(const char *text, int64_t mode, json_t *options, json_t *ret_ignored,
		      struct err *err)
{
	auto_free char *copy = str_dup(text ? text : "");
	json_auto_t *entries = json_array(), *ignored = json_array();
	char *rest = copy, *part;

	assert(mode >= ROUND_ROBIN && mode <= ALB && json_is_array(options));
	while ((part = strsep(&rest, ";"))) {
		json_auto_t *written = json_string(str_trim(part));
		int rc;

		if (!json_string_length(written))
			continue;
		rc = read_entry(part, mode, entries, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			json_array_append(ignored, written);
	}
	if (check_together(entries, mode, err))
		return -1;
	json_array_extend(options, entries);
	if (ret_ignored)
		json_array_extend(ret_ignored, ignored);
	return 0;
}

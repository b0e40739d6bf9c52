// SPDX-License-Identifier: Apache-2.0
/*
 * The table of steps, and whether a JSON object is one of them. Pure: nothing here looks at a host.
 */
#include "nodeagent/model/step.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/model/text.h"

static const char *const netns_modes[] = {"shared", "exclusive", NULL};
static const char *const eswitch_modes[] = {"legacy", "switchdev", NULL};
static const char *const guid_kinds[] = {"node", "port", NULL};
static const char *const link_states[] = {"auto", "enable", "disable", NULL};
static const char *const vf_parts[] = {"driver", "netdev", "rdma", NULL};
static const char *const udev_rules[] = {"pf-name", "nm-unmanaged", NULL};
/* What a reboot may be for. The same cause never reboots twice without effect. */
static const char *const boot_causes[] = {"rdma-mode-shared", "rdma-mode-exclusive", NULL};
/* What a node may lack; nothing else is loaded. */
static const char *const modules[] = {"ib_core", "ib_umad",  "ib_uverbs", "rdma_ucm",
				      "mlx5_ib", "vfio-pci", NULL};

/*
 * Drivers that a VF may be given by name: for userspace, as sriov-network-operator knows them, and
 * the kernel's own for VFs (drivers/net/ethernet, drivers/vfio/pci), to which one may be put back.
 */
static const char *const vf_drivers[] = {"vfio-pci",  "uio_pci_generic",
					 "igb_uio",   "mlx5_vfio_pci",
					 "mlx5_core", "mlx4_core",
					 "iavf",      "ixgbevf",
					 "igbvf",     "fm10k",
					 "bnxt_en",   "bnx2x",
					 "qede",      "be2net",
					 "cxgb4vf",   "sfc",
					 "enic",      "ionic",
					 "nfp_netvf", "hns3",
					 "hinic",     NULL};

#define DRIVER                                                                                     \
	{                                                                                          \
		.name = "driver", .type = STEP_FIELD_CHOICE, .choices = vf_drivers,                \
		.optional = true                                                                   \
	}
#define ADDRESS(name_)                                                                             \
	{                                                                                          \
		.name = (name_), .type = STEP_FIELD_ADDRESS                                        \
	}
#define CHOICE(name_, list_)                                                                       \
	{                                                                                          \
		.name = (name_), .type = STEP_FIELD_CHOICE, .choices = (list_)                     \
	}
#define OF_VFS(each_, list_)                                                                       \
	{                                                                                          \
		.name = "vfs", .type = STEP_FIELD_OF_VFS, .each = (each_), .choices = (list_)      \
	}
#define NUMBER(name_, min_, max_)                                                                  \
	{                                                                                          \
		.name = (name_), .type = STEP_FIELD_COUNT, .min = (min_), .max = (max_)            \
	}
/* In the order in which the planner goes through a PF. */
static const struct step_kind kinds[] = {
	{
		.name = "load-module",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 30000,
		.fields = {CHOICE("module", modules)},
	},
	{
		.name = "write-udev-rule",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 5000,
		.fields = {ADDRESS("pf"),
			   CHOICE("rule", udev_rules),
			   {.name = "name", .type = STEP_FIELD_NAME, .optional = true}},
	},
	{
		.name = "remove-udev-rule",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 5000,
		.fields = {ADDRESS("pf"), CHOICE("rule", udev_rules)},
	},
	{
		.name = "set-autoprobe",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 5000,
		.fields = {ADDRESS("pf"), {.name = "on", .type = STEP_FIELD_BOOL}},
	},
	{
		.name = "set-num-vfs",
		.impact = STEP_IMPACT_PF,
		.deadline_ms = 30000,
		.deadline_per_vf_ms = 2000,
		.fields = {ADDRESS("pf"),
			   NUMBER("count", 0, PCI_VFS_MAX),
			   {.name = "from",
			    .type = STEP_FIELD_COUNT,
			    .optional = true,
			    .max = PCI_VFS_MAX},
			   {.name = "force", .type = STEP_FIELD_BOOL, .optional = true}},
	},
	{
		.name = "wait-vfs",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 30000,
		.deadline_per_vf_ms = 1000,
		.fields = {ADDRESS("pf"), NUMBER("count", 0, PCI_VFS_MAX)},
	},
	{
		.name = "set-eswitch",
		.impact = STEP_IMPACT_PF,
		.deadline_ms = 120000,
		.fields = {ADDRESS("pf"),
			   CHOICE("mode", eswitch_modes),
			   {.name = "afterVfs", .type = STEP_FIELD_BOOL, .optional = true}},
	},
	{
		.name = "set-firmware",
		.impact = STEP_IMPACT_PF,
		.deadline_ms = 180000,
		.fields = {ADDRESS("pf"), NUMBER("count", 1, PCI_VFS_MAX)},
	},
	{
		.name = "set-mtu",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 15000,
		.fields = {ADDRESS("device"), NUMBER("mtu", STEP_MTU_MIN, STEP_MTU_MAX)},
	},
	{
		.name = "link-up",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 15000,
		.fields = {ADDRESS("device")},
	},
	{
		/* In as much time as a driver needs that starts all queues again. */
		.name = "set-nic-setting",
		.impact = STEP_IMPACT_PF, /* the planner knows better: it depends on the driver */
		.deadline_ms = 60000,
		.fields = {ADDRESS("pf"),
			   {.name = "setting", .type = STEP_FIELD_NAME},
			   {.name = "value", .type = STEP_FIELD_SETTING}},
	},
	{
		.name = "set-vf-mac",
		.impact = STEP_IMPACT_VF,
		.deadline_ms = 15000,
		.deadline_per_vf_ms = 1000,
		.fields = {ADDRESS("pf"), OF_VFS(STEP_FIELD_MAC, NULL)},
	},
	{
		.name = "set-vf-guid",
		.impact = STEP_IMPACT_VF,
		.deadline_ms = 15000,
		.deadline_per_vf_ms = 1000,
		.fields = {ADDRESS("pf"), CHOICE("which", guid_kinds),
			   OF_VFS(STEP_FIELD_GUID, NULL)},
	},
	{
		.name = "set-vf-link-state",
		.impact = STEP_IMPACT_VF,
		.deadline_ms = 15000,
		.deadline_per_vf_ms = 1000,
		.fields = {ADDRESS("pf"), OF_VFS(STEP_FIELD_CHOICE, link_states)},
	},
	{
		.name = "set-driver-override",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 5000,
		.fields = {ADDRESS("vf"), DRIVER},
	},
	{
		.name = "unbind-driver",
		.impact = STEP_IMPACT_VF,
		.deadline_ms = 30000,
		.fields = {ADDRESS("vf")},
	},
	{
		.name = "probe-driver",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 60000,
		.fields = {ADDRESS("vf"), DRIVER},
	},
	{
		.name = "wait-vf",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 15000,
		.fields = {ADDRESS("vf"), CHOICE("for", vf_parts)},
	},
	{
		.name = "set-rdma-netns-mode",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 10000,
		.fields = {CHOICE("mode", netns_modes)},
	},
	{
		.name = "write-rdma-next-boot",
		.impact = STEP_IMPACT_REBOOT,
		.deadline_ms = 10000,
		.fields = {CHOICE("mode", netns_modes)},
	},
	{
		.name = "remove-rdma-next-boot",
		.impact = STEP_IMPACT_REBOOT,
		.deadline_ms = 10000,
		.fields = {{.name = NULL}},
	},
	{
		.name = "record-reboot",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 10000,
		.fields = {CHOICE("cause", boot_causes), {.name = "boot", .type = STEP_FIELD_NAME}},
	},
	{
		.name = "close-reboot",
		.impact = STEP_IMPACT_NONE,
		.deadline_ms = 10000,
		.fields = {CHOICE("cause", boot_causes)},
	},
	{
		.name = "reboot",
		.impact = STEP_IMPACT_REBOOT,
		.deadline_ms = 60000,
		.fields = {CHOICE("cause", boot_causes), {.name = "boot", .type = STEP_FIELD_NAME}},
	},
};

const struct step_kind *step_kinds(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(kinds);
	return kinds;
}

static const struct step_kind *step_kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

const char *const step_impact_names[] = {
	[STEP_IMPACT_NONE] = "none",
	[STEP_IMPACT_VF] = "vf",
	[STEP_IMPACT_PF] = "pf",
	[STEP_IMPACT_REBOOT] = "reboot",
};

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_name(const char *value)
{
	size_t len = value ? strlen(value) : 0;

	if (len == 0 || len > 63 || str_eq(value, ".") || str_eq(value, ".."))
		return false;
	for (const char *p = value; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return false;
	return true;
}

static bool value_is_right(const struct step_field *field, const json_t *value);

static bool are_of_vfs(const struct step_field *field, const json_t *values)
{
	const struct step_field each = {.type = field->each, .choices = field->choices};
	const char *key;
	char same[16];
	int64_t number;
	json_t *value;

	json_each (values, key, value) {
		if (!str_to_int(key, 0, PCI_VFS_MAX - 1, &number))
			return false;
		/* A VF has one key: "07" is not a second one. */
		(void)snprintf(same, sizeof(same), "%" PRId64, number);
		if (!str_eq(key, same) || !value_is_right(&each, value))
			return false;
	}
	return json_object_size(values) > 0;
}

static bool value_is_right(const struct step_field *field, const json_t *value)
{
	const char *text = json_string_value(value);
	unsigned char mac[6];
	uint64_t guid;

	switch (field->type) {
	case STEP_FIELD_NONE:
		return false;
	case STEP_FIELD_ADDRESS:
		return text && pci_address_is_valid(text);
	case STEP_FIELD_COUNT:
		return json_is_integer(value) && json_integer_value(value) >= field->min &&
		       json_integer_value(value) <= field->max;
	case STEP_FIELD_BOOL:
		return json_is_boolean(value);
	case STEP_FIELD_MAC:
		return text_to_unicast_mac(text, mac);
	case STEP_FIELD_GUID:
		return text && text_to_guid(text, &guid) && guid != 0 && guid != UINT64_MAX;
	case STEP_FIELD_CHOICE:
		for (size_t i = 0; text && field->choices[i]; i++)
			if (str_eq(field->choices[i], text))
				return true;
		return false;
	case STEP_FIELD_NAME:
		return is_name(text);
	case STEP_FIELD_OF_VFS:
		return are_of_vfs(field, value);
	case STEP_FIELD_SETTING:
		/* step_check() looks, which knows the setting. */
		return true;
	}
	return false;
}

static char *what_is_right(const struct step_field *field)
{
	const struct step_field each = {.type = field->each, .choices = field->choices};
	auto_strbuf struct strbuf list = {0};
	auto_free char *one = NULL;

	switch (field->type) {
	case STEP_FIELD_NONE:
		break;
	case STEP_FIELD_ADDRESS:
		return str_dup("a PCI address like 0000:3b:00.0");
	case STEP_FIELD_COUNT:
		return str_printf("an integer from %d to %d", field->min, field->max);
	case STEP_FIELD_BOOL:
		return str_dup("true or false");
	case STEP_FIELD_MAC:
		return str_dup("a unicast MAC address like 02:00:00:00:00:01, not zero");
	case STEP_FIELD_GUID:
		return str_dup("a GUID of eight octets like 02:00:00:00:00:00:00:01, neither zero "
			       "nor all ones");
	case STEP_FIELD_CHOICE:
		for (size_t i = 0; field->choices[i]; i++)
			strbuf_addf(&list, "%s%s", i ? ", " : "one of ", field->choices[i]);
		return strbuf_take(&list);
	case STEP_FIELD_NAME:
		return str_dup("a name of 1 to 63 of A-Z a-z 0-9 . _ -");
	case STEP_FIELD_OF_VFS:
		one = what_is_right(&each);
		return str_printf("an object with numbers of VFs as keys, each %s", one);
	case STEP_FIELD_SETTING:
		break;
	}
	return str_dup("absent");
}

static int bad_field(const json_t *step, const struct step_field *field, const json_t *value,
		     struct err *err)
{
	auto_free char *right = what_is_right(field), *text = value ? json_text(value) : NULL;

	return err_set(err, ERR_BUG, "BadStep", "step %s: %s: %.80s, must be %s",
		       json_str_at(step, "step"), field->name, text ? text : "is missing", right);
}

static const struct step_field *field_of(const struct step_kind *kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kind->fields) && kind->fields[i].name; i++)
		if (str_eq(kind->fields[i].name, name))
			return &kind->fields[i];
	return NULL;
}

const struct step_kind *step_check(const json_t *step, struct err *err)
{
	const char *name = json_str_at(step, "step");
	const struct step_kind *kind = step_kind_find(name);
	const struct step_field *name_field;
	struct err wrong = {0};
	const char *key;
	json_t *member;

	if (!kind) {
		(void)err_set(err, ERR_BUG, "BadStep", "there is no step \"%.64s\"",
			      name ? name : "");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(kind->fields) && kind->fields[i].name; i++) {
		const struct step_field *field = &kind->fields[i];
		const json_t *value = json_object_get(step, field->name);

		if (!value && field->optional)
			continue;
		if (!value_is_right(field, value)) {
			(void)bad_field(step, field, value, err);
			return NULL;
		}
	}
	/* Fields that depend on another. */
	if (field_of(kind, "setting") &&
	    nic_setting_check(json_str_at(step, "setting"), json_at(step, "value"), &wrong) < 0) {
		(void)err_set(err, ERR_BUG, "BadStep", "step %s: %s", kind->name, wrong.text);
		return NULL;
	}
	name_field = field_of(kind, "name");
	if (name_field && str_eq(json_str_at(step, "rule"), "pf-name") && !json_at(step, "name")) {
		(void)bad_field(step, name_field, NULL, err);
		return NULL;
	}
	json_each (step, key, member) {
		if (str_eq(key, "step") || field_of(kind, key))
			continue;
		(void)err_set(err, ERR_BUG, "BadStep", "step %s: has no field \"%.64s\"",
			      kind->name, key);
		return NULL;
	}
	return kind;
}

int step_deadline_ms(const json_t *step)
{
	const struct step_kind *kind = step_kind_find(json_str_at(step, "step"));
	json_int_t count = json_integer_value(json_at(step, "count"));
	json_int_t from = json_integer_value(json_at(step, "from"));
	json_int_t vfs = (json_int_t)json_object_size(json_at(step, "vfs"));

	if (!kind)
		return 0;
	count = count > from ? count : from;
	return kind->deadline_ms + kind->deadline_per_vf_ms * (int)(count > vfs ? count : vfs);
}

// SPDX-License-Identifier: Apache-2.0
/* Inventories and the statuses that follow from them. See the header. */
#include "tests/fakes/node_inventory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"

/* ---- PCI addresses --------------------------------------------------------------------------- */

/* "0000:af:00.1" as a routing ID; false when it is no such address. */
static bool pci_parse(const char *text, unsigned int *ret_domain, unsigned int *ret_id)
{
	unsigned int bus = 0, device = 0, function = 0;
	int end = 0;

	if (!text ||
	    sscanf(text, "%4x:%2x:%2x.%1x%n", ret_domain, &bus, &device, &function, &end) != 4 ||
	    text[end] != '\0' || end != 12 || device > 0x1f || function > 7)
		return false;
	*ret_id = bus << 8 | device << 3 | function;
	return true;
}

/*
 * VF `number` of a PF: the PF's routing ID + offset + number × stride (PCI Express Base
 * Specification, SR-IOV capability). The offset leaves room for eight functions; the VFs of each
 * function follow those of the one before.
 */
static json_t *vf_address(const json_t *pf, int64_t number)
{
	unsigned int domain = 0, id = 0;
	int64_t total = json_integer_value(json_at(pf, "totalvfs"));

	if (!pci_parse(json_str_at(pf, "pciAddress"), &domain, &id))
		return json_string("");
	id = (id & ~7u) + 8 + (unsigned int)((id & 7) * total + number);
	return json_fmt("%04x:%02x:%02x.%x", domain, id >> 8 & 0xff, id >> 3 & 0x1f, id & 7);
}

/* ---- inventories ----------------------------------------------------------------------------- */

static int shape_part(char *part, struct inventory_shape *shape, struct err *err)
{
	char *value = strchr(part, '=');
	int64_t *number = NULL;
	int64_t max = 0;

	if (!value)
		return err_set(err, ERR_INVALID, "BadShape", "\"%s\": must be NAME=VALUE", part);
	*value++ = '\0';
	if (str_eq(part, "prefix")) {
		shape->prefix = value;
		return 0;
	}
	if (str_eq(part, "nodes")) {
		number = &shape->nodes;
		max = INVENTORY_MAX_NODES;
	} else if (str_eq(part, "pfs")) {
		number = &shape->pfs;
		max = INVENTORY_MAX_PFS;
	} else if (str_eq(part, "vfs")) {
		number = &shape->vfs;
		max = INVENTORY_MAX_VFS;
	} else {
		return err_set(err, ERR_INVALID, "BadShape",
			       "\"%s\": must be nodes, pfs, vfs or prefix", part);
	}
	if (!str_to_int(value, 1, max, number))
		return err_set(err, ERR_INVALID, "BadShape",
			       "%s=\"%s\": must be a number from 1 to %" PRId64, part, value, max);
	return 0;
}

int inventory_shape_parse(char *text, struct inventory_shape *ret, struct err *err)
{
	struct inventory_shape shape = {.prefix = "node-", .nodes = 1, .pfs = 2, .vfs = 8};
	char *part;

	while ((part = strsep(&text, ",")))
		if (shape_part(part, &shape, err) < 0)
			return -1;
	*ret = shape;
	return 0;
}

/* PF i sits alone on bus 0x10 + 2i, so that its VFs fit on that bus and the next. */
static json_t *generated_pf(const struct inventory_shape *shape, int64_t node, int64_t i)
{
	json_t *pf = json_object();

	json_put(pf, "pciAddress", json_fmt("0000:%02x:00.0", (unsigned int)(0x10 + 2 * i)));
	json_put(pf, "name", json_fmt("ens%" PRId64 "f0np0", i + 1));
	json_put(pf, "mac",
		 json_fmt("02:%02x:%02x:%02x:00:00", (unsigned int)(node >> 8),
			  (unsigned int)(node & 0xff), (unsigned int)i));
	json_put_str(pf, "vendor", "15b3");
	json_put_str(pf, "deviceID", "1017");
	json_put_str(pf, "vfDeviceID", "1018");
	json_put_str(pf, "driver", "mlx5_core");
	json_put_int(pf, "mtu", 1500);
	json_put_int(pf, "totalvfs", shape->vfs);
	json_put_str(pf, "linkType", "ETH");
	json_put_str(pf, "linkSpeed", "100000 Mb/s");
	return pf;
}

json_t *inventory_generate(const struct inventory_shape *shape, int64_t number)
{
	json_t *inventory = json_object(), *pfs = json_array();

	json_put(inventory, "name", json_fmt("%s%05" PRId64, shape->prefix, number));
	json_put_str(inventory, "rdmaMode", "shared");
	for (int64_t i = 0; i < shape->pfs; i++)
		json_array_append_new(pfs, generated_pf(shape, number, i));
	json_put(inventory, "interfaces", pfs);
	return inventory;
}

static int check_pf(const json_t *pf, size_t i, struct err *err)
{
	static const char *const texts[] = {"name",   "mac",      "vendor",    "deviceID",
					    "driver", "linkType", "linkSpeed", "vfDeviceID"};
	auto_free char *where = str_printf("interfaces[%zu]", i);
	const char *text = NULL;
	int64_t number = 0;
	unsigned int domain = 0, id = 0;

	if (!json_is_object(pf))
		return err_set(err, ERR_INVALID, "BadField", "%s: is %s, must be an object", where,
			       json_type_words(pf));
	if (json_get_str(pf, where, "pciAddress", "", &text, err) < 0)
		return -1;
	if (!pci_parse(text, &domain, &id))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s.pciAddress: \"%s\" must look like 0000:af:00.0", where, text);
	for (size_t t = 0; t < ARRAY_LEN(texts); t++)
		if (json_get_str(pf, where, texts[t], "", &text, err) < 0)
			return -1;
	if (json_get_int(pf, where, "mtu", 68, 65535, 1500, &number, err) < 0 ||
	    json_get_int(pf, where, "totalvfs", 0, INVENTORY_MAX_VFS, 0, &number, err) < 0)
		return -1;
	return 0;
}

static int check_inventory(const json_t *inventory, struct err *err)
{
	const json_t *object = NULL, *pfs = NULL, *pf = NULL;
	const char *text = NULL;
	size_t i;

	if (!json_is_object(inventory))
		return err_set(err, ERR_INVALID, "BadInventory", "is %s, must be an object",
			       json_type_words(inventory));
	if (json_get_str(inventory, "", "name", "", &text, err) < 0)
		return -1;
	if (str_empty(text))
		return err_set(err, ERR_INVALID, "BadField", "name: is missing");
	if (json_get_str(inventory, "", "rdmaMode", "", &text, err) < 0 ||
	    json_get_object(inventory, "", "labels", &object, err) < 0 ||
	    json_get_array(inventory, "", "interfaces", &pfs, err) < 0)
		return -1;
	json_array_foreach ((json_t *)pfs, i, pf) {
		if (check_pf(pf, i, err) < 0)
			return -1;
	}
	return 0;
}

json_t *inventory_read(const char *path, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_t *inventory = NULL;

	if (fs_read(AT_FDCWD, path, INVENTORY_MAX_FILE, &text, err) < 0)
		return NULL;
	inventory = json_parse(strbuf_str(&text), text.len, err);
	if (inventory && check_inventory(inventory, err) == 0)
		return inventory;
	json_decref(inventory);
	err_in(err, "inventory %s", path);
	return NULL;
}

/* ---- statuses -------------------------------------------------------------------------------- */

/* What comes of a spec. */
struct outcome {
	json_t *interfaces;
	int64_t wanted;
	int64_t present;
	struct strbuf failure; /* empty: none */
};

/* The group that VF `number` belongs to, or NULL. */
static const json_t *group_of(const json_t *wanted, int64_t number)
{
	const json_t *group;
	size_t i;

	json_array_foreach (json_at(wanted, "vfGroups"), i, group) {
		const char *range = json_str_or(json_at(group, "vfRange"), "");
		int64_t first = 0, last = 0;

		if (sscanf(range, "%" SCNd64 "-%" SCNd64, &first, &last) == 2 && number >= first &&
		    number <= last)
			return group;
	}
	return NULL;
}

static json_t *vf_json(const json_t *pf, const json_t *wanted, int64_t number, int64_t pf_mtu)
{
	const json_t *group = group_of(wanted, number);
	bool vfio = str_eq(json_str_at(group, "deviceType"), "vfio-pci");
	int64_t mtu = json_integer_value(json_at(group, "mtu"));
	const char *device = json_str_at(pf, "vfDeviceID"), *mac = json_str_at(pf, "mac");
	json_t *vf = json_object();

	json_put_int(vf, "vfID", number);
	json_put(vf, "pciAddress", vf_address(pf, number));
	json_put_str(vf, "vendor", json_str_at(pf, "vendor"));
	json_put_str(vf, "deviceID", device ? device : json_str_at(pf, "deviceID"));
	json_put_str(vf, "driver", vfio ? "vfio-pci" : json_str_at(pf, "driver"));
	if (vfio)
		return vf;
	json_put(vf, "name",
		 json_fmt("%sv%" PRId64, json_str_or(json_at(pf, "name"), "pf"), number));
	if (mac && strlen(mac) == 17)
		json_put(vf, "mac", json_fmt("%.15s%02x", mac, (unsigned int)(number + 1) & 0xff));
	json_put_int(vf, "mtu", mtu ? mtu : pf_mtu);
	return vf;
}

/* One PF as it is with numVfs VFs. */
static json_t *pf_json(const json_t *pf, const json_t *wanted, int64_t num_vfs)
{
	static const char *const constant[] = {"pciAddress", "name",     "mac",
					       "vendor",     "deviceID", "driver",
					       "totalvfs",   "linkType", "linkSpeed"};
	int64_t mtu = json_integer_value(json_at(pf, "mtu"));
	int64_t wanted_mtu = json_integer_value(json_at(wanted, "mtu"));
	json_t *json = json_object(), *vfs = NULL;

	for (size_t i = 0; i < ARRAY_LEN(constant); i++)
		if (json_at(pf, constant[i]))
			json_object_set(json, constant[i], json_at(pf, constant[i]));
	mtu = mtu ? mtu : 1500;
	mtu = wanted_mtu > mtu ? wanted_mtu : mtu;
	json_put_int(json, "mtu", mtu);
	json_put_str(json, "linkAdminState", "up");
	json_put_str(json, "eSwitchMode", json_str_or(json_at(wanted, "eSwitchMode"), "legacy"));
	if (json_is_true(json_at(wanted, "externallyManaged")))
		json_put_bool(json, "externallyManaged", true);
	if (num_vfs == 0)
		return json;
	vfs = json_array();
	for (int64_t i = 0; i < num_vfs; i++)
		json_array_append_new(vfs, vf_json(pf, wanted, i, mtu));
	json_put_int(json, "numVfs", num_vfs);
	json_put(json, "Vfs", vfs);
	return json;
}

static void fail(struct outcome *outcome, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct outcome *outcome, const char *fmt, ...)
{
	va_list ap;

	if (outcome->failure.len > 0)
		strbuf_adds(&outcome->failure, "; ");
	va_start(ap, fmt);
	strbuf_vaddf(&outcome->failure, fmt, ap);
	va_end(ap);
}

/* VFs that the PF ends up with: as spec says, or as it was when the device cannot have so many. */
static int64_t settle_pf(struct outcome *outcome, const json_t *pf, const json_t *wanted,
			 const json_t *before)
{
	int64_t total = json_integer_value(json_at(pf, "totalvfs"));
	int64_t num_vfs = json_integer_value(json_at(wanted, "numVfs"));

	if (num_vfs >= 0 && num_vfs <= total)
		return num_vfs;
	fail(outcome, "%s: numVfs is %" PRId64 ", the device has at most %" PRId64,
	     json_str_or(json_at(pf, "name"), json_str_at(pf, "pciAddress")), num_vfs, total);
	return json_integer_value(json_at(before, "numVfs"));
}

static void look_at_pfs(struct outcome *outcome, const json_t *inventory, const json_t *state,
			bool done)
{
	const json_t *wanted_list = json_at(state, "spec", "interfaces");
	const json_t *before_list = json_at(state, "status", "interfaces"), *pf;
	size_t i;

	json_array_foreach (json_at(inventory, "interfaces"), i, pf) {
		const char *address = json_str_at(pf, "pciAddress");
		const json_t *wanted = json_find(wanted_list, "pciAddress", address);
		const json_t *before = json_find(before_list, "pciAddress", address);
		int64_t num_vfs = json_integer_value(json_at(before, "numVfs"));

		if (done)
			num_vfs = settle_pf(outcome, pf, wanted, before);
		outcome->present += num_vfs;
		if (before && !done)
			json_array_append(outcome->interfaces, (json_t *)before);
		else
			json_array_append_new(outcome->interfaces, pf_json(pf, wanted, num_vfs));
	}
}

static void look_at_spec(struct outcome *outcome, const json_t *inventory, const json_t *state)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(state, "spec", "interfaces"), i, entry) {
		const char *address = json_str_or(json_at(entry, "pciAddress"), "");

		outcome->wanted += json_integer_value(json_at(entry, "numVfs"));
		if (!json_find(json_at(inventory, "interfaces"), "pciAddress", address))
			fail(outcome, "%s: there is no such PF", address);
	}
}

static void put_conditions(json_t *status, const json_t *state, const struct outcome *outcome,
			   bool done, const char *now)
{
	const json_t *previous = json_at(state, "status", "conditions");
	const char *failure = strbuf_str(&outcome->failure);
	bool failed = outcome->failure.len > 0;
	int64_t generation = json_generation(state);
	json_t *list = json_array();

	if (!done)
		condition_set(list, previous, "Ready", CONDITION_FALSE, "Syncing",
			      "the agent is at work", generation, now);
	else if (failed)
		condition_set(list, previous, "Ready", CONDITION_FALSE, "SyncFailed", failure,
			      generation, now);
	else
		condition_set(list, previous, "Ready", CONDITION_TRUE, "AsSpecified",
			      "node-stand-in says so: no host was touched", generation, now);
	condition_set(list, previous, "Progressing", done ? CONDITION_FALSE : CONDITION_TRUE,
		      done ? "NothingToDo" : "Syncing", "", generation, now);
	condition_set(list, previous, "Degraded", done && failed ? CONDITION_TRUE : CONDITION_FALSE,
		      done && failed ? "SyncFailed" : "AsExpected", done ? failure : "", generation,
		      now);
	json_put(status, "conditions", list);
}

json_t *inventory_status(const json_t *inventory, const json_t *state, bool done, const char *now)
{
	struct outcome outcome = {.interfaces = json_array()};
	const char *mode = json_str_at(state, "spec", "system", "rdmaMode");
	json_t *status = json_object();

	look_at_spec(&outcome, inventory, state);
	look_at_pfs(&outcome, inventory, state, done);
	json_put_int(status, "observedGeneration", json_generation(state));
	json_put_str(status, "syncStatus",
		     !done                 ? "InProgress"
		     : outcome.failure.len ? "Failed"
					   : "Succeeded");
	json_put_str(status, "lastSyncError", done ? strbuf_str(&outcome.failure) : "");
	json_put_int(status, "wantedVfs", outcome.wanted);
	json_put_int(status, "presentVfs", outcome.present);
	json_put(status, "interfaces", outcome.interfaces);
	if (!mode || !done)
		mode = json_str_at(state, "status", "system", "rdmaMode");
	if (!mode)
		mode = json_str_at(inventory, "rdmaMode");
	if (mode)
		json_put_str(json_need_object(status, "system"), "rdmaMode", mode);
	put_conditions(status, state, &outcome, done, now);
	strbuf_done(&outcome.failure);
	return status;
}

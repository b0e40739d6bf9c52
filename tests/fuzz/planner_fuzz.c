// SPDX-License-Identifier: Apache-2.0
/*
 * Plans for any spec and any observed document: pure, each step one that hostd takes, none that
 * was refused, nothing for a protected PF or a VF that somebody holds, no step on a protected PF
 * whatever nicSettings asks, and no setting that takes the link from a VF that somebody holds.
 * And on a document with the shape of a real one, carrying plans out comes to rest, first as
 * wanted, then as it was.
 *
 * Input: {"spec", "observed", "found", "held", "refused"}, members of struct planner_input.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/model/step.h"
#include "tests/fuzz/fuzz.h"

#define ROUNDS_MAX  10
#define PFS_MAX     8
#define VFS_MAX     16
#define MESSAGE_MAX 4096

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* ---- finding things in a document ------------------------------------------------------------ */

static json_t *find_pf(json_t *observed, const char *address)
{
	return json_find(json_at(observed, "interfaces"), "pciAddress", address);
}

static json_t *find_vf(json_t *observed, const char *address, json_t **ret_pf)
{
	json_t *pf, *vf;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, pf) {
		vf = json_find(json_at(pf, "Vfs"), "pciAddress", address);
		*ret_pf = pf;
		if (vf)
			return vf;
	}
	return NULL;
}

static bool is_held(const json_t *vf, const json_t *held)
{
	const char *address = json_str_at(vf, "pciAddress");

	return !json_is_false(json_at(vf, "host", "inUse")) ||
	       (address && json_str_at(held, address));
}

/*
 * One without driver that is in nobody's hands notices nothing; that the kubelet has given it to a
 * pod, as before a boot, is why it gets its driver.
 */
static bool has_user(const json_t *vf, const json_t *held)
{
	return is_held(vf, held) &&
	       (json_at(vf, "driver") || !json_is_false(json_at(vf, "host", "inUse")));
}

/* ---- one plan -------------------------------------------------------------------------------- */

static void check_harmless(json_t *observed, const json_t *held, const json_t *step)
{
	const char *name = json_str_at(step, "step"), *device = json_str_at(step, "device");
	const char *on_pf = json_str_at(step, "pf");
	json_t *owner = NULL, *vf, *pf;
	size_t i;

	/* A step on a PF is none on a VF, whatever address a VF claims to have. */
	vf = device && find_pf(observed, device)
		     ? NULL
		     : find_vf(observed, device ? device : json_str_at(step, "vf"), &owner);
	fuzz_check(!vf || !has_user(vf, held), "no step for a held VF");
	pf = find_pf(observed, on_pf ? on_pf : device);
	if (json_at(step, "vfs")) {
		json_array_foreach (json_at(pf, "Vfs"), i, vf) {
			auto_free char *number = NULL;

			if (!json_at(vf, "vfID"))
				continue;
			number = json_text(json_at(vf, "vfID"));
			fuzz_check(!json_object_get(json_at(step, "vfs"), number) ||
					   !is_held(vf, held),
				   "no address for a held VF");
		}
		return;
	}
	fuzz_check(!pf || !json_str_at(pf, "host", "protected") || str_eq(name, "set-autoprobe"),
		   "no step on a protected PF, whatever nicSettings asks");
	if (str_eq(name, "set-nic-setting") &&
	    nic_setting_disturbs(json_str_at(step, "setting"), json_str_at(pf, "driver")))
		json_array_foreach (json_at(pf, "Vfs"), i, vf)
			fuzz_check(!has_user(vf, held), "no link is taken from a held VF");
	if (!str_eq(name, "set-num-vfs") && !str_eq(name, "set-eswitch"))
		return;
	json_array_foreach (json_at(pf, "Vfs"), i, vf)
		fuzz_check(!is_held(vf, held), "no count for a PF with a held VF");
}

static void check_told(const json_t *list)
{
	json_t *entry;
	size_t i;

	json_array_foreach ((json_t *)list, i, entry) {
		const char *message = json_str_at(entry, "message");

		fuzz_check(!str_empty(json_str_at(entry, "reason")), "there is a reason");
		fuzz_check(!str_empty(message) && strlen(message) < MESSAGE_MAX,
			   "a message is bounded");
	}
}

static json_t *plan_of(const struct planner_input *in)
{
	json_auto_t *before = json_deep_copy(in->observed), *again = NULL;
	struct err err = {0};
	json_t *plan = planner_plan(in, &err), *entry, *refused;
	size_t i, j;

	again = planner_plan(in, NULL);
	fuzz_check(json_same(plan, again), "the same input gives the same plan");
	fuzz_check(json_same(before, in->observed), "the input is not changed");
	fuzz_check(plan || (err.class == ERR_INVALID && err.text[0]), "a failure says why");
	json_array_foreach (json_at(plan, "steps"), i, entry) {
		const json_t *step = json_at(entry, "step");

		fuzz_check(step_check(step, &err), "a step is a step");
		json_array_foreach ((json_t *)in->refused, j, refused)
			fuzz_check(!json_same(step, refused), "what was refused is left out");
		check_harmless((json_t *)in->observed, in->held, step);
	}
	check_told(json_at(plan, "problems"));
	check_told(json_at(plan, "blocked"));
	return plan;
}

/* ---- a document with the shape of a real one ------------------------------------------------- */

/* Members of these types stay, the others go. */
static const struct {
	const char *key;
	json_type type;
} of_pf[] = {{"mtu", JSON_INTEGER},           {"linkType", JSON_STRING},
	     {"linkAdminState", JSON_STRING}, {"eSwitchMode", JSON_STRING},
	     {"vendor", JSON_STRING},         {"deviceID", JSON_STRING},
	     {"totalvfs", JSON_INTEGER},      {"mac", JSON_STRING}},
  of_vf[] = {{"driver", JSON_STRING},
	     {"mtu", JSON_INTEGER},
	     {"mac", JSON_STRING},
	     {"guid", JSON_STRING}};

static json_t *pick(const json_t *from, bool is_vf)
{
	size_t n = is_vf ? ARRAY_LEN(of_vf) : ARRAY_LEN(of_pf);
	json_t *ret = json_object();

	for (size_t i = 0; i < n; i++) {
		const char *key = is_vf ? of_vf[i].key : of_pf[i].key;
		const json_t *value = json_at(from, key);

		if (value && json_typeof(value) == (is_vf ? of_vf[i].type : of_pf[i].type))
			json_put(ret, key, json_deep_copy(value));
	}
	return ret;
}

static void add_rdma(json_t *observed, const char *address)
{
	json_t *devices = json_at(observed, "rdma", "devices");

	if (!json_find(devices, "pciAddress", address))
		(void)json_array_append_new(devices, json_pack("{s:s}", "pciAddress", address));
}

/* What a driver of the kernel makes of a VF: interface, address, RDMA device. */
static void start_vf(json_t *observed, const json_t *pf, json_t *vf)
{
	const char *mac = json_str_or(json_at(vf, "host", "adminMac"), "6e:00:00:00:00:01");
	const char *guid =
		json_str_or(json_at(vf, "host", "adminNodeGuid"), "00:00:00:00:00:00:00:00");
	bool is_ib = str_eq(json_str_at(pf, "linkType"), "IB");

	json_put_str(vf, "driver", "kernel");
	json_put_str(vf, "name", "v");
	json_put_str(vf, "mac", is_ib ? NULL : mac);
	json_put_int(vf, "mtu", 1500);
	json_put(vf, "mac",
		 is_ib ? json_fmt("00:00:00:00:fe:80:00:00:00:00:00:00:%s", guid)
		       : json_fmt("%s", mac));
	json_put(vf, "guid", is_ib ? json_fmt("%s", guid) : json_fmt("00:00:%s", mac));
	add_rdma(observed, json_str_at(vf, "pciAddress"));
}

static void stop_vf(json_t *vf)
{
	static const char *const parts[] = {"driver", "name", "mac", "mtu", "guid"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		(void)json_object_del(vf, parts[i]);
}

static json_t *fresh_vf(const char *pf, int number)
{
	json_t *vf = json_pack("{s:i, s:{s:b, s:{s:s}, s:[s]}}", "vfID", number, "host", "inUse", 0,
			       "holder", "kind", "host", "rdma", "r");

	/* PFs differ in the bus. */
	json_put(vf, "pciAddress", json_fmt("%.7s:1%x.%d", pf, number / 8, number % 8));
	return vf;
}

static json_t *shape_vf(const json_t *from, const char *pf, int number)
{
	static const char *const keep[] = {"adminMac", "driverOverride", "linkState"};
	json_t *fresh = fresh_vf(pf, number), *picked = pick(from, true);
	json_t *host = json_object_get(fresh, "host");

	(void)json_object_update(fresh, picked);
	json_decref(picked);
	if (json_at(fresh, "driver"))
		json_put_str(fresh, "name", "v");
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		json_put_str(host, keep[i], json_str_at(from, "host", keep[i]));
	json_put_bool(host, "inUse", json_is_true(json_at(from, "host", "inUse")));
	return fresh;
}

/* As hosts read them. */
static json_t *shape_settings(const json_t *from)
{
	json_t *settings = json_is_object(from) ? json_object() : NULL, *value;
	const char *name;

	json_each (settings ? from : NULL, name, value)
		if (nic_setting_check(name, value, NULL) == 0)
			json_put(settings, name, json_deep_copy(value));
	return settings;
}

static json_t *shape_pf(const json_t *from, int index)
{
	json_t *pf = pick(from, false), *host = json_object(), *vfs = json_array(), *vf;
	json_t *rules = json_array();
	auto_free char *address = str_printf("0000:%02x:00.0", index + 1);
	size_t i;

	json_put_str(pf, "pciAddress", address);
	json_put_str(pf, "name", "eth");
	json_put_str(pf, "driver", json_str_at(from, "driver"));
	json_put(pf, "settings", shape_settings(json_at(from, "settings")));
	if (!str_eq(json_str_at(pf, "eSwitchMode"), "switchdev"))
		json_put_str(pf, "eSwitchMode", "legacy");
	json_array_foreach (json_at(from, "Vfs"), i, vf) {
		if (i < VFS_MAX)
			json_array_append_new(vfs, shape_vf(vf, address, (int)i));
	}
	json_put_int(pf, "numVfs", (int64_t)json_array_size(vfs));
	json_put(pf, "Vfs", vfs);
	json_put_bool(host, "driversAutoprobe",
		      !json_is_false(json_at(from, "host", "driversAutoprobe")));
	json_put_bool(host, "devlink", json_is_true(json_at(from, "host", "devlink")));
	json_put_str(host, "protected", json_str_at(from, "host", "protected"));
	json_put(host, "udevRules", rules);
	json_put(pf, "host", host);
	return pf;
}

static json_t *shape(const json_t *from)
{
	json_t *ret = json_object(), *interfaces = json_array(), *pf, *node, *rdma;
	size_t i;

	rdma = json_pack("{s:s, s:{s:[]}, s:[]}", "netnsMode", "shared", "netnsModeNextBoot",
			 "overruled", "devices");
	node = json_pack("{s:[], s:b}", "modules", "iommu",
			 json_is_true(json_at(from, "node", "iommu")));
	json_put(ret, "rdma", rdma);
	json_put(ret, "node", node);
	json_put(ret, "interfaces", interfaces);
	json_array_foreach (json_at(from, "interfaces"), i, pf) {
		if (i < PFS_MAX)
			json_array_append_new(interfaces, shape_pf(pf, (int)i));
	}
	return ret;
}

/* ---- what steps do --------------------------------------------------------------------------- */

static void do_count(json_t *observed, json_t *pf, const json_t *step)
{
	int count = (int)json_integer_value(json_at(step, "count"));
	json_t *vfs = json_array();

	fuzz_check(json_integer_value(json_at(step, "from")) ==
			   json_integer_value(json_at(pf, "numVfs")),
		   "a count starts from what is there");
	fuzz_check(count == 0 || json_integer_value(json_at(pf, "numVfs")) == 0,
		   "from one number to another through 0");
	for (int i = 0; i < count; i++) {
		json_t *vf = fresh_vf(json_str_at(pf, "pciAddress"), i);

		if (json_is_true(json_at(pf, "host", "driversAutoprobe")))
			start_vf(observed, pf, vf);
		json_array_append_new(vfs, vf);
	}
	json_put(pf, "Vfs", vfs);
	json_put_int(pf, "numVfs", count);
}

static void give_vfs(json_t *pf, const json_t *step, const char *member)
{
	const char *key;
	json_t *value;

	json_each (json_at(step, "vfs"), key, value) {
		json_t *vf = json_array_get(json_at(pf, "Vfs"), (size_t)strtoul(key, NULL, 10));

		json_put_str(json_object_get(vf, "host"), member, json_string_value(value));
	}
}

static void set_setting(json_t *settings, const char *name, json_t *value)
{
	fuzz_check(json_object_get(settings, name), "only a setting that was read is set");
	if (nic_setting_find(name)->in_part)
		json_object_update(json_object_get(settings, name), value);
	else
		json_put(settings, name, json_deep_copy(value));
}

static void do_pf(json_t *observed, json_t *pf, const char *name, const json_t *step)
{
	json_t *host = json_object_get(pf, "host"), *rules = json_object_get(host, "udevRules");
	size_t i;

	if (str_eq(name, "set-num-vfs"))
		do_count(observed, pf, step);
	else if (str_eq(name, "set-eswitch"))
		json_put_str(pf, "eSwitchMode", json_str_at(step, "mode"));
	else if (str_eq(name, "set-firmware"))
		json_put_int(pf, "totalvfs", json_integer_value(json_at(step, "count")));
	else if (str_eq(name, "set-autoprobe"))
		json_put_bool(host, "driversAutoprobe", json_is_true(json_at(step, "on")));
	else if (str_eq(name, "set-nic-setting"))
		set_setting(json_at(pf, "settings"), json_str_at(step, "setting"),
			    json_at(step, "value"));
	else if (str_eq(name, "write-udev-rule"))
		(void)json_array_append(rules, json_at(step, "rule"));
	else if (str_eq(name, "set-vf-mac"))
		give_vfs(pf, step, "adminMac");
	else if (str_eq(name, "set-vf-link-state"))
		give_vfs(pf, step, "linkState");
	else if (str_eq(name, "set-vf-guid"))
		give_vfs(pf, step,
			 str_eq(json_str_at(step, "which"), "node") ? "adminNodeGuid"
								    : "adminPortGuid");
	for (i = json_array_size(rules); str_eq(name, "remove-udev-rule") && i-- > 0;)
		if (json_same(json_array_get(rules, i), json_at(step, "rule")))
			(void)json_array_remove(rules, i);
}

static void do_vf(json_t *observed, const json_t *pf, json_t *vf, const char *name,
		  const json_t *step)
{
	json_t *host = json_object_get(vf, "host");
	const char *override = json_str_at(host, "driverOverride");

	if (str_eq(name, "unbind-driver"))
		stop_vf(vf);
	if (str_eq(name, "set-driver-override")) {
		(void)json_object_del(host, "driverOverride");
		json_put_str(host, "driverOverride", json_str_at(step, "driver"));
	}
	if (!str_eq(name, "probe-driver"))
		return;
	fuzz_check(!json_at(vf, "driver"), "only a VF without driver gets one");
	fuzz_check(override || json_is_true(json_at(pf, "host", "driversAutoprobe")),
		   "drivers bind only with autoprobe");
	if (override)
		json_put_str(vf, "driver", override);
	else
		start_vf(observed, pf, vf);
}

static void do_node(json_t *observed, const char *name, const json_t *step)
{
	json_t *rdma = json_at(observed, "rdma"), *next = json_at(rdma, "netnsModeNextBoot");
	const char *mode = json_str_at(step, "mode"), *module = json_str_at(step, "module");

	if (str_eq(name, "load-module")) {
		(void)json_array_append_new(
			json_at(observed, "node", "modules"),
			json_string(str_eq(module, "vfio-pci") ? "vfio_pci" : module));
	} else if (str_eq(name, "set-rdma-netns-mode")) {
		json_put_str(rdma, "netnsMode", mode);
	} else if (str_eq(name, "write-rdma-next-boot")) {
		json_put_str(next, "mode", mode);
		json_put_str(next, "own", mode);
		json_put_bool(next, "ownSinceBoot", true);
	} else if (str_eq(name, "remove-rdma-next-boot")) {
		(void)json_object_del(next, "mode");
		(void)json_object_del(next, "own");
	}
}

static void carry_out(json_t *observed, const json_t *step)
{
	const char *name = json_str_at(step, "step"), *device = json_str_at(step, "device");
	const char *address = device ? device : json_str_at(step, "vf");
	json_t *pf = find_pf(observed, device ? device : json_str_at(step, "pf")), *owner = NULL;
	json_t *vf = find_vf(observed, address, &owner);

	if (str_eq(name, "set-mtu"))
		(void)json_object_set(pf ? pf : vf, "mtu", json_at(step, "mtu"));
	else if (str_eq(name, "link-up"))
		json_put_str(pf ? pf : vf, "linkAdminState", "up");
	else if (vf)
		do_vf(observed, owner, vf, name, step);
	else if (pf)
		do_pf(observed, pf, name, step);
	else
		do_node(observed, name, step);
}

/* ---- coming to rest -------------------------------------------------------------------------- */

/* The last plan, without steps. */
static json_t *settle(struct planner_input *in, json_t *observed, json_t **found)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		json_t *plan, *entry;
		size_t i;

		in->found = *found;
		plan = plan_of(in);
		if (!plan)
			return NULL;
		json_array_foreach (json_at(plan, "problems"), i, entry)
			fuzz_check(!str_eq(json_str_at(entry, "reason"), "BadStep"),
				   "a host like a real one has real steps");
		json_decref(*found);
		*found = json_incref(json_at(plan, "found"));
		if (json_array_size(json_at(plan, "steps")) == 0)
			return plan;
		json_array_foreach (json_at(plan, "steps"), i, entry)
			carry_out(observed, json_at(entry, "step"));
		json_decref(plan);
	}
	fuzz_check(false, "plans come to rest");
	return NULL;
}

static bool is_free(json_t *observed, const json_t *held)
{
	json_t *pf, *vf;
	size_t i, j;

	json_array_foreach (json_at(observed, "interfaces"), i, pf) {
		if (json_at(pf, "host", "protected"))
			return false;
		json_array_foreach (json_at(pf, "Vfs"), j, vf) {
			if (is_held(vf, held))
				return false;
		}
	}
	return true;
}

static void live(const json_t *spec, const json_t *from, const json_t *held)
{
	json_auto_t *observed = shape(from), *found = json_object(), *last = NULL, *back = NULL;
	json_auto_t *nothing = json_object();
	struct planner_input in = {.spec = spec, .observed = observed, .held = held};

	last = settle(&in, observed, &found);
	in.spec = nothing;
	back = settle(&in, observed, &found);
	fuzz_check(back, "an empty spec can be planned");
	if (is_free(observed, held))
		fuzz_check(json_object_size(json_at(found, "pfs")) == 0 &&
				   json_object_size(json_at(found, "settings")) == 0 &&
				   !json_at(found, "rdma"),
			   "all is put back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	struct planner_input in = {
		.spec = json_at(input, "spec"),
		.observed = json_at(input, "observed"),
		.found = json_at(input, "found"),
		.held = json_at(input, "held"),
		.refused = json_at(input, "refused"),
	};

	if (!json_is_object(in.observed))
		return 0;
	json_decref(plan_of(&in));
	if (in.spec)
		live(in.spec, in.observed, in.held);
	return 0;
}

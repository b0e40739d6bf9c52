// SPDX-License-Identifier: Apache-2.0
/* The part "rdma" of the observed document. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/view.h"

/* A table has at most 64 Ki slots; drivers have 1024 at most. */
#define GIDS_MAX 4096

const struct rdma_device *view_rdma_device(const struct view *view, const char *name)
{
	for (size_t i = 0; i < view->rdma.n; i++)
		if (str_eq(view->rdma.items[i].name, name))
			return &view->rdma.items[i];
	return NULL;
}

void view_put_guid(json_t *object, const char *key, uint64_t guid)
{
	char text[TEXT_GUID_SIZE];

	text_from_guid(guid, text);
	json_put_str(object, key, text);
}

/* ---- character devices ----------------------------------------------------------------------- */

/* The file that belongs to an entry of a class, when it is there; "number" as the kernel has it. */
static json_t *char_device(const struct view *view, const char *class, const char *name,
			   const char *type)
{
	auto_free char *number_path = str_printf("sys/class/%s/%s/dev", class, name);
	auto_free char *file = str_printf("dev/infiniband/%s", name);
	struct sysfs_text number;
	json_t *ret;

	if (!sysfs_read(view->host, number_path, &number) || !sysfs_exists(view->host, file))
		return NULL;
	ret = json_object();
	json_put_str(ret, "type", type);
	json_put(ret, "path", json_fmt("/%s", file));
	json_put_str(ret, "number", number.text);
	return ret;
}

static const char *type_of(const char *name)
{
	static const char *const types[] = {"uverbs", "umad", "issm"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_starts(name, types[i]))
			return types[i];
	return NULL;
}

/* All of one class, under the RDMA device that their `ibdev` file names. */
static void read_char_devices(struct view *view, const char *class)
{
	auto_free char *folder = str_printf("sys/class/%s", class);
	json_auto_t *names = sysfs_list(view->host, folder);
	json_t *entry;
	size_t i;

	json_array_foreach (names, i, entry) {
		const char *name = json_string_value(entry), *type = type_of(name);
		auto_free char *owner = str_printf("%s/%s/ibdev", folder, name);
		auto_free char *port_path = str_printf("%s/%s/port", folder, name);
		struct sysfs_text device;
		int64_t port;
		json_t *found;

		if (!type || !sysfs_read(view->host, owner, &device))
			continue;
		found = char_device(view, class, name, type);
		if (found && sysfs_read_int(view->host, port_path, &port))
			json_put_int(found, "port", port);
		if (found) {
			json_auto_t *key = json_fmt("%s", device.text);
			json_t *list = json_object_get(view->char_devices, json_string_value(key));

			/*
			 * Takes entry. An administrator may call a device anything, a key is UTF-8.
			 */
			if (!list) {
				list = json_array();
				json_put(view->char_devices, json_string_value(key), list);
			}
			json_array_append_new(list, found);
		}
	}
}

json_t *view_char_devices(const struct view *view, const char *device)
{
	return json_object_get(view->char_devices, device);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static const char *gid_type_key(const char *type)
{
	if (str_eq(type, "RoCE v2"))
		return "rocev2";
	if (str_eq(type, "IB/RoCE v1"))
		return "rocev1";
	return "other";
}

/* An empty slot is all zeroes, and its type cannot be read (drivers/infiniband/core/sysfs.c). */
static json_t *gid_summary(const struct view *view, const char *port_folder, bool is_ib)
{
	auto_free char *folder = str_printf("%s/gids", port_folder);
	json_auto_t *slots = sysfs_list(view->host, folder);
	json_t *ret = json_object(), *slot;
	int64_t used = 0;
	size_t i;

	if (!slots || json_array_size(slots) > GIDS_MAX) {
		json_decref(ret);
		return NULL;
	}
	json_array_foreach (slots, i, slot) {
		auto_free char *gid = str_printf("%s/%s", folder, json_string_value(slot));
		auto_free char *type_path =
			str_printf("%s/gid_attrs/types/%s", port_folder, json_string_value(slot));
		struct sysfs_text text;
		const char *key = "ib";

		if (!sysfs_read(view->host, gid, &text) ||
		    strspn(text.text, "0:") == strlen(text.text))
			continue;
		used++;
		if (!is_ib)
			key = gid_type_key(sysfs_read(view->host, type_path, &text) ? text.text
										    : "");
		json_put_int(ret, key, json_integer_value(json_object_get(ret, key)) + 1);
	}
	json_put_int(ret, "size", (int64_t)json_array_size(slots));
	json_put_int(ret, "used", used);
	return ret;
}

static json_t *port_entry(const struct view *view, const struct rdma_device *device,
			  const struct rdma_port *port)
{
	auto_free char *folder =
		str_printf("sys/class/infiniband/%s/ports/%u", device->name, port->number);
	auto_free char *layer_path = str_printf("%s/link_layer", folder);
	json_t *ret = json_object();
	struct sysfs_text layer = {""};
	bool is_ib;

	json_put_int(ret, "port", port->number);
	json_put_str(ret, "state", rdma_port_state_name(port->state));
	json_put_str(ret, "physState", rdma_phys_state_name(port->phys_state));
	if (sysfs_read(view->host, layer_path, &layer))
		json_put_str(ret, "linkLayer", layer.text);
	is_ib = str_eq(layer.text, "InfiniBand");
	if (is_ib) {
		auto_free char *path = str_printf("%s/gids/0", folder);
		struct sysfs_text gid;
		uint64_t guid;

		/*
		 * "fe80:0000:0000:0000:5054:00ff:fe12:3456": its lower half is the port's GUID on
		 * InfiniBand.
		 */
		if (sysfs_read(view->host, path, &gid) && strlen(gid.text) == 39 &&
		    text_to_guid(gid.text + 20, &guid))
			view_put_guid(ret, "portGuid", guid);
	}
	if (port->ndev_index) {
		json_put_str(ret, "netdev", port->ndev_name);
		json_put_int(ret, "ifindex", port->ndev_index);
	}
	if (view->flags & HOST_OBSERVE_GIDS)
		json_put(ret, "gids", gid_summary(view, folder, is_ib));
	return ret;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Hardware has its function behind `device`; what lies on an interface has the function of that. */
static void put_function(const struct view *view, const struct rdma_device *device, json_t *ret)
{
	auto_free char *path = str_printf("sys/class/infiniband/%s/device", device->name);
	struct sysfs_text target;

	if (sysfs_link(view->host, path, &target) && pci_address_is_valid(target.text)) {
		json_put_str(ret, "pciAddress", target.text);
		return;
	}
	for (size_t i = 0; i < device->n_ports; i++) {
		const char *address = json_str_at(view->functions, device->ports[i].ndev_name);

		if (device->ports[i].ndev_index && address) {
			json_put_str(ret, "netdevPciAddress", address);
			return;
		}
	}
}

static json_t *device_entry(const struct view *view, const struct rdma_device *device)
{
	json_t *ret = json_object(), *ports = json_array(), *files;

	json_put_str(ret, "name", device->name);
	json_put_int(ret, "index", device->index);
	json_put_str(ret, "protocol", device->protocol[0] ? device->protocol : NULL);
	json_put_str(ret, "fwVersion", device->firmware[0] ? device->firmware : NULL);
	if (device->has_node_guid)
		view_put_guid(ret, "nodeGuid", device->node_guid);
	if (device->has_sys_image_guid)
		view_put_guid(ret, "sysImageGuid", device->sys_image_guid);
	put_function(view, device, ret);
	for (size_t i = 0; i < device->n_ports; i++)
		json_array_append_new(ports, port_entry(view, device, &device->ports[i]));
	json_put(ret, "ports", ports);
	files = view_char_devices(view, device->name);
	json_put(ret, "charDevices", files ? json_incref(files) : json_array());
	return ret;
}

static int compare_devices(const void *a, const void *b)
{
	return strcmp(((const struct rdma_device *)a)->name, ((const struct rdma_device *)b)->name);
}

void view_read_rdma(struct view *view)
{
	struct err err = {0};

	assert(view->char_devices && !view->rdma.items);
	if (rdma_list(view->host, &view->rdma, &err) < 0) {
		/* ib_core is not loaded: no RDMA, and nothing wrong. */
		if (err.sys != EPROTONOSUPPORT)
			view_problem(view, NULL, &err);
		return;
	}
	read_char_devices(view, "infiniband_verbs");
	read_char_devices(view, "infiniband_mad");
	if (rdma_get_mode(view->host->netlink, &view->rdma_mode, &err) < 0)
		view_problem(view, NULL, &err);
	qsort(view->rdma.items, view->rdma.n, sizeof(*view->rdma.items), compare_devices);
}

json_t *view_rdma_entry(const struct view *view)
{
	json_t *ret = json_object(), *devices = json_array(), *others = json_array(), *connections;

	json_put_str(ret, "netnsMode", rdma_mode_name(view->rdma_mode));
	json_put(ret, "netnsModeNextBoot", next_boot_observe(view->host));
	for (size_t i = 0; i < view->rdma.n; i++)
		json_array_append_new(devices, device_entry(view, &view->rdma.items[i]));
	json_put(ret, "devices", devices);
	connections = char_device(view, "misc", "rdma_cm", "rdma_cm");
	if (connections)
		json_array_append_new(others, connections);
	json_put(ret, "charDevices", others);
	return ret;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A walk over sys/class/infiniband, for a worker: the agent asks which GIDs its pods have
 * (nodeagent/agent/gid_reader.h). One file is read for each slot, three for one that is found.
 */
#include "nodeagent/host/gids.h"

#include "lib/base/gid.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

struct walk {
	const struct host *host;
	json_t *by_gid; /* { GID: ADDRESS } */
	const json_t *functions;
	json_t *found;
	size_t slots; /* that were read */
};

/* "RoCE v2", "IB/RoCE v1" (drivers/infiniband/core/cache.c). 0: another one. */
static int version_of(const char *type)
{
	return str_eq(type, "RoCE v2") ? 2 : str_eq(type, "IB/RoCE v1") ? 1 : 0;
}

static void note_gid(struct walk *walk, const char *device, int64_t port, const char *port_folder,
		     size_t index, const char *address)
{
	auto_free char *type_path = str_printf("%s/gid_attrs/types/%zu", port_folder, index);
	auto_free char *ndev_path = str_printf("%s/gid_attrs/ndevs/%zu", port_folder, index);
	json_t *list = json_object_get(walk->found, address), *entry;
	struct sysfs_text type = {""}, ndev = {""};

	/* The kernel fails both for a slot that has become empty. */
	if (!sysfs_read(walk->host, type_path, &type) || !version_of(type.text) ||
	    json_array_size(list) >= GIDS_PER_ADDRESS)
		return;
	entry = json_object();
	json_put_str(entry, "device", device);
	json_put_int(entry, "port", port);
	json_put_int(entry, "index", (int64_t)index);
	json_put_int(entry, "version", version_of(type.text));
	if (sysfs_read(walk->host, ndev_path, &ndev))
		json_put_str(entry, "netdev", ndev.text);
	if (!list) {
		list = json_array();
		json_put(walk->found, address, list);
	}
	json_array_append_new(list, entry);
}

static void walk_port(struct walk *walk, const char *device, const char *name)
{
	auto_free char *folder = str_printf("sys/class/infiniband/%s/ports/%s", device, name);
	auto_free char *layer_path = str_printf("%s/link_layer", folder);
	auto_free char *gids = str_printf("%s/gids", folder);
	json_auto_t *slots = NULL;
	struct sysfs_text layer;
	int64_t port;

	if (!str_to_int(name, 0, UINT8_MAX, &port) || !sysfs_read(walk->host, layer_path, &layer) ||
	    str_eq(layer.text, "InfiniBand"))
		return;
	slots = sysfs_list(walk->host, gids);
	/* Their names are numbers from 0 on. */
	for (size_t index = 0; index < json_array_size(slots); index++) {
		auto_free char *path = str_printf("%s/%zu", gids, index);
		const char *address;
		struct sysfs_text gid;

		if (walk->slots++ >= GIDS_SLOTS_MAX)
			return;
		if (!sysfs_read(walk->host, path, &gid))
			continue;
		address = json_str_at(walk->by_gid, gid.text);
		if (address)
			note_gid(walk, device, port, folder, index, address);
	}
}

/* A VF that is not looked for; PFs and devices without a function are shared. */
static bool is_foreign_vf(const struct walk *walk, const char *device)
{
	auto_free char *pf = str_printf("sys/class/infiniband/%s/device/physfn", device);
	auto_free char *function = str_printf("sys/class/infiniband/%s/device", device);
	struct sysfs_text address;

	return sysfs_exists(walk->host, pf) && (!sysfs_link(walk->host, function, &address) ||
						!json_list_has(walk->functions, address.text));
}

json_t *gids_find(struct host *host, const json_t *wanted, struct err *err)
{
	const json_t *addresses = NULL, *functions = NULL;
	json_auto_t *by_gid = json_object(), *devices = NULL;
	struct walk walk = {.host = host, .by_gid = by_gid};
	json_t *item, *port;
	size_t i, k;

	if (json_get_strings(wanted, "of", "addresses", &addresses, err) ||
	    json_get_strings(wanted, "of", "functions", &functions, err))
		return NULL;
	json_array_foreach (addresses, i, item) {
		char gid[GID_TEXT_SIZE];

		if (i < GIDS_ADDRESSES_MAX && gid_of_address(json_string_value(item), gid))
			json_put(by_gid, gid, json_incref(item));
	}
	walk.functions = functions;
	walk.found = json_object();
	if (json_object_size(by_gid))
		devices = sysfs_list(host, "sys/class/infiniband");
	json_array_foreach (devices, i, item) {
		const char *device = json_string_value(item);
		auto_free char *folder = str_printf("sys/class/infiniband/%s/ports", device);
		json_auto_t *ports = is_foreign_vf(&walk, device) ? NULL : sysfs_list(host, folder);

		json_array_foreach (ports, k, port)
			walk_port(&walk, device, json_string_value(port));
	}
	return walk.found;
}

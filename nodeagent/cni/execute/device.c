// SPDX-License-Identifier: Apache-2.0
/*
 * From a PCI address to what steps need: driver, PF, number of the VF, interface by name and
 * number. Plugins look right before they plan and again after each step that may have changed it;
 * nothing is kept between looks.
 */
#include "nodeagent/cni/execute/device.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/model/observed.h"

/* As often as udev may rename it while it is looked at. */
enum { NAME_TRIES = 4 };

bool device_is_for_user_space(const struct device *device)
{
	return observed_is_userspace_driver(device->driver);
}

struct host *device_host(int root, struct err *err)
{
	char path[32];

	assert(root >= 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", root);
	return host_open(path, err);
}

/*
 * The one that stands for the function: beside a PF's own there are representors in switchdev. A
 * name without a number was another's a moment later, so it is looked for once more.
 */
static void put_netdev(const struct host *host, const char *address, char ret[IFNAMSIZ],
		       int *ret_index)
{
	struct sysfs_text name;
	int64_t index = 0;

	for (int i = 0; i < NAME_TRIES && index == 0; i++) {
		auto_free char *path = NULL;

		name = (struct sysfs_text){""};
		if (!pci_netdev(host, address, &name))
			break;
		path = str_printf("sys/class/net/%s/ifindex", name.text);
		if (!sysfs_read_int(host, path, &index))
			index = 0;
	}
	(void)snprintf(ret, IFNAMSIZ, "%.*s", IFNAMSIZ - 1, name.text);
	*ret_index = (int)index;
}

int device_link(struct netns *ns, const char *name, int index, json_t *look, const json_t **ret,
		struct err *err)
{
	assert(name || index > 0);
	return netns_observe_link(ns, index ? NULL : name, index, look, ret, err);
}

static int64_t number_of(const struct host *host, const char *pf, const char *vf)
{
	for (int i = 0; i < PCI_VFS_MAX; i++) {
		char name[24];
		struct pci_path path;
		struct sysfs_text target;

		(void)snprintf(name, sizeof(name), "virtfn%d", i);
		path = pci_path(pf, name);
		if (!sysfs_link(host, path.text, &target))
			return -1;
		if (str_eq(target.text, vf))
			return i;
	}
	return -1;
}

int device_look(const struct host *host, const char *address, struct device *ret, struct err *err)
{
	struct sysfs_text text;

	*ret = (struct device){.vf = -1};
	if (!pci_exists(host, address))
		return err_set(err, ERR_HOST, "DeviceGone", "the node has no device %s", address);
	if (pci_driver(host, address, &text))
		(void)snprintf(ret->driver, sizeof(ret->driver), "%.31s", text.text);
	put_netdev(host, address, ret->netdev, &ret->netdev_index);
	if (pci_physfn(host, address, &text)) {
		put_netdev(host, text.text, ret->pf, &ret->pf_index);
		ret->vf = number_of(host, text.text, address);
	}
	return 0;
}

json_t *device_rdma(const struct host *host, const char *id)
{
	auto_free char *auxiliary = str_printf("sys/bus/auxiliary/devices/%s/infiniband", id);
	struct pci_path path = {0};
	json_t *names;

	if (pci_address_is_valid(id)) {
		path = pci_path(id, "infiniband");
		names = sysfs_list(host, path.text);
	} else {
		names = strchr(id, '/') ? NULL : sysfs_list(host, auxiliary);
	}
	return names ? names : json_array();
}

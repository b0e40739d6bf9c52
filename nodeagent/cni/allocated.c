// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet's file against what a configuration names.
 */
#include "nodeagent/cni/allocated.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/attach/attach.h"
#include "nodeagent/meta/checkpoint.h"
#include "nodeagent/meta/plugin_call.h"
#include "nodeagent/model/pci_address.h"

/* With the answers of device plugins, for a node full of pods with hundreds of devices. */
#define CHECKPOINT_MAX (16U << 20)

/* New; NULL: there is none. */
static json_t *read_checkpoint(const char *kubelet_dir)
{
	auto_free char *path = str_below(kubelet_dir, CHECKPOINT_FILE);
	auto_strbuf struct strbuf text = {0};
	struct err err = {0};
	json_t *checkpoint = NULL;

	if (fs_read(AT_FDCWD, path, CHECKPOINT_MAX, &text, &err) == 0)
		checkpoint = json_parse(strbuf_str(&text), text.len, &err);
	if (!checkpoint && err.sys != ENOENT)
		log_warn("the kubelet's record of devices cannot be read; devices are not checked "
			 "against it",
			 F_STR("file", path), F_ERR(&err));
	return checkpoint;
}

static int judge(const json_t *checkpoint, const char *device, const char *pod_uid, struct err *err)
{
	switch (checkpoint_holder_of(checkpoint, device, pod_uid)) {
	case CHECKPOINT_UNKNOWN:
		log_warn("the kubelet's record of devices has another form; devices are not "
			 "checked against it");
		return 0;
	case CHECKPOINT_UNMANAGED:
	case CHECKPOINT_OF_POD:
		return 0;
	case CHECKPOINT_OTHER:
		break;
	}
	return err_set(err, ERR_INVALID, "DeviceNotGiven",
		       "the kubelet has not given device %.32s to this pod, and gives it to pods "
		       "that request its resource: request it, with the annotation "
		       "k8s.v1.cni.cncf.io/resourceName on the network, and do not name the device "
		       "in the network's configuration",
		       device);
}

int allocated_check(const char *kubelet_dir, const char *device, const char *pod_uid,
		    struct err *err)
{
	json_auto_t *checkpoint =
		kubelet_dir && !str_empty(pod_uid) ? read_checkpoint(kubelet_dir) : NULL;

	return checkpoint ? judge(checkpoint, device, pod_uid, err) : 0;
}

/* ---- configurations -------------------------------------------------------------------------- */

static void add_address(json_t *devices, const char *address)
{
	if (address && pci_address_is_valid(address))
		json_array_append_new(devices, json_string(address));
}

/* A PF carries many pods' interfaces: only a VF is somebody's own. */
static void add_vf(json_t *devices, int root, const char *interface)
{
	auto_free char *path = NULL, *link = NULL, *physfn = NULL, *pf = NULL;
	const char *address;

	if (str_empty(interface) || strchr(interface, '/'))
		return;
	path = str_printf("sys/class/net/%s/device", interface);
	link = root_read_link(root, path);
	address = link && strrchr(link, '/') ? strrchr(link, '/') + 1 : "";
	if (!pci_address_is_valid(address))
		return;
	physfn = str_printf("sys/bus/pci/devices/%s/physfn", address);
	pf = root_read_link(root, physfn);
	if (pf)
		add_address(devices, address);
}

/* New. */
static json_t *devices_of_config(int root, const json_t *config)
{
	static const char *const interfaces[] = {"master", "device", "if0"};
	json_t *devices = json_array();

	add_address(devices, json_str_at(config, "deviceID"));
	add_address(devices, json_str_at(config, "pciBusID"));
	add_address(devices, json_str_at(config, "runtimeConfig", "deviceID"));
	/* Its master is in the pod. */
	if (json_is_true(json_at(config, "linkInContainer")))
		return devices;
	for (size_t i = 0; i < ARRAY_LEN(interfaces); i++)
		add_vf(devices, root, json_str_at(config, interfaces[i]));
	return devices;
}

static int check_config(const char *kubelet_dir, int root, const json_t *config,
			const char *pod_uid, struct err *err)
{
	json_auto_t *devices = devices_of_config(root, config), *checkpoint = NULL;
	const json_t *device;
	size_t i;

	if (json_array_size(devices) == 0)
		return 0;
	checkpoint = read_checkpoint(kubelet_dir);
	json_array_foreach (devices, i, device)
		if (checkpoint && judge(checkpoint, json_string_value(device), pod_uid, err) < 0)
			return -1;
	return 0;
}

int allocated_check_delegates(const char *kubelet_dir, int root, const json_t *delegates,
			      const char *pod_uid, struct err *err)
{
	const json_t *delegate;
	size_t i;

	if (!kubelet_dir || str_empty(pod_uid))
		return 0;
	json_array_foreach ((json_t *)delegates, i, delegate)
		for (size_t k = 0; k < delegate_plugins(delegate); k++) {
			const char *type = delegate_plugin_type(delegate, k);
			json_auto_t *config = NULL;

			if (attach_knows(type))
				continue;
			config = delegate_stdin(delegate, k, "ADD", NULL);
			if (check_config(kubelet_dir, root, config, pod_uid, err) < 0)
				return err_in(err, "network %.128s (%.16s): %.64s",
					      json_str_at(delegate, "name"),
					      json_str_at(delegate, "interface"), type);
		}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Owners of devices for the labels of metrics, before each gathering; the word of the kubelet is
 * applied last, so that it replaces the word of CNI plugins. Users of ports for events on pods.
 */
#include "nodeagent/devices/meter_pods.h"

#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/owner.h"

/* "ns/pod/container" → "ns/pod"; NULL when it is nothing of the kind. */
static json_t *pod_of_holder(const char *holder)
{
	const char *slash = strchr(holder, '/');

	slash = slash ? strchr(slash + 1, '/') : NULL;
	return slash ? json_stringn(holder, (size_t)(slash - holder)) : NULL;
}

json_t *meter_pods(const json_t *allocated, const json_t *attachments)
{
	json_t *ret = json_object(), *devices, *holder;
	const char *resource, *id;
	const json_t *entry;
	size_t i;

	json_array_foreach (attachments, i, entry) {
		const char *device = json_str_at(entry, "device");
		const char *ns = json_str_at(entry, "pod", "namespace");
		const char *name = json_str_at(entry, "pod", "name");

		if (pci_address_is_valid(device ? device : "") && ns && name)
			json_put(ret, device, json_fmt("%s/%s", ns, name));
	}
	json_each (allocated, resource, devices)
		json_each (devices, id, holder)
			if (pci_address_is_valid(id))
				json_put(ret, id, pod_of_holder(json_str_or(holder, "")));
	return ret;
}

/* Its interface, or a VLAN on top of it. */
static bool is_on(const char *master, const char *port)
{
	size_t len = strlen(port);

	return len > 0 && strncmp(master, port, len) == 0 &&
	       (master[len] == '\0' || master[len] == '.');
}

json_t *meter_pods_on_port(const struct meter_port *port)
{
	const json_t *seen =
		json_find(json_at(port->observed, "interfaces"), "pciAddress", port->address);
	const char *name = json_str_or(json_at(seen, "name"), ""), *resource, *id;
	json_t *ret = json_object(), *functions = json_object(), *devices, *holder;
	const json_t *entry;
	size_t i;

	json_put_bool(functions, port->address, true);
	json_array_foreach (json_at(seen, "Vfs"), i, entry)
		json_put_bool(functions, json_str_or(json_at(entry, "pciAddress"), ""), true);
	json_array_foreach (port->attachments, i, entry) {
		auto_free char *pod =
			str_printf("%s/%s", json_str_or(json_at(entry, "pod", "namespace"), ""),
				   json_str_or(json_at(entry, "pod", "name"), ""));

		if (json_at(functions, json_str_or(json_at(entry, "device"), "-")) ||
		    is_on(json_str_or(json_at(entry, "master"), ""), name))
			json_put_bool(ret, pod, true);
	}
	json_each (port->allocated, resource, devices) {
		bool is_selected = json_list_has(
			json_at(json_find(port->resources, "name", resource), "selected"),
			port->address);

		json_each (devices, id, holder) {
			json_auto_t *pod = pod_of_holder(json_str_or(holder, ""));

			if (pod && (is_selected || json_at(functions, id)))
				json_put_bool(ret, json_string_value(pod), true);
		}
	}
	json_decref(functions);
	return ret;
}

json_t *meter_owner(const json_t *pod)
{
	const json_t *owner = owner_controller(pod);
	const char *kind = json_str_at(owner, "kind"), *name = json_str_at(owner, "name");
	const char *hash = json_str_at(pod, "metadata", "labels", "pod-template-hash");
	auto_free char *end = str_printf("-%s", hash ? hash : "");
	json_t *ret;

	if (!kind || !name)
		return NULL;
	ret = json_object();
	json_put_str(ret, "namespace", json_namespace(pod));
	if (str_eq(kind, "ReplicaSet") && !str_empty(hash) && str_ends(name, end) &&
	    strlen(name) > strlen(end)) {
		json_put_str(ret, "kind", "Deployment");
		json_put(ret, "name", json_stringn(name, strlen(name) - strlen(end)));
	} else {
		json_put_str(ret, "kind", kind);
		json_put_str(ret, "name", name);
	}
	return ret;
}

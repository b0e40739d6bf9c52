// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration names the NIC, or a VF whose PF it is; the kernel lists its addresses. Called
 * for a request to the agent that asks for pools of the NIC's subnet.
 */
#include "nodeagent/cni/worker/master.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdint.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/host/pci.h"
#include "reconcilers/core/limits.h"

/* The interface of the function that this VF belongs to, new; NULL: it is no VF, or has none. */
static char *pf_interface(const char *device, int root)
{
	auto_host struct host *host = device_host(root, NULL);
	struct sysfs_text pf, name;

	if (!host || !sysfs_link(host, pci_path(device, "physfn").text, &pf) ||
	    !pci_netdev(host, pf.text, &name))
		return NULL;
	return str_dup(name.text);
}

static unsigned int prefix_of(const void *mask, size_t len)
{
	const uint8_t *bytes = mask;
	unsigned int prefix = 0;

	for (size_t i = 0; i < len; i++)
		prefix += (unsigned int)__builtin_popcount(bytes[i]);
	return prefix;
}

static void add(json_t *list, const struct ifaddrs *item)
{
	char text[INET6_ADDRSTRLEN];
	const void *address, *mask;
	size_t len;

	if (item->ifa_addr->sa_family == AF_INET) {
		address = &((const struct sockaddr_in *)(const void *)item->ifa_addr)->sin_addr;
		mask = &((const struct sockaddr_in *)(const void *)item->ifa_netmask)->sin_addr;
		len = 4;
	} else {
		address = &((const struct sockaddr_in6 *)(const void *)item->ifa_addr)->sin6_addr;
		mask = &((const struct sockaddr_in6 *)(const void *)item->ifa_netmask)->sin6_addr;
		len = 16;
	}
	if (inet_ntop(item->ifa_addr->sa_family, address, text, sizeof(text)))
		json_array_append_new(list, json_fmt("%s/%u", text, prefix_of(mask, len)));
}

json_t *master_addresses(const json_t *config, int root)
{
	const char *master = json_str_at(config, "master"), *device = device_of(config);
	auto_free char *pf = !master && device ? pf_interface(device, root) : NULL;
	const char *name = master ? master : pf;
	json_t *list = json_array();
	struct ifaddrs *all = NULL;

	if (!name || getifaddrs(&all) < 0)
		return list;
	for (const struct ifaddrs *item = all; item; item = item->ifa_next)
		if (json_array_size(list) < LIMIT_MASTER_ADDRESSES && item->ifa_addr &&
		    item->ifa_netmask && str_eq(item->ifa_name, name) &&
		    (item->ifa_addr->sa_family == AF_INET || item->ifa_addr->sa_family == AF_INET6))
			add(list, item);
	freeifaddrs(all);
	return list;
}

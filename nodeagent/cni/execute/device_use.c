// SPDX-License-Identifier: Apache-2.0
/*
 * Questions of plugins to nodeagent/host/evidence.h, asked by the sockets of the call. Plugins that
 * take a device call this after they have found it and before they save or change anything.
 */
#include "nodeagent/cni/execute/device_use.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/host/evidence.h"
#include "nodeagent/host/pci.h"

static int set_busy(const char *type, const char *what, const char *who, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "DeviceBusy",
		       "%s: %s is used by %s: end that use, or name another device", type, what,
		       who);
}

/* By what the kernel says of the link (since 5.14), else by its folder in /sys. */
static bool function_of(const struct host *host, const json_t *link, struct sysfs_text *ret)
{
	const char *parent = json_str_at(link, "parent");
	auto_free char *path =
		str_printf("sys/class/net/%s/device", json_str_or(json_at(link, "name"), ""));

	if (parent)
		(void)snprintf(ret->text, sizeof(ret->text), "%s", parent);
	else if (!sysfs_link(host, path, ret))
		return false;
	return pci_address_is_valid(ret->text);
}

/* Of a function that is not a VF. */
static int check_function(struct host *host, const char *address, struct err *err)
{
	json_auto_t *given = json_object();

	/*
	 * What the kubelet has given is asked by allocated.h, of which this process has the file.
	 */
	host_set_held(host, given);
	return evidence_check_pf(host, address, err) || evidence_check_vfs(host, address, err) ? -1
											       : 0;
}

int device_use_check_link(const struct plugin_call *call, const char *type, const json_t *link,
			  struct err *err)
{
	auto_host struct host *host = device_host(call->call->root, err);
	auto_evidence struct evidence *evidence = NULL;
	const char *name = json_str_at(link, "name");
	struct sysfs_text function;
	auto_free char *who = NULL;

	assert(name);
	if (!host)
		return -1;
	host_share_netlink(host, netns_netlink(call->pair.host));
	/* A representor is an interface like any: its function stays. */
	if (function_of(host, link, &function) && !pci_is_representor(host, name)) {
		if (pci_is_vf(host, function.text))
			return 0;
		return check_function(host, function.text, err) < 0
			       ? err_in(err, "%s: %s", type, name)
			       : 0;
	}
	evidence = evidence_new(host);
	who = evidence_pod_user(evidence, (int)look_number(link, "index"), name);
	return who ? set_busy(type, name, who, err) : 0;
}

int device_use_check_rdma(const struct plugin_call *call, const char *type, struct host *host,
			  const char *address, struct err *err)
{
	const struct attach_services *services = call->call->services;
	auto_evidence struct evidence *evidence = NULL;
	auto_free char *who = NULL;
	int is_given = 1;

	/* Of an auxiliary device there is one user, which it was made for. */
	if (!pci_address_is_valid(address))
		return 0;
	if (!pci_is_vf(host, address))
		is_given = services->is_given(services->context, address, err);
	if (is_given < 0)
		return -1;
	if (!is_given)
		return err_set(err, ERR_INVALID, "DeviceNotGiven",
			       "%s: %s is not a VF, and the kubelet has not given it to this pod: "
			       "others may use its RDMA device; name a VF, or request the resource "
			       "that has it",
			       type, address);
	host_share_netlink(host, netns_netlink(call->pair.host));
	evidence = evidence_new(host);
	who = evidence_verbs_user(evidence, address);
	return who ? set_busy(type, address, who, err) : 0;
}

int device_use_check_vfio(const struct plugin_call *call, const char *type, struct host *host,
			  const char *address, const char *driver, struct err *err)
{
	auto_evidence struct evidence *evidence = evidence_new(host);
	auto_free char *who = evidence_vfio_user(evidence, address, driver);

	return who ? set_busy(type, address, who, err) : 0;
}

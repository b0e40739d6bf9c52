// SPDX-License-Identifier: Apache-2.0
/*
 * A map from container to attachments, filled from the disk when cnid starts, and by each worker's
 * result. cni_tasks.c sends the list to the agent and asks the questions below it; the files of
 * sandboxes.c remain the truth.
 */
#include "nodeagent/cni/state/attachment_index.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/state/devices.h"

struct attachment_index {
	json_t *sandboxes; /* container -> attachments */
};

static json_t *addresses_of(const json_t *result)
{
	json_t *addresses = json_array();
	const json_t *ip;
	size_t i;

	json_array_foreach (json_at(result, "ips"), i, ip)
		if (json_str_at(ip, "address"))
			json_array_append_new(addresses, json_string(json_str_at(ip, "address")));
	return addresses;
}

json_t *attachment_index_describe(const json_t *sandbox)
{
	json_t *list = json_array();
	const json_t *record;
	size_t i;

	json_array_foreach (json_at(sandbox, "attachments"), i, record) {
		const json_t *result = json_at(record, "result");
		const char *ifname = json_str_at(record, "ifname");
		const char *plugin = json_str_or(json_at(record, "plugin"), "");
		json_t *entry = json_object();

		json_put(entry, "pod", json_deep_copy(json_at(sandbox, "pod")));
		json_put_str(entry, "container", json_str_at(sandbox, "container"));
		json_put_str(entry, "plugin", plugin);
		json_put_str(entry, "network", json_str_at(record, "network"));
		json_put_str(entry, "ifname", ifname);
		json_put_str(entry, "phase", json_str_at(record, "phase"));
		/* One that other pods have, too, is not this one's. */
		if (!attach_is_common(plugin) || str_eq(plugin, "host-device"))
			json_put_str(entry, "device", device_of(json_at(record, "config")));
		else
			json_put_str(entry, "master", json_str_at(record, "config", "master"));
		json_put_str(entry, "rdmaDevice", json_str_at(record, "saved", "rdma"));
		json_put_str(entry, "guid", json_str_at(record, "saved", "guid"));
		/* Of the interface inside; the host's end of a pair comes first in some results. */
		json_put_str(entry, "mac",
			     json_str_at(json_find(json_at(result, "interfaces"), "name", ifname),
					 "mac"));
		if (result)
			json_put(entry, "addresses", addresses_of(result));
		json_array_append_new(list, entry);
	}
	return list;
}

struct attachment_index *attachment_index_new(void)
{
	struct attachment_index *ledger = mem_new(struct attachment_index);

	ledger->sandboxes = json_object();
	return ledger;
}

void attachment_index_free(struct attachment_index *ledger)
{
	if (!ledger)
		return;
	json_decref(ledger->sandboxes);
	mem_free(ledger);
}

void attachment_index_set(struct attachment_index *ledger, const char *container,
			  json_t *attachments)
{
	assert(container);
	if (json_array_size(attachments) == 0)
		(void)json_object_del(ledger->sandboxes, container);
	else
		json_put(ledger->sandboxes, container, json_incref(attachments));
}

json_t *attachment_index_list(const struct attachment_index *ledger)
{
	json_t *list = json_array();
	const char *container;
	json_t *attachments;

	json_each (ledger->sandboxes, container, attachments)
		(void)json_array_extend(list, attachments);
	return list;
}

void attachment_index_mark(struct attachment_index *ledger, const char *container,
			   const char *plugin, const char *ifname)
{
	json_t *attachment;
	size_t i;

	assert(plugin && ifname);
	json_array_foreach (json_object_get(ledger->sandboxes, container), i, attachment)
		if (str_eq(json_str_at(attachment, "plugin"), plugin) &&
		    str_eq(json_str_at(attachment, "ifname"), ifname))
			json_put_str(attachment, "phase", "deleting");
}

bool attachment_index_carries(const struct attachment_index *ledger, const char *container,
			      const char *plugin)
{
	return json_find(json_object_get(ledger->sandboxes, container), "plugin", plugin);
}

size_t attachment_index_devices(const struct attachment_index *ledger, const char *container)
{
	const json_t *attachment;
	size_t n = 0, i;

	json_array_foreach (json_object_get(ledger->sandboxes, container), i, attachment)
		n += json_at(attachment, "device") != NULL;
	return n;
}

bool attachment_index_has(const struct attachment_index *ledger, const char *plugin,
			  const char *uid)
{
	const char *container;
	json_t *attachments;
	const json_t *attachment;
	size_t i;

	json_each (ledger->sandboxes, container, attachments)
		json_array_foreach (attachments, i, attachment)
			if (str_eq(json_str_at(attachment, "plugin"), plugin) &&
			    str_eq(json_str_at(attachment, "pod", "uid"), uid) &&
			    !str_eq(json_str_at(attachment, "phase"), "deleting"))
				return true;
	return false;
}

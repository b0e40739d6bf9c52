// SPDX-License-Identifier: Apache-2.0
/*
 * Each look is merged with the document that the look before it became: entries that are kept carry
 * the time at which they changed, so that no other state is needed. The planner and the operator
 * see the merged document only.
 */
#include "nodeagent/host_plan/history.h"

#include <assert.h>

#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/rails.h"

/* A copy of the entry with a "host" of its own, *ret_host. New. */
static json_t *own_entry(const json_t *entry, json_t **ret_host)
{
	json_t *copy = json_copy((json_t *)entry);
	const json_t *host = json_at(entry, "host");

	*ret_host = json_is_object(host) ? json_copy((json_t *)host) : json_object();
	json_put(copy, "host", *ret_host);
	return copy;
}

/* ---- PFs that are gone for a moment ---------------------------------------------------------- */

static json_t *lost_entry(const json_t *entry, int64_t now_ms)
{
	json_t *host, *lost = own_entry(entry, &host), *vfs, *vf;
	size_t i;

	/* A status comes from elsewhere: what is not a VF is left out. */
	if (json_at(entry, "Vfs")) {
		vfs = json_array();
		json_array_foreach (json_at(entry, "Vfs"), i, vf)
			if (pci_address_is_valid(json_str_or(json_at(vf, "pciAddress"), "")))
				json_array_append(vfs, vf);
		json_put(lost, "Vfs", vfs);
	}
	(void)json_object_del(host, "arrivedMs");
	json_put_int(host, "missingMs", now_ms);
	return lost;
}

static json_t *missing_of(const struct history_input *in)
{
	const json_t *there = json_at(in->observed, "interfaces");
	json_t *list = json_array(), *entry;
	size_t i;

	json_array_foreach (json_at(in->before, "missing"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");
		int64_t since_ms = json_integer_value(json_at(entry, "host", "missingMs"));

		if (address && !json_find(there, "pciAddress", address) &&
		    in->now_ms - since_ms < HISTORY_KEEP_MS)
			json_array_append(list, entry);
	}
	json_array_foreach (json_at(in->before, "interfaces"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");

		if (address && pci_address_is_valid(address) &&
		    !json_find(there, "pciAddress", address) &&
		    !json_find(list, "pciAddress", address) &&
		    (json_find(json_at(in->spec, "interfaces"), "pciAddress", address) ||
		     json_find(json_at(in->spec, "nicSettings"), "pciAddress", address)))
			json_array_append_new(list, lost_entry(entry, in->now_ms));
	}
	return list;
}

/* ---- NICs that the node itself needs --------------------------------------------------------- */

/*
 * While nothing carries the node's traffic its network is being set up again, and it is unknown
 * where it will be: time counts from when something does. NULL: it was long enough elsewhere.
 */
static json_t *still_protected(const json_t *entry, bool is_elsewhere, int64_t now_ms)
{
	const json_t *gone = json_at(entry, "goneMs");
	int64_t since = gone ? json_integer_value(gone) : now_ms;
	json_t *kept;

	if (is_elsewhere && now_ms - since >= HISTORY_PROTECT_MS)
		return NULL;
	kept = json_copy((json_t *)entry);
	(void)json_object_del(kept, "goneMs");
	if (is_elsewhere)
		json_put_int(kept, "goneMs", since);
	return kept;
}

static json_t *protected_of(const struct history_input *in)
{
	const char *boot = json_str_at(in->observed, "node", "bootId");
	const char *last_boot = json_str_at(in->before, "node", "bootId");
	json_t *list = json_array(), *entry;
	bool is_elsewhere;
	size_t i;

	json_array_foreach (json_at(in->observed, "node", "protected"), i, entry)
		if (!json_at(entry, "goneMs"))
			json_array_append(list, entry);
	if (boot && last_boot && !str_eq(boot, last_boot))
		return list;
	is_elsewhere = json_array_size(list) > 0;
	json_array_foreach (json_at(in->before, "node", "protected"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");
		json_t *kept = NULL;

		if (address && json_str_at(entry, "reason") &&
		    !json_find(list, "pciAddress", address))
			kept = still_protected(entry, is_elsewhere, in->now_ms);
		if (kept)
			json_array_append_new(list, kept);
	}
	return list;
}

json_t *history_node(const json_t *observed)
{
	json_t *node = json_object(), *list = json_array(), *entry;
	size_t i;

	json_array_foreach (json_at(observed, "node", "protected"), i, entry) {
		json_t *copy = json_copy(entry);

		(void)json_object_del(copy, "goneMs");
		json_array_append_new(list, copy);
	}
	json_put_str(node, "bootId", json_str_at(observed, "node", "bootId"));
	json_put(node, "protected", list);
	return node;
}

/* ---- PFs that are there ---------------------------------------------------------------------- */

/* Since when it is there, as far as that matters; -1: long enough, or unknown. */
static int64_t arrived_ms(const struct history_input *in, const char *address)
{
	const json_t *known = json_at(in->before, "interfaces");
	const json_t *before = json_find(known, "pciAddress", address),
		     *arrived = json_at(before, "host", "arrivedMs");
	int64_t since = json_integer_value(arrived);

	if (!json_is_array(known))
		return -1;
	if (!before)
		return in->now_ms;
	return arrived && in->now_ms - since < HISTORY_SETTLE_MS ? since : -1;
}

/* When the last fatal error of PCI Express was seen to be new; -1: none lately. */
static int64_t broken_ms(const struct history_input *in, const json_t *entry)
{
	const json_t *before = json_find(json_at(in->before, "interfaces"), "pciAddress",
					 json_str_at(entry, "pciAddress"));
	const json_t *errors = json_at(entry, "host", "fatalPciErrors"),
		     *then = json_at(before, "host", "fatalPciErrors"),
		     *broken = json_at(before, "host", "brokenMs");

	if (then && json_integer_value(errors) > json_integer_value(then))
		return in->now_ms;
	return broken && in->now_ms - json_integer_value(broken) < HISTORY_BROKEN_MS
		       ? json_integer_value(broken)
		       : -1;
}

bool history_is_ours(const json_t *acted, const char *address, int64_t now_ms)
{
	const json_t *times[] = {json_object_get(acted, address), json_object_get(acted, "")};

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] && now_ms - json_integer_value(times[i]) < HISTORY_NO_LINK_MS)
			return true;
	return false;
}

/* Since when its port has no link; -1: it has one, or it is unknown. */
static int64_t no_link_ms(const struct history_input *in, const json_t *entry)
{
	const char *address = json_str_at(entry, "pciAddress");
	const char *boot = json_str_at(in->observed, "node", "bootId");
	const json_t *before = json_find(json_at(in->before, "interfaces"), "pciAddress", address);
	const json_t *since = json_at(before, "host", "noLinkMs"),
		     *links = json_at(in->before, "linkHealth");
	/* An agent before us knew it, with a link or without. */
	bool is_known = boot && str_eq(json_str_at(links, "bootID"), boot) &&
			json_find(json_at(links, "ports"), "pciAddress", address);

	if (!json_is_false(json_at(entry, "host", "carrier")) &&
	    !str_eq(json_str_at(entry, "linkAdminState"), "down"))
		return -1;
	if (since)
		return json_integer_value(since);
	/* It was there, and nobody of ours took it: it counts as long gone. */
	return (is_known || (json_is_true(json_at(before, "host", "carrier")) &&
			     !json_at(before, "host", "arrivedMs"))) &&
			       !history_is_ours(in->acted, address, in->now_ms)
		       ? in->now_ms - HISTORY_NO_LINK_MS
		       : in->now_ms;
}

/* The entry, with the link that a message has said since the look was asked for. New. */
static json_t *newest_link(const struct history_input *in, json_t *entry)
{
	const json_t *known = json_find(json_at(in->before, "interfaces"), "pciAddress",
					json_str_at(entry, "pciAddress"));
	const json_t *changes = json_at(known, "host", "carrierChanges"),
		     *changes_seen = json_at(entry, "host", "carrierChanges");
	json_t *copy, *host;

	if (!changes_seen || json_integer_value(changes) <= json_integer_value(changes_seen) ||
	    !json_same(json_at(known, "host", "ifindex"), json_at(entry, "host", "ifindex")))
		return json_incref(entry);
	copy = own_entry(entry, &host);
	json_put(host, "carrierChanges", json_incref((json_t *)changes));
	json_put(host, "carrier", json_incref(json_at(known, "host", "carrier")));
	return copy;
}

static json_t *present_entry(const struct history_input *in, json_t *seen, const json_t *protected)
{
	const char *address = json_str_at(seen, "pciAddress");
	json_auto_t *entry = newest_link(in, seen);
	const char *why = json_str_at(json_find(protected, "pciAddress", address), "reason");
	int64_t since = arrived_ms(in, address), broken = broken_ms(in, entry),
		no_link = no_link_ms(in, entry);
	json_t *copy, *host;

	if (!address || (since < 0 && broken < 0 && no_link < 0 &&
			 (!why || json_at(entry, "host", "protected"))))
		return json_incref(entry);
	copy = own_entry(entry, &host);
	if (since >= 0)
		json_put_int(host, "arrivedMs", since);
	if (broken >= 0)
		json_put_int(host, "brokenMs", broken);
	if (no_link >= 0) {
		json_put_int(host, "noLinkMs", no_link);
		json_put_bool(host, "noLink", in->now_ms - no_link >= HISTORY_NO_LINK_MS);
	}
	if (!json_at(host, "protected"))
		json_put_str(host, "protected", why);
	return copy;
}

json_t *history_with_link(const json_t *observed, const char *address, bool is_up,
			  int64_t carrier_changes)
{
	json_t *ret, *host, *interfaces = json_copy(json_at(observed, "interfaces")), *entry;
	size_t i;

	json_array_foreach (interfaces, i, entry) {
		if (!str_eq(json_str_at(entry, "pciAddress"), address))
			continue;
		(void)json_array_set_new(interfaces, i, own_entry(entry, &host));
		json_put_str(json_array_get(interfaces, i), "linkAdminState", "up");
		json_put_bool(host, "carrier", is_up);
		if (carrier_changes >= 0)
			json_put_int(host, "carrierChanges", carrier_changes);
		(void)json_object_del(host, "noLink");
		(void)json_object_del(host, "noLinkMs");
	}
	ret = json_copy((json_t *)observed);
	json_put(ret, "interfaces", interfaces);
	return ret;
}

json_t *history_merge(const struct history_input *input)
{
	json_auto_t *ret = json_copy((json_t *)input->observed);
	json_t *protected = protected_of(input);
	const json_t *node = json_at(input->observed, "node");
	json_t *present = json_array(), *entry;
	size_t i;

	assert(json_is_object(input->observed));
	json_array_foreach (json_at(input->observed, "interfaces"), i, entry)
		json_array_append_new(present, present_entry(input, entry, protected));
	json_put(ret, "interfaces", present);
	json_put(ret, "missing", missing_of(input));
	json_put(ret, "node", json_is_object(node) ? json_copy((json_t *)node) : json_object());
	json_put(json_object_get(ret, "node"), "protected", protected);
	return rails_decide(ret, json_at(input->spec, "rails"), json_at(input->before, "rails"));
}

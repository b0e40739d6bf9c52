// SPDX-License-Identifier: Apache-2.0
/*
 * The ports that shall have rails are put into an order first; numbers follow from it. The agent
 * calls this after each look at the host, with the list of the NodeState's spec.
 */
#include "nodeagent/model/rails.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/pci_address.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* What a message quotes of a list's entry. */
#define QUOTED "%.64s"

struct rails {
	const json_t *observed;
	const json_t *known; /* "list" of the last result, where it still counts; else NULL */
	const char *from;
	json_t *list, *problems;
};

static void add_problem(struct rails *r, const char *pf, const char *reason, json_t *message)
{
	json_t *problem = json_object();

	json_put_str(problem, "pf", pf);
	json_put_str(problem, "reason", reason);
	json_put(problem, "message", message);
	json_array_append_new(r->problems, problem);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool is_called(const json_t *port, const char *name)
{
	return str_eq(json_str_at(port, "name"), name) ||
	       str_eq(json_str_at(port, "pciAddress"), name) ||
	       json_list_has(json_at(port, "altNames"), name);
}

static const json_t *rail_of(const struct rails *r, const json_t *port)
{
	return json_find(r->list, "pciAddress", json_str_at(port, "pciAddress"));
}

/* r: NULL, or ports that have a rail are passed over. */
static const json_t *find_called(const json_t *list, const char *name, const struct rails *r)
{
	auto_free char *address = pci_address_normalize(name);
	const json_t *port;
	size_t i;

	json_array_foreach ((json_t *)list, i, port)
		if (is_called(port, address ? address : name) && !(r && rail_of(r, port)))
			return port;
	return NULL;
}

/* One that is there, or away for a moment; NULL: neither. */
static const json_t *find_port(const struct rails *r, const char *name)
{
	const json_t *port = find_called(json_at(r->observed, "interfaces"), name, NULL);

	return port ? port : find_called(json_at(r->observed, "missing"), name, NULL);
}

/* Does a port without a place in any list have a rail? */
static bool is_candidate(const struct rails *r, const json_t *port)
{
	const char *address = json_str_at(port, "pciAddress");

	if (!address)
		return false;
	return (json_array_size(json_at(port, "host", "rdma")) > 0 &&
		!json_at(port, "host", "protected")) ||
	       json_find(r->known, "pciAddress", address);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void add_rail(struct rails *r, size_t rail, const json_t *port, bool is_missing)
{
	json_t *entry = json_object();

	json_put_int(entry, "rail", (int64_t)rail);
	json_put_str(entry, "name", json_str_at(port, "name"));
	json_put_str(entry, "pciAddress", json_str_at(port, "pciAddress"));
	if (is_missing)
		json_put_bool(entry, "missing", true);
	json_array_append_new(r->list, entry);
}

/* The list is the order, entry by entry. */
static void number_exactly(struct rails *r, const json_t *order)
{
	const json_t *item;
	size_t i;

	json_array_foreach ((json_t *)order, i, item) {
		const char *name = json_str_or(item, "");
		const json_t *port = find_port(r, name), *other = port ? rail_of(r, port) : NULL;

		if (i == RAILS_MAX)
			break;
		if (!port) {
			auto_free char *address = pci_address_normalize(name);
			json_auto_t *gap = json_object();

			json_put_str(gap, address ? "pciAddress" : "name",
				     address ? address : name);
			add_rail(r, i, gap, true);
			add_problem(r, json_str_at(gap, "pciAddress"), "RailNotFound",
				    json_fmt("rail %zu: \"" QUOTED "\" of %s is not a NIC of the "
					     "node; bring the NIC back, or name the one that it "
					     "has there",
					     i, name, r->from));
		} else if (other) {
			add_problem(
				r, json_str_at(port, "pciAddress"), "RailTwice",
				json_fmt("rail %zu: \"" QUOTED "\" of %s is NIC %s, which is "
					 "rail %lld already; list each NIC once",
					 i, name, r->from, json_str_or(json_at(port, "name"), name),
					 (long long)json_integer_value(json_at(other, "rail"))));
		} else {
			add_rail(r, i, port, false);
		}
	}
}

/* The next rail for a port, or for one that had a rail and vanished. */
static void number_next(struct rails *r, const json_t *port, bool is_missing)
{
	size_t rail = json_array_size(r->list);
	const char *address = json_str_at(port, "pciAddress");
	const char *name = json_str_or(json_at(port, "name"), address);

	if (!address || rail_of(r, port))
		return;
	if (rail == RAILS_MAX) {
		add_problem(r, address, "RailsTooMany",
			    json_fmt("NIC %s has no rail: a node has at most %d; list those that "
				     "shall have one in spec.rails of the SriovNetworkPoolConfig",
				     name, RAILS_MAX));
		return;
	}
	add_rail(r, rail, port, is_missing);
	if (is_missing)
		add_problem(r, address, "RailMissing",
			    json_fmt("rail %zu: NIC %s has vanished; bring it back, or, if that is "
				     "intended, reboot the node or list the rails in spec.rails of "
				     "the SriovNetworkPoolConfig",
				     rail, name));
}

static void number_listed(struct rails *r, const json_t *order)
{
	const json_t *item;
	size_t i;

	json_array_foreach ((json_t *)order, i, item) {
		const char *name = json_str_or(item, "");
		const json_t *port = find_port(r, name);
		const json_t *known = port ? NULL : find_called(r->known, name, r);

		/* One that had a rail may be there by another name. */
		if (port || known)
			number_next(r, port ? port : known,
				    !port && !find_port(r, json_str_or(json_at(known, "pciAddress"),
								       "")));
	}
}

/* The others, by PCI address: those that are there, and those that were. */
static void number_rest(struct rails *r)
{
	const json_t *lists[] = {json_at(r->observed, "interfaces"),
				 json_at(r->observed, "missing"), r->known};
	json_auto_t *sorted = json_array();
	const json_t *port;
	size_t i, at;

	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		json_array_foreach ((json_t *)lists[k], i, port) {
			const char *address = json_str_at(port, "pciAddress");

			if (!is_candidate(r, port) || json_find(sorted, "pciAddress", address))
				continue;
			for (at = json_array_size(sorted); at > 0; at--)
				if (pci_address_compare(json_str_at(json_array_get(sorted, at - 1),
								    "pciAddress"),
							address) < 0)
					break;
			(void)json_array_insert(sorted, at, (json_t *)port);
		}
	json_array_foreach (sorted, i, port)
		number_next(r, port, !find_port(r, json_str_at(port, "pciAddress")));
}

/* ---- the document ---------------------------------------------------------------------------- */

static void put_rails(const struct rails *r, json_t *ret, const char *key)
{
	const json_t *ports = json_at(r->observed, key), *port;
	json_t *list;
	size_t i;

	if (!json_is_array(ports))
		return;
	list = json_array();
	json_array_foreach ((json_t *)ports, i, port) {
		const json_t *entry = json_str_at(port, "pciAddress") ? rail_of(r, port) : NULL;
		json_t *copy = json_copy((json_t *)port);

		/* One that is away brings along what it was. */
		(void)json_object_del(copy, "rail");
		if (entry)
			json_object_set(copy, "rail", json_at(entry, "rail"));
		json_array_append_new(list, copy);
	}
	json_put(ret, key, list);
}

json_t *rails_decide(const json_t *observed, const json_t *wanted, const json_t *before)
{
	const json_t *order = json_at(wanted, "order");
	const char *boot = json_str_at(observed, "node", "bootId");
	struct rails r = {
		.observed = observed,
		.from = json_array_size(order) > 0 ? json_str_or(json_at(wanted, "from"), "spec")
						   : RAILS_BY_PCI,
		.list = json_array(),
		.problems = json_array(),
	};
	json_t *ret = json_copy((json_t *)observed), *rails = json_object(), *entry;
	bool is_exact = json_array_size(order) > 0 && json_is_true(json_at(wanted, "exact"));
	int64_t count = 0;
	size_t i;

	assert(json_is_object(observed));
	/* "from" names a policy, which may be renamed: only the kind of the order counts. */
	if (json_is_true(json_at(before, "exact")) == is_exact &&
	    str_eq(json_str_at(before, "from"), RAILS_BY_PCI) == str_eq(r.from, RAILS_BY_PCI) &&
	    str_eq(json_str_or(json_at(before, "bootID"), ""), boot ? boot : ""))
		r.known = json_at(before, "list");
	if (is_exact) {
		number_exactly(&r, order);
	} else {
		number_listed(&r, order);
		number_rest(&r);
	}
	put_rails(&r, ret, "interfaces");
	put_rails(&r, ret, "missing");
	json_array_foreach (r.list, i, entry)
		count += !json_at(entry, "missing");
	json_put_str(rails, "from", r.from);
	if (is_exact)
		json_put_bool(rails, "exact", true);
	json_put_str(rails, "bootID", boot);
	json_put_int(rails, "count", count);
	json_put(rails, "list", r.list);
	json_put(rails, "problems", r.problems);
	json_put(ret, "rails", rails);
	return ret;
}

uint32_t rails_bit(const json_t *port)
{
	const json_t *rail = json_at(port, "rail");
	json_int_t i = json_is_integer(rail) ? json_integer_value(rail) : -1;

	return i >= 0 && i < RAILS_MAX ? UINT32_C(1) << i : 0;
}

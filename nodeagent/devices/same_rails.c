// SPDX-License-Identifier: Apache-2.0
/*
 * The agent asks while the kubelet waits for preferred devices (gpu_finder.h), and again when pods
 * have got them.
 */
#include "nodeagent/devices/same_rails.h"

#include <assert.h>
#include <string.h>

#include "lib/base/rail_list.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/model/rails.h"
#include "nodeagent/model/topology.h"

_Static_assert(RAIL_LIST_MAX == (int)RAILS_MAX, "a label can name any rail");
_Static_assert(RAIL_LIST_MAX <= (int)TOPOLOGY_GPUS_MAX, "allocate_prefer() takes all rails");

/* ---- what pods have got ---------------------------------------------------------------------- */

/* {PCI address of a PF or VF: bit of its rail}, new. */
static json_t *rails_by_function(const json_t *observed)
{
	json_t *ret = json_object(), *port, *vf;
	size_t i, k;

	json_array_foreach (json_at(observed, "interfaces"), i, port) {
		if (json_str_at(port, "pciAddress"))
			json_put_int(ret, json_str_at(port, "pciAddress"), rails_bit(port));
		json_array_foreach (json_at(port, "Vfs"), k, vf)
			if (json_str_at(vf, "pciAddress"))
				json_put_int(ret, json_str_at(vf, "pciAddress"), rails_bit(port));
	}
	return ret;
}

/* Of what the pod holds; *ret_owner: one of its containers that does, or NULL. */
static uint32_t rails_held(const json_t *rails, const json_t *allocated, const char *pod,
			   const char **ret_owner)
{
	const char *resource, *id;
	json_t *devices, *owner;
	uint32_t held = 0;

	*ret_owner = NULL;
	json_each (allocated, resource, devices)
		json_each (devices, id, owner) {
			const char *who = json_str_or(owner, "");
			const char *rest = str_starts(who, pod) ? who + strlen(pod) : "";
			uint32_t rail = (uint32_t)json_integer_value(json_object_get(rails, id));

			if (*rest != '/' || !rail)
				continue;
			held |= rail;
			*ret_owner = who;
		}
	return held;
}

/* ---- what a pod shall get -------------------------------------------------------------------- */

/* All of the first `n` rails. */
static uint32_t first_rails(size_t n)
{
	return n >= RAILS_MAX ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}

/*
 * Where the group's rails begin. Blocks of n neighbours: rails of one socket stay together, and two
 * groups of one size share either all rails or none.
 */
static size_t first_of_group(const json_t *pod, const char *group, size_t n, size_t count)
{
	auto_free char *name = str_printf("%s/%s", json_namespace(pod), group);
	uint64_t hash = str_hash(name, strlen(name));

	if (n >= count)
		return 0;
	/* By Fibonacci: what a name has twice, as in "team-a/team-a", cancels out in low bits. */
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	return hash % (count / n) * n;
}

/* So many of the rails, from the first on and around; those that the pod has come last. */
static uint32_t take_rails(uint32_t rails, size_t first, size_t n, uint32_t held)
{
	uint32_t ret = 0;

	for (size_t i = 0; i < 2 * RAILS_MAX && n > 0; i++) {
		uint32_t rail = UINT32_C(1) << (first + i) % RAILS_MAX;

		if (!(rails & rail & ~ret) || (i < RAILS_MAX && held & rail))
			continue;
		ret |= rail;
		n--;
	}
	return ret;
}

uint32_t same_rails_wanted(const json_t *observed, const json_t *pod, const json_t *allocated,
			   const char *resource)
{
	const char *label = json_str_at(pod, "metadata", "labels", RAILS_LABEL), *ignored;
	size_t n = str_empty(label) ? 0 : affinity_lacks(pod, allocated, resource);
	size_t count = json_array_size(json_at(observed, "rails", "list"));
	json_t *devices = json_object_get(allocated, resource);
	json_auto_t *functions = NULL, *others = NULL;
	auto_free char *key = NULL;
	uint32_t held;

	assert(observed && resource);
	if (n == 0)
		return 0;
	/* Of this resource only: a kubelet gives a container several ones in any order. */
	others = json_object();
	json_put(others, resource, json_incref(devices));
	functions = rails_by_function(observed);
	key = json_key(pod);
	held = rails_held(functions, others, key, &ignored);
	return rail_list_is(label) ? take_rails(rail_list_parse(label), 0, n, held)
				   : take_rails(first_rails(count),
						first_of_group(pod, label, n, count), n, held);
}

json_t *same_rails_near(const json_t *observed, uint32_t rails)
{
	json_t *list = json_array(), *port;
	size_t i;

	for (; rails; rails &= rails - 1) {
		json_t *distances = json_object();

		json_array_foreach (json_at(observed, "interfaces"), i, port)
			if (json_str_at(port, "pciAddress"))
				json_put_int(distances, json_str_at(port, "pciAddress"),
					     rails_bit(port) == (rails & -rails) ? TOPOLOGY_PIX
										 : TOPOLOGY_SYS);
		json_array_append_new(list, distances);
	}
	return json_pack("{s:o}", "gpus", list);
}

/* ---- what it lacks --------------------------------------------------------------------------- */

/* Why a pod cannot have this rail, a bit. */
static const char *why_not(const json_t *observed, uint32_t rail)
{
	const json_t *port;
	size_t i;

	json_array_foreach (json_at(observed, "interfaces"), i, port)
		if (rails_bit(port) == rail)
			return "had no free device, or the kubelet asked for other devices first";
	return "has no NIC on this node";
}

json_t *same_rails_missed(const json_t *observed, const json_t *allocated, json_t *wanted)
{
	json_auto_t *rails = rails_by_function(observed);
	json_t *ret = json_array(), *entry;
	const char *pod;
	void *next;

	json_object_foreach_safe(wanted, next, pod, entry)
	{
		uint32_t want = (uint32_t)json_integer_value(entry), lacks;
		const char *owner;
		uint32_t held = rails_held(rails, allocated, pod, &owner);
		auto_free char *have_text = rail_list_text(held), *want_text = rail_list_text(want);
		auto_free char *first = NULL;

		if (!owner)
			continue;
		lacks = want & ~held;
		first = rail_list_text(lacks & -lacks);
		if (lacks)
			json_array_append_new(
				ret, json_pack("{s:s, s:o}", "pod", owner, "message",
					       json_fmt("label " RAILS_LABEL
							": the pod has rails %s and not %s: rail "
							"%s %s; to try again, delete the pod",
							have_text, want_text, first,
							why_not(observed, lacks & -lacks))));
		(void)json_object_del(wanted, pod);
	}
	return ret;
}

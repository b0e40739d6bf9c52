// SPDX-License-Identifier: Apache-2.0
/*
 * One decision, taken again after each word of the API server, each report and each load of the
 * state file (agent_schedule.c). When only time is missing to decide otherwise, the answer says how
 * much, and the agent's timer asks again.
 */
#include "nodeagent/host_plan/desired.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/json/json.h"

static bool has_interfaces(const json_t *spec)
{
	return json_array_size(json_at(spec, "interfaces")) > 0;
}

/* As the agent makes it; the operator, once it has decided, leaves at least an empty "bridges". */
static bool is_blank(const json_t *object)
{
	return json_object_size(json_at(object, "spec")) == 0;
}

/* Made again and not decided yet, as far as is known. */
static bool may_be_undecided(const struct desired_input *in)
{
	return has_interfaces(json_at(in->kept, "spec")) &&
	       !has_interfaces(json_at(in->object, "spec")) &&
	       !str_eq(json_uid(in->object), json_str_or(json_at(in->kept, "uid"), "")) &&
	       (is_blank(in->object) || in->reported_ms < DESIRED_EMPTY_MS);
}

struct desired desired_spec(const struct desired_input *in)
{
	struct desired ret = {.offered = json_at(in->kept, "spec"), .again_ms = -1};

	assert(in->heard || !in->object);
	assert(in->waited_ms >= 0 && in->reported_ms >= -1);
	if (!in->heard && in->waited_ms < DESIRED_WAIT_MS) {
		ret.again_ms = DESIRED_WAIT_MS - in->waited_ms;
		return ret;
	}
	if (!in->heard) {
		ret.source = DESIRED_KEPT;
		ret.spec = ret.offered;
		ret.generation = json_integer_value(json_at(in->kept, "generation"));
		return ret;
	}
	ret.source = DESIRED_WAITING;
	if (!in->object)
		return ret;
	if (may_be_undecided(in)) {
		if (in->reported_ms >= 0 && !is_blank(in->object))
			ret.again_ms = DESIRED_EMPTY_MS - in->reported_ms;
		return ret;
	}
	ret.spec = ret.offered = json_at(in->object, "spec");
	ret.generation = json_generation(in->object);
	ret.source = DESIRED_SERVER;
	return ret;
}

/* New; NULL when nothing is to change. */
static json_t *lower_addresses(const json_t *interfaces)
{
	json_t *list = NULL, *entry;
	size_t i;

	json_array_foreach ((json_t *)interfaces, i, entry) {
		const char *address = json_str_at(entry, "pciAddress");
		auto_free char *lower = address ? str_dup(address) : NULL;

		for (char *c = lower; c && *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		if (str_eq(lower, address))
			continue;
		if (!list)
			list = json_copy((json_t *)interfaces);
		entry = json_copy(entry);
		json_put_str(entry, "pciAddress", lower);
		json_array_set_new(list, i, entry);
	}
	return list;
}

json_t *desired_read(const json_t *object)
{
	json_t *interfaces = lower_addresses(json_at(object, "spec", "interfaces"));
	json_t *copy, *spec;

	if (!interfaces)
		return json_incref((json_t *)object);
	copy = json_copy((json_t *)object);
	spec = json_copy(json_at(object, "spec"));
	json_put(spec, "interfaces", interfaces);
	json_put(copy, "spec", spec);
	return copy;
}

json_t *desired_kept(const json_t *object)
{
	json_t *kept = json_object();

	json_put_str(kept, "uid", json_uid(object));
	json_put_int(kept, "generation", json_generation(object));
	json_put(kept, "spec", json_incref(json_at(object, "spec")));
	return kept;
}

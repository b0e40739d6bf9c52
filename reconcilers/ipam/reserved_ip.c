// SPDX-License-Identifier: Apache-2.0
/* SpiderReservedIP → status; see reserved_ip.h. */
#include "reconcilers/ipam/reserved_ip.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/ip_pool.h"

int reserved_ip_family(const json_t *spec)
{
	const json_t *version = json_at(spec, "ipVersion");
	const char *first = json_string_value(json_array_get(json_at(spec, "ips"), 0));

	if (version)
		return (int)json_integer_value(version);
	if (!first)
		return 0;
	return strchr(first, ':') ? IP_V6 : IP_V4;
}

/*
 * A network in place of addresses: what it means to keep back cannot be more than all that is in
 * it, so that other addresses need not wait for its correction.
 */
static bool read_network(const json_t *entry, enum ip_family family, struct ip_range *ret)
{
	struct ip_subnet subnet;

	if (ip_subnet_parse(json_str_or(entry, ""), &subnet, NULL) || subnet.family != family)
		return false;
	*ret = subnet.range;
	return true;
}

/* The addresses into ret, which may be NULL; what is wrong into problems, which may be NULL. */
static void read_ranges(const json_t *spec, enum ip_family family, struct ip_set *ret,
			struct problems *problems)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(spec, "ips"), i, entry) {
		auto_free char *field = str_printf("spec.ips[%zu]", i);
		struct ip_range range;
		struct err err = {0};

		if (ip_range_parse(json_str_or(entry, ""), family, &range, &err)) {
			if (problems && read_network(entry, family, &range))
				problem_add(
					problems, err.reason, field,
					"\"%s\" is a network, and addresses are wanted here, as in "
					"10.6.0.1-10.6.0.9: all of its addresses are kept back "
					"until it is corrected",
					json_string_value(entry));
			else if (problems)
				problem_add_err(problems, field, &err);
		} else if (ret) {
			ip_set_add(ret, range);
		}
	}
	if (ret)
		ip_set_settle(ret);
}

/* What spec.ipVersion says, as lenient as pools are; else the spelling of the first entry. */
static int kept_family(const json_t *spec)
{
	const json_t *version = json_at(spec, "ipVersion");
	const char *first = json_string_value(json_array_get(json_at(spec, "ips"), 0));

	if (version)
		return ip_pool_version(version);
	return strchr(first ? first : "", ':') ? IP_V6 : IP_V4;
}

int reserved_ip_read(const json_t *reserved, enum ip_family family, struct ip_set *set,
		     struct err *err)
{
	const char *name, *bad = NULL;
	size_t bad_entry = 0, i;
	json_t *object, *entry;

	assert(set && (family == IP_V4 || family == IP_V6));
	json_each (reserved, name, object) {
		if (object_is_terminating(object) ||
		    kept_family(json_at(object, "spec")) != (int)family)
			continue;
		json_array_foreach (json_at(object, "spec", "ips"), i, entry) {
			struct ip_range range;

			if (ip_range_parse(json_str_or(entry, ""), family, &range, NULL) == 0 ||
			    read_network(entry, family, &range)) {
				ip_set_add(set, range);
			} else if (!bad || strcmp(name, bad) < 0) {
				bad = name;
				bad_entry = i;
			}
		}
	}
	ip_set_settle(set);
	return bad ? err_set(err, ERR_INVALID, "BadReservedIP",
			     "spec.ips[%zu] of SpiderReservedIP %s cannot be read, so it is "
			     "unknown what it keeps back: correct it",
			     bad_entry, bad)
		   : 0;
}

void reserved_ip_check(const json_t *object, struct problems *problems)
{
	const json_t *spec = json_at(object, "spec");
	const json_t *ips = NULL;
	int family = reserved_ip_family(spec);
	struct err err = {0};

	if (json_get_strings(spec, "spec", "ips", &ips, &err))
		problem_add_err(problems, "spec.ips", &err);
	else if (json_at(spec, "ipVersion") && family != IP_V4 && family != IP_V6)
		problem_add(problems, "WrongIPVersion", "spec.ipVersion",
			    "must be 4 or 6, or be left out");
	else if (family == 0)
		problem_add(problems, "NoAddresses", "spec.ips",
			    "is empty: write the addresses to keep back, for example "
			    "10.6.0.1-10.6.0.9");
	else
		read_ranges(spec, (enum ip_family)family, NULL, problems);
}

static void plan_reserved_status(const json_t *world, const char *key, const json_t *object,
				 const struct judgement *judgement, struct plan *plan)
{
	const json_t *previous = json_at(object, "status", "conditions");
	int64_t generation = json_generation(object);
	json_t *conditions = json_array();
	json_t *status = json_object();

	conditions_judge(conditions, previous, judgement, generation, world_env(world, "now"));
	conditions_emit(plan, KIND_RESERVED_IP, key, previous, conditions);
	json_put(status, "conditions", conditions);
	json_put_int(status, "observedGeneration", generation);
	plan_status(plan, KIND_RESERVED_IP, key, status);
}

int reserved_ip_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *object = world_get(world, KIND_RESERVED_IP, key);
	auto_problems struct problems problems = {0};
	auto_ip_set struct ip_set set = {0};
	auto_free char *message = NULL;

	assert(key && plan);
	if (!object || object_is_terminating(object))
		return 0;
	reserved_ip_check(object, &problems);
	if (problems.total) {
		message = problems_text(&problems);
		plan_reserved_status(world, key, object,
				     &(struct judgement){.ready = CONDITION_FALSE,
							 .reason = problems_reason(&problems),
							 .message = message},
				     plan);
		return 0;
	}
	read_ranges(json_at(object, "spec"),
		    (enum ip_family)reserved_ip_family(json_at(object, "spec")), &set, NULL);
	message =
		str_printf("no pool gives out these %lld addresses", (long long)ip_set_count(&set));
	plan_reserved_status(world, key, object,
			     &(struct judgement){.ready = CONDITION_TRUE,
						 .reason = "Reserved",
						 .message = message},
			     plan);
	return 0;
}

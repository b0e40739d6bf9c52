// SPDX-License-Identifier: Apache-2.0
/* What a SpiderIPPool may say: the rules, each with the remedy in its message. */
#include "reconcilers/ipam/ip_pool.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/owner.h"

/* Pools that IPAM made for one application select its pods with these keys. */
#define AUTO_POOL_LABEL  "ipam.spidernet.io/owner-application-name"
#define AUTO_POOL_PREFIX "ipam.spidernet.io/app-"

void ip_pool_done(struct ip_pool *pool)
{
	ip_set_done(&pool->usable);
}

/* `problems` may be NULL everywhere in reading: then no caller wants to know. */
#define note(problems_, ...)                                                                       \
	do {                                                                                       \
		if (problems_)                                                                     \
			problem_add((problems_), __VA_ARGS__);                                     \
	} while (0)

int ip_pool_version(const json_t *version)
{
	const char *text = json_str_or(version, "");

	if (json_is_integer(version))
		return json_integer_value(version) == IP_V4   ? IP_V4
		       : json_integer_value(version) == IP_V6 ? IP_V6
							      : 0;
	return strcasecmp(text, "ipv4") == 0 ? IP_V4 : strcasecmp(text, "ipv6") == 0 ? IP_V6 : 0;
}

int ip_pool_family(const json_t *spec)
{
	const json_t *version = json_at(spec, "ipVersion");
	const char *subnet = json_str_at(spec, "subnet");

	if (version)
		return ip_pool_version(version);
	if (!subnet)
		return 0;
	return strchr(subnet, ':') ? IP_V6 : IP_V4;
}

/* "10.0.0.256" is the text after 10.0.0.255. Returns new; free(). */
static char *text_past(const struct ip_subnet *subnet)
{
	char last[IP_TEXT_SIZE];

	ip_print(IP_V4, subnet->range.last, last);
	return str_printf("%.*s.%u", (int)(strrchr(last, '.') - last), last,
			  (unsigned int)(subnet->range.last & 0xff) + 1);
}

int ip_pool_read_entry(const char *text, enum ip_family family, const struct ip_subnet *subnet,
		       struct ip_range *ret, bool *ret_clipped, struct err *err)
{
	const char *dash = strchr(text, '-');
	auto_free char *first = dash ? str_ndup(text, (size_t)(dash - text)) : NULL;
	auto_free char *past = subnet && subnet->family == IP_V4 ? text_past(subnet) : NULL;
	ip_number number;

	assert(text && ret && ret_clipped);
	*ret_clipped = dash && str_eq(dash + 1, past) &&
		       ip_parse(first, family, &number, NULL) == 0 &&
		       ip_range_has(subnet->range, number);
	if (!*ret_clipped)
		return ip_range_parse(text, family, ret, err);
	*ret = (struct ip_range){number, subnet->range.last};
	return 0;
}

static bool read_subnet(const json_t *spec, struct ip_subnet *ret, struct problems *problems)
{
	const char *text = json_str_at(spec, "subnet");
	const json_t *version = json_at(spec, "ipVersion");
	struct err err = {0};

	if (!text) {
		note(problems, "NoSubnet", "spec.subnet",
		     "is missing: write the network that the addresses belong to, for example "
		     "172.16.0.0/16");
		return false;
	}
	if (ip_subnet_parse(text, ret, &err)) {
		note(problems, err.reason, "spec.subnet", "%s", err.text);
		return false;
	}
	if (version && ip_pool_version(version) != (int)ret->family)
		note(problems, "WrongIPVersion", "spec.ipVersion",
		     "does not fit spec.subnet %s: leave it out or write %d", text, ret->family);
	return true;
}

/* One list of ranges into a set. */
static void read_ranges(const json_t *spec, const char *name, const struct ip_subnet *subnet,
			struct ip_set *ret, struct problems *problems)
{
	const json_t *entries = json_at(spec, name);
	char network[IP_SUBNET_TEXT_SIZE];
	json_t *entry;
	size_t i;

	ip_subnet_print(subnet, network);
	if (entries && !json_is_array(entries)) {
		auto_free char *field = str_printf("spec.%s", name);

		note(problems, "BadField", field, "is %s, must be an array of strings",
		     json_type_words(entries));
	}
	json_array_foreach (entries, i, entry) {
		auto_free char *field = str_printf("spec.%s[%zu]", name, i);
		struct ip_range range;
		struct err err = {0};
		bool clipped;

		if (!json_is_string(entry))
			note(problems, "BadField", field, "is %s, must be a string",
			     json_type_words(entry));
		else if (ip_pool_read_entry(json_string_value(entry), subnet->family, subnet,
					    &range, &clipped, &err))
			note(problems, err.reason, field, "%s", err.text);
		else if (!ip_range_covers(subnet->range, range))
			note(problems, "OutsideSubnet", field,
			     "%s is not inside spec.subnet %s: write addresses of that network",
			     json_string_value(entry), network);
		else
			ip_set_add(ret, range);
	}
	ip_set_settle(ret);
}

bool ip_pool_read(const json_t *object, struct ip_pool *ret, struct problems *problems)
{
	const json_t *spec = json_at(object, "spec");
	auto_ip_set struct ip_set excluded = {0};
	struct ip_pool pool = {0};

	if (!read_subnet(spec, &pool.subnet, problems))
		return false;
	read_ranges(spec, "ips", &pool.subnet, &pool.usable, problems);
	read_ranges(spec, "excludeIPs", &pool.subnet, &excluded, problems);
	ip_set_subtract(&pool.usable, &excluded);
	*ret = pool;
	return true;
}

static void warn_of_clipped(const json_t *spec, const char *name, const struct ip_subnet *subnet,
			    struct problems *warnings)
{
	char network[IP_SUBNET_TEXT_SIZE], last[IP_TEXT_SIZE];
	json_t *entry;
	size_t i;

	ip_subnet_print(subnet, network);
	ip_print(subnet->family, subnet->range.last, last);
	json_array_foreach (json_at(spec, name), i, entry) {
		auto_free char *field = str_printf("spec.%s[%zu]", name, i);
		struct ip_range range;
		bool clipped = false;

		if (ip_pool_read_entry(json_str_or(entry, ""), subnet->family, subnet, &range,
				       &clipped, NULL) == 0 &&
		    clipped)
			problem_add(warnings, "RangePastSubnet", field,
				    "%s ends one address past spec.subnet %s and is read up to %s: "
				    "write that",
				    json_string_value(entry), network, last);
	}
}

void ip_pool_warn(const json_t *object, struct problems *warnings)
{
	const json_t *spec = json_at(object, "spec");
	struct ip_subnet subnet;

	if (!read_subnet(spec, &subnet, NULL))
		return;
	warn_of_clipped(spec, "ips", &subnet, warnings);
	warn_of_clipped(spec, "excludeIPs", &subnet, warnings);
}

static void check_gateway(const json_t *spec, const struct ip_pool *pool, struct problems *problems,
			  struct problems *warnings)
{
	const char *text = json_str_at(spec, "gateway");
	char network[IP_SUBNET_TEXT_SIZE];
	ip_number gateway;
	struct err err = {0};

	if (!json_at(spec, "gateway"))
		return;
	ip_subnet_print(&pool->subnet, network);
	if (!text)
		problem_add(problems, "BadField", "spec.gateway", "is %s, must be a string",
			    json_type_words(json_at(spec, "gateway")));
	else if (ip_parse(text, pool->subnet.family, &gateway, &err))
		problem_add(problems, "BadGateway", "spec.gateway", "%s", err.text);
	else if (!ip_range_has(pool->subnet.range, gateway))
		problem_add(problems, "BadGateway", "spec.gateway",
			    "%s is not inside spec.subnet %s: write the router's address in that "
			    "network",
			    text, network);
	else if (ip_set_has(&pool->usable, gateway))
		problem_add(warnings, "GatewayInRange", "spec.ips",
			    "has the gateway %s, which no pod gets: leave it out or add it to "
			    "spec.excludeIPs",
			    text);
}

/* A member of a route, under its name or, as guides write it, another. */
static const char *route_text(const json_t *route, const char *name, const char *other)
{
	const json_t *value = json_at(route, name);

	return json_string_value(value ? value : json_at(route, other));
}

const char *ip_pool_route_dst(const json_t *route)
{
	return route_text(route, "dst", "to");
}

const char *ip_pool_route_gw(const json_t *route)
{
	return route_text(route, "gw", "via");
}

/* dst of one route; false when it cannot be compared with others. */
static bool check_route_dst(const json_t *route, const char *where, const struct ip_pool *pool,
			    struct ip_subnet *ret, struct problems *problems)
{
	auto_free char *field = str_printf("%s.dst", where);
	const char *text = ip_pool_route_dst(route);
	struct err err = {0};

	if (!text) {
		problem_add(problems, "BadRoute", field,
			    "is missing: write the destination network, for example 10.99.0.0/16");
		return false;
	}
	if (ip_subnet_parse(text, ret, &err)) {
		problem_add(problems, "BadRoute", field, "%s", err.text);
		return false;
	}
	if (ret->family != pool->subnet.family) {
		problem_add(problems, "BadRoute", field,
			    "%s is not an IPv%d network like spec.subnet", text,
			    pool->subnet.family);
		return false;
	}
	if (ret->prefix_len == 0) {
		problem_add(problems, "BadRoute", field,
			    "%s is the default route: write its router into spec.gateway instead",
			    text);
		return false;
	}
	return true;
}

static void check_route_gw(const json_t *route, const char *where, const struct ip_pool *pool,
			   struct problems *problems)
{
	auto_free char *field = str_printf("%s.gw", where);
	const char *text = ip_pool_route_gw(route);
	char network[IP_SUBNET_TEXT_SIZE];
	ip_number gw;
	struct err err = {0};

	ip_subnet_print(&pool->subnet, network);
	if (!text)
		problem_add(problems, "BadRoute", field,
			    "is missing: write a router's address inside %s", network);
	else if (ip_parse(text, pool->subnet.family, &gw, &err))
		problem_add(problems, "BadRoute", field, "%s", err.text);
	else if (!ip_range_has(pool->subnet.range, gw))
		problem_add(problems, "BadRoute", field,
			    "%s is not inside spec.subnet %s: write a router's address in that "
			    "network",
			    text, network);
}

static void check_routes(const json_t *spec, const struct ip_pool *pool, struct problems *problems)
{
	const json_t *routes = NULL;
	json_auto_t *seen = json_object();
	struct err err = {0};
	json_t *route;
	size_t i;

	if (json_get_array(spec, "spec", "routes", &routes, &err)) {
		problem_add_err(problems, "spec.routes", &err);
		return;
	}
	json_array_foreach (routes, i, route) {
		auto_free char *where = str_printf("spec.routes[%zu]", i);
		char text[IP_SUBNET_TEXT_SIZE];
		struct ip_subnet dst;

		if (check_route_dst(route, where, pool, &dst, problems)) {
			ip_subnet_print(&dst, text);
			if (json_object_get(seen, text))
				problem_add(problems, "BadRoute", where,
					    "is a second route to %s: keep one of them", text);
			json_put_bool(seen, text, true);
		}
		check_route_gw(route, where, pool, problems);
	}
}

static void check_affinity(const json_t *object, struct problems *problems)
{
	const json_t *affinity = NULL;
	struct err err = {0};

	if (json_get_object(json_at(object, "spec"), "spec", "podAffinity", &affinity, &err)) {
		problem_add_err(problems, "spec.podAffinity", &err);
		return;
	}
	if (!affinity)
		return;
	if (json_at(object, "metadata", "labels", AUTO_POOL_LABEL)) {
		const char *key;
		json_t *value;

		/* Selectors that IPAM wrote use its own keys and nothing else. */
		if (json_at(affinity, "matchExpressions"))
			problem_add(problems, "BadSelector", "spec.podAffinity.matchExpressions",
				    "is not for a pool that belongs to one application: remove it");
		json_each (json_at(affinity, "matchLabels"), key, value)
			if (!str_starts(key, AUTO_POOL_PREFIX))
				problem_add(
					problems, "BadSelector", "spec.podAffinity.matchLabels",
					"\"%s\" is not for a pool that belongs to one application: "
					"remove it",
					key);
		return;
	}
	if (json_object_size(json_at(affinity, "matchLabels")) == 0 &&
	    json_array_size(json_at(affinity, "matchExpressions")) == 0)
		problem_add(problems, "BadSelector", "spec.podAffinity",
			    "selects by nothing: add matchLabels or matchExpressions, or remove it "
			    "to serve all pods");
	label_selector_check(affinity, "spec.podAffinity", problems);
}

/* One older pool against ours. */
static void check_against(const struct ip_pool *pool, const json_t *other,
			  struct problems *problems)
{
	auto_ip_pool struct ip_pool theirs = {0};
	char our_net[IP_SUBNET_TEXT_SIZE], their_net[IP_SUBNET_TEXT_SIZE];
	struct ip_range common;

	if (!ip_pool_read(other, &theirs, NULL) || theirs.subnet.family != pool->subnet.family ||
	    !ip_range_overlaps(theirs.subnet.range, pool->subnet.range))
		return;
	if (theirs.subnet.prefix_len != pool->subnet.prefix_len) {
		ip_subnet_print(&pool->subnet, our_net);
		ip_subnet_print(&theirs.subnet, their_net);
		problem_add(
			problems, "SubnetOverlap", "spec.subnet",
			"%s overlaps %s of SpiderIPPool %s, which is older: use the same subnet "
			"with other addresses, or another subnet",
			our_net, their_net, json_name(other));
	} else if (ip_set_common(&pool->usable, &theirs.usable, &common)) {
		auto_free char *range = ip_range_text(pool->subnet.family, common);

		problem_add(
			problems, "AddressOverlap", "spec.ips",
			"%s also belongs to SpiderIPPool %s, which is older: take it out of one "
			"of them",
			range, json_name(other));
	}
}

/* By age, whatever the order of the world: the same cluster gives the same message. Returns new. */
static json_t *older_pools(const json_t *world, const json_t *object)
{
	json_t *older = json_array(), *other;
	const char *key;

	json_each (world_kind(world, KIND_IP_POOL), key, other) {
		size_t low = 0, high = json_array_size(older);

		if (str_eq(json_name(other), json_name(object)) || !object_precedes(other, object))
			continue;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (object_precedes(json_array_get(older, middle), other))
				low = middle + 1;
			else
				high = middle;
		}
		json_array_insert(older, low, other);
	}
	return older;
}

/* The network is part of what pods were told; another network is another pool. */
static void check_subnet_change(const json_t *world, const json_t *old, const struct ip_subnet *was,
				const struct ip_subnet *is, struct problems *problems)
{
	auto_problems struct problems before = {0};
	char old_text[IP_SUBNET_TEXT_SIZE], text[IP_SUBNET_TEXT_SIZE];

	ip_subnet_print(was, old_text);
	ip_subnet_print(is, text);
	if (str_eq(old_text, text))
		return;
	ip_pool_check(world, old, &before);
	if (json_find(before.list, "field", "spec.subnet"))
		return;
	problem_add(problems, "SubnetChanged", "spec.subnet",
		    "%s cannot become %s: make a new SpiderIPPool for that network, and delete "
		    "this one when no pod uses it",
		    old_text, text);
}

static void check_in_use(const json_t *old, const struct ip_pool *was, const struct ip_pool *is,
			 struct problems *problems)
{
	const char *text = json_str_or(json_at(old, "status", "allocatedIPs"), "");
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	const char *address, *first = NULL;
	json_t *record;
	size_t lost = 0;

	json_each (json_is_object(records) ? records : NULL, address, record) {
		ip_number number;

		if (ip_parse(address, was->subnet.family, &number, NULL) ||
		    !ip_set_has(&was->usable, number) ||
		    (is->subnet.family == was->subnet.family && ip_set_has(&is->usable, number)))
			continue;
		lost++;
		if (!first || strcmp(address, first) < 0)
			first = address;
	}
	if (lost)
		problem_add(problems, "InUse", "spec.ips",
			    "would lose %zu of the addresses in use, the first is %s of pod %s: "
			    "keep them until these pods are gone",
			    lost, first, json_str_or(json_at(records, first, "pod"), "?"));
}

void ip_pool_check_change(const json_t *world, const json_t *old, const json_t *object,
			  struct problems *problems)
{
	auto_ip_pool struct ip_pool was = {0}, is = {0};
	bool was_readable = ip_pool_read(old, &was, NULL);
	const char *key;
	json_t *other;

	assert(old && object && problems);
	if (!ip_pool_read(object, &is, NULL))
		return;
	if (was_readable) {
		check_subnet_change(world, old, &was.subnet, &is.subnet, problems);
		check_in_use(old, &was, &is, problems);
		if (was.subnet.family == is.subnet.family)
			ip_set_subtract(&is.usable, &was.usable);
	}
	json_each (world_kind(world, KIND_IP_POOL), key, other)
		if (!str_eq(json_name(other), json_name(object))) {
			auto_ip_pool struct ip_pool theirs = {0};
			struct ip_range common;

			if (ip_pool_read(other, &theirs, NULL) &&
			    theirs.subnet.family == is.subnet.family &&
			    ip_set_common(&is.usable, &theirs.usable, &common)) {
				auto_free char *range = ip_range_text(is.subnet.family, common);

				problem_add(problems, "AddressOverlap", "spec.ips",
					    "%s also belongs to SpiderIPPool %s: take it out of "
					    "one of them",
					    range, json_name(other));
			}
		}
}

static bool lists_alone(const json_t *spec, enum ip_family family, ip_number address)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(spec, "ips"), i, entry) {
		ip_number number;

		if (ip_parse(json_str_or(entry, ""), family, &number, NULL) == 0 &&
		    number == address)
			return true;
	}
	return false;
}

static void withhold_one(struct ip_set *set, ip_number address)
{
	ip_set_add(set, (struct ip_range){.first = address, .last = address});
}

void ip_pool_withhold(const json_t *object, const struct ip_pool *pool, struct ip_set *ret)
{
	const json_t *spec = json_at(object, "spec");
	enum ip_family family = pool->subnet.family;
	ip_number first = pool->subnet.range.first, last = pool->subnet.range.last, gateway;
	bool has_both = last - first > 1;

	assert(pool->subnet.family == IP_V4 || pool->subnet.family == IP_V6);
	if (ip_parse(json_str_or(json_at(spec, "gateway"), ""), family, &gateway, NULL) == 0)
		withhold_one(ret, gateway);
	if (has_both && !lists_alone(spec, family, first))
		withhold_one(ret, first);
	if (has_both && family == IP_V4 && !lists_alone(spec, family, last))
		withhold_one(ret, last);
	if (family == IP_V6)
		ip_set_add(ret, IP_V4_MAPPED);
	ip_set_settle(ret);
}

void ip_pool_add_nodes(const json_t *nodes, enum ip_family family, struct ip_set *ret)
{
	const char *name;
	json_t *node, *item;
	ip_number number;
	size_t i;

	assert(ret && (family == IP_V4 || family == IP_V6));
	json_each (nodes, name, node)
		json_array_foreach (json_at(node, "status", "addresses"), i, item)
			if (ip_parse(json_str_or(json_at(item, "address"), ""), family, &number,
				     NULL) == 0)
				withhold_one(ret, number);
	ip_set_settle(ret);
}

void ip_pool_check(const json_t *world, const json_t *object, struct problems *problems)
{
	ip_pool_judge(world, object, problems, problems);
}

void ip_pool_judge(const json_t *world, const json_t *object, struct problems *problems,
		   struct problems *warnings)
{
	const json_t *spec = json_at(object, "spec");
	auto_ip_pool struct ip_pool pool = {0};

	assert(object && problems && warnings);
	if (ip_pool_read(object, &pool, problems)) {
		json_auto_t *older = NULL;
		json_t *other;
		size_t i;

		check_gateway(spec, &pool, problems, warnings);
		check_routes(spec, &pool, problems);
		older = older_pools(world, object);
		json_array_foreach (older, i, other)
			check_against(&pool, other, problems);
	}
	check_affinity(object, problems);
}

bool ip_pool_is_judged(const json_t *object)
{
	const json_t *ready = condition_find(json_at(object, "status", "conditions"), "Ready");
	const json_t *generation = json_at(object, "metadata", "generation");

	return str_eq(json_str_at(ready, "status"), "True") && generation &&
	       json_equal(generation, json_at(ready, "observedGeneration"));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Two interval indexes per family: one of addresses, one of subnets; see ip_pool_index.h.
 *
 * Thousands of pools may share one subnet, which is no conflict. So the subnets' index has each
 * subnet once, with its pools aside, and a pool's own subnet is passed over.
 */
#include "reconcilers/ipam/ip_pool_index.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/ipam/ip_index.h"
#include "reconcilers/ipam/ip_pool.h"

struct family_index {
	struct ip_index *addresses; /* pools by their usable addresses and those in use */
	struct ip_index *subnets;   /* subnets by their range; the owner is the subnet's text */
};

struct ip_pool_index {
	struct family_index v4, v6;
	struct map members;   /* subnet text to struct map of pool names */
	struct map subnet_of; /* pool name to subnet text */
};

static void members_free(void *p)
{
	map_done(p);
	mem_free(p);
}

struct ip_pool_index *ip_pool_index_new(void)
{
	struct ip_pool_index *index = mem_new(struct ip_pool_index);

	index->v4 = (struct family_index){ip_index_new(), ip_index_new()};
	index->v6 = (struct family_index){ip_index_new(), ip_index_new()};
	index->members.free_value = members_free;
	index->subnet_of.free_value = mem_free;
	return index;
}

void ip_pool_index_free(struct ip_pool_index *index)
{
	if (!index)
		return;
	ip_index_free(index->v4.addresses);
	ip_index_free(index->v4.subnets);
	ip_index_free(index->v6.addresses);
	ip_index_free(index->v6.subnets);
	map_done(&index->members);
	map_done(&index->subnet_of);
	mem_free(index);
}

static struct family_index *family_of(struct ip_pool_index *index, enum ip_family family)
{
	return family == IP_V4 ? &index->v4 : &index->v6;
}

void ip_pool_index_remove(struct ip_pool_index *index, const char *name)
{
	auto_free char *subnet = map_take(&index->subnet_of, name);
	struct family_index *family;
	struct map *members;

	ip_index_remove(index->v4.addresses, name);
	ip_index_remove(index->v6.addresses, name);
	if (!subnet)
		return;
	family = family_of(index, strchr(subnet, ':') ? IP_V6 : IP_V4);
	members = map_get(&index->members, subnet);
	assert(members && members->len > 0);
	map_del(members, name);
	if (members->len == 0) {
		map_del(&index->members, subnet);
		ip_index_remove(family->subnets, subnet);
	}
}

static void join_subnet(struct ip_pool_index *index, const char *name,
			const struct ip_subnet *subnet)
{
	struct family_index *family = family_of(index, subnet->family);
	char text[IP_SUBNET_TEXT_SIZE];
	struct map *members;

	ip_subnet_print(subnet, text);
	members = map_get(&index->members, text);
	if (!members) {
		auto_ip_set struct ip_set range = {0};

		members = mem_new(struct map);
		map_set(&index->members, text, members);
		ip_set_add(&range, subnet->range);
		ip_index_put(family->subnets, text, &range);
	}
	/* A set of names: any pointer that is not NULL will do as value. */
	map_set(members, name, members);
	map_set(&index->subnet_of, name, str_dup(text));
}

void ip_pool_index_put(struct ip_pool_index *index, const json_t *object)
{
	auto_ip_set struct ip_set v4 = {0}, v6 = {0};
	auto_ip_pool struct ip_pool pool = {0};
	const char *name = json_name(object);
	const char *text;
	json_auto_t *records = NULL;
	const char *address;
	json_t *record;

	ip_pool_index_remove(index, name);
	if (ip_pool_read(object, &pool, NULL)) {
		join_subnet(index, name, &pool.subnet);
		for (size_t i = 0; i < pool.usable.len; i++)
			ip_set_add(pool.subnet.family == IP_V4 ? &v4 : &v6, pool.usable.items[i]);
	}

	/*
	 * Also those that spec.ips had before, or that a subnet which cannot be read any more had.
	 */
	text = json_str_or(json_at(object, "status", "allocatedIPs"), "");
	records = *text ? json_parse(text, strlen(text), NULL) : NULL;
	json_each (json_is_object(records) ? records : NULL, address, record) {
		enum ip_family family;
		struct ip_range one;

		if (ip_parse_any(address, &family, &one.first, NULL) < 0)
			continue;
		one.last = one.first;
		ip_set_add(family == IP_V4 ? &v4 : &v6, one);
	}
	ip_set_settle(&v4);
	ip_set_settle(&v6);
	ip_index_put(index->v4.addresses, name, &v4);
	ip_index_put(index->v6.addresses, name, &v6);
}

struct find {
	struct ip_pool_index *index;
	const char *own_subnet;
	void (*hit)(void *ctx, const char *name);
	void *ctx;
};

static void on_subnet(void *ctx, const char *subnet)
{
	struct find *find = ctx;
	const char *name;
	void *value;
	size_t i = 0;

	if (str_eq(subnet, find->own_subnet))
		return;
	while (map_next(map_get(&find->index->members, subnet), &i, &name, &value))
		find->hit(find->ctx, name);
}

void ip_pool_index_find(struct ip_pool_index *index, const json_t *object,
			void (*hit)(void *ctx, const char *name), void *ctx)
{
	auto_ip_pool struct ip_pool pool = {0};
	auto_ip_set struct ip_set range = {0};
	char subnet[IP_SUBNET_TEXT_SIZE];
	struct find find = {.index = index, .own_subnet = subnet, .hit = hit, .ctx = ctx};
	struct family_index *family;

	if (!ip_pool_read(object, &pool, NULL))
		return;
	family = family_of(index, pool.subnet.family);
	ip_subnet_print(&pool.subnet, subnet);
	ip_set_add(&range, pool.subnet.range);
	ip_index_find(family->subnets, &range, on_subnet, &find);
	ip_index_find(family->addresses, &pool.usable, hit, ctx);
}

void ip_pool_index_find_address(struct ip_pool_index *index, enum ip_family family,
				const char *address, void (*hit)(void *ctx, const char *name),
				void *ctx)
{
	auto_ip_set struct ip_set alone = {0};
	struct ip_range range;

	if (ip_parse(address, family, &range.first, NULL) < 0)
		return;
	range.last = range.first;
	ip_set_add(&alone, range);
	ip_index_find(family_of(index, family)->addresses, &alone, hit, ctx);
}

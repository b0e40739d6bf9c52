// SPDX-License-Identifier: Apache-2.0
/*
 * The index of address ranges, against a plain list of them; and the index of pools on top of it.
 */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/ipam/ip_index.h"
#include "reconcilers/ipam/ip_pool_index.h"

#define OWNERS     64
#define OWNER_MAX  4
#define STEPS      20000
#define POOLS_MANY 10000

/* Which owners were reported, and how often. */
struct seen {
	unsigned int times[OWNERS];
};

static void see(void *ctx, const char *owner)
{
	struct seen *seen = ctx;
	int64_t i;

	assert_true(str_to_int(owner, 0, OWNERS - 1, &i));
	seen->times[i]++;
}

/* Numbers that look random and are the same in every run. */
static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static struct ip_set random_ranges(uint32_t *seed)
{
	struct ip_set set = {0};
	size_t n = next(seed) % (OWNER_MAX + 1);

	for (size_t i = 0; i < n; i++) {
		ip_number first = next(seed) % 1000;

		ip_set_add(&set, (struct ip_range){first, first + next(seed) % 30});
	}
	return set;
}

static bool overlap(const struct ip_set *a, const struct ip_set *b)
{
	for (size_t i = 0; i < a->len; i++)
		for (size_t j = 0; j < b->len; j++)
			if (ip_range_overlaps(a->items[i], b->items[j]))
				return true;
	return false;
}

TEST(finds_what_a_plain_list_finds)
{
	auto_ip_index struct ip_index *index = ip_index_new();
	struct ip_set model[OWNERS] = {0};
	uint32_t seed = 1;

	for (int step = 0; step < STEPS; step++) {
		size_t i = next(&seed) % OWNERS;
		auto_free char *owner = str_printf("%zu", i);
		auto_ip_set struct ip_set query = random_ranges(&seed);
		struct seen seen = {0};

		ip_set_done(&model[i]);
		if (next(&seed) % 4)
			model[i] = random_ranges(&seed);
		ip_index_put(index, owner, &model[i]);

		ip_index_find(index, &query, see, &seen);
		for (size_t k = 0; k < OWNERS; k++)
			assert_int_equal(seen.times[k], overlap(&model[k], &query) ? 1 : 0);
	}
	for (size_t k = 0; k < OWNERS; k++)
		ip_set_done(&model[k]);
}

TEST(removing_what_is_not_there_is_fine)
{
	auto_ip_index struct ip_index *index = ip_index_new();
	auto_ip_set struct ip_set range = {0};
	struct seen seen = {0};

	ip_index_remove(index, "1");
	ip_set_add(&range, (struct ip_range){5, 9});
	ip_index_find(index, &range, see, &seen);
	ip_index_put(index, "1", &range);
	ip_index_remove(index, "1");
	ip_index_remove(index, "1");
	ip_index_find(index, &range, see, &seen);
	assert_int_equal(seen.times[1], 0);
}

static json_t *pool_new(const char *name, const char *subnet, const char *ips)
{
	return json_pack("{s:{s:s}, s:{s:s, s:[s]}}", "metadata", "name", name, "spec", "subnet",
			 subnet, "ips", ips);
}

static void put(struct ip_pool_index *index, const char *name, const char *subnet, const char *ips)
{
	json_auto_t *pool = pool_new(name, subnet, ips);

	ip_pool_index_put(index, pool);
}

static void collect(void *ctx, const char *name)
{
	strbuf_addf(ctx, "%s ", name);
}

static char *neighbours(struct ip_pool_index *index, const char *subnet, const char *ips)
{
	json_auto_t *pool = pool_new("asking", subnet, ips);
	auto_strbuf struct strbuf found = {0};

	ip_pool_index_find(index, pool, collect, &found);
	return strbuf_take(&found);
}

TEST(pools_of_one_subnet_meet_only_in_their_addresses)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	auto_free char *same = NULL, *host_bits = NULL, *other = NULL, *v6 = NULL, *gone = NULL;

	put(index, "a", "10.6.0.0/16", "10.6.0.1-10.6.0.9");
	put(index, "b", "10.6.0.0/16", "10.6.1.1-10.6.1.9");
	put(index, "six", "fd00::/64", "fd00::1-fd00::9");
	put(index, "broken", "10.6.0.0/99", "10.6.0.1");

	same = neighbours(index, "10.6.0.0/16", "10.6.0.5-10.6.0.20");
	assert_string_equal(same, "a ");
	host_bits = neighbours(index, "10.6.7.0/16", "10.6.1.9");
	assert_string_equal(host_bits, "b ");
	v6 = neighbours(index, "fd00::/64", "fd00::9-fd00::ffff");
	assert_string_equal(v6, "six ");

	ip_pool_index_remove(index, "b");
	other = neighbours(index, "10.6.1.0/24", "10.6.1.1");
	assert_string_equal(other, "a ");
	ip_pool_index_remove(index, "a");
	gone = neighbours(index, "10.6.1.0/24", "10.6.1.1");
	assert_string_equal(gone, "");
}

/* Users may ask for any address, and many pools may be of its subnet. */
TEST(an_address_is_looked_for_in_the_pools_that_have_it)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	auto_strbuf struct strbuf found = {0};

	for (int i = 1; i < 200; i++) {
		auto_free char *name = str_printf("p-%d", i), *ips = str_printf("10.6.0.%d", i);

		put(index, name, "10.6.0.0/16", ips);
	}
	put(index, "wide", "10.0.0.0/8", "10.6.0.7-10.6.0.9");
	put(index, "six", "fd00::/64", "fd00::7");
	ip_pool_index_find_address(index, IP_V4, "10.6.0.7", collect, &found);
	assert_string_equal(strbuf_str(&found), "p-7 wide ");
	strbuf_cut(&found, 0);
	ip_pool_index_find_address(index, IP_V6, "fd00::7", collect, &found);
	ip_pool_index_find_address(index, IP_V6, "10.6.0.7", collect, &found);
	assert_string_equal(strbuf_str(&found), "six ");
}

TEST(a_pool_that_moves_is_found_where_it_is)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	auto_free char *before = NULL, *after = NULL;

	put(index, "a", "10.6.0.0/16", "10.6.0.1");
	put(index, "a", "10.7.0.0/16", "10.7.0.1");
	before = neighbours(index, "10.6.0.0/16", "10.6.0.1");
	after = neighbours(index, "10.7.0.0/16", "10.7.0.1");
	assert_string_equal(before, "");
	assert_string_equal(after, "a ");
}

/* Its living pods keep them, whatever an edit has done to its ranges or its subnet. */
TEST(a_pool_is_found_by_the_addresses_that_are_in_use)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	auto_free char *moved = NULL, *unread = NULL, *six = NULL, *gone = NULL;
	json_auto_t *a = pool_new("a", "10.6.0.0/16", "10.6.0.1");
	json_auto_t *b = pool_new("b", "10.6.0.0/99", "10.6.0.1");
	json_auto_t *c = pool_new("c", "fd00::/64", "fd00::1");

	json_put(a, "status", json_pack("{s:s}", "allocatedIPs", "{\"10.6.9.1\": {}, \"?\": {}}"));
	json_put(b, "status", json_pack("{s:s}", "allocatedIPs", "{\"10.6.9.2\": {}}"));
	json_put(c, "status", json_pack("{s:s}", "allocatedIPs", "{\"fd00::9\": {}}"));
	ip_pool_index_put(index, a);
	ip_pool_index_put(index, b);
	ip_pool_index_put(index, c);
	moved = neighbours(index, "10.6.0.0/16", "10.6.9.1");
	assert_string_equal(moved, "a ");
	unread = neighbours(index, "10.6.0.0/16", "10.6.9.2");
	assert_string_equal(unread, "b ");
	six = neighbours(index, "fd00::/64", "fd00::9");
	assert_string_equal(six, "c ");
	ip_pool_index_remove(index, "b");
	gone = neighbours(index, "10.6.0.0/16", "10.6.9.2");
	assert_string_equal(gone, "");
}

TEST(one_overlap_among_ten_thousand_pools_is_one_hit)
{
	auto_ip_pool_index struct ip_pool_index *index = ip_pool_index_new();
	auto_free char *found = NULL;

	for (unsigned int i = 0; i < POOLS_MANY; i++) {
		auto_free char *name = str_printf("pool-%u", i);
		auto_free char *ips =
			str_printf("10.%u.%u.1-10.%u.%u.200", i >> 8, i & 255, i >> 8, i & 255);

		put(index, name, "10.0.0.0/8", ips);
	}
	found = neighbours(index, "10.0.0.0/8", "10.20.7.200-10.20.7.254");
	assert_string_equal(found, "pool-5127 ");
}

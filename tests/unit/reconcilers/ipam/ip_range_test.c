// SPDX-License-Identifier: Apache-2.0
/* Addresses, subnets, ranges and sets of them. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "reconcilers/ipam/ip_range.h"

#define V6_TOP (~(ip_number)0)

static struct ip_range range_of(const char *text)
{
	enum ip_family family = strchr(text, ':') ? IP_V6 : IP_V4;
	struct ip_range range;

	assert_int_equal(ip_range_parse(text, family, &range, NULL), 0);
	return range;
}

/* "a-b c d-e" */
static struct ip_set set_of(const char *text)
{
	auto_free char *copy = str_dup(text);
	struct ip_set set = {0};
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word)
			ip_set_add(&set, range_of(word));
	ip_set_settle(&set);
	return set;
}

static char *text_of(const struct ip_set *set, enum ip_family family)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < set->len; i++) {
		auto_free char *range = ip_range_text(family, set->items[i]);

		strbuf_addf(&text, "%s%s", i ? " " : "", range);
	}
	return strbuf_take(&text);
}

TEST(addresses_are_read_as_go_reads_them)
{
	static const struct {
		const char *text;
		enum ip_family family;
		bool ok;
	} cases[] = {
		{"10.0.0.1", IP_V4, true},
		{"255.255.255.255", IP_V4, true},
		{"10.0.0.256", IP_V4, false},
		{"10.0.0.01", IP_V4, false},
		{"10.0.0", IP_V4, false},
		{" 10.0.0.1", IP_V4, false},
		{"10.0.0.1 ", IP_V4, false},
		{"10.0.0.1/24", IP_V4, false},
		{"", IP_V4, false},
		{"fd00::1", IP_V4, false},
		{"fd00::1", IP_V6, true},
		{"FD00::A", IP_V6, true},
		{"::", IP_V6, true},
		{"fe80::1%eth0", IP_V6, false},
		{"fd00:::1", IP_V6, false},
		{"fd00::1::2", IP_V6, false},
		{"1:2:3:4:5:6:7", IP_V6, false},
		{"10.0.0.1", IP_V6, false},
		{"::ffff:10.0.0.1", IP_V6, false},
		{"64:ff9b::10.0.0.1", IP_V6, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ip_number address;
		bool ok = ip_parse(cases[i].text, cases[i].family, &address, NULL) == 0;

		if (ok != cases[i].ok)
			fail_msg("\"%s\": got %d", cases[i].text, ok);
	}
}

TEST(subnets_are_read_as_their_network)
{
	static const struct {
		const char *text, *network;
		bool has_host_bits;
	} cases[] = {
		{"172.16.0.0/16", "172.16.0.0/16", false},
		{"172.16.11.0/16", "172.16.0.0/16", true},
		{"10.1.2.3/32", "10.1.2.3/32", false},
		{"10.1.2.3/0", "0.0.0.0/0", true},
		{"10.20.0.1/31", "10.20.0.0/31", true},
		{"FD00:81:0::/64", "fd00:81::/64", false},
		{"fd00:81::5/64", "fd00:81::/64", true},
		{"::/0", "::/0", false},
		{"::10.6.0.0/112", "::a06:0/112", false},
		{"fd00::1/128", "fd00::1/128", false},
		{"10.0.0.0", NULL, false},
		{"10.0.0.0/33", NULL, false},
		{"10.0.0.0/-1", NULL, false},
		{"10.0.0.0/-0", NULL, false},
		{"10.0.0.0/", NULL, false},
		{"10.0.0.0/8/8", NULL, false},
		{"fd00::/129", NULL, false},
		{"/8", NULL, false},
		{"", NULL, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[IP_SUBNET_TEXT_SIZE];
		struct ip_subnet subnet;
		bool ok = ip_subnet_parse(cases[i].text, &subnet, NULL) == 0;

		assert_int_equal(ok, cases[i].network != NULL);
		if (!ok)
			continue;
		ip_subnet_print(&subnet, text);
		assert_string_equal(text, cases[i].network);
		assert_int_equal(subnet.has_host_bits, cases[i].has_host_bits);
	}
}

TEST(ranges_run_forward_within_one_family)
{
	static const char *const good[] = {"10.0.0.1", "10.0.0.1-10.0.0.1", "10.0.0.1-10.0.1.0"};
	static const char *const bad[] = {
		"10.0.0.2-10.0.0.1",          "10.0.0.1 - 10.0.0.2", "10.0.0.1-",   "-10.0.0.1",
		"10.0.0.1-10.0.0.2-10.0.0.3", "10.0.0.1-fd00::1",    "10.0.0.0/30", "",
	};
	struct ip_range range;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(ip_range_parse(good[i], IP_V4, &range, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		assert_int_equal(ip_range_parse(bad[i], IP_V4, &range, &err), -1);
		assert_string_equal(err.reason, "BadRange");
	}
}

TEST(settling_sorts_and_joins)
{
	auto_ip_set struct ip_set set =
		set_of("10.0.0.9 10.0.0.1-10.0.0.3 10.0.0.4 10.0.0.2-10.0.0.3 10.0.0.20");
	auto_free char *text = text_of(&set, IP_V4);

	assert_string_equal(text, "10.0.0.1-10.0.0.4 10.0.0.9 10.0.0.20");
	assert_int_equal(ip_set_count(&set), 6);
	assert_true(ip_set_has(&set, range_of("10.0.0.4").first));
	assert_false(ip_set_has(&set, range_of("10.0.0.5").first));
	assert_false(ip_set_has(&set, range_of("10.0.0.21").first));
}

TEST(the_ends_of_the_number_range_do_not_wrap)
{
	auto_ip_set struct ip_set all = {0}, top = {0}, none = {0};

	ip_set_add(&all, (struct ip_range){V6_TOP, V6_TOP});
	ip_set_add(&all, (struct ip_range){0, V6_TOP - 1});
	ip_set_settle(&all);
	assert_int_equal(all.len, 1);
	assert_int_equal(ip_set_count(&all), INT64_MAX);
	assert_true(ip_set_has(&all, V6_TOP));

	ip_set_add(&top, (struct ip_range){V6_TOP, V6_TOP});
	ip_set_settle(&top);
	ip_set_subtract(&all, &top);
	assert_int_equal(all.len, 1);
	assert_true(all.items[0].last == V6_TOP - 1);

	ip_set_subtract(&none, &top);
	ip_set_settle(&none);
	assert_int_equal(ip_set_count(&none), 0);
	assert_false(ip_set_common(&none, &top, NULL));
}

TEST(counts_stop_at_the_largest_integer)
{
	auto_ip_set struct ip_set set = {0};

	ip_set_add(&set, (struct ip_range){1, INT64_MAX - 1});
	ip_set_settle(&set);
	assert_int_equal(ip_set_count(&set), INT64_MAX - 1);
	ip_set_add(&set, (struct ip_range){V6_TOP - 3, V6_TOP - 3});
	ip_set_settle(&set);
	assert_int_equal(ip_set_count(&set), INT64_MAX);
	ip_set_add(&set, (struct ip_range){V6_TOP - 1, V6_TOP});
	ip_set_settle(&set);
	assert_int_equal(ip_set_count(&set), INT64_MAX);
}

TEST(subtracting_leaves_what_is_around_the_holes)
{
	static const struct {
		const char *set, *holes, *left;
	} cases[] = {
		{"10.0.0.1-10.0.0.9", "10.0.0.3-10.0.0.4 10.0.0.9",
		 "10.0.0.1-10.0.0.2 10.0.0.5-10.0.0.8"},
		{"10.0.0.1-10.0.0.9", "10.0.0.0-10.0.0.20", ""},
		{"10.0.0.1-10.0.0.9", "10.0.0.20", "10.0.0.1-10.0.0.9"},
		{"10.0.0.1-10.0.0.3 10.0.0.7-10.0.0.9", "10.0.0.3-10.0.0.7",
		 "10.0.0.1-10.0.0.2 10.0.0.8-10.0.0.9"},
		{"10.0.0.1-10.0.0.3 10.0.0.7-10.0.0.9", "10.0.0.2 10.0.0.8",
		 "10.0.0.1 10.0.0.3 10.0.0.7 10.0.0.9"},
		{"0.0.0.0-255.255.255.255", "0.0.0.0 255.255.255.255", "0.0.0.1-255.255.255.254"},
		{"", "10.0.0.1", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_ip_set struct ip_set set = set_of(cases[i].set);
		auto_ip_set struct ip_set holes = set_of(cases[i].holes);
		auto_free char *text = NULL;

		ip_set_subtract(&set, &holes);
		text = text_of(&set, IP_V4);
		assert_string_equal(text, cases[i].left);
	}
}

TEST(the_common_run_is_the_first_one)
{
	auto_ip_set struct ip_set a = set_of("fd00::1-fd00::5 fd00::10-fd00::1f");
	auto_ip_set struct ip_set b = set_of("fd00::7 fd00::15-fd00::ffff");
	auto_ip_set struct ip_set c = set_of("fd00::6-fd00::f");
	auto_free char *text = NULL;
	struct ip_range common;

	assert_true(ip_set_common(&a, &b, &common));
	text = ip_range_text(IP_V6, common);
	assert_string_equal(text, "fd00::15-fd00::1f");
	assert_false(ip_set_common(&a, &c, NULL));
}

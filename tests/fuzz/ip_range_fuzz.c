// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges: what is printed is read as the same, and sets obey the rules of sets.
 *
 * Input: ranges with blanks between them; a semicolon begins the second set.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/str.h"
#include "reconcilers/ipam/ip_range.h"
#include "tests/fuzz/fuzz.h"

static void check_subnet(const char *text)
{
	char printed[IP_SUBNET_TEXT_SIZE], again[IP_SUBNET_TEXT_SIZE];
	struct ip_subnet subnet, copy;

	if (ip_subnet_parse(text, &subnet, NULL))
		return;
	ip_subnet_print(&subnet, printed);
	/*
	 * The network of a strange subnet may lie within the range for IPv4, which has no spelling
	 * as IPv6.
	 */
	if (ip_subnet_parse(printed, &copy, NULL))
		return;
	ip_subnet_print(&copy, again);
	fuzz_check(!copy.has_host_bits && strcmp(printed, again) == 0,
		   "a network is its own network");
	fuzz_check(copy.range.first == subnet.range.first && copy.range.last == subnet.range.last,
		   "print(subnet) is read as the same");
}

static bool read_range(const char *text, enum ip_family family, struct ip_range *ret)
{
	auto_free char *printed = NULL;
	struct ip_range again;
	struct err err = {0};

	if (ip_range_parse(text, family, ret, &err)) {
		fuzz_check(!strchr(err.text, '\n') && *err.text, "an error is one line");
		return false;
	}
	fuzz_check(ret->first <= ret->last, "a range runs forward");
	printed = ip_range_text(family, *ret);
	fuzz_check(ip_range_parse(printed, family, &again, NULL) == 0 &&
			   again.first == ret->first && again.last == ret->last,
		   "print(range) is read as the same");
	return true;
}

static struct ip_set read_set(char *text, enum ip_family family)
{
	struct ip_set set = {0};
	struct ip_range range;
	char *word;

	while ((word = strsep(&text, " \n"))) {
		check_subnet(word);
		if (read_range(word, family, &range))
			ip_set_add(&set, range);
	}
	ip_set_settle(&set);
	return set;
}

static void check_settled(const struct ip_set *set)
{
	for (size_t i = 0; i < set->len; i++) {
		fuzz_check(set->items[i].first <= set->items[i].last, "runs are not empty");
		fuzz_check(i == 0 || (set->items[i].first > set->items[i - 1].last &&
				      set->items[i].first - set->items[i - 1].last > 1),
			   "runs are sorted and apart");
	}
}

static void check_difference(const struct ip_set *a, const struct ip_set *b)
{
	auto_ip_set struct ip_set left = {0}, rest = {0};

	for (size_t i = 0; i < a->len; i++) {
		ip_set_add(&left, a->items[i]);
		ip_set_add(&rest, a->items[i]);
	}
	ip_set_subtract(&left, b);
	check_settled(&left);
	fuzz_check(!ip_set_common(&left, b, NULL), "nothing of b is left");
	ip_set_subtract(&rest, &left); /* a and b have this in common */
	fuzz_check(ip_set_common(a, b, NULL) == (rest.len > 0), "two ways to see an overlap");
	if (ip_set_count(a) < INT64_MAX)
		fuzz_check(ip_set_count(a) == ip_set_count(&left) + ip_set_count(&rest),
			   "nothing is lost");
	for (size_t i = 0; i < b->len; i++) {
		fuzz_check(!ip_set_has(&left, b->items[i].first), "the ends of b are not left");
		fuzz_check(!ip_set_has(&left, b->items[i].last), "the ends of b are not left");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = str_ndup((const char *)data, size);
	enum ip_family family = strchr(text, ':') ? IP_V6 : IP_V4;
	char *second = strchr(text, ';');
	auto_ip_set struct ip_set a = {0}, b = {0};

	if (second)
		*second++ = '\0';
	a = read_set(text, family);
	if (second)
		b = read_set(second, family);
	check_settled(&a);
	check_difference(&a, &b);
	check_difference(&b, &a);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Devices that vanish and come back. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "nodeagent/kubelet/plugin_offer.h"

/* "a+ b-": device a healthy, b not. */
static json_t *resource(const char *devices)
{
	json_t *r = json_pack("{s:s, s:s, s:i, s:[]}", "name", "x/y", "kind", "sriov", "wanted", 2,
			      "devices");

	for (const char *p = devices; *p; p += p[2] ? 3 : 2)
		(void)json_array_append_new(
			json_object_get(r, "devices"),
			json_pack("{s:s#, s:b}", "id", p, 1, "healthy", p[1] == '+'));
	return r;
}

/* The same of an offer, with "a~" for one that is gone. */
static void assert_offer(const json_t *offer, const char *want)
{
	auto_strbuf struct strbuf got = {0};
	const json_t *device;
	size_t i;

	json_array_foreach (json_at(offer, "devices"), i, device) {
		bool healthy = json_is_true(json_at(device, "healthy"));

		strbuf_addf(&got, "%s%s%c", i ? " " : "", json_str_at(device, "id"),
			    json_at(device, "gone") ? '~' : (healthy ? '+' : '-'));
		assert_false(healthy && json_at(device, "gone"));
	}
	assert_string_equal(strbuf_str(&got), want);
}

TEST(a_device_that_vanishes_is_unhealthy_then_gone)
{
	json_auto_t *both = resource("a+ b+"), *one = resource("a+");
	json_auto_t *first = NULL, *second = NULL, *third = NULL, *last = NULL;
	int64_t again;

	first = plugin_offer_next(NULL, both, 1000, &again);
	assert_offer(first, "a+ b+");
	assert_int_equal(again, -1);

	second = plugin_offer_next(first, one, 2000, &again);
	assert_offer(second, "a+ b~");
	assert_int_equal(again, 2000 + PLUGIN_OFFER_GONE_MS);

	third = plugin_offer_next(second, one, 2000 + PLUGIN_OFFER_GONE_MS - 1, &again);
	assert_offer(third, "a+ b~");
	assert_int_equal(again, 2000 + PLUGIN_OFFER_GONE_MS);

	last = plugin_offer_next(third, one, 2000 + PLUGIN_OFFER_GONE_MS, &again);
	assert_offer(last, "a+");
	assert_int_equal(again, -1);
	assert_offer(both, "a+ b+"); /* borrowed, and as it was */
}

TEST(a_device_that_comes_back_is_what_it_is_now)
{
	json_auto_t *both = resource("a+ b-"), *one = resource("a+");
	json_auto_t *first = NULL, *second = NULL, *third = NULL;
	int64_t again;

	first = plugin_offer_next(NULL, both, 0, &again);
	second = plugin_offer_next(first, one, 10, &again);
	third = plugin_offer_next(second, both, 20, &again);
	assert_offer(third, "a+ b-");
	assert_int_equal(again, -1);
	assert_true(json_same(third, both));
}

TEST(the_next_to_leave_is_the_one_that_went_first)
{
	json_auto_t *all = resource("a+ b+ c+"), *two = resource("a+ c+"), *one = resource("c+");
	json_auto_t *first = NULL, *second = NULL, *third = NULL;
	int64_t again;

	first = plugin_offer_next(NULL, all, 0, &again);
	second = plugin_offer_next(first, two, 100, &again);
	third = plugin_offer_next(second, one, 200, &again);
	assert_offer(third, "c+ a~ b~");
	assert_int_equal(again, 100 + PLUGIN_OFFER_GONE_MS);
}

TEST(a_resource_that_is_wanted_no_more_leaves_with_its_last_device)
{
	json_auto_t *some = resource("a+ b+"), *none = resource("");
	json_auto_t *first = NULL, *second = NULL, *empty = NULL;
	int64_t again;

	first = plugin_offer_next(NULL, some, 0, &again);
	second = plugin_offer_next(first, NULL, 100, &again);
	assert_offer(second, "a~ b~");
	assert_int_equal(json_integer_value(json_at(second, "wanted")), 0);
	assert_null(plugin_offer_next(second, NULL, 100 + PLUGIN_OFFER_GONE_MS, &again));
	/* An empty pool is offered for as long as it is wanted, and not a moment longer. */
	empty = plugin_offer_next(NULL, none, 0, &again);
	assert_offer(empty, "");
	assert_null(plugin_offer_next(empty, NULL, 1, &again));
	assert_null(plugin_offer_next(NULL, NULL, 1, &again));
}

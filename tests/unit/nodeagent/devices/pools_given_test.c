// SPDX-License-Identifier: Apache-2.0
/*
 * Pods that start again after a boot, and the kernel's numbers of RDMA devices, which are others
 * then.
 */
#include "nodeagent/devices/pools.h"
#include "tests/unit/nodeagent/devices/pools.h"

#define X    "spidernet.io/x"
#define BOOT "b1"

/* Two VFs of a resource, "a" and "b", with the number of their verbs devices; "": none is there. */
static json_t *offer(const char *a, const char *b)
{
	const char *const ids[] = {"a", "b"}, *const numbers[] = {a, b};
	json_t *devices = json_array();

	for (size_t i = 0; i < 2; i++) {
		json_t *nodes = json_array();

		if (numbers[i][0]) {
			json_array_append_new(nodes,
					      json_fmt("/dev/infiniband/uverbs%s", numbers[i]));
			json_array_append_new(nodes,
					      json_fmt("/dev/infiniband/umad%s", numbers[i]));
			json_array_append_new(nodes, json_string("/dev/infiniband/rdma_cm"));
		}
		json_array_append_new(devices, json_pack("{s:s, s:b, s:o}", "id", ids[i], "healthy",
							 1, "nodes", nodes));
	}
	return json_pack("{s:[{s:s, s:[], s:o}], s:[]}", "resources", "name", X, "causes",
			 "devices", devices, "problems");
}

static bool is_healthy(const json_t *pools, size_t i)
{
	return json_is_true(
		json_at(json_array_get(json_at(resource(pools, X), "devices"), i), "healthy"));
}

/* The pod has "a", which was uverbs2 when it was admitted. */
static json_t *given_a(void)
{
	json_auto_t *allocated = yaml("{'" X "': {a: ml/p/c}}"), *pools = offer("2", "3");

	return pools_given(NULL, allocated, pools, BOOT);
}

TEST(what_a_pod_was_given_is_kept_while_it_has_it)
{
	json_auto_t *given = given_a(), *same = NULL, *later = NULL, *none = NULL;
	json_auto_t *pools = offer("5", "2"), *nobody = json_object(),
		    *other = yaml("{'" X "': {a: ml/q/c}}"), *pod = yaml("{'" X "': {a: ml/p/c}}");

	assert_text(given, "{\"boot\":\"" BOOT "\",\"devices\":{\"" X
			   "\":{\"a\":{\"files\":[\"/dev/infiniband/uverbs2\",\"/dev/"
			   "infiniband/umad2\"],\"pod\":\"ml/p/c\"}}}}");
	same = pools_given(given, pod, pools, BOOT);
	assert_true(json_same(same, given));
	/* Another pod was told what is right now. */
	later = pools_given(given, other, pools, BOOT);
	assert_says(later, "/dev/infiniband/uverbs5");
	none = pools_given(given, nobody, pools, BOOT);
	assert_text(none, "{\"boot\":\"" BOOT "\",\"devices\":{}}");
}

TEST(a_device_without_numbers_is_not_kept)
{
	json_auto_t *allocated = yaml("{'" X "': {a: ml/p/c}, 'other.io/y': {'7': ml/p/c}}");
	json_auto_t *pools = offer("", "3"), *given = pools_given(NULL, allocated, pools, BOOT);

	assert_text(given, "{\"boot\":\"" BOOT "\",\"devices\":{}}");
}

TEST(when_the_numbers_are_the_same_all_is_well)
{
	json_auto_t *given = given_a(), *pools = offer("2", "3"), *before = json_deep_copy(pools);

	pools_check_given(pools, given);
	assert_true(json_same(pools, before));
	pools_check_given(pools, NULL);
	assert_true(json_same(pools, before));
}

TEST(a_pod_whose_number_is_another_is_named_and_not_started)
{
	json_auto_t *given = given_a(), *pools = offer("5", "3");
	const json_t *problem;

	pools_check_given(pools, given);
	assert_false(is_healthy(pools, 0));
	assert_true(is_healthy(pools, 1));
	assert_says(json_at(resource(pools, X), "causes"),
		    "a: ml/p/c was given /dev/infiniband/uverbs2 for it, and it is "
		    "/dev/infiniband/uverbs5 now; delete that pod");
	problem = json_array_get(json_at(pools, "problems"), 0);
	assert_string_equal(json_str_at(problem, "reason"), "DeviceFilesMoved");
	assert_string_equal(json_str_at(problem, "pod"), "ml/p/c");
	assert_says(problem, "delete the pod");
}

/* Or two pods would work with one device. */
TEST(a_device_whose_file_an_old_pod_has_is_given_to_nobody)
{
	json_auto_t *given = given_a(), *pools = offer("3", "2");

	pools_check_given(pools, given);
	assert_false(is_healthy(pools, 0));
	assert_false(is_healthy(pools, 1));
	assert_says(json_at(resource(pools, X), "causes"),
		    "b: its /dev/infiniband/uverbs2 was given to ml/p/c with a; delete that pod");
	assert_int_equal(json_array_size(json_at(pools, "problems")), 1);
}

/* Its own device may come later. */
TEST(that_is_so_before_the_old_pod_s_own_is_there)
{
	json_auto_t *given = given_a(), *pools = offer("", "2");

	pools_check_given(pools, given);
	assert_true(is_healthy(pools, 0));
	assert_false(is_healthy(pools, 1));
	assert_int_equal(json_array_size(json_at(pools, "problems")), 0);
}

TEST(a_pod_that_was_given_the_file_rightly_keeps_it)
{
	json_auto_t *given = given_a(), *pools = offer("3", "2"), *both = NULL;
	json_auto_t *allocated = yaml("{'" X "': {a: ml/p/c, b: ml/q/c}}");

	both = pools_given(given, allocated, pools, BOOT);
	pools_check_given(pools, both);
	assert_false(is_healthy(pools, 0));
	assert_true(is_healthy(pools, 1));
}

/* It was admitted when the machine was about to go down: nobody wrote down what it was told. */
TEST(a_pod_without_a_record_in_the_first_list_of_a_boot_is_named)
{
	json_auto_t *given = given_a(), *pools = offer("2", "3"), *later = NULL, *still = NULL;
	json_auto_t *allocated = yaml("{'" X "': {a: ml/p/c, b: ml/q/c}}");

	later = pools_given(given, allocated, pools, "b2");
	pools_check_given(pools, later);
	assert_true(is_healthy(pools, 0));
	assert_false(is_healthy(pools, 1));
	assert_string_equal(json_str_at(json_array_get(json_at(pools, "problems"), 0), "pod"),
			    "ml/q/c");
	assert_says(json_at(pools, "problems"), "delete the pod");
	/* And stays so in the next ones, until it is gone. */
	still = pools_given(later, allocated, pools, "b2");
	assert_true(json_same(still, later));
}

TEST(a_pod_that_comes_later_in_a_boot_was_told_what_is_right)
{
	json_auto_t *given = given_a(), *pools = offer("2", "3"), *first = NULL, *later = NULL;
	json_auto_t *one = yaml("{'" X "': {a: ml/p/c}}");
	json_auto_t *both = yaml("{'" X "': {a: ml/p/c, b: ml/q/c}}");

	first = pools_given(given, one, pools, "b2");
	later = pools_given(first, both, pools, "b2");
	pools_check_given(pools, later);
	assert_true(is_healthy(pools, 0));
	assert_true(is_healthy(pools, 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of what users write. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"

static char *text_of(size_t len)
{
	auto_strbuf struct strbuf text = {0};

	for (size_t i = 0; i < len; i++)
		strbuf_add(&text, "x", 1);
	return strbuf_take(&text);
}

static json_t *pod_with(const char *annotation, const char *text)
{
	return json_pack("{s:{s:{s:s}}}", "metadata", "annotations", annotation, text);
}

TEST(weighs_json_within_strings)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *at = NULL, *above = NULL;
	struct err err = {0};

	strbuf_adds(&text, "[0");
	for (size_t i = 2; i < LIMIT_JSON_NODES; i++)
		strbuf_adds(&text, ",0");
	strbuf_adds(&text, "]");
	at = limits_parse(strbuf_str(&text), text.len, LIMIT_CONFIG_BYTES, &err);
	assert_int_equal(json_array_size(at), LIMIT_JSON_NODES - 1);
	strbuf_adds(&text, ",");
	above = limits_parse(strbuf_str(&text), text.len, LIMIT_CONFIG_BYTES, &err);
	assert_null(above);
	assert_string_equal(err.reason, "TooLarge");
	above = limits_parse("[]", 2, 1, &err);
	assert_null(above);
	assert_string_equal(err.text, "2 bytes, at most 1 are read: make it shorter");
}

TEST(each_annotation_of_a_pod_that_is_read_has_a_bound)
{
	static const char *const keys[] = {
		NETWORKS_ANNOTATION,
		DEFAULT_NETWORK_ANNOTATION,
		"ipam.spidernet.io/ippools",
		"ipam.spidernet.io/ippool",
		"ipam.spidernet.io/routes",
		"cni.spidernet.io/network-resource-inject",
		"cni.spidernet.io/rdma-resource-inject",
	};
	auto_free char *fits = text_of(LIMIT_ANNOTATION_BYTES);
	auto_free char *large = text_of(LIMIT_ANNOTATION_BYTES + 1);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_auto_t *good = pod_with(keys[i], fits), *bad = pod_with(keys[i], large);
		struct err err = {0};

		assert_int_equal(limits_check_pod(good, &err), 0);
		assert_int_equal(limits_check_pod(bad, &err), -1);
		assert_string_equal(err.reason, "TooLarge");
		assert_non_null(strstr(err.text, keys[i]));
		assert_non_null(strstr(err.text, "16385 bytes, at most 16384"));
	}
}

TEST(what_is_kept_of_a_large_annotation_is_its_size)
{
	auto_free char *large = text_of(250000);
	json_auto_t *pod = pod_with("ipam.spidernet.io/ippools", large);
	json_t *metadata = json_at(pod, "metadata"),
	       *annotations = json_at(metadata, "annotations");
	auto_free char *text = NULL;
	struct err err = {0};

	json_put_str(annotations, "ipam.spidernet.io/whatever", large);
	json_put_str(annotations, NETWORKS_ANNOTATION, "a");
	json_put(metadata, "annotations", limits_pod_annotations(annotations));
	text = json_text(pod);
	assert_string_equal(text,
			    "{\"metadata\":{\"annotations\":{\"ipam.spidernet.io/ippools\":250000,"
			    "\"k8s.v1.cni.cncf.io/networks\":\"a\"}}}");
	assert_int_equal(limits_check_pod(pod, &err), -1);
	assert_non_null(strstr(err.text, "250000 bytes"));
}

TEST(annotations_of_a_pod_that_are_read_have_a_bound_together)
{
	static const char *const keys[] = {NETWORKS_ANNOTATION, "ipam.spidernet.io/ippools",
					   "ipam.spidernet.io/ippool"};
	auto_free char *fits = text_of(LIMIT_ANNOTATION_BYTES);
	json_auto_t *pod = pod_with(keys[0], fits);
	json_t *metadata = json_at(pod, "metadata"), *all = json_at(metadata, "annotations");
	struct err err = {0};

	json_put_str(all, keys[1], fits);
	assert_int_equal(limits_check_pod(pod, &err), 0);
	json_put_str(all, keys[2], "1");
	assert_int_equal(limits_check_pod(pod, &err), -1);
	assert_string_equal(err.reason, "TooLarge");
	/* So it is after the door. */
	all = limits_pod_annotations(all);
	json_put(metadata, "annotations", all);
	assert_int_equal(json_integer_value(json_at(all, keys[2])), 1);
	assert_int_equal(limits_check_pod(pod, &err), -1);
	assert_non_null(strstr(err.text, "32769 bytes, at most 32768"));
}

TEST(labels_of_a_pod_have_a_bound_together)
{
	json_auto_t *labels = json_object(), *pod = json_object(), *kept = NULL;
	struct err err = {0};

	for (int i = 0; i < 1000; i++) {
		auto_free char *key = str_printf("example.com/label-%04d", i);

		json_put_str(labels, key, "value");
	}
	json_put(json_need_object(pod, "metadata"), "labels", json_incref(labels));
	assert_int_equal(limits_check_pod(pod, &err), -1);
	kept = limits_labels(labels);
	assert_int_equal(json_integer_value(kept), 1000 * (22 + 5));
	json_put(json_at(pod, "metadata"), "labels", json_incref(kept));
	assert_int_equal(limits_check_pod(pod, &err), -1);
	assert_string_equal(err.reason, "TooLarge");
}

TEST(values_of_users_are_reduced_wherever_they_stand)
{
	auto_free char *large = text_of(LIMIT_CONFIG_BYTES + 1), *half = text_of(40000);
	json_auto_t *spec =
		json_pack("{s:s, s:[s,s], s:{s:s}, s:[{s:s}], s:i}", "customCNI", large, "chain",
			  half, half, "block", "text", large, "list", "x", large, "mtu", 1500);
	json_auto_t *want =
		json_pack("{s:i, s:i, s:{s:i}, s:[{s:i}], s:i}", "customCNI",
			  LIMIT_CONFIG_BYTES + 1, "chain", 80000, "block", "text",
			  LIMIT_CONFIG_BYTES + 1, "list", "x", LIMIT_CONFIG_BYTES + 1, "mtu", 1500);
	json_t *many = json_array();
	struct err err = {0};

	for (int i = 0; i <= LIMIT_LIST; i++)
		json_array_append_new(many, json_string(""));
	json_put(spec, "many", many);
	json_put_int(want, "many", LIMIT_LIST + 1);
	limits_reduce(spec);
	assert_true(json_same(spec, want));
	assert_int_equal(limits_check_reduced(json_at(spec, "chain"), &err), -1);
	assert_string_equal(err.reason, "TooLarge");
	assert_int_equal(limits_check_reduced(json_at(spec, "block"), &err), 0);
}

TEST(lists_within_a_list_have_a_bound_together)
{
	json_auto_t *value = json_pack("{s:[]}", "ips");
	json_t *ips = json_at(value, "ips");
	struct err err = {0};

	for (int i = 0; i < 64; i++) {
		json_t *routes = json_array();

		for (int k = 0; k < 20; k++)
			json_array_append_new(
				routes, json_pack("{s:s, s:s}", "dst", "10.0.0.0/16", "gw", ""));
		json_array_append_new(ips, json_pack("{s:o}", "routes", routes));
	}
	/* 64 items of two values, with 20 routes of three each. */
	assert_int_equal(limits_check_list(ips, &err), 0);
	limits_reduce(value);
	assert_int_equal(json_array_size(json_at(value, "ips")), 64);
	for (int i = 0; i < 64; i++)
		json_array_extend(json_at(json_array_get(ips, (size_t)i), "routes"),
				  json_at(json_array_get(ips, 0), "routes"));
	assert_int_equal(limits_check_list(ips, &err), -1);
	assert_string_equal(err.reason, "TooLarge");
	limits_reduce(value);
	assert_true(json_integer_value(json_at(value, "ips")) > LIMIT_JSON_NODES);
}

// SPDX-License-Identifier: Apache-2.0
/* What the coordinator plugin hears of the cluster. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/pod_networks/settings.h"

static json_t *read_json(const char *text)
{
	struct err err = {0};
	json_t *value = json_parse(text, strlen(text), &err);

	assert_string_equal(err.text, "");
	return value;
}

TEST(the_one_called_default_counts)
{
	json_auto_t *list = read_json(
		"[{\"metadata\": {\"name\": \"a\"}, \"status\": {\"phase\": \"Synced\"}},"
		" {\"metadata\": {\"name\": \"default\"}, \"spec\": {\"mode\": \"underlay\","
		"  \"hijackCIDR\": [\"169.254.0.0/16\"], \"podRPFilter\": 0},"
		"  \"status\": {\"phase\": \"Synced\", \"overlayPodCIDR\": [\"10.0.0.0/8\"]}}]");
	json_auto_t *want = read_json("{\"mode\": \"underlay\", \"tunePodRoutes\": true,"
				      " \"overlayPodCIDR\": [\"10.0.0.0/8\"], \"serviceCIDR\": [],"
				      " \"hijackCIDR\": [\"169.254.0.0/16\"], \"podRPFilter\": 0}");
	json_auto_t *settings = settings_of(list, NULL, NULL);

	assert_true(json_same(settings, want));
}

TEST(without_a_default_the_first_by_name_counts)
{
	json_auto_t *list =
		read_json("[{\"metadata\": {\"name\": \"b\"}},"
			  " {\"metadata\": {\"name\": \"a\"}, \"spec\": {\"mode\": \"overlay\"},"
			  "  \"status\": {\"phase\": \"Synced\"}}]");
	json_auto_t *settings = settings_of(list, NULL, NULL);

	assert_string_equal(json_str_at(settings, "mode"), "overlay");
}

TEST(a_pod_s_own_nic_for_the_default_route_goes_before)
{
	json_auto_t *list = read_json("[{\"metadata\": {\"name\": \"default\"},"
				      "  \"spec\": {\"podDefaultRouteNIC\": \"eth0\"},"
				      "  \"status\": {\"phase\": \"Synced\"}}]");
	json_auto_t *pod = read_json("{\"metadata\": {\"annotations\": "
				     "{\"ipam.spidernet.io/default-route-nic\": \"net1\"}}}");
	json_auto_t *settings = settings_of(list, pod, NULL);

	assert_string_equal(json_str_at(settings, "podDefaultRouteNIC"), "net1");
}

TEST(a_pod_that_a_machine_migrates_to_is_told_from_others)
{
	json_auto_t *list = read_json("[{\"metadata\": {\"name\": \"default\"},"
				      "  \"status\": {\"phase\": \"Synced\"}}]");
	json_auto_t *pod =
		read_json("{\"metadata\": {\"annotations\": "
			  "{\"kubevirt.io/migrationJobName\": \"kubevirt-evacuation-x\"}}}");
	json_auto_t *target = settings_of(list, pod, NULL), *other = settings_of(list, NULL, NULL);

	assert_true(json_is_true(json_at(target, "migrating")));
	assert_null(json_at(other, "migrating"));
}

TEST(what_is_not_known_yet_is_waited_for)
{
	json_auto_t *none = json_array();
	json_auto_t *list = read_json("[{\"metadata\": {\"name\": \"default\"}, \"status\": "
				      "{\"phase\": \"NotReady\", \"reason\": \"no CIDR\"}}]");
	struct err err = {0};

	assert_null(settings_of(none, NULL, &err));
	assert_string_equal(err.reason, "NoCoordinator");
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_null(settings_of(list, NULL, &err));
	assert_string_equal(err.reason, "CoordinatorNotReady");
	assert_non_null(strstr(err.text, "no CIDR"));
}

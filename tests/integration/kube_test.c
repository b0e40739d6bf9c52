// SPDX-License-Identifier: Apache-2.0
/*
 * lib/kube on a real API server, started by kube_test.sh. Arguments: kubeconfigs of one
 * administrator, in several forms.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "lib/kube/lease.h"
#include "lib/kube/recorder.h"
#include "lib/kube/status.h"
#include "tests/support/connection.h"

static char **kubeconfigs;
static struct connection c;

static const struct kube_resource widgets = {"test.example", "v1", "widgets", "Widget", true};
static const struct kube_resource gadgets = {"test.example", "v1", "gadgets", "Gadget", true};
static const struct kube_resource config_maps = {"", "v1", "configmaps", "ConfigMap", true};
static const struct kube_resource events = {"", "v1", "events", "Event", true};
static const struct kube_resource leases = {"coordination.k8s.io", "v1", "leases", "Lease", true};
static const struct kube_write plain;

/* ---- calls, one after the other -------------------------------------------------------------- */

struct ending {
	int calls;
	struct err err;
	json_t *object;
};

static struct ending e;

static void on_end(void *arg, json_t *object, const struct err *err)
{
	struct ending *end = arg;

	end->calls++;
	end->err = err ? *err : (struct err){0};
	json_decref(end->object);
	end->object = json_incref(object);
}

static void on_time(void *arg)
{
	*(bool *)arg = true;
}

/* Turn the loop until *n is `want`; a failed test after 60 s. */
static void until(const int *n, int want)
{
	bool late = false;
	struct timer *timer = timer_new(c.loop, on_time, &late);

	timer_start(timer, 60000);
	while (*n < want && !late)
		loop_turn(c.loop, true);
	timer_free(timer);
	if (late)
		fail_msg("60 s went by: %d of %d", *n, want);
}

static void turn_for(int64_t ms)
{
	bool over = false;
	struct timer *timer = timer_new(c.loop, on_time, &over);

	timer_start(timer, ms);
	while (!over)
		loop_turn(c.loop, true);
	timer_free(timer);
}

/* The one call in `e` ends well. */
static void ends_well(void)
{
	until(&e.calls, 1);
	e.calls = 0;
	if (e.err.class != ERR_NONE)
		fail_msg("%s: %s", e.err.reason, e.err.text);
}

static void ends_with(enum err_class class, const char *reason)
{
	until(&e.calls, 1);
	e.calls = 0;
	assert_string_equal(e.err.reason, reason);
	assert_int_equal(e.err.class, class);
	assert_null(e.object);
}

static void control(const char *what, const char *arg)
{
	auto_free char *line = str_printf("%s %s %s", getenv("KUBE_TEST_CONTROL"), what, arg);

	/* Our own script, named by the script that started us. */
	assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c) */
}

static int open_connection(void **state)
{
	struct err err = {0};

	if (connection_open(&c, kubeconfigs[0], &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int close_connection(void **state)
{
	json_decref(e.object);
	e = (struct ending){0};
	connection_close(&c);
	return 0;
}

static json_t *widget(const char *name, const char *text, int replicas)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:i}}", "apiVersion", "test.example/v1",
			 "kind", "Widget", "metadata", "name", name, "namespace", "lab", "spec",
			 "text", text, "replicas", replicas);
}

static json_t *config_map(const char *prefix, int i)
{
	auto_free char *name = str_printf("%s-%d", prefix, i);

	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}}", "apiVersion", "v1", "kind",
			 "ConfigMap", "metadata", "name", name, "namespace", "lab", "data", "i",
			 name);
}

/* Connections of this process to the API server; *ret_port: our end of the last one. */
static int connections(uint16_t *ret_port)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_in peer = {0}, own = {0};
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
		    peer.sin_family != AF_INET || ntohs(peer.sin_port) != c.config.port)
			continue;
		assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
		*ret_port = own.sin_port;
		n++;
	}
	return n;
}

/* ---- who we are ------------------------------------------------------------------------------ */

static void every_form_of_kubeconfig_is_accepted(void **state)
{
	for (char **file = kubeconfigs; *file; file++) {
		struct err err = {0};

		if (connection_open(&c, *file, &err) < 0)
			fail_msg("%s: %s", *file, err.text);
		kube_get(c.client, &config_maps, "kube-system", "no-such-thing", NULL, on_end, &e);
		ends_with(ERR_TRANSIENT, "NotFound");
		kube_get_path(c.client, "/version", on_end, &e);
		ends_well();
		assert_non_null(json_str_at(e.object, "gitVersion"));
		close_connection(state);
	}
}

static void a_wrong_token_is_unauthorized(void **state)
{
	c.config.auth.token[0] ^= 1;
	kube_client_free(c.client);
	c.client = kube_client_new(c.loop, &c.config, NULL);
	kube_get(c.client, &config_maps, "lab", "x", NULL, on_end, &e);
	ends_with(ERR_TRANSIENT, "Unauthorized");
}

static void a_server_signed_by_somebody_else_is_not_trusted(void **state)
{
	free(c.config.ca_pem);
	c.config.ca_pem = NULL; /* the system's: they do not know this one */
	kube_client_free(c.client);
	c.client = kube_client_new(c.loop, &c.config, NULL);
	kube_get_path(c.client, "/version", on_end, &e);
	ends_with(ERR_TRANSIENT, "ServerUntrusted");
	assert_non_null(strstr(e.err.text, c.config.origin));
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static void an_object_goes_through_its_life(void **state)
{
	json_auto_t *made = widget("w1", "first", 1);
	json_auto_t *stored = NULL;
	json_auto_t *merge = json_pack("{s:{s:s}}", "spec", "text", "merged");
	json_auto_t *json = json_pack("[{s:s, s:s, s:i}]", "op", "replace", "path",
				      "/spec/replicas", "value", 5);
	json_auto_t *bad = json_pack("{s:{s:i}}", "spec", "text", 7);

	kube_create(c.client, &widgets, made, &plain, on_end, &e);
	ends_well();
	stored = json_incref(e.object);
	assert_true(kube_resource_version(stored) > 0);
	kube_create(c.client, &widgets, made, &plain, on_end, &e);
	ends_with(ERR_CONFLICT, "AlreadyExists");

	kube_get(c.client, &widgets, "lab", "w1", NULL, on_end, &e);
	ends_well();
	assert_true(json_same(e.object, stored));
	kube_get(c.client, &widgets, "lab", "w2", NULL, on_end, &e);
	ends_with(ERR_TRANSIENT, "NotFound");
	kube_get(c.client, &gadgets, "lab", "g", NULL, on_end, &e);
	ends_with(ERR_TRANSIENT, "NotServed");

	json_put_str(json_at(stored, "spec"), "text", "updated");
	kube_update(c.client, &widgets, stored, &plain, on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "spec", "text"), "updated");
	kube_update(c.client, &widgets, stored, &plain, on_end, &e); /* of a version that is gone */
	ends_with(ERR_CONFLICT, "Conflict");

	kube_patch(c.client, &widgets, "lab", "w1", KUBE_PATCH_MERGE, merge, &plain, on_end, &e);
	ends_well();
	kube_patch(c.client, &widgets, "lab", "w1", KUBE_PATCH_JSON, json, &plain, on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "spec", "text"), "merged");
	assert_int_equal(json_integer_value(json_at(e.object, "spec", "replicas")), 5);
	kube_patch(c.client, &widgets, "lab", "w1", KUBE_PATCH_MERGE, bad, &plain, on_end, &e);
	ends_with(ERR_INVALID, "Invalid");

	kube_delete(c.client, &widgets, "lab", "w1", "another-uid", NULL, &plain, on_end, &e);
	ends_with(ERR_CONFLICT, "Conflict");
	kube_delete(c.client, &widgets, "lab", "w1", json_uid(stored), "1", &plain, on_end, &e);
	ends_with(ERR_CONFLICT, "Conflict");
	kube_delete(c.client, &widgets, "lab", "w1", json_uid(stored), NULL, &plain, on_end, &e);
	ends_well();
	kube_delete(c.client, &widgets, "lab", "w1", NULL, NULL, &plain, on_end, &e);
	ends_with(ERR_TRANSIENT, "NotFound");
}

static void applied_fields_have_an_owner(void **state)
{
	const struct kube_write ours = {.field_manager = "ours"};
	const struct kube_write theirs = {.field_manager = "theirs"};
	const struct kube_write force = {.field_manager = "theirs", .force = true};
	json_auto_t *one = widget("applied", "one", 1);
	json_auto_t *two = widget("applied", "two", 1);

	kube_patch(c.client, &widgets, "lab", "applied", KUBE_PATCH_APPLY, one, &ours, on_end, &e);
	ends_well();
	kube_patch(c.client, &widgets, "lab", "applied", KUBE_PATCH_APPLY, two, &theirs, on_end,
		   &e);
	ends_with(ERR_CONFLICT, "Conflict");
	kube_patch(c.client, &widgets, "lab", "applied", KUBE_PATCH_APPLY, two, &force, on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "spec", "text"), "two");
}

static void a_dry_run_stores_nothing(void **state)
{
	const struct kube_write dry = {.dry_run = true};
	json_auto_t *made = widget("dry", "x", 1);

	kube_create(c.client, &widgets, made, &dry, on_end, &e);
	ends_well();
	kube_get(c.client, &widgets, "lab", "dry", NULL, on_end, &e);
	ends_with(ERR_TRANSIENT, "NotFound");
}

static void status_and_scale_are_written_apart_from_the_rest(void **state)
{
	const struct kube_write status = {.subresource = "status"};
	const struct kube_write scale = {.subresource = "scale"};
	json_auto_t *made = widget("sub", "x", 1);
	json_auto_t *both =
		json_pack("{s:{s:i}, s:{s:s}}", "status", "replicas", 3, "spec", "text", "y");
	json_auto_t *four = json_pack("{s:{s:i}}", "spec", "replicas", 4);

	kube_create(c.client, &widgets, made, &plain, on_end, &e);
	ends_well();
	kube_patch(c.client, &widgets, "lab", "sub", KUBE_PATCH_MERGE, both, &status, on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "spec", "text"), "x");
	kube_get(c.client, &widgets, "lab", "sub", "scale", on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "kind"), "Scale");
	assert_int_equal(json_integer_value(json_at(e.object, "status", "replicas")), 3);
	kube_patch(c.client, &widgets, "lab", "sub", KUBE_PATCH_MERGE, four, &scale, on_end, &e);
	ends_well();
	kube_get(c.client, &widgets, "lab", "sub", NULL, on_end, &e);
	ends_well();
	assert_int_equal(json_integer_value(json_at(e.object, "spec", "replicas")), 4);
}

/* ---- many at a time -------------------------------------------------------------------------- */

struct crowd {
	int ended, failed, existed;
};

static void on_crowd(void *arg, json_t *object, const struct err *err)
{
	struct crowd *crowd = arg;

	crowd->ended++;
	crowd->existed += kube_err_is(err, "AlreadyExists");
	crowd->failed += err && !kube_err_is(err, "AlreadyExists");
}

static void create_many(struct crowd *crowd, const char *prefix, int n)
{
	for (int i = 0; i < n; i++) {
		json_auto_t *object = config_map(prefix, i);

		kube_create(c.client, &config_maps, object, &plain, on_crowd, crowd);
	}
}

static int count_listed(const char *prefix)
{
	size_t i = 0;
	json_t *item = NULL;
	int n = 0;

	kube_list(c.client, &config_maps, "lab", NULL, on_end, &e);
	ends_well();
	json_array_foreach (json_at(e.object, "items"), i, item)
		n += str_starts(json_name(item), prefix);
	return n;
}

static void hundreds_of_calls_share_a_few_connections(void **state)
{
	struct crowd crowd = {0};
	uint16_t ignored = 0;

	create_many(&crowd, "shared", 200); /* before there is a connection */
	until(&crowd.ended, 100);
	assert_in_range(connections(&ignored), 1, 3); /* 99 streams on each */
	until(&crowd.ended, 200);
	assert_int_equal(crowd.failed + crowd.existed, 0);
	assert_in_range(connections(&ignored), 1, 3);
}

static void calls_in_flight_survive_a_restart_of_the_server(void **state)
{
	struct crowd crowd = {0};

	create_many(&crowd, "restart", 20);
	until(&crowd.ended, 20);
	create_many(&crowd, "again", 200);
	turn_for(10);
	control("stop", "");
	turn_for(500);
	control("start", "");
	until(&crowd.ended, 220);
	assert_int_equal(crowd.failed, 0);
	assert_int_equal(count_listed("again-"), 200);
}

/* It acknowledges everything, so the kernel sees nothing wrong with the connection. */
static void a_connection_to_a_server_that_hangs_is_left(void **state)
{
	json_auto_t *made = config_map("hang", 1);
	const struct kube_write quick = {.timeout_ms = 2500};
	uint16_t before = 0, after = 0;

	kube_get_path(c.client, "/version", on_end, &e);
	ends_well();
	assert_int_equal(connections(&before), 1);
	control("freeze", "");
	kube_create(c.client, &config_maps, made, &quick, on_end, &e);
	until(&e.calls, 1);
	control("thaw", "");
	ends_with(ERR_TRANSIENT, "DeadlineExceeded");
	kube_get_path(c.client, "/version", on_end, &e);
	ends_well();
	assert_int_equal(connections(&after), 1);
	assert_int_not_equal(before, after);
}

/* ---- informers ------------------------------------------------------------------------------- */

static const struct cache_kind map_kind;
static const splitter_path drop_managed[] = {{"metadata", "managedFields"}};

struct mirror {
	struct cache *cache;
	struct informer *informer;
	struct metrics *metrics;
	int appeared, changed, gone, synced;
};

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct mirror *m = arg;

	m->appeared += !old;
	m->gone += !now;
	m->changed += old && now;
}

static void on_synced(void *arg)
{
	((struct mirror *)arg)->synced++;
}

static void mirror_open(struct mirror *m)
{
	*m = (struct mirror){.metrics = metrics_new()};
	m->cache = cache_new(&map_kind, on_changed, m);
	m->informer = informer_new(c.loop, c.client,
				   &(struct informer_config){
					   .resource = &config_maps,
					   .ns = "lab",
					   .drops = drop_managed,
					   .n_drops = ARRAY_LEN(drop_managed),
					   .cache = m->cache,
					   .synced = on_synced,
					   .metrics = m->metrics,
					   .arg = m,
				   });
	until(&m->synced, 1);
}

static void mirror_close(struct mirror *m)
{
	informer_free(m->informer);
	cache_free(m->cache);
	metrics_free(m->metrics);
}

static int lists(const struct mirror *m)
{
	return (int)metric_get(
		metric_counter(m->metrics, "orbweaver_informer_lists_total", "", "resource"),
		"configmaps");
}

/* What the cache has is what the server has: keys and versions. */
static void assert_mirrored(const struct mirror *m)
{
	size_t i = 0;
	json_t *item = NULL;

	kube_list(c.client, &config_maps, "lab", NULL, on_end, &e);
	ends_well();
	turn_for(300);
	assert_int_equal(json_array_size(json_at(e.object, "items")), cache_len(m->cache));
	json_array_foreach (json_at(e.object, "items"), i, item) {
		auto_free char *key = json_key(item);

		assert_int_equal(cache_version(m->cache, key), kube_resource_version(item));
	}
}

static void touch(const char *prefix, int i, const char *value)
{
	auto_free char *name = str_printf("%s-%d", prefix, i);
	json_auto_t *patch = json_pack("{s:{s:s}}", "data", "touched", value);

	kube_patch(c.client, &config_maps, "lab", name, KUBE_PATCH_MERGE, patch, &plain, on_end,
		   &e);
	ends_well();
}

static void thousands_of_objects_are_mirrored(void **state)
{
	struct crowd crowd = {0};
	struct mirror m;

	create_many(&crowd, "many", 2200);
	until(&crowd.ended, 2200);
	mirror_open(&m);
	assert_true(cache_len(m.cache) >= 2200); /* five pages */
	assert_int_equal(lists(&m), 1);
	touch("many", 7, "seven");
	until(&m.changed, 1);
	kube_delete(c.client, &config_maps, "lab", "many-8", NULL, NULL, &plain, on_end, &e);
	ends_well();
	until(&m.gone, 1);
	assert_mirrored(&m);
	mirror_close(&m);
}

/* 1.20 refuses them, and all who use the client know. */
static void a_server_without_streamed_lists_is_no_obstacle(void **state)
{
	struct mirror m;

	assert_true(kube_client_may_stream(c.client, "configmaps"));
	mirror_open(&m);
	assert_false(kube_client_may_stream(c.client, "configmaps"));
	assert_true(kube_client_may_stream(c.client, "nodes"));
	assert_mirrored(&m);
	mirror_close(&m);
}

static void a_watch_is_resumed_after_a_restart(void **state)
{
	struct mirror m;

	mirror_open(&m);
	control("stop", "");
	turn_for(1500);
	control("start", "");
	touch("many", 9, "after the restart");
	until(&m.changed, 1);
	assert_int_equal(m.gone, 0);
	assert_int_equal(lists(&m), 1);
	assert_mirrored(&m);
	mirror_close(&m);
}

static void what_vanished_unseen_is_removed_after_a_compaction(void **state)
{
	struct mirror m;
	int before = 0;

	mirror_open(&m);
	before = (int)cache_len(m.cache);
	control("stop", "");
	turn_for(500);
	control("forget",
		"/registry/configmaps/lab/many-1"); /* 1, 10 to 19, 100 to 199, 1000 to 1999 */
	control("start", "");
	until(&m.gone, 1111);
	assert_int_equal(m.gone, 1111);
	assert_int_equal(before - (int)cache_len(m.cache), 1111);
	assert_int_equal(m.changed, 0);
	assert_int_equal(lists(&m), 2);
	touch("many", 2, "goes on");
	until(&m.changed, 1);
	assert_mirrored(&m);
	mirror_close(&m);
}

/* ---- leases ---------------------------------------------------------------------------------- */

struct candidate {
	struct connection connection;
	struct lease *lease;
	int64_t since_ms;
	int began, ended, released;
};

static void on_leading(void *arg, bool leading)
{
	struct candidate *candidate = arg;

	candidate->began += leading;
	candidate->ended += !leading;
	candidate->since_ms = clock_ms();
}

static void on_released(void *arg)
{
	((struct candidate *)arg)->released++;
}

static void candidate_open(struct candidate *candidate, const char *identity)
{
	*candidate = (struct candidate){0};
	candidate->connection.client = kube_client_new(c.loop, &c.config, NULL);
	candidate->lease = lease_new(c.loop, candidate->connection.client,
				     &(struct lease_config){
					     .ns = "lab",
					     .name = "op",
					     .identity = identity,
					     .field_manager = "test",
					     .changed = on_leading,
					     .arg = candidate,
				     });
}

static void candidate_close(struct candidate *candidate)
{
	lease_free(candidate->lease);
	kube_client_free(candidate->connection.client);
}

static void one_of_two_candidates_leads_and_a_release_is_quick(void **state)
{
	struct candidate one, two;
	int64_t began = 0;

	candidate_open(&one, "one");
	until(&one.began, 1);
	candidate_open(&two, "two");
	turn_for(6000); /* a renewal and some looks */
	assert_true(lease_is_held(one.lease));
	assert_false(lease_is_held(two.lease));
	assert_string_equal(lease_holder(two.lease), "one");
	began = clock_ms();
	lease_release(one.lease, on_released, &one);
	until(&one.released, 1);
	until(&two.began, 1);
	assert_true(clock_ms() - began < 4000);
	kube_get(c.client, &leases, "lab", "op", NULL, on_end, &e);
	ends_well();
	assert_string_equal(json_str_at(e.object, "spec", "holderIdentity"), "two");
	candidate_close(&one);
	lease_release(two.lease, on_released, &two);
	until(&two.released, 1);
	candidate_close(&two);
}

static void a_dead_leader_is_replaced_after_its_term(void **state)
{
	struct candidate one, two;
	int64_t died = 0;

	candidate_open(&one, "one");
	until(&one.began, 1);
	candidate_open(&two, "two");
	turn_for(1000);
	died = clock_ms();
	candidate_close(&one); /* says nothing */
	until(&two.began, 1);
	assert_in_range(clock_ms() - died, 10000, 19000);
	candidate_close(&two);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void events_can_be_seen(void **state)
{
	struct recorder *recorder = recorder_new(c.client, "orbweaver-test", "pod-1", false, NULL);
	struct event_object about = {&widgets, "lab", "sub", NULL, NULL};
	auto_free char *uid = NULL;
	json_t *item = NULL;

	kube_get(c.client, &widgets, "lab", "sub", NULL, on_end, &e);
	ends_well();
	uid = str_dup(json_uid(e.object));
	about.uid = uid;
	for (int i = 0; i < 3; i++)
		recorder_emit(recorder, &about, true, "NoSuchNic", "ens1f0 is not there");
	turn_for(500);
	kube_list(c.client, &events, "lab", "fieldSelector=involvedObject.name%3Dsub", on_end, &e);
	ends_well();
	assert_int_equal(json_array_size(json_at(e.object, "items")), 1);
	item = json_array_get(json_at(e.object, "items"), 0);
	assert_int_equal(json_integer_value(json_at(item, "count")), 3);
	assert_string_equal(json_str_at(item, "involvedObject", "uid"), uid);
	assert_string_equal(json_str_at(item, "type"), "Warning");
	recorder_free(recorder);
}

#define real(test) cmocka_unit_test_setup_teardown(test, open_connection, close_connection)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_kubeconfig_is_accepted),
		real(a_wrong_token_is_unauthorized),
		real(a_server_signed_by_somebody_else_is_not_trusted),
		real(an_object_goes_through_its_life),
		real(applied_fields_have_an_owner),
		real(a_dry_run_stores_nothing),
		real(status_and_scale_are_written_apart_from_the_rest),
		real(events_can_be_seen),
		real(hundreds_of_calls_share_a_few_connections),
		real(calls_in_flight_survive_a_restart_of_the_server),
		real(a_connection_to_a_server_that_hangs_is_left),
		real(thousands_of_objects_are_mirrored),
		real(a_server_without_streamed_lists_is_no_obstacle),
		real(a_watch_is_resumed_after_a_restart),
		real(what_vanished_unseen_is_removed_after_a_compaction),
		real(one_of_two_candidates_leads_and_a_release_is_quick),
		real(a_dead_leader_is_replaced_after_its_term),
	};

	if (argc < 2 || !getenv("KUBE_TEST_CONTROL")) {
		(void)fprintf(stderr, "started by tests/integration/kube_test.sh\n");
		return 2;
	}
	kubeconfigs = argv + 1;
	return cmocka_run_group_tests_name("lib/kube on an API server", tests, NULL, NULL);
}

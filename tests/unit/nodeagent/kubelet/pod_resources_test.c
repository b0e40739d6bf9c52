// SPDX-License-Identifier: Apache-2.0
/* Which pod has which device, from kubelets that say it in different ways, or not at all. */
#include "tests/support/test.h"

#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/message.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/kubelet/pod_resources_read.h"
#include "tests/support/until.h"
#include "tests/unit/grpc/hex.h"

/* ---- the document ---------------------------------------------------------------------------- */

static char *read_hex(const char *hex)
{
	auto_strbuf struct strbuf bytes = from_hex(hex);
	struct grpc_status status;
	ProtobufCMessage *list =
		grpc_message_decode(&pod_resources__list_pod_resources_response__descriptor,
				    bytes.data, bytes.len, GRPC_MESSAGE_MAX, &status);
	json_auto_t *allocated = NULL;

	assert_non_null(list);
	allocated = pod_resources_read((const void *)list);
	grpc_message_free(list);
	return json_text(allocated);
}

TEST(a_recorded_list_is_read)
{
	static const struct {
		const char *hex, *want;
	} cases[] = {
		{"", "{}"},
		/* Encoded by hand from podresources/v1. */
		{"0a1d 0a0170 12026e73 1a14 0a0163 120f 0a0a 72646d612f6863615f61 120137",
		 "{\"rdma/hca_a\":{\"7\":\"ns/p/c\"}}"},
		/*
		 * As since 1.21: an entry for each device; here with a topology that is passed
		 * over.
		 */
		{"0a37 0a0170 12026e73 1a2e 0a0163"
		 "120f 0a0a 72646d612f6863615f61 120137"
		 "1218 0a0a 72646d612f6863615f61 120138 1a07 0a05 08ffffff7f",
		 "{\"rdma/hca_a\":{\"7\":\"ns/p/c\",\"8\":\"ns/p/c\"}}"},
		/* A container without devices, a resource without ids. */
		{"0a1b 0a0170 12026e73 1a03 0a0163 1a0d 0a0164 1208 0a06 6162632f6465", "{}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = read_hex(cases[i].hex);

		assert_string_equal(got, cases[i].want);
	}
}

/* A pod with two containers that have the same device. */
static char *read_two(const char *first, const char *second)
{
	char *id = (char *)"7";
	PodResources__ContainerDevices devices = POD_RESOURCES__CONTAINER_DEVICES__INIT;
	PodResources__ContainerDevices *of_container[] = {&devices};
	PodResources__ContainerResources a = POD_RESOURCES__CONTAINER_RESOURCES__INIT, b = a;
	PodResources__ContainerResources *containers[] = {&a, &b};
	PodResources__PodResources pod = POD_RESOURCES__POD_RESOURCES__INIT;
	PodResources__PodResources *pods[] = {&pod};
	PodResources__ListPodResourcesResponse list =
		POD_RESOURCES__LIST_POD_RESOURCES_RESPONSE__INIT;
	json_auto_t *allocated = NULL;

	devices.resource_name = (char *)"a/b\xff";
	devices.device_ids = &id;
	devices.n_device_ids = 1;
	a.name = (char *)first;
	b.name = (char *)second;
	a.devices = b.devices = of_container;
	a.n_devices = b.n_devices = 1;
	pod.name = (char *)"p";
	pod.namespace_ = (char *)"ns";
	pod.containers = containers;
	pod.n_containers = 2;
	list.pod_resources = pods;
	list.n_pod_resources = 1;
	allocated = pod_resources_read(&list);
	return json_text(allocated);
}

TEST(of_two_containers_the_same_is_named_each_time)
{
	auto_free char *one = read_two("init", "main"), *other = read_two("main", "init");

	assert_string_equal(one, "{\"a/b\xef\xbf\xbd\":{\"7\":\"ns/p/init\"}}");
	assert_string_equal(one, other);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct stand {
	struct loop *loop;
	char dir[64];
	char *socket;
	struct grpc_server *server;
	struct pod_resources *resources;
	bool closed;
	int asked, asked_old, changed, checked;
	char *text; /* what was told last, or the error's reason */
	struct strbuf errors;
	int64_t wait_ms, lose_ms;
	/* what the server answers */
	const char *owner; /* pod that has the device; NULL: none has */
	const char *id;    /* of the device; NULL: "7" */
	enum grpc_code code;
};

static void answer(struct stand *s, struct grpc_call *call)
{
	char *id = (char *)(s->id ? s->id : "7");
	PodResources__ContainerDevices devices = POD_RESOURCES__CONTAINER_DEVICES__INIT;
	PodResources__ContainerDevices *of_container[] = {&devices};
	PodResources__ContainerResources container = POD_RESOURCES__CONTAINER_RESOURCES__INIT;
	PodResources__ContainerResources *containers[] = {&container};
	PodResources__PodResources pod = POD_RESOURCES__POD_RESOURCES__INIT;
	PodResources__PodResources *pods[] = {&pod};
	PodResources__ListPodResourcesResponse list =
		POD_RESOURCES__LIST_POD_RESOURCES_RESPONSE__INIT;

	if (s->code != GRPC_OK) {
		grpc_call_fail(call, s->code, "not now");
		return;
	}
	devices.resource_name = (char *)"a/b";
	devices.device_ids = &id;
	devices.n_device_ids = 1;
	container.devices = of_container;
	container.n_devices = 1;
	container.name = (char *)"c";
	pod.namespace_ = (char *)"ns";
	pod.name = (char *)s->owner;
	pod.containers = containers;
	pod.n_containers = 1;
	list.pod_resources = pods;
	list.n_pod_resources = s->owner ? 1 : 0;
	grpc_call_reply(call, &list.base);
}

static void handle_list(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	struct stand *s = arg;

	s->asked++;
	answer(s, call);
}

static void handle_old_list(struct grpc_call *call, const struct ProtobufCMessage *request,
			    void *arg)
{
	struct stand *s = arg;

	s->asked_old++;
	answer(s, call);
}

static const struct grpc_method methods[] = {
	{"/v1alpha1.PodResourcesLister/List",
	 &pod_resources__list_pod_resources_request__descriptor, handle_old_list},
	{"/v1.PodResourcesLister/List", &pod_resources__list_pod_resources_request__descriptor,
	 handle_list},
};

static void serve(struct stand *s, size_t n_methods)
{
	s->server = grpc_server_new(s->loop,
				    &(struct grpc_server_config){
					    .path = s->socket,
					    .methods = methods,
					    .n_methods = n_methods,
					    .arg = s,
				    },
				    NULL);
	assert_non_null(s->server);
}

static void on_closed(void *arg)
{
	((struct stand *)arg)->closed = true;
}

static void stop_serving(struct stand *s)
{
	s->closed = false;
	grpc_server_close(take_ptr(s->server), 0, on_closed, s);
	until(s->loop, s->closed);
}

static void on_changed(void *arg, const json_t *allocated, const struct err *err)
{
	struct stand *s = arg;

	assert_true((allocated == NULL) != (err == NULL));
	s->changed++;
	free(s->text);
	s->text = allocated ? json_text(allocated) : str_dup(err->reason);
	if (err)
		strbuf_addf(&s->errors, "%s\n", err->text);
}

static void on_checked(void *arg)
{
	struct stand *s = arg;

	s->checked++;
}

static void begin(struct stand *s, int64_t every_ms)
{
	s->resources = pod_resources_new(s->loop, &(struct pod_resources_config){
							  .socket = s->socket,
							  .every_ms = every_ms,
							  .wait_ms = s->wait_ms,
							  .lose_ms = s->lose_ms,
							  .changed = on_changed,
							  .checked = on_checked,
							  .arg = s,
						  });
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/pods.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->socket = str_printf("%s/kubelet.sock", s->dir);
	s->loop = loop_new();
	s->owner = "p";
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	pod_resources_free(s->resources);
	if (s->server)
		stop_serving(s);
	loop_free(s->loop);
	(void)unlink(s->socket);
	(void)rmdir(s->dir);
	mem_free(s->socket);
	free(s->text);
	strbuf_done(&s->errors);
	mem_free(s);
	return 0;
}

TEST_WITH(changes_are_told_and_nothing_else, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\"}}");
	until(s->loop, s->asked >= 5);
	assert_int_equal(s->changed, 1);
	s->owner = "q";
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/q/c\"}}");
}

/* It may give a device twice when it is asked while an Allocate is under way. */
TEST_WITH(a_kubelet_that_allocates_is_left_in_peace, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	s->asked = 0;
	for (int i = 0; i < 10; i++) {
		pod_resources_given(s->resources);
		pass(s->loop, POD_RESOURCES_QUIET_MS / 2);
	}
	assert_int_equal(s->asked, 0);
	/* Others have to wait, too. */
	pod_resources_check(s->resources);
	pass(s->loop, POD_RESOURCES_QUIET_MS / 2 - 10);
	assert_int_equal(s->asked, 0);
	s->owner = "q";
	until(s->loop, s->changed == 2 && s->checked == 1);
}

TEST_WITH(allocates_without_end_do_not_keep_us_from_asking, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 2);
	begin(s, 0);
	until(s->loop, s->changed == 1);
	s->asked = 0;
	for (int i = 0; i < 2 * POD_RESOURCES_QUIET_MAX_MS / 100 + 20; i++) {
		pod_resources_given(s->resources);
		pass(s->loop, 100);
	}
	assert_int_equal(s->asked, 2);
}

TEST_WITH(a_check_is_an_answer_to_a_question_put_after_it, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 2);
	begin(s, 0);
	until(s->loop, s->changed == 1);
	assert_int_equal(s->checked, 0);
	s->owner = "q";
	pod_resources_check(s->resources);
	until(s->loop, s->checked == 1);
	assert_int_equal(s->changed, 2);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/q/c\"}}");
	/* Nobody is there who could give anything away. */
	stop_serving(s);
	pod_resources_check(s->resources);
	until(s->loop, s->checked == 2);
	assert_int_equal(s->changed, 2);
}

TEST_WITH(a_check_is_answered_also_by_the_older_version, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 1);
	begin(s, 0);
	pod_resources_check(s->resources);
	until(s->loop, s->checked == 1);
	assert_int_equal(s->changed, 1);
}

TEST_WITH(the_older_version_is_asked_where_the_newer_is_not_served, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 1);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\"}}");
	until(s->loop, s->asked_old >= 3);
	assert_int_equal(s->asked, 0);
}

TEST_WITH(a_kubelet_that_is_absent_is_told_once_and_found_later, set_up, tear_down)
{
	struct stand *s = *state;

	s->wait_ms = 1;
	begin(s, 20);
	until(s->loop, s->changed == 1);
	assert_string_equal(s->text, "PodResourcesUnavailable");
	assert_non_null(strstr(s->errors.data, s->socket));
	pass(s->loop, 200);
	assert_int_equal(s->changed, 1);
	serve(s, 2);
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\"}}");
}

TEST_WITH(a_kubelet_that_is_to_start_is_waited_for, set_up, tear_down)
{
	struct stand *s = *state;

	begin(s, 20);
	pass(s->loop, 200);
	assert_int_equal(s->changed, 0);
	serve(s, 2);
	until(s->loop, s->changed == 1);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\"}}");
}

TEST_WITH(a_kubelet_that_listens_and_does_not_answer_leaves_it_unknown, set_up, tear_down)
{
	struct stand *s = *state;

	s->wait_ms = 1;
	s->code = GRPC_RESOURCE_EXHAUSTED;
	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->asked >= 5);
	assert_string_equal(s->text, "PodResourcesUnavailable");
	assert_int_equal(s->changed, 1);
	s->code = GRPC_OK;
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\"}}");
}

/* A link that leads nowhere, a folder that is misspelt: nothing says that no pod has a device. */
TEST_WITH(a_missing_folder_is_waited_for_like_a_kubelet, set_up, tear_down)
{
	struct stand *s = *state;

	mem_free(s->socket);
	s->socket = str_printf("%s/none/kubelet.sock", s->dir);
	begin(s, 20);
	pass(s->loop, 200);
	assert_int_equal(s->changed, 0);
}

TEST_WITH(who_waits_is_told_where_the_kubelet_was_looked_for, set_up, tear_down)
{
	struct stand *s = *state;

	s->wait_ms = 1;
	begin(s, 20);
	until(s->loop, s->changed == 1);
	assert_non_null(strstr(s->errors.data, s->socket));
	assert_non_null(strstr(s->errors.data, "--kubelet-dir"));
	assert_non_null(strstr(s->errors.data, "--no-kubelet"));
}

TEST_WITH(what_is_known_stays_while_the_kubelet_is_away, set_up, tear_down)
{
	struct stand *s = *state;
	int asked;

	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	s->code = GRPC_RESOURCE_EXHAUSTED;
	asked = s->asked;
	until(s->loop, s->asked >= asked + 3);
	stop_serving(s);
	pass(s->loop, 200);
	assert_int_equal(s->changed, 1);
	s->code = GRPC_OK;
	serve(s, 2);
	asked = s->asked;
	until(s->loop, s->asked >= asked + 2);
	assert_int_equal(s->changed, 1);
}

/* As one answers that was restarted and does not know its pods yet. */
TEST_WITH(what_is_not_named_any_more_stays_for_a_while, set_up, tear_down)
{
	struct stand *s = *state;
	int asked;

	s->lose_ms = INT64_MAX / 2;
	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	s->owner = NULL;
	asked = s->asked;
	until(s->loop, s->asked >= asked + 5);
	assert_int_equal(s->changed, 1);
	/* What is new is told at once. */
	s->owner = "q";
	s->id = "8";
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/p/c\",\"8\":\"ns/q/c\"}}");
	/* Whoever has that pod's name now does not have its devices. */
	assert_null(json_at(pod_resources_named(s->resources), "a/b", "7"));
	assert_non_null(json_at(pod_resources_named(s->resources), "a/b", "8"));
}

TEST_WITH(what_is_not_named_any_more_is_free_after_it, set_up, tear_down)
{
	struct stand *s = *state;

	s->lose_ms = 1;
	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	s->owner = NULL;
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "{}");
	s->owner = "q";
	until(s->loop, s->changed == 3);
	assert_string_equal(s->text, "{\"a/b\":{\"7\":\"ns/q/c\"}}");
}

TEST_WITH(a_kubelet_that_has_no_such_service_makes_us_forget, set_up, tear_down)
{
	struct stand *s = *state;

	serve(s, 2);
	begin(s, 20);
	until(s->loop, s->changed == 1);
	stop_serving(s);
	serve(s, 0);
	until(s->loop, s->changed == 2);
	assert_string_equal(s->text, "PodResourcesUnavailable");
	pass(s->loop, 100);
	assert_int_equal(s->changed, 2);
	stop_serving(s);
	serve(s, 2);
	until(s->loop, s->changed == 3);
}

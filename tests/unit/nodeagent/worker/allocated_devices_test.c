// SPDX-License-Identifier: Apache-2.0
/* A worker asks a kubelet, which is another process: the worker's code blocks. */
#include "tests/support/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/grpc/proto/pod_resources.pb-c.h"
#include "lib/grpc/server.h"
#include "lib/loop/loop.h"
#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/worker/allocated_devices.h"

#define VF      "0000:3b:00.2"
#define ANOTHER "0000:3b:00.3"

/* Memory of both processes. */
struct kubelet {
	atomic_int asked;
	atomic_bool gave;      /* a pod has VF */
	atomic_bool gives;     /* with each question an Allocate */
	atomic_bool disturbed; /* it was asked when it was to be left in peace */
};

struct stand {
	struct kubelet *kubelet;
	struct allocation_epoch *giving;
	struct allocated_devices *given;
	char dir[64], *socket;
	pid_t process;
};

/* Time that passes without anybody waiting, in this process. */
static int64_t leap_us;

int64_t clock_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return leap_us + (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- the kubelet ----------------------------------------------------------------------------- */

static void handle_list(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	const struct stand *s = arg;
	char *id = (char *)VF;
	PodResources__ContainerDevices devices = POD_RESOURCES__CONTAINER_DEVICES__INIT;
	PodResources__ContainerDevices *of_container[] = {&devices};
	PodResources__ContainerResources container = POD_RESOURCES__CONTAINER_RESOURCES__INIT;
	PodResources__ContainerResources *containers[] = {&container};
	PodResources__PodResources pod = POD_RESOURCES__POD_RESOURCES__INIT;
	PodResources__PodResources *pods[] = {&pod};
	PodResources__ListPodResourcesResponse list =
		POD_RESOURCES__LIST_POD_RESOURCES_RESPONSE__INIT;

	atomic_fetch_add(&s->kubelet->asked, 1);
	if (allocation_epoch_quiet_ms(s->giving) > 0)
		atomic_store(&s->kubelet->disturbed, true);
	if (atomic_load(&s->kubelet->gives))
		allocation_epoch_note(s->giving);
	devices.resource_name = (char *)"spidernet.io/x";
	devices.device_ids = &id;
	devices.n_device_ids = 1;
	container.devices = of_container;
	container.n_devices = 1;
	container.name = (char *)"main";
	pod.namespace_ = (char *)"ns";
	pod.name = (char *)"trainer-0";
	pod.containers = containers;
	pod.n_containers = 1;
	list.pod_resources = pods;
	list.n_pod_resources = atomic_load(&s->kubelet->gave) ? 1 : 0;
	grpc_call_reply(call, &list.base);
}

static _Noreturn void be_kubelet(struct stand *s, int started)
{
	static const struct grpc_method methods[] = {
		{"/v1.PodResourcesLister/List",
		 &pod_resources__list_pod_resources_request__descriptor, handle_list},
	};
	const struct grpc_server_config config = {
		.path = s->socket,
		.methods = methods,
		.n_methods = ARRAY_LEN(methods),
		.arg = s,
	};
	struct loop *loop = loop_new();

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (!grpc_server_new(loop, &config, NULL) || write(started, "s", 1) != 1)
		_exit(1);
	loop_run(loop);
	_exit(0);
}

static int start_kubelet(void **state)
{
	struct stand *s = mem_new(struct stand);
	int started[2];
	char byte;

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/given.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->socket = str_printf("%s/kubelet.sock", s->dir);
	s->kubelet = mmap(NULL, sizeof(*s->kubelet), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s->kubelet, MAP_FAILED);
	s->giving = allocation_epoch_new();
	assert_int_equal(pipe(started), 0);
	s->process = fork();
	assert_true(s->process >= 0);
	if (s->process == 0)
		be_kubelet(s, started[1]);
	(void)close(started[1]);
	assert_int_equal(read(started[0], &byte, 1), 1);
	(void)close(started[0]);
	*state = s;
	return 0;
}

static int stop_kubelet(void **state)
{
	struct stand *s = *state;

	(void)kill(s->process, SIGKILL);
	(void)waitpid(s->process, NULL, 0);
	(void)unlink(s->socket);
	(void)rmdir(s->dir);
	allocation_epoch_leave(s->giving);
	(void)munmap(s->kubelet, sizeof(*s->kubelet));
	mem_free(s->socket);
	mem_free(s);
	return 0;
}

/* ---- one worker ------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	struct stand *s = *state;

	leap_us = 0;
	atomic_store(&s->kubelet->asked, 0);
	atomic_store(&s->kubelet->gave, false);
	atomic_store(&s->kubelet->gives, false);
	atomic_store(&s->kubelet->disturbed, false);
	s->given = allocated_devices_new(
		&(struct allocated_devices_config){.socket = s->socket, .giving = s->giving});
	return 0;
}

static int tear_down(void **state)
{
	allocated_devices_free(((struct stand *)*state)->given);
	return 0;
}

/* "-": no pod has it; "?": nobody can say. */
static const char *pod_of(struct stand *s, const char *vf)
{
	const char *pod = NULL;
	struct err err = {0};

	if (allocated_devices_pod(s->given, vf, &pod, &err) < 0) {
		assert_string_equal(err.reason, "PodResourcesUnavailable");
		return "?";
	}
	return pod ? pod : "-";
}

static int asked(const struct stand *s)
{
	return atomic_load(&s->kubelet->asked);
}

TEST_WITH(names_the_pod_that_has_a_vf, set_up, tear_down)
{
	struct stand *s = *state;

	atomic_store(&s->kubelet->gave, true);
	assert_string_equal(pod_of(s, VF), "ns/trainer-0");
	assert_string_equal(pod_of(s, ANOTHER), "-");
}

TEST_WITH(asks_once_until_something_is_given, set_up, tear_down)
{
	struct stand *s = *state;

	assert_string_equal(pod_of(s, VF), "-");
	assert_string_equal(pod_of(s, ANOTHER), "-");
	assert_int_equal(asked(s), 1);
	atomic_store(&s->kubelet->gave, true);
	allocation_epoch_note(s->giving);
	assert_string_equal(pod_of(s, VF), "ns/trainer-0");
	assert_string_equal(pod_of(s, ANOTHER), "-");
	assert_int_equal(asked(s), 2);
	/* kubernetes#137534 */
	assert_false(atomic_load(&s->kubelet->disturbed));
}

TEST_WITH(asks_again_for_a_vf_that_was_somebodys, set_up, tear_down)
{
	struct stand *s = *state;

	atomic_store(&s->kubelet->gave, true);
	assert_string_equal(pod_of(s, VF), "ns/trainer-0");
	atomic_store(&s->kubelet->gave, false);
	leap_us = ALLOCATED_DEVICES_RECENT_MS * 1000LL;
	assert_string_equal(pod_of(s, ANOTHER), "-");
	assert_int_equal(asked(s), 1);
	assert_string_equal(pod_of(s, VF), "-");
	assert_int_equal(asked(s), 2);
}

/* Somebody else's plugin does not tell us. */
TEST_WITH(keeps_no_answer_for_long, set_up, tear_down)
{
	struct stand *s = *state;

	assert_string_equal(pod_of(s, VF), "-");
	atomic_store(&s->kubelet->gave, true);
	leap_us = ALLOCATED_DEVICES_KEEP_MS * 1000LL;
	assert_string_equal(pod_of(s, VF), "ns/trainer-0");
}

TEST_WITH(nobody_knows_while_one_device_after_the_other_is_given, set_up, tear_down)
{
	struct stand *s = *state;

	allocated_devices_free(s->given);
	s->given = allocated_devices_new(&(struct allocated_devices_config){
		.socket = s->socket, .giving = s->giving, .wait_ms = 200});
	atomic_store(&s->kubelet->gives, true);
	assert_string_equal(pod_of(s, VF), "?");
	atomic_store(&s->kubelet->gives, false);
	assert_string_equal(pod_of(s, VF), "?");
	assert_int_equal(asked(s), 1);
}

/* A step about many VFs asks for each of them. */
TEST_WITH(asks_not_again_right_after_it_got_no_answer, set_up, tear_down)
{
	struct stand *s = *state;

	allocated_devices_free(s->given);
	s->given = allocated_devices_new(&(struct allocated_devices_config){
		.socket = s->socket, .giving = s->giving, .wait_ms = 200});
	allocation_epoch_note(s->giving);
	assert_string_equal(pod_of(s, VF), "?");
	/* The kubelet may be asked by now. */
	leap_us = (ALLOCATED_DEVICES_FAILED_MS - 500) * 1000LL;
	assert_string_equal(pod_of(s, ANOTHER), "?");
	assert_int_equal(asked(s), 0);
	leap_us = ALLOCATED_DEVICES_FAILED_MS * 1000LL;
	assert_string_equal(pod_of(s, ANOTHER), "-");
	assert_int_equal(asked(s), 1);
}

TEST_WITH(nobody_knows_without_a_kubelet, set_up, tear_down)
{
	struct stand *s = *state;

	allocated_devices_free(s->given);
	s->given = allocated_devices_new(
		&(struct allocated_devices_config){.socket = "/nonexistent/kubelet.sock"});
	assert_string_equal(pod_of(s, VF), "?");
}

TEST_GROUP(start_kubelet, stop_kubelet)

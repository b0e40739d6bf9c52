// SPDX-License-Identifier: Apache-2.0
/*
 * Every process is killed at every step of ADD and DEL, in turn: nothing is leaked.
 *
 * A step is a call that changes the disk or the kernel, which here is a folder: a file in it is a
 * link in a pod. Before the n-th step the victim is killed, for each n until a whole pod comes and
 * goes without meeting its end.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "tests/support/cni_stand.h"
#include "tests/support/steps.h"

#define DEVICE "0000:03:00.2"

enum victim { VICTIM_WORKER, VICTIM_SERVER, VICTIM_PLUGIN };
static const char *const victims[] = {"worker", "server", "plugin"};

static struct cni_stand stand;

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_server_s(void)
{
	return cni_shared &&
	       (getpid() == cni_shared->server || getppid() == cni_shared->supervisor);
}

void test_step(void)
{
	if (!is_server_s() || atomic_fetch_add(&cni_shared->steps, 1) + 1 != cni_shared->kill_at)
		return;
	switch ((enum victim)cni_shared->victim) {
	case VICTIM_WORKER:
		(void)raise(SIGKILL);
		break;
	case VICTIM_SERVER:
		(void)kill(cni_shared->server, SIGKILL);
		(void)pause();
		break;
	case VICTIM_PLUGIN:
		if (cni_shared->plugin > 0)
			(void)kill(cni_shared->plugin, SIGKILL);
		break;
	}
}

/* ---- the kernel, and a planner that changes it ----------------------------------------------- */

static char *link_path(const struct attach_call *call)
{
	return str_printf("%s/kernel/%s-%s", stand.folder, call->container_id, call->ifname);
}

bool attach_is_common(const char *type)
{
	return false;
}

bool attach_knows(const char *type)
{
	return str_eq(type, "sriov");
}

static int add(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	const struct attach_services *s = call->services;
	json_auto_t *state = json_pack("{s:s}", "was", "eth7");
	auto_free char *path = link_path(call);
	int fd;

	if (s->save(s->context, state, err) < 0)
		return -1;
	test_step();
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "LinkStuck", "make %s", path);
	(void)close(fd);
	test_step();
	if (s->ipam(s->context, "ADD", call->config, ret_result, err) == 0)
		return 0;
	(void)unlink(path);
	(void)s->ipam(s->context, "DEL", call->config, NULL, NULL);
	(void)s->save(s->context, NULL, NULL);
	return -1;
}

static int take_away(const struct attach_call *call, struct err *err)
{
	const struct attach_services *s = call->services;
	auto_free char *path = link_path(call);

	test_step();
	(void)s->ipam(s->context, "DEL", call->config, NULL, NULL);
	if (call->saved && s->owns(s->context, DEVICE, NULL) == 1) {
		test_step();
		(void)unlink(path);
		test_step();
	}
	return s->save(s->context, NULL, err);
}

int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	return call->command == ATTACH_ADD ? add(call, ret_result, err) : take_away(call, err);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const char config[] = "{\"cniVersion\": \"1.0.0\", \"name\": \"rail0\", \"type\": \"sriov\","
			     " \"deviceID\": \"" DEVICE "\", \"ipam\": {\"type\": \"spiderpool\"}}";

static bool call(const char *command)
{
	return cni_stand_call(&stand, "sriov", command, "c1", config) == 0;
}

/*
 * As a kubelet does: a failed ADD is followed by DEL and by another ADD; DEL is repeated until it
 * succeeds.
 */
static void a_pod_comes_and_goes(void)
{
	int tries = 0;

	while (!call("ADD")) {
		assert_true(++tries < 5);
		while (!call("DEL"))
			assert_true(++tries < 10);
	}
	while (!call("DEL"))
		assert_true(++tries < 10);
}

/* What has to wait is done after a moment. */
static void assert_nothing_is_left(void)
{
	int64_t until = clock_ms() + 30000;

	for (;;) {
		auto_free char *left = cni_stand_leftovers(&stand);

		if (*left == '\0' && !stand.has_given)
			return;
		if (clock_ms() > until)
			fail_msg("%s killed at step %d left: %s%s", victims[cni_shared->victim],
				 cni_shared->kill_at, left, stand.has_given ? "an address" : "");
		cni_stand_turn(&stand);
	}
}

static void nothing_leaks_when_it_is_killed(enum victim victim)
{
	for (int n = 1;; n++) {
		int steps;

		cni_stand_open(&stand, true);
		cni_shared->steps = 0;
		cni_shared->kill_at = n;
		cni_shared->victim = (int)victim;
		a_pod_comes_and_goes();
		assert_nothing_is_left();
		steps = cni_shared->steps;
		cni_stand_close(&stand);
		if (steps >= n)
			continue;
		/* The shortest way there is has more; fewer, and what counts steps is broken. */
		assert_true(steps > 10);
		return;
	}
}

static void nothing_leaks_when_a_worker_is_killed(void **state)
{
	nothing_leaks_when_it_is_killed(VICTIM_WORKER);
}

static void nothing_leaks_when_the_server_is_killed(void **state)
{
	nothing_leaks_when_it_is_killed(VICTIM_SERVER);
}

static void nothing_leaks_when_the_plugin_is_killed(void **state)
{
	nothing_leaks_when_it_is_killed(VICTIM_PLUGIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaks_when_a_worker_is_killed),
		cmocka_unit_test(nothing_leaks_when_the_server_is_killed),
		cmocka_unit_test(nothing_leaks_when_the_plugin_is_killed),
	};

	json_init();
	(void)log_configure("error", NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* An ADD in two parts: what goes on beside keeps the device's lock. The test is the planner. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/attachment.h"
#include "tests/support/scratch.h"

#define DEVICE "0000:af:00.2"

static struct stand {
	char *folder;
	int root;
	struct sandboxes *state;
	json_t *config, *env;
	bool is_refused;
	int deleted; /* how often DEL had something to undo */
	struct attachment attachment;
} stand;

/* ---- the planner ----------------------------------------------------------------------------- */

bool attach_knows(const char *type)
{
	return str_eq(type, "ib-sriov");
}

bool attach_is_common(const char *type)
{
	return false;
}

static bool is_through(void)
{
	return faccessat(stand.state->dir, "through", F_OK, 0) == 0;
}

/* The driver starts, which takes a while. */
static int begin(const struct attach_call *call, struct err *err)
{
	const int kept[] = {call->lock, stand.state->dir};
	json_auto_t *state = json_pack("{s:s}", "was", "ib7");

	assert_true(call->lock >= 0);
	if (call->services->save(call->services->context, state, err) < 0)
		return -1;
	if (stand.is_refused)
		return err_set(err, ERR_HOST, "StepRefused", "no cable");
	*call->beside = child_fork(&(struct child_config){
		.dies_by = SIGKILL, .keep = kept, .n_keep = ARRAY_LEN(kept)});
	if (*call->beside == 0) {
		(void)usleep(100000);
		(void)close(
			openat(stand.state->dir, "through", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		_exit(0);
	}
	return 0;
}

int attach_run(const struct attach_call *call, json_t **ret_result, struct err *err)
{
	int status = -1;

	if (call->command == ATTACH_BEGIN)
		return begin(call, err);
	assert_true(stand.is_refused || is_through());
	if (call->command == ATTACH_DEL) {
		stand.deleted += call->saved != NULL;
		return call->services->save(call->services->context, NULL, err);
	}
	assert_string_equal(json_str_at(call->saved, "was"), "ib7");
	assert_int_equal(waitpid(*call->beside, &status, 0), *call->beside);
	assert_int_equal(status, 0);
	*ret_result = json_object();
	return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	stand = (struct stand){.folder = scratch_new(), .env = json_object()};
	stand.root = open(stand.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	stand.state = mem_new(struct sandboxes);
	stand.state->dir = open(stand.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sandboxes_prepare(stand.state, NULL), 0);
	stand.config =
		json_pack("{s:s, s:s, s:s}", "name", "ib", "type", "ib-sriov", "deviceID", DEVICE);
	stand.attachment = (struct attachment){
		.state = stand.state,
		.root = stand.root,
		.container = "c1",
		.key = {"ib-sriov", "ib", "net1"},
		.config = stand.config,
		.env = stand.env,
		.netns = -1,
		.plugin_types = "*",
		.steps = json_array(),
	};
	return 0;
}

static int tear_down(void **state)
{
	json_decref(stand.config);
	json_decref(stand.env);
	json_decref(stand.attachment.steps);
	(void)close(stand.root);
	sandboxes_done(stand.state);
	mem_free(stand.state);
	scratch_free(stand.folder);
	return 0;
}

static json_t *record(void)
{
	json_auto_t *sandbox = sandbox_read(stand.state, "c1", NULL);

	return json_incref(sandbox_find(sandbox, &stand.attachment.key));
}

/* ---- the tests ------------------------------------------------------------------------------- */

TEST_WITH(add_goes_on_when_what_it_began_has_ended, set_up, tear_down)
{
	json_auto_t *result = NULL, *begun = NULL, *added = NULL;
	struct err err = {0};

	assert_int_equal(attachment_begin(&stand.attachment, &err), 0);
	begun = record();
	assert_string_equal(json_str_at(begun, "phase"), "adding");
	assert_string_equal(json_str_at(begun, "saved", "was"), "ib7");
	assert_int_equal(attachment_add(&stand.attachment, &result, &err), 0);
	added = record();
	assert_string_equal(json_str_at(added, "phase"), "added");
	assert_string_equal(json_str_at(added, "saved", "was"), "ib7");
}

TEST_WITH(del_waits_for_what_has_begun_and_undoes_it, set_up, tear_down)
{
	json_auto_t *left = NULL;
	struct err err = {0};

	assert_int_equal(attachment_begin(&stand.attachment, &err), 0);
	assert_int_equal(attachment_delete(&stand.attachment, &err), 0);
	assert_int_equal(stand.deleted, 1);
	left = record();
	assert_null(left);
	assert_true(device_is_owned(stand.state, DEVICE, "c2", NULL) == 1);
}

TEST_WITH(what_cannot_begin_is_left_to_del, set_up, tear_down)
{
	json_auto_t *left = NULL;
	struct err err = {0};

	stand.is_refused = true;
	assert_int_equal(attachment_begin(&stand.attachment, &err), -1);
	left = record();
	assert_string_equal(json_str_at(left, "phase"), "deleting");
	assert_int_equal(attachment_delete(&stand.attachment, &err), 0);
	assert_int_equal(stand.deleted, 1);
}

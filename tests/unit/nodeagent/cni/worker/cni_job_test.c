// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs: what the server writes the worker reads, and what a server that was taken over may write
 * the worker refuses.
 */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "nodeagent/cni/worker/cni_job.h"

/* A job for an ADD of sandbox c1, new. */
static json_t *job_of_add(void)
{
	return json_pack("{s:s, s:s, s:b, s:{s:s, s:{s:s, s:s, s:s, s:s}, s:{s:s, s:s, s:s}}}",
			 "kind", "call", "container", "c1", "hasPlugin", 1, "call", "plugin",
			 "sriov", "env", "CNI_COMMAND", "ADD", "CNI_CONTAINERID", "c1", "CNI_NETNS",
			 "/run/netns/a", "CNI_IFNAME", "net1", "config", "cniVersion", "1.0.0",
			 "name", "rail0", "type", "sriov");
}

/* With a descriptor that is not looked at. */
static int read_job(const json_t *message, struct cni_job *ret, struct cni_call *call,
		    struct err *err)
{
	int rc = cni_job_read(message, 1000000, ret, call, err);

	call->netns = -1;
	return rc;
}

/* Takes it. */
static void expect_refused(json_t *message, const char *reason)
{
	struct cni_job job = {.container = "untouched"};
	struct cni_call call;
	struct err err = {0};

	assert_int_equal(read_job(message, &job, &call, &err), -1);
	assert_string_equal(err.reason, reason);
	assert_string_equal(job.container, "untouched");
	cni_call_done(&call);
	json_decref(message);
}

TEST(what_is_written_is_read)
{
	json_auto_t *message = job_of_add(), *again = NULL;
	struct cni_job job;
	struct cni_call call;
	struct err err = {0};

	json_put_str(message, "note", "00000000000000000001-abc");
	json_put_int(message, "ms", 60000);
	assert_int_equal(read_job(message, &job, &call, &err), 0);
	assert_int_equal(job.kind, CNI_JOB_CALL);
	assert_int_equal(job.ms, 60000);
	assert_string_equal(job.container, "c1");
	assert_string_equal(job.note, "00000000000000000001-abc");
	assert_true(job.has_plugin);
	assert_string_equal(call.plugin, "sriov");
	assert_string_equal(call.network, "rail0");
	assert_string_equal(call.netns_path, "/run/netns/a");
	again = cni_job_new(&job);
	json_put_int(json_object_get(message, "call"), "netnsErrno", 0);
	assert_true(json_same(again, message));
	cni_call_done(&call);
}

TEST(a_job_for_all_of_a_sandbox_has_no_call)
{
	const struct cni_job bury = {.kind = CNI_JOB_BURY, .container = "c1"};
	json_auto_t *message = cni_job_new(&bury);
	struct cni_job job;
	struct cni_call call;

	assert_int_equal(read_job(message, &job, &call, NULL), 0);
	assert_int_equal(job.kind, CNI_JOB_BURY);
	assert_null(job.call);
	assert_null(job.note);
	cni_call_done(&call);
}

TEST(what_makes_no_sense_is_refused)
{
	static const char *const containers[] = {"", "..", "../c1", "a/b", ".hidden"};
	static const char *const notes[] = {"", "..", "../sandboxes/c1.json", ".draft"};
	json_t *message;

	expect_refused(json_object(), "BadJob");
	message = job_of_add();
	json_put_str(message, "kind", "exec");
	expect_refused(message, "BadJob");
	for (size_t i = 0; i < ARRAY_LEN(containers); i++) {
		message = job_of_add();
		json_put_str(message, "container", containers[i]);
		expect_refused(message, "BadJob");
	}
	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		message = job_of_add();
		json_object_set_new(message, "note", json_string(notes[i]));
		expect_refused(message, "BadJob");
	}
	/* Another sandbox than the call's; a command that no such job carries out. */
	message = job_of_add();
	json_put_str(message, "container", "c2");
	expect_refused(message, "BadJob");
	message = job_of_add();
	json_put_str(message, "kind", "sweep");
	expect_refused(message, "BadJob");
	message = job_of_add();
	json_put_str(json_at(message, "call", "env"), "CNI_COMMAND", "DEL");
	json_put_str(message, "kind", "undo");
	expect_refused(message, "BadJob");
}

/* The same checks as of a plugin's call. */
TEST(a_call_is_checked_again)
{
	json_t *message = job_of_add();

	json_put_str(json_at(message, "call", "env"), "CNI_IFNAME", "../eth0");
	expect_refused(message, "BadEnvironment");
	message = job_of_add();
	(void)json_object_del(json_at(message, "call", "config"), "name");
	expect_refused(message, "BadNetworkName");
	message = job_of_add();
	(void)json_object_del(json_object_get(message, "call"), "config");
	expect_refused(message, "BadJob");
}

TEST(programs_get_no_variable_that_is_not_cni_s)
{
	json_auto_t *message = job_of_add();
	struct cni_job job;
	struct cni_call call;

	json_put_str(json_at(message, "call", "env"), "LD_PRELOAD", "/x");
	assert_int_equal(read_job(message, &job, &call, NULL), 0);
	assert_null(json_at(call.env, "LD_PRELOAD"));
	assert_non_null(json_at(call.env, "CNI_IFNAME"));
	cni_call_done(&call);
}

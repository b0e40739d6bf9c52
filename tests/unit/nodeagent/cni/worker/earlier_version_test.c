// SPDX-License-Identifier: Apache-2.0
/*
 * After an update: what the agent of the earlier version has left on the node is read, and undone.
 * The files were recorded with that agent (earlier/README.md); planners and worker are real.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/cni_job.h"
#include "nodeagent/cni/worker/cni_worker.h"
#include "tests/support/scratch.h"

#define EARLIER "tests/unit/nodeagent/cni/worker/earlier/"
#define ADDRESS "var/lib/cni/networks/rail1/172.16.1.2"

struct stand {
	char *folder;
	int root;
	struct sandboxes *state;
};

static void put(const struct stand *s, const char *path, const void *data, size_t len)
{
	assert_int_equal(root_write_atomic(s->root, path, data, len, 0600, NULL), 0);
}

static int set_up(void **state)
{
	auto_strbuf struct strbuf sandbox = {0};
	struct stand *s = mem_new(struct stand);

	s->folder = scratch_new();
	s->root = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(root_make_dirs(s->root, WIRE_STATE, 0700), 0);
	assert_int_equal(root_make_dirs(s->root, "var/lib/cni/networks/rail1", 0755), 0);
	assert_int_equal(root_make_dirs(s->root, WIRE_STATE "/" WIRE_NOTES, 0700), 0);
	s->state = mem_new(struct sandboxes);
	s->state->dir = root_open(s->root, WIRE_STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	assert_int_equal(sandboxes_prepare(s->state, NULL), 0);
	assert_int_equal(fs_read(AT_FDCWD, EARLIER "sandbox.json", 65536, &sandbox, NULL), 0);
	put(s, WIRE_STATE "/sandboxes/c1.json", sandbox.data, sandbox.len);
	put(s, ADDRESS, "c1\r\nnet1", 8);
	/* Whose name is asked for when its own record has gone. */
	assert_int_equal(root_make_dirs(s->root, "opt/cni/bin", 0755), 0);
	put(s, "opt/cni/bin/host-local", PLUGIN_MARK, strlen(PLUGIN_MARK));
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	(void)close(s->root);
	sandboxes_done(s->state);
	mem_free(s->state);
	scratch_free(s->folder);
	mem_free(s);
	return 0;
}

static bool exists(const struct stand *s, const char *path)
{
	struct stat st;

	return root_stat(s->root, path, &st) == 0;
}

TEST_WITH(a_record_is_read, set_up, tear_down)
{
	const struct stand *s = *state;
	const struct sandbox_key key = {"macvlan", "rail1", "net1"};
	struct err err = {0};
	json_auto_t *sandbox = sandbox_read(s->state, "c1", &err);
	json_auto_t *described = NULL;
	const json_t *record;

	assert_non_null(sandbox);
	record = sandbox_find(sandbox, &key);
	assert_string_equal(json_str_at(record, "phase"), "added");
	assert_string_equal(json_str_at(record, "config", "master"), "rail1");
	assert_non_null(json_at(record, "saved"));
	/* The agent allowed it: what a DEL has made is marked since. */
	assert_null(json_at(record, "unchecked"));
	described = attachment_index_describe(sandbox);
	assert_int_equal(json_array_size(described), 2);
	assert_string_equal(json_str_at(json_array_get(described, 0), "mac"), "36:59:a0:0e:0d:08");
	assert_string_equal(json_string_value(json_array_get(
				    json_at(json_array_get(described, 0), "addresses"), 0)),
			    "172.16.1.2/24");
	assert_string_equal(json_str_at(json_array_get(described, 0), "pod", "uid"), "u1");
}

/* The last frame of a worker that does this with the sandbox; new. */
static json_t *work(const struct stand *s, const struct cni_job *job)
{
	json_auto_t *message = cni_job_new(job);
	auto_strbuf struct strbuf out = {0}, in = {0};
	int line[2];
	json_t *done;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	assert_int_equal(packet_send(line[0], "j", 1, -1, 0), 0);
	assert_int_equal(json_frame_write(message, &out, NULL), 0);
	assert_int_equal(json_frame_send(line[0], &out), 0);
	cni_worker_run(line[1], &(struct cni_worker_config){.host_root = s->folder,
							    .bin_dir = "/opt/cni/bin",
							    .conf_dir = "/etc/cni/net.d"});
	(void)close(line[1]);
	done = json_frame_receive(line[0], &in);
	(void)close(line[0]);
	return done;
}

/* The namespace has gone with the boot; the address would never be another pod's. */
TEST_WITH(its_pod_is_cleaned_up_after, set_up, tear_down)
{
	const struct stand *s = *state;
	json_auto_t *done = work(s, &(struct cni_job){.kind = CNI_JOB_BURY, .container = "c1"});

	if (json_at(done, "done", "error"))
		fail_msg("%s", json_str_at(done, "done", "error", "text"));
	if (json_is_true(json_at(done, "done", "left")))
		fail_msg("%s", json_text(done));
	assert_false(exists(s, ADDRESS));
	assert_false(exists(s, WIRE_STATE "/sandboxes/c1.json"));
}

TEST_WITH(a_noted_del_is_carried_out, set_up, tear_down)
{
	const struct stand *s = *state;
	auto_strbuf struct strbuf note = {0};
	struct cni_call call = {0};
	struct wire_message message;
	struct err err = {0};
	json_auto_t *done = NULL;

	assert_int_equal(fs_read(AT_FDCWD, EARLIER "note", 65536, &note, NULL), 0);
	put(s, WIRE_STATE "/" WIRE_NOTES "/1", note.data, note.len);
	assert_false(notes_is_of_other_version(note.data, note.len));
	assert_int_equal(wire_read(note.data, note.len, &message), 1);
	assert_int_equal(cni_call_read(&message, -1, &call, &err), 0);
	assert_int_equal(call.command, CALL_DEL);
	assert_string_equal(call.plugin, "macvlan");
	done = work(s, &(struct cni_job){.kind = CNI_JOB_CALL,
					 .call = &call,
					 .container = call.container,
					 .note = "1"});
	cni_call_done(&call);
	assert_false(exists(s, ADDRESS));
	assert_false(exists(s, WIRE_STATE "/sandboxes/c1.json"));
	assert_false(exists(s, WIRE_STATE "/" WIRE_NOTES "/1"));
}

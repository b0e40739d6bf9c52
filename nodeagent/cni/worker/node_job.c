// SPDX-License-Identifier: Apache-2.0
/*
 * One function for each kind of job: read the files, send what there is, say that it is done.
 * Between cni_worker.c and nodeagent/cni/state.
 */
#include "nodeagent/cni/worker/node_job.h"

#include <assert.h>
#include <stdio.h>

#include "lib/base/base64.h"
#include "lib/base/log.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/rdma_files.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/folder_watch.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/cni/state/result_cache.h"
#include "nodeagent/cni/worker/job_files.h"
#include "nodeagent/cni/worker/profile_keeper.h"

struct node_job {
	struct worker_channel *line;
	const json_t *job;
	struct sandboxes *state;
	int root;
	int watch; /* of the folders, where one came with the job; -1 */
	const struct cni_worker_config *config;
	json_t *done; /* what the last frame is to have */
};

static void fail(const struct node_job *n, const struct err *err)
{
	json_put(n->done, "error", ask_error_new(err));
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

static const char *const lives[] = {
	[NETNS_EXISTS] = "exists", [NETNS_GONE] = "gone", [NETNS_UNKNOWN] = "unknown"};

static void tell_sandbox(const struct node_job *n, const char *container)
{
	struct err err = {0};
	json_auto_t *sandbox = sandbox_read(n->state, container, &err);
	json_t *said;
	enum netns_life life;

	if (!sandbox && err.class == ERR_NONE) {
		sandbox_remove_empty(n->state, container);
		return;
	}
	said = json_object();
	json_put_str(said, "container", container);
	if (!sandbox) {
		log_error("what is known of a sandbox cannot be read; its pod's addresses and "
			  "devices are looked after when it is deleted",
			  F_STR("container", container), F_ERR(&err));
		worker_channel_send(n->line, "sandbox", said);
		return;
	}
	life = sandbox_life(sandbox, n->root, NULL);
	if (life == NETNS_UNKNOWN)
		log_warn("a sandbox's network namespace cannot be looked at; its devices and "
			 "addresses stay with it",
			 F_STR("container", container),
			 F_STR("netns", json_str_or(json_at(sandbox, "netns", "path"), "")));
	json_put_str(said, "life", lives[life]);
	json_put(said, "attachments", attachment_index_describe(sandbox));
	worker_channel_send(n->line, "sandbox", said);
}

static void survey(const struct node_job *n)
{
	json_auto_t *containers = NULL;
	struct err err = {0};
	const json_t *name;
	size_t i;

	if (sandboxes_prepare(n->state, &err) < 0) {
		fail(n, &err);
		return;
	}
	(void)result_cache_remove_empty(n->root);
	containers = sandboxes_list(n->state, &err);
	if (!containers) {
		fail(n, &err);
		return;
	}
	job_files_sweep(n->root, n->state);
	json_array_foreach (containers, i, name)
		tell_sandbox(n, json_string_value(name));
}

/* ---- notes ----------------------------------------------------------------------------------- */

struct notes_turn {
	const struct node_job *of;
	size_t n;
};

static bool on_note(void *arg, const char *name, const void *data, size_t len)
{
	struct notes_turn *turn = arg;
	bool is_other = notes_is_of_other_version(data, len);
	auto_strbuf struct strbuf text = {0};
	json_t *note;

	if (!is_other && turn->n++ == NOTES_AT_ONCE)
		return false;
	note = json_object();
	json_put_str(note, "name", name);
	if (!is_other) {
		base64_encode(data, len, &text);
		json_put_str(note, "data", strbuf_str(&text));
	}
	json_put_bool(note, "isOther", is_other);
	worker_channel_send(turn->of->line, "note", note);
	return true;
}

static void look_at_notes(const struct node_job *n)
{
	struct notes_turn turn = {.of = n};
	const json_t *name;
	size_t i;

	json_array_foreach (json_at(n->job, "remove"), i, name)
		if (cni_job_is_note(json_string_value(name)))
			notes_remove(n->state->dir, json_string_value(name));
	if (json_is_true(json_at(n->job, "clean")))
		notes_clean(n->state->dir);
	if (json_is_true(json_at(n->job, "list")))
		(void)notes_each(n->state->dir, json_str_at(n->job, "after"), on_note, &turn);
	json_put_bool(n->done, "more", turn.n > NOTES_AT_ONCE);
}

/* ---- the runtime's folders ------------------------------------------------------------------- */

static bool on_any_note(void *arg, const char *name, const void *data, size_t len)
{
	bool *has_note = arg;

	*has_note = true;
	return false;
}

/* What the disk has counts, whatever the server says. */
static struct profile_usage usage_of(const struct node_job *n)
{
	const json_t *said = json_at(n->job, "usage");
	struct profile_usage usage = {
		.use = json_is_true(json_at(said, "isUsed")) ? PROFILE_USED : PROFILE_UNUSED,
		.is_meta_used = json_is_true(json_at(said, "isMetaUsed")),
		.user = json_str_at(said, "user"),
	};
	json_auto_t *containers = sandboxes_list(n->state, NULL);
	bool has_note = false;

	has_note = !notes_each(n->state->dir, NULL, on_any_note, &has_note) || has_note;
	/* A file that the server does not have cannot be read, or its worker is not done yet. */
	if (usage.use == PROFILE_UNUSED &&
	    (!containers || json_array_size(containers) > 0 || has_note))
		usage.use = PROFILE_USE_UNKNOWN;
	return usage;
}

/* Before the look: what changes after it is seen. */
static void watch_folders(const struct node_job *n)
{
	struct err err = {0};

	if (n->watch >= 0 && (folder_watch_add(n->watch, n->root, n->config->conf_dir, &err) < 0 ||
			      folder_watch_add(n->watch, n->root, n->config->bin_dir, &err) < 0))
		json_put(n->done, "blind", ask_error_new(&err));
}

static void look_at_profile(const struct node_job *n)
{
	struct profile_keeper *keeper;
	struct profile_usage usage;
	enum profile profile;
	struct err err = {0};
	bool is_open;

	if (!profile_read(json_str_at(n->job, "profile"), &profile)) {
		(void)err_set(&err, ERR_BUG, "BadJob", "a profile that does not exist");
		fail(n, &err);
		return;
	}
	watch_folders(n);
	usage = usage_of(n);
	keeper = profile_keeper_new(&(struct profile_keeper_config){
		.root = n->root,
		.bin_dir = n->config->bin_dir,
		.program = n->config->program,
		.conf_dir = n->config->conf_dir,
		.isolates = n->config->isolates,
		.shared = n->config->shared_spaces,
		.memory = json_at(n->job, "memory"),
	});
	json_put(n->done, "networks", profile_keeper_look(keeper, profile, &usage, &is_open));
	json_put_bool(n->done, "isOpen", is_open);
	json_put(n->done, "memory", profile_keeper_memory(keeper));
	profile_keeper_free(keeper);
}

/* ---- RDMA devices ---------------------------------------------------------------------------- */

static void keep_rdma_files(const struct node_job *n)
{
	struct err err = {0};
	struct host *host;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", n->root);
	host = host_open(path, &err);
	if (!host || rdma_files_keep_all(host, &err) < 0)
		fail(n, &err);
	host_close(host);
}

void node_job_run(struct worker_channel *line, enum cni_job_kind kind, const json_t *job, int watch,
		  struct sandboxes *state, int root, const struct cni_worker_config *config)
{
	const struct node_job n = {.line = line,
				   .job = job,
				   .state = state,
				   .root = root,
				   .watch = watch,
				   .config = config,
				   .done = json_object()};

	assert(kind >= CNI_JOB_SURVEY && kind < CNI_JOB_KINDS);
	if (kind == CNI_JOB_SURVEY)
		survey(&n);
	else if (kind == CNI_JOB_NOTES)
		look_at_notes(&n);
	else if (kind == CNI_JOB_PROFILE)
		look_at_profile(&n);
	else
		keep_rdma_files(&n);
	worker_channel_send(line, "done", n.done);
}

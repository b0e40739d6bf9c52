// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/worker/cni_worker.h"

#include <sys/stat.h>

#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/worker/attachment.h"

/* ---- all of a sandbox ------------------------------------------------------------------------ */

/*
 * Of an ADD for the same interface, without a DEL since: with its record it would be forgotten what
 * was there before that, and a VF would keep the pod's settings for ever.
 */
static bool is_of_add_before(const struct worker_job *job, const json_t *record)
{
	return job->kind == WORKER_FINISH && job->call && json_at(record, "saved") &&
	       str_eq(json_str_at(record, "plugin"), job->call->plugin) &&
	       str_eq(json_str_at(record, "network"), job->call->network) &&
	       str_eq(json_str_at(record, "ifname"), job->call->ifname);
}

static bool is_due(const struct worker_job *job, const json_t *record)
{
	if (job->kind == WORKER_SWEEP)
		return str_eq(json_str_at(record, "network"), job->call->network) &&
		       str_eq(json_str_at(record, "plugin"), job->call->plugin) &&
		       !cni_call_is_valid(job->call, job->container, json_str_at(record, "ifname"));
	if (job->kind == WORKER_RECOVER)
		return !str_eq(json_str_at(record, "phase"), "added");
	return job->kind == WORKER_BURY || str_eq(json_str_at(record, "phase"), "deleting") ||
	       is_of_add_before(job, record);
}

/*
 * A list of valid attachments that lacks a living pod's is a mistake of whoever made it, or older
 * than the pod. What its DEL has left is due all the same.
 */
static bool is_kept_from_gc(const struct worker_job *job, const json_t *record,
			    enum netns_life life)
{
	if (job->kind != WORKER_SWEEP || life == NETNS_GONE ||
	    str_eq(json_str_at(record, "phase"), "deleting"))
		return false;
	log_warn("GC leaves an attachment that the runtime does not call valid: its network "
		 "namespace exists",
		 F_STR("container", job->container),
		 F_STR("network", json_str_at(record, "network")),
		 F_STR("interface", json_str_at(record, "ifname")));
	return true;
}

/* The last one first; each is tried, the first error counts. */
static int tidy_up(const struct worker_job *job, struct worker_channel *line, json_t *steps,
		   struct err *err)
{
	json_auto_t *sandbox = NULL;
	auto_close int netns = -1;
	enum netns_life life;
	const json_t *records;
	int rc = 0;

	if (sandbox_load(job->state, job->container, &sandbox, err) < 0)
		return -1;
	records = json_at(sandbox, "attachments");
	life = sandbox_life(sandbox, job->root, &netns);
	for (size_t i = json_array_size(records); i > 0; i--) {
		const json_t *record = json_array_get(records, i - 1);
		struct attachment attachment = {
			.line = line,
			.state = job->state,
			.root = job->root,
			.container = job->container,
			.key = {json_str_at(record, "plugin"), json_str_at(record, "network"),
				json_str_at(record, "ifname")},
			.config = json_at(record, "config"),
			.env = json_at(record, "env"),
			.pod = json_at(sandbox, "pod"),
			.netns = netns,
			.plugin_types = job->plugin_types,
			.kubelet_dir = job->kubelet_dir,
			.steps = steps,
		};

		if (is_due(job, record) && !is_kept_from_gc(job, record, life) &&
		    attachment_delete(&attachment, rc == 0 ? err : NULL) < 0)
			rc = -1;
	}
	return rc;
}

static bool has_due(const struct worker_job *job, const json_t *sandbox)
{
	const json_t *record;
	size_t i;

	json_array_foreach (json_at(sandbox, "attachments"), i, record)
		if (is_due(job, record))
			return true;
	return false;
}

/* ---- what a sandbox of this name had before -------------------------------------------------- */

/* The name may be another pod's by then, whose ADD has undone what was before it. */
static bool is_of_pod_before(const struct worker_job *job)
{
	json_auto_t *sandbox = NULL;

	if (!job->is_late)
		return false;
	sandbox = sandbox_read(job->state, job->container, NULL);
	return sandbox_is_of_other_pod(sandbox, job->call->pod_uid);
}

/*
 * An ADD begins with nothing of what was in this sandbox before: what a DEL has left to be undone,
 * an ADD of the same interface; all where the name was another namespace's or another pod's. Beside
 * the new one nobody could tell which of them a device or an address belongs to.
 */
static int begin_anew(const struct worker_job *job, struct worker_channel *line, json_t *steps,
		      struct err *err)
{
	json_auto_t *before = NULL, *after = NULL;
	struct worker_job undo = *job;
	struct stat netns;

	if (sandbox_load(job->state, job->container, &before, err) < 0)
		return -1;
	if (!before || fstat(job->call->netns, &netns) < 0)
		return 0;
	undo.kind = sandbox_is_of(before, &netns, job->call->netns_path, job->call->pod_uid)
			    ? WORKER_FINISH
			    : WORKER_BURY;
	if (!has_due(&undo, before))
		return 0;
	if (tidy_up(&undo, line, steps, err) < 0)
		return -1;
	if (sandbox_load(job->state, job->container, &after, err) < 0)
		return -1;
	return has_due(&undo, after)
		       ? err_set(err, ERR_TRANSIENT, "NotYetUndone",
				 "%s: what an earlier call attached in this sandbox is not undone "
				 "yet; the runtime tries again",
				 job->call->plugin)
		       : 0;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static json_t *pod_of(const struct cni_call *call)
{
	json_t *pod = json_object();

	json_put_str(pod, "namespace", call->pod_namespace);
	json_put_str(pod, "name", call->pod_name);
	json_put_str(pod, "uid", call->pod_uid);
	return pod;
}

static int carry_out(const struct worker_job *job, struct worker_channel *line, json_t *steps,
		     json_t **ret_result, struct err *err)
{
	const struct cni_call *call = job->call;
	json_auto_t *pod = pod_of(call);
	struct attachment attachment = {
		.line = line,
		.state = job->state,
		.root = job->root,
		.container = job->container,
		.key = {call->plugin, call->network, call->ifname},
		.config = call->config,
		.env = call->env,
		.pod = pod,
		.netns = call->netns,
		.plugin_types = job->plugin_types,
		.kubelet_dir = job->kubelet_dir,
		.has_plugin = job->has_plugin,
		.steps = steps,
	};

	if (job->kind == WORKER_UNDO || call->command == CALL_DEL)
		return is_of_pod_before(job) ? 0 : attachment_delete(&attachment, err);
	if (call->command == CALL_CHECK)
		return attachment_check(&attachment, err);
	if (begin_anew(job, line, steps, err) < 0)
		return -1;
	return attachment_add(&attachment, ret_result, err);
}

static bool has_left(const json_t *sandbox)
{
	return json_find(json_at(sandbox, "attachments"), "phase", "deleting") != NULL;
}

void cni_worker_run(int fd, const struct worker_job *job)
{
	struct worker_channel line = {.fd = fd};
	json_t *done = json_object(), *steps = json_array();
	json_auto_t *sandbox = NULL;
	json_t *result = NULL;
	struct err err = {0};
	int rc, known;

	if (job->kind == WORKER_CALL || job->kind == WORKER_UNDO)
		rc = carry_out(job, &line, steps, &result, &err);
	else
		rc = tidy_up(job, &line, steps, &err);
	json_put(done, "result", result);
	if (rc < 0)
		json_put(done, "error", ask_error_new(&err));
	known = sandbox_load(job->state, job->container, &sandbox, NULL);
	json_put_bool(done, "left", known < 0 || has_left(sandbox));
	if (known == 0)
		json_put(done, "attachments", attachment_index_describe(sandbox));
	json_put(done, "steps", steps);
	worker_channel_send(&line, "done", done);
	strbuf_done(&line.in);
}

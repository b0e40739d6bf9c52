// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs as JSON, both ways. Pure: the server writes, the worker reads, and refuses what the server
 * cannot have meant.
 */
#include "nodeagent/cni/worker/cni_job.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/worker/meta_call.h"

static const char *const kinds[CNI_JOB_KINDS] = {
	[CNI_JOB_CALL] = "call",       [CNI_JOB_UNDO] = "undo",       [CNI_JOB_FINISH] = "finish",
	[CNI_JOB_RECOVER] = "recover", [CNI_JOB_BURY] = "bury",       [CNI_JOB_SWEEP] = "sweep",
	[CNI_JOB_SURVEY] = "survey",   [CNI_JOB_NOTES] = "notes",     [CNI_JOB_PROFILE] = "profile",
	[CNI_JOB_RDMA] = "rdma",       [CNI_JOB_CLUSTER] = "cluster",
};

static const char *kind_name(enum cni_job_kind kind)
{
	return kind < CNI_JOB_KINDS ? kinds[kind] : "?";
}

json_t *cni_job_new_of_node(enum cni_job_kind kind)
{
	json_t *message = json_object();

	json_put_str(message, "kind", kind_name(kind));
	return message;
}

json_t *cni_job_new(const struct cni_job *job)
{
	json_t *message = cni_job_new_of_node(job->kind);

	json_put_str(message, "container", job->container);
	if (job->call)
		json_put(message, "call", cni_call_write(job->call));
	json_put_bool(message, "hasPlugin", job->has_plugin);
	if (job->note)
		json_put_str(message, "note", job->note);
	if (job->ms)
		json_put_int(message, "ms", job->ms);
	return message;
}

int cni_job_read_kind(const json_t *message, enum cni_job_kind *ret, struct err *err)
{
	const char *kind = json_str_or(json_at(message, "kind"), "");

	for (size_t i = 0; i < CNI_JOB_KINDS; i++) {
		if (!str_eq(kind, kinds[i]))
			continue;
		*ret = (enum cni_job_kind)i;
		return 0;
	}
	return err_set(err, ERR_BUG, "BadJob", "a worker has no job \"%.32s\"", kind);
}

bool cni_job_is_note(const char *name)
{
	return !str_empty(name) && name[0] != '.' && !strchr(name, '/');
}

static bool has_call(enum cni_job_kind kind)
{
	return kind == CNI_JOB_CALL || kind == CNI_JOB_UNDO || kind == CNI_JOB_SWEEP ||
	       kind == CNI_JOB_CLUSTER;
}

/* Which command may be carried out by which job. */
static bool fits(enum cni_job_kind kind, const struct cni_call *call)
{
	if (kind == CNI_JOB_SWEEP)
		return call->command == CALL_GC;
	if (kind == CNI_JOB_UNDO)
		return call->command == CALL_ADD;
	if (kind == CNI_JOB_CLUSTER)
		return (call->command == CALL_GC || call->command == CALL_STATUS) &&
		       str_eq(call->plugin, META_PLUGIN);
	return call->command == CALL_ADD || call->command == CALL_CHECK ||
	       call->command == CALL_DEL;
}

int cni_job_read(const json_t *message, int netns, struct cni_job *ret, struct cni_call *ret_call,
		 struct err *err)
{
	struct cni_job job = {
		.container = json_str_at(message, "container"),
		.has_plugin = json_is_true(json_at(message, "hasPlugin")),
		.note = json_str_at(message, "note"),
		.ms = json_integer_value(json_at(message, "ms")),
	};

	*ret_call = (struct cni_call){.netns = netns};
	if (cni_job_read_kind(message, &job.kind, err) < 0)
		return -1;
	if (job.kind == CNI_JOB_CLUSTER)
		job.container = "";
	else if (!cni_call_is_container(job.container))
		return err_set(err, ERR_BUG, "BadJob", "a job for a sandbox without a name");
	if (job.note && !cni_job_is_note(job.note))
		return err_set(err, ERR_BUG, "BadJob", "a job from a note that is no file");
	if (job.ms < 0 || job.ms > CNI_JOB_MAX_MS)
		return err_set(err, ERR_BUG, "BadJob", "a job with a time that is none");
	if (has_call(job.kind)) {
		if (cni_call_read_json(json_at(message, "call"), netns, ret_call, err) < 0)
			return -1;
		if (!fits(job.kind, ret_call) ||
		    (job.kind != CNI_JOB_SWEEP && job.kind != CNI_JOB_CLUSTER &&
		     !str_eq(job.container, ret_call->container)))
			return err_set(err, ERR_BUG, "BadJob", "a job that does not fit its call");
		job.call = ret_call;
	}
	*ret = job;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One job: read, checked, carried out, answered. Below the server, which orders it, and above
 * attachment.c, which knows one attachment, and node_job.c, which knows the node's files.
 */
#include "nodeagent/cni/worker/cni_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_visit.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/job_files.h"
#include "nodeagent/cni/worker/node_job.h"

struct sandbox_job {
	struct cni_job what;
	struct sandboxes *state;
	int root; /* descriptor of the host's root */
	const struct cni_worker_config *config;
	struct program_limits *limits;
	struct attach_worker *worker;
};

/* ---- all of a sandbox ------------------------------------------------------------------------ */

/* Is it another one of the same list, whose ADD goes on where this record's has ended? */
static bool is_beside(const struct sandbox_job *job, const json_t *record)
{
	json_auto_t *config = json_copy((json_t *)job->what.call->config);

	(void)json_object_del(config, "prevResult");
	return attachment_stacks(job->what.call->plugin) &&
	       !json_equal(json_at(record, "config"), config);
}

/*
 * Of an ADD for the same interface, without a DEL since: with its record it would be forgotten what
 * was there before that, and a VF would keep the pod's settings for ever.
 */
static bool is_of_add_before(const struct sandbox_job *job, const json_t *record)
{
	return job->what.kind == CNI_JOB_FINISH && job->what.call && json_at(record, "saved") &&
	       str_eq(json_str_at(record, "plugin"), job->what.call->plugin) &&
	       str_eq(json_str_at(record, "network"), job->what.call->network) &&
	       str_eq(json_str_at(record, "ifname"), job->what.call->ifname) &&
	       !is_beside(job, record);
}

static bool is_due(const struct sandbox_job *job, const json_t *record)
{
	if (job->what.kind == CNI_JOB_SWEEP)
		return str_eq(json_str_at(record, "network"), job->what.call->network) &&
		       str_eq(json_str_at(record, "plugin"), job->what.call->plugin) &&
		       !cni_call_is_valid(job->what.call, job->what.container,
					  json_str_at(record, "ifname"));
	if (job->what.kind == CNI_JOB_RECOVER)
		return !str_eq(json_str_at(record, "phase"), "added");
	return job->what.kind == CNI_JOB_BURY || str_eq(json_str_at(record, "phase"), "deleting") ||
	       is_of_add_before(job, record);
}

/*
 * A list of valid attachments that lacks a living pod's is a mistake of whoever made it, or older
 * than the pod. What its DEL has left is due all the same.
 */
static bool is_kept_from_gc(const struct sandbox_job *job, const json_t *record,
			    enum netns_life life)
{
	if (job->what.kind != CNI_JOB_SWEEP || life == NETNS_GONE ||
	    str_eq(json_str_at(record, "phase"), "deleting"))
		return false;
	log_warn("GC leaves an attachment that the runtime does not call valid: its network "
		 "namespace exists",
		 F_STR("container", job->what.container),
		 F_STR("network", json_str_at(record, "network")),
		 F_STR("interface", json_str_at(record, "ifname")));
	return true;
}

/* The last one first; each is tried, the first error counts. */
static int tidy_up(const struct sandbox_job *job, struct worker_channel *line, json_t *steps,
		   struct err *err)
{
	json_auto_t *sandbox = NULL;
	auto_close int netns = -1;
	enum netns_life life;
	const json_t *records;
	int rc = 0;

	if (sandbox_load(job->state, job->what.container, &sandbox, err) < 0)
		return -1;
	records = json_at(sandbox, "attachments");
	life = sandbox_life(sandbox, job->root, &netns);
	for (size_t i = json_array_size(records); i > 0; i--) {
		const json_t *record = json_array_get(records, i - 1);
		struct attachment attachment = {
			.line = line,
			.state = job->state,
			.root = job->root,
			.container = job->what.container,
			.key = {json_str_at(record, "plugin"), json_str_at(record, "network"),
				json_str_at(record, "ifname")},
			.config = json_at(record, "config"),
			.env = json_at(record, "env"),
			.pod = json_at(sandbox, "pod"),
			.netns = netns,
			.worker = job->worker,
			.plugin_types = job->config->plugin_types,
			.conf_dir = job->config->conf_dir,
			.bin_dir = job->config->bin_dir,
			.kubelet_dir = job->config->kubelet_dir,
			.limits = job->limits,
			.steps = steps,
		};

		if (is_due(job, record) && !is_kept_from_gc(job, record, life) &&
		    attachment_delete(&attachment, rc == 0 ? err : NULL) < 0)
			rc = -1;
	}
	return rc;
}

static bool has_due(const struct sandbox_job *job, const json_t *sandbox)
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
static bool is_of_pod_before(const struct sandbox_job *job)
{
	json_auto_t *sandbox = NULL;

	if (!job->what.note)
		return false;
	sandbox = sandbox_read(job->state, job->what.container, NULL);
	return sandbox_is_of_other_pod(sandbox, job->what.call->pod_uid);
}

/*
 * An ADD begins with nothing of what was in this sandbox before: what a DEL has left to be undone,
 * an ADD of the same interface; all where the name was another namespace's or another pod's. Beside
 * the new one nobody could tell which of them a device or an address belongs to.
 */
static int begin_anew(const struct sandbox_job *job, struct worker_channel *line, json_t *steps,
		      struct err *err)
{
	json_auto_t *before = NULL, *after = NULL;
	struct sandbox_job undo = *job;
	struct stat netns;

	if (sandbox_load(job->state, job->what.container, &before, err) < 0)
		return -1;
	if (!before || fstat(job->what.call->netns, &netns) < 0)
		return 0;
	undo.what.kind =
		sandbox_is_of(before, &netns, job->what.call->netns_path, job->what.call->pod_uid)
			? CNI_JOB_FINISH
			: CNI_JOB_BURY;
	if (!has_due(&undo, before))
		return 0;
	if (tidy_up(&undo, line, steps, err) < 0)
		return -1;
	if (sandbox_load(job->state, job->what.container, &after, err) < 0)
		return -1;
	return has_due(&undo, after)
		       ? err_set(err, ERR_TRANSIENT, "NotYetUndone",
				 "%s: what an earlier call attached in this sandbox is not undone "
				 "yet; the runtime tries again",
				 job->what.call->plugin)
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

/* pod, steps: borrowed. */
static struct attachment attachment_of(const struct sandbox_job *job, struct worker_channel *line,
				       json_t *pod, json_t *steps)
{
	const struct cni_call *call = job->what.call;

	return (struct attachment){
		.line = line,
		.state = job->state,
		.root = job->root,
		.container = job->what.container,
		.key = {call->plugin, call->network, call->ifname},
		.config = call->config,
		.env = call->env,
		.pod = pod,
		.netns = call->netns,
		.worker = job->worker,
		.plugin_types = job->config->plugin_types,
		.conf_dir = job->config->conf_dir,
		.bin_dir = job->config->bin_dir,
		.kubelet_dir = job->config->kubelet_dir,
		.has_plugin = job->what.has_plugin,
		.limits = job->limits,
		.steps = steps,
	};
}

/* GC or STATUS of the cluster's network. */
static void run_cluster_job(const struct sandbox_job *job, struct worker_channel *line)
{
	const struct cni_call *call = job->what.call;
	json_t *done = json_object(), *steps = json_array();
	json_auto_t *pod = pod_of(call);
	struct attachment attachment = attachment_of(job, line, pod, steps);
	struct err err = {0};

	attachment.netns = -1;
	if (attachment_pass(&attachment, cni_command_name(call->command), &err) < 0)
		json_put(done, "error", ask_error_new(&err));
	json_put(done, "steps", steps);
	worker_channel_send(line, "done", done);
}

static int carry_out(const struct sandbox_job *job, struct worker_channel *line, json_t *steps,
		     json_t **ret_result, struct err *err)
{
	const struct cni_call *call = job->what.call;
	json_auto_t *pod = pod_of(call);
	struct attachment attachment = attachment_of(job, line, pod, steps);

	if (job->what.kind == CNI_JOB_UNDO || call->command == CALL_DEL)
		return is_of_pod_before(job) ? 0 : attachment_delete(&attachment, err);
	if (call->command == CALL_CHECK)
		return attachment_check(&attachment, err);
	if (begin_anew(job, line, steps, err) < 0)
		return -1;
	if (attachment_add(&attachment, ret_result, err) < 0)
		return -1;
	if (sandbox_flush(job->state, job->what.container, err) == 0) {
		job_files_write(&attachment, job->config->job_files);
		return 0;
	}
	(void)attachment_delete(&attachment, NULL);
	return -1;
}

static bool has_left(const json_t *sandbox)
{
	return json_find(json_at(sandbox, "attachments"), "phase", "deleting") != NULL;
}

static void run_sandbox_job(const struct sandbox_job *job, struct worker_channel *line)
{
	json_t *done = json_object(), *steps = json_array();
	json_auto_t *sandbox = NULL;
	json_t *result = NULL;
	struct err err = {0};
	int rc, known;

	if (job->what.kind == CNI_JOB_CALL || job->what.kind == CNI_JOB_UNDO)
		rc = carry_out(job, line, steps, &result, &err);
	else
		rc = tidy_up(job, line, steps, &err);
	if (sandbox_flush(job->state, job->what.container, rc == 0 ? &err : NULL) < 0)
		rc = -1;
	if (rc == 0 && job->what.note)
		notes_remove(job->state->dir, job->what.note);
	json_put(done, "result", result);
	if (rc < 0)
		json_put(done, "error", ask_error_new(&err));
	known = sandbox_load(job->state, job->what.container, &sandbox, NULL);
	json_put_bool(done, "left", known < 0 || has_left(sandbox));
	if (known == 0)
		json_put(done, "attachments", attachment_index_describe(sandbox));
	if (known == 0 && json_array_size(json_at(sandbox, "attachments")) == 0)
		job_files_remove(job->root, job->what.container);
	json_put(done, "steps", steps);
	worker_channel_send(line, "done", done);
	/*
	 * Links may still come up, and the kernel waits for a grace period of RCU when each packet
	 * socket is closed: the runtime waits for neither.
	 */
	if (rc == 0 && job->what.call)
		netns_visit_announce(&job->worker->namespaces, job->what.call->netns,
				     job->worker->announcements);
}

/* ---- a job comes ----------------------------------------------------------------------------- */

/* Of a job that is not begun what the sandbox has is not known: it is looked at again. */
static void refuse(struct worker_channel *line, const struct err *err)
{
	json_t *done = json_object();

	log_error("a worker refuses its job", F_ERR(err));
	json_put(done, "error", ask_error_new(err));
	json_put_bool(done, "left", true);
	worker_channel_send(line, "done", done);
}

/* One byte, and the descriptor that comes with it. -1: the server has gone. */
static int take_descriptor(int line, int *ret)
{
	struct pollfd fd = {.fd = line, .events = POLLIN};
	char byte;

	while (poll(&fd, 1, -1) < 0)
		if (errno != EINTR)
			return -1;
	return packet_receive(line, &byte, 1, ret) == 1 ? 0 : -1;
}

static bool is_of_node(const struct cni_worker_config *config, int netns)
{
	struct stat st;

	return netns >= 0 && config->node_netns && fstat(netns, &st) == 0 &&
	       st.st_ino == config->node_netns;
}

/*
 * Is a namespace that a DEL names another pod's by now? The sandbox says which one it has; without
 * that a path of a process is not believed once the call was noted: a call that waits may be older
 * than the process. -1 with err: it cannot be known.
 */
static int is_of_other_sandbox(const struct sandbox_job *job, const struct cni_call *call,
			       struct err *err)
{
	json_auto_t *sandbox = NULL;
	struct stat netns;

	if (call->netns < 0 || fstat(call->netns, &netns) < 0)
		return 0;
	if (sandbox_load(job->state, job->what.container, &sandbox, err) < 0)
		return -1;
	return sandbox_has_netns(sandbox)
		       ? sandbox_is_of_other_netns(sandbox, &netns)
		       : job->what.note && netns_path_is_of_process(job->root, call->netns_path);
}

/*
 * What is done to a pod's namespace must never be done to the node's: by the descriptor, and by the
 * path, which programs of others open. When a pod is deleted, a process of the host, or of another
 * pod, may have the number of one that was the pod's ("/proc/42/ns/net"): the pod's namespace is
 * gone then.
 */
static int check_namespace(const struct sandbox_job *job, struct cni_call *call, struct err *err)
{
	auto_close int named = -1;
	bool is_going, is_nodes;
	int is_other;

	if (!job->what.call || str_empty(call->netns_path))
		return 0;
	/* The plugin has gone: its namespace may still be there. */
	if (job->what.note && call->netns < 0) {
		call->netns = netns_path_open(job->root, call->netns_path);
		call->netns_errno = call->netns < 0 ? errno : 0;
	}
	if (call->netns < 0 && err_is_unknown(call->netns_errno))
		return err_set(err, ERR_TRANSIENT, "NetnsUnknown",
			       "cannot open the network namespace %s now: %s", call->netns_path,
			       strerror(call->netns_errno));
	is_going = call->command == CALL_DEL || job->what.kind == CNI_JOB_UNDO;
	named = netns_path_open(job->root, call->netns_path);
	is_nodes = is_of_node(job->config, call->netns) || is_of_node(job->config, named);
	if (!is_going && is_nodes)
		return err_set(err, ERR_INVALID, "BadNetns",
			       "%s is the network namespace of the node, not of a pod",
			       call->netns_path);
	is_other = is_going && !is_nodes ? is_of_other_sandbox(job, call, err) : 0;
	if (is_other < 0)
		return -1;
	if (is_nodes || is_other)
		cni_call_lose_netns(call);
	return 0;
}

static int open_folders(const struct cni_worker_config *config, int *root, struct sandboxes *state,
			struct err *err)
{
	*root = open(config->host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*root < 0)
		return err_sys(err, "StateUnusable", "open %s", config->host_root);
	state->dir = root_open(*root, WIRE_STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return state->dir < 0 ? err_sys(err, "StateUnusable", "open %s", WIRE_STATE) : 0;
}

static void run_job(struct worker_channel *line, const json_t *message, int netns,
		    const struct cni_worker_config *config)
{
	auto_close int root = -1;
	auto_sandboxes struct sandboxes state = {.dir = -1};
	struct program_limits limits = {0};
	struct attach_worker worker = {.announcements = json_array()};
	struct sandbox_job job = {.config = config, .limits = &limits, .worker = &worker};
	struct cni_call call = {.netns = netns};
	enum cni_job_kind kind;
	struct err err = {0};
	int rc = cni_job_read_kind(message, &kind, &err);

	if (rc == 0 && (rc = open_folders(config, &root, &state, &err)) == 0 &&
	    kind >= CNI_JOB_SURVEY) {
		node_job_run(line, kind, message, netns, &state, root, config);
		cni_call_done(&call);
		return;
	}
	if (rc == 0 && (rc = cni_job_read(message, netns, &job.what, &call, &err)) == 0) {
		job.root = root;
		job.state = &state;
		/* In an ADD they come late: what was done is undone. */
		limits.sum_ms = job.what.ms * 5 / (call.command == CALL_ADD ? 9 : 6);
		rc = check_namespace(&job, &call, &err);
	}
	if (rc < 0)
		refuse(line, &err);
	else if (kind == CNI_JOB_CLUSTER)
		run_cluster_job(&job, line);
	else
		run_sandbox_job(&job, line);
	netns_visit_end(&worker.namespaces);
	json_decref(worker.announcements);
	cni_call_done(&call);
}

void cni_worker_run(int fd, const struct cni_worker_config *config)
{
	struct worker_channel line = {.fd = fd};
	json_auto_t *message = NULL;
	int netns = -1;

	if (take_descriptor(fd, &netns) < 0)
		return;
	message = json_frame_receive(fd, &line.in);
	if (message)
		run_job(&line, message, netns, config);
	else if (netns >= 0)
		(void)close(netns);
	strbuf_done(&line.in);
	json_decref(line.replies);
}

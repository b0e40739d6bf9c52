// SPDX-License-Identifier: Apache-2.0
/*
 * The node agent: reads its flags and becomes the supervisor, which forks kubeletd, cnid, the agent
 * and its workers. Here each of them limits its rights and becomes what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/agent_options.h"
#include "nodeagent/agent/agent_process.h"
#include "nodeagent/agent/container.h"
#include "nodeagent/cni/server/cnid.h"
#include "nodeagent/cni/worker/cni_worker.h"
#include "nodeagent/cni/worker/profile_keeper.h"
#include "nodeagent/kubelet/kubeletd_process.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/process/privileges.h"
#include "nodeagent/process/sandbox.h"
#include "nodeagent/process/supervisor.h"
#include "nodeagent/worker/worker.h"

#define DEVINFO_DIR "run/k8s.cni.cncf.io/devinfo/dp"

/* What the processes are made of. */
struct node_agent {
	const struct agent_options *options;
	struct container_facts container;
	struct allocation_epoch *giving; /* process/allocation_epoch.h */
	uint64_t netns;                  /* inode of the node's network namespace; 0: not known */
};

/* Of a process that cannot begin; its exit status. */
static int refuse(const char *process, const struct err *err)
{
	fprintf(stderr, "orbweaver-agent: %s%s\n", process, err->text);
	return 1;
}

/* ---- the processes --------------------------------------------------------------------------- */

static int work(const struct supervisor_agent *sockets, const struct supervisor_past *past,
		void *arg)
{
	const struct node_agent *agent = arg;

	return agent_process_run(agent->options, &agent->container, sockets, past);
}

/* A folder of the host as a path of ours, made when it is missing; new. */
static char *path_on_host(const struct agent_options *options, const char *folder,
			  unsigned int mode)
{
	auto_close int root = open(options->host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *path = NULL;

	if (root >= 0 && root_make_dirs(root, folder, mode) == 0)
		path = root_real_path(root, folder);
	return path ? path : str_below(options->host_root, folder);
}

static int serve_kubelet(int control, void *arg)
{
	const struct node_agent *agent = arg;
	const struct agent_options *options = agent->options;
	auto_free char *plugins = str_below(options->kubelet_dir, "device-plugins");
	auto_free char *devinfo = options->devinfo_dir ? str_dup(options->devinfo_dir)
						       : path_on_host(options, DEVINFO_DIR, 0755);
	auto_free char *registry = str_below(options->kubelet_dir, "plugins_registry");
	auto_free char *cdi = options->dra ? path_on_host(options, options->cdi_dir, 0755) : NULL;
	auto_free char *state = options->dra ? path_on_host(options, DRA_STATE_FOLDER, 0700) : NULL;
	const struct sandbox_folder folders[] = {
		{plugins, "device-plugins"},
		{devinfo, "devinfo"},
		{registry, "plugins_registry"},
		{cdi, "cdi"},
		{state, "claims"},
	};
	static const struct dra_folders dra = {"/plugins_registry", "/cdi", "/claims"};
	size_t n_folders = options->dra ? ARRAY_LEN(folders) : 2;
	struct err err = {0};

	/*
	 * As the kubelet makes the one, and Multus the other. A folder that cannot be had is named
	 * below.
	 */
	(void)fs_make_dirs(plugins, 0750);
	if (options->devinfo_dir)
		(void)fs_make_dirs(devinfo, 0755);
	if (options->dra)
		(void)fs_make_dirs(registry, 0750);
	if (sandbox_root(folders, n_folders, &err) < 0 ||
	    sandbox_become((uid_t)options->user, true, &err) < 0 ||
	    sandbox_filter(SANDBOX_NODE_SERVER, &err) < 0)
		return refuse("kubeletd: ", &err);
	return kubeletd_run(&(struct kubeletd_process_config){
		.control = control,
		.heartbeat_ms = SUPERVISOR_HEARTBEAT_MS,
		.plugins_dir = "/device-plugins",
		.devinfo_dir = "/devinfo",
		.device_paths = options->device_paths,
		.dra = options->dra ? &dra : NULL,
		.giving = agent->giving,
	});
}

static int serve_cni(int control, int orders, void *arg)
{
	const struct node_agent *agent = arg;
	const struct agent_options *options = agent->options;
	auto_free char *path = str_dup(options->cni.socket);
	uid_t caller = geteuid();
	struct cnid_host host;
	struct err err = {0};
	int status;

	if (cnid_open(options->host_root, options->cni.socket, &host, &err) < 0 ||
	    sandbox_root(&(struct sandbox_folder){host.socket_dir, "cni"}, 1, &err) < 0 ||
	    sandbox_become((uid_t)options->user, true, &err) < 0 ||
	    sandbox_filter(SANDBOX_NODE_SERVER, &err) < 0)
		status = refuse("cnid: ", &err);
	else
		status = cnid_run(&(struct cnid_config){
			.control = control,
			.orders = orders,
			.heartbeat_ms = SUPERVISOR_HEARTBEAT_MS,
			.host = &host,
			.socket_dir = "/cni",
			.socket = basename(path),
			.caller = caller,
			.add_ms = options->cni.timeout * 1000,
		});
	cnid_close(&host);
	return status;
}

static void be_cni_worker(int fd, void *arg)
{
	const struct node_agent *agent = arg;
	const struct agent_options *options = agent->options;

	allocation_epoch_leave(agent->giving);
	cni_worker_run(fd, &(struct cni_worker_config){
				   .host_root = options->host_root,
				   .plugin_types = options->cni.plugins,
				   .kubelet_dir = options->no_kubelet ? NULL : options->kubelet_dir,
				   .job_files = options->offers.job_files,
				   .bin_dir = options->cni.bin_dir,
				   .program = options->cni.program,
				   .conf_dir = options->cni.conf_dir,
				   .isolates = options->cni.isolates,
				   .shared_spaces = options->cni.shared,
				   .node_netns = agent->netns,
			   });
}

/* Of PodResources. */
static char *kubelet_socket(const struct agent_options *options)
{
	return str_below(options->kubelet_dir, "pod-resources/kubelet.sock");
}

static void be_worker(int fd, void *arg)
{
	const struct node_agent *agent = arg;
	const struct agent_options *options = agent->options;
	auto_free char *socket = kubelet_socket(options);

	worker_run(fd,
		   &(struct worker_config){.root = options->host_root,
					   .allow_primary_nic = options->allow_primary_nic,
					   .allow_firmware = options->allow_firmware,
					   .kubelet_socket = options->no_kubelet ? NULL : socket,
					   .giving = agent->giving});
}

static void be_meter(int fd, void *arg)
{
	const struct node_agent *agent = arg;

	allocation_epoch_leave(agent->giving);
	worker_run_meter(fd, &(struct worker_config){.root = agent->options->host_root});
}

/* ---- what the supervisor does for them ------------------------------------------------------- */

/* What an agent that ended has said says nothing about the next. */
static void on_ready(void *arg, bool is_ready)
{
	const struct node_agent *agent = arg;
	const char *file = agent->options->ready_file;
	auto_close int fd = -1;

	if (!file)
		return;
	if (!is_ready) {
		(void)unlink(file);
		return;
	}
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		log_error("cannot write that the agent is ready", F_STR("file", file),
			  F_INT("errno", errno));
}

/* To PodResources, whose folder and socket are root's. */
static int connect_to_kubelet(void *arg)
{
	const struct node_agent *agent = arg;
	auto_free char *path = kubelet_socket(agent->options);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (snprintf(name.sun_path, sizeof(name.sun_path), "%s", path) >=
	    (int)sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (fd < 0)
		return -1;
	return connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 ? take_fd(&fd) : -1;
}

static int supervise(const struct agent_options *options)
{
	struct node_agent agent = {
		.options = options,
		.container = container_look(options->host_root,
					    options->no_kubelet ? NULL : options->kubelet_dir),
		.giving = allocation_epoch_new(),
	};
	struct err err = {0};
	struct stat netns;

	if (stat("/proc/self/ns/net", &netns) == 0)
		agent.netns = netns.st_ino;
	/* For CNI workers: one that cannot set a pod's sysctl says so. */
	if (sandbox_open_sysctls(&err) < 0)
		log_error("sysctls of pods cannot be set", F_ERR(&err));
	if (privileges_limit_supervisor(&err) < 0)
		return refuse("", &err);
	return supervisor_run(&(struct supervisor_config){
		.serve = serve_kubelet,
		.serve_cni = serve_cni,
		.work = work,
		.worker = be_worker,
		.meter = be_meter,
		.cni_worker = be_cni_worker,
		.ready = on_ready,
		.connect = connect_to_kubelet,
		.giving = agent.giving,
		.arg = &agent,
	});
}

/* ---- main ------------------------------------------------------------------------------------ */

static int remove_plugins(const struct agent_options *options)
{
	auto_close int root = open(options->host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err = {0};

	if (root < 0)
		(void)err_sys(&err, "PluginsNotInstalled", "open %s", options->host_root);
	else if (profile_keeper_remove(root, options->cni.conf_dir, options->cni.bin_dir, &err) ==
		 0)
		return 0;
	return refuse("", &err);
}

/*
 * The folder of the kubelet as a path of ours, new: below the host's root links are the host's. As
 * it was given when it is not there: the kubelet makes it.
 */
static char *find_kubelet_dir(const struct agent_options *options)
{
	const char *root = options->host_root, *dir = options->kubelet_dir;
	size_t len = strlen(root) - (size_t)str_ends(root, "/");
	auto_close int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *real = NULL;

	if (fd >= 0 && strncmp(root, dir, len) == 0 && dir[len] == '/')
		real = root_real_path(fd, dir + len);
	return real ? real : str_dup(dir);
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

/*
 * Units of runtimes have systemd's soft limit of 1024, which is for programs that use select(2). A
 * call of a CNI plugin takes three descriptors, each network namespace of the node one.
 */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A socket in place of one that was closed would be replaced in a child (lib/base/child.h). */
static void open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

int main(int argc, char **argv)
{
	auto_free char *kubelet_dir = NULL;
	struct agent_options options = {0};
	struct err err = {0};

	mem_tune();
	json_init();
	raise_descriptors();
	open_standard_descriptors();
	(void)signal(SIGPIPE, SIG_IGN);
	if (agent_options_parse(argc, argv, from_environment, &options, &err) < 0) {
		(void)refuse("", &err);
		return 2;
	}
	if (options.help || options.version) {
		fputs(options.help ? agent_options_help : "orbweaver-agent " ORBWEAVER_VERSION "\n",
		      stdout);
		return 0;
	}
	if (options.remove_plugins)
		return remove_plugins(&options);
	if (options.is_ready)
		return access(options.ready_file, F_OK) == 0 ? 0 : 1;
	kubelet_dir = find_kubelet_dir(&options);
	options.kubelet_dir = kubelet_dir;
	return supervise(&options);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The server and the supervisor of its workers are forked anew together; the test's own process
 * plays runtime and agent, between which the server stands.
 */
#include "tests/support/test.h"

#include "tests/support/cni_stand.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/server/cnid.h"
#include "nodeagent/cni/worker/cni_worker.h"
#include "tests/support/scratch.h"
#include "tests/support/workers_stand.h"

struct cni_shared *cni_shared;

/* ---- the agent ------------------------------------------------------------------------------- */

void cni_stand_say(struct cni_stand *s, const json_t *message)
{
	auto_strbuf struct strbuf out = {0};

	assert_int_equal(json_frame_write(message, &out, NULL), 0);
	(void)send(s->line, out.data, out.len, MSG_NOSIGNAL);
}

static void answer(struct cni_stand *s, const json_t *message)
{
	bool is_wanted = str_eq(json_str_at(message, "kind"), "addresses");
	json_auto_t *reply = NULL;
	json_t *result = NULL;
	struct err err = {0};

	if (s->answer)
		result = s->answer(message, &err);
	else if (is_wanted && s->is_refused)
		(void)err_set(&err, ERR_TRANSIENT, "AddressesPending", "no address yet");
	else if (is_wanted)
		result = json_pack("{s:s, s:[{s:s}]}", "cniVersion", "1.0.0", "ips", "address",
				   "10.6.0.2/16");
	else
		result = json_object();
	if (result && !s->answer)
		s->has_given = is_wanted;
	reply = ask_reply_new(message, result, &err);
	cni_stand_say(s, reply);
}

static void be_agent(struct cni_stand *s)
{
	struct pollfd poll_fd = {.fd = s->line, .events = POLLIN};
	json_t *message;

	if (poll(&poll_fd, 1, 2) <= 0)
		return;
	if (!json_frame_take_in(s->line, &s->in, MSG_DONTWAIT)) {
		(void)close(take_fd(&s->line));
		return;
	}
	while (json_frame_read(&s->in, &message, NULL) == 0 && message) {
		json_array_append(s->heard, message);
		if (json_at(message, "kind"))
			answer(s, message);
		json_decref(message);
	}
}

/* An ADD waits a ninth of it for an agent that does not come. */
enum { ALONE_ADD_MS = 9000 };

/* ---- the supervisor -------------------------------------------------------------------------- */

static void work(int fd, void *arg)
{
	const struct cni_stand *s = arg;

	cni_worker_run(fd, &(struct cni_worker_config){
				   .host_root = s->folder,
				   .kubelet_dir = s->folder,
				   .plugin_types = s->plugin_types ? s->plugin_types : "*",
				   .job_files = s->job_files,
				   .node_netns = s->node_netns,
				   .bin_dir = "/bin",
				   .program = s->program,
				   .conf_dir = "/net.d"});
}

static int be_server(const struct cni_stand *s, int control, int orders, bool with_agent)
{
	struct cnid_host host;

	if (cnid_open(s->folder, "/run/cni.sock", &host, NULL) < 0)
		return 1;
	return cnid_run(&(struct cnid_config){.control = control,
					      .orders = orders,
					      .heartbeat_ms = 60000,
					      .host = &host,
					      .socket_dir = host.socket_dir,
					      .socket = "cni.sock",
					      .caller = geteuid(),
					      .add_ms = s->add_ms    ? s->add_ms
							: with_agent ? 0
								     : ALONE_ADD_MS,
					      .again_ms = 10,
					      .notes_ms = s->notes_ms});
}

void cni_stand_start_server(struct cni_stand *s, bool with_agent)
{
	int control[2], line[2], orders;
	pid_t pid, supervisor, parent = getpid();

	orders = workers_stand_fork_as(WORKERS_CNI, work, s, &supervisor);
	assert_true(orders >= 0);
	cni_shared->supervisor = supervisor;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(1);
		cni_shared->server = getpid();
		(void)close(control[0]);
		_exit(be_server(s, control[1], orders, with_agent));
	}
	(void)close(orders);
	cni_shared->server = pid;
	(void)close(control[1]);
	s->control = control[0];
	strbuf_reset(&s->in);
	if (!with_agent)
		return;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
	assert_int_equal(packet_send(s->control, "a", 1, line[1], 0), 0);
	(void)close(line[1]);
	s->line = line[0];
}

/* Workers go with the server. */
static void let_go(struct cni_stand *s)
{
	(void)waitpid(cni_shared->supervisor, NULL, 0);
	(void)close(s->control);
	if (s->line >= 0)
		(void)close(s->line);
	s->line = -1;
}

void cni_stand_kill_server(struct cni_stand *s)
{
	(void)kill(cni_shared->server, SIGKILL);
	(void)waitpid(cni_shared->server, NULL, 0);
	let_go(s);
}

void cni_stand_turn(struct cni_stand *s)
{
	be_agent(s);
	if (waitpid(cni_shared->server, NULL, WNOHANG) != cni_shared->server)
		return;
	let_go(s);
	cni_stand_start_server(s, true);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

pid_t cni_stand_start(struct cni_stand *s, const char *plugin, const char *command,
		      const char *container, const char *config)
{
	auto_free char *out = str_below(s->folder, "printed");
	auto_free char *args = str_printf("K8S_POD_NAMESPACE=lab;K8S_POD_NAME=a;K8S_POD_UID=%s",
					  s->pod_uid ? s->pod_uid : "u1");
	int in[2];
	pid_t pid;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		auto_free char *socket = str_below(s->folder, "run/cni.sock");
		auto_free char *state = str_below(s->folder, "var/lib/orbweaver/cni");
		auto_free char *netns = str_below(s->folder, "netns");

		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(open(out, O_RDWR | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
		(void)setenv("CNI_COMMAND", command, 1);
		(void)setenv("CNI_CONTAINERID", container, 1);
		(void)setenv("CNI_IFNAME", s->ifname ? s->ifname : "net1", 1);
		(void)setenv("CNI_NETNS", s->netns ? s->netns : netns, 1);
		(void)setenv("CNI_ARGS", args, 1);
		(void)setenv("CNI_PATH", s->folder, 1);
		(void)setenv("ORBWEAVER_CNI_SOCKET", socket, 1);
		(void)setenv("ORBWEAVER_CNI_STATE", state, 1);
		(void)close(in[1]);
		_exit(plugin_run(plugin));
	}
	cni_shared->plugin = pid;
	(void)close(in[0]);
	assert_int_equal(write(in[1], config, strlen(config)), (ssize_t)strlen(config));
	(void)close(in[1]);
	return pid;
}

int cni_stand_finish(struct cni_stand *s, pid_t pid)
{
	auto_free char *out = str_below(s->folder, "printed");
	char text[65536];
	int status = -1, fd;
	ssize_t n;

	while (waitpid(pid, &status, WNOHANG) != pid)
		cni_stand_turn(s);
	cni_shared->plugin = 0;
	fd = open(out, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	(void)close(fd);
	free(s->printed);
	s->printed = str_ndup(text, n > 0 ? (size_t)n : 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cni_stand_call(struct cni_stand *s, const char *plugin, const char *command,
		   const char *container, const char *config)
{
	return cni_stand_finish(s, cni_stand_start(s, plugin, command, container, config));
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void cni_stand_prepare(struct cni_stand *s)
{
	auto_free char *kernel = NULL, *netns = NULL;

	if (!cni_shared)
		cni_shared = mmap(NULL, sizeof(*cni_shared), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* What a test before had killed at its last step is not killed at this one's first. */
	cni_shared->kill_at = 0;
	*s = (struct cni_stand){.folder = scratch_new(), .line = -1, .heard = json_array()};
	kernel = str_below(s->folder, "kernel");
	assert_int_equal(mkdir(kernel, 0700), 0);
	/* Of this process; below the root, where the server looks, nothing has this name. */
	netns = str_below(s->folder, "netns");
	assert_int_equal(symlink("/proc/self/ns/net", netns), 0);
}

void cni_stand_open(struct cni_stand *s, bool with_agent)
{
	cni_stand_prepare(s);
	cni_stand_start_server(s, with_agent);
}

void cni_stand_close(struct cni_stand *s)
{
	cni_stand_kill_server(s);
	strbuf_done(&s->in);
	json_decref(s->heard);
	free(s->printed);
	scratch_free(s->folder);
}

const json_t *cni_stand_heard(const struct cni_stand *s, const char *key)
{
	for (size_t i = json_array_size(s->heard); i > 0; i--)
		if (json_at(json_array_get(s->heard, i - 1), key))
			return json_array_get(s->heard, i - 1);
	return NULL;
}

char *cni_stand_leftovers(const struct cni_stand *s)
{
	auto_free char *command = str_printf(
		"cd '%s' && find kernel var/lib/orbweaver/cni -type f ! -name '*lock' | sort",
		s->folder);
	struct strbuf text = {0};
	FILE *list = popen(command, "r");
	char line[512];

	while (fgets(line, sizeof(line), list))
		strbuf_adds(&text, line);
	(void)pclose(list);
	return strbuf_take(&text);
}

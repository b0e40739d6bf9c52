// SPDX-License-Identifier: Apache-2.0
/*
 * Device plugins without an agent: serves the pools of a file through the agent's own code and
 * processes, for tests with a real kubelet.
 *
 *	kubelet-tool serve [--devinfo DIR] [--pod-resources SOCKET] DIR POOLS
 *
 * POOLS is JSON as pools_compute() returns it; read again at SIGHUP to the agent's half. One line
 * of JSON on stdout for each change: {"status": […]}, {"allocated": {…}} or null, {"told": "reason:
 * message"}. SIGTERM ends it in an orderly way.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/kubeletd_client.h"
#include "nodeagent/kubelet/kubeletd_process.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/process/supervisor.h"

#define POOLS_MAX (16 * 1024 * 1024)

struct tool {
	struct loop *loop;
	const char *dir, *devinfo, *pod_resources_socket, *pools;
	struct kubeletd *kubeletd;
	struct pod_resources *pod_resources;
	struct signal_watch *hangup, *terminate;
	int orders; /* to the supervisor */
	struct timer *heartbeat;
};

static int usage(void)
{
	(void)fputs(
		"usage: kubelet-tool serve [--devinfo DIR] [--pod-resources SOCKET] DIR POOLS\n",
		stderr);
	return 2;
}

/* Takes value. */
static void print(const char *key, json_t *value)
{
	json_auto_t *line = json_object();
	auto_free char *text = NULL;

	(void)json_object_set_new(line, key, value);
	text = json_text(line);
	(void)puts(text);
	(void)fflush(stdout);
}

static void on_changed(void *arg)
{
	const struct tool *tool = arg;

	print("status", kubeletd_status(tool->kubeletd));
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	print("told", json_fmt("%s: %s", reason, message));
}

static void on_allocated(void *arg)
{
	const struct tool *tool = arg;

	if (tool->pod_resources)
		pod_resources_given(tool->pod_resources);
}

static void on_pods(void *arg, const json_t *allocated, const struct err *err)
{
	print("allocated", allocated ? json_incref((json_t *)allocated) : json_null());
}

static int load(struct tool *tool, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *pools = NULL;

	if (fs_read(AT_FDCWD, tool->pools, POOLS_MAX, &text, err) < 0)
		return -1;
	pools = json_parse(strbuf_str(&text), text.len, err);
	if (!pools)
		return err_in(err, "%s", tool->pools);
	kubeletd_set(tool->kubeletd, pools, NULL);
	return 0;
}

static void on_hangup(void *arg)
{
	struct err err = {0};

	if (load(arg, &err) < 0)
		(void)fprintf(stderr, "%s: %s\n", err.reason, err.text);
}

static void on_ready(void *arg, const json_t *pools)
{
	on_hangup(arg);
}

static void on_terminate(void *arg)
{
	const struct tool *tool = arg;

	loop_stop(tool->loop);
}

static void on_lost(void *arg, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", err->reason, err->text);
	on_terminate(arg);
}

static void on_heartbeat(void *arg)
{
	struct tool *tool = arg;

	(void)workers_send(tool->orders, WORKERS_ALIVE, 0);
	timer_start(tool->heartbeat, SUPERVISOR_HEARTBEAT_MS);
}

static int work(const struct supervisor_agent *sockets, const struct supervisor_past *past,
		void *arg)
{
	struct tool *tool = arg;

	tool->orders = sockets->orders;
	tool->loop = loop_new();
	tool->heartbeat = timer_new(tool->loop, on_heartbeat, tool);
	on_heartbeat(tool);
	tool->kubeletd = kubeletd_new(&(struct kubeletd_config){
		.loop = tool->loop,
		.fd = sockets->kubeletd,
		.ready = on_ready,
		.changed = on_changed,
		.emit = on_told,
		.allocated = on_allocated,
		.lost = on_lost,
		.arg = tool,
	});
	tool->hangup = signal_watch_new(tool->loop, SIGHUP, on_hangup, tool);
	tool->terminate = signal_watch_new(tool->loop, SIGTERM, on_terminate, tool);
	if (tool->pod_resources_socket)
		tool->pod_resources =
			pod_resources_new(tool->loop, &(struct pod_resources_config){
							      .socket = tool->pod_resources_socket,
							      .changed = on_pods,
							      .arg = tool,
						      });
	loop_run(tool->loop);
	signal_watch_free(tool->hangup);
	signal_watch_free(tool->terminate);
	pod_resources_free(tool->pod_resources);
	kubeletd_free(tool->kubeletd);
	timer_free(tool->heartbeat);
	loop_free(tool->loop);
	return 0;
}

static int serve(int control, void *arg)
{
	const struct tool *tool = arg;

	return kubeletd_run(&(struct kubeletd_process_config){
		.control = control,
		.heartbeat_ms = SUPERVISOR_HEARTBEAT_MS,
		.plugins_dir = tool->dir,
		.devinfo_dir = tool->devinfo,
	});
}

int main(int argc, char **argv)
{
	struct tool tool = {0};
	int i = 2;

	if (argc < 2 || !str_eq(argv[1], "serve"))
		return usage();
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (str_eq(argv[i], "--devinfo"))
			tool.devinfo = argv[i + 1];
		else if (str_eq(argv[i], "--pod-resources"))
			tool.pod_resources_socket = argv[i + 1];
		else
			return usage();
	}
	if (argc - i != 2)
		return usage();
	tool.dir = argv[i];
	tool.pools = argv[i + 1];
	mem_tune();
	json_init();
	return supervisor_run(
		&(struct supervisor_config){.serve = serve, .work = work, .arg = &tool});
}

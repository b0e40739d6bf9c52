// SPDX-License-Identifier: Apache-2.0
/* Beginning and end of the agent, and who of two agents executes. */
#include "nodeagent/agent/agent_process.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/own_fd.h"
#include "nodeagent/agent/agent_process_internal.h"
#include "nodeagent/agent/node_lock.h"
#include "nodeagent/process/sandbox.h"

enum {
	/* How often a second agent asks whether the first one has gone. */
	LOCK_LOOK_MS = 200,
	/* A step that runs at shutdown has this long; the kubelet kills after 30 s. */
	SHUTDOWN_MS = 25000,
	/* Closing of sockets, after that. */
	CLOSING_MS = 2000,
};

/* ---- who executes ---------------------------------------------------------------------------- */

static void look_at_lock(void *arg)
{
	struct agent_process *p = arg;
	struct err err = {0};
	int rc = node_lock_try(p->fds.lock, &err);

	assert(!p->executes && !p->life.shutting_down);
	/* Who waits for another agent is ready; who cannot ever execute is not. */
	readiness_set(p->readiness, "lock", rc >= 0, err.text);
	if (rc < 0 && !p->life.lock_refused)
		log_error("cannot take the node lock; not executing, will retry", F_ERR(&err));
	p->life.lock_refused = rc < 0;
	if (rc <= 0) {
		if (rc == 0 && !p->life.waiting_for_lock)
			log_info("another agent holds the node lock, waiting for it to end");
		p->life.waiting_for_lock |= rc == 0;
		timer_start(p->life.lock_look, LOCK_LOOK_MS);
		return;
	}
	if (p->life.waiting_for_lock)
		log_info("the other agent has ended, taking over");
	p->executes = true;
	metric_set(p->life.executing, 1);
	agent_set_may_execute(p->agent, true);
	node_state_may_write(p->api.node_state, true);
	if (p->slices)
		resource_slices_may_write(p->slices, true);
}

/* ---- end ------------------------------------------------------------------------------------- */

static void on_all_closed(void *arg)
{
	struct agent_process *p = arg;

	assert(p->life.closing);
	loop_stop(p->loop);
}

static void close_server(void *arg)
{
	struct agent_process *p = arg;

	/* A step may end after it was given up. */
	if (p->life.closing)
		return;
	p->life.closing = true;
	timer_start(p->life.giving_up, CLOSING_MS);
	readiness_close(p->readiness, on_all_closed, p);
}

/*
 * A step that takes longer is left to itself; the next agent looks at what came of it. Then sockets
 * have their time.
 */
static void on_giving_up(void *arg)
{
	struct agent_process *p = arg;

	if (!p->life.closing) {
		log_warn("shutting down while a step runs");
		close_server(p);
		return;
	}
	log_warn("ended without closing everything");
	_exit(p->status);
}

static void on_terminate(void *arg)
{
	struct agent_process *p = arg;

	if (p->life.shutting_down)
		return;
	log_info("shutting down");
	p->life.shutting_down = true;
	readiness_set(p->readiness, "running", false, "shutting down");
	timer_stop(p->life.lock_look);
	readiness_stop(p->readiness);
	timer_start(p->life.giving_up, SHUTDOWN_MS);
	agent_stop(p->agent, close_server, p);
}

static void on_lost(struct agent_process *p)
{
	p->status = 1;
	on_terminate(p);
}

static void process_done(struct agent_process *p)
{
	agent_wiring_done(p);
	kube_config_done(&p->api.config);
	signal_watch_free(p->life.term);
	signal_watch_free(p->life.interrupt);
	timer_free(p->life.lock_look);
	timer_free(p->life.giving_up);
	timer_free(p->life.heartbeat);
	readiness_free(p->readiness);
	scrapes_free(p->counters.scrapes);
	loop_free(p->loop);
	metrics_free(p->metrics);
	watch_close(p->watch);
	own_close_p(&p->fds.lock);
	own_close_p(&p->fds.orders);
	own_close_p(&p->fds.meters);
	own_close_p(&p->fds.connections);
	own_close_p(&p->fds.host_root);
	own_close_p(&p->fds.kubeletd);
}

/* ---- start ----------------------------------------------------------------------------------- */

/*
 * A kubeconfig, and the files that it names, may be root's alone: they are read once before. A
 * program that prints credentials brings its own system calls along.
 */
static int take_what_is_needed(struct agent_process *p, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = p->options->kube.kubeconfig,
		.context = p->options->kube.context,
		.envp = (const char *const *)environ,
	};

	p->fds.lock = node_lock_open(p->options->host_root, err);
	if (p->fds.lock < 0)
		return -1;
	p->watch = watch_open(err);
	return p->watch ? kube_config_load(&source, &p->api.config, err) : -1;
}

static int give_privileges_away(struct agent_process *p, struct err *err)
{
	if (sandbox_hide(p->options->host_root, p->options->kubelet_dir, err) < 0)
		return -1;
	/* What is left of it; folders on the way may be closed to us. */
	p->fds.host_root = open(p->options->host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sandbox_become((uid_t)p->options->user, false, err) < 0)
		return -1;
	if (p->api.config.auth.kind == KUBE_AUTH_EXEC) {
		log_warn(
			"the kubeconfig runs a program for credentials: no filter of system calls");
		return 0;
	}
	return sandbox_filter(SANDBOX_AGENT, err);
}

/* The supervisor replaces a process that no longer turns. */
static void on_heartbeat(void *arg)
{
	struct agent_process *p = arg;

	(void)workers_send(p->fds.orders, WORKERS_ALIVE, 0);
	timer_start(p->life.heartbeat, SUPERVISOR_HEARTBEAT_MS);
}

static void count_past(const struct agent_process *p)
{
	const struct {
		const char *process;
		unsigned int kills;
	} hung[] = {
		{"agent", p->past->hung_agents},
		{"kubeletd", p->past->hung_kubeletds},
		{"cnid", p->past->hung_cnids},
	};
	struct metric *kills =
		metric_counter(p->metrics, "orbweaver_watchdog_kills_total",
			       "Processes that no longer turned and were replaced.", "process");

	metric_add(metric_counter(p->metrics, "orbweaver_agent_restarts_total",
				  "Agents before this one that ended before their time.", ""),
		   p->past->ends);
	for (size_t i = 0; i < ARRAY_LEN(hung); i++)
		metric_add(kills, hung[i].kills, hung[i].process);
}

static int process_start(struct agent_process *p, struct err *err)
{
	p->metrics = metrics_new();
	metrics_add_process(p->metrics);
	p->life.executing =
		metric_gauge(p->metrics, "orbweaver_agent_executing",
			     "1 while this process is the node's one that executes.", "");
	count_past(p);
	p->loop = loop_new();
	loop_measure_turns(p->loop, p->metrics);
	p->readiness = readiness_new(p->loop, p->metrics, p->fds.orders);
	p->life.term = signal_watch_new(p->loop, SIGTERM, on_terminate, p);
	p->life.interrupt = signal_watch_new(p->loop, SIGINT, on_terminate, p);
	p->life.lock_look = timer_new(p->loop, look_at_lock, p);
	p->life.giving_up = timer_new(p->loop, on_giving_up, p);
	p->life.heartbeat = timer_new(p->loop, on_heartbeat, p);
	on_heartbeat(p);
	p->counters.scrapes = scrapes_new();
	if (readiness_serve(p->readiness, p->options->metrics.addr,
			    scrapes_gate(p->counters.scrapes), err) < 0)
		return -1;
	agent_wiring_start(p);
	look_at_lock(p);
	return 0;
}

int agent_process_run(const struct agent_options *options, const struct container_facts *container,
		      const struct supervisor_agent *sockets, const struct supervisor_past *past)
{
	struct agent_process p = {
		.options = options,
		.container = container,
		.past = past,
		.fds = {.orders = sockets->orders,
			.meters = sockets->meters,
			.connections = sockets->connections,
			.kubeletd = sockets->kubeletd,
			.lock = -1,
			.host_root = -1},
		.lost = on_lost,
	};
	struct err err = {0};

	if (take_what_is_needed(&p, &err) < 0 || give_privileges_away(&p, &err) < 0 ||
	    process_start(&p, &err) < 0) {
		fprintf(stderr, "orbweaver-agent: %s\n", err.text);
		/* What was opened for a start that failed is closed by the loop, too. */
		if (p.loop) {
			p.life.shutting_down = true;
			close_server(&p);
			loop_run(p.loop);
		}
		p.status = 1;
	} else {
		log_info("started", F_STR("version", ORBWEAVER_VERSION),
			 F_STR("node", options->node), F_STR("namespace", options->ns));
		loop_run(p.loop);
		log_info("stopped");
	}
	process_done(&p);
	return p.status;
}

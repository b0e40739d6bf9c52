/*
 * The node agent: reads its flags and starts the supervisor's two processes: the one that serves the kubelet, and the agent
 * itself, which forks hostd's keeper, gives its privileges away, wires the libraries together, runs the loop, leaves in order.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "lib/http/probes.h"
#include "lib/json/json.h"
#include "lib/kube/client.h"
#include "lib/kube/config.h"
#include "lib/kube/recorder.h"
#include "lib/loop/loop.h"
#include "nodeagent/agent.h"
#include "nodeagent/host_events.h"
#include "nodeagent/hostd/client.h"
#include "nodeagent/hostd/privileges.h"
#include "nodeagent/node_lock.h"
#include "nodeagent/node_state.h"
#include "nodeagent/offers.h"
#include "nodeagent/options.h"
#include "nodeagent/plugind/process.h"
#include "nodeagent/status.h"
#include "nodeagent/supervisor.h"

#define DEVINFO_DIR "run/k8s.cni.cncf.io/devinfo/dp"

enum {
	/* How often a second agent asks whether the first one has gone. */
	LOCK_LOOK_MS = 200,
	/* A step that runs at shutdown gets so long; the kubelet kills after 30 s. */
	SHUTDOWN_MS = 25000,
	/* Closing of sockets, after that. */
	CLOSING_MS = 2000,
	/* In the host's network the agent that we replace may still have our port. */
	SERVING_AGAIN_MS = 1000,
	/* Memory is tidied up so long after a report, unless the next one follows. */
	TIDY_MS = 2000,
};

struct program {
	struct agent_options options;
	int keeper, lock, plugind;
	const struct supervisor_past *past;
	bool told_restart;
	bool heard; /* the API server has said whether there is a NodeState */
	int status; /* for exit */
	struct loop *loop;
	struct metrics *metrics;
	struct metric *executing;
	struct health *alive, *ready;
	struct probes probes;
	bool is_ready; /* as the file for probes says */
	struct http_server *server;
	struct kube_config config;
	struct kube_client *client;
	struct recorder *recorder;
	struct node_state *node_state;
	struct hostd *hostd;
	struct host_events *events;
	struct agent *agent;
	struct offers *offers;
	struct signal_watch *term, *interrupt;
	struct timer *lock_look, *giving_up, *serving, *tidying;
	bool waiting_for_lock, lock_refused; /* said already */
	bool executes;
	bool shutting_down; /* nothing more is begun */
	bool closing;       /* sockets, after that */
};

/* ---- readiness --------------------------------------------------------------------------------------------------------- */

/* For probes: at our address for metrics there may still be the agent before us, a file of ours is ours. */
static void set_ready(struct program *p, const char *check, bool ok, const char *why_not)
{
	const char *file = p->options.ready_file;
	auto_close int fd = -1;

	(void)health_set(p->ready, check, ok, why_not);
	if (!file || health_is_ok(p->ready) == p->is_ready)
		return;
	if (p->is_ready) {
		p->is_ready = false;
		(void)unlink(file);
		return;
	}
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	p->is_ready = fd >= 0;
	if (fd < 0)
		log_error("cannot say that we are ready", F_STR("file", file),
			  F_INT("errno", errno));
}

/* ---- who executes ------------------------------------------------------------------------------------------------------ */

static void look_at_lock(void *arg)
{
	struct program *p = arg;
	struct err err = {0};
	int rc = node_lock_try(p->lock, &err);

	/* Who waits for another agent is ready; who cannot ever execute is not. */
	set_ready(p, "lock", rc >= 0, err.text);
	if (rc < 0 && !p->lock_refused)
		log_error("nothing is done on this node without its lock, trying again",
			  F_ERR(&err));
	p->lock_refused = rc < 0;
	if (rc <= 0) {
		if (rc == 0 && !p->waiting_for_lock)
			log_info("another agent of this node is at work, waiting until it ends");
		p->waiting_for_lock |= rc == 0;
		timer_start(p->lock_look, LOCK_LOOK_MS);
		return;
	}
	if (p->waiting_for_lock)
		log_info("the other agent has ended, taking over");
	p->executes = true;
	metric_set(p->executing, 1);
	agent_set_may_execute(p->agent, true);
	node_state_may_write(p->node_state, true);
}

/* ---- what goes where ---------------------------------------------------------------------------------------------------- */

static void set_up(struct program *p)
{
	const char *why_not = p->offers ? offers_why_not_up(p->offers) : "not offered yet";

	set_ready(p, "resources", why_not == NULL, why_not);
}

static void tell(void *arg, bool warning, const char *reason, const char *message)
{
	struct program *p = arg;
	struct event_object object = node_state_event_object(p->node_state);

	/* Two agents would say everything twice. */
	if (p->executes)
		recorder_tell(p->recorder, &object, warning, reason, message);
}

static void report(void *arg)
{
	struct program *p = arg;

	if (p->node_state)
		node_state_report(p->node_state);
}

static void offer(void *arg)
{
	struct program *p = arg;
	struct agent_view view = agent_view(p->agent);

	if (p->offers)
		offers_set(p->offers, view.offered, view.observed, view.offered || p->heard);
}

static void on_looked(void *arg)
{
	struct program *p = arg;
	struct agent_view view = agent_view(p->agent);

	offer(p);
	set_up(p);
	set_ready(p, "host", view.observed != NULL, "not looked at yet");
}

static void on_offers_changed(void *arg)
{
	set_up(arg);
	report(arg);
}

static json_t *compose(void *arg, const json_t *before, const char *now)
{
	struct program *p = arg;
	struct agent_view view = agent_view(p->agent);
	json_auto_t *resources = p->offers ? offers_status(p->offers) : NULL;
	json_auto_t *failures = p->offers ? offers_failures(p->offers) : NULL;

	/* Nothing can be said about a host that was not looked at, unless it cannot be. */
	if (!p->offers || (!view.observed && json_array_size(view.failures) == 0))
		return NULL;
	json_array_extend(failures, (json_t *)view.failures);
	return status_compose(&(struct status_input){
		.generation = view.generation,
		.observed = view.observed,
		.plan = view.plan,
		.activity = view.activity,
		.failures = failures,
		.resources = resources,
		.before = before,
		.now = now,
	});
}

/* Nobody else can: those who ended had no time. */
static void tell_restart(struct program *p)
{
	bool signaled = WIFSIGNALED(p->past->status);
	auto_free char *text =
		str_printf("the agent was ended by %s %d and started again; the kubelet was "
			   "%sserved meanwhile",
			   signaled ? "signal" : "status",
			   signaled ? WTERMSIG(p->past->status) : WEXITSTATUS(p->past->status),
			   p->past->served ? "" : "not ");

	tell(p, true, "AgentRestarted", text);
}

static void on_node_state(void *arg, const json_t *object)
{
	struct program *p = arg;

	if (p->past->ends > 0 && !p->told_restart && p->executes) {
		tell_restart(p);
		p->told_restart = true;
	}
	p->heard = true;
	agent_set_node_state(p->agent, object);
	offer(p);
	set_up(p);
	set_ready(p, "nodestate", true, NULL);
}

static void on_reported(void *arg, const char *uid)
{
	struct program *p = arg;

	agent_set_reported(p->agent, uid);
	timer_start(p->tidying, TIDY_MS);
}

/* A round is over, and mostly nothing comes for a long time. */
static void on_tidying(void *arg)
{
	mem_trim();
	mem_drop_code();
}

static void on_addresses(void *arg, const json_t *addresses)
{
	struct program *p = arg;

	agent_set_addresses(p->agent, addresses);
}

static void on_trouble(void *arg, const char *what, const struct err *err)
{
	struct program *p = arg;
	auto_free char *check = str_printf("watch-%s", what);

	set_ready(p, check, err == NULL, err ? err->text : NULL);
	if (err)
		log_error("API server cannot be asked, trying again", F_STR("what", what),
			  F_ERR(err));
	else
		log_info("API server answers again", F_STR("what", what));
}

static void on_held(void *arg, const json_t *held)
{
	struct program *p = arg;

	agent_set_held(p->agent, held);
}

/* Interfaces come and go with every pod; only those of NICs concern us. */
static void on_host_event(void *arg, const struct watch_event *event)
{
	struct program *p = arg;

	if (event->lost || event->source == WATCH_RDMA || event->address ||
	    (event->name && agent_knows_interface(p->agent, event->name)))
		agent_wake(p->agent);
}

static int serve(struct program *p, struct err *err)
{
	return probes_serve(&p->probes, p->loop, p->options.metrics_addr, p->metrics, p->alive,
			    p->ready, &p->server, err);
}

static void serve_again(void *arg)
{
	struct program *p = arg;

	if (serve(p, NULL) < 0)
		timer_start(p->serving, SERVING_AGAIN_MS);
}

/* A node does not go without its agent because somebody has the port. */
static int start_serving(struct program *p, struct err *err)
{
	p->serving = timer_new(p->loop, serve_again, p);
	if (serve(p, err) == 0)
		return 0;
	if (err->class == ERR_INVALID)
		return -1;
	log_warn("cannot serve metrics and health, trying again", F_ERR(err));
	timer_start(p->serving, SERVING_AGAIN_MS);
	return 0;
}

/* ---- end ---------------------------------------------------------------------------------------------------------------- */

static void on_all_closed(void *arg)
{
	struct program *p = arg;

	loop_stop(p->loop);
}

static void close_server(void *arg)
{
	struct program *p = arg;

	/* A step may end after it was given up. */
	if (p->closing)
		return;
	p->closing = true;
	timer_start(p->giving_up, CLOSING_MS);
	if (p->server)
		http_server_close(take_ptr(p->server), on_all_closed, p);
	else
		loop_stop(p->loop);
}

/* A step that takes longer is left to itself; the next agent looks at what came of it. Then sockets have their time. */
static void on_giving_up(void *arg)
{
	struct program *p = arg;

	if (!p->closing) {
		log_warn("shutting down while a step runs");
		close_server(p);
		return;
	}
	log_warn("ended without closing everything");
	_exit(p->status);
}

static void on_terminate(void *arg)
{
	struct program *p = arg;

	if (p->shutting_down)
		return;
	log_info("shutting down");
	p->shutting_down = true;
	set_ready(p, "running", false, "shutting down");
	timer_stop(p->lock_look);
	timer_stop(p->serving);
	timer_start(p->giving_up, SHUTDOWN_MS);
	agent_stop(p->agent, close_server, p);
}

static void on_hostd_lost(void *arg)
{
	struct program *p = arg;

	log_error("hostd's keeper has ended, and nothing can be done without it: ending too");
	p->status = 1;
	on_terminate(p);
}

static void on_plugind_lost(void *arg)
{
	struct program *p = arg;

	p->status = 1;
	on_terminate(p);
}

static void program_done(struct program *p)
{
	offers_free(p->offers);
	agent_free(p->agent);
	node_state_free(p->node_state);
	host_events_free(p->events);
	if (p->hostd)
		hostd_free(p->hostd);
	recorder_free(p->recorder);
	if (p->client)
		kube_client_free(p->client);
	kube_config_done(&p->config);
	if (p->term)
		signal_watch_free(p->term);
	if (p->interrupt)
		signal_watch_free(p->interrupt);
	if (p->lock_look)
		timer_free(p->lock_look);
	if (p->giving_up)
		timer_free(p->giving_up);
	if (p->serving)
		timer_free(p->serving);
	if (p->tidying)
		timer_free(p->tidying);
	if (p->loop)
		loop_free(p->loop);
	health_free(p->alive);
	health_free(p->ready);
	metrics_free(p->metrics);
	if (p->lock >= 0)
		(void)close(p->lock);
}

/* What was opened for a start that failed is closed by the loop, too. */
static void give_up(struct program *p)
{
	if (!p->loop)
		return;
	p->shutting_down = true;
	close_server(p);
	loop_run(p->loop);
}

/* ---- start -------------------------------------------------------------------------------------------------------------- */

static void start_api(struct program *p)
{
	p->client = kube_client_new(p->loop, &p->config, p->metrics);
	p->recorder =
		recorder_new(p->client, NODE_STATE_MANAGER, p->options.node, false, p->metrics);
	p->node_state = node_state_new(&(struct node_state_config){
		.loop = p->loop,
		.client = p->client,
		.ns = p->options.ns,
		.node = p->options.node,
		.changed = on_node_state,
		.addresses = on_addresses,
		.compose = compose,
		.reported = on_reported,
		.trouble = on_trouble,
		.arg = p,
		.metrics = p->metrics,
	});
	p->offers = offers_new(&(struct offers_config){
		.loop = p->loop,
		.client = p->client,
		.options = &p->options,
		.plugind = take_fd(&p->plugind),
		.changed = on_offers_changed,
		.held = on_held,
		.wanted = offer,
		.told = tell,
		.lost = on_plugind_lost,
		.arg = p,
		.metrics = p->metrics,
	});
}

static int start_host(struct program *p, struct err *err)
{
	p->events = host_events_new(p->loop, on_host_event, p, p->metrics, err);
	if (!p->events)
		return -1;
	p->hostd = hostd_new(p->loop, &(struct hostd_config){
					      .keeper = take_fd(&p->keeper),
					      .lost = on_hostd_lost,
					      .arg = p,
					      .metrics = p->metrics,
				      });
	p->agent = agent_new(&(struct agent_config){
		.loop = p->loop,
		.hostd = p->hostd,
		.looked = on_looked,
		.changed = report,
		.told = tell,
		.arg = p,
		.metrics = p->metrics,
	});
	return 0;
}

static int program_start(struct program *p, struct err *err)
{
	const struct kube_config_source source = {
		.kubeconfig = p->options.kubeconfig,
		.context = p->options.context,
		.envp = (const char *const *)environ,
	};

	if (kube_config_load(&source, &p->config, err) < 0)
		return -1;
	p->metrics = metrics_new();
	metrics_add_process(p->metrics);
	p->executing = metric_gauge(p->metrics, "orbweaver_agent_executing",
				    "1 while this process is the node's one that executes.", "");
	metric_add(metric_counter(p->metrics, "orbweaver_agent_restarts_total",
				  "Agents before this one that ended before their time.", ""),
		   p->past->ends);
	p->alive = health_new();
	p->ready = health_new();
	health_set(p->ready, "host", false, "not looked at yet");
	health_set(p->ready, "nodestate", false, "the API server has not answered yet");
	health_set(p->ready, "resources", false, "not offered yet");
	p->loop = loop_new();
	p->term = signal_watch_new(p->loop, SIGTERM, on_terminate, p);
	p->interrupt = signal_watch_new(p->loop, SIGINT, on_terminate, p);
	p->lock_look = timer_new(p->loop, look_at_lock, p);
	p->giving_up = timer_new(p->loop, on_giving_up, p);
	p->tidying = timer_new(p->loop, on_tidying, p);
	if (start_serving(p, err) < 0 || start_host(p, err) < 0)
		return -1;
	start_api(p);
	look_at_lock(p);
	return 0;
}

/* While there is nothing yet that a fork should not copy, and while there are still privileges to keep. */
static int fork_keeper(struct program *p, struct err *err)
{
	p->keeper = hostd_fork_keeper(p->options.host_root, err);
	if (p->keeper < 0)
		return -1;
	/* After the fork: the lock is this process's alone. */
	p->lock = node_lock_open(p->options.host_root, err);
	if (p->lock < 0)
		return -1;
	return privileges_drop_all(err);
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

static int run(struct program *p)
{
	struct err err = {0};

	if (fork_keeper(p, &err) < 0 || program_start(p, &err) < 0) {
		fprintf(stderr, "orbweaver-agent: %s\n", err.text);
		give_up(p);
		p->status = 1;
	} else {
		log_info("started", F_STR("version", ORBWEAVER_VERSION),
			 F_STR("node", p->options.node), F_STR("namespace", p->options.ns));
		loop_run(p->loop);
		log_info("stopped");
	}
	program_done(p);
	own_close_p(&p->keeper);
	own_close_p(&p->plugind);
	return p->status;
}

/* ---- the processes ------------------------------------------------------------------------------------------------------ */

static int work(int channel, const struct supervisor_past *past, void *arg)
{
	struct program *p = arg;

	p->plugind = channel;
	p->past = past;
	return run(p);
}

static int serve_kubelet(int control, void *arg)
{
	const struct program *p = arg;
	auto_free char *plugins = str_below(p->options.kubelet_dir, "device-plugins");
	auto_free char *devinfo = p->options.devinfo_dir
					  ? str_dup(p->options.devinfo_dir)
					  : str_below(p->options.host_root, DEVINFO_DIR);
	struct err err = {0};

	if (privileges_drop_all(&err) < 0) {
		fprintf(stderr, "orbweaver-agent: %s\n", err.text);
		return 1;
	}
	return plugind_run(control, plugins, devinfo);
}

/* What an agent that ended has said says nothing about the next. */
static void on_down(void *arg)
{
	const struct program *p = arg;

	if (p->options.ready_file)
		(void)unlink(p->options.ready_file);
}

static int supervise(struct program *p)
{
	struct err err = {0};

	if (privileges_limit_hostd(&err) < 0) {
		fprintf(stderr, "orbweaver-agent: %s\n", err.text);
		return 1;
	}
	return supervisor_run(&(struct supervisor_config){
		.serve = serve_kubelet,
		.work = work,
		.down = on_down,
		.arg = p,
	});
}

int main(int argc, char **argv)
{
	struct program p = {.keeper = -1, .lock = -1, .plugind = -1};
	struct err err = {0};

	mem_tune();
	json_init();
	(void)signal(SIGPIPE, SIG_IGN);
	if (agent_options_parse(argc, argv, from_environment, &p.options, &err) < 0) {
		fprintf(stderr, "orbweaver-agent: %s\n", err.text);
		return 2;
	}
	if (p.options.help || p.options.version) {
		fputs(p.options.help ? agent_options_help
				     : "orbweaver-agent " ORBWEAVER_VERSION "\n",
		      stdout);
		return 0;
	}
	if (p.options.is_ready)
		return access(p.options.ready_file, F_OK) == 0 ? 0 : 1;
	return supervise(&p);
}

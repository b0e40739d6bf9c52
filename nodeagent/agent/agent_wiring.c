// SPDX-License-Identifier: Apache-2.0
/* Which part of the agent gets what from which. Nothing is decided here. */
#include <assert.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/agent_process_internal.h"
#include "nodeagent/devices/dra_choice.h"
#include "nodeagent/host_plan/status.h"
#include "nodeagent/model/topology.h"

/* Memory is trimmed this long after a report, unless the next one follows. */
enum { TIDY_MS = 2000 };

/* ---- events ---------------------------------------------------------------------------------- */

static void emit_event(void *arg, bool warning, const char *reason, const char *message)
{
	struct agent_process *p = arg;
	struct event_object object = node_state_event_object(p->api.node_state);

	/* Two agents would say everything twice. */
	if (p->executes)
		recorder_emit(p->api.recorder, &object, warning, reason, message);
}

static void emit_pod(void *arg, const char *pod, const char *reason, const char *message)
{
	struct agent_process *p = arg;

	if (p->executes)
		pod_events_emit(p->api.pod_events, pod, true, reason, message);
}

static void emit_users(void *arg, const char *port, bool warning, const char *reason,
		       const char *message)
{
	const struct agent_process *p = arg;
	struct meter_port used;

	if (!p->executes || !p->offers || !p->api.pods_hear)
		return;
	used = (struct meter_port){port, agent_view(p->agent).observed, offers_resources(p->offers),
				   offers_allocated(p->offers), attachments_list(p->attachments)};
	pod_events_emit_users(p->api.pod_events, &used, warning, reason, message);
}

/* Also without the lock: all agents say the same, and one event stands for all. */
static void emit_of_config_map(void *arg, const struct event_object *config_map, const char *reason,
			       const char *message)
{
	const struct agent_process *p = arg;

	recorder_emit(p->api.recorder, config_map, true, reason, message);
}

/* ---- the report ------------------------------------------------------------------------------ */

static json_t *compose_status(void *arg, const json_t *before, const char *now)
{
	struct agent_process *p = arg;
	struct agent_view view = agent_view(p->agent);
	json_auto_t *resources =
		p->offers ? offers_status(p->offers, json_at(before, "resources")) : NULL;
	json_auto_t *wrong = p->offers ? offers_failures(p->offers) : NULL;
	const json_t *networks = p->found.bad_profile;

	if (!networks && p->attachments)
		networks = attachments_networks(p->attachments);
	/* Nothing can be said about a host that was not looked at, unless it cannot be. */
	if (!p->offers || (!view.observed && json_array_size(view.failures) == 0))
		return NULL;
	return status_compose(&(struct status_input){
		.generation = view.generation,
		.observed = view.observed,
		.plan = view.plan,
		.activity = view.activity,
		.withdrawn = view.withdrawn,
		.failures = view.failures,
		.offers = wrong,
		.resources = resources,
		.attachments = p->attachments ? attachments_list(p->attachments) : NULL,
		.gids = gid_reader_found(p->gids),
		.networks = networks,
		.links = link_health_status(p->counters.links),
		.host_findings = host_checker_findings(p->found.checker),
		.container = p->found.unfit,
		.before = before,
		.now = now,
		.version = ORBWEAVER_VERSION,
		.pod = p->options->pod,
	});
}

static void report_status(void *arg)
{
	struct agent_process *p = arg;

	if (p->api.node_state)
		node_state_report(p->api.node_state);
}

/* A round is over, and mostly nothing comes for a long time. */
static void on_tidying(void *arg)
{
	mem_trim();
}

static void on_reported(void *arg, const char *uid)
{
	struct agent_process *p = arg;

	agent_set_reported(p->agent, uid);
	timer_start(p->tidying, TIDY_MS);
}

/* ---- the host, and what the kubelet is offered ----------------------------------------------- */

static void check_resources(struct agent_process *p)
{
	const char *why_not = p->offers ? offers_why_not_up(p->offers) : "not offered yet";

	readiness_set(p->readiness, "resources", why_not == NULL, why_not);
}

static void offer_pools(void *arg)
{
	struct agent_process *p = arg;
	struct agent_view view = agent_view(p->agent);

	if (p->offers)
		offers_set(p->offers, view.offered, view.observed, view.offered || p->api.heard,
			   view.given);
}

/* Pods' addresses, or what is observed, may be others. */
static void ask_for_gids(struct agent_process *p)
{
	if (p->attachments)
		gid_reader_set(p->gids, attachments_list(p->attachments),
			       json_at(agent_view(p->agent).observed, "rdma"));
}

static void on_attached(void *arg)
{
	ask_for_gids(arg);
	report_status(arg);
}

static void tell_slices(const struct agent_process *p)
{
	if (p->slices)
		resource_slices_set_links(p->slices, link_health_status(p->counters.links),
					  p->api.taints_devices);
}

/* Before the NodeState is known an agent before us may know more of them. */
static void judge_host(struct agent_process *p)
{
	struct agent_view view = agent_view(p->agent);
	json_auto_t *wanted = NULL;

	if (!view.observed || !p->api.heard)
		return;
	wanted = link_history_wanted(view.offered, p->offers ? offers_resources(p->offers) : NULL,
				     view.observed);
	link_health_looked(p->counters.links, &(struct link_health_look){.observed = view.observed,
									 .wanted = wanted,
									 .acted = view.acted});
	host_checker_looked(p->found.checker, view.observed);
	tell_slices(p); /* also of what an agent before us said, which is no change */
}

static void on_links_changed(void *arg)
{
	tell_slices(arg);
	report_status(arg);
}

static void on_looked(void *arg)
{
	struct agent_process *p = arg;
	struct agent_view view = agent_view(p->agent);

	offer_pools(p);
	judge_host(p);
	check_resources(p);
	ask_for_gids(p);
	readiness_set(p->readiness, "host", view.observed != NULL, "not looked at yet");
}

static void on_offers_changed(void *arg)
{
	check_resources(arg);
	report_status(arg);
}

static void withdraw_devices(void *arg, const json_t *devices)
{
	struct agent_process *p = arg;

	offers_withdraw(p->offers, devices);
}

static void on_withdrawn(void *arg)
{
	struct agent_process *p = arg;

	agent_withdrawn(p->agent);
}

static void on_held(void *arg, const json_t *held)
{
	struct agent_process *p = arg;

	agent_set_held(p->agent, held);
}

static void on_given(void *arg, const json_t *given)
{
	struct agent_process *p = arg;

	agent_set_given(p->agent, given);
}

/* ---- devices that claims have ---------------------------------------------------------------- */

static void on_node_is(void *arg, const char *uid, const char *dra)
{
	struct agent_process *p = arg;
	json_auto_t *chosen = dra_choice_read(dra);

	if (!p->slices)
		return;
	resource_slices_set_owner(p->slices, uid);
	offers_choose(p->offers, chosen);
}

/* ---- the profile of the node ----------------------------------------------------------------- */

/* Each once: what a manifest lacks stays so until the next agent. */
static void check_container(struct agent_process *p, enum profile profile)
{
	json_auto_t *before = p->found.unfit;
	const json_t *finding;
	size_t i;

	p->found.unfit = container_findings(p->container, p->options->host_root,
					    p->options->no_kubelet ? NULL : p->options->kubelet_dir,
					    profile);
	json_array_foreach (p->found.unfit, i, finding)
		if (!json_find(before, "message", json_str_at(finding, "message")))
			log_error("the agent's container lacks what it needs",
				  F_STR("reason", json_str_at(finding, "reason")),
				  F_STR("why", json_str_at(finding, "message")));
}

/*
 * A Node's label, not a field of a NodeState: it holds on nodes that no policy selects, and before
 * an operator leads.
 */
static void on_profile(void *arg, const char *label)
{
	struct agent_process *p = arg;
	enum profile profile = p->options->profile;

	json_decref(p->found.bad_profile);
	p->found.bad_profile = NULL;
	if (label && !profile_read(label, &profile)) {
		p->found.bad_profile = profile_refused(p->options->node, label);
		log_error("the profile of the node is not known",
			  F_STR("why", json_str_at(p->found.bad_profile, "message")));
	} else {
		attachments_set_profile(p->attachments, profile);
	}
	check_container(p, profile);
	report_status(p);
}

/* ---- devices that claims are served from ----------------------------------------------------- */

static void on_publish(void *arg, const json_t *pools)
{
	struct agent_process *p = arg;

	assert(p->slices);
	resource_slices_set(p->slices, pools, agent_view(p->agent).observed);
}

static void on_asked(void *arg, const json_t *claim)
{
	struct agent_process *p = arg;

	assert(p->claims);
	resource_claims_read(p->claims, claim);
}

static void on_claim_read(void *arg, const char *uid, const json_t *claim, const struct err *why)
{
	struct agent_process *p = arg;

	offers_answer(p->offers, uid, claim, why);
}

/* ---- events of the host ---------------------------------------------------------------------- */

/* Interfaces come and go with every pod; only those of NICs concern us. */
static void on_host_event(void *arg, const struct watch_event *event)
{
	struct agent_process *p = arg;
	const char *changed = link_health_event(p->counters.links, event);

	if (changed)
		agent_set_link(p->agent, changed, event->is_up, event->carrier_changes);
	if (event->lost || event->source == WATCH_RDMA || event->address ||
	    (event->name && agent_knows_interface(p->agent, event->name)))
		agent_wake(p->agent);
}

/* ---- the API server -------------------------------------------------------------------------- */

static void on_node_state(void *arg, const json_t *object)
{
	struct agent_process *p = arg;
	bool signaled = WIFSIGNALED(p->past->status);
	auto_free char *text = NULL;

	/* This process reports how the one before it ended. */
	if (p->past->ends > 0 && !p->api.reported_restart && p->executes) {
		text = str_printf(
			"the agent was ended by %s %d%s and started again; the kubelet was "
			"%sserved meanwhile",
			signaled ? "signal" : "status",
			signaled ? WTERMSIG(p->past->status) : WEXITSTATUS(p->past->status),
			p->past->hung ? " of the watchdog, because it no longer turned" : "",
			p->past->served ? "" : "not ");
		emit_event(p, true, "AgentRestarted", text);
		p->api.reported_restart = true;
	}
	p->api.heard = true;
	p->api.pods_hear = link_health_is_asked_for(object, LINK_HEALTH_POD_EVENTS);
	p->api.taints_devices = link_health_is_asked_for(object, LINK_HEALTH_DEVICE_TAINTS);
	link_health_heard(p->counters.links, json_at(object, "status", "linkHealth"));
	host_checker_heard(p->found.checker, json_at(object, "status", "hostFindings"));
	agent_set_node_state(p->agent, object);
	offer_pools(p);
	judge_host(p);
	check_resources(p);
	readiness_set(p->readiness, "nodestate", true, NULL);
}

static void on_addresses(void *arg, const json_t *addresses)
{
	struct agent_process *p = arg;

	agent_set_addresses(p->agent, addresses);
}

static void on_trouble(void *arg, const char *what, const struct err *err)
{
	struct agent_process *p = arg;
	auto_free char *check = str_printf("watch-%s", what);

	readiness_set(p->readiness, check, err == NULL, err ? err->text : NULL);
	if (err)
		log_error("cannot reach the API server, will retry", F_STR("what", what),
			  F_ERR(err));
	else
		log_info("API server answers again", F_STR("what", what));
}

/* ---- pods and their networks ----------------------------------------------------------------- */

/* Offers are there before a call can come: both begin in one turn of the loop. */
static void on_look_at_devices(void *arg)
{
	const struct agent_process *p = arg;

	offers_look_at_devices(p->offers);
}

static void on_devices(void *arg, const json_t *named, const json_t *served)
{
	const struct agent_process *p = arg;

	attachments_devices(p->attachments, named, served);
}

/* Before the attachments are known, everything may be there. */
static bool on_holds(void *arg, const char *uid)
{
	const struct agent_process *p = arg;

	return !p->attachments || attachments_hold(p->attachments, uid);
}

/* ---- what devices have counted --------------------------------------------------------------- */

static bool on_scrape(void *arg)
{
	const struct agent_process *p = arg;

	return counter_collector_refresh(p->counters.collector);
}

static const json_t *on_rails(void *arg)
{
	const struct agent_process *p = arg;

	return json_at(agent_view(p->agent).observed, "rails", "list");
}

static void on_count(void *arg)
{
	const struct agent_process *p = arg;

	if (p->counters.collector)
		(void)counter_collector_refresh(p->counters.collector);
}

static void on_port(void *arg, const json_t *result, const struct err *err)
{
	link_health_details(((const struct agent_process *)arg)->counters.links, result);
}

/* No module while a worker hangs: it may be the next. A card needs fewer locks of the kernel. */
static bool on_details(void *arg, const json_t *port)
{
	struct agent_process *p = arg;
	size_t n_stuck = hostd_stuck(p->hostd, NULL);

	if (n_stuck > 1 || (n_stuck > 0 && json_at(port, "netdev")))
		return false;
	hostd_port(p->hostd, port, on_port, p);
	return true;
}

static json_t *on_topology(void *arg)
{
	const struct agent_process *p = arg;

	return topology_compose(agent_view(p->agent).observed);
}

static void on_gathered(void *arg, size_t size_bytes, const json_t *devices)
{
	struct agent_process *p = arg;

	link_health_counted(p->counters.links, devices);
	scrapes_fresh(p->counters.scrapes, size_bytes);
	timer_start(p->tidying, TIDY_MS);
}

static const json_t *devices_allocated(void *arg)
{
	const struct agent_process *p = arg;

	return offers_allocated(p->offers);
}

static const json_t *on_attachments(void *arg)
{
	const struct agent_process *p = arg;

	return attachments_list(p->attachments);
}

static const json_t *on_owners(void *arg, const json_t *pods)
{
	const struct agent_process *p = arg;

	return pod_owners_of(p->counters.owners, pods);
}

/* ---- other processes ------------------------------------------------------------------------- */

static int on_connect(void *arg)
{
	const struct agent_process *p = arg;

	return supervisor_connect(p->fds.connections);
}

static int on_connect_cni(void *arg)
{
	const struct agent_process *p = arg;

	return supervisor_connect_cni(p->fds.connections);
}

static void on_hostd_lost(void *arg)
{
	struct agent_process *p = arg;

	log_error("the supervisor has closed its socket, and nothing can be done without it: "
		  "ending too");
	p->status = 1;
	p->lost(p);
}

static void on_kubeletd_lost(void *arg)
{
	struct agent_process *p = arg;

	p->status = 1;
	p->lost(p);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void start_host(struct agent_process *p)
{
	p->events = host_events_new(p->loop, take_ptr(p->watch), on_host_event, p, p->metrics);
	p->hostd = hostd_new(p->loop, &(struct hostd_config){
					      .orders = fcntl(p->fds.orders, F_DUPFD_CLOEXEC, 0),
					      .parallel = (size_t)p->options->parallel_nics,
					      .lost = on_hostd_lost,
					      .arg = p,
					      .metrics = p->metrics,
				      });
	p->counters.links = link_health_new(&(struct link_health_config){
		.loop = p->loop,
		.node = p->options->node,
		.limits = p->options->metrics.links,
		.changed = on_links_changed,
		.emit = emit_event,
		.turned = emit_users,
		.count = on_count,
		.details = on_details,
		.arg = p,
		.metrics = p->metrics,
	});
	p->gids = gid_reader_new(&(struct gid_reader_config){
		.loop = p->loop, .hostd = p->hostd, .changed = report_status, .arg = p});
	p->found.checker = host_checker_new(p->hostd, report_status, p);
	p->agent = agent_new(&(struct agent_config){
		.loop = p->loop,
		.hostd = p->hostd,
		.parallel = (size_t)p->options->parallel_nics,
		.looked = on_looked,
		.withdraw = withdraw_devices,
		.changed = report_status,
		.emit = emit_event,
		.arg = p,
		.metrics = p->metrics,
	});
}

static void start_claims(struct agent_process *p)
{
	if (!p->options->dra)
		return;
	p->slices = resource_slices_new(&(struct resource_slices_config){
		.loop = p->loop,
		.client = p->api.client,
		.node = p->options->node,
		.emit = emit_event,
		.arg = p,
		.metrics = p->metrics,
	});
	p->claims = resource_claims_new(&(struct resource_claims_config){
		.client = p->api.client,
		.node = p->options->node,
		.read = on_claim_read,
		.arg = p,
	});
}

static void start_api(struct agent_process *p)
{
	p->api.client = kube_client_new(p->loop, &p->api.config, p->metrics);
	p->api.recorder = recorder_new(p->api.client, NODE_STATE_MANAGER, p->options->node, false,
				       p->metrics);
	p->api.pod_events = pod_events_new(p->api.client, p->api.recorder);
	p->api.node_state = node_state_new(&(struct node_state_config){
		.loop = p->loop,
		.client = p->api.client,
		.ns = p->options->ns,
		.node = p->options->node,
		.changed = on_node_state,
		.addresses = on_addresses,
		.node_is = on_node_is,
		.profile = on_profile,
		.compose = compose_status,
		.reported = on_reported,
		.trouble = on_trouble,
		.arg = p,
		.metrics = p->metrics,
	});
	p->addresses = addresses_new(&(struct addresses_config){
		.loop = p->loop,
		.client = p->api.client,
		.node = p->options->node,
		.ns = p->options->ns,
		.lease = p->options->lease,
		.config_ns = p->options->ns,
		.follows_leader = true,
		.holds = on_holds,
		.arg = p,
		.metrics = p->metrics,
	});
	p->attachments = attachments_new(&(struct attachments_config){
		.loop = p->loop,
		.client = p->api.client,
		.addresses = p->addresses,
		.recorder = p->api.recorder,
		.connect = on_connect_cni,
		.changed = on_attached,
		.look_at_devices = on_look_at_devices,
		.topology = on_topology,
		.arg = p,
		.metrics = p->metrics,
	});
	start_claims(p);
	p->offers = offers_new(&(struct offers_config){
		.loop = p->loop,
		.client = p->api.client,
		.node = p->options->node,
		.ns = p->options->ns,
		.host_root = p->fds.host_root,
		.kubelet_dir = p->options->kubelet_dir,
		.no_kubelet = p->options->no_kubelet,
		.options = p->options->offers,
		.dra = p->options->dra,
		.kubeletd = take_fd(&p->fds.kubeletd),
		.connect = on_connect,
		.changed = on_offers_changed,
		.held = on_held,
		.withdrawn = on_withdrawn,
		.wanted = offer_pools,
		.emit = emit_event,
		.emit_pod = emit_pod,
		.given = on_given,
		.publish = on_publish,
		.asked = on_asked,
		.devices = on_devices,
		.wrong = emit_of_config_map,
		.lost = on_kubeletd_lost,
		.arg = p,
		.metrics = p->metrics,
	});
}

void agent_wiring_start(struct agent_process *p)
{
	assert(p->loop && p->metrics && p->readiness && !p->agent);
	p->tidying = timer_new(p->loop, on_tidying, p);
	check_container(p, p->options->profile);
	start_host(p);
	start_api(p);
	if (p->options->metrics.scope == EXPOSITION_OFF)
		return;
	p->counters.owners = pod_owners_new(p->api.client);
	p->counters.collector = counter_collector_new(&(struct counter_collector_config){
		.loop = p->loop,
		.meters = take_fd(&p->fds.meters),
		.node = p->options->node,
		.scope = p->options->metrics.scope,
		.excluded = p->options->metrics.excluded,
		.allocated = devices_allocated,
		.attachments = on_attachments,
		.owners = on_owners,
		.rails = on_rails,
		.gathered = on_gathered,
		.lost = on_hostd_lost,
		.arg = p,
		.metrics = p->metrics,
	});
	scrapes_on(p->counters.scrapes, on_scrape, p);
}

void agent_wiring_done(struct agent_process *p)
{
	counter_collector_free(p->counters.collector);
	pod_owners_free(p->counters.owners);
	attachments_free(p->attachments);
	addresses_free(p->addresses);
	offers_free(p->offers);
	resource_claims_free(p->claims);
	resource_slices_free(p->slices);
	agent_free(p->agent);
	node_state_free(p->api.node_state);
	host_events_free(p->events);
	hostd_free(p->hostd);
	gid_reader_free(p->gids);
	host_checker_free(p->found.checker);
	link_health_free(p->counters.links);
	pod_events_free(p->api.pod_events);
	recorder_free(p->api.recorder);
	kube_client_free(p->api.client);
	timer_free(p->tidying);
	json_decref(p->found.bad_profile);
	json_decref(p->found.unfit);
}

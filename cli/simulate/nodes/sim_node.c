// SPDX-License-Identifier: Apache-2.0
/*
 * One simulated node: the agent's state machine on a host made of files, and its pools, without the
 * processes and sockets around them: requests are answered in this process, and the kubelet has
 * what the pools offer at once.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>

#include "cli/simulate/decide/devices.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/agent/dev_names.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/host_plan/status.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/process/client.h"
#include "nodeagent/worker/answer.h"

/* Of an agent's flags. */
#define RESOURCE_PREFIX "spidernet.io"

enum {
	/* Nothing changes there without us. */
	SCAN_MS = 3600000,
	/* Past the time at which a link is believed to be down. */
	AGAIN_MS = HISTORY_NO_LINK_MS + 500,
};

static void want_write(struct sim_node *node)
{
	nodes_want(node->nodes, KEY_NODE, node->name, 0);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void judge_links(struct sim_node *node)
{
	struct agent_view view = agent_view(node->agent);
	json_auto_t *wanted = NULL;

	if (!view.observed || !informer_is_synced(node->nodes->state_informer))
		return;
	link_health_heard(node->links, json_at(node->server.node_state, "status", "linkHealth"));
	wanted =
		link_history_wanted(view.offered, json_at(node->pools, "resources"), view.observed);
	link_health_looked(node->links, &(struct link_health_look){.observed = view.observed,
								   .wanted = wanted,
								   .acted = view.acted});
}

static void emit_users(void *arg, const char *port, bool warning, const char *reason,
		       const char *message)
{
	const struct sim_node *node = arg;
	json_auto_t *attachments = json_array();
	const struct meter_port used = {port, agent_view(node->agent).observed,
					json_at(node->pools, "resources"), node->allocated,
					attachments};
	const char *pod;
	json_t *list;

	json_each (node->attachments, pod, list)
		json_array_extend(attachments, list);
	if (link_health_is_asked_for(node->server.node_state, LINK_HEALTH_POD_EVENTS))
		pod_events_emit_users(node->nodes->pod_events, &used, warning, reason, message);
}

/* Simulated devices count nothing. */
static void on_count(void *arg)
{
}

/* Cards of a simulated node have no modules. */
static bool on_details(void *arg, const json_t *port)
{
	return false;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void check_given(struct sim_node *node, const json_t *before, const char *boot)
{
	json_t *given = pools_given(before, node->allocated, node->pools, boot);

	pools_check_given(node->pools, given);
	if (json_same(given, before)) {
		json_decref(given);
		return;
	}
	json_replace(&node->given, given);
	agent_set_given(node->agent, given);
}

static void emit(void *arg, bool warning, const char *reason, const char *message)
{
	const struct sim_node *node = arg;

	recorder_emit(
		node->nodes->agent,
		&(struct event_object){
			.resource = &node_state_resource,
			.ns = node->nodes->config->ns,
			.name = node->name,
			.uid = node->server.node_state ? json_uid(node->server.node_state) : NULL,
		},
		warning, reason, message);
}

void sim_node_offer(struct sim_node *node)
{
	const struct pool_sources *sources = node->nodes->sources;
	json_auto_t *before = NULL, *dev_names = NULL, *fresh = NULL;
	struct agent_view view;
	const json_t *problem;
	size_t i;
	auto_close int root = -1;
	json_auto_t *held = NULL;

	if (!node->agent || !pool_sources_are_known(sources))
		return;
	view = agent_view(node->agent);
	if (!view.observed)
		return;
	root = open(host_tree_folder(node->host.tree), O_PATH | O_DIRECTORY | O_CLOEXEC);
	dev_names = dev_names_read(root);
	before = node->pools;
	node->pools = pools_compute(&(struct pools_input){
		.prefix = RESOURCE_PREFIX,
		.spec = view.offered,
		.observed = view.observed,
		.resource_list = pool_sources_get(sources, POOL_SOURCE_LIST),
		.shared = pool_sources_get(sources, POOL_SOURCE_SHARED),
		.dev_files = pool_sources_get(sources, POOL_SOURCE_DEV_FILES),
		.dev_names = dev_names,
		.allocated = node->allocated,
		.before = before,
	});
	check_given(node, node->given, json_str_at(view.observed, "node", "bootId"));
	held = observed_functions(node->allocated);
	json_replace(&node->offered, pools_withdraw(node->pools, node->held_back));
	json_replace(&node->kubelet, devices_with_gpus(node->offered, view.observed));
	agent_set_held(node->agent, held);
	node->server.is_dirty = true;
	want_write(node);
	judge_links(node);
	fresh = pools_new_problems(node->pools, before);
	json_array_foreach (fresh, i, problem)
		emit(node, true, json_str_at(problem, "reason"),
		     json_str_or(json_at(problem, "message"), ""));
}

/* ---- what the agent asks of us --------------------------------------------------------------- */

static void on_looked(void *arg)
{
	sim_node_offer(arg);
}

static void on_changed(void *arg)
{
	struct sim_node *node = arg;

	node->server.is_dirty = true;
	want_write(node);
}

/* The kubelet of this node knows it at once. */
static void withdraw(void *arg, const json_t *devices)
{
	struct sim_node *node = arg;

	json_replace(&node->held_back, json_incref((json_t *)devices));
	sim_node_offer(node);
	if (devices)
		deferred_run(node->withdrawn);
}

static void on_withdrawn(void *arg)
{
	struct sim_node *node = arg;

	agent_withdrawn(node->agent);
}

static json_t *answer(void *arg, const json_t *message)
{
	const struct sim_node *node = arg;

	return answer_request(host_tree_host(node->host.tree), message);
}

static void on_again(void *arg)
{
	struct sim_node *node = arg;

	agent_wake(node->agent);
}

/* ---- from outside ---------------------------------------------------------------------------- */

void sim_node_set_node_state(struct sim_node *node, const json_t *object)
{
	if (!object && (node->server.node_state || !node->server.absent_ms))
		node->server.absent_ms = clock_ms();
	json_replace(&node->server.node_state, json_incref((json_t *)object));
	if (!node->agent)
		return;
	agent_set_node_state(node->agent, object);
	judge_links(node);
	on_changed(node);
}

void sim_node_reported(struct sim_node *node, const char *uid)
{
	agent_set_reported(node->agent, uid);
}

bool sim_node_set_fault(struct sim_node *node, const struct sim_nic *nic, enum tree_fault fault,
			bool is_broken)
{
	assert(nic);
	if (!host_tree_set_fault(node->host.tree, nic->address, fault, is_broken))
		return false;
	agent_wake(node->agent);
	timer_start(node->again, AGAIN_MS);
	return true;
}

json_t *sim_node_status(struct sim_node *node, const json_t *before, const char *now)
{
	struct agent_view view = agent_view(node->agent);
	json_auto_t *offered = NULL, *resources = NULL, *wrong = NULL, *attachments = NULL;
	json_auto_t *distances = NULL;
	json_t *list;
	const char *pod;

	if (!view.observed && json_array_size(view.failures) == 0)
		return NULL;
	offered = devices_status(node->offered);
	resources = pools_status(offered, NULL, node->allocated, json_at(before, "resources"));
	distances = affinity_distances(view.observed, node->allocated);
	affinity_show(resources, distances);
	wrong = pool_sources_failures(node->nodes->sources);
	pools_add_faults(node->pools, wrong);
	attachments = json_array();
	json_each (node->attachments, pod, list)
		json_array_extend(attachments, list);
	return status_compose(&(struct status_input){
		.generation = view.generation,
		.observed = view.observed,
		.plan = view.plan,
		.activity = view.activity,
		.withdrawn = view.withdrawn,
		.failures = view.failures,
		.offers = wrong,
		.resources = resources,
		.attachments = attachments,
		.links = link_health_status(node->links),
		.before = before,
		.now = now,
		.version = ORBWEAVER_VERSION,
	});
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void sim_node_start(struct sim_node *node)
{
	struct loop *loop = node->nodes->loop;
	json_auto_t *addresses = json_pack("[s]", node->ip);

	sim_host_init(&node->host, node->nodes->folder, node->nodes->texts,
		      json_at(node->spec, "nics"), json_at(node->spec, "gpus"), node->ip);
	node->hostd = hostd_new(loop, &(struct hostd_config){.answer = answer, .arg = node});
	node->agent = agent_new(&(struct agent_config){
		.loop = loop,
		.hostd = node->hostd,
		.parallel = 1,
		.scan_ms = SCAN_MS,
		.looked = on_looked,
		.withdraw = withdraw,
		.changed = on_changed,
		.emit = emit,
		.arg = node,
	});
	node->links = link_health_new(&(struct link_health_config){
		.loop = loop,
		.node = node->name,
		.limits = link_limits_default,
		.changed = on_changed,
		.emit = emit,
		.turned = emit_users,
		.count = on_count,
		.details = on_details,
		.arg = node,
	});
	agent_set_addresses(node->agent, addresses);
	agent_set_held(node->agent, node->allocated);
	agent_set_may_execute(node->agent, true);
	if (informer_is_synced(node->nodes->state_informer))
		agent_set_node_state(node->agent, node->server.node_state);
}

struct sim_node *sim_node_new(struct nodes *nodes, const json_t *spec, unsigned int number)
{
	struct sim_node *node = mem_new(struct sim_node);

	assert(nodes && spec);
	node->nodes = nodes;
	node->spec = spec;
	node->name = json_str_at(spec, "name");
	node->number = number;
	(void)snprintf(node->ip, sizeof(node->ip), "192.168.%u.%u", number / 250, number % 250 + 1);
	node->allocated = json_object();
	node->attachments = json_object();
	node->again = timer_new(nodes->loop, on_again, node);
	node->withdrawn = deferred_new(nodes->loop, on_withdrawn, node);
	return node;
}

void sim_node_free(struct sim_node *node)
{
	networks_free(node->networks);
	addresses_free(node->addresses);
	agent_free(node->agent);
	link_health_free(node->links);
	hostd_free(node->hostd);
	timer_free(node->again);
	deferred_free(node->withdrawn);
	if (node->host.tree)
		sim_host_done(&node->host);
	json_decref(node->pools);
	json_decref(node->offered);
	json_decref(node->kubelet);
	json_decref(node->held_back);
	json_decref(node->allocated);
	json_decref(node->given);
	json_decref(node->attachments);
	json_decref(node->server.devices);
	json_decref(node->server.node_state);
	mem_free(node);
}

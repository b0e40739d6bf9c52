// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of this folder, made and ended. What a part has to call in one above it, as when a
 * round begins or a release is over, is a callback that is set here. Requests end first, since
 * their end uses all others.
 */
#include "nodeagent/pod_networks/addresses.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"

struct addresses *addresses_new(const struct addresses_config *config)
{
	struct addresses *addresses = mem_new(struct addresses);

	assert(config->loop && config->client && config->node && config->ns && config->config_ns);
	assert(config->second_look_ms >= 0 && config->look_ms >= 0);
	addresses->config = *config;
	if (!config->second_look_ms)
		addresses->config.second_look_ms = ADDRESSES_SECOND_LOOK_MS;
	if (!config->look_ms)
		addresses->config.look_ms = ADDRESSES_LOOK_MS;
	if (!config->lease)
		addresses->config.lease = OPERATOR_NAME;
	addresses->released = want_released;
	TAILQ_INIT(&addresses->wants);
	TAILQ_INIT(&addresses->releases);
	TAILQ_INIT(&addresses->reports);
	TAILQ_INIT(&addresses->foresights);
	TAILQ_INIT(&addresses->pools.queue);
	addresses->pools.due = timer_new(config->loop, pools_list_now, addresses);
	addresses->is_waiting = want_is_waiting;
	addresses->begin_round = want_begin_round;
	addresses->leader = leader_new(addresses);
	addresses->next_take = timer_new(config->loop, want_take_next, addresses);
	addresses->second_look = timer_new(config->loop, release_look_again, addresses);
	addresses->unseen = json_object();
	addresses->recent = json_object();
	addresses->said = json_object();
	addresses->recent_over = timer_new(config->loop, recent_forget_old, addresses);
	if (config->holds)
		addresses->pods = pod_watch_new(addresses);
	if (config->metrics) {
		addresses->wait =
			metric_histogram(config->metrics, "orbweaver_agent_addresses_wait_seconds",
					 "From a CNI call's wish for addresses to its "
					 "answer.",
					 "", METRIC_SECONDS);
		addresses->outcomes = metric_counter(
			config->metrics, "orbweaver_agent_addresses_total",
			"How CNI calls got their addresses, or why they did not.", "outcome");
	}
	return addresses;
}

void addresses_free(struct addresses *addresses)
{
	if (!addresses)
		return;
	want_free_all(addresses);
	pod_watch_free(addresses->pods);
	release_free_all(addresses);
	report_free_all(addresses);
	leader_free(addresses->leader);
	mem_free(addresses->leader_ns);
	timer_free(addresses->next_take);
	shelf_free(addresses->shelf);
	pools_free_all(addresses);
	timer_free(addresses->pools.due);
	timer_free(addresses->second_look);
	foresight_free_all(addresses);
	recent_free_all(addresses);
	json_decref(addresses->unseen);
	mem_free(addresses);
}

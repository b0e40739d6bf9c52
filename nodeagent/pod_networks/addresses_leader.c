// SPDX-License-Identifier: Apache-2.0
/*
 * Does an operator lead? Its Lease says so, and how long a leader that does not renew it may still
 * write (lib/kube/lease.h). It is read while requests wait, less and less often while it is
 * renewed.
 *
 * Without a leader there are rounds: in each, every request that waits has one attempt
 * (addresses_take.c). Between two rounds is a pause that doubles, with jitter, and the Lease is
 * read before each: what keeps the leader away may be too much load, and there may be a thousand
 * agents.
 *
 *	state		event				next
 *	LEADER_RESTING	a request waits			LEADER_LOOKING
 *	LEADER_LOOKING	the Lease was renewed		LEADER_LOOKING, less often
 *	LEADER_LOOKING	no renewal for a whole term	LEADER_ROUND
 *	LEADER_ROUND	each request had its attempt	LEADER_PAUSE
 *	LEADER_ROUND	the Lease was read for settings	LEADER_ROUND
 *	LEADER_PAUSE	the Lease was not renewed	LEADER_ROUND
 *	LEADER_PAUSE	the Lease was renewed		LEADER_LOOKING
 *	all		no request waits		LEADER_RESTING
 */
#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/lease.h"
#include "lib/kube/status.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/ipam/ipam_settings.h"

enum {
	LEADER_LOOK_MS = 1000,
	LEADER_LOOK_MAX_MS = 30000,
	/* As often is a Lease read that may be given up. */
	LEADER_WATCHFUL_MS = 2000,
	LEADER_PAUSE_MS = 2000,
	LEADER_PAUSE_MAX_MS = 60000,
	/* The settings that the Lease names are read again this often, while nothing waits. */
	LEADER_FOLLOW_MS = 1800000,
};

enum leader_state { LEADER_RESTING, LEADER_LOOKING, LEADER_ROUND, LEADER_PAUSE };

struct leader {
	struct addresses *addresses;
	enum leader_state state;
	struct timer *due, *follow;
	struct kube_call *call;
	char *version;      /* as read last; "" without a Lease or holder, NULL: not read yet */
	int64_t changed_ms; /* when it was read for the first time */
	int64_t term_ms;
	int64_t look_ms, pause_ms; /* the next ones */
	int64_t due_ms;
};

static void look_in(struct leader *leader, int64_t ms)
{
	ms += (int64_t)clock_jitter((uint64_t)ms / 2) - ms / 4;
	leader->due_ms = clock_ms() + ms;
	timer_start(leader->due, ms);
}

static void rest_leader(struct leader *leader)
{
	leader->state = LEADER_RESTING;
	timer_stop(leader->due);
	mem_free(take_ptr(leader->version));
}

/* True when the Lease has not been seen in this version before. */
static bool note_version(struct leader *leader, const json_t *lease)
{
	bool is_held = !str_empty(json_str_at(lease, "spec", "holderIdentity"));
	const char *version =
		is_held ? json_str_or(json_at(lease, "metadata", "resourceVersion"), "") : "";

	leader->term_ms = is_held ? lease_term_ms(lease) : ADDRESSES_NO_LEADER_MS;
	if (str_eq(leader->version, version))
		return false;
	str_replace(&leader->version, str_dup(version));
	leader->changed_ms = clock_ms();
	return true;
}

static void begin_round(struct leader *leader)
{
	assert(leader->state == LEADER_LOOKING || leader->state == LEADER_PAUSE);
	if (leader->state == LEADER_LOOKING) {
		log_warn("no operator leads, agents allocate addresses themselves",
			 F_STR("lease", leader->addresses->config.lease),
			 F_STR("namespace", leader->addresses->config.ns),
			 F_INT("not_renewed_ms", clock_ms() - leader->changed_ms));
		leader->pause_ms = LEADER_PAUSE_MS;
	}
	leader->state = LEADER_ROUND;
	leader->addresses->begin_round(leader->addresses);
}

static void decide_on_lease(struct leader *leader, bool was_renewed)
{
	int64_t silent_ms = clock_ms() - leader->changed_ms;

	if (!was_renewed && silent_ms >= leader->term_ms) {
		begin_round(leader);
		return;
	}
	if (was_renewed) {
		leader->state = LEADER_LOOKING;
		look_in(leader, leader->look_ms);
		leader->look_ms = 2 * leader->look_ms < LEADER_LOOK_MAX_MS ? 2 * leader->look_ms
									   : LEADER_LOOK_MAX_MS;
		return;
	}
	/* A third of the jitter's range above: late rather than early. */
	silent_ms = leader->term_ms - silent_ms;
	look_in(leader, silent_ms < LEADER_WATCHFUL_MS ? silent_ms + silent_ms / 3 + 1
						       : LEADER_WATCHFUL_MS);
}

static void on_lease(void *arg, json_t *lease, const struct err *err)
{
	struct leader *leader = arg;
	bool is_known = !err || kube_err_is(err, "NotFound");
	bool was_renewed = is_known && note_version(leader, lease);

	leader->call = NULL;
	if (!err) {
		const char *ns =
			json_str_at(lease, "metadata", "annotations", IPAM_LEADER_ANNOTATION);

		/* The switches of IPAM are where the leader reads them. */
		if (!str_empty(ns) && !str_eq(ns, addresses_config_ns(leader->addresses))) {
			log_info("reading the ConfigMap " IPAM_CONFIG_MAP " where the leader does",
				 F_STR("namespace", ns));
			str_replace(&leader->addresses->leader_ns, str_dup(ns));
		}
	}
	/* A round ends first: the Lease is read again before the next one. */
	if (leader->state == LEADER_RESTING || leader->state == LEADER_ROUND)
		return;
	if (!leader->addresses->is_waiting(leader->addresses))
		rest_leader(leader);
	else if (is_known)
		decide_on_lease(leader, was_renewed);
	else
		/* Without an API server there is nothing to allocate from. */
		look_in(leader,
			leader->state == LEADER_PAUSE ? leader->pause_ms : LEADER_WATCHFUL_MS);
}

static void read_lease(struct leader *leader)
{
	const struct addresses_config *config = &leader->addresses->config;

	if (!leader->call)
		leader->call = kube_get_within(config->client, &kube_leases, config->ns,
					       config->lease, on_lease, leader);
}

static void on_due(void *arg)
{
	struct leader *leader = arg;

	if (leader->addresses->is_waiting(leader->addresses))
		read_lease(leader);
	else
		rest_leader(leader);
}

static void on_follow(void *arg)
{
	struct leader *leader = arg;

	read_lease(leader);
	timer_start(leader->follow, LEADER_FOLLOW_MS - (int64_t)clock_jitter(LEADER_FOLLOW_MS / 3));
}

void leader_look_after(struct leader *leader)
{
	if (leader->state == LEADER_ROUND)
		return;
	if (leader->state != LEADER_RESTING) {
		/* The others have waited long, this request has not. */
		if (leader->due_ms - clock_ms() > LEADER_WATCHFUL_MS)
			look_in(leader, LEADER_WATCHFUL_MS);
		return;
	}
	leader->state = LEADER_LOOKING;
	leader->look_ms = 2 * LEADER_LOOK_MS;
	mem_free(take_ptr(leader->version));
	look_in(leader, LEADER_LOOK_MS);
}

void leader_round_over(struct leader *leader, bool has_helped)
{
	if (leader->state != LEADER_ROUND)
		return;
	assert(leader->pause_ms >= LEADER_PAUSE_MS && leader->pause_ms <= LEADER_PAUSE_MAX_MS);
	leader->state = LEADER_PAUSE;
	if (has_helped)
		leader->pause_ms = LEADER_PAUSE_MS;
	look_in(leader, leader->pause_ms);
	leader->pause_ms = 2 * leader->pause_ms < LEADER_PAUSE_MAX_MS ? 2 * leader->pause_ms
								      : LEADER_PAUSE_MAX_MS;
}

struct leader *leader_new(struct addresses *addresses)
{
	struct leader *leader = mem_new(struct leader);

	leader->addresses = addresses;
	leader->due = timer_new(addresses->config.loop, on_due, leader);
	leader->follow = timer_new(addresses->config.loop, on_follow, leader);
	if (addresses->config.follows_leader)
		timer_start(leader->follow, 0);
	return leader;
}

void leader_free(struct leader *leader)
{
	if (!leader)
		return;
	kube_call_cancel(leader->call);
	timer_free(leader->due);
	timer_free(leader->follow);
	mem_free(leader->version);
	mem_free(leader);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What the policies that select a node come to on its PFs: who gets which VFs and which fields, who
 * lost what to whom.
 *
 * The one place where policies compete. node_state.c makes the NodeState's spec of a decision,
 * node_report.c what is reported to policies, policy_explain.c the long answer for people.
 *
 * Source: github.com/k8snetworkplumbingwg/sriov-network-operator,
 * controllers/sriovnetworknodepolicy_controller.go. Where we differ: docs/sriov.md.
 */
#pragma once

#include "lib/base/map.h"
#include "lib/base/own.h"
#include "reconcilers/sriov/policy_report.h"
#include "reconcilers/sriov/sriov_policy.h"

/*
 * What one policy gets on the node. The policy is the first member: sriov_policy_order sorts
 * shares.
 */
struct share {
	struct sriov_policy policy;
	bool picks;     /* a PF */
	int64_t wanted; /* VFs, over all PFs */
	int64_t present;
	size_t groups;                       /* that survived */
	const struct share *resource_winner; /* NULL: the resource is not another namespace's */
	size_t failing; /* selectors that fail on the PF that comes closest; 0 when it picks one */
	bool closest_is_plain; /* that one can have no VFs */
	enum policy_standing standing;
	const char *cause; /* the agent's reason, of STANDING_SYNC_FAILED; NULL: it has none */
	struct strbuf why; /* lines "SUBJECT: text"; the first one says why it stands so */
	size_t why_lines, why_lines_max;
};

/* VFs of a PF and whose they are. */
struct group {
	struct share *share;
	struct vf_range range;
	const struct share *winner; /* in a list of what was lost: to whom */
};

struct groups {
	struct group *items;
	size_t len;
};

/* A field of which a PF has one, and who decided it. */
struct pf_number {
	int64_t value; /* 0: not set */
	const struct share *by;
};

struct pf_text {
	const char *value; /* NULL: not set */
	const struct share *by;
};

struct pf {
	const json_t *seen;   /* element of status.interfaces */
	bool held;            /* its element of spec.interfaces has to stay as it is */
	struct groups groups; /* strongest first; those of one policy follow each other */
	struct groups lost;   /* in the order in which they were lost */
	struct pf_number num_vfs;
	struct pf_number mtu;
	struct pf_text link_type;
	struct pf_text eswitch_mode;
	const struct share *external; /* its policy about external management; NULL: none */
	bool has_guids;               /* guid is that of VF 0 */
	uint64_t guid;
	int priority; /* of the policy applied last */
};

struct decision {
	const json_t *state;  /* the NodeState, or NULL */
	const json_t *spec;   /* its spec, or NULL */
	struct share *shares; /* weakest first */
	size_t shares_len;
	struct pf *pfs;
	size_t pfs_len;
	struct map by_address; /* of pfs; borrowed values */
	struct pf **touched;   /* in the order of first touch: the order of spec.interfaces */
	size_t touched_len;
	json_t *refused; /* policies that cannot be applied: { key: name } */
};

void decision_done(struct decision *d);
#define auto_decision auto_call(decision_done)

/*
 * Decide for the node `key` of the world (as node_state.h describes it); `state` is its NodeState
 * or NULL. Of what is reported to each policy the first why_lines_max lines are kept. The decision
 * borrows from the world.
 */
void node_decide(struct decision *d, const json_t *world, const char *key, const json_t *state,
		 size_t why_lines_max);

/* Can an agent of ours run on a node with these labels? */
bool node_runs_agent(const json_t *labels);

/* Has an element of spec.interfaces a group of a policy that is refused now? */
bool decision_holds(const struct decision *d, const json_t *entry);

/* Has the agent said which NICs the node has? It may have none. */
bool decision_has_report(const struct decision *d);

/* Its name, or its address; for messages. */
const char *pf_name(const struct pf *pf);

/*
 * Report to a policy: the worst standing is kept, and of the lines the one that brought it, then
 * the first ones. `subject` is a PF's name or "agent".
 */
void share_note(struct share *share, enum policy_standing standing, const char *subject,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

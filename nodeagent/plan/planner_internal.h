// SPDX-License-Identifier: Apache-2.0
/*
 * What the planner_*.c files share. For them only; planner.h is the contract.
 *
 * A plan is written in one pass: node, then PF after PF. Every step goes through planner_add(),
 * which leaves out what was refused lately and lets nothing pass that hostd would not take.
 *
 *	planner.c            spec, the node, PF after PF
 *	planner_wish.c       what is wanted of a PF
 *	planner_pf.c         one PF: can it be done, VFs and eSwitch, MTU, link, rules, modules
 *	planner_firmware.c   what only the card's firmware can change: said, or set where asked for
 *	planner_vf.c         its VFs: addresses, then drivers and MTU
 *	planner_address.c    MAC addresses and GUIDs of VFs
 *	planner_rdma.c       mode of the RDMA subsystem
 *	planner_boots.c      reboots: recorded, asked for, never twice in vain
 *	planner_restore.c    putting back
 *	found.c              how PFs were found
 *	writing.c            steps, blocked entries and problems, written down
 */
#ifndef ORBWEAVER_NODEAGENT_PLAN_PLANNER_INTERNAL_H
#define ORBWEAVER_NODEAGENT_PLAN_PLANNER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/model/step.h"
#include "nodeagent/model/text.h"
#include "nodeagent/plan/planner.h"

/* Longest part of a text from elsewhere in a message of ours. */
#define QUOTE "%.200s"

struct planning {
	const struct planner_input *in;
	json_t *steps;
	json_t *blocked;
	json_t *problems;
	json_t *reboot;    /* NULL: none */
	json_t *next_boot; /* what it changes although nobody waits for it; NULL: nothing */
	/* What a boot would bring, a cause of the steps (step.h); NULL: nothing is missing. */
	const char *boot_cause;
	json_t *in_vain; /* NULL: no reboot was in vain */
	json_t *found;   /* as in the input, and what this plan adds to it or drops */
	int64_t wanted;  /* VFs */
	int64_t present;
};

/* ---- looking things up ----------------------------------------------------------------------- */

/* The PF in observed.interfaces, or NULL. Borrowed. */
static inline const json_t *observed_pf(const struct planning *p, const char *address)
{
	return json_find(json_at(p->in->observed, "interfaces"), "pciAddress", address);
}

static inline bool has_module(const struct planning *p, const char *module)
{
	return json_list_has(json_at(p->in->observed, "node", "modules"), module);
}

/* The RDMA device of the function, not one that software has put on its interface; or NULL. */
static inline const json_t *rdma_hardware(const struct planning *p, const char *address)
{
	return json_find(json_at(p->in->observed, "rdma", "devices"), "pciAddress", address);
}

/* ---- writing.c ------------------------------------------------------------------------------- */

/*
 * Append a step; takes it. pf and vf may be NULL. False when it is left out: refused lately, or
 * (then a problem says so) no step at all, which only an observed document can cause that no host
 * of ours has made.
 */
bool planner_add(struct planning *p, const char *pf, const char *vf, json_t *step, const char *fmt,
		 ...) __attribute__((format(printf, 5, 6)));
/* The same for a step about several VFs of the PF: their addresses, a list, borrowed. */
bool planner_add_vfs(struct planning *p, const char *pf, const json_t *vfs, json_t *step,
		     const char *why);
/* pf may be NULL. reason must be a literal. */
void steps_problem(struct planning *p, const char *pf, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* takes_all: what is blocked takes all VFs of the PF away, not this one alone. */
void steps_blocked(struct planning *p, const char *pf, const char *vf, const char *holder,
		   bool takes_all, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* The PF itself is in use: interfaces of pods lie on it. */
void steps_pf_blocked(struct planning *p, const char *pf, const char *holder, const char *why);
/* The PF is a port of a bond whose RDMA device would go. */
void steps_lag_blocked(struct planning *p, const char *pf, const char *bond, const char *device);
/* Was this step refused lately? */
bool steps_is_refused(const struct planning *p, const json_t *step);

struct pf_now;
/*
 * When the PF is protected, take back the steps and the blocked entries behind these sizes, if
 * there are any, and say so in a problem.
 */
void steps_respect_protection(struct planning *p, const struct pf_now *now, size_t steps,
			      size_t blocked);

/* ---- planner_wish.c: what is wanted of a PF -------------------------------------------------- */

/*
 * A PF cannot have more ranges than VFs, and no NIC has more VFs that are worth a range of their
 * own.
 */
#define GROUPS_MAX 256

struct vf_group {
	int first, last; /* VFs, both included */
	int mtu;         /* 0: whatever it is */
	bool is_vfio;
	bool is_rdma;
	uint64_t guid_start; /* GUID of VF `first`; 0: none is asked for */
	bool is_usable;      /* false: these VFs are left alone, a problem has said why */
	const json_t *spec;  /* of the group */
};

struct pf_wish {
	const char *address;
	const json_t *entry; /* of observed.interfaces; NULL: there is no such PF */
	size_t index;        /* in spec.interfaces */
	int num_vfs;
	int mtu;             /* least MTU of the PF, its groups' included; 0: whatever it is */
	const char *link;    /* "ETH", "IB"; NULL: whatever it is */
	const char *eswitch; /* "legacy", "switchdev"; NULL: whatever it is */
	bool is_external;
	bool allows_lag_loss; /* VFs may end the RoCE LAG that the PF is a port of */
	bool allows_primary;  /* VFs may be made although the node needs the PF */
	bool allows_firmware; /* what firmware has to have for them may be set */
	struct vf_group *groups;
	size_t n_groups;
};

/* Read an entry of spec.interfaces. False when it cannot be read; a problem says why. */
bool pf_wish_read(struct planning *p, const json_t *entry, struct pf_wish *ret);
void pf_wish_done(struct pf_wish *wish);
#define auto_wish auto_call(pf_wish_done)
/* The first group with that VF, or NULL. */
const struct vf_group *pf_wish_group(const struct pf_wish *wish, int vf);

/* ---- planner_pf.c ---------------------------------------------------------------------------- */

/* A PF as it is: an entry of observed.interfaces, and what its host member says. */
struct pf_now {
	const char *address;
	const json_t *entry;
	const char *protected; /* NULL: it is not */
	bool may_have_vfs;     /* although it is protected: a policy says so in so many words */
	const char *carries;   /* an interface of a pod that lies on it; NULL: none */
	const char *eswitch;   /* NULL: not known */
	const char *name;      /* of its interface */
	int num_vfs;
	int mtu; /* 0: not known */
	bool is_ib;
	/* A processor on the card owns the switch, and gives VFs their addresses. */
	bool is_switch_elsewhere;
	bool is_down;
	bool is_autoprobe_off;
};

void pf_now_read(const json_t *entry, struct pf_now *ret);

/* Of a card with several: function 0 is port 1. */
int pf_port(const struct pf_now *now);

/* planner_firmware.c: have the firmware set for the VFs; false: it may not be, or was refused. */
bool firmware_plan(struct planning *p, const struct pf_wish *wish, const struct pf_now *now);
/* The command that makes it possible, as the rest of a sentence; new. */
char *firmware_enable_sriov(const struct pf_now *now, int vfs);
char *firmware_raise_vfs(const struct pf_now *now, int vfs);
char *firmware_set_link_type(const struct pf_now *now, const char *type);

void plan_pf(struct planning *p, const struct pf_wish *wish, const struct pf_now *now);
/* Modules that the PFs of spec need, before any of them. */
void plan_modules(struct planning *p, const struct pf_wish *wishes, size_t n);

/* One look that failed to read the mode must not cost anybody a VF. */
bool plan_can_set_eswitch(const struct pf_now *now);

/*
 * Take the PF through no VFs to so many, in that eSwitch mode (NULL: as it is; a mode that is not
 * known or that nothing can set stays, too). Nothing is planned, and the holders are named, when
 * somebody holds a VF. True when the VFs are as wanted already or cannot be touched: look at each
 * of them. False while a mode is wanted and was refused: VFs get no drivers behind another one.
 */
bool plan_vf_count(struct planning *p, const struct pf_now *now, int count, const char *eswitch);

/* ---- planner_vf.c ---------------------------------------------------------------------------- */

/*
 * Who holds a VF, for people; NULL when nobody does. Anything but a clear "not in use" counts as
 * held, and so does carrying the node's own traffic.
 */
const char *vf_holder(const struct planning *p, const json_t *vf);
/*
 * Drivers, addresses and MTU of the VFs that are there. `may_mtu`: the PF can carry the MTU of its
 * VFs.
 */
void plan_vfs(struct planning *p, const struct pf_wish *wish, const struct pf_now *now,
	      bool may_mtu);
/*
 * From a userspace driver back to the kernel's, or to `driver`. False when a step of it is refused.
 */
bool plan_rebind(struct planning *p, const char *pf, const json_t *vf, const char *driver,
		 const char *why);

/* ---- planner_address.c: addresses of VFs ----------------------------------------------------- */

/*
 * The MAC address and the GUID of a VF: always the same for a VF of one card, never zero, locally
 * administered. From the permanent address of the PF; false when that is not known.
 *
 * MAC, 46 bits: 10 of a hash of the vendor's part of the PF's address, its other 24 bits, 12 of the
 * number of the VF. No two VFs of cards of one vendor block share one.
 *
 * GUID: 02, the MAC address behind the PF's GUID, the number of the VF, as the operator makes them
 * for pools (docs/api.md); where that is not to be had, 02 and a hash.
 */
bool vf_mac_derive(const json_t *pf, int number, char ret[TEXT_MAC_SIZE]);
bool vf_guid_derive(const struct planning *p, const json_t *pf, int number,
		    char ret[TEXT_GUID_SIZE]);
/* A unicast MAC address that is not zero. */
bool vf_mac_is_valid(const char *mac);
/*
 * Neither zero, nor all ones, nor what mlx5 makes of a zero MAC address (mlx5, eswitch.c,
 * node_guid_gen_from_mac()).
 */
bool vf_guid_is_valid(const char *guid);

/* ---- found.c --------------------------------------------------------------------------------- */

/* Keep how the PF is now, before it is touched for the first time. */
void found_remember(struct planning *p, const struct pf_now *now);
/* What was kept of this PF; NULL when nothing was, or it was another card. */
const json_t *found_pf(const struct planning *p, const struct pf_now *now);

/* ---- planner_boots.c: reboots ---------------------------------------------------------------- */

/* The record of a reboot for p->boot_cause that did not help, or NULL. */
const json_t *boots_in_vain(const struct planning *p);
/* Is a reboot for p->boot_cause under way, or wanted once more by somebody? */
bool boots_again(const struct planning *p);
/* Say so of this record: what is still the case, and what to do. */
void boots_say_in_vain(struct planning *p, const json_t *boot, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* After all else: close records, and go on with the reboot that p->reboot asks for. */
void plan_boots(struct planning *p);

/* ---- planner_rdma.c, planner_restore.c ------------------------------------------------------- */

/* mode: NULL when nobody wants one; then it goes back to how it was. */
void plan_rdma_mode(struct planning *p, const char *mode);

/* All PFs that we have touched and that nobody wants any more: back to how they were. */
void plan_restore(struct planning *p, const struct pf_wish *wishes, size_t n);

#endif

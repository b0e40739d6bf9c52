// SPDX-License-Identifier: Apache-2.0
/*
 * What the planner_*.c files share. For them only; planner.h is the contract.
 *
 * A `struct pf` stands for each PF that spec names, and for each that we have touched before. It is
 * built once, with all that is known: what is wanted, what was observed, how the PF was found, and
 * its VFs with who holds them. A plan is then written in one pass over them:
 *
 *	planner_read.c       spec, observed document and found, to PFs
 *	planner_node.c       the node: mode of the RDMA subsystem, modules
 *	planner.c            PF after PF, by address
 *	  planner_check.c      can what is wanted be done at all; firmware
 *	  planner_pf.c         rules, MTU, link, eSwitch and number of VFs
 *	  planner_vf.c         addresses, drivers and MTU of the VFs
 *	  planner_restore.c    or, of a PF that spec does not name any more: back to how it was
 *	planner_node.c       reboots: recorded, asked for, never twice in vain
 *
 * Steps, blocked entries and problems go through planner_write.c, which leaves out what was refused
 * lately and lets nothing pass that hostd would not take.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/model/step.h"
#include "nodeagent/model/text.h"

/* Longest part of a text from elsewhere in a message of ours. */
#define QUOTE "%.200s"

/* ---- PFs and their VFs ----------------------------------------------------------------------- */

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

/* What an entry of spec.interfaces wants; of a PF that is put back all is zero. */
struct pf_wanted {
	int num_vfs;
	int mtu;             /* least MTU of the PF, its groups' included; 0: whatever it is */
	const char *link;    /* "ETH", "IB"; NULL: whatever it is */
	const char *eswitch; /* "legacy", "switchdev"; NULL: whatever it is */
	bool is_external;
	bool allows_lag_loss; /* VFs may end the RoCE LAG that the PF is a port of */
	bool allows_firmware; /* what firmware has to have for them may be set */
	struct vf_group *groups;
	size_t n_groups;
};

/* What an entry of observed.interfaces says, its host member included. */
struct pf_now {
	const json_t *entry;   /* NULL: there is no such PF, and all of this is zero */
	const char *name;      /* of its interface */
	const char *driver;    /* NULL: none */
	const char *link;      /* "ETH", "IB"; NULL: neither */
	const char *eswitch;   /* NULL: not known */
	const char *protected; /* NULL: it is not */
	const char *carries;   /* an interface of a pod that lies on it; NULL: none */
	const char *bond;      /* that it is a port of; NULL: none */
	int num_vfs;
	int mtu;  /* 0: not known */
	int port; /* of a card with several: function 0 is port 1 */
	bool is_ib;
	/* A processor on the card owns the switch, and gives VFs their addresses. */
	bool is_switch_elsewhere;
	/* One look that failed to read the mode must not cost a pod its VF. */
	bool can_set_eswitch;
	bool has_devlink;
	bool is_down;
	bool is_autoprobe_off;
};

enum vf_driver {
	VF_DRIVER_KEEP,   /* whatever is bound */
	VF_DRIVER_KERNEL, /* the one that the kernel chooses */
	VF_DRIVER_VFIO,
};

struct vf {
	const json_t *entry; /* of the PF's Vfs */
	int number;
	const char *address;         /* NULL: not known */
	const char *driver;          /* that is bound; NULL: none */
	const char *driver_override; /* NULL: none */
	const char *mac, *guid;      /* NULL: not known */
	/*
	 * What would notice if the VF went, for people; NULL: nothing. Anything but a clear "not in
	 * use" counts as held, and so does carrying the node's own traffic.
	 */
	const char *holder;
	/*
	 * Without driver and not in use: no interface, no RDMA device and no vfio file, so nothing
	 * of a pod can be in it. After a boot the kubelet still names the pod that had it, and that
	 * pod waits for the driver.
	 */
	bool is_empty;
	struct vf_group *group; /* of spec; NULL: none */

	/* What planner_vf.c makes of it. */
	enum vf_driver wanted;
	const char *rebind; /* why its driver has to start (again); NULL: it need not */
	bool is_guid_bad;   /* RDMA cannot work with its GUID, or spec asks for another */
	bool is_stopped;    /* what has to come first was refused */
};

struct pf {
	const char *address;
	bool is_wanted; /* spec names it; false: it is put back */
	size_t index;   /* in spec.interfaces */
	struct pf_wanted wanted;
	struct pf_now now;
	/* How it was before we touched it; NULL when nothing was kept, or it was another card. */
	const json_t *found;
	bool may_have_vfs; /* although it is protected: a policy says so in so many words */
	const json_t *nic; /* its entry of spec.nicSettings; NULL: none */
	const json_t
		*nic_found;     /* settings as they were before ours; NULL: none, or another card */
	bool is_nic_unclear;    /* which entry is meant is not known: settings stay as they are */
	bool has_settings_only; /* neither spec.interfaces nor found has a word about its VFs */
	struct vf *vfs;
	size_t n_vfs;
};

/* ---- the plan -------------------------------------------------------------------------------- */

struct planning {
	const struct planner_input *in;
	/* By address, each once: first those that spec names, then those that are put back. */
	struct pf *pfs;
	size_t n_pfs;
	json_t *steps;
	json_t *blocked;
	json_t *problems;
	json_t *reboot;    /* NULL: none */
	json_t *next_boot; /* what it changes although no policy waits for it; NULL: nothing */
	/* What a boot would bring, a cause of the steps (step.h); NULL: nothing is missing. */
	const char *boot_cause;
	json_t *in_vain; /* NULL: no reboot was in vain */
	json_t *found;   /* as in the input, and what this plan adds to it or drops */
};

static inline bool has_module(const struct planning *p, const char *module)
{
	return json_list_has(json_at(p->in->observed, "node", "modules"), module);
}

/* The RDMA device of the function, not one that software has put on its interface; or NULL. */
static inline const json_t *rdma_hardware(const struct planning *p, const char *address)
{
	return json_find(json_at(p->in->observed, "rdma", "devices"), "pciAddress", address);
}

/* ---- planner_read.c -------------------------------------------------------------------------- */

/*
 * Build p->pfs. What cannot be read of an entry of spec.interfaces is a problem, and that PF is
 * neither changed nor put back; the same holds for spec.nicSettings, apart.
 */
void planner_read(struct planning *p, const json_t *interfaces);

/* ---- planner_node.c -------------------------------------------------------------------------- */

/* Mode of the RDMA subsystem (NULL: none is wanted), and the modules that PFs need. */
void plan_node(struct planning *p, const char *rdma_mode);
/* After all else: close records of reboots, and go on with the one that p->reboot asks for. */
void plan_boots(struct planning *p);

/* ---- planner_check.c ------------------------------------------------------------------------- */

/*
 * Whether the PF can become what is wanted; false: nothing else is done to it, and a problem or a
 * step for its firmware says why. Groups of VFs that cannot be had are made unusable.
 */
bool check_pf(struct planning *p, struct pf *pf);

/* ---- planner_pf.c ---------------------------------------------------------------------------- */

void plan_pf(struct planning *p, struct pf *pf);

/*
 * Take the PF through no VFs to so many, in that eSwitch mode (NULL: as it is; a mode that is not
 * known or that nothing can set stays, too). Nothing is planned, and the holders are named, when
 * one of the VFs is held. True when the VFs are as wanted already or cannot be touched: look at
 * each of them. False while a mode is wanted and was refused: VFs get no drivers behind another
 * one.
 */
bool plan_vf_count(struct planning *p, const struct pf *pf, int count, const char *eswitch);

/* ---- planner_vf.c ---------------------------------------------------------------------------- */

/*
 * Drivers, addresses and MTU of the VFs that are there. `may_mtu`: the PF can carry the MTU of its
 * VFs.
 */
void plan_vfs(struct planning *p, struct pf *pf, bool may_mtu);
/*
 * From a userspace driver back to the kernel's, or to `driver`. False when a step of it is refused.
 */
bool plan_rebind(struct planning *p, const struct pf *pf, const struct vf *vf, const char *driver,
		 const char *why);

/* ---- planner_restore.c ----------------------------------------------------------------------- */

/* Put back how the PF was found. True when nothing is left that differs, planned or not. */
bool plan_restore(struct planning *p, const struct pf *pf);

/* ---- planner_write.c ------------------------------------------------------------------------- */

/*
 * Append a step; takes it. pf is NULL for a step of the node, vf for one that is not about one VF.
 * Returns the entry, borrowed; NULL when it is left out: refused lately, or (then a problem says
 * so) no step at all, which only an observed document can cause that no host of ours has made.
 */
json_t *planner_add(struct planning *p, const struct pf *pf, const struct vf *vf, json_t *step,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Was this step refused lately? */
bool planner_is_refused(const struct planning *p, const json_t *step);
/* pf may be NULL. reason must be a literal. */
void planner_problem(struct planning *p, const struct pf *pf, const char *reason, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));
/*
 * What is wanted waits for the holder of that VF; vf NULL: for what lies on the PF itself.
 * takes: what it does to all VFs of the PF, "removes …"; NULL: it is about this one alone.
 */
void planner_block(struct planning *p, const struct pf *pf, const struct vf *vf, const char *takes,
		   const char *why);

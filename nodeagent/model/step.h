// SPDX-License-Identifier: Apache-2.0
/*
 * Steps: the only things that are ever done to a host, each small, named, checked, and read back.
 *
 * A step is a JSON object, {"step": "set-num-vfs", "pf": "0000:3b:00.0", "count": 4}. The table
 * below says for each which fields it has, whom it can disturb and how long it may take; what each
 * changes and how that is read back is in docs/node-agent.md. step_* are pure and may be used by
 * the planner; host_execute (execute.h) does.
 *
 * All steps are level-triggered: one that finds its state already there changes nothing and says
 * so. None touches the driver of a PF: a step that would is ERR_BUG.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/*
 * Sorted behind all files that distributions and other tools write: modprobe takes the last answer.
 */
#define HOST_NEXT_BOOT_FILE "etc/modprobe.d/zz-orbweaver-rdma.conf"

/*
 * Reboots of this host that were asked for. Written by hostd alone: the record of what was done is
 * not in the hands of who asks for it.
 */
#define HOST_BOOTS_FILE "var/lib/orbweaver/boots.json"

enum {
	/* Reboots within a day that we ask for, whatever the cause. */
	HOST_BOOTS_A_DAY = 3,
	/* Ask once more for a reboot that has not begun this long after it was asked for. */
	HOST_BOOT_PATIENCE_S = 600,
};

/* What an Ethernet or IPoIB interface can have at all (IPv4 needs 68, RFC 791). */
enum { STEP_MTU_MIN = 68, STEP_MTU_MAX = 65535 };

/* The most that a step can do to others. */
enum step_impact {
	STEP_IMPACT_NONE,   /* nobody notices */
	STEP_IMPACT_VF,     /* whoever holds this VF */
	STEP_IMPACT_PF,     /* whoever holds any VF of this PF, or talks through it */
	STEP_IMPACT_REBOOT, /* nobody now; takes effect when the node boots */
};

enum step_field_type {
	STEP_FIELD_NONE,    /* ends the list */
	STEP_FIELD_ADDRESS, /* PCI address in full, lower case: "0000:3b:00.0" */
	STEP_FIELD_COUNT,   /* integer within min and max */
	STEP_FIELD_BOOL,    /* */
	STEP_FIELD_MAC,     /* "02:00:00:00:00:01"; unicast, not zero */
	STEP_FIELD_GUID,    /* eight octets, "02:00:00:00:00:00:00:01"; neither zero nor all ones */
	STEP_FIELD_CHOICE,  /* one of choices */
	STEP_FIELD_NAME,    /* of an interface: 1 to 63 of A-Z a-z 0-9 . _ - */
	STEP_FIELD_OF_VFS,  /* {"0": …}: of VFs of a PF, by number, one at least, `each` */
	STEP_FIELD_SETTING, /* a value of the step's "setting" (nic_settings.h) */
};

struct step_field {
	const char *name;
	enum step_field_type type;
	bool optional;
	int min, max;               /* STEP_FIELD_COUNT */
	const char *const *choices; /* STEP_FIELD_CHOICE, ends with NULL */
	enum step_field_type each;  /* STEP_FIELD_OF_VFS */
};

struct step_kind {
	const char *name;
	enum step_impact impact;
	int deadline_ms;        /* for the step as such */
	int deadline_per_vf_ms; /* and for each of its "count" VFs, or of "vfs" */
	struct step_field fields[5];
};

const struct step_kind *step_kinds(size_t *ret_n);

/* "none", "vf", "pf", "reboot", by enum step_impact. */
extern const char *const step_impact_names[];

/*
 * Is this a step as the table wants it? Unknown members are refused too. Returns its kind, or NULL
 * with err ERR_BUG "BadStep": steps come from our planner, a wrong one is our fault, and nothing is
 * touched.
 *
 * Asked twice: by the planner, so that a slip of its own is a problem of the plan, and by
 * host_execute(), the only one that has the rights and trusts nobody before it: that one is the
 * wall.
 */
const struct step_kind *step_check(const json_t *step, struct err *err);

/*
 * How long a checked step may take. After that it counts as hung: the kernel may still finish it
 * later.
 */
int step_deadline_ms(const json_t *step);

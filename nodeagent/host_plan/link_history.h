// SPDX-License-Identifier: Apache-2.0
/*
 * How the links of NIC ports have been, and a verdict about each: from notifications of the kernel,
 * looks at the host and counters, over time. Pure; docs/health.md has the rules for users.
 *
 * The history is an object, {PCI address: port}; of a port:
 *
 *	name, type ("ETH", "IB"), adminDown, speed, fastest (Mbit/s), up (absent: not known)
 *	carrierChanges  as the kernel counts them; absent: not known, or InfiniBand
 *	ifindex         of its interface; absent: not known
 *	goneMs, noDriver  it is not there since then; as far as is seen, its driver is not, either
 *	changes[]       {"ms", "up", "times" (absent: 1), "own"}, oldest first, LINK_CHANGES_MAX
 *	flaps           how often the link was lost, without our own actions
 *	quietMs         until then nothing counts: the interface is new
 *	errors          {"last": {counter: value}, "countedMs": when, "total", "samples": [{"ms",
 *			"total"}]}
 *	downs           link_downed of an InfiniBand port, as read last
 *	lossSeen        losses that looks saw since; lossCounted: `downs` has one that none saw yet
 *	ownMs           when a look last found it ours, or quiet: counters until then do not count
 *	details         of port_details_read(), as read last
 *	readings        {what it is read by: {"nextMs", "waitMs"}}: when again (agent/link_health.c)
 *	verdict         of link_verdict(); absent: not judged
 *
 * Times are milliseconds since boot, which no clock that is set changes (clock_ms()); the
 * NodeState, in which a history outlives its process, has times of the day. `own` arguments are
 * {PCI address: true} of ports that the agent acts on, or did lately.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

enum {
	/* How long a port whose card or driver is gone keeps its verdict. */
	LINK_LOST_KEEP_MS = 86400000,
	/* Of one port that are remembered; a loss and its end are two. */
	LINK_CHANGES_MAX = 16,
	/* Ports that are reported; what a NodeState has room for. */
	LINK_PORTS_MAX = 32,
	/* Sums of errors are kept so far apart, for an hour. */
	LINK_SAMPLE_MS = 300000,
	LINK_ERRORS_MS = 3600000,
	/* An interface that is new, after a boot or when its driver started, takes that long. */
	LINK_QUIET_MS = 30000,
};

/* ---- what is seen ---------------------------------------------------------------------------- */

struct link_event {
	const char *address; /* PCI address of the port */
	bool is_up;
	int64_t carrier_changes; /* -1: not said */
	int64_t ifindex;         /* 0: not said */
};

/* A notification. True when the port is one of the history and its link has changed. */
bool link_history_event(json_t *links, const struct link_event *event, const json_t *own,
			int64_t now_ms);

/*
 * A look: observed as of history_merge(). A port with a verdict that is gone is kept for a day, or,
 * when its interface alone is, as long as history_merge() keeps those that are wanted.
 */
void link_history_look(json_t *links, const json_t *observed, const json_t *own, int64_t now_ms);

/* Counters: devices as of exposition_input.devices. What counts down was reset, and is no error. */
void link_history_counted(json_t *links, const json_t *devices, const json_t *own, int64_t now_ms);

/* ---- what follows ---------------------------------------------------------------------------- */

struct link_limits {
	int64_t flaps; /* losses within window_ms that make a link one that flaps */
	int64_t window_ms;
	int64_t errors_ib;  /* errors an hour for each 100 Gbit/s, InfiniBand */
	int64_t errors_eth; /* Ethernet */
	int64_t recover_ms; /* a link that was bad is well after so long without a cause */
	int64_t lanes;      /* so many lost lanes of PCI Express are PcieLanesLost; 0: none are */
};

extern const struct link_limits link_limits_default;

/*
 * "flaps=3,window=600,errors-ib=120,errors-eth=36,recover=600,lanes=1", times in seconds, each of
 * them optional. ERR_INVALID "BadFlag"; *ret stays as it is then.
 */
int link_limits_read(const char *text, struct link_limits *ret, struct err *err);

/*
 * {"verdict": "healthy", "degraded" or "failed", "reason", "message", "sinceMs", "badMs"}, new.
 * reason: LinkHealthy, LinkDown, LinkFlapping, LinkErrors, LinkSlow, PcieLanesLost; the message of
 * a bad one names the module. before: what it was, or NULL; it stays while the port is quiet or
 * `is_own`, so that NULL may return NULL. *ret_again_ms: when time alone may change it, or
 * INT64_MAX.
 */
json_t *link_verdict(const json_t *port, const json_t *before, const struct link_limits *limits,
		     bool is_own, int64_t now_ms, int64_t *ret_again_ms);

/*
 * Ports that matter: those that spec.interfaces names, and those of whose functions the kubelet is
 * offered something (`resources` of pools_compute(), NULL: none). {PCI address: true}, new; false:
 * the port is offered as a whole only, and may be set down until a pod has it.
 */
json_t *link_history_wanted(const json_t *spec, const json_t *resources, const json_t *observed);

/*
 * Judge those of `wanted` (link_history_wanted()); others lose their verdict. Returns when to judge
 * again without an event, or INT64_MAX.
 */
int64_t link_history_judge(json_t *links, const json_t *wanted, const struct link_limits *limits,
			   const json_t *own, int64_t now_ms);

/* ---- the NodeState --------------------------------------------------------------------------- */

/*
 * status.linkHealth, new: ports with a verdict, by PCI address. NULL: none has one. boot_ms:
 * milliseconds since the epoch at boot, as the clock is set now.
 */
json_t *link_history_status(const json_t *links, const char *boot, int64_t boot_ms);

/*
 * The history that link_history_status() was made of, new. Carrier changes and verdicts are those
 * of their boot, and left out in another one. Members of a wrong kind are passed over.
 */
json_t *link_history_restore(const json_t *status, const char *boot, int64_t boot_ms,
			     int64_t now_ms);

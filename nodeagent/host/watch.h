// SPDX-License-Identifier: Apache-2.0
/*
 * When to look again: notification sockets of the kernel, and what their messages are about.
 *
 * Events say where to look, never what to believe (the state may have changed again since). The
 * loop belongs to the caller: it polls the descriptors for reading and calls watch_read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

struct watch;

enum watch_source {
	WATCH_UEVENT, /* kobject events of pci, net, infiniband devices */
	WATCH_LINK,   /* rtnetlink: interfaces come, go, change */
	WATCH_RDMA,   /* NETLINK_RDMA: devices come and go (Linux 6.12) */
	WATCH_SOURCES,
};

struct watch_event {
	enum watch_source source;
	bool lost;           /* messages were dropped: look at everything; nothing else is set */
	const char *action;  /* "add", "remove", "change", "move", "bind", "unbind" */
	const char *address; /* PCI address of the function concerned; NULL when it does not say */
	const char *name;    /* interface or RDMA device; NULL for PCI functions themselves */
	/*
	 * WATCH_LINK, where the message says so of an interface that is set up: the link is there,
	 * and how often it changed.
	 */
	bool has_link, is_up;
	int64_t carrier_changes; /* -1: not said */
	int ifindex;             /* of the interface; another one has another */
};

/* Borrowed for the call. */
typedef void (*watch_event_fn)(void *arg, const struct watch_event *event);

/*
 * Open what there is; a source that this kernel lacks has no descriptor. In the network namespace
 * that we are in. NULL with err ERR_HOST "WatchUnavailable" when not even uevents and links can be
 * had.
 */
struct watch *watch_open(struct err *err);
void watch_close(struct watch *watch);
OWN_DEFINE(struct watch, watch_close)
#define auto_watch auto_call(watch_close_p)

/*
 * Non-blocking, or -1. The RDMA one can appear later, once ib_core is loaded: watch_retry opens
 * what is missing.
 */
int watch_fd(const struct watch *watch, enum watch_source source);
void watch_retry(struct watch *watch);

/*
 * Read all that is there and call fn for each event that concerns us. -1 with err ERR_HOST
 * "WatchBroken" when the socket failed in a way that reading again does not mend.
 */
int watch_read(struct watch *watch, enum watch_source source, watch_event_fn fn, void *arg,
	       struct err *err);

/* One datagram to events. Pure; bytes that are no such message say nothing. */
void watch_decode(enum watch_source source, const void *bytes, size_t len, watch_event_fn fn,
		  void *arg);

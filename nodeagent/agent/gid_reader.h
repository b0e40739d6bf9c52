// SPDX-License-Identifier: Apache-2.0
/*
 * Which GIDs the pods' addresses have, for NodeState.status.attachments: asked of a worker
 * (nodeagent/host/gids.h) when other addresses are attached, and again with looks at the host.
 *
 * Indices stay while an address stays, unless the kernel clears a port's table (a reset, a bond
 * that changes), which is why they are read again. In mode exclusive the devices are in the pods'
 * namespaces, out of sight: nothing is asked.
 *
 * A released address may be the next pod's: what was read counts for the container, interface and
 * functions that had the address then. After an error nothing counts.
 */
#pragma once

#include <jansson.h>

#include "lib/loop/loop.h"
#include "nodeagent/process/client.h"

enum {
	/* The kernel makes GIDs after the address, in a work queue; pods of a job come together. */
	GID_READER_SETTLE_MS = 2000,
	/* On a node whose pods change all the time they are read after this, and again. */
	GID_READER_SETTLE_MAX_MS = 10000,
	/* A look at the host reads them again when the last reading is as old. */
	GID_READER_FRESH_MS = 60000,
};

struct gid_reader;

/* Borrowed. */
struct gid_reader_config {
	struct loop *loop;
	struct hostd *hostd;
	/* gid_reader_found() is another; from the loop. */
	void (*changed)(void *arg);
	void *arg;
};

struct gid_reader *gid_reader_new(const struct gid_reader_config *config);
/* After hostd_free() or before: an answer that is out is dropped with the hostd. Accepts NULL. */
void gid_reader_free(struct gid_reader *reader);

/*
 * What is attached (attachment_index_describe() of nodeagent/cni/state; NULL: not known), and the
 * part "rdma" of the observed document (NULL: not observed). Without RDMA devices nothing is asked.
 * To be called when either is another.
 */
void gid_reader_set(struct gid_reader *reader, const json_t *attachments, const json_t *rdma);

/* As gids_find() returns it; NULL: nothing was found. Borrowed until the loop turns. */
const json_t *gid_reader_found(const struct gid_reader *reader);

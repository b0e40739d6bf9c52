// SPDX-License-Identifier: Apache-2.0
/*
 * Our file in the runtime's CNI folder (nodeagent/cni/plan/meta_conf.h), kept as it should be:
 * written when the server of plugins can be asked, anew when the cluster's network changes, put
 * back when another program removes or changes it. It stays when we end: a node that boots finds
 * its networks as they were.
 *
 * What a Multus is configured with is kept in our state, so that ours goes on with it once that
 * Multus has gone (nodeagent/cni/plan/takeover.h). Delete /var/lib/orbweaver/cni/multus.conf and
 * restart the agent to forget it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/meta_conf.h"

enum {
	/* How often it is put back before it is left to the program that removes or changes it. */
	CONF_FIGHTS_MAX = 3,
	/* After so long without a change by another program the count begins at 0. */
	CONF_PEACE_MS = 600000,
};

struct conf_config {
	int root;            /* descriptor of the host's root */
	const char *dir;     /* folder on the host: "/etc/cni/net.d" */
	const char *bin_dir; /* where our plugins are: "/opt/cni/bin" */
	bool isolates;       /* as in struct meta_conf_input */
	const char *shared;  /* the same */
	/* Of conf_memory(); NULL, or anything else: nothing is known of earlier looks. */
	const json_t *memory;
};

struct conf;

/*
 * What the folder has for a runtime, as struct meta_conf_input wants it, new. A file that cannot be
 * read has no "text". A folder that is not there has none. NULL with err ERR_TRANSIENT
 * "ConfUnreadable": it cannot be known now what is there (EMFILE, EIO).
 */
json_t *conf_files(int root, const char *dir, struct err *err);

/*
 * The configurations in the folder, in the order of their files, are appended to `confs`. One that
 * is none stands in nobody's way. Errors as of conf_files().
 */
int conf_read_all(int root, const char *dir, json_t *confs, struct err *err);

/* Borrowed, all of it. */
struct conf *conf_new(const struct conf_config *config);
/* What one that looks next has to know, new. */
json_t *conf_memory(const struct conf *conf);
/* The file stays. Accepts NULL. */
void conf_free(struct conf *conf);

/*
 * Do what is to be done, given what conf_files() returned. *ret_note is what an administrator
 * should know: as of meta_conf_decide(), or ERR_HOST "ConfRemoved", "ConfNotWritten", or of
 * conf_files() where nothing is done; class ERR_NONE: all is well.
 */
void conf_look(struct conf *conf, enum meta_mode mode, const json_t *files, struct err *ret_note);

/* Take the file away, for who removes all that is ours. ERR_HOST "ConfNotWritten". */
int conf_remove(int root, const char *dir, struct err *err);

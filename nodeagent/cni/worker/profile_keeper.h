// SPDX-License-Identifier: Apache-2.0
/*
 * The node's profile (nodeagent/cni/plan/profile.h), kept: one look at the runtime's folders, has
 * it decided, installs or takes away. Other programs change those folders, too, so the server has a
 * worker look after each change; what one look knows of those before is its memory, which the next
 * worker gets. Blocks for as long as the folders take.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/profile.h"

enum {
	/*
	 * Multus is waited for so long after its configuration was there, or we began: its pod
	 * takes the file away when it ends, and writes it when it starts.
	 */
	PROFILE_MULTUS_MS = 300000,
};

/* Does a pod use what our plugins attached? Borrowed. */
struct profile_usage {
	enum profile_use use;
	bool is_meta_used;
	const char *user; /* "namespace/pod"; or NULL */
};

/* Borrowed, all of it. */
struct profile_keeper_config {
	int root;             /* descriptor of the host's root */
	const char *bin_dir;  /* the runtime's folder of plugins, below it */
	const char *program;  /* the plugin to install, as we see it */
	const char *conf_dir; /* the runtime's CNI folder, below root */
	bool isolates;        /* as in struct meta_conf_input */
	const char *shared;   /* the same */
	/* Of profile_keeper_memory(); NULL, or anything else: this is the first look. */
	const json_t *memory;
};

struct profile_keeper;

struct profile_keeper *profile_keeper_new(const struct profile_keeper_config *config);
/* What was installed stays. Accepts NULL. */
void profile_keeper_free(struct profile_keeper *keeper);

/*
 * Look now and do what is to be done. Returns what the NodeState is to say (struct
 * profile_decision), new. *ret_is_open: something is left that no change in the folders ends: a pod
 * that uses what is to go, the time in which Multus may come back, or a write that failed.
 */
json_t *profile_keeper_look(struct profile_keeper *keeper, enum profile profile,
			    const struct profile_usage *usage, bool *ret_is_open);

/* What the next look has to know, new. */
json_t *profile_keeper_memory(const struct profile_keeper *keeper);

/*
 * Remove our configuration and our plugins, and restore what was there before. The configuration
 * comes first: the runtime would not find plugins that it names. Errors as conf_remove() and
 * install_remove() have them.
 */
int profile_keeper_remove(int root, const char *conf_dir, const char *bin_dir, struct err *err);

// SPDX-License-Identifier: Apache-2.0
/*
 * The node's profile (nodeagent/cni/meta/profile.h), kept: looks at the runtime's folders every few
 * seconds, has it decided, installs or takes away. Other programs change those folders, too.
 *
 * Nothing is done before a profile was set: until the agent has read its Node, all stays as the one
 * before us left it. Blocks for as long as the folders take.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_SERVER_PROFILE_KEEPER_H
#define ORBWEAVER_NODEAGENT_CNI_SERVER_PROFILE_KEEPER_H

#include "lib/loop/loop.h"
#include "nodeagent/cni/meta/profile.h"

enum {
	/* The folder is small: looking costs less than a watch that has to be renewed. */
	PROFILE_LOOK_MS = 3000,
	/* Plugins are read at each of so many looks: a minute. */
	PROFILE_LOOKS_PER_READ = 20,
	/*
	 * Multus is waited for so long after its configuration was there, or we began: its pod
	 * takes the file away when it ends, and writes it when it starts.
	 */
	PROFILE_MULTUS_MS = 300000,
};

/* Does a pod use what our plugins attached? */
struct profile_usage {
	enum profile_use use;
	bool is_meta_used;
	char *user; /* "namespace/pod", new; or NULL */
};

/* Borrowed, all of it. */
struct profile_keeper_config {
	struct loop *loop;
	int root;             /* descriptor of the host's root */
	const char *bin_dir;  /* the runtime's folder of plugins, below it */
	const char *program;  /* the plugin to install, as we see it */
	const char *conf_dir; /* the runtime's CNI folder, below root */
	bool isolates;        /* as in struct meta_conf_input */
	const char *shared;   /* the same */
	struct profile_usage (*usage)(void *arg);
	/* What the NodeState is to say (struct profile_decision), when it changes. Borrowed. */
	void (*said)(void *arg, const json_t *networks);
	void *arg;
};

struct profile_keeper;

struct profile_keeper *profile_keeper_new(const struct profile_keeper_config *config);
/* What was installed stays. Accepts NULL. */
void profile_keeper_free(struct profile_keeper *keeper);

/* From now on; looks at once, from the loop. */
void profile_keeper_set(struct profile_keeper *keeper, enum profile profile);
/* Look now, at plugins too, and do what is to be done. */
void profile_keeper_look(struct profile_keeper *keeper);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration that makes the runtime call the meta plugin, made from what the node's CNI
 * folder has. Pure.
 *
 * A Multus that was installed after us may have taken our file for the cluster's network. Then the
 * file stays as long as Multus has it: without it no pod would start. Our plugin sets up the
 * cluster's network alone where a Multus is configured (nodeagent/cni/worker/meta_call.c).
 *
 * A runtime takes the first file by name that ends in .conf, .conflist or .json. Ours sorts before
 * the usual ones and carries the cluster's network within it: that of the Multus before us, else
 * the first configuration of the folder that is not of a meta plugin. It has that network's name
 * and version, so what the runtime keeps of pods that it attached before is found by it, and the
 * other way round.
 *
 * Source: containerd pkg/cri, go-cni loadFromConfDir; containernetworking/cni libcni ConfFiles.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/* Our file in the CNI folder. */
#define META_CONF_FILE "00-orbweaver.conflist"
/* Where our plugin looks for the node's configurations unless its own says another ("confDir"). */
#define META_CONF_DIR "/etc/cni/net.d"
#define META_BIN_DIR  "/opt/cni/bin"

enum meta_mode {
	META_AUTO, /* where no Multus has a configuration */
	META_OFF,
};

/*
 * The first of these files (as below) that configures another meta plugin; NULL: none does.
 * Borrowed.
 */
const char *meta_conf_multus(const json_t *files);

struct meta_conf_input {
	enum meta_mode mode;
	/*
	 * The text of the Multus' configuration that was in the folder last; NULL: none was ever
	 * there. Ours goes on with what it says (takeover.h).
	 */
	const char *multus_was;
	/*
	 * [{"name": "10-a.conflist", "text": …}], sorted as the runtime sorts; ours may be among
	 * them
	 */
	const json_t *files;
	/*
	 * Names in the folder of our plugins: only where the cluster's network has its plugins
	 * there, too, will the runtime find ours. NULL: not looked at.
	 */
	const json_t *programs;
	const char *dir;     /* the folder, for our plugin; NULL: META_CONF_DIR */
	const char *bin_dir; /* the runtime's folder of plugins; NULL: META_BIN_DIR */
	bool isolates;       /* networks of other namespaces are refused */
	const char *shared;  /* but for those of these namespaces, with commas; NULL: "default" */
};

enum meta_conf_action {
	META_CONF_KEEP,   /* nothing is to be done */
	META_CONF_WRITE,  /* `text` becomes the file */
	META_CONF_REMOVE, /* the file goes: somebody else does the work, or nobody shall */
};

struct meta_conf {
	enum meta_conf_action action;
	char *text; /* new; NULL unless WRITE */
	/*
	 * Why things are as they are, when somebody should know; class ERR_NONE otherwise:
	 *
	 *   "MultusFound"      a Multus has a configuration here, so ours is not written, or stays
	 *                      because that one has it
	 *   "MultusKey"        the Multus' configuration that is, or was, here has a key that ours
	 *                      cannot obey, which is named: ours is not written once that one has
	 *                      gone; where it is there, it stays as it is
	 *   "NoClusterNetwork" no configuration of a network is there; ours, where it is there,
	 *                      stays as it is
	 *   "PluginsElsewhere" the runtime's plugins are not where ours are; ours, where it is
	 *                      there, stays as it is
	 *   "ConfNotFirst"     another file sorts before ours, and the runtime takes that one
	 */
	struct err note;
};

void meta_conf_decide(const struct meta_conf_input *in, struct meta_conf *ret);
void meta_conf_done(struct meta_conf *conf);

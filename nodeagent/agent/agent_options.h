// SPDX-License-Identifier: Apache-2.0
/* The command line of the node agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "nodeagent/agent/offers.h"
#include "nodeagent/cni/plan/profile.h"
#include "nodeagent/devices/exposition.h"
#include "nodeagent/host_plan/link_history.h"

/* Which CNI there is, and where. Folders and files are below host_root. */
struct agent_cni_options {
	const char *bin_dir;  /* the runtime's folder of plugins */
	const char *socket;   /* which they ask */
	const char *program;  /* the plugin, as we see it */
	const char *conf_dir; /* the runtime's CNI folder */
	const char *shared;   /* pods get networks of these namespaces, if isolates */
	const char *plugins;  /* run besides (cni/plan/plugin_types.h); or NULL */
	bool isolates;        /* besides, of their own namespace only */
	int64_t timeout;      /* what an ADD may take, seconds */
};

/* Strings are borrowed from argv and the environment. */
struct agent_options {
	struct {
		const char
			*kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
		const char *context;
	} kube;
	const char *lease; /* of the operator */
	const char *ns;
	const char *node;
	const char *pod;         /* in which we run; NULL: in none */
	const char *host_root;   /* where the host's root is mounted */
	const char *kubelet_dir; /* the kubelet's /var/lib/kubelet, as we see it */
	bool no_kubelet;
	const char *devinfo_dir; /* for device-info files, as we see it; NULL: below host_root */
	struct offers_options offers;
	const char *device_paths; /* pods may get these besides (devices/pools_paths.h); or NULL */
	struct agent_cni_options cni;
	bool remove_plugins;    /* only take them away again */
	bool dra;               /* claims may have devices (nodeagent/devices) */
	const char *cdi_dir;    /* CDI files of those go there, below host_root */
	const char *ready_file; /* is there while we are ready; NULL: none */
	bool is_ready;          /* only ask whether ready_file is there */
	bool allow_primary_nic; /* host_allow_primary_nic() */
	bool allow_firmware;    /* host_allow_firmware() */
	int64_t parallel_nics;  /* so many are configured side by side */
	int64_t user;           /* as whom agent and kubeletd run */
	enum profile profile;   /* of this node, unless its label names another */
	struct {
		const char *addr;
		enum exposition_scope scope; /* what is counted of which devices */
		const char *excluded;        /* exposition_is_excluded(); NULL: none */
		struct link_limits links;    /* when a link is degraded */
	} metrics;
	bool help, version;
};

int agent_options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
			struct agent_options *ret, struct err *err);

/* What --help prints. */
extern const char agent_options_help[];

// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of the node agent.
 */
#ifndef ORBWEAVER_NODEAGENT_AGENT_AGENT_OPTIONS_H
#define ORBWEAVER_NODEAGENT_AGENT_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "nodeagent/cni/meta/profile.h"
#include "nodeagent/device_metrics/exposition.h"

/*
 * Strings are borrowed from argv and the environment. The three configurations name their source:
 * "/absolute/path" is a file, "NAME" a ConfigMap in our namespace, "NAMESPACE/NAME" one elsewhere,
 * "" none.
 */
struct agent_options {
	const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
	const char *context;
	const char *lease; /* of the operator */
	const char *ns;
	const char *node;
	const char *pod;         /* in which we run; NULL: in none */
	const char *host_root;   /* where the host's root is mounted */
	const char *kubelet_dir; /* the kubelet's /var/lib/kubelet, as we see it */
	bool no_kubelet;
	const char *devinfo_dir; /* for device-info files, as we see it; NULL: below host_root */
	const char *metrics_addr;
	const char *resource_prefix;
	const char *shared_config; /* shared RDMA devices: config.json */
	const char *device_config; /* the SR-IOV device plugin's resourceList: config.json */
	const char *dev_files;     /* smarter-device-manager's list: conf.yaml */
	const char *device_paths;  /* pods may get these besides (devices/pools_paths.h); or NULL */
	const char *cni_bin_dir;   /* the runtime's folder of plugins, below host_root */
	const char *cni_socket;    /* which they ask, below host_root */
	const char *cni_program;   /* the plugin, as we see it */
	const char *cni_conf_dir;  /* the runtime's CNI folder, below host_root */
	const char *cni_shared;    /* pods get networks of these namespaces, if cni_isolates */
	const char *cni_plugins;   /* run besides (cni/meta/plugin_types.h); or NULL */
	bool cni_isolates;         /* besides, of their own namespace only */
	bool remove_plugins;       /* only take them away again */
	bool dra;                  /* claims may have devices (nodeagent/devices) */
	const char *cdi_dir;       /* CDI files of those go there, below host_root */
	const char *ready_file;    /* is there while we are ready; NULL: none */
	bool is_ready;             /* only ask whether ready_file is there */
	bool allow_primary_nic;    /* host_allow_primary_nic() */
	bool allow_firmware;       /* host_allow_firmware() */
	int64_t cni_timeout;       /* what an ADD may take, seconds */
	int64_t parallel_nics;     /* so many are configured side by side */
	int64_t user;              /* as whom agent and kubeletd run */
	bool packed; /* preferred allocations fill one PF after the other instead of spreading */
	enum profile profile;               /* of this node, unless its label names another */
	enum exposition_scope rdma_metrics; /* what is counted of which devices */
	const char *rdma_metrics_exclude;   /* exposition_is_excluded(); NULL: none */
	bool help, version;
};

int agent_options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
			struct agent_options *ret, struct err *err);

/* What --help prints. */
extern const char agent_options_help[];

#endif

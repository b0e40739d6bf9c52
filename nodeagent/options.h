/*
 * The command line of the node agent.
 */
#ifndef ORBWEAVER_NODEAGENT_OPTIONS_H
#define ORBWEAVER_NODEAGENT_OPTIONS_H

#include <stdbool.h>

#include "lib/base/err.h"

/*
 * Strings are borrowed from argv and the environment. The three configurations name their source: "/absolute/path" is a
 * file, "NAME" a ConfigMap in our namespace, "NAMESPACE/NAME" one elsewhere, "" none.
 */
struct agent_options {
	const char *kubeconfig; /* NULL: in-cluster, else $KUBECONFIG, else ~/.kube/config */
	const char *context;
	const char *ns;
	const char *node;
	const char *host_root;   /* where the host's root is mounted */
	const char *kubelet_dir; /* the kubelet's /var/lib/kubelet, as we see it */
	const char *devinfo_dir; /* for device-info files, as we see it; NULL: below host_root */
	const char *metrics_addr;
	const char *resource_prefix;
	const char *shared_config; /* shared RDMA devices: config.json */
	const char *device_config; /* the SR-IOV device plugin's resourceList: config.json */
	const char *dev_files;     /* smarter-device-manager's list: conf.yaml */
	const char *ready_file;    /* is there while we are ready; NULL: none */
	bool is_ready;             /* only ask whether ready_file is there */
	bool packed; /* preferred allocations fill one PF after the other instead of spreading */
	bool help, version;
};

int agent_options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
			struct agent_options *ret, struct err *err);

/* What --help prints. */
extern const char agent_options_help[];

#endif

// SPDX-License-Identifier: Apache-2.0
/* Flags of the node agent as a table. */
#include "nodeagent/agent/agent_options.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/flags.h"
#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/cni/plan/plugin_types.h"
#include "nodeagent/cni/plugin/deadlines.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/devices/pools_paths.h"
#include "nodeagent/model/job_folder.h"
#include "nodeagent/process/client.h"
#include "nodeagent/process/sandbox.h"

const char agent_options_help[] =
	"orbweaver-agent: RDMA networking for Kubernetes, the part on each node.\n"
	"\n"
	"Makes the host what the SriovNetworkNodeState of its node asks for, reports what is "
	"there, and\n"
	"offers SR-IOV and shared RDMA devices to the kubelet. Runs as root in the host's network "
	"and\n"
	"PID namespaces.\n"
	"\n"
	"  --node NAME               our Node; else $NODE_NAME\n"
	"  --kubeconfig FILE         the API server; else in-cluster, $KUBECONFIG, ~/.kube/config\n"
	"  --context NAME            this context of the kubeconfig\n"
	"  --namespace NS            of NodeStates; else $POD_NAMESPACE, else orbweaver-system\n"
	"  --lease NAME              the Lease of the operator, as its flag --lease names it\n"
	"                            (default orbweaver-operator)\n"
	"  --host-root DIR           where the host's root is mounted (default /)\n"
	"  --kubelet-dir DIR         device-plugins/ and pod-resources/ are in it\n"
	"                            (default /var/lib/kubelet); links in it are those of the "
	"host\n"
	"                            when it is below --host-root\n"
	"  --no-kubelet              there is no kubelet on this node that gives devices to pods.\n"
	"                            Without it VFs that exist are left alone until the kubelet\n"
	"                            has said which devices pods have\n"
	"  --devinfo-dir DIR         device-info files for Multus\n"
	"                            (default run/k8s.cni.cncf.io/devinfo/dp below "
	"--host-root)\n"
	"  --profile PROFILE         what of CNI is installed on this node, unless its label\n"
	"                            orbweaver.io/profile names another (default auto)\n"
	"                            auto: CNI plugins, and where no Multus is configured the "
	"meta\n"
	"                            plugin; another program's plugin of the same name stays\n"
	"                            delegate: CNI plugins only; another program's is kept as\n"
	"                            NAME.orbweaver-saved\n"
	"                            devices: no CNI\n"
	"  --cni-bin-dir DIR         the runtime's folder of CNI plugins, below --host-root\n"
	"                            (default /opt/cni/bin)\n"
	"  --cni-conf-dir DIR        the runtime's folder of CNI configurations, below "
	"--host-root\n"
	"                            (default /etc/cni/net.d)\n"
	"  --cni-socket FILE         where they ask us, below --host-root\n"
	"                            (default /run/orbweaver/cni.sock, which is what they look "
	"for)\n"
	"  --cni-program FILE        what is installed (default /usr/bin/orbweaver-cni)\n"
	"  --cni-namespace-isolation pods get networks of their own namespace only\n"
	"  --cni-global-namespaces LIST\n"
	"                            and of these, with commas (default \"default\")\n"
	"  --cni-plugin-types LIST   CNI plugins that networks of pods may name besides the common "
	"ones\n"
	"                            and those that the node's own configurations name, with "
	"commas;\n"
	"                            patterns such as acme-*, and * for any\n"
	"  --cni-timeout SECONDS     what an ADD may take before it is taken away again, 10 to "
	"3600\n"
	"                            (default 90); DEL and waiting for the API server in "
	"proportion.\n"
	"                            More for a node that is slow; the kubelet's\n"
	"                            runtimeRequestTimeout should be longer\n"
	"  --remove-plugins          only take away what a profile installed, and put back what "
	"was\n"
	"                            kept; no pod may use it any more\n"
	"  --metrics-addr HOST:PORT  /metrics, /healthz, /readyz (default 127.0.0.1:9810; \"0\" "
	"for\n"
	"                            none)\n"
	"  --rdma-metrics SCOPE      of which devices counters are read at a scrape of /metrics: "
	"pf,\n"
	"                            pods (PFs, and what pods have; default), all, or off\n"
	"  --rdma-metrics-exclude LIST\n"
	"                            RDMA devices, interfaces or PCI addresses that are not read,\n"
	"                            with commas; patterns such as mlx5_bond_*\n"
	"  --link-limits LIMITS      when a link is degraded (default\n"
	"                            flaps=3,window=600,errors-ib=120,errors-eth=36,recover=600,\n"
	"                            lanes=1):\n"
	"                            losses within a window, errors an hour for each 100 Gbit/s;\n"
	"                            well again after; lost lanes of PCI Express, 0: off; times "
	"in\n"
	"                            seconds\n"
	"  --allow-primary-nic       let a policy make VFs on the NIC that the node itself needs\n"
	"  --allow-firmware          let a policy turn SR-IOV on, and raise the number of VFs, in "
	"a "
	"NIC's\n"
	"                            firmware, where its driver offers that; the card is reset\n"
	"  --parallel-nics N         so many NICs are configured side by side, 1 to 8 (default "
	"4)\n"
	"  --user UID                as whom the processes run that talk to API server and "
	"kubelet\n"
	"                            (default 60932); it has to be able to read the files that a\n"
	"                            kubeconfig names when they are replaced\n"
	"  --resource-prefix PREFIX  of extended resources (default spidernet.io)\n"
	"  --allocation POLICY       which VFs the kubelet should prefer: \"spread\" over PFs\n"
	"                            (default) or \"packed\"\n"
	"  --shared-config SOURCE    shared RDMA devices (default: the ConfigMap\n"
	"                            spiderpool-rdma-shared-device-plugin, key config.json)\n"
	"  --device-config SOURCE    resourceList as the SR-IOV network device plugin has it, for\n"
	"                            instance its ConfigMap sriovdp-config, key config.json "
	"(default: "
	"none)\n"
	"  --dev-files SOURCE        list as smarter-device-manager has it (default: the "
	"ConfigMap\n"
	"                            smarter-device-manager, key conf.yaml)\n"
	"                            A SOURCE is /a/file, a ConfigMap's NAME or NAMESPACE/NAME, or "
	"\"\"\n"
	"  --device-paths LIST       device files that pods may get besides those in\n"
	"                            /dev/infiniband and /dev/vfio, /dev/vhost-net and "
	"/dev/net/tun,\n"
	"                            with commas; patterns such as /dev/video*\n"
	"  --job-files LIST          resources whose pods get variables for NCCL and UCX, and a\n"
	"                            topology, as files in /run/orbweaver (docs/nccl.md), with\n"
	"                            commas; patterns such as spidernet.io/*\n"
	"  --dra                     experimental, Kubernetes 1.34 and later: let claims (dynamic\n"
	"                            resource allocation) have the resources that the annotation\n"
	"                            orbweaver.io/dra of the Node names\n"
	"  --cdi-dir DIR             where the runtime looks for CDI files, below --host-root, "
	"for\n"
	"                            that (default /var/run/cdi)\n"
	"  --ready-file FILE         is there while we are ready; for a probe that must not take\n"
	"                            another agent of the node for us: --ready-file FILE "
	"--is-ready\n"
	"                            exits with 0 when it is\n"
	"  --log-level LEVEL         debug, info, warn, error; \"info,lib/kube=debug\"\n"
	"  --version, --help\n";

static int take_allocation(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	if (!str_eq(value, "spread") && !str_eq(value, "packed"))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--allocation %s: must be spread or packed", value);
	o->offers.packed = str_eq(value, "packed");
	return 0;
}

static int take_user(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	/* 4294967295 is not a user (setresuid(2)). */
	return str_to_int(value, 0, UINT32_MAX - 1, &o->user)
		       ? 0
		       : err_set(err, ERR_INVALID, "BadFlag",
				 "--user %s: must be the number of a user, such as %d", value,
				 SANDBOX_USER);
}

static int take_parallel(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	return str_to_int(value, 1, HOSTD_PARALLEL_MAX, &o->parallel_nics)
		       ? 0
		       : err_set(err, ERR_INVALID, "BadFlag",
				 "--parallel-nics %s: must be a number from 1 to %d", value,
				 HOSTD_PARALLEL_MAX);
}

static int take_cni_timeout(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	return str_to_int(value, SERVER_ADD_MIN_MS / 1000, SERVER_ADD_MAX_MS / 1000,
			  &o->cni.timeout)
		       ? 0
		       : err_set(err, ERR_INVALID, "BadFlag",
				 "--cni-timeout %s: must be seconds, from %d to %d", value,
				 SERVER_ADD_MIN_MS / 1000, SERVER_ADD_MAX_MS / 1000);
}

static int take_log_level(void *options, const char *value, struct err *err)
{
	return log_configure(value, err) < 0 ? err_in(err, "--log-level %s", value) : 0;
}

static int take_profile(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	return profile_read(value, &o->profile)
		       ? 0
		       : err_set(err, ERR_INVALID, "BadFlag",
				 "--profile %s: must be " PROFILE_WORDS, value);
}

static int take_scope(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	return exposition_scope_read(value, &o->metrics.scope)
		       ? 0
		       : err_set(err, ERR_INVALID, "BadFlag",
				 "--rdma-metrics %s: must be off, pf, pods or all", value);
}

static int take_link_limits(void *options, const char *value, struct err *err)
{
	struct agent_options *o = options;

	return link_limits_read(value, &o->metrics.links, err);
}

#define STRING(name_, field_)                                                                      \
	{                                                                                          \
		(name_), FLAG_STRING, offsetof(struct agent_options, field_), NULL                 \
	}

static const struct flag flags[] = {
	STRING("node", node),
	STRING("kubeconfig", kube.kubeconfig),
	STRING("context", kube.context),
	STRING("namespace", ns),
	STRING("lease", lease),
	STRING("host-root", host_root),
	STRING("kubelet-dir", kubelet_dir),
	STRING("devinfo-dir", devinfo_dir),
	STRING("metrics-addr", metrics.addr),
	STRING("rdma-metrics-exclude", metrics.excluded),
	STRING("resource-prefix", offers.resource_prefix),
	STRING("shared-config", offers.shared_config),
	STRING("device-config", offers.device_config),
	STRING("dev-files", offers.dev_files),
	STRING("device-paths", device_paths),
	STRING("job-files", offers.job_files),
	STRING("ready-file", ready_file),
	STRING("cdi-dir", cdi_dir),
	{"dra", FLAG_BOOL, offsetof(struct agent_options, dra), NULL},
	STRING("cni-bin-dir", cni.bin_dir),
	STRING("cni-socket", cni.socket),
	STRING("cni-program", cni.program),
	STRING("cni-conf-dir", cni.conf_dir),
	STRING("cni-global-namespaces", cni.shared),
	STRING("cni-plugin-types", cni.plugins),
	{"cni-namespace-isolation", FLAG_BOOL, offsetof(struct agent_options, cni.isolates), NULL},
	{"cni-timeout", FLAG_TAKEN, 0, take_cni_timeout},
	{"profile", FLAG_TAKEN, 0, take_profile},
	{"rdma-metrics", FLAG_TAKEN, 0, take_scope},
	{"link-limits", FLAG_TAKEN, 0, take_link_limits},
	{"remove-plugins", FLAG_BOOL, offsetof(struct agent_options, remove_plugins), NULL},
	{"no-kubelet", FLAG_BOOL, offsetof(struct agent_options, no_kubelet), NULL},
	{"is-ready", FLAG_BOOL, offsetof(struct agent_options, is_ready), NULL},
	{"allow-primary-nic", FLAG_BOOL, offsetof(struct agent_options, allow_primary_nic), NULL},
	{"allow-firmware", FLAG_BOOL, offsetof(struct agent_options, allow_firmware), NULL},
	{"parallel-nics", FLAG_TAKEN, 0, take_parallel},
	{"user", FLAG_TAKEN, 0, take_user},
	{"allocation", FLAG_TAKEN, 0, take_allocation},
	{"log-level", FLAG_TAKEN, 0, take_log_level},
	{"version", FLAG_BOOL, offsetof(struct agent_options, version), NULL},
	{"help", FLAG_BOOL, offsetof(struct agent_options, help), NULL},
};

static int check_directory(const char *flag, const char *value, struct err *err)
{
	if (!value || value[0] == '/')
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag", "--%s \"%s\": must be an absolute path", flag,
		       value);
}

/* A node's name: a DNS subdomain (RFC 1123), and part of a URL and of an event's name. */
static int check_node(const char *node, struct err *err)
{
	size_t len = node ? strlen(node) : 0;

	if (len == 0)
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--node: give the name of our Node, or set $NODE_NAME");
	if (len <= 253 && strspn(node, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len)
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--node %s: must be up to 253 lower-case letters, digits, dashes and dots",
		       node);
}

/* "/a/file", "", "name", "ns/name". */
static int check_source(const char *flag, const char *value, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	const char *name = value;
	size_t len;

	if (!value || *value == '\0' || *value == '/')
		return 0;
	len = strspn(name, letters);
	if (name[len] == '/') {
		name += len + 1;
		len = strspn(name, letters);
	}
	if (len > 0 && name[len] == '\0')
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--%s \"%s\": must be an absolute path, a ConfigMap's name or "
		       "namespace/name, or empty",
		       flag, value);
}

static int check(const struct agent_options *o, struct err *err)
{
	if (check_directory("ready-file", o->ready_file, err) < 0)
		return -1;
	if (o->is_ready)
		return o->ready_file ? 0
				     : err_set(err, ERR_INVALID, "BadFlag",
					       "--is-ready: needs --ready-file");
	if (check_directory("cni-bin-dir", o->cni.bin_dir, err) < 0 ||
	    check_directory("cni-socket", o->cni.socket, err) < 0 ||
	    check_directory("cni-program", o->cni.program, err) < 0 ||
	    check_directory("cni-conf-dir", o->cni.conf_dir, err) < 0 ||
	    check_directory("cdi-dir", o->cdi_dir, err) < 0 ||
	    check_directory("host-root", o->host_root, err) < 0 ||
	    plugin_types_check_list(o->cni.plugins, err) < 0)
		return -1;
	if (o->remove_plugins)
		return 0;
	if (check_node(o->node, err) < 0 || flags_check_label("namespace", o->ns, err) < 0 ||
	    flags_check_label("lease", o->lease, err) < 0 ||
	    check_directory("kubelet-dir", o->kubelet_dir, err) < 0 ||
	    check_directory("devinfo-dir", o->devinfo_dir, err) < 0 ||
	    check_source("shared-config", o->offers.shared_config, err) < 0 ||
	    check_source("device-config", o->offers.device_config, err) < 0 ||
	    check_source("dev-files", o->offers.dev_files, err) < 0 ||
	    pools_paths_check(o->device_paths, err) < 0 ||
	    job_folder_check(o->offers.job_files, err) < 0)
		return -1;
	return flags_check_prefix("resource-prefix", o->offers.resource_prefix, err);
}

int agent_options_parse(int argc, char *const *argv, const char *(*env)(const char *name),
			struct agent_options *ret, struct err *err)
{
	const char *ns = env("POD_NAMESPACE");
	struct agent_options o = {
		.ns = str_empty(ns) ? "orbweaver-system" : ns,
		.lease = "orbweaver-operator",
		.node = env("NODE_NAME"),
		.pod = env("POD_NAME"),
		.host_root = "/",
		.kubelet_dir = "/var/lib/kubelet",
		.cni.bin_dir = "/opt/cni/bin",
		.cni.socket = WIRE_SOCKET,
		.cni.program = "/usr/bin/orbweaver-cni",
		.cni.conf_dir = "/etc/cni/net.d",
		.cni.timeout = SERVER_ADD_MS / 1000,
		.metrics.scope = EXPOSITION_PODS,
		.metrics.links = link_limits_default,
		.cdi_dir = "/var/run/cdi",
		.metrics.addr = "127.0.0.1:9810",
		.parallel_nics = 4,
		.user = SANDBOX_USER,
		.offers.resource_prefix = "spidernet.io",
		.offers.shared_config = "spiderpool-rdma-shared-device-plugin",
		.offers.dev_files = "smarter-device-manager",
	};

	if (flags_parse(argc, argv, flags, ARRAY_LEN(flags), &o, err) < 0)
		return -1;
	if (!o.help && !o.version && check(&o, err) < 0)
		return -1;
	*ret = o;
	return 0;
}

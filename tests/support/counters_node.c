// SPDX-License-Identifier: Apache-2.0
/*
 * The node agent on a node made of files whose devices have counted, and whose pods have VFs.
 *
 *	counters-node [--traffic NAME] [--shared] PFS VFS PODS FLAG...
 *
 * FLAGs are the agent's; --host-root and --kubelet-dir are given to it. So many mlx5 PFs with so
 * many VFs each, RDMA in exclusive mode unless --shared; the first VFs are net1 in namespaces of
 * their own, run/netns/cni-0 and so on, and the kubelet's PodResources say that container main of
 * pod ml/train-0 and so on has them; the kubelet also takes device plugins. With --traffic counters
 * grow, each device's at a pace of its own that rises and falls, and the pods are ml/NAME-0 and so
 * on.
 *
 * Linked from the agent's own objects, the program's main included: this file stands before main
 * and before host_open. Prints the agent's pid and the node's root folder; ends with the agent, and
 * ends it on SIGTERM.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/proto/pod_resources.pb-c.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "lib/loop/loop.h"
#include "nodeagent/host/rdma.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/shared_kernel.h"

#define PFS_MAX   8
#define VFS_MAX   16
#define FLAGS_MAX 32
#define RESOURCE  "spidernet.io/fast"

/* ld --wrap */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
struct host *__real_host_open(const char *root, struct err *err);
struct host *__wrap_host_open(const char *root, struct err *err);

static struct host_tree *tree;
static size_t n_pods;
/* Before the number. */
static const char *pod_name = "train";
static enum rdma_mode rdma_mode = RDMA_MODE_EXCLUSIVE;
/* VFs of pods, in their order. */
static char vfs_of_pods[PFS_MAX * VFS_MAX][24];
static pid_t agent;

/* In workers: the kernel that they talk to is the tree's. */
struct host *__wrap_host_open(const char *root, struct err *err)
{
	struct host *host = __real_host_open(root, err);

	if (host && tree) {
		shared_kernel_reopen(tree);
		host_set_doors(host, shared_kernel_doors(), tree);
	}
	return host;
}

/* ---- traffic --------------------------------------------------------------------------------- */

/* Parts of names, the first that fits; so much a second. Others stand still. */
static const struct pace {
	const char *part;
	double a_second;
} paces[] = {
	{"rdma_unicast_bytes", 4e8},
	{"rdma_unicast_packets", 1e5},
	{"rdma_multicast", 20},
	{"unicast_bytes", 2e6},
	{"unicast_packets", 2e3},
	{"vf_rx_bytes", 4.02e8},
	{"vf_tx_bytes", 4.02e8},
	{"vf_rx_packets", 1.02e5},
	{"vf_tx_packets", 1.02e5},
	{"rx_write_requests", 6e3},
	{"rx_read_requests", 1.5e3},
	{"rx_atomic_requests", 30},
	{"np_ecn_marked_roce_packets", 60},
	{"np_cnp_sent", 50},
	{"rp_cnp_handled", 45},
	{"prio3_pause", 8},
	{"vf_rx_dropped", 0.2},
	{"vf_tx_dropped", 0.05},
	{"out_of_sequence", 0.6},
	{"packet_seq_err", 0.3},
	{"local_ack_timeout_err", 0.1},
	{"duplicate_request", 0.15},
	{"implied_nak_seq_err", 0.05},
	{"out_of_buffer", 0.2},
	{"rnr_nak_retry_err", 0.1},
	{"cqe_flush_error", 0.1},
	{"roce_adp_retrans_to", 0.05},
	{"roce_adp_retrans", 0.2},
	{"roce_slow_restart", 0.1},
};

static struct timespec begun;

/*
 * The integral of a pace that rises and falls, so that what it counts only grows. A little less is
 * sent than received.
 */
static uint64_t grown(const char *counter, unsigned int index, uint64_t value)
{
	double period_s = 120 + index * 7 % 90, phase = index * 5 % 7,
	       strength = 0.4 + index % 5 * 0.15;
	struct timespec now;
	double since_s, turns;

	if (strstr(counter, "tx_"))
		strength *= 0.85;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	since_s = (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
	turns = 2 * M_PI / period_s;
	for (size_t i = 0; i < ARRAY_LEN(paces); i++) {
		if (!strstr(counter, paces[i].part))
			continue;
		since_s += 0.6 / turns * (cos(phase) - cos(turns * since_s + phase));
		return value + (uint64_t)(paces[i].a_second * strength * since_s);
	}
	return value;
}

/* ---- the node -------------------------------------------------------------------------------- */

/* The tree borrows the strings. */
static struct pf_names {
	char address[24], netdev[24], rdma[24];
} names[PFS_MAX];

static void add_pf(struct host_tree *made, unsigned int i, int vfs)
{
	struct tree_pf pf = tree_mlx;
	struct pf_names *name = &names[i];
	auto_free char *count = str_printf("%d", vfs), *path = NULL;

	(void)snprintf(name->address, sizeof(name->address), "0000:%02x:00.0", 16 * i + 16);
	(void)snprintf(name->netdev, sizeof(name->netdev), "ens%uf0np0", i);
	(void)snprintf(name->rdma, sizeof(name->rdma), "mlx5_%u", i);
	pf.address = name->address;
	pf.netdev = name->netdev;
	pf.rdma = name->rdma;
	pf.vf_bus = 16 * i + 17;
	pf.total = VFS_MAX;
	host_tree_add_pf(made, &pf);
	path = str_printf("sys/bus/pci/devices/%s/sriov_numvfs", pf.address);
	if (vfs > 0)
		(void)host_tree_doors()->write(made, -1, path, count, strlen(count), NULL);
}

/* A file for programs that use an RDMA device. The tree calls those in pods uverbs7. */
static void add_verbs(struct host_tree *made, const char *device)
{
	static unsigned int last = 7;
	auto_free char *file = str_printf("dev/infiniband/uverbs%u", ++last);
	auto_free char *owner = str_printf("sys/class/infiniband_verbs/uverbs%u/ibdev", last);
	auto_free char *number = str_printf("sys/class/infiniband_verbs/uverbs%u/dev", last);
	auto_free char *numbers = str_printf("231:%u\n", 192 + last);

	host_tree_file(made, file, "");
	host_tree_file(made, owner, device);
	host_tree_file(made, number, numbers);
}

static void add_rdma_files(struct host_tree *made, unsigned int pfs, unsigned int vfs)
{
	for (unsigned int i = 0; i < pfs; i++) {
		add_verbs(made, names[i].rdma);
		for (unsigned int vf = 0; vf < vfs; vf++) {
			auto_free char *device = str_printf("%sv%u", names[i].rdma, vf);

			add_verbs(made, device);
		}
	}
	host_tree_file(made, "dev/infiniband/rdma_cm", "");
	host_tree_file(made, "sys/class/misc/rdma_cm/dev", "10:60\n");
}

static void make_tree(unsigned int pfs, unsigned int vfs)
{
	struct host_tree *made = host_tree_new();

	for (unsigned int i = 0; i < pfs; i++)
		add_pf(made, i, (int)vfs);
	add_rdma_files(made, pfs, vfs);
	(void)rdma_set_mode(host_tree_host(made), rdma_mode, NULL);
	for (unsigned int i = 0; i < n_pods; i++) {
		auto_free char *netns = str_printf("cni-%u", i);

		(void)snprintf(vfs_of_pods[i], sizeof(vfs_of_pods[i]), "0000:%02x:%02x.%x",
			       16 * (i / vfs) + 17, i % vfs / 8, i % vfs % 8);
		host_tree_move_to(made, vfs_of_pods[i], netns, "net1");
	}
	host_tree_file(made, "kubelet/device-plugins/DEPRECATION", "");
	host_tree_file(made, "kubelet/pod-resources/x", "");
	host_tree_file(made, "run/x", "");
	host_tree_file(made, "sys/module/ib_core/x", "");
	tree = made;
}

/* ---- the kubelet's PodResources -------------------------------------------------------------- */

static void reply(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg)
{
	PodResources__ListPodResourcesResponse list =
		POD_RESOURCES__LIST_POD_RESOURCES_RESPONSE__INIT;
	struct pod {
		PodResources__PodResources pod, *in_list;
		PodResources__ContainerResources container, *in_pod;
		PodResources__ContainerDevices devices, *in_container;
		char name[32], *id;
	} *pods = mem_calloc(n_pods + 1, sizeof(*pods));
	auto_free PodResources__PodResources **all = mem_calloc(n_pods + 1, sizeof(*all));

	for (size_t i = 0; i < n_pods; i++) {
		struct pod *p = &pods[i];

		pod_resources__pod_resources__init(&p->pod);
		pod_resources__container_resources__init(&p->container);
		pod_resources__container_devices__init(&p->devices);
		(void)snprintf(p->name, sizeof(p->name), "%s-%zu", pod_name, i);
		p->id = vfs_of_pods[i];
		p->devices.resource_name = (char *)RESOURCE;
		p->devices.n_device_ids = 1;
		p->devices.device_ids = &p->id;
		p->container.name = (char *)"main";
		p->in_container = &p->devices;
		p->container.n_devices = 1;
		p->container.devices = &p->in_container;
		p->pod.namespace_ = (char *)"ml";
		p->pod.name = p->name;
		p->in_pod = &p->container;
		p->pod.n_containers = 1;
		p->pod.containers = &p->in_pod;
		all[i] = &p->pod;
	}
	list.n_pod_resources = n_pods;
	list.pod_resources = all;
	grpc_call_reply(call, &list.base);
	mem_free(pods);
}

static const struct grpc_method methods[] = {
	{"/v1.PodResourcesLister/List", &pod_resources__list_pod_resources_request__descriptor,
	 reply},
};

static void on_terminate(void *arg)
{
	(void)kill(agent, SIGTERM);
}

static void on_stop(void *arg)
{
	loop_stop(arg);
}

static int be_kubelet(void)
{
	auto_free char *socket =
		str_printf("%s/kubelet/pod-resources/kubelet.sock", host_tree_folder(tree));
	auto_free char *plugins = str_printf("%s/kubelet/device-plugins", host_tree_folder(tree));
	struct loop *loop = loop_new();
	struct signal_watch *terminate = signal_watch_new(loop, SIGTERM, on_terminate, NULL);
	struct signal_watch *child = signal_watch_new(loop, SIGCHLD, on_stop, loop);
	struct fake_kubelet *kubelet = fake_kubelet_new(loop, plugins, FAKE_KUBELET_NEW);
	struct grpc_server *server = grpc_server_new(loop,
						     &(struct grpc_server_config){
							     .path = socket,
							     .methods = methods,
							     .n_methods = ARRAY_LEN(methods),
						     },
						     NULL);
	int status = 0;

	if (!server) {
		(void)fputs("counters-node: cannot serve PodResources\n", stderr);
		return 1;
	}
	(void)printf("%d %s\n", (int)agent, host_tree_folder(tree));
	(void)fflush(stdout);
	loop_run(loop);
	(void)waitpid(agent, &status, 0);
	grpc_server_close(server, 0, on_stop, loop);
	loop_run(loop);
	fake_kubelet_free(kubelet);
	signal_watch_free(child);
	signal_watch_free(terminate);
	loop_free(loop);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- main ------------------------------------------------------------------------------------ */

static int be_agent(int argc, char **argv)
{
	auto_free char *root = str_printf("--host-root=%s", host_tree_folder(tree));
	auto_free char *kubelet = str_printf("--kubelet-dir=%s/kubelet", host_tree_folder(tree));
	char *flags[FLAGS_MAX + 3] = {argv[0], root, kubelet};

	for (int i = 0; i < argc && i < FLAGS_MAX; i++)
		flags[i + 3] = argv[i + 4];
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return __real_main(argc + 3, flags);
}

int __wrap_main(int argc, char **argv)
{
	bool has_traffic = argc > 2 && str_eq(argv[1], "--traffic");
	int64_t pfs, vfs, pods;
	int status;

	if (has_traffic) {
		pod_name = argv[2];
		argv[2] = argv[0];
		argc -= 2;
		argv += 2;
	}
	if (argc > 1 && str_eq(argv[1], "--shared")) {
		rdma_mode = RDMA_MODE_SHARED;
		argc--;
		argv++;
	}
	if (argc < 4 || argc - 4 > FLAGS_MAX - 1 || !str_to_int(argv[1], 1, PFS_MAX, &pfs) ||
	    !str_to_int(argv[2], 1, VFS_MAX, &vfs) || !str_to_int(argv[3], 0, pfs * vfs, &pods)) {
		(void)fputs(
			"usage: counters-node [--traffic NAME] [--shared] PFS VFS PODS FLAG...\n",
			stderr);
		return 2;
	}
	json_init();
	n_pods = (size_t)pods;
	make_tree((unsigned int)pfs, (unsigned int)vfs);
	if (has_traffic) {
		(void)clock_gettime(CLOCK_BOOTTIME, &begun);
		host_tree_set_counted(tree, grown);
	}
	shared_kernel_begin(tree);
	agent = fork();
	if (agent == 0)
		return be_agent(argc - 4, argv);
	status = agent < 0 ? 1 : be_kubelet();
	host_tree_free(tree);
	return status;
}

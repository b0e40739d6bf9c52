// SPDX-License-Identifier: Apache-2.0
/*
 * The node agent on a node made of files: a host with 8 PFs that can have 16 VFs each, and a
 * kubelet.
 *
 *	bench-agent FLAG...        flags of the agent; --host-root and --kubelet-dir are given to it
 *
 * Linked from the agent's own objects, the program's main included: this file stands before main
 * (which becomes a child, so that its memory is its own) and before host_open. Prints the agent's
 * pid; ends with the agent, and ends it on SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/fakes/kubelet.h"
#include "tests/fakes/shared_kernel.h"

#define PFS       8
#define FLAGS_MAX 32

/* ld --wrap */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
struct host *__real_host_open(const char *root, struct err *err);
struct host *__wrap_host_open(const char *root, struct err *err);

static struct host_tree *tree;

/* In the worker: the kernel that it talks to is the tree's. */
struct host *__wrap_host_open(const char *root, struct err *err)
{
	struct host *host = __real_host_open(root, err);

	if (host && tree) {
		shared_kernel_reopen(tree);
		host_set_doors(host, shared_kernel_doors(), tree);
	}
	return host;
}

/* The tree borrows the strings. */
static struct pf_names {
	char address[24], netdev[16], rdma[16];
} names[PFS];

/* As in a server with eight NICs: each on a bus of its own, its VFs behind it. */
static void make_tree(void)
{
	static const char *const modules[] = {"ib_core", "ib_uverbs", "mlx5_ib", "rdma_ucm"};
	struct host_tree *made = host_tree_new();

	for (unsigned int i = 0; i < PFS; i++) {
		struct tree_pf pf = tree_mlx;
		struct pf_names *name = &names[i];

		(void)snprintf(name->address, sizeof(name->address), "0000:%02x:00.0", 16 * i + 16);
		(void)snprintf(name->netdev, sizeof(name->netdev), "ens%uf0np0", i);
		(void)snprintf(name->rdma, sizeof(name->rdma), "mlx5_%u", i);
		pf.address = name->address;
		pf.netdev = name->netdev;
		pf.rdma = name->rdma;
		pf.vf_bus = 16 * i + 17;
		pf.total = 16;
		host_tree_add_pf(made, &pf);
	}
	host_tree_file(made, "kubelet/device-plugins/DEPRECATION", "");
	host_tree_file(made, "run/x", "");
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		auto_free char *path = str_printf("sys/module/%s/x", modules[i]);

		host_tree_file(made, path, "");
	}
	tree = made;
}

static int be_agent(int argc, char **argv)
{
	auto_free char *root = str_printf("--host-root=%s", host_tree_folder(tree));
	auto_free char *kubelet = str_printf("--kubelet-dir=%s/kubelet", host_tree_folder(tree));
	/* The one we play has device plugins only. */
	char *flags[FLAGS_MAX + 4] = {argv[0], root, kubelet, (char *)"--no-kubelet"};

	for (int i = 1; i < argc && i <= FLAGS_MAX; i++)
		flags[i + 3] = argv[i];
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return __real_main(argc + 3, flags);
}

static pid_t agent;

static void on_terminate(void *arg)
{
	(void)kill(agent, SIGTERM);
}

static void on_child(void *arg)
{
	loop_stop(arg);
}

static int be_kubelet(void)
{
	auto_free char *dir = str_printf("%s/kubelet/device-plugins", host_tree_folder(tree));
	struct loop *loop = loop_new();
	struct signal_watch *terminate = signal_watch_new(loop, SIGTERM, on_terminate, NULL);
	struct signal_watch *child = signal_watch_new(loop, SIGCHLD, on_child, loop);
	struct fake_kubelet *kubelet = fake_kubelet_new(loop, dir, FAKE_KUBELET_NEW);
	int status = 0;

	(void)printf("%d\n", (int)agent);
	(void)fflush(stdout);
	loop_run(loop);
	(void)waitpid(agent, &status, 0);
	signal_watch_free(child);
	signal_watch_free(terminate);
	fake_kubelet_free(kubelet);
	loop_free(loop);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int __wrap_main(int argc, char **argv)
{
	int status;

	if (argc > FLAGS_MAX) {
		(void)fputs("bench-agent: too many flags\n", stderr);
		return 2;
	}
	json_init();
	make_tree();
	shared_kernel_begin(tree);
	agent = fork();
	if (agent == 0)
		return be_agent(argc, argv);
	status = agent < 0 ? 1 : be_kubelet();
	host_tree_free(tree);
	return status;
}

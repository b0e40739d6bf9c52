// SPDX-License-Identifier: Apache-2.0
/*
 * What no file of a tree shows is kept in one beside them. A door reads it before and writes it
 * after each request, with the file locked; between the two it is a door of host_tree.c.
 */
#include "tests/fakes/shared_kernel.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/mem.h"

#define SHARED_FILE "kernel"

/* A descriptor of this process, whose lock is its own. */
static int kernel = -1;

/* Of the tree itself. */
struct shared_tree {
	size_t n_interfaces, n_verbs;
	int next_index, random;
	uint8_t rdma_mode;
};

struct shared_pf {
	bool autoprobe, faults[TREE_FAULTS];
	int count;
	uint16_t eswitch;
	struct tree_firmware firmware;
	struct tree_settings settings;
};

/* Read or write so many bytes, and move on. */
struct shared_file {
	int fd;
	bool is_read;
	off_t at;
};

static void pass(struct shared_file *file, void *bytes, size_t len)
{
	ssize_t n = file->is_read ? pread(file->fd, bytes, len, file->at)
				  : pwrite(file->fd, bytes, len, file->at);

	tree_need(n == (ssize_t)len, SHARED_FILE);
	file->at += n;
}

/* Returns the list, which is another one when it was read. */
static void *pass_list(struct shared_file *file, void *list, size_t n, size_t size)
{
	if (file->is_read)
		list = mem_realloc(list, n * size + 1);
	if (n > 0)
		pass(file, list, n * size);
	return list;
}

static void pass_tree(struct shared_file *file, struct host_tree *tree)
{
	struct shared_tree all = {tree->n_interfaces, tree->rdma.n_verbs, tree->next_index,
				  tree->random, tree->rdma.mode};

	pass(file, &all, sizeof(all));
	tree->n_interfaces = all.n_interfaces;
	tree->interfaces_cap = file->is_read ? all.n_interfaces : tree->interfaces_cap;
	tree->rdma.n_verbs = all.n_verbs;
	tree->next_index = all.next_index;
	tree->random = all.random;
	tree->rdma.mode = all.rdma_mode;
	tree->interfaces =
		pass_list(file, tree->interfaces, all.n_interfaces, sizeof(tree->interfaces[0]));
	tree->rdma.verbs =
		pass_list(file, tree->rdma.verbs, all.n_verbs, sizeof(tree->rdma.verbs[0]));
	for (size_t i = 0; i < all.n_interfaces; i++)
		assert(!tree->interfaces[i].info);
}

static void pass_pf(struct shared_file *file, struct pf *pf)
{
	struct shared_pf one = {.autoprobe = pf->autoprobe,
				.count = pf->count,
				.eswitch = pf->eswitch,
				.firmware = pf->firmware,
				.settings = pf->settings};

	memcpy(one.faults, pf->faults, sizeof(one.faults));
	pass(file, &one, sizeof(one));
	pf->autoprobe = one.autoprobe;
	pf->count = one.count;
	pf->eswitch = one.eswitch;
	pf->firmware = one.firmware;
	pf->settings = one.settings;
	memcpy(pf->faults, one.faults, sizeof(one.faults));
	pf->vfs = pass_list(file, pf->vfs, (size_t)one.count, sizeof(pf->vfs[0]));
}

static void pass_all(struct host_tree *tree, bool is_read)
{
	struct shared_file file = {.fd = kernel, .is_read = is_read};

	tree_need(!is_read || flock(file.fd, LOCK_EX) == 0, SHARED_FILE);
	pass_tree(&file, tree);
	for (size_t i = 0; i < tree->n_pfs; i++)
		pass_pf(&file, tree->pfs[i]);
	tree_need(is_read || flock(file.fd, LOCK_UN) == 0, SHARED_FILE);
}

static int door_write(void *ctx, int root_fd, const char *path, const char *data, size_t len,
		      struct err *err)
{
	int ret;

	pass_all(ctx, true);
	ret = host_tree_doors()->write(ctx, root_fd, path, data, len, err);
	pass_all(ctx, false);
	return ret;
}

static int door_exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
			 struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	int ret;

	pass_all(ctx, true);
	ret = host_tree_doors()->exchange(ctx, protocol, messages, n, answers, data, err);
	pass_all(ctx, false);
	return ret;
}

static int door_ethtool(void *ctx, const char *interface, void *command, struct err *err)
{
	int ret;

	pass_all(ctx, true);
	ret = host_tree_doors()->ethtool(ctx, interface, command, err);
	pass_all(ctx, false);
	return ret;
}

static int door_enter(void *ctx, int fd, struct err *err)
{
	int ret;

	pass_all(ctx, true);
	ret = host_tree_doors()->enter(ctx, fd, err);
	pass_all(ctx, false);
	return ret;
}

const struct host_doors *shared_kernel_doors(void)
{
	static struct host_doors doors;

	doors = *host_tree_doors();
	doors.write = door_write;
	doors.exchange = door_exchange;
	doors.ethtool = door_ethtool;
	doors.enter = door_enter;
	return &doors;
}

void shared_kernel_reopen(struct host_tree *tree)
{
	host_tree_reopen(tree);
	kernel = openat(tree->root, SHARED_FILE, O_RDWR | O_CLOEXEC);
	tree_need(kernel >= 0, SHARED_FILE);
}

void shared_kernel_begin(struct host_tree *tree)
{
	assert(kernel < 0);
	host_tree_bytes(tree, SHARED_FILE, "", 0);
	kernel = openat(tree->root, SHARED_FILE, O_RDWR | O_CLOEXEC);
	tree_need(kernel >= 0, SHARED_FILE);
	pass_all(tree, false);
}

void shared_kernel_end(void)
{
	(void)close(kernel);
	kernel = -1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One kernel for several processes: what no file of the tree shows is kept in one beside them. A
 * door reads it before and writes it after each request, with the file locked. Of host_tree.c's
 * doors; the rest of the folder does not notice.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/mem.h"

#define SHARED_FILE "kernel"

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
				.firmware = pf->firmware};

	memcpy(one.faults, pf->faults, sizeof(one.faults));
	pass(file, &one, sizeof(one));
	pf->autoprobe = one.autoprobe;
	pf->count = one.count;
	pf->eswitch = one.eswitch;
	pf->firmware = one.firmware;
	memcpy(pf->faults, one.faults, sizeof(one.faults));
	pf->vfs = pass_list(file, pf->vfs, (size_t)one.count, sizeof(pf->vfs[0]));
}

static void pass_all(struct host_tree *tree, bool is_read)
{
	struct shared_file file = {.fd = tree->shared, .is_read = is_read};

	if (tree->shared < 0)
		return;
	tree_need(!is_read || flock(file.fd, LOCK_EX) == 0, SHARED_FILE);
	pass_tree(&file, tree);
	for (size_t i = 0; i < tree->n_pfs; i++)
		pass_pf(&file, tree->pfs[i]);
	tree_need(is_read || flock(file.fd, LOCK_UN) == 0, SHARED_FILE);
}

void tree_lock(struct host_tree *tree)
{
	pass_all(tree, true);
}

void tree_unlock(struct host_tree *tree)
{
	pass_all(tree, false);
}

void tree_reopen_shared(struct host_tree *tree)
{
	tree->shared = openat(tree->root, SHARED_FILE, O_RDWR | O_CLOEXEC);
}

void host_tree_share(struct host_tree *tree)
{
	assert(tree->shared < 0);
	host_tree_bytes(tree, SHARED_FILE, "", 0);
	tree_reopen_shared(tree);
	tree_need(tree->shared >= 0, SHARED_FILE);
	tree_unlock(tree);
}

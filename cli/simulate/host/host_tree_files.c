// SPDX-License-Identifier: Apache-2.0
/*
 * Files of the tree: made with the folders above them, links to one file per text where many trees
 * have the same, and the folders of PCI functions. Below everything else in this folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/fs.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"

/* Until it has its name. */
#define NEW_FILE "new"

/* ---- files ----------------------------------------------------------------------------------- */

/* A disk that is full or gone: nothing that is played here would be true from now on. */
void tree_need(bool done, const char *path)
{
	if (done)
		return;
	(void)fprintf(stderr, "simulated host: cannot write %s: %s\n", path, strerror(errno));
	abort();
}

static void make_folders(struct host_tree *tree, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *folder = str_ndup(path, (size_t)(slash - path));

		tree_need(mkdirat(tree->root, folder, 0755) == 0 || errno == EEXIST, path);
	}
}

static void write_new(int folder, const char *path, const void *bytes, size_t len)
{
	auto_close int fd =
		openat(folder, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	tree_need(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, path);
}

void host_tree_bytes(struct host_tree *tree, const char *path, const void *bytes, size_t len)
{
	make_folders(tree, path);
	/* Others share the text perhaps, or read it now: in sysfs they find one or the other. */
	write_new(tree->root, NEW_FILE, bytes, len);
	tree_need(renameat(tree->root, NEW_FILE, tree->root, path) == 0, path);
}

/* ---- texts that many files have -------------------------------------------------------------- */

struct tree_texts *tree_texts_new(const char *folder)
{
	struct tree_texts *texts = mem_new(struct tree_texts);

	texts->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	tree_need(texts->folder >= 0, folder);
	texts->names.free_value = mem_free;
	return texts;
}

void tree_texts_free(struct tree_texts *texts)
{
	if (!texts)
		return;
	map_done(&texts->names);
	for (unsigned int i = 1; i <= texts->last; i++) {
		auto_free char *name = str_printf("text-%u", i);

		(void)unlinkat(texts->folder, name, 0);
	}
	(void)close(texts->folder);
	mem_free(texts);
}

/* The file that has this text; a new one where the last has as many names as can be. */
static const char *text_file(struct tree_texts *texts, const char *text, bool is_full)
{
	char *name = is_full ? NULL : map_get(&texts->names, text);

	if (name)
		return name;
	name = str_printf("text-%u", ++texts->last);
	write_new(texts->folder, name, text, strlen(text));
	map_set(&texts->names, text, name);
	return name;
}

void host_tree_file(struct host_tree *tree, const char *path, const char *text)
{
	if (tree->texts) {
		struct tree_texts *texts = tree->texts;
		int code;

		make_folders(tree, path);
		(void)unlinkat(tree->root, path, 0);
		code = linkat(texts->folder, text_file(texts, text, false), tree->root, path, 0);
		if (code < 0 && errno == EMLINK)
			code = linkat(texts->folder, text_file(texts, text, true), tree->root, path,
				      0);
		tree_need(code == 0, path);
	} else {
		host_tree_bytes(tree, path, text, strlen(text));
	}
}

void host_tree_link(struct host_tree *tree, const char *path, const char *target)
{
	make_folders(tree, path);
	(void)unlinkat(tree->root, path, 0);
	tree_need(symlinkat(target, tree->root, path) == 0, path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

void host_tree_remove(struct host_tree *tree, const char *path)
{
	auto_free char *full = str_printf("%s/%s", tree->folder, path);

	(void)nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *host_tree_read(struct host_tree *tree, const char *path)
{
	auto_strbuf struct strbuf text = {0};

	(void)fs_read(tree->root, path, 1 << 20, &text, NULL);
	return strbuf_take(&text);
}

void tree_pci_file(struct host_tree *tree, const char *address, const char *name, const char *text)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_file(tree, path, text);
}

void tree_pci_link(struct host_tree *tree, const char *address, const char *name,
		   const char *target)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_link(tree, path, target);
}

void tree_pci_remove(struct host_tree *tree, const char *address, const char *name)
{
	auto_free char *path = str_printf("sys/bus/pci/devices/%s/%s", address, name);

	host_tree_remove(tree, path);
}

/* The folder of a function below its bridges, and the link to it. path NULL: neither. */
void tree_place_function(struct host_tree *tree, const char *address, const char *path)
{
	auto_free char *folder = NULL, *link = NULL, *target = NULL;

	if (!path)
		return;
	folder = str_printf("sys/devices/%s/%s/x", path, address);
	link = str_printf("sys/bus/pci/devices/%s", address);
	target = str_printf("../../../devices/%s/%s", path, address);
	make_folders(tree, folder);
	host_tree_link(tree, link, target);
}

void tree_remove_function(struct host_tree *tree, const char *address, const char *path)
{
	auto_free char *folder = NULL, *link = NULL;

	if (!path) {
		tree_pci_remove(tree, address, "");
		return;
	}
	folder = str_printf("sys/devices/%s/%s", path, address);
	link = str_printf("sys/bus/pci/devices/%s", address);
	host_tree_remove(tree, folder);
	host_tree_remove(tree, link);
}

void tree_put_numa(struct host_tree *tree, const char *address, int numa)
{
	auto_free char *text = str_printf("%d\n", numa);

	tree_pci_file(tree, address, "numa_node", text);
}

void host_tree_add_gpu(struct host_tree *tree, const struct tree_gpu *gpu, const char *address,
		       const char *path, int numa)
{
	auto_free char *class = str_printf("0x%s\n", gpu->class);
	auto_free char *vendor = str_printf("0x%s\n", gpu->vendor);
	auto_free char *device = str_printf("0x%s\n", gpu->device);
	auto_free char *card = str_printf("drm/card%d/x", tree->n_gpus++);

	tree_place_function(tree, address, path);
	tree_pci_file(tree, address, "class", class);
	tree_pci_file(tree, address, "vendor", vendor);
	tree_pci_file(tree, address, "device", device);
	tree_put_numa(tree, address, numa);
	tree_pci_file(tree, address, card, "");
	if (str_eq(gpu->vendor, "10de")) {
		auto_free char *file =
			str_printf("proc/driver/nvidia/gpus/%s/information", address);
		auto_free char *text = str_printf("Model: \t\t NVIDIA\n"
						  "GPU UUID: \t " TREE_GPU_UUID "\n"
						  "Bus Type: \t PCIe\n",
						  address);

		host_tree_file(tree, file, text);
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Files are compared with /sys and only what differs is made or removed; each is made under a
 * draft's name and renamed. A worker calls it after a device moved, the keeper of all from time to
 * time; two that meet begin again.
 */
#include "nodeagent/cni/execute/rdma_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/pci_address.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/model/rdma_folder.h"

/* Of one that meets others at the same folder. */
enum { TRIES = 100 };

/* Of uverbs*; of umad* and issm*. */
static const char *const classes[] = {"infiniband_verbs", "infiniband_mad"};

/* As the kernel makes them in /dev: who may talk to a subnet manager is root's business. */
static mode_t mode_of(const char *name)
{
	return S_IFCHR | (str_starts(name, "uverbs") ? 0666 : 0600);
}

/* The number that /sys tells, "231:194"; false when it tells none. */
static bool number_of(const struct host *host, const char *address, const char *class,
		      const char *name, dev_t *ret)
{
	auto_free char *path = str_printf("%s/%s/dev", class, name);
	struct pci_path whole = pci_path(address, path);
	struct sysfs_text text;
	unsigned int high, low;

	if (!sysfs_read(host, whole.text, &text) ||
	    sscanf(text.text, "%u:%u", &high, &low) != 2) /* NOLINT(cert-err34-c): the kernel's */
		return false;
	*ret = makedev(high, low);
	return true;
}

static bool is_so(int dir, const char *name, dev_t number)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mode == mode_of(name) &&
	       st.st_rdev == number;
}

/* Beside the function's folder: all that is in that goes to containers. New. */
static char *draft_of(const char *address)
{
	return str_printf(".%s.draft", address);
}

/*
 * A name is never missing, and never half made. EEXIST, ENOENT: somebody else uses the draft. all:
 * the folder of drafts.
 */
static int put_file(int all, const char *address, int dir, const char *name, dev_t number)
{
	auto_free char *draft = draft_of(address);

	if (is_so(dir, name, number))
		return 0;
	(void)unlinkat(all, draft, 0);
	if (mknodat(all, draft, mode_of(name), number) < 0 ||
	    fchmodat(all, draft, mode_of(name) & 07777, 0) < 0 ||
	    renameat(all, draft, dir, name) < 0)
		return -1;
	errno = EEXIST;
	return is_so(dir, name, number) ? 0 : -1;
}

/* Make what there is; `names` has it afterwards. */
static int put_all(const struct host *host, const char *address, int all, int dir, json_t *names)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct pci_path path = pci_path(address, classes[i]);
		json_auto_t *list = sysfs_list(host, path.text);
		const json_t *item;
		size_t k;

		json_array_foreach (list, k, item) {
			const char *name = json_string_value(item);
			dev_t number;

			if (!number_of(host, address, classes[i], name, &number))
				continue;
			if (put_file(all, address, dir, name, number) < 0)
				return -1;
			json_put_bool(names, name, true);
		}
	}
	return 0;
}

static char *folder_of(const char *address)
{
	return str_printf(RDMA_FOLDER "/%s", address);
}

/* Names that are not among `names`; NULL: all, and the folder. */
static void remove_others(const struct host *host, const char *address, const json_t *names)
{
	auto_free char *folder = folder_of(address);
	auto_close int dir = root_open(host->root, folder, O_RDONLY | O_DIRECTORY, 0);
	json_auto_t *there = sysfs_list(host, folder + 1);
	const json_t *item;
	size_t i;

	json_array_foreach (there, i, item)
		if (!json_at(names, json_string_value(item)))
			(void)unlinkat(dir, json_string_value(item), 0);
	if (names)
		return;
	own_close_p(&dir);
	dir = root_open(host->root, RDMA_FOLDER, O_RDONLY | O_DIRECTORY, 0);
	(void)unlinkat(dir, address, AT_REMOVEDIR);
}

static bool has_files(const struct host *host, const char *address)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct pci_path path = pci_path(address, classes[i]);
		json_auto_t *list = sysfs_list(host, path.text);

		if (json_array_size(list) > 0)
			return true;
	}
	return false;
}

static int keep_files(const struct host *host, const char *address)
{
	auto_free char *folder = folder_of(address), *draft = draft_of(address);
	json_auto_t *names = json_object();
	auto_close int dir = -1, all = -1;

	if (!has_files(host, address)) {
		remove_others(host, address, NULL);
		all = root_open(host->root, RDMA_FOLDER, O_RDONLY | O_DIRECTORY, 0);
		(void)unlinkat(all, draft, 0);
		return 0;
	}
	if (root_make_dirs(host->root, folder, 0755) < 0)
		return -1;
	all = root_open(host->root, RDMA_FOLDER, O_RDONLY | O_DIRECTORY, 0);
	dir = root_open(host->root, folder, O_RDONLY | O_DIRECTORY, 0);
	if (all < 0 || dir < 0 || put_all(host, address, all, dir, names) < 0)
		return -1;
	/* What a crash has left: one that another is making comes again. */
	(void)unlinkat(all, draft, 0);
	remove_others(host, address, names);
	return 0;
}

/*
 * Workers and the keeper come when a device has moved, at the same time: whoever met another looks
 * once more. No lock: one that hangs in /sys would stop all others.
 */
int rdma_files_keep(const struct host *host, const char *address, struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		if (keep_files(host, address) == 0)
			return 0;
		if (errno != EEXIST && errno != ENOENT)
			break;
	}
	return err_sys(err, "RdmaFilesStale", "keep the device files of %s in " RDMA_FOLDER,
		       address);
}

/* {PCI address: true} of functions that have such files; new. */
static json_t *functions_with_files(const struct host *host)
{
	json_t *found = json_object();

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		auto_free char *class = str_printf("sys/class/%s", classes[i]);
		json_auto_t *names = sysfs_list(host, class);
		const json_t *name;
		size_t k;

		json_array_foreach (names, k, name) {
			auto_free char *link =
				str_printf("%s/%s/device", class, json_string_value(name));
			struct sysfs_text parent;

			if (sysfs_link(host, link, &parent) && pci_address_is_valid(parent.text))
				json_put_bool(found, parent.text, true);
		}
	}
	return found;
}

int rdma_files_keep_all(const struct host *host, struct err *err)
{
	json_auto_t *addresses = functions_with_files(host),
		    *folders = sysfs_list(host, &RDMA_FOLDER[1]);
	const char *address;
	json_t *item;
	size_t i;
	int rc = 0;

	json_array_foreach (folders, i, item)
		if (pci_address_is_valid(json_string_value(item)))
			json_put_bool(addresses, json_string_value(item), true);
	json_each (addresses, address, item)
		if (rdma_files_keep(host, address, rc == 0 ? err : NULL) < 0)
			rc = -1;
	return rc;
}

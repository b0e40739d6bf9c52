// SPDX-License-Identifier: Apache-2.0
/*
 * Programs are told apart by a mark in their bytes. profile_keeper.c looks, asks
 * nodeagent/cni/plan/profile.c what each name should be, and calls the two functions that bring it
 * about; the first name is written, the others become links to it.
 */
#include "nodeagent/cni/state/install.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/plugin/plugin.h"

const char *const install_names[] = {
	"orbweaver-cni", "spiderpool",  "coordinator", "sriov",  "ib-sriov", "rdma",       "ipoib",
	"orbweaver",     "macvlan",     "ipvlan",      "vlan",   "static",   "host-local", "bridge",
	"tuning",        "host-device", "dummy",       "ifacer", "loopback"};
const size_t install_n_names = ARRAY_LEN(install_names);

#define DRAFT ".orbweaver-cni.draft"

/*
 * Of a plugin of ours, which has 60 to 200 KB. Larger ones are another program's and are not read:
 * a Go program has 2 MB and more, and a worker looks for each NIC whose it is.
 */
enum { PROGRAM_MAX = 1 << 20 };

enum owner { OWNER_NOBODY, OWNER_OURS, OWNER_OTHER };

/* *ret_same: it is `program` to the byte. */
static enum owner look_at(int dir, const char *name, const struct strbuf *program, bool *ret_same)
{
	auto_strbuf struct strbuf text = {0};
	struct stat st;

	*ret_same = false;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return OWNER_NOBODY;
	if (!S_ISREG(st.st_mode) || st.st_size > PROGRAM_MAX ||
	    fs_read(dir, name, PROGRAM_MAX, &text, NULL) < 0)
		return OWNER_OTHER;
	*ret_same = program && text.len == program->len && (st.st_mode & 0111) == 0111 &&
		    memcmp(text.data, program->data, text.len) == 0;
	return text.len > 0 && memmem(text.data, text.len, PLUGIN_MARK, strlen(PLUGIN_MARK))
		       ? OWNER_OURS
		       : OWNER_OTHER;
}

static bool name_exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A copy under another name, whatever it is: the name itself is never missing. */
static int keep_other(int dir, const char *name, struct err *err)
{
	auto_free char *saved = str_printf("%s" INSTALL_SAVED, name);

	if (name_exists(dir, saved))
		return 0;
	if (linkat(dir, name, dir, saved, 0) < 0)
		return err_sys(err, "PluginsNotInstalled", "keep %s as %s", name, saved);
	log_warn("a plugin of another program had a name of ours; it is kept, and comes back when "
		 "the profile changes",
		 F_STR("name", name), F_STR("kept", saved));
	return 0;
}

static int write_draft(int dir, const struct strbuf *program)
{
	auto_close int fd = -1;
	size_t at = 0;
	char path[32], label[256];
	ssize_t len;

	(void)unlinkat(dir, DRAFT, 0);
	fd = openat(dir, DRAFT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
	if (fd < 0)
		return -1;
	while (at < program->len) {
		ssize_t n = write(fd, program->data + at, program->len - at);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	/*
	 * Where the folder's files have a label, a new one has the same; where they have none it
	 * does not matter.
	 */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	len = getxattr(path, "security.selinux", label, sizeof(label));
	if (len > 0)
		(void)fsetxattr(fd, "security.selinux", label, (size_t)len, 0);
	return fchmod(fd, 0755) < 0 || fsync(fd) < 0 ? -1 : 0;
}

static int open_folder(int root, const char *bin_dir, struct err *err)
{
	int dir = -1;

	if (root_make_dirs(root, bin_dir, 0755) == 0)
		dir = root_open(root, bin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return dir < 0 ? err_sys(err, "PluginsNotInstalled",
				 "open %s: is it read-only? Name another folder by --cni-bin-dir",
				 bin_dir)
		       : dir;
}

json_t *install_look(int root, const char *bin_dir)
{
	static const char *const owners[] = {
		[OWNER_NOBODY] = "nobody", [OWNER_OURS] = "ours", [OWNER_OTHER] = "other"};
	auto_close int dir = root_open(root, bin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	json_t *list = json_array();

	for (size_t i = 0; i < install_n_names; i++) {
		const char *name = install_names[i];
		auto_free char *saved = str_printf("%s" INSTALL_SAVED, name);
		bool is_same, is_for_all = str_eq(name, "loopback");

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:b, s:b}", "name", name, "owner",
						owners[look_at(dir, name, NULL, &is_same)], "saved",
						name_exists(dir, saved), "common",
						attach_is_common(name) || is_for_all, "forAll",
						is_for_all));
	}
	return list;
}

/* The meta plugin's file, which has other names, too (install_plugins()): it need not be read. */
static bool is_file_of_ours(int dir, const struct stat *st)
{
	struct stat ours;

	return fstatat(dir, "orbweaver", &ours, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == st->st_dev && ours.st_ino == st->st_ino;
}

bool install_is_other(int root, const char *path, const char *name)
{
	auto_free char *copy = str_dup(path);
	char *rest = copy, *folder;
	bool is_seen = false;

	while ((folder = strsep(&rest, ":"))) {
		auto_close int dir =
			*folder ? root_open(root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
				: -1;
		auto_free char *file = str_below(folder, name);
		struct stat st;
		bool is_same;

		is_seen |= dir >= 0;
		/* As the runtime looks for it: what a link leads to counts, a folder does not. */
		if (dir < 0 || root_stat(root, file, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		return !is_file_of_ours(dir, &st) &&
		       look_at(dir, name, NULL, &is_same) == OWNER_OTHER;
	}
	return !is_seen;
}

int install_plugins(int root, const char *bin_dir, const char *program, const json_t *names,
		    struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	auto_close int dir = -1;
	const char *like = NULL;
	bool has_changed = false;
	const json_t *item;
	size_t i;

	assert(root >= 0 && program);
	if (json_array_size(names) == 0)
		return 0;
	dir = open_folder(root, bin_dir, err);
	if (dir < 0)
		return -1;
	if (fs_read(AT_FDCWD, program, PROGRAM_MAX, &text, err) < 0)
		return err_in(err, "install %s", program);
	json_array_foreach ((json_t *)names, i, item) {
		const char *name = json_string_value(item);
		bool is_same;
		enum owner owner = look_at(dir, name, &text, &is_same);

		if (!is_same) {
			bool is_linked = false;

			if (owner == OWNER_OTHER && keep_other(dir, name, err) < 0)
				return -1;
			/* The first is written; the others are links to the same file. */
			if (like) {
				(void)unlinkat(dir, DRAFT, 0);
				is_linked = linkat(dir, like, dir, DRAFT, 0) == 0;
			}
			if ((!is_linked && write_draft(dir, &text) < 0) ||
			    renameat(dir, DRAFT, dir, name) < 0)
				return err_sys(err, "PluginsNotInstalled", "write %s", name);
			has_changed = true;
		}
		if (!like)
			like = name;
	}
	if (!has_changed)
		return 0;
	log_info("CNI plugins installed", F_STR("folder", bin_dir));
	return fsync(dir) < 0 ? err_sys(err, "PluginsNotInstalled", "sync %s", bin_dir) : 0;
}

static int restore_name(int dir, const char *name, struct err *err)
{
	auto_free char *saved = str_printf("%s" INSTALL_SAVED, name);
	bool is_same;
	enum owner owner = look_at(dir, name, NULL, &is_same);

	if (owner == OWNER_OTHER)
		return 0;
	if (name_exists(dir, saved) ? renameat(dir, saved, dir, name) < 0
				    : owner == OWNER_OURS && unlinkat(dir, name, 0) < 0)
		return err_sys(err, "PluginsNotInstalled", "remove %s", name);
	return 0;
}

int install_restore(int root, const char *bin_dir, const json_t *names, struct err *err)
{
	auto_close int dir = -1;
	const json_t *item;
	size_t i;

	assert(root >= 0);
	if (json_array_size(names) == 0)
		return 0;
	dir = root_open(root, bin_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return errno == ENOENT ? 0
				       : err_sys(err, "PluginsNotInstalled", "open %s", bin_dir);
	json_array_foreach ((json_t *)names, i, item)
		if (restore_name(dir, json_string_value(item), err) < 0)
			return -1;
	log_info("CNI plugins taken away", F_STR("folder", bin_dir),
		 F_INT("names", (int64_t)json_array_size(names)));
	return fsync(dir) < 0 ? err_sys(err, "PluginsNotInstalled", "sync %s", bin_dir) : 0;
}

int install_remove(int root, const char *bin_dir, struct err *err)
{
	json_auto_t *names = json_array();

	for (size_t i = 0; i < install_n_names; i++)
		json_array_append_new(names, json_string(install_names[i]));
	return install_restore(root, bin_dir, names, err);
}

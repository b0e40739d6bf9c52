// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and reads the files; upstream_state.c says what they mean. attachment.c asks on a DEL of
 * which it has no record, and on an ADD whose device another plugin gave to a pod that is gone. A
 * file goes with the DEL that used it.
 */
#include "nodeagent/cni/state/legacy_state.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/netns_life.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/upstream_state.h"

/* ---- files ----------------------------------------------------------------------------------- */

/* Opened for reading; -1 with errno, and err where that says nothing. */
static int open_kept(int folder, const char *path, struct err *err)
{
	int fd = root_open(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

	if (fd < 0 && err_is_unknown(errno))
		(void)err_sys(err, "FileUnreadable", "open %s", path);
	return fd;
}

/* The text of an open file; false when it is no file or too long, and when err says why. */
static bool read_text(int fd, struct strbuf *ret, struct err *err)
{
	auto_free char *path = str_printf("/proc/self/fd/%d", fd);
	struct err why = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (fs_read(AT_FDCWD, path, UPSTREAM_STATE_MAX, ret, &why) == 0)
		return true;
	if (err && why.class != ERR_INVALID)
		*err = why;
	return false;
}

static json_t *read_json(int fd, struct err *err)
{
	auto_strbuf struct strbuf text = {0};

	return read_text(fd, &text, err) ? json_parse(strbuf_str(&text), text.len, NULL) : NULL;
}

static json_t *state_of(const char *plugin, const char *path, const json_t *kept)
{
	struct err err = {0};
	json_t *saved = upstream_state_read(plugin, kept, &err);

	if (!saved)
		log_warn("an interface that another plugin attached stays as it is",
			 F_STR("file", path), F_ERR(&err));
	return saved;
}

json_t *legacy_state_read(int root, const char *container, const struct sandbox_key *key,
			  struct err *err)
{
	auto_free char *path =
		upstream_state_path(key->plugin, key->network, container, key->ifname);
	auto_close int fd = path ? open_kept(root, path, err) : -1;
	json_auto_t *kept = NULL;
	struct err why = {0};

	if (fd < 0)
		return NULL;
	kept = read_json(fd, &why);
	if (!why.class)
		return state_of(key->plugin, path, kept);
	if (err)
		*err = why;
	return NULL;
}

static char *owner_path(const char *device)
{
	return str_printf(UPSTREAM_SRIOV_OWNER "/%s", device);
}

void legacy_state_forget(int root, const char *container, const struct sandbox_key *key,
			 const char *device)
{
	auto_free char *path =
		upstream_state_path(key->plugin, key->network, container, key->ifname);
	auto_free char *owner = device && str_eq(key->plugin, "sriov") ? owner_path(device) : NULL;

	if (owner)
		(void)root_remove(root, owner);
	if (path)
		(void)root_remove(root, path);
}

/* ---- who has a device ------------------------------------------------------------------------ */

/*
 * The newest file of a configuration with this device: one that was left may be there, too. NULL
 * with err: it cannot be known.
 */
static json_t *find_kept(int root, const char *device, char **ret_name, struct err *err)
{
	auto_close int fd = open_kept(root, UPSTREAM_SRIOV_DIR, err);
	auto_closedir DIR *dir = fd >= 0 ? fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0)) : NULL;
	const struct dirent *entry;
	struct timespec newest = {0};
	json_t *found = NULL;

	if (fd >= 0 && !dir)
		(void)err_sys(err, "FileUnreadable", "list " UPSTREAM_SRIOV_DIR);
	while (dir && (entry = readdir(dir))) {
		auto_close int file =
			openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
		json_auto_t *kept = NULL;
		struct stat st;

		if (file < 0 && err_is_unknown(errno))
			(void)err_sys(err, "FileUnreadable", "open %s", entry->d_name);
		kept = read_json(file, err);
		if (!str_eq(json_str_at(kept, "deviceID"), device) || fstat(file, &st) < 0 ||
		    (found &&
		     (st.st_mtim.tv_sec < newest.tv_sec ||
		      (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec))))
			continue;
		newest = st.st_mtim;
		json_decref(found);
		found = take_ptr(kept);
		free(*ret_name);
		*ret_name = str_dup(entry->d_name);
	}
	return found;
}

static void add_kept(json_t *holder, int root, const char *device, struct err *err)
{
	auto_free char *name = NULL;
	json_auto_t *kept = find_kept(root, device, &name, err);
	size_t len;

	if (!kept)
		return;
	assert(name);
	/* CONTAINER-IFNAME; ids of containers have no dash. */
	len = strcspn(name, "-");
	if (!name[len])
		return;
	json_put(holder, "container", json_stringn(name, len));
	json_put_str(holder, "plugin", "sriov");
	json_put_str(holder, "network", json_str_or(json_at(kept, "name"), ""));
	json_put_str(holder, "ifname", name + len + 1);
	json_put(holder, "saved", state_of("sriov", name, kept));
	json_put(holder, "config", json_incref(kept));
}

json_t *legacy_state_holder(int root, const char *device, struct err *err)
{
	struct err why = {0};
	auto_free char *owner = owner_path(device);
	auto_close int fd = open_kept(root, owner, &why);
	auto_strbuf struct strbuf netns = {0};
	struct netns_known known = {0};
	json_auto_t *holder = NULL;

	if (read_text(fd, &netns, &why)) {
		holder = json_object();
		strbuf_cut(&netns, strcspn(strbuf_str(&netns), "\n"));
		known.path = strbuf_str(&netns);
		json_put_bool(holder, "lives", netns_life(root, &known, NULL) != NETNS_GONE);
		add_kept(holder, root, device, &why);
	}
	if (!why.class)
		return take_ptr(holder);
	(void)err_set(err, ERR_TRANSIENT, "DeviceNotClaimed", "who has %s cannot be known now: %s",
		      device, why.text);
	return NULL;
}

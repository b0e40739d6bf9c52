// SPDX-License-Identifier: Apache-2.0
/*
 * Finds and reads the files; upstream_state.c says what they mean. attachment.c asks on a DEL of
 * which it has no record, and on an ADD whose device another plugin gave to a pod that is gone. A
 * file goes with the DEL that used it.
 */
#include "nodeagent/cni/state/legacy_state.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/upstream_state.h"
#include "nodeagent/netlink/netns_life.h"

/* ---- files ----------------------------------------------------------------------------------- */

/* The text of an open file; false when it is no file or too long. */
static bool read_text(int fd, struct strbuf *ret)
{
	auto_free char *path = str_printf("/proc/self/fd/%d", fd);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fs_read(AT_FDCWD, path, UPSTREAM_STATE_MAX, ret, NULL) == 0;
}

static json_t *read_json(int fd)
{
	auto_strbuf struct strbuf text = {0};

	return read_text(fd, &text) ? json_parse(strbuf_str(&text), text.len, NULL) : NULL;
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

json_t *legacy_state_read(int root, const char *container, const struct sandbox_key *key)
{
	auto_free char *path =
		upstream_state_path(key->plugin, key->network, container, key->ifname);
	auto_close int fd = path ? root_open(root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0) : -1;
	json_auto_t *kept = NULL;

	if (fd < 0)
		return NULL;
	kept = read_json(fd);
	return state_of(key->plugin, path, kept);
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

/* The newest file of a configuration with this device: one that was left may be there, too. */
static json_t *find_kept(int root, const char *device, char **ret_name)
{
	auto_close int fd =
		root_open(root, UPSTREAM_SRIOV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	auto_closedir DIR *dir = fd >= 0 ? fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0)) : NULL;
	const struct dirent *entry;
	struct timespec newest = {0};
	json_t *found = NULL;

	while (dir && (entry = readdir(dir))) {
		auto_close int file =
			openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
		json_auto_t *kept = read_json(file);
		struct stat st;

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

static void add_kept(json_t *holder, int root, const char *device)
{
	auto_free char *name = NULL;
	json_auto_t *kept = find_kept(root, device, &name);
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

json_t *legacy_state_holder(int root, const char *device)
{
	auto_free char *owner = owner_path(device);
	auto_close int fd = root_open(root, owner, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	auto_strbuf struct strbuf netns = {0};
	struct netns_known known = {0};
	json_t *holder;

	if (fd < 0 || !read_text(fd, &netns))
		return NULL;
	holder = json_object();
	strbuf_cut(&netns, strcspn(strbuf_str(&netns), "\n"));
	known.path = strbuf_str(&netns);
	json_put_bool(holder, "lives", netns_life(root, &known, NULL) != NETNS_GONE);
	add_kept(holder, root, device);
	return holder;
}

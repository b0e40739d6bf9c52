// SPDX-License-Identifier: Apache-2.0
/*
 * Read, change in memory, replace, all under a lock on the file that is replaced: whoever waited
 * for it opens the name again. Two files per sandbox at most: the current one, and the last that
 * was synced while the current one is not.
 *
 * A worker asks for its sandbox many times: what was read or written last is kept while the file
 * has not been replaced.
 */
#include "nodeagent/cni/state/sandboxes.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/atomic_file.h"
#include "nodeagent/cni/state/boot_id.h"

#define FOLDER   "sandboxes"
#define SUFFIX   ".json"
#define VERSION  1
#define UNSYNCED "unsynced" /* in the file; absent: it was synced */

static char *path_of(const char *container)
{
	return str_printf(FOLDER "/%s" SUFFIX, container);
}

/*
 * The file as it last was synced, while one is in its place that was not: that one says so by
 * UNSYNCED. Beside one that was synced it may be older, and nobody reads it.
 */
static char *synced_path_of(const char *container)
{
	return str_printf(FOLDER "/.%s" SUFFIX ".synced", container);
}

/* ---- what was read or written last ----------------------------------------------------------- */

static void close_later(struct sandboxes *state, int fd)
{
	if (fd <= 0)
		return;
	if (state->n_replaced == ARRAY_LEN(state->replaced))
		(void)close(state->replaced[--state->n_replaced]);
	state->replaced[state->n_replaced++] = fd;
}

/* fd is taken. What is not written yet stays before what is known of others. */
static void keep_sandbox(struct sandboxes *state, const char *container, int fd, json_t *sandbox)
{
	struct stat file;

	if (state->kept.written && !str_eq(state->kept.container, container)) {
		close_later(state, fd);
		return;
	}
	str_replace(&state->kept.container, str_dup(container));
	close_later(state, state->kept.fd);
	json_decref(state->kept.sandbox);
	json_decref(take_ptr(state->kept.written));
	if (fd <= 0 || fstat(fd, &file) < 0)
		memset(&file, 0, sizeof(file));
	state->kept.fd = fd;
	state->kept.device = file.st_dev;
	state->kept.inode = file.st_ino;
	state->kept.sandbox = json_incref(sandbox);
}

/* Newer than the file, taken. */
static void keep_later(struct sandboxes *state, json_t *sandbox)
{
	if (state->kept.written)
		json_decref(state->kept.sandbox);
	else
		state->kept.written = state->kept.sandbox;
	state->kept.sandbox = sandbox;
}

/* Its content, new, where it is this file's; NULL: it is not known. */
static json_t *kept_of(const struct sandboxes *state, const struct stat *file)
{
	bool is_same = state->kept.inode == file->st_ino && state->kept.device == file->st_dev;

	return state->kept.inode && is_same ? json_incref(state->kept.sandbox) : NULL;
}

/* As much of it anew as a change may touch: others have what they read. */
static json_t *copy_for_change(json_t *sandbox)
{
	json_t *copy = json_copy(sandbox), *records = json_array(), *record;
	size_t i;

	json_array_foreach (json_at(sandbox, "attachments"), i, record)
		json_array_append_new(records, json_copy(record));
	json_put(copy, "attachments", records);
	json_put(copy, "netns", json_deep_copy(json_at(sandbox, "netns")));
	json_decref(sandbox);
	return copy;
}

static json_t *find_same(const json_t *sandbox, const json_t *record)
{
	return sandbox_find(sandbox, &(struct sandbox_key){json_str_at(record, "plugin"),
							   json_str_at(record, "network"),
							   json_str_at(record, "ifname")});
}

/*
 * Another process has replaced the file, as a plugin does that is called within a call: `sandbox`
 * is what it has by now. The same with the records that are left for later, new; NULL: none are.
 */
static json_t *with_later(const struct sandboxes *state, const char *container,
			  const json_t *sandbox)
{
	json_t *ret, *records, *record;
	size_t i;

	if (!sandbox || sandbox == state->kept.sandbox || !state->kept.written ||
	    !str_eq(state->kept.container, container))
		return NULL;
	ret = json_copy((json_t *)sandbox);
	records = json_array();
	json_array_foreach (json_at(sandbox, "attachments"), i, record) {
		json_t *before = find_same(state->kept.written, record);
		json_t *later = find_same(state->kept.sandbox, record);

		if (later || !before)
			json_array_append(records,
					  later && !json_equal(later, before) ? later : record);
	}
	json_array_foreach (json_at(state->kept.sandbox, "attachments"), i, record)
		if (!find_same(sandbox, record) && !find_same(state->kept.written, record))
			json_array_append(records, record);
	json_put(ret, "attachments", records);
	return ret;
}

void sandboxes_done(struct sandboxes *state)
{
	assert(state);
	json_decref(take_ptr(state->kept.written));
	keep_sandbox(state, "", 0, NULL);
	mem_free(state->kept.container);
	while (state->n_replaced > 0)
		(void)close(state->replaced[--state->n_replaced]);
	if (state->dir >= 0)
		(void)close(state->dir);
}

/* ---- reading --------------------------------------------------------------------------------- */

json_t *sandbox_parse(const char *text, size_t len, struct err *err)
{
	json_auto_t *sandbox = json_parse(text, len, err);
	const json_t *attachments = json_at(sandbox, "attachments");
	const json_t *version = json_at(sandbox, "version"), *attachment;
	size_t i;

	if (!sandbox)
		return NULL;
	/* Before anything else: the rest may be anything then. */
	if (version && (!json_is_integer(version) || json_integer_value(version) > VERSION)) {
		(void)err_set(err, ERR_HOST, "SandboxTooNew",
			      "a newer agent wrote it (version %lld, this one reads up to %d): "
			      "install that agent again, and delete the node's pods that have "
			      "networks before a downgrade",
			      (long long)json_integer_value(version), VERSION);
		return NULL;
	}
	if (!json_is_array(attachments) || !json_str_at(sandbox, "container")) {
		(void)err_set(err, ERR_INVALID, "BadSandbox", "has no container or no attachments");
		return NULL;
	}
	json_array_foreach ((json_t *)attachments, i, attachment) {
		if (json_str_at(attachment, "plugin") && json_str_at(attachment, "network") &&
		    json_str_at(attachment, "ifname"))
			continue;
		(void)err_set(err, ERR_INVALID, "BadSandbox",
			      "attachments[%zu] has no plugin, network or ifname", i);
		return NULL;
	}
	return take_ptr(sandbox);
}

/* *ret is new; NULL: the file is empty, as one is that a crash left right after it was made. */
static int read_file(int fd, json_t **ret, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	char path[32];

	/* By its descriptor: the name may be another file's by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fs_read(AT_FDCWD, path, SANDBOX_MAX, &text, err) < 0)
		return -1;
	*ret = NULL;
	if (text.len == 0)
		return 0;
	*ret = sandbox_parse(text.data, text.len, err);
	return *ret ? 0 : -1;
}

/* No disk, no descriptors: what is in the file is not known. Else it is known to be no sandbox. */
static bool is_unknown(const struct err *err)
{
	return err->class != ERR_INVALID;
}

static bool is_cut_off(const struct err *err)
{
	return !is_unknown(err) && !str_eq(err->reason, "FileTooLarge");
}

/* *ret: new; NULL: there is none, or it is no sandbox. -1: it cannot be known. */
static int read_synced(struct sandboxes *state, const char *container, json_t **ret,
		       struct err *err)
{
	auto_free char *path = synced_path_of(container);
	auto_close int fd = openat(state->dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct err why = {0};

	*ret = NULL;
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "SandboxUnreadable", "open %s", path);
	if (read_file(fd, ret, &why) == 0 || !is_unknown(&why))
		return 0;
	if (err)
		*err = why;
	return -1;
}

/*
 * read_file(); what a power cut left of a file that was not synced is empty, or half of it: the one
 * before it then.
 */
static int read_either(struct sandboxes *state, const char *container, int fd, json_t **ret,
		       struct err *err)
{
	struct err why = {0};
	int rc = read_file(fd, ret, &why);

	if (rc == 0 && *ret)
		return 0;
	/* What is there may be newer and whole. */
	if (rc < 0 && !is_cut_off(&why)) {
		if (err)
			*err = why;
		return -1;
	}
	if (read_synced(state, container, ret, err) < 0)
		return -1;
	if (*ret)
		json_put_bool(*ret, UNSYNCED, true);
	if (rc == 0 || *ret)
		return 0;
	if (err)
		*err = why;
	return -1;
}

json_t *sandbox_read(struct sandboxes *state, const char *container, struct err *err)
{
	auto_free char *path = path_of(container);
	struct stat file = {0};
	json_t *sandbox = fstatat(state->dir, path, &file, AT_SYMLINK_NOFOLLOW) == 0
				  ? kept_of(state, &file)
				  : NULL;
	auto_close int fd = -1;
	json_t *later;

	if (sandbox)
		return sandbox;
	fd = openat(state->dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0)
		(void)err_sys(err, "SandboxUnreadable", "open %s", path);
	else if (read_either(state, container, fd, &sandbox, err) < 0)
		(void)err_in(err, "%s", path);
	if (!sandbox)
		return NULL;
	later = with_later(state, container, sandbox);
	keep_sandbox(state, container, take_fd(&fd), sandbox);
	if (later) {
		keep_later(state, json_incref(later));
		json_replace(&sandbox, later);
	}
	return sandbox;
}

int sandbox_load(struct sandboxes *state, const char *container, json_t **ret, struct err *err)
{
	struct err why = {0};

	assert(state && ret);
	*ret = sandbox_read(state, container, &why);
	if (*ret || why.class == ERR_NONE || !is_unknown(&why))
		return 0;
	return err_set(err, ERR_HOST, "SandboxUnreadable", "%s", why.text);
}

json_t *sandbox_find(const json_t *sandbox, const struct sandbox_key *key)
{
	json_t *attachment;
	size_t i;

	json_array_foreach (json_at(sandbox, "attachments"), i, attachment)
		if (str_eq(json_str_at(attachment, "plugin"), key->plugin) &&
		    str_eq(json_str_at(attachment, "network"), key->network) &&
		    str_eq(json_str_at(attachment, "ifname"), key->ifname))
			return attachment;
	return NULL;
}

json_t *sandboxes_list(struct sandboxes *state, struct err *err)
{
	auto_close int fd = openat(state->dir, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd >= 0 ? fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0)) : NULL;
	json_auto_t *set = json_object();
	json_t *list;
	const struct dirent *entry;
	auto_free char *text = NULL;

	if (!dir && (fd >= 0 || errno != ENOENT)) {
		(void)err_sys(err, "StateUnusable", "open %s", FOLDER);
		return NULL;
	}
	while (errno = 0, dir && (entry = readdir(dir))) {
		auto_free char *name = NULL;

		if (entry->d_name[0] == '.' || !str_ends(entry->d_name, SUFFIX))
			continue;
		name = str_ndup(entry->d_name, strlen(entry->d_name) - strlen(SUFFIX));
		json_put_bool(set, name, true);
	}
	if (errno) {
		(void)err_sys(err, "StateUnusable", "read %s", FOLDER);
		return NULL;
	}
	/* Sorted, so that what happens at a start does not hang on the file system. */
	text = json_text(set);
	json_decref(set);
	set = json_parse(text, strlen(text), NULL);
	list = json_array();
	for (void *at = json_object_iter(set); at; at = json_object_iter_next(set, at))
		json_array_append_new(list, json_string(json_object_iter_key(at)));
	return list;
}

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Open and lock the file of that name, made when it is missing. Whoever had the lock before may
 * have replaced or removed it: then once more.
 */
static int open_locked(struct sandboxes *state, const char *path, struct stat *ret)
{
	for (;;) {
		auto_close int fd =
			openat(state->dir, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		struct stat now;

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, ret) < 0)
			return -1;
		if (fstatat(state->dir, path, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		    now.st_dev == ret->st_dev && now.st_ino == ret->st_ino)
			return take_fd(&fd);
	}
}

/*
 * The file was synced and is to be replaced by one that is not: its second name, in the place of an
 * older one. Journals keep the order: with the rename that follows this is there, too. Whoever
 * syncs takes nothing away here, for the lock is the old file's, and the next has come by then.
 */
static int keep_synced(struct sandboxes *state, const char *container)
{
	auto_free char *path = path_of(container), *synced = synced_path_of(container);
	auto_free char *draft = str_printf("%s" ATOMIC_FILE_SUFFIX, synced);

	(void)unlinkat(state->dir, draft, 0);
	if (linkat(state->dir, path, state->dir, draft, 0) < 0)
		return errno == ENOENT ? 0 : -1; /* it was put aside */
	if (renameat(state->dir, draft, state->dir, synced) < 0)
		return -1;
	/* Both names were one file: then a rename does nothing. */
	(void)unlinkat(state->dir, draft, 0);
	return 0;
}

/* Replace the file, whose last synced content, if it has any, a power cut must not take along. */
static int write_file(struct sandboxes *state, const char *container, json_t *sandbox, bool is_new,
		      bool sync)
{
	auto_free char *name = str_printf("%s" SUFFIX, container);
	auto_strbuf struct strbuf text = {0};
	int fd = -1, rc;

	if (sync)
		(void)json_object_del(sandbox, UNSYNCED);
	else if (!is_new && !json_at(sandbox, UNSYNCED) && keep_synced(state, container) < 0)
		return -1;
	else
		json_put_bool(sandbox, UNSYNCED, true);
	json_write(sandbox, &text);
	if (text.len > SANDBOX_MAX) {
		errno = EFBIG;
		return -1;
	}
	rc = atomic_file_write(state->dir, FOLDER, name, text.data, text.len, sync, &fd);
	if (fd >= 0)
		keep_sandbox(state, container, fd, sandbox);
	return rc;
}

static int remove_file(struct sandboxes *state, const char *container, bool sync)
{
	auto_free char *name = str_printf("%s" SUFFIX, container);
	auto_free char *synced = synced_path_of(container);

	/* First, for it is nobody's without the other. */
	if (unlinkat(state->dir, synced, 0) < 0 && errno != ENOENT)
		return -1;
	return atomic_file_remove(state->dir, FOLDER, name, sync);
}

/* In memory alone; false: the file has to be written. */
static bool change_kept(struct sandboxes *state, const char *path, sandbox_change_fn *change,
			void *arg)
{
	json_auto_t *sandbox = NULL;
	struct stat file;

	if (fstatat(state->dir, path, &file, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !(sandbox = kept_of(state, &file)))
		return false;
	sandbox = copy_for_change(sandbox);
	if (!change(arg, sandbox))
		return true;
	if (json_array_size(json_at(sandbox, "attachments")) == 0)
		return false;
	keep_later(state, json_incref(sandbox));
	return true;
}

/* The file is replaced, and its lock nobody's. */
static void leave(struct sandboxes *state, int *fd)
{
	(void)flock(*fd, LOCK_UN);
	close_later(state, take_fd(fd));
}

int sandbox_change(struct sandboxes *state, const char *container, enum sandbox_write write,
		   sandbox_change_fn *change, void *arg, struct err *err)
{
	auto_free char *path = path_of(container);
	json_auto_t *sandbox = NULL;
	json_t *later;
	bool is_new, is_changed, sync = write == SANDBOX_SYNCED;
	auto_close int fd = -1;
	struct err why = {0};
	struct stat file;
	int rc = 0;

	assert(state && container && change);
	if (write == SANDBOX_LATER && change_kept(state, path, change, arg))
		return 0;
	fd = open_locked(state, path, &file);
	if (fd < 0)
		return err_sys(err, "SandboxNotWritten", "lock %s", path);
	sandbox = kept_of(state, &file);
	if (!sandbox && read_either(state, container, fd, &sandbox, &why) < 0) {
		auto_free char *aside = str_printf("%s.unreadable", path);

		if (is_unknown(&why))
			return err_set(err, ERR_HOST, "SandboxUnreadable", "%s: %s", path,
				       why.text);
		/* What is in it nobody can undo; a DEL must not hang on that for ever. */
		log_error("what is known of a sandbox is no JSON of ours, putting it aside",
			  F_STR("file", path), F_ERR(&why));
		(void)renameat(state->dir, path, state->dir, aside);
	}
	later = with_later(state, container, sandbox);
	if (later)
		json_replace(&sandbox, later);
	is_new = !sandbox;
	if (is_new) {
		sandbox = json_object();
		json_put_int(sandbox, "version", VERSION);
		json_put_str(sandbox, "container", container);
		json_put(sandbox, "attachments", json_array());
	} else {
		sandbox = copy_for_change(sandbox);
	}
	is_changed = change(arg, sandbox);
	if (json_array_size(json_at(sandbox, "attachments")) == 0) {
		rc = remove_file(state, container, sync && !is_new);
		if (rc == 0)
			keep_sandbox(state, container, 0, NULL);
	} else if (is_changed) {
		/* The lock is the old file's. */
		rc = write_file(state, container, sandbox, is_new, sync);
	}
	if (rc < 0 && errno == EFBIG)
		return err_set(err, ERR_INVALID, "SandboxTooLarge",
			       "what is known of the sandbox would have more than %u bytes: give "
			       "the pod fewer networks, or smaller ones",
			       SANDBOX_MAX);
	if (rc < 0)
		return err_sys(err, "SandboxNotWritten", "write %s", path);
	leave(state, &fd);
	return 0;
}

static bool change_no_more(void *arg, json_t *sandbox)
{
	return true;
}

int sandbox_flush(struct sandboxes *state, const char *container, struct err *err)
{
	assert(state && container);
	if (!state->kept.written || !str_eq(state->kept.container, container))
		return 0;
	return sandbox_change(state, container, SANDBOX_WRITTEN, change_no_more, NULL, err);
}

static bool change_nothing(void *arg, json_t *sandbox)
{
	return false;
}

/* One without attachments has no file. */
void sandbox_remove_empty(struct sandboxes *state, const char *container)
{
	(void)sandbox_change(state, container, SANDBOX_WRITTEN, change_nothing, NULL, NULL);
}

int sandboxes_prepare(struct sandboxes *state, struct err *err)
{
	if (mkdirat(state->dir, FOLDER, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "StateUnusable", "make %s", FOLDER);
	atomic_file_clean(state->dir, FOLDER);
	atomic_file_clean(state->dir, DEVICES_FOLDER);
	return 0;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static bool is_in(const json_t *sandbox, const struct stat *netns)
{
	const json_t *known = json_at(sandbox, "netns");

	return json_integer_value(json_at(known, "device")) == (int64_t)netns->st_dev &&
	       json_integer_value(json_at(known, "inode")) == (int64_t)netns->st_ino;
}

/*
 * A DEL may come without a namespace, when the runtime has none any more (SPEC.md, CNI_NETNS). A
 * sandbox that is known by such calls only is gone.
 */
static bool is_of_del_alone(const json_t *sandbox)
{
	const json_t *record;
	size_t i;

	if (!str_empty(json_str_at(sandbox, "netns", "path")))
		return false;
	json_array_foreach (json_at(sandbox, "attachments"), i, record)
		if (!str_eq(json_str_at(record, "phase"), "deleting"))
			return false;
	return true;
}

enum netns_life sandbox_life(const json_t *sandbox, int root, int *ret_netns)
{
	const json_t *netns = json_at(sandbox, "netns");
	auto_free char *boot = boot_id();
	const struct netns_known known = {
		.path = json_str_at(netns, "path"),
		.device = (uint64_t)json_integer_value(json_at(netns, "device")),
		.inode = (uint64_t)json_integer_value(json_at(netns, "inode")),
		.boot = json_str_at(sandbox, "boot"),
		.boot_now = boot,
	};
	enum netns_life life = netns_life(root, &known, ret_netns);

	return life == NETNS_UNKNOWN && is_of_del_alone(sandbox) ? NETNS_GONE : life;
}

bool sandbox_has_netns(const json_t *sandbox)
{
	return json_integer_value(json_at(sandbox, "netns", "inode")) != 0;
}

bool sandbox_is_of_other_netns(const json_t *sandbox, const struct stat *netns)
{
	const char *known = json_str_at(sandbox, "boot");
	auto_free char *boot = boot_id();

	return sandbox_has_netns(sandbox) &&
	       (!is_in(sandbox, netns) || (!str_empty(known) && *boot && !str_eq(known, boot)));
}

bool sandbox_is_of_other_pod(const json_t *sandbox, const char *uid)
{
	const char *known = json_str_at(sandbox, "pod", "uid");

	return !str_empty(known) && !str_empty(uid) && !str_eq(known, uid);
}

bool sandbox_is_of(const json_t *sandbox, const struct stat *netns, const char *path,
		   const char *uid)
{
	auto_free char *boot = boot_id();

	return is_in(sandbox, netns) && (!*boot || str_eq(json_str_at(sandbox, "boot"), boot)) &&
	       (str_eq(json_str_at(sandbox, "netns", "path"), path) ||
		!sandbox_is_of_other_pod(sandbox, uid));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Replaced as a whole and synced; answer.c loads and saves it for the agent, which alone knows what
 * is in it. A damaged file goes aside at the first look, so that the next one begins without it.
 */
#include "nodeagent/worker/state.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

/* The class is ours, whatever the lower layer said: what is wrong is the host. */
static int state_failed(const struct err *why, const char *reason, struct err *err)
{
	(void)err_set(err, ERR_HOST, reason, "/" STATE_FOLDER "/%s", why->text);
	if (err)
		err->sys = why->sys;
	return -1;
}

/* A writer that was killed has left its temporary file (fs_write_atomic). */
static void remove_leftovers(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (str_starts(entry->d_name, STATE_FILE ".") && str_ends(entry->d_name, ".tmp"))
			(void)unlinkat(folder, entry->d_name, 0);
}

static int put_aside(int folder, const struct err *why, struct err *err)
{
	if (renameat(folder, STATE_FILE, folder, STATE_DAMAGED) < 0)
		return err_sys(err, "StateUnreadable",
			       "/" STATE_FOLDER "/" STATE_FILE " is damaged (%.160s); put it aside",
			       why->text);
	(void)fsync(folder);
	return err_set(err, ERR_HOST, "StateDamaged",
		       "/" STATE_FOLDER "/" STATE_FILE
		       " is damaged and was renamed to " STATE_DAMAGED
		       ": %.200s; how PFs were before the agent came is no longer known",
		       why->text);
}

int state_load(const struct host *host, json_t **ret, struct err *err)
{
	auto_close int folder = root_open(host->root, STATE_FOLDER, O_RDONLY | O_DIRECTORY, 0);
	auto_strbuf struct strbuf text = {0};
	json_auto_t *state = NULL;
	struct err why = {0};

	assert(ret);
	if (folder < 0 && errno == ENOENT) {
		*ret = json_object();
		return 0;
	}
	if (folder < 0)
		return err_sys(err, "StateUnreadable", "open /" STATE_FOLDER);
	remove_leftovers(folder);
	if (fs_read(folder, STATE_FILE, STATE_MAX, &text, &why) < 0) {
		if (why.class == ERR_INVALID)
			return put_aside(folder, &why, err);
		if (why.sys != ENOENT)
			return state_failed(&why, "StateUnreadable", err);
		*ret = json_object();
		return 0;
	}
	state = json_parse(strbuf_str(&text), text.len, &why);
	if (state && !json_is_object(state))
		(void)err_set(&why, ERR_INVALID, "BadJson", "it is %s, not an object",
			      json_type_words(state));
	if (!json_is_object(state))
		return put_aside(folder, &why, err);
	*ret = take_ptr(state);
	return 0;
}

int state_save(const struct host *host, const json_t *state, struct err *err)
{
	auto_free char *text = json_text(state);
	size_t len = strlen(text);
	auto_close int folder = -1;
	struct err why = {0};

	if (len > STATE_MAX)
		return err_set(err, ERR_BUG, "StateTooLarge",
			       "a state of %zu bytes, %u is the most", len, STATE_MAX);
	folder = host_state_folder(host);
	if (folder < 0)
		return err_sys(err, "StateNotWritten", "make /" STATE_FOLDER);
	if (fs_write_atomic(folder, STATE_FILE, text, len, 0600, &why) < 0)
		return state_failed(&why, "StateNotWritten", err);
	return 0;
}

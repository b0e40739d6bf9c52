// SPDX-License-Identifier: Apache-2.0
/*
 * Files are written as a whole before a claim is answered, and those that no claim has are removed
 * at the start. Below dra_driver.c.
 */
#include "nodeagent/kubelet/dra_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/dra_names.h"
#include "nodeagent/model/dra_state.h"

/* CDI takes *.json of its folders; the temporary names of fs_write_atomic() end otherwise. */
#define CDI_PREFIX DRA_DRIVER "-claim-"
#define CDI_SUFFIX ".json"
#define CDI_MAX    (1U << 20)

static char *cdi_path(const char *dir, const char *uid)
{
	return str_printf("%s/" CDI_PREFIX "%s" CDI_SUFFIX, dir, uid);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Each name that begins and ends so, without that; for those that the claims do not have. */
static void sweep(const char *path, const char *prefix, const char *suffix, const json_t *claims)
{
	auto_closedir DIR *dir = opendir(path);
	const struct dirent *file;

	while (dir && (file = readdir(dir))) {
		size_t len = strlen(file->d_name), kept = strlen(prefix) + strlen(suffix);
		auto_free char *uid = NULL;

		if (len < kept || !str_starts(file->d_name, prefix) ||
		    !str_ends(file->d_name, suffix))
			continue;
		uid = str_ndup(file->d_name + strlen(prefix), len - kept);
		if (!json_object_get(claims, uid))
			(void)unlinkat(dirfd(dir), file->d_name, 0);
	}
}

json_t *dra_files_load(const char *dir, struct err *err)
{
	auto_free char *path = str_below(dir, DRA_STATE_FILE);
	auto_strbuf struct strbuf text = {0};
	json_auto_t *state = NULL;
	struct err why = {0};

	sweep(dir, DRA_STATE_FILE ".", ".tmp", NULL);
	if (fs_read(AT_FDCWD, path, DRA_STATE_MAX, &text, &why) < 0) {
		if (why.sys == ENOENT)
			return json_pack("{s:{}}", "claims");
		if (err)
			*err = why;
		return NULL;
	}
	state = json_parse(strbuf_str(&text), text.len, &why);
	if (state && dra_state_check(state, &why) == 0)
		return take_ptr(state);
	(void)err_set(err, ERR_HOST, "ClaimsDamaged",
		      "%s: %s; nobody knows which devices claims have: end the pods with claims of "
		      "this node, then remove the file",
		      path, why.text);
	return NULL;
}

int dra_files_save(const char *dir, const json_t *state, struct err *err)
{
	auto_free char *path = str_below(dir, DRA_STATE_FILE), *text = json_text(state);

	return fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
}

/* ---- CDI ------------------------------------------------------------------------------------- */

int dra_files_put_cdi(const char *dir, const char *uid, const json_t *cdi, struct err *err)
{
	auto_free char *path = cdi_path(dir, uid), *text = json_text(cdi);
	auto_strbuf struct strbuf old = {0};

	if (fs_read(AT_FDCWD, path, CDI_MAX, &old, NULL) == 0 && str_eq(strbuf_str(&old), text))
		return 0;
	return fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0644, err);
}

int dra_files_remove_cdi(const char *dir, const char *uid, struct err *err)
{
	auto_free char *path = cdi_path(dir, uid);

	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return err_sys(err, "FileNotRemoved", "remove %s", path);
}

void dra_files_sweep_cdi(const char *dir, const json_t *state)
{
	sweep(dir, CDI_PREFIX, CDI_SUFFIX, json_at(state, "claims"));
	sweep(dir, CDI_PREFIX, ".tmp", NULL);
}

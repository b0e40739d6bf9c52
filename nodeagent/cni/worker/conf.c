// SPDX-License-Identifier: Apache-2.0
/*
 * One look: files → meta_conf_decide() → our file is written, removed or left. Below the profile's
 * look (nodeagent/cni/worker/profile_keeper.c), above the files themselves.
 */
#include "nodeagent/cni/worker/conf.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/wire.h"

enum {
	FILE_SIZE_MAX = 1 << 20,
	FILES_MAX = 256,
};

/* Multus removes its own when its pod ends: what it said is kept here, below the host's root. */
#define MULTUS_WAS WIRE_STATE "/multus.conf"

struct conf {
	struct conf_config config;
	char *multus_was;  /* the text of MULTUS_WAS; NULL: there is none, or it was not read */
	char *stamp;       /* of our file when we looked last; NULL: it was not to be there */
	int fights;        /* changes by other programs */
	int64_t fought_ms; /* when it was last other than we left it */
};

/* What a runtime looks at. */
static int is_conf(const struct dirent *entry)
{
	return entry->d_name[0] != '.' &&
	       (str_ends(entry->d_name, ".conf") || str_ends(entry->d_name, ".conflist") ||
		str_ends(entry->d_name, ".json"));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int refuse_unknown(const char *folder, const char *name, int sys, struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "ConfUnreadable", "cannot read %s/%s now: %s", folder,
		       name, strerror(sys));
}

/* Appended to `files`. -1: it cannot be known what it has. */
static int read_conf(int dir, const char *folder, const char *name, json_t *files, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_t *file = json_object();
	struct err why = {0};

	json_put_str(file, "name", name);
	/* One that cannot be read is in the way of the runtime all the same. */
	if (fs_read(dir, name, FILE_SIZE_MAX, &text, &why) == 0)
		json_put_str(file, "text", strbuf_str(&text));
	json_array_append_new(files, file);
	return err_is_unknown(why.sys) ? refuse_unknown(folder, name, why.sys, err) : 0;
}

json_t *conf_files(int root, const char *folder, struct err *err)
{
	auto_close int dir = root_open(root, folder, O_RDONLY | O_DIRECTORY, 0);
	struct dirent **entries = NULL;
	json_auto_t *files = NULL;
	int n, rc = 0;

	if (dir < 0 && !err_is_unknown(errno))
		return json_array();
	n = dir < 0 ? -1 : scandirat(dir, ".", &entries, is_conf, by_name);
	if (n < 0)
		rc = refuse_unknown(folder, "", errno, err);
	files = json_array();
	for (int i = 0; i < n; i++) {
		if (rc == 0 && i < FILES_MAX)
			rc = read_conf(dir, folder, entries[i]->d_name, files, err);
		free(entries[i]);
	}
	free(entries);
	return rc == 0 ? take_ptr(files) : NULL;
}

int conf_read_all(int root, const char *folder, json_t *confs, struct err *err)
{
	json_auto_t *files = conf_files(root, folder, err);
	json_t *file, *conf;
	size_t i;

	json_array_foreach (files, i, file) {
		const char *text = json_str_or(json_at(file, "text"), "");

		conf = json_parse(text, strlen(text), NULL);
		if (conf)
			json_array_append_new(confs, conf);
	}
	return files ? 0 : -1;
}

/* Names in the folder of plugins, new. */
static json_t *programs_in(int root, const char *folder)
{
	int fd = root_open(root, folder, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	json_t *programs = json_array();
	const struct dirent *entry;

	if (!dir && fd >= 0)
		(void)close(fd);
	while (dir && (entry = readdir(dir)))
		json_array_append_new(programs, json_string(entry->d_name));
	if (dir)
		(void)closedir(dir);
	return programs;
}

static char *path_of(const char *dir)
{
	return str_below(dir, META_CONF_FILE);
}

/* Which file it is, and of when; new. NULL: there is none. */
static char *stamp_of(const struct conf *conf)
{
	auto_free char *path = path_of(conf->config.dir);
	struct stat st;

	if (root_stat(conf->config.root, path, &st) < 0)
		return NULL;
	return str_printf("%ju %jd.%09ld", (uintmax_t)st.st_ino, (intmax_t)st.st_ctim.tv_sec,
			  st.st_ctim.tv_nsec);
}

static void keep_stamp(struct conf *conf, char *stamp)
{
	mem_free(conf->stamp);
	conf->stamp = stamp;
}

/*
 * Before the file is written: is_right: it is as it should be. -1: another program removes or
 * changes it again and again, and it is left to that.
 */
static int may_put_back(struct conf *conf, bool is_right, struct err *err)
{
	auto_free char *stamp = stamp_of(conf);
	int64_t now_ms = clock_ms();

	if (is_right && now_ms - conf->fought_ms >= CONF_PEACE_MS)
		conf->fights = 0;
	if (!is_right && conf->stamp && !str_eq(stamp, conf->stamp) &&
	    conf->fights <= CONF_FIGHTS_MAX) {
		conf->fights++;
		conf->fought_ms = now_ms;
	}
	keep_stamp(conf, take_ptr(stamp));
	if (conf->fights <= CONF_FIGHTS_MAX)
		return 0;
	if (!is_right)
		conf->fought_ms = now_ms;
	return err_set(err, ERR_HOST, "ConfRemoved",
		       "another program has removed or changed %s %d times, so it is not put "
		       "back: keep other network plugins from it (Cilium: cni.exclusive=false), "
		       "then restart the agent",
		       META_CONF_FILE, conf->fights);
}

static int write_file(struct conf *conf, const char *text, struct err *err)
{
	auto_free char *path = path_of(conf->config.dir);
	struct err why = {0};

	if (root_write_atomic(conf->config.root, path, text, strlen(text), 0644, &why) == 0) {
		keep_stamp(conf, stamp_of(conf));
		log_info("CNI configuration written", F_STR("file", path));
		return 0;
	}
	return err_set(err, ERR_HOST, "ConfNotWritten", "%s; pods get the cluster's network alone",
		       why.text);
}

int conf_remove(int root, const char *dir, struct err *err)
{
	auto_free char *path = path_of(dir);

	if (root_remove(root, path) == 0 || errno == ENOENT)
		return 0;
	return err_sys(err, "ConfNotWritten", "remove %s", path);
}

/* ---- the Multus before us -------------------------------------------------------------------- */

/* *ret: new; NULL: there is none. -1 with err of conf_files(). */
static int read_multus_was(int root, char **ret, struct err *err)
{
	auto_close int dir = root_open(root, WIRE_STATE, O_RDONLY | O_DIRECTORY, 0);
	const char *name = strrchr(MULTUS_WAS, '/') + 1;
	auto_strbuf struct strbuf text = {0};
	struct err why = {.sys = dir < 0 ? errno : 0};

	if (dir >= 0 && fs_read(dir, name, FILE_SIZE_MAX, &text, &why) == 0)
		*ret = strbuf_take(&text);
	return err_is_unknown(why.sys) ? refuse_unknown(WIRE_STATE, name, why.sys, err) : 0;
}

/*
 * While a Multus is configured, keep what it says; it is tried at each look until it succeeds. -1:
 * what one before us said cannot be known now.
 */
static int remember_multus(struct conf *conf, const json_t *files, struct err *ret_note)
{
	const char *name = meta_conf_multus(files), *text;
	struct err err = {0};

	if (!conf->multus_was &&
	    read_multus_was(conf->config.root, &conf->multus_was, ret_note) < 0)
		return -1;
	text = name ? json_str_at(json_find(files, "name", name), "text") : NULL;
	if (!text || str_eq(text, conf->multus_was))
		return 0;
	if (root_make_dirs(conf->config.root, WIRE_STATE, 0700) < 0 ||
	    root_write_atomic(conf->config.root, MULTUS_WAS, text, strlen(text), 0600, &err) < 0) {
		log_warn("what Multus is configured with cannot be kept for the time after it",
			 F_STR("file", MULTUS_WAS), F_ERR(&err));
		return 0;
	}
	mem_free(conf->multus_was);
	conf->multus_was = str_dup(text);
	return 0;
}

void conf_look(struct conf *conf, enum meta_mode mode, const json_t *files, struct err *ret_note)
{
	json_auto_t *programs = programs_in(conf->config.root, conf->config.bin_dir);
	struct meta_conf wanted;
	struct err err = {0};

	assert(conf->fights >= 0 && conf->fights <= CONF_FIGHTS_MAX + 1);
	if (remember_multus(conf, files, ret_note) < 0)
		return;
	meta_conf_decide(&(struct meta_conf_input){.mode = mode,
						   .files = files,
						   .programs = programs,
						   .multus_was = conf->multus_was,
						   .dir = conf->config.dir,
						   .bin_dir = conf->config.bin_dir,
						   .isolates = conf->config.isolates,
						   .shared = conf->config.shared},
			 &wanted);
	if (wanted.action == META_CONF_REMOVE) {
		keep_stamp(conf, NULL);
		(void)conf_remove(conf->config.root, conf->config.dir, &err);
	} else if (mode != META_OFF &&
		   may_put_back(conf,
				wanted.action != META_CONF_WRITE &&
					json_find(files, "name", META_CONF_FILE),
				&err) == 0 &&
		   wanted.action == META_CONF_WRITE) {
		(void)write_file(conf, wanted.text, &err);
	}
	*ret_note = err.class != ERR_NONE ? err : wanted.note;
	meta_conf_done(&wanted);
}

struct conf *conf_new(const struct conf_config *config)
{
	struct conf *conf = mem_new(struct conf);

	assert(config->root >= 0 && config->dir && config->bin_dir);
	conf->config = *config;
	if (json_str_at(config->memory, "stamp"))
		conf->stamp = str_dup(json_str_at(config->memory, "stamp"));
	conf->fights = (int)json_integer_value(json_at(config->memory, "fights"));
	conf->fought_ms = json_integer_value(json_at(config->memory, "foughtMs"));
	return conf;
}

json_t *conf_memory(const struct conf *conf)
{
	json_t *memory = json_object();

	if (conf->stamp)
		json_put_str(memory, "stamp", conf->stamp);
	json_put_int(memory, "fights", conf->fights);
	json_put_int(memory, "foughtMs", conf->fought_ms);
	return memory;
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	mem_free(conf->multus_was);
	mem_free(conf->stamp);
	mem_free(conf);
}

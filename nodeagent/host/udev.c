// SPDX-License-Identifier: Apache-2.0
/*
 * A rule is a file whose name says PF and purpose and whose text is always the same for both: a
 * file with that text is left as it is. hostd's steps write and remove them, the observed document
 * lists those that are there.
 */
#include "nodeagent/host/udev.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

/* The second is for this boot: where the first cannot be written. */
static const char *const folders[] = {"etc/udev/rules.d", "run/udev/rules.d"};
static const char *const rules[] = {"nm-unmanaged", "pf-name"};

static char *file_of(const char *folder, const char *rule, const char *pf)
{
	return str_printf("%s/10-%s-%s.rules", folder,
			  str_eq(rule, "pf-name") ? "pf-name" : "nm-disable", pf);
}

json_t *udev_rules_of(const struct host *host, const char *pf)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		bool is_there = false;

		for (size_t k = 0; k < ARRAY_LEN(folders); k++) {
			auto_free char *path = file_of(folders[k], rules[i], pf);

			is_there |= sysfs_exists(host, path);
		}
		if (is_there)
			json_array_append_new(ret, json_string(rules[i]));
	}
	return ret;
}

/*
 * Which PF a VF belongs to is behind a link, which no match key of udev follows: hence the program.
 */
static char *rule_text(const char *rule, const char *pf, const char *name)
{
	if (str_eq(rule, "pf-name"))
		return str_printf("SUBSYSTEM==\"net\", ACTION==\"add\", DRIVERS==\"?*\", "
				  "KERNELS==\"%s\", NAME=\"%s\"\n",
				  pf, name);
	return str_printf(
		"SUBSYSTEM==\"net\", ACTION==\"add|change|move\", TEST==\"device/physfn\", "
		"PROGRAM==\"/usr/bin/readlink -f /sys%%p/device/physfn\", "
		"RESULT==\"*/%s\", ENV{NM_UNMANAGED}=\"1\"\n",
		pf);
}

static int write_rule(const struct host *host, const char *folder, const char *path,
		      const char *text, bool *ret_changed, struct err *err)
{
	auto_strbuf struct strbuf there = {0};

	*ret_changed = false;
	if (sysfs_read_file(host, path, 65536, &there) && str_eq(strbuf_str(&there), text))
		return 0;
	if (root_make_dirs(host->root, folder, 0755) < 0)
		return err_sys(err, "FileNotWritten", "make /%s", folder);
	if (root_write_atomic(host->root, path, text, strlen(text), 0644, err) < 0)
		return -1;
	*ret_changed = true;
	return 0;
}

int udev_write_rule(struct host *host, const char *pf, const char *rule, const char *name,
		    bool *ret_changed, struct err *err)
{
	auto_free char *text = rule_text(rule, pf, name);
	struct err why = {0};

	assert(name || !str_eq(rule, "pf-name"));
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		auto_free char *path = file_of(folders[i], rule, pf);

		if (write_rule(host, folders[i], path, text, ret_changed, &why) == 0)
			return 0;
		if (why.sys != EROFS)
			break;
	}
	if (err)
		*err = why;
	return -1;
}

int udev_remove_rule(struct host *host, const char *pf, const char *rule, bool *ret_changed,
		     struct err *err)
{
	*ret_changed = false;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		auto_free char *path = file_of(folders[i], rule, pf);

		if (root_remove(host->root, path) == 0)
			*ret_changed = true;
		else if (errno != ENOENT && (errno != EROFS || sysfs_exists(host, path)))
			return err_sys(err, "FileNotWritten", "remove /%s", path);
	}
	return 0;
}

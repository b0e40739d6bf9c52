/*
 * udev rules. See the header.
 */
#include "nodeagent/host/udev.h"

#include <errno.h>
#include <string.h>

#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

#define FOLDER "etc/udev/rules.d"

static const char *const rules[] = {"nm-unmanaged", "pf-name"};

static char *file_of(const char *rule, const char *pf)
{
	if (str_eq(rule, "pf-name"))
		return str_printf(FOLDER "/10-pf-name-%s.rules", pf);
	return str_printf(FOLDER "/10-nm-disable-%s.rules", pf);
}

json_t *udev_rules_of(const struct host *host, const char *pf)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		auto_free char *path = file_of(rules[i], pf);

		if (sysfs_exists(host, path))
			json_array_append_new(ret, json_string(rules[i]));
	}
	return ret;
}

/*
 * Which PF a VF belongs to is behind a link, which no match key of udev follows: hence the program.
 */
static char *text_of(const char *rule, const char *pf, const char *name)
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

int udev_write_rule(struct host *host, const char *pf, const char *rule, const char *name,
		    bool *ret_changed, struct err *err)
{
	auto_free char *path = file_of(rule, pf), *text = text_of(rule, pf, name);
	auto_strbuf struct strbuf there = {0};

	*ret_changed = false;
	if (sysfs_read_file(host, path, 65536, &there) && str_eq(strbuf_str(&there), text))
		return 0;
	if (root_make_dirs(host->root, FOLDER, 0755) < 0)
		return err_sys(err, "FileNotWritten", "make /" FOLDER);
	if (root_write_atomic(host->root, path, text, strlen(text), 0644, err) < 0)
		return -1;
	*ret_changed = true;
	return 0;
}

int udev_remove_rule(struct host *host, const char *pf, const char *rule, bool *ret_changed,
		     struct err *err)
{
	auto_free char *path = file_of(rule, pf);

	*ret_changed = false;
	if (root_remove(host->root, path) == 0) {
		*ret_changed = true;
		return 0;
	}
	return errno == ENOENT ? 0 : err_sys(err, "FileNotWritten", "remove /%s", path);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of the privileged side against what the agent asks for. Nothing of it is the agent's to
 * change: `more` is the supervisor's command line.
 */
#include "nodeagent/devices/pools_paths.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/model/rdma_folder.h"

/* Files of pools_function.c and pools_shared.c; a container may have the folder as a whole. */
static const char *const known[] = {
	"/dev/infiniband", "/dev/infiniband/*", "/dev/vfio/*",
	"/dev/vhost-net",  "/dev/net/tun",      RDMA_FOLDER "/*",
};

/* Absolute, and each part is a name. */
static bool is_plain(const char *path)
{
	const char *part = path;

	while (*part == '/') {
		size_t len = strcspn(++part, "/");

		if (len == 0 || (len == 1 && *part == '.') || (len == 2 && str_starts(part, "..")))
			return false;
		part += len;
	}
	return *path == '/' && *part == '\0';
}

/* In a container; ".." may lead out of what is mounted there, not out of /dev. */
static bool is_below_dev(const char *path)
{
	const char *part = path + strlen("/dev");
	int depth = 0;

	if (!str_starts(path, "/dev/"))
		return false;
	while (*part == '/') {
		size_t len = strcspn(++part, "/");

		if (len == 2 && str_starts(part, ".."))
			depth--;
		else if (len > 1 || (len == 1 && *part != '.'))
			depth++;
		if (depth < 0)
			return false;
		part += len;
	}
	return depth > 0;
}

bool pools_path_is_allowed(const char *path, const char *more)
{
	auto_free char *list = str_dup(more);
	char *rest = list, *pattern;

	if (!is_plain(path))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (fnmatch(known[i], path, FNM_NOESCAPE) == 0)
			return true;
	while ((pattern = strsep(&rest, ",")))
		if (fnmatch(str_trim(pattern), path, FNM_NOESCAPE) == 0)
			return true;
	return false;
}

int pools_paths_check(const char *more, struct err *err)
{
	auto_free char *list = str_dup(more ? more : "/dev/x");
	char *rest = list, *pattern;

	while ((pattern = strsep(&rest, ","))) {
		pattern = str_trim(pattern);
		if (!str_starts(pattern, "/dev/") || !is_plain(pattern))
			return err_set(err, ERR_INVALID, "BadFlag",
				       "--device-paths \"%s\": \"%s\" must be a path below /dev "
				       "without . and .., which may have *, ? and [a-z]",
				       more, pattern);
	}
	return 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Why a container may not have one of the nodes, new; NULL: it may. */
static char *check_nodes(const json_t *nodes, const char *more)
{
	json_t *node;
	size_t i;

	json_array_foreach ((json_t *)nodes, i, node) {
		const char *path = json_str_or(node, json_str_or(json_at(node, "path"), ""));
		const char *host = json_str_or(json_at(node, "hostPath"), path);

		if (!is_below_dev(path))
			return str_printf("%.128s is not below the container's /dev", path);
		if (!pools_path_is_allowed(host, more))
			return str_printf("%.128s is not among the device files that pods may get; "
					  "add it to the agent's --device-paths (the chart's "
					  "deviceFiles.paths)",
					  host);
	}
	return NULL;
}

/* Of all devices of the resource. */
static char *check_common(const json_t *resource, const char *more)
{
	const char *env = json_str_at(resource, "env");
	const char *permissions = json_str_or(json_at(resource, "permissions"), "");

	if (env && !str_starts(env, "PCIDEVICE_"))
		return str_printf("its variable %.64s is not called PCIDEVICE_*", env);
	if (permissions[strspn(permissions, "rwm")])
		return str_printf("its permissions %.16s are not of r, w and m", permissions);
	return check_nodes(json_at(resource, "nodes"), more);
}

/* The cause goes into *cause when it has none. New. */
static json_t *keep_allowed(const json_t *resource, const char *more, char **cause)
{
	json_t *ret = json_copy((json_t *)resource), *devices, *causes;
	auto_free char *common = check_common(resource, more), *first = NULL;

	devices = json_copy(json_at(resource, "devices"));
	json_put(ret, "devices", devices);
	for (size_t i = 0; i < json_array_size(devices); i++) {
		auto_free char *own =
			common ? NULL
			       : check_nodes(json_at(json_array_get(devices, i), "nodes"), more);

		json_t *changed;

		if (!common && !own)
			continue;
		changed = json_copy(json_array_get(devices, i));
		json_put_bool(changed, "healthy", false);
		json_put_str(changed, "cause", common ? common : own);
		json_array_set_new(devices, i, changed);
		if (!first)
			first = str_dup(common ? common : own);
	}
	if (!first)
		return ret;
	causes = json_at(ret, "causes") ? json_copy(json_at(ret, "causes")) : json_array();
	json_array_insert_new(causes, 0, json_string(first));
	json_put(ret, "causes", causes);
	if (!*cause)
		*cause = str_printf("%s: %s", json_str_or(json_at(ret, "name"), "?"), first);
	return ret;
}

json_t *pools_keep_allowed(const json_t *pools, const char *more, char **ret_cause)
{
	json_t *ret = json_copy((json_t *)pools), *resources = json_array(), *resource;
	size_t i;

	*ret_cause = NULL;
	json_array_foreach (json_at(pools, "resources"), i, resource)
		json_array_append_new(resources, keep_allowed(resource, more, ret_cause));
	json_put(ret, "resources", resources);
	return ret;
}

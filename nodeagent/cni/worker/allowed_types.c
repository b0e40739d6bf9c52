// SPDX-License-Identifier: Apache-2.0
/*
 * The list of common plugins first; the node's files are read only for what is not on it. Between
 * meta_call.c, external_ipam.c and nodeagent/cni/plan/plugin_types.c.
 */
#include "nodeagent/cni/worker/allowed_types.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/meta_conf.h"
#include "nodeagent/cni/plan/plugin_types.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/state/sandboxes.h"
#include "nodeagent/cni/worker/conf.h"

/*
 * Those of the runtime, and where these say that a Multus before us had its own. New; NULL with err
 * of conf_files().
 */
static json_t *node_confs(const struct attachment *a, struct err *err)
{
	json_auto_t *confs = json_array();
	json_t *conf, *plugin;
	size_t n, i, k;

	if (conf_read_all(a->root, a->conf_dir ? a->conf_dir : META_CONF_DIR, confs, err) < 0)
		return NULL;
	n = json_array_size(confs);
	for (i = 0; i < n; i++) {
		conf = json_array_get(confs, i);
		json_array_foreach (json_at(conf, "plugins"), k, plugin)
			if (json_str_at(plugin, "multusConfDir") &&
			    conf_read_all(a->root, json_str_at(plugin, "multusConfDir"), confs,
					  err) < 0)
				return NULL;
	}
	return take_ptr(confs);
}

/* own: that may be run besides the list, and what the node's files name. */
static int check(const struct attachment *a, const json_t *delegates, const json_t *own,
		 struct err *err)
{
	struct plugin_types types = {.more = a->plugin_types, .own = own};
	json_auto_t *all = NULL;

	if (plugin_types_check(delegates, &types, NULL) == 0)
		return 0;
	types.own = all = node_confs(a, err);
	if (!all)
		return -1;
	if (own)
		json_array_extend(all, (json_t *)own);
	return plugin_types_check(delegates, &types, err);
}

int allowed_types_check(const struct attachment *a, const json_t *delegates, struct err *err)
{
	return check(a, delegates, NULL, err);
}

int allowed_types_check_config(const struct attachment *a, const json_t *config, struct err *err)
{
	json_auto_t *delegate = json_pack("[{s:s, s:s, s:O}]", "name", a->key.network, "interface",
					  a->key.ifname, "config", config);

	return check(a, delegate, NULL, err);
}

/* Configurations in what an ADD has recorded of the sandbox, new. NULL with err: unknown. */
static json_t *recorded(const struct attachment *a, struct err *err)
{
	json_auto_t *sandbox = NULL;
	const json_t *record, *delegate;
	json_t *configs;
	size_t i, k;

	if (sandbox_load(a->state, a->container, &sandbox, err) < 0)
		return NULL;
	configs = json_array();
	json_array_foreach (json_at(sandbox, "attachments"), i, record) {
		json_t *config;

		if (json_is_true(json_at(record, "unchecked")))
			continue;
		config = json_copy(json_at(record, "config"));
		/* That of the plugin itself, which is ours, was not checked. */
		(void)json_object_del(config, "type");
		json_array_append_new(configs, config);
		json_array_foreach (json_at(record, "saved", "delegates"), k, delegate)
			json_array_append(configs, json_at(delegate, "config"));
	}
	return configs;
}

/* An empty file; one that cannot be made has the plugin refuse. */
static void note_for_plugin(const struct attachment *a, const char *path)
{
	auto_close int fd = -1;

	if (mkdirat(a->state->dir, WIRE_PROGRAMS, 0700) < 0 && errno != EEXIST)
		return;
	fd = openat(a->state->dir, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int allowed_types_admit(const struct attachment *a, const char *type, const char *command,
			struct err *err)
{
	auto_free char *note = str_printf(WIRE_PROGRAMS "/%s", type);
	bool is_noted, is_add = str_eq(command, "ADD");
	json_auto_t *delegate = NULL, *own = NULL;

	if (str_empty(type) || strchr(type, '/') || type[0] == '.')
		return err_set(err, ERR_INVALID, "PluginNotAllowed",
			       "CNI plugin \"%.64s\" is a path; give the plugin's name", type);
	is_noted = faccessat(a->state->dir, note, F_OK, 0) == 0;
	if (is_noted && !is_add)
		return 0;
	own = is_add ? NULL : recorded(a, err);
	if (!own && !is_add)
		return -1;
	delegate = json_pack("[{s:s, s:s, s:{s:s}}]", "name", a->key.network, "interface",
			     a->key.ifname, "config", "type", type);
	if (check(a, delegate, own, err) < 0)
		return -1;
	if (!is_noted)
		note_for_plugin(a, note);
	return 0;
}

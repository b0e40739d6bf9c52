// SPDX-License-Identifier: Apache-2.0
/*
 * One table of keys: obeyed, without a meaning for us, or refused. profile_keeper.c asks while a
 * Multus is there, and writes our configuration by the answer once it has gone.
 */
#include "nodeagent/cni/plan/takeover.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/network_config.h"
#include "reconcilers/core/cni_rules.h"
#include "reconcilers/core/names.h"

#define REASON "MultusKey"

enum value {
	VALUE_ANY, /* not looked at */
	VALUE_TEXT,
	VALUE_TEXTS,
	VALUE_SWITCH,
	VALUE_OBJECTS,
};

enum use {
	USE_CARRIED, /* our plugin has the same key, with the same meaning */
	USE_READ,    /* by a function below */
	USE_NONE,    /* it is about Multus' own process, logs and files */
};

static const struct key {
	const char *name;
	enum value value;
	enum use use;
} keys[] = {
	{"multusNamespace", VALUE_TEXT, USE_CARRIED},
	{"systemNamespaces", VALUE_TEXTS, USE_CARRIED},
	{"namespaceIsolation", VALUE_SWITCH, USE_CARRIED},
	{"globalNamespaces", VALUE_TEXT, USE_CARRIED},
	{"clusterNetwork", VALUE_TEXT, USE_READ},
	{"defaultNetworks", VALUE_TEXTS, USE_READ},
	{"delegates", VALUE_OBJECTS, USE_READ},
	{"confDir", VALUE_TEXT, USE_READ},
	{"binDir", VALUE_TEXT, USE_READ},
	{"auxiliaryCNIChainName", VALUE_TEXT, USE_READ},
	{"name", VALUE_ANY, USE_NONE},
	{"type", VALUE_ANY, USE_NONE},
	{"cniVersion", VALUE_ANY, USE_NONE},
	/* What the runtime hands in: ours declares what the cluster's network does. */
	{"capabilities", VALUE_ANY, USE_NONE},
	{"runtimeConfig", VALUE_ANY, USE_NONE},
	{"prevResult", VALUE_ANY, USE_NONE},
	{"args", VALUE_ANY, USE_NONE},
	{"dns", VALUE_ANY, USE_NONE},
	{"ipam", VALUE_ANY, USE_NONE},
	/* The agent has a connection of its own. */
	{"kubeconfig", VALUE_ANY, USE_NONE},
	{"cniDir", VALUE_ANY, USE_NONE},
	/* The cluster's own plugin fails until it is ready, and the kubelet tries again. */
	{"readinessindicatorfile", VALUE_ANY, USE_NONE},
	{"readinessIndicatorFile", VALUE_ANY, USE_NONE},
	/* What is kept of a sandbox stays until its DEL has succeeded. */
	{"retryDeleteOnError", VALUE_ANY, USE_NONE},
	{"logFile", VALUE_ANY, USE_NONE},
	{"logLevel", VALUE_ANY, USE_NONE},
	{"logToStderr", VALUE_ANY, USE_NONE},
	{"logOptions", VALUE_ANY, USE_NONE},
	/* Of the thick plugin's programs. */
	{"socketDir", VALUE_ANY, USE_NONE},
	{"daemonSocketDir", VALUE_ANY, USE_NONE},
	{"chrootDir", VALUE_ANY, USE_NONE},
	{"cniConfigDir", VALUE_ANY, USE_NONE},
	{"multusAutoconfigDir", VALUE_ANY, USE_NONE},
	{"multusConfigFile", VALUE_ANY, USE_NONE},
	{"multusMasterCNI", VALUE_ANY, USE_NONE},
	{"forceCNIVersion", VALUE_ANY, USE_NONE},
	{"overrideNetworkName", VALUE_ANY, USE_NONE},
	{"perNodeCertificate", VALUE_ANY, USE_NONE},
	{"metricsPort", VALUE_ANY, USE_NONE},
};

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcasecmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* What is wrong with the value; NULL: nothing. */
static const char *fault_of(const struct key *key, const json_t *value)
{
	json_t *item;
	size_t i;

	switch (key->value) {
	case VALUE_ANY:
		return NULL;
	case VALUE_TEXT:
		return json_is_string(value) ? NULL : "must be text";
	case VALUE_SWITCH:
		return json_is_boolean(value) ? NULL : "must be true or false";
	case VALUE_TEXTS:
	case VALUE_OBJECTS:
		if (!json_is_array(value))
			return "must be a list";
		json_array_foreach (value, i, item)
			if (key->value == VALUE_TEXTS ? !json_is_string(item)
						      : !json_is_object(item))
				return key->value == VALUE_TEXTS ? "must be a list of names"
								 : "must be a list of "
								   "configurations";
		return NULL;
	}
	return NULL;
}

/* All keys in the spelling of the table. Returns new, or NULL with err. */
static json_t *read_keys(const json_t *plugin, struct err *err)
{
	json_auto_t *read = json_object();
	const char *name;
	json_t *value;

	json_each (plugin, name, value) {
		const struct key *key = find_key(name);
		const char *fault = key ? fault_of(key, value) : "is not known to our meta plugin";

		if (json_is_null(value))
			continue;
		if (fault) {
			(void)err_set(err, ERR_INVALID, REASON, "%.64s %s", name, fault);
			return NULL;
		}
		json_object_set(read, key->name, value);
	}
	return json_incref(read);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Without '/' at the end, and without where the thick plugin's container has the host. New. */
static char *folder_of(const char *path)
{
	static const char *const mounts[] = {"/hostroot/", "/host/"};
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		if (str_starts(path, mounts[i])) {
			path += strlen(mounts[i]) - 1;
			len = strlen(path);
			break;
		}
	while (len > 1 && path[len - 1] == '/')
		len--;
	return str_ndup(path, len);
}

static bool is_folder(const char *path, const char *folder)
{
	auto_free char *a = folder_of(path), *b = folder_of(folder);

	return str_eq(a, b);
}

static int read_folders(const json_t *read, const char *conf_dir, const char *bin_dir,
			json_t *settings, struct err *err)
{
	const char *confs = json_str_at(read, "confDir"), *programs = json_str_at(read, "binDir");
	auto_free char *folder = folder_of(str_empty(confs) ? TAKEOVER_CONF_DIR : confs);

	if (!str_empty(programs) && !is_folder(programs, bin_dir))
		return err_set(
			err, ERR_INVALID, REASON,
			"binDir is %.128s, where the runtime does not look for plugins (%.64s)",
			programs, bin_dir);
	if (!is_folder(folder, conf_dir))
		json_put_str(settings, "multusConfDir", folder);
	return 0;
}

/* ---- networks -------------------------------------------------------------------------------- */

/* The cluster's network by a path: a file of the folder, or the folder, which means its first. */
static int read_path(const char *path, const char *conf_dir, json_t *takeover, struct err *err)
{
	auto_free char *whole = folder_of(path);
	const char *slash = strrchr(whole, '/');
	/* "name/" has no slash left. */
	auto_free char *folder = str_ndup(whole, slash ? (size_t)(slash - whole) : 0);

	if (is_folder(whole, conf_dir))
		return 0;
	if (!slash || !is_folder(folder, conf_dir))
		return err_set(
			err, ERR_INVALID, REASON,
			"clusterNetwork is %.128s, which is not in the runtime's folder %.64s",
			path, conf_dir);
	json_put_str(takeover, "file", slash + 1);
	return 0;
}

/* Networks of all pods but those of system namespaces, besides the cluster's. */
static int read_networks(const json_t *read, const char *conf_dir, json_t *takeover,
			 json_t *settings, struct err *err)
{
	const char *cluster = json_str_or(json_at(read, "clusterNetwork"), "");
	json_t *defaults = json_at(read, "defaultNetworks");
	json_t *name;
	size_t i;

	if (!*cluster) {
		/* Multus does not look at the others then. */
		if (json_array_size(json_at(read, "delegates")))
			json_put(takeover, "delegates", json_incref(json_at(read, "delegates")));
		return 0;
	}
	if (strchr(cluster, '/')) {
		if (read_path(cluster, conf_dir, takeover, err) < 0)
			return -1;
	} else {
		json_put_str(takeover, "network", cluster);
		json_put_str(settings, "clusterNetwork", cluster);
	}
	json_array_foreach (defaults, i, name)
		if (!name_is_cni_network(json_string_value(name)))
			return err_set(err, ERR_INVALID, REASON,
				       "%s has \"%.128s\": our meta plugin takes names of networks "
				       "there, not paths",
				       "defaultNetworks", json_string_value(name));
	if (json_array_size(defaults))
		json_put(settings, "defaultNetworks", json_incref(defaults));
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Multus' own object. NULL with err: it is one of several plugins. Borrowed. */
static const json_t *plugin_of(const json_t *multus, struct err *err)
{
	const json_t *plugins = json_at(multus, "plugins");
	const json_t *first = json_array_get(plugins, 0);

	if (!plugins)
		return multus;
	if (json_array_size(plugins) == 1)
		return first;
	(void)err_set(err, ERR_INVALID, REASON,
		      "plugins has %zu plugins, %.64s behind or before Multus: our meta plugin "
		      "stands alone",
		      json_array_size(plugins),
		      json_str_or(json_at(cni_rules_type_is_meta(json_str_at(first, "type"))
						  ? json_array_get(plugins, 1)
						  : first,
					  "type"),
				  "?"));
	return NULL;
}

json_t *takeover_read(const json_t *multus, const char *conf_dir, const char *bin_dir,
		      struct err *err)
{
	const json_t *plugin = plugin_of(multus, err);
	json_auto_t *read = plugin ? read_keys(plugin, err) : NULL;
	json_auto_t *takeover = json_object();
	json_t *settings = json_need_object(takeover, "settings");

	assert(conf_dir && bin_dir);
	if (!read)
		return NULL;
	if (!str_empty(json_str_at(read, "auxiliaryCNIChainName"))) {
		(void)err_set(err, ERR_INVALID, REASON,
			      "auxiliaryCNIChainName is %.128s: our meta plugin has no such chain",
			      json_str_at(read, "auxiliaryCNIChainName"));
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].use == USE_CARRIED && !str_eq(json_str_at(read, keys[i].name), ""))
			json_put(settings, keys[i].name, json_incref(json_at(read, keys[i].name)));
	if (read_folders(read, conf_dir, bin_dir, settings, err) < 0 ||
	    read_networks(read, conf_dir, takeover, settings, err) < 0)
		return NULL;
	return json_incref(takeover);
}

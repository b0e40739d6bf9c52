// SPDX-License-Identifier: Apache-2.0
/*
 * The runtime's configuration. See the header.
 */
#include "nodeagent/meta/conf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/meta/network_config.h"

static bool is_ours(const json_t *file)
{
	return str_eq(json_str_at(file, "name"), META_CONF_FILE);
}

/* One of the plugins is a Multus, or ours under another name. */
static bool is_meta(const json_t *conf)
{
	const json_t *plugins = json_at(conf, "plugins");
	const char *type = json_str_at(conf, "type");
	json_t *plugin;
	size_t i;

	if (network_type_is_meta(type))
		return true;
	json_array_foreach (plugins, i, plugin)
		if (network_type_is_meta(json_str_at(plugin, "type")))
			return true;
	return false;
}

/* What is in the folder, read. */
struct folder {
	const char *ours;      /* the text of our file; NULL: it is not there */
	const char *multus;    /* the first file that configures another meta plugin */
	bool is_carried;       /* by that one: its text names our file, or our plugin */
	const char *before;    /* the first file that sorts before ours */
	json_t *network;       /* the cluster's, as network_config_read() has it; NULL: none */
	json_t *configuration; /* the same as its file has it */
};

static void read_folder(const json_t *files, struct folder *ret)
{
	json_t *file;
	size_t i;

	json_array_foreach (files, i, file) {
		const char *name = json_str_or(json_at(file, "name"), "");
		const char *text = json_str_or(json_at(file, "text"), "");
		json_auto_t *conf = json_parse(text, strlen(text), NULL);

		if (is_ours(file)) {
			ret->ours = text;
			continue;
		}
		/*
		 * A runtime that meets it loads nothing; but what is not ours is not ours to mend.
		 */
		if (!conf)
			continue;
		if (!ret->before && strcmp(name, META_CONF_FILE) < 0)
			ret->before = name;
		if (is_meta(conf)) {
			if (!ret->multus) {
				ret->multus = name;
				ret->is_carried = strcmp(name, META_CONF_FILE) < 0 &&
						  (strstr(text, META_CONF_FILE) ||
						   strstr(text, "\"orbweaver\""));
			}
			continue;
		}
		if (ret->network)
			continue;
		ret->network = network_config_read(conf, "", "", NULL);
		if (ret->network)
			ret->configuration = json_incref(conf);
	}
}

const char *meta_conf_multus(const json_t *files)
{
	struct folder folder = {0};

	read_folder(files, &folder);
	json_decref(folder.network);
	json_decref(folder.configuration);
	return folder.multus;
}

/*
 * What the runtime hands in when the configuration declares it: what the network's plugins declare.
 */
static json_t *capabilities(const json_t *network)
{
	json_t *all = json_pack("{s:b, s:b}", "portMappings", true, "bandwidth", true);
	json_t *plugin, *value;
	const char *key;
	size_t i;

	json_array_foreach (json_at(network, "plugins"), i, plugin)
		json_each (json_at(plugin, "capabilities"), key, value)
			if (json_is_true(value))
				json_put_bool(all, key, true);
	return all;
}

static char *conf_text(const struct meta_conf_input *in, const struct folder *folder)
{
	const char *version = json_str_or(json_at(folder->network, "cniVersion"), "");
	json_auto_t *conf = NULL;
	json_t *plugin =
		json_pack("{s:s, s:o, s:[O]}", "type", "orbweaver", "capabilities",
			  capabilities(folder->network), "delegates", folder->configuration);

	if (in->dir && !str_eq(in->dir, META_CONF_DIR))
		json_put_str(plugin, "confDir", in->dir);
	if (in->isolates) {
		json_put_bool(plugin, "namespaceIsolation", true);
		json_put_str(plugin, "globalNamespaces", in->shared);
	}
	conf = json_pack("{s:s, s:O, s:[o]}", "cniVersion", *version ? version : "0.3.1", "name",
			 json_at(folder->network, "name"), "plugins", plugin);
	return json_text(conf);
}

/* The plugin that the runtime would not find where it finds ours, or NULL. Borrowed. */
static const char *plugin_elsewhere(const struct meta_conf_input *in, const json_t *network)
{
	json_t *plugin;
	size_t i;

	if (!in->programs)
		return NULL;
	if (!json_list_has(in->programs, "orbweaver"))
		return "orbweaver";
	json_array_foreach (json_at(network, "plugins"), i, plugin)
		if (!json_list_has(in->programs, json_str_at(plugin, "type")))
			return json_str_at(plugin, "type");
	return NULL;
}

static void remove_ours(const struct folder *folder, struct meta_conf *ret)
{
	ret->action = folder->ours ? META_CONF_REMOVE : META_CONF_KEEP;
}

void meta_conf_decide(const struct meta_conf_input *in, struct meta_conf *ret)
{
	struct folder folder = {0};
	const char *missing;

	*ret = (struct meta_conf){.action = META_CONF_KEEP};
	read_folder(in->files, &folder);
	if (in->mode == META_OFF) {
		remove_ours(&folder, ret);
	} else if (folder.multus && !(folder.ours && folder.is_carried)) {
		(void)err_set(
			&ret->note, ERR_INVALID, "MultusFound",
			"%s configures Multus, so pods' networks are left to it; remove it to "
			"have our meta plugin instead",
			folder.multus);
		remove_ours(&folder, ret);
	} else if (!folder.network) {
		(void)err_set(
			&ret->note, ERR_TRANSIENT, "NoClusterNetwork",
			"the CNI folder has no configuration of the cluster's network: install "
			"a network plugin");
	} else if ((missing = plugin_elsewhere(in, folder.network))) {
		(void)err_set(
			&ret->note, ERR_INVALID, "PluginsElsewhere",
			"plugin %.64s is not in the folder of our CNI plugins, so the runtime "
			"would not find ours: set --cni-bin-dir to the runtime's folder",
			missing);
	} else {
		ret->text = conf_text(in, &folder);
		ret->action = str_eq(ret->text, folder.ours) ? META_CONF_KEEP : META_CONF_WRITE;
		if (folder.multus)
			(void)err_set(
				&ret->note, ERR_INVALID, "MultusFound",
				"%s configures Multus and has our file as the cluster's network, "
				"so it stays",
				folder.multus);
		else if (folder.before)
			(void)err_set(&ret->note, ERR_INVALID, "ConfNotFirst",
				      "%s sorts before " META_CONF_FILE
				      ", and runtimes take the first file: rename or remove it",
				      folder.before);
	}
	if (ret->action != META_CONF_WRITE)
		free(take_ptr(ret->text));
	json_decref(folder.network);
	json_decref(folder.configuration);
}

void meta_conf_done(struct meta_conf *conf)
{
	free(take_ptr(conf->text));
}

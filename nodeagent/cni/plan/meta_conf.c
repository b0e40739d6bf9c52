// SPDX-License-Identifier: Apache-2.0
/*
 * One look at the folder's files fills struct folder; the decision is a chain of cases from "not
 * wanted" to "write". nodeagent/cni/worker/conf.c calls it at each look with what it read, and
 * writes or removes the file.
 */
#include "nodeagent/cni/plan/meta_conf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/takeover.h"
#include "reconcilers/core/cni_rules.h"

/* One of the plugins is a Multus, or ours under another name. */
static bool is_meta(const json_t *conf)
{
	const json_t *plugins = json_at(conf, "plugins");
	const char *type = json_str_at(conf, "type");
	json_t *plugin;
	size_t i;

	if (cni_rules_type_is_meta(type))
		return true;
	json_array_foreach (plugins, i, plugin)
		if (cni_rules_type_is_meta(json_str_at(plugin, "type")))
			return true;
	return false;
}

/* What is in the folder, read. */
struct folder {
	const char *ours;      /* the text of our file; NULL: it is not there */
	const char *multus;    /* the first file that configures another meta plugin */
	const char *text;      /* that file's */
	bool is_carried;       /* by that one: its text names our file, or our plugin */
	const char *before;    /* the first file that sorts before ours */
	json_t *network;       /* the cluster's, as network_config_read() has it; NULL: none */
	json_t *configuration; /* the same as its file has it */
	bool is_meant;         /* it is the one that a Multus before us had, or there was none */
};

static void folder_done(struct folder *folder)
{
	json_decref(folder->network);
	json_decref(folder->configuration);
}

/* Is this the cluster's network, by what a Multus' configuration says (takeover.h; NULL: none)? */
static bool is_meant(const json_t *takeover, const char *file, const json_t *network)
{
	const json_t *first = json_array_get(json_at(takeover, "delegates"), 0);
	const char *named = json_str_at(takeover, "file");
	const char *called = json_str_or(json_at(first, "name"), json_str_at(takeover, "network"));

	if (str_eq(named, META_CONF_FILE))
		named = NULL; /* that Multus had ours */
	if (named)
		return str_eq(named, file);
	return !called || str_eq(called, json_str_at(network, "name"));
}

/* Take it if it is the first one, or the one that is meant. */
static void take_network(struct folder *folder, const json_t *takeover, const char *file,
			 const json_t *conf)
{
	json_t *network = network_config_read(conf, "", "", NULL);
	bool meant = network && is_meant(takeover, file, network);

	if (network && (!folder->network || (meant && !folder->is_meant))) {
		folder_done(folder);
		folder->network = network;
		folder->configuration = json_incref((json_t *)conf);
		folder->is_meant = meant;
	} else {
		json_decref(network);
	}
}

/* takeover: NULL where no Multus was before us. */
static void read_folder(const json_t *files, const json_t *takeover, struct folder *ret)
{
	json_t *file;
	size_t i;

	json_array_foreach (files, i, file) {
		const char *name = json_str_or(json_at(file, "name"), "");
		const char *text = json_str_or(json_at(file, "text"), "");
		json_auto_t *conf = json_parse(text, strlen(text), NULL);

		if (str_eq(json_str_at(file, "name"), META_CONF_FILE)) {
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
				ret->text = text;
				ret->is_carried = strcmp(name, META_CONF_FILE) < 0 &&
						  (strstr(text, META_CONF_FILE) ||
						   strstr(text, "\"orbweaver\""));
			}
			continue;
		}
		take_network(ret, takeover, name, conf);
	}
}

const char *meta_conf_multus(const json_t *files)
{
	struct folder folder = {0};

	read_folder(files, NULL, &folder);
	folder_done(&folder);
	return folder.multus;
}

/* ---- the Multus before us -------------------------------------------------------------------- */

/*
 * What is taken over from this text, new: an empty object where there is none. NULL with err, of
 * takeover_read().
 */
static json_t *read_takeover(const struct meta_conf_input *in, const char *text, struct err *err)
{
	json_auto_t *multus = text ? json_parse(text, strlen(text), NULL) : NULL;
	json_t *takeover;

	if (!multus)
		return json_object();
	takeover = takeover_read(multus, in->dir ? in->dir : META_CONF_DIR,
				 in->bin_dir ? in->bin_dir : META_BIN_DIR, err);
	if (!takeover)
		(void)err_in(err, "Multus' configuration");
	return takeover;
}

/* A network within Multus' own configuration that the folder has not, and that is one. */
static void take_delegate(const json_t *takeover, struct folder *folder)
{
	json_t *first = json_array_get(json_at(takeover, "delegates"), 0);
	json_t *network;

	if (!first || folder->is_meant || is_meta(first) ||
	    !(network = network_config_read(first, "", "", NULL)))
		return;
	folder_done(folder);
	folder->network = network;
	folder->configuration = json_incref(first);
	folder->is_meant = true;
}

/* The file that is named is not there, or is no network: another one is not what pods had. */
static int check_meant(const json_t *takeover, const struct folder *folder, struct err *err)
{
	const char *file = json_str_at(takeover, "file");

	if (!file || folder->is_meant)
		return 0;
	return err_set(
		err, ERR_INVALID, "MultusKey",
		"Multus' configuration: clusterNetwork is the file %.128s, which the CNI folder "
		"does not have as a network",
		file);
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

/* The cluster's network, and those that the Multus before us had besides for every pod. New. */
static json_t *delegates_of(const struct folder *folder, const json_t *takeover)
{
	json_t *list = json_pack("[O]", folder->configuration), *more;
	size_t i;

	json_array_foreach (json_at(takeover, "delegates"), i, more)
		if (i > 0)
			json_array_append(list, more);
	return list;
}

static char *conf_text(const struct meta_conf_input *in, const struct folder *folder,
		       const json_t *takeover)
{
	const char *version = json_str_or(json_at(folder->network, "cniVersion"), "");
	json_auto_t *conf = NULL;
	json_t *plugin = json_pack("{s:s, s:o, s:o}", "type", "orbweaver", "capabilities",
				   capabilities(folder->network), "delegates",
				   delegates_of(folder, takeover));

	if (json_at(takeover, "settings"))
		json_object_update(plugin, json_at(takeover, "settings"));

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

static void leave_to_multus(const struct meta_conf_input *in, const struct folder *folder,
			    struct meta_conf *ret)
{
	struct err why = {0};
	json_auto_t *takeover = read_takeover(in, folder->text, &why);

	if (takeover)
		(void)err_set(
			&ret->note, ERR_INVALID, "MultusFound",
			"%s configures Multus, so pods' networks are left to it; remove it to "
			"have our meta plugin instead",
			folder->multus);
	else
		ret->note = why;
	remove_ours(folder, ret);
}

void meta_conf_decide(const struct meta_conf_input *in, struct meta_conf *ret)
{
	struct folder folder = {0};
	struct err refused = {0};
	json_auto_t *takeover = read_takeover(in, in->multus_was, &refused);
	const char *missing;

	assert(in->mode == META_AUTO || in->mode == META_OFF);
	*ret = (struct meta_conf){.action = META_CONF_KEEP};
	read_folder(in->files, takeover, &folder);
	take_delegate(takeover, &folder);
	if (in->mode == META_OFF) {
		remove_ours(&folder, ret);
	} else if (folder.multus && !(folder.ours && folder.is_carried)) {
		leave_to_multus(in, &folder, ret);
	} else if (!takeover) {
		ret->note = refused;
	} else if (!folder.network) {
		(void)err_set(
			&ret->note, ERR_TRANSIENT, "NoClusterNetwork",
			"the CNI folder has no configuration of the cluster's network: install "
			"a network plugin");
	} else if (check_meant(takeover, &folder, &ret->note) < 0) {
		/* Ours, where it is there, stays. */
	} else if ((missing = plugin_elsewhere(in, folder.network))) {
		(void)err_set(
			&ret->note, ERR_INVALID, "PluginsElsewhere",
			"plugin %.64s is not in the folder of our CNI plugins, so the runtime "
			"would not find ours: set --cni-bin-dir to the runtime's folder",
			missing);
	} else {
		ret->text = conf_text(in, &folder, takeover);
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
	assert(!ret->text == (ret->action != META_CONF_WRITE));
	folder_done(&folder);
}

void meta_conf_done(struct meta_conf *conf)
{
	free(take_ptr(conf->text));
}

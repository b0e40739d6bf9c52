// SPDX-License-Identifier: Apache-2.0
/*
 * What each profile calls for, name by name, and the words for it. The process that serves CNI
 * plugins observes the node, asks here, and carries it out (nodeagent/cni/worker/profile_keeper.h).
 */
#include "nodeagent/cni/plan/profile.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

static const char *const names[] = {
	[PROFILE_AUTO] = "auto",
	[PROFILE_DELEGATE] = "delegate",
	[PROFILE_DEVICES] = "devices",
};

bool profile_read(const char *text, enum profile *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(text, names[i])) {
			*ret = (enum profile)i;
			return true;
		}
	return false;
}

const char *profile_name(enum profile profile)
{
	assert((size_t)profile < ARRAY_LEN(names));
	return names[profile];
}

/* ---- names ----------------------------------------------------------------------------------- */

enum fate {
	FATE_STAYS,    /* as it is, whoever's it is */
	FATE_OURS,     /* ours, in the newest version */
	FATE_RESTORED, /* what it was before us */
};

static bool may_go(const struct profile_input *in)
{
	return in->use == PROFILE_UNUSED;
}

/* The runtime's configuration names plugins, so it goes a look before them. */
static bool is_called_for(const struct profile_input *in, bool is_saved)
{
	switch (in->profile) {
	case PROFILE_AUTO:
		return !is_saved;
	case PROFILE_DELEGATE:
		return true;
	case PROFILE_DEVICES:
		return in->has_conf;
	}
	return false;
}

static enum fate fate_of(const struct profile_input *in, const json_t *plugin)
{
	bool is_saved = json_is_true(json_at(plugin, "saved"));
	const char *owner = json_str_at(plugin, "owner");

	/* One has to be there, whichever program attaches pods. */
	if (json_is_true(json_at(plugin, "forAll")) && !is_saved && !str_eq(owner, "nobody"))
		return str_eq(owner, "ours") ? FATE_OURS : FATE_STAYS;
	if (str_eq(owner, "other"))
		return in->profile == PROFILE_DELEGATE ? FATE_OURS : FATE_STAYS;
	if (str_eq(owner, "ours") && (is_called_for(in, is_saved) || !may_go(in)))
		return FATE_OURS;
	if (str_eq(owner, "ours") || (is_saved && in->profile != PROFILE_DELEGATE))
		return FATE_RESTORED;
	/* A pod came while they were taken away, and is to be deleted by what attached it. */
	if (in->profile == PROFILE_DEVICES)
		return in->use == PROFILE_USED ? FATE_OURS : FATE_STAYS;
	return FATE_OURS;
}

static void add_name(struct strbuf *list, const char *name)
{
	if (list->len)
		strbuf_adds(list, ", ");
	strbuf_adds(list, name);
}

/* What is said of names in the message. */
struct told {
	struct strbuf kept;    /* another program's, where ours would be */
	struct strbuf waiting; /* ours until no pod uses them */
};

static void told_done(struct told *told)
{
	strbuf_done(&told->kept);
	strbuf_done(&told->waiting);
}
#define auto_told auto_call(told_done)

static void decide_names(const struct profile_input *in, struct profile_decision *ret,
			 struct told *told)
{
	const json_t *plugin;
	size_t i;

	json_array_foreach ((json_t *)in->plugins, i, plugin) {
		const char *name = json_str_at(plugin, "name");
		bool is_saved = json_is_true(json_at(plugin, "saved"));

		switch (fate_of(in, plugin)) {
		case FATE_OURS:
			json_array_append_new(ret->install, json_string(name));
			if (!may_go(in) && (in->profile == PROFILE_DEVICES ||
					    (in->profile == PROFILE_AUTO && is_saved)))
				add_name(&told->waiting, name);
			break;
		case FATE_RESTORED:
			json_array_append_new(ret->restore, json_string(name));
			break;
		case FATE_STAYS:
			if (in->profile == PROFILE_AUTO && !json_is_true(json_at(plugin, "common")))
				add_name(&told->kept, name);
			break;
		}
	}
}

/* ---- the meta plugin ------------------------------------------------------------------------- */

/* Its configuration stays while pods have networks that it set up, or comes back for them. */
static bool keeps_meta(const struct profile_input *in)
{
	return in->profile != PROFILE_AUTO && !may_go(in) && (in->has_conf || in->is_meta_used);
}

/* For a while, whose end no change in the folders tells. */
static bool waits_for_multus(const struct profile_input *in)
{
	return in->profile == PROFILE_AUTO && !in->multus && in->is_multus_away && !in->has_conf;
}

static enum meta_mode meta_of(const struct profile_input *in)
{
	if (in->profile == PROFILE_AUTO)
		return waits_for_multus(in) ? META_OFF : META_AUTO;
	return keeps_meta(in) ? META_AUTO : META_OFF;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Takes the message. */
static json_t *networks_new(bool serves, bool is_fault, const char *reason, json_t *message)
{
	return json_pack("{s:b, s:b, s:s, s:o}", "serves", serves, "fault", is_fault, "reason",
			 reason, "message", message);
}

static json_t *in_use(const struct profile_input *in, const char *what)
{
	if (in->use == PROFILE_USE_UNKNOWN)
		return networks_new(true, false, "PluginsInUse",
				    json_fmt("profile %s waits to take %s away: it is not known "
					     "whether pods use it; drain the node, or see the "
					     "agent's log",
					     profile_name(in->profile), what));
	return networks_new(true, false, "PluginsInUse",
			    json_fmt("profile %s waits to take %s away: pods use it, among them "
				     "%.300s; drain the node, or wait until they end",
				     profile_name(in->profile), what,
				     in->user ? in->user : "one that is not named"));
}

static json_t *words_for_auto(const struct profile_input *in, const struct told *told)
{
	const char *kept = told->kept.len ? strbuf_str(&told->kept) : NULL;

	if (told->waiting.len)
		return in_use(in, strbuf_str(&told->waiting));
	if (!in->multus && meta_of(in) == META_OFF)
		return networks_new(
			false, false, "MultusAway",
			json_fmt("Multus is installed and its configuration is missing: it is "
				 "waited for, then our meta plugin takes its place"));
	if (kept)
		return networks_new(
			true, false, "PluginsKept",
			json_fmt("%s of another program stay%s: set label " PROFILE_LABEL
				 "=delegate on the Node to replace %s after a backup; %s",
				 kept, strchr(kept, ',') ? "" : "s",
				 strchr(kept, ',') ? "them" : "it",
				 in->multus ? "Multus calls ours by the other names"
					    : "our meta plugin uses its own"));
	if (in->multus)
		return networks_new(
			true, false, "MultusDelegates",
			json_fmt("%.64s configures Multus, which calls our plugins", in->multus));
	return networks_new(true, false, "MetaPlugin",
			    json_fmt("no Multus is configured: " META_CONF_FILE
				     " has our meta plugin set up all networks of pods"));
}

static json_t *words_for_profile(const struct profile_input *in, const struct told *told)
{
	switch (in->profile) {
	case PROFILE_AUTO:
		return words_for_auto(in, told);
	case PROFILE_DELEGATE:
		if (keeps_meta(in))
			return in_use(in, META_CONF_FILE);
		return networks_new(
			true, false, "PluginsOnly",
			json_fmt("profile delegate: our CNI plugins are installed under "
				 "all of their names; another program calls them"));
	case PROFILE_DEVICES:
		if (told->waiting.len)
			return in_use(in, strbuf_str(&told->waiting));
		return networks_new(false, false, "DevicesOnly",
				    json_fmt("profile devices: VFs, RDMA mode and resources only; "
					     "CNI is left to other programs"));
	}
	return NULL;
}

void profile_decide(const struct profile_input *in, struct profile_decision *ret)
{
	auto_told struct told told = {0};

	*ret = (struct profile_decision){
		.install = json_array(), .restore = json_array(), .meta = meta_of(in)};
	decide_names(in, ret, &told);
	ret->is_waiting = told.waiting.len > 0 || keeps_meta(in) || waits_for_multus(in);
	ret->networks = words_for_profile(in, &told);
}

void profile_decision_done(struct profile_decision *decision)
{
	json_decref(decision->install);
	json_decref(decision->restore);
	json_decref(decision->networks);
}

json_t *profile_trouble(const struct err *err)
{
	assert(err->class != ERR_NONE);
	return networks_new(false, err->class != ERR_TRANSIENT, err->reason,
			    json_fmt("%s", err->text));
}

json_t *profile_refused(const char *node, const char *value)
{
	return networks_new(false, true, "BadProfile",
			    json_fmt("label " PROFILE_LABEL " of Node %.253s: \"%.63s\" is not a "
				     "profile; must be " PROFILE_WORDS
				     "; CNI of the node stays as it is",
				     node, value));
}

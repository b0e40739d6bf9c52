// SPDX-License-Identifier: Apache-2.0
/*
 * One look: folders → profile_decide() → plugins, then the runtime's configuration, which names
 * them. Part of the process that serves CNI plugins.
 */
#include "nodeagent/cni/server/profile_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/conf.h"
#include "nodeagent/cni/state/install.h"

struct profile_keeper {
	struct profile_keeper_config config;
	struct timer *looking;
	struct conf *conf;
	enum profile profile;
	bool is_set;
	bool must_read;     /* plugins, at the next look */
	unsigned int looks; /* since they were read */
	json_t *plugins;    /* as they were read last */
	char *multus;       /* the file, at the last look; NULL: there was none */
	int64_t multus_ms;  /* when it was there last, or we began */
	struct err failed;  /* of the last installation */
	json_t *networks;   /* as said last */
};

/* Multus keeps its account's kubeconfig there, and leaves it when its pod ends. */
static bool is_multus_installed(const struct profile_keeper *keeper)
{
	auto_free char *path = str_below(keeper->config.conf_dir, "multus.d");
	auto_close int fd =
		root_open(keeper->config.root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

	return fd >= 0;
}

static void look_at_multus(struct profile_keeper *keeper, const json_t *files)
{
	const char *multus = meta_conf_multus(files);

	if (!str_eq(multus, keeper->multus)) {
		mem_free(keeper->multus);
		keeper->multus = multus ? str_dup(multus) : NULL;
		keeper->must_read = true;
	}
	if (multus)
		keeper->multus_ms = clock_ms();
}

static void read_plugins(struct profile_keeper *keeper)
{
	if (!keeper->must_read && ++keeper->looks < PROFILE_LOOKS_PER_READ)
		return;
	json_decref(keeper->plugins);
	keeper->plugins = install_look(keeper->config.root, keeper->config.bin_dir);
}

/* Of the plugins that were read just now. */
static void carry_out(struct profile_keeper *keeper, const struct profile_decision *decision)
{
	const struct profile_keeper_config *config = &keeper->config;
	struct err err = {0};

	if (!keeper->must_read && keeper->looks < PROFILE_LOOKS_PER_READ)
		return;
	keeper->looks = 0;
	if (install_restore(config->root, config->bin_dir, decision->restore, &err) == 0)
		(void)install_plugins(config->root, config->bin_dir, config->program,
				      decision->install, &err);
	if (err.class != ERR_NONE && !str_eq(err.text, keeper->failed.text))
		log_error("the CNI plugins cannot be installed, trying again", F_ERR(&err));
	keeper->failed = err;
}

/* Takes it. */
static void say(struct profile_keeper *keeper, json_t *networks)
{
	if (json_same(networks, keeper->networks)) {
		json_decref(networks);
		return;
	}
	log_at(json_is_true(json_at(networks, "fault")) ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
	       "networks of pods", F_STR("profile", profile_name(keeper->profile)),
	       F_STR("reason", json_str_at(networks, "reason")),
	       F_STR("why", json_str_at(networks, "message")));
	json_decref(keeper->networks);
	keeper->networks = networks;
	keeper->config.said(keeper->config.arg, networks);
}

/*
 * What is said anyhow, and while Multus is there what keeps ours from taking its place, before
 * anybody removes it. New.
 */
static json_t *with_obstacle(const struct profile_keeper *keeper, json_t *networks,
			     const struct err *note)
{
	json_t *both;

	if (!keeper->multus || !str_eq(note->reason, "MultusKey"))
		return json_incref(networks);
	both = json_copy(networks);
	json_put(both, "message",
		 json_fmt("%s; our meta plugin would not take its place: %s",
			  json_str_at(networks, "message"), note->text));
	return both;
}

static void look(struct profile_keeper *keeper)
{
	json_auto_t *files = conf_files(keeper->config.root, keeper->config.conf_dir);
	struct profile_usage usage = keeper->config.usage(keeper->config.arg);
	struct profile_decision decision;
	struct err note = {0};

	look_at_multus(keeper, files);
	read_plugins(keeper);
	profile_decide(
		&(struct profile_input){
			.profile = keeper->profile,
			.plugins = keeper->plugins,
			.has_conf = json_find(files, "name", META_CONF_FILE) != NULL,
			.multus = keeper->multus,
			.is_multus_away = clock_ms() - keeper->multus_ms < PROFILE_MULTUS_MS &&
					  is_multus_installed(keeper),
			.use = usage.use,
			.is_meta_used = usage.is_meta_used,
			.user = usage.user,
		},
		&decision);
	mem_free(usage.user);
	carry_out(keeper, &decision);
	conf_look(keeper->conf, decision.meta, files, &note);
	/* What goes once a file or a pod has gone is looked after soon. */
	keeper->must_read = decision.is_waiting || keeper->failed.class != ERR_NONE ||
			    (decision.meta == META_OFF && json_find(files, "name", META_CONF_FILE));
	if (keeper->failed.class != ERR_NONE)
		say(keeper, profile_trouble(&keeper->failed));
	else if (decision.meta == META_AUTO && !decision.is_waiting && !keeper->multus &&
		 note.class != ERR_NONE)
		say(keeper, profile_trouble(&note));
	else
		say(keeper, with_obstacle(keeper, decision.networks, &note));
	profile_decision_done(&decision);
}

static void on_looking(void *arg)
{
	struct profile_keeper *keeper = arg;

	look(keeper);
	timer_start(keeper->looking, PROFILE_LOOK_MS);
}

struct profile_keeper *profile_keeper_new(const struct profile_keeper_config *config)
{
	struct profile_keeper *keeper = mem_new(struct profile_keeper);

	keeper->config = *config;
	keeper->looking = timer_new(config->loop, on_looking, keeper);
	keeper->multus_ms = clock_ms();
	keeper->conf = conf_new(&(struct conf_config){.root = config->root,
						      .dir = config->conf_dir,
						      .bin_dir = config->bin_dir,
						      .isolates = config->isolates,
						      .shared = config->shared});
	return keeper;
}

void profile_keeper_free(struct profile_keeper *keeper)
{
	if (!keeper)
		return;
	timer_free(keeper->looking);
	conf_free(keeper->conf);
	json_decref(keeper->plugins);
	json_decref(keeper->networks);
	mem_free(keeper->multus);
	mem_free(keeper);
}

void profile_keeper_set(struct profile_keeper *keeper, enum profile profile)
{
	if (keeper->is_set && keeper->profile == profile)
		return;
	keeper->is_set = true;
	keeper->profile = profile;
	keeper->must_read = true;
	timer_start(keeper->looking, 0);
}

void profile_keeper_look(struct profile_keeper *keeper)
{
	if (!keeper->is_set)
		return;
	keeper->must_read = true;
	look(keeper);
}

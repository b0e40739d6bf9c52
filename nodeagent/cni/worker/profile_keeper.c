// SPDX-License-Identifier: Apache-2.0
/*
 * One look: folders → profile_decide() → plugins, then the runtime's configuration, which names
 * them. In a worker, by order of the server (node_job.c).
 */
#include "nodeagent/cni/worker/profile_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/install.h"
#include "nodeagent/cni/worker/conf.h"

struct profile_keeper {
	struct profile_keeper_config config;
	struct conf *conf;
	char *multus;      /* the file, at the last look; NULL: there was none */
	int64_t multus_ms; /* when it was there last, or we began */
	struct err failed; /* of the last installation */
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
	}
	if (multus)
		keeper->multus_ms = clock_ms();
}

static void carry_out(struct profile_keeper *keeper, const struct profile_decision *decision)
{
	const struct profile_keeper_config *config = &keeper->config;
	struct err err = {0};

	if (install_restore(config->root, config->bin_dir, decision->restore, &err) == 0)
		(void)install_plugins(config->root, config->bin_dir, config->program,
				      decision->install, &err);
	if (err.class != ERR_NONE && !str_eq(err.text, keeper->failed.text))
		log_error("the CNI plugins cannot be installed, trying again", F_ERR(&err));
	keeper->failed = err;
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

json_t *profile_keeper_look(struct profile_keeper *keeper, enum profile profile,
			    const struct profile_usage *usage, bool *ret_is_open)
{
	struct err note = {0};
	json_auto_t *files = conf_files(keeper->config.root, keeper->config.conf_dir, &note);
	json_auto_t *plugins = install_look(keeper->config.root, keeper->config.bin_dir);
	struct profile_decision decision;
	json_t *networks;

	/* What is not seen may be a Multus: nothing is decided then. */
	if (!files) {
		*ret_is_open = true;
		return profile_trouble(&note);
	}
	look_at_multus(keeper, files);
	profile_decide(
		&(struct profile_input){
			.profile = profile,
			.plugins = plugins,
			.has_conf = json_find(files, "name", META_CONF_FILE) != NULL,
			.multus = keeper->multus,
			.is_multus_away = clock_ms() - keeper->multus_ms < PROFILE_MULTUS_MS &&
					  is_multus_installed(keeper),
			.use = usage->use,
			.is_meta_used = usage->is_meta_used,
			.user = usage->user,
		},
		&decision);
	carry_out(keeper, &decision);
	conf_look(keeper->conf, decision.meta, files, &note);
	*ret_is_open = decision.is_waiting || keeper->failed.class != ERR_NONE ||
		       str_eq(note.reason, "ConfNotWritten") ||
		       str_eq(note.reason, "ConfUnreadable") ||
		       (decision.meta == META_OFF && json_find(files, "name", META_CONF_FILE));
	if (keeper->failed.class != ERR_NONE)
		networks = profile_trouble(&keeper->failed);
	else if (decision.meta == META_AUTO && !decision.is_waiting && !keeper->multus &&
		 note.class != ERR_NONE)
		networks = profile_trouble(&note);
	else
		networks = with_obstacle(keeper, decision.networks, &note);
	profile_decision_done(&decision);
	return networks;
}

/* ---- memory ---------------------------------------------------------------------------------- */

json_t *profile_keeper_memory(const struct profile_keeper *keeper)
{
	json_t *memory = json_object();

	json_put_str(memory, "multus", keeper->multus);
	json_put_int(memory, "multusMs", keeper->multus_ms);
	if (keeper->failed.class != ERR_NONE)
		json_put(memory, "failed", ask_error_new(&keeper->failed));
	json_put(memory, "conf", conf_memory(keeper->conf));
	return memory;
}

/* What is not as it should be is as at the first look. */
static void remember(struct profile_keeper *keeper, const json_t *memory)
{
	const char *multus = json_str_at(memory, "multus");

	keeper->multus = multus ? str_dup(multus) : NULL;
	keeper->multus_ms = json_is_integer(json_at(memory, "multusMs"))
				    ? json_integer_value(json_at(memory, "multusMs"))
				    : clock_ms();
	if (json_at(memory, "failed"))
		(void)ask_error_read(json_at(memory, "failed"), &keeper->failed);
}

struct profile_keeper *profile_keeper_new(const struct profile_keeper_config *config)
{
	struct profile_keeper *keeper = mem_new(struct profile_keeper);

	keeper->config = *config;
	keeper->conf = conf_new(&(struct conf_config){.root = config->root,
						      .dir = config->conf_dir,
						      .bin_dir = config->bin_dir,
						      .isolates = config->isolates,
						      .shared = config->shared,
						      .memory = json_at(config->memory, "conf")});
	remember(keeper, config->memory);
	return keeper;
}

void profile_keeper_free(struct profile_keeper *keeper)
{
	if (!keeper)
		return;
	conf_free(keeper->conf);
	mem_free(keeper->multus);
	mem_free(keeper);
}

int profile_keeper_remove(int root, const char *conf_dir, const char *bin_dir, struct err *err)
{
	return conf_remove(root, conf_dir, err) < 0 ? -1 : install_remove(root, bin_dir, err);
}

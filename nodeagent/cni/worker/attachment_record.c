// SPDX-License-Identifier: Apache-2.0
/*
 * What DEL needs of an attachment, in the file of its sandbox: written by attachment.c before the
 * first change, and after the last one.
 */
#include "nodeagent/cni/worker/attachment_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/attach.h"
#include "nodeagent/cni/state/boot_id.h"
#include "nodeagent/cni/worker/meta_call.h"
#include "nodeagent/cni/worker/spiderpool.h"

/* A change on its way to the file. */
struct change {
	const struct attachment *attachment;
	const struct record_change *what;
	bool is_too_large; /* found out: nothing was written */
	size_t size;       /* then: of the record */
};

/*
 * Bytes of one record: a file with those of all networks that a pod can have stays below
 * SANDBOX_MAX, or the newest would not be read any more.
 */
enum { RECORD_MAX = 64 << 10, META_RECORD_MAX = 1 << 20 };

static bool has_netns_open(const json_t *sandbox, const struct attachment *a)
{
	auto_close int netns = -1;

	return sandbox_life(sandbox, a->root, &netns) == NETNS_EXISTS;
}

/*
 * A file that is there may be of a namespace before this one: what is attached now would be taken
 * for gone with that. One of this namespace keeps its pod, and its path while that leads there.
 */
static void describe_sandbox(json_t *sandbox, const struct attachment *a)
{
	const char *path = json_str_at(a->env, "CNI_NETNS");
	const char *uid = json_str_at(a->pod, "uid");
	bool has_netns, is_same;
	auto_free char *boot = NULL;
	struct stat st;
	json_t *netns;

	has_netns = a->netns >= 0 && fstat(a->netns, &st) == 0;
	is_same = has_netns && sandbox_is_of(sandbox, &st, path, uid);
	if (json_object_get(sandbox, "boot") &&
	    (a->is_going || !has_netns ||
	     (is_same &&
	      (str_eq(json_str_at(sandbox, "netns", "path"), path) || has_netns_open(sandbox, a)))))
		return;
	boot = boot_id();
	if (*boot || !json_object_get(sandbox, "boot"))
		json_put_str(sandbox, "boot", boot);
	if (!is_same)
		json_put(sandbox, "pod", json_deep_copy(a->pod));
	netns = json_need_object(sandbox, "netns");
	json_put_str(netns, "path", path);
	if (!has_netns)
		return;
	json_put_int(netns, "device", (int64_t)st.st_dev);
	json_put_int(netns, "inode", (int64_t)st.st_ino);
}

/*
 * What DEL needs of the configuration: all but the result of the plugin before, which only ADD and
 * CHECK read, and which they are given. New.
 */
static json_t *config_to_keep(const struct attachment *a)
{
	json_auto_t *kept = json_copy((json_t *)a->config);

	/* The meta plugin's is how it takes down what was set up before it came. */
	if (!str_eq(a->key.plugin, META_PLUGIN))
		(void)json_object_del(kept, "prevResult");
	return json_deep_copy(kept);
}

static json_t *add_record(json_t *sandbox, const struct attachment *a)
{
	json_t *record = json_object();

	json_put_str(record, "plugin", a->key.plugin);
	json_put_str(record, "network", a->key.network);
	json_put_str(record, "ifname", a->key.ifname);
	json_put(record, "config", config_to_keep(a));
	json_put(record, "env", json_deep_copy(a->env));
	json_array_append_new(json_at(sandbox, "attachments"), record);
	return record;
}

static void remove_record(json_t *sandbox, const json_t *record)
{
	json_t *list = json_at(sandbox, "attachments");
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (item != record)
			continue;
		json_array_remove(list, i);
		return;
	}
}

static size_t size_of(const json_t *record)
{
	return record ? json_dumpb(record, NULL, 0, JSON_COMPACT) : 0;
}

/* The meta plugin keeps the configurations of all networks of its pod. */
static size_t record_max(const struct attachment *a)
{
	return str_eq(a->key.plugin, META_PLUGIN) ? META_RECORD_MAX : RECORD_MAX;
}

static bool change_record(void *arg, json_t *sandbox)
{
	struct change *change = arg;
	const struct record_change *what = change->what;
	const struct attachment *a = change->attachment;
	json_t *record = sandbox_find(sandbox, &a->key);
	size_t before = size_of(record);
	json_auto_t *config = NULL;

	if (!record && (what->is_gone || what->must_exist))
		return false;
	if (what->is_gone) {
		remove_record(sandbox, record);
		return true;
	}
	describe_sandbox(sandbox, a);
	if (!record) {
		record = add_record(sandbox, a);
		/* Nothing of a DEL was ever allowed (allowed_types.c). */
		if (a->is_going)
			json_put_bool(record, "unchecked", true);
	}
	if (!a->is_going)
		(void)json_object_del(record, "unchecked");
	/* Of an ADD before this one, which changed nothing: DEL would be about its device. */
	config = config_to_keep(a);
	if (!a->is_going && !(json_equal(json_at(record, "config"), config) &&
			      json_equal(json_at(record, "env"), a->env))) {
		json_put(record, "config", json_incref(config));
		json_put(record, "env", json_deep_copy(a->env));
	}
	json_put_str(record, "phase", what->phase);
	if (what->has_saved)
		(void)json_object_del(record, "saved");
	if (what->saved)
		json_put(record, "saved", json_deep_copy(what->saved));
	if (what->result)
		json_put(record, "result", json_deep_copy(what->result));
	change->size = size_of(record);
	change->is_too_large = change->size > record_max(a) && change->size > before;
	return !change->is_too_large;
}

/*
 * What a power cut need not leave: a sync takes longer than all else. Interfaces that were made,
 * and links, routes and rules of a coordinator, end with the power. Addresses are the pod's: DEL
 * gives them back without a record, too, and so does the agent that comes up afterwards
 * (addresses.h). A process that is killed takes nothing along.
 */
static bool outlives_power(const struct attachment *a)
{
	return !str_eq(a->key.plugin, "coordinator") && !str_eq(a->key.plugin, SPIDERPOOL) &&
	       !attach_is_common(a->key.plugin);
}

int attachment_record_put(const struct attachment *a, struct record_change what, bool sync,
			  struct err *err)
{
	struct change change = {.attachment = a, .what = &what};
	/*
	 * Without it the attachment would be undone, once more: that it is there, that it is not.
	 */
	bool is_better = !outlives_power(a) && (what.is_gone || str_eq(what.phase, "added"));

	if (sandbox_change(a->state, a->container,
			   is_better                   ? SANDBOX_LATER
			   : sync && outlives_power(a) ? SANDBOX_SYNCED
						       : SANDBOX_WRITTEN,
			   change_record, &change, err) < 0)
		return -1;
	if (change.is_too_large)
		return err_set(err, ERR_INVALID, "SandboxTooLarge",
			       "%s: what DEL would need of network %s has %zu bytes, of which %zu "
			       "can be kept: make its configuration smaller",
			       a->key.plugin, a->key.network, change.size, record_max(a));
	return 0;
}

int attachment_record_load(const struct attachment *a, json_t **ret, struct err *err)
{
	json_auto_t *sandbox = NULL;

	*ret = NULL;
	if (sandbox_load(a->state, a->container, &sandbox, err) < 0)
		return -1;
	*ret = json_incref(sandbox_find(sandbox, &a->key));
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What was made, in words, for the log and the event at the end of a round (agent_report.c).
 *
 * Each step becomes a change of its PF, or of the node; steps for several VFs that say the same are
 * one change.
 */
#include "nodeagent/host_plan/change_summary.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* The most important first. Of each of a PF, or of the node, the last is said, or each. */
enum rank {
	RANK_VFS,
	RANK_ESWITCH,
	RANK_RDMA_MODE,
	RANK_NEXT_BOOT,
	RANK_MTU,
	RANK_DRIVER,
	RANK_ADDRESS,
	RANK_LINK,
	RANK_AUTOPROBE,
	RANK_EACH, /* from here on */
	RANK_SETTING = RANK_EACH,
	RANK_RULE,
	RANK_MODULE,
};

/* What is said of a step: `before`, the value of its field, `after`. */
static const struct words {
	const char *step;
	bool of_vf; /* goes on after "4 VFs " */
	enum rank rank;
	const char *before, *field, *after;
} all_words[] = {
	{"set-eswitch", false, RANK_ESWITCH, "eSwitchMode ", "mode", ""},
	{"set-firmware", false, RANK_ESWITCH, "firmware set for ", "count", " VFs"},
	{"set-rdma-netns-mode", false, RANK_RDMA_MODE, "rdmaMode ", "mode", ""},
	{"write-rdma-next-boot", false, RANK_NEXT_BOOT, "rdmaMode ", "mode",
	 " from the next boot on"},
	{"remove-rdma-next-boot", false, RANK_NEXT_BOOT,
	 "rdmaMode of the next boot left to the node", NULL, ""},
	{"record-reboot", false, RANK_NEXT_BOOT, "reboot recorded for ", "cause", ""},
	{"close-reboot", false, RANK_NEXT_BOOT, "record of reboots closed for ", "cause", ""},
	{"reboot", false, RANK_NEXT_BOOT, "reboot asked for, because of ", "cause", ""},
	{"set-mtu", false, RANK_MTU, "MTU ", "mtu", ""},
	{"set-mtu", true, RANK_MTU, "with MTU ", "mtu", ""},
	{"probe-driver", true, RANK_DRIVER, "bound to ", "driver", ""},
	{"set-vf-mac", true, RANK_ADDRESS, "given MAC addresses", NULL, ""},
	{"set-vf-guid", true, RANK_ADDRESS, "given GUIDs", NULL, ""},
	{"set-vf-link-state", true, RANK_LINK, "with another link state", NULL, ""},
	{"link-up", false, RANK_LINK, "link up", NULL, ""},
	{"set-nic-setting", false, RANK_SETTING, "", "setting", " set"},
	{"write-udev-rule", false, RANK_RULE, "udev rule ", "rule", " written"},
	{"remove-udev-rule", false, RANK_RULE, "udev rule ", "rule", " removed"},
	{"load-module", false, RANK_MODULE, "module ", "module", " loaded"},
};

struct change {
	const char *pf; /* NULL: the node */
	enum rank rank;
	char *text;      /* NULL: of RANK_VFS */
	json_t *vfs;     /* {"0000:3b:00.2": true}; NULL: it is about the PF or the node */
	int from, count; /* of RANK_VFS */
};

struct changes {
	struct change *items;
	size_t n;
};

static void change_done(struct change *change)
{
	free(change->text);
	json_decref(change->vfs);
}

static void changes_done(struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		change_done(&changes->items[i]);
	free(changes->items);
}
#define auto_changes auto_call(changes_done)

static void change_remove(struct changes *changes, size_t i)
{
	assert(i < changes->n);
	change_done(&changes->items[i]);
	changes->n--;
	for (; i < changes->n; i++)
		changes->items[i] = changes->items[i + 1];
}

/* The changes have room for one for each entry. */
static struct change *change_add(struct changes *changes, const char *pf, enum rank rank)
{
	struct change *change = &changes->items[changes->n++];

	*change = (struct change){.pf = pf, .rank = rank};
	return change;
}

/* text: NULL for any. */
static struct change *change_find(struct changes *changes, const char *pf, enum rank rank,
				  bool of_vf, const char *text)
{
	for (size_t i = 0; i < changes->n; i++) {
		struct change *change = &changes->items[i];

		if (str_eq(change->pf, pf) && change->rank == rank && !change->vfs == !of_vf &&
		    (!text || str_eq(change->text, text)))
			return change;
	}
	return NULL;
}

static void note_words(struct changes *changes, const json_t *entry, const struct words *words)
{
	const json_t *value = words->field ? json_at(entry, "step", words->field) : NULL;
	const char *pf = json_str_at(entry, "pf"), *vf = json_str_at(entry, "vf");
	auto_strbuf struct strbuf text = {0};
	struct change *change;
	const json_t *one;
	size_t i;

	strbuf_adds(&text, words->before);
	if (json_is_integer(value))
		strbuf_addf(&text, "%lld", (long long)json_integer_value(value));
	else if (words->field)
		strbuf_adds(&text, json_str_or(value, "the kernel's driver"));
	strbuf_adds(&text, words->after);
	change = change_find(changes, pf, words->rank, words->of_vf,
			     words->of_vf || words->rank >= RANK_EACH ? strbuf_str(&text) : NULL);
	if (!change)
		change = change_add(changes, pf, words->rank);
	free(change->text);
	change->text = strbuf_take(&text);
	if (!words->of_vf)
		return;
	if (!change->vfs)
		change->vfs = json_object();
	if (vf)
		json_put_bool(change->vfs, vf, true);
	json_array_foreach (json_at(entry, "vfs"), i, one)
		json_put_bool(change->vfs, json_string_value(one), true);
}

/* Off while VFs are made, and on again, is only on the way. */
static void note_autoprobe(struct changes *changes, const char *pf, bool on)
{
	const char *text = on ? "drivers bind to its VFs by themselves"
			      : "drivers do not bind to its VFs by themselves";
	struct change *change = change_find(changes, pf, RANK_AUTOPROBE, false, NULL);

	if (!change)
		change_add(changes, pf, RANK_AUTOPROBE)->text = str_dup(text);
	else if (!str_eq(change->text, text))
		change_remove(changes, (size_t)(change - changes->items));
}

/* The others are on the way to VFs, or to a driver. */
static void note_entry(struct changes *changes, const json_t *entry)
{
	const json_t *step = json_at(entry, "step");
	const char *name = json_str_at(step, "step"), *pf = json_str_at(entry, "pf");

	if (str_eq(name, "set-num-vfs")) {
		struct change *change;

		/* What was made of VFs that are gone is gone. */
		for (size_t i = changes->n; i-- > 0;)
			if (changes->items[i].vfs && str_eq(changes->items[i].pf, pf))
				change_remove(changes, i);
		change = change_find(changes, pf, RANK_VFS, false, NULL);
		if (!change) {
			change = change_add(changes, pf, RANK_VFS);
			change->from = (int)json_integer_value(json_at(step, "from"));
		}
		change->count = (int)json_integer_value(json_at(step, "count"));
		return;
	}
	if (str_eq(name, "set-autoprobe")) {
		note_autoprobe(changes, pf, json_is_true(json_at(step, "on")));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(all_words); i++)
		if (str_eq(name, all_words[i].step) &&
		    all_words[i].of_vf == (json_at(entry, "vf") || json_at(entry, "vfs")))
			note_words(changes, entry, &all_words[i]);
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void say_change(struct strbuf *out, const struct change *change)
{
	size_t vfs = json_object_size(change->vfs);
	int from = change->from, count = change->count;

	if (change->rank == RANK_VFS && count == from)
		strbuf_addf(out, "%d VF%s made anew", count, plural((size_t)count));
	else if (change->rank == RANK_VFS && from == 0)
		strbuf_addf(out, "%d VF%s made", count, plural((size_t)count));
	else if (change->rank == RANK_VFS && count == 0)
		strbuf_addf(out, "%d VF%s removed", from, plural((size_t)from));
	else if (change->rank == RANK_VFS)
		strbuf_addf(out, "%d VF%s instead of %d", count, plural((size_t)count), from);
	else if (change->vfs)
		strbuf_addf(out, "%zu VF%s %s", vfs, plural(vfs), change->text);
	else
		strbuf_adds(out, change->text);
}

static const char *name_of(const json_t *observed, const char *pf)
{
	const char *name =
		json_str_at(json_find(json_at(observed, "interfaces"), "pciAddress", pf), "name");

	if (!pf)
		return "node";
	return name ? name : pf;
}

/* All that is named of the PF of change `first`, unless an earlier one is of the same PF. */
static void say_pf(struct strbuf *out, const struct changes *changes, size_t named, size_t first,
		   const json_t *observed)
{
	const char *pf = changes->items[first].pf;
	const char *before = ": ";

	for (size_t i = 0; i < first; i++)
		if (str_eq(changes->items[i].pf, pf))
			return;
	strbuf_addf(out, "%s%.63s", out->len ? "; " : "", name_of(observed, pf));
	for (size_t i = first; i < named; i++) {
		if (!str_eq(changes->items[i].pf, pf))
			continue;
		strbuf_adds(out, before);
		say_change(out, &changes->items[i]);
		before = ", ";
	}
}

char *change_summary_text(const json_t *entries, const json_t *observed)
{
	auto_changes struct changes changes = {
		.items = mem_calloc(json_array_size(entries) + 1, sizeof(*changes.items)),
	};
	auto_strbuf struct strbuf out = {0};
	const json_t *entry;
	size_t i, named;

	json_array_foreach (entries, i, entry)
		note_entry(&changes, entry);
	/* None, and none again: made and removed in one round. */
	for (i = changes.n; i-- > 0;)
		if (changes.items[i].rank == RANK_VFS && changes.items[i].from == 0 &&
		    changes.items[i].count == 0)
			change_remove(&changes, i);
	if (changes.n == 0)
		return str_dup("nothing changed");
	/* Those of one rank stay in the order of the steps. */
	for (i = 1; i < changes.n; i++) {
		struct change moved = changes.items[i];
		size_t k = i;

		for (; k > 0 && changes.items[k - 1].rank > moved.rank; k--)
			changes.items[k] = changes.items[k - 1];
		changes.items[k] = moved;
	}
	named = changes.n > CHANGE_SUMMARY_NAMED_MAX ? CHANGE_SUMMARY_NAMED_MAX : changes.n;
	for (i = 0; i < named; i++)
		say_pf(&out, &changes, named, i, observed);
	if (changes.n > named)
		strbuf_addf(&out, "; and %zu more change%s", changes.n - named,
			    plural(changes.n - named));
	return strbuf_take(&out);
}

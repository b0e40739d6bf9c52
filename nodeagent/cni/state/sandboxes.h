// SPDX-License-Identifier: Apache-2.0
/*
 * What was attached to each pod's sandbox: one file per sandbox below the state's folder, on the
 * disk before the first change, so that DEL needs nothing else.
 *
 *	sandboxes/CONTAINER.json: {
 *	  "version": 1, "container": "…", "boot": "…", "netns": {"path": "…", "device": 4, "inode":
 *	  4026532…},
 *	  "pod": {"namespace", "name", "uid"},
 *	  "attachments": [{"plugin", "network", "ifname", "phase": "adding" | "added" | "deleting",
 *	                   "config": {…}, "args": "…", "saved": {…}, "result": {…},
 *	                   "unchecked": true}, …]}
 *
 * unchecked: a DEL has made the record, of a configuration that nobody has allowed.
 *
 * Attachments are in the order of their ADDs. A file of a higher "version" stays as it is, for an
 * agent that reads it: each call of its sandbox fails until then. What is no sandbox is put aside
 * as CONTAINER.json.unreadable, and left.
 *
 * Workers of one sandbox may run side by side: each change is made under a lock of the file. All
 * calls block.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/netns_life.h"
#include "lib/base/own.h"

struct stat; /* <sys/stat.h> */

/* Bytes of a file that we read, and write. */
#define SANDBOX_MAX (16U << 20)

/*
 * The state's folder as one worker has it, until sandboxes_done(). All but `dir`, a descriptor or
 * -1, begins as zeros and is known to sandboxes.c alone.
 */
struct sandboxes {
	int dir;
	/* What was read or written last. */
	struct {
		char *container;
		int fd; /* of the file, so that no other has its number; 0: nothing is kept */
		dev_t device;
		ino_t inode;
		json_t *sandbox;
		json_t *written; /* what the file has, where `sandbox` is newer; NULL: the same */
	} kept;
	/*
	 * Files that were replaced, as many as the changes of a pod with some NICs: the kernel
	 * frees them when the worker has answered, for which no runtime waits.
	 */
	int replaced[128];
	size_t n_replaced;
};

#define auto_sandboxes auto_call(sandboxes_done)
/* Close it. What was left for later is forgotten: sandbox_flush() comes before. */
void sandboxes_done(struct sandboxes *state);

/* Which attachment: a plugin is called once for each network and interface. */
struct sandbox_key {
	const char *plugin, *network, *ifname;
};

/*
 * The file as it is, new, and not to be changed: later calls may return the same. NULL with err
 * ERR_NONE: there is none. ERR_HOST "SandboxUnreadable".
 */
json_t *sandbox_read(struct sandboxes *state, const char *container, struct err *err);

/*
 * The same where "none" would make something be forgotten or taken. *ret: new, NULL also for a file
 * that is no sandbox, of which nobody can undo anything. -1 with err ERR_HOST "SandboxUnreadable":
 * what is in it cannot be known now (EIO, EMFILE).
 */
int sandbox_load(struct sandboxes *state, const char *container, json_t **ret, struct err *err);

/*
 * Pure: what a text has to be to be a sandbox, new; ERR_INVALID "BadSandbox". ERR_HOST
 * "SandboxTooNew": a newer agent wrote it.
 */
json_t *sandbox_parse(const char *text, size_t len, struct err *err);

/* Of a sandbox; borrowed. NULL: there is none. */
json_t *sandbox_find(const json_t *sandbox, const struct sandbox_key *key);

/*
 * How long a change lives. LATER: until this process ends, unless another change or sandbox_flush()
 * writes it; for what is only known better by it. WRITTEN: longer than the process; a power cut may
 * take it along, and nothing that was there before it. SYNCED: it is on the disk.
 */
enum sandbox_write { SANDBOX_LATER, SANDBOX_WRITTEN, SANDBOX_SYNCED };

/*
 * Change the file: `change` gets the sandbox, an empty object when there is none, and says by true
 * that it is to be written. It may be called twice. Without attachments the file is removed.
 * ERR_HOST "SandboxNotWritten"; nothing is changed then. A file that is no sandbox is put
 * aside; one that cannot be read now is left, "SandboxUnreadable". ERR_INVALID
 * "SandboxTooLarge": it would be larger than SANDBOX_MAX.
 */
typedef bool sandbox_change_fn(void *arg, json_t *sandbox);
int sandbox_change(struct sandboxes *state, const char *container, enum sandbox_write write,
		   sandbox_change_fn *change, void *arg, struct err *err);
/* Write what changes have left for later, if they did. Errors as above. */
int sandbox_flush(struct sandboxes *state, const char *container, struct err *err);

/* Remove a file that says nothing: a crash left it, before or after what was in it. */
void sandbox_remove_empty(struct sandboxes *state, const char *container);

/*
 * Is it about this network namespace, in this boot? A namespace that is made anew may have the
 * number of the one before: then path or pod tell. path: as the runtime gave it. uid: of the pod;
 * NULL or empty where it is not known, and static pods have two.
 */
bool sandbox_is_of(const json_t *sandbox, const struct stat *netns, const char *path,
		   const char *uid);

/*
 * Is it about another network namespace, or an earlier boot? False where it does not say which one
 * it is about.
 */
bool sandbox_is_of_other_netns(const json_t *sandbox, const struct stat *netns);

/* Does it say which network namespace it is about? */
bool sandbox_has_netns(const json_t *sandbox);

/* Is it about another pod, of which the UID is known, as this one is? */
bool sandbox_is_of_other_pod(const json_t *sandbox, const char *uid);

/*
 * Does the sandbox's network namespace exist, in this boot (lib/base/netns_life.h)?
 * Nothing is taken from one of which that is unknown. ret_netns, which may be NULL, gets a
 * descriptor of one that exists, -1 else.
 */
enum netns_life sandbox_life(const json_t *sandbox, int root, int *ret_netns);

/*
 * Names of all sandboxes that have a file, new: an array of strings, sorted. NULL with err ERR_HOST
 * "StateUnusable": they cannot be known now; a folder that is not there has none.
 */
json_t *sandboxes_list(struct sandboxes *state, struct err *err);

/* Of the state: ADDRESS.json and ADDRESS.lock (devices.h). */
#define DEVICES_FOLDER "devices"

/* Make the folders of the state, and remove drafts that a crash left. ERR_HOST "StateUnusable". */
int sandboxes_prepare(struct sandboxes *state, struct err *err);

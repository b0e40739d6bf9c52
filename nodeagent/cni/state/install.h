// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins in the runtime's folder. Every one is the same program under another name.
 *
 * A name is replaced by rename(2), so that it is whole at each moment, also for who calls it now. A
 * program of somebody else that has the name is kept as NAME.orbweaver-saved, once, and comes back
 * when ours is taken away. Blocks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define INSTALL_SAVED ".orbweaver-saved"

extern const char *const install_names[];
extern const size_t install_n_names;

/*
 * Is the first program of this name in the folders of `path` ("/opt/cni/bin:…", CNI_PATH) another
 * program's? False where there is none; true where none of the folders is there for us: the runtime
 * sees others.
 */
bool install_is_other(int root, const char *path, const char *name);

/*
 * What the folder has under our names, new, in the order of install_names: [{"name", "owner":
 * "nobody" | "ours" | "other", "saved", "common", "forAll"}] (nodeagent/cni/plan/profile.h). root:
 * descriptor of the host's root, bin_dir a path below it.
 */
json_t *install_look(int root, const char *bin_dir);

/*
 * Make these names, a list of strings of install_names, ours in the version of `program`, a path of
 * ours; nothing is written where they are that already. ERR_HOST "PluginsNotInstalled".
 */
int install_plugins(int root, const char *bin_dir, const char *program, const json_t *names,
		    struct err *err);

/*
 * Take ours away under these names, put back what was there. Names that are another program's by
 * now are left. ERR_HOST "PluginsNotInstalled".
 */
int install_restore(int root, const char *bin_dir, const json_t *names, struct err *err);

/* The same under all names. */
int install_remove(int root, const char *bin_dir, struct err *err);

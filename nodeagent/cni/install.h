/*
 * The plugins in the runtime's folder. Every one is the same program under another name.
 *
 * A name is replaced by rename(2), so that it is whole at each moment, also for who calls it now. A
 * program of somebody else that has the name is kept as NAME.orbweaver-saved, once, and comes back
 * when ours is taken away. Blocks.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_INSTALL_H
#define ORBWEAVER_NODEAGENT_CNI_INSTALL_H

#include <stddef.h>

#include "lib/base/err.h"

#define INSTALL_SAVED ".orbweaver-saved"

extern const char *const install_names[];
extern const size_t install_n_names;

/*
 * Make them what they should be; nothing is written where they are that already. root: descriptor
 * of the host's root, bin_dir a path below it, program a path of ours. ERR_HOST
 * "PluginsNotInstalled".
 */
int install_plugins(int root, const char *bin_dir, const char *program, struct err *err);

/* Take ours away, put back what was there. Names that are somebody else's by now are left. */
int install_remove(int root, const char *bin_dir, struct err *err);

#endif

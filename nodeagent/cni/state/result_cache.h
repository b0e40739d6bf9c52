// SPDX-License-Identifier: Apache-2.0
/*
 * Results that container runtimes keep of ADD, for CHECK and DEL (libcni: a file per network,
 * container and interface in /var/lib/cni/results).
 *
 * They are written without being synced: after a power cut one may be empty, and then each DEL of
 * its sandbox fails in the runtime, before any plugin is called ("failed to get network … cached
 * result: … unexpected end of JSON input"). Its pod stays Terminating for ever and keeps its VFs.
 * Without the file DEL does without a result, as the CNI specification allows.
 */
#pragma once

#include <stddef.h>

/*
 * Remove those that are empty and of an earlier boot; what is being written now is neither. Each is
 * logged. root: a descriptor of the host's root. Returns how many there were; a folder that is not
 * there has none.
 */
size_t result_cache_remove_empty(int root);

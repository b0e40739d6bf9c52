// SPDX-License-Identifier: Apache-2.0
/* Modules of the running kernel, loaded or built in. */
#pragma once

#include <stdbool.h>

#include "nodeagent/host/host.h"

/*
 * Is the module at work? A loaded one is in /sys/module. One that is built into the kernel is there
 * only when it has a parameter or a version, so what it makes in sysfs counts as well, and the list
 * of what the kernel was built with (modules.builtin, Documentation/kbuild/kbuild.rst). '-' and '_'
 * are the same.
 */
bool module_is_there(const struct host *host, const char *name);

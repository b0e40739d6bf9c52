// SPDX-License-Identifier: Apache-2.0
/* The plugin goes by the name under which it was called. */
#include <string.h>

#include "nodeagent/cni/plugin/plugin.h"

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : "orbweaver-cni";
	const char *slash = strrchr(name, '/');

	return plugin_run(slash ? slash + 1 : name);
}

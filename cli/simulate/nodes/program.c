// SPDX-License-Identifier: Apache-2.0
/*
 * The main of the process that plays nodes: where its hosts are, and what is left of one before it.
 */
#include "cli/simulate/nodes/program.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/simulate/decide/node_spec.h"
#include "cli/simulate/nodes/nodes.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum {
	FIRST_NODE = 6,
	OPEN_MAX = 16,
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

/*
 * A folder for hosts that is ours alone: new, or what another process has left under this name,
 * emptied. NULL: there can be none.
 */
static char *make_folder(const char *parent, const char *state)
{
	auto_free char *path =
		str_printf("%s/orbweaver-simulate-%u-%08x", parent, (unsigned int)getuid(),
			   (unsigned int)str_hash(state, strlen(state)));
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid())
		(void)nftw(path, remove_one, OPEN_MAX, FTW_DEPTH | FTW_PHYS);
	return mkdir(path, 0700) == 0 ? str_dup(path) : NULL;
}

int nodes_program(int argc, char **argv)
{
	auto_free char *folder = NULL;
	json_auto_t *nodes = NULL;
	struct err err = {0};
	int status;

	mem_tune();
	json_init();
	if (argc <= FIRST_NODE) {
		(void)fputs("orbweaver-nodes: started by orbweaver simulate\n", stderr);
		return 2;
	}
	nodes = json_array();
	for (int i = FIRST_NODE; i < argc; i++) {
		if (node_spec_add(nodes, argv[i], &nodes_models, &err) == 0)
			continue;
		(void)fprintf(stderr, "orbweaver-nodes: %s\n", err.text);
		return 2;
	}
	folder = make_folder("/dev/shm", argv[2]);
	if (!folder)
		folder = make_folder(argv[2], argv[2]);
	status = nodes_run(&(struct nodes_config){
		.kubeconfig = argv[1],
		.nodes = nodes,
		.folder = folder ? folder : argv[2],
		.socket = argv[3],
		.ns = argv[4],
		.config_ns = argv[5],
	});
	if (folder)
		(void)rmdir(folder);
	return status;
}

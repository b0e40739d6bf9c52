// SPDX-License-Identifier: Apache-2.0
/*
 * A kubelet's calls about claims from a shell (tests/fakes/dra_kubelet.h):
 *
 *	dra-kubelet REGISTRY (prepare | unprepare) VERSION NAMESPACE NAME UID
 *
 * Finds the driver in REGISTRY, registers it, and prints its answer for the claim as JSON. Exits
 * with 1 when there is no driver.
 */
#include <stdio.h>
#include <string.h>

#include "lib/json/json.h"
#include "tests/fakes/dra_kubelet.h"

int main(int argc, char **argv)
{
	json_auto_t *claims = NULL, *answer = NULL;
	auto_free char *text = NULL;
	struct dra_kubelet *kubelet;
	struct loop *loop;

	json_init();
	if (argc != 7) {
		(void)fputs("usage: dra-kubelet REGISTRY (prepare | unprepare) VERSION NAMESPACE "
			    "NAME UID\n",
			    stderr);
		return 2;
	}
	claims = json_pack("[{s:s, s:s, s:s}]", "namespace", argv[4], "name", argv[5], "uid",
			   argv[6]);
	loop = loop_new();
	kubelet = dra_kubelet_new(loop, argv[1]);
	if (dra_kubelet_look(kubelet) > 0)
		answer = strcmp(argv[2], "prepare") == 0
				 ? dra_kubelet_prepare(kubelet, argv[3], claims)
				 : dra_kubelet_unprepare(kubelet, argv[3], claims);
	dra_kubelet_free(kubelet);
	loop_free(loop);
	text = answer ? json_text(answer) : NULL;
	if (text)
		(void)puts(text);
	return text ? 0 : 1;
}

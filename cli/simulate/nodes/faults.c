// SPDX-License-Identifier: Apache-2.0
/* The words of `orbweaver simulate break`, and what they do to the host made of files. */
#include "cli/simulate/nodes/faults.h"

#include "lib/base/str.h"

const char *const fault_words[TREE_FAULTS] = {
	[TREE_FAULT_LINK] = "link-down",
	[TREE_FAULT_VFS] = "vf-refusal",
	[TREE_FAULT_DRIVER] = "driver-missing",
	[TREE_FAULT_GONE] = "pf-missing",
};

int fault_read(const char *word, enum tree_fault *ret, struct err *err)
{
	auto_strbuf struct strbuf all = {0};

	for (int i = 0; i < TREE_FAULTS; i++) {
		if (str_eq(fault_words[i], word)) {
			*ret = (enum tree_fault)i;
			return 0;
		}
		strbuf_addf(&all, "%s%s", i ? ", " : "", fault_words[i]);
	}
	return err_set(err, ERR_INVALID, "UnknownFault",
		       "\"%.40s\": unknown kind of fault; there are %s", word, strbuf_str(&all));
}

// SPDX-License-Identifier: Apache-2.0
/* The catalogue of GPUs: `orbweaver simulate` takes them from here. */
#include "cli/simulate/host/gpus.h"

#include "lib/base/str.h"

const char *const simulated_gpu_names[] = {"a100", "b200",     "gb200",  "h100",
					   "h200", "max-1550", "mi300x", NULL};

static const struct tree_gpu gpus[] = {
	{"10de", "20b2", "030200"}, {"10de", "2901", "030200"}, {"10de", "2941", "030200"},
	{"10de", "2330", "030200"}, {"10de", "2335", "030200"}, {"8086", "0bd5", "038000"},
	{"1002", "74a1", "120000"},
};

const struct tree_gpu *simulated_gpu(const char *name)
{
	for (size_t i = 0; simulated_gpu_names[i]; i++)
		if (str_eq(simulated_gpu_names[i], name))
			return &gpus[i];
	return NULL;
}

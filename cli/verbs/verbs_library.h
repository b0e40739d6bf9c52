// SPDX-License-Identifier: Apache-2.0
/*
 * The functions of libibverbs that verbs.c calls, found at run time; tests put others in their
 * place.
 */
#pragma once

#include <infiniband/verbs.h>

#include "lib/base/err.h"

/* Without ibv_. The last one is absent before rdma-core 34. */
#define VERBS_FUNCTIONS(X)                                                                         \
	X(get_device_list)                                                                         \
	X(get_device_name)                                                                         \
	X(open_device)                                                                             \
	X(query_device)                                                                            \
	X(query_port)                                                                              \
	X(query_gid)                                                                               \
	X(alloc_pd)                                                                                \
	X(reg_mr)                                                                                  \
	X(create_cq)                                                                               \
	X(create_qp)                                                                               \
	X(modify_qp)                                                                               \
	X(wc_status_str)                                                                           \
	X(reg_dmabuf_mr)

struct verbs_library {
#define VERBS_MEMBER(name) typeof(ibv_##name) *name;
	VERBS_FUNCTIONS(VERBS_MEMBER)
#undef VERBS_MEMBER
	/* errno of opening this file of /dev/infiniband; ENOENT also where it can be opened. */
	int (*why_not_file)(const char *name);
	/* A DMA-BUF of so many bytes of the first GPU's memory; -1: no CUDA, or it has none. */
	int (*gpu_memory)(size_t size);
};

#define VERBS_LIBRARY "libibverbs.so.1"

/* ERR_HOST "VerbsLibraryMissing": the file cannot be loaded, or is another library. */
int verbs_library_load(const char *file, struct verbs_library *ret, struct err *err);

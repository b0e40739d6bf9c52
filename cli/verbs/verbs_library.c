// SPDX-License-Identifier: Apache-2.0
/* Libraries that are opened by name when somebody asks for it, libibverbs and CUDA's driver. */
#include "cli/verbs/verbs_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>

#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

/* Of CUDA's driver API, "Memory Management": CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD. */
#define RANGE_IS_DMABUF 1

static int gpu_memory(size_t size)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
	unsigned long long memory;
	int device, fd;
	int (*init)(unsigned int), (*device_get)(int *, int), (*retain)(void **, int);
	int (*set_current)(void *), (*allocate)(unsigned long long *, size_t);
	int (*get_handle)(void *, unsigned long long, size_t, int, unsigned long long);
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"cuInit", &init},
		{"cuDeviceGet", &device_get},
		{"cuDevicePrimaryCtxRetain", &retain},
		{"cuCtxSetCurrent", &set_current},
		{"cuMemAlloc_v2", &allocate},
		{"cuMemGetHandleForAddressRange", &get_handle},
	};

	for (size_t i = 0; cuda && i < ARRAY_LEN(functions); i++)
		if (!(*(void **)functions[i].function = dlsym(cuda, functions[i].name)))
			return -1;
	if (!cuda || init(0) || device_get(&device, 0) || retain(&context, device) ||
	    set_current(context) || allocate(&memory, size) ||
	    get_handle(&fd, memory, size, RANGE_IS_DMABUF, 0))
		return -1;
	return fd;
}

static int why_not_file(const char *name)
{
	auto_free char *path = str_printf("/dev/infiniband/%s", name);
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? errno : ENOENT;
}

int verbs_library_load(const char *file, struct verbs_library *ret, struct err *err)
{
	void *library = dlopen(file, RTLD_NOW);
	struct verbs_library found = {.gpu_memory = gpu_memory, .why_not_file = why_not_file};

	if (!library)
		return err_set(err, ERR_HOST, "VerbsLibraryMissing",
			       "%s; install libibverbs1 (rdma-core)", dlerror());
#define VERBS_FIND(name) *(void **)&found.name = dlsym(library, "ibv_" #name);
	VERBS_FUNCTIONS(VERBS_FIND)
#undef VERBS_FIND
	if (!found.get_device_list || !found.wc_status_str)
		return err_set(err, ERR_HOST, "VerbsLibraryMissing",
			       "%.64s lacks functions of libibverbs", file);
	*ret = found;
	return 0;
}

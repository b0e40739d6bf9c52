// SPDX-License-Identifier: Apache-2.0
/*
 * Two numbers in a shared mapping: written by kubeletd before it answers Allocate, read by workers
 * before they take a VF. The supervisor makes the mapping.
 */
#include "nodeagent/process/allocation_epoch.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct allocation_epoch {
	_Atomic uint64_t count;
	_Atomic int64_t last_ms; /* since boot: the same in all processes */
};

struct allocation_epoch *allocation_epoch_new(void)
{
	void *memory = mmap(NULL, sizeof(struct allocation_epoch), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		mem_exhausted();
	return memory;
}

void allocation_epoch_leave(struct allocation_epoch *giving)
{
	if (giving)
		(void)munmap(giving, sizeof(*giving));
}

/* Who sees the new number sees the new time as well. */
void allocation_epoch_note(struct allocation_epoch *giving)
{
	if (!giving)
		return;
	atomic_store(&giving->last_ms, clock_ms());
	atomic_fetch_add(&giving->count, 1);
}

uint64_t allocation_epoch_count(const struct allocation_epoch *giving)
{
	return giving ? atomic_load(&giving->count) : 0;
}

int64_t allocation_epoch_quiet_ms(const struct allocation_epoch *giving)
{
	int64_t left =
		allocation_epoch_count(giving)
			? atomic_load(&giving->last_ms) + ALLOCATION_EPOCH_QUIET_MS - clock_ms()
			: 0;

	return left > 0 ? left : 0;
}

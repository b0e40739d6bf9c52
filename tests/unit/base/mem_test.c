// SPDX-License-Identifier: Apache-2.0
/* What is dropped comes back as it was. */
#include "tests/support/test.h"

#include "lib/base/mem.h"
#include "lib/base/str.h"

TEST(memory_in_use_survives_a_trim)
{
	auto_free char *kept = mem_dup("kept", 5);

	mem_free(mem_alloc(1 << 20));
	mem_trim();
	assert_string_equal(kept, "kept");
}

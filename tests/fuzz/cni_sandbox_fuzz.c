// SPDX-License-Identifier: Apache-2.0
/*
 * What is on the disk of a sandbox: what is taken can be described and looked through, and survives
 * being written again; what is refused says so.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/sandboxes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look_through(const json_t *sandbox)
{
	json_auto_t *attachments = attachment_index_describe(sandbox);
	struct attachment_index *ledger = attachment_index_new();
	const json_t *item;
	size_t i;

	json_array_foreach (attachments, i, item) {
		const struct sandbox_key key = {json_str_at(item, "plugin"),
						json_str_at(item, "network"),
						json_str_at(item, "ifname")};

		check(sandbox_find(sandbox, &key) != NULL);
	}
	attachment_index_set(ledger, "c1", attachments);
	(void)attachment_index_has(ledger, "spiderpool", "u1");
	attachment_index_mark(ledger, "c1", "spiderpool", "net1");
	attachment_index_free(ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0};
	json_auto_t *sandbox = sandbox_parse((const char *)data, size, &err), *again = NULL;
	auto_strbuf struct strbuf text = {0};

	if (!sandbox) {
		check(err.class == ERR_INVALID);
		return 0;
	}
	json_write(sandbox, &text);
	again = sandbox_parse(text.data, text.len, NULL);
	check(json_same(sandbox, again));
	look_through(sandbox);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What is on the disk of a sandbox: what is taken can be described and looked through, and survives
 * being written again; what is refused says so.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/state/ledger.h"
#include "nodeagent/cni/state/sandboxes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look_through(const json_t *sandbox)
{
	json_auto_t *attachments = ledger_describe(sandbox);
	struct ledger *ledger = ledger_new();
	const json_t *item;
	size_t i;

	json_array_foreach (attachments, i, item) {
		const struct sandbox_key key = {json_str_at(item, "plugin"),
						json_str_at(item, "network"),
						json_str_at(item, "ifname")};

		check(sandbox_find(sandbox, &key) != NULL);
	}
	ledger_set(ledger, "c1", attachments);
	(void)ledger_has(ledger, "spiderpool", "u1");
	ledger_mark(ledger, "c1", "spiderpool", "net1");
	ledger_free(ledger);
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

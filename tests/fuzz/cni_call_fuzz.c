// SPDX-License-Identifier: Apache-2.0
/*
 * What a runtime may call a plugin with: stdin, environment, arguments. The first line of the input
 * is the name, lines with "=" after it the environment, the rest is stdin. Reading it twice gives
 * the same; a call that is taken has what its command needs, and names that are safe as file names;
 * so is what spiderpool asks for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/state/devices.h"
#include "nodeagent/cni/worker/cni_call.h"
#include "nodeagent/cni/worker/spiderpool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static const char *next_line(const char **text, size_t *left, size_t *ret_len)
{
	const char *line = *text, *end = memchr(line, '\n', *left);
	size_t len = end ? (size_t)(end - line) : *left;

	*ret_len = len;
	*text += len + (end ? 1 : 0);
	*left -= len + (end ? 1 : 0);
	return line;
}

static struct wire_buffer a_call(const char *text, size_t left)
{
	struct wire_buffer buffer = {0};
	size_t begun = wire_begin(&buffer, WIRE_CALL), len;
	const char *line = next_line(&text, &left, &len);

	wire_add(&buffer, WIRE_NAME, line, len);
	while (left > 0) {
		const char *before = text;
		size_t left_before = left;

		line = next_line(&text, &left, &len);
		if (!memchr(line, '=', len)) {
			wire_add(&buffer, WIRE_STDIN, before, left_before);
			break;
		}
		wire_add(&buffer, WIRE_ENV, line, len);
	}
	check(wire_end(&buffer, begun) == 0);
	return buffer;
}

static void check_call(const struct cni_call *call)
{
	bool matches;
	json_auto_t *wish = spiderpool_wish(call->config, call->ifname, &matches, NULL);
	const char *device = device_of(call->config);

	check(result_version_is_known(call->version));
	check(*call->network != '\0' && !strchr(call->network, '/'));
	check(!device || !strchr(device, '/'));
	check(!wish || str_eq(json_str_at(wish, "nic"), call->ifname));
	if (call->command == CALL_GC || call->command == CALL_STATUS)
		return;
	check(*call->container != '\0' && *call->container != '.' && !strchr(call->container, '/'));
	check(*call->ifname != '\0' && strlen(call->ifname) < 16 && !strchr(call->ifname, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_buffer buffer = a_call((const char *)data, size);
	struct cni_call call, again;
	struct wire_message message;
	struct err a = {0}, b = {0};
	int rc;

	check(wire_read(buffer.data, buffer.len, &message) == 1);
	rc = cni_call_read(&message, -1, &call, &a);
	check(cni_call_read(&message, -1, &again, &b) == rc);
	check(str_eq(a.text, b.text) && json_same(call.config, again.config) &&
	      json_same(call.args, again.args));
	if (rc == 0)
		check_call(&call);
	else
		check(a.class == ERR_INVALID && a.reason[0] != '\0');
	cni_call_done(&call);
	cni_call_done(&again);
	free(buffer.data);
	return 0;
}

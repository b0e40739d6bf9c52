// SPDX-License-Identifier: Apache-2.0
/*
 * A set that only grows: each look or step reads the file, adds what the agent names, and replaces
 * it when something is new. answer.c then hands the set to nodeagent/host, which protects the NICs
 * that carry these addresses; worker.c adds those of the kubelet's connections.
 */
#include "nodeagent/worker/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/json/json.h"
#include "nodeagent/host/sysfs.h"

#define PATH      "/" ADDRESSES_FOLDER "/" ADDRESSES_FILE
#define BYTES_MAX ((size_t)ADDRESSES_MAX * (INET6_ADDRSTRLEN + 4))

static bool is_address(const char *text)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return text &&
	       (inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1);
}

/* Whether something was added. */
static bool add_all(json_t *list, const json_t *more)
{
	size_t before = json_array_size(list), i;
	const json_t *address;

	json_array_foreach (more, i, address)
		if (is_address(json_string_value(address)) &&
		    !json_list_has(list, json_string_value(address)))
			json_array_append(list, (json_t *)address);
	return json_array_size(list) > before;
}

/* A file that is damaged is as good as none: hostd alone writes it, as a whole. */
static int load_addresses(int folder, json_t *list, struct err *err)
{
	auto_strbuf struct strbuf text = {0};
	json_auto_t *kept = NULL;
	struct err why = {0};

	if (fs_read(folder, ADDRESSES_FILE, BYTES_MAX, &text, &why) < 0) {
		errno = why.sys;
		return why.sys == ENOENT ? 0 : err_sys(err, "StateUnreadable", "read " PATH);
	}
	kept = json_parse(strbuf_str(&text), text.len, NULL);
	(void)add_all(list, kept);
	return 0;
}

static int save_addresses(int folder, const json_t *list, struct err *err)
{
	auto_free char *text = json_text(list);
	struct err why = {0};

	if (fs_write_atomic(folder, ADDRESSES_FILE, text, strlen(text), 0600, &why) == 0)
		return 0;
	errno = why.sys;
	return err_sys(err, "StateNotWritten", "write " PATH);
}

json_t *addresses_remember(const struct host *host, const json_t *given, struct err *err)
{
	json_auto_t *list = json_array();
	auto_close int folder = -1;

	if (root_make_dirs(host->root, ADDRESSES_FOLDER, 0755) == 0)
		folder = root_open(host->root, ADDRESSES_FOLDER, O_RDONLY | O_DIRECTORY, 0);
	if (folder < 0) {
		(void)err_sys(err, "StateUnreadable", "open /" ADDRESSES_FOLDER);
		return NULL;
	}
	if (load_addresses(folder, list, err) < 0)
		return NULL;
	if (!add_all(list, given))
		return take_ptr(list);
	if (json_array_size(list) > ADDRESSES_MAX) {
		(void)err_set(err, ERR_BUG, "BadRequest", "the node has more than %d addresses",
			      ADDRESSES_MAX);
		return NULL;
	}
	return save_addresses(folder, list, err) < 0 ? NULL : take_ptr(list);
}

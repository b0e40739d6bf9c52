// SPDX-License-Identifier: Apache-2.0
/*
 * The first NIC that asks asks for all of its pod. Between attachment.c, which keeps the record of
 * an address, and the agent's line.
 */
#include "nodeagent/cni/worker/pod_addresses.h"

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/worker/master.h"
#include "nodeagent/cni/worker/spiderpool.h"
#include "nodeagent/cni/worker/worker_channel.h"

/* The network's version; 0.3.1 for those before, which have no list of addresses. */
static const char *list_version(const json_t *config)
{
	const char *version = result_version_of(config);

	return result_version_is_at_least(version, "0.3.0") ? version : "0.3.1";
}

/* New; NULL with err. */
static json_t *wish_of(const json_t *config, const char *ifname, int root, struct err *err)
{
	bool matches = false;
	json_t *wish = spiderpool_wish(config, ifname, &matches, err);

	if (wish && matches)
		json_put(wish, "masterAddresses", master_addresses(config, root));
	return wish;
}

/* ---- of all NICs ----------------------------------------------------------------------------- */

static void add_wish(const struct attachment *a, const json_t *delegate, size_t plugin,
		     json_t *wishes)
{
	json_auto_t *config = delegate_stdin(delegate, plugin, "ADD", NULL), *wish = NULL;
	const char *ifname = json_str_at(delegate, "interface");

	if (!ifname || !str_eq(json_str_at(config, "ipam", "type"), SPIDERPOOL))
		return;
	wish = wish_of(config, ifname, a->root, NULL);
	/* The master of this one may be made by the plugin before it. */
	if (!wish || (plugin > 0 && json_at(wish, "masterAddresses")))
		return;
	json_array_append(json_at(wishes, "wishes"), wish);
	json_put_str(json_need_object(wishes, "versions"), ifname, list_version(config));
}

json_t *pod_addresses_wishes(const struct attachment *a, const json_t *delegates)
{
	json_auto_t *wishes = json_pack("{s:[]}", "wishes");
	const json_t *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate)
		for (size_t k = 0; k < delegate_plugins(delegate); k++)
			add_wish(a, delegate, k, wishes);
	return json_array_size(json_at(wishes, "wishes")) > 1 ? json_incref(wishes) : NULL;
}

/* "net1, net2". */
static char *names_of(const json_t *versions)
{
	struct strbuf names = {0};
	const char *ifname;
	const json_t *version;

	json_each (versions, ifname, version)
		strbuf_addf(&names, "%s%s", names.len > 0 ? ", " : "", ifname);
	return strbuf_take(&names);
}

/* -1: the agent cannot say now, to none of them. */
static int ask_for_pod(struct attachment *a, struct err *err)
{
	json_auto_t *wishes = take_ptr(a->shared->wishes), *answer = NULL;
	json_t *question = worker_channel_request_new(a, "addresses");
	auto_free char *names = NULL;
	struct err why = {0};

	json_object_update(question, wishes);
	answer = worker_channel_ask_for(a, "addresses", question, &why);
	a->shared->addresses = json_incref(json_at(answer, "results"));
	if (answer || why.class != ERR_TRANSIENT)
		return 0;
	names = names_of(json_at(wishes, "versions"));
	*err = why;
	return err_in(err, "asked with all addresses for the pod's interfaces %.100s", names);
}

/* ---- of one ---------------------------------------------------------------------------------- */

static int in_own_version(const json_t *config, json_t **result, struct err *err)
{
	const char *version = result_version_of(config);
	json_auto_t *addresses = NULL;

	if (str_eq(version, list_version(config)))
		return 0;
	if (result_read(*result, NULL, &addresses, err) < 0)
		return -1;
	json_decref(*result);
	*result = result_write(addresses, version);
	return 0;
}

json_t *pod_addresses_ask(struct attachment *a, bool *ret_asked, struct err *err)
{
	const struct attachment_shared *shared = a->shared;
	json_auto_t *wish = wish_of(a->config, a->key.ifname, a->root, err), *result = NULL;

	if (!wish)
		return NULL;
	*ret_asked = true;
	if (shared && json_at(shared->wishes, "versions", a->key.ifname) && ask_for_pod(a, err) < 0)
		return NULL;
	result = shared ? json_incref(json_at(shared->addresses, a->key.ifname)) : NULL;
	if (!result) {
		json_t *question = worker_channel_request_new(a, "addresses");

		json_put_str(question, "version", list_version(a->config));
		json_put(question, "wish", json_incref(wish));
		result = worker_channel_ask_for(a, "addresses", question, err);
	}
	if (!result || in_own_version(a->config, &result, err) < 0)
		return NULL;
	return take_ptr(result);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes the annotations and the status for operator, agent and command line alike.
 * Users may write these objects, so every question names the UID that the answer has to be about.
 */
#include "reconcilers/ipam/endpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/conflict.h"

/*
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
 */
#define LABEL_VALUE_MAX 63

enum { HASH_LEN = 16 };

char *endpoint_node_label(const char *node)
{
	if (strlen(node) <= LABEL_VALUE_MAX)
		return str_dup(node);
	return str_printf("%.*s-%016" PRIx64, LABEL_VALUE_MAX - HASH_LEN - 1, node,
			  str_hash(node, strlen(node)));
}

json_t *endpoint_metadata(const char *ns, const char *name, const char *node)
{
	auto_free char *label = str_empty(node) ? NULL : endpoint_node_label(node);
	json_t *metadata = json_object();

	assert(ns && name);
	json_put_str(metadata, "name", name);
	json_put_str(metadata, "namespace", ns);
	if (label)
		json_put_str(json_need_object(metadata, "labels"), ENDPOINT_NODE_LABEL, label);
	return metadata;
}

json_t *endpoint_object(const char *key, const json_t *status)
{
	const char *slash = strchr(key, '/');
	auto_free char *ns = slash ? str_ndup(key, (size_t)(slash - key)) : str_dup("");
	json_t *object = json_object();

	assert(status);
	json_put(object, "metadata",
		 endpoint_metadata(ns, slash ? slash + 1 : key,
				   json_str_at(status, "current", "node")));
	json_put(object, "status", json_incref((json_t *)status));
	return object;
}

bool endpoint_is_lost(const json_t *endpoint, const char *ns)
{
	const char *name = json_str_or(json_at(endpoint, "metadata", "name"), "");
	const char *owner = json_str_or(json_at(endpoint, "status", "ownerControllerName"), "");

	return str_eq(json_namespace(endpoint), ns) && str_starts(name, ENDPOINT_LOST_PREFIX) &&
	       strchr(owner, '/');
}

char *endpoint_pod_key(const json_t *endpoint, const char *ns)
{
	return endpoint_is_lost(endpoint, ns)
		       ? str_dup(json_str_at(endpoint, "status", "ownerControllerName"))
		       : json_key(endpoint);
}

const char *endpoint_uid(const json_t *endpoint)
{
	return json_str_or(json_at(endpoint, "status", "current", "uid"), "");
}

json_t *endpoint_addresses(const json_t *status)
{
	static const char *const fields[] = {"ipv4", "ipv4Pool", "ipv6", "ipv6Pool"};
	json_t *kept = json_object(), *current = json_need_object(kept, "current"), *item;
	const json_t *has = json_at(status, "current", "ips");
	json_t *ips;
	size_t i;

	json_put_str(current, "uid", json_str_at(status, "current", "uid"));
	if (json_array_size(has) > LIMIT_NETWORKS + 1)
		return kept;
	ips = json_array();
	json_array_foreach ((json_t *)has, i, item) {
		json_t *addresses = json_object();

		for (size_t f = 0; f < ARRAY_LEN(fields); f++)
			json_put(addresses, fields[f], json_incref(json_at(item, fields[f])));
		json_array_append_new(ips, addresses);
	}
	json_put(current, "ips", ips);
	return kept;
}

const json_t *endpoint_item(const json_t *status, const char *nic)
{
	return json_find(json_at(status, "current", "ips"), "interface", nic);
}

/* What ENDPOINT_ASKS_ANNOTATION says; NULL when that cannot be read. Returns new. */
static json_t *said_of(const json_t *endpoint)
{
	const char *text =
		json_str_at(endpoint, "metadata", "annotations", ENDPOINT_ASKS_ANNOTATION);

	return text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, NULL) : NULL;
}

json_t *endpoint_asks(const json_t *endpoint, const char *uid)
{
	json_auto_t *said = said_of(endpoint);
	json_t *asks = json_at(said, "asks"), *ask;
	size_t i;

	if (!str_eq(json_str_at(said, "uid"), uid) || json_array_size(asks) == 0)
		return NULL;
	json_array_foreach (asks, i, ask)
		if (str_empty(json_str_at(ask, "nic")))
			return NULL;
	return json_incref(asks);
}

char *endpoint_asker(const json_t *endpoint)
{
	json_auto_t *said = said_of(endpoint);
	const char *pod = json_str_or(json_at(said, "pod"), "");

	return str_printf("%s/%s", json_namespace(endpoint),
			  name_is_dns_subdomain(pod) ? pod : json_name(endpoint));
}

char *endpoint_asks_text(const char *uid, const char *pod, const json_t *asks)
{
	json_auto_t *said = json_object();

	assert(uid && json_is_array(asks));
	json_put_str(said, "uid", uid);
	json_put_str(said, "pod", pod);
	json_put(said, "asks", json_incref((json_t *)asks));
	return json_text(said);
}

bool endpoint_is_of(const json_t *endpoint, const char *uid)
{
	json_auto_t *asks = NULL;

	if (str_empty(uid) || str_eq(endpoint_uid(endpoint), uid))
		return !str_empty(uid);
	asks = endpoint_asks(endpoint, uid);
	return asks != NULL;
}

bool endpoint_is_down(const json_t *endpoint, const char *uid)
{
	return !str_empty(uid) &&
	       str_eq(json_str_at(endpoint, "metadata", "annotations", ENDPOINT_DOWN_ANNOTATION),
		      uid);
}

bool endpoint_answers(const json_t *endpoint, const char *uid, const json_t *asks)
{
	json_auto_t *conflicts = conflicts_said(endpoint, uid);
	json_t *ask;
	size_t i;

	if (str_empty(uid) || !str_eq(endpoint_uid(endpoint), uid))
		return false;
	json_array_foreach (asks, i, ask) {
		const json_t *item =
			endpoint_item(json_at(endpoint, "status"), json_str_at(ask, "nic"));

		if (!item || conflicts_touch(item, conflicts))
			return false;
	}
	return true;
}

bool endpoint_names(const json_t *endpoint, const char *pool, const char *address)
{
	static const char *const fields[][2] = {{"ipv4", "ipv4Pool"}, {"ipv6", "ipv6Pool"}};
	size_t len = strlen(address), i;
	json_t *item;

	assert(pool);
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
			const char *has = json_str_or(json_at(item, fields[f][0]), "");

			if (str_eq(json_str_at(item, fields[f][1]), pool) &&
			    strncmp(has, address, len) == 0 && has[len] == '/')
				return true;
		}
	}
	return false;
}

bool endpoint_has(const json_t *endpoint, const char *uid, const char *pool, const char *address)
{
	return str_eq(endpoint_uid(endpoint), uid) && endpoint_names(endpoint, pool, address);
}

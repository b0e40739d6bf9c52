// SPDX-License-Identifier: Apache-2.0
/*
 * The allocator (reconcilers/ipam) is asked on the world as it is: per NIC its candidate pools,
 * each with the reason why it is refused or taken. An endpoint that has its addresses already is
 * shown as it is. For `explain pod` and `ipam explain`.
 */
#include "cli/explain/addresses.h"

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/filter.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/ipam/pod_controller.h"

int explain_settings(const json_t *world, const char *config_ns, struct ipam_settings *ret,
		     struct err *err)
{
	auto_free char *key = str_printf("%s/" IPAM_CONFIG_MAP, config_ns);

	return ipam_settings_read(world_get(world, "configmaps", key), config_ns, ret, err);
}

/* The verdict on each pool that a NIC may ask. */
static json_t *pools_of(const json_t *world, const json_t *pod, const json_t *want,
			const struct ipam_settings *settings)
{
	static const struct {
		const char *key;
		enum ip_family family;
	} families[] = {{"ipv4", IP_V4}, {"ipv6", IP_V6}};
	json_t *list = json_array(), *name;
	size_t i;

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		json_array_foreach (json_at(want, families[f].key), i, name) {
			const json_t *pool =
				world_get(world, KIND_IP_POOL, json_string_value(name));
			auto_free char *why = filter_why_not(world, pod, pool, families[f].family,
							     want, settings);
			auto_ledger struct ledger ledger = {0};
			json_t *verdict = json_object();
			struct err err = {0};

			json_put_str(verdict, "pool", json_string_value(name));
			if (why)
				json_put_str(verdict, "verdict", why);
			else if (ledger_open(pool, world_kind(world, KIND_RESERVED_IP),
					     world_env(world, "now"), &ledger, &err) < 0)
				json_put_str(verdict, "verdict", err.text);
			else if (ledger.free.len == 0 && json_array_size(ledger.conflicts.entries))
				json_put(verdict, "verdict",
					 json_fmt("all its addresses are in use, %zu by others on "
						  "the network (status.conflictIPs)",
						  json_array_size(ledger.conflicts.entries)));
			else if (ledger.free.len == 0)
				json_put_str(verdict, "verdict", "all its addresses are in use");
			else
				json_put_str(verdict, "verdict", "serves");
			json_array_append_new(list, verdict);
		}
	}
	return list;
}

static json_t *explain_nic(const json_t *world, const json_t *pod, const json_t *ask,
			   const struct ipam_settings *settings)
{
	json_t *nic = json_object(), *want;
	json_auto_t *wants = NULL;
	struct err err = {0};
	size_t i;

	json_put_str(nic, "nic", json_str_at(ask, "nic"));
	json_put_str(nic, "network", json_str_at(ask, "network"));
	wants = candidates_find(world, pod, ask, settings, NULL, &err);
	if (!wants) {
		json_put_str(nic, "problem", err.text);
		return nic;
	}
	/*
	 * A list of pools by NIC answers for all NICs; this one's item, or the one of its turn, is
	 * what counts.
	 */
	json_array_foreach (wants, i, want)
		if (str_eq(json_str_at(want, "nic"), json_str_at(ask, "nic")) ||
		    json_array_size(wants) == 1)
			json_put(nic, "pools", pools_of(world, pod, want, settings));
	return nic;
}

/* What the pod has, or would get now, in the words of the allocator. */
static void decide(const json_t *world, const json_t *pod, const json_t *asks,
		   const struct ipam_settings *settings, json_t *explanation)
{
	auto_free char *key =
		str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, settings));
	const json_t *endpoint = world_get(world, KIND_ENDPOINT, key);
	bool has = str_eq(json_str_at(endpoint, "status", "current", "uid"), json_uid(pod));
	auto_books struct books *books = books_new(world);
	auto_free char *left_out = NULL;
	json_auto_t *status = NULL;
	struct err err = {0};

	if (json_array_size(asks) == 0 && !has) {
		json_put_str(explanation, "verdict",
			     "no network of it takes addresses from SpiderIPPools");
	} else if (ipam_allocate(books, pod, endpoint, asks, settings, &status, &err) < 0) {
		json_put_str(explanation, "verdict", err.text);
		json_put_str(explanation, "reason", err.reason);
	} else {
		json_t *nic;
		size_t i;

		json_put_str(explanation, "verdict",
			     has ? "has its addresses" : "would get addresses now");
		json_array_foreach (json_at(explanation, "nics"), i, nic) {
			const json_t *item = endpoint_item(status, json_str_at(nic, "nic"));

			json_put_str(nic, "ipv4", json_str_at(item, "ipv4"));
			json_put_str(nic, "ipv6", json_str_at(item, "ipv6"));
			if (item)
				json_put(nic, "result",
					 ipam_cni_result(status, json_str_at(nic, "nic"), "1.0.0"));
		}
		left_out = ipam_routes_left_out(pod, status);
		json_put_str(explanation, "warning", left_out);
	}
}

/* It gets none, and why. Returns a new reference. */
static json_t *refused(json_t *explanation, const struct err *why)
{
	json_put_str(explanation, "verdict", why->text);
	json_put_str(explanation, "reason", why->reason);
	return json_incref(explanation);
}

json_t *explain_addresses(const json_t *world, const char *config_ns, const char *key,
			  struct err *err)
{
	const json_t *pod = world_get(world, KIND_POD, key);
	json_auto_t *explanation = json_object(), *asks = NULL, *unknown = NULL;
	json_t *nics = json_array(), *ask;
	struct ipam_settings settings;
	struct err why = {0};
	size_t i;

	json_put(explanation, "nics", nics);
	if (!pod) {
		(void)err_set(err, ERR_INVALID, "PodNotFound", "there is no pod %.128s", key);
		return NULL;
	}
	json_put_str(explanation, "pod", key);
	if (explain_settings(world, config_ns, &settings, &why) < 0 ||
	    !(asks = foresee(world, pod, &settings, &unknown, &why)))
		return refused(explanation, &why);
	json_put(explanation, "unknown", json_incref(unknown));
	json_array_foreach (asks, i, ask)
		json_array_append_new(nics, explain_nic(world, pod, ask, &settings));
	decide(world, pod, asks, &settings, explanation);
	return take_ptr(explanation);
}

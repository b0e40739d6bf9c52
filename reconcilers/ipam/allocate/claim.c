// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of what allocate.c rules: no ledger is opened, as a pool whose spec cannot be
 * read still serves the pods that it has records of.
 */
#include "reconcilers/ipam/allocate/claim.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/ipam/allocate/allocate_internal.h"
#include "reconcilers/ipam/endpoint.h"

/* The pool of a NIC's address of this family; "": it names none, NULL: it has no such address. */
static const char *pool_of(const json_t *item, const struct allocation_family *family)
{
	return json_str_at(item, family->address) ? json_str_or(json_at(item, family->pool), "")
						  : NULL;
}

const char *claim_next_pool(const struct claim *claim, const json_t *compared)
{
	json_t *ask;
	size_t i;

	assert(claim->uid && json_is_array(claim->asks));
	json_array_foreach (claim->asks, i, ask) {
		const json_t *item = endpoint_item(claim->status, json_str_at(ask, "nic"));

		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const char *pool = pool_of(item, &allocation_families[f]);

			if (pool && !json_object_get(compared, pool))
				return pool;
		}
	}
	return NULL;
}

static int refuse(const struct claim *claim, const char *pool, const json_t *object,
		  const char *address, const json_t *record, struct err *err)
{
	auto_free char *holder = record ? str_printf("has it for pod %.80s with UID %.64s",
						     json_str_or(json_at(record, "pod"), "?"),
						     json_str_or(json_at(record, "podUid"), "?"))
					: str_dup("has no record of it");

	return err_set(
		err, ERR_INVALID, "AddressNotAdmitted",
		"SpiderEndpoint %s/%s: address %.64s is of pool \"%.64s\", %s%s; delete this pod "
		"if that stays so, and look who writes its SpiderEndpoint",
		claim->ns, claim->name, address, pool,
		json_is_object(object) ? "whose ledger " : "which does not exist",
		json_is_object(object) ? holder : "");
}

int claim_compare(const struct claim *claim, const char *pool, const json_t *object,
		  struct err *err)
{
	const char *text = json_str_or(json_at(object, "status", "allocatedIPs"), "");
	json_auto_t *records = *text ? json_parse(text, strlen(text), NULL) : NULL;
	auto_free char *pod = str_printf("%s/%s", claim->ns, claim->name);
	json_t *ask;
	size_t i;

	assert(claim->uid && pool);
	json_array_foreach (claim->asks, i, ask) {
		const json_t *item = endpoint_item(claim->status, json_str_at(ask, "nic"));

		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			char address[IP_TEXT_SIZE] = "";
			const json_t *record;

			if (!str_eq(pool_of(item, &allocation_families[f]), pool))
				continue;
			(void)allocation_address(item, &allocation_families[f], address);
			record = json_object_get(records, address);
			if (!record || !str_eq(json_str_at(record, "pod"), pod) ||
			    !str_eq(json_str_at(record, "podUid"), claim->uid))
				return refuse(claim, pool, object, address, record, err);
		}
	}
	return 0;
}

int claim_compare_all(const struct claim *claim, const json_t *pools, struct err *err)
{
	json_auto_t *compared = json_object();
	const char *pool;

	while ((pool = claim_next_pool(claim, compared))) {
		if (claim_compare(claim, pool, json_object_get(pools, pool), err) < 0)
			return -1;
		json_put_bool(compared, pool, true);
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Claims of any API server, on pools and with a state of any shape. Input: {"pools": …, "chosen":
 * …, "settled": …, "allocated": …, "state": …, "claim": ResourceClaim, "observed": …}; each may be
 * anything. Nothing crashes; no device is offered both ways; what is prepared can be read back, is
 * in nobody else's hands, and is the same when it is prepared again; slices keep to the bounds and
 * are no change once they are there.
 */
#include <stdint.h>

#include "lib/json/json.h"
#include "nodeagent/devices/dra_choice.h"
#include "nodeagent/devices/dra_claims.h"
#include "nodeagent/devices/dra_slices.h"
#include "nodeagent/model/dra_state.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* Healthy devices of the resource on both lists: none, unless they are tokens. */
static void check_apart(const json_t *plugins, const json_t *claims)
{
	const json_t *resource, *device;
	size_t i, k;

	json_array_foreach (json_at(plugins, "resources"), i, resource) {
		const json_t *other = json_find(json_at(claims, "resources"), "name",
						json_str_at(resource, "name"));

		json_array_foreach (json_at(resource, "devices"), k, device)
			fuzz_check(!json_is_true(json_at(device, "healthy")) ||
					   !json_str_at(device, "id") ||
					   !json_find(json_at(other, "devices"), "id",
						      json_str_at(device, "id")),
				   "no device is offered both ways");
	}
}

static void check_slices(const json_t *pools, const json_t *observed)
{
	json_auto_t *slices = dra_slices(&(struct dra_slices_input){
		.node = "n1", .node_uid = "u", .pools = pools, .observed = observed});
	json_auto_t *none = json_array(), *first = dra_slices_diff(slices, none);
	json_auto_t *again = dra_slices_diff(slices, json_at(first, "write"));
	struct dra_features features = {0};
	const json_t *slice;
	size_t i;

	json_array_foreach (slices, i, slice)
		fuzz_check(json_array_size(json_at(slice, "spec", "devices")) <= DRA_SLICE_DEVICES,
			   "a slice has no more devices than it may");
	fuzz_check(json_array_size(json_at(again, "write")) == 0, "what is written stays");
	json_array_foreach (slices, i, slice)
		dra_slices_learn(slice, slice, &features);
	fuzz_check(!features.no_taints && !features.no_sharing, "a server that keeps all is known");
}

static void check_claim(const json_t *state, const json_t *claim, const json_t *pools)
{
	const char *uid = json_str_at(claim, "uid");
	struct err err = {0};
	json_auto_t *entry = dra_claim_prepare(state, claim, pools, "boot", &err);
	json_auto_t *again = dra_claim_prepare(state, claim, pools, "boot", NULL);
	json_auto_t *claims = json_object(), *next = NULL, *renewed = NULL;

	fuzz_check(json_same(entry, again), "the same claim gives the same edits");
	fuzz_check(entry || err.reason[0], "a refusal has a reason");
	if (!entry)
		return;
	json_object_set(claims, uid, entry);
	next = json_pack("{s:O}", "claims", claims);
	fuzz_check(dra_state_check(next, NULL) == 0, "what is written can be read");
	renewed = dra_claim_renew(entry, uid, pools, "boot");
	fuzz_check(!renewed, "what is prepared now is fresh");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *before = input ? json_deep_copy(input) : NULL;
	json_auto_t *prepared = NULL, *plugins = NULL, *claims = NULL, *claim = NULL;
	const json_t *state = json_at(input, "state");
	struct dra_choice_input choice;

	if (!input)
		return 0;
	json_decref(dra_choice_read(json_str_at(input, "chosen")));
	if (dra_state_check(state, NULL) == 0)
		prepared = dra_prepared(state);
	choice = (struct dra_choice_input){
		.pools = json_at(input, "pools"),
		.chosen = json_at(input, "chosen"),
		.settled = json_at(input, "settled"),
		.allocated = json_at(input, "allocated"),
		.prepared = prepared,
	};
	plugins = dra_choice_plugins(&choice);
	claims = dra_choice_claims(&choice);
	check_apart(plugins, claims);
	check_slices(claims, json_at(input, "observed"));
	claim = dra_claim_read(json_at(input, "claim"), "n1", json_uid(json_at(input, "claim")),
			       NULL);
	if (claim && (!state || prepared))
		check_claim(state, claim, claims);
	fuzz_check(json_same(input, before), "inputs are not changed");
	return 0;
}

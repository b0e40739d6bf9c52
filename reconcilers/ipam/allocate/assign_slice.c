// SPDX-License-Identifier: Apache-2.0
/*
 * How much work an entry is, from sizes of texts and lists: what is too much for this pass is not
 * even parsed. The leader asks while it gathers the world of a pass (assign.h).
 */
#include "reconcilers/ipam/allocate/assign_slice.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"

/* So many pools are compared with a name, or with the rules of a pool, in one unit. */
#define WORK_OF_POOLS 16

/* Bytes are cheap, what they separate is not. */
static size_t text_work(const char *text)
{
	size_t len = strlen(text);

	return len / 128 + json_weight(text, len, len);
}

static size_t count_patterns(const json_t *pod)
{
	static const char *const keys[] = {IPAM_ANNOTATION_POOL, IPAM_ANNOTATION_POOLS};
	const json_t *annotations = json_at(pod, "metadata", "annotations");
	size_t patterns = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		patterns +=
			candidates_count_patterns(json_str_or(json_at(annotations, keys[i]), ""));
	return patterns;
}

/* Looking at so many pools for NICs of one pod: beyond a number the pod is refused. */
static size_t work_of_candidates(size_t n)
{
	return (n < LIMIT_CANDIDATES ? n : LIMIT_CANDIDATES) / WORK_OF_POOLS;
}

/* What the pod itself asks for: without names each NIC may look at all pools. */
static size_t candidates_work(const json_t *pod, size_t patterns, size_t pools)
{
	const json_t *annotations = json_at(pod, "metadata", "annotations");
	const char *networks = json_str_or(json_at(annotations, NETWORKS_ANNOTATION), "");
	size_t nics = 1 + json_weight(networks, strlen(networks), LIMIT_NETWORKS);
	bool names_pools = json_at(annotations, IPAM_ANNOTATION_POOL) ||
			   json_at(annotations, IPAM_ANNOTATION_POOLS);

	return patterns || !names_pools ? work_of_candidates(nics * pools) : 0;
}

size_t assign_slice_work(const json_t *pod, size_t pools)
{
	const json_t *annotations = json_at(pod, "metadata", "annotations");
	size_t patterns = count_patterns(pod), work = 1;
	const char *key;
	json_t *value;

	/* It is refused by its sizes. */
	if (limits_check_pod(pod, NULL) < 0)
		return 1;
	json_each (annotations, key, value)
		work += text_work(json_str_or(value, ""));
	return work + patterns * pools / WORK_OF_POOLS + candidates_work(pod, patterns, pools);
}

/* So many addresses are released or compared, or parts of an ask are read, in one unit. */
#define WORK_OF_PARTS 8

/* Users may write what an agent asks for, and what the pod has. */
static size_t endpoint_work(const json_t *endpoint)
{
	static const char *const keys[] = {ENDPOINT_ASKS_ANNOTATION, ENDPOINT_CONFLICTS_ANNOTATION};
	const json_t *annotations = json_at(endpoint, "metadata", "annotations");
	size_t work = json_array_size(json_at(endpoint, "status", "current", "ips"));

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		work += text_work(json_str_or(json_at(annotations, keys[i]), ""));
	return work / WORK_OF_PARTS;
}

static bool take_work(struct assign_slice *slice, size_t work)
{
	if (work > ASSIGN_LIGHT) {
		if (slice->heavy && slice->heavy + work > ASSIGN_HEAVY_WORK)
			return false;
		slice->heavy += work;
	} else if (slice->work + work > ASSIGN_WORK) {
		return false;
	} else {
		slice->work += work;
	}
	slice->last = work;
	slice->pods++;
	return true;
}

bool assign_slice_take(struct assign_slice *slice, const json_t *pod, const json_t *endpoint,
		       size_t pools)
{
	assert(slice->heavy <= ASSIGN_HEAVY_WORK || slice->pods > 0);
	slice->candidates = candidates_work(pod, count_patterns(pod), pools);
	return take_work(slice, assign_slice_work(pod, pools) + endpoint_work(endpoint));
}

bool assign_slice_take_more(struct assign_slice *slice, const struct candidate_names *meant,
			    size_t pools)
{
	size_t work = slice->last + meant->patterns * pools / WORK_OF_POOLS;
	size_t masters =
		meant->masters < LIMIT_MASTER_ADDRESSES ? meant->masters : LIMIT_MASTER_ADDRESSES;
	size_t candidates = work_of_candidates(meant->names + meant->open_asks * pools);

	assert(slice->pods > 0);
	/* Each pool is compared with each of them. */
	candidates += candidates * masters / LIMIT_MASTER_ADDRESSES;
	if (candidates > slice->candidates)
		work += candidates - slice->candidates;
	*(slice->last > ASSIGN_LIGHT ? &slice->heavy : &slice->work) -= slice->last;
	slice->pods--;
	return take_work(slice, work);
}

bool assign_slice_take_ending(struct assign_slice *slice, const json_t *ended)
{
	size_t n = json_array_size(json_at(ended, "status", "current", "ips")) +
		   json_array_size(json_at(ended, "conflicts")) +
		   json_array_size(json_at(ended, "records"));
	size_t work = 1 + n / WORK_OF_PARTS;

	if (slice->endings >= ASSIGN_MAX ||
	    (slice->endings && slice->ending_work + work > ASSIGN_ENDING_WORK))
		return false;
	slice->ending_work += work;
	slice->endings++;
	return true;
}

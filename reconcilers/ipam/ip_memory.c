// SPDX-License-Identifier: Apache-2.0
/*
 * ledger.c reads both lists when it opens a pool, notes what happens, and writes them into the
 * status. A time counts from `now` of the pass; what is over is handed to the caller to rest.
 */
#include "reconcilers/ipam/ip_memory.h"

#include <assert.h>
#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define US_PER_S INT64_C(1000000)

void ip_rest(json_t *resting, const char *address)
{
	assert(json_is_array(resting));
	if (json_array_size(resting) >= IP_RESTING_MAX)
		json_array_remove(resting, 0);
	json_array_append_new(resting, json_string(address));
}

static void add(struct ip_conflicts *conflicts, ip_number number)
{
	ip_set_add(&conflicts->set, (struct ip_range){.first = number, .last = number});
}

/* A clock that is ahead of ours by more than an entry lives is not believed. */
static bool is_over(int64_t seen_us, int64_t now_us)
{
	int64_t age_us = now_us - seen_us;

	return age_us >= IP_CONFLICT_S * US_PER_S || age_us < -IP_CONFLICT_S * US_PER_S;
}

static void read_entry(struct ip_conflicts *conflicts, const struct ip_pool *addresses,
		       const struct ip_set *kept, const json_t *entry, const int64_t *now_us)
{
	char canonical[IP_TEXT_SIZE];
	int64_t seen_us = 0, left_ms;
	json_t *copy;
	ip_number number;

	if (ip_parse(json_str_or(json_at(entry, "ip"), ""), conflicts->family, &number, NULL) < 0 ||
	    !rfc3339_read(json_str_or(json_at(entry, "seen"), ""), &seen_us) ||
	    !ip_set_has(&addresses->usable, number) || ip_set_has(kept, number))
		return;
	ip_print(conflicts->family, number, canonical);
	if (now_us && is_over(seen_us, *now_us)) {
		json_array_append_new(conflicts->over, json_string(canonical));
		return;
	}
	copy = json_copy((json_t *)entry);
	json_put_str(copy, "ip", canonical);
	json_array_append_new(conflicts->entries, copy);
	add(conflicts, number);
	if (!now_us)
		return;
	left_ms = (seen_us + IP_CONFLICT_S * US_PER_S - *now_us) / 1000 + 1;
	if (conflicts->next_ms < 0 || left_ms < conflicts->next_ms)
		conflicts->next_ms = left_ms;
}

static size_t share_of(const struct ip_pool *addresses)
{
	int64_t eighth = ip_set_count(&addresses->usable) / 8;

	if (eighth < IP_CONFLICTS_OF_NAMESPACE_MIN)
		return IP_CONFLICTS_OF_NAMESPACE_MIN;
	return eighth < IP_CONFLICTS_OF_NAMESPACE_MAX ? (size_t)eighth
						      : IP_CONFLICTS_OF_NAMESPACE_MAX;
}

void ip_conflicts_read(const json_t *pool, const struct ip_pool *addresses,
		       const struct ip_set *kept, const char *now, struct ip_conflicts *ret)
{
	json_t *entry;
	int64_t now_us;
	bool has_now = !str_empty(now) && rfc3339_read(now, &now_us);
	size_t i;

	assert(addresses && kept);
	*ret = (struct ip_conflicts){
		.family = addresses->subnet.family,
		.entries = json_array(),
		.over = json_array(),
		.share = share_of(addresses),
		.next_ms = -1,
	};
	json_array_foreach (json_at(pool, "status", "conflictIPs"), i, entry)
		read_entry(ret, addresses, kept, entry, has_now ? &now_us : NULL);
	ip_set_settle(&ret->set);
}

void ip_conflicts_done(struct ip_conflicts *conflicts)
{
	json_decref(conflicts->entries);
	json_decref(conflicts->over);
	ip_set_done(&conflicts->set);
	*conflicts = (struct ip_conflicts){0};
}

static bool is_young(const json_t *entry, const char *now)
{
	int64_t seen_us, now_us;

	return rfc3339_read(json_str_or(json_at(entry, "seen"), ""), &seen_us) &&
	       rfc3339_read(now, &now_us) && now_us - seen_us < IP_CONFLICT_S * US_PER_S / 2;
}

static bool is_mac(const char *text)
{
	size_t i;

	for (i = 0; i < 17 && text[i]; i++)
		if (i % 3 == 2 ? text[i] != ':' : str_hex_digit(text[i]) < 0)
			return false;
	return i == 17 && !text[i];
}

/* Entries of pods whose "namespace/name" begins so. */
static size_t count_of(const struct ip_conflicts *conflicts, const char *pod, size_t len)
{
	size_t n = 0, i;
	json_t *entry;

	json_array_foreach (conflicts->entries, i, entry)
		n += strncmp(json_str_or(json_at(entry, "pod"), ""), pod, len) == 0;
	return n;
}

bool ip_conflicts_has_room(const struct ip_conflicts *conflicts, const char *address,
			   const char *pod)
{
	const char *slash = strchr(pod, '/');

	assert(conflicts->entries);
	if (json_find(conflicts->entries, "ip", address))
		return true;
	/* The whole of the name: with its end. */
	return count_of(conflicts, pod, strlen(pod) + 1) < IP_CONFLICTS_OF_POD &&
	       (!slash || count_of(conflicts, pod, (size_t)(slash - pod) + 1) < conflicts->share);
}

bool ip_conflicts_note(struct ip_conflicts *conflicts, const char *address, const char *mac,
		       const char *pod, const char *node, const char *now)
{
	json_t *known = json_find(conflicts->entries, "ip", address), *entry, *other;
	ip_number number;
	size_t i;

	assert(conflicts->entries);
	if (ip_parse(address, conflicts->family, &number, NULL) < 0)
		return false;
	if (!is_mac(mac))
		mac = "";
	if (known && str_eq(json_str_at(known, "mac"), mac) && is_young(known, now))
		return false;
	json_array_foreach (conflicts->entries, i, other) {
		if (other != known)
			continue;
		json_array_remove(conflicts->entries, i);
		break;
	}
	if (json_array_size(conflicts->entries) >= IP_CONFLICTS_MAX)
		json_array_remove(conflicts->entries, 0);
	entry = json_object();
	json_put_str(entry, "ip", address);
	json_put_str(entry, "mac", mac);
	json_put_str(entry, "pod", pod);
	json_put_str(entry, "node", str_empty(node) ? NULL : node);
	json_put_str(entry, "seen", now);
	json_array_append_new(conflicts->entries, entry);
	add(conflicts, number);
	ip_set_settle(&conflicts->set);
	return true;
}

void ip_conflicts_write(const struct ip_conflicts *conflicts, json_t *status)
{
	size_t n = json_array_size(conflicts->entries);

	assert(json_is_object(status));
	json_object_del(status, "conflictIPs");
	json_object_del(status, "conflictIPCount");
	if (n == 0)
		return;
	json_put(status, "conflictIPs", json_deep_copy(conflicts->entries));
	json_put_int(status, "conflictIPCount", (int64_t)n);
}

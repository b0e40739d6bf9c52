// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of an allocation share: allocate.c calls the others, allocate_takeover.c those of
 * allocate_take.c, and both those of allocate_item.c.
 */
#pragma once

#include "reconcilers/ipam/allocate/allocate.h"

/* The members of an ask, and of an item, that an address family has. */
struct allocation_family {
	enum ip_family family;
	const char *list, *address, *pool, *gateway;
	const char *default_route;
};

enum { ALLOCATION_FAMILIES = 2 };

extern const struct allocation_family allocation_families[ALLOCATION_FAMILIES];

/* One call of ipam_allocate(), or of ipam_record(). */
struct allocate_call {
	struct books *books;
	const json_t *pod;
	const struct ipam_settings *settings;
	const json_t *asks;
	char *name; /* "namespace/name" as records have it */
	const char *uid;
	struct ledger_holder holder; /* of name and uid */
	bool keeps_dropped;          /* what is dropped may be in use: its records stay */
	json_t *items;               /* what status.current.ips will be */
	/*
	 * In step with items: the number of each in a list of pools that names no NICs, which is
	 * its place there as long as none was dropped.
	 */
	json_t *places;
	json_t *memo;  /* candidates_find() */
	json_t *fresh; /* those of the items that were made in this call; borrowed items */
};

/* ---- allocate_item.c ------------------------------------------------------------------------- */

/*
 * The address of an item without its prefix length: as records have it. False when it has none of
 * this family.
 */
bool allocation_address(const json_t *item, const struct allocation_family *family,
			char out[IP_TEXT_SIZE]);

/* The item of a NIC, "" of one that waits for its NIC; NULL: there is none. Borrowed. */
json_t *allocation_item(const json_t *items, const char *nic);

/* The place of the i-th item. */
size_t allocation_place(const struct allocate_call *call, size_t i);
bool allocation_has_place(const struct allocate_call *call, size_t place);
/* Before the first one with a later place. Takes the item. */
void allocation_put_item(struct allocate_call *call, json_t *item, size_t place);

/*
 * The pod's own routes, checked; an empty array when it has none. Returns new, or NULL with err:
 * ERR_INVALID "WrongAnnotation", "TooLarge".
 */
json_t *allocation_routes(const json_t *pod, struct err *err);
void allocation_add_route(json_t *item, const char *dst, const char *gw);
/*
 * Each of these routes goes to the first NIC whose network has its gateway; one that no NIC of this
 * call reaches has no place.
 */
void allocation_spread_routes(const struct allocate_call *call, const json_t *routes);

/* ---- allocate_take.c ------------------------------------------------------------------------- */

/*
 * What an item of this want is called: "0" is eth0, and other numbers wait for the NIC that asks
 * next. Borrowed.
 */
const char *allocation_interface(const json_t *want);

/*
 * An item with addresses of its own, noted in the books and among the fresh ones. Returns new, or
 * NULL with err as of ipam_allocate().
 */
json_t *allocation_make_item(struct allocate_call *call, const json_t *want, const char *interface,
			     struct err *err);

/* ---- allocate_takeover.c --------------------------------------------------------------------- */

/* What all NICs may have now (candidates.h). Returns new, or NULL with err. */
json_t *allocation_wants(const struct allocate_call *call, const json_t *asks, struct err *err);

/*
 * The want that an item stands for: by its NIC, or by its place when the list of pools names no
 * NICs. NULL: none. Borrowed.
 */
const json_t *allocation_want(const json_t *wants, const json_t *item, size_t place);

/*
 * May an address that the pod's endpoint names, and no record, become the pod's? By the rules for
 * new ones: users may write endpoints of their namespaces. 0, or -1 with err.
 */
int allocation_check_claim(struct allocate_call *call, const struct allocation_family *family,
			   const json_t *item, struct ledger *ledger, const char *address,
			   struct err *err);

/*
 * Has the world a pod with this UID that has not terminated, and is neither the call's pod nor
 * another one of its virtual machine? Such a pod shares the name of its SpiderEndpoint, and may use
 * what that says: a virtual machine may have the name of a pod, and users may write the agent's
 * word.
 */
bool allocation_is_of_stranger(const struct allocate_call *call, const char *uid);

/* Give back what the i-th item has of old_uid, unless the call keeps what it drops. */
void allocation_drop_item(struct allocate_call *call, size_t i, const char *old_uid);

/*
 * A pod that keeps its addresses comes back under another UID. A virtual machine keeps them
 * whatever pools were chosen since: its guest may be running while it moves here.
 */
int allocation_come_back(struct allocate_call *call, const json_t *asks, const char *old_uid,
			 struct err *err);

/*
 * What came back with the pod before this NIC had asked is looked at when it asks first: the user
 * may have chosen other pools. Its interface is not there yet.
 */
int allocation_judge_again(struct allocate_call *call, const json_t *ask, struct err *err);

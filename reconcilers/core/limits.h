/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of what users write is read: the bounds that operator, agent and command line share.
 *
 * Users choose how long annotations, lists and JSON within strings are; operator and agents pay for
 * it. Beyond a bound nothing is computed: the reader of the text returns ERR_INVALID "TooLarge",
 * with object, field, size and bound.
 *
 * What is mirrored is reduced to these bounds on arrival: in the place of a text or list that is
 * too large stands its size, a number. The API server stores none there.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum {
	/* Networks of one pod, and so its NICs besides eth0. */
	LIMIT_NETWORKS = 64,
	/* Bytes of an annotation; of all labels, owner references, finalizers of an object. */
	LIMIT_ANNOTATION_BYTES = 16 * 1024,
	/* Bytes of the annotations of an object that are read or mirrored, together. */
	LIMIT_ANNOTATIONS_BYTES = 32 * 1024,
	/* Bytes of a CNI configuration, or of a part of one that is written as text. */
	LIMIT_CONFIG_BYTES = 64 * 1024,
	/* json_weight() of JSON in a string, values in a list: at most 0.6 MB once it is read. */
	LIMIT_JSON_NODES = 4096,
	/* Pods that name one virtual machine as their owner; a migration leaves one behind. */
	LIMIT_MACHINE_PODS = 256,
	/* SpiderMultusConfigs of one namespace in one group, or for one name of a network. */
	LIMIT_CONFIGS = 128,
	/* Pools that are named for one NIC and family; a pattern counts once. */
	LIMIT_POOL_NAMES = 64,
	/* Different patterns of names of pools, of one pod. */
	LIMIT_POOL_PATTERNS = 32,
	/* Pools to choose from, of all NICs of one pod together. */
	LIMIT_CANDIDATES = 8192,
	/* Addresses of a NIC's PF, where its network wants pools of the PF's subnet. */
	LIMIT_MASTER_ADDRESSES = 16,
	/* limits_weight() of a user's spec or status, once its parts are reduced. */
	LIMIT_OBJECT_BYTES = 256 * 1024,
	/* Elements of a list in an object of a user. */
	LIMIT_LIST = 1024,
	/*
	 * Bytes of a pool as it is sent and stored. etcd takes 1.5 MiB for a request
	 * (--max-request-bytes).
	 */
	LIMIT_POOL_BYTES = 1536 * 1024 - 2048,
	/* Of these for all but ledger and spec: metadata and conditions take some 2 KiB. */
	LIMIT_POOL_REST_BYTES = 10 * 1024,
	/* Of these for addresses that rest or are in conflict: more where the ledger is smaller. */
	LIMIT_POOL_LISTS_BYTES = 6 * 1024,
	/* Up to this size each record of a ledger names its node (ledger.h). */
	LIMIT_PLAIN_LEDGER_BYTES = 1024 * 1024,
	/* The longest record: names of 253, a namespace of 63, a UID of 36 characters. */
	LIMIT_RECORD_BYTES = 768,
};

/*
 * May this text be parsed as JSON? 0, or -1 with ERR_INVALID "TooLarge", which does not name the
 * text: put that before it with err_in().
 */
int limits_check_text(const char *text, size_t len, size_t max_bytes, struct err *err);

/* json_parse() of text within the bounds. Returns new, or NULL with err: "TooLarge", "BadJson". */
json_t *limits_parse(const char *text, size_t len, size_t max_bytes, struct err *err);

/*
 * Is everything of the pod within bounds that decisions on networks and addresses read: annotations
 * and labels? -1 with err: ERR_INVALID "TooLarge".
 */
int limits_check_pod(const json_t *pod, struct err *err);

/* Of a pod's annotations those that limits_check_pod() looks at, reduced. Returns new. */
json_t *limits_pod_annotations(const json_t *annotations);
/* Labels, reduced. Returns new; NULL for NULL. */
json_t *limits_labels(const json_t *labels);

/*
 * Reduce metadata of any object in place, each part of more than LIMIT_ANNOTATION_BYTES: labels to
 * their size; owner references to the controller's; finalizers to none, so that none is released.
 */
void limits_reduce_metadata(json_t *metadata);

/*
 * Of an object's annotations the named ones (up to NULL), in this order, within
 * LIMIT_ANNOTATION_BYTES each and LIMIT_ANNOTATIONS_BYTES together; of one beyond that its size.
 * Returns new.
 */
json_t *limits_annotations(const json_t *annotations, const char *const *names);
/*
 * All of them, where any name may matter: first those that the array `first` has (NULL: none), then
 * the others, while they and their names have max_bytes together; the rest is left out. Returns
 * new.
 */
json_t *limits_all_annotations(const json_t *annotations, const json_t *first, size_t max_bytes);

/*
 * Reduce in place: strings (LIMIT_CONFIG_BYTES) and lists anywhere in a value (LIMIT_LIST; with all
 * that is within LIMIT_JSON_NODES values, LIMIT_CONFIG_BYTES in their strings); then members with
 * which it has more than LIMIT_OBJECT_BYTES.
 */
void limits_reduce(json_t *value);
/* Bytes of all strings and keys in a value, and some for each part of it. */
size_t limits_weight(const json_t *value);

/* -1 with err "TooLarge" when limits_reduce() would put a number in the place of the list. */
int limits_check_list(const json_t *list, struct err *err);

/* -1 with err "TooLarge" when a number stands in the place of a text or list: see the top. */
int limits_check_reduced(const json_t *value, struct err *err);

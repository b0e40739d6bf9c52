// SPDX-License-Identifier: Apache-2.0
/*
 * What the parts of pools_compute() share: the observed host, indexed, and the resources in the
 * making.
 *
 * Private to pools*.c. Everything is borrowed from the input, except what is in `resources` and
 * `problems`.
 */
#pragma once

#include "lib/base/map.h"
#include "nodeagent/devices/pools.h"

/* NumVFs and VF numbers are 16 bits wide (PCI Express Base Specification, SR-IOV capability). */
#define POOLS_VFS_MAX 65535

/* One network function of the host: a PF, a plain NIC, or a VF. */
struct pools_function {
	const char *address;
	const json_t *seen; /* its entry in the observed document */
	const json_t *pf;   /* the PF's entry; NULL unless it is a VF */
	int64_t number;     /* of a VF; -1 else */
};

struct pools {
	const struct pools_input *input;
	struct pools_function *functions; /* each PF before its VFs */
	size_t n_functions;
	struct map by_address; /* → struct pools_function */
	json_t *rdma;          /* {PCI address: [RDMA device]}, owned; elements are the input's */
	struct map dev_names;  /* names below /dev that are there */
	struct map pools;      /* name → struct pool, owned */
	struct map held;       /* PCI address → name of a resource as which a pod has it */
	struct map claimed; /* PCI address → struct pool that has it: a function is offered once */
	int64_t tokens;     /* made so far; POOLS_TOKENS_MAX */
	json_t *problems;
	size_t problems_dropped;
};

struct pool {
	const char *source; /* words for the configuration that it comes from */
	json_t *resource;
	json_t *devices;         /* in resource */
	const json_t *before;    /* the resource as it was, or NULL */
	const json_t *allocated; /* {id: who}, or NULL */
	size_t causes_dropped;
	int64_t wanted;
};

/* What a pool wants of its functions. */
struct pools_wants {
	/* "netdevice": a driver of the kernel; "vfio-pci": that driver; NULL: any */
	const char *device_type;
	bool rdma;
	bool vhost_net;
	bool exclude_topology;
	const json_t *extra; /* additionalInfo: {"*" or address: {key: value}}, or NULL */
};

/* ---- pools_host.c: the host, indexed --------------------------------------------------------- */

/* Fill all that is indexed of the input; the caller frees it. */
void pools_index(struct pools *pools);
/* Its RDMA devices, those on its interface included: array, empty or NULL when none is seen. */
const json_t *pools_rdma_of(const struct pools *pools, const char *address);
/* Is there a file /dev/NAME, as far as is known? */
bool pools_has_file(const struct pools *pools, const char *name);

/* ---- pool.c: a resource in the making -------------------------------------------------------- */

/* Add a problem, one line, whatever is in it. resource may be NULL. */
void pools_problem(struct pools *pools, const char *resource, const char *reason, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));
/* Say why the pool has fewer devices than it wants, or why some are unhealthy. */
void pool_cause(struct pool *pool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add "vendor 8086, wanted 15b3 or 1af4" to misses; value may be NULL, wanted is an array. */
void pools_add_miss(struct strbuf *misses, const char *words, const char *value,
		    const json_t *wanted);
/* Report NothingSelected with the pool's causes. configuration: words for the place to correct. */
void pools_nothing_selected(struct pools *pools, const struct pool *pool,
			    const char *configuration);

/*
 * Return the pool prefix/name, made when there is none, or when `merge` is set the one that
 * `source` has made. NULL, with a problem added, when the kubelet would refuse the name or another
 * configuration has it.
 */
struct pool *pools_need(struct pools *pools, const char *prefix, const char *name, const char *kind,
			const char *source, bool merge);
/* A map's free_value. */
void pool_free(void *pool);

/*
 * Name the variable with the list of ids, as the SR-IOV device plugin does:
 * PCIDEVICE_SPIDERNET_IO_X.
 */
void pool_add_env(struct pool *pool);

/* How the pool's device was; NULL when it was not there. */
const json_t *pool_device_before(const struct pool *pool, const char *id);
/* Does a pod have it, as far as is known? */
bool pool_gave(const struct pool *pool, const char *id);
/*
 * Add a device that is not there now, as it was before, and unhealthy; it is claimed from then on.
 */
void pools_add_gone(struct pools *pools, struct pool *pool, const char *id, const char *cause);

/* The name of another resource as which a pod has it, or NULL. */
const char *pools_gave_elsewhere(const struct pools *pools, const struct pool *pool,
				 const char *id);

/*
 * Add tokens "0" … "n-1", healthy or not; none, and a cause, when there would be too many. Without
 * a link those that pods have stay healthy, as pools_unwell() says.
 */
void pools_add_tokens(struct pools *pools, struct pool *pool, int64_t n, bool healthy,
		      bool has_link);

/* ---- pools_function.c: one network function as a device -------------------------------------- */

/* Can it do RDMA, as far as can be seen while a pod may have it? */
bool pools_has_rdma(const struct pools *pools, const struct pool *pool,
		    const struct pools_function *function);
/* Why pods must not get it (it carries the default route, …), or NULL. */
const char *pools_protected(const struct pools *pools, const struct pools_function *function);
/* Add it to the pool, healthy or with a cause; it is claimed from then on. */
void pools_add_function(struct pools *pools, struct pool *pool,
			const struct pools_function *function, const struct pools_wants *wants);

/* ---- pools_health.c -------------------------------------------------------------------------- */

/*
 * Why pods could do nothing with it, though it is there and bound; new. NULL: it works, as far as
 * is known. A port without link counts only for what is free: kubelets from 1.27 start a container
 * only on devices that are healthy, and after a boot a link comes up later than they do.
 * has_to_be_up: a port that is set down is one without link.
 */
char *pools_unwell(const struct pools *pools, const struct pools_function *function, bool is_held,
		   bool has_to_be_up);

/* ---- the sources ----------------------------------------------------------------------------- */

void pools_from_groups(struct pools *pools);    /* pools_sriov.c */
void pools_from_list(struct pools *pools);      /* pools_list.c */
void pools_from_shared(struct pools *pools);    /* pools_shared.c */
void pools_from_dev_files(struct pools *pools); /* pools_devices.c */

/* ---- pools_read.c: configurations as users write them ---------------------------------------- */

/*
 * Why the kubelet would refuse prefix/name, or NULL. Source: kubernetes,
 * pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName().
 */
const char *pools_name_fault(const char *prefix, const char *name);

/* Append {"resource" (unless NULL), "reason", "message"}. */
void pools_note(json_t *problems, const char *resource, const char *reason, const char *message);

/*
 * A copy of obj with the keys in `known` (NULL at the end) spelt as there, nulls left out. Other
 * keys become `problems` under `where`, and are left out. New; an empty object when obj is none.
 */
json_t *pools_fold_keys(const json_t *obj, const char *const *known, const char *where,
			json_t *problems);

/*
 * Is obj's member, where it is there, a list of strings, not too long? -1 with err "BadField" else.
 */
int pools_check_strings(const json_t *obj, const char *where, const char *key, struct err *err);

/* One entry, checked; new, or NULL with err. `where` is its path for messages. */
typedef json_t *pools_read_entry(const json_t *entry, const char *where, json_t *problems,
				 struct err *err);

/* A kind of configuration: an object with one list of entries. */
struct pools_format {
	const char *what;         /* "the shared device plugin's configuration", for messages */
	const char *reason;       /* of all its errors */
	const char *const *known; /* its keys */
	const char *list;         /* the one with the entries */
	pools_read_entry *read;
};

/*
 * The document with its good entries and "problems", new. raw: what the text parsed to, or NULL
 * with `inner` saying why it did not. NULL with err ERR_INVALID format->reason when it is no such
 * object.
 */
json_t *pools_read_document(const struct pools_format *format, const json_t *raw,
			    const struct err *inner, struct err *err);

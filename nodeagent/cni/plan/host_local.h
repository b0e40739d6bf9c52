// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of host-local: which addresses a configuration has, and in which order they are
 * tried. Pure; nodeagent/cni/execute/host_local_run.c has the files.
 *
 * Compatible with host-local of containernetworking-plugins 1.x, with its keys, files and order
 * (github.com/containernetworking/plugins, plugins/ipam/host-local).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/addr.h"

/* Sets of ranges, ranges of one set, addresses that are asked for. */
#define HOST_LOCAL_MAX 64

struct host_local_range {
	struct addr subnet, start, end; /* the first and the last one, both included */
	struct addr gateway;            /* never given */
};

/* One address is taken of each set. */
struct host_local_set {
	struct host_local_range ranges[HOST_LOCAL_MAX];
	size_t n;
};

struct host_local_config {
	json_t *folded; /* what the texts are borrowed from */
	const char *network, *data_dir;
	const char *resolv_conf;     /* a file that has the pod's DNS; NULL: none */
	const json_t *routes;        /* of a result (result.h) */
	struct host_local_set *sets; /* heap */
	size_t n_sets;
	struct addr wanted[HOST_LOCAL_MAX]; /* addresses that are asked for */
	size_t n_wanted;
};

/*
 * args: CNI_ARGS, or NULL. ERR_INVALID "BadField": the text names the key. With `only_place` no
 * more than network and data_dir is read, which is what DEL needs.
 */
int host_local_config_read(const json_t *config, const char *args, bool only_place,
			   struct host_local_config *ret, struct err *err);
void host_local_config_done(struct host_local_config *config);
#define auto_host_local_config auto_call(host_local_config_done)

/* The range of a set that has the address; NULL: none. */
const struct host_local_range *host_local_range_of(const struct host_local_set *set,
						   const struct addr *address);

/*
 * All addresses of a set but its gateways, each once: from the one behind `last`, which was given
 * last (family 0, or of no range: from the first).
 */
struct host_local_walk {
	const struct host_local_set *set;
	size_t range;
	struct addr at, begun;
};
void host_local_walk_init(struct host_local_walk *walk, const struct host_local_set *set,
			  const struct addr *last);
/* The next one, with the range that it is of; NULL: there is none. */
const struct host_local_range *host_local_walk_next(struct host_local_walk *walk, struct addr *ret);

/* The text of a resolv.conf(5) as "dns" of a result; new. */
json_t *host_local_dns(const char *text);

// SPDX-License-Identifier: Apache-2.0
/*
 * The text of what devices have counted, as Prometheus gets it (docs/metrics.md). Pure.
 *
 * Names of interfaces, devices and counters are not ours: a pod may call its interface anything, a
 * driver its counters. What is missing has no series.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* Which devices are read: --rdma-metrics. */
enum exposition_scope {
	EXPOSITION_OFF,
	EXPOSITION_PFS,
	EXPOSITION_PODS, /* PFs, and what pods have */
	EXPOSITION_ALL,  /* also VFs without a pod */
};

/* "off", "pf", "pods", "all"; false for anything else. */
bool exposition_scope_read(const char *text, enum exposition_scope *ret);

/*
 * For counters_list(): an array of PCI addresses of VFs, new; NULL: all. pods as of meter_pods().
 */
json_t *exposition_vfs(enum exposition_scope scope, const json_t *pods);

/*
 * Is this device (of counters_list()) one that is not to be touched? excluded: names of RDMA
 * devices, interfaces, and PCI addresses, patterns of fnmatch(3), joined by commas; NULL: none.
 */
bool exposition_is_excluded(const char *excluded, const json_t *device);

enum {
	/* Names of counters beyond those that are documented; more are left out. */
	EXPOSITION_UNKNOWN_MAX = 256,
};

struct exposition_input {
	const char *node; /* name of the Node */
	/*
	 * [{ "device": entry of counters_list(), "counted": of counters_read(), or absent,
	 * "failed": true when it should be there }]
	 */
	const json_t *devices;
	const json_t *rails;  /* "list" of nodeagent/model/rails.h; NULL: not known */
	const json_t *pods;   /* meter_pods(); NULL: not known */
	const json_t *owners; /* { "namespace/pod": meter_owner() }; NULL: none are known */
	/* What the kubelet names (meter_pods()), for sriov_kubepoddevice; NULL: not known. */
	const json_t *allocated;
};

/* Appended. Equal inputs give equal bytes. */
void exposition_write(const struct exposition_input *input, struct strbuf *out);

// SPDX-License-Identifier: Apache-2.0
/*
 * Reading and writing the small text files in which the kernel speaks; and the only place that
 * knows struct host's inside.
 *
 * Reading functions return whether there was something to read. Why not is rarely of interest:
 * sysfs says "not there" and "does not apply now" (EINVAL for the speed of an interface that is
 * down) in many ways.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "nodeagent/host/host.h"

struct host {
	int root;
	const struct host_doors *doors;
	void *doors_ctx;
	struct netlink *netlink; /* above the door doors->exchange */
	bool shares_netlink;     /* with the caller, of host_share_netlink() */
	bool may_force;          /* VFs onto a protected PF */
	bool may_set_firmware;   /* of a card */
	json_t *node_addresses;  /* array of strings */
	json_t *held;            /* of host_set_held(); NULL: not known */
	host_given_fn *given;    /* of host_set_given() */
	void *given_arg;
};

/* One short text. Attributes of one value fit; what is longer counts as unreadable. */
struct sysfs_text {
	char text[256];
};

/* The file's text up to the line's end. False when it cannot be read, is empty, or is longer. */
bool sysfs_read(const struct host *host, const char *path, struct sysfs_text *ret);
/* A whole number, decimal with or without sign, or hexadecimal with 0x. */
bool sysfs_read_int(const struct host *host, const char *path, int64_t *ret);
/* The whole of a longer file, at most max bytes. Appended to ret. */
bool sysfs_read_file(const struct host *host, const char *path, size_t max, struct strbuf *ret);
/* The last part of where a symbolic link points to. */
bool sysfs_link(const struct host *host, const char *path, struct sysfs_text *ret);
bool sysfs_exists(const struct host *host, const char *path);
/*
 * Names in a folder without . and .., sorted; an array of strings, new. NULL when there is no such
 * folder.
 */
json_t *sysfs_list(const struct host *host, const char *path);

/*
 * Through the host's door. Errors: ERR_HOST "WriteRefused" with errno, unless the door says
 * otherwise.
 */
int sysfs_write(struct host *host, const char *path, const char *text, struct err *err);

/* Text to number, as above. Pure. */
bool sysfs_parse_int(const char *text, int64_t *ret);

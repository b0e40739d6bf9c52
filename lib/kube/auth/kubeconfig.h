// SPDX-License-Identifier: Apache-2.0
/*
 * kubeconfig files as text becomes fields: reading, merging, and getters that name file, entry and
 * field of what is wrong. What the fields mean is config.c's business.
 *
 * Merging needs no merged copy: files are kept in order, and the first that has a name, or a
 * current-context, wins.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/kube/auth/config.h"
#include "lib/kube/auth/pem.h"

struct kubeconfig_file {
	char *path; /* as people gave it; `root` not included */
	json_t *json;
};

struct kubeconfig {
	const char *root; /* borrowed, never NULL */
	struct kubeconfig_file *files;
	size_t len;
};

enum kubeconfig_list {
	KUBECONFIG_CLUSTERS,
	KUBECONFIG_CONTEXTS,
	KUBECONFIG_USERS,
};

/* One named entry, or an object inside it. Everything borrowed from the kubeconfig. */
struct kubeconfig_entry {
	const struct kubeconfig *of;
	const struct kubeconfig_file *file;
	enum kubeconfig_list list;
	const char *name;
	const json_t *body;
	const char *prefix; /* of field names in messages: "" or "exec." */
};

/*
 * Add one file, or the text of one. Checks its shape: what it is, and that entries have names of
 * their own.
 */
int kubeconfig_add_file(struct kubeconfig *k, const char *path, struct err *err);
int kubeconfig_add_text(struct kubeconfig *k, const char *path, const char *text, size_t len,
			struct err *err);
void kubeconfig_done(struct kubeconfig *k);

#define auto_kubeconfig auto_call(kubeconfig_done)

/* "kubeconfig /a", or "kubeconfig /a:/b" of several. Returns new; free(). */
char *kubeconfig_subject(const struct kubeconfig *k);

/* The context to use: `wanted`, or current-context when that is NULL or "". */
int kubeconfig_context(const struct kubeconfig *k, const char *wanted, struct kubeconfig_entry *ret,
		       struct err *err);

/* The cluster or user that the context names; both have to exist. */
int kubeconfig_follow(const struct kubeconfig_entry *context, enum kubeconfig_list list,
		      struct kubeconfig_entry *ret, struct err *err);

/* -1 and ERR_INVALID "BadKubeconfig" with `kubeconfig FILE: user "NAME": ` before the text. */
int kubeconfig_bad(const struct kubeconfig_entry *e, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put the same in front of an error that a callee reported about a field. */
int kubeconfig_in(const struct kubeconfig_entry *e, const char *field, struct err *err);

/*
 * A string without control characters; NULL when absent, null or "". No value is ever quoted: it
 * may be a secret. `what` of errors: a string is wanted, or line breaks are not.
 */
int kubeconfig_str(const struct kubeconfig_entry *e, const char *field, const char **ret,
		   struct err *err);
int kubeconfig_bool(const struct kubeconfig_entry *e, const char *field, bool *ret,
		    struct err *err);

/*
 * ret gets the object as an entry, with body NULL when absent. `prefix` is what its fields are
 * called in messages.
 */
int kubeconfig_object(const struct kubeconfig_entry *e, const char *field, const char *prefix,
		      struct kubeconfig_entry *ret, struct err *err);

/* Absent: NULL. Otherwise an array of objects, or of strings. */
int kubeconfig_objects(const struct kubeconfig_entry *e, const char *field, const json_t **ret,
		       struct err *err);
int kubeconfig_strings(const struct kubeconfig_entry *e, const char *field, const json_t **ret,
		       struct err *err);

/*
 * A path of the file's own: relative ones start at the file's folder. Returns new, ready for
 * open(2); free().
 */
char *kubeconfig_path(const struct kubeconfig_entry *e, const char *path);

/*
 * PEM from `field` (a file) or `field`-data (base64); not both. *ret_pem is new, or NULL when
 * neither is given; *ret_file (may be NULL) is the file it came from, new, or NULL.
 */
int kubeconfig_pem(const struct kubeconfig_entry *e, const char *field, enum pem_kind kind,
		   char **ret_pem, char **ret_file, struct err *err);

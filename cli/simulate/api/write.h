// SPDX-License-Identifier: Apache-2.0
/* Create, update, patch and apply: from a request's body to a stored object. */
#pragma once

#include "cli/simulate/api/api_internal.h"
#include "cli/simulate/objects/patch.h"

enum write_verb {
	WRITE_CREATE,
	WRITE_UPDATE,
	WRITE_PATCH,
	WRITE_APPLY,
};

enum field_validation {
	FIELDS_IGNORED, /* unknown fields are dropped */
	FIELDS_STRICT,  /* they are refused */
};

/* What a request asks for. */
struct write_request {
	struct resource *resource; /* borrowed */
	enum write_verb verb;
	enum patch_type patch_type; /* of WRITE_PATCH */
	const char *ns;             /* "" for cluster-scoped kinds; copied */
	const char *name;           /* NULL: from the body; copied */
	const char *subresource;    /* "status", "scale", "finalize", NULL; static */
	json_t *body;               /* taken; an object, or the list of a JSON patch */
	const char *manager;        /* field manager; copied */
	const char *user;           /* copied */
	bool force;
	bool dry_run;
	enum field_validation fields;
};

/* The callee takes the outcome's object. May be called before write_begin returns. */
typedef void write_done_fn(void *arg, struct outcome outcome);

/*
 * Carry it out, webhooks included. An object that another request changes meanwhile is read again,
 * or the outcome is a Conflict where the request named a version.
 */
void write_begin(struct api *api, const struct write_request *request, write_done_fn *done,
		 void *arg);

// SPDX-License-Identifier: Apache-2.0
/*
 * The forms in which objects leave: as they are, in another group or version, as rows of a Table,
 * or their metadata alone.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cli/simulate/api/resources.h"
#include "cli/simulate/objects/table.h"
#include "lib/base/str.h"
#include "lib/http/server.h"

enum view_form {
	VIEW_OBJECT,
	VIEW_TABLE,
	VIEW_METADATA,
};

struct view {
	const struct resource *resource; /* borrowed */
	enum view_form form;
	enum table_objects objects; /* of a Table */
};

/*
 * What a request asks for in Accept and includeObject. False: nothing that we have (406); JSON is
 * all.
 */
bool view_of_request(const struct resource *resource, const struct http_request *req,
		     struct view *ret);

/* Append one object, or a Table with it alone. with_columns: of a Table. */
void view_object(const struct view *view, const struct blob *text, bool with_columns,
		 struct strbuf *out);
/* Append a list of n objects. metadata: of the list; borrowed. */
void view_list(const struct view *view, const struct store_entry *const *entries, size_t n,
	       json_t *metadata, struct strbuf *out);

/*
 * An object as it is stored to what a client of this resource sees, and back; in place. Only group,
 * version, and the members of an Event that have other names in events.k8s.io.
 */
void view_to_client(const struct resource *resource, json_t *object);
void view_from_client(const struct resource *resource, json_t *object);

// SPDX-License-Identifier: Apache-2.0
/*
 * AdmissionReviews as an API server sends them. A header of inline functions, so that any test can
 * include it.
 */
#pragma once

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

/* kind: an id of reconcilers/core/kinds.h. object and old may be NULL; borrowed. Returns new. */
static inline json_t *review_new(const char *kind, const char *operation, const json_t *object,
				 const json_t *old)
{
	const struct kind_info *info = kind_find(kind);
	const json_t *any = object ? object : old;
	json_t *review = json_object(), *request = json_need_object(review, "request");
	json_t *resource = json_need_object(request, "resource");

	json_put_str(review, "apiVersion", "admission.k8s.io/v1");
	json_put_str(review, "kind", "AdmissionReview");
	json_put_str(request, "uid", "8f1a");
	json_put_str(request, "operation", operation);
	json_put_str(request, "name", json_name(any));
	json_put_str(request, "namespace", info->namespaced ? json_namespace(any) : NULL);
	json_put_str(resource, "group", info->group);
	json_put_str(resource, "version", info->version);
	json_put_str(resource, "resource", info->id);
	json_object_set_new(request, "object", object ? json_deep_copy(object) : json_null());
	json_object_set_new(request, "oldObject", old ? json_deep_copy(old) : json_null());
	return review;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Admission: what is wrong with an object before it is stored, and its defaults.
 *
 * An early warning, not a pillar: the rules are those of the *_check functions, whose findings
 * otherwise become conditions, and a default is what reconcilers take for an absent field anyway.
 * So the cluster comes to the same state with and without webhooks.
 *
 * Never refused: deletes, status and scale, objects that are going away, changes of metadata alone,
 * and what was wrong before and was left as it was; all but the first three get warnings if
 * something is wrong. A refusal lists everything that is wrong.
 *
 * Source: Kubernetes API reference, admission.k8s.io/v1 AdmissionReview; JSON patch: RFC 6902.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

/* An AdmissionReview, read. Strings are borrowed from the review. */
struct admission_request {
	const char *uid;
	const char *operation;   /* "CREATE", "UPDATE", "DELETE", "CONNECT" */
	const char *subresource; /* "" for the object itself */
	const char *kind;        /* the id of reconcilers/core/kinds.h; NULL: none that we know */
	const char *ns;          /* "" for cluster-scoped ones */
	const char *name;        /* "" while the server has not made one from generateName */
	/*
	 * As sent, with metadata.namespace filled in from the request where it is absent; NULL when
	 * there is none. Owned.
	 */
	json_t *object;
	json_t *old;
};

/*
 * Errors: ERR_INVALID "BadReview": no admission.k8s.io/v1 AdmissionReview with a request that has a
 * uid; answer 400 to that.
 */
int admission_read(const json_t *review, struct admission_request *ret, struct err *err);
void admission_request_done(struct admission_request *request);
#define auto_admission_request auto_call(admission_request_done)

/*
 * The AdmissionReview that says whether the object may be stored. Returns new.
 *
 * World ("of the request" means of object and of old, each if there):
 *
 *	"env"                        "namespace": the operator's
 *	KIND_MULTUS_CONFIG requests  KIND_NAD: the one at "<ns>/<cni_nad_name>"; KIND_MULTUS_CONFIG:
 *                                   those that claim that name
 *	                             (CONFIG_BY_NAD); KIND_IP_POOL: all, or those whose names
 *	                             multus_config_pools visits
 *	KIND_IP_POOL requests        KIND_IP_POOL: what ip_pool_index_find finds for the object and
 *                                   for old
 *	KIND_SRIOV_NETWORK,
 *	KIND_SRIOV_IB_NETWORK,
 *	KIND_OVS_NETWORK requests    KIND_NAD: the one at the target key; KIND_NAMESPACE: the target
 *	all others                   nothing
 *
 * More does no harm; with less, fewer conflicts are found early.
 */
json_t *admission_validate(const json_t *world, const struct admission_request *request);

/*
 * The AdmissionReview that fills in defaults (SpiderMultusConfig, SpiderIPPool, SpiderReservedIP,
 * SpiderCoordinator, SriovNetworkNodePolicy; all others pass): those that Spiderpool's and the
 * SR-IOV network operator's webhooks store too and that mean the same as an absent field. Always
 * allows. Filling in twice changes nothing. Returns new.
 */
json_t *admission_default(const struct admission_request *request);

/* ---- building blocks, for reviews of other kinds (pod_inject.h) ------------------------------ */

struct problems;

/*
 * Allowed; patch (an array of RFC 6902 operations, or NULL) and warnings (may be NULL) are
 * borrowed. Returns new.
 */
json_t *admission_allow(const struct admission_request *request, const json_t *patch,
			const struct problems *warnings);

/* Refused with 422 Invalid, all problems as causes. Returns new. */
json_t *admission_refuse(const struct admission_request *request, const struct problems *problems,
			 const struct problems *warnings);

/*
 * The smallest patch from one value to another: members added, replaced, removed, also within the
 * elements of arrays; arrays of another length as a whole. Returns new, NULL: equal.
 */
json_t *admission_patch(const json_t *from, const json_t *to);

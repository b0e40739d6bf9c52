// SPDX-License-Identifier: Apache-2.0
/*
 * Pod injection: a pod that says `cni.spidernet.io/rdma-resource-inject: GROUP` gets all networks
 * of the group and the resources that they need. A pod that names networks itself gets the
 * resources that these need (network_resources.h), if the settings say so.
 *
 * A pod is in a group by the annotation cni.spidernet.io/rdma-resource-inject or, when neither it
 * nor its namespace has that one, by cni.spidernet.io/network-resource-inject; the pod's own
 * annotation counts before its namespace's. A SpiderMultusConfig is in a group by the same
 * annotation, else by a label of the same key and value; one that is going away is in none.
 *
 * A pod with a list of rails as its label orbweaver.io/rails (lib/base/rail_list.h) gets of its
 * group the networks of these rails, which the configs' annotation orbweaver.io/rail says, and
 * those of configs without the annotation. A rail that no config of the group has is a refusal,
 * unless none has any.
 *
 * What the pod gets:
 *
 * 	annotation k8s.v1.cni.cncf.io/networks the NetworkAttachmentDefinitions, after those that
 * 	the user wrote
 * 	spec.containers[0].resources.limits what they need, unless some container has a limit for
 * 	that resource already:
 * 	                                           one unit of a resource of VFs (sriov, ib-sriov)
 * 	                                           for each network, one unit of a
 * 	                                           resource of shared devices (macvlan, ipvlan,
 * 	                                           vlan) for all
 *
 * The order of networks, and so of net1, net2, … in the pod: by master (bond, resource for sriov),
 * then by namespace/name; as bytes.
 *
 * Source: github.com/spidernet-io/spiderpool, pkg/podmanager/utils.go; what we do otherwise is in
 * docs/spider.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "reconcilers/admission/admission.h"

/* ---- settings -------------------------------------------------------------------------------- */

/*
 * podResourceInject of the ConfigMap `spiderpool-conf`, key conf.yml (the name in users' clusters):
 *
 *	podResourceInject:
 *	  enabled: true
 *	  namespacesExclude: [kube-system, spiderpool, metallb-system, istio-system]
 *	  namespacesInclude: []          # empty: all
 *	  networkResources:
 *	    enabled: true
 *	    resourceNameKeys: [k8s.v1.cni.cncf.io/resourceName]
 *	    honorExistingResources: false
 *	    hugePageDownApi: false
 */
#define INJECT_CONFIG_MAP "spiderpool-conf"

/*
 * The ConfigMap of the network resources injector, key config.json, in the same namespace:
 *
 *	{ "features": { "enableHonorExistingResources": true, "enableHugePageDownApi": true },
 *	  "user-defined-injections": { LABEL: { "op": "add", "path": "/metadata/annotations",
 *	    "value": { ANNOTATION: VALUE } } } }
 *
 * A feature that it has overrules networkResources.
 */
#define INJECT_SWITCHES_CONFIG_MAP "nri-control-switches"
/* User-defined injections: the API server is given all their labels in one expression. */
#define INJECT_INJECTIONS_MAX 64

struct inject_settings {
	bool enabled;
	json_t *include; /* arrays of namespaces */
	json_t *exclude;
	/* networkResources */
	bool references;       /* enabled: for networks that pods name themselves */
	json_t *resource_keys; /* annotations of NetworkAttachmentDefinitions, an array */
	bool adds;             /* honorExistingResources */
	bool hugepages;        /* hugePageDownApi */
	/*
	 * From inject_switches_read; NULL: none. { "features": { name: bool }, "injections":
	 * { label: { annotation: value } } }. Owned.
	 */
	json_t *switches;
	json_t *environment; /* of pod_environment_templates(); NULL: none. Owned. */
};

/*
 * From the ConfigMap object; NULL, or one without podResourceInject, gives Spiderpool's defaults,
 * which are not enabled. Errors: ERR_INVALID "BadConfig", naming the field; *ret is untouched then,
 * so the last good settings stay. Free with inject_settings_done.
 */
int inject_settings_read(const json_t *config_map, struct inject_settings *ret, struct err *err);
void inject_settings_done(struct inject_settings *settings);

/*
 * The switches, from the ConfigMap object; NULL gives NULL. Returns 0, or -1 with err: ERR_INVALID
 * "BadConfig", naming the field; *ret is untouched then.
 */
int inject_switches_read(const json_t *config_map, json_t **ret, struct err *err);

/* adds and hugepages as the switches leave them. */
bool inject_settings_add(const struct inject_settings *settings);
bool inject_settings_hugepages(const struct inject_settings *settings);
#define auto_inject_settings auto_call(inject_settings_done)

/*
 * Are pods of the namespace looked at? Never those of kube-system and of own_ns, the operator's
 * own: nothing that the operator needs to start may wait for it.
 */
bool inject_settings_cover(const struct inject_settings *settings, const char *own_ns,
			   const char *ns);

/*
 * The same as a namespaceSelector for the webhook configuration (metav1.LabelSelector on
 * kubernetes.io/metadata.name, which servers of 1.21 and later set). Returns new.
 */
json_t *inject_settings_selector(const struct inject_settings *settings, const char *own_ns);

/* ---- groups ---------------------------------------------------------------------------------- */

/*
 * "KEY=VALUE" of the group that the pod asks for, with `namespace` (the object; may be NULL) for
 * its defaults; NULL when it asks for none. Returns new; free().
 */
char *pod_inject_group(const json_t *pod, const json_t *namespace);

/* Does the pod itself carry one of the annotations? Its namespace is not looked at. */
bool pod_inject_asks(const json_t *pod);

/* Is there something that the namespace asks for all of its pods: a group, or variables? */
bool pod_inject_asks_for_pods(const json_t *namespace);

/* Visit the groups ("KEY=VALUE") of a config: for an index of the cache. */
void pod_inject_groups(const json_t *config, void (*visit)(void *arg, const char *group),
		       void *arg);

/* ---- the review ------------------------------------------------------------------------------ */

/*
 * CREATE of a pod → AdmissionReview with a patch that adds the group's configs of the pod's
 * namespace and of trusted ones (trust.h), or a refusal when it asks for a group without configs,
 * for configs that cannot be injected, or has an annotation of networks that Multus could not read.
 * With settings->references the patch adds what the networks need that the pod names, too, and the
 * problems of network_resources_find are refusals. Variables that the pod asks for are added; what
 * is wrong with them is a warning. All other pods, and everything that is not a CREATE of a pod,
 * are allowed as they are. A second review of the patched pod gives no patch. Returns new.
 *
 * World: KIND_NAMESPACE: the pod's (request->ns); KIND_MULTUS_CONFIG: those in the group, or more;
 * KIND_NAD: those that network_resources_visit visits, if pod_inject_looks_at_networks;
 * what trust.h needs. Group and networks are
 * those of the pod after network_resources_annotated.
 */
json_t *pod_inject(const json_t *world, const struct inject_settings *settings,
		   const struct admission_request *request);

/*
 * Does pod_inject look at the NetworkAttachmentDefinitions that the pod (annotated) names?
 * `namespace`: the object, may be NULL.
 */
bool pod_inject_looks_at_networks(const struct inject_settings *settings, const json_t *pod,
				  const json_t *namespace);

/*
 * What the pod lacks of its group's networks and resources: a text for people, new; free(). NULL
 * when it lacks nothing, or does not ask. `config` (a key; NULL: any) narrows to the network of one
 * config. For inject_check.h.
 */
char *pod_inject_lacks(const json_t *world, const json_t *pod, const char *config);

/*
 * The pod asks for a group that had no configs when it came, for which a webhook would have refused
 * it, and has no networks: what is wrong and what to do, new; free(). *ret_came_later: the group
 * has configs now, and nothing is to be done but to make the pod again. Else NULL: one that has
 * networks may have got them of configs that are gone.
 */
char *pod_inject_no_configs(const json_t *world, const json_t *pod, bool *ret_came_later);

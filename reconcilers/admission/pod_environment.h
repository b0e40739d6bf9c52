// SPDX-License-Identifier: Apache-2.0
/*
 * Environment variables for jobs (NCCL, RCCL, UCX, Gloo): an administrator writes templates into
 * the ConfigMap INJECT_CONFIG_MAP, a pod or a namespace names one of them. What is only known on
 * the node (RDMA devices, GID indices) cannot be in a variable: docs/nccl.md.
 *
 *	data:
 *	  environment.yml: |
 *	    TEMPLATE:
 *	      NCCL_SOCKET_IFNAME: "={interfaces}"
 *
 * A value is text or an integer. In it {interfaces} becomes the names of the pod's interfaces with
 * commas between them, {interface} the first of them. A template is read from this ConfigMap only:
 * tenants name templates, and cannot bring any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct problems;

#define POD_ENVIRONMENT_KEY "environment.yml"
/* Annotation of a pod, label of a namespace: the name of a template. */
#define POD_ENVIRONMENT_NAME "orbweaver.io/environment"
/* Value of the annotation: nothing, whatever the namespace has. */
#define POD_ENVIRONMENT_NONE "none"

enum {
	/* Of all templates, as text. */
	POD_ENVIRONMENT_BYTES = 16 * 1024,
	POD_ENVIRONMENT_TEMPLATES = 32,
	/* Of one template. */
	POD_ENVIRONMENT_VARIABLES = 32,
	/* Of one value in the template. */
	POD_ENVIRONMENT_VALUE_BYTES = 1024,
	/* What all containers of a pod get, names and values together. */
	POD_ENVIRONMENT_POD_BYTES = 64 * 1024,
};

/*
 * The templates of the ConfigMap: { TEMPLATE: { "variables": { NAME: VALUE } } }, new; NULL: it has
 * none. A template with a fault is { "problem": TEXT }; when the text as a whole cannot be read,
 * the only one is "". A fault is one template's: the others can be used.
 */
json_t *pod_environment_templates(const json_t *config_map);

/* "data[environment.yml]: …" of the first template with a fault; NULL: none has. New; free(). */
char *pod_environment_problem(const json_t *templates);

/*
 * The template that the pod asks for: its annotation, else the label of its namespace (may be
 * NULL). NULL: none. Borrowed.
 */
const char *pod_environment_asked(const json_t *pod, const json_t *namespace);

/* Does the namespace ask for all of its pods? */
bool pod_environment_asks(const json_t *namespace);

/*
 * Add the variables of `name` to each container that does not have them; init containers get none.
 * `pod` is a copy as of pod_edit.h, with all of its networks, which are in `ns` where they do not
 * say; with_device: keys of the NetworkAttachmentDefinitions that need a device, { key: … }.
 * Interfaces are those of these networks, in the pod's order, or all where none needs a device.
 *
 * A variable stays out of a container that has one of that name, or an envFrom that may set it. The
 * pod stays as it is, with a warning, when the template does not exist or has a fault, when the pod
 * has the node's network, when its interfaces are asked for and it has none or one with a name that
 * a list cannot hold, or when there would be too much of it. Pods that ask through their namespace
 * and have no networks are left alone without a word.
 */
void pod_environment_add(json_t *pod, const char *name, const json_t *templates, const char *ns,
			 const json_t *with_device, struct problems *warnings);

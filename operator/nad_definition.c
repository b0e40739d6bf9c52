/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of NetworkAttachmentDefinition is text in this program, from crds/nad. The manager
 * asks for it when its informer finds the kind missing; a create request cannot overwrite anything,
 * so that a definition of Multus, however different, always wins.
 */
#include "operator/nad_definition.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"
#include "reconcilers/core/kinds.h"

/* As it is when this program is built. */
__asm__(".pushsection .rodata\n"
	"nad_definition_text: .incbin "
	"\"crds/nad/network-attachment-definitions.k8s.cni.cncf.io.yaml\"\n"
	".byte 0\n"
	".popsection\n");
extern const char nad_definition_text[] __attribute__((visibility("hidden")));

static const struct kube_resource definitions = {
	.group = "apiextensions.k8s.io",
	.version = "v1",
	.plural = "customresourcedefinitions",
	.kind = "CustomResourceDefinition",
};

struct nad_definition {
	struct kube_client *client;
	struct kube_call *call; /* in flight, or NULL */
	bool refused;           /* Forbidden was logged */
};

json_t *nad_definition_object(void)
{
	struct err err = {0};
	json_t *object = yaml_parse(nad_definition_text, strlen(nad_definition_text), &err);

	assert(object);
	return object;
}

static void on_created(void *arg, json_t *object, const struct err *err)
{
	struct nad_definition *definition = arg;

	definition->call = NULL;
	if (!err) {
		log_info("definition created", F_STR("name", json_name(object)));
	} else if (kube_err_is(err, "Forbidden")) {
		if (!definition->refused)
			log_error("cannot create the definition of NetworkAttachmentDefinition",
				  F_ERR(err), F_STR("remedy", "kubectl create -f crds/nad/"));
		definition->refused = true;
	} else if (!kube_err_is(err, "AlreadyExists") && !kube_err_is(err, "NotLeader")) {
		log_warn("cannot create the definition of NetworkAttachmentDefinition", F_ERR(err));
	}
}

void nad_definition_create(struct nad_definition *definition)
{
	static const struct kube_write how = {.field_manager = OPERATOR_NAME, .fenced = true};
	json_auto_t *object = NULL;

	if (definition->call)
		return;
	object = nad_definition_object();
	definition->call =
		kube_create(definition->client, &definitions, object, &how, on_created, definition);
}

struct nad_definition *nad_definition_new(struct kube_client *client)
{
	struct nad_definition *definition = mem_new(struct nad_definition);

	definition->client = client;
	return definition;
}

void nad_definition_free(struct nad_definition *definition)
{
	if (!definition)
		return;
	if (definition->call)
		kube_call_cancel(definition->call);
	mem_free(definition);
}

// SPDX-License-Identifier: Apache-2.0
/* Reading and comparing. See the header. */
#include "tests/support/recording.h"

#include <string.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/sriov_network.h"

/* ---- NodeStates ------------------------------------------------------------------------------ */

static bool same_flag(const json_t *selectors, const char *theirs, const json_t *group,
		      const char *ours)
{
	return json_is_true(json_at(selectors, theirs)) == json_is_true(json_at(group, ours));
}

/* A resource of the recorded plugin configuration says what our VF group says. */
static bool same_resource(const json_t *resource, const json_t *group)
{
	const json_t *selectors = json_at(resource, "selectors");

	return same_flag(selectors, "IsRdma", group, "isRdma") &&
	       same_flag(selectors, "NeedVhostNet", group, "needVhostNet") &&
	       same_flag(resource, "excludeTopology", group, "excludeTopology") &&
	       str_eq(json_str_or(json_at(selectors, "vdpaType"), ""),
		      json_str_or(json_at(group, "vdpaType"), ""));
}

/* The name of a resource that is configured in another way, or NULL. Borrowed. */
static const char *other_resource(const json_t *config, const json_t *group)
{
	const char *name = json_str_at(group, "resourceName");
	const json_t *resource = NULL;
	size_t i = 0;

	json_array_foreach (json_at(config, "resourceList"), i, resource) {
		if (str_eq(json_str_at(resource, "resourceName"), name) &&
		    !same_resource(resource, group))
			return name;
	}
	return NULL;
}

static char *different(const json_t *ours, const json_t *theirs)
{
	auto_free char *a = ours ? json_text(ours) : str_dup("nothing");
	auto_free char *b = theirs ? json_text(theirs) : str_dup("nothing");

	return str_printf("ours:     %s\nrecorded: %s\n", a, b);
}

char *recording_spec_difference(const json_t *recorded, const json_t *spec)
{
	json_auto_t *ours = spec ? json_deep_copy(spec) : NULL;
	const json_t *theirs = json_at(recorded, "nodestate_spec");
	json_t *interface = NULL, *group = NULL;
	size_t i = 0, k = 0;

	json_array_foreach (json_at(ours, "interfaces"), i, interface) {
		json_array_foreach (json_at(interface, "vfGroups"), k, group) {
			const char *name =
				other_resource(json_at(recorded, "device_plugin_config"), group);

			if (name)
				return str_printf("resource %s is not as in the recorded "
						  "configuration of the device plugin\n",
						  name);
			json_object_del(group, "policyNamespace");
			json_object_del(group, "needVhostNet");
			json_object_del(group, "excludeTopology");
		}
	}
	if (ours && theirs ? json_same(ours, theirs) : !ours && !theirs)
		return NULL;
	return different(ours, theirs);
}

/* ---- NetworkAttachmentDefinitions ------------------------------------------------------------ */

/* A NAD in the words of the recordings. Returns new. */
static json_t *recorded_form(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_t *annotations = json_deep_copy(json_at(nad, "metadata", "annotations"));
	const json_t *labels = json_at(nad, "metadata", "labels");
	struct err err = {0};
	json_t *form = json_object(), *config = json_parse(text, strlen(text), &err);

	/* Upstream sets it since it was recorded (reference 3.3). */
	json_object_del(annotations, SRIOV_NETWORK_OWNER);
	json_put_str(form, "namespace", json_namespace(nad));
	json_put(form, "annotations", annotations ? annotations : json_null());
	json_put(form, "labels", labels ? json_deep_copy(labels) : json_null());
	json_put(form, "config", config ? config : json_string(text));
	return form;
}

char *recording_nad_difference(const json_t *recorded, const json_t *nad)
{
	json_auto_t *ours = nad ? recorded_form(nad) : NULL;
	const json_t *theirs = json_at(recorded, "nad");

	if (ours && theirs ? json_same(ours, theirs) : !ours && !theirs)
		return NULL;
	return different(ours, theirs);
}

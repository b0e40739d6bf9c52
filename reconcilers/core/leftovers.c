// SPDX-License-Identifier: Apache-2.0
/* Findings on leftovers of the old stack; see leftovers.h. */
#include "reconcilers/core/leftovers.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

enum sort {
	PROGRAM,   /* counts while it has replicas */
	ELSEWHERE, /* counts outside our namespace */
	SETTINGS,  /* counts outside the settings' namespace */
	MISNAMED,  /* counts everywhere: the settings have another name */
	OWNED,     /* counts where the SR-IOV network operator has made it */
	OBJECT,
};

#define RUNS_POLICIES                                                                              \
	"this device plugin offers what our agent offers: delete this DaemonSet once the "         \
	"NodeStates say Succeeded"
#define RUNS_LISTED                                                                                \
	"this device plugin offers what our agent offers: delete this DaemonSet once "             \
	"status.resources of the NodeStates has its resources"

static const struct {
	const char *id;
	enum sort sort;
	const char *message; /* with %s for our namespace, or for the settings' one */
} leftovers[] = {
	{LEFTOVER_SRIOV_OPERATOR, PROGRAM,
	 "the SR-IOV network operator runs beside us, and both write NodeStates and "
	 "NetworkAttachmentDefinitions: scale it to 0 (kubectl scale --replicas=0)"},
	{LEFTOVER_SPIDER_SRIOV, PROGRAM,
	 "the SR-IOV network operator of Spiderpool's chart runs beside us, and both write "
	 "NodeStates and NetworkAttachmentDefinitions: scale it to 0 (kubectl scale "
	 "--replicas=0)"},
	{LEFTOVER_SPIDER_OPERATOR, PROGRAM,
	 "Spiderpool's controller runs beside us, and both write NetworkAttachmentDefinitions: "
	 "scale it to 0 (kubectl scale --replicas=0)"},
	{LEFTOVER_CONFIG_DAEMON, PROGRAM,
	 "the SR-IOV config daemon runs beside our agent, and both configure the same NICs: delete "
	 "this DaemonSet"},
	{LEFTOVER_SRIOV_PLUGIN, PROGRAM, RUNS_POLICIES},
	{LEFTOVER_LONE_SRIOV, PROGRAM, RUNS_LISTED},
	{LEFTOVER_LONE_SRIOV_AMD64, PROGRAM, RUNS_LISTED},
	{LEFTOVER_SHARED_PLUGIN, PROGRAM, RUNS_LISTED},
	{LEFTOVER_LONE_SHARED, PROGRAM, RUNS_LISTED},
	{LEFTOVER_SHARED_CONFIG, ELSEWHERE,
	 "agents read the ConfigMap of this name in namespace %s, not this one, unless their flag "
	 "--shared-config says otherwise: copy it there, or delete it"},
	{LEFTOVER_RDMA_DEVICES, ELSEWHERE,
	 "nobody reads this configuration of shared RDMA devices: copy its config.json to the "
	 "ConfigMap spiderpool-rdma-shared-device-plugin in namespace %s, or delete it"},
	{LEFTOVER_RESOURCE_LIST, ELSEWHERE,
	 "agents read a resourceList only if their flag --device-config names it: copy this "
	 "ConfigMap to namespace %s and set the flag to its name, or make policies of it, and "
	 "delete it"},
	{LEFTOVER_MADE_LIST, OWNED,
	 "agents offer the resources of policies themselves, and only the SR-IOV network "
	 "operator's device plugin reads this: delete it once that is gone"},
	{LEFTOVER_DEVICE_FILES, ELSEWHERE,
	 "agents read the ConfigMap of this name in namespace %s, not this one, unless their flag "
	 "--dev-files says otherwise: copy it there, or delete it"},
	{LEFTOVER_SETTINGS, SETTINGS,
	 "operator and agents read the ConfigMap of this name in namespace %s, not this one: put "
	 "what it should say into the one there, and delete it"},
	{LEFTOVER_MISNAMED, MISNAMED,
	 "nobody reads a ConfigMap of this name, settings are in the ConfigMap spiderpool-conf in "
	 "namespace %s: put what it should say there, under the key conf.yml, and delete it"},
	{LEFTOVER_SRIOV_CONFIG, OBJECT,
	 "only spec.disableDrain is read, other settings are flags of the operator and the agent; "
	 "delete it with --cascade=orphan, or its owner references take the NodeStates along"},
	{LEFTOVER_SUBNET, OBJECT,
	 "nobody reads SpiderSubnets: make SpiderIPPools of it, and delete it"},
};

/* NVIDIA's GPU operator has ConfigMaps of that name, too. */
static bool is_of_sriov_operator(const json_t *object)
{
	const json_t *owner;
	size_t i;

	json_array_foreach (json_at(object, "metadata", "ownerReferences"), i, owner)
		if (str_starts(json_str_or(json_at(owner, "apiVersion"), ""),
			       "sriovnetwork.openshift.io/"))
			return true;
	return false;
}

/* Where the objects belong that are elsewhere. */
static const char *home_of(enum sort sort, const json_t *world)
{
	return world_env(world,
			 sort == SETTINGS || sort == MISNAMED ? "configNamespace" : "namespace");
}

static bool counts(enum sort sort, const json_t *world, const json_t *object)
{
	switch (sort) {
	case PROGRAM:
		return json_integer_value(json_at(object, "status", "replicas")) > 0;
	case ELSEWHERE:
	case SETTINGS:
		return !str_eq(json_namespace(object), home_of(sort, world));
	case OWNED:
		return is_of_sriov_operator(object);
	case MISNAMED:
	case OBJECT:
		return true;
	}
	return false;
}

/* The agents read it, and what is wrong with it is said elsewhere (sriov/shared_offers.h). */
static bool is_in_use(const json_t *world, const char *id, const char *key)
{
	const char *ns = world_env(world, "namespace");

	return str_eq(id, LEFTOVER_SHARED_CONFIG) && str_starts(key, ns) && key[strlen(ns)] == '/';
}

int leftover_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const char *space = strchr(key, ' ');

	for (size_t i = 0; space && i < ARRAY_LEN(leftovers); i++) {
		const char *id = leftovers[i].id;
		const json_t *object = NULL;
		auto_strbuf struct strbuf message = {0};
		const char *gap = strstr(leftovers[i].message, "%s");

		if (strlen(id) != (size_t)(space - key) || !str_starts(key, id))
			continue;
		if (is_in_use(world, id, space + 1))
			return 0;
		object = world_get(world, id, space + 1);
		if (!object || !counts(leftovers[i].sort, world, object)) {
			plan_finding(plan, id, space + 1, NULL, NULL);
			return 0;
		}
		if (gap) {
			strbuf_add(&message, leftovers[i].message,
				   (size_t)(gap - leftovers[i].message));
			strbuf_adds(&message, home_of(leftovers[i].sort, world));
			strbuf_adds(&message, gap + 2);
		} else {
			strbuf_adds(&message, leftovers[i].message);
		}
		plan_finding(plan, id, space + 1,
			     leftovers[i].sort == PROGRAM ? "OldProgramRuns" : "NotRead",
			     strbuf_str(&message));
		return 0;
	}
	return err_set(err, ERR_BUG, "BadKey", "\"%s\" is no leftover", key);
}

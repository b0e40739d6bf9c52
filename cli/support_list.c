// SPDX-License-Identifier: Apache-2.0
/*
 * The operator's table of kinds and one of our own are merged and sorted by resource, so that the
 * order of a dump does not change. Names of files follow from the resource, for writing and for
 * reading.
 */
#include "cli/support_list.h"

#include <assert.h>

#include "lib/base/str.h"
#include "operator/cache/kinds.h"

#define CONFIG_MAP                                                                                 \
	{                                                                                          \
		"", "v1", "configmaps", "ConfigMap", true                                          \
	}

static const struct support_selection more[] = {
	/* Of the agents, and what the operator's manifest reads. */
	{CONFIG_MAP, "sriovdp-config"},
	{CONFIG_MAP, "smarter-device-manager"},
	{CONFIG_MAP, "orbweaver-operator"},
	{CONFIG_MAP, "orbweaver-operator-metrics"},
	/* Of commands: plan, ipam. */
	{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}, NULL},
	{{"apps", "v1", "statefulsets", "StatefulSet", true}, NULL},
	{{"kubevirt.io", "v1", "virtualmachines", "VirtualMachine", true}, NULL},
	{{"kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", true}, NULL},
	/* Whether we are there, and what was said. */
	{{"apps", "v1", "deployments", "Deployment", true}, OPERATOR_NAME},
	{{"apps", "v1", "daemonsets", "DaemonSet", true}, AGENT_NAME},
	{{"coordination.k8s.io", "v1", "leases", "Lease", true}, OPERATOR_NAME},
	{{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
	  false},
	 NULL},
	{{"", "v1", "events", "Event", true}, NULL},
};

bool support_same_resource(const struct kube_resource *a, const struct kube_resource *b)
{
	return str_eq(a->group, b->group) && str_eq(a->plural, b->plural);
}

/* What a row of the operator's table shows; all of it, where it selects by more than a name. */
static struct support_selection selection_of(const struct operator_kind *row)
{
	const struct kind_info *info = kind_find(row->kind);
	struct support_selection selection = {row->resource, row->name};

	if (info)
		selection.resource = (struct kube_resource){info->group, info->version, info->id,
							    info->kind, info->namespaced};
	return selection;
}

/* Put it behind those of its resource, or in place of them when it asks for all. */
static size_t add(struct support_selection *list, size_t n, const struct support_selection *one)
{
	size_t at = n, kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!support_same_resource(&list[i].resource, &one->resource))
			continue;
		at = i + 1;
		if (!list[i].name || str_eq(list[i].name, one->name))
			return n;
	}
	if (!one->name) {
		for (size_t i = 0; i < n; i++)
			if (!support_same_resource(&list[i].resource, &one->resource))
				list[kept++] = list[i];
		n = at = kept;
	}
	assert(n < SUPPORT_SELECTIONS_MAX);
	for (size_t i = n; i > at; i--)
		list[i] = list[i - 1];
	list[at] = *one;
	return n + 1;
}

size_t support_list_mirrored(struct support_selection *ret)
{
	size_t n = 0;

	for (const struct operator_kind *row = operator_kinds; row->kind; row++) {
		struct support_selection selection = selection_of(row);

		if (!str_eq(selection.resource.plural, "secrets"))
			n = add(ret, n, &selection);
	}
	return n;
}

size_t support_list(struct support_selection *ret)
{
	size_t n = support_list_mirrored(ret);

	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		n = add(ret, n, &more[i]);
	return n;
}

char *support_resource_name(const struct kube_resource *resource)
{
	return str_printf("%s%s%s", resource->plural, *resource->group ? "." : "", resource->group);
}

char *support_file_name(const struct kube_resource *resource)
{
	auto_free char *name = support_resource_name(resource);

	return str_printf("objects/%s.json", name);
}

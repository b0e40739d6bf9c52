// SPDX-License-Identifier: Apache-2.0
/* SpiderCoordinator → status; see coordinator.h. */
#include "reconcilers/spider/coordinator.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/problems.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ip_range.h"
#include "reconcilers/spider/coordinator_settings.h"

#define CONFIG_MAPS    "configmaps"
#define PODS           "pods"
#define SERVICES       "services"
#define API_SERVICE    "default/kubernetes"
#define SERVICE_CIDRS  "servicecidrs"
#define CALICO_POOLS   "ippools"
#define CILIUM_POOLS   "ciliumpodippools"
#define KUBEADM_CONFIG "kube-system/kubeadm-config"
#define CILIUM_CONFIG  COORDINATOR_CILIUM_CONFIG
#define FLANNEL_CONFIG "kube-flannel/kube-flannel-cfg"

/* CIDRs that a setting of the cluster lists: in canonical text, and those that cannot be parsed. */
struct cidrs {
	json_t *list;
	json_t *unreadable;
};

static struct cidrs cidrs_empty(void)
{
	return (struct cidrs){.list = json_array(), .unreadable = json_array()};
}

static void cidrs_done(struct cidrs *cidrs)
{
	json_decref(cidrs->list);
	json_decref(cidrs->unreadable);
}

static void add_cidr(struct cidrs *cidrs, const char *text)
{
	char network[IP_SUBNET_TEXT_SIZE];
	struct ip_subnet subnet;

	if (!text)
		return;
	if (ip_subnet_parse(text, &subnet, NULL)) {
		json_array_append_new(cidrs->unreadable, json_string(text));
		return;
	}
	ip_subnet_print(&subnet, network);
	json_array_append_new(cidrs->list, json_string(network));
}

/* "10.0.0.0/8, fd00::/48", "10.0.0.0/8 10.9.0.0/16": Cilium's chart joins lists with blanks. */
static void add_cidrs(struct cidrs *cidrs, const char *text)
{
	auto_free char *copy = str_dup(text);
	char *rest = copy, *word;

	while (rest && (word = strsep(&rest, ", \t\r\n")))
		if (*word)
			add_cidr(cidrs, word);
}

static void add_cidr_list(struct cidrs *cidrs, const json_t *texts)
{
	json_t *text;
	size_t i;

	json_array_foreach (texts, i, text)
		add_cidr(cidrs, json_string_value(text));
}

static void cidrs_extend(struct cidrs *cidrs, const struct cidrs *others)
{
	json_array_extend(cidrs->list, others->list);
	json_array_extend(cidrs->unreadable, others->unreadable);
}

/* The networks that the cluster's own components are set up with. */
struct cluster {
	struct cidrs pods;
	struct cidrs services;
};

static void cluster_done(struct cluster *cluster)
{
	cidrs_done(&cluster->pods);
	cidrs_done(&cluster->services);
}

static void read_kubeadm(const json_t *world, struct cluster *cluster)
{
	const char *text = json_str_or(json_at(world_get(world, CONFIG_MAPS, KUBEADM_CONFIG),
					       "data", "ClusterConfiguration"),
				       "");
	json_auto_t *config = yaml_parse(text, strlen(text), NULL);

	add_cidrs(&cluster->pods, json_str_at(config, "networking", "podSubnet"));
	add_cidrs(&cluster->services, json_str_at(config, "networking", "serviceSubnet"));
}

/* The value of "--flag=value", or of "--flag" "value"; NULL: the argument is another. Borrowed. */
static const char *value_of(const json_t *arguments, size_t i, const char *flag)
{
	const char *text = json_str_or(json_array_get(arguments, i), "");
	size_t len = strlen(flag);

	if (str_eq(text, flag))
		return json_string_value(json_array_get(arguments, i + 1));
	return str_starts(text, flag) && text[len] == '=' ? text + len + 1 : NULL;
}

static void read_arguments(const json_t *arguments, struct cluster *cluster)
{
	for (size_t i = 0; i < json_array_size(arguments); i++) {
		const char *pods = value_of(arguments, i, "--cluster-cidr");
		const char *services = value_of(arguments, i, "--service-cluster-ip-range");

		if (pods && json_array_size(cluster->pods.list) == 0)
			add_cidrs(&cluster->pods, pods);
		if (services && json_array_size(cluster->services.list) == 0)
			add_cidrs(&cluster->services, services);
	}
}

/*
 * Of several pods of a component any will do; the one with the first key, so that the answer stays
 * the same.
 */
static void read_component(const json_t *world, const char *component, struct cluster *cluster)
{
	const char *key, *first = NULL;
	const json_t *container;
	json_t *pod;

	json_each (world_kind(world, PODS), key, pod)
		if (str_eq(json_str_at(pod, "metadata", "labels", "component"), component) &&
		    (!first || strcmp(key, first) < 0))
			first = key;
	if (!first)
		return;
	container = json_array_get(json_at(world_get(world, PODS, first), "spec", "containers"), 0);
	read_arguments(json_at(container, "command"), cluster);
	read_arguments(json_at(container, "args"), cluster);
}

/* The live objects of a kind, by creation. Returns a new array of borrowed references. */
static json_t *by_age(const json_t *objects)
{
	json_t *sorted = json_array();
	const char *key;
	json_t *object;

	json_each (objects, key, object) {
		size_t i = 0;

		if (object_is_terminating(object))
			continue;
		while (i < json_array_size(sorted) &&
		       object_precedes(json_array_get(sorted, i), object))
			i++;
		json_array_insert(sorted, i, object);
	}
	return sorted;
}

static struct cluster read_cluster(const json_t *world)
{
	struct cluster cluster = {.pods = cidrs_empty(), .services = cidrs_empty()};
	json_auto_t *sorted = by_age(world_kind(world, SERVICE_CIDRS));
	json_t *object;
	size_t i;

	json_array_foreach (sorted, i, object)
		add_cidr_list(&cluster.services, json_at(object, "spec", "cidrs"));
	/* The server obeys ServiceCIDR objects; kubeadm's text is only its set-up. */
	if (json_array_size(cluster.services.list)) {
		struct cluster rest = {.pods = cluster.pods, .services = cidrs_empty()};

		read_kubeadm(world, &rest);
		cidrs_done(&rest.services);
	} else {
		read_kubeadm(world, &cluster);
	}
	/* The API server hands the addresses of services out, the other one those of pods. */
	read_component(world, COMPONENT_API_SERVER, &cluster);
	read_component(world, COMPONENT_CONTROLLER_MANAGER, &cluster);
	return cluster;
}

/* The key of Cilium's ConfigMap, there or not. */
static const char *cilium_key(const json_t *world)
{
	const char *told = world_env(world, "ciliumConfigMap");

	return *told ? told : CILIUM_CONFIG;
}

static void cilium_cidrs(const json_t *world, const struct cluster *cluster, struct cidrs *cidrs,
			 struct problems *problems)
{
	const json_t *config = json_at(world_get(world, CONFIG_MAPS, cilium_key(world)), "data");
	const char *ipam = json_str_or(json_at(config, "ipam"), "");

	if (str_eq(ipam, "cluster-pool") || str_eq(ipam, "cluster-pool-v2beta")) {
		add_cidrs(cidrs, json_str_at(config, "cluster-pool-ipv4-cidr"));
		add_cidrs(cidrs, json_str_at(config, "cluster-pool-ipv6-cidr"));
	} else if (str_eq(ipam, "multi-pool")) {
		json_auto_t *sorted = by_age(world_kind(world, CILIUM_POOLS));
		json_t *pool;
		size_t i;

		json_array_foreach (sorted, i, pool) {
			add_cidr_list(cidrs, json_at(pool, "spec", "ipv4", "cidrs"));
			add_cidr_list(cidrs, json_at(pool, "spec", "ipv6", "cidrs"));
		}
	} else if (str_eq(ipam, "kubernetes")) {
		cidrs_extend(cidrs, &cluster->pods);
	} else if (!config) {
		problem_add(problems, "NoCiliumConfig", "spec.podCIDRType",
			    "is cilium, but there is no ConfigMap %s: set podCIDRType to what the "
			    "cluster runs",
			    cilium_key(world));
	} else {
		problem_add(problems, "NotSupported", "spec.podCIDRType",
			    "is cilium, but its ipam mode \"%.64s\" is not one of cluster-pool, "
			    "multi-pool, kubernetes: set podCIDRType to none and list the networks "
			    "in spec.hijackCIDR",
			    ipam);
	}
}

/* What auto means here; NULL when the cluster shows two networks at once. */
static const char *detect_type(const json_t *world)
{
	bool has_cilium = world_get(world, CONFIG_MAPS, cilium_key(world)) != NULL;
	bool has_calico = json_object_size(world_kind(world, CALICO_POOLS)) > 0;

	if (has_cilium && has_calico)
		return NULL;
	if (has_cilium)
		return "cilium";
	if (has_calico)
		return "calico";
	return world_get(world, CONFIG_MAPS, FLANNEL_CONFIG) ? "cluster" : "none";
}

/* Add the pods' networks; a problem where they cannot be found or parsed. */
static void overlay_cidrs(const json_t *world, const json_t *spec, const struct cluster *cluster,
			  struct cidrs *cidrs, struct problems *problems)
{
	const char *type = json_str_or(json_at(spec, "podCIDRType"), "auto");

	if (str_eq(type, "auto"))
		type = detect_type(world);
	if (!type) {
		problem_add(problems, "Ambiguous", "spec.podCIDRType",
			    "is auto, but the cluster has both Calico's pools and Cilium's "
			    "ConfigMap: set it to calico or cilium");
		return;
	}
	if (str_eq(type, "none"))
		return;
	if (str_eq(type, "calico")) {
		json_auto_t *sorted = by_age(world_kind(world, CALICO_POOLS));
		json_t *pool;
		size_t i;

		/*
		 * A disabled pool gives no new addresses; pods still have those that it gave
		 * before.
		 */
		json_array_foreach (sorted, i, pool)
			add_cidr(cidrs, json_str_at(pool, "spec", "cidr"));
	} else if (str_eq(type, "cilium")) {
		cilium_cidrs(world, cluster, cidrs, problems);
	} else {
		cidrs_extend(cidrs, &cluster->pods);
	}
	if (json_array_size(cidrs->unreadable))
		problem_add(problems, "BadPodCIDR", "spec.podCIDRType",
			    "means %s, which lists \"%.64s\": this is not a network as in "
			    "10.244.0.0/16; correct it there, or set podCIDRType to none and list "
			    "the networks in spec.hijackCIDR",
			    type, json_string_value(json_array_get(cidrs->unreadable, 0)));
	else if (json_array_size(cidrs->list) == 0 && problems->total == 0)
		problem_add(problems, "NoPodCIDR", "spec.podCIDRType",
			    "means %s, but no network of pods is to be found that way: set "
			    "podCIDRType to none and list the networks in spec.hijackCIDR",
			    type);
}

/* That auto found no network plugin is not proof that pods need no route to each other. */
static void warn_of_none(const json_t *world, const json_t *spec, const struct cluster *cluster,
			 struct problems *warnings)
{
	const char *type = json_str_or(json_at(spec, "podCIDRType"), "auto");
	const char *found = str_eq(type, "auto") ? detect_type(world) : NULL;
	json_auto_t *left = json_array(); /* pods' networks that spec.hijackCIDR lacks, in order */
	json_t *network;
	size_t i;

	json_array_foreach (cluster->pods.list, i, network) {
		struct cidrs hijacked = cidrs_empty();

		add_cidr_list(&hijacked, json_at(spec, "hijackCIDR"));
		if (!json_list_has(hijacked.list, json_string_value(network)))
			json_array_append(left, network);
		cidrs_done(&hijacked);
	}
	if (!str_eq(found, "none") ||
	    (json_array_size(left) == 0 && json_array_size(cluster->pods.list)))
		return;
	problem_add(
		warnings, "NoNetworkPlugin", "spec.podCIDRType",
		"is auto, and no network plugin is found: there are neither pools of Calico, nor "
		"ConfigMap %s of Cilium (the operator's flag --cilium-config-map names another), "
		"nor ConfigMap " FLANNEL_CONFIG
		"%s%s%s: set it to what the cluster runs (cluster: the networks that kubeadm or "
		"the controller manager was told), or to none if pods need no route to it",
		cilium_key(world),
		json_array_size(left) ? "; pods with a coordinator do not reach the pods' network "
				      : "",
		json_str_or(json_array_get(left, 0), ""), json_array_size(left) ? " by eth0" : "");
}

/* ---- services that nobody tells of ----------------------------------------------------------- */

/* An address of the Service default/kubernetes, the first in its network. NULL: not known. */
static const char *api_address(const json_t *world)
{
	const char *text =
		json_str_at(world_get(world, SERVICES, API_SERVICE), "spec", "clusterIP");
	enum ip_family family;
	ip_number address;

	return text && ip_parse_any(text, &family, &address, NULL) == 0 ? text : NULL;
}

/* Are services in spec.hijackCIDR, as they are asked to be? */
static bool are_hijacked(const json_t *spec, const char *address)
{
	enum ip_family family;
	ip_number number;
	json_t *cidr;
	size_t i;

	if (!address || ip_parse_any(address, &family, &number, NULL))
		return false;
	json_array_foreach (json_at(spec, "hijackCIDR"), i, cidr) {
		struct ip_subnet subnet;

		if (ip_subnet_parse(json_str_or(cidr, ""), &subnet, NULL) == 0 &&
		    subnet.family == family && ip_range_has(subnet.range, number))
			return true;
	}
	return false;
}

static void plan_coordinator_status(const json_t *world, const char *key, const json_t *object,
				    json_t *overlay, const struct cluster *cluster,
				    const struct problems *problems, struct plan *plan)
{
	json_t *services = json_incref(cluster->services.list);
	const json_t *previous = json_at(object, "status", "conditions");
	const char *now = world_env(world, "now");
	int64_t generation = json_generation(object);
	bool is_ready = problems->total == 0;
	auto_problems struct problems warnings = {0};
	const char *address = api_address(world);
	auto_free char *text = problems_text(problems);
	json_t *conditions = json_array();
	json_t *status = json_object();

	warn_of_none(world, json_at(object, "spec"), cluster, &warnings);
	if (json_array_size(services) == 0 && !are_hijacked(json_at(object, "spec"), address))
		problem_add(&warnings, "NoServiceCIDR", "status.serviceCIDR",
			    "no network of services is to be found (ServiceCIDR objects, "
			    "kubeadm-config, pods " COMPONENT_API_SERVER
			    " and " COMPONENT_CONTROLLER_MANAGER
			    "): add the API server's --service-cluster-ip-range to "
			    "spec.hijackCIDR%s%s%s",
			    address ? "; it is the one with " : "", address ? address : "",
			    address ? ", the address of the Service " API_SERVICE : "");
	conditions_judge(
		conditions, previous,
		&(struct judgement){
			.ready = is_ready ? CONDITION_TRUE : CONDITION_FALSE,
			.reason = is_ready ? "Synced" : problems_reason(problems),
			.message = is_ready ? "pods get the networks of this cluster" : text,
			.warnings = &warnings,
		},
		generation, now);
	conditions_emit(plan, KIND_COORDINATOR, key, previous, conditions);
	json_put_str(status, "phase", is_ready ? "Synced" : "NotReady");
	json_put_str(status, "reason", text);
	json_put(status, "overlayPodCIDR", overlay);
	json_put(status, "serviceCIDR", services);
	json_put(status, "conditions", conditions);
	json_put_int(status, "observedGeneration", generation);
	plan_status(plan, KIND_COORDINATOR, key, status);
}

/* Helm makes such objects after the operator's Deployment, and fails if they exist by then. */
static void plan_default(const json_t *world, struct plan *plan)
{
	const json_t *since = world_get(world, COORDINATOR_BOX_ABSENT, COORDINATOR_DEFAULT);
	json_int_t now_ms = json_integer_value(json_at(world, "env", "nowMs"));
	json_int_t waited_ms = now_ms - json_integer_value(since);

	if (!since || waited_ms < 0) {
		plan_post(plan, COORDINATOR_BOX_ABSENT, COORDINATOR_DEFAULT, json_integer(now_ms));
		plan_requeue(plan, COORDINATOR_ABSENT_MS);
	} else if (waited_ms < COORDINATOR_ABSENT_MS) {
		plan_requeue(plan, COORDINATOR_ABSENT_MS - waited_ms);
	} else {
		plan_apply(plan, KIND_COORDINATOR,
			   json_pack("{s:{s:s}, s:{s:s, s:s, s:b, s:[s]}}", "metadata", "name",
				     COORDINATOR_DEFAULT, "spec", "mode", "auto", "podCIDRType",
				     "auto", "tunePodRoutes", 1, "hijackCIDR", "169.254.0.0/16"));
	}
}

int coordinator_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *object = world_get(world, KIND_COORDINATOR, key);
	const json_t *spec = json_at(object, "spec");
	auto_call(cluster_done) struct cluster cluster = {0};
	auto_problems struct problems problems = {0};
	auto_call(cidrs_done) struct cidrs overlay = {0};

	if (!object) {
		if (str_eq(key, COORDINATOR_DEFAULT))
			plan_default(world, plan);
		return 0;
	}
	if (world_get(world, COORDINATOR_BOX_ABSENT, key))
		plan_post(plan, COORDINATOR_BOX_ABSENT, key, NULL);
	if (object_is_terminating(object)) {
		/* Spiderpool's webhook put it there, and no program took it off. */
		plan_release(plan, KIND_COORDINATOR, key, object, IP_POOL_FINALIZER);
		return 0;
	}
	coordinator_spec_check(spec, "spec", &problems);
	if (!str_eq(key, COORDINATOR_DEFAULT))
		problem_add(&problems, "NotUsed", "metadata.name",
			    "is %s: pods use the SpiderCoordinator named " COORDINATOR_DEFAULT
			    " only, put these settings there",
			    key);
	cluster = read_cluster(world);
	overlay = cidrs_empty();
	if (problems.total == 0)
		overlay_cidrs(world, spec, &cluster, &overlay, &problems);
	if (problems.total)
		json_array_clear(overlay.list);
	plan_coordinator_status(world, key, object, json_incref(overlay.list), &cluster, &problems,
				plan);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The annotations become elements, elements become delegates one by one, each with the next free
 * device of its resource; checks over all of them come last, before any plugin runs. The agent asks
 * meta_wanted() and sends these definitions; meta_call.c builds the delegates from them.
 */
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/cni_args.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/devices.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "reconcilers/core/networks.h"

#define CNI_DEVINFO_DIR "/var/run/k8s.cni.cncf.io/devinfo/cni"
#define DP_DEVINFO_DIR  "/var/run/k8s.cni.cncf.io/devinfo/dp"
#define CONFIG_SOURCE   "kubernetes.io/config.source"

/* ---- what the annotations ask for ------------------------------------------------------------ */

static const char *annotation(const json_t *object, const char *name)
{
	return json_str_or(json_at(object, "metadata", "annotations", name), "");
}

static const char *multus_namespace(const json_t *config)
{
	const char *ns = json_str_at(config, "multusNamespace");

	return str_empty(ns) ? META_DEFAULT_NAMESPACE : ns;
}

/* Names of networks that this pod has besides the cluster's; NULL: none. Borrowed. */
static const json_t *default_networks(const json_t *config, const json_t *pod)
{
	const json_t *systems = json_at(config, "systemNamespaces");
	const char *ns = json_namespace(pod);
	bool is_system = json_is_array(systems) ? json_list_has(systems, ns)
						: str_eq(ns, META_DEFAULT_NAMESPACE);

	return pod && !is_system ? json_at(config, "defaultNetworks") : NULL;
}

/* Networks that every pod has: the annotation's are numbered behind them. */
static size_t base_networks(const json_t *config, const json_t *pod)
{
	size_t n = json_array_size(json_at(config, "delegates"));

	return (n > 0 ? n : 1) + json_array_size(default_networks(config, pod));
}

static bool is_global(const json_t *config, const char *ns)
{
	auto_free char *list = str_dup(json_str_or(json_at(config, "globalNamespaces"), "default"));
	char *rest = list, *item;

	while ((item = strsep(&rest, ",")))
		if (str_eq(str_trim(item), ns))
			return true;
	return false;
}

/* An address, or one with a prefix. */
static bool is_ip(const char *text)
{
	char address[INET6_ADDRSTRLEN] = "";
	unsigned char bytes[sizeof(struct in6_addr)];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	int64_t prefix = 0;
	bool v6 = memchr(text, ':', len);

	if (len >= sizeof(address))
		return false;
	memcpy(address, text, len);
	address[len] = '\0';
	return inet_pton(v6 ? AF_INET6 : AF_INET, address, bytes) == 1 &&
	       (!slash || str_to_int(slash + 1, 0, v6 ? 128 : 32, &prefix));
}

static int check_ips(const json_t *element, size_t position, struct err *err)
{
	const json_t *ips = json_at(element, "ips");
	json_t *ip;
	size_t i;

	json_array_foreach (ips, i, ip)
		if (!is_ip(json_str_or(ip, "")))
			return err_set(err, ERR_INVALID, "BadNetworks",
				       "network %zu: ips[%zu] must be an address, or one with its "
				       "prefix as in 10.1.0.9/24",
				       position, i);
	return 0;
}

/* The elements of one annotation, checked; an empty array when the pod has none. */
static json_t *elements_of(const json_t *pod, const char *name, const char *ns, size_t first,
			   struct err *err)
{
	json_auto_t *elements = networks_parse_from(annotation(pod, name), ns, first, err);
	json_t *element;
	size_t i;

	if (!elements) {
		err_in(err, "annotation %s", name);
		return NULL;
	}
	json_array_foreach (elements, i, element)
		if (check_ips(element, i + 1, err) < 0) {
			err_in(err, "annotation %s", name);
			return NULL;
		}
	return json_incref(elements);
}

static json_t *asked_for(const json_t *config, const json_t *pod, struct err *err)
{
	json_auto_t *elements = elements_of(pod, NETWORKS_ANNOTATION, json_namespace(pod),
					    base_networks(config, pod), err);
	json_t *element;
	size_t i;

	json_array_foreach (elements, i, element) {
		const char *ns = json_str_at(element, "namespace");

		if (json_is_true(json_at(config, "namespaceIsolation")) &&
		    !str_eq(ns, json_namespace(pod)) && !is_global(config, ns)) {
			err_set(err, ERR_INVALID, "NamespaceIsolated",
				"network %.64s/%.64s belongs to another namespace, which this "
				"cluster does not allow; use one of namespace %.64s",
				ns, json_str_at(element, "name"), json_namespace(pod));
			return NULL;
		}
	}
	return elements ? json_incref(elements) : NULL;
}

/*
 * The element of default-network, borrowed from *ret_list; NULL when there is none. Its interface
 * is "net0" if it names none.
 */
static int asked_for_default(const json_t *config, const json_t *pod, json_t **ret_list,
			     struct err *err)
{
	json_t *list =
		elements_of(pod, DEFAULT_NETWORK_ANNOTATION, multus_namespace(config), 0, err);

	if (!list)
		return -1;
	if (json_array_size(list) > 1) {
		json_decref(list);
		return err_set(err, ERR_INVALID, "BadNetworks",
			       "annotation %s names more than one network: leave one",
			       DEFAULT_NETWORK_ANNOTATION);
	}
	*ret_list = list;
	return 0;
}

static char *key_of(const json_t *element)
{
	return str_printf("%s/%s", json_str_at(element, "namespace"), json_str_at(element, "name"));
}

static void want_networks(json_t *wanted, const json_t *elements)
{
	json_t *element;
	size_t i;

	json_array_foreach (elements, i, element) {
		auto_free char *key = key_of(element);

		if (!json_list_has(wanted, key))
			json_array_append_new(wanted, json_string(key));
	}
}

/* An element that names a network of the configuration, new. */
static json_t *element_of(const json_t *config, const char *name)
{
	return json_pack("{s:s, s:s}", "name", name, "namespace", multus_namespace(config));
}

/* The networks of the configuration that may be definitions. */
static void want_of_all_pods(json_t *wanted, const json_t *config, const json_t *pod,
			     bool is_replaced)
{
	const char *cluster = json_str_at(config, "clusterNetwork");
	json_auto_t *elements = json_array();
	json_t *name;
	size_t i;

	if (!is_replaced && !str_empty(cluster))
		json_array_append_new(elements, element_of(config, cluster));
	json_array_foreach (default_networks(config, pod), i, name)
		json_array_append_new(elements, element_of(config, json_str_or(name, "")));
	want_networks(wanted, elements);
}

json_t *meta_wanted(const json_t *config, const json_t *pod, struct err *err)
{
	json_auto_t *replaced = NULL, *elements = NULL, *wanted = json_array();

	if (asked_for_default(config, pod, &replaced, err) < 0)
		return NULL;
	elements = asked_for(config, pod, err);
	if (!elements)
		return NULL;
	want_networks(wanted, replaced);
	want_of_all_pods(wanted, config, pod, json_array_size(replaced) > 0);
	want_networks(wanted, elements);
	return json_incref(wanted);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Does a plugin of this type and configuration find no interface without a device? */
static bool plugin_needs_device(const json_t *plugin)
{
	static const char *const selectors[] = {"device", "hwaddr", "kernelpath", "pciBusID"};
	const char *type = json_str_at(plugin, "type");

	if (str_eq(type, "host-device"))
		for (size_t i = 0; i < ARRAY_LEN(selectors); i++)
			if (!str_empty(json_str_at(plugin, selectors[i])))
				return false;
	return (str_eq(type, "sriov") || str_eq(type, "ib-sriov") || str_eq(type, "host-device")) &&
	       str_empty(json_str_at(plugin, "deviceID"));
}

static bool needs_device(const struct meta_input *in, const json_t *config, const char *resource)
{
	json_t *plugin;
	size_t i;

	json_array_foreach (json_at(config, "plugins"), i, plugin)
		if (plugin_needs_device(plugin))
			return true;
	return json_list_has(in->served, resource);
}

/*
 * The next free device of the resource: *ret is borrowed; NULL where the pod has none at all and
 * the network of this configuration works without. Networks get devices in their order; a device
 * goes to one network only.
 */
static int next_device(const struct meta_input *in, json_t *pools, const char *resource,
		       const char *network, const json_t *config, const char **ret, struct err *err)
{
	json_t *pool = json_object_get(pools, resource);
	struct devices_beyond beyond;
	json_t *used;
	const char *id;

	if (!pool && devices_beyond(in->pod, in->devices, resource, &beyond))
		return err_set(
			err, ERR_TRANSIENT, "AmbiguousDevices",
			"network %.64s: the kubelet names %zu devices of %.64s for container "
			"%.64s, which asks for %lld: another pod of that name ends and has "
			"the others; the runtime tries again",
			network, beyond.named, resource, beyond.container, (long long)beyond.asked);
	if (!pool) {
		pool = json_pack("{s:o, s:i}", "ids", devices_of(in->pod, in->devices, resource),
				 "used", 0);
		json_object_set_new(pools, resource, pool);
	}
	used = json_object_get(pool, "used");
	id = json_string_value(
		json_array_get(json_at(pool, "ids"), (size_t)json_integer_value(used)));
	if (!id && json_array_size(json_at(pool, "ids")) == 0 &&
	    !needs_device(in, config, resource)) {
		*ret = NULL;
		return 0;
	}
	if (!id)
		return err_set(
			err, ERR_INVALID, "TooFewDevices",
			"network %.128s needs a device of %.128s, and the pod has %zu of them, all "
			"taken: request one for each network",
			network, resource, json_array_size(json_at(pool, "ids")));
	json_integer_set(used, json_integer_value(used) + 1);
	*ret = id;
	return 0;
}

static char *file_name(const char *text)
{
	char *name = str_dup(text);

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

char *meta_device_info_path(const char *network, const char *container_id, const char *ifname)
{
	auto_free char *name = file_name(network);

	assert(network && ifname);
	return str_printf("%s/%s-%s_%s", CNI_DEVINFO_DIR, name, container_id, ifname);
}

char *meta_device_info_source(const char *resource, const char *device)
{
	auto_free char *text = str_printf("%s-%s-device.json", resource, device);
	auto_free char *name = file_name(text);

	return str_printf("%s/%s", DP_DEVINFO_DIR, name);
}

/* ---- one delegate ---------------------------------------------------------------------------- */

struct building {
	const struct meta_input *in;
	json_t *delegates;
	json_t *pools; /* resource -> its devices, and how many of them are taken */
};

static const char *own_version(const struct meta_input *in)
{
	return json_str_or(json_at(in->config, "cniVersion"), "");
}

/* What every plugin of the delegate gets, whatever it declares. */
static void inject(json_t *config, const char *device, const json_t *cni_args)
{
	json_t *plugins = json_at(config, "plugins"), *plugin;
	size_t i;

	json_array_foreach (plugins, i, plugin) {
		json_put_str(plugin, "deviceID", device);
		json_put_str(plugin, "pciBusID", device);
		if (json_object_size(cni_args) > 0)
			json_object_update(
				json_need_object(json_need_object(plugin, "args"), "cni"),
				(json_t *)cni_args);
	}
}

/*
 * What plugins get that declare it: the runtime's own, and over it what the element asks for. The
 * cluster's network gets the runtime's alone.
 */
static json_t *capabilities(const struct meta_input *in, const json_t *element, bool is_first,
			    const char *device, const char *device_info)
{
	static const struct {
		const char *key, *name;
	} asked[] = {
		{"ips", "ips"},
		{"mac", "mac"},
		{"infiniband-guid", "infinibandGUID"},
		{"bandwidth", "bandwidth"},
		{"portMappings", "portMappings"},
		{"deviceID", "deviceID"},
	};
	const json_t *runtime = json_at(in->config, "runtimeConfig");
	json_t *all = json_is_object(runtime) ? json_deep_copy(runtime) : json_object();

	if (is_first)
		return all;
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		json_t *value = json_at(element, asked[i].key);

		if (value && !str_eq(json_string_value(value), ""))
			json_put(all, asked[i].name, json_deep_copy(value));
	}
	json_put_str(all, "deviceID", device);
	if (json_at(all, "deviceID"))
		json_put_str(all, "CNIDeviceInfoFile", device_info);
	return all;
}

/* is_renamed: the cluster's network is called otherwise than the runtime says. */
static json_t *requests_of(const json_t *element, const char *interface, bool is_renamed)
{
	json_t *asked = json_object();

	if (is_renamed)
		json_put_str(asked, "interface", interface);

	json_put_str(asked, "mac", json_str_at(element, "mac"));
	json_put_str(asked, "infinibandGUID", json_str_at(element, "infiniband-guid"));
	if (json_array_size(json_at(element, "ips")) > 0)
		json_put(asked, "ips", json_deep_copy(json_at(element, "ips")));
	return asked;
}

/* Add a delegate. config is taken; element and resource may be NULL. */
static int add_delegate(struct building *b, const char *name, const char *interface, json_t *config,
			const json_t *element, const char *resource, struct err *err)
{
	json_auto_t *own = config;
	bool is_first = json_array_size(b->delegates) == 0;
	auto_free char *args = cni_args_for(b->in->args, b->in->container_id, b->in->pod,
					    json_str_at(element, "mac"), json_at(element, "ips"));
	auto_free char *info = meta_device_info_path(name, b->in->container_id, interface);
	json_auto_t *delegate = json_object();
	const char *device = NULL;

	if (!str_empty(resource)) {
		if (next_device(b->in, b->pools, resource, name, own, &device, err) < 0)
			return -1;
		json_put_str(delegate, "resourceName", resource);
	}
	json_put_str(delegate, "deviceID", device);
	inject(own, device, json_at(element, "cni-args"));
	json_put_str(delegate, "name", name);
	json_put_str(delegate, "interface", interface);
	json_put_str(delegate, "args", args);
	json_object_set(delegate, "config", own);
	json_put(delegate, "capabilities", capabilities(b->in, element, is_first, device, info));
	if (device || json_at(delegate, "capabilities", "CNIDeviceInfoFile"))
		json_put_str(delegate, "deviceInfo", info);
	json_put(delegate, "requests",
		 requests_of(element, interface, is_first && !str_eq(interface, b->in->ifname)));
	if (json_is_array(json_at(element, "default-route")))
		json_put(delegate, "defaultRoute",
			 json_deep_copy(json_at(element, "default-route")));
	json_array_append(b->delegates, delegate);
	return 0;
}

/* A definition without spec.config means the file of the node whose network has that name. */
static const json_t *config_on_disk(const struct meta_input *in, const char *name)
{
	return json_find(in->files, "name", name);
}

static json_t *definition_config(const struct building *b, const json_t *nad, const char *key,
				 struct err *err)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	struct err why = {0};
	json_auto_t *parsed =
		*text ? limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, &why) : NULL;
	json_t *config;

	if (str_eq(why.reason, "TooLarge")) {
		*err = why;
		err_in(err, "NetworkAttachmentDefinition %.128s, spec.config", key);
		return NULL;
	}
	if (*text && !parsed) {
		err_set(err, ERR_INVALID, "BadNetworkConfig",
			"spec.config of NetworkAttachmentDefinition %.128s is no JSON: %.256s; "
			"correct it",
			key, why.text);
		return NULL;
	}
	if (!*text && !config_on_disk(b->in, json_name(nad))) {
		err_set(err, ERR_INVALID, "BadNetworkConfig",
			"NetworkAttachmentDefinition %.128s has no spec.config, and no file of "
			"this "
			"node's CNI folder has a network of that name: write one of them",
			key);
		return NULL;
	}
	config = network_config_read(parsed ? parsed : config_on_disk(b->in, json_name(nad)),
				     json_name(nad), own_version(b->in), err);
	if (!config)
		err_in(err, "NetworkAttachmentDefinition %.128s", key);
	return config;
}

/* 1: added; 0: there is no such definition. */
static int add_definition(struct building *b, const json_t *element, const char *interface,
			  struct err *err)
{
	auto_free char *key = key_of(element);
	const json_t *nad = json_object_get(b->in->nads, key);
	json_t *config;

	if (!nad)
		return 0;
	config = definition_config(b, nad, key, err);
	if (!config || add_delegate(b, key, interface, config, element,
				    annotation(nad, META_RESOURCE_ANNOTATION), err) < 0)
		return -1;
	return 1;
}

static int add_element(struct building *b, const json_t *element, const char *interface,
		       struct err *err)
{
	int added = add_definition(b, element, interface, err);

	if (added == 0)
		return err_set(err, ERR_INVALID, "NoNetworkFound",
			       "cannot find a network-attachment-definition (%.64s) in namespace "
			       "(%.64s): create it, or correct the pod's annotation",
			       json_str_at(element, "name"), json_str_at(element, "namespace"));
	return added < 0 ? -1 : 0;
}

/*
 * A network that the configuration names: a definition, else the configuration of that name
 * (NULL: the node has none). key: of the configuration.
 */
static int add_named(struct building *b, const char *key, const char *name, const char *interface,
		     const json_t *on_node, struct err *err)
{
	json_auto_t *element = element_of(b->in->config, name);
	int added = add_definition(b, element, interface, err);
	json_t *config;

	if (added != 0)
		return added < 0 ? -1 : 0;
	if (!on_node)
		return err_set(
			err, ERR_INVALID, "NoNetworkFound",
			"cannot find %s %.64s: neither a network-attachment-definition in "
			"namespace (%.64s) nor a file of this node's CNI folder has that name; "
			"create it",
			key, name, json_str_at(element, "namespace"));
	config = network_config_read(on_node, name, own_version(b->in), err);
	return config ? add_delegate(b, name, interface, config, NULL, NULL, err) : -1;
}

/*
 * Networks that every pod has: those of the configuration, the first one replaced when the pod says
 * so.
 */
static int add_base(struct building *b, const json_t *replaced, struct err *err)
{
	const json_t *delegates = json_at(b->in->config, "delegates");
	const json_t *element = json_array_get(replaced, 0), *first = json_array_get(delegates, 0);
	const char *interface = json_str_at(element, "interface");
	/* Without definitions it is not asked as a pod's: the node's own counts. */
	const char *cluster = b->in->nads ? json_str_at(b->in->config, "clusterNetwork") : NULL;
	const char *ifname = b->in->ifname ? b->in->ifname : "";
	bool is_named = !str_empty(cluster);
	json_t *delegate;
	size_t i;

	if (json_array_size(delegates) == 0 && !is_named)
		return err_set(err, ERR_INVALID, "BadNetworkConfig",
			       "the configuration names no network for all pods: write the "
			       "cluster's into delegates");
	if (element &&
	    add_element(b, element, str_eq(interface, "net0") ? ifname : interface, err) < 0)
		return -1;
	if (!element && is_named &&
	    add_named(b, "clusterNetwork", cluster, ifname,
		      str_eq(json_str_at(first, "name"), cluster) ? first : NULL, err) < 0)
		return -1;
	json_array_foreach (delegates, i, delegate) {
		auto_free char *numbered = str_printf("net%zu", i);
		json_t *config;

		if (i == 0 && (element || is_named))
			continue;
		config = network_config_read(delegate, "", own_version(b->in), err);
		if (!config)
			return err_in(err, "delegates[%zu]", i);
		if (add_delegate(b, json_str_at(config, "name"), i ? numbered : ifname, config,
				 NULL, NULL, err) < 0)
			return -1;
	}
	return 0;
}

/* Those that the configuration gives pods of other than the system's namespaces besides. */
static int add_defaults(struct building *b, struct err *err)
{
	json_t *name;
	size_t i;

	if (!b->in->nads)
		return 0;
	json_array_foreach (default_networks(b->in->config, b->in->pod), i, name) {
		const char *text = json_str_or(name, "");
		auto_free char *interface = str_printf("net%zu", json_array_size(b->delegates));

		if (add_named(b, "defaultNetworks", text, interface, config_on_disk(b->in, text),
			      err) < 0)
			return -1;
	}
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/*
 * Before anything is set up: the second of two would fail when the first is there already, and a
 * plugin that undoes its failure may remove an interface that it did not make.
 */
static int check_interfaces(const struct meta_input *in, const json_t *delegates, struct err *err)
{
	json_auto_t *seen = json_object();
	json_t *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate) {
		const char *interface = json_str_at(delegate, "interface");
		const char *name = json_str_at(delegate, "name");
		const char *other = json_str_at(seen, interface);

		if (other)
			return err_set(
				err, ERR_INVALID, "InterfaceTwice",
				"networks %.128s and %.128s want the same interface %s: name "
				"another one in the annotation",
				other, name, interface);
		if (json_list_has(in->links, interface))
			return err_set(err, ERR_INVALID, "InterfaceExists",
				       "network %.128s wants interface %s, which is in the pod "
				       "already: name another one in the annotation",
				       name, interface);
		json_put_str(seen, interface, name);
	}
	return 0;
}

static int check_default_routes(const json_t *delegates, struct err *err)
{
	size_t v4 = 0, v6 = 0, chosen = 0, i, k;
	json_t *delegate, *gateway;

	json_array_foreach (delegates, i, delegate) {
		const json_t *gateways = json_at(delegate, "defaultRoute");

		chosen += gateways != NULL;
		json_array_foreach (gateways, k, gateway) {
			const char *text = json_str_or(gateway, "");

			if (!is_ip(text) || strchr(text, '/'))
				return err_set(
					err, ERR_INVALID, "BadDefaultRoute",
					"network %.128s: default-route has \"%.64s\", which is "
					"no address of a gateway",
					json_str_at(delegate, "name"), text);
			*(strchr(text, ':') ? &v6 : &v4) += 1;
		}
	}
	if (v4 > 1 || v6 > 1)
		return err_set(
			err, ERR_INVALID, "BadDefaultRoute",
			"default-route names more than one gateway of a family: leave one IPv4 "
			"and one IPv6 address among all networks of the pod");
	if (chosen > 1 && v4 + v6 < chosen)
		return err_set(
			err, ERR_INVALID, "BadDefaultRoute",
			"more than one network of the pod has default-route, one of them without "
			"a gateway: leave it at one network");
	return 0;
}

/* A static pod has another UID on the API server than on its node. */
static int check_uid(const struct meta_input *in, struct err *err)
{
	auto_free char *uid = cni_args_value(in->args, "K8S_POD_UID");
	const char *source = annotation(in->pod, CONFIG_SOURCE);

	if (!in->pod || str_empty(uid) || str_eq(uid, json_uid(in->pod)) ||
	    (*source && !str_eq(source, "api")))
		return 0;
	return err_set(
		err, ERR_TRANSIENT, "PodReplaced",
		"pod %.64s/%.64s has UID %.64s now, and the sandbox is made for %.64s: nothing "
		"to do, the kubelet makes another one",
		json_namespace(in->pod), json_name(in->pod), json_uid(in->pod), uid);
}

json_t *meta_delegates(const struct meta_input *in, struct err *err)
{
	json_auto_t *replaced = NULL, *elements = NULL, *pools = json_object();
	json_auto_t *delegates = json_array();
	struct building b = {in, delegates, pools};
	json_t *element;
	size_t i;

	if (check_uid(in, err) < 0 || asked_for_default(in->config, in->pod, &replaced, err) < 0)
		return NULL;
	elements = asked_for(in->config, in->pod, err);
	if (!elements || add_base(&b, replaced, err) < 0 || add_defaults(&b, err) < 0)
		return NULL;
	json_array_foreach (elements, i, element)
		if (add_element(&b, element, json_str_at(element, "interface"), err) < 0)
			return NULL;
	if (check_interfaces(in, delegates, err) < 0 || check_default_routes(delegates, err) < 0)
		return NULL;
	return json_incref(delegates);
}

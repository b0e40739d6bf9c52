// SPDX-License-Identifier: Apache-2.0
/* The kubelet's file, and that of claims, against what a configuration names. */
#include "nodeagent/cni/worker/allocated.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/pci_address.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/cni/execute/netns_visit.h"
#include "nodeagent/cni/plan/checkpoint.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/host/holders.h"
#include "nodeagent/host/pci.h"

/* With the answers of device plugins, for a node full of pods with hundreds of devices. */
#define CHECKPOINT_MAX (16U << 20)

static int unknown(struct err *err, const char *what, const char *why)
{
	return err_set(err, ERR_TRANSIENT, "DevicesUnknown",
		       "%s: %s; whether the kubelet has given the pod its devices cannot be known "
		       "now, the runtime tries again",
		       what, why);
}

/* *ret: new; NULL: there is none. */
static int read_checkpoint(const char *kubelet_dir, json_t **ret, struct err *err)
{
	auto_free char *path = str_below(kubelet_dir, CHECKPOINT_FILE);
	auto_strbuf struct strbuf text = {0};
	struct err why = {0};

	*ret = NULL;
	if (fs_read(AT_FDCWD, path, CHECKPOINT_MAX, &text, &why) == 0)
		*ret = json_parse(strbuf_str(&text), text.len, &why);
	return *ret || why.sys == ENOENT ? 0 : unknown(err, path, why.text);
}

/* The kubelet makes a pod's folder before its sandbox, and removes it once the pod is gone. */
static bool has_folder(const char *kubelet_dir, const char *pod_uid)
{
	auto_free char *path = str_printf("%s/pods/%s", kubelet_dir, pod_uid);

	return !str_empty(pod_uid) && !strchr(pod_uid, '/') &&
	       (access(path, F_OK) == 0 || errno != ENOENT);
}

/*
 * A device that is ill is not offered, and stays with the pod that has it. Of pods that are gone
 * the record says nothing: a claim may have the device by now.
 */
static bool is_with_other_pod(const json_t *checkpoint, const char *kubelet_dir, const char *device)
{
	json_auto_t *pods = checkpoint_pods_of(checkpoint, device);
	const json_t *uid;
	size_t i;

	json_array_foreach (pods, i, uid)
		if (has_folder(kubelet_dir, json_string_value(uid)))
			return true;
	return false;
}

/* What devices are looked up in, for one configuration. */
struct records {
	const char *kubelet_dir;
	const json_t *pod;
	struct host *host;
	json_t *checkpoint; /* NULL: there is none, or the runtime does not tell the pod's UID */
	json_t *claims;     /* of holders_claims(); NULL: they cannot be read … */
	const char *why;    /* … for this reason */
};

/* A resource that claims give is not in the kubelet's record. pod: may have it; NULL: none may. */
static int check_claim(const struct records *records, const char *device, const json_t *pod,
		       struct err *err)
{
	const char *holder = json_str_at(records->claims, device);
	auto_free char *own = str_printf("%s/%s/", json_str_or(json_at(pod, "namespace"), ""),
					 json_str_or(json_at(pod, "name"), ""));

	if (!records->claims)
		return err_set(err, ERR_HOST, "HostUnreadable",
			       "device %.32s may be prepared for a claim: %s", device,
			       records->why);
	if (!holder || (pod && str_starts(holder, own)))
		return 0;
	return err_set(err, ERR_INVALID, "DeviceNotGiven",
		       "device %.32s is prepared for claim %.128s: do not name the device in the "
		       "network's configuration",
		       device, holder);
}

/* They lose their PF, whoever has them. */
static int check_vfs_of(const struct records *records, const char *pf, struct err *err)
{
	struct sysfs_text vf;

	for (int i = 0; i < PCI_VFS_MAX && pci_virtfn(records->host, pf, i, &vf); i++) {
		if (check_claim(records, vf.text, NULL, err) < 0)
			return err_in(err, "PF %.32s", pf);
		if (records->checkpoint &&
		    is_with_other_pod(records->checkpoint, records->kubelet_dir, vf.text))
			return err_set(err, ERR_INVALID, "DeviceNotGiven",
				       "the kubelet has given VF %.32s of PF %.32s to a pod: name "
				       "another device, or delete the pod",
				       vf.text, pf);
	}
	return 0;
}

static enum checkpoint_holder holder_of(const struct records *records, const char *device)
{
	enum checkpoint_holder holder =
		records->checkpoint ? checkpoint_holder_of(records->checkpoint, device,
							   json_str_at(records->pod, "uid"))
				    : CHECKPOINT_UNMANAGED;

	if (holder == CHECKPOINT_UNKNOWN)
		log_warn("the kubelet's record of devices has another form; devices are not "
			 "checked against it");
	return holder;
}

static int judge(const struct records *records, const char *device, struct err *err)
{
	switch (holder_of(records, device)) {
	case CHECKPOINT_OF_POD:
		return 0;
	case CHECKPOINT_UNKNOWN:
		return check_claim(records, device, records->pod, err);
	case CHECKPOINT_UNMANAGED:
		if (!records->checkpoint ||
		    !is_with_other_pod(records->checkpoint, records->kubelet_dir, device))
			return check_claim(records, device, records->pod, err);
		break;
	case CHECKPOINT_OTHER:
		break;
	}
	return err_set(err, ERR_INVALID, "DeviceNotGiven",
		       "the kubelet has not given device %.32s to this pod, and gives it to pods "
		       "that request its resource: request it, with the annotation "
		       "k8s.v1.cni.cncf.io/resourceName on the network, and do not name the device "
		       "in the network's configuration",
		       device);
}

/* ---- configurations -------------------------------------------------------------------------- */

struct search {
	int root;
	bool takes;          /* the plugin moves what it names into the pod, a PF too */
	json_t *devices;     /* found, by address */
	json_t *taken;       /* those of them that such a plugin names */
	struct err *unknown; /* why there may be more */
};

static void add_device(const struct search *search, const char *address)
{
	if (!pci_address_is_valid(address))
		return;
	if (!json_list_has(search->devices, address))
		json_array_append_new(search->devices, json_string(address));
	if (search->takes && !json_list_has(search->taken, address))
		json_array_append_new(search->taken, json_string(address));
}

/* The text of a link in /sys, new; NULL: there is none, or it cannot be known. */
static char *sysfs_link_text(const struct search *search, const char *path)
{
	char *text = root_read_link(search->root, path);

	if (!text && err_is_unknown(errno))
		(void)unknown(search->unknown, path, strerror(errno));
	return text;
}

/* The node's links, new; NULL: they cannot be known. */
static json_t *links_of_node(const struct search *search)
{
	json_t *look = NULL;
	struct err why = {0};

	if (netns_visit_links(&look, &why) < 0)
		(void)unknown(search->unknown, "interfaces of the node", why.text);
	return look;
}

static bool has_interface(const struct search *search, const char *name)
{
	auto_free char *path = str_printf("sys/class/net/%s", name);
	struct stat st;

	return root_stat(search->root, path, &st) == 0;
}

/* only_vf: a PF carries many pods' interfaces. False: the node has no such interface. */
static bool add_function(const struct search *search, const char *interface, bool only_vf)
{
	auto_free char *path = str_printf("sys/class/net/%s/device", interface);
	auto_free char *link = sysfs_link_text(search, path), *physfn = NULL, *pf = NULL;
	const char *address = link && strrchr(link, '/') ? strrchr(link, '/') + 1 : "";

	if (!pci_address_is_valid(address))
		return link || has_interface(search, interface);
	physfn = str_printf("sys/bus/pci/devices/%s/physfn", address);
	pf = sysfs_link_text(search, physfn);
	if (pf || !only_vf)
		add_device(search, address);
	return true;
}

/* The kernel finds interfaces by alternative names, too; sysfs has none of these. */
static void add_named(const struct search *search, const char *name, bool only_vf)
{
	json_auto_t *look = NULL;
	const json_t *link;
	size_t i;

	if (!*name || strchr(name, '/') || add_function(search, name, only_vf))
		return;
	look = links_of_node(search);
	json_array_foreach (json_at(look, "links"), i, link)
		if (json_list_has(json_at(link, "altNames"), name))
			(void)add_function(search, json_str_or(json_at(link, "name"), ""), only_vf);
}

static void add_lower(const struct search *search, const char *name)
{
	add_named(search, name, true);
}

/* One that the pod gets itself. */
static void add_interface(const struct search *search, const char *name)
{
	add_named(search, name, false);
}

static bool is_separator(char c)
{
	return c == ':' || c == '-' || c == '.';
}

/* Go reads MACs in several spellings. */
static bool same_mac(const char *a, const char *b)
{
	for (;;) {
		while (is_separator(*a))
			a++;
		while (is_separator(*b))
			b++;
		if (!*a || strncasecmp(a, b, 1) != 0)
			return *a == *b;
		a++;
		b++;
	}
}

static void add_mac(const struct search *search, const char *mac)
{
	json_auto_t *look = links_of_node(search);
	const json_t *link;
	size_t i;

	json_array_foreach (json_at(look, "links"), i, link)
		if (same_mac(json_str_or(json_at(link, "mac"), ""), mac))
			(void)add_function(search, json_str_or(json_at(link, "name"), ""), false);
}

/* Without "." and "..", as filepath.Join() of Go makes paths before the kernel sees them. New. */
static char *clean(const char *path)
{
	auto_free char *copy = str_dup(path);
	auto_strbuf struct strbuf out = {0};
	char *rest = copy, *part;

	while ((part = strsep(&rest, "/"))) {
		const char *slash = out.len ? strrchr(strbuf_str(&out), '/') : NULL;

		if (str_eq(part, "..") && slash)
			strbuf_cut(&out, (size_t)(slash - strbuf_str(&out)));
		else if (*part && !str_eq(part, ".") && !str_eq(part, ".."))
			strbuf_addf(&out, "/%s", part);
	}
	return strbuf_take(&out);
}

/* The last PCI function on the path is the one that has what is there. */
static void add_path(const struct search *search, const char *path)
{
	auto_free char *wanted = clean(path), *real = root_real_path(search->root, wanted);
	int failed = real ? 0 : errno;
	char *rest = real ? real : wanted, *part;
	const char *last = "";

	if (err_is_unknown(failed))
		(void)unknown(search->unknown, path, strerror(failed));
	while ((part = strsep(&rest, "/")))
		if (pci_address_is_valid(part))
			last = part;
	add_device(search, last);
}

/* Some plugins have the name of an interface there. */
static void add_id(const struct search *search, const char *id)
{
	auto_free char *path = str_printf("/sys/bus/pci/devices/%s", id);

	if (pci_address_is_valid(id)) {
		add_device(search, id);
		return;
	}
	add_path(search, path);
	add_interface(search, id);
}

typedef void add_fn(const struct search *search, const char *text);

static const struct key {
	const char *name;
	add_fn *add;
	bool is_master; /* may be an interface of the pod */
} keys[] = {
	{"deviceID", add_id, false},      {"pciBusID", add_id, false},
	{"kernelpath", add_path, false},  {"hwaddr", add_mac, false},
	{"device", add_interface, false}, {"if0", add_interface, false},
	{"master", add_lower, true},      {"masters", add_lower, true},
	{"interfaces", add_lower, true},  {"links", add_lower, true},
};

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (network_key_is(name, keys[i].name))
			return &keys[i];
	return NULL;
}

/* Of two spellings of the switch a plugin takes the last one. */
static bool is_in_pod(const json_t *config)
{
	static const char *const types[] = {"macvlan", "ipvlan", "vlan", "bond"};
	const char *type = json_str_at(config, "type"), *key;
	bool is_on = false, is_off = true;
	json_t *value;

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(types[i], type))
			is_off = false;
	json_each (config, key, value)
		if (network_key_is(key,
				   str_eq(type, "bond") ? "linksInContainer" : "linkInContainer")) {
			is_on = true;
			is_off = is_off || !json_is_true(value);
		}
	return is_on && !is_off;
}

static void search_config(const struct search *search, const json_t *config);

/* Recursive, as the next one: JSON of a bounded depth. key: NULL: of another meaning. */
static void search_value(const struct search *search, const struct key *key, const json_t *value)
{
	const char *name;
	json_t *item;
	size_t i;

	if (key && json_is_string(value))
		key->add(search, json_string_value(value));
	json_array_foreach ((json_t *)value, i, item)
		search_value(search, key, item);
	if (!json_is_object(value))
		return;
	/* As "links" of bond. */
	json_each (value, name, item)
		if (key && network_key_is(name, "name"))
			search_value(search, key, item);
	search_config(search, value);
}

/* Those of plugins that this one calls included. */
static void search_config(const struct search *search, const json_t *config)
{
	struct search inner = *search;
	bool in_pod = is_in_pod(config);
	const char *name;
	json_t *value;

	inner.takes |= str_eq(json_str_at(config, "type"), "host-device");
	json_each (config, name, value) {
		const struct key *key = find_key(name);

		if (!network_key_is(name, "prevResult") && !network_key_is(name, "args") &&
		    !(key && key->is_master && in_pod))
			search_value(&inner, key, value);
	}
}

static int judge_all(const struct records *records, const struct search *search, struct err *err)
{
	const json_t *device;
	size_t i;

	json_array_foreach (search->devices, i, device)
		if (judge(records, json_string_value(device), err) < 0)
			return -1;
	json_array_foreach (search->taken, i, device)
		if (check_vfs_of(records, json_string_value(device), err) < 0)
			return -1;
	return 0;
}

int allocated_check(const char *kubelet_dir, int root, const json_t *config, const json_t *pod,
		    struct err *err)
{
	json_auto_t *devices = json_array(), *taken = json_array(), *checkpoint = NULL;
	struct err why = {0};
	const struct search search = {
		.root = root, .devices = devices, .taken = taken, .unknown = &why};
	auto_host struct host *host = NULL;
	json_auto_t *claims = NULL;

	if (!kubelet_dir)
		return 0;
	search_config(&search, config);
	if (why.class) {
		if (err)
			*err = why;
		return -1;
	}
	if (json_array_size(devices) == 0)
		return 0;
	host = device_host(root, err);
	if (!host)
		return -1;
	if (!str_empty(json_str_at(pod, "uid")) &&
	    read_checkpoint(kubelet_dir, &checkpoint, err) < 0)
		return -1;
	claims = holders_claims(host, &why);
	return judge_all(&(struct records){kubelet_dir, pod, host, checkpoint, claims, why.text},
			 &search, err);
}

int allocated_is_given(const char *kubelet_dir, const char *device, const char *pod_uid,
		       struct err *err)
{
	json_auto_t *checkpoint = NULL;

	if (!kubelet_dir)
		return 1;
	if (str_empty(pod_uid))
		return 0;
	if (read_checkpoint(kubelet_dir, &checkpoint, err) < 0)
		return -1;
	return checkpoint && checkpoint_holder_of(checkpoint, device, pod_uid) == CHECKPOINT_OF_POD;
}

int allocated_devices(const char *kubelet_dir, const char *pod_uid, json_t **ret, struct err *err)
{
	json_auto_t *checkpoint = NULL;

	if (kubelet_dir && !str_empty(pod_uid) &&
	    read_checkpoint(kubelet_dir, &checkpoint, err) < 0)
		return -1;
	*ret = checkpoint ? checkpoint_devices_of(checkpoint, pod_uid) : json_array();
	return 0;
}

int allocated_check_delegates(const char *kubelet_dir, int root, const json_t *delegates,
			      const json_t *pod, struct err *err)
{
	const json_t *delegate;
	size_t i;

	json_array_foreach ((json_t *)delegates, i, delegate)
		for (size_t k = 0; k < delegate_plugins(delegate); k++) {
			json_auto_t *config = delegate_stdin(delegate, k, "ADD", NULL);

			if (allocated_check(kubelet_dir, root, config, pod, err) < 0)
				return err_in(err, "network %.128s (%.16s): %.64s",
					      json_str_at(delegate, "name"),
					      json_str_at(delegate, "interface"),
					      delegate_plugin_type(delegate, k));
		}
	return 0;
}

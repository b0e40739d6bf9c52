// SPDX-License-Identifier: Apache-2.0
/*
 * Delegates to Multus' file and back; what Multus does not keep is made again from the call's
 * arguments. meta_call.c reads it on a DEL of a sandbox that has no record of ours, and writes it
 * beside ours after each ADD.
 */
#include "nodeagent/cni/plan/multus_state.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/plugin_call.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* The configuration as it was run, or NULL. */
static json_t *config_of(const json_t *kept)
{
	const char *text = json_str_or(json_at(kept, "Bytes"), "");
	auto_strbuf struct strbuf bytes = {0};
	json_auto_t *config = NULL;

	if (base64_decode(text, strlen(text), &bytes, NULL) < 0)
		return NULL;
	config = json_parse(strbuf_str(&bytes), bytes.len, NULL);
	return config ? network_config_read(config, "", "", NULL) : NULL;
}

static json_t *capabilities_of(const json_t *kept)
{
	static const char *const names[][2] = {{"macRequest", "mac"},
					       {"ipRequest", "ips"},
					       {"infinibandGUIDRequest", "infinibandGUID"},
					       {"deviceID", "deviceID"}};
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_at(kept, names[i][0]))
			json_put(all, names[i][1], json_deep_copy(json_at(kept, names[i][0])));
	return all;
}

json_t *multus_state_read(const json_t *state, const char *container_id, const char *ifname,
			  const char *args, const json_t *pod, struct err *err)
{
	json_auto_t *object = json_pack("{s:O?}", "metadata", pod);
	json_t *delegates, *kept;
	size_t i;

	if (!json_is_array(state)) {
		(void)err_set(err, ERR_INVALID, "BadMultusState",
			      "what Multus kept of sandbox %.64s is no list; its networks are not "
			      "taken down",
			      container_id);
		return NULL;
	}
	delegates = json_array();
	json_array_foreach (state, i, kept) {
		auto_free char *numbered = str_printf("net%zu", i);
		const char *asked = json_str_or(json_at(kept, "ifnameRequest"), "");
		auto_free char *own_args =
			cni_args_for(args, container_id, object, json_str_at(kept, "macRequest"),
				     json_at(kept, "ipRequest"));
		json_t *config = config_of(kept), *delegate;

		if (!config)
			continue;
		delegate = json_pack("{s:o, s:o, s:s, s:s}", "config", config, "capabilities",
				     capabilities_of(kept), "args", own_args, "interface",
				     *asked ? asked
				     : i    ? numbered
					    : ifname);
		json_put_str(delegate, "name",
			     json_str_or(json_at(kept, "Name"), json_str_at(config, "name")));
		if (!str_empty(json_str_at(kept, "deviceID"))) {
			auto_free char *info =
				meta_device_info_path(json_str_at(delegate, "name"), container_id,
						      json_str_at(delegate, "interface"));

			json_put_str(delegate, "deviceInfo", info);
		}
		json_array_append_new(delegates, delegate);
	}
	return delegates;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The configuration as plugins got it: an object of one plugin, or the list. */
static json_t *config_as_run(const json_t *delegate)
{
	const json_t *list = json_at(delegate, "config");
	json_t *config;

	if (json_is_true(json_at(list, "single"))) {
		config = json_deep_copy(json_array_get(json_at(list, "plugins"), 0));
		json_put_str(config, "name", json_str_at(list, "name"));
		return config;
	}
	config = json_deep_copy(list);
	json_object_del(config, "single");
	return config;
}

/* What Multus reads of one plugin; Go prints an empty ipam for all. */
static json_t *plugin_summary(const json_t *plugin)
{
	json_t *summary = json_pack("{s:{}}", "ipam");

	json_put_str(summary, "type", json_str_at(plugin, "type"));
	json_put(summary, "capabilities", json_deep_copy(json_at(plugin, "capabilities")));
	return summary;
}

static void put_summaries(json_t *kept, const json_t *config)
{
	const json_t *list = json_at(config, "plugins");
	json_t *conf = json_is_array(list) ? json_pack("{s:{}}", "ipam") : plugin_summary(config);
	json_t *conflist = json_object(), *plugin;
	size_t i;

	json_put_str(conf, "cniVersion", json_str_at(config, "cniVersion"));
	json_put_str(conf, "name", json_str_at(config, "name"));
	if (json_is_array(list)) {
		json_put_str(conflist, "cniVersion", json_str_at(config, "cniVersion"));
		json_put_str(conflist, "name", json_str_at(config, "name"));
		json_put(conflist, "plugins", json_array());
		json_array_foreach (list, i, plugin)
			json_array_append_new(json_at(conflist, "plugins"), plugin_summary(plugin));
	}
	json_put(kept, "Conf", conf);
	json_put(kept, "ConfList", conflist);
}

static json_t *state_of_delegate(const json_t *delegate, size_t position)
{
	json_auto_t *config = config_as_run(delegate);
	auto_free char *text = json_text(config), *numbered = str_printf("net%zu", position);
	auto_strbuf struct strbuf bytes = {0};
	const char *interface = json_str_at(delegate, "interface");
	json_t *kept = json_object();

	base64_encode(text, strlen(text), &bytes);
	put_summaries(kept, config);
	json_put_str(kept, "Name", json_str_at(delegate, "name"));
	/*
	 * Without a request Multus numbers as we do; the first one is called as the runtime says.
	 */
	if (position == 0)
		interface = json_str_at(delegate, "requests", "interface");
	if (!str_eq(interface, numbered))
		json_put_str(kept, "ifnameRequest", interface);
	json_put_str(kept, "macRequest", json_str_at(delegate, "requests", "mac"));
	json_put_str(kept, "infinibandGUIDRequest",
		     json_str_at(delegate, "requests", "infinibandGUID"));
	json_put(kept, "ipRequest", json_deep_copy(json_at(delegate, "requests", "ips")));
	json_put(kept, "default-route", json_deep_copy(json_at(delegate, "defaultRoute")));
	json_put_bool(kept, "IsFilterV4Gateway", false);
	json_put_bool(kept, "IsFilterV6Gateway", false);
	json_put_str(kept, "deviceID",
		     json_str_or(json_at(delegate, "capabilities", "deviceID"),
				 json_str_at(delegate, "deviceID")));
	json_put_str(kept, "resourceName", json_str_at(delegate, "resourceName"));
	json_put_str(kept, "Bytes", strbuf_str(&bytes));
	return kept;
}

json_t *multus_state_write(const json_t *delegates)
{
	json_t *state = json_array(), *delegate;
	size_t i;

	json_array_foreach (delegates, i, delegate)
		json_array_append_new(state, state_of_delegate(delegate, i));
	return state;
}

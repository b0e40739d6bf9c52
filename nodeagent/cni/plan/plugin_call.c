// SPDX-License-Identifier: Apache-2.0
/*
 * Around one plugin: what it gets before it runs, what its output means afterwards. meta_run.c asks
 * for stdin, meta_call.c runs the program in between and brings its output back.
 */
#include "nodeagent/cni/plan/plugin_call.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/result.h"

/* CNI's code for "try again later". */
#define TRY_AGAIN_LATER 11

/* ---- CNI_ARGS -------------------------------------------------------------------------------- */

/* Who the pod is: the keys that Kubernetes' runtimes send. */
static const char *const pod_keys[] = {"IgnoreUnknown", "K8S_POD_NAMESPACE", "K8S_POD_NAME",
				       "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID"};

/*
 * The runtime's pair as it came, unless plugins would refuse it, or it would hide who the pod is.
 */
static bool is_kept(const char *pair)
{
	const char *equal = strchr(pair, '=');

	if (!equal || equal == pair || strchr(equal + 1, '='))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(pod_keys); i++)
		if (!equal[1] && str_starts(pair, pod_keys[i]) &&
		    strlen(pod_keys[i]) == (size_t)(equal - pair))
			return false;
	return true;
}

char *cni_args_for(const char *runtime_args, const char *container_id, const json_t *pod,
		   const char *mac, const json_t *ips)
{
	auto_strbuf struct strbuf out = {0};
	auto_free char *copy = str_dup(runtime_args ? runtime_args : "");
	auto_free char *uid = cni_args_value(runtime_args, "K8S_POD_UID");
	char *rest = copy, *pair;
	json_t *ip;
	size_t i;

	if (!pod)
		return str_dup("");
	strbuf_addf(&out,
		    "IgnoreUnknown=true;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;"
		    "K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
		    json_namespace(pod), json_name(pod), container_id,
		    str_empty(uid) ? json_uid(pod) : uid);
	while ((pair = strsep(&rest, ";")))
		if (is_kept(pair))
			strbuf_addf(&out, ";%s", pair);
	if (!str_empty(mac))
		strbuf_addf(&out, ";MAC=%s", mac);
	json_array_foreach (ips, i, ip)
		strbuf_addf(&out, "%s%s", i ? "," : ";IP=", json_string_value(ip));
	return strbuf_take(&out);
}

/* ---- stdin ----------------------------------------------------------------------------------- */

static const json_t *plugin_at(const json_t *delegate, size_t plugin)
{
	assert(plugin < delegate_plugins(delegate));
	return json_array_get(json_at(delegate, "config", "plugins"), plugin);
}

size_t delegate_plugins(const json_t *delegate)
{
	return json_array_size(json_at(delegate, "config", "plugins"));
}

const char *delegate_plugin_type(const json_t *delegate, size_t plugin)
{
	return json_str_or(json_at(plugin_at(delegate, plugin), "type"), "");
}

static const char *version_of(const json_t *delegate)
{
	return json_str_or(json_at(delegate, "config", "cniVersion"), "");
}

/* What the plugin declares of what there is: a capability may also be declared and switched off. */
static void put_runtime_config(json_t *stdin_object, const json_t *capabilities)
{
	const json_t *declared = json_at(stdin_object, "capabilities");
	json_auto_t *config = json_object();
	const char *key;
	json_t *value;

	json_each (declared, key, value)
		if (json_is_true(value) && json_object_get(capabilities, key))
			json_put(config, key, json_deep_copy(json_object_get(capabilities, key)));
	if (json_object_size(config) > 0)
		json_object_set(stdin_object, "runtimeConfig", config);
	else
		json_object_del(stdin_object, "runtimeConfig");
}

/*
 * A result of another version than the delegate's, in that one: plugins read no other. Returns new;
 * NULL with err as result_read().
 */
static json_t *in_version(const json_t *result, const char *version, struct err *err)
{
	json_auto_t *read = NULL;

	if (!result_version_is_known(version) || str_eq(json_str_at(result, "cniVersion"), version))
		return json_incref((json_t *)result);
	return result_read(result, version, &read, err) < 0 ? NULL : result_write(read, version);
}

/*
 * Returns new, or NULL. DEL takes down what it finds when it has none; one that the plugin cannot
 * read would keep the sandbox for ever.
 */
static json_t *previous_for(const json_t *delegate, const char *command, const json_t *previous)
{
	const char *version = version_of(delegate);
	bool is_del = str_eq(command, "DEL");
	json_auto_t *checked = NULL;
	struct err err = {0};
	json_t *read;

	if (!previous || (is_del && !cni_version_at_least(version, 0, 4)))
		return NULL;
	if (is_del && result_read(previous, version, &checked, &err) < 0)
		return NULL;
	read = in_version(previous, version, &err);
	return read || is_del ? read : json_deep_copy(previous);
}

json_t *delegate_stdin(const json_t *delegate, size_t plugin, const char *command,
		       const json_t *previous)
{
	json_t *object = json_deep_copy(plugin_at(delegate, plugin));

	json_put_str(object, "cniVersion", version_of(delegate));
	json_put_str(object, "name", json_str_at(delegate, "config", "name"));
	put_runtime_config(object, json_at(delegate, "capabilities"));
	json_object_del(object, "prevResult");
	json_put(object, "prevResult", previous_for(delegate, command, previous));
	return object;
}

/* Lists in the field have the switch as text, too. */
static bool is_on(const json_t *value)
{
	return json_is_true(value) || str_eq(json_string_value(value), "true");
}

bool delegate_has_command(const json_t *delegate, const char *command)
{
	if (str_eq(command, "CHECK"))
		return cni_version_at_least(version_of(delegate), 0, 4) &&
		       !is_on(json_at(delegate, "config", "disableCheck"));
	if (str_eq(command, "GC"))
		return cni_version_at_least(version_of(delegate), 1, 1) &&
		       !is_on(json_at(delegate, "config", "disableGC"));
	if (str_eq(command, "STATUS"))
		return cni_version_at_least(version_of(delegate), 1, 1);
	return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

json_t *delegate_result(const json_t *delegate, const char *text, size_t len, struct err *err)
{
	json_auto_t *result = NULL, *printed = NULL;
	const char *version;

	if (len > CNI_RESULT_MAX) {
		err_set(err, ERR_HOST, "PluginAnswer", "the result is larger than %u bytes",
			CNI_RESULT_MAX);
		return NULL;
	}
	printed = json_parse(text, len, err);
	if (!json_is_object(printed)) {
		err_set(err, ERR_HOST, "PluginAnswer",
			"what it printed is no result: \"%.64s\"; look at its log", text);
		return NULL;
	}
	version = version_of(delegate);
	if (!*json_str_or(json_at(printed, "cniVersion"), ""))
		json_put_str(printed, "cniVersion", *version ? version : "0.1.0");
	result = in_version(printed, version, err);
	if (!result)
		return NULL;
	/*
	 * Before 1.0.0 Go's plugins print it always, and readers of caches expect it; since then,
	 * never an empty one.
	 */
	if (!cni_version_at_least(json_str_at(result, "cniVersion"), 1, 0))
		(void)json_need_object(result, "dns");
	else if (json_object_size(json_at(result, "dns")) == 0)
		json_object_del(result, "dns");
	return json_incref(result);
}

static bool is_blank(const char *text)
{
	return !text || !text[strspn(text, " \t\r\n")];
}

int delegate_failure(const json_t *delegate, size_t plugin, const char *command, int exit_status,
		     const char *out, const char *errors, struct err *err)
{
	const char *type = delegate_plugin_type(delegate, plugin);
	const char *name = json_str_or(json_at(delegate, "name"), "");
	const char *interface = json_str_or(json_at(delegate, "interface"), "");
	json_auto_t *said = is_blank(out) ? NULL : json_parse(out, strlen(out), NULL);
	const char *message = json_str_or(json_at(said, "msg"), "");
	const char *details = json_str_or(json_at(said, "details"), "");
	/* The runtime calls DEL until it succeeds, and the sandbox stays as long. */
	const char *what = str_eq(command, "DEL") ? "DEL fails, and is tried until what it says is "
						    "mended"
						  : command;
	enum err_class class = ERR_HOST;

	if (json_integer_value(json_at(said, "code")) == TRY_AGAIN_LATER)
		class = ERR_TRANSIENT;
	if (*message)
		return err_set(err, class, "PluginFailed", "network %.128s (%s): %s %s: %s%s%s",
			       name, interface, type, what, message, *details ? "; " : "", details);
	if (!is_blank(out) || !is_blank(errors))
		return err_set(err, class, "PluginFailed", "network %.128s (%s): %s %s: %.256s",
			       name, interface, type, what, is_blank(out) ? errors : out);
	return err_set(
		err, class, "PluginFailed",
		"network %.128s (%s): %s %s: it ended without a word, exit status %d; look at the "
		"log of the plugin",
		name, interface, type, what, exit_status);
}

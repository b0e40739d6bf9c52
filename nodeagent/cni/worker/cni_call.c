// SPDX-License-Identifier: Apache-2.0
/*
 * A call is read in the server, from the plugin's message, and once more in the worker, from what
 * the server sends: the same checks both times. Between plugin_connection.c and attachment.c.
 */
#include "nodeagent/cni/worker/cni_call.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/result.h"

enum {
	IFNAME_MAX = 15,
	/* It is part of a file's name. */
	CONTAINER_MAX = 200,
	NETWORK_MAX = 256,
};

static const char *const commands[CALL_COMMANDS] = {
	[CALL_ADD] = "ADD", [CALL_CHECK] = "CHECK",   [CALL_DEL] = "DEL",
	[CALL_GC] = "GC",   [CALL_STATUS] = "STATUS",
};

const char *cni_command_name(enum cni_command command)
{
	return command < CALL_COMMANDS ? commands[command] : "?";
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Letters, digits, "_.-", the first of them a letter or digit. */
static bool is_name(const char *s, size_t max)
{
	size_t len = strlen(s);

	if (len == 0 || len > max || !name_is_alnum(s[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!name_is_alnum(s[i]) && !strchr("_.-", s[i]))
			return false;
	return true;
}

bool cni_call_is_container(const char *name)
{
	return name && is_name(name, CONTAINER_MAX);
}

static bool is_ifname(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= IFNAME_MAX && !str_eq(s, ".") && !str_eq(s, "..") &&
	       strcspn(s, "/: \t\n\v\f\r") == len;
}

static int bad_environment(struct err *err, const char *name, const char *value)
{
	return err_set(err, ERR_INVALID, "BadEnvironment", "%s: invalid value \"%s\"", name, value);
}

/*
 * "A=B;C=D"; a key that comes twice has its last value, as Multus sends them. What has no "=" is
 * nobody's.
 */
static json_t *read_args(const char *text)
{
	json_t *args = json_object();

	while (*text) {
		size_t len = strcspn(text, ";");
		auto_free char *pair = str_ndup(text, len);
		char *equals = strchr(pair, '=');

		if (equals) {
			*equals = '\0';
			json_put_str(args, pair, equals + 1);
		}
		text += len + (text[len] == ';');
	}
	return args;
}

/* ---- what came ------------------------------------------------------------------------------- */

/* Names are keys of our records, so they are UTF-8; others than ASCII are nobody's. */
static bool is_ascii(const char *name)
{
	while (*name > ' ' && *name <= '~')
		name++;
	return *name == '\0';
}

static void read_fields(const struct wire_message *message, struct cni_call *call,
			struct strbuf *config)
{
	struct wire_field field;
	size_t at = 0;

	while (wire_next(message, &at, &field)) {
		auto_free char *text = str_ndup((const char *)field.data, field.len);
		char *equals = strchr(text, '=');

		if (field.tag == WIRE_NAME && !call->plugin)
			call->plugin = take_ptr(text);
		else if (field.tag == WIRE_STDIN)
			strbuf_add(config, field.data, field.len);
		else if (field.tag == WIRE_NETNS_ERROR)
			call->netns_errno = (int)wire_number(&field, 0);
		if (field.tag != WIRE_ENV || !equals)
			continue;
		*equals = '\0';
		if (is_ascii(text))
			json_put_str(call->env, text, equals + 1);
	}
}

static const char *variable(const struct cni_call *call, const char *name)
{
	return json_str_or(json_object_get(call->env, name), "");
}

static int read_command(struct cni_call *call, struct err *err)
{
	const char *text = variable(call, "CNI_COMMAND");

	for (size_t i = 0; i < CALL_COMMANDS; i++) {
		if (!str_eq(text, commands[i]))
			continue;
		call->command = (enum cni_command)i;
		return 0;
	}
	return err_set(err, ERR_INVALID, "BadEnvironment", "unknown CNI_COMMAND: %s", text);
}

static bool is_of_a_container(const struct cni_call *call)
{
	return call->command == CALL_ADD || call->command == CALL_CHECK ||
	       call->command == CALL_DEL;
}

/* All that is missing in one message. */
static int check_environment(const struct cni_call *call, struct err *err)
{
	auto_strbuf struct strbuf missing = {0};

	if (!is_of_a_container(call))
		return 0;
	if (*call->container == '\0')
		strbuf_adds(&missing, ", CNI_CONTAINERID");
	if (*call->netns_path == '\0' && call->command != CALL_DEL)
		strbuf_adds(&missing, ", CNI_NETNS");
	if (*call->ifname == '\0')
		strbuf_adds(&missing, ", CNI_IFNAME");
	if (missing.len > 0)
		return err_set(err, ERR_INVALID, "BadEnvironment",
			       "required environment variables missing: %s", missing.data + 2);
	if (!cni_call_is_container(call->container))
		return bad_environment(err, "CNI_CONTAINERID", call->container);
	return is_ifname(call->ifname) ? 0 : bad_environment(err, "CNI_IFNAME", call->ifname);
}

static int check_version(const struct cni_call *call, struct err *err)
{
	const char *since = call->command == CALL_CHECK ? "0.4.0" : "1.1.0";

	if (!result_version_is_known(call->version))
		return err_set(
			err, ERR_INVALID, "BadCniVersion",
			"incompatible CNI versions: the configuration says \"%s\", this plugin "
			"speaks %s to %s",
			call->version, result_versions[0], result_versions[result_n_versions - 1]);
	if (call->command == CALL_ADD || call->command == CALL_DEL ||
	    result_version_is_at_least(call->version, since))
		return 0;
	return err_set(err, ERR_INVALID, "BadCniVersion",
		       "%s came with version %s; the configuration says %s",
		       cni_command_name(call->command), since, call->version);
}

static int check_config(const struct cni_call *call, struct err *err)
{
	if (check_version(call, err) < 0)
		return -1;
	if (!is_name(call->network, NETWORK_MAX))
		return err_set(
			err, ERR_INVALID, "BadNetworkName",
			"the network's name \"%s\" must be letters, digits, '_', '.', '-' and "
			"begin with a letter or digit",
			call->network);
	return 0;
}

static int check_netns(const struct cni_call *call, struct err *err)
{
	if (call->netns >= 0 || (call->command != CALL_ADD && call->command != CALL_CHECK))
		return 0;
	return err_set(err, ERR_INVALID, "BadNetns", "cannot open the network namespace %s: %s",
		       call->netns_path,
		       call->netns_errno ? strerror(call->netns_errno) : "no descriptor came");
}

static void find_pod(struct cni_call *call)
{
	call->args = read_args(variable(call, "CNI_ARGS"));
	call->pod_namespace = json_str_at(call->args, "K8S_POD_NAMESPACE");
	call->pod_name = json_str_at(call->args, "K8S_POD_NAME");
	call->pod_uid = json_str_at(call->args, "K8S_POD_UID");
}

/* From here on each key has the one spelling that readers look for. */
static void fold_keys(struct cni_call *call)
{
	json_t *folded = config_keys_fold(call->config, call->plugin);

	json_decref(call->config);
	call->config = folded;
}

/* ---- garbage collection ---------------------------------------------------------------------- */

/*
 * The key of SPEC.md 1.1 as it is now, and the one of its first release, which runtimes that were
 * written to it send alone (containernetworking/cni#1103; libcni sends both).
 */
static const char *const valid_keys[] = {"cni.dev/valid-attachments", "cni.dev/attachments"};

static int check_valid_list(const char *key, const json_t *list, struct err *err)
{
	const json_t *entry;
	size_t i;

	if (!json_is_array(list))
		return err_set(err, ERR_INVALID, "BadField",
			       "%s is no list: GC takes nothing away without one", key);
	json_array_foreach ((json_t *)list, i, entry)
		if (!json_str_at(entry, "containerID") || !json_str_at(entry, "ifname"))
			return err_set(err, ERR_INVALID, "BadField",
				       "%s[%zu] has no containerID or no ifname: GC takes nothing "
				       "away while a valid attachment may be missing",
				       key, i);
	return 0;
}

static int check_gc(const struct cni_call *call, struct err *err)
{
	bool has_list = false;

	if (call->command != CALL_GC)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(valid_keys); i++) {
		const json_t *list = json_object_get(call->config, valid_keys[i]);

		if (list && check_valid_list(valid_keys[i], list, err) < 0)
			return -1;
		has_list = has_list || list;
	}
	return has_list ? 0
			: err_set(err, ERR_INVALID, "BadField",
				  "%s is missing: GC takes nothing away without a list of valid "
				  "attachments",
				  valid_keys[0]);
}

bool cni_call_is_valid(const struct cni_call *call, const char *container, const char *ifname)
{
	const json_t *entry;
	size_t i;

	for (size_t k = 0; k < ARRAY_LEN(valid_keys); k++)
		json_array_foreach (json_object_get(call->config, valid_keys[k]), i, entry)
			if (str_eq(json_str_at(entry, "containerID"), container) &&
			    str_eq(json_str_at(entry, "ifname"), ifname))
				return true;
	return false;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int read_environment(struct cni_call *call, struct err *err)
{
	find_pod(call);
	call->container = variable(call, "CNI_CONTAINERID");
	call->ifname = variable(call, "CNI_IFNAME");
	call->netns_path = variable(call, "CNI_NETNS");
	if (!call->plugin)
		return err_set(err, ERR_INVALID, "BadEnvironment", "the plugin has no name");
	return read_command(call, err) < 0 ? -1 : check_environment(call, err);
}

static int read_config(struct cni_call *call, struct err *err)
{
	fold_keys(call);
	call->version = result_version_of(call->config);
	call->network = json_str_or(json_at(call->config, "name"), "");
	if (check_config(call, err) < 0 || check_gc(call, err) < 0)
		return -1;
	return check_netns(call, err);
}

int cni_call_read(const struct wire_message *message, int netns, struct cni_call *ret,
		  struct err *err)
{
	auto_strbuf struct strbuf config = {0};
	struct err why = {0};

	*ret = (struct cni_call){
		.netns = netns, .env = json_object(), .version = "", .network = ""};
	if (message->kind == WIRE_CALL)
		read_fields(message, ret, &config);
	if (read_environment(ret, err) < 0)
		return -1;
	ret->config = json_parse(strbuf_str(&config), config.len, &why);
	if (!json_is_object(ret->config))
		return err_set(err, ERR_INVALID, "BadJson",
			       "the network configuration on stdin is no JSON object: %s",
			       why.class ? why.text : "it is another value");
	return read_config(ret, err);
}

json_t *cni_call_write(const struct cni_call *call)
{
	json_t *text = json_object();

	json_put_str(text, "plugin", call->plugin);
	json_put(text, "env", json_incref(call->env));
	json_put(text, "config", json_incref(call->config));
	json_put_int(text, "netnsErrno", call->netns_errno);
	return text;
}

int cni_call_read_json(const json_t *text, int netns, struct cni_call *ret, struct err *err)
{
	const json_t *value;
	const char *name;

	*ret = (struct cni_call){.netns = netns,
				 .netns_errno =
					 (int)json_integer_value(json_at(text, "netnsErrno")),
				 .env = json_object(),
				 .version = "",
				 .network = ""};
	if (json_str_at(text, "plugin"))
		ret->plugin = str_dup(json_str_at(text, "plugin"));
	json_each (json_at(text, "env"), name, value)
		/* LD_PRELOAD and the like would be a program's that is run for the call. */
		if (is_ascii(name) && str_starts(name, "CNI_") && json_is_string(value))
			json_put(ret->env, name, json_incref((json_t *)value));
	if (read_environment(ret, err) < 0)
		return -1;
	ret->config = json_incref(json_at(text, "config"));
	if (!json_is_object(ret->config))
		return err_set(err, ERR_BUG, "BadJob", "the server sent a call without config");
	return read_config(ret, err);
}

void cni_call_lose_netns(struct cni_call *call)
{
	if (call->netns >= 0)
		(void)close(call->netns);
	call->netns = -1;
	json_put_str(call->env, "CNI_NETNS", "");
	call->netns_path = variable(call, "CNI_NETNS");
}

void cni_call_share(const struct cni_call *call, struct cni_call *ret)
{
	*ret = *call;
	ret->plugin = str_dup(call->plugin);
	json_incref(ret->env);
	json_incref(ret->config);
	json_incref(ret->args);
	ret->netns = -1;
}

void cni_call_done(struct cni_call *call)
{
	free(call->plugin);
	json_decref(call->env);
	json_decref(call->config);
	json_decref(call->args);
	/* Zeroed, it has none. */
	if (call->netns > 0)
		(void)close(call->netns);
	*call = (struct cni_call){.netns = -1};
}

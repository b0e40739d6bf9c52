// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of an interface and its namespace: read what is asked for, list the steps, compare.
 * nodeagent/cni/execute/tuning_run.c looks and acts.
 */
#include "nodeagent/cni/plan/tuning.h"

#include <assert.h>
#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/config_keys.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/wanted_mac.h"

#define NAMESPACE "net/"
#define IFNAME    "IFNAME"

/* Flags of a link that are settings here; the others of a link are numbers. */
static const struct {
	const char *key;
	unsigned int flag;
} flags[] = {{"promisc", LOOK_PROMISC}, {"allmulti", LOOK_ALLMULTI}};

static const struct {
	const char *key, *member;
} numbers[] = {{"mtu", "mtu"}, {"txQLen", "txqlen"}};

void tuning_config_done(struct tuning_config *config)
{
	json_decref(config->sysctls);
	json_decref(config->names);
	json_decref(config->link);
	*config = (struct tuning_config){0};
}

/* ---- configuration --------------------------------------------------------------------------- */

/* "net.ipv4.conf.IFNAME.rp_filter": new, its path below /proc/sys; NULL: not one of a namespace. */
static char *path_of(const char *name, const char *ifname)
{
	auto_free char *text = str_dup(name);
	auto_strbuf struct strbuf path = {0};
	char *at, *rest = text, *part;

	for (at = text; *at; at++)
		if (*at == '.')
			*at = '/';
	while ((part = strsep(&rest, "/"))) {
		const char *found = strstr(part, IFNAME);

		if (!*part)
			continue;
		if (path.len)
			strbuf_adds(&path, "/");
		if (found)
			strbuf_addf(&path, "%.*s%s%s", (int)(found - part), part, ifname,
				    found + strlen(IFNAME));
		else
			strbuf_adds(&path, part);
	}
	/* Names have no dots any more; that of an interface may. */
	return str_starts(strbuf_str(&path), NAMESPACE) && !strstr(strbuf_str(&path), "..")
		       ? strbuf_take(&path)
		       : NULL;
}

static int read_sysctls(const json_t *list, const char *ifname, struct tuning_config *ret,
			struct err *err)
{
	const char *name;
	json_t *value;

	if (list && !json_is_object(list))
		return err_set(err, ERR_INVALID, "BadField",
			       "tuning: sysctl must be an object of names and values");
	json_each (list, name, value) {
		auto_free char *path = path_of(name, ifname);

		if (!path)
			return err_set(err, ERR_INVALID, "BadField",
				       "tuning: sysctl \"%.64s\" must be one below net.", name);
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, "BadField",
				       "tuning: sysctl %.64s must have a value that is a string, "
				       "in quotes",
				       name);
		json_put(ret->sysctls, path, json_incref(value));
		json_put_str(ret->names, path, name);
	}
	if (json_object_size(ret->sysctls) > TUNING_SYSCTLS_MAX)
		return err_set(err, ERR_INVALID, "BadField",
			       "tuning: sysctl has more than %d entries", TUNING_SYSCTLS_MAX);
	return 0;
}

/* What is zero is not asked for, but a queue without a length, and all-multicast that is off. */
static int read_link(const json_t *config, struct tuning_config *ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const char *key = numbers[i].key;
		int64_t value = 0;

		if (config_keys_number(config, "tuning", key, INT32_MAX, &value, err))
			return -1;
		if (value || (json_at(config, key) && str_eq(key, "txQLen")))
			json_put_int(ret->link, numbers[i].member, value);
	}
	if (json_is_true(json_at(config, "promisc")))
		json_put_bool(ret->link, "promisc", true);
	if (json_at(config, "allmulti"))
		json_put_bool(ret->link, "allmulti", json_is_true(json_at(config, "allmulti")));
	return 0;
}

int tuning_config_read(const json_t *config, const char *args, const char *ifname,
		       struct tuning_config *ret, struct err *err)
{
	auto_tuning_config struct tuning_config read = {
		.sysctls = json_object(), .names = json_object(), .link = json_object()};
	auto_free char *of_args = cni_args_value(args, "MAC");
	json_auto_t *folded = NULL, *of_pod = NULL, *merged = NULL;
	const char *name;
	json_t *value;

	if (config_keys_read(config, "tuning", &folded, err) ||
	    config_keys_read(json_at(folded, "args", "cni"), "tuning", &of_pod, err))
		return -1;
	const char *const macs[] = {json_str_at(folded, "mac"), of_args,
				    json_str_at(folded, "runtimeConfig", "mac"),
				    json_str_at(of_pod, "mac")};
	/* The pod's go before the network's, sysctls one by one. */
	merged = json_copy(folded);
	json_each (of_pod, name, value)
		json_put(merged, name, json_incref(value));
	if (read_sysctls(json_at(folded, "sysctl"), ifname, &read, err) ||
	    read_sysctls(json_at(of_pod, "sysctl"), ifname, &read, err) ||
	    read_link(merged, &read, err) ||
	    wanted_mac_last("tuning", macs, ARRAY_LEN(macs), read.mac, err))
		return -1;
	*ret = read;
	read = (struct tuning_config){0};
	return 0;
}

/* 1: the line allows it, 0: it does not, -1 with err: it is not an expression. */
static int line_allows(const char *line, size_t number, const char *name, struct err *err)
{
	regex_t expression;
	int rc = regcomp(&expression, line, REG_EXTENDED | REG_NOSUB);

	if (rc != 0)
		return err_set(err, ERR_INVALID, "BadField",
			       "tuning: line %zu of /" TUNING_ALLOW_LIST
			       " must be an extended regular expression",
			       number);
	rc = regexec(&expression, name, 0, NULL, 0);
	regfree(&expression);
	return rc == 0;
}

static int check_name(const char *text, const char *name, struct err *err)
{
	auto_free char *lines = str_dup(text);
	char *rest = lines, *line;

	for (size_t number = 1; (line = strsep(&rest, "\n")); number++) {
		int rc = *(line = str_trim(line)) ? line_allows(line, number, name, err) : 0;

		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return err_set(err, ERR_INVALID, "BadField",
		       "tuning: sysctl %.64s is not among those that /" TUNING_ALLOW_LIST
		       " of the node allows",
		       name);
}

int tuning_check_allowed(const struct tuning_config *config, const char *text, struct err *err)
{
	const char *path;
	json_t *name;

	if (!text)
		return 0;
	json_each (config->names, path, name)
		if (check_name(text, json_string_value(name), err))
			return -1;
	return 0;
}

/* ---- ADD ------------------------------------------------------------------------------------- */

/* The members of a link that the configuration sets, as they are now; new. */
static json_t *settings_of(const struct tuning_config *config, const json_t *link)
{
	json_t *settings = json_object();

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (json_at(config->link, flags[i].key))
			json_put_bool(settings, flags[i].key,
				      look_number(link, "flags") & flags[i].flag);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (json_at(config->link, numbers[i].member))
			json_put_int(settings, numbers[i].member,
				     look_number(link, numbers[i].member));
	return settings;
}

void tuning_plan(const struct tuning_config *config, const json_t *link, const json_t *sysctls,
		 json_t *steps)
{
	const char *ifname = json_str_at(link, "name"), *path;
	json_t *value, *step;

	assert(config->sysctls && config->link);
	json_each (config->sysctls, path, value) {
		step = steps_add(steps, "pod", "sysctl", NULL);
		json_put_str(step, "path", path);
		json_put(step, "value", json_incref(value));
		json_put(step, "was", json_incref(json_object_get(sysctls, path)));
	}
	if (config->mac[0] && !str_eq(config->mac, json_str_at(link, "mac"))) {
		step = steps_add(steps, "pod", "mac", ifname);
		json_put_str(step, "mac", config->mac);
		json_put_str(step, "was", json_str_at(link, "mac"));
	}
	if (json_object_size(config->link) == 0)
		return;
	step = steps_add(steps, "pod", "link", ifname);
	json_object_update(step, config->link);
	json_put(step, "was", settings_of(config, link));
}

/*
 * Take away from a step back what an earlier one sets to what was before that. True: nothing is
 * left of it.
 */
static bool is_covered(json_t *step, const json_t *earlier)
{
	static const char *const place[] = {"in", "do", "dev"};
	const char *key;
	json_t *value;

	if (!str_eq(json_str_at(step, "do"), json_str_at(earlier, "do")))
		return false;
	if (!str_eq(json_str_at(step, "do"), "link"))
		return json_same(json_at(step, "path"), json_at(earlier, "path"));
	json_each (earlier, key, value)
		(void)json_object_del(step, key);
	for (size_t i = 0; i < ARRAY_LEN(place); i++)
		json_put_str(step, place[i], json_str_at(earlier, place[i]));
	return json_object_size(step) == ARRAY_LEN(place);
}

json_t *tuning_undo(const json_t *steps, const json_t *earlier)
{
	json_auto_t *undo = steps_undo(steps);
	json_t *all = json_array(), *step, *other;
	size_t i, k;

	json_array_foreach (undo, i, step) {
		bool covered = false;

		json_array_foreach (earlier, k, other)
			covered = covered || is_covered(step, other);
		if (!covered)
			json_array_append(all, step);
	}
	json_array_extend(all, (json_t *)earlier);
	return all;
}

void tuning_put_mac(const struct tuning_config *config, const char *ifname, json_t *result)
{
	size_t i;
	json_t *interface;

	json_array_foreach (json_at(result, "interfaces"), i, interface)
		if (config->mac[0] && str_eq(json_str_at(interface, "name"), ifname))
			json_put_str(interface, "mac", config->mac);
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

/* The kernel prints tabs between numbers. */
static bool is_same_value(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(isspace((unsigned char)*a) && isspace((unsigned char)*b)))
			return false;
	return *a == *b;
}

int tuning_check(const struct tuning_config *config, const json_t *link, const json_t *sysctls,
		 struct err *err)
{
	json_auto_t *settings = settings_of(config, link);
	const char *ifname = json_str_or(json_at(link, "name"), ""), *name;
	json_t *value;

	json_each (config->sysctls, name, value) {
		const char *is = json_string_value(json_object_get(sysctls, name));

		if (is && !is_same_value(is, json_string_value(value)))
			return interface_not_as_added(
				err, "tuning: %.64s is %.64s, the network says %.64s", name, is,
				json_string_value(value));
	}
	if (config->mac[0] && !str_eq(config->mac, json_str_at(link, "mac")))
		return interface_not_as_added(err, "tuning: %s has MAC %s, the network says %s",
					      ifname, json_str_or(json_at(link, "mac"), "none"),
					      config->mac);
	json_each (config->link, name, value) {
		auto_free char *is = json_text(json_object_get(settings, name));
		auto_free char *wanted = json_text(value);

		if (!str_eq(is, wanted))
			return interface_not_as_added(err,
						      "tuning: %s of %s is %s, the network says %s",
						      name, ifname, is, wanted);
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The annotation's two grammars become one list, checked element by element. Injection, IPAM and
 * the node's meta plugin all read it here, so that they number interfaces alike.
 */
#include "reconcilers/core/networks.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"

#define BAD "BadNetworks"

/* Multus' pattern for namespaces and names in the short grammar: [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_short_name(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
	       text[0] != '-' && text[len - 1] != '-';
}

/* What is being read: the list so far, and what its elements get that say less. */
struct reading {
	json_t *list;
	const char *ns;
	size_t first;
};

/*
 * Put what the standard fills in, and take the element only if its interface can exist. Takes
 * network.
 */
static int add(const struct reading *to, json_t *network, struct err *err)
{
	json_auto_t *own = network;
	/* The older key is what the first version of the standard had. */
	const char *interface = json_str_or(json_at(own, "interface"),
					    json_str_or(json_at(own, "interfaceRequest"), ""));
	const char *fault = *interface ? name_interface_fault(interface) : NULL;
	size_t position = json_array_size(to->list) + 1;

	if (fault)
		return err_set(err, ERR_INVALID, BAD, "network %zu: interface \"%.64s\" %s",
			       position, interface, fault);
	if (*interface)
		json_put(own, "interface", json_string(interface));
	else
		json_put(own, "interface", json_fmt("net%zu", to->first + position - 1));
	if (!*json_str_or(json_at(own, "namespace"), ""))
		json_put_str(own, "namespace", to->ns);
	json_array_append(to->list, own);
	return 0;
}

/* "02:00:00:00:00:01", "02-00-00-00-00-01": pairs of hexadecimal digits, `octets` of them. */
static bool is_octets(const char *text, size_t octets)
{
	char between = strchr(text, '-') ? '-' : ':';

	for (size_t i = 0; i < octets; i++, text += 3) {
		if (str_hex_digit(text[0]) < 0 || str_hex_digit(text[1]) < 0)
			return false;
		if (text[2] != (i + 1 < octets ? between : '\0'))
			return false;
	}
	return true;
}

static int refuse_number(size_t n, struct err *err)
{
	return err_set(err, ERR_INVALID, "TooLarge", "%zu networks, a pod can have at most %d", n,
		       LIMIT_NETWORKS);
}

/* What an element may have. JSON_NULL: of any type; plugins check it. */
static const struct member {
	const char *name;
	json_type type;
} members[] = {
	{"name", JSON_STRING},         {"namespace", JSON_STRING},
	{"interface", JSON_STRING},    {"interfaceRequest", JSON_STRING},
	{"mac", JSON_STRING},          {"infiniband-guid", JSON_STRING},
	{"deviceID", JSON_STRING},     {"ips", JSON_ARRAY},
	{"default-route", JSON_ARRAY}, {"cni-args", JSON_OBJECT},
	{"bandwidth", JSON_NULL},      {"portMappings", JSON_NULL},
};

static const struct member *member_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (strcasecmp(key, members[i].name) == 0)
			return &members[i];
	return NULL;
}

/*
 * The element with its members in the usual spelling, as Go's decoder reads them: keys in any case,
 * null is absent, of several spellings the last one counts. A namespace that is not read is
 * another network. Returns new, or NULL with err.
 */
static json_t *fold(const json_t *element, size_t position, struct err *err)
{
	json_auto_t *folded = json_object();
	const char *key;
	json_t *value;

	json_each (element, key, value) {
		const struct member *member = member_of(key);

		if (member && json_is_null(value))
			continue;
		if (member && member->type != JSON_NULL && json_typeof(value) != member->type) {
			err_set(err, ERR_INVALID, BAD, "network %zu: %s is %s, must be %s",
				position, member->name, json_type_words(value),
				member->type == JSON_STRING  ? "a string"
				: member->type == JSON_ARRAY ? "an array"
							     : "an object");
			return NULL;
		}
		json_object_set(folded, member ? member->name : key, value);
	}
	return json_incref(folded);
}

static int read_element(const struct reading *to, const json_t *raw, struct err *err)
{
	size_t position = json_array_size(to->list) + 1;
	json_auto_t *element = json_is_object(raw) ? fold(raw, position, err) : json_object();
	const char *mac = json_str_or(json_at(element, "mac"), "");
	const char *guid = json_str_or(json_at(element, "infiniband-guid"), "");

	if (!element)
		return -1;
	if (!*json_str_or(json_at(element, "name"), ""))
		return err_set(err, ERR_INVALID, BAD, "network %zu has no name", position);
	if (*mac && !is_octets(mac, 6) && !is_octets(mac, 8) && !is_octets(mac, 20))
		return err_set(err, ERR_INVALID, BAD,
			       "network %zu: mac \"%.64s\" is no MAC address", position, mac);
	if (*guid && !is_octets(guid, 8))
		return err_set(err, ERR_INVALID, BAD,
			       "network %zu: infiniband-guid \"%.64s\" must have eight "
			       "octets, as in "
			       "02:00:00:00:00:00:00:01",
			       position, guid);
	return add(to, json_incref(element), err);
}

static int read_json(const struct reading *to, const char *text, struct err *err)
{
	struct err place = {0};
	json_auto_t *elements = json_parse(text, strlen(text), &place);
	json_t *element;
	size_t i;

	if (!elements)
		return err_set(err, ERR_INVALID, BAD,
			       "\"%.64s%s\" is neither a JSON array of networks (%s) nor names "
			       "separated by commas",
			       text, strlen(text) > 64 ? "…" : "", place.text);
	if (!json_is_array(elements))
		return err_set(err, ERR_INVALID, BAD, "\"%.128s\" must be a JSON array of networks",
			       text);
	if (json_array_size(elements) > LIMIT_NETWORKS)
		return refuse_number(json_array_size(elements), err);
	json_array_foreach (elements, i, element)
		if (read_element(to, element, err) < 0)
			return -1;
	return 0;
}

static int read_short(const struct reading *to, char *item, struct err *err)
{
	char *slash = strchr(item, '/'), *at;
	const char *in = to->ns;
	json_t *network;

	if (strpbrk(item, STR_BLANKS))
		return err_set(err, ERR_INVALID, BAD,
			       "network %zu: \"%.64s\" has a blank within; separate networks by "
			       "commas",
			       json_array_size(to->list) + 1, item);
	if (slash) {
		*slash = '\0';
		in = item;
		item = slash + 1;
	}
	at = strchr(item, '@');
	if (at)
		*at = '\0';
	if (!is_short_name(item) || (slash && !is_short_name(in)) ||
	    (at && (!at[1] || strchr(at + 1, '@'))))
		return err_set(err, ERR_INVALID, BAD,
			       "network %zu must be [NAMESPACE/]NAME[@INTERFACE] of lower-case "
			       "letters, digits "
			       "and '-'; a name with dots needs the JSON form",
			       json_array_size(to->list) + 1);
	network = json_object();
	json_put_str(network, "name", item);
	json_put_str(network, "namespace", in);
	if (at)
		json_put_str(network, "interface", at + 1);
	return add(to, network, err);
}

static size_t count_commas(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

json_t *networks_parse_from(const char *text, const char *ns, size_t first, struct err *err)
{
	auto_free char *copy = NULL;
	json_auto_t *list = json_array();
	struct reading to = {list, ns, first};
	char *rest, *item;

	assert(text);
	if (limits_check_text(text, strlen(text), LIMIT_ANNOTATION_BYTES, err) < 0)
		return NULL;
	if (strpbrk(text, "[{\""))
		return read_json(&to, text, err) < 0 ? NULL : json_incref(list);
	if (strspn(text, " \t\r\n") == strlen(text))
		return json_incref(list);
	if (count_commas(text) >= LIMIT_NETWORKS) {
		(void)refuse_number(count_commas(text) + 1, err);
		return NULL;
	}
	rest = copy = str_dup(text);
	while ((item = strsep(&rest, ",")))
		if (read_short(&to, str_trim(item), err) < 0)
			return NULL;
	return json_incref(list);
}

json_t *networks_parse(const char *text, const char *ns, struct err *err)
{
	return networks_parse_from(text, ns, 1, err);
}

char *network_key(const json_t *network)
{
	return str_printf("%s/%s", json_str_or(json_at(network, "namespace"), ""),
			  json_str_or(json_at(network, "name"), ""));
}

static void add_master(json_t *masters, const json_t *plugin)
{
	const char *master = json_str_at(plugin, "master");

	if (!str_empty(master) && !json_list_has(masters, master))
		json_array_append_new(masters, json_string(master));
}

json_t *network_masters(const json_t *nad)
{
	const char *text = json_str_or(json_at(nad, "spec", "config"), "");
	json_auto_t *config = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, NULL);
	json_t *masters = json_array(), *plugin;
	size_t i;

	add_master(masters, config);
	json_array_foreach (json_at(config, "plugins"), i, plugin)
		add_master(masters, plugin);
	return masters;
}

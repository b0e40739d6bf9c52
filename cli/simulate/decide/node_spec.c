// SPDX-License-Identifier: Apache-2.0
/*
 * The text of --node, read from left to right: a name with at most one range, a colon, counts and
 * models. The CLI reads it before it starts anything; the nodes process makes hosts of the result.
 */
#include "cli/simulate/decide/node_spec.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* Of a label's value, which the name is too (kubernetes.io/hostname). */
#define NAME_MAX_LEN 63

struct range {
	char *prefix, *suffix;
	int64_t first, last;
	int width;   /* digits, with leading zeros */
	bool is_one; /* without a number */
};

static int bad(const char *text, const char *part, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "BadNode", "--node \"%.80s\": \"%.40s\": %s", text, part,
		       why);
}

static int read_range(const char *text, const char *name, struct range *ret, struct err *err)
{
	const char *open = strchr(name, '['), *close = strchr(name, ']');
	const char *dash = open ? strchr(open, '-') : NULL;
	auto_free char *first = NULL, *last = NULL;

	*ret = (struct range){0};
	if (!open && !close) {
		ret->prefix = str_dup(name);
		ret->suffix = str_dup("");
		ret->is_one = true;
		return 0;
	}
	if (!open || !close || close < open || !dash || dash > close || strchr(open + 1, '['))
		return bad(text, name, "the range must be [FIRST-LAST], such as gpu-[1-2]", err);
	first = str_ndup(open + 1, (size_t)(dash - open - 1));
	last = str_ndup(dash + 1, (size_t)(close - dash - 1));
	if (!str_to_int(first, 0, 999999, &ret->first) ||
	    !str_to_int(last, 0, 999999, &ret->last) || ret->last < ret->first)
		return bad(text, name,
			   "the range must go from a number to one that is not smaller, such as "
			   "[1-2]",
			   err);
	if (first[0] == '0' && strlen(first) > 1)
		ret->width = (int)strlen(first);
	ret->prefix = str_ndup(name, (size_t)(open - name));
	ret->suffix = str_dup(close + 1);
	return 0;
}

/* DNS label, RFC 1123. */
static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= NAME_MAX_LEN &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
	       name[len - 1] != '-';
}

static int unknown(const char *text, const char *model, const struct node_models *models,
		   struct err *err)
{
	auto_strbuf struct strbuf line = {0};

	strbuf_adds(&line, "unknown NIC or GPU; there are ");
	for (size_t i = 0; models->nics[i]; i++)
		strbuf_addf(&line, "%s%s", i ? ", " : "", models->nics[i]);
	strbuf_adds(&line, "; and GPUs ");
	for (size_t i = 0; models->gpus[i]; i++)
		strbuf_addf(&line, "%s%s", i ? ", " : "", models->gpus[i]);
	return bad(text, model, strbuf_str(&line), err);
}

static bool is_listed(const char *const *models, const char *model)
{
	for (; *models; models++)
		if (str_eq(*models, model))
			return true;
	return false;
}

/* COUNTxMODEL */
static int read_part(const char *text, const char *part, const struct node_models *models,
		     json_t *nics, json_t *gpus, struct err *err)
{
	const char *x = strchr(part, 'x');
	auto_free char *number = x ? str_ndup(part, (size_t)(x - part)) : NULL;
	json_t *list;
	int64_t count;

	if (!x || !str_to_int(number, 1, NODE_SPEC_NICS_MAX, &count))
		return bad(text, part,
			   "must be COUNTxMODEL with a count from 1 to 32, such as "
			   "8xconnectx-7",
			   err);
	if (!is_listed(models->nics, x + 1) && !is_listed(models->gpus, x + 1))
		return unknown(text, x + 1, models, err);
	list = is_listed(models->nics, x + 1) ? nics : gpus;
	while (count-- > 0)
		json_array_append_new(list, json_string(x + 1));
	if (json_array_size(nics) > NODE_SPEC_NICS_MAX)
		return bad(text, part, "a node has at most 32 NICs", err);
	if (json_array_size(gpus) > NODE_SPEC_GPUS_MAX)
		return bad(text, part, "a node has at most 16 GPUs", err);
	return 0;
}

static int read_parts(const char *text, const char *list, const struct node_models *models,
		      json_t *nics, json_t *gpus, struct err *err)
{
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");
		auto_free char *part = str_ndup(at, len);

		if (read_part(text, part, models, nics, gpus, err) < 0)
			return -1;
		at += len;
		if (!*at)
			break;
	}
	return json_array_size(nics) > 0 ? 0 : bad(text, list, "a node needs a NIC", err);
}

static int add_nodes(json_t *nodes, const char *text, const struct range *range, json_t *nics,
		     json_t *gpus, struct err *err)
{
	if ((int64_t)json_array_size(nodes) + range->last - range->first >= NODE_SPEC_NODES_MAX)
		return bad(text, range->prefix, "at most 5000 nodes can be simulated", err);
	for (int64_t i = range->first; i <= range->last; i++) {
		auto_free char *number = range->is_one
						 ? str_dup("")
						 : str_printf("%0*lld", range->width, (long long)i);
		auto_free char *name = str_printf("%s%s%s", range->prefix, number, range->suffix);

		if (!is_name(name))
			return bad(text, name,
				   "a node's name has up to 63 lower-case letters, digits and '-', "
				   "such as gpu-1",
				   err);
		json_array_append_new(nodes, json_pack("{s:s, s:O, s:O}", "name", name, "nics",
						       nics, "gpus", gpus));
	}
	return 0;
}

int node_spec_add(json_t *nodes, const char *text, const struct node_models *models,
		  struct err *err)
{
	const char *colon = strchr(text, ':');
	auto_free char *name = str_ndup(text, colon ? (size_t)(colon - text) : strlen(text));
	json_auto_t *nics = json_array(), *gpus = json_array(), *all = json_copy(nodes);
	struct range range;
	int code = -1;
	json_auto_t *seen = NULL;
	const json_t *node;
	size_t i;

	assert(json_is_array(nodes) && text && models);
	if (!colon)
		return bad(text, text,
			   "must be NAME:COUNTxMODEL[,COUNTxMODEL...], such as "
			   "gpu-[1-2]:8xconnectx-7",
			   err);
	if (read_range(text, name, &range, err) == 0 &&
	    read_parts(text, colon + 1, models, nics, gpus, err) == 0)
		code = add_nodes(all, text, &range, nics, gpus, err);
	free(range.prefix);
	free(range.suffix);
	if (code < 0)
		return -1;
	seen = json_object();
	json_array_foreach ((json_t *)all, i, node) {
		const char *own = json_str_at(node, "name");

		if (json_object_get(seen, own))
			return bad(text, own, "there is a node of this name already", err);
		json_put_bool(seen, own, true);
	}
	json_array_clear(nodes);
	json_array_extend(nodes, all);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The verdict about a link: worst cause first; a cause that is over still counts for a while, so
 * that a link on the edge does not come and go.
 */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/link_history.h"

/*
 * Errors: InfiniBand names 10^-12 as bit error rate, 360 errors an hour at 100 Gbit/s; a third of
 * it tells a cable that goes bad before it is out of range. Ethernet counts frames that forward
 * error correction could not save, of which a good link has a few a day.
 */
const struct link_limits link_limits_default = {
	.flaps = 3,
	.window_ms = 600000,
	.errors_ib = 120,
	.errors_eth = 36,
	.recover_ms = 600000,
	.lanes = 1,
};

int link_limits_read(const char *text, struct link_limits *ret, struct err *err)
{
	struct link_limits limits = *ret;
	const struct {
		const char *key;
		int64_t *value, min, max, unit;
	} keys[] = {
		{"flaps", &limits.flaps, 1, LINK_CHANGES_MAX / 2, 1},
		{"window", &limits.window_ms, 1, 86400, 1000},
		{"errors-ib", &limits.errors_ib, 1, INT32_MAX, 1},
		{"errors-eth", &limits.errors_eth, 1, INT32_MAX, 1},
		{"recover", &limits.recover_ms, 0, 86400, 1000},
		{"lanes", &limits.lanes, 0, 16, 1},
	};

	while (*text) {
		size_t len = strcspn(text, ","), i = 0;
		auto_free char *part = str_ndup(text, len);
		char *value = strchr(part, '=');
		int64_t n;

		if (value)
			*value++ = '\0';
		while (i < ARRAY_LEN(keys) && !str_eq(part, keys[i].key))
			i++;
		if (!value || i == ARRAY_LEN(keys))
			return err_set(err, ERR_INVALID, "BadFlag",
				       "--link-limits: \"%.40s\" is not one of flaps=, window=, "
				       "errors-ib=, errors-eth=, recover=, lanes=",
				       part);
		if (!str_to_int(value, keys[i].min, keys[i].max, &n))
			return err_set(
				err, ERR_INVALID, "BadFlag",
				"--link-limits: %s=%.40s: must be a number from %lld to %lld", part,
				value, (long long)keys[i].min, (long long)keys[i].max);
		*keys[i].value = n * keys[i].unit;
		text += len + (text[len] == ',');
	}
	*ret = limits;
	return 0;
}

static int64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* Losses within the window that count; the last of them. */
static int64_t count_losses(const json_t *port, int64_t since_ms, int64_t *ret_last_ms)
{
	const json_t *change;
	int64_t n = 0;
	size_t i;

	json_array_foreach (json_object_get(port, "changes"), i, change) {
		const json_t *times = json_object_get(change, "times");

		if (json_is_true(json_at(change, "up")) || json_is_true(json_at(change, "own")) ||
		    number_of(change, "ms") < since_ms)
			continue;
		n += times ? json_integer_value(times) : 1;
		*ret_last_ms = number_of(change, "ms");
	}
	return n;
}

static int64_t errors_lately(const json_t *port, int64_t now_ms)
{
	const json_t *errors = json_object_get(port, "errors"), *sample;
	size_t i;

	json_array_foreach (json_object_get(errors, "samples"), i, sample)
		if (now_ms - number_of(sample, "ms") <= LINK_ERRORS_MS)
			return number_of(errors, "total") - number_of(sample, "total");
	return 0;
}

/* In the making. */
struct verdict {
	const char *verdict, *reason;
	char *message;
	int64_t bad_ms; /* when its cause was there last */
};

static json_t *verdict_json(struct verdict *made, const json_t *port, const json_t *before,
			    int64_t now_ms)
{
	bool is_same = str_eq(made->reason, json_str_at(before, "reason"));
	const json_t *module = json_at(port, "details", "transceiver");
	json_t *ret = json_object();

	json_put_str(ret, "verdict", made->verdict);
	json_put_str(ret, "reason", made->reason);
	if (json_str_at(module, "vendor") && made->bad_ms)
		json_put(ret, "message",
			 json_fmt("%s (module %s %s, serial %s)", made->message,
				  json_str_or(json_at(module, "vendor"), "?"),
				  json_str_or(json_at(module, "part"), "?"),
				  json_str_or(json_at(module, "serial"), "?")));
	else
		json_put_str(ret, "message", made->message);
	json_put_int(ret, "sinceMs", is_same ? number_of(before, "sinceMs") : now_ms);
	if (made->bad_ms)
		json_put_int(ret, "badMs", made->bad_ms);
	mem_free(made->message);
	return ret;
}

json_t *link_verdict(const json_t *port, const json_t *before, const struct link_limits *limits,
		     bool is_own, int64_t now_ms, int64_t *ret_again_ms)
{
	const char *name = json_str_or(json_at(port, "name"), "the port");
	const char *was = json_str_at(before, "reason");
	int64_t speed = number_of(port, "speed"), fastest = number_of(port, "fastest");
	bool is_ib = str_eq(json_str_at(port, "type"), "IB");
	int64_t per_100g = is_ib ? limits->errors_ib : limits->errors_eth;
	int64_t most = speed > 100000 ? per_100g * speed / 100000 : per_100g;
	int64_t errors = errors_lately(port, now_ms), quiet_ms = number_of(port, "quietMs");
	int64_t last_ms = 0, losses = count_losses(port, now_ms - limits->window_ms, &last_ms);
	int64_t bad_ms = number_of(before, "badMs");
	bool is_up = json_is_true(json_at(port, "up"));
	bool is_gone = json_is_true(json_at(port, "noDriver"));
	bool is_back = is_up && !is_gone && str_eq(was, "LinkDown");
	const json_t *pcie = json_at(port, "details", "pcie");
	double width = json_number_value(json_at(pcie, "width")),
	       width_max = json_number_value(json_at(pcie, "widthMax"));
	struct verdict made = {"healthy", "LinkHealthy", NULL, 0};

	assert(limits->flaps > 0 && limits->window_ms > 0);
	*ret_again_ms = INT64_MAX;
	/* A link that is back is so at once. */
	if ((is_own || (now_ms < quiet_ms && !is_gone)) && !is_back) {
		*ret_again_ms = is_own ? now_ms + 5000 : quiet_ms;
		return json_incref((json_t *)before);
	}
	if (!json_object_get(port, "up"))
		return NULL;
	if (!is_up || is_gone) {
		bool is_set = json_is_true(json_at(port, "adminDown"));

		made = (struct verdict){
			"failed", "LinkDown",
			is_gone  ? str_printf("%s has no driver, or is gone from its slot; see "
					       "dmesg",
					      name)
			: is_set ? str_printf("%s is set down; ip link set %s up", name, name)
				 : str_printf("%s has no link; check cable, module and %s", name,
					      is_ib ? "switch, and that a subnet manager runs"
						    : "switch port"),
			now_ms};
		return verdict_json(&made, port, before, now_ms);
	}
	if (losses >= limits->flaps)
		made = (struct verdict){
			"degraded", "LinkFlapping",
			str_printf("%s lost its link %lld times or more within %lld s; check cable "
				   "and module",
				   name, (long long)limits->flaps,
				   (long long)(limits->window_ms / 1000)),
			last_ms};
	else if (errors >= most || (str_eq(was, "LinkErrors") && errors >= (most + 1) / 2))
		made = (struct verdict){
			"degraded", "LinkErrors",
			str_printf("%s counts errors, %lld an hour are its limit; check cable and "
				   "module",
				   name, (long long)most),
			now_ms};
	else if (speed > 0 && speed < fastest)
		made = (struct verdict){
			"degraded", "LinkSlow",
			str_printf(
				"%s runs at %lld Mb/s and could at %lld Mb/s; check cable, module "
				"and lanes",
				name, (long long)speed, (long long)fastest),
			now_ms};
	else if (!pcie && limits->lanes > 0 && str_eq(was, "PcieLanesLost")) /* not read yet */
		return json_incref((json_t *)before);
	else if (width > 0 && limits->lanes > 0 && width_max - width >= (double)limits->lanes)
		made = (struct verdict){
			"degraded", "PcieLanesLost",
			str_printf("%s has %.0f of %.0f lanes of PCI Express; reseat the card, "
				   "look at its slot",
				   name, width, width_max),
			now_ms};
	if (made.bad_ms) {
		*ret_again_ms = now_ms + limits->recover_ms;
		return verdict_json(&made, port, before, now_ms);
	}
	/* The last cause may still count. */
	if (str_eq(was, "LinkFlapping") && count_losses(port, 0, &last_ms) > 0 && last_ms > bad_ms)
		bad_ms = last_ms;
	if ((str_eq(was, "LinkFlapping") || str_eq(was, "LinkErrors")) &&
	    now_ms - bad_ms < limits->recover_ms) {
		*ret_again_ms = bad_ms + limits->recover_ms;
		return json_incref((json_t *)before);
	}
	made.message = str_printf("%s has a link", name);
	return verdict_json(&made, port, before, now_ms);
}

int64_t link_history_judge(json_t *links, const json_t *wanted, const struct link_limits *limits,
			   const json_t *own, int64_t now_ms)
{
	int64_t first_ms = INT64_MAX, again_ms;
	const char *address;
	json_t *port, *verdict;

	assert(json_is_object(links));
	json_each (links, address, port) {
		const json_t *is_wanted = json_object_get(wanted, address);

		/* What is gone was wanted. */
		if ((!is_wanted && !json_object_get(port, "goneMs")) ||
		    (json_is_false(is_wanted) && json_is_true(json_at(port, "adminDown")))) {
			(void)json_object_del(port, "verdict");
			continue;
		}
		verdict = link_verdict(port, json_object_get(port, "verdict"), limits,
				       json_object_get(own, address) != NULL, now_ms, &again_ms);
		json_put(port, "verdict", verdict);
		if (again_ms < first_ms)
			first_ms = again_ms;
	}
	return first_ms;
}

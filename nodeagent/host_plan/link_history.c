// SPDX-License-Identifier: Apache-2.0
/*
 * Events, looks and counters are added to the history of each port as they come; losses of the link
 * by our own actions are remembered and marked, so that no verdict counts them.
 * agent/link_health.c keeps the history and reports what comes of it.
 */
#include "nodeagent/host_plan/link_history.h"

#include <assert.h>
#include <string.h>

#include "lib/base/pci_address.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/history.h"

static int64_t number_of(const json_t *port, const char *key)
{
	return json_integer_value(json_object_get(port, key));
}

static void add_to(json_t *port, const char *key, int64_t n)
{
	int64_t before = number_of(port, key);

	json_put_int(port, key, n > INT64_MAX - before ? INT64_MAX : before + n);
}

/* ---- changes of the link --------------------------------------------------------------------- */

static void add_change(json_t *port, bool is_up, int64_t times, bool is_own, int64_t now_ms)
{
	json_t *changes = json_object_get(port, "changes"), *change = json_object();

	if (!changes) {
		changes = json_array();
		json_put(port, "changes", changes);
	}
	json_put_int(change, "ms", now_ms);
	json_put_bool(change, "up", is_up);
	if (times > 1)
		json_put_int(change, "times", times);
	if (is_own)
		json_put_bool(change, "own", true);
	json_array_append_new(changes, change);
	while (json_array_size(changes) > LINK_CHANGES_MAX)
		json_array_remove(changes, 0);
	if (!is_up && !is_own)
		add_to(port, "flaps", times);
}

/*
 * The port's link is so now. The kernel counts each loss and each return: what came and went
 * between two messages is known by the number alone.
 */
static bool note_link(json_t *port, const struct link_event *seen, bool is_own, int64_t now_ms)
{
	const json_t *up = json_object_get(port, "up"),
		     *last = json_object_get(port, "carrierChanges");
	bool was_up = json_is_true(up), is_up = seen->is_up;
	int64_t n = last && seen->carrier_changes >= 0
			    ? seen->carrier_changes - json_integer_value(last)
			    : 0;
	int64_t ifindex = number_of(port, "ifindex"), losses;
	bool is_counted = json_object_get(port, "lossCounted") != NULL;

	/* A look and a message overtake each other. */
	if (n < 0 && ifindex && ifindex == seen->ifindex)
		return false;
	/* Counted anew: the driver has made another interface. */
	if (n < 0 || (ifindex && seen->ifindex && ifindex != seen->ifindex)) {
		json_put_int(port, "quietMs", now_ms + LINK_QUIET_MS);
		(void)json_object_del(port, "fastest");
		n = 0;
	}
	is_own |= now_ms < number_of(port, "quietMs");
	losses = was_up ? (n + 1) / 2 : n / 2;
	if (was_up && !is_up && losses == 0)
		losses = 1;
	if (seen->carrier_changes >= 0)
		json_put_int(port, "carrierChanges", seen->carrier_changes);
	if (seen->ifindex)
		json_put_int(port, "ifindex", seen->ifindex);
	json_put_bool(port, "up", is_up);
	(void)json_object_del(port, "lossCounted");
	if (!up || (losses == 0 && was_up == is_up))
		return false;
	if (losses > 0 && !is_counted) {
		add_change(port, false, losses, is_own, now_ms);
		json_put_int(port, "lossSeen", losses);
	}
	if (is_up)
		add_change(port, true, 1, is_own, now_ms);
	return true;
}

bool link_history_event(json_t *links, const struct link_event *event, const json_t *own,
			int64_t now_ms)
{
	json_t *port = json_object_get(links, event->address);

	assert(json_is_object(links));
	/* InfiniBand: the state of the port counts, which the next look has. */
	return port && !str_eq(json_str_at(port, "type"), "IB") &&
	       note_link(port, event, json_object_get(own, event->address) != NULL, now_ms);
}

/* Its RDMA device's first port; NULL: none. */
static const json_t *rdma_port(const json_t *observed, const char *address)
{
	return json_array_get(
		json_at(json_find(json_at(observed, "rdma", "devices"), "pciAddress", address),
			"ports"),
		0);
}

static void look_at_port(json_t *port, const json_t *entry, const json_t *observed, bool is_own,
			 int64_t now_ms)
{
	const json_t *carrier = json_at(entry, "host", "carrier"),
		     *changes = json_at(entry, "host", "carrierChanges");
	const char *state =
		json_str_at(rdma_port(observed, json_str_at(entry, "pciAddress")), "state");
	const char *speed = json_str_at(entry, "linkSpeed"), *type = json_str_at(entry, "linkType");
	bool is_ib = str_eq(type, "IB") && state;
	bool is_down = !is_ib && str_eq(json_str_at(entry, "linkAdminState"), "down");
	int64_t mbps = speed ? strtoll(speed, NULL, 10) : 0;
	const struct link_event seen = {
		.is_up = is_ib ? str_eq(state, "ACTIVE") : !is_down && !json_is_false(carrier),
		.carrier_changes =
			!is_ib && json_is_integer(changes) ? json_integer_value(changes) : -1,
		.ifindex = json_integer_value(json_at(entry, "host", "ifindex")),
	};

	(void)json_object_del(port, "goneMs");
	(void)json_object_del(port, "noDriver");
	json_put_str(port, "name", json_str_at(entry, "name"));
	json_put_str(port, "type", type);
	json_put_bool(port, "adminDown", is_down);
	/*
	 * InfiniBand: a cable is not enough, the subnet manager has to set the port up; the
	 * interface, which is of IPoIB, need not be, and its carrier tells nothing.
	 */
	if (is_ib)
		(void)json_object_del(port, "carrierChanges");
	if (json_is_boolean(carrier) || is_down || is_ib)
		(void)note_link(port, &seen, is_own, now_ms);
	if (is_own || now_ms < number_of(port, "quietMs"))
		json_put_int(port, "ownMs", now_ms);
	if (mbps > 0) {
		json_put_int(port, "speed", mbps);
		if (is_own || mbps > number_of(port, "fastest"))
			json_put_int(port, "fastest", mbps);
	}
}

/*
 * Is a port worth keeping that is not there? While it is away nothing of it counts: a pod may have
 * its interface. False: it is of no concern.
 */
static bool keep_gone(json_t *port, const char *address, const json_t *observed, int64_t now_ms)
{
	const json_t *seen = json_find(json_at(observed, "unusable"), "pciAddress", address);

	if (!json_object_get(port, "verdict"))
		return false;
	if (!json_object_get(port, "goneMs"))
		json_put_int(port, "goneMs", now_ms);
	json_put_bool(port, "noDriver", !str_eq(json_str_at(seen, "reason"), "NoInterface"));
	json_put_int(port, "quietMs", now_ms + LINK_QUIET_MS);
	(void)json_object_del(port, "carrierChanges");
	/* A card that is lost comes back with a repair; an interface, when its pod ends. */
	return now_ms - number_of(port, "goneMs") <
	       (json_is_true(json_at(port, "noDriver")) ? LINK_LOST_KEEP_MS : HISTORY_KEEP_MS);
}

void link_history_look(json_t *links, const json_t *observed, const json_t *own, int64_t now_ms)
{
	const json_t *entries = json_at(observed, "interfaces"), *entry;
	const char *address;
	json_t *port;
	size_t i;
	void *next;

	assert(json_is_object(links));
	json_array_foreach (entries, i, entry) {
		address = json_str_at(entry, "pciAddress");
		if (!address || !pci_address_is_valid(address))
			continue;
		port = json_object_get(links, address);
		if (!port) {
			port = json_object();
			json_put_int(port, "quietMs", now_ms + LINK_QUIET_MS);
			json_put(links, address, port);
		}
		look_at_port(port, entry, observed, json_object_get(own, address) != NULL, now_ms);
	}
	json_object_foreach_safe(links, next, address, port)
	{
		if (!json_find(entries, "pciAddress", address) &&
		    !keep_gone(port, address, observed, now_ms))
			(void)json_object_del(links, address);
	}
}

/* ---- errors ---------------------------------------------------------------------------------- */

/*
 * Errors since each counter was read last: what a cable or module that goes bad makes, by the parts
 * of counters_read(). One that cannot be read now is compared when it can; of several names for the
 * same (a driver's, and the kernel's) the largest counts. -1: none is there.
 */
static int64_t new_errors(json_t *last, const json_t *counted)
{
	enum { SYMBOLS, RECOVERIES, INTEGRITY, PACKETS, CHECKSUMS, BLOCKS, KINDS };
	static const struct {
		int kind;
		const char *part, *name;
	} counters[] = {
		{SYMBOLS, "port", "symbol_error"},
		{RECOVERIES, "port", "link_error_recovery"},
		{INTEGRITY, "port", "local_link_integrity_errors"},
		{PACKETS, "port", "port_errors_received"},
		{CHECKSUMS, "ethernet", "rx_crc_errors_phy"},
		{SYMBOLS, "ethernet", "rx_symbol_err_phy"},
		{CHECKSUMS, "ethernet", "rx_crc_errors.nic"},
		{CHECKSUMS, "ethernet", "rx_crc_errors"},
		{CHECKSUMS, "ethernet", "rx_fcs_err_frames"},
		{CHECKSUMS, "ethernet", "ethernet_checksum_errors"},
		{SYMBOLS, "ethernet", "ethernet_symbol_errors"},
		{BLOCKS, "ethernet", "fec_uncorrectable_blocks"},
	};
	int64_t most[KINDS] = {0}, sum = -1;

	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		const json_t *value = json_at(counted, counters[i].part, counters[i].name);
		const json_t *before = json_object_get(last, counters[i].name);
		int64_t n = json_integer_value(value), more = 0;

		if (!json_is_integer(value) || n < 0)
			continue;
		if (before && n > json_integer_value(before))
			more = n - json_integer_value(before);
		if (more > most[counters[i].kind])
			most[counters[i].kind] = more;
		sum = 0;
		json_put_int(last, counters[i].name, n);
	}
	for (int i = 0; i < KINDS && sum >= 0; i++)
		sum = most[i] > INT64_MAX - sum ? INT64_MAX : sum + most[i];
	return sum;
}

static void take_sample(json_t *errors, int64_t now_ms)
{
	json_t *samples = json_object_get(errors, "samples"), *sample;
	size_t n;

	if (!samples) {
		samples = json_array();
		json_put(errors, "samples", samples);
	}
	n = json_array_size(samples);
	if (n > 0 && now_ms - number_of(json_array_get(samples, n - 1), "ms") < LINK_SAMPLE_MS)
		return;
	sample = json_object();
	json_put_int(sample, "ms", now_ms);
	json_put_int(sample, "total", number_of(errors, "total"));
	json_array_append_new(samples, sample);
	if (json_array_size(samples) > LINK_ERRORS_MS / LINK_SAMPLE_MS + 1)
		json_array_remove(samples, 0);
}

void link_history_counted(json_t *links, const json_t *devices, const json_t *own, int64_t now_ms)
{
	const json_t *device, *counted;
	size_t i;

	assert(json_is_object(links));
	json_array_foreach (devices, i, device) {
		const char *address = json_str_at(device, "device", "pciAddress");
		json_t *port = address ? json_object_get(links, address) : NULL, *errors;
		bool counts = port && !json_object_get(own, address) &&
			      !json_object_get(port, "goneMs") &&
			      now_ms >= number_of(port, "quietMs");
		const json_t *downs, *changes = json_at(port, "changes");
		int64_t more, changed_ms, before_ms, seen = number_of(port, "lossSeen");

		counted = json_at(device, "counted");
		if (!port || !counted)
			continue;
		errors = json_need_object(port, "errors");
		more = new_errors(json_need_object(errors, "last"), counted);
		changed_ms = number_of(json_array_get(changes, json_array_size(changes) - 1), "ms");
		before_ms = number_of(errors, "countedMs");
		json_put_int(errors, "countedMs", now_ms);
		counts &= number_of(port, "ownMs") <= before_ms;
		/* A link that goes or comes has errors of its own. */
		if (more > 0 && counts && !json_is_false(json_at(port, "up")) &&
		    (json_array_size(changes) == 0 || changed_ms < before_ms))
			add_to(errors, "total", more);
		if (more >= 0)
			take_sample(errors, now_ms);
		downs = json_at(counted, "port", "link_downed");
		if (!json_is_integer(downs))
			continue;
		more = json_integer_value(downs) - number_of(port, "downs");
		/*
		 * Losses of InfiniBand; the look that finds the port down may be before or after.
		 */
		if (!json_object_get(port, "carrierChanges") && counts &&
		    json_object_get(port, "downs") && more > seen) {
			add_change(port, false, more - seen, false, now_ms);
			json_put_bool(port, "lossCounted", true);
		}
		(void)json_object_del(port, "lossSeen");
		json_put_int(port, "downs", json_integer_value(downs));
	}
}

/* ---- which ports matter ---------------------------------------------------------------------- */

json_t *link_history_wanted(const json_t *spec, const json_t *resources, const json_t *observed)
{
	json_auto_t *ids = json_object();
	json_t *ret = json_object(), *entry, *item;
	size_t i, k;

	json_array_foreach (json_at(spec, "interfaces"), i, entry)
		json_put_bool(ids, json_str_or(json_at(entry, "pciAddress"), ""), true);
	json_array_foreach (resources, i, entry) {
		json_array_foreach (json_at(entry, "selected"), k, item)
			json_put_bool(ids, json_str_or(item, ""), true);
		if (!json_at(entry, "selected"))
			json_array_foreach (json_at(entry, "devices"), k, item) {
				const char *id = json_str_or(json_at(item, "id"), "");

				if (!json_object_get(ids, id))
					json_put_bool(ids, id, false);
			}
	}
	json_array_foreach (json_at(observed, "interfaces"), i, entry) {
		const char *address = json_str_or(json_at(entry, "pciAddress"), "");
		const json_t *wanted = json_object_get(ids, address);
		bool has_to_be_up = json_is_true(wanted);

		json_array_foreach (json_at(entry, "Vfs"), k, item)
			has_to_be_up |=
				json_object_get(
					ids, json_str_or(json_at(item, "pciAddress"), "-")) != NULL;
		if (wanted || has_to_be_up)
			json_put_bool(ret, address, has_to_be_up);
	}
	return ret;
}

/* ---- the NodeState --------------------------------------------------------------------------- */

static void put_time(json_t *ret, const char *key, int64_t ms)
{
	char text[RFC3339_SIZE];

	rfc3339_write(ms * 1000, text);
	json_put_str(ret, key, text);
}

/* Members of the transceiver that a NodeState has; new. NULL: none. */
static json_t *module_of(const json_t *transceiver)
{
	static const char *const keys[] = {"vendor", "part", "serial"};
	json_auto_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		json_put_str(ret, keys[i], json_str_at(transceiver, keys[i]));
	return json_object_size(ret) ? json_incref(ret) : NULL;
}

static json_t *status_of(const char *address, const json_t *port, int64_t boot_ms)
{
	static const char *const told[] = {"verdict", "reason", "message"};
	const json_t *verdict = json_object_get(port, "verdict"), *change;
	json_t *ret = json_object(), *changes = json_array();
	size_t i;

	json_put_str(ret, "pciAddress", address);
	json_put_str(ret, "name", json_str_at(port, "name"));
	for (i = 0; i < ARRAY_LEN(told); i++)
		json_put_str(ret, told[i], json_str_at(verdict, told[i]));
	put_time(ret, "since", boot_ms + number_of(verdict, "sinceMs"));
	json_put_int(ret, "flaps", number_of(port, "flaps"));
	if (json_object_get(port, "carrierChanges"))
		json_put_int(ret, "carrierChanges", number_of(port, "carrierChanges"));
	else
		json_put(ret, "linkDowned", json_incref(json_object_get(port, "downs")));
	json_put(ret, "fastestMbps", json_incref(json_object_get(port, "fastest")));
	json_array_foreach (json_object_get(port, "changes"), i, change) {
		json_t *copy = json_copy((json_t *)change);

		(void)json_object_del(copy, "ms");
		put_time(copy, "time", boot_ms + number_of(change, "ms"));
		json_array_append_new(changes, copy);
	}
	json_put(ret, "changes", changes);
	json_put(ret, "module", module_of(json_at(port, "details", "transceiver")));
	return ret;
}

json_t *link_history_status(const json_t *links, const char *boot, int64_t boot_ms)
{
	json_t *ret, *list = json_array(), *port;
	json_auto_t *names = json_array();
	const char *address;
	size_t i, n = 0;

	json_each (links, address, port) {
		if (!json_object_get(port, "verdict"))
			continue;
		for (i = 0; i < n; i++)
			if (pci_address_compare(address,
						json_string_value(json_array_get(names, i))) < 0)
				break;
		json_array_insert_new(names, i, json_string(address));
		n++;
	}
	for (i = 0; i < n && i < LINK_PORTS_MAX; i++) {
		address = json_string_value(json_array_get(names, i));
		json_array_append_new(list,
				      status_of(address, json_object_get(links, address), boot_ms));
	}
	if (n == 0) {
		json_decref(list);
		return NULL;
	}
	ret = json_object();
	json_put_str(ret, "bootID", boot);
	json_put(ret, "ports", list);
	return ret;
}

/* The clock may have been set back since: nothing has happened later than now. */
static bool read_time(const json_t *entry, const char *key, int64_t boot_ms, int64_t now_ms,
		      int64_t *ret_ms)
{
	const char *text = json_str_at(entry, key);
	int64_t us;

	if (!text || !rfc3339_read(text, &us))
		return false;
	*ret_ms = us / 1000 - boot_ms;
	if (*ret_ms > now_ms)
		*ret_ms = now_ms;
	return true;
}

static json_t *restore_port(const json_t *entry, bool same_boot, int64_t boot_ms, int64_t now_ms)
{
	const json_t *carrier = json_at(entry, "carrierChanges"), *change;
	const json_t *flaps = json_at(entry, "flaps"), *downs = json_at(entry, "linkDowned"),
		     *fastest = json_at(entry, "fastestMbps");
	json_t *port = json_object(), *verdict;
	/* One that was down when it was first seen has no change. */
	bool is_up = !str_eq(json_str_at(entry, "reason"), "LinkDown");
	int64_t ms;
	size_t i;

	json_array_foreach (json_at(entry, "changes"), i, change) {
		int64_t times = json_integer_value(json_at(change, "times"));

		if (!json_is_boolean(json_at(change, "up")) ||
		    !read_time(change, "time", boot_ms, now_ms, &ms))
			continue;
		is_up = json_is_true(json_at(change, "up"));
		/* Those before a boot are told, and count no more. */
		add_change(port, is_up, times < 1 ? 1 : times,
			   !same_boot || json_is_true(json_at(change, "own")), ms);
	}
	json_put_str(port, "name", json_str_at(entry, "name"));
	json_put(json_need_object(port, "details"), "transceiver",
		 module_of(json_at(entry, "module")));
	json_put_int(port, "flaps", json_integer_value(flaps) > 0 ? json_integer_value(flaps) : 0);
	if (!same_boot)
		return port;
	if (json_is_integer(carrier) && json_integer_value(carrier) >= 0)
		json_put_int(port, "carrierChanges", json_integer_value(carrier));
	if (json_is_integer(downs) && json_integer_value(downs) >= 0)
		json_put_int(port, "downs", json_integer_value(downs));
	if (json_is_integer(fastest))
		json_put_int(port, "fastest", json_integer_value(fastest));
	json_put_bool(port, "up", is_up);
	if (json_str_at(entry, "verdict") && json_str_at(entry, "reason") &&
	    json_str_at(entry, "message") && read_time(entry, "since", boot_ms, now_ms, &ms)) {
		verdict = json_object();
		json_put_str(verdict, "verdict", json_str_at(entry, "verdict"));
		json_put_str(verdict, "reason", json_str_at(entry, "reason"));
		json_put_str(verdict, "message", json_str_at(entry, "message"));
		json_put_int(verdict, "sinceMs", ms);
		json_put_int(verdict, "badMs", ms);
		json_put(port, "verdict", verdict);
	}
	return port;
}

json_t *link_history_restore(const json_t *status, const char *boot, int64_t boot_ms,
			     int64_t now_ms)
{
	bool same_boot = boot && str_eq(json_str_at(status, "bootID"), boot);
	json_t *ret = json_object();
	const json_t *entry;
	size_t i;

	json_array_foreach (json_at(status, "ports"), i, entry) {
		const char *address = json_str_at(entry, "pciAddress");

		if (address && pci_address_is_valid(address) && i < LINK_PORTS_MAX) {
			json_t *port = restore_port(entry, same_boot, boot_ms, now_ms);

			/* After a boot links come up one by one. */
			if (!same_boot)
				json_put_int(port, "quietMs", now_ms + LINK_QUIET_MS);
			json_put(ret, address, port);
		}
	}
	return ret;
}

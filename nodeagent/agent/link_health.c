// SPDX-License-Identifier: Apache-2.0
/*
 * Looks, notifications and counters come in from agent_wiring.c; after each of them all wanted
 * ports are judged anew, which costs little: a node has few.
 */
#include "nodeagent/agent/link_health.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/history.h"

/* A clock that is adjusted slowly does not differ by so much. */
enum { CLOCK_IS_SET_MS = 2000 };

#define PORT_LABELS "node_name,net_dev_name,pci_address"

/* What port_details_read() is asked by: of the card, and of the module. */
static const char *const readings[] = {"pciAddress", "netdev"};

/* Numbers of port_details_read(). */
static const struct {
	const char *name, *help, *part, *key;
	double unit;
} numbers[] = {
	{"orbweaver_transceiver_temperature_celsius", "Temperature of the port's transceiver.",
	 "transceiver", "temperature", 1},
	{"orbweaver_transceiver_temperature_max_celsius",
	 "Temperature above which the transceiver warns.", "transceiver", "temperatureMax", 1},
	{"orbweaver_transceiver_voltage_volts", "Supply voltage of the port's transceiver.",
	 "transceiver", "voltage", 1},
	{"orbweaver_pcie_current_link_width", "Lanes of PCI Express that the port's card has.",
	 "pcie", "width", 1},
	{"orbweaver_pcie_max_link_width", "Lanes of PCI Express that card and slot can have.",
	 "pcie", "widthMax", 1},
	{"orbweaver_pcie_current_link_transfers_per_second",
	 "Transfers a second on each lane of PCI Express.", "pcie", "speed", 1e9},
	{"orbweaver_pcie_max_link_transfers_per_second",
	 "Transfers a second on each lane that card and slot can do.", "pcie", "speedMax", 1e9},
};

/* Likewise objects of them; their keys are values of a label. */
static const struct {
	const char *name, *help, *part, *labels;
} counts[] = {
	{"orbweaver_pcie_errors_total",
	 "Errors of PCI Express as the kernel counts them (AER), by severity.", "pcieErrors",
	 PORT_LABELS ",severity"},
	{"orbweaver_devlink_errors_total", "Errors that reporters of the port's driver have seen.",
	 "reporters", PORT_LABELS ",reporter"},
};

struct link_health {
	struct link_health_config config;
	struct timer *again, *count;
	json_t *earlier; /* what an agent before us said; NULL: nothing, or taken */
	bool has_heard;
	char *boot;
	int64_t boot_ms;
	json_t *links;  /* the history */
	json_t *wanted; /* of the last look */
	json_t *acted;  /* the agent's own, as it changes */
	json_t *status; /* reported last */
	char *asked;    /* port whose details are being read; NULL: none */
	const char *reading;
	struct metric *state, *flaps, *speed, *info, *power;
	struct metric *numbers[ARRAY_LEN(numbers)], *counts[ARRAY_LEN(counts)];
};

bool link_health_is_asked_for(const json_t *node_state, const char *annotation)
{
	return str_eq(json_str_at(node_state, "metadata", "annotations", annotation), "true");
}

/* Milliseconds since the epoch at boot: another time only where the clock was set meanwhile. */
static int64_t boot_ms(struct link_health *health)
{
	int64_t boot_ms = clock_wall_us() / 1000 - clock_ms();

	if (llabs(boot_ms - health->boot_ms) > CLOCK_IS_SET_MS)
		health->boot_ms = boot_ms;
	return health->boot_ms;
}

/* Ports on which we act, or just did. New. */
static json_t *own_ports(const struct link_health *health)
{
	json_t *own = json_object(), *port;
	const char *address;

	json_each (health->links, address, port)
		if (history_is_ours(health->acted, address, clock_ms()))
			json_put_bool(own, address, true);
	return own;
}

static void show_details(struct link_health *health, const char *name, const char *address)
{
	const json_t *details = json_at(health->links, address, "details");
	const json_t *module = json_at(details, "transceiver"), *value;
	static const char *const directions[] = {"rx", "tx"}, *const powers[] = {"rxPower",
										 "txPower"};
	const char *key;
	size_t lane;
	json_t *count;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		value = json_at(details, numbers[i].part, numbers[i].key);
		if (value)
			metric_set(health->numbers[i], json_number_value(value) * numbers[i].unit,
				   health->config.node, name, address);
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		json_each (json_at(details, counts[i].part), key, count)
			metric_add(health->counts[i], (double)json_integer_value(count),
				   health->config.node, name, address, key);
	for (size_t i = 0; i < ARRAY_LEN(powers); i++)
		json_array_foreach (json_at(module, powers[i]), lane, value) {
			auto_free char *number = str_printf("%zu", lane + 1);

			metric_set(health->power, json_number_value(value), health->config.node,
				   name, address, directions[i], number);
		}
	if (json_object_size(module) > 0)
		metric_set(health->info, 1, health->config.node, name, address,
			   json_str_or(json_at(module, "vendor"), ""),
			   json_str_or(json_at(module, "part"), ""),
			   json_str_or(json_at(module, "serial"), ""));
}

static void show_metrics(struct link_health *health)
{
	const json_t *port;
	size_t i;

	metric_clear(health->state);
	metric_clear(health->flaps);
	metric_clear(health->speed);
	metric_clear(health->info);
	metric_clear(health->power);
	for (i = 0; i < ARRAY_LEN(numbers); i++)
		metric_clear(health->numbers[i]);
	for (i = 0; i < ARRAY_LEN(counts); i++)
		metric_clear(health->counts[i]);
	json_array_foreach (json_at(health->status, "ports"), i, port) {
		const char *name = json_str_or(json_at(port, "name"), "");
		const char *address = json_str_at(port, "pciAddress");
		const json_t *speed = json_at(health->links, address, "speed");

		metric_set(health->state, 1, health->config.node, name, address,
			   json_str_or(json_at(port, "verdict"), ""),
			   json_str_or(json_at(port, "reason"), ""));
		metric_add(health->flaps, (double)json_integer_value(json_at(port, "flaps")),
			   health->config.node, name, address);
		if (speed)
			metric_set(health->speed, (double)json_integer_value(speed) * 1e6 / 8,
				   health->config.node, name, address);
		show_details(health, name, address);
	}
}

static void emit_news(const struct link_health *health, const json_t *before)
{
	const json_t *port;
	size_t i;

	json_array_foreach (json_at(health->status, "ports"), i, port) {
		const json_t *was = json_find(json_at(before, "ports"), "pciAddress",
					      json_str_at(port, "pciAddress"));
		const char *reason = json_str_at(port, "reason");
		const char *message = json_str_at(port, "message");
		bool is_well = str_eq(reason, "LinkHealthy");
		bool was_well = !was || str_eq(json_str_at(was, "reason"), "LinkHealthy");

		if (str_eq(reason, json_str_at(was, "reason")) || (is_well && !was))
			continue;
		health->config.emit(health->config.arg, !is_well, reason, message);
		/* One that flaps is bad all the time. */
		if (is_well != was_well)
			health->config.turned(health->config.arg, json_str_at(port, "pciAddress"),
					      !is_well, reason, message);
	}
}

static void judge(struct link_health *health)
{
	json_auto_t *own = own_ports(health), *before = health->status;
	int64_t again_ms = link_history_judge(health->links, health->wanted, &health->config.limits,
					      own, clock_ms());

	health->status = link_history_status(health->links, health->boot, boot_ms(health));
	if (again_ms == INT64_MAX)
		timer_stop(health->again);
	else
		timer_start(health->again, again_ms > clock_ms() ? again_ms - clock_ms() : 1);
	show_metrics(health);
	if (json_same(before, health->status))
		return;
	emit_news(health, before);
	health->config.changed(health->config.arg);
}

static void on_again(void *arg)
{
	judge(arg);
}

/*
 * Of the next port that is due; of none while we act on one: a driver may hold what reading another
 * waits for.
 */
static void ask_details(struct link_health *health)
{
	const char *address;
	json_t *port;

	json_each (health->acted, address, port)
		if (history_is_ours(health->acted, address, clock_ms()))
			return;
	json_each (health->links, address, port)
		for (size_t i = 0; i < ARRAY_LEN(readings); i++) {
			json_auto_t *what = json_object();
			const char *by = i == 0 ? address : json_str_at(port, "name");

			if (health->asked || !by || !json_object_get(port, "verdict") ||
			    json_object_get(port, "goneMs") ||
			    json_integer_value(json_at(port, "readings", readings[i], "nextMs")) >
				    clock_ms())
				continue;
			json_put_str(what, readings[i], by);
			if (!health->config.details(health->config.arg, what))
				continue;
			health->asked = str_dup(address);
			health->reading = readings[i];
		}
}

void link_health_details(struct link_health *health, const json_t *details)
{
	json_t *port = json_object_get(health->links, health->asked);
	json_t *reading = json_at(port, "readings", health->reading);
	int64_t wait_ms = 2 * json_integer_value(json_at(reading, "waitMs"));

	assert(health->asked);
	mem_free(take_ptr(health->asked));
	if (details || wait_ms < LINK_HEALTH_DETAILS_MS)
		wait_ms = LINK_HEALTH_DETAILS_MS;
	if (wait_ms > LINK_HEALTH_DETAILS_MAX_MS)
		wait_ms = LINK_HEALTH_DETAILS_MAX_MS;
	if (port) {
		reading = json_pack("{s:I, s:I}", "waitMs", (json_int_t)wait_ms, "nextMs",
				    (json_int_t)(clock_ms() + wait_ms));
		json_put(json_need_object(port, "readings"), health->reading, reading);
		json_object_update(json_need_object(port, "details"), (json_t *)details);
	}
	judge(health);
	ask_details(health);
}

static void on_count(void *arg)
{
	struct link_health *health = arg;

	timer_start(health->count, LINK_HEALTH_COUNT_MS);
	if (!health->status)
		return;
	health->config.count(health->config.arg);
	ask_details(health);
}

void link_health_heard(struct link_health *health, const json_t *status)
{
	if (health->has_heard)
		return;
	health->has_heard = true;
	health->earlier = json_incref((json_t *)status);
}

void link_health_looked(struct link_health *health, const struct link_health_look *look)
{
	const char *boot = json_str_at(look->observed, "node", "bootId");
	json_auto_t *own = NULL;

	assert(look->observed && look->wanted);
	str_replace(&health->boot, boot ? str_dup(boot) : NULL);
	if (health->earlier) {
		json_replace(&health->links, link_history_restore(health->earlier, boot,
								  boot_ms(health), clock_ms()));
		/* What it said is no news. */
		json_replace(&health->status, health->earlier);
		health->earlier = NULL;
	}
	json_replace(&health->wanted, json_incref((json_t *)look->wanted));
	json_replace(&health->acted, json_incref((json_t *)look->acted));
	own = own_ports(health);
	link_history_look(health->links, look->observed, own, clock_ms());
	judge(health);
}

const char *link_health_event(struct link_health *health, const struct watch_event *event)
{
	struct link_event change = {NULL, event->is_up, event->carrier_changes, event->ifindex};
	json_auto_t *own = NULL;
	const char *address;
	json_t *port;

	if (event->source != WATCH_LINK || event->lost || !event->has_link)
		return NULL;
	/*
	 * Linux before 5.14 names the interface only; representors of VFs and children of an IPoIB
	 * interface have the address of the port, too.
	 */
	json_each (health->links, address, port)
		if (str_eq(json_str_at(port, "name"), event->name) &&
		    (!event->address || str_eq(address, event->address)))
			change.address = address;
	own = own_ports(health);
	if (!change.address || !link_history_event(health->links, &change, own, clock_ms()))
		return NULL;
	judge(health);
	return change.address;
}

void link_health_counted(struct link_health *health, const json_t *devices)
{
	json_auto_t *own = own_ports(health);

	link_history_counted(health->links, devices, own, clock_ms());
	judge(health);
}

const json_t *link_health_status(const struct link_health *health)
{
	return health->status;
}

struct link_health *link_health_new(const struct link_health_config *config)
{
	struct link_health *health = mem_new(struct link_health);

	assert(config->node && config->changed && config->emit && config->turned && config->count &&
	       config->details);
	health->config = *config;
	health->links = json_object();
	health->wanted = json_object();
	health->again = timer_new(config->loop, on_again, health);
	health->count = timer_new(config->loop, on_count, health);
	health->state = metric_gauge(config->metrics, "orbweaver_link_state",
				     "1 for each port that is judged, with its verdict.",
				     PORT_LABELS ",verdict,reason");
	health->flaps = metric_counter(config->metrics, "orbweaver_link_flaps_total",
				       "How often the port lost its link by itself.", PORT_LABELS);
	health->speed = metric_gauge(config->metrics, "orbweaver_link_speed_bytes",
				     "Bytes a second that the link carries.", PORT_LABELS);
	health->info = metric_gauge(config->metrics, "orbweaver_transceiver_info",
				    "1 for each transceiver that has a name.",
				    PORT_LABELS ",vendor,part,serial");
	health->power = metric_gauge(config->metrics, "orbweaver_transceiver_power_watts",
				     "Light that comes in (rx) and goes out (tx), by lane.",
				     PORT_LABELS ",direction,lane");
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		health->numbers[i] = metric_gauge(config->metrics, numbers[i].name, numbers[i].help,
						  PORT_LABELS);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		health->counts[i] = metric_counter(config->metrics, counts[i].name, counts[i].help,
						   counts[i].labels);
	timer_start(health->count, LINK_HEALTH_COUNT_MS);
	return health;
}

void link_health_free(struct link_health *health)
{
	if (!health)
		return;
	timer_free(health->again);
	timer_free(health->count);
	json_decref(health->earlier);
	json_decref(health->links);
	json_decref(health->wanted);
	json_decref(health->acted);
	json_decref(health->status);
	mem_free(health->boot);
	mem_free(health->asked);
	mem_free(health);
}

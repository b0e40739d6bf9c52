// SPDX-License-Identifier: Apache-2.0
/*
 * A packet socket for each interface, opened inside the namespace; questions go out for all
 * addresses of all interfaces at once, answers are matched until the time is over.
 * coordinator_detect.c calls it before a coordinator's first change; announcements use such a
 * socket, too.
 */
#include "nodeagent/cni/execute/netns_detect.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/frame.h"
#include "nodeagent/model/text.h"

#define PROBES             3
#define PROBE_MS           100
#define GATEWAY_TRIES      5
#define GATEWAY_MS         200
#define CARRIER_MS         2000
#define LATE_LINK_MS       200
#define LOOK_MS            10
#define LINK_LOCAL_MS      2000
#define LINK_LOCAL_LOOK_MS 50
#define TARGETS_MAX        64

struct target {
	struct addr address;
	bool answered;
	uint8_t mac[6];
};

struct detector {
	struct netns *ns;
	const char *ifname;
	struct detect_request *request; /* NULL: announcements */
	int fd;                         /* packet socket, all protocols, bound to the interface */
	uint8_t mac[6];
	struct target targets[TARGETS_MAX];
	size_t n;
	struct addr sources[2]; /* what is asked from: IPv4, IPv6 */
	bool any_claim;         /* another host's probe counts as well */
};

/* ---- the interface --------------------------------------------------------------------------- */

static void sleep_ms(int ms)
{
	struct timespec pause = {.tv_nsec = ms * 1000000L};

	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;
}

static int read_flags(int fd, const char *ifname, short *ret)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, ifname, strnlen(ifname, IFNAMSIZ - 1));
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return -1;
	*ret = request.ifr_flags;
	return 0;
}

static void set_up(const struct detector *detector)
{
	struct ifreq request = {0};
	short flags = 0;

	if (read_flags(detector->fd, detector->ifname, &flags) < 0 || flags & IFF_UP)
		return;
	memcpy(request.ifr_name, detector->ifname, strnlen(detector->ifname, IFNAMSIZ - 1));
	request.ifr_flags = (short)(flags | IFF_UP);
	(void)ioctl(detector->fd, SIOCSIFFLAGS, &request);
}

static bool has_carrier(const struct detector *detector)
{
	short flags = 0;

	return read_flags(detector->fd, detector->ifname, &flags) < 0 || flags & IFF_RUNNING;
}

/* It has a socket, and nothing was found of its interface yet. */
static bool goes_on(const struct detector *detector)
{
	return detector->fd >= 0 && detector->request->err.class == ERR_NONE;
}

/* Best effort: without a carrier no host answers, which is found out then. */
static void wait_for_carriers(const struct detector *detectors, size_t n)
{
	size_t i = 0;

	for (size_t k = 0; k < n; k++)
		if (goes_on(&detectors[k]))
			set_up(&detectors[k]);
	for (int waited = 0; waited < CARRIER_MS; waited += LOOK_MS) {
		while (i < n && (!goes_on(&detectors[i]) || has_carrier(&detectors[i])))
			i++;
		if (i == n)
			return;
		sleep_ms(LOOK_MS);
	}
}

/* Runs inside the namespace. fd stays -1 for what is not Ethernet. */
static int open_detector(void *context, struct err *err)
{
	struct detector *detector = context;
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq request = {0};
	auto_close int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "DetectFailed", "open a packet socket");
	address.sll_ifindex = (int)if_nametoindex(detector->ifname);
	memcpy(request.ifr_name, detector->ifname, strnlen(detector->ifname, IFNAMSIZ - 1));
	if (!address.sll_ifindex || ioctl(fd, SIOCGIFHWADDR, &request) < 0)
		return err_sys(err, "DetectFailed", "look at %s", detector->ifname);
	if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return 0;
	memcpy(detector->mac, request.ifr_hwaddr.sa_data, sizeof(detector->mac));
	if (bind(fd, (void *)&address, sizeof(address)) < 0)
		return err_sys(err, "DetectFailed", "listen on %s", detector->ifname);
	detector->fd = take_fd(&fd);
	return 0;
}

/* ---- asking and listening -------------------------------------------------------------------- */

static bool add_target(struct detector *detector, const char *text)
{
	struct addr address;

	if (detector->n == TARGETS_MAX ||
	    (!addr_parse_prefix(text, &address) && !addr_parse(text, &address)))
		return false;
	detector->targets[detector->n++] = (struct target){.address = addr_single(&address)};
	return true;
}

/*
 * Is it a MAC of the namespace? Another of its NICs in the same broadcast domain answers, too, for
 * any address of the namespace, until its coordinator has been there (arp_ignore). Looked at when
 * there is a claim: NICs are added side by side, and a list made before would lack some. What
 * cannot be looked at is somebody else's.
 */
static bool is_own(const struct detector *detector, const uint8_t mac[6])
{
	json_auto_t *look = NULL;
	char text[18];

	if (memcmp(mac, detector->mac, sizeof(detector->mac)) == 0)
		return true;
	text_from_octets(mac, 6, text);
	return netns_observe(detector->ns, NETNS_LINKS, &look, NULL) == 0 &&
	       json_find(json_at(look, "links"), "mac", text);
}

static void take_claim(struct detector *detector, const struct frame_claim *claim)
{
	if (!claim->has && !detector->any_claim)
		return;
	for (size_t i = 0; i < detector->n; i++) {
		struct target *target = &detector->targets[i];

		if (target->answered || !addr_same(&target->address, &claim->address) ||
		    is_own(detector, claim->mac))
			continue;
		target->answered = true;
		memcpy(target->mac, claim->mac, sizeof(target->mac));
	}
}

static void read_frames(struct detector *detector)
{
	for (;;) {
		uint8_t bytes[256];
		struct sockaddr_ll from = {0};
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(detector->fd, bytes, sizeof(bytes), 0, (void *)&from, &len);
		struct frame_claim claim;

		if (n < 0)
			return;
		if (from.sll_pkttype != PACKET_OUTGOING && frame_read(bytes, (size_t)n, &claim))
			take_claim(detector, &claim);
	}
}

static bool all_answered(const struct detector *detector)
{
	for (size_t i = 0; i < detector->n; i++)
		if (!detector->targets[i].answered)
			return false;
	return true;
}

static bool some_answered(const struct detector *detector)
{
	for (size_t i = 0; i < detector->n; i++)
		if (detector->targets[i].answered)
			return true;
	return false;
}

static bool waits_for(const struct detector *detector, bool (*enough)(const struct detector *))
{
	return goes_on(detector) && detector->n > 0 && !enough(detector);
}

/* Until the time is over, or there is nothing left to wait for. */
static void listen_for(struct detector *detectors, size_t n, int ms,
		       bool (*enough)(const struct detector *))
{
	auto_free struct pollfd *fds = mem_calloc(n, sizeof(*fds));
	int64_t end = clock_ms() + ms;

	for (;;) {
		int64_t left = end - clock_ms();
		bool any = false;

		/* poll(2) passes over a descriptor of -1. */
		for (size_t i = 0; i < n; i++) {
			bool waits = waits_for(&detectors[i], enough);

			any |= waits;
			fds[i] = (struct pollfd){.fd = waits ? detectors[i].fd : -1,
						 .events = POLLIN};
		}
		if (!any || left <= 0 || poll(fds, n, (int)left) == 0)
			return;
		for (size_t i = 0; i < n; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				read_frames(&detectors[i]);
	}
}

/* All that has not answered, from the source of its family. */
static void ask_targets(const struct detector *detector)
{
	for (size_t i = 0; i < detector->n; i++) {
		const struct target *target = &detector->targets[i];
		uint8_t frame[FRAME_MAX];
		size_t len;

		if (target->answered)
			continue;
		len = frame_ask(detector->mac, &detector->sources[target->address.family == 6],
				&target->address, frame);
		(void)send(detector->fd, frame, len, 0);
	}
}

/* Ask and listen, up to so many times. */
static void ask_all(struct detector *detectors, size_t n, int times, int ms,
		    bool (*enough)(const struct detector *))
{
	for (int k = 0; k < times; k++) {
		bool any = false;

		for (size_t i = 0; i < n; i++) {
			if (!waits_for(&detectors[i], enough))
				continue;
			any = true;
			ask_targets(&detectors[i]);
		}
		if (!any)
			return;
		listen_for(detectors, n, ms, enough);
	}
}

static bool has_family(const struct detector *detector, int family)
{
	for (size_t i = 0; i < detector->n; i++)
		if (detector->targets[i].address.family == family)
			return true;
	return false;
}

/* The interface's address that neighbours may answer to; family 0 while there is none. */
static struct addr link_local_of(const json_t *look, const char *ifname)
{
	struct addr address = {0};
	size_t i;
	json_t *item;

	json_array_foreach (json_at(look, "addresses"), i, item)
		if (str_eq(json_str_at(item, "dev"), ifname) &&
		    addr_parse_prefix(json_str_at(item, "address"), &address) &&
		    addr_is_link_local(&address))
			return address;
	return (struct addr){0};
}

/* IPv6 is asked from the link's address, once there is one. False: some have none yet. */
static bool find_link_locals(struct detector *detectors, size_t n)
{
	json_auto_t *look = NULL;
	bool has_all = true;

	for (size_t i = 0; i < n; i++) {
		struct detector *detector = &detectors[i];
		struct addr local;

		if (!goes_on(detector) || !has_family(detector, 6))
			continue;
		if (!look &&
		    netns_observe(detector->ns, NETNS_LINKS | NETNS_ADDRESSES, &look, NULL))
			return false;
		local = link_local_of(look, detector->ifname);
		if (local.family)
			detector->sources[1] = local;
		has_all &= local.family != 0;
	}
	return has_all;
}

static void set_targets(struct detector *detector, const json_t *list)
{
	size_t i;
	json_t *item;

	detector->n = 0;
	json_array_foreach (list, i, item)
		(void)add_target(detector, json_string_value(item));
}

/* ---- conflicts ------------------------------------------------------------------------------- */

static void tell_conflicts(struct detector *detector)
{
	struct detect_request *request = detector->request;

	for (size_t i = 0; i < detector->n; i++) {
		char address[ADDR_TEXT_SIZE], mac[18];

		if (!detector->targets[i].answered)
			continue;
		addr_print(&detector->targets[i].address, address);
		text_from_octets(detector->targets[i].mac, 6, mac);
		if (request->conflicts) {
			json_t *conflict = json_object();

			json_put_str(conflict, "ip", address);
			json_put_str(conflict, "mac", mac);
			json_array_append_new(request->conflicts, conflict);
		}
		if (request->err.class == ERR_NONE)
			(void)err_set(&request->err, ERR_CONFLICT, "AddressInUse",
				      "%s: the address %s is in use by %s; exclude it from the "
				      "pool, or stop who has it",
				      detector->ifname, address, mac);
	}
}

static void find_conflicts(struct detector *detectors, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		set_targets(&detectors[i], detectors[i].request->addresses);
		detectors[i].any_claim = true;
	}
	(void)find_link_locals(detectors, n);
	ask_all(detectors, n, PROBES, PROBE_MS, some_answered);
	for (size_t i = 0; i < n; i++)
		if (goes_on(&detectors[i]))
			tell_conflicts(&detectors[i]);
}

/* ---- gateways -------------------------------------------------------------------------------- */

static void set_sources(struct detector *detector)
{
	struct addr *sources = detector->sources;
	size_t i;
	json_t *item;

	memset(sources, 0, sizeof(detector->sources));
	json_array_foreach (detector->request->own, i, item) {
		struct addr address;

		if (addr_parse_prefix(json_string_value(item), &address) &&
		    !sources[address.family == 6].family)
			sources[address.family == 6] = address;
	}
}

static void tell_silent_gateway(struct detector *detector)
{
	for (size_t i = 0; i < detector->n; i++) {
		char address[ADDR_TEXT_SIZE];

		if (detector->targets[i].answered)
			continue;
		addr_print(&detector->targets[i].address, address);
		(void)err_set(&detector->request->err, ERR_TRANSIENT, "GatewayUnreachable",
			      "%s: the gateway %s does not answer; check VLAN, cabling and the "
			      "pool's gateway",
			      detector->ifname, address);
		return;
	}
}

static void find_gateways(struct detector *detectors, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		set_targets(&detectors[i], detectors[i].request->gateways);
		set_sources(&detectors[i]);
		detectors[i].any_claim = false;
	}
	/* An interface may have no address but its link's; and that not yet. */
	for (int waited = 0; waited < LINK_LOCAL_MS && !find_link_locals(detectors, n);
	     waited += LINK_LOCAL_LOOK_MS)
		sleep_ms(LINK_LOCAL_LOOK_MS);
	ask_all(detectors, n, GATEWAY_TRIES, GATEWAY_MS, all_answered);
	for (size_t i = 0; i < n; i++)
		if (goes_on(&detectors[i]))
			tell_silent_gateway(&detectors[i]);
}

void netns_detect(struct netns *ns, struct detect_request *requests, size_t n)
{
	auto_free struct detector *detectors = mem_calloc(n, sizeof(*detectors));

	assert(ns);
	for (size_t i = 0; i < n; i++) {
		struct detect_request *request = &requests[i];

		assert(request->ifname);
		request->err = (struct err){0};
		detectors[i] = (struct detector){
			.ns = ns, .ifname = request->ifname, .request = request, .fd = -1};
		if (json_array_size(request->addresses) + json_array_size(request->gateways) > 0)
			(void)netns_within(ns, open_detector, &detectors[i], &request->err);
	}
	wait_for_carriers(detectors, n);
	find_conflicts(detectors, n);
	find_gateways(detectors, n);
	for (size_t i = 0; i < n; i++)
		own_close_p(&detectors[i].fd);
}

/* ---- announcements --------------------------------------------------------------------------- */

/* Others learn of the addresses only by a link that is there. */
static bool lacks_link(const struct detector *detectors, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (detectors[i].fd >= 0 && json_is_true(json_at(item, "hasLateLink")) &&
		    !has_carrier(&detectors[i]))
			return true;
	return false;
}

void netns_announce(struct netns *ns, const json_t *list)
{
	size_t n = json_array_size(list), i, k;
	auto_free struct detector *detectors = mem_calloc(n, sizeof(*detectors));
	const json_t *item;

	assert(ns);
	json_array_foreach (list, i, item) {
		detectors[i] = (struct detector){
			.ns = ns, .ifname = json_str_at(item, "ifname"), .fd = -1};
		(void)netns_within(ns, open_detector, &detectors[i], NULL);
		set_targets(&detectors[i], json_at(item, "addresses"));
	}
	for (int waited = 0; waited < LATE_LINK_MS && lacks_link(detectors, list);
	     waited += LOOK_MS)
		sleep_ms(LOOK_MS);
	for (i = 0; i < n; i++) {
		for (k = 0; detectors[i].fd >= 0 && k < detectors[i].n; k++) {
			uint8_t frame[FRAME_MAX];
			size_t len = frame_announce(detectors[i].mac,
						    &detectors[i].targets[k].address, frame);

			(void)send(detectors[i].fd, frame, len, 0);
		}
		own_close_p(&detectors[i].fd);
	}
}

// SPDX-License-Identifier: Apache-2.0
/*
 * One packet socket, opened inside the namespace; questions go out for all addresses at once,
 * answers are matched until the time is over. coordinator_run.c calls it between its look and its
 * first change; announcements use the same socket.
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
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/execute/netns_observe.h"
#include "nodeagent/cni/plan/frame.h"
#include "nodeagent/cni/plan/look.h"
#include "nodeagent/model/text.h"

#define PROBES        3
#define PROBE_MS      100
#define GATEWAY_TRIES 5
#define GATEWAY_MS    200
#define CARRIER_MS    2000
#define LOOK_MS       10
#define LINK_LOCAL_MS 2000
#define TARGETS_MAX   64

struct target {
	struct addr address;
	bool answered;
	uint8_t mac[6];
};

struct detector {
	struct netns *ns;
	const char *ifname;
	int fd; /* packet socket, all protocols, bound to the interface */
	uint8_t mac[6];
	struct target targets[TARGETS_MAX];
	size_t n;
	bool any_claim; /* a probe of somebody else counts as well */
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

/* Best effort: without a carrier nobody answers, which the caller finds out. */
static void wait_for_carrier(int fd, const char *ifname)
{
	struct ifreq request = {0};
	short flags = 0;

	memcpy(request.ifr_name, ifname, strnlen(ifname, IFNAMSIZ - 1));
	if (read_flags(fd, ifname, &flags) < 0)
		return;
	if (!(flags & IFF_UP)) {
		request.ifr_flags = (short)(flags | IFF_UP);
		(void)ioctl(fd, SIOCSIFFLAGS, &request);
	}
	for (int waited = 0; waited < CARRIER_MS; waited += LOOK_MS) {
		if (read_flags(fd, ifname, &flags) < 0 || flags & IFF_RUNNING)
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

/* Until the time is over, or there is nothing left to wait for. */
static void listen_for(struct detector *detector, int ms, bool (*enough)(const struct detector *))
{
	int64_t end = clock_ms() + ms;

	while (!enough(detector)) {
		struct pollfd wait = {.fd = detector->fd, .events = POLLIN};
		int64_t left = end - clock_ms();

		if (left <= 0 || poll(&wait, 1, (int)left) == 0)
			return;
		read_frames(detector);
	}
}

/* From the source of the target's family: sources[0] IPv4, sources[1] IPv6. */
static void ask_all(struct detector *detector, const struct addr sources[2])
{
	for (size_t i = 0; i < detector->n; i++) {
		const struct target *target = &detector->targets[i];
		uint8_t frame[FRAME_MAX];
		size_t len;

		if (target->answered)
			continue;
		len = frame_ask(detector->mac, &sources[target->address.family == 6],
				&target->address, frame);
		(void)send(detector->fd, frame, len, 0);
	}
}

/* The interface's address that neighbours may answer to; family 0 while there is none. */
static struct addr link_local_of(struct netns *ns, const char *ifname)
{
	struct addr address = {0};
	json_auto_t *look = NULL;
	size_t i;
	json_t *item;

	if (netns_observe(ns, NETNS_LINKS | NETNS_ADDRESSES, &look, NULL))
		return address;
	json_array_foreach (json_at(look, "addresses"), i, item)
		if (str_eq(json_str_at(item, "dev"), ifname) &&
		    addr_parse_prefix(json_str_at(item, "address"), &address) &&
		    addr_is_link_local(&address))
			return address;
	return (struct addr){0};
}

static bool has_family(const struct detector *detector, int family)
{
	for (size_t i = 0; i < detector->n; i++)
		if (detector->targets[i].address.family == family)
			return true;
	return false;
}

static int find_conflicts(struct netns *ns, struct detector *detector, json_t *conflicts,
			  struct err *err)
{
	struct addr sources[2] = {0};
	int rc = 0;

	assert(detector->fd >= 0 && detector->n <= TARGETS_MAX);
	detector->any_claim = true;
	if (has_family(detector, 6))
		sources[1] = link_local_of(ns, detector->ifname);
	for (int i = 0; i < PROBES && !some_answered(detector); i++) {
		ask_all(detector, sources);
		listen_for(detector, PROBE_MS, some_answered);
	}
	for (size_t i = 0; i < detector->n; i++) {
		char address[ADDR_TEXT_SIZE], mac[18];

		if (!detector->targets[i].answered)
			continue;
		addr_print(&detector->targets[i].address, address);
		text_from_octets(detector->targets[i].mac, 6, mac);
		if (conflicts) {
			json_t *conflict = json_object();

			json_put_str(conflict, "ip", address);
			json_put_str(conflict, "mac", mac);
			json_array_append_new(conflicts, conflict);
		}
		if (rc == 0)
			rc = err_set(err, ERR_CONFLICT, "AddressInUse",
				     "%s: the address %s is in use by %s; exclude it from the "
				     "pool, or stop who has it",
				     detector->ifname, address, mac);
	}
	return rc;
}

static int find_gateways(struct netns *ns, struct detector *detector, const json_t *own,
			 struct err *err)
{
	struct addr sources[2] = {0};
	size_t i;
	json_t *item;

	detector->any_claim = false;
	json_array_foreach (own, i, item) {
		struct addr address;

		if (addr_parse_prefix(json_string_value(item), &address) &&
		    !sources[address.family == 6].family)
			sources[address.family == 6] = address;
	}
	/* The interface may have no address but its link's; and that not yet. */
	for (int waited = 0; has_family(detector, 6) && waited < LINK_LOCAL_MS; waited += 50) {
		struct addr local = link_local_of(ns, detector->ifname);

		if (local.family) {
			sources[1] = local;
			break;
		}
		sleep_ms(50);
	}
	for (i = 0; i < GATEWAY_TRIES && !all_answered(detector); i++) {
		ask_all(detector, sources);
		listen_for(detector, GATEWAY_MS, all_answered);
	}
	for (i = 0; i < detector->n; i++) {
		char address[ADDR_TEXT_SIZE];

		if (detector->targets[i].answered)
			continue;
		addr_print(&detector->targets[i].address, address);
		return err_set(err, ERR_TRANSIENT, "GatewayUnreachable",
			       "%s: the gateway %s does not answer; check VLAN, cabling and the "
			       "pool's gateway",
			       detector->ifname, address);
	}
	return 0;
}

static void set_targets(struct detector *detector, const json_t *list)
{
	size_t i;
	json_t *item;

	detector->n = 0;
	json_array_foreach (list, i, item)
		(void)add_target(detector, json_string_value(item));
}

int netns_detect(struct netns *ns, const struct detect_request *request, struct err *err)
{
	struct detector detector = {.ns = ns, .ifname = request->ifname, .fd = -1};
	int code = 0;

	assert(ns && request->ifname);
	if (json_array_size(request->addresses) + json_array_size(request->gateways) == 0)
		return 0;
	if (netns_within(ns, open_detector, &detector, err))
		return -1;
	if (detector.fd < 0)
		return 0;
	wait_for_carrier(detector.fd, detector.ifname);
	set_targets(&detector, request->addresses);
	code = find_conflicts(ns, &detector, request->conflicts, err);
	if (code == 0) {
		set_targets(&detector, request->gateways);
		code = find_gateways(ns, &detector, request->own, err);
	}
	own_close_p(&detector.fd);
	return code;
}

void netns_announce(struct netns *ns, const char *ifname, const json_t *addresses)
{
	struct detector detector = {.ns = ns, .ifname = ifname, .fd = -1};

	assert(ns && ifname);
	if (netns_within(ns, open_detector, &detector, NULL) || detector.fd < 0)
		return;
	set_targets(&detector, addresses);
	for (size_t i = 0; i < detector.n; i++) {
		uint8_t frame[FRAME_MAX];
		size_t len = frame_announce(detector.mac, &detector.targets[i].address, frame);

		(void)send(detector.fd, frame, len, 0);
	}
	own_close_p(&detector.fd);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of words: "link STATE MTU", "missing TOOL", "rate GBPS" of the port whose GIDs follow, "gid
 * DEVICE PORT LAYER SOFT INDEX GID NETDEV
 * TYPE". SOFT: the interface below a device of Soft-RoCE, "-" for others.
 *
 * Source: Documentation/ABI/stable/sysfs-class-infiniband.
 */
#include "cli/pathtest/facts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/gid.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* Builtins, as far as possible: a program for each of some thousand GIDs would take long. */
const char pathtest_facts_script[] =
	"cd /sys/class/net/\"$0\" && read -r state <operstate && read -r mtu <mtu && "
	"echo \"link $state $mtu\"\n"
	"for port in /sys/class/infiniband/*/ports/*; do\n"
	"  layer=; { read -r layer <$port/link_layer; } 2>/dev/null || continue\n"
	"  device=${port%/ports/*} soft=-\n"
	"  { read -r soft <$device/parent; } 2>/dev/null\n"
	"  rate=; { read -r rate what <$port/rate; } 2>/dev/null\n"
	"  echo \"rate ${rate:-0}\"\n"
	"  for file in $port/gids/*; do\n"
	"    gid=; { read -r gid <$file; } 2>/dev/null || continue\n"
	"    [ \"$gid\" != 0000:0000:0000:0000:0000:0000:0000:0000 ] || continue\n"
	"    n=${file##*/} type=- netdev=-\n"
	"    { read -r type <$port/gid_attrs/types/$n; } 2>/dev/null\n"
	"    { read -r netdev <$port/gid_attrs/ndevs/$n; } 2>/dev/null\n"
	"    echo \"gid ${device##*/} ${port##*/} $layer ${soft:--} $n $gid ${netdev:--} $type\"\n"
	"  done\n"
	"done\n"
	"for tool in timeout ping rping ib_read_lat ib_write_bw rstream orbweaver; do\n"
	"  command -v $tool >/dev/null || echo \"missing $tool\"\n"
	"done\n"
	"case $(ping -h 2>&1) in\n"
	"*'-M '*) ;;\n"
	"*) echo 'missing iputils' ;;\n"
	"esac\n";

enum {
	LINE_MAX_LEN = 256,
	WORDS_MAX = 9,
	MTU_MAX = 65536, /* of lo; that of others is less */
	GID_INDEX_MAX = 65535,
	RATE_MAX = 100000, /* Gbit/s */
};

/* How well a GID fits: the greatest counts, of equal ones the first. */
enum fit {
	FIT_NONE,
	FIT_MASTER,    /* on the NIC below */
	FIT_INTERFACE, /* on the interface */
	FIT_NAMED,     /* of the device that network-status names */
	FIT_ADDRESS,   /* it is the address */
};

struct wanted {
	const char *interface, *master, *rdma;
	char gid[GID_TEXT_SIZE]; /* of the address; "": it has none */
};

static enum fit fit_of(const struct wanted *wanted, const char *device, const char *gid,
		       const char *netdev)
{
	if (*wanted->gid && strcasecmp(gid, wanted->gid) == 0)
		return FIT_ADDRESS;
	if (str_eq(device, wanted->rdma))
		return FIT_NAMED;
	if (str_eq(netdev, wanted->interface))
		return FIT_INTERFACE;
	return str_eq(netdev, wanted->master) ? FIT_MASTER : FIT_NONE;
}

/*
 * Soft-RoCE routes what it sends in the network namespace of the interface below it, where the
 * pod's address is not of an interface: of a device on another interface than the pod's, that one's
 * GIDs.
 */
static bool is_soft_elsewhere(const struct wanted *wanted, const char *soft)
{
	return !str_eq(soft, "-") && !str_eq(soft, wanted->interface);
}

/* Of equally good ones RoCE v2 over IPv4, which switches route, then RoCE v2. */
static int score(enum fit fit, const char *gid, const char *type)
{
	bool is_v2 = str_starts(type, "RoCE v2");
	bool is_mapped = str_starts(gid, "0000:0000:0000:0000:0000:ffff:");

	return fit == FIT_NONE ? 0 : (int)fit * 4 + (is_v2 ? 2 : 0) + (is_v2 && is_mapped);
}

/* The words of a line, the last one with all that is left. Returns how many. */
static size_t split(char *line, char *words[WORDS_MAX])
{
	size_t n = 0;

	while (*line && n < WORDS_MAX) {
		size_t len = n + 1 == WORDS_MAX ? strlen(line) : strcspn(line, " ");

		words[n++] = line;
		line += len;
		while (*line == ' ')
			*line++ = '\0';
	}
	return n;
}

static bool number(const char *word, int64_t max, int *ret)
{
	int64_t n = 0;

	if (!str_to_int(word, 0, max, &n))
		return false;
	*ret = (int)n;
	return true;
}

/* Where the reader of lines is. */
struct reading {
	const struct wanted *wanted;
	int best; /* score of the GID in the result */
	int rate; /* of the port whose GIDs come */
};

static void take_gid(char *const words[WORDS_MAX], struct reading *reading, struct facts *ret)
{
	const char *device = words[1], *soft = words[4], *gid = words[6], *netdev = words[7],
		   *type = words[8];
	const struct wanted *wanted = reading->wanted;
	bool is_elsewhere = is_soft_elsewhere(wanted, soft);
	enum fit fit = is_elsewhere && !str_eq(netdev, soft) ? FIT_NONE
							     : fit_of(wanted, device, gid, netdev);
	int points = score(fit, gid, type);
	int port = 0, index = 0;

	if (points <= reading->best || strlen(device) >= sizeof(ret->rdma) ||
	    !number(words[2], UINT8_MAX, &port) || !number(words[5], GID_INDEX_MAX, &index))
		return;
	reading->best = points;
	snprintf(ret->rdma, sizeof(ret->rdma), "%s", device);
	ret->port = port;
	ret->rate_gbps = reading->rate;
	ret->gid = str_eq(words[3], "InfiniBand") ? -1 : index;
	ret->is_soft_elsewhere = is_elsewhere;
}

static void take_line(char *line, struct reading *reading, struct facts *ret)
{
	char *words[WORDS_MAX] = {0};
	size_t n = split(line, words);
	size_t len;

	if (n == 3 && str_eq(words[0], "link") && number(words[2], MTU_MAX, &ret->mtu)) {
		ret->has_link = true;
		snprintf(ret->operstate, sizeof(ret->operstate), "%s", words[1]);
	} else if (n == 2 && str_eq(words[0], "missing")) {
		len = strlen(ret->missing);
		if (len + strlen(words[1]) + 3 <= sizeof(ret->missing))
			snprintf(ret->missing + len, sizeof(ret->missing) - len, "%s%s",
				 len > 0 ? ", " : "", words[1]);
	} else if (n == 2 && str_eq(words[0], "rate")) {
		if (!number(words[1], RATE_MAX, &reading->rate))
			reading->rate = 0;
	} else if (n == WORDS_MAX && str_eq(words[0], "gid")) {
		take_gid(words, reading, ret);
	}
}

void facts_read(const char *text, const json_t *interface, const char *master, struct facts *ret)
{
	struct wanted wanted = {
		.interface = json_str_at(interface, "interface"),
		.master = master,
		.rdma = json_str_at(interface, "rdma"),
	};
	struct reading reading = {.wanted = &wanted};

	*ret = (struct facts){0};
	(void)gid_of_address(json_str_or(json_at(interface, "address"), ""), wanted.gid);
	for (size_t lines = 0; *text && lines < PATHTEST_GIDS_MAX; lines++) {
		size_t len = strcspn(text, "\n");
		char line[LINE_MAX_LEN];

		if (len < sizeof(line)) {
			memcpy(line, text, len);
			line[len] = '\0';
			str_cover_controls(line, "", '?');
			take_line(line, &reading, ret);
		}
		text += len + (text[len] == '\n');
	}
}

/* "ibv_open_device fails: …; remedy"; the call is behind what was seen of it. */
void facts_read_verbs(const char *text, struct facts *ret)
{
	const char *begin = strchr(text, '{');
	json_auto_t *document = begin ? json_parse(begin, strlen(begin), NULL) : NULL;
	json_t *finding;
	size_t i;

	/* The worst come first. */
	json_array_foreach (json_at(document, "items"), i, finding) {
		const char *reason = json_str_at(finding, "reason");
		bool is_error = str_eq(json_str_at(finding, "level"), "error");

		if (!str_eq(json_str_at(finding, "subject"), ret->rdma) ||
		    (!is_error && !str_eq(reason, "VerbsWork")))
			continue;
		ret->verbs = is_error && !str_eq(reason, "GidNotUsable") ? FACTS_VERBS_BROKEN
									 : FACTS_VERBS_WORK;
		(void)snprintf(ret->verbs_seen, sizeof(ret->verbs_seen), "%s%s%s",
			       json_str_or(json_at(finding, "seen"), "?"), is_error ? "; " : "",
			       is_error ? json_str_or(json_at(finding, "remedy"), "") : "");
		str_cover_controls(ret->verbs_seen, "", '?');
		return;
	}
}

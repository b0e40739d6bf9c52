// SPDX-License-Identifier: Apache-2.0
/*
 * Counters have names of their drivers: docs of mlx5 ("Understanding mlx5 ethtool Counters" and
 * hw_counters), drivers/infiniband/hw/{bnxt_re,irdma}/hw*.c, sw/rxe/rxe_hw_counters.c. Those that
 * are one thing are added up. In RDMA mode shared, the kernel shows hw_counters in the host's
 * network namespace alone; rdma(8), where the image has it, asks for them by netlink.
 */
#include "cli/pathtest/fabric.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

const char fabric_count_script[] =
	"port=$1; shift\n"
	"count() {\n"
	"  for file in /sys/class/infiniband/$0/ports/$port/hw_counters/*; do\n"
	"    { read -r n <$file; } 2>/dev/null && echo \"count ${file##*/} $n\"\n"
	"  done\n"
	"  [ -e /sys/class/infiniband/$0/ports/$port/hw_counters ] ||\n"
	"    rdma statistic show link $0/$port 2>/dev/null | {\n"
	"      read -r link name line && set -- $line\n"
	"      while [ $# -gt 1 ]; do echo \"count $1 $2\"; shift 2; done\n"
	"    }\n"
	"}\n"
	"count; \"$@\" || exit; count\n";

/* ---- settings -------------------------------------------------------------------------------- */

/* Of nodeagent/model/nic_settings.h, those that one end cannot have for itself. */
static const char *const shared_settings[] = {"pfc", "pauseFrames", "trust", "dscpToPriority",
					      "ecn", "cnp"};

/*
 * Where a NIC gives all RoCE packets one traffic class, whose upper six bits are their DSCP: has
 * that one's priority PFC, if any has?
 */
static void add_unprotected(const json_t *nic, const char *where, struct strbuf *differ)
{
	const json_t *settings = json_at(nic, "settings"), *pfc = json_at(settings, "pfc");
	long long class = json_integer_value(json_at(settings, "trafficClass"));
	long long dscp = class >> 2, priority;
	auto_free char *key = str_printf("%lld", dscp);
	json_t *one;
	size_t i;

	if (!json_at(settings, "trafficClass") || class < 0 || json_array_size(pfc) == 0 ||
	    !json_at(settings, "dscpToPriority") || !str_eq(json_str_at(settings, "trust"), "dscp"))
		return;
	priority = json_integer_value(json_at(settings, "dscpToPriority", key));
	json_array_foreach (pfc, i, one)
		if (json_integer_value(one) == priority)
			return;
	strbuf_addf(differ, "%sRoCE has DSCP %lld %s, of priority %lld, which has no PFC",
		    differ->len > 0 ? "; " : "", dscp, where, priority);
}

enum fabric_verdict fabric_compare(const json_t *client, const json_t *server, char *text,
				   size_t size)
{
	const json_t *here = json_at(client, "settings"), *there = json_at(server, "settings");
	auto_strbuf struct strbuf differ = {0}, same = {0};

	if (!here || !there) {
		snprintf(text, size, "%s", here || there ? "not known of one end" : "");
		return FABRIC_UNKNOWN;
	}
	for (size_t i = 0; i < ARRAY_LEN(shared_settings); i++) {
		const char *name = shared_settings[i];
		const json_t *a = json_at(here, name), *b = json_at(there, name);
		auto_free char *one = a ? json_text(a) : NULL, *other = b ? json_text(b) : NULL;

		/* A driver may not have it. */
		if (!a || !b)
			continue;
		if (json_same(a, b))
			strbuf_addf(&same, "%s%s", same.len > 0 ? ", " : "", name);
		else
			strbuf_addf(&differ, "%s%s is %.80s here and %.80s there",
				    differ.len > 0 ? "; " : "", name, one, other);
	}
	add_unprotected(client, "here", &differ);
	add_unprotected(server, "there", &differ);
	if (differ.len > 0)
		snprintf(text, size, "%s: set both NICs, and switches, alike", strbuf_str(&differ));
	else if (same.len > 0)
		snprintf(text, size, "alike: %s", strbuf_str(&same));
	else
		snprintf(text, size, "the drivers have none in common");
	return differ.len > 0 ? FABRIC_FAILED : same.len > 0 ? FABRIC_OK : FABRIC_UNKNOWN;
}

/* ---- counters -------------------------------------------------------------------------------- */

static const struct {
	const char *name, *member;
} counters[] = {
	{"np_ecn_marked_roce_packets", "ecnMarked"},
	{"rx_ecn_marked_pkts", "ecnMarked"},
	{"RxECNMrkd", "ecnMarked"},
	{"np_cnp_sent", "cnpSent"},
	{"tx_cnp_pkts", "cnpSent"},
	{"cnpSent", "cnpSent"},
	{"rp_cnp_handled", "cnpHandled"},
	{"rx_cnp_pkts", "cnpHandled"},
	{"cnpHandled", "cnpHandled"},
	{"packet_seq_err", "lost"},
	{"local_ack_timeout_err", "lost"},
	{"seq_err_naks_rcvd", "lost"},
	{"to_retransmits", "lost"},
	{"rcvd_seq_err", "lost"},
	{"completer_retry_err", "lost"},
};

enum { COUNT_DIGITS_MAX = 16 };

/* Of "count NAME NUMBER" the number; -1: another line, or of a counter that does not matter. */
static int64_t read_count(const char *line, size_t len, const char **ret_name)
{
	static const char word[] = "count ";
	const char *name = line + strlen(word);
	int64_t ret = -1;

	for (size_t i = 0; i < ARRAY_LEN(counters) && str_starts(line, word); i++) {
		size_t n = strlen(counters[i].name);
		auto_free char *number = NULL;

		if (!str_starts(name, counters[i].name) || name[n] != ' ' ||
		    len - strlen(word) - n - 1 > COUNT_DIGITS_MAX)
			continue;
		*ret_name = counters[i].name;
		number = str_ndup(name + n + 1, len - strlen(word) - n - 1);
		return str_to_int(number, 0, INT64_MAX, &ret) ? ret : -1;
	}
	return -1;
}

json_t *fabric_counted(const char *output)
{
	json_auto_t *first = json_object(), *last = json_object(), *grown = json_object();

	for (size_t len; *output; output += len + (output[len] == '\n')) {
		const char *name = NULL;
		int64_t n;

		len = strcspn(output, "\n");
		n = read_count(output, len, &name);
		if (n >= 0)
			json_put_int(json_object_get(first, name) ? last : first, name, n);
	}
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		const json_t *now = json_object_get(last, counters[i].name);
		int64_t more = json_integer_value(now) -
			       json_integer_value(json_object_get(first, counters[i].name));

		if (now && more >= 0)
			json_put_int(grown, counters[i].member,
				     json_integer_value(json_at(grown, counters[i].member)) + more);
	}
	return json_object_size(grown) > 0 ? json_incref(grown) : NULL;
}

static long long sum_of(const json_t *a, const json_t *b, const char *member)
{
	return json_integer_value(json_at(a, member)) + json_integer_value(json_at(b, member));
}

enum fabric_verdict fabric_judge(const json_t *client, const json_t *server, const json_t *sent,
				 const json_t *received, char *text, size_t size)
{
	long long lost = sum_of(sent, received, "lost");
	bool is_lossless = json_array_size(json_at(client, "settings", "pfc")) > 0 &&
			   json_array_size(json_at(server, "settings", "pfc")) > 0;

	if (!sent && !received) {
		snprintf(text, size, "not known: the pods see no counters of their RDMA devices");
		return FABRIC_UNKNOWN;
	}
	snprintf(text, size,
		 "marked by ECN %lld, CNPs sent %lld, handled %lld; lost or late %lld%s",
		 sum_of(sent, received, "ecnMarked"), sum_of(sent, received, "cnpSent"),
		 sum_of(sent, received, "cnpHandled"), lost,
		 lost > 0 && is_lossless
			 ? ", though both NICs have PFC: a switch between them has not, or "
			   "puts the packets into another class"
			 : "");
	return lost > 0 && is_lossless ? FABRIC_FAILED : FABRIC_OK;
}

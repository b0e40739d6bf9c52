// SPDX-License-Identifier: Apache-2.0
/*
 * Tools: ping of iputils; rping and rstream of rdmacm-utils; ib_read_lat and ib_write_bw of
 * perftest 4.5, whose reports are lines of numbers below one that begins with "#bytes".
 */
#include "cli/pathtest/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pathtest/fabric.h"
#include "lib/base/str.h"

#define BUFFER        "65536"
#define LATENCY_SIZE  "2"
#define LATENCY_TIMES "1000"

enum {
	STREAM_US = 3000000,
	/* What a path of 100 Gbit/s does in that time, ten times. */
	STREAM_MOST = 3000000,
	/* Of flags, Gbit/s and microseconds. */
	LIMIT_MAX = 1000000,
};

const char path_once_script[] = "exec timeout \"$0\" \"$@\" 2>&1\n";

/*
 * What does not listen yet refuses at once and says little; what came further says more, and then
 * the server may be gone: the longest text counts. Who ran into the time limit has tried. The
 * server's command has begun, but a machine that is given more time for a check may need more of it
 * until that listens, too.
 */
const char path_until_script[] = "n=0 most=\n"
				 "until out=$(timeout \"$0\" \"$@\" 2>&1); do\n"
				 "  status=$?\n"
				 "  [ ${#out} -le ${#most} ] || most=$out\n"
				 "  n=$((n + 1))\n"
				 "  [ $n -lt $(($0 / 6)) ] && [ $status != 124 ] && "
				 "[ $status != 143 ] || { "
				 "echo \"$most\"; exit $status; }\n"
				 "  sleep 1\n"
				 "done\n"
				 "echo \"$out\"\n";

/* Of coreutils, of busybox. */
bool path_is_late(int exit_code)
{
	return exit_code == 124 || exit_code == 143;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void add(struct step_words *w, const char *word)
{
	if (w->n + 1 < PATHTEST_WORDS_MAX)
		w->words[w->n++] = word;
}

static void add_all(struct step_words *w, const char *const *words)
{
	for (; *words; words++)
		add(w, *words);
}

static void add_number(struct step_words *w, int number)
{
	char *text = w->numbers[w->n_numbers];

	if (w->n_numbers + 1 < ARRAY_LEN(w->numbers))
		w->n_numbers++;
	snprintf(text, sizeof(w->numbers[0]), "%d", number);
	add(w, text);
}

static bool is_v6(const struct path *path)
{
	return strchr(path->server.address, ':');
}

int path_mtu(const struct path *path)
{
	int a = path->server.facts.mtu, b = path->client.facts.mtu;

	return a < b ? a : b;
}

static void ping_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_all(ret, (const char *const[]){"ping", "-c", NULL});
	add_number(ret, PATHTEST_ROUNDS);
	add_all(ret, (const char *const[]){"-i", "0.2", "-W", "2", "-I", path->client.address,
					   path->server.address, NULL});
}

/* As large as fits, headers of IP and ICMP included, and not to be cut on the way. */
static void mtu_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_all(ret, (const char *const[]){"ping", "-c", "2", "-i", "0.2", "-W", "2", "-I",
					   path->client.address, "-M", "do", "-s", NULL});
	add_number(ret, path_mtu(path) - (is_v6(path) ? 48 : 28));
	add(ret, path->server.address);
}

static void rping_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_all(ret, (const char *const[]){"rping", is_server ? "-s" : "-c", "-a",
					   path->server.address, "-p", path->port, "-C", NULL});
	add_number(ret, PATHTEST_ROUNDS);
}

static void add_perftest(const struct path *path, bool is_server, const char *const *words,
			 struct step_words *ret)
{
	const struct facts *facts = is_server ? &path->server.facts : &path->client.facts;

	add_all(ret, words);
	add_all(ret, (const char *const[]){"-F", "-p", path->port, "-d", facts->rdma, "-i", NULL});
	add_number(ret, facts->port);
	if (facts->gid >= 0) {
		add(ret, "-x");
		add_number(ret, facts->gid);
	}
	if (!is_server)
		add(ret, path->server.control);
}

static void read_lat_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_perftest(
		path, is_server,
		(const char *const[]){"ib_read_lat", "-n", LATENCY_TIMES, "-s", LATENCY_SIZE, NULL},
		ret);
}

/* By time, so that it is as long on slow and on fast NICs. */
static void write_bw_words(const struct path *path, bool is_server, struct step_words *ret)
{
	const struct facts *facts = is_server ? &path->server.facts : &path->client.facts;

	add_all(ret, (const char *const[]){"sh", "-c", fabric_count_script, facts->rdma, NULL});
	add_number(ret, facts->port);
	add_all(ret, (const char *const[]){"ib_write_bw", "-D", NULL});
	add_number(ret, 3 * path->margin_s);
	add(ret, "-f");
	add_number(ret, path->margin_s);
	add_perftest(path, is_server, (const char *const[]){"-s", BUFFER, "--report_gbits", NULL},
		     ret);
}

static void add_rstream(const struct path *path, bool is_server, const char *const *words,
			struct step_words *ret)
{
	add_all(ret, (const char *const[]){"rstream", "-T", "s", "-T", "b", "-p", path->port,
					   is_server ? "-b" : "-s", path->server.address, NULL});
	if (is_v6(path))
		add_all(ret, (const char *const[]){"-f", "ipv6", NULL});
	add_all(ret, words);
}

static void tcp_lat_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_rstream(path, is_server,
		    (const char *const[]){"-S", LATENCY_SIZE, "-I", LATENCY_TIMES, "-C", "1", NULL},
		    ret);
}

int path_transfers(double rate)
{
	/* Both ways one after the other; rate has nanoseconds below the line. */
	double each_us = 2 * strtod(BUFFER, NULL) * 8 / rate / 1e3;
	double most = STREAM_US / each_us;

	if (!(most > PATHTEST_TRIAL))
		return PATHTEST_TRIAL;
	return most < STREAM_MOST ? (int)most : STREAM_MOST;
}

static void tcp_bw_words(const struct path *path, bool is_server, struct step_words *ret)
{
	add_rstream(path, is_server, (const char *const[]){"-S", BUFFER, "-I", "1", "-C", NULL},
		    ret);
	add_number(ret, path->transfers);
}

/* ---- what they print ------------------------------------------------------------------------- */

/* A number that can be one; words that only begin like one are not. */
static bool read_number(const char *word, size_t len, double *ret)
{
	char text[32], *end = NULL;
	double n = 0;

	if (len == 0 || len >= sizeof(text) || strspn(word, "0123456789.") < len)
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	n = strtod(text, &end);
	if (*end || !(n > 0) || n > 1e9)
		return false;
	*ret = n;
	return true;
}

/* Word number `at` (from 0) of the line. */
static bool word_of(const char *line, size_t at, double *ret)
{
	for (size_t i = 0;; i++) {
		size_t len;

		line += strspn(line, " \t");
		len = strcspn(line, " \t\r\n");
		if (len == 0)
			return false;
		if (i == at)
			return read_number(line, len, ret);
		line += len;
	}
}

/* The line behind one that begins with `title`, blanks aside. NULL: there is none. */
static const char *line_below(const char *output, const char *title)
{
	while (*output) {
		bool found = str_starts(output + strspn(output, " "), title);

		output += strcspn(output, "\n");
		output += *output == '\n';
		if (found && *output)
			return output;
	}
	return NULL;
}

/* #bytes #iterations t_min t_max t_typical … */
static bool read_lat(const char *output, double *ret)
{
	const char *line = line_below(output, "#bytes");

	return line && word_of(line, 4, ret);
}

/* #bytes #iterations peak average rate */
static bool read_bw(const char *output, double *ret)
{
	const char *line = line_below(output, "#bytes");

	return line && word_of(line, 3, ret);
}

/* name bytes xfers iters total time Gb/sec usec/xfer; the last is one way. */
static bool read_tcp_lat(const char *output, double *ret)
{
	const char *line = line_below(output, "name ");

	if (!line || !word_of(line, 7, ret))
		return false;
	*ret *= 2;
	return true;
}

/* Of two digits behind the point; small ones follow from the time that 64 KiB take. */
static bool read_tcp_bw(const char *output, double *ret)
{
	const char *line = line_below(output, "name ");
	double us = 0;

	if (!line || !word_of(line, 7, &us))
		return false;
	*ret = strtod(BUFFER, NULL) * 8 / us / 1e3;
	return true;
}

/* "rtt min/avg/max/mdev = 0.1/0.2/0.3/0.0 ms", or busybox's "round-trip min/avg/max = …". */
static bool read_ping(const char *output, double *ret)
{
	const char *at = strstr(output, "min/avg/max");
	const char *slash = at ? strstr(at, "= ") : NULL;

	slash = slash ? strchr(slash, '/') : NULL;
	if (!slash || !read_number(slash + 1, strcspn(slash + 1, "/ \n"), ret))
		return false;
	*ret *= 1e3;
	return true;
}

const struct step path_steps[] = {
	{.name = "mtu", .tool = "ping", .whose = "iputils", .binds = true, .words = mtu_words},
	{
		.name = "ping",
		.tool = "ping",
		.binds = true,
		.measures = STEP_ROUND_TRIP,
		.words = ping_words,
		.read = read_ping,
	},
	{
		.name = "rping",
		.tool = "rping",
		.has_server = true,
		.needs_rdma = true,
		.needs_cm = true,
		.words = rping_words,
	},
	{
		.name = "ib_read_lat",
		.tool = "ib_read_lat",
		.has_server = true,
		.needs_rdma = true,
		.binds = true,
		.measures = STEP_RDMA_LATENCY,
		.words = read_lat_words,
		.read = read_lat,
	},
	{
		.name = "ib_write_bw",
		.tool = "ib_write_bw",
		.has_server = true,
		.needs_rdma = true,
		.counts = true,
		.binds = true,
		.measures = STEP_RDMA_BANDWIDTH,
		.words = write_bw_words,
		.read = read_bw,
	},
	{
		.name = "tcp latency",
		.tool = "rstream",
		.has_server = true,
		.measures = STEP_TCP_LATENCY,
		.words = tcp_lat_words,
		.read = read_tcp_lat,
	},
	{
		.name = "tcp bandwidth",
		.tool = "rstream",
		.has_server = true,
		.has_trial = true,
		.measures = STEP_TCP_BANDWIDTH,
		.words = tcp_bw_words,
		.read = read_tcp_bw,
	},
	{0},
};

bool path_has_step(enum path_pattern pattern, const struct step *step)
{
	return pattern == PATTERN_RAILS   ? true
	       : pattern == PATTERN_CROSS ? step->binds
					  : step->measures == STEP_RDMA_BANDWIDTH;
}

/* ---- link ------------------------------------------------------------------------------------ */

/* macvlan of a NIC whose driver reports no state has "unknown", and works. */
static bool is_up(const struct facts *facts)
{
	return str_eq(facts->operstate, "up") || str_eq(facts->operstate, "unknown");
}

bool path_link_is_up(const struct path *path, char *text, size_t size)
{
	const struct path_end *ends[] = {&path->client, &path->server};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct facts *facts = &ends[i]->facts;
		const char *where = i == 0 ? "" : " of the other end";

		if (!facts->has_link)
			snprintf(text, size, "there is no interface %s in the pod%s",
				 ends[i]->interface, where);
		else if (!is_up(facts))
			snprintf(text, size, "%s%s is %s", ends[i]->interface, where,
				 facts->operstate);
		else
			continue;
		return false;
	}
	if (path->server.facts.mtu == path->client.facts.mtu) {
		snprintf(text, size, "up, MTU %d", path_mtu(path));
		return true;
	}
	snprintf(text, size, "MTU %d here and %d there: make them equal, on NICs and switches",
		 path->client.facts.mtu, path->server.facts.mtu);
	return false;
}

enum facts_verbs path_verbs(const struct path *path, char *text, size_t size)
{
	const struct facts *client = &path->client.facts, *server = &path->server.facts;
	bool is_server = client->verbs != FACTS_VERBS_BROKEN && server->verbs > client->verbs;
	const struct facts *worse = is_server ? server : client;

	snprintf(text, size, "%s%s", is_server ? "the other end: " : "", worse->verbs_seen);
	return worse->verbs;
}

/* The line that ends before `end`, without blanks and rules. Sets *ret_start. */
static size_t line_before(const char *output, size_t end, size_t *ret_start)
{
	size_t start;

	while (end > 0 && strchr(" \t\r\n-", output[end - 1]))
		end--;
	start = end;
	while (start > 0 && output[start - 1] != '\n')
		start--;
	*ret_start = start;
	while (start < end && output[start] == ' ')
		start++;
	return end - start;
}

/* A number above 0; *ret_percent says whether "%" stands behind it, where that may be. */
static bool read_limit(const char *text, bool *ret_percent, double *ret)
{
	char *end = NULL;

	*ret = strtod(text, &end);
	if (ret_percent && *end == '%') {
		*ret_percent = true;
		end++;
	}
	return end != text && *end == '\0' && *ret > 0 && *ret < LIMIT_MAX;
}

int path_limits_read(const char *min_gbps, const char *max_us, struct path_limits *ret,
		     struct err *err)
{
	bool is_percent = false;
	double number = 0;

	*ret = (struct path_limits){0};
	if (min_gbps && !read_limit(min_gbps, &is_percent, &number))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--min-gbps %.32s: must be Gbit/s, as in 180, or a part of the "
			       "NICs' rate, as in 90%%",
			       min_gbps);
	*(is_percent ? &ret->min_percent : &ret->min_gbps) = number;
	if (max_us && !read_limit(max_us, NULL, &ret->max_us))
		return err_set(err, ERR_INVALID, "BadFlag",
			       "--max-us %.32s: must be microseconds, as in 8 or 2.5", max_us);
	return 0;
}

bool path_is_within(const struct path_limits *limits, const struct path *path,
		    enum step_measure measure, double value, char *text, size_t size)
{
	int client = path->client.facts.rate_gbps, server = path->server.facts.rate_gbps;
	int rate = client < server ? client : server;
	double least =
		limits->min_percent > 0 ? limits->min_percent / 100 * rate : limits->min_gbps;

	*text = '\0';
	if (measure == STEP_RDMA_LATENCY && limits->max_us > 0 && value > limits->max_us)
		snprintf(text, size, "more than %g us (--max-us)", limits->max_us);
	else if (measure == STEP_RDMA_BANDWIDTH && limits->min_percent > 0 && rate == 0)
		snprintf(text, size,
			 "the rate of an RDMA device is not known: give --min-gbps a "
			 "number without %%");
	else if (measure == STEP_RDMA_BANDWIDTH && value < least)
		snprintf(text, size, "less than %g Gb/s (--min-gbps)", least);
	return *text == '\0';
}

char *path_last_lines(const char *output)
{
	size_t end = strlen(output);
	char *text = str_dup("");

	for (int n = 0; n < 2; n++) {
		size_t start, len = line_before(output, end, &start);
		const char *line = output + start + strspn(output + start, " ");
		char *longer;

		if (len == 0)
			break;
		longer = str_printf("%.*s%s%s", (int)str_clip(line, len, 200), line,
				    *text ? "; " : "", text);
		free(text);
		text = longer;
		end = start;
	}
	str_cover_controls(text, "", '?');
	return text;
}

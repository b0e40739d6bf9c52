// SPDX-License-Identifier: Apache-2.0
/*
 * Line by line; of each sample of a counter that people look at, three labels and the value.
 */
#include "nodeagent/devices/exposition_read.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

enum {
	LABEL_SIZE = 320, /* "namespace/pod" has 253 + 63 */
	/* Ports, or pods and their ports, of one node. */
	ENTRIES_MAX = 4096,
};

/* Counters of drivers under one word; those of the wire have the names of their drivers. */
static const struct {
	const char *name, *member;
} counters[] = {
	{"rdma_port_data_received_bytes_total", "received"},
	{"rdma_port_data_transmitted_bytes_total", "sent"},
	{"rdma_symbol_error_total", "errors"},
	{"rdma_link_error_recovery_total", "errors"},
	{"rdma_local_link_integrity_errors_total", "errors"},
	{"rdma_port_errors_received_total", "errors"},
	{"rdma_rx_crc_errors_phy_total", "errors"},
	{"rdma_rx_symbol_err_phy_total", "errors"},
	{"rdma_rx_crc_errors_total", "errors"},
	{"rdma_rx_fcs_err_frames_total", "errors"},
	{"rdma_local_ack_timeout_err_total", "retransmits"},
	{"rdma_packet_seq_err_total", "retransmits"},
	{"rdma_rnr_nak_retry_err_total", "retransmits"},
	{"rdma_roce_adp_retrans_total", "retransmits"},
	{"rdma_rx_pause_total", "pause"},
	{"rdma_tx_pause_total", "pause"},
};

struct sample {
	char port[LABEL_SIZE], ns[LABEL_SIZE], pod[LABEL_SIZE], root[LABEL_SIZE];
};

/* The value of a label, without escapes; *at is behind its quote, and behind the other then. */
static bool read_value(const char **at, const char *end, char ret[LABEL_SIZE])
{
	size_t n = 0;

	for (; *at < end && **at != '"'; (*at)++) {
		bool is_escaped = **at == '\\';

		if (is_escaped && ++*at == end)
			return false;
		if (n < LABEL_SIZE - 1)
			ret[n++] = is_escaped && **at == 'n' ? '\n' : **at;
	}
	ret[n] = '\0';
	return *at < end && *(*at)++ == '"';
}

/* From behind "{" to behind "}"; NULL: it is no list of labels. */
static const char *read_labels(const char *at, const char *end, struct sample *sample)
{
	const struct {
		const char *name;
		char *value;
	} known[] = {{"rdma_parent_name", sample->port},
		     {"pod_namespace", sample->ns},
		     {"pod_name", sample->pod},
		     {"is_root", sample->root}};

	while (at < end && *at != '}') {
		const char *equals = memchr(at, '=', (size_t)(end - at));
		char other[LABEL_SIZE], *value = other;
		size_t len;

		if (!equals || end - equals < 2 || equals[1] != '"')
			return NULL;
		len = (size_t)(equals - at);
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if (strlen(known[i].name) == len && memcmp(known[i].name, at, len) == 0)
				value = known[i].value;
		at = equals + 2;
		if (!read_value(&at, end, value))
			return NULL;
		if (at < end && *at == ',')
			at++;
	}
	return at < end ? at + 1 : NULL;
}

static void add_to(json_t *sums, const char *member, double value)
{
	json_put(sums, member, json_real(json_number_value(json_at(sums, member)) + value));
}

/* One more of a bounded object; NULL: there are enough, or that is no name. */
static json_t *entry_of(json_t *object, const char *key)
{
	json_auto_t *name = json_string(key);

	if (!name || (!json_object_get(object, key) && json_object_size(object) >= ENTRIES_MAX))
		return NULL;
	return json_need_object(object, key);
}

/* Up to the end of the line; false: no number, or a negative one. */
static bool read_number(const char *at, const char *end, double *ret)
{
	char number[64] = "";

	if (end - at >= (ptrdiff_t)sizeof(number))
		return false;
	memcpy(number, at, (size_t)(end - at));
	*ret = strtod(number, NULL);
	return isfinite(*ret) && *ret >= 0;
}

static void read_line(json_t *ret, const char *at, const char *end)
{
	static const char timestamp[] = "orbweaver_counters_timestamp_seconds ";
	const char *brace = memchr(at, '{', (size_t)(end - at)), *member = NULL, *rest;
	struct sample sample = {0};
	double value;

	if (!brace && end - at >= (ptrdiff_t)sizeof(timestamp) &&
	    memcmp(at, timestamp, sizeof(timestamp) - 1) == 0 &&
	    read_number(at + sizeof(timestamp) - 1, end, &value))
		json_put(ret, "seconds", json_real(value));
	for (size_t i = 0; brace && i < ARRAY_LEN(counters) && !member; i++)
		if (strlen(counters[i].name) == (size_t)(brace - at) &&
		    memcmp(counters[i].name, at, (size_t)(brace - at)) == 0)
			member = counters[i].member;
	rest = member ? read_labels(brace + 1, end, &sample) : NULL;
	if (!rest || !*sample.port || !read_number(rest, end, &value))
		return;
	if (str_eq(sample.root, "true")) {
		json_t *port = entry_of(json_at(ret, "ports"), sample.port);

		if (port)
			add_to(port, member, value);
	}
	if (*sample.pod) {
		auto_free char *name = str_printf("%s/%s", sample.ns, sample.pod);
		json_t *pod = entry_of(json_at(ret, "pods"), name);
		json_t *port = pod ? entry_of(pod, sample.port) : NULL;

		if (port)
			add_to(port, member, value);
	}
}

json_t *exposition_read(const char *text, size_t len)
{
	json_t *ret = json_pack("{s:{}, s:{}}", "ports", "pods");
	const char *end = text + len;

	assert(text);
	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));

		line_end = line_end ? line_end : end;
		read_line(ret, text, line_end);
		text = line_end + (line_end < end);
	}
	return ret;
}

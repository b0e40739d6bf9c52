// SPDX-License-Identifier: Apache-2.0
/*
 * What a worker and a kubelet say, as text for Prometheus: whatever it is, each line is a comment
 * or a metric with labels and a number.
 */
#include <ctype.h>
#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/devices/exposition.h"
#include "nodeagent/devices/exposition_read.h"
#include "nodeagent/devices/meter_pods.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static size_t name_len(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || at[n] == '_')
		n++;
	return isdigit((unsigned char)*at) ? 0 : n;
}

/* name="value", with what is escaped; returns what follows. */
static const char *skip_label(const char *at)
{
	size_t n = name_len(at);

	fuzz_check(n > 0 && at[n] == '=' && at[n + 1] == '"', "a label is name=\"value\"");
	for (at += n + 2; *at != '"'; at++) {
		fuzz_check(*at != '\n' && *at != '\0', "a value ends within its line");
		if (*at == '\\') {
			at++;
			fuzz_check(*at == '\\' || *at == '"' || *at == 'n', "escapes are known");
		}
	}
	return at + 1;
}

static const char *skip_sample(const char *at)
{
	size_t n = name_len(at);

	fuzz_check(n > 0 && at[n] == '{', "a sample has a name and labels");
	at += n + 1;
	while (*at != '}') {
		at = skip_label(at);
		fuzz_check(*at == ',' || *at == '}', "labels are separated");
		at += *at == ',';
	}
	fuzz_check(at[1] == ' ', "a number follows");
	at += 2 + (at[2] == '-');
	n = strspn(at, "0123456789");
	fuzz_check(n > 0 && at[n] == '\n', "a number is all that follows");
	return at + n + 1;
}

static const char *skip_comment(const char *at)
{
	fuzz_check(strncmp(at, "# HELP ", 7) == 0 || strncmp(at, "# TYPE ", 7) == 0 ||
			   strncmp(at, "# LABELS ", 9) == 0,
		   "comments are ours");
	return strchr(at, '\n') + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *doc = json_parse((const char *)data, size, NULL), *pods = NULL;
	auto_strbuf struct strbuf out = {0}, again = {0};
	struct exposition_input input = {0};

	json_decref(exposition_read((const char *)data, size));
	if (!doc)
		return 0;
	pods = meter_pods(json_at(doc, "allocated"), json_at(doc, "attachments"));
	input = (struct exposition_input){.node = json_str_at(doc, "node"),
					  .rails = json_at(doc, "rails"),
					  .devices = json_at(doc, "devices"),
					  .pods = json_at(doc, "pods") ? json_at(doc, "pods")
								       : pods,
					  .owners = json_at(doc, "owners"),
					  .allocated = json_at(doc, "allocated")};
	exposition_write(&input, &out);
	exposition_write(&input, &again);
	json_decref(exposition_read(strbuf_str(&out), out.len));
	fuzz_check(strcmp(strbuf_str(&out), strbuf_str(&again)) == 0,
		   "equal inputs give equal bytes");
	fuzz_check(strlen(strbuf_str(&out)) == out.len, "it is text");
	for (const char *at = out.data; *at;)
		at = *at == '#' ? skip_comment(at) : skip_sample(at);
	json_decref(meter_owner(doc));
	json_decref(meter_pods_on_port(
		&(struct meter_port){"0000:3b:00.0", doc, json_at(doc, "devices"),
				     json_at(doc, "allocated"), json_at(doc, "attachments")}));
	return 0;
}

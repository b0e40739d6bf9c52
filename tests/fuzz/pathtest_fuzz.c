// SPDX-License-Identifier: Apache-2.0
/*
 * What pods print for `orbweaver test`: whatever it is, names stay within their bounds, numbers are
 * positive, and a line for people has no control characters.
 *
 * Input: what the script of facts printed, and what each tool did.
 */
#include <stdint.h>
#include <string.h>

#include "cli/pathtest/fabric.h"
#include "cli/pathtest/facts.h"
#include "cli/pathtest/results.h"
#include "cli/pathtest/steps.h"
#include "cli/pathtest/tasks.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* Items of a file: any that are JSON make a picture. */
static void check_results(const char *text, size_t size)
{
	json_auto_t *items = json_parse(text, size, NULL), *picture = NULL, *ring = NULL;

	if (!json_is_array(items) || json_array_size(items) > 64)
		return;
	picture = results_picture(items);
	ring = results_ring(items);
	fuzz_check(json_array_size(json_at(picture, "suspects")) <= json_array_size(items) * 2,
		   "a path has two suspects at most");
	fuzz_check(json_array_size(json_at(picture, "bandwidth", "columns")) <= RESULTS_COLUMNS_MAX,
		   "columns are bounded");
	fuzz_check(json_array_size(json_at(ring, "rails")) <= json_array_size(items),
		   "a rail has an item");
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void check_facts(const char *text)
{
	json_auto_t *interface = json_pack("{s:s, s:s, s:s}", "interface", "net1", "address",
					   "10.0.0.1", "rdma", "mlx5_3");
	struct path path = {.server = {.interface = "net1", .address = "10.0.0.1"},
			    .client = {.interface = "net1", .address = "10.0.0.2"},
			    .port = "1"};
	struct facts *facts = &path.client.facts;
	char said[160];

	facts_read(text, interface, "ens1", facts);
	facts_read_verbs(text, facts);
	path.server.facts = *facts;
	fuzz_check(is_plain(facts->rdma) && is_plain(facts->operstate) && is_plain(facts->missing),
		   "no control characters");
	fuzz_check(facts->mtu >= 0 && facts->port >= 0 && facts->gid >= -1, "numbers are bounded");
	fuzz_check(is_plain(facts->verbs_seen), "what verbs say is plain");
	(void)path_link_is_up(&path, said, sizeof(said));
	fuzz_check(is_plain(said), "what is said is plain");
	for (const struct step *step = path_steps; step->name; step++) {
		struct step_words words = {0};

		step->words(&path, false, &words);
		fuzz_check(words.n + 1 < PATHTEST_WORDS_MAX && !words.words[words.n],
			   "a command ends");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = str_ndup((const char *)data, size);
	auto_free char *line = path_last_lines(text);
	json_auto_t *counted = NULL;
	struct task_report report;
	const char *member;
	json_t *grown;

	fuzz_check(is_plain(line) && strlen(line) <= 402 && !strchr(line, '\n'),
		   "a line is short and plain");
	check_facts(text);
	counted = fabric_counted(text);
	json_each (counted, member, grown)
		fuzz_check(json_integer_value(grown) >= 0, "counters grow");
	check_results(text, strlen(text));
	task_read(text, 1, &report);
	fuzz_check(report.exit_code >= 0 && report.exit_code <= 255, "a status is one");
	fuzz_check(strlen(report.output) <= size, "no more output than log");
	mem_free(report.output);
	for (const struct step *step = path_steps; step->name; step++) {
		double value = 0;

		if (step->read && step->read(text, &value))
			fuzz_check(value > 0 && value < 1e15, "a figure is one");
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Several tasks may run in a pod and write into one log, so each line has its task's number in
 * front: "17 begins" is the first, "17 > TEXT" is output, "17 ends STATUS" the last. Output is
 * written when the command has ended. test_pods.c writes tasks and reads logs.
 */
#include "cli/pathtest/tasks.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char task_pod_script[] = "seen=\n"
			       "while :; do\n"
			       "  now=\n"
			       "  { read -r now; } 2>/dev/null <\"$0/" TASK_FILE "\" || :\n"
			       "  if [ -n \"$now\" ] && [ \"$now\" != \"$seen\" ]; then\n"
			       "    seen=$now\n"
			       "    sh \"$0/" TASK_FILE "\" &\n"
			       "  fi\n"
			       "  sleep 0.2 2>/dev/null || sleep 1\n"
			       "done\n";

/* As one word of a shell. */
static void add_quoted(struct strbuf *out, const char *word)
{
	strbuf_adds(out, " '");
	for (; *word; word++)
		strbuf_adds(out, *word == '\'' ? "'\\''" : (const char[]){*word, '\0'});
	strbuf_addc(out, '\'');
}

void task_add(struct strbuf *text, int number, const char *script, const char *const *words)
{
	assert(text && number >= 0 && script && words);
	/* The first line identifies the text. */
	if (text->len == 0)
		strbuf_addf(text, "# %d\n", number);
	strbuf_addf(text, "{ echo \"%d begins\"\nout=$(sh -c", number);
	add_quoted(text, script);
	for (; *words; words++)
		add_quoted(text, *words);
	strbuf_addf(text,
		    " 2>&1)\nstatus=$?\n"
		    "printf '%%s\\n' \"$out\" | while IFS= read -r line; do\n"
		    "  printf '%d > %%s\\n' \"$line\"\n"
		    "done\n"
		    "echo \"%d ends $status\"; } &\n",
		    number, number);
}

void task_read(const char *log, int number, struct task_report *ret)
{
	auto_free char *begin = str_printf("%d begins", number);
	auto_free char *output = str_printf("%d > ", number);
	auto_free char *end = str_printf("%d ends ", number);
	auto_strbuf struct strbuf text = {0};

	assert(log && number >= 0 && ret);
	*ret = (struct task_report){0};
	while (*log && !ret->has_ended) {
		size_t len = strcspn(log, "\n");
		int64_t status = 0;

		if (len == strlen(begin) && str_starts(log, begin)) {
			ret->has_begun = true;
		} else if (str_starts(log, output)) {
			strbuf_add(&text, log + strlen(output), len - strlen(output));
			strbuf_addc(&text, '\n');
		} else if (str_starts(log, end)) {
			auto_free char *word = str_ndup(log + strlen(end), len - strlen(end));

			ret->has_ended = str_to_int(word, 0, 255, &status);
			ret->exit_code = (int)status;
		}
		log += len + (log[len] == '\n');
	}
	ret->output = strbuf_take(&text);
}

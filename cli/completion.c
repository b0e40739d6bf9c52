// SPDX-License-Identifier: Apache-2.0
/*
 * The scripts of the shells are constants that call this program again with the words so far.
 * completion_answer() then prints what may come next: commands and flags from the tables of
 * commands.c, names of objects as any command reads them.
 */
#include "cli/completion.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/source.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

static const char bash_script[] =
	"_orbweaver() {\n"
	"\tlocal line files=0 current=${COMP_WORDS[COMP_CWORD]}\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t:0) files=1 ;;\n"
	"\t\t:*) ;;\n"
	"\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(orbweaver " COMPLETION_COMMAND
	" \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"\t((!files)) || mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- "
	"\"$current\")\n"
	"}\n"
	"complete -F _orbweaver orbweaver\n";

static const char zsh_script[] =
	"#compdef orbweaver\n"
	"_orbweaver() {\n"
	"\tlocal -a items\n"
	"\tlocal line files=0\n"
	"\tfor line in ${(f)\"$(orbweaver " COMPLETION_COMMAND
	" \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
	"\t\tcase $line in\n"
	"\t\t:0) files=1 ;;\n"
	"\t\t:*) ;;\n"
	"\t\t*) items+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t_describe orbweaver items\n"
	"\t((!files)) || _files\n"
	"}\n"
	"if [[ ${funcstack[1]} == _orbweaver ]]; then _orbweaver; else compdef _orbweaver "
	"orbweaver; fi\n";

static const char fish_script[] =
	"function __orbweaver\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l answer (orbweaver " COMPLETION_COMMAND
	" $words[2..] (commandline -ct) 2>/dev/null)\n"
	"\tstring match -v ':*' -- $answer\n"
	"\tcontains -- :0 $answer; and __fish_complete_path (commandline -ct)\n"
	"end\n"
	"complete -c orbweaver -f -a '(__orbweaver)'\n";

int completion_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		   struct err *err)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		if (str_eq(cli->args[0], scripts[i].shell)) {
			strbuf_adds(out, scripts[i].script);
			return 0;
		}
	return err_set(err, ERR_INVALID, "BadUsage", "completion %.32s: must be bash, zsh or fish",
		       cli->args[0]);
}

/* ---- what may stand for the last word -------------------------------------------------------- */

struct line {
	struct cli cli; /* flags that say which cluster */
	char *kept[64]; /* words of the command and its arguments, without flags */
	size_t n;
	const char *last;            /* the word that is begun */
	const char *files[2];        /* for cli.files */
	const struct cli_flag *open; /* the flag whose value `last` is */
};

static void offer(const struct line *line, const char *word, size_t len, const char *about)
{
	if (strncmp(word, line->last, strlen(line->last)) == 0)
		printf("%.*s\t%s\n", (int)len, word, about);
}

static const struct cli_flag *flag_of(const char *word)
{
	for (const struct cli_flag *flag = cli_flags; flag->name; flag++)
		if ((strncmp(word, "--", 2) == 0 && str_eq(word + 2, flag->name)) ||
		    (word[0] == '-' && flag->letter && word[1] == flag->letter && !word[2]))
			return flag;
	return NULL;
}

static void take_value(struct line *line, const struct cli_flag *flag, const char *value)
{
	switch ((enum cli_flag_index)(flag - cli_flags)) {
	case FLAG_KUBECONFIG:
		line->cli.kubeconfig = value;
		break;
	case FLAG_CONTEXT:
		line->cli.context = value;
		break;
	case FLAG_NAMESPACE:
		line->cli.ns = value;
		break;
	case FLAG_FILENAME:
		line->files[0] = value;
		line->cli.files = line->files;
		break;
	case FLAG_OUTPUT:
	case FLAG_CONFIG_NAMESPACE:
	case FLAG_OPERATOR_NAMESPACE:
	case FLAG_POLICY_NAMESPACES:
	case FLAG_REPAIR:
	case FLAG_LOCAL:
	case FLAG_VERBS:
	case FLAG_COMPARE:
	case FLAG_HOST_ROOT:
	case FLAG_MESH:
	case FLAG_RESOURCE:
	case FLAG_IMAGE:
	case FLAG_TIMEOUT:
	case FLAG_CHECK_TIMEOUT:
	case FLAG_MIN_GBPS:
	case FLAG_MAX_US:
	case FLAG_PATTERN:
	case FLAG_TEST:
	case FLAG_SERVE:
	case FLAG_LISTEN:
	case FLAG_STATE:
	case FLAG_API_ONLY:
	case FLAG_NODE:
	case FLAG_ONCE:
	case FLAG_HELP:
	case FLAG_VERSION:
	case FLAG_COUNT:
		break;
	}
}

/* The next word of commands whose first words are there. */
static void offer_commands(const struct line *line)
{
	const char *before = NULL;
	size_t len_before = 0;

	for (const struct cli_command *command = cli_commands; command->name; command++) {
		const char *at = command->name;
		size_t len, i;

		for (i = 0; i < line->n; i++) {
			len = strcspn(at, " ");
			if (strlen(line->kept[i]) != len || strncmp(line->kept[i], at, len) != 0)
				break;
			at += len + (at[len] == ' ');
		}
		len = strcspn(at, " ");
		if (i < line->n || len == 0 ||
		    (before && len == len_before && strncmp(at, before, len) == 0))
			continue;
		offer(line, at, len, at[len] ? "…" : command->summary);
		before = at;
		len_before = len;
	}
}

static void offer_names(struct line *line, const struct cli_command *command)
{
	const char *const kinds[] = {command->completes, NULL};
	json_auto_t *world = NULL;
	struct err err = {0};
	json_t *object;
	const char *key;

	if (!kind_find(command->completes)) {
		for (const char *at = command->completes; *at; at += strspn(at, " ")) {
			size_t len = strcspn(at, " ");

			offer(line, at, len, "");
			at += len;
		}
		return;
	}
	world = source_read(&line->cli, kinds, &err);
	json_each (json_at(world, command->completes), key, object)
		offer(line, key, strlen(key), "");
}

static void offer_value(const struct line *line, const struct cli_command *command)
{
	if (line->open == &cli_flags[FLAG_OUTPUT] && !(command && command->to))
		for (const char *at = line->open->value; *at; at += *at == '|') {
			size_t len = strcspn(at, "|");

			offer(line, at, len, "");
			at += len;
		}
}

static void offer_flags(const struct line *line, const struct cli_command *command)
{
	for (const struct cli_flag *flag = cli_flags; flag->name; flag++) {
		auto_free char *word = str_printf("--%s", flag->name);

		if (flag->is_special && !(command && command->takes & 1u << (flag - cli_flags)))
			continue;
		offer(line, word, strlen(word), flag->about);
	}
}

int completion_answer(char *const *words, size_t n)
{
	struct line line = {.cli = {.ns = "default"}};
	const struct cli_command *command;
	bool with_files = false;
	size_t used;

	assert(words || n == 0);
	/* Sort the words into flags, which say where to ask, and those of the command. */
	line.last = n > 0 ? words[n - 1] : "";
	for (size_t i = 0; i + 1 < n; i++) {
		const struct cli_flag *flag = flag_of(words[i]);

		if (flag && flag->value) {
			if (i + 2 == n)
				line.open = flag;
			else
				take_value(&line, flag, words[i + 1]);
			i++;
		} else if (words[i][0] != '-' && line.n < ARRAY_LEN(line.kept)) {
			line.kept[line.n++] = words[i];
		}
	}
	command = cli_command_find(line.kept, line.n, &used);
	if (line.open) {
		offer_value(&line, command);
		with_files = strstr(line.open->value, "FILE") ||
			     (line.open == &cli_flags[FLAG_OUTPUT] && command && command->to);
	} else if (line.last[0] == '-') {
		offer_flags(&line, command);
	} else {
		offer_commands(&line);
		if (command && command->completes && line.n - used < command->args_max)
			offer_names(&line, command);
		with_files = command && (strstr(command->arguments, "FILE") ||
					 strstr(command->arguments, "DUMP"));
	}
	puts(with_files ? ":0" : ":4");
	return CLI_OK;
}

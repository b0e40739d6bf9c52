// SPDX-License-Identifier: Apache-2.0
/*
 * orbweaver: look at the cluster with the eyes of the operator. Also as `kubectl orbweaver`.
 *
 * Flags, the table of commands, and exit statuses; what a command does is in its own file.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/simulate/children.h"
#include "cli/source.h"
#include "cli/usage.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"

enum {
	FILES_MAX = 256,
	NODES_MAX = 100,
	FLAG_FIRST = 256, /* beyond all characters */
};

struct arguments {
	struct cli cli;
	const char *files[FILES_MAX + 1];
	size_t files_len;
	const char *nodes[NODES_MAX + 1];
	size_t nodes_len;
	const struct cli_command *command;
	const char *output; /* of -o; NULL: it was not given */
	unsigned int given; /* 1 << FLAG_… */
	bool help, version;
};

static int take_output(struct arguments *a, const char *value, struct err *err)
{
	static const char *const names[] = {
		[CLI_TABLE] = "table", [CLI_JSON] = "json", [CLI_YAML] = "yaml"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(value, names[i])) {
			a->cli.output = (enum cli_output)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "BadFlag", "--output %.32s: must be table, json or yaml",
		       value);
}

static int take_file(struct arguments *a, const char *value, struct err *err)
{
	if (a->files_len == FILES_MAX)
		return err_set(err, ERR_INVALID, "BadFlag", "--filename: at most %d files",
			       FILES_MAX);
	a->files[a->files_len++] = value;
	a->cli.files = a->files;
	return 0;
}

static int take_node(struct arguments *a, const char *value, struct err *err)
{
	if (a->nodes_len == NODES_MAX)
		return err_set(err, ERR_INVALID, "BadFlag", "--node: at most %d times", NODES_MAX);
	a->nodes[a->nodes_len++] = value;
	a->cli.nodes = a->nodes;
	return 0;
}

static int flag_of_letter(int c)
{
	for (int i = 0; cli_flags[i].name; i++)
		if (cli_flags[i].letter == c)
			return i;
	return c - FLAG_FIRST;
}

static int take_flag(struct arguments *a, enum cli_flag_index flag, const char *value,
		     struct err *err)
{
	switch (flag) {
	case FLAG_FILENAME:
		return take_file(a, value, err);
	case FLAG_OUTPUT:
		a->output = value;
		return 0;
	case FLAG_NAMESPACE:
		a->cli.ns = value;
		return 0;
	case FLAG_KUBECONFIG:
		a->cli.kubeconfig = value;
		return 0;
	case FLAG_CONTEXT:
		a->cli.context = value;
		return 0;
	case FLAG_CONFIG_NAMESPACE:
		a->cli.config_ns = value;
		return 0;
	case FLAG_OPERATOR_NAMESPACE:
		a->cli.operator_ns = value;
		return 0;
	case FLAG_POLICY_NAMESPACES:
		a->cli.policy_ns = value;
		return 0;
	case FLAG_REPAIR:
		a->cli.repair = true;
		return 0;
	case FLAG_LOCAL:
		a->cli.local = true;
		return 0;
	case FLAG_VERBS:
		a->cli.local = a->cli.verbs = true;
		return 0;
	case FLAG_COMPARE:
		a->cli.compare = true;
		return 0;
	case FLAG_HOST_ROOT:
		a->cli.host_root = value;
		return 0;
	case FLAG_MESH:
		a->cli.mesh = true;
		return 0;
	case FLAG_RESOURCE:
		a->cli.resource = value;
		return 0;
	case FLAG_IMAGE:
		a->cli.image = value;
		return 0;
	case FLAG_TIMEOUT:
		a->cli.timeout = value;
		return 0;
	case FLAG_CHECK_TIMEOUT:
		a->cli.check_timeout = value;
		return 0;
	case FLAG_MIN_GBPS:
		a->cli.min_gbps = value;
		return 0;
	case FLAG_MAX_US:
		a->cli.max_us = value;
		return 0;
	case FLAG_PATTERN:
		a->cli.pattern = value;
		return 0;
	case FLAG_TEST:
		a->cli.test = value;
		return 0;
	case FLAG_SERVE:
		a->cli.serve = true;
		return 0;
	case FLAG_LISTEN:
		a->cli.listen = value;
		return 0;
	case FLAG_STATE:
		a->cli.state = value;
		return 0;
	case FLAG_API_ONLY:
		a->cli.api_only = true;
		return 0;
	case FLAG_NODE:
		return take_node(a, value, err);
	case FLAG_ONCE:
		a->cli.once = true;
		return 0;
	case FLAG_HELP:
		a->help = true;
		return 0;
	case FLAG_VERSION:
		a->version = true;
		return 0;
	case FLAG_COUNT:
		break;
	}
	return err_set(err, ERR_BUG, "BadFlag", "a flag that nobody takes");
}

/* Flags may stand anywhere; getopt_long(3) moves what is none to the end. */
static int parse_flags(int argc, char **argv, struct arguments *a, struct err *err)
{
	struct option known[FLAG_COUNT + 1] = {0};
	auto_strbuf struct strbuf letters = {0};
	int c;

	/* What getopt_long(3) takes, from the table: a flag's place in it is its value. */
	strbuf_addc(&letters, ':');
	for (int i = 0; cli_flags[i].name; i++) {
		const struct cli_flag *flag = &cli_flags[i];

		known[i] = (struct option){
			.name = flag->name,
			.has_arg = flag->value ? required_argument : no_argument,
			.val = FLAG_FIRST + i,
		};
		if (flag->letter)
			strbuf_addf(&letters, "%c%s", flag->letter, flag->value ? ":" : "");
	}
	opterr = 0;
	while ((c = getopt_long(argc, argv, strbuf_str(&letters), known, NULL)) != -1) {
		if (c == ':')
			return err_set(err, ERR_INVALID, "BadFlag", "%s: needs a value",
				       argv[optind - 1]);
		if (c == '?')
			return err_set(err, ERR_INVALID, "BadFlag",
				       "%s: unknown; see orbweaver --help", argv[optind - 1]);
		a->given |= 1u << flag_of_letter(c);
		if (take_flag(a, (enum cli_flag_index)flag_of_letter(c), optarg, err) < 0)
			return -1;
	}
	return 0;
}

/* The first argument is the first file: what -f names comes on top. */
static int take_dump(struct arguments *a, struct err *err)
{
	if (take_file(a, a->cli.args[0], err) < 0)
		return -1;
	memmove(a->files + 1, a->files, (a->files_len - 1) * sizeof(a->files[0]));
	a->files[0] = a->cli.args[0];
	a->cli.args++;
	a->cli.args_len--;
	return 0;
}

static int parse(int argc, char **argv, struct arguments *a, struct err *err)
{
	size_t words = 0, rest;

	if (parse_flags(argc, argv, a, err) < 0)
		return -1;
	rest = (size_t)(argc - optind);
	a->command = cli_command_find(argv + optind, rest, &words);
	if (a->help || a->version)
		return 0;
	if (rest == 0)
		return err_set(err, ERR_INVALID, "BadUsage",
			       "a command is missing; see orbweaver --help");
	if (!a->command)
		return err_set(err, ERR_INVALID, "BadUsage",
			       "%.64s is no command; see orbweaver --help", argv[optind]);
	a->cli.command = a->command;
	a->cli.args = argv + optind + words;
	a->cli.args_len = rest - words;
	if (a->cli.args_len < a->command->args_min || a->cli.args_len > a->command->args_max)
		return err_set(err, ERR_INVALID, "BadUsage", "usage: orbweaver %s %s",
			       a->command->name, a->command->arguments);
	if (a->command->reads_dump && take_dump(a, err) < 0)
		return -1;
	if (a->command->to)
		a->cli.to = a->output;
	else if (a->output && take_output(a, a->output, err) < 0)
		return -1;
	if (a->cli.output != CLI_TABLE && !a->command->document)
		return err_set(err, ERR_INVALID, "BadUsage", "--output does not go with %s",
			       a->command->name);
	for (size_t i = 0; cli_flags[i].name; i++)
		if (cli_flags[i].is_special && (a->given & ~a->command->takes & 1u << i))
			return err_set(err, ERR_INVALID, "BadUsage", "--%s does not go with %s",
				       cli_flags[i].name, a->command->name);
	if (a->cli.repair && a->cli.files)
		return err_set(err, ERR_INVALID, "BadUsage",
			       "--repair needs a cluster: it does not change files");
	return 0;
}

static int complain(const struct err *err, enum cli_status status)
{
	struct err covered = *err;

	/* It may quote what comes from the cluster. */
	str_cover_controls(covered.text, "", '?');
	fprintf(stderr, "orbweaver: %s\n", covered.text);
	return status;
}

static int run(struct arguments *a)
{
	auto_strbuf struct strbuf out = {0};
	auto_free char *config_ns = NULL;
	json_auto_t *world = NULL;
	enum cli_status status = CLI_OK;
	struct err err = {0};

	world = a->cli.local ? json_object() : source_read(&a->cli, a->command->kinds, &err);
	if (!world)
		return complain(&err, CLI_FAILED);
	a->cli.world = world;
	if (!a->cli.config_ns)
		a->cli.config_ns = config_ns = source_config_namespace(&a->cli);
	if (a->command->run(&a->cli, &out, &status, &err) < 0)
		return complain(&err, err.class == ERR_INVALID ? CLI_USAGE : CLI_FAILED);
	/* Foreign text that a terminal obeyed could hide what stands before it. */
	if (out.len > 0 && a->command->document && a->cli.output == CLI_TABLE)
		str_cover_controls(out.data, "\n\t", '?');
	if (fwrite(strbuf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0) {
		(void)err_sys(&err, "OutputRefused", "write");
		return complain(&err, CLI_FAILED);
	}
	return status;
}

/* Print what needs no cluster and no command. */
static int print_help(const struct arguments *a)
{
	auto_strbuf struct strbuf out = {0};

	if (a->version)
		strbuf_adds(&out, "orbweaver " ORBWEAVER_VERSION "\n");
	else
		usage_help(a->command, &out);
	fputs(strbuf_str(&out), stdout);
	return CLI_OK;
}

/* `kubectl orbweaver` completes by a program of this name beside it (kubectl 1.26). */
static bool is_asked_by_kubectl(const char *program)
{
	const char *slash = strrchr(program, '/');

	return str_eq(slash ? slash + 1 : program, "kubectl_complete-orbweaver");
}

int main(int argc, char **argv)
{
	struct arguments a = {.cli = {.ns = "default", .host_root = "/"}};
	struct err err = {0};
	int status;

	if (child_is_asked_for(argc, argv, &status))
		return status;
	mem_tune();
	json_init();
	(void)log_configure("error", NULL);
	if (argc > 1 && str_eq(argv[1], COMPLETION_COMMAND))
		return completion_answer(argv + 2, (size_t)argc - 2);
	if (is_asked_by_kubectl(argv[0]))
		return completion_answer(argv + 1, (size_t)argc - 1);
	if (parse(argc, argv, &a, &err) < 0)
		return complain(&err, CLI_USAGE);
	return a.version || a.help ? print_help(&a) : run(&a);
}

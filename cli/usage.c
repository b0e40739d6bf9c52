// SPDX-License-Identifier: Apache-2.0
/*
 * All is derived from the tables of commands, flags, members and exit statuses in commands.c and
 * here, so that --help, the manual page and the JSON schema cannot disagree. cli_command_find()
 * looks a command up by its words.
 */
#include "cli/usage.h"

#include <ctype.h>
#include <string.h>

#include "cli/pathtest/pods.h"
#include "cli/simulate/decide/node_spec.h"
#include "lib/json/json.h"

const struct cli_flag cli_flags[] = {
	[FLAG_FILENAME] =
		{"filename", 'f', "FILE",
		 "what `kubectl get ... -o yaml` printed, or a support dump, instead of a "
		 "cluster; may be repeated; - is standard input",
		 false},
	[FLAG_NAMESPACE] = {"namespace", 'n', "NS",
			    "of objects that are named without one (default: default)", false},
	[FLAG_OUTPUT] = {"output", 'o', "table|json|yaml",
			 "for people, or a document for programs (default: table)", false},
	[FLAG_KUBECONFIG] = {"kubeconfig", 0, "FILE",
			     "else in-cluster, $KUBECONFIG, ~/.kube/config", false},
	[FLAG_CONTEXT] = {"context", 0, "NAME", "this context of the kubeconfig", false},
	[FLAG_CONFIG_NAMESPACE] = {"config-namespace", 0, "NS",
				   "of the ConfigMap spiderpool-conf (default: the operator's)",
				   false},
	[FLAG_OPERATOR_NAMESPACE] = {"operator-namespace", 0, "NS",
				     "of the operator (default: that of the "
				     "SriovNetworkNodeStates)",
				     false},
	[FLAG_POLICY_NAMESPACES] = {"policy-namespaces", 0, "A,B",
				    "namespaces that may command nodes, as the operator has them",
				    false},
	[FLAG_REPAIR] = {"repair", 0, NULL, "mend what can be mended", true},
	[FLAG_LOCAL] = {"local", 0, NULL, "look at this host, without a cluster; as root", true},
	[FLAG_VERBS] = {"verbs", 0, NULL, "use RDMA devices by libibverbs, without a cluster",
			true},
	[FLAG_COMPARE] = {"compare", 0, NULL, "only what differs among nodes", true},
	[FLAG_HOST_ROOT] = {"host-root", 0, "DIR", "where the host's root is mounted (default: /)",
			    true},
	[FLAG_MESH] = {"mesh", 0, NULL, "each of the nodes with each other one", true},
	[FLAG_RESOURCE] =
		{"resource", 0, "NAME",
		 "that pods ask for in each network (default: what the network names, or the "
		 "only shared RDMA resource; an empty one: none)",
		 true},
	[FLAG_IMAGE] = {"image", 0, "IMAGE",
			"with sh, ping, rping, rstream and perftest (default: " PATHTEST_IMAGE ")",
			true},
	[FLAG_TIMEOUT] = {"timeout", 0, "SECONDS", "until pods have to run (default: 120)", true},
	[FLAG_CHECK_TIMEOUT] = {"check-timeout", 0, "SECONDS",
				"until a check has failed (default: 90)", true},
	[FLAG_MIN_GBPS] = {"min-gbps", 0, "N|N%",
			   "RDMA writes below N Gbit/s, or N% of the NICs' rate, have failed",
			   true},
	[FLAG_MAX_US] = {"max-us", 0, "N", "RDMA reads above N microseconds have failed", true},
	[FLAG_PATTERN] = {"pattern", 0, "rails|cross|ring",
			  "paths within each network (default), from each to each, or in a ring "
			  "over all nodes at once",
			  true},
	[FLAG_TEST] = {"test", 0, "FILE", "show these results of orbweaver test -o json, too",
		       true},
	[FLAG_SERVE] = {"serve", 0, NULL,
			"serve the page on the loopback until SIGINT or SIGTERM, up to date with "
			"the cluster or the files",
			true},
	[FLAG_LISTEN] = {"listen", 0, "ADDRESS:PORT",
			 "where the API server listens, on loopback (default: 127.0.0.1:0, a free "
			 "port)",
			 true},
	[FLAG_STATE] = {"state", 0, "DIR",
			"with kubeconfig, lock, socket and logs (default: "
			"$XDG_RUNTIME_DIR/orbweaver-simulate)",
			true},
	[FLAG_API_ONLY] = {"api-only", 0, NULL,
			   "an empty API server: neither operator nor nodes, for tests", true},
	[FLAG_NODE] = {"node", 0, "NAME:NxNIC,...",
		       "nodes and their NICs, may be given several times; NAME may have a range "
		       "(default: " NODE_SPEC_DEFAULT ")",
		       true},
	[FLAG_ONCE] = {"once", 0, NULL, "one table, not one every ten seconds", true},
	[FLAG_HELP] = {"help", 'h', NULL, "of the program, or of the command beside it", false},
	[FLAG_VERSION] = {"version", 0, NULL, "print the version", false},
	[FLAG_COUNT] = {0},
};

const struct cli_status_info cli_statuses[] = {
	{CLI_OK, "all is well"},
	{CLI_FOUND, "something is not as it should be; the output says what"},
	{CLI_USAGE, "wrong usage, or an object that is named is not there"},
	{CLI_FAILED, "the cluster cannot be reached, a right is missing, or a file cannot be read"},
	{CLI_EVICT, "plan: pods would have to end"},
	{CLI_REBOOT, "plan: nodes would have to boot"},
	{0},
};

/* ---- which command --------------------------------------------------------------------------- */

/* How many words of `name` begin argv; 0 when not all do. */
static size_t matches(const char *name, char *const *argv, size_t argc)
{
	size_t words = 0;

	while (*name) {
		size_t len = strcspn(name, " ");

		if (words == argc || strlen(argv[words]) != len ||
		    strncmp(argv[words], name, len) != 0)
			return 0;
		words++;
		name += len;
		name += strspn(name, " ");
	}
	return words;
}

const struct cli_command *cli_command_find(char *const *argv, size_t argc, size_t *ret_words)
{
	const struct cli_command *best = NULL;

	*ret_words = 0;
	for (const struct cli_command *command = cli_commands; command->name; command++) {
		size_t words = matches(command->name, argv, argc);

		if (words > *ret_words) {
			*ret_words = words;
			best = command;
		}
	}
	return best;
}

/* ---- help ------------------------------------------------------------------------------------ */

static bool is_hidden_from(const struct cli_flag *flag, const struct cli_command *command)
{
	return command && flag->is_special && !(command->takes & 1u << (flag - cli_flags));
}

enum { HELP_WIDTH = 100 };

/* Words from column `at` on, which the line has reached; the next lines begin there, too. */
static void add_folded(struct strbuf *out, const char *text, size_t at)
{
	size_t column = at;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column + len > HELP_WIDTH) {
			strbuf_addf(out, "\n%*s", (int)at, "");
			column = at;
		}
		strbuf_add(out, text, len);
		column += len + 1;
		text += len + strspn(text + len, " ");
		if (*text && column + strcspn(text, " ") <= HELP_WIDTH)
			strbuf_addc(out, ' ');
	}
	strbuf_addc(out, '\n');
}

/* Of a command whose -o names something else than a format. */
static bool is_destination(const struct cli_flag *flag, const struct cli_command *command)
{
	return command && command->to && flag == &cli_flags[FLAG_OUTPUT];
}

/* "-o, --output table|json|yaml" */
static void add_flag_name(struct strbuf *out, const struct cli_flag *flag,
			  const struct cli_command *command)
{
	const char *value = is_destination(flag, command) ? command->to : flag->value;

	if (flag->letter)
		strbuf_addf(out, "-%c, ", flag->letter);
	else
		strbuf_adds(out, "    ");
	strbuf_addf(out, "--%s%s%s", flag->name, value ? " " : "", value ? value : "");
}

static void add_fields(struct strbuf *out, const struct cli_command *command)
{
	int widest = 0;

	if (!command->document)
		return;
	strbuf_addf(out, "\nMembers of -o json|yaml, kind %s:\n", command->document);
	for (const struct cli_field *field = command->fields; field->path; field++)
		if ((int)strlen(field->path) > widest)
			widest = (int)strlen(field->path);
	for (const struct cli_field *field = command->fields; field->path; field++) {
		strbuf_addf(out, "  %-*s  ", widest, field->path);
		add_folded(out, field->about, (size_t)widest + 4);
	}
}

void usage_help(const struct cli_command *command, struct strbuf *out)
{
	if (command) {
		strbuf_addf(out, "usage: orbweaver %s%s%s\n\n%s\n%s", command->name,
			    *command->arguments ? " " : "", command->arguments, command->summary,
			    command->help);
		add_fields(out, command);
	} else {
		strbuf_adds(out, "orbweaver: RDMA networking for Kubernetes, explained.\n\n"
				 "Commands:\n");
		for (command = cli_commands; command->name; command++) {
			strbuf_addf(out, "  %-17s ", command->name);
			add_folded(out, command->summary, 20);
		}
		command = NULL;
	}
	enum { ABOUT = 34 };

	strbuf_adds(out, "\nFlags:\n");
	for (const struct cli_flag *flag = cli_flags; flag->name; flag++) {
		auto_strbuf struct strbuf name = {0};

		if (is_hidden_from(flag, command))
			continue;
		add_flag_name(&name, flag, command);
		strbuf_addf(out, "  %-*s", ABOUT - 2, strbuf_str(&name));
		add_folded(out,
			   is_destination(flag, command) ? "where it is written to" : flag->about,
			   ABOUT);
	}
	strbuf_adds(out, "\nExit status:\n");
	for (const struct cli_status_info *info = cli_statuses; info->about; info++)
		strbuf_addf(out, "  %d  %s\n", info->status, info->about);
}

/* ---- man page -------------------------------------------------------------------------------- */

/* Text for roff: no line of it is a request, no character has a meaning. */
static void add_roff(struct strbuf *out, const char *text)
{
	bool begins = true;

	for (; *text; text++) {
		if (begins && (*text == '.' || *text == '\''))
			strbuf_adds(out, "\\&");
		begins = *text == '\n';
		if (*text == '\\')
			strbuf_adds(out, "\\e");
		else if (*text == '-')
			strbuf_adds(out, "\\-");
		else
			strbuf_addc(out, *text);
	}
}

static void add_roff_upper(struct strbuf *out, const char *text)
{
	for (; *text; text++)
		strbuf_addc(out, (char)toupper((unsigned char)*text));
}

static void add_roff_command(struct strbuf *out, const struct cli_command *command)
{
	strbuf_adds(out, ".SS ");
	add_roff(out, command->name);
	strbuf_addc(out, ' ');
	add_roff(out, command->arguments);
	strbuf_addc(out, '\n');
	add_roff(out, command->summary);
	strbuf_adds(out, ".\n.br\n");
	add_roff(out, command->help);
	for (const struct cli_field *field = command->fields; field && field->path; field++) {
		strbuf_adds(out, ".TP\n.B ");
		add_roff(out, field->path);
		strbuf_addc(out, '\n');
		add_roff(out, field->about);
		strbuf_addc(out, '\n');
	}
}

int usage_man(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	      struct err *err)
{
	strbuf_adds(out, ".TH ");
	add_roff_upper(out, "orbweaver");
	strbuf_adds(out, " 1 \"\" \"orbweaver " ORBWEAVER_VERSION "\" \"User Commands\"\n"
			 ".SH NAME\norbweaver \\- RDMA networking for Kubernetes, explained\n"
			 ".SH SYNOPSIS\n.B orbweaver\n.I command\n[argument...] [flag...]\n.br\n"
			 ".B kubectl orbweaver\n.I command\n[argument...] [flag...]\n"
			 ".SH DESCRIPTION\n"
			 "Looks at a cluster, or at files, with the functions that decide in the "
			 "operator, and says what they say.\n"
			 "Reads what the kubeconfig's user may read. Changes nothing without "
			 "\\-\\-repair, but for drain stop, drain retry, and the pods of "
			 "test.\n.SH COMMANDS\n");
	for (const struct cli_command *command = cli_commands; command->name; command++)
		add_roff_command(out, command);
	strbuf_adds(out, ".SH OPTIONS\n");
	for (const struct cli_flag *flag = cli_flags; flag->name; flag++) {
		auto_strbuf struct strbuf name = {0};

		add_flag_name(&name, flag, NULL);
		strbuf_adds(out, ".TP\n.B ");
		add_roff(out, strbuf_str(&name) + strspn(strbuf_str(&name), " "));
		strbuf_addc(out, '\n');
		add_roff(out, flag->about);
		strbuf_addc(out, '\n');
	}
	strbuf_adds(out, ".SH EXIT STATUS\n");
	for (const struct cli_status_info *info = cli_statuses; info->about; info++)
		strbuf_addf(out, ".TP\n.B %d\n%s\n", info->status, info->about);
	return 0;
}

/* ---- schema ---------------------------------------------------------------------------------- */

static json_t *type_schema(const char *type)
{
	if (str_eq(type, "integer or string"))
		return json_pack("{s:[s, s]}", "type", "integer", "string");
	return json_pack("{s:s}", "type", type);
}

/* The schema of what stands at this name of an object's schema, made when it is not there. */
static json_t *member_schema(json_t *object, const char *name)
{
	json_put_str(object, "type", "object");
	if (str_eq(name, "*"))
		return json_need_object(object, "additionalProperties");
	json_put_bool(object, "additionalProperties", false);
	return json_need_object(json_need_object(object, "properties"), name);
}

static void add_path(json_t *schema, const struct cli_field *field)
{
	auto_free char *path = str_dup(field->path);
	json_auto_t *type = type_schema(field->type);
	char *rest = path, *name;

	while ((name = strsep(&rest, "."))) {
		bool is_list = str_ends(name, "[]");

		if (is_list)
			name[strlen(name) - 2] = '\0';
		schema = member_schema(schema, name);
		if (is_list) {
			json_put_str(schema, "type", "array");
			schema = json_need_object(schema, "items");
		}
	}
	json_object_update(schema, type);
	json_put_str(schema, "description", field->about);
}

static json_t *document_schema(const struct cli_command *command)
{
	json_t *schema = json_object();

	json_put(schema, "title", json_fmt("orbweaver %s", command->name));
	json_put(member_schema(schema, "apiVersion"), "const", json_string(CLI_API_VERSION));
	json_put(member_schema(schema, "kind"), "const", json_string(command->document));
	for (const struct cli_field *field = command->fields; field->path; field++)
		add_path(schema, field);
	json_put(schema, "required", json_pack("[s, s]", "apiVersion", "kind"));
	return schema;
}

int usage_schema(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	json_auto_t *all = json_array(), *schema = json_object();

	for (const struct cli_command *command = cli_commands; command->name; command++)
		if (command->document)
			json_array_append_new(all, document_schema(command));
	json_put_str(schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_put(schema, "oneOf", json_incref(all));
	json_write(schema, out);
	strbuf_addc(out, '\n');
	return 0;
}

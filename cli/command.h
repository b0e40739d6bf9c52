// SPDX-License-Identifier: Apache-2.0
/*
 * What a command of `orbweaver` is: a row of the table in commands.c, and a function that gets a
 * world and writes a document or text.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * In a world that comes from a support dump, beside the kinds: its index, with the "time" at which
 * it was made and the settings of the "operator".
 */
#define CLI_DUMP "dump"
/* Of files that are not a dump: all their objects, in order. */
#define CLI_GIVEN "given"
/* What could not be read, where that is not a failure: { "<plural>.<group>": why }. */
#define CLI_UNREAD "unread"
/* In a world that is kept up to date: the operator's Lease by key; null: it cannot be read. */
#define CLI_LEASES "leases"

/* Exit statuses, documented in docs/command-line.md. */
enum cli_status {
	CLI_OK = 0,
	CLI_FOUND = 1,  /* the command worked and what it looked for is not as it should be */
	CLI_USAGE = 2,  /* wrong flags or arguments */
	CLI_FAILED = 3, /* the cluster or a file could not be read */
	CLI_EVICT = 4,  /* plan: pods would have to end */
	CLI_REBOOT = 5, /* plan: nodes would have to boot */
};

/* Of all documents. */
#define CLI_API_VERSION "orbweaver.io/v1"

enum cli_output {
	CLI_TABLE,
	CLI_JSON,
	CLI_YAML,
};

/*
 * The flags that all commands take: parsing, --help, completion and man page come from one table.
 */
struct cli_flag {
	const char *name;  /* without --; NULL ends the table */
	char letter;       /* 0: it has only its name */
	const char *value; /* "FILE"; NULL: it takes none */
	const char *about;
	bool is_special; /* only for commands that say they take it */
};

/* Places in cli_flags[]. */
enum cli_flag_index {
	FLAG_FILENAME,
	FLAG_NAMESPACE,
	FLAG_OUTPUT,
	FLAG_KUBECONFIG,
	FLAG_CONTEXT,
	FLAG_CONFIG_NAMESPACE,
	FLAG_OPERATOR_NAMESPACE,
	FLAG_POLICY_NAMESPACES,
	FLAG_REPAIR,
	FLAG_LOCAL,
	FLAG_VERBS,
	FLAG_COMPARE,
	FLAG_HOST_ROOT,
	FLAG_MESH,
	FLAG_RESOURCE,
	FLAG_IMAGE,
	FLAG_TIMEOUT,
	FLAG_CHECK_TIMEOUT,
	FLAG_MIN_GBPS,
	FLAG_MAX_US,
	FLAG_PATTERN,
	FLAG_TEST,
	FLAG_SERVE,
	FLAG_LISTEN,
	FLAG_STATE,
	FLAG_API_ONLY,
	FLAG_NODE,
	FLAG_ONCE,
	FLAG_HELP,
	FLAG_VERSION,
	FLAG_COUNT,
};
extern const struct cli_flag cli_flags[];

/* Exit statuses in words, ending with an entry whose text is NULL. */
struct cli_status_info {
	enum cli_status status;
	const char *about;
};
extern const struct cli_status_info cli_statuses[];

/*
 * A member of what -o json|yaml prints. Path: names joined by dots; [] goes into each item of a
 * list, * into each member of an object whose names are data: "nodes.*.pfs[].name".
 */
struct cli_field {
	const char *path; /* NULL ends the list */
	const char *type; /* of JSON Schema; "object" without a path below it: its owner's */
	const char *about;
};

struct cli_command;

struct cli {
	const struct cli_command *command;
	const char *kubeconfig; /* NULL: as kubectl finds it */
	const char *context;
	const char *ns;           /* of objects that are named without one */
	const char *config_ns;    /* of the ConfigMap spiderpool-conf; never NULL once it runs */
	const char *operator_ns;  /* NULL: that of the NodeStates */
	const char *policy_ns;    /* as the operator's --policy-namespaces; NULL: none */
	const char *const *files; /* of -f, ends with NULL; NULL: ask the cluster */
	enum cli_output output;
	const char *to;        /* what -o names where command->to; NULL: nothing */
	bool repair;           /* --repair: mend what can be mended */
	bool local;            /* --local: this host, no cluster */
	bool verbs;            /* --verbs: RDMA devices by libibverbs; local, too */
	bool compare;          /* --compare: only what differs among nodes */
	const char *host_root; /* where the host's root is mounted */
	bool mesh;             /* --mesh: all pairs */
	const char *resource;  /* of --resource; NULL: as the network says */
	const char *image;     /* of --image; NULL: ours */
	/* Of --timeout and --check-timeout, in seconds; NULL: the command's own. */
	const char *timeout, *check_timeout;
	const char *min_gbps, *max_us; /* of flags of these names; NULL: no limit */
	const char *pattern;           /* --pattern: which paths; NULL: the command's own */
	const char *test;              /* --test: a file with results; NULL: none */
	bool serve;                    /* --serve: a page that stays up to date */
	const char *listen;            /* of --listen; NULL: the command's own */
	const char *state;             /* of --state; NULL: the command's own */
	bool api_only;                 /* --api-only: neither operator nor nodes */
	const char *const *nodes;      /* of --node, ends with NULL; NULL: none was given */
	bool once;                     /* --once: not again and again */
	char *const *args;             /* what stands behind the command's name, ends with NULL */
	size_t args_len;
	json_t *world; /* what the command's kinds say; borrowed */
};

/* Write to `out`; what fails is an error (ERR_INVALID: wrong arguments, CLI_USAGE). */
typedef int cli_run_fn(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		       struct err *err);

struct cli_command {
	const char *name;      /* "ipam show" */
	const char *arguments; /* "[POOL...]" */
	const char *summary;   /* one line */
	const char *help;      /* some lines, each ending in \n */
	/* What its world has to have; ends with NULL. NULL: all of a dump. */
	const char *const *kinds;
	const char *optional; /* of them, the kind that it can do without; NULL: none */
	const char *document; /* "Ledger": kind of what -o json|yaml prints; NULL: it has none */
	const struct cli_field *fields; /* of that document, besides apiVersion and kind */
	/* Kind whose keys, or blank-separated words that, may be arguments. */
	const char *completes;
	const char *to;  /* what -o names instead of a format: "FILE.tar.gz|DIR"; NULL: a format */
	bool reads_dump; /* its first argument is a file, as those of -f */
	size_t args_min, args_max;
	unsigned int takes; /* special flags, 1 << FLAG_…: --repair and the like */
	cli_run_fn *run;
};

/* All commands, ending with an entry whose name is NULL. */
extern const struct cli_command cli_commands[];

/*
 * The command that begins argv, longest name first; *ret_words: how many words its name has. NULL:
 * there is none.
 */
const struct cli_command *cli_command_find(char *const *argv, size_t argc, size_t *ret_words);

// SPDX-License-Identifier: Apache-2.0
/* What the files of `support dump` share. For them only. */
#pragma once

#include "cli/command.h"
#include "cli/session.h"
#include "cli/support/bundle.h"
#include "cli/support/redact.h"

struct dump {
	const struct cli *cli;
	struct session *session; /* NULL: objects come from files */
	struct bundle *bundle;
	struct scrub *scrub;
	json_t *index;    /* as it is written at the end */
	json_t *programs; /* array: pods of operator and agents, as the API server has them */
	json_t *settings; /* { name: data } of the ConfigMaps that the operator's manifest reads */
	json_t *troubled; /* { node: true }, whose NodeState is not as it should be */
	size_t objects, failed;
};

/* ---- support_index.c ------------------------------------------------------------------------- */

/*
 * Put a file into the dump and a line into its index; what: for people. What cannot be put in
 * because of its name or size is a part that failed. -1 with err: nothing more can be written.
 */
int dump_add(struct dump *dump, const char *what, const char *file, const struct strbuf *text,
	     int64_t items, struct err *err);

/* A part is not in the dump: a line in its index, and on stderr. */
void dump_failed(struct dump *dump, const char *what, const struct err *err);

/* A part is not in the dump, and that is not a failure: a line in its index. */
void dump_skipped(struct dump *dump, const char *what, const char *why);

/* A person waits: show what is read, while stderr is a terminal. */
void dump_progress(const struct dump *dump, const char *what);

/* ---- support_programs.c ---------------------------------------------------------------------- */

/*
 * How the operator is called, as far as its pod, the ConfigMap of its manifest and our flags show:
 * { "found", "namespace", "configNamespace", "resourcePrefix", "policyNamespaces", "webhooks" }.
 * Returns new.
 */
json_t *dump_settings(const struct dump *dump);

/*
 * Metrics, health and debug pages of operator and agents, by the API server's proxy, and the last
 * hour of their logs. -1 as dump_add.
 */
int dump_programs(struct dump *dump, struct err *err);

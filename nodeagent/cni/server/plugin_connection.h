// SPDX-License-Identifier: Apache-2.0
/*
 * A connection of a plugin (nodeagent/cni/plugin/wire.h): brings one call, runs programs, takes the
 * answer.
 */
#pragma once

#include <jansson.h>

#include "lib/loop/loop.h"
#include "nodeagent/cni/plugin/wire.h"

struct plugin_connection;

struct plugin_connection_config {
	struct loop *loop;
	int fd; /* the conversation's from now on */
	/*
	 * All from the loop; each may free the conversation. The first one once; netns is the
	 * callee's.
	 */
	void (*called)(void *arg, const struct wire_message *call, int netns);
	/* A program has ended: {"status", "stdout", "stderr"}, borrowed. */
	void (*resulted)(void *arg, uint32_t id, const json_t *end);
	/* The plugin has gone, or sent something else than a call. The last one. */
	void (*closed)(void *arg);
	void *arg;
};

struct plugin_connection *plugin_connection_new(const struct plugin_connection_config *config);
/* Have it run: {"path", "env": ["K=V"], "stdin"}. -1: that is too large for a message. */
int plugin_connection_exec(struct plugin_connection *conversation, uint32_t id, const json_t *exec);
/*
 * The answer: text for stdout, or NULL, and the exit status. `closed` comes when it is on its way.
 */
void plugin_connection_done(struct plugin_connection *conversation, const char *text, int status);
/* Not a word more. Accepts NULL. */
void plugin_connection_free(struct plugin_connection *conversation);

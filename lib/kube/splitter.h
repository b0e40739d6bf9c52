// SPDX-License-Identifier: Apache-2.0
/*
 * Cuts the API server's JSON into objects while it arrives, without building anything larger than
 * one object.
 *
 * A list response is one document that may be hundreds of megabytes; a watch response never ends.
 * Both are sequences of objects. The splitter looks at each byte once, keeps the text of one
 * object, leaves out members that are not wanted (`drop`), and hands the text over when the
 * object is complete. It knows structure, not grammar: the text it hands over still goes through
 * json_parse, which refuses what is not JSON.
 *
 * Never touches a socket; after an error it stays in error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

enum {
	SPLITTER_MAX_DEPTH = 64,
	/*
	 * Brackets beyond that are counted up to here: encoding/json, which the server uses, stops
	 * there too.
	 */
	SPLITTER_DEEPEST = 10000,
	SPLITTER_MAX_DROPS = 16,
	/*
	 * A Kubernetes object is at most 1.5 MiB in etcd; its JSON with all escapes stays far below
	 * this.
	 */
	SPLITTER_MAX_OBJECT = 32 * 1024 * 1024,
};

enum splitter_mode {
	SPLITTER_STREAM, /* every top-level value is an object: watch events */
	/* one top-level object: elements of its "items", and at the end everything else of it */
	SPLITTER_LIST,
};

/*
 * A member to leave out: keys from the top of the object, NULL-terminated; arrays on the way are
 * looked through. { "status", "interfaces", "Vfs" } drops the VF lists of all interfaces.
 */
typedef const char *const splitter_path[6];

/* One object's text, borrowed until the callback returns. */
struct splitter_object {
	const char *text;
	size_t len;
	/*
	 * LIST: the remainder of the list ("kind", "metadata", …; its "items" is an empty array).
	 */
	bool is_rest;
	/*
	 * NULL, or why the text is not the whole object: values that are too deep are null in it,
	 * and one that is too large ends somewhere.
	 */
	const char *unreadable;
};

/* Returning -1 stops the splitter, err goes to the caller of splitter_feed. */
typedef int splitter_fn(void *arg, const struct splitter_object *object, struct err *err);

struct splitter {
	enum splitter_mode mode;
	const splitter_path *drops; /* borrowed; may be NULL */
	size_t n_drops;
	bool drop_prefixed; /* drop paths start below the "object" of a watch event */
	splitter_fn *fn;
	void *arg;

	/* inside */
	struct strbuf text; /* the object being collected */
	struct strbuf rest; /* LIST: what is not items */
	struct strbuf key;  /* the member name being read */
	struct strbuf deep; /* brackets that are open beyond SPLITTER_MAX_DEPTH */
	const char *unreadable;
	struct splitter_level {
		enum splitter_state {
			SPLITTER_OPENED, /* just after the bracket */
			SPLITTER_NAMED,  /* member name read, colon comes */
			SPLITTER_COLON,  /* its value comes */
			SPLITTER_VALUE,  /* value read, comma or bracket comes */
			SPLITTER_COMMA,  /* another name or element comes */
		} state;
		bool is_object;    /* else an array */
		bool wrote;        /* a member was written: the next one needs a comma before it */
		uint16_t matching; /* drops whose path leads here, as bits */
		int8_t steps;      /* how many of their keys were walked; -1: above the object */
	} levels[SPLITTER_MAX_DEPTH];
	size_t depth;      /* open brackets */
	size_t skip_depth; /* skipping: depth at which the dropped value stands */
	uint16_t next_matching;
	enum splitter_token {
		SPLITTER_NONE,
		SPLITTER_STRING,
		SPLITTER_ESCAPE, /* in a string, after a backslash */
		SPLITTER_SCALAR,
	} token;
	bool token_is_name, skipping, in_items, full, done, failed;
};

/*
 * Ready for the first byte. `drop_prefixed`: objects are watch events, drops are relative to their
 * "object" member.
 */
void splitter_init(struct splitter *s, enum splitter_mode mode, const splitter_path *drops,
		   size_t n_drops, bool drop_prefixed, splitter_fn *fn, void *arg);

/*
 * The next bytes. Errors:
 *
 *   ERR_TRANSIENT "BadStream"       not JSON's structure, or nested deeper than SPLITTER_DEEPEST
 *   ERR_TRANSIENT "ObjectTooLarge"  LIST: what is not items has more than SPLITTER_MAX_OBJECT bytes
 *   what the callback returned
 */
int splitter_feed(struct splitter *s, const char *bytes, size_t len, struct err *err);

/* The stream ended: 0 when it ended between objects, -1 "BadStream" in the middle of one. */
int splitter_end(const struct splitter *s, struct err *err);

void splitter_done(struct splitter *s);

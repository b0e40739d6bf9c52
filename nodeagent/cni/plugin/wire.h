// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugin and the server of its node say to each other on a stream socket: messages of
 * fields. Only the C library: the plugin has nothing else.
 *
 *	message:  4 bytes length of all that follows them, 1 byte version, 1 byte kind, 2 bytes 0,
 *                fields
 *	field:    2 bytes tag, 2 bytes 0, 4 bytes length, so many bytes
 *
 * Numbers have their most significant byte first. A reader skips tags that it does not know, so
 * that a plugin and a server one version apart understand each other; what changes a tag's meaning
 * raises WIRE_VERSION. The descriptor of the pod's network namespace comes with the first byte of
 * WIRE_CALL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1
/* Bytes of a message. An object of Kubernetes has at most 1.5 MB, a result is smaller. */
#define WIRE_MAX (4U << 20)

/* On the node, as host and plugin see them; the environment may name others (plugin.h). */
#define WIRE_SOCKET "/run/orbweaver/cni.sock"
#define WIRE_STATE  "/var/lib/orbweaver/cni"
/* Below the state: one WIRE_CALL per file, names in the order of their times. */
#define WIRE_NOTES "notes"
/*
 * One file for each program that a worker of the agent has allowed: the server, which asks for
 * programs, has no privileges, and the plugin that runs them is root. Empty, or the folder where a
 * plugin on the host found the program last, by the runtime's CNI_PATH. Without the folder of these
 * files, an earlier agent runs, whose server was root itself.
 */
#define WIRE_PROGRAMS "programs"

enum wire_kind {
	WIRE_CALL = 1, /* plugin to server, the first message: NAME, ENV, STDIN, NETNS_ERROR */
	WIRE_EXEC,     /* server to plugin, any number of times: ID, PATH, ENV, STDIN */
	WIRE_RESULT,   /* plugin to server, one for each EXEC: ID, STATUS, STDOUT, STDERR */
	WIRE_DONE,     /* server to plugin, the last: STDOUT, STATUS */
};

enum wire_tag {
	WIRE_NAME = 1, /* as which plugin it was called: "sriov" */
	/*
	 * CALL: "CNI_IFNAME=net1", one field each. EXEC: the same, or "K": without K; of CNI_NETNS
	 * only the plugin's own or none, of CNI_PATH nothing.
	 */
	WIRE_ENV,
	WIRE_STDIN, /* bytes */
	/* 4 bytes: errno of opening CNI_NETNS; absent: the descriptor came along */
	WIRE_NETNS_ERROR,
	WIRE_ID,     /* 4 bytes: which EXEC */
	WIRE_PATH,   /* a name to look for in CNI_PATH, the plugin's own */
	WIRE_STATUS, /* 4 bytes: exit status; 127 with words on STDERR: it could not be started */
	WIRE_STDOUT,
	WIRE_STDERR, /* cut at WIRE_STDERR_MAX */
};

enum { WIRE_STDERR_MAX = 16384 };

/*
 * Bytes on their way. `struct wire_buffer b = {0};` is empty; free(b.data). Memory out: the process
 * ends.
 */
struct wire_buffer {
	unsigned char *data;
	size_t len, size;
};

/* Append bytes as they are. */
void wire_append(struct wire_buffer *buffer, const void *data, size_t len);
/* Drop the first n bytes. */
void wire_consume(struct wire_buffer *buffer, size_t n);

/*
 * Append a message: begin, add fields, end. wire_end() gives -1, and takes it back, when it is too
 * large.
 */
size_t wire_begin(struct wire_buffer *buffer, enum wire_kind kind);
void wire_add(struct wire_buffer *buffer, enum wire_tag tag, const void *data, size_t len);
void wire_add_text(struct wire_buffer *buffer, enum wire_tag tag, const char *text);
void wire_add_number(struct wire_buffer *buffer, enum wire_tag tag, uint32_t number);
int wire_end(struct wire_buffer *buffer, size_t begun);

/* A message within bytes that it borrows. */
struct wire_message {
	enum wire_kind kind;
	const unsigned char *fields;
	size_t len;   /* of the fields */
	size_t bytes; /* of the whole message */
};

/*
 * The message at the start: 1. 0: more bytes are needed. -1: this is none, and nothing after it can
 * be read.
 */
int wire_read(const void *data, size_t len, struct wire_message *ret);

struct wire_field {
	unsigned int tag;
	const unsigned char *data;
	size_t len;
};

/* The field at *at (0 at first), which moves on. False: there are no more. */
bool wire_next(const struct wire_message *message, size_t *at, struct wire_field *ret);

/* The number of a field; `otherwise` when it is none. */
uint32_t wire_number(const struct wire_field *field, uint32_t otherwise);

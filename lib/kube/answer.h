// SPDX-License-Identifier: Apache-2.0
/*
 * What comes back for one attempt of a call: status, the headers that matter, a body that is
 * collected or handed on. Touches no handle, so that it can be fed by hand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/kube/client.h"

/* Embedded in the call; zero before the first answer_begin. */
struct answer {
	const struct kube_request *request; /* borrowed */
	int status;                         /* 0: none came */
	int64_t retry_after_ms;             /* the server's wish, or -1 */
	struct strbuf body;                 /* collected; of a stream, only that of an error */
	struct strbuf warnings;             /* texts of Warning headers, a line each */
	struct err err;                     /* from on_bytes, or "BodyTooLarge" */
	bool opened;                        /* on_open was called */
	bool delivered;                     /* on_bytes saw something, in any attempt */
};

enum {
	/* Of warnings more than this is not kept. */
	ANSWER_WARNINGS_MAX = 4096,
};

/* Before each attempt. `delivered` stays. */
void answer_begin(struct answer *answer, const struct kube_request *request);
void answer_done(struct answer *answer);

/*
 * One header line with its end; `status` counts if it begins a block. Returns true if it does. May
 * call on_open.
 */
bool answer_header(struct answer *answer, const char *bytes, size_t len, int status);

/* The next bytes of the body. False: enough, and answer->err says why. May call on_bytes. */
bool answer_body(struct answer *answer, const char *bytes, size_t len);

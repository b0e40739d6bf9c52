// SPDX-License-Identifier: Apache-2.0
/*
 * Which spec is in force: that of the NodeState, the one kept on this host, or none. Pure.
 *
 * The NodeState that the server shows decides. Until it was received, and when the server does not
 * respond, the last one that was acted upon is kept in the state file: a node that boots while the
 * API server is away gets its VFs all the same. A NodeState that is deleted is not a wish to take
 * anything down: the host stays as it is and its devices stay offered.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* How long the API server has to show the NodeState, before what is kept counts. */
	DESIRED_WAIT_MS = 5000,
	/*
	 * A new NodeState is empty until the operator has seen our report of NICs and decided. That
	 * is not a wish to remove VFs: VFs go when it is still empty this long after the report. A
	 * spec without any member was not decided by an operator, however old it is.
	 */
	DESIRED_EMPTY_MS = 30000,
};

struct desired_input {
	bool heard;           /* the server has said whether there is a NodeState */
	const json_t *object; /* the NodeState; NULL: there is none */
	/*
	 * From the state file: {"uid", "generation", "spec"} of the one that was acted upon last,
	 * or NULL.
	 */
	const json_t *kept;
	int64_t waited_ms;   /* since the start */
	int64_t reported_ms; /* since our first status for this object was stored; -1: not yet */
};

enum desired_source {
	DESIRED_UNHEARD, /* the server has not answered yet, and has time to */
	DESIRED_WAITING, /* the server has no NodeState, or one that is not decided yet */
	DESIRED_KEPT,    /* the server does not answer: what was kept is in force */
	DESIRED_SERVER,  /* the spec is the object's: worth keeping */
};

struct desired {
	enum desired_source source;
	const json_t *spec;    /* to be acted upon; NULL: do nothing. Borrowed from the input */
	const json_t *offered; /* whose resources are offered to the kubelet; NULL: none */
	int64_t generation;    /* of the NodeState that spec is of; 0: none */
	int64_t again_ms;      /* when time alone changes the answer; -1: it does not */
};

struct desired desired_spec(const struct desired_input *input);

/*
 * The NodeState with the PCI addresses of its spec in lower case, as the kernel and everything here
 * has them: people write specs, too. New; the same object when there is nothing to change.
 */
json_t *desired_read(const json_t *object);

/* What is to be kept of a NodeState, new. */
json_t *desired_kept(const json_t *object);

// SPDX-License-Identifier: Apache-2.0
/*
 * Can programs use an RDMA device by libibverbs? The calls that each of them makes, one after the
 * other, down to a message from the device to itself.
 */
#pragma once

#include <stdbool.h>

/* In the order in which they are made. */
enum verbs_call {
	VERBS_LIST,
	VERBS_OPEN,
	VERBS_PORT,
	VERBS_PD,
	VERBS_REG_SMALL,  /* 4 KiB */
	VERBS_REG_LARGE,  /* 64 MiB */
	VERBS_REG_HUGE,   /* a huge page; not tried where none is free */
	VERBS_REG_DMABUF, /* 2 MiB of a GPU's memory; not tried without CUDA */
	VERBS_CQ,
	VERBS_QP,
	VERBS_GID,
	VERBS_CONNECT,
	VERBS_SEND,
	VERBS_POLL,
	VERBS_CALLS,
};

#define VERBS_LARGE (64L << 20)

enum verbs_outcome {
	VERBS_NOT_TRIED,
	VERBS_RUNS, /* the process ended in it */
	VERBS_DONE,
	VERBS_FAILED,
};

struct verbs_report {
	struct verbs_result {
		enum verbs_outcome outcome;
		int sys; /* errno of a call that failed; 0: it has none */
	} calls[VERBS_CALLS];
	bool is_late;  /* the deadline passed in the call that runs */
	int signal;    /* that ended the process in the call that runs; 0: none */
	int port;      /* the first that is active, else the first */
	int gid_index; /* by which the message came back; -1: by its LID, as on InfiniBand */
	char text[64]; /* what the library says of a completion that failed; "" */
};

/* Function pointers of libibverbs: verbs_library.h. */
struct verbs_library;

/*
 * Make the calls on the device in a child, which gets SIGKILL at the deadline: a driver may hang or
 * crash. A child that the kernel does not let go is left behind. The first call fails where there
 * can be no child, with ENODEV where the library has no such device; VERBS_PORT with ENETDOWN where
 * no port is active.
 */
void verbs_try(const struct verbs_library *library, const char *device, int deadline_ms,
	       struct verbs_report *ret);

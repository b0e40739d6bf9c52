// SPDX-License-Identifier: Apache-2.0
/*
 * The steps of a test between two pods: which commands they run, and what their output says. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/pathtest/facts.h"
#include "cli/pathtest/rounds.h"
#include "lib/base/err.h"

enum {
	/* A command in a pod is ended there after this, unless the user says otherwise. */
	PATHTEST_STEP_S = 90,
	/* Of 64 KiB, in the stream that finds out how fast the path is. */
	PATHTEST_TRIAL = 16,
	/* Of path.margin_s: of paths that are measured alone, and of a ring, whose pods begin up to
	 * so many seconds after each other.
	 */
	PATHTEST_MARGIN_S = 1,
	PATHTEST_RING_MARGIN_S = 5,
	/* Echo requests, and round trips of rping. */
	PATHTEST_ROUNDS = 5,
	PATHTEST_WORDS_MAX = 32,
};

/* One end of a path. Strings are borrowed. */
struct path_end {
	const char *interface, *address;
	const char *control; /* where perftest finds it: IPv4 */
	struct facts facts;
};

/* From the client to the server. */
struct path {
	struct path_end server, client;
	/* Where servers listen; another one for each step, since one that failed may still do. */
	char port[8];
	/* What a stream by TCP sends, each way. */
	int transfers;
	/* RDMA writes last three times as long; the margins at both ends are not measured. */
	int margin_s;
};

enum step_measure {
	STEP_NOTHING,
	STEP_RDMA_LATENCY,   /* of a round trip, microseconds */
	STEP_TCP_LATENCY,    /* the same */
	STEP_RDMA_BANDWIDTH, /* Gbit/s */
	STEP_TCP_BANDWIDTH,
	STEP_ROUND_TRIP, /* of ping, microseconds */
};

/* What a path has to reach. */
struct path_limits {
	double min_gbps;    /* of RDMA writes; 0: anything */
	double min_percent; /* the same, of the slower RDMA device's rate; 0: anything */
	double max_us;      /* of an RDMA read; 0: anything */
};

/*
 * Read --min-gbps "180" or "90%", and --max-us "8"; NULL: no limit. ERR_INVALID/BadFlag: the text
 * names the flag and what it may be.
 */
int path_limits_read(const char *min_gbps, const char *max_us, struct path_limits *ret,
		     struct err *err);
/*
 * Is a measure within the limits? The text says of one that is not by what it was judged; it is
 * empty otherwise.
 */
bool path_is_within(const struct path_limits *limits, const struct path *path,
		    enum step_measure measure, double value, char *text, size_t size);

struct step;
/*
 * The words of its command for the server's or the client's end, those behind `timeout SECONDS`;
 * ends with NULL. Numbers in them are in `numbers`.
 */
struct step_words {
	const char *words[PATHTEST_WORDS_MAX];
	size_t n;
	char numbers[8][16];
	size_t n_numbers;
};

struct step {
	const char *name;  /* "ib_read_lat"; NULL ends the table */
	const char *tool;  /* what the image has to have, as in facts.missing */
	const char *whose; /* the same: of where; NULL: any will do */
	bool has_server;   /* something listens on the other end */
	bool needs_rdma;
	bool needs_cm;  /* connections by rdma_cm */
	bool counts;    /* fabric_count_script runs it */
	bool has_trial; /* path->transfers says how long it is */
	bool binds;     /* the client leaves by the path's interface, whatever the routes */
	enum step_measure measures;
	void (*words)(const struct path *path, bool is_server, struct step_words *ret);
	/* Reads a number of what the client printed; false: it is not there. */
	bool (*read)(const char *output, double *ret);
};

/* In the order in which they are made. */
extern const struct step path_steps[];
/* Is it made on paths of the pattern? */
bool path_has_step(enum path_pattern pattern, const struct step *step);

/*
 * So many transfers take three seconds at a rate in Gbit/s that a trial has seen: rstream counts
 * transfers, and a path may have a ten-thousandth of another's rate. At least PATHTEST_TRIAL.
 */
int path_transfers(double rate);

/*
 * For `sh -c`, with the seconds as $0 and the command behind it: run it; run it until the server
 * listens. Both print what it printed, errors included, and end with its status.
 */
extern const char path_once_script[], path_until_script[];
/* Is it the status of a command that ran into its time limit? */
bool path_is_late(int exit_code);

/* Do the ends look as they should? The text says what is seen, also of those that do. */
bool path_link_is_up(const struct path *path, char *text, size_t size);
/*
 * Can the ends' programs use their RDMA devices (facts.verbs)? Broken if one of them is; the text
 * says of it, or of the client's, what was seen.
 */
enum facts_verbs path_verbs(const struct path *path, char *text, size_t size);
/* Largest packet that both let through. */
int path_mtu(const struct path *path);

/*
 * The last two lines with something in them, "; " between them, for people: no control characters.
 * New; free().
 */
char *path_last_lines(const char *output);

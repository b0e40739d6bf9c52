// SPDX-License-Identifier: Apache-2.0
/* How much is too much. */
#pragma once

/*
 * The largest message taken or sent, in bytes, unless configured otherwise: what Go's servers and
 * clients take by default.
 */
#define GRPC_MESSAGE_MAX (4 * 1024 * 1024)
/*
 * A decoded message may take so many times the limit of its bytes. Lists of devices take about 8
 * times their size; two bytes of an empty sub-message can become a hundred, which this stops.
 */
#define GRPC_DECODED_FACTOR 16
/* Bytes of all incomplete messages of one connection. */
#define GRPC_RECEIVE_MAX (16 * 1024 * 1024)

/* Calls that one client may have open at once; more are refused, well-behaved clients wait. */
#define GRPC_STREAMS_MAX 100
/*
 * Header fields of one request or response, counted as RFC 9113 section 6.5.2 does: 32 bytes for
 * each besides its text.
 */
#define GRPC_HEADERS_MAX 16384
/* Frames that wait to be sent; a peer that makes us produce more and reads none is cut off. */
#define GRPC_OUTBOUND_FRAMES_MAX 2000

/* Connections of a server, unless configured otherwise; more wait in the kernel. */
#define GRPC_CONNECTIONS_MAX 32
/*
 * Time a peer has to begin speaking HTTP/2: for a server's clients, and, unless configured
 * otherwise, for a client's server.
 */
#define GRPC_PREFACE_MS 10000
#define GRPC_CONNECT_MS 10000

/*
 * Longest path of a socket in bytes: sun_path of unix(7); a server's name is a little longer while
 * it is made.
 */
#define GRPC_CLIENT_PATH_MAX 107
#define GRPC_SERVER_PATH_MAX (107 - 5)

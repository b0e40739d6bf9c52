/*
 * A worker: reads requests from its socket and carries them out, one after the other, in plain blocking code.
 */
#ifndef ORBWEAVER_NODEAGENT_HOSTD_WORKER_H
#define ORBWEAVER_NODEAGENT_HOSTD_WORKER_H

#include "nodeagent/host/host.h"

/* Open the host below `root`, a string, and serve. When it cannot be opened the first request is told so. */
void worker_run(int fd, void *root);

/* Serve until the socket closes, or the other side says what is no request. */
void worker_serve(int fd, struct host *host);

/* The reply to one message, new. */
json_t *worker_answer(struct host *host, const json_t *message);

#endif

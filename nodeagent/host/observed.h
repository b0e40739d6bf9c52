/*
 * The observed document (nodeagent/README.md) as its readers need it. Pure.
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_OBSERVED_H
#define ORBWEAVER_NODEAGENT_HOST_OBSERVED_H

#include <jansson.h>
#include <stdbool.h>

/*
 * The list "interfaces" as it goes into NodeState.status.interfaces, with those that are "missing" for a moment (recall.h):
 * the same without what only the agent needs ("host" members). Returns new; NULL when there is no such list.
 */
json_t *observed_status_interfaces(const json_t *observed);

/* A driver that hands a function to a process (node-kernel 1.6). NULL: no. */
bool observed_is_userspace_driver(const char *driver);

#endif

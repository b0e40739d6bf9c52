// SPDX-License-Identifier: Apache-2.0
/* Names that the cluster knows us by where devices are given by dynamic resource allocation. */
#pragma once

#define DRA_DRIVER "dra.orbweaver.io"
/* Of a Node: the resources that it gives that way, with commas, or "*". */
#define DRA_ANNOTATION "orbweaver.io/dra"
/* Of a slice: its node, since a selector of labels works on every server. */
#define DRA_NODE_LABEL "orbweaver.io/node"
/* Kind of our CDI devices, "vendor/class". */
#define DRA_CDI_KIND DRA_DRIVER "/claim"
/* Key of the taint on a device that is not well. */
#define DRA_TAINT DRA_DRIVER "/unhealthy"
/* On one that works, over a link that is bad. */
#define DRA_TAINT_DEGRADED DRA_DRIVER "/degraded"

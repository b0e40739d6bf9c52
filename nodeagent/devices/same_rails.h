// SPDX-License-Identifier: Apache-2.0
/*
 * The same rails for all pods of a job: pods with one value of the label orbweaver.io/rails get VFs
 * of the same rails on every node. Pure, and without a word between nodes: the rails follow from
 * the label alone, or from the name of the group, the namespace, the devices that a pod asks for
 * and the rails of its node. docs/rails.md, "The same rails for pods of a job".
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

/*
 * The rails, a bit each, of which the pod (of the API server) shall get the devices of `resource`
 * that it lacks: as many as its next container asks for, the first of its list, those of which the
 * pod has devices last. 0: it has no such label, or lacks none. observed: with rails; allocated: as
 * in affinity.h.
 */
uint32_t same_rails_wanted(const json_t *observed, const json_t *pod, const json_t *allocated,
			   const char *resource);

/*
 * What allocate_prefer() takes as `near`, new: each rail is where a GPU would be with the rail's
 * NIC on its switch and all other NICs far away.
 */
json_t *same_rails_near(const json_t *observed, uint32_t rails);

/*
 * Pods of `wanted`, {"ns/pod": rails}, that have got devices of NICs with rails now, and lack one
 * of theirs: [{"pod": "ns/pod/container", "message"}], new. Pods that have devices are removed from
 * wanted.
 */
json_t *same_rails_missed(const json_t *observed, const json_t *allocated, json_t *wanted);

// SPDX-License-Identifier: Apache-2.0
/*
 * Rails of a node: which NIC port has which index. Pure, and the only place that decides it:
 * NodeState, device pools, ResourceSlices and metrics read the result from the observed document.
 * docs/rails.md.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

enum {
	/* Rails of a node, as the schemas in crds/ have it. */
	RAILS_MAX = 32,
};

/* What "from" says where the administrator gave no order. */
#define RAILS_BY_PCI "PCI order"

/*
 * The observed document with rails. New; shares what is the same.
 *
 *	"interfaces[].rail", "missing[].rail": the index of the port; absent without a rail
 *	"rails": {"from", "exact", "bootID", "count",
 *		  "list": [{"rail", "name", "pciAddress", "missing"}],
 *		  "problems": [{"pf", "reason", "message"}]}
 *
 * count: rails whose NIC is there. list: by rail; missing: true where the NIC is not there.
 *
 * wanted: NodeState.spec.rails, {"from", "order", "exact"}; NULL: none. Entries of "order" are
 * interface names, alternative names or PCI addresses, these in any spelling that
 * pci_address_normalize() reads. With "exact" the index in the list is the
 * rail, and a NIC that is not listed has none. Without it NICs that are listed come first, those
 * that this node does not have are passed over, and the other RDMA-capable NICs follow by PCI
 * address; a NIC that the node itself needs is not one of those.
 *
 * before: "rails" of the last result; NULL: there is none. A NIC that had a rail in the same boot
 * and by an order of the same kind (exact, of policies, PCI) keeps its place when it vanishes, so
 * that the others keep theirs. A policy that is renamed, added or deleted changes no kind.
 *
 * Problems: "RailNotFound" an entry of an exact list names no NIC of the node; "RailTwice" it names
 * one that has a rail already; "RailMissing" the NIC of a rail has vanished; "RailsTooMany" a NIC
 * has no rail because RAILS_MAX others have.
 */
json_t *rails_decide(const json_t *observed, const json_t *wanted, const json_t *before);

/* 1 << "rail" of a port, or of another object with that member; 0: it has no rail. */
uint32_t rails_bit(const json_t *port);

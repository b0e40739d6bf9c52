#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One pool for pods with names as people have them: namespace 31, pod 38 and node 41 characters. All have an address, the API
# server and etcd take the ledger, and it is empty once all have ended. LONG=1: 10,000 pods, which is what a pool is to hold;
# tests/unit/reconcilers/ipam/ledger_test.c has as many without a server.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/addresses.sh"

n=$(o_size 10000 400)
n_nodes=100
ns=research-platform-team-training
pod=llama-pretrain-worker-7d9c6b5f4d-0
node=gpu-worker.rack7.dc2.example.internal-

large_nodes() {
	seq -f '%05g' 0 $((n_nodes - 1)) | jq -Rn --arg prefix "$node" '{ apiVersion: "v1", kind: "List", items: [inputs |
		{ apiVersion: "v1", kind: "Node", metadata: { name: ($prefix + .) } }] }'
}

# member NAME: of the pool's status.
member() {
	o_curl GET "$spider/spiderippools/large" | jq -r --arg name "$1" '.status[$name] // 0'
}

allocated() {
	[[ $(member allocatedIPCount) == "$1" ]]
}

# Bytes of the object, of the records and of their nodes, as they are sent.
sizes() {
	o_curl GET "$spider/spiderippools/large" | jq -cr '"\(tojson | utf8bytelength) bytes, records \(.status.allocatedIPs | tojson |
		utf8bytelength), nodes \(.status.allocatedNodes // "" | length)"'
}

took() {
	echo "# $1: $((SECONDS - begun)) s"
	begun=$SECONDS
}

o_begin large --no-controllers
large_nodes | k create -f - >/dev/null
k create namespace "$ns" >/dev/null
o_curl POST "$spider/spiderippools" "$(pool large 10.128.0.0/9 10.128.1.0-10.128.60.255)" >/dev/null
o_curl POST "$nads/namespaces/$ns/network-attachment-definitions" "$(network "$ns" net-0 large)" >/dev/null
o_own_user
o_start op
o_wait_ready op
t_wait 30 "it leads" o_leads op

begun=$SECONDS
t_ok "$n pods are made" p create --namespace "$ns" --count "$n" --nodes "$n_nodes" --pod "$pod" --node "$node"
took "creations"
t_wait 600 "each has an address" allocated "$n"
took "the last addresses"
t_wait 600 "ledger, endpoints and pods agree" all_agree "$n"
took "the last endpoints"
echo "# object $(sizes)"
t_eq "no pod waits" 0 "$(member waitingPodCount)"
t_fails "and the ledger is not full" o_condition "$spider/spiderippools/large" True LedgerFull Degraded
begun=$SECONDS
t_ok "the pods are deleted" p delete --namespace "$ns"
t_ok "their agents say so" p down --namespace "$ns"
took "deletions"
t_wait 600 "no record is left, and no endpoint" all_agree 0
took "the last releases"
echo "# object $(sizes)"
o_end op
t_done

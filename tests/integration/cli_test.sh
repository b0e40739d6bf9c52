#!/bin/bash
# orbweaver, the command line, on a real API server: what it says about addresses, what it repairs, and how it refuses.
# shellcheck disable=SC2317 # functions that run as COMMAND of a check look unreachable
set -euo pipefail
# shellcheck source=tests/integration/operator.sh
. "$(dirname "$0")/operator.sh"
# shellcheck source=tests/integration/cli.sh
. "$(dirname "$0")/cli.sh"

cli=$o_programs/orbweaver
o_begin cli --no-controllers
kubeconfig=$(hack/cluster kubeconfig "$o_cluster")
c() { "$cli" --kubeconfig "$kubeconfig" "$@"; }
# The API server gives pods their UIDs.
fill() { sed "s/UID0/$uid0/"; }
k create namespace ml >/dev/null
world | sed '/^  allocatedIP/d; /^status:$/d; s/uid: UID., //' | k apply -f - >/dev/null
uid0=$(k get pod -n ml train-0 -o 'jsonpath={.metadata.uid}')
t_wait 10 "endpoints are served" k get se -A
endpoints | fill | k apply -f - >/dev/null
records="{\"10.6.0.10\":{\"pod\":\"ml/train-0\",\"podUid\":\"$uid0\"},\"10.6.0.12\":{\"pod\":\"ml/gone\",\"podUid\":\"u9\"}}"
o_curl PATCH "$spider/spiderippools/rail1/status" \
	"$(jq -nc --arg r "$records" '{status: {allocatedIPs: $r, allocatedIPCount: 3}}')" >/dev/null

t_ok "the cluster says the same as the files" says "RecordWithoutPod" 1 c ipam check
t_ok "a pod is explained" says "10.6.0.10/24" 0 c ipam explain ml/train-0
t_ok "what can be mended is mended" says "SpiderIPPool rail1: ledger written" 0 c ipam check --repair
t_ok "then all agree" says "all agree" 0 c ipam check
t_eq "only the leaked address was given back" '["10.6.0.10"]' \
	"$(k get sp rail1 -o json | jq -c '.status.allocatedIPs | fromjson | keys')"
t_fails "the endpoint that nobody needs is gone, for all its finalizer" k get se -n ml gone
t_ok "the other one is there" k get se -n ml train-0
t_ok "repairing again does nothing" says "all agree" 0 c ipam check --repair

stranger=$(hack/cluster kubeconfig-user "$o_cluster" stranger)
t_ok "the status of a cluster, with a pool that is well" says "SpiderIPPool" 0 c status
t_ok "the ledger of a cluster without VFs" says "no pod has a device of ours" 0 c ledger
t_ok "a plan of a cluster without policies" says "nothing changes on any node" 0 c plan
t_ok "without rights: one line that names what is missing, status 3" says "list spiderippools" 3 \
	"$cli" --kubeconfig "$stranger" ipam show
t_done

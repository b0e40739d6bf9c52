#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reconciles leave nothing behind: after 3,000 of all kinds the sanitizers' leak check, which needs no more than one of a kind, finds
# nothing at exit, and after 10,000 more the program that ships has not grown.
# Environment: RECONCILES (10000), OPERATOR_RELEASE (default: $BUILD/bin/orbweaver-operator).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

reconciles=${RECONCILES:-10000}
release=${OPERATOR_RELEASE:-${BUILD:-build}/bin/orbweaver-operator}
pool_configs=$sriov/namespaces/default/sriovnetworkpoolconfigs
seed=0
# What a leak of a hundred bytes for each reconcile would come to in one of two rounds. A leak grows in each; what the allocator
# sets aside for good it does in one of them.
rounds=2
growth_kib=$((reconciles * 100 / rounds / 1024))

# Changes of all kinds, and then such that make the operator decide about all nodes each time.
work_until() {
	local id=$1 goal=$2 seed=$3 n=$3

	o_churn --changes 1000 --rate 0 --nodes 4 --seed "$seed" || return
	while (($(o_metric "$id" orbweaver_reconciles_total) < goal)); do
		o_runs "$id" && o_curl PATCH "$pool_configs/all" "{\"spec\":{\"maxUnavailable\":$((n++))}}" >/dev/null || return
	done
}

rss_kib() {
	awk '/^VmRSS/ { print $2 }' "/proc/${o_pids[$1]}/status"
}

warm_up() {
	t_ok "$1: warming up" work_until "$1" 3000 $((seed += 1000))
	t_wait 60 "$1: it comes to rest" o_rest
}

# work ID: sets grown, to that of the round with less.
work() {
	local id=$1 before more start round

	grown=
	for ((round = 1; round <= rounds; round++)); do
		before=$(rss_kib "$id")
		start=$(o_metric "$id" orbweaver_reconciles_total)
		t_ok "$id: $((reconciles / rounds)) reconciles, round $round" work_until "$id" $((start + reconciles / rounds)) $((seed += 1000))
		t_wait 60 "$id: it comes to rest again" o_rest
		start=$(($(o_metric "$id" orbweaver_reconciles_total) - start))
		echo "# $id: $before KiB before, $(rss_kib "$id") KiB after $start reconciles"
		more=$(($(rss_kib "$id") - before))
		[[ -n $grown ]] && ((grown <= more)) || grown=$more
	done
}

o_begin leak --no-controllers
o_own_user
o_own_user_of_changes
o_nodes nodes --generate nodes=100
t_wait 30 "the nodes are there" o_curl GET /api/v1/nodes/node-00099
o_curl POST "$pool_configs" '{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkPoolConfig","metadata":{"name":"all"},
	"spec":{"maxUnavailable":1,"nodeSelector":{"matchLabels":{"kubernetes.io/os":"linux"}}}}' >/dev/null
t_ok "the program that ships is built" test -x "$release"
t_need

o_start sanitized
o_wait_ready sanitized
warm_up sanitized
o_end sanitized

o_operator=$release
o_start shipped
o_wait_ready shipped
warm_up shipped
work shipped
t_ok "the program that ships has grown by less than $growth_kib KiB ($grown)" test "$grown" -lt "$growth_kib"
o_end shipped
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The API server goes away and comes back, and forgets history: the operator waits without haste, catches up with all that
# happened meanwhile, and does nothing twice.
# Environment: OUTAGE_S, how long the API server is down (15; LONG=1: 60).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

outage_s=${OUTAGE_S:-$(o_size 60 15)}

delete_some() {
	k delete smc,sp,sriovnetworknodepolicies -A --all --wait=false >/dev/null
}

no_generated_nad() {
	k get net-attach-def -A -o json | jq -e '.items | map(select(.metadata.ownerReferences)) | length == 0'
}

no_work_left() {
	k get sriovnetworknodestates -A -o json | jq -e '.items | all(.[]; (.spec.interfaces // []) == [])'
}

o_begin outage --no-controllers
o_own_user
o_own_user_of_changes
o_nodes nodes --generate nodes=4
o_start op
o_wait_ready op
t_ok "a first load" o_churn --changes 200 --rate 0 --nodes 4
t_wait 30 "is dealt with" o_rest

# --- the API server stops -----------------------------------------------------------------------------------------

errors=$(o_error_lines op)
t_ok "the API server stops" hack/cluster stop "$o_cluster" apiserver
cpu=$(o_cpu_ms op)
sleep "$outage_s"
cpu=$(($(o_cpu_ms op) - cpu))
t_ok "the operator still runs" o_runs op
t_ok "it waits without haste ($cpu ms of CPU in $outage_s s)" test "$cpu" -lt $((outage_s * 100))
t_ok "it stays ready: it was in sync once, and answers reviews from its caches" o_ready op
t_ok "a gauge says since when it hears nothing" grep -qF 'orbweaver_informer_broken_seconds{' <(o_http op /metrics)
said=$(($(o_error_lines op) - errors))
t_ok "it says what is wrong, but not again and again ($said error lines)" test "$said" -ge 1 -a "$said" -le 30
t_ok "the API server starts" hack/cluster start "$o_cluster" apiserver
t_ok "changes right after that" o_churn --changes 200 --rate 0 --nodes 4 --seed 2
o_wait_ready op
t_wait 60 "are dealt with" o_rest

# --- history is gone ----------------------------------------------------------------------------------------------

lists=$(o_metric op orbweaver_informer_lists_total)
o_kill op STOP
t_ok "all is deleted while the operator does not look" delete_some
t_ok "and other things are made" o_churn --changes 100 --rate 0 --nodes 4 --seed 3
t_ok "history is compacted" hack/cluster compact "$o_cluster"
o_kill op CONT
t_wait 60 "the operator is right again" o_rest
o_wait_ready op
now=$(o_metric op orbweaver_informer_lists_total)
t_ok "it has listed again ($lists lists before, $now after)" test "$now" -gt "$lists"
o_kill op STOP
t_ok "everything is deleted while the operator does not look" delete_some
t_ok "history is compacted again" hack/cluster compact "$o_cluster"
o_kill op CONT
t_wait 60 "nothing that was generated is left" no_generated_nad
t_wait 30 "no node has work" no_work_left
t_wait 30 "nothing is left to do" o_rest

o_end op
t_done

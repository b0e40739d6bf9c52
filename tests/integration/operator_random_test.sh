#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Policies and labels of nodes change at random while two replicas of the operator are killed with SIGKILL and their connections to
# the API server are cut. In the end every NodeState is what the pure code makes of the policies, and nothing was
# written that was not called for. LONG=1: 50 policies, 1,000 nodes, ten minutes.
# Environment: SEED, what changes, who is killed and when (printed; random); SECONDS_OF_CHANGE, NODES, POLICIES, RATE (changes per second).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

seed=${SEED:-$(($(date +%s%N) / 1000 % 1000000 + 1))}
nodes=${NODES:-$(o_size 1000 60)}
policies=${POLICIES:-$(o_size 50 12)}
groups=$(o_size 20 6)
seconds=${SECONDS_OF_CHANGE:-$(o_size 600 15)}
rate=${RATE:-$(o_size 1 8)}
patience=$(o_size 600 90) # until all is at rest
pause_ms=$(o_size 6000 1200)
pfs=4
vfs=8
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
partial='Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

nodes_are_there() {
	o_curl GET '/api/v1/nodes?limit=1' | jq -e --argjson nodes "$nodes" '.metadata.remainingItemCount + 1 == $nodes'
}

# --- the disturbances ---------------------------------------------------------------------------------------------

kills=0
cuts=0

start_replica() {
	o_kubeconfig=$o_relayed o_start "$1"
}

# The log of all lives of a replica is one file.
kill_replica() {
	o_kill "$1" KILL
	t_ok "nothing but log lines from $1 until kill $((kills += 1))" o_log_is_clean "$1"
	start_replica "$1"
}

cut() {
	o_kill relay USR1
	cuts=$((cuts + 1))
}

disturb() {
	local ms

	while o_runs churn; do
		ms=$((pause_ms / 4 + RANDOM % pause_ms))
		sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
		if ((RANDOM % 6 == 0)); then
			kill_replica "op-$((RANDOM % 2 + 1))"
		else
			cut
		fi
	done
}

# --- the verdict --------------------------------------------------------------------------------------------------

# By the operators, all in all.
written_by_operators() {
	jq -rs --arg user "$o_username" 'map(select(.user == $user) | "\(.verb) \(.kind)\(if .sub == "" then "" else "/" + .sub end)") |
		group_by(.) | map("\(.[0]) × \(length)") | join(", ")' "$tmp/audit.json"
}

# Writes of anything but NodeStates, what is said about policies, the lease and events.
# After half a minute the leader makes the SpiderCoordinator "default".
foreign_writes() {
	jq -c --arg user "$o_username" 'select(.user == $user) | select(
		(.kind == "sriovnetworknodestates" and .sub == "") or (.kind == "sriovnetworknodepolicies" and .sub == "status") or
		.kind == "leases" or .kind == "events" or .kind == "spidercoordinators" | not)' "$tmp/audit.json"
}

# A NodeState may be written once when it is made, once when its NICs are known, once for each change of the node's label and for each
# change of a policy that selected or selects a label that the node has had.
uncalled_writes() {
	jq -rn --arg user "$o_username" --slurpfile policies "$tmp/watch-sriovnetworknodepolicies.out" \
		--slurpfile nodes "$tmp/watch-nodes.out" --slurpfile audit "$tmp/audit.json" '
		def changed: reduce .[] as $e ({ was: null, seen: [] };
			($e.type == "DELETED") as $gone | (if $gone then null else $e.object end) as $now |
			if .was != null and $now != null and .was.metadata.generation == $now.metadata.generation then .was = $now
			else .seen += [[.was, $now] | map(select(.) | .spec.nodeSelector["orbweaver.test/group"]) | unique] | .was = $now end) | .seen;
		($policies | group_by(.object.metadata.name) | map(changed[])) as $causes |
		($nodes | group_by(.object.metadata.name) | map({ key: .[0].object.metadata.name, value: (map(.object.metadata.labels["orbweaver.test/group"]) |
			reduce .[] as $g ([]; if .[-1] == $g then . else . + [$g] end)) }) | from_entries) as $groups |
		$audit | map(select(.user == $user and .kind == "sriovnetworknodestates" and .sub == "")) | group_by(.key)[] |
		(.[0].key | split("/")[1]) as $node | ($groups[$node] // []) as $had |
		([$causes[] | select(any(.[]; IN($had[])))] | length) as $called |
		select(length > $called + ($had | length) + 2) | "\($node): \(length) writes for \($called) changes of policies and \($had | length) labels"'
}

errors_logged() {
	jq -Rrn '[inputs | fromjson? | select(.level == "error") | .msg] | group_by(.)[] | "\(.[0]) × \(length)"' "$tmp"/op-[12].log
}

# --- the run ------------------------------------------------------------------------------------------------------

echo "# SEED=$seed: $policies policies, $nodes nodes in $groups groups, $seconds s, $rate changes per second"
RANDOM=$seed
o_begin random --no-controllers
o_own_user
o_own_user_of_changes
o_through_relay "$o_kubeconfig"
o_watch nodes /api/v1/nodes "$partial"
o_watch sriovnetworknodepolicies "$sriov/sriovnetworknodepolicies"
o_watch sriovnetworknodestates "$sriov/sriovnetworknodestates" "$partial"
o_nodes nodes --generate "nodes=$nodes,pfs=$pfs,vfs=$vfs" --work-ms 0
t_wait 180 "the nodes are there" nodes_are_there
t_ok "most nodes have a label" o_churn --only nodes --nodes "$nodes" --groups "$groups" --changes $((2 * nodes)) --rate 0 \
	--seed "$seed"
start_replica op-1
start_replica op-2
o_wait_ready op-1
t_ok "most policies are there" o_churn --only policies --policies "$policies" --groups "$groups" --pfs "$pfs" \
	--changes $((2 * policies)) --rate 0 --seed "$seed"
o_spawn churn "$o_programs/tests/integration/churn" --kubeconfig "$o_user_kubeconfig" --only policies,nodes --nodes "$nodes" \
	--policies "$policies" --groups "$groups" --pfs "$pfs" --changes $((seconds * rate)) --rate "$rate" --seed $((seed + 1))
disturb
o_reap churn
t_eq "all changes are made" "0 " "$o_status $(cat "$tmp/churn.log")"
if o_leads op-1; then kill_replica op-1; else kill_replica op-2; fi
t_wait "$patience" "each NodeState is what the policies make of it, from scratch, and nothing is left to do" o_rest afresh
t_ok "connections were cut: $cuts, replicas killed: $kills" test "$cuts" -gt 0 -a "$kills" -gt 0
t_ok "most nodes have work" test "$(o_curl GET "$states" | jq '[.items[] | select(.spec.interfaces // [] | length > 0)] | length')" -gt $((nodes / 4))
o_audit >"$tmp/audit.json"
t_ok "no write was without effect" o_says_nothing o_writes_without_effect
t_ok "operators wrote nothing but NodeStates and what is said about policies" o_says_nothing foreign_writes
t_ok "no NodeState was written more often than called for" o_says_nothing uncalled_writes
echo "# $(jq -s 'map(select(.user == "a-user")) | length' "$tmp/audit.json") changes; operators: $(written_by_operators)"
errors_logged | sed 's/^/# logged: /'
o_end op-1
o_end op-2
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything at once (chaos.c): pods come, end and are rejected, pools overlap, change, are wiped and made again, reservations
# move, a tenant forges SpiderEndpoints, agents and nodes are lost, and of two replicas of the operator the leader is stopped,
# continued and killed. What is judged is the complete history of the API server, in the order of its revisions (history.c): no
# address is of two living pods, none is given that is not to be given, none is lost, none leaks. The last part shows that a
# history with a fault is found out.
# Environment: SEED (printed; random), STEPS, RATE (per second); LONG=1 or MINUTES=10: ten minutes. KEEP=DIR keeps the history.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

seed=${SEED:-$(($(date +%s%N) / 1000 % 1000000 + 1))}
rate=${RATE:-20}
minutes=${MINUTES:-$(o_size 10 "")}
steps=${STEPS:-$((${minutes:-0} > 0 ? minutes * 60 * rate : 400))}
# Leaders look every five minutes at records without an endpoint, StatefulSets are asked about once a minute.
patience=$((${minutes:-0} > 0 ? 400 : 120))
RANDOM=$seed
printf '# SEED=%s: %s steps, %s per second\n' "$seed" "$steps" "$rate"

# history WHAT [DIR]: what is wrong with it, when it is quiet or empty.
history() {
	"$o_programs/tests/integration/history" "${2:-$tmp}" "$1"
}

# --- the operators --------------------------------------------------------------------------------------------------

declare -A done_to=()

begin_replica() {
	o_start "$1"
}

leader() {
	if o_leads one; then echo one; else echo two; fi
}

# The one that leads, or the other: killed, ended, or stopped for a moment or for longer than its lease.
disturb() {
	local who what=$((RANDOM % 8)) for_s=$((1 + RANDOM % 4))

	who=$(leader)
	((RANDOM % 4)) || { if [[ $who == one ]]; then who=two; else who=one; fi; }
	case $what in
	0 | 1 | 2)
		o_kill "$who" KILL
		begin_replica "$who"
		what=killed
		;;
	3)
		o_kill "$who" TERM
		o_reap "$who"
		begin_replica "$who"
		what=ended
		;;
	*)
		((what < 6)) || for_s=$((14 + RANDOM % 8))
		o_kill "$who" STOP
		sleep "$for_s"
		o_kill "$who" CONT
		what="stopped $(if ((for_s > 10)); then echo "for longer than its lease"; else echo "for a moment"; fi)"
		;;
	esac
	done_to[$what]=$((${done_to[$what]:-0} + 1))
}

is_quiet() {
	grep -q ^quiet "$tmp/chaos.out" || ! o_runs chaos
}

is_empty() {
	grep -q ^empty "$tmp/chaos.out"
}

# settled quiet|empty
settled() {
	history "$1" >"$tmp/found" 2>"$tmp/counts" || true
	cat "$tmp/counts"
	grep -m 5 -e ^lost -e ^leaked "$tmp/found" && return 1
	return 0
}

# --- a history with a fault -----------------------------------------------------------------------------------------

# The same history, but in each ledger the addresses are one pod further; print what kinds of faults are found.
doctored() {
	local file

	mkdir -p "$tmp/doctored"
	for file in "$tmp"/watch-*.out; do
		ln -sf "$file" "$tmp/doctored/"
	done
	rm "$tmp/doctored/watch-spiderippools.out"
	jq -c '(.object.status.allocatedIPs // "{}" | fromjson | to_entries) as $records | [$records[].value.podUid] as $uids |
		if ($uids | length) > 1 then .object.status.allocatedIPs = ([range($uids | length) | . as $i | $records[$i] |
			.value.podUid = $uids[($i + 1) % ($uids | length)]] | from_entries | tojson) else . end' \
		"$tmp/watch-spiderippools.out" >"$tmp/doctored/watch-spiderippools.out"
	{ history empty "$tmp/doctored" 2>/dev/null || true; } | cut -d : -f 1 | sort -u
}

# --- the run --------------------------------------------------------------------------------------------------------

o_begin chaos --no-controllers
k create namespace chaos >/dev/null
for i in 0 1 2; do
	k create namespace "user-$i" >/dev/null
	k label namespace "user-$i" "orbweaver.test/user=$i" >/dev/null
done
o_own_user
agents=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
tenant=$(o_user tenant)
k create role forger -n user-2 --verb '*' --resource spiderendpoints.spiderpool.spidernet.io >/dev/null
k create rolebinding forger -n user-2 --role forger --user tenant >/dev/null
o_watch pods /api/v1/pods
o_watch spiderippools "$spider/spiderippools"
o_watch spiderendpoints "$spider/spiderendpoints"
o_watch spiderreservedips "$spider/spiderreservedips"
o_watch configmaps /api/v1/namespaces/chaos/configmaps
o_watch leases "/apis/coordination.k8s.io/v1/namespaces/$POD_NAMESPACE/leases"
begin_replica one
begin_replica two
o_wait_ready one
o_wait_ready two
began=$SECONDS
o_spawn chaos "$o_programs/tests/integration/chaos" --kubeconfig "$kubeconfig" --agents "$agents" --tenant "$tenant" \
	--steps "$steps" --rate "$rate" --seed "$seed"
while ! is_quiet; do
	sleep $((3 + RANDOM % 8))
	is_quiet || disturb
done
echo "# quiet after $((SECONDS - began)) s"
t_ok "all steps are done" grep ^quiet "$tmp/chaos.out"
t_wait "$patience" "each living pod has what it asked for, and no pod that has ended (seed $seed)" settled quiet
echo "# settled after $((SECONDS - began)) s"
o_kill chaos USR1
t_wait 120 "all pods are gone" is_empty
t_wait "$patience" "all addresses come back (seed $seed)" settled empty
echo "# empty after $((SECONDS - began)) s"
history empty >"$tmp/found" 2>"$tmp/counts" || true
cat "$tmp/counts"
t_eq "the history has no gap and no fault (seed $seed)" "" "$(head -n 20 "$tmp/found")$(grep -v ^# "$tmp/counts" || true)"
doctored >"$tmp/faults"
t_ok "with another pod in each record it has faults" grep -x twice "$tmp/faults"
if [[ -n ${KEEP:-} ]]; then
	mkdir -p "$KEEP"
	cp "$tmp"/watch-*.out "$tmp"/*.log "$KEEP/"
fi
o_kill chaos TERM
t_wait 10 "the users end" o_gone chaos
o_reap chaos
t_eq "without a fault of theirs" "0 " "$o_status $(grep -v '^{' "$tmp/chaos.log" | head -n 40)"
for what in "${!done_to[@]}"; do
	printf '# a replica was %s: %s\n' "$what" "${done_to[$what]}"
done
sed -n 's/^{.*/# &/p' "$tmp/chaos.out"
o_end one
o_end two
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everybody writes to the same pools, and everything is killed: two leaders that nothing keeps apart, agents that help themselves
# while neither is there, somebody who writes ledgers as Spiderpool's agents do, and SIGKILL for operators, API server and etcd
# at random. What is judged is etcd's own history, not a status of ours: no address goes to a pod before the pod that had it is
# gone. And after quiet ledgers, endpoints and living pods agree. LONG=1: ten minutes. Environment: SEED.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/addresses.sh"

seed=${SEED:-$RANDOM}
# shellcheck disable=SC2034 # of addresses.sh
n_nodes=10
seconds=$(o_size 600 60)
users=3
pools=3
addresses=40 # of each pool; a namespace has at most 30 pods, theirs has 8
RANDOM=$seed
printf '# seed %s, %s s\n' "$seed" "$seconds"

etcdctl() {
	ETCDCTL_API=3 exec /usr/bin/etcdctl --endpoints "http://127.0.0.1:$(sed -n 's/^etcd=//p' "$o_dir/ports")" "$@"
}

# history NAME PREFIX: all that etcd ever stores there, from now on, whoever is killed.
history() {
	o_spawn "history-$1" etcdctl watch --prefix "/registry/$2/" --rev 1 --prev-kv -w json
}

is_over() {
	[[ -e $tmp/over ]]
}

# until_done COMMAND...: the API server may be away.
until_done() {
	until "$@" >/dev/null 2>&1; do
		sleep 0.2
	done
}

# --- users ----------------------------------------------------------------------------------------------------------

# ask NAMESPACE: the sandboxes of its pods do; the pools are those of their networks.
ask() {
	local i

	for ((i = 0; i < pools; i++)); do
		w "$1" get --deadline-ms 8000 --pool "shared-$i" \
			--uids <(awk -v pools="$pools" -v i="$i" '{ split($1, name, "-") } name[2] % pools == i' "$tmp/uids-$1") >>"$tmp/$1.said"
	done
}

# user NAMESPACE SEED: pods come, their sandboxes ask, they go, and their agents say so.
user() {
	RANDOM=$2
	while ! is_over; do
		p create --namespace "$1" --count $((1 + RANDOM % 30)) --nodes "$n_nodes" --networks "$pools" >/dev/null 2>&1 || true
		until_done uids "$1"
		((RANDOM % 3 == 0)) || ask "$1"
		until_done uids "$1"
		until_done p delete --namespace "$1"
		until_done w "$1" release
	done
	until_done all_of "$1"
}

# The last pods stay.
all_of() {
	p delete --namespace "$1" && p create --namespace "$1" --count 20 --nodes "$n_nodes" --networks "$pools"
}

# --- somebody who writes as Spiderpool's agents do ------------------------------------------------------------------

# their_record POOL JQ: read the pool, change its records, write both; fails when somebody else was first.
their_record() {
	local pool

	pool=$(o_curl GET "$spider/spiderippools/$1") || return
	pool=$(jq -ec "(.status.allocatedIPs // \"{}\" | fromjson | $2) as \$now | .status.allocatedIPs = (\$now | tojson) |
		.status.allocatedIPCount = (\$now | length)" <<<"$pool") || return
	o_curl PUT "$spider/spiderippools/$1/status" "$pool"
}

# their_pod NAME POOL-NUMBER: made, with an address, as their CNI plugin and agent do.
their_pod() {
	local uid address records pod pool=shared-$2 path=/api/v1/namespaces/theirs/pods

	pod=$(jq -nc --arg name "$1" '{ metadata: { $name }, spec: { nodeName: "node-00000",
		automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] } }')
	until uid=$({ o_curl GET "$path/$1" || o_curl POST "$path" "$pod"; } 2>/dev/null | jq -re .metadata.uid); do sleep 0.2; done
	records=$(jq -nr --arg uid "$uid" --arg pod "theirs/$1" --arg net "10.6.$2" --arg n "$addresses" --arg chance "$RANDOM" '
		"if any(.[]; .podUid == \($uid | tojson)) then . else
			([range(1; 1 + \($n)) | \"\($net).\\(.)\"] - keys) as $free | if $free == [] then empty else
			. + { ($free[\($chance) % ($free | length)]): { pod: \($pod | tojson), podUid: \($uid | tojson) } } end end"')
	until their_record "$pool" "$records" >"$tmp/theirs" 2>/dev/null; do sleep 0.1; done
	address=$(jq -r --arg uid "$uid" '.status.allocatedIPs | fromjson | to_entries[] | select(.value.podUid == $uid).key' "$tmp/theirs")
	until_done their_endpoint "$1" "$uid" "$address" "$pool"
}

# their_endpoint NAME UID ADDRESS POOL
their_endpoint() {
	local path="$spider/namespaces/theirs/spiderendpoints" endpoint

	endpoint=$(jq -nc --arg name "$1" --arg uid "$2" --arg address "$3/16" --arg pool "$4" '{
		apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderEndpoint",
		metadata: { $name, namespace: "theirs", finalizers: ["spiderpool.spidernet.io"] },
		status: { current: { $uid, node: "node-00000", ips: [{ interface: "eth0", ipv4: $address, ipv4Pool: $pool,
			cleanGateway: false, vlan: 0 }] }, ownerControllerType: "Pod", ownerControllerName: $name } }')
	o_curl GET "$path/$1" >/dev/null 2>&1 || o_curl POST "$path" "$endpoint"
}

their_end() {
	local uid i

	uid=$(o_curl GET "/api/v1/namespaces/theirs/pods/$1" 2>/dev/null | jq -re .metadata.uid) || return 0
	until_done o_curl DELETE "/api/v1/namespaces/theirs/pods/$1?gracePeriodSeconds=0"
	for ((i = 0; i < pools; i++)); do
		until_done their_record "shared-$i" "with_entries(select(.value.podUid != \"$uid\"))"
	done
	until_done their_endpoint_ends "$1"
}

# One that stays would be taken for the next pod's.
their_endpoint_ends() {
	k get se -n theirs -o name >"$tmp/their-endpoints" || return
	grep -q "/$1\$" "$tmp/their-endpoints" || return 0
	k patch se -n theirs "$1" --type merge -p '{"metadata":{"finalizers":null}}' && k delete se -n theirs "$1"
}

theirs() {
	local i

	RANDOM=$1
	while ! is_over; do
		i=$((RANDOM % 8))
		their_end "t-$i"
		their_pod "t-$i" $((RANDOM % pools))
	done
}

# --- whoever kills --------------------------------------------------------------------------------------------------

leader() {
	o_start "$1" --leader-elect=false --leader-elect-lease-duration 9s --leader-elect-renew-deadline 4s \
		--leader-elect-retry-period 2s
}

kill_component() {
	hack/cluster kill "$o_cluster" "$1"
	hack/cluster start "$o_cluster" "$1" >/dev/null
}

# One of them, now and then both for longer than agents wait for a leader, more rarely what all of them stand on.
kill_something() {
	case $((RANDOM % 8)) in
	0 | 1 | 2) o_kill one KILL && leader one ;;
	3 | 4 | 5) o_kill two KILL && leader two ;;
	6)
		o_kill one KILL
		o_kill two KILL
		sleep 8
		leader one
		leader two
		;;
	7) if ((RANDOM % 2)); then kill_component etcd; else kill_component apiserver; fi ;;
	esac
}

# --- the judgement --------------------------------------------------------------------------------------------------

# "UID REVISION" of pods that went, "REVISION POOL RECORDS" of all ledgers.
ended() {
	jq -r '.Events[]? | select(.type == 1 or .type == "DELETE") | "\(.prev_kv.value | @base64d |
		capture("(?<uid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})").uid) \(.kv.mod_revision)"' "$tmp/history-pods.out"
}

ledgers() {
	jq -c '.Events[]? | select(.kv.value) | { revision: .kv.mod_revision, pool: (.kv.value | @base64d | fromjson) } |
		{ revision, name: .pool.metadata.name, now: (.pool.status.allocatedIPs // "{}" | fromjson | map_values(.podUid)) }' \
		"$tmp/history-pools.out"
}

# Addresses that went from one pod to another before the first one was gone.
given_twice() {
	ended | jq -Rn '[inputs | split(" ") | { key: .[0], value: (.[1] | tonumber) }] | from_entries' >"$tmp/ended.json"
	ledgers | jq -rn --slurpfile ended "$tmp/ended.json" '
		foreach inputs as $version ({ held: {} };
			(.held[$version.name] // {}) as $before |
			.bad = [$version.now | to_entries[] | $before[.key] as $had |
				select($had and $had != .value and ($ended[0][$had] // infinite) > $version.revision) |
				"\($version.name) \(.key): of \($had), then of \(.value) at \($version.revision)"] |
			.held[$version.name] = $before + $version.now;
			.bad[])'
}

# --- the run --------------------------------------------------------------------------------------------------------

o_begin ipam-churn --no-controllers
nodes | k create -f - >/dev/null
for ((i = 0; i < pools; i++)); do
	o_curl POST "$spider/spiderippools" "$(pool "shared-$i" 10.6.0.0/16 "10.6.$i.1-10.6.$i.$addresses")" >/dev/null
done
k create namespace theirs >/dev/null
for ((u = 0; u < users; u++)); do
	k create namespace "user-$u" >/dev/null
	for ((i = 0; i < pools; i++)); do
		o_curl POST "$nads/namespaces/user-$u/network-attachment-definitions" "$(network "user-$u" "net-$i" "shared-$i")" >/dev/null
	done
done
history pods pods
history pools spiderpool.spidernet.io/spiderippools
o_own_user
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
for ((i = 0; i < n_nodes; i++)); do
	o_spawn "agent-$i" "$o_programs/tests/integration/wants" look-after --kubeconfig "$agent_kubeconfig" --node "node-0000$i"
done
leader one
leader two
o_wait_ready one
o_wait_ready two

set +e
hands=()
for ((u = 0; u < users; u++)); do
	user "user-$u" $((seed + u)) &
	hands+=($!)
done
theirs $((seed + users)) &
hands+=($!)
set -e
end=$((SECONDS + seconds))
kills=0
while ((SECONDS < end)); do
	sleep $((1 + RANDOM % 5))
	kill_something
	kills=$((kills + 1))
done
touch "$tmp/over"
for hand in "${hands[@]}"; do
	wait "$hand"
done
printf '# %s kills; what sandboxes asked for:\n' "$kills"
awk '/ done, / { done += $1; failed += $3 } /"no operator leads/ { helped++ } END { printf "# %d done, %d failed, %d agents saw no leader\n",
	done, failed, helped }' "$tmp"/user-*.said
sed -n 's/^wants: \([A-Za-z]*: [A-Za-z]*\).*/\1/p' "$tmp"/user-*.said | sort | uniq -c | sed 's/^/# /'
their_pods=$(o_curl GET /api/v1/namespaces/theirs/pods | jq '.items | length')
# Agents look once more a minute after a pod has ended without an endpoint, leaders every five minutes at records without one.
t_wait 400 "after quiet ledgers, endpoints and living pods agree (seed $seed)" all_agree $((users * 20 + their_pods))
for ((u = 0; u < users; u++)); do
	uids "user-$u"
	t_ok "all pods of user-$u end" p delete --namespace "user-$u"
	t_ok "and their agents say so" w "user-$u" release
done
t_wait 400 "their addresses come back" all_agree "$their_pods"
printf '# %s versions of pools, %s pods that went\n' "$(ledgers | wc -l)" "$(ended | wc -l)"
t_eq "no address went to a pod before the one that had it was gone (seed $seed)" "" "$(given_twice)"
t_ok "and there was much to go wrong" test "$(ended | wc -l)" -gt 100
for ((i = 0; i < n_nodes; i++)); do
	o_kill "agent-$i" KILL
done
o_end one
o_end two
t_done

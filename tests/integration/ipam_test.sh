#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Addresses on a real API server: pods that are bound get them from their pools, as many as there are pods, each once; they
# come back when a pod has ended and its node's agent has said so, and not before. The pods' nodes, kubelets and agents are
# tests/integration/pods.c. LONG=1: sizes of full runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/addresses.sh

o_begin ipam --no-controllers

n=$(o_size 1000 100)
n_nodes=$(o_size 100 20)
n_pools=$(o_size 100 10)
rounds=$(o_size 20 2)

# plain_pod NAMESPACE NAME: one that names no network, so that nobody foresees that it wants addresses.
plain_pod() {
	o_curl POST "/api/v1/namespaces/$1/pods" "$(jq -nc --arg name "$2" '{ apiVersion: "v1", kind: "Pod", metadata: { $name },
		spec: { nodeName: "node-00000", containers: [{ name: "c", image: "none" }] } }')" >/dev/null
}

# --- questions ----------------------------------------------------------------------------------------------------

address_of() {
	o_curl GET "$spider/namespaces/$1/spiderendpoints/$2" | jq -re '.status.current.ips[0].ipv4'
}


says() {
	local said

	if ! said=$("${@:2}"); then
		echo "$said"
		return 1
	fi
	echo "$said" && [[ $said == *"$1"* ]]
}

watched_pools() {
	jq -n '[inputs] | length' "$tmp/watch-spiderippools.out"
}

# The same of a program that fails.
complains() {
	local said

	if said=$("${@:2}"); then
		return 1
	fi
	echo "$said" && [[ $said == *"$1"* ]]
}

pool_writes() {
	o_writes '.kind == "spiderippools" and .sub == "status"'
}

# --- the run ------------------------------------------------------------------------------------------------------

# range FIRST: as many addresses as pods, from 10.6.FIRST.0 on
range() {
	echo "10.6.$1.0-10.6.$(($1 + (n - 1) / 256)).$(((n - 1) % 256))"
}

nodes | k create -f - >/dev/null
for namespace in one many; do
	k create namespace "$namespace" >/dev/null
done
o_curl POST "$spider/spiderippools" "$(pool exact 10.6.0.0/16 "$(range 1)")" >/dev/null
o_curl POST "$nads/namespaces/one/network-attachment-definitions" "$(network one net-0 exact)" >/dev/null
for ((i = 0; i < n_pools; i++)); do
	o_curl POST "$spider/spiderippools" "$(pool "many-$i" "10.7.$i.0/24" "10.7.$i.1-10.7.$i.$((n / n_pools))")" >/dev/null
	o_curl POST "$nads/namespaces/many/network-attachment-definitions" "$(network many "net-$i" "many-$i")" >/dev/null
done

o_own_user
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
o_start first
o_wait_ready first
t_wait 30 "it leads" o_leads first

echo "# $n pods on $n_nodes nodes, from one pool that has as many addresses"
writes=$(pool_writes)
t_ok "the pods are made" p create --namespace one --count "$n" --nodes "$n_nodes"
t_wait 120 "each has an address of its own, and a SpiderEndpoint" all_agree "$n"
echo "# pool writes: $(($(pool_writes) - writes))"
t_eq "an endpoint has the label of its node" "$n" \
	"$(k get se -n one -l orbweaver.io/node -o name | wc -l)"

echo "# the agent finds them there"
uids one
t_ok "each CNI call has its answer" says "$n done, 0 failed" w one get

echo "# nothing comes back before the agent has said so"
first=$(address_of one p-0)
k delete pod -n one p-0 --grace-period 0 --force >/dev/null 2>&1
t_ok "one more pod waits" o_curl POST "/api/v1/namespaces/one/pods" "$(jq -nc '{ apiVersion: "v1", kind: "Pod",
	metadata: { name: "late", annotations: { "k8s.v1.cni.cncf.io/networks": "net-0" } },
	spec: { nodeName: "node-00001", containers: [{ name: "c", image: "none" }] } }')"
late_is_told() {
	o_curl GET "/api/v1/namespaces/one/events?fieldSelector=involvedObject.name%3Dlate" |
		jq -re '.items[0] | select(.reason == "PoolExhausted") | .message'
}
t_wait 20 "and has an event that says why and what to do" says "add addresses to spec.ips" late_is_told
t_fails "it has no address, although a pod is gone" address_of one late
k patch se -n one p-0 --type merge -p '{"metadata":{"finalizers":["spiderpool.spidernet.io"]}}' >/dev/null
k delete se -n one p-0 --wait=false >/dev/null
t_ok "one that Spiderpool made stays when somebody deletes it" k get se -n one p-0
k annotate se -n one p-0 "orbweaver.io/down=$(k get se -n one p-0 -o jsonpath='{.status.current.uid}')" >/dev/null
t_wait 20 "it gets the address once the agent has said that nothing is left" says "$first" address_of one late
t_wait 20 "the endpoint of the pod that is gone is gone, too" all_agree "$n"

echo "# a node that is gone needs no word of its agent"
on_first=$(k get pods -n one -o json | jq '[.items[] | select(.spec.nodeName == "node-00001")] | length')
k get pods -n one -o json | jq -r '.items[] | select(.spec.nodeName == "node-00001").metadata.name' |
	xargs hack/cluster kubectl "$o_cluster" delete pod -n one --grace-period 0 --force >/dev/null 2>&1
k taint node node-00001 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute >/dev/null
t_wait 30 "what its $on_first pods had comes back" all_agree $((n - on_first))

echo "# endpoints that somebody deletes"
k delete se -n one --all >/dev/null
t_wait 60 "endpoints of living pods are written again" all_agree $((n - on_first))

echo "# all end, all come back"
t_ok "the pods are deleted" p delete --namespace one
t_ok "their agents say so" p down --namespace one
t_wait 60 "no record is left, and no endpoint" all_agree 0
writes=$(pool_writes)
t_ok "the pods are made anew" p create --namespace one --count "$n" --nodes "$n_nodes"
t_wait 120 "each has an address again" all_agree "$n"
echo "# pool writes: $(($(pool_writes) - writes))"

echo "# from $n_pools pools, exactly sized"
t_ok "the pods are made" p create --namespace many --count "$n" --nodes "$n_nodes" --networks "$n_pools"
t_wait 120 "each has an address" all_agree $((2 * n))

echo "# a leader that ends between two writes"
t_ok "all pods are deleted" p delete --namespace many
t_ok "their agents say so" p down --namespace many
t_wait 60 "they come back" all_agree "$n"
p create --namespace many --count "$n" --nodes "$n_nodes" --networks "$n_pools" >/dev/null &
maker=$!
for ((i = 0; i < rounds; i++)); do
	sleep 0.4
	o_kill first KILL
	o_start first
	t_wait 60 "the next one leads" o_leads first
done
wait "$maker"
t_wait 120 "each pod has one address, none is lost" all_agree $((2 * n))

echo "# two leaders at once: nothing but the versions of pools stands between them"
o_end first
o_watch spiderippools "$spider/spiderippools"
o_watch pods /api/v1/pods
o_start one --leader-elect=false
o_start two --leader-elect=false
o_wait_ready one
o_wait_ready two
for ((i = 0; i < rounds; i++)); do
	t_ok "pods are deleted" p delete --namespace many
	t_ok "their agents say so" p down --namespace many
	t_wait 120 "they come back" all_agree "$n"
	t_ok "pods are made" p create --namespace many --count "$n" --nodes "$n_nodes" --networks "$n_pools"
	t_wait 120 "each has one address" all_agree $((2 * n))
done
echo "# versions of pools: $(watched_pools)"
t_eq "no address went to a pod before the one that had it was gone" "" "$(o_given_twice)"
t_ok "and there was much to go wrong" test "$(watched_pools)" -gt $((rounds * n_pools))
o_end one
o_end two
o_kill watch-spiderippools KILL
o_kill watch-pods KILL
o_start first
o_wait_ready first
t_wait 60 "one leads again" o_leads first

echo "# pods that end without a sandbox, while the agent is there and while it is away"
k create namespace early >/dev/null
o_curl POST "$spider/spiderippools" "$(pool early 10.9.0.0/24 10.9.0.1-10.9.0.3)" >/dev/null
o_curl POST "$nads/namespaces/early/network-attachment-definitions" "$(network early net-0 early)" >/dev/null
t_ok "pods are made" p create --namespace early --count 2 --nodes 1
t_wait 30 "they have addresses" all_agree $((2 * n + 2))
t_ok "one is deleted" o_curl DELETE "/api/v1/namespaces/early/pods/p-0?gracePeriodSeconds=0"
o_spawn agent "$o_programs/tests/integration/wants" look-after --kubeconfig "$agent_kubeconfig" --node node-00000
t_wait 30 "an agent that comes says that nothing is left of it" all_agree $((2 * n + 1))
t_ok "the other one is deleted" o_curl DELETE "/api/v1/namespaces/early/pods/p-1?gracePeriodSeconds=0"
t_wait 30 "and sees it go" all_agree $((2 * n))
o_kill agent KILL

echo "# an address that somebody else on the network has"
# conflict NAME ADDRESS: what the pod's agent says.
conflict() {
	k annotate se -n conflict "$1" --overwrite "orbweaver.io/conflicts=$(jq -nc --arg ip "$2" \
		--arg uid "$(k get se -n conflict "$1" -o jsonpath='{.status.current.uid}')" \
		'{ $uid, conflicts: [{ $ip, mac: "02:00:00:00:00:01" }] }')" >/dev/null
}
# pool_says WANT FILTER: of the pool
pool_says() {
	[[ $(o_curl GET "$spider/spiderippools/conflict" | jq -c "$2") == "$1" ]]
}
said_is_heard() {
	[[ -z $(k get se -n conflict "$1" -o jsonpath='{.metadata.annotations.orbweaver\.io/conflicts}') ]]
}
# Without detection users alone say so.
o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" '{"metadata": {"name": "spiderpool-conf"}, "data": {"conf.yml":
	"{enableIPv4: true, enableIPv6: true, enableStatefulSet: true, enableKubevirtStaticIP: true, enableIPConflictDetection: true}"}}' \
	>/dev/null
k create namespace conflict >/dev/null
o_curl POST "$spider/spiderippools" "$(pool conflict 10.10.0.0/24 10.10.0.1-10.10.0.3)" >/dev/null
o_curl POST "$nads/namespaces/conflict/network-attachment-definitions" "$(network conflict net-0 conflict)" >/dev/null
t_ok "a pod is made" p create --namespace conflict --count 1 --nodes 1
t_wait 30 "it has an address" says 10.10.0.1 address_of conflict p-0
conflict p-0 10.10.0.1
t_wait 30 "its agent finds it in use: it has another one" says 10.10.0.2 address_of conflict p-0
t_wait 10 "the word is heard" said_is_heard p-0
t_ok "ledger and endpoints agree" all_agree $((2 * n + 1))
t_wait 10 "the pool shows it" pool_says '[1,1,"AddressConflict"]' '[.status.conflictIPCount, .status.freeIPCount,
	(.status.conditions[] | select(.type == "Degraded").reason)]'
uids conflict
t_ok "and its agent finds the new one" says "1 done, 0 failed" w conflict get
conflict p-0 10.10.0.2
t_wait 30 "the next one as well" says 10.10.0.3 address_of conflict p-0
conflict p-0 10.10.0.3
t_wait 10 "no address is left: the pod keeps what it has" pool_says '[3,0]' '[.status.conflictIPCount, .status.freeIPCount]'
t_ok "it is not forgotten that it wants another one" says "10.10.0.3" k get se -n conflict p-0 -o json
o_curl PATCH "$spider/spiderippools/conflict" '{"spec": {"ips": ["10.10.0.1-10.10.0.4"]}}' >/dev/null
t_wait 30 "it gets it as soon as there is one" says 10.10.0.4 address_of conflict p-0
t_wait 10 "the word is heard" said_is_heard p-0
o_curl PATCH "$spider/spiderippools/conflict" '{"spec": {"excludeIPs": ["10.10.0.1"]}}' >/dev/null
t_wait 30 "an address that is excluded is no conflict any more" pool_says 2 .status.conflictIPCount
o_curl PATCH "$spider/spiderippools/conflict/status" "$(jq -nc --arg now "$(date -u +%FT%TZ)" \
	--arg before "$(date -u -d '3597 seconds ago' +%FT%TZ)" \
	'{ status: { conflictIPs: [{ ip: "10.10.0.2", seen: $before }, { ip: "10.10.0.3", seen: $now }] } }')" >/dev/null
t_wait 30 "an hour later it may be tried again, after the others" pool_says '[1,["10.10.0.2"],1]' \
	'[.status.conflictIPCount, .status.releasedIPs, .status.freeIPCount]'
t_ok "the pod is deleted" p delete --namespace conflict
t_ok "its agent says so" p down --namespace conflict
t_wait 30 "what it had comes back" all_agree $((2 * n))

echo "# what nobody could foresee is asked for"
o_curl POST "$spider/spiderippools" "$(pool asked 10.8.0.0/24 10.8.0.1-10.8.0.3)" >/dev/null
k create namespace asked >/dev/null
for name in a b c; do
	plain_pod asked "$name"
done
uids asked
t_ok "pods without annotation get addresses when their sandboxes ask" says "3 done, 0 failed" \
	w asked get --nic eth0 --pool asked
plain_pod asked d
k get pod -n asked d -o json | jq -r '"\(.metadata.name) \(.metadata.uid)"' >"$tmp/uids-asked"
t_ok "one more is told what is in the way (AddressesPending)" complains "AddressesPending: PoolExhausted" \
	w asked get --nic eth0 --pool asked --deadline-ms 5000
uids asked
k delete pod -n asked --all --grace-period 0 --force >/dev/null 2>&1
t_ok "agents say that nothing is left of them" says "4 done, 0 failed" w asked release
t_wait 30 "and all comes back" all_agree $((2 * n))

echo "# nobody leads"
plain_pod asked e
plain_pod asked f
uids asked
o_end first
t_ok "the agent takes addresses itself" says "2 done, 0 failed" w asked get --nic eth0 --pool asked
t_ok "ledger and endpoints agree" all_agree $((2 * n + 2))
uids asked
k delete pod -n asked --all --grace-period 0 --force >/dev/null 2>&1
k delete se -n asked --all >/dev/null
t_ok "and gives back by itself what no endpoint names" says "2 done, 0 failed" \
	w asked release
t_ok "so nothing is lost with a namespace" all_agree $((2 * n))
t_done

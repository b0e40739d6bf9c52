#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How addresses come back: a rolling update from a pool with one address more than pods; a node that is powered off, pods of a
# StatefulSet deleted with force, a namespace deleted. Prints when each address came back; none is given twice, none is kept for
# ever. The nodes' agents are tests/integration/wants.c.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

replicas=$(o_size 50 20)

# --- objects ------------------------------------------------------------------------------------------------------

# pool NAME NET N: with so many addresses; and its network, in a namespace of the same name
pool() {
	o_curl POST /api/v1/namespaces "{\"metadata\": {\"name\": \"$1\"}}" >/dev/null
	o_curl POST "$spider/spiderippools" "$(jq -nc --arg name "$1" --arg net "$2" --argjson n "$3" '{
		apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { $name },
		spec: { ipVersion: 4, subnet: "\($net).0/24", ips: ["\($net).1-\($net).\($n)"] } }')" >/dev/null
	o_curl POST "$nads/namespaces/$1/network-attachment-definitions" "$(jq -nc --arg pool "$1" '{
		apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata: { name: "net" },
		spec: { config: ({ cniVersion: "1.0.0", name: "net", type: "macvlan", ipam: { type: "spiderpool",
			default_ipv4_ippool: [$pool] } } | tojson) } }')" >/dev/null
}

# pod NAMESPACE NAME NODE [OWNER [APIVERSION KIND [NETWORK]]]: prints its UID. By default of a StatefulSet, on "net".
pod() {
	o_curl POST "/api/v1/namespaces/$1/pods" "$(jq -nc --arg name "$2" --arg node "$3" --arg owner "${4:-}" \
		--arg version "${5:-apps/v1}" --arg kind "${6:-StatefulSet}" --arg net "${7-net}" \
		--arg uid "${owner_uid:-owner}" '{
		apiVersion: "v1", kind: "Pod", metadata: { $name,
			annotations: (if $net == "" then {} else { "k8s.v1.cni.cncf.io/networks": $net } end),
			ownerReferences: (if $owner == "" then [] else [{ apiVersion: $version, $kind, name: $owner,
			$uid, controller: true }] end) },
		spec: { nodeName: $node, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0,
			containers: [{ name: "c", image: "none" }] } }')" | jq -r .metadata.uid
}

stateful_set() {
	o_curl POST "/apis/apps/v1/namespaces/$1/statefulsets" "$(jq -nc --arg name "$2" --argjson replicas "$3" '{
		metadata: { $name }, spec: { $replicas, serviceName: "s", selector: { matchLabels: { a: "b" } },
		template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "none" }] } } } }')" >/dev/null
}

# machine_pod NAMESPACE NAME NODE MACHINE [NETWORK]: prints its UID. Without a network nobody foresees what it wants.
machine_pod() {
	local path=/apis/kubevirt.io/v1/namespaces/$1/virtualmachineinstances/$4 made owner

	owner=$(o_curl GET "$path" | jq -r .metadata.uid)
	made=$(owner_uid=$owner pod "$1" "$2" "$3" "$4" kubevirt.io/v1 VirtualMachineInstance "${5-}")
	o_curl PATCH "$path" "{\"status\": {\"activePods\": {\"$made\": \"$3\"}}}" >/dev/null
	echo "$made"
}

machine() {
	o_curl POST "/apis/kubevirt.io/v1/namespaces/$1/virtualmachineinstances" \
		"{\"apiVersion\": \"kubevirt.io/v1\", \"kind\": \"VirtualMachineInstance\", \"metadata\": {\"name\": \"$2\"}}" >/dev/null
}

delete_pod() {
	o_curl DELETE "/api/v1/namespaces/$1/pods/$2?gracePeriodSeconds=0" >/dev/null
}

# w NODE NAMESPACE NAME UID get|release [FLAG...]: what the CNI server of the node does.
w() {
	"$o_programs/tests/integration/wants" "$5" --kubeconfig "$agent_kubeconfig" --node "$1" --namespace "$2" \
		--uids <(echo "$3 $4") "${@:6}" 2>&1
}

# asked_about N: the endpoints that ask agents about the pods that are lost here. Others may ask about a pod of which an agent
# gives the records back at that moment, until that node's agent lists endpoints.
asked_about() {
	local asked

	asked=$(o_curl GET "$spider/namespaces/$POD_NAMESPACE/spiderendpoints" | jq -r '.items[].metadata.name')
	echo "$asked"
	[[ $(grep -c "^lost-00000000-" <<<"$asked") == "$1" ]]
}

# --- questions ----------------------------------------------------------------------------------------------------

records() {
	o_curl GET "$spider/spiderippools/$1" | jq -r '.status.allocatedIPs // "{}" | fromjson | to_entries[] | "\(.key) \(.value.pod)"'
}

holds() {
	[[ $(records "$1" | wc -l) == "$2" ]]
}

address_of() {
	records "$1" | awk -v pod="$1/$2" '$2 == pod { print $1 }'
}

# The UID of the pod that a pool's only record names.
uid_in() {
	o_curl GET "$spider/spiderippools/$1" | jq -r '.status.allocatedIPs // "{}" | fromjson | map(.podUid) | join(" ")'
}

endpoint_is_of() {
	[[ $(o_curl GET "$spider/namespaces/$1/spiderendpoints/$2" | jq -r .status.current.uid) == "$3" ]]
}

has_address() {
	[[ -n $(address_of "$1" "$2") ]]
}

ms() {
	date +%s%3N
}

# came_back WHAT POOL LEFT SINCE: a line of the table.
came_back() {
	t_wait 60 "$1: what was held is back" holds "$2" "$3"
	printf '# %-60s %6d ms\n' "$1" $(($(ms) - $4))
}

# --- the run ------------------------------------------------------------------------------------------------------

o_begin endings --no-controllers
o_kubevirt
for node in n1 n2 off; do
	o_curl POST /api/v1/nodes "{\"metadata\": {\"name\": \"$node\"}}" >/dev/null
done
o_own_user
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
o_watch spiderippools "$spider/spiderippools"
o_watch pods /api/v1/pods
o_start first
o_wait_ready first
t_wait 30 "it leads" o_leads first

echo "# a rolling update of $replicas pods, $((replicas + 1)) addresses: the next pod is made before the node of the old one has spoken"
pool roll 10.6.1 $((replicas + 1))
declare -A uid=()
for ((i = 0; i < replicas; i++)); do
	uid[old-$i]=$(pod roll "old-$i" n1)
done
t_wait 60 "each old pod has an address" holds roll "$replicas"
roll() {
	local i new waiting refused=0

	for ((i = 0; i < replicas; i++)); do
		new=$(pod roll "new-$i" n2)
		w n2 roll "new-$i" "$new" get >"$tmp/new-$i" &
		waiting=$!
		delete_pod roll "old-$i"
		w n1 roll "old-$i" "${uid[old-$i]}" release >/dev/null
		wait "$waiting" || refused=$((refused + 1))
	done
	cat "$tmp"/new-*
	((refused == 0))
}
t_ok "no pod is refused an address" roll
echo "# the longest wait: $(sed 's/.* p99 //' "$tmp"/new-* | sort -n | tail -n 1)"
t_wait 30 "the new pods have the addresses, the old ones none" holds roll "$replicas"
t_eq "all are the new ones'" "$replicas" "$(records roll | grep -c roll/new-)"

echo "# a node is powered off with its pods"
pool power 10.6.2 3
for i in 0 1 2; do
	uid[off-$i]=$(pod power "off-$i" off)
done
t_wait 30 "its pods have addresses" holds power 3
for i in 0 1 2; do
	delete_pod power "off-$i"
done
pod power waits n1 >/dev/null
sleep 3
t_ok "while nobody has declared it dead, nothing comes back" holds power 3
t_fails "and nobody else gets it" has_address power waits
since=$(ms)
k taint node off node.kubernetes.io/out-of-service=nodeshutdown:NoExecute >/dev/null
t_wait 30 "who waits gets one" has_address power waits
came_back "node with the out-of-service taint" power 1 "$since"
pool gone 10.6.3 2
k taint node off node.kubernetes.io/out-of-service- >/dev/null
uid[g]=$(pod gone g off)
t_wait 30 "one more pod there" holds gone 1
delete_pod gone g
since=$(ms)
k delete node off >/dev/null
came_back "node deleted" gone 0 "$since"

echo "# pods of a StatefulSet, deleted with force"
pool sets 10.6.4 3
stateful_set sets web 2
uid[web-0]=$(pod sets web-0 n1 web)
uid[web-1]=$(pod sets web-1 n1 web)
t_wait 30 "its pods have addresses" holds sets 2
first=$(address_of sets web-0)
delete_pod sets web-0
uid[again]=$(pod sets web-0 n2 web)
t_ok "made anew on another node before the first one has spoken, it has an address" w n2 sets web-0 "${uid[again]}" get
t_eq "it is the same" "$first" "$(address_of sets web-0)"
t_ok "the first node speaks late" w n1 sets web-0 "${uid[web-0]}" release
sleep 2
t_eq "and takes nothing from the pod that lives" "$first" "$(address_of sets web-0)"
k scale statefulset -n sets web --replicas 1 >/dev/null
delete_pod sets web-1
t_ok "the node of one that has no place any more speaks" w n1 sets web-1 "${uid[web-1]}" release
since=$(ms)
came_back "StatefulSet scaled down" sets 1 "$since"
delete_pod sets web-0
t_ok "its node speaks" w n2 sets web-0 "${uid[again]}" release
sleep 2
t_ok "a pod that comes back keeps its address" holds sets 1
since=$(ms)
o_curl DELETE /apis/apps/v1/namespaces/sets/statefulsets/web >/dev/null
printf '# looked at again once a minute\n'
t_wait 90 "StatefulSet deleted: what was held is back" holds sets 0
printf '# %-60s %6d ms\n' "StatefulSet deleted" $(($(ms) - since))

echo "# a namespace is deleted: pods and endpoints, before the nodes have spoken"
pool space 10.6.5 2
uid[s-0]=$(pod space s-0 n1)
uid[s-1]=$(pod space s-1 n1)
t_wait 30 "its pods have addresses" holds space 2
for i in 0 1; do
	delete_pod space "s-$i"
done
o_curl DELETE "$spider/namespaces/space/spiderendpoints" >/dev/null
sleep 2
t_ok "nothing comes back on the word of nobody" holds space 2
since=$(ms)
for i in 0 1; do
	t_ok "the node speaks" w n1 space "s-$i" "${uid[s-$i]}" release
done
came_back "namespace deleted, its node has spoken" space 0 "$since"

echo "# records of pods of which no agent has ever heard: a leader was killed before their endpoints, the watch of an agent broken"
# One whose namespace is there, with addresses of two pools; one whose namespace is not; one whose name another pod has by now.
pool lost 10.6.9 4
pool second 10.6.10 1
uid[here]=$(pod lost here n1)
t_wait 30 "the pod that is there has an address" holds lost 1
lost_records=$(o_curl GET "$spider/spiderippools/lost" | jq '.status.allocatedIPs | fromjson + {
	"10.6.9.2": { pod: "lost/gone", podUid: "00000000-0000-0000-0000-000000000001", node: "n1" },
	"10.6.9.3": { pod: "nowhere/gone", podUid: "00000000-0000-0000-0000-000000000002", node: "n1" },
	"10.6.9.4": { pod: "lost/here", podUid: "00000000-0000-0000-0000-000000000003", node: "n1" } } | { status: { allocatedIPs: tojson } }')
o_curl PATCH "$spider/spiderippools/lost/status" "$lost_records" >/dev/null
o_curl PATCH "$spider/spiderippools/second/status" "$(jq -nc '{ status: { allocatedIPs: ({
	"10.6.10.1": { pod: "lost/gone", podUid: "00000000-0000-0000-0000-000000000001", node: "n1" } } | tojson) } }')" >/dev/null
t_wait 30 "their agent is asked, about each pool" asked_about 4
t_ok "and nothing comes back before it has spoken" holds lost 4
o_spawn agent "$o_programs/tests/integration/wants" look-after --kubeconfig "$agent_kubeconfig" --node n1
t_wait 60 "it says that nothing is left: they come back" holds lost 1
t_wait 30 "of both pools" holds second 0
t_wait 30 "and nothing is asked any more" asked_about 0
t_eq "what the pod has that is there is not touched" "${uid[here]}" "$(uid_in lost)"
o_kill agent KILL

t_eq "no address went to a pod before the one that had it was gone" "" "$(o_given_twice)"

echo "# a tenant writes the SpiderEndpoint of a pod of his own, that names no network and waits for a volume"
# forge ADDRESS POOL
forge() {
	o_curl DELETE "$spider/namespaces/tenant/spiderendpoints/f" >/dev/null 2>&1 || true
	o_curl POST "$spider/namespaces/tenant/spiderendpoints" "$(jq -nc --arg uid "${uid[f]}" --arg address "$1/24" --arg pool "$2" '{
		apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderEndpoint", metadata: { name: "f" },
		status: { current: { $uid, node: "n1", ips: [{ interface: "net1", vlan: 0, ipv4: $address, ipv4Pool: $pool }] },
			ownerControllerType: "Pod", ownerControllerName: "f" } }')" >/dev/null
}
not_admitted() {
	local said

	! said=$(w n1 tenant f "${uid[f]}" get) && echo "$said" && [[ $said == *"AddressNotAdmitted: SpiderEndpoint tenant/f: address $1 "* ]]
}
pool victims 10.6.11 3
pool tenant 10.6.12 3
uid[v-0]=$(pod victims v-0 n1)
uid[f]=$(pod tenant f n1 "" "" "" "")
t_wait 30 "another tenant's pod has an address" has_address victims v-0
victim=$(address_of victims v-0)
for claim in "$victim victims" "10.6.11.3 victims" "10.6.11.254 victims" "10.99.9.9 none"; do
	read -r address of <<<"$claim"
	t_ok "it says that the pod has $address of pool $of" forge "$address" "$of"
	t_ok "the node's agent does not give it to the pod" not_admitted "$address"
done
t_eq "the victim's record is as it was" "$victim victims/v-0" "$(records victims)"
o_curl DELETE "$spider/namespaces/tenant/spiderendpoints/f" >/dev/null
t_ok "without that endpoint the pod gets an address" w n1 tenant f "${uid[f]}" get --pool tenant
t_ok "of the pool that its network names" has_address tenant f

echo "# a virtual machine: its addresses are its own, whichever pod it is in"
pool machines 10.6.6 5
machine machines vm
uid[a]=$(machine_pod machines launcher-a n1 vm)
t_ok "its pod names no network and asks" w n1 machines launcher-a "${uid[a]}" get --nic eth0 --pool machines
first=$(address_of machines vm)
t_eq "the ledger names the machine" "$first machines/vm" "$(records machines)"
uid[b]=$(machine_pod machines launcher-b n2 vm)
t_ok "it migrates: the other pod has its answer while the first one lives" \
	w n2 machines launcher-b "${uid[b]}" get --nic eth0 --pool machines
t_eq "it is the same address" "$first machines/vm" "$(records machines)"
t_eq "and the other pod's now" "${uid[b]}" "$(uid_in machines)"
delete_pod machines launcher-a
t_ok "the node of the first one speaks" w n1 machines launcher-a "${uid[a]}" release
sleep 2
t_eq "which takes nothing away" "${uid[b]}" "$(uid_in machines)"
o_curl DELETE /apis/kubevirt.io/v1/namespaces/machines/virtualmachineinstances/vm >/dev/null
delete_pod machines launcher-b
t_ok "the machine is deleted, its node speaks" w n2 machines launcher-b "${uid[b]}" release
since=$(ms)
came_back "virtual machine deleted" machines 0 "$since"

echo "# one that is foreseen"
pool foreseen 10.6.7 5
machine foreseen vm
uid[a]=$(machine_pod foreseen launcher-a n1 vm net)
t_wait 30 "it has an address before anybody asks" has_address foreseen vm
t_ok "and its node finds it" w n1 foreseen launcher-a "${uid[a]}" get
uid[b]=$(machine_pod foreseen launcher-b n2 vm net)
sleep 2
t_eq "it migrates: nobody foresees when" "${uid[a]}" "$(uid_in foreseen)"
t_ok "the other pod asks" w n2 foreseen launcher-b "${uid[b]}" get
t_eq "and has the addresses" "${uid[b]}" "$(uid_in foreseen)"
o_end first
o_start second
o_wait_ready second
t_wait 30 "another one leads" o_leads second
sleep 2
t_eq "it leaves them there" "${uid[b]}" "$(uid_in foreseen)"
delete_pod foreseen launcher-a
t_ok "the node of the first one speaks" w n1 foreseen launcher-a "${uid[a]}" release
o_curl DELETE "$spider/namespaces/foreseen/spiderendpoints/vm" >/dev/null
t_wait 30 "an endpoint that somebody deletes is written again" endpoint_is_of foreseen vm "${uid[b]}"
t_ok "with the address that the machine has" holds foreseen 1
o_end second
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Addresses in a hostile cluster, on a real API server and without any webhook: pools that overlap, a pool whose status the
# server refuses to store, pods that the kubelet rejects. Each concerns its own pods only, and no address is on two living pods.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/addresses.sh

o_begin hostile --no-controllers
crd=/apis/apiextensions.k8s.io/v1/customresourcedefinitions/spiderippools.spiderpool.spidernet.io

# add_pool NAME SUBNET RANGE [MORE]: MORE are members of spec.
add_pool() {
	o_curl POST "$spider/spiderippools" "$(jq -nc --arg name "$1" --arg subnet "$2" --arg ips "$3" --argjson more "${4:-{\}}" '
		{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { $name },
		  spec: ({ ipVersion: 4, subnet: $subnet, ips: [$ips] } + $more) }')" >/dev/null
}

# add_network NAME: in namespace hostile, of the pool of that name.
add_network() {
	o_curl POST "$nads/namespaces/hostile/network-attachment-definitions" "$(jq -nc --arg name "$1" '
		{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata: { $name }, spec: { config:
		  ({ cniVersion: "0.3.1", $name, type: "macvlan", master: "eth1", ipam: { type: "spiderpool", default_ipv4_ippool: [$name] } }
		  | tojson) } }')" >/dev/null
}

# add_pod NAME NETWORK: bound to a node, restartPolicy Always.
add_pod() {
	o_curl POST /api/v1/namespaces/hostile/pods "$(jq -nc --arg name "$1" --arg network "$2" '
		{ apiVersion: "v1", kind: "Pod", metadata: { $name, annotations: { "k8s.v1.cni.cncf.io/networks": $network } },
		  spec: { nodeName: "node-00000", automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] } }')" >/dev/null
}

address_of() {
	o_curl GET "$spider/namespaces/hostile/spiderendpoints/$1" | jq -re '.status.current.ips[0].ipv4'
}

has_none() {
	! address_of "$1" >/dev/null 2>&1
}

has_event() {
	o_curl GET /api/v1/namespaces/hostile/events |
		jq -e --arg pod "$1" --arg reason "$2" '.items | any(.involvedObject.name == $pod and .reason == $reason)' >/dev/null
}

pool_is() {
	o_condition "$spider/spiderippools/$1" "$2" "$3"
}

# No two living pods have one address.
all_differ() {
	[[ -z $(endpoints | cut -d ' ' -f 4 | sort | uniq -d) ]]
}

limit_of_vlan() {
	o_curl GET "$crd" | jq "$1" >"$tmp/crd"
	o_curl PUT "$crd" "$(<"$tmp/crd")" >/dev/null
}

vlan_path='.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.vlan'

is_lax() {
	add_pool aaa 10.40.0.0/24 10.40.0.10-10.40.0.50 '{"vlan": 5000}'
}

is_strict() {
	! add_pool probe 10.49.0.0/24 10.49.0.1 '{"vlan": 5000}' && return
	o_curl DELETE "$spider/spiderippools/probe" >/dev/null
	return 1
}

# --- a pool that was stored under an older, laxer schema: its status is refused for good --------------------------------------

k create namespace hostile >/dev/null
k create -f - <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-00000"}}' >/dev/null
limit_of_vlan "del($vlan_path.maximum)"
t_wait 30 "a pool that the present schema refuses is there" is_lax
limit_of_vlan "$vlan_path.maximum = 4094"
t_wait 30 "the schema is strict again" is_strict
add_pool zzz 10.41.0.0/24 10.41.0.10-10.41.0.250
add_network aaa
add_network zzz
o_start op
o_wait_ready op
t_wait 15 "it leads" o_leads op

t_ok "a pod wants the pool that cannot be written" add_pod of-aaa aaa
for n in 0 1 2 3 4; do
	t_ok "a pod of the pool behind it in the alphabet" add_pod "of-zzz-$n" zzz
done
for n in 0 1 2 3 4; do
	t_wait 30 "has an address" address_of "of-zzz-$n"
done
t_wait 30 "the pod of the refused pool has an event that says so" has_event of-aaa LedgerNotWritten
t_ok "and no address" has_none of-aaa
t_wait 10 "the pool has an event" k get events -A --field-selector reason=ObjectNotWritten,involvedObject.name=aaa -o name
t_eq "the gauge counts it" 1 "$(o_metric op orbweaver_ippools_unwritten)"
t_ok "the operator stays ready" o_ready op
o_curl PATCH "$spider/spiderippools/aaa" '{"spec": {"vlan": 40}}' >/dev/null
t_wait 90 "with the field corrected the pod has its address" address_of of-aaa
t_eq "the gauge counts none" 0 "$(o_metric op orbweaver_ippools_unwritten)"

# --- docs/conditions.md: Ready is "pods can get addresses" ---------------------------------------------------------------------

add_pool ov-a 10.6.0.0/24 10.6.0.10
sleep 1 # creation times have seconds
add_pool ov-b 10.6.0.0/24 10.6.0.10
add_pool wide 10.6.0.0/16 10.6.0.10
add_pool gw 10.7.0.0/24 10.7.0.1-10.7.0.2 '{"gateway": "10.7.0.1"}'
add_pool badgw 10.8.0.0/24 10.8.0.10 '{"gateway": "192.168.9.9"}'
for name in ov-a ov-b wide gw badgw; do
	add_network "$name"
	t_ok "a pod of pool $name" add_pod "of-$name" "$name"
done
t_wait 20 "the oldest of the pools that overlap serves" address_of of-ov-a
t_wait 20 "the gateway's address is left out" address_of of-gw
t_eq "the next one is given" 10.7.0.2/24 "$(address_of of-gw)"
t_wait 20 "pool ov-b is not Ready" pool_is ov-b False AddressOverlap
t_wait 20 "its pod is told why" has_event of-ov-b AddressOverlap
t_wait 20 "the pod of the wider pool, too" has_event of-wide SubnetOverlap
t_wait 20 "and that of the pool with a gateway elsewhere" has_event of-badgw BadGateway
for name in ov-b wide badgw; do
	t_ok "pod of-$name has no address" has_none "of-$name"
done
t_ok "no address is on two pods" all_differ

# --- pods that the kubelet rejects, of a Deployment (restartPolicy Always) ------------------------------------------------------

add_pool few 10.50.0.0/24 10.50.0.10
add_network few
t_ok "a pod" add_pod rejected few
t_wait 20 "has the pool's only address" address_of rejected
t_ok "the kubelet rejects it" o_curl PATCH /api/v1/namespaces/hostile/pods/rejected/status \
	'{"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}'
t_ok "its successor" add_pod successor few
uid=$(o_curl GET /api/v1/namespaces/hostile/pods/rejected | jq -r .metadata.uid)
t_ok "the node's agent says that nothing of it is left" o_curl PATCH "$spider/namespaces/hostile/spiderendpoints/rejected" \
	"{\"metadata\": {\"annotations\": {\"orbweaver.io/down\": \"$uid\"}}}"
t_wait 60 "the successor has the address" address_of successor
t_ok "no address is on two pods" all_differ

# --- a tenant who may write SpiderEndpoints of one namespace ---------------------------------------------------------------------

# record_of POOL ADDRESS: the pod that has it.
record_of() {
	o_curl GET "$spider/spiderippools/$1" | jq -re --arg address "$2" '.status.allocatedIPs // "{}" | fromjson | .[$address].pod // ""'
}

add_pool shared 10.20.0.0/24 10.20.0.10
add_network shared
t_ok "a pod" add_pod victim shared
t_wait 20 "has the pool's only address" address_of victim
t_ok "another pod waits for it" add_pod waits shared
victim=$(o_curl GET /api/v1/namespaces/hostile/pods/victim | jq -r .metadata.uid)
k create namespace tenant >/dev/null
t_ok "an endpoint elsewhere says that the address is free" o_curl POST "$spider/namespaces/tenant/spiderendpoints" "$(jq -nc --arg uid "$victim" '
	{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderEndpoint",
	  metadata: { name: "ghost", annotations: { "orbweaver.io/down": $uid } },
	  status: { current: { uid: $uid, node: "node-00000", ips: [{ interface: "net1", vlan: 0, ipv4: "10.20.0.10/24", ipv4Pool: "shared" }] },
	            ownerControllerType: "Pod", ownerControllerName: "ghost" } }')"
gone() {
	! o_curl GET "$spider/namespaces/tenant/spiderendpoints/ghost" >/dev/null 2>&1
}
t_wait 60 "it is looked at" gone
t_eq "the victim keeps its record" hostile/victim "$(record_of shared 10.20.0.10)"
t_ok "the other pod has no address" has_none waits

# --- a pool that is deleted by force and comes back -------------------------------------------------------------------------------

add_pool again 10.30.0.0/24 10.30.0.10-10.30.0.50
add_network again
t_ok "a pod" add_pod early again
t_wait 20 "has an address" address_of early
early=$(address_of early)
t_ok "the pool is deleted" o_curl DELETE "$spider/spiderippools/again"
o_curl PATCH "$spider/spiderippools/again" '{"metadata": {"finalizers": null}}' >/dev/null 2>&1 || true
pool_is_gone() {
	! o_curl GET "$spider/spiderippools/again" >/dev/null 2>&1
}
t_wait 20 "its finalizer taken off" pool_is_gone
add_pool again 10.30.0.0/24 10.30.0.10-10.30.0.50
t_ok "another pod" add_pod late again
t_wait 60 "has an address" address_of late
is_recorded() {
	[[ $(record_of again "${early%/*}") == hostile/early ]]
}
t_wait 60 "the first pod's record is there again" is_recorded
t_ok "no address is on two pods" all_differ

# --- a pool that is deleted by force and comes back under another name, made before that or afterwards -----------------------------

# force_away NAME: delete a pool in use.
force_away() {
	o_curl DELETE "$spider/spiderippools/$1" >/dev/null
	o_curl PATCH "$spider/spiderippools/$1" '{"metadata": {"finalizers": null}}' >/dev/null 2>&1 || true
}

is_recorded_for() {
	[[ $(record_of "$1" "$2") == "hostile/$3" ]]
}

names_pool() {
	[[ $(o_curl GET "$spider/namespaces/hostile/spiderendpoints/$1" | jq -r '.status.current.ips[0].ipv4Pool') == "$2" ]]
}

for order in before after; do
	subnet=10.3$([[ $order == before ]] && echo 3 || echo 4).0
	add_pool "old-$order" "$subnet.0/24" "$subnet.10-$subnet.50"
	add_network "old-$order"
	add_network "new-$order"
	t_ok "a pod" add_pod "early-$order" "old-$order"
	t_wait 20 "has an address" address_of "early-$order"
	early=$(address_of "early-$order")
	sleep 1 # creation times have seconds
	[[ $order == after ]] || add_pool "new-$order" "$subnet.0/24" "$subnet.10-$subnet.50"
	t_ok "its pool is deleted by force" force_away "old-$order"
	[[ $order == before ]] || add_pool "new-$order" "$subnet.0/24" "$subnet.10-$subnet.50"
	t_ok "another pod wants the pool that has its addresses now" add_pod "late-$order" "new-$order"
	t_wait 60 "has an address" address_of "late-$order"
	t_ok "the first pod's is recorded there" is_recorded_for "new-$order" "${early%/*}" "early-$order"
	t_wait 20 "its endpoint says so" names_pool "early-$order" "new-$order"
done
t_ok "no address is on two pods" all_differ

# --- a pod whose annotation cannot be read any more when records are lost ---------------------------------------------------------

add_pool edited 10.35.0.0/24 10.35.0.10-10.35.0.50
add_network edited
t_ok "a pod" add_pod keeps edited
t_wait 20 "has an address" address_of keeps
keeps=$(address_of keeps)
t_ok "its user edits an annotation" o_curl PATCH /api/v1/namespaces/hostile/pods/keeps \
	'{"metadata": {"annotations": {"ipam.spidernet.io/ippool": "{\"ipv4\": [\"nowhere\"]}"}}}'
t_ok "the pool's records are lost" o_curl PATCH "$spider/spiderippools/edited/status" '{"status": null}'
t_ok "another pod" add_pod comes edited
t_wait 60 "has an address" address_of comes
t_ok "the first pod's record is there again" is_recorded_for edited "${keeps%/*}" keeps
t_ok "no address is on two pods" all_differ

# --- docs/ipam.md: "A pod that is being deleted has not ended while the kubelet reports a running container" ----------------------

# kubelet_says STATE: of the container of pod ends.
kubelet_says() {
	o_curl PATCH /api/v1/namespaces/hostile/pods/ends/status "$(jq -nc --argjson state "$1" '
		{ status: { phase: "Running", containerStatuses: [{ name: "c", image: "none", imageID: "", ready: false, restartCount: 0, $state }] } }')"
}

add_pool slow 10.36.0.0/24 10.36.0.10
add_network slow
t_ok "a pod" add_pod ends slow
t_wait 20 "has the pool's only address" address_of ends
t_ok "its container runs" kubelet_says '{"running": {"startedAt": "2026-01-01T00:00:00Z"}}'
uid=$(o_curl GET /api/v1/namespaces/hostile/pods/ends | jq -r .metadata.uid)
t_ok "it is deleted, with a grace period" k delete pod -n hostile ends --grace-period 3600 --wait=false
t_ok "its user writes that nothing is left of it" o_curl PATCH "$spider/namespaces/hostile/spiderendpoints/ends" \
	"{\"metadata\": {\"annotations\": {\"orbweaver.io/down\": \"$uid\"}}}"
t_ok "another pod waits for it" add_pod follows slow
t_wait 30 "is told" has_event follows PoolExhausted
sleep 6 # LIFECYCLE_ENDING_MS
t_ok "and has no address" has_none follows
t_eq "which is still the first pod's" hostile/ends "$(record_of slow 10.36.0.10)"
t_ok "the container ends" kubelet_says '{"terminated": {"exitCode": 0}}'
t_wait 30 "now the other pod has it" address_of follows

# --- docs/ipam.md: "for at most as many ended pods as its ResourceQuota allows pods" ----------------------------------------------

# add_set_pod NAME: as a user can create it, who names the StatefulSet web as its owner.
add_set_pod() {
	o_curl POST /api/v1/namespaces/hostile/pods "$(jq -nc --arg name "$1" '
		{ apiVersion: "v1", kind: "Pod", metadata: { $name, annotations: { "k8s.v1.cni.cncf.io/networks": "held" },
		    ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "any", controller: true }] },
		  spec: { nodeName: "node-00000", automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] } }')" >/dev/null
}

holds() {
	[[ $(o_curl GET "$spider/spiderippools/held" | jq '.status.allocatedIPs // "{}" | fromjson | length') == "$1" ]]
}

add_pool held 10.37.0.0/24 10.37.0.10-10.37.0.50
add_network held
t_ok "a StatefulSet with more replicas than anybody runs" o_curl POST /apis/apps/v1/namespaces/hostile/statefulsets '{
	"metadata": { "name": "web" }, "spec": { "replicas": 100000, "serviceName": "s", "selector": { "matchLabels": { "a": "b" } },
	"template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "none" }] } } } }'
for n in 0 1 2; do
	t_ok "one of its pods" add_set_pod "web-$n"
	t_wait 20 "has an address" address_of "web-$n"
	uid=$(o_curl GET "/api/v1/namespaces/hostile/pods/web-$n" | jq -r .metadata.uid)
	t_ok "is deleted" o_curl DELETE "/api/v1/namespaces/hostile/pods/web-$n?gracePeriodSeconds=0"
	t_ok "its node's agent says that nothing is left" o_curl PATCH "$spider/namespaces/hostile/spiderendpoints/web-$n" \
		"{\"metadata\": {\"annotations\": {\"orbweaver.io/down\": \"$uid\"}}}"
done
sleep 2 # they are looked at
t_ok "without a quota the set keeps the addresses of all three" holds 3
t_ok "the namespace may have one pod" o_curl POST /api/v1/namespaces/hostile/resourcequotas \
	'{"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}}'
t_wait 60 "so it keeps those of one" holds 1
t_wait 10 "an event says so" k get events -n hostile --field-selector reason=AddressesNotKept -o name
t_ok "the quota goes" o_curl DELETE /api/v1/namespaces/hostile/resourcequotas/one

# --- records that are lost with the pool, of pods that run ------------------------------------------------------------------------

add_pool lost 10.32.0.0/24 10.32.0.10-10.32.0.50
add_network lost
for name in z m a; do
	t_ok "pod runs-$name" add_pod "runs-$name" lost
	t_wait 20 "has an address" address_of "runs-$name"
	t_ok "runs" o_curl PATCH "/api/v1/namespaces/hostile/pods/runs-$name/status" '{"status": {"phase": "Running"}}'
done
# Of one of them, the network-status is there.
t_ok "its status says what it has" o_curl PATCH /api/v1/namespaces/hostile/pods/runs-m "$(jq -nc --arg ip "$(address_of runs-m)" '
	{ metadata: { annotations: { "k8s.v1.cni.cncf.io/network-status": ([{ name: "hostile/lost", interface: "net1", ips: [$ip | split("/")[0]] }] | tojson) } } }')"
had=$(address_of runs-m)
o_end op
for name in z m a; do
	o_curl PATCH "$spider/namespaces/hostile/spiderendpoints/runs-$name" '{"metadata": {"finalizers": null}}' >/dev/null
	o_curl DELETE "$spider/namespaces/hostile/spiderendpoints/runs-$name" >/dev/null
done
t_ok "the pool's records are lost" o_curl PATCH "$spider/spiderippools/lost/status" '{"status": null}'
o_start op
t_wait 60 "the record of that one is made again" address_of runs-m
t_eq "as it was" "$had" "$(address_of runs-m)"
for name in z a; do
	t_wait 60 "pod runs-$name is told that nothing knows what it has" has_event "runs-$name" AddressUnknown
	t_ok "no address is made up for it" has_none "runs-$name"
done
o_end op
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The operator on a real API server, with what users really write: every SpiderIPPool, SpiderMultusConfig and
# SriovNetworkNodePolicy of crds/samples becomes Ready once nodes with matching NICs exist, and one object of each kind and plugin
# in conformance/spider.json gives what was recorded there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

ours='["SpiderIPPool", "SpiderMultusConfig", "SriovNetworkNodePolicy"]'

# --- the samples --------------------------------------------------------------------------------------------------

sample_has_ours() {
	k create --dry-run=client -f "$1" -o json | jq -s -e --argjson ours "$ours" \
		'any(.[] | .items // [.] | .[]; .kind | IN($ours[]))' >/dev/null
}

# Each object of ours in the file has Ready=True for its present generation.
sample_is_ready() {
	k get -f "$1" -o json | jq -re --argjson ours "$ours" '[.items // [.] | .[] | select(.kind | IN($ours[]))] |
		length > 0 and all(.[]; .metadata.generation as $now | .metadata.name as $name |
			[.status.conditions // [] | .[] | select(.type == "Ready")][0] |
			.status == "True" and .observedGeneration == $now or ([$name, .] | debug | false))' >/dev/null
}

# The policy waits, and says for what.
policy_waits() {
	k get sriovnetworknodepolicies -A -o json | jq -e '.items | length == 1 and all(.[]; .status.conditions // [] |
		any(.[]; .type == "Ready" and .status == "False" and .reason != "" and (.message | test("^[^\n]+$"))))' >/dev/null
}

write_inventories() {
	local n

	for n in 1 2; do
		cat >"$tmp/worker-$n.json" <<END
{ "name": "worker-$n", "rdmaMode": "shared", "interfaces": [
	{ "pciAddress": "0000:af:00.0", "name": "ens6f0np0", "mac": "02:00:00:0$n:00:00", "vendor": "15b3",
	  "deviceID": "1017", "vfDeviceID": "1018", "driver": "mlx5_core", "mtu": 1500, "totalvfs": 16,
	  "linkType": "ETH", "linkSpeed": "100000 Mb/s" },
	{ "pciAddress": "0000:b0:00.0", "name": "eth0", "mac": "02:00:00:0$n:01:00", "vendor": "8086",
	  "deviceID": "1592", "driver": "ice", "mtu": 1500, "totalvfs": 8, "linkType": "ETH", "linkSpeed": "25000 Mb/s" } ] }
END
	done
}

node_work() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$1" | jq -cS \
		'[.spec.interfaces[] | [.pciAddress, .numVfs, (.vfGroups[] | .resourceName, .vfRange)]]'
}

node_works_for() {
	node_work "$1" | grep -F "\"$2\""
}

# kubectl describe ends with the events; they come a moment after the status. The policy has had a bad time before.
described() {
	k describe -n kube-system sriovnetworknodepolicies roce-sriov >"$tmp/described" && cat "$tmp/described" &&
		grep -q 'Reason: *NodesReady' "$tmp/described" && grep -q 'Normal *NodesReady' "$tmp/described"
}

no_nad() {
	local left

	left=$(k get net-attach-def -A -o name) || return
	echo "$left"
	[[ -z $left ]]
}

# --- tenants ------------------------------------------------------------------------------------------------------

# Whoever may create objects in a namespace of his own commands no node.
create_tenants() {
	k create namespace tenant-a >/dev/null
	k create -f - >/dev/null <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: mine, namespace: tenant-a }
spec: { resourceName: mine, priority: 0, numVfs: 1, deviceType: vfio-pci, nodeSelector: {}, nicSelector: { pfNames: [ens6f0np0] } }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: { name: mine, namespace: tenant-a }
spec: { rdmaMode: exclusive }
END
}

is_not_trusted() {
	k get -n tenant-a "$1" mine -o json | jq -e '.status.conditions[] | select(.type == "Ready") | .status == "False" and
		.reason == "NamespaceNotTrusted" and (.message | test("--policy-namespaces tenant-a"))'
}

specs() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates" | jq -cS '[.items[].spec]'
}

# --- the recording ------------------------------------------------------------------------------------------------

# The longest of each kind and plugin but one that is refused on purpose; unit/reconcilers/spider replays them all.
recorded() {
	jq -c 'map(select(.accepted and .id != "pool-bad-range")) | sort_by(-(tostring | length)) |
		unique_by(.object.spec.cniType // .object.kind)[]' "$conformance/spider.json"
}

create_recorded() {
	local object path

	recorded | jq -c .object | while read -r object; do
		path=$(jq -r --arg spider "$spider" '$spider + if .kind == "SpiderIPPool" then "/spiderippools"
			else "/namespaces/\(.metadata.namespace)/spidermultusconfigs" end' <<<"$object")
		o_curl POST "$path" "$object" >/dev/null || return
	done
}

take_stock() {
	k get smc,sp,net-attach-def -A -o json | jq '.items | map({ key: "\(.kind) \(.metadata.name)", value: . }) | from_entries' \
		>"$tmp/stock"
}

# What differs from the recording.
different_results() {
	take_stock && recorded | jq -r --slurpfile stock "$tmp/stock" '
		def same($what; $got; $want): select(($got // {}) != ($want // {})) | "\($what): got \($got), want \($want)";
		. as $case | $stock[0] as $stock | $stock[.object.kind + " " + .object.metadata.name] as $got |
		same("\(.id) labels"; $got.metadata.labels; .labels),
		if .object.kind == "SpiderIPPool" then
			same("\(.id) totalIPCount"; $got.status.totalIPCount; .status.totalIPCount)
		else
			(.nads[] | $stock["NetworkAttachmentDefinition " + .name] as $nad |
				if $nad == null then "\($case.id): no NetworkAttachmentDefinition \(.name)" else
				same("\($case.id) config"; ($nad.spec.config | fromjson); .config),
				same("\($case.id) annotations"; $nad.metadata.annotations; .annotations),
				same("\($case.id) labels of the NAD"; $nad.metadata.labels; .labels) end)
		end'
}

results_are_the_recorded_ones() {
	local differences

	differences=$(different_results) || return
	echo "$differences"
	[[ -z $differences ]]
}

replay() {
	conformance=${CONFORMANCE:-tests/conformance}
	t_eq "one of each kind is recorded" "SpiderIPPool custom ib-sriov ipoib ipvlan macvlan ovs sriov vlan" \
		"$(recorded | jq -rs 'map(.object.spec.cniType // .object.kind) | join(" ")')"
	t_ok "they are taken" create_recorded
	t_wait 60 "NetworkAttachmentDefinitions, labels and counts are the recorded ones" results_are_the_recorded_ones
	t_wait 30 "nothing is left to do" o_rest
}

# --- the run ------------------------------------------------------------------------------------------------------

o_begin seeds --no-controllers
k create namespace device-manager >/dev/null
o_own_user
o_start op
o_wait_ready op

t_ok "a policy is accepted while there is no node" k apply -f crds/samples/roce-zh-sriov.yaml
t_wait 20 "it is not Ready, with a reason and a message of one line" policy_waits
write_inventories
o_nodes nodes --inventory "$tmp/worker-1.json" --inventory "$tmp/worker-2.json"
t_wait 30 "it is Ready once nodes with its NIC are there" sample_is_ready crds/samples/roce-zh-sriov.yaml
for node in worker-1 worker-2; do
	t_eq "$node is asked for the VFs" '[["0000:af:00.0",12,"mellanoxrdma","0-11"]]' "$(node_work "$node")"
done
t_wait 15 "kubectl describe shows condition and event" described

samples=0
for sample in crds/samples/*.yaml; do
	t_ok "$sample is accepted" k apply -f "$sample"
	sample_has_ours "$sample" || continue
	samples=$((samples + 1))
	t_wait 30 "all of ours in $sample is Ready" sample_is_ready "$sample"
done
t_ok "at least six samples had objects of ours ($samples)" test "$samples" -ge 6
t_wait 10 "after the other edition's policy the work item has its resource name again" node_works_for worker-1 mellanoxrdma
t_wait 30 "nothing is left to do" o_rest

before=$(specs)
t_ok "a tenant may create a policy and a pool" create_tenants
t_wait 20 "the policy says why it changes nothing" is_not_trusted sriovnetworknodepolicies
t_wait 20 "and so does the pool" is_not_trusted sriovnetworkpoolconfigs
t_wait 20 "nothing is left to do" o_rest
t_eq "the nodes are as they were" "$before" "$(specs)"
k delete -n tenant-a sriovnetworkpoolconfigs mine >/dev/null

for kind in sriovnetworknodepolicies spidermultusconfigs spiderippools; do
	k delete "$kind" -A --all >/dev/null
done
t_wait 30 "after deleting it all no NetworkAttachmentDefinition is left" \
	no_nad
replay

o_end op
t_done

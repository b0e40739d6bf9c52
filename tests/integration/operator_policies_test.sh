#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A policy and one network of each kind as the replaced SR-IOV operator was recorded handling them (conformance/policies.json,
# networks.json), on a real API server: the NodeState of the node, the NetworkAttachmentDefinition of the network, value by value.
# Policies of tenants change nothing. unit/reconcilers/sriov replays all recordings.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

conformance=${CONFORMANCE:-tests/conformance}
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates

# agrees FILE ID [OBJECT]
agrees() {
	printf '%s' "${3:-}" | "$o_programs/tests/integration/recorded" "$1" "$2"
}

# The collection of an object of ours.
path_of() {
	jq -r --arg sriov "$sriov" '"\($sriov)/namespaces/\(.metadata.namespace)/\(.kind | ascii_downcase |
		if endswith("y") then .[:-1] + "ies" else . + "s" end)"' <<<"$1"
}

# Print "NAME true" or "NAME false": does the API server, webhooks included, take it?
create() {
	local taken=true

	o_curl POST "$(path_of "$1")" "$1" >/dev/null || taken=false
	echo "$(jq -r .metadata.name <<<"$1") $taken"
}

remove() {
	o_curl DELETE "$(path_of "$1")/$(jq -r .metadata.name <<<"$1")" >/dev/null || true
}

# --- policies -----------------------------------------------------------------------------------------------------

create_node() {
	o_curl POST /api/v1/nodes "{\"metadata\": {\"name\": \"$1\", \"labels\": {\"kubernetes.io/os\": \"linux\",
		\"node-role.kubernetes.io/worker\": \"\"}}}" >/dev/null
}

# The agent's part: report the recorded interfaces.
report_inventory() {
	local state

	state=$(o_curl GET "$states/$1") &&
		o_curl PUT "$states/$1/status" "$(jq --argjson case "$2" \
			'.status = { interfaces: $case.interfaces, syncStatus: "Succeeded" }' <<<"$state")"
}

listed() {
	o_curl GET "$1" | jq -c --arg kind "$2" '.items[] | .kind = $kind'
}

# The reconciler has nothing to do for this node.
node_rests() {
	{
		listed /api/v1/nodes Node && listed "$states" SriovNetworkNodeState &&
			listed "$sriov/sriovnetworknodepolicies" SriovNetworkNodePolicy &&
			listed "$sriov/sriovnetworkpoolconfigs" SriovNetworkPoolConfig
	} | jq -s '{ items: . }' >"$tmp/objects.json" || return
	"$o_programs/tests/integration/pending" "$tmp/objects.json" "$POD_NAMESPACE" >"$tmp/pending" || (($? == 1)) || return
	! grep "^$1: " "$tmp/pending"
}

spec_is_the_recorded_one() {
	local spec

	spec=$(o_curl GET "$states/$1" | jq -ec .spec) && agrees policies.json "$2" "$spec" && node_rests "$1"
}

# --- tenants ------------------------------------------------------------------------------------------------------

# Whoever may create objects in a namespace of his own commands no node.
tenant_policy='{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkNodePolicy","metadata":{"name":"mine"},
	"spec":{"resourceName":"mine","priority":0,"numVfs":1,"deviceType":"vfio-pci","nodeSelector":{},
	"nicSelector":{"pfNames":["ens6f0np0"]}}}'
tenant_pool='{"apiVersion":"sriovnetwork.openshift.io/v1","kind":"SriovNetworkPoolConfig","metadata":{"name":"mine"},
	"spec":{"rdmaMode":"exclusive"}}'

says_not_trusted() {
	o_curl GET "$sriov/namespaces/tenant-a/$1/mine" | jq -e '.status.conditions[] | select(.type == "Ready") |
		.status == "False" and .reason == "NamespaceNotTrusted" and
		(.message | test("--policy-namespaces tenant-a"))'
}

spec_of_node() {
	o_curl GET "$states/$1" | jq -cS .spec
}

replay_tenant() {
	local case before policy

	case=$(jq -c '.[] | select(.id == "seed")' "$conformance/policies.json")
	create_node tenant-node
	t_eq "a recorded policy is taken" "roce-sriov true" "$(create "$(jq -c '.policies[0]' <<<"$case")")"
	t_wait 20 "the tenants' node is inventoried" report_inventory tenant-node "$case"
	t_wait 20 "its NodeState is the administrators'" spec_is_the_recorded_one tenant-node seed
	before=$(spec_of_node tenant-node)
	k create namespace tenant-a >/dev/null
	o_curl POST "$sriov/namespaces/tenant-a/sriovnetworknodepolicies" "$tenant_policy" >/dev/null
	o_curl POST "$sriov/namespaces/tenant-a/sriovnetworkpoolconfigs" "$tenant_pool" >/dev/null
	t_wait 20 "a tenant's policy says why it changes nothing" says_not_trusted sriovnetworknodepolicies
	t_wait 20 "and so does a tenant's pool" says_not_trusted sriovnetworkpoolconfigs
	t_wait 20 "nothing is left to do" node_rests tenant-node
	t_eq "the node is as it was" "$before" "$(spec_of_node tenant-node)"
	jq -c '.policies[]' <<<"$case" | while read -r policy; do remove "$policy"; done
	k delete namespace tenant-a --wait=false >/dev/null
	o_curl DELETE /api/v1/nodes/tenant-node >/dev/null
	o_curl DELETE "$states/tenant-node" >/dev/null || true
}

# --- networks -----------------------------------------------------------------------------------------------------

# The operator has said what it thinks of the present version: Ready is True or False. Print which.
verdict() {
	o_curl GET "$1" | jq -re '.metadata.generation as $now | .status.conditions // [] | .[] |
		select(.type == "Ready" and .observedGeneration == $now).status | select(. != "Unknown")'
}

nads_named() {
	o_curl GET "$nads/network-attachment-definitions" | jq -c --arg name "$1" '.items[] | select(.metadata.name == $name)'
}

no_nad_named() {
	local left

	left=$(nads_named "$1") && echo "$left" && [[ -z $left ]]
}

replay_network() {
	local case=$1 id object name path

	id=$(jq -r .id <<<"$case")
	object=$(jq -c .object <<<"$case")
	name=$(jq -r .metadata.name <<<"$object")
	path=$(path_of "$object")/$name
	t_eq "$id: it is taken" "$name true" "$(create "$object")"
	t_wait 20 "$id: the operator says what it thinks" verdict "$path"
	t_ok "$id: its NetworkAttachmentDefinition is the recorded one" agrees networks.json "$id" "$(nads_named "$name")"
	remove "$object"
	t_wait 20 "$id: nothing is left of it" no_nad_named "$name"
}

# The longest of each kind: unit/reconcilers/sriov replays them all.
replay_networks() {
	local case

	while read -r case <&3; do
		replay_network "$case"
	done 3< <(jq -c 'sort_by(-(tostring | length)) | unique_by(.object.kind)[]' "$conformance/networks.json")
}

# Upstream has no webhook for networks: what ours would refuse at once was recorded as stored, with nothing made of it.
no_webhooks() {
	[[ -z $(k get validatingwebhookconfigurations -o name) ]]
}

# --- the run ------------------------------------------------------------------------------------------------------

t_ok "recordings of policies" test -f "$conformance/policies.json"
t_ok "recordings of networks" test -f "$conformance/networks.json"
t_need
o_begin policies --no-controllers
o_own_user webhook
k create namespace tgt >/dev/null
port=$(o_free_port)
o_start op --resource-prefix openshift.io --webhook-addr "127.0.0.1:$port" --webhook-url "https://127.0.0.1:$port"
o_wait_ready op
t_wait 20 "the API server asks the operator" \
	o_curl GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/orbweaver-validating
replay_tenant
t_ok "it was asked" test "$(o_metric op orbweaver_admission_requests_total 'path="/validate"')" -gt 0
o_end op
o_start without-webhooks --resource-prefix openshift.io
o_wait_ready without-webhooks
t_wait 20 "the API server asks nobody any more" no_webhooks
replay_networks
o_end without-webhooks
t_done

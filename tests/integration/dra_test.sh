#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Devices given by claims, on a node made of files with a real API server: a server without ResourceSlices and without rights to
# them, slices that appear, change, are put right and go, a claim from the API server to the CDI file, and the way back to the
# device plugin. The kinds of resource.k8s.io are stand-ins (resource_crds.yaml), the kubelet's half is played (tests/fakes).
# shellcheck disable=SC2016 # jq expands it; functions that run as COMMAND of a check look unreachable
set -euo pipefail

((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

slices=/apis/resource.k8s.io/v1/resourceslices
claims=/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims
state=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1
events=/api/v1/namespaces/$POD_NAMESPACE/events

told() {
	o_curl GET "$events" | jq -e --arg reason "$1" 'any(.items[]; .reason == $reason)'
}

# Names of the devices in slices of the node, those with a taint with "!".
devices() {
	o_curl GET "$slices" | jq -r '[.items[] | select(.spec.nodeName == "n1") | .spec.devices[] |
		.name + (if .taints then "!" else "" end)] | join(" ")'
}

has_devices() {
	local now

	now=$(devices)
	[[ $now == "$1" ]] && return
	echo "$now"
	o_curl GET "$state" | jq -c '.status | .conditions, .resources'
	return 1
}

# The same, well or not: after a kill they are given their settings anew, see below.
has_names() {
	local now

	now=$(devices)
	[[ ${now//!/} == "$1" ]] || { echo "$now"; return 1; }
}

# JQ of the only slice.
slice() {
	o_curl GET "$slices/n1-dra.orbweaver.io-0" | jq -r "$1"
}

generation_is_above() {
	(($(slice .spec.pool.generation) > $1))
}

# Healthy devices of the device plugin; nothing when the resource is not offered there.
healthy() {
	o_curl GET "$state" | jq -r '.status.resources // [] | .[] | select(.name == "spidernet.io/fast") | .healthy'
}

plugin_has() {
	[[ $(healthy) == "$1" ]]
}

annotate() {
	o_curl PATCH /api/v1/nodes/n1 "{\"metadata\": {\"annotations\": {\"orbweaver.io/dra\": $1}}}" >/dev/null
}

kubelet() {
	"$o_programs/tests/dra-kubelet" "$root/kubelet/plugins_registry" "$@"
}

kubelet_finds() {
	kubelet "$@" >/dev/null
}

# A claim that a scheduler has given this device: prints its uid.
claim() {
	o_curl POST "$claims" "$(jq -n --arg name "$1" --arg device "$2" '{apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim",
		metadata: {name: $name}, status: {reservedFor: [{resource: "pods", name: "train-7", uid: "1"}], allocation: {devices: {
		results: [{driver: "dra.orbweaver.io", request: "vf", pool: "n1", device: $device}]}}}}')" | jq -r .metadata.uid
}

o_begin dra --no-controllers
o_agent_user manifests/overlays/dra/rbac.yaml
k create namespace ml >/dev/null
o_curl POST /api/v1/nodes '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}' >/dev/null
o_curl POST "${state%/n1}" '{"apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": {"name": "n1"},
	"spec": {"interfaces": [{"pciAddress": "0000:10:00.0", "name": "ens0f0np0", "numVfs": 3, "vfGroups": [{"resourceName": "fast",
	"deviceType": "netdevice", "vfRange": "0-2", "isRdma": true, "policyName": "fast"}]}]}}' >/dev/null

# --- without the kind, and without rights -------------------------------------------------------------------------------------
annotate '"spidernet.io/fast"'
o_spawn agent "$o_programs/tests/counters-node" 1 3 1 --node n1 --kubeconfig "$agent_kubeconfig" \
	--metrics-addr 127.0.0.1:0 --profile devices --dra
t_wait 30 "a server without ResourceSlices is told" told SlicesNotServed
t_wait 30 "RDMA devices in mode exclusive cannot be given by claims" told ClaimsNotPossible
t_wait 30 "they stay with the device plugin" plugin_has 3
# The first list is a 404 before the kind is there, and comes again a minute later.
o_kill agent TERM
o_reap agent
k apply -f tests/integration/resource_crds.yaml >/dev/null
t_wait 60 "the kinds of resource.k8s.io are served" o_curl GET "$slices"
k apply -f manifests/overlays/dra/device-class.yaml >/dev/null
k patch clusterrole orbweaver-agent-dra --type json -p '[{"op": "replace", "path": "/rules/0/verbs", "value": ["list", "watch"]}]' >/dev/null
o_spawn agent "$o_programs/tests/counters-node" --shared 1 3 1 --node n1 --kubeconfig "$agent_kubeconfig" \
	--metrics-addr 127.0.0.1:0 --profile devices --dra
t_wait 30 "an API server that refuses slices is told" told SlicesNotWritten
k apply -f manifests/overlays/dra/rbac.yaml >/dev/null

# --- slices -------------------------------------------------------------------------------------------------------------------
t_wait 90 "the VFs that no pod has by the device plugin are published" has_devices "0000-11-00-1 0000-11-00-2"
t_wait 30 "there the device plugin has no healthy one any more, for the sake of the pod that has one" plugin_has 0
t_eq "of which none is wanted any more" '[0,3]' "$(o_curl GET "$state" |
	jq -c '.status.resources[] | select(.name == "spidernet.io/fast") | [.wanted, .offered]')"
read -r pid root <"$tmp/agent.out"
t_eq "with pool, owner and label" '["n1","n1",1,"Node","n1"]' "$(slice '[.spec.nodeName, .spec.pool.name, .spec.pool.resourceSliceCount,
	.metadata.ownerReferences[0].kind, .metadata.labels["orbweaver.io/node"]] | tojson')"
t_eq "with what a scheduler asks for" '["0000:11:00.1","ens0f0np0","ether","spidernet.io/fast",true]' \
	"$(slice '.spec.devices[0].attributes | [.pciAddress.string, .PFName.string, .linkType.string, .resourceName.string, .rdmaCapable.bool] | tojson')"
before=$(slice .spec.pool.generation)
o_curl PATCH "$slices/n1-dra.orbweaver.io-0" '{"spec": {"devices": []}}' >/dev/null
t_wait 30 "a slice that somebody changes is put right" has_devices "0000-11-00-1 0000-11-00-2"
t_ok "as a new generation" generation_is_above "$before"
o_curl DELETE "$slices/n1-dra.orbweaver.io-0" >/dev/null
t_wait 30 "one that somebody removes comes back" has_devices "0000-11-00-1 0000-11-00-2"

# --- a claim ------------------------------------------------------------------------------------------------------------------
uid=$(claim c 0000-11-00-1)
answer="{\"$uid\":{\"devices\":[{\"cdi\":[\"dra.orbweaver.io/claim=$uid-0\"],\"device\":\"0000-11-00-1\",\"pool\":\"n1\",\"request\":\"vf\"}]}}"
t_wait 30 "the kubelet finds the driver" kubelet_finds prepare v1 ml c "$uid"
t_eq "the claim is prepared" "$answer" "$(kubelet prepare v1 ml c "$uid")"
cdi=$root/var/run/cdi/dra.orbweaver.io-claim-$uid.json
t_eq "a container gets the files and variables of the device plugin" \
	'["/dev/infiniband/rdma_cm","PCIDEVICE_SPIDERNET_IO_FAST=0000:11:00.1"]' \
	"$(jq -c '.devices[0].containerEdits | [.deviceNodes[0].path, .env[0]]' "$cdi")"
t_ok "verbs among them" jq -e 'any(.devices[0].containerEdits.deviceNodes[]; .path | startswith("/dev/infiniband/uverbs"))' "$cdi"
t_ok "what is prepared is on the disk" jq -e --arg uid "$uid" '.claims[$uid].devices[0].id == "0000:11:00.1"' \
	"$root/var/lib/orbweaver/dra/claims.json"
other=$(claim d 0000-11-00-1)
t_ok "a second claim does not get the device" grep -q DeviceTaken <(kubelet prepare v1 ml d "$other")
t_ok "nor does one whose device a pod has by the device plugin" grep -q UnknownDevice \
	<(kubelet prepare v1 ml e "$(claim e 0000-11-00-0)")
t_ok "a claim that is another one by now is refused" grep -q BadClaim <(kubelet prepare v1beta1 ml d 12345)

# --- what ends, and begins again ------------------------------------------------------------------------------------------------
object=$(slice .metadata.uid)
agent_pid=$(pgrep -P "$pid" -x ow-agent)
kill -KILL "$agent_pid"
t_eq "an agent that is killed changes nothing" "$answer" "$(kubelet prepare v1 ml c "$uid")"
rm "$cdi"
kill -KILL "$(pgrep -P "$pid" -x ow-kubeletd)"
comes_back() {
	[[ -e $cdi && $(kubelet prepare v1 ml c "$uid") == "$answer" ]]
}
t_wait 60 "kubeletd that is killed makes the file anew, and answers as before" comes_back
t_wait 60 "the agent is there again" o_ready agent
# Which devices are in it is not compared: workers that begin anew know a kernel without the settings of VFs
# (cli/simulate/host/host_tree.h), and the free one is withdrawn while it is given them again.
t_eq "nobody has taken the slice away meanwhile" "$object" "$(slice .metadata.uid)"

# --- back to the device plugin --------------------------------------------------------------------------------------------------
annotate null
t_wait 30 "without the annotation no slice is left" has_devices ""
t_wait 30 "the device plugin has what no claim has" plugin_has 2
t_eq "the claim is as it was" "$answer" "$(kubelet prepare v1 ml c "$uid")"
t_eq "and ends" "{\"$uid\":{}}" "$(kubelet unprepare v1 ml c "$uid")"
t_fails "its file has gone" test -e "$cdi"
t_wait 30 "then the device plugin has it, too" plugin_has 3
annotate '"spidernet.io/fast"'
t_wait 90 "and on the way to claims again" has_names "0000-11-00-1 0000-11-00-2"
: >"$tmp/agent.out"
o_end agent
t_done

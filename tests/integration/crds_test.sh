#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The schemas of crds/ on a real API server: they install over looser ones without losing objects,
# accept the samples and what upstream was seen to accept, refuse what is malformed with the name of
# the field, and say the same defaults as upstream.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh

cluster=crds-$$
tmp=$(mktemp -d)
trap 'hack/cluster down "$cluster" >/dev/null || true; rm -rf "$tmp"' EXIT

k() {
	"$kubectl" "$@"
}

# For questions whose good answer is empty: they succeed and print nothing.
nothing() {
	local said

	said=$("$@") || return
	[[ -z $said ]] || { echo "$said"; return 1; }
}

spider=/apis/spiderpool.spidernet.io/v2beta1
sriov=/apis/sriovnetwork.openshift.io/v1

# --- what was there before ------------------------------------------------------------------------

# loose_crd KIND PLURAL GROUP VERSION SCOPE SUBRESOURCES: a definition that takes any spec.
loose_crd() {
	cat <<END
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: $2.$3
spec:
  group: $3
  scope: $5
  names: { kind: $1, plural: $2, singular: ${1,,}, shortNames: ["old${2:0:8}"] }
  versions:
  - name: $4
    served: true
    storage: true
    subresources: $6
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: { type: object, x-kubernetes-preserve-unknown-fields: true }
          status: { type: object, x-kubernetes-preserve-unknown-fields: true }
END
}

install_old() {
	{
		loose_crd SpiderMultusConfig spidermultusconfigs spiderpool.spidernet.io v2beta1 Namespaced '{}'
		loose_crd SpiderIPPool spiderippools spiderpool.spidernet.io v2beta1 Cluster '{ status: {} }'
		loose_crd SriovNetworkNodePolicy sriovnetworknodepolicies sriovnetwork.openshift.io v1 \
			Namespaced '{ status: {} }'
	} | k create -f -
	k wait --for condition=Established --timeout 30s crd --all
}

old_objects() {
	cat <<'END'
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: { name: old, namespace: default, annotations: { team: ai } }
spec:
  cniType: sriov
  enableCoordinator: false
  sriov: { resourceName: spidernet.io/old, enableRdma: true, ippools: { ipv4: [old] } }
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: { name: old, finalizers: [spiderpool.spidernet.io] }
spec: { subnet: 172.16.11.0/16, ips: [172.16.11.1-172.16.11.9], vlan: 0, ipVersion: 4 }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: old, namespace: default }
spec:
  resourceName: old
  numVfs: 4
  nodeSelector: {}
  nicSelector: { pfNames: ["ens1f0#0-3"] }
END
}

# The objects as the server gives them back, without what it keeps about them.
old_stored() {
	k get spidermultusconfigs/old spiderippools/old sriovnetworknodepolicies/old -n default -o json |
		jq '[.items[] | { kind, metadata: (.metadata | { name, uid, annotations, finalizers }), spec }]'
}

# Values of the first that are not the same in the second.
lost() {
	jq -rn --argjson before "$1" --argjson after "$2" '$before | paths(type != "object" and type != "array") as $p |
		select(getpath($p) != ($after | getpath($p))) | $p | map(tostring) | join(".")'
}

# --- questions about the definitions --------------------------------------------------------------

ours() {
	k get crd -o json
}

crd_count() {
	ours | jq '.items | length'
}

crds_with_condition() {
	ours | jq -r --arg type "$1" \
		'[.items[] | select(any(.status.conditions[]; .type == $type and .status == "True")) | .metadata.name] | length'
}

# Kinds whose status has no subresource, or whose conditions are not a map by type. What a pod has (SpiderEndpoint) is
# said about the pod and the pools.
kinds_without_conditions() {
	ours | jq -r '.items[] | select(.spec.names.kind | IN("NetworkAttachmentDefinition", "SpiderEndpoint") | not) | .spec.names.kind as $kind |
		.spec.versions[] | .schema.openAPIV3Schema.properties.status.properties as $status | select(
			.subresources.status != {} or
			$status.observedGeneration.type != "integer" or
			$status.conditions."x-kubernetes-list-type" != "map" or
			$status.conditions."x-kubernetes-list-map-keys" != ["type"]) | $kind'
}

# Properties of spec and status that kubectl explain has nothing to say about.
undescribed() {
	ours | jq -r '.items[] | .spec.names.kind as $kind | .spec.versions[].schema.openAPIV3Schema.properties |
		{ spec, status } | paths as $p | select($p[-2] == "properties" or ($p | length) == 1) |
		getpath($p) | select(. != null and ((.description // "") | length) < 3) |
		"\($kind) \($p | map(select(. != "properties")) | join("."))"'
}

schema_is_ours() {
	! k create --dry-run=server -f - <<'END' >/dev/null 2>&1
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: { name: probe, namespace: default }
spec: { cniType: weird }
END
}

# --- applying -------------------------------------------------------------------------------------

accepts() {
	k create --dry-run=server -f "$1"
}

# The object that the server would store for a spec: stored KIND GROUP/VERSION <<<SPEC
stored() {
	jq -n --arg kind "$1" --arg version "$2" --argjson spec "$(cat)" \
		'{ apiVersion: $version, kind: $kind, metadata: { name: "probe", namespace: "default" }, spec: $spec }' |
		k create --dry-run=server --validate=false -o json -f - | jq -cS .spec
}

# refuses KIND GROUP/VERSION SPEC WORD: the server, not kubectl, says no and names WORD.
refuses() {
	local said

	if said=$(stored "$1" "$2" 2>&1 <<<"$3"); then
		echo "accepted: $said"
		return 1
	fi
	echo "$said"
	[[ $said == *"$4"* ]]
}

# kubectl finds a misspelt field itself, from the schema that the server publishes.
kubectl_refuses_unknown_field() {
	local said

	if said=$(k create --dry-run=server -f - 2>&1 <<'END'
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: { name: probe, namespace: default }
spec: { cniType: macvlan, macvlan: { master: [eth0], vlanId: 3 } }
END
	); then
		return 1
	fi
	echo "$said"
	[[ $said == *'unknown field "vlanId"'* ]]
}

# put_status PATH STATUS: what the operator does.
put_status() {
	k get --raw "$1" | jq --argjson status "$2" '.status = $status' >"$tmp/object" &&
	k replace --raw "$1/status" -f "$tmp/object"
}

# condition STATUS REASON [TYPE]
condition() {
	jq -nc --arg status "$1" --arg reason "$2" --arg type "${3:-Ready}" --arg time "$(date -u +%FT%TZ)" '{ type: $type,
		status: $status, reason: $reason, message: "because", observedGeneration: 1, lastTransitionTime: $time }'
}

status_refused() {
	local said

	if said=$(put_status "$1" "$2" 2>&1); then
		return 1
	fi
	echo "$said"
	[[ $said == *"$3"* ]]
}

explains() {
	k explain "$1" | tr -s '\n ' ' ' | grep -F "$2"
}

# --- conformance ----------------------------------------------------------------------------------

# Recorded objects as one list, each once: jq filter over a file of cases.
recorded() {
	jq "[$2] | unique | { apiVersion: \"v1\", kind: \"List\", items: . }" "$conformance/$1" >"$tmp/$1" &&
	jq -e '.items | length > 0' "$tmp/$1" >/dev/null
}

accepts_recorded() {
	recorded "$1" "$2" && accepts "$tmp/$1"
}

# Each value that our schema leaves in an accepted object is the one that upstream stored. What
# upstream's webhook then changed is not the schema's business: custom loses its coordinator, the
# ranges of pool-merge are merged.
differs_from_stored() {
	recorded spider.json '.[] | select(.accepted) | .object' &&
	k create --dry-run=server -o json -f "$tmp/spider.json" | jq -s . >"$tmp/stored.json" &&
	jq -r --slurpfile got "$tmp/stored.json" '
		($got[0] | map({ key: (.kind + "/" + .metadata.name), value: .spec }) | from_entries) as $ours |
		.[] | select(.accepted) | .id as $id | .stored_spec as $theirs |
		(.object | $ours[.kind + "/" + .metadata.name]) as $mine |
		if $mine == null then "\($id): missing" else
			$mine | paths(type != "object" and type != "array") as $p |
			select($theirs | getpath($p) != ($mine | getpath($p))) |
			select(($mine.cniType == "custom" and $p == ["enableCoordinator"] or
				$id == "pool-merge" and $p[0] == "ips") | not) |
			"\($id): \($p | map(tostring) | join(".")) is \($mine | getpath($p))"
		end' "$conformance/spider.json"
}

# What upstream's own schema refused (its message has the form of the schema validator).
refuses_recorded_structure() {
	local n i

	jq '[.[] | select((.accepted | not) and ((.error // "") | test("in body should|Unsupported value"))) | .object]' \
		"$conformance/spider.json" >"$tmp/refused" && n=$(jq length "$tmp/refused") && ((n > 0)) || return
	for ((i = 0; i < n; i++)); do
		jq ".[$i]" "$tmp/refused" >"$tmp/one" || return
		! k create --dry-run=server --validate=false -f "$tmp/one" || return
	done
}

conformance_tests() {
	conformance=${CONFORMANCE:-tests/conformance}
	t_ok "every SpiderMultusConfig and SpiderIPPool that upstream accepted is accepted" \
		accepts_recorded spider.json '.[] | select(.accepted) | .object'
	t_ok "the pool with host bits, refused upstream, is accepted" \
		accepts_recorded spider.json '.[] | select(.id == "pool-seed2") | .object'
	t_ok "every recorded policy is accepted" \
		accepts_recorded policies.json '.[].policies[]'
	t_ok "every NodeState that came of them is accepted" \
		accepts_recorded policies.json '.[] | { apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkNodeState",
			metadata: { name: .id, namespace: "default" }, spec: .nodestate_spec }'
	t_ok "every SriovNetwork, SriovIBNetwork and OVSNetwork that upstream accepted is accepted" \
		accepts_recorded networks.json '.[] | select(.accepted) | .object'
	t_ok "defaults are those that upstream stored" nothing differs_from_stored
	t_ok "what upstream's schema refused is refused" refuses_recorded_structure
}

# --- the run --------------------------------------------------------------------------------------

hack/cluster up "$cluster" --no-controllers
kubectl=$(dirname "$(hack/cluster kubeconfig "$cluster")")/kubectl
for namespace in orbweaver-system spiderpool device-manager; do
	k create namespace "$namespace"
done

install_old
old_objects | k create -f -
before=$(old_stored)

t_ok "the definitions apply over looser ones" k apply -f crds/ -f crds/nad/
kinds=$(find crds crds/nad -maxdepth 1 -name '*.yaml' | wc -l)
t_eq "there is one file per kind" "$kinds" "$(crd_count)"
t_ok "they become established" k wait --for condition=Established --timeout 30s crd --all
t_eq "their names are accepted" "$kinds" "$(crds_with_condition NamesAccepted)"
t_eq "none is non-structural" 0 "$(crds_with_condition NonStructuralSchema)"
t_wait 30 "the new schemas are in force" schema_is_ours
t_wait 30 "the short names are served" k get smc,sp,se,sr,scc,net-attach-def -n default
t_need

t_ok "all kinds that users write have conditions" nothing kinds_without_conditions
t_ok "every field has a description" nothing undescribed

after=$(old_stored)
t_ok "stored objects have lost nothing" nothing lost "$before" "$after"
t_eq "a stored object has got defaults" '{"rdma":false,"type":"netdevice"}' "$(jq -c \
	'{ rdma: .[0].spec.sriov.rdmaIsolation, type: .[2].spec.deviceType }' <<<"$after")"
t_ok "a stored config can be changed" k patch smc/old -n default --type merge -p '{"spec":{"sriov":{"vlanID":7}}}'
t_ok "a stored policy can be changed" k label sriovnetworknodepolicies/old -n default seen=yes
t_ok "a stored config can be given a status" \
	put_status "$spider/namespaces/default/spidermultusconfigs/old" \
	"{\"conditions\":[$(condition True Rendered)],\"networkAttachmentDefinition\":\"default/old\"}"
t_ok "a stored pool can be given a status" put_status "$spider/spiderippools/old" \
	"{\"conditions\":[$(condition False SubnetUnknown)],\"totalIPCount\":9}"
t_ok "a stored pool's finalizer can be removed" k patch sp/old --type merge -p '{"metadata":{"finalizers":null}}'

for sample in crds/samples/*.yaml crds/examples/*/*.yaml; do
	# Indexed Jobs are those of Kubernetes 1.24.
	[[ $sample == */job*.yaml ]] && checks=--validate=false || checks=--validate=true
	t_ok "$sample is accepted" k apply --dry-run=server "$checks" -f "$sample"
done

SP=spiderpool.spidernet.io/v2beta1
SN=sriovnetwork.openshift.io/v1
coordinator='{"hostRuleTable":500,"mode":"auto","podRPFilter":0,"tunePodRoutes":true,"txQueueLen":0}'
t_eq "cniType is custom by default" '{"cniType":"custom","disableIPAM":false,"enableCoordinator":true}' \
	"$(stored SpiderMultusConfig $SP <<<'{}')"
t_eq "a coordinator block has upstream's defaults" "$coordinator" \
	"$(stored SpiderMultusConfig $SP <<<'{"coordinator":{}}' | jq -cS .coordinator)"
t_eq "a SpiderCoordinator has the same defaults" "$coordinator" "$(stored SpiderCoordinator $SP <<<'{}')"
t_eq "ib-sriov isolates by default" \
	'{"enableIbKubernetes":false,"linkState":"enable","rdmaIsolation":true,"resourceName":"a/b"}' \
	"$(stored SpiderMultusConfig $SP <<<'{"ibsriov":{"resourceName":"a/b"}}' | jq -cS .ibsriov)"
t_eq "legacy fields are kept" '[true,true,true,true,0]' \
	"$(stored SpiderMultusConfig $SP <<<'{"sriov":{"enableRdma":true},"macvlan":{"master":["a"],"enableRdma":true},
		"ipvlan":{"master":["a"],"enableRdma":true},"ibsriov":{"ibKubernetesEnabled":true},"coordinator":{"hostRPFilter":0}}' |
	jq -c '[.sriov.enableRdma, .macvlan.enableRdma, .ipvlan.enableRdma, .ibsriov.ibKubernetesEnabled, .coordinator.hostRPFilter]')"
t_eq "a policy has no default priority" '{"deviceType":"netdevice","nicSelector":{},"nodeSelector":{},"numVfs":0,"resourceName":"r"}' \
	"$(stored SriovNetworkNodePolicy $SN <<<'{"nicSelector":{},"nodeSelector":{},"numVfs":0,"resourceName":"r"}')"
t_eq "Orbweaver's fields of a NodeState are kept" '{"excludeTopology":true,"needVhostNet":true}' \
	"$(stored SriovNetworkNodeState $SN \
		<<<'{"interfaces":[{"pciAddress":"a","vfGroups":[{"needVhostNet":true,"excludeTopology":true}]}]}' |
	jq -cS '.interfaces[0].vfGroups[0]')"
t_eq "so are settings of a NIC" '{"cnp":{"dscp":48},"dscpToPriority":{"26":3},"pfc":[]}' \
	"$(stored SriovNetworkNodeState $SN \
		<<<'{"nicSettings":[{"pciAddress":"a","settings":{"pfc":[],"cnp":{"dscp":48},"dscpToPriority":{"26":3}}}]}' |
	jq -cS '.nicSettings[0].settings')"

policy='"nicSelector":{},"nodeSelector":{},"resourceName":"r"'
while IFS='|' read -r kind version spec word; do
	t_ok "$kind $spec is refused, naming $word" refuses "$kind" "$version" "$spec" "$word"
done <<END
SpiderMultusConfig|$SP|{"cniType":"weird"}|spec.cniType
SpiderMultusConfig|$SP|{"macvlan":{"master":["a"],"vlanID":4095}}|spec.macvlan.vlanID
SpiderMultusConfig|$SP|{"macvlan":{"master":"a"}}|spec.macvlan.master
SpiderMultusConfig|$SP|{"ipvlan":{}}|spec.ipvlan.master
SpiderMultusConfig|$SP|{"ipvlan":{"master":["a"],"bond":{"name":"b","mode":7}}}|spec.ipvlan.bond.mode
SpiderMultusConfig|$SP|{"ibsriov":{"pkey":true}}|spec.ibsriov.pkey
SpiderMultusConfig|$SP|{"ippools":["a"]}|spec.ippools
SpiderMultusConfig|$SP|{"sriov":{"enableRdma":"yes"}}|spec.sriov.enableRdma
SpiderMultusConfig|$SP|{"coordinator":{"mode":"on"}}|spec.coordinator.mode
SpiderMultusConfig|$SP|{"coordinator":{"policyRoutes":[{"dst":"10.0.0.0/8"}]}}|spec.coordinator.policyRoutes.gw
SpiderIPPool|$SP|{"ips":["10.0.0.1"]}|spec.subnet
SpiderIPPool|$SP|{"subnet":"10.0.0.0/8","ipVersion":"four"}|spec.ipVersion
SpiderIPPool|$SP|{"subnet":"10.0.0.0/8","ipVersion":5}|spec.ipVersion
SpiderIPPool|$SP|{"subnet":"10.0.0.0/8","multusName":"a/b"}|spec.multusName
SpiderIPPool|$SP|{"subnet":"10.0.0.0/8","routes":[{"dst":"10.0.0.0/8","via":"10.0.0.1"}]}|spec.routes
SpiderReservedIP|$SP|{"ipVersion":5}|spec.ipVersion
SpiderCoordinator|$SP|{"podCIDRType":"flannel"}|spec.podCIDRType
SpiderCoordinator|$SP|{"vethMTU":0}|spec.vethMTU
SriovNetworkNodePolicy|$SN|{"resourceName":"r"}|spec.numVfs
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":-1}|spec.numVfs
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":"4"}|spec.numVfs
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":1,"priority":100}|spec.priority
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":1,"mtu":0}|spec.mtu
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":1,"deviceType":"uio"}|spec.deviceType
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":1,"linkType":"roce"}|spec.linkType
SriovNetworkNodePolicy|$SN|{$policy,"numVfs":1,"isRdma":"true"}|spec.isRdma
SriovNetworkNodeState|$SN|{"interfaces":[{"numVfs":1}]}|spec.interfaces.pciAddress
SriovNetworkNodeState|$SN|{"system":{"rdmaMode":"both"}}|spec.system.rdmaMode
SriovNetworkPoolConfig|$SN|{"rdmaMode":"both"}|spec.rdmaMode
SriovNetworkPoolConfig|$SN|{"maxUnavailable":true}|spec.maxUnavailable
SriovNetworkPoolConfig|$SN|{"rails":[""]}|spec.rails
SriovNetworkPoolConfig|$SN|{"rails":"ens1f0np0"}|spec.rails
SriovNetworkPoolConfig|$SN|{"roce":{"profile":"fast"}}|spec.roce.profile
SriovNetworkPoolConfig|$SN|{"roce":{"pfc":[8]}}|spec.roce.pfc
SriovNetworkPoolConfig|$SN|{"roce":{"dscpToPriority":{"26":9}}}|spec.roce.dscpToPriority
SriovNetworkPoolConfig|$SN|{"roce":{"trafficClasses":[{"bandwidth":50}]}}|spec.roce.trafficClasses
SriovNetworkPoolConfig|$SN|{"roce":{"buffers":{"sizes":[1],"priorities":[0]}}}|spec.roce.buffers
SriovNetworkPoolConfig|$SN|{"roce":{"maxReadRequest":100}}|spec.roce.maxReadRequest
SriovNetworkNodeState|$SN|{"nicSettings":[{"pciAddress":"a"}]}|spec.nicSettings.settings
SriovNetwork|$SN|{"resourceName":"r","vlan":4095}|spec.vlan
SriovNetwork|$SN|{"resourceName":"r","trust":"yes"}|spec.trust
SriovIBNetwork|$SN|{"resourceName":"r","linkState":"up"}|spec.linkState
OVSNetwork|$SN|{"resourceName":"r","mtu":-1}|spec.mtu
NetworkAttachmentDefinition|k8s.cni.cncf.io/v1|{"config":{"type":"macvlan"}}|spec.config
END
t_ok "kubectl names a misspelt field" kubectl_refuses_unknown_field

t_ok "kubectl explain knows a deep field" explains smc.spec.sriov.enableRdma "the same as rdmaIsolation"
t_ok "kubectl explain knows Orbweaver's own" \
	explains sriovnetworknodestates.spec.interfaces.vfGroups.needVhostNet /dev/vhost-net

path=$sriov/namespaces/default/sriovnetworknodepolicies/old
counts='"matchedNodes":2,"readyNodes":1,"wantedVfs":8,"presentVfs":4'
t_ok "a policy takes a full status" put_status "$path" \
	"{\"observedGeneration\":1,$counts,\"conditions\":[$(condition False NodesBusy)],\"explanation\":[\"n1: no PF\"]}"
t_eq "kubectl get answers the first question" "old old 2 1 4 8 False NodesBusy" \
	"$(k get sriovnetworknodepolicies old -n default --no-headers | awk '{ print $1, $2, $3, $4, $5, $6, $7, $8 }')"
k create -f - <<END
{ "apiVersion": "$SN", "kind": "SriovNetworkNodeState", "metadata": { "name": "n1", "namespace": "default" } }
END
t_ok "a NodeState takes a full status" put_status "$sriov/namespaces/default/sriovnetworknodestates/n1" \
	"{\"syncStatus\":\"InProgress\",\"presentVfs\":4,\"wantedVfs\":8,\"system\":{\"rdmaMode\":\"exclusive\"},
	\"conditions\":[$(condition False Working),$(condition True FirmwareChanged RebootRequired)]}"
t_eq "kubectl get shows whether a node is in sync" "n1 InProgress 4 8 exclusive True" \
	"$(k get sriovnetworknodestates n1 -n default --no-headers | awk '{ print $1, $2, $3, $4, $5, $6 }')"
t_ok "a stored pool keeps the addresses that rest" put_status "$spider/spiderippools/old" \
	"{\"conditions\":[$(condition True Available)],\"releasedIPs\":[\"172.16.11.3\"]}"
t_eq "in their order" '["172.16.11.3"]' "$(k get sp old -o jsonpath='{.status.releasedIPs}')"
t_ok "a SpiderEndpoint is created with its status, as there is no subresource" k create -f - <<END
{ "apiVersion": "$SP", "kind": "SpiderEndpoint", "metadata": { "name": "p0", "namespace": "default" },
  "status": { "current": { "uid": "u0", "node": "n1", "ips": [{ "interface": "net1", "ipv4": "10.6.0.10/24", "ipv4Pool": "old" }] },
	"ownerControllerType": "Pod", "ownerControllerName": "p0" } }
END
t_eq "kubectl get shows what the pod has" "p0 net1 old 10.6.0.10/24 n1" \
	"$(k get se p0 -n default --no-headers | awk '{ print $1, $2, $3, $4, $5 }')"
t_ok "one that waits for its status can be made" k create -f - <<END
{ "apiVersion": "$SP", "kind": "SpiderEndpoint", "metadata": { "name": "p1", "namespace": "default" } }
END
t_ok "a negative count is refused" status_refused "$path" '{"readyNodes":-1}' status.readyNodes
t_ok "an unknown condition status is refused" status_refused "$path" \
	"{\"conditions\":[$(condition Maybe NodesBusy)]}" status.conditions.status
t_ok "a list without end is refused" status_refused "$path" \
	"{\"explanation\":$(jq -nc '[range(33) | tostring]')}" status.explanation
t_eq "the category lists what users write" "spiderippool spidermultusconfig sriovnetworknodepolicy sriovnetworknodestate" \
	"$(k get orbweaver -n default -o name | sed 's,[.].*,,' | sort | xargs)"

conformance_tests

t_done

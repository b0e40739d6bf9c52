#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the operator made stays as it made it, what it did not make stays alone, and nothing is written without need: repair of
# NetworkAttachmentDefinitions, owners, work items that follow policies and labels, an idle cluster.
# Environment: IDLE_S, how long to count writes (15; LONG=1: 60).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

idle_s=${IDLE_S:-$(o_size 60 15)}
configs=$spider/namespaces/default/spidermultusconfigs
definitions=$nads/namespaces/default/network-attachment-definitions
policies=$sriov/namespaces/default/sriovnetworknodepolicies

config() {
	jq -nc --arg name "$1" --arg master "$2" '{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderMultusConfig",
		metadata: { name: $name }, spec: { cniType: "macvlan", macvlan: { master: [$master] } } }'
}

# An owner that lives: a ConfigMap. Others' objects have all kinds of owners.
foreign_nad() {
	jq -nc --arg name "$1" --arg uid "$2" '{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition",
		metadata: { name: $name, ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "somebody-else", uid: $uid,
			controller: true, blockOwnerDeletion: true }] }, spec: { config: "{\"type\":\"theirs\"}" } }'
}

policy() {
	jq -nc --arg name "$1" --argjson selector "$2" '{ apiVersion: "sriovnetwork.openshift.io/v1",
		kind: "SriovNetworkNodePolicy", metadata: { name: $name }, spec: { resourceName: $name, numVfs: 4,
			nodeSelector: $selector, nicSelector: { pfNames: ["ens1f0np0"] } } }'
}

now_ms() {
	date +%s%3N
}

# repaired NAME COMMAND...: until the command succeeds again, and print how long that took.
repaired() {
	local name=$1 start

	shift
	start=$(now_ms)
	t_wait 60 "$name" "$@"
	echo "# $name: within $(($(now_ms) - start)) ms, one poll included"
}

nad_meta() {
	o_curl GET "$definitions/$1" | jq -c "$2"
}

nad_meta_is() {
	[[ $(nad_meta "$1" "$2") == "$3" ]]
}

work_of() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$1" |
		jq -r '[.spec.interfaces // [] | .[] | .vfGroups[].resourceName] | join(" ")'
}

work_is() {
	[[ $(work_of "$1") == "$2" ]]
}

message_names() {
	o_curl GET "$1" | jq -e --arg word "$2" 'any(.status.conditions[]; .type == "Ready" and (.message | contains($word)))'
}

# The operator decides in the order of what it sees: what came before a config that is Ready has been decided about.
has_decided() {
	o_curl POST "$configs" "$(config "$1" eth1)" >/dev/null
	t_wait 10 "the operator has come to a config that was made after it" o_condition "$configs/$1" True Rendered
	o_curl DELETE "$configs/$1" >/dev/null
}

o_begin repair --no-controllers
o_own_user
o_nodes nodes --generate nodes=2
o_start op
o_wait_ready op

# --- repair -------------------------------------------------------------------------------------------------------

o_curl POST "$configs" "$(config net eth1)" >/dev/null
t_wait 10 "a config becomes Ready" o_condition "$configs/net" True Rendered
good=$(o_nad default net)
o_curl PATCH "$definitions/net" '{"spec":{"config":"{\"type\":\"wrong\"}"}}' >/dev/null
repaired "a configuration edited by hand is repaired" o_nad_is default net "$good"
o_curl PATCH "$definitions/net" '{"metadata":{"ownerReferences":null}}' >/dev/null
repaired "an owner removed by hand is repaired" nad_meta_is net '.metadata.ownerReferences[0].name' '"net"'
o_curl PATCH "$definitions/net" '{"metadata":{"annotations":{"team":"ai"}}}' >/dev/null
o_curl DELETE "$definitions/net" >/dev/null
repaired "a deleted NetworkAttachmentDefinition is there again" o_nad_is default net "$good"
o_curl PATCH "$definitions/net" '{"metadata":{"annotations":{"team":"ai"},"labels":{"team":"ai"}}}' >/dev/null
o_curl PATCH "$configs/net" '{"spec":{"macvlan":{"mtu":9000}}}' >/dev/null
t_wait 10 "a changed config changes it" nad_meta_is net '.spec.config | fromjson | .plugins[0].mtu' 9000
t_eq "labels and annotations of others stay" '["ai","ai"]' \
	"$(nad_meta net '[.metadata.annotations.team, .metadata.labels.team]')"
t_wait 10 "the config is Ready again" o_condition "$configs/net" True Rendered
o_curl DELETE "$configs/net" >/dev/null
repaired "without its config it goes, and there is no garbage collector here" o_nad_gone default net
# The operator makes it half a minute after its start.
t_wait 60 "pods' SpiderCoordinator is there" o_condition /apis/spiderpool.spidernet.io/v2beta1/spidercoordinators/default True Synced
t_wait 10 "nothing is left to do" o_rest

# Deleted while nobody looks.
o_curl POST "$configs" "$(config later eth1)" >/dev/null
t_wait 10 "another config" o_condition "$configs/later" True Rendered
o_end op
o_curl DELETE "$configs/later" >/dev/null
o_start op
t_wait 20 "a config deleted while no operator ran takes its NetworkAttachmentDefinition along" o_nad_gone default later

# --- others' objects ----------------------------------------------------------------------------------------------

k create configmap somebody-else >/dev/null
uid=$(k get configmap somebody-else -o jsonpath='{.metadata.uid}')
o_curl POST "$definitions" "$(foreign_nad taken "$uid")" >/dev/null
before=$(nad_meta taken .metadata.resourceVersion)
o_curl POST "$configs" "$(config taken eth1)" >/dev/null
t_wait 10 "a name that is taken is not Ready" message_names "$configs/taken" "somebody-else"
t_ok "and the owner's kind is named" message_names "$configs/taken" ConfigMap
t_eq "the NetworkAttachmentDefinition of someone else is untouched" "$before" "$(nad_meta taken .metadata.resourceVersion)"
o_curl DELETE "$configs/taken" >/dev/null
has_decided after-taken
t_eq "also after the config is gone" "$before" "$(nad_meta taken .metadata.resourceVersion)"
o_curl POST "$configs" "$(config taken eth1)" >/dev/null
o_curl DELETE "$definitions/taken" >/dev/null
t_wait 10 "once the name is free the config gets it" o_condition "$configs/taken" True Rendered
o_curl POST "$definitions" '{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"alone"},
	"spec":{"config":"{\"type\":\"nobody\"}"}}' >/dev/null
o_curl PATCH "$configs/taken" '{"spec":{"macvlan":{"mtu":1400}}}' >/dev/null
t_wait 10 "a change passes" nad_meta_is taken '.spec.config | fromjson | .plugins[0].mtu' 1400
t_eq "one that nobody owns and no config claims is left alone" '"nobody"' "$(nad_meta alone '.spec.config | fromjson | .type')"
before=$(nad_meta alone .metadata.resourceVersion)
o_curl POST "$configs" "$(config alone eth1)" >/dev/null
t_wait 10 "so is one that a config claims" o_condition "$configs/alone" False OwnedByOther
o_curl DELETE "$configs/alone" >/dev/null
has_decided after-alone
t_eq "also after that config is gone" "$before" "$(nad_meta alone .metadata.resourceVersion)"
o_curl POST "$configs" "$(config alone eth1)" >/dev/null
t_wait 10 "a config that comes again waits again" o_condition "$configs/alone" False OwnedByOther
o_curl DELETE "$definitions/alone" >/dev/null
t_wait 10 "and makes its own once the name is free" o_condition "$configs/alone" True Rendered

# --- work items ---------------------------------------------------------------------------------------------------

o_curl POST "$policies" "$(policy everywhere '{"kubernetes.io/os":"linux"}')" >/dev/null
for node in node-00000 node-00001; do
	t_wait 20 "$node gets the policy's work" work_is "$node" everywhere
done
t_wait 20 "the policy is Ready on both" o_condition "$policies/everywhere" True NodesReady
o_curl DELETE "$policies/everywhere" >/dev/null
for node in node-00000 node-00001; do
	t_wait 10 "without the policy $node has no work" work_is "$node" ""
done
o_curl POST "$policies" "$(policy by-label '{"rack":"one"}')" >/dev/null
t_wait 10 "a policy that selects no node says so" o_condition "$policies/by-label" False NoNodeSelected
o_curl PATCH /api/v1/nodes/node-00000 '{"metadata":{"labels":{"rack":"one"}}}' >/dev/null
t_wait 10 "a label brings the work" work_is node-00000 by-label
t_wait 20 "the policy is Ready" o_condition "$policies/by-label" True NodesReady
o_curl PATCH /api/v1/nodes/node-00000 '{"metadata":{"labels":{"rack":null}}}' >/dev/null
o_curl PATCH /api/v1/nodes/node-00001 '{"metadata":{"labels":{"rack":"one"}}}' >/dev/null
t_wait 10 "the label moves, the old node's work ends" work_is node-00000 ""
t_wait 10 "and the new node's begins" work_is node-00001 by-label

# --- a NodeState edited by hand ---------------------------------------------------------------------------------------

states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
edit_events() {
	o_curl GET "/api/v1/namespaces/$POD_NAMESPACE/events?fieldSelector=involvedObject.name%3D$1,reason%3DEditUndone" |
		jq -r '.items[].message'
}
edit_is_told() {
	edit_events "$1" | grep -q "^curl wrote to spec at .*; put back: interfaces.*; change SriovNetworkNodePolicy .*/by-label instead"
}
o_curl PATCH "$states/node-00001" '{"spec":{"interfaces":[]}}' >/dev/null
t_wait 10 "a NodeState whose spec was edited is what the policies say again" work_is node-00001 by-label
t_wait 10 "an event on it says who edited it, and what to do" edit_is_told node-00001
t_eq "a change of policies is no edit" "" "$(edit_events node-00000)"
t_ok "the log says what was decided, with the write" o_logged op '.msg == "decision carried out" and
	.controller == "node-state" and .key == "node-00001" and (.did | test("^patch sriovnetworknodestates .*/node-00001$"))'
o_curl PATCH "$policies/by-label" '{"spec":{"nodeSelector":{"rack":"two"}}}' >/dev/null
t_wait 10 "a policy that selects others empties the work item" work_is node-00001 ""
o_curl PATCH /api/v1/nodes/node-00001 '{"metadata":{"labels":{"rack":"two"}}}' >/dev/null
t_wait 20 "until the node has that label" o_condition "$policies/by-label" True NodesReady
t_wait 10 "nothing is left to do" o_rest

# --- idle ---------------------------------------------------------------------------------------------------------

idle_writes() {
	o_writes ".user == \"$o_username\" and .time >= \"$1\" and .time < \"$2\" and ($3)"
}

# Events and aggregated statuses come a second late, or later where the machine is slow.
t_wait 30 "nothing is written any more" o_still 3 ".user == \"$o_username\" and .kind != \"leases\""
decisions() {
	grep -c '"msg":"decision carried out"' "$tmp/op.log"
}
before=$(decisions)
from=$(o_now)
sleep "$idle_s"
to=$(o_now)
t_eq "an idle operator writes nothing but its lease for $idle_s s" 0 "$(idle_writes "$from" "$to" '.kind != "leases"')"
t_eq "and logs no decision" "$before" "$(decisions)"
renewals=$(idle_writes "$from" "$to" '.kind == "leases"')
t_ok "the lease is renewed every 5 s or so ($renewals times)" test "$renewals" -ge 1 -a "$renewals" -le $((idle_s / 3 + 1))
# --- removal: there is no controller for namespaces here, so that ours stays Terminating ---------------------------------------

o_curl DELETE "/api/v1/namespaces/$POD_NAMESPACE" >/dev/null
o_curl DELETE "$policies/by-label" >/dev/null
sleep 3
t_ok "a policy that goes with the operator's namespace leaves the nodes' work as it is" work_is node-00001 by-label
t_ok "the audit log does know the operator" test "$(o_writes ".user == \"$o_username\" and .kind == \"spidermultusconfigs\"")" -gt 0

o_end op
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program is taken away, and the definitions with all objects, in five orders, from a cluster that was moved over: pools, one of
# them in use, the coordinator and a pod's endpoint with Spiderpool's finalizer, networks with that of the SR-IOV network operator,
# also in the operator's namespace.
# It ends within a minute, nothing of ours is left, and what belongs to others is as it was: their definition of
# NetworkAttachmentDefinition, their networks. With a garbage collector; the operator has its account's rights, as long as it has them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

overlay=manifests/overlays/kubernetes-1.20
nad_crd=/apis/apiextensions.k8s.io/v1/customresourcedefinitions/network-attachment-definitions.k8s.cni.cncf.io

# Multus' definition: not ours to change. Only its column tells it from ours.
strangers_definition() {
	sed -e '/app.kubernetes.io/d' -e 's/^  labels:$//' -e 's/- name: Resource/- name: Brought-by-Multus/' crds/nad/*.yaml
}

strangers_things() {
	o_curl GET "$nad_crd" | jq -cS '[.metadata.uid, .metadata.generation, .spec]'
	o_curl GET "$nads/namespaces/default/network-attachment-definitions/somebody-elses" | jq -cS '[.metadata.uid, .spec]'
}

# object API_VERSION KIND NAMESPACE NAME FINALIZER SPEC
object() {
	jq -nc --arg version "$1" --arg kind "$2" --arg ns "$3" --arg name "$4" --arg finalizer "$5" --argjson spec "$6" '{
		apiVersion: $version, kind: $kind, spec: $spec, metadata: ({ name: $name, finalizers: [ $finalizer ] } +
			if $ns == "" then {} else { namespace: $ns } end) }'
}

# Of a pod that Spiderpool's agent gave an address, and of which no agent has said that it ended.
endpoint() {
	object spiderpool.spidernet.io/v2beta1 SpiderEndpoint default "$1" spiderpool.spidernet.io null | jq -c --arg name "$1" '
		del(.spec) | .status = { ownerControllerType: "Pod", ownerControllerName: $name, current: { uid: "u", node: "n1",
			ips: [ { interface: "eth0", ipv4: "10.82.0.2/16", ipv4Pool: "used", cleanGateway: false, vlan: 0 } ] } }'
}

pool() {
	object spiderpool.spidernet.io/v2beta1 SpiderIPPool "" "$1" spiderpool.spidernet.io "{\"subnet\":\"$2\",\"ips\":[\"$3\"]}"
}

network() {
	object sriovnetwork.openshift.io/v1 "$1" "$2" "$3" netattdef.finalizers.sriovnetwork.openshift.io \
		'{"resourceName":"roce","networkNamespace":"default"}'
}

use_pool() {
	o_curl GET "$spider/spiderippools/used" | jq '.status.allocatedIPs = "{\"10.82.0.2\":{\"interface\":\"eth0\",\"pod\":\"default/p\",\"podUid\":\"u\"}}" |
		.status.allocatedIPCount = 1' >"$tmp/used" &&
		o_curl PUT "$spider/spiderippools/used" "$(<"$tmp/used")"
}

webhooks_are_there() {
	k get validatingwebhookconfigurations/orbweaver-validating mutatingwebhookconfigurations/orbweaver-mutating
}

install() {
	local port

	k create -f crds/nad/ >"$tmp/nad" 2>&1 || grep -q AlreadyExists "$tmp/nad"
	k apply -f crds/ >/dev/null
	k wait --for condition=Established --timeout 60s crd --all >/dev/null
	t_wait 60 "$1: the definitions are served" o_served
	k apply -k "$overlay" >/dev/null
	o_own_user webhook
	port=$(o_free_port)
	o_start "$1" --webhook-addr "127.0.0.1:$port" --webhook-url "https://127.0.0.1:$port"
	o_wait_ready "$1"
	{
		pool migrated 10.81.0.0/16 10.81.0.2-10.81.0.9
		pool used 10.82.0.0/16 10.82.0.2-10.82.0.9
		network SriovNetwork kube-system sn-1
		network SriovNetwork "$POD_NAMESPACE" sn-2
		network SriovIBNetwork kube-system sn-3
		network OVSNetwork kube-system sn-4
		object spiderpool.spidernet.io/v2beta1 SpiderCoordinator "" default spiderpool.spidernet.io '{"podCIDRType":"none"}'
		endpoint p
		object sriovnetwork.openshift.io/v1 SriovNetworkPoolConfig kube-system all \
			poolconfig.finalizers.sriovnetwork.openshift.io '{"nodeSelector":{}}'
	} | k apply -f - >/dev/null
	t_wait 20 "$1: a pool is in use" use_pool
	t_wait 30 "$1: networks are rendered" k get -n default net-attach-def/sn-1 net-attach-def/sn-{2,3,4}
	t_wait 30 "$1: webhooks are set up" webhooks_are_there
}

nothing_of_ours() {
	[[ -z $(k get namespace "$POD_NAMESPACE" -o name --ignore-not-found)$(
		k get crd -o name | grep -v network-attachment-definitions
	)$(k get clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations \
		-l app.kubernetes.io/part-of=orbweaver -o name) ]]
}

program() {
	k delete -k "$overlay" --ignore-not-found >/dev/null
}

definitions() {
	k delete -f crds/ --ignore-not-found "$@" >/dev/null
}

release() {
	KUBECTL="hack/cluster kubectl $o_cluster" manifests/release-finalizers
}

no_finalizers() {
	local left

	left=$(k get sp,spidercoordinators,se,sriovnetworks,sriovibnetworks,ovsnetworks,sriovnetworkpoolconfigs -A -o json |
		jq -r '.items[] | select(.metadata.finalizers) | "\(.kind) \(.metadata.name)"')
	echo "$left"
	[[ -z $left ]]
}

still_there() {
	k get -n default sp/migrated sp/used spidercoordinators/default se/p >/dev/null
}

# --- the orders -----------------------------------------------------------------------------------------------------

# Where the rights go before the operator has taken its finalizers off, the namespace waits for the script, as the guide says.
program_then_definitions() {
	local deleting i

	timeout "$hangs_s" hack/cluster kubectl "$o_cluster" delete -k "$overlay" >/dev/null &
	deleting=$!
	for ((i = 0; i < 30; i++)); do
		kill -0 "$deleting" 2>/dev/null || break
		sleep 1
	done
	! kill -0 "$deleting" 2>/dev/null || release
	wait "$deleting" || return
	still_there || return
	release && definitions
}

definitions_then_program() {
	definitions --wait=false
	program
	release
}

both_at_once() {
	definitions &
	program
	release
	wait $!
}

# The rights stay until the account goes with the namespace: time enough for the operator.
namespace_first() {
	k delete namespace "$POD_NAMESPACE" --wait=false >/dev/null
	t_wait 15 "the operator takes the finalizers off, also of objects that stay" no_finalizers
	t_ok "they stay" still_there
	definitions && program
}

without_an_operator() {
	o_kill killed KILL
	definitions --wait=false
	release
	program
}

# What has not ended by then hangs: on an idle machine an order takes 5 to 30 s, on a busy one several times that.
hangs_s=300

removed() {
	local begin=$SECONDS

	"$1" || return
	# Rights of overlays/webhook, which is taken away with the program.
	k delete clusterroles,clusterrolebindings orbweaver-operator-webhook --ignore-not-found >/dev/null
	until nothing_of_ours; do
		((SECONDS - begin < hangs_s)) || return
		sleep 0.5
	done
}

remove() {
	local id=$1 before begin

	install "$id"
	before=$(strangers_things)
	begin=$SECONDS
	t_ok "$id: $2 ends, and nothing of ours is left" removed "$2"
	printf '# %s: %s s\n' "$2" $((SECONDS - begin))
	t_eq "$id: what belongs to others is as it was" "$before" "$(strangers_things)"
	[[ ! ${o_pids[$id]:-} ]] || o_kill "$id" KILL
}

o_begin removal
k delete -f crds/ -f crds/nad/ >/dev/null
k delete namespace "$POD_NAMESPACE" >/dev/null
strangers_definition | k apply -f - >/dev/null
k apply -f - <<<'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}' >/dev/null
t_wait 30 "a stranger's network" k apply -f - <<<'{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition",
	"metadata":{"name":"somebody-elses","namespace":"default"},"spec":{"config":"{}"}}'
remove first program_then_definitions
remove second definitions_then_program
remove third both_at_once
remove fourth namespace_first
remove killed without_an_operator
t_done

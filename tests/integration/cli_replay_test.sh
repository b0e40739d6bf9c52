#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver replay against the operator: on a dump of a cluster at rest nothing is left to do; on one that the operator has not
# looked at yet, what replay says is what the operator then writes, field by field.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"
. tests/integration/cli.sh

cli=$o_programs/orbweaver
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates

c() { "$cli" --kubeconfig "$kubeconfig" "$@"; }
dump() {
	rm -rf "${tmp:?}/$1" && c support dump --policy-namespaces default --operator-namespace "$POD_NAMESPACE" \
		--config-namespace spiderpool -o "$tmp/$1"
}
# Of a dump that is made anew: nothing that would be written.
rests() {
	dump "$1" && "$cli" replay "$tmp/$1"
}
# predicted DUMP CONTROLLER KEY FILTER: of what the controller would do for the key, in the first step in which it would. An
# address is given in the second: in the first one the operator learns what living pods have.
predicted() {
	{ "$cli" replay "$tmp/$1" "$3" -o json || (($? == 1)); } |
		jq -cS --arg controller "$2" "[.steps[] | select(.controller == \$controller) | select(.plan) | $4][0]"
}
policy() {
	k apply -f - >/dev/null <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: $1, namespace: default}
spec: {resourceName: $1, numVfs: $2, priority: 10, nicSelector: {pfNames: [ens1f0np0]}, nodeSelector: {}}
END
}
config() {
	k apply -f - >/dev/null <<END
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: $1, namespace: default, annotations: {own.example/note: hush}}
spec: {cniType: macvlan, macvlan: {master: [$2], ippools: {ipv4: [rail]}}}
END
}

o_begin replay --no-controllers
k apply -f - >/dev/null <<END
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: rail}
spec: {ipVersion: 4, subnet: 10.6.0.0/24, ips: [10.6.0.10-10.6.0.20]}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderCoordinator
metadata: {name: default}
spec: {mode: auto, podCIDRType: none}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetwork
metadata: {name: net, namespace: $POD_NAMESPACE}
spec: {resourceName: fast, networkNamespace: default}
END
policy fast 4
config one eth1
o_nodes nodes --generate nodes=3
o_start op --config-namespace spiderpool
o_wait_ready op
t_wait 30 "the operator comes to rest" o_rest
t_wait 10 "a replay of the cluster says so, too" rests rest
t_eq "it has looked at each kind" "" "$("$cli" replay "$tmp/rest" -o json | jq -r '[.steps[].controller] as $did |
	["coordinator", "ip-pool", "multus-config", "node-state", "policy-status", "sriov-network"] - $did | join(" ")')"
t_eq "but at the webhooks" "webhook-setup" "$("$cli" replay "$tmp/rest" -o json | jq -r '.leftOut[].controller')"
o_end op

first=$(o_curl GET "$states" | jq -r '[.items[].metadata.name] | first')
echo "# what it says of changes that the operator has not seen is what becomes of them"
policy fast 6
policy more 2
config one eth2
config two eth3
k apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {k8s.v1.cni.cncf.io/networks: one}}
spec: {nodeName: $first, automountServiceAccountToken: false, containers: [{name: c, image: i}]}
END
dump before >/dev/null
t_ok "there is something to do" exits 1 "$cli" replay "$tmp/before"
t_ok "a NodeState, as it would be written against as it is" says "spec.interfaces" 1 "$cli" replay "$tmp/before" "$first"
node=$(predicted before node-state "$first" '.plan[] | select(.op == "apply").object.spec')
old=$(o_curl GET "$states/$first" | jq -cS .spec)
nad=$(predicted before multus-config default/two '.plan[] | select(.op == "apply").object.spec.config | fromjson')
pool=$(predicted before addresses all '.plan[] | select(.kind == "spiderippools").status.allocatedIPs | fromjson | keys')
endpoint=$(predicted before endpoint default/p '.plan[] | select(.op == "apply").object.status.current.ips[0].ipv4')
t_eq "an address for the pod, and its endpoint" '["10.6.0.10"] "10.6.0.10/24"' "$pool $endpoint"
t_ok "the NodeState would be another one" test "$node" != "$old" -a "$node" != null
o_start op2 --config-namespace spiderpool
o_wait_ready op2
state_is() { [[ $(o_curl GET "$states/$first" | jq -cS .spec) == "$1" ]]; }
t_wait 30 "the operator writes that NodeState" state_is "$node"
t_wait 10 "and that NetworkAttachmentDefinition" o_nad_is default two "$nad"
pool_is() { [[ $(o_curl GET "$spider/spiderippools/rail" | jq -cS '.status.allocatedIPs // "{}" | fromjson | keys') == "$1" ]]; }
t_wait 10 "and that ledger" pool_is "$pool"
address_is() { [[ $(o_curl GET "$spider/namespaces/default/spiderendpoints/p" | jq -cS '.status.current.ips[0].ipv4') == "$1" ]]; }
t_wait 10 "and that SpiderEndpoint" address_is "$endpoint"
t_wait 30 "then there is nothing left to do" rests after
t_eq "no annotation of others is in the dump, and configs and definitions are one for all that" "" \
	"$(grep -rl hush "$tmp/before" "$tmp/after" || true)"
o_end op2
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Users who apply their YAML on the server's side (kubectl apply --server-side, Argo CD, Flux): for each kind the user applies,
# the operator writes what it writes, the user applies again. Nobody meets a conflict, nothing flips, and what the user wrote
# stays the user's. And `kubectl wait --for=condition=Ready` on each kind that has the condition.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

kinds=sriovnetworknodepolicies,sriovnetworkpoolconfigs,sriovnetworks.sriovnetwork.openshift.io,sriovibnetworks,ovsnetworks
kinds+=,spidermultusconfigs,spiderippools,spiderreservedips,spidercoordinators

# With as few fields as they can have: all else are defaults, of the definitions and of the operator.
write_users_yaml() {
	cat >"$tmp/user.yaml" <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: u, namespace: $POD_NAMESPACE }
spec: { resourceName: u, numVfs: 4, nodeSelector: { kubernetes.io/os: linux }, nicSelector: { pfNames: [ens1f0np0] } }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: { name: u, namespace: $POD_NAMESPACE }
spec: { nodeSelector: { matchLabels: { kubernetes.io/os: linux } }, rdmaMode: shared }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetwork
metadata: { name: u-eth, namespace: $POD_NAMESPACE }
spec: { resourceName: u, networkNamespace: default }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovIBNetwork
metadata: { name: u-ib, namespace: $POD_NAMESPACE }
spec: { resourceName: u, networkNamespace: default }
---
apiVersion: sriovnetwork.openshift.io/v1
kind: OVSNetwork
metadata: { name: u-ovs, namespace: $POD_NAMESPACE }
spec: { resourceName: u, networkNamespace: default }
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: { name: u, namespace: default }
spec: { cniType: macvlan, macvlan: { master: [eth1], ippools: { ipv4: [u] } } }
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: { name: u }
spec: { subnet: 10.6.0.0/16, ips: [10.6.0.10-10.6.0.20] }
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderReservedIP
metadata: { name: u }
spec: { ips: [10.6.0.15] }
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderCoordinator
metadata: { name: default }
spec: { mode: auto, podCIDRType: none }
END
}

user_applies() {
	k apply --server-side --field-manager=a-user -f "$tmp/user.yaml"
}

users_objects() {
	k get "$kinds" -A -o json | jq '[.items[] | select(.metadata.name | test("^(u|u-.*|default)$"))]'
}

versions() {
	users_objects | jq -cS '[.[] | ["\(.kind) \(.metadata.name)", .metadata.resourceVersion]]'
}

# Statuses may come some seconds after what they are about.
still() {
	local before

	before=$(versions) && sleep 6 && [[ $before == "$(versions)" ]]
}

# What matters of an object: all but the bookkeeping.
content() {
	users_objects | jq -cS '[.[] | { kind, name: .metadata.name, spec, labels: .metadata.labels, annotations: .metadata.annotations,
		finalizers: .metadata.finalizers }]'
}

# Fields of spec that two managers have, or that somebody else took: one a line.
contested() {
	users_objects | jq -r '.[] | "\(.kind) \(.metadata.name)" as $who | [.metadata.managedFields[] |
		select(.subresource // "" == "") | .manager as $manager | .fieldsV1 | paths as $p |
		select($p[0] == "f:spec" and (getpath($p) == {})) | { manager: $manager, field: ($p | join(".")) }] |
		group_by(.field)[] | select(length > 1) | "\($who) \(.[0].field): \(map(.manager) | join(", "))"'
}

# Written by the user, and no longer the user's; or by the operator, and no longer the operator's.
lost() {
	k get spiderippools.spiderpool.spidernet.io u -o json | jq -r '.metadata.managedFields | map(select(.manager == "orbweaver-operator") |
		.fieldsV1["f:metadata"]["f:labels"] // {} | keys[]) | if length == 0 then "labels of the pool" else empty end'
	users_objects | jq -r '.[] | select(.metadata.managedFields | any(.manager == "a-user" and .operation == "Apply" and
		(.fieldsV1 | has("f:spec"))) | not) | "\(.kind) \(.metadata.name)"'
}

ready_kinds() {
	users_objects | jq -r '.[] | select(.status.conditions // [] | any(.type == "Ready")) |
		"\(.kind | ascii_downcase) \(.metadata.namespace // "default") \(.metadata.name)"'
}

all_say_ready() {
	[[ $(ready_kinds | wc -l) == 9 ]] || { ready_kinds; return 1; }
}

o_begin apply --no-controllers
o_own_user
o_nodes nodes --generate nodes=1
write_users_yaml
# Before the operator makes a coordinator by itself.
t_ok "a user applies an object of each kind, on the server's side" user_applies
o_start op
o_wait_ready op
t_eq "nine of them" 9 "$(users_objects | jq length)"
t_wait 30 "each kind has the condition Ready" all_say_ready
t_wait 30 "nothing is left to do" o_rest
t_wait 60 "nobody writes any more" still
t_eq "what each wrote is still its own" "" "$(lost)"
before=$(content)
version=$(versions)
for times in 1 2 3; do
	t_ok "the user applies again, and meets no conflict ($times)" user_applies
done
t_eq "nothing has changed by it" "$before" "$(content)"
t_ok "and nobody writes" still
t_eq "not even once" "$version" "$(versions)"
t_eq "what each wrote is still its own" "" "$(lost)"
t_eq "no field of a spec has two managers" "" "$(contested)"

# config SPEC: the user's network once more, else.
config() {
	k apply --server-side --field-manager=a-user -f - <<END
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: { name: u, namespace: default }
spec: $1
END
}

has_been_seen() {
	o_condition "$spider/namespaces/default/spidermultusconfigs/u" True Rendered
}

t_ok "a user who changes what was a default has it" \
	config '{ cniType: macvlan, enableCoordinator: false, macvlan: { master: [eth1], mtu: 9000, ippools: { ipv4: [u] } } }'
t_wait 20 "the operator has seen it" has_been_seen
t_eq "and it stays" '[false,9000]' "$(k get smc u -o json | jq -c '[.spec.enableCoordinator, .spec.macvlan.mtu]')"
t_ok "what the user leaves out again" config '{ cniType: macvlan, macvlan: { master: [eth1], ippools: { ipv4: [u] } } }'
t_eq "is a default again" '[true,0]' "$(k get smc u -o json | jq -c '[.spec.enableCoordinator, .spec.macvlan.mtu]')"
t_wait 20 "which the operator has seen" has_been_seen

while read -r kind namespace name; do
	t_ok "kubectl wait --for=condition=Ready $kind" k wait --for=condition=Ready --timeout 30s -n "$namespace" "$kind/$name"
done < <(ready_kinds)

o_end op
t_done

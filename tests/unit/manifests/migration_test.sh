#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# manifests/migration with a kubectl that prints files: what it keeps, which namespaces it names, each difference that it finds.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# get KIND,... [-A | -n NAMESPACE] -o json, from $tmp/cluster.
cat >"$tmp/kubectl" <<'END'
#!/bin/bash
case $2 in
sriovnetworknodestates.*) file=nodestates ;;
nodes) file=nodes ;;
*) file=policies ;;
esac
[[ $3 == -n ]] || set -- "$1" "$2" -n ''
exec jq --arg ns "$4" '{ items: [.[] | select($ns == "" or .metadata.namespace == $ns)] }' "$(dirname "$0")/cluster/$file"
END
chmod +x "$tmp/kubectl"
export KUBECTL=$tmp/kubectl

# cluster FILE FILTER: change a file of the cluster.
cluster() {
	jq "$2" "$tmp/cluster/$1" >"$tmp/changed"
	mv "$tmp/changed" "$tmp/cluster/$1"
}

before() {
	rm -rf "$tmp/cluster" "$tmp/saved"
	mkdir "$tmp/cluster"
	cat >"$tmp/cluster/nodestates" <<'END'
[{ "metadata": { "name": "n1", "namespace": "sriov-network-operator", "generation": 3 },
   "spec": { "interfaces": [{ "pciAddress": "0000:3b:00.0", "name": "ens1f0", "numVfs": 8, "vfGroups": [
      { "resourceName": "roce", "vfRange": "0-7", "deviceType": "netdevice", "policyName": "roce" }] }] } },
 { "metadata": { "name": "n2", "namespace": "sriov-network-operator", "generation": 1 }, "spec": { "interfaces": [] } }]
END
	cat >"$tmp/cluster/nodes" <<'END'
[{ "metadata": { "name": "n1" }, "status": { "allocatable": { "cpu": "8", "spidernet.io/roce": "8", "hugepages-1Gi": "1" } } }]
END
	cat >"$tmp/cluster/policies" <<'END'
[{ "kind": "SriovNetworkNodePolicy", "metadata": { "name": "roce", "namespace": "sriov-network-operator" } },
 { "kind": "SriovNetwork", "metadata": { "name": "own", "namespace": "team" }, "spec": { "networkNamespace": "" } },
 { "kind": "SriovNetwork", "metadata": { "name": "far", "namespace": "lab" }, "spec": { "networkNamespace": "team" } },
 { "kind": "SriovNetworkPoolConfig", "metadata": { "name": "pool", "namespace": "kube-system" } }]
END
	manifests/migration save "$tmp/saved" >"$tmp/told"
	# What Orbweaver makes of it.
	cluster nodestates '[.[] | .metadata.namespace = "orbweaver-system" | .metadata.generation = 1 |
		.spec.interfaces[].vfGroups[].policyNamespace = "sriov-network-operator" |
		.status = { syncStatus: "Succeeded", observedGeneration: 1 }] + .'
}

# found NAME TEXT: the only difference.
found() {
	local output status=0

	output=$(manifests/migration check "$tmp/saved" 2>&1) || status=$?
	t_eq "$1" "1 $2" "$status $output"
}

before
t_ok "namespaces that do not count by default are named, others are not" grep -qx "policy-namespaces=lab,sriov-network-operator" "$tmp/told"
t_ok "the same spec by other hands is no difference" manifests/migration check "$tmp/saved"
t_fails "what was saved is not written over" manifests/migration save "$tmp/saved"

cluster nodestates '.[0].spec.interfaces = []'
found "a policy that does not count leaves its PF without VFs" \
	"node n1 ens1f0 0000:3b:00.0: had 8 VFs, roce 0-7 netdevice; no policy that counts asks for them"
before
cluster nodestates '.[0].spec.interfaces[0] |= (.numVfs = 4 | .vfGroups[0].vfRange = "0-3")'
found "another number of VFs" \
	"node n1 ens1f0 0000:3b:00.0: had 8 VFs, roce 0-7 netdevice; is to have 4 VFs, roce 0-3 netdevice"
before
cluster nodestates '.[0].spec.interfaces += [.[0].spec.interfaces[0] | .pciAddress = "0000:5b:00.0" | .name = "ens2f0"]'
found "VFs where there were none" "node n1 ens2f0 0000:5b:00.0: had no VFs; is to have 8 VFs, roce 0-7 netdevice"
before
cluster nodestates '.[0].status.observedGeneration = 0'
found "a status of an older spec" "node n1: not configured yet: syncStatus Succeeded; see its conditions"
before
cluster nodestates '.[0].spec.system.rdmaMode = ""'
t_ok "a mode that is absent and one that is empty are the same" manifests/migration check "$tmp/saved"
cluster nodestates '.[0].spec.system.rdmaMode = "exclusive"'
found "another RDMA mode" "node n1: RDMA mode was set to none; is to be set to exclusive"
before
cluster nodestates 'del(.[0])'
found "a node that nobody looks after" "node n1: no NodeState in orbweaver-system"
before
cluster nodes '.[0].status.allocatable = { "openshift.io/roce": "8" }'
found "a resource that has another prefix" "node n1: resource spidernet.io/roce: was 8, is 0"
before
cluster policies '.[0].status.conditions = [{ type: "Ready", status: "False", reason: "NamespaceNotTrusted" }]'
found "a policy that says itself that it does not count" \
	"SriovNetworkNodePolicy sriov-network-operator/roce: does not count; add its namespace to policy-namespaces"


# Spiderpool with a device plugin of its own, without the SR-IOV network operator.
before
jq '.items = []' "$tmp/saved/nodestates.json" >"$tmp/changed" && mv "$tmp/changed" "$tmp/saved/nodestates.json"
cluster nodes '.[0].status.allocatable = {}'
found "a resource is missed without any NodeState, too" "node n1: resource spidernet.io/roce: was 8, is 0"

wrong() {
	local status=0

	"$@" >/dev/null 2>"$tmp/error" || status=$?
	[[ $status == 2 && $(wc -l <"$tmp/error") == 1 ]]
}
t_ok "an unknown command is status 2, in one line" wrong manifests/migration fix
t_ok "a folder without what save wrote, too" wrong manifests/migration check "$tmp/none"

t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver, the command line, on files: what it says about addresses, VFs and plans, its documents, and how it refuses.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.."
. tests/integration/cli.sh

cli=${BUILD:-build}/${VARIANT:-asan}/orbweaver

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
endpoints >"$tmp/endpoints.yaml"
world >"$tmp/objects.yaml"
files=(-f "$tmp/objects.yaml" -f "$tmp/endpoints.yaml")

echo "# on files"
t_eq "pools are counted" "rail1 3 2 1 rail2 ~2^48 0 ~2^48" \
	"$("$cli" ipam show "${files[@]}" | awk 'NR > 1 { print $1, $3, $4, $5 }' | xargs)"
t_ok "an address has a pod, a NIC and a node" says "10.6.0.10  rail1  ml/train-0  net1  n1    InUse" 0 \
	"$cli" ipam who 10.6.0.10 "${files[@]}"
t_ok "a leaked address is called that" says RecordWithoutPod 0 "$cli" ipam who 10.6.0.12 "${files[@]}"
t_ok "an address that nobody has" says "no pool has a record of 10.6.0.11" 1 "$cli" ipam who 10.6.0.11 "${files[@]}"
t_eq "all that does not agree is found" "RecordWithoutPod StaleEndpoint WrongCount" \
	"$({ "$cli" ipam check -o json "${files[@]}" || true; } | jq -r '[.items[].reason] | sort | join(" ")')"
t_ok "the first rule that keeps a pool from serving is named" \
	says "pool rail2: spec.nodeName does not select node n1" 1 "$cli" ipam explain ml/train-1 "${files[@]}"
t_ok "a pod's namespace may come as a flag" says "10.6.0.10/24" 0 "$cli" -n ml ipam explain train-0 "${files[@]}"
t_eq "the result of its CNI call is there" '["10.6.0.10/24"]' \
	"$("$cli" ipam explain ml/train-0 -o json "${files[@]}" | jq -c '[.nics[0].result.ips[].address]')"
cat >"$tmp/conf.yaml" <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: spiderpool-conf, namespace: orbweaver-system}
data: {conf.yml: "enableIPv4: false\nenableIPv6: true\n"}
END
t_ok "switches are read in the operator's namespace" says "a family that is switched off" 0 \
	"$cli" ipam explain ml/train-0 "${files[@]}" -f "$tmp/conf.yaml"
t_eq "unless a flag names another one" 0 \
	"$("$cli" ipam explain ml/train-0 --config-namespace spiderpool "${files[@]}" -f "$tmp/conf.yaml" | grep -c "switched off")"
t_ok "standard input is a file" says rail1 0 bash -c "$cli ipam show -f - <$tmp/objects.yaml"

echo "# plans, on files"
# A node with 2 VFs, the second in a pod that a StatefulSet and a budget stand behind.
cat >"$tmp/node.yaml" <<'END'
apiVersion: v1
kind: Node
metadata: {name: w1}
status: {allocatable: {spidernet.io/rail: "2"}}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: rail, namespace: orbweaver-system, generation: 2}
spec: {resourceName: rail, numVfs: 2, priority: 10, nicSelector: {pfNames: [ens1f0]}, nodeSelector: {}, deviceType: netdevice}
status: {conditions: [{type: Ready, status: "True", reason: NodesReady, message: "1 of 1 node ready", observedGeneration: 2}]}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w1, namespace: orbweaver-system, generation: 1}
spec:
  interfaces:
  - {pciAddress: "0000:3b:00.0", name: ens1f0, numVfs: 2,
     vfGroups: [{resourceName: rail, deviceType: netdevice, vfRange: 0-1, policyName: rail, policyNamespace: orbweaver-system}]}
  bridges: {}
status:
  syncStatus: Succeeded
  observedGeneration: 1
  system: {rdmaMode: shared}
  resources:
  - {name: spidernet.io/rail, kind: sriov, wanted: 2, registered: true, offered: 2, healthy: 2, allocated: 1, pods: [{device: "0000:3b:00.3", pod: ml/w-0/main, gpuDistance: PIX}]}
  interfaces:
  - {pciAddress: "0000:3b:00.0", name: ens1f0, vendor: 15b3, deviceID: "1017", driver: mlx5_core, linkType: ETH, mtu: 1500,
     numVfs: 2, totalvfs: 8, eSwitchMode: legacy,
     Vfs: [{vfID: 0, pciAddress: "0000:3b:00.2", driver: mlx5_core}, {vfID: 1, pciAddress: "0000:3b:00.3", driver: mlx5_core}]}
---
apiVersion: v1
kind: Pod
metadata:
  {name: w-0, namespace: ml, labels: {app: w}, ownerReferences: [{kind: StatefulSet, name: w, controller: true}],
   annotations: {k8s.v1.cni.cncf.io/network-status: '[{"name":"ml/rail","interface":"net1","ips":["10.6.0.10","fd00::10"],
     "mac":"0a:00:00:00:00:01","device-info":{"type":"pci","pci":{"pci-address":"0000:3b:00.3","rdma-device":"mlx5_3"}}}]'}}
spec: {nodeName: w1, containers: [{name: main, image: i}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: w, namespace: ml}
spec: {minAvailable: 1, selector: {matchLabels: {app: w}}}
status: {disruptionsAllowed: 0}
END
policy() {
	cat <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: $1, namespace: ${3:-orbweaver-system}}
spec: {resourceName: $1, nicSelector: {pfNames: [ens1f0]}, nodeSelector: {}, $2}
END
}
policy rail "numVfs: 4, priority: 10" >"$tmp/four.yaml"
policy rail "numVfs: 2, deviceType: vfio-pci" >"$tmp/vfio.yaml"
policy rail "numVfs: 9, priority: 10" >"$tmp/nine.yaml"
policy other "numVfs: 4, priority: 1" tenant >"$tmp/tenant.yaml"
cat >"$tmp/exclusive.yaml" <<'END'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: {name: all, namespace: orbweaver-system}
spec: {rdmaMode: exclusive, nodeSelector: {}}
END
p() { "$cli" plan -f "$tmp/node.yaml" "$@"; }
t_ok "without a change nothing changes" says "nothing changes on any node" 0 p
t_ok "pods that would have to end are status 4" says "numVfs is 2, wanted 4: all VFs are removed first" 4 p "$tmp/four.yaml"
t_eq "with device, owner and budget" "ml/w-0 0000:3b:00.3 StatefulSet/w w (allows 0)" "$({ p -o json "$tmp/four.yaml" || true; } |
	jq -r '.nodes[].pods[] | "\(.pod) \(.device) \(.owner) \(.budget)"')"
t_ok "another driver ends the pod, too" says "driver becomes vfio-pci" 4 p "$tmp/vfio.yaml"
t_ok "a policy that is deleted" says "no policy wants the NIC any more" 4 p orbweaver-system/rail-
t_ok "a mode that needs a boot is status 5" says "RDMA namespace mode is shared, wanted exclusive" 5 p "$tmp/exclusive.yaml"
t_ok "more VFs than there can be: status 1, with the reason" says "TooManyVfs" 1 p "$tmp/nine.yaml"
t_eq "a namespace that may not command nodes changes nothing" '[]' \
	"$({ p -o json "$tmp/tenant.yaml" || true; } | jq -c '[.nodes[].changes[]]')"
t_ok "and is told" says "NamespaceNotTrusted" 1 p "$tmp/tenant.yaml"
policy bad "numVfs: 0, mtu: -5" >"$tmp/bad.yaml"
t_ok "a policy that says nonsense is named" says "orbweaver-system/bad" 1 p "$tmp/bad.yaml"
t_eq "unless the operator has it" 4 "$({ p -o json --policy-namespaces a,tenant "$tmp/tenant.yaml" || true; } |
	jq '.nodes[].spec.interfaces[].numVfs')"
t_ok "a policy that is not there (PolicyNotFound)" says "there is no such SriovNetworkNodePolicy" 2 p orbweaver-system/nosuch-
echo "{apiVersion: v1, kind: List, items: []}" >"$tmp/empty.yaml"
t_ok "a file without objects (NothingToPlan)" says "no Kubernetes object is in it" 2 p "$tmp/empty.yaml"

echo "# objects that are to be applied"
{
	cat "$tmp/nine.yaml"
	cat <<'END'
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: {name: far, namespace: orbweaver-system}
spec: {resourceName: far, numVfs: 4, nicSelector: {pfNames: [ens1f0]}, nodeSelector: {rack: far}}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: rail, namespace: ml}
spec: {cniType: sriov, sriov: {resourceName: spidernet.io/rail, ippools: {ipv4: [rail]}}}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: rail}
spec: {subnet: 10.6.0.0/24, ips: [10.6.0.20-10.6.0.30]}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: ml}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: devices}}
END
} >"$tmp/new.yaml"
p "$tmp/new.yaml" >"$tmp/planned" || true
# line TEXT: the first line with it, its columns one blank apart.
line() { tr -s ' ' <"$tmp/planned" | grep -m 1 -F -- "$1" || true; }
t_eq "one that is there, with what changes" "SriovNetworkNodePolicy orbweaver-system/rail changed spec.numVfs: 2 -> 9" \
	"$(line orbweaver-system/rail)"
t_eq "what the operator says of it" " operator: says of it: Degraded=True TooManyVfs: node w1 ens1f0: numVfs 9, the device \
has at most 8; lower numVfs" "$(line "has at most 8; lower")"
t_eq "a message of two lines is two sentences" "orbweaver-system/rail w1 TooManyVfs ens1f0: numVfs 9, the device has at most 8; \
agent: its NodeState is being written" "$(line "has at most 8; agent")"
t_eq "a policy that selects nothing says so" "SriovNetworkNodePolicy orbweaver-system/far created operator: says of it: \
Degraded=True NoNodeSelected: no node has all labels of spec.nodeSelector (rack=far); label a node or correct nodeSelector" \
	"$(line orbweaver-system/far)"
t_eq "a config becomes a definition" \
	"SpiderMultusConfig ml/rail created operator: creates NetworkAttachmentDefinition ml/rail" "$(line SpiderMultusConfig)"
sed -n '/^kind: SpiderMultusConfig/,/^---/!d; /^---/d; p' "$tmp/new.yaml" | sed '1i apiVersion: spiderpool.spidernet.io/v2beta1' |
	sed 's/ipv4: \[rail\]/ipv4: [rial]/' >"$tmp/typo.yaml"
t_ok "a config that names a pool that is not there: status 1, as its condition will say" \
	says "Degraded=True PoolMissing: spec.sriov.ippools: names SpiderIPPool rial, which does not exist" 1 p "$tmp/typo.yaml"
t_eq "a pool is ready" " operator: says of it: Ready=True Usable: 11 addresses" "$(line Usable)"
t_eq "what nobody looks at" "Ingress ml/web - nothing follows: neither operator nor agents look at such objects" "$(line Ingress)"
t_eq "what agents may read, in the namespace of the call" "ConfigMap default/devices created nothing follows: the operator decides \
as before; agents that are told to read it offer what it selects of their nodes' devices" "$(line ConfigMap)"
yq_policy=$(sed -n '/kind: SriovNetworkNodePolicy/,/^---/p' "$tmp/node.yaml" | sed '$d')
printf 'apiVersion: sriovnetwork.openshift.io/v1\n%s\n' "$yq_policy" >"$tmp/same.yaml"
t_ok "one that is there like this" says "nothing follows: the cluster has it like this" 0 p "$tmp/same.yaml"
t_ok "then nothing changes" says "nothing changes on any node" 0 p "$tmp/same.yaml"
t_ok "an object that would not become Ready is status 1" exits 1 p <(sed -n '/name: far/,/^---/!d; /^---/d; p' "$tmp/new.yaml" |
	sed '1i apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetworkNodePolicy')
sed 's/name: rail, namespace: orb.*}/name: rail, namespace: orbweaver-system, annotations: {kubectl.kubernetes.io\/last-applied-configuration: '"'"'{"spec":{"deviceType":"netdevice"}}'"'"'}}/' \
	"$tmp/node.yaml" >"$tmp/applied.yaml"
t_eq "a field that the last apply wrote and this one lacks goes" "spec.deviceType" \
	"$({ "$cli" plan -f "$tmp/applied.yaml" "$tmp/four.yaml" -o json || true; } |
		jq -r '.objects[].differences[] | select(.after == null).path')"
t_ok "-f of a file without nodes asks a cluster" says "new.yaml has no nodes, so it is to be applied to a cluster: nothing says" 3 \
	env -u KUBECONFIG HOME="$tmp" "$cli" plan -f "$tmp/new.yaml"

echo "# crds/examples, on a cluster whose node has the NICs that they name"
cat >"$tmp/example-node.yaml" <<END
apiVersion: v1
kind: Node
metadata: {name: w1, labels: {example.com/rdma: exclusive, example.com/fabric: infiniband, example.com/roce: lossless}}
status:
  allocatable: {$(printf 'spidernet.io/%s: "8", ' hca_shared_devices roce_vf ib_vf rail{1..8})}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w1, namespace: orbweaver-system, generation: 1}
spec: {interfaces: [], bridges: {}}
status:
  syncStatus: Succeeded
  observedGeneration: 1
  system: {rdmaMode: shared}
  interfaces:
  - {pciAddress: "0000:3b:00.0", name: ens1f0np0, mac: "02:00:00:01:00:00", vendor: "15b3", deviceID: "1017",
     vfDeviceID: "1018", driver: mlx5_core, mtu: 9000, totalvfs: 16, linkType: ETH}
  - {pciAddress: "0000:5b:00.0", name: ibs1, mac: "02:00:00:02:00:00", vendor: "15b3", deviceID: "101b",
     vfDeviceID: "101c", driver: mlx5_core, mtu: 4092, totalvfs: 16, linkType: IB}
END
# What a workload of the folder names and no object of the folder has: networks, and resources that it requests.
dangling() {
	local name

	grep -h 'k8s.v1.cni.cncf.io/networks:' "$1"/pod*.yaml 2>/dev/null | grep -o 'orbweaver-system/[a-z0-9-]*' | cut -d / -f 2 |
		while read -r name; do
			grep -q "^  name: $name\$" "$1/objects.yaml" || echo "network $name"
		done
	sed -n 's|^ *spidernet.io/\([a-z0-9_]*\): 1\$|\1|p' "$1"/pod*.yaml 2>/dev/null |
		while read -r name; do
			grep -Eq "resourceName\"?: \"?$name\b" "$1/objects.yaml" || echo "resource $name"
		done
}
while read -r example status class; do
	files_of=(crds/examples/"$example"/*.yaml)
	"$cli" plan -f "$tmp/example-node.yaml" "${files_of[@]}" -o json >"$tmp/example.json" && got=0 || got=$?
	t_eq "$example: exit status and what it costs the node" "$status $class" \
		"$got $(jq -r '[.nodes[]?.class] | join(" ")' "$tmp/example.json")"
	t_eq "$example: nothing that an administrator has to correct" "" \
		"$(jq -r '(.policiesNotMet[]? | .policy + " " + .reason), (.objects[].follows[]? | select(.troubled) | .condition)' "$tmp/example.json")"
	t_eq "$example: its workload names what it has" "" "$(dangling "crds/examples/$example")"
done <<'END'
shared-roce 0 none
exclusive-roce 5 reboot
multi-rail 0 none
infiniband 5 reboot
devices-only 0 none
roce-lossless 0 none
END
t_eq "each example is in that list" 6 "$(find crds/examples -mindepth 1 -type d | wc -l)"

echo "# plans: what the API server would make of objects"
# faults YAML: "is path;path status" of the object, planned.
faults() {
	local status=0

	printf '%s\n' "$1" >"$tmp/faulty.yaml"
	p "$tmp/faulty.yaml" -o json >"$tmp/faulty.json" 2>"$tmp/faulty.err" || status=$?
	jq -r --arg status "$status" '.objects[0] | "\(.is) \([.faults[]?.path] | join(";")) \($status)"' "$tmp/faulty.json"
}
policy='{apiVersion: sriovnetwork.openshift.io/v1, kind: SriovNetworkNodePolicy, metadata: {name: f, namespace: orbweaver-system}'
pool='{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderIPPool, metadata: {name: f}'
rail='nodeSelector: {gpu: "yes"}, resourceName: f, numVfs: 2'
t_eq "an unknown field within a selector" "created spec.nicSelector.pfName 1" \
	"$(faults "$policy, spec: {$rail, nicSelector: {vendor: \"15b3\", pfName: [ens1f0]}}}")"
t_eq "one at the top, one in metadata, one in a list" "created metadata.lables;specs;spec.routes[0].dest 1" \
	"$(faults "${pool%\}}, lables: {a: b}}, specs: {}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.9], routes: [{dst: 10.1.0.0/16, gw: 10.0.0.1, dest: x}]}}")"
t_ok "it is planned without that field" jq -e '.objects[0].follows | length > 0' "$tmp/faulty.json"
t_eq "text for a list" "refused spec.multusName 1" "$(faults "$pool, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.9], multusName: ovs-conf}}")"
t_ok "in the server's words" grep -q 'spec.multusName in body must be of type array: \\"string\\"' "$tmp/faulty.json"
t_eq "text for a number" "refused spec.numVfs 1" "$(faults "$policy, spec: {nodeSelector: {}, resourceName: f, numVfs: \"2\", nicSelector: {}}}")"
t_eq "a value that is none of an enumeration" "refused spec.deviceType 1" \
	"$(faults "$policy, spec: {$rail, deviceType: netdev, nicSelector: {vendor: \"15b3\"}}}")"
t_eq "a number beyond its bounds" "refused spec.priority 1" "$(faults "$policy, spec: {$rail, priority: 100, nicSelector: {vendor: \"15b3\"}}}")"
t_eq "a required field that is absent" "refused spec.numVfs 1" \
	"$(faults "$policy, spec: {nodeSelector: {}, resourceName: f, nicSelector: {}}}")"
t_eq "a name that is none" "refused metadata.name 1" "$(faults "${pool/name: f/name: F_}, spec: {subnet: 10.0.0.0/24}}")"
t_eq "a version that is not served" "refused apiVersion 1" "$(faults "${pool/v2beta1/v1}, spec: {subnet: 10.0.0.0/24}}")"
t_eq "a definition with a field of its own" "created spec.configs 1" \
	"$(faults '{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: own, namespace: ml}, spec: {configs: "{}"}}')"
t_eq "kinds of others are not checked" "null  0" "$(faults '{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: s, namespace: ml}, spek: {}}')"
t_eq "of a duplicate key the last one counts, as for kubectl" "created  0" "$(faults "$pool, spec: {subnet: 7, subnet: 10.0.0.0/24, ips: [10.0.0.9]}}")"
t_ok "and a line says so" grep -qE 'warning: .*faulty.yaml: line 1, column [0-9]+: duplicate key "subnet"' "$tmp/faulty.err"
t_eq "merge keys count, as for kubectl" "created  1" \
	"$(faults "$policy, spec: {<<: {$rail}, nicSelector: {vendor: \"15b3\"}}}")"
echo 'a: [' >"$tmp/no.yaml"
t_ok "a file that is no YAML is no wrong usage" exits 3 "$cli" plan -f "$tmp/node.yaml" "$tmp/no.yaml"
t_ok "nor is one that is not there" exits 3 "$cli" plan -f "$tmp/node.yaml" "$tmp/nowhere.yaml"
t_eq "an annotation that cannot be read is a verdict" "BadNetworks 1" "$(printf '%s\n' '{apiVersion: v1, kind: Pod, metadata: {name: p,
	namespace: ml, annotations: {k8s.v1.cni.cncf.io/networks: "[{"}}, spec: {nodeName: w1}}' >"$tmp/pod.yaml"
	"$cli" ipam explain ml/p -o json -f "$tmp/pod.yaml" >"$tmp/verdict" && got=0 || got=$?; echo "$(jq -r .reason "$tmp/verdict") $got")"

echo "# status, ledger and explanations, on files"
# A second node whose NIC has another name, and a VF of the first that a pod has which is not there.
cat >"$tmp/second.yaml" <<'END'
apiVersion: v1
kind: Node
metadata: {name: w2}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w2, namespace: orbweaver-system, generation: 1}
spec: {bridges: {}}
status:
  syncStatus: InProgress
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: Blocked, message: waits},
    {type: Blocked, status: "True", reason: VfInUse, message: "VF 0000:3b:00.2 is in use by ml/x: end the pod"}]
  resources: [{name: spidernet.io/old, kind: sriov, wanted: 0, offered: 0, healthy: 0, allocated: 1, pods: [{device: "0000:3b:00.2", pod: ml/x/c}]}]
  interfaces: [{pciAddress: "0000:3b:00.0", name: ens9f0, vendor: 15b3, deviceID: "1017", driver: mlx5_core, numVfs: 0, totalvfs: 8}]
END
w() { "$cli" "$@" -f "$tmp/node.yaml"; }
both() { w "$@" -f "$tmp/second.yaml"; }
t_ok "all is well" says "spidernet.io/rail 2/2" 0 w status
sed 's|{allocatable: {spidernet.io/rail: "2"}}|{allocatable: {spidernet.io/rail: "0"}}|' "$tmp/node.yaml" >"$tmp/withdrawn.yaml"
t_ok "what the Node has stands beside what the agent offered" says "spidernet.io/rail 2/2 (allocatable: 0)" 0 \
	"$cli" status -f "$tmp/withdrawn.yaml"
sed 's|spidernet.io/rail: "2"|spidernet.io/rail: 1k|; s|2, healthy: 2|1000, healthy: 1000|; s|wanted: 2|wanted: 1000|' "$tmp/node.yaml" \
	>"$tmp/thousand.yaml"
t_ok "a thousand of them is 1k there" says "spidernet.io/rail 1000/1000  -" 0 "$cli" status -f "$tmp/thousand.yaml"
t_fails "of which doctor finds nothing" says ResourceShort 1 "$cli" doctor -f "$tmp/thousand.yaml"
t_ok "nor the explanation" says "w1    1000    1000     yes         1000     1          1000         -       -" 0 \
	"$cli" explain resource rail -f "$tmp/thousand.yaml"
sed 's|^  syncStatus: Succeeded|  conditions: [{type: Ready, status: "False", reason: NoAgent, message: "\\u001b[2Jgone\\u009b1m"}]\n&|' \
	"$tmp/node.yaml" >"$tmp/foreign.yaml"
t_ok "what a terminal would obey is covered in the first line of an explanation" says "node w1: agent: NoAgent: ?[2Jgone??1m" 1 \
	"$cli" explain node w1 -f "$tmp/foreign.yaml"
t_ok "in a table" says "Ready      NoAgent  ?[2Jgone??1m" 1 "$cli" status -f "$tmp/foreign.yaml"
t_ok "and in an error" says "there is no pod ml/ [2J  1m" 2 "$cli" ipam explain $'ml/\033[2J\xc2\x9b1m' "${files[@]}"
sed 's|observedGeneration: 2|observedGeneration: 1|' "$tmp/node.yaml" >"$tmp/stale.yaml"
t_ok "a policy that the operator has not looked at since it was changed" says "since it was changed (generation 1 of 2)" 1 \
	"$cli" status -f "$tmp/stale.yaml"
grep -v "reason: NodesReady" "$tmp/node.yaml" >"$tmp/silent.yaml"
t_ok "and one that it never looked at" says "Ready      OperatorSilent  the operator has said nothing about it: wait" 1 \
	"$cli" status -f "$tmp/silent.yaml"
# lease HOLDER: renewed long ago.
lease() {
	cat <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: orbweaver-operator, namespace: orbweaver-system}
spec: {holderIdentity: "$1", leaseDurationSeconds: 15, renewTime: "2026-01-31T10:00:00.000000Z"}
END
}
lease op-0 >"$tmp/lease.yaml"
lease "" >"$tmp/released.yaml"
t_ok "nobody knows when a file was written, so a holder is believed" exits 0 w status -f "$tmp/lease.yaml"
t_ok "a Lease without one says that nobody leads" says "NoLeader  no operator leads since 2026-01-31T10:00:00Z: look at" 1 \
	w status -f "$tmp/released.yaml"
w support dump -f "$tmp/lease.yaml" -o "$tmp/lease.tgz" >/dev/null 2>&1 || true
t_ok "a dump has its time" says "NoLeader  no operator leads since 2026-01-31T10:00:00Z" 1 "$cli" status -f "$tmp/lease.tgz"
t_ok "doctor as well" says "Lease orbweaver-system/orbweaver-operator" 1 "$cli" doctor -f "$tmp/lease.tgz"
t_ok "no pod is in the way" says "no pod is in the way of a change" 0 w drain status
cat >"$tmp/drained.yaml" <<'END'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w3, namespace: orbweaver-system}
status:
  conditions: [{type: Draining, status: "True", reason: PdbRefuses, message: "pod ml/a: The disruption budget web refuses"}]
  maintenance: {state: Evicting, since: "2026-01-31T10:00:00Z", podsLeft: 1}
  impact: {class: evict, morePods: 1, pods: [{pod: ml/a, device: "0000:3b:00.2"}]}
END
t_ok "a drain and what keeps it" says "w3    evict   2        Evicting  2026-01-31T10:00:00Z  pod ml/a: The disruption budget web refuses" \
	1 w drain status -f "$tmp/drained.yaml"
t_ok "a node that is not there (NoNodeState)" says "has no SriovNetworkNodeState" 2 w drain stop nosuch
t_ok "files cannot be written to" says "leave out -f" 2 w drain stop w3 -f "$tmp/drained.yaml"
t_ok "what is not is a finding, the worst condition of the object" says "VF 0000:3b:00.2 is in use by ml/x" 1 both status
t_eq "as a document, too" "SriovNetworkNodeState orbweaver-system/w2 VfInUse" \
	"$({ both status -o json || true; } | jq -r '.findings[] | "\(.kind) \(.name) \(.reason)"')"
t_eq "a VF has a pod, an RDMA device, an interface and addresses" "ml/w-0 ens1f0/1 mlx5_3 net1 10.6.0.10,fd00::10" \
	"$(w ledger -o json | jq -r '.items[] | "\(.pod) \(.vf) \(.rdma) \(.interface) \(.ips)"')"
t_ok "and how far it is from the pod's GPU" bash -c "$cli ledger -f '$tmp/node.yaml' |
	awk 'NR == 1 { for (i = 1; i <= NF; i++) if (\$i == \"GPU\") at = i } NR == 2 { exit \$at != \"PIX\" }'"
for asked in ml/w-0 0000:3b:00.3 mlx5_3 fd00::10 w1 0a:00:00:00:00:01; do
	t_ok "the ledger finds it by $asked" says ml/w-0 0 w ledger "$asked"
done
t_ok "nobody has another" says "no pod has that" 0 w ledger 10.6.0.99
cat >"$tmp/shared.yaml" <<'END'
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: ml}
spec: {config: '{"cniVersion":"0.3.1","name":"lan","plugins":[{"type":"macvlan","master":"ens2f0"},{"type":"coordinator"}]}'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: rail, namespace: ml}
spec: {config: '{"cniVersion":"0.3.1","name":"rail","type":"sriov"}'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: odd, namespace: ml}
spec: {config: '{'}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: tagged, namespace: ml}
spec: {config: '{"cniVersion":"0.3.1","name":"tagged","plugins":[{"type":"ifacer","interfaces":["ens2f0"],"vlanID":100},
  {"type":"ipvlan","master":"ens2f0.100"},{"type":"coordinator"}]}'}
---
apiVersion: v1
kind: Pod
metadata:
  {name: s-0, namespace: ml, annotations: {k8s.v1.cni.cncf.io/network-status: '[{"name":"pods","interface":"eth0","default":true},
    {"name":"ml/odd","interface":"net2"},{"name":"ml/tagged","interface":"net3"},{"name":"ml/lan","interface":"net1","ips":["10.7.0.10"],"mac":"0a:00:01:00:00:01"}]'}}
spec: {nodeName: w1, containers: [{name: main, image: i}]}
---
apiVersion: v1
kind: Pod
metadata:
  {name: s-1, namespace: ml, annotations: {k8s.v1.cni.cncf.io/network-status: '[{"name":"ml/lan","interface":"net1"}]'}}
spec: {nodeName: w1, containers: [{name: main, image: i}]}
status: {phase: Succeeded}
END
t_eq "an interface over a NIC that pods share is there, of pods that run" \
	"ml/w-0 sriov 0000:3b:00.3 net1, ml/s-0 ipvlan ens2f0.100 net3, ml/s-0 macvlan ens2f0 net1" \
	"$(w ledger -f "$tmp/shared.yaml" -o json | jq -r '[.items[] | "\(.pod) \(.kind) \(.device) \(.interface)"] | join(", ")')"
t_ok "it is found by the NIC" says "ml/s-0" 0 w ledger ens2f0 -f "$tmp/shared.yaml"
t_ok "and by its address" says "ml/s-0" 0 w ledger 10.7.0.10 -f "$tmp/shared.yaml"
t_ok "a pod that is gone is doubted" says "the pod is gone" 1 both ledger
t_ok "a chain that holds" says "w1    2       2        yes         2        1          2            -       -" 0 w explain resource rail
t_ok "its first broken link is named" says "name ens9f0, wanted ens1f0" 1 both explain resource spidernet.io/rail
t_ok "a resource that nobody makes (ResourceUnknown)" says "no SriovNetworkNodePolicy has this resourceName" 2 w explain resource nosuch
t_ok "nor is there a node where it could be (NoNodes)" says "policy default/alone makes it, but there are no Nodes here" 2 \
	"$cli" explain resource lonely -f - <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: alone, namespace: default }
spec: { resourceName: lonely, numVfs: 4, nodeSelector: {}, nicSelector: { pfNames: [ens1f0] } }
END
t_ok "a policy, NIC by NIC" says "0-1 orbweaver-system/rail" 0 w explain policy orbweaver-system/rail
t_ok "a policy that is not there" says "nosuch" 2 w explain policy orbweaver-system/nosuch
t_eq "a reason is explained without a cluster: what it means, affects and asks for" "PdbRefuses
means:   a PodDisruptionBudget refuses the eviction; the message has its name and numbers.
affects: No pod ends; the change of the node waits.
to do:   Scale up, or end the pod. It is asked again by itself.
stands:  on the condition Draining." "$("$cli" explain reason PdbRefuses)"
t_ok "and on which conditions it stands" says "Ready is False with it and Degraded True" 0 "$cli" explain reason NoAgent
# shellcheck disable=SC2016 # backquotes of Markdown
for sort in $(sed -n 's/^- `[A-Za-z0-9]*` (\([a-z, ]*\)).*/\1/p' docs/reasons.md | tr -d ' ' | tr , '\n' | sort -u); do
	t_ok "so says a reason that is of the sort $sort" says "stands:  " 0 "$cli" explain reason \
		"$(sed -n "s/^- \`\([A-Za-z0-9]*\)\` ($sort).*/\1/p" docs/reasons.md | head -n 1)"
done
t_eq "so is the last one" "to do:   Report it." "$("$cli" explain reason NoClock | tail -n 1)"
t_ok "of either case" says "NoAgent" 0 "$cli" explain reason noagent
t_ok "a word that is none (ReasonUnknown)" says "is no reason of ours" 2 "$cli" explain reason Nonsense

echo "# doctor"
# finds NAME WANT EDIT ARGUMENT...: findings after an edit of the good cluster, as "level reason node subject".
finds() {
	local name=$1 want=$2 edit=$3

	shift 3
	jq "$edit | {apiVersion: \"v1\", kind: \"List\", items: [.[]]}" tests/integration/cli_explain.json >"$tmp/edited.json"
	t_eq "$name" "$want" "$({ "$cli" doctor "$@" -f "$tmp/edited.json" -o json || true; } |
		jq -r '[.items[] | "\(.level) \(.reason) \(.node // "-") \(.subject // "-")"] | join(", ")')"
}
up='.state.status.interfaces[0].linkSpeed = "100000 Mb/s"'
finds "nothing on a good node" "" "$up"
finds "a link that is down" "error RdmaLinkDown w1 ens1f0" .
finds "or what its agent says of it" "warning PcieLanesLost w1 ens1f0" '.state.status.linkHealth.ports = [{pciAddress: "0000:3b:00.0",
	verdict: "degraded", reason: "PcieLanesLost", message: "ens1f0 has 8 of 16 lanes (module A B, serial C)"}]'
t_ok "with its module" says "8 of 16 lanes (module A B, serial C)" 0 "$cli" doctor w1 -f "$tmp/edited.json"
over="$up"' | .nad.spec.config = "{\"plugins\": [{\"type\": \"ipvlan\", \"master\": \"eno1\"}]}" | .state.status.interfaces += [{pciAddress: "0000:05:00.0",
	name: "eno1", linkAdminState: "up"}]'
finds "one that a policy wants, once, also under a VLAN" "error RdmaLinkDown w1 ens1f0" \
	'.nad.spec.config = "{\"type\": \"macvlan\", \"master\": \"ens1f0.100\"}"'
finds "a VLAN of another one, and two networks over it" "warning RdmaLinkDown w1 eno1.7" "$up"' |
	.nad.spec.config = "{\"type\": \"macvlan\", \"master\": \"eno1.7\"}" | .nad2 = (.nad | .metadata.name = "b") |
	.state.status.interfaces += [{pciAddress: "0000:05:00.0", name: "eno1", linkAdminState: "down"}]'
finds "nothing of a NIC under a network" "" "$over"
finds "one that is down under a network" "warning RdmaLinkDown w1 eno1" "$over | .state.status.interfaces[1].linkAdminState = \"down\""
t_eq "the report has it, too" "w1: eno1" "$("$cli" report -f "$tmp/edited.json" -o json |
	jq -r '.findings[] | select(.reason == "RdmaLinkDown") | .object')"
finds "and under none" "" "$over | del(.nad) | .state.status.interfaces[1].linkAdminState = \"down\""
off='.node.status.conditions = [{type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting",
	lastTransitionTime: "2026-01-31T10:00:00Z"}]'
finds "a node that is off, whatever its agent last said" "error NodeNotReady w1 -" "$up | $off"
finds "first of what is found" "error NodeNotReady w1 -, error RdmaLinkDown w1 ens1f0" "$off"
t_ok "with since when and why" says "its condition Ready is Unknown since 2026-01-31T10:00:00Z: NodeStatusUnknown: Kubelet stopped" 1 \
	"$cli" doctor w1 -f "$tmp/edited.json"
t_ok "status says it in the node's row" says "2/2  -      shared  spidernet.io/rail 2/2  NodeNotReady" 1 "$cli" status -f "$tmp/edited.json"
t_eq "and among its findings" "Node w1 Ready NodeNotReady" "$({ "$cli" status -f "$tmp/edited.json" -o json || true; } |
	jq -r '.findings[] | select(.reason == "NodeNotReady") | "\(.kind) \(.name) \(.condition) \(.reason)"')"
finds "no agent" "error NoAgent w1 -" '.state.status = {}'
finds "an agent that went away, and what is left of its resource" \
	"error NoAgent w1 -, error RdmaLinkDown w1 ens1f0, error ResourceShort w1 spidernet.io/rail" \
	'.node.status.allocatable["spidernet.io/rail"] = "0" |
	.state.status.conditions = [{type: "Ready", status: "False", reason: "NoAgent", message: "the agent is away since then"}]'
finds "a node that was deleted" "" '.state.metadata.annotations["sriovnetwork.openshift.io/keep-state-until"] = "2026-01-31T10:30:00Z"'
finds "what the agent says" "warning VfInUse w1 0000:3b:00.0" "$up"' |
	.state.status.problems = [{type: "Blocked", pciAddress: "0000:3b:00.0", reason: "VfInUse", message: "m"}]'
finds "another RDMA mode" "error RdmaModeDiffers w1 rdma system" "$up"' | .state.spec.system.rdmaMode = "exclusive"'
finds "an MTU and a GUID" "error MtuMismatch w1 0000:3b:00.2, error BadGuid w1 0000:3b:00.3" "$up"' |
	.state.status.interfaces[0].Vfs |= (.[0].mtu = 9000 | .[1].guid = "00:00:00:00:00:00:00:00")'
finds "a resource that is short" "error ResourceShort w1 spidernet.io/rail" "$up | .state.status.resources[0].healthy = 1"
finds "none that claims have" "" "$up"' | .state.status.resources[0] |= (.registered = false | .wanted = 0 | .healthy = 0)'
three="$up"' | .w2 = (.state | .metadata.name = "w2") | .w3 = (.state | .metadata.name = "w3" | .status.interfaces[0].mtu = 9000)'
finds "what differs among nodes" "warning NodesDiffer - MTU of NICs for rail" "$three"
finds "only that" "warning NodesDiffer - MTU of NICs for rail" "$three | .state.status.syncStatus = null" --compare
finds "one node" "error NoAgent w1 -" "$three | .state.status = {}" w1
t_ok "a node that is not there" says "no policy selects the node" 2 "$cli" doctor nosuch -f "$tmp/edited.json"
t_ok "this host, whatever it is like" exits "$({ "$cli" doctor --local -o json || true; } |
	jq 'if any(.items[]; .level == "error") then 1 else 0 end')" "$cli" doctor --local
t_ok "a mode that is none" says "doctor --local [shared|exclusive]" 2 "$cli" doctor --local both
t_ok "a device that is not here" says none0 1 "$cli" doctor --verbs none0
t_ok "--local of another command" says "--local does not go with status" 2 "$cli" status --local

echo "# documents"
# undocumented KIND <DOCUMENT: paths of its values that its schema does not have. ** is whatever is below.
undocumented() {
	jq -r --arg kind "$1" --slurpfile schema <("$cli" schema) '
		def below: if .properties then .properties | to_entries[] | [.key] + (.value | below)
			elif .additionalProperties then .additionalProperties | ["*"] + below
			elif .items then .items | ["[]"] + below
			elif .type == "object" or .type == "array" then ["**"] else [] end;
		def fits($known): $known == ["**"] or ($known == [] and . == []) or ($known != [] and . != [] and
			($known[0] == "*" or $known[0] == .[0]) and (.[1:] | fits($known[1:])));
		[$schema[0].oneOf[] | select(.properties.kind.const == $kind) | below] as $known |
		[paths(type != "object" and type != "array") | map(if type == "number" then "[]" else . end)] | unique[] |
		select(any(fits($known[]); .) | not) | join(".")'
}
for each in "Status:both status" "Ledger:both ledger" "Plan:p $tmp/four.yaml" "Plan:p $tmp/nine.yaml" "Plan:p $tmp/new.yaml" \
	"DoctorFindings:both doctor" "Report:both report" "NodeExplanation:both explain node w2" "PodExplanation:both explain pod ml/w-0" \
	"PolicyExplanation:both explain policy orbweaver-system/rail" "ResourceExplanation:both explain resource rail" \
	"Pools:$cli ipam show ${files[*]}" "Addresses:$cli ipam who ml/train-0 ${files[*]}" \
	"Replay:$cli replay $tmp/second.yaml -f $tmp/node.yaml" "AddressFindings:$cli ipam check ${files[*]}" "AddressExplanation:$cli ipam explain ml/train-1 ${files[*]}"; do
	read -ra command <<<"${each#*:}"
	document=$("${command[@]}" -o json) || true
	t_eq "${command[*]:0:3}: a document of its kind" "orbweaver.io/v1 ${each%%:*}" \
		"$(jq -r '"\(.apiVersion) \(.kind)"' <<<"$document")"
	t_eq "with nothing that its schema does not have" "" "$(undocumented "${each%%:*}" <<<"$document")"
done
t_eq "a member that no schema has would be found" "items.[].nonsense" \
	"$(echo '{"items": [{"pod": "a", "nonsense": 1}]}' | undocumented Ledger)"
t_eq "YAML has the same" "kind: Ledger ml/w-0" \
	"$(w ledger -o yaml | awk '/^kind:/ { kind = $0 } / pod:/ || /- pod:/ { print kind, $NF }')"
t_ok "and is read again" says "no pod has a device of ours" 0 \
	bash -c "$cli ledger -f $tmp/node.yaml -o yaml | $cli ledger -f -"

echo "# completion, man page"
cat >"$tmp/closed" <<'END'
{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: u}}],
  clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}], users: [{name: u, user: {}}]}
END
complete_words() { "$cli" __complete "$@" | cut -f1 | xargs; }
t_eq "commands by their beginning" "status support simulate schema :4" "$(complete_words s)"
t_eq "the second word of those that have one" "show who check explain :4" "$(complete_words ipam "")"
t_eq "flags" "--context --config-namespace :4" "$(complete_words status --con)"
t_eq "values of a flag" "json :4" "$(complete_words status -o j)"
t_eq "files" ":0" "$(complete_words status -f "")"
t_eq "files where -o is no format" ":0" "$(complete_words support dump -o "")"
t_eq "and where a dump is an argument" ":0" "$(complete_words replay "")"
t_eq "names of objects" "ml/w-0 :4" "$(complete_words ledger -f "$tmp/node.yaml" m)"
t_eq "no names without a cluster" ":4" "$(KUBECONFIG=$tmp/none complete_words ledger m)"
t_eq "nor from one that does not answer" ":4" "$(KUBECONFIG=$tmp/closed complete_words ledger m)"
t_eq "nothing behind the last argument" ":4" "$(complete_words ledger -f "$tmp/node.yaml" ml/w-0 "")"
ln -s "$(realpath "$cli")" "$tmp/kubectl_complete-orbweaver"
t_eq "for kubectl's plugins, too" "status support simulate schema :4" "$("$tmp/kubectl_complete-orbweaver" s | cut -f1 | xargs)"
ln -s "$(realpath "$cli")" "$tmp/orbweaver"
in_bash() {
	PATH=$tmp:$PATH bash -c 'source <(orbweaver completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _orbweaver
		echo "${COMPREPLY[*]}"' - orbweaver "$@"
}
t_eq "in bash" "who" "$(in_bash ipam w)"
t_eq "in bash, names with a slash" "ml/w-0" "$(in_bash ledger -f "$tmp/node.yaml" ml)"
for shell in zsh fish; do
	if command -v "$shell" >/dev/null; then
		"$cli" completion "$shell" >"$tmp/script"
		t_ok "$shell reads its script" "$shell" -n "$tmp/script"
	else
		t_skip "$shell reads its script" "$shell is not installed"
	fi
done
t_ok "another shell" says "must be bash, zsh or fish" 2 "$cli" completion tcsh
"$cli" man >"$tmp/orbweaver.1"
t_eq "the man page has every command" "" "$("$cli" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\( [a-z]*\)*\)  .*/\1/p' |
	while read -r name; do grep -qE "^\.SS $name( |$)" "$tmp/orbweaver.1" || echo "$name"; done)"
if command -v groff >/dev/null; then
	t_eq "groff has no complaint" "" "$(groff -man -Tutf8 -ww -z "$tmp/orbweaver.1" 2>&1)"
else
	t_skip "groff has no complaint" "groff is not installed"
fi

echo "# wrong usage is one line and status 2"
t_ok "no command (BadUsage)" says "a command is missing" 2 "$cli"
t_ok "an unknown command" says "fly is no command" 2 "$cli" fly
t_ok "an unknown flag" says "--fast: unknown" 2 "$cli" ipam show --fast
t_ok "a flag without its value" says "needs a value" 2 "$cli" ipam show -f
t_ok "an argument too many" says "usage: orbweaver ipam who" 2 "$cli" ipam who a b "${files[@]}"
t_ok "a bad output" says "must be table, json or yaml" 2 "$cli" ipam show -o xml
t_ok "repairing files" says "needs a cluster" 2 "$cli" ipam check --repair "${files[@]}"
t_ok "a pod that is not there" says "there is no pod ml/nobody" 2 "$cli" ipam explain ml/nobody "${files[@]}"
t_ok "a file that is not there is status 3" says "nosuch.yaml" 3 "$cli" ipam show -f nosuch.yaml
echo '{ "a": ' >"$tmp/bad.json"
t_ok "a file that is no YAML is status 3" says "bad.json" 3 "$cli" ipam show -f "$tmp/bad.json"
echo 7 >"$tmp/seven.yaml"
t_ok "a file without objects is status 3 (BadFile)" says "is no Kubernetes object" 3 "$cli" ipam show -f "$tmp/seven.yaml"
t_ok "a full disk is status 3 (OutputRefused)" exits 3 bash -c "$cli ipam show -f $tmp/objects.yaml >/dev/full"
t_ok "a document of what has none" says "--output does not go with man" 2 "$cli" man -o json
t_ok "no cluster is status 3" says "nothing says where the API server is" 3 env KUBECONFIG="$tmp/none" "$cli" ipam show
t_ok "a server that does not answer is status 3" says "cannot reach the API server http://127.0.0.1:9" 3 \
	"$cli" status --kubeconfig "$tmp/closed"
t_eq "each of these is one line" "1 1 1" "$(for wrong in "status --fast" "ipam show --kubeconfig $tmp/none" \
	"status --kubeconfig $tmp/closed"; do
	read -ra words <<<"$wrong"
	{ "$cli" "${words[@]}" 2>&1 >/dev/null || true; } | wc -l
done | xargs)"
t_ok "help of a command whose -o is no format" says "--output FILE.tar.gz|DIR" 0 "$cli" support dump --help
t_ok "help names every command" says "ipam explain" 0 "$cli" --help
t_done

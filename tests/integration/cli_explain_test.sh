#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver explain: the first broken link of a resource in set-ups that are each broken in one place, and chains of nodes,
# networks, configs, pools and pods.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.."
. tests/integration/cli.sh

cli=${BUILD:-build}/${VARIANT:-asan}/orbweaver
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A cluster in which all is well, by the name of each object: one node with two VFs, a pod that has one of them and an address.
good=tests/integration/cli_explain.json

# edit JQ: that cluster, changed, as a list in $tmp/edited.json.
edit() {
	jq "$1 | {apiVersion: \"v1\", kind: \"List\", items: [.[]]}" "$good" >"$tmp/edited.json"
}

# explain EDIT ARGUMENT...: what is said of the changed cluster.
explain() {
	edit "$1"
	shift
	"$cli" explain "$@" -f "$tmp/edited.json" -o json || true
}

# resource NAME LINK REASON FRAGMENT EDIT: broken there, and nowhere before. REASON -: it has none.
resource() {
	local said

	said=$(explain "$5" resource rail | jq -r '.items[0] | "\(.link // "none") \(.reason // "-") \(.broken // "")"')
	if [[ $said == "$2 $3 "*"$4"* ]]; then
		t_eq "$1" "$2" "$2"
	else
		t_eq "$1" "$2 $3 …$4…" "$said"
	fi
}

echo "# resources: one fault each"
t_eq "a good one has none" w1- "$(explain . resource rail | jq -r '.items[] | "\(.node)-\(.link // "")"')"
failed='.state.status.syncStatus = "Failed" | .state.status.resources[0] |= (.wanted = 0 | .offered = 0 | .healthy = 0) |
	.state.status.presentVfs = 0 | .state.status.interfaces[0] |= (.numVfs = 0 | .Vfs = []) | .node.status.allocatable = {} |'
resource "a namespace that does not count" policy NamespaceNotTrusted "policy tenant/rail: " '.policy.metadata.namespace = "tenant"'
resource "a range that cannot be read" policy BadRange 'ens1f0#5-2' '.policy.spec.nicSelector.pfNames = ["ens1f0#5-2"]'
resource "no VFs asked for" policy NumVfsZero "numVfs is 0" '.policy.spec.numVfs = 0'
resource "a name that is never applied" policy NameReserved "default" '.policy.metadata.name = "default"'
resource "the selector misses the node" node NoNodeSelected "label gpu no, wanted yes" '.node.metadata.labels.gpu = "no"'
resource "a node of another system" node - "kubernetes.io/os=linux and has windows" '.node.metadata.labels["kubernetes.io/os"] = "windows"'
resource "the operator is away" agent - "has not made its NodeState" 'del(.state)'
resource "the agent is away" agent NoAgent "no agent ever wrote" \
	'.state.status = {conditions: [{type: "Ready", status: "Unknown", reason: "NoAgent", message: "no agent ever wrote a status"}]}'
resource "the vendor differs" nic NoNicMatches "vendor 15b3, wanted 8086" '.policy.spec.nicSelector.vendor = "8086"'
resource "each of two NICs has its reason" nic NoNicMatches "vendor 15b3, wanted 8086 | ens9f0: " '.policy.spec.nicSelector.vendor = "8086" |
	.state.status.interfaces += [.state.status.interfaces[0] | .name = "ens9f0" | .pciAddress = "0000:af:00.0"]'
resource "the NIC has another name" nic NoNicMatches "name ens9f0, wanted ens1f0" '.state.status.interfaces[0].name = "ens9f0"'
resource "more VFs than the card can have" nic TooManyVfs "lower numVfs" '.policy.spec.numVfs = 9'
resource "a stronger policy has the VFs" nic Overruled "orbweaver-system/strong" \
	'.strong = (.policy | .metadata.name = "strong" | .spec.priority = 1 | .spec.resourceName = "other")'
resource "the NodeState is not written" nic SpecPending "the server may not know a field" '.policy.spec.numVfs = 3'
resource "SR-IOV is off in the firmware" vfs NoSriov "SRIOV_EN" "$failed"'.state.status.interfaces[0].totalvfs = 0 |
	.state.status.problems = [{type: "Degraded", pciAddress: "0000:3b:00.0", reason: "NoSriov", message: "mlxconfig -d 0000:3b:00.0 set SRIOV_EN=1"}]'
resource "the NIC has no driver" vfs NoDriver "load mlx5_core" "$failed"'
	.state.status.problems = [{type: "Degraded", pciAddress: "0000:3b:00.0", reason: "NoDriver", message: "load mlx5_core"}]'
resource "the NIC carries the node's traffic" vfs ProtectedPf "the default route" "$failed"'
	.state.status.problems = [{type: "Degraded", pciAddress: "0000:3b:00.0", reason: "ProtectedPf", message: "carries the default route"}]'
resource "a problem of another NIC is not the cause" vfs VfsMissing "0 of 2 VFs" "$failed"'
	.state.status.problems = [{type: "Degraded", pciAddress: "0000:af:00.0", reason: "NoDriver", message: "load mlx5_core"}]'
resource "a pod holds a VF" vfs VfInUse "in use by ml/x" '.state.status.syncStatus = "InProgress" | .state.status.presentVfs = 1 |
	.state.status.problems = [{type: "Blocked", pciAddress: "0000:3b:00.0", reason: "VfInUse", message: "VF 0000:3b:00.2 is in use by ml/x"}]'
resource "a boot is missing" vfs RdmaModeNextBoot "reboot" '.state.status.syncStatus = "InProgress" |
	.state.status.problems = [{type: "RebootRequired", reason: "RdmaModeNextBoot", message: "reboot the node"}]'
resource "VFs without RDMA device" offer - "it has no RDMA device" '.state.status.resources[0] |= (.offered = 0 | .healthy = 0 |
	.cause = "0000:3b:00.2: it has no RDMA device; load mlx5_ib")'
resource "the kubelet is away" kubelet - "is the kubelet running" '.state.status.resources[0] |= (.registered = false |
	.cause = "/var/lib/kubelet/device-plugins/kubelet.sock is not there: is the kubelet running?")'
resource "another plugin has the name" kubelet - "refuses" '.state.status.resources[0] |= (.registered = false |
	.cause = "the kubelet refuses the resource: name taken (AlreadyExists)")'
resource "the link is down" health - "check cable and switch" '.state.status.resources[0] |= (.healthy = 0 |
	.cause = "0000:3b:00.2: its port ens1f0 has no link; check cable and switch") | .node.status.allocatable["spidernet.io/rail"] = "0"'
resource "the API server knows less" allocatable - "the kubelet has not told" '.node.status.allocatable["spidernet.io/rail"] = "0"'
edit '.w2 = (.node | .metadata.name = "w2" | .metadata.labels.gpu = "no" | .status.allocatable = {})'
t_ok "a node that no policy wants is no fault of a resource that others have" says w2 0 "$cli" explain resource rail -f "$tmp/edited.json"
edit '.node.metadata.labels.gpu = "no"'
t_ok "a policy that selects no node at all is" says "wanted yes" 1 "$cli" explain resource rail -f "$tmp/edited.json"

# chain NAME WANT EDIT ARGUMENT...: WANT: "BROKEN REASON", or "none -".
chain() {
	local name=$1 want=$2 edit=$3

	shift 3
	t_eq "$name" "$want" "$(explain "$edit" "$@" | jq -r '"\(.broken // "none") \(.reason // "-")"')"
}

echo "# nodes"
chain "all is well" "none -" . node w1
chain "no policy, nothing to say" "none -" 'del(.state, .policy)' node w1
chain "it is not Ready" "node KubeletNotReady" \
	'.node.status.conditions = [{type: "Ready", status: "False", reason: "KubeletNotReady", message: "m"}]' node w1
edit '.node.status.conditions = [{type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting",
	lastTransitionTime: "2026-01-31T10:00:00Z"}] | .node.status.allocatable = {} | .state.status.conditions = [{type: "Ready",
	status: "False", reason: "NoAgent", message: "m"}]'
t_ok "it is off, and therefore its agent" says "node w1: node: NodeStatusUnknown: its condition Ready is Unknown since 2026-01-31T10:00:00Z: " 1 \
	"$cli" explain node w1 -f "$tmp/edited.json"
chain "no agent" "agent NoAgent" '.state.status = {}' node w1
# port VERDICT REASON: what the agent says of a NIC port.
port() {
	echo ".state.status.linkHealth.ports = [{pciAddress: \"0000:3b:00.0\", verdict: \"$1\", reason: \"$2\", message: \"ens1: m\",
		since: \"2026-01-31T10:00:00Z\", flaps: 7}]"
}
chain "a port without a link" "link LinkDown" "$(port failed LinkDown)" node w1
edit "$(port failed LinkDown)"
t_ok "is told with its address and past" says "ens1: m (0000:3b:00.0), since 2026-01-31T10:00:00Z, lost 7 times in all" 1 \
	"$cli" explain node w1 -f "$tmp/edited.json"
chain "one that flaps still works" "none -" "$(port degraded LinkFlapping)" node w1
chain "an agent that went away" "agent NoAgent" '.state.status.conditions = [{type: "Ready", status: "False", reason: "NoAgent", message: "m"}]' \
	node w1
# The agent's own pod; withdrawn: what the Node then has.
agent='.state.status.agentPod = "agent-w1" | .agent = {apiVersion: "v1", kind: "Pod", metadata: {name: "agent-w1",
	namespace: "orbweaver-system", labels: {"app.kubernetes.io/name": "orbweaver-agent"}}, spec: {nodeName: "w1"},
	status: {phase: "Running", conditions: [{type: "Ready", status: "True"}]}}'
withdrawn='.node.status.allocatable["spidernet.io/rail"] = "0"'
chain "an agent in its pod" "none -" "$agent" node w1
chain "its pod went away, and the operator has not said so" "agent NoAgent" "$agent | $withdrawn | .agent.spec.nodeName = \"w2\"" node w1
t_ok "what shows that" says "no agent pod runs on the node: kubectl get pods -n orbweaver-system -l app.kubernetes.io/name=orbweaver-agent --field-selector spec.nodeName=w1" 1 \
	"$cli" explain node w1 -f "$tmp/edited.json"
t_fails "the kubelet is not blamed" says "the kubelet has not told" 1 "$cli" explain node w1 -f "$tmp/edited.json"
chain "its pod is not Ready and has no container" "agent NoAgent" "$agent"' | .agent.status.conditions[0].status = "False"' node w1
chain "one that runs and is not Ready speaks for itself" "none -" "$agent"' | .agent.status |= (.conditions[0].status = "False" |
	.containerStatuses = [{state: {running: {}}}])' node w1
chain "its pod ends" "agent NoAgent" "$agent"' | .agent.metadata.deletionTimestamp = "2026-01-31T10:00:00Z"' node w1
chain "files without pods of agents say nothing of them" "none -" "$agent | del(.agent)" node w1
chain "an agent that was started by hand has none" "none -" "$agent"' | .agent.spec.nodeName = "w2" | del(.state.status.agentPod)' node w1
chain "no operator" "NodeState -" 'del(.state)' node w1
chain "a policy picks no NIC" "policy NoNicMatches" '.policy.spec.nicSelector.vendor = "8086"' node w1
t_eq "each of two NICs has its reason" "ens1f0: vendor 15b3, wanted 8086 | ens9f0: " "$(explain '.policy.spec.nicSelector.vendor = "8086" |
	.state.status.interfaces += [.state.status.interfaces[0] | .name = "ens9f0" | .pciAddress = "0000:af:00.0"]' node w1 |
	jq -r '.links[] | select(.link == "policy").what' | grep -o "ens1f0: vendor 15b3, wanted 8086 | ens9f0: ")"
chain "the host is in trouble" "host NoDriver" \
	'.state.status.conditions += [{type: "Degraded", status: "True", reason: "NoDriver", message: "m"}]' node w1
chain "VFs are missing" "policy VfsMissing" '.state.status |= (.presentVfs = 1 | .interfaces[0] |= (.numVfs = 1 | del(.Vfs[1])))' node w1
chain "a resource is not registered" "resource -" '.state.status.resources[0].registered = false' node w1
chain "but for claims it need not be" "none -" '.state.status.resources[0] |= (.registered = false | .wanted = 0 | .healthy = 0)' node w1
withheld='.state.spec.system.rdmaMode = "exclusive" |
	.state.status.system.rdmaMode = "exclusive" | .members.spec.rdmaMode = "exclusive" | .state.status.resources += [{name: "spidernet.io/hca",
	kind: "shared", wanted: 0, offered: 0, healthy: 0, allocated: 0, registered: true, cause: "the mode"}]'
chain "a shared one that its mode withholds is no fault of the node" "none -" "$withheld" node w1
t_eq "but why the resource is not there" "offer RdmaModeExclusive the mode true" \
	"$(explain "$withheld" resource hca | jq -r '.items[0] | "\(.link) \(.reason) \(.broken) \(.excluded)"')"

echo "# networks and configs"
chain "a definition with all it needs" "none -" . network ml/rail
chain "made by hand, no JSON" "definition BadNetworkConfig" '.nad.spec.config = "{"' network ml/rail
chain "no plugin" "definition BadNetworkConfig" '.nad.spec.config = "{\"cniVersion\":\"1.0.0\"}"' network ml/rail
chain "its resource is nobody's" "resource ResourceMissing" \
	'.nad.metadata.annotations["k8s.v1.cni.cncf.io/resourceName"] = "spidernet.io/rial"' network ml/rail
chain "its resource is broken at a node" "resource NoNicMatches" '.node.status.allocatable = {} | .state.status.resources = [] |
	.policy.spec.nicSelector.vendor = "8086"' network ml/rail
sriov='.network = {apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetwork",
	metadata: {name: "rail", namespace: "orbweaver-system"}, spec: {networkNamespace: "ml", resourceName: "rail"},
	status: {conditions: [{type: "Ready", status: "True", reason: "NetworkReady"}]}} |
	.nad.metadata |= (del(.ownerReferences) | .annotations["sriovnetwork.openshift.io/owner-ref"] =
		"SriovNetwork.sriovnetwork.openshift.io/orbweaver-system/rail")'
chain "a SriovNetwork into another namespace" "none -" "$sriov" network orbweaver-system/rail
chain "without its definition" "definition NoNetworkFound" "$sriov | del(.nad)" network orbweaver-system/rail
chain "the operator has not looked at it" "network -" "$sriov | del(.network.status)" network orbweaver-system/rail
chain "with a field that cannot be" "network BadField" "$sriov | .network.spec.vlan = 5000" network orbweaver-system/rail
chain "a config" "none -" . config ml/rail
chain "of an unknown type" "config BadCNIType" '.config.spec.cniType = "sriow"' config ml/rail
chain "its pool is missing" "pool PoolMissing" 'del(.pool)' config ml/rail
chain "its pool is not usable" "pool NoAddresses" \
	'.pool.status.conditions = [{type: "Ready", status: "False", reason: "NoAddresses", message: "m"}]' config ml/rail
chain "pods lack what they asked it for" "injection PodsWithout" \
	'.config.status.conditions += [{type: "Injected", status: "False", reason: "PodsWithout", message: "m"}]' config ml/rail

echo "# pools"
chain "of addresses" "none -" . pool rail1
chain "disabled" "pool Disabled" '.pool.spec.disable = true' pool rail1
chain "full" "addresses PoolExhausted" '.pool.spec.ips = ["10.6.0.10"]' pool rail1
chain "a ledger that cannot be read" "ledger BadAllocationRecord" '.pool.status.allocatedIPs = "x"' pool rail1
chain "of nodes" "none -" . pool orbweaver-system/all
chain "of nodes, none" "node NoNode" '.members.spec.nodeSelector = {matchLabels: {a: "b"}}' pool orbweaver-system/all
chain "of nodes with another mode" "node -" '.members.spec.rdmaMode = "exclusive"' pool orbweaver-system/all
chain "of nodes, not trusted" "pool NamespaceNotTrusted" '.members.metadata.namespace = "tenant"' pool tenant/all

echo "# pods"
pending='del(.pod.spec.nodeName, .endpoint) | .pod.status = {phase: "Pending"} | .pool.status.allocatedIPs = "{}" |
	.state.status.resources[0] |= (.allocated = 0 | .pods = []) | del(.pod.metadata.annotations["k8s.v1.cni.cncf.io/network-status"])'
chain "one that runs" "none -" . pod ml/w-0
shared='.nad.spec.config = "{\"plugins\": [{\"type\": \"macvlan\", \"master\": \"eno1.7\"}]}" | .state.status.interfaces += [{pciAddress: "0000:05:00.0",
	name: "eno1", totalvfs: 7, linkAdminState: "up", linkSpeed: "1000 Mb/s"}]'
chain "one over a NIC that has a link" "none -" "$shared" pod ml/w-0
chain "over one that was set down" "link RdmaLinkDown" "$shared"' | .state.status.interfaces[1].linkAdminState = "down"' pod ml/w-0
chain "over one without a cable" "link RdmaLinkDown" "$shared | del(.state.status.interfaces[1].linkSpeed)" pod ml/w-0
chain "over one that never tells its speed" "none -" "$shared | del(.state.status.interfaces[1] | .linkSpeed, .totalvfs)" pod ml/w-0
chain "one that waits for the scheduler" "none -" "$pending" pod ml/w-0
chain "a network that is not there" "definition NoNetworkFound" '.pod.metadata.annotations["k8s.v1.cni.cncf.io/networks"] = "other"' pod ml/w-0
chain "an annotation that cannot be read" "networks BadNetworks" '.pod.metadata.annotations["k8s.v1.cni.cncf.io/networks"] = "[{"' pod ml/w-0
chain "a default network that is not there" "definition NoNetworkFound" \
	'.pod.metadata.annotations["v1.multus-cni.io/default-network"] = "nope"' pod ml/w-0
chain "a default network that cannot be read" "networks BadNetworks" '.pod.metadata.annotations["v1.multus-cni.io/default-network"] = "[{"' pod ml/w-0
chain "a default network of the operator's namespace" "none -" '.pod.metadata.annotations["v1.multus-cni.io/default-network"] = "plain" |
	.plain = (.nad | .metadata = {name: "plain", namespace: "orbweaver-system"} | .spec.config = "{\"type\": \"ptp\"}")' pod ml/w-0
twice='.plain = (.nad | .metadata = {name: "plain", namespace: "ml"} | .spec.config = "{\"type\": \"ptp\"}") |
	.pod.metadata.annotations["k8s.v1.cni.cncf.io/networks"]'
chain "two networks that want one interface" "networks InterfaceTwice" "$twice = \"rail,plain@net1\"" pod ml/w-0
chain "a network that wants the cluster's interface" "networks InterfaceTwice" "$twice = \"plain@eth0\"" pod ml/w-0
chain "addresses that are none" "networks BadNetworks" "$twice = \"[{\\\"name\\\": \\\"plain\\\", \\\"ips\\\": [\\\"x\\\"]}]\"" pod ml/w-0
chain "two default routes" "networks BadDefaultRoute" \
	"$twice = \"[{\\\"name\\\": \\\"plain\\\", \\\"default-route\\\": [\\\"10.0.0.1\\\", \\\"10.0.0.2\\\"]}]\"" pod ml/w-0
chain "a configuration that its meta plugin refuses" "networks BadNetworkConfig" \
	".nad.spec.config = \"{\\\"type\\\": \\\"multus\\\"}\"" pod ml/w-0
chain "a resource that no node offers, for a plugin that does without" "none -" \
	'.nad.metadata.annotations["k8s.v1.cni.cncf.io/resourceName"] = "ovs-cni.network.kubevirt.io/br1" |
	.nad.spec.config = "{\"type\": \"ovs\", \"bridge\": \"br1\"}" | del(.pod.spec.containers[0].resources)' pod ml/w-0
chain "for a plugin that does not" "devices TooFewDevices" \
	'.nad.metadata.annotations["k8s.v1.cni.cncf.io/resourceName"] = "x.io/vf" | del(.pod.spec.containers[0].resources)' pod ml/w-0
chain "a route that no NIC reaches" "addresses RouteUnreachable" \
	'.pod.metadata.annotations["ipam.spidernet.io/routes"] = "[{\"dst\": \"192.168.0.0/24\", \"gw\": \"10.99.0.1\"}]"' pod ml/w-0
chain "a network without its device" "devices TooFewDevices" "$pending | del(.pod.spec.containers[0].resources)" pod ml/w-0
chain "all devices are in use" "node TooFewDevices" "$pending | .other = (.pod | .metadata.name = \"o\" | .spec.nodeName = \"w1\" |
	.spec.containers[0].resources.limits[\"spidernet.io/rail\"] = \"2\")" pod ml/w-0
t_eq "what of CNI a node has" "holds waits waits holds" "$(for condition in "True MetaPlugin" "True PluginsInUse" "False NoClusterNetwork" \
	"False DevicesOnly"; do
	explain ".state.status.conditions += [{type: \"PodNetworks\", status: \"${condition% *}\", reason: \"${condition#* }\", message: \"m\"}]" \
		node w1 | jq -r '.links[] | select(.link == "networks").state'
done | paste -sd ' ')"
chain "nobody offers the device" "resource NoNicMatches" "$pending | .node.status.allocatable = {} | .state.status.resources = [] |
	.policy.spec.nicSelector.vendor = \"8086\"" pod ml/w-0
chain "what else the scheduler says" "scheduler Unschedulable" "$pending | .pod.status.conditions = [{type: \"PodScheduled\",
	status: \"False\", reason: \"Unschedulable\", message: \"untolerated taint\"}]" pod ml/w-0
chain "no address is left" "addresses PoolExhausted" "$pending"' | .pool.spec.ips = ["10.6.0.10"] |
	.pool.status.allocatedIPs = "{\"10.6.0.10\":{\"pod\":\"ml/o\",\"podUid\":\"o\"}}"' pod ml/w-0
t_eq "an interface that did not come" waits "$(explain 'del(.pod.metadata.annotations["k8s.v1.cni.cncf.io/network-status"])' pod ml/w-0 |
	jq -r '.links[] | select(.link == "attached").state')"
# What the agent has read of a shared device, and what a job in the pod needs of it.
gids='.state.status.attachments = [{pod: "ml/w-0", interface: "net1", addresses: ["10.6.0.10/24"],
	gids: [{device: "mlx5_0", port: 1, index: 12, version: 2, address: "10.6.0.10"}]}]'
t_eq "the GID index of a pod" "mlx5_0 12 12" "$(explain "$gids" pod ml/w-0 |
	jq -r '"\(.interfaces[0].rdmaDevice) \(.interfaces[0].gids[0].index) \(.variables.NCCL_IB_GID_INDEX)"')"
edit "$gids"
t_ok "variables can be copied" says "export NCCL_IB_HCA='=mlx5_0:1'" 0 "$cli" explain pod ml/w-0 -f "$tmp/edited.json"
# NodeNotFound, NetworkNotFound, ConfigNotFound, PoolNotFound, PodNotFound
for kind in node network config pool pod; do
	t_ok "a $kind that is not there" exits 2 "$cli" explain "$kind" no/such -f "$tmp/edited.json"
done
edit '.policy.spec.nicSelector.vendor = "8086"'
t_ok "for people, the broken link comes first" says "node w1: policy: NoNicMatches: orbweaver-system/rail: " 1 \
	"$cli" explain node w1 -f "$tmp/edited.json"
t_done

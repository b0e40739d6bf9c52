#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rails and GPUs of simulated nodes: columns, labels of Nodes, `orbweaver topo`, an order from policies and from a pool, a NIC that
# vanishes; the same rails for pods on two nodes. Then the examples of docs/rails.md among many nodes: 20, with LONG=1 1,000, whose
# CPU time and memory are printed. Needs no cluster.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh
. tests/integration/simulated.sh

# The rails of gpu-1, "0 ens6f0np0,1 enp11s0f0np0"; a star behind those that are missing.
rails() {
	k get sriovnetworknodestate gpu-1 -n orbweaver-system -o json |
		jq -r '[.status.rails.list[]? | "\(.rail) \(.name)\(if .missing then "*" else "" end)"] | join(",")'
}

rails_are() {
	[[ $(rails) == "$1" ]]
}

# A line of the matrix of a node.
line() {
	"$orbweaver" topo "$1" --kubeconfig "$state/kubeconfig" | awk -v label="$2" '$1 == label && NF > 6 && $NF != "NUMA" { $1 = $1; print }'
}

"$orbweaver" simulate --state "$state" --node 'gpu-1:1xconnectx-5,2xconnectx-7,2xh100' --node 'pair:2xconnectx-7,4xmi300x' --node 'cpu:2xconnectx-7' --node 'even-[1-2]:4xconnectx-7' \
	>"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
t_wait 60 "it says where it is" grep -q '^export KUBECONFIG=' "$tmp/out"
t_wait 60 "ports are rails in PCI order" rails_are "0 enp11s0f0np0,1 enp12s0f0np0,2 ens6f0np0"
t_eq "kubectl get has a column for them" "3" "$(k get sriovnetworknodestates gpu-1 -n orbweaver-system |
	awk 'NR == 1 { at = index($0, "RAILS") } NR == 2 { split(substr($0, at), field, " "); print field[1] }')"
t_wait 60 "the Node has labels" has '.metadata.labels | .["rdma.orbweaver.io/capable"] == "true" and
	.["rdma.orbweaver.io/rail.count"] == "3" and .["rdma.orbweaver.io/rail.model"] == "mixed" and
	.["rdma.orbweaver.io/rail.link-type"] == "ethernet" and .["rdma.orbweaver.io/rail.speed-gbps"] == "200"' get node gpu-1
t_wait 60 "so has one without GPUs" has '.metadata.labels["rdma.orbweaver.io/rail.model"] == "connectx-7"' get node cpu

t_eq "topo: a GPU is on the switch of its NIC" "GPU0 X SYS PIX SYS NODE 0" "$(line gpu-1 GPU0)"
t_eq "topo: the other is on the other socket" "GPU1 SYS X SYS PIX SYS 1" "$(line gpu-1 GPU1)"
t_eq "topo: two GPUs are on one switch" "GPU0 X PIX SYS SYS SYS PIX 0" "$(line pair GPU0)"
t_ok "topo: the matrix as JSON" bash -c "'$orbweaver' topo gpu-1 --kubeconfig '$state/kubeconfig' -o json |
	jq -e '.matrix.RAIL0.GPU1 == .matrix.GPU1.RAIL0 and (.gpus | length) == 2 and (.nics | length) == 3'"
t_ok "a node without GPUs says so" bash -c "'$orbweaver' topo cpu --kubeconfig '$state/kubeconfig' | grep -q 'no PCIe topology'"
t_fails "an unknown node is refused" "$orbweaver" topo gpu-9 --kubeconfig "$state/kubeconfig"

k apply -f - >/dev/null <<'YAML'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: rails, namespace: orbweaver-system }
spec:
  nodeSelector: { kubernetes.io/hostname: gpu-1 }
  resourceName: rails
  numVfs: 4
  isRdma: true
  nicSelector: { pfNames: [ enp12s0f0np0, enp11s0f0np0, eth-of-another-node ] }
YAML
t_wait 60 "a policy puts its NICs first, in its order" rails_are "0 enp12s0f0np0,1 enp11s0f0np0,2 ens6f0np0"
t_wait 60 "VFs are below the switch of their PF" has '.status.presentVfs == 8' get sriovnetworknodestate gpu-1 -n orbweaver-system
t_eq "topo counts VFs" "RAIL0 enp12s0f0np0 0000:0c:00.0 4 0 0" \
	"$("$orbweaver" topo gpu-1 --kubeconfig "$state/kubeconfig" | awk '$1 == "RAIL0" && NF == 6 { $1 = $1; print }')"

# A pod with a GPU gets the VF below the GPU's switch, the second one that of the other socket.
for pod in one two; do
	k apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: { name: $pod, namespace: default }
spec:
  containers:
  - name: c
    image: none
    resources: { limits: { nvidia.com/gpu: "1", spidernet.io/rails: "1" } }
YAML
	t_wait 60 "pod $pod runs" has '.status.phase == "Running"' get pod "$pod" -n default
done
t_wait 60 "the NodeState has the distance of each VF from the pod's GPU" has '[.status.resources[] | select(.name == "spidernet.io/rails").pods[] |
	"\(.pod) \(.gpuDistance)"] | sort == ["default/one/c PIX", "default/two/c PIX"]' get sriovnetworknodestate gpu-1 -n orbweaver-system
t_eq "and the ledger" "PIX PIX" "$("$orbweaver" ledger gpu-1 --kubeconfig "$state/kubeconfig" -o json | jq -r '[.items[].gpuDistance] | join(" ")')"
t_eq "each has a NIC of its own" "2" "$("$orbweaver" ledger gpu-1 --kubeconfig "$state/kubeconfig" -o json | jq '[.items[].rail] | unique | length')"
t_ok "explain says it beside the device" bash -c "'$orbweaver' explain pod default/one --kubeconfig '$state/kubeconfig' | grep -q '(GPU: PIX) of spidernet.io/rails'"
k delete pod one two -n default >/dev/null

# Two nodes with four rails and no GPUs; on the first one the first VF is taken. Pods of a job have the same rails all the same.
# pod NAME NODE LABEL VFS
pod_on() {
	k apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: { name: $1, namespace: default, labels: { orbweaver.io/rails: "$3" } }
spec:
  nodeSelector: { kubernetes.io/hostname: $2 }
  containers:
  - name: c
    image: none
    resources: { limits: { spidernet.io/even: "$4" } }
YAML
	t_wait 60 "pod $1 runs" has '.status.phase == "Running"' get pod "$1" -n default
}

rails_of() {
	"$orbweaver" ledger "default/$1" --kubeconfig "$state/kubeconfig" -o json | jq -r '[.items[].rail] | sort | join(",")'
}

k apply -f - >/dev/null <<'YAML'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: even, namespace: orbweaver-system }
spec:
  nodeSelector: { kubernetes.io/os: linux }
  resourceName: even
  numVfs: 2
  isRdma: true
  nicSelector: { pfNames: [ enp11s0f0np0, enp12s0f0np0, enp13s0f0np0, ens6f0np0 ] }
YAML
t_wait 60 "its VFs are offered" has '.status.allocatable["spidernet.io/even"] == "8"' get node even-1
t_wait 60 "on both nodes" has '.status.allocatable["spidernet.io/even"] == "8"' get node even-2
pod_on first even-1 "" 1
for node in 1 2; do
	pod_on "train-$node" "even-$node" train 2
	pod_on "listed-$node" "even-$node" 1.3 2
done
t_eq "a list names the rails on one node" "1,3" "$(rails_of listed-1)"
t_eq "and on the other" "1,3" "$(rails_of listed-2)"
t_eq "a group has the same rails on both nodes" "$(rails_of train-1)" "$(rails_of train-2)"
t_eq "a block of two" "1" "$(rails_of train-1 | grep -c -x '0,1\|2,3')"
k delete pod first train-1 train-2 listed-1 listed-2 -n default >/dev/null
k delete sriovnetworknodepolicy even -n orbweaver-system >/dev/null

k apply -f - >/dev/null <<'YAML'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: { name: gpus, namespace: orbweaver-system }
spec:
  nodeSelector: { matchLabels: { kubernetes.io/hostname: gpu-1 } }
  rails: [ "0000:0b:00.0", enp12s0f0np0 ]
YAML
t_wait 60 "the pool's list decides over policies" rails_are "0 enp11s0f0np0,1 enp12s0f0np0"
t_wait 60 "the labels follow" has '.metadata.labels | .["rdma.orbweaver.io/rail.count"] == "2" and
	.["rdma.orbweaver.io/rail.model"] == "connectx-7"' get node gpu-1

k patch sriovnetworkpoolconfig gpus -n orbweaver-system --type merge -p '{"spec":{"rails":["0000:0b:00.0","eth9"]}}' >/dev/null
t_wait 60 "a NIC that the node does not have is a gap" rails_are "0 enp11s0f0np0,1 eth9*"
t_wait 60 "and a condition" has '.status.conditions | any(.type == "Degraded" and .status == "True" and .reason == "RailNotFound" and
	(.message | contains("\"eth9\" of SriovNetworkPoolConfig orbweaver-system/gpus is not a NIC of the node")))' \
	get sriovnetworknodestate gpu-1 -n orbweaver-system
t_ok "topo says which is missing" bash -c "'$orbweaver' topo gpu-1 --kubeconfig '$state/kubeconfig' | grep -q 'rail 1: NIC eth9 is not there'"

k patch sriovnetworkpoolconfig gpus -n orbweaver-system --type merge -p '{"spec":{"rails":["0000:0b:00.0","enp11s0f0np0"]}}' >/dev/null
t_wait 60 "two names of one NIC are a condition, too" has '.status.conditions | any(.type == "Degraded" and .reason == "RailTwice" and
	(.message | contains("rail 1: \"enp11s0f0np0\" of SriovNetworkPoolConfig orbweaver-system/gpus is NIC enp11s0f0np0, which is rail 0 already")))' \
	get sriovnetworknodestate gpu-1 -n orbweaver-system
twice=$(k patch sriovnetworkpoolconfig gpus -n orbweaver-system --type merge \
	-p '{"spec":{"rails":["enp12s0f0np0","enp12s0f0np0"]}}' 2>&1 >/dev/null || true)
t_ok "a name twice is refused, and named" grep -qF 'spec.rails: entry 1, "enp12s0f0np0", is listed before; name each NIC once' <<<"$twice"

k delete sriovnetworkpoolconfig gpus -n orbweaver-system >/dev/null
k delete sriovnetworknodepolicy rails -n orbweaver-system >/dev/null
t_wait 60 "without them PCI order counts again" rails_are "0 enp11s0f0np0,1 enp12s0f0np0,2 ens6f0np0"
"$orbweaver" simulate break gpu-1/enp11s0f0np0 pf-missing --state "$state" >/dev/null
t_wait 60 "a NIC that vanishes keeps its rail" rails_are "0 enp11s0f0np0*,1 enp12s0f0np0,2 ens6f0np0"
t_wait 60 "which is said" has '.status.conditions | any(.type == "Degraded" and .reason == "RailMissing" and
	(.message | contains("rail 0: NIC enp11s0f0np0 has vanished; bring it back")))' \
	get sriovnetworknodestate gpu-1 -n orbweaver-system
"$orbweaver" simulate repair gpu-1/enp11s0f0np0 --state "$state" >/dev/null
t_wait 60 "and has it again" rails_are "0 enp11s0f0np0,1 enp12s0f0np0,2 ens6f0np0"

# --- many nodes, and the page about rails ---------------------------------------------------------------------------------------
n=${LONG:+1000}
n=${n:-20}
kill "$pid"
wait "$pid" || true
line=$(doc rails.md 'simulate --node' | sed -n "s/.*--node '\(.*\)' &$/\1/p")
"$orbweaver" simulate --state "$state" --node "$line" --node "many-[1-$n]:8xconnectx-7,8xh100" >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
t_wait 120 "the nodes of rails.md and $n others start" grep -q '^export KUBECONFIG=' "$tmp/out"
t_wait 900 "all have labels of eight rails or nine" has "[.items[].metadata.labels | [.[\"rdma.orbweaver.io/rail.count\", \"rdma.orbweaver.io/rail.model\"]]] |
	group_by(.) | map([.[0][], length]) == [[\"8\", \"connectx-7\", $n], [\"9\", \"mixed\", 2]]" get nodes
for process in "$pid" $(pgrep -P "$pid"); do
	echo "# $(<"/proc/$process/comm"): $(awk '{ print $14 + $15 }' "/proc/$process/stat") ticks of CPU, $(awk '/^VmHWM/ { print $2, $3 }' "/proc/$process/status")"
done
t_eq "and the column" "$n 8,2 9" "$(k get sriovnetworknodestates -n orbweaver-system |
	awk 'NR == 1 { at = index($0, "RAILS") } NR > 1 { split(substr($0, at), field, " "); print field[1] }' | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd,)"
t_eq "topo has a row for each GPU and rail" 16 "$("$orbweaver" topo "many-$n" --kubeconfig "$state/kubeconfig" | grep -cE '^(GPU|RAIL)[0-7] .*(X .*NODE|NODE .*X)')"
t_ok "doctor --compare reads them all" "$orbweaver" doctor --compare --kubeconfig "$state/kubeconfig"
t_ok "rails.md: topo of its node" "$orbweaver" topo gpu-1 --kubeconfig "$state/kubeconfig"
t_ok "rails.md: its NIC vanishes" bash -c "$(doc rails.md 'simulate break' | sed -n "s|^orbweaver simulate break|'$orbweaver' simulate --state '$state' break|p")"
k label node "many-$n" nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 >/dev/null
names=$(k get sriovnetworknodestate "many-$n" -n orbweaver-system -o json | jq -r '[.status.rails.list[].name] | reverse | join(", ")')
k apply -f <(doc rails.md 'kind: SriovNetworkPoolConfig' | sed "s/  rails: .*/  rails: [$names]/") >/dev/null
t_wait 60 "rails.md: the pool's list decides" has ".status.rails | .from == \"SriovNetworkPoolConfig orbweaver-system/dgx-h100\" and .count == 8 and
	([.list[].name] | join(\", \")) == \"$names\"" get sriovnetworknodestate "many-$n" -n orbweaver-system
k apply -f - >/dev/null <<YAML
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: rails, namespace: orbweaver-system }
spec: { nodeSelector: { kubernetes.io/hostname: many-$n }, resourceName: rails, numVfs: 2, isRdma: true, nicSelector: { pfNames: [ $names ] } }
YAML
# Pods of what the page has of them.
{
	printf 'apiVersion: v1\nkind: Pod\nmetadata: { name: near }\nspec:\n  containers:\n  - name: c\n    image: none\n'
	doc rails.md 'limits: {nvidia.com/gpu: 2, spidernet.io/rails: 2}    #' | sed 's/^/    /'
	printf -- '---\napiVersion: v1\nkind: Pod\n'
	doc rails.md 'labels: {orbweaver.io/rails: train}' | sed 's/^metadata:/&\n  name: train/; s/name: torch/&\n    image: none/'
	printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: { name: chosen }\nspec:\n  containers: [ { name: c, image: none } ]\n'
	doc rails.md 'rail.count: "8"' | sed 's/^/  /'
} >"$tmp/pods.yaml"
k apply -f "$tmp/pods.yaml" >/dev/null
for pod in near train chosen; do
	t_wait 60 "rails.md: its pod ($pod) runs" has '.status.phase == "Running"' get pod "$pod"
done
t_eq "rails.md: VFs near its GPUs" "PIX PIX" "$("$orbweaver" ledger default/near --kubeconfig "$state/kubeconfig" -o json | jq -r '[.items[].gpuDistance] | join(" ")')"
t_done

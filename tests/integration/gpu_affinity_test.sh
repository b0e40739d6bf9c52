#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# VFs near the GPUs of pods: a real agent with all of its processes and a real API server, on a node of files with two sockets, a
# GPU and a NIC on a switch of each; and VFs of the rails that a pod's label names. A kubelet of ours plays NVIDIA's device plugin.
# shellcheck disable=SC2317 # functions that run as COMMAND of a check look unreachable
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	exec unshare --net --mount --propagation private "$0" --inside
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ip link set lo up
# shellcheck source=tests/integration/operator.sh
. tests/integration/operator.sh

o_begin gpu-affinity --no-controllers
o_host
resource=spidernet.io/rails

# function_at ADDRESS PATH NUMA DEVICE CLASS VENDOR: a PCI function below bridges
function_at() {
	mkdir -p "$host/sys/devices/$2/$1"
	ln -s "../../../devices/$2/$1" "$host/sys/bus/pci/devices/$1"
	echo "$3" >"$host/sys/devices/$2/$1/numa_node"
	echo "0x$4" >"$host/sys/devices/$2/$1/device"
	echo "0x$5" >"$host/sys/devices/$2/$1/class"
	echo "0x$6" >"$host/sys/devices/$2/$1/vendor"
}

# socket NUMBER BUS: a switch with a GPU, a NIC and its three VFs
socket() {
	local bus=$2 path=pci0000:${2}0/0000:${2}0:01.0/0000:${2}1:00.0 pf=0000:${2}b:00.0 i vf

	function_at "0000:${bus}a:00.0" "$path/0000:${bus}2:04.0" "$1" 2330 030200 10de
	mkdir -p "$host/proc/driver/nvidia/gpus/0000:${bus}a:00.0"
	printf 'Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-%s\n' "$1" >"$host/proc/driver/nvidia/gpus/0000:${bus}a:00.0/information"
	function_at "$pf" "$path/0000:${bus}2:05.0" "$1" 1021 020000 15b3
	pf=$host/sys/bus/pci/devices/$pf
	mkdir "$pf/net" "$pf/net/rail$1"
	ln -s ../../drivers/mlx5_core "$pf/driver"
	echo 16 >"$pf/sriov_totalvfs"
	echo 3 >"$pf/sriov_numvfs"
	ip link add "rail$1" type veth peer name "peer$1"
	for i in 0 1 2; do
		vf=0000:${bus}b:00.$((i + 2))
		function_at "$vf" "$path/0000:${bus}2:05.0" "$1" 101e 020000 15b3
		ln -s ../../drivers/mlx5_core "$host/sys/bus/pci/devices/$vf/driver"
		ln -s "../0000:${bus}b:00.0" "$host/sys/bus/pci/devices/$vf/physfn"
		ln -s "../$vf" "$pf/virtfn$i"
	done
}

socket 0 1
socket 1 8

o_agent_user
o_offer rails 101e
o_spawn a "$o_programs/orbweaver-agent" "${o_offer_flags[@]}" --profile devices

# pod NAME LINE...: on the API server, and what the kubelet does for it, all at once; with the label $rails
pod() {
	o_curl POST /api/v1/namespaces/default/pods "$(jq -nc --arg name "$1" --arg resource "$resource" --arg rails "${rails:-}" '{metadata: {name: $name,
		labels: {"orbweaver.io/rails": $rails}},
		spec: {nodeName: "n1", automountServiceAccountToken: false, containers: [{name: "c", image: "none",
			resources: {limits: {($resource): "1", "nvidia.com/gpu": "1"}}}]}}')" >/dev/null
	# Kubelets hear of a pod by the API server's cache, which the agent asks.
	t_wait 30 "the API server's cache has pod $1" cached "$1"
	shift
	printf '%s\n' "$@" >&9
}

cached() {
	o_curl GET "/api/v1/namespaces/default/pods?resourceVersion=0" | jq -e --arg name "$1" '.items | any(.metadata.name == $name)'
}

# "POD DEVICE DISTANCE" of all, as the NodeState has them.
given() {
	o_curl GET "/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1" |
		jq -r --arg resource "$resource" '[.status.resources[] | select(.name == $resource).pods[] | "\(.pod) \(.device) \(.gpuDistance)"] |
			sort | join(", ")'
}

given_is() {
	[[ $(given) == "$1" ]]
}

offers_six() {
	o_curl GET "/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1" |
		jq -e --arg resource "$resource" '.status.resources[] | select(.name == $resource) | .registered and .healthy == 6'
}

metric_is() {
	o_http a /metrics | grep -qxF "orbweaver_gpu_affinity_devices{distance=\"$1\"} $2"
}

far() {
	o_curl GET /api/v1/namespaces/default/events | jq -e --arg pod "$1" '.items | any(.reason == "FarFromGpu" and
		.involvedObject.name == $pod and (.message | contains("0000:1b:00.2 of rail0 is SYS from the pod'"'"'s GPUs, and 0000:8b:00.3 of rail1 (PIX) was free")))'
}

rails_are() {
	o_curl GET "/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1" |
		jq -e --argjson n "$1" '.status.rails.count == $n'
}

other_rails() {
	o_curl GET /api/v1/namespaces/default/events | jq -e --arg pod "$1" '.items | any(.reason == "OtherRails" and
		.involvedObject.name == $pod and (.message | contains("rail 5 has no NIC on this node")))'
}

t_wait 60 "the kubelet has six VFs" offers_six
t_need
pod near "gpu default/near GPU-1" "come default/near $resource 1"
t_wait 30 "a pod whose GPU came first has the VF of its switch" given_is "default/near/c 0000:8b:00.2 PIX"
t_wait 30 "which is counted" metric_is PIX 1
# The other GPU is free, so the VF is of its switch; then time slicing gives the pod the GPU that is held.
pod distant "come default/distant $resource 1" "gpu default/distant GPU-1::1"
t_wait 30 "a pod that got its VF first may have a distant one" given_is \
	"default/distant/c 0000:1b:00.2 SYS, default/near/c 0000:8b:00.2 PIX"
t_wait 30 "counted, too" metric_is SYS 1
t_wait 30 "an event on it says what was free" far distant
t_fails "none on the other" far near

# The free GPU is on the switch of rail 0.
k patch sriovnetworknodestate n1 -n "$POD_NAMESPACE" --type merge \
	-p '{"spec": {"rails": {"from": "SriovNetworkPoolConfig gpu", "order": ["rail0", "rail1"], "exact": true}}}' >/dev/null
t_wait 30 "NICs have rails" rails_are 2
rails=1 pod listed "come default/listed $resource 1"
t_wait 30 "a pod whose label names rail 1 has a VF of it" given_is \
	"default/distant/c 0000:1b:00.2 SYS, default/listed/c 0000:8b:00.3 null, default/near/c 0000:8b:00.2 PIX"
rails=5 pod beyond "come default/beyond $resource 1"
t_wait 30 "a pod that cannot have its rails has an event that says why" other_rails beyond
t_fails "none on the one that has them" other_rails listed
exec 9>&-
o_end a
t_done

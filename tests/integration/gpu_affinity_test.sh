#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# VFs near the GPUs of pods: a real agent with all of its processes and a real API server, on a node of files with two sockets, a
# GPU and a NIC on a switch of each; and VFs of the rails that a pod's label names. A kubelet of ours plays NVIDIA's device plugin.
# Then a real kubelet, on a node of files with eight GPUs and eight NICs, a pair on each switch: sets of 1, 2, 4 and 8 GPUs, with
# the GPUs allocated before the VFs and after them. Device plugins of GPUs and VFs are both there; functions are files.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	hack/deps cluster kubelet
	hack/k8s-build kubelet
	exec unshare --net --mount --propagation private "$0" --inside
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ip link set lo up
. tests/integration/operator.sh
. tests/integration/real_kubelet.sh

o_begin gpu-affinity --no-controllers
trap 'end_node; o_clean_up' EXIT
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

# pair NUMBER BUS NUMA: a switch with a GPU, a NIC and its three VFs
pair() {
	local bus=$2 path=pci0000:${2}0/0000:${2}0:01.0/0000:${2}1:00.0 pf=0000:${2}b:00.0 i vf

	function_at "0000:${bus}a:00.0" "$path/0000:${bus}2:04.0" "$3" 2330 030200 10de
	mkdir -p "$host/proc/driver/nvidia/gpus/0000:${bus}a:00.0"
	printf 'Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-%s\n' "$1" >"$host/proc/driver/nvidia/gpus/0000:${bus}a:00.0/information"
	function_at "$pf" "$path/0000:${bus}2:05.0" "$3" 1021 020000 15b3
	pf=$host/sys/bus/pci/devices/$pf
	mkdir "$pf/net" "$pf/net/rail$1"
	ln -s ../../drivers/mlx5_core "$pf/driver"
	echo 16 >"$pf/sriov_totalvfs"
	echo 3 >"$pf/sriov_numvfs"
	ip link show "rail$1" >/dev/null 2>&1 || ip link add "rail$1" type veth peer name "peer$1"
	ip link set "rail$1" up
	ip link set "peer$1" up
	for i in 0 1 2; do
		vf=0000:${bus}b:00.$((i + 2))
		function_at "$vf" "$path/0000:${bus}2:05.0" "$3" 101e 020000 15b3
		ln -s ../../drivers/mlx5_core "$host/sys/bus/pci/devices/$vf/driver"
		ln -s "../0000:${bus}b:00.0" "$host/sys/bus/pci/devices/$vf/physfn"
		ln -s "../$vf" "$pf/virtfn$i"
	done
}

pair 0 1 0
pair 1 8 1

o_agent_user
o_offer rails 101e
o_spawn a "$o_programs/orbweaver-agent" "${o_offer_flags[@]}" --profile devices

# pod NAME: on the API server; with the label $rails
pod() {
	o_curl POST /api/v1/namespaces/default/pods "$(jq -nc --arg name "$1" --arg resource "$resource" --arg rails "${rails:-}" '{metadata: {name: $name,
		labels: {"orbweaver.io/rails": $rails}},
		spec: {nodeName: "n1", automountServiceAccountToken: false, containers: [{name: "c", image: "none",
			resources: {limits: {($resource): "1", "nvidia.com/gpu": "1"}}}]}}')" >/dev/null
	# Kubelets hear of a pod by the API server's cache, which the agent asks.
	t_wait 30 "the API server's cache has pod $1" cached "$1"
}

# tries NAME LINES COMMAND...: what the kubelet does for the pod, all at once, and what comes of it. No pod waits longer than the agent
# asks kubelet and API server: where the answer comes too late, the pod goes, and another try follows.
tries() {
	local n

	printf '%s\n' "$2" >&9
	for n in {1..20}; do
		"${@:3}" && return
		sleep 0.5
	done
	echo "try $n: $(given)"
	echo "go default/$1" >&9
	return 1
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
pod near
t_wait 90 "a pod whose GPU came first has the VF of its switch" tries near "gpu default/near GPU-1"$'\n'"come default/near $resource 1" \
	given_is "default/near/c 0000:8b:00.2 PIX"
t_wait 30 "which is counted" metric_is PIX 1
# The other GPU is free, so the VF is of its switch; then time slicing gives the pod the GPU that is held.
pod distant
t_wait 90 "a pod that got its VF first may have a distant one" tries distant "come default/distant $resource 1"$'\n'"gpu default/distant GPU-1::1" \
	given_is "default/distant/c 0000:1b:00.2 SYS, default/near/c 0000:8b:00.2 PIX"
t_wait 30 "counted, too" metric_is SYS 1
t_wait 30 "an event on it says what was free" far distant
t_fails "none on the other" far near

# The free GPU is on the switch of rail 0.
k patch sriovnetworknodestate n1 -n "$POD_NAMESPACE" --type merge \
	-p '{"spec": {"rails": {"from": "SriovNetworkPoolConfig gpu", "order": ["rail0", "rail1"], "exact": true}}}' >/dev/null
t_wait 30 "NICs have rails" rails_are 2
rails=1 pod listed
t_wait 90 "a pod whose label names rail 1 has a VF of it" tries listed "come default/listed $resource 1" \
	given_is "default/distant/c 0000:1b:00.2 SYS, default/listed/c 0000:8b:00.3 null, default/near/c 0000:8b:00.2 PIX"
rails=5 pod beyond
t_wait 90 "a pod that cannot have its rails has an event that says why" tries beyond "come default/beyond $resource 1" other_rails beyond
t_fails "none on the one that has them" other_rails listed
exec 9>&-
o_end a

# --- a real kubelet ---------------------------------------------------------------------------------------------------------

# The agent, and NVIDIA's device plugin as our own code plays it.
begin_real() {
	local n

	o_host "$tmp/eight"
	for n in 0 1 2 3 4 5 6 7; do
		pair "$n" "$((n + 1))" "$((n / 4))"
	done
	# Kubelets want an address that is not of the loopback.
	ip link add node0 type veth peer name node1
	ip addr add 192.0.2.1/24 dev node0
	ip link set node0 up
	ip link set node1 up
	ip route add default via 192.0.2.254
	start_node
	t_wait 60 "containerd serves" test -e "$tmp/ready"
	t_need
	init=$(child_of "$node_pid")
	kubelet_kubeconfig=$kubeconfig
	kubelet_config
	make_cgroups
	jq -n '{problems: [], resources: [{name: "nvidia.com/gpu", kind: "sriov", policy: "spread", wanted: 8, env: "PCIDEVICE_NVIDIA_COM_GPU", causes: [],
		devices: [range(8) | {id: "GPU-\(.)", healthy: true, numa: (. / 4 | floor), pf: "gpu\(.)", nodes: [], env: {}, info: {}}]}]}' \
		>"$tmp/gpus.json"
	start_kubelet
	t_wait 90 "the kubelet listens for plugins" inside test -S /var/lib/kubelet/device-plugins/kubelet.sock
	t_need
	start gpus "$(realpath "$o_programs")/tests/kubelet-tool" serve --devinfo /var/lib/kubelet/devinfo \
		--pod-resources /var/lib/kubelet/pod-resources/kubelet.sock /var/lib/kubelet/device-plugins "$tmp/gpus.json" \
		>"$tmp/gpus.out" 2>"$tmp/gpus.log"
	start real "$PWD/$o_programs/orbweaver-agent" --node k --kubeconfig "$agent_kubeconfig" --host-root "$host" \
		--metrics-addr 127.0.0.1:0 --cni-program "$PWD/$o_programs/orbweaver-cni" --profile devices --device-config sriovdp-config \
		>"$tmp/real.log" 2>&1
	t_wait 120 "GPUs and VFs are allocatable" has_all
	t_need
}

has_all() {
	k get node k -o json | jq -e --arg resource "$resource" '.status.allocatable | .["nvidia.com/gpu"] == "8" and .[$resource] == "24"'
}

# real_pod NAME FIRST N [SECOND]: a container with N of FIRST, then one with N of SECOND; the kubelet allocates in this order.
real_pod() {
	k apply -f - >/dev/null < <(jq -n --arg name "$1" --arg n "$3" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name}, spec: {
		nodeName: "k", hostNetwork: true, terminationGracePeriodSeconds: 0, restartPolicy: "Never", automountServiceAccountToken: false,
		containers: [$ARGS.positional | to_entries[] | {name: "c\(.key)", image: "localhost/busybox:1", imagePullPolicy: "Never",
			command: ["sleep", "3600"], resources: {limits: {(.value): $n}}}]}}' --args "$2" ${4:+"$4"})
}

is_running() {
	[[ $(k get pod "$1" -o 'jsonpath={.status.phase}') == Running ]]
}

# No GPU nor VF of pods whose names begin so is held any more.
are_gone() {
	[[ -z $(gpus_of "$1")$(vfs_of "$1") ]]
}

has_distances() {
	[[ $(vfs_of "$1" | tr ',' '\n' | grep -c ' [A-Z]') == "$2" ]]
}

# The GPUs of pods whose names begin so.
gpus_of() {
	grep '^{"allocated"' "$tmp/gpus.out" | tail -1 |
		jq -r --arg pod "default/$1" '[.allocated["nvidia.com/gpu"] // {} | to_entries[] | select(.value | startswith($pod)).key] | join(" ")'
}

# "RAIL DISTANCE" of a pod's VFs, as the NodeState has them.
vfs_of() {
	o_curl GET "/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates/k" |
		jq -r --arg pod "default/$1" '.status | .interfaces as $nics | [.resources[] | .pods // [] | .[] | select(.pod | startswith($pod)) |
			.device as $vf | "\($nics[] | select(any(.Vfs[]?; .pciAddress == $vf)).name) \(.gpuDistance)"] | sort | join(", ")'
}

# has_vfs NAME N [DISTANCE]: of N NICs, at this distance.
has_vfs() {
	local vfs

	vfs=$(vfs_of "$1")
	[[ $(tr ',' '\n' <<<"$vfs" | awk -v want="${3:-}" '!want || $2 == want { print $1 }' | sort -u | wc -l) == "$2" ]]
}

end_pod() {
	k delete pod "$1" --wait=true >/dev/null
	t_wait 60 "its devices are released" are_gone "$1"
}

# set_of N ORDER FIRST SECOND [DISTANCE]: VFs of N NICs. Where the agent's answer comes too late (tries()), the pod is made again.
set_of() {
	local name=$2-$1 try

	for try in 1 2 3 4 5 6; do
		t_wait 120 "$1 GPUs, $2: all is allocatable" has_all
		real_pod "$name" "$3" "$1" "$4"
		t_wait 120 "the pod runs" is_running "$name"
		t_wait 60 "and the distances of its VFs are known" has_distances "$name" "$1"
		if has_vfs "$name" "$1" "${5:-}" || ((try == 6)); then break; fi
		echo "# $(vfs_of "$name"): once more"
		end_pod "$name"
	done
	t_ok "VFs of $1 NICs${5:+, all $5}" has_vfs "$name" "$1" "${5:-}"
	echo "# $1 GPUs, $2: $(gpus_of "$name"); $(vfs_of "$name")"
	end_pod "$name"
}

k delete pod --all --force --grace-period=0 >/dev/null 2>&1
begin_real
for n in 1 2 4 8; do
	set_of "$n" gpu-first nvidia.com/gpu "$resource" PIX
	# On an idle node nothing says which GPUs come: as without GPUs, NICs of one socket; but all NICs for as many VFs.
	set_of "$n" vf-first "$resource" nvidia.com/gpu "$( ((n < 8)) || echo PIX)"
	((n < 8)) || continue
	real_pod rest nvidia.com/gpu "$((8 - n))"
	t_wait 120 "a pod has the other $((8 - n)) GPUs" is_running rest
	set_of "$n" vf-first-of-what-is-left "$resource" nvidia.com/gpu PIX
	end_pod rest
done
kill -TERM "$(<"$tmp/real.pid")" "$(<"$tmp/gpus.pid")"
t_done

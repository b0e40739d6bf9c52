#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Resources on a virtual node with eight RoCE NICs and a real kubelet: the AI guide's shared devices, one per NIC, and the seed's
# VFs, as the node's allocatable tells them. Their links then go and come, by cables, by hand and by ourselves: what NodeState,
# kubelet and Node say of it, and after how long. LONG=1: one flaps for minutes, too.
# shellcheck disable=SC2016 # expanded later
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

# The guide's ConfigMap with the NICs that the node has, in the same order.
guide() {
	awk -v ns="$POD_NAMESPACE" '/^  namespace:/ { $0 = "  namespace: " ns }
		/"ifNames"/ { sub(/\["[^"]*"\]/, "[\"enp" ++n "s0\"]") } { print }' crds/samples/ai-macvlan-shared-devices.yaml
}

# What the node has of the resources that match.
allocatable() {
	k get node "$a_node" -o json | jq -r --arg like "$1" '.status.allocatable | to_entries |
		map(select(.key | test($like)) | "\(.key | sub(".*/"; "")) \(.value)") | sort | join(", ")'
}

allocatable_is() {
	echo "$(allocatable "$1"), wanted $2"
	[[ $(allocatable "$1") == "$2" ]]
}

resources() {
	a_state '.status.resources | map("\(.name | sub(".*/"; "")) \(.healthy) of \(.wanted) \(.registered)") | sort | join(", ")'
}

resources_are() {
	echo "got $(resources), wanted $1"
	[[ $(resources) == "$1" ]]
}

# --- links ----------------------------------------------------------------------------------------------------------------

ports() {
	a_state ".status.linkHealth.ports // [] | map(select(.name == \"$1\")) | first | $2"
}

state_says() {
	[[ $(ports "$1" '"\(.verdict) \(.reason)"') == "$2" ]]
}

# The checkpoint has the devices that are healthy.
kubelet_has() {
	node "until [[ \$(jq -r '.Data.RegisteredDevices[\"spidernet.io/$1\"] | length' \
		/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint) == $2 ]]; do sleep 0.05; done"
}

node_says() {
	[[ $(o_curl GET "/api/v1/nodes/$a_node" | jq -r '.status.conditions[] | select(.type == "RdmaNetworkReady") |
		"\(.status) \(.reason)"') == "$1" ]]
}

bad_events() {
	k get events -A -o json | jq -r '.items[] | select(.reason | test("^(Link(Down|Flapping|Errors|Slow)|WriteUndone)$")) |
		"\(.count) \(.reason): \(.message)"'
}

until_so() {
	local who=$1 began=$SECONDS

	shift
	until "$@"; do
		time_is_left "$began" 60 || { echo "$who: not within $((SECONDS - began)) s: $*" && return 1; }
		sleep 0.05
	done
	echo "#   $who after $((($(date +%s%N) - ${started:?}) / 1000000)) ms" >>"$tmp/times"
}

all_three() {
	local pid pids=() status=0

	until_so NodeState state_says "enp$1s0" "$2" & pids+=($!)
	until_so kubelet kubelet_has "shared_cx5_gpu$1" "$3" & pids+=($!)
	until_so Node node_says "$4" & pids+=($!)
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	return "$status"
}

# PF K, what the NodeState, the kubelet and the Node say of it, TEXT, and what makes them say so.
told() {
	local text=$5

	: >"$tmp/times"
	started=$(date +%s%N)
	"${@:6}" >/dev/null
	t_ok "$text" all_three "${@:1:4}"
	cat "$tmp/times"
}

flap() {
	local words=()

	for _ in {1..20}; do words+=(pull 2 plug 5); done
	hack/node cable "$a_node" "$1" "${words[@]}" &
	flapping=$!
}

healthy="healthy LinkHealthy" lost="failed LinkDown"

a_begin resources --pfs 8 --roce --memory 1536 --segment wire --segment wire
# kubelet 1.20 does not get over a Node without status; it makes one of its own.
k delete node "$a_node" >/dev/null
a_kubelet_flag=
t_ok "kubelet and containerd" hack/node kubelet "$a_node"
t_need
# shellcheck disable=SC2016 # the node expands it
node 'for n in 1 2 3 4 5 6 7 8; do ip link set enp${n}s0 up; done'
a_start --link-limits=window=60,recover=5
t_ok "the AI guide's ConfigMap: a shared device per NIC" k apply -f <(guide)
eight=$(for n in 1 2 3 4 5 6 7 8; do printf 'shared_cx5_gpu%s 100\n' "$n"; done | paste -sd, | sed 's/,/, /g')
t_wait "$a_wait_s" "eight resources are allocatable" allocatable_is shared_cx5 "$eight"

a_policy mellanoxrdma '{"numVfs": 4, "isRdma": true, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:08:00.0"]}}'
t_wait "$a_wait_s" "the seed's policy: 4 VFs with RDMA" a_done 4
started=$(date +%s%N)
t_wait "$a_wait_s" "they are allocatable" allocatable_is mellanoxrdma "mellanoxrdma 4"
echo "# $((($(date +%s%N) - started) / 1000000)) ms after the NodeState said Succeeded; the kubelet tells its node's status every 5 s"
told="mellanoxrdma 4 of 4 true, $(for n in 1 2 3 4 5 6 7 8; do echo "shared_cx5_gpu$n 100 of 100 true"; done | paste -sd, | sed 's/,/, /g')"
t_wait "$a_wait_s" "the NodeState tells all of it" resources_are "$told"

t_wait "$a_wait_s" "all links are healthy" node_says "True LinkHealthy"

told 3 "$lost" 0 "False LinkDown" "a cable is pulled" hack/node cable "$a_node" 3 pull
t_wait "$a_wait_s" "the Node's allocatable follows" allocatable_is shared_cx5_gpu3 "shared_cx5_gpu3 0"
told 3 "$healthy" 100 "True LinkHealthy" "and plugged in" hack/node cable "$a_node" 3 plug
told 4 "$lost" 0 "False LinkDown" "an interface is set down" node ip link set enp4s0 down
t_eq "as what it is" "enp4s0 is set down; ip link set enp4s0 up" "$(ports enp4s0 .message)"
told 4 "$healthy" 100 "True LinkHealthy" "and up" node ip link set enp4s0 up

if [[ -n ${LONG:-} ]]; then
	told 5 "degraded LinkFlapping" 100 "False LinkFlapping" "a link that flaps 20 times is degraded, and works" flap 5
	wait "$flapping"
	echo "# $(ports enp5s0 .flaps) losses were seen"
	told 5 "$healthy" 100 "True LinkHealthy" "until it was good for as long as is configured" true
fi

# --- what is no fault of a link ------------------------------------------------------------------------------------------
# A pod has PF 2, and its network is bad; PF 6 negotiates anew, which is a loss where it takes long; on PF 8 we act ourselves.
node 'ip netns add pod && ip link set enp2s0 netns pod && ip -n pod link set enp2s0 up && ip -n pod addr add 10.9.0.2/24 dev enp2s0 &&
	ip addr add 10.9.0.1/24 dev enp1s0 && ip netns exec pod tc qdisc add dev enp2s0 root netem loss 20% corrupt 20% &&
	busybox ping -c 50 -i 0.2 -w 20 10.9.0.2 | tail -n 2 | sed "s/^/# /"; ip -n pod link set enp2s0 netns 1; ip netns del pod; ip link set enp2s0 up
	ethtool -r enp6s0'
a_policy mellanoxrdma '{"numVfs": 2, "mtu": 2000, "isRdma": true, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:08:00.0"]}}'
t_wait "$a_wait_s" "a policy takes VFs away and sets an MTU" a_done 2
t_eq "which is not counted" 0 "$(ports enp8s0 .flaps)"
t_ok "all links are healthy all the while" node_says "True LinkHealthy"
bad_events | sed 's/^/# /'
t_eq "and have lost nothing that anybody was told of" 0 "$(bad_events | grep -vc 'enp[3456]s0')"

# --- drivers -------------------------------------------------------------------------------------------------------------
told 7 "$lost" 0 "False LinkDown" "a driver is unbound" node 'echo 0000:07:00.0 >/sys/bus/pci/drivers/igb/unbind'
told 7 "$healthy" 100 "True LinkHealthy" "and bound" \
	node 'echo 0000:07:00.0 >/sys/bus/pci/drivers/igb/bind; udevadm settle; ip link set enp7s0 up'

# --- agents --------------------------------------------------------------------------------------------------------------
node 'kill -TERM $(cat /root/agent.pid)'
t_wait 30 "no agent" a_gone
hack/node cable "$a_node" 3 pull
told 3 "$lost" 0 "False LinkDown" "a link that is lost while no agent runs" a_start --link-limits=window=60,recover=5
hack/node cable "$a_node" 3 plug

a_end
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Resources on a virtual node with eight RoCE NICs and a real kubelet: the AI guide's shared devices, one per NIC, and the seed's
# VFs, as the node's allocatable tells them.
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

a_begin resources --pfs 8 --roce --memory 1536
# kubelet 1.20 does not get over a Node without status; it makes one of its own.
k delete node "$a_node" >/dev/null
a_kubelet_flag=
t_ok "kubelet and containerd" hack/node kubelet "$a_node"
t_need
# shellcheck disable=SC2016 # the node expands it
node 'for n in 1 2 3 4 5 6 7 8; do ip link set enp${n}s0 up; done'
a_start
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

a_end
t_done

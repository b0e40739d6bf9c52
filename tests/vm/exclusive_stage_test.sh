#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/node --exclusive: RDMA devices that move with their VFs into a pod's network namespace and come back, and RDMA traffic
# between pods of two nodes: what the tests of exclusive mode stand on.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run
vf=/sys/bus/pci/devices/0000:01:10.0
tool=${BUILD:-build}/${VARIANT:-asan}/tests/host-tool

clean_up() {
	hack/node down one two >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

status=0
hack/node-build --exclusive || status=$?
if ((status == 77)); then
	t_skip "RDMA devices move between namespaces" "hack/node-build --exclusive has nothing to build from"
	t_done
fi

one() {
	hack/node exec one "$@"
}

# output TEXT COMMAND...: the command prints TEXT and nothing else.
output() {
	local got

	got=$("${@:2}" 2>&1)
	[[ $got == "$1" ]] || { echo "got: $got" && return 1; }
}

# pod NODE ADDRESS: a namespace with VF 0, in the order of the CNI plugins: the interface first, then its RDMA device.
pod() {
	hack/node exec "$1" "set -e
		ip link set enp1s0 up; echo 2 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs; udevadm settle
		ip netns add pod; ip link set enp1s0v0 netns pod; rdma dev set rxe-enp1s0v0 netns pod
		ip netns exec pod sh -c 'ip link set lo up; ip link set enp1s0v0 name net1; ip addr add $2/24 dev net1; ip link set net1 up'
		for i in \$(seq $(slowly 150)); do ip netns exec pod rdma link | grep -q ACTIVE && exit; sleep 0.2; done; exit 1"
}

# traffic SERVER CLIENT: in the pods of the two nodes. The client tries again until the server listens.
traffic() {
	local status=0 server

	one "ip netns exec pod timeout $(slowly 90) $1" &
	server=$!
	hack/node exec two "for n in 1 2 3 4 5 6 7 8 9; do sleep 3; ip netns exec pod timeout $(slowly 90) $2 && exit; done; exit 1" || status=$?
	wait "$server" && return "$status"
}

slowness_measure
t_ok "two nodes start" hack/node up one two --exclusive --segment stage --roce --append ib_core.netns_mode=0
t_ok "the RDMA subsystem is in exclusive mode" output "netns exclusive" one "rdma system | grep -o 'netns [a-z]*'"
t_ok "a pod's namespace takes VF and RDMA device" pod one 10.3.0.1
t_ok "on the other node, too" pod two 10.3.0.2
t_ok "the host does not see the device any more" output "" one "rdma dev | grep enp1s0v0; ls $vf/infiniband"
t_ok "the pod sees it and no other" output rxe-enp1s0v0 one "ip netns exec pod ls /sys/class/infiniband"
t_ok "its GID is the pod's address" one "ip netns exec pod grep -q ffff:0a03:0001 /sys/class/infiniband/rxe-enp1s0v0/ports/1/gids/1"
t_ok "its verbs device opens in the pod" one "ip netns exec pod sh -c ': <>/dev/infiniband/\$(ls $vf/infiniband_verbs)'"
t_fails "and not on the host" one "sh -c ': <>/dev/infiniband/\$(ls $vf/infiniband_verbs)'"
verbs="$PWD/${BUILD:-build}/${VARIANT:-asan}/orbweaver doctor --verbs rxe-enp1s0v0"
t_ok "orbweaver sends a message to itself by it in the pod" one "ip netns exec pod $verbs | grep VerbsWork"
t_ok "and says on the host that it is elsewhere" one "$verbs | grep RdmaModeDiffers"
t_ok "rping from pod to pod" traffic "rping -s -a 10.3.0.1 -C 3" "rping -c -a 10.3.0.1 -C 3"
t_ok "ib_read_lat from pod to pod" traffic "ib_read_lat -d rxe-enp1s0v0 -n 100" "ib_read_lat -d rxe-enp1s0v0 -n 100 10.3.0.1"
# What the kernel counts for it, asked from the host: see nodeagent/host/counters.h.
counted=$(one "$tool counters" | jq -r '.devices[] | select(.pciAddress == "0000:01:10.0") |
	"\(.namespace.path) \(.netdev) \(.rdma) \(.counted.rdma.rcvd_pkts > 0) \(.counted.problem)"')
t_eq "its counters are found in its namespace" "run/netns/pod net1 rxe-enp1s0v0 true null" "$counted"
t_ok "the namespace ends" one "ip netns del pod"
t_ok "VF and RDMA device are on the host again" one \
	"for i in \$(seq $(slowly 50)); do rdma link | grep -q 'rxe-enp1s0v0/1 .* netdev net1' && exit; sleep 0.2; done; exit 1"
t_ok "the kernel has nothing to complain about" output "" one "dmesg | grep -E 'WARNING|BUG|Oops|waiting for'"

t_done

#!/bin/bash
# The plugin sriov with an interface that plays a VF's, in real network namespaces: it goes into the pod with its new name and
# comes back as it was, wherever ADD or DEL is killed. As root; no cluster.
# shellcheck disable=SC2317 # functions that run as COMMAND of a check look unreachable
set -euo pipefail

if [[ ${1:-} != inside ]]; then
	cd "$(dirname "$0")/../.."
	. tests/lib.sh
	if ((EUID != 0)) || ! unshare --net --mount ip link add probe0 type veth peer name probe1 2>/dev/null; then
		t_skip "interfaces move into pods and back" "needs root, network namespaces and veth"
		t_done
	fi
	exec unshare --net --mount "$0" inside
fi
cd "$(dirname "$0")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tool=${BUILD:-build}/${VARIANT:-asan}/tests/attach-tool
vf=0000:01:10.0
name=enp1s0v0
export ATTACH_ROOT=$tmp/root

mount --make-rprivate /
mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
devices=$ATTACH_ROOT/sys/bus/pci/devices
mkdir -p "$devices"/{$vf/net/$name,0000:01:00.0/net/enp1s0} "$ATTACH_ROOT"/sys/bus/pci/drivers/igbvf
ln -s ../0000:01:00.0 "$devices/$vf/physfn"
ln -s ../../drivers/igbvf "$devices/$vf/driver"
ln -s ../$vf "$devices/0000:01:00.0/virtfn0"
ip link set lo up
ip link add enp1s0 type veth peer name wire0
ip link set enp1s0 up
ip link set wire0 up
ip link add $name link enp1s0 address 02:00:00:00:03:01 mtu 1400 type macvlan mode bridge
ip netns add pod

config='{"cniVersion": "1.0.0", "name": "n", "type": "sriov", "deviceID": "'$vf'", "ipam": {"type": "x"}}'
ipam='{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.9.0.5/24", "gateway": "10.9.0.1"},
	{"version": "6", "address": "fd09::5/64"}], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.8.0.0/16", "gw": "10.9.0.9"}]}'

# call COMMAND [CONFIG [IPAM]]
call() {
	"$tool" "$1" sriov net1 /run/netns/pod "$tmp/state" "${2:-$config}" "${3-$ipam}"
}

seen() {
	ip -j link show | jq -c '[.[] | select(.ifname | startswith("enp1s0v") or startswith("vf")) | {ifname, address, mtu, up: (.flags | contains(["UP"]))}]'
	ip -n pod -j link show | jq -c '[.[].ifname]'
}

is_as_before() {
	[[ $(seen) == "$before" ]] || { printf 'before: %s\nnow: %s\n' "$before" "$(seen)" && return 1; }
}

refused() {
	local reason=$1 output

	shift
	if output=$("$@" 2>&1) || [[ $output != *"\"$reason\""* ]]; then
		printf 'expected: %s\ngot: %s\n' "$reason" "$output"
		return 1
	fi
}

before=$(seen)
t_eq "ADD says what it made" '{"mac":"02:00:00:00:03:01","mtu":1400,"name":"net1","sandbox":"/run/netns/pod"} 10.9.0.5/24 fd09::5/64' \
	"$(call ADD | jq -rc '(.interfaces[0] | tojson) + " " + ([.ips[].address] | join(" "))')"
t_eq "the interface is in the pod, up, with addresses" "02:00:00:00:03:01 true 10.9.0.5 fd09::5" \
	"$(ip -n pod -j addr show net1 | jq -r '.[0] | [.address, (.flags | contains(["UP"])), (.addr_info[] | select(.scope == "global").local)] | join(" ")')"
t_eq "and routes" "default 10.9.0.1, 10.8.0.0/16 10.9.0.9" \
	"$(ip -n pod -j route show | jq -r '[.[] | select(.gateway) | "\(.dst) \(.gateway)"] | join(", ")')"
t_ok "CHECK finds it" call CHECK
t_ok "DEL" call DEL
t_ok "puts it back as it was" is_as_before
t_eq "and keeps nothing" null "$(cat "$tmp/state")"
t_ok "a second DEL has nothing to do" call DEL

t_ok "a pod that has such an interface" ip -n pod link add net1 type veth peer name x
t_ok "is refused" refused InterfaceExists call ADD
ip -n pod link del net1
t_ok "another pod's VF is refused" env ATTACH_FOREIGN=1 bash -c "! '$tool' ADD sriov net1 /run/netns/pod '$tmp/state' '$config' | grep -v DeviceBusy"
t_ok "without addresses" refused NoAddress call ADD "$config" ""
t_ok "all is taken back" is_as_before
t_ok "a route that cannot be" refused StepRefused call ADD "$config" \
	'{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.9.0.5/24"}], "routes": [{"dst": "0.0.0.0/0", "gw": "9.9.9.9"}]}'
t_ok "takes all back, too" is_as_before

ip link property add dev $name altname net1
t_ok "an alternative name is not in the way" call ADD
ip link add $name type veth peer name y
t_ok "nor is somebody who took the name meanwhile" call DEL
t_eq "the VF has another name then" "vf0 02:00:00:00:03:01" "$(ip -j link show vf0 | jq -r '.[0] | [.ifname, .address] | join(" ")')"
ip link del $name
ip link set vf0 name $name
t_ok "(named as before by hand)" is_as_before

call ADD >/dev/null
t_ok "a pod that renames its interface" ip -n pod link set net1 down name mine
t_ok "and puts another in its place" ip -n pod link add net1 type veth peer name x
t_ok "does not lose that" call DEL
t_ok "it is there" ip -n pod link show net1
ip -n pod link del net1
ip -n pod link set mine netns $$ name $name
t_ok "(moved back by hand)" is_as_before

status=0
for ((n = 0; n < 60; n++)); do
	status=0
	ATTACH_DIE=$n call ADD >/dev/null 2>&1 || status=$?
	((status == 0)) && break
	call DEL >/dev/null
	is_as_before >"$tmp/out" || break
done
t_eq "ADD killed before each of its messages in turn leaves nothing behind DEL" 0 "$status"
((status == 0)) || sed 's/^/#   /' "$tmp/out"
t_ok "it had several ($n)" test "$n" -gt 5
for ((n = 0; n < 60; n++)); do
	status=0
	ATTACH_DIE=$n call DEL >/dev/null 2>&1 || status=$?
	((status == 0)) && break
done
t_eq "DEL killed before each of its messages, and called again, ends" 0 "$status"
t_ok "with all as before" is_as_before

# --- what needs hardware is refused by name without it ------------------------------------------------------------------
refuses() {
	refused "$1" "$tool" ADD "$2" net1 /run/netns/pod "$tmp/other" "$3"
}
rdma='{"cniVersion": "1.0.0", "name": "n", "deviceID": "'$vf'", "prevResult": {"cniVersion": "1.0.0"}}'
t_ok "rdma, where RDMA devices do not move" refuses RdmaUnavailable rdma "$rdma"
t_ok "ib-sriov with rdmaIsolation, the same" refuses RdmaUnavailable ib-sriov "$(jq -c '.rdmaIsolation = true' <<<"$rdma")"
t_ok "ipoib on another interface" refuses BadField ipoib '{"cniVersion": "1.0.0", "name": "n", "master": "enp1s0"}'
t_ok "nothing came of it" is_as_before
for type in rdma ib-sriov ipoib; do
	rm -f "$tmp/other"
	t_ok "DEL of $type without ADD" "$tool" DEL $type net1 /run/netns/pod "$tmp/other" "$rdma"
	t_ok "and without the namespace" "$tool" DEL $type net1 "" "$tmp/other" "$rdma"
done

# --- coordinator: a stranger's packet comes in by the node, and its answer goes out by the node, too ------------------------
export ATTACH_SETTINGS='{"mode": "auto", "tunePodRoutes": true, "overlayPodCIDR": [], "serviceCIDR": []}'
coordinator='{"cniVersion": "1.0.0", "name": "n", "type": "coordinator", "prevResult": {"cniVersion": "1.0.0"}}'
ip netns add fabric
ip link set wire0 netns fabric
ip -n fabric link set wire0 up
ip -n fabric addr add 10.6.0.1/24 dev wire0
ip -n fabric addr add 10.99.0.1/32 dev wire0
ip addr add 10.6.0.10/24 dev enp1s0
ip route add 10.99.0.1/32 via 10.6.0.1
ip link add tmp0 link enp1s0 type macvlan mode bridge
ip link set tmp0 netns pod name eth0
ip -n pod addr add 10.6.0.50/24 dev eth0
ip -n pod link set eth0 up
ip -n pod route add default via 10.6.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
for i in all enp1s0; do echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"; done
t_ok "the pod's first NIC gets its coordinator" "$tool" ADD coordinator eth0 /run/netns/pod "$tmp/c" "$coordinator"
ip -n fabric route add 10.6.0.50/32 via 10.6.0.10 src 10.99.0.1
answered_by() {
	ip -n pod -j -s link show "$1" | jq '.[0].stats64.tx.packets'
}
was=$(answered_by veth0)
t_ok "a stranger reaches the pod by the node" ip netns exec fabric ping -c 3 -i 0.2 -W 2 -I 10.99.0.1 10.6.0.50
t_ok "and is answered by the node ($was, then $(answered_by veth0))" test "$(answered_by veth0)" -ge $((was + 3))
t_ok "CHECK finds all" "$tool" CHECK coordinator eth0 /run/netns/pod "$tmp/c" "$coordinator"
t_ok "DEL" "$tool" DEL coordinator eth0 /run/netns/pod "$tmp/c" "$coordinator"
t_eq "leaves no pair of links" "" "$(ip -j link show type veth | jq -r '.[].ifname | select(startswith("veth"))')"
t_done

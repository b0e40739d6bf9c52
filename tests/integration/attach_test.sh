#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The plugin sriov with an interface that plays a VF's, in real network namespaces: it goes into the pod with its new name and
# comes back as it was, wherever ADD or DEL is killed. As root; no cluster.
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

# A SpiderMultusConfig's network says VLAN and rates always; this PF says nothing of its VFs.
settings() {
	jq -c '. + {vlan: '"$1"', max_tx_rate: 0, min_tx_rate: 0}' <<<"$config"
}
t_ok "VLAN 0 is nothing to be set" call ADD "$(settings 0)"
t_ok "DEL" call DEL
t_ok "puts it back" is_as_before
t_ok "VLAN 5 cannot be set" refused InterfaceGone call ADD "$(settings 5)"

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

# --- eight rails in one subnet --------------------------------------------------------------------------------------------
# "SpiderIPPool gpu1-net11 … gateway: 172.16.11.254, subnet: 172.16.11.0/16" and seven more like it: all NICs of the pod are in
# 172.16.0.0/16. "Spiderpool will automatically tune policy routes for each network card, ensuring that external requests
# received on each card are returned through the same card." Each rail is a wire of its own here; who asks by one of them hears
# no other.
rails=/run/netns/rails
ip netns add rails
ip netns add switch
ip -n switch link set lo up
ip -n switch addr add 172.16.99.1/32 dev lo
ip link add cali0 type veth peer name eth0 netns rails
ip link set cali0 up
ip -n rails link set lo up
ip -n rails addr add 10.233.119.164/32 dev eth0
ip -n rails link set eth0 up
ip -n rails route add 169.254.1.1 dev eth0 scope link
ip -n rails route add default via 169.254.1.1 dev eth0
# shellcheck disable=SC2016 # the shell in the namespace expands it
as_linux_does='for i in all default; do
	for name in arp_ignore arp_announce rp_filter; do echo 0 >/proc/sys/net/ipv4/conf/$i/$name; done
done'
ip netns exec rails sh -c "$as_linux_does"
ip netns exec switch sh -c "$as_linux_does"
for i in {1..8}; do
	ip link add "rail$i" type veth peer name "port$i" netns switch
	ip link set "rail$i" up
	ip -n switch link set "port$i" up
	ip -n switch route add "172.16.1$i.0/24" dev "port$i" src 172.16.99.1
	ip -n switch route add 172.16.0.0/16 dev "port$i" metric "$i" src 172.16.99.1
done

# nic RAIL NETNS NAME ADDRESS: a macvlan as the plugin of that name leaves it
nic() {
	ip link add "tmp$1" link "rail$1" type macvlan mode bridge
	ip link set "tmp$1" netns "$2" name "$3"
	ip -n "$2" addr add "$4" dev "$3"
	ip -n "$2" link set "$3" up
}

# asked RAIL ADDRESS: somebody on the rail asks for the address and speaks to it
asked() {
	ip -n switch neigh flush dev "port$1"
	ip netns exec switch ping -c 1 -W 1 -I "port$1" "$2"
}

not_known() {
	! asked "$1" "$2" || return 1
	ip -n switch neigh show "$2" dev "port$1" | grep -E 'FAILED|INCOMPLETE'
}

# knows RAIL ADDRESS NETNS NAME: on the rail this interface answers for the address
knows() {
	asked "$1" "$2" >/dev/null || true
	[[ $(ip -n switch -j neigh show "$2" dev "port$1" | jq -r '.[0].lladdr') == \
		"$(ip -n "$3" -j link show "$4" | jq -r '.[0].address')" ]]
}

for_all() {
	local i

	for i in {1..8}; do
		"$@" "$i" || { echo "rail $i" && return 1; }
	done
}

answers_for_itself() {
	asked "$1" "172.16.1$1.1"
}

answers_for_no_other() {
	not_known "$1" "172.16.1$(($1 % 8 + 1)).1"
}

add_rail() {
	nic "$1" rails "net$1" "172.16.1$1.1/16"
	ip -n rails route append default via "172.16.1$1.254" dev "net$1"
	"$tool" ADD coordinator "net$1" "$rails" "$tmp/rail$1" "$coordinator"
}

check_rail() {
	"$tool" CHECK coordinator "net$1" "$rails" "$tmp/rail$1" "$coordinator"
}

speaks_as_itself() {
	ip -n rails neigh flush dev "net$1"
	ip -n switch neigh flush dev "port$1"
	ip netns exec rails ping -c 1 -W 1 -I "172.16.1$1.1" 172.16.99.1 &&
		[[ $(ip -n switch -j neigh show dev "port$1" | jq -r '[.[].dst] | join(" ")') == "172.16.1$1.1" ]]
}

t_ok "eight NICs of one subnet get their coordinators" for_all add_rail
t_ok "each answers for its own address, and by itself" for_all answers_for_itself
t_ok "and for no other's" for_all answers_for_no_other
t_ok "what each sends goes out by it, in its own name" for_all speaks_as_itself
t_eq "main keeps the cluster's default route and eight equal ways" "default 169.254.1.1 eth0, 8" \
	"$(ip -n rails -j route show | jq -r '([.[] | select(.dst == "default") | "\(.dst) \(.gateway) \(.dev)"] | join(" ")) + ", " +
		([.[] | select(.dst == "172.16.0.0/16")] | length | tostring)')"
t_eq "the last rail's table has its gateway" "default via 172.16.18.254 dev net8" \
	"$(ip -n rails route show table 108 default | sed 's/ *$//')"
t_ok "CHECK finds all of them" for_all check_rail
ip netns exec rails sh -c 'echo 2 >/proc/sys/net/ipv4/conf/net1/arp_ignore'
t_ok "a second ADD" "$tool" ADD coordinator net1 "$rails" "$tmp/rail1" "$coordinator"
t_eq "leaves a stricter setting" "2 2" "$(ip netns exec rails cat /proc/sys/net/ipv4/conf/net1/arp_{ignore,announce} | paste -sd' ')"

# --- the pod's first NIC is in the same subnet as its second, and nothing has a gateway ---------------------------------------
ip netns add twins
twins=/run/netns/twins
ip -n twins link set lo up
ip netns exec twins sh -c "$as_linux_does"
nic 1 twins eth0 172.16.11.2/16
nic 2 twins eth1 172.16.12.2/16
t_ok "two NICs of one subnet speak for each other as they are" knows 2 172.16.11.2 twins eth1
for i in 1 2; do
	"$tool" ADD coordinator "eth$((i - 1))" "$twins" "$tmp/twin$i" "$coordinator" >/dev/null
done
t_ok "without a default route the first NIC answers by itself" asked 1 172.16.11.2
t_ok "and so does the second" asked 2 172.16.12.2
t_ok "for its own address only" not_known 2 172.16.11.2

# --- podDefaultRouteNic names the third NIC of that subnet -------------------------------------------------------------------
ip netns add third
third=/run/netns/third
ip link add cali1 type veth peer name eth0 netns third
ip link set cali1 up
ip -n third link set lo up
ip -n third addr add 10.233.119.165/32 dev eth0
ip -n third link set eth0 up
ip -n third route add 169.254.1.1 dev eth0 scope link
ip -n third route add default via 169.254.1.1 dev eth0
wants=$coordinator
for i in 1 2 3; do
	((i < 3)) || wants=$(jq -c '.podDefaultRouteNic = "net3"' <<<"$coordinator")
	nic "$i" third "net$i" "172.16.1$i.3/16"
	ip -n third route append default via "172.16.1$i.254" dev "net$i"
	"$tool" ADD coordinator "net$i" "$third" "$tmp/third$i" "$wants" >/dev/null
done
t_eq "the default route is the third's" "default 172.16.13.254 net3" \
	"$(ip -n third -j route show default | jq -r '.[] | "\(.dst) \(.gateway) \(.dev)"')"
for i in 1 2 3; do
	t_ok "NIC $i answers by itself" asked "$i" "172.16.1$i.3"
done

# --- an address of the pod's own other NIC is no conflict -----------------------------------------------------------------------
# Two macvlans on one master hear each other, and Linux answers for any address of the namespace.
ip netns add pair
detecting=$(jq -c '.detectIPConflict = true' <<<"$coordinator")
ip link add cali2 type veth peer name eth0 netns pair
ip link set cali2 up
ip -n pair addr add 10.233.119.166/32 dev eth0
ip -n pair link set eth0 up
ip netns exec pair sh -c "$as_linux_does"
nic 1 pair net1 10.9.0.11/24
nic 1 pair net2 10.9.0.12/24
t_ok "the pod's own other NIC is nobody else" "$tool" ADD coordinator net1 /run/netns/pair "$tmp/pair1" "$detecting"
t_ok "nor is its first one" "$tool" ADD coordinator net2 /run/netns/pair "$tmp/pair2" "$detecting"
ip -n switch addr add 10.9.0.13/24 dev port1
nic 1 pair net3 10.9.0.13/24
t_ok "somebody else on the wire is" refused AddressInUse "$tool" ADD coordinator net3 /run/netns/pair "$tmp/pair3" "$detecting"
t_done

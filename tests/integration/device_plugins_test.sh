#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tuning, host-device and loopback of ours beside those of containernetworking-plugins, and dummy, which Debian's version does not
# have, in real network namespaces: the same configuration has the same result and effect, and fails where theirs fails. As root; no cluster.
# dummy, and ifacer's bond, are skipped where the kernel lacks them: tests/vm/interface_plugins_test.sh runs this where it does not.
# shellcheck disable=SC2016 # jq's variables
set -euo pipefail

cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/integration/plugins.sh
if [[ ${1:-} != inside ]]; then
	plugins_inside tuning "$0"
fi
plugins_start

# Links of the pod and the node, with all that these plugins set.
links() {
	local of

	for of in "-n pod" ""; do
		# shellcheck disable=SC2086 # options of ip
		ip $of -d -j addr show | jq -cS --arg of "${of:-node}" '.[] | select(.ifname != "lo") | { $of, ifname, address, mtu, txqlen, ifalias,
			flags: [.flags[] | select(test("^(UP|PROMISC|ALLMULTI)$"))] | sort,
			addresses: [.addr_info[] | select(.scope == "global") | "\(.local)/\(.prefixlen)"] }'
	done
}

sysctl_of() {
	ip netns exec pod cat "/proc/sys/net/ipv4/conf/net1/$1"
}

# --- tuning ---------------------------------------------------------------------------------------

before='{"cniVersion": "1.0.0", "interfaces": [{"name": "net1", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/pod"}], "ips": []}'

tuned_pod() {
	new_pod
	ip -n pod link add net1 address 02:00:00:00:00:01 mtu 1500 type veth peer name other address 02:00:00:00:00:02
}

# tunes NAME JSON: ADD, CHECK and DEL of both have the same effect.
tunes() {
	local json who result

	json=$(jq -c --argjson before "$before" '.prevResult = $before' <<<"$(config tuning "$2")")
	for who in theirs ours; do
		tuned_pod
		{
			echo "ADD: $(run "$who" ADD tuning "$json" | tee "$tmp/result")"
			links
			sysctl_of arp_filter
			result=$(cat "$tmp/result")
			[[ $result == "it fails" ]] ||
				echo "CHECK: $(run "$who" CHECK tuning "$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")")"
			ip -n pod link set net1 mtu 1200
			echo "DEL: $(run "$who" DEL tuning "$json")"
			[[ $expected == fails ]] || links
			echo "DEL: $(run "$who" DEL tuning "$json")"
		} >"$tmp/$who"
	done
	if [[ $expected == works ]]; then
		t_ok "tuning, $1" diff "$tmp/theirs" "$tmp/ours"
		t_fails "tuning, $1: it works" grep 'it fails' "$tmp/ours"
	else
		t_eq "tuning, $1" "ADD: it fails, ADD: it fails" "$(head -n 1 "$tmp/theirs"), $(head -n 1 "$tmp/ours")"
	fi
}

expected=works
tunes "a sysctl" '{"sysctl": {"net.ipv4.conf.net1.arp_filter": "1"}, "mtu": 1400}'
tunes "MAC, MTU" '{"mac": "02:00:00:00:00:0a", "mtu": 1400}'
tunes "flags" '{"promisc": true, "allmulti": true, "mtu": 1400}'
tunes "what the runtime says" '{"mtu": 1300, "runtimeConfig": {"mac": "02:00:00:00:00:0b"}}'
tunes "what the pod says" '{"mtu": 1300, "sysctl": {}, "args": {"cni": {"mtu": 1350, "mac": "02:00:00:00:00:0c"}}}'
expected=fails
tunes "a sysctl of another kind" '{"sysctl": {"kernel.panic": "1"}}'
tunes "a sysctl that does not exist" '{"sysctl": {"net.ipv4.mine": "1"}}'
tunes "a value that cannot be" '{"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "x"}}'
tunes "an MTU that cannot be" '{"mtu": 1}'
tunes "a MAC address that is none" '{"mac": "x"}'

# What Debian's version does not have: IFNAME with CHECK, the length of the queue.
tuned_pod
json=$(jq -c --argjson before "$before" '.prevResult = $before' <<<"$(config tuning '{"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "txQLen": 7}')")
t_ok "IFNAME and the queue" ours ADD tuning "$json"
t_ok "CHECK" ours CHECK tuning "$json"
t_eq "both are set" "1 7" "$(sysctl_of arp_filter) $(ip -n pod -j link show net1 | jq '.[0].txqlen')"
t_ok "DEL" ours DEL tuning "$json"
t_eq "both are as before" "0 1000" "$(sysctl_of arp_filter) $(ip -n pod -j link show net1 | jq '.[0].txqlen')"

# A name that is not in the list of the node, and one that is.
mkdir -p "$tmp/root/etc/cni/tuning"
echo '^net\.ipv4\.conf\.IFNAME\.arp_[a-z]+$' >"$tmp/root/etc/cni/tuning/allowlist.conf"
tuned_pod
json=$(jq -c --argjson before "$before" '.prevResult = $before' <<<"$(config tuning '{"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}}')")
t_ok "a sysctl of the list" env ATTACH_ROOT="$tmp/root" "$tool" ADD tuning net1 "$pod" "$tmp/state" "$json"
t_fails "one that is not on it" env ATTACH_ROOT="$tmp/root" "$tool" ADD tuning net1 "$pod" "$tmp/state" \
	"$(jq -c '.sysctl = { "net.ipv4.conf.IFNAME.forwarding": "1" }' <<<"$json")"

# After a failure all is as it was, and so it is after DEL of an ADD that was killed.
tuned_pod
links >"$tmp/before"
json=$(jq -c --argjson before "$before" '.prevResult = $before' <<<"$(config tuning \
	'{"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "mac": "02:00:00:00:00:0a", "promisc": true, "mtu": 1400}')")
t_fails "the second of two changes fails" ours ADD tuning "$(jq -c '.mtu = 1' <<<"$json")"
t_ok "the first is undone" diff "$tmp/before" <(links)
t_eq "so is the sysctl" 0 "$(sysctl_of arp_filter)"
for ((n = 0; n < 40; n++)); do
	status=0
	ATTACH_DIE=$n ours ADD tuning "$json" >/dev/null 2>&1 || status=$?
	((status == 0)) && break
	ours DEL tuning "$json" >/dev/null
	[[ $(links) == "$(cat "$tmp/before")" && $(sysctl_of arp_filter) == 0 ]] || break
done
t_eq "ADD of tuning killed at each step leaves nothing behind DEL" 0 "$status"
t_ok "it had several ($n)" test "$n" -gt 3
t_ok "DEL" ours DEL tuning "$json"
t_ok "sets all as it was" diff "$tmp/before" <(links)
t_eq "the sysctl, too" 0 "$(sysctl_of arp_filter)"
ip netns del pod
t_ok "DEL without the namespace" ours DEL tuning "$json"

# --- host-device ----------------------------------------------------------------------------------

new_device() {
	ip link del eth1 2>/dev/null || true
	ip link add eth1 address 02:00:00:00:00:11 mtu 1450 type veth peer name wire1 address 02:00:00:00:00:12
}

# gives NAME JSON [IPAM]: both give it to the pod, and take it back.
gives() {
	local json who result

	json=$(config host-device "$2" "${3:-}")
	for who in theirs ours; do
		new_pod
		new_device
		eval "${prepare:-}"
		{
			echo "ADD: $(run "$who" ADD host-device "$json" "${3:-}" | tee "$tmp/result")"
			links | sed 's/"txqlen":[0-9]*/"txqlen":0/'
			result=$(cat "$tmp/result")
			[[ $result == "it fails" ]] || echo "CHECK: $(run "$who" CHECK host-device \
				"$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")" "${3:-}")"
			[[ $expected == fails ]] || echo "DEL: $(run "$who" DEL host-device "$json" "${3:-}")"
			# Debian's version leaves the alias.
			links | sed 's/"txqlen":[0-9]*/"txqlen":0/; s/"ifalias":"eth1"/"ifalias":null/'
		} >"$tmp/$who"
	done
	if [[ $expected == works ]]; then
		t_ok "host-device, $1" diff "$tmp/theirs" "$tmp/ours"
		t_fails "host-device, $1: it works" grep 'it fails' "$tmp/ours"
	else
		t_eq "host-device, $1" "ADD: it fails, ADD: it fails" "$(head -n 1 "$tmp/theirs"), $(head -n 1 "$tmp/ours")"
	fi
}

expected=works
gives "by name" '{"device": "eth1"}'
gives "by MAC address, with addresses" '{"hwaddr": "02:00:00:00:00:11"}' "$v4"
gives "DNS of the network" '{"device": "eth1", "dns": {"nameservers": ["10.0.0.1"]}}' "$v4"
t_eq "it has no alias afterwards" null "$(ip -j link show eth1 | jq '.[0].ifalias')"
expected=fails
gives "no such interface" '{"device": "eth9"}'
gives "nothing named" '{}'
gives "a path outside of /sys/devices" '{"kernelpath": "/etc"}'
gives "IPAM that fails" '{"device": "eth1", "ipam": {"type": "x"}}'

# gives_not NAME PREPARE: ours alone refuses what the node uses itself, and changes nothing.
gives_not() {
	local json

	json=$(config host-device '{"device": "eth1"}')
	new_pod
	new_device
	eval "$2"
	links >"$tmp/before"
	t_ok "$1 is refused" grep -q '"details": "NodeInterface"' <(ours ADD host-device "$json")
	t_ok "nothing changes" diff "$tmp/before" <(links)
}

gives_not "an interface with an address of the node" 'ip address add 10.5.0.1/24 dev eth1'
gives_not "that of a route of the node" 'ip link set eth1 up; ip link set wire1 up; ip route add 10.6.0.0/16 dev eth1'
gives_not "a port of a bridge" 'ip link add br0 type bridge; ip link set eth1 master br0'
ip link del br0
new_pod
new_device
ip netns add tenant
if ip link add link eth1 name net1 netns tenant type macvlan mode bridge 2>/dev/null; then
	links >"$tmp/before"
	t_ok "one that a pod's macvlan lies on is refused" grep -q '"details": "DeviceBusy".*macvlan net1 in /run/netns/tenant' \
		<(ours ADD host-device "$(config host-device '{"device": "eth1"}')")
	t_ok "nothing changes" diff "$tmp/before" <(links)
else
	t_skip "host-device below a pod's macvlan" "the kernel lacks macvlan"
fi
ip netns del tenant
# A cable of the node to another namespace is no interface of a pod upon it.
ip netns add tenant
ip link set wire1 netns tenant
t_ok "one whose other end is elsewhere is given" ours ADD host-device "$(config host-device '{"device": "eth1"}')"
new_pod
ip netns del tenant
new_device
links >"$tmp/before"
json=$(config host-device '{"device": "eth1"}' "$v4")
for ((n = 0; n < 40; n++)); do
	new_pod
	status=0
	ATTACH_DIE=$n ours ADD host-device "$json" "$v4" >/dev/null 2>&1 || status=$?
	((status == 0)) && break
	ours DEL host-device "$json" "$v4" >/dev/null
	[[ $(links) == "$(cat "$tmp/before")" && $(cat "$tmp/state" 2>/dev/null || echo null) == null ]] || break
done
t_eq "ADD of host-device killed at each step leaves nothing behind DEL" 0 "$status"
t_ok "it had several ($n)" test "$n" -gt 4
ip -n pod link set net1 down
ip -n pod link set net1 name mine
ip -n pod link add net1 type veth peer name own
t_ok "DEL of an interface that the pod renamed" ours DEL host-device "$json" "$v4"
t_eq "brings it back" '["eth1","lo","wire1"]' "$(ip -j link show | jq -c '[.[].ifname] | sort')"
t_eq "and leaves the pod's own" '["lo","net1","own"]' "$(ip -n pod -j link show | jq -c '[.[].ifname] | sort')"
new_pod
theirs ADD host-device "$json" "$v4" >/dev/null
t_ok "DEL of what theirs gave" ours DEL host-device "$json" "$v4"
t_eq "brings it back" '["eth1","lo","wire1"]' "$(ip -j link show | jq -c '[.[].ifname] | sort')"

# --- dummy ----------------------------------------------------------------------------------------

if ip link add probe0 type dummy 2>/dev/null; then
	ip link del probe0
	json=$(config dummy '{}' "$both")
	new_pod
	result=$(ours ADD dummy "$json" "$both")
	t_eq "dummy" "net1 $pod 0 0 10.9.0.53" "$(jq -r '[.interfaces[0].name, .interfaces[0].sandbox, .ips[].interface, .dns.nameservers[0]] | join(" ")' <<<"$result")"
	t_eq "its kind, and that it is up" "dummy true" "$(ip -n pod -d -j link show net1 | jq -r '.[0] | "\(.linkinfo.info_kind) \(.flags | contains(["UP"]))"')"
	checked=$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")
	t_ok "CHECK" ours CHECK dummy "$checked" "$both"
	ip -n pod link set net1 down
	t_fails "CHECK of one that is down" ours CHECK dummy "$checked" "$both"
	t_ok "DEL" ours DEL dummy "$json" "$both"
	t_eq "takes it away" '["lo"]' "$(ip -n pod -j link show | jq -c '[.[].ifname]')"
	t_fails "without IPAM it is refused" ours ADD dummy "$(config dummy '{}')"
else
	t_skip "dummy" "the kernel lacks it"
fi

# --- loopback: the plugin's own, without an agent ---------------------------------------------------

ln -s "$(realpath "${BUILD:-build}/${VARIANT:-asan}/orbweaver-cni")" "$tmp/bin/loopback"
# loopback FOLDER COMMAND [JSON]
loopback() {
	CNI_COMMAND=$2 CNI_CONTAINERID=c1 CNI_NETNS=$netns CNI_IFNAME=lo CNI_PATH=$tmp/bin "$1/loopback" <<<"${3:-$(config loopback '{}')}"
}
for v6 in 0 1; do
	new_pod
	ip netns exec pod sysctl -qw "net.ipv6.conf.lo.disable_ipv6=$v6"
	ip -n pod link set lo down
	t_fails "loopback, disable_ipv6=$v6: CHECK of one that is down" loopback "$tmp/bin" CHECK
	t_ok "ADD" eval 'loopback "$tmp/bin" ADD >"$tmp/ours"'
	t_ok "CHECK" loopback "$tmp/bin" CHECK
	t_ok "their CHECK" loopback "$theirs" CHECK
	t_eq "their result" "$(loopback "$theirs" ADD | jq -cS .)" "$(jq -cS . "$tmp/ours")"
	# The specification wants more of versions before 1.0 than theirs has.
	for version in 0.3.1 0.4.0; do
		json=$(config loopback "{\"cniVersion\": \"$version\"}")
		loopback "$tmp/bin" ADD "$json" >"$tmp/ours"
		t_eq "in $version" "$(loopback "$theirs" ADD "$json" | jq -cS .)" "$(jq -cS 'del(.ips[].version)' "$tmp/ours")"
		t_eq "with families" true "$(jq '.ips | all((.version == "6") == (.address | contains(":")))' "$tmp/ours")"
	done
	t_eq "in 0.2.0" 127.0.0.1/8 "$(loopback "$tmp/bin" ADD "$(config loopback '{"cniVersion": "0.2.0"}')" | jq -r .ip4.ip)"
	json=$(jq -c --argjson before "$before" '.prevResult = ($before | .ips = [{ address: "10.9.0.2/16", interface: 0 }])' <<<"$(config loopback '{}')")
	t_eq "in a chain" "$(loopback "$theirs" ADD "$json" | jq -cS .)" "$(loopback "$tmp/bin" ADD "$json" | jq -cS '.dns //= {}')"
	t_ok "DEL" loopback "$tmp/bin" DEL
done
netns=/dev/null
t_fails "ADD without a namespace" loopback "$tmp/bin" ADD
t_ok "DEL without one" loopback "$tmp/bin" DEL

# --- ifacer: ours alone, Spiderpool's has no tests of its own here --------------------------------

new_pod
new_device
ip link add eth2 address 02:00:00:00:00:21 type veth peer name wire2
if ip link add link wire1 name probe0 type vlan id 5 2>/dev/null; then
	ip link del probe0
	json=$(config ifacer '{"interfaces": ["eth1"], "vlanID": 5}')
	t_eq "ifacer, a VLAN" '{"cniVersion":"1.0.0","dns":{}}' "$(ours ADD ifacer "$json" | jq -cS .)"
	t_eq "it is up" '["eth1","eth1.5"]' "$(ip -j link show up | jq -c '[.[].ifname | select(test("^eth1"))] | sort')"
	t_ok "another pod" ours ADD ifacer "$json"
	t_ok "CHECK" ours CHECK ifacer "$json"
	t_ok "DEL" ours DEL ifacer "$json"
	t_ok "the VLAN stays" ip link show eth1.5
	ip link set eth1.5 down
	t_fails "CHECK of one that is down" ours CHECK ifacer "$json"
	ip link del eth1.5
else
	t_skip "ifacer's VLAN" "the kernel lacks VLANs"
fi
ip link set eth1 up
ip link set eth2 up
ip netns add tenant
if ip link add link eth1 name net1 netns tenant type macvlan mode bridge 2>/dev/null; then
	t_ok "a port that a pod's macvlan lies on is refused" grep -q '"details": "DeviceBusy".*macvlan net1 in /run/netns/tenant' \
		<(ours ADD ifacer "$(config ifacer '{"interfaces": ["eth1", "eth2"], "bond": {"mode": 1}}')")
	t_fails "and no bond is made" ip link show sp_bond0
	t_eq "both ports stay up" '["eth1","eth2"]' "$(ip -j link show up | jq -c '[.[].ifname // "" | select(test("^eth[12]$"))] | sort')"
else
	t_skip "ifacer's port below a pod's macvlan" "the kernel lacks macvlan"
fi
ip netns del tenant
modprobe bonding 2>/dev/null || true
if ip link add probe0 type bond 2>/dev/null; then
	ip link del probe0
	json=$(config ifacer '{"interfaces": ["eth1", "eth2"], "vlanID": 7, "bond": {"mode": 1, "options": "primary=eth2;miimon=100;fail_over_mac=1"}}')
	t_ok "ifacer, a bond with a VLAN" ours ADD ifacer "$json"
	t_eq "its ports, and what is up" "active-backup 100 active eth1 eth2 sp_bond0.7@sp_bond0" "$(ip -d -j link show sp_bond0 |
		jq -r '.[0].linkinfo.info_data | "\(.mode) \(.miimon) \(.fail_over_mac)"') $(ip -j link show master sp_bond0 up |
		jq -r '[.[].ifname] | sort | join(" ")') $(ip -j link show sp_bond0.7 up | jq -r '.[0] | "\(.ifname)@\(.link)"')"
	t_eq "its primary port" eth2 "$(ip -d -j link show sp_bond0 | jq -r '.[0].linkinfo.info_data.primary')"
	t_ok "CHECK" ours CHECK ifacer "$json"
	ip link set eth2 nomaster
	t_fails "CHECK of a bond that lacks a port" ours CHECK ifacer "$json"
	t_ok "the next pod completes it" ours ADD ifacer "$json"
	t_ok "CHECK" ours CHECK ifacer "$json"
	t_ok "DEL" ours DEL ifacer "$json"
	t_ok "the bond stays" ip link show sp_bond0.7
	ip link del sp_bond0
	for options in 'arp_interval=200;arp_ip_target=["10.5.0.9","10.5.0.8"]' 'up_delay=100;miimon=50;xmit_hash_policy=1;mine=1'; do
		json=$(config ifacer '{"interfaces": ["eth1", "eth2"], "bond": {"mode": 1}}' | jq -c --arg options "$options" '.bond.options = $options')
		t_ok "options: $options" ours ADD ifacer "$json"
		ip link del sp_bond0
	done
	json=$(config ifacer '{"interfaces": ["eth1", "eth2"], "bond": {"mode": 4, "options": "lacp_rate=1;ad_actor_system=02:00:00:00:00:09;min_links=1"}}')
	t_ok "options of LACP" ours ADD ifacer "$json"
	t_eq "the kernel has them" "fast 02:00:00:00:00:09 1" "$(ip -d -j link show sp_bond0 |
		jq -r '.[0].linkinfo.info_data | "\(.ad_lacp_rate) \(.ad_actor_system) \(.min_links)"')"
	ip link del sp_bond0
	json=$(config ifacer '{"interfaces": ["eth1", "eth2"], "vlanID": 7, "bond": {"mode": 1, "options": "miimon=100"}}')
	ip link set eth1 down
	ip address add 10.5.0.1/24 dev eth1
	t_ok "an interface with an address of the node is refused" grep -q NodeInterface <(ours ADD ifacer "$json")
	t_fails "and no bond is made" ip link show sp_bond0
	ip address flush dev eth1
	for ((n = 0; n < 40; n++)); do
		status=0
		ATTACH_DIE=$n ours ADD ifacer "$json" >/dev/null 2>&1 || status=$?
		((status == 0)) && break
		ours ADD ifacer "$json" >/dev/null && ours CHECK ifacer "$json" >/dev/null || status=1
		ip link del sp_bond0
		((status == 137)) || break
	done
	t_eq "what an ADD that was killed left is completed by the next" 0 "$status"
	t_ok "it had several steps ($n)" test "$n" -gt 5
else
	t_skip "ifacer's bond" "the kernel lacks bonds"
fi
ip netns del pod
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# macvlan, ipvlan and vlan of ours beside those of containernetworking-plugins, in real network namespaces: the same configuration
# has the same result, the same interface, addresses and routes, and fails where theirs fails. As root; no cluster. Kinds of
# interfaces that the kernel lacks are skipped: tests/vm/interface_plugins_test.sh runs this where it has all.
# KINDS="ipvlan vlan": only those. STAGE=core: of each kind, addresses of both families, a failure, and what ours alone do.
set -euo pipefail

if [[ ${1:-} != inside ]]; then
	cd "$(dirname "$0")/../.."
	. tests/lib.sh
	. tests/integration/plugins.sh
	plugins_inside macvlan "$0"
fi
cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/integration/plugins.sh
plugins_start

ip link add eth1 mtu 1500 type veth peer name wire1
ip link add eth2 mtu 1500 type veth peer name wire2
ip address add 10.1.0.1/24 dev eth2
for nic in eth1 wire1 eth2 wire2; do
	ip link set $nic up
done
ip route add default via 10.1.0.9 dev eth2
ip link property add dev eth1 altname rail1 altname rail-one-of-the-node

# --- both runtimes --------------------------------------------------------------------------------

# What the pod has: interfaces with all that plugins set, addresses, routes. Left out is what newer versions of theirs, and ours,
# do in another way (the queue's length is the kernel's, keep_addr_on_down is 1), the scope of a route without a gateway
# (docs/cni.md), and what the kernel adds once it has looked for duplicates of an IPv6 address.
seen() {
	{
		ip -n pod -d -j addr show | jq -cS '.[] | select(.ifname != "lo") | { ifname, address, mtu, up: (.flags | contains(["UP"])),
			kind: .linkinfo.info_kind, data: (.linkinfo.info_data | { mode, id, protocol, flags, bcqueuelen }? // null),
			addresses: [.addr_info[] | select(.scope == "global") | { local, prefixlen, broadcast }] }'
		{
			ip -n pod -j route show table all
			ip -n pod -6 -j route show table all
		} | jq -csS 'add | map(select(.dev == "net1" and (.dst | test("^(fe80|ff00|multicast)") | not) and
			(.table != "local" or (.dst | test(":") | not))) | { type, dst, gateway, table, metric, protocol,
			prefsrc, scope: (if .gateway or .protocol then .scope else null end) }) | sort[]'
		ip netns exec pod sh -c 'cd /proc/sys/net; grep -H . ipv4/conf/net1/arp_notify ipv6/conf/net1/disable_ipv6 \
			2>/dev/null' || true
	} | without_chance
}

# story WHO TYPE CONFIG IPAM: ADD, what is there, CHECK, DEL, DEL once more, and without the namespace. In a pod of its own.
story() {
	local who=$1 type=$2 json=$3 ipam=${4:-} result checked version

	new_pod
	echo "ADD: $(run "$who" ADD "$type" "$json" "$ipam" | tee "$tmp/result.$who")"
	seen
	version=$(jq -r .cniVersion <<<"$json")
	if [[ $(cat "$tmp/result.$who") != "it fails" && $version != 0.[123]* ]]; then
		result=$(cat "$tmp/result.$who")
		[[ $result != *chance* ]] || result=$(jq -c --arg mac "$(ip -n pod -j link show net1 | jq -r '.[0].address')" '.interfaces[0].mac = $mac' <<<"$result")
		checked=$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")
		echo "CHECK: $(run "$who" CHECK "$type" "$checked" "$ipam")"
		ip -n pod link set net1 down
		ip -n pod address flush dev net1
		echo "CHECK without addresses: $(run "$who" CHECK "$type" "$checked" "$ipam")"
	fi
	echo "DEL: $(run "$who" DEL "$type" "$json" "$ipam")"
	echo "left: $(ip -n pod -j link show | jq -c '[.[].ifname]')"
	echo "DEL: $(run "$who" DEL "$type" "$json" "$ipam")"
	netns=/run/netns/gone
	echo "DEL, namespace gone: $(run "$who" DEL "$type" "$json" "$ipam")"
	netns=
	echo "DEL, none: $(run "$who" DEL "$type" "$json" "$ipam")"
}

# same NAME TYPE JSON [IPAM]: ours do as theirs do, and end as $expected says. A failure leaves nothing, and keeps DEL from nothing;
# theirs leave an interface whose addresses they could not have, and DEL fails with a configuration that ADD refused.
same() {
	local name=$1 type=$2 json ipam=${4:-}

	wanted "$name" && has_kind "$type" || return 0
	json=$(config "$type" "$3" "$ipam")
	story theirs "$type" "$json" "$ipam" >"$tmp/theirs"
	story ours "$type" "$json" "$ipam" >"$tmp/ours"
	if [[ $expected == works ]]; then
		t_ok "$type, $name" diff "$tmp/theirs" "$tmp/ours"
		t_fails "$type, $name: it works" grep '^[^:]*: it fails' <(grep -v '^CHECK without' "$tmp/ours")
	else
		t_eq "$type, $name" "ADD: it fails" "$(head -n 1 "$tmp/theirs")"
		t_eq "$type, $name: nothing is left" "$(printf '%s\n' 'ADD: it fails' 'DEL: null' 'left: ["lo"]' 'DEL: null' 'DEL, namespace gone: null' \
			'DEL, none: null')" "$(cat "$tmp/ours")"
	fi
}

# What stands for the rest with STAGE=core.
core="both families, several routes;no such master;CHECK: another address"
wanted() {
	[[ ${STAGE:-} != core || ";$core;" == *";$1;"* ]]
}

declare -A kinds=()
has_kind() {
	local more=()

	[[ " ${KINDS:-$1} " == *" $1 "* ]] || return
	if [[ -z ${kinds[$1]:-} ]]; then
		[[ $1 != vlan ]] || more=(id 5)
		kinds[$1]=no
		ip link add link wire1 name probe0 type "$1" "${more[@]}" 2>/dev/null && ip link del probe0 && kinds[$1]=yes
		[[ ${kinds[$1]} == yes ]] || t_skip "$1" "the kernel lacks it"
	fi
	[[ ${kinds[$1]} == yes ]]
}

# --- what works -----------------------------------------------------------------------------------

expected=works
for mode in bridge private vepa passthru; do
	same "mode $mode" macvlan '{"master": "eth1", "mode": "'$mode'"}' "$v4"
done
for mode in l2 l3 l3s; do
	same "mode $mode" ipvlan '{"master": "eth1", "mode": "'$mode'"}' "$v4"
done
same "without addresses" macvlan '{"master": "eth1"}'
same "mode and MTU of no meaning" macvlan '{"master": "eth1", "mode": "", "mtu": 0}' "$v4"
for id in 0 1 5 4094; do
	same "VLAN $id" vlan '{"master": "eth1", "vlanId": '$id'}' "$v4"
done
for type in macvlan ipvlan vlan; do
	id='"master": "eth1", "vlanId": 7'
	same "MTU" $type "{$id, \"mtu\": 1400}" "$v4"
	same "IPv6" $type "{$id}" "$v6"
	same "both families, several routes" $type "{$id}" "$both"
	same "DNS of the network" $type "{$id, \"dns\": {\"nameservers\": [\"10.0.0.1\"], \"search\": [\"a.b\"]}}" "$both"
	same "a result of an older IPAM plugin, cniVersion 0.3.1" $type "{$id, \"cniVersion\": \"0.3.1\"}" "$old"
done
id='"master": "eth1", "vlanId": 7'
same "keys in any case" macvlan '{"Master": "eth1", "MTU": 1300}' "$v4"
same "keys in any case" vlan '{"Master": "eth1", "VLANID": 7, "MTU": 1300}' "$v4"
same "unknown keys, null" macvlan "{$id, \"mine\": 1, \"mtu\": null}" "$v4"
same "a previous result" macvlan "{$id, \"prevResult\": {\"cniVersion\": \"1.0.0\", \"interfaces\": [{\"name\": \"other\"}], \"ips\": []}}" "$v4"
for version in 0.1.0 0.2.0 0.3.0 0.4.0 1.0.0; do
	same "cniVersion $version" macvlan "{$id, \"cniVersion\": \"$version\"}" "$old"
done
for type in macvlan ipvlan vlan; do
	same "an alternative name" $type '{"master": "rail1", "vlanId": 7}' "$v4"
done
for type in macvlan ipvlan; do
	same "no master: the default route's" $type '{}' "$v4"
done
same "a MAC address" macvlan '{"master": "eth1", "mac": "02:00:00:00:00:01"}' "$v4"
args='IgnoreUnknown=1;MAC=02:00:00:00:00:02;K8S_POD_NAME=p'
same "one of CNI_ARGS" macvlan '{"master": "eth1", "mac": "02:00:00:00:00:01"}' "$v4"
same "one of the runtime" macvlan '{"master": "eth1", "runtimeConfig": {"mac": "02:00:00:00:00:03"}}' "$v4"
args=
same "addresses and master of the plugin before" ipvlan '{"prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth1"}],
	"ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1", "interface": 0}], "routes": [{"dst": "0.0.0.0/0"}]}}'
same "addresses of the plugin before" ipvlan '{"master": "eth1", "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24"}]}}'

# --- what does not --------------------------------------------------------------------------------

expected=fails
for type in macvlan ipvlan vlan; do
	id='"master": "eth1", "vlanId": 7'
	same "no such master" $type '{"master": "eth9", "vlanId": 7}' "$v4"
	same "MTU above the master's" $type "{$id, \"mtu\": 1501}" "$v4"
	same "MTU below zero" $type "{$id, \"mtu\": -1}" "$v4"
	same "MTU in quotes" $type "{$id, \"mtu\": \"1400\"}" "$v4"
	same "a master that is a number" $type '{"master": 1, "vlanId": 7}' "$v4"
	same "a version that nobody knows" $type "{$id, \"cniVersion\": \"9.9.9\"}" "$v4"
	same "IPAM without an address" $type "{$id}" '{"cniVersion": "1.0.0"}'
	same "IPAM that fails" $type "{$id, \"ipam\": {\"type\": \"x\"}}"
	same "a route that cannot be" $type "{$id}" '{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24"}], "routes": [{"dst": "0.0.0.0/0", "gw": "9.9.9.9"}]}'
done
same "an unknown mode" macvlan '{"master": "eth1", "mode": "l2"}' "$v4"
same "an unknown mode" ipvlan '{"master": "eth1", "mode": "bridge"}' "$v4"
same "a MAC address of a group" macvlan '{"master": "eth1", "mac": "01:00:5e:00:00:01"}' "$v4"
same "a MAC address that is none" macvlan '{"master": "eth1", "mac": "x"}' "$v4"
same "a VLAN above all" vlan '{"master": "eth1", "vlanId": 4095}' "$v4"
same "no VLAN below zero" vlan '{"master": "eth1", "vlanId": -1}' "$v4"
same "no master" vlan '{"vlanId": 7}' "$v4"
same "no addresses" vlan '{"master": "eth1", "vlanId": 7}'
same "no addresses" ipvlan '{"master": "eth1"}'
same "two interfaces of the plugin before" ipvlan '{"prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth1"}, {"name": "eth2"}],
	"ips": [{"address": "10.9.0.5/24"}]}}'

# --- CHECK names what is different ----------------------------------------------------------------

# checks NAME TYPE JSON JQ: both refuse a CHECK whose configuration or result is changed by JQ.
checks() {
	local name=$1 type=$2 json who result

	wanted "CHECK: $name" && has_kind "$type" || return 0
	json=$(config "$type" "$3" "$v4")
	for who in theirs ours; do
		new_pod
		result=$("$who" ADD "$type" "$json" "$v4")
		t_fails "CHECK of $who: $type, $name" "$who" CHECK "$type" "$(jq -c --argjson result "$result" '.prevResult = $result | '"$4" <<<"$json")" "$v4"
		"$who" DEL "$type" "$json" "$v4" >/dev/null
	done
}

for type in macvlan ipvlan vlan; do
	id='"master": "eth1", "vlanId": 7'
	checks "another MAC" $type "{$id}" '.prevResult.interfaces[0].mac = "02:00:00:00:00:09"'
	checks "another namespace" $type "{$id}" '.prevResult.interfaces[0].sandbox = "/other"'
	checks "another address" $type "{$id}" '.prevResult.ips[0].address = "10.9.0.6/24"'
	checks "another route" $type "{$id}" '.prevResult.routes += [{ dst: "10.3.0.0/16", gw: "10.9.0.1" }]'
	checks "no previous result" $type "{$id}" 'del(.prevResult)'
	checks "a master that is gone" $type "{$id}" '.master = "eth9"'
	checks "a version without CHECK" $type "{$id}" '.cniVersion = "0.3.1"'
done
checks "another mode" macvlan '{"master": "eth1"}' '.mode = "vepa"'
checks "another mode" ipvlan '{"master": "eth1"}' '.mode = "l3"'
checks "another VLAN" vlan '{"master": "eth1", "vlanId": 7}' '.vlanId = 8'
checks "another MTU" vlan '{"master": "eth1", "vlanId": 7}' '.mtu = 1400'

# --- ours alone -----------------------------------------------------------------------------------
# What Debian's version does not have: newer keys and version 1.1.0. What is different on purpose: docs/cni.md.

has_name() {
	[[ $(jq -r '[.cniVersion, .interfaces[0].name, .ips[0].address] | join(" ")' <<<"$1") == "$2 net1 10.9.0.5/24" ]]
}

for type in macvlan ipvlan vlan; do
	has_kind $type || continue
	new_pod
	ip -n pod link add inner type veth peer name outer
	ip -n pod link set inner up
	ip -n pod link set outer up
	inside='{"master": "inner", "vlanId": 7, "linkInContainer": true}'
	t_ok "$type on an interface of the pod" has_name "$(ours ADD $type "$(config $type "$inside" "$v4")" "$v4")" 1.0.0
	t_ok "goes" ours DEL $type "$(config $type "$inside" "$v4")" "$v4"
	t_eq "and leaves what it was on" '["inner","lo","outer"]' "$(ip -n pod -j link show | jq -c '[.[].ifname] | sort')"
	new_pod
	json=$(config $type '{"master": "rail-one-of-the-node", "vlanId": 7}' "$v4")
	t_ok "$type on an interface by a long alternative name" has_name "$(ours ADD $type "$json" "$v4")" 1.0.0
	new_pod
	json=$(config $type '{"cniVersion": "1.1.0", "master": "eth1", "vlanId": 7}' "$v4")
	t_ok "$type in version 1.1.0" has_name "$(ours ADD $type "$json" "$v4")" 1.1.0
	ip -n pod link set net1 down
	ip -n pod link set net1 name mine
	ip -n pod link add net1 type veth peer name x
	t_ok "a pod's own interface of that name is left by DEL" ours DEL $type "$json" "$v4"
	t_ok "it is there" ip -n pod link show net1
	new_pod
	ip -n pod link add net1 type veth peer name x
	t_fails "a name that is taken is refused" ours ADD $type "$json" "$v4"
	t_ok "the pod keeps it" ip -n pod link show net1
	t_eq "and nothing else" '["lo","net1","x"]' "$(ip -n pod -j link show | jq -c '[.[].ifname] | sort')"

	# An interface of the node has that name, too, and a pod that was set up by theirs is taken down by ours.
	ip link add net1 type veth peer name x
	new_pod
	t_ok "$type beside an interface of the node of that name" has_name "$(ours ADD $type "$json" "$v4")" 1.1.0
	t_ok "DEL" ours DEL $type "$json" "$v4"
	t_ok "leaves the node's" ip link show net1
	ip link del net1
	json=$(config $type '{"master": "eth1", "vlanId": 7}' "$v4")
	new_pod
	result=$(theirs ADD $type "$json" "$v4")
	t_ok "$type: CHECK of what theirs made" ours CHECK $type "$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")" "$v4"
	t_ok "DEL of that" ours DEL $type "$json" "$v4"
	t_eq "takes it away" '["lo"]' "$(ip -n pod -j link show | jq -c '[.[].ifname]')"

	[[ ${STAGE:-} != core ]] || continue
	new_pod
	status=0
	for ((n = 0; n < 60; n++)); do
		status=0
		ATTACH_DIE=$n ours ADD $type "$json" "$v4" >/dev/null 2>&1 || status=$?
		((status == 0)) && break
		ours DEL $type "$json" "$v4" >/dev/null
		[[ $(ip -n pod -j link show | jq -c '[.[].ifname]') == '["lo"]' && $(cat "$tmp/state") == null ]] || break
	done
	t_eq "$type: ADD killed before each of its messages in turn leaves nothing behind DEL" 0 "$status"
	t_ok "it had several ($n)" test "$n" -gt 4
	for ((n = 0; n < 60; n++)); do
		status=0
		ATTACH_DIE=$n ours DEL $type "$json" "$v4" >/dev/null 2>&1 || status=$?
		((status == 0)) && break
	done
	t_eq "$type: DEL killed before each of its messages, and called again, ends" '0 ["lo"]' "$status $(ip -n pod -j link show | jq -c '[.[].ifname]')"
done

ip netns del pod
t_eq "nothing is left on the node" "eth1 eth2 lo wire1 wire2" "$(ip -j link show | jq -r '[.[].ifname] | sort | join(" ")')"
t_done

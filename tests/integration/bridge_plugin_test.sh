#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bridge of ours beside that of containernetworking-plugins, in real network namespaces: the same configuration has the same result,
# the same port and addresses, and fails where theirs fails. As root; no cluster. VLANs are skipped where the kernel's bridge cannot
# filter them: tests/vm/interface_plugins_test.sh runs this where it can.
# shellcheck disable=SC2016 # jq's variables
set -euo pipefail

cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/integration/plugins.sh
if [[ ${1:-} != inside ]]; then
	plugins_inside bridge "$0"
fi
plugins_start

# The node: bridges, with their addresses, and ports, whose VLANs and flags are compared.
node_seen() {
	ip -d -j addr show | jq -cS 'map(select(.ifname != "lo")) | (map({ key: .ifname, value: .linkinfo.info_kind }) | from_entries) as $kinds |
		map({ name: (.ifname | sub("^veth.*"; "veth")), kind: .linkinfo.info_kind, master, mtu, up: (.flags | contains(["UP"])),
		promisc: (.flags | contains(["PROMISC"])), filter: .linkinfo.info_data.vlan_filtering,
		hairpin: .linkinfo.info_slave_data.hairpin,
		addresses: [.addr_info[] | select(.scope == "global") | "\(.local)/\(.prefixlen) \(.broadcast)"] }) | sort_by(.name)[]'
	cat /proc/sys/net/ipv4/ip_forward
}

pod_seen() {
	ip -n pod -d -j addr show | jq -cS '.[] | select(.ifname != "lo") | { ifname, mtu, up: (.flags | contains(["UP"])),
		kind: .linkinfo.info_kind, addresses: [.addr_info[] | select(.scope == "global") | { local, prefixlen, broadcast }] }'
	{
		ip -n pod -j route
		ip -n pod -6 -j route
	} | jq -cs 'add | map(select(.dst | test("^fe80|^ff00") | not) | { dst, gateway }) | unique[]'
}

without_names() {
	sed -E 's/"veth[0-9a-f]+"/"veth"/g'
}

clean_node() {
	local name

	for name in $(ip -j -d link show type bridge | jq -r '.[].ifname?'); do
		ip link del "$name"
	done
	echo 0 >/proc/sys/net/ipv4/ip_forward
}

# story WHO CONFIG IPAM: ADD, what is there, CHECK, DEL, twice.
story() {
	local who=$1 json=$2 ipam=${3:-} result

	clean_node
	new_pod
	eval "${prepare:-}"
	if result=$("$who" ADD bridge "$json" "$ipam" 2>/dev/null); then
		echo "ADD: $(jq -cS . <<<"$result" | without_chance | without_names)"
		node_seen
		pod_seen
		# Theirs fails without IPAM.
		if [[ -n $ipam ]]; then
			json=$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")
			echo "CHECK: $(run "$who" CHECK bridge "$json" "$ipam")"
			ip -n pod address flush dev net1
			echo "CHECK without addresses: $(run "$who" CHECK bridge "$json" "$ipam")"
		fi
	else
		echo "ADD: it fails"
		[[ $who != ours ]] || t_eq "${json:0:60}: nothing is left" '["lo"]' "$(ip -n pod -j link show | jq -c '[.[].ifname]')" >&2
	fi
	echo "DEL: $(run "$who" DEL bridge "$json" "$ipam")"
	echo "DEL: $(run "$who" DEL bridge "$json" "$ipam")"
	echo "left: $(ip -n pod -j link show | jq -c '[.[].ifname]') $(ip -j link show | jq -c '[.[].ifname]')"
}

# same NAME JSON [IPAM]: ours does as theirs does, and ends as $expected says.
same() {
	local name=$1 json

	json=$(config bridge "$2" "${3:-}")
	story theirs "$json" "${3:-}" >"$tmp/theirs"
	story ours "$json" "${3:-}" >"$tmp/ours"
	if [[ $expected == works ]]; then
		t_ok "$name" diff "$tmp/theirs" "$tmp/ours"
		t_fails "$name: it works" grep '^[^:]*: it fails' <(grep -v '^CHECK without' "$tmp/ours")
	else
		t_eq "$name: theirs" "ADD: it fails" "$(head -n 1 "$tmp/theirs")"
		t_eq "$name: ours" "ADD: it fails" "$(head -n 1 "$tmp/ours")"
	fi
}

gateless='{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24"}, {"address": "fd09::5/64"}], "routes": []}'

# Without what IPAM says of DNS, which versions before 1.4 leave out.
two=$(jq -c 'del(.dns)' <<<"$both")
expected=works
same "a bridge by default, without addresses" '{}'
same "addresses" '{"bridge": "br0"}' "$v4"
same "both families, several routes" '{"bridge": "br0"}' "$two"
same "MTU" '{"bridge": "br0", "mtu": 1400}' "$v4"
same "keys in any case, unknown ones" '{"Bridge": "br0", "MTU": 1400, "mine": 1}' "$v4"
same "a gateway" '{"bridge": "br0", "isGateway": true}' "$gateless"
same "the gateway of IPAM" '{"bridge": "br0", "isGateway": true}' "$v4"
same "the default gateway" '{"bridge": "br0", "isDefaultGateway": true}' "$gateless"
same "a gateway without addresses" '{"bridge": "br0", "isGateway": true}'
same "hairpin" '{"bridge": "br0", "hairpinMode": true}' "$v4"
same "promiscuous" '{"bridge": "br0", "promiscMode": true}' "$v4"
same "DNS of the network" '{"bridge": "br0", "dns": {"nameservers": ["10.0.0.1"]}}' "$both"
args='IgnoreUnknown=1;MAC=02:00:00:00:00:02'
same "a MAC address of CNI_ARGS" '{"bridge": "br0"}' "$v4"
same "one of args" '{"bridge": "br0", "args": {"cni": {"mac": "02:00:00:00:00:03"}}}' "$v4"
same "one of the runtime" '{"bridge": "br0", "runtimeConfig": {"mac": "02:00:00:00:00:04"}}' "$v4"
args=
prepare='ip link add br0 type bridge; ip address add 10.9.0.7/24 dev br0; ip link set br0 up'
same "forceAddress" '{"bridge": "br0", "isGateway": true, "forceAddress": true}' "$v4"
expected=fails
same "another address on the bridge" '{"bridge": "br0", "isGateway": true}' "$v4"
prepare='ip link del br0 2>/dev/null || true; ip link add br0 type veth peer name br1'
same "a bridge that is none" '{"bridge": "br0"}' "$v4"
ip link del br0
prepare=
same "hairpin and promiscuous" '{"bridge": "br0", "hairpinMode": true, "promiscMode": true}' "$v4"
same "a VLAN above all" '{"bridge": "br0", "vlan": 4095}'
same "a VLAN in quotes" '{"bridge": "br0", "vlan": "5"}'
same "IPAM without an address" '{"bridge": "br0", "ipam": {"type": "x"}}' '{"cniVersion": "1.0.0"}'
same "IPAM that fails" '{"bridge": "br0", "ipam": {"type": "x"}}'
same "a version that nobody knows" '{"bridge": "br0", "cniVersion": "9.9.9"}'

# --- VLANs ----------------------------------------------------------------------------------------

# The VLANs of the one port: "5 PVID Egress Untagged".
port_vlans() {
	bridge -j vlan show | jq -r '[.[] | select(.ifname | test("^veth")) | .vlans[] |
		([.vlan, .vlanEnd // empty | tostring] | join("-")) + (if .flags then " " + (.flags | join(" ")) else "" end)] | join(", ")'
}

# vlans JSON WANT [IPAM]: ADD of ours makes such a port.
vlans() {
	local json

	json=$(config bridge "$1" "${3:-}")
	new_pod
	t_ok "VLANs, $1" ours ADD bridge "$json" ${3:+"$3"}
	t_eq "its port" "$2" "$(port_vlans)"
	t_ok "DEL" ours DEL bridge "$json" ${3:+"$3"}
}

clean_node
if ip link add probe0 type bridge vlan_filtering 1 2>/dev/null; then
	ip link del probe0
	expected=works
	pvid="PVID Egress Untagged"
	same "a VLAN, its default kept" '{"bridge": "br0", "vlan": 5, "preserveDefaultVlan": true}' "$v4"
	clean_node
	vlans '{"bridge": "br0", "vlan": 5}' "5 $pvid"
	vlans '{"bridge": "br0", "vlanTrunk": [{"minID": 10, "maxID": 20}, {"id": 30}, {"id": 20}]}' "1 $pvid, 10-20, 30"
	vlans '{"bridge": "br0", "vlan": 7, "vlanTrunk": [{"id": 30}]}' "7 $pvid, 30"
	vlans '{"bridge": "br0", "vlanTrunk": []}' "1 $pvid"
	vlans '{"bridge": "br0", "vlan": 5, "isGateway": true}' "5 $pvid" "$v4"
	t_eq "the gateway is in the VLAN" "10.9.0.1/24" "$(ip -j addr show br0.5 | jq -r '.[0].addr_info[] | select(.family == "inet") | "\(.local)/\(.prefixlen)"')"
	new_pod
	json=$(config bridge '{"bridge": "br0", "vlan": 5, "isGateway": true}' "$v4")
	t_ok "another pod of the VLAN" ours ADD bridge "$json" "$v4"
	t_ok "reaches the gateway" ip netns exec pod ping -qc 1 -W 5 10.9.0.1
	t_ok "DEL" ours DEL bridge "$json" "$v4"
	clean_node
	ip link add br0 type bridge
	new_pod
	t_fails "a bridge that does not filter VLANs is refused" ours ADD bridge "$(config bridge '{"bridge": "br0", "vlan": 5}')"
else
	t_skip "VLANs of a bridge" "the kernel cannot filter them"
fi

# --- ours alone -----------------------------------------------------------------------------------

refuses() {
	new_pod
	grep -q "^7 bridge.*$2" <(ours ADD bridge "$(config bridge "$1" "${3:-}")" ${3:+"$3"} | jq -r '"\(.code) \(.msg)"')
}

clean_node
t_ok "masquerading is refused by name" refuses '{"ipMasq": true}' 'ipMasq is true'
t_ok "so is the filter of MAC addresses" refuses '{"macspoofchk": true}' 'macspoofchk is true'
t_ok "an interface that is down with addresses" refuses '{"disableContainerInterface": true}' disableContainerInterface "$v4"
t_eq "no bridge was made" '["lo"]' "$(ip -j link show | jq -c '[.[].ifname]')"
new_pod
t_ok "a default route of IPAM beside that of the gateway" ours ADD bridge "$(config bridge '{"bridge": "br0", "isDefaultGateway": true}' "$v4")" "$v4"
t_eq "is the same one" '["10.9.0.1"]' "$(ip -n pod -j route show default | jq -c '[.[].gateway]')"
t_ok "DEL" ours DEL bridge "$(config bridge '{"bridge": "br0"}' "$v4")" "$v4"
json=$(config bridge '{"cniVersion": "1.1.0", "bridge": "br0", "isGateway": true, "portIsolation": true}' "$v4")
new_pod
result=$(ours ADD bridge "$json" "$v4")
t_eq "version 1.1.0, an isolated port" "1.1.0 true" "$(jq -r .cniVersion <<<"$result") $(ip -d -j link show type veth | jq '.[0].linkinfo.info_slave_data.isolated')"
t_ok "the pod reaches its gateway" ip netns exec pod ping -qc 1 -W 5 10.9.0.1
checked=$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$json")
for change in '.prevResult.interfaces[2].mac = "02:00:00:00:00:09"' '.prevResult.interfaces[0].mac = "02:00:00:00:00:09"' \
	'.prevResult.ips[0].address = "10.9.0.6/24"' '.bridge = "br9"' '.promiscMode = true' 'del(.prevResult)'; do
	t_fails "CHECK with $change" ours CHECK bridge "$(jq -c "$change" <<<"$checked")" "$v4"
done
ip link set "$(jq -r '.interfaces[1].name' <<<"$result")" nomaster
t_fails "CHECK of a port that is none any more" ours CHECK bridge "$checked" "$v4"
t_ok "DEL" ours DEL bridge "$json" "$v4"

new_pod
result=$(theirs ADD bridge "$(config bridge '{"bridge": "br0"}' "$v4")" "$v4")
json=$(jq -c --argjson result "$result" '.prevResult = $result' <<<"$(config bridge '{"bridge": "br0"}' "$v4")")
t_ok "CHECK of what theirs made" ours CHECK bridge "$json" "$v4"
t_ok "DEL of that" ours DEL bridge "$json" "$v4"
t_eq "takes it away" '["lo"]' "$(ip -n pod -j link show | jq -c '[.[].ifname]')"
ip -n pod link add net1 type veth peer name other
t_ok "DEL without an ADD" ours DEL bridge "$json" "$v4"
t_fails "ADD of a name that is taken" ours ADD bridge "$json" "$v4"
t_ok "DEL of that" ours DEL bridge "$json" "$v4"
t_eq "the pod's own interface stays" '["lo","net1","other"]' "$(ip -n pod -j link show | jq -c '[.[].ifname] | sort')"

# --- killed before each message to the kernel in turn ---------------------------------------------

clean_node
new_pod
json=$(config bridge '{"bridge": "br0", "isDefaultGateway": true}' "$gateless")
for ((n = 0; n < 60; n++)); do
	status=0
	ATTACH_DIE=$n ours ADD bridge "$json" "$gateless" >/dev/null 2>&1 || status=$?
	((status == 0)) && break
	ours DEL bridge "$json" "$gateless" >/dev/null
	left=$(ip -n pod -j link show | jq -c '[.[].ifname]')$(ip -j link show type veth | jq -c '[.[].ifname?]')$(cat "$tmp/state")
	[[ $left == '["lo"][]null' ]] || break
done
t_eq "ADD killed at each step leaves nothing behind DEL" 0 "$status"
t_ok "it had several ($n)" test "$n" -gt 8
for ((n = 0; n < 60; n++)); do
	status=0
	ATTACH_DIE=$n ours DEL bridge "$json" "$gateless" >/dev/null 2>&1 || status=$?
	((status == 0)) && break
done
t_eq "DEL killed at each step, and called again, ends" '0 ["lo"]' "$status $(ip -n pod -j link show | jq -c '[.[].ifname]')"

ip netns del pod

# --- the sample: a cluster network of bridge and host-local, and a shared rail, all of our own ------
# As k8s-rdma-shared has it: the rail is a macvlan interface of the NIC, where the kernel has these.

conflist=crds/samples/cluster-network-bridge.conflist
mkdir "$tmp/root"

# plugin COMMAND TYPE POD IFNAME CONFIG [IPAM]: of our own.
plugin() {
	CNI_CONTAINERID=$3 ATTACH_ROOT=$tmp/root "$tool" "$1" "$2" "$4" "/run/netns/$3" "$tmp/state.$3.$2.$4" "$5" ${6:+"$6"}
}

# network COMMAND POD IFNAME CONFIG: a plugin with host-local as its IPAM.
network() {
	local type ipam=

	type=$(jq -r .type <<<"$4")
	[[ $1 == DEL ]] || ipam=$(plugin "$1" host-local "$2" "$3" "$4") || return
	plugin "$1" "$type" "$2" "$3" "$4" "$ipam" || return
	[[ $1 != DEL ]] || plugin DEL host-local "$2" "$3" "$4"
}

clean_node
cluster=$(jq -c '. as $list | .plugins[0] + { cniVersion, name: $list.name }' "$conflist")
rail='{"cniVersion": "1.0.0", "name": "rail", "type": "macvlan", "master": "rail0", "ipam": {"type": "host-local", "subnet": "172.16.11.0/24"}}'
ip link add rail0 type veth peer name switch0
ip link set rail0 up
ip link set switch0 up
rails=
ip link add link rail0 name probe0 type macvlan 2>/dev/null && ip link del probe0 && rails=yes
for one in pod1 pod2; do
	ip netns add $one
	ip -n $one link set lo up
	t_ok "$one gets the cluster network" network ADD $one eth0 "$cluster"
	[[ -z $rails ]] || t_ok "$one gets a rail" network ADD $one net1 "$rail"
done
[[ -n $rails ]] || t_skip "a shared rail beside it" "the kernel lacks macvlan"
t_eq "addresses of the range, one after the other" "10.244.1.2/24 10.244.1.3/24" "$(for one in pod1 pod2; do
	ip -n $one -j addr show eth0 | jq -r '.[0].addr_info[] | select(.family == "inet") | "\(.local)/\(.prefixlen)"'
done | xargs)"
t_eq "the default route is the bridge's" 10.244.1.1 "$(ip -n pod1 -j route show default | jq -r '.[0].gateway')"
t_ok "one pod reaches the other" ip netns exec pod1 ping -qc 1 -W 5 10.244.1.3
t_ok "and the node" ip netns exec pod1 ping -qc 1 -W 5 10.244.1.1
[[ -z $rails ]] || t_ok "and the other by the rail" ip netns exec pod1 ping -qc 1 -W 5 -I net1 172.16.11.3
for one in pod1 pod2; do
	[[ -z $rails ]] || t_ok "$one gives the rail back" network DEL $one net1 "$rail"
	t_ok "$one gives the cluster network back" network DEL $one eth0 "$cluster"
	t_eq "nothing of it stays in $one" '["lo"]' "$(ip -n $one -j link show | jq -c '[.[].ifname]')"
	ip netns del $one
done
t_eq "no address is kept" "" "$(find "$tmp/root/var/lib/cni/networks" -name '1*.*' -printf '%f ')"
t_done

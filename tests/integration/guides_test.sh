#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pods of the guides that users follow, in real network namespaces: an operator that leads, an agent as the meta plugin of its
# node, an API server, the plugins macvlan and ptp of containernetworking-plugins. What the guides say is quoted. A VF is a
# macvlan that a folder calls one; who has it says a kubelet of ours.
#
# STAGE=own: no CNI program but ours is on the node; the cluster's network is bridge with host-local.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	exec unshare --net --mount --propagation private "$0" --inside
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# The node's end of each pod's NIC and the API server's address are of this namespace.
ip link set lo up
mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
own=
[[ ${STAGE:-} != own ]] || { own=1 && STAGE=; }
. tests/integration/operator.sh

o_begin guides --no-controllers
o_host
conf=$host/etc/cni/net.d
devices=$host/sys/bus/pci/devices
plugin=$PWD/$o_programs/orbweaver-cni
pod=

# --- the node -------------------------------------------------------------------------------------------------------------

# wire INTERFACE GATEWAY: a NIC of the node, and at its other end a router of another namespace
wire() {
	local port=p${1:0:13}

	ip link add "$1" type veth peer name "$port" netns router
	ip link set "$1" up
	ip -n router link set "$port" up
	[[ -z ${2:-} ]] || ip -n router addr add "$2" dev "$port"
}

# attribute FUNCTION NAME VALUE: of a PCI function
attribute() {
	mkdir -p "$devices/$1"
	echo "$3" >"$devices/$1/$2"
}

# VFs of the guide's PF, "rootDevices: 0000:af:00.0", "vendor: 15b3", "deviceID: 1017".
make_vfs() {
	local pf=0000:af:00.0 i vf

	mkdir -p "$devices/$pf/net/ens7f0np0"
	attribute $pf vendor 0x15b3
	attribute $pf device 0x1017
	attribute $pf class 0x020000
	attribute $pf numa_node 0
	attribute $pf sriov_totalvfs 16
	attribute $pf sriov_numvfs 2
	ln -s ../../drivers/mlx5_core "$devices/$pf/driver"
	wire ens7f0np0
	for i in 0 1; do
		vf=0000:af:00.$((i + 2))
		attribute $vf vendor 0x15b3
		attribute $vf device 0x1018
		attribute $vf class 0x020000
		attribute $vf numa_node 0
		mkdir -p "$devices/$vf/net/ens7f0v$i"
		ln -s ../../drivers/mlx5_core "$devices/$vf/driver"
		ln -s ../$pf "$devices/$vf/physfn"
		ln -s ../$vf "$devices/$pf/virtfn$i"
		ip link add "ens7f0v$i" link ens7f0np0 type macvlan mode bridge
	done
}

mkdir "$tmp/bin"
for type in orbweaver spiderpool coordinator sriov rdma; do
	ln -s "$plugin" "$tmp/bin/$type"
done
cluster_type=bridge
[[ -n $own ]] || cluster_type=ptp
for type in macvlan "$cluster_type" host-local; do
	if [[ -n $own ]]; then
		ln -s "$plugin" "$tmp/bin/$type"
	else
		ln -s "/usr/lib/cni/$type" "$tmp/bin/$type"
		ln -s "/usr/lib/cni/$type" "$host/opt/cni/bin/$type"
	fi
done
export ORBWEAVER_CNI_SOCKET=$host/run/orbweaver/cni.sock ORBWEAVER_CNI_STATE=$host/var/lib/orbweaver/cni
ip netns add router
ip -n router link set lo up
for i in all default; do
	ip netns exec router sh -c "echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter"
done
wire eth0 10.1.20.1/24
ip addr add 10.1.20.4/24 dev eth0
ip route add default via 10.1.20.1
wire ens6f0np0 172.81.0.1/16
make_vfs
cat >"$conf/10-calico.conflist" <<END
{ "cniVersion": "0.3.1", "name": "k8s-pod-network", "plugins": [ { "type": "$cluster_type", "isGateway": true,
	"ipam": { "type": "host-local", "dataDir": "$tmp/host-local", "subnet": "10.233.64.0/18",
		"routes": [ { "dst": "0.0.0.0/0" } ] } } ] }
END

o_agent_user
o_offer mellanoxroce 1018
o_coordinator_ready '{"mode": "auto", "podCIDRType": "none", "tunePodRoutes": true}' >/dev/null

foreign_programs() {
	local file

	for file in "$host"/opt/cni/bin/* "$tmp"/bin/*; do
		cmp -s "$file" "$plugin" || echo "$file"
	done
}

o_start op --policy-namespaces kube-system
o_spawn a "$o_programs/orbweaver-agent" "${o_offer_flags[@]}" --profile auto
t_wait 60 "plugins can ask the node's server" test -S "$ORBWEAVER_CNI_SOCKET"
t_wait 30 "the cluster's network is behind ours" test -s "$conf/00-orbweaver.conflist"
if [[ -n $own ]]; then
	t_eq "no plugin of the node is another program's" "" "$(foreign_programs)"
fi
t_need

# --- pods -----------------------------------------------------------------------------------------------------------------

# new_pod NAME ANNOTATIONS [RESOURCE]: as one of the guide's DaemonSet, on this node, and its sandbox
new_pod() {
	pod=$1
	uid=$(o_curl POST /api/v1/namespaces/default/pods "$(jq -nc --arg name "$1" --argjson annotations "$2" --arg resource "${3:-}" '{
		metadata: {name: $name, annotations: $annotations}, spec: {nodeName: "n1", automountServiceAccountToken: false,
		containers: [{name: "c", image: "docker.io/mellanox/rping-test"} +
			if $resource == "" then {} else {resources: {limits: {($resource): "1"}, requests: {($resource): "1"}}} end]}}')" | jq -r .metadata.uid)
	ip netns add "$1"
	ip -n "$1" link set lo up
}

# call COMMAND: the runtime's, with the configuration that it finds first.
call() {
	jq -c '{cniVersion, name} + .plugins[0]' "$conf/00-orbweaver.conflist" | env "CNI_COMMAND=$1" "CNI_CONTAINERID=$pod" \
		CNI_IFNAME=eth0 "CNI_NETNS=/run/netns/$pod" "CNI_PATH=$tmp/bin" \
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$pod;K8S_POD_UID=$uid" "$tmp/bin/orbweaver"
}

# As kubelets do: what failed is taken down, and tried again.
add() {
	call ADD >"$tmp/result" && return
	cat "$tmp/result"
	call DEL >/dev/null
	return 1
}

in_pod() {
	ip netns exec "$pod" "$@"
}

status() {
	o_curl GET "/api/v1/namespaces/default/pods/$pod" | jq -r '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"]' |
		jq -c "$1"
}

networks_are_ready() {
	k get -f "$1" -o json | jq -e '[.items // [.] | .[] | select(.kind == "SpiderMultusConfig" or .kind == "SpiderIPPool")] |
		length > 1 and all(.[]; .status.conditions // [] | any(.type == "Ready" and .status == "True"))'
}

end_pod() {
	t_ok "DEL of $pod" call DEL
	o_curl DELETE "/api/v1/namespaces/default/pods/$pod?gracePeriodSeconds=0" >/dev/null
	ip netns del "$pod"
}

pool_is_free() {
	o_curl GET "$spider/spiderippools/$1" | jq -e '.status.allocatedIPs // "{}" | fromjson == {}'
}

router() {
	ip netns exec router "$@"
}

# --- RoCE with macvlan ----------------------------------------------------------------------------------------------------
# "v1.multus-cni.io/default-network: kube-system/macvlan-ens6f0np0": the pod's only NIC is the macvlan.
k apply -f crds/samples/roce-en-macvlan.yaml >/dev/null
t_wait 30 "pool and network of the guide are ready" networks_are_ready crds/samples/roce-en-macvlan.yaml
new_pod rdma-macvlan '{"v1.multus-cni.io/default-network": "kube-system/macvlan-ens6f0np0"}'
t_wait 30 "a pod whose default network is a macvlan starts" add
t_eq "eth0 is the macvlan, with an address of the pool" "macvlan 172.81.0.100/16" "$(in_pod ip -j -d addr show eth0 |
	jq -r '.[0] | "\(.linkinfo.info_kind) \(.addr_info[0] | "\(.local)/\(.prefixlen)")"')"
t_eq "there is no NIC of the cluster's network" "eth0 lo veth0" "$(in_pod ip -j link show | jq -r '[.[].ifname] | sort | join(" ")')"
t_eq "its way out is the pool's gateway" "default via 172.81.0.1 dev eth0" "$(in_pod ip route show default | sed 's/ *$//')"
t_eq "its status says so" '[["kube-system/macvlan-ens6f0np0","eth0",["172.81.0.100"],true]]' \
	"$(status 'map([.name, .interface, .ips, .default])')"
t_ok "it reaches the gateway" in_pod ping -c 1 -W 5 172.81.0.1
t_ok "its node reaches it" ping -c 1 -W 5 172.81.0.100
t_eq "the leader gave the address" "rdma-macvlan eth0 172.81.0.100/16" "$(o_curl GET "$spider/namespaces/default/spiderendpoints/$pod" |
	jq -r '"\(.metadata.name) \(.status.current.ips[0] | "\(.interface) \(.ipv4)")"')"
end_pod
t_wait 60 "its address comes back" pool_is_free v4-81

# --- RoCE with SR-IOV -----------------------------------------------------------------------------------------------------
# "v1.multus-cni.io/default-network: kube-system/roce-sriov": eth0 is the VF. RDMA devices do not move here, so without
# enableRdma: tests/vm/exclusive_stage_test.sh.
offers_vfs() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1" |
		jq -e '.status.resources // [] | any(.name == "spidernet.io/mellanoxroce" and .offered == 2)'
}
sed '/enableRdma/d' crds/samples/roce-en-sriov.yaml >"$tmp/roce-sriov.yaml"
k apply -f "$tmp/roce-sriov.yaml" >/dev/null
t_wait 30 "pool and network of the guide are ready" networks_are_ready "$tmp/roce-sriov.yaml"
t_wait 30 "the node has VFs to give" offers_vfs
new_pod rdma-sriov '{"v1.multus-cni.io/default-network": "kube-system/roce-sriov"}' spidernet.io/mellanoxroce
echo "come default/$pod spidernet.io/mellanoxroce 1" >&9
t_wait 30 "a pod whose default network is a VF starts" add
vf=$(status '.[0]["device-info"].pci["pci-address"]' | jq -r .)
t_ok "it is a VF of the guide's NIC ($vf)" grep -E '^0000:af:00\.[23]$' <<<"$vf"
t_eq "eth0 is the VF, with an address of the pool" "172.81.0.101/16" "$(in_pod ip -j addr show eth0 |
	jq -r '.[0].addr_info[0] | "\(.local)/\(.prefixlen)"')"
t_eq "the node has one interface less" 1 "$(ip -j link show | jq '[.[] | select(.ifname | startswith("ens7f0v"))] | length')"
t_eq "its status says so" '[["kube-system/roce-sriov","eth0",true]]' "$(status 'map([.name, .interface, .default])')"
t_eq "its way out is the pool's gateway" "default via 172.81.0.1 dev eth0" "$(in_pod ip route show default | sed 's/ *$//')"
t_ok "its node reaches it" ping -c 1 -W 5 172.81.0.101
end_pod
t_eq "the VF is back" 2 "$(ip -j link show | jq '[.[] | select(.ifname | startswith("ens7f0v"))] | length')"
echo "go default/$pod" >&9

# --- an AI cluster with macvlan -------------------------------------------------------------------------------------------
# "The network cards are connected to a rail-optimized network." Eight pools, "gpu1-net11 … subnet: 172.16.11.0/16, ips:
# 172.16.11.1-172.16.11.200" and on to 172.16.18: one network of 16 bits, and a NIC of the pod in it on each rail.
for n in {1..8}; do
	wire "enp1${n}s0f0np0" "172.16.1$n.254/32"
	ip -n router route add "172.16.1$n.0/24" dev "penp1${n}s0f0np0" src "172.16.1$n.254"
	sed "s/gpu1-/gpu$n-/; s/net11/net1$n/; s/172\.16\.11\./172.16.1$n./g; s/enp11s0/enp1${n}s0/" crds/samples/ai-macvlan.yaml
	echo ---
done >"$tmp/rails.yaml"
rails() {
	local n

	for n in {1..8}; do
		"$@" "$n" || { echo "rail $n" && return 1; }
	done
}
is_rail() {
	in_pod ip -j addr show "net$1" | jq -e --arg want "172.16.1$1.1/16" '.[0].addr_info[0] | "\(.local)/\(.prefixlen)" == $want'
}
rail_answers() {
	router ping -c 1 -W 5 -I "penp1${1}s0f0np0" "172.16.1$1.1"
}
# Who asks on rail N for the address of the next one hears nothing.
rail_is_silent_for_the_next() {
	local next=$(($1 % 8 + 1))

	router ip route replace "172.16.1$next.1/32" dev "penp1${1}s0f0np0" src "172.16.1$1.254"
	! router ping -c 1 -W 1 -I "penp1${1}s0f0np0" "172.16.1$next.1" &&
		router ip neigh show "172.16.1$next.1" dev "penp1${1}s0f0np0" | grep -E 'FAILED|INCOMPLETE' &&
		router ip route del "172.16.1$next.1/32" dev "penp1${1}s0f0np0"
}
rail_speaks() {
	in_pod ping -c 1 -W 5 -I "172.16.1$1.1" "172.16.1$1.254"
}
has_table() {
	local table

	table=$(in_pod ip rule | sed -nE "s/^.*from 172\.16\.1$1\.1 lookup ([0-9]+) *$/\1/p")
	in_pod ip route show table "${table:-none}" | grep -E "^default via 172\.16\.1$1\.254 dev net$1 *$"
}
k apply -f "$tmp/rails.yaml" >/dev/null
t_wait 30 "the guide's eight pools of one subnet are ready" networks_are_ready "$tmp/rails.yaml"
t_need
new_pod rdma-tools "$(jq -nc '{"k8s.v1.cni.cncf.io/networks":
	([range(1; 9) | {name: "gpu\(.)-macvlan", namespace: "spiderpool"}] | tojson)}')"
t_wait 30 "a pod with the eight rails starts" add
t_eq "it has nine NICs" "eth0 net1 net2 net3 net4 net5 net6 net7 net8" \
	"$(in_pod ip -j link show | jq -r '[.[].ifname | select(. != "lo")] | sort | join(" ")')"
t_ok "each rail has an address of its pool" rails is_rail
t_ok "each answers on its rail" rails rail_answers
t_ok "and not for its neighbour" rails rail_is_silent_for_the_next
t_ok "each reaches its gateway by itself" rails rail_speaks
t_ok "\"ip rule … from 172.16.11.10 lookup 107\", with \"default via 172.16.11.254 dev net1\"" rails has_table
t_eq "the main table's default route is the cluster's" eth0 "$(in_pod ip -j route show default | jq -r '[.[].dev] | unique | join(" ")')"
end_pod

# --- gateways ---------------------------------------------------------------------------------------------------------------
# "During the creation of the network namespace for the container, Spiderpool will perform connectivity tests on the gateway of
# the macvlan interface. If all PODs of the above application start successfully, it indicates successful connectivity."
says() {
	call ADD >"$tmp/result" || true
	call DEL >/dev/null
	cat "$tmp/result"
	jq -e --arg reason "$1" --arg words "$2" '.details == $reason and (.msg | contains($words))' "$tmp/result"
}
event() {
	o_curl GET /api/v1/namespaces/default/events | jq -e --arg pod "$pod" --arg reason "$1" \
		'any(.items[]; .reason == $reason and .involvedObject.name == $pod and .type == "Warning")'
}
networks='{"k8s.v1.cni.cncf.io/networks": "spiderpool/gpu1-macvlan,spiderpool/gpu2-macvlan"}'
ip -n router addr del 172.16.12.254/32 dev penp12s0f0np0
new_pod unseen "$networks"
t_wait 30 "as it comes, nobody asks for gateways" add
end_pod
o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" '{"metadata": {"name": "spiderpool-conf"},
	"data": {"conf.yml": "enableIPv4: true\nenableIPv6: true\nenableStatefulSet: true\nenableGatewayDetection: true\n"}}' >/dev/null
new_pod seen "$networks"
t_wait 30 "with enableGatewayDetection a rail whose gateway is away keeps the pod from starting" \
	says GatewayUnreachable "net2: the gateway 172.16.12.254 does not answer; check VLAN, cabling"
t_wait 20 "its pod has an event" event GatewayUnreachable
ip -n router addr add 172.16.12.254/32 dev penp12s0f0np0
t_wait 30 "once it answers the pod starts" add
end_pod

exec 9>&-
o_end a
o_end op
t_done

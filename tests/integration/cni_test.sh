#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What of CNI a profile installs, beside Multus and sriov-cni as they are; then pods get their networks: real namespaces, the agent with all its processes, a real API server, and the macvlan plugin of
# containernetworking-plugins with `spiderpool` as its IPAM, then `coordinator`, as a runtime calls them.
#
# Everything that lies on the host (/run, the state, the folder of plugins) is of a mount namespace of our own.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	exec unshare --mount --propagation private "$0" --inside
fi
mkdir -p /opt/cni /etc/cni /var/lib/orbweaver
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/orbweaver
mount -t tmpfs tmpfs /opt/cni
mount -t tmpfs tmpfs /etc/cni

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

o_agent=${AGENT:-$o_programs/orbweaver-agent}
plugins=/usr/lib/cni
bin=/opt/cni/bin
conf=/etc/cni/net.d
state=/var/lib/orbweaver/cni
node=n1
id=c0ffee$$
pod=ow-pod-$$
other=ow-other-$$
nic=owup$$

clean_up() {
	ip netns del "$pod" 2>/dev/null || true
	ip netns del "$other" 2>/dev/null || true
	ip link del "${nic:0:15}" 2>/dev/null || true
	o_clean_up
}

o_begin cni --no-controllers
trap clean_up EXIT
nic=${nic:0:15}


mkdir -p "$tmp"/kubelet/device-plugins "$tmp/bin"
o_agent_user

start_agent() {
	o_spawn "$1" "$o_agent" --node "$node" --kubeconfig "$agent_kubeconfig" --host-root / \
		--kubelet-dir "$tmp/kubelet" --no-kubelet --metrics-addr 127.0.0.1:0 \
		--cni-program "$PWD/$o_programs/orbweaver-cni"
}

installed() {
	local name

	for name in orbweaver-cni spiderpool coordinator ib-sriov rdma ipoib macvlan ipvlan vlan static host-local "$@"; do
		cmp -s "$bin/$name" "$o_programs/orbweaver-cni" || return 1
	done
}

# All that other programs have in the folders of the runtime: content, file, times; FORMAT: of find, besides.
theirs() {
	find $bin/{sriov,multus-shim} $conf/{00-multus.conf,10-cluster.conflist} -printf "%p %m %i %s %T@ ${1-}\n" -exec cat {} +
}

# networks REASON [TEXT]: of the NodeState's condition PodNetworks, whose message contains TEXT.
networks() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$node" | jq -e --arg reason "$1" --arg text "${2:-}" \
		'any(.status.conditions[]?; .type == "PodNetworks" and .reason == $reason and (.message | contains($text)))'
}

is_degraded() {
	o_curl GET "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$node" | jq -e --arg reason "$1" \
		'any(.status.conditions[]?; .type == "Degraded" and .status == "True" and .reason == $reason)'
}

# profile NAME: of the node; null: the agent's flag counts.
profile() {
	o_curl PATCH "/api/v1/nodes/$node" "{\"metadata\": {\"labels\": {\"orbweaver.io/profile\": $1}}}" >/dev/null
}

objects() {
	o_curl POST /api/v1/nodes "{\"metadata\": {\"name\": \"$node\"}}" >/dev/null
	o_curl POST "$spider/spiderippools" '{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool",
		"metadata": {"name": "rail"}, "spec": {"ipVersion": 4, "subnet": "10.77.0.0/16", "gateway": "10.77.0.1",
		"ips": ["10.77.0.10-10.77.0.20"], "routes": [{"dst": "10.88.0.0/16", "gw": "10.77.0.2"}]}}' >/dev/null
	o_pool_is_learned rail >/dev/null
	o_coordinator_ready '{"mode": "underlay", "podCIDRType": "none", "tunePodRoutes": true}' >/dev/null
}

# make_pod NAME: prints its UID.
make_pod() {
	o_curl POST /api/v1/namespaces/default/pods "$(jq -n --arg name "$1" --arg node "$node" '{
		metadata: {name: $name}, spec: {nodeName: $node, automountServiceAccountToken: false,
		containers: [{name: "c", image: "none"}]}}')" | jq -r .metadata.uid
}

config() {
	jq -nc --arg type "$1" --arg master "$nic" --argjson prev "${2:-null}" '{cniVersion: "0.3.1", name: "rail", type: $type,
		master: $master, ipam: {type: "spiderpool", default_ipv4_ippool: ["rail"]}, mode: "bridge"} |
		if $type == "coordinator" then del(.ipam, .master) + {mode: "underlay"} else . end |
		if $prev then . + {prevResult: $prev} else . end'
}

# call COMMAND PLUGIN [PREVRESULT] [CONTAINER]
call() {
	local dir=$bin

	[[ $2 != macvlan ]] || dir=$plugins
	config "$2" "${3:-}" | env -i PATH="$PATH" CNI_COMMAND="$1" CNI_CONTAINERID="${4:-$id}" CNI_NETNS="/run/netns/$pod" \
		CNI_IFNAME=eth0 CNI_PATH="$bin:$plugins" \
		CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=a;K8S_POD_UID=$uid" "$dir/$2"
}

# own COMMAND [CONTAINER [NAMESPACE]]: macvlan and host-local of ours. The device is a shared one, which each of its pods has.
own() {
	jq -nc --arg master "$nic" --arg dir "$tmp/networks" '{cniVersion: "0.4.0", name: "own", type: "macvlan", $master, deviceID: "0000:3b:00.0",
		ipam: {type: "host-local", dataDir: $dir, subnet: "10.66.0.0/24", routes: [{dst: "0.0.0.0/0"}]}}' |
		env -i PATH="$PATH" CNI_COMMAND="$1" CNI_CONTAINERID="${2:-own}" CNI_NETNS="/run/netns/${3:-$pod}" CNI_IFNAME=net1 CNI_PATH=$bin \
			CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=a;K8S_POD_UID=$uid" $bin/macvlan
}

in_pod() {
	ip netns exec "$pod" "$@"
}

records() {
	find "$state" -name '*.json' -o -path '*/notes/*'
}

nothing_recorded() {
	[[ -z $(records) ]] || { records && return 1; }
}

of_pool() {
	o_curl GET "$spider/spiderippools/rail" | jq -r '.status.allocatedIPs // "{}"'
}

# The result is in $tmp/result: checks run in a shell of their own. What fails is deleted, as runtimes do.
add_pod() {
	if call ADD macvlan >"$tmp/first" && call ADD coordinator "$(<"$tmp/first")" >"$tmp/result"; then
		return
	fi
	cat "$tmp/first" "$tmp/result"
	call DEL coordinator
	call DEL macvlan
	return 1
}

add_says() {
	! add_pod && grep -q "$1" "$tmp/first"
}

event() {
	o_curl GET /api/v1/namespaces/default/events | jq -e --arg reason "$1" \
		'any(.items[]; .reason == $reason and .involvedObject.name == "a" and .type == "Warning")'
}

process_of() {
	pgrep -P "${o_pids[$1]}" -x "$2"
}

# --- install -------------------------------------------------------------------------------------------------------
ip link add "$nic" type veth peer name "p$nic" 2>/dev/null || ip link add "$nic" type veth
ip link set "$nic" up
ip netns add "$pod"
in_pod ip link set lo up
objects
uid=$(make_pod a)
mkdir -p $bin $conf
printf '#!/bin/sh\nexit 7\n' >$bin/sriov
printf '#!/bin/sh\nexit 8\n' >$bin/multus-shim
chmod 755 $bin/{sriov,multus-shim}
echo '{"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus-shim"}' >$conf/00-multus.conf
echo '{"cniVersion": "0.4.0", "name": "cluster", "plugins": [{"type": "recdef"}]}' >$conf/10-cluster.conflist
touch $bin/recdef
before=$(theirs) untouched=$(theirs %C@)
start_agent a
t_wait 30 "profile auto installs the plugins whose names are free" installed
t_wait 30 "the socket is there" test -S /run/orbweaver/cni.sock
t_wait 30 "the NodeState names the plugin that stays" networks PluginsKept "sriov of another program stays"
t_eq "nothing of Multus and sriov-cni has changed" "$untouched" "$(theirs %C@)"
t_fails "no configuration of ours is there" test -e $conf/00-orbweaver.conflist
profile '"delegate"'
t_wait 30 "profile delegate installs all" installed sriov
t_ok "another program's plugin is kept aside" grep -q 'exit 7' $bin/sriov.orbweaver-saved
t_wait 30 "the NodeState says so" networks PluginsOnly

# --- a pod comes and goes ------------------------------------------------------------------------------------------
t_wait 30 "ADD" add_pod
t_eq "the result has the address of the pool" 10.77.0.10/16 "$(jq -r '.ips[0].address' "$tmp/result")"
t_ok "the pod has it" grep -q 'inet 10.77.0.10/16' <(in_pod ip addr show dev eth0)
t_ok "and the pool's route" grep -q '10.88.0.0/16 via 10.77.0.2 dev eth0' <(in_pod ip route)
t_ok "the node reaches it" grep -q '10.77.0.10' <(ip route show table 500)
t_ok "it is on the disk" test -s "$state/sandboxes/$id.json"
t_eq "and in the pool" default/a "$(of_pool | jq -r '."10.77.0.10".pod')"
t_ok "DEL" call DEL coordinator
t_ok "DEL of the interface" call DEL macvlan
t_wait 10 "nothing is left on the disk" nothing_recorded
t_fails "the interface is gone" in_pod ip link show dev eth0
t_ok "a second DEL is fine" call DEL macvlan

# --- the same with no plugin of others ------------------------------------------------------------------------------
ip netns add "$other"
t_eq "ADD of our macvlan with our host-local" 10.66.0.2/24 "$(own ADD | tee "$tmp/own" | jq -r '.ips[0].address')"
t_ok "the pod has it" grep -q 'inet 10.66.0.2/24' <(in_pod ip addr show dev net1)
t_ok "and the route" grep -q 'default via 10.66.0.1 dev net1' <(in_pod ip route)
t_eq "the file says who has it" "own net1" "$(tr '\r\n' '  ' <"$tmp/networks/own/10.66.0.2" | tr -s ' ')"
t_ok "it is on the disk" test -s "$state/sandboxes/own.json"
t_eq "a second pod has the device, too, and the next address" 10.66.0.3/24 "$(own ADD own2 "$other" | jq -r '.ips[0].address')"
t_ok "DEL" own DEL
t_ok "DEL of the second one" own DEL own2 "$other"
t_wait 10 "nothing is left on the disk" nothing_recorded
t_fails "no address is given" test -e "$tmp/networks/own/10.66.0.2" -o -e "$tmp/networks/own/10.66.0.3"
t_fails "the interface is gone" in_pod ip link show dev net1
t_ok "a second DEL is fine" own DEL
t_eq "ADD again" 10.66.0.4/24 "$(own ADD | jq -r '.ips[0].address')"
ip netns del "$other"
ip netns add "$other"
t_ok "DEL in a namespace that is another one by now" own DEL own "$other"
t_wait 10 "gives the address back" eval "! test -e $tmp/networks/own/10.66.0.4"
in_pod ip link del net1 2>/dev/null || true
ip netns del "$other"

# --- from one profile to another -----------------------------------------------------------------------------------
t_wait 30 "ADD once more" add_pod
profile '"devices"'
t_wait 30 "profile devices waits for the pod, and names it" networks PluginsInUse default/a
t_ok "the plugins stay meanwhile" installed sriov
t_ok "DEL" call DEL coordinator
t_ok "DEL of the interface" call DEL macvlan
t_wait 30 "then they go" networks DevicesOnly
t_eq "all is as it was found" "$before" "$(theirs)"
# Runtimes call loopback, for pods of others, too.
t_eq "and nothing else is there" "loopback multus-shim recdef sriov" "$(find $bin -type f -printf '%f\n' | sort | paste -sd ' ')"
profile '"device"'
t_wait 30 "a profile that does not exist is named with those that do" \
	networks BadProfile "label orbweaver.io/profile of Node $node: \"device\" is not a profile; must be auto, delegate or devices"
t_ok "and asks for an administrator" is_degraded BadProfile
t_fails "nothing is installed" test -e $bin/spiderpool
rm $conf/00-multus.conf
profile null
t_wait 30 "without Multus, profile auto has the meta plugin set up all networks" networks PluginsKept "our meta plugin uses its own"
t_ok "its configuration carries the cluster's network" grep -q '"recdef"' $conf/00-orbweaver.conflist
t_ok "the other program's plugin stays" grep -q 'exit 7' $bin/sriov
profile '"delegate"'
t_wait 30 "profile delegate takes that away" networks PluginsOnly
t_wait 30 "the file has gone" eval "! test -e $conf/00-orbweaver.conflist"
t_wait 30 "plugins are installed" installed sriov

# --- the agent is away ---------------------------------------------------------------------------------------------
t_wait 30 "ADD again" add_pod
kill -STOP "$(process_of a ow-agent)"
t_ok "DEL does not need the part that talks to the API server" call DEL coordinator
t_ok "nor does that of the interface" call DEL macvlan
kill -CONT "$(process_of a ow-agent)"
t_wait 30 "what had to wait is done" nothing_recorded

t_wait 30 "ADD once more" add_pod
o_kill a KILL
t_ok "without any agent DEL leaves a note" call DEL coordinator
t_ok "of each plugin" call DEL macvlan
t_fails "it waits on the disk" nothing_recorded
start_agent b
t_wait 30 "the next agent works it off" nothing_recorded

# --- somebody else has the address ---------------------------------------------------------------------------------
ip netns add "$other"
ip link set "p$nic" netns "$other"
ip -n "$other" link set "p$nic" up
ip -n "$other" addr add 10.77.0.10/16 dev "p$nic"
conflicts() {
	o_curl GET "$spider/spiderippools/rail" | jq -c '[.status.conflictIPs // [] | .[] | del(.seen, .pod)]'
}
# As Spiderpool has the switch. Absent ones are off, once there is a conf.yml.
o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" '{"metadata": {"name": "spiderpool-conf"},
	"data": {"conf.yml": "enableIPv4: true\nenableIPv6: true\nenableStatefulSet: true\nenableIPConflictDetection: true\n"}}' >/dev/null
t_fails "ADD looks for others" add_pod
t_wait 20 "its pod has an event" event AddressInUse
t_wait 40 "the next ADD gets another address" add_pod
t_eq "the next one of the pool" 10.77.0.11/16 "$(jq -r '.ips[0].address' "$tmp/result")"
t_eq "the other one is remembered with who has it and where" \
	"[{\"ip\":\"10.77.0.10\",\"mac\":\"$(ip netns exec "$other" cat "/sys/class/net/p$nic/address")\",\"node\":\"$node\"}]" "$(conflicts)"
t_eq "and nobody's" '["10.77.0.11"]' "$(of_pool | jq -c keys)"
t_ok "DEL" call DEL coordinator
t_ok "DEL of the interface" call DEL macvlan
t_wait 10 "nothing is left on the disk" nothing_recorded

# --- what goes wrong -----------------------------------------------------------------------------------------------
uid=00000000-0000-0000-0000-000000000000
t_ok "a pod that is not there is refused" add_says PodNotFound
t_ok "its DEL is fine" call DEL macvlan
t_wait 20 "its pod has an event" event PodNotFound
# As runtimes without it, dockershim among them.
agent=$(process_of b ow-agent)
uid=
t_ok "a pod whose UID the runtime does not tell is refused" add_says K8S_POD_UID
t_ok "its DEL is fine, too" call DEL macvlan
t_eq "and the agent is the same" "$agent" "$(process_of b ow-agent)"
o_end b
t_ok "what was installed can be removed" "$o_agent" --remove-plugins
t_ok "and what was kept is back" grep -q 'exit 7' $bin/sriov
t_fails "nothing else is" test -e $bin/spiderpool
t_done

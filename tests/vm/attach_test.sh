#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# VFs with their RDMA devices go into pods and come back: the plugins sriov and rdma as a runtime calls them, the agent's
# server and workers, igb and Soft-RoCE whose devices move.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/attach.sh

a_need_exclusive "VFs and RDMA devices move into pods and back"

a_begin attach --exclusive --roce --append ib_core.netns_mode=0
vf0=0000:01:10.0 vf1=0000:01:10.2

a_runtime

vf0_is_as_before() {
	diff <(grep '^\[0,' <<<"$before") <(rt seen | grep '^\[0,')
}

# refused TEXT NAME VF: ADD fails, and says so.
refused() {
	says "$1" rt "add $2 $3"
}

# says TEXT COMMAND...: the command fails, and says so.
says() {
	local said

	! said=$("${@:2}") || return 1
	grep -F "$1" <<<"$said" || { echo "said: $said" && return 1; }
}

# output TEXT COMMAND...: the command prints TEXT and nothing else.
output() {
	local got

	got=$("${@:2}" 2>&1) || true
	[[ $got == "$1" ]] || { echo "got: $got" && return 1; }
}

pod_has() {
	output "$2 ${3-}" in_pod "$1" sh -c 'echo $(ip -br link show | cut -d" " -f1 | grep -vx lo) $(ls /sys/class/infiniband)'
}

vf_says() {
	output "$2" node "ip -d -j link show enp1s0 | jq -c '.[0].vfinfo_list[$1] | [.address, .vlan_list[0].vlan // .vlan, .spoofchk, .trust]'"
}

a_install --log-level info --cni-program "$PWD/$o_programs/orbweaver-cni"
a_policy roce "{\"numVfs\": 3, \"isRdma\": true, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "3 VFs" a_done 3
t_wait 30 "the plugins are installed" node test -x /opt/cni/bin/rdma -a -S /run/orbweaver/cni.sock
node 'udevadm settle; ip netns add a; ip netns add b'
before=$(rt seen)
echo "$before"

# --- one pod ------------------------------------------------------------------------------------------------------------
settings='{"mac": "02:00:00:00:77:01", "vlan": 5, "spoofchk": "off", "trust": "on", "max_tx_rate": 100}'
t_ok "ADD of a VF and its RDMA device" rt "add a $vf0 '$settings'"
t_ok "both are in the pod, and nothing else" pod_has a net1 rxe-enp1s0v0
t_ok "with the pod's MAC" output 02:00:00:00:77:01 in_pod a cat /sys/class/net/net1/address
t_ok "and settings" vf_says 0 '["02:00:00:00:77:01",5,false,true]'
t_fails "the host does not see the RDMA device" node rdma dev show rxe-enp1s0v0
t_ok "CHECK" rt check a
t_ok "somebody changes the VF's VLAN" node ip link set enp1s0 vf 0 vlan 6
t_ok "CHECK says so" says "somebody changed the settings of $vf0" rt check a
t_ok "it is as it was" node ip link set enp1s0 vf 0 vlan 5
t_ok "CHECK" rt check a
t_ok "DEL" rt take a
t_ok "all is as before" is_as_before
t_ok "a second DEL has nothing to do" rt take a

# --- two at once --------------------------------------------------------------------------------------------------------
t_ok "two pods at once" rt "add a $vf0 & one=\$!; add b $vf1 '$settings' && wait \$one"
t_ok "the one has its devices" pod_has a net1 rxe-enp1s0v0
t_ok "and the other its own" pod_has b net1 rxe-enp1s0v1
t_ok "CHECK of the other" rt check b
t_ok "DEL of both at once" rt "take a & one=\$!; take b && wait \$one"
t_ok "all is as before" is_as_before

# --- rdma finds its device by the interface -----------------------------------------------------------------------------
t_ok "rdma without deviceID" rt "add a $vf0 '$settings' '' && attach CHECK rdma a \"\$(jq -c '{prevResult: .}' /root/a.json)\""
t_ok "moves the device of the interface" pod_has a net1 rxe-enp1s0v0
t_ok "and takes it back" rt take a
t_ok "all is as before" is_as_before

# --- what pods do -------------------------------------------------------------------------------------------------------
t_ok "a pod" rt "add a $vf0 '$settings'"
t_ok "that renames all, and calls its interface as others on the host are called" in_pod a sh -c "rdma dev set rxe-enp1s0v0 name mine
	ip link set net1 down name eth7 address 02:00:00:00:77:99 mtu 1400; ip link property add dev eth7 altname mgmt0 altname enp1s0v0"
t_ok "is deleted" rt take a
t_ok "all is as before" is_as_before
t_ok "a pod" rt "add a $vf0 '$settings'"
t_ok "whose RDMA device's name the host has meanwhile" node rdma dev set rxe-enp1s0v2 name rxe-enp1s0v0
t_ok "is deleted" rt take a
t_ok "the device has another name then" node "rdma dev set \$(ls /sys/bus/pci/devices/$vf0/infiniband) name x && rdma dev set rxe-enp1s0v0 name rxe-enp1s0v2 &&
	rdma dev set x name rxe-enp1s0v0"
t_ok "all is as before" is_as_before

# --- the namespace is gone ----------------------------------------------------------------------------------------------
t_ok "a pod" rt "add a $vf0 '$settings'"
t_ok "whose RDMA device has another name" in_pod a rdma dev set rxe-enp1s0v0 name mine
t_ok "its namespace ends" node 'ip netns del a; ip netns add a; sleep 1; udevadm settle'
t_ok "DEL without it" rt GONE=1 take a
t_ok "all is as before" is_as_before

# --- given on before the DEL --------------------------------------------------------------------------------------------
t_ok "a pod" rt "add a $vf0 '$settings'"
t_ok "another one is refused while it lives, with its name" refused "pod default/a has the device $vf0 still" b "$vf0"
t_ok "which has all as it was" pod_has a net1 rxe-enp1s0v0
t_ok "its namespace ends without a DEL" node 'ip netns del a; sleep 1; udevadm settle'
t_ok "the next pod has the VF" rt "add b $vf0"
t_ok "without the settings of the last one" vf0_is_as_before
t_ok "and keeps it when the DEL comes after all" rt GONE=1 take a
t_ok "with its RDMA device" pod_has b net1 rxe-enp1s0v0
t_ok "DEL" rt take b
node ip netns add a
t_ok "all is as before" is_as_before

# --- pods that sriov-cni and rdma-cni set up -----------------------------------------------------------------------------
# upstream POD NUMBER VF: what these plugins do to a VF, and what they keep of it.
node 'cat >>/root/runtime' <<'END'
upstream() {
	local name=enp1s0v$2 mac=$(cat "/sys/class/net/enp1s0v$2/address")

	mkdir -p /var/lib/cni/sriov/pci /var/lib/cni/rdma
	ip link set enp1s0 vf "$2" vlan 9 spoofchk off
	ip link set "$name" netns "$1" && ip -n "$1" link set "$name" name net1 && ip -n "$1" link set net1 up
	rdma dev set "rxe-$name" netns "$1"
	jq -nc --arg name "$name" --arg mac "$mac" --arg vf "$3" --argjson n "$2" '{name: "rail", type: "sriov", OrigVfState: {
		HostIFName: $name, SpoofChk: true, Trust: false, AdminMAC: $mac, EffectiveMAC: $mac, Vlan: 0, MTU: 1500}, DPDKMode: false,
		Master: "enp1s0", MAC: "", vlan: 9, vlanQoS: null, deviceID: $vf, VFID: $n, spoofchk: "off"}' >"/var/lib/cni/sriov/$1-net1"
	printf %s "/var/run/netns/$1" >"/var/lib/cni/sriov/pci/$3"
	jq -nc --arg vf "$3" --arg rdma "rxe-$name" '{version: "1.0", deviceID: $vf, sandboxRdmaDevName: $rdma,
		containerRdmaDevName: $rdma}' >"/var/lib/cni/rdma/rail-$1-net1"
	config "$3" '{"vlan": 9, "spoofchk": "off"}' >"/root/$1.sriov"
	config "$3" '{}' >"/root/$1.rdma"
}
END
nothing_is_kept() {
	output "" node "find /var/lib/cni/sriov /var/lib/cni/rdma -type f"
}

t_ok "a pod of sriov-cni and rdma-cni" rt "upstream a 0 $vf0"
t_ok "has its devices" pod_has a net1 rxe-enp1s0v0
t_ok "its VF goes to nobody else" refused "a pod that sriov-cni set up has the device $vf0 still" b "$vf0"
t_ok "our DEL takes it down" rt take a
t_ok "all is as before" is_as_before
t_ok "and nothing is kept of it" nothing_is_kept
t_ok "a pod of sriov-cni and rdma-cni" rt "upstream a 0 $vf0"
t_ok "its namespace ends without a DEL" node 'ip netns del a; sleep 1; udevadm settle'
t_ok "the next pod has the VF" rt "add b $vf0"
t_ok "without the settings of the last one" vf0_is_as_before
t_ok "the DEL comes after all" rt GONE=1 take a
t_ok "DEL" rt take b
node ip netns add a
t_ok "all is as before" is_as_before
t_ok "and nothing is kept of it" nothing_is_kept

# --- the numbers of device files ----------------------------------------------------------------------------------------
# What containers are promised: a folder whose files are the RDMA device's, wherever that is.
# opens POD DEVICE: the one file uverbs* in it opens in POD and not on the host, under the name that the kernel has for it.
opens() {
	node "set -e
		cd /run/orbweaver/rdma/$2; name=\$(ls -d uverbs*); [[ \$name == \$(ls /sys/bus/pci/devices/$2/infiniband_verbs) ]]
		rm -f /dev/copy; mknod /dev/copy c \$((16#\$(stat -c %t \$name))) \$((16#\$(stat -c %T \$name)))
		ip netns exec $1 sh -c ': <>/dev/copy'; ! sh -c ': <>/dev/copy' 2>/dev/null; rm /dev/copy; stat -c %A:%n *"
}

number_of() {
	node "cat /sys/bus/pci/devices/$1/infiniband_verbs/*/dev"
}

folders_are_right() {
	node 'cd /run/orbweaver/rdma && for f in */uverbs*; do
		[[ $((16#$(stat -c %t $f))):$((16#$(stat -c %T $f))) == $(cat /sys/bus/pci/devices/${f%/*}/infiniband_verbs/${f#*/}/dev) ]] || exit 1; done
		[[ $(ls -d */uverbs*) == $(cd /sys/bus/pci/devices && ls -d */infiniband_verbs/uverbs* | sed "s,/infiniband_verbs,,") ]]'
}

t_wait 30 "each function has a folder with its files" folders_are_right
# In which order VFs get their numbers is theirs: the last one goes to the pod, the first one's is free.
by_number=$(node 'cd /sys/bus/pci/devices; for f in 0000:01:10.*/infiniband_verbs/*/dev; do echo "$(cut -d: -f2 $f) ${f%%/*}"; done | sort -n')
first=$(sed '1!d; s/.* //' <<<"$by_number") last=$(sed '$!d; s/.* //' <<<"$by_number") was=$(number_of "$last")
t_ok "a gap below" node "rdma link del \$(ls /sys/bus/pci/devices/$first/infiniband)"
t_ok "a pod" rt "add b $last"
t_ok "its device has another number now ($was before)" test "$was" != "$(number_of "$last")"
t_ok "the folder has it, with ADD's answer" opens b "$last"
t_ok "the other has an RDMA device again" node "netdev=\$(ls /sys/bus/pci/devices/$first/net); rdma link add rxe-\$netdev type rxe netdev \$netdev"
t_wait 30 "folders follow" folders_are_right
t_ok "DEL" rt take b
t_wait 30 "folders follow" folders_are_right
for _ in 1 2 3; do
	t_ok "two pods at once" rt "add a $vf0 & one=\$!; add b $vf1 && wait \$one"
	t_ok "the one's files are right" opens a $vf0
	t_ok "the other's, too" opens b $vf1
	t_ok "DEL of both at once" rt "take a & one=\$!; take b && wait \$one"
done
t_ok "all is as before" is_as_before

# --- the agent starts anew ----------------------------------------------------------------------------------------------
t_ok "a pod" rt "add a $vf0 '$settings'"
a_kill
t_wait 30 "the agent and its processes have ended" a_cni_gone
t_ok "DEL without an agent" rt take a
a_start --log-level info --cni-program "$PWD/$o_programs/orbweaver-cni"
t_wait 60 "is finished by the next agent" is_as_before
t_ok "a pod" rt "add a $vf0 '$settings'"
a_kill
t_wait 30 "the agent and its processes have ended" a_cni_gone
a_start --log-level info --cni-program "$PWD/$o_programs/orbweaver-cni"
t_wait 60 "the next one knows the pod: CHECK" rt check a
t_ok "DEL after a restart" rt take a
t_ok "all is as before" is_as_before

# --- a namespace that has no name, as those of cri-dockerd ----------------------------------------------------------------
# With an address, rules and routes, in the pod and on the node.
a_pool
t_ok "a pod" a_make_pod p
t_ok "its process" node 'setsid unshare --net sleep 100000 </dev/null >/dev/null 2>&1 & echo $! >/root/p.pid'
netns=/proc/$(node cat /root/p.pid)/ns/net
of_p="export NETNS=$netns IFNAME=eth0 COORDINATED=1"
addressed="{\"mac\": \"02:00:00:00:77:02\", \"vlan\": 6, \"ipam\": {\"type\": \"spiderpool\", \"default_ipv4_ippool\": [\"rail\"]}}"
all() {
	node bash tests/vm/seen.sh "$netns" || return
	o_curl GET "$spider/spiderippools/rail" | jq -r .status.allocatedIPs
}
nothing_has_changed() {
	diff <(echo "$running") <(all)
}
# But for the rule that all pods share, and the first one makes.
is_as_before_but_rule() {
	diff <(grep -v ' lookup 500' <<<"$before") <(rt "udevadm settle; seen" | grep -v ' lookup 500')
}
t_ok "the pod has a VF and an address" rt "$of_p; add p $vf0 '$addressed'"
t_ok "another one is beside it" rt "add b $vf1"
running=$(all)
t_eq "in the namespace of its process" 10.77.0.10/16 "$(node nsenter --net="$netns" ip -j -4 addr show eth0 |
	jq -r '.[0].addr_info[0] | "\(.local)/\(.prefixlen)"')"
a_kill
t_wait 30 "the agent and its processes have ended" a_cni_gone
t_ok "nothing of the pods has changed" nothing_has_changed
a_start --log-level info --cni-program "$PWD/$o_programs/orbweaver-cni"
t_wait 60 "the next one knows the pod: CHECK" rt "$of_p; check p"
t_wait "$a_wait_s" "it has seen the node" a_done 3
t_ok "nothing of the pods has changed" nothing_has_changed
t_ok "another pod does not get the VF" refused "pod default/p has the device $vf0 still" a "$vf0"
t_ok "nothing of the pods has changed" nothing_has_changed
t_ok "DEL" rt "$of_p; take p"
t_ok "DEL of the other" rt take b
t_ok "all is as before" is_as_before_but_rule
t_ok "the pod again" rt "$of_p; add p $vf0 '$addressed'"
t_ok "its process ends" node 'kill $(cat /root/p.pid); sleep 1; udevadm settle'
t_ok "DEL without the namespace" rt "$of_p; GONE=1 take p"
t_ok "all is as before" is_as_before_but_rule

a_end
t_done

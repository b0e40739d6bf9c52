#!/bin/bash
# VFs with their RDMA devices go into pods and come back: the plugins sriov and rdma as a runtime calls them, the agent's
# server and workers, igb and Soft-RoCE whose devices move.
# shellcheck disable=SC2317,SC2016 # functions that run as COMMAND of a check look unreachable; the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/vm/agent.sh
. tests/vm/agent.sh

status=0
hack/node-build --exclusive || status=$?
if ((status == 77)); then
	t_skip "VFs and RDMA devices move into pods and back" "hack/node-build --exclusive has nothing to build from"
	t_done
fi

a_begin attach --exclusive --roce --append ib_core.netns_mode=0
vf0=0000:01:10.0 vf1=0000:01:10.2

# --- a runtime, in the node ---------------------------------------------------------------------------------------------
# attach COMMAND PLUGIN POD [JSON]: net1 of POD; JSON is merged into the configuration. GONE=1: without the namespace.
# add POD DEVICE [JSON [ID]]: sriov, then rdma (its deviceID is ID, else DEVICE) with what that said; the result is in
# /root/POD.json. check POD, take POD [ID]: both, the latter backwards.
node 'cat >/root/runtime' <<'END'
attach() {
	local netns=/run/netns/$3

	[[ -z ${GONE:-} ]] || netns=
	jq -nc --arg type "$2" --argjson more "${4:-{\}}" '{cniVersion: "1.0.0", name: "rail", type: $type} + $more' |
		CNI_COMMAND=$1 CNI_CONTAINERID=$3 CNI_NETNS=$netns CNI_IFNAME=net1 CNI_PATH=/opt/cni/bin \
			CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$3;K8S_POD_UID=uid-$3" /opt/cni/bin/"$2"
}
add() {
	config "$2" "${3:-{\}}" >"/root/$1.sriov"
	attach ADD sriov "$1" "$(<"/root/$1.sriov")" >"/root/$1.first" || { cat "/root/$1.first" && return 1; }
	config "${4-$2}" "{\"prevResult\": $(<"/root/$1.first")}" >"/root/$1.rdma"
	attach ADD rdma "$1" "$(<"/root/$1.rdma")" >"/root/$1.json" || { cat "/root/$1.json" && return 1; }
}
config() {
	jq -nc --arg id "$1" --argjson more "$2" '(if $id == "" then {} else {deviceID: $id} end) + $more'
}
check() {
	attach CHECK rdma "$1" "$(<"/root/$1.rdma")" && attach CHECK sriov "$1" "$(<"/root/$1.sriov")"
}
take() {
	attach DEL rdma "$1" "$(<"/root/$1.rdma")" && attach DEL sriov "$1" "$(<"/root/$1.sriov")"
}
# What must be on the host again afterwards.
seen() {
	ip -j link show | jq -c '.[] | select(.ifname | test("^(enp1s0v|net|vf|dev)")) | [.ifname, .address, .mtu, .altnames]'
	ip -d -j link show enp1s0 | jq -c '.[0].vfinfo_list[] | [.vf, .address, (.vlan_list // .vlan), .spoofchk, .trust, .rate]'
	rdma -j dev show | jq -c 'map(.ifname) | sort'
	find /var/lib/orbweaver/cni -name "*.json" -o -path "*/notes/*"
}
END

rt() {
	node ". /root/runtime; $*"
}

# As before all pods. Names that udev gives come a moment later.
is_as_before() {
	diff <(echo "$before") <(rt "udevadm settle; seen")
}

vf0_is_as_before() {
	diff <(grep '^\[0,' <<<"$before") <(rt seen | grep '^\[0,')
}

# refused TEXT NAME VF: ADD fails, and says so.
refused() {
	local said

	! said=$(rt "add $2 $3") || return 1
	grep -F "$1" <<<"$said" || { echo "said: $said" && return 1; }
}

in_pod() {
	node ip netns exec "$1" "${@:2}"
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

a_cni_gone() {
	! node 'pgrep -x "ow-(supervisor|agent|kubeletd|worker|meter|cnid|cni-worker)"'
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

a_end
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The node agent and RDMA on a real kernel: Soft-RoCE devices on VFs are reported, and the RDMA subsystem gets the mode that a
# SriovNetworkPoolConfig wants: at run time where the kernel lets it, else at the next boot, asked for once.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

a_begin rdma --pfs 1

mode_wanted() {
	jq -n --arg mode "$1" --arg node "$a_node" --arg ns "$POD_NAMESPACE" '{
		apiVersion: "sriovnetwork.openshift.io/v1", kind: "SriovNetworkPoolConfig", metadata: {name: "pool", namespace: $ns},
		spec: {rdmaMode: $mode, nodeSelector: {matchLabels: {"kubernetes.io/hostname": $node}}}}' | k apply -f - >/dev/null
}

mode_is() {
	[[ $(a_state .status.system.rdmaMode) == "$1" ]] && a_done "$2"
}

guid_of_vf0() {
	a_state '.status.interfaces[] | select(.pciAddress == "0000:01:00.0").Vfs[0].guid'
}

has_guid() {
	[[ $(guid_of_vf0) == "$1" ]]
}

# In the agent's metrics, as a device on the first VF.
counts_rxe() {
	node "curl -s --noproxy '*' --max-time 20 http://127.0.0.1:9810/metrics" |
		grep "^rdma_rcvd_pkts_total{.*ifname=\"rxe0\",net_dev_name=\"$vf0\",is_root=\"false\",rdma_parent_name=\"enp1s0\"}"
}

counts_no_rxe() {
	! counts_rxe
}

# finds REASON CALL ERRNO COMMAND: all that orbweaver finds on RDMA devices when COMMAND, for the shell, starts it as "$@".
finds() {
	local found

	found=$(node "set -- $PWD/$o_programs/orbweaver doctor --verbs -o json; $4" || true)
	echo "$found"
	jq -e --arg want "$1 $2 $3" '.items | map("\(.reason) \(.call // "-") \(.errno // "-")") | . == [$want]' <<<"$found"
}

node 'modprobe rdma_rxe'
a_install --log-level info --rdma-metrics all
t_wait "$a_wait_s" "the agent reports" a_done 0
a_policy roce "{\"numVfs\": 2, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "2 VFs" a_done 2

# --- Soft-RoCE ----------------------------------------------------------------------------------------------------------
node "udevadm settle; rdma link add rxe0 type rxe netdev \$(ls /sys/bus/pci/devices/$pf1/virtfn0/net)"
guid=$(node 'tr : "\n" </sys/class/infiniband/rxe0/node_guid | sed "s/../&:/; s/:*$//" | paste -sd: ')
t_wait "$a_wait_s" "an RDMA device on a VF is reported with its GUID" has_guid "$guid"
vf0=$(node "ls /sys/bus/pci/devices/$pf1/virtfn0/net")
t_wait "$a_wait_s" "and what it has counted is among the metrics" counts_rxe

# --- verbs: what programs can do with the device, and what is said where they cannot --------------------------------------
node "ip link set enp1s0 up; ip addr add 10.7.0.1/24 dev $vf0; ip link set $vf0 up; for i in \$(seq $(slowly 150)); do rdma link | grep -q ACTIVE && exit; sleep 0.2; done; exit 1"
t_ok "all calls, and a message to itself" finds VerbsWork - - '"$@" rxe0'
t_ok "the same without a name: the device has a file" finds VerbsWork - - '"$@"'
t_ok "too little memory may be locked" finds MemlockLow "ibv_reg_mr of 64 MiB" ENOMEM \
	'prlimit --memlock=1048576 setpriv --bounding-set=-ipc_lock "$@" rxe0'
node 'mkdir /tmp/cgroup && mount -t cgroup -o devices cgroup /tmp/cgroup && mkdir /tmp/cgroup/pod && echo "c 231:* rwm" >/tmp/cgroup/pod/devices.deny'
t_ok "the cgroup does not have the device, in a container without /dev/char" finds VerbsNotAllowed ibv_open_device EPERM \
	'echo $$ >/tmp/cgroup/pod/cgroup.procs; unshare --mount sh -c "mount -t tmpfs none /dev/char; exec $* rxe0"
	echo $$ >/tmp/cgroup/cgroup.procs'
node 'rmdir /tmp/cgroup/pod && umount /tmp/cgroup'
t_ok "the file is missing" finds RdmaFilesMissing ibv_get_device_list ENODEV \
	'unshare --mount sh -c "mount -t tmpfs none /dev/infiniband; exec $* rxe0"'
node "ip link set $vf0 down"
t_ok "no link" finds RdmaLinkDown ibv_query_port ENETDOWN '"$@"'
node rdma link del rxe0
t_wait "$a_wait_s" "and gone when it is" has_guid null
t_wait "$a_wait_s" "its counters, too" counts_no_rxe

# --- at run time ----------------------------------------------------------------------------------------------------------
t_eq "the mode at first" shared "$(a_state .status.system.rdmaMode)"
mode_wanted exclusive
t_wait "$a_wait_s" "switched at run time, for there is no other network namespace" mode_is exclusive 2
t_ok "no reboot is asked for" a_condition RebootRequired False NoRebootNeeded
t_ok "the next boot will have it too" node 'modprobe -c | grep -E "^options ib_core .*netns_mode=0"'

# --- with pods ------------------------------------------------------------------------------------------------------------
node ip netns add pod
mode_wanted shared
t_wait "$a_wait_s" "with another network namespace a reboot is asked for, with the reason" \
	a_condition RebootRequired True RdmaModeNextBoot "pods or other network namespaces"
t_eq "the mode is what it was" exclusive "$(a_state .status.system.rdmaMode)"
tried=$(a_metric orbweaver_agent_steps_total 'step="set-rdma-netns-mode",result="failed"')
wrote=$(a_metric orbweaver_agent_steps_total 'step="write-rdma-next-boot"')
# Not dummy0: loading the module makes that one, unless a file of systemd forbids it.
node ip link add other0 type dummy
sleep "$(o_size 90 8)"
t_eq "it was tried once" "1 1" "$tried $(a_metric orbweaver_agent_steps_total 'step="set-rdma-netns-mode",result="failed"')"
t_eq "and the next boot's setting written once" "$wrote" "$(a_metric orbweaver_agent_steps_total 'step="write-rdma-next-boot"')"
t_wait 10 "an event asks for it" a_event RdmaModeNextBoot reboot
node "rdma link add rxe0 type rxe netdev $vf0"
t_ok "orbweaver does not find the device in another namespace, and says why" finds RdmaModeDiffers - - 'ip netns exec pod "$@"'
node rdma link del rxe0

# --- boots ----------------------------------------------------------------------------------------------------------------
t_ok "an orderly restart" hack/node reboot "$a_node"
t_wait "$a_wait_s" "the node has the mode and its VFs by itself" mode_is shared 2
t_ok "nothing waits for a reboot" a_condition RebootRequired False NoRebootNeeded
hack/node cut "$a_node" >/dev/null
t_ok "power cut, and on again" hack/node boot "$a_node"
t_wait "$a_wait_s" "the same after it" mode_is shared 2
hack/node cut "$a_node" >/dev/null
t_ok "on again with a command line that says exclusive" hack/node boot "$a_node" --append ib_core.netns_mode=0
mode_wanted exclusive
t_wait "$a_wait_s" "the command line suits" mode_is exclusive 2
mode_wanted shared
t_wait "$a_wait_s" "what overrules the setting of the next boot is named" a_condition Degraded True NextBootOverruled /proc/cmdline
t_eq "the running mode is right all the same" shared "$(a_state .status.system.rdmaMode)"
a_end
o_end op
t_done

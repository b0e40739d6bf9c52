#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The node agent on a real kernel with a real API server and operator: policies become VFs and go again, the host is repaired,
# what must not be touched is not, and what cannot be done is said.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

a_begin agent --pfs 2

vfs_of() {
	a_state ".status.interfaces[] | select(.pciAddress == \"$1\") | .Vfs // [] | map([.vfID, .driver, .mtu, (.mac != null)] | join(\":\")) | join(\" \")"
}

# --- without a policy -----------------------------------------------------------------------------------
# What the kernel itself needs, for comparison. Times are those of the program that is tested, usually one with sanitizers;
# AGENT=build/bin/orbweaver-agent for the one that ships.
bare_ms=$(node 'cd /sys/bus/pci/devices/0000:02:00.0; a=$(date +%s%N); echo 4 >sriov_numvfs; udevadm settle; b=$(date +%s%N)
	udevadm settle; c=$(date +%s%N); echo 0 >sriov_numvfs; echo 4 >sriov_numvfs; udevadm settle; d=$(date +%s%N)
	echo 0 >sriov_numvfs; udevadm settle; echo $(((b - a) / 1000000)) $(((d - c) / 1000000))')
read -r bare_ms bare_again_ms <<<"$bare_ms"
a_start
t_wait "$a_wait_s" "a node without policy has a NodeState that says what is there" a_done 0
t_eq "both PFs are reported" "enp1s0 7, enp2s0 7" \
	"$(a_state '[.status.interfaces[] | select(.totalvfs) | "\(.name) \(.totalvfs)"] | join(", ")')"

# --- the seeds' policy ------------------------------------------------------------------------------------
a_policy roce '{"numVfs": 4, "mtu": 2000, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "4 VFs" a_done 4
t_eq "they are bound, with their MTU and an address" "0:igbvf:2000:true 1:igbvf:2000:true 2:igbvf:2000:true 3:igbvf:2000:true" \
	"$(vfs_of $pf1)"
t_eq "status is true" "4 igbvf" "$(node 'ls -d /sys/bus/pci/devices/0000:01:00.0/virtfn*/driver | wc -l | tr "\n" " "
	basename $(readlink /sys/bus/pci/devices/0000:01:00.0/virtfn3/driver)')"
t_eq "the PF carries its VFs' MTU" 2000 "$(node cat /sys/class/net/enp1s0/mtu)"
t_ok "Ready" a_condition Ready True AsWanted
t_wait 10 "an event tells" a_event Configured "enp1s0: 4 VFs made"
t_wait 30 "the policy is ready" o_condition "$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodepolicies/roce" True NodesReady
printf '# %s: 4 VFs: %s ms; a bare echo with settling: %s ms\n' "$a_agent" "$(a_log '.msg == "host is as wanted"' | jq .took_ms)" "$bare_ms"

a_policy roce '{"numVfs": 6, "mtu": 2000, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "from 4 to 6" a_done 6
a_policy roce '{"numVfs": 0, "mtu": 2000, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "from 6 to 0" a_done 0
t_eq "none is left" 0 "$(node cat /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs)"
a_policy roce '{"numVfs": 3, "mtu": 2000, "nicSelector": {"vendor": "8086", "rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "3 VFs" a_done 3
a_no_policy roce
t_wait "$a_wait_s" "policy removed" a_done 0
t_eq "the PF is as it was found" "0 1500 1" \
	"$(node 'cd /sys/bus/pci/devices/0000:01:00.0; echo $(cat sriov_numvfs net/enp1s0/mtu sriov_drivers_autoprobe)')"
t_eq "no rule of ours is left" "" "$(node 'ls /etc/udev/rules.d | grep -e 0000:01 || true')"

# --- two policies, two kinds of devices -----------------------------------------------------------------------
a_policy net '{"numVfs": 6, "mtu": 1600, "nicSelector": {"pfNames": ["enp1s0#0-3"]}}'
a_policy vfio '{"numVfs": 6, "deviceType": "vfio-pci", "nicSelector": {"pfNames": ["enp1s0#4-5"]}}'
t_wait "$a_wait_s" "netdevice for VFs 0-3, vfio-pci for 4-5" a_done 6
t_eq "each has its driver" "igbvf igbvf igbvf igbvf vfio-pci vfio-pci" \
	"$(a_state '[.status.interfaces[] | select(.pciAddress == "0000:01:00.0").Vfs[].driver] | join(" ")')"
a_no_policy vfio
a_policy net '{"numVfs": 4, "mtu": 1600, "nicSelector": {"pfNames": ["enp1s0#0-3"]}}'
t_wait "$a_wait_s" "4 VFs again" a_done 4

# --- drift ---------------------------------------------------------------------------------------------------
repaired() {
	[[ $(a_log '.msg == "host is as wanted"' | jq -r .time) > $1 ]] && a_done 4
}
before=$(o_now)
node 'echo 0 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs'
t_wait "$a_wait_s" "VFs wiped by hand come back" repaired "$before"
t_wait 10 "an event tells of it" a_event Repaired "enp1s0: "
printf '# %s: 4 wiped VFs: repaired in %s ms from the first look on; a bare wipe and echo of 4 with settling: %s ms\n' \
	"$a_agent" "$(a_log '.msg == "host is as wanted"' | jq .took_ms)" "$bare_again_ms"
before=$(o_now)
name=$(node 'ls /sys/bus/pci/devices/0000:01:00.0/virtfn1/net')
node ip link set "$name" mtu 1400
t_wait "$a_wait_s" "an MTU set by hand is put right" repaired "$before"
before=$(o_now)
node 'vf=$(basename $(readlink /sys/bus/pci/devices/0000:01:00.0/virtfn2)); echo $vf >/sys/bus/pci/drivers/igbvf/unbind'
t_wait "$a_wait_s" "a driver unbound by hand is bound again" repaired "$before"

# --- a VF in a pod's network namespace -------------------------------------------------------------------------
name=$(node 'ls /sys/bus/pci/devices/0000:01:00.0/virtfn1/net')
node "ip netns add pod && ip link set $name netns pod"
a_policy net '{"numVfs": 2, "nicSelector": {"pfNames": ["enp1s0#0-1"]}}'
t_wait "$a_wait_s" "a change that would reset it is blocked, and its holder named" \
	a_condition Blocked True VfInUse /run/netns/pod
t_eq "it is still there" 4 "$(node cat /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs)"
t_ok "the pod still has it" node "ip netns exec pod ip link show $name"
node ip netns del pod
t_wait "$a_wait_s" "when it is back, the change goes through" a_done 2

# --- what cannot be done -------------------------------------------------------------------------------------------
a_policy many '{"numVfs": 8, "nicSelector": {"pfNames": ["enp2s0"]}}'
t_wait "$a_wait_s" "more VFs than the hardware has" a_condition Degraded True VfCountOutOfRange 7
a_policy net '{"numVfs": 3, "nicSelector": {"pfNames": ["enp1s0#0-2"]}}'
three() {
	[[ $(node cat /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs) == 3 ]]
}
t_wait "$a_wait_s" "the other PF is done all the same" three
a_no_policy many
t_wait "$a_wait_s" "without that policy all is well" a_done 3
node 'modprobe -r vfio-pci; echo "install vfio-pci /bin/false" >/etc/modprobe.d/none.conf'
a_policy vfio '{"numVfs": 1, "deviceType": "vfio-pci", "nicSelector": {"pfNames": ["enp2s0"]}}'
t_wait "$a_wait_s" "a driver that cannot be loaded" a_condition Degraded True ModuleRefused vfio-pci
t_ok "the other PF is as it was" three
node 'rm /etc/modprobe.d/none.conf'
a_policy vfio '{"numVfs": 2, "deviceType": "vfio-pci", "nicSelector": {"pfNames": ["enp2s0"]}}'
t_wait "$a_wait_s" "once it can, another wish goes through" a_done 5
node mount -o remount,ro /sys
a_policy net '{"numVfs": 2, "mtu": 1600, "nicSelector": {"pfNames": ["enp1s0#0-1"]}}'
t_wait "$a_wait_s" "a read-only /sys" a_condition Degraded True SysfsReadOnly
node mount -o remount,rw /sys
t_wait "$((a_wait_s + 90))" "and when it can be written again" a_done 4
a_no_policy vfio net
t_wait "$a_wait_s" "nothing is wanted any more" a_done 0

# --- a PF whose driver starts anew ---------------------------------------------------------------------------------
a_policy net '{"numVfs": 2, "nicSelector": {"rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "2 VFs" a_done 2
generation=$(a_state .metadata.generation)
listed() {
	a_state '[.status.interfaces[] | select(.pciAddress == "0000:01:00.0") | .Vfs | length] | join(" ")'
}
node 'echo 0000:01:00.0 >/sys/bus/pci/drivers/igb/unbind'
t_wait "$a_wait_s" "a PF without driver is told" a_condition Degraded True NoDriver "$pf1"
t_eq "what is known of it stays, with its VFs" 2 "$(listed)"
a_end
a_start
t_wait "$a_wait_s" "the next agent says the same" a_condition Degraded True NoDriver "$pf1"
t_eq "and knows it from the one before" 2 "$(listed)"
t_eq "nobody has taken it out of the spec" "$generation" "$(a_state .metadata.generation)"
node 'echo 0000:01:00.0 >/sys/bus/pci/drivers/igb/bind'
t_wait "$a_wait_s" "when it is back it gets its VFs" a_done 2
t_eq "and it was wanted all the time" "$generation" "$(a_state .metadata.generation)"

# --- what must not be touched ------------------------------------------------------------------------------------------
# The NIC with the node's address, as the API server knows it.
node 'ip addr add 192.0.2.7/24 dev enp2s0; ip link set enp2s0 up'
o_curl PATCH "/api/v1/nodes/$a_node/status" '{"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]}}' >/dev/null
refused() {
	t_wait "$a_wait_s" "$1" a_condition Degraded True ProtectedPf "the node's address"
	t_eq "and not touched" 0 "$(node cat /sys/bus/pci/devices/0000:02:00.0/sriov_numvfs)"
	t_eq "the other PF is as wanted" 2 "$(node cat /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs)"
	a_no_policy management
	t_wait "$a_wait_s" "all is well again" a_done 2
}
a_policy management '{"numVfs": 1, "nicSelector": {"pfNames": ["enp2s0"]}}'
refused "the management NIC is refused, with the reason"
node 'ip addr del 192.0.2.7/24 dev enp2s0'
a_policy management '{"numVfs": 1, "nicSelector": {"pfNames": ["enp2s0"]}}'
refused "also while its address is gone"
a_end
a_start
a_policy management '{"numVfs": 1, "nicSelector": {"pfNames": ["enp2s0"]}}'
refused "and by the next agent"

# --- a pod's interface on a PF ----------------------------------------------------------------------------------------------
a_policy net '{"numVfs": 2, "mtu": 3000, "nicSelector": {"rootDevices": ["0000:01:00.0"]}}'
t_wait "$a_wait_s" "an MTU of 3000" a_done 2
node 'ip netns add pod && ip link add link enp1s0 name net1 netns pod type macvlan mode bridge'
mtus() {
	node 'echo $(cat /sys/class/net/enp1s0/mtu) $(ip -n pod -o link show net1 2>/dev/null | sed "s/.*mtu \([0-9]*\).*/\1/")'
}
a_no_policy net
t_wait "$a_wait_s" "an MTU that a pod needs is not lowered, and the pod is named" \
	a_condition Blocked True PfInUse "macvlan net1 in /run/netns/pod"
# igb sets the PF up anew when VFs go, so they stay as well.
t_eq "and neither MTU nor VFs are touched" "2 3000 3000" "$(node cat /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs) $(mtus)"
node ip netns del pod
t_wait "$((a_wait_s + 90))" "when it is gone the PF goes back to how it was" a_done 0
t_eq "its MTU too" 1500 "$(mtus)"

# --- idle ----------------------------------------------------------------------------------------------------------------
a_policy net '{"numVfs": 7, "nicSelector": {"pfNames": ["enp1s0"]}}'
t_wait "$a_wait_s" "as many VFs as there can be" a_done 7
sleep 3
cpu_ms() {
	node "for pid in $(a_pids | tr '\n' ' '); do cat /proc/\$pid/stat; done" |
		sed 's/.*) //' | awk -v hz="$(getconf CLK_TCK)" '{ sum += $12 + $13 } END { print sum * 1000 / hz }'
}
idle_s=$(o_size 60 10)
# What it has still to say of its own steps, such as that links are well after them, comes in time.
is_idle() {
	local writes cpu

	writes=$(a_metric orbweaver_agent_api_writes_total) cpu=$(cpu_ms)
	sleep "$idle_s"
	echo "# $a_agent: idle for $idle_s s: $(($(cpu_ms) - cpu)) ms of CPU, under emulation" >"$tmp/idle"
	[[ $(a_metric orbweaver_agent_api_writes_total) == "$writes" ]]
}
t_wait "$a_wait_s" "an idle agent writes nothing" is_idle
cat "$tmp/idle"
node "for pid in $(a_pids | tr '\n' ' ')"'; do
	echo "# $(cat /proc/$pid/comm): $(grep VmRSS /proc/$pid/status | tr -s "\t " " "), $(grep ^Pss: /proc/$pid/smaps_rollup | tr -s " ")"; done'
a_end
o_end op
t_done

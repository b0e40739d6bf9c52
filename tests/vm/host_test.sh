#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nodeagent/host on a real kernel: a virtual node with two igb PFs. What is there is observed, steps change it, pods and
# processes that hold VFs are respected, and the initramfs decides on the RDMA mode.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

# In the checkout, which the node sees.
export ORBWEAVER_RUN=$PWD/build/host-test.$$
tool=$(realpath --relative-to=. "${BUILD:-build}/${VARIANT:-asan}/tests/host-tool")
pf=0000:01:00.0
vf0=0000:01:10.0
vf1=0000:01:10.2
vf2=0000:01:10.4

clean_up() {
	hack/node down h >/dev/null 2>&1 || true
	rm -rf "$ORBWEAVER_RUN"
}
trap clean_up EXIT

node() {
	hack/node exec h "$@"
}

# seen FILTER: what jq makes of the observed document.
seen() {
	node "$tool observe holders gids" | jq -r "$1"
}

# step NAME FIELD=VALUE...: execute one; prints whether it changed anything.
step() {
	local json="{\"step\": \"$1\"" field

	for field in "${@:2}"; do
		[[ ${field#*=} =~ ^([0-9]+|true|false|[[{].*)$ ]] && json+=", \"${field%%=*}\": ${field#*=}" ||
			json+=", \"${field%%=*}\": \"${field#*=}\""
	done
	node "$tool step '$json}'" | jq -r 'if .changed then "changed" else "same" end'
}

# refused REASON step...: it fails, for that reason.
refused() {
	local reason=$1 output

	shift
	if output=$("$@" 2>&1) || [[ $output != *"$reason: "* ]]; then
		printf 'expected: %s\ngot: %s\n' "$reason" "$output"
		return 1
	fi
}

# changes step..., and is done when tried again.
changes() {
	[[ $(step "$@") == changed ]] && [[ $(step "$@") == same ]]
}

t_ok "a node comes up" hack/node up h --pfs 2
t_need

# --- what is there --------------------------------------------------------------------------------
t_eq "both PFs are seen, with what they can have" "0000:01:00.0 igb 7 0000:02:00.0 igb 7" \
	"$(seen '[.interfaces[] | select(.totalvfs) | .pciAddress, .driver, .totalvfs] | join(" ")')"
t_eq "the management NIC is protected" "carries the default route (mgmt0)" \
	"$(seen '.interfaces[] | select(.name == "mgmt0") | .host.protected')"
t_eq "nothing went wrong on the way" "0" "$(seen '.problems | length')"
t_eq "/sys can be written" "true" "$(seen .node.sysfsWritable)"
mgmt=$(seen '.interfaces[] | select(.name == "mgmt0") | .pciAddress')

# --- refusals ---------------------------------------------------------------------------------------
t_ok "the management NIC is not touched" refused ProtectedPf step set-mtu device="$mgmt" mtu=1400
t_ok "no more VFs than there can be" refused VfCountOutOfRange step set-num-vfs pf=$pf count=8
t_ok "a PF without SR-IOV has no VFs" refused NoSriov step set-num-vfs pf="$mgmt" count=1
t_ok "a PF's driver is not touched" refused NotAVf step unbind-driver vf=$pf
t_ok "igb has no eSwitch" refused ESwitchRefused step set-eswitch pf=$pf mode=switchdev
t_ok "a device that is not there" refused DeviceGone step set-num-vfs pf=0000:77:00.0 count=1

# --- settings -----------------------------------------------------------------------------------
# setting FILTER: what jq makes of those of the PF.
setting() {
	node "$tool observe settings" | jq -c ".interfaces[] | select(.pciAddress == \"$pf\") | $1"
}

# sets NAME VALUE, and puts back what was there.
sets() {
	local was

	was=$(setting ".settings.$1")
	changes set-nic-setting pf="$pf" setting="$1" value="$2" && changes set-nic-setting pf="$pf" setting="$1" value="$was"
}

t_ok "rings" sets rings '{"rx":512,"tx":1024}'
t_ok "channels" sets channels '{"combined":3}'
t_ok "pause frames" sets pauseFrames "$(setting '.settings.pauseFrames != true')"
t_ok "no more descriptors than igb has" refused SettingOutOfRange step set-nic-setting pf=$pf setting=rings 'value={"rx":8192}'
t_ok "a ring that igb rounds" refused NotAsAsked step set-nic-setting pf=$pf setting=rings 'value={"rx":500}'
t_eq "rings, put back" changed "$(step set-nic-setting pf=$pf setting=rings 'value={"rx":256}')"
t_ok "igb has no DCB" refused SettingUnsupported step set-nic-setting pf=$pf setting=pfc 'value=[3]'
t_ok "QEMU's igb takes no other size of reads" refused NotAsAsked step set-nic-setting pf=$pf setting=maxReadRequest value=4096
t_ok "no RDMA device, no rdma_cm" refused SettingUnsupported step set-nic-setting pf=$pf setting=rdmaCmTos value=106
node "modprobe rdma_cm && { grep -q configfs /proc/mounts || mount -t configfs none /sys/kernel/config; } &&
	rdma link add rxe0 type rxe netdev $(setting .name)"
t_ok "type of service of rdma_cm" changes set-nic-setting pf=$pf setting=rdmaCmTos value=106
t_eq "the kernel has it" 106 "$(node "cd /sys/kernel/config/rdma_cm && mkdir rxe0 && cat rxe0/ports/1/default_roce_tos && rmdir rxe0")"
t_ok "and the one before" changes set-nic-setting pf=$pf setting=rdmaCmTos value=0
t_eq "Soft-RoCE has version 2" '"v2"' "$(setting .settings.rdmaCmRoceMode)"
t_ok "and no other" refused SettingRefused step set-nic-setting pf=$pf setting=rdmaCmRoceMode value=v1
node rdma link del rxe0

# --- VFs, in the order of the planner ----------------------------------------------------------
node "echo \$\$ >/root/watching; exec timeout 900 $tool watch 900 >/root/events" &
watching=$!
t_ok "autoprobe off" changes set-autoprobe pf=$pf on=false
t_ok "4 VFs" changes set-num-vfs pf=$pf count=4 from=0
t_eq "all are there" same "$(step wait-vfs pf=$pf count=4)"
t_ok "from 4 to 6 leads through 0" refused VfCountNeedsZero step set-num-vfs pf=$pf count=6
t_ok "MTU of the PF" changes set-mtu device=$pf mtu=4000
t_ok "PF up" changes link-up device=$pf
t_ok "MAC address of VF 0" changes set-vf-mac pf=$pf 'vfs={"0": "02:00:00:00:00:77"}'
t_ok "an Ethernet VF takes no GUID" refused VfGuidRefused step set-vf-guid pf=$pf which=node 'vfs={"0": "02:00:00:00:00:00:00:01"}'
t_ok "no driver binds while autoprobe is off" refused AutoprobeOff step probe-driver vf=$vf0
t_ok "autoprobe on" changes set-autoprobe pf=$pf on=true
t_ok "driver of VF 0" changes probe-driver vf=$vf0 driver=igbvf
t_eq "its interface is there" same "$(step wait-vf vf=$vf0 for=netdev)"
t_ok "MTU of VF 0" changes set-mtu device=$vf0 mtu=3000
t_eq "VF 0 is as asked for" "igbvf 02:00:00:00:00:77 3000 false" \
	"$(seen '.interfaces[1].Vfs[0] | [.driver, .mac, .mtu, .host.inUse] | join(" ")')"
t_ok "driver of VF 1" changes probe-driver vf=$vf1 driver=igbvf

t_ok "module vfio-pci" changes load-module module=vfio-pci
t_ok "VF 2 is for vfio-pci" changes set-driver-override vf=$vf2 driver=vfio-pci
t_ok "VF 2 binds to it" changes probe-driver vf=$vf2 driver=vfio-pci
t_eq "VF 2 is free until someone opens it" "vfio-pci vfio false" \
	"$(seen '.interfaces[1].Vfs[2] | [.driver, .host.holder.kind, .host.inUse] | join(" ")')"
t_ok "VF 2 goes back: override" changes set-driver-override vf=$vf2
t_ok "VF 2 goes back: unbind" changes unbind-driver vf=$vf2
t_ok "VF 2 goes back: probe" changes probe-driver vf=$vf2 driver=igbvf

# --- RDMA -------------------------------------------------------------------------------------------
name0=$(seen '.interfaces[1].Vfs[0].name')
t_ok "Soft-RoCE on VF 0" node rdma link add rxe0 type rxe netdev "$name0"
t_eq "it is reported with its function, GUID and files" \
	"$vf0 roce 00:00:00:ff:fe:00:00:77 /dev/infiniband/uverbs0 /dev/infiniband/umad0" \
	"$(seen '.rdma.devices[0] | [.netdevPciAddress, .protocol, .nodeGuid, .charDevices[].path] | join(" ")')"
t_eq "it is VF 0's" "rxe0 00:00:00:ff:fe:00:00:77" "$(seen '.interfaces[1].Vfs[0] | [.host.rdma[0], .guid] | join(" ")')"
t_eq "its GID table is summed up" "1024 true" \
	"$(seen '.rdma.devices[0].ports[0].gids | [.size, .used == .rocev2 and .used > 0] | join(" ")')"
node 'sleep 600 3<>/dev/infiniband/uverbs0 >/dev/null 2>&1 & echo $! >/root/holder'
t_eq "who has it open is named" "true process sleep (pid" \
	"$(seen '.interfaces[1].Vfs[0].host | "\(.inUse) \(.holder.kind) \(.holder.name | .[:10])"')"
t_ok "a VF whose verbs are open stays" refused VfInUse step unbind-driver vf=$vf0
# shellcheck disable=SC2016 # the node's shell expands it
node 'kill $(cat /root/holder)'
t_ok "rxe goes" node rdma link del rxe0
t_ok "mode exclusive, now" changes set-rdma-netns-mode mode=exclusive
t_eq "it is" exclusive "$(seen .rdma.netnsMode)"
t_ok "mode shared again" changes set-rdma-netns-mode mode=shared

# --- a pod holds a VF -------------------------------------------------------------------------------
name1=$(seen '.interfaces[1].Vfs[1].name')
node "ip netns add pod && ip link set $name1 netns pod"
t_eq "VF 1 is in use, with its holder" "igbvf netns /run/netns/pod true" \
	"$(seen '.interfaces[1].Vfs[1] | [.driver, .host.holder.kind, .host.holder.name, .host.inUse] | join(" ")')"
t_ok "it is not reset" refused VfInUse step set-num-vfs pf=$pf count=0
t_ok "it is not unbound" refused VfInUse step unbind-driver vf=$vf1
t_ok "the RDMA mode cannot change" refused RdmaModeBusy step set-rdma-netns-mode mode=exclusive
t_ok "the pod still has it" node "ip netns exec pod ip link show $name1"
node ip netns del pod
t_wait 10 "it comes back" node test -e "/sys/bus/pci/devices/$vf1/net/$name1"
t_ok "VFs can be removed now" changes set-num-vfs pf=$pf count=0 from=4
# shellcheck disable=SC2016 # the node's shell expands it
node 'kill $(cat /root/watching)'
wait "$watching" || true
t_ok "events told of the PF" node grep -q "^uevent change $pf -$" /root/events
t_ok "events told of a VF's driver" node grep -q "^uevent bind $vf0 -$" /root/events
t_ok "events told of the interface" node grep -q "^link change $vf0 $name0$" /root/events
t_ok "events told of the RDMA device" node grep -q "^rdma change - rxe0$" /root/events

# --- the next boot ----------------------------------------------------------------------------------
t_ok "exclusive from the next boot on" changes write-rdma-next-boot mode=exclusive
t_eq "it waits for the boot" "exclusive modprobe.d true" \
	"$(seen '.rdma.netnsModeNextBoot | [.mode, .source, .ownSinceBoot] | join(" ")')"
# That files and the command line decide, agent_rdma_test.sh shows.
printf 'ib_core\n' >"$ORBWEAVER_RUN/modules"
printf 'options ib_core netns_mode=1\n' >"$ORBWEAVER_RUN/old.conf"
node sync
hack/node cut h >/dev/null
t_ok "power, with an initramfs that disagrees" hack/node boot h --initramfs-file "$ORBWEAVER_RUN/modules:/etc/modules" \
	--initramfs-file "$ORBWEAVER_RUN/old.conf:/etc/modprobe.d/old.conf"
t_eq "the initramfs wins: the node has not the mode that its files name" "shared exclusive modprobe.d exclusive" \
	"$(seen '.rdma | [.netnsMode, .netnsModeNextBoot.mode, .netnsModeNextBoot.source, .netnsModeNextBoot.own] | join(" ")')"
t_ok "the setting is removed" changes remove-rdma-next-boot

t_done

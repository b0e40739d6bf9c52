#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/node: two virtual nodes on one segment, with SR-IOV, Soft-RoCE, commands, power cuts and restarts.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run
probe=build/node-test.$$
pf=/sys/bus/pci/devices/0000:01:00.0

clean_up() {
	hack/node down a b d e >/dev/null 2>&1 || true
	hack/cluster down c >/dev/null 2>&1 || true
	rm -rf "$tmp" "$probe"
}
trap clean_up EXIT

a() {
	hack/node exec a "$@"
}

# says WORDS COMMAND...: the command fails and says so, in one line.
says() {
	local words=$1 output

	shift
	if output=$("$@" 2>&1 >/dev/null) || [[ $output != *"$words"* || $(wc -l <<<"$output") != 1 ]]; then
		printf 'expected: %s\ngot: %s\n' "$words" "$output"
		return 1
	fi
}

# Print the exit status of a command.
status_of() {
	local status=0

	"$@" &>/dev/null || status=$?
	echo "$status"
}

# prints WORDS COMMAND...: they are in what the command prints.
prints() {
	"${@:2}" 2>&1 | grep -F -- "$1"
}

# Set `status` to the exit status of background process $1. Not in a COMMAND of a check: its subshell has no children.
await() {
	status=0
	wait "$1" || status=$?
}

# Processes that were started in our folder or name it.
left_over() {
	local process

	for process in /proc/[0-9]*; do
		[[ $(readlink "$process/cwd") != "$ORBWEAVER_RUN"/* ]] &&
			! grep -qF "$ORBWEAVER_RUN" "$process/cmdline" || echo "${process#/proc/}"
	done 2>/dev/null
}

# --- mistakes -------------------------------------------------------------------------------------

t_ok "a name that is none is refused" says 'node name "A_": must be' hack/node up A_
t_ok "too many PFs are refused" says '--pfs "10": must be a number from 0 to 9' hack/node up a --pfs 10
t_ok "a segment needs a PF" says "give more --pfs" hack/node up a --segment x --segment y
t_ok "so does a name" says "give more --pfs" hack/node up a --pf-name x --pf-name y
t_ok "that is one of an interface" says "must be a letter and up to 14" hack/node up a --pf-name ens6f0np0-and-more
t_ok "an unknown cluster is refused" says "no such cluster" hack/node up a --cluster c
t_ok "a file for the initramfs has to be there" says "no file /nowhere" hack/node up a --initramfs-file /nowhere:/etc/x
t_ok "a node that is not there takes no commands" says "no such node" hack/node exec a true
t_ok "none of this left anything behind" test ! -e "$ORBWEAVER_RUN/nodes"

# --- start ----------------------------------------------------------------------------------------

t_ok "a control plane" hack/cluster up c --no-controllers
began=$SECONDS
t_ok "two nodes start with one command" hack/node up a b --cluster c --segment wire --memory 512
echo "# $((SECONDS - began)) s until both could be used"
t_need
t_ok "starting them again changes nothing" hack/node up a b
t_ok "new options for a node that is there are refused" says "is there already" hack/node up a --cpus 2
t_eq "status names both" "a on boots 1 b on boots 1" \
	"$(hack/node status | sed -E 's/ pid [0-9]+//; s/ pfs.*//' | paste -sd' ')"

# --- commands -------------------------------------------------------------------------------------

t_eq "a command's exit status comes back" 7 "$(status_of a sh -c 'exit 7')"
t_eq "so does death by a signal" 143 "$(status_of a sh -c 'kill -TERM $$')"
t_eq "output and errors stay apart" "out" "$(a 'echo out; echo err >&2' 2>"$tmp/errors")"
t_eq "errors" "err" "$(<"$tmp/errors")"
t_eq "arguments arrive as they were" "<a b> <\$x> <'>" "$(a printf '<%s> <%s> <%s>\n' 'a b' "\$x" "'" | paste -sd' ')"
head -c 3000000 /dev/urandom >"$tmp/bytes"
t_eq "input goes in and comes out whole" "$(sha256sum <"$tmp/bytes")" "$(a cat <"$tmp/bytes" | sha256sum)"
for i in 1 2 3 4 5 6; do a "sleep 1; echo $i" & done >"$tmp/several"
wait
t_eq "several commands run at once" "1 2 3 4 5 6" "$(sort "$tmp/several" | paste -sd' ')"
t_eq "the host name is the node's" b "$(hack/node exec b hostname)"
t_fails "the machine's files cannot be changed" a touch "/run/node/live$PWD/build/x"
t_fails "the checkout cannot be changed" a touch build/x
t_fails "a file is not there yet" a cat "$probe"
mkdir -p build
echo built >"$probe"
t_eq "what is built on the machine is seen at once" built "$(a cat "$probe")"
t_eq "kubeconfigs of the cluster work as they are" default \
	"$(a "$(hack/k8s-build --bin)/kubectl" get namespace default -o 'jsonpath={.metadata.name}')"
a 'echo to the console >/dev/console'
t_wait 10 "the console is there to read" prints "to the console" hack/node console a

# --- SR-IOV and RDMA ------------------------------------------------------------------------------

t_eq "the PF has 7 VFs to give" 7 "$(a cat $pf/sriov_totalvfs)"
t_eq "the PF's driver is igb" igb "$(a "basename \$(readlink $pf/driver)")"
t_ok "4 VFs" a "echo 4 >$pf/sriov_numvfs && udevadm settle"
t_eq "all of them have igbvf" "igbvf igbvf igbvf igbvf" \
	"$(a "for v in $pf/virtfn*; do basename \$(readlink \$v/driver); done" | paste -sd' ')"
t_eq "RDMA namespaces are shared" "netns shared" "$(a rdma system | grep -o 'netns [a-z]*')"
a ip link set enp1s0 up
a ip link set enp1s0v0 up
t_ok "Soft-RoCE on a VF" a rdma link add rxe0 type rxe netdev enp1s0v0
t_eq "verbs see it" rxe0 "$(a ibv_devices | awk 'NR > 2 { print $1 }')"
t_ok "its character device is there" a test -c /dev/infiniband/uverbs0
t_ok "vfio-pci takes a VF" a "modprobe vfio-pci && cd $pf/virtfn3/ && echo vfio-pci >driver_override &&
	basename \$(readlink -f .) >driver/unbind && basename \$(readlink -f .) >/sys/bus/pci/drivers_probe &&
	test -c /dev/vfio/\$(basename \$(readlink iommu_group))"

a 'ip addr add 192.168.7.1/24 dev enp1s0; ip addr add 192.168.8.1/24 dev enp1s0v0'
hack/node exec b 'ip link set enp1s0 up; ip addr add 192.168.7.2/24 dev enp1s0; ip addr add 192.168.8.2/24 dev enp1s0'
t_wait 30 "the nodes' PFs hear each other" a busybox ping -c 1 -W 2 192.168.7.2
t_wait 30 "a VF hears the other node's PF" a busybox ping -c 1 -W 2 -I enp1s0v0 192.168.8.2

# --- power ----------------------------------------------------------------------------------------

a 'echo kept >/var/lib/orbweaver/state; echo "options ib_core netns_mode=0" >/etc/modprobe.d/rdma.conf
	printf "#!/bin/sh\necho ran >/run/late\n" >/etc/boot.d/late; chmod +x /etc/boot.d/late; sync'
a sleep 300 &
sleeper=$!
t_wait 10 "a command runs" a pidof sleep
t_ok "the power is cut" hack/node cut a
t_wait 10 "a command that was running has ended" test ! -e "/proc/$sleeper"
await "$sleeper"
t_eq "and failed" 255 "$status"
t_ok "a node without power takes no commands" says "is off" hack/node exec a true
t_fails "status says so" hack/node status a
t_ok "it boots again" hack/node boot a
t_need
t_eq "what was synced is there" kept "$(a cat /var/lib/orbweaver/state)"
t_eq "modules got the options from /etc/modprobe.d" "netns exclusive" "$(a rdma system | grep -o 'netns [a-z]*')"
t_eq "the VFs are gone, as on any machine" 0 "$(a cat $pf/sriov_numvfs)"
t_wait 10 "what is in /etc/boot.d has run" a test -e /run/late
t_ok "the other node on the segment is still heard" a \
	'ip link set enp1s0 up; ip addr add 192.168.7.1/24 dev enp1s0; sleep 2; busybox ping -c 1 -W 5 192.168.7.2'

t_ok "an orderly restart" hack/node reboot a
t_eq "status counts it" "2" "$(hack/node status a | sed -E 's/.* boots ([0-9]+).*/\1/')"
t_eq "nothing is lost" kept "$(a cat /var/lib/orbweaver/state)"
a '/run/node/busybox reboot -f' &>/dev/null || true
t_wait 120 "a restart that nobody ordered is noticed" prints " boots 3 " hack/node status a
t_eq "commands work again" a "$(a hostname)"

echo "options ib_core netns_mode=1" >"$tmp/rdma.conf"
echo ib_core >"$tmp/modules"
hack/node cut a
t_ok "boot with an initramfs of another opinion" hack/node boot a --append probe=1 \
	--initramfs-file "$tmp/rdma.conf:/etc/modprobe.d/rdma.conf" --initramfs-file "$tmp/modules:/etc/modules"
t_eq "it overrules /etc/modprobe.d" "netns shared" "$(a rdma system | grep -o 'netns [a-z]*')"
t_ok "it can be looked into where initramfs files are" a "grep -q netns_mode=1 /boot/initrd.img-\$(uname -r)"
t_ok "the kernel's command line has the addition" a grep -qw probe=1 /proc/cmdline

hack/node cut a
hack/node boot a &>"$tmp/boot" &
boot=$!
t_wait 30 "a node that is booting" hack/node status a
t_ok "loses its power" hack/node cut a
await "$boot"
t_eq "which fails the boot" 1 "$status"
t_ok "in words" grep -q "QEMU has ended" "$tmp/boot"

# --- end ------------------------------------------------------------------------------------------

output=$(hack/node up d --pfs 0 --append 'rdinit=/nowhere root=/dev/nothing' 2>&1) && status=0 || status=$?
t_eq "a kernel that cannot start is a failure" 1 "$status"
t_ok "reported with the end of its console" prints "Kernel panic" echo "$output"
t_ok "nothing of it is left" test ! -e "$ORBWEAVER_RUN/nodes/d"
hack/node up e &>"$tmp/up" &
up=$!
t_wait 30 "a start" hack/node status e
kill "$up"
await "$up"
t_eq "is interrupted" 143 "$status"
t_ok "and leaves nothing" test ! -e "$ORBWEAVER_RUN/nodes/e"
t_ok "down ends both" hack/node down a b
t_ok "no folder is left" test ! -e "$ORBWEAVER_RUN/nodes" -a ! -e "$ORBWEAVER_RUN/segments"
hack/cluster down c
t_eq "no process is left" "" "$(left_over)"
t_ok "down of what is not there is fine" hack/node down a
t_done

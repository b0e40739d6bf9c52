#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seen.sh [NAMESPACE...]: all that an agent, its update or its removal must leave alone on a node, as text: run in a virtual node,
# before and after. Links, addresses, routes and rules of the node and of each network namespace in /run/netns and of those that
# are named by a path; packet filters; VFs in sysfs; RDMA devices; what the runtime and CNI plugins keep. Without what changes by
# itself: timers, lifetimes, counters.
set -euo pipefail

network() {
	ip -d link show
	ip -d addr show
	ip -d rule show
	ip -d -6 rule show
	ip -d route show table all
	ip -d -6 route show table all
	grep -H . /proc/sys/net/ipv4/conf/*/{arp_ignore,arp_announce,arp_notify,rp_filter,forwarding,accept_local}
	iptables-save | sed '/^#/d'
	ip6tables-save | sed '/^#/d'
}

without_timers() {
	sed -E 's/ \[[0-9]+:[0-9]+\]$//; s/ (hello|tcn|topology_change|gc|hold|message_age|forward_delay)_timer +[0-9.]+//g; s/(valid|preferred)_lft [0-9]+sec//g; s/ expires [0-9]+sec//g'
}

functions() {
	local function file

	for function in /sys/bus/pci/drivers/igb/0* /sys/bus/pci/drivers/igbvf/0* /sys/bus/pci/drivers/vfio-pci/0*; do
		[[ -e $function ]] || continue
		echo "$function $(readlink -f "$function")"
		for file in driver_override sriov_numvfs sriov_totalvfs sriov_drivers_autoprobe; do
			[[ ! -e $function/$file ]] || echo "$file $(<"$function/$file")"
		done
		ls -d "$function"/{virtfn*,net/*,infiniband/*,infiniband_verbs/*} 2>/dev/null || true
	done
}

# Path, mode, inode, change and content of each file, and where symbolic links lead. Not all folders are there.
files() {
	local folder

	for folder; do
		[[ -d $folder ]] || continue
		find "$folder" -type l -printf '%p %i %C@ -> %l\n'
		find "$folder" -type f ! -name '*.lock' ! -name lock ! -name 'last_reserved_ip*' -printf '%p %m %i %C@ ' -exec sha256sum {} \;
	done | sort
}

echo "== the node"
network | without_timers
functions
rdma system show
rdma dev show
rdma link show
for path in /run/netns/* "$@"; do
	[[ -e $path ]] || continue
	echo "== $path $(stat -L -c %i "$path")"
	nsenter --net="$path" bash -c "$(declare -f network); network" | without_timers
	nsenter --net="$path" rdma link show
done
echo "== files"
files /etc/cni/net.d /opt/cni/bin /var/lib/cni /var/lib/orbweaver/cni /etc/modprobe.d /etc/udev/rules.d

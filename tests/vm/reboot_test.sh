#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reboots and power cuts of a node with VFs in pods (StatefulSet, DaemonSet, Deployment), agent from its image with /host, and
# other pods that come meanwhile: every VF has its driver again, and every pod the device that its environment names, which is
# compared by the number of its device node. A pod that was told a number which is another VF's now is named in an event, and
# deleted as that says. BOOTS=N: how often (2; LONG=1: 20).
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

boots=${BOOTS:-$(o_size 20 2)}
a_wait_s=${A_WAIT_S:-300}
apps="statefulset/stateful daemonset/each deployment/guest"
pods=3
vfs=4

# app KIND NAME: one pod with a VF.
app() {
	local replicas="replicas: 1"

	[[ $1 != DaemonSet ]] || replicas=""
	cat <<-END
		apiVersion: apps/v1
		kind: $1
		metadata: { name: $2 }
		spec:
		  $replicas
		  $([[ $1 != StatefulSet ]] || echo "serviceName: $2")
		  selector: { matchLabels: { app: $2 } }
		  template:
		    metadata: { labels: { app: $2, has: vf } }
		    spec:
		      terminationGracePeriodSeconds: 1
		      containers:
		      - name: c
		        image: localhost/busybox:1
		        imagePullPolicy: Never
		        command: [sleep, "100000"]
		        resources: { limits: { spidernet.io/roce: 1 } }
	END
}

# Each pod that runs in this boot: name, PCI address that it was told, number of its device node.
told() {
	k get pods -l has=vf -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null and .status.containerStatuses) |
		"\(.metadata.name) \(.status.containerStatuses[0].containerID // "none" | sub(".*/"; ""))"' >"$tmp/containers"
	node 'while read -r name container; do
		printf "%s " "$name"
		ctr -n k8s.io tasks exec --exec-id "x$RANDOM$RANDOM" "$container" sh -c \
			"echo \$PCIDEVICE_SPIDERNET_IO_ROCE \$(stat -c %t:%T /dev/infiniband/uverbs*)" 2>/dev/null </dev/null || echo
	done' <"$tmp/containers"
}

# Each verbs device of a VF: PCI address and number, in hexadecimal as stat(1) has it.
devices() {
	node 'for dir in /sys/class/infiniband_verbs/uverbs*; do
		netdev=$(cat "/sys/class/infiniband/$(cat "$dir/ibdev")/parent")
		printf "%s %x:%x\n" "$(basename "$(readlink -f "/sys/class/net/$netdev/device")")" $(tr : " " <"$dir/dev")
	done'
}

# All run in this boot, each with a device of its own.
settled() {
	told >"$tmp/told"
	devices >"$tmp/devices"
	cat "$tmp/told" "$tmp/devices"
	[[ $(awk 'NF == 3' "$tmp/told" | wc -l) == "$pods" && $(wc -l <"$tmp/told") == "$pods" ]] &&
		[[ -z $(awk '{ print $2 }' "$tmp/told" | sort | uniq -d) ]]
}

# Names of pods whose device node is not that of their PCI address.
mistaken() {
	awk 'NR == FNR { number[$1] = $2; next } number[$2] != $3 { print $1 }' "$tmp/devices" "$tmp/told"
}

is_named() {
	cat "$tmp/told" "$tmp/devices" "$tmp/given"
	k get events -o json | jq -e --arg pod "$1" 'any(.items[]; .reason == "DeviceFilesMoved" and .involvedObject.name == $pod and
		(.message | contains("delete the pod")))'
}

none_is_mistaken() {
	settled && [[ -z $(mistaken) ]]
}

vfs_have_drivers() {
	[[ $(node "ls -d /sys/bus/pci/devices/$pf1/virtfn*/driver | wc -l") == "$vfs" ]]
}

# boot NUMBER: in order or not, while a pod is replaced.
boot() {
	k delete pods -l app=guest --wait=false >/dev/null
	if (($1 % 2)); then
		t_ok "boot $1: in order" hack/node reboot "$a_node"
	else
		hack/node cut "$a_node" >/dev/null
		t_ok "boot $1: after a power cut" hack/node boot "$a_node"
	fi
}

a_begin reboot --pfs 1 --roce --memory 1280
# kubelet 1.20 does not get over a Node without status; it makes one of its own.
k delete node "$a_node" >/dev/null
t_ok "kubelet and containerd" hack/node kubelet "$a_node"
t_ok "the agent's image" hack/node image "$a_node" "${BUILD:-build}/images/orbweaver-agent.tar"
t_need
t_ok "the agent as it is installed" k apply -n "$POD_NAMESPACE" -f manifests/base/agent.yaml
a_policy roce "{\"numVfs\": $vfs, \"isRdma\": true, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "VFs" a_done "$vfs"
t_need
for app in "StatefulSet stateful" "DaemonSet each" "Deployment guest"; do
	# shellcheck disable=SC2086 # kind and name
	app $app | k apply -f - >/dev/null
done
t_wait "$a_wait_s" "$apps: every pod has its own device" none_is_mistaken
t_need

# What a power cut may leave of a result that the runtime's CNI library had just written; a pod of such a sandbox never ends.
results=/var/lib/cni/results
no_result_is_empty() {
	node "find $results -type f -size 0" >"$tmp/empty"
	cat "$tmp/empty"
	[[ ! -s $tmp/empty ]]
}

# A pod that is named is deleted, as the event says: as long as it runs, nobody gets the VF whose device node it has, and another
# pod may wait for just that.
: >"$tmp/given"
settles() {
	local pod

	settled && return
	for pod in $(mistaken); do
		! is_named "$pod" >/dev/null || k delete pod "$pod" --wait=false >/dev/null
	done
	return 1
}

for ((n = 1; n <= boots; n++)); do
	node "touch $results/pods-planted-eth0; sync"
	boot "$n"
	t_wait "$a_wait_s" "no result of CNI is empty" no_result_is_empty
	t_wait "$a_wait_s" "the VFs are there" a_done "$vfs"
	t_wait "$a_wait_s" "each has its driver" vfs_have_drivers
	t_wait "$a_wait_s" "the pods run again" settles
	node 'jq -c .given /var/lib/orbweaver/state.json' >"$tmp/given"
	for pod in $(mistaken); do
		t_wait 60 "$pod has the device node of another VF, and an event says so" is_named "$pod"
		k delete pod "$pod" --wait=false >/dev/null
	done
	t_wait "$a_wait_s" "every pod has its own device" none_is_mistaken
	t_need
done
names=$(k get events -o json | jq '[.items[] | select(.reason == "DeviceFilesMoved").involvedObject.name] | unique | length')
echo "# $boots boots, $names pods were named in an event and made anew"
o_end op
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The guides' walk-throughs on what `hack/demo-cluster up` leaves running. That has installed a release's file and applied the
# guides' YAML and DaemonSets, and tried RDMA between their pods, with devices of their own and shared. Here: pods that have the
# guides' network beside the cluster's, pods with eight rails, an update of operator and agents under load, and removal and
# another installation without a VF being touched.
#
# Commands in pods go past the kubelet, which may be busy with a load.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh

tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run DEMO_CLUSTER=walk
nodes=(walk-1 walk-2)
namespace=orbweaver-system
export BUILD=${BUILD:-build}
# What `hack/demo-cluster up` has installed.
install_file=$BUILD/install/install-kubernetes-1.20.yaml
# The NICs as hack/demo-cluster calls them.
roce=ens6f0np0

clean_up() {
	hack/demo-cluster down >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

k() {
	hack/cluster kubectl walk "$@"
}

# --- pods -----------------------------------------------------------------------------------------

# pod NAME NODE RESOURCE,... [hostNetwork [NETWORK,...]]: as in the guides, asleep.
pod() {
	cat <<END | k apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: { name: $1, labels: { walk: through }, annotations: { ${5:+k8s.v1.cni.cncf.io/networks: '$5'} } }
spec:
  nodeName: $2
  hostNetwork: ${4:-false}
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: rdma
    image: localhost/orbweaver-tools:latest
    imagePullPolicy: Never
    args: [-c, "sleep 3600"]
    resources: { limits: { ${3//,/: 1, }: 1 } }
    securityContext: { capabilities: { add: [IPC_LOCK] } }
END
}

# The address of NIC net1, as network-status says.
address_of() {
	k get pod "$1" -o json | jq -r '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] | fromjson |
		map(select(.interface == "net1")) | first | .ips[0]'
}

endpoint_has() {
	k get spiderendpoint "$1" -o json | jq -e --arg address "$2" '.status.current.ips | any(.[]; .ipv4 == $address)'
}

# No address is kept for pods that are gone.
addresses_are_back() {
	k get spiderippool v4-81 -o json | jq -e '.status.allocatedIPs // "{}" | fromjson | map(.pod | test("shared-[12]$")) | any | not'
}

# --- eight rails ------------------------------------------------------------------------------------

rails="1 2 3 4 5 6 7 8"

rail_pod() {
	local n resources='' networks=''

	for n in $rails; do
		resources+=${resources:+,}spidernet.io/shared_cx5_gpu$n
		networks+=${networks:+,}spiderpool/gpu$n-macvlan
	done
	pod "$1" "$2" "$resources" false "$networks"
}

# Interface, network and address of each rail, as network-status says.
rails_of() {
	k get pod "$1" -o json | jq -r '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] | fromjson | .[] |
		select(.interface != "eth0") | "\(.interface) \(.name) \(.ips | join(","))"'
}

# Rail n is netn on NIC n, with an address of its pool.
rails_are_as_written() {
	rails_of "$1"
	[[ $(rails_of "$1" | sed -E 's/\.[0-9]+$//') == $(for n in $rails; do echo "net$n spiderpool/gpu$n-macvlan 172.16.1$n"; done) ]]
}

# Of each rail: the table that its address has a rule to, and the way out in that table.
tables_of() {
	local n name address table

	in_pod "$1" sh -c 'ip rule; for t in $(ip rule | sed "s/ *$//; s/.* //" | sort -u); do
		ip route show table $t | sed "s/^/table $t: /"; done' >"$tmp/routes" || return
	while read -r n name address; do
		table=$(sed -nE "s/^.*from $address lookup ([^ ]+) *$/\1/p" "$tmp/routes")
		echo "$table $n $(sed -n "s/^table $table: default //p" "$tmp/routes")"
	done < <(rails_of "$1")
}

rails_have_tables() {
	local tables

	tables=$(tables_of "$1")
	cat "$tmp/routes"
	echo "$tables"
	[[ $(cut -d' ' -f1 <<<"$tables" | grep -E '^[0-9]+$' | sort -u | wc -l) == 8 ]] &&
		[[ $(sed -E 's/^[0-9]+ //; s/ *$//' <<<"$tables") == $(for n in $rails; do echo "net$n via 172.16.1$n.254 dev net$n"; done) ]]
}

# Each address of the first pod answers the second. The pools are one subnet: the sender's address chooses the rail.
rails_reach_each_other() {
	local pairs

	mapfile -t pairs < <(paste -d ' ' <(rails_of "$2" | sed 's/.* //') <(rails_of "$1" | sed 's/.* //'))
	((${#pairs[@]} == 8)) && in_pod "$2" sh -c 'for pair; do ping -c 1 -W 5 -I $pair || exit 1; done' ping "${pairs[@]}"
}

# Behind each rail's router is a network that the pod knows nothing of. A segment has one NIC of each node and no way to another,
# so an answer that leaves by another rail, or by eth0, is lost. The routers' subnet is the same, and they are one node: each has
# a route to the pod's address on its rail alone.
rails_answer_on_themselves() {
	local addresses

	mapfile -t addresses < <(rails_of "$1" | sed 's/.* //')
	((${#addresses[@]} == 8)) && hack/node exec walk-2 bash -c 'n=0
		for a; do
			n=$((n + 1))
			ip addr replace "172.16.1$n.254/32" dev "enp1${n}s0f0np0" && ip addr replace "198.18.0.$n/32" dev lo &&
				ip route replace "$a" dev "enp1${n}s0f0np0" src "172.16.1$n.254" &&
				ping -c 1 -W 5 -I "198.18.0.$n" "$a" || exit 1
		done' router "${addresses[@]}"
}

rails_are_back() {
	k get spiderippools -o json | jq -e '[.items[] | select(.metadata.name | startswith("gpu"))] | length == 8 and
		all(.status.allocatedIPs // "{}" | fromjson == {})'
}

# --- programs ---------------------------------------------------------------------------------------

# Name, user and permitted capabilities of the agent's processes that rest, as the node sees them.
rights() {
	hack/node exec "$1" 'for pid in $(pgrep -x "ow-(supervisor|agent|kubeletd|cnid)"); do
		echo "$(cat /proc/$pid/comm) $(awk "/^Uid/ { print \$2 }" /proc/$pid/status) $(awk "/^CapPrm/ { print \$2 }" /proc/$pid/status)"
	done' | sort | paste -sd,
}

running() {
	k wait --for=condition=Ready "${@/#/pod/}" --timeout=1s
}

# in_pod NAME COMMAND...
in_pod() {
	local node container

	node=$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')
	container=$(k get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}')
	hack/node exec "$node" ctr -n k8s.io tasks exec --exec-id "x$RANDOM$RANDOM" "${container##*/}" "${@:2}"
}

# server and client, POD COMMAND each, in shell words; prints what the client says. It tries until the server is there.
between() {
	local server

	in_pod "$1" timeout "$(slowly 120)" sh -c "$2" >"$tmp/server.log" 2>&1 &
	server=$!
	if in_pod "$3" sh -c "for n in 1 2 3 4 5 6 7 8 9; do sleep 3; timeout $(slowly 60) $4 >/tmp/out 2>&1 && cat /tmp/out && exit; done
		cat /tmp/out; exit 1" && wait "$server"; then
		return 0
	fi
	cat "$tmp/server.log"
	return 1
}

# Show what was printed, and fail when there is nothing like PATTERN in it.
prints() {
	local pattern=$1 output

	shift
	output=$("$@" 2>&1) || { echo "$output" && return 1; }
	printf '    %s\n' "${output//$'\n'/$'\n'    }" >&3
	grep -Eq "$pattern" <<<"$output"
}
exec 3>&1

# --- what may not change ----------------------------------------------------------------------------

# An interface made anew gets another number.
vfs_of() {
	hack/node exec "$1" 'cd /sys/class/net && grep -H . enp1s0v*/ifindex'
}

all_vfs() {
	local node

	for node in "${nodes[@]}"; do
		vfs_of "$node"
	done
}

specs() {
	k get sriovnetworknodestates -n "$namespace" -o json | jq -cS '.items[] | [.metadata.name, .spec]'
}

states_are() {
	[[ $(specs) == "$1" ]] && k get sriovnetworknodestates -n "$namespace" -o json |
		jq -e '.items | length == 2 and all(.[]; .status.syncStatus == "Succeeded")' >/dev/null
}

# Resources as the kubelets tell them, written down every half second until the file is removed.
watch_resources() {
	while [[ -e $tmp/watching ]]; do
		k get nodes -o json | jq -c '[.items[].status.allocatable |
			[.["spidernet.io/mellanoxroce"], .["spidernet.io/hca_shared_devices"]] | map(. // "0" | tonumber)]' >>"$tmp/seen" || true
		sleep 0.5
	done
}

# Pods that want a VF come and go on the first node, one at a time; refused ones stay, as Failed.
churn() {
	local n=0

	while [[ -e $tmp/watching ]]; do
		n=$((n + 1))
		pod "churn-$n" "${nodes[0]}" spidernet.io/mellanoxroce
		k wait --for=condition=Ready "pod/churn-$n" --timeout="$(slowly 60)s" >/dev/null 2>&1 || true
		[[ $(k get pod "churn-$n" -o 'jsonpath={.status.phase}') == Failed ]] ||
			k delete pod "churn-$n" --timeout="$(slowly 60)s" >/dev/null 2>&1 || true
		echo "$n" >"$tmp/churned"
	done
}

refused() {
	k get pods -l walk=through -o json | jq -r '.items[] | select(.status.phase == "Failed" and .status.reason) | "\(.metadata.name): \(.status.reason)"'
}

# What a DaemonSet with maxSurge does, which 1.20 does not know: the successor runs before the predecessor ends.
surge() {
	local node=$1 old

	old=$(k get pods -n "$namespace" -l app.kubernetes.io/name=orbweaver-agent --field-selector "spec.nodeName=$node" -o 'jsonpath={.items[0].metadata.name}')
	k get daemonset orbweaver-agent -n "$namespace" -o json | jq --arg node "$node" '{
		apiVersion: "v1", kind: "Pod",
		metadata: { name: "successor-\($node)", namespace: .metadata.namespace },
		spec: (.spec.template.spec | .nodeName = $node)
	}' | k apply -f - >/dev/null &&
		k wait -n "$namespace" --for=condition=Ready "pod/successor-$node" --timeout="$(slowly 120)s" >/dev/null &&
		k delete pod "$old" -n "$namespace" --timeout="$(slowly 120)s" >/dev/null &&
		k rollout status -n "$namespace" daemonset/orbweaver-agent --timeout="$(slowly 180)s" >/dev/null &&
		k delete pod "successor-$node" -n "$namespace" --timeout="$(slowly 120)s" >/dev/null
}

gone() {
	[[ -z $(k get namespace "$namespace" -o name --ignore-not-found) ]]
}

definitions_gone() {
	[[ -z $(k get crd -l app.kubernetes.io/part-of=orbweaver -o name) ]]
}

# --- the walk ---------------------------------------------------------------------------------------

slowness_measure
t_ok "hack/demo-cluster up: a release's install file, the guides' YAML and DaemonSets, RDMA between pods with devices of their own and shared" \
	hack/demo-cluster up
t_need
for node in "${nodes[@]}"; do
	t_eq "no CNI program on $node is another's" "" "$(hack/node exec "$node" 'grep -L "orbweaver-cni: this plugin" /opt/cni/bin/*')"
done
# In a container that is not privileged: the supervisor has what manifests/base/agent.yaml gives.
t_eq "each process of the agent has the user and the capabilities that it needs" \
	"ow-agent 60932 0000000000000000,ow-cnid 60932 0000000000000000,ow-kubeletd 60932 0000000000000000,ow-supervisor 0 00000000082d31e4" \
	"$(rights walk-1)"
for i in 1 2; do
	t_ok "an address on the RDMA NIC of node $i" hack/node exec "walk-$i" \
		"ip link set $roce up && ip addr replace 172.81.0.$i/16 dev $roce"
done
pod shared-1 walk-1 spidernet.io/hca_shared_devices false kube-system/macvlan-$roce
pod shared-2 walk-2 spidernet.io/hca_shared_devices false kube-system/macvlan-$roce
t_wait 120 "a pod with the guides' resource and network on each node" running shared-1 shared-2
t_need
address=$(address_of shared-1)
t_ok "it has the RDMA character devices" in_pod shared-1 sh -c 'ls /dev/infiniband/uverbs* /dev/infiniband/rdma_cm'
t_ok "and macvlan on the RDMA NIC, with an address of the pool" \
	eval "in_pod shared-1 ip addr show net1 | tee >(sed 's/^/    /' >&3) | grep -qE '172\.81\.0\.1[012][0-9]/16'"
t_ok "which is the one in its SpiderEndpoint" endpoint_has shared-1 "$address/16"
t_ok "with rules and a table for it" prints 'lookup 101|table 101' in_pod shared-1 sh -c 'ip rule; ip route show table all'
t_ok "pods reach each other there" in_pod shared-2 ping -c 3 -W 2 "$address"
t_ok "ib_read_lat from pod to pod" prints '^ *[0-9]+ +200 ' between \
	shared-1 "ib_read_lat -d rxe-$roce -x 1 -n 200" shared-2 "ib_read_lat -d rxe-$roce -x 1 -n 200 $address"

# rdma_cm resolves addresses in the pod's namespace, where Soft-RoCE does not listen; so: the node's.
pod cm-1 walk-1 spidernet.io/hca_shared_devices true
pod cm-2 walk-2 spidernet.io/hca_shared_devices true
t_wait 120 "pods in the nodes' network" running cm-1 cm-2
t_ok "rping between them" prints 'ping data' between cm-1 "rping -s -a 172.81.0.1 -C 5 -v" cm-2 "rping -c -a 172.81.0.1 -C 5 -v"
k delete pod shared-1 shared-2 cm-1 cm-2 --wait=false >/dev/null
t_wait 60 "their addresses are given back" addresses_are_back

for i in 1 2; do
	t_ok "the rails of node $i" hack/node exec "walk-$i" "for n in $rails; do ip link set enp1\${n}s0f0np0 up; done"
	rail_pod "rails-$i" "walk-$i"
done
t_wait 120 "a pod with eight rails on each node" running rails-1 rails-2
t_need
for i in 1 2; do
	t_eq "it has nine interfaces" "eth0 lo net1 net2 net3 net4 net5 net6 net7 net8" "$(in_pod "rails-$i" ls /sys/class/net | paste -sd' ')"
	t_ok "each rail is on its NIC, with an address of its pool" rails_are_as_written "rails-$i"
	t_ok "and has a rule, and a table of its own" rails_have_tables "rails-$i"
	t_eq "eight RDMA devices" 8 "$(in_pod "rails-$i" sh -c 'ls -d /dev/infiniband/uverbs*' | wc -l)"
done
t_ok "they reach each other on each rail" rails_reach_each_other rails-1 rails-2
t_ok "what comes in by a rail is answered by it" rails_answer_on_themselves rails-1
hack/node exec walk-2 "for n in $rails; do ip addr del 172.16.1\$n.254/32 dev enp1\${n}s0f0np0; ip addr del 198.18.0.\$n/32 dev lo; done"
k delete pod rails-1 rails-2 --wait=false >/dev/null
t_wait 60 "their addresses are given back" rails_are_back

pod vf-1 walk-1 spidernet.io/mellanoxroce
t_wait 60 "a pod with a VF of its own" running vf-1
t_ok "has the character device of its RDMA device, and its address" \
	in_pod vf-1 sh -c 'ls /dev/infiniband/uverbs* && env | grep -x "PCIDEVICE_SPIDERNET_IO_MELLANOXROCE=0000:01:[0-9a-f.:]*"'

# --- update under load --------------------------------------------------------------------------------

before=$(all_vfs)
wanted=$(specs)
touch "$tmp/watching"
watch_resources &
watcher=$!
churn &
churner=$!
t_ok "the operator is updated, one replica after the other" eval "k rollout restart -n $namespace deployment/orbweaver-operator &&
	k rollout status -n $namespace deployment/orbweaver-operator --timeout=$(slowly 240)s"
t_ok "a new agent takes over on node 1, as with maxSurge" surge walk-1
t_ok "and on node 2" surge walk-2
rm "$tmp/watching"
wait "$watcher" "$churner" || true
t_eq "no resource was less than the hardware gives, in $(wc -l <"$tmp/seen") looks" "[[4,500],[4,500]]" "$(sort -u "$tmp/seen")"
t_eq "no pod was refused, of $(<"$tmp/churned") that came and went" "" "$(refused)"
t_eq "no VF was touched" "$before" "$(all_vfs)"
k delete pods -l walk=through --wait=true --timeout="$(slowly 240)s" >/dev/null || true

# --- removal, and back --------------------------------------------------------------------------------

# As docs/uninstall.md has it for a release's file.
t_ok "the namespace is deleted" k delete namespace "$namespace" --timeout="$(slowly 180)s"
t_ok "and the rights" k delete clusterroles,clusterrolebindings -l app.kubernetes.io/part-of=orbweaver
t_wait 120 "the program is gone" gone
t_ok "what users made is not" k get -n kube-system sriovnetworknodepolicies/roce-sriov
t_ok "their definitions, asked for" k delete -f crds/ --timeout="$(slowly 60)s"
t_wait 30 "are gone too" definitions_gone
t_ok "but not those of others" k get -A net-attach-def
t_eq "the VFs are as they were" "$before" "$(all_vfs)"
t_ok "kubectl apply -f ${install_file##*/}" k apply -f "$install_file"
t_wait 30 "definitions are back" k wait --for=condition=Established --timeout=1s crd -l app.kubernetes.io/part-of=orbweaver
t_ok "the guides' YAML again" k apply -f <(hack/demo-cluster yaml)
t_wait 240 "the same work items, and all is as they say" states_are "$wanted"
t_eq "and no VF was touched" "$before" "$(all_vfs)"
t_done

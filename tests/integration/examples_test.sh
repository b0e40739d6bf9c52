#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each example of crds/examples on a simulated cluster: policies and networks become Ready, resources allocatable, and the workload runs
# with the addresses that it asked for. Interface names are those of the simulated NICs. Then the jobs of docs/nccl.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh
. tests/integration/simulated.sh

# allocatable NODE RESOURCE NUMBER
allocatable() {
	has ".status.allocatable[\"spidernet.io/$2\"] == \"$3\"" get node "$1"
}

# Every object of ours is Ready, and there are some.
ready() {
	has '[.items[].status.conditions[]? | select(.type == "Ready").status] | length > 0 and all(. == "True")' get "$1" -A
}

# running LABEL-OR-NAME...: all of these pods, and there are some.
running() {
	has '[.items // [.] | .[].status.phase] | length > 0 and all(. == "Running")' get pods "$@"
}

# nics POD NUMBER: so many interfaces have addresses.
nics() {
	has "[.status.current.ips[].nic] | length == $2" get spiderendpoint "$1"
}

# interfaces NODE: names of its NICs, in the order of PCI addresses.
interfaces() {
	k get sriovnetworknodestates -n orbweaver-system "$1" -o json | jq -r '.status.interfaces | sort_by(.pciAddress)[].name'
}

# apply FILE [SED-EXPRESSION]
apply() {
	sed -e "${2-}" "crds/examples/$1" | k apply -f - >/dev/null
}

"$orbweaver" simulate --state "$state" --node 'shared:8xconnectx-7,8xh100' --node 'exclusive:1xconnectx-7' \
	--node 'ib:1xconnectx-6-ib' >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
t_wait 60 "a simulated cluster starts" grep -q '^export KUBECONFIG=' "$tmp/out"
t_wait 60 "three nodes report their NICs" has '[.items[].status.interfaces | length] | sort == [1, 1, 8]' get sriovnetworknodestates -A
k label node exclusive example.com/rdma=exclusive >/dev/null
k label node ib example.com/fabric=infiniband >/dev/null
mapfile -t rails < <(interfaces shared)
nic=s/ens1f0np0/${rails[0]}/

apply shared-roce/objects.yaml "$nic"
t_wait 60 "shared-roce: the resource is allocatable" allocatable shared hca_shared_devices 100
apply shared-roce/pods.yaml "/^    spec:/a\\      nodeSelector: { kubernetes.io/hostname: shared }"
t_wait 60 "shared-roce: the pod runs" running -l app=roce-shared
t_wait 60 "shared-roce: it has an address" nics "$(k get pods -l app=roce-shared -o jsonpath='{.items[0].metadata.name}')" 1
k delete daemonset roce-shared >/dev/null

apply exclusive-roce/objects.yaml "s/ens1f0np0/$(interfaces exclusive)/"
t_wait 60 "exclusive-roce: the policy is Ready" ready sriovnetworknodepolicies
t_wait 60 "exclusive-roce: the node is in mode exclusive" has '.status.system.rdmaMode == "exclusive"' \
	get sriovnetworknodestates -n orbweaver-system exclusive
t_wait 60 "exclusive-roce: VFs are allocatable" allocatable exclusive roce_vf 8
apply exclusive-roce/pod.yaml
t_wait 60 "exclusive-roce: the pod runs" running roce-exclusive
t_wait 60 "exclusive-roce: it has an address" nics roce-exclusive 1
apply exclusive-roce/pod-checked.yaml
t_wait 60 "exclusive-roce: so does the one that tries its device first" running roce-checked

apply infiniband/objects.yaml "s/ibs1/$(interfaces ib)/"
t_wait 60 "infiniband: the policy is Ready" ready sriovnetworknodepolicies
t_wait 60 "infiniband: VFs are allocatable" allocatable ib ib_vf 8
apply infiniband/pod.yaml
t_wait 60 "infiniband: the pod runs" running ib
t_wait 60 "infiniband: it has an address" nics ib 1

edit=
for rail in {1..8}; do
	edit+="s/\\bens${rail}np0\\b/${rails[rail - 1]}/;"
done
apply multi-rail/objects.yaml "$edit"
t_wait 60 "multi-rail: the eighth resource is allocatable" allocatable shared rail8 100
apply multi-rail/pod-without-injection.yaml
t_wait 60 "multi-rail: the pod runs" running rails-explicit
t_wait 60 "multi-rail: it has eight addresses" nics rails-explicit 8
k delete pod rails-explicit >/dev/null
# Its script, in a pod's sysfs made of files: two rails, one of them with GIDs of other pods before its own.
apply multi-rail/job.yaml
k patch configmap -n orbweaver-system spiderpool-conf --type=merge --patch-file=crds/examples/multi-rail/environment.yaml >/dev/null 2>&1 ||
	k apply -f crds/examples/multi-rail/environment.yaml >/dev/null
t_ok "multi-rail: the job is accepted" has '.spec.template.metadata.annotations["orbweaver.io/environment"] == "nccl"' get job train
apply multi-rail/job-files.yaml
t_ok "multi-rail: so is the job with the node's files" has '.spec.template.spec.containers[0].args[0] | startswith(". /run/orbweaver/nccl.env")' \
	get job train-files
t_ok "multi-rail: the template is there" has '.data["environment.yml"] | startswith("nccl:")' get configmap -n orbweaver-system spiderpool-conf
k get configmap rdma-env -o json | jq -r '.data["rdma-env.sh"]' | sed "s|/sys/|$tmp/sys/|" >"$tmp/rdma-env.sh"
# gid DEVICE INDEX ADDRESS TYPE
gid() {
	local port=$tmp/sys/class/infiniband/$1/ports/1 octets

	IFS=. read -ra octets <<<"$3"
	mkdir -p "$port/gids" "$port/gid_attrs/types"
	printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' "${octets[@]}" >"$port/gids/$2"
	echo "$4" >"$port/gid_attrs/types/$2"
}
# variables: of the script, with addresses of net1 and net2.
variables() {
	cat >"$tmp/bin/ip" <<-'END'
		#!/bin/sh
		echo '2: eth0    inet 10.244.0.9/24 scope global eth0'
		echo '3: net1    inet 172.16.1.10/24 scope global net1'
		echo '4: net2    inet 172.16.2.10/24 scope global net2'
	END
	chmod +x "$tmp/bin/ip"
	PATH=$tmp/bin:$PATH sh -c ". $tmp/rdma-env.sh; echo \"\$NCCL_IB_HCA \$UCX_NET_DEVICES \${NCCL_IB_GID_INDEX-none}\"" 2>/dev/null
}
mkdir -p "$tmp/bin"
t_eq "multi-rail: without RDMA nothing is set" "  none" "$(variables)"
gid mlx5_0 4 172.16.1.10 "IB/RoCE v1"
gid mlx5_0 5 172.16.1.10 "RoCE v2"
gid mlx5_1 5 172.16.2.10 "RoCE v2"
t_eq "multi-rail: devices and their one index" "=mlx5_0:1,mlx5_1:1 mlx5_0:1,mlx5_1:1 5" "$(variables)"
rm "$tmp/sys/class/infiniband/mlx5_1/ports/1/gids/5"
gid mlx5_1 5 172.16.2.9 "RoCE v2"
gid mlx5_1 7 172.16.2.10 "RoCE v2"
t_eq "multi-rail: indices that differ are no variable" "=mlx5_0:1,mlx5_1:1 mlx5_0:1,mlx5_1:1 none" "$(variables)"

# Their controllers are not there: each pod template becomes a pod.
# job KIND API-VERSION PODS
job() {
	local kind=$1 plural=${1,,}s group=${2%/*} version=${2#*/}

	k apply -f - >/dev/null <<-END
		apiVersion: apiextensions.k8s.io/v1
		kind: CustomResourceDefinition
		metadata: { name: $plural.$group }
		spec:
		  group: $group
		  scope: Namespaced
		  names: { kind: $kind, listKind: ${kind}List, plural: $plural, singular: ${kind,,} }
		  versions:
		  - name: $version
		    served: true
		    storage: true
		    schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
	END
	t_wait 30 "nccl.md: $kind is applied" k apply -f <(doc nccl.md "kind: $kind")
	k get "$plural" -o json | jq --arg job "${kind,,}" '[.. | objects | select(.spec?.containers?)] | to_entries | {apiVersion: "v1", kind: "List",
		items: map({apiVersion: "v1", kind: "Pod", metadata: ((.value.metadata // {}) + {name: "\($job)-\(.key)", labels: {$job}}), spec: .value.spec})}' |
		k apply -f - >/dev/null
	t_wait 60 "nccl.md: its pods run" running -l "job=${kind,,}"
	t_eq "nccl.md: all of them" "$3" "$(k get pods -l "job=${kind,,}" -o name | wc -l)"
	k delete pods -l "job=${kind,,}" >/dev/null
}
job MPIJob kubeflow.org/v2beta1 2
job JobSet jobset.x-k8s.io/v1alpha2 1
job PyTorchJob kubeflow.org/v1 1

# Settings of a NIC, as they are read back; and back again.
k label node shared example.com/roce=lossless >/dev/null
apply roce-lossless/objects.yaml "$nic"
t_wait 60 "roce-lossless: the NIC has PFC and trusts DSCPs" \
	has '[.status.interfaces[].settings | .pfc == [3] and .trust == "dscp" and .rings.rx == 8192] | any' \
	get sriovnetworknodestates -n orbweaver-system shared
t_wait 60 "roce-lossless: the pool is in effect" has '.status.conditions[] | select(.type == "Ready").reason == "InEffect"' \
	get sriovnetworkpoolconfigs -n orbweaver-system roce-lossless
t_ok "roce-lossless: explain node shows them" grep -q '^settings *holds .*pfc \[3\]' \
	<("$orbweaver" --kubeconfig "$state/kubeconfig" explain node shared)
k delete sriovnetworkpoolconfigs -n orbweaver-system roce-lossless >/dev/null
t_wait 60 "roce-lossless: without the pool they are as they were" has '[.status.interfaces[].settings.pfc? | select(. == [3])] == []' \
	get sriovnetworknodestates -n orbweaver-system shared

apply devices-only/objects.yaml
t_wait 60 "devices-only: the resource is allocatable" allocatable shared hca_shared_devices 100
apply devices-only/pod.yaml
t_wait 60 "devices-only: the pod runs" running devices-only

t_ok "networks and pools of all examples are Ready" ready spidermultusconfigs,spiderippools

kill "$pid"
wait "$pid" || true
pid=
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Simulated nodes, from a policy to a repaired NIC: VFs, allocatable, pods with devices and addresses, a pod that fits nowhere,
# what breaks and what is said of it. Needs no cluster.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh
. tests/integration/simulated.sh

# refused WORDS COMMAND...: exit status 2 and one line with these words.
refused() {
	local words=$1 status=0

	shift
	"$@" >"$tmp/refused" 2>&1 || status=$?
	((status == 2)) && (($(wc -l <"$tmp/refused") == 1)) && grep -qF -- "$words" "$tmp/refused"
}

vfs() {
	echo ".status.allocatable[\"spidernet.io/mellanoxroce\"] == \"$1\""
}

t_ok "an unknown NIC is refused with those there are" refused 'there are connectx-5' "$orbweaver" simulate --state "$state" --node 'a:1xnothing'
t_ok "a backward range is refused" refused 'from a number' "$orbweaver" simulate --state "$state" --node 'a-[2-1]:1xconnectx-7'
t_ok "without a simulation nothing can be broken" bash -c "! '$orbweaver' simulate break a/b link-down --state '$state'"

"$orbweaver" simulate --state "$state" >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
t_wait 60 "it says where it is" grep -q '^export KUBECONFIG=' "$tmp/out"
t_wait 60 "two nodes are Ready" has '.items | length == 2' get nodes
t_wait 60 "their NodeStates are reported" has '[.items[].status.interfaces | length == 9] | length == 2 and all' get sriovnetworknodestates -A

k apply -f crds/samples/roce-en-sriov.yaml >/dev/null
t_wait 60 "the guide's policy makes 12 VFs on each" has '[.items[].status | [.interfaces[].Vfs // [] | length] | add == 12] | all' get sriovnetworknodestates -A
t_wait 60 "they are allocatable" has "$(vfs 12)" get node gpu-1

k apply -f - >/dev/null <<'END'
apiVersion: v1
kind: Pod
metadata: { name: vf, annotations: { k8s.v1.cni.cncf.io/networks: kube-system/roce-sriov } }
spec:
  nodeSelector: { kubernetes.io/hostname: gpu-1 }
  containers: [ { name: main, image: x, resources: { limits: { spidernet.io/mellanoxroce: 1 } } } ]
---
apiVersion: v1
kind: Pod
metadata: { name: too-many }
spec:
  containers: [ { name: main, image: x, resources: { limits: { spidernet.io/mellanoxroce: 13 } } } ]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: everywhere }
spec:
  selector: { matchLabels: { app: everywhere } }
  template:
    metadata: { labels: { app: everywhere } }
    spec: { containers: [ { name: main, image: x } ] }
END
t_wait 60 "a pod gets a VF and runs" has '.status.phase == "Running" and .spec.nodeName == "gpu-1"' get pod vf
t_ok "network-status names VF and address" has '.metadata.annotations["k8s.v1.cni.cncf.io/network-status"] | fromjson |
	any(.["device-info"].pci["pci-address"] == "0000:b0:00.0" and (.ips[0] | startswith("172.81.0.")))' get pod vf
t_wait 60 "the NodeState names the pod" has '.status.resources | any(.pods // [] | any(.pod == "default/vf/main"))' \
	get sriovnetworknodestate gpu-1 -n orbweaver-system
t_wait 60 "a pod that fits nowhere is told so" has '.items | any(.reason == "FailedScheduling" and
	(.message | contains("2 Insufficient spidernet.io/mellanoxroce")))' get events
t_wait 60 "a DaemonSet has a pod on each node" has '.status.numberReady == 2' get daemonset everywhere

t_ok "an unknown node is refused" refused 'there are gpu-1, gpu-2' "$orbweaver" simulate break gpu-3/ens6f0np0 link-down --state "$state"
t_ok "an unknown NIC is refused" refused 'ens6f0np0, enp11s0f0np0' "$orbweaver" simulate break gpu-1/eth0 link-down --state "$state"
t_ok "an unknown fault is refused" refused 'link-down, vf-refusal, driver-missing, pf-missing' \
	"$orbweaver" simulate break gpu-1/ens6f0np0 fire --state "$state"

t_ok "a driver is taken away" "$orbweaver" simulate break gpu-2/ens6f0np0 driver-missing --state "$state"
t_wait 60 "the policy is Degraded, NoDriver" has '.status.conditions | any(.type == "Degraded" and .reason == "NoDriver")' \
	get sriovnetworknodepolicy roce-sriov -n kube-system
t_wait 60 "nothing is allocatable there" has "$(vfs 0)" get node gpu-2
t_ok "it comes back" "$orbweaver" simulate repair gpu-2/ens6f0np0 --state "$state"
t_wait 60 "so do the VFs" has "$(vfs 12)" get node gpu-2
# A pool that asks for all that may follow from a bad link.
k apply -f - >/dev/null <<'END'
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata:
  name: all
  namespace: orbweaver-system
  annotations: { orbweaver.io/taint-degraded: "1", orbweaver.io/cordon-degraded: "1", orbweaver.io/pod-events-degraded: "true" }
spec: { nodeSelector: { matchExpressions: [ { key: kubernetes.io/hostname, operator: Exists } ] } }
END
# told REASON: an event on the pod.
told() {
	has ".items | any(.involvedObject.name == \"vf\" and .reason == \"$1\" and .source.component == \"orbweaver-agent\")" get events
}
t_wait 60 "the node's agent is told" has '.metadata.annotations["orbweaver.io/pod-events-degraded"] == "true"' \
	get sriovnetworknodestate gpu-1 -n orbweaver-system
t_ok "a link goes down" "$orbweaver" simulate break gpu-1/0000:af:00.0 link-down --state "$state"
t_wait 120 "its VFs are not allocatable, but for that of a pod" has "$(vfs 1)" get node gpu-1
t_wait 60 "the pod has an event" told LinkDown
t_wait 60 "the node is tainted and cordoned" has '.spec | .unschedulable and any(.taints[]; .key == "orbweaver.io/rdma-degraded")' get node gpu-1
t_ok "the link comes back" "$orbweaver" simulate repair gpu-1/ens6f0np0 link-down --state "$state"
t_wait 60 "its VFs are allocatable again" has "$(vfs 12)" get node gpu-1
t_wait 60 "the pod has an event" told LinkHealthy
t_wait 60 "and the node is as before" has '.spec | .unschedulable == null and ([.taints[]? | select(.key == "orbweaver.io/rdma-degraded")] == [])' get node gpu-1

k delete pod vf >/dev/null
t_wait 60 "the pod's address comes back" has '(.status.allocatedIPCount // 0) == 0' get spiderippool v4-81
t_wait 60 "its device is free" has '.status.resources | all((.allocated // 0) == 0)' get sriovnetworknodestate gpu-1 -n orbweaver-system

# A port of which nothing is offered before.
port='.status.linkHealth.ports | any(.name == "enp11s0f0np0")'
t_ok "a port that nobody wants is not judged" has "$port | not" get sriovnetworknodestate gpu-1 -n orbweaver-system
k create configmap spiderpool-rdma-shared-device-plugin -n orbweaver-system --from-literal=config.json='{"configList": [
	{"resourceName": "later", "rdmaHcaMax": 2, "selectors": {"ifNames": ["enp11s0f0np0"]}}]}' >/dev/null
t_wait 60 "one that a ConfigMap offers is" has "$port" get sriovnetworknodestate gpu-1 -n orbweaver-system

# Where its hosts are, by what its processes have open: another simulation of this user has a folder beside it.
hosts=$(for child in $(pgrep -P "$pid"); do readlink "/proc/$child"/fd/* || true; done | sed -n 's|/hosts/host-tree-.*||p' | sort -u)
t_ok "its hosts are in one folder" test -d "$hosts"
kill "$pid"
status=0
wait "$pid" || status=$?
pid=
t_ok "SIGTERM ends it with status 0" test "$status" = 0
t_ok "no host is left" test ! -e "$hosts"
t_ok "no sanitizer complains" bash -c "! grep -l 'Sanitizer\|runtime error' '$state'/*.log"
t_done

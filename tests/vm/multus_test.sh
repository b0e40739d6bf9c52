#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A node that has Multus and sriov-cni, with pods that they have set up, gets Orbweaver by a release's install file, an update of
# it, and loses it again. Nothing of theirs changes: interfaces, addresses, routes, VFs, configuration, plugin files, pods; new
# pods are set up by them as before.
# MULTUS, SRIOV_CNI: these programs; without them, stand-ins that do what they do for the pods of this test.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh

cluster=multus-$$ node=multus-$$ namespace=orbweaver-system
build=${BUILD:-build}
install_file=$build/install/install-kubernetes-1.20.yaml
tmp=$(mktemp -d)

clean_up() {
	hack/node down "$node" >/dev/null 2>&1 || true
	hack/cluster down "$cluster" >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

k() {
	hack/cluster kubectl "$cluster" "$@"
}

on_node() {
	hack/node exec "$node" "$@"
}

# --- Multus and sriov-cni -----------------------------------------------------------------------------------------------

# The cluster's network; for a pod whose name begins with "vf" the network that this test has for it, as net1.
multus_stand_in() {
	cat <<'END'
#!/bin/bash
set -euo pipefail
config=$(cat)
name=$(grep -o 'K8S_POD_NAME=[^;]*' <<<"${CNI_ARGS:-}" | cut -d= -f2)
delegate() {
	jq -c --argjson config "$config" "$1 + {cniVersion: \$config.cniVersion}" <<<"$config" | "/opt/cni/bin/$2"
}
if [[ $CNI_COMMAND == ADD ]]; then
	result=$(delegate .delegates[0] bridge)
	[[ $name != vf-* ]] || CNI_IFNAME=net1 delegate '{name: "vf", type: "sriov", deviceID: "'"$(cat "/root/$name.vf")"'"}' sriov >/dev/null
	echo "$result"
elif [[ $CNI_COMMAND == DEL ]]; then
	[[ $name != vf-* ]] || CNI_IFNAME=net1 delegate '{name: "vf", type: "sriov", deviceID: "'"$(cat "/root/$name.vf")"'"}' sriov
	delegate .delegates[0] bridge
fi
END
}

sriov_stand_in() {
	cat <<'END'
#!/bin/bash
set -euo pipefail
vf=$(jq -r .deviceID)
kept=/var/lib/cni/sriov/$CNI_CONTAINERID-$CNI_IFNAME
mkdir -p /var/lib/cni/sriov
if [[ $CNI_COMMAND == ADD ]]; then
	name=$(ls "/sys/bus/pci/devices/$vf/net")
	echo "$name" >"$kept"
	ip link set "$name" netns "$CNI_NETNS" name "$CNI_IFNAME"
	nsenter --net="$CNI_NETNS" ip link set "$CNI_IFNAME" up
	echo '{"cniVersion": "0.3.1", "interfaces": [{"name": "'"$CNI_IFNAME"'"}]}'
elif [[ -s $kept && -e ${CNI_NETNS:-/nowhere} ]]; then
	nsenter --net="$CNI_NETNS" ip link set "$CNI_IFNAME" down
	nsenter --net="$CNI_NETNS" ip link set "$CNI_IFNAME" name "$(<"$kept")" netns 1
	rm "$kept"
fi
END
}

# put PROGRAM STAND-IN NAME: into the folder of the runtime.
put() {
	if [[ -n $1 ]]; then
		on_node "cat >/opt/cni/bin/$3 && chmod 755 /opt/cni/bin/$3" <"$1"
	else
		"$2" | on_node "cat >/opt/cni/bin/$3 && chmod 755 /opt/cni/bin/$3"
	fi
}

# What an administrator of Multus has set up: it asks the API server, and has the cluster's network behind it.
multus() {
	put "${MULTUS:-}" multus_stand_in multus && put "${SRIOV_CNI:-}" sriov_stand_in sriov &&
		on_node 'mkdir -p /etc/cni/net.d/multus.d && cp "$KUBECONFIG" /etc/cni/net.d/multus.d/multus.kubeconfig &&
			jq "{cniVersion: \"0.3.1\", name: \"multus-cni-network\", type: \"multus\", capabilities: {portMappings: true},
				kubeconfig: \"/etc/cni/net.d/multus.d/multus.kubeconfig\",
				delegates: [.plugins[0] + {name: \"pods\", cniVersion: \"0.3.1\"}]}" /etc/cni/net.d/90-pods.conflist \
				>/etc/cni/net.d/.new && mv /etc/cni/net.d/.new /etc/cni/net.d/00-multus.conf'
}

networks() {
	local n

	for n in 0 1 2; do
		cat <<-END
			apiVersion: k8s.cni.cncf.io/v1
			kind: NetworkAttachmentDefinition
			metadata: { name: vf-$n, namespace: default }
			spec: { config: '{ "cniVersion": "0.3.1", "name": "vf", "type": "sriov", "deviceID": "0000:01:10.$((2 * n))", "vlan": $((n + 7)) }' }
			---
		END
	done
}

# --- pods ---------------------------------------------------------------------------------------------------------------

# pod NAME [NETWORK]
pod() {
	k apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: { name: $1, annotations: { ${2:+k8s.v1.cni.cncf.io/networks: $2} } }
		spec:
		  nodeName: $node
		  terminationGracePeriodSeconds: 1
		  containers:
		  - { name: c, image: "localhost/busybox:1", imagePullPolicy: Never, command: [sleep, "100000"] }
	END
}

run() {
	k wait --for=condition=Ready "${@/#/pod/}" --timeout=1s
}

has_vf() {
	local container

	container=$(k get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}')
	[[ $(on_node "ctr -n k8s.io tasks exec --exec-id x$RANDOM$RANDOM ${container##*/} ls /sys/class/net" | sort | paste -sd' ') == "eth0 lo net1" ]]
}

# All that is theirs: what the node has, but for files that were not there before, and each pod. kubelets write the time of
# what they saw, and the agent is a pod, too.
theirs() {
	on_node bash tests/vm/seen.sh >"$tmp/seen" || return
	grep -vE "^($ours)" "$tmp/seen"
	k get pods -n default -o json | jq -cS '.items[] | [.metadata.name, .metadata.uid, .metadata.annotations, .spec,
		(.status | .podIPs, .phase, .startTime), (.status.containerStatuses[] | .containerID, .restartCount, .state)]'
	k get net-attach-def -A -o json | jq -cS '.items[] | [.metadata.namespace, .metadata.name, .metadata.resourceVersion]'
	k get crd network-attachment-definitions.k8s.cni.cncf.io -o json | jq -cS '[.metadata.uid, .metadata.generation, .spec]'
}

# The operator's pods are pods of this node, which Multus sets up: without them for that moment.
nothing_has_changed() {
	operators_are 0 && theirs >"$tmp/now" && diff "$tmp/before" "$tmp/now" && operators_are 2
}

# operators_are N: nothing to do where there is no operator.
operators_are() {
	local began=$SECONDS

	k get deployment orbweaver-operator -n "$namespace" >/dev/null 2>&1 || return 0
	k scale deployment orbweaver-operator -n "$namespace" --replicas="$1"
	until [[ $(k get pods -n "$namespace" -l app.kubernetes.io/name=orbweaver-operator -o name | wc -l) == "$1" ]]; do
		time_is_left "$began" 120 || return 1
		sleep 0.5
	done
}

# --- Orbweaver ----------------------------------------------------------------------------------------------------------

installed() {
	k rollout status -n "$namespace" deployment/orbweaver-operator --timeout=1s &&
		k rollout status -n "$namespace" daemonset/orbweaver-agent --timeout=1s
}

# networks_are REASON [TEXT]: of the NodeState's condition PodNetworks.
networks_are() {
	k get sriovnetworknodestate "$node" -n "$namespace" -o json | jq -e --arg reason "$1" --arg text "${2:-}" '
		.status.conditions // [] | map(select(.type == "PodNetworks")) | first | debug |
		.reason == $reason and (.message | contains($text))'
}

agent_is_another() {
	[[ -n $(agent_uid) && $(agent_uid) != "$1" ]] && installed
}

agent_uid() {
	k get pods -n "$namespace" -l app.kubernetes.io/name=orbweaver-agent -o 'jsonpath={.items[*].metadata.uid}'
}

program_is_gone() {
	[[ -z $(k get namespace "$namespace" -o name --ignore-not-found) ]] && ! on_node 'pgrep -x "ow-(supervisor|agent|kubeletd|cnid|worker)"'
}

# a_pod_comes_and_goes NAME: while Orbweaver is or was there, set up by Multus and sriov-cni.
a_pod_comes_and_goes() {
	t_ok "another pod with a VF" pod "$1" vf-2
	t_wait 120 "is set up by Multus and sriov-cni" run "$1"
	t_ok "has its VF" has_vf "$1"
	t_ok "and is deleted" k delete pod "$1" --timeout="$(slowly 120)s"
	t_wait 60 "its VF is back" on_node "ls /sys/bus/pci/devices/0000:01:10.4/net/*"
}

# --- the test -----------------------------------------------------------------------------------------------------------

slowness_measure
ours='/opt/cni/bin/(orbweaver-cni|spiderpool|coordinator|rdma|ib-sriov|ipoib|dummy|ifacer|orbweaver) |/var/lib/orbweaver/|/etc/udev/rules.d/10-nm-disable-'
for program in "${MULTUS:-}" "${SRIOV_CNI:-}"; do
	t_ok "${program:-a stand-in} is set up" test -z "$program" -o -x "$program"
done
t_ok "images are built" test -f "$build/images/orbweaver-agent.tar" -a -f "$build/images/orbweaver-operator.tar"
t_ok "install files" env PATH="$(hack/k8s-build --bin):$PATH" hack/release install-files
t_ok "a cluster" hack/cluster up "$cluster"
t_ok "a node" hack/node up "$node" --cluster "$cluster" --memory 1280
t_need
t_ok "kubelet and containerd" hack/node kubelet "$node"
t_ok "the images" hack/node image "$node" "$build/images/orbweaver-agent.tar" "$build/images/orbweaver-operator.tar"
t_ok "VFs, made by another program" on_node 'echo 4 >/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs && udevadm settle && ip link set enp1s0 up'
t_ok "Multus and sriov-cni" multus
k apply -f crds/nad/ >/dev/null
t_wait 60 "networks of Multus" k apply -f <(networks)
t_need
pod vf-a vf-0
pod vf-b vf-1
pod plain
on_node 'echo 0000:01:10.0 >/root/vf-a.vf; echo 0000:01:10.2 >/root/vf-b.vf; for n in c d e; do echo 0000:01:10.4 >/root/vf-$n.vf; done'
t_wait 120 "pods, two of them with VFs" run vf-a vf-b plain
t_ok "which sriov-cni has moved" has_vf vf-a
a_pod_comes_and_goes vf-c
t_need
t_ok "what is theirs is written down" eval 'theirs >"$tmp/before"'
t_need
echo "# $(wc -l <"$tmp/before") lines are compared, with ${MULTUS:-a stand-in of Multus} and ${SRIOV_CNI:-a stand-in of sriov-cni}"

t_ok "kubectl apply -f ${install_file##*/}" k apply -f "$install_file"
t_wait 240 "operator and agent are there" installed
t_wait 60 "profile auto leaves Multus where it is, and says so" networks_are PluginsKept "sriov of another program stays"
t_ok "nothing of theirs has changed" nothing_has_changed
a_pod_comes_and_goes vf-d
t_ok "nothing of theirs has changed" nothing_has_changed

uid=$(agent_uid)
t_ok "an update" k rollout restart -n "$namespace" daemonset/orbweaver-agent deployment/orbweaver-operator
t_wait 240 "another agent and operator are there" agent_is_another "$uid"
t_wait 60 "Multus stays" networks_are PluginsKept "sriov of another program stays"
t_ok "nothing of theirs has changed" nothing_has_changed

# As docs/uninstall.md has it.
t_ok "removal: the node's label" k label node "$node" orbweaver.io/profile=devices
t_wait 60 "our plugins go" networks_are DevicesOnly
t_ok "nothing of theirs has changed" nothing_has_changed
t_ok "the program" k delete namespace "$namespace" --timeout="$(slowly 180)s"
t_ok "and its rights" k delete clusterroles,clusterrolebindings -l app.kubernetes.io/part-of=orbweaver
t_wait 60 "have gone" program_is_gone
t_ok "the definitions" k delete -f crds/ --timeout="$(slowly 60)s"
t_ok "nothing of theirs has changed" nothing_has_changed
t_eq "no plugin of ours is left" "" "$(on_node 'cd /opt/cni/bin && ls -d orbweaver* spiderpool coordinator rdma ib-sriov ipoib dummy ifacer 2>/dev/null || true')"
a_pod_comes_and_goes vf-e
t_ok "nothing of theirs has changed" nothing_has_changed
t_ok "their pods end" k delete pods --all --timeout="$(slowly 120)s"
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The node agent against a real API server, on a host without a single NIC (a folder): what it reads and writes there, what
# users' configurations do, two agents at a time, and the end. What it does to a host: tests/vm/agent_test.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

o_agent=${AGENT:-$o_programs/orbweaver-agent}
o_begin agent --no-controllers
node=n1
state=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/$node
shared=/api/v1/namespaces/$POD_NAMESPACE/configmaps

o_host
o_agent_user

start() {
	local id=$1

	shift
	o_spawn "$id" "$o_agent" --node "$node" --kubeconfig "$agent_kubeconfig" --host-root "$tmp/host" --profile devices \
		--kubelet-dir "$tmp/kubelet" --no-kubelet --metrics-addr 127.0.0.1:0 "$@"
}

synced() {
	o_curl GET "$state" | jq -e '.status.syncStatus == "Succeeded" and .status.observedGeneration == .metadata.generation'
}

exists() {
	o_curl GET "$state"
}

uid() {
	o_curl GET "$state" | jq -r .metadata.uid
}

# config_map TEXT [NAME KEY]
config_map() {
	jq -n --arg text "$1" --arg name "${2:-spiderpool-rdma-shared-device-plugin}" --arg key "${3:-config.json}" '{
		apiVersion: "v1", kind: "ConfigMap", metadata: {name: $name}, data: {($key): $text}}'
}

resource() {
	o_curl GET "$state" | jq -e --arg name "$1" '.status.resources // [] | any(.name == $name)'
}

# told REASON TIMES: one event, counted.
told() {
	o_curl GET "/api/v1/namespaces/$POD_NAMESPACE/events" | jq -e --arg reason "$1" --argjson times "$2" '[.items[] |
		select(.reason == $reason and .involvedObject.kind == "SriovNetworkNodeState" and
			.source.component == "orbweaver-agent").count] == [$times]'
}

# The same on the ConfigMap, which is where its author looks.
told_on_config_map() {
	o_curl GET "/api/v1/namespaces/$POD_NAMESPACE/events" | jq -e --arg reason "$1" --arg text "$2" 'any(.items[];
		.reason == $reason and .involvedObject.kind == "ConfigMap" and .type == "Warning" and
		.involvedObject.name == "spiderpool-rdma-shared-device-plugin" and (.message | contains($text)))'
}

executes() {
	[[ $(o_metric "$1" orbweaver_agent_executing) == 1 ]]
}

# --- its NodeState -----------------------------------------------------------------------------------------------
start a --device-config sriovdp-config
t_wait 30 "the agent serves" o_http a /healthz
sleep 3
t_fails "no NodeState for a Node that does not exist" exists
o_curl POST /api/v1/nodes '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}' >/dev/null
t_wait 30 "a Node without a NodeState gets one" exists
t_wait 30 "and its status" synced
t_wait 30 "the agent is ready" o_ready a
t_eq "all its conditions speak of this generation" "Blocked False Degraded False PodNetworks False Progressing False Ready True RebootRequired False" \
	"$(o_curl GET "$state" | jq -r '.metadata.generation as $now | .status.conditions | sort_by(.type) |
		map(select(.observedGeneration == $now) | "\(.type) \(.status)") | join(" ")')"

# --- somebody else writes ------------------------------------------------------------------------------------------
o_curl PATCH "$state" '{"spec": {"interfaces": [{"pciAddress": "0000:77:00.0", "numVfs": 2}]}}' >/dev/null
failed() {
	o_curl GET "$state" | jq -e '.status.syncStatus == "Failed" and .status.wantedVfs == 2 and
		.status.observedGeneration == .metadata.generation and (.status.lastSyncError | contains("0000:77:00.0"))'
}
t_wait 30 "a PF that is not there is an error that names it" failed
o_curl PATCH "$state/status" '{"status": {"syncStatus": "Succeeded", "lastSyncError": ""}}' >/dev/null
t_wait 30 "a status that somebody overwrites is put right" failed
o_curl PATCH "$state" '{"spec": {"interfaces": null}}' >/dev/null
t_wait 30 "without it all is well" synced
old=$(uid)
o_curl DELETE "$state" >/dev/null
made_anew() {
	[[ $(uid) != "$old" ]] && synced
}
t_wait 30 "a NodeState that is deleted is made anew" made_anew
o_curl DELETE /api/v1/nodes/n1 >/dev/null
sleep 3
o_curl PATCH "$state/status" '{"status": {"syncStatus": "InProgress"}}' >/dev/null
sleep 3
t_eq "while its Node is gone others have the word" InProgress "$(o_curl GET "$state" | jq -r .status.syncStatus)"
o_curl POST /api/v1/nodes '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}' >/dev/null
t_wait 30 "when it is back the agent says how it is" synced

# --- configurations --------------------------------------------------------------------------------------------------
good='{"periodicUpdateInterval": 300, "configList": [{"resourcePrefix": "spidernet.io", "resourceName": "hca_shared_devices",
	"rdmaHcaMax": 500, "selectors": {"vendors": ["15b3"], "deviceIDs": ["1017"]}}]}'
o_curl POST "$shared" "$(config_map "$good")" >/dev/null
t_wait 30 "the shared devices of a ConfigMap are offered" resource spidernet.io/hca_shared_devices

# The files of a build for tests may be of several commits.
version=$(o_curl GET "$state" | jq -r '.status.agentVersion // "none"')
t_ok "the status says which version wrote it" grep -qaF "$version" "$o_programs/orbweaver-agent"

# Between, somebody kills the process that does all this.
child() {
	pgrep -P "${o_pids[a]}" -x "$1"
}
kubeletd=$(child ow-kubeletd)
kill -KILL "$(child ow-agent)"
t_wait 30 "an agent that is killed is started again, and says so" told AgentRestarted 1
t_eq "the kubelet is served by the same process" "$kubeletd" "$(child ow-kubeletd)"
t_ok "nothing that it offers is lost" resource spidernet.io/hca_shared_devices
t_eq "the restart is counted" 1 "$(o_metric a orbweaver_agent_restarts_total)"
t_ok "metrics of the other process are there" grep -q '^orbweaver_kubelet_registered{resource="spidernet.io/hca_shared_devices"}' \
	<(o_http a /metrics)
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map '{"configList": 7}')" >/dev/null
t_wait 30 "one that cannot be read is named" o_condition "$state" True BadSharedConfig Degraded
t_wait 10 "in an event, too" told BadSharedConfig 1
t_wait 10 "and in one on the ConfigMap" told_on_config_map BadSharedConfig configList
t_ok "the last good one stays" resource spidernet.io/hca_shared_devices
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map "${good//hca_/hcb_}")" >/dev/null
t_wait 30 "a good one is taken" resource spidernet.io/hcb_shared_devices
t_wait 30 "and nothing is wrong any more" o_condition "$state" False NothingWrong Degraded
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map '{"configList": 7}')" >/dev/null
t_wait 30 "the same trouble again is the same event" told BadSharedConfig 2
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map "${good//hca_/hcb_}")" >/dev/null
bad_entry=${good//hca_/hcb_}
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map "${bad_entry/500/-5}")" >/dev/null
t_wait 30 "an event on the ConfigMap names the entry that is wrong" told_on_config_map BadSharedConfig 'configList[0]'
t_ok "and what it offered stays" resource spidernet.io/hcb_shared_devices
o_curl PATCH "$shared/spiderpool-rdma-shared-device-plugin" "$(config_map "${bad_entry/rdmaHcaMax/rdmaHcaMaxx}")" >/dev/null
t_wait 30 "one names a key that is misspelt" told_on_config_map UnknownField 'configList[0].rdmaHcaMaxx'
t_wait 30 "the condition does, too" o_condition "$state" True UnknownField Degraded
t_ok "and what it offered stays, as many as before" test "$(o_curl GET "$state" |
	jq '.status.resources[] | select(.name == "spidernet.io/hcb_shared_devices").wanted')" = 500
o_curl DELETE "$shared/spiderpool-rdma-shared-device-plugin" >/dev/null
not_offered() {
	! resource spidernet.io/hcb_shared_devices
}
t_wait 30 "without a ConfigMap nothing is" not_offered
touch "$tmp/host/dev/wave0"
o_curl POST "$shared" "$(config_map $'- devicematch: ^wave[0-9]$\n  nummaxdevices: 3\n' smarter-device-manager conf.yaml)" >/dev/null
t_wait 30 "a device file of the list in a ConfigMap is a resource" resource smarter-devices/wave0
# So many of them that pods may have.
wave() {
	o_curl GET "$state" | jq -e --argjson healthy "$1" '.status.resources[] | select(.name == "smarter-devices/wave0").healthy == $healthy'
}
t_wait 30 "no pod gets it" wave 0
t_ok "and the flag that lists it is named" o_logged a '.why // "" | startswith(
	"smarter-devices/wave0: /dev/wave0 is not among the device files that pods may get; add it to the agent" + "\u0027s --device-paths")'
o_curl POST "$shared" "$(config_map '{"resourceList": 7}' sriovdp-config)" >/dev/null
t_wait 30 "a list of the SR-IOV device plugin that cannot be read is named" o_condition "$state" True BadResourceList Degraded
o_curl PATCH "$shared/sriovdp-config" "$(config_map '{"resourceList": []}' sriovdp-config)" >/dev/null
t_wait 30 "and taken when it can be" o_condition "$state" False NothingWrong Degraded

# --- idle ---------------------------------------------------------------------------------------------------------------
sleep 3
writes=$(o_metric a orbweaver_agent_api_writes_total)
cpu=$(o_cpu_ms a)
idle_s=$(o_size 60 6)
sleep "$idle_s"
printf '# idle for %s s: %s ms of CPU, hostd besides\n' "$idle_s" "$(($(o_cpu_ms a) - cpu))"
t_eq "an idle agent writes nothing" "$writes" "$(o_metric a orbweaver_agent_api_writes_total)"

# --- two agents -----------------------------------------------------------------------------------------------------------
start b --device-paths '/dev/wave[0-9]'
t_wait 30 "a second agent is ready" o_ready b
t_ok "and waits" o_logged b '.msg | startswith("another agent holds the node lock")'
t_fails "it does not execute" executes b
o_curl PATCH "$state" '{"spec": {"interfaces": [{"pciAddress": "0000:77:00.0", "numVfs": 2}]}}' >/dev/null
t_wait 30 "the first one does" failed
t_eq "only that" 0 "$(o_metric b orbweaver_agent_api_writes_total)"
o_end a
t_wait 10 "when it ends the second one takes over" executes b
o_curl PATCH "$state" '{"spec": {"interfaces": null}}' >/dev/null
t_wait 30 "and does the work" synced
t_wait 30 "and pods may get the file that it was started with" wave 3
o_kill b KILL
start c
t_wait 30 "one that comes after a kill executes at once" executes c

# --- without a server ------------------------------------------------------------------------------------------------------
hack/cluster stop "$o_cluster" apiserver >/dev/null
not_ready() {
	! o_ready c
}
t_wait 60 "without an API server the agent is not ready" not_ready
hack/cluster start "$o_cluster" apiserver >/dev/null
t_wait 60 "and is again with it" o_ready c
o_end c

# --- a list of device files in a namespace of its own, as an article has it ----------------------------------------------------
# "devicematch: infiniband, nummaxdevices: 20", the ConfigMap smarter-device-manager in the namespace device-manager: with a flag,
# and the Role of docs/device-plugins.md.
mkdir -p "$tmp/host/dev/infiniband"
touch "$tmp/host/dev/infiniband/uverbs0"
k create namespace device-manager >/dev/null
k apply -f crds/samples/smarter-device-manager.yaml >/dev/null
start d --dev-files device-manager/smarter-device-manager
t_wait 30 "without a right to read it the agent says which it needs" o_condition "$state" True ConfigMapUnreadable Degraded
sed -n '/^  kubectl create role/,/^  ```/p' docs/device-plugins.md | sed '/```/d; s/kubectl/k/' >"$tmp/roles"
t_ok "the documentation's commands" eval "$(<"$tmp/roles")"
offers_twenty() {
	o_curl GET "$state" | jq -e 'any(.status.resources // [] | .[]; .name == "smarter-devices/infiniband" and .wanted == 20)'
}
t_wait 60 "are enough, and the devices are offered" offers_twenty
o_end d

# --- a container with less than the manifests give it ---------------------------------------------------------------------------
# A volume without propagation: the mount at --host-root is neither shared with the node's nor its slave.
if ((EUID == 0)); then
	# shellcheck disable=SC2016 # expanded inside
	o_spawn e unshare --mount --propagation private sh -c 'mount --bind "$1" "$1" && shift && exec "$@"' sh "$tmp/host" \
		"$o_agent" --node "$node" --kubeconfig "$agent_kubeconfig" --host-root "$tmp/host" --profile devices --kubelet-dir "$tmp/kubelet" \
		--no-kubelet --metrics-addr 127.0.0.1:0
	t_wait 30 "a volume that keeps what the node unmounts is named" o_condition "$state" True MountPrivate Degraded
	t_ok "with what to write, in the log too" o_logged e '.reason == "MountPrivate" and (.why | contains("mountPropagation: HostToContainer"))'
	t_ok "the node is as wanted all the same" synced
	o_end e
else
	t_skip "a container with less than the manifests give it" "mounting needs root"
fi

# --- flags -------------------------------------------------------------------------------------------------------------------
t_fails "a host that is not there" timeout 20 "$o_agent" --node n1 --kubeconfig "$agent_kubeconfig" --host-root "$tmp/nowhere" --metrics-addr 0
t_fails "an address that is none" timeout 20 "$o_agent" --node n1 --kubeconfig "$agent_kubeconfig" --host-root "$tmp/host" --metrics-addr x
t_done

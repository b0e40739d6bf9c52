#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pool's rdmaMode on a real node that cannot take it at run time: the agent reboots the node, once, and it comes back with the
# mode. Where a stale file overrules that, it is exactly one reboot, then RebootDidNotHelp with the file's name; and one more once
# the file is gone and somebody says so. Without opt-in nobody reboots, cordons or evicts anything.
#
# The kubelet is played: a loop keeps the Node Ready, so the operator has a node to give back.
# LONG=1: a real kubelet besides, the agent from its image as it is installed, and a Deployment's pod that is asked to end.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/vm/agent.sh

a_wait_s=${A_WAIT_S:-$(o_size 400 240)}
stale=/etc/modprobe.d/yy-stale.conf

# pool MODE [MORE]
pool() {
	k apply -f - >/dev/null <<-END
		apiVersion: sriovnetwork.openshift.io/v1
		kind: SriovNetworkPoolConfig
		metadata: { name: pool, namespace: $POD_NAMESPACE }
		spec: { rdmaMode: $1, ${2:-} nodeSelector: { matchLabels: { kubernetes.io/hostname: $a_node } } }
	END
}

a_node_object() {
	o_curl GET "/api/v1/nodes/$a_node"
}

# A kubelet's heartbeat. The Node may not be there yet, and goes away at the end.
play_kubelet() {
	local now

	while kill -0 $$ && sleep 5; do
		now=$(date -u +%FT%TZ)
		o_curl PATCH "/api/v1/nodes/$a_node/status" "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",
			\"reason\":\"Played\",\"message\":\"\",\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$now\"}]}}" || true
	done >/dev/null 2>&1
}

is_ready() {
	a_node_object | jq -e '.status.conditions | any(.type == "Ready" and .status == "True")'
}

# Boots that there were, by a file that each adds a line to.
boots() {
	node 'wc -l </root/boots'
}

mode_is() {
	[[ $(a_state .status.system.rdmaMode) == "$1" ]] && a_done 2
}

gave_back() {
	a_node_object | jq -e '(.spec.unschedulable // false | not) and (.metadata.annotations["orbweaver.io/cordoned-by"] == null)'
}

is_idle() {
	gave_back && [[ $(a_state '.metadata.annotations["sriovnetwork.openshift.io/current-state"] // "Idle"') == Idle ]]
}

# What only drains and reboots do.
drain_writes() {
	o_audit | jq -c --arg user "$o_username" 'select(.user == $user and
		(.sub == "eviction" or .kind == "nodes" or .kind == "sriovnetworknodestates" and .sub == "status" and .verb == "patch"))'
}

orbweaver() {
	"$o_programs/orbweaver" --kubeconfig "$(hack/cluster kubeconfig "$o_cluster")" --namespace "$POD_NAMESPACE" "$@"
}

names_the_file() {
	{ orbweaver drain status || true; } | grep "$stale" # status 1: there is something
}

begin_real_kubelet() {
	# kubelet 1.20 does not get over a Node without status; it makes one of its own.
	k delete node "$a_node" >/dev/null
	t_ok "kubelet and containerd" hack/node kubelet "$a_node"
	t_ok "the agent's image" hack/node image "$a_node" "${BUILD:-build}/images/orbweaver-agent.tar"
	t_need
	t_ok "the agent as it is installed" k apply -n "$POD_NAMESPACE" -f manifests/base/agent.yaml
	k apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: { name: web }
		spec:
		  replicas: 1
		  selector: { matchLabels: { app: web } }
		  template:
		    metadata: { labels: { app: web } }
		    spec:
		      terminationGracePeriodSeconds: 1
		      containers: [{ name: c, image: localhost/busybox:1, imagePullPolicy: Never, command: [sleep, "100000"] }]
	END
	t_wait 240 "a pod runs" k rollout status deployment/web --timeout 5s
}

a_begin maintenance --pfs 1 ${LONG:+--memory 1280}
# The mode is decided when the module is loaded; a namespace besides the node's own keeps it from changing later, as a pod does.
node 'cat >/etc/boot.d/a-rdma && chmod +x /etc/boot.d/a-rdma && sync; /etc/boot.d/a-rdma' <<'END'
#!/bin/bash
cat /proc/sys/kernel/random/boot_id >>/root/boots
modprobe rdma_rxe
ip netns add pod
END
if [[ -n ${LONG:-} ]]; then
	begin_real_kubelet
else
	play_kubelet &
	player=$!
	a_install --log-level info
fi
t_wait "$a_wait_s" "the node is Ready" is_ready
t_wait "$a_wait_s" "the agent reports" a_done 0
a_policy roce "{\"numVfs\": 2, \"nicSelector\": {\"rootDevices\": [\"$pf1\"]}}"
t_wait "$a_wait_s" "2 VFs" a_done 2
t_eq "the mode at first" shared "$(a_state .status.system.rdmaMode)"

# --- without opt-in -----------------------------------------------------------------------------------------------------

pool exclusive
t_wait "$a_wait_s" "a reboot is asked for" a_condition RebootRequired True RdmaModeNextBoot "pods or other network namespaces"
t_eq "and said beforehand" "reboot rdma-mode-exclusive" "$(a_state '.status.impact | "\(.class) \(.cause)"')"
sleep "$(o_size 90 5)"
t_eq "without maxUnavailable nobody is evicted, and no Node written to" "" "$(drain_writes)"
pool exclusive 'maxUnavailable: 1,'
k annotate node "$a_node" orbweaver.io/allow-reboot=false >/dev/null
sleep 1
t_eq "nor does the node boot" 1 "$(boots)"

# --- a reboot that helps ------------------------------------------------------------------------------------------------

before=$(a_state .status.boots.id)
k annotate node "$a_node" orbweaver.io/allow-reboot- >/dev/null
t_wait "$a_wait_s" "the node comes back with the mode, and its VFs" mode_is exclusive
t_eq "after one reboot" 2 "$(boots)"
t_wait "$a_wait_s" "the node is given back" is_idle
t_ok "proved by another boot" test "$before" != "$(a_state .status.boots.id)"
t_eq "that was recorded before" "rdma-mode-exclusive $before true true" \
	"$(a_state '.status.boots.asked[0] | "\(.cause) \(.bootID) \(.requested) \(.closed)"')"
for reason in DrainBegins NodeReboots DrainEnds; do
	t_ok "the event $reason" a_event $reason ""
done
if [[ -n ${LONG:-} ]]; then
	t_eq "the Deployment's pod was asked to end" 1 "$(o_writes '.sub == "eviction"')"
	t_wait 240 "and runs again" k rollout status deployment/web --timeout 5s
fi

# --- one that does not ---------------------------------------------------------------------------------------------------

node "cat >$stale; sync" <<<"install ib_core /sbin/modprobe --ignore-install ib_core netns_mode=0"
pool shared 'maxUnavailable: 1,'
t_wait "$a_wait_s" "a boot in vain names the file" a_condition Degraded True RebootDidNotHelp "$stale"
t_eq "it was one" 3 "$(boots)"
t_wait "$a_wait_s" "the node takes pods again" gave_back
sleep "$(o_size 90 10)"
t_eq "and it stays one" 3 "$(boots)"
t_ok "drain status says so" names_the_file
node "rm $stale; sync"
t_ok "drain retry" orbweaver drain retry "$a_node"
t_wait "$a_wait_s" "once more, and it helps" mode_is shared
t_eq "after one reboot" 4 "$(boots)"
t_wait "$a_wait_s" "the node is given back" is_idle

# --- three a day ----------------------------------------------------------------------------------------------------------

pool exclusive 'maxUnavailable: 1,'
t_wait "$a_wait_s" "a fourth within a day is refused" a_condition Degraded True RebootsTooOften "within a day"
t_eq "the node stays up" 4 "$(boots)"
if [[ -z ${LONG:-} ]]; then
	a_end
	kill "$player"
fi
o_end op
t_done

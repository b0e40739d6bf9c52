#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An agent that goes away from its node, as the operator sees it by the pods of the DaemonSet, with the rights of the manifests:
# the NodeState and the policy say NoAgent, since when and what to look at; and no longer once the agent writes again. What
# its pods look like is played; how long an absence has to last is in tests/unit/reconcilers/sriov/node_agent_test.c.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

state=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates/n1
policy=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodepolicies/x
pod=/api/v1/namespaces/$POD_NAMESPACE/pods/orbweaver-agent-x

# status JQ: the agent writes a status, as a whole.
status() {
	o_curl GET "$state" | jq --arg now "$(date -u +%FT%TZ)" ".status = {syncStatus: \"Succeeded\", agentPod: \"orbweaver-agent-x\",
		observedGeneration: .metadata.generation, wantedVfs: 2, presentVfs: 2,
		interfaces: [{pciAddress: \"0000:10:00.0\", name: \"p0\", vendor: \"15b3\", deviceID: \"1017\", numVfs: 2, totalvfs: 8,
			Vfs: [{pciAddress: \"0000:10:00.2\", vfID: 0}, {pciAddress: \"0000:10:00.3\", vfID: 1}]}],
		conditions: [{type: \"Ready\", status: \"True\", reason: \"AsWanted\", message: \"m\", lastTransitionTime: \$now},
			{type: \"Degraded\", status: \"False\", reason: \"NothingWrong\", message: \"m\", lastTransitionTime: \$now},
			{type: \"Progressing\", status: \"False\", reason: \"NothingToDo\", message: \"m\", lastTransitionTime: \$now}]}" >"$tmp/state.json" &&
		o_curl PUT "$state/status" "$(<"$tmp/state.json")" >/dev/null
}

# says PATH TYPE WANT: status, reason and message of a condition.
says() {
	o_curl GET "$1" | jq -r --arg type "$2" '.status.conditions[]? | select(.type == $type) | "\(.status) \(.reason) \(.message)"' |
		grep -F "$3"
}

# ready STATUS CONTAINER: the kubelet's part.
ready() {
	o_curl PATCH "$pod/status" "{\"status\": {\"phase\": \"Running\",
		\"conditions\": [{\"type\": \"Ready\", \"status\": \"$1\", \"lastTransitionTime\": \"2026-01-31T09:00:00Z\"}],
		\"containerStatuses\": [{\"name\": \"agent\", \"image\": \"i\", \"imageID\": \"i\", \"ready\": false, \"restartCount\": 3, \"state\": $2}]}}" \
		>/dev/null
}

is_ready() {
	status && says "$policy" Ready "True "
}

# No controllers: they would call the Node, which no kubelet keeps alive, Unknown within the minute that an agent has.
o_begin agent --no-controllers
o_own_user
o_curl POST /api/v1/nodes '{"metadata": {"name": "n1", "labels": {"kubernetes.io/os": "linux"}}}' >/dev/null
k apply -f - >/dev/null <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: x, namespace: $POD_NAMESPACE }
spec: { resourceName: x, numVfs: 2, nodeSelector: { kubernetes.io/os: linux }, nicSelector: { pfNames: [p0] } }
END
k apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: { name: orbweaver-agent-x, namespace: $POD_NAMESPACE, labels: { app.kubernetes.io/name: orbweaver-agent } }
spec: { nodeName: n1, containers: [ { name: agent, image: i } ] }
END
ready True '{"running": {}}'
o_start op
t_wait 20 "a NodeState" o_curl GET "$state"
t_wait 20 "the agent writes a status" status
t_wait 20 "the policy is ready once its VFs are wanted there" is_ready

echo "# its pod crashes, and has for long"
created=$(o_curl GET "$pod" | jq -r .metadata.creationTimestamp)
ready False '{"waiting": {"reason": "CrashLoopBackOff"}}'
t_wait 90 "the NodeState says so, and how to see why" says "$state" Ready \
	"False NoAgent the agent is away since $created: its pod is CrashLoopBackOff; see why: kubectl describe pod -n $POD_NAMESPACE orbweaver-agent-x"
t_ok "what it said else is unknown" says "$state" Progressing "Unknown NoAgent"
t_eq "what it saw of the host stays" 2 "$(o_curl GET "$state" | jq '.status.interfaces[0].Vfs | length')"
t_wait 30 "the policy says so, too" says "$policy" Ready "node n1 agent: away since $created: its pod is CrashLoopBackOff"
t_ok "somebody has to act" says "$policy" Degraded "True NoAgent"
t_eq "people see since when" "$created" "$(k get sriovnetworknodestates -n "$POD_NAMESPACE" -o wide | awk '
	NR == 1 { at = index($0, "AGENT-SILENT-SINCE") } NR == 2 { split(substr($0, at), field, " "); print field[1] }')"

echo "# it goes"
o_curl DELETE "$pod" '{"gracePeriodSeconds": 0}' >/dev/null
t_wait 10 "the DaemonSet is what to look at" says "$state" Ready \
	"since $created: the DaemonSet orbweaver-agent has no pod on the node; see which nodes it selects: kubectl describe daemonset -n $POD_NAMESPACE"
o_end op
o_start op
t_wait 20 "another operator leads" o_leads op
t_ok "what was said stays said" says "$policy" Ready "False NoAgent"

echo "# it comes back"
k apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: { name: orbweaver-agent-x, namespace: $POD_NAMESPACE, labels: { app.kubernetes.io/name: orbweaver-agent } }
spec: { nodeName: n1, containers: [ { name: agent, image: i } ] }
END
ready True '{"running": {}}'
t_ok "its first status" status
t_wait 10 "the policy is ready" says "$policy" Ready "True "
t_ok "nobody says anything else of the node" says "$state" Ready "True AsWanted"

echo "# its Node is out of reach"
# node_is STATUS: the node controller's part.
node_is() {
	o_curl PATCH /api/v1/nodes/n1/status "{\"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"$1\", \"reason\": \"r\",
		\"message\": \"m\", \"lastTransitionTime\": \"2026-01-31T09:00:00Z\", \"lastHeartbeatTime\": \"2026-01-31T09:00:00Z\"}]}}" >/dev/null
}
lives() {
	local end=$((SECONDS + 2))

	while ((SECONDS <= end)); do
		says "$state" Ready "True AsWanted" >/dev/null || return 1
		sleep 0.1
	done
}
node_is Unknown
ready False '{"running": {}}'
t_wait 10 "the NodeState says so, without the minute of an update" says "$state" Ready "False NoAgent the agent is out of reach since"
t_ok "the Node is what to look at" says "$state" Ready "as its Node is, whose kubelet is silent; see why: kubectl describe node n1"
t_wait 30 "the policy says so, too" says "$policy" Degraded "True NoAgent node n1 agent: out of reach"
t_ok "an agent that lives all the same writes over it" status
t_ok "nobody says it again" lives
node_is True
ready True '{"running": {}}'
t_wait 10 "the policy is ready" says "$policy" Ready "True "

echo "# a shared resource that no node has"
o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" \
	'{"metadata": {"name": "spiderpool-rdma-shared-device-plugin"}, "data": {"config.json": "{}"}}' >/dev/null
o_curl PATCH "$state/status" '{"status": {"resources": [{"name": "x.io/hca", "kind": "shared", "wanted": 5, "offered": 0,
	"healthy": 0, "registered": true, "cause": "p0: vendor 15b3, wanted 1af4"}]}}' >/dev/null
told() {
	o_curl GET "/api/v1/namespaces/$POD_NAMESPACE/events" | jq -e 'any(.items[]; .reason == "OfferedNowhere" and
		.involvedObject.name == "spiderpool-rdma-shared-device-plugin" and
		(.message | contains("x.io/hca (node n1: p0: vendor 15b3, wanted 1af4)")))'
}
t_wait 30 "an event on the ConfigMap says so, and why" told
t_ok "it is counted" grep -q '^orbweaver_resource_nodes{resource="x.io/hca",state="unselected"} 1' <(o_http op /metrics)

echo "# its Node is deleted"
o_curl DELETE /api/v1/nodes/n1 >/dev/null
t_wait 20 "the NodeState does not look as before" says "$state" Ready "Unknown NodeGone Node n1 is gone: this is kept until "
t_ok "in no condition" says "$state" Progressing "Unknown NodeGone"
t_eq "nobody has to act for it" "" "$(o_http op /metrics | grep '^orbweaver_findings{kind="sriovnetworknodestates"')"
o_curl POST /api/v1/nodes '{"metadata": {"name": "n1", "labels": {"kubernetes.io/os": "linux"}}}' >/dev/null
no_longer() {
	! says "$state" Ready NodeGone
}
t_wait 20 "it is no longer said once the Node is back" no_longer
o_end op
t_done

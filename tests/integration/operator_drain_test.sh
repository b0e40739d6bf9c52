#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A change that pods are in the way of goes through the nodes one after the other, with a controller manager, a scheduler, a
# Deployment and its PodDisruptionBudget; the nodes and their kubelets are played (tests/fakes/node_stand_in.c, --pods).
#
# So does an RDMA mode that needs a boot: cordoned, emptied, rebooted, given back.
#
# What the API server tells decides: versions of NodeStates, pods and Nodes in the order of its watches, and the audit log.
# - Without opt-in nobody is evicted and no Node is written to.
# - With maxUnavailable 1 there is never more than one NodeState whose current-state is not Idle, and no more than one cordoned Node.
# - The Deployment has never fewer pods than its budget says. No node boots with pods of it (the stand-in refuses).
# - No node boots more often than asked: its boot's number says so.
# - All of that also while operators are killed at any time.
# Environment: SEED, when to kill (1); LONG=1: 60 operators instead of 5.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

RANDOM=${SEED:-1}
resource=spidernet.io/x
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
least=5
kills=$(o_size 60 5)

policy() {
	k apply -f - >/dev/null <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodePolicy
metadata: { name: x, namespace: $POD_NAMESPACE }
spec: { resourceName: x, numVfs: $1, nodeSelector: { node-role.kubernetes.io/worker: "" }, nicSelector: { rootDevices: ["0000:10:00.0"] } }
END
}

pool() {
	k apply -f - >/dev/null <<END
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: { name: all, namespace: $POD_NAMESPACE }
spec: { $1 nodeSelector: { matchLabels: { node-role.kubernetes.io/worker: "" } } }
END
}

budget() {
	k apply -f - >/dev/null <<END
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: { name: web, namespace: default }
spec: { minAvailable: $1, selector: { matchLabels: { app: web } } }
END
}

deployment() {
	k apply -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 6
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - { maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: { matchLabels: { app: web } } }
      containers:
      - { name: a, image: none, resources: { requests: { $resource: 1 }, limits: { $resource: 1 } } }
END
}

# each JQ: it holds for every NodeState.
each() {
	o_curl GET "$states" | jq -e ".items | length == 3 and all($1)"
}

some() {
	o_curl GET "$states" | jq -e ".items | any($1)"
}

has_vfs() {
	each ".status.presentVfs == $1 and .status.syncStatus == \"Succeeded\" and .status.impact.class == \"none\"
		and (.metadata.annotations[\"sriovnetwork.openshift.io/current-state\"] // \"Idle\") == \"Idle\""
}

pods_are_ready() {
	o_curl GET "/apis/apps/v1/namespaces/default/deployments/web" | jq -e '.status.readyReplicas == 6' &&
		o_curl GET /apis/policy/v1beta1/namespaces/default/poddisruptionbudgets/web |
		jq -e ".status.currentHealthy == 6 and .status.desiredHealthy == $least"
}

# What only draining does.
drain_writes() {
	o_audit | jq -c --arg user "$o_username" 'select(.user == $user and
		(.sub == "eviction" or .kind == "nodes" or .kind == "sriovnetworknodestates" and .sub == "status" and .verb == "patch"))'
}

# Of these what pods and others notice. Whose condition was written once keeps its observedGeneration up to date.
evictions_and_cordons() {
	drain_writes | jq -c 'select(.kind != "sriovnetworknodestates")'
}

# The most NodeStates that were under way at a time, and all that ever were, of all versions that there were.
under_way() {
	jq -n -r 'reduce (inputs.object | select(.metadata)) as $o ({ now: {}, most: 0, ever: {} };
		(($o.metadata.annotations // {})["sriovnetwork.openshift.io/current-state"] // "Idle") as $state |
		.now[$o.metadata.name] = ($state != "Idle") |
		(if $state != "Idle" then .ever[$o.metadata.name] = true else . end) |
		.most = ([.most, ([.now[] | select(.)] | length)] | max)) | "\(.most) \(.ever | length)"' "$tmp/watch-sriovnetworknodestates.out"
}

# The most Nodes that were cordoned at a time, and all that ever were.
cordoned() {
	jq -n -r 'reduce (inputs.object | select(.metadata)) as $o ({ now: {}, most: 0, ever: {} };
		($o.spec.unschedulable // false) as $is | .now[$o.metadata.name] = $is |
		(if $is then .ever[$o.metadata.name] = true else . end) |
		.most = ([.most, ([.now[] | select(.)] | length)] | max)) | "\(.most) \(.ever | length)"' "$tmp/watch-nodes.out"
}

has_mode() {
	each ".status.system.rdmaMode == \"$1\" and .status.boots.id == \"$2\" and .status.syncStatus == \"Succeeded\" and
		(.metadata.annotations[\"sriovnetwork.openshift.io/current-state\"] // \"Idle\") == \"Idle\""
}

no_mark_is_left() {
	o_curl GET /api/v1/nodes | jq -e '.items | all((.spec.unschedulable // false | not) and .metadata.annotations["orbweaver.io/cordoned-by"] == null)'
}

# Moments at which fewer pods than the budget asks for ran, from the first on at which enough did.
below_the_budget() {
	jq -n -c --argjson least "$least" 'foreach (inputs | select(.object.metadata.labels.app == "web")) as $e ({ up: {}, was: false };
		.up[$e.object.metadata.uid] = ($e.type != "DELETED" and $e.object.status.phase == "Running") |
		.n = ([.up[] | select(.)] | length) | .was = (.was or .n == 6); select(.was and .n < $least) | .n)' "$tmp/watch-pods.out"
}

evictions() {
	o_audit | jq -s --arg user "$o_username" 'map(select(.sub == "eviction" and .user == $user)) | length'
}

condition_says() {
	o_curl GET "$states" | jq -r '.items[].status.conditions[]? | select(.type == "Draining" and .status == "True") | .message'
}

refuses_with_numbers() {
	condition_says | grep 'disruption budget web needs 6 healthy pods and has 6 currently'
}

event_of() {
	o_curl GET "/api/v1/namespaces/$POD_NAMESPACE/events" | jq -e --arg reason "$1" 'any(.items[]; .reason == $reason)'
}

is_quiet() {
	each '.status.maintenance == null' && no_mark_is_left
}

# Each lives long enough to decide something, on a busy machine too.
kill_operators() {
	local i

	for ((i = 1; i <= kills; i++)); do
		o_start "op-$i" --leader-elect=false
		sleep "$((1 + RANDOM % 5)).$((RANDOM % 1000))"
		o_kill "op-$i" KILL
		o_log_is_clean "op-$i" || return
	done
}

o_begin drain
o_own_user
# A node is away for a moment when it boots: whoever sees only the next boot does not tell of this one.
o_nodes nodes --generate nodes=3,pfs=1,vfs=8 --pods $resource --heartbeat 5 --work-ms 700
t_wait 20 "the nodes are there" o_curl GET /api/v1/nodes/node-00002
o_watch sriovnetworknodestates "$states"
o_watch pods /api/v1/namespaces/default/pods
o_watch nodes /api/v1/nodes
o_start op
o_wait_ready op
policy 4
t_wait 30 "VFs are made where nobody is in the way" has_vfs 4
deployment
budget $least
t_wait 90 "the Deployment has its pods, and the budget counts them" pods_are_ready

# --- without opt-in -------------------------------------------------------------------------------------------------

policy 6
t_wait 30 "what it would cost is said of each node" each '.status.impact.class == "evict" and (.status.impact.pods | length) > 0'
pool ''
sleep 3
t_eq "the leader counts the nodes" 3 "$(o_metric op orbweaver_drain_nodes NotAllowed)"
t_eq "without maxUnavailable nothing is evicted, and no Node written to" "" "$(drain_writes)"

# --- with it ----------------------------------------------------------------------------------------------------------

pool 'maxUnavailable: 1,'
t_wait 120 "the change goes through all nodes" has_vfs 6
t_eq "one node at a time, and each of them" "1 3" "$(under_way)"
t_ok "its pods were asked to end" test "$(evictions)" -ge 6
t_eq "never fewer pods than the budget asks for" "" "$(below_the_budget)"
t_wait 30 "the beginning is told" event_of DrainBegins
t_wait 30 "the end is told" event_of DrainEnds
t_ok "nothing is left of it" each '.status.maintenance == null'
t_eq "and no Node is cordoned" 0 "$(o_curl GET /api/v1/nodes | jq '[.items[] | select(.spec.unschedulable)] | length')"

# --- a budget that refuses ---------------------------------------------------------------------------------------------

t_wait 60 "all pods are back" pods_are_ready
budget 6
sleep 2
policy 5
t_wait 60 "the budget is named with its numbers" refuses_with_numbers
t_ok "a node waits for its turn meanwhile" some '.status.maintenance.state == "Waiting"'
t_wait 30 "the refusal is told" event_of PdbRefuses
budget $least
t_wait 180 "it goes on once the budget allows it" has_vfs 5
t_wait 60 "all pods are back again" pods_are_ready
# Who comes next would end what is under way, whatever is asked for by then.
t_wait 60 "nothing is under way" is_quiet
o_end op

# --- a mode that needs a boot -----------------------------------------------------------------------------------------------

o_start reboots
o_wait_ready reboots
pool 'rdmaMode: exclusive,'
t_wait 60 "it is said of each node that it has to boot" each '.status.impact.class == "reboot" and .status.impact.cause == "rdma-mode-exclusive"'
before=$(evictions_and_cordons | wc -l)
sleep 3
t_eq "without maxUnavailable nothing is evicted, and no Node written to" "$before" "$(evictions_and_cordons | wc -l)"
pool 'rdmaMode: exclusive, maxUnavailable: 1,'
t_wait 240 "all nodes have the mode, each after one boot" has_mode exclusive boot-2
t_eq "one node at a time" "1 3" "$(under_way)"
t_eq "one cordoned Node at a time, and each of them" "1 3" "$(cordoned)"
t_wait 30 "none is left cordoned" no_mark_is_left
t_eq "never fewer pods than the budget asks for" "" "$(below_the_budget)"
t_wait 30 "the reboots are told" event_of NodeReboots
t_wait 60 "all pods are back once more" pods_are_ready
o_end reboots

# --- operators that die ---------------------------------------------------------------------------------------------------

policy 3
pool 'rdmaMode: shared, maxUnavailable: 1,'
t_ok "nothing but log lines from $kills operators that were killed" kill_operators
o_start last
o_wait_ready last
t_wait 240 "the changes go through all the same" has_vfs 3
t_wait 240 "with one more boot each" has_mode shared boot-3
t_eq "still one cordoned Node at a time" "1 3" "$(cordoned)"
t_wait 30 "none is left cordoned" no_mark_is_left
t_eq "still one node at a time" "1 3" "$(under_way)"
t_eq "still never fewer pods than the budget asks for" "" "$(below_the_budget)"
o_end last
t_done

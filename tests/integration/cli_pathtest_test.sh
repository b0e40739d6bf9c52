#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver test on a real API server without kubelets: each way in which it cannot go on is one line and a status, and its pods
# are gone afterwards.
set -euo pipefail
. "$(dirname "$0")/operator.sh"
. "$(dirname "$0")/cli.sh"

cli=$o_programs/orbweaver
o_begin cli-pathtest --no-controllers
kubeconfig=$(hack/cluster kubeconfig "$o_cluster")
c() { "$cli" --kubeconfig "$kubeconfig" -n ml "$@"; }
k create namespace ml >/dev/null
k apply -f - >/dev/null <<'END'
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: rail, namespace: ml, annotations: {k8s.v1.cni.cncf.io/resourceName: example.com/rail}}
spec: {config: '{"cniVersion": "0.3.1", "name": "rail", "type": "sriov"}'}
---
apiVersion: v1
kind: Node
metadata: {name: w1}
---
apiVersion: v1
kind: Node
metadata: {name: w2}
END
# node NAME COUNT: Ready, with so many devices.
node() {
	o_curl PATCH "/api/v1/nodes/$1/status" "{\"status\": {\"capacity\": {\"example.com/rail\": \"$2\"},
		\"allocatable\": {\"example.com/rail\": \"$2\"}, \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}" >/dev/null
}
pods() { o_curl GET /api/v1/namespaces/ml/pods | jq -r '.items[].metadata.name'; }
# What a scheduler and a kubelet would do with the pods of a test, until a file is there.
play_nodes() {
	local pod path

	until [[ -e $tmp/played ]]; do
		for pod in $(pods); do
			path=/api/v1/namespaces/ml/pods/$pod
			# What was asked to end has.
			! o_curl GET "$path" | jq -e .metadata.deletionTimestamp || o_curl DELETE "$path?gracePeriodSeconds=0"
			o_curl POST "$path/binding" "{\"apiVersion\": \"v1\", \"kind\": \"Binding\", \"metadata\": {\"name\": \"$pod\"},
				\"target\": {\"kind\": \"Node\", \"name\": \"w$((${pod##*-} + 1))\"}}"
			o_curl PATCH "$path" '{"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status":
				"[{\"name\":\"ml/rail\",\"interface\":\"net1\",\"ips\":[\"10.0.0.1\"]}]"}}}'
			o_curl PATCH "$path/status" '{"status": {"phase": "Running", "containerStatuses":
				[{"name": "test", "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "state": {"running": {}}}]}}'
		done
		sleep 0.2
	done >/dev/null 2>&1 || true
}
# The first pod is there.
has_pods() { [[ -n $(pods) ]]; }
has_none() { [[ -z $(pods) ]]; }

t_ok "a network that is not there" says "there is no NetworkAttachmentDefinition ml/lost" 2 c test lost
t_ok "nodes without the resource" says "needs two nodes that are Ready and have example.com/rail allocatable, and there are 0" 2 c test rail
node w1 2
node w2 2
t_ok "one node is no path" says "name two or none" 2 c test rail w1
t_ok "nor is a node that is not there" says "there is no node w9" 2 c test rail w1 w9
t_ok "it wants a cluster" says "leave out -f" 2 c test rail -f "$(dirname "$0")/cli_explain.json"
t_ok "a time that is none" says "--timeout soon: must be seconds" 2 c test rail --timeout soon
t_ok "nor is this one" says "--check-timeout 0: must be seconds" 2 c test rail --check-timeout 0
t_ok "a bandwidth that is none" says "--min-gbps 0%: must be Gbit/s" 2 c test rail --min-gbps 0%
t_ok "a latency that is none" says "--max-us 8us: must be microseconds" 2 c test rail --max-us 8us
t_ok "a pattern that is none" says "--pattern mesh: must be rails, cross or ring" 2 c test rail --pattern mesh
t_ok "a flag of others" says "--mesh does not go with status" 2 c status --mesh
t_ok "nobody schedules the pods" says "for node w1: it is not scheduled: no scheduler has looked at it" 3 c test rail --timeout 1
t_eq "and they are removed" "" "$(pods)"

# maker may look and make pods, not give them tasks; giver may not read what becomes of those; looker may not even make them.
k apply -f - >/dev/null <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: looker}
rules:
- {apiGroups: [k8s.cni.cncf.io, sriovnetwork.openshift.io], resources: ["*"], verbs: [get, list]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: maker}
rules:
- {apiGroups: [""], resources: [pods], verbs: [create, get, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: giver}
rules:
- {apiGroups: [""], resources: [pods], verbs: [create, get, patch, delete]}
END
for user in looker maker giver; do
	k create clusterrolebinding "$user-looks" --clusterrole=looker --user="$user" >/dev/null
done
for user in maker giver; do
	k create clusterrolebinding "$user" --clusterrole="$user" --user="$user" >/dev/null
done
looker=$(hack/cluster kubeconfig-user "$o_cluster" looker)
maker=$(hack/cluster kubeconfig-user "$o_cluster" maker)
giver=$(hack/cluster kubeconfig-user "$o_cluster" giver)
t_ok "without the right to make pods" says 'create pod ml/orbweaver-test-' 3 "$cli" --kubeconfig "$looker" -n ml test rail
t_ok "which is named" says 'cannot create resource "pods"' 3 "$cli" --kubeconfig "$looker" -n ml test rail

play_nodes &
player=$!
t_ok "without the right to give them tasks" says 'cannot patch resource "pods"' 3 "$cli" --kubeconfig "$maker" -n ml test rail
t_wait 30 "the pods are removed by whom may not more" has_none
t_ok "without the right to read their logs" says 'cannot get resource "pods/log"' 3 "$cli" --kubeconfig "$giver" -n ml test rail \
	--check-timeout 2
t_wait 30 "the pods are removed by whom may not more" has_none
t_ok "a kubelet that cannot be reached in time" says "did not end in time" 3 c test rail --check-timeout 2
t_wait 30 "the pods are removed" has_none
touch "$tmp/played"
wait "$player"

"$cli" --kubeconfig "$kubeconfig" -n ml test rail --timeout 600 >"$tmp/interrupted" 2>&1 &
tested=$!
t_wait 20 "pods are made" has_pods
kill -INT "$tested"
status=0
wait "$tested" || status=$?
# Interrupted: its reason is nowhere but here. What it was about to do may stand before it.
t_eq "interrupted, it says so" "3 interrupted" "$status $(tail -n 1 "$tmp/interrupted" | sed 's/.*: //')"
t_eq "and removes its pods" "" "$(pods)"
t_done

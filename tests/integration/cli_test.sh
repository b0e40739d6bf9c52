#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# orbweaver, the command line, on a real API server: what it says about addresses, what it repairs, and how it refuses.
set -euo pipefail
. "$(dirname "$0")/operator.sh"
. "$(dirname "$0")/cli.sh"

cli=$o_programs/orbweaver
o_begin cli --no-controllers
kubeconfig=$(hack/cluster kubeconfig "$o_cluster")
c() { "$cli" --kubeconfig "$kubeconfig" "$@"; }
# The API server gives pods their UIDs.
fill() { sed "s/UID0/$uid0/"; }
k create namespace ml >/dev/null
world | sed '/^  allocatedIP/d; /^status:$/d; s/uid: UID., //' | k apply -f - >/dev/null
uid0=$(k get pod -n ml train-0 -o 'jsonpath={.metadata.uid}')
t_wait 10 "endpoints are served" k get se -A
endpoints | fill | k apply -f - >/dev/null
records="{\"10.6.0.10\":{\"pod\":\"ml/train-0\",\"podUid\":\"$uid0\"},\"10.6.0.12\":{\"pod\":\"ml/gone\",\"podUid\":\"u9\"}}"
o_curl PATCH "$spider/spiderippools/rail1/status" \
	"$(jq -nc --arg r "$records" '{status: {allocatedIPs: $r, allocatedIPCount: 3}}')" >/dev/null

t_ok "the cluster says the same as the files" says "RecordWithoutPod" 1 c ipam check
t_ok "a pod is explained" says "10.6.0.10/24" 0 c ipam explain ml/train-0
t_ok "what can be mended is mended" says "SpiderIPPool rail1: ledger written" 0 c ipam check --repair
t_ok "then all agree" says "all agree" 0 c ipam check
t_eq "only the leaked address was given back" '["10.6.0.10"]' \
	"$(k get sp rail1 -o json | jq -c '.status.allocatedIPs | fromjson | keys')"
t_fails "the endpoint that nobody needs is gone, for all its finalizer" k get se -n ml gone
t_ok "the other one is there" k get se -n ml train-0
t_ok "repairing again does nothing" says "all agree" 0 c ipam check --repair

stranger=$(hack/cluster kubeconfig-user "$o_cluster" stranger)
t_ok "the status of a cluster without an operator" says "OperatorSilent" 1 c status
for pool in rail1 rail2; do
	o_curl PATCH "$spider/spiderippools/$pool/status" '{"status": {"conditions": [{"type": "Ready", "status": "True",
		"reason": "Usable", "message": "m", "lastTransitionTime": "2026-01-31T09:00:00Z"}]}}' >/dev/null
done

echo "# who leads"
# lease HOLDER RENEWED: as the operator would leave it.
lease() {
	k apply -f - >/dev/null <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: orbweaver-operator, namespace: $POD_NAMESPACE}
spec: {holderIdentity: "$1", leaseDurationSeconds: 15, renewTime: "$2"}
END
}
away="no operator leads since 2026-01-31T10:00:00Z: look at Deployment orbweaver-operator"
t_ok "no Lease" says "no operator leads: look at Deployment orbweaver-operator" 1 c status
t_ok "which may be in another namespace" says "--operator-namespace says where the operator is" 1 c status
t_ok "doctor says so, too" says "NoLeader" 1 c doctor
lease op-0 2026-01-31T10:00:00.000000Z
t_eq "a holder that went away is the first finding" "Lease $POD_NAMESPACE/orbweaver-operator NoLeader" \
	"$({ c status -o json || true; } | jq -r '.findings[0] | "\(.kind) \(.name) \(.reason)"')"
t_ok "with the time" says "$away" 1 c status
t_ok "doctor has it with what should be" says "an operator that renews it" 1 c doctor
t_ok "but not where nodes are compared" says "nothing found" 0 c doctor --compare
k create clusterrole pools --verb=get,list --resource=sriovnetworknodestates.sriovnetwork.openshift.io,network-attachment-definitions.k8s.cni.cncf.io,nodes >/dev/null
k create clusterrolebinding pools --clusterrole=pools --user=pools >/dev/null
pools=$(hack/cluster kubeconfig-user "$o_cluster" pools)
t_eq "who may not read the Lease hears nothing of it" "nothing found" "$("$cli" --kubeconfig "$pools" doctor 2>&1)"
lease "" "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"
t_ok "one that was given back" says "no operator leads since $(date -u +%Y-)" 1 c status
lease op-0 "$(date -u -d "+1 hour" +%Y-%m-%dT%H:%M:%S.000000Z)"
t_ok "with one that leads and says that its pools are well" says "SpiderIPPool" 0 c status
t_ok "doctor finds nothing" says "nothing found" 0 c doctor
t_ok "the ledger of a cluster without VFs" says "no pod has a device of ours" 0 c ledger
t_ok "a plan of a cluster without policies" says "nothing changes on any node" 0 c plan
cat >"$tmp/new.yaml" <<'END'
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: fresh}
spec: {cniType: macvlan, macvlan: {master: [eth9], ippools: {ipv4: [rail1]}}}
END
t_ok "a plan of a file that is not in the cluster" says "operator: creates NetworkAttachmentDefinition ml/fresh" 0 \
	c -n ml plan -f "$tmp/new.yaml"
k apply -n ml -f "$tmp/new.yaml" >/dev/null
t_ok "once it is applied nothing follows" says "nothing follows: the cluster has it like this" 0 c -n ml plan -f "$tmp/new.yaml"
k delete -n ml -f "$tmp/new.yaml" >/dev/null
k create clusterrole planner --verb=get,list --resource=nodes,pods,poddisruptionbudgets.policy >/dev/null
k create clusterrole sriov-reader --verb=get,list --resource=sriovnetworknodestates.sriovnetwork.openshift.io \
	--resource=sriovnetworknodepolicies.sriovnetwork.openshift.io,sriovnetworkpoolconfigs.sriovnetwork.openshift.io >/dev/null
for role in planner sriov-reader; do
	k create clusterrolebinding "$role" --clusterrole="$role" --user=planner >/dev/null
done
planner=$(hack/cluster kubeconfig-user "$o_cluster" planner)
t_ok "what a user may not read is not decided, and named" says "nothing follows: what the cluster has of such objects cannot be read" 0 \
	"$cli" --kubeconfig "$planner" plan -f "$tmp/new.yaml"
k apply -f - >/dev/null <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ours}
rules: [{apiGroups: [sriovnetwork.openshift.io, spiderpool.spidernet.io], resources: ["*"], verbs: [get, list]}]
END
k create clusterrolebinding ours --clusterrole=ours --user=ours >/dev/null
ours=$(hack/cluster kubeconfig-user "$o_cluster" ours)
t_ok "status does without Nodes, and says so" says "left out: nodes: nodes is forbidden" 0 "$cli" --kubeconfig "$ours" status
t_ok "it has the rest" says "SpiderIPPool" 0 "$cli" --kubeconfig "$ours" status
t_ok "the ledger does without definitions" says "left out: network-attachment-definitions: network-attachment-definitions.k8s.cni.cncf.io is forbidden" 0 \
	"$cli" --kubeconfig "$planner" ledger
t_ok "but not without pods" says "list pods: pods is forbidden" 3 "$cli" --kubeconfig "$ours" ledger
t_eq "names that may not be listed are not completed" ":4" \
	"$("$cli" __complete ledger --kubeconfig "$ours" "" 2>&1 | xargs)"
t_ok "without rights: one line that names what is missing, status 3" says "list spiderippools" 3 \
	"$cli" --kubeconfig "$stranger" ipam show

echo "# a node whose agent is away, and no operator has said so"
k apply -f - >/dev/null <<END
apiVersion: v1
kind: Node
metadata: {name: w9, labels: {kubernetes.io/os: linux}}
---
apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkNodeState
metadata: {name: w9, namespace: $POD_NAMESPACE}
END
o_curl PATCH "/apis/sriovnetwork.openshift.io/v1/namespaces/$POD_NAMESPACE/sriovnetworknodestates/w9/status" \
	'{"status": {"syncStatus": "Succeeded", "agentPod": "agent-w9", "observedGeneration": 1}}' >/dev/null
t_ok "a cluster without any pod of an agent" says "node w9: agent: NoAgent: no agent pod runs on the node: kubectl get pods -n $POD_NAMESPACE" 1 \
	c explain node w9
k delete node w9 >/dev/null
k delete sriovnetworknodestates.sriovnetwork.openshift.io -n "$POD_NAMESPACE" w9 >/dev/null

echo "# support dumps"
# An operator, and a pod that says it is that one: the API server's proxy goes to its address.
address=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 -E '^[0-9.]+$' || true)
port=$(o_free_port)
o_start op --leader-elect=false --metrics-addr "${address:-127.0.0.1}:$port"
o_wait_ready op
k apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: operator-0, namespace: $POD_NAMESPACE, labels: {app.kubernetes.io/name: orbweaver-operator}}
spec:
  nodeName: n1
  automountServiceAccountToken: false
  containers:
  - {name: operator, image: i, args: ["--metrics-addr=:$port", --debug-addr=127.0.0.1:6060, --policy-namespaces=default],
     env: [{name: SECRET, value: hush}]}
---
apiVersion: v1
kind: Pod
metadata: {name: operator-1, namespace: $POD_NAMESPACE, labels: {app.kubernetes.io/name: orbweaver-operator}}
spec:
  nodeName: n1
  automountServiceAccountToken: false
  containers:
  - name: operator
    image: i
    args: ["--metrics-addr=:$port", --health-addr=0]
    env: [{name: METRICS_SECURE, valueFrom: {configMapKeyRef: {name: orbweaver-operator-metrics, key: secure}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: orbweaver-operator-metrics, namespace: $POD_NAMESPACE}
data: {secure: "true"}
---
apiVersion: v1
kind: Secret
metadata: {name: mine, namespace: $POD_NAMESPACE}
stringData: {password: hush}
END
for pod in operator-0 operator-1; do
	o_curl PATCH "/api/v1/namespaces/$POD_NAMESPACE/pods/$pod/status" \
		"{\"status\": {\"phase\": \"Running\", \"podIP\": \"${address:-10.0.0.1}\"}}" >/dev/null
done
t_ok "without kubelets logs are missing, which is a line and status 1" says "not in the dump: operator-0 log" 1 \
	c support dump -o "$tmp/dump"
index() { jq -r "$1" "$tmp/dump/index.json"; }
t_eq "its settings are those of the operator" "$POD_NAMESPACE $POD_NAMESPACE default false" \
	"$(index '.operator | "\(.namespace) \(.configNamespace) \(.policyNamespaces | join(",")) \(.webhooks)"')"
t_ok "the server's version is there" test "$(index .server.gitVersion)" != null
t_eq "a page that only the pod can reach is skipped, with what to do" 4 \
	"$(index '[.parts[] | select(.skipped // "" | contains("kubectl port-forward"))] | length')"
t_eq "so are metrics that want a token, and what is not served" "--metrics-secure --health-addr --debug-addr" \
	"$(index '[.parts[] | select(.what | startswith("operator-1 /")).skipped | split(":")[0]] | unique | reverse | join(" ")')"
if [[ $address ]]; then
	t_ok "metrics came by the API server" grep -q '^orbweaver_reconciles_total' "$tmp/dump/programs/operator-0/metrics.txt"
else
	t_skip "metrics came by the API server" "this machine has no address but loopback"
fi
t_eq "kinds that the server does not have are skipped" "the API server does not have this kind" \
	"$(index '.parts[] | select(.what == "virtualmachines.kubevirt.io").skipped')"
t_eq "all pods are there, and no secret" "ml/train-0 ml/train-1 $POD_NAMESPACE/operator-0 $POD_NAMESPACE/operator-1" \
	"$(jq -r '.items[].metadata | "\(.namespace)/\(.name)"' "$tmp/dump/objects/pods.json" | xargs)$(grep -rl hush "$tmp/dump" || true)"
t_eq "the dump says what the cluster says" "$(c ipam show)" "$("$cli" ipam show -f "$tmp/dump")"
t_ok "a dump without rights has nothing but an index, and is no failure to write" says "not in the dump: nodes: nodes is forbidden" 1 \
	"$cli" --kubeconfig "$stranger" support dump -o "$tmp/nothing.tgz"
t_eq "which says so for each part" true \
	"$(tar -xzOf "$tmp/nothing.tgz" | jq '[.parts[].failed // .parts[].skipped] | length > 20 and all')"
o_end op
t_done

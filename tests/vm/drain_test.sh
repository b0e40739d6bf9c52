#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three real nodes, a service that a Deployment and a PodDisruptionBudget keep up, each of its pods with a VF: another number of
# VFs, which needs evictions, and another RDMA mode, which needs a boot, go through one node after the other; the first of them
# also, and the second only, while the operator is killed again and again, after each few of its writes.
#
# What the API server said of it decides: the audit log, and all versions of pods, Endpoints, Nodes and NodeStates there were.
# - Every pod of the service that ended had been evicted by the operator, and enough others were ready; so it is at any time.
# - There is never more than one NodeState whose current-state is not Idle, and never more than one cordoned Node.
# - Pods without a VF stay where they are as long as no node has to boot. Each node boots once.
# Environment: SEED, which writes operators survive. LONG=1: the mode goes back, too, without anybody killed; with that it wants
# TEST_TIMEOUT.
# shellcheck disable=SC2016 # the node expands what is quoted
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
echo "# SEED=$seed"
nodes=("drain-a-$$" "drain-b-$$" "drain-c-$$")
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
# Of `replicas` pods; on any two of three nodes, with two VFs each, there is room for all of them.
replicas=4
least=3
wait_s=${A_WAIT_S:-900}

clean_up() {
	hack/node down "${nodes[@]}" >/dev/null 2>&1 || true
	o_clean_up
}

# each COMMAND...: for every node at the same time, {} stands for its name.
each() {
	local name pids=() pid failed=0

	for name in "${nodes[@]}"; do
		"${@//\{\}/$name}" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	return "$failed"
}

# --- objects --------------------------------------------------------------------------------------------------------

policy() {
	k apply -f - >/dev/null <<-END
		apiVersion: sriovnetwork.openshift.io/v1
		kind: SriovNetworkNodePolicy
		metadata: { name: vfs, namespace: $POD_NAMESPACE }
		spec:
		  resourceName: vfs
		  numVfs: $1
		  isRdma: false
		  nodeSelector: { kubernetes.io/os: linux }
		  nicSelector: { rootDevices: ["0000:01:00.0"] }
	END
}

pool() {
	k apply -f - >/dev/null <<-END
		apiVersion: sriovnetwork.openshift.io/v1
		kind: SriovNetworkPoolConfig
		metadata: { name: all, namespace: $POD_NAMESPACE }
		spec: { $1 maxUnavailable: 1, nodeSelector: { matchLabels: { kubernetes.io/os: linux } } }
	END
}

# deployment NAME REPLICAS [LIMITS]
deployment() {
	k apply -f - >/dev/null <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: { name: $1 }
		spec:
		  replicas: $2
		  selector: { matchLabels: { app: $1 } }
		  template:
		    metadata: { labels: { app: $1 } }
		    spec:
		      terminationGracePeriodSeconds: 1
		      topologySpreadConstraints:
		      - { maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: { matchLabels: { app: $1 } } }
		      containers:
		      - { name: c, image: "localhost/busybox:1", imagePullPolicy: Never, command: [sleep, "100000"], resources: { limits: { ${3:-} } } }
	END
}

service() {
	deployment web $replicas "spidernet.io/vfs: 1"
	deployment idle 3
	k apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Service
		metadata: { name: web }
		spec: { selector: { app: web }, ports: [{ port: 80 }] }
		---
		apiVersion: policy/v1beta1
		kind: PodDisruptionBudget
		metadata: { name: web }
		spec: { minAvailable: $least, selector: { matchLabels: { app: web } } }
	END
}

# --- what is said now -----------------------------------------------------------------------------------------------

# What holds for every NodeState; what they say, when it does not.
all_states() {
	local list

	list=$(o_curl GET "$states")
	jq -r '.items[] | "\(.metadata.name): \(.metadata.annotations["sriovnetwork.openshift.io/current-state"]) \(.status.syncStatus) \(
		.status.presentVfs) VFs, \(.status.system.rdmaMode), \(.status.conditions // [] | map(select(.type == "Draining").message) | first)"' \
		<<<"$list"
	jq -e ".items | length == 3 and all($1)" <<<"$list" >/dev/null
}

is_through='.status.syncStatus == "Succeeded" and .status.observedGeneration == .metadata.generation and
	.status.impact.class == "none" and (.metadata.annotations["sriovnetwork.openshift.io/current-state"] // "Idle") == "Idle"'

have_vfs() {
	all_states "$is_through and .status.presentVfs == $1"
}

have_mode() {
	all_states "$is_through and .status.system.rdmaMode == \"$1\" and (.status.boots.asked | length == $2 and all(.closed))"
}

are_offered() {
	o_curl GET /api/v1/nodes | jq -e ".items | length == 3 and all(.status.allocatable[\"spidernet.io/vfs\"] == \"$1\" and
		any(.status.conditions[]; .type == \"Ready\" and .status == \"True\"))"
}

service_is_up() {
	k get pods -o wide
	o_curl GET /apis/policy/v1beta1/namespaces/default/poddisruptionbudgets/web |
		jq -e ".status.currentHealthy == $replicas and .status.desiredHealthy == $least" &&
		o_curl GET /api/v1/namespaces/default/endpoints/web | jq -e "[.subsets[]?.addresses[]?] | length == $replicas" &&
		o_curl GET /apis/apps/v1/namespaces/default/deployments/idle | jq -e '.status.readyReplicas == 3'
}

idle_pods() {
	o_curl GET '/api/v1/namespaces/default/pods?labelSelector=app%3Didle' | jq -r '.items[].metadata.uid' | sort | paste -sd,
}

nobody_is_cordoned() {
	o_curl GET /api/v1/nodes | jq -e '.items | all((.spec.unschedulable // false | not) and
		.metadata.annotations["orbweaver.io/cordoned-by"] == null)'
}

# Boots of each node, by a file that each adds a line to.
boots() {
	local name

	for name in "${nodes[@]}"; do
		hack/node exec "$name" 'wc -l </root/boots'
	done | paste -sd' '
}

# --- all that was ever said -----------------------------------------------------------------------------------------

# seen KIND: versions of its objects until now. What comes after that of `from` is the phase that is being looked at.
from=0
seen() {
	jq -n '[inputs.object | select(.metadata)] | length' "$tmp/watch-$1.out"
}

# most_and_all KIND JQ: the most objects of which that holds at a time, and all of which it held in this phase.
most_and_all() {
	jq -n -r --argjson from "$from" 'reduce (inputs.object | select(.metadata)) as $o ({ n: 0, now: {}, most: 0, ever: {} };
		($o | '"$2"') as $is |
		.n += 1 | .now[$o.metadata.name] = $is | (if $is and .n > $from then .ever[$o.metadata.name] = true else . end) |
		.most = ([.most, ([.now[] | select(.)] | length)] | max)) | "\(.most) \(.ever | length)"' "$tmp/watch-$1.out"
}

# NodeStates that are being drained.
under_way() {
	most_and_all sriovnetworknodestates '(.metadata.annotations // {})["sriovnetwork.openshift.io/current-state"] // "Idle" | . != "Idle"'
}

cordoned() {
	most_and_all nodes '.spec.unschedulable // false'
}

# The fewest pods of the service that were ready and not asked to end, since all were for the first time. A list: in all, and
# right after each was asked, with its name.
ready_pods() {
	jq -n -c --argjson replicas $replicas 'def is_ready: any(.status.conditions[]?; .type == "Ready" and .status == "True");
		reduce (inputs | select(.object.metadata.labels.app == "web")) as $e ({ ready: {}, was: false, asked: {}, all: null };
			$e.object.metadata as $m |
			.ready[$m.uid] = ($e.type != "DELETED" and $m.deletionTimestamp == null and ($e.object | is_ready)) |
			([.ready[] | select(.)] | length) as $n | .was = (.was or $n == $replicas) |
			if .was then .all = ([.all, $n] | map(numbers) | min) else . end |
			if $m.deletionTimestamp and .asked[$m.name] == null then .asked[$m.name] = $n else . end) |
		{ all, asked }' "$tmp/watch-pods.out"
}

# The fewest addresses of the Service, since there were all for the first time.
addresses() {
	jq -n --argjson replicas $replicas 'reduce (inputs.object | select(.metadata.name == "web")) as $o ({ was: false, all: null };
		([$o.subsets[]?.addresses[]?] | length) as $n | .was = (.was or $n == $replicas) |
		if .was then .all = ([.all, $n] | map(numbers) | min) else . end) | .all' "$tmp/watch-endpoints.out"
}

# Names of the service's pods that the operator evicted, by the audit log.
evicted() {
	jq -r --arg user "$o_username" 'select(.user.username == $user and .objectRef.subresource == "eviction" and
		.responseStatus.code == 201).objectRef.name | select(startswith("web-"))' "$(hack/cluster audit "$o_cluster")" | sort -u
}

refusals() {
	jq -r --arg user "$o_username" 'select(.user.username == $user and .objectRef.subresource == "eviction" and
		.responseStatus.code == 429).objectRef.name' "$(hack/cluster audit "$o_cluster")" | wc -l
}

begun=0
check_all_that_was_said() {
	local ready

	ready=$(ready_pods)
	echo "# $(jq '.asked | length' <<<"$ready") pods of the service ended, $(refusals) evictions were refused by its budget"
	from=$begun
	t_eq "$1: one node at a time, and each of them" "1 3" "$(under_way)"
	from=0
	begun=$(seen sriovnetworknodestates)
	t_eq "whoever of the service ended had been evicted" "$(evicted)" "$(jq -r '.asked | keys[]' <<<"$ready")"
	t_eq "when one was asked to end enough others were ready" "[]" \
		"$(jq -c --argjson least $least '.asked | to_entries | map(select(.value < $least).key)' <<<"$ready")"
	t_ok "never fewer than $least were ($(jq .all <<<"$ready"))" test "$(jq .all <<<"$ready")" -ge $least
	t_ok "nor had the service fewer addresses ($(addresses))" test "$(addresses)" -ge $least
}

# --- operators that die ---------------------------------------------------------------------------------------------

# A line of the audit log about something that a drain writes.
is_write() {
	[[ $1 == *"\"username\":\"$o_username\""* && $1 == *'"stage":"ResponseComplete"'* &&
		($1 == *'"subresource":"eviction"'* || $1 == *'"resource":"nodes"'* || $1 == *'"resource":"sriovnetworknodestates"'*) &&
		$1 =~ \"verb\":\"(create|patch|update)\" ]]
}

# One operator after the other, each for so many of such writes, or half a minute. In the background; ends with the file.
operators_die() {
	local n left line deadline log

	RANDOM=$seed
	exec {log}< <(exec setpriv --pdeathsig KILL tail -n 0 -F "$(hack/cluster audit "$o_cluster")" 2>/dev/null)
	for ((n = 1; ; n++)); do
		[[ -e $tmp/dying ]] || break
		o_start "op-$n" --leader-elect=false
		left=$((1 + RANDOM % 4)) deadline=$((SECONDS + 30))
		while ((left > 0 && SECONDS < deadline)) && [[ -e $tmp/dying ]]; do
			! read -r -t 1 -u "$log" line || ! is_write "$line" || left=$((left - 1))
		done
		o_kill "op-$n" KILL
		((left > 0)) || echo "op-$n" >>"$tmp/died"
		o_log_is_clean "op-$n" >>"$tmp/unclean" 2>&1 || echo "op-$n" >>"$tmp/unclean"
	done
}

begin_to_die() {
	touch "$tmp/dying"
	: >"$tmp/died"
	: >"$tmp/unclean"
	# Whoever ends the loop ends its operator.
	o_operator=$tmp/operator operators_die &
	o_pids[dying]=$!
}

end_dying() {
	rm "$tmp/dying"
	o_reap dying
	t_ok "$(wc -l <"$tmp/died") operators were killed after one to four writes" test -s "$tmp/died"
	t_eq "nothing but log lines from them" "" "$(<"$tmp/unclean")"
}

# --- the test -------------------------------------------------------------------------------------------------------

o_begin drains
trap clean_up EXIT
o_own_user
printf '#!/bin/sh\nexec setpriv --pdeathsig KILL %q "$@"\n' "$(realpath "$o_operator")" >"$tmp/operator"
chmod +x "$tmp/operator"
t_ok "three nodes" hack/node up "${nodes[@]}" --cluster "$o_cluster" --pfs 1 --memory 1280
t_need
# As in maintenance_test.sh: a namespace besides the node's own keeps the mode from changing later than at a boot.
cat >"$tmp/a-rdma" <<'END'
#!/bin/bash
cat /proc/sys/kernel/random/boot_id >>/root/boots
modprobe rdma_rxe
ip netns add pod
END
for name in "${nodes[@]}"; do
	hack/node exec "$name" 'cat >/etc/boot.d/a-rdma && chmod +x /etc/boot.d/a-rdma && sync; /etc/boot.d/a-rdma' <"$tmp/a-rdma"
done
t_ok "kubelet and containerd on each" each hack/node kubelet '{}'
t_ok "the agent's image" each hack/node image '{}' "${BUILD:-build}/images/orbweaver-agent.tar"
t_need
o_watch sriovnetworknodestates "$states"
o_watch pods /api/v1/namespaces/default/pods
o_watch endpoints /api/v1/namespaces/default/endpoints
o_watch nodes /api/v1/nodes
o_start op
o_wait_ready op
t_ok "the agent as it is installed" k apply -n "$POD_NAMESPACE" -f manifests/base/agent.yaml
policy 2
t_wait "$wait_s" "2 VFs on each node" have_vfs 2
t_wait "$wait_s" "the kubelets offer them" are_offered 2
t_need
service
t_wait "$wait_s" "a service of $replicas pods with a VF each, and pods without" service_is_up
t_need
t_eq "the mode at first, on each" "shared shared shared" "$(o_curl GET "$states" | jq -r '[.items[].status.system.rdmaMode] | join(" ")')"
idle=$(idle_pods)

# --- evictions ------------------------------------------------------------------------------------------------------

pool ''
policy 3
t_wait "$wait_s" "3 VFs on each node" have_vfs 3
t_wait "$wait_s" "the service has all its pods" service_is_up
t_need
check_all_that_was_said "3 VFs"
o_end op

policy 2
begin_to_die
t_wait "$wait_s" "2 VFs again, while operators are killed" have_vfs 2
end_dying
t_wait "$wait_s" "the service has all its pods" service_is_up
t_need
check_all_that_was_said "2 VFs"
t_eq "pods without a VF have stayed where they were" "$idle" "$(idle_pods)"
t_eq "no Node was cordoned" "0 0" "$(cordoned)"
t_eq "and none has booted" "1 1 1" "$(boots)"

# --- boots ----------------------------------------------------------------------------------------------------------

pool 'rdmaMode: exclusive,'
begin_to_die
t_wait $((wait_s * 2)) "mode exclusive on each node, while operators are killed" have_mode exclusive 1
end_dying
o_start last
o_wait_ready last
t_wait "$wait_s" "no Node is left cordoned" nobody_is_cordoned
t_wait "$wait_s" "the service has all its pods" service_is_up
t_need
check_all_that_was_said "mode exclusive"
t_eq "one cordoned Node at a time, and each of them" "1 3" "$(cordoned)"
t_eq "one boot of each" "2 2 2" "$(boots)"
t_wait "$wait_s" "the VFs are there, and offered" eval "have_vfs 2 && are_offered 2"

if [[ -n ${LONG:-} ]]; then
	from=$(seen nodes)
	pool 'rdmaMode: shared,'
	t_wait $((wait_s * 2)) "mode shared on each node" have_mode shared 2
	t_wait "$wait_s" "no Node is left cordoned" nobody_is_cordoned
	t_wait "$wait_s" "the service has all its pods" service_is_up
	t_eq "one cordoned Node at a time, and each of them" "1 3" "$(cordoned)"
	check_all_that_was_said "mode shared"
	t_eq "one more boot of each" "3 3 3" "$(boots)"
fi
o_end last
t_done

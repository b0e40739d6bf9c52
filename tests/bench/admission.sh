# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # build, namespace, size, tmp, settled and the like are those of tests/bench/run
# What an answer of the webhook takes; sourced by tests/bench/run, whose functions it uses. The operator mirrors the cluster that is
# there, 1,000 more SpiderMultusConfigs, eight of them in the group that pods ask for, and more pools. bench-admit plays the API
# server.

group=cni.spidernet.io/rdma-resource-inject
members=8
rate=1000     # reviews in a second over several connections
busy_rate=500 # while the operator has other things to do

admission_objects() {
	cat >"$tmp/member.json" <<END
{ "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig",
  "metadata": { "name": "rail-{n}", "namespace": "rails", "annotations": { "$group": "rails" } },
  "spec": { "cniType": "sriov",
            "sriov": { "resourceName": "spidernet.io/rail{lo}", "rdmaIsolation": true, "ippools": { "ipv4": ["bench-{n}"] } } } }
END
	sed 's/"namespace": "bench"/"namespace": "rails"/' "$tmp/config.json" >"$tmp/other.json"
	k create namespace rails >/dev/null
	load --template "$tmp/member.json" --count "$members" create
	load --template "$tmp/other.json" --count $((1000 - members)) create
	sed 's/"name": "bench-/"name": "other-/; s/10\.{hi}/11.{hi}/g' "$tmp/pool.json" >"$tmp/other-pool.json"
	load --template "$tmp/other-pool.json" --count "$pools" create
	k create configmap spiderpool-conf -n "$namespace" --from-literal=conf.yml=$'podResourceInject:\n  enabled: true\n' >/dev/null
}

# A pod as trainings have them, with all that a server fills in.
admission_pod() {
	cat >"$tmp/pod.yaml" <<'END'
apiVersion: v1
kind: Pod
metadata:
  generateName: trainer-7d9c6b8f4-
  labels: { app: trainer, pod-template-hash: 7d9c6b8f4 }
spec:
  initContainers:
  - { name: fetch, image: registry.example/fetch:1, command: [sh, -c, "fetch --to /data"], volumeMounts: [ { name: data, mountPath: /data } ] }
  containers:
  - name: trainer
    image: registry.example/trainer:1
    command: [python3, -m, torch.distributed.run, --nnodes=16, --nproc-per-node=8, train.py]
    env:
    - { name: NCCL_IB_HCA, value: mlx5 }
    - { name: NODE_NAME, valueFrom: { fieldRef: { fieldPath: spec.nodeName } } }
    resources: { limits: { cpu: "96", memory: 1800Gi, nvidia.com/gpu: "8" }, requests: { cpu: "64", memory: 1500Gi } }
    volumeMounts: [ { name: data, mountPath: /data }, { name: shm, mountPath: /dev/shm } ]
    readinessProbe: { exec: { command: [cat, /tmp/ready] } }
    securityContext: { capabilities: { add: [ IPC_LOCK ] } }
  - { name: metrics, image: registry.example/exporter:1, ports: [ { containerPort: 9400 } ], resources: { limits: { cpu: 200m } } }
  tolerations: [ { key: nvidia.com/gpu, operator: Exists, effect: NoSchedule } ]
  volumes: [ { name: data, emptyDir: {} }, { name: shm, emptyDir: { medium: Memory, sizeLimit: 64Gi } } ]
END
	k create --dry-run=server -n rails -f "$tmp/pod.yaml" -o json
}

# review ANNOTATIONS: of the pod on stdin.
review() {
	jq -c --argjson annotations "$1" '{ group: "", version: "v1" } as $core | ($core + { kind: "Pod" }) as $kind |
		($core + { resource: "pods" }) as $resource | { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: {
		uid: "705ab4f5-6393-11e8-b7cc-42010a800002", kind: $kind, resource: $resource, requestKind: $kind,
		requestResource: $resource, namespace: "rails", operation: "CREATE", dryRun: false, oldObject: null,
		userInfo: { username: "system:serviceaccount:kube-system:replicaset-controller", uid: "1f7e2c8a",
			groups: ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"] },
		options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
		object: (.metadata.annotations = $annotations) } }'
}

# A pool in the middle of another one.
overlapping_pool() {
	jq -nc '{ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: { uid: "705ab4f5", operation: "CREATE",
		resource: { group: "spiderpool.spidernet.io", version: "v2beta1", resource: "spiderippools" }, name: "late",
		object: { apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { name: "late" },
			spec: { subnet: "11.0.0.0/24", ips: ["11.0.0.100-11.0.0.120"] } } } }'
}

admission_reviews() {
	local pod

	pod=$(admission_pod)
	review null <<<"$pod" >"$tmp/plain.json"
	review "{\"$group\": \"rails\"}" <<<"$pod" >"$tmp/asking.json"
	overlapping_pool >"$tmp/overlap.json"
}

# Sets port.
find_port() {
	while port=$((20000 + RANDOM % 10000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
}

# The certificate is published a moment before it is served.
wait_for_trust() {
	local deadline=$((SECONDS + 60))

	until k get secret orbweaver-webhook-certificate -n "$namespace" -o json 2>/dev/null |
		jq -er '.data["ca.crt"] | @base64d' >"$tmp/ca.crt" &&
		admit --requests 1 --body "$tmp/asking.json" --contains patchType >/dev/null 2>&1; do
		((SECONDS < deadline)) || die "the webhook does not come to answer, see $tmp/operator.log"
		sleep 0.2
	done
}

# admit OPTION...: the figures as JSON.
admit() {
	"$build/opt/tests/bench-admit" --port "$port" --ca "$tmp/ca.crt" "$@"
}

# admit_often OPTION...: median over three runs of each figure.
admit_often() {
	local i

	for ((i = 0; i < 3; i++)); do
		admit --requests "$admission" "$@" || die "admit $* failed"
	done | jq -sc 'map(to_entries[]) | group_by(.key) | map({ key: .[0].key, value: (map(.value) | sort)[length / 2 | floor] }) | from_entries'
}

# figures JSON: "p50 / p99 / longest".
figures() {
	jq -r '"\(.p50_us) / \(.p99_us) / \(.max_us) µs"' <<<"$1"
}

# admission_row WHAT MEASURED FLOOR [BUDGET in µs]
admission_row() {
	local budget=${4:-1000}

	row "$1" "$(figures "$2")" "$(figures "$3")" "$(ratio "$(jq .p50_us <<<"$2")" "$(jq .p50_us <<<"$3")")" "p99 $budget µs" \
		"$(verdict "$(jq .p99_us <<<"$2") <= $budget")"
}

# What the operator itself counts, in 1,000 answers of /inject.
within_1ms() {
	curl -sf --noproxy '*' "http://127.0.0.1:$metrics_port/metrics" | awk '
		/^orbweaver_admission_seconds_bucket{path="\/inject",le="0.001"}/ { fast = $NF }
		/^orbweaver_admission_seconds_sum{path="\/inject"}/ { sum = $NF }
		/^orbweaver_admission_seconds_count{path="\/inject"}/ { all = $NF }
		END { printf "%d of 1000, mean %d µs", fast * 1000 / all, sum * 1e6 / all }'
}

# measure_admission N: reviews per run.
measure_admission() {
	local admission=$1 port floor i
	local -a askers
	local -a asking=(--body "$tmp/asking.json" --contains patchType)
	local -a bare=(--body "$tmp/asking.json" --path /nothing --status 404)

	say "$size nodes: 1000 SpiderMultusConfigs, admission of pods"
	admission_objects
	admission_reviews
	find_port
	operator_start --webhook-addr "127.0.0.1:$port" --webhook-url "https://127.0.0.1:$port"
	wait_for_trust
	# It repairs what the bare runs wrote; not to be measured.
	load --until "sriovnetworknodestates=uses:c$((times - 1))" --enough "$size" wait
	load --until network-attachment-definitions=exists --in rails --enough 1000 wait
	sleep 5

	floor=$(admit_often "${bare[@]}")
	admission_row "/inject, a pod that gets $members networks, p50 / p99 / longest" "$(admit_often "${asking[@]}")" "$floor"
	admission_row "the same, a pod that asks for nothing" "$(admit_often --body "$tmp/plain.json" --contains '"allowed":true')" "$floor"
	admission_row "$members networks, 8 connections, $rate in a second" \
		"$(admit_often "${asking[@]}" --connections 8 --rate "$rate")" \
		"$(admit_often "${bare[@]}" --connections 8 --rate "$rate")"
	admission_row "/validate, a pool that overlaps one of $(k get spiderippools -o name | wc -l)" \
		"$(admit_often --path /validate --body "$tmp/overlap.json" --contains '"allowed":false')" "$floor" 5000
	row "a new connection with TLS, p50 / p99" "$(admit_often "${asking[@]}" --fresh |
		jq -r '"\(.connect_p50_us) / \(.connect_p99_us) µs"')" "" "" "" ""
	row "the operator's own time for an answer within 1 ms" "$(within_1ms)" "" "" "" ""

	admit --requests "$admission" "${asking[@]}" --rate "$busy_rate" >"$tmp/busy.json" &
	askers=("$!")
	admit --requests $((admission / 5)) "${bare[@]}" --rate $((busy_rate / 5)) >"$tmp/bare.json" &
	askers+=("$!")
	load --template "$(policy admission)" merge
	for i in "${askers[@]}"; do
		wait "$i" || die "admit failed while the policy changed"
	done
	admission_row "$members networks, $busy_rate in a second, while a policy reaches $size NodeStates" "$(<"$tmp/busy.json")" \
		"$(<"$tmp/bare.json")"
	operator_stop
}

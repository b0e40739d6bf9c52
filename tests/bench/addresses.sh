# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # build, tmp, audit and the like are those of tests/bench/run
# Addresses for many pods at once, ten on a node, from one pool and from a hundred that have exactly as many addresses as there
# are pods; all of them gone, and made anew; what CNI waits for. Sourced by tests/bench/run, whose functions it uses.
#
# The pods are there already and wait for their network: what is measured is from its creation to the last SpiderEndpoint, as the
# server's audit log has it. Bare: as many SpiderEndpoints of the same size, 64 under way as in the operator.

address_nets=0 # 10.20.0.0/16 and on: no two pools of a cluster share a subnet

crowd_of_pods() {
	"$build/opt/tests/integration/pods" --count "$address_pods" --nodes $((address_pods / 10)) "$@" >/dev/null ||
		die "pods $* failed"
}

# From the first request for which $2 (jq) holds to the last answer for which $3 holds, in ms, since the audit log had $1 bytes.
span_since() {
	tail -c +$(($1 + 1)) "$audit" | jq -c 'select(.objectRef.resource | IN("pods", "spiderendpoints", "network-attachment-definitions"))
		| { objectRef, verb, responseStatus, stageTimestamp, requestReceivedTimestamp }' |
		jq -sr 'def ms: (.[0:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber);
			map(select(.responseStatus.code < 300)) |
			((map(select('"$3"').stageTimestamp | ms) | max) - (map(select('"$2"').requestReceivedTimestamp | ms) | min))'
}

pool_writes_since() {
	writes_from "$1" | jq -c 'select(.objectRef.resource == "spiderippools" and .objectRef.subresource == "status")' | wc -l
}

# endpoints_become NAMESPACE N
endpoints_become() {
	local deadline=$((SECONDS + 60 + address_pods / 10))

	until [[ $(k get spiderendpoints.spiderpool.spidernet.io -n "$1" -o name | wc -l) == "$2" ]]; do
		((SECONDS < deadline)) || die "$1: there are not $2 SpiderEndpoints after $((60 + address_pods / 10)) s"
		sleep 1
	done
	sleep 1
}

# address_pools NAMESPACE POOLS: $1-0 and on, together with exactly one address for each pod.
address_pools() {
	local i share=$((address_pods / $2))

	for ((i = 0; i < $2; i++)); do
		jq -nc --arg name "$1-$i" --arg net "10.$((20 + address_nets++))" --arg last "$((share / 256)).$((share % 256))" '{
			apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { $name },
			spec: { ipVersion: 4, subnet: "\($net).0.0/16", ips: ["\($net).0.1-\($net).\($last)"] } }'
	done >"$tmp/pools.json"
	k create -f "$tmp/pools.json" >/dev/null
}

# address_run NAMESPACE POOLS
address_run() {
	local ns=$1 n_pools=$2 what="$address_pods pods, $2 pools" before cpu span

	k create namespace "$ns" >/dev/null
	address_pools "$ns" "$n_pools"
	crowd_of_pods --namespace "$ns" --networks "$n_pools" create
	# What a new pool is told of itself is no write for a pod.
	k wait --for condition=Ready --timeout 120s -f "$tmp/pools.json" >/dev/null
	sleep 2
	jq -n --arg ns "$ns" '{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition",
		metadata: { name: "net-{i}", namespace: $ns }, spec: { config: ({ cniVersion: "1.0.0", name: "net", type: "macvlan",
		ipam: { type: "spiderpool", default_ipv4_ippool: ["\($ns)-{i}"] } } | tojson) } }' >"$tmp/network.json"
	before=$(audit_size)
	cpu=$(cpu_ms)
	load --template "$tmp/network.json" --count "$n_pools" --concurrency "$window" create
	endpoints_become "$ns" "$address_pods"
	cpu=$(($(cpu_ms) - cpu))
	span=$(span_since "$before" '.objectRef.resource == "network-attachment-definitions" and .verb == "create"' \
		'.objectRef.resource == "spiderendpoints" and .verb == "create"')
	row "$what: from the network to the last SpiderEndpoint" "$(seconds "$span")" "$(seconds "$address_bare")" \
		"$(ratio "$span" "$address_bare")" "$([[ $n_pools != 1 ]] || echo 1.3)" \
		"$([[ $n_pools != 1 ]] || verdict "$span <= 1.3 * $address_bare")"
	row "$what: writes of pools" "$(pool_writes_since "$before")" "" "" "$((n_pools > 50 ? n_pools : 50))" \
		"$(verdict "$(pool_writes_since "$before") <= ($n_pools > 50 ? $n_pools : 50)")"
	row "$what: refused writes" "$(writes_from "$before" | jq -c 'select(.responseStatus.code >= 400)' | wc -l)" "" "" "" ""
	row "$what: CPU of the operator for each pod" "$(each "$cpu" "$address_pods")" "" "" "" ""
}

# address_again NAMESPACE POOLS: all pods are deleted at once and come again, while their agents say that nothing is left.
address_again() {
	local ns=$1 what="$address_pods pods, $2 pools" before

	before=$(audit_size)
	"$build/opt/tests/integration/pods" --namespace "$ns" delete >/dev/null || die "pods delete failed"
	"$build/opt/tests/integration/pods" --namespace "$ns" down >/dev/null || die "pods down failed"
	endpoints_become "$ns" 0
	row "$what: all deleted, until the last SpiderEndpoint is" \
		"$(seconds "$(span_since "$before" '.objectRef.resource == "pods" and .verb == "delete"' \
			'.objectRef.resource == "spiderendpoints" and .verb == "delete"')")" "" "" "" ""
	before=$(audit_size)
	crowd_of_pods --namespace "$ns" --networks "$2" create
	endpoints_become "$ns" "$address_pods"
	row "$what: made anew, from the first pod to the last SpiderEndpoint" \
		"$(seconds "$(span_since "$before" '.objectRef.resource == "pods" and .verb == "create"' \
			'.objectRef.resource == "spiderendpoints" and .verb == "create"')")" \
		"$(seconds $((address_bare + pods_bare)))" "" "" ""
}

# waits NAMESPACE COMMAND [FLAG...]: what wants.c says of 200 pods of it, one after the other: "p50 N ms, p99 N ms".
waits() {
	k get pods -n "$1" -o json | jq -r '.items[:200][].metadata | "\(.name) \(.uid)"' >"$tmp/uids"
	"$build/opt/tests/integration/wants" --namespace "$1" --uids "$tmp/uids" --at-once 1 "${@:2}" | sed 's/.*failed, //'
}

# NAMESPACE has pods with addresses. Others come whose networks nobody knows, so that nothing is foreseen.
address_waits() {
	local foreseen bare ns=addresses-asked

	bare=$(waits "$1" read)
	foreseen=$(waits "$1" get --pool "$1-0")
	row "CNI waits for an address that was foreseen" "$foreseen" "$bare" "" "1 ms, 20 ms" "$(sed -E 's/p50 (.*) ms, p99 (.*) ms/\1 \2/' \
		<<<"$foreseen" | awk '{ print $1 <= 1 && $2 <= 20 ? "yes" : "NO" }')"
	k create namespace "$ns" >/dev/null
	address_pods=200
	address_pools "$ns" 1
	crowd_of_pods --namespace "$ns" --networks 0 create
	sleep 2
	row "the same where the leader has to be asked" "$(waits "$ns" get --pool "$ns-0")" "$bare" "" "" ""
}

# measure_addresses N[,N...]
measure_addresses() {
	local before

	for address_pods in ${1//,/ }; do
		say "addresses for $address_pods pods"
		before=$(audit_size)
		k create namespace "addresses-bare-$address_pods" >/dev/null
		crowd_of_pods --namespace "addresses-bare-$address_pods" bare
		address_bare=$(span_since "$before" '.objectRef.resource == "spiderendpoints" and .verb == "create"' \
			'.objectRef.resource == "spiderendpoints" and .verb == "create"')
		before=$(audit_size)
		crowd_of_pods --namespace "addresses-bare-$address_pods" --networks 0 create
		pods_bare=$(span_since "$before" '.objectRef.resource == "pods" and .verb == "create"' \
			'.objectRef.resource == "pods" and .verb == "create"')
		# Neither the operator nor the next size is to know them.
		k delete namespace "addresses-bare-$address_pods" --wait=false >/dev/null
		"$build/opt/tests/integration/pods" --namespace "addresses-bare-$address_pods" delete >/dev/null
		k delete --raw "/apis/spiderpool.spidernet.io/v2beta1/namespaces/addresses-bare-$address_pods/spiderendpoints" >/dev/null
		operator_start
		address_run "addresses-one-$address_pods" 1
		address_again "addresses-one-$address_pods" 1
		address_run "addresses-many-$address_pods" 100
		address_again "addresses-many-$address_pods" 100
		row "$((2 * address_pods)) pods with addresses: memory of the operator" "$(rss_mb) MB (peak $(peak_mb))" "" "" \
			"$([[ $address_pods != 1000 ]] || echo "75 MB")" "$([[ $address_pods != 1000 ]] || verdict "$(rss_mb) <= 75")"
		operator_stop
	done
	operator_start
	address_waits "addresses-one-$address_pods"
	operator_stop
}

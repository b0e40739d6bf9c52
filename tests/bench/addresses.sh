# shellcheck shell=bash
# shellcheck disable=SC2154 # build, tmp, audit and the like are those of tests/bench/run
# Addresses for 1,000 pods on 100 nodes at once, from one pool and from a hundred; sourced by tests/bench/run, whose functions it
# uses. The pods are there already and wait for their network: what is measured is from its creation to the last
# SpiderEndpoint, as the server's audit log has it. Bare: as many SpiderEndpoints of the same size, 64 under way as in the operator.

address_pods=1000
address_nodes=100

crowd_of_pods() {
	"$build/release/tests/integration/pods" --count "$address_pods" --nodes "$address_nodes" "$@" >/dev/null || die "pods $* failed"
}

# From the first request for which $2 (jq) holds to the last answer for which $3 holds, in ms, since the audit log had $1 bytes.
span_since() {
	tail -c +$(($1 + 1)) "$audit" | jq -sr 'def ms: (.[0:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber);
		map(select(.responseStatus.code < 300)) |
		((map(select('"$3"').stageTimestamp | ms) | max) - (map(select('"$2"').requestReceivedTimestamp | ms) | min))'
}

pool_writes_since() {
	writes_from "$1" | jq -c 'select(.objectRef.resource == "spiderippools" and .objectRef.subresource == "status")' | wc -l
}

endpoints_are() {
	[[ $(k get spiderendpoints.spiderpool.spidernet.io -n "$1" -o name | wc -l) == "$2" ]]
}

# address_run NAMESPACE POOLS
address_run() {
	local ns=$1 n_pools=$2 i before cpu span

	k create namespace "$ns" >/dev/null
	for ((i = 0; i < n_pools; i++)); do
		jq -nc --arg name "$ns-$i" --arg range "10.$((20 + i)).0.1-10.$((20 + i)).$((address_pods / n_pools / 250)).250" '{
			apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool", metadata: { $name },
			spec: { ipVersion: 4, subnet: ($range | split(".")[0:2] | join(".") + ".0.0/16"), ips: [$range] } }'
	done | k create -f - >/dev/null
	crowd_of_pods --namespace "$ns" --networks "$n_pools" create
	sleep 2
	for ((i = 0; i < n_pools; i++)); do
		jq -nc --arg ns "$ns" --arg name "net-$i" --arg pool "$ns-$i" '{ apiVersion: "k8s.cni.cncf.io/v1",
			kind: "NetworkAttachmentDefinition", metadata: { $name, namespace: $ns }, spec: { config: ({ cniVersion: "1.0.0",
			name: $name, type: "macvlan", ipam: { type: "spiderpool", default_ipv4_ippool: [$pool] } } | tojson) } }'
	done >"$tmp/networks.json"
	before=$(audit_size)
	cpu=$(cpu_ms)
	k create -f "$tmp/networks.json" >/dev/null
	until endpoints_are "$ns" "$address_pods"; do
		sleep 1
	done
	sleep 1
	span=$(span_since "$before" '.objectRef.resource == "network-attachment-definitions" and .verb == "create"' \
		'.objectRef.resource == "spiderendpoints" and .verb == "create"')
	row "$address_pods pods on $address_nodes nodes, $n_pools pools: from the network to the last SpiderEndpoint" \
		"$(seconds "$span")" "$(seconds "$address_bare")" "$(ratio "$span" "$address_bare")" "1.3" \
		"$(verdict "$span <= 1.3 * $address_bare")"
	row "$address_pods pods, $n_pools pools: writes of pools" "$(pool_writes_since "$before")" "" "" \
		"$((n_pools > 50 ? n_pools : 50))" "$(verdict "$(pool_writes_since "$before") <= ($n_pools > 50 ? $n_pools : 50)")"
	row "$address_pods pods, $n_pools pools: CPU of the operator" "$(($(cpu_ms) - cpu)) ms" "" "" "" ""
}

measure_addresses() {
	local before

	say "addresses for $address_pods pods"
	k create namespace addresses-bare >/dev/null
	before=$(audit_size)
	crowd_of_pods --namespace addresses-bare bare
	address_bare=$(span_since "$before" '.objectRef.resource == "spiderendpoints" and .verb == "create"' \
		'.objectRef.resource == "spiderendpoints" and .verb == "create"')
	operator_start
	address_run addresses-one 1
	address_run addresses-many 100
	row "$((2 * address_pods)) pods with addresses: memory of the operator" "$(rss_mb) MB (peak $(peak_mb))" "" "" "75 MB" \
		"$(verdict "$(rss_mb) <= 75")"
	operator_stop
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of addresses share beyond operator.sh, which it sources: pods by the hundred (pods.c), what agents do for them
# (wants.c), pools and networks, and whether ledgers, endpoints and pods agree. Set by the test: n_nodes, agent_kubeconfig.
# shellcheck disable=SC2154

. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

p() {
	"$o_programs/tests/integration/pods" --kubeconfig "$kubeconfig" "$@"
}

# w NAMESPACE COMMAND [FLAG...]: what the CNI servers of agents do, with an agent's rights, for the pods that `uids` has written
# down: also after they are gone.
w() {
	"$o_programs/tests/integration/wants" --kubeconfig "$agent_kubeconfig" --namespace "$1" --uids "$tmp/uids-$1" "${@:2}" 2>&1
}

uids() {
	o_curl GET "/api/v1/namespaces/$1/pods" | jq -r '.items[] | "\(.metadata.name) \(.metadata.uid)"' >"$tmp/uids-$1"
}

# --- objects ------------------------------------------------------------------------------------------------------

nodes() {
	seq -f '%05g' 0 $((n_nodes - 1)) | jq -Rn '{ apiVersion: "v1", kind: "List", items: [inputs |
		{ apiVersion: "v1", kind: "Node", metadata: { name: "node-\(.)" } }] }'
}

# pool NAME SUBNET RANGE
pool() {
	jq -nc --arg name "$1" --arg subnet "$2" --arg range "$3" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderIPPool", metadata: { $name }, spec: { ipVersion: 4, $subnet, ips: [$range] } }'
}

# network NAMESPACE NAME POOL
network() {
	jq -nc --arg ns "$1" --arg name "$2" --arg pool "$3" '{ apiVersion: "k8s.cni.cncf.io/v1",
		kind: "NetworkAttachmentDefinition", metadata: { $name, namespace: $ns },
		spec: { config: ({ cniVersion: "1.0.0", name: $name, type: "macvlan", master: "eth1",
			ipam: { type: "spiderpool", default_ipv4_ippool: [$pool] } } | tojson) } }'
}

# --- questions ----------------------------------------------------------------------------------------------------

# "POD UID POOL ADDRESS" of all records; "node" is no part of what upstream knows.
records() {
	o_curl GET "$spider/spiderippools" | jq -r '.items[] | .metadata.name as $pool | (.status.allocatedIPs // "{}" | fromjson) |
		to_entries[] | "\(.value.pod) \(.value.podUid) \($pool) \(.key)"' | sort
}

# The same of what SpiderEndpoints say.
endpoints() {
	o_curl GET "$spider/spiderendpoints" | jq -r '.items[] | "\(.metadata.namespace)/\(.metadata.name) \(.status.current.uid // "-")" as $who |
		(.status.current.ips // [])[] | "\($who) \(.ipv4Pool) \(.ipv4 | split("/")[0])"' | sort
}

pods() {
	o_curl GET /api/v1/pods | jq -r '.items[] | "\(.metadata.namespace)/\(.metadata.name) \(.metadata.uid)"' | sort
}

# Ledgers, endpoints and living pods say the same, of so many pods.
all_agree() {
	records >"$tmp/records"
	endpoints >"$tmp/endpoints"
	pods >"$tmp/pods"
	cut -d ' ' -f 1,2 "$tmp/records" >"$tmp/holders"
	wc -l "$tmp"/{records,endpoints,pods}
	diff "$tmp/records" "$tmp/endpoints" >"$tmp/diff" || { head -n 5 "$tmp/diff"; return 1; }
	diff "$tmp/holders" "$tmp/pods" >"$tmp/diff" || { head -n 5 "$tmp/diff"; return 1; }
	[[ $(wc -l <"$tmp/records") == "$1" ]]
}

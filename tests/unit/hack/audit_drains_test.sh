#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/audit-drains.jq: which lines of an audit log it takes for a drain, and for leave to drain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. tests/lib.sh

operator=system:serviceaccount:orbweaver-system:orbweaver-operator

# line AT USER VERB RESOURCE[/SUBRESOURCE] [QUERY] [BODY] [CODE]
line() {
	jq -nc --arg at "$1" --arg user "$2" --arg verb "$3" --arg resource "$4" --arg query "${5:-}" --argjson body "${6:-null}" \
		--argjson code "${7:-200}" '($resource | split("/")) as $what | { stage: "ResponseComplete", verb: $verb,
		user: { username: $user }, requestReceivedTimestamp: $at, requestURI: "/x?\($query)", responseStatus: { code: $code },
		objectRef: ({ resource: $what[0], name: "a" } + if $what[1] then { subresource: $what[1] } else {} end) } +
		if $body then { requestObject: $body } else {} end'
}

pool() {
	line "$1" admin "${3:-create}" sriovnetworkpoolconfigs "" "{\"spec\":{\"maxUnavailable\":$2}}"
}

# says WHAT WANTED JQ: of the log on standard input.
says() {
	t_eq "$1" "$2" "$(jq -nRc -f hack/audit-drains.jq - | jq -c "$3")"
}

says "an empty log" '{"allowed":null,"evictions":0,"nodes":0,"before":[]}' . </dev/null
says "without a pool all is said" '["create pods/eviction a at 1","patch nodes a at 2","patch nodes a at 3"]' .before < <(
	line 1 admin create pods/eviction
	line 2 $operator patch nodes
	line 3 admin patch nodes fieldManager=orbweaver-operator
)
says "trials, refusals, labels and what others write to Nodes are no drains" '[0,0,[]]' '[.evictions, .nodes, .before]' < <(
	line 1 admin create pods/eviction dryRun=All
	line 2 admin create pods/eviction "" null 429
	line 3 admin patch nodes
	line 4 kubelet patch nodes/status
	line 5 $operator watch nodes
	line 6 $operator patch nodes/status
	echo "half a li"
)
says "what follows a pool is allowed" '["2",1,2,["patch nodes a at 1"]]' '[.allowed, .evictions, .nodes, .before]' < <(
	line 1 $operator patch nodes
	pool 2 1
	line 3 $operator patch nodes
	line 4 $operator create pods/eviction
)
says "by when it was asked for, not by when it was answered" '[]' .before < <(
	line 3 $operator patch nodes
	pool 2 '"10%"' patch
)
says "the annotation that asks for taints allows no eviction" '[null,["patch nodes a at 1","create pods/eviction a at 4"]]' \
	'[.allowed, .before]' < <(
	line 1 $operator patch nodes
	line 2 admin patch sriovnetworkpoolconfigs "" '{"metadata":{"annotations":{"orbweaver.io/cordon-degraded":"1"}}}'
	line 3 $operator patch nodes
	line 4 $operator create pods/eviction
)
says "a pool with 0 allows nothing" '[null,1]' '[.allowed, (.before | length)]' < <(
	pool 1 0
	line 2 $operator patch nodes
)
t_done

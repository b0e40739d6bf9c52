# SPDX-License-Identifier: Apache-2.0
# What was done for drains in a cluster, and since when somebody had allowed it: its audit log in, one object out.
#
#	jq -nRc -f hack/audit-drains.jq AUDIT_LOG
#
#	allowed    when a SriovNetworkPoolConfig first came to have maxUnavailable, other than 0; null: none did
#	evictions  pods that were asked to end, by anybody
#	nodes      writes to Nodes by the operator, whatever its account, but for labels, which it writes with the status
#	before     those of both that came before they were allowed, as text, 5 at most; a write to a Node is also allowed
#	           by an annotation that asks for taints or cordons
#
# Only what succeeded counts. A reboot needs no line of its own: its node was cordoned before.
def is_done: .stage == "ResponseComplete" and (.responseStatus.code // 500) < 300;

def allows: .objectRef.resource == "sriovnetworkpoolconfigs" and
	any(.requestObject | .. | objects; .maxUnavailable | . != null and . != 0 and . != "0" and . != "0%");

def allows_taints: .objectRef.resource == "sriovnetworkpoolconfigs" and
	any(.requestObject.metadata.annotations? | objects |
		.["orbweaver.io/taint-degraded", "orbweaver.io/cordon-degraded"]; . != null);

def is_eviction: .objectRef.subresource == "eviction" and .verb == "create" and (.requestURI | contains("dryRun=") | not);

def is_by_operator: (.user.username // "" | endswith(":orbweaver-operator")) or
	(.requestURI | contains("fieldManager=orbweaver-operator"));

def is_node_write: .objectRef.resource == "nodes" and .objectRef.subresource != "status" and is_by_operator and
	(.verb | IN("create", "update", "patch", "delete", "deletecollection"));

def text: "\(.verb) \([.objectRef | .resource, .subresource // empty] | join("/")) " +
	"\([.objectRef | .namespace // empty, .name // empty] | join("/")) at \(.requestReceivedTimestamp)";

def earlier($since; $line): [$since, $line.requestReceivedTimestamp] | map(strings) | min;

reduce (inputs | fromjson? | select(is_done)) as $line ({ evictions: 0, nodes: 0, done: [] };
	($line | is_eviction) as $evicts | ($line | is_node_write) as $writes |
	if $line | allows then .allowed = earlier(.allowed; $line) else . end |
	if $line | allows_taints then .taints = earlier(.taints; $line) else . end |
	if $evicts then .evictions += 1 else . end | if $writes then .nodes += 1 else . end |
	if $evicts or $writes then .done += [{ at: $line.requestReceivedTimestamp, $evicts, text: ($line | text) }] else . end) |
.allowed as $allowed | ([$allowed, .taints] | map(strings) | min) as $writable |
{ allowed: $allowed, evictions, nodes, before: (.done |
	map((if .evicts then $allowed else $writable end) as $since | select($since == null or .at < $since).text) | .[:5]) }

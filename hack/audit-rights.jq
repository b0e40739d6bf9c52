# SPDX-License-Identifier: Apache-2.0
# What our accounts (manifests/base/rbac.yaml) asked an API server for: its audit log in, each kind of request once out.
#
#	jq -nRc --argjson names '["orbweaver-operator"]' -f hack/audit-rights.jq AUDIT_LOG
#
#	account   without its namespace
#	verb, group, resource   as the rules of a role have them, resource with "/subresource";
#	          a path that is no resource has "path" instead of group and resource
#	scope     "own" (the account's namespace), "other" (any other one), "cluster" (none, or all)
#	name      the object's, if it is one of $names; null: another one, or none
#	refused   RBAC said no; whatever else the server or its admission may refuse is not about rights
#	class     2 for the response codes 200 to 299, and so on
#	count     how many there were
#	example   namespace/name of the first one
#
# A watch counts when it is answered: at its end the server may be gone. The name of an object that is created is in the body, so
# RBAC does not know it.
def of_ours: "system:serviceaccount:orbweaver-system:" as $ours | (.user.username // "") as $user |
	($user | startswith($ours)) and .stage == (if .verb == "watch" then "ResponseStarted" else "ResponseComplete" end);

def target: .objectRef | if . == null then {} else {
	group: (.apiGroup // ""), resource: ([.resource, .subresource] | map(strings) | join("/")) } end;

def scope: if . == null then "cluster" elif . == "orbweaver-system" then "own" else "other" end;

def request: {
	account: (.user.username | split(":") | last), verb,
	scope: (.objectRef.namespace | scope),
	name: (if .verb == "create" then null else .objectRef.name end | if IN($names[]) then . else null end),
	refused: (.annotations["authorization.k8s.io/decision"] == "forbid"),
	class: ((.responseStatus.code // 0) / 100 | floor)
} + target + if .objectRef then {} else { path: (.requestURI | split("?") | first) } end;

reduce (inputs | fromjson? | select(of_ours)) as $line ({};
	.[$line | request | tojson] |= { count: ((.count // 0) + 1),
		example: (.example // ($line.objectRef | [.namespace, .name] | map(strings) | join("/"))) }) |
to_entries[] | (.key | fromjson) + .value

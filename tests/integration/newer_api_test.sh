#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What Kubernetes 1.36 says of our manifests and of the rules of manifests/overlays/crd-rules, by its own code but without a
# server (tests/support/api_check.go): it knows every field, all rules and policies compile; each rule refuses an object with
# the message that it has, lets one through, and leaves an object of before editable. The samples and what upstream accepted
# are accepted with the rules, too. And by manifests/overlays/node-tokens agents may write what they have to, and no more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh
. tests/integration/rules.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
conformance=${CONFORMANCE:-tests/conformance}

hack/k8s-build >&2
kubectl=$(hack/k8s-build --bin)/kubectl
status=0
hack/k8s-build apiextensions >&2 || status=$?
if ((status == 77)); then
	t_skip "manifests and rules" "the packages of Kubernetes 0.36 cannot be had here"
	t_done
fi
api_check=$(hack/k8s-build apiextensions --dir)/api-check
newer_kubectl=$(hack/k8s-build apiextensions --dir)/kubectl

# Manifests on stdin: what is wrong with them.
faults() {
	cat >"$tmp/manifests.yaml" && "$api_check" "$tmp/manifests.yaml" | jq -r 'select(.error) | "\(.manifest): \(.error)"'
}

overlay_faults() {
	"$kubectl" kustomize "manifests/$1" | faults
}

# What kubectl 1.36 makes of a folder is what 1.20 does, but for the order of objects, and it warns of nothing but the three
# words that 1.20 has no others for.
same_by_both() {
	"$newer_kubectl" kustomize "$1" >"$tmp/newer.yaml" 2>"$tmp/warnings" && "$kubectl" kustomize "$1" >"$tmp/older.yaml" &&
		diff <(sort "$tmp/older.yaml") <(sort "$tmp/newer.yaml") &&
		! grep -v "^# Warning: '\(bases\|patchesStrategicMerge\|patchesJson6902\)' is deprecated" "$tmp/warnings"
}

# For questions whose good answer is empty: they succeed and print nothing.
nothing() {
	local said

	said=$("$@") || return
	[[ -z $said ]] || { echo "$said"; return 1; }
}

says() {
	faults | grep -F -- "$1"
}

# --- manifests ------------------------------------------------------------------------------------

for name in . overlays/{profile-delegate,profile-devices,single-node,webhook,flow-control,metrics-secure,monitoring,node-tokens,policy-writers,endpoint-writers,injection-policy,crd-rules,dra}; do
	t_ok "manifests/$name is as 1.36 has it" nothing overlay_faults "$name"
done
t_ok "so is a ResourceSlice of ours (tests/unit/nodeagent/devices)" nothing faults <tests/unit/nodeagent/devices/slice.json
for kustomization in crds manifests manifests/overlays/*/; do
	t_ok "${kustomization%/} is the same for kubectl 1.20 and 1.36" same_by_both "$kustomization"
done
t_ok "a field that it does not know would be named" says 'unknown field "spec.replica"' <<END
apiVersion: apps/v1
kind: Deployment
metadata: { name: a }
spec: { replica: 2 }
END
t_ok "so would a policy that does not compile" says 'undeclared reference' <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: a }
spec: { validations: [{ expression: "objekt.spec == 1" }] }
END
t_ok "so would a rule that costs too much" says 'estimated rule cost exceeds budget' <<END
$("$kubectl" kustomize manifests/overlays/crd-rules | sed 's/rule: self.size() > 0/rule: self.all(x, self.all(y, x == y))/')
END

# --- rules ----------------------------------------------------------------------------------------

rules_table >"$tmp/table"
"$kubectl" kustomize manifests/overlays/crd-rules >"$tmp/rules.yaml"

# Of each line of the table: what is asked about it.
asked() {
	jq -Rc 'def object: { metadata: { name: "a" }, spec: . };
		split("|") as [$kind, $bad, $field, $text, $good, $other] | input_line_number as $n |
		($bad | fromjson) as $bad | ($good | fromjson) as $good | ($other | fromjson) as $other |
		{ id: "\($n) bad", kind: $kind, object: ($bad | object) },
		{ id: "\($n) good", kind: $kind, object: ($good | object) },
		{ id: "\($n) label", kind: $kind, old: ($bad | object), object: ($bad | object | .metadata.labels = { seen: "yes" }) },
		{ id: "\($n) other", kind: $kind, old: ($bad | object), object: ($bad * $other | object) },
		{ id: "\($n) worse", kind: $kind, old: ($good | object), object: ($bad | object) },
		{ id: "\($n) mended", kind: $kind, old: ($bad | object), object: ($good | object) }' "$tmp/table"
}

moves() {
	jq -nc '{ id: "moves", kind: "SpiderIPPool", old: { spec: { subnet: $old } }, object: { spec: { subnet: $new } } }' \
		--arg old "$1" --arg new "$2"
}

# The answers to requests on stdin, one a line; each request as the server would get it.
judged() {
	jq -c '(if .kind | startswith("Spider") then "spiderpool.spidernet.io/v2beta1" else "sriovnetwork.openshift.io/v1" end) as $version |
		.kind as $kind | (.object, .old | select(.)) |= (. + { apiVersion: $version, kind: $kind } | .metadata.name //= "a" |
			if $kind | IN("SpiderIPPool", "SpiderReservedIP") then . else .metadata.namespace //= "default" end)' >"$tmp/requests" &&
		"$api_check" "$tmp/rules.yaml" "$tmp/requests"
}

# Sets said[ID]: the causes, one a line.
declare -A said=()
listen() {
	local id cause

	while IFS=$'\t' read -r id cause; do
		said[$id]+=${cause:+$cause$'\n'}
	done < <(jq -r '.id as $id | (.causes | if . == [] then [{}] else . end)[] |
		"\($id)\t\(if .field then "\(.field): \(.message)" else "" end)"' "$tmp/answers")
}

refused() {
	echo "${said[$1]}"
	[[ $'\n'${said[$1]} == *$'\n'"$2: "*"$3"* ]]
}

# Rules whose message is in no answer.
silent_rules() {
	"$kubectl" patch --local -f "$tmp/rules.yaml" --type merge -p '{}' -o json |
		jq -r '.. | objects | .["x-kubernetes-validations"] // empty | .[].message' | sort -u >"$tmp/messages"
	[[ -s $tmp/messages ]] && jq -r '.causes[]?.message' "$tmp/answers" | grep -oFf "$tmp/messages" | sort -u |
		comm -23 "$tmp/messages" -
}

{
	asked
	moves 10.6.0.7/16 10.7.0.0/16
} | judged >"$tmp/answers"
listen
t_eq "all questions are answered" "$((6 * $(wc -l <"$tmp/table") + 1))" "$(wc -l <"$tmp/answers")"
n=0
while IFS='|' read -r kind bad field text good other; do
	n=$((n + 1))
	t_ok "$kind $bad is refused" refused "$n bad" "$field" "$text"
	t_eq "$kind $good is let through" "" "${said[$n good]}"
	t_ok "and cannot become the former" refused "$n worse" "$field" "$text"
	t_eq "the former, if it was there before, can be labelled" "" "${said[$n label]}"
	t_eq "and changed elsewhere: $other" "" "${said[$n other]}"
	t_eq "and mended" "" "${said[$n mended]}"
done <"$tmp/table"

t_ok "a pool's subnet cannot become another network" refused moves spec.subnet "make a new SpiderIPPool"
t_eq "it can be written another way" '[]' "$(moves 10.6.0.7/16 10.6.0.0/16 | judged | jq -c .causes)"
t_eq "one that was none before can be mended" '[]' "$(moves 10.6.0.7 10.6.0.0/16 | judged | jq -c .causes)"
t_eq "every rule has spoken" "" "$(silent_rules)"

# --- tokens of nodes ------------------------------------------------------------------------------

# Pod u-1 on node n1 has the endpoint; pod u-2 of the same name, on node n2, asks for addresses on it. written NODE OLD NEW: what an
# agent of the node is told that makes the annotations NEW of OLD.
written() {
	jq -nc --arg node "$1" --argjson old "$2" --argjson new "$3" 'def endpoint: {
			apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderEndpoint",
			metadata: { name: "p-0", namespace: "ml", labels: { "orbweaver.io/node": "n1" },
				annotations: (with_entries(.key |= "orbweaver.io/" + .)) },
			status: { current: { uid: "u-1", node: "n1" } } };
		{ id: "written", policy: "orbweaver-node-tokens", user: "system:serviceaccount:orbweaver-system:orbweaver-agent", $node,
			kind: "SpiderEndpoint", old: ($old | endpoint), object: ($new | endpoint) }' >"$tmp/requests" &&
		"$api_check" "$tmp/tokens.yaml" "$tmp/requests" | jq -r 'select(.id).denied[]'
}

# refuses NODE OLD NEW
refuses() {
	grep -qx "this token is of node $1 and may not write the SpiderEndpoint p-0 of another node" <(written "$@")
}

"$kubectl" kustomize manifests/overlays/node-tokens >"$tmp/tokens.yaml"
t_ok "an agent says of its own pod that it is down" nothing written n1 '{}' '{"down":"u-1"}'
t_ok "and takes that back" nothing written n1 '{"down":"u-1"}' '{}'
t_ok "another node's agent asks for addresses" nothing written n2 '{}' '{"asks":"u-2"}'
t_ok "says that the asker is down" nothing written n2 '{"asks":"u-2"}' '{"asks":"u-2","down":"u-2"}'
t_ok "and asks once more, without that" nothing written n2 '{"asks":"u-2","down":"u-2"}' '{"asks":"u-2 again"}'
t_ok "it cannot say of the pod that has the endpoint that it is down" refuses n2 '{}' '{"down":"u-1"}'
t_ok "nor take that back" refuses n2 '{"down":"u-1"}' '{"asks":"u-2"}'
t_ok "nor say that in place of its own" refuses n2 '{"down":"u-2"}' '{"down":"u-1"}'
t_ok "nor touch the leader's answer" refuses n2 '{"refused":"u-1 x"}' '{}'

# --- writers of SpiderEndpoints -------------------------------------------------------------------

# endpoint_by USER OLD NEW: what a user is told that makes an endpoint NEW of OLD; no OLD: that creates it.
endpoint_by() {
	jq -nc --arg user "$1" --argjson old "$2" --argjson new "$3" 'def endpoint: {
			apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderEndpoint", metadata: { name: "p-0", namespace: "ml" } } * .;
		{ id: "by", policy: "orbweaver-endpoint-writers", $user, kind: "SpiderEndpoint", object: ($new | endpoint) } +
			if $old then { old: ($old | endpoint) } else {} end' >"$tmp/requests" &&
		"$api_check" "$tmp/writers.yaml" "$tmp/requests" | jq -r 'select(.id).denied[]'
}

# forbids USER OLD NEW
forbids() {
	grep -qx "user $1 may not write SpiderEndpoints: .*" <(endpoint_by "$@")
}

"$kubectl" kustomize manifests/overlays/endpoint-writers >"$tmp/writers.yaml"
ghost='{"status":{"current":{"uid":"u-1","node":"n1"}}}'
for account in orbweaver-system:orbweaver-operator orbweaver-system:orbweaver-agent spiderpool:spiderpool-agent; do
	t_ok "$account creates endpoints" nothing endpoint_by "system:serviceaccount:$account" null "$ghost"
	t_ok "and changes them" nothing endpoint_by "system:serviceaccount:$account" '{}' "$ghost"
done
t_ok "a user of the namespace creates none" forbids dev null "$ghost"
t_ok "nor does an account of it that has the agent's name" forbids system:serviceaccount:ml:orbweaver-agent null "$ghost"
t_ok "a user changes no status" forbids dev '{}' "$ghost"
t_ok "says of no pod that it is down" forbids dev "$ghost" '{"metadata":{"annotations":{"orbweaver.io/down":"u-1"}}}'
t_ok "and gives it to no node" forbids dev '{}' '{"metadata":{"labels":{"orbweaver.io/node":"n2"}}}'
t_ok "who only takes a finalizer off may" nothing endpoint_by system:serviceaccount:kube-system:namespace-controller \
	'{"metadata":{"finalizers":["spiderpool.spidernet.io"]}}' '{}'
t_eq "accounts are those of the manifests" "$("$kubectl" kustomize manifests | "$kubectl" patch --local -f - --type merge -p '{}' -o json |
	jq -r 'select(.kind == "ServiceAccount").metadata | "system:serviceaccount:\(.namespace):\(.name)"' | sort)" \
	"$(grep -o 'system:serviceaccount:orbweaver[a-z:-]*' "$tmp/writers.yaml" | sort)"

# --- what upstream accepted -----------------------------------------------------------------------

# Objects on stdin that are not accepted.
refused_objects() {
	jq -c 'select(.kind) | { id: "\(.kind) \(.metadata.name)", kind, object: . }' | judged | jq -c 'select(.causes != [])'
}

samples() {
	local file

	for file in crds/samples/*.yaml; do
		"$kubectl" patch --local -f "$file" --type merge -p '{}' -o json
	done | jq -c 'select(.apiVersion | test("spidernet|openshift"))'
}

t_eq "the samples" "" "$(samples | refused_objects)"
t_eq "SpiderMultusConfigs and SpiderIPPools" "" "$(jq -c '.[] | select(.accepted) | .object' "$conformance/spider.json" | refused_objects)"
t_eq "policies" "" "$(jq -c '.[].policies[]' "$conformance/policies.json" | refused_objects)"
t_eq "networks" "" "$(jq -c '.[] | select(.accepted) | .object' "$conformance/networks.json" | refused_objects)"
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What operators and agents asked API servers for, in all tests that ran before, against the rights that manifests/ give them:
# nothing was asked for that is not there, and nothing is there that was never used.
# Environment: ORBWEAVER_RIGHTS, the folder where `hack/cluster down` left what it recorded (hack/audit-rights.jq says what);
# RIGHTS_OF=all, if all tests ran before: after only some of them, what was not used is listed but is no failure.
# shellcheck disable=SC2016 # jq expands it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/lib.sh

recorded=${ORBWEAVER_RIGHTS:-build/rights}

# Rights that no request shows, and why they are there all the same. ACCOUNT VERB RESOURCE[.GROUP]
unseen() {
	cut -d '#' -f 1 <<'END_OF_LIST' | sed 's/ *$//'
orbweaver-operator update spidermultusconfigs/finalizers.spiderpool.spidernet.io # the server asks itself: operator_rights_test.sh
orbweaver-operator list servicecidrs.networking.k8s.io                           # Kubernetes 1.33; here the stream is a 404
orbweaver-agent create resourceslices.resource.k8s.io                            # the server asks itself: apply of one that is new
orbweaver-operator create validatingwebhookconfigurations.admissionregistration.k8s.io orbweaver-validating # so
orbweaver-operator create mutatingwebhookconfigurations.admissionregistration.k8s.io orbweaver-mutating     # so
orbweaver-operator create secrets orbweaver-webhook-certificate                                             # so
END_OF_LIST
}

# --- rules --------------------------------------------------------------------------------------------------------

rendered() {
	local kubectl

	kubectl=$(hack/k8s-build --bin)/kubectl
	{
		"$kubectl" kustomize manifests/overlays/default
		echo ---
		"$kubectl" kustomize manifests/overlays/metrics-secure
		echo ---
		cat manifests/overlays/dra/rbac.yaml
		echo ---
		cat manifests/overlays/webhook/rbac.yaml
	} | "$kubectl" patch --local -f - --type merge -p '{}' -o json
}

# One line for each thing that an account may do: {account, scope, group, resource, verb, name}; scope "own" is its namespace,
# name null is every name.
allowed() {
	rendered | jq -sc '. as $all | .[] | select(.kind == "ClusterRoleBinding" or .kind == "RoleBinding") | . as $binding |
		$all[] | select(.kind == $binding.roleRef.kind and .metadata.name == $binding.roleRef.name) | .rules[] |
		{ account: $binding.subjects[].name, scope: (if $binding.kind == "RoleBinding" then "own" else "every" end),
		  group: .apiGroups[], resource: .resources[], verb: .verbs[], name: (.resourceNames // [null])[] }'
}

# What a page tells its readers to give besides, "other" being a namespace of theirs: docs/device-plugins.md, agent_test.sh.
documented() {
	jq -nc '{account: "orbweaver-agent", scope: "other", group: "", resource: "configmaps", verb: ("list", "watch"),
		name: "smarter-device-manager"}'
}

# --- comparison -----------------------------------------------------------------------------------------------------

# Version and liveness of the server may be read by everybody: ClusterRole system:public-info-viewer.
comparison='
	def text: "\(.account) \(.verb) \(.path // .resource)\(if (.group // "") == "" then "" else "." + .group end)" +
		(if .name then " " + .name else "" end);
	def is_of($rule): .account == $rule.account and .verb == $rule.verb and .group == $rule.group and
		.resource == $rule.resource and ($rule.scope == "every" or .scope == "own" or .scope == $rule.scope) and
		($rule.name == null or .name == $rule.name);
	def by_request: group_by([text, .scope]) | map(
		"\(first | text), scope \(first.scope)" + (first.example | if . == "" then . else ", as \(.)" end) +
		": in \(map(.cluster) | unique | join(", "))");
	# Of everybody: ClusterRoles system:public-info-viewer and system:discovery.
	def is_free: .path // "" | . == "/version" or . == "/livez" or startswith("/apis/");
	def is_allowed: . as $request | is_free or any($rules[]; . as $rule | $request | is_of($rule));
'

compare() {
	jq -s -r --slurpfile rules "$tmp/rules" "$comparison $1" "$tmp/requests" | sort -u
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
t_ok "there is a recording in $recorded (make check, make integration and make vm leave one)" \
	compgen -G "$recorded/*.json"
t_need
t_eq "no cluster ended without a whole one" "" "$(find "$recorded" -type f ! -name '*.json' -printf '%f ')"
jq -c '.cluster = (input_filename | split("/") | last)' "$recorded"/*.json >"$tmp/requests"
{ allowed && documented; } >"$tmp/rules"
printf '# %d requests of %d kinds in %d clusters, %d rights\n' "$(jq -s 'map(.count) | add' "$tmp/requests")" \
	"$(jq -c 'del(.cluster, .count, .example, .class)' "$tmp/requests" | sort -u | wc -l)" \
	"$(find "$recorded" -maxdepth 1 -name '*.json' -size +0 | wc -l)" "$(wc -l <"$tmp/rules")"

t_eq "no rule is about everything" "" "$(jq -r 'select([.group, .resource, .verb] | index("*")) | tojson' "$tmp/rules")"
t_eq "all that was asked for is in the rules" "" "$(compare 'map(select(is_allowed | not)) | by_request[]')"
# A server that has just started knows no rules yet; what is refused then is asked for again, but for the version. Not where
# operator_removal_test.sh takes the rights away under operators that run.
t_eq "what RBAC refused was granted in the end" "" "$(compare 'map(select(.resource and (.cluster | startswith("removal-") | not))) |
	group_by([.cluster, .account, text, .scope]) | map(select(all(.refused)) | .[]) | by_request[]')"

compare '. as $requests | $rules[] | . as $rule | select(any($requests[]; (.refused | not) and is_of($rule)) | not) | text' \
	>"$tmp/unused"
t_eq "of the rights that no request shows none was seen" "" "$(comm -13 "$tmp/unused" <(unseen | sort))"
comm -23 "$tmp/unused" <(unseen | sort) >"$tmp/unexpected"
if [[ ${RIGHTS_OF:-some} == all ]]; then
	t_eq "every right was used" "" "$(<"$tmp/unexpected")"
else
	sed 's/^/# not used in these tests: /' "$tmp/unexpected"
fi
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server of custom resources of Kubernetes 1.36 behind the API server of 1.20 (hack/cluster up --crds-from 0.36), as users and
# the operator meet it: each rule of manifests/overlays/crd-rules refuses an object with its message, lets one through, and leaves
# an object of before editable; fields that select; what it says of unknown fields; lists that are streams; a server that goes away
# and comes back. Skipped where its packages cannot be had.
set -euo pipefail
STAGE=0.36
unset RULES # the definitions get their rules when there are objects already
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"
. tests/integration/rules.sh

pools=$spider/spiderippools
endpoints=$spider/spiderendpoints

# A request whose answer is printed whatever it is, its status after it: request METHOD PATH [BODY]
request() {
	curl -s --noproxy '*' --max-time 20 --cacert "$o_dir/pki/ca.crt" -H "Authorization: Bearer $token" \
		-H 'Content-Type: application/json' -D "$tmp/headers" -w '\n%{http_code}\n' -X "$1" ${3:+--data-binary "$3"} "$o_api$2"
}

# answers STATUS TEXT METHOD PATH [BODY]
answers() {
	local status=$1 text=$2 said

	shift 2
	said=$(request "$@") && echo "$said" && [[ ${said##*$'\n'} == "$status" && $said == *"$text"* ]]
}

pool() {
	jq -nc --arg name "$1" --argjson spec "$2" '{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderIPPool",
		metadata: { $name }, $spec }'
}

# --- where things are ---------------------------------------------------------------------------------------------

o_begin newer --no-controllers
token=$(<"$o_dir/pki/token")

etcd_version() {
	curl -s --noproxy '*' "http://127.0.0.1:$(sed -n s/^etcd=//p "$o_dir/ports")/version" | jq -r '.etcdserver | split(".")[:2] | join(".")'
}

refuses_streams() {
	request GET "/api/v1/namespaces?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1" |
		grep 'resourceVersionMatch is forbidden for watch'
}

served_elsewhere() {
	k get apiservices -o json | jq -c '[.items[] | select(.spec.service) | select(.status.conditions[] |
		.type == "Available" and .status == "True") | [.spec.group, .spec.service.name] | join(" ")] | sort'
}

t_ok "the API server is an old one: it does not stream its own kinds" refuses_streams
t_eq "etcd is 3.5" 3.5 "$(etcd_version)"
t_eq "all our groups are led to the newer server" \
	'["k8s.cni.cncf.io apiextensions","spiderpool.spidernet.io apiextensions","sriovnetwork.openshift.io apiextensions"]' \
	"$(served_elsewhere)"
t_eq "the API server itself has no definition" "" "$(k get crd -o name)"

# --- rules --------------------------------------------------------------------------------------------------------

rules_table >"$tmp/table"
mkdir "$tmp/bodies" "$tmp/answers"

# collection KIND: its path.
collection() {
	case $1 in
	SpiderIPPool | SpiderReservedIP) echo "$spider/${1,,}s" ;;
	Spider*) echo "$spider/namespaces/default/${1,,}s" ;;
	*Policy) echo "$sriov/namespaces/default/sriovnetworknodepolicies" ;;
	*) echo "$sriov/namespaces/default/${1,,}s" ;;
	esac
}

# Requests for `curl -K`, hundreds on a connection: ask ID METHOD TYPE PATH, the body is in $tmp/bodies/ID.
ask() {
	[[ ! -s $tmp/requests ]] || echo next
	cat <<END
url = "$o_api$4"
request = $2
header = "Content-Type: $3"
header = "Authorization: Bearer $token"
cacert = "$o_dir/pki/ca.crt"
noproxy = "*"
silent
data-binary = "@$tmp/bodies/$1"
output = "$tmp/answers/$1"
END
}

# Begins another file of requests; add ID METHOD TYPE PATH BODY appends one.
begin_requests() {
	: >"$tmp/requests"
}

add() {
	printf '%s' "$5" >"$tmp/bodies/$1"
	ask "$@" >>"$tmp/requests"
}

# Sends them and sets said[ID]: what is wrong, "FIELD: MESSAGE" one a line; nothing where all is well.
declare -A said=()
send_requests() {
	local id cause asked

	asked=$(grep -c '^url' "$tmp/requests")
	rm -f "$tmp"/answers/*
	t_ok "$asked requests" curl -K "$tmp/requests"
	t_eq "are answered" "$asked" "$(find "$tmp/answers" -type f -size +0 | wc -l)"
	while IFS=$'\t' read -r id cause; do
		said[$id]+=$cause$'\n'
	done < <(jq -r '(input_filename | sub(".*/"; "")) as $id | select(.kind == "Status") |
		(.details.causes // [{ field: "", message }])[] | "\($id)\t\(.field): \(.message)"' "$tmp"/answers/*)
}

# object KIND NAME SPEC
object() {
	local version=sriovnetwork.openshift.io/v1

	[[ $1 != Spider* ]] || version=spiderpool.spidernet.io/v2beta1
	printf '{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s"},"spec":%s}' "$version" "$1" "$2" "$3"
}

# each COMMAND: for each line of the table, with its number as `n`.
each() {
	local n=0 kind bad field text good other

	while IFS='|' read -r kind bad field text good other; do
		n=$((n + 1))
		"$@"
	done <"$tmp/table"
}

make_old() {
	add "$n-old" POST application/json "$(collection "$kind")" "$(object "$kind" "old$n" "$bad")"
	add "$n-fine" POST application/json "$(collection "$kind")" "$(object "$kind" "fine$n" "$good")"
}

ask_about_rule() {
	local path merge=application/merge-patch+json json=application/json-patch+json

	path=$(collection "$kind")
	add "$n-bad" POST application/json "$path?dryRun=All" "$(object "$kind" "new$n" "$bad")"
	add "$n-good" POST application/json "$path?dryRun=All" "$(object "$kind" "new$n" "$good")"
	add "$n-worse" PATCH "$json" "$path/fine$n?dryRun=All" '[{"op":"replace","path":"/spec","value":'"$bad"'}]'
	add "$n-label" PATCH "$merge" "$path/old$n?dryRun=All" '{"metadata":{"labels":{"seen":"yes"}}}'
	add "$n-other" PATCH "$merge" "$path/old$n?dryRun=All" '{"spec":'"$other"'}'
	add "$n-mended" PATCH "$json" "$path/old$n?dryRun=All" '[{"op":"replace","path":"/spec","value":'"$good"'}]'
}

# refused ID: as the table says.
refused() {
	echo "${said[$1]:-}"
	[[ $'\n'${said[$1]:-} == *$'\n'"$field: "*"$text"* ]]
}

judge_old() {
	t_eq "$kind $bad is there already" "" "${said[$n-old]:-}"
	t_eq "so is $good" "" "${said[$n-fine]:-}"
}

judge_rule() {
	t_ok "$kind $bad is refused" refused "$n-bad"
	t_eq "$kind $good is let through" "" "${said[$n-good]:-}"
	t_ok "and cannot become the former" refused "$n-worse"
	t_eq "the former, which was there before, can be labelled" "" "${said[$n-label]:-}"
	t_eq "and changed elsewhere: $other" "" "${said[$n-other]:-}"
	t_eq "and mended" "" "${said[$n-mended]:-}"
}

begin_requests
each make_old
send_requests
each judge_old
t_ok "endpoints of two nodes, too" k create -f - <<END
{ "apiVersion": "v1", "kind": "List", "items": [
	{ "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderEndpoint",
		"metadata": { "name": "a", "namespace": "default" }, "status": { "current": { "uid": "1", "node": "n1", "ips": [] }, "ownerControllerType": "Pod", "ownerControllerName": "a" } },
	{ "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderEndpoint",
		"metadata": { "name": "b", "namespace": "default" }, "status": { "current": { "uid": "2", "node": "n2", "ips": [] }, "ownerControllerType": "Pod", "ownerControllerName": "b" } }] }
END
t_ok "they cannot be selected by node" answers 400 "field label not supported" \
	GET "$endpoints?fieldSelector=status.current.node=n1"

k kustomize manifests/overlays/crd-rules >"$tmp/rules.yaml"
t_ok "the definitions get their rules" hack/cluster crds "$o_cluster" "$tmp/rules.yaml"
t_wait 30 "which are in force" answers 422 "is not a subnet" POST "$pools?dryRun=All" "$(pool new '{"subnet":"10.6.0.0"}')"
begin_requests
each ask_about_rule
send_requests
each judge_rule

t_ok "a pool" answers 201 '' POST "$pools" "$(pool moves '{"subnet":"10.6.0.7/16"}')"
moves_to() {
	k patch spiderippools.spiderpool.spidernet.io moves --type merge -p '{"spec":{"subnet":"'"$1"'"}}' 2>&1
}
moving_says() {
	local said

	said=$(moves_to "$1") || true
	echo "$said"
	[[ $said == *"$2"* ]]
}
t_ok "its subnet cannot become another network" moving_says 10.7.0.0/16 "make a new SpiderIPPool"
t_ok "it can be written another way" moves_to 10.6.0.0/16

# --- what else it knows -------------------------------------------------------------------------------------------

selected() {
	o_curl GET "$endpoints?fieldSelector=status.current.node=$1" | jq -c '[.items[].metadata.name]'
}

selects() {
	[[ $(selected n1) == '["a"]' && $(selected n2) == '["b"]' && $(selected n3) == '[]' ]]
}

warned() {
	answers 201 '' POST "$pools?fieldValidation=Warn&dryRun=All" "$1" && grep -i '^warning: .*unknown field.*spec.gatway' "$tmp/headers"
}

# The list as a watch, up to the bookmark that ends it.
streamed() {
	(request GET "$pools?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=2" ||
		true) | jq -cR 'fromjson? | select(type == "object") | [.type, .object.metadata.annotations["k8s.io/initial-events-end"] // ""]' |
		uniq
}

t_wait 30 "endpoints can be selected by node" selects
misspelt=$(pool misspelt '{"subnet":"10.6.0.0/16","gatway":"10.6.0.1"}')
t_ok "an unknown field is warned of" warned "$misspelt"
t_ok "and refused where that is asked for" answers 400 'unknown field \"spec.gatway\"' \
	POST "$pools?fieldValidation=Strict&dryRun=All" "$misspelt"
t_eq "a list comes as a stream, with an end" '["ADDED",""] ["BOOKMARK","true"]' "$(streamed | xargs -d '\n')"

# --- the operator -------------------------------------------------------------------------------------------------

# What is defined there.
ours='["network-attachment-definitions", "ovsnetworks", "spidercoordinators", "spiderendpoints", "spiderippools",
	"spidermultusconfigs", "spiderreservedips", "sriovibnetworks", "sriovnetworknodepolicies", "sriovnetworknodestates",
	"sriovnetworkpoolconfigs", "sriovnetworks"]'

# Of these, what its account has listed as a stream, as pages, or was refused as a stream: lists HOW
lists() {
	jq -r --arg user "$o_username" --arg how "$1" --argjson ours "$ours" 'select(.user.username == $user) |
		select(.objectRef.resource | IN($ours[])) | (.requestURI | contains("sendInitialEvents=true")) as $streamed | select(
		if $how == "pages" then .verb == "list"
		elif $how == "stream" then $streamed and .responseStatus.code == 200
		else $streamed and .responseStatus.code >= 400 end) | .objectRef.resource' "$(hack/cluster audit "$o_cluster")" | sort -u
}

all_streamed() {
	diff <(jq -r '.[]' <<<"$ours") <(lists stream)
}

rendered() {
	o_condition "$spider/namespaces/default/spidermultusconfigs/$1" True Rendered
}

config() {
	object SpiderMultusConfig "$1" '{"cniType":"macvlan","macvlan":{"master":["eth1"]}}'
}

o_own_user
o_start op
o_wait_ready op
t_wait 10 "the operator has every kind of ours as a stream" all_streamed
t_eq "and none in pages" "" "$(lists pages)"
t_eq "none was refused" "" "$(lists refused)"
t_ok "a user's network" answers 201 '' POST "$spider/namespaces/default/spidermultusconfigs" "$(config before)"
t_wait 30 "is rendered" rendered before
t_ok "the newer server goes away" hack/cluster stop "$o_cluster" apiextensions
t_ok "its kinds are gone with it" answers 503 '' GET "$pools"
t_ok "the API server is there" answers 200 '' GET /api/v1/namespaces
t_ok "the newer server comes back" hack/cluster start "$o_cluster" apiextensions
t_wait 60 "a user's next network is taken" answers 201 '' POST "$spider/namespaces/default/spidermultusconfigs" "$(config after)"
t_wait 60 "and rendered" rendered after
o_end op
t_done

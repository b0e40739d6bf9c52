#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/cluster itself: two clusters side by side keep apart, survive stops, and leave nothing behind.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/lib.sh
. "$repo/tests/lib.sh"

# Clusters of our own: others may run some in the usual place.
tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run ORBWEAVER_RIGHTS=$tmp/rights

cluster() {
	"$repo/hack/cluster" "$@"
}

clean_up() {
	cluster down red || true
	cluster down blue || true
	cluster down green || true
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# GET a path of cluster red's API as administrator, print the body. Within 3 s, as watches do not end.
api_get() {
	local dir=$ORBWEAVER_RUN/red

	curl -s --noproxy '*' --max-time 3 --cacert "$dir/pki/ca.crt" \
		-H "Authorization: Bearer $(<"$dir/pki/token")" \
		"https://127.0.0.1:$(sed -n s/^apiserver=//p "$dir/ports")$1"
}

# What the API server says to a watch of ConfigMaps that resumes from version $1.
resume_watch() {
	api_get "/api/v1/configmaps?watch=1&allowWatchBookmarks=1&timeoutSeconds=1&resourceVersion=$1"
}

resume_is_gone() {
	resume_watch "$1" | jq -e 'select(.type == "ERROR").object.code == 410'
}

resume_shows() {
	resume_watch "$1" | jq -es --arg name "$2" 'any(.[]; .object.metadata.name == $name)'
}

resource_version() {
	cluster kubectl red get --raw /api/v1/configmaps | jq -r .metadata.resourceVersion
}

pids() {
	cut -d' ' -f1 "$ORBWEAVER_RUN/$1"/run/*
}

# Processes among $@ that are there and are ours (their command line names our folder).
left_over() {
	local pid

	for pid in "$@"; do
		! grep -qs "$ORBWEAVER_RUN" "/proc/$pid/cmdline" || echo "$pid"
	done
}

apply_crd() {
	cluster kubectl red apply -f - <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.test.example}
spec:
  group: test.example
  names: {kind: Web, plural: webs, singular: web}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                text: {type: string}
                list: {type: array, items: {type: string}}
END
}

# Without kubectl's own validation: the server is who shall judge.
create_web() {
	cluster kubectl red create --validate=false -f - <<END
apiVersion: test.example/v1
kind: Web
metadata: {name: $1, namespace: lab}
spec: {text: $2, list: [""]}
END
}

# Writes of a user that the audit log has, for one verb and resource.
audited() {
	jq -es --arg user "$1" --arg verb "$2" --arg resource "$3" 'map(select(.user.username == $user
		and .verb == $verb and .objectRef.resource == $resource)) | length' "$(cluster audit red)"
}

# What our accounts asked cluster red for, without what is refused until the server has heard of a role.
asked_for() {
	jq -r 'select(.resource == "nodes" or (.resource and (.refused | not))) | [.account, .verb, .resource, .scope, .class,
		if .refused then "refused" else empty end] | join(" ")' "$ORBWEAVER_RIGHTS"/red.*.json | sort | paste -sd ,
}

# Of one of our definitions in a cluster, as the API server serves it.
uid_of_crd() {
	cluster kubectl "$1" get --raw /apis/spiderpool.spidernet.io/v2beta1/spiderippools >/dev/null &&
		cluster kubectl "$1" get crd spiderippools.spiderpool.spidernet.io -o 'jsonpath={.metadata.uid}'
}

cluster up blue --no-controllers --with-crds >"$tmp/blue.log" 2>&1 &
other=$!
t_ok "red starts" cluster up red --no-controllers
blue=0
wait "$other" || { blue=$? && cat "$tmp/blue.log"; }
t_eq "blue starts at the same time" 0 "$blue"
t_need
t_ok "up is content with a cluster that is up" cluster up red --no-controllers
t_ok "status says ready" cluster status red
t_wait 20 "blue serves our custom resources" uid_of_crd blue
t_fails "red does not" uid_of_crd red
t_eq "no port is given twice" "" "$(sed 's/.*=//' "$ORBWEAVER_RUN"/*/ports | sort | uniq -d)"
mapfile -t red_pids < <(pids red)
t_eq "red has two processes" 2 "${#red_pids[@]}"
t_fails "a bad name is refused" cluster up ../red
t_fails "an admission plugin that cannot be one is refused" cluster up red --admission ../plugin
t_fails "an unknown component is refused" cluster stop red kubelet
t_fails "a server of custom resources that is not known is refused" cluster up green --crds-from 0.1
t_fails "a cluster that has its custom resources itself keeps them" cluster up red --no-controllers --crds-from 0.36
t_fails "our definitions are not for the API server then" cluster up green --no-controllers --crds-from 0.36 --with-crds
t_fails "it has no server for them" cluster start red apiextensions
t_fails "what is no definition is refused" cluster crds red manifests/base/rbac.yaml

t_ok "a namespace is created in red" cluster kubectl red create namespace lab
t_fails "blue does not have it" cluster kubectl blue get namespace lab
for form in token token-file cert cert-data; do
	t_ok "kubeconfig with $form is accepted" cluster kubectl red \
		--kubeconfig "$(cluster kubeconfig red $form)" auth can-i create nodes
done
t_fails "red's token is refused by blue" cluster kubectl blue \
	--token "$(<"$ORBWEAVER_RUN/red/pki/token")" get namespaces

t_ok "a CRD is accepted" apply_crd
t_ok "it becomes established" cluster kubectl red wait --for condition=Established \
	--timeout 20s crd/webs.test.example
t_wait 10 "an object with empty strings is accepted" create_web empty '""'
t_eq "the empty strings are kept" '{"list":[""],"text":""}' \
	"$(cluster kubectl red -n lab get web empty -o json | jq -cS .spec)"
t_fails "an object with null for a string is refused" create_web null null
t_fails "an object with a number for a string is refused" create_web number 7

user=$(cluster kubeconfig-user red weaver spinners)
t_fails "a user without a role may do nothing" cluster kubectl red --kubeconfig "$user" \
	-n lab create configmap by-weaver
cluster kubectl red create clusterrole cm --verb create --resource configmaps >/dev/null
cluster kubectl red create clusterrolebinding cm --clusterrole cm --group spinners >/dev/null
t_wait 5 "a role for the user's group lets it create" cluster kubectl red --kubeconfig "$user" \
	-n lab create configmap by-weaver
t_ok "the audit log has the user's writes" audited weaver create configmaps
t_eq "the audit log counts one namespace" 1 "$(audited admin create namespaces)"
cluster kubectl red -n lab create serviceaccount spider >/dev/null
account=$(cluster sa-kubeconfig red lab spider)
cluster kubectl red create clusterrolebinding spider --clusterrole cm \
	--serviceaccount lab:spider >/dev/null
t_wait 5 "a service account's token is accepted" cluster kubectl red --kubeconfig "$account" \
	-n lab create configmap by-spider
t_fails "an account that is not there gets no token" cluster sa-kubeconfig red lab nobody
cluster kubectl red create namespace orbweaver-system >/dev/null
cluster kubectl red -n orbweaver-system create serviceaccount orbweaver-agent >/dev/null
ours=$(cluster sa-kubeconfig red orbweaver-system orbweaver-agent)
t_fails "our own accounts need a role, too" cluster kubectl red --kubeconfig "$ours" get --raw /api/v1/nodes
cluster kubectl red create clusterrolebinding ours --clusterrole cm \
	--serviceaccount orbweaver-system:orbweaver-agent >/dev/null
t_wait 5 "with one they may do what it says" cluster kubectl red --kubeconfig "$ours" \
	-n lab create configmap by-ours

version=$(resource_version)
cluster kubectl red -n lab create configmap later >/dev/null
t_ok "a watch from before sees what came after" resume_shows "$version" later
t_ok "compact" cluster compact red
t_ok "a watch from before gets 410 now" resume_is_gone "$version"
version=$(resource_version)
cluster kubectl red -n lab create configmap latest >/dev/null
t_ok "a watch from after the compaction works" resume_shows "$version" latest

t_ok "the API server stops" cluster stop red apiserver
t_fails "nobody answers then" cluster kubectl red get namespaces
t_fails "status says so" cluster status red
t_ok "blue does not notice" cluster kubectl blue get namespaces
t_ok "the API server starts again" cluster start red apiserver
t_eq "data and port are the same as before" namespace/lab \
	"$(cluster kubectl red get namespace lab -o name)"
t_eq "so is etcd's process" "${red_pids[1]}" "$(cut -d' ' -f1 "$ORBWEAVER_RUN/red/run/etcd")"

mapfile -t all_pids < <(pids red && pids blue)
t_eq "four processes run" 4 "$(left_over "${all_pids[@]}" | wc -l)"
t_fails "up on a port in use fails" cluster up green --no-controllers --port "$(sed -n 's/^apiserver=//p' "$ORBWEAVER_RUN/blue/ports")"
t_fails "and leaves nothing" test -e "$ORBWEAVER_RUN/green"
echo "$$ 1" >"$ORBWEAVER_RUN/red/run/scheduler"
t_ok "down red, with a stale pid file that names this test" cluster down red
t_eq "what our accounts asked for is recorded" \
	"orbweaver-agent create configmaps other 2,orbweaver-agent list nodes cluster 4 refused" "$(asked_for)"
t_ok "blue still runs" cluster status blue
uid=$(uid_of_crd blue)
t_ok "down blue" cluster down blue
t_eq "no process is left" "" "$(left_over "${all_pids[@]}")"
t_eq "no folder is left" "" "$(ls "$ORBWEAVER_RUN")"
t_ok "down of what is not there is fine" cluster down red

t_ok "another one with our definitions" cluster up green --no-controllers --with-crds
t_wait 20 "serves our custom resources" uid_of_crd green
t_eq "from the data that the first one saved" "$uid" "$(uid_of_crd green)"
t_ok "its own administrator may write" cluster kubectl green create namespace lab

t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Admission on a real API server, which calls us by URL on loopback: refusals that say what to do, what is never refused, pod
# injection, the same results with webhooks on, off and switched on later, a certificate that is replaced under load, both
# replicas, and a cluster whose operator is gone. PODS=10000 is the full run of the load.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

pods=${PODS:-$(o_size 10000 1000 100)}
batch=50
smc=$spider/namespaces/default/spidermultusconfigs
configurations=/apis/admissionregistration.k8s.io/v1
conf=/api/v1/namespaces/$POD_NAMESPACE/configmaps
secret=/api/v1/namespaces/$POD_NAMESPACE/secrets/orbweaver-webhook-certificate

# --- operators ----------------------------------------------------------------------------------------------------

# start_with_webhooks ID PORT [FLAG...]
start_with_webhooks() {
	local id=$1 port=$2

	shift 2
	o_start "$id" --webhook-addr "127.0.0.1:$port" --webhook-url "https://127.0.0.1:$port" "$@"
}

# The API server has been told what this operator wants, and what it serves is trusted.
webhooks_work() {
	[[ $(o_curl GET "$configurations/mutatingwebhookconfigurations/orbweaver-mutating" |
		jq -r '.webhooks[0].clientConfig.url') == "https://127.0.0.1:$1/default" ]] && serves "$1"
}

authorities() {
	o_curl GET "$secret" | jq -er '.data["ca.crt"] | @base64d' >"$tmp/ca.crt"
}

# It answers a review to whoever trusts the published authorities.
serves() {
	authorities && curl -sf --noproxy '*' --max-time 5 --cacert "$tmp/ca.crt" -H 'Content-Type: application/json' \
		--data-binary "$(review)" "https://127.0.0.1:$1/inject" | jq -e '.response.uid == "x" and .response.allowed'
}

review() {
	jq -nc '{ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: { uid: "x", operation: "CREATE",
		namespace: "default", kind: { group: "", version: "v1", kind: "Pod" },
		resource: { group: "", version: "v1", resource: "pods" },
		object: { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [ { name: "c", image: "i" } ] } } } }'
}

# --- objects ------------------------------------------------------------------------------------------------------

config() {
	jq -nc --arg name "$1" --argjson spec "$2" --argjson annotations "${3:-null}" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderMultusConfig", metadata: ({ name: $name, namespace: "default" } + if $annotations then
		{ annotations: $annotations } else {} end), spec: $spec }'
}

pool() {
	jq -nc --arg name "$1" --arg subnet "$2" --arg range "$3" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderIPPool", metadata: { name: $name }, spec: { subnet: $subnet, ips: [ $range ] } }'
}

pod() {
	jq -nc --arg name "$1" --arg ns "$2" --arg group "${3:-}" '{ apiVersion: "v1", kind: "Pod", metadata: ({ name: $name,
		namespace: $ns } + if $group == "" then {} else { annotations: { "cni.spidernet.io/rdma-resource-inject": $group } } end),
		spec: { containers: [ { name: "c", image: "i" } ] } }'
}

# ask METHOD PATH [BODY]: prints the answer's code and message in one line.
ask() {
	local method=$1 path=$2 body=${3:-} type=application/json

	[[ $method != PATCH ]] || type=application/merge-patch+json
	curl -s --noproxy '*' --max-time 20 --cacert "$o_dir/pki/ca.crt" -X "$method" -w '\n%{http_code}' \
		-H "Authorization: Bearer $(<"$o_dir/pki/token")" -H "Content-Type: $type" \
		${body:+--data-binary "$body"} "$o_api$path" | jq -Rrs 'split("\n") | last + " " +
			(.[:-1] | join("\n") | fromjson | .message // "")'
}

# Refused, and the text holds all of these.
refuses() {
	local answer text

	answer=$(ask "$1" "$2" "$3")
	echo "$answer"
	[[ $answer == 4?? || $answer == 4??\ * ]] || return 1
	for text in "${@:4}"; do
		[[ $answer == *"$text"* ]] || return 1
	done
}

accepts() {
	local answer

	answer=$(ask "$@")
	echo "$answer"
	[[ $answer == 2* ]]
}

nads_of() {
	o_curl GET "$nads/namespaces/default/network-attachment-definitions" | jq -cS '[.items[] | { name: .metadata.name,
		labels: .metadata.labels, annotations: .metadata.annotations, config: (.spec.config | fromjson) }] | sort_by(.name)'
}

number_of_nads() {
	[[ $(nads_of | jq length) == "$1" ]]
}

nads_are() {
	local now

	now=$(nads_of)
	diff <(jq . "$1") <(jq . <<<"$now")
}

# A family of configs: old and new spellings, with and without what defaults fill in.
make_family() {
	local spec n=0

	for spec in '{"cniType":"macvlan","macvlan":{"master":["eth1"]}}' \
		'{"cniType":"macvlan","macvlan":{"master":["eth1","eth2"],"vlanID":7,"bond":{"name":"bond0","mode":1}}}' \
		'{"cniType":"ipvlan","ipvlan":{"master":["eth1"],"ippools":{"ipv4":["a"]}},"enableCoordinator":false}' \
		'{"cniType":"sriov","sriov":{"resourceName":"spidernet.io/vf","enableRdma":true}}' \
		'{"cniType":"ib-sriov","ibsriov":{"resourceName":"spidernet.io/ib"},"disableIPAM":true}' \
		'{"cniType":"ipoib","ipoib":{"master":"ib0"},"coordinator":{"mode":"underlay"}}' \
		'{"cniType":"custom","customCNI":"{\"cniVersion\":\"0.3.1\",\"name\":\"c\",\"plugins\":[{\"type\":\"host-device\"}]}"}'; do
		n=$((n + 1))
		o_curl POST "$smc" "$(config "family-$n" "$spec")" >/dev/null
	done
	family=$n
}

# --- load ---------------------------------------------------------------------------------------------------------

# make_pods FIRST LAST NAMESPACE: over one connection; prints code and time of each, and what the API server said of those that it did
# not create. Each gets a name of its own: the suffixes that servers make up meet by chance in thousands.
make_pods() {
	local i body

	body=$(sed 's/"/\\"/g' "$tmp/pod-$3.json")
	for ((i = $1; i <= $2; i++)); do
		((i == $1)) || echo next
		printf '%s\n' 'silent' 'noproxy = "*"' 'max-time = 30' 'request = POST' "cacert = \"$o_dir/pki/ca.crt\"" \
			"header = \"Authorization: Bearer $(<"$o_dir/pki/token")\"" 'header = "Content-Type: application/json"' \
			"data = \"${body/NAME/$1-$i-$RANDOM}\"" 'write-out = "\n%{http_code} %{time_total}\n"' \
			"url = \"$o_api/api/v1/namespaces/$3/pods\""
	done | curl --config - | grep -E '^[0-9]{3} |"kind":"Status"'
}

# Until so many pods were made and the certificate has changed twice.
load() {
	local made=0

	: >"$tmp/made"
	while ((made < pods || $(changes) < 2)); do
		make_pods $((made + 1)) $((made + batch)) load >>"$tmp/made"
		made=$((made + batch))
		((made < 20000)) || break
		# Enough of them: now it is the certificate that is waited for.
		((made < pods)) || sleep 0.2
	done
	grep '"kind":"Status"' "$tmp/made" | head -5 || true
}

# How often the operators have put another certificate in use since the load began.
changes() {
	local one
	one=$(jq -Rr 'fromjson? | select(.msg == "webhook serves with another certificate").version' "$tmp/one.log" | wc -l)
	echo $((one - changes_before))
}

# A failed call shows as a pod that was created without its network (failurePolicy Ignore).
left_out() {
	k get pods -n load -o json | jq '[.items[] | select(.metadata.annotations["k8s.v1.cni.cncf.io/networks"] != "default/gpu")] | length'
}

# Creations that took as long as a call may: the API server did not wait for the operator, which had no processor or too little.
timed_out() {
	awk '$1 == 201 && $2 >= 2 { n++ } END { print n + 0 }' "$tmp/made"
}

created() {
	awk '$1 == 201' "$tmp/made" | wc -l
}

# The p-th percentile of the times in a file of "code seconds", in ms.
percentile() {
	awk '/^[0-9]/ { print $2 * 1000 }' "$1" | sort -n | awk -v p="$2" '{ v[NR] = $1 } END { printf "%.1f", v[int((NR - 1) * p / 100) + 1] }'
}

# How many of the creations in the files took longer than the first number of ms and the webhook's timeout together.
slowed() {
	awk -v most="$(($1 + 2000))" '/^[0-9]/ && $2 * 1000 > most { n++ } END { print n + 0 }' "${@:2}"
}

# Share of the operator's answers on a path that took at most 1 ms, in tenths of a percent.
within_1ms() {
	o_http "$1" /metrics | awk -v path="path=\"$2\"" '/^orbweaver_admission_seconds_bucket/ && index($0, path) {
		if (index($0, "le=\"0.001\"")) fast = $2; if (index($0, "le=\"+Inf\"")) all = $2 }
		END { printf "%d", all ? fast * 1000 / all : 0 }'
}

# --- the run ------------------------------------------------------------------------------------------------------

o_begin webhook --no-controllers
for namespace in ai load elsewhere; do
	k create namespace "$namespace" >/dev/null
done
# What servers from 1.21 on do by themselves.
k get namespaces -o name | while read -r namespace; do
	k label --overwrite "$namespace" "kubernetes.io/metadata.name=${namespace#*/}" >/dev/null
done
o_own_user webhook
port_one=$(o_free_port)
port_two=$(o_free_port)

echo "# without webhooks"
o_start plain
o_wait_ready plain
make_family
t_wait 20 "all configs have their NADs" number_of_nads "$family"
nads_of >"$tmp/nads-off"
t_fails "there is no webhook configuration of ours" o_curl GET "$configurations/validatingwebhookconfigurations/orbweaver-validating"
t_fails "and no certificate" o_curl GET "$secret"
o_end plain

echo "# switched on later"
start_with_webhooks one "$port_one" --policy-namespaces default,ai
o_wait_ready one
t_wait 20 "the API server calls the operator" webhooks_work "$port_one"
t_ok "the NADs are as without webhooks" nads_are "$tmp/nads-off"
k delete smc --all -n default >/dev/null
t_wait 20 "deleting removes the NADs" number_of_nads 0
make_family
t_wait 20 "all configs have their NADs again" number_of_nads "$family"
t_ok "the NADs made with webhooks on are the same" nads_are "$tmp/nads-off"
t_ok "the call of the defaulting webhook was seen" test "$(o_metric one orbweaver_admission_requests_total 'path="/default"')" -gt 0
t_ok "certificate and configurations are nobody else's business" test "$(o_writes "(.key | test(\"orbweaver-webhook|orbweaver-validating|orbweaver-mutating\")) and .user != \"$o_username\"")" -eq 0

echo "# refusals"
t_ok "a config with three mistakes: all are named, with value and remedy" refuses POST "$smc" \
	"$(config bad '{"cniType":"macvlan","macvlan":{"master":["eth0","eth1"],"vlanID":5000}}')" spec.macvlan
t_ok "a pool outside of its subnet" refuses POST "$spider/spiderippools" "$(pool outside 10.1.0.0/24 10.2.0.1-10.2.0.9)" \
	outside 'spec.ips[0]' 10.2.0.1-10.2.0.9 10.1.0.0/24
t_ok "a first pool" accepts POST "$spider/spiderippools" "$(pool first 10.1.0.0/24 10.1.0.1-10.1.0.99)"
overlap_is_refused() {
	refuses POST "$spider/spiderippools" "$(pool second 10.1.0.0/24 10.1.0.50-10.1.0.60)" second first 10.1.0
}
t_wait 5 "a pool that overlaps it, by name" overlap_is_refused

echo "# what is never refused"
# Objects in trouble, stored while nobody looked.
k delete validatingwebhookconfigurations orbweaver-validating >/dev/null
o_kill one STOP
t_ok "without the operator a bad pool is stored" accepts POST "$spider/spiderippools" "$(pool troubled 10.3.0.0/24 10.4.0.1-10.4.0.9)"
o_kill one CONT
t_wait 20 "the configuration that somebody deleted is back" o_curl GET "$configurations/validatingwebhookconfigurations/orbweaver-validating"
troubled=$spider/spiderippools/troubled
new_bad_range_is_refused() {
	refuses PATCH "$troubled" '{"spec":{"ips":["10.5.0.1"]}}' 'spec.ips[0]' 10.5.0.1
}
t_wait 10 "another bad range is refused" new_bad_range_is_refused
t_ok "metadata of an object in trouble can be changed" accepts PATCH "$troubled" '{"metadata":{"labels":{"a":"b"}}}'
t_ok "and finalizers" accepts PATCH "$troubled" '{"metadata":{"finalizers":["example.com/x"]}}'
t_ok "and what has nothing to do with the trouble" accepts PATCH "$troubled" '{"spec":{"disable":true}}'
t_ok "the delete" accepts DELETE "$troubled"
t_ok "the finalizers of what is going away" accepts PATCH "$troubled" '{"metadata":{"finalizers":null}}'

echo "# pod injection"
t_ok "without podResourceInject pods pass" accepts POST /api/v1/namespaces/default/pods "$(pod before default nobody)"
inject_settings() {
	jq -nc --arg yaml "$1" '{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "spiderpool-conf" }, data: { "conf.yml": $yaml } }'
}
pods_selected() {
	[[ $(o_curl GET "$configurations/mutatingwebhookconfigurations/orbweaver-mutating" |
		jq -c '[.webhooks[] | select(.name == "pods.orbweaver.spidernet.io") | .namespaceSelector.matchExpressions[] |
			[.operator, .values]]') == "$1" ]]
}
o_curl POST "$conf" "$(inject_settings $'podResourceInject:\n  enabled: true\n  namespacesExclude: [elsewhere]\n')" >/dev/null
t_wait 10 "switched on without a restart" pods_selected "[[\"NotIn\",[\"elsewhere\",\"kube-system\",\"$POD_NAMESPACE\"]]]"
o_curl POST "$smc" "$(config gpu '{"cniType":"macvlan","macvlan":{"master":["ens1"],"rdmaResourceName":"spidernet.io/gpu",
	"ippools":{"ipv4":["a"]}}}' '{"cni.spidernet.io/rdma-resource-inject":"gpu"}')" >/dev/null
is_injected() {
	o_curl POST "/api/v1/namespaces/$2/pods" "$(pod "$1-$RANDOM" "$2" gpu)" | jq -e '
		.metadata.annotations["k8s.v1.cni.cncf.io/networks"] == "default/gpu" and
		.spec.containers[0].resources.limits["spidernet.io/gpu"] == "1"'
}
is_left_alone() {
	o_curl POST "/api/v1/namespaces/$2/pods" "$(pod "$1-$RANDOM" "$2" gpu)" | jq -e '
		.metadata.annotations["k8s.v1.cni.cncf.io/networks"] == null and .spec.containers[0].resources == {}'
}
t_wait 10 "a pod that asks gets network and resource" is_injected asks ai
t_ok "not in a namespace that is excluded" is_left_alone asks elsewhere
refuses_unknown_group() {
	refuses POST /api/v1/namespaces/ai/pods "$(pod unknown ai nobody)" unknown cni.spidernet.io/rdma-resource-inject nobody
}
t_ok "one that asks for a group that does not exist is refused" refuses_unknown_group
o_curl PATCH "$conf/spiderpool-conf" "$(inject_settings $'podResourceInject:\n  enabled: true\n  namespacesInclude: [load]\n')" >/dev/null
t_wait 10 "included namespaces take effect without a restart" pods_selected \
	"[[\"NotIn\",[\"kube-system\",\"spiderpool\",\"metallb-system\",\"istio-system\",\"$POD_NAMESPACE\"]],[\"In\",[\"load\"]]]"
t_wait 5 "a namespace that is not included is left alone" is_left_alone included ai
t_wait 5 "one that is gets its injection" is_injected included load
k label namespace load kubernetes.io/metadata.name- >/dev/null
t_wait 10 "a namespace without its name as a label does not get lost" pods_selected \
	"[[\"NotIn\",[\"kube-system\",\"spiderpool\",\"metallb-system\",\"istio-system\",\"$POD_NAMESPACE\"]]]"
t_ok "its pods are injected all the same" is_injected unlabelled load
t_ok "and those that are not included are not" is_left_alone unlabelled ai
k label namespace load kubernetes.io/metadata.name=load >/dev/null
o_curl PATCH "$conf/spiderpool-conf" "$(inject_settings $'podResourceInject:\n  enabled: maybe\n')" >/dev/null
t_wait 10 "settings that cannot be read are told" o_logged one '.msg | test("cannot read the settings of pod injection")'
t_ok "and the last good ones stay" is_injected unreadable load
o_curl PATCH "$conf/spiderpool-conf" "$(inject_settings $'podResourceInject:\n  enabled: true\n')" >/dev/null
t_wait 10 "and are replaced by the next good ones" is_injected again ai
k delete smc gpu -n default >/dev/null

k delete smc,sp --all -A >/dev/null

echo "# a second replica"
start_with_webhooks two "$port_two"
o_wait_ready two
t_wait 10 "it serves with the certificate that the leader made" serves "$port_two"
t_fails "it does not lead" o_leads two
t_ok "the API server goes on calling the leader" webhooks_work "$port_one"

echo "# the certificate is replaced under load"
o_end two
o_end one
start_with_webhooks one "$port_one" --webhook-certificate-lifetime 30s
o_wait_ready one
start_with_webhooks two "$port_two" --webhook-certificate-lifetime 30s
o_wait_ready two
t_wait 30 "the first replica leads" o_leads one
o_curl POST "$smc" "$(config gpu '{"cniType":"macvlan","macvlan":{"master":["ens1"],"rdmaResourceName":"spidernet.io/gpu",
	"ippools":{"ipv4":["a"]}}}' '{"cni.spidernet.io/rdma-resource-inject":"gpu"}')" >/dev/null
t_wait 60 "webhooks work" webhooks_work "$port_one"
t_wait 10 "pods are injected" is_injected load ai
pod NAME load gpu >"$tmp/pod-load.json"
changes_before=0
changes_before=$(changes)
load
t_ok "at least $pods pods were created while the certificate changed twice" test "$(created)" -ge "$pods" -a "$(changes)" -ge 2
t_eq "no creation failed" "$(grep -cE '^[0-9]{3} ' "$tmp/made")" "$(created)"
t_ok "no pod was left without its network, unless its call timed out" test "$(left_out)" -le "$(timed_out)"
t_ok "the second replica has changed with the first" serves "$port_two"
echo "# $(created) pods, $(changes) changes of the certificate; creation p50 $(percentile "$tmp/made" 50) ms, p99 $(percentile "$tmp/made" 99) ms;" \
	"answers of the operator within 1 ms: /inject $(within_1ms one /inject) of 1000"

echo "# the operator is gone"
o_end two
pod NAME elsewhere >"$tmp/pod-elsewhere.json"
pod NAME "$POD_NAMESPACE" >"$tmp/pod-$POD_NAMESPACE.json"
make_pods 1 50 elsewhere >"$tmp/with"
# Stopped, not ended: connections are taken and nobody answers, which is the worst case.
o_kill one STOP
make_pods 1 3 elsewhere >"$tmp/without"
make_pods 1 50 "$POD_NAMESPACE" >"$tmp/own"
make_pods 1000000 1000000 load >"$tmp/asking"
o_kill one CONT
t_eq "pods of other namespaces are created" 3 "$(awk '$1 == 201' "$tmp/without" | wc -l)"
t_eq "pods of the operator's own namespace are created" 50 "$(awk '$1 == 201' "$tmp/own" | wc -l)"
t_eq "a pod that asks is created too" 1 "$(awk '$1 == 201' "$tmp/asking" | wc -l)"
o_end one
make_pods 1 50 elsewhere >"$tmp/gone"
t_eq "pods of other namespaces are created when the process is gone" 50 "$(awk '$1 == 201' "$tmp/gone" | wc -l)"
most=$(percentile "$tmp/with" 100)
echo "# creation with the operator: p50 $(percentile "$tmp/with" 50) ms; without, in a namespace that is left out: p50" \
	"$(percentile "$tmp/own" 50) ms, slowest $(percentile "$tmp/own" 100) ms; in one that is not: slowest" \
	"$(percentile "$tmp/without" 100) ms (the webhook's timeout is 2 s); a pod that asks: $(percentile "$tmp/asking" 100) ms;" \
	"process gone: slowest $(percentile "$tmp/gone" 100) ms; slowed by more than the timeout:" \
	"$(slowed "${most%.*}" "$tmp/without" "$tmp/own" "$tmp/gone") of 103 pods of other namespaces"

echo "# switched off"
o_start off
o_wait_ready off
gone() {
	! o_curl GET "$1" >/dev/null
}
t_wait 40 "the validating configuration is removed" gone "$configurations/validatingwebhookconfigurations/orbweaver-validating"
t_wait 10 "the mutating configuration is removed" gone "$configurations/mutatingwebhookconfigurations/orbweaver-mutating"
t_wait 10 "the certificate is removed" gone "$secret"
o_end off
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What users are told on a real API server when something does not add up: pods that run without the injection that they asked for
# (event, metric, condition), what pods get and are refused that name networks, pools and resources that do not exist, names that cannot be, conflicts. The API server calls the
# webhook by URL on loopback.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

smc=$spider/namespaces/net/spidermultusconfigs
configurations=/apis/admissionregistration.k8s.io/v1
conf=/api/v1/namespaces/$POD_NAMESPACE/configmaps
group=cni.spidernet.io/rdma-resource-inject
crowd=$(o_size 2000 200)

# --- objects ------------------------------------------------------------------------------------------------------

# config NAME SPEC [ANNOTATIONS]
config() {
	jq -nc --arg name "$1" --argjson spec "$2" --argjson annotations "${3:-null}" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderMultusConfig", metadata: ({ name: $name, namespace: "net" } + if $annotations then
		{ annotations: $annotations } else {} end), spec: $spec }'
}

rail() {
	config "$1" "$(jq -nc --arg master "$2" --arg resource "$3" '{ cniType: "macvlan", macvlan: { master: [ $master ],
		rdmaResourceName: $resource, ippools: { ipv4: [ "rails" ] } } }')" "{ \"$group\": \"rails\" }"
}

pool() {
	jq -nc --arg name "$1" --arg subnet "$2" --arg range "$3" '{ apiVersion: "spiderpool.spidernet.io/v2beta1",
		kind: "SpiderIPPool", metadata: { name: $name }, spec: { subnet: $subnet, ips: [ $range ] } }'
}

# run_pod NAMESPACE NAME [GROUP]: created, and then running, as a kubelet would say.
run_pod() {
	o_curl POST "/api/v1/namespaces/$1/pods" "$(jq -nc --arg name "$2" --arg group "${3:-}" --arg key "$group" '{ apiVersion: "v1",
		kind: "Pod", metadata: ({ name: $name } + if $group == "" then {} else { annotations: { ($key): $group } } end),
		spec: { containers: [ { name: "c", image: "i" } ] } }')" >/dev/null &&
		o_curl PATCH "/api/v1/namespaces/$1/pods/$2/status" '{"status":{"phase":"Running"}}' >/dev/null
}

end_pod() {
	k delete pod -n "$1" "$2" --grace-period=0 --force >/dev/null 2>&1
}

# --- what is said -------------------------------------------------------------------------------------------------

# events NAMESPACE POD [TEXT...]: prints how often the pod was told; fails unless each TEXT is in some message.
events() {
	local text said

	said=$(o_curl GET "/api/v1/namespaces/$1/events?fieldSelector=involvedObject.name%3D$2,reason%3DNotInjected" |
		jq -c '[.items[] | select(.type == "Warning") | { message, count }]')
	for text in "${@:3}"; do
		[[ $said == *"$text"* ]] || { echo "$said"; return 1; }
	done
	jq '[.[].count] | add // 0' <<<"$said"
}

told_once() {
	[[ $(events "$1" "$2") == 1 ]]
}

findings_are() {
	local now

	now=$(o_metric one orbweaver_findings 'reason="NotInjected"')
	echo "$now"
	[[ $now == "$1" ]]
}

# says PATH TYPE STATUS REASON [TEXT...]: the condition is that, and each TEXT is in its message.
says() {
	local text condition

	condition=$(o_condition "$1" "$3" "$4" "$2") || return
	echo "$condition"
	for text in "${@:5}"; do
		[[ $condition == *"$text"* ]] || return 1
	done
}

nad() {
	jq -nc --arg name "$1" --argjson annotations "$2" '{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition",
		metadata: { name: $name, annotations: $annotations }, spec: { config: "{}" } }'
}

# naming NAME NETWORKS [LIMITS [LABELS]]: a pod that names networks itself.
naming() {
	jq -nc --arg name "$1" --arg networks "$2" --argjson limits "${3:-{\}}" --argjson labels "${4:-{\}}" '{ apiVersion: "v1",
		kind: "Pod", metadata: { name: $name, labels: $labels, annotations: (if $networks == "" then {} else
		{ "k8s.v1.cni.cncf.io/networks": $networks } end) },
		spec: { containers: [ { name: "c", image: "i", resources: { limits: $limits } }, { name: "d", image: "i" } ] } }'
}

# gets JQ NETWORKS [LIMITS [LABELS]]: a pod that names these is created, and JQ holds for it.
gets() {
	local name=probe-$RANDOM$RANDOM said

	o_curl POST /api/v1/namespaces/ml/pods "$(naming "$name" "${@:2}")" >/dev/null &&
		said=$(o_curl GET "/api/v1/namespaces/ml/pods/$name") && jq -c '.metadata.annotations, .spec.containers[0]' <<<"$said" &&
		jq -e "$1" <<<"$said"
}

# is_rejected NETWORKS TEXT...
is_rejected() {
	local text said

	said=$(naming "refused-$RANDOM" "$1" | k create -n ml -f - 2>&1) && return 1
	echo "$said"
	for text in "${@:2}"; do
		[[ $said == *"$text"* ]] || return 1
	done
}

free_port() {
	local port

	while port=$((20000 + RANDOM % 10000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

settings() {
	jq -nc --arg yaml "$1" '{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "spiderpool-conf" }, data: { "conf.yml": $yaml } }'
}

# --- the run ------------------------------------------------------------------------------------------------------

o_begin inject --no-controllers
for namespace in ml out net; do
	k create namespace "$namespace" >/dev/null
	k label --overwrite namespace "$namespace" "kubernetes.io/metadata.name=$namespace" >/dev/null
done
o_own_user webhook

echo "# pods that asked before the webhook was there"
o_curl POST "$smc" "$(rail a ens1 x.io/a)" >/dev/null
o_curl POST "$smc" "$(rail b ens2 x.io/b)" >/dev/null
o_curl POST "$spider/spiderippools" "$(pool rails 10.9.0.0/24 10.9.0.10-10.9.0.90)" >/dev/null
# Creation times have whole seconds: a config of the same second counts as older.
sleep 1
run_pod ml one rails
run_pod ml two rails
run_pod ml bystander
# Else the operator would make one, while nothing is to be sent.
o_coordinator '{"podCIDRType": "none"}' >/dev/null
o_start one --policy-namespaces default,net
o_wait_ready one
t_wait 10 "an event on the pod names what it lacks, why, and what to do" events ml one net/a net/b x.io/a x.io/b --webhook-addr \
	"delete the pod"
t_wait 5 "and on the other one" told_once ml two
t_eq "none on a pod that did not ask" 0 "$(events ml bystander)"
t_ok "the metric counts them" findings_are 2
t_wait 15 "the condition of the configs says how many and which" says "$smc/a" Injected False PodsWithout "2 running pods" ml/one ml/two
t_wait 5 "of the second one too" says "$smc/b" Injected False PodsWithout "2 running pods"
t_wait 15 "no node offers what they need, which is another condition" says "$smc/b" Degraded True ResourceMissing x.io/b
t_wait 5 "for both" says "$smc/a" Degraded True ResourceMissing x.io/a
ours=".user == \"$o_username\" and .kind != \"leases\""
t_wait 10 "nor is the coordinator left to do" o_condition "$spider/spidercoordinators/default" True Synced
t_wait 30 "nothing is sent any more" o_still 3 "$ours"
writes_before=$(o_writes "$ours")
k annotate pod -n ml one some=thing >/dev/null
k annotate pod -n ml bystander some=thing >/dev/null
sleep 3
t_eq "nothing is sent while nothing changes" "$writes_before" "$(o_writes "$ours")"

echo "# pods and configs that go"
end_pod ml two
t_wait 5 "a deleted pod is no finding any more" findings_are 1
t_wait 10 "nor in the condition" says "$smc/a" Injected False PodsWithout "1 running pod " ml/one
k delete smc -n net b >/dev/null
only_a_is_lacking() {
	[[ $(events ml one) == 2 ]] && o_curl GET "/api/v1/namespaces/ml/events?fieldSelector=involvedObject.name%3Done" |
		jq -e '[.items[].message] | any(test("net/a") and (test("net/b") | not))'
}
t_wait 10 "a deleted config is not lacking: the pod is told what still is" only_a_is_lacking
told_of_a() {
	[[ $(events ml one net/a) == 4 ]]
}
k annotate smc -n net a "$group=others" --overwrite >/dev/null
t_wait 10 "a group without configs: the pod is told, too" events ml one "names no SpiderMultusConfig that this pod may have"
t_ok "and counted" findings_are 1
k annotate smc -n net a "$group=rails" --overwrite >/dev/null
t_wait 10 "back in the group the config is told of" told_of_a
o_curl PATCH /api/v1/namespaces/ml/pods/one/status '{"status":{"phase":"Succeeded"}}' >/dev/null
t_wait 5 "a pod that has ended is none" findings_are 0
t_wait 10 "and nobody can say more without a webhook" says "$smc/a" Injected Unknown NoWebhook
k annotate smc -n net a "$group-" >/dev/null
no_condition() {
	o_curl GET "$smc/a" | jq -e '[.status.conditions[] | select(.type == "Injected")] == [] and
		(.metadata.labels // {} | has("'"$group"'") | not)'
}
t_wait 10 "out of all groups there is no such condition" no_condition
k annotate smc -n net a "$group=rails" >/dev/null
end_pod ml one
o_end one

echo "# with the webhook"
port=$(free_port)
o_curl POST "$conf" "$(settings $'podResourceInject:\n  enabled: true\n  namespacesExclude: [out]\n')" >/dev/null
o_start one --policy-namespaces default,net --webhook-addr "127.0.0.1:$port" --webhook-url "https://127.0.0.1:$port"
o_wait_ready one
called() {
	o_curl GET "$configurations/mutatingwebhookconfigurations/orbweaver-mutating" | jq -e '.webhooks | length == 2'
}
t_wait 20 "the API server knows the webhook" called
injected() {
	local name=probe-$RANDOM$RANDOM

	run_pod ml "$name" rails && o_curl GET "/api/v1/namespaces/ml/pods/$name" |
		jq -e '.metadata.annotations["k8s.v1.cni.cncf.io/networks"] == "net/a"'
}
t_wait 20 "pods get what they ask for" injected
k delete pods -n ml --all --grace-period=0 --force >/dev/null 2>&1
run_pod ml three rails
t_wait 10 "an injected pod is no finding" findings_are 0
t_eq "and is told nothing" 0 "$(events ml three)"
t_wait 10 "the condition is true" says "$smc/a" Injected True AsAsked
run_pod out four rails
t_wait 10 "a pod of a namespace that is left out is told so" events out four "leaves out namespace out" spiderpool-conf
t_ok "and counted" findings_are 1
t_wait 10 "and in the condition" says "$smc/a" Injected False PodsWithout out/four
o_curl PATCH "$conf/spiderpool-conf" "$(settings $'podResourceInject:\n  enabled: true\n')" >/dev/null
t_wait 10 "let in, it is told what is left to do" events out four "passed over this namespace when the pod was created" "delete the pod"
end_pod out four
pods_of_out_are_called() {
	o_curl GET "$configurations/mutatingwebhookconfigurations/orbweaver-mutating" | jq -e '[.webhooks[].namespaceSelector
		.matchExpressions // [] | .[] | .values[]] | index("out") == null'
}
t_wait 10 "the webhook is told of the namespace" pods_of_out_are_called
out_is_injected() {
	local name=probe-$RANDOM$RANDOM

	run_pod out "$name" rails && o_curl GET "/api/v1/namespaces/out/pods/$name" |
		jq -e '.metadata.annotations["k8s.v1.cni.cncf.io/networks"] == "net/a"'
}
t_wait 20 "made again, it gets its network" out_is_injected
k delete pods -n out --all --grace-period=0 --force >/dev/null 2>&1
t_wait 10 "nothing is found any more" findings_are 0

echo "# pods that name networks"
units='(.spec.containers[0].resources | if .limits["x.io/vf"] == .requests["x.io/vf"] then .limits["x.io/vf"] else "differ" end)'
for definition in 'vf1 {"k8s.v1.cni.cncf.io/resourceName":"x.io/vf"}' 'vf2 {"k8s.v1.cni.cncf.io/resourceName":"x.io/vf",
	"k8s.v1.cni.cncf.io/nodeSelector":"rail=eno3"}' 'odd {"k8s.v1.cni.cncf.io/resourceName":"cpu"}'; do
	o_curl POST "$nads/namespaces/ml/network-attachment-definitions" "$(nad "${definition%% *}" "${definition#* }")" >/dev/null
done
t_ok "they pass as they are until networkResources is enabled" gets '.spec.containers[0].resources == {}' vf1,nowhere
o_curl PATCH "$conf/spiderpool-conf" "$(settings $'podResourceInject:\n  enabled: true\n  networkResources: {enabled: true}\n')" \
	>/dev/null
t_wait 10 "then each network is a unit, in requests and limits" gets "$units == \"3\" and .spec.nodeSelector.rail == \"eno3\"" \
	'vf1, ml/vf2@net7,vf1'
t_ok "what the pod requests stays" gets "$units == \"1\"" vf1,vf1 '{"x.io/vf":"1"}'
t_ok "all containers have /etc/podnetinfo" gets '[.spec.containers[] | .volumeMounts[] | select(.name == "podnetinfo").mountPath] ==
	["/etc/podnetinfo", "/etc/podnetinfo"] and any(.spec.volumes[]; .name == "podnetinfo" and .downwardAPI)' vf1
t_ok "a network that does not exist is refused" is_rejected vf1,nowhere "NetworkAttachmentDefinition ml/nowhere does not exist" \
	"create it before the pod"
t_ok "an annotation that cannot be read" is_rejected 'vf1 vf2' "separate networks by commas"
t_ok "a resource that a network cannot have" is_rejected odd '"cpu" is not an extended resource'
t_ok "more networks than a pod can have" is_rejected "$(printf 'vf1,%.0s' {1..64})vf1" "a pod can have at most 64"
o_curl POST "$conf" "$(jq -nc '{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "nri-control-switches" }, data:
	{ "config.json": ({ features: { enableHonorExistingResources: true }, "user-defined-injections": { "x.io/rails":
	{ op: "add", path: "/metadata/annotations", value: { "k8s.v1.cni.cncf.io/networks": "vf1" } } } } | tojson) } }')" >/dev/null
t_wait 10 "with the switch its units are added" gets "$units == \"3\"" vf1,vf1 '{"x.io/vf":"1"}'
t_ok "a label asks for the annotations of an injection" gets "$units == \"1\"" "" '{}' '{"x.io/rails":"true"}'
k delete configmap -n "$POD_NAMESPACE" nri-control-switches >/dev/null
t_wait 10 "without the ConfigMap the settings count again" gets "$units == \"1\"" vf1,vf1 '{"x.io/vf":"1"}'
o_kill one STOP
t_ok "an operator that does not answer stops no pod" gets '.spec.containers[0].resources == {}' vf1
o_kill one CONT
k delete pods -n ml --all --grace-period=0 --force >/dev/null 2>&1
t_wait 10 "none of them is a finding" findings_are 0
o_curl PATCH "$conf/spiderpool-conf" "$(settings $'podResourceInject:\n  enabled: false\n')" >/dev/null
not_called() {
	o_curl GET "$configurations/mutatingwebhookconfigurations/orbweaver-mutating" | jq -e '.webhooks | length == 1'
}
t_wait 10 "switched off, the API server does not call any more" not_called
run_pod out five rails
t_wait 10 "a pod that asks is told that injection is off" events out five "not enabled"
k delete pods -n out --all --grace-period=0 --force >/dev/null 2>&1
t_wait 10 "it goes, and what was found with it" findings_are 0

echo "# a crowd"
for ((i = 0; i < crowd; i++)); do
	run_pod ml "crowd-$i" rails
done
t_wait 60 "$crowd pods without injection are counted" findings_are "$crowd"
t_wait 20 "and named in one line" says "$smc/a" Injected False PodsWithout "$crowd running pods" "ml/crowd-0, ml/crowd-1, ml/crowd-10, …"
k delete pods -n ml --all --grace-period=0 --force >/dev/null 2>&1
t_wait 60 "and forgotten" findings_are 0
t_wait 20 "with the condition" says "$smc/a" Injected True AsAsked

echo "# what a config needs"
o_curl POST "$smc" "$(config wants '{"cniType":"macvlan","macvlan":{"master":["eth1"],"rdmaResourceName":"x.io/none",
	"ippools":{"ipv4":["nowhere"]}}}')" >/dev/null
t_wait 20 "a pool that is missing is named, with what to do" says "$smc/wants" Degraded True PoolMissing nowhere "create it"
t_ok "and a resource that no node offers" says "$smc/wants" Degraded True PoolMissing x.io/none "offered by no node"
t_ok "its network is there all the same" says "$smc/wants" Ready True Rendered
o_curl POST "$spider/spiderippools" "$(pool nowhere 10.8.0.0/24 10.8.0.10-10.8.0.90)" >/dev/null
t_wait 5 "the pool comes: the resource is left" says "$smc/wants" Degraded True ResourceMissing x.io/none
o_curl POST /api/v1/nodes '{"apiVersion":"v1","kind":"Node","metadata":{"name":"w1"},
	"status":{"allocatable":{"cpu":"8","x.io/none":"4"},"capacity":{"cpu":"8","x.io/none":"4"}}}' >/dev/null
o_curl PATCH /api/v1/nodes/w1/status '{"status":{"allocatable":{"x.io/none":"4"},"capacity":{"x.io/none":"4"}}}' >/dev/null
t_wait 5 "a node offers it: all is well" says "$smc/wants" Degraded False AsExpected
k delete node w1 >/dev/null
t_wait 5 "the last node that offers it goes" says "$smc/wants" Degraded True ResourceMissing x.io/none
k delete sp nowhere >/dev/null
t_wait 5 "and the pool" says "$smc/wants" Degraded True PoolMissing nowhere

echo "# what cannot be"
# Stored before anybody could refuse it.
o_kill one STOP
k delete validatingwebhookconfigurations orbweaver-validating >/dev/null
k delete mutatingwebhookconfigurations orbweaver-mutating >/dev/null
o_curl POST "$smc" "$(config long '{"cniType":"macvlan","macvlan":{"master":["enp65s0f0np1"],"vlanID":100}}')" >/dev/null
o_curl POST "$smc" "$(config first '{"cniType":"macvlan","macvlan":{"master":["eth1"]}}' '{"multus.spidernet.io/cr-name":"same"}')" >/dev/null
sleep 1
o_curl POST "$smc" "$(config second '{"cniType":"macvlan","macvlan":{"master":["eth1"]}}' '{"multus.spidernet.io/cr-name":"same"}')" >/dev/null
o_curl POST "$spider/spiderippools" "$(pool older 10.7.0.0/24 10.7.0.1-10.7.0.9)" >/dev/null
sleep 1
o_curl POST "$spider/spiderippools" "$(pool younger 10.7.0.0/24 10.7.0.5-10.7.0.20)" >/dev/null
o_kill one CONT
t_wait 10 "a master whose VLAN makes its name too long" says "$smc/long" Ready False BadInterfaceName enp65s0f0np1.100 15
t_wait 5 "two configs for one name: the younger says who has it" says "$smc/second" Ready False NameConflict first cr-name
t_wait 10 "the older has it" says "$smc/first" Ready True Rendered
t_wait 5 "a pool that overlaps another: by name" says "$spider/spiderippools/younger" Ready False AddressOverlap older 10.7.0.5
is_ready() {
	o_curl GET "$1" | jq -e '.status.conditions[]? | select(.type == "Ready").status == "True"'
}
t_wait 10 "the older one is well" is_ready "$spider/spiderippools/older"
is_an_event() {
	k get events -A -o json | jq -e --arg reason "$1" '[.items[].reason] | index($reason) != null'
}
for reason in PoolMissing ResourceMissing BadInterfaceName NameConflict AddressOverlap; do
	t_wait 10 "$reason is an event too" is_an_event "$reason"
done
o_end one
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The alerts of manifests/overlays/monitoring about the operator, the first group: a Prometheus that scrapes a real one has none while
# all is well, and each of them when what it is about happens. Their times of patience are left out. alert_rules_test.sh has the others.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
policies=$sriov/namespaces/kube-system/sriovnetworknodepolicies
secret=orbweaver-webhook-certificate

rules() {
	sed -n '/^  groups:/,$p' manifests/overlays/monitoring/rules.yaml | sed 's/^  //; /^- name: orbweaver-addresses/,$d'
}

watch() {
	rules | sed '/^ *for:/d; s/\(decisions_failing_seconds) > \)300/\15/' >"$tmp/rules.yml"
	cat >"$tmp/prometheus.yml" <<-END
		global: { scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 500ms }
		rule_files: [$tmp/rules.yml]
		scrape_configs:
		- job_name: operator
		  static_configs: [{ targets: ["127.0.0.1:$(o_port op metrics)"], labels: { pod: op } }]
	END
	port=$(o_free_port)
	o_spawn prometheus prometheus --config.file "$tmp/prometheus.yml" --storage.tsdb.path "$tmp/tsdb" \
		--web.listen-address "127.0.0.1:$port" --log.level error
}

prometheus_has() {
	curl -sf --noproxy '*' --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" | jq -e '.data.result != []'
}

alerts() {
	curl -sf --noproxy '*' "http://127.0.0.1:$port/api/v1/alerts" |
		jq -r '[.data.alerts[] | select(.state == "firing").labels.alertname] | unique | join(" ")'
}

fires() {
	local now

	now=$(alerts)
	echo "$now"
	[[ " $now " == *" $1 "* ]]
}

ended() {
	local now

	now=$(alerts) && [[ " $now " != *" $1 "* ]]
}

# Rules that nothing here brings about.
never_fired() {
	rules | sed -n 's/^ *- alert: //p' | while read -r alert; do
		grep -q " fires $alert\$" tests/integration/operator_alerts_test.sh || echo "$alert"
	done
}

policy() {
	jq -nc --arg name "$1" --argjson spec "$2" '{ apiVersion: "sriovnetwork.openshift.io/v1",
		kind: "SriovNetworkNodePolicy", metadata: { name: $name }, spec: ({ resourceName: $name, numVfs: 4,
			nodeSelector: { role: $name }, nicSelector: { vendor: "15b3" } } + $spec) }'
}

node() {
	o_curl POST /api/v1/nodes "{\"metadata\":{\"name\":\"$1\",\"labels\":{\"role\":\"$2\"}}}" >/dev/null
}

# report NODE STATUS: the agent's part, once there is a NodeState.
report() {
	local state

	state=$(o_curl GET "$states/$1") && o_curl PUT "$states/$1/status" "$(jq --argjson status "$2" '.status = ({
		syncStatus: "Succeeded", interfaces: [ { pciAddress: "0000:3b:00.0", name: "p0", vendor: "15b3", deviceID: "1017",
			totalvfs: 8, numVfs: 4 } ] } + $status)' <<<"$state")"
}

condition() {
	jq -nc --arg type "$1" '[{ type: $type, status: "True", reason: "VfHeld", message: "m",
		lastTransitionTime: "2026-01-01T00:00:00Z" }]'
}

# A certificate of the user's for a day, that is its own authority, in place of the operator's.
own_certificate() {
	local name=orbweaver-webhook.$POD_NAMESPACE.svc

	openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj "/CN=$name" -addext "subjectAltName=DNS:$name" \
		-keyout "$tmp/own.key" -out "$tmp/own.crt" 2>/dev/null
	jq -n --arg name "$secret" --rawfile crt "$tmp/own.crt" --rawfile key "$tmp/own.key" '{ apiVersion: "v1", kind: "Secret",
		metadata: { name: $name }, type: "kubernetes.io/tls", data: ({ "tls.crt": $crt, "tls.key": $key, "ca.crt": $crt } |
		map_values(@base64)) }' | k replace -n "$POD_NAMESPACE" -f - >/dev/null
}

# A config with a NUL character in the name of a member, for which the schema has to be open; watches that are open keep the former one.
open_schema() {
	k get crd spidermultusconfigs.spiderpool.spidernet.io -o json |
		jq '.spec.versions[].schema.openAPIV3Schema.properties.spec["x-kubernetes-preserve-unknown-fields"] = true' |
		k replace -f - >/dev/null
}

add_unreadable() {
	o_curl DELETE "$spider/namespaces/default/spidermultusconfigs/odd" >/dev/null || true
	o_curl POST "$spider/namespaces/default/spidermultusconfigs" '{ "apiVersion": "spiderpool.spidernet.io/v2beta1",
		"kind": "SpiderMultusConfig", "metadata": { "name": "odd" }, "spec": { "cniType": "macvlan",
		"macvlan": { "master": ["ens1"] }, "odd": { "a\u0000b": 1 } } }' | jq -e '.spec.odd | length == 1' >/dev/null
}

t_ok "Prometheus is installed" command -v prometheus promtool
t_need
t_ok "the rules are good ones" promtool check rules <(rules)
t_eq "each of them fires in this test" "" "$(never_fired)"
o_begin alerts --no-controllers
t_ok "a schema that takes anything" open_schema
t_wait 30 "the server takes a config that cannot be read" add_unreadable
o_curl DELETE "$spider/namespaces/default/spidermultusconfigs/odd" >/dev/null
o_own_user webhook
o_through_relay "$o_kubeconfig"
o_kubeconfig=$o_relayed o_start op --webhook-addr 127.0.0.1:0
o_wait_ready op
node n1 good
o_curl POST "$policies" "$(policy good '{}')" >/dev/null
t_wait 20 "a node reports" report n1 '{"resources":[{"name":"spidernet.io/good","wanted":4,"healthy":4}]}'
watch
t_wait 20 "Prometheus sees the operator lead" prometheus_has 'orbweaver_leader == 1'
t_wait 20 "and policies that have what they ask for" prometheus_has 'orbweaver_policy_vfs{policy="kube-system/good",state="present"} == 4'
t_wait 20 "and a certificate that is far from its end" prometheus_has 'orbweaver_webhook_certificate_expiry_seconds > 0'
sleep 2
t_eq "while all is well there is no alert" "" "$(alerts)"

t_ok "a config that cannot be read" add_unreadable
t_wait 20 "an object that cannot be read" fires OrbweaverObjectUnreadable
o_curl DELETE "$spider/namespaces/default/spidermultusconfigs/odd" >/dev/null
o_curl POST "$policies" "$(policy wrong '{"numVfs":0}')" >/dev/null
t_wait 20 "a policy that cannot work is a finding" fires OrbweaverFinding
node n2 silent
o_curl POST "$policies" "$(policy silent '{}')" >/dev/null
node n3 good
t_wait 20 "another node reports" report n3 '{"resources":[{"name":"spidernet.io/good","wanted":4,"healthy":4}]}'
report n1 '{"resources":[{"name":"spidernet.io/good","wanted":4,"healthy":0}]}' >/dev/null
t_wait 20 "a resource that is wanted and not there" fires OrbweaverResourceEmpty
t_fails "while another node has it" fires OrbweaverResourceNowhere
report n3 '{"resources":[{"name":"spidernet.io/good","wanted":4,"healthy":0}]}' >/dev/null
t_wait 20 "one that no node has" fires OrbweaverResourceNowhere
report n1 "{\"conditions\":$(condition Blocked)}" >/dev/null
t_wait 20 "a change that waits for a pod" fires OrbweaverNodeBlocked
report n1 "{\"conditions\":$(condition RebootRequired)}" >/dev/null
t_wait 20 "a node that waits for a reboot" fires OrbweaverRebootRequired
o_curl PATCH "$policies/good" '{"spec":{"numVfs":8}}' >/dev/null
t_wait 20 "a policy that lacks VFs" fires OrbweaverPolicyLacksVfs
k delete clusterrolebinding orbweaver-operator >/dev/null
o_curl PATCH "$policies/good" '{"spec":{"numVfs":6}}' >/dev/null
t_wait 30 "a right that is missing" fires OrbweaverForbidden
t_wait 60 "decisions of which none is carried out" fires OrbweaverDecisionsFail
o_rights
o_take_right spiderreservedips
own_certificate
t_wait 30 "a certificate that nobody renews" fires OrbweaverCertificateEnds
k delete secret -n "$POD_NAMESPACE" "$secret" >/dev/null
t_wait 30 "which ends with the next certificate" ended OrbweaverCertificateEnds
t_wait 90 "a node that nobody speaks for" fires OrbweaverNoAgent
t_wait 180 "a kind that cannot be watched any more" fires OrbweaverWatchBroken
t_ok "the alert names it, and why" prometheus_has \
	'ALERTS{alertname="OrbweaverWatchBroken", alertstate="firing", kind="spiderreservedips", reason="Forbidden"}'
o_rights
t_wait 60 "it ends when the right is back" ended OrbweaverWatchBroken
o_end op
t_wait 330 "an operator that is gone" fires OrbweaverNoLeader
o_kill prometheus KILL
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One kind that cannot be watched any more does not take both replicas out of service: they stay ready, the webhook keeps
# answering, all other kinds are dealt with, and a gauge and an event say which kind it is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

smc=$spider/namespaces/default/spidermultusconfigs
webhooks=/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations

config() {
	jq -nc --arg name "$1" --argjson spec "$2" '{ apiVersion: "spiderpool.spidernet.io/v2beta1", kind: "SpiderMultusConfig",
		metadata: { name: $name }, spec: $spec }'
}

start_replica() {
	o_kubeconfig=$o_relayed o_start "$1" --debug-addr 127.0.0.1:0 --webhook-addr "127.0.0.1:$2" --webhook-url "https://127.0.0.1:$port"
}

# debug ID PAGE [CURL OPTION...]
debug() {
	local port

	port=$(jq -Rer 'fromjson? | select(.msg == "serving debug pages").port' "$tmp/$1.log")
	curl -sf --noproxy '*' --max-time 5 "${@:3}" "http://127.0.0.1:$port/debug/$2"
}

debug_says() {
	debug "$1" "$2" | jq -ec "$3"
}

# From the key to the last write, all lines carry the number of the decision.
decision_has_a_number() {
	jq -Rne '[inputs | fromjson?] | (map(select(.msg == "decided" and .key == "default/good"))[0].id) as $id |
		$id != null and any(.[]; .msg == "writing" and .id == $id)' "$tmp/$1.log"
}

# The API server asks us, and refuses what we do not allow.
webhook_refuses() {
	local answer

	answer=$(curl -s --noproxy '*' --max-time 20 --cacert "$o_dir/pki/ca.crt" -H "Authorization: Bearer $(<"$o_dir/pki/token")" \
		-H 'Content-Type: application/json' -X POST --data-binary "$(config bad '{"cniType":"macvlan"}')" "$o_api$smc?dryRun=All")
	jq -c .message <<<"$answer"
	[[ $(jq -r .message <<<"$answer") == *orbweaver* ]]
}

broken() {
	o_http "$1" /metrics | grep -F "orbweaver_informer_broken_seconds{kind=\"$2\",reason=\"$3\"}"
}

not_broken() {
	! o_http "$1" /metrics | grep -F 'orbweaver_informer_broken_seconds{'
}

event() {
	k get events -n "$POD_NAMESPACE" -o json | jq -ec --arg reason "$1" --arg kind "$2" \
		'.items[] | select(.reason == $reason and (.message | contains($kind))) | .message'
}

o_begin trouble --no-controllers
o_own_user webhook
o_through_relay "$o_kubeconfig"
port=$(o_free_port)
start_replica one "$port"
o_wait_ready one
start_replica two "$(o_free_port)"
o_wait_ready two
t_wait 30 "webhooks are in the cluster" o_curl GET "$webhooks/orbweaver-validating"
t_wait 60 "and serve" webhook_refuses

echo "# a right is taken away"
o_take_right spiderreservedips
for id in one two; do
	t_wait 60 "a gauge of $id names kind and reason" broken "$id" spiderreservedips Forbidden
	t_ok "$id stays ready" o_ready "$id"
	t_ok "and alive" o_http "$id" /healthz
done
t_wait 20 "an event names it, too" event WatchFailed spiderreservedips
t_ok "the webhook keeps serving" webhook_refuses
t_ok "a debug page says what is wrong with which kind" debug_says one caches \
	'.spiderreservedips | .synced and .reason == "Forbidden" and (.message | contains("grant"))'
t_ok "and what is seen of the others" debug_says one caches '.namespaces | .objects > 0 and (.resourceVersion | tonumber) > 0'
t_eq "the log level is changed while it runs" operator=debug "$(debug one loglevel -X PUT --data-binary operator=debug)"
t_fails "a level that there is not is refused" debug one loglevel -X PUT --data-binary loud
o_kill two USR1
t_wait 5 "a signal changes it, too" o_logged two '.msg == "log level toggled by SIGUSR1" and .log_level == "debug"'
o_curl POST "$smc" "$(config good '{"cniType":"macvlan","macvlan":{"master":["eth1"]}}')" >/dev/null
t_wait 20 "other kinds are dealt with" o_condition "$smc/good" True Rendered
t_ok "a decision can be followed from its key to its writes" decision_has_a_number one
t_ok "queues are on a page" debug_says one queues '."multus-config".waiting == 0'
t_ok "connections, too" debug_says one connections 'any(.[]; .carries == "watches" and .streams > 0)'
t_ok "and nothing failed" debug_says one errors '. == {}'

echo "# it is given back"
o_rights
for id in one two; do
	t_wait 60 "the gauge of $id goes" not_broken "$id"
done
t_wait 20 "and an event says so" event WatchResumed spiderreservedips
o_end two
o_end one

echo "# a server that keeps its version to itself"
k delete clusterrolebinding system:public-info-viewer system:discovery >/dev/null
o_kubeconfig=$o_relayed o_start three
o_wait_ready three
t_ok "what that means is in the log" o_logged three '.msg == "API server does not say its version" and .level == "warn" and
	(.effect | contains("without matchConditions")) and (.remedy | contains("system:public-info-viewer"))'
t_wait 20 "it leads all the same" o_leads three
o_end three
t_done

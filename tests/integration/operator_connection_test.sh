#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One of several connections hangs: it acknowledges everything and passes nothing on, while the others go on talking. Every
# kind is seen again soon, and no write is lost. The server allows few streams, so that there are several connections.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

kinds=(nodes namespaces spidermultusconfigs sriovnetworknodepolicies sriovnetworkpoolconfigs spiderippools
	spiderreservedips network-attachment-definitions sriovnetworks spidercoordinators)

add() {
	o_curl POST "$1" "{\"apiVersion\": \"$2\", \"kind\": \"$3\", \"metadata\": {\"name\": \"$4\"}${5:+, \"spec\": $5}}" >/dev/null
}

# One object of each kind.
touch_all() {
	add /api/v1/nodes v1 Node "$1"
	add /api/v1/namespaces v1 Namespace "$1"
	add "$spider/namespaces/kube-system/spidermultusconfigs" spiderpool.spidernet.io/v2beta1 SpiderMultusConfig "$1" \
		'{"cniType": "macvlan", "macvlan": {"master": ["ens1"]}}'
	add "$sriov/namespaces/kube-system/sriovnetworknodepolicies" sriovnetwork.openshift.io/v1 SriovNetworkNodePolicy "$1" \
		'{"resourceName": "r", "numVfs": 1, "nodeSelector": {"none": "such"}, "nicSelector": {"vendor": "8086"}}'
	add "$sriov/namespaces/kube-system/sriovnetworkpoolconfigs" sriovnetwork.openshift.io/v1 SriovNetworkPoolConfig "$1" '{}'
	add "$spider/spiderippools" spiderpool.spidernet.io/v2beta1 SpiderIPPool "$1" \
		"{\"subnet\": \"10.$((++subnet)).0.0/16\", \"ips\": [\"10.$subnet.0.10\"]}"
	add "$spider/spiderreservedips" spiderpool.spidernet.io/v2beta1 SpiderReservedIP "$1" \
		"{\"ips\": [\"10.$subnet.0.20\"]}"
	add "$nads/namespaces/default/network-attachment-definitions" k8s.cni.cncf.io/v1 NetworkAttachmentDefinition "$1" \
		'{"config": "{}"}'
	add "$sriov/namespaces/kube-system/sriovnetworks" sriovnetwork.openshift.io/v1 SriovNetwork "$1" '{"resourceName": "r"}'
	add "$spider/spidercoordinators" spiderpool.spidernet.io/v2beta1 SpiderCoordinator "$1" '{}'
}

# The operator has heard more of each kind than $tmp/before says.
events() {
	o_http op /metrics | sed -n 's/^orbweaver_informer_events_total{resource="\([a-z-]*\)"} /\1 /p'
}

all_heard() {
	local kind now before

	events >"$tmp/now"
	for kind in "${kinds[@]}"; do
		now=$(sed -n "s/^$kind //p" "$tmp/now")
		before=$(sed -n "s/^$kind //p" "$tmp/before")
		((${now:-0} > ${before:-0})) || {
			echo "nothing of $kind"
			return 1
		}
	done
}

# Something is always heard on the other connections.
chatter() {
	local n=0

	while sleep 0.5; do
		o_curl PATCH /api/v1/nodes/chatter "{\"metadata\": {\"labels\": {\"n\": \"$((++n))\"}}}" >/dev/null || true
		o_curl PATCH /api/v1/namespaces/default "{\"metadata\": {\"labels\": {\"n\": \"$n\"}}}" >/dev/null || true
	done
}

has_nad() {
	o_nad kube-system "$1" >/dev/null
}

o_begin connection --no-controllers --streams 10
o_own_user
o_through_relay "$o_kubeconfig"
o_kubeconfig=$o_relayed o_start op
o_wait_ready op
t_wait 15 "it leads" o_leads op
subnet=0
add /api/v1/nodes v1 Node chatter
o_spawn chatter chatter

for round in 1 2 3 4 5; do
	events >"$tmp/before"
	o_kill relay USR2
	t_wait 5 "$round: a connection hangs" grep -q "\"hanging\", \"number\": [1-9]" "$tmp/relay.log"
	t_ok "$round: it was one of several" jq -e '.of >= 3' "$tmp/relay.log"
	: >"$tmp/relay.log"
	began=$SECONDS
	t_ok "$round: an object of each kind" touch_all "round-$round"
	t_wait 60 "$round: the operator hears of each kind" all_heard
	t_wait 60 "$round: and acts on it" has_nad "round-$round"
	echo "# round $round: $((SECONDS - began)) s"
done
t_wait 30 "nothing is left to do" o_rest
t_ok "silent connections were given up" o_logged op '.msg | contains("connection is silent")'
t_ok "no write was lost" test "$(jq -Rn '[inputs | fromjson? | select(.msg == "cannot carry out a decision, will retry" and
	.reason == "DeadlineExceeded")] | length' "$tmp/op.log")" -eq 0
t_ok "it led all the time" test "$(jq -Rn '[inputs | fromjson? | select(.msg == "leading")] | length' "$tmp/op.log")" -eq 1
o_kill chatter KILL
o_end op
t_done

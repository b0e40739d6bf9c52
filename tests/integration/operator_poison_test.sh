#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One bad object among many good ones: whoever may create an object can put NUL characters into it. Nothing else is affected, also after a restart, and what cannot be read is named and not taken for deleted.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

meta='"annotations": {"note": "a\u0000b"}'
config='{"cniType": "macvlan", "macvlan": {"master": ["ens1"]}}'

# poison PATH APIVERSION KIND NAME FIELDS
poison() {
	o_curl POST "$1" "{\"apiVersion\": \"$2\", \"kind\": \"$3\", \"metadata\": {\"name\": \"$4\", $meta}, $5}" >/dev/null
}

add_config() {
	o_curl POST "$spider/namespaces/kube-system/spidermultusconfigs" "{\"apiVersion\": \"spiderpool.spidernet.io/v2beta1\",
		\"kind\": \"SpiderMultusConfig\", \"metadata\": {\"name\": \"$1\"}, \"spec\": ${2:-$config}}" >/dev/null
}

has_nad() {
	o_nad kube-system "$1" >/dev/null
}

unreadable() {
	[[ $(o_metric op orbweaver_informer_unreadable_objects) == "$1" ]]
}

no_trouble() {
	[[ $(jq -Rn '[inputs | fromjson? | select(.msg | startswith("cannot watch, will retry"))] | length' "$tmp/op.log") == 0 ]]
}

everything_works() {
	t_ok "$1: a config after it" add_config "after-$2"
	t_wait 15 "$1: gets its NetworkAttachmentDefinition" has_nad "after-$2"
	t_ok "$1: the operator is ready" o_ready op
	t_ok "$1: no kind is in trouble" no_trouble
}

poison_all() {
	t_ok "a poisoned NetworkAttachmentDefinition" poison "$nads/namespaces/tenant/network-attachment-definitions" \
		k8s.cni.cncf.io/v1 NetworkAttachmentDefinition poison '"spec": {"config": "{}"}'
	t_ok "a poisoned Pod" poison /api/v1/namespaces/tenant/pods v1 Pod poison \
		'"spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]}'
	t_ok "that runs" o_curl PATCH /api/v1/namespaces/tenant/pods/poison/status '{"status": {"phase": "Running"}}'
	t_ok "a poisoned SpiderMultusConfig" poison "$spider/namespaces/kube-system/spidermultusconfigs" \
		spiderpool.spidernet.io/v2beta1 SpiderMultusConfig poison "\"spec\": $config"
	t_ok "a poisoned Node" poison /api/v1/nodes v1 Node poison '"spec": {}'
}

# A config that cannot be read: a NUL character in the name of a member. The schema has to be open for that.
odd() {
	printf '%s' "${config%\}}, \"odd\": {\"a\\u0000b\": 1}}"
}

open_schema() {
	k get crd spidermultusconfigs.spiderpool.spidernet.io -o json |
		jq '.spec.versions[].schema.openAPIV3Schema.properties.spec["x-kubernetes-preserve-unknown-fields"] = true' |
		k replace -f - >/dev/null
}

is_odd() {
	o_curl GET "$spider/namespaces/kube-system/spidermultusconfigs/$1" | jq -e '.spec.odd | length == 1' >/dev/null
}

add_odd() {
	o_curl DELETE "$spider/namespaces/kube-system/spidermultusconfigs/probe" >/dev/null || true
	add_config probe "$(odd)" && is_odd probe
}

make_odd() {
	o_curl PATCH "$spider/namespaces/kube-system/spidermultusconfigs/$1" "{\"spec\": $(odd)}" >/dev/null
}

mend() {
	o_curl PATCH "$spider/namespaces/kube-system/spidermultusconfigs/$1" '{"spec": {"odd": null}}' >/dev/null
}

restart() {
	o_end op
	: >"$tmp/op.log"
	o_start op
	o_wait_ready op
}

o_begin poison --no-controllers
k create namespace tenant >/dev/null
o_own_user
o_start op
o_wait_ready op
t_wait 15 "it leads" o_leads op

poison_all
everything_works "poisoned" running
t_wait 15 "nothing is left to do" o_rest
t_wait 10 "the poisoned config has its NetworkAttachmentDefinition, too" has_nad poison
restart
everything_works "poisoned, after a restart" restarted
t_wait 15 "nothing is left to do" o_rest
t_wait 5 "all of it can be read" unreadable 0

# Watches that are open keep the schema with which they began.
t_ok "a schema that takes anything" open_schema
t_wait 30 "the server takes a config that cannot be read" add_odd
restart
t_wait 10 "it is counted" unreadable 1
t_ok "a config" add_config odd
t_wait 15 "it has a NetworkAttachmentDefinition" has_nad odd
t_ok "a config turns into one that cannot be read" make_odd odd
t_wait 10 "both are counted" unreadable 2
t_ok "the log names it" o_logged op \
	'.level == "error" and .namespace == "kube-system" and .name == "odd" and (.error | contains("NUL"))'
t_ok "and says what to do" o_logged op '.name == "odd" and (.remedy | contains("correct or delete"))'
everything_works "with configs that cannot be read" odd
restart
t_wait 10 "they are counted after a restart" unreadable 2
everything_works "with configs that cannot be read, after a restart" odd-restarted
sleep 3
t_ok "what cannot be read is not taken for deleted" has_nad odd
t_ok "a config is mended" mend odd
t_ok "the other one is deleted" o_curl DELETE "$spider/namespaces/kube-system/spidermultusconfigs/probe"
t_wait 10 "none is left that cannot be read" unreadable 0
t_ok "the log says so" o_logged op '.msg | contains("readable again")'
t_wait 15 "the mended one is looked at again" o_condition "$spider/namespaces/kube-system/spidermultusconfigs/odd" True Rendered
o_end op
t_done

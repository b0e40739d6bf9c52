#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The operator is killed with SIGKILL, 20 times, at random moments while users make 1,000 changes. In the end all is as it
# should be, nothing is lost, and nothing was written for nothing. Then it meets many configs at once: their networks come first.
# Environment: ROUNDS, how often all of that (1; LONG=1: 20); SEED, what changes and when to kill (1).
#
# "For nothing" is judged by what the API server tells:
# - Each write gives a new version of its object (o_writes_without_effect).
# - A NetworkAttachmentDefinition follows from its config. Each change of the config (by the audit log) calls for one write at
#   most, and so does each change that somebody made to it by hand. That an operator died calls for none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

rounds=${ROUNDS:-$(o_size 20 1)}
seed=${SEED:-1}
kills=20
changes=1000

watch_all() {
	o_watch spidermultusconfigs "$spider/spidermultusconfigs"
	o_watch spiderippools "$spider/spiderippools"
	o_watch sriovnetworknodepolicies "$sriov/sriovnetworknodepolicies"
	o_watch sriovnetworknodestates "$sriov/sriovnetworknodestates"
	o_watch network-attachment-definitions "$nads/network-attachment-definitions"
}

# Names of NetworkAttachmentDefinitions are those of their configs, with or without "-renamed" (tests/integration/churn.c).
needless_writes() {
	o_audit | jq -s -r 'map(select(.sub == "" and .user != "admin")) |
		map(.source = (.key | sub("-renamed$"; ""))) | . as $all |
		map(select(.kind == "network-attachment-definitions" and .user != "a-user")) | group_by(.key)[] |
		.[0] as { $key, $source } | length as $writes |
		([$all[] | select(.user == "a-user" and (.kind == "spidermultusconfigs" and .key == $source or
			.kind == "network-attachment-definitions" and .key == $key))] | length) as $causes |
		select($writes > $causes) | "\($key): \($writes) writes for \($causes) changes"'
}

# Without any of our own code: what is Ready has its NetworkAttachmentDefinition, and each has a config that lives.
lost_or_left_over() {
	k get smc,net-attach-def -A -o json | jq -r '
		(.items | map(select(.kind == "SpiderMultusConfig"))) as $configs |
		(.items | map(select(.kind != "SpiderMultusConfig") | select(.metadata.ownerReferences))) as $nads |
		($configs[] | . as $c | select([$nads[] | select(.metadata.ownerReferences[0].uid == $c.metadata.uid)] | length != 1) |
			"\(.metadata.name) has not one NetworkAttachmentDefinition"),
		($nads[] | . as $n | select([$configs[] | select(.metadata.uid == $n.metadata.ownerReferences[0].uid)] | length != 1) |
			"\(.metadata.name) has no config"),
		($configs[] | select(.metadata.generation as $now | any(.status.conditions // [] | .[];
			.type == "Ready" and .status == "True" and .observedGeneration == $now) | not) |
			"\(.metadata.name) is not Ready")'
}

round() {
	local n i

	n=$1
	RANDOM=$((seed + n))
	o_spawn "churn-$n" "$o_programs/tests/integration/churn" --kubeconfig "$o_user_kubeconfig" --nodes 8 \
		--changes "$changes" --rate 40 --seed $((seed + n))
	for ((i = 1; i <= kills; i++)); do
		o_start "op-$n-$i" --leader-elect=false
		sleep "$(printf '0.%03d' $((RANDOM % 1000)))"
		# Most of them get far enough to write.
		((RANDOM % 4 == 0)) || sleep 0.7
		o_kill "op-$n-$i" KILL
		t_ok "round $n: nothing but log lines until kill $i" o_log_is_clean "op-$n-$i"
	done
	t_wait 120 "round $n: all $changes changes are made" o_gone "churn-$n"
	o_reap "churn-$n"
	t_eq "round $n: and none failed" "0 " "$o_status $(cat "$tmp/churn-$n.log")"
	o_start "op-$n"
	o_wait_ready "op-$n"
	t_wait 60 "round $n: everything is as the reconcilers want it" o_rest
	t_ok "round $n: each config has its own NetworkAttachmentDefinition and is Ready" o_says_nothing lost_or_left_over
	t_ok "round $n: no write was without effect" o_says_nothing o_writes_without_effect
	t_ok "round $n: no NetworkAttachmentDefinition was written without cause" o_says_nothing needless_writes
	o_end "op-$n"
}

# many N: configs that no operator has seen.
many() {
	local i

	for ((i = 0; i < $1; i++)); do
		printf '%s\n' --- 'apiVersion: spiderpool.spidernet.io/v2beta1' 'kind: SpiderMultusConfig' \
			"metadata: { name: many-$i, namespace: kube-system }" 'spec: { cniType: macvlan, macvlan: { master: [eth1] } }'
	done
}
are_ready() {
	[[ $(k get smc -n kube-system -o json | jq '[.items[] | select(.metadata.name | startswith("many-")) |
		select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))] | length') == "$1" ]]
}
# How many of them had no network when the first of their statuses was written.
nads_after_the_first_status() {
	o_audit | jq -s 'map(select(.user != "admin" and (.key | test("many-")))) |
		(map(.kind == "spidermultusconfigs" and .sub == "status") | index(true)) as $first |
		[.[$first:][] | select(.kind == "network-attachment-definitions" and .sub == "")] | length'
}

o_begin crash --no-controllers
o_own_user
o_own_user_of_changes
watch_all
o_nodes nodes --generate nodes=8
t_wait 20 "the nodes are there" o_curl GET /api/v1/nodes/node-00007
for ((n = 1; n <= rounds; n++)); do
	round "$n"
done
# A window of 64 and what was under way: the statuses of the last ones may go with their networks.
many 400 >"$tmp/many.yaml"
t_ok "400 configs while no operator is there" k create -f "$tmp/many.yaml"
o_start op-many
t_wait 60 "all of them are Ready" are_ready 400
late=$(nads_after_the_first_status)
t_ok "pods' networks came before what people read: $late of 400 after the first status" test "$late" -le 128
o_end op-many
echo "# $(o_writes '.user == "a-user"') changes, $(o_writes '.user != "a-user" and .user != "admin"') writes of $((kills * rounds)) killed operators and their successors"
t_done

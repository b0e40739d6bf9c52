#!/bin/bash
# The operator is killed with SIGKILL, 20 times, at random moments while users make 1,000 changes. In the end all is as it
# should be, nothing is lost, and nothing was written for nothing.
# Environment: ROUNDS, how often all of that (1; LONG=1: 20); SEED, what changes and when to kill (1).
#
# "For nothing" is judged by what the API server tells:
# - A write that changes nothing gives no new version of the object, so watchers hear nothing of it. For each object the
#   audit log must not have more successful writes than a watch, open all the time, has events.
# - A NetworkAttachmentDefinition follows from its config. Each change of the config (by the audit log) calls for one write at
#   most, and so does each change that somebody made to it by hand. That an operator died calls for none.
# shellcheck disable=SC2317 # functions that run as COMMAND of a check or in the trap look unreachable
set -euo pipefail
# shellcheck source=tests/integration/operator.sh
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

rounds=${ROUNDS:-$(o_size 20 1)}
seed=${SEED:-1}
kills=20
changes=1000

# Watch a collection from now on: one line per event.
watch_collection() {
	local name=$1 path=$2 version

	version=$(o_curl GET "$path" | jq -r .metadata.resourceVersion)
	o_spawn "watch-$name" curl -sfN --noproxy '*' --cacert "$o_dir/pki/ca.crt" \
		-H "Authorization: Bearer $(<"$o_dir/pki/token")" "$o_api$path?watch=1&timeoutSeconds=7200&resourceVersion=$version"
}

watch_all() {
	watch_collection spidermultusconfigs "$spider/spidermultusconfigs"
	watch_collection spiderippools "$spider/spiderippools"
	watch_collection sriovnetworknodepolicies "$sriov/sriovnetworknodepolicies"
	watch_collection sriovnetworknodestates "$sriov/sriovnetworknodestates"
	watch_collection network-attachment-definitions "$nads/network-attachment-definitions"
}

# Events of all watches, counted: { "KIND KEY": number }.
count_events() {
	local file kind

	for file in "$tmp"/watch-*.out; do
		kind=${file##*/watch-}
		jq -c --arg kind "${kind%.out}" '"\($kind) \([.object.metadata.namespace, .object.metadata.name] |
			map(select(.)) | join("/"))"' "$file"
	done | jq -s 'group_by(.) | map({ key: .[0], value: length }) | from_entries' >"$tmp/events.json"
}

writes_without_effect() {
	count_events && o_audit | jq -s --slurpfile events "$tmp/events.json" -r '
		map(select(.kind | IN("spidermultusconfigs", "spiderippools", "sriovnetworknodepolicies", "sriovnetworknodestates",
			"network-attachment-definitions"))) | group_by([.kind, .key])[] | "\(.[0].kind) \(.[0].key)" as $key |
		select(length > ($events[0][$key] // 0)) | "\($key): \(length) writes, \($events[0][$key] // 0) versions"'
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

says_nothing() {
	local said

	said=$("$@") || return
	echo "$said"
	[[ -z $said ]]
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
	t_ok "round $n: each config has its own NetworkAttachmentDefinition and is Ready" says_nothing lost_or_left_over
	t_ok "round $n: no write was without effect" says_nothing writes_without_effect
	t_ok "round $n: no NetworkAttachmentDefinition was written without cause" says_nothing needless_writes
	o_end "op-$n"
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
echo "# $(o_writes '.user == "a-user"') changes, $(o_writes '.user != "a-user" and .user != "admin"') writes of $((kills * rounds)) killed operators and their successors"
t_done

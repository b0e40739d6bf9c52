#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two replicas, one leader: the other takes over when the leader dies, leaves or is stopped; a leader that was stopped and
# goes on after somebody else took over writes nothing more.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

# lib/kube/lease.h: LEASE_DURATION_S, and the pause between two looks of a candidate. Tests assert no tight times: the rest of
# the limit is for a machine that is busy with other things.
lease_s=15
takeover_s=$((lease_s + 15))
configs=$spider/namespaces/default/spidermultusconfigs

start_replica() {
	o_kubeconfig=$(o_user "user-of-$1")
	o_grant "user-of-$1"
	o_start "$1"
	o_wait_ready "$1"
}

# Until $1 leads, and how long that took.
takes_over() {
	local who=$1 name=$2 limit=$3 start

	start=$(date +%s%3N)
	t_wait "$limit" "$name" o_leads "$who"
	echo "# $name: after $(($(date +%s%3N) - start)) ms"
}

holder() {
	o_curl GET "/apis/coordination.k8s.io/v1/namespaces/$POD_NAMESPACE/leases/orbweaver-operator" | jq -r .spec.holderIdentity
}

identity() {
	jq -Rr 'fromjson? | select(.msg == "started").identity' "$tmp/$1.log" | head -n 1
}

make_config() {
	o_curl POST "$configs" "{\"apiVersion\":\"spiderpool.spidernet.io/v2beta1\",\"kind\":\"SpiderMultusConfig\",
		\"metadata\":{\"name\":\"$1\"},\"spec\":{\"cniType\":\"macvlan\",\"macvlan\":{\"master\":[\"eth1\"]}}}" >/dev/null
	t_wait 20 "$2" o_condition "$configs/$1" True Rendered
}

# Writes of a replica from a time on; JQ narrows.
writes_of() {
	o_writes ".user == \"user-of-$1\" and .time >= \"$2\" and (${3:-true})"
}

o_begin replicas --no-controllers
o_rights
o_own_user_of_changes
o_nodes nodes --generate nodes=2
start_replica one
t_wait 10 "the first replica leads" o_leads one
start_replica two
t_fails "the second does not" o_leads two
t_eq "the Lease names the first" "$(identity one)" "$(holder)"
make_config first "a change is dealt with"
t_eq "the replica that does not lead writes nothing" 0 "$(writes_of two "")"

# --- a leader dies ------------------------------------------------------------------------------------------------

o_kill one KILL
takes_over two "the second replica leads after the first was killed" "$takeover_s"
make_config second "the new leader deals with changes"
t_eq "the Lease names the new leader" "$(identity two)" "$(holder)"

# --- a leader leaves ----------------------------------------------------------------------------------------------

start_replica three
t_fails "one that comes while there is a leader does not lead" o_leads three
o_end two
takes_over three "after an orderly end there is nothing to wait for" 10
make_config third "the third replica deals with changes"

# --- a leader stands still ----------------------------------------------------------------------------------------

# Stopped in the middle of work, with writes under way and more waiting.
start_replica four
o_spawn churn "$o_programs/tests/integration/churn" --kubeconfig "$o_user_kubeconfig" --nodes 2 --changes 900 --rate 50
sleep 3
t_ok "the leader is at work" test "$(writes_of three "" '.kind == "network-attachment-definitions"')" -gt 5
o_kill three STOP
takes_over four "the fourth replica leads while the third stands still" "$takeover_s"
t_ok "the new leader was at work too" test "$(writes_of four "" '.kind == "network-attachment-definitions"')" -gt 0
since=$(o_now)
o_kill three CONT
t_wait 60 "changes are made" o_gone churn
o_reap churn
t_eq "none of them failed" "0 " "$o_status $(cat "$tmp/churn.log")"
t_wait 60 "all of them are dealt with" o_rest
t_ok "the former leader runs" o_runs three
t_eq "but has written nothing since it went on" 0 "$(writes_of three "$since")"
t_wait 10 "and knows that it leads no more" o_logged three '.msg == "not leading any more"'
t_fails "its metrics say so too" o_leads three
t_eq "the Lease names the fourth" "$(identity four)" "$(holder)"
o_end four
takes_over three "the former leader can lead again" 10
make_config fourth "and deals with changes"
o_end three
t_eq "the Lease is free in the end" "" "$(holder)"

echo "# without an election: agents read the Lease all the same"
# says_for_agents SECONDS NAMESPACE
says_for_agents() {
	o_curl GET "/apis/coordination.k8s.io/v1/namespaces/$POD_NAMESPACE/leases/orbweaver-operator" |
		jq -e --arg seconds "$1" --arg namespace "$2" '.metadata.annotations |
			.["orbweaver.io/renew-deadline-seconds"] == $seconds and .["orbweaver.io/config-namespace"] == $namespace'
}
t_ok "it says for how long a leader writes, and where its settings are" says_for_agents 10 "$POD_NAMESPACE"
o_start alone --leader-elect=false --leader-elect-lease-duration 60s --leader-elect-renew-deadline 40s --config-namespace spiderpool
o_wait_ready alone
t_wait 10 "an operator without an election leads" o_leads alone
t_wait 10 "and says so there, with its own settings" says_for_agents 40 spiderpool
t_eq "it holds the Lease" "$(identity alone)" "$(holder)"
o_end alone
t_eq "which is free in the end" "" "$(holder)"
t_done

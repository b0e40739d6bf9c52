#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# etcd is restored from a backup under a running operator: revisions go backwards, objects of before are there again and
# later ones are gone. The operator notices by itself, and ends where the pure functions say.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

changes=$(o_size 2000 300)

revision() {
	o_curl GET "/api/v1/namespaces?limit=1" | jq -r .metadata.resourceVersion
}

noticed() {
	o_logged op '.msg | contains("restored from a backup")'
}

o_begin restore --no-controllers
o_own_user
o_own_user_of_changes
o_nodes nodes --generate nodes=4
o_start op
o_wait_ready op
t_ok "a first load" o_churn --changes 200 --rate 0 --nodes 4
t_wait 30 "is dealt with" o_rest
t_ok "a backup" hack/cluster snapshot "$o_cluster" "$tmp/backup"
saved=$(revision)
t_ok "a load that the backup knows nothing of" o_churn --changes "$changes" --rate 0 --nodes 4 --seed 2
t_wait 60 "is dealt with" o_rest
seen=$(revision)
t_ok "etcd is restored" hack/cluster restore "$o_cluster" "$tmp/backup"
now=$(revision)
t_ok "revisions went backwards ($saved saved, $seen seen, $now now)" test "$now" -lt "$seen"
t_ok "changes right after that" o_churn --changes 50 --rate 0 --nodes 4 --seed 3
t_wait 30 "the operator notices" noticed
t_wait 90 "the end state is what the pure functions say" o_rest
o_wait_ready op
t_ok "later changes" o_churn --changes 50 --rate 0 --nodes 4 --seed 4
t_wait 60 "are dealt with" o_rest
o_end op
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without opt-in nobody is evicted, cordoned or rebooted: what the audit logs of all clusters of all tests say that ran before.
# Environment: ORBWEAVER_RIGHTS, the folder where `hack/cluster down` left what it recorded (hack/audit-drains.jq says what);
# RIGHTS_OF=all, if all tests ran before: then some of them drained.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/lib.sh

recorded=${ORBWEAVER_RIGHTS:-build/rights}/drains

# all JQ: what it makes of the list of what was recorded, with the cluster's name.
all() {
	jq -n -r "[inputs | . + { cluster: (input_filename | split(\"/\") | last) }] | $1" "$recorded"/*.json
}

t_ok "there is a recording in $recorded (make check, make integration and make vm leave one)" \
	compgen -G "$recorded/*.json"
t_need
t_eq "no cluster ended without a whole one" "" "$(find "$recorded" -type f ! -name '*.json' -printf '%f ')"
all '"# \(length) clusters, \(map(select(.allowed)) | length) of them with a pool that allows drains; \(map(.evictions) | add) evictions, \(
	map(.nodes) | add) writes to Nodes"'
t_eq "nobody was evicted, and no Node written to, before a pool allowed it" "" \
	"$(all '.[] | select(.before != []) | "\(.cluster): \(.before | join(", "))"')"
if [[ ${RIGHTS_OF:-some} == all ]]; then
	t_ok "where one did, somebody was" test "$(all 'any(.[]; .allowed and .evictions > 0 and .nodes > 0)')" == true
fi
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/speed.sh: deadlines follow the machine, also one that becomes busy while a command waits. What is measured here is made up.
set -euo pipefail
. tests/lib.sh

unset ORBWEAVER_SLOWNESS
t_eq "before anything is measured a machine counts as quiet" 240 "$(slowly 240)"
# shellcheck disable=SC2218 # that of hack/speed.sh, which is replaced below
slowness_measure
t_ok "a measure is a whole number" grep -Exq '[1-9][0-9]?' <<<"$ORBWEAVER_SLOWNESS"
t_eq "which programs that are started have" "$ORBWEAVER_SLOWNESS" "$(bash -c 'echo $ORBWEAVER_SLOWNESS')"
ORBWEAVER_SLOWNESS=30
# shellcheck disable=SC2218
slowness_measure
t_eq "it never falls" 30 "$ORBWEAVER_SLOWNESS"

# From here on the machine is as slow as its file says.
machine=$(mktemp)
trap 'rm -f "$machine"' EXIT
slowness_measure() {
	ORBWEAVER_SLOWNESS=$(<"$machine")
}
ORBWEAVER_SLOWNESS=3
echo 3 >"$machine"
t_eq "seconds are multiplied" 720 "$(slowly 240)"
began=$((SECONDS - 500))
t_ok "half a thousand seconds are within 240 on it" time_is_left "$began" 240
t_fails "and not within 100" time_is_left "$began" 100
echo 9 >"$machine"
t_ok "unless it has become slower since" time_is_left "$began" 100
t_fails "but a deadline comes" time_is_left "$began" 50
t_done

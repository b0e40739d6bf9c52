#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recorded calls of the coordinator plugin, played against ours in real network namespaces: the whole
# state of pod and node afterwards is compared. As root; no cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/lib.sh

out=${BUILD:-build}/${VARIANT:-asan}

if ((EUID != 0)) || ! unshare --net --mount true 2>/dev/null; then
	t_skip "recorded calls of the coordinator" "needs root and network namespaces"
	t_done
fi
if ! unshare --net ip link add probe0 type veth peer name probe1 2>/dev/null; then
	t_skip "recorded calls of the coordinator" "the kernel has no veth"
	t_done
fi

# Counts its cases as the functions of lib.sh do.
status=0
"$out/tests/coordinator-replay" >"$out/coordinator-replay.log" 2>&1 || status=$?
cat "$out/coordinator-replay.log"
t_passed=$(grep -c '^ok - ' "$out/coordinator-replay.log" || true)
t_failed=$(grep -c '^not ok - ' "$out/coordinator-replay.log" || true)
t_eq "all recorded cases were played" "$(jq length tests/conformance/coordinator.json)" \
	"$(grep -Ec '^(not )?ok - ' <(grep -v -- '- own-' "$out/coordinator-replay.log"))"
t_eq "the replay ends with status 0" 0 "$status"
t_done

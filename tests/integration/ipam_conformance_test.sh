#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The recorded cases of addresses (conformance/ipam.json) with the operator on a real API server (ipam_replay.c). LONG=1: once
# more with a leader that is killed after a random number of its writes, again and again: the same end.
# Environment: SEED: when to kill; CASE: one alone; EVERY: one of so many.
# shellcheck disable=SC2317 # most functions are called through t_ok and t_wait
set -euo pipefail
# shellcheck source=tests/integration/operator.sh
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

seed=${SEED:-$RANDOM}

# replay WHAT [FLAG...]
replay() {
	local status=0

	"$o_programs/tests/integration/ipam_replay" --kubeconfig "$kubeconfig" --agent-kubeconfig "$agent_kubeconfig" \
		--seed "$seed" ${CASE:+--case "$CASE"} --every "${EVERY:-1}" "${@:2}" >"$tmp/replay" 2>>"$tmp/replay.log" || status=$?
	t_eq "$1" 0 "$status"
	cat "$tmp/replay" <(grep -v '^{' "$tmp/replay.log") | sed 's/^/# /'
}

o_begin ipam-replay --no-controllers
o_own_user
agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
for namespace in ns1 ns2; do
	k create namespace "$namespace" >/dev/null
done
o_kubevirt

o_start first --config-namespace spiderpool
o_wait_ready first
t_wait 30 "it leads" o_leads first
replay "every case ends as recorded, but those with a reason"
o_end first

if [[ -n ${LONG:-} ]]; then
	echo "# seed $seed"
	o_curl DELETE /api/v1/namespaces/spiderpool/configmaps/spiderpool-conf >/dev/null
	replay "the same while the leader is killed between its writes" \
		--kill "$(hack/cluster audit "$o_cluster")" -- "$o_operator" --kubeconfig "$o_kubeconfig" \
		--metrics-addr 127.0.0.1:0 --health-addr 127.0.0.1:0 --leader-elect=false --config-namespace spiderpool
fi
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the operator does when the label of one node changes is no more work among 10,000 nodes than among 100: instructions, counted
# by callgrind (tests/support/one_key.c). No cluster, no time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

# Valgrind and sanitizers do not go together: this is the program as it ships.
program=${BUILD:-build}/opt/tests/one-key
few=100
many=10000
declare -a instructions=()

# Print the instructions for all changes of a run; fails unless each of them brought another NodeState.
count() {
	valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no --callgrind-out-file=/dev/null \
		"$program" "$1" >"$tmp/$1.log" 2>&1 || return
	sed -n 's/^==[0-9]*== Collected : \([0-9]*\)$/\1/p' "$tmp/$1.log"
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
t_ok "the program is built (make VARIANT=opt $program)" test -x "$program"
t_need
for nodes in "$few" "$many"; do
	instructions[nodes]=$(count "$nodes") || instructions[nodes]=0
	t_ok "$nodes nodes: ${instructions[nodes]} instructions" grep -q "^$nodes nodes, 20 labels changed, 20 NodeStates" "$tmp/$nodes.log"
done
t_ok "instructions were counted" test "${instructions[few]:-0}" -gt 1000000
t_need
permille=$((instructions[many] * 1000 / instructions[few]))
t_ok "$many to $few nodes: $((permille / 1000)).$(printf %03d $((permille % 1000))), at most 5 % apart" \
	test "$permille" -ge 950 -a "$permille" -le 1050
t_done

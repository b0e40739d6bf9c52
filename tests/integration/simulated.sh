#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What tests on a simulated cluster share; to be sourced at the top of the tree, after tests/lib.sh. tmp: their folder, state: that
# of `orbweaver simulate`, pid: its process, which ends with the test.
# shellcheck disable=SC2034 # used by those who source it

orbweaver=${BUILD:-build}/${VARIANT:-asan}/orbweaver
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
tmp=$(mktemp -d)
state=$tmp/state
pid=

clean_up() {
	local status=$? i

	# Killed at once it would leave its nodes' files.
	if [[ -n $pid ]]; then
		kill -s TERM "$pid" 2>/dev/null || true
		for ((i = 0; i < 100; i++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -s KILL "$pid" 2>/dev/null || true
	fi
	((status == 0)) || tail -n 20 "$state"/nodes.log 2>/dev/null || true
	rm -rf "$tmp"
}
trap clean_up EXIT

kubectl=$(hack/k8s-build --bin)/kubectl
[[ -x $kubectl ]] || kubectl=$(command -v kubectl || true)
[[ -n $kubectl ]] || {
	echo "no kubectl: hack/deps demo"
	exit 77
}

k() {
	HOME=$tmp "$kubectl" --kubeconfig "$state/kubeconfig" --cache-dir "$tmp/cache" "$@"
}

# has FILTER KUBECTL-ARGUMENT...
has() {
	local filter=$1

	shift
	k "$@" -o json | jq -e "$filter" >/dev/null
}

# doc PAGE WORDS: the block of a page of docs/ that has these words.
doc() {
	awk -v words="$2" '/^```/ { if (is_open && index(text, words)) printf "%s", text; is_open = !is_open; text = ""; next }
		is_open { text = text $0 "\n" }' "docs/$1"
}

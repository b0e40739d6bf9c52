# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How scripts that put something into the cache talk while they work. Source it; $work is the caller's folder for what it
# throws away. Messages carry the script's name.
script=hack/${0##*/}

say() {
	printf '%s: [%3d s] %s\n' "$script" "$SECONDS" "$*"
}

die() {
	echo "$script: $*" >&2
	exit 1
}

# As die, for what another machine or another day may have.
unavailable() {
	echo "$script: $*" >&2
	exit 77
}

# Run a command with its output in a log, shown only when it fails.
succeeds() {
	local log=$work/step.log

	"$@" >"$log" 2>&1 && return
	echo "$script: this failed: ${*:1:6}" >&2
	tail -n 30 "$log" >&2
	return 1
}

quietly() {
	succeeds "$@" || exit 1
}

# The same, with a sign of life every 20 s: compiling takes minutes.
quietly_long() {
	local what=$1 ticker

	shift
	say "$what"
	# The last sleep may outlive us: it must hold neither our lock nor the pipe we write to.
	(
		exec {lock}>&-
		while sleep 20 &>/dev/null; do say "$what, still at it"; done
	) &
	ticker=$!
	quietly "$@"
	kill "$ticker"
	wait "$ticker" 2>/dev/null || true
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Counting checks for shell tests. Source this file, call the t_ functions, end with t_done:
#
#   t_ok NAME COMMAND...            the command succeeds
#   t_fails NAME COMMAND...         the command fails
#   t_eq NAME WANT GOT              the two strings are equal
#   t_wait SECONDS NAME COMMAND...  the command succeeds within so many seconds (tried every 0.1 s), or as many times more as
#                                   this machine is slow (hack/speed.sh)
#   t_skip NAME WHY                 the check cannot run here; counted, and shown by tests/run
#   t_done                          print "N passed, M failed"; exit 0 if none failed, else 1
#
# Each check prints one line, "ok - NAME" or "not ok - NAME", the latter followed by what the command
# printed or what was expected, as lines that start with "#". A check always returns 0, so that the next
# ones run under `set -e` too. Where going on makes no sense after a failure:
#
#   t_need                          end like t_done if a check has failed so far
#
# A COMMAND runs in a subshell: variables that it sets are lost. If it is a function, `set -e` does not
# work inside (bash ignores it where a result is tested): join its steps with &&. No trap is set here:
# cleaning up on EXIT is the test's own business.

. "$(dirname "${BASH_SOURCE[0]}")/../hack/speed.sh"

t_passed=0
t_failed=0
t_skipped=0

# Count a check; status 0 is a pass. Details of a failure come on stdin.
t_count() {
	local status=$1 name=$2

	if ((status == 0)); then
		t_passed=$((t_passed + 1))
		printf 'ok - %s\n' "$name"
	else
		t_failed=$((t_failed + 1))
		printf 'not ok - %s\n' "$name"
		sed 's/^/#   /'
	fi
}

t_ok() {
	local name=$1 output status=0

	shift
	output=$("$@" 2>&1) || status=$?
	t_count "$status" "$name" <<<"exit status $status of: $*"$'\n'"$output"
}

t_fails() {
	local name=$1 output status=1

	shift
	output=$("$@" 2>&1) || status=0
	t_count "$status" "$name" <<<"should have failed: $*"$'\n'"$output"
}

t_eq() {
	local name=$1 want=$2 got=$3 status=0

	[[ $got == "$want" ]] || status=1
	t_count "$status" "$name" <<<"want: $want"$'\n'"got:  $got"
}

t_wait() {
	local seconds=$1 name=$2 began=$SECONDS output status tries=0

	shift 2
	while :; do
		status=0
		output=$("$@" 2>&1) || status=$?
		{ ((status != 0)) && time_is_left "$began" "$seconds"; } || break
		# Whoever asks takes the processor from what it waits for.
		sleep "0.$((tries++ < 4 ? 1 : 4))"
	done
	t_count "$status" "$name" <<<"not within $((SECONDS - began)) s: $*"$'\n'"$output"
}

t_skip() {
	t_skipped=$((t_skipped + 1))
	printf 'skipped - %s: %s\n' "$1" "$2"
}

t_need() {
	((t_failed == 0)) || t_done
}

# A test without any check has failed too.
t_done() {
	printf '%d passed, %d failed\n' "$t_passed" "$t_failed"
	((t_failed == 0 && t_passed + t_skipped > 0)) || exit 1
	exit 0
}

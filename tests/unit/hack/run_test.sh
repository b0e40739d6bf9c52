#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run: what it counts, what runs once more, and that its last lines name what failed.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# test_of NAME: a test of that name, from the lines on stdin.
test_of() {
	{
		echo '#!/bin/bash'
		cat
	} >"$work/$1"
	chmod +x "$work/$1"
}

test_of good <<'T'
echo 'ok - one'
echo '2 passed, 0 failed'
T
test_of bad <<'T'
echo 'not ok - the planted check'
echo '1 passed, 1 failed'
exit 1
T
test_of silent </dev/null
test_of dies <<<'echo "3 passed, 0 failed"; exit 7'
test_of skips <<'T'
echo 'skipped - a case: no such kernel'
echo '1 passed, 0 failed, 1 skipped'
T
# Fails the first time that it is run.
test_of late <<T
if [ -e "$work/been-here" ]; then echo '4 passed, 0 failed'; exit 0; fi
touch "$work/been-here"
echo 'not ok - a check that had no time'
echo '3 passed, 1 failed'
exit 1
T

# Waits for a test that is named two after it.
test_of patient <<T
for _ in {1..200}; do
	[ ! -e "$work/third-was-here" ] || exec echo '1 passed, 0 failed'
	sleep 0.05
done
echo '0 passed, 1 failed'
T
test_of third <<T
touch "$work/third-was-here"
echo '1 passed, 0 failed'
T

# The output of tests/run with these arguments, its exit status in a last line.
run() {
	local status=0

	TEST_LOGS=$work/logs tests/run "$@" 2>&1 || status=$?
	echo "status $status"
}

ends() {
	tail -2 <<<"$1" | head -1
}

out=$(run "$work/good" "$work/good")
t_eq "counts what passed" "4 passed, 0 failed" "$(ends "$out")"
t_eq "succeeds then" "status 0" "$(tail -1 <<<"$out")"

out=$(run --jobs 2 "$work/patient" "$work/good" "$work/third")
t_eq "one that takes long keeps one slot, not all" "4 passed, 0 failed" "$(ends "$out")"
t_eq "they are shown in the order of their names" "patient good third" \
	"$(sed -n "s,^$work/\([a-z]*\) .*,\1,p" <<<"$out" | xargs)"

rm "$work/third-was-here"
out=$(run --jobs 2 "$work/patient" "$work/good" --jobs 2 "$work/third")
t_eq "nor does it keep the next group from beginning" "4 passed, 0 failed" "$(ends "$out")"

rm "$work/third-was-here"
out=$(run --beside 1 "$work/patient" --jobs 2 "$work/good" "$work/third")
t_eq "tests run beside the next group" "4 passed, 0 failed" "$(ends "$out")"
# Fails beside another one like it.
test_of lonely <<T
mkdir "$work/one-runs" && sleep 0.3 && rmdir "$work/one-runs" && echo '1 passed, 0 failed'
T
cp "$work/lonely" "$work/lonelier"
out=$(run --beside 1 --again "$work/lonely" "$work/lonelier" "$work/bad" --jobs 4 "$work/good")
t_eq "not too many of them at a time, and all of them" "5 passed, 1 failed" "$(ends "$out")"
t_ok "one that fails runs once more" grep -q "^once more, alone: .*bad" <<<"$out"

# As between two tests: nothing is marked as running while the line of signs of life is due.
test_of unmarked <<'T'
rm "$TEST_LOGS"/*.running
sleep 0.5
echo '1 passed, 0 failed'
T
out=$(TEST_ALIVE=0.05 run "$work/unmarked")
t_eq "signs of life with nothing to name are no failure" "status 0" "$(tail -1 <<<"$out")"

out=$(run "$work/good" "$work/bad")
t_eq "counts what failed" "3 passed, 1 failed" "$(ends "$out")"
t_eq "fails then" "status 1" "$(tail -1 <<<"$out")"
t_eq "names it at the end" "  not ok - the planted check" "$(tail -3 <<<"$out" | head -1)"

out=$(run "$work/silent")
t_eq "a test that says nothing has failed" "0 passed, 1 failed" "$(ends "$out")"
out=$(run "$work/dies")
t_eq "so has one that dies" "3 passed, 1 failed" "$(ends "$out")"
out=$(run "$work/skips")
t_eq "counts what was skipped" "1 skipped" "$(tail -3 <<<"$out" | head -1)"

out=$(run "$work/late")
t_eq "a failure is final" "3 passed, 1 failed" "$(ends "$out")"
rm "$work/been-here"
out=$(run --jobs 2 --again "$work/late" "$work/good")
t_eq "in a group that may run again the last time counts" "6 passed, 0 failed" "$(ends "$out")"
t_ok "which is said" grep -q "^unsteady: .*late failed beside others and passed alone" <<<"$out"
t_ok "with what failed at first" grep -q "^  not ok - a check that had no time" <<<"$out"
out=$(run --jobs 2 --again "$work/bad" "$work/good")
t_eq "what fails twice has failed, once" "3 passed, 1 failed" "$(ends "$out")"
rm "$work/been-here"
out=$(run --jobs 1 --again "$work/good" --jobs 1 "$work/late")
t_eq "the next group does not run again by itself" "5 passed, 1 failed" "$(ends "$out")"
rm "$work/been-here"
out=$(run --jobs 1 --again "$work/late" --jobs 1 "$work/good")
t_eq "what runs again does so with nothing beside it, after the next group" "late good late" \
	"$(sed -n "s,^$work/\([a-z]*\) .*,\1,p" <<<"$out" | xargs)"

# A record of what passed: in the same sources it counts without another run.
test_of counted <<T
echo run >>"$work/runs"
echo 'skipped - a case: no such kernel'
echo '2 passed, 0 failed'
T
record=$work/record
out=$(TEST_RECORD=$record run "$work/counted" "$work/bad")
t_eq "the record has what passed, and nothing else" "$work/counted 2 1" "$(cat "$record")"
out=$(TEST_PASSED=$record run "$work/counted" "$work/good")
t_eq "a test of the record counts" "4 passed, 0 failed" "$(ends "$out")"
t_eq "with what it skipped" "1 skipped" "$(tail -3 <<<"$out" | head -1)"
t_ok "which is said" grep -q "^$work/counted  *2 passed before" <<<"$out"
t_eq "and does not run" 1 "$(wc -l <"$work/runs")"
out=$(TEST_PASSED=$record run --jobs 1 --always "$work/counted")
t_eq "unless it always runs" 2 "$(wc -l <"$work/runs")"
test_of slow <<T
sleep 0.5
echo '1 passed, 0 failed' | tee "$work/ended"
T
test_of last <<T
exec cat "$work/ended"
T
rm "$work/been-here"
out=$(run --jobs 2 --again "$work/slow" "$work/late" --jobs 2 --always "$work/last")
t_eq "which begins when all others have ended" "6 passed, 0 failed" "$(ends "$out")"
t_eq "those that run again, too" "slow late late last" "$(sed -n "s,^$work/\([a-z]*\) .*,\1,p" <<<"$out" | xargs)"
out=$(TEST_PASSED=$work/none run "$work/counted")
t_eq "no record is an empty one" "2 passed, 0 failed" "$(ends "$out")"

t_done

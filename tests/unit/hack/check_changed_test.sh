#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/check-changed: which tests a change calls for, by modules, includes, cases and tests/covers.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

missing=$(grep -v '^#' tests/covers | sed 's/.*://' | tr ' ' '\n' | sed -n 's/@.*//; /./p' | sort -u | while read -r test; do
	[[ -f tests/integration/${test}_test.sh ]] || echo "$test"
done)
t_eq "tests/covers names tests that exist" "" "$missing"
missing=$(grep -v '^#' tests/covers | sed 's/:.*//' | tr ' ' '\n' | while read -r prefix; do
	[[ -z $prefix ]] || compgen -G "$prefix*" >/dev/null || echo "$prefix"
done)
t_eq "and files that exist" "" "$missing"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{hack,lib/low,lib/high,tests/{unit/{low,high,hack},fuzz/corpus/high,fakes,support,integration,golden/kind/case}}
cp hack/check-changed "$tree/hack"
cd "$tree"
modules=('lib/low:' 'lib/high:lib/low')

echo '#include "lib/low/low.h"' >lib/low/low.c
echo 'int low;' >lib/low/low.h
echo '#include "lib/low/low.h"' >lib/high/high.c
echo 'int high;' >lib/high/high.h
echo '#include "lib/low/low.h"' >tests/unit/low/low_test.c
printf '#include "lib/high/high.h"\nchar *cases = "tests/golden/kind";\n' >tests/unit/high/high_test.c
printf '#include "tests/fakes/fake.h"\n' >tests/unit/high/fake_test.c
echo 'int fake;' >tests/fakes/fake.h
printf '#include "tests/fakes/fake.h"\n#include "lib/low/low.h"\n' >tests/fakes/fake.c
echo 'int support;' >tests/support/support.h
echo '#include "lib/high/high.h"' >tests/fuzz/high_fuzz.c
echo 1 >tests/fuzz/corpus/high/one
echo '{}' >tests/golden/kind/case/in.json
echo 'lib/high/: one two@stage' >tests/covers
touch tests/integration/{one,two,three}_test.sh tests/unit/hack/a_script_test.sh hack/a-script
git init -q
git add -A
git -c user.name=t -c user.email=t@example.com commit -qm tree

# What a change of these files calls for.
after() {
	local file

	for file; do
		echo '// changed' >>"$file"
	done
	hack/check-changed --list HEAD "${modules[@]}" | tail -n +2 | sed 's,.*/,,' | xargs
	git checkout -q .
	git clean -qfd
}

t_eq "nothing changed, nothing runs" "0 passed, 0 failed" "$(hack/check-changed HEAD "${modules[@]}" | tail -1)"
t_eq "a module's tests, fuzz targets and integration tests" "high_test high one_test.sh two_test.sh@stage" "$(after lib/high/high.c)"
t_eq "those of modules and fakes that use it, too" "fake_test high_test low_test high" "$(after lib/low/low.h)"
t_eq "a test that has changed, alone" "low_test" "$(after tests/unit/low/low_test.c)"
t_eq "tests that include a fake" "fake_test" "$(after tests/fakes/fake.c)"
t_eq "a test that reads a changed case" "high_test" "$(after tests/golden/kind/case/in.json)"
t_eq "a corpus" "high" "$(after tests/fuzz/corpus/high/one)"
t_eq "a new input, not known to git" "high" "$(after tests/fuzz/corpus/high/two)"
t_eq "the test of a script" "a_script_test.sh" "$(after hack/a-script)"
t_eq "an integration test that has changed" "three_test.sh" "$(after tests/integration/three_test.sh)"
t_eq "all, where the rules of building change" "fake_test high_test low_test high one_test.sh" \
	"$(echo 'Makefile: one' >>tests/covers && after Makefile)"
rm lib/high/high.c tests/unit/high/high_test.c
t_eq "a removed test does not run" "high one_test.sh two_test.sh@stage" "$(after)"
status=0
said=$(hack/check-changed nothing "${modules[@]}" 2>&1) || status=$?
t_eq "an unknown commit is an error of usage" 2 "$status"
t_eq "in one line, with what is possible" \
	"check-changed: BASE=nothing: git knows no such commit; possible: HEAD, a branch, a tag, a hash" "$said"
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/reasons on a copy of the tree: it accepts the copy, and refuses a reason that is documented or tested nowhere.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# In two parts, so that no test names it.
planted="Planted""Reason"

fresh() {
	rm -rf "$work/tree"
	mkdir "$work/tree"
	tar c hack docs lib operator nodeagent reconcilers cli tests | tar x -C "$work/tree"
}

in_code() {
	echo "static const char planted[] = \"$planted\";" >>"$work/tree/lib/base/err.c"
}

# on_page [EFFECT]
# shellcheck disable=SC2016 # backquotes of Markdown
on_page() {
	printf -- '- `%s`: it was planted.\n  %s Remove it.\n' "$planted" "${1-**No pod suffers.**}" >>"$work/tree/docs/reasons.md"
}

# refused NAME TEXT: hack/reasons fails and says so.
refused() {
	local output

	if output=$("$work/tree/hack/reasons" 2>&1); then
		output="not refused: $output"
	fi
	t_ok "$1" grep -qF -- "$2" <<<"$output"
}

fresh
t_ok "the tree as it is" "$work/tree/hack/reasons"

in_code
refused "a reason that no page explains" "$planted has no entry"

on_page
refused "a reason that no test names" "no test names $planted; add a case"

echo "/* $planted */" >"$work/tree/tests/unit/planted_test.c"
t_ok "a reason with its line and its test" "$work/tree/hack/reasons"

on_page
refused "a reason that is explained twice" "$planted has more than one line"

fresh
in_code
on_page ""
refused "a reason that does not say what it affects" "$planted lacks a part"

fresh
on_page
refused "a line for a reason that is gone" "$planted is in no source any more"

t_done

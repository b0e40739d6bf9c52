#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hack/report: what is planted in a small tree is counted, and a figure that is worse than the page allows fails.
# shellcheck disable=SC2016 # Markdown's code is no command
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work"/{hack,docs,operator,nodeagent/b,nodeagent/c,tests}
cp hack/report hack/source.pm "$work/hack"
report() { "$work/hack/report" "$@" 2>&1; }
# now NAME: the figure, as the table has it beside the page's words for it.
now() { report | awk -v name="$1" '$1 == name { print $4 }'; }

{
	echo '| Figure | Name | Before | At most | Goal |'
	for name in lines code test-lines test-shell boxes arrows up forks dialects one-caller planner add-files add-folders add-lines structs long-files circles no-top; do
		echo "| $name | \`$name\` | 1 | 9999 | 0 |"
	done
	echo '| asserts | `asserts` | 1 | 0 | 10 |'
	printf '\n## Dialects\n\n| Between | What |\n| --- | --- |\n| x, y | JSON |\n| y, z | bytes |\n'
} >"$work/docs/structure.md"
cat >"$work/operator/a.c" <<'END'
// SPDX-License-Identifier: Apache-2.0
/*
 * A. See the header.
 */
#include "operator/a.h"

/* No function() here. */
static int once(int x)
{
	return x;
}

static int twice(int x)
{
	return x;
}

static int in_table(int x)
{
	return x;
}

static int (*const table[])(int x) = {in_table};

int planner_plan(int x)
{
	assert(x);
	return once(twice(x)) + twice(x) + there(x) + fork();
}
END
cat >"$work/operator/a.h" <<'END'
struct small {
	int a;
};

struct large {
	int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y;
	void (*z)(int a, int b);
};
END
cat >"$work/operator/b.c" <<'END'
/* There, and what it calls. */
int there(int x)
{
	return back(x);
}
END
printf 'int back(int x)\n{\n\treturn x;\n}\n' >"$work/operator/c.c"
printf '#include "nodeagent/c/c.h"\n' >"$work/nodeagent/b/b.h"
printf '\n' >"$work/nodeagent/c/c.h"
printf 'int main(void)\n{\n\treturn 0;\n}\n' >"$work/tests/t.c"

t_eq "lines, comments and blanks among them" 48 "$(now lines)"
t_eq "code" 35 "$(now code)"
t_eq "tests count by themselves" 4 "$(now test-lines)"
t_eq "boxes" 2 "$(now boxes)"
t_eq "arrows" 1 "$(now arrows)"
t_eq "none goes up" 0 "$(now up)"
t_eq "a place that forks" 1 "$(now forks)"
t_eq "dialects of the page" 2 "$(now dialects)"
t_eq "a function with one caller, neither that with two nor that of a table: one of six" 16.7 "$(now one-caller)"
t_eq "an assert in six functions" 16.7 "$(now asserts)"
t_eq "a struct of 26 members" 1 "$(now structs)"
t_eq "a top comment that says nothing" 1 "$(now no-top)"
t_eq "five stays: the planner's file, one called, one called from there, and back twice" 5 "$(now planner)"
t_eq "no circle" 0 "$(now circles)"
t_ok "the page allows all of it" report --check

report --write >/dev/null
t_eq "what is better is written down" '| boxes | `boxes` | 1 | 2 | 0 |' "$(grep boxes "$work/docs/structure.md")"
t_eq "lines to the full thousand" '| lines | `lines` | 1 | 1000 | 0 |' "$(grep '`lines' "$work/docs/structure.md")"
t_ok "and is allowed" report --check

printf 'int back(int x)\n{\n\treturn there(x);\n}\n' >"$work/operator/c.c"
printf '#include "nodeagent/b/b.h"\n' >"$work/nodeagent/c/c.h"
t_eq "a circle of calls" 1 "$(now circles)"
t_eq "a circle of boxes" 1 "$(now up)"
t_fails "which is worse than allowed" report --check
t_ok "and named" grep -q '^circles .*WORSE' <<<"$(report --check || true)"
t_done

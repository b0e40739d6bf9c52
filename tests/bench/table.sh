# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # tmp and say are those of who sources it
# The table of a benchmark, with the budgets beside what was measured. Source it.
#
#   row WHAT MEASURED BARE RATIO BUDGET OK   a row of $tmp/table, the head first, and a line of progress
#   print_table
#   ratio A B                                "1.23"
#   verdict CONDITION                        yes or NO; an awk expression

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }'
}

verdict() {
	awk "BEGIN { print (($1) ? \"yes\" : \"NO\") }"
}

row() {
	local IFS='|'

	echo "$*" >>"$tmp/table"
	say "$1: $2${3:+ (bare $3)}"
}

print_table() {
	echo
	awk -F '|' '
	{ for (i = 1; i <= 6; i++) { cell[NR, i] = $i; w = length($i); if (w > width[i]) width[i] = w } }
	END {
		for (r = 1; r <= NR; r++) {
			line = "|"
			for (i = 1; i <= 6; i++) line = line " " sprintf("%-" width[i] "s", cell[r, i]) " |"
			print line
			if (r > 1) continue
			line = "|"
			for (i = 1; i <= 6; i++) { dash = sprintf("%" (width[i] + 2) "s", ""); gsub(/ /, "-", dash); line = line dash "|" }
			print line
		}
	}' "$tmp/table"
}

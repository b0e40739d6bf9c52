#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of manifests/overlays/monitoring: promtool has each alert fire, after its time of patience and not before, by series as
# operator and agents print them (alert_rules.yml beside this file). operator_alerts_test.sh has those about the operator fire by what
# really happens to one. A panel that counts as a rule does has a case, too: promql_expr_test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cases=tests/integration/alert_rules.yml

# Series in the cases with a name or a label that neither our lists have nor a scrape adds.
strangers() {
	local series name labels known label

	sed -n "s/^  - series: '\(.*\)'\$/\1/p" "$cases" | sort -u | while read -r series; do
		name=${series%%\{*}
		known=$(awk -v name="$name" '$1 == name { print $3 }' tests/golden-metrics/{agent,operator}.txt | head -n 1)
		[[ -n $known ]] || echo "no metric of ours: $name"
		labels=$(grep -o '[A-Za-z_]*="' <<<"${series#*\{}" | tr -d '="')
		for label in $labels; do
			[[ ,$known,instance,job,namespace,pod,container,node, == *",$label,"* ]] || echo "$name has no label $label"
		done
	done
}

sed -n '/^  groups:/,$p' manifests/overlays/monitoring/rules.yaml | sed 's/^  //' >"$tmp/rules.yml"
cp "$cases" "$tmp/cases.yml"
t_ok "Prometheus's tools are installed" command -v promtool
t_need
t_ok "the rules are good ones" promtool check rules "$tmp/rules.yml"
t_ok "each case has the alert that it is about, in time, with the text for whoever gets it" promtool test rules "$tmp/cases.yml"
t_eq "each alert has a case" "$(sed -n 's/^ *- alert: //p' "$tmp/rules.yml" | sort)" \
	"$(sed -n 's/^  - alertname: //p' "$cases" | sort -u)"
t_eq "queries with a case are those of panels" "" "$(sed -n "s/^  - expr: '\(.*\)'\$/\1/p" "$cases" |
	grep -vxFf <(hack/dashboards queries | cut -f 3))"
t_eq "the series are ours" "" "$(strangers)"
# What an alert asks for is in the lists, too: names in front of a brace, a bracket or an operator.
t_eq "so are those that alerts ask for" "" "$(sed -n 's/^ *expr: //p' "$tmp/rules.yml" | grep -oE '\b(orbweaver|spiderpool|rdma|sriov)_[a-z_]+' |
	grep -vE '^(rdma_parent_name)$' | sort -u | comm -23 - <(cat tests/golden-metrics/{agent,operator}.txt | cut -d' ' -f1 | sort -u))"
t_done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Strangers at the operator's ports: a flood of connections that say nothing, and bodies that would take much memory. Probes, metrics
# and reviews are answered all the same. Times are printed, not judged. No API server is needed: the operator waits for one.
# LONG=1: 1,000 connections a second for a minute; else five seconds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

clean_up() {
	local id

	for id in "${!o_pids[@]}"; do
		kill -s KILL "${o_pids[$id]}" 2>/dev/null || true
		wait "${o_pids[$id]}" 2>/dev/null || true
	done
	rm -rf "$tmp"
}

tmp=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
t_ok "the programs are built" test -x "$o_operator" -a -x "$o_programs/tests/flood"
t_need

# Nobody listens there: the operator is alive and not ready.
cat >"$tmp/kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: default
contexts: [{name: default, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
END
kubeconfig=$tmp/kubeconfig

serves() {
	[[ -n $(o_port a metrics) && -n $(o_port a health) && -n $(o_port a webhooks) ]]
}

rss_kb() {
	awk '/^VmHWM/ { print $2 }' "/proc/${o_pids[a]}/status"
}

review() {
	curl -sk --noproxy '*' --max-time 20 -o "$tmp/answer" -w '%{http_code}' -H 'Content-Type: application/json' -H 'Expect:' \
		--data-binary "@$1" "https://127.0.0.1:$(o_port a webhooks)/validate"
}

o_start a --webhook-addr 127.0.0.1:0
t_wait 20 "the operator serves metrics, health and webhooks" serves
t_need
t_ok "it is alive" o_http a /healthz
printf '{}' >"$tmp/small"

# --- connections that say nothing ---------------------------------------------------------------------------------

# probe NAME CURL…: once; notes the time it took.
probe() {
	local code

	code=$(curl -sk --noproxy '*' --max-time 5 -o "$tmp/answer" -w '%{http_code} %{time_total}\n' "${@:2}") || code="000 5"
	echo "$code" >>"$tmp/probes.$1"
}

# under_flood WHAT ADDRESSES: each port is asked while strangers come, and all answers count.
under_flood() {
	local what=$1 addresses=$2 flood

	rm -f "$tmp"/probes.*
	"$o_programs/tests/flood" "$(o_port a "$what")" 1000 "$(o_size 60 5)" "$addresses" >"$tmp/flood.out" 2>&1 &
	flood=$!
	while kill -0 "$flood" 2>/dev/null; do
		probe healthz "http://127.0.0.1:$(o_port a health)/healthz"
		probe metrics "http://127.0.0.1:$(o_port a metrics)/metrics"
		probe validate -H 'Content-Type: application/json' --data-binary "@$tmp/small" "https://127.0.0.1:$(o_port a webhooks)/validate"
		sleep 0.2
	done
	t_ok "$what, $addresses addresses: the flood came about" wait "$flood"
	t_eq "$what, $addresses addresses: each probe of health is answered" 200 "$(answers healthz)"
	t_eq "$what, $addresses addresses: each scrape is answered" 200 "$(answers metrics)"
	# Nothing is known of the cluster yet.
	t_eq "$what, $addresses addresses: each review is answered" 503 "$(answers validate)"
	printf '# %s: %s; slowest of %s probes each: ' "$what" "$(<"$tmp/flood.out")" "$(wc -l <"$tmp/probes.healthz")"
	for port in healthz metrics validate; do
		printf '%s %s s  ' "$port" "$(sort -nk 2 "$tmp/probes.$port" | awk 'END { print $2 }')"
	done
	echo
}

# The different answers to a kind of probe.
answers() {
	cut -d ' ' -f 1 "$tmp/probes.$1" | sort -u | paste -sd ' '
}

under_flood health 1
under_flood health 50
under_flood metrics 50
under_flood webhooks 50
t_ok "the log has no errors of it" test "$(o_error_lines a)" -le 1
t_ok "connections that gave way are counted" test "$(o_metric a http_connections_turned_away_total)" -gt 0

# --- bodies that would take much memory ---------------------------------------------------------------------------

# {"a":[{},{},…]} of 4 MiB
hostile() {
	printf '{"a":[{}'
	head -c 4194270 < <(yes ',{}' | tr -d '\n')
	printf ']}'
}

# "BOUND COUNT" of turns of the loop, as counted so far.
turns() {
	o_http a /metrics | sed -n 's/^orbweaver_loop_turn_seconds_bucket{le="\(.*\)"} \(.*\)/\1 \2/p'
}

hostile >"$tmp/hostile"
before=$(rss_kb)
turns >"$tmp/turns"
for i in 1 2 3; do
	t_eq "a body of 1.4 million objects is refused ($i)" 413 "$(review "$tmp/hostile")"
done
t_ok "the answer says what to do" grep -q 'at most 20000 are read: make the object smaller' "$tmp/answer"
turns | paste -d ' ' "$tmp/turns" - | awk '{ printf "%s at most %s s: %d", (NR > 1 ? "," : "# turns of the loop meanwhile:"), $1, $4 - $2 } END { print "" }'
printf '# memory at its highest: %s KB before, %s KB after\n' "$before" "$(rss_kb)"
t_eq "a small review is still answered" 503 "$(review "$tmp/small")"
t_ok "it is still alive" o_http a /healthz

o_end a
t_done

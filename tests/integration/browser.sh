# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A headless Chromium that is told what to do: the DevTools protocol over a pair of pipes, each message a JSON object that ends
# in a NUL (--remote-debugging-pipe, https://chromedevtools.github.io/devtools-protocol/). Source this file, then:
#
#   b_begin FOLDER [URL]    start it with its profile and logs in FOLDER, one page open
#   b_go URL                the page navigates there
#   b_eval EXPRESSION       the expression's value in the page, as text
#   b_picture FILE WIDTH HEIGHT [light|dark]
#   b_end
#
# What the page's scripts complained about is in FOLDER/console.

b_id=0

# b_ask METHOD PARAMS: the result of the call; events that come meanwhile go to b_event.
b_ask() {
	local message

	b_id=$((b_id + 1))
	jq -nc --argjson id "$b_id" --arg method "$1" --argjson params "$2" --arg session "${b_session:-}" \
		'{$id, $method, $params} + if $session == "" then {} else {sessionId: $session} end' | tr '\n' '\0' >&"$b_to"
	while IFS= read -r -d '' -t 60 -u "$b_from" message; do
		if [[ $message == '{"id":'"$b_id,"* ]]; then
			b_result=$(jq -c '.result // error(.error.message)' <<<"$message")
			return
		fi
		b_event "$message"
	done
	echo "the browser did not answer $1" >&2
	return 1
}

b_event() {
	jq -r 'select(.method == "Runtime.exceptionThrown" or .method == "Log.entryAdded" or .method == "Runtime.consoleAPICalled") |
		"\(.method) \(.params | tojson)"' <<<"$1" >>"$b_folder/console"
}

b_begin() {
	local fifo

	b_folder=$1
	mkdir -p "$b_folder"
	: >"$b_folder/console"
	for fifo in to from; do
		mkfifo "$b_folder/$fifo"
	done
	# Opened for both ways, a pipe waits for nobody.
	exec {b_to}<>"$b_folder/to" {b_from}<>"$b_folder/from"
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$b_folder/profile" --remote-debugging-pipe about:blank \
		3<"$b_folder/to" 4>"$b_folder/from" >"$b_folder/log" 2>&1 {b_to}>&- {b_from}>&- &
	b_pid=$!
	b_session=
	b_ask Target.createTarget '{"url": "about:blank"}'
	b_ask Target.attachToTarget "$(jq -c '{targetId, flatten: true}' <<<"$b_result")"
	b_session=$(jq -r .sessionId <<<"$b_result")
	b_ask Page.enable '{}'
	b_ask Runtime.enable '{}'
	b_ask Log.enable '{}'
}

b_go() {
	b_ask Page.navigate "$(jq -nc --arg url "$1" '{$url}')"
}

b_eval() {
	b_ask Runtime.evaluate "$(jq -nc --arg expression "$1" '{$expression, returnByValue: true, awaitPromise: true}')"
	jq -r 'if .exceptionDetails then .exceptionDetails | tojson else .result.value end' <<<"$b_result"
}

b_picture() {
	b_ask Emulation.setDeviceMetricsOverride "$(jq -nc --argjson width "$2" --argjson height "$3" \
		'{$width, $height, deviceScaleFactor: 1, mobile: false}')"
	b_ask Emulation.setEmulatedMedia "$(jq -nc --arg value "${4:-light}" '{features: [{name: "prefers-color-scheme", $value}]}')"
	b_ask Page.captureScreenshot '{}'
	jq -r .data <<<"$b_result" | base64 -d >"$1"
}

b_end() {
	[[ -n ${b_pid:-} ]] || return 0
	kill "$b_pid" 2>/dev/null || true
	wait "$b_pid" || true
	b_pid=
	exec {b_to}>&- {b_from}>&-
}
